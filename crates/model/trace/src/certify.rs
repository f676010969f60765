//! The checker: is this a correct reordering, and does it show what it is said to show?
//!
//! A *correct reordering* of a trace is a sequence of its events such that
//!
//! 1. each thread runs a prefix of its events, in program order;
//! 2. every read sees the write it saw when observed, or the initial value if it saw that;
//! 3. a lock is acquired while no other thread holds it (in shared mode: while no other thread
//!    holds it alone) and released by a holder; re-acquires nest;
//! 4. a thread runs after its fork, and a join comes after the fork and all events of its thread;
//! 5. a notify comes while the waits that it woke are waiting. One that woke nobody, and a
//!    notify-all, come while nobody else is waiting but waits that were there when it was
//!    observed and timed out. A wake comes after the notify that woke it. A wait begins with the
//!    release just before it in its thread, if it ends with an acquire of the same lock: a program
//!    gives up the lock and starts waiting in one step;
//! 6. a departure from a barrier comes after all arrivals of its round, and an arrival after all
//!    arrivals of earlier rounds, since a barrier pairs its arrivals as they come; where the
//!    number of parties is not known, arrivals keep their order and a departure comes after all
//!    arrivals observed before it. A take from a semaphore finds it above zero or, where its
//!    start value is not known, comes after the post it used. An object is freed after it was
//!    allocated.
//!
//! Every read returns its old value, so the program can run so whatever it computes. Each rule
//! is written out here as it stands; the tables come straight from the events, and neither they
//! nor anything else is shared with the analyses, so that a fault in those cannot hide here.
//!
//! The steps of a reordering are run one by one. Its base, which may be almost all of the trace,
//! is judged by what it leaves out, and run only if that does not settle it: see [`base`].
//!
//! Linear in the trace for the tables, which are built once and take some twenty bytes an event.
//! A reordering costs its steps, and for its base a search for each two threads that ever met; it
//! costs as much as all its events if its base is refused.
//!
//! Follows Definition 4 of Smaragdakis et al., "Sound Predictive Race Detection in Polynomial
//! Time" (POPL 2012), completed by rules 4 to 6 for the operations it leaves out.

mod base;
mod goal;
mod refusal;
mod replay;
mod tables;

pub use refusal::{Refusal, Rule};

use reweave_base::{Id, IndexVec};

use crate::op::{EventId, ThreadId};
use crate::reordering::{Goal, Reordering};
use crate::trace::Trace;
use base::{Base, CutTables};
use replay::Replay;
use tables::Tables;

/// A reordering that was found correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// How many events it runs.
    pub events_count: usize,
    /// How many of them are reads whose writer was never known. A finding whose certificate has
    /// any rests on the assumption that they would have gone on as observed.
    pub unknown_reads_count: usize,
}

/// Checks reorderings of one trace; its tables are built once.
#[derive(Debug)]
pub struct Checker<'a> {
    trace: &'a Trace,
    tables: Tables,
    cuts: CutTables,
}

impl<'a> Checker<'a> {
    /// A checker for `trace`.
    #[must_use]
    pub fn new(trace: &'a Trace) -> Self {
        let tables = Tables::new(trace);
        let cuts = CutTables::new(trace, &tables);
        Self { trace, tables, cuts }
    }

    /// Accepts `reordering` if it is correct and ends as `goal` says.
    ///
    /// # Errors
    /// The first step that breaks a rule, or what the end lacks.
    pub fn check(&self, reordering: &Reordering, goal: &Goal) -> Result<Certificate, Refusal> {
        let free = goal::free_reads(goal);
        let counts = self.counts(&reordering.base)?;
        let mut replay = match Base::new((self.trace, &self.tables, &self.cuts), counts) {
            Some(base) => Replay::new(self.trace, &self.tables, base, free),
            None => self.run_base(&reordering.base, free)?,
        };
        for &event in &reordering.schedule {
            replay.step(event)?;
        }
        goal::check(&replay, goal)?;
        Ok(Certificate {
            events_count: replay.events_count(),
            unknown_reads_count: replay.unknown_reads_count(),
        })
    }

    /// How many events of each thread `base` runs, if there are so many.
    fn counts(&self, base: &IndexVec<ThreadId, u32>) -> Result<IndexVec<ThreadId, u32>, Refusal> {
        let threads_count = self.tables.threads.len();
        let mut counts = IndexVec::from_elem(0, threads_count);
        for (thread, &count) in base.entries() {
            let is_known = thread.index() < threads_count;
            let all = if is_known { self.tables.threads.row(thread).len() } else { 0 };
            if count as usize > all {
                return Err(Refusal::at_end(Rule::BaseTooLong { thread, count, all }));
            }
            if is_known {
                counts[thread] = count;
            }
        }
        Ok(counts)
    }

    /// Runs the events of `base` one by one: it decides what its edge does not.
    fn run_base(
        &self,
        base: &IndexVec<ThreadId, u32>,
        free: &[EventId],
    ) -> Result<Replay<'_>, Refusal> {
        let nothing = Base::empty(self.trace, &self.tables, &self.cuts);
        let mut replay = Replay::new(self.trace, &self.tables, nothing, free);
        for (index, &thread) in self.trace.columns().threads.iter().enumerate() {
            let (id, thread) = (EventId::from_index(index), ThreadId::from_index(thread as usize));
            let count = base.get(thread).copied().unwrap_or(0);
            if self.tables.position[id] < count {
                replay.step(id)?;
            }
        }
        Ok(replay)
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
