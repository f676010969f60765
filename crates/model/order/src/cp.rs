//! Causally-precedes (CP): which events keep their order in the runs that this one predicts?
//!
//! Happens-before takes every hand-over of a lock for an order. CP keeps only those that matter:
//!
//! - (a) a release comes before a later acquire of its lock if the two sections hold conflicting
//!   accesses;
//! - (b) or if the acquire of the first section comes before the release of the second by CP;
//! - (c) CP composed with happens-before, on either side, is CP.
//!
//! Edges that are no lock's (fork and join, notify, barriers, posts, atomic accesses) are CP edges
//! as they are. Two sections in shared mode give no edge. CP is not reflexive. A section that is
//! open at the end is taken to end with its thread, and no edge starts from it.
//!
//! By (c) the CP-predecessors of an event within a thread are a prefix of it, so a clock holds
//! them all, and it changes only where a thread synchronises. One pass over the events leaves the
//! skeleton of such steps. Lock by lock, the latest section of each thread that accessed a variable
//! gives the edges of rule (a). Then sweeps over the skeleton carry the clocks along the
//! happens-before edges and add what rule (b) gives, until nothing is new. An edge into an acquire
//! is found at its release, so it works backwards, and one sweep is not enough; real traces take
//! up to three. What happens before a release is worked out again in each sweep and kept only
//! while an edge that starts there has not ended, and an edge that the others make needless is
//! dropped, so there are about as many edges as there are sections, and mostly far fewer.
//!
//! Exact over the whole trace: `oracle::cp` is the definition. A pair of conflicting accesses
//! that CP leaves unordered is a race of CP. The first one is a race or a deadlock that can happen,
//! if sections are well nested; later ones are candidates.
//! Rule (b) holds, as printed, within one thread too. [`CausallyPrecedes::within`] presumes order
//! between sections far apart, as the paper does to bound its cost.
//!
//! Costs a constant per event, and steps times threads for each sweep. Keeps some tens of bytes per
//! step and section, a clock for each thread and lock, and one for each section that is open or
//! from which an edge has still to end.
//!
//! Follows Smaragdakis, Evans, Sadowski, Yi and Flanagan, "Sound Predictive Race Detection in
//! Polynomial Time" (POPL 2012), Definition 2.

mod skeleton;

use std::cmp::Reverse;
use std::mem;

use reweave_base::{CsrTable, Id, IndexVec};
use reweave_trace::views::SectionId;
use reweave_trace::{EventId, LockId, ThreadId, Trace, VarId};

use crate::access::{CLASSES, CONFLICTS};
use crate::clock::{ClockPair, VectorClock};
use skeleton::{Access, Accesses, Action, MessageId, Scan, Section, Skeleton, Step};

/// The CP edges of a trace, from which clocks follow.
#[derive(Debug)]
pub struct CausallyPrecedes {
    skeleton: Skeleton,
    edges: Edges,
}

impl CausallyPrecedes {
    /// Finds the edges of `trace`.
    ///
    /// ```
    /// use reweave_order::cp::CausallyPrecedes;
    ///
    /// let trace = reweave_testkit::trace("
    /// T1      T2
    /// acq(m)
    /// w(x)
    /// rel(m)
    ///         acq(m)
    ///         r(x)
    ///         rel(m)
    ///         w(y)
    /// ");
    /// let t1 = trace.events().next().unwrap().1.thread;
    /// let order = CausallyPrecedes::new(&trace);
    /// let mut clocks = order.clocks();
    /// // These sections conflict, so the hand-over of their lock counts.
    /// let known = trace.events().map(|(event, _)| clocks.advance(&trace, event).get(t1)).last();
    /// assert_eq!(known, Some(3));
    /// ```
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        Self::with(trace, None)
    }

    /// Finds the edges of `trace`, and presumes one from each section to those on the same lock
    /// that end more than `window` events after it began, unless both are in shared mode.
    ///
    /// The clocks hold all that those of [`Self::new`] hold. What they leave unordered is a race of
    /// CP, if the caller reports only pairs that lie less than `window` events apart: of others
    /// the window knows too little to be worth reporting.
    #[must_use]
    pub fn within(trace: &Trace, window: usize) -> Self {
        Self::with(trace, Some(window))
    }

    fn with(trace: &Trace, window: Option<usize>) -> Self {
        let (skeleton, accesses) = Scan::run(trace);
        let by_lock = sections_by_lock(&skeleton);
        let locks = Locks::new(&skeleton, &by_lock);
        let vars_count = trace.names().vars.len();
        let conflicts =
            ConflictSearch::edges(&skeleton, &accesses, &by_lock, &locks, vars_count, window);
        drop((accesses, by_lock));
        let edges = close(&skeleton, &locks, conflicts);
        Self { skeleton, edges }
    }

    /// The clocks of the events, to be asked for in observed order.
    #[must_use]
    pub fn clocks(&self) -> Clocks<'_> {
        Clocks { sweep: Sweep::new(&self.skeleton, &self.edges) }
    }
}

/// The CP clocks after the events so far.
#[derive(Debug)]
pub struct Clocks<'a> {
    sweep: Sweep<'a>,
}

impl Clocks<'_> {
    /// Takes the next event of `trace` in observed order and gives its clock: the events that
    /// come before it by CP. Its own thread's earlier events need not be among them.
    ///
    /// Events whose clocks nobody needs may be left out. An access costs a look at its thread.
    #[inline]
    pub fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        while self.sweep.next().is_some_and(|step| step.event <= event) {
            self.sweep.advance();
        }
        let thread = trace.columns().threads[event.index()];
        self.sweep.causal(ThreadId::from_index(thread as usize))
    }
}

// CP edges between sections on one lock, and which sections they can start from.

/// From the release of a section to the acquire of a later one on the same lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edge {
    target: SectionId,
    source: SectionId,
}

/// The edges found so far, in the order in which a sweep meets their targets.
#[derive(Debug)]
struct Edges {
    sorted: Vec<Edge>,
    /// For each source the last section that an edge from it leads to.
    last_target: IndexVec<SectionId, Option<SectionId>>,
}

impl Edges {
    /// `edges` between sections of `skeleton`, in any order.
    fn new(skeleton: &Skeleton, mut edges: Vec<Edge>) -> Self {
        // A later source is likely to make the earlier ones needless, so it comes first.
        edges.sort_unstable_by_key(|edge| (edge.target, Reverse(edge.source)));
        let mut last_target = IndexVec::from_elem(None, skeleton.sections.len());
        for edge in &edges {
            last_target[edge.source] = Some(edge.target);
        }
        Self { sorted: edges, last_target }
    }
}

reweave_base::id! {
    /// A thread that uses a lock in one of its modes.
    struct UserId;
}

/// The sections of one user do not overlap: one is over before the next begins.
#[derive(Clone, Copy, Debug)]
struct User {
    thread: ThreadId,
    is_shared: bool,
}

/// A section that comes to an end: edges can start from it.
#[derive(Clone, Copy, Debug)]
struct Source {
    section: SectionId,
    /// The acquire's number in its thread, counted from 1.
    acquired: u32,
    /// The release's number in its thread.
    released: u32,
    release: EventId,
}

/// Locks by who uses them.
#[derive(Debug)]
struct Locks {
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
fn sections_by_lock(skeleton: &Skeleton) -> CsrTable<LockId, (SectionId, Section)> {
    let entries =
        || skeleton.sections.entries().map(|(id, &section)| (section.lock, (id, section)));
    CsrTable::group(skeleton.locks_count, (FILLER, Section::FILLER), entries)
}

impl Locks {
    /// The locks with these sections.
    fn new(skeleton: &Skeleton, by_lock: &CsrTable<LockId, (SectionId, Section)>) -> Self {
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
    fn users_of(&self, lock: LockId) -> impl Iterator<Item = UserId> + use<> {
        let (start, end) = (self.first[lock.index()], self.first[lock.index() + 1]);
        (start as usize..end as usize).map(UserId::from_index)
    }
}

// The edges that need no clock: those of rule (a), and those that a window presumes.
//
// One lock after another, so that the tables for its variables are small and few. Of the
// sections that accessed a variable only the latest of each thread counts, since what happens
// before its release holds all that happens before the earlier ones'; and a section that wrote
// the variable alone stands for all before it, since edges lead from those into it. So most
// accesses meet a list of one or two.

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
struct ConflictSearch<'a> {
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

impl<'a> ConflictSearch<'a> {
    /// The edges of rule (a) and, with a window, from each section to those on its lock that end
    /// more than so many events after its acquire. Edges that others make needless are left out.
    fn edges(
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
            if self.locks.is_shared[lock] {
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
        for user in self.locks.users_of(lock) {
            self.offers[self.locks.users[user].thread] = Offer::default();
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
        for user in self.locks.users_of(section.lock) {
            if section.is_shared && self.locks.users[user].is_shared {
                continue;
            }
            let sources = self.locks.sources.row(user);
            let count = sources.partition_point(|source| {
                let acquire = self.skeleton.sections[source.section].acquire;
                acquire.index().saturating_add(window) < end && source.release < section.acquire
            });
            if let Some(last) = sources[..count].last() {
                let thread = self.locks.users[user].thread;
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

// The edges of rule (b): passes over the skeleton until one finds nothing new.
//
// At the end of a section, the clock says which acquires come before it by CP. Of each user of
// the lock the latest such section that has ended before this one began gives an edge. Along the
// releases of a lock that is only ever held alone clocks grow, so the place of that section in
// its user's list moves forward only, and what an earlier release has found need not be found
// again: it has come along with the lock.

/// All edges, given those of rule (a), without needless ones.
fn close(skeleton: &Skeleton, locks: &Locks, edges: Vec<Edge>) -> Edges {
    let mut edges = Edges::new(skeleton, edges);
    loop {
        let mut pass = Pass::new(skeleton, locks, &edges);
        pass.run();
        let Pass { found, sweep, .. } = pass;
        let Sweep { mut needed, .. } = sweep;
        let is_closed = found.is_empty();
        needed.extend(found);
        edges = Edges::new(skeleton, needed);
        if is_closed {
            return edges;
        }
    }
}

/// One pass.
struct Pass<'a> {
    skeleton: &'a Skeleton,
    locks: &'a Locks,
    sweep: Sweep<'a>,
    /// What came by CP before the acquires of sections that are open.
    acquires: ClockPool<SectionId>,
    cursors: IndexVec<UserId, Cursor>,
    found: Vec<Edge>,
}

/// How far a user's list of sections has been searched.
#[derive(Clone, Copy)]
struct Cursor {
    count: u32,
    /// The number of the next section's acquire in its thread; the greatest number if none is left.
    acquired: u32,
}

impl<'a> Pass<'a> {
    fn new(skeleton: &'a Skeleton, locks: &'a Locks, edges: &'a Edges) -> Self {
        let cursors = (0..locks.users.len()).map(|_| Cursor { count: 0, acquired: 0 });
        Self {
            skeleton,
            locks,
            sweep: Sweep::new(skeleton, edges),
            acquires: ClockPool::new(skeleton.sections.len()),
            cursors: cursors.collect(),
            found: Vec::new(),
        }
    }

    fn run(&mut self) {
        while let Some(step) = self.sweep.next() {
            self.sweep.advance();
            match step.action {
                Action::Enter(section) => {
                    self.acquires.insert(section, self.sweep.causal(step.thread));
                }
                Action::Leave(section) => {
                    self.end(section);
                    self.acquires.remove(section);
                }
                _ => {}
            }
        }
        // Those that stay open end with their threads.
        for (id, section) in self.skeleton.sections.entries() {
            if section.release.is_none() {
                self.end(id);
            }
        }
    }

    /// Looks for edges into a section, at its end.
    fn end(&mut self, id: SectionId) {
        let section = &self.skeleton.sections[id];
        let clock = self.sweep.causal(section.thread);
        let before = self.acquires.get(id).expect("a section is entered before it ends");
        let is_plain = !self.locks.is_shared[section.lock];
        for user in self.locks.users_of(section.lock) {
            let who = self.locks.users[user];
            let seen = clock.get(who.thread);
            let cursor = &mut self.cursors[user];
            if is_plain && seen < cursor.acquired || section.is_shared && who.is_shared {
                continue;
            }
            let sources = self.locks.sources.row(user);
            if !is_plain {
                cursor.count = retreat(sources, section, seen, cursor.count);
            }
            *cursor = proceed(sources, section, seen, cursor.count);
            if cursor.count == 0 {
                continue;
            }
            let Source { section: source, released, .. } = sources[cursor.count as usize - 1];
            if before.get(who.thread) < released {
                self.found.push(Edge { target: id, source });
            }
        }
    }
}

/// Whether rule (b) gives an edge from `source` into `target`, at whose end the acquires up to the
/// number `seen` are known. If it does, so it does for all before it of the same user.
fn is_source(source: &Source, target: &Section, seen: u32) -> bool {
    source.acquired <= seen && source.release < target.acquire
}

/// Goes on from the first `count` of `sources` as far as there are edges into `target`.
fn proceed(sources: &[Source], target: &Section, seen: u32, mut count: u32) -> Cursor {
    while let Some(next) = sources.get(count as usize) {
        if !is_source(next, target, seen) {
            return Cursor { count, acquired: next.acquired };
        }
        count += 1;
    }
    Cursor { count, acquired: u32::MAX }
}

/// Goes back from the first `count` of `sources` to those from which there are edges into `target`.
fn retreat(sources: &[Source], target: &Section, seen: u32, mut count: u32) -> u32 {
    while count > 0 && !is_source(&sources[count as usize - 1], target, seen) {
        count -= 1;
    }
    count
}

// One pass over the skeleton: what happens before each step, and what comes before it by CP.

/// The clocks after the steps so far.
#[derive(Debug)]
struct Sweep<'a> {
    skeleton: &'a Skeleton,
    edges: &'a Edges,
    threads: IndexVec<ThreadId, ClockPair>,
    locks: IndexVec<LockId, LockClocks>,
    /// What happens before each event that sent, while someone has still to receive it. That is
    /// what comes before it by CP at the other end, too: hard edges are CP edges.
    messages: ClockPool<MessageId>,
    /// What happens before the release of each section, while an edge leads on to a later one.
    releases: ClockPool<SectionId>,
    steps_count: usize,
    edges_count: usize,
    /// The edges so far that added something.
    needed: Vec<Edge>,
}

/// What the releases of a lock pass on.
#[derive(Clone, Debug, Default)]
struct LockClocks {
    /// Of the last exclusive release, which has seen all releases before it.
    alone: ClockPair,
    /// Whose that was, and its number in its thread.
    last: Option<(ThreadId, u32)>,
    /// Of the shared releases since.
    together: Option<ClockPair>,
}

impl<'a> Sweep<'a> {
    /// The clocks before any step of `skeleton`, with these `edges` from releases to acquires.
    fn new(skeleton: &'a Skeleton, edges: &'a Edges) -> Self {
        Self {
            skeleton,
            edges,
            threads: IndexVec::from_elem(ClockPair::default(), skeleton.threads.len()),
            locks: IndexVec::from_elem(LockClocks::default(), skeleton.locks_count),
            messages: ClockPool::new(skeleton.messages.len()),
            releases: ClockPool::new(skeleton.sections.len()),
            steps_count: 0,
            edges_count: 0,
            needed: Vec::new(),
        }
    }

    /// What comes by CP before the last event of `thread` so far.
    #[inline]
    fn causal(&self, thread: ThreadId) -> &VectorClock {
        &self.threads[thread].causal
    }

    /// The step to come.
    #[inline]
    fn next(&self) -> Option<&'a Step> {
        self.skeleton.steps.get(self.steps_count)
    }

    /// Takes the next step.
    fn advance(&mut self) {
        let Some(&step) = self.next() else { return };
        self.steps_count += 1;
        match step.action {
            Action::Enter(section) => self.enter(section),
            Action::Leave(section) => self.leave(section),
            Action::Fork(child) => {
                let own = &mut self.threads[step.thread].happened;
                own.raise(step.thread, step.time);
                let sent = mem::take(own);
                self.threads[child].receive(&sent);
                self.threads[step.thread].happened = sent;
            }
            Action::Join(child) => self.join(step, child),
            Action::Send(message) => {
                let own = &mut self.threads[step.thread].happened;
                own.raise(step.thread, step.time);
                if self.skeleton.messages[message].last.is_some() {
                    self.messages.insert(message, own);
                }
            }
            Action::Receive(message) => self.receive(step, message),
            Action::Gather(generation) => {
                for &message in &self.skeleton.generations[generation] {
                    self.receive(step, message);
                }
            }
        }
    }

    fn receive(&mut self, step: Step, message: MessageId) {
        let sent = &self.skeleton.messages[message];
        // A thread receives nothing from itself.
        if sent.by != step.thread
            && let Some(clock) = self.messages.get(message)
        {
            self.threads[step.thread].receive(clock);
        }
        if sent.last == Some(step.event) {
            self.messages.remove(message);
        }
    }

    fn join(&mut self, step: Step, child: ThreadId) {
        let joined = &self.skeleton.threads[child];
        let mut ended = mem::take(&mut self.threads[child].happened);
        ended.raise(child, joined.events_count);
        self.threads[step.thread].receive(&ended);
        if joined.last_join != Some(step.event) {
            self.threads[child].happened = ended;
        } else if joined.open_count == 0 {
            // Nobody asks again for what a thread that is over has seen.
            self.threads[child].causal = VectorClock::default();
        }
    }

    fn enter(&mut self, section: SectionId) {
        let entered = &self.skeleton.sections[section];
        let lock = &self.locks[entered.lock];
        let own = &mut self.threads[entered.thread];
        // Who has seen the release has seen all before it, by CP too.
        if lock.last.is_some_and(|(by, time)| own.happened.get(by) < time) {
            own.join(&lock.alone);
        }
        if let Some(together) = lock.together.as_ref().filter(|_| !entered.is_shared) {
            own.join(together);
        }
        for &edge in &self.edges.sorted[self.edges_count..] {
            if edge.target != section {
                break;
            }
            self.edges_count += 1;
            let source = &self.skeleton.sections[edge.source];
            // Clocks are closed under happens-before: the release says it for all before it.
            if own.causal.get(source.thread) < source.released
                && let Some(released) = self.releases.get(edge.source)
            {
                own.causal.join(released);
                self.needed.push(edge);
            }
            if self.edges.last_target[edge.source] == Some(section) {
                self.releases.remove(edge.source);
            }
        }
    }

    fn leave(&mut self, section: SectionId) {
        let left = &self.skeleton.sections[section];
        let lock = &mut self.locks[left.lock];
        let own = &mut self.threads[left.thread];
        own.happened.raise(left.thread, left.released);
        if left.is_shared {
            lock.together.get_or_insert_default().join(own);
        } else {
            lock.alone.copy_from(own);
            lock.last = Some((left.thread, left.released));
            lock.together = None;
        }
        if self.edges.last_target[section].is_some() {
            self.releases.insert(section, &own.happened);
        }
    }
}

reweave_base::id! {
    /// A clock of a pool, in use or free.
    struct PooledId;
}

/// Clocks by id. The memory of a clock that was removed goes to the next one that is inserted.
#[derive(Debug)]
struct ClockPool<I: Id> {
    slots: IndexVec<I, Option<PooledId>>,
    clocks: IndexVec<PooledId, VectorClock>,
    free: Vec<PooledId>,
}

impl<I: Id> ClockPool<I> {
    /// An empty pool for `count` ids.
    fn new(count: usize) -> Self {
        let slots = IndexVec::from_elem(None, count);
        Self { slots, clocks: IndexVec::new(), free: Vec::new() }
    }

    /// Keeps a copy of `clock` under `id`, in place of what is there.
    fn insert(&mut self, id: I, clock: &VectorClock) {
        let slot = self.slots[id].or_else(|| self.free.pop());
        let slot = slot.unwrap_or_else(|| self.clocks.push(VectorClock::default()));
        self.clocks[slot].copy_from(clock);
        self.slots[id] = Some(slot);
    }

    /// The clock under `id`, if there is one.
    fn get(&self, id: I) -> Option<&VectorClock> {
        self.slots[id].map(|slot| &self.clocks[slot])
    }

    /// Removes the clock under `id`, if there is one.
    fn remove(&mut self, id: I) {
        self.free.extend(self.slots[id].take());
    }
}
