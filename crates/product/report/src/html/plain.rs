//! Findings as plain HTML, for readers without a script: sentences and tables.

use std::io::{self, Write};

use reweave_analysis::{Finding, Reported};
use reweave_trace::Trace;

use crate::alternatives::Choices;
use crate::confirmation;
use crate::left_out::{accounts, counters};
use crate::legend::Legend;
use crate::shown::{markup, prose};
use crate::site::{Site, holding_since};
use crate::state::{Known, Picture};
use crate::table::{Extent, Row, Table};
use crate::{Examined, GAP_HINT, counted, heading, instances_note, remarks, summary, title};

/// More findings than these are linked to from above.
const UNLINKED_MAX: usize = 5;

/// So many findings of a trace are shown in full, and the others in a line.
const FULL_MAX: usize = 100;

/// Writes what was found in each of `examined`.
pub(super) fn report(
    out: &mut dyn Write,
    examined: &[Examined<'_>],
    legends: &[Legend<'_>],
) -> io::Result<()> {
    for (at, (examined, legend)) in examined.iter().zip(legends).enumerate() {
        section(out, at, examined, legend)?;
    }
    Ok(())
}

/// What links to a finding call it: its id, unique among the traces of a page.
fn anchor(at: usize, id: &str) -> String {
    if at == 0 { id.to_owned() } else { format!("trace{}-{id}", at + 1) }
}

fn section(
    out: &mut dyn Write,
    at: usize,
    examined: &Examined<'_>,
    legend: &Legend<'_>,
) -> io::Result<()> {
    let Examined { path, trace, outcome, .. } = examined;
    writeln!(out, "<section>\n<h2>{}</h2>", markup(title(path)))?;
    let names = trace.names();
    let sizes = [
        counted(trace.len() as u64, "event"),
        counted(names.threads.len() as u64, "thread"),
        counted(names.locks.len() as u64, "lock"),
        counted(names.vars.len() as u64, "variable"),
    ];
    writeln!(out, "<p class=\"soft\">{}</p>", sizes.join(", "))?;
    writeln!(out, "<p><strong>{}</strong></p>", markup(&summary(outcome)))?;
    if !trace.repairs().is_empty() {
        let changes = counted(trace.repairs().len() as u64, "change");
        writeln!(out, "<p>This trace was repaired: {changes} made it well formed.</p>\n<ul>")?;
        for repair in trace.repairs() {
            writeln!(out, "<li>{}</li>", markup(&repair.to_string()))?;
        }
        writeln!(out, "</ul>")?;
    }
    if outcome.findings.len() > UNLINKED_MAX {
        writeln!(out, "<ul>")?;
        for (number, Reported { id, finding, .. }) in outcome.findings.iter().enumerate() {
            let (anchor, message) = (anchor(at, id), prose(&finding.message));
            if number < FULL_MAX {
                writeln!(out, "<li><a href=\"#{anchor}\">{id}</a> {message}</li>")?;
            } else {
                writeln!(out, "<li>{id} {message}</li>")?;
            }
        }
        writeln!(out, "</ul>")?;
    }
    for reported in outcome.findings.iter().take(FULL_MAX) {
        writeln!(out, "<article id=\"{}\">", anchor(at, &reported.id))?;
        head(out, trace, reported, legend)?;
        evidence(out, trace, &reported.finding, Extent::BRIEF)?;
        if let Some(replayed) = examined.replayed(&reported.id) {
            confirmation::write_html(out, replayed)?;
        }
        foot(out, reported)?;
        writeln!(out, "</article>")?;
    }
    coverage(out, examined)?;
    set_aside(out, examined)?;
    writeln!(out, "</section>")
}

/// Writes what a finding says, but for its schedule.
pub(crate) fn head(
    out: &mut dyn Write,
    trace: &Trace,
    reported: &Reported,
    legend: &Legend<'_>,
) -> io::Result<()> {
    let Reported { id, finding, .. } = reported;
    let (kind, guarantee) = (finding.kind, finding.guarantee());
    writeln!(
        out,
        "<h3>{id} <span class=\"kind\">{kind}</span> \
         <span class=\"guarantee\">{guarantee}</span></h3>\n<p>{}</p>",
        prose(&finding.message)
    )?;
    match finding.detail.state() {
        Some(state) => write_known(out, &Known::new(state))?,
        None => write_sites(out, trace, finding)?,
    }
    for line in legend.lines(finding) {
        writeln!(out, "<p class=\"soft\">{}.</p>", markup(&line))?;
    }
    if let Some(choices) = Choices::new(trace, finding) {
        write_choices(out, &choices)?;
    }
    if let Some(note) = instances_note(finding) {
        writeln!(out, "<p>{note}.</p>")?;
    }
    Ok(())
}

/// Writes the events at fault, each with what its thread holds.
fn write_sites(out: &mut dyn Write, trace: &Trace, finding: &Finding) -> io::Result<()> {
    writeln!(out, "<ul>")?;
    for &event in &finding.events {
        let site = Site::new(trace, event);
        let (thread, op) = (markup(site.thread), markup(&site.op));
        write!(out, "<li>event {}, {thread}: <code>{op}</code>", site.number)?;
        if !site.place().is_empty() {
            write!(out, " at <code>{}</code>", markup(&site.place()))?;
        }
        if let Some(function) = site.function() {
            write!(out, " in <code>{}</code>", markup(function))?;
        }
        write!(out, ", {}", markup(&holding_since(trace, event)))?;
        for frame in site.callers() {
            write!(out, "<br>from <code>{}</code>", markup(frame))?;
        }
        writeln!(out, "</li>")?;
    }
    writeln!(out, "</ul>")
}

/// Writes what a predicate speaks of, and what that is in a state.
fn write_known(out: &mut dyn Write, known: &Known<'_>) -> io::Result<()> {
    let Some(heading) = known.heading() else { return Ok(()) };
    writeln!(out, "<p>{heading}</p>\n<div class=\"scroll\"><table>")?;
    for (term, value) in &known.listed {
        let (term, value) = (markup(term), markup(value));
        writeln!(out, "<tr><td><code>{term}</code></td><td>{value}</td></tr>")?;
    }
    writeln!(out, "</table></div>")?;
    if let Some(note) = known.unlisted_note() {
        writeln!(out, "<p class=\"soft\">{note}</p>")?;
    }
    Ok(())
}

/// Writes what a read can see instead of what it saw.
fn write_choices(out: &mut dyn Write, choices: &Choices) -> io::Result<()> {
    writeln!(out, "<p>{}</p>\n<ul>", prose(&choices.heading))?;
    for choice in &choices.listed {
        write!(out, "<li>{}", markup(&choice.write))?;
        if let Some(silence) = &choice.silence {
            let silence = prose(silence);
            write!(out, "<br><strong>a race detector says nothing about this: {silence}</strong>")?;
        }
        writeln!(out, "</li>")?;
    }
    if choices.unlisted_count > 0 {
        writeln!(out, "<li class=\"soft\">and {} more</li>", choices.unlisted_count)?;
    }
    writeln!(out, "</ul>")?;
    if let Some(silence) = &choices.silence {
        let silence = prose(silence);
        writeln!(
            out,
            "<p><strong>A race detector says nothing about these: {silence}.</strong></p>"
        )?;
    }
    Ok(())
}

/// Writes how far a finding can be relied on, who made it and what it is called.
pub(crate) fn foot(out: &mut dyn Write, reported: &Reported) -> io::Result<()> {
    let Reported { fingerprint, finding, .. } = reported;
    let (meaning, analysis) = (finding.guarantee().meaning(), finding.analysis);
    writeln!(out, "<p class=\"soft\">{meaning} Found by {analysis}; fingerprint {fingerprint}.</p>")
}

/// Writes what a finding rests on: its state, or its schedule if there is one.
pub(crate) fn evidence(
    out: &mut dyn Write,
    trace: &Trace,
    finding: &Finding,
    extent: Extent,
) -> io::Result<()> {
    let accepted = finding.evidence.proof();
    match (Picture::new(trace, finding, extent), accepted) {
        (Some(picture), _) => {
            writeln!(out, "<p>{}</p>", picture.heading)?;
            write_table(out, &picture.table)?;
            for note in &picture.notes {
                writeln!(out, "<p>{}</p>", prose(note))?;
            }
        }
        (None, Some(accepted)) => {
            writeln!(out, "<p>{}</p>", heading(accepted))?;
            write_table(out, &Table::new(trace, accepted, extent))?;
        }
        (None, None) => {}
    }
    for remark in accepted.map_or_else(Vec::new, |accepted| remarks(trace, accepted)) {
        writeln!(out, "<p><strong>{remark}</strong></p>")?;
    }
    Ok(())
}

/// Writes what matters of a schedule as a table with a column per thread.
fn write_table(out: &mut dyn Write, table: &Table<'_>) -> io::Result<()> {
    let label_heading = table.label_heading();
    write!(out, "<div class=\"scroll\"><table>\n<tr><th>{label_heading}</th><th>event</th>")?;
    for heading in table.headings() {
        write!(out, "<th>{}</th>", markup(heading))?;
    }
    writeln!(out, "<th>location</th></tr>")?;
    for &row in &table.rows {
        let (label, event, column) = match row {
            Row::Line => {
                let width = table.threads.len() + 3;
                writeln!(out, "<tr class=\"state\"><td colspan=\"{width}\">the state</td></tr>")?;
                continue;
            }
            Row::Gap { count, place } => {
                let (width, note) = (table.threads.len() + 3, table.gap_note(count, place));
                writeln!(out, "<tr><td colspan=\"{width}\" class=\"soft\">{note}</td></tr>")?;
                continue;
            }
            Row::Event { label, event, column } => (label, event, column),
        };
        let (op, location) = table.cell(event);
        let class = if label.is_fault() { " class=\"fault\"" } else { "" };
        write!(out, "<tr{class}><td class=\"number\">{}</td>", markup(&label.as_str()))?;
        write!(out, "<td class=\"number\">{}</td>", event.number())?;
        for other in 0..table.threads.len() {
            let text = if other == column { markup(&op) } else { String::new() };
            write!(out, "<td class=\"step\">{text}</td>")?;
        }
        writeln!(out, "<td><code>{}</code></td></tr>", markup(&location))?;
    }
    writeln!(out, "</table></div>")?;
    if table.has_gaps() {
        writeln!(out, "<p class=\"soft\">{GAP_HINT}</p>")?;
    }
    Ok(())
}

fn coverage(out: &mut dyn Write, examined: &Examined<'_>) -> io::Result<()> {
    for (coverage, left_out) in accounts(examined.outcome) {
        write!(out, "<p class=\"soft\">{}", counters(coverage))?;
        if let Some(reason) = coverage.truncated {
            write!(out, " (incomplete: {reason})")?;
        }
        writeln!(out, "</p>")?;
        for sentence in left_out {
            writeln!(out, "<p>{sentence}.</p>")?;
        }
    }
    Ok(())
}

/// Writes what was found and is left out, since somebody said so.
fn set_aside(out: &mut dyn Write, examined: &Examined<'_>) -> io::Result<()> {
    let sentence = examined.set_aside.sentence();
    sentence.map_or(Ok(()), |sentence| writeln!(out, "<p>{sentence}</p>"))
}
