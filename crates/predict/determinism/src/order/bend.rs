//! A closed graph bent by a few more edges, without touching its rows.
//!
//! Each edge that was added knows its cut *before*, all that comes before its tail, and its cut
//! *after*, all that comes after its head, by way of other added edges too. One event comes before
//! another if it does so in the graph below, or if some added edge has the one before it and the
//! other after it. An edge closes a cycle if its head is before it.
//!
//! A new edge can force scopes apart only where one of them is cut through: if a scope is wholly
//! before the edge and another wholly after it, they are apart already. So only the scopes that are
//! open at either cut are looked at, each with the nearest rival in every queue.
//!
//! Costs a cut for each edge there is, and a few searches for each open scope; nothing grows with
//! the trace but the searches, by its logarithm.

use reweave_base::Id;
use reweave_trace::ThreadId;

use super::after::Successors;
use super::ground::{Ground, NEVER, Point, Scope, SegmentId};
use super::without::Patch;

/// Why a closure is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// An event must come before itself.
    Cycle,
    /// The budget ended.
    Spent,
}

/// How many entries of cuts may still be looked at: a search counts as one, a row that is gone through
/// from end to end as [`Ground::row_cost`].
#[derive(Debug)]
pub(super) struct Work<'a>(pub(super) &'a mut u64);

impl Work<'_> {
    /// Whether nothing is left.
    pub(super) const fn is_over(&self) -> bool {
        *self.0 == 0
    }

    #[inline]
    pub(super) fn spend(&mut self, entries: usize) -> Result<(), Halt> {
        match self.0.checked_sub(entries as u64).filter(|&left| left > 0) {
            Some(left) => {
                *self.0 = left;
                Ok(())
            }
            None => {
                *self.0 = 0;
                Err(Halt::Spent)
            }
        }
    }
}

/// A closed graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base<'a> {
    pub(super) ground: &'a Ground<'a>,
    /// What comes before each segment, row by row.
    pub(super) rows: &'a [u32],
    pub(super) successors: &'a Successors,
    /// Where the graph has less than the rows say.
    pub(super) patch: Option<&'a Patch>,
}

impl<'a> Base<'a> {
    #[inline]
    pub(super) fn row(&self, segment: SegmentId) -> &'a [u32] {
        let count = self.ground.threads_count;
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
        self.row(self.ground.segment(late))[early.thread.index()] > early.position
    }

    /// Makes `cut` all that comes before `point`, and that itself.
    #[inline]
    pub(super) fn before(&self, point: Point, cut: &mut [u32]) {
        cut.copy_from_slice(self.row(self.ground.segment(point)));
        cut[point.thread.index()] = point.position + 1;
    }

    /// The first event of `thread`, which is another, that comes after `point`.
    pub(super) fn first_after(&self, point: Point, thread: ThreadId) -> u32 {
        let row = self.successors.row(self.ground, point);
        let first = row.map_or_else(|| self.ground.events_count(thread), |row| row[thread.index()]);
        if self.patch.is_some() { self.first_after_from(point, thread, first) } else { first }
    }

    /// Makes `cut` all that comes after `point`, and that itself: for each thread its first event.
    #[inline]
    pub(super) fn after(&self, point: Point, cut: &mut [u32]) {
        match self.successors.row(self.ground, point) {
            Some(row) => cut.copy_from_slice(row),
            None => self.ground.whole(cut),
        }
        cut[point.thread.index()] = point.position;
        if self.patch.is_some() {
            for thread in self.ground.threads().filter(|&thread| thread != point.thread) {
                let first = &mut cut[thread.index()];
                *first = self.first_after_from(point, thread, *first);
            }
        }
    }

    /// The first event of `thread` that comes after `point`, which none before `first` does: most
    /// often `first`, or one a little further.
    fn first_after_from(&self, point: Point, thread: ThreadId, first: u32) -> u32 {
        let ground = self.ground;
        if first == ground.events_count(thread) {
            return first;
        }
        let end = ground.segments_of(thread).end;
        let is_after =
            |at: usize| self.row(SegmentId::from_index(at))[point.thread.index()] > point.position;
        let mut from = ground.segment(Point { thread, position: first }).index();
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
        match ground.segments.as_slice().get(from).filter(|_| from < end) {
            Some(segment) => segment.start.position,
            None => ground.events_count(thread),
        }
    }
}

/// Edges that were added to a graph, and those that follow.
#[derive(Debug, Default)]
pub(super) struct Bend {
    edges: Vec<(Point, Point)>,
    /// For each edge its cuts, one after the other.
    before: Vec<u32>,
    after: Vec<u32>,
    pending: Vec<(Point, Point)>,
}

impl Clone for Bend {
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

impl Bend {
    /// Takes all edges away.
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

    /// The edges that were added, and that followed.
    pub(super) fn edges(&self) -> &[(Point, Point)] {
        &self.edges
    }

    /// Adds the edge from `tail` to `head` and all that follows.
    pub(super) fn add(
        &mut self,
        base: Base<'_>,
        tail: Point,
        head: Point,
        work: &mut Work<'_>,
    ) -> Result<(), Halt> {
        self.pending.clear();
        self.pending.push((tail, head));
        while let Some((tail, head)) = self.pending.pop() {
            if !self.is_before(base, tail, head) {
                self.insert(base, tail, head, work)?;
                self.force(base.ground, work)?;
            }
        }
        Ok(())
    }

    /// Whether `early` comes before `late`, or is it.
    #[inline]
    pub(super) fn is_before(&self, base: Base<'_>, early: Point, late: Point) -> bool {
        base.is_before(early, late) || {
            let count = base.ground.threads_count;
            let mut cuts = self.before.chunks_exact(count).zip(self.after.chunks_exact(count));
            cuts.any(|(before, after)| has(before, early) && !has(after, late))
        }
    }

    /// Makes `cut` all that comes before `point`, and that itself.
    #[inline]
    pub(super) fn before(&self, base: Base<'_>, point: Point, cut: &mut [u32]) {
        base.before(point, cut);
        for ((_, head), before) in self.edges.iter().zip(self.before.chunks_exact(cut.len())) {
            if has(cut, *head) {
                raise(cut, before);
            }
        }
    }

    /// Makes `cut` all that comes after `point`, and that itself: for each thread its first event.
    #[inline]
    pub(super) fn after(&self, base: Base<'_>, point: Point, cut: &mut [u32]) {
        base.after(point, cut);
        for ((tail, _), after) in self.edges.iter().zip(self.after.chunks_exact(cut.len())) {
            if !has(cut, *tail) {
                lower(cut, after);
            }
        }
    }

    /// Adds an edge with its cuts, and joins them to those of the edges before and after it.
    fn insert(
        &mut self,
        base: Base<'_>,
        tail: Point,
        head: Point,
        work: &mut Work<'_>,
    ) -> Result<(), Halt> {
        let count = base.ground.threads_count;
        let edges_count = self.edges.len();
        work.spend(count + base.ground.row_cost() * edges_count)?;
        let room = self.before.len();
        self.before.resize(room + count, 0);
        self.after.resize(room + count, 0);
        let (befores, before) = self.before.split_at_mut(room);
        let (afters, after) = self.after.split_at_mut(room);
        base.before(tail, before);
        base.after(head, after);
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
        if has(before, head) {
            return Err(Halt::Cycle);
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

    /// Notes the edges between scopes that the newest edge forces.
    fn force(&mut self, ground: &Ground<'_>, work: &mut Work<'_>) -> Result<(), Halt> {
        let room = self.before.len() - ground.threads_count;
        let (before, after) = (&self.before[room..], &self.after[room..]);
        for thread in ground.threads() {
            for early in ground.open_at(thread, before[thread.index()]) {
                for queue in ground.rivals(early).filter(|_| early.release != NEVER) {
                    work.spend(1)?;
                    let from = after[queue.thread.index()];
                    if let Some(late) = ground.first_ending_from(queue, from) {
                        self.pending.push((early.end(), late.start()));
                    }
                }
            }
            for late in ground.open_at(thread, after[thread.index()]) {
                for queue in ground.rivals(late).filter(|_| late.release != NEVER) {
                    work.spend(1)?;
                    let seen = before[queue.thread.index()];
                    match ground.last_before(queue, seen) {
                        Some(Scope { release: NEVER, .. }) => return Err(Halt::Cycle),
                        Some(early) => self.pending.push((early.end(), late.start())),
                        None => {}
                    }
                }
            }
        }
        Ok(())
    }
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
