//! Linear predicates: of each state that does not meet one, some chain has to go on.
//!
//! A predicate is linear if it holds at the intersection of any two states at which it holds. Then
//! each state that does not meet it has a chain that must go further before it can be met, by
//! whatever way; [`least`] lets such chains go on, and what they need with them, until the
//! predicate is met, and so finds the least state that meets it without passing any by.
//!
//! Costs at most the events times the chains and the cost of asking. Follows Chase and Garg,
//! "Detection of global predicates: techniques and their limitations" (1998).

use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset};

/// What a state that does not meet a linear predicate needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forbidden {
    /// The chain that has to go on.
    pub chain: ChainId,
    /// The least number of its events at which the predicate may be met, more than it has done.
    pub until: u32,
}

/// The least state of `poset` of which `forbidden` asks for nothing more.
#[must_use]
pub fn least(
    poset: &Poset,
    mut forbidden: impl FnMut(&[u32]) -> Option<Forbidden>,
) -> Option<Vec<u32>> {
    let mut cut = vec![0; poset.chains_count()];
    while let Some(Forbidden { chain, until }) = forbidden(&cut) {
        debug_assert!(until > cut[chain.index()], "a chain that has to go on goes on");
        if until > poset.length(chain) {
            return None;
        }
        // What comes before the event comes with it, and with that all that comes before.
        for (own, &needed) in cut.iter_mut().zip(poset.clock(chain, until)) {
            *own = needed.max(*own);
        }
    }
    Some(cut)
}
