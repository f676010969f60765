//! `list`: every analysis with its guarantee.

use std::io::{self, Write};
use std::process::ExitCode;

use reweave_analysis::Info;
use serde_json::json;

use crate::commands::stats::StatsFormat;
use crate::destination::Destination;

/// Name every analysis with what it finds and what it guarantees.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave list --format json")]
pub(crate) struct Args {
    /// How to print the list
    #[arg(long, value_enum, default_value_t)]
    format: StatsFormat,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let all: Vec<&Info> = reweave_catalog::analyses().map(|analysis| analysis.info()).collect();
    Destination::StandardOutput.write(|out| match args.format {
        StatsFormat::Text => text(out, &all),
        StatsFormat::Json => json(out, &all),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn text(out: &mut dyn Write, all: &[&Info]) -> io::Result<()> {
    let width = all.iter().map(|info| info.name.len()).max().unwrap_or(0);
    for info in all {
        let Info { name, kind, guarantee, is_default, summary, paper, .. } = info;
        let default = if *is_default { "default" } else { "" };
        writeln!(out, "{name:<width$} {kind:<9} {guarantee:<9} {default:<7} {summary} ({paper})")?;
    }
    Ok(())
}

fn json(out: &mut dyn Write, all: &[&Info]) -> io::Result<()> {
    let entry = |info: &&Info| {
        json!({
            "name": info.name,
            "family": info.family,
            "kind": info.kind.word(),
            "guarantee": info.guarantee.word(),
            "needs": info.needs.word(),
            "default": info.is_default,
            "summary": info.summary,
            "paper": info.paper,
        })
    };
    let analyses: Vec<_> = all.iter().map(entry).collect();
    let document = json!({ "schema": reweave_report::SCHEMA, "analyses": analyses });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}
