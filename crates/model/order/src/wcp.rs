//! Weak-causally-precedes (WCP): which events keep their order in the runs that this one predicts,
//! by weaker rules than those of [`crate::cp`]?
//!
//! Happens-before takes every hand-over of a lock for an order. WCP keeps of it:
//!
//! - (a) a release comes before an access in a later section on its lock if its own section holds
//!   an access of another thread that conflicts with that one;
//! - (b) a release comes before a later release of its lock if the acquire of the first section
//!   comes before the release of the second by WCP;
//! - (c) WCP composed with happens-before, on either side, is WCP.
//!
//! Edges that are no lock's (fork and join, notify, barriers, posts, atomic accesses) are WCP edges
//! as they are. Two sections in shared mode give no edge. WCP is not reflexive. All that it orders
//! CP orders too, which orders at acquires already.
//!
//! By (c) the WCP-predecessors of an event within a thread are a prefix of it, so a clock holds them
//! all. Every edge ends where it is found, so one pass suffices. It carries two clocks along the
//! happens-before edges: what happens before, and what comes before by WCP; an edge adds the first
//! of its source to the second of its target. Of a lock's sections that ended, those that a release
//! of the lock was found to come after need not be looked at again, since by (c) all later sections
//! come after them: the others wait in a queue, and both rules ask this queue alone. Variables that
//! sections of one thread alone access, or that none writes, are passed over.
//!
//! Exact over the whole trace: `oracle::wcp` is the definition. A pair of conflicting accesses
//! that neither WCP nor a thread orders is a race of WCP. The first one is a race or a deadlock that
//! can happen, if sections are nested; later ones are leads. Rule (b) holds, as printed, within one
//! thread too.
//!
//! An access costs a look-up for each lock that its thread holds, nothing if it holds none; an event
//! that synchronises costs one clock operation. Each section enters its queue once and leaves it
//! once (shared ones may be gone through once by each thread). Keeps two clocks for each thread and
//! lock, a few words for each variable under each lock, and for each section in a queue as many
//! words as there are threads that the section before it knew less of.
//!
//! Follows Kini, Mathur and Viswanathan, "Dynamic Race Prediction in Linear Time" (PLDI 2017),
//! Definition 3 and Algorithm 1, with one queue a lock where they have one a lock and thread.

mod accesses;
mod lock;
mod past;

use reweave_base::{Id, IndexVec};
use reweave_trace::views::Mode;
use reweave_trace::{
    AccessOp, BarrierOp, ConditionOp, Event, EventId, LockId, LockOp, ObjectOp, Op, OpKind,
    SemaphoreOp, ThreadId, ThreadOp, Trace, VarId,
};

use crate::access::class;
use crate::clock::VectorClock;
use crate::flow::Flow;
use accesses::Accesses;
use lock::Lock;

/// The WCP clocks after the events so far.
#[derive(Debug)]
pub struct WeakCausallyPrecedes {
    threads: IndexVec<ThreadId, Thread>,
    locks: IndexVec<LockId, Lock>,
    accesses: Accesses,
    /// The edges of no lock and no fork or join.
    flow: Flow,
    /// Whether there was an atomic write, which a plain one would cover.
    has_atomics: bool,
    /// Room for a clock that arrives along such an edge.
    arriving: VectorClock,
}

/// A thread after its events so far.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// How many events it had.
    time: u32,
    /// What happens before its next event. Of itself it holds what it has sent to others, which
    /// need not be all.
    happened: VectorClock,
    /// What comes before its last event by WCP.
    weak: VectorClock,
    /// The sections it is in.
    open: Vec<(LockId, Mode)>,
}

impl Thread {
    /// All that happens before what its last event is sent to.
    fn sent(&mut self, own: ThreadId) -> &VectorClock {
        self.happened.raise(own, self.time);
        &self.happened
    }
}

impl WeakCausallyPrecedes {
    /// The clocks before any event of `trace`.
    ///
    /// ```
    /// use reweave_order::wcp::WeakCausallyPrecedes;
    ///
    /// let trace = reweave_testkit::trace("
    /// T1      T2
    /// acq(m)
    /// w(x)
    /// rel(m)
    ///         acq(m)
    ///         rel(m)
    ///         w(x)
    /// ");
    /// let t1 = trace.events().next().unwrap().1.thread;
    /// let mut clocks = WeakCausallyPrecedes::new(&trace);
    /// let known = trace.events().map(|(event, _)| clocks.advance(&trace, event).get(t1)).last();
    /// assert_eq!(known, Some(0), "the sections do not conflict");
    /// ```
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let names = trace.names();
        Self {
            threads: IndexVec::from_elem(Thread::default(), names.threads.len()),
            locks: locks(trace),
            accesses: Accesses::new(trace),
            flow: Flow::default(),
            has_atomics: false,
            arriving: VectorClock::default(),
        }
    }

    /// Takes the next event of `trace`, the one it was made for, in observed order and gives its
    /// clock: the events that come before it by WCP. Its own thread's earlier events need not be
    /// among them.
    #[inline]
    pub fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        let happening = trace.event(event);
        let Event { thread, op, .. } = happening;
        self.threads[thread].time += 1;
        match op {
            Op::Access(AccessOp::Read | AccessOp::UnknownRead, var) => {
                self.access(thread, var, class(op))
            }
            Op::Access(AccessOp::Write, var) => {
                if self.has_atomics {
                    self.send(trace, event, happening);
                }
                self.access(thread, var, class(op));
            }
            Op::Access(
                AccessOp::AtomicRead(_) | AccessOp::AtomicWrite(_) | AccessOp::AtomicUpdate(_),
                var,
            ) => {
                self.receive(trace, event, happening);
                self.access(thread, var, class(op));
                if op.is_write() {
                    self.has_atomics = true;
                    self.send(trace, event, happening);
                }
            }
            Op::Lock(LockOp::Acquire, lock) => self.acquire(thread, lock, Mode::Exclusive),
            Op::Lock(LockOp::AcquireShared, lock) => self.acquire(thread, lock, Mode::Shared),
            Op::Lock(LockOp::Release, lock) => self.release(thread, lock, Mode::Exclusive),
            Op::Lock(LockOp::ReleaseShared, lock) => self.release(thread, lock, Mode::Shared),
            Op::Thread(ThreadOp::Fork, child) => self.fork(thread, child),
            Op::Thread(ThreadOp::Join, child) => self.join(trace, thread, child),
            Op::Condition(ConditionOp::Wake, _)
            | Op::Barrier(BarrierOp::Depart, _)
            | Op::Semaphore(SemaphoreOp::Take, _)
            | Op::Object(ObjectOp::Free, _) => {
                self.receive(trace, event, happening);
            }
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _)
            | Op::Semaphore(SemaphoreOp::Post, _)
            | Op::Object(ObjectOp::Alloc, _) => {
                self.send(trace, event, happening);
            }
            Op::Barrier(BarrierOp::Arrive, _) => {
                self.receive(trace, event, happening);
                self.send(trace, event, happening);
            }
            Op::Fence(_)
            | Op::Lock(LockOp::Request, _)
            | Op::Condition(ConditionOp::Wait | ConditionOp::Timeout, _)
            | Op::Block(..)
            | Op::Branch
            | Op::Let(_) => {}
        }
        &self.threads[thread].weak
    }

    /// Rule (a).
    #[inline]
    fn access(&mut self, thread: ThreadId, var: VarId, class: usize) {
        let Thread { weak, open, .. } = &mut self.threads[thread];
        if open.is_empty() {
            return;
        }
        let Some(var) = self.accesses.contended(var) else { return };
        for &(id, mode) in &*open {
            let place = self.accesses.place(id, var);
            let lock = &mut self.locks[id];
            match mode {
                Mode::Exclusive => lock.access(&mut self.accesses, place, class, weak),
                Mode::Shared => lock.access_shared(&self.accesses, place, class, thread, weak),
            }
        }
    }

    fn acquire(&mut self, thread: ThreadId, id: LockId, mode: Mode) {
        let Thread { time, happened, weak, open } = &mut self.threads[thread];
        let is_outermost = match mode {
            Mode::Exclusive => self.locks[id].acquire((thread, *time), happened, weak),
            Mode::Shared => self.locks[id].acquire_shared((thread, *time), happened, weak),
        };
        if is_outermost {
            open.push((id, mode));
        }
    }

    /// Rule (b).
    fn release(&mut self, thread: ThreadId, id: LockId, mode: Mode) {
        let lock = &mut self.locks[id];
        let own = &mut self.threads[thread];
        own.sent(thread);
        let Thread { time, happened, weak, open } = own;
        let is_outermost = match mode {
            Mode::Exclusive => lock.release(&mut self.accesses, *time, happened, weak),
            Mode::Shared => {
                lock.release_shared(&mut self.accesses, (thread, *time), happened, weak)
            }
        };
        if is_outermost && let Some(at) = open.iter().rposition(|&held| held == (id, mode)) {
            open.remove(at);
        }
    }

    fn fork(&mut self, thread: ThreadId, child: ThreadId) {
        self.arriving.copy_from(self.threads[thread].sent(thread));
        let child = &mut self.threads[child];
        child.happened.join(&self.arriving);
        child.weak.join(&self.arriving);
    }

    fn join(&mut self, trace: &Trace, thread: ThreadId, child: ThreadId) {
        let lifetime = trace.lifetime(child);
        let forked_here = lifetime.fork.is_some_and(|fork| trace.event(fork).thread == thread);
        // A thread that never runs passes its fork on to its join, but not to itself.
        if lifetime.first.is_some() || !forked_here {
            self.arriving.copy_from(self.threads[child].sent(child));
            self.arrive(thread);
        }
    }

    /// Adds what an edge that is no lock's brings to `event`.
    fn receive(&mut self, trace: &Trace, event: EventId, happening: Event) {
        self.arriving.clear();
        self.flow.receive(trace, event, happening, &mut self.arriving);
        self.arrive(happening.thread);
    }

    fn arrive(&mut self, thread: ThreadId) {
        let Thread { happened, weak, .. } = &mut self.threads[thread];
        happened.join(&self.arriving);
        weak.join(&self.arriving);
    }

    /// Sends `event` along the edges that start at it and are no lock's.
    fn send(&mut self, trace: &Trace, event: EventId, happening: Event) {
        let clock = self.threads[happening.thread].sent(happening.thread);
        self.flow.send(trace, event, happening, clock, clock);
    }
}

/// The locks of `trace` before its events, with how often each will be taken alone.
fn locks(trace: &Trace) -> IndexVec<LockId, Lock> {
    let names = trace.names();
    let mut locks: IndexVec<LockId, Lock> =
        (0..names.locks.len()).map(|_| Lock::default()).collect();
    let columns = trace.columns();
    for (code, &operand) in columns.codes.iter().zip(&columns.operands) {
        if code.kind() == OpKind::Acquire {
            locks[LockId::from_index(operand as usize)].expect_acquire();
        }
    }
    locks
}

impl crate::Clocks for WeakCausallyPrecedes {
    #[inline]
    fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        Self::advance(self, trace, event)
    }
}
