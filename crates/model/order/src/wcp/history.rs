//! The sections on a lock that ended and that not every later one is ordered after yet.
//!
//! The exclusive sections of a lock come one after the other: each happens before the next. So what happens
//! before their releases only grows, and of each it suffices to keep what is new since the one
//! before. Those that one exclusive section was found to be ordered after are dropped: by rule (c)
//! all later ones have them too. Shared sections have no such order among themselves; they are
//! kept by thread, each with what is new since the last section before it.

use std::collections::VecDeque;

use reweave_base::{Id, IndexVec};
use reweave_trace::ThreadId;

use crate::clock::VectorClock;

reweave_base::id! {
    /// An exclusive section on a lock, numbered in their order.
    pub(super) struct ExclusiveId;
    /// A thread that ended shared sections on a lock.
    pub(super) struct ReaderId;
}

/// Parts of a clock: threads with how many of their events it holds.
type Change = (ThreadId, u32);

/// When a section began and ended, in the time of its thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) thread: ThreadId,
    pub(super) acquired: u32,
    pub(super) released: u32,
}

impl Span {
    /// Whether it can be the first of an ordered pair of sections whose second begins at
    /// `acquired` of `thread`. Only a thread's own sections overlap, where it holds a lock in both
    /// modes.
    fn is_over(&self, thread: ThreadId, acquired: u32) -> bool {
        self.thread != thread || self.released < acquired
    }

    /// Whether its acquire is among the events of `clock`.
    fn is_begun_in(&self, clock: &VectorClock) -> bool {
        self.acquired <= clock.get(self.thread)
    }
}

/// The exclusive sections.
#[derive(Debug, Default)]
pub(super) struct ExclusiveSections {
    kept: VecDeque<ExclusiveSection>,
    dropped_count: usize,
    changes: VecDeque<Change>,
    changes_dropped_count: usize,
}

#[derive(Debug)]
struct ExclusiveSection {
    span: Span,
    /// Where its changes end, counted from the first there ever were.
    changes_end: usize,
}

impl ExclusiveSections {
    /// The first that was not dropped, or the one to come.
    pub(super) fn first(&self) -> ExclusiveId {
        ExclusiveId::from_index(self.dropped_count)
    }

    /// The section to come.
    pub(super) fn next(&self) -> ExclusiveId {
        ExclusiveId::from_index(self.dropped_count + self.kept.len())
    }

    /// Whose section it was, unless it was dropped.
    #[inline]
    pub(super) fn thread(&self, section: ExclusiveId) -> Option<ThreadId> {
        let at = section.index().checked_sub(self.dropped_count)?;
        self.kept.get(at).map(|section| section.span.thread)
    }

    /// The first whose release is not among the events of `clock`, that of a thread that holds
    /// the lock.
    pub(super) fn first_beyond(&self, clock: &VectorClock) -> ExclusiveId {
        let count = self.kept.partition_point(|ExclusiveSection { span, .. }| {
            span.released <= clock.get(span.thread)
        });
        ExclusiveId::from_index(self.dropped_count + count)
    }

    /// Adds the section `span`: the lock's last section happened with `last`, this one with `clock`.
    pub(super) fn push(
        &mut self,
        span: Span,
        last: &VectorClock,
        clock: &VectorClock,
    ) -> ExclusiveId {
        let section = self.next();
        each_news(last, clock, |change| self.changes.push_back(change));
        let changes_end = self.changes_dropped_count + self.changes.len();
        self.kept.push_back(ExclusiveSection { span, changes_end });
        section
    }

    /// Adds to `clock`, which has all before `from`, what happens before the release of `to`.
    /// Gives the first section that it does not have then.
    pub(super) fn join(
        &self,
        from: ExclusiveId,
        to: ExclusiveId,
        clock: &mut VectorClock,
    ) -> ExclusiveId {
        if to < from {
            return from;
        }
        let start = self.changes_start(from);
        let end = self.changes_start(ExclusiveId::from_index(to.index() + 1));
        for &(thread, time) in self.changes.range(start..end) {
            clock.raise(thread, time);
        }
        ExclusiveId::from_index(to.index() + 1)
    }

    /// Rule (b) at the release of a section that began at `acquired` of `thread`: adds to `clock`,
    /// which has all before `from`, the sections whose acquires it holds. Gives the first section that
    /// it does not have then.
    pub(super) fn join_begun(
        &self,
        mut from: ExclusiveId,
        (thread, acquired): (ThreadId, u32),
        clock: &mut VectorClock,
    ) -> ExclusiveId {
        while let Some(ExclusiveSection { span, .. }) =
            self.kept.get(from.index() - self.dropped_count)
            && span.is_begun_in(clock)
            && span.is_over(thread, acquired)
        {
            from = self.join(from, from, clock);
        }
        from
    }

    /// Drops all before `section`.
    pub(super) fn drop_before(&mut self, section: ExclusiveId) {
        let changes_count = self.changes_start(section);
        self.changes.drain(..changes_count);
        self.changes_dropped_count += changes_count;
        let count = section.index() - self.dropped_count;
        self.kept.drain(..count);
        self.dropped_count += count;
    }

    /// Where the changes of `section`, not dropped, start among those kept.
    fn changes_start(&self, section: ExclusiveId) -> usize {
        match (section.index() - self.dropped_count).checked_sub(1) {
            Some(before) => self.kept[before].changes_end - self.changes_dropped_count,
            None => 0,
        }
    }
}

/// The shared sections.
#[derive(Debug, Default)]
pub(super) struct Readers {
    readers: IndexVec<ReaderId, Reader>,
}

/// Those of one thread.
#[derive(Debug)]
struct Reader {
    thread: ThreadId,
    kept: VecDeque<SharedSection>,
    dropped_count: usize,
}

#[derive(Debug)]
struct SharedSection {
    span: Span,
    /// The section that its changes are counted from: the next to come when it began.
    after: ExclusiveId,
    changes: Vec<Change>,
}

/// One of the shared sections on a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SharedId {
    pub(super) reader: ReaderId,
    number: usize,
}

/// What a thread learns of the sections on a lock that it holds alone.
pub(super) struct ClockUpdate<'a> {
    pub(super) exclusive: &'a ExclusiveSections,
    /// The first section that `clock` does not have.
    pub(super) next: ExclusiveId,
    pub(super) clock: &'a mut VectorClock,
}

impl Readers {
    /// The thread of `reader`.
    pub(super) fn thread(&self, reader: ReaderId) -> ThreadId {
        self.readers[reader].thread
    }

    /// Adds the section `span` that began before the section `after` and happened with `clock`; the
    /// lock's last section before that, with `last`.
    pub(super) fn push(
        &mut self,
        span: Span,
        after: ExclusiveId,
        last: &VectorClock,
        clock: &VectorClock,
    ) -> SharedId {
        let found = self.readers.entries().find(|(_, reader)| reader.thread == span.thread);
        let reader = found.map(|(id, _)| id).unwrap_or_else(|| {
            let (kept, dropped_count) = (VecDeque::new(), 0);
            self.readers.push(Reader { thread: span.thread, kept, dropped_count })
        });
        let own = &mut self.readers[reader];
        let mut changes = Vec::new();
        each_news(last, clock, |change| changes.push(change));
        own.kept.push_back(SharedSection { span, after, changes });
        SharedId { reader, number: own.dropped_count + own.kept.len() - 1 }
    }

    /// Adds what happens before the release of `visit`.
    pub(super) fn join(&self, visit: SharedId, update: &mut ClockUpdate<'_>) {
        let reader = &self.readers[visit.reader];
        let kept =
            visit.number.checked_sub(reader.dropped_count).and_then(|at| reader.kept.get(at));
        if let Some(visit) = kept {
            visit.join(update);
        }
    }

    /// Rule (b) at the release of an exclusive section that began at `acquired` of `thread`: adds
    /// the shared sections whose acquires the clock holds, and drops them. Whether there were any.
    pub(super) fn join_begun(
        &mut self,
        (thread, acquired): (ThreadId, u32),
        update: &mut ClockUpdate<'_>,
    ) -> bool {
        let mut learned = false;
        for reader in self.readers.iter_mut() {
            while let Some(visit) = reader.kept.front()
                && visit.span.is_begun_in(update.clock)
                && visit.span.is_over(thread, acquired)
            {
                visit.join(update);
                reader.kept.pop_front();
                reader.dropped_count += 1;
                learned = true;
            }
        }
        learned
    }
}

impl SharedSection {
    fn join(&self, update: &mut ClockUpdate<'_>) {
        if let Some(before) = self.after.index().checked_sub(1).map(ExclusiveId::from_index) {
            update.next = update.exclusive.join(update.next, before, update.clock);
        }
        for &(thread, time) in &self.changes {
            update.clock.raise(thread, time);
        }
    }
}

/// Hands on what `clock` holds and `last` does not.
fn each_news(last: &VectorClock, clock: &VectorClock, mut take: impl FnMut(Change)) {
    // Not an iterator: the loop within is several times as fast as one asked for item by item.
    clock.entries().for_each(|(thread, time)| {
        if time > last.get(thread) {
            take((thread, time));
        }
    });
}
