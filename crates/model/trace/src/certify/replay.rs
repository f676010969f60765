//! A run of a reordering, one step at a time, every rule tested before each.
//!
//! It starts after a base, which it does not go through: the state is that of the base, looked up
//! when asked for, and what the steps have changed since. So it takes as much memory as there are
//! steps and threads, and a step costs little more than its searches in the base.

use std::collections::BTreeSet;

use reweave_base::{FxHashMap, FxHashSet, Id, IndexVec};

use super::base::{Base, Hold};
use super::refusal::{Refusal, Rule};
use super::tables::{RoundId, Tables, WaitId};
use crate::op::{
    AccessOp, BarrierOp, ConditionId, ConditionOp, EventId, LockId, LockOp, ObjectOp, Op,
    SemaphoreId, SemaphoreOp, ThreadId, ThreadOp, VarId,
};
use crate::trace::Trace;

/// Who holds a lock, and how often each holder took it.
#[derive(Clone, Debug, Default)]
struct Holders {
    alone: Option<(ThreadId, u32)>,
    shared: FxHashMap<ThreadId, u32>,
}

/// The state after the base and the steps so far.
#[derive(Debug)]
pub(super) struct Replay<'a> {
    trace: &'a Trace,
    tables: &'a Tables,
    base: Base<'a>,
    /// Reads that may see another write than observed.
    free: FxHashSet<EventId>,
    /// The events of each thread that ran after the base: at which step, counted from 1.
    steps: IndexVec<ThreadId, Vec<u32>>,
    /// How many steps there were after the base.
    steps_count: usize,
    unknown_reads_count: usize,
    /// The last write of each variable written since the base.
    last_write: FxHashMap<VarId, EventId>,
    /// What the free reads saw.
    free_views: FxHashMap<EventId, Option<EventId>>,
    /// Who holds each lock; nobody if it is not there.
    locks: FxHashMap<LockId, Holders>,
    /// Waits that have begun, have not ended, and that no notify has woken.
    waiting: BTreeSet<(ConditionId, WaitId)>,
    /// How many of each round have arrived since the base.
    arrived: FxHashMap<RoundId, usize>,
    /// Posts less takes since the base.
    tokens: FxHashMap<SemaphoreId, i64>,
}

impl<'a> Replay<'a> {
    /// The state after `base`.
    pub(super) fn new(
        trace: &'a Trace,
        tables: &'a Tables,
        base: Base<'a>,
        free: &[EventId],
    ) -> Self {
        let mut locks: FxHashMap<LockId, Holders> = FxHashMap::default();
        for &Hold { lock, is_shared, since, depth } in base.holds() {
            let holders = locks.entry(lock).or_default();
            if is_shared {
                holders.shared.insert(since.thread, depth);
            } else {
                holders.alone = Some((since.thread, depth));
            }
        }
        let waiting = base.waiting().iter().map(|&at| (tables.waits[at].condition, at));
        Self {
            trace,
            tables,
            free: free.iter().copied().collect(),
            steps: IndexVec::from_elem(Vec::new(), trace.names().threads.len()),
            steps_count: 0,
            unknown_reads_count: base.unknown_reads_count(),
            last_write: FxHashMap::default(),
            free_views: FxHashMap::default(),
            locks,
            waiting: waiting.collect(),
            arrived: FxHashMap::default(),
            tokens: FxHashMap::default(),
            base,
        }
    }

    /// How many events happened.
    pub(super) const fn events_count(&self) -> usize {
        self.base.events_count() + self.steps_count
    }

    /// How many of them were reads whose writer was never known.
    pub(super) const fn unknown_reads_count(&self) -> usize {
        self.unknown_reads_count
    }

    /// When `event` happened, if it did: a number that is greater for what happened later.
    pub(super) fn step_of(&self, event: EventId) -> Option<u64> {
        let position = *self.tables.position.get(event)?;
        let thread = self.trace.event(event).thread;
        match position.checked_sub(self.base.count(thread)) {
            // The base ran in observed order, and all of it before the steps.
            None => Some(u64::from(event.number())),
            Some(at) => {
                let step = *self.steps[thread].get(at as usize)?;
                Some(self.trace.len() as u64 + u64::from(step))
            }
        }
    }

    /// Whether `event` happened.
    fn happened(&self, event: EventId) -> bool {
        self.tables.position[event] < self.done(self.trace.event(event).thread)
    }

    /// What the free read `event` saw, if it happened and its writer was known when observed.
    pub(super) fn free_view(&self, event: EventId) -> Option<Option<EventId>> {
        if self.free.contains(&event) && self.base.contains(event) {
            // A base is accepted only if what its reads saw is what they saw when observed.
            return Some(self.observed_view(event));
        }
        self.free_views.get(&event).copied()
    }

    /// The trace that is replayed.
    pub(super) const fn trace(&self) -> &'a Trace {
        self.trace
    }

    /// What `read` saw when it was observed.
    pub(super) fn observed_view(&self, read: EventId) -> Option<EventId> {
        self.tables.seen(self.trace, read)
    }

    /// The next event of `thread`, if it has one left.
    pub(super) fn next(&self, thread: ThreadId) -> Option<EventId> {
        self.tables.threads.row(thread).get(self.done(thread) as usize).copied()
    }

    /// Whether `thread` holds the lock that `op`, another thread's, asks for, in a mode that keeps
    /// it waiting. How a mere request will ask is not known; a lock held alone keeps any waiting.
    pub(super) fn blocks(&self, thread: ThreadId, op: Op) -> bool {
        let Op::Lock(LockOp::Acquire | LockOp::AcquireShared | LockOp::Request, lock) = op else {
            return false;
        };
        let Some(Holders { alone, shared }) = self.locks.get(&lock) else { return false };
        let is_owner = alone.is_some_and(|(owner, _)| owner == thread);
        is_owner || matches!(op, Op::Lock(LockOp::Acquire, _)) && shared.contains_key(&thread)
    }

    /// Whether the thread of `event`, an acquire or a request, would have waited there. Where the
    /// trace says where in the program events come from, an acquire that was neither requested nor
    /// ends a wait was an attempt, which gives up at once or after a time.
    pub(super) fn waits(&self, event: EventId) -> bool {
        let happening = self.trace.event(event);
        if self.trace.origins().is_none() || matches!(happening.op, Op::Lock(LockOp::Request, _)) {
            return true;
        }
        let before = self.position(event).checked_sub(1);
        let row = self.tables.threads.row(happening.thread);
        before.is_some_and(|place| {
            let op = self.trace.event(row[place as usize]).op;
            matches!(
                op,
                Op::Lock(LockOp::Request, _)
                    | Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _)
            )
        })
    }

    /// How many events of `thread` happened.
    pub(super) fn done(&self, thread: ThreadId) -> u32 {
        self.base.count(thread) + self.steps[thread].len() as u32
    }

    /// The last write of `var`; none if it has its initial value.
    pub(super) fn last_write(&self, var: VarId) -> Option<EventId> {
        self.last_write.get(&var).copied().or_else(|| self.base.last_write(var))
    }

    /// How many events its thread has before `event`.
    pub(super) fn position(&self, event: EventId) -> u32 {
        self.tables.position[event]
    }

    /// Runs `event`, or says which rule it breaks.
    pub(super) fn step(&mut self, event: EventId) -> Result<(), Refusal> {
        let step = Some(self.events_count() + 1);
        let refusal = |rule| Refusal { step, event: Some(event), rule };
        if event.index() >= self.trace.len() {
            return Err(refusal(Rule::NoSuchEvent));
        }
        self.check_turn(event).map_err(refusal)?;
        self.check_view(event).map_err(refusal)?;
        self.check_synchronisation(event).map_err(refusal)?;
        self.happen(event);
        Ok(())
    }

    /// Rule 1 and the first half of rule 4.
    pub(super) fn check_turn(&self, event: EventId) -> Result<(), Rule> {
        let thread = self.trace.event(event).thread;
        let next = self.next(thread);
        if next != Some(event) {
            return Err(Rule::NotNext { next });
        }
        match self.tables.forks[thread] {
            Some(fork) if !self.happened(fork) => Err(Rule::NotForked { fork }),
            _ => Ok(()),
        }
    }

    /// Rule 2.
    fn check_view(&self, event: EventId) -> Result<(), Rule> {
        let op = self.trace.event(event).op;
        if !op.is_read()
            || matches!(op, Op::Access(AccessOp::UnknownRead, _))
            || self.free.contains(&event)
        {
            return Ok(());
        }
        let observed = self.tables.cause[event];
        let seen = op.var().and_then(|var| self.last_write(var));
        if seen == observed { Ok(()) } else { Err(Rule::OtherView { observed, seen }) }
    }

    /// Rules 3 to 6.
    pub(super) fn check_synchronisation(&self, event: EventId) -> Result<(), Rule> {
        let (thread, op) = (self.trace.event(event).thread, self.trace.event(event).op);
        match op {
            Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) => {
                self.check_acquire(thread, lock, op)
            }
            Op::Thread(ThreadOp::Join, child) => self.check_join(child),
            Op::Condition(ConditionOp::Wake, _) => {
                self.check_cause(event, |notify| Rule::NotNotified { notify })
            }
            Op::Condition(ConditionOp::Notify, condition) => {
                self.check_notify(event, condition, false)
            }
            Op::Condition(ConditionOp::NotifyAll, condition) => {
                self.check_notify(event, condition, true)
            }
            Op::Barrier(..) => self.check_arrived(event),
            Op::Semaphore(SemaphoreOp::Take, semaphore) => self.check_take(event, semaphore),
            Op::Object(ObjectOp::Free, _) => {
                self.check_cause(event, |alloc| Rule::NotAllocated { alloc })
            }
            // The owner of a lock is the thread whose acquire came last, and a thread that runs
            // in program order releases only what it acquired: nothing to test.
            Op::Lock(LockOp::Release | LockOp::ReleaseShared, _) => Ok(()),
            Op::Access(..)
            | Op::Fence(_)
            | Op::Lock(LockOp::Request, _)
            | Op::Thread(ThreadOp::Fork, _)
            | Op::Condition(ConditionOp::Wait | ConditionOp::Timeout, _)
            | Op::Semaphore(SemaphoreOp::Post, _)
            | Op::Object(ObjectOp::Alloc, _)
            | Op::Block(..)
            | Op::Branch
            | Op::Let(_) => Ok(()),
        }
    }

    fn check_acquire(&self, thread: ThreadId, lock: LockId, op: Op) -> Result<(), Rule> {
        let Some(Holders { alone, shared }) = self.locks.get(&lock) else { return Ok(()) };
        let other = |&holder: &ThreadId| holder != thread;
        let owner = alone.map(|(holder, _)| holder).filter(other);
        // A thread that reads already is in the way of nobody but others.
        let readers_count = shared.len() - usize::from(shared.contains_key(&thread));
        let reader = match op {
            Op::Lock(LockOp::Acquire, _) if readers_count > 0 => {
                shared.keys().copied().filter(other).min()
            }
            _ => None,
        };
        match owner.or(reader) {
            Some(holder) => Err(Rule::LockHeld { holder }),
            None => Ok(()),
        }
    }

    fn check_join(&self, child: ThreadId) -> Result<(), Rule> {
        let fork = self.tables.forks[child].filter(|&fork| !self.happened(fork));
        match fork.or(self.next(child)) {
            Some(missing) => Err(Rule::NotEnded { missing }),
            None => Ok(()),
        }
    }

    /// The event that made `event` possible when observed has happened.
    fn check_cause(&self, event: EventId, missing: fn(EventId) -> Rule) -> Result<(), Rule> {
        match self.tables.cause[event] {
            Some(cause) if !self.happened(cause) => Err(missing(cause)),
            _ => Ok(()),
        }
    }

    fn check_notify(&self, event: EventId, condition: ConditionId, all: bool) -> Result<(), Rule> {
        let woken = self.tables.woken_by(event);
        let is_absent = |&at: &WaitId| !self.waiting.contains(&(condition, at));
        if let Some(absent) = woken.clone().find(is_absent) {
            return Err(Rule::NotWaiting { wait: self.tables.waits[absent].wait });
        }
        if all || woken.count() == 0 {
            let expected = |at: WaitId| {
                let wait = self.tables.waits[at];
                let timed_out = wait.times_out && wait.end.is_some_and(|end| event < end);
                wait.notify == Some(event) || timed_out && wait.begin < event
            };
            let from = (condition, WaitId::from_index(0));
            let waiting = self.waiting.range(from..).take_while(|(on, _)| *on == condition);
            if let Some(at) = waiting.map(|&(_, at)| at).find(|&at| !expected(at)) {
                return Err(Rule::WouldWake { wait: self.tables.waits[at].wait });
            }
        }
        Ok(())
    }

    /// All of the round that `event` needs have arrived, and so, since they had to wait for it,
    /// all of earlier rounds.
    fn check_arrived(&self, event: EventId) -> Result<(), Rule> {
        let Some(&round) = self.tables.needed_round.get(&event) else { return Ok(()) };
        let arrivals = self.tables.rounds.row(round);
        // Quicker, if none of them is in the base.
        if self.arrived.get(&round) == Some(&arrivals.len()) {
            return Ok(());
        }
        match arrivals.iter().find(|&&arrival| !self.happened(arrival)) {
            Some(&missing) => Err(Rule::NotArrived { missing }),
            None => Ok(()),
        }
    }

    fn check_take(&self, event: EventId, semaphore: SemaphoreId) -> Result<(), Rule> {
        if self.trace.declared().start(semaphore).is_none() {
            return self.check_cause(event, |post| Rule::NotPosted { post });
        }
        let since = self.tokens.get(&semaphore).copied().unwrap_or(0);
        let tokens = self.base.tokens(semaphore) + since;
        if tokens > 0 { Ok(()) } else { Err(Rule::BelowZero) }
    }

    fn happen(&mut self, event: EventId) {
        let (thread, op) = (self.trace.event(event).thread, self.trace.event(event).op);
        self.steps_count += 1;
        self.steps[thread].push(self.steps_count as u32);
        if let Some(var) = op.var() {
            if self.free.contains(&event) {
                self.free_views.insert(event, self.last_write(var));
            }
            if op.is_write() {
                self.last_write.insert(var, event);
            }
        }
        if let Some(at) = self.tables.wait_at(event, op) {
            self.begin_or_end_wait(event, at);
        }
        match op {
            Op::Access(AccessOp::UnknownRead, _) => self.unknown_reads_count += 1,
            Op::Lock(LockOp::Acquire, lock) => {
                let holders = self.locks.entry(lock).or_default();
                let depth = holders.alone.map_or(0, |(_, depth)| depth);
                holders.alone = Some((thread, depth + 1));
            }
            Op::Lock(LockOp::Release, lock) => {
                let holders = self.locks.entry(lock).or_default();
                let depth = holders.alone.map_or(0, |(_, depth)| depth);
                holders.alone = (depth > 1).then(|| (thread, depth - 1));
            }
            Op::Lock(LockOp::AcquireShared, lock) => {
                *self.locks.entry(lock).or_default().shared.entry(thread).or_default() += 1;
            }
            Op::Lock(LockOp::ReleaseShared, lock) => {
                let holders = &mut self.locks.entry(lock).or_default().shared;
                let left = holders.remove(&thread).map_or(0, |depth| depth - 1);
                holders.extend((left > 0).then_some((thread, left)));
            }
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, condition) => {
                for at in self.tables.woken_by(event) {
                    self.waiting.remove(&(condition, at));
                }
            }
            Op::Barrier(BarrierOp::Arrive, _) => {
                *self.arrived.entry(self.tables.round_of[&event]).or_default() += 1
            }
            Op::Semaphore(SemaphoreOp::Post, semaphore) => {
                *self.tokens.entry(semaphore).or_default() += 1
            }
            Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                *self.tokens.entry(semaphore).or_default() -= 1
            }
            _ => {}
        }
    }

    fn begin_or_end_wait(&mut self, event: EventId, at: WaitId) {
        let wait = self.tables.waits[at];
        if wait.begin == event {
            self.waiting.insert((wait.condition, at));
        } else {
            self.waiting.remove(&(wait.condition, at));
        }
    }
}
