//! The code map of ARCHITECTURE.md: which crate is in which layer.
//!
//! The map is the only list of layers: what people read is what is enforced.

use super::Fault;
use crate::tree::Tree;

/// Where the map is.
pub(super) const MAP: &str = "ARCHITECTURE.md";

const HEADING: &str = "## Code map";

/// Where a crate stands among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    /// It may depend on lower ones.
    Number(u32),
    /// For development: depends on what it likes, and no other crate on it but in tests.
    Development,
}

/// One crate of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) layer: Layer,
    /// Which line of the document, counted from 0.
    line: usize,
}

/// The crates of the map: rows of layer, crate and purpose.
pub(super) fn entries(tree: &Tree) -> Vec<Entry> {
    let text = tree.text(MAP).unwrap_or_default();
    let lines = text.lines().enumerate().skip_while(|&(_, line)| line != HEADING).skip(1);
    let section = lines.take_while(|&(_, line)| !line.starts_with("## "));
    section.filter_map(|(line, row)| entry(line, row)).collect()
}

fn entry(line: usize, row: &str) -> Option<Entry> {
    let mut cells = row.strip_prefix('|')?.split('|').map(str::trim);
    let layer = match cells.next()? {
        "dev" => Layer::Development,
        number => Layer::Number(number.parse().ok()?),
    };
    let name = cells.next()?.trim_matches('`').into();
    Some(Entry { name, layer, line })
}

/// The layer of the crate called `name`, if the map has it.
pub(super) fn layer(entries: &[Entry], name: &str) -> Option<Layer> {
    entries.iter().find(|entry| entry.name == name).map(|entry| entry.layer)
}

/// Every crate folder is on the map, and every crate of the map has a folder.
pub(super) fn agrees_with_folders(tree: &Tree) -> Vec<Fault> {
    let entries = entries(tree);
    let mut faults = Vec::new();
    for (name, path, _) in tree.manifests() {
        if layer(&entries, name).is_none() {
            let what = format!("crate `{name}` is not on the code map: add it to {MAP}");
            faults.push(Fault::of_file(path, what));
        }
    }
    for entry in &entries {
        if !tree.manifests().any(|(name, ..)| name == entry.name) {
            let what = format!("crate `{}` has no folder: remove it from the map", entry.name);
            faults.push(Fault::at_line(MAP, entry.line, what));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\
| 9 | `elsewhere` | a table before the map |
## Code map
| Layer | Crate | Purpose |
| --- | --- | --- |
| 0 | `base` | ids |
| 1 | `trace` | traces |
| dev | `testkit` | tests |
## Names
| 9 | `after` | a table after the map |
";

    #[test]
    fn only_the_rows_of_the_map_are_read() {
        let entries = entries(&Tree::from([(MAP, DOCUMENT)]));
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["base", "trace", "testkit"]);
        assert_eq!(layer(&entries, "trace"), Some(Layer::Number(1)));
        assert_eq!(layer(&entries, "testkit"), Some(Layer::Development));
        assert_eq!(layer(&entries, "after"), None);
    }

    #[test]
    fn a_map_that_lags_behind_the_folders_is_a_fault() {
        let tree = Tree::from([
            (MAP, DOCUMENT),
            ("crates/group/base/Cargo.toml", ""),
            ("crates/group/trace/Cargo.toml", ""),
            ("crates/group/order/Cargo.toml", ""),
        ]);
        let faults: Vec<String> = agrees_with_folders(&tree).iter().map(Fault::to_string).collect();
        assert_eq!(
            faults,
            [
                "crates/group/order/Cargo.toml: crate `order` is not on the code map: \
                 add it to ARCHITECTURE.md",
                "ARCHITECTURE.md:7: crate `testkit` has no folder: remove it from the map",
            ]
        );
    }
}
