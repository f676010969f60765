//! Races of a relation straight from its definition: cubic, for tests.

use reweave_order::{cp, hb, shb, wcp};
use reweave_trace::{EventId, Trace};

use super::Relation;
use crate::Race;

/// Every pair of conflicting accesses by different threads that `relation` leaves unordered, in
/// the order of the second access, then the first.
#[must_use]
pub fn races(trace: &Trace, relation: Relation) -> Vec<Race> {
    match relation {
        Relation::HappensBefore => {
            let order = hb::reference::Order::new(trace);
            unordered(trace, |first, second| order.is_before(first, second))
        }
        Relation::Schedulable => {
            let order = shb::reference::Order::new(trace);
            unordered(trace, |first, second| order.is_ordered(first, second))
        }
        Relation::WeakCausal => {
            let order = wcp::reference::Order::new(trace);
            unordered(trace, |first, second| order.is_before(first, second))
        }
        Relation::Causal => {
            let order = cp::reference::Order::new(trace);
            unordered(trace, |first, second| order.is_before(first, second))
        }
    }
}

fn unordered(trace: &Trace, is_before: impl Fn(EventId, EventId) -> bool) -> Vec<Race> {
    let mut races = Vec::new();
    for (second, late) in trace.events() {
        for (first, early) in trace.events().take_while(|&(first, _)| first < second) {
            let conflict = early.thread != late.thread && early.op.conflicts_with(late.op);
            if conflict && !is_before(first, second) {
                races.push(Race { first, second });
            }
        }
    }
    races
}
