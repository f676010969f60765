//! `demo`: a run without a visible fault, and what other runs of it can do.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use reweave_analysis::{Outcome, Settings};
use reweave_catalog::Quiet;
use reweave_format::ReadOptions;
use reweave_report::Examined;
use reweave_trace::Trace;

use crate::destination::Destination;
use crate::exit::{self, say};

const HIDDEN: &str = include_str!("../../data/hidden.std");

/// What detectors in wide use go by.
const USUAL: &str = "races.hb";

/// Predict a race and a deadlock that a bundled run hides, and write a report.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave demo -o demo.html")]
pub(crate) struct Args {
    /// Where to write the HTML report; with `-` it is all that goes to standard output
    #[arg(short, long, value_name = "FILE", default_value = "reweave-demo.html")]
    output: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let name = "hidden.std";
    let trace = reweave_format::read_from(HIDDEN.as_bytes(), name, &ReadOptions::default())?.trace;
    let (usual, found) = (check(&trace, USUAL)?, check(&trace, "")?);
    let examined = Examined { path: name, trace: &trace, outcome: &found, confirmations: &[] };
    let page = |out: &mut dyn Write| reweave_report::html(out, &[examined]);
    if args.output == Path::new("-") {
        // Standard output is the page, so the story goes where the notes go.
        tell(&mut anstream::stderr().lock(), &usual, &examined)?;
        Destination::StandardOutput.write(page)?;
    } else {
        Destination::StandardOutput.write(|out| tell(out, &usual, &examined))?;
        write_page(&args.output, page);
    }
    Ok(exit::of_search([&found].into_iter()))
}

/// What the analyses whose names start with `only` find, or the default ones.
fn check(trace: &Trace, only: &str) -> anyhow::Result<Outcome> {
    let analyses = reweave_catalog::select(only, &[])?;
    Ok(reweave_catalog::run(trace, &analyses, &Settings::default(), &Quiet))
}

fn tell(out: &mut dyn Write, usual: &Outcome, examined: &Examined<'_>) -> io::Result<()> {
    writeln!(
        out,
        "A program moves money in one thread and audits in another. This is one run of it:\n"
    )?;
    for line in HIDDEN.lines().filter(|line| !line.starts_with('#')) {
        writeln!(out, "    {line}")?;
    }
    writeln!(
        out,
        "\nA race detector that goes by happens-before, as ThreadSanitizer does, says of this run:\n\
         {}. The lock `book` was handed from one thread to the other, so it takes the two\n\
         writes of `balance` as ordered. What other runs can do:\n",
        reweave_report::summary(usual)
    )?;
    reweave_report::text(out, &[*examined])
}

/// Writes the page if the place allows it; the demo goes on without.
fn write_page(path: &Path, page: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    let written = Destination::prepare(Some(path)).and_then(|destination| destination.write(page));
    match written {
        Ok(()) => say(&format!("The report is in {}", path.display())),
        Err(error) => say(&format!("No report was written: {error:#}")),
    }
}
