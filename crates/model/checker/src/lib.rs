//! The checker: is this a correct reordering, and does it show what it is said to show?
//!
//! A *correct reordering* of a trace is a sequence of its events such that
//!
//! 1. each thread runs a prefix of its events, in program order;
//! 2. every read sees the write it saw when observed, or the initial value if it saw that;
//! 3. a lock is acquired while no other thread holds it (in shared mode: while no other thread
//!    holds it alone) and released by a holder; re-acquires nest. A request has no effect. It is
//!    blocked where an acquire in its mode would be; if it does not say its mode, only where
//!    another thread holds the lock in exclusive mode;
//! 4. a thread runs after its fork, and a join comes after the fork and all events of its thread;
//! 5. a notify comes while the waits that it woke are waiting. One that woke nobody, and a
//!    notify-all, come while nobody else is waiting but waits that were there when it was
//!    observed and timed out. A wake comes after the notify that woke it. A wait begins with the
//!    release just before it in its thread, if it ends with an acquire of the same lock: a program
//!    releases the lock and starts waiting in one step;
//! 6. a departure from a barrier comes after all arrivals of its generation, and an arrival after
//!    all arrivals of earlier generations, since a barrier pairs its arrivals as they come; where
//!    the number of parties is not known, arrivals keep their order and a departure comes after all
//!    arrivals observed before it. A take from a semaphore finds it above zero or, where its
//!    start value is not known, comes after the post it used. An object is freed after it was
//!    allocated.
//!
//! Every read returns its old value, so the program can run so whatever it computes. Each rule is
//! written out here as it stands, and is tested before each event of each reordering. Nothing is
//! shared with what found the reordering, so that a fault there cannot hide here: the checker knows
//! operations and columns of events, and not even traces.
//!
//! Reorderings of one run mostly share long beginnings. So a replay is kept: the next reordering
//! takes it back, step by step, to the first event in which they differ, and goes on from there.
//!
//! Linear in the run for the tables, which are built once and take twelve bytes per event. A
//! reordering costs the events after the first in which it differs from the nearest replay kept.
//!
//! Follows Definition 4 of Smaragdakis et al., "Sound Predictive Race Detection in Polynomial
//! Time" (POPL 2012), completed by rules 4 to 6 for the operations it leaves out.
//!
//! ```
//! use reweave_checker::{Checker, ObservedRun};
//! use reweave_op::{AccessOp, EventId, Goal, Op, Reordering, VarId};
//!
//! // Thread 0 writes x, and thread 1 reads it.
//! let x = VarId::from_number(1).unwrap();
//! let ops = [AccessOp::Write, AccessOp::Read].map(|access| Op::Access(access, x).encode());
//! let (codes, operands) = (ops.map(|(code, _)| code), ops.map(|(_, operand)| operand));
//! let (threads, codes, operands) = (&[0, 1], &codes, &operands);
//! let checker = Checker::new(ObservedRun { threads, codes, operands, ..ObservedRun::default() });
//! let [write, read] = [1, 2].map(|number| EventId::from_number(number).unwrap());
//! assert!(checker.check(&Reordering::default(), &Goal::Race(write, read)).is_ok());
//! // The read saw the write, so it cannot come first.
//! let swapped = Reordering::explicit(vec![read, write]);
//! assert!(checker.check(&swapped, &Goal::Enabled(Vec::new())).is_err());
//! ```

mod goal;
mod happens_before;
mod observed;
mod refusal;
mod replay;

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use reweave_base::Id;
use reweave_op::{Goal, Reordering};

pub use observed::ObservedRun;
pub use refusal::{Refusal, Rule};

use observed::Observed;
use replay::{Cut, Free, Replay};

/// A reordering that was found correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// How many events it runs.
    pub events_count: usize,
    /// How many of them are reads whose writer was never known. A finding whose certificate has
    /// any rests on the assumption that they would have gone on as observed.
    pub unknown_reads_count: usize,
}

/// Checks reorderings of one run; its tables are built once.
#[derive(Debug)]
pub struct Checker<'a> {
    observed: Arc<Observed<'a>>,
    /// Replays that nobody uses now, the last used last.
    idle: Mutex<Vec<Replay<'a>>>,
}

/// How many idle replays to keep: one for each who may check at the same time, and one to spare.
/// Asked for once: the answer comes from several files of the system.
static IDLE_MAX: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from) + 1);

impl<'a> Checker<'a> {
    /// A checker for `run`.
    ///
    /// # Panics
    /// If the columns of `run` are not of one length.
    #[must_use]
    pub fn new(run: impl Into<ObservedRun<'a>>) -> Self {
        Self { observed: Arc::new(Observed::new(run.into())), idle: Mutex::default() }
    }

    /// Accepts `reordering` if it is correct and ends as `goal` says.
    ///
    /// # Errors
    /// The first step that breaks a rule, or what the end lacks.
    pub fn check(&self, reordering: &Reordering, goal: &Goal) -> Result<Certificate, Refusal> {
        let cut = self.cut(&reordering.base)?;
        let mut replay = self.nearest(&cut);
        let free = Free { reads: goal.free_reads().0, wakes: goal.lost_wakes() };
        let result = replay
            .run_cut(&cut, free)
            .and_then(|()| {
                reordering.schedule.iter().try_for_each(|&event| replay.step(event, free))
            })
            .and_then(|()| goal::check(&replay, goal))
            .map(|()| Certificate {
                events_count: replay.events_count(),
                unknown_reads_count: replay.unknown_reads_count as usize,
            });
        let mut idle = self.idle();
        idle.push(replay);
        let excess = idle.len().saturating_sub(*IDLE_MAX);
        idle.drain(..excess);
        result
    }

    /// How many events of each thread `base` runs, if there are so many.
    fn cut(&self, base: &Cut) -> Result<Cut, Refusal> {
        let by_thread = &self.observed.by_thread;
        let mut cut = base.clone();
        cut.as_mut_vec().resize(by_thread.len(), 0);
        for (thread, &count) in base.entries() {
            let is_known = thread.index() < by_thread.len();
            let all = if is_known { by_thread.row(thread).len() } else { 0 };
            if count as usize > all {
                let rule = Rule::PrefixTooLong(thread, count, all);
                return Err(Refusal { step: None, event: None, rule });
            }
        }
        Ok(cut)
    }

    /// The replay that shares most with `cut`; a new one, if that would take back more than it shares.
    fn nearest(&self, cut: &Cut) -> Replay<'a> {
        let mut idle = self.idle();
        let shared = idle.iter().enumerate().map(|(at, replay)| (replay.difference(cut), at));
        match shared.max() {
            Some((shared, at)) if idle[at].events_count() <= 2 * shared => idle.remove(at),
            _ => Replay::new(Arc::clone(&self.observed)),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Replay<'a>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
