//! Data races: two conflicting accesses that another run could do at once.
//!
//! | module | question |
//! | --- | --- |
//! | [`exact`] | which pairs can some correct reordering bring together, or run with nothing that orders them |
//! | [`relation`] | which pairs does happens-before, SHB, WCP or CP leave unordered |
//! | [`epoch`] | which variables have a happens-before race, as fast as can be |
//! | [`mod@candidates`] | which pairs might race, as far as a cheap look can say |
//! | [`reduce`] | which events can the relations do without to find the racy variables |
//!
//! ```
//! use reweave_races::relation::Relation;
//! use reweave_races::{exact, relation};
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
//! // The hand-over of the lock hides the race from happens-before, but not from all reorderings.
//! assert!(relation::pairs(&trace, Relation::HappensBefore, None).is_empty());
//! assert_eq!(relation::pairs(&trace, Relation::Cp, None).len(), 1);
//! let decided = exact::races(&trace);
//! assert_eq!(decided.counts.pairs, 1);
//! assert_eq!((decided.pairs[0].first.number(), decided.pairs[0].second.number()), (2, 6));
//! ```

pub mod candidates;
pub mod epoch;
pub mod exact;
mod locksets;
mod pairs;
pub mod reduce;
pub mod relation;

use reweave_analysis::Analysis;

pub use pairs::{Counts, GROUPS_MAX, Group, Race};
pub use reweave_driver::TRIES_MAX;

/// Every analysis of this family.
pub const ANALYSES: &[&dyn Analysis] = &[
    &exact::EXACT,
    &exact::SYNC_PRESERVING,
    &relation::HB,
    &relation::SHB,
    &relation::WCP,
    &relation::CP,
];
