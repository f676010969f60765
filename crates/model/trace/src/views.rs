//! Views: what follows from the events, computed once when first asked for, and then shared.
//!
//! | view | question |
//! | --- | --- |
//! | [`Trace::thread_events`], [`Trace::position`] | which events has a thread; the how many-th is this |
//! | [`Trace::accesses`] | who reads and writes a variable |
//! | [`Trace::writes`] | who writes a variable, thread by thread |
//! | [`Trace::writer`] | which write did a read see |
//! | [`Trace::sections`] | from which acquire to which release was a lock held |
//! | [`Trace::lifetime`] | where does a thread start and end |
//! | [`Trace::signals`] | which notify, arrivals or post let an event happen |
//! | [`Trace::synchronization`] | which atomic writes and fences does an event acquire |
//!
//! All are linear in the events, but for waits, which cost n log n in the events on conditions.

mod lifetimes;
mod reads_from;
mod sections;
mod signals;
mod synchronization;
mod writes;

use std::sync::OnceLock;

use reweave_base::{CsrTable, Id, IndexVec};

pub use lifetimes::Lifetime;
pub use sections::{CriticalSection, Mode, SectionId, Sections};
pub use signals::{Generation, GenerationId, Signals};
pub use synchronization::Synchronization;
pub use writes::{WriteList, Writes};

use crate::op::{EventId, ThreadId, VarId};
use crate::trace::Trace;

/// The views of a trace that were asked for so far.
#[derive(Debug, Default)]
pub(crate) struct Views {
    by_thread: OnceLock<ByThread>,
    by_var: OnceLock<CsrTable<VarId, EventId>>,
    writes: OnceLock<Writes>,
    writers: OnceLock<IndexVec<EventId, Option<EventId>>>,
    sections: OnceLock<Sections>,
    lifetimes: OnceLock<IndexVec<ThreadId, Lifetime>>,
    signals: OnceLock<Signals>,
    synchronization: OnceLock<Synchronization>,
}

#[derive(Debug)]
struct ByThread {
    events: CsrTable<ThreadId, EventId>,
    positions: IndexVec<EventId, u32>,
}

/// Stands in an allocation until its real entry is known.
const FILLER: EventId = match EventId::from_number(1) {
    Some(id) => id,
    None => unreachable!(),
};

impl Trace {
    fn by_thread(&self) -> &ByThread {
        self.views.by_thread.get_or_init(|| {
            let threads = &self.columns.threads;
            let entries = || {
                let owner = |&thread: &u32| ThreadId::from_index(thread as usize);
                threads.iter().map(owner).zip((0..threads.len()).map(EventId::from_index))
            };
            let events = CsrTable::group(self.names.threads.len(), FILLER, entries);
            let mut positions = IndexVec::from_elem(0, self.len());
            for (_, row) in events.rows() {
                for (position, &event) in row.iter().enumerate() {
                    positions[event] = position as u32;
                }
            }
            ByThread { events, positions }
        })
    }

    /// The events of `thread`, in program order.
    #[must_use]
    pub fn thread_events(&self, thread: ThreadId) -> &[EventId] {
        self.by_thread().events.row(thread)
    }

    /// The writes of each variable, thread by thread.
    #[must_use]
    pub fn writes(&self) -> &Writes {
        self.views.writes.get_or_init(|| Writes::new(self))
    }

    /// How many events its thread has before `event`.
    #[inline]
    #[must_use]
    pub fn position(&self, event: EventId) -> u32 {
        self.by_thread().positions[event]
    }

    /// The reads and writes of `var`, in observed order.
    #[must_use]
    pub fn accesses(&self, var: VarId) -> &[EventId] {
        let by_var = self.views.by_var.get_or_init(|| {
            CsrTable::group(self.names.vars.len(), FILLER, || {
                self.events().filter_map(|(id, event)| event.op.var().map(|var| (var, id)))
            })
        });
        by_var.row(var)
    }

    /// The write that `read` saw when it was observed: the last before it.
    ///
    /// None if it saw the initial value, if its writer is not known, or if it is no read.
    #[must_use]
    pub fn writer(&self, read: EventId) -> Option<EventId> {
        self.views.writers.get_or_init(|| reads_from::writers(self))[read]
    }

    /// The critical sections of every lock.
    #[must_use]
    pub fn sections(&self) -> &Sections {
        self.views.sections.get_or_init(|| Sections::new(self))
    }

    /// Where `thread` starts and ends.
    #[must_use]
    pub fn lifetime(&self, thread: ThreadId) -> Lifetime {
        self.views.lifetimes.get_or_init(|| lifetimes::lifetimes(self))[thread]
    }

    /// What let waiting events happen: notifies, arrivals, posts.
    #[must_use]
    pub fn signals(&self) -> &Signals {
        self.views.signals.get_or_init(|| Signals::new(self))
    }

    /// Which atomic writes and fences synchronize with which reads and fences.
    #[must_use]
    pub fn synchronization(&self) -> &Synchronization {
        self.views.synchronization.get_or_init(|| Synchronization::new(self))
    }
}
