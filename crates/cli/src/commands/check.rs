//! `check`: everything that can go wrong.

use std::process::ExitCode;

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
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    examine::run(&args.options, &args.selection.analyses()?, |_| {})
}
