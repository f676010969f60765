//! What analyses count, and how reports spell it.

use std::fmt::{self, Display, Formatter};

/// What an analysis counted, in the order in which reports give it.
pub type Counters = Vec<(Counter, u64)>;

macro_rules! counters {
    ($($(#[$doc:meta])* $counter:ident = $name:literal,)+) => {
        /// Something that an analysis counts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Counter { $($(#[$doc])* $counter,)+ }

        impl Counter {
            /// How reports spell it. JSON reports promise these names.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$counter => $name,)+ }
            }
        }
    };
}

counters! {
    // Races.
    /// Pairs of accesses.
    Pairs = "pairs",
    /// 0 if the pairs, and what is counted along with them, are lower bounds.
    PairsExact = "pairs_exact",
    /// Events that are the second of a pair.
    SecondEvents = "second_events",
    /// Variables with a pair.
    RacyVars = "vars",
    /// Pairs of code locations with a pair of accesses.
    LocationPairs = "location_pairs",
    /// 0 if the location pairs are a lower bound.
    LocationPairsExact = "location_pairs_exact",
    // Deadlocks.
    /// Sets of acquires that can be blocked in a cycle.
    Deadlocks = "deadlocks",
    /// Candidates that were evaluated.
    Candidates = "candidates",
    /// Patterns of which some instances were not tried.
    Partial = "partial",
    // Lifetimes.
    /// Objects that another thread than the one that frees them accesses.
    SharedObjects = "shared_objects",
    // Atomicity.
    /// Blocks that are expected to be atomic.
    Blocks = "blocks",
    /// Blocks that the observed run does not run atomically.
    Violations = "violations",
    /// Cycles of dependencies, or accesses around which another can come.
    Patterns = "patterns",
    /// Sets of code locations with a pattern, for each thing that is accessed there.
    LocationSets = "location_sets",
    /// Those of them with a proven pattern.
    Proven = "proven",
    // Nondeterminism.
    /// Orders of three events that would break a reads-from edge.
    Witnesses = "witnesses",
    /// Witnesses that some reordering shows.
    Feasible = "feasible",
    /// Reads that can see another write.
    Reads = "reads",
    /// Witnesses that the first phase of the paper's algorithm refutes.
    InfeasiblePhase1 = "infeasible_phase1",
    /// Witnesses that the first phase proves.
    FeasiblePhase1 = "feasible_phase1",
    /// Witnesses that need the second phase.
    WithChoices = "with_choices",
    /// Choice graphs that were explored.
    ChoiceGraphs = "choice_graphs",
    /// Choice graphs that there are.
    PossibleChoiceGraphs = "possible_choice_graphs",
    /// Writes that were left out, since they would give the same value.
    SameValue = "same_value",
    // Global states.
    /// States that were enumerated.
    States = "states",
    /// Predicates that were asked about.
    Predicates = "predicates",
    /// Predicates that some state meets.
    Met = "met",
    /// Predicates that turn on values which the trace does not hold.
    MissingValues = "missing_values",
    /// Events that were gone through.
    Events = "events",
    /// Variables that were looked at.
    ExaminedVars = "variables",
    // What was left out, and why.
    /// Candidates that no correct reordering shows.
    Refuted = "refuted",
    /// Candidates on which a budget ended.
    Undecided = "undecided",
    /// Groups whose candidates are all refuted, but that have more instances than are tried.
    Capped = "capped",
    /// Witnesses that are not decided of a trace of this size, whatever the budget.
    Declined = "declined",
    /// Groups that only ordering keeps apart which a library is assumed to have made.
    Assumed = "assumed",
    /// Groups for which the budget did not last.
    Untried = "untried",
    /// Groups that were only counted.
    Unlisted = "unlisted",
    /// 0 if there are more of those than were counted.
    UnlistedExact = "unlisted_exact",
    /// Witnesses that the list of all witnesses does not hold.
    UnlistedWitnesses = "unlisted_witnesses",
    /// Groups with a schedule that rests on reads of unknown writers.
    UnknownWriter = "unknown_writers",
    /// Schedules that the checker refused, which is a fault of the engine.
    Refused = "refused",
}

impl Counter {
    /// The counter that is 0 if this one is a lower bound.
    #[must_use]
    pub const fn exactness(self) -> Option<Self> {
        match self {
            // What is counted along with pairs is as exact as they are.
            Self::Pairs | Self::SecondEvents | Self::RacyVars => Some(Self::PairsExact),
            Self::LocationPairs => Some(Self::LocationPairsExact),
            Self::Unlisted => Some(Self::UnlistedExact),
            _ => None,
        }
    }

    /// Whether it only says how exact others are.
    #[must_use]
    pub const fn is_exactness(self) -> bool {
        matches!(self, Self::PairsExact | Self::LocationPairsExact | Self::UnlistedExact)
    }
}

impl Display for Counter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
