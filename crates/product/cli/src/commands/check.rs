//! `check`: everything that can go wrong.

use std::ffi::OsString;
use std::process::ExitCode;

use super::confirm::{self, Replaying};
use super::examine::{self, Options, Selection};

/// Find what can go wrong: findings grouped by code location, worst first.
///
/// Runs the analyses that `reweave list` calls default: races, deadlocks, and atomicity where blocks
/// are marked. Exits with 0 when nothing is found, 66 when something is, and 3 when nothing is but
/// the search was cut short.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave check --format html -o report.html run.std")]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    options: Options,
    /// Replay each witnessed finding in the program that CMD runs, and say which happened
    #[arg(long, requires = "command")]
    confirm: bool,
    #[command(flatten)]
    replaying: Replaying,
    /// With `--confirm`: the program that the trace was recorded from, and its arguments
    #[arg(last = true, value_name = "CMD", requires = "confirm")]
    command: Vec<OsString>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let analyses = args.selection.analyses()?;
    if !args.confirm {
        return examine::run(&args.options, &analyses, |_| {});
    }
    examine::run_confirmed(&args.options, &analyses, |trace, outcome| {
        confirm::all(trace, outcome, args.replaying, &args.command)
    })
}
