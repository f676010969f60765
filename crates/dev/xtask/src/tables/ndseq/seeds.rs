//! How much of an answer is the seed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use reweave_ndseq::{Settings, infer};
use reweave_trace::Trace;

use super::comparison::order;
use super::count;
use super::published::PUBLISHED;
use crate::tables::programs::{Loaded, RUNS, Size};
use crate::tree::Tree;

const HEAD: &str = "
## How much is the seed

The small programs, a hundred times five runs each, with seeds from 1 on: how often each number of `if (*)` is inferred. Programs all of
whose answers are 0 are left out.

Fewer than published, or none at all: the five runs did not show all that can happen. That `queue` is sometimes impossible is no fault
of the queue. A task that finds `tail` one behind moves it on for the task that it belongs to, a third task sees that, and only then
does the first one append its own node. So the first task comes both before and after the third, and the result depends on where `tail`
was. No sequential run does the same, with or without `if (*)`, though one has the same result: the method is stricter than it need be.
The large runs show this too; the published one has 325 events.

| program | published | inferred |
| --- | ---: | --- |
";

/// How many times five runs are looked at.
const SETS: u64 = 100;

/// The table.
pub(super) fn table(tree: &Tree) -> anyhow::Result<String> {
    let mut table = HEAD.to_owned();
    for name in order(tree) {
        let loaded = Loaded::new(tree, &name, Size::Small)?;
        let counts = answers(&loaded)?;
        if counts.keys().all(|count| count == "0") {
            continue;
        }
        let published = PUBLISHED.iter().find(|row| row.program == name);
        let published = published.map_or(String::new(), |row| {
            row.placements.map_or("impossible".to_owned(), |count| count.to_string())
        });
        let counts: Vec<String> =
            counts.iter().map(|(count, times)| format!("{count}: {times}")).collect();
        writeln!(table, "| {} | {published} | {} |", loaded.name, counts.join(", "))?;
    }
    Ok(table)
}

/// How often each number of placements is inferred.
fn answers(loaded: &Loaded) -> anyhow::Result<BTreeMap<String, u32>> {
    let mut counts = BTreeMap::new();
    for set in 0..SETS {
        let runs = loaded.runs(1 + set * u64::from(RUNS))?;
        let traces: Vec<&Trace> = runs.iter().map(|run| &run.trace).collect();
        let answer = infer(&traces, &Settings::default())?.answer;
        *counts.entry(count(&answer)).or_default() += 1;
    }
    Ok(counts)
}
