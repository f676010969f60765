//! The sections on a lock that ended and that not every later one is ordered after yet.
//!
//! The exclusive sections of a lock take turns: each happens before the next. So what happens
//! before their releases only grows, and of each it suffices to keep what is new since the one
//! before. Those that one exclusive section was found to be ordered after are dropped: by rule (c)
//! all later ones have them too. Shared sections have no such order among themselves; they are
//! kept by thread, each with what is new since the last turn before it.

use std::collections::VecDeque;

use reweave_base::{Id, IndexVec};
use reweave_trace::ThreadId;

use crate::clock::VectorClock;

reweave_base::id! {
    /// An exclusive section on a lock, numbered in their order.
    pub(super) struct TurnId;
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
pub(super) struct Turns {
    kept: VecDeque<Turn>,
    dropped_count: usize,
    changes: VecDeque<Change>,
    changes_dropped_count: usize,
}

#[derive(Debug)]
struct Turn {
    span: Span,
    /// Where its changes end, counted from the first there ever were.
    changes_end: usize,
}

impl Turns {
    /// The first that was not dropped, or the one to come.
    pub(super) fn first(&self) -> TurnId {
        TurnId::from_index(self.dropped_count)
    }

    /// The one to come.
    pub(super) fn next(&self) -> TurnId {
        TurnId::from_index(self.dropped_count + self.kept.len())
    }

    /// Whose turn it was, unless it was dropped.
    #[inline]
    pub(super) fn thread(&self, turn: TurnId) -> Option<ThreadId> {
        let at = turn.index().checked_sub(self.dropped_count)?;
        self.kept.get(at).map(|turn| turn.span.thread)
    }

    /// The first whose release is not among the events of `clock`, that of a thread that holds
    /// the lock.
    pub(super) fn first_beyond(&self, clock: &VectorClock) -> TurnId {
        let count =
            self.kept.partition_point(|Turn { span, .. }| span.released <= clock.get(span.thread));
        TurnId::from_index(self.dropped_count + count)
    }

    /// Adds the section `span`: the lock's last turn happened with `last`, this one with `clock`.
    pub(super) fn push(&mut self, span: Span, last: &VectorClock, clock: &VectorClock) -> TurnId {
        let turn = self.next();
        each_news(last, clock, |change| self.changes.push_back(change));
        let changes_end = self.changes_dropped_count + self.changes.len();
        self.kept.push_back(Turn { span, changes_end });
        turn
    }

    /// Adds to `clock`, which has all before `from`, what happens before the release of `to`.
    /// Gives the first turn that it does not have then.
    pub(super) fn join(&self, from: TurnId, to: TurnId, clock: &mut VectorClock) -> TurnId {
        if to < from {
            return from;
        }
        let start = self.changes_start(from);
        let end = self.changes_start(TurnId::from_index(to.index() + 1));
        for &(thread, time) in self.changes.range(start..end) {
            clock.raise(thread, time);
        }
        TurnId::from_index(to.index() + 1)
    }

    /// Rule (b) at the release of a section that began at `acquired` of `thread`: adds to `clock`,
    /// which has all before `from`, the turns whose acquires it holds. Gives the first turn that
    /// it does not have then.
    pub(super) fn join_begun(
        &self,
        mut from: TurnId,
        (thread, acquired): (ThreadId, u32),
        clock: &mut VectorClock,
    ) -> TurnId {
        while let Some(Turn { span, .. }) = self.kept.get(from.index() - self.dropped_count)
            && span.is_begun_in(clock)
            && span.is_over(thread, acquired)
        {
            from = self.join(from, from, clock);
        }
        from
    }

    /// Drops all before `turn`.
    pub(super) fn drop_before(&mut self, turn: TurnId) {
        let changes_count = self.changes_start(turn);
        self.changes.drain(..changes_count);
        self.changes_dropped_count += changes_count;
        let count = turn.index() - self.dropped_count;
        self.kept.drain(..count);
        self.dropped_count += count;
    }

    /// Where the changes of `turn`, not dropped, start among those kept.
    fn changes_start(&self, turn: TurnId) -> usize {
        match (turn.index() - self.dropped_count).checked_sub(1) {
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
    kept: VecDeque<Visit>,
    dropped_count: usize,
}

#[derive(Debug)]
struct Visit {
    span: Span,
    /// The turn that its changes are counted from: the next to come when it began.
    after: TurnId,
    changes: Vec<Change>,
}

/// One of the shared sections on a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VisitId {
    pub(super) reader: ReaderId,
    number: usize,
}

/// What a thread learns of the sections on a lock that it holds alone.
pub(super) struct Learning<'a> {
    pub(super) turns: &'a Turns,
    /// The first turn that `clock` does not have.
    pub(super) next: TurnId,
    pub(super) clock: &'a mut VectorClock,
}

impl Readers {
    /// The thread of `reader`.
    pub(super) fn thread(&self, reader: ReaderId) -> ThreadId {
        self.readers[reader].thread
    }

    /// Adds the section `span` that began before the turn `after` and happened with `clock`; the
    /// lock's last turn before that, with `last`.
    pub(super) fn push(
        &mut self,
        span: Span,
        after: TurnId,
        last: &VectorClock,
        clock: &VectorClock,
    ) -> VisitId {
        let found = self.readers.entries().find(|(_, reader)| reader.thread == span.thread);
        let reader = found.map(|(id, _)| id).unwrap_or_else(|| {
            let (kept, dropped_count) = (VecDeque::new(), 0);
            self.readers.push(Reader { thread: span.thread, kept, dropped_count })
        });
        let own = &mut self.readers[reader];
        let mut changes = Vec::new();
        each_news(last, clock, |change| changes.push(change));
        own.kept.push_back(Visit { span, after, changes });
        VisitId { reader, number: own.dropped_count + own.kept.len() - 1 }
    }

    /// Adds what happens before the release of `visit`.
    pub(super) fn join(&self, visit: VisitId, learning: &mut Learning<'_>) {
        let reader = &self.readers[visit.reader];
        let kept =
            visit.number.checked_sub(reader.dropped_count).and_then(|at| reader.kept.get(at));
        if let Some(visit) = kept {
            visit.join(learning);
        }
    }

    /// Rule (b) at the release of an exclusive section that began at `acquired` of `thread`: adds
    /// the shared sections whose acquires the clock holds, and drops them. Whether there were any.
    pub(super) fn join_begun(
        &mut self,
        (thread, acquired): (ThreadId, u32),
        learning: &mut Learning<'_>,
    ) -> bool {
        let mut learned = false;
        for reader in self.readers.iter_mut() {
            while let Some(visit) = reader.kept.front()
                && visit.span.is_begun_in(learning.clock)
                && visit.span.is_over(thread, acquired)
            {
                visit.join(learning);
                reader.kept.pop_front();
                reader.dropped_count += 1;
                learned = true;
            }
        }
        learned
    }
}

impl Visit {
    fn join(&self, learning: &mut Learning<'_>) {
        if let Some(before) = self.after.index().checked_sub(1).map(TurnId::from_index) {
            learning.next = learning.turns.join(learning.next, before, learning.clock);
        }
        for &(thread, time) in &self.changes {
            learning.clock.raise(thread, time);
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
