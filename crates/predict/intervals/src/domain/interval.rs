//! Intervals: all integers between two bounds.
//!
//! Exact results are calculated on bounds in 128 bits; if any does not fit into 64, the number may
//! have wrapped and the result is the whole range. Otherwise negation, addition, subtraction,
//! multiplication, division, shifts, bit operations, comparisons and logic give the smallest
//! interval there is; the remainder does so by one divisor. Which it is of dependent operands
//! (`x - x`) no interval can tell.

use std::fmt;

use reweave_trace::{Binary, Unary};

use crate::domain::{Domain, and, from_truth, logical_back, not, not_back, or, select, truth};

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
    pub const fn new(low: i64, high: i64) -> Option<Self> {
        if low <= high { Some(Self { low, high }) } else { None }
    }

    /// The least member.
    #[inline]
    pub const fn low(self) -> i64 {
        self.low
    }

    /// The greatest member.
    #[inline]
    pub const fn high(self) -> i64 {
        self.high
    }

    /// Whether the exact result of `operator` on some pair of members is no 64-bit integer.
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
    hull(below, above)
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
            Unary::Not => from_truth(not(truth(operand))),
        }
    }

    #[inline]
    fn binary(operator: Binary, left: &Self, right: &Self) -> Option<Self> {
        let decided = |truth| Some(from_truth(truth));
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
            Binary::BitAnd | Binary::BitOr | Binary::BitXor => Some(range(operator, *left, *right)),
            Binary::Equal => decided(equality(left, right)),
            Binary::NotEqual => decided(not(equality(left, right))),
            Binary::Less => decided(order(left, right)),
            Binary::Greater => decided(order(right, left)),
            Binary::LessEqual => decided(not(order(right, left))),
            Binary::GreaterEqual => decided(not(order(left, right))),
            Binary::And => decided(and(truth(left), truth(right))),
            Binary::Or => decided(or(truth(left), truth(right))),
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
        match operator {
            Unary::Not => not_back(operand, result),
            Unary::Negate if result.low != i64::MIN => {
                operand.meet(&Self { low: -result.high, high: -result.low })
            }
            // The least number is its own negation and lies apart from the other operands.
            Unary::Negate => {
                let least = operand.meet(&Self::constant(i64::MIN));
                let others = Self::new(result.low + 1, result.high)
                    .and_then(|others| operand.meet(&Self::unary(operator, &others)));
                hull(least, others)
            }
        }
    }

    /// Sums and differences are undone by their inverses even where they wrap; if they cannot wrap, the
    /// inverse is exact as well and is cut to 64 bits. Products, quotients and shifts are undone only
    /// where they cannot wrap.
    fn binary_back(
        operator: Binary,
        left: &Self,
        right: &Self,
        result: &Self,
    ) -> Option<(Self, Self)> {
        let (left, right) = (*left, *right);
        let result = Self::binary(operator, &left, &right)?.meet(result)?;
        let wraps = Self::may_overflow(operator, left, right);
        match operator {
            Binary::Add => {
                let left = undo(Binary::Subtract, result, right, wraps)?.meet(&left)?;
                Some((left, undo(Binary::Subtract, result, left, wraps)?.meet(&right)?))
            }
            Binary::Subtract => {
                let left = undo(Binary::Add, result, right, wraps)?.meet(&left)?;
                Some((left, undo(Binary::Subtract, left, result, wraps)?.meet(&right)?))
            }
            Binary::Multiply if !wraps => {
                let left = factors(result, right)?.meet(&left)?;
                Some((left, factors(result, left)?.meet(&right)?))
            }
            Binary::Divide => {
                let left = if wraps { left } else { dividends(result, right)?.meet(&left)? };
                Some((left, select(&right, true)?))
            }
            Binary::Remainder => Some((same_sign(result).meet(&left)?, select(&right, true)?)),
            Binary::ShiftLeft if !wraps => Some((shifted(result, right)?.meet(&left)?, right)),
            Binary::ShiftRight => Some((unshifted(result, right)?.meet(&left)?, right)),
            Binary::Multiply
            | Binary::ShiftLeft
            | Binary::BitAnd
            | Binary::BitOr
            | Binary::BitXor => Some((left, right)),
            // Comparisons, `&&` and `||`.
            _ => logical_back(operator, &left, &right, &result),
        }
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

// Operators on intervals backwards: from what is known of the result to the operands.

/// The smallest interval with both.
fn hull(one: Option<Interval>, other: Option<Interval>) -> Option<Interval> {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            one.join(&other);
            Some(one)
        }
        (one, other) => one.or(other),
    }
}

/// A sum or difference that undoes one that was exact, or one that may have wrapped.
fn undo(inverse: Binary, left: Interval, right: Interval, wraps: bool) -> Option<Interval> {
    if wraps {
        return Interval::binary(inverse, &left, &right);
    }
    let (low, high) = exact(inverse, left, right)?;
    Interval::clamped(low, high)
}

/// What can be multiplied by a member of `factor` to give a member of `product`, exactly.
fn factors(product: Interval, factor: Interval) -> Option<Interval> {
    if product.contains(0) && factor.contains(0) {
        return Some(Interval::TOP);
    }
    let part = |part: Interval| {
        let products = (product.low.into(), product.high.into());
        let divisors = (part.low.into(), part.high.into());
        let (low, _) = corners(products, divisors, |product, factor| -floor(-product, factor));
        let (_, high) = corners(products, divisors, floor);
        Interval::clamped(low, high)
    };
    let [below, above] = factor.split().map(|divisors| divisors.and_then(part));
    hull(below, above)
}

/// The quotient, rounded down.
fn floor(dividend: i128, divisor: i128) -> i128 {
    let is_between = dividend % divisor != 0 && (dividend < 0) != (divisor < 0);
    dividend / divisor - i128::from(is_between)
}

/// What can be divided by a member of `divisor` to give a member of `quotient`, exactly.
fn dividends(quotient: Interval, divisor: Interval) -> Option<Interval> {
    let [below, above] = divisor.split();
    let (low, high) = (i128::from(quotient.low), i128::from(quotient.high));
    let above =
        above.and_then(|part| dividends_of_sizes(low, high, part.low.into(), part.high.into()));
    // To divide by a negative number is to divide by its size and to negate.
    let below = below.and_then(|part| {
        dividends_of_sizes(-high, -low, -i128::from(part.high), -i128::from(part.low))
    });
    hull(below, above)
}

/// The same for divisors from `least` to `most`, which are above zero. What is cut off when a
/// quotient is rounded has the sign of the dividend.
fn dividends_of_sizes(low: i128, high: i128, least: i128, most: i128) -> Option<Interval> {
    let low = if low > 0 { low * least } else { low * most - (most - 1) };
    let high = if high < 0 { high * least } else { high * most + (most - 1) };
    Interval::clamped(low, high)
}

/// What can be divided so that a member of `remainder` remains: it has its sign, and its size at
/// least.
fn same_sign(remainder: Interval) -> Interval {
    Interval {
        low: if remainder.low > 0 { remainder.low } else { i64::MIN },
        high: if remainder.high < 0 { remainder.high } else { i64::MAX },
    }
}

/// What can be shifted to the left by one width to give a member of `result`, exactly.
fn shifted(result: Interval, right: Interval) -> Option<Interval> {
    let (least, most) = widths(right);
    if least != most {
        return Some(Interval::TOP);
    }
    let rounded_up = -(-i128::from(result.low) >> least);
    Interval::clamped(rounded_up, i128::from(result.high) >> least)
}

/// What can be shifted to the right by one width to give a member of `result`.
fn unshifted(result: Interval, right: Interval) -> Option<Interval> {
    let (least, most) = widths(right);
    if least != most {
        return Some(Interval::TOP);
    }
    let cut_off = (1 << least) - 1;
    Interval::clamped(i128::from(result.low) << least, (i128::from(result.high) << least) + cut_off)
}

// Bit operations on intervals: the least and the greatest result, exactly.
//
// The operands are chosen digit by digit from the highest, the result's digit always as good as it
// can be. What the digits so far leave open is only which operand still equals which of its bounds:
// a set of at most 16 states. Digits that both bounds of both operands agree in are settled, and
// once both operands can be free of their bounds all further digits are as wanted.

/// The smallest interval with all results of a bit operation.
fn range(operator: Binary, left: Interval, right: Interval) -> Interval {
    let apply = |left: u64, right: u64| match operator {
        Binary::BitAnd => left & right,
        Binary::BitOr => left | right,
        _ => left ^ right,
    };
    if let (Some(left), Some(right)) = (left.as_constant(), right.as_constant()) {
        return Interval::constant(apply(left as u64, right as u64) as i64);
    }
    let mut all: Option<Interval> = None;
    for left in by_sign(left).into_iter().flatten() {
        for right in by_sign(right).into_iter().flatten() {
            let bounds = [left.low, left.high, right.low, right.high].map(|bound| bound as u64);
            let part = Interval { low: extreme(apply, bounds, 0), high: extreme(apply, bounds, 1) };
            all = hull(all, Some(part));
        }
    }
    all.unwrap_or(Interval::TOP)
}

/// The part of negative numbers, and the rest: in each, digits are ordered as numbers are.
fn by_sign(set: Interval) -> [Option<Interval>; 2] {
    [Interval::new(set.low, set.high.min(-1)), Interval::new(set.low.max(0), set.high)]
}

/// The result whose digits are `wanted` from the highest down, as far as they can be. The bounds of
/// an operand have the same sign.
fn extreme(apply: impl Fn(u64, u64) -> u64, bounds: [u64; 4], wanted: usize) -> i64 {
    let open = (bounds[0] ^ bounds[1]) | (bounds[2] ^ bounds[3]);
    let open_count = u64::BITS - open.leading_zeros();
    let settled = u64::MAX.checked_shl(open_count).unwrap_or(0);
    let mut result = apply(bounds[0], bounds[2]) & settled;
    // Bit `s` is set if state `s` is possible; bit `b` of a state if the operand's digits so far
    // are those of bound `b`.
    let mut states: u16 = 1 << 0b1111;
    for position in (0..open_count).rev() {
        if states & 1 == 1 {
            let rest = (1 << (position + 1)) - 1;
            return (result | if wanted == 1 { rest } else { 0 }) as i64;
        }
        let digits = bounds.map(|bound| bound >> position & 1);
        let mut next: [u16; 2] = [0; 2];
        while states != 0 {
            let state = states.trailing_zeros() as u16;
            states &= states - 1;
            for (left, right) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                if let Some(after) = step(state, digits, [left, left, right, right]) {
                    next[apply(left, right) as usize] |= 1 << after;
                }
            }
        }
        let digit = if next[wanted] == 0 { 1 - wanted } else { wanted };
        states = next[digit];
        result |= (digit as u64) << position;
    }
    result as i64
}

/// The state after the operands take the digits `taken`; none if one passes a bound.
#[inline]
fn step(state: u16, digits: [u64; 4], taken: [u64; 4]) -> Option<u16> {
    let mut after = 0;
    for bound in (0..4).filter(|bound| state >> bound & 1 == 1) {
        let is_lower = bound % 2 == 0;
        let (digit, taken) = (digits[bound], taken[bound]);
        let passes = if is_lower { taken < digit } else { taken > digit };
        if passes {
            return None;
        }
        after |= u16::from(taken == digit) << bound;
    }
    Some(after)
}
