//! An explanation as an HTML page that needs nothing else.

use std::io::{self, Write};

use reweave_analysis::Reported;
use reweave_trace::Trace;

use super::sides::Mark;
use super::{Explanation, FIX_HEADING, Row, STEPS_HEADING, Side, Step};
use crate::html::{Argument, Part, evidence, explanation_page, foot, head};
use crate::legend::Legend;
use crate::shown::{markup, prose, shown};
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
    let explanation = Explanation::new(examined.trace, reported);
    let argument = || argument(examined.trace, &explanation);
    explanation_page(out, examined, reported, argument(), |out| {
        write_plain(out, examined, &explanation, &argument())
    })
}

/// What is said before the schedule, and after it.
fn argument(trace: &Trace, explanation: &Explanation<'_>) -> Argument {
    let part = |heading, steps, paragraphs: &[String], is_list| {
        let paragraphs = paragraphs.iter().map(|text| shown(text).into_owned()).collect();
        Part { heading, steps, paragraphs, is_list }
    };
    let sections = explanation.sections.iter();
    let before =
        sections.map(|it| part(it.heading, Vec::new(), &it.paragraphs, it.is_list)).collect();
    let steps = explanation.steps.iter().map(|step| step_cells(trace, step)).collect();
    let after = [
        part(STEPS_HEADING, steps, &explanation.ending, false),
        part(FIX_HEADING, Vec::new(), &explanation.fix, false),
    ];
    let is_said = |part: &Part| !part.steps.is_empty() || !part.paragraphs.is_empty();
    Argument { before, after: after.into_iter().filter(is_said).collect() }
}

/// A step, who makes it, what happens, and why it may.
fn step_cells(trace: &Trace, step: &Step) -> [String; 4] {
    let (event, names) = (trace.event(step.event), trace.names());
    let thread = names.threads.name(event.thread);
    let reason = step.reason.words(trace, step.event);
    let texts =
        [thread, &names.spell(event.op).to_string(), &reason].map(|it| shown(it).into_owned());
    let [thread, op, reason] = texts;
    [step.step.to_string(), thread, op, reason]
}

/// Writes what a reader without a script sees.
fn write_plain(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    explanation: &Explanation<'_>,
    argument: &Argument,
) -> io::Result<()> {
    let Examined { path, trace, .. } = *examined;
    let reported = explanation.reported;
    writeln!(out, "<h2>{}</h2>", markup(title(path)))?;
    writeln!(out, "<p class=\"soft\">{}</p>", size(trace))?;
    writeln!(out, "<article id=\"{}\">", reported.id)?;
    head(out, trace, reported, &Legend::new(trace))?;
    argument.before.iter().try_for_each(|part| write_part(out, part))?;
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
    argument.after.iter().try_for_each(|part| write_part(out, part))?;
    foot(out, reported)?;
    writeln!(out, "</article>")
}

fn write_part(out: &mut dyn Write, part: &Part) -> io::Result<()> {
    writeln!(out, "<h4>{}</h4>", part.heading)?;
    if !part.steps.is_empty() {
        writeln!(
            out,
            "<div class=\"scroll\"><table>\n\
             <tr><th>step</th><th>thread</th><th>event</th><th>why</th></tr>"
        )?;
        for step in &part.steps {
            let [step, thread, op, reason] = step.each_ref().map(|text| markup(text));
            writeln!(
                out,
                "<tr><td class=\"number\">{step}</td><td>{thread}</td>\
                 <td class=\"step\">{op}</td><td>{reason}</td></tr>"
            )?;
        }
        writeln!(out, "</table></div>")?;
    }
    if part.is_list {
        writeln!(out, "<ul>")?;
    }
    let tag = if part.is_list { "li" } else { "p" };
    for paragraph in &part.paragraphs {
        writeln!(out, "<{tag}>{}</{tag}>", prose(paragraph))?;
    }
    if part.is_list { writeln!(out, "</ul>") } else { Ok(()) }
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
            markup(it.mark.as_str()),
            it.event.number(),
            markup(names.threads.name(event.thread)),
            markup(&names.spell(event.op).to_string()),
            markup(&it.note)
        )?;
    }
    writeln!(out, "</table>")
}
