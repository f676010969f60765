//! What a reordering is said to show, tested at its end.

use std::slice;

use reweave_base::Id;
use reweave_op::{AccessOp, ConditionOp, EventId, LockOp, Op, VarId};

use crate::observed::Observed;
use crate::refusal::{Refusal, Rule};
use crate::reordering::{After, Goal};
use crate::replay::Replay;

/// The reads that `goal` lets see another write than observed.
pub(crate) fn free_reads(goal: &Goal) -> &[EventId] {
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
pub(crate) fn check(replay: &Replay<'_>, goal: &Goal) -> Result<(), Refusal> {
    let named: Vec<EventId> = match goal {
        Goal::Enabled(events) | Goal::Deadlock(events) | Goal::Reaches(events) => events.clone(),
        Goal::Race(first, second) => vec![*first, *second],
        Goal::Order { chain, absent, .. } => chain.iter().chain(absent).copied().collect(),
        Goal::Sees { read, write, .. } => [Some(*read), *write].into_iter().flatten().collect(),
        Goal::Leaves { write, .. } => vec![*write],
    };
    for &event in &named {
        require(event.index() < replay.observed.len(), event, Rule::NoSuchEvent)?;
    }
    match goal {
        Goal::Enabled(events) => {
            check_next(replay, events)?;
            events.iter().try_for_each(|&event| {
                replay.check_synchronisation(event).map_err(|rule| at_end(event, rule))
            })
        }
        Goal::Race(first, second) => {
            check_next(replay, &named)?;
            let [left, right] = [*first, *second].map(|event| replay.observed.op(event));
            require(left.conflicts_with(right), *first, Rule::NoConflict)
        }
        Goal::Deadlock(events) => check_deadlock(replay, events),
        Goal::Order { chain, absent, free, after } => {
            check_order(replay, chain, absent)?;
            if *after == After::Stops { check_stops(replay, free) } else { Ok(()) }
        }
        Goal::Sees { read, write, after } => {
            check_sees(replay, *read, *write)?;
            if *after == After::Stops { check_stops(replay, &[*read]) } else { Ok(()) }
        }
        Goal::Reaches(events) => check_reaches(replay, events),
        Goal::Leaves { var, write } => check_leaves(replay, *var, *write),
    }
}

const fn at_end(event: EventId, rule: Rule) -> Refusal {
    Refusal { step: None, event: Some(event), rule }
}

fn require(holds: bool, event: EventId, rule: Rule) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(at_end(event, rule)) }
}

/// Each event is its thread's next, the thread has started, and no two share a thread.
fn check_next(replay: &Replay<'_>, events: &[EventId]) -> Result<(), Refusal> {
    for (at, &event) in events.iter().enumerate() {
        let is_own =
            |&other: &EventId| replay.observed.thread(other) == replay.observed.thread(event);
        require(!events[..at].iter().any(is_own), event, Rule::SameThread)?;
        require(replay.check_turn(event).is_ok(), event, Rule::NotEnabled)?;
    }
    Ok(())
}

fn check_deadlock(replay: &Replay<'_>, events: &[EventId]) -> Result<(), Refusal> {
    if events.len() < 2 {
        return Err(Refusal { step: None, event: None, rule: Rule::NoCycle });
    }
    check_next(replay, events)?;
    let nexts = events.iter().cycle().skip(1);
    events.iter().zip(nexts).try_for_each(|(&event, &next)| {
        let holder = replay.observed.thread(next);
        let is_blocked = replay.blocks(holder, replay.observed.op(event));
        require(is_blocked && waits(&replay.observed, event), event, Rule::NotBlocked)
    })
}

/// Whether the thread of `event`, an acquire or a request, would have waited there. Where those who
/// wait request the lock first, an acquire that was neither requested nor ends a wait on a condition
/// was an attempt, which gives up at once or after a time.
fn waits(observed: &Observed<'_>, event: EventId) -> bool {
    let is_request = |id| matches!(observed.op(id), Op::Lock(LockOp::Request, _));
    let is_awake =
        |id| matches!(observed.op(id), Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _));
    !observed.run.has_requests
        || is_request(event)
        || observed.neighbour(event, -1).is_some_and(|id| is_request(id) || is_awake(id))
}

fn check_order(replay: &Replay<'_>, chain: &[EventId], absent: &[EventId]) -> Result<(), Refusal> {
    let mut latest = None;
    for &event in chain {
        let step = replay.step_of(event).map(|(step, _)| step);
        require(step.is_some() && step > latest, event, Rule::OutOfOrder)?;
        latest = step;
    }
    absent.iter().try_for_each(|&event| require(!replay.happened(event), event, Rule::Happened))
}

/// What `read` saw when observed, if that is known; what an unknown read saw is not.
fn observed_view(observed: &Observed<'_>, read: EventId) -> Option<Option<EventId>> {
    let Op::Access(access, _) = observed.op(read) else { return None };
    (access.is_read() && access != AccessOp::UnknownRead).then(|| observed.cause[read])
}

fn check_sees(replay: &Replay<'_>, read: EventId, write: Option<EventId>) -> Result<(), Refusal> {
    let step = replay.step_of(read);
    require(step.is_some(), read, Rule::OutOfOrder)?;
    let is_other = observed_view(&replay.observed, read).is_some_and(|view| view != write);
    let is_seen = step.is_some_and(|(_, seen)| seen == write);
    require(is_other && is_seen, read, Rule::SeesTheSame)
}

/// Each thread has run up to its event of `events`, or nothing if it has none.
fn check_reaches(replay: &Replay<'_>, events: &[EventId]) -> Result<(), Refusal> {
    let thread_of = |event: EventId| replay.observed.thread(event);
    for (at, &event) in events.iter().enumerate() {
        require(!events[..at].contains(&event), event, Rule::SameThread)?;
        require(replay.happened(event), event, Rule::OutOfOrder)?;
        let is_last = replay.observed.neighbour(event, 1) == replay.next(thread_of(event));
        require(is_last, event, Rule::WentOn)?;
    }
    let rows = replay.observed.by_thread.rows();
    let others = rows.filter(|(thread, _)| events.iter().all(|&own| thread_of(own) != *thread));
    let ran = others.filter_map(|(_, row)| row.first()).find(|&&event| replay.happened(event));
    ran.map_or(Ok(()), |&event| Err(at_end(event, Rule::Happened)))
}

/// No thread has an event left, and the last write of `var` is `write`.
fn check_leaves(replay: &Replay<'_>, var: VarId, write: EventId) -> Result<(), Refusal> {
    let mut rows = replay.observed.by_thread.rows();
    if let Some(missing) = rows.find_map(|(thread, _)| replay.next(thread)) {
        return Err(at_end(missing, Rule::LeftOut));
    }
    let op = replay.observed.op(write);
    require(op.is_write() && op.var() == Some(var), write, Rule::NotWritten)?;
    let last = replay.last_write(var);
    require(last == Some(write), write, Rule::NotLast(last))
}

/// Nothing that happened rests on what the reads of `free` that happened saw.
fn check_stops(replay: &Replay<'_>, free: &[EventId]) -> Result<(), Refusal> {
    let observed = &replay.observed;
    let exists = |event: &&EventId| event.index() < observed.len();
    for &read in free.iter().filter(exists).filter(|&&read| replay.happened(read)) {
        if !observed.op(read).is_read() {
            continue;
        }
        let went_on = observed.neighbour(read, 1).is_some_and(|next| replay.happened(next));
        require(!went_on, read, Rule::WentOn)?;
        // An update writes what it makes of the value: whoever saw that would see another value
        // now, but for those of which nothing is said.
        let rests_on_it = |id: EventId| {
            observed_view(observed, id) == Some(Some(read))
                && !free.contains(&id)
                && replay.happened(id)
        };
        let mut all = (0..observed.len()).map(EventId::from_index);
        let is_passed_on = observed.op(read).is_write() && all.any(rests_on_it);
        require(!is_passed_on, read, Rule::PassedOn)?;
    }
    Ok(())
}
