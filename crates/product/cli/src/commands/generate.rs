//! `generate`: a seeded synthetic trace.

use std::path::PathBuf;
use std::process::ExitCode;

use reweave_format::Format;
use reweave_workload::{Config, Shape, generate_while};

use crate::destination::Destination;
use crate::exit::Interrupted;
use crate::input::{self, NamedValues};
use crate::watch::Bar;

/// Generate a synthetic trace; the same options give the same trace.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave generate --events 100000 --seed 7 -o made.rwt")]
pub struct Args {
    /// Number of events
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    events: u32,
    /// Number of threads
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    threads: u32,
    /// Number of locks
    #[arg(long, value_name = "N", default_value_t = 16,
          value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    locks: u32,
    /// Number of variables
    #[arg(long, value_name = "N", default_value_t = 1_000,
          value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    vars: u32,
    /// Seed of the random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// What the threads do
    #[arg(long, default_value = "guarded", value_parser = input::named(SHAPES))]
    shape: Shape,
    /// Write the trace to this file [default: standard output]
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
    /// Output format [default: by the extension of the output]
    #[arg(long, value_name = "FORMAT", value_parser = input::named(input::FORMATS))]
    to: Option<Format>,
}

static SHAPES: &NamedValues<Shape> = &[
    (
        Shape::Guarded,
        "guarded",
        "variables local to a thread or guarded by a lock, with an occasional omission",
    ),
    (Shape::Mixed, "mixed", "accesses to any variable inside and outside of critical sections"),
    (Shape::LockHeavy, "lock-heavy", "mostly nested critical sections"),
    (Shape::ForkJoin, "fork-join", "threads fork threads, work, and join them"),
    (
        Shape::ProducerConsumer,
        "producer-consumer",
        "items pass through queues counted by semaphores",
    ),
    (Shape::WaitNotify, "wait-notify", "threads wait on condition variables until notified"),
    (Shape::Barrier, "barrier", "threads work in phases separated by barriers"),
];

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (format, compression) = input::format_of_output(&args.output, args.to)?;
    let destination = Destination::prepare(Some(&args.output))?;
    let config = Config {
        events: args.events as usize,
        threads: args.threads as usize,
        locks: args.locks as usize,
        vars: args.vars as usize,
        seed: args.seed,
        shape: args.shape,
    };
    let bar = Bar::new("generating", Some(u64::from(args.events)));
    let made = generate_while(&config, &|events| bar.go_on(events as u64));
    drop(bar);
    let trace = made.ok_or(Interrupted)?;
    destination.write_trace(&trace, format, compression)?;
    Ok(ExitCode::SUCCESS)
}
