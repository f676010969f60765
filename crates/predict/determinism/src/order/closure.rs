//! The closure of the event graph: what must come before what, with and without one reads-from
//! edge.
//!
//! **Predecessors** ([`closure`]). For each segment a row: for each thread how many of its events
//! come before. Where the acquire of a scope comes before the release of one that it excludes, its
//! release comes before that one's acquire: a new edge, from which more may follow. Rows only rise,
//! segment by segment, the earliest observed first. All edges follow the observed order, so there
//! is no cycle. Costs a row for each change; where rows keep changing, it gives up.
//!
//! **Successors** ([`Successors`]). Where an edge leaves a thread is an *exit*. All events of a
//! thread after one exit, up to the next, have the same events of other threads after them, so
//! there is a row for each exit. Computed from the predecessors, and linear in these, in time and
//! in memory.
//!
//! **Without one reads-from edge** ([`ReducedClosure`]). What depends on the edge cannot be told
//! from what holds without it by looking at the closure: each may support the other. So all that
//! might depend on the edge is retracted, and what holds without it is derived again (delete and
//! rederive).
//!
//! An edge is *dependent* if it is the removed one, or orders two scopes because one starts before
//! the tail of a dependent edge and the other ends after its head. If one event comes before
//! another in the full closure but not in the reduced one, the one is before the tail and the other
//! after the head of a dependent edge: this is so for the removed edge, and stays so whatever
//! follows. Scopes that are entirely before or after are ordered by the dependent edge itself; so
//! only those that are open at its cuts yield further ones, few as a rule. Those with the same tail
//! are stored as one, with all that comes after any of their heads.
//!
//! A row can change only after the head of a dependent edge, in entries that are what the tail
//! knows and that the previous row of its thread does not have. This ends where a thread learns
//! more by another edge, usually soon. These entries are set to zero and raised again, from the
//! rows before, to a fixpoint. Costs what the edge changes, which may be much of the trace where
//! threads hardly communicate, and counts it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_trace::{EventId, ThreadId};

use super::graph::{EventGraph, HubId, NEVER, Point, Scope, SegmentId};
use super::overlay::{
    ClosedGraph, Edge, Incomplete, Outcome, Work, each_forced, has, lower, raise,
};

/// How often each entry of all rows may be read, on average.
const LOOKS_MAX: u64 = 256;

/// The rows of all segments of `graph`, one after the other; none if that is too much work. The
/// edge `left_out` is ignored.
pub(super) fn closure(
    graph: &EventGraph<'_>,
    left_out: Option<(Point, SegmentId)>,
) -> Option<Vec<u32>> {
    let mut clocks = Clocks::new(graph, left_out);
    let looks_max = LOOKS_MAX.saturating_mul(clocks.rows.len() as u64);
    while let Some(Reverse((_, segment))) = clocks.queue.pop() {
        clocks.is_queued[segment] = false;
        clocks.propagate(segment);
        if clocks.looks > looks_max {
            return None;
        }
    }
    clocks.rows.truncate(graph.segments.len() * graph.threads_count);
    Some(clocks.rows)
}

/// Rows that are being raised. Hubs have rows too, after those of segments.
struct Clocks<'a> {
    graph: &'a EventGraph<'a>,
    left_out: Option<(Point, SegmentId)>,
    rows: Vec<u32>,
    /// Edges between scopes, each with the one before it from the same segment.
    added: Vec<Added>,
    newest: IndexVec<SegmentId, Option<u32>>,
    queue: BinaryHeap<Reverse<(EventId, SegmentId)>>,
    is_queued: IndexVec<SegmentId, bool>,
    /// How many entries were read.
    looks: u64,
}

#[derive(Clone, Copy, Debug)]
struct Added {
    tail: Point,
    head: SegmentId,
    before: Option<u32>,
}

impl<'a> Clocks<'a> {
    /// Rows of nothing but program order, all of which are to be passed on.
    fn new(graph: &'a EventGraph<'_>, left_out: Option<(Point, SegmentId)>) -> Self {
        let (segments_count, hubs_count) = (graph.segments.len(), graph.edges.tails.len());
        let count = segments_count + hubs_count;
        let mut clocks = Self {
            graph,
            left_out,
            rows: vec![0; count * graph.threads_count],
            added: Vec::new(),
            newest: IndexVec::from_elem(None, segments_count),
            queue: BinaryHeap::new(),
            is_queued: IndexVec::from_elem(false, count),
            looks: 0,
        };
        for (segment, own) in graph.segments.entries() {
            let entry = segment.index() * graph.threads_count + own.start.thread.index();
            clocks.rows[entry] = own.start.position;
            clocks.enqueue(segment);
        }
        clocks
    }

    fn hub(&self, segment: SegmentId) -> Option<HubId> {
        segment.index().checked_sub(self.graph.segments.len()).map(HubId::from_index)
    }

    fn enqueue(&mut self, segment: SegmentId) {
        if !std::mem::replace(&mut self.is_queued[segment], true) {
            let graph = self.graph;
            let event = match self.hub(segment) {
                None => graph.segments[segment].event,
                Some(hub) => {
                    let arrivals = graph.edges.tails.row(hub).iter();
                    let last = arrivals.map(|&tail| graph.event(tail)).max();
                    last.expect("somebody arrived in a generation that is waited for")
                }
            };
            self.queue.push(Reverse((event, segment)));
        }
    }

    /// Raises the rows of all direct successors of `segment`.
    fn propagate(&mut self, segment: SegmentId) {
        let (graph, edges) = (self.graph, &self.graph.edges);
        if let Some(hub) = self.hub(segment) {
            edges.heads.row(hub).iter().for_each(|&head| self.raise(segment, None, head));
            return;
        }
        let thread = graph.segments[segment].start.thread;
        if let Some(next) = graph.next_segment(segment) {
            self.raise(segment, None, next);
        }
        for &(position, head) in edges.from.row(segment) {
            let tail = Point { thread, position };
            if self.left_out != Some((tail, head)) {
                self.raise(segment, Some(tail), head);
            }
        }
        for &(position, hub) in edges.hubs_from.row(segment) {
            let head = SegmentId::from_index(graph.segments.len() + hub.index());
            self.raise(segment, Some(Point { thread, position }), head);
        }
        let mut link = self.newest[segment];
        while let Some(edge) = link.map(|at| self.added[at as usize]) {
            self.raise(segment, Some(edge.tail), edge.head);
            link = edge.before;
        }
        for &release in graph.releases.row(segment) {
            self.exclude(segment, &graph.scopes[release]);
        }
    }

    /// Raises the row of `head` by that of `from`, in which `tail` is, and by `tail`.
    fn raise(&mut self, from: SegmentId, tail: Option<Point>, head: SegmentId) {
        let count = self.graph.threads_count;
        let (from, to) = (from.index() * count, head.index() * count);
        self.looks += count as u64;
        let (theirs, own) = if from < to {
            let (early, late) = self.rows.split_at_mut(to);
            (&early[from..from + count], &mut late[..count])
        } else {
            let (early, late) = self.rows.split_at_mut(from);
            (&late[..count], &mut early[to..to + count])
        };
        let mut has_changed = raise_changed(own, theirs);
        if let Some(tail) = tail {
            let slot = &mut own[tail.thread.index()];
            has_changed |= *slot <= tail.position;
            *slot = (tail.position + 1).max(*slot);
        }
        if has_changed {
            self.enqueue(head);
        }
    }

    /// `scope`, which ends in `segment`, comes after all whose start comes before its end.
    fn exclude(&mut self, segment: SegmentId, scope: &Scope) {
        let graph = self.graph;
        let count = graph.threads_count;
        let head = graph.segment(scope.start());
        for queue in graph.rivals(scope) {
            self.looks += 1;
            let seen = self.rows[segment.index() * count + queue.thread.index()];
            let last = graph.last_before(queue, seen).filter(|last| last.release != NEVER);
            let Some(tail) = last.map(Scope::end) else { continue };
            if self.rows[head.index() * count + tail.thread.index()] <= tail.position {
                let from = graph.segment(tail);
                let at = self.added.len() as u32;
                self.added.push(Added { tail, head, before: self.newest[from].replace(at) });
                self.raise(from, Some(tail), head);
            }
        }
    }
}

/// Raises `row` to hold all of `other`; whether that changed it.
fn raise_changed(row: &mut [u32], other: &[u32]) -> bool {
    let mut has_changed = false;
    for (slot, &number) in row.iter_mut().zip(other) {
        has_changed |= number > *slot;
        *slot = number.max(*slot);
    }
    has_changed
}

/// For each event, of each thread the first event that comes after it.
#[derive(Debug)]
pub(super) struct Successors {
    /// For each slot the first exit that is not before it, or [`NEVER`].
    exit_of: Vec<u32>,
    rows: Vec<u32>,
}

impl Successors {
    /// Those of `graph`, of which `rows` say what comes before each segment.
    pub(super) fn new(graph: &EventGraph<'_>, rows: &[u32]) -> Self {
        let mut successors = Self { exit_of: exits(graph), rows: Vec::new() };
        let mut own: Vec<u32> = Vec::new();
        for thread in graph.threads() {
            own.clear();
            let first = successors.rows.len();
            let mut exit = (first / graph.threads_count) as u32;
            for position in 0..graph.events_count(thread) {
                let slot = &mut successors.exit_of[graph.slot(thread, position)];
                let is_exit = std::mem::replace(slot, exit) != NEVER;
                if is_exit {
                    own.push(position);
                    exit += 1;
                }
            }
            let behind_last = own.last().map_or(0, |&last| last + 1);
            for position in behind_last..graph.events_count(thread) {
                successors.exit_of[graph.slot(thread, position)] = NEVER;
            }
            successors.rows.resize(first + own.len() * graph.threads_count, 0);
            for other in graph.threads().filter(|&other| other != thread) {
                fill(graph, rows, thread, &own, other, &mut successors.rows[first..]);
            }
        }
        successors
    }

    /// For each thread the first event that comes after `point`, but for its own thread; none if
    /// none does.
    #[inline]
    pub(super) fn row(&self, graph: &EventGraph<'_>, point: Point) -> Option<&[u32]> {
        let exit = self.exit_of[graph.slot(point.thread, point.position)];
        let count = graph.threads_count;
        (exit != NEVER).then(|| &self.rows[exit as usize * count..][..count])
    }
}

/// Fills in the entries of `other` in `successors`, the rows of the `exits` of `thread`.
fn fill(
    graph: &EventGraph<'_>,
    rows: &[u32],
    thread: ThreadId,
    exits: &[u32],
    other: ThreadId,
    successors: &mut [u32],
) {
    let count = graph.threads_count;
    let starts = &graph.segments.as_slice()[graph.segments_of(other)];
    let rows = &rows[graph.segments_of(other).start * count..];
    let mut seen = rows.chunks_exact(count).map(|row| row[thread.index()]).zip(starts).peekable();
    for (row, &exit) in successors.chunks_exact_mut(count).zip(exits) {
        while seen.next_if(|(known, _)| *known <= exit).is_some() {}
        let first = seen.peek().map(|(_, segment)| segment.start.position);
        row[other.index()] = first.unwrap_or_else(|| graph.events_count(other));
    }
}

/// For each slot something else than [`NEVER`] where an edge leaves its thread.
fn exits(graph: &EventGraph<'_>) -> Vec<u32> {
    let mut exits = vec![NEVER; graph.slots_count()];
    let mut mark = |point: Point| exits[graph.slot(point.thread, point.position)] = 0;
    for (segment, edges) in graph.edges.from.rows() {
        let thread = graph.segments[segment].start.thread;
        edges.iter().for_each(|&(position, _)| mark(Point { thread, position }));
    }
    for (_, tails) in graph.edges.tails.rows() {
        tails.iter().copied().for_each(&mut mark);
    }
    graph.scopes.iter().filter(|scope| scope.release != NEVER).map(Scope::end).for_each(mark);
    exits
}

/// Rows that differ from those of the full closure.
#[derive(Debug)]
pub(super) struct Patch {
    width: usize,
    /// For each segment one more than the index of its row, or 0.
    places: IndexVec<SegmentId, u32>,
    segments: Vec<SegmentId>,
    rows: Vec<u32>,
    /// Which threads have such rows.
    is_touched: IndexVec<ThreadId, bool>,
}

impl Patch {
    fn new(graph: &EventGraph<'_>) -> Self {
        Self {
            width: graph.threads_count,
            places: IndexVec::from_elem(0, graph.segments.len()),
            segments: Vec::new(),
            rows: Vec::new(),
            is_touched: IndexVec::from_elem(false, graph.threads_count),
        }
    }

    /// The row of `segment`, if it has one here.
    #[inline]
    pub(super) fn row(&self, segment: SegmentId) -> Option<&[u32]> {
        let place = self.places[segment].checked_sub(1)? as usize;
        Some(&self.rows[place * self.width..][..self.width])
    }

    /// The row of `segment`, which has one here.
    fn row_mut(&mut self, segment: SegmentId) -> &mut [u32] {
        let place = self.places[segment] as usize - 1;
        &mut self.rows[place * self.width..][..self.width]
    }

    /// The row of `segment`, which is `row` if there is none yet.
    fn row_or(&mut self, segment: SegmentId, row: &[u32]) -> &mut [u32] {
        if self.places[segment] == 0 {
            self.segments.push(segment);
            self.rows.extend_from_slice(row);
            self.places[segment] = self.segments.len() as u32;
        }
        self.row_mut(segment)
    }

    fn clear(&mut self) {
        self.segments.drain(..).for_each(|segment| self.places[segment] = 0);
        self.rows.clear();
        self.is_touched.as_mut_vec().fill(false);
    }
}

/// The closure without one reads-from edge, for one edge after the other; see the module.
#[derive(Debug)]
pub(super) struct ReducedClosure {
    patch: Patch,
    dependent: DependentEdges,
    /// Which entries of a row a dependent edge may have raised.
    is_raised: Vec<bool>,
    scratch: Vec<u32>,
    queue: BinaryHeap<Reverse<(EventId, SegmentId)>>,
    is_queued: IndexVec<SegmentId, bool>,
}

impl ReducedClosure {
    pub(super) fn new(graph: &EventGraph<'_>) -> Self {
        Self {
            patch: Patch::new(graph),
            dependent: DependentEdges::default(),
            is_raised: vec![false; graph.threads_count],
            scratch: vec![0; graph.threads_count],
            queue: BinaryHeap::new(),
            is_queued: IndexVec::from_elem(false, graph.segments.len()),
        }
    }

    /// The rows of `closed`, the full closure, that change without `edge`; a cycle if the writer
    /// comes before the read without it.
    pub(super) fn patch(
        &mut self,
        closed: ClosedGraph<'_>,
        edge: Edge,
        work: &mut Work,
    ) -> Outcome<&Patch> {
        self.patch.clear();
        for Reverse((_, segment)) in self.queue.drain() {
            self.is_queued[segment] = false;
        }
        self.dependent.find(closed, edge, work)?;
        if !self.dependent.has(closed, edge) {
            return Err(Incomplete::Cycle);
        }
        for at in 0..self.dependent.tails.len() {
            self.retract(closed, at, work)?;
        }
        self.rederive(closed, edge, work)?;
        Ok(&self.patch)
    }

    /// Sets to zero all entries that the dependent edge at `at` may have raised.
    fn retract(&mut self, closed: ClosedGraph<'_>, at: usize, work: &mut Work) -> Outcome {
        let (graph, count) = (closed.graph, closed.graph.threads_count);
        let (before, after) = self.dependent.cuts(at, count);
        for thread in graph.threads() {
            let first = after[thread.index()];
            if first == graph.events_count(thread) {
                continue;
            }
            work.spend(graph.row_cost())?;
            let first = graph.segment(Point { thread, position: first });
            let row = closed.row(first);
            let last = graph.previous_segment(first).map(|last| closed.row(last));
            let mut is_any = false;
            for other in 0..count {
                let is_known = last.map_or(0, |last| last[other]) == row[other];
                let is_retracted =
                    other != thread.index() && row[other] == before[other] && !is_known;
                self.is_raised[other] = is_retracted;
                is_any |= is_retracted;
            }
            let mut next = Some(first).filter(|_| is_any);
            while let Some(segment) = next {
                work.spend(graph.row_cost())?;
                let row = closed.row(segment);
                let is_retracted =
                    |other: &usize| self.is_raised[*other] && row[*other] == before[*other];
                if !(0..count).any(|other| is_retracted(&other)) {
                    break;
                }
                self.patch.is_touched[thread] = true;
                let patched = self.patch.row_or(segment, row);
                (0..count).filter(is_retracted).for_each(|other| patched[other] = 0);
                next = graph.next_segment(segment);
            }
        }
        Ok(())
    }

    /// Raises rows again, as far as they are without `edge`.
    fn rederive(&mut self, closed: ClosedGraph<'_>, edge: Edge, work: &mut Work) -> Outcome {
        let graph = closed.graph;
        for at in 0..self.patch.segments.len() {
            self.enqueue(graph, self.patch.segments[at]);
        }
        while let Some(Reverse((_, segment))) = self.queue.pop() {
            self.is_queued[segment] = false;
            if self.pull(closed, segment, edge, work)? {
                self.push(closed, segment, work)?;
            }
        }
        Ok(())
    }

    /// Queues `segment`, if its row was lowered.
    fn enqueue(&mut self, graph: &EventGraph<'_>, segment: SegmentId) {
        if self.patch.places[segment] > 0 && !std::mem::replace(&mut self.is_queued[segment], true)
        {
            self.queue.push(Reverse((graph.segments[segment].event, segment)));
        }
    }

    /// Raises the row of `segment` by all that comes right before it; whether that changed it.
    fn pull(
        &mut self,
        closed: ClosedGraph<'_>,
        segment: SegmentId,
        (writer, read): Edge,
        work: &mut Work,
    ) -> Outcome<bool> {
        let (graph, edges) = (closed.graph, &closed.graph.edges);
        let own = ClosedGraph { patch: Some(&self.patch), ..closed };
        let start = graph.segments[segment].start;
        let scratch = &mut self.scratch;
        // From zero, not from what is left of the row: that may include an event without what comes
        // before it.
        scratch.fill(0);
        let mut join = |tail: Point| {
            if has(scratch, tail) {
                return work.spend(1);
            }
            raise(scratch, own.row(graph.segment(tail)));
            let known = &mut scratch[tail.thread.index()];
            *known = (tail.position + 1).max(*known);
            work.spend(graph.row_cost())
        };
        if let Some(position) = start.position.checked_sub(1) {
            join(Point { thread: start.thread, position })?;
        }
        for &tail in edges.into.row(segment) {
            if (tail, start) != (writer, read) {
                join(tail)?;
            }
        }
        for &hub in edges.hubs_into.row(segment) {
            edges.tails.row(hub).iter().try_for_each(|&tail| join(tail))?;
        }
        let acquired = graph.acquired_at(start).filter(|scope| scope.release != NEVER);
        if let Some(scope) = acquired {
            let seen = own.row(graph.segment(scope.end()));
            for queue in graph.rivals(scope) {
                let last = graph.last_before(queue, seen[queue.thread.index()]);
                if let Some(last) = last.filter(|last| last.release != NEVER) {
                    join(last.end())?;
                }
            }
        }
        Ok(raise_changed(self.patch.row_mut(segment), &self.scratch))
    }

    /// Queues all direct successors of `segment`, and all that come after others because of it.
    fn push(&mut self, closed: ClosedGraph<'_>, segment: SegmentId, work: &mut Work) -> Outcome {
        let (graph, edges) = (closed.graph, &closed.graph.edges);
        if let Some(next) = graph.next_segment(segment) {
            self.enqueue(graph, next);
        }
        for &(_, head) in edges.from.row(segment) {
            self.enqueue(graph, head);
        }
        for &(_, hub) in edges.hubs_from.row(segment) {
            work.spend(edges.heads.row(hub).len())?;
            edges.heads.row(hub).iter().for_each(|&head| self.enqueue(graph, head));
        }
        for scope in graph.releases.row(segment).iter().map(|&scope| &graph.scopes[scope]) {
            self.enqueue(graph, graph.segment(scope.start()));
            for queue in graph.rivals(scope) {
                work.spend(1)?;
                if !self.patch.is_touched[queue.thread] {
                    continue;
                }
                let own = ClosedGraph { patch: Some(&self.patch), ..closed };
                let from = own.first_after(scope.start(), queue.thread);
                if let Some(late) = graph.first_ending_from(queue, from) {
                    self.enqueue(graph, graph.segment(late.start()));
                }
            }
        }
        Ok(())
    }
}

/// The edges that may depend on a reads-from edge, by their tails.
#[derive(Debug, Default)]
struct DependentEdges {
    tails: Vec<Point>,
    places: FxHashMap<(ThreadId, u32), usize>,
    /// For each tail all that comes before it, and that itself.
    before: Vec<u32>,
    /// For each tail all that comes after any of its heads, and these.
    after: Vec<u32>,
    /// The tails that got another head.
    changed: VecDeque<usize>,
    is_changed: Vec<bool>,
    /// Scopes of which the one comes first because of an edge.
    forced: Vec<(Scope, Scope)>,
    scratch: Vec<u32>,
}

impl DependentEdges {
    /// Finds all edges that may depend on `edge`, the reads-from edge of a writer and a read.
    fn find(&mut self, closed: ClosedGraph<'_>, edge: Edge, work: &mut Work) -> Outcome {
        self.clear();
        self.add(closed, edge, work)?;
        while let Some(at) = self.changed.pop_front() {
            self.is_changed[at] = false;
            self.force(closed.graph, at, work)?;
            while let Some((early, late)) = self.forced.pop() {
                let (tail, head) = (early.end(), late.start());
                work.spend(1 + self.tails.len() / 8)?;
                if !self.is_covered(closed.graph, tail, head)
                    && !is_independent(closed.graph, &early, &late, edge.0)
                {
                    self.add(closed, (tail, head), work)?;
                }
            }
        }
        Ok(())
    }

    /// What comes before the tail at `at`, and after any of its heads.
    fn cuts(&self, at: usize, count: usize) -> (&[u32], &[u32]) {
        (&self.before[at * count..][..count], &self.after[at * count..][..count])
    }

    /// Whether the writer may come before the read only because of a dependent edge.
    fn has(&self, closed: ClosedGraph<'_>, (writer, read): Edge) -> bool {
        let (graph, count) = (closed.graph, closed.graph.threads_count);
        let own = writer.thread.index();
        let known = closed.row(graph.segment(read))[own];
        (0..self.tails.len()).map(|at| self.cuts(at, count)).any(|(before, after)| {
            let first = Point { position: after[read.thread.index()], ..read };
            before[own] == known && first.position <= read.position && {
                let last = graph.previous_segment(graph.segment(first));
                last.is_none_or(|last| closed.row(last)[own] < known)
            }
        })
    }

    fn clear(&mut self) {
        self.tails.clear();
        self.places.clear();
        self.before.clear();
        self.after.clear();
        self.changed.clear();
        self.is_changed.clear();
        self.forced.clear();
    }

    /// Whether all that an edge orders is ordered by a dependent one.
    fn is_covered(&self, graph: &EventGraph<'_>, tail: Point, head: Point) -> bool {
        let count = graph.threads_count;
        let mut cuts = self.before.chunks_exact(count).zip(self.after.chunks_exact(count));
        cuts.any(|(before, after)| has(before, tail) && !has(after, head))
    }

    fn add(&mut self, closed: ClosedGraph<'_>, (tail, head): Edge, work: &mut Work) -> Outcome {
        let count = closed.graph.threads_count;
        work.spend(2 * closed.graph.row_cost())?;
        let next = self.tails.len();
        let at = *self.places.entry((tail.thread, tail.position)).or_insert(next);
        let cut = at * count..(at + 1) * count;
        if at == next {
            self.tails.push(tail);
            self.is_changed.push(false);
            self.before.resize(cut.end, 0);
            self.after.resize(cut.end, NEVER);
            closed.before(tail, &mut self.before[cut.clone()]);
        }
        self.scratch.resize(count, 0);
        closed.after(head, &mut self.scratch);
        lower(&mut self.after[cut], &self.scratch);
        if !std::mem::replace(&mut self.is_changed[at], true) {
            self.changed.push_back(at);
        }
        Ok(())
    }

    /// Finds the scopes that the edges of one tail force apart.
    fn force(&mut self, graph: &EventGraph<'_>, at: usize, work: &mut Work) -> Outcome {
        let Self { before, after, forced, .. } = self;
        let cut = at * graph.threads_count..(at + 1) * graph.threads_count;
        work.spend(graph.threads_count)?;
        each_forced(graph, (&before[cut.clone()], &after[cut]), work, |early, late| {
            if early.release != NEVER && late.release != NEVER {
                forced.push((*early, *late));
            }
            Ok(())
        })
    }
}

/// Whether `early` comes first by edges between threads alone, without the removed one: the last
/// event of its thread that is known at the end of `late` is not known by way of the writer.
fn is_independent(graph: &EventGraph<'_>, early: &Scope, late: &Scope, writer: Point) -> bool {
    let known = graph.needed(late.end(), early.thread);
    known > early.acquire && known > graph.needed(writer, early.thread)
}

#[cfg(test)]
mod tests {
    use reweave_testkit::{Shape, draw, generate, soak};
    use reweave_trace::Trace;

    use super::*;

    /// Compares what comes before and after with `rows`, for all events.
    fn check_rows(closed: ClosedGraph<'_>, rows: &[u32]) {
        let (graph, trace) = (closed.graph, closed.graph.trace);
        let defined = ClosedGraph { rows, patch: None, ..closed };
        for segment in graph.segments.ids() {
            assert_eq!(closed.row(segment), defined.row(segment), "{segment:?}\n{}", draw(trace));
        }
        let mut after = vec![0; graph.threads_count];
        for point in trace.events().map(|(id, _)| graph.point(id)) {
            closed.after(point, &mut after);
            for thread in graph.threads() {
                let mut positions = 0..graph.events_count(thread);
                let is_after = |position: &u32| {
                    defined.is_before(point, Point { thread, position: *position })
                };
                let first = positions.find(is_after).unwrap_or(graph.events_count(thread));
                assert_eq!(after[thread.index()], first, "{point:?} {thread:?}\n{}", draw(trace));
            }
        }
    }

    /// Removes each reads-from edge of `trace`; how many there are, and how many change something.
    fn check(trace: &Trace) -> [usize; 2] {
        let graph = EventGraph::new(trace);
        let rows = closure(&graph, None).unwrap();
        let successors = Successors::new(&graph, &rows);
        let closed =
            ClosedGraph { graph: &graph, rows: &rows, successors: &successors, patch: None };
        check_rows(closed, &rows);
        let mut reduced = ReducedClosure::new(&graph);
        let mut counts = [0, 0];
        for (writer, read) in trace.events().filter_map(|(id, _)| graph.breakable(id)) {
            let defined = closure(&graph, Some((writer, graph.segment(read)))).unwrap();
            counts[0] += 1;
            match reduced.patch(closed, (writer, read), &mut Work(u64::MAX)) {
                Ok(patch) => {
                    counts[1] += 1;
                    check_rows(ClosedGraph { patch: Some(patch), ..closed }, &defined);
                }
                Err(_) => assert!(ClosedGraph { rows: &defined, ..closed }.is_before(writer, read)),
            }
        }
        counts
    }

    #[test]
    fn what_holds_without_a_reads_from_edge_follows_from_all_others() {
        let mut total = [0, 0];
        for (_, shape) in Shape::ALL {
            for seed in 0..u64::from(soak::cases(20)) {
                let counts = check(&generate::random(shape, seed));
                total = [total[0] + counts[0], total[1] + counts[1]];
            }
        }
        assert!(total[1] > 1_000 && total[0] > total[1], "{total:?}");
    }
}
