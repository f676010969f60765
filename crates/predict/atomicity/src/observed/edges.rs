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
use reweave_trace::{Event, EventId, LockId, ObjectId, Op, Trace, VarId};

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
    pub(super) fn of(trace: &'t Trace) -> Self {
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
            Op::Arrive(_) | Op::Depart(_) => self.trace.signals().needed_round(event),
            _ => None,
        }
    }
}

impl Past {
    /// Adds to `sources` what `id` follows, and keeps what may follow it.
    fn step(&mut self, trace: &Trace, id: EventId, event: Event, sources: &mut Vec<EventId>) {
        let signals = trace.signals();
        match event.op {
            Op::Read(var) | Op::LooseRead(var) | Op::AtomicRead(var, _) => {
                let variable = self.vars.get_or_default(var);
                sources.extend(variable.last_write);
                let same = |last: &&mut EventId| trace.event(**last).thread == event.thread;
                match variable.reads.last_mut().filter(same) {
                    Some(last) => *last = id,
                    None => variable.reads.push(id),
                }
            }
            Op::Write(var) | Op::AtomicWrite(var, _) | Op::AtomicUpdate(var, _) => {
                let variable = self.vars.get_or_default(var);
                sources.append(&mut variable.reads);
                sources.extend(variable.last_write.replace(id));
            }
            Op::Acquire(lock) => {
                let lock = self.locks.get_or_default(lock);
                sources.extend(lock.alone);
                sources.extend_from_slice(&lock.shared);
            }
            Op::AcquireShared(lock) => sources.extend(self.locks.get_or_default(lock).alone),
            Op::Release(lock) => {
                let lock = self.locks.get_or_default(lock);
                lock.alone = Some(id);
                lock.shared.clear();
            }
            Op::ReleaseShared(lock) => self.locks.get_or_default(lock).shared.push(id),
            Op::Join(child) => {
                let lifetime = trace.lifetime(child);
                sources.extend(lifetime.last.or(lifetime.fork));
            }
            Op::Wake(_) => sources.extend(signals.stay(id).and_then(|stay| stay.notify)),
            Op::Notify(_) | Op::NotifyAll(_) => {
                let woken = signals.woken(id).iter().filter_map(|&wait| signals.stay(wait));
                sources.extend(woken.map(|stay| stay.begin));
            }
            Op::Take(_) => sources.extend(signals.post(id)),
            Op::Alloc(object) => *self.births.get_or_default(object) = Some(id),
            Op::Free(object) => sources.extend(*self.births.get_or_default(object)),
            // A fork is looked up by the first event of its thread, arrivals by their round.
            Op::Fork(_)
            | Op::Arrive(_)
            | Op::Depart(_)
            | Op::Post(_)
            | Op::Fence(_)
            | Op::Request(_)
            | Op::Wait(_)
            | Op::Timeout(_)
            | Op::Begin(_)
            | Op::End(_)
            | Op::Branch
            | Op::Let(_) => {}
        }
    }
}
