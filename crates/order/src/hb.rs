//! Happens-before: which events synchronisation puts before which?
//!
//! The smallest order closed under composition that holds
//!
//! - program order within a thread;
//! - a release before every later acquire of its lock, unless both are in shared mode;
//! - a fork before its thread's events, and those before a join of the thread;
//! - a notify before the wake it caused; all arrivals of a barrier's round before its departures
//!   and before the arrivals of the next; a post before the take that used it;
//! - an atomic write before an atomic read that sees it, whatever their memory orders;
//! - the birth of an object before its end.
//!
//! [`HappensBefore::advance`] takes the events one by one in observed order and gives each one's
//! clock: an event f comes before e, or is e, exactly if f's number in its thread, counted from
//! 1, is at most the clock of e at f's thread. [`mod@reference`] writes the order down pair by pair.
//!
//! Costs one clock operation an event that synchronises, so events times threads in all; keeps a
//! clock for each thread, lock and atomic variable and for each signal on its way.
//!
//! Follows Lamport, "Time, clocks, and the ordering of events in a distributed system" (1978),
//! with vector clocks after Mattern (1989) and Fidge (1988).

pub mod reference;

use reweave_trace::{EventId, ThreadId, Trace};

use crate::clock::VectorClock;
use crate::flow::Flow;

/// The clocks after the events so far.
#[derive(Debug, Default)]
pub struct HappensBefore {
    flow: Flow,
}

impl HappensBefore {
    /// The clocks before any event.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event of `trace` in observed order and gives its clock: the events that
    /// happen before it, itself included.
    pub fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        let happening = trace.event(event);
        let mut clock = self.flow.take(happening.thread);
        self.flow.receive(trace, event, happening, &mut clock);
        clock.tick(happening.thread);
        self.flow.send(trace, event, happening, &clock, &clock);
        self.flow.put(happening.thread, clock)
    }

    /// The clock of the last event of `thread` so far, if it has any.
    #[must_use]
    pub fn of_thread(&self, thread: ThreadId) -> Option<&VectorClock> {
        self.flow.of_thread(thread)
    }
}
