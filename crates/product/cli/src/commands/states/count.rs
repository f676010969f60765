//! `states count`: how many there are.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use reweave_base::Id;
use reweave_catalog::Watch as _;
use reweave_report::{compact, counted as counted_noun, histogram_svg, markup, page};
use reweave_states::Bounds;
use reweave_states::count::{Algorithm, Counted, CutShort, Effort, count, count_intervals};
use reweave_states::mdd::{Count, Diagram, Limits};
use serde_json::json;

use super::meeting;
use super::space::{Source, Space};
use crate::commands::examine::available_threads;
use crate::commands::stats::DrawnFormat;
use crate::destination::Output;
use crate::input::{self, NamedValues};
use crate::watch::Bar;
use crate::{exit, interrupt};

/// Count the global states exactly.
///
/// Exits with 0, or with 3 if the count was cut short and is a lower bound.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave states count --per-event --format json run.std")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) source: Source,
    /// How to count
    #[arg(long, default_value = "mdd", value_parser = input::named(ALGORITHMS))]
    algorithm: Algorithm,
    /// Also count the states by their latest event
    #[arg(long)]
    per_event: bool,
    /// Also count the states that meet this predicate, or violate a rule
    ///
    /// Every event counts then, and the states are enumerated one by one.
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true,
          conflicts_with_all = ["algorithm", "per_event", "threads"])]
    predicate: Option<String>,
    /// Number of worker threads [default: all cores]
    ///
    /// The count does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Stop counting after this many seconds
    ///
    /// `5m` and `2h` are understood too.
    #[arg(long, value_name = "SECS", value_parser = input::duration)]
    pub(super) budget: Option<Duration>,
    /// Maximum number of states to visit
    ///
    /// For the decision diagram: of its edges.
    #[arg(long, value_name = "N")]
    pub(super) work: Option<u64>,
    #[command(flatten)]
    pub(super) output: Output<DrawnFormat>,
}

/// The algorithms, as the command line spells them.
#[rustfmt::skip]
static ALGORITHMS: &NamedValues<Algorithm> = &[
    (Algorithm::Mdd, "mdd", "decision diagram, without visiting the states; in batches if memory is short"),
    (Algorithm::ByChain, "frontier", "enumeration of frontiers, thread by thread, on all cores"),
    (Algorithm::Lexical, "lexical", "one by one in lexicographic order"),
    (Algorithm::BreadthFirst, "bfs", "breadth-first enumeration"),
    (Algorithm::ParaMount, "paramount", "one interval per event, on all cores, each in lexicographic order"),
    (Algorithm::ParaMountBreadthFirst, "paramount-bfs", "one interval per event, on all cores, each breadth first"),
];

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(predicate) = &args.predicate {
        return meeting::run(args, predicate);
    }
    let (destination, format) = args.output.prepare()?;
    let space = args.source.read()?;
    interrupt::keep(interrupt::RESULTS);
    let bar = Bar::new("counting", None).within(args.budget);
    let effort = Effort {
        threads: args.threads.map_or_else(available_threads, usize::from),
        budget: args.work,
        stop: &|| !bar.go_on(0),
    };
    let count = if args.per_event { count_intervals } else { count };
    let mut counted = count(space.poset(), args.algorithm, &effort);
    if counted.cut_short == Some(CutShort::Stopped) && bar.is_out_of_time() {
        counted.cut_short = Some(CutShort::Time);
    }
    drop(bar);
    let what = format!("{} global states", counted.states);
    destination.write(&what, |out| match format {
        DrawnFormat::Text => text(out, &space, &counted),
        DrawnFormat::Json => json(out, &space, &counted),
        DrawnFormat::Html => html(out, &space, &counted),
    })?;
    Ok(exit::of_answer(counted.cut_short.is_none()))
}

/// How it was counted, in words.
const fn means(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Mdd => "by a decision diagram",
        Algorithm::ByChain => "by enumeration, thread by thread",
        Algorithm::Lexical => "by enumeration in lexical order",
        Algorithm::BreadthFirst => "by breadth-first enumeration",
        Algorithm::ParaMount => "by one interval per event, each in lexical order",
        Algorithm::ParaMountBreadthFirst => "by one interval per event, each breadth first",
    }
}

fn text(out: &mut dyn Write, space: &Space, counted: &Counted) -> io::Result<()> {
    let (path, states) = (reweave_report::shown(&space.path), &counted.states);
    let noun = if *states == Count::from(1_u8) { "state" } else { "states" };
    match counted.cut_short {
        None => writeln!(out, "{path}: {states} global {noun}")?,
        Some(reason) => {
            writeln!(out, "{path}: at least {states} global {noun}; not all, as {reason}")?;
        }
    }
    writeln!(
        out,
        "  A global state is the number of events that each thread has run; with an event, all that \
         happen before it."
    )?;
    writeln!(out, "  {}", space.order_sentence())?;
    let poset = space.poset();
    let threads = counted_noun(poset.chains_count() as u64, "thread");
    let events = counted_noun(poset.len() as u64, "event");
    writeln!(out, "  {threads}, {events}; counted {}.", means(counted.algorithm))?;
    // A count that was cut short gives its reason already.
    if let Some(overflow) = counted.overflow.filter(|_| counted.cut_short.is_none()) {
        writeln!(out, "  The diagram did not fit ({overflow}); the rest was counted in batches.")?;
    }
    let Some(intervals) = &counted.intervals else { return Ok(()) };
    writeln!(out, "  By the last event in observed order, the empty state with the first:")?;
    let names = space.chain_names();
    let numbers = space.event_numbers();
    for (((chain, _), number), states) in poset.events().zip(numbers).zip(intervals) {
        let thread = reweave_report::shown(&names[chain.index()]);
        writeln!(out, "    event {number}, thread {thread}: {states}")?;
    }
    Ok(())
}

/// A page with the text, and a histogram of the states by size.
fn html(out: &mut dyn Write, space: &Space, counted: &Counted) -> io::Result<()> {
    let mut said = Vec::new();
    text(&mut said, space, counted)?;
    let said = String::from_utf8_lossy(&said);
    let title = format!("{}: states", reweave_report::shown(&space.path));
    page(out, &title, "How many global states there are", |out| {
        for line in said.lines().take(SAID_MAX) {
            writeln!(out, "<p>{}</p>", markup(line.trim()))?;
        }
        match sizes(space) {
            Some(sizes) => histogram_svg(out, &sizes),
            None => writeln!(
                out,
                "<p class=\"soft\">The histogram of the states by size does not fit.</p>"
            ),
        }
    })
}

/// How many lines of text a page has; counts by event are for programs.
const SAID_MAX: usize = 200;

/// For each number of events how many states have it; none if that does not fit the limits.
fn sizes(space: &Space) -> Option<Vec<(u64, String)>> {
    let (poset, limits) = (space.poset(), Limits::default());
    let stop = || interrupt::is_asked();
    let diagram = Diagram::build(poset, &Bounds::all(poset), &limits, &stop).ok()?;
    let sizes = diagram.histogram(|_, events| i64::from(events), &limits, &stop).ok()?;
    Some(sizes.into_iter().map(|(size, count)| (size as u64, count.to_string())).collect())
}

fn json(out: &mut dyn Write, space: &Space, counted: &Counted) -> io::Result<()> {
    let mut document = space.document();
    document["states"] = json!(counted.states.to_string());
    document["complete"] = json!(counted.cut_short.is_none());
    document["truncated"] = json!(counted.cut_short.map(|reason| reason.as_str()));
    document["algorithm"] = json!(counted.algorithm.as_str());
    document["overflow"] = json!(counted.overflow.map(|overflow| overflow.to_string()));
    if let Some(intervals) = &counted.intervals {
        let intervals: Vec<String> = intervals.iter().map(ToString::to_string).collect();
        document["intervals"] = json!(intervals);
        document["interval_events"] = json!(space.event_numbers());
    }
    let document = compact(document);
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}
