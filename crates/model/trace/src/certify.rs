//! What joins a trace with the checker, which knows columns of events and not traces.

use reweave_checker::{Certificate, Checker, ObservedRun, Refusal};

use crate::op::{EventId, Goal, Reordering, VarId};
use crate::trace::Trace;

impl<'a> From<&'a Trace> for ObservedRun<'a> {
    fn from(trace: &'a Trace) -> Self {
        let (columns, declared) = (trace.columns(), trace.declared());
        Self {
            threads: &columns.threads,
            codes: &columns.codes,
            operands: &columns.operands,
            starts: declared.starts.as_slice(),
            parties: declared.parties.as_slice(),
            waits_are_requested: declared.waits_are_requested,
        }
    }
}

/// Accepts `reordering` of `trace` if it is correct and ends as `goal` says.
///
/// For several reorderings of one trace, make a [`Checker`] once.
///
/// ```
/// use reweave_trace::{AccessOp, Goal, Op, Reordering, TraceBuilder, certify};
///
/// let mut builder = TraceBuilder::new();
/// let (t1, t2) = (builder.thread("T1"), builder.thread("T2"));
/// let (x, here) = (builder.var("x"), builder.site("a.c:1"));
/// builder.push(t1, Op::Access(AccessOp::Write, x), here);
/// builder.push(t2, Op::Access(AccessOp::Write, x), here);
/// let trace = builder.finish()?;
/// let [first, second] = [1, 2].map(|number| trace.numbered(number).unwrap());
/// assert!(certify(&trace, &Reordering::default(), &Goal::Race(first, second)).is_ok());
/// # Ok::<(), reweave_trace::IllFormed>(())
/// ```
///
/// # Errors
/// The first step that breaks a rule, or what the end lacks.
pub fn certify(
    trace: &Trace,
    reordering: &Reordering,
    goal: &Goal,
) -> Result<Certificate, Refusal> {
    Checker::new(trace).check(reordering, goal)
}

/// Whether `events`, in this order, are a correct reordering of `trace`.
///
/// ```
/// use reweave_trace::{AccessOp, Op, TraceBuilder, certify_order};
///
/// let mut builder = TraceBuilder::new();
/// let (t1, t2) = (builder.thread("T1"), builder.thread("T2"));
/// let (x, here) = (builder.var("x"), builder.site("a.c:1"));
/// builder.push(t1, Op::Access(AccessOp::Write, x), here);
/// builder.push(t2, Op::Access(AccessOp::Read, x), here);
/// let trace = builder.finish()?;
/// let [write, read] = [1, 2].map(|number| trace.numbered(number).unwrap());
/// assert!(certify_order(&trace, &[write, read]).is_ok());
/// // The read saw the write, so it cannot come first.
/// assert!(certify_order(&trace, &[read, write]).is_err());
/// # Ok::<(), reweave_trace::IllFormed>(())
/// ```
///
/// # Errors
/// The first step that breaks a rule.
pub fn certify_order(trace: &Trace, events: &[EventId]) -> Result<Certificate, Refusal> {
    certify(trace, &Reordering::explicit(events.to_vec()), &Goal::Enabled(Vec::new()))
}

impl Trace {
    /// Whether `event` is in the fixed prefix of `reordering`.
    #[must_use]
    pub fn is_in_prefix(&self, reordering: &Reordering, event: EventId) -> bool {
        let count = reordering.base.get(self.event(event).thread).copied().unwrap_or(0);
        self.position(event) < count
    }

    /// The last write of `var` in `reordering` before `until`, which it runs, or in all of it; none
    /// if `var` still has its initial value there.
    #[must_use]
    pub fn last_write(
        &self,
        reordering: &Reordering,
        var: VarId,
        until: Option<EventId>,
    ) -> Option<EventId> {
        let writes = |event: &EventId| {
            let op = self.event(*event).op;
            op.is_write() && op.var() == Some(var)
        };
        let schedule = &reordering.schedule;
        let until_in_prefix = until.filter(|&until| self.is_in_prefix(reordering, until));
        let end = if until_in_prefix.is_some() {
            0
        } else {
            let end = schedule.iter().position(|&event| Some(event) == until);
            end.unwrap_or(schedule.len())
        };
        schedule[..end].iter().copied().rev().find(writes).or_else(|| {
            let accesses = self.accesses(var);
            let is_before = |&access: &EventId| until_in_prefix.is_none_or(|until| access < until);
            let accesses = &accesses[..accesses.partition_point(is_before)];
            let mut accesses = accesses.iter().copied().rev();
            accesses.find(|access| writes(access) && self.is_in_prefix(reordering, *access))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AccessOp, Op, TraceBuilder};

    #[test]
    fn the_last_write_is_found_in_the_prefix_in_the_schedule_and_at_the_end() {
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
        assert!(trace.is_in_prefix(&run, read) && !trace.is_in_prefix(&run, second));
        let holds = |until| trace.last_write(&run, var, until);
        assert_eq!([holds(Some(first)), holds(Some(read))], [None, Some(first)]);
        assert_eq!([holds(Some(other)), holds(Some(last))], [Some(first), Some(other)]);
        assert_eq!(holds(None), Some(second));
    }
}
