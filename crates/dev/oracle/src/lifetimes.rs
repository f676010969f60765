//! The definition of a predictable use after free: some correct reordering has run the free of an object,
//! and an access to a part of it is the next event of another thread. For small traces.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use reweave_base::Id;
use reweave_trace::{EventId, ObjectOp, Op, ThreadId, Trace};

use crate::reachable::explore;

/// The frees of `trace`, each with an access that can come after it; none if that cannot be decided in
/// `states_max` states.
#[must_use]
pub fn uses_after_free(trace: &Trace, states_max: usize) -> Option<BTreeSet<(EventId, EventId)>> {
    let mut found = BTreeSet::new();
    let explored = explore(trace, states_max, |state| {
        let threads = (0..trace.names().threads.len()).map(ThreadId::from_index);
        for access in threads.filter_map(|thread| state.next(thread)) {
            let own = trace.event(access).thread;
            let object = trace.event(access).op.var().and_then(|var| trace.names().object_of(var));
            let Some(object) = object else { continue };
            let is_free = |&&id: &&EventId| {
                let event = trace.event(id);
                event.thread != own && event.op == Op::Object(ObjectOp::Free, object)
            };
            found.extend(state.path.iter().filter(is_free).map(|&free| (free, access)));
        }
        ControlFlow::Continue(())
    });
    explored.complete.then_some(found)
}
