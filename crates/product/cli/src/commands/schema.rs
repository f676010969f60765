//! `schema`: what the fields of JSON output are.

use std::process::ExitCode;

use crate::destination::Destination;

/// Print the JSON schema of what `--format json` writes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave schema > reweave-1.schema.json")]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_: &Args) -> anyhow::Result<ExitCode> {
    Destination::StandardOutput.write(|out| write!(out, "{}", reweave_report::SCHEMA_FILE))?;
    Ok(ExitCode::SUCCESS)
}
