//! A full order that shows a witness, found by bending the observed one.
//!
//! Up to the first event that has to wait, events run as observed. Then the earliest observed of
//! those that can be next runs, whatever it takes the others: all that must come before it has run,
//! and nobody holds the lock that it acquires. Once exactly the first so many observed events have
//! run, the edges that were added among them, the rest runs as observed. If nothing can be next, a
//! scope waits for one that waits for it in turn: it may help to have it first. Otherwise nothing
//! is known.
//!
//! Costs a cut for each thread and event from the first that waits to the last.

use reweave_base::Id;
use reweave_trace::{EventId, ThreadId};

use super::bend::{Base, Bend, Halt, Work, has};
use super::ground::{Ground, Point, Scope};

/// What came of looking for an order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trial {
    Found,
    /// Nothing can be next; a scope that has started, and one that cannot because of it.
    Stuck(Option<(Scope, Scope)>),
}

/// Room to bend an order.
#[derive(Debug, Default)]
pub(super) struct Greedy {
    /// How many events of each thread have run.
    done: Vec<u32>,
    cut: Vec<u32>,
    /// How many events run as observed at first, and what runs then.
    start: usize,
    bent: Vec<EventId>,
}

impl Greedy {
    pub(super) fn new(threads_count: usize) -> Self {
        Self {
            done: vec![0; threads_count],
            cut: vec![0; threads_count],
            start: 0,
            bent: Vec::new(),
        }
    }

    /// Looks for an order that keeps all edges.
    pub(super) fn run(
        &mut self,
        base: Base<'_>,
        bend: &Bend,
        work: &mut Work<'_>,
    ) -> Result<Trial, Halt> {
        let ground = base.ground;
        self.begin(ground, bend);
        let is_run =
            |done: &[u32], (tail, head): &(Point, Point)| has(done, *tail) && has(done, *head);
        // Behind the last event that has run.
        let mut end = self.start;
        loop {
            let is_level = self.start + self.bent.len() == end;
            if is_level && bend.edges().iter().all(|edge| is_run(&self.done, edge)) {
                return Ok(Trial::Found);
            }
            let Some((event, thread)) = self.next(base, bend, work)? else {
                return Ok(Trial::Stuck(self.conflict(base, bend)));
            };
            self.done[thread.index()] += 1;
            self.bent.push(event);
            end = end.max(event.index() + 1);
        }
    }

    /// The order that was found.
    pub(super) fn order(&self, ground: &Ground<'_>) -> Vec<EventId> {
        let ids = |range: std::ops::Range<usize>| range.map(EventId::from_index);
        let end = self.start + self.bent.len();
        let bent = self.bent.iter().copied();
        ids(0..self.start).chain(bent).chain(ids(end..ground.trace.len())).collect()
    }

    /// Runs all that was observed before the first event that has to wait.
    fn begin(&mut self, ground: &Ground<'_>, bend: &Bend) {
        let edges = bend.edges().iter();
        let edges = edges.map(|&(tail, head)| (ground.event(tail), ground.event(head)));
        let start = edges.filter(|(tail, head)| tail > head).map(|(_, head)| head).min();
        self.start = start.map_or(ground.trace.len(), Id::index);
        self.bent.clear();
        for thread in ground.threads() {
            let events = ground.trace.thread_events(thread);
            let count = events.partition_point(|event| event.index() < self.start);
            self.done[thread.index()] = count as u32;
        }
    }

    /// The earliest observed event that can be next.
    fn next(
        &mut self,
        base: Base<'_>,
        bend: &Bend,
        work: &mut Work<'_>,
    ) -> Result<Option<(EventId, ThreadId)>, Halt> {
        let trace = base.ground.trace;
        let mut tried = None;
        loop {
            let nexts = base.ground.threads().filter_map(|thread| {
                let position = self.done[thread.index()] as usize;
                trace.thread_events(thread).get(position).map(|&event| (event, thread))
            });
            let next = nexts.filter(|&(event, _)| Some(event) > tried).min();
            let Some((event, thread)) = next else { return Ok(None) };
            work.spend(base.ground.threads_count)?;
            let point = base.ground.point(event);
            if self.has_all_before(base, bend, point) && self.holder(base.ground, point).is_none() {
                return Ok(Some((event, thread)));
            }
            tried = Some(event);
        }
    }

    /// Whether all that must come before `point` has run.
    fn has_all_before(&mut self, base: Base<'_>, bend: &Bend, point: Point) -> bool {
        bend.before(base, point, &mut self.cut);
        self.cut[point.thread.index()] = point.position;
        self.cut.iter().zip(&self.done).all(|(needed, done)| needed <= done)
    }

    /// The scope that keeps the one that `point` acquires from starting, and that.
    fn holder(&self, ground: &Ground<'_>, point: Point) -> Option<(Scope, Scope)> {
        let scope = ground.acquired_at(point)?;
        ground.rivals(scope).find_map(|queue| {
            let done = self.done[queue.thread.index()];
            let last = ground.last_before(queue, done).filter(|last| last.release >= done)?;
            Some((*last, *scope))
        })
    }

    /// The first scope that waits for another alone, after that.
    fn conflict(&mut self, base: Base<'_>, bend: &Bend) -> Option<(Scope, Scope)> {
        base.ground.threads().find_map(|thread| {
            let position = self.done[thread.index()];
            let point = Point { thread, position };
            let is_ready = position < base.ground.events_count(thread)
                && self.has_all_before(base, bend, point);
            if is_ready { self.holder(base.ground, point) } else { None }
        })
    }
}
