//! `generate`: a seeded synthetic trace.

use std::path::PathBuf;
use std::process::ExitCode;

use reweave_workload::{Config, Shape, generate_while};

use crate::destination::Destination;
use crate::exit::Interrupted;
use crate::input::{self, FormatName};
use crate::watch::Bar;

/// Make a synthetic trace. The same numbers give the same trace.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave generate --events 100000 --seed 7 -o made.rwt")]
pub(crate) struct Args {
    /// How many events
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    events: u32,
    /// How many threads
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    threads: u32,
    /// How many locks
    #[arg(long, value_name = "N", default_value_t = 16,
          value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    locks: u32,
    /// How many variables
    #[arg(long, value_name = "N", default_value_t = 1_000,
          value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    vars: u32,
    /// Which of the many traces with these numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// What the threads do
    #[arg(long, value_enum, default_value_t)]
    shape: ShapeName,
    /// The file to write; standard output if there is none
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
    /// The format to write, whatever the name says
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<FormatName>,
}

/// A shape as the command line spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ShapeName {
    /// variables of one thread, or guarded by a lock that is now and then forgotten
    #[default]
    Guarded,
    /// accesses inside and outside of critical sections, to whatever variable
    Mixed,
    /// little but critical sections, nested
    LockHeavy,
    /// threads fork threads, work, and join them
    ForkJoin,
    /// items go through queues counted by semaphores
    ProducerConsumer,
    /// threads wait on conditions until notified
    WaitNotify,
    /// threads work in rounds
    Barrier,
}

impl ShapeName {
    const fn shape(self) -> Shape {
        match self {
            Self::Guarded => Shape::Guarded,
            Self::Mixed => Shape::Mixed,
            Self::LockHeavy => Shape::LockHeavy,
            Self::ForkJoin => Shape::ForkJoin,
            Self::ProducerConsumer => Shape::ProducerConsumer,
            Self::WaitNotify => Shape::WaitNotify,
            Self::Barrier => Shape::Barrier,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (format, compression) = input::format_of_output(&args.output, args.to)?;
    let destination = Destination::prepare(Some(&args.output))?;
    let config = Config {
        events: args.events as usize,
        threads: args.threads as usize,
        locks: args.locks as usize,
        vars: args.vars as usize,
        seed: args.seed,
        shape: args.shape.shape(),
    };
    let bar = Bar::new("generating", Some(u64::from(args.events)));
    let made = generate_while(&config, &|events| bar.go_on(events as u64));
    drop(bar);
    let trace = made.ok_or(Interrupted)?;
    destination.write_trace(&trace, format, compression)?;
    Ok(ExitCode::SUCCESS)
}
