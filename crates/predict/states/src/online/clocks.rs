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

use std::sync::Mutex;

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_order::poset::{CHAINS_MAX, ChainId};
use reweave_trace::LockId;

use super::{Refused, lock};

/// The clocks of a running program, shared by its threads.
#[derive(Debug, Default)]
pub struct Clocks {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    threads: IndexVec<ChainId, Vec<u32>>,
    locks: FxHashMap<LockId, Vec<u32>>,
}

impl Clocks {
    /// The clocks before any event.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The clock of an event of `thread` that does not synchronise.
    ///
    /// # Errors
    /// If there are too many threads.
    pub fn local(&self, thread: ChainId) -> Result<Vec<u32>, Refused> {
        Ok(lock(&self.seen).tick(thread)?.clone())
    }

    /// The clock of the event at which `thread` takes `held`.
    ///
    /// # Errors
    /// If there are too many threads.
    pub fn acquire(&self, thread: ChainId, held: LockId) -> Result<Vec<u32>, Refused> {
        let mut seen = lock(&self.seen);
        seen.tick(thread)?;
        let Seen { threads, locks } = &mut *seen;
        if let Some(last) = locks.get(&held) {
            join(&mut threads[thread], last);
        }
        Ok(threads[thread].clone())
    }

    /// The clock of the event at which `thread` gives `held` back.
    ///
    /// # Errors
    /// If there are too many threads.
    pub fn release(&self, thread: ChainId, held: LockId) -> Result<Vec<u32>, Refused> {
        let mut seen = lock(&self.seen);
        let clock = seen.tick(thread)?.clone();
        join(seen.locks.entry(held).or_default(), &clock);
        Ok(clock)
    }

    /// The clock of the event at which `parent` starts `child`.
    ///
    /// # Errors
    /// If there are too many threads.
    pub fn fork(&self, parent: ChainId, child: ChainId) -> Result<Vec<u32>, Refused> {
        check(child)?;
        let mut seen = lock(&self.seen);
        let clock = seen.tick(parent)?.clone();
        join(seen.threads.get_or_default(child), &clock);
        Ok(clock)
    }

    /// The clock of the event at which `parent` has seen the end of `child`.
    ///
    /// # Errors
    /// If there are too many threads.
    pub fn join(&self, parent: ChainId, child: ChainId) -> Result<Vec<u32>, Refused> {
        let mut seen = lock(&self.seen);
        seen.tick(parent)?;
        let last = seen.threads.get(child).cloned().unwrap_or_default();
        join(&mut seen.threads[parent], &last);
        Ok(seen.threads[parent].clone())
    }
}

impl Seen {
    /// Counts an event of `thread` and gives its clock so far.
    fn tick(&mut self, thread: ChainId) -> Result<&mut Vec<u32>, Refused> {
        check(thread)?;
        let clock = self.threads.get_or_default(thread);
        let at = thread.index();
        clock.resize(clock.len().max(at + 1), 0);
        clock[at] = clock[at].checked_add(1).ok_or(Refused::Full { chain: thread })?;
        Ok(clock)
    }
}

fn check(chain: ChainId) -> Result<(), Refused> {
    if chain.index() < CHAINS_MAX { Ok(()) } else { Err(Refused::Chain { chain }) }
}

fn join(clock: &mut Vec<u32>, other: &[u32]) {
    clock.resize(clock.len().max(other.len()), 0);
    for (own, &theirs) in clock.iter_mut().zip(other) {
        *own = (*own).max(theirs);
    }
}
