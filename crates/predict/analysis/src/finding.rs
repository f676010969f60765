//! What was found, and why it holds.

use reweave_trace::{EventId, Trace};

use crate::detail::Detail;
use crate::info::Guarantee;
use crate::kind::Kind;
use crate::proof::Proof;

/// A fault that a trace shows to be possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which analysis made it.
    pub analysis: &'static str,
    /// What kind of fault it is.
    pub kind: Kind,
    /// The events at fault.
    pub events: Vec<EventId>,
    /// What is wrong, in a sentence.
    pub message: String,
    /// How many instances at the same code locations it stands for, itself included.
    pub count: u64,
    /// Why it holds.
    pub evidence: Evidence,
    /// What it says beyond what all findings say.
    pub detail: Detail,
}

impl Finding {
    /// How much it can be relied on, which is what its evidence gives.
    #[must_use]
    pub fn guarantee(&self) -> Guarantee {
        self.evidence.guarantee()
    }

    /// The code locations at fault in alphabetical order: findings of one kind at the same locations
    /// are instances of the same fault, but for states, which go by their predicate.
    ///
    /// They are those of its events; but of nondeterminism that of the read alone, whatever it can
    /// see. A read at the end of the run is nowhere: for it stands the empty location, and beside
    /// it that of the write it saw.
    #[must_use]
    pub fn locations<'t>(&self, trace: &'t Trace) -> Vec<&'t str> {
        let location = |&event: &EventId| trace.names().location(trace.event(event).site);
        let mut locations: Vec<&str> = match self.detail.nondeterminism() {
            None => self.events.iter().map(location).collect(),
            Some(detail) => match &detail.read {
                Some(read) => vec![location(read)],
                None => [""].into_iter().chain(detail.writer.iter().map(location)).collect(),
            },
        };
        locations.sort_unstable();
        locations
    }
}

/// Why a finding holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// It happened in the recorded run.
    Observed,
    /// A schedule that leads to the fault.
    Schedule(Proof),
    /// A claim, labelled as one: the first pair that a relation leaves unordered, of which a theorem
    /// says that it is real or that threads deadlock before it.
    First,
    /// A claim, labelled as one: a relation leaves the events unordered.
    Unordered,
}

impl Evidence {
    /// How much a finding with this evidence can be relied on. A schedule that runs reads whose
    /// writer was not observed is no more than a claim.
    #[must_use]
    pub fn guarantee(&self) -> Guarantee {
        match self {
            Self::Schedule(proof) if proof.unknown_reads_count() == 0 => Guarantee::Witnessed,
            Self::Observed => Guarantee::Observed,
            Self::First => Guarantee::First,
            Self::Schedule(_) | Self::Unordered => Guarantee::Unordered,
        }
    }

    /// The schedule, if there is one.
    #[must_use]
    pub const fn proof(&self) -> Option<&Proof> {
        match self {
            Self::Schedule(proof) => Some(proof),
            Self::Observed | Self::First | Self::Unordered => None,
        }
    }
}
