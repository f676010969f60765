//! The observed run, and what follows from its order: who saw, woke, used or waited for what.
//!
//! Twelve bytes per event, and some more for each event on a condition or a barrier.

use std::collections::{BTreeSet, VecDeque};

use reweave_base::{CsrTable, FxHashMap, Id, IndexVec};
use reweave_op::{
    BarrierId, BarrierOp, ConditionId, ConditionOp, EventId, LockOp, NameKind, ObjectOp, Op,
    OpCode, SemaphoreId, SemaphoreOp, ThreadId, ThreadOp,
};

reweave_base::id! {
    /// A wait on a condition variable.
    pub(crate) struct WaitId;
    /// A generation of a barrier: arrivals that others wait for.
    pub(crate) struct GenerationId;
}

/// A run as it was observed, by column: who did what to which thing, event by event.
///
/// It must be well formed: the operations of the run could have happened in this order.
#[derive(Clone, Copy, Debug)]
pub struct ObservedRun<'a> {
    /// Which thread, counted from 0.
    pub threads: &'a [u32],
    /// Which operation.
    pub codes: &'a [OpCode],
    /// On what: the index of a thread, variable, lock and so on, as the operation asks for; or 0.
    pub operands: &'a [u32],
    /// What each semaphore started at, where that is known.
    pub starts: &'a IndexVec<SemaphoreId, Option<u32>>,
    /// How many arrivals end a generation of each barrier, where that is known.
    pub parties: &'a IndexVec<BarrierId, Option<u32>>,
    /// Whether a thread that was to wait for a lock requested it first.
    pub has_requests: bool,
}

/// One wait on a condition variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) condition: ConditionId,
    /// The `wait` event.
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
    /// wake its notify, a take the post it used, a free the allocation.
    pub(crate) cause: IndexVec<EventId, Option<EventId>>,
    pub(crate) waits: IndexVec<WaitId, Wait>,
    /// Which wait begins, or ends, at an event.
    pub(crate) wait_at: FxHashMap<EventId, WaitId>,
    /// The waits that a notify woke.
    woken: FxHashMap<EventId, Vec<WaitId>>,
    /// The arrivals of each generation of each barrier. Where the number of parties is not known,
    /// each arrival is a generation of its own: that is right whatever the number is.
    pub(crate) arrivals: IndexVec<GenerationId, Vec<EventId>>,
    /// The generation of an arrival.
    pub(crate) generation: FxHashMap<EventId, GenerationId>,
    /// The generation that an arrival or a departure must come after.
    pub(crate) needed_generation: FxHashMap<EventId, GenerationId>,
}

impl<'a> Observed<'a> {
    pub(crate) fn new(run: ObservedRun<'a>) -> Self {
        let mut counts = [0; NameKind::ALL.len() + 1];
        for (at, code) in run.codes.iter().enumerate() {
            let kind = code.kind().operand();
            for (kind, index) in [(kind, run.operands[at]), (NameKind::Thread, run.threads[at])] {
                counts[kind as usize] = counts[kind as usize].max(index as usize + 1);
            }
        }
        let count = |kind: NameKind| counts[kind as usize];
        let threads = || run.threads.iter().map(|&thread| ThreadId::from_index(thread as usize));
        let ids = || (0..run.codes.len()).map(EventId::from_index);
        let mut observed = Self {
            run,
            counts,
            by_thread: CsrTable::group(count(NameKind::Thread), EventId::from_index(0), || {
                threads().zip(ids())
            }),
            position: IndexVec::from_elem(0, run.codes.len()),
            forks: IndexVec::from_elem(None, count(NameKind::Thread)),
            cause: IndexVec::from_elem(None, run.codes.len()),
            waits: IndexVec::new(),
            wait_at: FxHashMap::default(),
            woken: FxHashMap::default(),
            arrivals: IndexVec::new(),
            generation: FxHashMap::default(),
            needed_generation: FxHashMap::default(),
        };
        for (_, row) in observed.by_thread.rows() {
            row.iter().zip(0..).for_each(|(&event, at)| observed.position[event] = at);
        }
        let mut last_write = IndexVec::from_elem(None, count(NameKind::Var));
        let mut alloc = IndexVec::from_elem(None, count(NameKind::Object));
        // Posts are used oldest first, and before the tokens that were there at the start.
        let mut posts = IndexVec::from_elem(VecDeque::new(), count(NameKind::Semaphore));
        let mut barriers = Barriers::default();
        let mut notifies = Vec::new();
        for id in ids() {
            match observed.op(id) {
                Op::Access(access, var) => {
                    observed.cause[id] = last_write[var];
                    if access.is_write() {
                        last_write[var] = Some(id);
                    }
                }
                Op::Thread(ThreadOp::Fork, child) => observed.forks[child] = Some(id),
                Op::Object(ObjectOp::Alloc, object) => alloc[object] = Some(id),
                Op::Object(ObjectOp::Free, object) => observed.cause[id] = alloc[object],
                Op::Semaphore(SemaphoreOp::Post, semaphore) => posts[semaphore].push_back(id),
                Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                    observed.cause[id] = posts[semaphore].pop_front();
                }
                Op::Barrier(BarrierOp::Arrive, barrier) => {
                    observed.arrive(&mut barriers, id, barrier)
                }
                Op::Barrier(BarrierOp::Depart, barrier) => observed.depart(&barriers, id, barrier),
                Op::Condition(ConditionOp::Wait, condition) => observed.add_wait(id, condition),
                Op::Condition(ConditionOp::Notify, condition) => notifies.push((id, condition, 1)),
                Op::Condition(ConditionOp::NotifyAll, condition) => {
                    notifies.push((id, condition, usize::MAX));
                }
                Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _)
                | Op::Thread(ThreadOp::Join, _)
                | Op::Fence(_)
                | Op::Lock(..)
                | Op::Block(..)
                | Op::Branch
                | Op::Let(_) => {}
            }
        }
        observed.pair(&notifies);
        observed
    }

    pub(crate) fn len(&self) -> usize {
        self.run.codes.len()
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

    /// The waits that `notify` woke.
    pub(crate) fn woken_by(&self, notify: EventId) -> &[WaitId] {
        self.woken.get(&notify).map_or(&[], Vec::as_slice)
    }

    /// The event of the same thread `offset` places from `event`.
    pub(crate) fn neighbour(&self, event: EventId, offset: isize) -> Option<EventId> {
        let own = self.by_thread.row(self.thread(event));
        own.get((self.position[event] as usize).checked_add_signed(offset)?).copied()
    }

    fn add_wait(&mut self, wait: EventId, condition: ConditionId) {
        let end = self.neighbour(wait, 1);
        let after = (2..).map_while(|offset| self.neighbour(wait, offset)).map(|id| self.op(id));
        let after = after.into_iter().find(|op| !matches!(op, Op::Lock(LockOp::Request, _)));
        // The release is part of the wait if its lock is what is taken again.
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
    /// first; failing that, one that never ends. A notify-all, with no limit, wakes all of these.
    fn pair(&mut self, notifies: &[(EventId, ConditionId, usize)]) {
        let mut begins: Vec<_> = self.waits.entries().map(|(at, wait)| (wait.begin, at)).collect();
        begins.sort_unstable();
        let mut begins = begins.into_iter().peekable();
        // Of each condition the waits that will not time out, by when they end; never is last.
        let mut waiting: IndexVec<ConditionId, BTreeSet<(u32, WaitId)>> = IndexVec::new();
        for &(notify, condition, limit) in notifies {
            while let Some((_, at)) = begins.next_if(|&(begin, _)| begin < notify) {
                let wait = self.waits[at];
                if !wait.times_out {
                    let end = wait.end.map_or(u32::MAX, EventId::number);
                    waiting.get_or_default(wait.condition).insert((end, at));
                }
            }
            let queue = waiting.get_or_default(condition);
            *queue = queue.split_off(&(notify.number(), WaitId::from_index(0)));
            let first = std::iter::from_fn(|| queue.pop_first());
            let woken: Vec<WaitId> = first.take(limit).map(|(_, at)| at).collect();
            for &at in &woken {
                self.waits[at].notify = Some(notify);
                if let Some(wake) = self.waits[at].end {
                    self.cause[wake] = Some(notify);
                }
            }
            self.woken.insert(notify, woken);
        }
    }

    fn arrive(&mut self, barriers: &mut Barriers, event: EventId, barrier: BarrierId) {
        let parties = self.run.parties.get(barrier).copied().flatten().unwrap_or(1) as usize;
        let latest = barriers.latest.get_or_default(barrier);
        let is_open = latest.0.is_some_and(|last| self.arrivals[last].len() != parties);
        if !is_open {
            *latest = (Some(self.arrivals.push(Vec::new())), latest.0);
        }
        let (Some(own), before) = *latest else { unreachable!("a generation is open") };
        self.arrivals[own].push(event);
        self.generation.insert(event, own);
        self.needed_generation.extend(before.map(|before| (event, before)));
        barriers.arrived.insert((self.thread(event), barrier), own);
    }

    fn depart(&mut self, barriers: &Barriers, event: EventId, barrier: BarrierId) {
        let needed = match self.run.parties.get(barrier).copied().flatten() {
            Some(_) => barriers.arrived.get(&(self.thread(event), barrier)).copied(),
            None => barriers.latest.get(barrier).and_then(|&(last, _)| last),
        };
        self.needed_generation.extend(needed.map(|needed| (event, needed)));
    }
}

/// The barriers at some moment of the observed run.
#[derive(Default)]
struct Barriers {
    /// The last generation of each, and the one before it.
    latest: IndexVec<BarrierId, (Option<GenerationId>, Option<GenerationId>)>,
    /// The generation that a thread arrived in last.
    arrived: FxHashMap<(ThreadId, BarrierId), GenerationId>,
}
