//! Vector clocks for a running program that tells its operations one by one.
//!
//! Each thread and each lock has a clock. An operation counts its event in its thread's clock; an
//! acquire and a join then take over what the lock or the joined thread has seen, and a release and
//! a fork hand on what the thread has seen. What they give is the event's clock, to be inserted
//! before the thread goes on: an acquire when the lock is held, a release and a fork before they
//! take effect, a join when the other thread has ended. For programs of these operations it is
//! happens-before.
//!
//! Costs the threads an operation. Follows section 4.1 of Chang and Garg (2015): Algorithm 3, whose
//! last line copies the thread's clock back also at an acquire and a join, where nobody sees it.

use std::sync::{Mutex, MutexGuard};

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_order::poset::ChainId;
use reweave_trace::LockId;

/// The clocks of a running program, shared by its threads.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    threads: IndexVec<ChainId, Vec<u32>>,
    locks: FxHashMap<LockId, Vec<u32>>,
}

impl Clocks {
    /// The clocks before any event.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("nobody panics")
    }

    /// The clock of an event of `thread` that does not synchronise.
    pub(crate) fn local(&self, thread: ChainId) -> Vec<u32> {
        self.lock().tick(thread).clone()
    }

    /// The clock of the event at which `thread` acquires `held`.
    pub(crate) fn acquire(&self, thread: ChainId, held: LockId) -> Vec<u32> {
        let mut seen = self.lock();
        seen.tick(thread);
        let Seen { threads, locks } = &mut *seen;
        if let Some(last) = locks.get(&held) {
            join(&mut threads[thread], last);
        }
        threads[thread].clone()
    }

    /// The clock of the event at which `thread` releases `held`.
    pub(crate) fn release(&self, thread: ChainId, held: LockId) -> Vec<u32> {
        let mut seen = self.lock();
        let clock = seen.tick(thread).clone();
        join(seen.locks.entry(held).or_default(), &clock);
        clock
    }

    /// The clock of the event at which `parent` starts `child`.
    pub(crate) fn fork(&self, parent: ChainId, child: ChainId) -> Vec<u32> {
        let mut seen = self.lock();
        let clock = seen.tick(parent).clone();
        join(seen.threads.get_or_default(child), &clock);
        clock
    }

    /// The clock of the event at which `parent` has seen the end of `child`.
    pub(crate) fn join(&self, parent: ChainId, child: ChainId) -> Vec<u32> {
        let mut seen = self.lock();
        seen.tick(parent);
        let last = seen.threads.get(child).cloned().unwrap_or_default();
        join(&mut seen.threads[parent], &last);
        seen.threads[parent].clone()
    }
}

impl Seen {
    /// Counts an event of `thread` and gives its clock so far.
    fn tick(&mut self, thread: ChainId) -> &mut Vec<u32> {
        let clock = self.threads.get_or_default(thread);
        let at = thread.index();
        clock.resize(clock.len().max(at + 1), 0);
        clock[at] += 1;
        clock
    }
}

fn join(clock: &mut Vec<u32>, other: &[u32]) {
    clock.resize(clock.len().max(other.len()), 0);
    for (own, &theirs) in clock.iter_mut().zip(other) {
        *own = (*own).max(theirs);
    }
}
