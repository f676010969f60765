//! What threads do, as circuits: which steps are taken, and what they compute.
//!
//! A *visit* is a step of a unit with the literal that it is taken. It implies that the thread is
//! where the step starts, that the guard holds, and that nothing is divided by zero. Where ways
//! meet, a value is chosen by the step that was taken. What a unit finds in a shared slot at its
//! start is a *load*, whose value [`super::memory`] determines; what it leaves there is a *store*.

use std::collections::BTreeMap;
use std::rc::Rc;

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_trace::ThreadId;

use super::bits::{Circuits, Value};
use super::gates::Bit;
use super::order::Order;
use super::plan::{Plan, UnitId};
use super::{Question, Widths};
use crate::ctp::{Action, Ctp, Point, StepId};
use crate::terms::{Slot, Term, TermId};

/// Values of slots; one that is missing has the value that it had before.
type Values = Rc<BTreeMap<Slot, Rc<Value>>>;

/// What a step leaves in shared slots.
type Assigned = Vec<(Slot, Rc<Value>)>;

/// A step of a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub(super) unit: UnitId,
    pub(super) step: StepId,
    /// Whether it is taken.
    pub(super) taken: Bit,
}

/// What a unit finds in a shared slot.
pub(super) struct Load {
    pub(super) unit: UnitId,
    pub(super) slot: Slot,
    pub(super) value: Rc<Value>,
    /// Steps that use it.
    pub(super) users: Vec<Bit>,
}

/// What a unit leaves in a shared slot.
pub(super) struct Store {
    pub(super) slot: Slot,
    /// Whether it writes it at all.
    pub(super) is_written: Bit,
    pub(super) value: Rc<Value>,
}

/// A thread at a point.
#[derive(Clone)]
struct State {
    at: Bit,
    /// What nobody else uses.
    own: Values,
    /// What the unit has written.
    written: Values,
    /// Whether the thread may stop here, since it was asked about the step before.
    is_asked: bool,
}

/// The formula under construction.
pub(super) struct Encoder<'a> {
    pub(super) ctp: &'a Ctp,
    pub(super) plan: &'a Plan,
    pub(super) order: &'a Order,
    pub(super) widths: Widths<'a>,
    pub(super) circuits: Circuits,
    pub(super) visits: Vec<Visit>,
    pub(super) loads: Vec<Load>,
    pub(super) stores: IndexVec<UnitId, Vec<Store>>,
    /// For each unit whether a step of it is taken.
    pub(super) begun: IndexVec<UnitId, Bit>,
    /// What is asked about.
    goals: Vec<Bit>,
    asserts: bool,
    started: IndexVec<ThreadId, Bit>,
    ended: IndexVec<ThreadId, Bit>,
    endings: IndexVec<ThreadId, Vec<Bit>>,
    forks: IndexVec<ThreadId, Vec<(UnitId, Bit)>>,
    /// The units that write a slot, with the range of what they write.
    pub(super) writers: FxHashMap<Slot, Vec<(UnitId, i64, i64)>>,
    /// The loads of the unit under construction.
    current: FxHashMap<Slot, usize>,
    faults: Vec<Bit>,
}

impl<'a> Encoder<'a> {
    /// Nothing yet.
    pub(super) fn new(
        ctp: &'a Ctp,
        plan: &'a Plan,
        order: &'a Order,
        widths: Widths<'a>,
        circuits: Circuits,
        question: &Question,
    ) -> Self {
        let threads_count = ctp.threads.len();
        let mut encoder = Self {
            ctp,
            plan,
            order,
            widths,
            circuits,
            visits: Vec::new(),
            loads: Vec::new(),
            stores: plan.units.iter().map(|_| Vec::new()).collect(),
            begun: IndexVec::from_elem(Bit::FALSE, plan.units.len()),
            goals: Vec::new(),
            asserts: matches!(question, Question::Fails(_)),
            started: IndexVec::from_elem(Bit::TRUE, threads_count),
            ended: IndexVec::from_elem(Bit::FALSE, threads_count),
            endings: IndexVec::from_elem(Vec::new(), threads_count),
            forks: IndexVec::from_elem(Vec::new(), threads_count),
            writers: FxHashMap::default(),
            current: FxHashMap::default(),
            faults: Vec::new(),
        };
        for thread in ctp.threads.ids() {
            if plan.is_forked[thread] {
                encoder.started[thread] = encoder.circuits.gates.variable();
            }
            encoder.ended[thread] = encoder.circuits.gates.variable();
        }
        encoder.find_writers();
        encoder
    }

    /// Encodes what all threads do, except for what reads see and locks exclude.
    pub(super) fn encode_threads(&mut self) {
        for thread in self.ctp.threads.ids() {
            self.encode_thread(thread);
        }
        for thread in self.ctp.threads.ids() {
            let mut clause = std::mem::take(&mut self.endings[thread]);
            clause.push(!self.ended[thread]);
            self.circuits.gates.long_clause(&clause);
            if self.plan.is_forked[thread] {
                self.encode_start(thread);
            }
        }
        let goals = std::mem::take(&mut self.goals);
        let goal = self.circuits.gates.any(&goals);
        self.circuits.gates.clause(&[goal]);
    }

    /// A thread that is forked starts after a fork.
    fn encode_start(&mut self, thread: ThreadId) {
        let mut clause = vec![!self.started[thread]];
        for (unit, taken) in std::mem::take(&mut self.forks[thread]) {
            let before = match self.plan.units_of[thread].first() {
                Some(&first) => self.order.before(unit, first),
                None => Bit::TRUE,
            };
            clause.push(self.circuits.gates.and(taken, before));
        }
        self.circuits.gates.long_clause(&clause);
    }

    /// The known bounds of what `step` assigns to `slot`; none if it is never taken.
    fn bounds(&self, step: StepId, slot: Slot) -> Option<(i64, i64)> {
        let Widths::Ranges(ranges) = self.widths else { return Some(self.circuits.bounds()) };
        let stores = self.ctp.steps[step].store.is_some_and(|(stored, _)| stored == slot);
        let table = if stores { &ranges.stored } else { &ranges.defined };
        table.get(step).copied().flatten().filter(|(low, high)| low <= high)
    }

    /// Whether `step` can be taken as far as ranges know.
    pub(super) fn is_reached(&self, step: StepId) -> bool {
        let Widths::Ranges(ranges) = self.widths else { return true };
        let description = &self.ctp.steps[step];
        let mut assigned = description.store.into_iter().chain(description.define);
        ranges.reached.get(step).copied().unwrap_or(true)
            && assigned.all(|(slot, _)| self.bounds(step, slot).is_some())
    }

    fn find_writers(&mut self) {
        for (unit, planned) in self.plan.units.entries() {
            for &step in &planned.steps {
                let description = &self.ctp.steps[step];
                for (slot, _) in description.store.into_iter().chain(description.define) {
                    if self.plan.is_shared[slot]
                        && let Some((low, high)) = self.bounds(step, slot)
                    {
                        self.writers.entry(slot).or_default().push((unit, low, high));
                    }
                }
            }
        }
    }

    fn encode_thread(&mut self, thread: ThreadId) {
        let entry = self.ctp.threads[thread].points.start;
        let nothing = Values::default();
        let (own, written) = (Rc::clone(&nothing), nothing);
        let start = State { at: self.started[thread], own, written, is_asked: false };
        if self.ctp.threads[thread].points.is_empty() || self.is_end(entry) {
            self.endings[thread].push(start.at);
            return;
        }
        let mut arrivals = FxHashMap::default();
        arrivals.insert(entry, vec![start]);
        for position in 0..self.plan.units_of[thread].len() {
            let unit = self.plan.units_of[thread][position];
            if !self.circuits.gates.is_full() {
                self.encode_unit(unit, &mut arrivals);
            }
        }
    }

    fn is_end(&self, point: Point) -> bool {
        self.ctp.leaving[point].is_empty()
    }

    fn encode_unit(&mut self, unit: UnitId, arrivals: &mut FxHashMap<Point, Vec<State>>) {
        let (ctp, plan) = (self.ctp, self.plan);
        let planned = &plan.units[unit];
        let from = |step: StepId| ctp.steps[step].from;
        self.current.clear();
        let mut assigned: BTreeMap<Slot, Vec<(Bit, Rc<Value>)>> = BTreeMap::new();
        for steps in planned.steps.chunk_by(|&one, &two| from(one) == from(two)) {
            let from = from(steps[0]);
            let Some(states) = arrivals.remove(&from) else { continue };
            let is_first = from == planned.from;
            let state = self.merge(unit, states, is_first);
            let mut taken_here: Vec<Bit> = Vec::new();
            for &step in steps {
                let Some((next, assignments)) = self.encode_step(unit, step, &state) else {
                    continue;
                };
                for (slot, value) in assignments {
                    assigned.entry(slot).or_default().push((next.at, value));
                }
                for &other in &taken_here {
                    self.circuits.gates.clause(&[!next.at, !other]);
                }
                taken_here.push(next.at);
                arrivals.entry(self.ctp.steps[step].to).or_default().push(next);
            }
            if is_first {
                self.begun[unit] = self.circuits.gates.any(&taken_here);
            }
        }
        for (slot, values) in assigned {
            let taken: Vec<Bit> = values.iter().map(|&(taken, _)| taken).collect();
            let is_written = self.circuits.gates.any(&taken);
            // Later ones of the way that is taken come later here.
            let mut value = Rc::clone(&values[0].1);
            for (taken, later) in &values[1..] {
                value = self.circuits.choose(*taken, later, &value);
            }
            self.stores[unit].push(Store { slot, is_written, value });
        }
    }

    /// The state where `states` meet. At the start of a unit nothing has been written.
    fn merge(&mut self, unit: UnitId, mut states: Vec<State>, is_first: bool) -> State {
        if is_first {
            states.iter_mut().for_each(|state| state.written = Values::default());
        }
        let last = states.pop().expect("a list of arrivals is made when there is one");
        if states.is_empty() {
            return last;
        }
        let mut bits: Vec<Bit> = states.iter().map(|state| state.at).collect();
        bits.push(last.at);
        let mut merged = last;
        for state in &states {
            let own = self.merge_values(unit, state.at, (&state.own, &merged.own));
            let written = self.merge_values(unit, state.at, (&state.written, &merged.written));
            (merged.own, merged.written) = (own, written);
            merged.is_asked |= state.is_asked;
        }
        merged.at = self.circuits.gates.any(&bits);
        merged
    }

    fn merge_values(&mut self, unit: UnitId, choice: Bit, values: (&Values, &Values)) -> Values {
        let (left, right) = values;
        if Rc::ptr_eq(left, right) {
            return Rc::clone(left);
        }
        let mut slots: Vec<Slot> = left.keys().chain(right.keys()).copied().collect();
        slots.sort_unstable();
        slots.dedup();
        let mut merged = BTreeMap::new();
        for slot in slots {
            let [left, right] = [left, right].map(|values| match values.get(&slot) {
                Some(value) => Rc::clone(value),
                None => self.before_unit(unit, slot),
            });
            merged.insert(slot, self.circuits.choose(choice, &left, &right));
        }
        Rc::new(merged)
    }

    /// What `slot` holds that neither the thread nor the unit has assigned.
    fn before_unit(&mut self, unit: UnitId, slot: Slot) -> Rc<Value> {
        if !self.plan.is_shared[slot] {
            return Rc::new(self.circuits.constant(self.ctp.initial[slot]));
        }
        if let Some(&load) = self.current.get(&slot) {
            return Rc::clone(&self.loads[load].value);
        }
        let (low, high) = self.load_bounds(unit, slot);
        let value = Rc::new(self.circuits.unknown(low, high));
        self.current.insert(slot, self.loads.len());
        self.loads.push(Load { unit, slot, value: Rc::clone(&value), users: Vec::new() });
        value
    }

    /// The state after `step` and what it stores, unless it can never be taken.
    fn encode_step(
        &mut self,
        unit: UnitId,
        step: StepId,
        state: &State,
    ) -> Option<(State, Assigned)> {
        if !self.is_reached(step) {
            return None;
        }
        let description = self.ctp.steps[step];
        let taken = self.taken(unit, step, state);
        let demand = |encoder: &mut Self, bit: Bit| encoder.circuits.gates.clause(&[!taken, bit]);
        if let Some(guard) = description.guard {
            let guard = self.term(unit, guard, state, taken);
            let holds = self.circuits.is_true(&guard);
            demand(self, holds);
        }
        self.encode_assertion(unit, step, state, taken);
        let mut next = state.clone();
        next.at = taken;
        next.is_asked = self.plan.is_asked[step];
        let mut stores = Vec::new();
        for (slot, term) in description.store.into_iter().chain(description.define) {
            let may_fault = self.plan.may_fault[term];
            if !self.plan.matters[slot] && !may_fault {
                continue;
            }
            let bounds = self.bounds(step, slot);
            let value = self.assigned(unit, term, state, taken, bounds);
            if self.plan.is_shared[slot] {
                Rc::make_mut(&mut next.written).insert(slot, Rc::clone(&value));
                stores.push((slot, value));
            } else {
                Rc::make_mut(&mut next.own).insert(slot, value);
            }
        }
        for fault in std::mem::take(&mut self.faults) {
            demand(self, !fault);
        }
        match description.action {
            Action::Fork(child) if child.index() < self.forks.len() => {
                self.forks[child].push((unit, taken));
            }
            Action::Join(child) => self.encode_join(unit, child, taken),
            Action::Fork(_)
            | Action::Local
            | Action::Read(_)
            | Action::Write(_)
            | Action::Update(_)
            | Action::Acquire(_)
            | Action::Release(_) => {}
        }
        if self.is_end(description.to) {
            self.endings[description.thread].push(taken);
        }
        self.visits.push(Visit { unit, step, taken });
        Some((next, stores))
    }

    /// The literal that `step` is taken.
    fn taken(&mut self, unit: UnitId, step: StepId, state: &State) -> Bit {
        let from = self.ctp.steps[step].from;
        let leaving = &self.ctp.leaving[from];
        let is_only = leaving.end.index() - leaving.start.index() == 1;
        let may_stop = from == self.plan.units[unit].from || state.is_asked;
        if is_only && !may_stop && !self.plan.may_block(self.ctp, step) {
            return state.at;
        }
        let taken = self.circuits.gates.variable();
        self.circuits.gates.clause(&[!taken, state.at]);
        taken
    }

    fn encode_assertion(&mut self, unit: UnitId, step: StepId, state: &State, taken: Bit) {
        let assertion = self.ctp.steps[step].assertion;
        let is_asked = self.plan.is_asked[step];
        if is_asked && !self.asserts {
            self.goals.push(taken);
        }
        let Some(assertion) = assertion else { return };
        if !(is_asked && self.asserts || self.plan.may_fault[assertion]) {
            return;
        }
        let value = self.term(unit, assertion, state, taken);
        if is_asked && self.asserts {
            let holds = self.circuits.is_true(&value);
            let fails = self.circuits.gates.and(taken, !holds);
            self.goals.push(fails);
        }
    }

    fn encode_join(&mut self, unit: UnitId, child: ThreadId, taken: Bit) {
        let is_other = child.index() < self.ctp.threads.len();
        if !is_other || child == self.plan.units[unit].thread {
            self.circuits.gates.clause(&[!taken]);
            return;
        }
        let ended = self.ended[child];
        self.circuits.gates.clause(&[!taken, ended]);
        if let Some(&last) = self.plan.units_of[child].last() {
            let before = self.order.before(last, unit);
            self.circuits.gates.clause(&[!taken, before]);
        }
    }

    /// What is assigned that `term` comes to and that lies within `bounds`.
    fn assigned(
        &mut self,
        unit: UnitId,
        term: TermId,
        state: &State,
        taken: Bit,
        bounds: Option<(i64, i64)>,
    ) -> Rc<Value> {
        let may_fault = self.plan.may_fault[term];
        match bounds {
            Some((low, high)) if low == high && !may_fault => Rc::new(Value::constant(low)),
            _ => {
                let value = self.term(unit, term, state, taken);
                let Some((low, high)) = bounds else { return value };
                if low <= value.low && value.high <= high {
                    return value;
                }
                Rc::new(self.circuits.narrow(Value::clone(&value), low, high))
            }
        }
    }

    /// What `slot` holds in `state`, used by a step with the literal `taken`.
    fn read(&mut self, unit: UnitId, slot: Slot, state: &State, taken: Bit) -> Rc<Value> {
        let known = if self.plan.is_shared[slot] { &state.written } else { &state.own };
        let value = match known.get(&slot) {
            Some(value) => Rc::clone(value),
            None => self.before_unit(unit, slot),
        };
        if let Some(&load) = self.current.get(&slot)
            && self.loads[load].users.last() != Some(&taken)
        {
            self.loads[load].users.push(taken);
        }
        value
    }

    /// What `root` comes to in `state`, used by a step with the literal `taken`. Literals that say
    /// that it divides by zero are noted.
    fn term(&mut self, unit: UnitId, root: TermId, state: &State, taken: Bit) -> Rc<Value> {
        let mut done: FxHashMap<TermId, Rc<Value>> = FxHashMap::default();
        let mut open = vec![root];
        while let Some(&term) = open.last() {
            let value = match self.ctp.terms.term(term) {
                Term::Constant(number) => Rc::new(self.circuits.constant(number)),
                Term::Slot(slot) => self.read(unit, slot, state, taken),
                Term::Unary(operator, operand) => match done.get(&operand) {
                    Some(operand) => Rc::new(self.circuits.unary(operator, operand)),
                    None => {
                        open.push(operand);
                        continue;
                    }
                },
                Term::Binary(operator, left, right) => match (done.get(&left), done.get(&right)) {
                    (Some(left), Some(right)) => {
                        if operator.apply(1, 0).is_none() {
                            let is_zero = !self.circuits.is_true(right);
                            self.faults.push(is_zero);
                        }
                        Rc::new(self.circuits.binary(operator, left, right))
                    }
                    (None, _) => {
                        open.push(left);
                        continue;
                    }
                    (_, None) => {
                        open.push(right);
                        continue;
                    }
                },
            };
            done.insert(term, value);
            open.pop();
        }
        Rc::clone(&done[&root])
    }
}
