//! `deadlocks`: threads that can come to wait for each other.

use std::process::ExitCode;

use super::examine::{self, Options};

/// Find threads that can come to wait for each other's locks in a cycle.
///
/// Exits with 0 when nothing is found, 66 when something is, and 3 when nothing is but the search
/// was cut short.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave deadlocks --all --format json run.std")]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let analyses = reweave_catalog::select("deadlocks", &[])?;
    examine::run(&args.options, &analyses, |_| {})
}
