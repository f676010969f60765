//! Needs event by event, straight from the definition: for tests.

use reweave_base::{Id, IndexVec};
use reweave_trace::{AccessOp, ConditionOp, EventId, ObjectOp, Op, SemaphoreOp, ThreadOp, Trace};

/// Whether each event needs each other.
#[derive(Debug)]
pub struct Closure {
    needed: IndexVec<EventId, Vec<bool>>,
}

impl Closure {
    /// What the events of `trace` need if the reads of `free` may see any write.
    #[must_use]
    pub fn new(trace: &Trace, free: &[EventId]) -> Self {
        let none = vec![false; trace.len()];
        let mut closure = Self { needed: IndexVec::from_elem(none, trace.len()) };
        // Every need was observed before: earlier rows are complete.
        for (late, _) in trace.events() {
            for (early, _) in trace.events().take_while(|&(early, _)| early < late) {
                if is_needed(trace, early, late, free) {
                    let passed_on = closure.needed[early].clone();
                    let own = &mut closure.needed[late];
                    own[early.index()] = true;
                    for (slot, is_set) in own.iter_mut().zip(passed_on) {
                        *slot |= is_set;
                    }
                }
            }
        }
        closure
    }

    /// Whether `late` needs `early`.
    #[must_use]
    pub fn holds(&self, early: EventId, late: EventId) -> bool {
        self.needed[late][early.index()]
    }
}

/// Whether `late` needs `early` at first hand.
fn is_needed(trace: &Trace, early: EventId, late: EventId, free: &[EventId]) -> bool {
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
            signals.stay(late).is_some_and(|stay| stay.notify == Some(early))
        }
        Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
            let mut woken = signals.woken(late).iter().filter_map(|&wait| signals.stay(wait));
            woken.any(|stay| stay.begin == early)
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
