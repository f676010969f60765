//! States in lexical order, the first chain most significant.
//!
//! The next state after one is found from it alone: some chain goes one event further, as far to
//! the right as can be, and the chains to its right go back to the least that the chains to its
//! left allow. So nothing is kept but the state at hand.
//!
//! Costs the square of the chains a state. Follows Garg, "Enumerating global states of a
//! distributed computation" (2003) after Ganter, bounded as Algorithm 2 of Chang and Garg, whose
//! print is mended: the chain that goes on is below its bound, and what it needs of each chain is
//! read from that chain's clock.

use std::ops::ControlFlow;

use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset};

use crate::bounds::Bounds;
use crate::enumerate::{Enumerate, Stopped};

/// States in lexical order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lexical;

impl Enumerate for Lexical {
    fn name(&self) -> &'static str {
        "lexical"
    }

    fn visit(
        &self,
        poset: &Poset,
        bounds: &Bounds,
        visit: &mut dyn FnMut(&[u32]) -> ControlFlow<()>,
    ) -> Result<(), Stopped> {
        each(poset, bounds, visit)
    }

    fn each(
        &self,
        poset: &Poset,
        bounds: &Bounds,
        visit: impl FnMut(&[u32]) -> ControlFlow<()>,
    ) -> Result<(), Stopped> {
        each(poset, bounds, visit)
    }
}

/// Visits the states of `poset` within `bounds` in lexical order.
///
/// # Errors
/// If the visitor ended it.
pub fn each(
    poset: &Poset,
    bounds: &Bounds,
    mut visit: impl FnMut(&[u32]) -> ControlFlow<()>,
) -> Result<(), Stopped> {
    let mut state = bounds.least.clone();
    loop {
        if visit(&state).is_break() {
            return Err(Stopped::Visitor);
        }
        if !advance(poset, bounds, &mut state) {
            return Ok(());
        }
    }
}

/// Makes `state` the one after it within `bounds`; false if it is the last.
pub fn advance(poset: &Poset, bounds: &Bounds, state: &mut [u32]) -> bool {
    let can_go_on = |&chain: &usize| {
        state[chain] < bounds.greatest[chain] && {
            let clock = poset.clock(ChainId::from_index(chain), state[chain] + 1);
            clock[..chain].iter().zip(&*state).all(|(needed, held)| needed <= held)
        }
    };
    let Some(chain) = (0..state.len()).rev().find(can_go_on) else { return false };
    state[chain] += 1;
    let (left, right) = state.split_at_mut(chain + 1);
    if right.is_empty() {
        return true;
    }
    right.copy_from_slice(&bounds.least[chain + 1..]);
    for (index, &held) in left.iter().enumerate() {
        let clock = poset.clock(ChainId::from_index(index), held);
        for (own, &needed) in right.iter_mut().zip(&clock[chain + 1..]) {
            *own = (*own).max(needed);
        }
    }
    true
}
