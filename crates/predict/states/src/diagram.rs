//! The cut diagram: states counted, numbered, sampled, added up and searched without going through
//! them.
//!
//! Fix the chains one after the other, each to a number of its events. What the chains fixed so far
//! leave to the others is a *window*: the least and the greatest number of each. Ways that lead to
//! equal windows have the same states ahead of them, so they are merged. Different windows have
//! different ones, as each number in a window is that of some state; so, for the order in which the
//! chains are fixed, what results is the reduced decision diagram of the set of states, and it has
//! no dead ends.
//!
//! | wanted | function |
//! | --- | --- |
//! | the number of states, of any size | [`count`], [`count_hybrid`] |
//! | the number of states of each event's interval | [`interval_counts`] |
//! | the least state that meets a predicate | [`least`] |
//! | states by their number, uniform samples, how many states hold an event | [`Diagram`] |
//! | the extremes and the histogram of a sum over the chains | [`Diagram`] |
//!
//! All of it is exact, and the same for the same input and limits. The chains are fixed in the
//! order of their widths or, if that takes many windows, such that each level has few; the order of
//! states by their number in a [`Diagram`] follows from it.
//!
//! Costs the number of windows times the numbers that each leaves to the chain fixed next. In the
//! worst case there are exponentially many windows in the number of chains: [`Limits`] say how many
//! there may be, and an [`Overflow`] that there were more. [`count_hybrid`] and [`least`] go on
//! then, in batches that fit.
//!
//! The windows are those of a walk through the states chain by chain; merging equal ones is as in
//! Bryant, "Graph-based algorithms for Boolean function manipulation" (1986), of which this is the
//! form for chains in place of bits.

mod count;
mod fold;
mod graph;
mod limits;
mod merge;
mod number;
mod sums;
mod windows;

pub use count::{Counted, count, count_hybrid, interval_counts};
pub use fold::{Fold, Least, least};
pub use graph::{Diagram, States};
pub use limits::{Limits, Overflow, Reason, Stop};
pub use number::Count;
pub use sums::Extreme;
