//! The reduced product of intervals and congruences: the integers that are in both.
//!
//! Each description is made the smaller by the other after every operation: bounds move to the next
//! members of the residue class, and a class of which one member lies between the bounds is that
//! member. Bounds also say where nothing can have wrapped, and there a class is kept whole.

use std::fmt;

use reweave_trace::{Binary, Unary};

use super::{Congruence, Domain, Interval};

/// The integers that are in both sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    interval: Interval,
    congruence: Congruence,
}

impl Product {
    /// What is in both sets; none if nothing is.
    pub fn new(interval: Interval, congruence: Congruence) -> Option<Self> {
        let low = congruence.at_least(interval.low())?;
        let interval = Interval::new(low, congruence.at_most(interval.high())?)?;
        let congruence = interval.as_constant().map_or(congruence, Congruence::constant);
        Some(Self { interval, congruence })
    }

    /// The residue class.
    pub const fn congruence(&self) -> Congruence {
        self.congruence
    }

    /// Two pairs of descriptions, each reduced.
    fn both(
        (left, right): (Interval, Interval),
        (left_class, right_class): (Congruence, Congruence),
    ) -> Option<(Self, Self)> {
        Some((Self::new(left, left_class)?, Self::new(right, right_class)?))
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.interval, self.congruence)
    }
}

impl Domain for Product {
    const TOP: Self = Self { interval: Interval::TOP, congruence: Congruence::TOP };

    fn constant(value: i64) -> Self {
        Self { interval: Interval::constant(value), congruence: Congruence::constant(value) }
    }

    fn contains(&self, value: i64) -> bool {
        self.interval.contains(value) && self.congruence.contains(value)
    }

    fn as_constant(&self) -> Option<i64> {
        self.interval.as_constant().or_else(|| self.congruence.as_constant())
    }

    fn bounds(&self) -> (i64, i64) {
        let ((low, high), (other_low, other_high)) =
            (self.interval.bounds(), self.congruence.bounds());
        (low.max(other_low), high.min(other_high))
    }

    fn join(&mut self, other: &Self) {
        self.interval.join(&other.interval);
        self.congruence.join(&other.congruence);
    }

    fn meet(&self, other: &Self) -> Option<Self> {
        Self::new(self.interval.meet(&other.interval)?, self.congruence.meet(&other.congruence)?)
    }

    fn unary(operator: Unary, operand: &Self) -> Self {
        let interval = Interval::unary(operator, &operand.interval);
        // Only the least integer overflows when negated; the bounds may exclude it.
        let congruence = if operand.interval.contains(i64::MIN) {
            Congruence::unary(operator, &operand.congruence)
        } else {
            Congruence::unary_exact(operator, &operand.congruence)
        };
        // An operand has members, so there is a result.
        Self::new(interval, congruence).unwrap_or(Self { interval, congruence })
    }

    fn binary(operator: Binary, left: &Self, right: &Self) -> Option<Self> {
        let interval = Interval::binary(operator, &left.interval, &right.interval)?;
        // Where the bounds exclude an overflow, the whole modulus survives.
        let congruence = if Interval::may_overflow(operator, left.interval, right.interval) {
            Congruence::binary(operator, &left.congruence, &right.congruence)
        } else {
            Congruence::binary_exact(operator, &left.congruence, &right.congruence)
        };
        Self::new(interval, congruence?)
    }

    fn compare(operator: Binary, left: &Self, right: &Self) -> Option<(Self, Self)> {
        Self::both(
            Interval::compare(operator, &left.interval, &right.interval)?,
            Congruence::compare(operator, &left.congruence, &right.congruence)?,
        )
    }

    fn unary_back(operator: Unary, operand: &Self, result: &Self) -> Option<Self> {
        Self::new(
            Interval::unary_back(operator, &operand.interval, &result.interval)?,
            Congruence::unary_back(operator, &operand.congruence, &result.congruence)?,
        )
    }

    fn binary_back(
        operator: Binary,
        left: &Self,
        right: &Self,
        result: &Self,
    ) -> Option<(Self, Self)> {
        let (one, other) = (&left.interval, &right.interval);
        let classes = (&left.congruence, &right.congruence);
        Self::both(
            Interval::binary_back(operator, one, other, &result.interval)?,
            Congruence::binary_back(operator, classes.0, classes.1, &result.congruence)?,
        )
    }
}
