//! `stats`: numbers on traces.

use std::path::PathBuf;
use std::process::ExitCode;

use reweave_format::Reading;
use reweave_report::{Source, counted};

use crate::destination::Output;
use crate::{exit, input, interrupt};

/// Count what a trace holds: events, threads, locks, variables.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave stats --format json run.std.gz")]
pub struct Args {
    /// Traces to read; `-` is standard input
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    /// Repair traces whose events cannot have happened, and list the changes
    #[arg(long)]
    repair: bool,
    #[command(flatten)]
    output: Output<StatsFormat>,
}

/// The format of output other than findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum StatsFormat {
    /// for people
    #[default]
    Text,
    /// for programs
    Json,
}

/// The same, with a page for what can be drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DrawnFormat {
    /// for people
    #[default]
    Text,
    /// for programs
    Json,
    /// a self-contained page with a drawing
    Html,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    input::check_names(&args.traces)?;
    let (destination, format) = args.output.prepare()?;
    let mut readings: Vec<(String, Reading)> = Vec::new();
    let mut failures = Vec::new();
    for path in &args.traces {
        match input::read(path, args.repair) {
            Ok(reading) => readings.push((path.display().to_string(), reading)),
            Err(error) if interrupt::is_asked() => return Err(error),
            Err(error) => failures.push(error),
        }
    }
    if readings.is_empty() {
        return Ok(exit::after(&failures, ExitCode::SUCCESS));
    }
    let sources: Vec<Source<'_>> = readings
        .iter()
        .map(|(path, reading)| Source {
            path,
            format: input::format_name(reading.format),
            compression: reading.compression.map(input::compression_name),
            trace: &reading.trace,
        })
        .collect();
    let what = counted(sources.len() as u64, "trace");
    destination.write(&format!("statistics of {what}"), |out| match format {
        StatsFormat::Text => {
            sources.iter().try_for_each(|source| reweave_report::stats_text(out, source))
        }
        StatsFormat::Json if args.traces.len() > 1 => {
            reweave_report::stats_list_json(out, &sources)
        }
        StatsFormat::Json => reweave_report::stats_json(out, &sources),
    })?;
    Ok(exit::after(&failures, ExitCode::SUCCESS))
}
