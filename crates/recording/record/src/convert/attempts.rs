//! Locks that a thread found taken and went on without, as after `pthread_mutex_trylock`.
//!
//! The question: what the thread does next may depend on that it did not get the lock. In which
//! reorderings does it still not get it?
//!
//! The idea: in those in which the attempt falls into a section of the thread that had the lock. For
//! each lock that somebody found taken and each thread that takes it there is a variable, which the
//! thread writes at the beginning and at the end of its sections. An attempt reads that of a thread
//! which has the lock, so it stays between the two writes that it was between. The accesses are
//! relaxed: an attempt that fails orders nothing. Sections can still change places if nobody tried in
//! vain meanwhile.
//!
//! A thread that tries again and again and does nothing else finds the same as the first time if it
//! does all that at once, so one attempt in each section is enough. The others are not counted
//! either: another run may not have to try as often.
//!
//! Where threads ran freely an attempt may seem to come after the release that it was before. Then it
//! stays after that, and before the same thread takes the lock again.

use std::io;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, Kind};
use reweave_trace::views::Mode;
use reweave_trace::{AccessOp, LockId, MemoryOrder, Op, TAKEN_BY, ThreadId, VarId};

use super::names::fresh;
use super::spins::is_no_step;
use super::word_locks::Meaning;
use super::{Current, Pass};

/// The sections of locks that threads found taken.
#[derive(Debug, Default)]
pub struct Attempts {
    /// The locks that somebody finds taken, of those that were used so far.
    pub tried: FxHashSet<LockId>,
    /// What stands for the sections of a thread.
    sections: FxHashMap<(LockId, ThreadId), VarId>,
    /// Who took or released a lock last.
    last: FxHashMap<LockId, ThreadId>,
    /// How often locks were taken and released so far.
    changes: FxHashMap<LockId, u32>,
    /// The lock that a thread has just found taken, and its changes by then.
    found: FxHashMap<u32, (LockId, u32)>,
}

impl Pass<'_> {
    /// Whether `event` of thread `number` finds a lock taken which that thread has just found taken,
    /// with nothing done in between by it or to the lock.
    pub fn repeats_attempt(&mut self, number: u32, event: &Event, meaning: Meaning) -> bool {
        if event.kind != Kind::LockBusy && meaning != Meaning::Attempt {
            if !self.attempts.found.is_empty() && !is_no_step(event.kind) {
                self.attempts.found.remove(&number);
            }
            return false;
        }
        let lock = self.lock(event.address);
        let changes = self.attempts.changes.get(&lock).copied().unwrap_or(0);
        self.attempts.found.insert(number, (lock, changes)) == Some((lock, changes))
    }

    /// A thread finds a lock taken and goes on.
    pub fn find_taken(&mut self, current: &mut Current) -> io::Result<()> {
        let lock = self.lock(current.event.address);
        let own = self.thread_id(current.number);
        // Its own section keeps it from the lock wherever that is.
        if self.rules.hold(own, lock).is_some() {
            return Ok(());
        }
        // Who wants to share a lock may have to stay behind somebody who waits for those who do.
        let with = |mode: Mode| {
            let mut ids = self.threads.iter().filter_map(|thread| thread.id);
            ids.find(|&id| self.rules.hold(id, lock) == Some(mode))
        };
        let holder = with(Mode::Exclusive).or_else(|| with(Mode::Shared));
        let Some(holder) = holder.or_else(|| self.attempts.last.get(&lock).copied()) else {
            return Ok(());
        };
        let Some(&var) = self.attempts.sections.get(&(lock, holder)) else { return Ok(()) };
        let read = AccessOp::AtomicRead(MemoryOrder::Relaxed);
        self.emit(current, Op::Access(read, var), None).map(drop)
    }

    /// Emits that a section of the thread of `current` begins or ends, if somebody finds its lock taken.
    pub fn mark_section(&mut self, current: &mut Current, lock: LockId) -> io::Result<()> {
        if !self.attempts.tried.contains(&lock) {
            return Ok(());
        }
        let thread = self.thread_id(current.number);
        let var = match self.attempts.sections.get(&(lock, thread)) {
            Some(&var) => var,
            None => {
                let names = self.sink.names();
                let (lock_name, thread_name) = (names.locks.name(lock), names.threads.name(thread));
                let name = format!("{lock_name}{TAKEN_BY}{thread_name}");
                let var = fresh(&mut names.vars, self.memory.var_uses(), &name);
                self.attempts.sections.insert((lock, thread), var);
                var
            }
        };
        self.attempts.last.insert(lock, thread);
        *self.attempts.changes.entry(lock).or_default() += 1;
        let write = AccessOp::AtomicWrite(MemoryOrder::Relaxed);
        self.emit(current, Op::Access(write, var), None).map(drop)
    }
}
