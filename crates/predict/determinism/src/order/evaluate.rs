//! Evaluates one witness after the other: does its graph have a cycle, does it leave choices that
//! matter, and can these be made?
//!
//! Choice graphs are searched depth first: pairs are ordered one at a time, as observed first, and
//! what follows from a decision decides others. A graph is explored when all pairs are ordered, or
//! when a cycle shows that none of those with the same decisions is acyclic.

use reweave_trace::EventId;

use super::component::{CHOICES_MAX, Component, Direction, Reachability, UnorderedPairs};
use super::graph::{NEVER, Point, ScopeId};
use super::overlay::{ClosedGraph, Edge, Incomplete, Outcome, Overlay, WitnessGraph, Work, has};
use super::schedule::{self, Cuts, Greedy, GreedyResult, Part};

/// The events of a witness, in its order: up to two edges that meet in the middle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    pub(super) first: Option<Point>,
    pub(super) middle: Point,
    pub(super) last: Option<Point>,
}

/// The evaluation of a chain whose graph is acyclic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Evaluation {
    /// How many choices matter; [`CHOICES_MAX`] stands for more. None: feasible.
    pub(super) choices_count: u64,
    pub(super) is_feasible: bool,
    /// How many choice graphs were explored.
    pub(super) explored: u64,
}

/// How much may be spent on the search for a choice graph of one chain. Those that are found
/// usually take a small part of it.
const SEARCH_MAX: u64 = 1 << 20;

/// Which part of what is left may be spent so, if that is more.
const SEARCH_SHARE: u64 = 4;

/// How many greedy orders are tried for one chain.
const ATTEMPTS_MAX: usize = 16;

/// The buffers that evaluations share.
#[derive(Debug)]
pub(super) struct Workspace {
    /// The graph of the chain that is evaluated, over the closed graph.
    pub(super) overlay: Overlay,
    /// What the middle of the chain reaches, and what reaches it.
    pub(super) later: Reachability,
    pub(super) earlier: Reachability,
    pairs: UnorderedPairs,
    cuts: Cuts,
    greedy: Greedy,
    /// That graph with the edges that a greedy order is tried with.
    attempt: Overlay,
    choices: Choices,
}

impl Workspace {
    pub(super) fn new(threads_count: usize) -> Self {
        Self {
            overlay: Overlay::default(),
            later: Reachability::new(Direction::Forward, threads_count),
            earlier: Reachability::new(Direction::Backward, threads_count),
            pairs: UnorderedPairs::new(threads_count),
            cuts: Cuts::new(threads_count),
            greedy: Greedy::new(threads_count),
            attempt: Overlay::default(),
            choices: Choices::default(),
        }
    }

    /// Builds the graph of `chain`.
    pub(super) fn set(
        &mut self,
        closed: ClosedGraph<'_>,
        chain: &Chain,
        work: &mut Work,
    ) -> Outcome {
        self.overlay.clear();
        if let Some(first) = chain.first {
            self.overlay.add(closed, (first, chain.middle), work)?;
        }
        if let Some(last) = chain.last {
            self.overlay.add(closed, (chain.middle, last), work)?;
        }
        Ok(())
    }

    /// Evaluates `chain`, whose graph is set and has no cycle; `is_known` to be feasible or not.
    pub(super) fn evaluate(
        &mut self,
        closed: ClosedGraph<'_>,
        chain: &Chain,
        is_known: bool,
        work: &mut Work,
    ) -> Outcome<Evaluation> {
        let choices_count = self.count_choices(closed, chain, work)?;
        if choices_count == 0 || is_known {
            let explored = u64::from(choices_count > 0);
            return Ok(Evaluation { choices_count, is_feasible: true, explored });
        }
        let allowed = SEARCH_MAX.max(work.0 / SEARCH_SHARE).min(work.0);
        let mut own = Work(allowed);
        let explored = self.explore(closed, chain, &mut own);
        work.spend((allowed - own.0) as usize)?;
        let (is_feasible, explored) = explored?;
        Ok(Evaluation { choices_count, is_feasible, explored })
    }

    /// How many choices are in the component of the chain that was evaluated last, which none
    /// mattered to, in its graph, which is `overlay`.
    pub(super) fn count_around(
        &mut self,
        closed: ClosedGraph<'_>,
        overlay: &Overlay,
        work: &mut Work,
    ) -> Outcome<u64> {
        let component = Component::new(&self.later, &self.earlier);
        self.pairs.count(WitnessGraph { closed, overlay }, component, work)
    }

    /// How many choices of the graph matter to `chain`; [`CHOICES_MAX`] may stand for more, and the
    /// component need not be complete then.
    fn count_choices(
        &mut self,
        closed: ClosedGraph<'_>,
        chain: &Chain,
        work: &mut Work,
    ) -> Outcome<u64> {
        let Self { overlay, later, earlier, pairs, .. } = self;
        let graph = WitnessGraph { closed, overlay };
        later.start(closed.graph, chain.middle);
        earlier.start(closed.graph, chain.middle);
        let mut steps = 4;
        // Counting is worth it when it may come to the most, or when there is no more to come.
        let mut scopes_min = CHOICES_MAX as u32 / 4;
        loop {
            let is_done = later.go(graph, steps, work)? & earlier.go(graph, steps, work)?;
            let is_closed = chain.first.is_some_and(|point| !has(&later.bounds, point))
                || chain.last.is_some_and(|point| has(&earlier.bounds, point));
            let component = Component::new(later, earlier);
            let scopes_count = component.scopes_count(closed.graph);
            if is_closed && (is_done || scopes_count >= scopes_min) {
                let count = pairs.count(graph, component, work)?;
                if is_done || count == CHOICES_MAX {
                    return Ok(count);
                }
                scopes_min = 2 * scopes_count;
            }
            if is_done {
                return Ok(0);
            }
            steps *= 2;
        }
    }

    /// Whether some choice graph is acyclic, and how many were explored.
    fn explore(
        &mut self,
        closed: ClosedGraph<'_>,
        chain: &Chain,
        work: &mut Work,
    ) -> Outcome<(bool, u64)> {
        if self.is_shown_by_cuts(closed, chain, work)? || self.is_shown_greedily(closed, work)? {
            return Ok((true, 1));
        }
        let is_feasible = self.search(closed, work)?;
        Ok((is_feasible, self.choices.explored))
    }

    /// Whether a greedy order respects all edges. Where it gets stuck, it is tried again with the
    /// scope first that had to wait.
    fn is_shown_greedily(&mut self, closed: ClosedGraph<'_>, work: &mut Work) -> Outcome<bool> {
        self.attempt.clone_from(&self.overlay);
        for _ in 0..ATTEMPTS_MAX {
            let graph = WitnessGraph { closed, overlay: &self.attempt };
            let (held, waiting) = match self.greedy.run(graph, work)? {
                GreedyResult::Found => return Ok(true),
                GreedyResult::Stuck(None) => return Ok(false),
                GreedyResult::Stuck(Some(scopes)) => scopes,
            };
            if waiting.release == NEVER {
                return Ok(false);
            }
            match self.attempt.add(closed, (waiting.end(), held.start()), work) {
                Err(Incomplete::Cycle) => return Ok(false),
                added => added?,
            }
        }
        Ok(false)
    }

    /// Orders all pairs of the component in the graph, if that is possible.
    fn search(&mut self, closed: ClosedGraph<'_>, work: &mut Work) -> Outcome<bool> {
        let Self { overlay, later, earlier, pairs, choices, .. } = self;
        // The component need not be complete yet.
        let graph = WitnessGraph { closed, overlay };
        later.go(graph, usize::MAX, work)?;
        earlier.go(graph, usize::MAX, work)?;
        let component = Component::new(later, earlier);
        choices.order(closed, overlay, component, pairs, work)
    }

    /// Whether the observed order, cut once or twice, shows `chain`.
    fn is_shown_by_cuts(
        &mut self,
        closed: ClosedGraph<'_>,
        chain: &Chain,
        work: &mut Work,
    ) -> Outcome<bool> {
        let event = |point: Point| closed.graph.event(point);
        let Chain { first, middle, last } = *chain;
        let has_first = first.is_none_or(|first| event(first) < event(middle));
        let has_last = last.is_none_or(|last| event(middle) < event(last));
        let parts = match (has_first, has_last) {
            (true, true) => &[][..],
            (true, false) => &[Part { has: [first, Some(middle)], has_not: [last, None] }][..],
            (false, true) => &[Part { has: [first, None], has_not: [Some(middle), last] }][..],
            (false, false) => &[
                Part { has: [first, None], has_not: [Some(middle), last] },
                Part { has: [Some(middle), None], has_not: [last, None] },
            ][..],
        };
        self.cuts.divide(WitnessGraph { closed, overlay: &self.overlay }, parts, work)
    }

    /// A full order that shows `chain`, whose graph is set and has no cycle, if there is one. The
    /// reads-from edge of `free` need not hold.
    pub(super) fn schedule(
        &mut self,
        closed: ClosedGraph<'_>,
        chain: &Chain,
        free: Option<EventId>,
        work: &mut Work,
    ) -> Outcome<Option<Vec<EventId>>> {
        if self.count_choices(closed, chain, work)? > 0 {
            if self.is_shown_by_cuts(closed, chain, work)? {
                return Ok(Some(self.cuts.order(closed.graph)));
            }
            if self.is_shown_greedily(closed, work)? {
                return Ok(Some(self.greedy.order(closed.graph)));
            }
            if !self.search(closed, work)? {
                return Ok(None);
            }
        }
        Ok(schedule::schedule(WitnessGraph { closed, overlay: &self.overlay }, free))
    }
}

/// A decision: the graph before it, the index of the scope, and the edge of the other order.
type Decision = (Overlay, usize, Edge);

/// The search for an acyclic choice graph.
#[derive(Debug, Default)]
pub(super) struct Choices {
    scopes: Vec<ScopeId>,
    decisions: Vec<Decision>,
    /// How many graphs were explored.
    pub(super) explored: u64,
}

impl Choices {
    /// Orders all pairs of `component` in `overlay`, if that is possible.
    pub(super) fn order(
        &mut self,
        closed: ClosedGraph<'_>,
        overlay: &mut Overlay,
        component: Component<'_>,
        pairs: &mut UnorderedPairs,
        work: &mut Work,
    ) -> Outcome<bool> {
        self.explored = 0;
        self.decisions.clear();
        self.scopes.clear();
        work.spend(component.scopes_count(closed.graph) as usize)?;
        self.scopes.extend(component.scopes(closed.graph));
        let mut at = 0;
        while let Some(&id) = self.scopes.get(at) {
            work.spend(2 * closed.graph.threads_count)?;
            let scope = closed.graph.scopes[id];
            let Some(partner) = pairs.partner(WitnessGraph { closed, overlay }, &scope) else {
                at += 1;
                continue;
            };
            let is_first = closed.graph.event(scope.start()) < closed.graph.event(partner.start());
            let (early, late) = if is_first { (scope, partner) } else { (partner, scope) };
            work.spend(overlay.size())?;
            self.decisions.push((overlay.clone(), at, (late.end(), early.start())));
            let mut decided = overlay.add(closed, (early.end(), late.start()), work);
            // Backtrack to the last decision whose other order was not tried.
            while decided == Err(Incomplete::Cycle) {
                self.explored += 1;
                let Some((before, turn, edge)) = self.decisions.pop() else {
                    return Ok(false);
                };
                *overlay = before;
                at = turn;
                decided = overlay.add(closed, edge, work);
            }
            decided?;
        }
        self.explored += 1;
        Ok(true)
    }
}
