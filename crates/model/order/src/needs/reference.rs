//! Needs event by event, straight from the definition: for tests.

use reweave_base::{Id, IndexVec};
use reweave_trace::{EventId, Op, Trace};

/// Whether each event needs each other.
#[derive(Debug)]
pub struct Closure {
    needed: IndexVec<EventId, Vec<bool>>,
}

impl Closure {
    /// What the events of `trace` need if the reads of `free` may see any write.
    #[must_use]
    pub fn of(trace: &Trace, free: &[EventId]) -> Self {
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
    if from.thread == to.thread || from.op == Op::Fork(to.thread) {
        return true;
    }
    match to.op {
        Op::Read(_) | Op::AtomicRead(..) | Op::AtomicUpdate(..) => {
            trace.writer(late) == Some(early) && !free.contains(&late)
        }
        Op::Join(child) => from.thread == child || from.op == Op::Fork(child),
        Op::Wake(_) => signals.stay(late).is_some_and(|stay| stay.notify == Some(early)),
        Op::Notify(_) | Op::NotifyAll(_) => {
            let mut woken = signals.woken(late).iter().filter_map(|&wait| signals.stay(wait));
            woken.any(|stay| stay.begin == early)
        }
        Op::Arrive(_) | Op::Depart(_) => {
            let round = signals.needed_round(late).map(|round| signals.round(round));
            round.is_some_and(|round| round.arrivals.contains(&early))
        }
        Op::Take(_) => signals.post(late) == Some(early),
        Op::Free(object) => from.op == Op::Alloc(object),
        _ => false,
    }
}
