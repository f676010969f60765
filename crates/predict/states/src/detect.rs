//! Predicate detection by form: conjunctive and linear predicates in polynomial time, and
//! `definitely` of any predicate by levels of the lattice of states.
//!
//! | question | function | cost |
//! | --- | --- | --- |
//! | the least state that meets a linear predicate, as a conjunction of local predicates is | [`least_linear`] | events × n, and asking |
//! | does every path meet a conjunction of local predicates | [`definitely_conjunctive`] | n² per interval passed |
//! | does every path meet a predicate | [`definitely`] | the states of two sizes, exponential in n |
//!
//! n is the number of chains. A *path* leads from the empty state to the state with all events, one
//! event at a time.
//!
//! Follows Garg and Waldecker, "Detection of weak unstable predicates in distributed programs"
//! (1994) and "Detection of strong unstable predicates in distributed programs" (1996); Chase and
//! Garg, "Detection of global predicates: techniques and their limitations" (1998); Cooper and
//! Marzullo, "Consistent detection of global predicates" (1991).

use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset};

use crate::enumerate::{Stopped, is_enabled};

/// At which numbers of events, in ascending order, the local predicate of a chain holds; none if it
/// holds at all of them.
pub type Truths = Option<Vec<u32>>;

/// What a state that does not meet a linear predicate needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forbidden {
    /// The chain that has to advance.
    pub chain: ChainId,
    /// The least number of its events at which the predicate may be met, more than it has run.
    pub until: u32,
}

/// The least state of `poset` that meets a linear predicate: one that holds at the intersection of
/// any two states at which it holds.
///
/// Each state that does not meet it has a chain that must advance on every path to one that does;
/// `forbidden` names it, or none if the state meets the predicate.
#[must_use]
pub fn least_linear(
    poset: &Poset,
    mut forbidden: impl FnMut(&[u32]) -> Option<Forbidden>,
) -> Option<Vec<u32>> {
    let mut cut = vec![0; poset.chains_count()];
    while let Some(Forbidden { chain, until }) = forbidden(&cut) {
        debug_assert!(until > cut[chain.index()], "a chain that has to advance advances");
        if until > poset.length(chain) {
            return None;
        }
        // With the event comes all that happens before it.
        for (own, &needed) in cut.iter_mut().zip(poset.clock(chain, until)) {
            *own = needed.max(*own);
        }
    }
    Some(cut)
}

/// Whether every path through `poset` has a state at which the local predicate of each chain holds.
///
/// A local predicate holds over intervals of its chain's events. Every path meets the conjunction
/// exactly if there are intervals, one per chain, each of which begins before each other one ends.
/// An interval that ends before another must have begun is in no such set, since later intervals of
/// the other's chain begin even later; so it is passed and the next one is tried.
///
/// # Panics
/// If there are not as many predicates as chains.
#[must_use]
pub fn definitely_conjunctive(poset: &Poset, truths: &[Truths]) -> bool {
    assert_eq!(truths.len(), poset.chains_count(), "there is one predicate per chain");
    let intervals: Vec<Vec<TrueInterval>> = poset
        .chains()
        .zip(truths)
        .map(|(chain, truths)| true_intervals(truths, poset.length(chain)))
        .collect();
    if intervals.iter().any(Vec::is_empty) {
        return false;
    }
    let begins_before_end = |own: (usize, TrueInterval), other: (usize, TrueInterval)| {
        let clock_at = |end| poset.clock(ChainId::from_index(other.0), end);
        other.1.end.is_none_or(|end| clock_at(end)[own.0] >= own.1.first)
    };
    let mut current = vec![0; intervals.len()];
    let mut pending: Vec<usize> = (0..intervals.len()).collect();
    while let Some(chain) = pending.pop() {
        for other in (0..intervals.len()).filter(|&other| other != chain) {
            let [own, theirs] = [chain, other].map(|at| (at, intervals[at][current[at]]));
            // Whichever ends too soon is passed, and compared with all others again.
            let ended = if !begins_before_end(own, theirs) {
                other
            } else if !begins_before_end(theirs, own) {
                chain
            } else {
                continue;
            };
            current[ended] += 1;
            if current[ended] == intervals[ended].len() {
                return false;
            }
            pending.push(ended);
            if ended == chain {
                break;
            }
        }
    }
    true
}

/// A longest run of numbers of events at which a local predicate holds.
#[derive(Clone, Copy, Debug)]
struct TrueInterval {
    first: u32,
    /// The event that ends it; none if it holds to the end of the chain.
    end: Option<u32>,
}

fn true_intervals(truths: &Truths, length: u32) -> Vec<TrueInterval> {
    let Some(truths) = truths else { return vec![TrueInterval { first: 0, end: None }] };
    let runs = truths.chunk_by(|before, after| before + 1 == *after);
    let interval = |run: &[u32]| {
        let (&first, &last) = (run.first()?, run.last()?);
        Some(TrueInterval { first, end: (last < length).then_some(last + 1) })
    };
    runs.filter_map(interval).collect()
}

/// Whether every path through `poset` has a state that meets `is_met`.
///
/// Keeps all states of one size that some path reaches without meeting the predicate. If there are
/// none of the next size, no path avoids it.
///
/// # Errors
/// If the states of two sizes would have more than `entries_max` numbers together, or `stop`, which
/// is asked about each state, says so.
pub fn definitely(
    poset: &Poset,
    entries_max: usize,
    stop: &dyn Fn() -> bool,
    mut is_met: impl FnMut(&[u32]) -> bool,
) -> Result<bool, Stopped> {
    let width = poset.chains_count();
    let mut level = vec![0; width];
    if is_met(&level) {
        return Ok(true);
    }
    for _ in 0..poset.len() {
        let next = next_level(poset, &level, entries_max, stop)?;
        level.clear();
        for state in next.chunks_exact(width) {
            if !is_met(state) {
                level.extend_from_slice(state);
            }
        }
        if level.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The states with one event more than those of `level`, each once.
fn next_level(
    poset: &Poset,
    level: &[u32],
    entries_max: usize,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<u32>, Stopped> {
    let width = poset.chains_count();
    let mut next = Vec::new();
    // Duplicates are only removed when there would be too many numbers otherwise.
    let mut crowded = entries_max.saturating_sub(level.len());
    for state in level.chunks_exact(width) {
        if stop() {
            return Err(Stopped::Visitor);
        }
        for chain in poset.chains() {
            let at = chain.index();
            if state[at] < poset.length(chain) && is_enabled(poset, state, at) {
                next.extend_from_slice(state);
                let start = next.len() - width;
                next[start + at] += 1;
            }
        }
        if next.len() > crowded {
            next = distinct(&next, width);
            if level.len() + next.len() > entries_max {
                return Err(Stopped::Memory);
            }
            crowded = entries_max.saturating_sub(level.len()).max(2 * next.len());
        }
    }
    Ok(distinct(&next, width))
}

/// The states of `states`, each once.
fn distinct(states: &[u32], width: usize) -> Vec<u32> {
    let mut rows: Vec<&[u32]> = states.chunks_exact(width).collect();
    rows.sort_unstable();
    rows.dedup();
    rows.concat()
}
