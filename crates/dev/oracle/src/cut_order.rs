//! Which events come before which in a poset of a trace, pair by pair: happens-before, and the
//! trace-order-preserving relation, every consistent cut of which is a state of a correct reordering.
//!
//! For traces of a few dozen events: the order is a matrix that is closed under composition.

use reweave_trace::{EventId, Op, Trace};

use crate::hb::is_edge;

/// Whether each event happens before each, as a matrix; an event comes before itself.
#[must_use]
pub fn happens_before(trace: &Trace) -> Vec<Vec<bool>> {
    closure(trace, |first, second| is_edge(trace, first, second))
}

/// Whether each event comes before each in the trace-order-preserving relation, as a matrix; an
/// event comes before itself.
#[must_use]
pub fn trace_order_preserving(trace: &Trace) -> Vec<Vec<bool>> {
    closure(trace, |first, second| {
        is_edge(trace, first, second) || is_preserved(trace, first, second)
    })
}

fn closure(trace: &Trace, is_edge: impl Fn(EventId, EventId) -> bool) -> Vec<Vec<bool>> {
    let count = trace.len();
    let events: Vec<EventId> = trace.events().map(|(id, _)| id).collect();
    let mut before = vec![vec![false; count]; count];
    for (i, &first) in events.iter().enumerate() {
        for (j, &second) in events.iter().enumerate().skip(i) {
            before[i][j] = i == j || is_edge(first, second);
        }
    }
    for middle in 0..count {
        for i in 0..count {
            for j in 0..count {
                before[i][j] |= before[i][middle] && before[middle][j];
            }
        }
    }
    before
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
