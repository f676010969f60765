//! The corpus: litmus cases, recorded traces and posets, each with the values expected of it.
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
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../corpus")
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

/// A small poset with its global states.
#[derive(Clone, Debug)]
pub struct PosetCase {
    /// What it is called.
    pub name: String,
    /// How many chains there are.
    pub chains_count: usize,
    /// The events in an order that keeps the poset's own: the chain and the clock of each.
    pub events: Vec<(usize, Vec<u32>)>,
    /// How many states there are, the empty one included.
    pub states: u64,
    /// For each event, how many states have it as their last, by the order of the list. The empty
    /// state counts with the first event.
    pub intervals: Vec<u64>,
    /// All states in lexical order, unless there are too many.
    pub lexical: Option<Vec<Vec<u32>>>,
}

/// The small posets.
///
/// # Panics
/// If the corpus is damaged.
#[must_use]
pub fn posets() -> Vec<PosetCase> {
    list("posets/posets_small.json").iter().map(poset_case).collect()
}

/// The posets that benchmarks are about: the text that names each, and how many states it has.
///
/// # Panics
/// If the corpus is damaged.
#[must_use]
pub fn poset_specs() -> Vec<(String, u64)> {
    let spec = |entry: &Value| {
        let text = entry["spec"].as_str().expect("the corpus names a poset here");
        (text.to_owned(), whole(&entry["states"]))
    };
    list("posets/posets_bench.json").iter().map(spec).collect()
}

fn poset_case(entry: &Value) -> PosetCase {
    let numbers = |value: &Value| -> Vec<u32> {
        let list = value.as_array().expect("the corpus has a list of numbers here");
        list.iter().map(|number| whole(number) as u32).collect()
    };
    let event = |event: &Value| (whole(&event[0]) as usize, numbers(&event[1]));
    let lists = |key: &str| entry[key].as_array();
    PosetCase {
        name: entry["name"].as_str().expect("posets have names").to_owned(),
        chains_count: whole(&entry["n"]) as usize,
        events: lists("events").expect("posets have events").iter().map(event).collect(),
        states: whole(&entry["states"]),
        intervals: lists("interval_counts")
            .expect("posets have counts of intervals")
            .iter()
            .map(whole)
            .collect(),
        lexical: lists("lex_states").map(|states| states.iter().map(numbers).collect()),
    }
}

fn whole(value: &Value) -> u64 {
    value.as_u64().expect("the corpus has a number here")
}

/// The entries of the file called `name`.
fn list(name: &str) -> Vec<Value> {
    serde_json::from_str(&read(&folder().join(name))).expect("the file is a JSON list")
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

    #[test]
    fn the_posets_are_as_many_as_expected_and_their_intervals_are_all_states() {
        assert_eq!((posets().len(), poset_specs().len()), (39, 6));
        for case in posets() {
            assert_eq!(case.intervals.iter().sum::<u64>(), case.states, "{}", case.name);
        }
    }
}
