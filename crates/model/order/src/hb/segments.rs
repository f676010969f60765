//! Happens-before with a coarser time: a thread's number goes up where it synchronises.
//!
//! Between two events that synchronise a thread's accesses have the same place in the order, so
//! they share a number, that of their *segment*. What goes through the accesses itself then needs
//! no clock operation for them, and can tell by one comparison that nothing has changed since the
//! last.

use reweave_base::Id;
use reweave_trace::{EventId, LockId, OpKind, ThreadId, Trace};

use crate::clock::VectorClock;
use crate::flow::Flow;

/// The clocks of threads, in segments.
///
/// A thread's segments count from 1. Each ends with an event that synchronises and is still part
/// of it. Once e was taken, an event f of another thread happens before it exactly if f's segment
/// is at most the clock of e's thread at f's thread.
#[derive(Debug)]
pub struct Segments {
    flow: Flow,
}

impl Segments {
    /// The clocks before any event of `trace`: each thread is in its first segment.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let mut flow = Flow::closed();
        for (thread, _) in trace.names().threads.entries() {
            flow.tick(thread);
        }
        Self { flow }
    }

    /// The clock of `thread` after its events so far; at `thread` itself, the segment it is in.
    ///
    /// # Panics
    /// If the trace has no such thread.
    #[inline]
    #[must_use]
    pub fn of_thread(&self, thread: ThreadId) -> &VectorClock {
        self.flow.of_thread(thread).expect("each thread has a clock from the start")
    }

    /// Takes the next event of `trace` in observed order and says whether it ended a segment.
    ///
    /// Plain reads may be left out, and plain writes before the first atomic access.
    #[inline]
    pub fn advance(&mut self, trace: &Trace, event: EventId) -> bool {
        let columns = trace.columns();
        let code = columns.codes[event.index()];
        if self.flow.is_silent(code) {
            return false;
        }
        let thread = ThreadId::from_index(columns.threads[event.index()] as usize);
        let lock = || LockId::from_index(columns.operands[event.index()] as usize);
        match code.kind() {
            OpKind::Acquire => self.flow.acquire(thread, lock()),
            OpKind::Release => _ = self.flow.release(thread, lock()),
            _ => self.synchronise(trace, event),
        }
        // What was sent holds the segment that ends here, and nothing after it.
        self.flow.tick(thread);
        true
    }

    /// Takes an event of any kind.
    fn synchronise(&mut self, trace: &Trace, event: EventId) {
        let happening = trace.event(event);
        let mut clock = self.flow.take(happening.thread);
        self.flow.receive(trace, event, happening, &mut clock);
        self.flow.send(trace, event, happening, &clock, &clock);
        self.flow.put(happening.thread, clock);
    }
}
