//! How long does it take to go through all states of a poset, and to find races by it, beside what
//! the paper on ParaMount printed?
//!
//! The paper's posets are rebuilt from their sizes, its programs in `reweave_simulated`. Numbers of
//! states and races repeat exactly, and must be the same in every way of finding them.

mod detecting;
mod enumerating;
mod plot;
mod published;

use std::fmt::Write as _;

use super::machine;
use enumerating::Row;
use published::PUBLISHED;

const HEAD: &str = "\
# Global states

How long it takes to go through all consistent global states, and to find races by going through them, beside the published numbers.
Made by `cargo run --release -p xtask -- tables states --write`.

The published numbers are those of Tables 1 and 2 of Chang and Garg, *A Parallel Algorithm for Global States Enumeration in
Concurrent Systems* (PPoPP 2015). Their posets and programs are not at hand; what stands for them is said below.
";

/// What was measured.
pub(super) struct States {
    posets: Vec<Row>,
    detecting: String,
    with_times: bool,
}

impl States {
    /// Measures all; with `is_full`, also what takes long.
    pub(super) fn measure(with_times: bool, is_full: bool) -> anyhow::Result<Self> {
        let detecting = detecting::tables(with_times)?;
        let posets = PUBLISHED.iter().map(|row| Row::measure(row, with_times, is_full));
        Ok(Self { posets: posets.collect::<anyhow::Result<_>>()?, detecting, with_times })
    }

    /// The tables, with what they show.
    pub(super) fn table(&self) -> anyhow::Result<String> {
        let mut table = HEAD.to_owned();
        if self.with_times {
            write!(table, "\nMeasured on: {}.\n", machine())?;
        }
        table.push_str(&enumerating::tables(&self.posets));
        table.push_str(&self.detecting);
        Ok(table)
    }

    /// How much faster more threads are.
    pub(super) fn plot(&self) -> String {
        plot::plot(&self.posets)
    }
}
