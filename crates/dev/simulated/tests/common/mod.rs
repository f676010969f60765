//! What holds of the runs of every program.

use reweave_base::IndexVec;
use reweave_trace::{Event, EventId, LockOp, Op, ThreadOp, Trace, VarId};

fn events(trace: &Trace) -> Vec<(String, String, Option<i64>)> {
    let line = |(id, event): (EventId, Event)| {
        (trace.spell(id), trace.names().location(event.site).to_owned(), trace.value(id))
    };
    trace.events().map(line).collect()
}

/// The same seed gives the same run, and another seed another.
#[track_caller]
pub(crate) fn repeats(name: &str, run: impl Fn(u64) -> Trace) {
    let [first, again, other] = [1, 1, 2].map(|seed| events(&run(seed)));
    assert!(first == again, "{name}");
    assert!(first != other, "{name}");
}

/// Every thread ends and is joined, and every lock is released.
#[track_caller]
pub(crate) fn ends(name: &str, trace: &Trace) {
    let count =
        |wanted: fn(Op) -> bool| trace.events().filter(|(_, event)| wanted(event.op)).count();
    let children = trace.names().threads.len() - 1;
    assert_eq!(count(|op| matches!(op, Op::Thread(ThreadOp::Fork, _))), children, "{name}");
    assert_eq!(count(|op| matches!(op, Op::Thread(ThreadOp::Join, _))), children, "{name}");
    let acquires = count(|op| matches!(op, Op::Lock(LockOp::Acquire, _)));
    assert_eq!(acquires, count(|op| matches!(op, Op::Lock(LockOp::Release, _))), "{name}");
}

/// Accesses have values, and reads those of the writes that they saw; of what nobody has written, all
/// the same.
#[track_caller]
pub(crate) fn reads_see_what_was_written(name: &str, trace: &Trace) {
    let mut initial: IndexVec<VarId, Option<i64>> =
        IndexVec::from_elem(None, trace.names().vars.len());
    for (id, event) in trace.events() {
        let Some(var) = event.op.var() else { continue };
        let value = trace.value(id);
        assert!(value.is_some(), "{name}: {}", trace.spell(id));
        if !event.op.is_read() {
            continue;
        }
        match trace.writer(id) {
            Some(writer) => assert_eq!(trace.value(writer), value, "{name} {id:?}"),
            None => assert_eq!(initial[var].or(value), value, "{name} {id:?}"),
        }
        if trace.writer(id).is_none() {
            initial[var] = value;
        }
    }
}
