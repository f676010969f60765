//! The definitions of a predictable use after free and of a predictable use after close. For small traces.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use reweave_base::Id;
use reweave_trace::{
    BarrierOp, ConditionOp, EventId, LockOp, ObjectId, ObjectOp, Op, ThreadId, Trace,
};

use crate::memory_orders::unordered_pairs_of;
use crate::reachable::{State, explore};

/// The frees of `trace`, each with an access that can come after it: some correct reordering has run the
/// free of an object, and an access to a part of it is the next event of another thread. None if that cannot be
/// decided in `states_max` states.
#[must_use]
pub fn uses_after_free(trace: &Trace, states_max: usize) -> Option<BTreeSet<(EventId, EventId)>> {
    let names = trace.names();
    uses_after_end(trace, states_max, |_, event| {
        let object = trace.event(event).op.var().and_then(|var| names.object_of(var));
        Vec::from_iter(object.filter(|&object| !names.is_handle(object)))
    })
}

/// The frees of `trace`, each with an access that some correct reordering leaves unordered with it by
/// happens-before; goes through all of them. An atomic write does not count if the freeing thread made an atomic read
/// of the same variable between the two: it saw the write.
#[must_use]
pub fn uses_unordered_with_free(trace: &Trace) -> BTreeSet<(EventId, EventId)> {
    let names = trace.names();
    let is_use = |op: Op, free: Op| {
        let object = op.var().and_then(|var| names.object_of(var));
        object.is_some_and(|object| free == Op::Object(ObjectOp::Free, object))
    };
    let pairs = unordered_pairs_of(trace, |one, other| is_use(one, other) || is_use(other, one));
    let is_access = |event: EventId| trace.event(event).op.var().is_some();
    let pairs = pairs
        .into_iter()
        .map(|(one, other)| if is_access(one) { (other, one) } else { (one, other) });
    let is_seen = |free: EventId, access: EventId| {
        let (op, own) = (trace.event(access).op, trace.event(free).thread);
        let mut between =
            trace.events().filter(|&(id, event)| access < id && id < free && event.thread == own);
        let sees = between.any(|(_, event)| {
            event.op.is_atomic() && event.op.is_read() && event.op.var() == op.var()
        });
        op.is_atomic() && op.is_write() && sees
    };
    pairs.filter(|&(free, access)| !is_seen(free, access)).collect()
}

/// The ends of handles of `trace`, each with a use that can come after it: some correct reordering has run
/// the end, and the use, by another thread, can run then.
#[must_use]
pub fn uses_after_close(trace: &Trace, states_max: usize) -> Option<BTreeSet<(EventId, EventId)>> {
    let names = trace.names();
    let op_at = |event: EventId, offset: i64| {
        let own = trace.thread_events(trace.event(event).thread);
        let at = usize::try_from(i64::from(trace.position(event)) + offset).ok()?;
        own.get(at).map(|&id| trace.event(id).op)
    };
    let releases =
        |op: Option<Op>| matches!(op, Some(Op::Lock(LockOp::Release | LockOp::ReleaseShared, _)));
    let handle = |op: Op| {
        let (code, index) = op.encode();
        names.handle(code.kind().operand(), index)
    };
    uses_after_end(trace, states_max, |state, event| {
        let op = trace.event(event).op;
        let mut used = match op {
            Op::Access(_, var) => Vec::from_iter(names.object_of(var)),
            Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _)
            | Op::Barrier(BarrierOp::Depart, _) => Vec::new(),
            // A wait releases its lock and begins in one step: then the release is the use.
            Op::Condition(ConditionOp::Wait, _) if releases(op_at(event, -1)) => Vec::new(),
            _ => Vec::from_iter(handle(op)),
        };
        if let Some(wait @ Op::Condition(ConditionOp::Wait, _)) = op_at(event, 1)
            && releases(Some(op))
        {
            used.extend(handle(wait));
        }
        used.retain(|&object| names.is_handle(object) && state.may_run(event));
        used
    })
}

/// The `free` events that some state has run, each with the next event of another thread that uses the object,
/// as `used` says.
fn uses_after_end(
    trace: &Trace,
    states_max: usize,
    used: impl Fn(State<'_>, EventId) -> Vec<ObjectId>,
) -> Option<BTreeSet<(EventId, EventId)>> {
    let mut found = BTreeSet::new();
    let explored = explore(trace, states_max, |state| {
        let threads = (0..trace.names().threads.len()).map(ThreadId::from_index);
        for event in threads.filter_map(|thread| state.next(thread)) {
            let own = trace.event(event).thread;
            let objects = used(state, event);
            let is_end = |&&id: &&EventId| {
                let Op::Object(ObjectOp::Free, object) = trace.event(id).op else { return false };
                trace.event(id).thread != own && objects.contains(&object)
            };
            found.extend(state.path.iter().filter(is_end).map(|&end| (end, event)));
        }
        ControlFlow::Continue(())
    });
    explored.complete.then_some(found)
}
