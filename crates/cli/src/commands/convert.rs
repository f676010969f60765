//! `convert`: change the format of a trace.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::destination::Destination;
use crate::input::{self, FormatName};

/// Change the format of a trace. The output's name says which: .std, .rwt, .trace (columns) or
/// .jsonl, with .gz or .zst if it is to be compressed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave convert run.std.gz run.rwt\n  \
                        reweave convert --to jsonl run.rwt - | head")]
pub(crate) struct Args {
    /// The trace to read; `-` is standard input
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file to write; `-` is standard output
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// The format to write, whatever the name says
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<FormatName>,
    /// Mend a trace whose events cannot have happened, and say what was changed
    #[arg(long)]
    repair: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (format, compression) = input::format_of_output(&args.output, args.to)?;
    let destination = Destination::prepare(Some(&args.output))?;
    let reading = input::read(&args.input, args.repair)?;
    destination.write_trace(&reading.trace, format, compression)?;
    Ok(ExitCode::SUCCESS)
}
