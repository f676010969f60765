//! What the checker must know of a trace beforehand, straight from its events.

use std::collections::{BTreeSet, VecDeque};

use reweave_base::{FxHashMap, IndexVec};

use crate::op::{BarrierId, ConditionId, EventId, Op, SemaphoreId, ThreadId};
use crate::trace::Trace;

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

#[derive(Debug)]
pub(super) struct Tables {
    /// The events of each thread, in program order.
    pub(super) threads: IndexVec<ThreadId, Vec<EventId>>,
    /// How many events its thread has before each event.
    pub(super) position: IndexVec<EventId, u32>,
    /// The fork of each thread.
    pub(super) forks: IndexVec<ThreadId, Option<EventId>>,
    /// What each read saw; none for the initial value, and for a read of unknown writer.
    pub(super) seen: IndexVec<EventId, Option<EventId>>,
    pub(super) waits: Vec<WaitTable>,
    /// Which wait begins, or ends, at an event.
    pub(super) wait_at: FxHashMap<EventId, usize>,
    /// The waits that each notify woke; nobody if it is not there.
    pub(super) woke: FxHashMap<EventId, Vec<usize>>,
    /// The arrivals of each round of each barrier. Where the number of parties is not known, each
    /// arrival is a round of its own: that is right whatever the number is.
    pub(super) rounds: Vec<Vec<EventId>>,
    /// The round of an arrival.
    pub(super) round_of: FxHashMap<EventId, usize>,
    /// The round that an arrival or a departure must come after.
    pub(super) needed_round: FxHashMap<EventId, usize>,
    /// The post that a take used.
    pub(super) posts: FxHashMap<EventId, EventId>,
    /// The allocation that a free ends.
    pub(super) allocs: FxHashMap<EventId, EventId>,
}

impl Tables {
    pub(super) fn of(trace: &Trace) -> Self {
        let threads_count = trace.names().threads.len();
        let mut tables = Self {
            threads: IndexVec::from_elem(Vec::new(), threads_count),
            position: IndexVec::from_elem(0, trace.len()),
            forks: IndexVec::from_elem(None, threads_count),
            seen: IndexVec::from_elem(None, trace.len()),
            waits: Vec::new(),
            wait_at: FxHashMap::default(),
            woke: FxHashMap::default(),
            rounds: Vec::new(),
            round_of: FxHashMap::default(),
            needed_round: FxHashMap::default(),
            posts: FxHashMap::default(),
            allocs: FxHashMap::default(),
        };
        let mut last_write = IndexVec::from_elem(None, trace.names().vars.len());
        let mut alloc = IndexVec::from_elem(None, trace.names().objects.len());
        for (id, event) in trace.events() {
            tables.position[id] = tables.threads[event.thread].len() as u32;
            tables.threads[event.thread].push(id);
            if let Some(var) = event.op.var() {
                if event.op.is_read() && !matches!(event.op, Op::LooseRead(_)) {
                    tables.seen[id] = last_write[var];
                }
                if event.op.is_write() {
                    last_write[var] = Some(id);
                }
            }
            match event.op {
                Op::Fork(child) => tables.forks[child] = Some(id),
                Op::Alloc(object) => alloc[object] = Some(id),
                Op::Free(object) => {
                    tables.allocs.extend(alloc[object].map(|alloc| (id, alloc)));
                }
                _ => {}
            }
        }
        tables.find_waits(trace);
        tables.pair_notifies(trace);
        tables.find_rounds(trace);
        tables.find_posts(trace);
        tables
    }

    /// The event of the same thread `offset` places from `event`.
    fn neighbour(&self, trace: &Trace, event: EventId, offset: isize) -> Option<EventId> {
        let own = &self.threads[trace.event(event).thread];
        own.get((self.position[event] as usize).checked_add_signed(offset)?).copied()
    }

    fn find_waits(&mut self, trace: &Trace) {
        for (wait, event) in trace.events() {
            let Op::Wait(condition) = event.op else { continue };
            let before = self.neighbour(trace, wait, -1);
            let end = self.neighbour(trace, wait, 1);
            let after = (2..)
                .map_while(|offset| self.neighbour(trace, wait, offset))
                .map(|id| trace.event(id).op)
                .find(|op| !matches!(op, Op::Request(_)));
            // The release is part of the wait if its lock is what is taken again.
            let release = before.filter(|&id| match trace.event(id).op {
                Op::Release(lock) => after.is_none_or(|op| op == Op::Acquire(lock)),
                Op::ReleaseShared(lock) => after.is_none_or(|op| op == Op::AcquireShared(lock)),
                _ => false,
            });
            let times_out = end.is_some_and(|id| matches!(trace.event(id).op, Op::Timeout(_)));
            let begin = release.unwrap_or(wait);
            for at in [Some(begin), end].into_iter().flatten() {
                self.wait_at.insert(at, self.waits.len());
            }
            self.waits.push(WaitTable { condition, wait, begin, end, times_out, notify: None });
        }
    }

    /// A notify wakes, of the threads that wait and will be seen to wake, the one that does so
    /// first; failing that, one that never ends; a notify-all wakes all of these.
    fn pair_notifies(&mut self, trace: &Trace) {
        if self.waits.is_empty() {
            return;
        }
        // Of each condition the waits that will not time out, by when they end; never is last.
        let mut waiting: IndexVec<ConditionId, BTreeSet<(u32, usize)>> =
            IndexVec::from_elem(BTreeSet::new(), trace.names().conditions.len());
        for (id, event) in trace.events() {
            if let Some(&at) = self.wait_at.get(&id) {
                let wait = self.waits[at];
                let key = (wait.end.map_or(u32::MAX, EventId::number), at);
                if wait.begin == id && !wait.times_out {
                    waiting[wait.condition].insert(key);
                } else {
                    waiting[wait.condition].remove(&key);
                }
            }
            let (condition, most) = match event.op {
                Op::Notify(condition) => (condition, 1),
                Op::NotifyAll(condition) => (condition, usize::MAX),
                _ => continue,
            };
            let mut woke = Vec::new();
            while woke.len() < most
                && let Some((_, at)) = waiting[condition].pop_first()
            {
                self.waits[at].notify = Some(id);
                woke.push(at);
            }
            self.woke.insert(id, woke);
        }
    }

    fn find_rounds(&mut self, trace: &Trace) {
        let barriers_count = trace.names().barriers.len();
        let mut of_barrier: IndexVec<BarrierId, Vec<usize>> =
            IndexVec::from_elem(Vec::new(), barriers_count);
        let mut arrived_in: FxHashMap<(ThreadId, BarrierId), usize> = FxHashMap::default();
        for (id, event) in trace.events() {
            if let Op::Arrive(barrier) = event.op {
                let parties = trace.declared().parties(barrier).unwrap_or(1) as usize;
                let own = &mut of_barrier[barrier];
                if own.last().is_none_or(|&round| self.rounds[round].len() == parties) {
                    own.push(self.rounds.len());
                    self.rounds.push(Vec::new());
                }
                let round = own[own.len() - 1];
                self.rounds[round].push(id);
                self.round_of.insert(id, round);
                arrived_in.insert((event.thread, barrier), round);
                if own.len() > 1 {
                    self.needed_round.insert(id, own[own.len() - 2]);
                }
            }
            if let Op::Depart(barrier) = event.op {
                let needed = match trace.declared().parties(barrier) {
                    Some(_) => arrived_in.get(&(event.thread, barrier)).copied(),
                    None => of_barrier[barrier].last().copied(),
                };
                self.needed_round.extend(needed.map(|round| (id, round)));
            }
        }
    }

    /// Posts are used oldest first, and before the tokens that were there at the start.
    fn find_posts(&mut self, trace: &Trace) {
        let mut unused: IndexVec<SemaphoreId, VecDeque<EventId>> =
            IndexVec::from_elem(VecDeque::new(), trace.names().semaphores.len());
        for (id, event) in trace.events() {
            match event.op {
                Op::Post(semaphore) => unused[semaphore].push_back(id),
                Op::Take(semaphore) => {
                    self.posts.extend(unused[semaphore].pop_front().map(|post| (id, post)));
                }
                _ => {}
            }
        }
    }
}
