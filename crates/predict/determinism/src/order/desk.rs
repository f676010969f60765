//! Judges one chain after the other: does its graph have a cycle, does it leave choices that
//! matter, and can these be made?

use reweave_trace::EventId;

use super::bend::{Base, Bend, Halt, Work, has};
use super::choices::Choices;
use super::cuts::{Cuts, Part};
use super::greedy::{Greedy, Trial};
use super::ground::{Ground, NEVER, Point};
use super::reach::{CHOICES_MAX, Component, Pairs, Reach};
use super::schedule;

/// The events of a witness, in its order: up to two edges that meet in the middle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    pub(super) first: Option<Point>,
    pub(super) middle: Point,
    pub(super) last: Option<Point>,
}

/// What is known of a chain whose graph has no cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Judgement {
    /// How many choices matter; [`CHOICES_MAX`] stands for more. None: feasible.
    pub(super) choices_count: u64,
    pub(super) is_feasible: bool,
    /// How many choice graphs were looked at.
    pub(super) explored: u64,
}

/// How much may be spent on looking for a choice graph of one chain. Those that are found take a
/// small part of it, as a rule.
const SEARCH_MAX: u64 = 1 << 20;

/// Which part of what is left may be spent so, if that is more.
const SEARCH_SHARE: u64 = 4;

/// How often the observed order is bent for one chain.
const TRIALS_MAX: usize = 16;

/// Room to judge chains.
#[derive(Debug)]
pub(super) struct Desk {
    /// The graph of the chain that is judged.
    pub(super) bend: Bend,
    /// What the middle of the chain reaches, and what reaches it.
    pub(super) later: Reach,
    pub(super) earlier: Reach,
    component: Component,
    pairs: Pairs,
    cuts: Cuts,
    greedy: Greedy,
    /// The graph with what an order is tried with besides.
    trial: Bend,
    choices: Choices,
}

impl Desk {
    pub(super) fn new(threads_count: usize) -> Self {
        Self {
            bend: Bend::default(),
            later: Reach::new(threads_count),
            earlier: Reach::new(threads_count),
            component: Component::new(threads_count),
            pairs: Pairs::new(threads_count),
            cuts: Cuts::new(threads_count),
            greedy: Greedy::new(threads_count),
            trial: Bend::default(),
            choices: Choices::default(),
        }
    }

    /// Makes the graph of `chain`.
    pub(super) fn set(
        &mut self,
        base: Base<'_>,
        chain: &Chain,
        work: &mut Work<'_>,
    ) -> Result<(), Halt> {
        self.bend.clear();
        if let Some(first) = chain.first {
            self.bend.add(base, first, chain.middle, work)?;
        }
        if let Some(last) = chain.last {
            self.bend.add(base, chain.middle, last, work)?;
        }
        Ok(())
    }

    /// Judges `chain`, whose graph is set and has no cycle; `is_known` to be feasible or not.
    pub(super) fn judge(
        &mut self,
        base: Base<'_>,
        chain: &Chain,
        is_known: bool,
        work: &mut Work<'_>,
    ) -> Result<Judgement, Halt> {
        let choices_count = self.count_choices(base, chain, work)?;
        if choices_count == 0 || is_known {
            let explored = u64::from(choices_count > 0);
            return Ok(Judgement { choices_count, is_feasible: true, explored });
        }
        let mut left = SEARCH_MAX.max(*work.0 / SEARCH_SHARE).min(*work.0);
        let allowed = left;
        let explored = self.explore(base, chain, &mut Work(&mut left));
        work.spend((allowed - left) as usize)?;
        let (is_feasible, explored) = explored?;
        Ok(Judgement { choices_count, is_feasible, explored })
    }

    /// How many choices are in the component of the chain that was judged last, which none mattered
    /// to, in its graph, which is `bend`.
    pub(super) fn count_around(
        &mut self,
        base: Base<'_>,
        bend: &Bend,
        work: &mut Work<'_>,
    ) -> Result<u64, Halt> {
        self.pairs.count(base, bend, &self.component, work)
    }

    /// What the middle of that chain reaches: of each thread the events from there on.
    pub(super) fn reached(&self) -> &[u32] {
        &self.component.first
    }

    /// How many choices of the graph matter to `chain`; [`CHOICES_MAX`] may stand for more, and the
    /// component need not be complete then.
    fn count_choices(
        &mut self,
        base: Base<'_>,
        chain: &Chain,
        work: &mut Work<'_>,
    ) -> Result<u64, Halt> {
        let Self { bend, later, earlier, component, pairs, .. } = self;
        later.start_forward(base.ground, chain.middle, &mut component.first);
        earlier.start_backward(base.ground, chain.middle, &mut component.behind);
        let mut steps = 4;
        // Counting is worth it when it may come to the most, or when there is no more to come.
        let mut scopes_min = CHOICES_MAX as u32 / 4;
        loop {
            let Component { first, behind } = component;
            let is_done = later.go_forward(base, bend, first, steps, work)?
                & earlier.go_backward(base, bend, behind, steps, work)?;
            let is_closed = chain.first.is_some_and(|point| !has(first, point))
                || chain.last.is_some_and(|point| has(behind, point));
            let scopes_count = component.scopes_count(base.ground);
            if is_closed && (is_done || scopes_count >= scopes_min) {
                let count = pairs.count(base, bend, component, work)?;
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

    /// Makes the component whole.
    fn complete(&mut self, base: Base<'_>, work: &mut Work<'_>) -> Result<(), Halt> {
        let Self { bend, later, earlier, component, .. } = self;
        later.go_forward(base, bend, &mut component.first, usize::MAX, work)?;
        earlier.go_backward(base, bend, &mut component.behind, usize::MAX, work)?;
        Ok(())
    }

    /// Whether some choice graph has no cycle, and how many were looked at.
    fn explore(
        &mut self,
        base: Base<'_>,
        chain: &Chain,
        work: &mut Work<'_>,
    ) -> Result<(bool, u64), Halt> {
        if self.is_shown_by_cuts(base, chain, work)? || self.is_shown_by_bending(base, work)? {
            return Ok((true, 1));
        }
        let is_feasible = self.search(base, work)?;
        Ok((is_feasible, self.choices.explored))
    }

    /// Whether the observed order, bent here and there, keeps all edges. Where it gets stuck, it is
    /// tried again with the scope first that had to wait.
    fn is_shown_by_bending(&mut self, base: Base<'_>, work: &mut Work<'_>) -> Result<bool, Halt> {
        self.trial.clone_from(&self.bend);
        for _ in 0..TRIALS_MAX {
            let (held, waiting) = match self.greedy.run(base, &self.trial, work)? {
                Trial::Found => return Ok(true),
                Trial::Stuck(None) => return Ok(false),
                Trial::Stuck(Some(scopes)) => scopes,
            };
            if waiting.release == NEVER {
                return Ok(false);
            }
            match self.trial.add(base, waiting.end(), held.start(), work) {
                Err(Halt::Cycle) => return Ok(false),
                added => added?,
            }
        }
        Ok(false)
    }

    /// Orders all pairs of the component in the graph, if that is possible.
    fn search(&mut self, base: Base<'_>, work: &mut Work<'_>) -> Result<bool, Halt> {
        self.complete(base, work)?;
        let Self { bend, component, pairs, choices, .. } = self;
        choices.order(base, bend, component, pairs, work)
    }

    /// Whether the observed order, cut once or twice, shows `chain`.
    fn is_shown_by_cuts(
        &mut self,
        base: Base<'_>,
        chain: &Chain,
        work: &mut Work<'_>,
    ) -> Result<bool, Halt> {
        let event = |point: Point| base.ground.event(point);
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
        self.cuts.settle(base, &self.bend, parts, work)
    }

    /// A full order that shows `chain`, whose graph is set and has no cycle, if there is one. The
    /// couple of `free` does not hold.
    pub(super) fn schedule(
        &mut self,
        base: Base<'_>,
        chain: &Chain,
        free: Option<EventId>,
        work: &mut Work<'_>,
    ) -> Result<Option<Vec<EventId>>, Halt> {
        if self.count_choices(base, chain, work)? > 0 {
            if self.is_shown_by_cuts(base, chain, work)? {
                return Ok(Some(self.cut_order(base.ground)));
            }
            if self.is_shown_by_bending(base, work)? {
                return Ok(Some(self.greedy.order(base.ground)));
            }
            if !self.search(base, work)? {
                return Ok(None);
            }
        }
        Ok(schedule::schedule(base, &self.bend, free))
    }

    fn cut_order(&self, ground: &Ground<'_>) -> Vec<EventId> {
        let mut order: Vec<EventId> = ground.trace.events().map(|(id, _)| id).collect();
        order.sort_by_key(|&id| self.cuts.key(ground, ground.point(id)));
        order
    }
}
