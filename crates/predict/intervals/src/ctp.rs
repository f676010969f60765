//! Concurrent trace programs: what threads did in some runs, without the order between them.
//!
//! A thread is a graph of control points without cycles, joined by guarded [`Step`]s. Of one run it
//! is a chain; of several, where these took different ways, it branches. An *interleaving* is a
//! sequence of steps in which every thread goes along its graph from its entry, as far as it
//! pleases, every guard holds when its step is taken, at most one thread holds a lock, a forked
//! thread starts after the fork and a joined one has come to its end before the join. A thread that
//! a fault ended is joined, too, where the program runs; such runs are not interleavings.

mod build;
mod capture;
mod constants;

use std::ops::Range;

use reweave_base::{Id, IndexVec};
use reweave_trace::{LocalId, LockId, Names, SiteId, ThreadId, Trace, VarId};

use crate::terms::{Slot, TermId, Terms};

pub use build::CtpError;

reweave_base::id! {
    /// A control point of a thread.
    pub struct Point;
    /// A step.
    pub struct StepId;
}

/// What a step does that other threads can notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Nothing.
    Local,
    /// Reads a shared variable.
    Read(VarId),
    /// Writes one.
    Write(VarId),
    /// Reads and writes one.
    Update(VarId),
    /// Takes a lock, which nobody holds.
    Acquire(LockId),
    /// Gives it back.
    Release(LockId),
    /// Starts a thread.
    Fork(ThreadId),
    /// Waits for a thread's end.
    Join(ThreadId),
}

/// One guarded step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Whose step it is.
    pub thread: ThreadId,
    /// Where it starts.
    pub from: Point,
    /// Where it ends.
    pub to: Point,
    /// What others notice.
    pub action: Action,
    /// It can be taken only where this is true; none is always.
    pub guard: Option<TermId>,
    /// What it assigns to the shared variable of its action, of the values before the step.
    pub store: Option<(Slot, TermId)>,
    /// What it assigns to a local, of the values before the step.
    pub define: Option<(Slot, TermId)>,
    /// This ought to be true when the step is taken; the step is taken all the same.
    pub assertion: Option<TermId>,
    /// Where in the code.
    pub site: SiteId,
}

/// Whose a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Everybody's.
    Shared(VarId),
    /// One thread's.
    Local(ThreadId, LocalId),
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its points; the first is its entry, and every step leads to a later one.
    pub points: Range<Point>,
    /// Its steps, ordered by where they start.
    pub steps: Range<StepId>,
    /// The thread that forks it, if one does.
    pub parent: Option<ThreadId>,
}

/// A concurrent trace program.
#[derive(Clone, Debug)]
pub struct Ctp {
    /// What steps compute.
    pub terms: Terms,
    /// Shared variables first, in the order of their ids, then the locals of the first thread, …
    pub slots: IndexVec<Slot, Owner>,
    /// What slots hold at the start.
    pub initial: IndexVec<Slot, i64>,
    /// The threads.
    pub threads: IndexVec<ThreadId, Thread>,
    /// The steps, thread by thread.
    pub steps: IndexVec<StepId, Step>,
    /// For each point the steps from it, which are consecutive.
    pub leaving: IndexVec<Point, Range<StepId>>,
    /// How threads, variables, locks, locals and sites are called.
    pub names: Names,
}

impl Ctp {
    /// The program of the runs that `traces` recorded, which must carry their program layer.
    ///
    /// # Errors
    ///
    /// If there is no run, one without its program, or one with a loop that was not unrolled.
    pub fn new(traces: &[&Trace]) -> Result<Self, CtpError> {
        build::build(traces)
    }

    /// The slot of a shared variable.
    #[must_use]
    pub fn shared(&self, var: VarId) -> Slot {
        Slot::from_index(var.index())
    }

    /// How many slots are shared variables: the first ones.
    #[must_use]
    pub fn shared_count(&self) -> usize {
        self.names.vars.len()
    }

    /// The steps of `thread` with their ids.
    pub fn steps_of(&self, thread: ThreadId) -> impl DoubleEndedIterator<Item = (StepId, &Step)> {
        let Range { start, end } = self.threads[thread].steps;
        (start.index()..end.index()).map(|index| {
            let id = StepId::from_index(index);
            (id, &self.steps[id])
        })
    }

    /// The steps from `point` with their ids.
    pub fn steps_from(&self, point: Point) -> impl Iterator<Item = (StepId, &Step)> {
        let Range { start, end } = self.leaving[point];
        (start.index()..end.index()).map(|index| {
            let id = StepId::from_index(index);
            (id, &self.steps[id])
        })
    }

    /// Whether `thread` has one way only.
    #[must_use]
    pub fn is_straight(&self, thread: ThreadId) -> bool {
        let Range { start, end } = &self.threads[thread].points;
        (start.index()..end.index()).all(|point| {
            let leaving = &self.leaving[Point::from_index(point)];
            leaving.end.index() - leaving.start.index() <= 1
        })
    }
}
