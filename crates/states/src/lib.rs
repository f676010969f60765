//! Consistent global states of a run: how many there are, what they are, and whether one of them,
//! or one on every path, meets a predicate.
//!
//! A *state* is a cut of a [`Poset`](reweave_order::poset::Poset) that holds, with an event, all
//! that come before it. There are exponentially many in the number of chains.
//!
//! | way of going through them | module |
//! | --- | --- |
//! | breadth first, after Cooper and Marzullo | [`breadth_first`] |
//! | in lexical order, after Ganter and Garg | [`lexical`] |
//! | by intervals, one an event, in parallel, after Chang and Garg | [`paramount`] |
//! | by windows, level by level, the fast walk | [`walk`] |
//! | not at all: equal windows merged, counted by the cut diagram | [`diagram`] |
//! | while the program runs, as its events happen | [`online`] |
//!
//! [`mod@count`] counts by any of them. [`predicate`] is the language in which states are asked for,
//! and [`mod@find`] finds the least one, by [`conjunctive`], [`linear`], [`pairwise`], [`diagram`] or
//! [`definitely`] as the predicate allows.

pub mod analyses;
mod bounds;
pub mod breadth_first;
pub mod conjunctive;
pub mod count;
pub mod definitely;
pub mod diagram;
mod enumerate;
pub mod find;
pub mod lexical;
pub mod linear;
pub mod online;
pub mod pairwise;
pub mod paramount;
pub mod predicate;
pub mod reference;
mod tables;
pub mod walk;

pub use analyses::ANALYSES;
pub use bounds::{Bounds, intervals};
pub use enumerate::{Enumerate, Stopped};
