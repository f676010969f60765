//! What can be asked: which events happen, in which order, and what is next at the end.

use reweave_trace::EventId;

/// A question about the correct reorderings of a trace: is there one that meets all of this?
///
/// Where nothing is said of a read, it sees the write it saw when observed, unless the query is
/// `relaxed`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Events that happen.
    pub must: Vec<EventId>,
    /// Pairs of events that both happen, the first before the second.
    pub order: Vec<(EventId, EventId)>,
    /// Events that do not happen.
    pub absent: Vec<EventId>,
    /// Events that are each the next of their thread at the end, and for which all that they need
    /// has happened; but locks, and what a read would see, may keep them from happening.
    pub enabled: Vec<EventId>,
    /// Reads that happen and need not see what they saw when observed.
    pub views: Vec<(EventId, View)>,
    /// Events after which their thread does nothing, and of which nobody sees what they wrote but
    /// reads that need not see what they saw.
    pub stop: Vec<EventId>,
    /// Whether reads that nothing is said of need only come after the write that they saw, whatever
    /// comes in between.
    pub relaxed: bool,
}

/// What a read sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Whatever is there.
    Any,
    /// This write, or the initial value.
    Of(Option<EventId>),
}

impl Query {
    /// Are all of `events` next at once? Asked of two conflicting accesses, it is whether they can
    /// race; of acquires inside sections that block each other, whether they can deadlock.
    #[must_use]
    pub fn enabled(events: &[EventId]) -> Self {
        Self { enabled: events.to_vec(), ..Self::default() }
    }

    /// Do the events of `chain` happen in this order?
    #[must_use]
    pub fn order(chain: &[EventId]) -> Self {
        let order = chain.windows(2).map(|pair| (pair[0], pair[1])).collect();
        Self { must: chain.to_vec(), order, ..Self::default() }
    }

    /// Does `read` see `write`, or the initial value if that is none? Its thread stops there.
    #[must_use]
    pub fn sees(read: EventId, write: Option<EventId>) -> Self {
        Self { views: vec![(read, View::Of(write))], stop: vec![read], ..Self::default() }
    }

    /// Do the events of `chain` happen in this order, whatever the last of them sees? Its thread
    /// stops there.
    #[must_use]
    pub fn order_up_to(chain: &[EventId], last_reads: bool) -> Self {
        let last = chain.last().copied();
        Self {
            views: last.filter(|_| last_reads).map(|last| (last, View::Any)).into_iter().collect(),
            stop: last.into_iter().collect(),
            ..Self::order(chain)
        }
    }

    /// What `read` must see, if the query says something of it.
    pub(crate) fn view(&self, read: EventId) -> Option<View> {
        self.views.iter().find(|(other, _)| *other == read).map(|&(_, view)| view)
    }
}
