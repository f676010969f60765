//! Findings as text, for a terminal.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use reweave_analysis::{Coverage, Finding, Guarantee, Kind, Outcome, Reported};
use reweave_trace::{EventId, Trace};

use crate::alternatives::{Choices, variable};
use crate::confirmation;
use crate::finding::{
    confirm_command, explain_command, heading, instances_note, more_command, remarks,
};
use crate::left_out::{accounts, counters, refuted_cycles};
use crate::legend::Legend;
use crate::places::{ALL_PLACES_MAX, PLACES_MAX, Places, listed_note, traces_note};
use crate::related::related;
use crate::rerun::record_line;
use crate::schedule::{Extent, Row, Table};
use crate::shown::{LINE_MAX, clipped, clipped_op, shown, wrapped};
use crate::site::{Site, brief_place, holding_since};
use crate::sources::{Mark, Said, pieces, write_piece};
use crate::state::{self as global_state, Known, Picture};
use crate::{Examined, SetAside, counted, narrow, title};

pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const BAD: Style = AnsiColor::Red.on_default().bold();
pub const GOOD: Style = AnsiColor::Green.on_default();
pub const WARN: Style = AnsiColor::Yellow.on_default();

/// More findings than these are listed once more, in a line each.
const UNLISTED_MAX: usize = 10;

/// How many lines of code are shown on each side of the one that matters.
pub const CODE_AROUND: u32 = 1;

/// The code of so many events of a finding is shown.
const CODE_MAX: usize = 4;

/// How many calls that led to an event are shown.
const CALLERS_MAX: usize = 6;

/// How many other findings are named that the commands for the first work for.
const SAME_MAX: usize = 5;

/// How wide a thread's column gets in a table.
pub const CELL_MAX: usize = 32;

/// How wide the column of steps is at least.
const LABEL_MIN: usize = 6;

/// How wide the column of events is.
const NUMBER_WIDTH: usize = 10;

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
    let Examined { trace, outcome, .. } = examined;
    opening(out, examined)?;
    let mut state = ReportState::new(trace, CODE_AROUND);
    for reported in &outcome.findings {
        writeln!(out)?;
        finding(out, examined, reported, &mut state)?;
    }
    writeln!(out)?;
    if outcome.findings.len() > UNLISTED_MAX {
        for reported in &outcome.findings {
            finding_line(out, trace, reported)?;
        }
        writeln!(out)?;
    }
    closing(out, examined)
}

/// Writes what is examined, and how it was repaired.
pub fn opening(out: &mut dyn Write, examined: &Examined<'_>) -> io::Result<()> {
    let Examined { path, trace, .. } = examined;
    writeln!(out, "{BOLD}{}{BOLD:#}: {}", shown(title(path)), size(trace))?;
    let repairs = trace.repairs();
    if !repairs.is_empty() {
        let changes = counted(repairs.len() as u64, "change");
        writeln!(out, "{WARN}repaired{WARN:#}: {changes} made this trace well formed")?;
        for repair in repairs {
            writeln!(out, "  {}", shown(&repair.to_string()))?;
        }
    }
    Ok(())
}

/// Writes what to do next, how far the search went, and how much was found.
pub fn closing(out: &mut dyn Write, examined: &Examined<'_>) -> io::Result<()> {
    let outcome = examined.outcome;
    match outcome.findings.first() {
        Some(first) => write_next(out, examined, first)?,
        None if outcome.listed.is_empty() => write_other_runs(out, examined)?,
        None => {}
    }
    for (coverage, left_out) in accounts(outcome) {
        coverage_line(out, coverage)?;
        for sentence in left_out.into_iter().chain(refuted_cycles(coverage)) {
            writeln!(out, "  {sentence}")?;
        }
    }
    writeln!(out, "{BOLD}{}{BOLD:#}", summary(outcome, examined.set_aside))?;
    if let Some(note) = listed_note(outcome) {
        writeln!(out, "{}", shown(&note))?;
    }
    match examined.set_aside.sentence() {
        Some(sentence) => writeln!(out, "{sentence}"),
        None => Ok(()),
    }
}

/// What `write` writes, without its colours.
pub fn uncoloured(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<String> {
    let mut text = Vec::new();
    write(&mut text)?;
    Ok(anstream::adapter::strip_str(&String::from_utf8_lossy(&text)).to_string())
}

/// Writes the commands that explain `reported`, and that replay it, and for which other findings they work.
fn write_next(out: &mut dyn Write, examined: &Examined<'_>, reported: &Reported) -> io::Result<()> {
    let commands = [explain_command(examined, reported), confirm_command(examined, reported)];
    write_commands(out, commands)?;
    match same_commands(examined, reported) {
        // It starts where no command does.
        Some(ids) => writeln!(out, "{DIM}(the same with {ids}){DIM:#}"),
        None => Ok(()),
    }
}

/// The first ids of other findings that can be put in the commands for `reported`; none if there is no such one.
fn same_commands(examined: &Examined<'_>, reported: &Reported) -> Option<String> {
    let commands = |it: &Reported| {
        // Two that differ in nothing but the id are one command.
        let blank = |command: String| command.replace(&format!(" {}", it.id), " ");
        [explain_command(examined, it), confirm_command(examined, it)].map(|it| it.map(blank))
    };
    let own = commands(reported);
    own[0].as_ref()?;
    let others = examined.outcome.findings.iter().filter(|it| it.id != reported.id);
    let mut ids = others.filter(|it| commands(it) == own).map(|it| &*it.id);
    let mut first: Vec<&str> = ids.by_ref().take(SAME_MAX).collect();
    first.extend(ids.next().map(|_| "…"));
    (!first.is_empty()).then(|| first.join(", "))
}

/// Writes where else to look if nothing was found in a recorded run.
fn write_other_runs(out: &mut dyn Write, examined: &Examined<'_>) -> io::Result<()> {
    let ran =
        |family: &str| examined.outcome.coverage.iter().any(|it| it.analysis.starts_with(family));
    // Another run is worth trying only if this one was searched in full.
    let is_whole = ran("races.") && ran("deadlocks.") && examined.outcome.is_complete();
    if examined.trace.origins().is_none() || !is_whole {
        return Ok(());
    }
    writeln!(out, "{DIM}Another schedule of the program may show more.{DIM:#}")?;
    let more = if ran("determinism.") { None } else { more_command(examined) };
    write_commands(out, [record_line(examined), more])
}

/// Writes commands to type next.
fn write_commands(out: &mut dyn Write, commands: [Option<String>; 2]) -> io::Result<()> {
    for (at, command) in commands.into_iter().flatten().enumerate() {
        let word = if at == 0 { "next:" } else { "" };
        writeln!(out, "{DIM}{word:5} {}{DIM:#}", shown(&command))?;
    }
    Ok(())
}

/// What was said so far in a report, and how much code it shows.
#[derive(Debug)]
pub struct ReportState<'t> {
    legend: Legend<'t>,
    said: Said,
    around: u32,
    places_max: usize,
}

impl<'t> ReportState<'t> {
    /// Nothing was said yet of `trace`; code is shown with up to `around` lines on each side.
    pub fn new(trace: &'t Trace, around: u32) -> Self {
        let (legend, said) = (Legend::new(trace), Said::default());
        Self { legend, said, around, places_max: PLACES_MAX }
    }

    /// The same, where the other places of a fault have room.
    pub fn with_places(self) -> Self {
        Self { places_max: ALL_PLACES_MAX, ..self }
    }
}

pub fn size(trace: &Trace) -> String {
    let names = trace.names();
    format!(
        "{}, {}, {}, {}",
        counted(trace.len() as u64, "event"),
        counted(names.threads.len() as u64, "thread"),
        counted(names.locks.len() as u64, "lock"),
        counted(names.vars.len() as u64, "variable"),
    )
}

/// A finding in a line: its id, where, on what, and for how many it stands.
fn finding_line(out: &mut dyn Write, trace: &Trace, reported: &Reported) -> io::Result<()> {
    let Reported { id, finding, .. } = reported;
    let count = reported.count();
    let state_line = || finding.detail.state().map(global_state::line);
    let line = reading_line(trace, finding).or_else(state_line);
    let line = line.unwrap_or_else(|| sites_line(trace, finding));
    writeln!(out, "{BAD}{id:<6}{BAD:#} {line}, count {count}")
}

/// What the events at fault do, and where.
pub fn sites_line(trace: &Trace, finding: &Finding) -> String {
    let sites = || finding.events.iter().map(|&event| Site::new(trace, event));
    let mut places: Vec<String> =
        sites().map(|site| brief_place(site.location)).filter(|it| !it.is_empty()).collect();
    places.dedup();
    let mut ops: Vec<String> = sites().map(|site| clipped_op(&site.op, CELL_MAX)).collect();
    ops.dedup();
    let place = if places.is_empty() { "" } else { " at " };
    format!("{}{place}{}", ops.join(" and "), places.join(" and "))
}

/// Writes what there is to say of one finding.
pub fn finding(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    reported: &Reported,
    state: &mut ReportState<'_>,
) -> io::Result<()> {
    head(out, examined, reported, state)?;
    evidence(out, examined, &reported.finding, Extent::BRIEF)?;
    writeln!(out, "  {DIM}{}{DIM:#}", reported.finding.guarantee().meaning())?;
    let replayed = examined.replayed(&reported.id);
    replayed.map_or(Ok(()), |replayed| confirmation::write_text(out, replayed))
}

/// For a finding on what a read can see, what and where it reads, and what it can see.
fn reading_line(trace: &Trace, finding: &Finding) -> Option<String> {
    let detail = finding.detail.nondeterminism()?;
    let spelled = |event: EventId| {
        let site = Site::new(trace, event);
        let (op, place) = (clipped_op(&site.op, CELL_MAX), brief_place(site.location));
        if place.is_empty() { op } else { format!("{op} at {place}") }
    };
    let can = if finding.evidence.proof().is_some() { "can" } else { "might" };
    let reads = match detail.read {
        Some(read) => format!("{} {can} see ", spelled(read)),
        None => format!("{} {can} end with ", clipped(variable(trace, detail)?, CELL_MAX)),
    };
    let sees = detail.interfering.map_or_else(|| "the initial value".to_owned(), spelled);
    let more = match detail.others.len() {
        0 => String::new(),
        count => format!(" and {}", counted(count as u64, "other")),
    };
    Some(reads + &sees + &more)
}

/// Writes what a finding says, but for its schedule.
pub fn head(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    reported: &Reported,
    state: &mut ReportState<'_>,
) -> io::Result<()> {
    let trace = examined.trace;
    let Reported { id, fingerprint, finding, .. } = reported;
    let (kind, guarantee) = (finding.kind, finding.guarantee());
    let sure = match guarantee {
        Guarantee::Observed | Guarantee::Witnessed | Guarantee::Decided => GOOD,
        Guarantee::First | Guarantee::Unordered => WARN,
    };
    writeln!(
        out,
        "{BAD}{id} {kind}{BAD:#}  {sure}{guarantee}{sure:#}  {DIM}{} {fingerprint}{DIM:#}",
        finding.analysis
    )?;
    writeln!(out, "  {}", shown(&finding.message))?;
    match finding.detail.state() {
        Some(state) => write_known(out, &Known::new(state))?,
        None => write_sites(out, examined, finding, state)?,
    }
    if let Some(choices) = Choices::new(trace, finding) {
        write_choices(out, &choices)?;
    }
    // The list of places says as much, unless there are several instances at one.
    let is_said = !reported.places.is_empty() && reported.findings().all(|it| it.count == 1);
    if let Some(note) = instances_note(reported).filter(|_| !is_said) {
        writeln!(out, "  {note}")?;
    }
    if let Some(places) = Places::new(trace, reported, state.places_max) {
        write_places(out, &places)?;
    }
    if let Some(note) = traces_note(reported) {
        writeln!(out, "  {}", shown(&note))?;
    }
    Ok(())
}

/// Writes where else a fault is.
fn write_places(out: &mut dyn Write, places: &Places) -> io::Result<()> {
    writeln!(out, "  {}", places.heading)?;
    for line in &places.lines {
        writeln!(out, "    {line}")?;
    }
    match places.unlisted_note() {
        Some(note) => writeln!(out, "    {DIM}{note}{DIM:#}"),
        None => Ok(()),
    }
}

/// Writes the events at fault, each with what its thread holds, who called it and the code there;
/// then who started the threads, and what made-up names mean.
fn write_sites(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    finding: &Finding,
    state: &mut ReportState<'_>,
) -> io::Result<()> {
    let Examined { trace, sources, .. } = *examined;
    // Who waits for ever is half of a lost wake-up; the other half is the notify that nobody waits for.
    let related = if finding.kind == Kind::Stuck { related(trace, finding) } else { Vec::new() };
    let notes = std::iter::repeat_n("", finding.events.len());
    let notes = notes.chain(related.iter().map(|it| &*it.what));
    let events: Vec<EventId> =
        finding.events.iter().copied().chain(related.iter().map(|it| it.event)).collect();
    let sites: Vec<Site<'_>> = events.iter().map(|&id| Site::new(trace, id)).collect();
    // A finding can have many events; code of a few of them is enough to recognise it.
    let marks: Vec<Mark<'_>> = sites
        .iter()
        .take(CODE_MAX)
        .map(|site| Mark { who: site.thread, location: site.location })
        .collect();
    let pieces = pieces(&marks);
    for (at, ((site, &event), note)) in sites.iter().zip(&events).zip(notes).enumerate() {
        write_site(out, trace, event, site, note)?;
        // Code that several share comes after the last of them.
        let ending = pieces.iter().filter(|piece| piece.last() == Some(&at));
        for piece in ending {
            write_piece(out, sources, &marks, piece, state.around, &mut state.said)?;
        }
    }
    for line in state.legend.lines(finding) {
        writeln!(out, "  {DIM}{line}{DIM:#}")?;
    }
    Ok(())
}

/// Writes one event that a finding is about, with what there is to note, and who called it.
fn write_site(
    out: &mut dyn Write,
    trace: &Trace,
    event: EventId,
    site: &Site<'_>,
    note: &str,
) -> io::Result<()> {
    let function = site.function().map_or(String::new(), |name| format!(" in {name}"));
    let separator = if note.is_empty() { "" } else { ": " };
    let held = holding_since(trace, event);
    let line = format!("{}{function}, {held}{separator}{note}", site.line());
    writeln!(out, "    {}", shown(&line))?;
    let callers = site.callers();
    // The line `and N more` takes the place of the last one.
    let shown_count = if callers.len() <= CALLERS_MAX { callers.len() } else { CALLERS_MAX - 1 };
    for frame in &callers[..shown_count] {
        writeln!(out, "      {DIM}from {}{DIM:#}", shown(frame))?;
    }
    match callers.len() - shown_count {
        0 => Ok(()),
        more => writeln!(out, "      {DIM}and {more} more{DIM:#}"),
    }
}

/// Writes what a predicate speaks of, and what that is in a state.
fn write_known(out: &mut dyn Write, known: &Known<'_>) -> io::Result<()> {
    let Some(heading) = known.heading() else { return Ok(()) };
    writeln!(out, "  {heading}")?;
    let terms: Vec<String> = known.listed.iter().map(|(term, _)| clipped(term, CELL_MAX)).collect();
    let width = terms.iter().map(|term| term.chars().count()).max().unwrap_or(0);
    for (term, (_, value)) in terms.iter().zip(&known.listed) {
        writeln!(out, "    {term:width$}  {}", clipped(value, CELL_MAX))?;
    }
    if let Some(note) = known.unlisted_note() {
        writeln!(out, "    {DIM}{note}{DIM:#}")?;
    }
    Ok(())
}

/// Writes what a read can see instead of what it saw.
fn write_choices(out: &mut dyn Write, choices: &Choices) -> io::Result<()> {
    writeln!(out, "  {}", shown(&choices.heading))?;
    for choice in &choices.listed {
        writeln!(out, "    {}", shown(&choice.write))?;
        if let Some(silence) = &choice.silence {
            let silence = shown(silence);
            writeln!(out, "      {WARN}race detectors do not report this: {silence}{WARN:#}")?;
        }
    }
    if choices.unlisted_count > 0 {
        writeln!(out, "    {DIM}and {} more{DIM:#}", choices.unlisted_count)?;
    }
    if let Some(silence) = &choices.silence {
        let silence = shown(silence);
        writeln!(out, "  {WARN}Race detectors do not report these: {silence}{WARN:#}")?;
    }
    Ok(())
}

/// Writes what a finding rests on: its state, or its schedule if there is one.
pub fn evidence(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    finding: &Finding,
    extent: Extent,
) -> io::Result<()> {
    let Examined { trace, width, .. } = *examined;
    let extent = if examined.is_full { Extent::WHOLE } else { extent };
    let accepted = finding.evidence.proof();
    match (Picture::new(trace, finding, extent), accepted) {
        (Some(picture), _) => {
            writeln!(out, "  {}", picture.heading)?;
            write_table(out, &picture.table, width)?;
            for line in picture.notes.iter().flat_map(|note| wrapped(note, LINE_MAX)) {
                writeln!(out, "  {line}")?;
            }
        }
        (None, Some(accepted)) => {
            writeln!(out, "  {}", heading(finding, accepted))?;
            write_table(out, &Table::new(trace, accepted, extent), width)?;
        }
        (None, None) => {}
    }
    for remark in accepted.map_or_else(Vec::new, |accepted| remarks(trace, accepted)) {
        writeln!(out, "  {WARN}{remark}{WARN:#}")?;
    }
    Ok(())
}

/// Writes what matters of a schedule as a table with a column per thread, or, if that is wider than
/// `width`, with a line per event.
pub fn write_table(out: &mut dyn Write, table: &Table<'_>, width: Option<usize>) -> io::Result<()> {
    let headings: Vec<String> =
        table.headings().iter().map(|name| clipped(name, CELL_MAX)).collect();
    let mut widths: Vec<usize> = headings.iter().map(|heading| heading.chars().count()).collect();
    for row in &table.rows {
        if let &Row::Event { event, column, .. } = row {
            let op = clipped_op(&table.cell(event).0, CELL_MAX);
            widths[column] = widths[column].max(op.chars().count());
        }
    }
    let label_width = label_width(table);
    let columns: usize = widths.iter().map(|width| 2 + width).sum();
    let needed = 2 + label_width + NUMBER_WIDTH + columns + 2 + narrow::locations_width(table);
    if width.is_some_and(|width| needed > width) {
        return narrow::write_table(out, table, label_width);
    }
    write!(out, "  {DIM}{:>label_width$}{:>NUMBER_WIDTH$}{DIM:#}", table.label_heading(), "event")?;
    for (at, (heading, &width)) in headings.iter().zip(&widths).enumerate() {
        // No blanks at the end of a line.
        let width = if at + 1 == widths.len() { 0 } else { width };
        write!(out, "  {BOLD}{heading:width$}{BOLD:#}")?;
    }
    writeln!(out)?;
    for &row in &table.rows {
        table_row(out, table, label_width, &widths, row)?;
    }
    match table.hint() {
        Some(hint) => writeln!(out, "  {DIM}{hint}{DIM:#}"),
        None => Ok(()),
    }
}

/// How wide the column of steps is.
fn label_width(table: &Table<'_>) -> usize {
    let labels = table.rows.iter().map(|row| match row {
        Row::Event { label, .. } => label.as_str().len(),
        Row::Gap { .. } | Row::Line => 0,
    });
    labels.max().unwrap_or(0).max(LABEL_MIN)
}

fn table_row(
    out: &mut dyn Write,
    table: &Table<'_>,
    label_width: usize,
    widths: &[usize],
    row: Row,
) -> io::Result<()> {
    let (label, event, column) = match row {
        Row::Gap { count, place } => {
            return writeln!(out, "  {DIM}{}{DIM:#}", table.gap_note(count, place));
        }
        Row::Line => {
            let columns: usize = widths.iter().map(|width| 2 + width).sum();
            let line = format!("{:─^1$}", " the state ", label_width + NUMBER_WIDTH + columns);
            return writeln!(out, "  {BAD}{line}{BAD:#}");
        }
        Row::Event { label, event, column } => (label, event, column),
    };
    let (op, location) = table.cell(event);
    let (op, location) = (clipped_op(&op, CELL_MAX), brief_place(&location));
    let style = if label.is_fault() { BAD } else { Style::new() };
    write!(
        out,
        "  {style}{:>label_width$}{style:#}{:>NUMBER_WIDTH$}",
        label.as_str(),
        event.number()
    )?;
    let before: usize = widths[..column].iter().map(|width| 2 + width).sum();
    write!(out, "{:before$}  {style}{op}{style:#}", "")?;
    if !location.is_empty() {
        let rest = widths[column] - op.chars().count();
        let after: usize = widths[column + 1..].iter().map(|width| 2 + width).sum();
        write!(out, "{:1$}  {DIM}{location}{DIM:#}", "", rest + after)?;
    }
    writeln!(out)
}

fn coverage_line(out: &mut dyn Write, coverage: &Coverage) -> io::Result<()> {
    write!(out, "{DIM}{}{DIM:#}", counters(coverage))?;
    if let Some(reason) = coverage.truncated {
        write!(out, "  {WARN}incomplete: {reason}{WARN:#}")?;
    }
    writeln!(out)
}

/// What was found, in a line: `3 findings (deadlock 1, race 2)`; or, where `set_aside` is all that was,
/// `nothing new (2 findings hidden)`.
#[must_use]
pub fn summary(outcome: &Outcome, set_aside: SetAside) -> String {
    let kinds = Kind::ALL.iter().filter_map(|&kind| {
        let of_kind = |reported: &&Reported| reported.finding.kind == kind;
        let count = outcome.findings.iter().filter(of_kind).count() as u64;
        (count > 0).then(|| format!("{kind} {count}"))
    });
    let kinds: Vec<String> = kinds.collect();
    let mut line = match outcome.findings.len() {
        0 if outcome.listed.is_empty() => match set_aside.known + set_aside.suppressed {
            0 => "nothing found".to_owned(),
            hidden => format!("nothing new ({} hidden)", counted(hidden, "finding")),
        },
        0 => "nothing else found".to_owned(),
        count => format!("{} ({})", counted(count as u64, "finding"), kinds.join(", ")),
    };
    if !outcome.is_complete() {
        line += "; not everything was searched";
    }
    line
}
