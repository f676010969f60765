//! Consistent global states of a run: how many there are, what they are, and whether one of them,
//! or one on every path, meets a predicate.
//!
//! A *state* is a consistent cut of a [`Poset`](reweave_order::poset::Poset): with an event it
//! includes all that happen before it. There are exponentially many in the number of chains.
//!
//! | to enumerate or count them | module |
//! | --- | --- |
//! | breadth first, in lexical order, or by ParaMount's intervals, after Chang and Garg | [`enumerate`] |
//! | chain by chain, with vector instructions | [`by_chain`] |
//! | without enumerating them, by a decision diagram | [`mdd`] |
//! | while the program runs, as its events happen | [`online`] |
//!
//! [`mod@count`] counts by any of them. [`predicate`] is the language of predicates over states,
//! and [`mod@find`] finds the least state that meets one, by [`detect`], [`pairwise`] or [`mdd`],
//! as the predicate allows. A predicate of another making is a closure over states or, where it can
//! be evaluated chain by chain, an [`mdd::Fold`]:
//!
//! ```
//! use reweave_order::poset::PosetBuilder;
//! use reweave_states::{Bounds, find, mdd};
//!
//! // Two threads of two events each; each waits for the other's first before its second.
//! let mut builder = PosetBuilder::new(2)?;
//! for (chain, clock) in [(0, [1, 0]), (1, [0, 1]), (0, [2, 1]), (1, [1, 2])] {
//!     builder.push(chain, &clock)?;
//! }
//! let poset = builder.finish();
//!
//! let counted = mdd::count(&poset, &Bounds::all(&poset), &mdd::Limits::default(), &|| false);
//! assert_eq!(counted.count.to_string(), "7");
//!
//! let is_ahead = |state: &[u32]| state[1] > state[0];
//! let least = find::least(&poset, &is_ahead, 1_000_000, &|| false);
//! assert_eq!(least.found, Some((vec![0, 1], 1)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod analyses;
pub mod by_chain;
pub mod count;
pub mod detect;
pub mod enumerate;
pub mod find;
pub mod mdd;
pub mod online;
pub mod pairwise;
pub mod predicate;
mod tables;

pub use analyses::ANALYSES;
pub use enumerate::{Bounds, intervals};
