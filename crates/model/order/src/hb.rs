//! Happens-before: which events synchronisation puts before which?
//!
//! The smallest order closed under composition that holds
//!
//! - program order within a thread;
//! - a release before every later acquire of its lock, unless both are in shared mode;
//! - a fork before its thread's events, and those before a join of the thread;
//! - a notify before the wake it caused; all arrivals of a barrier's generation before its departures
//!   and before the arrivals of the next; a post before the take that used it;
//! - an atomic write, or a release fence before it, before an atomic read that sees its value or what
//!   read-modify-writes made of it, or an acquire fence after that, as their memory orders say;
//! - the birth of an object before its end.
//!
//! [`HappensBefore::advance`] takes the events one by one in observed order and gives each one's
//! clock: an event f comes before e, or is e, exactly if f's number in its thread, counted from
//! 1, is at most the clock of e at f's thread. `oracle::hb` writes the order down pair by pair.
//!
//! Costs a constant an access and one clock operation an event that synchronises, so events times
//! threads at most; keeps a clock for each thread and lock, and for each signal and each release
//! of an atomic on its way. [`Segments`] counts more coarsely, for callers that look at accesses themselves.
//!
//! Follows Lamport, "Time, clocks, and the ordering of events in a distributed system" (1978),
//! with vector clocks after Mattern (1989) and Fidge (1988).

use reweave_base::Id;
use reweave_trace::{EventId, LockId, OpKind, ThreadId, Trace};

use crate::clock::VectorClock;
use crate::edge_clocks::EdgeClocks;

/// The clocks after the events so far.
///
/// ```
/// use reweave_order::hb::HappensBefore;
///
/// let trace = reweave_testkit::trace("
/// T1       T2
/// w(x)
/// fork(T2)
/// w(x)
///          r(y)
/// ");
/// let mut clocks = HappensBefore::new();
/// let events: Vec<_> = trace.events().collect();
/// let known: Vec<u32> = events
///     .iter()
///     .map(|&(event, _)| clocks.advance(&trace, event).get(events[0].1.thread))
///     .collect();
/// // The new thread knows of the fork and of what came before it.
/// assert_eq!(known, [1, 2, 3, 2]);
/// ```
#[derive(Debug)]
pub struct HappensBefore {
    clocks: EdgeClocks,
}

impl Default for HappensBefore {
    fn default() -> Self {
        Self::new()
    }
}

impl HappensBefore {
    /// The clocks before any event.
    #[must_use]
    pub fn new() -> Self {
        Self { clocks: EdgeClocks::closed() }
    }

    /// Takes the next event of `trace` in observed order and gives its clock: the events that
    /// happen before it, itself included.
    #[inline]
    pub fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        let columns = trace.columns();
        let code = columns.codes[event.index()];
        let thread = ThreadId::from_index(columns.threads[event.index()] as usize);
        if EdgeClocks::is_silent(code) {
            return self.clocks.tick(thread);
        }
        let lock = || LockId::from_index(columns.operands[event.index()] as usize);
        match code.kind() {
            OpKind::Acquire => {
                self.clocks.acquire(thread, lock());
                self.clocks.tick(thread)
            }
            OpKind::Release => {
                self.clocks.tick(thread);
                self.clocks.release(thread, lock())
            }
            _ => self.synchronise(trace, event),
        }
    }

    /// Takes an event of any kind.
    fn synchronise(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        let happening = trace.event(event);
        let mut clock = self.clocks.take(happening.thread);
        self.clocks.receive(trace, event, happening, &mut clock);
        clock.tick(happening.thread);
        self.clocks.send(trace, event, happening, &clock, &clock);
        self.clocks.put(happening.thread, clock)
    }

    /// The clock of the last event of `thread` so far, if it has any.
    #[must_use]
    pub fn of_thread(&self, thread: ThreadId) -> Option<&VectorClock> {
        self.clocks.of_thread(thread)
    }
}

// Happens-before with a coarser time: a thread's number goes up where it synchronises.
//
// Between two events that synchronise a thread's accesses have the same place in the order, so
// they share a number, that of their *segment*. A caller that visits the accesses itself then needs
// no clock operation for them, and sees by one comparison that nothing has changed since the last.

/// The clocks of threads, in segments.
///
/// A thread's segments count from 1. Each ends with an event that synchronises and is still part
/// of it. Once e was taken, an event f of another thread happens before it exactly if f's segment
/// is at most the clock of e's thread at f's thread.
#[derive(Debug)]
pub struct Segments {
    clocks: EdgeClocks,
}

impl Segments {
    /// The clocks before any event of `trace`: each thread is in its first segment.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let mut clocks = EdgeClocks::closed();
        for (thread, _) in trace.names().threads.entries() {
            clocks.tick(thread);
        }
        Self { clocks }
    }

    /// The clock of `thread` after its events so far; at `thread` itself, the segment it is in.
    ///
    /// # Panics
    /// If the trace has no such thread.
    #[inline]
    #[must_use]
    pub fn of_thread(&self, thread: ThreadId) -> &VectorClock {
        self.clocks.of_thread(thread).expect("each thread has a clock from the start")
    }

    /// Takes the next event of `trace` in observed order and says whether it ended a segment.
    ///
    /// Plain accesses may be left out.
    #[inline]
    pub fn advance(&mut self, trace: &Trace, event: EventId) -> bool {
        let columns = trace.columns();
        let code = columns.codes[event.index()];
        if EdgeClocks::is_silent(code) {
            return false;
        }
        let thread = ThreadId::from_index(columns.threads[event.index()] as usize);
        let lock = || LockId::from_index(columns.operands[event.index()] as usize);
        match code.kind() {
            OpKind::Acquire => self.clocks.acquire(thread, lock()),
            OpKind::Release => _ = self.clocks.release(thread, lock()),
            _ => self.synchronise(trace, event),
        }
        // What was sent holds the segment that ends here, and nothing after it.
        self.clocks.tick(thread);
        true
    }

    /// Takes an event of any kind.
    fn synchronise(&mut self, trace: &Trace, event: EventId) {
        let happening = trace.event(event);
        let mut clock = self.clocks.take(happening.thread);
        self.clocks.receive(trace, event, happening, &mut clock);
        self.clocks.send(trace, event, happening, &clock, &clock);
        self.clocks.put(happening.thread, clock);
    }
}
