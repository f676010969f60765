//! All files: clean text, of reasonable size, that speaks of no particular machine.

use super::Fault;
use crate::tree::Tree;

const FILE_BYTES_MAX: usize = 1 << 20;

/// Data: taken as it came from elsewhere.
const DATA: &str = "corpus/";

/// Where people's own files are on some machine; put together so that this file has none of them.
const HOMES: [&str; 3] = [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];

/// Where scratch files are; documents may show it in an example.
const SCRATCH: &str = concat!("/t", "mp/");

const PUBLIC_REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Line feeds alone, no blanks at the end of a line, a line feed at the end, no tabs in Rust.
pub(super) fn whitespace(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| !path.starts_with(DATA)) {
        for (index, line) in text.split('\n').enumerate() {
            if line.ends_with('\r') {
                faults.push(Fault::at_line(path, index, "ends in CR LF, not in LF"));
            } else if line.ends_with([' ', '\t']) {
                faults.push(Fault::at_line(path, index, "blanks at the end of the line"));
            }
            if path.ends_with(".rs") && line.contains('\t') {
                faults.push(Fault::at_line(path, index, "a tab; use spaces, or `\\t` in text"));
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            faults.push(Fault::of_file(path, "does not end in a line feed"));
        }
    }
    faults
}

/// No large files but data.
pub(super) fn sizes(tree: &Tree) -> Vec<Fault> {
    tree.files()
        .filter(|(path, content)| !path.starts_with(DATA) && content.len() > FILE_BYTES_MAX)
        .map(|(path, content)| {
            let what = format!("{} bytes; only `{DATA}` may hold over 1 MiB", content.len());
            Fault::of_file(path, what)
        })
        .collect()
}

/// No paths of somebody's machine.
pub(super) fn machine_paths(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| !path.starts_with(DATA)) {
        let scratch = (!path.ends_with(".md")).then_some(SCRATCH);
        for (index, line) in text.lines().enumerate() {
            for word in HOMES.into_iter().chain(scratch).filter(|word| line.contains(word)) {
                let what = format!("`{word}` is a path of some machine");
                faults.push(Fault::at_line(path, index, what));
            }
        }
    }
    faults
}

/// Packages come from the public registry alone.
pub(super) fn registries(tree: &Tree) -> Vec<Fault> {
    let lock = tree.text("Cargo.lock").unwrap_or_default().lines().enumerate();
    let foreign =
        lock.filter(|(_, line)| line.starts_with("source = ") && !line.contains(PUBLIC_REGISTRY));
    let mut faults: Vec<Fault> = foreign
        .map(|(index, line)| Fault::at_line("Cargo.lock", index, format!("not public: {line}")))
        .collect();
    let settings = ".cargo/config.toml";
    for (index, line) in tree.text(settings).unwrap_or_default().lines().enumerate() {
        if ["[source", "[registr", "replace-with"].iter().any(|start| line.starts_with(start)) {
            let what = "where packages come from is a matter of each machine";
            faults.push(Fault::at_line(settings, index, what));
        }
    }
    faults
}

const CHANGELOG: &str = "CHANGELOG.md";
const UNRELEASED: &str = "## [Unreleased]";

/// The changelog has a place for what is not released yet.
pub(super) fn changelog(tree: &Tree) -> Vec<Fault> {
    let there = tree.text(CHANGELOG).is_some_and(|text| text.lines().any(|l| l == UNRELEASED));
    let fault = || Fault::of_file(CHANGELOG, format!("expected a section `{UNRELEASED}`"));
    if there { Vec::new() } else { vec![fault()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changelog_without_the_section_is_a_fault() {
        let check = |text| changelog(&Tree::from([(CHANGELOG, text)])).len();
        assert_eq!(check("# Changelog\n\n## [Unreleased]\n"), 0);
        assert_eq!(check("# Changelog\n\n## [0.1.0]\n"), 1);
        assert_eq!(changelog(&Tree::default()).len(), 1);
    }

    #[track_caller]
    fn check(find: fn(&Tree) -> Vec<Fault>, path: &str, text: &str, expected: &[&str]) {
        let faults = find(&Tree::from([(path, text)]));
        let faults: Vec<String> = faults.iter().map(Fault::to_string).collect();
        assert_eq!(faults, expected);
    }

    #[test]
    fn blanks_and_carriage_returns_at_the_end_of_a_line_are_faults() {
        check(whitespace, "a.md", "a\nb \n", &["a.md:2: blanks at the end of the line"]);
        check(whitespace, "a.md", "a\r\nb\n", &["a.md:1: ends in CR LF, not in LF"]);
        check(whitespace, "a.md", "a", &["a.md: does not end in a line feed"]);
        check(whitespace, "a.md", "a\tb\n\nc\n", &[]);
        check(whitespace, "corpus/a.std", "a \r\n", &[]);
    }

    #[test]
    fn a_tab_in_rust_is_a_fault() {
        check(whitespace, "a.rs", "a\tb\n", &["a.rs:1: a tab; use spaces, or `\\t` in text"]);
    }

    #[test]
    fn a_large_file_is_a_fault_unless_it_is_data() {
        let large = "a".repeat((1 << 20) + 1);
        let what = "a.bin: 1048577 bytes; only `corpus/` may hold over 1 MiB";
        check(sizes, "a.bin", &large, &[what]);
        check(sizes, "a.bin", &large[1..], &[]);
        check(sizes, "corpus/a.std", &large, &[]);
    }

    #[test]
    fn paths_of_a_machine_are_faults() {
        for home in HOMES {
            let what = format!("a.md:1: `{home}` is a path of some machine");
            check(machine_paths, "a.md", &format!("see {home}me\n"), &[&what]);
        }
        let what = format!("a.rs:1: `{SCRATCH}` is a path of some machine");
        check(machine_paths, "a.rs", &format!("{SCRATCH}a\n"), &[&what]);
        check(machine_paths, "a.md", &format!("{SCRATCH}a\n"), &[]);
    }

    #[test]
    fn packages_from_elsewhere_are_faults() {
        let public = format!("source = \"{PUBLIC_REGISTRY}\"\n");
        check(registries, "Cargo.lock", &public, &[]);
        let other = "source = \"git+https://example.org/a\"\n";
        let what = format!("Cargo.lock:1: not public: {}", other.trim_end());
        check(registries, "Cargo.lock", other, &[&what]);
        check(
            registries,
            ".cargo/config.toml",
            "[alias]\n[source.crates-io]\n",
            &[".cargo/config.toml:2: where packages come from is a matter of each machine"],
        );
    }
}
