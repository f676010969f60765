//! Intervals of states: those between two of them.

use reweave_base::Id;
use reweave_order::poset::Poset;

/// The states that hold `least` and are held by `greatest`, which are states themselves, the one
/// held by the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The least of them.
    pub least: Vec<u32>,
    /// The greatest of them.
    pub greatest: Vec<u32>,
}

impl Bounds {
    /// All states of `poset`.
    #[must_use]
    pub fn all(poset: &Poset) -> Self {
        Self { least: vec![0; poset.chains_count()], greatest: poset.top() }
    }
}

/// ParaMount's intervals, in the order of the events: those states whose last event, by the order
/// in which `poset` lists them, is the event. With the empty state, which is in none of them, they
/// are all states, each once.
///
/// The least state of an interval is the event's clock, and the greatest is all that was listed up
/// to the event (Definitions 1 and 2 of Chang and Garg; Lemmas 2 and 3).
pub fn intervals(poset: &Poset) -> impl Iterator<Item = Bounds> {
    let mut so_far = vec![0; poset.chains_count()];
    poset.events().map(move |(chain, index)| {
        so_far[chain.index()] = index;
        Bounds { least: poset.clock(chain, index).to_vec(), greatest: so_far.clone() }
    })
}
