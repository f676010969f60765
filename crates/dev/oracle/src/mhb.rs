//! Must-happen-before, event by event: which events every correct reordering that runs an event
//! runs before it.

use reweave_base::{Id, IndexVec};
use reweave_trace::{AccessOp, ConditionOp, EventId, ObjectOp, Op, SemaphoreOp, ThreadOp, Trace};

/// Whether each event must happen before each other.
#[derive(Debug)]
pub struct Order {
    before: IndexVec<EventId, Vec<bool>>,
}

impl Order {
    /// Must-happen-before over all events of `trace`, if the reads of `free` may see any write.
    #[must_use]
    pub fn new(trace: &Trace, free: &[EventId]) -> Self {
        let none = vec![false; trace.len()];
        let mut order = Self { before: IndexVec::from_elem(none, trace.len()) };
        // Edges go forward in observed order, so what is before `early` is known by its turn.
        for (late, _) in trace.events() {
            for (early, _) in trace.events().take_while(|&(early, _)| early < late) {
                if is_edge(trace, early, late, free) {
                    let passed_on = order.before[early].clone();
                    let own = &mut order.before[late];
                    own[early.index()] = true;
                    for (slot, is_set) in own.iter_mut().zip(passed_on) {
                        *slot |= is_set;
                    }
                }
            }
        }
        order
    }

    /// Whether `early` must happen before `late`.
    #[must_use]
    pub fn is_before(&self, early: EventId, late: EventId) -> bool {
        self.before[late][early.index()]
    }
}

/// Whether one rule alone puts `early` before `late`.
fn is_edge(trace: &Trace, early: EventId, late: EventId, free: &[EventId]) -> bool {
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
            let round = signals.needed_round(late).map(|round| signals.round(round));
            round.is_some_and(|round| round.arrivals.contains(&early))
        }
        Op::Semaphore(SemaphoreOp::Take, _) => signals.post(late) == Some(early),
        Op::Object(ObjectOp::Free, object) => from.op == Op::Object(ObjectOp::Alloc, object),
        _ => false,
    }
}
