//! Every pattern, tried in every reordering: for tests.

use reweave_reorder::{Answer, reference};
use reweave_trace::{EventId, Trace};

use super::{Pattern, queries};
use crate::blocks::Blocks;
use crate::conflict;

/// Every pattern of `trace`, in order.
#[must_use]
pub fn patterns(trace: &Trace, blocks: &Blocks) -> Vec<Pattern> {
    let events: Vec<EventId> = trace.events().map(|(id, _)| id).collect();
    let op = |event: EventId| trace.event(event).op;
    let mut patterns = Vec::new();
    for (id, block) in blocks.entries() {
        let own = || block.events(trace).iter().copied();
        let pairs = own().flat_map(|first| own().map(move |second| (first, second)));
        for (first, second) in pairs.filter(|(first, second)| first < second) {
            let others = events.iter().filter(|&&other| trace.event(other).thread != block.thread);
            for &early in others.clone().filter(|&&early| conflict(op(first), op(early))) {
                let is_late = |&&late: &&EventId| {
                    let is_one_thread = trace.event(early).thread == trace.event(late).thread;
                    is_one_thread && early <= late && conflict(op(late), op(second))
                };
                for &late in others.clone().filter(is_late) {
                    patterns.push(Pattern { block: id, first, between: [early, late], second });
                }
            }
        }
    }
    patterns.sort_unstable();
    patterns
}

/// Whether some reordering shows `pattern`; none if there are more than `states_max` states.
#[must_use]
pub fn is_shown(trace: &Trace, pattern: &Pattern, states_max: usize) -> Option<bool> {
    for query in queries(trace, pattern) {
        match reference::search(trace, &query, states_max) {
            Answer::Feasible(_) => return Some(true),
            Answer::Infeasible(_) => {}
            Answer::Unknown => return None,
        }
    }
    Some(false)
}
