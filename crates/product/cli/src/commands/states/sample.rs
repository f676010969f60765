//! `states sample`: some of them, drawn by chance.

use std::path::PathBuf;
use std::process::ExitCode;

use reweave_base::Rng;
use reweave_states::Bounds;
use reweave_states::diagram::{Diagram, Limits, Overflow, Reason};

use super::list::Table;
use super::space::Source;
use crate::commands::stats::StatsFormat;
use crate::destination::Destination;
use crate::exit::{self, Interrupted, say};
use crate::watch::Bar;

/// Sample global states uniformly at random; a seed repeats a sample.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave states sample --number 5 --seed 7 run.std")]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,
    /// Number of states to sample
    #[arg(long, value_name = "N", default_value_t = 10)]
    number: u64,
    /// Seed of the random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: StatsFormat,
    /// Write the output to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let destination = Destination::prepare(args.output.as_deref())?;
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
    destination.write(|out| {
        let mut table = Table::start(out, &space, args.format)?;
        (0..args.number).try_for_each(|_| table.push(&diagram.sample(&mut rng)))?;
        table.finish(false)
    })?;
    Ok(ExitCode::SUCCESS)
}
