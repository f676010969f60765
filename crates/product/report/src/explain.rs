//! One finding in detail: what it is, why it is a fault, why the observed run did not show it, its
//! schedule with why each step of it is allowed, that schedule beside what was observed, and the usual
//! fix.
//!
//! The explanation is made once, as data, and then written as text, as HTML or as JSON.

mod argument;
mod fix;
mod misuse;
mod path;
mod steps;
mod stuck;
mod why;

use std::io::{self, Write};

use anstyle::Style;
use reweave_analysis::{Detail, Finding, Guarantee, Kind, Proof, Reported};
use reweave_trace::{EventId, Op, Trace};

use crate::alternatives::known_value;
use crate::finding::confirm_command;
use crate::html::{Argument, Part, StepPart, explanation_page};
use crate::schedule::{Extent, Seen, holds, observed};
use crate::shown::{LINE_MAX, clipped, shown, wrapped};
use crate::slice::{Drawn, Reach, Role, Row, Slice};
use crate::text::{self, BAD, BOLD, CELL_MAX, DIM, ReportState, size};
use crate::{Examined, counted, json, standing, title};

pub use steps::Step;

/// How many lines of code are shown on each side of the one that matters.
const CODE_AROUND: u32 = 2;

/// A finding with what there is to say about it.
#[derive(Debug)]
pub struct Explanation<'a> {
    /// The finding.
    pub reported: &'a Reported,
    /// Why it is a fault, why the run did not show it, and what relations say.
    pub sections: Vec<Section>,
    /// Why each step of its schedule is allowed, as far as they are shown.
    pub steps: Vec<Step>,
    /// What holds after the last step.
    pub ending: Vec<String>,
    /// What usually repairs it.
    pub fix: Vec<String>,
    /// The events that matter as they were observed, and as the schedule runs them.
    pub sides: Option<Slice>,
    /// What a variable ends with on both sides, for a finding on that.
    ends: Option<[String; 2]>,
}

/// A part of an explanation.
#[derive(Debug)]
pub struct Section {
    heading: &'static str,
    pub paragraphs: Vec<String>,
    /// Whether the paragraphs are lines that belong together.
    is_list: bool,
}

/// What introduces the circle of a deadlock.
const CIRCLE_HEADING: &str = "Who waits for whom";

/// What introduces why the run did not show it.
const NOT_SHOWN_HEADING: &str = "Why the observed run did not show it";

/// What introduces that another detector shows it, too.
const SHOWN_HEADING: &str = "Whether another detector reports it";

/// What introduces why each step is allowed.
const STEPS_HEADING: &str = "Why each step is allowed";

/// What introduces the usual fix.
const FIX_HEADING: &str = "How to fix it";

/// What the two orders are called where they stand side by side, and what each leaves out.
const SIDES: [(&str, &str); 2] = [("observed", "event"), ("predicted", "step")];

impl<'a> Explanation<'a> {
    fn new(trace: &Trace, reported: &'a Reported) -> Self {
        let finding = &reported.finding;
        // A state is reached by its events as they were observed: one table shows both.
        let proof = finding.evidence.proof().filter(|_| finding.detail.state().is_none());
        // What happened has no other order to put beside it.
        let compared = proof.filter(|_| !standing::happened(trace, finding));
        let sides = compared.map(|proof| {
            // What the argument names must be there to be seen.
            let named = argument::named(trace, proof);
            Slice::new(trace, finding, Reach::COMPARED, &named)
        });
        // Nor do its steps need an argument.
        let argued = proof.filter(|_| finding.guarantee() != Guarantee::Observed);
        Self {
            reported,
            sections: sections(trace, finding),
            steps: argued.map_or_else(Vec::new, |proof| steps::argued(trace, proof)),
            ending: argued.map_or_else(Vec::new, |proof| steps::ending(trace, proof)),
            fix: fix::paragraphs(trace, finding),
            sides,
            ends: proof.and_then(|proof| ends(trace, proof, &finding.detail)),
        }
    }

    /// Why it is a fault and what repairs it, for one finding among others; if `is_argued`, also who
    /// waits for whom and why the run did not show it.
    pub fn brief(trace: &Trace, reported: &'a Reported, is_argued: bool) -> Self {
        let finding = &reported.finding;
        let mut parts = vec![why(trace, finding)];
        if is_argued {
            parts.push((CIRCLE_HEADING, argument::circle(trace, finding)));
            parts.push(not_shown(trace, finding));
        }
        Self {
            reported,
            sections: said(parts),
            steps: Vec::new(),
            ending: Vec::new(),
            fix: fix::paragraphs(trace, finding),
            sides: None,
            ends: None,
        }
    }

    /// What introduces its state or its schedule; none if it has neither.
    fn evidence_heading(&self) -> Option<&'static str> {
        let finding = &self.reported.finding;
        match (finding.detail.state(), finding.evidence.proof()) {
            (Some(_), _) => Some("The state"),
            (None, Some(_)) if finding.guarantee() == Guarantee::Observed => {
                Some("How it happened")
            }
            (None, Some(_)) => Some("How it happens"),
            (None, None) => None,
        }
    }
}

/// The argument, but for the schedule.
fn sections(trace: &Trace, finding: &Finding) -> Vec<Section> {
    let relations = match (finding.kind, &finding.events[..]) {
        (Kind::Race, &[one, other]) => {
            let is_proven = finding.guarantee() == Guarantee::Witnessed;
            vec![argument::relations(trace, one.min(other), one.max(other), is_proven)]
        }
        _ => Vec::new(),
    };
    said(vec![
        why(trace, finding),
        (CIRCLE_HEADING, argument::circle(trace, finding)),
        not_shown(trace, finding),
        ("Which relations order the pair", relations),
    ])
}

/// What the thread of `event` does there, where a trace has only that it was there.
pub fn action(trace: &Trace, event: EventId) -> Option<String> {
    if !matches!(trace.event(event).op, Op::Marker(_)) {
        return None;
    }
    let waits = stuck::state(trace, event).filter(|state| state.starts_with("waits "));
    waits.or_else(|| misuse::action(trace, event)).map(str::to_owned)
}

/// Why the run did not show `finding`, with what introduces that.
fn not_shown(trace: &Trace, finding: &Finding) -> (&'static str, Vec<String>) {
    let heading = match argument::is_plain_race(trace, finding) {
        true => SHOWN_HEADING,
        false => NOT_SHOWN_HEADING,
    };
    (heading, argument::not_shown(trace, finding))
}

/// Why it is a fault, with what introduces that.
fn why(trace: &Trace, finding: &Finding) -> (&'static str, Vec<String>) {
    let heading = match finding.kind {
        // A state may be one that was hoped for.
        Kind::Predicate => "What the predicate says",
        _ => "Why it is a fault",
    };
    (heading, why::paragraphs(trace, finding))
}

/// Why `finding` is a fault and what usually repairs it, in paragraphs, without what its guarantee says.
pub fn why_and_fix(trace: &Trace, finding: &Finding) -> (Vec<String>, Vec<String>) {
    let mut why = why::paragraphs(trace, finding);
    // Whether it happened is said by itself.
    why.retain(|paragraph| paragraph != finding.guarantee().meaning());
    (why, fix::paragraphs(trace, finding))
}

/// Those of `parts` that say anything.
fn said(parts: Vec<(&'static str, Vec<String>)>) -> Vec<Section> {
    let parts = parts.into_iter().filter(|(_, paragraphs)| !paragraphs.is_empty());
    let is_list = |heading| heading == CIRCLE_HEADING;
    parts
        .map(|(heading, paragraphs)| Section { heading, paragraphs, is_list: is_list(heading) })
        .collect()
}

/// What a variable ends with as observed and in the schedule, for a finding on that.
fn ends(trace: &Trace, proof: &Proof, detail: &Detail) -> Option<[String; 2]> {
    let detail = detail.nondeterminism().filter(|detail| detail.read.is_none())?;
    let var = trace.event(detail.writer.or(detail.interfering)?).op.var()?;
    let name = trace.names().vars.name(var);
    let ends = [Seen::new(detail.writer), holds(trace, proof.reordering(), var)];
    Some(ends.map(|seen| {
        let value = seen.write().and_then(|write| known_value(trace, write));
        let value = value.map_or(String::new(), |value| format!(", value {value}"));
        format!("{name} ends with {seen}{value}")
    }))
}

/// How the role of an event is marked.
const fn mark(role: Role) -> &'static str {
    match role {
        Role::Step | Role::Ahead => "",
        Role::Fault => ">",
        Role::Next => "then",
        Role::Blocked => "waits",
        Role::Never => "never",
    }
}

/// The value of an event and what it sees, where they are known; else empty.
fn note(trace: &Trace, drawn: &Drawn) -> String {
    if !matches!(drawn.role, Role::Step | Role::Fault) {
        return String::new();
    }
    let event = drawn.event;
    let (source, origin) = match (drawn.sees, observed(trace, event)) {
        (Some(seen), Some(saw)) if seen != saw => (seen.write(), format!("sees {seen}, not {saw}")),
        (Some(seen), _) => (Some(event), format!("sees {seen}")),
        (None, _) => (Some(event), String::new()),
    };
    match source.and_then(|event| known_value(trace, event)) {
        None => origin,
        Some(value) if origin.is_empty() => format!("= {value}"),
        Some(value) => format!("= {value}, {origin}"),
    }
}

/// Writes the report on `reported` alone, one of the findings of `examined`, with why it is a fault.
///
/// # Errors
/// If `out` fails.
pub fn explanation_json(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    reported: &Reported,
) -> io::Result<()> {
    let explanation = Explanation::new(examined.trace, reported);
    json::write_json(out, &json::explained(examined, &explanation), usize::MAX)
}

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
    write_text(out, examined, &Explanation::new(examined.trace, reported))
}

fn write_text(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    explanation: &Explanation<'_>,
) -> io::Result<()> {
    let Examined { path, trace, .. } = examined;
    let reported = explanation.reported;
    writeln!(out, "{BOLD}{}{BOLD:#}: {}\n", shown(title(path)), size(trace))?;
    let mut state = ReportState::new(trace, CODE_AROUND).with_places();
    text::head(out, examined, reported, &mut state)?;
    for section in &explanation.sections {
        write_section(out, section.heading, &section.paragraphs, section.is_list)?;
    }
    if let Some(heading) = explanation.evidence_heading() {
        writeln!(out, "\n{BOLD}{heading}{BOLD:#}")?;
        text::evidence(out, examined, &reported.finding, Extent::FULL)?;
    }
    if reported.finding.evidence.proof().is_some() {
        writeln!(out, "  {DIM}{}{DIM:#}", reported.finding.guarantee().meaning())?;
    }
    if let Some(sides) = &explanation.sides {
        writeln!(out, "\n{BOLD}Side by side{BOLD:#}")?;
        write_sides(out, examined, sides, explanation.ends.as_ref())?;
    }
    write_steps(out, trace, explanation)?;
    if !explanation.fix.is_empty() {
        write_section(out, FIX_HEADING, &explanation.fix, false)?;
    }
    match confirm_command(examined, reported) {
        Some(command) => writeln!(out, "\n{DIM}next: {}{DIM:#}", shown(&command)),
        None => Ok(()),
    }
}

fn write_section(
    out: &mut dyn Write,
    heading: &str,
    paragraphs: &[String],
    is_list: bool,
) -> io::Result<()> {
    writeln!(out, "\n{BOLD}{heading}{BOLD:#}")?;
    for (at, paragraph) in paragraphs.iter().enumerate() {
        if at > 0 && !is_list {
            writeln!(out)?;
        }
        for line in wrapped(&shown(paragraph), LINE_MAX) {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

/// The thread of `event` and what it does, for a column.
fn cells(trace: &Trace, event: EventId) -> [String; 2] {
    let (names, event) = (trace.names(), trace.event(event));
    let op = names.spell(event.op).to_string();
    [names.threads.name(event.thread), &op].map(|text| clipped(text, CELL_MAX))
}

/// How wide the longest of `texts` is.
fn width(texts: impl Iterator<Item = String>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

/// Writes why each step is allowed, and what holds at the end.
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
    let [thread_width, op_width] =
        [0, 1].map(|at| width(steps.iter().map(|step| cells(trace, step.event)[at].clone())));
    let step_width = steps.last().map_or(0, |step| step.step.to_string().len()).max(4);
    for step in steps {
        if step.left_out > 0 {
            writeln!(out, "  {DIM}… {}{DIM:#}", counted(step.left_out as u64, "step"))?;
        }
        let number = step.step;
        let [thread, op] = cells(trace, step.event);
        writeln!(
            out,
            "  {number:>step_width$}  {thread:thread_width$}  {op:op_width$}  {DIM}{}{DIM:#}",
            shown(&step.reason.words(trace, step.event)),
        )?;
    }
    for line in explanation.ending.iter().flat_map(|text| wrapped(&shown(text), LINE_MAX)) {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

/// Writes both orders side by side, or one below the other if there is no room, and below each what a
/// variable `ends` with.
fn write_sides(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    sides: &Slice,
    ends: Option<&[String; 2]>,
) -> io::Result<()> {
    let mut columns = [(&sides.observed, SIDES[0]), (&sides.predicted, SIDES[1])].map(
        |(rows, (title, thing))| {
            let mut lines = vec![(format!("  {title}"), DIM)];
            lines.extend(side_lines(examined.trace, rows, thing));
            lines
        },
    );
    for (column, end) in columns.iter_mut().zip(ends.into_iter().flatten()) {
        column.push((format!("  {}", shown(end)), BAD));
    }
    let [left, right] = columns;
    let wide = |lines: &[(String, Style)]| width(lines.iter().map(|(text, _)| text.clone()));
    let left_width = wide(&left) + 3;
    if examined.width.is_some_and(|width| left_width + wide(&right) > width) {
        for (text, style) in left.iter().chain(&right) {
            writeln!(out, "{style}{text}{style:#}")?;
        }
        return Ok(());
    }
    let none = (String::new(), Style::new());
    for at in 0..left.len().max(right.len()) {
        let [(text, style), (other, other_style)] =
            [&left, &right].map(|lines| lines.get(at).unwrap_or(&none));
        write!(out, "{style}{text}{style:#}")?;
        if !other.is_empty() {
            let gap = left_width - text.chars().count();
            write!(out, "{:gap$}{other_style}{other}{other_style:#}", "")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The lines of one side, with how each is shown.
fn side_lines(trace: &Trace, rows: &[Row], thing: &str) -> Vec<(String, Style)> {
    let drawn = || rows.iter().filter_map(Row::drawn);
    let mark_width = width(drawn().map(|it| mark(it.role).to_owned()));
    let number_width = width(drawn().map(|it| it.event.number().to_string()));
    let [thread_width, op_width] =
        [0, 1].map(|at| width(drawn().map(|it| cells(trace, it.event)[at].clone())));
    let line = |row: &Row| match row {
        Row::Gap(count) => (format!("    … {}", counted(*count as u64, thing)), DIM),
        Row::Event(it) => {
            let (mark, number) = (mark(it.role), it.event.number());
            let [thread, op] = cells(trace, it.event);
            let text = format!(
                "  {mark:>mark_width$} {number:>number_width$}  {thread:thread_width$}  \
                 {op:op_width$}  {}",
                note(trace, it)
            );
            let style = if mark.is_empty() { Style::new() } else { BAD };
            (text.trim_end().to_owned(), style)
        }
    };
    rows.iter().map(line).collect()
}

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
    explanation_page(out, examined, &explanation, |out| write_text(out, examined, &explanation))
}

/// The argument of `explanation`, for a page.
pub fn argument(trace: &Trace, explanation: &Explanation<'_>) -> Argument {
    let part = |it: &Section| Part {
        heading: it.heading,
        steps: Vec::new(),
        paragraphs: it.paragraphs.clone(),
        is_list: it.is_list,
    };
    // Why it is a fault comes first wherever it is said.
    let (why, before) = match explanation.sections.split_first() {
        Some((why, before)) => (Some(why), before),
        None => (None, &[][..]),
    };
    let steps: Vec<StepPart> =
        explanation.steps.iter().map(|step| step_part(trace, step)).collect();
    let ending = explanation.ending.clone();
    let steps = (!steps.is_empty() || !ending.is_empty()).then_some(Part {
        heading: STEPS_HEADING,
        steps,
        paragraphs: ending,
        is_list: false,
    });
    let (paragraphs, fix) = why_and_fix(trace, &explanation.reported.finding);
    Argument {
        why_heading: why.map_or("", |why| why.heading),
        why: paragraphs,
        fix,
        before: before.iter().map(part).collect(),
        after: steps.into_iter().collect(),
    }
}

/// A step, who makes it, what happens, and why it may.
fn step_part(trace: &Trace, step: &Step) -> StepPart {
    let (event, names) = (trace.event(step.event), trace.names());
    StepPart {
        step: step.step,
        thread: names.threads.name(event.thread).to_owned(),
        op: names.spell(event.op).to_string(),
        reason: step.reason.words(trace, step.event),
    }
}
