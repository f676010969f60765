//! `ndseq`: nondeterministic sequential specifications.

mod check;
mod infer;
mod page;
mod report;

use std::io::{self, Write};
use std::process::ExitCode;

use reweave_exec::Settings;
use reweave_workflows::inference::{InferenceError, Trouble};
use reweave_workflows::runs::{Plan, SchedulerKind};
use serde_json::Value;

use super::run::Choosing;
use crate::exit;

/// Infer and check nondeterministic sequential specifications.
///
/// They say which statements must be optional, `if (*)`, for a parallel program to equal a sequential one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave ndseq infer reduce.rw --validate")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Infer(infer::Args),
    Check(check::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Infer(args) => infer::run(args),
        Command::Check(args) => check::run(args),
    }
}

/// Writes `documents`, one for each program, as a list if `is_list`.
pub(super) fn write_documents(
    out: &mut dyn Write,
    documents: &[Value],
    is_list: bool,
) -> io::Result<()> {
    match documents {
        [only] if !is_list => serde_json::to_writer_pretty(&mut *out, only)?,
        all => serde_json::to_writer_pretty(&mut *out, all)?,
    }
    writeln!(out)
}

/// The exit code if no run had a result: something found if runs fail, else cut short; none if
/// something else is wrong.
fn code_without_result(error: &anyhow::Error) -> Option<ExitCode> {
    match error.downcast_ref::<InferenceError>()? {
        InferenceError::NoResult(troubles) if troubles.iter().any(Trouble::is_fault) => {
            Some(exit::found())
        }
        InferenceError::NoResult(_) => Some(exit::of_answer(false)),
        _ => None,
    }
}

/// Which runs of a program are looked at.
#[derive(Debug, clap::Args)]
struct Running {
    /// Number of runs
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// How the thread of each step is chosen
    #[arg(long, value_enum, default_value_t)]
    scheduler: RunSchedulerName,
    #[command(flatten)]
    choosing: Choosing,
}

/// A scheduler of single runs as the command line spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum RunSchedulerName {
    /// a random thread at every step
    Random,
    /// random priorities that change at a few random steps
    Pct,
    /// each thread in turn
    Roundrobin,
    /// pauses threads before conflicting accesses
    #[default]
    RaceDirected,
}

impl RunSchedulerName {
    /// The scheduler itself; `depth` is for `pct`.
    pub(super) const fn kind(self, depth: u32) -> SchedulerKind {
        match self {
            Self::Random => SchedulerKind::Random,
            Self::Pct => SchedulerKind::Pct { depth },
            Self::Roundrobin => SchedulerKind::RoundRobin,
            Self::RaceDirected => SchedulerKind::RaceDirected,
        }
    }
}

impl Running {
    fn plan(&self) -> Plan {
        let scheduler = self.scheduler.kind(self.choosing.depth);
        let settings = Settings { steps_max: self.choosing.steps, ..Settings::default() };
        Plan { scheduler, seed: self.choosing.seed, runs_count: self.runs, settings }
    }
}
