//! Products: what is in both of two sets, described in two ways.
//!
//! Each description is made the smaller by the other after every operation ([`Reduce`]): bounds move
//! to the next members of a residue class, and a class of which one member lies between the bounds
//! is that member. Bounds also say where nothing can have wrapped, and there a class is kept whole.

use std::fmt;

use reweave_trace::{Binary, Unary};

use super::{Congruence, Domain, Interval};

/// The integers that are in both sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product<A, B> {
    first: A,
    second: B,
}

/// How a description and one of another kind help each other.
pub trait Reduce<Other: Domain>: Domain {
    /// Both without members that the other does not have, as far as that can be described; none if
    /// no integer is in both.
    fn reduce(&self, other: &Other) -> Option<(Self, Other)>;

    /// [`Domain::unary`] of the other, where the operands are of this as well.
    fn unary_other(operator: Unary, _operand: &Self, other: &Other) -> Other {
        Other::unary(operator, other)
    }

    /// [`Domain::binary`] of the other, where the operands are of these as well.
    fn binary_other(
        operator: Binary,
        _operands: (&Self, &Self),
        others: (&Other, &Other),
    ) -> Option<Other> {
        Other::binary(operator, others.0, others.1)
    }
}

impl Reduce<Congruence> for Interval {
    fn reduce(&self, other: &Congruence) -> Option<(Self, Congruence)> {
        let (low, high) = (other.at_least(self.low())?, other.at_most(self.high())?);
        let bounds = Self::new(low, high)?;
        Some((bounds, bounds.as_constant().map_or(*other, Congruence::constant)))
    }

    fn unary_other(operator: Unary, operand: &Self, other: &Congruence) -> Congruence {
        if operand.contains(i64::MIN) {
            return Congruence::unary(operator, other);
        }
        Congruence::unary_exact(operator, other)
    }

    fn binary_other(
        operator: Binary,
        operands: (&Self, &Self),
        others: (&Congruence, &Congruence),
    ) -> Option<Congruence> {
        if Self::may_overflow(operator, *operands.0, *operands.1) {
            return Congruence::binary(operator, others.0, others.1);
        }
        Congruence::binary_exact(operator, others.0, others.1)
    }
}

impl<A: Reduce<B>, B: Domain> Product<A, B> {
    /// What is in both sets; none if nothing is.
    #[must_use]
    pub fn new(first: &A, second: &B) -> Option<Self> {
        first.reduce(second).map(|(first, second)| Self { first, second })
    }

    /// The first description.
    #[must_use]
    pub const fn first(&self) -> &A {
        &self.first
    }

    /// The second description.
    #[must_use]
    pub const fn second(&self) -> &B {
        &self.second
    }

    /// Two pairs of descriptions, each reduced.
    fn both((first, other_first): (A, A), (second, other_second): (B, B)) -> Option<(Self, Self)> {
        Some((Self::new(&first, &second)?, Self::new(&other_first, &other_second)?))
    }
}

impl<A: fmt::Display, B: fmt::Display> fmt::Display for Product<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.first, self.second)
    }
}

impl<A: Reduce<B>, B: Domain> Domain for Product<A, B> {
    const TOP: Self = Self { first: A::TOP, second: B::TOP };

    fn constant(value: i64) -> Self {
        Self { first: A::constant(value), second: B::constant(value) }
    }

    fn contains(&self, value: i64) -> bool {
        self.first.contains(value) && self.second.contains(value)
    }

    fn as_constant(&self) -> Option<i64> {
        self.first.as_constant().or_else(|| self.second.as_constant())
    }

    fn bounds(&self) -> (i64, i64) {
        let ((low, high), (other_low, other_high)) = (self.first.bounds(), self.second.bounds());
        (low.max(other_low), high.min(other_high))
    }

    fn join(&mut self, other: &Self) {
        self.first.join(&other.first);
        self.second.join(&other.second);
    }

    fn meet(&self, other: &Self) -> Option<Self> {
        Self::new(&self.first.meet(&other.first)?, &self.second.meet(&other.second)?)
    }

    fn unary(operator: Unary, operand: &Self) -> Self {
        let first = A::unary(operator, &operand.first);
        let second = A::unary_other(operator, &operand.first, &operand.second);
        // An operand has members, so there is a result.
        Self::new(&first, &second).unwrap_or(Self { first, second })
    }

    fn binary(operator: Binary, left: &Self, right: &Self) -> Option<Self> {
        let first = A::binary(operator, &left.first, &right.first)?;
        let operands = (&left.first, &right.first);
        let second = A::binary_other(operator, operands, (&left.second, &right.second))?;
        Self::new(&first, &second)
    }

    fn compare(operator: Binary, left: &Self, right: &Self) -> Option<(Self, Self)> {
        Self::both(
            A::compare(operator, &left.first, &right.first)?,
            B::compare(operator, &left.second, &right.second)?,
        )
    }

    fn unary_back(operator: Unary, operand: &Self, result: &Self) -> Option<Self> {
        let first = A::unary_back(operator, &operand.first, &result.first)?;
        Self::new(&first, &B::unary_back(operator, &operand.second, &result.second)?)
    }

    fn binary_back(
        operator: Binary,
        left: &Self,
        right: &Self,
        result: &Self,
    ) -> Option<(Self, Self)> {
        Self::both(
            A::binary_back(operator, &left.first, &right.first, &result.first)?,
            B::binary_back(operator, &left.second, &right.second, &result.second)?,
        )
    }
}

#[cfg(test)]
mod tests;
