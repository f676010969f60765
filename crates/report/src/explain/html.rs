//! An explanation as an HTML page that needs nothing else.

use std::io::{self, Write};

use reweave_analysis::Reported;
use reweave_trace::Trace;

use super::sides::Mark;
use super::{Explanation, Row, Side};
use crate::html::{evidence, explanation_page, foot, head};
use crate::shown::{markup, prose};
use crate::table::Extent;
use crate::text::size;
use crate::{Examined, title};

/// Writes a page on `reported`, one of the findings of `examined`.
///
/// # Errors
/// If `out` fails.
pub fn explanation_html(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    reported: &Reported,
) -> io::Result<()> {
    let explanation = Explanation::of(examined.trace, reported);
    let why = (explanation.why_heading().to_owned(), explanation.why.clone());
    explanation_page(out, examined, reported, why, |out| write_plain(out, examined, &explanation))
}

/// Writes what a reader without a script sees.
fn write_plain(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    explanation: &Explanation<'_>,
) -> io::Result<()> {
    let Examined { path, trace, .. } = *examined;
    let reported = explanation.reported;
    writeln!(out, "<h2>{}</h2>", markup(title(path)))?;
    writeln!(out, "<p class=\"soft\">{}</p>", size(trace))?;
    writeln!(out, "<article id=\"{}\">", reported.id)?;
    head(out, trace, reported)?;
    writeln!(out, "<h4>{}</h4>", explanation.why_heading())?;
    for paragraph in &explanation.why {
        writeln!(out, "<p>{}</p>", prose(paragraph))?;
    }
    if let Some(heading) = explanation.evidence_heading() {
        writeln!(out, "<h4>{heading}</h4>")?;
        evidence(out, trace, &reported.finding, Extent::FULL)?;
    }
    if let Some(sides) = &explanation.sides {
        writeln!(out, "<h4>Side by side</h4>\n<div class=\"scroll sides\">")?;
        write_side(out, trace, "as it happened", &sides.observed)?;
        write_side(out, trace, "in the schedule", &sides.scheduled)?;
        writeln!(out, "</div>")?;
    }
    foot(out, reported)?;
    writeln!(out, "</article>")
}

fn write_side(out: &mut dyn Write, trace: &Trace, title: &str, side: &Side) -> io::Result<()> {
    writeln!(out, "<table>\n<tr><th colspan=\"5\">{title}</th></tr>")?;
    let names = trace.names();
    for row in &side.rows {
        let it = match row {
            Row::Gap(note) => {
                writeln!(out, "<tr><td colspan=\"5\" class=\"soft\">{note}</td></tr>")?;
                continue;
            }
            Row::End(note) => {
                let note = markup(note);
                writeln!(out, "<tr class=\"fault\"><td colspan=\"5\">{note}</td></tr>")?;
                continue;
            }
            Row::Event(it) => it,
        };
        let event = trace.event(it.event);
        let class = if it.mark == Mark::None { "" } else { " class=\"fault\"" };
        writeln!(
            out,
            "<tr{class}><td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}</td>\
             <td class=\"step\">{}</td><td>{}</td></tr>",
            markup(it.mark.word()),
            it.event.number(),
            markup(names.threads.name(event.thread)),
            markup(&names.spell(event.op).to_string()),
            markup(&it.note)
        )?;
    }
    writeln!(out, "</table>")
}
