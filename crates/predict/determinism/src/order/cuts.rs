//! A full order that shows a witness, found without looking at the events in between.
//!
//! Cut the observed order in two, so that all that comes before an event of the first part is in
//! it, and run the first part, then the second, each as observed: no edge is broken, and scopes
//! that the cut leaves whole exclude each other still. So the events of a witness can be put in
//! order by one cut or two, if scopes that a cut goes through can be completed, where they must,
//! without taking in what must stay behind. Most witnesses that have choices are shown so; where
//! this fails nothing is known.
//!
//! Costs a few searches for each open scope and each that is completed.

use reweave_trace::EventId;

use super::bend::{Base, Bend, Halt, Work, has, raise};
use super::ground::{Ground, NEVER, Point, Queue, Scope};

/// What one part of an order has besides the parts before it, and what it has not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    pub(super) has: [Option<Point>; 2],
    pub(super) has_not: [Option<Point>; 2],
}

/// Cuts, each with all of the one before it.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    cuts: Vec<u32>,
    room: Vec<u32>,
    width: usize,
}

impl Cuts {
    pub(super) fn new(threads_count: usize) -> Self {
        Self { cuts: Vec::new(), room: vec![0; threads_count], width: threads_count }
    }

    /// Whether the events of `parts`, then all others, can run part by part, each as observed.
    pub(super) fn settle(
        &mut self,
        base: Base<'_>,
        bend: &Bend,
        parts: &[Part],
        work: &mut Work<'_>,
    ) -> Result<bool, Halt> {
        self.cuts.clear();
        self.cuts.resize(parts.len() * self.width, 0);
        for (at, part) in parts.iter().enumerate() {
            for &point in part.has.iter().flatten() {
                self.take_in(base, bend, at, point);
            }
        }
        loop {
            work.spend(self.cuts.len())?;
            let is_in = |(part, cut): (&Part, &[u32])| {
                part.has_not.iter().flatten().any(|&point| has(cut, point))
            };
            if parts.iter().zip(self.cuts.chunks_exact(self.width)).any(is_in) {
                return Ok(false);
            }
            let Some(scope) = self.broken(base.ground, work)? else { return Ok(true) };
            let part = self.part(scope.start());
            self.take_in(base, bend, part, scope.end());
        }
    }

    /// Where an event comes in the order that was found.
    pub(super) fn key(&self, ground: &Ground<'_>, point: Point) -> (usize, EventId) {
        (self.part(point), ground.event(point))
    }

    fn part(&self, point: Point) -> usize {
        self.cuts.chunks_exact(self.width).take_while(|cut| !has(cut, point)).count()
    }

    /// Adds to the cut at `at`, and all later ones, all that comes before `point`, and that.
    fn take_in(&mut self, base: Base<'_>, bend: &Bend, at: usize, point: Point) {
        bend.before(base, point, &mut self.room);
        for cut in self.cuts.chunks_exact_mut(self.width).skip(at) {
            raise(cut, &self.room);
        }
    }

    /// A scope that a cut goes through and that would overlap a rival.
    fn broken<'a>(
        &self,
        ground: &'a Ground<'_>,
        work: &mut Work<'_>,
    ) -> Result<Option<&'a Scope>, Halt> {
        for cut in self.cuts.chunks_exact(self.width) {
            let positions = ground.threads().zip(cut);
            let open = positions.flat_map(|(thread, &until)| ground.open_at(thread, until));
            for scope in open.filter(|scope| scope.release != NEVER) {
                for queue in ground.rivals(scope) {
                    work.spend(1)?;
                    if self.is_overlapping(ground, scope, queue) {
                        return Ok(Some(scope));
                    }
                }
            }
        }
        Ok(None)
    }

    fn is_overlapping(&self, ground: &Ground<'_>, scope: &Scope, queue: &Queue) -> bool {
        let (start, end) = (self.key(ground, scope.start()), self.key(ground, scope.end()));
        let rivals = ground.scopes_in(queue);
        let rival = |at: usize| rivals.get(at).map(|&id| &ground.scopes[id]);
        let earlier =
            rivals.partition_point(|&id| self.key(ground, ground.scopes[id].start()) < start);
        let last = earlier.checked_sub(1).and_then(rival);
        let is_held = |last: &Scope| last.release == NEVER || self.key(ground, last.end()) > start;
        last.is_some_and(is_held)
            || rival(earlier).is_some_and(|next| self.key(ground, next.start()) < end)
    }
}
