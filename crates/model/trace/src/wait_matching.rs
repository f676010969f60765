//! Who let whom go on: which notify woke which wait.
//!
//! A trace says that a thread woke, not who woke it. A notify wakes one of the threads that wait
//! at that moment; of those that the trace later shows awake, we take the one that wakes first,
//! which explains every wake whenever any choice does (earliest deadline first). A notify-all
//! wakes all that wait. A wait that times out is woken by nobody; one that never ends in the
//! trace may have been woken, and is, if a notify has no other to wake.
//!
//! Costs n log n in the events on condition variables.

use std::collections::BTreeSet;

use reweave_base::{FxHashMap, Id, IndexVec};

use crate::columns::{Columns, Event};
use crate::op::{ConditionId, ConditionOp, EventId, LockOp, NameKind, Op, ThreadId};

/// A thread's wait in a condition variable's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitInterval {
    /// From where on it counts as waiting: the release just before the wait, if the same lock is
    /// acquired just after its end (or the trace ends first), since a program gives up the lock
    /// and starts waiting in one step; else the wait itself.
    pub begin: EventId,
    /// Its `wait`.
    pub wait: EventId,
    /// Its `wake` or `timeout`; none if it still waits when the trace ends.
    pub end: Option<EventId>,
    /// Whether `end` is a `timeout`.
    pub times_out: bool,
    /// The notify that woke it; none if it timed out or nobody did.
    pub notify: Option<EventId>,
}

impl WaitInterval {
    /// Whether it was there when `notify`, on the same condition, was observed, and timed out all
    /// the same.
    #[must_use]
    pub fn is_spared_by(&self, notify: EventId) -> bool {
        self.times_out && self.begin < notify && self.end.is_some_and(|end| notify < end)
    }
}

/// Every wait with who ended it, and every notify with whom it woke.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matching {
    pub(crate) intervals: Vec<WaitInterval>,
    /// For each notify the waits that it woke, in observed order.
    pub(crate) woken: Vec<(EventId, Vec<EventId>)>,
    /// Wakes that no notify explains.
    pub(crate) unexplained: Vec<(EventId, ConditionId)>,
}

/// The threads waiting on one condition variable that no notify has woken and that will not time
/// out: when they wake, the earliest first, then those that never do; as indexes of wait intervals.
type Queue = BTreeSet<(EventId, usize)>;

/// What changes who waits.
#[derive(Clone, Copy)]
enum Moment {
    Begin(usize),
    End(usize),
    Notify(ConditionId),
    NotifyAll(ConditionId),
}

/// Pairs the waits and notifies among `events`, which are all events on condition variables.
///
/// Only the first `events_count` events of `columns` are looked at.
pub(crate) fn match_waits(events: &[EventId], columns: &Columns, events_count: usize) -> Matching {
    let intervals = find_wait_intervals(events, columns, events_count);
    let mut matching = Matching { intervals, ..Matching::default() };
    let mut queues: FxHashMap<ConditionId, Queue> = FxHashMap::default();
    for (id, moment) in timeline(events, columns, &matching.intervals) {
        match moment {
            Moment::Begin(at) => {
                let interval = matching.intervals[at];
                if !interval.times_out {
                    let queue = queues.entry(condition(columns, interval.wait)).or_default();
                    queue.insert((interval.end.unwrap_or(NEVER), at));
                }
            }
            Moment::End(at) => {
                let on = condition(columns, id);
                if queues.entry(on).or_default().remove(&(id, at)) {
                    matching.unexplained.push((id, on));
                }
            }
            Moment::Notify(on) => matching.notify(id, queues.entry(on).or_default(), 1),
            Moment::NotifyAll(on) => {
                matching.notify(id, queues.entry(on).or_default(), usize::MAX);
            }
        }
    }
    matching
}

impl Matching {
    fn notify(&mut self, id: EventId, queue: &mut Queue, count_max: usize) {
        let mut woke = Vec::new();
        while woke.len() < count_max
            && let Some((_, at)) = queue.pop_first()
        {
            self.intervals[at].notify = Some(id);
            woke.push(self.intervals[at].wait);
        }
        woke.sort_unstable();
        self.woken.push((id, woke));
    }
}

fn condition(columns: &Columns, event: EventId) -> ConditionId {
    match columns.event(event).op {
        Op::Condition(ConditionOp::Wait | ConditionOp::Wake | ConditionOp::Timeout, on) => on,
        _ => unreachable!("a wait interval begins and ends on a condition variable"),
    }
}

fn timeline(
    events: &[EventId],
    columns: &Columns,
    intervals: &[WaitInterval],
) -> Vec<(EventId, Moment)> {
    let notifies = events.iter().filter_map(|&id| match columns.event(id).op {
        Op::Condition(ConditionOp::Notify, on) => Some((id, Moment::Notify(on))),
        Op::Condition(ConditionOp::NotifyAll, on) => Some((id, Moment::NotifyAll(on))),
        _ => None,
    });
    let begins =
        intervals.iter().enumerate().map(|(at, interval)| (interval.begin, Moment::Begin(at)));
    let ends = intervals.iter().enumerate();
    let ends = ends.filter_map(|(at, interval)| interval.end.map(|end| (end, Moment::End(at))));
    let mut timeline: Vec<(EventId, Moment)> = notifies.chain(begins).chain(ends).collect();
    timeline.sort_by_key(|&(id, _)| id);
    timeline
}

/// After every event of any trace.
const NEVER: EventId = match EventId::from_number(u32::MAX - 1) {
    Some(id) => id,
    None => unreachable!(),
};

fn find_wait_intervals(
    events: &[EventId],
    columns: &Columns,
    events_count: usize,
) -> Vec<WaitInterval> {
    let mut intervals: Vec<WaitInterval> = Vec::new();
    let mut open: IndexVec<ThreadId, Option<usize>> = IndexVec::new();
    for &id in events {
        let Event { thread, op, .. } = columns.event(id);
        match op {
            Op::Condition(ConditionOp::Wait, _) => {
                *open.get_or_default(thread) = Some(intervals.len());
                intervals.push(WaitInterval {
                    begin: id,
                    wait: id,
                    end: None,
                    times_out: false,
                    notify: None,
                });
            }
            Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _) => {
                if let Some(at) = open.get_or_default(thread).take() {
                    intervals[at].end = Some(id);
                    intervals[at].times_out = matches!(op, Op::Condition(ConditionOp::Timeout, _));
                }
            }
            _ => {}
        }
    }
    find_begins(&mut intervals, columns, events_count);
    intervals
}

/// Moves the begin of each wait interval to the release just before its wait, where that is part of it.
fn find_begins(intervals: &mut [WaitInterval], columns: &Columns, events_count: usize) {
    if intervals.is_empty() {
        return;
    }
    let mut previous: IndexVec<ThreadId, Option<EventId>> = IndexVec::new();
    // The wait interval that each thread is in or just left, with the release before it.
    let mut latest: IndexVec<ThreadId, Option<(usize, EventId)>> = IndexVec::new();
    let mut next = 0;
    for (id, event) in columns.events().take(events_count) {
        let before = previous.get_or_default(event.thread).replace(id);
        let own = latest.get_or_default(event.thread);
        if let Some((at, release)) = *own
            && intervals[at].end.is_some_and(|end| end < id)
            && !matches!(event.op, Op::Lock(op, _) if op.is_request())
        {
            // The first event of effect after the wait interval: does it take the lock again?
            if !takes_again(columns.event(release).op, event.op) {
                intervals[at].begin = intervals[at].wait;
            }
            *own = None;
        }
        if intervals.get(next).is_some_and(|interval| interval.wait == id) {
            let is_release = |&id: &EventId| {
                matches!(columns.event(id).op, Op::Lock(LockOp::Release | LockOp::ReleaseShared, _))
            };
            if let Some(release) = before.filter(is_release) {
                intervals[next].begin = release;
                *own = Some((next, release));
            }
            next += 1;
        }
    }
}

fn takes_again(release: Op, op: Op) -> bool {
    match (release, op) {
        (Op::Lock(LockOp::Release, given), Op::Lock(LockOp::Acquire, taken))
        | (Op::Lock(LockOp::ReleaseShared, given), Op::Lock(LockOp::AcquireShared, taken)) => {
            given == taken
        }
        _ => false,
    }
}

/// The events on condition variables of `columns`, in order.
pub(crate) fn condition_events(columns: &Columns) -> Vec<EventId> {
    (0..columns.len())
        .filter(|&index| columns.codes[index].kind().operand() == NameKind::Condition)
        .map(EventId::from_index)
        .collect()
}
