//! Must-happen-before, event by event: which events every correct reordering that runs an event
//! runs before it.

use reweave_trace::{AccessOp, ConditionOp, EventId, ObjectOp, Op, SemaphoreOp, ThreadOp, Trace};

use crate::relation::Order;

/// Must-happen-before over all events of `trace`, if the reads of `free` may see any write.
#[must_use]
pub fn order(trace: &Trace, free: &[EventId]) -> Order {
    Order::closure(trace, |early, late| is_edge(trace, early, late, free))
}

/// Whether one rule alone puts `early`, observed before `late`, before it.
pub(crate) fn is_edge(trace: &Trace, early: EventId, late: EventId, free: &[EventId]) -> bool {
    let (from, to) = (trace.event(early), trace.event(late));
    let signals = trace.signals();
    if from.thread == to.thread || from.op == Op::Thread(ThreadOp::Fork, to.thread) {
        return true;
    }
    match to.op {
        Op::Access(AccessOp::Read | AccessOp::AtomicRead(_) | AccessOp::AtomicUpdate(_), _) => {
            trace.writer(late) == Some(early) && !free.contains(&late)
        }
        Op::Thread(ThreadOp::Join, child) => {
            from.thread == child || from.op == Op::Thread(ThreadOp::Fork, child)
        }
        Op::Condition(ConditionOp::Wake, _) => {
            signals.wait_interval(late).is_some_and(|interval| interval.notify == Some(early))
        }
        Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
            let mut woken =
                signals.woken(late).iter().filter_map(|&wait| signals.wait_interval(wait));
            woken.any(|interval| interval.begin == early)
        }
        Op::Barrier(..) => {
            let generation =
                signals.needed_generation(late).map(|generation| signals.generation(generation));
            generation.is_some_and(|generation| generation.arrivals.contains(&early))
        }
        Op::Semaphore(SemaphoreOp::Take, _) => signals.post(late) == Some(early),
        Op::Object(ObjectOp::Free, object) => from.op == Op::Object(ObjectOp::Alloc, object),
        _ => false,
    }
}
