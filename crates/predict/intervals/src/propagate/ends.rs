//! What slots hold when all threads have ended: at the end of a thread that can be the last.

use reweave_base::{Id, IndexVec};
use reweave_trace::ThreadId;

use super::plain::join_row;
use super::values::Row;
use crate::ctp::{Action, Ctp, Point};
use crate::domain::Domain;
use crate::graph::{Graph, NodeId};

/// The join of what slots may hold `at` the ends of threads that can be the last to end; none if
/// no such end is reached.
pub(crate) fn final_values<D: Domain>(
    ctp: &Ctp,
    graph: &Graph,
    at: &IndexVec<NodeId, Option<Row<D>>>,
) -> Option<Row<D>> {
    let last: IndexVec<ThreadId, bool> =
        ctp.threads.ids().map(|thread| can_be_last(ctp, thread)).collect();
    let mut joined = None;
    for (id, node) in graph.nodes.entries() {
        let leaving = &ctp.leaving[node.point];
        if leaving.start != leaving.end || !last[node.thread] {
            continue;
        }
        if let Some(row) = &at[id] {
            join_row(&mut joined, row);
        }
    }
    joined
}

/// Whether no other thread is sure to take a step after the last of `thread`, if all end.
fn can_be_last(ctp: &Ctp, thread: ThreadId) -> bool {
    let has_steps = |thread: ThreadId| {
        let steps = &ctp.threads[thread].steps;
        steps.start != steps.end
    };
    let is_root = |thread: ThreadId| ctp.threads[thread].parent.is_none();
    if !has_steps(thread) {
        return !ctp.threads.ids().any(|other| is_root(other) && has_steps(other));
    }
    !ctp.threads.ids().any(|other| other != thread && always_joins(ctp, other, thread))
}

/// Whether `thread` joins `child` on each way to its end, if `child` runs at all.
fn always_joins(ctp: &Ctp, thread: ThreadId, child: ThreadId) -> bool {
    let steps = || ctp.steps_of(thread).map(|(_, step)| step);
    let joins = |action| action == Action::Join(child);
    if !steps().any(|step| joins(step.action)) {
        return false;
    }
    let points = &ctp.threads[thread].points;
    let offset = points.start.index();
    let mut open = vec![false; points.end.index() - offset];
    if ctp.threads[child].parent == Some(thread) {
        for step in steps().filter(|step| step.action == Action::Fork(child)) {
            open[step.to.index() - offset] = true;
        }
    } else if ctp.threads[thread].parent.is_none() {
        open[0] = true;
    } else {
        return false;
    }
    // Steps are ordered by where they start and lead forward, so one pass reaches everything.
    for step in steps().filter(|step| !joins(step.action)) {
        if open[step.from.index() - offset] {
            open[step.to.index() - offset] = true;
        }
    }
    let is_end = |index: usize| {
        let leaving = &ctp.leaving[Point::from_index(index + offset)];
        leaving.start == leaving.end
    };
    !(0..open.len()).any(|index| open[index] && is_end(index))
}
