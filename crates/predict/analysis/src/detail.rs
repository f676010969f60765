//! What a finding of one kind says beyond what all findings say.

use std::cmp::Reverse;

use reweave_base::IndexVec;
use reweave_order::poset::Relation;
use reweave_trace::{EventId, MemoryOrder, MisuseKind, SiteId, ThreadId, Trace};

use crate::modality::Modality;

/// What a finding says beyond what all findings say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Nothing.
    #[default]
    None,
    /// What a read can see instead of what it saw. Boxed, since long lists hold findings of other
    /// kinds.
    Nondeterminism(Box<Nondeterminism>),
    /// A global state and the predicate that it meets.
    State(Box<GlobalState>),
    /// Atomic accesses that hand something over and are too weak to order it.
    MemoryOrders(Vec<WeakAccess>),
    /// The rule that was broken.
    Misuse(MisuseKind),
}

impl Detail {
    /// What a read can see, for a finding that says so.
    #[must_use]
    pub fn nondeterminism(&self) -> Option<&Nondeterminism> {
        match self {
            Self::Nondeterminism(detail) => Some(detail),
            Self::None | Self::State(_) | Self::MemoryOrders(_) | Self::Misuse(_) => None,
        }
    }

    /// The global state, for a finding that shows one.
    #[must_use]
    pub fn state(&self) -> Option<&GlobalState> {
        match self {
            Self::State(detail) => Some(detail),
            Self::None | Self::Nondeterminism(_) | Self::MemoryOrders(_) | Self::Misuse(_) => None,
        }
    }

    /// The rule that was broken, for a finding of misuse.
    #[must_use]
    pub const fn misuse(&self) -> Option<MisuseKind> {
        match self {
            Self::Misuse(rule) => Some(*rule),
            Self::None | Self::Nondeterminism(_) | Self::State(_) | Self::MemoryOrders(_) => None,
        }
    }
}

/// An atomic access whose memory order does not synchronize, though its value is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeakAccess {
    /// The access.
    pub event: EventId,
    /// The weakest order that would do.
    pub needed: MemoryOrder,
}

impl WeakAccess {
    /// The lock that the access finds taken, or takes, where a failed attempt is what is waited for.
    #[must_use]
    pub fn tried_lock<'a>(&self, trace: &'a Trace) -> Option<&'a str> {
        trace.names().tried_lock(trace.event(self.event).op.var()?)
    }
}

/// A global state that meets a predicate, or breaks it if it should always hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalState {
    /// The predicate as it was written.
    pub predicate: String,
    /// What is asked about it.
    pub modality: Modality,
    /// Which order of the trace's events the state is one of.
    pub order: Relation,
    /// How it was found, by the class of the predicate.
    pub method: &'static str,
    /// How many events of each thread have happened.
    pub cut: IndexVec<ThreadId, u32>,
    /// What the predicate speaks of, as it spells it, and what that is in the state; none if the
    /// trace does not say.
    pub values: Vec<(String, Option<String>)>,
}

/// A read that can see another write than it saw, and the other writes that its code can see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nondeterminism {
    /// How the schedule breaks the reads-from edge: 1, the read comes between the interfering write
    /// and the writer; 2, the interfering write comes between the writer and the read; 3,
    /// the writer does not happen.
    pub witness_kind: u8,
    /// Which reorderings count: `order`, `prefix` or `strict`.
    pub mode: &'static str,
    /// What the read saw; none is the initial value.
    pub writer: Option<EventId>,
    /// The read; none is the implicit read of the variable at the end of the run.
    pub read: Option<EventId>,
    /// The other write of the schedule; none is the initial value.
    pub interfering: Option<EventId>,
    /// How many instances at the code locations of the read and the interfering write it stands for.
    pub count: u64,
    /// Whether a race detector is silent about it; none if that is not known.
    pub is_race_free: Option<bool>,
    /// Whether the interfering write would have given the read another value, where the trace says.
    pub changes_value: Option<bool>,
    /// The other writes that the code of the read can see, at most one for each code location.
    pub others: Vec<Alternative>,
}

/// A write that the code of a read can see besides the one that a schedule shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// The first such write; none is the initial value.
    pub write: Option<EventId>,
    /// The read that can see it; none is the implicit read at the end of the run.
    pub read: Option<EventId>,
    /// How many instances at the same two code locations it stands for, itself included.
    pub count: u64,
    /// Whether a race detector is silent about it; none if that is not known.
    pub is_race_free: Option<bool>,
    /// Whether it would have given the read another value, where the trace says.
    pub changes_value: Option<bool>,
}

impl Nondeterminism {
    /// All writes that the code of the read can see: what the schedule shows, then the others.
    pub fn alternatives(&self) -> impl Iterator<Item = Alternative> {
        [self.shown()].into_iter().chain(self.others.iter().copied())
    }

    /// What the schedule shows.
    const fn shown(&self) -> Alternative {
        Alternative {
            write: self.interfering,
            read: self.read,
            count: self.count,
            is_race_free: self.is_race_free,
            changes_value: self.changes_value,
        }
    }

    /// What puts it before others of its kind, the worst first: that a value changes, that no race
    /// detector reports it, and that there is much to choose from.
    #[must_use]
    pub fn severity(&self) -> Severity {
        let worst = self.alternatives().map(|write| write.rank()).min();
        Severity { worst, count: Reverse(1 + self.others.len()) }
    }

    /// Whether what its schedule shows is worse than what the schedule of `other` shows.
    #[must_use]
    pub fn is_worse_than(&self, other: &Self) -> bool {
        self.shown().rank() < other.shown().rank()
    }

    /// Adds what `other`, at the same code location, can see.
    pub fn join(&mut self, trace: &Trace, other: &Self) {
        for alternative in other.alternatives() {
            self.add(trace, alternative);
        }
    }

    /// Adds `alternative`; writes at one code location are one.
    fn add(&mut self, trace: &Trace, alternative: Alternative) {
        let site = |write: Option<EventId>| -> Option<SiteId> {
            write.map(|write| trace.event(write).site)
        };
        let location = |write| site(write).map(|site| trace.names().location(site));
        let place = location(alternative.write);
        if place == location(self.interfering) {
            self.count += alternative.count;
            return;
        }
        match self.others.iter_mut().find(|other| location(other.write) == place) {
            Some(known) => known.join(alternative),
            None => self.others.push(alternative),
        }
    }
}

impl Alternative {
    /// What puts it before others, the least first.
    #[must_use]
    pub const fn rank(&self) -> [u8; 2] {
        [certain_first(self.changes_value), certain_first(self.is_race_free)]
    }

    /// Adds `other`, at the same two code locations; the worse of the two is kept.
    fn join(&mut self, other: Self) {
        let count = self.count + other.count;
        if other.rank() < self.rank() {
            *self = other;
        }
        self.count = count;
    }
}

/// What holds before what is not known, and that before what does not.
const fn certain_first(holds: Option<bool>) -> u8 {
    match holds {
        Some(true) => 0,
        None => 1,
        Some(false) => 2,
    }
}

/// What puts a finding before others of its kind: the least comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Severity {
    worst: Option<[u8; 2]>,
    count: Reverse<usize>,
}

/// One entry of the list of all witnesses: three events, how their order breaks a reads-from
/// edge, and whether some reordering shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WitnessVerdict {
    /// As in [`Nondeterminism`].
    pub witness_kind: u8,
    /// Whether some reordering shows it; none if that was not decided.
    pub is_feasible: Option<bool>,
    /// What the read saw; none is the initial value.
    pub writer: Option<EventId>,
    /// The read; none is the implicit read of the variable at the end of the run.
    pub read: Option<EventId>,
    /// The other write; none is the initial value.
    pub interfering: Option<EventId>,
}

/// The witnesses that one analysis lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessList {
    /// Which analysis.
    pub analysis: &'static str,
    /// Its witnesses, in its own order.
    pub witnesses: Vec<WitnessVerdict>,
}

/// There are millions of them.
const _: () = assert!(size_of::<WitnessVerdict>() == 16);

#[cfg(test)]
mod tests {
    use super::*;
    use reweave_trace::{AccessOp, Op, TraceBuilder};

    /// A trace of writes at the locations a, b, b, c.
    fn writes() -> Trace {
        let mut builder = TraceBuilder::new();
        let (thread, var) = (builder.thread("T1"), builder.var("x"));
        for location in ["a", "b", "b", "c"] {
            let site = builder.site(location);
            builder.push(thread, Op::Access(AccessOp::Write, var), site);
        }
        builder.finish().unwrap()
    }

    fn sees(
        write: u32,
        count: u64,
        is_race_free: Option<bool>,
        changes_value: Option<bool>,
    ) -> Nondeterminism {
        Nondeterminism {
            witness_kind: 2,
            mode: "strict",
            writer: None,
            read: EventId::from_number(1),
            interfering: EventId::from_number(write),
            count,
            is_race_free,
            changes_value,
            others: Vec::new(),
        }
    }

    #[test]
    fn writes_at_one_location_are_one_alternative() {
        let trace = writes();
        let mut detail = sees(1, 2, Some(false), None);
        for (write, count) in [(2, 3), (3, 2), (4, 1), (0, 4), (1, 5)] {
            detail.join(&trace, &sees(write, count, Some(write == 3), None));
        }
        let listed: Vec<_> = detail
            .alternatives()
            .map(|it| (it.write.map_or(0, EventId::number), it.count, it.is_race_free))
            .collect();
        // Of the two at b the race-free one stands for both.
        let [silent, racing] = [Some(true), Some(false)];
        assert_eq!(listed, [(1, 7, racing), (3, 5, silent), (4, 1, racing), (0, 4, racing)]);
    }

    #[test]
    fn a_changed_value_is_worst_then_what_no_race_detector_tells_of_then_many_writes() {
        let trace = writes();
        let [silent, racing] = [Some(true), Some(false)];
        let mut many = sees(1, 1, silent, None);
        many.join(&trace, &sees(2, 1, racing, None));
        let ordered = [
            sees(1, 1, silent, Some(true)),
            sees(1, 1, None, Some(true)),
            sees(1, 1, racing, Some(true)),
            many,
            sees(1, 1, silent, None),
            sees(1, 1, None, None),
            sees(1, 1, racing, None),
            sees(1, 1, silent, Some(false)),
            sees(1, 1, None, Some(false)),
            sees(1, 1, racing, Some(false)),
        ];
        assert!(ordered.iter().map(Nondeterminism::severity).is_sorted_by(|a, b| a < b));
    }
}
