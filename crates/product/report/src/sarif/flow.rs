//! A schedule as a code flow: what matters of each thread, and when it happens.

use reweave_analysis::{Finding, Proof};
use reweave_trace::{
    BlockOp, EventId, LockOp, ObjectOp, Op, SemaphoreOp, ThreadId, ThreadOp, Trace,
};

use crate::heading;
use crate::schedule::steps_count;
use crate::shown::shown;
use crate::site::Site;
use crate::table::{Extent, Label, Row, Table};

use super::model::{CodeFlow, FlowLocation, Text, ThreadFlow};
use super::places;

/// How many steps of a schedule a reader of code flows takes.
const STEPS_MAX: usize = 1_000;

/// The schedule of `finding`, as much of it as `extent` says; none if it has none.
pub(super) fn of<'t>(trace: &'t Trace, finding: &Finding, extent: Extent) -> Option<CodeFlow<'t>> {
    let proof = finding.evidence.proof()?;
    let table = Table::new(trace, proof, extent);
    let mut flows: Vec<(ThreadId, Vec<FlowLocation>)> =
        table.threads.iter().map(|&thread| (thread, Vec::new())).collect();
    // What matters most is at the end.
    let excess = table.rows.len().saturating_sub(STEPS_MAX);
    for row in &table.rows[excess..] {
        if let &Row::Event { label, event, column } = row {
            flows[column].1.push(step(trace, proof, label, event));
        }
    }
    let names = &trace.names().threads;
    let flows = flows.into_iter().filter(|(_, locations)| !locations.is_empty());
    let thread_flows: Vec<ThreadFlow<'t>> = flows
        .map(|(thread, locations)| ThreadFlow { id: shown(names.name(thread)), locations })
        .collect();
    let message = Text::new(heading(proof).trim_end_matches(':'));
    (!thread_flows.is_empty()).then_some(CodeFlow { message, thread_flows })
}

fn step(trace: &Trace, proof: &Proof, label: Label, event: EventId) -> FlowLocation {
    let site = Site::new(trace, event);
    // What is next at the end is next together.
    let end = steps_count(proof.reordering()) + 1;
    let (order, what) = match label {
        Label::Step(step) | Label::Fault(step) => (step, ""),
        Label::Blocked => (end, " waits, for ever"),
        Label::Next => (end, " is next"),
        Label::Past | Label::Last | Label::Ahead | Label::Later => (end, ""),
    };
    let said = format!("{}: `{}`{what}, {}", site.thread, site.op, site.holding());
    let mut kinds = kinds(trace.event(event).op);
    if label.is_fault() {
        kinds.push("danger");
    }
    FlowLocation {
        location: places::location(&site, None, Some(&shown(&said))),
        kinds,
        execution_order: order,
        importance: label.is_fault().then_some("essential"),
    }
}

/// What kind of step an operation is, in the words that SARIF proposes.
fn kinds(op: Op) -> Vec<&'static str> {
    match op {
        Op::Access(..) | Op::Fence(_) => vec!["memory"],
        Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _) => vec!["acquire", "lock"],
        Op::Lock(LockOp::Release | LockOp::ReleaseShared, _) => vec!["release", "lock"],
        Op::Lock(LockOp::Request, _) => vec!["lock"],
        Op::Thread(ThreadOp::Fork, _) => vec!["call"],
        Op::Thread(ThreadOp::Join, _) => vec!["return"],
        Op::Object(ObjectOp::Alloc, _) => vec!["acquire", "memory"],
        Op::Object(ObjectOp::Free, _) => vec!["release", "memory"],
        Op::Block(BlockOp::Begin, _) => vec!["enter", "scope"],
        Op::Block(BlockOp::End, _) => vec!["exit", "scope"],
        Op::Branch => vec!["branch"],
        Op::Let(_) => vec!["value"],
        Op::Semaphore(SemaphoreOp::Take, _) => vec!["acquire", "resource"],
        Op::Semaphore(SemaphoreOp::Post, _) => vec!["release", "resource"],
        Op::Condition(..) | Op::Barrier(..) => vec!["resource"],
    }
}
