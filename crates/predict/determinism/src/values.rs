//! Values: would another write have given the read another value?
//!
//! Only where the trace says. What an update recorded may be what it read or what it wrote, so it
//! says nothing; the initial value is what a read saw that saw no write.

use reweave_base::IndexVec;
use reweave_trace::{AccessOp, EventId, Op, Trace, VarId};

use crate::accesses::ReadsFrom;

/// What is known of the values of a trace.
#[derive(Debug)]
pub(crate) struct Values<'t> {
    trace: &'t Trace,
    /// The initial value of each variable; empty if the trace has no values.
    initial: IndexVec<VarId, Option<i64>>,
}

impl<'t> Values<'t> {
    pub(crate) fn new(trace: &'t Trace) -> Self {
        if !trace.has_values() {
            return Self { trace, initial: IndexVec::new() };
        }
        let mut initial = IndexVec::from_elem(None, trace.names().vars.len());
        for (id, event) in trace.events() {
            if let Op::Access(AccessOp::Read | AccessOp::AtomicRead(_), var) = event.op
                && trace.writer(id).is_none()
            {
                initial[var] = initial[var].or_else(|| trace.value(id));
            }
        }
        Self { trace, initial }
    }

    /// Whether `write`, or the initial value, would give `reader` another value than it saw.
    pub(crate) fn changes(&self, reader: &ReadsFrom, write: Option<EventId>) -> Option<bool> {
        if self.initial.is_empty() {
            return None;
        }
        let written = |write: Option<EventId>| match write {
            Some(write) => self.value(write),
            None => self.initial[reader.var],
        };
        let seen = reader.read.and_then(|read| self.value(read));
        let seen = seen.or_else(|| written(reader.writer));
        Some(written(write)? != seen?)
    }

    /// The value that `event` read or wrote.
    fn value(&self, event: EventId) -> Option<i64> {
        match self.trace.event(event).op {
            Op::Access(AccessOp::AtomicUpdate(_), _) => None,
            _ => self.trace.value(event),
        }
    }
}
