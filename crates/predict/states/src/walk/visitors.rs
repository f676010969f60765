//! Visitors of common use.

use std::ops::ControlFlow;

use reweave_base::Id;
use reweave_order::poset::ChainId;

use super::{Join, Pair, Plan, Visitor};

/// Calls a function for each state.
#[derive(Clone, Debug)]
pub struct EachState<F> {
    state: Vec<u32>,
    /// The last chain; none if there are no chains.
    last: Option<usize>,
    visit: F,
}

impl<F: FnMut(&[u32]) -> ControlFlow<()>> EachState<F> {
    /// For walks of `plan`.
    pub fn new(plan: &Plan, visit: F) -> Self {
        let last = plan.last().map(Id::index);
        Self { state: plan.bounds().least.clone(), last, visit }
    }

    /// The function.
    pub fn into_inner(self) -> F {
        self.visit
    }
}

impl<F: FnMut(&[u32]) -> ControlFlow<()>> Visitor for EachState<F> {
    type Acc = ();

    #[inline(always)]
    fn step(&mut self, (): (), chain: ChainId, index: u32) {
        self.state[chain.index()] = index;
    }

    #[inline(always)]
    fn run(&mut self, (): (), low: u32, high: u32) -> ControlFlow<()> {
        let Some(last) = self.last else { return (self.visit)(&self.state) };
        for index in low..=high {
            self.state[last] = index;
            (self.visit)(&self.state)?;
        }
        ControlFlow::Continue(())
    }
}

/// Counts states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many there were.
    pub states: u128,
}

impl Visitor for Count {
    type Acc = ();

    #[inline(always)]
    fn step(&mut self, (): (), _: ChainId, _: u32) {}

    #[inline(always)]
    fn run(&mut self, (): (), low: u32, high: u32) -> ControlFlow<()> {
        self.states += u128::from(high - low) + 1;
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn pair(&mut self, (): (), pair: &Pair<'_>) -> ControlFlow<()> {
        self.states += u128::from(pair.states_count());
        ControlFlow::Continue(())
    }
}

impl Join for Count {
    fn join(&mut self, later: Self) {
        self.states += later.states;
    }
}
