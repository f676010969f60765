//! States breadth first: by how many events they hold.
//!
//! All states of one size are kept; each goes on by one event in every way it can, and a state is
//! taken from the last of the chains by which it can be reached, so that none comes twice.
//!
//! Keeps two sizes of states at once, which is exponential in the chains: a limit on how many ends
//! it. Costs the square of the chains a state. Follows Cooper and Marzullo, "Consistent detection
//! of global predicates" (1991), with Garg's remedy against double visits (2003).

use std::ops::ControlFlow;

use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset};

use crate::bounds::Bounds;
use crate::enumerate::{Enumerate, Stopped};

/// States breadth first.
#[derive(Clone, Copy, Debug)]
pub struct BreadthFirst {
    /// The most numbers that the states of two sizes may have together.
    pub entries_max: usize,
}

impl Default for BreadthFirst {
    fn default() -> Self {
        Self { entries_max: 1 << 29 }
    }
}

impl Enumerate for BreadthFirst {
    fn name(&self) -> &'static str {
        "bfs"
    }

    fn visit(
        &self,
        poset: &Poset,
        bounds: &Bounds,
        visit: &mut dyn FnMut(&[u32]) -> ControlFlow<()>,
    ) -> Result<(), Stopped> {
        let width = poset.chains_count();
        if width == 0 {
            return if visit(&[]).is_break() { Err(Stopped::Visitor) } else { Ok(()) };
        }
        let mut level = bounds.least.clone();
        let mut next = Vec::new();
        while !level.is_empty() {
            for state in level.chunks_exact(width) {
                if visit(state).is_break() {
                    return Err(Stopped::Visitor);
                }
                grow(poset, bounds, state, &mut next);
                if level.len() + next.len() > self.entries_max {
                    return Err(Stopped::Memory);
                }
            }
            level.clear();
            std::mem::swap(&mut level, &mut next);
        }
        Ok(())
    }
}

/// Adds to `next` the states that hold one event more than `state` and come from it.
fn grow(poset: &Poset, bounds: &Bounds, state: &[u32], next: &mut Vec<u32>) {
    let width = state.len();
    for chain in 0..width {
        if state[chain] == bounds.greatest[chain] {
            continue;
        }
        let clock = poset.clock(ChainId::from_index(chain), state[chain] + 1);
        let is_enabled = clock
            .iter()
            .zip(state)
            .enumerate()
            .all(|(other, (needed, held))| other == chain || needed <= held);
        if !is_enabled {
            continue;
        }
        next.extend_from_slice(state);
        let start = next.len() - width;
        next[start + chain] += 1;
        let is_last =
            (chain + 1..width).all(|other| !could_be_last(poset, bounds, &next[start..], other));
        if !is_last {
            next.truncate(start);
        }
    }
}

/// Whether the last event of `chain` that `state` holds is one that nothing else in it needs.
fn could_be_last(poset: &Poset, bounds: &Bounds, state: &[u32], chain: usize) -> bool {
    state[chain] > bounds.least[chain]
        && (0..state.len()).all(|other| {
            other == chain
                || poset.clock(ChainId::from_index(other), state[other])[chain] < state[chain]
        })
}
