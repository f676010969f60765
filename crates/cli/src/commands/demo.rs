//! `demo`: two runs of one program, a race that shows in one and hides in the other.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use reweave_analysis::{Outcome, Proof, Settings, Subject};
use reweave_catalog::Quiet;
use reweave_format::ReadOptions;
use reweave_report::{Examined, Exhibit};
use reweave_trace::{EventId, Goal, Reordering, Trace};

use crate::destination::Destination;
use crate::exit::{self, say};

const ORDINARY: &str = include_str!("../../data/ordinary.std");
const HIDDEN: &str = include_str!("../../data/hidden.std");

/// Show what the tool does on two bundled runs of one small program, and write a report.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave demo -o demo.html")]
pub(crate) struct Args {
    /// Where to write the HTML report; with `-` it is all that goes to standard output
    #[arg(short, long, value_name = "FILE", default_value = "reweave-demo.html")]
    output: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let ordinary = bundled("ordinary.std", ORDINARY)?;
    let hidden = bundled("hidden.std", HIDDEN)?;
    let (seen, unseen) = (check(&ordinary)?, check(&hidden)?);
    let pages = [
        Examined { path: "ordinary.std", trace: &ordinary, outcome: &seen },
        Examined { path: "hidden.std", trace: &hidden, outcome: &unseen },
    ];
    let proof = bundled_proof(&hidden)?;
    let exhibit = Exhibit {
        title: "The race that hidden.std hides",
        message: "Happens-before orders the two writes, yet they can happen at the same time.",
        trace: &hidden,
        proof: &proof,
    };
    if args.output == Path::new("-") {
        // Standard output is the page, so the story goes where the notes go.
        tell(&mut anstream::stderr().lock(), &pages, &exhibit)?;
        let page = |out: &mut dyn Write| reweave_report::html_with(out, &pages, &[exhibit]);
        Destination::StandardOutput.write(page)?;
    } else {
        Destination::StandardOutput.write(|out| tell(out, &pages, &exhibit))?;
        write_page(&args.output, &pages, &exhibit);
    }
    Ok(exit::of_search([&seen, &unseen].into_iter()))
}

fn bundled(name: &str, text: &str) -> anyhow::Result<Trace> {
    Ok(reweave_format::read_from(text.as_bytes(), name, &ReadOptions::default())?.trace)
}

fn check(trace: &Trace) -> anyhow::Result<Outcome> {
    let analyses = reweave_catalog::select("races.hb", &[])?;
    Ok(reweave_catalog::run(trace, &analyses, &Settings::default(), &Quiet))
}

/// The audit's critical section first, then the transfer up to its write: 4, 5, 1, then 2 and 6.
fn bundled_proof(hidden: &Trace) -> anyhow::Result<Proof> {
    let event = |number| hidden.numbered(number).context("the bundled trace has six events");
    let schedule: anyhow::Result<Vec<EventId>> = [4, 5, 1].into_iter().map(event).collect();
    let goal = Goal::Race(event(2)?, event(6)?);
    Subject::new(hidden)
        .prove(Reordering::explicit(schedule?), goal)
        .context("the bundled schedule")
}

fn tell(
    out: &mut dyn Write,
    [ordinary, hidden]: &[Examined<'_>; 2],
    exhibit: &Exhibit<'_>,
) -> io::Result<()> {
    writeln!(out, "A program moves money in one thread and audits in another. Two runs of it:\n")?;
    reweave_report::text(out, &[*ordinary])?;
    writeln!(out, "\nIn the second run the same two threads met the other way round:\n")?;
    reweave_report::text(out, &[*hidden])?;
    writeln!(
        out,
        "\nHappens-before is silent: the lock was handed from one thread to the other, so it takes\n\
         the writes as ordered. The race is still there. This schedule of the second run's own\n\
         events, bundled with the demo, leads to it; the independent checker accepts it:\n"
    )?;
    reweave_report::proof(out, exhibit.trace, exhibit.proof)?;
    writeln!(
        out,
        "\nThis version checks such a schedule; the predictive analyses that find it by themselves\n\
         are its next step."
    )
}

/// Writes the page if the place allows it; the demo goes on without.
fn write_page(path: &Path, pages: &[Examined<'_>], exhibit: &Exhibit<'_>) {
    let page = |out: &mut dyn Write| reweave_report::html_with(out, pages, &[*exhibit]);
    let written = Destination::prepare(Some(path)).and_then(|destination| destination.write(page));
    match written {
        Ok(()) => say(&format!("The report is in {}", path.display())),
        Err(error) => say(&format!("No report was written: {error:#}")),
    }
}
