//! What can be claimed of a run: that its events can happen in another order, which then shows
//! something. The checker decides whether that is so.

use std::slice;

use reweave_base::IndexVec;

use crate::{EventId, ThreadId, VarId};

/// Some events of a trace, in an order that may not be the observed one.
///
/// First come the events of `base`, the fixed prefix, in observed order, then those of `schedule`
/// as they stand. On a long trace almost everything is in `base`, which takes one number per thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    /// How many of each thread's first events run first; 0 for threads past its end.
    pub base: IndexVec<ThreadId, u32>,
    /// The events that follow, in this order.
    pub schedule: Vec<EventId>,
}

impl Reordering {
    /// The reordering that runs `schedule` and nothing before it.
    #[must_use]
    pub const fn explicit(schedule: Vec<EventId>) -> Self {
        Self { base: IndexVec::new(), schedule }
    }
}

/// What must hold at the end of a reordering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Each of these is its own thread's next event and could happen now, alone; a read may then
    /// see another write than observed.
    Enabled(Vec<EventId>),
    /// Two conflicting accesses of different threads, each its thread's next event.
    Race(EventId, EventId),
    /// Two conflicting accesses of different threads, or an access and a `free`, happened, and happens-before
    /// of this very order, which goes by memory orders, puts neither before the other.
    Unordered(EventId, EventId),
    /// Each is its thread's next event and acquires, or requests, a lock that the thread of the
    /// one after it holds, or joins that thread; the last one's that of the first.
    Deadlock(Vec<EventId>),
    /// Each is its thread's next event and waits for what no thread can do any more: all other
    /// threads have run all their events, or were never started. A notify need not find waiting
    /// whom it woke, where the wake is one of these.
    Stuck(Vec<EventId>),
    /// The events of `chain` happened in this order, those of `absent` did not happen, and only
    /// the reads of `free` may have seen another write than observed.
    Order {
        /// What happened, in this order.
        chain: Vec<EventId>,
        /// What did not happen.
        absent: Vec<EventId>,
        /// Reads that may have seen another write than observed.
        free: Vec<EventId>,
        /// Whether the threads of those that happened may have gone on afterwards.
        after: After,
    },
    /// `read` happened and saw `write`, which is not what it saw when observed; all other reads
    /// saw what they did.
    Sees {
        /// The read.
        read: EventId,
        /// What it saw instead; none for the initial value.
        write: Option<EventId>,
        /// Whether its thread may have gone on afterwards.
        after: After,
    },
    /// Each of these is the last event of its thread that happened, and of threads with none here
    /// nothing happened.
    Reaches(Vec<EventId>),
    /// Every event of the trace happened, and the last write of `var` is `write`.
    Leaves {
        /// The variable.
        var: VarId,
        /// What it is left with.
        write: EventId,
    },
}

impl Goal {
    /// The events that are next at the end, each of its own thread.
    #[must_use]
    pub fn next(&self) -> Vec<EventId> {
        match self {
            Self::Race(first, second) => vec![*first, *second],
            Self::Enabled(events) | Self::Deadlock(events) | Self::Stuck(events) => events.clone(),
            Self::Unordered(..)
            | Self::Order { .. }
            | Self::Sees { .. }
            | Self::Reaches(_)
            | Self::Leaves { .. } => Vec::new(),
        }
    }

    /// The events that have happened or are next at the end, of those that the goal speaks of.
    #[must_use]
    pub fn named(&self) -> Vec<EventId> {
        match self {
            Self::Race(..) | Self::Enabled(_) | Self::Deadlock(_) | Self::Stuck(_) => self.next(),
            Self::Unordered(first, second) => vec![*first, *second],
            Self::Order { chain, .. } | Self::Reaches(chain) => chain.clone(),
            Self::Sees { read, write, .. } => write.iter().copied().chain([*read]).collect(),
            Self::Leaves { write, .. } => vec![*write],
        }
    }

    /// The reads that may see another write than observed, and what their threads do then.
    #[must_use]
    pub const fn free_reads(&self) -> (&[EventId], After) {
        match self {
            Self::Order { free, after, .. } => (free.as_slice(), *after),
            Self::Sees { read, after, .. } => (slice::from_ref(read), *after),
            Self::Race(..)
            | Self::Unordered(..)
            | Self::Enabled(_)
            | Self::Deadlock(_)
            | Self::Stuck(_)
            | Self::Reaches(_)
            | Self::Leaves { .. } => (&[], After::Stops),
        }
    }

    /// The wakes that need not come, whatever was notified.
    #[must_use]
    pub const fn lost_wakes(&self) -> &[EventId] {
        if let Self::Stuck(events) = self { events.as_slice() } else { &[] }
    }
}

/// What a thread did after a read of it saw another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Nothing, and if it is an update nobody saw what it wrote but such reads: the reordering
    /// holds whatever the program does with the value.
    Stops,
    /// It may have gone on as observed, which takes for granted that it would.
    RunsOn,
}
