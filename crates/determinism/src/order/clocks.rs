//! What must come before what in a graph to which edges are added, and taken away again.
//!
//! For each segment a row: for each other thread how many of its events come before. Where the
//! acquire of a scope comes before the release of one that it excludes, its release comes before
//! that one's acquire: a new edge, from which more may follow. Rows only rise, segment by segment,
//! the earliest observed first, and a log lets them fall back.
//!
//! All graphs here are parts of the one that was observed, so none has a cycle. Costs a row for
//! each change.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use reweave_base::{Id, IndexVec};
use reweave_trace::{EventId, ThreadId};

use super::ground::{Ground, NEVER, Point, Scope, SegmentId};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Clocks {
    rows: Vec<u32>,
    /// Edges besides those of the ground, each with the one before it from the same segment.
    added: Vec<Added>,
    newest: IndexVec<SegmentId, Option<u32>>,
    queue: BinaryHeap<Reverse<(EventId, SegmentId)>>,
    is_queued: IndexVec<SegmentId, bool>,
    /// Entries of rows with what they were before.
    log: Vec<(u32, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Added {
    tail: Point,
    head: SegmentId,
    before: Option<u32>,
}

/// How far a log and the edges had grown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    log: usize,
    added: usize,
}

impl Clocks {
    /// The graph of the edges that hold always.
    pub(super) fn of(ground: &Ground<'_>) -> Self {
        let count = ground.segments.len();
        let mut clocks = Self {
            rows: vec![0; count * ground.threads_count],
            added: Vec::new(),
            newest: IndexVec::from_elem(None, count),
            queue: BinaryHeap::new(),
            is_queued: IndexVec::from_elem(false, count),
            log: Vec::new(),
        };
        for segment in ground.segments.ids() {
            clocks.enqueue(ground, segment);
        }
        clocks.run(ground);
        clocks.log.clear();
        clocks
    }

    /// The rows, those of a segment one after the other.
    pub(super) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The rows alone.
    pub(super) fn into_rows(self) -> Vec<u32> {
        self.rows
    }

    /// The point that [`Clocks::undo`] goes back to.
    pub(super) const fn mark(&self) -> Mark {
        Mark { log: self.log.len(), added: self.added.len() }
    }

    /// Adds an edge from each first to its second point, which starts a segment, and what follows.
    pub(super) fn add_all(&mut self, ground: &Ground<'_>, edges: &[(Point, Point)]) {
        for &(tail, head) in edges {
            self.add(ground, tail, ground.segment(head));
        }
        self.run(ground);
    }

    /// Takes away all that was added since `mark`.
    pub(super) fn undo(&mut self, ground: &Ground<'_>, mark: Mark) {
        for (slot, old) in self.log.drain(mark.log..).rev() {
            self.rows[slot as usize] = old;
        }
        for edge in self.added.drain(mark.added..).rev() {
            self.newest[ground.segment(edge.tail)] = edge.before;
        }
    }

    fn enqueue(&mut self, ground: &Ground<'_>, segment: SegmentId) {
        if !std::mem::replace(&mut self.is_queued[segment], true) {
            self.queue.push(Reverse((ground.segments[segment].event, segment)));
        }
    }

    fn seen(&self, ground: &Ground<'_>, segment: SegmentId, thread: ThreadId) -> u32 {
        self.rows[segment.index() * ground.threads_count + thread.index()]
    }

    fn add(&mut self, ground: &Ground<'_>, tail: Point, head: SegmentId) {
        if self.seen(ground, head, tail.thread) > tail.position {
            return;
        }
        let from = ground.segment(tail);
        let at = self.added.len() as u32;
        self.added.push(Added { tail, head, before: self.newest[from].replace(at) });
        self.raise(ground, tail, head);
    }

    fn run(&mut self, ground: &Ground<'_>) {
        while let Some(Reverse((_, segment))) = self.queue.pop() {
            self.is_queued[segment] = false;
            self.pass_on(ground, segment);
            for &release in ground.releases.row(segment) {
                self.exclude(ground, segment, &ground.scopes[release]);
            }
        }
    }

    /// Tells all that come right after events of `segment` what comes before those.
    fn pass_on(&mut self, ground: &Ground<'_>, segment: SegmentId) {
        let thread = ground.segments[segment].start.thread;
        if let Some(next) = ground.next_segment(segment) {
            let last = ground.segments[next].start.position - 1;
            self.raise(ground, Point { thread, position: last }, next);
        }
        for &(position, head) in ground.edges.row(segment) {
            self.raise(ground, Point { thread, position }, head);
        }
        let mut link = self.newest[segment];
        while let Some(edge) = link.map(|at| self.added[at as usize]) {
            self.raise(ground, edge.tail, edge.head);
            link = edge.before;
        }
    }

    /// Adds to the row of `head` all that comes before `tail`, and that itself.
    fn raise(&mut self, ground: &Ground<'_>, tail: Point, head: SegmentId) {
        let count = ground.threads_count;
        let from = ground.segment(tail).index() * count;
        let to = head.index() * count;
        let own = ground.segments[head].start.thread.index();
        let mut has_changed = false;
        for offset in 0..count {
            let is_tail = offset == tail.thread.index();
            let theirs = if is_tail { tail.position + 1 } else { self.rows[from + offset] };
            let known = self.rows[to + offset];
            if offset != own && theirs > known {
                self.log.push(((to + offset) as u32, known));
                self.rows[to + offset] = theirs;
                has_changed = true;
            }
        }
        if has_changed {
            self.enqueue(ground, head);
        }
    }

    /// `scope`, which ends in `segment`, comes after all whose start comes before its end.
    fn exclude(&mut self, ground: &Ground<'_>, segment: SegmentId, scope: &Scope) {
        for queue in ground.rivals(scope) {
            let seen = self.seen(ground, segment, queue.thread);
            let last = ground.last_before(queue, seen).filter(|last| last.release != NEVER);
            if let Some(last) = last {
                self.add(ground, last.end(), ground.segment(scope.start()));
            }
        }
    }
}
