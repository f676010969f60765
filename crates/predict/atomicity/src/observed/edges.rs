//! Which events had to come before an event for the run to be what it was?
//!
//! For each event those of other threads that it follows by a rule of its own: conflicting accesses,
//! releases of its lock, its thread's fork, the end of a joined thread, the notify that woke it, the
//! waits that it woke, the post that it took, its object's birth. Whatever follows from these and
//! from program order is left out, so that there are about as many as events: a write follows the
//! reads since the write before it, and of one thread's reads in a row the last.
//!
//! The arrivals that a barrier's round waited for are not listed but named by the round, since all
//! that wait for it follow the same many events.

use reweave_base::{Id, IndexVec};
use reweave_trace::views::RoundId;
use reweave_trace::{
    AccessOp, ConditionOp, Event, EventId, LockId, LockOp, ObjectId, ObjectOp, Op, SemaphoreOp,
    ThreadOp, Trace, VarId,
};

/// For each event the events of other threads that it follows.
#[derive(Debug)]
pub(super) struct Edges<'t> {
    trace: &'t Trace,
    /// Where the sources of each event end.
    ends: Vec<usize>,
    sources: Vec<EventId>,
}

#[derive(Debug, Default)]
struct Variable {
    last_write: Option<EventId>,
    /// Since the last write.
    reads: Vec<EventId>,
}

#[derive(Debug, Default)]
struct Lock {
    /// The last release by a thread that held it alone.
    alone: Option<EventId>,
    /// The shared releases since.
    shared: Vec<EventId>,
}

/// What later events may have to follow.
#[derive(Debug, Default)]
struct Past {
    vars: IndexVec<VarId, Variable>,
    locks: IndexVec<LockId, Lock>,
    births: IndexVec<ObjectId, Option<EventId>>,
}

impl<'t> Edges<'t> {
    pub(super) fn new(trace: &'t Trace) -> Self {
        let mut past = Past::default();
        let mut edges = Self { trace, ends: Vec::with_capacity(trace.len()), sources: Vec::new() };
        for (id, event) in trace.events() {
            let from = edges.sources.len();
            if let Some(fork) = trace.lifetime(event.thread).fork
                && trace.position(id) == 0
            {
                edges.sources.push(fork);
            }
            past.step(trace, id, event, &mut edges.sources);
            edges.keep_others(from, event);
            edges.ends.push(edges.sources.len());
        }
        edges
    }

    /// Drops the sources from the index `from` on that are of the thread of `event`.
    fn keep_others(&mut self, from: usize, event: Event) {
        let mut kept = from;
        for at in from..self.sources.len() {
            let source = self.sources[at];
            if self.trace.event(source).thread != event.thread {
                self.sources[kept] = source;
                kept += 1;
            }
        }
        self.sources.truncate(kept);
    }

    pub(super) const fn trace(&self) -> &'t Trace {
        self.trace
    }

    /// The events that `event` follows, but for the arrivals of [`Self::round`].
    pub(super) fn sources(&self, event: EventId) -> &[EventId] {
        let at = event.index();
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.sources[start..self.ends[at]]
    }

    /// The round all of whose arrivals `event` follows.
    pub(super) fn round(&self, event: EventId) -> Option<RoundId> {
        match self.trace.event(event).op {
            Op::Barrier(..) => self.trace.signals().needed_round(event),
            _ => None,
        }
    }
}

impl Past {
    /// Adds to `sources` what `id` follows, and keeps what may follow it.
    fn step(&mut self, trace: &Trace, id: EventId, event: Event, sources: &mut Vec<EventId>) {
        let signals = trace.signals();
        match event.op {
            Op::Access(AccessOp::Read | AccessOp::UnknownRead | AccessOp::AtomicRead(_), var) => {
                let variable = self.vars.get_or_default(var);
                sources.extend(variable.last_write);
                let same = |last: &&mut EventId| trace.event(**last).thread == event.thread;
                match variable.reads.last_mut().filter(same) {
                    Some(last) => *last = id,
                    None => variable.reads.push(id),
                }
            }
            Op::Access(
                AccessOp::Write | AccessOp::AtomicWrite(_) | AccessOp::AtomicUpdate(_),
                var,
            ) => {
                let variable = self.vars.get_or_default(var);
                sources.append(&mut variable.reads);
                sources.extend(variable.last_write.replace(id));
            }
            Op::Lock(LockOp::Acquire, lock) => {
                let lock = self.locks.get_or_default(lock);
                sources.extend(lock.alone);
                sources.extend_from_slice(&lock.shared);
            }
            Op::Lock(LockOp::AcquireShared, lock) => {
                sources.extend(self.locks.get_or_default(lock).alone)
            }
            Op::Lock(LockOp::Release, lock) => {
                let lock = self.locks.get_or_default(lock);
                lock.alone = Some(id);
                lock.shared.clear();
            }
            Op::Lock(LockOp::ReleaseShared, lock) => {
                self.locks.get_or_default(lock).shared.push(id)
            }
            Op::Thread(ThreadOp::Join, child) => {
                let lifetime = trace.lifetime(child);
                sources.extend(lifetime.last.or(lifetime.fork));
            }
            Op::Condition(ConditionOp::Wake, _) => {
                sources.extend(signals.stay(id).and_then(|stay| stay.notify))
            }
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
                let woken = signals.woken(id).iter().filter_map(|&wait| signals.stay(wait));
                sources.extend(woken.map(|stay| stay.begin));
            }
            Op::Semaphore(SemaphoreOp::Take, _) => sources.extend(signals.post(id)),
            Op::Object(ObjectOp::Alloc, object) => *self.births.get_or_default(object) = Some(id),
            Op::Object(ObjectOp::Free, object) => {
                sources.extend(*self.births.get_or_default(object))
            }
            // A fork is looked up by the first event of its thread, arrivals by their round.
            Op::Thread(ThreadOp::Fork, _)
            | Op::Barrier(..)
            | Op::Semaphore(SemaphoreOp::Post, _)
            | Op::Fence(_)
            | Op::Lock(LockOp::Request, _)
            | Op::Condition(ConditionOp::Wait | ConditionOp::Timeout, _)
            | Op::Block(..)
            | Op::Branch
            | Op::Let(_) => {}
        }
    }
}
