//! Operators on intervals backwards: from what is known of the result to the operands.
//!
//! Sums and differences are undone by their inverses even where they wrap; if they cannot wrap, the
//! inverse is exact as well and is cut to 64 bits. Products, quotients and shifts are undone only
//! where they cannot wrap.

use reweave_trace::{Binary, Unary};

use super::{Interval, corners, widths};
use crate::domain::{Domain, logic};

/// [`Domain::unary_back`].
pub(super) fn unary(operator: Unary, operand: Interval, result: Interval) -> Option<Interval> {
    match operator {
        Unary::Not => logic::not_back(&operand, &result),
        Unary::Negate if result.low != i64::MIN => {
            operand.meet(&Interval { low: -result.high, high: -result.low })
        }
        // The least number is its own negation and lies apart from the other operands.
        Unary::Negate => {
            let least = operand.meet(&Interval::constant(i64::MIN));
            let others = Interval::new(result.low + 1, result.high)
                .and_then(|others| operand.meet(&Interval::unary(operator, &others)));
            hull(least, others)
        }
    }
}

/// [`Domain::binary_back`].
pub(super) fn binary(
    operator: Binary,
    left: Interval,
    right: Interval,
    result: Interval,
) -> Option<(Interval, Interval)> {
    let result = Interval::binary(operator, &left, &right)?.meet(&result)?;
    let wraps = Interval::may_overflow(operator, left, right);
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
            Some((left, logic::select(&right, true)?))
        }
        Binary::Remainder => Some((same_sign(result).meet(&left)?, logic::select(&right, true)?)),
        Binary::ShiftLeft if !wraps => Some((shifted(result, right)?.meet(&left)?, right)),
        Binary::ShiftRight => Some((unshifted(result, right)?.meet(&left)?, right)),
        Binary::Multiply | Binary::ShiftLeft | Binary::BitAnd | Binary::BitOr | Binary::BitXor => {
            Some((left, right))
        }
        Binary::Equal
        | Binary::NotEqual
        | Binary::Less
        | Binary::LessEqual
        | Binary::Greater
        | Binary::GreaterEqual
        | Binary::And
        | Binary::Or => logic::logical_back(operator, &left, &right, &result),
    }
}

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
    let (low, high) = super::exact(inverse, left, right)?;
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
