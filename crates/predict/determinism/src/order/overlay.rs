//! A closed graph with a few more edges on top, without touching its rows.
//!
//! Each added edge has a cut *before*, all that comes before its tail, and a cut *after*, all that
//! comes after its head, by way of other added edges too. One event comes before another if it does
//! so in the closed graph, or if some added edge has the one before it and the other after it. An
//! edge closes a cycle if its head is before it.
//!
//! A new edge can force an order of scopes only where it cuts through one of them: if a scope is
//! entirely before the edge and another entirely after it, they are ordered already. So only the
//! scopes that are open at either cut are considered, each with the nearest rival in every queue.
//!
//! Costs a cut for each added edge, and a few searches for each open scope; only the searches grow
//! with the trace, by its logarithm.

use reweave_base::Id;
use reweave_trace::ThreadId;

use super::closure::{Patch, Successors};
use super::graph::{EventGraph, NEVER, Point, Scope, SegmentId};

/// Why a closure is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incomplete {
    /// An event must come before itself.
    Cycle,
    /// The budget is exhausted.
    Budget,
}

/// What was asked for, or why there is none.
pub(super) type Outcome<T = ()> = Result<T, Incomplete>;

/// How many entries of cuts may still be read: a search counts as one, the scan of a row as
/// [`EventGraph::row_cost`].
#[derive(Debug)]
pub(super) struct Work(pub(super) u64);

impl Work {
    #[inline]
    pub(super) fn spend(&mut self, entries: usize) -> Outcome {
        self.0 = self.0.saturating_sub(entries as u64);
        if self.0 > 0 { Ok(()) } else { Err(Incomplete::Budget) }
    }
}

/// The tail of an edge and its head.
pub(super) type Edge = (Point, Point);

/// A closed graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClosedGraph<'a> {
    pub(super) graph: &'a EventGraph<'a>,
    /// What comes before each segment, row by row.
    pub(super) rows: &'a [u32],
    pub(super) successors: &'a Successors,
    /// The rows that differ, if one reads-from edge is removed.
    pub(super) patch: Option<&'a Patch>,
}

impl<'a> ClosedGraph<'a> {
    #[inline]
    pub(super) fn row(&self, segment: SegmentId) -> &'a [u32] {
        let count = self.graph.threads_count;
        match self.patch.and_then(|patch| patch.row(segment)) {
            Some(row) => row,
            None => &self.rows[segment.index() * count..][..count],
        }
    }

    /// Whether `early` comes before `late`, or is it.
    #[inline]
    pub(super) fn is_before(&self, early: Point, late: Point) -> bool {
        if early.thread == late.thread {
            return early.position <= late.position;
        }
        self.row(self.graph.segment(late))[early.thread.index()] > early.position
    }

    /// Sets `cut` to all that comes before `point`, and that itself.
    #[inline]
    pub(super) fn before(&self, point: Point, cut: &mut [u32]) {
        cut.copy_from_slice(self.row(self.graph.segment(point)));
        cut[point.thread.index()] = point.position + 1;
    }

    /// The first event of `thread`, which is another, that comes after `point`.
    pub(super) fn first_after(&self, point: Point, thread: ThreadId) -> u32 {
        let row = self.successors.row(self.graph, point);
        let first = row.map_or_else(|| self.graph.events_count(thread), |row| row[thread.index()]);
        if self.patch.is_some() { self.first_after_from(point, thread, first) } else { first }
    }

    /// Sets `cut` to all that comes after `point`, and that itself: for each thread its first
    /// event.
    #[inline]
    pub(super) fn after(&self, point: Point, cut: &mut [u32]) {
        match self.successors.row(self.graph, point) {
            Some(row) => cut.copy_from_slice(row),
            None => self.graph.whole(cut),
        }
        cut[point.thread.index()] = point.position;
        if self.patch.is_some() {
            for thread in self.graph.threads().filter(|&thread| thread != point.thread) {
                let first = &mut cut[thread.index()];
                *first = self.first_after_from(point, thread, *first);
            }
        }
    }

    /// The first event of `thread` that comes after `point`, which none before `first` does. Mostly
    /// it is `first` or soon after, so it is found by exponential search.
    fn first_after_from(&self, point: Point, thread: ThreadId, first: u32) -> u32 {
        let graph = self.graph;
        if first == graph.events_count(thread) {
            return first;
        }
        let end = graph.segments_of(thread).end;
        let is_after =
            |at: usize| self.row(SegmentId::from_index(at))[point.thread.index()] > point.position;
        let mut from = graph.segment(Point { thread, position: first }).index();
        if is_after(from) {
            return first;
        }
        let mut step = 1;
        while from + step < end && !is_after(from + step) {
            from += step;
            step *= 2;
        }
        let (mut from, mut to) = (from + 1, end.min(from + step));
        while from < to {
            let middle = from.midpoint(to);
            if is_after(middle) {
                to = middle;
            } else {
                from = middle + 1;
            }
        }
        match graph.segments.as_slice().get(from).filter(|_| from < end) {
            Some(segment) => segment.start.position,
            None => graph.events_count(thread),
        }
    }
}

/// A witness order graph: a closed graph and the edges of a witness on top.
#[derive(Clone, Copy, Debug)]
pub(super) struct WitnessGraph<'a> {
    pub(super) closed: ClosedGraph<'a>,
    pub(super) overlay: &'a Overlay,
}

impl WitnessGraph<'_> {
    /// Sets `cut` to all that comes before `point`, and that itself.
    #[inline]
    pub(super) fn before(&self, point: Point, cut: &mut [u32]) {
        self.closed.before(point, cut);
        let Overlay { edges, before, .. } = self.overlay;
        for ((_, head), before) in edges.iter().zip(before.chunks_exact(cut.len())) {
            if has(cut, *head) {
                raise(cut, before);
            }
        }
    }

    /// Sets `cut` to all that comes after `point`, and that itself: for each thread its first
    /// event.
    #[inline]
    pub(super) fn after(&self, point: Point, cut: &mut [u32]) {
        self.closed.after(point, cut);
        let Overlay { edges, after, .. } = self.overlay;
        for ((tail, _), after) in edges.iter().zip(after.chunks_exact(cut.len())) {
            if !has(cut, *tail) {
                lower(cut, after);
            }
        }
    }
}

/// Edges that were added to a graph, and those that follow.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    pub(super) edges: Vec<Edge>,
    /// For each edge its cuts, one after the other.
    before: Vec<u32>,
    after: Vec<u32>,
    pending: Vec<Edge>,
}

impl Clone for Overlay {
    fn clone(&self) -> Self {
        let mut copy = Self::default();
        copy.clone_from(self);
        copy
    }

    fn clone_from(&mut self, other: &Self) {
        self.edges.clone_from(&other.edges);
        self.before.clone_from(&other.before);
        self.after.clone_from(&other.after);
        self.pending.clear();
    }
}

impl Overlay {
    /// Removes all edges.
    pub(super) fn clear(&mut self) {
        self.edges.clear();
        self.before.clear();
        self.after.clear();
        self.pending.clear();
    }

    /// How many entries its cuts have.
    pub(super) const fn size(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// Adds `edge` and all that follows.
    pub(super) fn add(&mut self, closed: ClosedGraph<'_>, edge: Edge, work: &mut Work) -> Outcome {
        self.pending.clear();
        self.pending.push(edge);
        while let Some(edge) = self.pending.pop() {
            if !self.has_edge(closed, edge) {
                self.insert(closed, edge, work)?;
                self.force(closed.graph, work)?;
            }
        }
        Ok(())
    }

    /// Whether `tail` comes before `head`, or is it.
    #[inline]
    fn has_edge(&self, closed: ClosedGraph<'_>, (tail, head): Edge) -> bool {
        let count = closed.graph.threads_count;
        let mut cuts = self.before.chunks_exact(count).zip(self.after.chunks_exact(count));
        closed.is_before(tail, head)
            || cuts.any(|(before, after)| has(before, tail) && !has(after, head))
    }

    /// Adds an edge with its cuts, and joins them to those of the edges before and after it.
    fn insert(&mut self, closed: ClosedGraph<'_>, (tail, head): Edge, work: &mut Work) -> Outcome {
        let count = closed.graph.threads_count;
        let edges_count = self.edges.len();
        work.spend(count + closed.graph.row_cost() * edges_count)?;
        let end = self.before.len();
        self.before.resize(end + count, 0);
        self.after.resize(end + count, 0);
        let (befores, before) = self.before.split_at_mut(end);
        let (afters, after) = self.after.split_at_mut(end);
        closed.before(tail, before);
        closed.after(head, after);
        for (at, &(their_tail, their_head)) in self.edges.iter().enumerate() {
            let cut = at * count..(at + 1) * count;
            if has(before, their_head) {
                raise(before, &befores[cut.clone()]);
            }
            if !has(after, their_tail) {
                lower(after, &afters[cut]);
            }
        }
        self.edges.push((tail, head));
        // What comes before the tail includes the head: a cycle.
        if has(before, head) {
            return Err(Incomplete::Cycle);
        }
        for (at, &(their_tail, their_head)) in self.edges[..edges_count].iter().enumerate() {
            let cut = at * count..(at + 1) * count;
            if !has(after, their_tail) {
                raise(&mut befores[cut.clone()], before);
            }
            if has(before, their_head) {
                lower(&mut afters[cut], after);
            }
        }
        Ok(())
    }

    /// Queues the edges between scopes that the newest edge forces.
    fn force(&mut self, graph: &EventGraph<'_>, work: &mut Work) -> Outcome {
        let start = self.before.len() - graph.threads_count;
        let (before, after, pending) =
            (&self.before[start..], &self.after[start..], &mut self.pending);
        each_forced(graph, (before, after), work, |early, late| {
            // What never ends comes before nothing.
            if early.release == NEVER {
                return Err(Incomplete::Cycle);
            }
            pending.push((early.end(), late.start()));
            Ok(())
        })
    }
}

/// Hands `visit` the scopes of which the first comes before the second because of an edge: one of
/// them is open at a cut of the edge, all that comes before its tail or after its head, and the
/// other is the nearest rival beyond the other cut.
pub(super) fn each_forced(
    graph: &EventGraph<'_>,
    (before, after): (&[u32], &[u32]),
    work: &mut Work,
    mut visit: impl FnMut(&Scope, &Scope) -> Outcome,
) -> Outcome {
    let ends = |scope: &&Scope| scope.release != NEVER;
    for thread in graph.threads() {
        for early in graph.open_at(thread, before[thread.index()]).filter(ends) {
            for queue in graph.rivals(early) {
                work.spend(1)?;
                let late = graph.first_ending_from(queue, after[queue.thread.index()]);
                late.map_or(Ok(()), |late| visit(early, late))?;
            }
        }
        for late in graph.open_at(thread, after[thread.index()]).filter(ends) {
            for queue in graph.rivals(late) {
                work.spend(1)?;
                let early = graph.last_before(queue, before[queue.thread.index()]);
                early.map_or(Ok(()), |early| visit(early, late))?;
            }
        }
    }
    Ok(())
}

/// Whether `cut`, the first so many events of each thread, has `point`.
#[inline]
pub(super) fn has(cut: &[u32], point: Point) -> bool {
    point.position < cut[point.thread.index()]
}

/// Raises `cut` to hold all of `other`.
#[inline]
pub(super) fn raise(cut: &mut [u32], other: &[u32]) {
    for (own, &theirs) in cut.iter_mut().zip(other) {
        *own = theirs.max(*own);
    }
}

/// Lowers `cut` to where `other` starts, where that is lower.
#[inline]
pub(super) fn lower(cut: &mut [u32], other: &[u32]) {
    for (own, &theirs) in cut.iter_mut().zip(other) {
        *own = theirs.min(*own);
    }
}
