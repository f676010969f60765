//! The definition of a predictable deadlock: every cycle of acquires of different threads, each on a lock that the thread of the next one
//! holds, put to a search through all states that correct reorderings reach. For small traces.

use std::collections::BTreeSet;

use reweave_base::Id;
use reweave_trace::{EventId, LockId, LockOp, Op, Trace};

use crate::observed::{acquired, released};
use crate::query::Query;

/// The sets of acquires, in observed order, at which some correct reordering of `trace` deadlocks;
/// none if one cannot be decided in `states_max` states.
#[must_use]
pub fn deadlocks(trace: &Trace, states_max: usize) -> Option<BTreeSet<Vec<EventId>>> {
    let mut found = BTreeSet::new();
    for mut cycle in cycles(trace) {
        if Query::enabled(&cycle).search(trace, states_max).known()? {
            cycle.sort_unstable();
            found.insert(cycle);
        }
    }
    Some(found)
}

/// Every cycle of acquires of different threads, the lowest thread's first, each on a lock that the
/// thread of the next one holds when it is there.
fn cycles(trace: &Trace) -> Vec<Vec<EventId>> {
    let thread = |event: EventId| trace.event(event).thread;
    let acquires: Vec<EventId> =
        trace.events().map(|(id, _)| id).filter(|&id| may_block(trace, id)).collect();
    let mut cycles = Vec::new();
    let mut paths: Vec<Vec<EventId>> = acquires.iter().map(|&first| vec![first]).collect();
    while let Some(path) = paths.pop() {
        let last = path[path.len() - 1];
        if path.len() > 1 && blocks(trace, path[0], last) {
            cycles.push(path.clone());
        }
        for &next in &acquires {
            let is_new = path.iter().all(|&entry| thread(entry) != thread(next));
            if is_new && thread(next) > thread(path[0]) && blocks(trace, next, last) {
                paths.push(path.iter().copied().chain([next]).collect());
            }
        }
    }
    cycles
}

/// Whether a thread may be stuck with `event` as its next: an acquire that can wait, or a last
/// request.
fn may_block(trace: &Trace, event: EventId) -> bool {
    let happening = trace.event(event);
    match happening.op {
        Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _) => trace.may_wait(event),
        Op::Lock(LockOp::Request | LockOp::RequestExclusive, _) => {
            trace.thread_events(happening.thread).last() == Some(&event)
        }
        _ => false,
    }
}

/// Whether a thread whose next event is `holder` keeps `waiter` waiting. A request that no acquire
/// follows may be for shared mode, unless it says that it is not.
fn blocks(trace: &Trace, holder: EventId, waiter: EventId) -> bool {
    match trace.event(waiter).op {
        Op::Lock(LockOp::Acquire | LockOp::RequestExclusive, lock) => {
            depth(trace, holder, lock, false) > 0 || depth(trace, holder, lock, true) > 0
        }
        Op::Lock(LockOp::AcquireShared | LockOp::Request, lock) => {
            depth(trace, holder, lock, false) > 0
        }
        _ => false,
    }
}

/// How often the thread of `event` holds `lock`, in shared mode or not, just before `event`.
fn depth(trace: &Trace, event: EventId, lock: LockId, shared: bool) -> i64 {
    let thread = trace.event(event).thread;
    let before = trace.events().take(event.index()).filter(|(_, other)| other.thread == thread);
    let changes = before.map(|(_, other)| match Some((lock, shared)) {
        held if acquired(other.op) == held => 1,
        held if released(other.op) == held => -1,
        _ => 0,
    });
    changes.sum()
}
