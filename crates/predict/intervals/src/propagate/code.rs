//! Transactions as flat code over the few slots that they touch.
//!
//! A transaction looks at some slots, its *footprint*, and passes the others through. Its terms are
//! written once more with the footprint's positions in place of slots, so that running it touches a
//! short row, and edges that bring equal rows need to run only once.

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_trace::ThreadId;

use super::plain::{PlaceId, Shape, place_of};
use crate::ctp::{Ctp, Owner, Point, Step, StepId};
use crate::domain::{Domain, Interval};
use crate::evaluate;
use crate::graph::Transaction;
use crate::propagate::{Asserted, StepValues, join_option, slots_of, terms_of};
use crate::terms::{Slot, Term, TermId, Terms};

/// The slots that some step assigns to, closed up; others hold what they held at the start.
pub(super) struct Columns {
    /// For each column its slot.
    pub(super) slots: Vec<Slot>,
    /// For each slot its column.
    pub(super) of: IndexVec<Slot, Option<u32>>,
    /// For each column the thread whose local it is.
    pub(super) owners: Vec<Option<ThreadId>>,
}

impl Columns {
    pub(super) fn new(ctp: &Ctp) -> Self {
        let mut is_assigned = IndexVec::from_elem(false, ctp.slots.len());
        for step in ctp.steps.iter() {
            for (slot, _) in [step.store, step.define].into_iter().flatten() {
                is_assigned[slot] = true;
            }
        }
        let slots: Vec<Slot> = ctp.slots.ids().filter(|&slot| is_assigned[slot]).collect();
        let mut of = IndexVec::from_elem(None, ctp.slots.len());
        for (column, &slot) in slots.iter().enumerate() {
            of[slot] = Some(column as u32);
        }
        let owner = |&slot: &Slot| match ctp.slots[slot] {
            Owner::Shared(_) => None,
            Owner::Local(thread, _) => Some(thread),
        };
        let owners = slots.iter().map(owner).collect();
        Self { slots, of, owners }
    }
}

/// One position of a footprint.
pub(super) struct Cell<D> {
    /// The column, unless the slot never changes.
    pub(super) column: Option<u32>,
    /// Whether what is there before can make a difference.
    pub(super) is_input: bool,
    /// What the slot holds at the start.
    pub(super) initial: D,
}

/// Where a transaction can lead, and at which of its points it is then.
pub(super) struct Output {
    pub(super) place: PlaceId,
    point: u32,
    is_stop: bool,
}

/// A transaction's code.
pub(super) struct Code<D> {
    pub(super) footprint: Vec<Cell<D>>,
    pub(super) outputs: Vec<Output>,
    /// Whether it comes to all outputs whatever it starts with.
    pub(super) is_total: bool,
    instructions: Vec<Instruction>,
    pub(super) steps: Vec<StepId>,
    pub(super) points: Vec<Point>,
}

enum Instruction {
    /// All that lead to a point are done; can the thread go on?
    Check { point: u32, stop: Option<u32>, choices: Vec<Choice> },
    /// A step.
    Take(Move),
}

/// A step from a point, as far as it decides whether the thread goes on.
struct Choice {
    guard: Option<Formula>,
    computed: Vec<Formula>,
}

struct Move {
    index: u32,
    from: u32,
    to: u32,
    guard: Option<Formula>,
    read: Option<u32>,
    assertion: Option<(Formula, Vec<(u32, Slot)>)>,
    assigned: [Option<(u32, Formula)>; 2],
}

/// A term over a footprint, with what need not be asked of it.
#[derive(Clone, Copy)]
struct Formula {
    term: TermId,
    divides: bool,
    /// Whether no number leaves 64 bits as long as slots hold [`is_small`] ones.
    stays_in_range: bool,
}

const SMALL: i64 = 1 << 31;

/// Whether all members are far from where numbers wrap.
#[inline]
fn is_small<D: Domain>(value: &D) -> bool {
    let (low, high) = value.bounds();
    low >= -SMALL && high <= SMALL
}

/// Makes code of transactions.
pub(super) struct Compiler<'a> {
    ctp: &'a Ctp,
    columns: &'a Columns,
    pub(super) terms: Terms,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(ctp: &'a Ctp, columns: &'a Columns) -> Self {
        Self { ctp, columns, terms: Terms::default() }
    }

    pub(super) fn code<D: Domain>(
        &mut self,
        shape: &Shape<'_>,
        transaction: &Transaction,
    ) -> Code<D> {
        let ctp = self.ctp;
        let mut places = Places::new(ctp, transaction);
        let entry = places.point(shape.graph.nodes[transaction.from].point);
        let mut outputs = Vec::new();
        let mut instructions = Vec::new();
        let mut seen = None;
        for (index, &id) in transaction.steps.iter().enumerate() {
            let step = &ctp.steps[id];
            if seen != Some(step.from) {
                seen = Some(step.from);
                instructions.extend(self.check(shape, step.from, &mut places, &mut outputs));
            }
            instructions.push(Instruction::Take(self.step(index, step, &mut places)));
        }
        for &exit in &transaction.exits {
            let point = places.point(shape.graph.nodes[exit].point);
            if point != entry {
                outputs.push(Output { place: place_of(exit), point, is_stop: false });
            }
        }
        let is_chain = transaction.steps.iter().zip(1..).all(|(&id, next)| {
            let follower = transaction.steps.get(next).map(|&next| ctp.steps[next].from);
            follower.is_none_or(|follower| follower == ctp.steps[id].to)
        });
        let end = transaction.steps.last().map(|&last| places.point(ctp.steps[last].to));
        let is_total = is_chain
            && outputs.len() == 1
            && end == Some(outputs[0].point)
            && instructions.iter().all(|instruction| match instruction {
                Instruction::Check { .. } => false,
                Instruction::Take(step) => step.is_total(),
            });
        let footprint = self.footprint(transaction, &places, is_total);
        let steps = transaction.steps.clone();
        Code { footprint, outputs, is_total, instructions, steps, points: places.points }
    }

    fn footprint<D: Domain>(
        &self,
        transaction: &Transaction,
        places: &Places,
        is_total: bool,
    ) -> Vec<Cell<D>> {
        let ctp = self.ctp;
        let mut is_read = vec![!is_total; places.slots.len()];
        for &id in &transaction.steps {
            let step = &ctp.steps[id];
            for term in terms_of(step) {
                ctp.terms.slots(term, &mut |slot| is_read[places.cells[&slot] as usize] = true);
            }
            if let Some(slot) = ctp.read_slot(step) {
                is_read[places.cells[&slot] as usize] = true;
            }
        }
        let cell = |(&slot, is_input): (&Slot, bool)| Cell {
            column: self.columns.of[slot],
            is_input,
            initial: D::constant(ctp.initial[slot]),
        };
        places.slots.iter().zip(is_read).map(cell).collect()
    }

    fn check(
        &mut self,
        shape: &Shape<'_>,
        point: Point,
        places: &mut Places,
        outputs: &mut Vec<Output>,
    ) -> Option<Instruction> {
        let ctp = self.ctp;
        let stop = shape.stops[point];
        if stop.is_none() && ctp.steps_from(point).any(|(_, step)| step.guard.is_none()) {
            return None;
        }
        let mut choices = Vec::new();
        for (_, step) in ctp.steps_from(point) {
            let guard = step.guard.map(|guard| self.formula(guard, places));
            let computed = terms_of(step).skip(usize::from(guard.is_some()));
            let computed = computed.map(|term| self.formula(term, places));
            choices
                .push(Choice { guard, computed: computed.filter(|term| term.divides).collect() });
        }
        let point = places.point(point);
        let output = outputs.len() as u32;
        outputs.extend(stop.map(|place| Output { place, point, is_stop: true }));
        Some(Instruction::Check { point, stop: stop.map(|_| output), choices })
    }

    fn step(&mut self, index: usize, step: &Step, places: &mut Places) -> Move {
        let ctp = self.ctp;
        let guard = step.guard.map(|guard| self.formula(guard, places));
        let read = ctp.read_slot(step).map(|slot| places.cell(slot));
        let assertion = step.assertion.map(|assertion| {
            let formula = self.formula(assertion, places);
            let slots = slots_of(ctp, assertion).into_iter();
            (formula, slots.map(|slot| (places.cell(slot), slot)).collect())
        });
        let assigned = [step.store, step.define].map(|assigned| {
            assigned.map(|(slot, term)| (places.cell(slot), self.formula(term, places)))
        });
        let (from, to) = (places.point(step.from), places.point(step.to));
        Move { index: index as u32, from, to, guard, read, assertion, assigned }
    }

    fn formula(&mut self, term: TermId, places: &mut Places) -> Formula {
        let mut divides = false;
        let term = self.translate(term, places, &mut divides);
        let small = Interval::new(-SMALL, SMALL).expect("the bounds are in order");
        let stays_in_range = !evaluate::may_overflow(&self.terms, term, &|_| small);
        Formula { term, divides, stays_in_range }
    }

    /// The recursion is as deep as the term, which the language bounds.
    fn translate(&mut self, term: TermId, places: &mut Places, divides: &mut bool) -> TermId {
        let translated = match self.ctp.terms.term(term) {
            constant @ Term::Constant(_) => constant,
            Term::Slot(slot) => Term::Slot(Slot::from_index(places.cell(slot) as usize)),
            Term::Unary(operator, operand) => {
                Term::Unary(operator, self.translate(operand, places, divides))
            }
            Term::Binary(operator, left, right) => {
                let divisor = self.ctp.terms.term(right);
                *divides |= operator.is_division()
                    && !matches!(divisor, Term::Constant(number) if number != 0);
                let left = self.translate(left, places, divides);
                Term::Binary(operator, left, self.translate(right, places, divides))
            }
        };
        self.terms.add(translated)
    }
}

/// The slots and points of one transaction, numbered as they come.
struct Places {
    slots: Vec<Slot>,
    cells: FxHashMap<Slot, u32>,
    points: Vec<Point>,
    numbers: FxHashMap<Point, u32>,
}

impl Places {
    fn new(ctp: &Ctp, transaction: &Transaction) -> Self {
        let mut slots = Vec::new();
        for &id in &transaction.steps {
            let step = &ctp.steps[id];
            for term in terms_of(step) {
                ctp.terms.slots(term, &mut |slot| slots.push(slot));
            }
            slots.extend([step.store, step.define].into_iter().flatten().map(|(slot, _)| slot));
        }
        slots.sort_unstable();
        slots.dedup();
        let cells = slots.iter().copied().zip(0..).collect();
        Self { slots, cells, points: Vec::new(), numbers: FxHashMap::default() }
    }

    fn cell(&mut self, slot: Slot) -> u32 {
        *self.cells.entry(slot).or_insert_with(|| {
            self.slots.push(slot);
            self.slots.len() as u32 - 1
        })
    }

    fn point(&mut self, point: Point) -> u32 {
        *self.numbers.entry(point).or_insert_with(|| {
            self.points.push(point);
            self.points.len() as u32 - 1
        })
    }
}

impl Move {
    /// Whether it can always be taken and comes to its end.
    fn is_total(&self) -> bool {
        let assertion = self.assertion.as_ref().map(|(formula, _)| formula);
        let assigned = self.assigned.iter().flatten().map(|(_, formula)| formula);
        self.guard.is_none() && assertion.into_iter().chain(assigned).all(|term| !term.divides)
    }
}

/// The rows that code runs on, kept from one run to the next.
#[derive(Clone)]
pub(super) struct Scratch<D> {
    /// A row for each point, one after the other.
    rows: Vec<D>,
    has_row: Vec<bool>,
    /// A row for each output.
    ends: Vec<D>,
    has_end: Vec<bool>,
    /// A row that guards and assignments are tried on.
    scratch_row: Vec<D>,
}

impl<D: Domain> Scratch<D> {
    pub(super) const fn new() -> Self {
        let rows = Vec::new();
        Self {
            rows,
            has_row: Vec::new(),
            ends: Vec::new(),
            has_end: Vec::new(),
            scratch_row: Vec::new(),
        }
    }

    fn reset(&mut self, code: &Code<D>) {
        let width = code.footprint.len();
        self.rows.resize(code.points.len() * width, D::TOP);
        self.has_row.clear();
        self.has_row.resize(code.points.len(), false);
        self.ends.resize(code.outputs.len() * width, D::TOP);
        self.has_end.clear();
        self.has_end.resize(code.outputs.len(), false);
    }
}

/// What was seen of the steps and points of one transaction.
pub(super) struct Seen<D> {
    pub(super) steps: Vec<StepValues<D>>,
    pub(super) leaves: Vec<bool>,
}

impl<D: Domain> Code<D> {
    pub(super) fn unseen(&self) -> Seen<D> {
        Seen {
            steps: vec![StepValues::never(); self.steps.len()],
            leaves: vec![false; self.points.len()],
        }
    }

    /// Runs the code on `start`, a row of the footprint. The rows with which it comes to outputs
    /// are asked for by [`Code::end`].
    pub(super) fn run(
        &self,
        terms: &Terms,
        start: &[D],
        scratch: &mut Scratch<D>,
        seen: &mut Seen<D>,
    ) {
        scratch.reset(self);
        scratch.rows[..start.len()].clone_from_slice(start);
        scratch.has_row[0] = true;
        for instruction in &self.instructions {
            match instruction {
                Instruction::Check { point, stop, choices } => {
                    if scratch.has_row[*point as usize] {
                        let leaves = self.check(terms, *point, *stop, choices, scratch);
                        seen.leaves[*point as usize] |= leaves;
                    }
                }
                Instruction::Take(step) => {
                    if scratch.has_row[step.from as usize] {
                        self.take(terms, step, scratch, &mut seen.steps[step.index as usize]);
                    }
                }
            }
        }
        for (index, output) in self.outputs.iter().enumerate() {
            if !output.is_stop && scratch.has_row[output.point as usize] {
                let width = start.len();
                let from = output.point as usize * width;
                let row = &scratch.rows[from..from + width];
                scratch.ends[index * width..(index + 1) * width].clone_from_slice(row);
                scratch.has_end[index] = true;
            }
        }
    }

    /// The row with which the last run came to the output at `index`.
    #[inline]
    pub(super) fn end<'s>(&self, index: usize, scratch: &'s Scratch<D>) -> Option<&'s [D]> {
        let width = self.footprint.len();
        scratch.has_end[index].then(|| &scratch.ends[index * width..(index + 1) * width])
    }

    /// Whether all guards of a point may be false; and the stop there.
    fn check(
        &self,
        terms: &Terms,
        point: u32,
        stop: Option<u32>,
        choices: &[Choice],
        scratch: &mut Scratch<D>,
    ) -> bool {
        let width = self.footprint.len();
        let from = point as usize * width;
        let mut faults = false;
        if stop.is_some() {
            for choice in choices {
                faults |= choice.faults(
                    terms,
                    &scratch.rows[from..from + width],
                    &mut scratch.scratch_row,
                );
            }
        }
        scratch.scratch_row.clear();
        scratch.scratch_row.extend_from_slice(&scratch.rows[from..from + width]);
        let refined = scratch.scratch_row.as_mut_slice();
        let leaves = choices.iter().all(|choice| {
            choice.guard.is_some_and(|guard| evaluate::assume(terms, guard.term, false, refined))
        });
        if let Some(stop) = stop {
            let ends = &mut scratch.ends[stop as usize * width..(stop as usize + 1) * width];
            if faults {
                ends.clone_from_slice(&scratch.rows[from..from + width]);
            } else {
                ends.clone_from_slice(&scratch.scratch_row);
            }
            scratch.has_end[stop as usize] = faults || leaves;
        }
        leaves
    }

    fn take(&self, terms: &Terms, step: &Move, scratch: &mut Scratch<D>, seen: &mut StepValues<D>) {
        let width = self.footprint.len();
        let Scratch { rows, has_row, scratch_row, .. } = scratch;
        let from = step.from as usize * width;
        let to = step.to as usize * width;
        scratch_row.clear();
        scratch_row.extend_from_slice(&rows[from..from + width]);
        if let Some(guard) = step.guard {
            guard.watch(terms, scratch_row, seen);
            if !evaluate::assume(terms, guard.term, true, scratch_row.as_mut_slice()) {
                return;
            }
        }
        seen.reached = true;
        if let Some(read) = step.read {
            join_option(&mut seen.read, Some(&scratch_row[read as usize]));
        }
        if let Some((formula, slots)) = &step.assertion {
            formula.watch(terms, scratch_row, seen);
            if !assert(terms, formula.term, slots, scratch_row, seen) {
                return;
            }
        }
        let [stored, defined] = &step.assigned;
        let (Ok(stored), Ok(defined)) = (
            assigned(terms, stored.as_ref(), scratch_row, seen),
            assigned(terms, defined.as_ref(), scratch_row, seen),
        ) else {
            return;
        };
        join_option(&mut seen.stored, stored.as_ref().map(|(_, value)| value));
        join_option(&mut seen.defined, defined.as_ref().map(|(_, value)| value));
        for (cell, value) in [stored, defined].into_iter().flatten() {
            scratch_row[cell as usize] = value;
        }
        let has_row = &mut has_row[step.to as usize];
        let row = &mut rows[to..to + width];
        if *has_row {
            row.iter_mut().zip(scratch_row.iter()).for_each(|(value, other)| value.join(other));
        } else {
            row.clone_from_slice(scratch_row);
            *has_row = true;
        }
    }
}

/// What is assigned, if anything is; an error if it always divides by zero.
#[inline]
fn assigned<D: Domain>(
    terms: &Terms,
    assigned: Option<&(u32, Formula)>,
    row: &[D],
    seen: &mut StepValues<D>,
) -> Result<Option<(u32, D)>, ()> {
    let Some(&(cell, formula)) = assigned else { return Ok(None) };
    formula.watch(terms, row, seen);
    let value = evaluate::value(terms, formula.term, &|slot: Slot| row[slot.index()].clone());
    Ok(Some((cell, value.ok_or(())?)))
}

/// Notes what an assertion comes to in `row`; false if it always divides by zero.
fn assert<D: Domain>(
    terms: &Terms,
    assertion: TermId,
    slots: &[(u32, Slot)],
    row: &[D],
    seen: &mut StepValues<D>,
) -> bool {
    let truth = evaluate::value(terms, assertion, &|slot: Slot| row[slot.index()].clone());
    let Some(truth) = truth else { return false };
    // Rows with which the assertion holds are the rule, and need no copy.
    let failing = truth.contains(0).then(|| row.to_vec()).and_then(|mut refined| {
        let fails = evaluate::assume(terms, assertion, false, refined.as_mut_slice());
        let value = |&(cell, slot): &(u32, Slot)| (slot, refined[cell as usize].clone());
        fails.then(|| slots.iter().map(value).collect())
    });
    seen.note_assertion(Asserted { truth, failing });
    true
}

impl Choice {
    /// Whether a divisor may be zero when the step is tried in `row`.
    fn faults<D: Domain>(&self, terms: &Terms, row: &[D], scratch_row: &mut Vec<D>) -> bool {
        if self.guard.is_some_and(|guard| guard.may_fault(terms, row)) {
            return true;
        }
        if self.computed.is_empty() {
            return false;
        }
        scratch_row.clear();
        scratch_row.extend_from_slice(row);
        let is_taken = self.guard.is_none_or(|guard| {
            evaluate::assume(terms, guard.term, true, scratch_row.as_mut_slice())
        });
        is_taken && self.computed.iter().any(|formula| formula.may_fault(terms, scratch_row))
    }
}

impl Formula {
    fn may_fault<D: Domain>(self, terms: &Terms, row: &[D]) -> bool {
        let value = |slot: Slot| row[slot.index()].clone();
        self.divides && evaluate::may_fault(terms, self.term, &value)
    }

    /// Notes what may go wrong when it is computed in `row`.
    #[inline]
    fn watch<D: Domain>(self, terms: &Terms, row: &[D], seen: &mut StepValues<D>) {
        if self.divides && !seen.may_fault {
            seen.may_fault = self.may_fault(terms, row);
        }
        if seen.may_overflow || (self.stays_in_range && row.iter().all(is_small)) {
            return;
        }
        let value = |slot: Slot| row[slot.index()].clone();
        seen.may_overflow = evaluate::may_overflow(terms, self.term, &value);
    }
}
