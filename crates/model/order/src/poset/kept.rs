//! The order that every cut of a run keeps: a trace cut there, run as observed, could have happened.
//!
//! Happens-before; each read after the write that it saw; and, of each condition and each barrier,
//! every event after those before it, the begin of a wait among them. A set of events that holds, with an event, all that come
//! before it by this order is a correct reordering when it is run as observed: each read finds its
//! writer, each acquire the releases before it, each wait what it was woken by and each notify the
//! waits that it found. So a global state of this order is one that some run reaches.
//!
//! It is schedulable happens-before ([`shb`](crate::shb)) with its exception taken away. Reads of
//! unknown writers come after no write. Not promised: that a set that is not closed in this way
//! could not have happened.
//!
//! Costs what schedulable happens-before costs, and a clock operation at each event of a condition
//! or a barrier.

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::{AccessOp, BarrierId, ConditionId, ConditionOp, EventId, Op, Trace, VarId};

use crate::clock::VectorClock;
use crate::flow::Flow;

/// The clocks after the events so far.
#[derive(Debug)]
pub struct TraceOrder {
    flow: Flow,
    writes: IndexVec<VarId, VectorClock>,
    conditions: IndexVec<ConditionId, VectorClock>,
    barriers: IndexVec<BarrierId, VectorClock>,
    /// The releases that waits begin with.
    begins: FxHashMap<EventId, ConditionId>,
}

impl TraceOrder {
    /// The clocks before any event of `trace`.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let begins = trace.signals().stays().iter().filter(|stay| stay.begin != stay.wait);
        let begins = begins.filter_map(|stay| match trace.event(stay.wait).op {
            Op::Condition(ConditionOp::Wait, condition) => Some((stay.begin, condition)),
            _ => None,
        });
        Self {
            begins: begins.collect(),
            flow: Flow::closed(),
            writes: IndexVec::new(),
            conditions: IndexVec::new(),
            barriers: IndexVec::new(),
        }
    }

    /// Takes the next event of `trace` in observed order and gives its clock: what comes before
    /// it, itself included.
    pub fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        let happening = trace.event(event);
        let thread = happening.thread;
        let mut clock = self.flow.take(thread);
        self.flow.receive(trace, event, happening, &mut clock);
        clock.tick(thread);
        if let Some(&condition) = self.begins.get(&event) {
            meet(self.conditions.get_or_default(condition), &mut clock);
        }
        match happening.op {
            Op::Access(AccessOp::Read | AccessOp::AtomicRead(_), var) => {
                clock.join(self.writes.get_or_default(var))
            }
            Op::Access(AccessOp::Write | AccessOp::AtomicWrite(_), var) => {
                self.writes.get_or_default(var).copy_from(&clock);
            }
            Op::Access(AccessOp::AtomicUpdate(_), var) => {
                meet(self.writes.get_or_default(var), &mut clock)
            }
            Op::Condition(_, condition) => {
                meet(self.conditions.get_or_default(condition), &mut clock);
            }
            Op::Barrier(_, barrier) => {
                meet(self.barriers.get_or_default(barrier), &mut clock);
            }
            Op::Access(AccessOp::UnknownRead, _)
            | Op::Fence(_)
            | Op::Lock(..)
            | Op::Thread(..)
            | Op::Semaphore(..)
            | Op::Object(..)
            | Op::Block(..)
            | Op::Branch
            | Op::Let(_) => {}
        }
        self.flow.send(trace, event, happening, &clock, &clock);
        self.flow.put(thread, clock)
    }
}

/// Puts an event with `clock` after all that `last` holds, and lets the next come after it.
fn meet(last: &mut VectorClock, clock: &mut VectorClock) {
    clock.join(last);
    last.copy_from(clock);
}
