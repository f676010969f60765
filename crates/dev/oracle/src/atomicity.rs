//! Blocks that are not atomic: in the observed run by the definition of serializability, pair by
//! pair, and in other runs by trying every pattern in every correct reordering.

use reweave_base::Id;
use reweave_trace::{AccessOp, EventId, Op, ThreadId, Trace};

use crate::hb;
use crate::query::{Query, View};
use crate::relation::{Order, close};

/// A stretch of a thread that is expected to be atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Whose it is.
    pub thread: ThreadId,
    /// Its first event.
    pub begin: EventId,
    /// Its last event.
    pub end: EventId,
}

impl Block {
    fn holds(&self, trace: &Trace, event: EventId) -> bool {
        self.begin <= event && event <= self.end && trace.event(event).thread == self.thread
    }
}

/// Two events of a block, and what comes between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern {
    /// The index of the block.
    pub block: usize,
    /// Of the block.
    pub first: EventId,
    /// Of another thread: what conflicts with the first and what conflicts with the second, often
    /// the same event.
    pub between: [EventId; 2],
    /// Of the block, later.
    pub second: EventId,
}

/// Whether the order of the two, by different threads, matters.
fn conflict(left: Op, right: Op) -> bool {
    left.var().is_some() && left.var() == right.var() && (left.is_write() || right.is_write())
}

/// Whether `early`, observed before `late`, is put before it by one rule alone: as happens-before
/// does, by a conflict, or because a notify comes after the waits that it woke began.
#[must_use]
pub fn is_edge(trace: &Trace, early: EventId, late: EventId) -> bool {
    let mut waits = trace.signals().wait_intervals().iter();
    is_data_edge(trace, early, late)
        || hb::is_edge(trace, early, late)
        || waits.any(|wait| wait.notify == Some(late) && wait.begin == early)
}

/// Whether `early`, observed before `late`, is put before it by program order or a conflict.
#[must_use]
pub fn is_data_edge(trace: &Trace, early: EventId, late: EventId) -> bool {
    let (from, to) = (trace.event(early), trace.event(late));
    from.thread == to.thread || conflict(from.op, to.op)
}

/// A rule that puts an event before a later one.
pub type Rule = fn(&Trace, EventId, EventId) -> bool;

/// Whether others come between the events of each block, of the first `count` events, by `rule`.
#[must_use]
pub fn violated(trace: &Trace, blocks: &[Block], count: usize, rule: Rule) -> Vec<bool> {
    let order =
        Order::closure(trace, |early, late| late.index() < count && rule(trace, early, late));
    let events = || (0..count).map(EventId::from_index);
    let is_violated = |block: &Block| {
        let own = |event: &EventId| block.holds(trace, *event);
        events().filter(|event| !own(event)).any(|other| {
            events().filter(own).any(|event| order.is_before(event, other))
                && events().filter(own).any(|event| order.is_before(other, event))
        })
    };
    blocks.iter().map(is_violated).collect()
}

/// Whether each block lies on a cycle of the transactions, where only the blocks that are `whole`
/// are one transaction each.
#[must_use]
pub fn on_cycle(trace: &Trace, blocks: &[Block], whole: &[bool]) -> Vec<bool> {
    let count = trace.len();
    // A transaction is known by its first event.
    let transaction = |event: usize| {
        let mut within = blocks.iter().zip(whole).filter(|&(_, &is_whole)| is_whole);
        let own = within.find(|(block, _)| block.holds(trace, EventId::from_index(event)));
        own.map_or(event, |(block, _)| block.begin.index())
    };
    let mut before = vec![vec![false; count]; count];
    for late in 0..count {
        for early in 0..late {
            let (from, to) = (transaction(early), transaction(late));
            if from != to && is_edge(trace, EventId::from_index(early), EventId::from_index(late)) {
                before[from][to] = true;
            }
        }
    }
    close(&mut before);
    let is_on_cycle = |(block, &is_whole): (&Block, &bool)| {
        let begin = block.begin.index();
        is_whole && before[begin][begin]
    };
    blocks.iter().zip(whole).map(is_on_cycle).collect()
}

/// The blocks that others come between, and those that overlap when the former are taken apart.
#[must_use]
pub fn violations(trace: &Trace, blocks: &[Block]) -> [Vec<usize>; 2] {
    let violated = violated(trace, blocks, trace.len(), is_edge);
    let whole: Vec<bool> = violated.iter().map(|&violated| !violated).collect();
    let overlap = on_cycle(trace, blocks, &whole);
    [violated, overlap].map(|at_fault| (0..blocks.len()).filter(|&id| at_fault[id]).collect())
}

/// Every pattern of `trace`, in order.
#[must_use]
pub fn patterns(trace: &Trace, blocks: &[Block]) -> Vec<Pattern> {
    let events: Vec<EventId> = trace.events().map(|(id, _)| id).collect();
    let op = |event: EventId| trace.event(event).op;
    let mut patterns = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let own = || events.iter().copied().filter(|&event| block.holds(trace, event));
        let pairs = own().flat_map(|first| own().map(move |second| (first, second)));
        for (first, second) in pairs.filter(|(first, second)| first < second) {
            let others = events.iter().filter(|&&other| trace.event(other).thread != block.thread);
            for &early in others.clone().filter(|&&early| conflict(op(first), op(early))) {
                let is_late = |&&late: &&EventId| {
                    let is_one_thread = trace.event(early).thread == trace.event(late).thread;
                    is_one_thread && early <= late && conflict(op(late), op(second))
                };
                for &late in others.clone().filter(is_late) {
                    patterns.push(Pattern { block: index, first, between: [early, late], second });
                }
            }
        }
    }
    patterns.sort_unstable();
    patterns
}

/// Whether some correct reordering shows `pattern`: its events in order, where the last of the block
/// and, if need be, the last of the other thread may see anything and then stop. None if there are
/// more than `states_max` states.
#[must_use]
pub fn is_shown(trace: &Trace, pattern: &Pattern, states_max: usize) -> Option<bool> {
    let Pattern { first, between: [early, late], second, .. } = *pattern;
    let mut chain = vec![first, early, late, second];
    chain.dedup();
    let reads = |event: EventId| {
        let op = trace.event(event).op;
        op.is_read() && !matches!(op, Op::Access(AccessOp::UnknownRead, _))
    };
    let free = |event: EventId| reads(event).then_some((event, View::Any));
    let mut query = Query {
        order: chain.windows(2).map(|pair| (pair[0], pair[1])).collect(),
        views: free(second).into_iter().collect(),
        stop: vec![second],
        must: chain,
        ..Query::default()
    };
    if query.search(trace, states_max).known()? {
        return Some(true);
    }
    let Some(other) = free(late) else { return Some(false) };
    query.views.push(other);
    query.stop.push(late);
    query.search(trace, states_max).known()
}
