//! Enumeration of consistent states, by the algorithms of the literature: breadth first, in lexical
//! order, and by ParaMount's intervals, in parallel. [`by_chain`](crate::by_chain) is the one of our own.
//!
//! | algorithm | time per state | memory | source |
//! | --- | --- | --- | --- |
//! | [`BreadthFirst`] | n² | the states of two sizes, exponential in n | Cooper and Marzullo (1991), without double visits as in Garg (2003) |
//! | [`Lexical`] | n² | one state | Ganter; Garg, "Enumerating global states of a distributed computation" (2003) |
//! | [`ParaMount`] | that of the algorithm within intervals | two clocks per event | Chang and Garg (2015), Algorithm 1 |
//!
//! n is the number of chains. Each enumerates exactly the states within [`Bounds`], each once.

use std::ops::ControlFlow;

use rayon::prelude::*;
use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset};

/// The states that include `least` and are included in `greatest`, which are states themselves, the
/// one included in the other.
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

/// ParaMount's intervals, in the order of the events: the states whose last event, in the order in
/// which `poset` lists them, is the event. With the empty state, which is in none of them, they are
/// all states, each once.
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

/// Why not all states were visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The visitor wanted no more.
    Visitor,
    /// The states to be visited next did not fit in memory.
    Memory,
}

/// A sequential enumeration algorithm.
pub trait Enumerate: Sync {
    /// Visits each state of `poset` within `bounds` once. A break ends it.
    ///
    /// # Errors
    /// If it did not visit all of them.
    fn visit(
        &self,
        poset: &Poset,
        bounds: &Bounds,
        visit: impl FnMut(&[u32]) -> ControlFlow<()>,
    ) -> Result<(), Stopped>;
}

/// States by their number of events.
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
    fn visit(
        &self,
        poset: &Poset,
        bounds: &Bounds,
        mut visit: impl FnMut(&[u32]) -> ControlFlow<()>,
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
                push_successors(poset, bounds, state, &mut next);
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

/// Whether the next event of `chain` comes after nothing that `state` lacks.
pub(crate) fn is_enabled(poset: &Poset, state: &[u32], chain: usize) -> bool {
    let clock = poset.clock(ChainId::from_index(chain), state[chain] + 1);
    let mut needs = clock.iter().zip(state).enumerate();
    needs.all(|(other, (needed, held))| other == chain || needed <= held)
}

/// Adds to `next` the states with one event more than `state`. A state can be reached from several;
/// it is added from the one that lacks its last removable event, so that none comes twice.
fn push_successors(poset: &Poset, bounds: &Bounds, state: &[u32], next: &mut Vec<u32>) {
    let width = state.len();
    for chain in 0..width {
        if state[chain] == bounds.greatest[chain] || !is_enabled(poset, state, chain) {
            continue;
        }
        next.extend_from_slice(state);
        let start = next.len() - width;
        next[start + chain] += 1;
        let is_last =
            (chain + 1..width).all(|other| !is_removable(poset, bounds, &next[start..], other));
        if !is_last {
            next.truncate(start);
        }
    }
}

/// Whether nothing else in `state` needs the last event of `chain`.
fn is_removable(poset: &Poset, bounds: &Bounds, state: &[u32], chain: usize) -> bool {
    state[chain] > bounds.least[chain]
        && (0..state.len()).all(|other| {
            other == chain
                || poset.clock(ChainId::from_index(other), state[other])[chain] < state[chain]
        })
}

/// States in lexical order, the first chain most significant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lexical;

impl Enumerate for Lexical {
    fn visit(
        &self,
        poset: &Poset,
        bounds: &Bounds,
        visit: impl FnMut(&[u32]) -> ControlFlow<()>,
    ) -> Result<(), Stopped> {
        lexical(poset, bounds, visit)
    }
}

/// Visits the states of `poset` within `bounds` in lexical order.
///
/// The next state follows from the current one alone: some chain, as far to the right as possible,
/// takes one more event, and the chains to its right go back to the least that the chains to its
/// left allow. Bounded as Algorithm 2 of Chang and Garg, whose printed form is corrected: the chain
/// that takes an event is below its bound, and what it needs of each chain is read from that
/// chain's clock.
///
/// # Errors
/// If the visitor ended it.
pub fn lexical(
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

/// Makes `state` the next in lexical order within `bounds`; false if it is the last.
fn advance(poset: &Poset, bounds: &Bounds, state: &mut [u32]) -> bool {
    let can_advance = |&chain: &usize| {
        state[chain] < bounds.greatest[chain] && {
            let clock = poset.clock(ChainId::from_index(chain), state[chain] + 1);
            clock[..chain].iter().zip(&*state).all(|(needed, held)| needed <= held)
        }
    };
    let Some(chain) = (0..state.len()).rev().find(can_advance) else { return false };
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

/// States by [`intervals`], which are disjoint and so can be enumerated in parallel, each by
/// `within`. What visitors gather is joined in the order of the events, so it does not depend on
/// the number of threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParaMount<E> {
    /// How each interval is enumerated.
    pub within: E,
}

/// What visitors of different intervals gather, to be joined.
pub trait Gather: Clone + Send + Sync {
    /// Takes a state; a break ends it all.
    fn visit(&mut self, state: &[u32]) -> ControlFlow<()>;

    /// Adds what another one gathered from later intervals.
    fn join(&mut self, later: Self);
}

/// Into how many tasks the intervals are grouped: most intervals are small.
const TASKS_MAX: usize = 4096;

impl<E: Enumerate> ParaMount<E> {
    /// Enumerates all states of `poset` on the current thread pool. Each task starts with a copy of
    /// `empty`. The empty state, which no line of the paper's algorithm visits, comes first.
    ///
    /// # Errors
    /// What was gathered and why, if it did not visit all of them.
    pub fn gather<G: Gather>(&self, poset: &Poset, empty: &G) -> Result<G, (G, Stopped)> {
        let mut first = empty.clone();
        if first.visit(&vec![0; poset.chains_count()]).is_break() {
            return Err((first, Stopped::Visitor));
        }
        let intervals: Vec<Bounds> = intervals(poset).collect();
        let task = intervals.len().div_ceil(TASKS_MAX).max(1);
        let tasks: Vec<(G, Option<Stopped>)> = intervals
            .par_chunks(task)
            .map(|bounds| {
                let mut gathered = empty.clone();
                let visited = bounds.iter().try_for_each(|bounds| {
                    self.within.visit(poset, bounds, |state| gathered.visit(state))
                });
                (gathered, visited.err())
            })
            .collect();
        let mut stopped = None;
        for (gathered, reason) in tasks {
            first.join(gathered);
            stopped = stopped.or(reason);
        }
        match stopped {
            None => Ok(first),
            Some(reason) => Err((first, reason)),
        }
    }
}
