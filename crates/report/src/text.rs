//! Findings as text, for a terminal.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use reweave_analysis::{Coverage, Evidence, Guarantee, Kind, Outcome, Reported};
use reweave_trace::{EventId, Reordering, Trace};

use crate::shown::{clipped, shown};
use crate::site::Site;
use crate::table::Table;
use crate::{Examined, counted};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const WARN: Style = AnsiColor::Yellow.on_default();

/// How wide a thread's column and a location get in a table.
const CELL_MAX: usize = 32;

/// Writes what was found in each of `examined`, with colours; the caller strips them where they
/// are not wanted.
///
/// # Errors
/// If `out` fails.
pub fn text(out: &mut dyn Write, examined: &[Examined<'_>]) -> io::Result<()> {
    for (at, examined) in examined.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        one(out, examined)?;
    }
    Ok(())
}

fn one(out: &mut dyn Write, examined: &Examined<'_>) -> io::Result<()> {
    let Examined { path, trace, outcome } = examined;
    writeln!(out, "{BOLD}{}{BOLD:#}: {}", shown(path), size(trace))?;
    let repairs = trace.repairs();
    if !repairs.is_empty() {
        let changes = counted(repairs.len() as u64, "change");
        writeln!(out, "{WARN}repaired{WARN:#}: {changes} made this trace well formed")?;
        for repair in repairs {
            writeln!(out, "  {}", shown(&repair.to_string()))?;
        }
    }
    for reported in &outcome.findings {
        writeln!(out)?;
        finding(out, trace, reported)?;
    }
    writeln!(out)?;
    for coverage in &outcome.coverage {
        coverage_line(out, coverage)?;
    }
    writeln!(out, "{BOLD}{}{BOLD:#}", summary(outcome))
}

fn size(trace: &Trace) -> String {
    let names = trace.names();
    format!(
        "{}, {}, {}, {}",
        counted(trace.len() as u64, "event"),
        counted(names.threads.len() as u64, "thread"),
        counted(names.locks.len() as u64, "lock"),
        counted(names.vars.len() as u64, "variable"),
    )
}

fn finding(out: &mut dyn Write, trace: &Trace, reported: &Reported) -> io::Result<()> {
    let Reported { id, fingerprint, finding } = reported;
    let sure = match finding.guarantee {
        Guarantee::Witnessed => GOOD,
        Guarantee::First | Guarantee::Unordered => WARN,
    };
    let (kind, guarantee) = (finding.kind, finding.guarantee);
    writeln!(
        out,
        "{BAD}{id} {kind}{BAD:#}  {sure}{guarantee}{sure:#}  {DIM}{} {fingerprint}{DIM:#}",
        finding.analysis
    )?;
    writeln!(out, "  {}", shown(&finding.message))?;
    for &event in &finding.events {
        let site = Site::of(trace, event);
        let who = format!("event {}, {}: {}", site.number, site.thread, site.op);
        let line = format!("{who} at {}, {}", site.location, site.holding());
        writeln!(out, "    {}", shown(&line))?;
        for frame in site.stack {
            writeln!(out, "      {DIM}from {}{DIM:#}", shown(frame))?;
        }
    }
    if finding.count > 1 {
        let instances = counted(finding.count, "instance");
        writeln!(out, "  {instances} at these locations, of which this is an early one")?;
    }
    if let Evidence::Schedule { reordering, .. } = &finding.evidence {
        writeln!(out, "  A schedule that leads there:")?;
        witness(out, trace, reordering, &finding.evidence.then())?;
    }
    writeln!(out, "  {DIM}{}{DIM:#}", finding.guarantee.meaning())
}

/// Writes the last steps of a witness as a table with a column per thread, and the events `then`
/// that are next after them.
///
/// # Errors
/// If `out` fails.
pub fn witness(
    out: &mut dyn Write,
    trace: &Trace,
    reordering: &Reordering,
    then: &[EventId],
) -> io::Result<()> {
    let table = Table::of(trace, reordering, then);
    let headings: Vec<String> =
        table.headings().iter().map(|name| clipped(name, CELL_MAX)).collect();
    let cells: Vec<(String, String)> = table
        .rows
        .iter()
        .map(|row| table.cell(row))
        .map(|(op, location)| (clipped(&op, CELL_MAX), clipped(location, CELL_MAX)))
        .collect();
    let mut widths: Vec<usize> = headings.iter().map(|heading| heading.chars().count()).collect();
    for (row, (op, _)) in table.rows.iter().zip(&cells) {
        widths[row.column] = widths[row.column].max(op.chars().count());
    }
    write!(out, "  {DIM}  step     event{DIM:#}")?;
    for (at, (heading, &width)) in headings.iter().zip(&widths).enumerate() {
        let width = if at + 1 == widths.len() { 0 } else { width };
        write!(out, "  {BOLD}{heading:width$}{BOLD:#}")?;
    }
    writeln!(out)?;
    if let Some(note) = table.skipped_note() {
        writeln!(out, "  {DIM}{note}{DIM:#}")?;
    }
    for (row, (op, location)) in table.rows.iter().zip(&cells) {
        let step = row.step.map_or("then".to_owned(), |step| step.to_string());
        let style = if row.step.is_none() { BAD } else { Style::new() };
        write!(out, "  {style}{step:>6}{style:#}{:>10}", row.event.number())?;
        for (column, width) in widths.iter().enumerate() {
            let text = if column == row.column { op.as_str() } else { "" };
            write!(out, "  {style}{text:width$}{style:#}")?;
        }
        writeln!(out, "  {DIM}{location}{DIM:#}")?;
    }
    Ok(())
}

fn coverage_line(out: &mut dyn Write, coverage: &Coverage) -> io::Result<()> {
    let counters: Vec<String> = coverage
        .counters
        .iter()
        .map(|(name, count)| format!("{} {count}", name.replace('_', " ")))
        .collect();
    let analysis = coverage.analysis;
    write!(out, "{DIM}{analysis}: {}{DIM:#}", counters.join(", "))?;
    if let Some(reason) = coverage.truncated {
        write!(out, "  {WARN}incomplete: {reason}{WARN:#}")?;
    }
    writeln!(out)
}

/// What was found, in a line: `3 findings (deadlock 1, race 2)`.
#[must_use]
pub fn summary(outcome: &Outcome) -> String {
    let kinds = Kind::ALL.iter().filter_map(|&kind| {
        let of_kind = |reported: &&Reported| reported.finding.kind == kind;
        let count = outcome.findings.iter().filter(of_kind).count() as u64;
        (count > 0).then(|| format!("{kind} {count}"))
    });
    let kinds: Vec<String> = kinds.collect();
    let mut line = match outcome.findings.len() {
        0 => "nothing found".to_owned(),
        count => format!("{} ({})", counted(count as u64, "finding"), kinds.join(", ")),
    };
    if outcome.unshown > 0 {
        let pairs = counted(outcome.unshown, "location pair");
        let verb = if outcome.unshown == 1 { "is" } else { "are" };
        line += &format!("; {pairs} more {verb} unordered, no schedule known: --all lists them");
    }
    if !outcome.is_complete() {
        line += "; not everything was searched";
    }
    line
}
