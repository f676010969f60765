//! Lifetimes: from a thread's fork, or the start, to its last event.

use reweave_base::IndexVec;

use crate::op::{EventId, Op, ThreadId, ThreadOp};
use crate::trace::Trace;

/// Where a thread starts and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// The event that started it; none if it was there from the start.
    pub fork: Option<EventId>,
    /// Its first event; none if it never runs.
    pub first: Option<EventId>,
    /// Its last event.
    pub last: Option<EventId>,
    /// The first event that waited for its end.
    pub join: Option<EventId>,
}

/// The lifetime of every thread.
pub(super) fn lifetimes(trace: &Trace) -> IndexVec<ThreadId, Lifetime> {
    let mut lifetimes = IndexVec::from_elem(Lifetime::default(), trace.names().threads.len());
    for (id, event) in trace.events() {
        let own = &mut lifetimes[event.thread];
        own.first.get_or_insert(id);
        own.last = Some(id);
        match event.op {
            Op::Thread(ThreadOp::Fork, child) => lifetimes[child].fork = Some(id),
            Op::Thread(ThreadOp::Join, child) => _ = lifetimes[child].join.get_or_insert(id),
            _ => {}
        }
    }
    lifetimes
}
