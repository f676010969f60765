//! Accesses that a later one is unordered with, some at a time.

use reweave_trace::{EventId, SiteId};

/// One access of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// Its number in its thread, counted from 1.
    pub(crate) time: u32,
    pub(crate) event: EventId,
}

/// Accesses of one thread at one site, oldest first, that a later access is unordered with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unordered<'a> {
    pub(crate) site: SiteId,
    pub(crate) accesses: &'a [Access],
    pub(crate) second: EventId,
}

impl Unordered<'_> {
    /// The earlier accesses, oldest first.
    pub(crate) fn firsts(&self) -> impl ExactSizeIterator<Item = EventId> + DoubleEndedIterator {
        self.accesses.iter().map(|access| access.event)
    }

    /// How many there are.
    pub(crate) const fn len(&self) -> usize {
        self.accesses.len()
    }

    /// Those from `earliest` on, if there are any.
    pub(crate) fn since(self, earliest: EventId) -> Option<Self> {
        let from = self.accesses.partition_point(|access| access.event < earliest);
        let accesses = &self.accesses[from..];
        (!accesses.is_empty()).then_some(Self { accesses, ..self })
    }
}
