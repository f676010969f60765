//! A deadlock as a circle: who holds what, since where, and waits for what, where.

use reweave_analysis::Finding;
use reweave_trace::views::CriticalSection;
use reweave_trace::{EventId, Goal, LockId, Trace};

use crate::legend::asked_for;
use crate::site::place;

/// One thread of a circle: what it waits for, and what it holds that the one before it wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// Its blocked acquire or request.
    pub(crate) event: EventId,
    /// The lock that it wants.
    pub(crate) wants: LockId,
    /// What it holds.
    pub(crate) section: CriticalSection,
}

/// The threads of the circle that `events` are in, in order: each waits for what the next one holds.
pub(crate) fn waits(trace: &Trace, events: &[EventId]) -> Vec<Wait> {
    let before = events.last().into_iter().chain(events);
    let wait = |(&event, &before): (&EventId, &EventId)| {
        let wants = asked_for(trace.event(event).op)?;
        let wanted = asked_for(trace.event(before).op)?;
        let mut held = trace.sections().held(trace.event(event).thread, event);
        let section = *held.find(|section| section.lock == wanted)?;
        Some(Wait { event, wants, section })
    };
    events.iter().zip(before).filter_map(wait).collect()
}

/// The circle in a line for each thread and one that closes it; empty for what is none.
pub(crate) fn paragraphs(trace: &Trace, finding: &Finding) -> Vec<String> {
    let Some(Goal::Deadlock(events)) = finding.evidence.proof().map(|proof| proof.goal()) else {
        return Vec::new();
    };
    let names = trace.names();
    let waits = waits(trace, events);
    if waits.len() < 2 || waits.len() != events.len() {
        return Vec::new();
    }
    let at = |event: EventId| {
        let place = place(names.location(trace.event(event).site));
        if place.is_empty() { String::new() } else { format!(" at {place}") }
    };
    let thread = |wait: &Wait| names.threads.name(wait.section.thread);
    let mut lines: Vec<String> = waits
        .iter()
        .map(|wait| {
            format!(
                "{} took `{}`{} and waits for `{}`{}.",
                thread(wait),
                names.locks.name(wait.section.lock),
                at(wait.section.acquire),
                names.locks.name(wait.wants),
                at(wait.event),
            )
        })
        .collect();
    let links = waits.iter().map(|it| format!("{} ─{}→ ", thread(it), names.locks.name(it.wants)));
    lines.push(format!("{}{}", links.collect::<String>(), thread(&waits[0])));
    lines
}
