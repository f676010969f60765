//! ParaMount: states by intervals, one an event, on as many threads as there are.
//!
//! The states whose last event is e, by the order in which the poset lists its events, are those
//! between the clock of e and all that was listed up to e. These intervals are disjoint and, with
//! the empty state, all states; so each can be gone through on its own, by any way of going through
//! states that keeps to bounds. What visitors gather is joined in the order of the events: it does
//! not depend on how many threads there are.
//!
//! Costs what the way it uses costs, plus two clocks an event. Follows Algorithm 1 of Chang and
//! Garg (2015); the empty state, which no line of it visits, comes with the first event.

use std::ops::ControlFlow;

use rayon::prelude::*;
use reweave_order::poset::Poset;

use crate::bounds::{Bounds, intervals};
use crate::enumerate::{Enumerate, Stopped};

/// States by intervals, each gone through by `within`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParaMount<E> {
    /// How each interval is gone through.
    pub within: E,
}

/// What visitors of different intervals gather, to be joined.
pub trait Gather: Clone + Send + Sync {
    /// Takes a state; a break ends it all.
    fn visit(&mut self, state: &[u32]) -> ControlFlow<()>;

    /// Adds what another one gathered from later intervals.
    fn join(&mut self, later: Self);
}

impl<E: Enumerate> Enumerate for ParaMount<E> {
    fn name(&self) -> &'static str {
        "paramount"
    }

    /// Interval by interval, on this thread. `bounds` are cut into intervals of their own.
    fn visit(
        &self,
        poset: &Poset,
        bounds: &Bounds,
        visit: &mut dyn FnMut(&[u32]) -> ControlFlow<()>,
    ) -> Result<(), Stopped> {
        if visit(&bounds.least).is_break() {
            return Err(Stopped::Visitor);
        }
        each_within(poset, bounds, |interval| self.within.visit(poset, interval, visit))
    }
}

impl<E: Enumerate> ParaMount<E> {
    /// Goes through all states of `poset` on the threads of the pool it is called in. Each interval
    /// starts with a copy of `empty`, and what they gather is joined.
    ///
    /// # Errors
    /// What was gathered and why, if it did not visit all of them.
    pub fn gather<G: Gather>(&self, poset: &Poset, empty: &G) -> Result<G, (G, Stopped)> {
        let mut first = empty.clone();
        if first.visit(&vec![0; poset.chains_count()]).is_break() {
            return Err((first, Stopped::Visitor));
        }
        let intervals: Vec<Bounds> = intervals(poset).collect();
        // Pieces of many intervals: most are small.
        let piece = intervals.len().div_ceil(PIECES).max(1);
        let pieces: Vec<(G, Option<Stopped>)> = intervals
            .par_chunks(piece)
            .map(|bounds| {
                let mut gathered = empty.clone();
                let visited = bounds.iter().try_for_each(|bounds| {
                    self.within.each(poset, bounds, |state| gathered.visit(state))
                });
                (gathered, visited.err())
            })
            .collect();
        let mut stopped = None;
        for (gathered, reason) in pieces {
            first.join(gathered);
            stopped = stopped.or(reason);
        }
        match stopped {
            None => Ok(first),
            Some(reason) => Err((first, reason)),
        }
    }
}

/// Into how many pieces the intervals are cut.
const PIECES: usize = 4096;

/// Hands `take` the intervals of the events that `bounds` hold beyond their least state.
fn each_within(
    poset: &Poset,
    bounds: &Bounds,
    mut take: impl FnMut(&Bounds) -> Result<(), Stopped>,
) -> Result<(), Stopped> {
    let mut so_far = bounds.least.clone();
    for (chain, index) in poset.events() {
        let at = reweave_base::Id::index(chain);
        if index <= bounds.least[at] || index > bounds.greatest[at] {
            continue;
        }
        so_far[at] = index;
        let clock = poset.clock(chain, index).iter().zip(&bounds.least);
        let least = clock.map(|(own, least)| *own.max(least)).collect();
        take(&Bounds { least, greatest: so_far.clone() })?;
    }
    Ok(())
}
