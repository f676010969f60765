//! An explanation as text, for a terminal.

use std::io::{self, Write};

use anstyle::Style;
use reweave_analysis::Reported;
use reweave_trace::Trace;

use super::sides::Mark;
use super::{Explanation, FIX_HEADING, Row, STEPS_HEADING, Section, Side, Sides, Step};
use crate::next;
use crate::shown::{LINE_MAX, clipped, shown, wrapped};
use crate::table::Extent;
use crate::text::{BAD, BOLD, CELL_MAX, DIM, Telling, evidence, head, size};
use crate::{Examined, counted, title};

/// How many lines of code are shown on each side of the one that matters.
const CODE_AROUND: u32 = 2;

/// Writes what there is to say about `reported`, one of the findings of `examined`, with colours;
/// the caller strips them where they are not wanted.
///
/// # Errors
/// If `out` fails.
pub fn explanation_text(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    reported: &Reported,
) -> io::Result<()> {
    let Examined { path, trace, .. } = examined;
    let explanation = Explanation::new(trace, reported);
    writeln!(out, "{BOLD}{}{BOLD:#}: {}\n", shown(title(path)), size(trace))?;
    head(out, examined, reported, &mut Telling::new(trace, CODE_AROUND))?;
    for section in &explanation.sections {
        write_section(out, section)?;
    }
    if let Some(heading) = explanation.evidence_heading() {
        writeln!(out, "\n{BOLD}{heading}{BOLD:#}")?;
        evidence(out, trace, &reported.finding, Extent::FULL)?;
    }
    if reported.finding.evidence.proof().is_some() {
        writeln!(out, "  {DIM}{}{DIM:#}", reported.finding.guarantee().meaning())?;
    }
    if let Some(sides) = &explanation.sides {
        writeln!(out, "\n{BOLD}Side by side{BOLD:#}")?;
        write_sides(out, trace, sides)?;
    }
    write_steps(out, trace, &explanation)?;
    if !explanation.fix.is_empty() {
        let paragraphs = explanation.fix.clone();
        write_section(out, &Section { heading: FIX_HEADING, paragraphs, is_list: false })?;
    }
    match next::confirm(examined, reported) {
        Some(command) => writeln!(out, "\n{DIM}next: {}{DIM:#}", shown(&command)),
        None => Ok(()),
    }
}

/// Writes paragraphs under a heading.
fn write_section(out: &mut dyn Write, section: &Section) -> io::Result<()> {
    writeln!(out, "\n{BOLD}{}{BOLD:#}", section.heading)?;
    for (at, paragraph) in section.paragraphs.iter().enumerate() {
        if at > 0 && !section.is_list {
            writeln!(out)?;
        }
        for line in wrapped(&shown(paragraph), LINE_MAX) {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

/// Writes why each step is allowed, and what is so at the end.
fn write_steps(
    out: &mut dyn Write,
    trace: &Trace,
    explanation: &Explanation<'_>,
) -> io::Result<()> {
    let steps = &explanation.steps;
    if steps.is_empty() && explanation.ending.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{BOLD}{STEPS_HEADING}{BOLD:#}")?;
    let names = trace.names();
    let thread =
        |step: &Step| clipped(names.threads.name(trace.event(step.event).thread), CELL_MAX);
    let op = |step: &Step| clipped(&names.spell(trace.event(step.event).op).to_string(), CELL_MAX);
    let width = |text: &dyn Fn(&Step) -> String| {
        steps.iter().map(|step| text(step).chars().count()).max().unwrap_or(0)
    };
    let (thread_width, op_width) = (width(&thread), width(&op));
    let step_width = steps.last().map_or(0, |step| step.step.to_string().len()).max(4);
    let mut last = 0;
    for step in steps {
        if step.step > last + 1 {
            writeln!(out, "  {DIM}… {}{DIM:#}", counted((step.step - last - 1) as u64, "step"))?;
        }
        last = step.step;
        writeln!(
            out,
            "  {:>step_width$}  {:thread_width$}  {:op_width$}  {DIM}{}{DIM:#}",
            step.step,
            thread(step),
            op(step),
            shown(&step.reason.words(trace, step.event)),
        )?;
    }
    for line in explanation.ending.iter().flat_map(|text| wrapped(&shown(text), LINE_MAX)) {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

/// A line of a side: what it says, and how.
struct Line {
    text: String,
    style: Style,
}

fn write_sides(out: &mut dyn Write, trace: &Trace, sides: &Sides) -> io::Result<()> {
    let [left, right] = [&sides.observed, &sides.scheduled].map(|side| lines(trace, side));
    let titles = ["  as it happened", "  in the schedule"];
    let widths = left.iter().map(|line| line.text.chars().count());
    let width = widths.chain([titles[0].len()]).max().unwrap_or(0) + 3;
    writeln!(out, "{DIM}{:width$}{}{DIM:#}", titles[0], titles[1])?;
    let none = Line { text: String::new(), style: Style::new() };
    for at in 0..left.len().max(right.len()) {
        let [left, right] = [&left, &right].map(|lines| lines.get(at).unwrap_or(&none));
        let style = left.style;
        write!(out, "{style}{}{style:#}", left.text)?;
        if !right.text.is_empty() {
            let (style, gap) = (right.style, width - left.text.chars().count());
            write!(out, "{:gap$}{style}{}{style:#}", "", right.text)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn lines(trace: &Trace, side: &Side) -> Vec<Line> {
    let names = trace.names();
    let events = || {
        side.rows.iter().filter_map(|row| match row {
            Row::Event(event) => Some(event),
            Row::Gap(_) | Row::End(_) => None,
        })
    };
    let thread = |event| clipped(names.threads.name(trace.event(event).thread), CELL_MAX);
    let op = |event| clipped(&names.spell(trace.event(event).op).to_string(), CELL_MAX);
    let mark_width = events().map(|it| it.mark.as_str().len()).max().unwrap_or(0);
    let number_width = events().map(|it| it.event.number().to_string().len()).max().unwrap_or(0);
    let thread_width = events().map(|it| thread(it.event).chars().count()).max().unwrap_or(0);
    let op_width = events().map(|it| op(it.event).chars().count()).max().unwrap_or(0);
    let line = |row: &Row| match row {
        Row::Gap(note) => Line { text: format!("    {note}"), style: DIM },
        Row::End(note) => Line { text: format!("  {}", shown(note)), style: BAD },
        Row::Event(it) => {
            let (mark, number) = (it.mark.as_str(), it.event.number());
            let (thread, op, note) = (thread(it.event), op(it.event), it.note.as_str());
            let text = format!(
                "  {mark:>mark_width$} {number:>number_width$}  {thread:thread_width$}  \
                 {op:op_width$}  {note}"
            );
            let style = if it.mark == Mark::None { Style::new() } else { BAD };
            Line { text: text.trim_end().to_owned(), style }
        }
    };
    side.rows.iter().map(line).collect()
}
