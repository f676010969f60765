//! What comes out of mending: events in order, some of them put in later at an earlier place.

use reweave_base::{Id, IndexVec};

use crate::columns::{Columns, Values};
use crate::op::{EventId, OpCode, OpKind, ThreadId};

/// An event on its way out.
#[derive(Clone, Copy)]
pub(super) struct Outgoing {
    pub(super) thread: ThreadId,
    pub(super) code: OpCode,
    pub(super) operand: u32,
    pub(super) site: u32,
    pub(super) value: Option<i64>,
    /// The event that it was, or for whose sake it was put in.
    pub(super) cause: EventId,
    /// Whether it is that event.
    pub(super) is_kept: bool,
}

/// Events after mending.
pub(super) struct Mended {
    pub(super) columns: Columns,
    pub(super) values: Values,
    /// The event that each was, or for whose sake it was put in.
    pub(super) causes: IndexVec<EventId, EventId>,
    /// The event that each was; none if it was put in.
    pub(super) kept: IndexVec<EventId, Option<EventId>>,
}

/// The events so far.
#[derive(Default)]
pub(super) struct Output {
    events: Vec<Outgoing>,
    /// Events that come before the one at that place.
    earlier: Vec<(usize, Outgoing)>,
    /// The last event of each thread, and the one before it.
    last: IndexVec<ThreadId, [Option<usize>; 2]>,
}

impl Output {
    /// The id that the next event has as things stand.
    pub(super) fn next(&self) -> EventId {
        EventId::from_index(self.events.len())
    }

    /// The event that the one at `id` was, or for whose sake it was put in.
    pub(super) fn cause(&self, id: EventId) -> EventId {
        self.events[id.index()].cause
    }

    /// Adds `event` at the end.
    pub(super) fn push(&mut self, event: Outgoing) {
        let [last, _] = *self.last.get_or_default(event.thread);
        self.last[event.thread] = [Some(self.events.len()), last];
        self.events.push(event);
    }

    /// Whether the last event of `thread` ended a wait.
    pub(super) fn has_just_woken(&self, thread: ThreadId) -> bool {
        let last = self.last.get(thread).and_then(|&[last, _]| last);
        let kind = last.map(|last| self.events[last].code.kind());
        matches!(kind, Some(OpKind::Wake | OpKind::Timeout))
    }

    /// Puts `event` right after the last event of its thread, which has one. If that is a wait, it
    /// goes before the wait and the release that begins it: after it the thread does nothing until
    /// it wakes.
    pub(super) fn push_after_last(&mut self, event: Outgoing) {
        let [last, before] = *self.last.get_or_default(event.thread);
        let last = last.expect("whoever holds a lock took it");
        let kind = |at: usize| self.events[at].code.kind();
        let begins = |&at: &usize| matches!(kind(at), OpKind::Release | OpKind::ReleaseShared);
        let place = match kind(last) {
            OpKind::Wait => before.filter(begins).unwrap_or(last),
            _ => last + 1,
        };
        self.earlier.push((place, event));
    }

    /// All events in their order, and where each came from.
    pub(super) fn finish(mut self) -> Mended {
        self.earlier.sort_by_key(|&(place, _)| place);
        let mut earlier = self.earlier.into_iter().peekable();
        let (mut columns, mut values) = (Columns::default(), Values::default());
        let (mut causes, mut kept) = (IndexVec::new(), IndexVec::new());
        let mut emit = |event: Outgoing| {
            causes.push(event.cause);
            kept.push(event.is_kept.then_some(event.cause));
            let id = EventId::from_index(columns.len());
            let thread = event.thread.index() as u32;
            columns.push(thread, event.code, event.operand, event.site);
            if let Some(value) = event.value {
                values.set(id, value);
            }
        };
        for (place, event) in self.events.into_iter().enumerate() {
            while let Some((_, put_in)) = earlier.next_if(|&(before, _)| before <= place) {
                emit(put_in);
            }
            emit(event);
        }
        for (_, put_in) in earlier {
            emit(put_in);
        }
        Mended { columns, values, causes, kept }
    }
}
