//! What a reordering is said to show, tested at its end.

use reweave_base::Id;
use reweave_op::{
    AccessOp, After, BarrierOp, ConditionOp, EventId, Goal, Marker, ObjectOp, Op, SemaphoreOp,
    ThreadOp,
};

use crate::happens_before;
use crate::observed::Observed;
use crate::refusal::{Refusal, Rule};
use crate::replay::Replay;

/// Whether `replay` has ended as `goal` says.
pub(crate) fn check(replay: &Replay<'_>, goal: &Goal) -> Result<(), Refusal> {
    let observed = &replay.observed;
    let absent: &[EventId] = if let Goal::Order { absent, .. } = goal { absent } else { &[] };
    for &event in goal.named().iter().chain(absent) {
        require(observed.position.get(event).is_some(), event, Rule::NoSuchEvent)?;
    }
    match goal {
        Goal::Enabled(events) => {
            check_next(replay, events)?;
            events.iter().try_for_each(|&event| {
                match replay.check_rules(event, observed.op(event), &[]) {
                    Ok(()) | Err(Rule::OtherView(..)) => Ok(()),
                    Err(rule) => require(false, event, rule),
                }
            })
        }
        Goal::Race(first, second) => {
            check_next(replay, &[*first, *second])?;
            let conflict = observed.op(*first).conflicts_with(observed.op(*second));
            require(conflict, *first, Rule::NoConflict)
        }
        Goal::Unordered(first, second) => check_unordered(replay, *first, *second),
        Goal::Deadlock(events) => {
            let refusal = Refusal { step: None, event: None, rule: Rule::NoCycle };
            (events.len() > 1).then_some(()).ok_or(refusal)?;
            check_next(replay, events)?;
            // Each is blocked by the thread of the next, the last by that of the first.
            events.iter().zip(events.iter().cycle().skip(1)).try_for_each(|(&event, &next)| {
                let blocks = |thread| thread == observed.thread(next);
                let is_blocked = match observed.op(event) {
                    Op::Thread(ThreadOp::Join, child) => blocks(child),
                    _ => replay.holder(event, blocks).is_some(),
                };
                require(is_blocked && waits(observed, event), event, Rule::NotBlocked)
            })
        }
        Goal::Stuck(events) => check_stuck(replay, events),
        Goal::Order { chain, .. } => {
            let mut latest = None;
            for &event in chain {
                let step = replay.step_of(event).map(|(step, _)| step);
                require(step > latest, event, Rule::OutOfOrder)?;
                latest = step;
            }
            for &event in absent {
                require(!replay.happened(event), event, Rule::Happened)?;
            }
            check_stops(replay, goal)
        }
        Goal::Sees { read, write, .. } => {
            let step = replay.step_of(*read);
            require(step.is_some(), *read, Rule::OutOfOrder)?;
            let is_other = observed_view(observed, *read).is_some_and(|view| view != *write);
            let is_seen = step.is_some_and(|(_, seen)| seen == *write);
            require(is_other && is_seen, *read, Rule::SeesTheSame)?;
            check_stops(replay, goal)
        }
        Goal::Reaches(events) => check_reaches(replay, events),
        Goal::Leaves { var, write } => {
            let mut left = observed.by_thread.rows().filter_map(|(thread, _)| replay.next(thread));
            left.next().map_or(Ok(()), |event| require(false, event, Rule::LeftOut))?;
            let op = observed.op(*write);
            require(op.is_write() && op.var() == Some(*var), *write, Rule::NotWritten)?;
            let last = replay.last_write[*var];
            require(last == Some(*write), *write, Rule::NotLast(last))
        }
    }
}

fn require(holds: bool, event: EventId, rule: Rule) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(Refusal { step: None, event: Some(event), rule }) }
}

/// Both happened, in different threads, they conflict, and happens-before orders neither. The end of a life
/// conflicts with every access to what lived, which is for others to say.
fn check_unordered(replay: &Replay<'_>, first: EventId, second: EventId) -> Result<(), Refusal> {
    let observed = &replay.observed;
    let are_apart = observed.thread(first) != observed.thread(second);
    require(are_apart, second, Rule::SameThread)?;
    let ops = [observed.op(first), observed.op(second)];
    let ends_life = |op: Op| matches!(op, Op::Object(ObjectOp::Free, _));
    let conflict = ops[0].conflicts_with(ops[1])
        || ends_life(ops[0]) && ops[1].var().is_some()
        || ends_life(ops[1]) && ops[0].var().is_some();
    require(conflict, first, Rule::NoConflict)?;
    for event in [first, second] {
        require(replay.happened(event), event, Rule::OutOfOrder)?;
    }
    require(!happens_before::orders(replay, first, second), first, Rule::Ordered)
}

/// Each event is its thread's next and waits, and nobody else has an event left that could come.
fn check_stuck(replay: &Replay<'_>, events: &[EventId]) -> Result<(), Refusal> {
    let observed = &replay.observed;
    let refusal = Refusal { step: None, event: None, rule: Rule::NoneStuck };
    (!events.is_empty()).then_some(()).ok_or(refusal)?;
    check_next(replay, events)?;
    for &event in events {
        require(is_blocked(replay, event) && waits(observed, event), event, Rule::GoesOn)?;
    }
    let others = observed.by_thread.rows().filter_map(|(thread, _)| replay.next(thread));
    for event in others.filter(|event| !events.contains(event)) {
        // It may stay behind if its thread never starts.
        let order = replay.check_program_order(event);
        require(matches!(order, Err(Rule::NotForked(_))), event, Rule::LeftOut)?;
    }
    Ok(())
}

/// Whether what `event` needs to happen is for another thread to do.
fn is_blocked(replay: &Replay<'_>, event: EventId) -> bool {
    let observed = &replay.observed;
    match observed.op(event) {
        Op::Lock(..) => replay.holder(event, |it| it != observed.thread(event)).is_some(),
        Op::Condition(ConditionOp::Wake, _) => replay.is_waiting(event),
        Op::Thread(ThreadOp::Join, child) => replay.next(child).is_some(),
        // Where the start is not known, there may be more tokens than were seen.
        Op::Semaphore(SemaphoreOp::Take, semaphore) => {
            matches!(observed.run.starts.get(semaphore.index()), Some(Some(_)))
                && replay.check_rules(event, observed.op(event), &[]).is_err()
        }
        // Likewise for parties.
        Op::Barrier(BarrierOp::Depart, barrier) => {
            matches!(observed.run.parties.get(barrier.index()), Some(Some(_)))
                && replay.check_rules(event, observed.op(event), &[]).is_err()
        }
        Op::Access(..)
        | Op::Fence(_)
        | Op::Thread(ThreadOp::Fork, _)
        | Op::Condition(..)
        | Op::Barrier(BarrierOp::Arrive, _)
        | Op::Semaphore(SemaphoreOp::Post, _)
        | Op::Object(..)
        | Op::Marker(_) => false,
    }
}

/// Each event is its thread's next, the thread has started, and no two share a thread.
fn check_next(replay: &Replay<'_>, events: &[EventId]) -> Result<(), Refusal> {
    for (at, &event) in events.iter().enumerate() {
        let thread = replay.observed.thread(event);
        let is_alone = events[..at].iter().all(|&other| replay.observed.thread(other) != thread);
        require(is_alone, event, Rule::SameThread)?;
        require(replay.check_program_order(event).is_ok(), event, Rule::NotEnabled)?;
    }
    Ok(())
}

/// Whether the thread of `event` would have waited there for as long as it takes. Where those who
/// wait request the lock first, an acquire that was neither requested nor ends a wait on a condition
/// was an attempt, which gives up at once or after a time. Other attempts are marked.
fn waits(observed: &Observed<'_>, event: EventId) -> bool {
    if !matches!(observed.op(event), Op::Lock(..)) {
        let begin = observed.wait_at.get(&event).map_or(event, |&at| observed.waits[at].begin);
        let before = observed.neighbour(begin, -1).map(|id| observed.op(id));
        return before != Some(Op::Marker(Marker::Timed));
    }
    let is_request = |id| matches!(observed.op(id), Op::Lock(op, _) if op.is_request());
    let wakes = |op| matches!(op, Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _));
    !observed.run.waits_are_requested
        || is_request(event)
        || observed.neighbour(event, -1).is_some_and(|id| is_request(id) || wakes(observed.op(id)))
}

/// What `read` saw when observed, if that is known; what an unknown read saw is not.
fn observed_view(observed: &Observed<'_>, read: EventId) -> Option<Option<EventId>> {
    let Op::Access(access, _) = observed.op(read) else { return None };
    (access.is_read() && access != AccessOp::UnknownRead).then(|| observed.cause[read])
}

/// Each thread has run up to its event of `events`, or nothing if it has none.
fn check_reaches(replay: &Replay<'_>, events: &[EventId]) -> Result<(), Refusal> {
    let observed = &replay.observed;
    for (at, &event) in events.iter().enumerate() {
        require(!events[..at].contains(&event), event, Rule::SameThread)?;
        require(replay.happened(event), event, Rule::OutOfOrder)?;
        require(!replay.went_on(event), event, Rule::WentOn)?;
    }
    for (thread, row) in observed.by_thread.rows() {
        let is_named = events.iter().any(|&event| observed.thread(event) == thread);
        let ran = row.first().filter(|&&first| !is_named && replay.happened(first));
        ran.map_or(Ok(()), |&first| require(false, first, Rule::Happened))?;
    }
    Ok(())
}

/// Nothing that happened rests on what the reads of `free` that happened saw, if that is asked.
fn check_stops(replay: &Replay<'_>, goal: &Goal) -> Result<(), Refusal> {
    let (observed, (free, after)) = (&replay.observed, goal.free_reads());
    let is_known = |read: &&EventId| observed.position.get(**read).is_some();
    for &read in free.iter().filter(is_known).filter(|_| after == After::Stops) {
        let op = observed.op(read);
        if !op.is_read() || !replay.happened(read) {
            continue;
        }
        require(!replay.went_on(read), read, Rule::WentOn)?;
        // An update writes what it makes of the value: whoever saw that would see another value
        // now, but for those of which nothing is said.
        let rests_on_it = |id: EventId| {
            let is_its = observed_view(observed, id) == Some(Some(read));
            is_its && replay.happened(id) && !free.contains(&id)
        };
        let is_passed_on = op.is_write() && observed.position.ids().any(rests_on_it);
        require(!is_passed_on, read, Rule::PassedOn)?;
    }
    Ok(())
}
