//! How small are the graphs of rebuilt programs, how narrow the ranges on them, and how much do they
//! save a symbolic search, beside what the paper printed?
//!
//! The paper's programs are rebuilt in `corpus/programs/intervals`. Counts repeat exactly.

mod published;

use std::fmt::Write as _;
use std::time::Duration;

use reweave_exec::run;
use reweave_exec::scheduler::Random;
use reweave_intervals::analyse::Bits;
use reweave_intervals::ctp::{Ctp, StepId};
use reweave_intervals::domain::Interval;
use reweave_intervals::graph::{self, Graph, GraphKind, Mode, Rule, build};
use reweave_intervals::propagate::{self, Values, propagate};
use reweave_intervals::symbolic::{self, Answer, Question, StepRanges, Widths, ask};

use super::programs::{Loaded, Size};
use super::{Shown, best_of, machine};
use crate::tree::Tree;
use published::{PUBLISHED, Row};

const KINDS: [GraphKind; 3] = [GraphKind::Ccfg, GraphKind::Tsg, GraphKind::TsgReduced];

/// Graphs with more visits are not propagated on; the paper's time limit was 20 minutes.
const VISITS_MAX: u64 = 1 << 28;

const HEAD: &str = "\
# Value ranges over all interleavings

Graphs, ranges and symbolic searches for the programs of [`corpus/programs/intervals`](../../corpus/README.md), beside the published numbers.
Made by `cargo run --release -p xtask -- tables intervals --write`; `--full` also searches with what takes minutes.

The published numbers are those of Tables 1 and 2 of Ganai and Wang, *Interval Analysis for Concurrent Trace Programs using Transaction
Sequence Graphs* (RV 2010), taken on a 3.4 GHz processor with a limit of 1200 and 1500 seconds (TO). **The programs are ours, not theirs.** For cp1
to cp3 the program follows from the printed counts, and all fifteen counts of switches and of mutually atomic transactions agree; the
published counts of transactions include a main thread, which ours does not have. For index the
program follows from the literature, and how many words each worker inserts was chosen by the number of variables; the counts of index2 to index4 then come near the
published ones without being fitted. For atom and bank only the idea is known: these are written anew, and that their numbers differ is no result; the total of bank2
is left unprotected here, so that its assertion fails.

Each program is run once, with seed 1. Bits are summed as the paper sums them (section 4.3), with the bits of an interval [l, u] taken to be the
least number that tells its values apart, and without a main thread's constants.
";

/// The tables.
pub(super) fn table(tree: &Tree, with_times: bool, is_full: bool) -> anyhow::Result<String> {
    let mut table = HEAD.to_owned();
    if with_times {
        write!(table, "\nMeasured on: {}.\n", machine())?;
    }
    let mut programs = Vec::new();
    for row in &PUBLISHED {
        programs.push((row, load(tree, row.name)?));
    }
    table.push_str(&ranges(&programs, Mode::Paper, with_times)?);
    table.push_str(&ranges(&programs, Mode::Sound, with_times)?);
    table.push_str(&searches(&programs, with_times, is_full)?);
    Ok(table)
}

/// The concurrent trace program of a run of the program called `name`.
fn load(tree: &Tree, name: &str) -> anyhow::Result<Ctp> {
    let loaded = Loaded::new(tree, &format!("intervals/{name}"), Size::Small)?;
    let made = run(&loaded.code, &mut Random::new(1), &reweave_exec::Settings::default());
    let mut ctp = Ctp::new(&[&made.trace])?;
    ctp.propagate_constants();
    Ok(ctp)
}

/// A graph, what is known on it, and how long both took.
struct Measured {
    graph: Graph,
    values: Option<Values<Interval>>,
    time: Duration,
}

fn measure(ctp: &Ctp, kind: GraphKind, mode: Mode) -> Measured {
    // The paper's rule for its own mode; ours leaves out more.
    let switches = if mode == Mode::Paper { Rule::Lockset } else { Rule::Lattice };
    let settings = graph::Settings { switches, mode, ..graph::Settings::default() };
    let locals = if mode == Mode::Paper { propagate::Mode::Copy } else { propagate::Mode::Both };
    let propagation = propagate::Settings { mode: locals, ..propagate::Settings::default() };
    let (time, (graph, values)) = best_of(3, || {
        let graph = build(ctp, kind, &settings);
        let visits = graph.switches.len() as u64 * graph.transaction_edges_count() as u64;
        let values =
            (visits <= VISITS_MAX).then(|| propagate::<Interval>(ctp, &graph, &propagation));
        (graph, values)
    });
    Measured { graph, values, time }
}

fn ranges(programs: &[(&Row, Ctp)], mode: Mode, with_times: bool) -> anyhow::Result<String> {
    let mut table = String::new();
    let (title, note) = match mode {
        Mode::Paper => (
            "Table 1: graphs and ranges, as in the paper",
            "Switches by locksets, and only those that mutually atomic transactions need. With three threads and more that is not sound.",
        ),
        Mode::Sound => (
            "The same, so that nothing is missed",
            "What the command does by default: switches that some run can take, all that are needed, also for runs that end early.",
        ),
    };
    write!(table, "\n## {title}\n\n{note} Each cell has the published number, then ours.\n")?;
    for (place, &kind) in KINDS.iter().enumerate() {
        let name = ["CCFG", "TSG", "TSG′"][place];
        write!(
            table,
            "\n| {name} | MATs | switches | transactions | time | local bits | global bits |\n\
             | --- | --: | --: | --: | --: | --: | --: |\n"
        )?;
        for (row, ctp) in programs {
            let Measured { graph, values, time } = measure(ctp, kind, mode);
            let bits = values.as_ref().map(|values| Bits::new(ctp, &graph, values));
            let number = |of: Option<u64>| of.map_or_else(|| "–".to_owned(), |of| of.to_string());
            let time = match (&values, with_times) {
                (None, _) => "–".to_owned(),
                (Some(_), true) => Shown(time).to_string(),
                (Some(_), false) => "·".to_owned(),
            };
            let [mats, switches, transactions, seconds, local_bits, global_bits] =
                row.graphs[place];
            writeln!(
                table,
                "| {} | {mats} / {} | {switches} / {} | {transactions} / {} | {seconds} s / {time} \
                 | {local_bits} / {} | {global_bits} / {} |",
                row.name,
                number(graph.mats_count.map(|count| count as u64)),
                graph.switches.len(),
                graph.transaction_edges_count(),
                number(bits.as_ref().map(|bits| bits.local)),
                number(bits.as_ref().map(|bits| bits.global)),
            )?;
        }
    }
    Ok(table)
}

/// With more units a search may take minutes.
const UNITS_MAX: usize = 700;
/// How many conflicts a search may meet.
const CONFLICTS_MAX: u64 = 300_000;

fn searches(programs: &[(&Row, Ctp)], with_times: bool, is_full: bool) -> anyhow::Result<String> {
    let mut table = String::from(
        "\n## Table 2: searching for a run that breaks the program's assertion\n\n\
         S: there is one, U: there is none; published, then ours. Seconds with values of 32 bits and with those that the ranges need, then \
         our times, each with the units that the graph has. Between them no thread can be interrupted; those of TSG and TSG′ are the \
         sound ones. TO: not decided within the budget.\n\n\
         | program | S/U | CCFG 32 | CCFG ranges | TSG 32 | TSG ranges | TSG′ 32 | TSG′ ranges |\n\
         | --- | --- | --: | --: | --: | --: | --: | --: |\n",
    );
    for (row, ctp) in programs {
        let asserted: Vec<StepId> = ctp
            .steps
            .entries()
            .filter(|(_, step)| step.assertion.is_some())
            .map(|(id, _)| id)
            .collect();
        let question = Question::Fails(asserted);
        let sound = graph::Settings::default();
        let best = build(ctp, GraphKind::TsgReduced, &sound);
        let values = propagate::<Interval>(ctp, &best, &propagate::Settings::default());
        let ranges = StepRanges::new(&values);
        let mut cells = Vec::new();
        let mut found = "?";
        for (place, &kind) in KINDS.iter().enumerate() {
            let graph = build(ctp, kind, &sound);
            let units = symbolic::transactions(&graph);
            let published = row.solving[place];
            for (widths, seconds) in
                [(Widths::Fixed(32), published.0), (Widths::Ranges(&ranges), published.1)]
            {
                let large = units.len() > UNITS_MAX && !is_full;
                if large {
                    cells.push(format!("{seconds} / –"));
                    continue;
                }
                let settings =
                    symbolic::Settings { conflicts_max: CONFLICTS_MAX, ..Default::default() };
                let (time, (answer, _)) =
                    best_of(1, || ask(ctp, &units, widths, &question, &settings));
                let word = match answer {
                    Answer::Possible(_) => Some("S"),
                    Answer::Impossible => Some("U"),
                    Answer::Unconfirmed(_) | Answer::Exhausted => None,
                };
                let time = match (word, with_times) {
                    (None, _) => "TO".to_owned(),
                    (Some(_), true) => Shown(time).to_string(),
                    (Some(_), false) => "·".to_owned(),
                };
                found = word.unwrap_or(found);
                cells.push(format!("{seconds} / {time}"));
            }
        }
        let published = if row.is_satisfiable { "S" } else { "U" };
        writeln!(table, "| {} | {published} / {found} | {} |", row.name, cells.join(" | "))?;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use reweave_lang::Source;

    use super::*;
    use crate::tree::root;

    const FOLDER: &str = "corpus/programs/intervals/";

    #[test]
    fn cp_has_the_fifteen_published_counts() {
        let tree = Tree::load(&root()).unwrap();
        for row in &PUBLISHED[..3] {
            let ctp = load(&tree, row.name).unwrap();
            for (place, &kind) in KINDS.iter().enumerate() {
                let settings = graph::Settings {
                    switches: Rule::Lockset,
                    mode: Mode::Paper,
                    ..graph::Settings::default()
                };
                let graph = build(&ctp, kind, &settings);
                let [mats, switches, ..] = row.graphs[place];
                assert_eq!(graph.switches.len().to_string(), switches, "{}", row.name);
                if let Some(count) = graph.mats_count {
                    assert_eq!(count.to_string(), mats, "{}", row.name);
                }
            }
        }
    }

    #[test]
    fn programs_are_in_the_one_layout() {
        let tree = Tree::load(&root()).unwrap();
        let programs = tree.texts().filter(|(path, _)| path.starts_with(FOLDER));
        let mut count = 0;
        for (path, text) in programs {
            let source = Source::new(path, text.to_owned());
            assert_eq!(reweave_lang::format(&source).unwrap(), text, "{path}");
            count += 1;
        }
        assert!(count > PUBLISHED.len());
    }
}
