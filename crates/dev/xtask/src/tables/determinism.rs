//! How many witnesses of nondeterminism are feasible, and how long does it take to say so, beside
//! what the paper on nondeterminism printed?
//!
//! The paper's programs are rebuilt in `reweave_simulated`. The first table says how near the runs
//! come to the published ones, the second has the columns of the paper's Table A1, the third what
//! the modes in which reads see what they saw make of it, the fourth how much of that is the seed; the
//! last is over the recorded traces.

use std::fmt::Write as _;
use std::time::Duration;

use reweave_analysis::{Analysis, Counter, Coverage, Settings};
use reweave_catalog::{Quiet, run};
use reweave_determinism::{ORDER, PREFIX, STRICT};
use reweave_simulated::{Counts, Program};
use reweave_trace::Trace;

use super::{Shown, best_of, machine, traces};
use crate::tree::Tree;

const HEAD: &str = "\
# Nondeterminism

How many witnesses of nondeterminism are feasible, in rebuilt programs beside the published numbers, and in the recorded traces
of the [corpus](../../corpus/README.md). Made by `cargo run --release -p xtask -- tables determinism --write`.

The published numbers are those of Table A1 of Sinha, Malik and Gupta, *Efficient Predictive Analysis for Detecting Nondeterminism
in Multi-Threaded Programs* (FMCAD 2012). **The programs are ours, not theirs**, and so are the traces; theirs are not at hand.
Rebuilt are programs of the same kinds, written anew (`crates/dev/simulated/src`): a pool of connections, a benchmark of
synchronisation, a cyclic barrier, bank accounts, a small file system, lifts, dining philosophers, a server of remote calls. What
`liveness` does we do not know; ours is a guess. A row of ours is one run, with seed 1. It says how the method does on a trace of
that kind and size, and no more: which witnesses are feasible depends on the program and on who ran when.

**The programs are fitted.** Their parameters, and how long a thread runs on before another's turn, were chosen by looking at the
counts of seed 1, until threads, events, locks, variables and witnesses came near each published row. The file system (Daisy) was
fitted further: about a dozen variants of it, in which users share files and switch turns in other ways, had from under 1 % to 22 %
of their witnesses feasible, and the one kept is one with about a fifth, as published. So that this share agrees is no result, nor is
it evidence that the programs are alike: nearly all of its feasible witnesses have choices, where few of theirs have. The others
were not fitted to the share of feasible witnesses, and most have far fewer. The table over ten seeds says how much of each
row is the seed.

A *witness* is a read, the write that it saw, another write of the variable (the initial value too), and one of three orders
that would keep the read from seeing what it saw; so there are three for each read and other write. Whether the paper counts
initial values is not said; we do.
";

const TIMES: &str = "
Their times are of an Intel i7 at 2.67 GHz; ours are of one core, the best of three unless that takes long, from the trace in memory
to the verdict on every witness and a checked schedule for each group of them.
";

const SIZES_HEAD: &str = "
## Sizes

| program | threads | events | lock events | locks | reads, writes | variables | waits, notifies | witnesses |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const PHASES_HEAD: &str = "
## In the paper's columns

Mode `order`, which is what the paper decides: all events happen, and each read comes after the write that it saw. A witness is
*infeasible in phase 1* if its witness order graph has a cycle; else it is feasible if there are *no choices* of order between
critical sections on a cycle, and with choices its choice graphs are tried until one is acyclic. *Possible* and *explored* are choice
graphs for each witness with choices (with an exponent, at least so many), *graphs* all graphs looked at for each witness, the first
one counted where there is nothing to choose. A schedule that was found in another way, most often the observed order cut in a
place or two, gives a choice graph without a cycle at once and counts as one explored: that ours is 1 says so, and no more. Witnesses of the third kind, in which the writer does not happen, have no choice graphs
in ours: a search for a prefix of the run decides them, and they are counted with those of phase 1.

The paper's column 9 is the sum of its columns 4 and 5 and so counts witnesses as feasible that phase 2 refuted, which its column
10 counts again as infeasible; in five rows, by 89 witnesses in all. The sum is given as printed, the corrected value in brackets.

| program | witnesses | infeasible in phase 1 | no choices | with choices | possible | explored | feasible | infeasible | graphs | time |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const MODES_HEAD: &str = "
## What is real

Feasible witnesses by mode. In mode `order` a write may come between another read and the write that it saw, so that the run may
not get that far. In mode `prefix` every other read that happens sees what it saw; in mode `strict` moreover the thread of the read
goes no further, so that the run is real whatever the program does with the other value.

| program | witnesses | order | time | prefix | time | strict | time |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const SEEDS_HEAD: &str = "
## How much is the seed

The same programs with ten seeds: the least and the most events, witnesses, and feasible witnesses of a hundred in mode `order`.

| program | events, published | ours | witnesses, published | ours | feasible %, published | ours, seed 1 | ours, ten seeds |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const CORPUS_HEAD: &str = "
## Every recorded trace

| trace | threads | events | reads, writes | witnesses | infeasible in phase 1 | no choices | with choices | order | time | prefix | time | strict | time |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const TRIES: usize = 3;

/// From where on ratios have an exponent: sums of that size may have been cut off.
const LARGE: f64 = 1e6;

/// The seed of every run that is reported in full.
const SEED: u64 = 1;

/// The seeds of the table that says how much they matter.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;

/// Columns 3 to 11 of a row of the paper's Table A1, as printed; its column 2 and the sizes are
/// with the [`Program`].
struct Published {
    program: Program,
    name: &'static str,
    time: &'static str,
    /// Infeasible in phase 1, feasible without choices, with choices.
    phases: [u64; 3],
    /// Possible and explored choice graphs for each witness with choices.
    choices: &'static str,
    /// In both phases.
    infeasible: u64,
    graphs: &'static str,
}

impl Published {
    /// The paper's column 9, which counts as feasible what phase 2 refuted.
    const fn feasible(&self) -> u64 {
        self.phases[1] + self.phases[2]
    }

    /// How many are feasible, had those that phase 2 refuted not been counted.
    fn corrected(&self) -> u64 {
        self.program.published().witnesses - self.infeasible
    }
}

const fn row(
    program: Program,
    [name, time]: [&'static str; 2],
    phases: [u64; 3],
    choices: &'static str,
    infeasible: u64,
    graphs: &'static str,
) -> Published {
    Published { program, name, time, phases, choices, infeasible, graphs }
}

/// Table A1.
#[rustfmt::skip]
const PUBLISHED: [Published; 25] = [
    row(Program::Conpool, ["conpool", "0.007 s"], [221, 31, 0], "- | -", 221, "1"),
    row(Program::Liveness, ["liveness", "0.064 s"], [709, 146, 0], "- | -", 709, "1"),
    row(Program::SynchBench, ["SynchBench", "8.85 s"], [39_474, 8_052, 0], "- | -", 39_474, "1"),
    row(Program::Barrier1, ["Barrier1", "0.62 s"], [3_231, 744, 0], "- | -", 3_231, "1"),
    row(Program::Barrier2, ["Barrier2", "1.17 s"], [5_305, 1_211, 0], "- | -", 5_305, "1"),
    row(Program::Account1, ["account1", "1.352 s"], [1_042, 326, 48], "36.33 | 2.83", 1_058, "1.06"),
    row(Program::Account2, ["account2", "3.819 s"], [2_063, 647, 86], "6.84 | 1.65", 2_091, "1.02"),
    row(Program::Daisy1, ["DaisyTest1", "244 s"], [305_635, 61_852, 15_520], "6.35 | 1.12", 305_650, "1.005"),
    row(Program::Daisy2, ["DaisyTest2", "1130 s"], [871_935, 183_794, 45_085], "6.41 | 1.04", 871_950, "1.001"),
    row(Program::Daisy3, ["DaisyTest3", "6393 s"], [2_386_632, 516_746, 122_041], "6.19 | 1.02", 2_386_647, "1.0006"),
    row(Program::Elevator1, ["Elevator1", "0.8 s"], [2_671, 578, 0], "- | -", 2_671, "1"),
    row(Program::Elevator2, ["Elevator2", "8.1 s"], [9_999, 2_286, 0], "- | -", 9_999, "1"),
    row(Program::Elevator3, ["Elevator3", "24 s"], [20_061, 4_566, 0], "- | -", 20_061, "1"),
    row(Program::Philo, ["philo", "0.65 s"], [4_118, 775, 0], "- | -", 4_118, "1"),
    row(Program::Thrift1, ["ThriftTrace1", "1.6 s"], [361, 96, 161], "105.6 | 1", 361, "1"),
    row(Program::Thrift2, ["ThriftTrace2", "1.6 s"], [361, 96, 161], "105.6 | 1", 361, "1"),
    row(Program::Thrift3, ["ThriftTrace3", "1.2 s"], [2_374, 435, 2], "34 | 1", 2_374, "1"),
    row(Program::Thrift4, ["ThriftTrace4", "21.5 s"], [29_441, 5_804, 365], "202 | 1", 29_441, "1"),
    row(Program::Thrift5, ["ThriftTrace5", "5.9 s"], [8_058, 1_537, 20], "480.2 | 1", 8_058, "1"),
    row(Program::Thrift6, ["ThriftTrace6", "28 s"], [29_441, 5_804, 365], "296.7 | 1", 29_441, "1"),
    row(Program::Thrift7, ["ThriftTrace7", "8.1 s"], [8_055, 1_536, 18], "524.6 | 1", 8_055, "1"),
    row(Program::Thrift8, ["ThriftTrace8", "35 s"], [29_887, 5_809, 52], "261.6 | 1", 29_887, "1"),
    row(Program::Thrift9, ["ThriftTrace9", "2.9 s"], [2_194, 382, 1], "64 | 1", 2_194, "1"),
    row(Program::Thrift10, ["ThriftTrace10", "243 s"], [399_814, 79_326, 2], "18 | 1", 399_814, "1"),
    row(Program::Thrift11, ["ThriftTrace11", "477 s"], [399_814, 79_326, 2], "18 | 1", 399_814, "1"),
];

/// The tables over the rebuilt programs and the recorded traces of `tree`.
pub(super) fn table(tree: &Tree, with_times: bool) -> anyhow::Result<String> {
    let programs = PUBLISHED.iter().map(|published| {
        Row::measure(published.program.as_str(), &published.program.run(SEED), with_times)
    });
    let programs: Vec<Row> = programs.collect();
    let mut table = HEAD.to_owned();
    if with_times {
        writeln!(table, "{}Measured on: {}.", TIMES, machine())?;
    }
    table.push_str(SIZES_HEAD);
    for (published, row) in PUBLISHED.iter().zip(&programs) {
        let counts = published.program.published();
        table.push_str(&sizes(&format!("**{}**, published", published.name), &counts));
        table.push_str(&sizes(&row.label(), &row.counts));
    }
    table.push_str(PHASES_HEAD);
    for (published, row) in PUBLISHED.iter().zip(&programs) {
        table.push_str(&published_row(published));
        table.push_str(&row.phases());
    }
    table.push_str(MODES_HEAD);
    table.extend(programs.iter().map(Row::modes));
    table.push_str(SEEDS_HEAD);
    table.extend(PUBLISHED.iter().zip(&programs).map(|(published, row)| seeds(published, row)));
    table.push_str(CORPUS_HEAD);
    for recorded in traces(tree, "corpus/traces/") {
        let (name, trace) = recorded?;
        table.push_str(&Row::measure(name, &trace, with_times).recorded());
    }
    Ok(table)
}

fn sizes(label: &str, counts: &Counts) -> String {
    let Counts { threads, events, lock_events, locks, accesses, vars, signals, witnesses } = counts;
    format!(
        "| {label} | {threads} | {events} | {lock_events} | {locks} | {accesses} | {vars} \
         | {signals} | {witnesses} |\n"
    )
}

/// The row of `published` over all seeds, of which `row` is one.
fn seeds(published: &Published, row: &Row) -> String {
    let program = published.program;
    let runs = SEEDS.map(|seed| {
        let trace = program.run(seed);
        let verdict = Verdict::new(&ORDER, &trace, false);
        (trace.len() as u64, verdict.count(Counter::Witnesses), verdict.count(Counter::Feasible))
    });
    let runs: Vec<(u64, u64, u64)> = runs.collect();
    let counts = program.published();
    let percent = |feasible: u64, witnesses: u64| ratio(100 * feasible, witnesses, 1);
    let mut by_share = runs.clone();
    by_share.sort_by(|&(_, whole, part), &(_, other_whole, other_part)| {
        (part * other_whole).cmp(&(other_part * whole))
    });
    let share = |run: Option<&(u64, u64, u64)>| {
        run.map_or_else(String::new, |&(_, witnesses, feasible)| percent(feasible, witnesses))
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} to {} |\n",
        program.as_str(),
        counts.events,
        range(runs.iter().map(|&(events, ..)| events)),
        counts.witnesses,
        range(runs.iter().map(|&(_, witnesses, _)| witnesses)),
        percent(published.corrected(), counts.witnesses),
        percent(row.order.count(Counter::Feasible), row.order.count(Counter::Witnesses)),
        share(by_share.first()),
        share(by_share.last()),
    )
}

/// The least and the greatest, or the only one.
fn range(counts: impl Iterator<Item = u64> + Clone) -> String {
    let least = counts.clone().min().unwrap_or(0);
    match counts.max().unwrap_or(0) {
        most if most == least => least.to_string(),
        most => format!("{least} to {most}"),
    }
}

fn published_row(published: &Published) -> String {
    let Published {
        name, time, phases: [cyclic, plain, chosen], choices, infeasible, graphs, ..
    } = published;
    let witnesses = published.program.published().witnesses;
    let feasible = match (published.feasible(), published.corrected()) {
        (feasible, corrected) if corrected == feasible => feasible.to_string(),
        (feasible, corrected) => format!("{feasible} ({corrected})"),
    };
    format!(
        "| **{name}**, published | {witnesses} | {cyclic} | {plain} | {chosen} | {choices} \
         | {feasible} | {infeasible} | {graphs} | {time} |\n"
    )
}

/// What one mode says of a trace.
struct Verdict {
    coverage: Coverage,
    time: Option<Duration>,
}

impl Verdict {
    fn new(analysis: &dyn Analysis, trace: &Trace, with_times: bool) -> Self {
        let tries = if with_times { TRIES } else { 1 };
        let settings = Settings { threads: 1, ..Settings::default() };
        let (time, mut outcome) =
            best_of(tries, || run(trace, &[analysis], &settings, &Quiet).coverage);
        let coverage = outcome.pop().expect("an analysis that ran says how far it went");
        Self { coverage, time: with_times.then_some(time) }
    }

    fn count(&self, counter: Counter) -> u64 {
        self.coverage.counter(counter).unwrap_or(0)
    }

    /// The feasible ones, and those that were not decided.
    fn feasible(&self) -> String {
        let feasible = self.count(Counter::Feasible);
        match self.count(Counter::Undecided) {
            0 => feasible.to_string(),
            undecided => format!("{feasible} ({undecided} undecided)"),
        }
    }

    fn time(&self) -> String {
        self.time.map(|time| Shown(time).to_string()).unwrap_or_default()
    }
}

/// All that is reported of a trace.
struct Row {
    name: String,
    counts: Counts,
    order: Verdict,
    prefix: Verdict,
    strict: Verdict,
}

impl Row {
    fn measure(name: &str, trace: &Trace, with_times: bool) -> Self {
        Self {
            name: name.to_owned(),
            counts: Counts::new(trace),
            order: Verdict::new(&ORDER, trace, with_times),
            prefix: Verdict::new(&PREFIX, trace, with_times),
            strict: Verdict::new(&STRICT, trace, with_times),
        }
    }

    fn label(&self) -> String {
        format!("our program, {}", self.name)
    }

    /// Infeasible in phase 1, feasible without choices, with choices.
    fn phase_counts(&self) -> [u64; 3] {
        [Counter::InfeasiblePhase1, Counter::FeasiblePhase1, Counter::WithChoices]
            .map(|counter| self.order.count(counter))
    }

    fn phases(&self) -> String {
        let witnesses = self.order.count(Counter::Witnesses);
        let [cyclic, plain, chosen] = self.phase_counts();
        let explored = self.order.count(Counter::ChoiceGraphs);
        let possible = self.order.count(Counter::PossibleChoiceGraphs);
        let undecided = self.order.count(Counter::Undecided);
        let infeasible = witnesses - self.order.count(Counter::Feasible) - undecided;
        format!(
            "| {} | {witnesses} | {cyclic} | {plain} | {chosen} | {} | {} | {} | {infeasible} \
             | {} | {} |\n",
            self.label(),
            ratio(possible, chosen, 2),
            ratio(explored, chosen, 2),
            self.order.feasible(),
            ratio(witnesses - chosen + explored, witnesses, 4),
            self.order.time(),
        )
    }

    fn modes(&self) -> String {
        format!("| {} | {} |{}\n", self.name, self.counts.witnesses, self.verdicts())
    }

    fn recorded(&self) -> String {
        let Counts { threads, events, accesses, witnesses, .. } = self.counts;
        let [cyclic, plain, chosen] = self.phase_counts();
        format!(
            "| {} | {threads} | {events} | {accesses} | {witnesses} | {cyclic} | {plain} | {chosen} \
             |{}\n",
            self.name,
            self.verdicts(),
        )
    }

    fn verdicts(&self) -> String {
        let cell = |verdict: &Verdict| format!(" {} | {} |", verdict.feasible(), verdict.time());
        [&self.order, &self.prefix, &self.strict].map(cell).concat()
    }
}

/// `part` for each of `whole`, with at most `decimals` decimals; a dash for each of none.
fn ratio(part: u64, whole: u64, decimals: usize) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let ratio = part as f64 / whole as f64;
    if ratio >= LARGE {
        return format!("{ratio:.0e}");
    }
    let text = format!("{ratio:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_rows_add_up() {
        for (published, program) in PUBLISHED.iter().zip(Program::ALL) {
            assert_eq!(published.program, program);
            let phases: u64 = published.phases.iter().sum();
            assert_eq!(phases, program.published().witnesses, "{}", published.name);
        }
    }

    #[test]
    fn the_witnesses_that_the_paper_counts_twice_are_taken_out() {
        let corrected = PUBLISHED.iter().filter(|row| row.corrected() != row.feasible());
        let corrected: Vec<(&str, u64)> =
            corrected.map(|row| (row.name, row.corrected())).collect();
        let expected = [
            ("account1", 358),
            ("account2", 705),
            ("DaisyTest1", 77_357),
            ("DaisyTest2", 228_864),
            ("DaisyTest3", 638_772),
        ];
        assert_eq!(corrected, expected);
        let excess: u64 = PUBLISHED.iter().map(|row| row.feasible() - row.corrected()).sum();
        assert_eq!(excess, 89);
        assert!(published_row(&PUBLISHED[5]).contains("| 374 (358) | 1058 |"));
    }

    #[test]
    fn what_is_published_has_the_columns_of_what_is_measured() {
        let row = Row::measure("pool", &Program::Conpool.run(SEED), false);
        let columns = |row: &str| row.matches('|').count();
        assert_eq!(columns(&published_row(&PUBLISHED[0])), columns(&row.phases()));
        for (head, row) in [
            (SIZES_HEAD, sizes("pool", &row.counts)),
            (PHASES_HEAD, row.phases()),
            (MODES_HEAD, row.modes()),
            (SEEDS_HEAD, seeds(&PUBLISHED[0], &row)),
            (CORPUS_HEAD, row.recorded()),
        ] {
            let rule = head.lines().last().unwrap_or_default();
            assert_eq!(columns(rule), columns(&row), "{row}");
        }
    }

    #[test]
    fn witnesses_are_counted_as_the_analysis_counts_them() {
        for program in [Program::Conpool, Program::Account1, Program::Philo] {
            let row = Row::measure(program.as_str(), &program.run(SEED), false);
            for verdict in [&row.order, &row.prefix, &row.strict] {
                assert_eq!(verdict.count(Counter::Witnesses), row.counts.witnesses, "{program:?}");
            }
        }
    }

    #[test]
    fn ratios_are_short() {
        assert_eq!(ratio(1, 0, 2), "-");
        assert_eq!(ratio(3, 3, 4), "1");
        assert_eq!(ratio(10_001, 10_000, 4), "1.0001");
        assert_eq!(ratio(u64::MAX, 10, 2), "2e18");
    }
}
