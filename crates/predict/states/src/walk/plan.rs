//! What a walk knows before it starts.

use std::ops::ControlFlow;

use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset};

use super::driver::{Driver, Tasks};
use super::pair::PairTables;
use super::rows::{CsrTable, Narrow, Wide};
use super::{Halt, Limits, Visitor};
use crate::bounds::Bounds;
use crate::tables::Tables;

/// The tables of the states of a poset within bounds, to walk them.
#[derive(Clone, Debug)]
pub struct Plan {
    /// None if there are no states.
    pub(super) inner: Option<Inner>,
    /// The states that are walked.
    pub(super) bounds: Bounds,
}

#[derive(Clone, Debug)]
pub(super) struct Inner {
    /// The chains that take part, and the number of events of each in the least state, outermost
    /// first.
    pub(super) levels: Vec<(ChainId, u32)>,
    /// The other chains, which have the same number of events in all states.
    pub(super) fixed: Vec<(ChainId, u32)>,
    /// Of the last two levels, if there are two.
    pub(super) pair: Option<PairTables>,
    pub(super) tasks: Tasks,
    pub(super) kind: Kind,
}

/// The rows that a plan has.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Narrow(Narrow),
    Wide(Wide),
}

impl Plan {
    /// The plan of the states of `poset` within `bounds`.
    ///
    /// # Panics
    /// If `bounds` have not one number a chain.
    #[must_use]
    pub fn new(poset: &Poset, bounds: &Bounds) -> Self {
        Self::with(poset, bounds, Narrow::new)
    }

    /// As [`new`](Self::new), with wide rows even where narrow ones would do. Slower.
    ///
    /// # Panics
    /// If `bounds` have not one number a chain.
    #[must_use]
    pub fn wide(poset: &Poset, bounds: &Bounds) -> Self {
        Self::with(poset, bounds, |_| None)
    }

    fn with(
        poset: &Poset,
        bounds: &Bounds,
        narrow: impl FnOnce(&Tables<u32>) -> Option<Narrow>,
    ) -> Self {
        let Some(bounds) = tightened(poset, bounds) else {
            return Self { inner: None, bounds: bounds.clone() };
        };
        let least = |chain: ChainId| (chain, bounds.least[chain.index()]);
        let takes_part =
            |chain: &ChainId| bounds.least[chain.index()] < bounds.greatest[chain.index()];
        let (mut active, mut fixed): (Vec<_>, Vec<_>) = poset.chains().partition(takes_part);
        if active.is_empty() {
            // There is one state. Some chain is to be its run.
            active.extend(fixed.pop());
        }
        let tables = Tables::<u32>::within(poset, active, &bounds);
        let order = widest_last(&tables);
        let tables = Tables::<u32>::within(poset, order, &bounds);
        let (width, extent) = (tables.width(), tables.lengths.first().copied().unwrap_or(0));
        let pair = (width >= 2).then(|| PairTables::new(&tables, &bounds.least));
        let levels = tables.order.iter().copied().map(least).collect();
        let (kind, tasks) = match narrow(&tables) {
            Some(rows) => {
                let tasks = Tasks::new(&rows, width, extent);
                (Kind::Narrow(rows), tasks)
            }
            None => {
                let rows = Wide { tables };
                let tasks = Tasks::new(&rows, width, extent);
                (Kind::Wide(rows), tasks)
            }
        };
        let inner =
            Inner { levels, fixed: fixed.into_iter().map(least).collect(), pair, tasks, kind };
        Self { inner: Some(inner), bounds }
    }

    /// The least and the greatest of the states; if there are none, what was asked for.
    #[must_use]
    pub const fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Whether there are no states.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.inner.is_none()
    }

    /// The last chain, whose numbers of events make runs. None if there are no chains or no states.
    #[must_use]
    pub fn last(&self) -> Option<ChainId> {
        let &(chain, _) = self.inner.as_ref()?.levels.last()?;
        Some(chain)
    }

    /// Walks all states with `visitor`, on this thread; `acc` is what is known before any chain has
    /// its number.
    ///
    /// # Errors
    /// Why not all states were visited.
    pub fn walk<V: Visitor>(
        &self,
        visitor: &mut V,
        acc: V::Acc,
        limits: &Limits<'_>,
    ) -> Result<(), Halt> {
        let Some(inner) = &self.inner else { return Ok(()) };
        match &inner.kind {
            Kind::Narrow(rows) => walk(inner, rows, visitor, acc, limits),
            Kind::Wide(rows) => walk(inner, rows, visitor, acc, limits),
        }
    }
}

fn walk<R: CsrTable, V: Visitor>(
    inner: &Inner,
    rows: &R,
    visitor: &mut V,
    acc: V::Acc,
    limits: &Limits<'_>,
) -> Result<(), Halt> {
    match Driver::new(inner, rows, visitor, *limits).visit(acc, 0..inner.tasks.count()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(halt) => Err(halt),
    }
}

/// The least and the greatest state within `bounds`, if there is a state: all that the least cut
/// needs, and of the greatest what has all that it needs.
fn tightened(poset: &Poset, bounds: &Bounds) -> Option<Bounds> {
    let width = poset.chains_count();
    assert_eq!(bounds.least.len(), width, "the least state has one number a chain");
    assert_eq!(bounds.greatest.len(), width, "the greatest state has one number a chain");
    let lengths = poset.top();
    if bounds.least.iter().zip(&lengths).any(|(least, length)| least > length) {
        return None;
    }
    let mut least = bounds.least.clone();
    for (chain, &index) in poset.chains().zip(&bounds.least) {
        for (own, &needed) in least.iter_mut().zip(poset.clock(chain, index)) {
            *own = (*own).max(needed);
        }
    }
    let cut: Vec<u32> =
        bounds.greatest.iter().zip(&lengths).map(|(&most, &length)| most.min(length)).collect();
    let mut greatest = cut.clone();
    for (chain, most) in poset.chains().zip(&mut greatest) {
        let is_held = |index: u32| poset.clock(chain, index).iter().zip(&cut).all(|(a, b)| a <= b);
        while !is_held(*most) {
            *most -= 1;
        }
    }
    let is_one = least.iter().zip(&greatest).all(|(least, greatest)| least <= greatest);
    is_one.then_some(Bounds { least, greatest })
}

/// The chains by how wide their windows are, all numbers of events of all other chains together.
fn widest_last(tables: &Tables<u32>) -> Vec<ChainId> {
    let width = tables.width();
    let mut sizes = vec![0_u64; width];
    for (place, &length) in tables.lengths.iter().enumerate() {
        for index in 0..=length {
            let windows = tables.low(place, index).iter().zip(tables.high(place, index));
            for (size, (low, high)) in sizes.iter_mut().zip(windows) {
                *size += u64::from(high - low) + 1;
            }
        }
        // With itself it has no choice.
        sizes[place] -= u64::from(length) + 1;
    }
    let mut places: Vec<usize> = (0..width).collect();
    places.sort_by_key(|&place| sizes[place]);
    places.into_iter().map(|place| tables.order[place]).collect()
}
