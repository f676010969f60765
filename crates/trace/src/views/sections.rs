//! Critical sections: from the outermost acquire of a lock to the release that gives it back.

use reweave_base::{FxHashMap, IndexVec, Rows};

use crate::op::{EventId, LockId, Op, ThreadId};
use crate::trace::Trace;

reweave_base::id! {
    /// A critical section; numbered in the order of their acquires.
    pub struct SectionId;
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// By one thread alone.
    Exclusive,
    /// Together with other shared holders.
    Shared,
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

impl CriticalSection {
    /// Whether the lock is held when `event`, of the same thread, is about to happen.
    #[must_use]
    pub fn holds_at(&self, event: EventId) -> bool {
        self.acquire < event && self.release.is_none_or(|release| event <= release)
    }
}

/// All critical sections of a trace.
#[derive(Debug)]
pub struct Sections {
    all: IndexVec<SectionId, CriticalSection>,
    by_lock: Rows<LockId, SectionId>,
    by_thread: Rows<ThreadId, SectionId>,
}

const FILLER: SectionId = match SectionId::from_number(1) {
    Some(id) => id,
    None => unreachable!(),
};

/// Sections that are open, with how often their lock was acquired.
#[derive(Default)]
struct Open {
    depths: FxHashMap<(ThreadId, LockId, Mode), (SectionId, u32)>,
    /// Of each thread, oldest first.
    stacks: IndexVec<ThreadId, Vec<SectionId>>,
}

impl Sections {
    pub(super) fn of(trace: &Trace) -> Self {
        let mut all = IndexVec::new();
        let mut open = Open::default();
        for (id, event) in trace.events() {
            match event.op {
                Op::Acquire(lock) => open.enter(&mut all, id, event.thread, lock, Mode::Exclusive),
                Op::AcquireShared(lock) => {
                    open.enter(&mut all, id, event.thread, lock, Mode::Shared);
                }
                Op::Release(lock) => open.leave(&mut all, id, event.thread, lock, Mode::Exclusive),
                Op::ReleaseShared(lock) => {
                    open.leave(&mut all, id, event.thread, lock, Mode::Shared);
                }
                _ => {}
            }
        }
        let names = trace.names();
        let by_lock = Rows::group(names.locks.len(), FILLER, || {
            all.entries().map(|(id, section)| (section.lock, id))
        });
        let by_thread = Rows::group(names.threads.len(), FILLER, || {
            all.entries().map(|(id, section)| (section.thread, id))
        });
        Self { all, by_lock, by_thread }
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
        let own = self.of_thread(thread);
        let before = own.partition_point(|&id| self.all[id].acquire < event);
        let newest = before.checked_sub(1).map(|at| own[at]);
        // Whatever is open now and older than a section was open at that section's acquire, so
        // the chain of `outer` passes through it.
        std::iter::successors(newest, |&id| self.all[id].outer)
            .map(|id| &self.all[id])
            .filter(move |section| section.holds_at(event))
    }
}

impl Open {
    fn enter(
        &mut self,
        all: &mut IndexVec<SectionId, CriticalSection>,
        acquire: EventId,
        thread: ThreadId,
        lock: LockId,
        mode: Mode,
    ) {
        let stack = self.stacks.get_or_default(thread);
        let (_, depth) = self.depths.entry((thread, lock, mode)).or_insert_with(|| {
            let outer = stack.last().copied();
            let section = CriticalSection { thread, lock, mode, acquire, release: None, outer };
            let id = all.push(section);
            stack.push(id);
            (id, 0)
        });
        *depth += 1;
    }

    fn leave(
        &mut self,
        all: &mut IndexVec<SectionId, CriticalSection>,
        release: EventId,
        thread: ThreadId,
        lock: LockId,
        mode: Mode,
    ) {
        let key = (thread, lock, mode);
        let (id, depth) = self.depths.get_mut(&key).expect("a release follows its acquire");
        *depth -= 1;
        if *depth > 0 {
            return;
        }
        let id = *id;
        self.depths.remove(&key);
        all[id].release = Some(release);
        self.stacks.get_or_default(thread).retain(|&open| open != id);
    }
}
