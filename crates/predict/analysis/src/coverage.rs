//! How hard to look, and how far the look went.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use crate::counter::{Counter, Counters};
use crate::info::Layer;

/// How hard an analysis looks. Budgets count work, so a truncated answer repeats, unless it
/// was the time that ended the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Give every instance, ungrouped, and those with weaker guarantees too.
    pub all: bool,
    /// Stop after this many findings.
    pub limit: Option<usize>,
    /// How many steps of work may be done on what is not linear in the trace, such as replaying
    /// candidate schedules.
    pub budget: u64,
    /// Stop after this time. An analysis reads no clock: whoever runs it asks it to stop, and the report
    /// says so, since other machines get further.
    pub time: Option<Duration>,
    /// Look only at events less than this many apart, where an analysis knows how to.
    pub window: Option<u32>,
    /// Leave out writes that would give the read the same value, where an analysis looks at values.
    pub differing_values: bool,
    /// Take every variable to be read when the run ends, where an analysis asks what reads see.
    pub final_reads: bool,
    /// Whether all atomic accesses and fences of the trace were made sequentially consistent, whatever
    /// the program says. Who asks for that gives such a trace.
    pub seqcst: bool,
    /// How many threads may work at once. The answer does not depend on it.
    pub threads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            all: false,
            limit: None,
            budget: 2_000_000_000,
            time: None,
            window: None,
            differing_values: false,
            final_reads: false,
            seqcst: false,
            threads: 1,
        }
    }
}

/// About how many steps of work a fast machine does in a second.
const STEPS_PER_SECOND: u64 = 250_000_000;

impl Settings {
    /// The steps of work with which a search lasts about `time`, and no fewer than by default.
    #[must_use]
    pub fn budget_for(time: Option<Duration>) -> u64 {
        let seconds = time.map_or(0, |time| time.as_secs());
        seconds.saturating_mul(STEPS_PER_SECOND).max(Self::default().budget)
    }
}

/// Why an analysis stopped before its question was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// The limit on findings was reached.
    Limit,
    /// The work budget was used up.
    Budget,
    /// The time that was given was up.
    Time,
    /// There was more than is tried or kept, whatever the budget.
    Capped,
    /// The checker refused a schedule of the engine, which is a fault of the engine.
    EngineFault,
    /// Someone asked it to stop.
    Cancelled,
    /// It was not run, since the trace does not hold what it needs.
    Lacks(Layer),
    /// It could not be answered, since the trace lacks values that it depends on.
    MissingValues,
    /// It could not be answered: of the recorded program only threads and locks were seen.
    NotInstrumented,
    /// Some of it could not be answered: a library, or the numbers of descriptors, may have ordered threads.
    Assumed,
    /// It could not be answered: what was found depends on reads whose writers are not known.
    UnknownWriters,
    /// There is nothing to search.
    NoEvents,
}

impl Truncation {
    /// How reports spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Budget => "budget",
            Self::Time => "time",
            Self::Capped => "capped",
            Self::EngineFault => "fault",
            Self::Cancelled => "cancelled",
            Self::Lacks(_) => "layer",
            Self::MissingValues => "values",
            Self::NotInstrumented => "accesses",
            Self::Assumed => "assumed",
            Self::UnknownWriters => "writers",
            Self::NoEvents => "events",
        }
    }
}

impl Display for Truncation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit => f.write_str("the limit on findings was reached; --limit raises it"),
            Self::Budget => f.write_str("the work budget was used up"),
            Self::Time => f.write_str("the time was up; --budget sets the seconds"),
            Self::Capped => f.write_str(
                "there was more to try than a fixed limit allows, which --budget does not raise",
            ),
            Self::EngineFault => f.write_str(
                "the checker refused a schedule that was found, which is a fault of reweave: \
                 please report it",
            ),
            Self::Cancelled => f.write_str("it was interrupted"),
            Self::Lacks(layer) => write!(f, "not run: the trace has no {layer} layer"),
            Self::MissingValues => f.write_str("the trace lacks values that it depends on"),
            Self::Assumed => f.write_str("threads may have been ordered out of sight"),
            Self::NotInstrumented => f.write_str(
                "no accesses to memory were recorded, since the program was not built for that: \
                 build it with `reweave cc`, `reweave c++` or `cargo reweave build`",
            ),
            Self::UnknownWriters => f.write_str(
                "threads ran freely, so it is not known which writes the reads saw that candidates \
                 depend on: record with `--mode serial`, or list the candidates with `--all`",
            ),
            Self::NoEvents => f.write_str(
                "the trace has no events: the program shared nothing between threads, or was not \
                 built for recording; build it with `reweave cc`, `reweave c++` or `cargo reweave \
                 build`, and record a run in which threads work together",
            ),
        }
    }
}

/// How much of its question an analysis answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Which analysis.
    pub analysis: &'static str,
    /// Why it stopped early; none if it went through everything.
    pub truncated: Option<Truncation>,
    /// What it counted, in a fixed order.
    pub counters: Counters,
}

impl Coverage {
    /// Whether the whole question was answered.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.truncated.is_none()
    }

    /// What `counter` came to, if it was counted.
    #[must_use]
    pub fn counter(&self, counter: Counter) -> Option<u64> {
        self.counters.iter().find(|(other, _)| *other == counter).map(|&(_, count)| count)
    }
}
