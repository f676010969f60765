//! SHB pair by pair, straight from its definition: cubic, for tests.

use reweave_trace::Trace;

use crate::hb::is_edge;
use crate::relation::Order;

/// SHB over all events of `trace`.
#[must_use]
pub fn order(trace: &Trace) -> Order {
    Order::closure(trace, |early, late| {
        is_edge(trace, early, late) || trace.writer(late) == Some(early)
    })
}

/// SHB but for the edge from the write that the later event saw: of two conflicting accesses, those
/// that this orders are no race.
#[must_use]
pub fn tested(trace: &Trace) -> Order {
    order(trace).then(trace, |early, late| is_edge(trace, early, late))
}
