//! `states`: the consistent global states of a run or of a poset.

mod count;
mod find;
mod list;
mod sample;
mod space;

use std::process::ExitCode;

use clap::Subcommand;

pub(crate) use find::Question;
pub(crate) use space::OrderName;

/// Count, list, sample and search the global states of a run.
///
/// A global state (consistent cut) says how many events of each thread have happened; it has, with an event, all that
/// happen before it. INPUT is a trace, or a poset: a JSON object with `n`, the number of threads, and `events`, a list
/// of `[thread, clock]`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave states count run.std")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Count(count::Args),
    Find(find::Args),
    List(list::Args),
    Sample(sample::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Count(args) => count::run(args),
        Command::Find(args) => find::run(args),
        Command::List(args) => list::run(args),
        Command::Sample(args) => sample::run(args),
    }
}
