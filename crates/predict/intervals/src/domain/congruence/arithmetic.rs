//! Calculation with residue classes of integers without bound, and how these are cut to 64 bits.

use reweave_trace::{Binary, Unary};

use super::Congruence;
use crate::domain::Domain;

/// A residue class of integers without bound; modulo 0 it is one integer.
#[derive(Clone, Copy)]
pub(super) struct Class {
    pub(super) modulus: u128,
    pub(super) residue: i128,
}

impl Class {
    /// The class of the same modulus and residue.
    pub(super) fn new(congruence: Congruence) -> Self {
        Self { modulus: congruence.modulus.into(), residue: congruence.residue.into() }
    }

    /// The greatest number that divides all members.
    pub(super) fn divisor_of_all(self) -> u128 {
        greatest_divisor(self.modulus, self.residue.unsigned_abs())
    }

    /// The negations of its members.
    pub(super) fn negated(self) -> Self {
        Self { modulus: self.modulus, residue: -self.residue }
    }

    /// The exact results of an operator; none if it is not one that can overflow by itself.
    pub(super) fn binary(operator: Binary, left: Congruence, right: Congruence) -> Option<Self> {
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
    pub(super) fn exact(self) -> Congruence {
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
    pub(super) fn wrapped(self) -> Congruence {
        let modulus = power_of_two(self.modulus);
        if modulus == 1 << 64 {
            return Congruence::constant(self.residue as i64);
        }
        Self { modulus, residue: self.residue }.exact()
    }
}

/// The greatest number that divides both; 0 is divided by all.
pub(super) fn greatest_divisor(mut one: u128, mut other: u128) -> u128 {
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
pub(super) fn meet(one: Congruence, other: Congruence) -> Option<Congruence> {
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
pub(super) fn width(right: Congruence) -> Option<u32> {
    right.modulus.is_multiple_of(64).then_some((right.residue & 63) as u32)
}

/// The quotients: a class if the division leaves no remainder.
pub(super) fn divide(left: Congruence, right: Congruence) -> Option<Congruence> {
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
pub(super) fn remainder(left: Congruence, right: Congruence) -> Option<Congruence> {
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
pub(super) fn shift_right(left: Congruence, right: Congruence) -> Congruence {
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
pub(super) fn bitwise(operator: Binary, left: Congruence, right: Congruence) -> Congruence {
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
pub(super) fn bitwise_back(operator: Binary, result: Congruence, other: Congruence) -> Congruence {
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
