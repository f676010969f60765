//! The fast walk: states by windows, chain by chain.
//!
//! The chains are gone through in a fixed order. While some of them have a number of events, each
//! other chain has a *window*, the numbers that are consistent with all of those: the greatest of
//! their low rows to the least of their high rows. Every number in a window is one that some state
//! has, so there are no dead ends, no tests and no going back: a node of the walk is a maximum and
//! a minimum of two rows.
//!
//! The last chain is not stepped through: its window is a [run](Visitor::run) of states that differ
//! in one number. For the last two chains, a [`Pair`], nothing of the rows matters but four
//! numbers, and how many states a pair has is known in closed form. The chains with the widest
//! windows come last, so most states are in few runs.
//!
//! A [`Plan`] holds the tables of the states within bounds, for any number of walks. Up to 16
//! chains that take part, each with up to 65 535 events within the bounds, have rows of 16-bit
//! numbers that fit into one vector register each; beyond that rows are as wide as need be. All of
//! it runs with the widest vector instructions that the processor has.
//!
//! Each state within the bounds is visited once. The order is fixed, but not lexical. On several
//! threads the indices of the first two chains are dealt out and what visitors gather is joined in
//! the walk's order, so the result does not depend on how many there are.
//!
//! Costs less than a step a state: one a run at most, if the visitor does no more. Memory is twice
//! the clocks within the bounds and the square of the chains, whatever the number of states.
//! Intervals of states are Chang and Garg's (2015); going by windows is our own.

mod additive;
mod driver;
mod least;
mod pair;
mod plan;
mod rows;
mod split;
mod vector;
mod visitors;

use std::ops::ControlFlow;

use reweave_order::poset::{ChainId, Poset};

use crate::bounds::Bounds;
use crate::enumerate::{Enumerate, Stopped};

pub use additive::Additive;
pub use least::{Least, least};
pub use pair::Pair;
pub use plan::Plan;
pub use split::Join;
pub use visitors::{Count, EachState};

/// What goes along on a walk.
///
/// Its functions are called once a node; mark them `#[inline(always)]`, so that they get the vector
/// instructions of the walk.
pub trait Visitor {
    /// What is known of the chains gone through so far.
    type Acc: Copy;

    /// What is known once `chain`, too, has a number of events. Each chain but the last takes a
    /// step again whenever its number, or that of a chain before it, is another.
    fn step(&mut self, acc: Self::Acc, chain: ChainId, index: u32) -> Self::Acc;

    /// The states in which the last chain has done `low` to `high` events, both included, and the
    /// others what they took steps for. A break ends the walk.
    fn run(&mut self, acc: Self::Acc, low: u32, high: u32) -> ControlFlow<()>;

    /// The states in which the last two chains are in `pair`: a step and a run for each row, unless
    /// the visitor knows better.
    #[inline(always)]
    fn pair(&mut self, acc: Self::Acc, pair: &Pair<'_>) -> ControlFlow<()> {
        for (index, low, high) in pair.runs() {
            let acc = self.step(acc, pair.chain(), index);
            self.run(acc, low, high)?;
        }
        ControlFlow::Continue(())
    }
}

/// When to end a walk before its end.
#[derive(Clone, Copy, Default)]
pub struct Limits<'a> {
    /// The most states to visit.
    pub states: Option<u64>,
    /// Asked about once in a million states, or a run if that is longer: whether to stop.
    pub stop: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Limits<'_> {
    fn says_stop(&self) -> bool {
        self.stop.is_some_and(|stop| stop())
    }
}

/// Why a walk ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The visitor wanted no more.
    Visitor,
    /// As many states as allowed were visited, and there are more.
    States,
    /// It was told to stop.
    Stop,
}

/// States by windows, as one of the ways of going through them. A [`Plan`] can do more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk;

impl Enumerate for Walk {
    fn name(&self) -> &'static str {
        "walk"
    }

    fn visit(
        &self,
        poset: &Poset,
        bounds: &Bounds,
        visit: &mut dyn FnMut(&[u32]) -> ControlFlow<()>,
    ) -> Result<(), Stopped> {
        let plan = Plan::new(poset, bounds);
        let mut each = EachState::new(&plan, visit);
        plan.walk(&mut each, (), &Limits::default()).map_err(|_| Stopped::Visitor)
    }
}
