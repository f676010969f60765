//! Which specifications are inferred from runs of rebuilt programs, and what does it take, beside
//! what the paper on NDetermin printed?
//!
//! The paper's programs are rebuilt in `corpus/programs`. The first table has the columns of the
//! paper's Table 1, the second what the inference took, the third what slicing and grouping save,
//! the fourth how much of an answer is the seed. Counts repeat exactly.

mod comparison;
mod costs;
mod published;
mod seeds;

use std::fmt::Write as _;

use reweave_exec::Run;
use reweave_ndseq::{Answer, Placement, Unneeded};
use reweave_trace::Trace;

use super::machine;
use super::programs::{Loaded, Size};
use crate::tree::Tree;

/// The seed of the first of the runs that are looked at together.
const SEED: u64 = 1;

const HEAD: &str = "\
# Nondeterministic sequential specifications

Where `if (*)` must stand, inferred from five runs of each program of [`corpus/programs`](../../corpus/README.md), beside the
published numbers. Made by `cargo run --release -p xtask -- tables ndseq --full --write`; without `--full` the programs are small.

The published numbers are those of Table 1 of Burnim, Elmas, Necula and Sen, *NDetermin: Inferring Nondeterministic Sequential
Specifications for Parallelism Correctness* (UCB/EECS-2011-143). **The programs are ours, not theirs**: written anew in our language, in
the style of the benchmarks and with their parallel structure, their synchronisation and their faults, but much shorter and with
fixed-point numbers. Sizes were chosen to come near the published numbers of events where that is cheap. So that events and slices
differ is no result. Nor is every count of `if (*)`:

- `stack` counts its swaps, so that no task mistakes a top that went and came back for one that stayed. Without the count it was
  impossible, as soon as a run showed that; its results were right all the same.
- `meshrefine` has two kinds of tasks, each with a loop that tries again, because two is what is published. A version with a worklist that
  all tasks share was impossible: the order in which they take contradicts that in which they commit.
- `queue` is as in the literature. Its small runs need 2, most of them; its large runs are impossible, see the last table.

The other counts came out as published at once.

As in the paper the five runs are directed towards races; the seeds are 1 to 5.
";

/// The tables.
pub(super) fn table(tree: &Tree, with_times: bool, is_full: bool) -> anyhow::Result<String> {
    let size = if is_full { Size::Large } else { Size::Small };
    let mut table = HEAD.to_owned();
    if with_times {
        write!(table, "\nMeasured on: {}.\n", machine())?;
    }
    let mut rows = Vec::new();
    for name in comparison::order(tree) {
        rows.push(comparison::Row::measure(tree, &name, size, with_times)?);
    }
    table.push_str(&comparison::table(&rows));
    table.push_str(&costs::table(&rows));
    table.push_str(&costs::optimisations(tree, &rows, size, with_times)?);
    table.push_str(&seeds::table(tree)?);
    Ok(table)
}

/// How many placements an answer has, in a word.
fn count(answer: &Answer) -> String {
    match answer {
        Answer::Unneeded(_) => "0".to_owned(),
        Answer::Specification(placements) => placements.len().to_string(),
        Answer::Impossible(_) => "impossible".to_owned(),
        Answer::NoneLeft => "none left".to_owned(),
        Answer::Exhausted { lower_bound, .. } => format!("at least {lower_bound}"),
    }
}

/// Where the placements of an answer stand, or why there are none.
fn place(answer: &Answer, trace: &Trace) -> String {
    match answer {
        Answer::Unneeded(Unneeded::Serializable) => "serializable".to_owned(),
        Answer::Unneeded(Unneeded::IrrelevantConflicts) => "conflicts do not matter".to_owned(),
        Answer::Unneeded(Unneeded::OwnPlacements) => "its own do".to_owned(),
        Answer::Specification(placements) => lines(placements, trace),
        Answer::Impossible(_) => "a cycle of conflicts that all matter".to_owned(),
        Answer::NoneLeft | Answer::Exhausted { .. } => String::new(),
    }
}

fn lines(placements: &[Placement], trace: &Trace) -> String {
    let lines = placements.iter().filter_map(|placement| placement.lines(trace.flow()?));
    let lines: Vec<String> = lines.map(|(first, last)| format!("{first}–{last}")).collect();
    format!("lines {}", lines.join(", "))
}

/// A program and what its first runs are.
fn runs(tree: &Tree, name: &str, size: Size) -> anyhow::Result<(Loaded, Vec<Run>)> {
    let loaded = Loaded::new(tree, name, size)?;
    let runs = loaded.runs(SEED)?;
    Ok((loaded, runs))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use reweave_lang::format;
    use reweave_ndseq::{Settings, infer};

    use super::super::programs;
    use super::published::PUBLISHED;
    use super::*;
    use crate::tree::root;

    fn expected(tree: &Tree) -> BTreeMap<String, String> {
        let path = "corpus/programs/expected.json";
        let (_, text) = tree.texts().find(|&(found, _)| found == path).unwrap();
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        let word = |value: &serde_json::Value| match value {
            serde_json::Value::String(word) => word.clone(),
            number => number.to_string(),
        };
        let entries = json.as_object().unwrap().iter();
        entries.map(|(name, case)| (name.clone(), word(&case["placements"]))).collect()
    }

    #[test]
    fn every_program_has_the_expected_answer() {
        let tree = Tree::load(&root()).unwrap();
        let mut found = BTreeMap::new();
        for name in programs::names(&tree) {
            let (_, runs) = runs(&tree, &name, Size::Small).unwrap();
            let traces: Vec<&Trace> = runs.iter().map(|run| &run.trace).collect();
            let answer = infer(&traces, &Settings::default()).unwrap().answer;
            if name == "fig1" {
                assert_eq!(place(&answer, traces[0]), "lines 5–10");
            }
            found.insert(name, count(&answer));
        }
        assert_eq!(found, expected(&tree));
    }

    #[test]
    fn what_is_expected_is_what_is_published() {
        let tree = Tree::load(&root()).unwrap();
        let expected = expected(&tree);
        for row in PUBLISHED {
            let published =
                row.placements.map_or("impossible".to_owned(), |count| count.to_string());
            assert_eq!(expected[row.program], published, "{}", row.name);
        }
    }

    #[test]
    fn programs_are_in_the_one_layout_but_for_the_figure() {
        let tree = Tree::load(&root()).unwrap();
        for name in programs::names(&tree).iter().filter(|name| *name != "fig1") {
            let source = Loaded::new(&tree, name, Size::Small).unwrap().source;
            assert_eq!(format(&source).unwrap(), source.text(), "{name}");
        }
    }

    #[test]
    fn every_program_can_be_large() {
        let tree = Tree::load(&root()).unwrap();
        for name in programs::names(&tree) {
            let small = Loaded::new(&tree, &name, Size::Small).unwrap();
            let large = Loaded::new(&tree, &name, Size::Large).unwrap();
            assert_eq!(small.lines_count(), large.lines_count(), "{name}");
        }
    }

    #[test]
    fn rows_have_the_columns_of_their_heads() {
        let tree = Tree::load(&root()).unwrap();
        let row = comparison::Row::measure(&tree, "fig1", Size::Small, false).unwrap();
        let columns = |row: &str| row.lines().last().unwrap().matches('|').count();
        assert_eq!(columns(&PUBLISHED[0].row()), columns(comparison::HEAD));
        assert_eq!(columns(&row.row()), columns(comparison::HEAD));
        assert_eq!(columns(&costs::row(&row)), columns(costs::HEAD));
    }
}
