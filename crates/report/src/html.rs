//! Findings as one HTML page that needs nothing else: no script, no network.

use std::io::{self, Write};

use reweave_analysis::{Proof, Reported};
use reweave_trace::Trace;

use crate::shown::markup;
use crate::site::Site;
use crate::table::{Row, Table, gap_note};
use crate::text::counters;
use crate::{Examined, Exhibit, assumption, counted, summary};

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
.scroll { overflow-x: auto; } table { border-collapse: collapse; margin: .5rem 0; }
th, td { text-align: left; padding: .15rem .7rem; border-bottom: 1px solid var(--line); }
td.number { text-align: right; color: var(--soft); }
code, td.step { font-family: ui-monospace, monospace; font-size: .92em; overflow-wrap: anywhere; }
tr.then { background: var(--band); } tr.then td.step { color: var(--bad); font-weight: bold; }
";

/// Writes a page on what was found in each of `examined`.
///
/// # Errors
/// If `out` fails.
pub fn html(out: &mut dyn Write, examined: &[Examined<'_>]) -> io::Result<()> {
    html_with(out, examined, &[])
}

/// Writes a page on what was found in each of `examined`, and on `exhibits`.
///
/// # Errors
/// If `out` fails.
pub fn html_with(
    out: &mut dyn Write,
    examined: &[Examined<'_>],
    exhibits: &[Exhibit<'_>],
) -> io::Result<()> {
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>reweave report</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>What else these runs could have done</h1>\n"
    )?;
    for examined in examined {
        section(out, examined)?;
    }
    for exhibit in exhibits {
        writeln!(out, "<article>\n<h3>{}</h3>", markup(exhibit.title))?;
        writeln!(out, "<p>{}</p>", markup(exhibit.message))?;
        proof(out, exhibit.trace, exhibit.proof)?;
        writeln!(out, "</article>")?;
    }
    writeln!(out, "</body>\n</html>")
}

fn section(out: &mut dyn Write, examined: &Examined<'_>) -> io::Result<()> {
    let Examined { path, trace, outcome } = examined;
    writeln!(out, "<section>\n<h2>{}</h2>", markup(path))?;
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
    for reported in &outcome.findings {
        finding(out, trace, reported)?;
    }
    coverage(out, examined)?;
    writeln!(out, "</section>")
}

fn finding(out: &mut dyn Write, trace: &Trace, reported: &Reported) -> io::Result<()> {
    let Reported { id, fingerprint, finding } = reported;
    let (kind, guarantee) = (finding.kind, finding.guarantee());
    writeln!(
        out,
        "<article>\n<h3>{id} <span class=\"kind\">{kind}</span> \
         <span class=\"guarantee\">{guarantee}</span></h3>\n<p>{}</p>",
        markup(&finding.message)
    )?;
    writeln!(out, "<ul>")?;
    for &event in &finding.events {
        let site = Site::of(trace, event);
        let (thread, op) = (markup(site.thread), markup(&site.op));
        write!(out, "<li>event {}, {thread}: <code>{op}</code>", site.number)?;
        if !site.location.is_empty() {
            write!(out, " at <code>{}</code>", markup(site.location))?;
        }
        writeln!(out, ", {}</li>", markup(&site.holding()))?;
    }
    writeln!(out, "</ul>")?;
    if finding.count > 1 {
        let instances = counted(finding.count, "instance");
        writeln!(out, "<p>{instances} at these locations.</p>")?;
    }
    if let Some(shown) = finding.evidence.proof() {
        proof(out, trace, shown)?;
    }
    let (meaning, analysis) = (guarantee.meaning(), finding.analysis);
    writeln!(
        out,
        "<p class=\"soft\">{meaning} Found by {analysis}; fingerprint {fingerprint}.</p>\n</article>"
    )
}

fn proof(out: &mut dyn Write, trace: &Trace, proof: &Proof) -> io::Result<()> {
    let table = Table::of(trace, proof);
    write!(out, "<div class=\"scroll\"><table>\n<tr><th>step</th><th>event</th>")?;
    for heading in table.headings() {
        write!(out, "<th>{}</th>", markup(heading))?;
    }
    writeln!(out, "<th>location</th></tr>")?;
    for &row in &table.rows {
        let (step, event, column) = match row {
            Row::Gap { count, first } => {
                let (width, note) = (table.threads.len() + 3, gap_note(count, first));
                writeln!(out, "<tr><td colspan=\"{width}\" class=\"soft\">{note}</td></tr>")?;
                continue;
            }
            Row::Event { step, event, column } => (step, event, column),
        };
        let (op, location) = table.cell(event);
        match step {
            Some(step) => write!(out, "<tr><td class=\"number\">{step}</td>")?,
            None => write!(out, "<tr class=\"then\"><td class=\"number\">then</td>")?,
        }
        write!(out, "<td class=\"number\">{}</td>", event.number())?;
        for other in 0..table.threads.len() {
            let text = if other == column { markup(&op) } else { String::new() };
            write!(out, "<td class=\"step\">{text}</td>")?;
        }
        writeln!(out, "<td><code>{}</code></td></tr>", markup(location))?;
    }
    writeln!(out, "</table></div>")?;
    match assumption(proof) {
        Some(assumption) => writeln!(out, "<p><strong>{assumption}</strong></p>"),
        None => Ok(()),
    }
}

fn coverage(out: &mut dyn Write, examined: &Examined<'_>) -> io::Result<()> {
    for coverage in &examined.outcome.coverage {
        write!(out, "<p class=\"soft\">{}", counters(coverage))?;
        if let Some(reason) = coverage.truncated {
            write!(out, " (incomplete: {reason})")?;
        }
        writeln!(out, "</p>")?;
    }
    Ok(())
}
