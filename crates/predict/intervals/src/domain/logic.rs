//! Truth in any domain: zero is false, everything else is true.
//!
//! Comparisons, `!`, `&&` and `||` give 0 or 1, so what they were given follows from which of the
//! two they gave; the same for all domains, by [`Domain::compare`] and [`Domain::meet`] alone.

use reweave_trace::Binary;

use super::Domain;

/// Whether all members are true, or all are false; none if some are and some are not.
#[inline]
pub(crate) fn truth<D: Domain>(value: &D) -> Option<bool> {
    if !value.contains(0) {
        return Some(true);
    }
    (value.as_constant() == Some(0)).then_some(false)
}

/// The set of 0, 1 or both, for a truth that is known or not.
pub(super) fn from_truth<D: Domain>(truth: Option<bool>) -> D {
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
pub(super) fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        (None, _) | (_, None) => None,
    }
}

/// What `||` gives of two truths.
pub(super) fn or(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    let negated = |truth: Option<bool>| truth.map(|truth| !truth);
    negated(and(negated(left), negated(right)))
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
        Binary::Add
        | Binary::Subtract
        | Binary::Multiply
        | Binary::Divide
        | Binary::Remainder
        | Binary::ShiftLeft
        | Binary::ShiftRight
        | Binary::BitAnd
        | Binary::BitOr
        | Binary::BitXor
        | Binary::And
        | Binary::Or => return None,
    })
}

/// The members that are true, or those that are false.
pub(super) fn select<D: Domain>(value: &D, truth: bool) -> Option<D> {
    if truth {
        D::compare(Binary::NotEqual, value, &D::constant(0)).map(|(nonzero, _)| nonzero)
    } else {
        value.meet(&D::constant(0))
    }
}

/// [`Domain::unary_back`] of `!`.
pub(super) fn not_back<D: Domain>(operand: &D, result: &D) -> Option<D> {
    match (result.contains(0), result.contains(1)) {
        (true, true) => Some(operand.clone()),
        (is_false, is_true) if is_false || is_true => select(operand, is_false),
        _ => None,
    }
}

/// [`Domain::binary_back`] of comparisons, `&&` and `||`; other operators leave both as they are.
pub(super) fn logical_back<D: Domain>(
    operator: Binary,
    left: &D,
    right: &D,
    result: &D,
) -> Option<(D, D)> {
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
