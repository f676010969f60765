//! Critical sections: from the outermost acquire of a lock to the release that gives it back.
//!
//! What a thread holds is a list, newest first, that changes at the ends of sections only; the
//! lists of a thread share their tails, so that all of them together take little more than the
//! sections. A release out of order copies what was taken after its acquire.

use reweave_base::{CsrTable, FxHashMap, IndexVec};

use crate::op::{EventId, LockId, LockOp, Op, ThreadId};
use crate::trace::Trace;

reweave_base::id! {
    /// A critical section; numbered in the order of their acquires.
    pub struct SectionId;
    /// The sections that a thread is in, the newest first: a list that shares its tail.
    struct HeldId;
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// By one thread alone.
    Exclusive,
    /// Together with other shared holders.
    Shared,
}

impl Mode {
    /// How files and reports spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        }
    }
}

/// A lock held by a thread from an acquire to a release, nested re-acquires included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CriticalSection {
    /// Whose it is.
    pub thread: ThreadId,
    /// On which lock.
    pub lock: LockId,
    /// How it is held.
    pub mode: Mode,
    /// The outermost acquire.
    pub acquire: EventId,
    /// The release that gives the lock back; none if it is held when the trace ends.
    pub release: Option<EventId>,
    /// The newest section of the thread that was open at the acquire. With locks taken hand over
    /// hand it may end before this one does.
    pub outer: Option<SectionId>,
}

/// All critical sections of a trace.
#[derive(Debug)]
pub struct Sections {
    all: IndexVec<SectionId, CriticalSection>,
    by_lock: CsrTable<LockId, SectionId>,
    by_thread: CsrTable<ThreadId, SectionId>,
    lists: IndexVec<HeldId, Held>,
    /// What each thread holds after each event that changes it.
    changes: IndexVec<ThreadId, Vec<(EventId, Option<HeldId>)>>,
}

/// A list of sections.
#[derive(Clone, Copy, Debug)]
struct Held {
    newest: SectionId,
    rest: Option<HeldId>,
}

const FILLER: SectionId = match SectionId::from_number(1) {
    Some(id) => id,
    None => unreachable!(),
};

/// The sections so far, those that are open with how often their lock was acquired.
struct Builder {
    all: IndexVec<SectionId, CriticalSection>,
    depths: FxHashMap<(ThreadId, LockId, Mode), (SectionId, u32)>,
    lists: IndexVec<HeldId, Held>,
    held: IndexVec<ThreadId, Option<HeldId>>,
    changes: IndexVec<ThreadId, Vec<(EventId, Option<HeldId>)>>,
}

impl Sections {
    pub(super) fn new(trace: &Trace) -> Self {
        let names = trace.names();
        let mut builder = Builder {
            all: IndexVec::new(),
            depths: FxHashMap::default(),
            lists: IndexVec::new(),
            held: IndexVec::from_elem(None, names.threads.len()),
            changes: IndexVec::from_elem(Vec::new(), names.threads.len()),
        };
        for (id, event) in trace.events() {
            match event.op {
                Op::Lock(LockOp::Acquire, lock) => {
                    builder.enter(id, event.thread, lock, Mode::Exclusive);
                }
                Op::Lock(LockOp::AcquireShared, lock) => {
                    builder.enter(id, event.thread, lock, Mode::Shared);
                }
                Op::Lock(LockOp::Release, lock) => {
                    builder.leave(id, event.thread, lock, Mode::Exclusive);
                }
                Op::Lock(LockOp::ReleaseShared, lock) => {
                    builder.leave(id, event.thread, lock, Mode::Shared);
                }
                _ => {}
            }
        }
        let Builder { all, lists, changes, .. } = builder;
        let by_lock = CsrTable::group(names.locks.len(), FILLER, || {
            all.entries().map(|(id, section)| (section.lock, id))
        });
        let by_thread = CsrTable::group(names.threads.len(), FILLER, || {
            all.entries().map(|(id, section)| (section.thread, id))
        });
        Self { all, by_lock, by_thread, lists, changes }
    }

    /// All sections with their ids, in the order of their acquires.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (SectionId, &CriticalSection)> {
        self.all.entries()
    }

    /// The section `id`.
    #[must_use]
    pub fn get(&self, id: SectionId) -> &CriticalSection {
        &self.all[id]
    }

    /// The sections on `lock`, in the order of their acquires.
    #[must_use]
    pub fn on_lock(&self, lock: LockId) -> &[SectionId] {
        self.by_lock.row(lock)
    }

    /// The sections of `thread`, in the order of their acquires.
    #[must_use]
    pub fn of_thread(&self, thread: ThreadId) -> &[SectionId] {
        self.by_thread.row(thread)
    }

    /// The sections of `thread` that are open when `event`, one of its own, is about to happen,
    /// the newest first.
    pub fn held(&self, thread: ThreadId, event: EventId) -> impl Iterator<Item = &CriticalSection> {
        let changes = &self.changes[thread];
        self.opened(thread, changes.partition_point(|&(change, _)| change < event))
    }

    /// The sections of `thread` that are open when `event`, one of its own, has happened, the newest
    /// first.
    pub fn held_after(
        &self,
        thread: ThreadId,
        event: EventId,
    ) -> impl Iterator<Item = &CriticalSection> {
        let changes = &self.changes[thread];
        self.opened(thread, changes.partition_point(|&(change, _)| change <= event))
    }

    /// The sections of `thread` that are open after so many of its changes, the newest first.
    fn opened(&self, thread: ThreadId, count: usize) -> impl Iterator<Item = &CriticalSection> {
        let newest = count.checked_sub(1).and_then(|at| self.changes[thread][at].1);
        std::iter::successors(newest, |&list| self.lists[list].rest)
            .map(|list| &self.all[self.lists[list].newest])
    }
}

impl Builder {
    fn enter(&mut self, acquire: EventId, thread: ThreadId, lock: LockId, mode: Mode) {
        if let Some((_, depth)) = self.depths.get_mut(&(thread, lock, mode)) {
            *depth += 1;
            return;
        }
        let rest = self.held[thread];
        let outer = rest.map(|list| self.lists[list].newest);
        let section = CriticalSection { thread, lock, mode, acquire, release: None, outer };
        let newest = self.all.push(section);
        self.depths.insert((thread, lock, mode), (newest, 1));
        self.held[thread] = Some(self.lists.push(Held { newest, rest }));
        self.changes[thread].push((acquire, self.held[thread]));
    }

    fn leave(&mut self, release: EventId, thread: ThreadId, lock: LockId, mode: Mode) {
        let key = (thread, lock, mode);
        let (id, depth) = self.depths.get_mut(&key).expect("a release follows its acquire");
        *depth -= 1;
        if *depth > 0 {
            return;
        }
        let id = *id;
        self.depths.remove(&key);
        self.all[id].release = Some(release);
        self.held[thread] = self.without(self.held[thread], id);
        self.changes[thread].push((release, self.held[thread]));
    }

    /// `list` without `section`, which is in it.
    fn without(&mut self, list: Option<HeldId>, section: SectionId) -> Option<HeldId> {
        let mut newer = Vec::new();
        let mut rest = list;
        while let Some(list) = rest {
            let Held { newest, rest: older } = self.lists[list];
            rest = older;
            if newest == section {
                break;
            }
            newer.push(newest);
        }
        for newest in newer.into_iter().rev() {
            rest = Some(self.lists.push(Held { newest, rest }));
        }
        rest
    }
}
