//! What must come before what in a trace: the closure of its edges, and of what follows for scopes.
//!
//! For each segment a row: for each thread how many of its events come before. Where the acquire of
//! a scope comes before the release of one that it excludes, its release comes before that one's
//! acquire: a new edge, from which more may follow. Rows only rise, segment by segment, the earliest
//! observed first.
//!
//! All edges follow the observed order, so there is no cycle. Costs a row for each change; where
//! rows keep changing, it gives up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use reweave_base::{Id, IndexVec};
use reweave_trace::EventId;

use super::edges::HubId;
use super::ground::{Ground, NEVER, Point, Scope, SegmentId};

/// How often each entry of all rows may be looked at, on average.
const LOOKS_MAX: u64 = 256;

/// The rows of all segments of `ground`, one after the other; none if that is too much work. The
/// edge `left_out` does not count.
pub(super) fn closure(
    ground: &Ground<'_>,
    left_out: Option<(Point, SegmentId)>,
) -> Option<Vec<u32>> {
    let mut clocks = Clocks::new(ground, left_out);
    let looks_max = LOOKS_MAX.saturating_mul(clocks.rows.len() as u64);
    while let Some(Reverse((_, segment))) = clocks.queue.pop() {
        clocks.is_queued[segment] = false;
        clocks.pass_on(segment);
        if clocks.looks > looks_max {
            return None;
        }
    }
    clocks.rows.truncate(ground.segments.len() * ground.threads_count);
    Some(clocks.rows)
}

/// Rows on their way. Hubs have rows too, behind those of segments.
struct Clocks<'a> {
    ground: &'a Ground<'a>,
    left_out: Option<(Point, SegmentId)>,
    rows: Vec<u32>,
    /// Edges between scopes, each with the one before it from the same segment.
    added: Vec<Added>,
    newest: IndexVec<SegmentId, Option<u32>>,
    queue: BinaryHeap<Reverse<(EventId, SegmentId)>>,
    is_queued: IndexVec<SegmentId, bool>,
    /// How many entries were looked at.
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
    fn new(ground: &'a Ground<'_>, left_out: Option<(Point, SegmentId)>) -> Self {
        let (segments_count, hubs_count) = (ground.segments.len(), ground.edges.tails.len());
        let count = segments_count + hubs_count;
        let mut clocks = Self {
            ground,
            left_out,
            rows: vec![0; count * ground.threads_count],
            added: Vec::new(),
            newest: IndexVec::from_elem(None, segments_count),
            queue: BinaryHeap::new(),
            is_queued: IndexVec::from_elem(false, count),
            looks: 0,
        };
        for (segment, own) in ground.segments.entries() {
            let entry = segment.index() * ground.threads_count + own.start.thread.index();
            clocks.rows[entry] = own.start.position;
            clocks.enqueue(segment);
        }
        clocks
    }

    fn hub(&self, segment: SegmentId) -> Option<HubId> {
        segment.index().checked_sub(self.ground.segments.len()).map(HubId::from_index)
    }

    fn enqueue(&mut self, segment: SegmentId) {
        if !std::mem::replace(&mut self.is_queued[segment], true) {
            let ground = self.ground;
            let event = match self.hub(segment) {
                None => ground.segments[segment].event,
                Some(hub) => {
                    let arrivals = ground.edges.tails.row(hub).iter();
                    let last = arrivals.map(|&tail| ground.event(tail)).max();
                    last.expect("somebody arrived in a round that is waited for")
                }
            };
            self.queue.push(Reverse((event, segment)));
        }
    }

    /// Tells all that come right after events of `segment` what comes before those.
    fn pass_on(&mut self, segment: SegmentId) {
        let (ground, edges) = (self.ground, &self.ground.edges);
        if let Some(hub) = self.hub(segment) {
            edges.heads.row(hub).iter().for_each(|&head| self.raise(segment, None, head));
            return;
        }
        let thread = ground.segments[segment].start.thread;
        if let Some(next) = ground.next_segment(segment) {
            self.raise(segment, None, next);
        }
        for &(position, head) in edges.from.row(segment) {
            let tail = Point { thread, position };
            if self.left_out != Some((tail, head)) {
                self.raise(segment, Some(tail), head);
            }
        }
        for &(position, hub) in edges.hubs_from.row(segment) {
            let head = SegmentId::from_index(ground.segments.len() + hub.index());
            self.raise(segment, Some(Point { thread, position }), head);
        }
        let mut link = self.newest[segment];
        while let Some(edge) = link.map(|at| self.added[at as usize]) {
            self.raise(segment, Some(edge.tail), edge.head);
            link = edge.before;
        }
        for &release in ground.releases.row(segment) {
            self.exclude(segment, &ground.scopes[release]);
        }
    }

    /// Adds to the row of `head` that of `from`, in which `tail` is, and `tail`.
    fn raise(&mut self, from: SegmentId, tail: Option<Point>, head: SegmentId) {
        let count = self.ground.threads_count;
        let (from, to) = (from.index() * count, head.index() * count);
        self.looks += count as u64;
        let (theirs, own) = if from < to {
            let (early, late) = self.rows.split_at_mut(to);
            (&early[from..from + count], &mut late[..count])
        } else {
            let (early, late) = self.rows.split_at_mut(from);
            (&late[..count], &mut early[to..to + count])
        };
        let mut has_changed = false;
        for (slot, &number) in own.iter_mut().zip(theirs) {
            has_changed |= number > *slot;
            *slot = number.max(*slot);
        }
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
        let ground = self.ground;
        let count = ground.threads_count;
        let head = ground.segment(scope.start());
        for queue in ground.rivals(scope) {
            self.looks += 1;
            let seen = self.rows[segment.index() * count + queue.thread.index()];
            let last = ground.last_before(queue, seen).filter(|last| last.release != NEVER);
            let Some(tail) = last.map(Scope::end) else { continue };
            if self.rows[head.index() * count + tail.thread.index()] <= tail.position {
                let from = ground.segment(tail);
                let at = self.added.len() as u32;
                self.added.push(Added { tail, head, before: self.newest[from].replace(at) });
                self.raise(from, Some(tail), head);
            }
        }
    }
}
