//! Reads and the writes that challenge what they saw, by column.
//!
//! The writes of a variable by one thread, in program order, are a *write list*. Verdicts along one
//! depend on each other, so they are worked out and kept as ranges of it.

use reweave_trace::views::{WriteList, Writes};
use reweave_trace::{AccessOp, EventId, Op, Trace, VarId};

/// A read and the write that it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadsFrom {
    /// What was read.
    pub var: VarId,
    /// The read; none is the implicit read of the variable at the end of the run.
    pub read: Option<EventId>,
    /// The write that it saw; none is the initial value.
    pub writer: Option<EventId>,
}

/// The reads-from edges of a trace, and the writes of each variable.
#[derive(Debug)]
pub struct Accesses<'t> {
    trace: &'t Trace,
    writes: &'t Writes,
    /// Variable by variable, in observed order.
    edges: Vec<ReadsFrom>,
}

impl<'t> Accesses<'t> {
    /// The accesses of `trace`. Reads whose writer is not known are in no reads-from edge.
    #[must_use]
    pub fn new(trace: &'t Trace) -> Self {
        let mut edges = Vec::new();
        for (var, _) in trace.names().vars.entries() {
            for &read in trace.accesses(var) {
                let op = trace.event(read).op;
                if op.is_read() && !matches!(op, Op::Access(AccessOp::UnknownRead, _)) {
                    edges.push(ReadsFrom { var, read: Some(read), writer: trace.writer(read) });
                }
            }
        }
        Self { trace, writes: trace.writes(), edges }
    }

    /// The trace.
    #[must_use]
    pub const fn trace(&self) -> &'t Trace {
        self.trace
    }

    /// Every read and what it saw, variable by variable, in observed order.
    #[must_use]
    pub fn edges(&self) -> &[ReadsFrom] {
        &self.edges
    }

    /// The threads that write `var`, each with its writes.
    #[must_use]
    pub fn lists(&self, var: VarId) -> &[WriteList] {
        self.writes.lists(var)
    }

    /// The writes of `list`, in program order.
    #[must_use]
    pub fn writes(&self, list: &WriteList) -> &[EventId] {
        self.writes.of_list(list)
    }

    /// How many interfering writes the writer of `edge` has, an initial value included: all other writes
    /// but the read itself, should that write too.
    #[must_use]
    pub fn interfering_count(&self, edge: &ReadsFrom) -> u64 {
        let is_write = edge.read.is_some_and(|read| self.trace.event(read).op.is_write());
        let lists = self.lists(edge.var).iter();
        lists.map(|list| u64::from(list.count())).sum::<u64>() - u64::from(is_write)
    }

    /// The last event of each thread: what runs them runs everything.
    pub(crate) fn last_events(&self) -> Vec<EventId> {
        let threads = self.trace.names().threads.entries();
        threads.filter_map(|(thread, _)| self.trace.lifetime(thread).last).collect()
    }

    /// The implicit reads at the end of the run, of all variables that are written.
    pub(crate) fn final_reads(&self) -> Vec<ReadsFrom> {
        let last = |var: VarId| {
            let writes = self.lists(var).iter().filter_map(|list| self.writes(list).last());
            let writer = writes.copied().max();
            writer.map(|_| ReadsFrom { var, read: None, writer })
        };
        self.trace.names().vars.entries().filter_map(|(var, _)| last(var)).collect()
    }
}
