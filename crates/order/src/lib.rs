//! Orders over the events of a trace.
//!
//! | order | module |
//! | --- | --- |
//! | happens-before: what synchronisation makes certain | [`hb`] |
//! | causally-precedes: what of it other runs must keep | [`cp`] |

pub mod access;
mod clock;
pub mod cp;
mod flow;
pub mod hb;

pub use clock::VectorClock;
