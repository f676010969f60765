//! `demo`: two runs of one program, a race that shows in one and hides in the other.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use reweave_analysis::{
    Evidence, Finding, Fingerprint, Guarantee, Kind, Outcome, Reported, Settings,
};
use reweave_catalog::Quiet;
use reweave_format::ReadOptions;
use reweave_report::Examined;
use reweave_trace::{EventId, Goal, Reordering, Trace, certify};

use crate::destination::Destination;
use crate::exit::{self, say};

const ORDINARY: &str = include_str!("../../data/ordinary.std");
const HIDDEN: &str = include_str!("../../data/hidden.std");

/// Show what the tool does on two bundled runs of one small program, and write a report.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave demo -o demo.html")]
pub(crate) struct Args {
    /// Where to write the HTML report
    #[arg(short, long, value_name = "FILE", default_value = "reweave-demo.html")]
    output: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let ordinary = bundled("ordinary.std", ORDINARY)?;
    let hidden = bundled("hidden.std", HIDDEN)?;
    let seen = check(&ordinary)?;
    let unseen = check(&hidden)?;
    let (reordering, goal) = bundled_witness(&hidden)?;
    certify(&hidden, &reordering, &goal).context("the bundled witness")?;
    Destination::StandardOutput
        .write(|out| tell(out, (&ordinary, &seen), (&hidden, &unseen), (&reordering, &goal)))?;
    let shown = with_bundled(&hidden, unseen, reordering, goal);
    let pages = [
        Examined { path: "ordinary.std", trace: &ordinary, outcome: &seen },
        Examined { path: "hidden.std", trace: &hidden, outcome: &shown },
    ];
    write_page(&args.output, &pages);
    Ok(exit::of_search([&seen, &shown].into_iter()))
}

fn bundled(name: &str, text: &str) -> anyhow::Result<Trace> {
    Ok(reweave_format::read_from(text.as_bytes(), name, &ReadOptions::default())?.trace)
}

fn check(trace: &Trace) -> anyhow::Result<Outcome> {
    let analyses = reweave_catalog::select("races.hb", &[])?;
    Ok(reweave_catalog::run(trace, &analyses, &Settings::default(), &Quiet))
}

/// The audit's critical section first, then the transfer up to its write: 4, 5, 1, then 2 and 6.
fn bundled_witness(hidden: &Trace) -> anyhow::Result<(Reordering, Goal)> {
    let event = |number| hidden.numbered(number).context("the bundled trace has six events");
    let schedule: anyhow::Result<Vec<EventId>> = [4, 5, 1].into_iter().map(event).collect();
    Ok((Reordering::explicit(schedule?), Goal::Race(event(2)?, event(6)?)))
}

fn tell(
    out: &mut dyn Write,
    (ordinary, seen): (&Trace, &Outcome),
    (hidden, unseen): (&Trace, &Outcome),
    (reordering, goal): (&Reordering, &Goal),
) -> io::Result<()> {
    writeln!(out, "A program moves money in one thread and audits in another. Two runs of it:\n")?;
    reweave_report::text(
        out,
        &[Examined { path: "ordinary.std", trace: ordinary, outcome: seen }],
    )?;
    writeln!(out, "\nIn the second run the same two threads met the other way round:\n")?;
    reweave_report::text(out, &[Examined { path: "hidden.std", trace: hidden, outcome: unseen }])?;
    writeln!(
        out,
        "\nHappens-before is silent: the lock was handed from one thread to the other, so it takes\n\
         the writes as ordered. The race is still there. This schedule of the second run's own\n\
         events, bundled with the demo, leads to it; the independent checker accepts it:\n"
    )?;
    let evidence = Evidence::Schedule { reordering: reordering.clone(), goal: goal.clone() };
    reweave_report::witness(out, hidden, reordering, &evidence.then())?;
    writeln!(
        out,
        "\nThis version checks such a schedule; the predictive analyses that find it by themselves\n\
         are its next step."
    )
}

/// `outcome` with the bundled witness as a finding of its own.
fn with_bundled(
    hidden: &Trace,
    mut outcome: Outcome,
    reordering: Reordering,
    goal: Goal,
) -> Outcome {
    let evidence = Evidence::Schedule { reordering, goal };
    let events = evidence.then();
    let finding = Finding {
        analysis: "the bundled witness",
        kind: Kind::Race,
        guarantee: Guarantee::Witnessed,
        message: "the two writes can happen at the same time, though happens-before orders them"
            .to_owned(),
        count: 1,
        events,
        evidence,
    };
    let fingerprint = Fingerprint::of(hidden, finding.kind, &finding.events);
    outcome.findings.push(Reported { id: "R1".to_owned(), fingerprint, finding });
    outcome
}

/// Writes the page if the place allows it; the demo goes on without.
fn write_page(path: &Path, pages: &[Examined<'_>]) {
    let written = Destination::prepare(Some(path))
        .and_then(|destination| destination.write(|out| reweave_report::html(out, pages)));
    match written {
        Ok(()) => say(&format!("The report is in {}", path.display())),
        Err(error) => say(&format!("No report was written: {error:#}")),
    }
}
