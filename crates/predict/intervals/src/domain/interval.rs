//! Intervals: all integers between two bounds.
//!
//! Exact results are calculated on bounds in 128 bits; if any does not fit into 64, the number may
//! have wrapped and the result is the whole range. Otherwise negation, addition, subtraction,
//! multiplication, division, shifts, bit operations, comparisons and logic give the smallest
//! interval there is; the remainder does so by one divisor. Which it is of dependent operands
//! (`x - x`) no interval can tell.

use std::fmt;

use reweave_trace::{Binary, Unary};

use super::{Domain, logic};

mod backward;
mod bitwise;

/// All integers from `low` to `high`, which are members. The least and the greatest 64-bit integers
/// stand for the infinities when written.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interval {
    low: i64,
    high: i64,
}

const _: () = assert!(size_of::<Interval>() == 16);

impl Interval {
    /// From `low` to `high`; none if there is nothing between.
    #[inline]
    #[must_use]
    pub const fn new(low: i64, high: i64) -> Option<Self> {
        if low <= high { Some(Self { low, high }) } else { None }
    }

    /// The least member.
    #[inline]
    #[must_use]
    pub const fn low(self) -> i64 {
        self.low
    }

    /// The greatest member.
    #[inline]
    #[must_use]
    pub const fn high(self) -> i64 {
        self.high
    }

    /// How many bits number the members: the logarithm of their count, rounded up; 0 for one
    /// member, 64 for all integers.
    #[must_use]
    pub const fn bits(self) -> u32 {
        u64::BITS - self.high.abs_diff(self.low).leading_zeros()
    }

    /// Whether the exact result of `operator` on some pair of members is no 64-bit integer.
    #[must_use]
    pub fn may_overflow(operator: Binary, left: Self, right: Self) -> bool {
        exact(operator, left, right).is_some_and(|(low, high)| !is_narrow(low, high))
    }

    /// The integers between, as far as they have 64 bits.
    fn clamped(low: i128, high: i128) -> Option<Self> {
        let bound = |number: i128| number.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let is_near = low <= i64::MAX.into() && high >= i64::MIN.into();
        if is_near && low <= high { Self::new(bound(low), bound(high)) } else { None }
    }

    /// The part below zero, and the part above.
    fn split(self) -> [Option<Self>; 2] {
        [Self::new(self.low, self.high.min(-1)), Self::new(self.low.max(1), self.high)]
    }
}

/// Whether both bounds are 64-bit integers.
#[inline]
fn is_narrow(low: i128, high: i128) -> bool {
    low >= i64::MIN.into() && high <= i64::MAX.into()
}

/// The least and the greatest exact result of an operator that can overflow; none for other
/// operators, and if every result would be of a division by zero.
#[inline]
fn exact(operator: Binary, left: Interval, right: Interval) -> Option<(i128, i128)> {
    let (low, high) = (i128::from(left.low), i128::from(left.high));
    Some(match operator {
        Binary::Add => (low + i128::from(right.low), high + i128::from(right.high)),
        Binary::Subtract => (low - i128::from(right.high), high - i128::from(right.low)),
        Binary::Multiply => {
            corners((low, high), (right.low.into(), right.high.into()), |left, right| left * right)
        }
        Binary::Divide => {
            // A quotient is monotone in both operands where the divisor keeps its sign.
            let part = |part: Interval| {
                let divisors = (part.low.into(), part.high.into());
                corners((low, high), divisors, |left, right| left / right)
            };
            match right.split().map(|divisors| divisors.map(part)) {
                [Some(one), Some(other)] => (one.0.min(other.0), one.1.max(other.1)),
                [one, other] => return one.or(other),
            }
        }
        Binary::ShiftLeft => {
            let (least, most) = widths(right);
            corners((low, high), (least.into(), most.into()), |left, width| left << width)
        }
        _ => return None,
    })
}

/// The least and the greatest result of a function that is monotone in both operands, rising or
/// falling.
#[inline]
fn corners(
    left: (i128, i128),
    right: (i128, i128),
    apply: impl Fn(i128, i128) -> i128,
) -> (i128, i128) {
    let one = (apply(left.0, right.0), apply(left.0, right.1));
    let other = (apply(left.1, right.0), apply(left.1, right.1));
    (one.0.min(one.1).min(other.0.min(other.1)), one.0.max(one.1).max(other.0.max(other.1)))
}

/// The least and the greatest width that a shift by members of `right` has.
fn widths(right: Interval) -> (u32, u32) {
    if right.low >> 6 == right.high >> 6 {
        ((right.low & 63) as u32, (right.high & 63) as u32)
    } else {
        (0, 63)
    }
}

/// What remains of `left` divided by members of `right`: it has the sign of what is divided, and
/// depends on the divisor's size only.
fn remainder(left: Interval, right: Interval) -> Option<Interval> {
    let sizes = |part: Interval| {
        let (one, other) = (part.low.unsigned_abs(), part.high.unsigned_abs());
        (one.min(other), one.max(other))
    };
    let (least, most) = match right.split().map(|part| part.map(sizes)) {
        [Some(one), Some(other)] => (one.0.min(other.0), one.1.max(other.1)),
        [one, other] => one.or(other)?,
    };
    let above = Interval::new(left.low.max(0), left.high).map(|part| {
        let (low, high) =
            remainder_of_sizes(part.low.unsigned_abs(), part.high.unsigned_abs(), least, most);
        Interval { low: low as i64, high: high as i64 }
    });
    let below = Interval::new(left.low, left.high.min(-1)).map(|part| {
        let (low, high) =
            remainder_of_sizes(part.high.unsigned_abs(), part.low.unsigned_abs(), least, most);
        // A remainder is smaller than a divisor, so its negation does not overflow.
        Interval { low: -(high as i64), high: -(low as i64) }
    });
    match (below, above) {
        (Some(mut below), Some(above)) => {
            below.join(&above);
            Some(below)
        }
        (one, other) => one.or(other),
    }
}

/// Bounds of what remains of numbers from `low` to `high`, divided by numbers from `least` to
/// `most`.
fn remainder_of_sizes(low: u64, high: u64, least: u64, most: u64) -> (u64, u64) {
    if high < least {
        return (low, high);
    }
    if least == most && low / least == high / least {
        return (low % least, high % least);
    }
    (0, high.min(most - 1))
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.low {
            i64::MIN => f.write_str("[-oo, ")?,
            low => write!(f, "[{low}, ")?,
        }
        match self.high {
            i64::MAX => f.write_str("+oo]"),
            high => write!(f, "{high}]"),
        }
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Domain for Interval {
    const TOP: Self = Self { low: i64::MIN, high: i64::MAX };

    #[inline]
    fn constant(value: i64) -> Self {
        Self { low: value, high: value }
    }

    #[inline]
    fn contains(&self, value: i64) -> bool {
        self.low <= value && value <= self.high
    }

    #[inline]
    fn as_constant(&self) -> Option<i64> {
        (self.low == self.high).then_some(self.low)
    }

    #[inline]
    fn bounds(&self) -> (i64, i64) {
        (self.low, self.high)
    }

    #[inline]
    fn join(&mut self, other: &Self) {
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
    }

    #[inline]
    fn meet(&self, other: &Self) -> Option<Self> {
        Self::new(self.low.max(other.low), self.high.min(other.high))
    }

    #[inline]
    fn unary(operator: Unary, operand: &Self) -> Self {
        match operator {
            Unary::Negate if operand.low == i64::MIN => Self::TOP,
            Unary::Negate => Self { low: -operand.high, high: -operand.low },
            Unary::Not => logic::from_truth(logic::truth(operand).map(|truth| !truth)),
        }
    }

    #[inline]
    fn binary(operator: Binary, left: &Self, right: &Self) -> Option<Self> {
        let decided = |truth| Some(logic::from_truth(truth));
        match operator {
            Binary::Add
            | Binary::Subtract
            | Binary::Multiply
            | Binary::Divide
            | Binary::ShiftLeft => {
                let (low, high) = exact(operator, *left, *right)?;
                let narrow = Self { low: low as i64, high: high as i64 };
                Some(if is_narrow(low, high) { narrow } else { Self::TOP })
            }
            Binary::Remainder => remainder(*left, *right),
            Binary::ShiftRight => {
                let (least, most) = widths(*right);
                Some(Self {
                    low: (left.low >> least).min(left.low >> most),
                    high: (left.high >> least).max(left.high >> most),
                })
            }
            Binary::BitAnd | Binary::BitOr | Binary::BitXor => {
                Some(bitwise::range(operator, *left, *right))
            }
            Binary::Equal => decided(equality(left, right)),
            Binary::NotEqual => decided(equality(left, right).map(|truth| !truth)),
            Binary::Less => decided(order(left, right)),
            Binary::Greater => decided(order(right, left)),
            Binary::LessEqual => decided(order(right, left).map(|truth| !truth)),
            Binary::GreaterEqual => decided(order(left, right).map(|truth| !truth)),
            Binary::And => decided(logic::and(logic::truth(left), logic::truth(right))),
            Binary::Or => decided(logic::or(logic::truth(left), logic::truth(right))),
        }
    }

    #[inline]
    fn compare(operator: Binary, left: &Self, right: &Self) -> Option<(Self, Self)> {
        let swapped = |(right, left)| (left, right);
        match operator {
            Binary::Equal => left.meet(right).map(|both| (both, both)),
            Binary::NotEqual => Some((without(*left, *right)?, without(*right, *left)?)),
            Binary::Less => below(*left, *right),
            Binary::Greater => below(*right, *left).map(swapped),
            Binary::LessEqual => at_most(*left, *right),
            Binary::GreaterEqual => at_most(*right, *left).map(swapped),
            _ => Some((*left, *right)),
        }
    }

    fn unary_back(operator: Unary, operand: &Self, result: &Self) -> Option<Self> {
        backward::unary(operator, *operand, *result)
    }

    fn binary_back(
        operator: Binary,
        left: &Self,
        right: &Self,
        result: &Self,
    ) -> Option<(Self, Self)> {
        backward::binary(operator, *left, *right, *result)
    }
}

/// Whether all pairs are equal, or none is.
#[inline]
fn equality(left: &Interval, right: &Interval) -> Option<bool> {
    if left.high < right.low || right.high < left.low {
        return Some(false);
    }
    let is_one = left.low == left.high && right.low == right.high;
    is_one.then_some(true)
}

/// Whether in all pairs the left is the smaller, or in none.
#[inline]
fn order(left: &Interval, right: &Interval) -> Option<bool> {
    if left.high < right.low {
        return Some(true);
    }
    (left.low >= right.high).then_some(false)
}

/// Those of `set` that differ from some of `other`: an end is cut off if there is no other.
#[inline]
fn without(set: Interval, other: Interval) -> Option<Interval> {
    match other.as_constant() {
        Some(value) if set.low == value => Interval::new(value.checked_add(1)?, set.high),
        Some(value) if set.high == value => Interval::new(set.low, value.checked_sub(1)?),
        _ => Some(set),
    }
}

/// Those of pairs of which the left is the smaller.
#[inline]
fn below(left: Interval, right: Interval) -> Option<(Interval, Interval)> {
    let high = left.high.min(right.high.checked_sub(1)?);
    let low = right.low.max(left.low.checked_add(1)?);
    Some((Interval::new(left.low, high)?, Interval::new(low, right.high)?))
}

/// Those of pairs of which the left is not the greater.
#[inline]
fn at_most(left: Interval, right: Interval) -> Option<(Interval, Interval)> {
    let (high, low) = (left.high.min(right.high), right.low.max(left.low));
    Some((Interval::new(left.low, high)?, Interval::new(low, right.high)?))
}

#[cfg(test)]
mod tests;
