//! Exact races straight from their definition, by going through all states: for tests.

use reweave_reorder::{Answer, Query, reference};
use reweave_trace::Trace;

use crate::Race;

/// Every pair of conflicting accesses that some correct reordering makes next at once, in the order
/// of the second access, then the first; none if there are more than `states_max` states.
#[must_use]
pub fn races(trace: &Trace, states_max: usize) -> Option<Vec<Race>> {
    let mut races = Vec::new();
    for (second, late) in trace.events() {
        for (first, early) in trace.events().take_while(|&(first, _)| first < second) {
            if early.thread == late.thread || !early.op.conflicts_with(late.op) {
                continue;
            }
            match reference::search(trace, &Query::enabled(&[first, second]), states_max) {
                Answer::Feasible(_) => races.push(Race { first, second }),
                Answer::Infeasible(_) => {}
                Answer::Unknown => return None,
            }
        }
    }
    Some(races)
}
