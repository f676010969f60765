//! `states count`: how many there are.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use reweave_base::Id;
use reweave_report::{histogram_svg, markup, page};
use reweave_states::Bounds;
use reweave_states::count::{Algorithm, Counted, Effort, count, count_intervals};
use reweave_states::diagram::{Diagram, Limits};
use serde_json::json;

use super::space::{Source, Space};
use crate::commands::examine::available_threads;
use crate::commands::stats::DrawnFormat;
use crate::destination::Destination;
use crate::watch::Bar;
use crate::{exit, interrupt};

/// Count the global states exactly.
///
/// Exits with 0, or with 3 if the count was cut short and is a lower bound.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave states count --per-event --format json run.std")]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,
    /// Algorithm
    #[arg(long, value_enum, default_value_t)]
    algorithm: AlgorithmName,
    /// Also count the states per event that is their latest
    #[arg(long)]
    per_event: bool,
    /// Number of worker threads [default: all cores]
    ///
    /// The count does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Maximum number of states to visit
    ///
    /// For the decision diagram: of its edges.
    #[arg(long, value_name = "N")]
    budget: Option<u64>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: DrawnFormat,
    /// Write the output to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A way of counting as the command line spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum AlgorithmName {
    /// diagram
    #[default]
    Auto,
    /// decision diagram, without visiting the states; in batches if memory is short
    Diagram,
    /// enumeration of frontiers, thread by thread, on all cores
    Walk,
    /// one by one in lexicographic order
    Lexical,
    /// one by one, breadth first
    Bfs,
    /// one interval per event, on all cores, each in lexicographic order
    Paramount,
    /// one interval per event, on all cores, each breadth first
    ParamountBfs,
}

impl AlgorithmName {
    const fn algorithm(self) -> Algorithm {
        match self {
            Self::Auto | Self::Diagram => Algorithm::Diagram,
            Self::Walk => Algorithm::Walk,
            Self::Lexical => Algorithm::Lexical,
            Self::Bfs => Algorithm::BreadthFirst,
            Self::Paramount => Algorithm::ParaMount,
            Self::ParamountBfs => Algorithm::ParaMountBreadthFirst,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let destination = Destination::prepare(args.output.as_deref())?;
    let space = args.source.read()?;
    interrupt::keep();
    let bar = Bar::new("counting", None);
    let effort = Effort {
        threads: args.threads.map_or_else(available_threads, usize::from),
        budget: args.budget,
        stop: &|| !bar.go_on(0),
    };
    let algorithm = args.algorithm.algorithm();
    let counted = match args.per_event {
        true => count_intervals(space.poset(), algorithm, &effort),
        false => count(space.poset(), algorithm, &effort),
    };
    drop(bar);
    destination.write(|out| match args.format {
        DrawnFormat::Text => text(out, &space, &counted),
        DrawnFormat::Json => json(out, &space, &counted),
        DrawnFormat::Html => html(out, &space, &counted),
    })?;
    Ok(exit::of_answer(counted.cut_short.is_none()))
}

/// How it was counted, for people.
const fn means(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Diagram => "by merging equal windows in a diagram",
        Algorithm::Walk => "by a walk over windows",
        Algorithm::Lexical => "one by one in lexical order",
        Algorithm::BreadthFirst => "one by one, breadth first",
        Algorithm::ParaMount => "by an interval an event, each in lexical order",
        Algorithm::ParaMountBreadthFirst => "by an interval an event, each breadth first",
    }
}

fn several(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn text(out: &mut dyn Write, space: &Space, counted: &Counted) -> io::Result<()> {
    let (path, states) = (reweave_report::shown(&space.path), &counted.states);
    let noun = if states.to_u128() == Some(1) { "state" } else { "states" };
    match counted.cut_short {
        None => writeln!(out, "{path}: {states} global {noun}")?,
        Some(reason) => {
            writeln!(out, "{path}: at least {states} global {noun}; not all, as {reason}")?;
        }
    }
    writeln!(
        out,
        "  A global state says how many events each thread has done; with an event, all before it \
         are done."
    )?;
    writeln!(out, "  {}", space.order_sentence())?;
    let poset = space.poset();
    let threads = several(poset.chains_count(), "thread");
    let events = several(poset.len(), "event");
    writeln!(out, "  {threads}, {events}; counted {}.", means(counted.algorithm))?;
    // What was cut short says why already.
    if let Some(overflow) = counted.overflow.filter(|_| counted.cut_short.is_none()) {
        writeln!(out, "  The diagram did not fit ({overflow}): the rest was counted in batches.")?;
    }
    let Some(intervals) = &counted.intervals else { return Ok(()) };
    writeln!(out, "  By the last event observed, the empty state with the first:")?;
    let names = space.chain_names();
    let numbers = space.event_numbers();
    for (((chain, _), number), states) in poset.events().zip(numbers).zip(intervals) {
        let thread = reweave_report::shown(&names[chain.index()]);
        writeln!(out, "    event {number}, thread {thread}: {states}")?;
    }
    Ok(())
}

/// A page with what is said to people, and a picture of how many states there are of each size.
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
                "<p class=\"soft\">There are too many states of too many sizes for a picture.</p>"
            ),
        }
    })
}

/// How many lines a page says of a count; what there is by event is for programs.
const SAID_MAX: usize = 200;

/// For each number of events how many states have it; none if that is too much work.
fn sizes(space: &Space) -> Option<Vec<(u64, String)>> {
    let (poset, limits) = (space.poset(), Limits::default());
    let stop = || interrupt::is_asked();
    let diagram = Diagram::build(poset, &Bounds::all(poset), &limits, &stop).ok()?;
    let sizes = diagram.histogram(|_, events| i64::from(events), &limits, &stop).ok()?;
    Some(sizes.into_iter().map(|(size, count)| (size as u64, count.to_string())).collect())
}

fn json(out: &mut dyn Write, space: &Space, counted: &Counted) -> io::Result<()> {
    let mut document = space.document();
    let mut put = |key: &str, value| document.insert(key.to_owned(), value);
    put("states", counted.states.to_string().into());
    put("complete", counted.cut_short.is_none().into());
    if let Some(reason) = counted.cut_short {
        put("truncated", reason.as_str().into());
    }
    put("algorithm", counted.algorithm.as_str().into());
    if let Some(overflow) = &counted.overflow {
        put("overflow", overflow.to_string().into());
    }
    if let Some(intervals) = &counted.intervals {
        let intervals: Vec<String> = intervals.iter().map(ToString::to_string).collect();
        put("intervals", json!(intervals));
        put("interval_events", json!(space.event_numbers()));
    }
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}
