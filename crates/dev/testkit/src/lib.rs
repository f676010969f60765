//! What tests stand on: traces drawn as figures, generated, or enumerated; the definition of a
//! correct reordering stated a second time; the search of every correct reordering; the corpus.
//!
//! | module | gives |
//! | --- | --- |
//! | [`fixture`] | a trace from a figure with a column per thread, and the figure of a trace |
//! | [`generate`] | seeded well-formed traces of a given shape, and strategies that shrink them |
//! | [`enumerate`] | every well-formed trace of a small scope |
//! | [`definition`] | what a correct reordering is, as formulas over positions |
//! | [`oracle`] | every state that a correct reordering can reach, races and deadlocks among them |
//! | [`corpus`] | the litmus cases, recorded traces and posets with their expected values |
//! | [`soak`] | how long randomised tests run |

pub mod corpus;
pub mod definition;
pub mod enumerate;
pub mod fixture;
pub mod generate;
pub mod oracle;
pub mod soak;

pub use enumerate::Scope;
pub use fixture::{draw, events, std, trace, try_trace};
pub use generate::{Drawn, Shape, traces};
