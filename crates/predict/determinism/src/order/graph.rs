//! The event graph of a trace: its events by thread and position, the scopes of its locks, and the
//! edges between its threads that every witness order graph has.
//!
//! A thread is divided into *segments*, each starting where an edge from another thread may come
//! in, so that all events of a segment come after the same events of all other threads. *Scopes*
//! are the critical sections of locks that threads contend for; those of one lock, thread and mode
//! are a *queue*, in which both ends ascend. Overlapping sections of a thread, whatever their
//! locks, are one *contracted component*: one vertex of the contracted graph of the paper.
//!
//! Reads-from edges are among the edges. Of the reads of one write by one thread only the first
//! needs an edge, and the second, in place of the first should that be broken. A reads-from edge is
//! *breakable* if its writer does not come before its read by other edges, so that some reordering
//! may break it. All arrivals of a barrier generation come before all that wait for it: they are
//! stored as a *hub* between the ones and the others, not pair by pair.
//!
//! Linear in the events.

use std::ops::Range;

use reweave_base::{CsrTable, FxHashMap, Id, IndexVec};
use reweave_order::mhb::MustHappenBefore;
use reweave_trace::views::{GenerationId, Mode, SectionId};
use reweave_trace::{EventId, LockId, Op, ThreadId, Trace, VarId};

reweave_base::id! {
    /// Events of a thread up to the next that an edge from another thread may come into.
    pub(super) struct SegmentId;
    /// A scope; numbered thread by thread, by their acquires.
    pub(super) struct ScopeId;
}

/// A position after all events: that of a release that is not in the trace.
pub(super) const NEVER: u32 = u32::MAX;

/// An event as its thread and its position there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) thread: ThreadId,
    pub(super) position: u32,
}

/// A critical section of a lock that threads contend for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    pub(super) thread: ThreadId,
    pub(super) lock: LockId,
    pub(super) mode: Mode,
    pub(super) acquire: u32,
    /// Where it ends; [`NEVER`] if it does not.
    pub(super) release: u32,
    /// The newest scope that was open at the acquire.
    outer: Option<ScopeId>,
    /// The last release of this scope and all that enclose it.
    last_release: u32,
}

impl Scope {
    pub(super) const fn start(&self) -> Point {
        Point { thread: self.thread, position: self.acquire }
    }

    pub(super) const fn end(&self) -> Point {
        Point { thread: self.thread, position: self.release }
    }
}

/// The scopes of a lock by one thread in one mode.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) thread: ThreadId,
    mode: Mode,
    range: Range<usize>,
}

/// A segment: its thread and its first event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) start: Point,
    pub(super) event: EventId,
}

/// The event graph; see the module.
#[derive(Debug)]
pub(super) struct EventGraph<'t> {
    pub(super) trace: &'t Trace,
    pub(super) threads_count: usize,
    /// How many events each thread has.
    lengths: Vec<u32>,
    points: IndexVec<EventId, Point>,
    /// Where the slots of each thread start: one for each event and one for the end.
    slots: IndexVec<ThreadId, u32>,
    segment_of: Vec<u32>,
    pub(super) segments: IndexVec<SegmentId, Segment>,
    segments_of: IndexVec<ThreadId, Range<usize>>,
    pub(super) edges: Edges,
    pub(super) releases: CsrTable<SegmentId, ScopeId>,
    pub(super) scopes: IndexVec<ScopeId, Scope>,
    /// For each slot the number of scopes, of all threads up to this one, that are acquired before
    /// it.
    acquired: Vec<u32>,
    /// The scopes thread by thread, by their releases; how many of them end before each slot.
    pub(super) by_release: Vec<ScopeId>,
    released: Vec<u32>,
    scopes_of: IndexVec<ThreadId, Range<usize>>,
    queues: Vec<Queue>,
    queues_on: IndexVec<LockId, Range<usize>>,
    queues_of: CsrTable<ThreadId, usize>,
    /// Queue by queue: where scopes start and end, and which they are.
    acquires: Vec<u32>,
    ends: Vec<u32>,
    pub(super) queued: Vec<ScopeId>,
    /// For each slot its contracted component: the first position, and the first after it.
    contracted: Vec<(u32, u32)>,
    is_breakable: IndexVec<EventId, bool>,
    /// What comes before what by edges alone, without what follows for scopes.
    needs: MustHappenBefore<'t>,
}

impl<'t> EventGraph<'t> {
    /// The graph of `trace`.
    pub(super) fn new(trace: &'t Trace) -> Self {
        let mut graph = Self::without_edges(trace);
        graph.find_scopes();
        graph.find_queues();
        graph.find_contracted();
        let mut links = Links::new(trace, &graph.needs);
        graph.link_open_scopes(&mut links.pairs);
        graph.find_segments(&links);
        graph.is_breakable = links.is_breakable;
        graph
    }

    fn without_edges(trace: &'t Trace) -> Self {
        let threads_count = trace.names().threads.len();
        let (mut slots, mut lengths) = (IndexVec::new(), Vec::new());
        let mut slots_count = 0;
        for thread in (0..threads_count).map(ThreadId::from_index) {
            slots.push(slots_count as u32);
            lengths.push(trace.thread_events(thread).len() as u32);
            slots_count += trace.thread_events(thread).len() + 1;
        }
        let points = trace
            .events()
            .map(|(id, event)| Point { thread: event.thread, position: trace.position(id) })
            .collect();
        Self {
            trace,
            threads_count,
            lengths,
            points,
            slots,
            segment_of: vec![0; slots_count],
            segments: IndexVec::new(),
            segments_of: IndexVec::new(),
            edges: Edges::new(&Links::default(), 0, |_| unreachable!("there are no links")),
            releases: CsrTable::group(0, ScopeId::from_index(0), std::iter::empty),
            scopes: IndexVec::new(),
            acquired: vec![0; slots_count],
            by_release: Vec::new(),
            released: vec![0; slots_count],
            scopes_of: IndexVec::new(),
            queues: Vec::new(),
            queues_on: IndexVec::from_elem(0..0, trace.names().locks.len()),
            queues_of: CsrTable::group(0, 0, std::iter::empty),
            acquires: Vec::new(),
            ends: Vec::new(),
            queued: Vec::new(),
            contracted: vec![(0, 0); slots_count],
            is_breakable: IndexVec::new(),
            needs: MustHappenBefore::new(trace),
        }
    }

    pub(super) fn threads(&self) -> impl Iterator<Item = ThreadId> + use<> {
        (0..self.threads_count).map(ThreadId::from_index)
    }

    #[inline]
    pub(super) fn point(&self, event: EventId) -> Point {
        self.points[event]
    }

    pub(super) fn event(&self, point: Point) -> EventId {
        self.trace.thread_events(point.thread)[point.position as usize]
    }

    /// The reads-from edge into `read`, if it is between two threads and breakable.
    pub(super) fn breakable(&self, read: EventId) -> Option<(Point, Point)> {
        let writer = self.trace.writer(read).filter(|_| self.is_breakable[read])?;
        Some((self.point(writer), self.point(read)))
    }

    /// How many events of `thread` come before `point`, or are it, by edges between threads alone,
    /// without what follows for scopes.
    pub(super) fn needed(&self, point: Point, thread: ThreadId) -> u32 {
        self.needs.past(self.event(point)).get(thread)
    }

    /// The cost of scanning a row, which is less than that of its entries one by one.
    #[inline]
    pub(super) const fn row_cost(&self) -> usize {
        if self.threads_count < 8 { self.threads_count } else { 6 + self.threads_count / 4 }
    }

    /// How many events `thread` has.
    #[inline]
    pub(super) fn events_count(&self, thread: ThreadId) -> u32 {
        self.lengths[thread.index()]
    }

    /// Sets `cut` to all events.
    #[inline]
    pub(super) fn whole(&self, cut: &mut [u32]) {
        cut.copy_from_slice(&self.lengths);
    }

    /// How many slots there are: one for each event, and one for the end of each thread.
    pub(super) fn slots_count(&self) -> usize {
        self.segment_of.len()
    }

    #[inline]
    pub(super) fn slot(&self, thread: ThreadId, position: u32) -> usize {
        self.slots[thread] as usize + position as usize
    }

    #[inline]
    pub(super) fn segment(&self, point: Point) -> SegmentId {
        SegmentId::from_index(self.segment_of[self.slot(point.thread, point.position)] as usize)
    }

    /// The segments of `thread`, in program order.
    #[inline]
    pub(super) fn segments_of(&self, thread: ThreadId) -> Range<usize> {
        self.segments_of[thread].clone()
    }

    /// The segment after `segment` in its thread.
    pub(super) fn next_segment(&self, segment: SegmentId) -> Option<SegmentId> {
        let next = segment.index() + 1;
        let thread = self.segments[segment].start.thread;
        (next < self.segments_of(thread).end).then(|| SegmentId::from_index(next))
    }

    /// The segment before `segment` in its thread.
    pub(super) fn previous_segment(&self, segment: SegmentId) -> Option<SegmentId> {
        let previous = segment.index().checked_sub(1)?;
        let thread = self.segments[segment].start.thread;
        (previous >= self.segments_of(thread).start).then(|| SegmentId::from_index(previous))
    }

    /// The contracted component of `point`, which may be the end of the thread: its first position,
    /// and the first after it.
    #[inline]
    pub(super) fn contracted(&self, point: Point) -> (u32, u32) {
        self.contracted[self.slot(point.thread, point.position)]
    }

    /// The scopes of `thread` that are acquired in `positions`, in that order, as indexes.
    pub(super) fn acquired_in(&self, thread: ThreadId, positions: Range<u32>) -> Range<usize> {
        let count = |position| self.acquired[self.slot(thread, position)] as usize;
        count(positions.start)..count(positions.end)
    }

    /// The scopes of `thread` that end in `positions`, in that order, as indexes of `by_release`.
    pub(super) fn released_in(&self, thread: ThreadId, positions: Range<u32>) -> Range<usize> {
        let count = |position| self.released[self.slot(thread, position)] as usize;
        count(positions.start)..count(positions.end)
    }

    /// The scope that `point` acquires.
    pub(super) fn acquired_at(&self, point: Point) -> Option<&Scope> {
        let slot = self.slot(point.thread, point.position);
        let (before, after) = (self.acquired[slot], self.acquired[slot + 1]);
        (before < after).then(|| &self.scopes[ScopeId::from_index(before as usize)])
    }

    /// Whether a scope of `thread` starts before `until` and does not end before `from`.
    #[inline]
    pub(super) fn has_scopes_between(&self, thread: ThreadId, from: u32, until: u32) -> bool {
        self.acquired[self.slot(thread, until)] > self.released[self.slot(thread, from)]
    }

    /// The scopes of `thread` that are acquired before `position` and not released before it, the
    /// newest first.
    #[inline]
    pub(super) fn open_at(
        &self,
        thread: ThreadId,
        position: u32,
    ) -> impl Iterator<Item = &Scope> + use<'_, 't> {
        let count = self.acquired[self.slot(thread, position)] as usize;
        let newest = (count > self.scopes_of[thread].start)
            .then(|| ScopeId::from_index(count - 1))
            .map(|id| &self.scopes[id]);
        let is_within = move |scope: &&Scope| scope.last_release >= position;
        std::iter::successors(newest.filter(is_within), move |scope| {
            scope.outer.map(|outer| &self.scopes[outer]).filter(is_within)
        })
        .filter(move |scope| scope.release >= position)
    }

    /// The queues whose scopes exclude `scope`.
    #[inline]
    pub(super) fn rivals(&self, scope: &Scope) -> impl Iterator<Item = &Queue> + use<'_, 't> {
        let (thread, mode) = (scope.thread, scope.mode);
        self.queues[self.queues_on[scope.lock].clone()].iter().filter(move |queue| {
            queue.thread != thread && (mode == Mode::Exclusive || queue.mode == Mode::Exclusive)
        })
    }

    /// The queues of `thread`.
    pub(super) fn queues_of(&self, thread: ThreadId) -> impl ExactSizeIterator<Item = &Queue> {
        self.queues_of.row(thread).iter().map(|&queue| &self.queues[queue])
    }

    /// The scopes of `queue` from the first that ends at `released_from` or later to the last that
    /// starts before `acquired_before`, as a range of `queued`; its ends may cross.
    #[inline]
    pub(super) fn range(
        &self,
        queue: &Queue,
        released_from: u32,
        acquired_before: u32,
    ) -> Range<usize> {
        let Range { start, .. } = queue.range;
        start + self.ended_before(queue, released_from)
            ..start + self.started_before(queue, acquired_before)
    }

    /// How many scopes of `queue` end before `position`.
    #[inline]
    fn ended_before(&self, queue: &Queue, position: u32) -> usize {
        self.ends[queue.range.clone()].partition_point(|&end| end < position)
    }

    /// How many scopes of `queue` start before `position`.
    #[inline]
    fn started_before(&self, queue: &Queue, position: u32) -> usize {
        self.acquires[queue.range.clone()].partition_point(|&start| start < position)
    }

    /// The first scope of `queue` that ends at `position` or later.
    #[inline]
    pub(super) fn first_ending_from(&self, queue: &Queue, position: u32) -> Option<&Scope> {
        let next = self.scopes_in(queue).get(self.ended_before(queue, position))?;
        Some(&self.scopes[*next])
    }

    /// The first scope of `queue` that starts at `position` or later.
    pub(super) fn first_from(&self, queue: &Queue, position: u32) -> Option<&Scope> {
        let next = self.scopes_in(queue).get(self.started_before(queue, position))?;
        Some(&self.scopes[*next])
    }

    /// The last scope of `queue` that starts before `position`.
    #[inline]
    pub(super) fn last_before(&self, queue: &Queue, position: u32) -> Option<&Scope> {
        let last = self.scopes_in(queue)[..self.started_before(queue, position)].last()?;
        Some(&self.scopes[*last])
    }

    /// The scopes of `queue`, in program order.
    pub(super) fn scopes_in(&self, queue: &Queue) -> &[ScopeId] {
        &self.queued[queue.range.clone()]
    }
}

/// Construction.
impl EventGraph<'_> {
    fn find_scopes(&mut self) {
        let sections = self.trace.sections();
        let contended = contended_locks(self.trace);
        // The newest scope that each section is in, or is.
        let mut nearest: IndexVec<SectionId, Option<ScopeId>> =
            IndexVec::from_elem(None, sections.entries().len());
        for thread in self.threads() {
            let first = self.scopes.len();
            for &id in sections.of_thread(thread) {
                let section = sections.get(id);
                let outer = section.outer.and_then(|outer| nearest[outer]);
                if !contended[section.lock] {
                    nearest[id] = outer;
                    continue;
                }
                let acquire = self.points[section.acquire].position;
                let release = section.release.map_or(NEVER, |end| self.points[end].position);
                let last_release =
                    outer.map_or(release, |outer| self.scopes[outer].last_release.max(release));
                let (lock, mode) = (section.lock, section.mode);
                let scope = Scope { thread, lock, mode, acquire, release, outer, last_release };
                nearest[id] = Some(self.scopes.push(scope));
            }
            self.scopes_of.push(first..self.scopes.len());
            self.count_scopes(thread);
        }
    }

    /// Fills in how many scopes start and end before each slot of `thread`.
    fn count_scopes(&mut self, thread: ThreadId) {
        let range = self.scopes_of[thread].clone();
        let mut ids: Vec<ScopeId> = range.clone().map(ScopeId::from_index).collect();
        let (mut acquired, mut released) = (0, 0);
        let starts: Vec<u32> = ids.iter().map(|&id| self.scopes[id].acquire).collect();
        ids.sort_by_key(|&id| self.scopes[id].release);
        for position in 0..=self.events_count(thread) {
            let slot = self.slot(thread, position);
            while starts.get(acquired).is_some_and(|&start| start < position) {
                acquired += 1;
            }
            while ids.get(released).is_some_and(|&id| self.scopes[id].release < position) {
                released += 1;
            }
            self.acquired[slot] = (range.start + acquired) as u32;
            self.released[slot] = (range.start + released) as u32;
        }
        self.by_release.extend(ids);
    }

    fn find_queues(&mut self) {
        let mut ids: Vec<ScopeId> = self.scopes.ids().collect();
        let key = |id: &ScopeId| {
            let scope = &self.scopes[*id];
            (scope.lock, scope.thread, scope.mode as u8, scope.acquire)
        };
        ids.sort_unstable_by_key(key);
        let is_same = |left: &ScopeId, right: &ScopeId| {
            let (left, right) = (key(left), key(right));
            (left.0, left.1, left.2) == (right.0, right.1, right.2)
        };
        for scopes in ids.chunk_by(is_same) {
            let Scope { lock, thread, mode, .. } = self.scopes[scopes[0]];
            let start = self.queued.len();
            self.queued.extend(scopes);
            let at = self.queues.len();
            self.queues.push(Queue { thread, mode, range: start..self.queued.len() });
            let on = &mut self.queues_on[lock];
            *on = if on.end == 0 { at..at + 1 } else { on.start..at + 1 };
        }
        self.acquires = self.queued.iter().map(|&id| self.scopes[id].acquire).collect();
        self.ends = self.queued.iter().map(|&id| self.scopes[id].release).collect();
        self.queues_of = CsrTable::group(self.threads_count, 0, || {
            self.queues.iter().enumerate().map(|(at, queue)| (queue.thread, at))
        });
    }

    fn find_contracted(&mut self) {
        let sections = self.trace.sections();
        for thread in self.threads() {
            let count = self.events_count(thread);
            let mut contracted: Vec<(u32, u32)> = Vec::new();
            for section in sections.of_thread(thread).iter().map(|&id| sections.get(id)) {
                let start = self.points[section.acquire].position;
                let end = section.release.map_or(count, |end| self.points[end].position + 1);
                match contracted.last_mut() {
                    Some((_, behind)) if start < *behind => *behind = end.max(*behind),
                    _ => contracted.push((start, end)),
                }
            }
            // An event outside of all sections is a component of its own.
            for position in 0..=count {
                let slot = self.slot(thread, position);
                self.contracted[slot] = (position, position + 1);
            }
            for (start, end) in contracted {
                let slots = self.slot(thread, start)..self.slot(thread, end);
                self.contracted[slots].fill((start, end));
            }
        }
    }

    /// A scope that never ends comes after all that exclude it: nothing can acquire the lock later.
    fn link_open_scopes(&self, pairs: &mut Vec<(EventId, EventId)>) {
        for scope in self.scopes.iter().filter(|scope| scope.release == NEVER) {
            for queue in self.rivals(scope) {
                let last = self.scopes_in(queue).last().map(|&last| &self.scopes[last]);
                if let Some(last) = last.filter(|last| last.release != NEVER) {
                    pairs.push((self.event(last.end()), self.event(scope.start())));
                }
            }
        }
    }

    fn find_segments(&mut self, links: &Links) {
        let mut starts: Vec<Point> = self
            .threads()
            .filter(|&thread| self.events_count(thread) > 0)
            .map(|thread| Point { thread, position: 0 })
            .collect();
        starts.extend(links.pairs.iter().map(|&(_, head)| self.points[head]));
        starts.extend(links.heads.iter().map(|&(_, head)| self.points[head]));
        starts.extend(self.scopes.iter().map(Scope::start));
        starts.sort_unstable_by_key(|start| (start.thread, start.position));
        starts.dedup();
        self.segments =
            starts.iter().map(|&start| Segment { start, event: self.event(start) }).collect();
        let mut at = 0;
        for thread in self.threads() {
            let first = at;
            for position in 0..self.events_count(thread) {
                at += usize::from(starts.get(at) == Some(&Point { thread, position }));
                let slot = self.slot(thread, position);
                self.segment_of[slot] = at as u32 - 1;
            }
            self.segments_of.push(first..at);
        }
        let count = self.segments.len();
        let place = |event: EventId| (self.points[event], self.segment(self.points[event]));
        self.edges = Edges::new(links, count, place);
        let ended = self.scopes.entries().filter(|(_, scope)| scope.release != NEVER);
        let releases: Vec<(SegmentId, ScopeId)> =
            ended.map(|(id, scope)| (self.segment(scope.end()), id)).collect();
        self.releases = CsrTable::group(count, ScopeId::from_index(0), || releases.iter().copied());
    }
}

/// Which locks have sections that exclude each other.
fn contended_locks(trace: &Trace) -> IndexVec<LockId, bool> {
    let sections = trace.sections();
    let mut contended = IndexVec::from_elem(false, trace.names().locks.len());
    let mut exclusive: IndexVec<LockId, Option<ThreadId>> =
        IndexVec::from_elem(None, contended.len());
    for (_, section) in sections.entries().filter(|(_, section)| section.mode == Mode::Exclusive) {
        let known = exclusive[section.lock].get_or_insert(section.thread);
        contended[section.lock] |= *known != section.thread;
    }
    for (_, section) in sections.entries() {
        let other = exclusive[section.lock];
        contended[section.lock] |= other.is_some_and(|other| other != section.thread);
    }
    contended
}

reweave_base::id! {
    /// A barrier generation that somebody waited for.
    pub(super) struct HubId;
}

/// Edges as pairs of events.
#[derive(Debug, Default)]
struct Links {
    /// The tail of each edge and its head.
    pairs: Vec<(EventId, EventId)>,
    /// For each event whether it is a read with a breakable reads-from edge from another thread.
    is_breakable: IndexVec<EventId, bool>,
    /// Who arrived.
    tails: Vec<(HubId, EventId)>,
    /// Who waited for them.
    heads: Vec<(HubId, EventId)>,
    hubs_count: usize,
}

impl Links {
    fn new(trace: &Trace, needs: &MustHappenBefore<'_>) -> Self {
        let is_breakable = IndexVec::from_elem(false, trace.len());
        let mut links = Self { is_breakable, ..Self::default() };
        let mut hubs: FxHashMap<GenerationId, HubId> = FxHashMap::default();
        // For each thread and variable the write it saw last, and how often.
        let mut seen: FxHashMap<(ThreadId, VarId), (EventId, u32)> = FxHashMap::default();
        for (id, event) in trace.events() {
            let is_other = |tail: EventId| trace.event(tail).thread != event.thread;
            let pairs = &mut links.pairs;
            let mut add = |tail: EventId| pairs.extend(is_other(tail).then_some((tail, id)));
            if trace.position(id) == 0 {
                trace.lifetime(event.thread).fork.into_iter().for_each(&mut add);
            }
            if matches!(event.op, Op::Barrier(..)) {
                links.wait(trace, id, &mut hubs);
                continue;
            }
            needs.for_each_signal(id, add);
            let (Some(writer), Some(var)) = (trace.writer(id), event.op.var()) else { continue };
            if !is_other(writer) {
                continue;
            }
            let (last, count) = seen.entry((event.thread, var)).or_insert((writer, 0));
            *count = if *last == writer { *count + 1 } else { 1 };
            *last = writer;
            // The second stands in for the first where that one's edge is broken.
            if *count <= 2 {
                links.pairs.push((writer, id));
                let before = needs.before(id).get(trace.event(writer).thread);
                links.is_breakable[id] = before <= trace.position(writer);
            }
        }
        links
    }

    /// Adds the edges into `head`, which arrives or departs.
    fn wait(&mut self, trace: &Trace, head: EventId, hubs: &mut FxHashMap<GenerationId, HubId>) {
        let signals = trace.signals();
        let Some(generation) = signals.needed_generation(head) else { return };
        let hub = *hubs.entry(generation).or_insert_with(|| {
            let hub = HubId::from_index(self.hubs_count);
            self.hubs_count += 1;
            self.tails
                .extend(signals.generation(generation).arrivals.iter().map(|&tail| (hub, tail)));
            hub
        });
        self.heads.push((hub, head));
    }
}

/// Edges by where they start and where they end.
#[derive(Debug)]
pub(super) struct Edges {
    /// By the segment of their tail: its position, and the head.
    pub(super) from: CsrTable<SegmentId, (u32, SegmentId)>,
    /// By their head.
    pub(super) into: CsrTable<SegmentId, Point>,
    /// The hubs that a segment arrives at, and the position of the arrival.
    pub(super) hubs_from: CsrTable<SegmentId, (u32, HubId)>,
    /// The hubs that a segment waits for.
    pub(super) hubs_into: CsrTable<SegmentId, HubId>,
    pub(super) tails: CsrTable<HubId, Point>,
    pub(super) heads: CsrTable<HubId, SegmentId>,
}

impl Edges {
    /// Those of `links`; `place` gives the point and the segment, of `count`, of an event.
    fn new(links: &Links, count: usize, place: impl Fn(EventId) -> (Point, SegmentId)) -> Self {
        let hubs_count = links.hubs_count;
        let (segment, hub) = (SegmentId::from_index(0), HubId::from_index(0));
        let point = Point { thread: ThreadId::from_index(0), position: 0 };
        let pairs = || links.pairs.iter().map(|&(tail, head)| (place(tail), place(head)));
        let tails = || links.tails.iter().map(|&(hub, tail)| (hub, place(tail)));
        let heads = || links.heads.iter().map(|&(hub, head)| (hub, place(head).1));
        Self {
            from: CsrTable::group(count, (0, segment), || {
                pairs().map(|((tail, from), (_, head))| (from, (tail.position, head)))
            }),
            into: CsrTable::group(count, point, || {
                pairs().map(|((tail, _), (_, head))| (head, tail))
            }),
            hubs_from: CsrTable::group(count, (0, hub), || {
                tails().map(|(hub, (tail, from))| (from, (tail.position, hub)))
            }),
            hubs_into: CsrTable::group(count, hub, || heads().map(|(hub, head)| (head, hub))),
            tails: CsrTable::group(hubs_count, point, || {
                tails().map(|(hub, (tail, _))| (hub, tail))
            }),
            heads: CsrTable::group(hubs_count, segment, heads),
        }
    }
}
