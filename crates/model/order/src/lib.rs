//! Orders over the events of a trace.
//!
//! | order | module |
//! | --- | --- |
//! | happens-before: what synchronisation makes certain | [`hb`] |
//! | schedulable happens-before: what of it every cut of this run keeps | [`shb`] |
//! | causally-precedes: what of it other runs must keep | [`cp`] |
//! | weak-causally-precedes: still less of it, found in one pass | [`wcp`] |
//! | must-happen-before: what every correct reordering keeps, locks aside | [`mhb`] |
//!
//! [`poset`] writes an order down as a whole, and says which sets of events are global states.
//!
//! ```
//! use reweave_order::cp::CausallyPrecedes;
//! use reweave_order::hb::HappensBefore;
//!
//! let trace = reweave_testkit::trace("
//! T1      T2
//! acq(m)
//! w(x)
//! rel(m)
//!         acq(m)
//!         rel(m)
//!         w(x)
//! ");
//! let [last, t1] = [trace.numbered(6).unwrap(), trace.numbered(1).unwrap()];
//! let t1 = trace.event(t1).thread;
//!
//! // Happens-before takes the hand-over of the lock for an order: three events of T1 come first.
//! let mut clocks = HappensBefore::new();
//! let known = trace.events().map(|(event, _)| clocks.advance(&trace, event).get(t1)).last();
//! assert_eq!(known, Some(3));
//!
//! // The sections do not conflict, so causally-precedes does not.
//! let order = CausallyPrecedes::new(&trace);
//! assert_eq!(order.clocks().advance(&trace, last).get(t1), 0);
//! ```

pub mod access;
mod clock;
pub mod cp;
mod edge_clocks;
pub mod hb;
pub mod mhb;
pub mod poset;
pub mod shb;
pub mod wcp;

pub use clock::{Clocks, VectorClock};
