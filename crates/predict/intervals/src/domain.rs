//! Abstract domains: sets of 64-bit integers, described from outside.
//!
//! **Question.** What can an operator give, if all that is known of its operands is a set for each?
//! And what can the operands have been, if a set is known of the result?
//!
//! **Idea.** Sets have short descriptions: bounds ([`Interval`]), a residue class ([`Congruence`]),
//! or both, each made the smaller by the other ([`Product`]). An operator forwards, and the same
//! operator backwards from its result, is a calculation on descriptions.
//!
//! **Promise.** A description never leaves out what can be. Numbers are 64 bits wide and wrap, so
//! the description of what may have wrapped keeps only what is true after wrapping: of bounds
//! nothing, of residue classes the power of two in the modulus.
//!
//! **Cost.** Constant for each operation, but for bit operations on ranges of more than one number
//! (at most 64 rounds for each pair of signs) and what residue classes have in common (Euclid's
//! algorithm). Nothing is allocated.

use std::fmt::Debug;

use reweave_trace::{Binary, Unary};

mod congruence;
mod interval;
mod logic;
mod product;
#[cfg(test)]
pub(crate) mod reference;

pub use congruence::Congruence;
pub use interval::Interval;
pub(crate) use logic::{opposite, truth};
pub use product::{Product, Reduce};

/// A set of integers that can be described. Every operation gives a set that has at least what the
/// operation on each member gives; a smaller set is a better answer, never a safer one.
///
/// The empty set has no description: what could give it gives `None`. `None` is a claim and must be
/// true; a set where nothing is left may be given all the same.
pub trait Domain: Clone + Debug + PartialEq + Send + Sync + 'static {
    /// All integers.
    const TOP: Self;

    /// One integer.
    fn constant(value: i64) -> Self;

    /// Whether `value` is in the set.
    fn contains(&self, value: i64) -> bool;

    /// The only member, if there is only one.
    fn as_constant(&self) -> Option<i64>;

    /// The least and the greatest number that can be said to bound the members.
    fn bounds(&self) -> (i64, i64);

    /// Makes it a set that has all members of both.
    fn join(&mut self, other: &Self);

    /// A set that has what is in both; none if nothing is.
    fn meet(&self, other: &Self) -> Option<Self>;

    /// What `operator` makes of the members.
    fn unary(operator: Unary, operand: &Self) -> Self;

    /// What `operator` makes of pairs of members, but for pairs for which it has no result; none
    /// if that is all of them.
    fn binary(operator: Binary, left: &Self, right: &Self) -> Option<Self>;

    /// The members of `left` and of `right` of pairs on which the comparison `operator` is true;
    /// none if there are no such pairs. Operators that compare nothing leave both as they are.
    fn compare(operator: Binary, left: &Self, right: &Self) -> Option<(Self, Self)>;

    /// The members of `operand` of which `operator` can make a member of `result`.
    fn unary_back(operator: Unary, operand: &Self, result: &Self) -> Option<Self>;

    /// The members of `left` and `right` of pairs of which `operator` can make a member of
    /// `result`.
    fn binary_back(
        operator: Binary,
        left: &Self,
        right: &Self,
        result: &Self,
    ) -> Option<(Self, Self)>;
}
