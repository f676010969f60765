//! Which choices of the order of two scopes could close a cycle through a witness?
//!
//! In the contracted graph each contracted component of overlapping scopes is one vertex, and an
//! edge that may be chosen joins two scopes, both ways, that nothing orders. A cycle through an
//! edge of the witness stays within the strongly connected component of its ends, so only the
//! choices in there matter (`S_choice` of the paper). What a vertex can reach is a suffix of each
//! thread, what can reach it a prefix, and the component is their intersection.
//!
//! A scope joins the first rival of each queue that is not entirely before it, and all later ones.
//! So of a suffix only the first scope of each queue matters, and of these only those that do not
//! know all that is reached already; mostly the first few scopes decide it.

use std::ops::Range;

use reweave_base::Id;
use reweave_trace::ThreadId;

use super::graph::{EventGraph, NEVER, Point, Scope, ScopeId};
use super::overlay::{Outcome, WitnessGraph, Work};

/// How many choices are counted: two to the power of so many does not fit a number.
pub(super) const CHOICES_MAX: u64 = 64;

/// The vertices of a strongly connected component: of each thread the events from `first` on, up to
/// `behind`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Component<'a> {
    first: &'a [u32],
    behind: &'a [u32],
}

impl<'a> Component<'a> {
    /// What a vertex reaches and what reaches it.
    pub(super) fn new(later: &'a Reachability, earlier: &'a Reachability) -> Self {
        Self { first: &later.bounds, behind: &earlier.bounds }
    }

    /// The scopes in it that end.
    pub(super) fn scopes(&self, graph: &EventGraph<'_>) -> impl Iterator<Item = ScopeId> {
        let scopes = graph.threads().flat_map(|thread| self.scopes_of(graph, thread));
        scopes.map(ScopeId::from_index).filter(|&id| graph.scopes[id].release != NEVER)
    }

    /// How many scopes are in it.
    pub(super) fn scopes_count(&self, graph: &EventGraph<'_>) -> u32 {
        graph.threads().map(|thread| self.scopes_of(graph, thread).len() as u32).sum()
    }

    fn scopes_of(&self, graph: &EventGraph<'_>, thread: ThreadId) -> Range<usize> {
        let (first, behind) = (self.first[thread.index()], self.behind[thread.index()]);
        graph.acquired_in(thread, first..behind.max(first))
    }
}

/// Which way edges are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// What a vertex can reach, or what can reach it, found step by step.
#[derive(Debug)]
pub(super) struct Reachability {
    direction: Direction,
    /// Forward, the first event of each thread that is reached; backward, the first after those that
    /// reach the vertex.
    pub(super) bounds: Vec<u32>,
    cut: Vec<u32>,
    /// Threads of which more is reached than was propagated.
    changed: Vec<ThreadId>,
    is_changed: Vec<bool>,
    /// Up to which bound each thread's scopes have joined all that they can.
    joined: Vec<u32>,
}

impl Reachability {
    pub(super) fn new(direction: Direction, threads_count: usize) -> Self {
        Self {
            direction,
            bounds: vec![0; threads_count],
            cut: vec![0; threads_count],
            changed: Vec::new(),
            is_changed: vec![false; threads_count],
            joined: vec![0; threads_count],
        }
    }

    fn next(&mut self) -> Option<ThreadId> {
        let thread = self.changed.pop()?;
        self.is_changed[thread.index()] = false;
        Some(thread)
    }

    /// Starts over with what `point` reaches, or what reaches it, at once.
    pub(super) fn start(&mut self, graph: &EventGraph<'_>, point: Point) {
        while self.next().is_some() {}
        match self.direction {
            Direction::Forward => graph.whole(&mut self.bounds),
            Direction::Backward => self.bounds.fill(0),
        }
        self.joined.copy_from_slice(&self.bounds);
        self.reach(graph, point);
    }

    /// Goes on for so many steps; whether that is all.
    pub(super) fn go(
        &mut self,
        graph: WitnessGraph<'_>,
        steps_max: usize,
        work: &mut Work,
    ) -> Outcome<bool> {
        let events = graph.closed.graph;
        for _ in 0..steps_max {
            let Some(thread) = self.next() else { return Ok(true) };
            let bound = self.bounds[thread.index()];
            match self.direction {
                Direction::Forward => {
                    work.spend(2 * events.threads_count)?;
                    graph.after(Point { thread, position: bound }, &mut self.cut);
                }
                Direction::Backward => {
                    work.spend(events.threads_count)?;
                    graph.before(Point { thread, position: bound - 1 }, &mut self.cut);
                }
            }
            let cut = std::mem::take(&mut self.cut);
            for other in events.threads().filter(|&other| other != thread) {
                let nearest = match self.direction {
                    Direction::Forward => Some(cut[other.index()]),
                    Direction::Backward => cut[other.index()].checked_sub(1),
                };
                if let Some(position) = nearest {
                    self.reach(events, Point { thread: other, position });
                }
            }
            self.cut = cut;
            self.choose(graph, thread, work)?;
        }
        Ok(self.changed.is_empty())
    }

    /// Adds the contracted component of `point`, and all of its thread beyond it.
    fn reach(&mut self, graph: &EventGraph<'_>, point: Point) {
        let bound = &mut self.bounds[point.thread.index()];
        let is_reached = match self.direction {
            Direction::Forward => *bound <= point.position,
            Direction::Backward => *bound > point.position,
        };
        if is_reached {
            return;
        }
        let (start, end) = graph.contracted(point);
        *bound = if self.direction == Direction::Forward { start } else { end };
        if !std::mem::replace(&mut self.is_changed[point.thread.index()], true) {
            self.changed.push(point.thread);
        }
    }

    /// Adds what the scopes of `thread` join that are reached, without those that have joined all
    /// they can.
    fn choose(&mut self, graph: WitnessGraph<'_>, thread: ThreadId, work: &mut Work) -> Outcome {
        let events = graph.closed.graph;
        let bound = self.bounds[thread.index()];
        let joined = std::mem::replace(&mut self.joined[thread.index()], bound);
        // A scope joins by what comes before its start, or after its end.
        let (cost, scopes) = match self.direction {
            Direction::Forward => (events.threads_count, events.acquired_in(thread, bound..joined)),
            Direction::Backward => {
                (2 * events.threads_count, events.released_in(thread, joined..bound))
            }
        };
        let queues_count = events.queues_of(thread).len();
        for at in 0..queues_count.min(scopes.len()) {
            work.spend(cost)?;
            let id = match self.direction {
                Direction::Forward => ScopeId::from_index(scopes.start + at),
                Direction::Backward => events.by_release[scopes.end - 1 - at],
            };
            if !self.join(graph, &events.scopes[id]) {
                return Ok(());
            }
        }
        if scopes.len() <= queues_count {
            return Ok(());
        }
        for queue in events.queues_of(thread) {
            work.spend(cost)?;
            let scope = match self.direction {
                Direction::Forward => events.first_from(queue, bound),
                Direction::Backward => {
                    let last = events.last_before(queue, bound - 1);
                    last.filter(|scope| scope.release != NEVER)
                }
            };
            if let Some(scope) = scope {
                self.join(graph, scope);
            }
        }
        Ok(())
    }

    /// Adds what `scope` joins; no if neither it nor any scope beyond it can join more than is
    /// reached.
    fn join(&mut self, graph: WitnessGraph<'_>, scope: &Scope) -> bool {
        let events = graph.closed.graph;
        let mut cut = std::mem::take(&mut self.cut);
        match self.direction {
            Direction::Forward => graph.before(scope.start(), &mut cut),
            Direction::Backward => graph.after(scope.end(), &mut cut),
        }
        let is_open = |other: ThreadId| {
            let (own, bound) = (cut[other.index()], self.bounds[other.index()]);
            let (from, until) = match self.direction {
                Direction::Forward => (own, bound),
                Direction::Backward => (bound, own),
            };
            other != scope.thread && events.has_scopes_between(other, from, until)
        };
        let is_any_open = events.threads().any(is_open);
        if is_any_open {
            for queue in events.rivals(scope) {
                let limit = cut[queue.thread.index()];
                let rival = match self.direction {
                    Direction::Forward => events.first_ending_from(queue, limit),
                    Direction::Backward => events.last_before(queue, limit),
                };
                if let Some(rival) = rival {
                    self.reach(events, rival.start());
                }
            }
        }
        self.cut = cut;
        is_any_open
    }
}

/// The pairs of scopes that nothing orders.
#[derive(Debug, Default)]
pub(super) struct UnorderedPairs {
    before: Vec<u32>,
    after: Vec<u32>,
}

impl UnorderedPairs {
    pub(super) fn new(threads_count: usize) -> Self {
        Self { before: vec![0; threads_count], after: vec![0; threads_count] }
    }

    /// How many pairs of `component` nothing orders; [`CHOICES_MAX`] may stand for more.
    pub(super) fn count(
        &mut self,
        graph: WitnessGraph<'_>,
        component: Component<'_>,
        work: &mut Work,
    ) -> Outcome<u64> {
        let events = graph.closed.graph;
        let mut count = 0;
        for id in component.scopes(events) {
            work.spend(2 * events.threads_count)?;
            let scope = &events.scopes[id];
            self.set_cuts(graph, scope);
            for queue in events.rivals(scope).filter(|queue| queue.thread > scope.thread) {
                let at = queue.thread.index();
                let range = events.range(queue, self.before[at], self.after[at]);
                count += range.len() as u64;
            }
            if count >= CHOICES_MAX {
                return Ok(CHOICES_MAX);
            }
        }
        Ok(count)
    }

    /// A scope of a later thread that nothing orders with `scope`.
    pub(super) fn partner(&mut self, graph: WitnessGraph<'_>, scope: &Scope) -> Option<Scope> {
        self.set_cuts(graph, scope);
        let events = graph.closed.graph;
        let mut rivals = events.rivals(scope).filter(|queue| queue.thread > scope.thread);
        rivals.find_map(|queue| {
            let at = queue.thread.index();
            let range = events.range(queue, self.before[at], self.after[at]);
            (!range.is_empty()).then(|| events.scopes[events.queued[range.start]])
        })
    }

    fn set_cuts(&mut self, graph: WitnessGraph<'_>, scope: &Scope) {
        graph.before(scope.start(), &mut self.before);
        graph.after(scope.end(), &mut self.after);
    }
}
