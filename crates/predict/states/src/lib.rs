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
//! [`definitely`] as the predicate allows. A predicate of another making is a closure
//! ([`predicate::StatePredicate`]) or, where it can take the chains one by one, a [`diagram::Fold`]:
//!
//! ```
//! use reweave_order::poset::PosetBuilder;
//! use reweave_states::{Bounds, diagram, find};
//!
//! // Two threads of two events each; each waits for the other's first before its second.
//! let mut builder = PosetBuilder::new(2)?;
//! for (chain, clock) in [(0, [1, 0]), (1, [0, 1]), (0, [2, 1]), (1, [1, 2])] {
//!     builder.push(chain, &clock)?;
//! }
//! let poset = builder.finish();
//!
//! let states = diagram::count(&poset, &Bounds::all(&poset), &diagram::Limits::default())?;
//! assert_eq!(states.to_string(), "7");
//!
//! let is_ahead = |state: &[u32]| state[1] > state[0];
//! let least = find::least(&poset, &is_ahead, 1_000_000, &|| false);
//! assert_eq!(least.found, Some((vec![0, 1], 1)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
mod tables;
pub mod walk;

pub use analyses::ANALYSES;
pub use bounds::{Bounds, intervals};
pub use enumerate::{Enumerate, Stopped};
