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
//! Who wants to share a lock may also have to stay behind a thread that waits for those who do. So a
//! request for a lock that has two modes writes, too.
//!
//! A thread that tries again and again, perhaps at several locks, and does nothing else that others can
//! see finds the same as before if it does the rest at once. So a few attempts at each are enough. The
//! others are not counted either: another run may not have to try as often. Semaphores and channels
//! that are found empty are thinned out in the same way.
//!
//! Where threads ran freely an attempt may seem to come after the release that it was before: then it
//! stays after that. Or it seems to come before the acquire that it was after: then whatever its thread
//! does once that is seen comes after it.

use std::io;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, Kind, flag};
use reweave_trace::views::Mode;
use reweave_trace::{AccessOp, LockId, MemoryOrder, Op, TAKEN_BY, ThreadId, VarId};

use super::names::fresh;
use super::word_locks::Meaning;
use super::{Current, Pass};

/// How many attempts of a row are kept for each lock. Two would do for the argument; a replay makes as
/// many as there are.
const KEPT_MAX: u32 = 8;

/// The sections of locks that threads found taken.
#[derive(Debug, Default)]
pub struct Attempts {
    /// The locks that somebody finds taken, of those that were used so far.
    pub tried: FxHashSet<LockId>,
    /// What stands for the sections of a thread.
    sections: FxHashMap<(LockId, ThreadId), VarId>,
    /// Who took or released a lock last.
    last: FxHashMap<LockId, ThreadId>,
    /// How often what is at an address was taken and given back so far.
    changes: FxHashMap<u64, u32>,
    /// How often it was taken.
    acquires: FxHashMap<u64, u32>,
    /// What a thread has just found taken.
    rows: FxHashMap<u32, Vec<Found>>,
    /// The address of the lock that a thread found taken before anybody was seen to take it, and how often
    /// it had been taken by then.
    early: FxHashMap<u32, (u64, u32)>,
    /// Whether the event that is being written is an attempt.
    is_attempt: bool,
}

/// That a thread found something taken, in a row of such attempts.
#[derive(Clone, Copy, Debug)]
struct Found {
    address: u64,
    /// The changes by then.
    changes: u32,
    count: u32,
}

impl Attempts {
    /// Takes note of what `event` does to locks, semaphores and channels.
    pub fn step(&mut self, event: &Event, meaning: Meaning) {
        let is_change = matches!(meaning, Meaning::Acquire { .. } | Meaning::Release)
            || match event.kind {
                Kind::Lock | Kind::Unlock | Kind::LockRequest => true,
                Kind::SemaphorePost | Kind::SemaphoreTake | Kind::Send => true,
                Kind::Receive => event.flags & flag::TRY == 0,
                _ => false,
            };
        let address = match event.kind {
            Kind::Wait | Kind::Wake => event.extra,
            _ => is_change.then_some(event.address),
        };
        let Some(count) = address.and_then(|address| self.changes.get_mut(&address)) else {
            return;
        };
        *count += 1;
        let is_acquire = matches!(meaning, Meaning::Acquire { .. });
        if is_acquire || matches!(event.kind, Kind::Lock | Kind::Wake) {
            *self.acquires.entry(address.unwrap_or(0)).or_default() += 1;
        }
    }

    /// Whether the attempt of thread `number` at `address` is one of many in a row.
    fn is_repeated(&mut self, number: u32, address: u64) -> bool {
        let changes = *self.changes.entry(address).or_default();
        let row = self.rows.entry(number).or_default();
        if row.iter().any(|found| found.address == address && found.changes != changes) {
            row.clear();
        }
        match row.iter_mut().find(|found| found.address == address) {
            Some(found) => found.count += 1,
            None => row.push(Found { address, changes, count: 1 }),
        }
        row.iter().any(|found| found.address == address && found.count > KEPT_MAX)
    }

    /// Whether no attempt waits for somebody to be seen to have the lock.
    pub fn has_no_early(&self) -> bool {
        self.early.is_empty()
    }

    /// Thread `number` does something else that others can see.
    pub fn interrupt(&mut self, number: u32) {
        if !self.is_attempt && !self.rows.is_empty() {
            self.rows.remove(&number);
        }
    }
}

/// Whether `event` finds a lock taken, or a semaphore or channel empty.
fn is_attempt(event: &Event, meaning: Meaning) -> bool {
    let is_empty = event.kind == Kind::Receive && event.flags & flag::TIMED_OUT != 0;
    event.kind == Kind::LockBusy || meaning == Meaning::Attempt || is_empty
}

impl Pass<'_> {
    /// Whether `event` of thread `number` is an attempt that fails as many did just before, with nothing
    /// done in between by that thread or to what it tries to take.
    pub fn repeats_attempt(&mut self, number: u32, event: &Event, meaning: Meaning) -> bool {
        self.attempts.step(event, meaning);
        self.attempts.is_attempt = is_attempt(event, meaning);
        self.attempts.is_attempt && self.attempts.is_repeated(number, event.address)
    }

    /// A thread finds a lock taken and goes on.
    pub fn find_taken(&mut self, current: &mut Current) -> io::Result<()> {
        let lock = self.lock(current.event.address);
        let own = self.thread_id(current.number);
        let is_shared = current.event.flags & flag::SHARED != 0;
        let others = || self.threads.iter().filter(|thread| thread.id.is_some_and(|id| id != own));
        let with = |mode: Mode| {
            let mut ids = others().filter_map(|thread| thread.id);
            ids.find(|&id| self.rules.hold(id, lock) == Some(mode))
        };
        // Who wants to share a lock may have to stay behind somebody who waits for those who do.
        let waiting =
            || others().find(|it| is_shared && it.asked == Some(lock)).and_then(|it| it.id);
        let holder = with(Mode::Exclusive).or_else(waiting).or_else(|| with(Mode::Shared));
        if holder.is_none() && self.rules.hold(own, lock).is_some() {
            // Its own section keeps it from the lock wherever that is.
            return Ok(());
        }
        if holder.is_none() {
            // Where threads run freely, another may have the lock but not have said so yet.
            let address = current.event.address;
            let acquires = self.attempts.acquires.get(&address).copied().unwrap_or(0);
            self.attempts.early.insert(current.number, (address, acquires));
        }
        let Some(holder) = holder.or_else(|| self.attempts.last.get(&lock).copied()) else {
            return Ok(());
        };
        self.read_section(current, lock, holder)
    }

    fn read_section(
        &mut self,
        current: &mut Current,
        lock: LockId,
        holder: ThreadId,
    ) -> io::Result<()> {
        let Some(&var) = self.attempts.sections.get(&(lock, holder)) else { return Ok(()) };
        let read = AccessOp::AtomicRead(MemoryOrder::Relaxed);
        self.emit(current, Op::Access(read, var), None).map(drop)
    }

    /// A thread that found a lock taken too early comes after the section that it must have lost to,
    /// from its next event on.
    pub fn come_after_early_attempt(&mut self, current: &mut Current) -> io::Result<()> {
        let Some(&(address, before)) = self.attempts.early.get(&current.number) else {
            return Ok(());
        };
        if self.attempts.acquires.get(&address).copied().unwrap_or(0) == before {
            return Ok(());
        }
        self.attempts.early.remove(&current.number);
        let lock = self.lock(address);
        match self.attempts.last.get(&lock).copied() {
            Some(last) if last != self.thread_id(current.number) => {
                self.read_section(current, lock, last)
            }
            _ => Ok(()),
        }
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
        let write = AccessOp::AtomicWrite(MemoryOrder::Relaxed);
        self.emit(current, Op::Access(write, var), None).map(drop)
    }
}
