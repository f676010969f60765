//! Conjunctions of predicates of one chain each: is there a state at which all hold, and is there
//! one on every path?
//!
//! **Some state** ([`least`]). Each chain starts at the first number of events at which its own
//! predicate holds. If some chain must have gone further for another to be where it is, it goes on
//! to the next such number. No state at which all hold is passed by, so where this ends is the
//! least one: each chain has done no more there than in any other.
//!
//! **Every path** ([`is_unavoidable`]). Each chain's predicate holds over intervals of its events.
//! Some set of intervals, one a chain, is met by every path exactly if each begins before each
//! other ends. An interval that ends before another must have begun is no part of such a set, nor
//! with what comes later in the other's chain; so it is let go, and the next tried.
//!
//! Both cost the square of the chains for each number or interval that is let go. Follows Garg and
//! Waldecker, "Detection of weak unstable predicates in distributed programs" (1994) and
//! "Detection of strong unstable predicates in distributed programs" (1996).

use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset};

/// At which numbers of events, in ascending order, the predicate of a chain holds; none if it holds
/// at all of them.
pub type Truths = Option<Vec<u32>>;

/// The least state of `poset` at which the predicate of each chain holds.
///
/// # Panics
/// If there are not as many predicates as chains.
#[must_use]
pub fn least(poset: &Poset, truths: &[Truths]) -> Option<Vec<u32>> {
    assert_eq!(truths.len(), poset.chains_count(), "there is one predicate a chain");
    let mut cut = Vec::with_capacity(truths.len());
    for truths in truths {
        cut.push(first_from(truths, 0)?);
    }
    let mut moved: Vec<usize> = (0..cut.len()).collect();
    while let Some(chain) = moved.pop() {
        let clock = poset.clock(ChainId::from_index(chain), cut[chain]);
        for (other, &needed) in clock.iter().enumerate() {
            if needed > cut[other] {
                cut[other] = first_from(&truths[other], needed)?;
                moved.push(other);
            }
        }
    }
    Some(cut)
}

/// The first number from `start` on at which a predicate holds. What a clock asks for exists.
fn first_from(truths: &Truths, start: u32) -> Option<u32> {
    match truths {
        None => Some(start),
        Some(truths) => truths.get(truths.partition_point(|&index| index < start)).copied(),
    }
}

/// Whether every path through `poset`, from nothing to all, has a state at which the predicate of
/// each chain holds.
///
/// # Panics
/// If there are not as many predicates as chains.
#[must_use]
pub fn is_unavoidable(poset: &Poset, truths: &[Truths]) -> bool {
    assert_eq!(truths.len(), poset.chains_count(), "there is one predicate a chain");
    let intervals: Vec<Vec<Interval>> = poset
        .chains()
        .zip(truths)
        .map(|(chain, truths)| intervals(truths, poset.length(chain)))
        .collect();
    let mut current = vec![0; intervals.len()];
    if intervals.iter().any(Vec::is_empty) {
        return false;
    }
    let mut pending: Vec<usize> = (0..intervals.len()).collect();
    while let Some(chain) = pending.pop() {
        for other in 0..intervals.len() {
            if other == chain {
                continue;
            }
            let (own, theirs) =
                (intervals[chain][current[chain]], intervals[other][current[other]]);
            // Whichever ends too soon is let go, and both are looked at again.
            let ended = if !begins_before_end(poset, chain, own, other, theirs) {
                other
            } else if !begins_before_end(poset, other, theirs, chain, own) {
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

/// A longest run of numbers of events at which a predicate holds.
#[derive(Clone, Copy, Debug)]
struct Interval {
    first: u32,
    /// The event that ends it; none if the chain ends first.
    end: Option<u32>,
}

/// The intervals of a chain of `length` events.
fn intervals(truths: &Truths, length: u32) -> Vec<Interval> {
    let Some(truths) = truths else { return vec![Interval { first: 0, end: None }] };
    let runs = truths.chunk_by(|before, after| before + 1 == *after);
    let interval = |run: &[u32]| {
        let (&first, &last) = (run.first()?, run.last()?);
        Some(Interval { first, end: (last < length).then_some(last + 1) })
    };
    runs.filter_map(interval).collect()
}

/// Whether the event with which `own` begins comes before the one that ends `theirs`.
fn begins_before_end(
    poset: &Poset,
    chain: usize,
    own: Interval,
    other: usize,
    theirs: Interval,
) -> bool {
    let Some(end) = theirs.end else { return true };
    poset.clock(ChainId::from_index(other), end)[chain] >= own.first
}
