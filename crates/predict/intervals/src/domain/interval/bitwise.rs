//! Bit operations on intervals: the least and the greatest result, exactly.
//!
//! The operands are chosen digit by digit from the highest, the result's digit always as good as it
//! can be. What the digits so far leave open is only which operand still equals which of its bounds:
//! a set of at most 16 states. Digits that both bounds of both operands agree in are settled, and
//! once both operands can be free of their bounds all further digits are as wanted.

use reweave_trace::Binary;

use super::Interval;
use crate::domain::Domain;

/// The smallest interval with all results of a bit operation.
pub(super) fn range(operator: Binary, left: Interval, right: Interval) -> Interval {
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
            match &mut all {
                Some(all) => all.join(&part),
                None => all = Some(part),
            }
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
