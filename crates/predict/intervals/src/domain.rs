//! Abstract domains: sets of 64-bit integers, described from outside.
//!
//! **Question.** What can an operator give, if all that is known of its operands is a set for each?
//! And what can the operands have been, if a set is known of the result?
//!
//! **Idea.** Sets have short descriptions: bounds ([`Interval`]), a residue class ([`Congruence`]),
//! or both, each made the smaller by the other ([`Product`]). An operator forwards, and the same
//! operator backwards from its result, is a calculation on descriptions.
//!
//! **Promise.** A description never leaves out what can be. Numbers are 64 bits wide and wrap, so
//! the description of what may have wrapped keeps only what is true after wrapping: of bounds
//! nothing, of residue classes the power of two in the modulus.
//!
//! **Cost.** Constant for each operation, but for bit operations on ranges of more than one number
//! (at most 64 rounds for each pair of signs) and what residue classes have in common (Euclid's
//! algorithm). Nothing is allocated.

mod congruence;
mod interval;
mod product;

use std::fmt::Debug;

use reweave_trace::{Binary, Unary};

pub use crate::domain::congruence::Congruence;
pub use crate::domain::interval::Interval;
pub use crate::domain::product::Product;

/// A set of integers that can be described. Every operation gives a set that has at least what the
/// operation on each member gives; a smaller set is a better answer, never a safer one.
///
/// The empty set has no description: what could give it gives `None`. `None` is a claim and must be
/// true; a set where nothing is left may be given all the same.
pub trait Domain: Clone + Debug + PartialEq + Send + Sync + 'static {
    /// All integers.
    const TOP: Self;

    /// One integer.
    fn constant(value: i64) -> Self;

    /// Whether `value` is in the set.
    fn contains(&self, value: i64) -> bool;

    /// The only member, if there is only one.
    fn as_constant(&self) -> Option<i64>;

    /// The least and the greatest number that can be said to bound the members.
    fn bounds(&self) -> (i64, i64);

    /// Makes it a set that has all members of both.
    fn join(&mut self, other: &Self);

    /// A set that has what is in both; none if nothing is.
    fn meet(&self, other: &Self) -> Option<Self>;

    /// What `operator` makes of the members.
    fn unary(operator: Unary, operand: &Self) -> Self;

    /// What `operator` makes of pairs of members, but for pairs for which it has no result; none
    /// if that is all of them.
    fn binary(operator: Binary, left: &Self, right: &Self) -> Option<Self>;

    /// The members of `left` and of `right` of pairs on which the comparison `operator` is true;
    /// none if there are no such pairs. Operators that compare nothing leave both as they are.
    fn compare(operator: Binary, left: &Self, right: &Self) -> Option<(Self, Self)>;

    /// The members of `operand` of which `operator` can make a member of `result`.
    fn unary_back(operator: Unary, operand: &Self, result: &Self) -> Option<Self>;

    /// The members of `left` and `right` of pairs of which `operator` can make a member of
    /// `result`.
    fn binary_back(
        operator: Binary,
        left: &Self,
        right: &Self,
        result: &Self,
    ) -> Option<(Self, Self)>;
}

// Truth in any domain: zero is false, everything else is true.
//
// Comparisons, `!`, `&&` and `||` give 0 or 1, so what they were given follows from which of the
// two they gave; the same for all domains, by [`Domain::compare`] and [`Domain::meet`] alone.

/// Whether all members are true, or all are false; none if some are and some are not.
#[inline]
pub(crate) fn truth<D: Domain>(value: &D) -> Option<bool> {
    if !value.contains(0) {
        return Some(true);
    }
    (value.as_constant() == Some(0)).then_some(false)
}

/// The set of 0, 1 or both, for a truth that is known or not.
fn from_truth<D: Domain>(truth: Option<bool>) -> D {
    match truth {
        Some(truth) => D::constant(i64::from(truth)),
        None => {
            let mut both = D::constant(0);
            both.join(&D::constant(1));
            both
        }
    }
}

/// What `&&` gives of two truths.
fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        (None, _) | (_, None) => None,
    }
}

/// The other truth, if it is known.
fn not(truth: Option<bool>) -> Option<bool> {
    truth.map(|truth| !truth)
}

/// What `||` gives of two truths.
fn or(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    not(and(not(left), not(right)))
}

/// The comparison that is true where `operator` is false; none if it compares nothing.
#[inline]
pub(crate) const fn opposite(operator: Binary) -> Option<Binary> {
    Some(match operator {
        Binary::Equal => Binary::NotEqual,
        Binary::NotEqual => Binary::Equal,
        Binary::Less => Binary::GreaterEqual,
        Binary::LessEqual => Binary::Greater,
        Binary::Greater => Binary::LessEqual,
        Binary::GreaterEqual => Binary::Less,
        _ => return None,
    })
}

/// The members that are true, or those that are false.
fn select<D: Domain>(value: &D, truth: bool) -> Option<D> {
    if truth {
        D::compare(Binary::NotEqual, value, &D::constant(0)).map(|(nonzero, _)| nonzero)
    } else {
        value.meet(&D::constant(0))
    }
}

/// [`Domain::unary_back`] of `!`.
fn not_back<D: Domain>(operand: &D, result: &D) -> Option<D> {
    match (result.contains(0), result.contains(1)) {
        (true, true) => Some(operand.clone()),
        (is_false, is_true) if is_false || is_true => select(operand, is_false),
        _ => None,
    }
}

/// [`Domain::binary_back`] of comparisons, `&&` and `||`; other operators leave both as they are.
fn logical_back<D: Domain>(operator: Binary, left: &D, right: &D, result: &D) -> Option<(D, D)> {
    let wanted = match (result.contains(0), result.contains(1)) {
        (true, true) => return Some((left.clone(), right.clone())),
        (false, false) => return None,
        (_, is_true) => is_true,
    };
    if let Some(opposite) = opposite(operator) {
        return D::compare(if wanted { operator } else { opposite }, left, right);
    }
    let needs_both = match operator {
        Binary::And => wanted,
        Binary::Or => !wanted,
        _ => return Some((left.clone(), right.clone())),
    };
    if needs_both {
        return Some((select(left, wanted)?, select(right, wanted)?));
    }
    let (known_left, known_right) = (truth(left), truth(right));
    // One of them must be as wanted; if the one cannot, the other is.
    if known_left == Some(!wanted) {
        return Some((left.clone(), select(right, wanted)?));
    }
    if known_right == Some(!wanted) {
        return Some((select(left, wanted)?, right.clone()));
    }
    Some((left.clone(), right.clone()))
}
