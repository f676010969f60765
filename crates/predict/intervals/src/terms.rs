//! Terms: what steps compute, over the slots of a store.
//!
//! A slot is a shared variable, or a local of one thread. Terms are shared: equal ones have one id.

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::{Binary, Unary};

reweave_base::id! {
    /// A place of a store: a shared variable, or a local of one thread.
    pub struct Slot;
    /// A term.
    pub struct TermId;
}

/// An integer term over 64-bit two's complement; truth is any value but zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A number.
    Constant(i64),
    /// What a slot holds.
    Slot(Slot),
    /// An operator on one operand.
    Unary(Unary, TermId),
    /// An operator on two operands.
    Binary(Binary, TermId, TermId),
}

/// All terms of a program, operands before what they are operands of.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    nodes: IndexVec<TermId, Term>,
    made: FxHashMap<Term, TermId>,
}

impl Terms {
    /// The id of `term`, whose operands must have been added before.
    pub fn add(&mut self, term: Term) -> TermId {
        if let Some(&made) = self.made.get(&term) {
            return made;
        }
        let id = self.nodes.push(term);
        self.made.insert(term, id);
        id
    }

    /// The term `id`.
    #[inline]
    pub fn term(&self, id: TermId) -> Term {
        self.nodes[id]
    }

    /// How many terms there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// For each term whether it may divide by zero.
    pub fn dividing(&self) -> IndexVec<TermId, bool> {
        let mut dividing: IndexVec<TermId, bool> = IndexVec::new();
        for term in self.nodes.iter() {
            dividing.push(match *term {
                Term::Constant(_) | Term::Slot(_) => false,
                Term::Unary(_, operand) => dividing[operand],
                Term::Binary(operator, left, right) => {
                    let is_division = operator.is_division();
                    let is_safe =
                        matches!(self.nodes[right], Term::Constant(number) if number != 0);
                    dividing[left] || dividing[right] || (is_division && !is_safe)
                }
            });
        }
        dividing
    }

    /// Calls `visit` for every slot that `id` speaks of, from left to right; one that occurs twice is
    /// visited twice.
    pub fn slots(&self, id: TermId, visit: &mut dyn FnMut(Slot)) {
        match self.nodes[id] {
            Term::Constant(_) => {}
            Term::Slot(slot) => visit(slot),
            Term::Unary(_, operand) => self.slots(operand, visit),
            Term::Binary(_, left, right) => {
                self.slots(left, visit);
                self.slots(right, visit);
            }
        }
    }

    /// What `id` comes to where slots hold what `value` says; none if it divides by zero.
    pub fn evaluate(&self, id: TermId, value: &dyn Fn(Slot) -> i64) -> Option<i64> {
        Some(match self.nodes[id] {
            Term::Constant(number) => number,
            Term::Slot(slot) => value(slot),
            Term::Unary(operator, operand) => operator.apply(self.evaluate(operand, value)?),
            Term::Binary(operator, left, right) => {
                let (left, right) = (self.evaluate(left, value)?, self.evaluate(right, value)?);
                operator.apply(left, right)?
            }
        })
    }
}
