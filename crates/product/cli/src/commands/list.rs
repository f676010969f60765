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

/// What is told of an analysis.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    family: &'static str,
    kind: &'static str,
    guarantee: &'static str,
    needs: &'static str,
    is_default: bool,
    summary: &'static str,
    paper: &'static str,
}

/// Those that look at programs and not at traces alone.
const OF_PROGRAMS: [Row; 3] = [
    Row {
        name: "ndseq.infer",
        family: "ndseq",
        kind: "specification",
        guarantee: "exact",
        needs: "flow",
        is_default: false,
        summary: "the fewest `if (*)` with which the runs of a program equal sequential ones",
        paper: "Burnim, Elmas, Necula, Sen 2012",
    },
    Row {
        name: "ndseq.check",
        family: "ndseq",
        kind: "specification",
        guarantee: "exact",
        needs: "flow",
        is_default: false,
        summary: "whether the runs of a program agree with its own `if (*)`",
        paper: "Burnim, Elmas, Necula, Sen 2012",
    },
    Row {
        name: "intervals",
        family: "intervals",
        kind: "range",
        guarantee: "sound",
        needs: "program",
        is_default: false,
        summary: "the range of every variable over all interleavings of a program's runs",
        paper: "Ganai, Wang 2010",
    },
];

impl Row {
    const fn new(info: &Info) -> Self {
        Self {
            name: info.name,
            family: info.family,
            kind: info.kind.as_str(),
            guarantee: info.guarantee.as_str(),
            needs: info.needs.as_str(),
            is_default: info.is_default,
            summary: info.summary,
            paper: info.paper,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let all: Vec<Row> = reweave_catalog::analyses()
        .map(|analysis| Row::new(analysis.info()))
        .chain(OF_PROGRAMS)
        .collect();
    Destination::StandardOutput.write(|out| match args.format {
        StatsFormat::Text => text(out, &all),
        StatsFormat::Json => json(out, &all),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn text(out: &mut dyn Write, all: &[Row]) -> io::Result<()> {
    let width = all.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for Row { name, kind, guarantee, is_default, summary, paper, .. } in all {
        let default = if *is_default { "default" } else { "" };
        writeln!(out, "{name:<width$} {kind:<9} {guarantee:<9} {default:<7} {summary} ({paper})")?;
    }
    Ok(())
}

fn json(out: &mut dyn Write, all: &[Row]) -> io::Result<()> {
    let entry = |row: &Row| {
        json!({
            "name": row.name,
            "family": row.family,
            "kind": row.kind,
            "guarantee": row.guarantee,
            "needs": row.needs,
            "default": row.is_default,
            "summary": row.summary,
            "paper": row.paper,
        })
    };
    let analyses: Vec<_> = all.iter().map(entry).collect();
    let document = json!({ "schema": reweave_report::SCHEMA, "analyses": analyses });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}
