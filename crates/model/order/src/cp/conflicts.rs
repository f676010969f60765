//! The edges that need no clock: those of rule (a), and those that a window presumes.
//!
//! One lock after another, so that the tables for its variables are small and few. Of the
//! sections that accessed a variable only the latest of each thread counts, since what happens
//! before its release holds all that happens before the earlier ones'; and a section that wrote
//! the variable alone stands for all before it, since edges lead from those into it. So most
//! accesses meet a list of one or two.

use reweave_base::{CsrTable, Id, IndexVec};
use reweave_trace::views::SectionId;
use reweave_trace::{EventId, LockId, ThreadId, VarId};

use super::edges::{Edge, Locks};
use super::skeleton::{Access, Accesses, Section, Skeleton};
use crate::access::{CLASSES, CONFLICTS};

/// The class of accesses that all others conflict with: plain writes.
const PLAIN_WRITE: u8 = 1;

/// For each class of accesses, as bits, the classes that it conflicts with.
const CONFLICTING: [u8; CLASSES] = {
    let mut sets = [0; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        let mut at = 0;
        while at < CONFLICTS[class].len() {
            sets[class] |= 1 << CONFLICTS[class][at];
            at += 1;
        }
        class += 1;
    }
    sets
};

const _: () = assert!(CONFLICTING[PLAIN_WRITE as usize] == (1 << CLASSES) - 1);

/// Finds edges lock by lock.
pub(super) struct Search<'a> {
    skeleton: &'a Skeleton,
    accesses: &'a Accesses,
    locks: &'a Locks,
    window: Option<usize>,
    /// Where the list of each variable starts, and for which lock that holds.
    heads: IndexVec<VarId, Option<(LockId, EntryId)>>,
    entries: IndexVec<EntryId, Entry>,
    offers: IndexVec<ThreadId, Offer>,
    found: Vec<Edge>,
}

reweave_base::id! {
    /// An entry of a variable's list.
    struct EntryId;
}

/// The latest section of a thread and mode with such an access to a variable.
#[derive(Clone, Copy)]
struct Entry {
    section: SectionId,
    thread: ThreadId,
    /// The number of its release in its thread.
    released: u32,
    class: u8,
    is_shared: bool,
    next: Option<EntryId>,
}

/// Up to which release of a thread there are edges into sections on the lock so far.
#[derive(Clone, Copy, Default)]
struct Offer {
    /// Into any section: all of them come before an exclusive one.
    all: u32,
    /// Into exclusive sections: those come before every one.
    alone: u32,
    /// Into the section that was last offered one.
    last: Option<(SectionId, u32)>,
}

impl<'a> Search<'a> {
    /// The edges of rule (a) and, with a window, from each section to those on its lock that end
    /// more than so many events after its acquire. Edges that others make needless are left out.
    pub(super) fn edges(
        skeleton: &'a Skeleton,
        accesses: &'a Accesses,
        by_lock: &CsrTable<LockId, (SectionId, Section)>,
        locks: &'a Locks,
        vars_count: usize,
        window: Option<usize>,
    ) -> Vec<Edge> {
        let mut search = Self {
            skeleton,
            accesses,
            locks,
            window,
            heads: IndexVec::from_elem(None, vars_count),
            entries: IndexVec::new(),
            offers: IndexVec::from_elem(Offer::default(), skeleton.threads.len()),
            found: Vec::new(),
        };
        for (lock, sections) in by_lock.rows() {
            search.go_through(lock, sections);
        }
        search.found
    }

    fn go_through(&mut self, lock: LockId, sections: &[(SectionId, Section)]) {
        // Sections that are never shared come one after the other, those that stay open last.
        // Others begin and end in any order, which a list of turns brings back.
        let mut turns: Vec<(EventId, bool, usize)> = Vec::new();
        for (at, (id, section)) in sections.iter().enumerate() {
            if self.locks.is_shared(lock) {
                turns.push((section.acquire, false, at));
                turns.extend(section.release.map(|release| (release, true, at)));
                continue;
            }
            self.enter(*id, section);
            if section.release.is_some() {
                self.leave(*id, section);
            }
        }
        turns.sort_unstable();
        for (_, is_end, at) in turns {
            let (id, section) = &sections[at];
            if is_end {
                self.leave(*id, section);
            } else {
                self.enter(*id, section);
            }
        }
        self.entries.as_mut_vec().clear();
        for user in self.locks.users(lock) {
            self.offers[self.locks.user(user).thread] = Offer::default();
        }
    }

    /// Adds the edges into a section. Those that have ended by now can be their sources.
    fn enter(&mut self, id: SectionId, section: &Section) {
        for &Access { var, class } in self.accesses.of(section) {
            let mut next = self.list(section.lock, var);
            while let Some(entry) = next.map(|entry| self.entries[entry]) {
                next = entry.next;
                if entry.thread != section.thread
                    && CONFLICTING[class as usize] >> entry.class & 1 == 1
                    && !(section.is_shared && entry.is_shared)
                {
                    let edge = Edge { target: id, source: entry.section };
                    self.offer(edge, section.is_shared, entry.thread, entry.released);
                }
            }
        }
        if let Some(window) = self.window {
            self.presume(id, section, window);
        }
    }

    /// Adds the edges from sections that began too long before the end of this one.
    fn presume(&mut self, id: SectionId, section: &Section, window: usize) {
        let end = self.skeleton.end(id).index();
        for user in self.locks.users(section.lock) {
            if section.is_shared && self.locks.user(user).is_shared {
                continue;
            }
            let sources = self.locks.sources(user);
            let count = sources.partition_point(|source| {
                let acquire = self.skeleton.sections[source.section].acquire;
                acquire.index().saturating_add(window) < end && source.release < section.acquire
            });
            if let Some(last) = sources[..count].last() {
                let thread = self.locks.user(user).thread;
                let edge = Edge { target: id, source: last.section };
                self.offer(edge, section.is_shared, thread, last.released);
            }
        }
    }

    /// Adds an edge from the release that is `thread`'s event number `released`, unless others
    /// make it needless; `is_shared` is the target's mode.
    fn offer(&mut self, edge: Edge, is_shared: bool, thread: ThreadId, released: u32) {
        let target = edge.target;
        let offer = &mut self.offers[thread];
        let to_others = if is_shared { offer.alone } else { offer.all };
        let to_this = offer.last.filter(|&(last, _)| last == target).map_or(0, |(_, time)| time);
        if released <= to_others.max(to_this) {
            return;
        }
        offer.all = offer.all.max(released);
        if !is_shared {
            offer.alone = offer.alone.max(released);
        }
        offer.last = Some((target, released));
        self.found.push(edge);
    }

    /// Makes a section that ended the latest of its thread for what it accessed.
    fn leave(&mut self, id: SectionId, section: &Section) {
        let &Section { thread, lock, is_shared, released, .. } = section;
        for &Access { var, class } in self.accesses.of(section) {
            let entry = Entry { section: id, thread, released, class, is_shared, next: None };
            match self.list(lock, var) {
                None => self.heads[var] = Some((lock, self.entries.push(entry))),
                // It stands for all before it, which have edges into it.
                Some(first) if class == PLAIN_WRITE && !is_shared => self.entries[first] = entry,
                Some(first) => self.record(first, entry),
            }
        }
    }

    /// Puts `entry` in the place of an older one of its kind in the list from `first` on.
    fn record(&mut self, first: EntryId, entry: Entry) {
        let kind = |entry: Entry| (entry.thread, entry.class, entry.is_shared);
        let mut at = first;
        loop {
            let other = &mut self.entries[at];
            if kind(*other) == kind(entry) {
                (other.section, other.released) = (entry.section, entry.released);
                return;
            }
            // Whatever conflicts with the section for this access does so for that write.
            let is_write = other.class == PLAIN_WRITE && !other.is_shared;
            if is_write && other.section == entry.section {
                return;
            }
            let Some(next) = other.next else { break };
            at = next;
        }
        let last = self.entries.push(entry);
        self.entries[at].next = Some(last);
    }

    /// The list of `var` under `lock`, the one at hand.
    fn list(&self, lock: LockId, var: VarId) -> Option<EntryId> {
        self.heads[var].filter(|&(of, _)| of == lock).map(|(_, first)| first)
    }
}
