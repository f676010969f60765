//! Can another thread come between two events of a block?
//!
//! A *pattern* is an event of a block, one or two of another thread, and a later event of the block:
//! the first conflicts with the second, the last but one with the last. Run in this order, no order
//! of the block and the other thread's event, or the two, has the same effect. On one variable these
//! are the four: a read, a write between, a read or a write; a write, a write between, a read; a
//! write, a read between, a write; and three writes, though nobody may see that difference. On two
//! variables the other thread does something to each.
//!
//! [`Candidates`] goes through the patterns that nothing simple rules out, by their code locations;
//! [`questions`] are what to ask the engine for a run that shows one. It is a run that the program can do whatever
//! it computes: every read sees what it saw, but for the last event of the block and, if need be,
//! the last of the other thread. Both may see something new, and their threads stop there.
//!
//! Promised: what is found comes with a schedule and a goal for the checker. Where
//! candidates are not cut short, every pattern that can be shown so has one within it that is a
//! candidate and can be shown: it lies between the same two events of the block, or nearer ones, and
//! has the same events of the other thread, one of them, or others at the same locations. Paths
//! through third threads are not looked for. `oracle::atomicity` tries every pattern in every
//! reordering.
//!
//! The patterns are those of Lu et al., "AVIO" (ASPLOS 2006), on one variable, and of Hammer et al.,
//! "Dynamic detection of atomic-set-serializability violations" (ICSE 2008), on two.

mod candidates;

use reweave_reorder::{Query, View};
use reweave_trace::{AccessOp, After, EventId, Goal, Op, Trace};

use crate::blocks::BlockRunId;
pub use candidates::{Candidates, Extent, Group, KEPT_MAX, Width};

/// Two events of a block, and what comes between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    /// The block.
    pub block: BlockRunId,
    /// Of the block.
    pub first: EventId,
    /// Of another thread: what conflicts with the first and what conflicts with the second, often
    /// the same event.
    pub between: [EventId; 2],
    /// Of the block, later.
    pub second: EventId,
}

impl Pattern {
    /// Its events, as they are to come.
    #[must_use]
    pub fn chain(&self) -> Vec<EventId> {
        let mut chain = vec![self.first, self.between[0], self.between[1], self.second];
        chain.dedup();
        chain
    }
}

/// The questions each of which, answered, shows `pattern`, the cheapest first; each with what a run
/// that answers it shows.
#[must_use]
pub fn questions(trace: &Trace, pattern: &Pattern) -> Vec<(Query, Goal)> {
    let goal = |query: &Query| Goal::Order {
        chain: pattern.chain(),
        absent: Vec::new(),
        free: query.views.iter().map(|&(read, _)| read).collect(),
        after: After::Stops,
    };
    queries(trace, pattern).into_iter().map(|query| (query.clone(), goal(&query))).collect()
}

/// The questions alone.
fn queries(trace: &Trace, pattern: &Pattern) -> Vec<Query> {
    let chain = pattern.chain();
    let reads = |event: EventId| {
        let op = trace.event(event).op;
        // A read of an unknown writer may see anything as it is.
        op.is_read() && !matches!(op, Op::Access(AccessOp::UnknownRead, _))
    };
    let mut queries = Vec::new();
    if chain.is_sorted() {
        queries.push(Query::order(&chain));
    }
    let up_to = Query::order_up_to(&chain, reads(pattern.second));
    queries.push(up_to.clone());
    let other = pattern.between[1];
    if reads(other) {
        let mut free = up_to;
        free.views.push((other, View::Any));
        free.stop.push(other);
        queries.push(free);
    }
    queries
}
