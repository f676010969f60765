//! The corpus: litmus cases and recorded traces, each with the values expected of it.
//!
//! They lie in the folder `corpus` at the root of the project, whose README says where they come
//! from.

use std::fs;
use std::path::{Path, PathBuf};

use reweave_trace::Trace;
use serde_json::{Map, Value};

use crate::fixture;

/// One file of the corpus with what is expected of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name: that of a litmus case, or a recorded trace's folder and file.
    pub name: String,
    /// Where the file lies.
    pub path: PathBuf,
    /// The values expected of it, as in `expected.json`.
    pub expected: Value,
}

impl Case {
    /// The text of the file.
    ///
    /// # Panics
    /// If the file cannot be read.
    #[must_use]
    pub fn text(&self) -> String {
        read(&self.path)
    }

    /// The trace that the file holds.
    ///
    /// # Panics
    /// If the file cannot be read or is ill-formed.
    #[must_use]
    pub fn trace(&self) -> Trace {
        fixture::std(&self.text())
    }

    /// The lists of event numbers under `key`, spelled `i-j` there, in ascending order.
    ///
    /// # Panics
    /// If there is no such list.
    #[must_use]
    pub fn numbers(&self, key: &str) -> Vec<Vec<u32>> {
        numbers(&self.expected[key])
    }
}

/// The lists of event numbers that `value` spells as `i-j`, in ascending order.
///
/// # Panics
/// If it is not such a list.
#[must_use]
pub fn numbers(value: &Value) -> Vec<Vec<u32>> {
    let all = value.as_array().expect("the corpus has a list here");
    let one = |text: &Value| {
        let text = text.as_str().expect("the corpus spells events as text");
        text.split('-').map(|part| part.parse().expect("events are numbers")).collect()
    };
    let mut lists: Vec<Vec<u32>> = all.iter().map(one).collect();
    lists.sort_unstable();
    lists
}

/// The folder of the corpus.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

/// The litmus cases, by name.
///
/// # Panics
/// If the corpus is damaged.
#[must_use]
pub fn litmus() -> Vec<Case> {
    let path_of = |name: &str| folder().join("litmus").join(format!("{name}.std"));
    cases(&folder().join("litmus/expected.json"), path_of)
}

/// The recorded traces, by name.
///
/// # Panics
/// If the corpus is damaged.
#[must_use]
pub fn traces() -> Vec<Case> {
    let path_of = |name: &str| folder().join("traces").join(name);
    cases(&folder().join("traces/expected.json"), path_of)
}

fn cases(expected: &Path, path_of: impl Fn(&str) -> PathBuf) -> Vec<Case> {
    let all: Map<String, Value> =
        serde_json::from_str(&read(expected)).expect("expected values are a JSON object");
    let mut cases: Vec<Case> = all
        .into_iter()
        .map(|(name, expected)| Case { path: path_of(&name), name, expected })
        .collect();
    cases.sort_by(|left, right| left.name.cmp(&right.name));
    cases
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_listed_and_has_the_expected_size() {
        let (litmus, traces) = (litmus(), traces());
        assert_eq!((litmus.len(), traces.len()), (37, 19));
        for case in &litmus {
            assert_eq!(case.expected["events"], case.trace().len(), "{}", case.name);
        }
        for case in &traces {
            assert_eq!(case.expected["stats"]["events"], case.trace().len(), "{}", case.name);
        }
    }
}
