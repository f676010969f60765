//! For each event the range of each other chain: how many events it must and may have run by then.
//!
//! If chain i has run g events, chain j has run at least `low` of its own, those that happen before
//! event g of i, and at most `high`, the last before an event that needs more than g of i. Two
//! chains are consistent at (g, h) exactly if h is between the two, and a cut is a state exactly if
//! its chains are pairwise consistent. Moreover any pairwise consistent numbers of *some* chains
//! are those of a state (take all that happens before any of their events): there are no dead ends
//! in choosing numbers chain by chain.

use std::hash::Hash;
use std::ops::Not;

use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset};

use crate::enumerate::Bounds;

/// A number of events, in 16 or 32 bits.
pub(crate) trait Index:
    Copy + Ord + Hash + Into<u32> + TryFrom<u32> + Not<Output = Self> + Send + Sync + 'static
{
    /// From a number that fits.
    fn new(index: u32) -> Self {
        let Ok(index) = Self::try_from(index) else {
            unreachable!("narrow tables are for short chains");
        };
        index
    }

    /// As a number.
    #[inline]
    fn get(self) -> u32 {
        self.into()
    }
}

impl Index for u16 {}
impl Index for u32 {}

/// For each chain and number of its events two rows: the least and the greatest number of each
/// chain. Chains have places, in the order in which they get their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Tables<I> {
    /// Which chain comes at each place.
    pub(crate) order: Vec<ChainId>,
    /// How many events each has.
    pub(crate) lengths: Vec<u32>,
    /// For each place, rows of `2 * width` numbers: the low ones, then the high ones.
    pub(crate) rows: Vec<Vec<I>>,
}

impl<I: Index> Tables<I> {
    /// The tables of `poset`, its chains in this `order`.
    pub(crate) fn new(poset: &Poset, order: Vec<ChainId>) -> Self {
        Self::within(poset, order, &Bounds::all(poset))
    }

    /// The tables of the states within `bounds`, which are states; `order` lists at least the
    /// chains that vary there. Numbers of events count from the least state.
    pub(crate) fn within(poset: &Poset, order: Vec<ChainId>, bounds: &Bounds) -> Self {
        let width = order.len();
        let length = |chain: &ChainId| bounds.greatest[chain.index()] - bounds.least[chain.index()];
        let lengths: Vec<u32> = order.iter().map(length).collect();
        let mut rows: Vec<Vec<I>> = lengths
            .iter()
            .map(|&length| vec![I::new(0); (length as usize + 1) * 2 * width])
            .collect();
        for (place, &chain) in order.iter().enumerate() {
            for index in 0..=lengths[place] {
                let start = index as usize * 2 * width;
                let clock = poset.clock(chain, bounds.least[chain.index()] + index);
                for (at, other) in order.iter().enumerate() {
                    let low = clock[other.index()].saturating_sub(bounds.least[other.index()]);
                    rows[place][start + at] = I::new(low);
                }
            }
            for (at, &other) in order.iter().enumerate() {
                fill_high((poset, bounds), (chain, &mut rows[place]), (other, at), width);
            }
        }
        Self { order, lengths, rows }
    }

    /// How many chains there are.
    pub(crate) fn width(&self) -> usize {
        self.order.len()
    }

    /// The least numbers of all chains if the one at `place` has run `index` events.
    #[inline]
    pub(crate) fn low(&self, place: usize, index: u32) -> &[I] {
        let start = index as usize * 2 * self.width();
        &self.rows[place][start..start + self.width()]
    }

    /// The greatest numbers.
    #[inline]
    pub(crate) fn high(&self, place: usize, index: u32) -> &[I] {
        let start = index as usize * 2 * self.width() + self.width();
        &self.rows[place][start..start + self.width()]
    }
}

/// Fills in how many events of `other`, at place `at`, each number of events of `chain` allows.
/// What the events of `other` need of `chain` only grows, so one sweep over both is enough.
fn fill_high<I: Index>(
    (poset, bounds): (&Poset, &Bounds),
    (chain, rows): (ChainId, &mut [I]),
    (other, at): (ChainId, usize),
    width: usize,
) {
    let mut high = bounds.least[other.index()];
    let indices = bounds.least[chain.index()]..=bounds.greatest[chain.index()];
    for (row, index) in indices.enumerate() {
        if chain == other {
            high = index;
        }
        while chain != other
            && high < bounds.greatest[other.index()]
            && poset.clock(other, high + 1)[chain.index()] <= index
        {
            high += 1;
        }
        rows[row * 2 * width + width + at] = I::new(high - bounds.least[other.index()]);
    }
}
