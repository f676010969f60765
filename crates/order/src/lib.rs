//! Orders over the events of a trace.
//!
//! | order | module |
//! | --- | --- |
//! | happens-before: what synchronisation makes certain | [`hb`] |
//! | schedulable happens-before: what of it every cut of this run keeps | [`shb`] |
//! | causally-precedes: what of it other runs must keep | [`cp`] |
//! | weak-causally-precedes: still less of it, found in one pass | [`wcp`] |
//!
//! [`poset`] writes an order down as a whole, and says which sets of events are global states.

pub mod access;
mod clock;
mod clocks;
pub mod cp;
mod flow;
pub mod hb;
pub mod needs;
pub mod poset;
pub mod shb;
pub mod wcp;

pub use clock::VectorClock;
pub use clocks::Clocks;
