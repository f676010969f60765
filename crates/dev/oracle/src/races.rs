//! Races of a relation, pair by pair: conflicting accesses that it leaves unordered. Cubic.

use reweave_trace::{EventId, Trace};

use crate::relation::Order;
use crate::{cp, hb, shb, wcp};

/// The races of happens-before.
#[must_use]
pub fn happens_before(trace: &Trace) -> Vec<(EventId, EventId)> {
    unordered(trace, &hb::order(trace))
}

/// The races of schedulable happens-before (SHB).
#[must_use]
pub fn schedulable(trace: &Trace) -> Vec<(EventId, EventId)> {
    unordered(trace, &shb::tested(trace))
}

/// The races of weak-causally-precedes (WCP).
#[must_use]
pub fn weakly_causal(trace: &Trace) -> Vec<(EventId, EventId)> {
    unordered(trace, &wcp::order(trace))
}

/// The races of causally-precedes (CP).
#[must_use]
pub fn causal(trace: &Trace) -> Vec<(EventId, EventId)> {
    unordered(trace, &cp::order(trace))
}

/// Every pair of conflicting accesses by different threads that `order` leaves unordered, by the second
/// access, then by the first.
fn unordered(trace: &Trace, order: &Order) -> Vec<(EventId, EventId)> {
    let mut races = Vec::new();
    for (second, late) in trace.events() {
        for (first, early) in trace.events().take_while(|&(first, _)| first < second) {
            let conflict = early.thread != late.thread && early.op.conflicts_with(late.op);
            if conflict && !order.is_before(first, second) {
                races.push((first, second));
            }
        }
    }
    races
}
