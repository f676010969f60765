//! `tidy`: are the rules kept that neither compiler nor linter checks?
//!
//! Each check is a function from the files of the repository to the faults it finds, tested on a
//! made-up tree that has the fault. All of them together run on the real tree as a test, so
//! `cargo test --workspace` covers them. Checks read text, not syntax; they rely on `rustfmt`.

mod manifests;
mod map;
mod sources;
mod texts;

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use crate::book;
use crate::tree::Tree;

/// A rule broken, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    path: String,
    /// Counted from 1; none if the whole file is at fault.
    line: Option<usize>,
    what: String,
}

impl Fault {
    /// A fault of the whole file at `path`.
    pub(crate) fn of_file(path: &str, what: impl Into<String>) -> Self {
        Self { path: path.into(), line: None, what: what.into() }
    }

    /// A fault on the line at `index`, counted from 0.
    pub(crate) fn at_line(path: &str, index: usize, what: impl Into<String>) -> Self {
        Self { path: path.into(), line: Some(index + 1), what: what.into() }
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.what),
            None => write!(f, "{}: {}", self.path, self.what),
        }
    }
}

/// Prints what is wrong with `tree`.
pub(crate) fn run(tree: &Tree) -> ExitCode {
    let faults = faults(tree);
    for fault in &faults {
        println!("{fault}");
    }
    println!("tidy: {} faults in {} files", faults.len(), tree.files().count());
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Everything that is wrong with `tree`.
fn faults(tree: &Tree) -> Vec<Fault> {
    let checks = [
        manifests::layers,
        manifests::own_names,
        manifests::workspace_dependencies,
        map::agrees_with_folders,
        sources::lengths,
        sources::module_docs,
        sources::crate_examples,
        sources::left_overs,
        texts::whitespace,
        texts::sizes,
        texts::machine_paths,
        texts::registries,
        texts::changelog,
        book::links,
        book::summary,
    ];
    checks.iter().flat_map(|check| check(tree)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let tree = Tree::load(&crate::tree::root()).unwrap();
        let lines: Vec<String> = faults(&tree).iter().map(Fault::to_string).collect();
        assert!(lines.is_empty(), "{}", lines.join("\n"));
    }

    #[test]
    fn a_fault_says_where_as_editors_expect_it() {
        assert_eq!(Fault::at_line("a/b.rs", 6, "too long").to_string(), "a/b.rs:7: too long");
        assert_eq!(Fault::of_file("a/b.rs", "too long").to_string(), "a/b.rs: too long");
    }
}
