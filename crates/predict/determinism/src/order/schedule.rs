//! Full orders of all events that show a witness, by three methods.
//!
//! **Cuts** ([`Cuts`]). Divide the observed order in two, so that all that comes before an event of
//! the first part is in it, and run the first part, then the second, each as observed: no edge is
//! broken, and scopes that the cut does not divide still exclude each other. So the events of a
//! witness can be ordered by one cut or two, if scopes that a cut divides can be completed, where
//! they must, without including what must come later. Most witnesses with choices are shown so;
//! where this fails nothing is known. Costs a few searches for each open scope and each that is
//! completed.
//!
//! **Greedy** ([`Greedy`]). Up to the first event that has to wait, events run as observed. Then
//! the earliest observed of those that are enabled runs: all that must come before it has run, and
//! nobody holds the lock that it acquires. Once exactly the first so many observed events have run,
//! the added edges among them, the rest runs as observed. If nothing is enabled, a scope waits for
//! one that waits for it in turn: it may help to run it first. Otherwise nothing is known. Costs a
//! cut for each thread and event from the first that waits to the last.
//!
//! **Topological order** ([`schedule`]) of a graph in which every choice that matters is made.
//! Scopes that nothing orders run as observed. That closes no cycle: one would have to contain an
//! edge that was not observed, which only a witness and the choices of its component add, and then
//! the pair would be one of these.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use reweave_base::{CsrTable, Id, IndexVec};
use reweave_trace::{EventId, ThreadId};

use super::graph::{EventGraph, NEVER, Point, Queue, Scope};
use super::overlay::{Edge, Outcome, WitnessGraph, Work, has, raise};

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
    scratch: Vec<u32>,
    width: usize,
}

impl Cuts {
    pub(super) fn new(threads_count: usize) -> Self {
        Self { cuts: Vec::new(), scratch: vec![0; threads_count], width: threads_count }
    }

    /// Whether the events of `parts`, then all others, can run part by part, each as observed.
    pub(super) fn divide(
        &mut self,
        graph: WitnessGraph<'_>,
        parts: &[Part],
        work: &mut Work,
    ) -> Outcome<bool> {
        self.cuts.clear();
        self.cuts.resize(parts.len() * self.width, 0);
        for (at, part) in parts.iter().enumerate() {
            for &point in part.has.iter().flatten() {
                self.include(graph, at, point);
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
            let Some(scope) = self.broken(graph.closed.graph, work)? else { return Ok(true) };
            let part = self.part(scope.start());
            self.include(graph, part, scope.end());
        }
    }

    /// The order that was found.
    pub(super) fn order(&self, graph: &EventGraph<'_>) -> Vec<EventId> {
        let mut order: Vec<EventId> = graph.trace.events().map(|(id, _)| id).collect();
        order.sort_by_key(|&id| self.key(graph, graph.point(id)));
        order
    }

    /// Where an event comes in that order.
    fn key(&self, graph: &EventGraph<'_>, point: Point) -> (usize, EventId) {
        (self.part(point), graph.event(point))
    }

    fn part(&self, point: Point) -> usize {
        self.cuts.chunks_exact(self.width).take_while(|cut| !has(cut, point)).count()
    }

    /// Adds to the cut at `at`, and all later ones, all that comes before `point`, and that.
    fn include(&mut self, graph: WitnessGraph<'_>, at: usize, point: Point) {
        graph.before(point, &mut self.scratch);
        for cut in self.cuts.chunks_exact_mut(self.width).skip(at) {
            raise(cut, &self.scratch);
        }
    }

    /// A scope that a cut divides and that would overlap a rival.
    fn broken<'a>(&self, graph: &'a EventGraph<'_>, work: &mut Work) -> Outcome<Option<&'a Scope>> {
        for cut in self.cuts.chunks_exact(self.width) {
            let positions = graph.threads().zip(cut);
            let open = positions.flat_map(|(thread, &until)| graph.open_at(thread, until));
            for scope in open.filter(|scope| scope.release != NEVER) {
                for queue in graph.rivals(scope) {
                    work.spend(1)?;
                    if self.is_overlapping(graph, scope, queue) {
                        return Ok(Some(scope));
                    }
                }
            }
        }
        Ok(None)
    }

    fn is_overlapping(&self, graph: &EventGraph<'_>, scope: &Scope, queue: &Queue) -> bool {
        let (start, end) = (self.key(graph, scope.start()), self.key(graph, scope.end()));
        let rivals = graph.scopes_in(queue);
        let rival = |at: usize| rivals.get(at).map(|&id| &graph.scopes[id]);
        let earlier =
            rivals.partition_point(|&id| self.key(graph, graph.scopes[id].start()) < start);
        let last = earlier.checked_sub(1).and_then(rival);
        let is_held = |last: &Scope| last.release == NEVER || self.key(graph, last.end()) > start;
        last.is_some_and(is_held)
            || rival(earlier).is_some_and(|next| self.key(graph, next.start()) < end)
    }
}

/// The result of a greedy search.
#[derive(Clone, Copy, Debug)]
pub(super) enum GreedyResult {
    Found,
    /// Nothing is enabled; a scope that has started, and one that cannot because of it.
    Stuck(Option<(Scope, Scope)>),
}

/// The buffers of a greedy search.
#[derive(Debug, Default)]
pub(super) struct Greedy {
    /// How many events of each thread have run.
    done: Vec<u32>,
    cut: Vec<u32>,
    /// How many events run as observed at first, and what runs then.
    start: usize,
    reordered: Vec<EventId>,
}

impl Greedy {
    pub(super) fn new(threads_count: usize) -> Self {
        Self {
            done: vec![0; threads_count],
            cut: vec![0; threads_count],
            start: 0,
            reordered: Vec::new(),
        }
    }

    /// Searches for an order that respects all edges.
    pub(super) fn run(
        &mut self,
        graph: WitnessGraph<'_>,
        work: &mut Work,
    ) -> Outcome<GreedyResult> {
        self.begin(graph);
        let edges = &graph.overlay.edges;
        let is_run = |done: &[u32], (tail, head): &Edge| has(done, *tail) && has(done, *head);
        // After the last event, in observed order, that has run.
        let mut end = self.start;
        loop {
            let is_level = self.start + self.reordered.len() == end;
            if is_level && edges.iter().all(|edge| is_run(&self.done, edge)) {
                return Ok(GreedyResult::Found);
            }
            let Some((event, thread)) = self.next(graph, work)? else {
                return Ok(GreedyResult::Stuck(self.conflict(graph)));
            };
            self.done[thread.index()] += 1;
            self.reordered.push(event);
            end = end.max(event.index() + 1);
        }
    }

    /// The order that was found.
    pub(super) fn order(&self, graph: &EventGraph<'_>) -> Vec<EventId> {
        let ids = |range: std::ops::Range<usize>| range.map(EventId::from_index);
        let end = self.start + self.reordered.len();
        let reordered = self.reordered.iter().copied();
        ids(0..self.start).chain(reordered).chain(ids(end..graph.trace.len())).collect()
    }

    /// Runs all that was observed before the first event that has to wait.
    fn begin(&mut self, WitnessGraph { closed, overlay }: WitnessGraph<'_>) {
        let (graph, edges) = (closed.graph, overlay.edges.iter());
        let edges = edges.map(|&(tail, head)| (graph.event(tail), graph.event(head)));
        let start = edges.filter(|(tail, head)| tail > head).map(|(_, head)| head).min();
        self.start = start.map_or(graph.trace.len(), Id::index);
        self.reordered.clear();
        for thread in graph.threads() {
            let events = graph.trace.thread_events(thread);
            let count = events.partition_point(|event| event.index() < self.start);
            self.done[thread.index()] = count as u32;
        }
    }

    /// The earliest observed event that is enabled.
    fn next(
        &mut self,
        graph: WitnessGraph<'_>,
        work: &mut Work,
    ) -> Outcome<Option<(EventId, ThreadId)>> {
        let events = graph.closed.graph;
        let trace = events.trace;
        let mut tried = None;
        loop {
            let nexts = events.threads().filter_map(|thread| {
                let position = self.done[thread.index()] as usize;
                trace.thread_events(thread).get(position).map(|&event| (event, thread))
            });
            let next = nexts.filter(|&(event, _)| Some(event) > tried).min();
            let Some((event, thread)) = next else { return Ok(None) };
            work.spend(events.threads_count)?;
            let point = events.point(event);
            if self.has_all_before(graph, point) && self.holder(events, point).is_none() {
                return Ok(Some((event, thread)));
            }
            tried = Some(event);
        }
    }

    /// Whether all that must come before `point` has run.
    fn has_all_before(&mut self, graph: WitnessGraph<'_>, point: Point) -> bool {
        graph.before(point, &mut self.cut);
        self.cut[point.thread.index()] = point.position;
        self.cut.iter().zip(&self.done).all(|(needed, done)| needed <= done)
    }

    /// The scope that keeps the one that `point` acquires from starting, and that.
    fn holder(&self, graph: &EventGraph<'_>, point: Point) -> Option<(Scope, Scope)> {
        let scope = graph.acquired_at(point)?;
        graph.rivals(scope).find_map(|queue| {
            let done = self.done[queue.thread.index()];
            let last = graph.last_before(queue, done).filter(|last| last.release >= done)?;
            Some((*last, *scope))
        })
    }

    /// The first scope that waits for another alone, after that.
    fn conflict(&mut self, graph: WitnessGraph<'_>) -> Option<(Scope, Scope)> {
        let events = graph.closed.graph;
        events.threads().find_map(|thread| {
            let position = self.done[thread.index()];
            let point = Point { thread, position };
            let is_ready =
                position < events.events_count(thread) && self.has_all_before(graph, point);
            if is_ready { self.holder(events, point) } else { None }
        })
    }
}

/// All events, the earliest observed first of those that are enabled; none if there is a cycle. The
/// reads-from edge of `free` need not hold.
pub(super) fn schedule(graph: WitnessGraph<'_>, free: Option<EventId>) -> Option<Vec<EventId>> {
    let edges = edges(graph, free);
    let events_count = graph.closed.graph.trace.len();
    let mut missing: IndexVec<EventId, u32> = IndexVec::from_elem(0, events_count);
    edges.iter().for_each(|&(_, head)| missing[head] += 1);
    let next = CsrTable::group(missing.len(), EventId::from_index(0), || edges.iter().copied());
    let ready = missing.entries().filter(|(_, count)| **count == 0);
    let mut ready: BinaryHeap<Reverse<EventId>> = ready.map(|(id, _)| Reverse(id)).collect();
    let mut order = Vec::with_capacity(missing.len());
    while let Some(Reverse(event)) = ready.pop() {
        order.push(event);
        for &head in next.row(event) {
            missing[head] -= 1;
            if missing[head] == 0 {
                ready.push(Reverse(head));
            }
        }
    }
    (order.len() == missing.len()).then_some(order)
}

fn edges(witness: WitnessGraph<'_>, free: Option<EventId>) -> Vec<(EventId, EventId)> {
    let graph = witness.closed.graph;
    let trace = graph.trace;
    let mut edges = Vec::new();
    for thread in graph.threads() {
        edges.extend(trace.thread_events(thread).windows(2).map(|pair| (pair[0], pair[1])));
    }
    let writer = free.and_then(|free| trace.writer(free));
    for (head, tails) in graph.edges.into.rows() {
        let head = graph.segments[head].event;
        let tails = tails.iter().map(|&tail| graph.event(tail));
        let is_free = |tail: EventId| (Some(tail), Some(head)) == (writer, free);
        edges.extend(tails.filter(|&tail| !is_free(tail)).map(|tail| (tail, head)));
    }
    for (hub, heads) in graph.edges.heads.rows() {
        for &tail in graph.edges.tails.row(hub) {
            let tail = graph.event(tail);
            edges.extend(heads.iter().map(|&head| (tail, graph.segments[head].event)));
        }
    }
    let reads = trace.events().filter(|&(id, _)| Some(id) != free);
    edges.extend(reads.filter_map(|(id, _)| trace.writer(id).map(|writer| (writer, id))));
    let added = witness.overlay.edges.iter();
    edges.extend(added.map(|&(tail, head)| (graph.event(tail), graph.event(head))));
    let (mut before, mut after) = (vec![0; graph.threads_count], vec![0; graph.threads_count]);
    for scope in graph.scopes.iter().filter(|scope| scope.release != NEVER) {
        witness.before(scope.start(), &mut before);
        witness.after(scope.end(), &mut after);
        for queue in graph.rivals(scope) {
            let at = queue.thread.index();
            let is_before = |rival: &Scope| {
                rival.release < before[at]
                    || (rival.acquire < after[at] && is_observed_before(graph, rival, scope))
            };
            let rivals = graph.scopes_in(queue);
            let count = rivals.partition_point(|&rival| is_before(&graph.scopes[rival]));
            if let Some(&last) = rivals[..count].last() {
                let last = &graph.scopes[last];
                edges.push((graph.event(last.end()), graph.event(scope.start())));
            }
        }
    }
    edges
}

fn is_observed_before(graph: &EventGraph<'_>, early: &Scope, late: &Scope) -> bool {
    graph.event(early.start()) < graph.event(late.start())
}
