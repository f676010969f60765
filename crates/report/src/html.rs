//! Findings as one HTML page that needs nothing else: no script, no network.

use std::io::{self, Write};

use reweave_analysis::{Finding, Reported};
use reweave_trace::Trace;

use crate::alternatives::Choices;
use crate::confirmation;
use crate::left_out::{accounts, counters};
use crate::shown::{markup, prose};
use crate::site::Site;
use crate::state::{Known, Picture};
use crate::table::{Extent, Row, Table};
use crate::{Examined, GAP_HINT, counted, heading, instances_note, remarks, summary, title};

/// More findings than these are linked to from above.
const UNLINKED_MAX: usize = 5;

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #fdfdfb; --line: #d5d7db; --soft: #66707c;
  --bad: #b3261e; --good: #1b6e3c; --band: #f2efe6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6ea; --paper: #16181b; --line: #3a3f46;
  --soft: #97a1ad; --bad: #ff8a80; --good: #7fd6a0; --band: #23262b; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; overflow-wrap: anywhere; }
article { border: 1px solid var(--line); border-radius: 6px; padding: .25rem 1rem 1rem; margin: 1.25rem 0; }
h3 { margin: .75rem 0 .25rem; } h3 .kind { color: var(--bad); }
.guarantee { color: var(--good); font-weight: normal; } .soft { color: var(--soft); }
article, p, li { overflow-wrap: anywhere; } a { color: inherit; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; margin: .5rem 0; }
th, td { text-align: left; padding: .15rem .7rem; border-bottom: 1px solid var(--line); }
td.number { text-align: right; color: var(--soft); }
code, td.step { font-family: ui-monospace, monospace; font-size: .92em; }
th, td { white-space: nowrap; overflow-wrap: normal; }
@media (max-width: 30rem) { body { margin: 1rem auto; padding: 0 .6rem; }
  article { padding: .25rem .6rem .6rem; } th, td { padding: .15rem .4rem; } }
h4 { margin: 1.25rem 0 .25rem; } .sides { display: flex; flex-wrap: wrap; gap: 0 2.5rem; align-items: flex-start; }
tr.state td { text-align: center; color: var(--bad); border-top: 3px solid var(--bad); border-bottom: 0; }
tr.fault { background: var(--band); } tr.fault td.step { color: var(--bad); font-weight: bold; }
";

/// Writes a page on what was found in each of `examined`.
///
/// # Errors
/// If `out` fails.
pub fn html(out: &mut dyn Write, examined: &[Examined<'_>]) -> io::Result<()> {
    page(out, &page_title(examined), "What else these runs could have done", |out| {
        for (at, examined) in examined.iter().enumerate() {
            section(out, at, examined)?;
        }
        Ok(())
    })
}

/// Writes a page called `title`, with a `heading` and what `body` writes.
///
/// # Errors
/// If `out` or `body` fails.
pub fn page(
    out: &mut dyn Write,
    title: &str,
    heading: &str,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>{}</h1>\n",
        markup(title),
        markup(heading)
    )?;
    body(out)?;
    writeln!(out, "</body>\n</html>")
}

/// The name of the trace, or of the first of them.
fn page_title(examined: &[Examined<'_>]) -> String {
    match examined {
        [] => "reweave report".to_owned(),
        [only] => format!("{}: reweave report", title(only.path)),
        [first, more @ ..] => {
            format!("{} and {} more: reweave report", title(first.path), more.len())
        }
    }
}

/// What links to a finding call it: its id, unique among the traces of a page.
fn anchor(at: usize, id: &str) -> String {
    if at == 0 { id.to_owned() } else { format!("trace{}-{id}", at + 1) }
}

fn section(out: &mut dyn Write, at: usize, examined: &Examined<'_>) -> io::Result<()> {
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
        for Reported { id, finding, .. } in &outcome.findings {
            let (anchor, message) = (anchor(at, id), prose(&finding.message));
            writeln!(out, "<li><a href=\"#{anchor}\">{id}</a> {message}</li>")?;
        }
        writeln!(out, "</ul>")?;
    }
    for reported in &outcome.findings {
        writeln!(out, "<article id=\"{}\">", anchor(at, &reported.id))?;
        head(out, trace, reported)?;
        evidence(out, trace, &reported.finding, Extent::BRIEF)?;
        if let Some(replayed) = examined.replayed(&reported.id) {
            confirmation::write_html(out, replayed)?;
        }
        foot(out, reported)?;
        writeln!(out, "</article>")?;
    }
    coverage(out, examined)?;
    writeln!(out, "</section>")
}

/// Writes what a finding says, but for its schedule.
pub(crate) fn head(out: &mut dyn Write, trace: &Trace, reported: &Reported) -> io::Result<()> {
    let Reported { id, finding, .. } = reported;
    let (kind, guarantee) = (finding.kind, finding.guarantee());
    writeln!(
        out,
        "<h3>{id} <span class=\"kind\">{kind}</span> \
         <span class=\"guarantee\">{guarantee}</span></h3>\n<p>{}</p>",
        prose(&finding.message)
    )?;
    match finding.detail.state() {
        Some(state) => write_known(out, &Known::of(state))?,
        None => write_sites(out, trace, finding)?,
    }
    if let Some(choices) = Choices::of(trace, finding) {
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
        let site = Site::of(trace, event);
        let (thread, op) = (markup(site.thread), markup(&site.op));
        write!(out, "<li>event {}, {thread}: <code>{op}</code>", site.number)?;
        if !site.place().is_empty() {
            write!(out, " at <code>{}</code>", markup(&site.place()))?;
        }
        writeln!(out, ", {}</li>", markup(&site.holding()))?;
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
    match (Picture::of(trace, finding, extent), accepted) {
        (Some(picture), _) => {
            writeln!(out, "<p>{}</p>", picture.heading)?;
            write_table(out, &picture.table)?;
            for note in &picture.notes {
                writeln!(out, "<p>{}</p>", prose(note))?;
            }
        }
        (None, Some(accepted)) => {
            writeln!(out, "<p>{}</p>", heading(accepted))?;
            write_table(out, &Table::of(trace, accepted, extent))?;
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
        write!(out, "<tr{class}><td class=\"number\">{}</td>", markup(&label.word()))?;
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
