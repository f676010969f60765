//! What an analysis is called and promises.

use std::fmt::{self, Display, Formatter};

use reweave_trace::Trace;

use crate::kind::Kind;

/// What an analysis is called and promises, for lists and for choosing among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Its full name, family first: `races.hb`.
    pub name: &'static str,
    /// Its family: `races`.
    pub family: &'static str,
    /// What kind of fault it finds.
    pub kind: Kind,
    /// The strongest guarantee its findings come with.
    pub guarantee: Guarantee,
    /// What a trace must hold for it.
    pub needs: Layer,
    /// Whether it runs unless others are asked for.
    pub is_default: bool,
    /// What it finds, in one line.
    pub summary: &'static str,
    /// Where it is published.
    pub paper: &'static str,
}

/// What a trace can hold, each layer on top of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The events, which every trace holds.
    Events,
    /// Data and control dependence.
    Flow,
    /// The program behind the events.
    Program,
}

impl Layer {
    /// Whether `trace` holds it.
    #[must_use]
    pub const fn is_in(self, trace: &Trace) -> bool {
        match self {
            Self::Events => true,
            Self::Flow => trace.flow().is_some(),
            Self::Program => trace.program().is_some(),
        }
    }

    /// How reports spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Flow => "flow",
            Self::Program => "program",
        }
    }
}

impl Display for Layer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How much a finding can be relied on, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guarantee {
    /// It happened in the recorded run.
    Observed,
    /// A schedule is attached, the independent checker accepted it, and the writer of every read
    /// in it was observed.
    Witnessed,
    /// An algorithm decided it of all runs of an order together; a schedule that is attached is an
    /// example.
    Decided,
    /// It holds if nothing reported before it is real.
    First,
    /// The relation leaves the events unordered; nothing more is known.
    Unordered,
}

impl Guarantee {
    /// Whether it holds for certain, so that it is shown without being asked for.
    #[must_use]
    pub const fn is_certain(self) -> bool {
        matches!(self, Self::Observed | Self::Witnessed | Self::Decided)
    }

    /// How reports spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Witnessed => "witnessed",
            Self::Decided => "decided",
            Self::First => "first",
            Self::Unordered => "unordered",
        }
    }

    /// What it means, as a sentence.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Observed => "It happened in the recorded run.",
            Self::Witnessed => "The independent checker accepted the schedule.",
            Self::Decided => {
                "Decided for all runs together, which no schedule can prove: the one shown is an \
                 example."
            }
            Self::First => {
                "No schedule shows it, but a theorem of the relation says that these race or that \
                 threads can deadlock before: see what `deadlocks` finds."
            }
            Self::Unordered => "An unconfirmed candidate: no schedule proves it.",
        }
    }
}

impl Display for Guarantee {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
