//! Writes by variable and thread: who may have written what a read saw?

use std::ops::Range;

use reweave_base::IndexVec;

use crate::op::{EventId, ThreadId, VarId};
use crate::trace::Trace;

/// The writes of each variable, thread by thread.
#[derive(Debug)]
pub struct Writes {
    /// Variable by variable, thread by thread, in program order.
    writes: Vec<EventId>,
    lists: IndexVec<VarId, Vec<WriteList>>,
}

/// The writes of a variable by one thread, in program order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteList {
    /// Whose writes.
    pub thread: ThreadId,
    range: Range<u32>,
}

impl WriteList {
    /// How many they are.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.range.end - self.range.start
    }
}

impl Writes {
    pub(super) fn new(trace: &Trace) -> Self {
        let (mut writes, mut lists) = (Vec::new(), IndexVec::new());
        let mut own: Vec<(ThreadId, EventId)> = Vec::new();
        for (var, _) in trace.names().vars.entries() {
            own.clear();
            let accesses = trace.accesses(var).iter().map(|&access| (access, trace.event(access)));
            let accesses = accesses.filter(|(_, event)| event.op.is_write());
            own.extend(accesses.map(|(access, event)| (event.thread, access)));
            own.sort_unstable();
            let mut of_var = Vec::new();
            for list in own.chunk_by(|left, right| left.0 == right.0) {
                let start = writes.len() as u32;
                writes.extend(list.iter().map(|&(_, write)| write));
                of_var.push(WriteList { thread: list[0].0, range: start..writes.len() as u32 });
            }
            lists.push(of_var);
        }
        Self { writes, lists }
    }

    /// The threads that write `var`.
    #[must_use]
    pub fn lists(&self, var: VarId) -> &[WriteList] {
        &self.lists[var]
    }

    /// The writes of `list`.
    #[must_use]
    pub fn of_list(&self, list: &WriteList) -> &[EventId] {
        &self.writes[list.range.start as usize..list.range.end as usize]
    }
}

#[cfg(test)]
mod tests {
    use crate::{AccessOp, Op, TraceBuilder};

    #[test]
    fn writes_are_told_apart_by_thread_and_reads_are_none() {
        let mut builder = TraceBuilder::new();
        let (var, site) = (builder.var("x"), builder.site("a"));
        let other = builder.var("y");
        let [one, two] = ["T1", "T2"].map(|name| builder.thread(name));
        for (thread, op) in [
            (two, Op::Access(AccessOp::Write, var)),
            (one, Op::Access(AccessOp::Read, var)),
            (one, Op::Access(AccessOp::Write, var)),
            (one, Op::Access(AccessOp::Write, other)),
            (two, Op::Access(AccessOp::Write, var)),
        ] {
            builder.push(thread, op, site);
        }
        let trace = builder.finish().unwrap();
        let writes = trace.writes();
        let listed: Vec<_> = writes
            .lists(var)
            .iter()
            .map(|list| {
                let numbers = writes.of_list(list).iter().map(|event| event.number());
                (list.thread, list.count(), numbers.collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(listed, [(one, 1, vec![3]), (two, 2, vec![1, 5])]);
    }
}
