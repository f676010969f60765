//! A run of a reordering, one step at a time, every rule tested before each.

use std::collections::BTreeSet;

use reweave_base::{FxHashMap, FxHashSet, Id, IndexVec};

use super::refusal::{Refusal, Rule};
use super::tables::Tables;
use crate::op::{ConditionId, EventId, LockId, Op, SemaphoreId, ThreadId, VarId};
use crate::trace::Trace;

/// Who holds a lock, and how often each holder took it.
#[derive(Clone, Debug, Default)]
struct Holders {
    alone: Option<(ThreadId, u32)>,
    shared: FxHashMap<ThreadId, u32>,
}

/// The state after the steps so far.
#[derive(Debug)]
pub(super) struct Replay<'a> {
    trace: &'a Trace,
    tables: &'a Tables,
    /// Reads that may see another write than observed.
    free: FxHashSet<EventId>,
    /// When each event that happened did, counted from 1; 0 for those that did not.
    step_of: IndexVec<EventId, u32>,
    steps_count: usize,
    loose_reads_count: usize,
    done: IndexVec<ThreadId, u32>,
    last_write: IndexVec<VarId, Option<EventId>>,
    /// What the free reads saw.
    free_views: FxHashMap<EventId, Option<EventId>>,
    locks: IndexVec<LockId, Holders>,
    /// Waits that have begun, have not ended, and that no notify has woken.
    waiting: IndexVec<ConditionId, BTreeSet<usize>>,
    arrived: Vec<usize>,
    tokens: IndexVec<SemaphoreId, i64>,
}

impl<'a> Replay<'a> {
    pub(super) fn new(trace: &'a Trace, tables: &'a Tables, free: &[EventId]) -> Self {
        let names = trace.names();
        let start = |id| i64::from(trace.declared().start(id).unwrap_or(0));
        Self {
            trace,
            tables,
            free: free.iter().copied().collect(),
            step_of: IndexVec::from_elem(0, trace.len()),
            steps_count: 0,
            loose_reads_count: 0,
            done: IndexVec::from_elem(0, names.threads.len()),
            last_write: IndexVec::from_elem(None, names.vars.len()),
            free_views: FxHashMap::default(),
            locks: IndexVec::from_elem(Holders::default(), names.locks.len()),
            waiting: IndexVec::from_elem(BTreeSet::new(), names.conditions.len()),
            arrived: vec![0; tables.rounds.len()],
            tokens: names.semaphores.entries().map(|(id, _)| start(id)).collect(),
        }
    }

    /// How many events happened.
    pub(super) const fn steps_count(&self) -> usize {
        self.steps_count
    }

    /// How many of them were reads whose writer was never known.
    pub(super) const fn loose_reads_count(&self) -> usize {
        self.loose_reads_count
    }

    /// When `event` happened, if it did.
    pub(super) fn step_of(&self, event: EventId) -> Option<u32> {
        self.step_of.get(event).copied().filter(|&step| step > 0)
    }

    /// What the free read `event` saw, if it happened.
    pub(super) fn free_view(&self, event: EventId) -> Option<Option<EventId>> {
        self.free_views.get(&event).copied()
    }

    /// The trace that is replayed.
    pub(super) const fn trace(&self) -> &'a Trace {
        self.trace
    }

    /// What `read` saw when it was observed.
    pub(super) fn observed_view(&self, read: EventId) -> Option<EventId> {
        self.tables.seen[read]
    }

    /// The next event of `thread`, if it has one left.
    pub(super) fn next(&self, thread: ThreadId) -> Option<EventId> {
        self.tables.threads[thread].get(self.done[thread] as usize).copied()
    }

    /// Whether `thread` holds the lock that `op`, another thread's, asks for, in a mode that keeps
    /// it waiting. How a mere request will ask is not known; a lock held alone keeps any waiting.
    pub(super) fn blocks(&self, thread: ThreadId, op: Op) -> bool {
        let alone = |lock: LockId| self.locks[lock].alone.is_some_and(|(t, _)| t == thread);
        let shared = |lock: LockId| self.locks[lock].shared.contains_key(&thread);
        match op {
            Op::Acquire(lock) => alone(lock) || shared(lock),
            Op::AcquireShared(lock) | Op::Request(lock) => alone(lock),
            _ => false,
        }
    }

    /// How many events of `thread` happened.
    pub(super) fn done(&self, thread: ThreadId) -> u32 {
        self.done[thread]
    }

    /// How many events its thread has before `event`.
    pub(super) fn position(&self, event: EventId) -> u32 {
        self.tables.position[event]
    }

    /// Runs `event`, or says which rule it breaks.
    pub(super) fn step(&mut self, event: EventId) -> Result<(), Refusal> {
        let refusal = |rule| Refusal { step: Some(self.steps_count + 1), event: Some(event), rule };
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
            Some(fork) if self.step_of(fork).is_none() => Err(Rule::NotForked { fork }),
            _ => Ok(()),
        }
    }

    /// Rule 2.
    fn check_view(&self, event: EventId) -> Result<(), Rule> {
        let op = self.trace.event(event).op;
        if !op.is_read() || matches!(op, Op::LooseRead(_)) || self.free.contains(&event) {
            return Ok(());
        }
        let observed = self.tables.seen[event];
        let seen = op.var().and_then(|var| self.last_write[var]);
        if seen == observed { Ok(()) } else { Err(Rule::OtherView { observed, seen }) }
    }

    /// Rules 3 to 6.
    pub(super) fn check_synchronisation(&self, event: EventId) -> Result<(), Rule> {
        let (thread, op) = (self.trace.event(event).thread, self.trace.event(event).op);
        match op {
            Op::Acquire(lock) | Op::AcquireShared(lock) => self.check_acquire(thread, lock, op),
            Op::Join(child) => self.check_join(child),
            Op::Wake(_) => self.check_wake(event),
            Op::Notify(condition) => self.check_notify(event, condition, false),
            Op::NotifyAll(condition) => self.check_notify(event, condition, true),
            Op::Arrive(_) | Op::Depart(_) => self.check_arrived(event),
            Op::Take(semaphore) => self.check_take(event, semaphore),
            Op::Free(_) => match self.tables.allocs.get(&event) {
                Some(&alloc) if self.step_of(alloc).is_none() => Err(Rule::NotAllocated { alloc }),
                _ => Ok(()),
            },
            // The owner of a lock is the thread whose acquire came last, and a thread that runs
            // in program order releases only what it acquired: nothing to test.
            Op::Release(_) | Op::ReleaseShared(_) => Ok(()),
            Op::Read(_)
            | Op::Write(_)
            | Op::LooseRead(_)
            | Op::AtomicRead(..)
            | Op::AtomicWrite(..)
            | Op::AtomicUpdate(..)
            | Op::Fence(_)
            | Op::Request(_)
            | Op::Fork(_)
            | Op::Wait(_)
            | Op::Timeout(_)
            | Op::Post(_)
            | Op::Alloc(_)
            | Op::Begin(_)
            | Op::End(_)
            | Op::Branch
            | Op::Let(_) => Ok(()),
        }
    }

    fn check_acquire(&self, thread: ThreadId, lock: LockId, op: Op) -> Result<(), Rule> {
        let Holders { alone, shared } = &self.locks[lock];
        let other = |&holder: &ThreadId| holder != thread;
        let owner = alone.map(|(holder, _)| holder).filter(other);
        // A thread that reads already is in the way of nobody but others.
        let readers_count = shared.len() - usize::from(shared.contains_key(&thread));
        let reader = match op {
            Op::Acquire(_) if readers_count > 0 => shared.keys().copied().filter(other).min(),
            _ => None,
        };
        match owner.or(reader) {
            Some(holder) => Err(Rule::LockHeld { holder }),
            None => Ok(()),
        }
    }

    fn check_join(&self, child: ThreadId) -> Result<(), Rule> {
        let fork = self.tables.forks[child].filter(|&fork| self.step_of(fork).is_none());
        match fork.or(self.next(child)) {
            Some(missing) => Err(Rule::NotEnded { missing }),
            None => Ok(()),
        }
    }

    fn check_wake(&self, event: EventId) -> Result<(), Rule> {
        let at = self.tables.wait_at[&event];
        match self.tables.waits[at].notify {
            Some(notify) if self.step_of(notify).is_none() => Err(Rule::NotNotified { notify }),
            _ => Ok(()),
        }
    }

    fn check_notify(&self, event: EventId, condition: ConditionId, all: bool) -> Result<(), Rule> {
        let waiting = &self.waiting[condition];
        let woke = self.tables.woke.get(&event).map_or(&[][..], Vec::as_slice);
        if let Some(&absent) = woke.iter().find(|at| !waiting.contains(at)) {
            return Err(Rule::NotWaiting { wait: self.tables.waits[absent].wait });
        }
        if all || woke.is_empty() {
            let expected = |&&at: &&usize| {
                let wait = self.tables.waits[at];
                let timed_out = wait.times_out && wait.end.is_some_and(|end| event < end);
                wait.notify == Some(event) || timed_out && wait.begin < event
            };
            if let Some(&at) = waiting.iter().find(|at| !expected(at)) {
                return Err(Rule::WouldWake { wait: self.tables.waits[at].wait });
            }
        }
        Ok(())
    }

    /// All of the round that `event` needs have arrived, and so, since they had to wait for it,
    /// all of earlier rounds.
    fn check_arrived(&self, event: EventId) -> Result<(), Rule> {
        let Some(&round) = self.tables.needed_round.get(&event) else { return Ok(()) };
        let arrivals = &self.tables.rounds[round];
        if self.arrived[round] == arrivals.len() {
            return Ok(());
        }
        match arrivals.iter().find(|&&arrival| self.step_of(arrival).is_none()) {
            Some(&missing) => Err(Rule::NotArrived { missing }),
            None => Ok(()),
        }
    }

    fn check_take(&self, event: EventId, semaphore: SemaphoreId) -> Result<(), Rule> {
        if self.trace.declared().start(semaphore).is_some() {
            return if self.tokens[semaphore] > 0 { Ok(()) } else { Err(Rule::BelowZero) };
        }
        match self.tables.posts.get(&event) {
            Some(&post) if self.step_of(post).is_none() => Err(Rule::NotPosted { post }),
            _ => Ok(()),
        }
    }

    fn happen(&mut self, event: EventId) {
        let (thread, op) = (self.trace.event(event).thread, self.trace.event(event).op);
        self.steps_count += 1;
        self.step_of[event] = self.steps_count as u32;
        self.done[thread] += 1;
        if let Some(var) = op.var() {
            if self.free.contains(&event) {
                self.free_views.insert(event, self.last_write[var]);
            }
            if op.is_write() {
                self.last_write[var] = Some(event);
            }
        }
        if let Some(&at) = self.tables.wait_at.get(&event) {
            self.begin_or_end_wait(event, at);
        }
        match op {
            Op::LooseRead(_) => self.loose_reads_count += 1,
            Op::Acquire(lock) => {
                let depth = self.locks[lock].alone.map_or(0, |(_, depth)| depth);
                self.locks[lock].alone = Some((thread, depth + 1));
            }
            Op::Release(lock) => {
                let depth = self.locks[lock].alone.map_or(0, |(_, depth)| depth);
                self.locks[lock].alone = (depth > 1).then(|| (thread, depth - 1));
            }
            Op::AcquireShared(lock) => *self.locks[lock].shared.entry(thread).or_default() += 1,
            Op::ReleaseShared(lock) => {
                let holders = &mut self.locks[lock].shared;
                let left = holders.remove(&thread).map_or(0, |depth| depth - 1);
                holders.extend((left > 0).then_some((thread, left)));
            }
            Op::Notify(condition) | Op::NotifyAll(condition) => {
                for at in self.tables.woke.get(&event).into_iter().flatten() {
                    self.waiting[condition].remove(at);
                }
            }
            Op::Arrive(_) => self.arrived[self.tables.round_of[&event]] += 1,
            Op::Post(semaphore) => self.tokens[semaphore] += 1,
            Op::Take(semaphore) => self.tokens[semaphore] -= 1,
            _ => {}
        }
    }

    fn begin_or_end_wait(&mut self, event: EventId, at: usize) {
        let wait = self.tables.waits[at];
        if wait.begin == event {
            self.waiting[wait.condition].insert(at);
        } else {
            self.waiting[wait.condition].remove(&at);
        }
    }
}
