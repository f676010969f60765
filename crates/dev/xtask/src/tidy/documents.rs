//! Documents that every change must keep up.

use super::Fault;
use crate::tree::Tree;

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
}
