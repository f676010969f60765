//! What a reordering is said to show, tested at its end.

use std::slice;

use super::refusal::{Refusal, Rule};
use super::replay::Replay;
use crate::op::{AccessOp, EventId, Op, VarId};
use crate::reordering::{After, Goal};

/// The reads that `goal` lets see another write than observed.
pub(super) fn free_reads(goal: &Goal) -> &[EventId] {
    match goal {
        Goal::Order { free, .. } => free,
        Goal::Sees { read, .. } => slice::from_ref(read),
        Goal::Enabled(_)
        | Goal::Race(..)
        | Goal::Deadlock(_)
        | Goal::Reaches(_)
        | Goal::Leaves { .. } => &[],
    }
}

/// Whether `replay` has ended as `goal` says.
pub(super) fn check(replay: &Replay<'_>, goal: &Goal) -> Result<(), Refusal> {
    let named: Vec<EventId> = match goal {
        Goal::Enabled(events) | Goal::Deadlock(events) | Goal::Reaches(events) => events.clone(),
        Goal::Race(first, second) => vec![*first, *second],
        Goal::Order { chain, absent, .. } => chain.iter().chain(absent).copied().collect(),
        Goal::Sees { read, write, .. } => [Some(*read), *write].into_iter().flatten().collect(),
        Goal::Leaves { write, .. } => vec![*write],
    };
    for &event in &named {
        if replay.trace().numbered(event.number()).is_none() {
            return Err(Refusal::at_end_for(event, Rule::NoSuchEvent));
        }
    }
    match goal {
        Goal::Enabled(events) => {
            check_next(replay, events)?;
            for &event in events {
                let ready = replay.check_synchronisation(event);
                ready.map_err(|rule| Refusal::at_end_for(event, rule))?;
            }
            Ok(())
        }
        Goal::Race(first, second) => {
            check_next(replay, &named)?;
            let [left, right] = [*first, *second].map(|event| replay.trace().event(event).op);
            let conflict = left.conflicts_with(right);
            require(conflict, *first, Rule::NoConflict)
        }
        Goal::Deadlock(events) => check_deadlock(replay, events),
        Goal::Order { chain, absent, free, after } => {
            check_order(replay, chain, absent)?;
            match after {
                After::Stops => check_stops(replay, free),
                After::RunsOn => Ok(()),
            }
        }
        Goal::Sees { read, write, after } => check_sees(replay, *read, *write, *after),
        Goal::Reaches(events) => check_reaches(replay, events),
        Goal::Leaves { var, write } => check_leaves(replay, *var, *write),
    }
}

fn require(holds: bool, event: EventId, rule: Rule) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(Refusal::at_end_for(event, rule)) }
}

/// Each event is its thread's next, the thread has started, and no two share a thread.
fn check_next(replay: &Replay<'_>, events: &[EventId]) -> Result<(), Refusal> {
    for (at, &event) in events.iter().enumerate() {
        let thread_of = |id: EventId| replay.trace().event(id).thread;
        let alone = events[..at].iter().all(|&other| thread_of(other) != thread_of(event));
        require(alone, event, Rule::SameThread)?;
        require(replay.check_turn(event).is_ok(), event, Rule::NotEnabled)?;
    }
    Ok(())
}

fn check_deadlock(replay: &Replay<'_>, events: &[EventId]) -> Result<(), Refusal> {
    if events.len() < 2 {
        return Err(Refusal::at_end(Rule::NoCycle));
    }
    check_next(replay, events)?;
    for (at, &event) in events.iter().enumerate() {
        let next = events[(at + 1) % events.len()];
        let holder = replay.trace().event(next).thread;
        let blocked = replay.blocks(holder, replay.trace().event(event).op);
        require(blocked && replay.waits(event), event, Rule::NotBlocked)?;
    }
    Ok(())
}

fn check_order(replay: &Replay<'_>, chain: &[EventId], absent: &[EventId]) -> Result<(), Refusal> {
    let mut latest = 0;
    for &event in chain {
        let step = replay.step_of(event).filter(|&step| step > latest);
        latest = step.ok_or(Refusal::at_end_for(event, Rule::OutOfOrder))?;
    }
    for &event in absent {
        require(replay.step_of(event).is_none(), event, Rule::Happened)?;
    }
    Ok(())
}

fn check_sees(
    replay: &Replay<'_>,
    read: EventId,
    write: Option<EventId>,
    after: After,
) -> Result<(), Refusal> {
    require(replay.step_of(read).is_some(), read, Rule::OutOfOrder)?;
    let op = replay.trace().event(read).op;
    // What a loose read saw is not known, so nothing is known to be another.
    let other = op.is_read()
        && !matches!(op, Op::Access(AccessOp::UnknownRead, _))
        && replay.free_view(read) == Some(write)
        && replay.observed_view(read) != write;
    require(other, read, Rule::SeesTheSame)?;
    match after {
        After::Stops => check_stops(replay, &[read]),
        After::RunsOn => Ok(()),
    }
}

/// Each thread has run up to its event of `events`, or nothing if it has none.
fn check_reaches(replay: &Replay<'_>, events: &[EventId]) -> Result<(), Refusal> {
    let mut all = 0;
    for (at, &event) in events.iter().enumerate() {
        require(!events[..at].contains(&event), event, Rule::SameThread)?;
        let done = replay.done(replay.trace().event(event).thread);
        require(done > replay.position(event), event, Rule::OutOfOrder)?;
        require(done == replay.position(event) + 1, event, Rule::WentOn)?;
        all += done as usize;
    }
    if all == replay.events_count() {
        return Ok(());
    }
    // Some thread that is not named has run.
    let is_named =
        |thread| events.iter().any(|&event| replay.trace().event(event).thread == thread);
    let mut others = replay.trace().events().filter(|(_, event)| !is_named(event.thread));
    match others.find(|(_, event)| replay.done(event.thread) > 0) {
        Some((event, _)) => Err(Refusal::at_end_for(event, Rule::Happened)),
        None => Ok(()),
    }
}

/// No thread has an event left, and the last write of `var` is `write`.
fn check_leaves(replay: &Replay<'_>, var: VarId, write: EventId) -> Result<(), Refusal> {
    let mut threads = replay.trace().names().threads.entries();
    if let Some(missing) = threads.find_map(|(thread, _)| replay.next(thread)) {
        return Err(Refusal::at_end_for(missing, Rule::LeftOut));
    }
    // A variable that is not in the trace is not written either, and has no last write to ask for.
    let op = replay.trace().event(write).op;
    require(op.is_write() && op.var() == Some(var), write, Rule::NotWritten)?;
    let last = replay.last_write(var);
    require(last == Some(write), write, Rule::NotLast { last })
}

/// Nothing that happened rests on what the reads of `free` that happened saw.
fn check_stops(replay: &Replay<'_>, free: &[EventId]) -> Result<(), Refusal> {
    for &read in free.iter().filter(|&&read| replay.step_of(read).is_some()) {
        let event = replay.trace().event(read);
        if !event.op.is_read() {
            continue;
        }
        let went_on = replay.done(event.thread) > replay.position(read) + 1;
        require(!went_on, read, Rule::WentOn)?;
        // An update writes what it makes of the value: whoever saw that would see another value
        // now, but for those of which nothing is said.
        let saw_it = |id: EventId| replay.observed_view(id) == Some(read) && !free.contains(&id);
        let mut all = replay.trace().events().map(|(id, _)| id);
        let passed_on =
            event.op.is_write() && all.any(|id| saw_it(id) && replay.step_of(id).is_some());
        require(!passed_on, read, Rule::PassedOn)?;
    }
    Ok(())
}
