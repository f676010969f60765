//! States by their definition: every cut, and whether it is consistent. For small posets.

use reweave_order::poset::Poset;

use crate::bounds::Bounds;

/// The states of `poset` within `bounds`, in lexical order.
#[must_use]
pub fn states(poset: &Poset, bounds: &Bounds) -> Vec<Vec<u32>> {
    let mut states = Vec::new();
    let mut cut = bounds.least.clone();
    loop {
        if poset.is_consistent(&cut) {
            states.push(cut.clone());
        }
        // The next cut, as a number whose last digit counts fastest.
        let Some(place) = (0..cut.len()).rev().find(|&at| cut[at] < bounds.greatest[at]) else {
            return states;
        };
        cut[place] += 1;
        cut[place + 1..].copy_from_slice(&bounds.least[place + 1..]);
    }
}
