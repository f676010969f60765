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

use crate::domain::{
    Domain, and, from_truth, logical_back, not, not_back, opposite, or, select, truth,
};

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
    pub fn new(modulus: u64, residue: i64) -> Self {
        Class { modulus: modulus.into(), residue: residue.into() }.exact()
    }

    /// The modulus; 0 for one integer, 1 for all.
    pub const fn modulus(self) -> u64 {
        self.modulus
    }

    /// The least member that is not negative, or the only member.
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
        // All members of both are alike modulo what divides both moduli and the residues' distance.
        let difference = self.residue.abs_diff(other.residue);
        let both = greatest_divisor(self.modulus.into(), other.modulus.into());
        let modulus = greatest_divisor(both, difference.into());
        *self = Class { modulus, residue: self.residue.into() }.exact();
    }

    fn meet(&self, other: &Self) -> Option<Self> {
        match (self.modulus, other.modulus) {
            (0, _) => other.contains(self.residue).then_some(*self),
            (_, 0) => self.contains(other.residue).then_some(*other),
            _ => meet(*self, *other),
        }
    }

    fn unary(operator: Unary, operand: &Self) -> Self {
        match operator {
            // Only the least integer overflows when negated.
            Unary::Negate if operand.contains(i64::MIN) => Class::new(*operand).negated().wrapped(),
            Unary::Negate => Class::new(*operand).negated().exact(),
            Unary::Not => from_truth(not(truth(operand))),
        }
    }

    fn binary(operator: Binary, left: &Self, right: &Self) -> Option<Self> {
        if let (Some(left), Some(right)) = (left.as_constant(), right.as_constant()) {
            return operator.apply(left, right).map(Self::constant);
        }
        let decided = |truth| Some(from_truth(truth));
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
            Binary::NotEqual => decided(not(left.equality(*right))),
            Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual => {
                decided(None)
            }
            Binary::And => decided(and(truth(left), truth(right))),
            Binary::Or => decided(or(truth(left), truth(right))),
        }
    }

    fn compare(operator: Binary, left: &Self, right: &Self) -> Option<(Self, Self)> {
        if operator == Binary::Equal {
            return left.meet(right).map(|both| (both, both));
        }
        if opposite(operator).is_some()
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
            Unary::Not => not_back(operand, result),
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
                Some((left.meet(&alike)?, select(right, true)?))
            }
            Binary::Divide => Some((*left, select(right, true)?)),
            Binary::BitAnd | Binary::BitOr | Binary::BitXor => {
                let left = bitwise_back(operator, result, *right).meet(left)?;
                Some((left, bitwise_back(operator, result, left).meet(right)?))
            }
            Binary::Multiply | Binary::ShiftLeft | Binary::ShiftRight => Some((*left, *right)),
            // Comparisons, `&&` and `||`.
            _ => logical_back(operator, left, right, &result),
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
        Binary::ShiftLeft => is(left, 0) || width(right) == Some(0),
        _ => false,
    }
}

// Calculation with residue classes of integers without bound, and how these are cut to 64 bits.

/// A residue class of integers without bound; modulo 0 it is one integer.
#[derive(Clone, Copy)]
struct Class {
    modulus: u128,
    residue: i128,
}

impl Class {
    /// The class of the same modulus and residue.
    fn new(congruence: Congruence) -> Self {
        Self { modulus: congruence.modulus.into(), residue: congruence.residue.into() }
    }

    /// The greatest number that divides all members.
    fn divisor_of_all(self) -> u128 {
        greatest_divisor(self.modulus, self.residue.unsigned_abs())
    }

    /// The negations of its members.
    fn negated(self) -> Self {
        Self { modulus: self.modulus, residue: -self.residue }
    }

    /// The exact results of an operator; none if it is not one that can overflow by itself.
    fn binary(operator: Binary, left: Congruence, right: Congruence) -> Option<Self> {
        let (one, other) = (Self::new(left), Self::new(right));
        Some(match operator {
            Binary::Add => one.plus(other),
            Binary::Subtract => one.plus(other.negated()),
            Binary::Multiply => one.times(other),
            Binary::ShiftLeft => match width(right) {
                Some(width) => one.times(Self { modulus: 0, residue: 1 << width }),
                None if left.as_constant() == Some(0) => Self { modulus: 0, residue: 0 },
                // Zeros at the low end stay, however many more there are.
                None => Self { modulus: one.wrapped_modulus_of_all(), residue: 0 },
            },
            _ => return None,
        })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            modulus: greatest_divisor(self.modulus, other.modulus),
            residue: self.residue + other.residue,
        }
    }

    /// Moduli are at most 2^63 and residues of that size at most, so that nothing here overflows.
    fn times(self, other: Self) -> Self {
        let crossed = greatest_divisor(
            self.modulus * other.residue.unsigned_abs(),
            other.modulus * self.residue.unsigned_abs(),
        );
        Self {
            modulus: greatest_divisor(self.modulus * other.modulus, crossed),
            residue: self.residue * other.residue,
        }
    }

    fn wrapped_modulus_of_all(self) -> u128 {
        power_of_two(self.divisor_of_all())
    }

    /// Its members as 64-bit integers, where none overflows.
    fn exact(self) -> Congruence {
        if self.modulus > 1 << 63 {
            return self.wrapped();
        }
        if self.modulus == 0 {
            return Congruence::constant(self.residue as i64);
        }
        let residue = self.residue.rem_euclid(self.modulus as i128);
        Congruence { modulus: self.modulus as u64, residue: residue as i64 }
    }

    /// Its members after wrapping, which adds multiples of 2^64.
    fn wrapped(self) -> Congruence {
        let modulus = power_of_two(self.modulus);
        if modulus == 1 << 64 {
            return Congruence::constant(self.residue as i64);
        }
        Self { modulus, residue: self.residue }.exact()
    }
}

/// The greatest number that divides both; 0 is divided by all.
fn greatest_divisor(mut one: u128, mut other: u128) -> u128 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// The greatest power of two that divides `number` and 2^64.
fn power_of_two(number: u128) -> u128 {
    1 << number.trailing_zeros().min(64)
}

/// What is in both classes, of moduli that are not 0: a class of the least common multiple.
fn meet(one: Congruence, other: Congruence) -> Option<Congruence> {
    let (modulus, other_modulus) = (i128::from(one.modulus), i128::from(other.modulus));
    let divisor = greatest_divisor(one.modulus.into(), other.modulus.into()) as i128;
    let distance = i128::from(other.residue) - i128::from(one.residue);
    if distance % divisor != 0 {
        return None;
    }
    let reduced = other_modulus / divisor;
    let steps = (distance / divisor).rem_euclid(reduced);
    let steps = steps * inverse(modulus / divisor, reduced) % reduced;
    // Below the least common multiple, which is below 2^126.
    let least = i128::from(one.residue) + modulus * steps;
    let common = modulus * reduced;
    if common <= 1 << 63 {
        return Some(Class { modulus: common as u128, residue: least }.exact());
    }
    // At most one member on each side of zero.
    match (i64::try_from(least).ok(), i64::try_from(least - common).ok()) {
        (Some(_), Some(_)) => Some(if one.modulus >= other.modulus { one } else { other }),
        (above, below) => above.or(below).map(Congruence::constant),
    }
}

/// What gives 1 modulo `modulus` when multiplied by `number`, which has no divisor in common with
/// it.
fn inverse(number: i128, modulus: i128) -> i128 {
    let (mut one, mut other) = (number.rem_euclid(modulus), modulus);
    let (mut of_one, mut of_other) = (1, 0);
    while other != 0 {
        let quotient = one / other;
        (one, other) = (other, one - quotient * other);
        (of_one, of_other) = (of_other, of_one - quotient * of_other);
    }
    of_one.rem_euclid(modulus)
}

/// The width of a shift, if it is known.
fn width(right: Congruence) -> Option<u32> {
    right.modulus.is_multiple_of(64).then_some((right.residue & 63) as u32)
}

/// The quotients: a class if the division leaves no remainder.
fn divide(left: Congruence, right: Congruence) -> Option<Congruence> {
    if right.as_constant() == Some(0) {
        return None;
    }
    if left.as_constant() == Some(0) {
        return Some(left);
    }
    let Some(divisor) = right.as_constant() else { return Some(Congruence::TOP) };
    let size = divisor.unsigned_abs();
    let is_exact = Class::new(left).divisor_of_all().is_multiple_of(size.into());
    Some(match divisor {
        -1 => Congruence::unary(Unary::Negate, &left),
        _ if is_exact => {
            let residue = i128::from(left.residue) / i128::from(divisor);
            Class { modulus: (left.modulus / size).into(), residue }.exact()
        }
        _ => Congruence::TOP,
    })
}

/// What remains: it differs from what is divided by a multiple of the divisor, and is the smaller.
fn remainder(left: Congruence, right: Congruence) -> Option<Congruence> {
    if right.as_constant() == Some(0) {
        return None;
    }
    if left.as_constant() == Some(0) {
        return Some(left);
    }
    let common = greatest_divisor(left.modulus.into(), Class::new(right).divisor_of_all());
    let alike = Class { modulus: common, residue: left.residue.into() };
    let is_exact = right.as_constant().is_some_and(|right| common == right.unsigned_abs().into());
    if is_exact && alike.divisor_of_all() == common {
        return Some(Congruence::constant(0));
    }
    Some(alike.exact())
}

/// Shifts to the right by a width that is known, if the modulus has so many factors of two.
fn shift_right(left: Congruence, right: Congruence) -> Congruence {
    match width(right) {
        Some(width) if left.modulus.trailing_zeros() >= width => Class {
            modulus: (left.modulus >> width).into(),
            residue: (left.residue >> width).into(),
        }
        .exact(),
        _ if left.as_constant().is_some_and(|value| matches!(value, 0 | -1)) => left,
        _ => Congruence::TOP,
    }
}

/// How many low bits are known, and a number with these bits.
fn low_bits(of: Congruence) -> (u32, u64) {
    (of.modulus.trailing_zeros(), of.residue as u64)
}

/// The `count` lowest bits, which are at most 64.
fn mask(count: u32) -> u64 {
    u64::MAX.checked_shr(u64::BITS - count).unwrap_or(0)
}

/// Bit operations: low bits are known where those of both are, and where that of one decides.
fn bitwise(operator: Binary, left: Congruence, right: Congruence) -> Congruence {
    let ((count, bits), (other_count, other_bits)) = (low_bits(left), low_bits(right));
    let both = count.min(other_count);
    let more = count.max(other_count);
    let longer = if count >= other_count { bits } else { other_bits };
    let rest = longer.checked_shr(both).unwrap_or(0);
    let (result, decided, decides) = match operator {
        Binary::BitAnd => (bits & other_bits, rest.trailing_zeros(), 0),
        Binary::BitOr => (bits | other_bits, rest.trailing_ones(), u64::MAX),
        _ => (bits ^ other_bits, 0, 0),
    };
    let known = both + decided.min(more - both);
    let result = result & mask(both) | decides & mask(known) & !mask(both);
    Class { modulus: 1 << known, residue: result.into() }.wrapped()
}

/// What one operand of a bit operation can be: where the other leaves bits alone, those of the
/// result.
fn bitwise_back(operator: Binary, result: Congruence, other: Congruence) -> Congruence {
    let (count, bits) = low_bits(other);
    let alone = match operator {
        Binary::BitAnd => bits.trailing_ones().min(count),
        Binary::BitOr => bits.trailing_zeros().min(count),
        // It undoes itself.
        _ => return bitwise(Binary::BitXor, result, other),
    };
    let (known, bits) = low_bits(result);
    Class { modulus: 1 << alone.min(known), residue: bits.into() }.wrapped()
}
