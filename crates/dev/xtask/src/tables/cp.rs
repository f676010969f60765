//! What do happens-before and CP find in the recorded traces, beside what the paper on CP printed,
//! and what of it is real?
//!
//! The paper counts a race once for each variable, and of CP only those that happens-before misses;
//! its CP runs on the reduced trace, in a window of 500 events. The first two tables do the same. The
//! third says what became of the pairs when the engine decided each.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use reweave_analysis::{Settings, Subject};
use reweave_base::FxHashSet;
use reweave_deadlocks::exact::{Reorderings, deadlocks};
use reweave_races::reduce::Reduced;
use reweave_races::relation::{self, Relation};
use reweave_races::{Counts, Race, exact};
use reweave_trace::{Trace, VarId};

use super::{Shown, best_of, machine, traces};
use crate::tree::Tree;

const HEAD: &str = "\
# Causally-precedes on recorded traces

What happens-before (HB) and causally-precedes (CP) find in the recorded traces of the [corpus](../../corpus/README.md), and what
of it is real. Made by `cargo run --release -p xtask -- tables cp --write`.

The published numbers are those of Table 1 of Smaragdakis, Evans, Sadowski, Yi and Flanagan, *Sound Predictive Race Detection in
Polynomial Time* (POPL 2012). **The traces are not theirs**, which we have not found to be public: these are public traces of
programs of the same names, recorded by others, with other workloads, and some filtered before they were published. So sizes,
threads and races differ, and a row says nothing about the row above it but that the same was asked of both. What was rebuilt is
the method: the reduction (variables of one thread or never written, and accesses repeated without synchronisation in between,
are dropped), the window of 500 events of the reduced trace, and the unit. In the paper a race is a *variable*; HB is one run (in
brackets, ten runs), and CP is what it adds to those of HB, where we add to those of one run.
";

const TIMES: &str = "
Their times are of a commercial Datalog engine, one core of a Xeon X5650 at 2.66 GHz, where 9 s is the engine's start; ours
are of one core, the best of five, from the full trace in memory to its races, reduction included where there is a window.
";

const PUBLISHED_HEAD: &str = "
## Beside the paper

| program | events | reduced | threads | HB | CP, K = 500 | time | CP, whole trace | time |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const ALL_HEAD: &str = "
## Every recorded trace, in the paper's unit

Variables with a race. CP over the whole trace takes the full trace, without reduction or window.

| trace | events | reduced | threads | HB | CP, K = 500 | time | CP, whole trace | time |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const PROVEN_HEAD: &str = "
## What is real

Pairs of conflicting accesses, and in brackets pairs of code locations, that HB and CP leave unordered in the full trace; those
that can race, by a schedule for each (`races.exact`); what becomes of the pairs of CP when each is decided; the variables with a
pair of CP, and those with a proven pair; and the deadlocks, one for each cycle of threads and locks.

| trace | HB | CP | proven | CP: proven | CP: refuted | undecided | CP: variables | proven variables | deadlocks |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

/// The paper's window, in events of the reduced trace.
const WINDOW: u32 = 500;

const TRIES: usize = 5;

/// The rows of the paper's Table 1 of programs that the corpus has a trace of, as printed: in the
/// columns of [`PUBLISHED_HEAD`], with HB in ten runs in brackets.
const PUBLISHED: [(&str, &str); 3] = [
    ("FtpServer", "992k | 543k | 11 | 21 (27) | +7 | 20m 06s"),
    ("Jigsaw", "1,992k | 42k | 77 | 18 (33) | +3 | 17s"),
    ("stringBuffer", "223 | 178 | 8 | 0 (0) | +0 | 9s"),
];

/// The other rows.
const UNMATCHED: &str = "
The corpus has no trace of the other nine: banking, elevator, hedc, philo, pool1.2, pool1.3, StaticBucketMap, tsp, vector. In the
paper CP adds a race to HB on none of them.
";

/// The tables over the recorded traces of `tree`.
pub(super) fn table(tree: &Tree, with_times: bool) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    for recorded in traces(tree, "corpus/traces/") {
        let (name, trace) = recorded?;
        rows.push(Row::measure(name, &trace, with_times));
    }
    let mut table = HEAD.to_owned();
    if with_times {
        writeln!(table, "{}Measured on: {}.", TIMES, machine())?;
    }
    table.push_str(PUBLISHED_HEAD);
    for (program, cells) in PUBLISHED {
        writeln!(table, "| **{program}**, published | {cells} | | |")?;
        for row in rows.iter().filter(|row| row.is_of(program)) {
            table.push_str(&row.in_their_unit(&format!("our trace, {}", row.name)));
        }
    }
    table.push_str(UNMATCHED);
    table.push_str(ALL_HEAD);
    table.extend(rows.iter().map(|row| row.in_their_unit(&row.name)));
    table.push_str(PROVEN_HEAD);
    table.extend(rows.iter().map(Row::proven));
    Ok(table)
}

/// All that is reported of a trace.
struct Row {
    name: String,
    events: usize,
    reduced: usize,
    threads: usize,
    hb: Counts,
    cp: Counts,
    /// Variables with a race of CP, in the window and over the whole trace, and none of HB.
    added: [usize; 2],
    /// How long CP took, in the window and over the whole trace.
    times: Option<[Duration; 2]>,
    exact: Counts,
    cp_proven: usize,
    cp_refuted: usize,
    undecided: u64,
    deadlocks: usize,
}

impl Row {
    fn measure(name: &str, trace: &Trace, with_times: bool) -> Self {
        let tries = if with_times { TRIES } else { 1 };
        let hb = relation::races(trace, Relation::HappensBefore).counts;
        let (whole_time, cp) = best_of(tries, || relation::races(trace, Relation::Cp));
        let (window_time, (reduced, windowed)) = best_of(tries, || windowed_races(trace));
        let cp_pairs = relation::pairs(trace, Relation::Cp, None);
        let hb_vars = variables(trace, &relation::pairs(trace, Relation::HappensBefore, None));
        let added = [variables(&reduced.trace, &windowed), variables(trace, &cp_pairs)]
            .map(|vars| vars.difference(&hb_vars).count());
        let exact = exact::races(trace);
        let proven: FxHashSet<Race> = exact.pairs.iter().copied().collect();
        let cp_proven = cp_pairs.iter().filter(|race| proven.contains(race)).count();
        let undecided = exact.unknown + exact.skipped;
        Self {
            name: name.to_owned(),
            events: trace.len(),
            reduced: reduced.trace.len(),
            threads: trace.names().threads.len(),
            hb,
            cp: cp.counts,
            added,
            times: with_times.then_some([window_time, whole_time]),
            exact: exact.counts,
            cp_proven,
            cp_refuted: (cp_pairs.len() - cp_proven).saturating_sub(undecided as usize),
            undecided,
            deadlocks: deadlocks(&Subject::new(trace), Reorderings::All, &Settings::default())
                .found
                .len(),
        }
    }

    /// Whether it is of a program called `program`.
    fn is_of(&self, program: &str) -> bool {
        self.name.rsplit('/').next().is_some_and(|file| file.eq_ignore_ascii_case(program))
    }

    fn in_their_unit(&self, label: &str) -> String {
        let Self { events, reduced, threads, hb, added: [windowed, whole], times, .. } = self;
        let [window_time, whole_time] = match times {
            Some(times) => times.map(|time| Shown(time).to_string()),
            None => [String::new(), String::new()],
        };
        format!(
            "| {label} | {events} | {reduced} | {threads} | {} | +{windowed} | {window_time} \
             | +{whole} | {whole_time} |\n",
            hb.vars
        )
    }

    fn proven(&self) -> String {
        let Self { name, cp_proven, cp_refuted, undecided, deadlocks, .. } = self;
        let [hb, cp, exact] = [self.hb, self.cp, self.exact]
            .map(|counts| format!("{} ({})", counts.pairs, counts.location_pairs));
        format!(
            "| {name} | {hb} | {cp} | {exact} | {cp_proven} | {cp_refuted} | {undecided} | {} | {} \
             | {deadlocks} |\n",
            self.cp.vars, self.exact.vars,
        )
    }
}

/// What the paper computes: the reduced trace, and its races of CP within the window.
fn windowed_races(trace: &Trace) -> (Reduced, Vec<Race>) {
    let reduced = Reduced::new(trace);
    let races = relation::pairs(&reduced.trace, Relation::Cp, Some(WINDOW));
    (reduced, races)
}

/// The variables of `races`.
fn variables(trace: &Trace, races: &[Race]) -> BTreeSet<VarId> {
    races.iter().filter_map(|race| trace.event(race.second).op.var()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A race of HB on x; one that CP adds on y; and two threads that can block each other.
    const TRACE: &str = "\
T1|w(y)|a\nT1|acq(l)|a\nT1|rel(l)|a\nT2|acq(l)|b\nT2|rel(l)|b\nT2|w(y)|b\nT2|w(x)|b\nT1|w(x)|a\n\
T1|acq(m)|a\nT1|acq(n)|a\nT1|rel(n)|a\nT1|rel(m)|a\nT2|acq(n)|b\nT2|acq(m)|b\nT2|rel(m)|b\nT2|rel(n)|b\n";

    #[test]
    fn a_trace_of_a_published_program_stands_below_it() {
        let tree = Tree::from([
            ("corpus/traces/set/jigsaw.std", TRACE),
            ("corpus/traces/set/other.std", "T1|w(own)|a\n"),
            ("corpus/litmus/two.std", "T1|w(x)|a\n"),
        ]);
        let table = table(&tree, false).unwrap();
        let ours = "16 | 16 | 2 | 1 | +1 |  | +1 |  |\n";
        let jigsaw = format!("| 17s | | |\n| our trace, set/jigsaw | {ours}");
        assert!(table.contains(&jigsaw), "{table}");
        assert!(table.contains(&format!("\n| set/jigsaw | {ours}")), "{table}");
        assert!(table.contains("\n| set/other | 1 | 0 | 1 | 0 | +0 |  | +0 |  |\n"), "{table}");
        assert!(
            table.contains("\n| set/jigsaw | 1 (1) | 2 (1) | 2 (1) | 2 | 0 | 0 | 2 | 2 | 1 |\n"),
            "{table}"
        );
        assert!(!table.contains("litmus/two"), "{table}");
    }
}
