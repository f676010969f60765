//! What the orders have in common: clocks that follow the trace event by event.

use reweave_trace::{EventId, Trace};

use crate::clock::VectorClock;
use crate::cp;
use crate::hb::HappensBefore;

/// An order whose clocks are computed event by event.
pub trait Clocks {
    /// Takes the next event of `trace` in observed order and gives the clock that it is tested
    /// against as an access: an earlier access of another thread comes before it exactly if that
    /// access's number in its thread, counted from 1, is at most the clock at that thread.
    fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock;
}

impl Clocks for HappensBefore {
    #[inline]
    fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        Self::advance(self, trace, event)
    }
}

impl Clocks for cp::Clocks<'_> {
    #[inline]
    fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        Self::advance(self, trace, event)
    }
}
