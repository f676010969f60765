//! The edges that might rest on a couple; see `without` for what they are.
//!
//! Costs two cuts for each tail, and a few searches for each scope that is open at these, each time
//! that another head is found for it.

use std::collections::VecDeque;

use reweave_base::{FxHashMap, Id};
use reweave_trace::ThreadId;

use super::bend::{Base, Halt, Work, has, lower};
use super::ground::{Ground, NEVER, Point, Scope};

/// Suspect edges by their tails.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    pub(super) tails: Vec<Point>,
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
    room: Vec<u32>,
}

impl Suspects {
    /// Finds all edges that might rest on the couple of `writer` and `read` in `base`.
    pub(super) fn find(
        &mut self,
        base: Base<'_>,
        (writer, read): (Point, Point),
        work: &mut Work<'_>,
    ) -> Result<(), Halt> {
        self.clear();
        self.add(base, writer, read, work)?;
        while let Some(at) = self.changed.pop_front() {
            self.is_changed[at] = false;
            self.force(base.ground, at, work)?;
            while let Some((early, late)) = self.forced.pop() {
                let (tail, head) = (early.end(), late.start());
                work.spend(1 + self.tails.len() / 8)?;
                if !self.is_covered(base.ground, tail, head)
                    && !is_firm(base.ground, &early, &late, writer)
                {
                    self.add(base, tail, head, work)?;
                }
            }
        }
        Ok(())
    }

    /// What comes before the tail at `at`, and after any of its heads.
    pub(super) fn cuts(&self, at: usize, count: usize) -> (&[u32], &[u32]) {
        (&self.before[at * count..][..count], &self.after[at * count..][..count])
    }

    /// Whether that the writer comes before the read might rest on a suspect edge.
    pub(super) fn has(&self, base: Base<'_>, (writer, read): (Point, Point)) -> bool {
        let (ground, count) = (base.ground, base.ground.threads_count);
        let own = writer.thread.index();
        let known = base.row(ground.segment(read))[own];
        (0..self.tails.len()).map(|at| self.cuts(at, count)).any(|(before, after)| {
            let first = Point { position: after[read.thread.index()], ..read };
            before[own] == known && first.position <= read.position && {
                let last = ground.previous_segment(ground.segment(first));
                last.is_none_or(|last| base.row(last)[own] < known)
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

    /// Whether all that an edge orders is ordered by a suspect one.
    fn is_covered(&self, ground: &Ground<'_>, tail: Point, head: Point) -> bool {
        let count = ground.threads_count;
        let mut cuts = self.before.chunks_exact(count).zip(self.after.chunks_exact(count));
        cuts.any(|(before, after)| has(before, tail) && !has(after, head))
    }

    fn add(
        &mut self,
        base: Base<'_>,
        tail: Point,
        head: Point,
        work: &mut Work<'_>,
    ) -> Result<(), Halt> {
        let count = base.ground.threads_count;
        work.spend(2 * base.ground.row_cost())?;
        let next = self.tails.len();
        let at = *self.places.entry((tail.thread, tail.position)).or_insert(next);
        let cut = at * count..(at + 1) * count;
        if at == next {
            self.tails.push(tail);
            self.is_changed.push(false);
            self.before.resize(cut.end, 0);
            self.after.resize(cut.end, NEVER);
            base.before(tail, &mut self.before[cut.clone()]);
        }
        self.room.resize(count, 0);
        base.after(head, &mut self.room);
        lower(&mut self.after[cut], &self.room);
        if !std::mem::replace(&mut self.is_changed[at], true) {
            self.changed.push_back(at);
        }
        Ok(())
    }

    /// Finds the scopes that the edges of one tail force apart.
    fn force(&mut self, ground: &Ground<'_>, at: usize, work: &mut Work<'_>) -> Result<(), Halt> {
        let Self { before, after, forced, .. } = self;
        let cut = at * ground.threads_count..(at + 1) * ground.threads_count;
        let (before, after) = (&before[cut.clone()], &after[cut]);
        let ends = |scope: &&Scope| scope.release != NEVER;
        work.spend(before.len())?;
        for thread in ground.threads() {
            for early in ground.open_at(thread, before[thread.index()]).filter(ends) {
                for queue in ground.rivals(early) {
                    work.spend(1)?;
                    let late = ground.first_ending_from(queue, after[queue.thread.index()]);
                    forced.extend(late.filter(ends).map(|late| (*early, *late)));
                }
            }
            for late in ground.open_at(thread, after[thread.index()]).filter(ends) {
                for queue in ground.rivals(late) {
                    work.spend(1)?;
                    let early = ground.last_before(queue, before[queue.thread.index()]);
                    forced.extend(early.filter(ends).map(|early| (*early, *late)));
                }
            }
        }
        Ok(())
    }
}

/// Whether `early` comes first by edges between threads alone, that of the couple left out: the last
/// event of its thread that is heard of was not heard of by way of the writer.
fn is_firm(ground: &Ground<'_>, early: &Scope, late: &Scope, writer: Point) -> bool {
    let known = ground.needed(late.end(), early.thread);
    known > early.acquire && known > ground.needed(writer, early.thread)
}
