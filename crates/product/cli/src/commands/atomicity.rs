//! `atomicity`: blocks that another thread can spoil.

use std::process::ExitCode;

use super::examine::{self, Options};

/// Find blocks that are expected to be atomic and that another thread can spoil.
///
/// Blocks are what the trace marks with `begin` and `end`. Exits with 0 when nothing is found, 66
/// when something is, and 3 when nothing is but the search was cut short.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave atomicity --sections run.std")]
pub(crate) struct Args {
    /// Take every critical section for a block too
    #[arg(long)]
    sections: bool,
    #[command(flatten)]
    options: Options,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let only = if args.sections { "atomicity" } else { "atomicity.blocks" };
    let analyses = reweave_catalog::select(only, &[])?;
    examine::run(&args.options, &analyses, |_| {})
}
