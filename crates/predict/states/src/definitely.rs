//! Is a predicate met on every path, whatever the predicate?
//!
//! A path goes from the state without events to the state with all, an event at a time. All states
//! of one size that some path reaches without meeting the predicate are kept; if there are none of
//! the next size, no path avoids it.
//!
//! Keeps two sizes of states at once, which is exponential in the chains: a limit on how many ends
//! it. Follows Cooper and Marzullo, "Consistent detection of global predicates" (1991). For
//! conjunctions there is [`conjunctive::is_unavoidable`](crate::conjunctive::is_unavoidable).

use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset};

use crate::enumerate::Stopped;

/// Whether every path through `poset` has a state that meets `is_met`.
///
/// # Errors
/// If the states of two sizes would have more than `entries_max` numbers together, or `stop`, which
/// is asked about each state, says so.
pub fn is_unavoidable(
    poset: &Poset,
    entries_max: usize,
    stop: &dyn Fn() -> bool,
    mut is_met: impl FnMut(&[u32]) -> bool,
) -> Result<bool, Stopped> {
    let width = poset.chains_count();
    let bottom = vec![0; width];
    if is_met(&bottom) {
        return Ok(true);
    }
    let mut level = bottom;
    for _ in 0..poset.len() {
        let next = next_level(poset, &level, width, entries_max, stop)?;
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
    width: usize,
    entries_max: usize,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<u32>, Stopped> {
    let mut next = Vec::new();
    // Only when so many more have come is it worth looking for those that are there twice.
    let mut crowded = entries_max.saturating_sub(level.len());
    for state in level.chunks_exact(width) {
        if stop() {
            return Err(Stopped::Visitor);
        }
        for chain in 0..width {
            let id = ChainId::from_index(chain);
            if state[chain] == poset.length(id) {
                continue;
            }
            let clock = poset.clock(id, state[chain] + 1);
            let needs = clock.iter().zip(state).enumerate();
            if needs.into_iter().all(|(other, (needed, held))| other == chain || needed <= held) {
                next.extend_from_slice(state);
                let at = next.len() - width + chain;
                next[at] += 1;
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
