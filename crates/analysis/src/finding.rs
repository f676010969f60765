//! What was found, and why it holds.

use reweave_trace::{EventId, Goal, Reordering};

use crate::info::{Guarantee, Kind};

/// A fault that a trace shows to be possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which analysis made it.
    pub analysis: &'static str,
    /// What kind of fault it is.
    pub kind: Kind,
    /// How much it can be relied on.
    pub guarantee: Guarantee,
    /// The events at fault.
    pub events: Vec<EventId>,
    /// What is wrong, in a sentence.
    pub message: String,
    /// How many instances at the same code locations it stands for, itself included.
    pub count: u64,
    /// Why it holds.
    pub evidence: Evidence,
}

/// Why a finding holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A certificate, checked in full before it is shown: a reordering and what its end shows.
    Schedule {
        /// The events that run, in this order.
        reordering: Reordering,
        /// What holds afterwards.
        goal: Goal,
    },
    /// A claim, labelled as one: a relation leaves the events unordered.
    Unordered,
}

impl Evidence {
    /// The events that are enabled together at the end of the schedule, if there is one.
    #[must_use]
    pub fn then(&self) -> Vec<EventId> {
        match self {
            Self::Schedule { goal: Goal::Race(first, second), .. } => vec![*first, *second],
            Self::Schedule { goal: Goal::Enabled(events) | Goal::Deadlock(events), .. } => {
                events.clone()
            }
            Self::Schedule { goal: Goal::Order { .. } | Goal::Sees { .. }, .. }
            | Self::Unordered => Vec::new(),
        }
    }
}
