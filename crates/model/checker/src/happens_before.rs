//! Happens-before of one order of events, by the memory orders of C++20.
//!
//! What comes after one event is followed from it on: through its thread, forks and joins, locks,
//! signals, and from an atomic write to an atomic read that sees it, if the one releases and the
//! other acquires. Fences release for the writes after them and acquire for the reads before them.
//! A read-modify-write passes on what the write that it saw released. In an order that is
//! sequentially consistent, `seqcst` is both.
//!
//! Some things order more than that, so that less is called unordered: a store passes on what its own
//! thread released by the variable before, as in C11; a plain read comes after the write that it saw,
//! since who sees a racing write takes part in another race already; a wake comes after its notify, and
//! that after the begin of the wait; a take of a semaphore comes after all posts before it.

use reweave_base::{FxHashMap, FxHashSet, IndexVec};
use reweave_op::{
    AccessOp, BarrierOp, ConditionOp, EventId, LockId, LockOp, MemoryOrder, NameKind, ObjectId,
    ObjectOp, Op, SemaphoreId, SemaphoreOp, ThreadId, ThreadOp, VarId,
};

use crate::observed::Observed;
use crate::replay::Replay;

/// Whether one of two events that happened comes before the other.
pub(crate) fn orders(replay: &Replay<'_>, first: EventId, second: EventId) -> bool {
    let step = |event| replay.step_of(event).map_or(0, |(step, _)| step);
    let (early, late) = if step(first) < step(second) { (first, second) } else { (second, first) };
    let mut after = Follower::new(&replay.observed);
    after.threads[replay.observed.thread(early)] = true;
    for event in replay.events_from(step(early)).take_while(|&event| event != late) {
        after.step(event);
    }
    let (op, thread) = (replay.observed.op(late), replay.observed.thread(late));
    after.threads[thread]
        || match op {
            // What the later access itself sees makes no order, unless it acquires it.
            Op::Access(access, var) => {
                let seen = after.value(var);
                let acquires = access.order().is_some_and(MemoryOrder::acquires);
                access.is_read() && acquires && seen.is_atomic && seen.passes_on
            }
            _ => after.receives(late, op, thread),
        }
}

/// What comes after an event, as far as the order was followed.
struct Follower<'a> {
    observed: &'a Observed<'a>,
    /// Whether the next event of each thread does.
    threads: IndexVec<ThreadId, bool>,
    /// Whether the last release fence of each thread does, and a write that it has seen without
    /// acquiring.
    fences: IndexVec<ThreadId, (bool, bool)>,
    values: FxHashMap<VarId, Value>,
    /// Threads and the variables by which they have released after the event.
    released: FxHashSet<(ThreadId, VarId)>,
    /// Whether an exclusive release does, and a shared one.
    locks: FxHashMap<LockId, (bool, bool)>,
    /// Semaphores that were posted after it, and objects allocated.
    semaphores: FxHashSet<SemaphoreId>,
    objects: FxHashSet<ObjectId>,
    /// Notifies, arrivals and begins of waits that do.
    signals: FxHashSet<EventId>,
}

/// The last write of a variable.
#[derive(Clone, Copy, Debug, Default)]
struct Value {
    is_atomic: bool,
    /// Whether it comes after the event.
    is_after: bool,
    /// Whether something does that who acquires it comes after.
    passes_on: bool,
}

impl<'a> Follower<'a> {
    fn new(observed: &'a Observed<'a>) -> Self {
        let threads_count = observed.count(NameKind::Thread);
        Self {
            observed,
            threads: IndexVec::from_elem(false, threads_count),
            fences: IndexVec::from_elem((false, false), threads_count),
            values: FxHashMap::default(),
            released: FxHashSet::default(),
            locks: FxHashMap::default(),
            semaphores: FxHashSet::default(),
            objects: FxHashSet::default(),
            signals: FxHashSet::default(),
        }
    }

    fn value(&self, var: VarId) -> Value {
        self.values.get(&var).copied().unwrap_or_default()
    }

    /// Whether an exclusive release of `lock` comes after the event, and a shared one.
    fn lock(&self, lock: LockId) -> (bool, bool) {
        self.locks.get(&lock).copied().unwrap_or_default()
    }

    fn step(&mut self, event: EventId) {
        let (op, thread) = (self.observed.op(event), self.observed.thread(event));
        let is_after = self.threads[thread] || self.receives(event, op, thread);
        self.threads[thread] = is_after;
        if is_after && self.observed.wait_at.contains_key(&event) {
            self.signals.insert(event);
        }
        match op {
            Op::Access(access, var) => self.access(access, var, thread),
            Op::Fence(order) if order.releases() => self.fences[thread].0 = is_after,
            Op::Lock(LockOp::Release, lock) => self.locks.entry(lock).or_default().0 |= is_after,
            Op::Lock(LockOp::ReleaseShared, lock) => {
                self.locks.entry(lock).or_default().1 |= is_after;
            }
            Op::Thread(ThreadOp::Fork, child) => self.threads[child] |= is_after,
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _)
            | Op::Barrier(BarrierOp::Arrive, _) => self.signals.extend(is_after.then_some(event)),
            Op::Semaphore(SemaphoreOp::Post, semaphore) => {
                self.semaphores.extend(is_after.then_some(semaphore));
            }
            Op::Object(ObjectOp::Alloc, object) => {
                self.objects.extend(is_after.then_some(object));
            }
            Op::Fence(_)
            | Op::Lock(..)
            | Op::Thread(..)
            | Op::Condition(..)
            | Op::Barrier(..)
            | Op::Semaphore(..)
            | Op::Object(..)
            | Op::Marker(_) => {}
        }
    }

    /// Whether `event` comes after by what it waits for.
    fn receives(&self, event: EventId, op: Op, thread: ThreadId) -> bool {
        let is_signalled = |id: &EventId| self.signals.contains(id);
        match op {
            Op::Fence(order) => order.acquires() && self.fences[thread].1,
            Op::Lock(LockOp::Acquire, lock) => self.lock(lock).0 || self.lock(lock).1,
            Op::Lock(LockOp::AcquireShared, lock) => self.lock(lock).0,
            Op::Thread(ThreadOp::Join, child) => self.threads[child],
            Op::Condition(ConditionOp::Wake, _) => {
                self.observed.cause[event].as_ref().is_some_and(is_signalled)
            }
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
                let woken = self.observed.woken_by(event).iter();
                woken.map(|&at| self.observed.waits[at].begin).any(|begin| is_signalled(&begin))
            }
            Op::Barrier(..) => self.observed.arrivals_before(event).iter().any(is_signalled),
            Op::Semaphore(SemaphoreOp::Take, semaphore) => self.semaphores.contains(&semaphore),
            Op::Object(ObjectOp::Free, object) => self.objects.contains(&object),
            Op::Access(..)
            | Op::Lock(..)
            | Op::Thread(..)
            | Op::Condition(..)
            | Op::Semaphore(..)
            | Op::Object(..)
            | Op::Marker(_) => false,
        }
    }

    fn access(&mut self, access: AccessOp, var: VarId, thread: ThreadId) {
        let (value, order) = (self.value(var), access.order());
        // Who wrote what a read of an unknown writer saw is not known.
        if access.is_read() && access != AccessOp::UnknownRead {
            match order.filter(|_| value.is_atomic) {
                None => self.threads[thread] |= value.is_after,
                Some(order) if order.acquires() => self.threads[thread] |= value.passes_on,
                Some(_) => self.fences[thread].1 |= value.passes_on,
            }
        }
        if access.is_write() {
            let (is_after, is_atomic) = (self.threads[thread], order.is_some());
            if is_after && order.is_some_and(MemoryOrder::releases) {
                self.released.insert((thread, var));
            }
            let releases = order.is_none_or(MemoryOrder::releases);
            let own = if releases { is_after } else { self.fences[thread].0 };
            let continues = access.is_read() && value.is_atomic && value.passes_on;
            let goes_on = is_atomic && self.released.contains(&(thread, var));
            let passes_on = own || continues || goes_on;
            self.values.insert(var, Value { is_atomic, is_after, passes_on });
        }
    }
}
