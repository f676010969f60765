//! Congruences: all integers of one residue class, or one integer.
//!
//! Adding a multiple of 2^64 is what wrapping does, so a class survives wrapping as far as its
//! modulus is a power of two; only an operation that is known not to wrap keeps the rest. A class
//! alone has no bounds and seldom knows; in a product with intervals it does. Known low bits are the
//! case of a modulus 2^k, so bit operations keep these.
//!
//! Source: P. Granger, "Static analysis of arithmetical congruences", 1989, for unbounded integers.

use std::fmt;

use reweave_trace::{Binary, Unary};

use super::{Domain, logic};

mod arithmetic;

use arithmetic::{Class, bitwise, bitwise_back, divide, greatest_divisor, remainder, shift_right};

/// All integers with one residue modulo something, or one integer only.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Congruence {
    /// 0 for one integer; at most 2^63, so that every class has two members at least.
    modulus: u64,
    /// The least member that is not negative, or the only member.
    residue: i64,
}

impl Congruence {
    /// The integers that are `residue` modulo `modulus`; modulo 0 it is `residue` only. If the
    /// modulus is above 2^63, a greater set.
    #[must_use]
    pub fn new(modulus: u64, residue: i64) -> Self {
        Class { modulus: modulus.into(), residue: residue.into() }.exact()
    }

    /// The modulus; 0 for one integer, 1 for all.
    #[must_use]
    pub const fn modulus(self) -> u64 {
        self.modulus
    }

    /// The least member that is not negative, or the only member.
    #[must_use]
    pub const fn residue(self) -> i64 {
        self.residue
    }

    /// [`Domain::unary`] where the caller knows that no result overflows.
    pub(super) fn unary_exact(operator: Unary, operand: &Self) -> Self {
        match operator {
            Unary::Negate => Class::new(*operand).negated().exact(),
            Unary::Not => Self::unary(operator, operand),
        }
    }

    /// [`Domain::binary`] where the caller knows that no result overflows.
    pub(super) fn binary_exact(operator: Binary, left: &Self, right: &Self) -> Option<Self> {
        let sum = Class::binary(operator, *left, *right);
        sum.map_or_else(|| Self::binary(operator, left, right), |sum| Some(sum.exact()))
    }

    /// Whether all pairs are equal, or none is.
    fn equality(self, other: Self) -> Option<bool> {
        if self.meet(&other).is_none() {
            return Some(false);
        }
        (self.modulus == 0 && other.modulus == 0).then_some(true)
    }

    /// The least member that is at least `bound`, if there is one.
    pub(super) fn at_least(self, bound: i64) -> Option<i64> {
        if self.modulus == 0 {
            return (self.residue >= bound).then_some(self.residue);
        }
        let distance = i128::from(self.residue) - i128::from(bound);
        let member = i128::from(bound) + distance.rem_euclid(self.modulus.into());
        i64::try_from(member).ok()
    }

    /// The greatest member that is at most `bound`, if there is one.
    pub(super) fn at_most(self, bound: i64) -> Option<i64> {
        if self.modulus == 0 {
            return (self.residue <= bound).then_some(self.residue);
        }
        let distance = i128::from(bound) - i128::from(self.residue);
        let member = i128::from(bound) - distance.rem_euclid(self.modulus.into());
        i64::try_from(member).ok()
    }
}

impl fmt::Display for Congruence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.modulus {
            0 => write!(f, "{}", self.residue),
            modulus => write!(f, "{} mod {modulus}", self.residue),
        }
    }
}

impl fmt::Debug for Congruence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Domain for Congruence {
    const TOP: Self = Self { modulus: 1, residue: 0 };

    #[inline]
    fn constant(value: i64) -> Self {
        Self { modulus: 0, residue: value }
    }

    #[inline]
    fn contains(&self, value: i64) -> bool {
        match self.modulus {
            0 => self.residue == value,
            modulus => value.abs_diff(self.residue).is_multiple_of(modulus),
        }
    }

    #[inline]
    fn as_constant(&self) -> Option<i64> {
        (self.modulus == 0).then_some(self.residue)
    }

    #[inline]
    fn bounds(&self) -> (i64, i64) {
        self.as_constant().map_or((i64::MIN, i64::MAX), |value| (value, value))
    }

    fn join(&mut self, other: &Self) {
        if self == other {
            return;
        }
        let difference = self.residue.abs_diff(other.residue);
        let both = greatest_divisor(self.modulus.into(), other.modulus.into());
        let modulus = greatest_divisor(both, difference.into());
        *self = Class { modulus, residue: self.residue.into() }.exact();
    }

    fn meet(&self, other: &Self) -> Option<Self> {
        match (self.modulus, other.modulus) {
            (0, _) => other.contains(self.residue).then_some(*self),
            (_, 0) => self.contains(other.residue).then_some(*other),
            _ => arithmetic::meet(*self, *other),
        }
    }

    fn unary(operator: Unary, operand: &Self) -> Self {
        match operator {
            // Only the least integer overflows when negated.
            Unary::Negate if operand.contains(i64::MIN) => Class::new(*operand).negated().wrapped(),
            Unary::Negate => Class::new(*operand).negated().exact(),
            Unary::Not => logic::from_truth(logic::truth(operand).map(|truth| !truth)),
        }
    }

    fn binary(operator: Binary, left: &Self, right: &Self) -> Option<Self> {
        if let (Some(left), Some(right)) = (left.as_constant(), right.as_constant()) {
            return operator.apply(left, right).map(Self::constant);
        }
        let decided = |truth| Some(logic::from_truth(truth));
        match operator {
            Binary::Add | Binary::Subtract | Binary::Multiply | Binary::ShiftLeft => {
                let class = Class::binary(operator, *left, *right)?;
                let exact = leaves_alone(operator, *left, *right);
                Some(if exact { class.exact() } else { class.wrapped() })
            }
            Binary::Divide => divide(*left, *right),
            Binary::Remainder => remainder(*left, *right),
            Binary::ShiftRight => Some(shift_right(*left, *right)),
            Binary::BitAnd | Binary::BitOr | Binary::BitXor => {
                Some(bitwise(operator, *left, *right))
            }
            Binary::Equal => decided(left.equality(*right)),
            Binary::NotEqual => decided(left.equality(*right).map(|truth| !truth)),
            Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual => {
                decided(None)
            }
            Binary::And => decided(logic::and(logic::truth(left), logic::truth(right))),
            Binary::Or => decided(logic::or(logic::truth(left), logic::truth(right))),
        }
    }

    fn compare(operator: Binary, left: &Self, right: &Self) -> Option<(Self, Self)> {
        if operator == Binary::Equal {
            return left.meet(right).map(|both| (both, both));
        }
        if logic::opposite(operator).is_some()
            && let (Some(left), Some(right)) = (left.as_constant(), right.as_constant())
            && operator.apply(left, right) == Some(0)
        {
            return None;
        }
        Some((*left, *right))
    }

    fn unary_back(operator: Unary, operand: &Self, result: &Self) -> Option<Self> {
        match operator {
            // Negation undoes itself, wrapped or not.
            Unary::Negate => operand.meet(&Self::unary(operator, result)),
            Unary::Not => logic::not_back(operand, result),
        }
    }

    fn binary_back(
        operator: Binary,
        left: &Self,
        right: &Self,
        result: &Self,
    ) -> Option<(Self, Self)> {
        let result = Self::binary(operator, left, right)?.meet(result)?;
        match operator {
            // Sums are undone by differences, wrapped or not.
            Binary::Add => {
                let left = Self::binary(Binary::Subtract, &result, right)?.meet(left)?;
                Some((left, Self::binary(Binary::Subtract, &result, &left)?.meet(right)?))
            }
            Binary::Subtract => {
                let left = Self::binary(Binary::Add, &result, right)?.meet(left)?;
                Some((left, Self::binary(Binary::Subtract, &left, &result)?.meet(right)?))
            }
            // What is divided differs from what remains by a multiple of the divisor.
            Binary::Remainder => {
                let modulus = Class::new(*right).divisor_of_all();
                let modulus = greatest_divisor(result.modulus.into(), modulus);
                let alike = Class { modulus, residue: result.residue.into() }.exact();
                Some((left.meet(&alike)?, logic::select(right, true)?))
            }
            Binary::Divide => Some((*left, logic::select(right, true)?)),
            Binary::BitAnd | Binary::BitOr | Binary::BitXor => {
                let left = bitwise_back(operator, result, *right).meet(left)?;
                Some((left, bitwise_back(operator, result, left).meet(right)?))
            }
            Binary::Multiply | Binary::ShiftLeft | Binary::ShiftRight => Some((*left, *right)),
            Binary::Equal
            | Binary::NotEqual
            | Binary::Less
            | Binary::LessEqual
            | Binary::Greater
            | Binary::GreaterEqual
            | Binary::And
            | Binary::Or => logic::logical_back(operator, left, right, &result),
        }
    }
}

/// Whether one operand makes `operator` give the other as it is, so that nothing can overflow.
fn leaves_alone(operator: Binary, left: Congruence, right: Congruence) -> bool {
    let is = |operand: Congruence, value| operand.as_constant() == Some(value);
    match operator {
        Binary::Add => is(left, 0) || is(right, 0),
        Binary::Subtract => is(right, 0),
        Binary::Multiply => [0, 1].iter().any(|&value| is(left, value) || is(right, value)),
        Binary::ShiftLeft => is(left, 0) || arithmetic::width(right) == Some(0),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
