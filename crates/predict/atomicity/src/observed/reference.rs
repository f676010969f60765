//! Serializability straight from its definition, pair by pair: cubic, for tests.

use reweave_base::{Id, IndexVec};
use reweave_trace::{
    BarrierOp, ConditionOp, EventId, LockOp, ObjectOp, Op, SemaphoreOp, ThreadOp, Trace,
};

use crate::blocks::{Block, BlockRunId, Blocks};
use crate::conflict;

/// Whether `early`, observed before `late`, is put before it by one rule alone.
#[must_use]
pub fn is_edge(trace: &Trace, early: EventId, late: EventId) -> bool {
    let (from, to) = (trace.event(early), trace.event(late));
    if is_data_edge(trace, early, late)
        || from.op == Op::Thread(ThreadOp::Fork, to.thread)
        || to.op == Op::Thread(ThreadOp::Join, from.thread)
    {
        return true;
    }
    let signals = trace.signals();
    match (from.op, to.op) {
        (Op::Thread(ThreadOp::Fork, child), Op::Thread(ThreadOp::Join, joined)) => child == joined,
        (
            Op::Lock(LockOp::Release, released),
            Op::Lock(LockOp::Acquire | LockOp::AcquireShared, acquired),
        )
        | (Op::Lock(LockOp::ReleaseShared, released), Op::Lock(LockOp::Acquire, acquired)) => {
            released == acquired
        }
        (
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _),
            Op::Condition(ConditionOp::Wake, _),
        ) => signals.stay(late).and_then(|stay| stay.notify) == Some(early),
        (_, Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _)) => {
            let mut stays = signals.stays().iter();
            stays.any(|stay| stay.notify == Some(late) && stay.begin == early)
        }
        (Op::Barrier(BarrierOp::Arrive, _), Op::Barrier(..)) => {
            let needed = signals.needed_round(late).map(|round| signals.round(round));
            needed.is_some_and(|round| round.arrivals.contains(&early))
        }
        (Op::Semaphore(SemaphoreOp::Post, _), Op::Semaphore(SemaphoreOp::Take, _)) => {
            signals.post(late) == Some(early)
        }
        (Op::Object(ObjectOp::Alloc, born), Op::Object(ObjectOp::Free, ended)) => born == ended,
        _ => false,
    }
}

/// Which of some things come before which.
type Relation = Vec<Vec<bool>>;

/// Whether `early`, observed before `late`, is put before it by program order or a conflict.
#[must_use]
pub fn is_data_edge(trace: &Trace, early: EventId, late: EventId) -> bool {
    let (from, to) = (trace.event(early), trace.event(late));
    from.thread == to.thread || conflict(from.op, to.op)
}

/// A rule that puts an event before a later one.
pub type Rule = fn(&Trace, EventId, EventId) -> bool;

/// Of the first `count` events what comes before what by any number of edges.
fn order(trace: &Trace, count: usize, rule: Rule) -> Relation {
    let event = EventId::from_index;
    let mut before: Relation = (0..count)
        .map(|early| {
            (0..count).map(|late| early < late && rule(trace, event(early), event(late))).collect()
        })
        .collect();
    close(&mut before);
    before
}

fn close(relation: &mut Relation) {
    for middle in 0..relation.len() {
        let next = relation[middle].clone();
        for row in relation.iter_mut().filter(|row| row[middle]) {
            for (to, &is_next) in row.iter_mut().zip(&next) {
                *to |= is_next;
            }
        }
    }
}

/// Whether others come between the events of each block, of the first `count` events, by `rule`.
#[must_use]
pub fn spoiled(
    trace: &Trace,
    blocks: &Blocks,
    count: usize,
    rule: Rule,
) -> IndexVec<BlockRunId, bool> {
    let before = order(trace, count, rule);
    let is_spoiled = |block: &Block| {
        let own = |&event: &usize| block.holds(trace, EventId::from_index(event));
        (0..count).filter(|event| !own(event)).any(|other| {
            (0..count).filter(own).any(|event| before[event][other])
                && (0..count).filter(own).any(|event| before[other][event])
        })
    };
    blocks.entries().map(|(_, block)| is_spoiled(block)).collect()
}

/// Whether each block lies on a cycle of the transactions, where only the blocks that are `whole`
/// are one transaction each.
#[must_use]
pub fn on_cycle(
    trace: &Trace,
    blocks: &Blocks,
    whole: &IndexVec<BlockRunId, bool>,
) -> IndexVec<BlockRunId, bool> {
    let count = trace.len();
    // A transaction is known by its first event.
    let transaction = |event: usize| {
        let mut within = blocks.entries().filter(|&(id, _)| whole[id]);
        let own = within.find(|(_, block)| block.holds(trace, EventId::from_index(event)));
        own.map_or(event, |(_, block)| block.begin.index())
    };
    let mut before: Relation = vec![vec![false; count]; count];
    for late in 0..count {
        for early in 0..late {
            let (from, to) = (transaction(early), transaction(late));
            if from != to && is_edge(trace, EventId::from_index(early), EventId::from_index(late)) {
                before[from][to] = true;
            }
        }
    }
    close(&mut before);
    let is_on_cycle = |(id, block): (BlockRunId, &Block)| {
        let begin = block.begin.index();
        whole[id] && before[begin][begin]
    };
    blocks.entries().map(is_on_cycle).collect()
}

/// The blocks that are spoiled, and those that overlap when the spoiled ones are taken apart.
#[must_use]
pub fn violations(trace: &Trace, blocks: &Blocks) -> [Vec<BlockRunId>; 2] {
    let spoiled = spoiled(trace, blocks, trace.len(), is_edge);
    let whole = spoiled.iter().map(|&spoiled| !spoiled).collect();
    let overlap = on_cycle(trace, blocks, &whole);
    [spoiled, overlap].map(|at_fault| at_fault.ids().filter(|&id| at_fault[id]).collect())
}
