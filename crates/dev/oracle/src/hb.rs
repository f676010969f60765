//! Happens-before pair by pair, straight from its definition: cubic, for tests.

use reweave_base::Id;
use reweave_trace::{
    BarrierOp, ConditionOp, EventId, LockOp, ObjectOp, Op, SemaphoreOp, ThreadId, ThreadOp, Trace,
};

use crate::memory_orders::{Sequence, synchronizes};
use crate::relation::Order;

/// The observed order.
impl Sequence for Trace {
    fn op(&self, place: usize) -> Op {
        self.event(EventId::from_index(place)).op
    }

    fn thread(&self, place: usize) -> ThreadId {
        self.event(EventId::from_index(place)).thread
    }
}

/// Happens-before over all events of `trace`.
#[must_use]
pub fn order(trace: &Trace) -> Order {
    Order::closure(trace, |early, late| is_edge(trace, early, late))
}

/// Whether `early`, observed before `late`, is put before it by one rule alone.
#[must_use]
pub fn is_edge(trace: &Trace, early: EventId, late: EventId) -> bool {
    let (from, to) = (trace.event(early), trace.event(late));
    if from.thread == to.thread {
        return true;
    }
    if from.op == Op::Thread(ThreadOp::Fork, to.thread)
        || to.op == Op::Thread(ThreadOp::Join, from.thread)
    {
        return true;
    }
    let signals = trace.signals();
    match (from.op, to.op) {
        (Op::Thread(ThreadOp::Fork, child), Op::Thread(ThreadOp::Join, joined)) => child == joined,
        (
            Op::Lock(LockOp::Release, released),
            Op::Lock(LockOp::Acquire | LockOp::AcquireShared, acquired),
        )
        | (Op::Lock(LockOp::ReleaseShared, released), Op::Lock(LockOp::Acquire, acquired)) => {
            released == acquired
        }
        (
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _),
            Op::Condition(ConditionOp::Wake, _),
        ) => signals.wait_interval(late).and_then(|interval| interval.notify) == Some(early),
        (Op::Barrier(BarrierOp::Arrive, _), Op::Barrier(..)) => {
            let needed =
                signals.needed_generation(late).map(|generation| signals.generation(generation));
            needed.is_some_and(|generation| generation.arrivals.contains(&early))
        }
        (Op::Semaphore(SemaphoreOp::Post, _), Op::Semaphore(SemaphoreOp::Take, _)) => {
            signals.post(late) == Some(early)
        }
        (Op::Access(..) | Op::Fence(_), Op::Access(..) | Op::Fence(_)) => {
            synchronizes(trace, early.index(), late.index())
        }
        (Op::Object(ObjectOp::Alloc, born), Op::Object(ObjectOp::Free, ended)) => born == ended,
        _ => false,
    }
}

/// Whether an edge that is no lock's and no program order leads from `early` to `late`.
pub(crate) fn is_hard_edge(trace: &Trace, early: EventId, late: EventId) -> bool {
    let (from, to) = (trace.event(early), trace.event(late));
    let lock = matches!(
        (from.op, to.op),
        (
            Op::Lock(LockOp::Release | LockOp::ReleaseShared, _),
            Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _)
        )
    );
    from.thread != to.thread && !lock && is_edge(trace, early, late)
}
