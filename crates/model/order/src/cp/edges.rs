//! CP edges between sections on one lock, and which sections they can start from.

use std::cmp::Reverse;

use reweave_base::{CsrTable, Id, IndexVec};
use reweave_trace::views::SectionId;
use reweave_trace::{EventId, LockId, ThreadId};

use super::skeleton::{Section, Skeleton};

/// From the release of a section to the acquire of a later one on the same lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) target: SectionId,
    pub(super) source: SectionId,
}

/// The edges found so far, in the order in which a sweep meets their targets.
#[derive(Debug)]
pub(super) struct Edges {
    sorted: Vec<Edge>,
    /// For each source the last section that an edge from it leads to.
    last_target: IndexVec<SectionId, Option<SectionId>>,
}

impl Edges {
    /// `edges` between sections of `skeleton`, in any order.
    pub(super) fn new(skeleton: &Skeleton, mut edges: Vec<Edge>) -> Self {
        // A later source is likely to make the earlier ones needless, so it comes first.
        edges.sort_unstable_by_key(|edge| (edge.target, Reverse(edge.source)));
        let mut last_target = IndexVec::from_elem(None, skeleton.sections.len());
        for edge in &edges {
            last_target[edge.source] = Some(edge.target);
        }
        Self { sorted: edges, last_target }
    }

    pub(super) fn as_slice(&self) -> &[Edge] {
        &self.sorted
    }

    #[inline]
    pub(super) fn last_target(&self, source: SectionId) -> Option<SectionId> {
        self.last_target[source]
    }
}

reweave_base::id! {
    /// A thread that uses a lock in one of its modes.
    pub(super) struct UserId;
}

/// The sections of one user do not overlap: one is over before the next begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    pub(super) thread: ThreadId,
    pub(super) is_shared: bool,
}

/// A section that comes to an end: edges can start from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) section: SectionId,
    /// The acquire's number in its thread, counted from 1.
    pub(super) acquired: u32,
    /// The release's number in its thread.
    pub(super) released: u32,
    pub(super) release: EventId,
}

/// Locks by who uses them.
#[derive(Debug)]
pub(super) struct Locks {
    users: IndexVec<UserId, User>,
    /// The first user of each lock, and the number of users.
    first: Vec<u32>,
    /// The sections of each user that come to an end, in order.
    sources: CsrTable<UserId, Source>,
    /// Whether each lock is ever taken in shared mode.
    is_shared: IndexVec<LockId, bool>,
}

const FILLER: SectionId = match SectionId::from_number(1) {
    Some(id) => id,
    None => unreachable!(),
};

/// The sections on each lock in the order of their acquires.
///
/// Copies of them, since what goes through one lock after the other would find each section of
/// the table in another place of the memory.
pub(super) fn by_lock(skeleton: &Skeleton) -> CsrTable<LockId, (SectionId, Section)> {
    let entries =
        || skeleton.sections.entries().map(|(id, &section)| (section.lock, (id, section)));
    CsrTable::group(skeleton.locks_count, (FILLER, Section::FILLER), entries)
}

impl Locks {
    /// The locks with these sections.
    pub(super) fn new(
        skeleton: &Skeleton,
        by_lock: &CsrTable<LockId, (SectionId, Section)>,
    ) -> Self {
        let mut users: IndexVec<UserId, User> = IndexVec::new();
        let mut first = vec![0];
        let mut is_shared = IndexVec::from_elem(false, skeleton.locks_count);
        // The user that each section belongs to, in the order of `by_lock`.
        let mut user_of: Vec<UserId> = Vec::with_capacity(skeleton.sections.len());
        let mut known: IndexVec<ThreadId, [Option<UserId>; 2]> =
            IndexVec::from_elem([None; 2], skeleton.threads.len());
        for (lock, sections) in by_lock.rows() {
            let start = users.len();
            for (_, section) in sections {
                let user = User { thread: section.thread, is_shared: section.is_shared };
                let known = &mut known[user.thread][usize::from(user.is_shared)];
                user_of.push(*known.get_or_insert_with(|| users.push(user)));
                is_shared[lock] |= user.is_shared;
            }
            for user in &users.as_slice()[start..] {
                known[user.thread] = [None; 2];
            }
            first.push(users.len() as u32);
        }
        let filler =
            Source { section: FILLER, acquired: 0, released: 0, release: Section::FILLER.acquire };
        let sources = CsrTable::group(users.len(), filler, || {
            let sections = by_lock.rows().flat_map(|(_, sections)| sections);
            sections.zip(&user_of).filter_map(|(&(id, section), &user)| {
                let Section { acquired, released, .. } = section;
                let release = section.release?;
                Some((user, Source { section: id, acquired, released, release }))
            })
        });
        Self { users, first, sources, is_shared }
    }

    /// The users of `lock`.
    #[inline]
    pub(super) fn users(&self, lock: LockId) -> impl Iterator<Item = UserId> + use<> {
        let (start, end) = (self.first[lock.index()], self.first[lock.index() + 1]);
        (start as usize..end as usize).map(UserId::from_index)
    }

    #[inline]
    pub(super) fn user(&self, user: UserId) -> User {
        self.users[user]
    }

    /// The sections of `user` that come to an end, in order.
    #[inline]
    pub(super) fn sources(&self, user: UserId) -> &[Source] {
        self.sources.row(user)
    }

    pub(super) fn users_count(&self) -> usize {
        self.users.len()
    }

    /// Whether `lock` is ever taken in shared mode.
    #[inline]
    pub(super) fn is_shared(&self, lock: LockId) -> bool {
        self.is_shared[lock]
    }
}
