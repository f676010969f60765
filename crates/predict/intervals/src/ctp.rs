//! Concurrent trace programs: what threads did in some runs, without the order between them.
//!
//! A thread is a graph of control points without cycles, joined by guarded [`Step`]s. Of one run it
//! is a chain; of several, where these took different ways, it branches. An *interleaving* is a
//! sequence of steps in which every thread goes along its graph from its entry, as far as it
//! pleases, every guard holds when its step is taken, at most one thread holds a lock, a forked
//! thread starts after the fork and a joined one has come to its end before the join. A thread that
//! a fault ended is joined, too, where the program runs; such runs are not interleavings.

mod build;

use std::ops::Range;

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_trace::{LocalId, LockId, Names, SiteId, ThreadId, Trace, VarId};

pub use crate::ctp::build::CtpError;
use crate::terms::{Slot, Term, TermId, Terms};

reweave_base::id! {
    /// A program point of a thread.
    pub struct Point;
    /// A step.
    pub struct StepId;
}

/// What a step does that other threads can notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// Releases it.
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
    pub fn shared(&self, var: VarId) -> Slot {
        Slot::from_index(var.index())
    }

    /// How many slots are shared variables: the first ones.
    pub fn shared_count(&self) -> usize {
        self.names.vars.len()
    }

    /// The steps of `thread` with their ids.
    pub fn steps_of(&self, thread: ThreadId) -> impl DoubleEndedIterator<Item = (StepId, &Step)> {
        ids(&self.threads[thread].steps).map(|id| (id, &self.steps[id]))
    }

    /// The steps from `point` with their ids.
    pub fn steps_from(&self, point: Point) -> impl Iterator<Item = (StepId, &Step)> {
        ids(&self.leaving[point]).map(|id| (id, &self.steps[id]))
    }

    /// The points of `thread`, its entry first.
    pub fn points_of(&self, thread: ThreadId) -> impl DoubleEndedIterator<Item = Point> + use<> {
        ids(&self.threads[thread].points)
    }

    /// Whether no step leaves `point`.
    pub fn is_end(&self, point: Point) -> bool {
        self.leaving[point].is_empty()
    }

    /// The slot of the shared variable that `step` reads, if it reads one.
    pub fn read_slot(&self, step: &Step) -> Option<Slot> {
        let (Action::Read(var) | Action::Update(var)) = step.action else { return None };
        Some(self.shared(var))
    }

    /// Whether `thread` has a single path: no point has two steps.
    pub fn is_straight_line(&self, thread: ThreadId) -> bool {
        self.points_of(thread).all(|point| self.steps_from(point).nth(1).is_none())
    }
}

/// The ids from the start of `range` to before its end.
fn ids<I: Id>(range: &Range<I>) -> impl DoubleEndedIterator<Item = I> + use<I> {
    (range.start.index()..range.end.index()).map(I::from_index)
}

// Constant propagation, before any other analysis.
//
// Which locals hold one value only is decided thread by thread: nobody else can change them. A
// shared variable counts as a local of the only thread that uses it, and as a constant if whatever
// is stored to it is what it held at the start. What is known is put into the terms, guards that
// always hold are dropped, and the whole is repeated while it finds more.
//
// No step of the program goes, so that steps still are the events of the runs. Each round is linear in the steps,
// times the locals of a thread.

/// How often to look again; each time at least one variable must have become a constant.
const ROUNDS_MAX: usize = 16;

/// Who uses a shared variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    Nobody,
    One(ThreadId),
    Several,
}

impl Ctp {
    /// Puts into the terms what can only be one number.
    pub fn propagate_constants(&mut self) {
        let users = self.users();
        let mut constants: IndexVec<Slot, bool> = IndexVec::from_elem(false, self.slots.len());
        for round in 0..ROUNDS_MAX {
            self.settle_passed();
            let found = self.constant_variables(&constants);
            // What the first round puts into terms may make stores constant.
            let more = round == 0 || found != constants;
            constants = found;
            for thread in 0..self.threads.len() {
                self.fold_thread(ThreadId::from_index(thread), &users, &constants);
            }
            if !more {
                break;
            }
        }
        self.drop_passing(&constants);
    }

    fn users(&self) -> IndexVec<VarId, User> {
        let mut users = IndexVec::from_elem(User::Nobody, self.shared_count());
        for step in self.steps.iter() {
            if let Action::Read(var) | Action::Write(var) | Action::Update(var) = step.action {
                users[var] = match users[var] {
                    User::Nobody => User::One(step.thread),
                    User::One(thread) if thread == step.thread => continue,
                    User::One(_) | User::Several => User::Several,
                };
            }
        }
        users
    }

    /// Lets what is passed start as what it is: nobody looks at it before it is written.
    fn settle_passed(&mut self) {
        let mut only: FxHashMap<Slot, Option<i64>> = FxHashMap::default();
        for step in self.steps.iter() {
            if let (Action::Write(var), Some((slot, value))) = (step.action, step.store)
                && self.is_passed(var)
            {
                let value = as_constant(&self.terms, value);
                let known = only.entry(slot).or_insert(value);
                if *known != value {
                    *known = None;
                }
            }
        }
        for (slot, value) in only {
            if let Some(value) = value {
                self.initial[slot] = value;
            }
        }
    }

    /// The shared variables to which nothing is stored but what they hold from the start.
    fn constant_variables(&self, known: &IndexVec<Slot, bool>) -> IndexVec<Slot, bool> {
        let mut constants: IndexVec<Slot, bool> =
            self.slots.entries().map(|(_, owner)| matches!(owner, Owner::Shared(_))).collect();
        for step in self.steps.iter() {
            if let Some((slot, value)) = step.store {
                let same = self.terms.term(value) == Term::Constant(self.initial[slot]);
                constants[slot] &= same || known[slot];
            }
        }
        constants
    }

    fn fold_thread(
        &mut self,
        thread: ThreadId,
        users: &IndexVec<VarId, User>,
        constants: &IndexVec<Slot, bool>,
    ) {
        let tracked: Vec<Slot> = self
            .slots
            .entries()
            .filter(|&(_, &owner)| match owner {
                Owner::Shared(var) => users[var] == User::One(thread),
                Owner::Local(of, _) => of == thread,
            })
            .map(|(slot, _)| slot)
            .collect();
        let column: FxHashMap<Slot, usize> =
            tracked.iter().enumerate().map(|(index, &slot)| (slot, index)).collect();
        let start: Vec<Option<i64>> =
            tracked.iter().map(|&slot| Some(self.initial[slot])).collect();
        let mut known: FxHashMap<Point, Vec<Option<i64>>> = FxHashMap::default();
        let points = self.threads[thread].points.clone();
        known.insert(points.start, start);
        for point in ids(&points) {
            let Some(here) = known.remove(&point) else { continue };
            let leaving = self.leaving[point].clone();
            for id in ids(&leaving) {
                let value = |slot: Slot| match column.get(&slot) {
                    Some(&index) => here[index],
                    None => constants[slot].then(|| self.initial[slot]),
                };
                let step = fold_step(&mut self.terms, self.steps[id], &value);
                self.steps[id] = step;
                let mut after = here.clone();
                for (slot, value) in step.store.iter().chain(&step.define) {
                    if let Some(&index) = column.get(slot) {
                        after[index] = as_constant(&self.terms, *value);
                    }
                }
                let merged = known.entry(step.to).or_insert_with(|| after.clone());
                for (old, new) in merged.iter_mut().zip(&after) {
                    if old != new {
                        *old = None;
                    }
                }
            }
        }
    }
}

fn fold_step(terms: &mut Terms, mut step: Step, value: &dyn Fn(Slot) -> Option<i64>) -> Step {
    step.store = step.store.map(|(slot, of)| (slot, fold(terms, of, value)));
    step.define = step.define.map(|(slot, of)| (slot, fold(terms, of, value)));
    step.assertion = step.assertion.map(|of| fold(terms, of, value));
    let guard = step.guard.map(|of| fold(terms, of, value));
    step.guard = guard.filter(|&of| as_constant(terms, of).is_none_or(|number| number == 0));
    step
}

fn as_constant(terms: &Terms, id: TermId) -> Option<i64> {
    match terms.term(id) {
        Term::Constant(value) => Some(value),
        _ => None,
    }
}

/// `id` with known slots as numbers, computed as far as that goes. What divides by zero stays.
fn fold(terms: &mut Terms, id: TermId, value: &dyn Fn(Slot) -> Option<i64>) -> TermId {
    let term = match terms.term(id) {
        Term::Constant(_) => return id,
        Term::Slot(slot) => match value(slot) {
            Some(number) => Term::Constant(number),
            None => return id,
        },
        Term::Unary(operator, operand) => {
            let operand = fold(terms, operand, value);
            match as_constant(terms, operand) {
                Some(number) => Term::Constant(operator.apply(number)),
                None => Term::Unary(operator, operand),
            }
        }
        Term::Binary(operator, left, right) => {
            let (left, right) = (fold(terms, left, value), fold(terms, right, value));
            let numbers = as_constant(terms, left).zip(as_constant(terms, right));
            match numbers.and_then(|(left, right)| operator.apply(left, right)) {
                Some(number) => Term::Constant(number),
                None => Term::Binary(operator, left, right),
            }
        }
    };
    terms.add(term)
}
