//! What threads do, as circuits: which steps are taken, and what they compute.
//!
//! A *visit* is a step of a unit with the literal that it is taken. It implies that the thread is
//! where the step starts, that the guard holds, and that nothing is divided by zero. Where ways
//! meet, a value is chosen by the step that was taken. What a unit finds in a shared slot at its
//! start is a *load*, whose value [`super::memory`] determines; what it leaves there is a *store*.

use std::collections::BTreeMap;
use std::rc::Rc;

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_trace::{LockId, ThreadId};

use crate::ctp::{Action, Ctp, Point, StepId};
use crate::symbolic::circuits::{Bit, Circuits, Value};
use crate::symbolic::plan::{Order, Plan, Planned, UnitId, following, slots};
use crate::symbolic::{Question, Widths};
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
struct Load {
    unit: UnitId,
    slot: Slot,
    value: Rc<Value>,
    /// Steps that use it.
    users: Vec<Bit>,
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
    loads: Vec<Load>,
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
    writers: FxHashMap<Slot, Vec<(UnitId, i64, i64)>>,
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
    fn is_reached(&self, step: StepId) -> bool {
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
        if self.ctp.threads[thread].points.is_empty() || self.ctp.is_end(entry) {
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
            _ => {}
        }
        if self.ctp.is_end(description.to) {
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
        // Nothing can keep the thread from this step once it is there: no variable is needed.
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
                        if operator.is_division() {
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

// What reads see and locks exclude.
//
// A load chooses a store, or the initial value. The store is made, before the load, and no other
// store to the slot is made between. In a thread without branches only neighbours need be asked
// for that: a store before an earlier one is hidden by it, and one after a later one comes later.

/// A store as loads see it.
struct Source {
    unit: UnitId,
    thread: ThreadId,
    is_written: Bit,
    low: i64,
    high: i64,
    /// The value, as the distance from the least one of the slot.
    distance: Vec<Bit>,
}

/// All stores to a slot, by thread and in a thread in order.
struct Sources {
    all: Vec<Source>,
    low: i64,
    high: i64,
}

impl Encoder<'_> {
    /// Says what loads see.
    pub(super) fn encode_memory(&mut self) {
        let straight: IndexVec<ThreadId, bool> =
            self.ctp.threads.ids().map(|thread| self.ctp.is_straight_line(thread)).collect();
        let loads = std::mem::take(&mut self.loads);
        let mut sources: FxHashMap<Slot, Sources> = FxHashMap::default();
        for load in &loads {
            if self.circuits.gates.is_full() {
                return;
            }
            let sources =
                sources.entry(load.slot).or_insert_with(|| self.sources(load.slot, &loads));
            self.encode_load(load, sources, &straight);
        }
        self.encode_counters(&loads);
    }

    fn sources(&mut self, slot: Slot, loads: &[Load]) -> Sources {
        let initial = self.circuits.constant(self.ctp.initial[slot]).low;
        let (mut low, mut high) = (initial, initial);
        let stores = self.stores.entries();
        let stores =
            stores.flat_map(|(unit, stores)| stores.iter().map(move |store| (unit, store)));
        let stores = stores.filter(|(_, store)| store.slot == slot);
        let stored = stores.map(|(unit, store)| (unit, store.is_written, store.value.clone()));
        let stored: Vec<_> = stored.collect();
        let loaded = loads.iter().filter(|load| load.slot == slot).map(|load| &load.value);
        for value in stored.iter().map(|(_, _, value)| value).chain(loaded) {
            (low, high) = (low.min(value.low), high.max(value.high));
        }
        let source = |(unit, is_written, value): (UnitId, Bit, Rc<Value>)| Source {
            unit,
            thread: self.plan.units[unit].thread,
            is_written,
            low: value.low,
            high: value.high,
            distance: self.circuits.distances(&value, low, high),
        };
        Sources { all: stored.into_iter().map(source).collect(), low, high }
    }

    fn encode_load(&mut self, load: &Load, sources: &Sources, straight: &IndexVec<ThreadId, bool>) {
        let is_used = self.circuits.gates.any(&load.users);
        let distance = self.circuits.distances(&load.value, sources.low, sources.high);
        let mut choices = vec![!is_used];
        let own = self.plan.units[load.unit].thread;
        // The store of the own thread that hides all before it.
        let hider = if straight[own] { last_before(sources, own, load.unit) } else { None };
        for (position, source) in sources.all.iter().enumerate() {
            let is_hidden = source.thread == own
                && (source.unit >= load.unit || hider.is_some_and(|hider| hider != position));
            let is_apart = source.high < load.value.low || load.value.high < source.low;
            let before = self.order.before(source.unit, load.unit);
            if is_hidden || is_apart || before == Bit::FALSE {
                continue;
            }
            // The choice of this store implies that it is made, before the load, with the value
            // that is loaded, and that every other store is either before it or after the load.
            let choice = self.circuits.gates.variable();
            self.circuits.gates.clause(&[!choice, source.is_written]);
            self.circuits.gates.clause(&[!choice, before]);
            self.encode_equal(choice, &source.distance, &distance);
            for (other, between) in sources.all.iter().enumerate() {
                if is_needed(sources, straight, (position, other), (own, load.unit), hider) {
                    let unit = between.unit;
                    let earlier = self.order.before(unit, source.unit);
                    let later = self.order.before(load.unit, unit);
                    self.circuits.gates.clause(&[!choice, !between.is_written, earlier, later]);
                }
            }
            choices.push(choice);
        }
        let initial = self.circuits.constant(self.ctp.initial[load.slot]);
        let is_apart = initial.high < load.value.low || load.value.high < initial.low;
        if hider.is_none() && !is_apart {
            // The initial value is seen if every store that is made comes after the load.
            let choice = self.circuits.gates.variable();
            let start = self.circuits.distances(&initial, sources.low, sources.high);
            self.encode_equal(choice, &start, &distance);
            for source in sources.all.iter().filter(|source| source.unit != load.unit) {
                let later = self.order.before(load.unit, source.unit);
                self.circuits.gates.clause(&[!choice, !source.is_written, later]);
            }
            choices.push(choice);
        }
        self.circuits.gates.long_clause(&choices);
    }

    fn encode_equal(&mut self, condition: Bit, left: &[Bit], right: &[Bit]) {
        for (&left, &right) in left.iter().zip(right) {
            self.circuits.gates.clause(&[!condition, !left, right]);
            self.circuits.gates.clause(&[!condition, left, !right]);
        }
    }

    /// Says that at most one thread holds a lock.
    pub(super) fn encode_locks(&mut self) {
        let mut sections: Vec<(LockId, Section)> = Vec::new();
        let mut visits: FxHashMap<StepId, Vec<Visit>> = FxHashMap::default();
        for &visit in &self.visits {
            visits.entry(visit.step).or_default().push(visit);
        }
        for &acquire in &self.visits {
            if let Action::Acquire(lock) = self.ctp.steps[acquire.step].action {
                let next = following(self.ctp, acquire.step, lock);
                let of = |step: &StepId| visits.get(step).into_iter().flatten().copied();
                let releases = next.releases.iter().flat_map(of).collect();
                let again = next.acquires.iter().flat_map(of).collect();
                sections.push((lock, Section { acquire, releases, again }));
            }
        }
        for (position, (lock, one)) in sections.iter().enumerate() {
            // A thread that acquires the lock again without a release in between waits for itself.
            for again in &one.again {
                let between = one.releases.iter().filter(|release| release.step < again.step);
                let mut clause: Vec<Bit> = between.map(|release| release.taken).collect();
                clause.extend([!one.acquire.taken, !again.taken]);
                self.circuits.gates.clause(&clause);
            }
            for (_, other) in sections[..position].iter().filter(|(of, _)| of == lock) {
                if self.plan.units[one.acquire.unit].thread
                    != self.plan.units[other.acquire.unit].thread
                {
                    // Of two sections that are both entered, one is left before the other begins.
                    let (first, second) = (self.is_left(one, other), self.is_left(other, one));
                    let (left, right) = (one.acquire.taken, other.acquire.taken);
                    self.circuits.gates.clause(&[!left, !right, first, second]);
                }
            }
            if self.circuits.gates.is_full() {
                return;
            }
        }
    }

    /// Whether the section `one`, if it is entered, is left before `other` is entered.
    fn is_left(&mut self, one: &Section, other: &Section) -> Bit {
        let mut ways = Vec::new();
        for release in &one.releases {
            let before = self.order.before(release.unit, other.acquire.unit);
            // On the same path the release follows from the acquire, and needs no literal.
            let is_certain = release.taken == one.acquire.taken;
            let taken = if is_certain { Bit::TRUE } else { release.taken };
            ways.push(self.circuits.gates.and(taken, before));
        }
        self.circuits.gates.any(&ways)
    }
}

/// Where a lock is taken, and what comes next.
struct Section {
    acquire: Visit,
    releases: Vec<Visit>,
    /// Where the thread would take it once more.
    again: Vec<Visit>,
}

/// The last store of `thread` before `unit`.
fn last_before(sources: &Sources, thread: ThreadId, unit: UnitId) -> Option<usize> {
    sources.all.iter().rposition(|source| source.thread == thread && source.unit < unit)
}

/// Whether it must be said that the second store of a pair does not come between the first and the
/// load.
fn is_needed(
    sources: &Sources,
    straight: &IndexVec<ThreadId, bool>,
    (chosen, other): (usize, usize),
    (own, unit): (ThreadId, UnitId),
    hider: Option<usize>,
) -> bool {
    let (source, between) = (&sources.all[chosen], &sources.all[other]);
    if chosen == other || between.thread == own && between.unit >= unit {
        return false;
    }
    if between.thread == own && straight[own] {
        return hider == Some(other);
    }
    if between.thread == source.thread {
        return other > chosen && (other == chosen + 1 || !straight[between.thread]);
    }
    true
}

// What ranges say about loads, beyond what each step assigns.
//
// A load that is only copied lies in the range of the copy. And a *counter*, a slot to which units
// only ever add what is not negative, never falls: a unit finds in it at least what was left
// there before. That follows from the rest of the formula, but only by induction along an order,
// which the solver would have to find anew for each order.

/// Beyond so many comparisons the help costs more than it saves.
const COMPARISONS_MAX: usize = 50_000;

impl Encoder<'_> {
    /// Between what numbers the load of `slot` by `unit` lies.
    fn load_bounds(&self, unit: UnitId, slot: Slot) -> (i64, i64) {
        if matches!(self.widths, Widths::Fixed(_)) {
            return self.circuits.bounds();
        }
        let initial = self.ctp.initial[slot];
        let writers = self.writers.get(&slot).into_iter().flatten();
        let earlier = writers.filter(|&&(writer, ..)| match self.plan.units[writer].thread {
            thread if thread == self.plan.units[unit].thread => writer < unit,
            _ => self.order.known(unit, writer) != Some(true),
        });
        let hull = |(low, high): (i64, i64), &(_, from, to): &(UnitId, i64, i64)| {
            (low.min(from), high.max(to))
        };
        let (low, high) = earlier.fold((initial, initial), hull);
        match self.copied(&self.plan.units[unit], slot) {
            Some((from, to)) if low.max(from) <= high.min(to) => (low.max(from), high.min(to)),
            _ => (low, high),
        }
    }

    /// The range of what steps of `unit` copy from `slot`, if all that find there what the unit
    /// found copy it.
    fn copied(&self, unit: &Planned, slot: Slot) -> Option<(i64, i64)> {
        let Widths::Ranges(ranges) = self.widths else { return None };
        let from = |position: usize| self.ctp.steps[unit.steps[position]].from;
        let is_chain = (1..unit.steps.len()).all(|position| from(position - 1) != from(position));
        if !is_chain && unit.writes.contains(&slot) {
            // What is found may then matter to a step that sees another value.
            return None;
        }
        let mut hull: Option<(i64, i64)> = None;
        for &step in unit.steps.iter().filter(|&&step| self.is_reached(step)) {
            let description = &self.ctp.steps[step];
            let terms: Vec<TermId> = self.plan.terms(self.ctp, step).collect();
            if slots(self.ctp, &terms).contains(&slot) {
                let (_, term) = description.define?;
                if self.ctp.terms.term(term) != Term::Slot(slot) {
                    return None;
                }
                let (low, high) = ranges.defined.get(step).copied().flatten()?;
                let (least, greatest) = hull.unwrap_or((low, high));
                hull = Some((least.min(low), greatest.max(high)));
            }
            let mut assigned = description.store.into_iter().chain(description.define);
            if assigned.any(|(assigned, _)| assigned == slot) {
                break;
            }
        }
        hull
    }

    /// Says that counters never fall.
    fn encode_counters(&mut self, loads: &[Load]) {
        let mut by_slot: FxHashMap<Slot, Vec<&Load>> = FxHashMap::default();
        for load in loads {
            by_slot.entry(load.slot).or_default().push(load);
        }
        for slot in self.ctp.slots.ids() {
            let Some(loads) = by_slot.get(&slot) else { continue };
            let Some(stores) = self.counter(slot, loads) else { continue };
            if stores.len().saturating_mul(loads.len()) > COMPARISONS_MAX {
                continue;
            }
            for load in loads {
                for (unit, store) in &stores {
                    if self.plan.units[*unit].thread != self.plan.units[load.unit].thread {
                        self.encode_rise(load, *unit, store);
                    }
                }
            }
        }
    }

    /// Says that `load` finds at least what `unit` left, if it comes after it.
    fn encode_rise(&mut self, load: &Load, unit: UnitId, store: &Count) {
        let before = self.order.before(unit, load.unit);
        let used = self.circuits.gates.any(&load.users);
        // Compared with what the unit found, so that both of two units that add are compared once.
        let falls = if store.is_strict {
            !self.circuits.less(&store.found, &load.value)
        } else {
            self.circuits.less(&load.value, &store.found)
        };
        self.circuits.gates.clause(&[!used, !store.is_written, !before, !falls]);
    }

    /// The units that store to `slot`, if each adds to what it found there and nothing is
    /// subtracted.
    fn counter(&self, slot: Slot, loads: &[&Load]) -> Option<Vec<(UnitId, Count)>> {
        let mut counts = Vec::new();
        for (unit, stores) in self.stores.entries() {
            let Some(store) = stores.iter().find(|store| store.slot == slot) else { continue };
            let load = loads.iter().find(|load| load.unit == unit)?;
            if !store.value.adds_to(&load.value) {
                return None;
            }
            let (is_written, found) = (store.is_written, Rc::clone(&load.value));
            let is_strict = store.value.low > load.value.low;
            counts.push((unit, Count { is_written, found, is_strict }));
        }
        Some(counts)
    }
}

/// A unit that adds to a counter.
struct Count {
    is_written: Bit,
    found: Rc<Value>,
    /// Whether it adds more than nothing.
    is_strict: bool,
}
