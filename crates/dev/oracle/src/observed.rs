//! What a trace shows to have happened, read off it one question at a time.

use reweave_base::Id;
use reweave_trace::{
    AccessOp, BarrierId, BarrierOp, ConditionId, ConditionOp, Event, EventId, LockId, LockOp, Op,
    SemaphoreId, SemaphoreOp, ThreadId, ThreadOp, Trace,
};

/// A thread that waits on a condition variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What it waits on.
    pub condition: ConditionId,
    /// From where on it waits: the release just before the `wait` in its thread, or the `wait`.
    pub begin: EventId,
    /// Its `wait`.
    pub wait: EventId,
    /// Its `wake` or `timeout`.
    pub end: Option<EventId>,
    /// Whether the end is a timeout.
    pub times_out: bool,
    /// The notify that woke it.
    pub notify: Option<EventId>,
}

/// The answers to every question that the definition asks of the observed order.
#[derive(Debug)]
pub struct Observed<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// The write that each read saw, by event; none for the initial value and for other events.
    pub saw: Vec<Option<EventId>>,
    /// Every wait, in observed order.
    pub waits: Vec<Wait>,
    /// The arrivals that each departure and each arrival must come after, by event.
    pub arrivals: Vec<Vec<EventId>>,
    /// The post that each take used, by event.
    pub post: Vec<Option<EventId>>,
}

impl<'a> Observed<'a> {
    /// What `trace` shows.
    #[must_use]
    pub fn new(trace: &'a Trace) -> Self {
        let ids = || (0..trace.len()).map(EventId::from_index);
        let mut waits: Vec<Wait> = ids().filter_map(|id| wait_at(trace, id)).collect();
        pair_notifies(trace, &mut waits);
        Self {
            trace,
            saw: ids().map(|id| saw(trace, id)).collect(),
            waits,
            arrivals: arrivals(trace),
            post: posts(trace),
        }
    }

    /// The event `id`.
    #[must_use]
    pub fn event(&self, id: EventId) -> Event {
        self.trace.event(id)
    }

    /// All events, in observed order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = EventId> + Clone + use<> {
        (0..self.trace.len()).map(EventId::from_index)
    }

    /// All threads.
    pub fn threads(&self) -> impl Iterator<Item = ThreadId> + use<> {
        (0..self.trace.names().threads.len()).map(ThreadId::from_index)
    }

    /// The events of `thread`, in program order.
    pub fn events_of(&self, thread: ThreadId) -> impl DoubleEndedIterator<Item = EventId> {
        self.ids().filter(move |&id| self.event(id).thread == thread)
    }

    /// The write that `event` saw, if it is a read that saw one.
    #[must_use]
    pub fn saw_write(&self, event: EventId) -> Option<EventId> {
        self.saw[event.index()]
    }

    /// The fork of `thread`.
    #[must_use]
    pub fn fork_of(&self, thread: ThreadId) -> Option<EventId> {
        self.ids().find(|&id| self.event(id).op == Op::Thread(ThreadOp::Fork, thread))
    }

    /// The waits that `notify` woke.
    pub fn woken_by(&self, notify: EventId) -> impl Iterator<Item = &Wait> {
        self.waits.iter().filter(move |wait| wait.notify == Some(notify))
    }

    /// Whether `wait` was there when `notify` was observed, and timed out.
    #[must_use]
    pub fn is_spared(&self, wait: &Wait, notify: EventId) -> bool {
        wait.times_out && wait.begin < notify && wait.end.is_some_and(|end| notify < end)
    }
}

/// The lock that `op` acquires, and whether in shared mode.
#[must_use]
pub fn acquired(op: Op) -> Option<(LockId, bool)> {
    match op {
        Op::Lock(LockOp::Acquire, lock) => Some((lock, false)),
        Op::Lock(LockOp::AcquireShared, lock) => Some((lock, true)),
        _ => None,
    }
}

/// The lock that `op` releases, and whether from shared mode.
#[must_use]
pub fn released(op: Op) -> Option<(LockId, bool)> {
    match op {
        Op::Lock(LockOp::Release, lock) => Some((lock, false)),
        Op::Lock(LockOp::ReleaseShared, lock) => Some((lock, true)),
        _ => None,
    }
}

/// A read sees the last write before it; of a read with an unknown writer it is not known.
fn saw(trace: &Trace, id: EventId) -> Option<EventId> {
    let op = trace.event(id).op;
    if !op.is_read() || matches!(op, Op::Access(AccessOp::UnknownRead, _)) {
        return None;
    }
    let before = (0..id.index()).rev().map(EventId::from_index);
    let writes = |other: Op| other.is_write() && other.var() == op.var();
    before.into_iter().find(|&other| writes(trace.event(other).op))
}

fn wait_at(trace: &Trace, id: EventId) -> Option<Wait> {
    let Event { thread, op: Op::Condition(ConditionOp::Wait, condition), .. } = trace.event(id)
    else {
        return None;
    };
    let own = |other: &EventId| trace.event(*other).thread == thread;
    let before = (0..id.index()).rev().map(EventId::from_index).find(own);
    let end = (id.index() + 1..trace.len()).map(EventId::from_index).find(own);
    // A request has no effect: it may stand between the wake and the acquire.
    let acts = |id: &EventId| {
        own(id)
            && !matches!(
                trace.event(*id).op,
                Op::Lock(LockOp::Request | LockOp::RequestExclusive, _)
            )
    };
    let after = |end: EventId| (end.index() + 1..trace.len()).map(EventId::from_index).find(acts);
    let after = end.and_then(after).map(|id| trace.event(id).op);
    let release = before.filter(|&before| {
        released(trace.event(before).op)
            .is_some_and(|given| after.is_none_or(|op| acquired(op) == Some(given)))
    });
    Some(Wait {
        condition,
        begin: release.unwrap_or(id),
        wait: id,
        end,
        times_out: end.is_some_and(|end| {
            matches!(trace.event(end).op, Op::Condition(ConditionOp::Timeout, _))
        }),
        notify: None,
    })
}

/// A notify wakes one of the threads that wait at that moment and do not time out: the one seen
/// to wake first, failing that one that never ends. A notify-all wakes all of them.
fn pair_notifies(trace: &Trace, waits: &mut [Wait]) {
    for (id, event) in trace.events() {
        let Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, condition) = event.op
        else {
            continue;
        };
        let mut waiting: Vec<&mut Wait> = waits
            .iter_mut()
            .filter(|wait| wait.condition == condition && !wait.times_out)
            .filter(|wait| wait.begin < id && wait.end.is_none_or(|end| id < end))
            .filter(|wait| wait.notify.is_none())
            .collect();
        waiting.sort_by_key(|wait| (wait.end.is_none(), wait.end, wait.wait));
        let woken = if matches!(event.op, Op::Condition(ConditionOp::Notify, _)) {
            1
        } else {
            waiting.len()
        };
        for wait in waiting.into_iter().take(woken) {
            wait.notify = Some(id);
        }
    }
}

/// Where the number of parties is known: for each departure the arrivals of its generation, which
/// is that of its thread's latest arrival; for each arrival those of all earlier generations. Where
/// it is not known: for both all arrivals observed before.
fn arrivals(trace: &Trace) -> Vec<Vec<EventId>> {
    let mut found = vec![Vec::new(); trace.len()];
    for barrier in (0..trace.names().barriers.len()).map(BarrierId::from_index) {
        let on = |op: Op| trace.events().filter(move |(_, event)| event.op == op);
        let all: Vec<EventId> =
            on(Op::Barrier(BarrierOp::Arrive, barrier)).map(|(id, _)| id).collect();
        let Some(parties) = trace.declared().parties(barrier) else {
            for (id, _) in on(Op::Barrier(BarrierOp::Arrive, barrier))
                .chain(on(Op::Barrier(BarrierOp::Depart, barrier)))
            {
                found[id.index()] = all.iter().copied().filter(|&other| other < id).collect();
            }
            continue;
        };
        let generations: Vec<&[EventId]> = all.chunks(parties as usize).collect();
        for (id, event) in on(Op::Barrier(BarrierOp::Depart, barrier)) {
            let arrival = latest_arrival(trace, barrier, event.thread, id);
            let mut own = generations
                .iter()
                .filter(|generation| arrival.is_some_and(|id| generation.contains(&id)));
            found[id.index()] =
                own.next().map(|generation| generation.to_vec()).unwrap_or_default();
        }
        for (number, generation) in generations.iter().enumerate() {
            for &arrival in *generation {
                found[arrival.index()] = generations[..number].concat();
            }
        }
    }
    found
}

fn latest_arrival(
    trace: &Trace,
    barrier: BarrierId,
    thread: ThreadId,
    before: EventId,
) -> Option<EventId> {
    let own = |event: Event| {
        event.thread == thread && event.op == Op::Barrier(BarrierOp::Arrive, barrier)
    };
    let mut earlier = (0..before.index()).rev().map(EventId::from_index);
    earlier.find(|&id| own(trace.event(id)))
}

/// Posts are used oldest first, and before the tokens that were there at the start.
fn posts(trace: &Trace) -> Vec<Option<EventId>> {
    let mut post: Vec<Option<EventId>> = vec![None; trace.len()];
    for (id, event) in trace.events() {
        let Op::Semaphore(SemaphoreOp::Take, semaphore) = event.op else { continue };
        let oldest = posts_of(trace, semaphore)
            .find(|&candidate| candidate < id && !post.contains(&Some(candidate)));
        post[id.index()] = oldest;
    }
    post
}

fn posts_of(trace: &Trace, semaphore: SemaphoreId) -> impl Iterator<Item = EventId> {
    let of = move |event: Event| event.op == Op::Semaphore(SemaphoreOp::Post, semaphore);
    trace.events().filter(move |&(_, event)| of(event)).map(|(id, _)| id)
}
