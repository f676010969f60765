//! Races of a relation, pair by pair: conflicting accesses that it leaves unordered. Cubic.

use reweave_trace::{EventId, Trace};

use crate::{cp, hb, shb, wcp};

/// The races of happens-before.
#[must_use]
pub fn happens_before(trace: &Trace) -> Vec<(EventId, EventId)> {
    let order = hb::Order::new(trace);
    unordered(trace, |first, second| order.is_before(first, second))
}

/// The races of schedulable happens-before (SHB).
#[must_use]
pub fn schedulable(trace: &Trace) -> Vec<(EventId, EventId)> {
    let order = shb::Order::new(trace);
    unordered(trace, |first, second| order.is_ordered(first, second))
}

/// The races of weak-causally-precedes (WCP).
#[must_use]
pub fn weakly_causal(trace: &Trace) -> Vec<(EventId, EventId)> {
    let order = wcp::Order::new(trace);
    unordered(trace, |first, second| order.is_before(first, second))
}

/// The races of causally-precedes (CP).
#[must_use]
pub fn causal(trace: &Trace) -> Vec<(EventId, EventId)> {
    let order = cp::Order::new(trace);
    unordered(trace, |first, second| order.is_before(first, second))
}

/// Every pair of conflicting accesses by different threads that `is_before` leaves unordered, in the
/// order of the second access, then the first.
fn unordered(
    trace: &Trace,
    is_before: impl Fn(EventId, EventId) -> bool,
) -> Vec<(EventId, EventId)> {
    let mut races = Vec::new();
    for (second, late) in trace.events() {
        for (first, early) in trace.events().take_while(|&(first, _)| first < second) {
            let conflict = early.thread != late.thread && early.op.conflicts_with(late.op);
            if conflict && !is_before(first, second) {
                races.push((first, second));
            }
        }
    }
    races
}
