//! The observed run, and what follows from its order: who saw, woke, used or waited for what.

use std::collections::{BTreeSet, VecDeque};

use reweave_base::{CsrTable, FxHashMap, Id, IndexVec};
use reweave_op::{
    BarrierId, BarrierOp, ConditionId, ConditionOp, EventId, LockOp, NameKind, ObjectOp, Op,
    OpCode, SemaphoreOp, ThreadId, ThreadOp,
};

reweave_base::id! {
    /// A wait on a condition variable.
    pub(crate) struct WaitId;
}

/// A run as it was observed, by column: who did what to which thing, event by event.
///
/// It must be well formed: these operations could have happened in this order.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObservedRun<'a> {
    /// Which thread, counted from 0.
    pub threads: &'a [u32],
    /// Which operation.
    pub codes: &'a [OpCode],
    /// On what: the index of a thread, variable, lock and so on, as the operation asks for; or 0.
    pub operands: &'a [u32],
    /// What each semaphore started at, where that is known.
    pub starts: &'a [Option<u32>],
    /// How many arrivals end a generation of each barrier, where that is known.
    pub parties: &'a [Option<u32>],
    /// Whether a thread that had to wait for a lock requested it first.
    pub waits_are_requested: bool,
}

/// One wait on a condition variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) condition: ConditionId,
    pub(crate) wait: EventId,
    /// From which event on the thread counts as waiting: the release just before, or the wait.
    pub(crate) begin: EventId,
    /// The wake or timeout; none if the trace ends first.
    pub(crate) end: Option<EventId>,
    pub(crate) times_out: bool,
    /// The notify that woke it.
    pub(crate) notify: Option<EventId>,
}

#[derive(Debug)]
pub(crate) struct Observed<'a> {
    pub(crate) run: ObservedRun<'a>,
    counts: [usize; NameKind::ALL.len() + 1],
    /// The events of each thread, in program order.
    pub(crate) by_thread: CsrTable<ThreadId, EventId>,
    /// How many events its thread has before each event.
    pub(crate) position: IndexVec<EventId, u32>,
    pub(crate) forks: IndexVec<ThreadId, Option<EventId>>,
    /// What each event came after: an access the last write of its variable, if there was one; a
    /// wake its notify, a take the post that it used, a free the allocation.
    pub(crate) cause: IndexVec<EventId, Option<EventId>>,
    pub(crate) waits: IndexVec<WaitId, Wait>,
    /// Which wait begins, or ends, at an event.
    pub(crate) wait_at: FxHashMap<EventId, WaitId>,
    /// The waits that each notify woke.
    woken: FxHashMap<EventId, Vec<WaitId>>,
    /// The arrivals of each generation of each barrier. Where the number of parties is not known,
    /// each arrival is a generation of its own: that is right whatever the number is.
    arrivals: IndexVec<BarrierId, Vec<Vec<EventId>>>,
    /// The generation that an arrival or a departure must come after.
    generation: FxHashMap<EventId, (BarrierId, usize)>,
}

impl<'a> Observed<'a> {
    pub(crate) fn new(run: ObservedRun<'a>) -> Self {
        let lengths = [run.threads.len(), run.operands.len()];
        assert_eq!(lengths, [run.codes.len(); 2], "an event has an entry in every column");
        let mut counts = [0; NameKind::ALL.len() + 1];
        for (at, code) in run.codes.iter().enumerate() {
            let named = (code.kind().operand(), run.operands[at]);
            for (kind, index) in [named, (NameKind::Thread, run.threads[at])] {
                counts[kind as usize] = counts[kind as usize].max(index as usize + 1);
            }
        }
        let count = |kind: NameKind| counts[kind as usize];
        let by_thread = CsrTable::group(count(NameKind::Thread), EventId::from_index(0), || {
            let threads = run.threads.iter().map(|&thread| ThreadId::from_index(thread as usize));
            threads.zip((0..).map(EventId::from_index))
        });
        let mut position = IndexVec::from_elem(0, run.codes.len());
        for (_, row) in by_thread.rows() {
            row.iter().zip(0..).for_each(|(&event, at)| position[event] = at);
        }
        let mut observed = Self {
            run,
            counts,
            by_thread,
            position,
            forks: IndexVec::from_elem(None, count(NameKind::Thread)),
            cause: IndexVec::from_elem(None, run.codes.len()),
            waits: IndexVec::new(),
            wait_at: FxHashMap::default(),
            woken: FxHashMap::default(),
            arrivals: IndexVec::from_elem(Vec::new(), count(NameKind::Barrier)),
            generation: FxHashMap::default(),
        };
        observed.find_causes();
        observed.pair_notifies();
        observed
    }

    /// How many things of `kind` the events speak of at most.
    pub(crate) fn count(&self, kind: NameKind) -> usize {
        self.counts[kind as usize]
    }

    #[inline]
    pub(crate) fn op(&self, event: EventId) -> Op {
        Op::decode(self.run.codes[event.index()], self.run.operands[event.index()])
    }

    #[inline]
    pub(crate) fn thread(&self, event: EventId) -> ThreadId {
        ThreadId::from_index(self.run.threads[event.index()] as usize)
    }

    /// The event of the same thread `offset` places from `event`.
    pub(crate) fn neighbour(&self, event: EventId, offset: isize) -> Option<EventId> {
        let own = self.by_thread.row(self.thread(event));
        own.get((self.position[event] as usize).checked_add_signed(offset)?).copied()
    }

    /// The waits that `notify` woke.
    pub(crate) fn woken_by(&self, notify: EventId) -> &[WaitId] {
        self.woken.get(&notify).map_or(&[], Vec::as_slice)
    }

    /// The arrivals that `event`, an arrival or a departure, must come after.
    pub(crate) fn arrivals_before(&self, event: EventId) -> &[EventId] {
        let needed = self.generation.get(&event);
        needed.map_or(&[], |&(barrier, generation)| &self.arrivals[barrier][generation])
    }

    fn find_causes(&mut self) {
        let mut last_write = IndexVec::from_elem(None, self.count(NameKind::Var));
        let mut alloc = IndexVec::from_elem(None, self.count(NameKind::Object));
        // Posts are used oldest first, and before the tokens that were there at the start.
        let mut posts = IndexVec::from_elem(VecDeque::new(), self.count(NameKind::Semaphore));
        // The generation that a thread arrived in last.
        let mut arrived: FxHashMap<(ThreadId, BarrierId), usize> = FxHashMap::default();
        for id in self.position.ids() {
            match self.op(id) {
                Op::Access(access, var) => {
                    self.cause[id] = last_write[var];
                    if access.is_write() {
                        last_write[var] = Some(id);
                    }
                }
                Op::Thread(ThreadOp::Fork, child) => self.forks[child] = Some(id),
                Op::Object(ObjectOp::Alloc, object) => alloc[object] = Some(id),
                Op::Object(ObjectOp::Free, object) => self.cause[id] = alloc[object],
                Op::Semaphore(SemaphoreOp::Post, semaphore) => posts[semaphore].push_back(id),
                Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                    self.cause[id] = posts[semaphore].pop_front();
                }
                Op::Condition(ConditionOp::Wait, condition) => self.add_wait(id, condition),
                Op::Barrier(op, barrier) => {
                    let parties = self.run.parties.get(barrier.index()).copied().flatten();
                    let generations = &mut self.arrivals[barrier];
                    let needed = if op == BarrierOp::Arrive {
                        let is_full = |last: &Vec<_>| last.len() == parties.unwrap_or(1) as usize;
                        if generations.last().is_none_or(is_full) {
                            generations.push(Vec::new());
                        }
                        let own = generations.len() - 1;
                        generations[own].push(id);
                        arrived.insert((self.thread(id), barrier), own);
                        own.checked_sub(1)
                    } else if parties.is_some() {
                        arrived.get(&(self.thread(id), barrier)).copied()
                    } else {
                        generations.len().checked_sub(1)
                    };
                    self.generation.extend(needed.map(|generation| (id, (barrier, generation))));
                }
                Op::Fence(_)
                | Op::Lock(..)
                | Op::Thread(ThreadOp::Join, _)
                | Op::Condition(
                    ConditionOp::Wake
                    | ConditionOp::Timeout
                    | ConditionOp::Notify
                    | ConditionOp::NotifyAll,
                    _,
                )
                | Op::Marker(_) => {}
            }
        }
    }

    fn add_wait(&mut self, wait: EventId, condition: ConditionId) {
        let end = self.neighbour(wait, 1);
        let mut rest = (2..).map_while(|offset| self.neighbour(wait, offset)).map(|id| self.op(id));
        let after = rest.find(|op| !matches!(op, Op::Lock(op, _) if op.is_request()));
        // The release is part of the wait if its lock is what is acquired again.
        let release = self.neighbour(wait, -1).filter(|&before| {
            let again = match self.op(before) {
                Op::Lock(LockOp::Release, lock) => Op::Lock(LockOp::Acquire, lock),
                Op::Lock(LockOp::ReleaseShared, lock) => Op::Lock(LockOp::AcquireShared, lock),
                _ => return false,
            };
            after.is_none_or(|op| op == again)
        });
        let is_timeout = |id| matches!(self.op(id), Op::Condition(ConditionOp::Timeout, _));
        let (times_out, begin) = (end.is_some_and(is_timeout), release.unwrap_or(wait));
        let at = self.waits.push(Wait { condition, wait, begin, end, times_out, notify: None });
        self.wait_at.insert(begin, at);
        self.wait_at.extend(end.map(|end| (end, at)));
    }

    /// A notify wakes, of the threads that wait and will be seen to wake, the one that does so
    /// first; failing that, one that never ends. A notify-all wakes all of these.
    fn pair_notifies(&mut self) {
        if self.waits.is_empty() {
            return;
        }
        // Of each condition the waits that will not time out, by when they end; never is last.
        let mut waiting: IndexVec<ConditionId, BTreeSet<(u32, WaitId)>> =
            IndexVec::from_elem(BTreeSet::new(), self.count(NameKind::Condition));
        for id in self.position.ids() {
            if let Some(&at) = self.wait_at.get(&id)
                && let wait = self.waits[at]
                && !wait.times_out
            {
                let key = (wait.end.map_or(u32::MAX, EventId::number), at);
                let queue = &mut waiting[wait.condition];
                _ = if wait.begin == id { queue.insert(key) } else { queue.remove(&key) };
            }
            let (queue, limit) = match self.op(id) {
                Op::Condition(ConditionOp::Notify, on) => (&mut waiting[on], 1),
                Op::Condition(ConditionOp::NotifyAll, on) => (&mut waiting[on], usize::MAX),
                _ => continue,
            };
            let first = std::iter::from_fn(|| queue.pop_first());
            let woken: Vec<WaitId> = first.take(limit).map(|(_, at)| at).collect();
            for &at in &woken {
                self.waits[at].notify = Some(id);
                if let Some(wake) = self.waits[at].end {
                    self.cause[wake] = Some(id);
                }
            }
            self.woken.insert(id, woken);
        }
    }
}
