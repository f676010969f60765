//! Can a cut be run in observed order, and in what state does that leave the program?
//!
//! A *cut* is so many of the first events of each thread. Running them one by one would answer
//! both questions, and costs as much as the trace is long; here neither costs more than a few
//! searches, since almost all of what the rules ask for was so when observed, and can be otherwise
//! only where the cut leaves something out. With the cut run in observed order:
//!
//! - Rule 1 holds: it is a prefix of each thread.
//! - Rules 2 and 4, and those of rules 5 and 6 that ask for an event to come first, hold if what
//!   the events of the cut need at first hand is in the cut ([`needs`]): it came before them when
//!   observed, so it does now. No write that was not there comes between a write and its read, and
//!   a wait does not end, nor is it woken, before the notify that woke it.
//! - Rule 3: an acquire is refused if another thread holds the lock, which had given it back when
//!   observed. So the release is not in the cut, all of that thread's cut came earlier, and it
//!   holds the lock at its end, since before the acquire. None such is allowed ([`holds`]).
//! - Rule 5: a notify that woke nobody, or a notify-all, is refused if a wait is there that was
//!   over, or that had been woken, when observed. Then the end of that wait and the notify that
//!   woke it are not in the cut, and it waits at the end of its thread's cut. None such is allowed.
//! - Rule 6: a semaphore of known start stays above zero if all takes find the posts that they
//!   used when observed, for at most as many took what was there at the start.
//!
//! So a cut that passes is correct. One that does not may still be, since a take may use another
//! post, and a read may be free to see another write: that is left to the full run, which also
//! says what is wrong.
//!
//! The state is a matter of which events are in the cut, and for the last write of a variable of
//! which came last; it is looked up when asked for.
//!
//! Linear in the trace for the tables. A cut costs a search for each two threads that ever met, a
//! few steps for each thread, and for each lock held a search for each thread that took it.

mod holds;
mod needs;
#[cfg(test)]
mod tests;

use reweave_base::{CsrTable, Id, IndexVec};

use super::tables::{Place, Tables, WaitId, pick};
use crate::op::{
    ConditionId, ConditionOp, EventId, LockId, LockOp, Op, OpKind, SemaphoreId, ThreadId, VarId,
};
use crate::trace::Trace;
pub(super) use holds::Hold;
use holds::Holds;
use needs::MustHappenBefore;

/// Some of the events on each thing, by thread and then in program order.
#[derive(Debug)]
struct Uses<I>(CsrTable<I, Place>);

impl<I: Id> Uses<I> {
    /// Those of the events of some kinds of which `thing_of` says what they use.
    fn new(
        (trace, tables): (&Trace, &Tables),
        things_count: usize,
        is_wanted: impl Fn(OpKind) -> bool,
        thing_of: impl Fn(EventId, Op) -> Option<I>,
    ) -> Self {
        let filler = Place { thread: ThreadId::from_index(0), position: 0 };
        if things_count == 0 {
            return Self(CsrTable::group(0, filler, std::iter::empty));
        }
        let threads_count = trace.names().threads.len();
        let by_thread = CsrTable::group(threads_count, (I::from_index(0), 0), || {
            let picked = pick(trace, tables, &is_wanted);
            picked.filter_map(|(id, place, op)| {
                Some((place.thread, (thing_of(id, op)?, place.position)))
            })
        });
        Self(CsrTable::group(things_count, filler, || {
            by_thread.rows().flat_map(|(thread, row)| {
                row.iter().map(move |&(thing, position)| (thing, Place { thread, position }))
            })
        }))
    }
}

/// What must be known of a trace to judge any cut of it.
#[derive(Debug)]
pub(super) struct CutTables {
    needs: MustHappenBefore,
    holds: Holds,
    writes: Uses<VarId>,
    acquires_alone: Uses<LockId>,
    acquires_shared: Uses<LockId>,
    posts: Uses<SemaphoreId>,
    takes: Uses<SemaphoreId>,
    /// The notifies that leave nobody waiting but who will time out.
    sweeps: Uses<ConditionId>,
    /// The positions of the loose reads of each thread.
    unknown_reads: CsrTable<ThreadId, u32>,
}

impl CutTables {
    pub(super) fn new(trace: &Trace, tables: &Tables) -> Self {
        use OpKind::{AtomicUpdate, AtomicWrite, Notify, NotifyAll, Write};
        let names = trace.names();
        let both = (trace, tables);
        let locks = |wanted| {
            Uses::new(
                both,
                names.locks.len(),
                move |kind| kind == wanted,
                |_, op| match op {
                    Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) => Some(lock),
                    _ => None,
                },
            )
        };
        let semaphores = |wanted| {
            Uses::new(
                both,
                names.semaphores.len(),
                move |kind| kind == wanted,
                |_, op| match op {
                    Op::Semaphore(_, semaphore) => Some(semaphore),
                    _ => None,
                },
            )
        };
        let is_write = |kind| matches!(kind, Write | AtomicWrite | AtomicUpdate);
        let is_notify = |kind| matches!(kind, Notify | NotifyAll);
        Self {
            needs: MustHappenBefore::new(trace, tables),
            holds: Holds::new(trace, tables),
            writes: Uses::new(both, names.vars.len(), is_write, |_, op| op.var()),
            acquires_alone: locks(OpKind::Acquire),
            acquires_shared: locks(OpKind::AcquireShared),
            posts: semaphores(OpKind::Post),
            takes: semaphores(OpKind::Take),
            sweeps: Uses::new(both, names.conditions.len(), is_notify, |id, op| match op {
                Op::Condition(ConditionOp::NotifyAll, condition) => Some(condition),
                Op::Condition(ConditionOp::Notify, condition)
                    if tables.woken_by(id).next().is_none() =>
                {
                    Some(condition)
                }
                _ => None,
            }),
            unknown_reads: CsrTable::group(names.threads.len(), 0, || {
                let picked = pick(trace, tables, |kind| kind == OpKind::UnknownRead);
                picked.map(|(_, place, _)| (place.thread, place.position))
            }),
        }
    }
}

/// A cut that was run in observed order.
#[derive(Debug)]
pub(super) struct Base<'a> {
    trace: &'a Trace,
    tables: &'a Tables,
    cuts: &'a CutTables,
    /// How many events of each thread are in it.
    counts: IndexVec<ThreadId, u32>,
    events_count: usize,
    /// What each thread holds after it.
    holds: Vec<Hold>,
    /// The waits that have begun in it, have not ended, and that no notify in it woke.
    waiting: Vec<WaitId>,
}

impl<'a> Base<'a> {
    /// The cut of nothing.
    pub(super) fn empty(trace: &'a Trace, tables: &'a Tables, cuts: &'a CutTables) -> Self {
        let counts = IndexVec::from_elem(0, trace.names().threads.len());
        let (holds, waiting) = (Vec::new(), Vec::new());
        Self { trace, tables, cuts, counts, events_count: 0, holds, waiting }
    }

    /// The cut of the first `counts` events of each thread, if it passes.
    ///
    /// `counts` has an entry for each thread of the trace, which has so many events.
    pub(super) fn new(
        (trace, tables, cuts): (&'a Trace, &'a Tables, &'a CutTables),
        counts: IndexVec<ThreadId, u32>,
    ) -> Option<Self> {
        let events_count = counts.iter().map(|&count| count as usize).sum();
        if events_count > 0 && !cuts.needs.are_met(&counts) {
            return None;
        }
        let (holds, waiting) = (Vec::new(), Vec::new());
        let mut base = Self { trace, tables, cuts, counts, events_count, holds, waiting };
        for (thread, &count) in base.counts.entries().filter(|&(_, &count)| count > 0) {
            base.holds.extend(cuts.holds.after(thread, count));
            base.waiting.extend(base.wait_of(thread));
        }
        let excludes_none = base.holds.iter().all(|&hold| !base.excludes(hold));
        let wakes_none = base.waiting.iter().all(|&wait| !base.would_wake(wait));
        (excludes_none && wakes_none).then_some(base)
    }

    /// How many events of `thread` are in it.
    pub(super) fn count(&self, thread: ThreadId) -> u32 {
        self.counts[thread]
    }

    /// Whether `event` is in it.
    pub(super) fn contains(&self, event: EventId) -> bool {
        self.tables.position[event] < self.counts[self.trace.event(event).thread]
    }

    /// How many events are in it.
    pub(super) const fn events_count(&self) -> usize {
        self.events_count
    }

    /// How many of them are reads whose writer was never known.
    pub(super) fn unknown_reads_count(&self) -> usize {
        let unknown_reads = self.cuts.unknown_reads.rows();
        let count_of = |(thread, row): (ThreadId, &[u32])| {
            row.partition_point(|&position| position < self.counts[thread])
        };
        unknown_reads.map(count_of).sum()
    }

    /// What each thread holds after it.
    pub(super) fn holds(&self) -> &[Hold] {
        &self.holds
    }

    /// The waits that nothing in it ended.
    pub(super) fn waiting(&self) -> &[WaitId] {
        &self.waiting
    }

    /// The last write of `var` in it.
    pub(super) fn last_write(&self, var: VarId) -> Option<EventId> {
        self.uses(&self.cuts.writes, var).map(|row| self.last_of(row)).max()
    }

    /// What `semaphore` stands at after it; where its start is not known, above the start.
    pub(super) fn tokens(&self, semaphore: SemaphoreId) -> i64 {
        let count = |uses| -> i64 { self.uses(uses, semaphore).map(|row| row.len() as i64).sum() };
        let start = self.trace.declared().start(semaphore).map_or(0, i64::from);
        start + count(&self.cuts.posts) - count(&self.cuts.takes)
    }

    /// For each thread that uses `thing` in it, those of its uses that are in it.
    fn uses<I: Id>(&self, uses: &'a Uses<I>, thing: I) -> impl Iterator<Item = &'a [Place]> {
        // An explicit schedule asks too, for each event; nothing of it is in an empty cut.
        let mut rest = if self.events_count == 0 { &[][..] } else { uses.0.row(thing) };
        let runs = std::iter::from_fn(move || {
            let thread = rest.first()?.thread;
            let (own, others) = rest.split_at(rest.partition_point(|place| place.thread <= thread));
            rest = others;
            let count = self.counts[thread];
            Some(&own[..own.partition_point(|place| place.position < count)])
        });
        runs.filter(|run| !run.is_empty())
    }

    /// The last of some uses of one thread.
    fn last_of(&self, uses: &[Place]) -> EventId {
        self.tables.event_at(uses[uses.len() - 1])
    }

    /// Whether another thread acquires the lock of `hold` after its thread did.
    fn excludes(&self, hold: Hold) -> bool {
        let since = self.tables.event_at(hold.since);
        let is_taken = |acquires| {
            let mut uses = self.uses(acquires, hold.lock);
            uses.any(|row| row[0].thread != hold.since.thread && self.last_of(row) > since)
        };
        is_taken(&self.cuts.acquires_alone)
            || !hold.is_shared && is_taken(&self.cuts.acquires_shared)
    }

    /// The wait that `thread` is left in, if it is.
    fn wait_of(&self, thread: ThreadId) -> Option<WaitId> {
        let own = self.tables.threads.row(thread);
        let done = self.counts[thread] as usize;
        // It begins with the last event, or with the one before if that is the release.
        let last_two = own[done.saturating_sub(2)..done].iter();
        let mut begun = last_two.filter_map(|&event| {
            let at = self.tables.wait_at(event, self.trace.event(event).op)?;
            (self.tables.waits[at].begin == event).then_some(at)
        });
        begun.find(|&at| {
            let wait = self.tables.waits[at];
            let over = |event: Option<EventId>| event.is_some_and(|event| self.contains(event));
            !over(wait.end) && !over(wait.notify)
        })
    }

    /// Whether a notify in it would wake `wait`, which nothing in it ended, and did not.
    fn would_wake(&self, wait: WaitId) -> bool {
        let wait = self.tables.waits[wait];
        // A wait that timed out was spared by what was observed before its end.
        let from = wait.end.filter(|_| wait.times_out).unwrap_or(wait.begin);
        self.uses(&self.cuts.sweeps, wait.condition).any(|row| self.last_of(row) > from)
    }
}
