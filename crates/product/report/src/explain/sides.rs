//! The events that matter in the order in which they were observed, and in that of a schedule.

use std::collections::BTreeSet;

use reweave_analysis::{Detail, Proof};
use reweave_trace::{EventId, Goal, Trace};

use super::accident;
use crate::alternatives::known_value;
use crate::counted;
use crate::schedule::{Seen, holds, numbered, observed, sees, steps, steps_count};

/// Schedules up to this long are compared step by step.
const WHOLE_MAX: usize = 24;

/// How many critical sections around each event at fault are shown by their ends.
const SECTIONS_MAX: usize = 4;

/// What was observed, and what the schedule runs.
#[derive(Debug)]
pub(crate) struct Sides {
    pub(crate) observed: Side,
    pub(crate) scheduled: Side,
}

/// Events in some order.
#[derive(Debug, Default)]
pub(crate) struct Side {
    pub(crate) rows: Vec<Row>,
}

/// A line of a side.
#[derive(Debug)]
pub(crate) enum Row {
    /// What is left out.
    Gap(String),
    /// An event.
    Event(SideEvent),
    /// What a variable holds at the end.
    End(String),
}

/// An event of a side.
#[derive(Debug)]
pub(crate) struct SideEvent {
    pub(crate) event: EventId,
    pub(crate) mark: Mark,
    /// What it sees, if it is a read.
    pub(crate) sees: Option<Seen>,
    /// The value and what it sees, where they are known; else empty.
    pub(crate) note: String,
}

/// How an event stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Not at all.
    None,
    /// It is at fault.
    Fault,
    /// It is next at the end.
    Next,
    /// It is next at the end, and cannot happen.
    Blocked,
    /// It does not happen.
    Never,
}

impl Mark {
    /// How it is spelt.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Fault => ">",
            Self::Next => "then",
            Self::Blocked => "waits",
            Self::Never => "never",
        }
    }
}

impl Side {
    /// The events that happen or are next at the end.
    pub(crate) fn happening(&self) -> impl Iterator<Item = &SideEvent> {
        self.rows.iter().filter_map(|row| match row {
            Row::Event(event) if event.mark != Mark::Never => Some(event),
            Row::Event(_) | Row::Gap(_) | Row::End(_) => None,
        })
    }
}

impl Sides {
    /// What matters of `proof`, on both sides.
    pub(crate) fn new(trace: &Trace, proof: &Proof, detail: &Detail) -> Self {
        let faults = faults(proof, detail);
        let relevant = relevant(trace, proof, &faults);
        let mut sides = Self {
            observed: observed_side(trace, &relevant, &faults),
            scheduled: scheduled_side(trace, proof, &relevant, &faults),
        };
        sides.end(trace, proof, detail);
        sides
    }

    /// Says what a variable holds at the end, for a finding on that.
    fn end(&mut self, trace: &Trace, proof: &Proof, detail: &Detail) {
        let Some(detail) = detail.nondeterminism().filter(|detail| detail.read.is_none()) else {
            return;
        };
        let Some(event) = detail.writer.or(detail.interfering) else { return };
        let Some(var) = trace.event(event).op.var() else { return };
        let name = trace.names().vars.name(var);
        let ends = [Seen::new(detail.writer), holds(trace, proof.reordering(), var)];
        for (side, seen) in [&mut self.observed, &mut self.scheduled].into_iter().zip(ends) {
            let value = seen.write().and_then(|write| known_value(trace, write));
            let value = value.map_or(String::new(), |value| format!(", value {value}"));
            side.rows.push(Row::End(format!("{name} ends with {seen}{value}")));
        }
    }
}

/// The events at fault, in observed order.
pub(crate) fn faults(proof: &Proof, detail: &Detail) -> BTreeSet<EventId> {
    let mut faults: BTreeSet<EventId> = proof.named().into_iter().collect();
    if let Goal::Order { absent, .. } = proof.goal() {
        faults.extend(absent);
    }
    if let Some(detail) = detail.nondeterminism() {
        faults.extend([detail.writer, detail.read, detail.interfering].into_iter().flatten());
    }
    faults
}

/// What is shown: all that happens if that is little; else the events at fault, the critical
/// sections around them, and what the reads among them see.
fn relevant(trace: &Trace, proof: &Proof, faults: &BTreeSet<EventId>) -> BTreeSet<EventId> {
    let mut relevant = faults.clone();
    // What the argument names is there to be seen.
    relevant.extend(accident::named(trace, proof));
    let reordering = proof.reordering();
    if steps_count(reordering) <= WHOLE_MAX {
        relevant.extend(steps(trace, reordering));
    }
    for &event in faults {
        let seen = [observed(trace, event), sees(trace, reordering, event)];
        relevant.extend(seen.into_iter().flatten().filter_map(Seen::write));
        let sections = trace.sections().held(trace.event(event).thread, event);
        for section in sections.take(SECTIONS_MAX) {
            relevant.insert(section.acquire);
            relevant.extend(section.release);
        }
    }
    relevant
}

fn observed_side(trace: &Trace, relevant: &BTreeSet<EventId>, faults: &BTreeSet<EventId>) -> Side {
    let mut side = Side::default();
    let mut last = 0;
    for &event in relevant {
        let number = event.number();
        match trace.numbered(number - 1).filter(|_| number == last + 2) {
            // Leaving out a single event takes as much room as the event.
            Some(between) => side.rows.push(observed_row(trace, between, faults)),
            None => side.skip((number - last - 1) as usize, "event"),
        }
        side.rows.push(observed_row(trace, event, faults));
        last = number;
    }
    side.skip(trace.len() - last as usize, "event");
    side
}

fn observed_row(trace: &Trace, event: EventId, faults: &BTreeSet<EventId>) -> Row {
    let mark = if faults.contains(&event) { Mark::Fault } else { Mark::None };
    let sees = observed(trace, event);
    let note = note(trace, event, sees, sees);
    Row::Event(SideEvent { event, mark, sees, note })
}

fn scheduled_side(
    trace: &Trace,
    proof: &Proof,
    relevant: &BTreeSet<EventId>,
    faults: &BTreeSet<EventId>,
) -> Side {
    let reordering = proof.reordering();
    let mut side = Side::default();
    let mut rest = relevant.clone();
    let mut last = 0;
    for (step, event) in numbered(trace, reordering, relevant.iter().copied().collect()) {
        side.skip(step - last - 1, "step");
        last = step;
        rest.remove(&event);
        let mark = if faults.contains(&event) { Mark::Fault } else { Mark::None };
        let (seen, saw) = (sees(trace, reordering, event), observed(trace, event));
        let note = note(trace, event, seen, saw);
        side.rows.push(Row::Event(SideEvent { event, mark, sees: seen, note }));
    }
    side.skip(steps_count(reordering) - last, "step");
    let mark = match proof.goal() {
        Goal::Deadlock(_) => Mark::Blocked,
        _ => Mark::Next,
    };
    for event in proof.then() {
        rest.remove(&event);
        side.rows.push(Row::Event(SideEvent { event, mark, sees: None, note: String::new() }));
    }
    // What was to come in the run is of interest only where it is at fault.
    for event in rest.into_iter().filter(|event| faults.contains(event)) {
        let mark = Mark::Never;
        side.rows.push(Row::Event(SideEvent { event, mark, sees: None, note: String::new() }));
    }
    side
}

impl Side {
    /// Leaves out `count` events.
    fn skip(&mut self, count: usize, thing: &str) {
        if count > 0 {
            self.rows.push(Row::Gap(format!("… {}", counted(count as u64, thing))));
        }
    }
}

/// The value of `event`, which sees `seen` in some order and saw `saw`, and where it comes from.
fn note(trace: &Trace, event: EventId, seen: Option<Seen>, saw: Option<Seen>) -> String {
    let (source, origin) = match (seen, saw) {
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
