//! Weak-causally-precedes (WCP): which events keep their order in the runs that this one predicts,
//! by weaker rules than those of [`crate::cp`]?
//!
//! Happens-before takes every hand-over of a lock for an order. WCP keeps of it:
//!
//! - (a) a release comes before an access in a later section on its lock if its own section holds
//!   an access of another thread that conflicts with that one;
//! - (b) a release comes before a later release of its lock if the acquire of the first section
//!   comes before the release of the second by WCP;
//! - (c) WCP composed with happens-before, on either side, is WCP.
//!
//! Edges that are no lock's (fork and join, notify, barriers, posts, atomic accesses) are WCP edges
//! as they are. Two sections in shared mode give no edge. WCP is not reflexive. All that it orders
//! CP orders too, which orders at acquires already.
//!
//! By (c) the WCP-predecessors of an event within a thread are a prefix of it, so a clock holds them
//! all. Every edge ends where it is found, so one pass suffices. It carries two clocks along the
//! happens-before edges: what happens before, and what comes before by WCP; an edge adds the first
//! of its source to the second of its target. Of a lock's sections that ended, those that a release
//! of the lock was found to come after need not be looked at again, since by (c) all later sections
//! come after them: the others wait in a queue, and both rules ask this queue alone. Variables that
//! sections of one thread alone access, or that none writes, are passed over.
//!
//! Exact over the whole trace: `oracle::wcp` is the definition. A pair of conflicting accesses that
//! neither WCP nor a thread orders is a race of WCP. The first one is a race or a deadlock that can
//! happen, if sections are nested; later ones are unconfirmed candidates. Rule (b) holds, as
//! printed, within one thread too.
//!
//! An access costs a look-up for each lock that its thread holds, nothing if it holds none; an event
//! that synchronises costs one clock operation. Each section enters its queue once and leaves it
//! once (shared ones may be gone through once by each thread). Keeps two clocks for each thread and
//! lock, a few words for each variable under each lock, and for each section in a queue as many
//! words as there are threads that the section before it knew less of.
//!
//! Follows Kini, Mathur and Viswanathan, "Dynamic Race Prediction in Linear Time" (PLDI 2017),
//! Definition 3 and Algorithm 1, with one queue a lock where they have one a lock and thread.

mod history;

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_trace::views::Mode;
use reweave_trace::{
    AccessOp, BarrierOp, ConditionOp, Event, EventId, LockId, LockOp, ObjectOp, Op, OpKind,
    SemaphoreOp, ThreadId, ThreadOp, Trace, VarId,
};

use crate::access::{CLASSES, CONFLICTS, class};
use crate::clock::{ClockPair, VectorClock};
use crate::edge_clocks::EdgeClocks;
use history::{ClockUpdate, ExclusiveId, ExclusiveSections, Readers, SharedId, Span};

/// The WCP clocks after the events so far.
#[derive(Debug)]
pub struct WeakCausallyPrecedes {
    threads: IndexVec<ThreadId, Thread>,
    locks: IndexVec<LockId, Lock>,
    accesses: Accesses,
    /// The edges of no lock and no fork or join.
    clocks: EdgeClocks,
    /// Buffer for a clock that arrives along such an edge.
    arriving: VectorClock,
}

/// A thread after its events so far.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// How many events it had.
    time: u32,
    /// What happens before its next event, and what comes before its last one by WCP. Of itself the
    /// first holds what it has sent to others, which need not be all.
    clocks: ClockPair,
    /// The sections it is in.
    open: Vec<(LockId, Mode)>,
}

impl Thread {
    /// All that happens before what its last event is sent to.
    fn sent(&mut self, own: ThreadId) -> &VectorClock {
        self.clocks.happened.raise(own, self.time);
        &self.clocks.happened
    }
}

impl WeakCausallyPrecedes {
    /// The clocks before any event of `trace`.
    ///
    /// ```
    /// use reweave_order::wcp::WeakCausallyPrecedes;
    ///
    /// let trace = reweave_testkit::trace("
    /// T1      T2
    /// acq(m)
    /// w(x)
    /// rel(m)
    ///         acq(m)
    ///         rel(m)
    ///         w(x)
    /// ");
    /// let t1 = trace.events().next().unwrap().1.thread;
    /// let mut clocks = WeakCausallyPrecedes::new(&trace);
    /// let known = trace.events().map(|(event, _)| clocks.advance(&trace, event).get(t1)).last();
    /// assert_eq!(known, Some(0), "the sections do not conflict");
    /// ```
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let names = trace.names();
        Self {
            threads: IndexVec::from_elem(Thread::default(), names.threads.len()),
            locks: locks(trace),
            accesses: Accesses::new(trace),
            clocks: EdgeClocks::default(),
            arriving: VectorClock::default(),
        }
    }

    /// Takes the next event of `trace`, the one it was made for, in observed order and gives its
    /// clock: the events that come before it by WCP. Its own thread's earlier events need not be
    /// among them.
    #[inline]
    pub fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        let happening = trace.event(event);
        let Event { thread, op, .. } = happening;
        self.threads[thread].time += 1;
        match op {
            Op::Access(AccessOp::Read | AccessOp::UnknownRead | AccessOp::Write, var) => {
                self.access(thread, var, class(op));
            }
            Op::Access(
                AccessOp::AtomicRead(_) | AccessOp::AtomicWrite(_) | AccessOp::AtomicUpdate(_),
                var,
            ) => {
                self.receive(trace, event, happening);
                self.access(thread, var, class(op));
                if op.is_write() {
                    self.send(trace, event, happening);
                }
            }
            Op::Lock(LockOp::Acquire, lock) => self.acquire(thread, lock, Mode::Exclusive),
            Op::Lock(LockOp::AcquireShared, lock) => self.acquire(thread, lock, Mode::Shared),
            Op::Lock(LockOp::Release, lock) => self.release(thread, lock, Mode::Exclusive),
            Op::Lock(LockOp::ReleaseShared, lock) => self.release(thread, lock, Mode::Shared),
            Op::Thread(ThreadOp::Fork, child) => self.fork(thread, child),
            Op::Thread(ThreadOp::Join, child) => self.join(trace, thread, child),
            Op::Condition(ConditionOp::Wake, _)
            | Op::Barrier(BarrierOp::Depart, _)
            | Op::Semaphore(SemaphoreOp::Take, _)
            | Op::Object(ObjectOp::Free, _) => {
                self.receive(trace, event, happening);
            }
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _)
            | Op::Semaphore(SemaphoreOp::Post, _)
            | Op::Object(ObjectOp::Alloc, _) => {
                self.send(trace, event, happening);
            }
            Op::Barrier(BarrierOp::Arrive, _) | Op::Fence(_) => {
                self.receive(trace, event, happening);
                self.send(trace, event, happening);
            }
            Op::Lock(LockOp::Request | LockOp::RequestExclusive, _)
            | Op::Condition(ConditionOp::Wait | ConditionOp::Timeout, _)
            | Op::Marker(_) => {}
        }
        &self.threads[thread].clocks.causal
    }

    /// Rule (a).
    #[inline]
    fn access(&mut self, thread: ThreadId, var: VarId, class: usize) {
        let Thread { clocks: ClockPair { causal: weak, .. }, open, .. } = &mut self.threads[thread];
        if open.is_empty() {
            return;
        }
        let Some(var) = self.accesses.contended(var) else { return };
        for &(id, mode) in &*open {
            let place = self.accesses.place(id, var);
            let lock = &mut self.locks[id];
            match mode {
                Mode::Exclusive => lock.access(&mut self.accesses, place, class, weak),
                Mode::Shared => lock.access_shared(&self.accesses, place, class, thread, weak),
            }
        }
    }

    fn acquire(&mut self, thread: ThreadId, id: LockId, mode: Mode) {
        let Thread { time, clocks, open } = &mut self.threads[thread];
        let is_outermost = match mode {
            Mode::Exclusive => self.locks[id].acquire((thread, *time), clocks),
            Mode::Shared => self.locks[id].acquire_shared((thread, *time), clocks),
        };
        if is_outermost {
            open.push((id, mode));
        }
    }

    /// Rule (b).
    fn release(&mut self, thread: ThreadId, id: LockId, mode: Mode) {
        let lock = &mut self.locks[id];
        let own = &mut self.threads[thread];
        own.sent(thread);
        let Thread { time, clocks, open } = own;
        let is_outermost = match mode {
            Mode::Exclusive => lock.release(&mut self.accesses, *time, clocks),
            Mode::Shared => lock.release_shared(&mut self.accesses, (thread, *time), clocks),
        };
        if is_outermost && let Some(at) = open.iter().rposition(|&held| held == (id, mode)) {
            open.remove(at);
        }
    }

    fn fork(&mut self, thread: ThreadId, child: ThreadId) {
        self.arriving.copy_from(self.threads[thread].sent(thread));
        self.arrive(child);
    }

    fn join(&mut self, trace: &Trace, thread: ThreadId, child: ThreadId) {
        let lifetime = trace.lifetime(child);
        let forked_here = lifetime.fork.is_some_and(|fork| trace.event(fork).thread == thread);
        // A thread that never runs passes its fork on to its join, but not to itself.
        if lifetime.first.is_some() || !forked_here {
            self.arriving.copy_from(self.threads[child].sent(child));
            self.arrive(thread);
        }
    }

    /// Adds what an edge that is no lock's brings to `event`.
    fn receive(&mut self, trace: &Trace, event: EventId, happening: Event) {
        self.arriving.clear();
        self.clocks.receive(trace, event, happening, &mut self.arriving);
        self.arrive(happening.thread);
    }

    fn arrive(&mut self, thread: ThreadId) {
        self.threads[thread].clocks.receive(&self.arriving);
    }

    /// Sends `event` along the edges that start at it and are no lock's.
    fn send(&mut self, trace: &Trace, event: EventId, happening: Event) {
        let clock = self.threads[happening.thread].sent(happening.thread);
        self.clocks.send(trace, event, happening, clock, clock);
    }
}

/// The locks of `trace` before its events, with how often each will be taken alone.
fn locks(trace: &Trace) -> IndexVec<LockId, Lock> {
    let names = trace.names();
    let mut locks: IndexVec<LockId, Lock> =
        (0..names.locks.len()).map(|_| Lock::default()).collect();
    let columns = trace.columns();
    for (code, &operand) in columns.codes.iter().zip(&columns.operands) {
        if code.kind() == OpKind::Acquire {
            locks[LockId::from_index(operand as usize)].expect_acquire();
        }
    }
    locks
}

impl crate::Clocks for WeakCausallyPrecedes {
    #[inline]
    fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        Self::advance(self, trace, event)
    }
}

// What a lock passes on, and what its holders learn of the sections before theirs.

/// A thread and how many events it had.
type Moment = (ThreadId, u32);

/// A lock after the events so far.
#[derive(Debug, Default)]
struct Lock {
    /// Of the last exclusive release.
    last: Option<Moment>,
    /// What releases pass on to acquires.
    passed: ClockPair,
    exclusive: ExclusiveSections,
    hold: Option<Hold>,
    /// The places that the open exclusive section accessed.
    places: Vec<PlaceId>,
    /// How many exclusive acquires are to come.
    acquires_left: u32,
    /// Only where it was taken in shared mode.
    shared: Option<Box<Shared>>,
}

/// A section that is open.
#[derive(Clone, Copy, Debug)]
struct Hold {
    thread: ThreadId,
    /// How often the lock was acquired and not released.
    depth: u32,
    acquired: u32,
    /// The first section that the holder's WCP clock need not have.
    next: ExclusiveId,
}

/// What shared mode takes.
#[derive(Debug, Default)]
struct Shared {
    /// By the shared releases since the last exclusive one.
    passed: ClockPair,
    readers: Readers,
    open: Vec<OpenShared>,
}

/// A shared section that is open.
#[derive(Debug)]
struct OpenShared {
    hold: Hold,
    /// The section that was to come when it began.
    after: ExclusiveId,
    /// The classes of accesses made at each place.
    places: FxHashMap<PlaceId, u8>,
}

impl Hold {
    const fn new((thread, acquired): Moment, next: ExclusiveId) -> Self {
        Self { thread, depth: 1, acquired, next }
    }

    const fn beginning(&self) -> Moment {
        (self.thread, self.acquired)
    }

    const fn span(&self, released: u32) -> Span {
        Span { thread: self.thread, acquired: self.acquired, released }
    }
}

impl Lock {
    /// Says that one more exclusive acquire is to come.
    fn expect_acquire(&mut self) {
        self.acquires_left += 1;
    }

    /// Takes the lock alone, by a thread with these clocks. Whether a section starts.
    fn acquire(&mut self, moment: Moment, clocks: &mut ClockPair) -> bool {
        self.acquires_left -= 1;
        if let Some(hold) = &mut self.hold {
            hold.depth += 1;
            return false;
        }
        self.pass_on(moment.0, clocks);
        if let Some(shared) = &self.shared {
            clocks.join(&shared.passed);
        }
        self.hold = Some(Hold::new(moment, self.exclusive.first()));
        true
    }

    /// Takes the lock in shared mode, by a thread with these clocks. Whether a section starts.
    fn acquire_shared(&mut self, moment: Moment, clocks: &mut ClockPair) -> bool {
        if let Some(shared_by) = self.shared_by(moment.0) {
            shared_by.hold.depth += 1;
            return false;
        }
        self.pass_on(moment.0, clocks);
        let hold = Hold::new(moment, self.exclusive.first_beyond(&clocks.causal));
        let (after, places) = (self.exclusive.next(), FxHashMap::default());
        let shared = self.shared.get_or_insert_default();
        shared.open.push(OpenShared { hold, after, places });
        true
    }

    fn pass_on(&self, thread: ThreadId, clocks: &mut ClockPair) {
        // What happens before the thread's next event already has passed on all it can.
        let is_known = |(by, time): Moment| by == thread || clocks.happened.get(by) >= time;
        if self.last.is_some_and(|last| !is_known(last)) {
            clocks.join(&self.passed);
        }
    }

    fn shared_by(&mut self, thread: ThreadId) -> Option<&mut OpenShared> {
        self.shared.as_mut()?.open.iter_mut().find(|shared_by| shared_by.hold.thread == thread)
    }

    /// Rule (a) at an access of `class` in the exclusive section, whose thread has the WCP clock
    /// `weak`.
    #[inline]
    fn access(
        &mut self,
        accesses: &mut Accesses,
        place: PlaceId,
        class: usize,
        weak: &mut VectorClock,
    ) {
        let Some(hold) = &mut self.hold else { return };
        // No section of another thread ends while this one is open: to ask once is enough.
        let Some(is_first) = accesses.note(place, class) else { return };
        if is_first {
            self.places.push(place);
        }
        if let Some(source) = accesses.source(place, class, hold.thread, &self.exclusive) {
            hold.next = self.exclusive.join(hold.next, source, weak);
        }
        if let Some(shared) = &self.shared {
            let mut update =
                ClockUpdate { exclusive: &self.exclusive, next: hold.next, clock: weak };
            accesses.join_shared(place, class, hold.thread, &shared.readers, &mut update);
            hold.next = update.next;
        }
    }

    /// Rule (a) at an access of `class` in the shared section of `thread`.
    fn access_shared(
        &mut self,
        accesses: &Accesses,
        place: PlaceId,
        class: usize,
        thread: ThreadId,
        weak: &mut VectorClock,
    ) {
        let first = self.exclusive.first();
        let Some(OpenShared { hold, places, .. }) = self.shared_by(thread) else { return };
        let classes = places.entry(place).or_default();
        if *classes >> class & 1 == 1 {
            return;
        }
        *classes |= 1 << class;
        // The thread may itself have held the lock alone in between, and dropped some.
        let from = hold.next.max(first);
        let Some(source) = accesses.source(place, class, thread, &self.exclusive) else { return };
        let next = self.exclusive.join(from, source, weak);
        if let Some(shared_by) = self.shared_by(thread) {
            shared_by.hold.next = next;
        }
    }

    /// Releases the lock, held alone, at `time` of a thread with these clocks: rule (b). Whether
    /// the section ends.
    fn release(&mut self, accesses: &mut Accesses, time: u32, clocks: &mut ClockPair) -> bool {
        let Some(hold) = &mut self.hold else { return false };
        hold.depth -= 1;
        if hold.depth > 0 {
            return false;
        }
        let hold = *hold;
        self.hold = None;
        let weak = &mut clocks.causal;
        let mut next = self.exclusive.join_begun(hold.next, hold.beginning(), weak);
        if let Some(shared) = &mut self.shared {
            let mut update = ClockUpdate { exclusive: &self.exclusive, next, clock: weak };
            while shared.readers.join_begun(hold.beginning(), &mut update) {
                let (next, clock) = (update.next, &mut *update.clock);
                update.next = self.exclusive.join_begun(next, hold.beginning(), clock);
            }
            next = update.next;
            shared.passed.clear();
        }
        self.exclusive.drop_before(next);
        let section = self.exclusive.push(hold.span(time), &self.passed.happened, &clocks.happened);
        self.passed.copy_from(clocks);
        self.last = Some((hold.thread, time));
        for place in self.places.drain(..) {
            accesses.end(place, section, hold.thread, &self.exclusive);
        }
        true
    }

    /// Releases the lock, held in shared mode, at `time` of `thread` with these clocks: rule
    /// (b). Whether the section ends.
    fn release_shared(
        &mut self,
        accesses: &mut Accesses,
        (thread, time): Moment,
        clocks: &mut ClockPair,
    ) -> bool {
        let Some(shared) = &mut self.shared else { return false };
        let of_thread = |shared_by: &OpenShared| shared_by.hold.thread == thread;
        let Some(at) = shared.open.iter().position(of_thread) else { return false };
        shared.open[at].hold.depth -= 1;
        if shared.open[at].hold.depth > 0 {
            return false;
        }
        let OpenShared { hold, after, places } = shared.open.swap_remove(at);
        // The thread may itself have held the lock alone in between, and dropped some.
        let from = hold.next.max(self.exclusive.first());
        self.exclusive.join_begun(from, hold.beginning(), &mut clocks.causal);
        // Only exclusive sections come after shared ones.
        if self.acquires_left == 0 {
            return true;
        }
        shared.passed.join(clocks);
        let happened = &clocks.happened;
        let visit = if after == self.exclusive.next() {
            shared.readers.push(hold.span(time), after, &self.passed.happened, happened)
        } else {
            // The exclusive sections since are its own thread's and do not come before it as a whole.
            let (first, nothing) = (ExclusiveId::from_index(0), VectorClock::default());
            shared.readers.push(hold.span(time), first, &nothing, happened)
        };
        for (place, classes) in places {
            accesses.end_shared(place, classes, visit);
        }
        true
    }
}

// Which sections on a lock accessed a variable: what rule (a) asks.
//
// Of exclusive sections the latest counts, and the latest of another thread than that one's: what
// happens before the releases of a lock only grows. Of shared sections it is the latest of each
// thread.

reweave_base::id! {
    /// A variable that sections of several threads access, some of them writing.
    struct ContendedId;
    /// Such a variable under a lock.
    struct PlaceId;
}

/// There is a table of all places there can be where they are at most one to so many events; else
/// a map finds those that are accessed.
const EVENTS_PER_PLACE: usize = 2;

/// The sections that accessed each variable under each lock.
#[derive(Debug)]
struct Accesses {
    contended: IndexVec<VarId, Option<ContendedId>>,
    ids: PlaceIds,
    places: IndexVec<PlaceId, Place>,
    shared: FxHashMap<PlaceId, Vec<SharedAccess>>,
}

/// Which place is whose.
#[derive(Debug)]
enum PlaceIds {
    /// Each lock has a row of so many variables.
    Row(usize),
    /// Places have ids in the order of their first accesses.
    Map(FxHashMap<(LockId, ContendedId), PlaceId>),
}

#[derive(Clone, Debug, Default)]
struct Place {
    latest: [Latest; CLASSES],
    /// The classes of accesses that the open exclusive section made.
    open: u8,
}

/// The latest exclusive section with an access of some class.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    section: Option<ExclusiveId>,
    /// The latest of another thread.
    other: Option<ExclusiveId>,
}

/// The latest shared section of a thread with an access of some class.
#[derive(Debug)]
struct SharedAccess {
    class: usize,
    visit: SharedId,
}

impl Accesses {
    /// No sections yet; learns from `trace` which variables matter.
    fn new(trace: &Trace) -> Self {
        let (contended, width) = contended(trace);
        let places_max = trace.names().locks.len().saturating_mul(width);
        let (ids, count) = if places_max <= trace.len() / EVENTS_PER_PLACE {
            (PlaceIds::Row(width), places_max)
        } else {
            (PlaceIds::Map(FxHashMap::default()), 0)
        };
        let places = IndexVec::from_elem(Place::default(), count);
        Self { contended, ids, places, shared: FxHashMap::default() }
    }

    /// `var` as a variable that sections can conflict on, if they can.
    #[inline]
    fn contended(&self, var: VarId) -> Option<ContendedId> {
        self.contended[var]
    }

    /// The place of `var` under `lock`.
    #[inline]
    fn place(&mut self, lock: LockId, var: ContendedId) -> PlaceId {
        match &mut self.ids {
            PlaceIds::Row(width) => PlaceId::from_index(lock.index() * *width + var.index()),
            PlaceIds::Map(ids) => {
                *ids.entry((lock, var)).or_insert_with(|| self.places.push(Place::default()))
            }
        }
    }

    /// Notes an access by the exclusive section that is open. None if it made one of this class
    /// before; else whether it made none at all.
    #[inline]
    fn note(&mut self, place: PlaceId, class: usize) -> Option<bool> {
        let open = &mut self.places[place].open;
        let before = *open;
        *open |= 1 << class;
        (before != *open).then_some(before == 0)
    }

    /// The latest exclusive section of another thread than `thread` that an access of `class`
    /// conflicts with. A section that was dropped may come instead of none.
    #[inline]
    fn source(
        &self,
        place: PlaceId,
        class: usize,
        thread: ThreadId,
        exclusive: &ExclusiveSections,
    ) -> Option<ExclusiveId> {
        let latest = &self.places[place].latest;
        let of_other = |latest: Latest| {
            let by_other = exclusive.thread(latest.section?).is_none_or(|by| by != thread);
            if by_other { latest.section } else { latest.other }
        };
        CONFLICTS[class].iter().filter_map(|&class| of_other(latest[class])).max()
    }

    /// Adds what happens before the shared sections of other threads than `thread` that an access
    /// of `class` in an exclusive section conflicts with. What it added it forgets: by rule (c)
    /// all later exclusive sections have it too.
    fn join_shared(
        &mut self,
        place: PlaceId,
        class: usize,
        thread: ThreadId,
        readers: &Readers,
        update: &mut ClockUpdate<'_>,
    ) {
        let Some(accesses) = self.shared.get_mut(&place) else { return };
        accesses.retain(|access| {
            let is_source = CONFLICTS[class].contains(&access.class)
                && readers.thread(access.visit.reader) != thread;
            if is_source {
                readers.join(access.visit, update);
            }
            !is_source
        });
    }

    /// Makes the exclusive section `section` of `thread`, which ends, the latest at `place`.
    #[inline]
    fn end(
        &mut self,
        place: PlaceId,
        section: ExclusiveId,
        thread: ThreadId,
        exclusive: &ExclusiveSections,
    ) {
        let Place { latest, open } = &mut self.places[place];
        for (class, latest) in latest.iter_mut().enumerate() {
            if *open >> class & 1 == 0 {
                continue;
            }
            // Which thread's a dropped one was no longer matters: nobody needs it.
            if latest.section.and_then(|last| exclusive.thread(last)) != Some(thread) {
                latest.other = latest.section;
            }
            latest.section = Some(section);
        }
        *open = 0;
    }

    /// Makes a shared section, which ends, its thread's latest with accesses of `classes`.
    fn end_shared(&mut self, place: PlaceId, classes: u8, visit: SharedId) {
        let accesses = self.shared.entry(place).or_default();
        for class in (0..CLASSES).filter(|class| classes >> class & 1 == 1) {
            let same = |access: &&mut SharedAccess| {
                access.class == class && access.visit.reader == visit.reader
            };
            match accesses.iter_mut().find(same) {
                Some(access) => access.visit = visit,
                None => accesses.push(SharedAccess { class, visit }),
            }
        }
    }
}

/// The variables that sections of several threads access, some of them writing, and their number.
fn contended(trace: &Trace) -> (IndexVec<VarId, Option<ContendedId>>, usize) {
    #[derive(Clone, Copy, Default)]
    struct Use {
        by: Option<ThreadId>,
        by_several: bool,
        is_written: bool,
    }
    let (names, columns) = (trace.names(), trace.columns());
    let mut uses: IndexVec<VarId, Use> = IndexVec::from_elem(Use::default(), names.vars.len());
    let mut held: IndexVec<ThreadId, u32> = IndexVec::from_elem(0, names.threads.len());
    for ((&thread, code), &operand) in
        columns.threads.iter().zip(&columns.codes).zip(&columns.operands)
    {
        let thread = ThreadId::from_index(thread as usize);
        match code.kind() {
            OpKind::Acquire | OpKind::AcquireShared => held[thread] += 1,
            OpKind::Release | OpKind::ReleaseShared => held[thread] -= 1,
            OpKind::Read
            | OpKind::UnknownRead
            | OpKind::Write
            | OpKind::AtomicRead
            | OpKind::AtomicWrite
            | OpKind::AtomicUpdate
                if held[thread] > 0 =>
            {
                let own = &mut uses[VarId::from_index(operand as usize)];
                own.by_several |= own.by.is_some_and(|by| by != thread);
                own.by = Some(thread);
                own.is_written |= matches!(
                    code.kind(),
                    OpKind::Write | OpKind::AtomicWrite | OpKind::AtomicUpdate
                );
            }
            _ => {}
        }
    }
    let mut count = 0;
    let contended = uses.iter().map(|own| {
        let id = (own.by_several && own.is_written).then(|| ContendedId::from_index(count));
        count += usize::from(id.is_some());
        id
    });
    (contended.collect(), count)
}
