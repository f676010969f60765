//! More races than the first, each of which can be trusted as much as it.
//!
//! Only the first race of CP is known to be a race or a deadlock that can happen. Once it is
//! reported, a run in which its two accesses keep their order is as good a run as the one
//! observed, so the next race is the first one after making that order a hard edge, of
//! happens-before and CP alike. Some races near the ones reported are lost that way; none is wrong.
//!
//! That holds, as Theorem 1 does, for sections that are well nested.
//!
//! Costs one analysis for each race, and one more.

use reweave_base::IndexVec;
use reweave_trace::{EventId, ThreadId, Trace, VarId};

use super::CausallyPrecedes;
use crate::access::{CONFLICTS, class};

/// Up to `count_max` races of CP in the order of their second accesses: the first one, then each
/// the first that is left when those before it are hard edges.
///
/// Of the races with the earliest second access, the first is the one with the latest first access.
#[must_use]
pub fn first_races(trace: &Trace, count_max: usize) -> Vec<(EventId, EventId)> {
    let mut races: Vec<(EventId, EventId)> = Vec::new();
    while races.len() < count_max {
        let from = races.last().map(|&(_, late)| late);
        let Some(race) = first_race(trace, &races, from) else { break };
        races.push(race);
    }
    races
}

/// The latest access of one class of a thread to a variable.
struct Latest {
    thread: ThreadId,
    class: usize,
    event: EventId,
}

/// The first race whose second access is `from` or later, with `added` to the hard edges.
fn first_race(
    trace: &Trace,
    added: &[(EventId, EventId)],
    from: Option<EventId>,
) -> Option<(EventId, EventId)> {
    let causal = CausallyPrecedes::with(trace, None, added);
    let mut clocks = causal.clocks();
    let mut latest: IndexVec<VarId, Vec<Latest>> = IndexVec::new();
    for (late, event) in trace.events() {
        let Some(var) = event.op.var() else { continue };
        let (thread, class) = (event.thread, class(event.op));
        let accesses = latest.get_or_default(var);
        if from.is_none_or(|from| from <= late) {
            let clock = clocks.advance(trace, late);
            let racing = accesses.iter().filter(|early| {
                early.thread != thread
                    && CONFLICTS[class].contains(&early.class)
                    && clock.get(early.thread) <= trace.position(early.event)
            });
            if let Some(early) = racing.map(|early| early.event).max() {
                return Some((early, late));
            }
        }
        match accesses.iter_mut().find(|own| own.thread == thread && own.class == class) {
            Some(own) => own.event = late,
            None => accesses.push(Latest { thread, class, event: late }),
        }
    }
    None
}
