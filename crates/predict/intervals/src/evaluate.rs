//! What terms come to where stores hold sets, and what a term's truth says of a store.
//!
//! **Question.** Slots hold members of sets. Which values can a term have; can it divide by zero or
//! overflow; and if it is true (or false), what can the slots have held?
//!
//! **Idea.** Values go from the slots up, operator by operator ([`value`]). Truth goes from the root
//! down: each operator says what its operands can have been, each slot keeps what is left
//! ([`assume`]). Every step of the way down is true of each assignment that makes the term so, given
//! the store as it is then; so it does not matter that a slot or a term occurs twice.
//!
//! **Promise.** No assignment is lost: where slots are members of the store's sets and the term has
//! a value, the value is in the set; where the term is as assumed, the slots are in the sets that
//! are left. Operands are always evaluated, those of `&&` and `||` too. Refinement is not repeated
//! until nothing changes; only a conjunction is gone through twice.
//!
//! **Cost.** `value` visits each occurrence once; `assume` evaluates operands again on each level,
//! so size times depth at most. Nothing is allocated. The recursion is as deep as the term.
//!
//! Source: F. Benhamou et al., "Revising hull and box consistency", 1999 (HC4-revise).

use reweave_base::Id;
use reweave_trace::{Binary, Unary};

use crate::domain::{Domain, Interval, opposite, truth};
use crate::terms::{Slot, Term, TermId, Terms};

/// The values that `id` can have; none if it divides by zero whatever the slots hold.
#[inline]
pub fn value<D: Domain>(terms: &Terms, id: TermId, store: &impl Fn(Slot) -> D) -> Option<D> {
    watched(terms, id, store, &mut |_, _, _| {})
}

/// Whether some division in `id` can be by zero.
pub fn may_fault<D: Domain>(terms: &Terms, id: TermId, store: &impl Fn(Slot) -> D) -> bool {
    let mut found = false;
    watched(terms, id, store, &mut |operator, _, right: &D| {
        found |= operator.is_division() && right.contains(0);
    });
    found
}

/// Whether some exact result in `id` can be no 64-bit integer: of a negation, sum, difference,
/// product, quotient or shift to the left.
pub fn may_overflow<D: Domain>(terms: &Terms, id: TermId, store: &impl Fn(Slot) -> D) -> bool {
    let between = |operand: &D| {
        let (low, high) = operand.bounds();
        Interval::new(low, high).unwrap_or(Interval::TOP)
    };
    let mut found = false;
    watched(terms, id, store, &mut |operator, left: &D, right: &D| {
        found |= Interval::may_overflow(operator, between(left), between(right));
    });
    found
}

/// As [`value`]; `watch` is told every operator with its operands, a negation as a difference from
/// zero. What follows a certain division by zero is not gone through.
fn watched<D: Domain>(
    terms: &Terms,
    id: TermId,
    store: &impl Fn(Slot) -> D,
    watch: &mut impl FnMut(Binary, &D, &D),
) -> Option<D> {
    match terms.term(id) {
        Term::Constant(number) => Some(D::constant(number)),
        Term::Slot(slot) => Some(store(slot)),
        Term::Unary(operator, operand) => {
            let operand = watched(terms, operand, store, watch)?;
            if operator == Unary::Negate {
                watch(Binary::Subtract, &D::constant(0), &operand);
            }
            Some(D::unary(operator, &operand))
        }
        Term::Binary(operator, left, right) => {
            let left = watched(terms, left, store, watch)?;
            let right = watched(terms, right, store, watch)?;
            watch(operator, &left, &right);
            D::binary(operator, &left, &right)
        }
    }
}

/// Takes from the sets of `store`, one for each slot, what they cannot hold where `id` has a value and
/// is true, or false, as `wanted`. Returns whether anything is left; if not, the sets are of no meaning.
pub fn assume<D: Domain>(terms: &Terms, id: TermId, wanted: bool, store: &mut [D]) -> bool {
    // What the second part of a conjunction says can make the first say more.
    let is_conjunction = match terms.term(id) {
        Term::Binary(Binary::And, ..) => wanted,
        Term::Binary(Binary::Or, ..) => !wanted,
        _ => false,
    };
    refine(terms, id, wanted, store).is_some()
        && (!is_conjunction || refine(terms, id, wanted, store).is_some())
}

/// The values that `id` can have in `store`.
#[inline]
fn current<D: Domain>(terms: &Terms, id: TermId, store: &[D]) -> Option<D> {
    value(terms, id, &|slot: Slot| store[slot.index()].clone())
}

/// [`assume`], once; none if nothing is left.
fn refine<D: Domain>(terms: &Terms, id: TermId, wanted: bool, store: &mut [D]) -> Option<()> {
    match terms.term(id) {
        Term::Unary(Unary::Not, operand) => refine(terms, operand, !wanted, store),
        Term::Binary(operator @ (Binary::And | Binary::Or), left, right) => {
            if wanted == (operator == Binary::And) {
                refine(terms, left, wanted, store)?;
                return refine(terms, right, wanted, store);
            }
            // One of them is as wanted; if the one cannot, the other is.
            let known_left = truth(&current(terms, left, store)?);
            let known_right = truth(&current(terms, right, store)?);
            match (known_left == Some(!wanted), known_right == Some(!wanted)) {
                (true, true) => None,
                (true, false) => refine(terms, right, wanted, store),
                (false, true) => refine(terms, left, wanted, store),
                (false, false) => Some(()),
            }
        }
        Term::Binary(operator, left, right) if let Some(opposite) = opposite(operator) => {
            let operator = if wanted { operator } else { opposite };
            let before = (current(terms, left, store)?, current(terms, right, store)?);
            let after = D::compare(operator, &before.0, &before.1)?;
            narrow_changed(terms, left, &before.0, after.0, store)?;
            narrow_changed(terms, right, &before.1, after.1, store)
        }
        _ => {
            let before = current(terms, id, store)?;
            let operator = if wanted { Binary::NotEqual } else { Binary::Equal };
            let (after, _) = D::compare(operator, &before, &D::constant(0))?;
            narrow_changed(terms, id, &before, after, store)
        }
    }
}

/// [`narrow`] where `after` says more than `before`, which is what `id` can be anyway.
#[inline]
fn narrow_changed<D: Domain>(
    terms: &Terms,
    id: TermId,
    before: &D,
    after: D,
    store: &mut [D],
) -> Option<()> {
    if *before == after { Some(()) } else { narrow(terms, id, after, store) }
}

/// Takes from the store's sets what they cannot hold where `id` is a member of `target`; none if
/// nothing is left.
fn narrow<D: Domain>(terms: &Terms, id: TermId, target: D, store: &mut [D]) -> Option<()> {
    match terms.term(id) {
        Term::Constant(number) => target.contains(number).then_some(()),
        Term::Slot(slot) => {
            let held = &mut store[slot.index()];
            *held = held.meet(&target)?;
            Some(())
        }
        Term::Unary(Unary::Not, _) => narrow_truth(terms, id, &target, store),
        Term::Unary(operator @ Unary::Negate, operand) => {
            let before = current(terms, operand, store)?;
            let after = D::unary_back(operator, &before, &target)?;
            narrow_changed(terms, operand, &before, after, store)
        }
        Term::Binary(operator, ..)
            if opposite(operator).is_some() || matches!(operator, Binary::And | Binary::Or) =>
        {
            narrow_truth(terms, id, &target, store)
        }
        Term::Binary(operator, left, right) => {
            let before = (current(terms, left, store)?, current(terms, right, store)?);
            let after = D::binary_back(operator, &before.0, &before.1, &target)?;
            narrow_changed(terms, left, &before.0, after.0, store)?;
            narrow_changed(terms, right, &before.1, after.1, store)
        }
    }
}

/// [`narrow`] of a term that is 0 or 1.
fn narrow_truth<D: Domain>(terms: &Terms, id: TermId, target: &D, store: &mut [D]) -> Option<()> {
    match (target.contains(0), target.contains(1)) {
        (true, true) => Some(()),
        (false, false) => None,
        (_, is_true) => refine(terms, id, is_true, store),
    }
}
