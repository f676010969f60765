//! Data races: two conflicting accesses that another run could do at once.
//!
//! | module | question |
//! | --- | --- |
//! | [`exact`] | which pairs can some correct reordering bring together |
//! | [`relation`] | which pairs does happens-before, SHB, WCP or CP leave unordered |
//! | [`epoch`] | which variables have a happens-before race, as fast as can be |
//! | [`mod@candidates`] | which pairs might race, as far as a cheap look can tell |
//! | [`reduce`] | which events need the relations not look at to tell the racy variables |
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
//! assert_eq!(relation::pairs(&trace, Relation::Causal, None).len(), 1);
//! let decided = exact::races(&trace);
//! assert_eq!(decided.counts.pairs, 1);
//! assert_eq!((decided.pairs[0].first.number(), decided.pairs[0].second.number()), (2, 6));
//! ```

pub mod candidates;
mod decide;
pub mod epoch;
pub mod exact;
mod finding;
mod locksets;
pub mod reduce;
pub mod relation;
mod scan;
pub mod tally;
mod unordered;

use reweave_analysis::Analysis;
use reweave_trace::EventId;

/// Every analysis of this family.
pub const ANALYSES: &[&dyn Analysis] = &[
    &exact::EXACT,
    &exact::SYNC_PRESERVING,
    &relation::HB,
    &relation::SHB,
    &relation::WCP,
    &relation::CP,
];

/// Two conflicting accesses of different threads; `first` was observed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Race {
    /// The access observed first.
    pub first: EventId,
    /// The other.
    pub second: EventId,
}

impl Race {
    /// Races are listed in the order in which they showed: by the second access, then the first.
    pub(crate) const fn order(&self) -> (EventId, EventId) {
        (self.second, self.first)
    }
}

/// How many races a trace holds, counted four ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pairs of accesses.
    pub pairs: u64,
    /// Events that are the second of a pair.
    pub second_events: u64,
    /// Variables with a pair.
    pub vars: u64,
    /// Pairs of code locations with a pair of accesses.
    pub location_pairs: u64,
}

impl Counts {
    pub(crate) fn counters(self) -> Vec<(&'static str, u64)> {
        vec![
            ("pairs", self.pairs),
            ("second_events", self.second_events),
            ("vars", self.vars),
            ("location_pairs", self.location_pairs),
        ]
    }
}
