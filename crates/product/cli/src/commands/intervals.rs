//! `intervals`: the ranges of values over all interleavings.

mod report;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use reweave_intervals::analyse;
use reweave_intervals::domain::{Congruence, Domain, Interval, Product};
use reweave_intervals::graph::{self, GraphKind};
use reweave_intervals::{propagate, symbolic};
use reweave_workflows::ranges::{self, Ranges, Request, Verdict};
use serde_json::Value;

use super::ndseq::{Processed, RunSchedulerName, write_documents};
use super::run::Choosing;
use crate::destination::Output;
use crate::exit;
use crate::input::{self, NamedValues};
use crate::interrupt;
use crate::program::{self, Loaded};
use report::Described;

/// Find the range of every variable over all interleavings of a run.
///
/// Runs the program, drops the order between its threads, and bounds what each statement can read and write in any
/// order: assertions that always hold, unreachable lines, final values. If every branch outcome was covered, the result
/// holds for every run of the program. For an assertion that the ranges leave open, searches for a schedule that
/// violates it, and runs it. Exits with 0 if every reached assertion holds, 66 if one fails or a run does, and 3 if that is
/// left open.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave intervals bank.rw\n  \
                        reweave intervals bank.rw --runs 20 --reach 12 --format json\n  \
                        reweave intervals bank.rw --format dot | dot -Tsvg > bank.svg")]
pub(crate) struct Args {
    /// Programs of the language; `-` is standard input
    #[arg(value_name = "PROGRAM.rw", required = true)]
    programs: Vec<PathBuf>,
    /// Number of runs; their different branches are combined
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// How the thread of each step is chosen
    #[arg(long, value_enum, default_value_t = RunSchedulerName::Random)]
    scheduler: RunSchedulerName,
    #[command(flatten)]
    choosing: Choosing,
    /// Which context switches locks exclude
    #[arg(long, default_value = "lattice", value_parser = input::named(EDGES))]
    edges: graph::Rule,
    /// Which context switches are considered
    ///
    /// Those of the paper can be too few for a proof with three threads or more.
    #[arg(long, default_value = "sound", value_parser = input::named(MODES))]
    mode: graph::Mode,
    /// Transactions per step before ranges are joined; more is more precise
    #[arg(long, value_name = "B", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    lookahead: u32,
    /// What is known of local variables after a context switch
    #[arg(long, default_value = "both", value_parser = input::named(LOCALS))]
    locals: propagate::Mode,
    /// Abstract domain
    #[arg(long, value_enum, default_value_t)]
    domain: DomainName,
    /// Graphs to analyse
    #[arg(long, default_value = "all", value_parser = input::named(GRAPHS))]
    graph: &'static [GraphKind],
    /// Also report whether and how this line can be reached
    ///
    /// May be given several times.
    #[arg(long, value_name = "LINE")]
    reach: Vec<u32>,
    /// Maximum solver conflicts per search for a schedule; 0 for no search
    #[arg(long, value_name = "N", default_value_t = symbolic::Settings::default().conflicts_max)]
    search: u64,
    #[command(flatten)]
    output: Output<FormatName>,
}

/// A way to print ranges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum FormatName {
    /// for people
    #[default]
    Text,
    /// for programs
    Json,
    /// the graph, for Graphviz
    Dot,
    /// a page with the graph as a picture
    Html,
}

static EDGES: &NamedValues<graph::Rule> = &[
    (graph::Rule::Lattice, "lattice", "those that no run can make"),
    (graph::Rule::Lockset, "lockset", "those between points that hold a common lock"),
];

static MODES: &NamedValues<graph::Mode> = &[
    (graph::Mode::Sound, "sound", "all interleavings, also those that end early"),
    (graph::Mode::Paper, "paper", "as in the paper"),
];

static LOCALS: &NamedValues<propagate::Mode> = &[
    (propagate::Mode::Both, "both", "the intersection of the other two"),
    (propagate::Mode::Copy, "copy", "their values before the switch"),
    (propagate::Mode::Own, "own", "all their values at that point"),
];

static GRAPHS: &NamedValues<&[GraphKind]> = &[
    (
        &[GraphKind::Ccfg, GraphKind::Tsg, GraphKind::TsgReduced],
        "all",
        "all three; the result is that of the last",
    ),
    (&[GraphKind::Ccfg], "ccfg", "every access is a transaction"),
    (&[GraphKind::Tsg], "tsg", "mutually atomic transactions"),
    (&[GraphKind::TsgReduced], "tsg-reduced", "mutually atomic transactions that locks permit"),
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum DomainName {
    /// minimum and maximum
    #[default]
    Intervals,
    /// a remainder and a modulus
    Congruences,
    /// both
    Both,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args.domain {
        DomainName::Intervals => examine::<Interval>(args),
        DomainName::Congruences => examine::<Congruence>(args),
        DomainName::Both => examine::<Product>(args),
    }
}

fn examine<D: Described>(args: &Args) -> anyhow::Result<ExitCode> {
    let (destination, format) = args.output.prepare()?;
    let processed = Processed::new(&args.programs, |path| find::<D>(args, path));
    if !processed.results.is_empty() {
        destination.write("ranges", |out| write(out, &processed.results, args, format))?;
    }
    Ok(processed.exit_code(code_of))
}

fn find<D: Domain>(args: &Args, path: &Path) -> anyhow::Result<(Loaded, Ranges<D>)> {
    let loaded = program::load(path)?;
    interrupt::keep(interrupt::RESULTS);
    let request = args.request();
    let goes_on = || !interrupt::is_asked();
    let found = ranges::find::<D>(&loaded.code, &request, &goes_on)
        .with_context(|| loaded.source.name().to_owned())?;
    Ok((loaded, found))
}

fn write<D: Described>(
    out: &mut dyn io::Write,
    results: &[(Loaded, Ranges<D>)],
    args: &Args,
    format: FormatName,
) -> io::Result<()> {
    match format {
        FormatName::Json => {
            let documents: Vec<Value> = results
                .iter()
                .map(|(loaded, ranges)| report::json(loaded.source.name(), ranges))
                .collect();
            write_documents(out, &documents, args.programs.len() > 1)
        }
        FormatName::Text => {
            for (index, (loaded, ranges)) in results.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                report::text(out, loaded.source.name(), ranges)?;
            }
            Ok(())
        }
        FormatName::Dot => {
            for (_, ranges) in results {
                if let Some(examined) = ranges.analysis.graphs.last() {
                    reweave_report::graph_dot(out, &ranges.ctp, &examined.graph)?;
                }
            }
            Ok(())
        }
        FormatName::Html => report::html(out, results),
    }
}

fn code_of<D>(results: &[(Loaded, Ranges<D>)]) -> ExitCode {
    let mut is_open = false;
    for (_, ranges) in results {
        if ranges.has_fault {
            return exit::found();
        }
        // The paper's graph may miss what breaks an assertion.
        is_open |= !ranges.is_sound && !ranges.assertions.is_empty();
        for assertion in &ranges.assertions {
            match assertion.verdict {
                Verdict::Fails(_) => return exit::found(),
                Verdict::MayFail => is_open = true,
                Verdict::Holds | Verdict::HoldsBySearch | Verdict::NotReached => {}
            }
        }
        is_open |= ranges.reached.iter().any(|reached| !reached.is_known);
    }
    exit::of_answer(!is_open)
}

impl Args {
    fn request(&self) -> Request {
        let plan = self.choosing.plan(self.scheduler.kind(self.choosing.depth), self.runs);
        let search = (self.search > 0).then(|| symbolic::Settings {
            conflicts_max: self.search,
            ..symbolic::Settings::default()
        });
        Request { plan, settings: self.settings(), search, reach: self.reach.clone() }
    }

    fn settings(&self) -> analyse::Settings {
        analyse::Settings {
            kinds: self.graph.to_vec(),
            graph: graph::Settings { switches: self.edges, mode: self.mode, ..Default::default() },
            propagation: propagate::Settings {
                mode: self.locals,
                lookahead: self.lookahead,
                ..Default::default()
            },
            ..Default::default()
        }
    }
}
