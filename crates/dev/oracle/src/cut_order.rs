//! The trace-order-preserving relation, pair by pair: happens-before and more, so that every consistent
//! cut is a state of a correct reordering.

use reweave_trace::{EventId, Op, Trace};

use crate::hb::is_edge;
use crate::relation::Order;

/// The trace-order-preserving relation over all events of `trace`.
#[must_use]
pub fn order(trace: &Trace) -> Order {
    Order::closure(trace, |first, second| {
        is_edge(trace, first, second) || is_preserved(trace, first, second)
    })
}

/// Whether `second`, observed after `first`, is a read of it or comes at the same condition or
/// barrier.
fn is_preserved(trace: &Trace, first: EventId, second: EventId) -> bool {
    trace.writer(second) == Some(first)
        || meetings(trace, first).iter().any(|place| meetings(trace, second).contains(place))
}

/// The conditions and barriers that `event` comes at, each as a kind and a number.
fn meetings(trace: &Trace, event: EventId) -> Vec<(u8, u32)> {
    let waits = trace.signals().wait_intervals().iter().filter(|interval| interval.begin == event);
    let mut meetings: Vec<(u8, u32)> =
        waits.filter_map(|interval| own_meeting(trace, interval.wait)).collect();
    meetings.extend(own_meeting(trace, event));
    meetings
}

fn own_meeting(trace: &Trace, event: EventId) -> Option<(u8, u32)> {
    match trace.event(event).op {
        Op::Condition(_, condition) => Some((0, condition.number())),
        Op::Barrier(_, barrier) => Some((1, barrier.number())),
        _ => None,
    }
}
