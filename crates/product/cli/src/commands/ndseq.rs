//! `ndseq`: nondeterministic sequential specifications.

mod check;
mod infer;
mod report;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use reweave_workflows::inference::{InferenceError, Trouble};
use reweave_workflows::runs::{Plan, SchedulerKind};
use serde_json::Value;

use super::run::Choosing;
use crate::exit::{self, say};
use crate::interrupt;

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
pub(crate) fn write_documents(
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

/// What became of the programs that a command was given.
pub(super) struct Processed<T> {
    pub(super) results: Vec<T>,
    failures: Vec<anyhow::Error>,
    /// The exit code if a program had no run with a result.
    without_result: Option<ExitCode>,
}

impl<T> Processed<T> {
    /// Processes each of `programs`, until interrupted. One that fails does not stop the others.
    pub(super) fn new(programs: &[PathBuf], process: impl Fn(&Path) -> anyhow::Result<T>) -> Self {
        let mut processed =
            Self { results: Vec::new(), failures: Vec::new(), without_result: None };
        for path in programs {
            match process(path) {
                Ok(result) => processed.results.push(result),
                Err(error) => match code_without_result(&error) {
                    Some(code) => {
                        say(&format!("reweave: {error:#}"));
                        processed.without_result = Some(code);
                    }
                    None => processed.failures.push(error),
                },
            }
            if interrupt::is_asked() {
                break;
            }
        }
        processed
    }

    /// The exit code, which is that `of_results` if nothing failed.
    pub(super) fn exit_code(&self, of_results: impl FnOnce(&[T]) -> ExitCode) -> ExitCode {
        let code = self.without_result.unwrap_or_else(|| of_results(&self.results));
        exit::after(&self.failures, code)
    }
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
        self.choosing.plan(self.scheduler.kind(self.choosing.depth), self.runs)
    }
}
