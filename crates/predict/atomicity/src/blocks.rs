//! Which stretches of a thread are expected to be atomic?
//!
//! Those that the trace marks with `begin` and `end`, or those in which a thread holds a lock. Where
//! they lie within or across each other, the whole stretch counts, from where the first begins to
//! where none is open any more. One that is open at the trace's end lasts to its thread's last event.
//!
//! One pass over the trace.

use reweave_base::IndexVec;
use reweave_trace::{BlockId, EventId, LockId, LockOp, Marker, Op, ThreadId, Trace};

reweave_base::id! {
    /// One run of a block; numbered in the order of their beginnings.
    pub struct BlockRunId;
}

/// A stretch of a thread that is expected to be atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Whose it is.
    pub thread: ThreadId,
    /// What makes it one.
    pub name: BlockName,
    /// Its first event.
    pub begin: EventId,
    /// Its last event.
    pub end: EventId,
}

/// What a block is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockName {
    /// Marked by the programmer.
    Marked(BlockId),
    /// A critical section; the lock that is taken first.
    Section(LockId),
}

/// Blocks in the order of their beginnings.
pub type Blocks = IndexVec<BlockRunId, Block>;

impl Block {
    /// Its events, in program order.
    #[must_use]
    pub fn events<'t>(&self, trace: &'t Trace) -> &'t [EventId] {
        let (first, last) = (trace.position(self.begin), trace.position(self.end));
        &trace.thread_events(self.thread)[first as usize..=last as usize]
    }

    /// Whether `event` is one of its own.
    #[must_use]
    pub fn holds(&self, trace: &Trace, event: EventId) -> bool {
        self.begin <= event && event <= self.end && trace.event(event).thread == self.thread
    }
}

/// The blocks that `trace` marks.
///
/// ```
/// let trace = reweave_testkit::trace("
/// T1
/// begin(b)
/// w(x)
/// end(b)
/// w(x)
/// ");
/// let blocks = reweave_atomicity::blocks::marked(&trace);
/// assert_eq!(blocks.len(), 1);
/// ```
#[must_use]
pub fn marked(trace: &Trace) -> Blocks {
    stretches(trace, |op| match op {
        Op::Marker(Marker::Begin(block)) => Some(Change::Enter(BlockName::Marked(block))),
        Op::Marker(Marker::End(_)) => Some(Change::Leave),
        _ => None,
    })
}

/// The stretches of `trace` in which a thread holds a lock.
///
/// ```
/// let trace = reweave_testkit::trace("
/// T1      T2
/// acq(m)
/// w(x)
/// rel(m)
///         acq(m)
///         rel(m)
///         w(x)
/// ");
/// assert_eq!(reweave_atomicity::blocks::sections(&trace).len(), 2);
/// ```
#[must_use]
pub fn sections(trace: &Trace) -> Blocks {
    stretches(trace, |op| match op {
        Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) => {
            Some(Change::Enter(BlockName::Section(lock)))
        }
        Op::Lock(LockOp::Release | LockOp::ReleaseShared, _) => Some(Change::Leave),
        _ => None,
    })
}

enum Change {
    Enter(BlockName),
    Leave,
}

fn stretches(trace: &Trace, change: impl Fn(Op) -> Option<Change>) -> Blocks {
    let mut blocks = Blocks::new();
    // How many are open in each thread, and the block that they are.
    let mut open: IndexVec<ThreadId, (u32, Option<BlockRunId>)> =
        IndexVec::from_elem((0, None), trace.names().threads.len());
    for (id, event) in trace.events() {
        let (depth, current) = &mut open[event.thread];
        match change(event.op) {
            Some(Change::Enter(name)) => {
                if *depth == 0 {
                    let block = Block { thread: event.thread, name, begin: id, end: id };
                    *current = Some(blocks.push(block));
                }
                *depth += 1;
            }
            Some(Change::Leave) => {
                *depth -= 1;
                if let Some(ended) = current.take_if(|_| *depth == 0) {
                    blocks[ended].end = id;
                }
            }
            None => {}
        }
    }
    for (thread, &(_, current)) in open.entries() {
        if let (Some(block), Some(last)) = (current, trace.lifetime(thread).last) {
            blocks[block].end = last;
        }
    }
    blocks
}
