//! `states list` and `states sample`: the states in lexical order, or some drawn at random.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;

use reweave_base::Rng;
use reweave_states::Bounds;
use reweave_states::enumerate::lexical;
use reweave_states::mdd::{Diagram, Limits, Overflow, Reason};

use super::space::{Source, Space};
use crate::commands::stats::StatsFormat;
use crate::destination::Output;
use crate::exit::{self, Interrupted, say};
use crate::interrupt;
use crate::watch::Bar;

/// List the global states in lexicographic order.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave states list --limit 20 run.std")]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,
    /// Stop after this many states
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    limit: u64,
    #[command(flatten)]
    output: Output<StatsFormat>,
}

/// How a list ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    All,
    Limit,
    Interrupted,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (destination, format) = args.output.prepare()?;
    let space = args.source.read()?;
    interrupt::keep(interrupt::RESULTS);
    let mut end = End::All;
    destination.write("global states", |out| {
        let mut table = Table::start(out, &space, format)?;
        end = each(&space, args.limit, |state| table.push(state))?;
        table.finish(end == End::All)
    })?;
    let limit = args.limit;
    match end {
        End::All => {}
        End::Limit => say(&format!(
            "{}: there are more than these {limit} states: `--limit N` lists more, `states count` \
             counts them",
            space.path
        )),
        End::Interrupted => say(&format!("{}: interrupted: there are more states", space.path)),
    }
    Ok(exit::of_answer(end != End::Interrupted))
}

/// Hands `take` the states in lexical order, up to the limit.
fn each(
    space: &Space,
    limit: u64,
    mut take: impl FnMut(&[u32]) -> io::Result<()>,
) -> io::Result<End> {
    let (mut count, mut end, mut failure) = (0, End::All, None);
    _ = lexical(space.poset(), &Bounds::all(space.poset()), |state| {
        end = match (count == limit, interrupt::is_asked()) {
            (true, _) => End::Limit,
            (_, true) => End::Interrupted,
            _ => End::All,
        };
        count += 1;
        failure = if end == End::All { take(state).err() } else { None };
        if end == End::All && failure.is_none() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    failure.map_or(Ok(end), Err)
}

/// Sample global states uniformly at random; a seed repeats a sample.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave states sample --number 5 --seed 7 run.std")]
pub(crate) struct SampleArgs {
    #[command(flatten)]
    source: Source,
    /// Number of states to sample
    #[arg(long, value_name = "N", default_value_t = 10)]
    number: u64,
    /// Seed of the random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: Output<StatsFormat>,
}

/// Runs `states sample`.
pub(crate) fn sample(args: &SampleArgs) -> anyhow::Result<ExitCode> {
    let (destination, format) = args.output.prepare()?;
    let space = args.source.read()?;
    let bar = Bar::new("building the diagram", None);
    let stop = || !bar.go_on(0);
    let bounds = Bounds::all(space.poset());
    let built = Diagram::build(space.poset(), &bounds, &Limits::default(), &stop);
    drop(bar);
    let diagram = match built {
        Ok(diagram) => diagram,
        Err(Overflow { reason: Reason::Stopped, .. }) => return Err(Interrupted.into()),
        Err(overflow) => {
            say(&format!("{}: no states were drawn: {overflow}", space.path));
            return Ok(exit::of_answer(false));
        }
    };
    let mut rng = Rng::new(args.seed);
    destination.write("sampled global states", |out| {
        let mut table = Table::start(out, &space, format)?;
        (0..args.number).try_for_each(|_| table.push(&diagram.sample(&mut rng)))?;
        table.finish(false)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// States, one per line: as text a column per thread, as JSON a list.
struct Table<'a> {
    out: &'a mut dyn Write,
    format: StatsFormat,
    widths: Vec<usize>,
    is_empty: bool,
}

impl<'a> Table<'a> {
    /// A table of states of `space`.
    fn start(out: &'a mut dyn Write, space: &Space, format: StatsFormat) -> io::Result<Self> {
        let names: Vec<String> = space
            .chain_names()
            .iter()
            .map(|name| reweave_report::shown(name).into_owned())
            .collect();
        let top = space.poset().top();
        let widths = names.iter().zip(top);
        let widths: Vec<usize> = widths
            .map(|(name, length)| name.chars().count().max(length.to_string().len()))
            .collect();
        let mut table = Self { out, format, widths, is_empty: true };
        match format {
            StatsFormat::Text => table.row(&names)?,
            StatsFormat::Json => {
                // The document, left open, with the states as its last key but one.
                let document = serde_json::to_string(&space.document())?;
                let opened = document.strip_suffix('}').unwrap_or(&document);
                write!(table.out, "{opened},\"states\":[")?;
            }
        }
        Ok(table)
    }

    fn row(&mut self, cells: &[impl std::fmt::Display]) -> io::Result<()> {
        let cells = cells.iter().zip(&self.widths);
        let cells: Vec<String> = cells.map(|(cell, &width)| format!("{cell:>width$}")).collect();
        writeln!(self.out, "{}", cells.join(" "))
    }

    /// Adds a state.
    fn push(&mut self, state: &[u32]) -> io::Result<()> {
        match self.format {
            StatsFormat::Text => self.row(state)?,
            StatsFormat::Json => {
                writeln!(self.out, "{}", if self.is_empty { "" } else { "," })?;
                serde_json::to_writer(&mut *self.out, state)?;
            }
        }
        self.is_empty = false;
        Ok(())
    }

    /// Ends it; JSON says whether these are all states.
    fn finish(self, is_complete: bool) -> io::Result<()> {
        match self.format {
            StatsFormat::Text => Ok(()),
            StatsFormat::Json => writeln!(self.out, "],\n\"complete\":{is_complete}}}"),
        }
    }
}
