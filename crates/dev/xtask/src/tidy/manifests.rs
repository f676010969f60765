//! Manifests: who depends on whom, and what the workspace declares.

use std::collections::BTreeSet;

use toml::Table;

use super::Fault;
use super::map::{self, Layer, MAP};
use crate::tree::Tree;

/// What the folder's name gets in front to make the package's.
const PREFIX: &str = "reweave-";

/// The layer of the families of analyses.
const FAMILIES: Layer = Layer::Number(8);

/// What families must not know: an analysis knows traces, not where they come from.
const PRODUCERS: [&str; 4] = ["format", "lang", "exec", "record"];

const ROOT: &str = "Cargo.toml";

/// A crate depends only on crates in lower layers; development dependencies are free.
pub(super) fn layers(tree: &Tree) -> Vec<Fault> {
    let entries = map::entries(tree);
    let mut faults = Vec::new();
    for (name, path, text) in tree.manifests() {
        let Some(own) = map::layer(&entries, name) else { continue };
        let manifest = match text.parse::<Table>() {
            Ok(manifest) => manifest,
            Err(error) => {
                faults.push(Fault::of_file(path, error.message()));
                continue;
            }
        };
        for package in packages(&manifest, &["dependencies", "build-dependencies"]) {
            let Some(other) = package.strip_prefix(PREFIX) else { continue };
            let Some(layer) = map::layer(&entries, other) else {
                let what = format!("depends on `{other}`, which is not on the code map of {MAP}");
                faults.push(Fault::of_file(path, what));
                continue;
            };
            if let Some(what) = violation(own, other, layer) {
                faults.push(Fault::of_file(path, format!("`{name}` depends on `{other}`: {what}")));
            }
        }
    }
    faults
}

/// Why a crate of layer `own` may not depend on the crate `other` of layer `layer`.
fn violation(own: Layer, other: &str, layer: Layer) -> Option<String> {
    match (own, layer) {
        (Layer::Development, _) => None,
        (_, Layer::Development) => Some("that crate is for development only".into()),
        (Layer::Number(own), Layer::Number(layer)) if layer >= own => {
            Some(format!("layer {own} may know only layers below it, and that is layer {layer}"))
        }
        (FAMILIES, _) if PRODUCERS.contains(&other) => {
            Some("an analysis knows traces, not where they come from".into())
        }
        _ => None,
    }
}

/// Packages that are named like their folders: the project's own commands, and the library for others.
const PLAIN_NAMES: [&str; 2] = ["reweave", "xtask"];

/// A package is named after its folder.
pub(super) fn own_names(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (name, path, text) in tree.manifests().filter(|(name, ..)| !PLAIN_NAMES.contains(name)) {
        let expected = format!("{PREFIX}{name}");
        let manifest = text.parse::<Table>().unwrap_or_default();
        let package = manifest.get("package").and_then(|package| package.get("name"));
        if package.and_then(|name| name.as_str()) != Some(&expected) {
            faults.push(Fault::of_file(path, format!("expected the package name `{expected}`")));
        }
    }
    faults
}

/// What the workspace declares is used by some crate, and crates use only what it declares.
pub(super) fn workspace_dependencies(tree: &Tree) -> Vec<Fault> {
    let root = tree.text(ROOT).unwrap_or_default().parse::<Table>().unwrap_or_default();
    let declared = root.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    let declared: BTreeSet<&str> =
        declared.and_then(|table| table.as_table()).into_iter().flat_map(keys).collect();
    let mut used = BTreeSet::new();
    let mut faults = Vec::new();
    for (_, path, text) in tree.manifests() {
        let manifest = text.parse::<Table>().unwrap_or_default();
        let kinds = ["dependencies", "build-dependencies", "dev-dependencies"];
        for package in packages(&manifest, &kinds) {
            if !declared.contains(package.as_str()) {
                let what = format!("declare `{package}` in the workspace, with its reason");
                faults.push(Fault::of_file(path, what));
            }
            used.insert(package);
        }
    }
    for name in declared.iter().filter(|&&name| !used.contains(name)) {
        faults.push(Fault::of_file(ROOT, format!("no crate uses the dependency `{name}`")));
    }
    faults
}

fn keys(table: &Table) -> impl Iterator<Item = &str> {
    table.keys().map(String::as_str)
}

/// The packages that `manifest` names in the tables `kinds`, those for one platform included.
fn packages(manifest: &Table, kinds: &[&str]) -> BTreeSet<String> {
    let platforms = manifest.get("target").and_then(|target| target.as_table());
    let platforms = platforms.into_iter().flat_map(Table::values).filter_map(|t| t.as_table());
    std::iter::once(manifest)
        .chain(platforms)
        .flat_map(|tables| kinds.iter().filter_map(|&kind| tables.get(kind)?.as_table()))
        .flatten()
        .map(|(key, value)| {
            let renamed = value.get("package").and_then(|package| package.as_str());
            renamed.unwrap_or(key).to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\
## Code map
| 0 | `base` | |
| 2 | `format` | |
| 2 | `order` | |
| 8 | `races` | |
| dev | `testkit` | |
";

    #[track_caller]
    fn check(name: &str, manifest: &str, expected: &[&str]) {
        let path = format!("crates/group/{name}/Cargo.toml");
        let tree = Tree::from([(MAP, DOCUMENT), (path.as_str(), manifest)]);
        let faults: Vec<String> = layers(&tree).into_iter().map(|fault| fault.what).collect();
        assert_eq!(faults, expected);
    }

    #[test]
    fn a_lower_layer_may_be_known() {
        check("races", "[dependencies]\nreweave-order.workspace = true", &[]);
    }

    #[test]
    fn the_same_layer_may_not_be_known() {
        check(
            "order",
            "[dependencies]\nreweave-format.workspace = true",
            &["`order` depends on `format`: layer 2 may know only layers below it, \
               and that is layer 2"],
        );
    }

    #[test]
    fn a_higher_layer_may_not_be_known_on_any_platform_or_under_another_name() {
        let what = "`base` depends on `races`: layer 0 may know only layers below it, \
                    and that is layer 8";
        check("base", "[target.'cfg(unix)'.dependencies]\nreweave-races = {}", &[what]);
        check("base", "[build-dependencies]\nr = { package = \"reweave-races\" }", &[what]);
    }

    #[test]
    fn a_family_may_not_know_where_traces_come_from() {
        check(
            "races",
            "[dependencies]\nreweave-format.workspace = true",
            &["`races` depends on `format`: an analysis knows traces, not where they come from"],
        );
    }

    #[test]
    fn crates_for_development_are_for_tests_only() {
        check("races", "[dev-dependencies]\nreweave-testkit.workspace = true", &[]);
        check(
            "races",
            "[dependencies]\nreweave-testkit.workspace = true",
            &["`races` depends on `testkit`: that crate is for development only"],
        );
    }

    #[test]
    fn a_crate_that_the_map_lacks_is_named() {
        check(
            "races",
            "[dependencies]\nreweave-new.workspace = true",
            &["depends on `new`, which is not on the code map of ARCHITECTURE.md"],
        );
    }

    #[test]
    fn a_package_is_named_after_its_folder() {
        let tree = Tree::from([
            ("crates/group/base/Cargo.toml", "[package]\nname = \"reweave-base\""),
            ("crates/group/order/Cargo.toml", "[package]\nname = \"order\""),
        ]);
        let faults = own_names(&tree);
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].what, "expected the package name `reweave-order`");
    }

    #[test]
    fn a_dependency_is_declared_by_the_workspace_and_used_by_a_crate() {
        let tree = Tree::from([
            (ROOT, "[workspace.dependencies]\nserde = \"1\"\nclap = \"4\""),
            (
                "crates/group/base/Cargo.toml",
                "[dev-dependencies]\nserde.workspace = true\nrand = \"1\"",
            ),
        ]);
        let faults: Vec<String> =
            workspace_dependencies(&tree).iter().map(Fault::to_string).collect();
        assert_eq!(
            faults,
            [
                "crates/group/base/Cargo.toml: declare `rand` in the workspace, with its reason",
                "Cargo.toml: no crate uses the dependency `clap`",
            ]
        );
    }
}
