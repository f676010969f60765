//! What tests stand on: traces drawn as figures, generated, or enumerated; the corpus.
//!
//! | module | gives |
//! | --- | --- |
//! | [`fixture`] | a trace from a figure with a column per thread, and the figure of a trace |
//! | [`generate`] | seeded well-formed traces of a given shape, and strategies that shrink them |
//! | [`enumerate`] | every well-formed trace of a small scope |
//! | [`corpus`] | the litmus cases, recorded traces and posets with their expected values |
//! | [`programs`] | programs in C and C++ without races, and such with one |
//! | [`soak`] | how long randomised tests run |

pub mod corpus;
pub mod enumerate;
pub mod fixture;
pub mod generate;
pub mod programs;
pub mod soak;

pub use enumerate::Scope;
pub use fixture::{draw, events, std, std_builder, trace, try_trace};
pub use generate::{Drawn, Shape, traces};
