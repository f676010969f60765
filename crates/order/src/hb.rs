//! Happens-before: which events synchronisation puts before which?
//!
//! The smallest order closed under composition that holds
//!
//! - program order within a thread;
//! - a release before every later acquire of its lock, unless both are in shared mode;
//! - a fork before its thread's events, and those before a join of the thread;
//! - a notify before the wake it caused; all arrivals of a barrier's round before its departures
//!   and before the arrivals of the next; a post before the take that used it;
//! - an atomic write before an atomic read that sees it, whatever their memory orders;
//! - the birth of an object before its end.
//!
//! [`HappensBefore::advance`] takes the events one by one in observed order and gives each one's
//! clock: an event f comes before e, or is e, exactly if f's number in its thread, counted from
//! 1, is at most the clock of e at f's thread. [`mod@reference`] writes the order down pair by pair.
//!
//! Costs one clock operation an event that synchronises, so events times threads in all; keeps a
//! clock for each thread, lock and atomic variable and for each signal on its way.
//!
//! Follows Lamport, "Time, clocks, and the ordering of events in a distributed system" (1978),
//! with vector clocks after Mattern (1989) and Fidge (1988).

pub mod reference;

use std::mem;

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::views::RoundId;
use reweave_trace::{EventId, LockId, ObjectId, Op, ThreadId, Trace, VarId};

use crate::clock::VectorClock;

/// The clocks after the events so far.
#[derive(Debug, Default)]
pub struct HappensBefore {
    threads: IndexVec<ThreadId, VectorClock>,
    locks: IndexVec<LockId, LockClocks>,
    /// Of the last write, where it was atomic.
    atomics: IndexVec<VarId, VectorClock>,
    births: IndexVec<ObjectId, VectorClock>,
    /// Of notifies, and how many that each woke have still to wake.
    notifies: FxHashMap<EventId, (VectorClock, usize)>,
    /// Of the arrivals of a round, while something comes after it.
    rounds: FxHashMap<RoundId, VectorClock>,
    posts: FxHashMap<EventId, VectorClock>,
}

/// What the releases of a lock pass on.
#[derive(Clone, Debug, Default)]
struct LockClocks {
    /// Of the last exclusive release, which has seen all releases before it.
    exclusive: VectorClock,
    /// Of the shared releases since.
    shared: VectorClock,
}

impl HappensBefore {
    /// The clocks before any event.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event of `trace` in observed order and gives its clock: the events that
    /// happen before it, itself included.
    pub fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        let (thread, op) = (trace.event(event).thread, trace.event(event).op);
        let mut clock = mem::take(self.threads.get_or_default(thread));
        self.receive(trace, event, op, &mut clock);
        clock.tick(thread);
        self.send(trace, event, op, &clock);
        let own = &mut self.threads[thread];
        *own = clock;
        own
    }

    /// Adds to `clock` what comes before `event` by an edge that ends at it.
    fn receive(&mut self, trace: &Trace, event: EventId, op: Op, clock: &mut VectorClock) {
        match op {
            Op::Acquire(lock) => {
                let released = self.locks.get_or_default(lock);
                clock.join(&released.exclusive);
                clock.join(&released.shared);
            }
            Op::AcquireShared(lock) => clock.join(&self.locks.get_or_default(lock).exclusive),
            Op::Join(child) => clock.join(self.threads.get_or_default(child)),
            Op::Wake(_) => self.wake(trace, event, clock),
            Op::Arrive(_) | Op::Depart(_) => self.pass_barrier(trace, event, clock),
            Op::Take(_) => {
                let post = trace.signals().post(event);
                if let Some(posted) = post.and_then(|post| self.posts.remove(&post)) {
                    clock.join(&posted);
                }
            }
            Op::AtomicRead(var, _) | Op::AtomicUpdate(var, _) => {
                clock.join(self.atomics.get_or_default(var));
            }
            Op::Free(object) => clock.join(self.births.get_or_default(object)),
            Op::Read(_)
            | Op::Write(_)
            | Op::LooseRead(_)
            | Op::AtomicWrite(..)
            | Op::Fence(_)
            | Op::Release(_)
            | Op::ReleaseShared(_)
            | Op::Request(_)
            | Op::Fork(_)
            | Op::Wait(_)
            | Op::Timeout(_)
            | Op::Notify(_)
            | Op::NotifyAll(_)
            | Op::Post(_)
            | Op::Alloc(_)
            | Op::Begin(_)
            | Op::End(_)
            | Op::Branch
            | Op::Let(_) => {}
        }
    }

    /// Keeps `clock` for events that come after `event` by an edge that starts at it.
    fn send(&mut self, trace: &Trace, event: EventId, op: Op, clock: &VectorClock) {
        match op {
            Op::Release(lock) => {
                let released = self.locks.get_or_default(lock);
                released.exclusive.copy_from(clock);
                released.shared.clear();
            }
            Op::ReleaseShared(lock) => self.locks.get_or_default(lock).shared.join(clock),
            Op::Fork(child) => self.threads.get_or_default(child).join(clock),
            Op::Notify(_) | Op::NotifyAll(_) => {
                let woken = trace.signals().woken(event).len();
                if woken > 0 {
                    self.notifies.insert(event, (clock.clone(), woken));
                }
            }
            Op::Arrive(_) => {
                let own = trace.signals().own_round(event);
                let waited_for = |&round: &RoundId| {
                    trace.signals().round(round).last_needed.is_some_and(|last| last > event)
                };
                if let Some(round) = own.filter(waited_for) {
                    self.rounds.entry(round).or_default().join(clock);
                }
            }
            Op::Post(_) => {
                if trace.signals().is_taken(event) {
                    self.posts.insert(event, clock.clone());
                }
            }
            Op::AtomicWrite(var, _) | Op::AtomicUpdate(var, _) => {
                self.atomics.get_or_default(var).copy_from(clock);
            }
            // An atomic read that sees a plain write is ordered by nothing.
            Op::Write(var) => {
                if self.atomics.get(var).is_some() {
                    self.atomics[var].clear();
                }
            }
            Op::Alloc(object) => self.births.get_or_default(object).copy_from(clock),
            Op::Read(_)
            | Op::LooseRead(_)
            | Op::AtomicRead(..)
            | Op::Fence(_)
            | Op::Acquire(_)
            | Op::AcquireShared(_)
            | Op::Request(_)
            | Op::Join(_)
            | Op::Wait(_)
            | Op::Wake(_)
            | Op::Timeout(_)
            | Op::Depart(_)
            | Op::Take(_)
            | Op::Free(_)
            | Op::Begin(_)
            | Op::End(_)
            | Op::Branch
            | Op::Let(_) => {}
        }
    }

    fn wake(&mut self, trace: &Trace, event: EventId, clock: &mut VectorClock) {
        let notify = trace.signals().stay(event).and_then(|stay| stay.notify);
        let Some((notified, left)) = notify.and_then(|notify| self.notifies.get_mut(&notify))
        else {
            return;
        };
        clock.join(notified);
        *left -= 1;
        if *left == 0
            && let Some(notify) = notify
        {
            self.notifies.remove(&notify);
        }
    }

    fn pass_barrier(&mut self, trace: &Trace, event: EventId, clock: &mut VectorClock) {
        let Some(needed) = trace.signals().needed_round(event) else { return };
        if let Some(arrived) = self.rounds.get(&needed) {
            clock.join(arrived);
        }
        if trace.signals().round(needed).last_needed == Some(event) {
            self.rounds.remove(&needed);
        }
    }
}
