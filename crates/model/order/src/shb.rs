//! Schedulable happens-before (SHB): which conflicting accesses could this very run, cut short,
//! have done at once?
//!
//! Happens-before, and each read comes after the write that it saw. Accesses that happens-before
//! leaves unordered may be kept apart by a read between them that would see another write if they
//! were brought together; here such reads are ordered too. A read may still race with the write
//! that it saw, and with those before it: it is the next step of its thread whatever it would see.
//! So an access is tested against what comes before it *but for* the edge from the write that it
//! saw, and [`SchedulableHappensBefore::advance`] gives the clock of just that.
//!
//! Reads of unknown writers (`r?`) come after no write. An atomic read comes after the write that it
//! sees whatever their memory orders.
//!
//! Promise: two conflicting accesses that are unordered in this sense race in a correct reordering,
//! every such pair and not only the first. What comes before either, without the two themselves, is
//! that reordering, run as observed: it holds with each read its writer, and with each acquire the
//! releases before it. Conditions are the exception, for no edge leads from a wait to the notify
//! that found it, or found it gone. The promise stands if every notify comes after the begin of
//! each wait that it woke and, if it woke all or nobody, after the end of each wait that was over
//! by then, or the notify that ended it. So it does where notifies come under the lock of their
//! waits and no wait times out. Not promised: that a pair in order cannot race.
//!
//! Costs as happens-before does, and a clock operation at each write and at each read of a write
//! that its thread had not seen; keeps a clock for each written variable. `oracle::shb` is the
//! definition.
//!
//! Follows Mathur, Kini and Viswanathan, "What happens-after the first race? Enhancing the
//! predictive power of happens-before based dynamic race detection" (OOPSLA 2018).

use reweave_base::{Id, IndexVec};
use reweave_trace::{EventId, LockId, OpKind, ThreadId, Trace, VarId};

use crate::clock::Clocks;
use crate::clock::VectorClock;
use crate::edge_clocks::EdgeClocks;

/// The clocks after the events so far.
///
/// ```
/// use reweave_order::shb::SchedulableHappensBefore;
///
/// let trace = reweave_testkit::trace("
/// T1    T2
/// w(x)
///       r(x)
///       w(y)
/// ");
/// let t1 = trace.events().next().unwrap().1.thread;
/// let mut clocks = SchedulableHappensBefore::new();
/// let known = trace.events().map(|(event, _)| clocks.advance(&trace, event).get(t1));
/// // A read comes after the write that it saw, and so does all that follows it.
/// assert_eq!(known.collect::<Vec<_>>(), [1, 0, 1]);
/// ```
#[derive(Debug)]
pub struct SchedulableHappensBefore {
    clocks: EdgeClocks,
    writes: IndexVec<VarId, LastWrite>,
    /// The clock that the last event is tested against, if its thread's has moved on.
    tested: VectorClock,
    /// Whether an atomic read comes after an atomic write that it saw only if it acquires it.
    goes_by_memory_orders: bool,
}

/// The last write of a variable.
#[derive(Clone, Debug, Default)]
struct LastWrite {
    /// By whom, and its number in that thread: enough to tell who has seen it.
    by: Option<(ThreadId, u32)>,
    is_atomic: bool,
    clock: VectorClock,
}

impl LastWrite {
    /// The clock of the write, if there is one that `clock` does not hold.
    #[inline]
    fn unseen_by(&self, clock: &VectorClock) -> Option<&VectorClock> {
        let (thread, time) = self.by?;
        (clock.get(thread) < time).then_some(&self.clock)
    }

    #[inline]
    fn replace(&mut self, by: ThreadId, clock: &VectorClock) {
        self.by = Some((by, clock.get(by)));
        self.clock.copy_from(clock);
    }
}

impl Default for SchedulableHappensBefore {
    fn default() -> Self {
        Self::new()
    }
}

impl SchedulableHappensBefore {
    /// The clocks before any event.
    #[must_use]
    pub fn new() -> Self {
        let (writes, tested) = (IndexVec::new(), VectorClock::default());
        Self { clocks: EdgeClocks::closed(), writes, tested, goes_by_memory_orders: false }
    }

    /// The same, but an atomic read comes after an atomic write that it saw only if their memory
    /// orders say so. In a trace without conditions and semaphores, what this leaves unordered is
    /// unordered in the observed run itself, though perhaps no run brings it together.
    #[must_use]
    pub fn by_memory_orders() -> Self {
        Self { goes_by_memory_orders: true, ..Self::new() }
    }

    /// Takes the next event of `trace` in observed order and gives the clock that it is tested
    /// against: what comes before it but for the edge from the write that it saw, and itself.
    #[inline]
    pub fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        let columns = trace.columns();
        let code = columns.codes[event.index()];
        let thread = ThreadId::from_index(columns.threads[event.index()] as usize);
        let operand = columns.operands[event.index()] as usize;
        if !EdgeClocks::is_silent(code) {
            return match code.kind() {
                OpKind::Acquire => {
                    self.clocks.acquire(thread, LockId::from_index(operand));
                    self.clocks.tick(thread)
                }
                OpKind::Release => {
                    self.clocks.tick(thread);
                    self.clocks.release(thread, LockId::from_index(operand))
                }
                _ => self.synchronise(trace, event),
            };
        }
        match code.kind() {
            OpKind::Read => self.read(thread, VarId::from_index(operand)),
            OpKind::Write => {
                let clock = self.clocks.tick(thread);
                let last = self.writes.get_or_default(VarId::from_index(operand));
                last.replace(thread, clock);
                last.is_atomic = false;
                clock
            }
            _ => self.clocks.tick(thread),
        }
    }

    #[inline]
    fn read(&mut self, thread: ThreadId, var: VarId) -> &VectorClock {
        let clock = self.clocks.of_thread_mut(thread);
        clock.tick(thread);
        match self.writes.get_or_default(var).unseen_by(clock) {
            None => clock,
            Some(written) => {
                self.tested.copy_from(clock);
                clock.join(written);
                &self.tested
            }
        }
    }

    /// Takes an event of any kind.
    fn synchronise(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        let happening = trace.event(event);
        let thread = happening.thread;
        let mut clock = self.clocks.take(thread);
        self.clocks.receive(trace, event, happening, &mut clock);
        clock.tick(thread);
        self.tested.copy_from(&clock);
        if let Some(var) = happening.op.var() {
            let last = self.writes.get_or_default(var);
            let is_weak = self.goes_by_memory_orders && last.is_atomic && happening.op.is_atomic();
            if happening.op.is_read()
                && !is_weak
                && let Some(written) = last.unseen_by(&clock)
            {
                clock.join(written);
            }
            if happening.op.is_write() {
                last.replace(thread, &clock);
                last.is_atomic = happening.op.is_atomic();
            }
        }
        self.clocks.send(trace, event, happening, &clock, &clock);
        self.clocks.put(thread, clock);
        &self.tested
    }
}

impl Clocks for SchedulableHappensBefore {
    #[inline]
    fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        Self::advance(self, trace, event)
    }
}
