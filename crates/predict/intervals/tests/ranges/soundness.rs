//! Nothing that happens in an interleaving is missing from the ranges.

use proptest::prelude::*;
use reweave_base::{FxHashSet, Id, IndexVec};
use reweave_intervals::answers::answers;
use reweave_intervals::ctp::{Action, Ctp, Point, Step, StepId};
use reweave_intervals::domain::{Domain, Interval, Product};
use reweave_intervals::graph::{self, Graph, GraphKind, Rule};
use reweave_intervals::propagate::{Mode, Settings, Values, propagate};
use reweave_intervals::terms::{Slot, TermId};
use reweave_testkit::soak;
use reweave_trace::{LockId, ThreadId};

use crate::ranges::common::Cut;
use crate::ranges::generate;

/// A state between two steps of an interleaving.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    points: Vec<Point>,
    started: Vec<bool>,
    slots: Vec<i64>,
    holders: Vec<Option<ThreadId>>,
}

impl State {
    fn new(ctp: &Ctp) -> Self {
        Self {
            points: ctp.threads.iter().map(|thread| thread.points.start).collect(),
            started: ctp.threads.iter().map(|thread| thread.parent.is_none()).collect(),
            slots: ctp.initial.iter().copied().collect(),
            holders: vec![None; ctp.names.locks.len()],
        }
    }

    fn value(&self, ctp: &Ctp, term: TermId) -> Option<i64> {
        ctp.terms.evaluate(term, &|slot: Slot| self.slots[slot.index()])
    }

    fn is_ended(&self, ctp: &Ctp, thread: ThreadId) -> bool {
        let leaving = &ctp.leaving[self.points[thread.index()]];
        leaving.start == leaving.end
    }

    /// Whether the other threads and locks let `step` be taken.
    fn is_free(&self, ctp: &Ctp, step: &Step) -> bool {
        let holder = |lock: LockId| self.holders[lock.index()];
        match step.action {
            Action::Acquire(lock) => holder(lock).is_none(),
            Action::Release(lock) => holder(lock) == Some(step.thread),
            Action::Join(child) => self.started[child.index()] && self.is_ended(ctp, child),
            Action::Local
            | Action::Read(_)
            | Action::Write(_)
            | Action::Update(_)
            | Action::Fork(_) => true,
        }
    }

    fn after(&self, step: &Step, assigned: &[(Slot, i64)]) -> Self {
        let mut next = self.clone();
        next.points[step.thread.index()] = step.to;
        match step.action {
            Action::Acquire(lock) => next.holders[lock.index()] = Some(step.thread),
            Action::Release(lock) => next.holders[lock.index()] = None,
            Action::Fork(child) => next.started[child.index()] = true,
            Action::Local
            | Action::Read(_)
            | Action::Write(_)
            | Action::Update(_)
            | Action::Join(_) => {}
        }
        for &(slot, value) in assigned {
            next.slots[slot.index()] = value;
        }
        next
    }
}

/// What happens in interleavings, as far as ranges speak of it.
#[derive(Default)]
struct Truth {
    reached: FxHashSet<StepId>,
    read: FxHashSet<(StepId, i64)>,
    stored: FxHashSet<(StepId, i64)>,
    defined: FxHashSet<(StepId, i64)>,
    /// Assertions that fail, with the store.
    failed: FxHashSet<(StepId, Vec<i64>)>,
    faults: FxHashSet<StepId>,
    leaves: FxHashSet<Point>,
    finals: FxHashSet<Vec<i64>>,
}

/// Goes through all states of all interleavings; none if there are too many.
fn truth(ctp: &Ctp) -> Option<Truth> {
    let mut truth = Truth::default();
    let mut seen = FxHashSet::default();
    let mut states = vec![State::new(ctp)];
    while let Some(state) = states.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        if seen.len() > 20_000 {
            return None;
        }
        let started = || ctp.threads.ids().filter(|thread| state.started[thread.index()]);
        if started().all(|thread| state.is_ended(ctp, thread)) {
            truth.finals.insert(state.slots.clone());
        }
        for thread in started() {
            visit(ctp, &state, thread, &mut truth, &mut states);
        }
    }
    Some(truth)
}

fn visit(ctp: &Ctp, state: &State, thread: ThreadId, truth: &mut Truth, states: &mut Vec<State>) {
    let point = state.points[thread.index()];
    let guard = |step: &Step| step.guard.map_or(Some(1), |guard| state.value(ctp, guard));
    let mut steps = ctp.steps_from(point).peekable();
    if steps.peek().is_some() && steps.all(|(_, step)| guard(step) == Some(0)) {
        truth.leaves.insert(point);
    }
    for (id, step) in ctp.steps_from(point) {
        match guard(step) {
            None => {
                truth.faults.insert(id);
            }
            Some(0) => {}
            Some(_) if !state.is_free(ctp, step) => {}
            Some(_) => {
                truth.reached.insert(id);
                states.extend(take(ctp, state, id, step, truth));
            }
        }
    }
}

fn take(ctp: &Ctp, state: &State, id: StepId, step: &Step, truth: &mut Truth) -> Option<State> {
    if let Action::Read(var) | Action::Update(var) = step.action {
        truth.read.insert((id, state.slots[ctp.shared(var).index()]));
    }
    let assertion = step.assertion.map(|assertion| state.value(ctp, assertion));
    if assertion == Some(Some(0)) {
        truth.failed.insert((id, state.slots.clone()));
    }
    let value = |(slot, term): (Slot, TermId)| Some((slot, state.value(ctp, term)?));
    let (stored, defined) = (step.store.map(value), step.define.map(value));
    if [stored, defined].contains(&Some(None)) || assertion == Some(None) {
        truth.faults.insert(id);
        return None;
    }
    let (stored, defined) = (stored.flatten(), defined.flatten());
    truth.stored.extend(stored.map(|(_, value)| (id, value)));
    truth.defined.extend(defined.map(|(_, value)| (id, value)));
    let assigned: Vec<(Slot, i64)> = stored.into_iter().chain(defined).collect();
    Some(state.after(step, &assigned))
}

/// Checks that `values` have all of `truth`.
#[track_caller]
fn check_values<D: Domain>(ctp: &Ctp, values: &Values<D>, truth: &Truth, graph: &Graph) {
    let has =
        |range: &Option<D>, value: i64| range.as_ref().is_some_and(|range| range.contains(value));
    let steps = &values.steps;
    for &step in &truth.reached {
        assert!(steps[step].reached, "{step:?} is reached: {ctp:?} {graph:?}");
    }
    for &(step, value) in &truth.read {
        assert!(has(&steps[step].read, value), "{step:?} reads {value}: {ctp:?} {graph:?}");
    }
    for &(step, value) in &truth.stored {
        assert!(has(&steps[step].stored, value), "{step:?} stores {value}: {ctp:?} {graph:?}");
    }
    for &(step, value) in &truth.defined {
        assert!(has(&steps[step].defined, value), "{step:?} defines {value}: {ctp:?} {graph:?}");
    }
    for &step in &truth.faults {
        assert!(steps[step].may_fault, "{step:?} divides by zero: {ctp:?} {graph:?}");
    }
    for &point in &truth.leaves {
        assert!(values.leaves[point], "a thread leaves at {point:?}: {ctp:?} {graph:?}");
    }
    for (step, slots) in &truth.failed {
        let asserted = steps[*step].asserted.as_ref().expect("the assertion is reached");
        assert!(asserted.truth.contains(0), "{step:?} fails: {ctp:?} {graph:?}");
        let failing = asserted.failing.as_ref().expect("the assertion fails");
        for (slot, range) in failing {
            let value = slots[slot.index()];
            assert!(range.contains(value), "{step:?} fails with {value}: {ctp:?} {graph:?}");
        }
    }
    let answers = answers(ctp, values);
    for slots in &truth.finals {
        let finals = values.final_values.as_ref().expect("the end is reached");
        let slots: IndexVec<Slot, i64> = slots.iter().copied().collect();
        for (slot, &value) in slots.entries() {
            assert!(finals[slot].contains(value), "{slot:?} ends as {value}: {ctp:?} {graph:?}");
        }
        for end in &answers.finals {
            let value = slots[ctp.shared(end.var)];
            assert!(has(&end.value, value), "{end:?} ends as {value}: {ctp:?} {graph:?}");
        }
    }
}

#[track_caller]
fn check<D: Domain>(ctp: &Ctp, graph: &Graph) {
    let Some(truth) = truth(ctp) else { return };
    for mode in [Mode::Copy, Mode::Own, Mode::Both] {
        for lookahead in 1..=3 {
            let settings = Settings { mode, lookahead, paths_max: 5_000, ..Settings::default() };
            check_values(ctp, &propagate::<D>(ctp, graph, &settings), &truth, graph);
        }
    }
}

proptest! {
    #![proptest_config(soak::config(300))]

    #[test]
    fn of_random_programs_where_every_point_is_a_node(seed: u64) {
        let ctp = generate::program(seed);
        let graph = Cut::everywhere(&ctp).graph(&ctp);
        check::<Interval>(&ctp, &graph);
        check::<Product>(&ctp, &graph);
    }

    #[test]
    fn of_random_programs_on_sound_graphs(seed: u64) {
        let ctp = generate::program(seed);
        for graph in sound_graphs(&ctp) {
            check::<Interval>(&ctp, &graph);
        }
    }
}

/// The graphs that promise to stand for all interleavings.
fn sound_graphs(ctp: &Ctp) -> impl Iterator<Item = Graph> {
    let kinds = [GraphKind::Ccfg, GraphKind::Tsg, GraphKind::TsgReduced];
    kinds.into_iter().flat_map(|kind| {
        [Rule::Lattice, Rule::Lockset].map(|switches| {
            graph::build(ctp, kind, &graph::Settings { switches, ..graph::Settings::default() })
        })
    })
}

#[test]
fn of_all_small_programs_on_sound_graphs() {
    for ctp in generate::small_programs() {
        for graph in sound_graphs(&ctp) {
            check::<Interval>(&ctp, &graph);
        }
    }
}

#[test]
fn of_all_small_programs_where_every_point_is_a_node() {
    for ctp in generate::small_programs() {
        check::<Interval>(&ctp, &Cut::everywhere(&ctp).graph(&ctp));
    }
}
