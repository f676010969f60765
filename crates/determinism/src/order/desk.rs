//! Judges one chain after the other: does its graph have a cycle, does it leave choices that
//! matter, and can these be made?

use reweave_trace::EventId;

use super::bend::{Base, Bend, Halt, Work, has};
use super::choices::Choices;
use super::cuts::{Cuts, Part};
use super::greedy::Greedy;
use super::ground::{Ground, Point};
use super::reach::{CHOICES_MAX, Component, Pairs, Reach};
use super::schedule;
use crate::verdicts::Phases;

/// The events of a witness, in its order: up to two edges that meet in the middle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    pub(super) first: Option<Point>,
    pub(super) middle: Point,
    pub(super) last: Option<Point>,
}

/// What is known of a chain whose graph has no cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// Nothing is left to choose: feasible.
    Settled,
    /// There are choices, and some are without a cycle, or all have one.
    Chosen { is_feasible: bool },
}

impl Judgement {
    pub(super) const fn is_feasible(self) -> bool {
        matches!(self, Self::Settled | Self::Chosen { is_feasible: true })
    }
}

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
    choices: Choices,
}

impl Desk {
    pub(super) fn new(threads_count: usize) -> Self {
        Self {
            bend: Bend::default(),
            later: Reach::new(threads_count),
            earlier: Reach::new(threads_count),
            component: Component::default(),
            pairs: Pairs::new(threads_count),
            cuts: Cuts::new(threads_count),
            greedy: Greedy::new(threads_count),
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

    /// Judges `chain`, whose graph is set and has no cycle, and counts it in `phases`; `is_known`
    /// to be feasible or not.
    pub(super) fn judge(
        &mut self,
        base: Base<'_>,
        chain: &Chain,
        is_known: bool,
        phases: &mut Phases,
        work: &mut Work<'_>,
    ) -> Result<Judgement, Halt> {
        let choices_count = self.count_choices(base, chain, work)?;
        if choices_count == 0 {
            phases.feasible += 1;
            return Ok(Judgement::Settled);
        }
        let (is_feasible, explored) = match is_known {
            true => (true, 1),
            false => self.explore(base, chain, work)?,
        };
        let graphs =
            1_u64.checked_shl(choices_count as u32).filter(|_| choices_count < CHOICES_MAX);
        phases.with_choices += 1;
        phases.feasible_with_choices += u64::from(is_feasible);
        phases.possible_graphs = phases.possible_graphs.saturating_add(graphs.unwrap_or(u64::MAX));
        phases.explored_graphs += explored;
        Ok(Judgement::Chosen { is_feasible })
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
        if self.is_shown_by_cuts(base, chain, work)?
            || self.greedy.settle(base, &self.bend, work)?
        {
            return Ok((true, 1));
        }
        let is_feasible = self.search(base, work)?;
        Ok((is_feasible, self.choices.explored))
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
            if self.greedy.settle(base, &self.bend, work)? {
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
