//! `explain`: one finding in detail.

use std::process::ExitCode;

use reweave_analysis::Outcome;
use reweave_report::Examined;

use super::examine::{Printing, ReportFormat};
use super::lookup::{Found, Wanted};
use crate::destination::Destination;
use crate::input;

/// Explain one finding: what it is, why it is a bug, how it happens.
///
/// Shows its schedule with one column per thread, and the observed order beside the predicted one. Use the
/// same options as for `check` to get the same findings with the same ids.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave explain run.std R1")]
pub struct Args {
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    printing: Printing,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let destination = Destination::prepare(args.printing.output.as_deref())?;
    let Found { path, trace, outcome, reported } = args.wanted.find()?;
    let sources = input::sources(&path, &trace, &args.printing.sources);
    let examined = Examined { sources: &sources, ..Examined::new(&path, &trace, &outcome) };
    // The other formats are those of reports: this one has a single finding.
    let only = Outcome { findings: vec![reported.clone()], ..outcome.clone() };
    let alone = Examined { outcome: &only, ..examined };
    let format = args.printing.format();
    destination.write(|out| match format {
        ReportFormat::Text => reweave_report::explanation_text(out, &examined, &reported),
        ReportFormat::Json => reweave_report::explanation_json(out, &examined, &reported),
        ReportFormat::Html => reweave_report::explanation_html(out, &examined, &reported),
        _ => format.write(out, &[alone], false),
    })?;
    Ok(ExitCode::SUCCESS)
}
