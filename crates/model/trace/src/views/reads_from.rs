//! Reads-from: the last write before each read.

use reweave_base::IndexVec;

use crate::op::{AccessOp, EventId, Op, VarId};
use crate::trace::Trace;

/// For each event the write it saw, where it is a read with a known writer that saw one.
pub(super) fn writers(trace: &Trace) -> IndexVec<EventId, Option<EventId>> {
    let mut last: IndexVec<VarId, Option<EventId>> =
        IndexVec::from_elem(None, trace.names().vars.len());
    let mut writers = IndexVec::from_elem(None, trace.len());
    for (id, event) in trace.events() {
        let Some(var) = event.op.var() else { continue };
        if event.op.is_read() && !matches!(event.op, Op::Access(AccessOp::UnknownRead, _)) {
            writers[id] = last[var];
        }
        if event.op.is_write() {
            last[var] = Some(id);
        }
    }
    writers
}
