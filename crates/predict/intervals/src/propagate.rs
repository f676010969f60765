//! Propagation: what slots may hold, and what steps may do, in all interleavings of a graph.
//!
//! **Question.** A graph stands for interleavings: paths of transactions, each after one switch of
//! the processor at most. Which values can be read, written and asserted on them?
//!
//! **Idea.** Rounds. What places hold after one round is passed on to the transactions that can be
//! next, and what these come to is what places hold after the next round. Rounds are not added up:
//! after as many as an interleaving can have transactions everything was seen, so that no widening
//! is needed. Locals travel with switches ([`Mode::Copy`]) or stay with their threads
//! ([`Mode::Own`]); each mode excludes what the other does not, and both are sound.
//!
//! **Promise.** Whatever happens in an interleaving that the graph stands for is in the [`Values`].
//! [`Values::at`] speaks of threads that come to a node or go on from it, not of threads that are
//! suspended there. What needs too much work is given up, and everything is taken to be possible
//! then. The answer is the same for any number of processors, and that of `reference`, the definition, wherever
//! the domain's join is associative, commutative and idempotent, as that of intervals is. That of
//! congruences is not for numbers more than 2^63 apart: there the two answers are both true, but one
//! can be wider.
//!
//! **Cost.** Rounds × switches × slots at worst. A round computes only what changed, switches that
//! start at neighbouring nodes are taken together, and transactions are run on the slots that they
//! look at, once for equal values.
//!
//! Source: M. Ganai, C. Wang, "Interval analysis for concurrent trace programs using transaction
//! sequence graphs", 2010, procedure RPT. Own locals, stops and branching transactions are additions.

mod code;
mod engine;
pub(crate) mod plain;
#[cfg(feature = "reference")]
pub mod reference;

use reweave_base::{Id, IndexVec};
use reweave_trace::ThreadId;

use crate::ctp::{Action, Ctp, Point, Step, StepId};
use crate::domain::Domain;
use crate::graph::{Graph, NodeId};
use crate::lookahead;
use crate::propagate::plain::{Shape, join_row};
use crate::terms::{Slot, TermId};

/// What a thread knows of its locals when it goes on after others ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// What the switch carried, as of everything else.
    Copy,
    /// What they were whenever it came to where it is.
    Own,
    /// What is possible by both.
    #[default]
    Both,
}

/// How to propagate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What becomes of locals at a switch.
    pub mode: Mode,
    /// How many transactions are run one after the other before values are joined; at least 1.
    pub lookahead: u32,
    /// How many paths may be looked along in one round before less is looked ahead.
    pub paths_max: u64,
    /// How many rounds there may be in one mode.
    pub rounds_max: u64,
    /// How many values may be computed in one mode.
    pub work_max: u64,
    /// How many values a round must compute for its work to be shared out among processors.
    pub shared_work_min: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Both,
            lookahead: 1,
            paths_max: 1 << 18,
            rounds_max: u64::MAX,
            work_max: 1 << 32,
            shared_work_min: 200_000,
        }
    }
}

/// What may happen in the interleavings of `ctp` that `graph` stands for.
pub fn propagate<D: Domain>(ctp: &Ctp, graph: &Graph, settings: &Settings) -> Values<D> {
    match settings.mode {
        Mode::Copy => one_mode(ctp, graph, settings, false),
        Mode::Own => one_mode(ctp, graph, settings, true),
        // Both answers are sound, so what either excludes is excluded.
        Mode::Both => {
            let copy = one_mode::<D>(ctp, graph, settings, false);
            copy.meet(&one_mode(ctp, graph, settings, true))
        }
    }
}

fn one_mode<D: Domain>(ctp: &Ctp, graph: &Graph, settings: &Settings, own: bool) -> Values<D> {
    for length in (2..=settings.lookahead).rev() {
        let (paths_max, windows_max) = (settings.paths_max, settings.rounds_max);
        let window = lookahead::Settings { own, length, capped: true, paths_max, windows_max };
        if let Some(outcome) = lookahead::propagate(ctp, graph, &window) {
            return outcome.values;
        }
    }
    engine::propagate(ctp, &Shape::new(ctp, graph), settings, own)
}

// What propagation finds out: the values of nodes and steps.

/// What each slot may hold.
pub type Row<D> = IndexVec<Slot, D>;

/// What may happen in the interleavings that a graph stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Values<D> {
    /// What slots may hold where a thread comes to a node, or goes on from it after others ran;
    /// not while it is suspended there. None where no thread comes.
    pub at: IndexVec<NodeId, Option<Row<D>>>,
    /// What each step may do.
    pub steps: IndexVec<StepId, StepValues<D>>,
    /// Whether a thread may be at the point with every step's guard false, so that it leaves the
    /// paths that are known.
    pub leaves: IndexVec<Point, bool>,
    /// What slots may hold when every thread has come to its end; none if that never happens.
    pub final_values: Option<Row<D>>,
    /// How many rounds there were, of both modes if both ran.
    pub rounds: u64,
    /// How many times a transaction was run on the values of a node, counting those runs that were
    /// known to repeat; of both modes if both ran.
    pub visits: u64,
    /// How many transactions were looked ahead: what was asked for, or less if that was too much.
    pub lookahead: u32,
    /// Whether a budget ran out. If so, anything that is not known is taken to be possible.
    pub exhausted: bool,
}

/// What a step may do.
#[derive(Clone, Debug, PartialEq)]
pub struct StepValues<D> {
    /// Whether it may be taken: a thread may be where it starts, and its guard be true.
    pub reached: bool,
    /// What the shared variable that it reads may hold, where its guard is true.
    pub read: Option<D>,
    /// What it may assign to a shared variable.
    pub stored: Option<D>,
    /// What it may assign to a local.
    pub defined: Option<D>,
    /// What its assertion may come to.
    pub asserted: Option<Asserted<D>>,
    /// Whether it may divide by zero.
    pub may_fault: bool,
    /// Whether a number may leave 64 bits.
    pub may_overflow: bool,
}

/// What an assertion may come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Asserted<D> {
    /// Its value, which is true unless it is zero.
    pub truth: D,
    /// If it may be false, what its slots may hold then, in the order of slots.
    pub failing: Option<Vec<(Slot, D)>>,
}

impl<D> StepValues<D> {
    /// Those of a step that is never taken.
    pub const fn never() -> Self {
        Self {
            reached: false,
            read: None,
            stored: None,
            defined: None,
            asserted: None,
            may_fault: false,
            may_overflow: false,
        }
    }
}

impl<D: Domain> StepValues<D> {
    /// Adds what happens in `other`.
    pub(crate) fn join(&mut self, other: &Self) {
        self.reached |= other.reached;
        self.may_fault |= other.may_fault;
        self.may_overflow |= other.may_overflow;
        join_option(&mut self.read, other.read.as_ref());
        join_option(&mut self.stored, other.stored.as_ref());
        join_option(&mut self.defined, other.defined.as_ref());
        if let Some(asserted) = &other.asserted {
            self.note_assertion(asserted.clone());
        }
    }

    /// Adds what its assertion came to.
    fn note_assertion(&mut self, asserted: Asserted<D>) {
        match &mut self.asserted {
            Some(seen) => seen.join(&asserted),
            unseen @ None => *unseen = Some(asserted),
        }
    }

    /// What happens in both. If they have no value in common, the step is not taken to its end; it
    /// may still be tried, and divide by zero.
    fn meet(&self, other: &Self) -> Self {
        let never = Self {
            may_fault: self.may_fault && other.may_fault,
            may_overflow: self.may_overflow && other.may_overflow,
            ..Self::never()
        };
        let Some(read) = meet_option(&self.read, &other.read) else { return never };
        if !(self.reached && other.reached) {
            return never;
        }
        let tried = Self { reached: true, read, ..never.clone() };
        let asserted = match (&self.asserted, &other.asserted) {
            (Some(left), Some(right)) => left.meet(right).map(Some),
            _ => Some(None),
        };
        let stored = meet_option(&self.stored, &other.stored);
        let defined = meet_option(&self.defined, &other.defined);
        match (asserted, stored, defined) {
            (Some(asserted), Some(stored), Some(defined)) => {
                Self { asserted, stored, defined, ..tried }
            }
            (asserted, ..) if never.may_fault => {
                let asserted = asserted.unwrap_or_else(|| self.asserted.clone());
                Self { asserted, ..tried }
            }
            _ => never,
        }
    }
}

impl<D: Domain> Asserted<D> {
    fn join(&mut self, other: &Self) {
        self.truth.join(&other.truth);
        match (&mut self.failing, &other.failing) {
            (Some(mine), Some(failing)) => {
                for ((_, mine), (_, value)) in mine.iter_mut().zip(failing) {
                    mine.join(value);
                }
            }
            (mine @ None, Some(failing)) => *mine = Some(failing.clone()),
            (_, None) => {}
        }
    }

    fn meet(&self, other: &Self) -> Option<Self> {
        let failing = match (&self.failing, &other.failing) {
            (Some(left), Some(right)) => left
                .iter()
                .zip(right)
                .map(|((slot, left), (_, right))| Some((*slot, left.meet(right)?)))
                .collect(),
            _ => None,
        };
        Some(Self { truth: self.truth.meet(&other.truth)?, failing })
    }
}

/// Adds the members of `other`, if there are any.
pub(crate) fn join_option<D: Domain>(value: &mut Option<D>, other: Option<&D>) {
    match (value, other) {
        (Some(value), Some(other)) => value.join(other),
        (value @ None, Some(other)) => *value = Some(other.clone()),
        (_, None) => {}
    }
}

/// What is in both, where nothing is a value too; none where two values have no common member.
#[expect(clippy::option_option, reason = "no value and no common member are different")]
fn meet_option<D: Domain>(left: &Option<D>, right: &Option<D>) -> Option<Option<D>> {
    match (left, right) {
        (Some(left), Some(right)) => left.meet(right).map(Some),
        _ => Some(None),
    }
}

/// What is in both rows; none if they have no store in common.
pub(crate) fn meet_row<D: Domain>(left: &Row<D>, right: &Row<D>) -> Option<Row<D>> {
    left.iter().zip(right.iter()).map(|(left, right)| left.meet(right)).collect()
}

impl<D: Domain> Values<D> {
    /// What happens in both. Each of two sound answers is as true as the other, so that what one
    /// of them excludes is excluded.
    pub fn meet(&self, other: &Self) -> Self {
        let rows = |left: &Option<Row<D>>, right: &Option<Row<D>>| {
            left.as_ref().zip(right.as_ref()).and_then(|(left, right)| meet_row(left, right))
        };
        Self {
            at: self.at.iter().zip(other.at.iter()).map(|(l, r)| rows(l, r)).collect(),
            steps: self.steps.iter().zip(other.steps.iter()).map(|(l, r)| l.meet(r)).collect(),
            leaves: self.leaves.iter().zip(other.leaves.iter()).map(|(l, r)| *l && *r).collect(),
            final_values: rows(&self.final_values, &other.final_values),
            rounds: self.rounds + other.rounds,
            visits: self.visits + other.visits,
            lookahead: self.lookahead.min(other.lookahead),
            exhausted: self.exhausted || other.exhausted,
        }
    }

    /// Nothing is known, so that everything is possible.
    pub(crate) fn unknown(ctp: &Ctp, graph: &Graph) -> Self {
        let row: Row<D> = IndexVec::from_elem(D::TOP, ctp.slots.len());
        let guarded = |point: Point| {
            let mut steps = ctp.steps_from(point).peekable();
            steps.peek().is_some() && steps.all(|(_, step)| step.guard.is_some())
        };
        Self {
            at: IndexVec::from_elem(Some(row.clone()), graph.nodes.len()),
            steps: ctp.steps.ids().map(|step| unknown_step(ctp, step)).collect(),
            leaves: ctp.leaving.ids().map(guarded).collect(),
            final_values: Some(row),
            rounds: 0,
            visits: 0,
            lookahead: 1,
            exhausted: true,
        }
    }
}

fn unknown_step<D: Domain>(ctp: &Ctp, id: StepId) -> StepValues<D> {
    let step = &ctp.steps[id];
    let computes = terms_of(step).next().is_some();
    let asserted = step.assertion.map(|assertion| {
        let slots = slots_of(ctp, assertion);
        let failing = slots.into_iter().map(|slot| (slot, D::TOP)).collect();
        Asserted { truth: D::TOP, failing: Some(failing) }
    });
    let reads = matches!(step.action, Action::Read(_) | Action::Update(_));
    StepValues {
        reached: true,
        read: reads.then_some(D::TOP),
        stored: step.store.map(|_| D::TOP),
        defined: step.define.map(|_| D::TOP),
        asserted,
        may_fault: computes,
        may_overflow: computes,
    }
}

/// The slots that a term speaks of, each once, in order.
pub(crate) fn slots_of(ctp: &Ctp, term: TermId) -> Vec<Slot> {
    let mut slots = Vec::new();
    ctp.terms.slots(term, &mut |slot| slots.push(slot));
    slots.sort_unstable_by_key(|slot| slot.index());
    slots.dedup();
    slots
}

/// What a step computes: its guard first.
pub(crate) fn terms_of(step: &Step) -> impl Iterator<Item = TermId> {
    let assigned = [step.store, step.define].map(|assigned| assigned.map(|(_, term)| term));
    [step.guard, step.assertion].into_iter().chain(assigned).flatten()
}

// What slots hold when all threads have ended: at the end of a thread that can be the last.

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
        if ctp.is_end(node.point)
            && last[node.thread]
            && let Some(row) = &at[id]
        {
            join_row(&mut joined, row);
        }
    }
    joined
}

/// Whether no other thread is sure to take a step after the last of `thread`, if all end.
fn can_be_last(ctp: &Ctp, thread: ThreadId) -> bool {
    let has_steps = |thread: ThreadId| !ctp.threads[thread].steps.is_empty();
    let is_root = |thread: ThreadId| ctp.threads[thread].parent.is_none();
    if !has_steps(thread) {
        return !ctp.threads.ids().any(|other| is_root(other) && has_steps(other));
    }
    !ctp.threads.ids().any(|other| other != thread && always_joins(ctp, other, thread))
}

/// Whether `thread` joins `child` on each path to its end, if `child` runs at all.
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
    let is_end = |index: usize| ctp.is_end(Point::from_index(index + offset));
    !(0..open.len()).any(|index| open[index] && is_end(index))
}
