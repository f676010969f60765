//! What the checker must know of a trace beforehand, straight from its events.
//!
//! Twelve bytes an event, and some more for each event on a condition or a barrier.

use std::collections::{BTreeSet, VecDeque};

use reweave_base::{CsrTable, FxHashMap, Id, IndexVec};

use crate::columns::Columns;
use crate::op::{
    AccessOp, BarrierId, BarrierOp, ConditionId, ConditionOp, EventId, LockOp, ObjectOp, Op,
    OpKind, SemaphoreId, SemaphoreOp, ThreadId, ThreadOp,
};
use crate::trace::Trace;

reweave_base::id! {
    /// A wait on a condition variable.
    pub(super) struct WaitId;
    /// A round of a barrier.
    pub(super) struct RoundId;
}

/// One wait on a condition variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitTable {
    /// What is waited on.
    pub(super) condition: ConditionId,
    /// The `wait` event.
    pub(super) wait: EventId,
    /// From which event on the thread counts as waiting: the release just before, or the wait.
    pub(super) begin: EventId,
    /// The wake or timeout; none if the trace ends first.
    pub(super) end: Option<EventId>,
    /// Whether `end` is a timeout.
    pub(super) times_out: bool,
    /// The notify that woke it.
    pub(super) notify: Option<EventId>,
}

/// An event of a thread: how many events the thread has before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) thread: ThreadId,
    pub(super) position: u32,
}

/// The events of the kinds that `is_wanted` picks, with their places.
pub(super) fn pick<'t>(
    trace: &'t Trace,
    tables: &'t Tables,
    is_wanted: impl Fn(OpKind) -> bool,
) -> impl Iterator<Item = (EventId, Place, Op)> {
    // Most events are not wanted, so nothing but the code is looked at first.
    let Columns { codes, threads, operands, .. } = trace.columns();
    let wanted = codes.iter().enumerate().filter(move |(_, code)| is_wanted(code.kind()));
    wanted.map(|(index, &code)| {
        let id = EventId::from_index(index);
        let thread = ThreadId::from_index(threads[index] as usize);
        let place = Place { thread, position: tables.position[id] };
        (id, place, Op::decode(code, operands[index]))
    })
}

#[derive(Debug)]
pub(super) struct Tables {
    /// The events of each thread, in program order.
    pub(super) threads: CsrTable<ThreadId, EventId>,
    /// How many events its thread has before each event.
    pub(super) position: IndexVec<EventId, u32>,
    /// The fork of each thread.
    pub(super) forks: IndexVec<ThreadId, Option<EventId>>,
    /// The one event that made each event possible: the write that a read saw (none for the
    /// initial value, and for a read of unknown writer), the notify of a wake, the post that a
    /// take used, the allocation that a free ends.
    pub(super) cause: IndexVec<EventId, Option<EventId>>,
    pub(super) waits: IndexVec<WaitId, WaitTable>,
    /// Which wait begins, or ends, at an event.
    wait_at: FxHashMap<EventId, WaitId>,
    /// Each notify with each wait that it woke, in observed order of the notifies.
    woken: Vec<(EventId, WaitId)>,
    /// The arrivals of each round of each barrier. Where the number of parties is not known, each
    /// arrival is a round of its own: that is right whatever the number is.
    pub(super) rounds: CsrTable<RoundId, EventId>,
    /// Whose round it is. The rounds of a barrier are in the order of their ids.
    pub(super) barrier_of: IndexVec<RoundId, BarrierId>,
    /// The round of an arrival.
    pub(super) round_of: FxHashMap<EventId, RoundId>,
    /// The round that an arrival or a departure must come after.
    pub(super) needed_round: FxHashMap<EventId, RoundId>,
}

impl Tables {
    pub(super) fn new(trace: &Trace) -> Self {
        let threads_count = trace.names().threads.len();
        let mut tables = Self {
            threads: CsrTable::group(threads_count, EventId::from_index(0), || {
                let threads = trace.columns().threads.iter().enumerate();
                threads.map(|(at, &row)| (Id::from_index(row as usize), EventId::from_index(at)))
            }),
            position: IndexVec::from_elem(0, trace.len()),
            forks: IndexVec::from_elem(None, threads_count),
            cause: IndexVec::from_elem(None, trace.len()),
            waits: IndexVec::new(),
            wait_at: FxHashMap::default(),
            woken: Vec::new(),
            rounds: CsrTable::group(0, EventId::from_index(0), std::iter::empty),
            barrier_of: IndexVec::new(),
            round_of: FxHashMap::default(),
            needed_round: FxHashMap::default(),
        };
        let mut done = IndexVec::from_elem(0, threads_count);
        let mut last_write = IndexVec::from_elem(None, trace.names().vars.len());
        let mut alloc = IndexVec::from_elem(None, trace.names().objects.len());
        for (id, event) in trace.events() {
            tables.position[id] = done[event.thread];
            done[event.thread] += 1;
            if let Some(var) = event.op.var() {
                if event.op.is_read() && !matches!(event.op, Op::Access(AccessOp::UnknownRead, _)) {
                    tables.cause[id] = last_write[var];
                }
                if event.op.is_write() {
                    last_write[var] = Some(id);
                }
            }
            match event.op {
                Op::Thread(ThreadOp::Fork, child) => tables.forks[child] = Some(id),
                Op::Object(ObjectOp::Alloc, object) => alloc[object] = Some(id),
                Op::Object(ObjectOp::Free, object) => tables.cause[id] = alloc[object],
                _ => {}
            }
        }
        tables.find_waits(trace);
        tables.pair_notifies(trace);
        tables.find_rounds(trace);
        tables.find_posts(trace);
        tables
    }

    /// The event at `place`.
    pub(super) fn event_at(&self, place: Place) -> EventId {
        self.threads.row(place.thread)[place.position as usize]
    }

    /// What `read` saw when it was observed.
    pub(super) fn seen(&self, trace: &Trace, read: EventId) -> Option<EventId> {
        self.cause[read].filter(|_| trace.event(read).op.is_read())
    }

    /// The wait that begins or ends at `event`, whose operation is `op`.
    pub(super) fn wait_at(&self, event: EventId, op: Op) -> Option<WaitId> {
        match op {
            Op::Lock(LockOp::Release | LockOp::ReleaseShared, _)
            | Op::Condition(ConditionOp::Wait | ConditionOp::Wake | ConditionOp::Timeout, _) => {
                self.wait_at.get(&event).copied()
            }
            _ => None,
        }
    }

    /// The waits that `notify` woke.
    pub(super) fn woken_by(&self, notify: EventId) -> impl Iterator<Item = WaitId> + Clone {
        let start = self.woken.partition_point(|&(by, _)| by < notify);
        self.woken[start..].iter().take_while(move |(by, _)| *by == notify).map(|&(_, wait)| wait)
    }

    /// The event of the same thread `offset` places from `event`.
    fn neighbour(&self, trace: &Trace, event: EventId, offset: isize) -> Option<EventId> {
        let own = self.threads.row(trace.event(event).thread);
        own.get((self.position[event] as usize).checked_add_signed(offset)?).copied()
    }

    fn find_waits(&mut self, trace: &Trace) {
        if trace.names().conditions.is_empty() {
            return;
        }
        for (wait, event) in trace.events() {
            let Op::Condition(ConditionOp::Wait, condition) = event.op else { continue };
            let before = self.neighbour(trace, wait, -1);
            let end = self.neighbour(trace, wait, 1);
            let after = (2..)
                .map_while(|offset| self.neighbour(trace, wait, offset))
                .map(|id| trace.event(id).op)
                .find(|op| !matches!(op, Op::Lock(LockOp::Request, _)));
            // The release is part of the wait if its lock is what is taken again.
            let release = before.filter(|&id| match trace.event(id).op {
                Op::Lock(LockOp::Release, lock) => {
                    after.is_none_or(|op| op == Op::Lock(LockOp::Acquire, lock))
                }
                Op::Lock(LockOp::ReleaseShared, lock) => {
                    after.is_none_or(|op| op == Op::Lock(LockOp::AcquireShared, lock))
                }
                _ => false,
            });
            let times_out = end.is_some_and(|id| {
                matches!(trace.event(id).op, Op::Condition(ConditionOp::Timeout, _))
            });
            let begin = release.unwrap_or(wait);
            let table = WaitTable { condition, wait, begin, end, times_out, notify: None };
            let at = self.waits.push(table);
            self.wait_at.insert(begin, at);
            self.wait_at.extend(end.map(|end| (end, at)));
        }
    }

    /// A notify wakes, of the threads that wait and will be seen to wake, the one that does so
    /// first; failing that, one that never ends; a notify-all wakes all of these.
    fn pair_notifies(&mut self, trace: &Trace) {
        if self.waits.is_empty() {
            return;
        }
        // Of each condition the waits that will not time out, by when they end; never is last.
        let mut waiting: IndexVec<ConditionId, BTreeSet<(u32, WaitId)>> =
            IndexVec::from_elem(BTreeSet::new(), trace.names().conditions.len());
        for (id, event) in trace.events() {
            if let Some(at) = self.wait_at(id, event.op) {
                let wait = self.waits[at];
                let key = (wait.end.map_or(u32::MAX, EventId::number), at);
                if wait.begin == id && !wait.times_out {
                    waiting[wait.condition].insert(key);
                } else {
                    waiting[wait.condition].remove(&key);
                }
            }
            let (condition, most) = match event.op {
                Op::Condition(ConditionOp::Notify, condition) => (condition, 1),
                Op::Condition(ConditionOp::NotifyAll, condition) => (condition, usize::MAX),
                _ => continue,
            };
            for _ in 0..most {
                let Some((_, at)) = waiting[condition].pop_first() else { break };
                self.waits[at].notify = Some(id);
                self.woken.push((id, at));
                if let Some(wake) = self.waits[at].end {
                    self.cause[wake] = Some(id);
                }
            }
        }
    }

    fn find_rounds(&mut self, trace: &Trace) {
        let barriers_count = trace.names().barriers.len();
        if barriers_count == 0 {
            return;
        }
        let mut arrivals: Vec<(RoundId, EventId)> = Vec::new();
        let mut sizes: IndexVec<RoundId, usize> = IndexVec::new();
        // The last round of each barrier, and the one before it.
        let mut latest: IndexVec<BarrierId, (Option<RoundId>, Option<RoundId>)> =
            IndexVec::from_elem((None, None), barriers_count);
        let mut arrived_in: FxHashMap<(ThreadId, BarrierId), RoundId> = FxHashMap::default();
        for (id, event) in trace.events() {
            if let Op::Barrier(BarrierOp::Arrive, barrier) = event.op {
                let parties = trace.declared().parties(barrier).unwrap_or(1) as usize;
                let (last, before) = latest[barrier];
                let (round, before) = match last.filter(|&round| sizes[round] != parties) {
                    Some(open) => (open, before),
                    None => {
                        self.barrier_of.push(barrier);
                        (sizes.push(0), last)
                    }
                };
                latest[barrier] = (Some(round), before);
                sizes[round] += 1;
                arrivals.push((round, id));
                self.round_of.insert(id, round);
                arrived_in.insert((event.thread, barrier), round);
                self.needed_round.extend(before.map(|before| (id, before)));
            }
            if let Op::Barrier(BarrierOp::Depart, barrier) = event.op {
                let needed = match trace.declared().parties(barrier) {
                    Some(_) => arrived_in.get(&(event.thread, barrier)).copied(),
                    None => latest[barrier].0,
                };
                self.needed_round.extend(needed.map(|round| (id, round)));
            }
        }
        let first = EventId::from_index(0);
        self.rounds = CsrTable::group(sizes.len(), first, || arrivals.iter().copied());
    }

    /// Posts are used oldest first, and before the tokens that were there at the start.
    fn find_posts(&mut self, trace: &Trace) {
        if trace.names().semaphores.is_empty() {
            return;
        }
        let mut unused: IndexVec<SemaphoreId, VecDeque<EventId>> =
            IndexVec::from_elem(VecDeque::new(), trace.names().semaphores.len());
        for (id, event) in trace.events() {
            match event.op {
                Op::Semaphore(SemaphoreOp::Post, semaphore) => unused[semaphore].push_back(id),
                Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                    self.cause[id] = unused[semaphore].pop_front()
                }
                _ => {}
            }
        }
    }
}
