//! Another order of a trace's events, and what it is said to show.

use reweave_base::IndexVec;

use crate::op::{EventId, ThreadId, VarId};
use crate::trace::Trace;

/// Some events of a trace, in an order that may not be the observed one.
///
/// First come the events of `base` in observed order, then those of `schedule` as they stand. On
/// a long trace almost everything is in `base`, which takes one number a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    /// How many of each thread's first events run first; 0 for threads past its end.
    pub base: IndexVec<ThreadId, u32>,
    /// The events that follow, in this order.
    pub schedule: Vec<EventId>,
}

impl Reordering {
    /// The reordering that runs `schedule` and nothing before it.
    #[must_use]
    pub const fn explicit(schedule: Vec<EventId>) -> Self {
        Self { base: IndexVec::new(), schedule }
    }

    /// Whether `event` is one of those that run first.
    #[must_use]
    pub fn is_in_base(&self, trace: &Trace, event: EventId) -> bool {
        let count = self.base.get(trace.event(event).thread).copied().unwrap_or(0);
        trace.position(event) < count
    }

    /// The last write of `var` before `until`, which it runs, or in all of it; none if `var` still
    /// has its initial value there.
    #[must_use]
    pub fn last_write(&self, trace: &Trace, var: VarId, until: Option<EventId>) -> Option<EventId> {
        let writes = |event: &EventId| {
            let op = trace.event(*event).op;
            op.is_write() && op.var() == Some(var)
        };
        let until_in_base = until.filter(|&until| self.is_in_base(trace, until));
        let end = match until_in_base {
            Some(_) => 0,
            None => {
                let end = self.schedule.iter().position(|&event| Some(event) == until);
                end.unwrap_or(self.schedule.len())
            }
        };
        self.schedule[..end].iter().copied().rev().find(writes).or_else(|| {
            let accesses = trace.accesses(var);
            let is_before = |&access: &EventId| until_in_base.is_none_or(|until| access < until);
            let accesses = &accesses[..accesses.partition_point(is_before)];
            let mut accesses = accesses.iter().copied().rev();
            accesses.find(|access| writes(access) && self.is_in_base(trace, *access))
        })
    }
}

/// What must hold at the end of a reordering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Each of these is its own thread's next event and could happen now, alone; a read may then
    /// see another write than observed.
    Enabled(Vec<EventId>),
    /// Two conflicting accesses of different threads, each its thread's next event.
    Race(EventId, EventId),
    /// Each is its thread's next event and acquires, or requests, a lock that the thread of the
    /// one after it holds, the last one's that of the first.
    Deadlock(Vec<EventId>),
    /// The events of `chain` happened in this order, those of `absent` did not happen, and only
    /// the reads of `free` may have seen another write than observed.
    Order {
        /// What happened, in this order.
        chain: Vec<EventId>,
        /// What did not happen.
        absent: Vec<EventId>,
        /// Reads that may have seen another write than observed.
        free: Vec<EventId>,
        /// Whether the threads of those that happened may have gone on afterwards.
        after: After,
    },
    /// `read` happened and saw `write`, which is not what it saw when observed; all other reads
    /// saw what they did.
    Sees {
        /// The read.
        read: EventId,
        /// What it saw instead; none for the initial value.
        write: Option<EventId>,
        /// Whether its thread may have gone on afterwards.
        after: After,
    },
    /// Each of these is the last event of its thread that happened, and of threads with none here
    /// nothing happened.
    Reaches(Vec<EventId>),
    /// Every event of the trace happened, and the last write of `var` is `write`.
    Leaves {
        /// The variable.
        var: VarId,
        /// What it is left with.
        write: EventId,
    },
}

/// What a thread did after a read of it saw another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Nothing, and if it is an update nobody saw what it wrote but such reads: the reordering
    /// holds whatever the program does with the value.
    Stops,
    /// It may have gone on as observed, which takes for granted that it would.
    RunsOn,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AccessOp, Op, TraceBuilder};

    #[test]
    fn what_a_variable_holds_is_told_in_the_base_in_the_schedule_and_at_the_end() {
        let mut builder = TraceBuilder::new();
        let (var, site) = (builder.var("x"), builder.site("a"));
        let [one, two] = ["T1", "T2"].map(|name| builder.thread(name));
        for op in [
            Op::Access(AccessOp::Write, var),
            Op::Access(AccessOp::Read, var),
            Op::Access(AccessOp::Write, var),
        ] {
            builder.push(one, op, site);
        }
        for op in [Op::Access(AccessOp::Write, var), Op::Access(AccessOp::Read, var)] {
            builder.push(two, op, site);
        }
        let trace = builder.finish().unwrap();
        let [first, read, second, other, last] =
            [1, 2, 3, 4, 5].map(|number| trace.numbered(number).unwrap());
        let run =
            Reordering { base: [2, 0].into_iter().collect(), schedule: vec![other, last, second] };
        assert!(run.is_in_base(&trace, read) && !run.is_in_base(&trace, second));
        let holds = |until| run.last_write(&trace, var, until);
        assert_eq!([holds(Some(first)), holds(Some(read))], [None, Some(first)]);
        assert_eq!([holds(Some(other)), holds(Some(last))], [Some(first), Some(other)]);
        assert_eq!(holds(None), Some(second));
    }
}
