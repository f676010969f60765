//! The least state that meets a predicate, where less is a smaller sum of weights.
//!
//! Branch and bound: once some chains have their numbers, no state weighs less than those and the
//! others at the low ends of their ranges. What cannot be less than the least state found so far is
//! skipped; since weights do not decrease along a chain, so is the rest of that range. Of states of
//! the same weight the first one found counts; which one that is depends on the poset and the
//! bounds alone.
//!
//! Exponential in the number of chains at worst, as is any search with an opaque predicate. A node
//! costs the number of chains. Branch and bound after Land and Doig (1960).

use std::ops::ControlFlow;

use reweave_base::Id;
use reweave_order::poset::Poset;

use super::{EarlyEnd, Layout, Limits, Plan, RangeTable, Rows, Wide};
use crate::enumerate::Bounds;

/// After how many nodes it is asked whether to stop.
const NODES_BETWEEN: u32 = 1 << 10;

/// What a search for the least state found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Least {
    /// The least state that meets the predicate, and its weight; of those visited, if the search
    /// ended early.
    pub found: Option<(Vec<u32>, u64)>,
    /// How many states the predicate was asked about.
    pub states: u64,
    /// Why the search ended early, if it did.
    pub ended: Option<EarlyEnd>,
}

/// The state of `poset` within `bounds` that meets `predicate` and has the smallest sum of weights,
/// of which there is one for each chain and number of its events, from 0 on. They go up along each
/// chain, or stay the same. Sums stop at the greatest number.
///
/// # Panics
/// If a chain has fewer weights than numbers of events within the bounds.
pub fn least(
    poset: &Poset,
    bounds: &Bounds,
    weights: &[Vec<u64>],
    predicate: impl FnMut(&[u32]) -> bool,
    limits: &Limits<'_>,
) -> Least {
    let plan = Plan::wide(poset, bounds);
    let least = Least { found: None, states: 0, ended: None };
    let Some(layout) = &plan.layout else { return least };
    let Rows::Wide(rows) = &layout.rows else { return least };
    let state = plan.bounds.least.clone();
    let stack = rows.stack();
    let mut search =
        Search { layout, rows, weights, predicate, limits, state, stack, least, nodes: 0 };
    search.least.ended = search.all().break_value();
    search.least
}

struct Search<'a, P> {
    layout: &'a Layout,
    rows: &'a Wide,
    weights: &'a [Vec<u64>],
    predicate: P,
    limits: &'a Limits<'a>,
    state: Vec<u32>,
    stack: Vec<u32>,
    least: Least,
    nodes: u32,
}

/// Where the search is at a level: the next number of events, the last one, and the weight of the
/// chains before.
#[derive(Clone, Copy, Default)]
struct Frame {
    next: u32,
    high: u32,
    weight: u64,
}

impl Frame {
    /// The next number of events.
    fn advance(&mut self) -> Option<u32> {
        let index = self.next;
        self.next = index.saturating_add(1);
        (index <= self.high).then_some(index)
    }
}

impl<P: FnMut(&[u32]) -> bool> Search<'_, P> {
    fn all(&mut self) -> ControlFlow<EarlyEnd> {
        let fixed = self.layout.fixed.iter();
        let weight = fixed.fold(0_u64, |sum, &(chain, index)| {
            sum.saturating_add(self.weights[chain.index()][index as usize])
        });
        let Some(last) = self.layout.levels.len().checked_sub(1) else {
            return self.look(weight).map_continue(|_| ());
        };
        let mut frames = vec![Frame::default(); last + 1];
        let mut level = 0;
        frames[0] = self.frame(0, weight);
        loop {
            if level == last {
                self.run(frames[level])?;
            } else if let Some(index) = frames[level].advance() {
                self.ask()?;
                let weight = frames[level].weight.saturating_add(self.weight(level, index));
                self.rows.enter(&mut self.stack, level, index);
                self.set(level, index);
                if self.is_better(self.bound(level + 1, weight)) {
                    level += 1;
                    frames[level] = self.frame(level, weight);
                } else {
                    // The numbers after it weigh no less, nor do the low ends they leave.
                    frames[level].next = u32::MAX;
                }
                continue;
            }
            let Some(above) = level.checked_sub(1) else { return ControlFlow::Continue(()) };
            level = above;
        }
    }

    fn frame(&self, level: usize, weight: u64) -> Frame {
        let [next, high] = self.rows.range(&self.stack, level, level);
        Frame { next, high, weight }
    }

    /// The states in which all chains but the last have their numbers. The first that meets the
    /// predicate is the least.
    fn run(&mut self, frame: Frame) -> ControlFlow<EarlyEnd> {
        let level = self.layout.levels.len() - 1;
        for index in frame.next..=frame.high {
            let weight = frame.weight.saturating_add(self.weight(level, index));
            if !self.is_better(weight) {
                break;
            }
            self.ask()?;
            self.set(level, index);
            if self.look(weight)? {
                break;
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether the state at hand, of this weight, meets the predicate; it is the least then.
    fn look(&mut self, weight: u64) -> ControlFlow<EarlyEnd, bool> {
        if self.limits.states.is_some_and(|most| self.least.states >= most) {
            return ControlFlow::Break(EarlyEnd::States);
        }
        self.least.states += 1;
        let is_met = (self.predicate)(&self.state);
        if is_met {
            self.least.found = Some((self.state.clone(), weight));
        }
        ControlFlow::Continue(is_met)
    }

    fn is_better(&self, weight: u64) -> bool {
        self.least.found.as_ref().is_none_or(|&(_, least)| weight < least)
    }

    fn set(&mut self, level: usize, index: u32) {
        let (chain, least) = self.layout.levels[level];
        self.state[chain.index()] = least + index;
    }

    fn weight(&self, level: usize, index: u32) -> u64 {
        let (chain, least) = self.layout.levels[level];
        self.weights[chain.index()][(least + index) as usize]
    }

    /// The least that a state weighs whose chains before `level` weigh `weight` together.
    fn bound(&self, level: usize, weight: u64) -> u64 {
        let lows = self.rows.lows(&self.stack, level).iter().enumerate();
        lows.fold(weight, |sum, (place, &low)| sum.saturating_add(self.weight(level + place, low)))
    }

    fn ask(&mut self) -> ControlFlow<EarlyEnd> {
        self.nodes += 1;
        if self.nodes < NODES_BETWEEN {
            return ControlFlow::Continue(());
        }
        self.nodes = 0;
        if self.limits.says_stop() {
            return ControlFlow::Break(EarlyEnd::Stop);
        }
        ControlFlow::Continue(())
    }
}
