//! `check`: everything that can go wrong.

use std::process::ExitCode;

use super::examine::{self, Options};

/// Find what can go wrong: findings grouped by code location, worst first.
///
/// Runs the analyses that `reweave list` calls default: races, deadlocks, and atomicity where blocks
/// are marked. Exits with 0 when nothing is found, 66 when something is, and 3 when nothing is but
/// the search was cut short.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave check --format html -o report.html run.std")]
pub(crate) struct Args {
    /// Run only the analyses whose names start with this, such as `races`
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    only: String,
    /// Also run this family, or the analyses whose names start so
    #[arg(long, value_name = "NAME")]
    with: Vec<String>,
    #[command(flatten)]
    options: Options,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let analyses = reweave_catalog::select(&args.only, &args.with)?;
    examine::run(&args.options, &analyses, None)
}
