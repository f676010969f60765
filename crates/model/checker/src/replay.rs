//! The state of a run, one step at a time, every rule tested before each step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reweave_base::{Id, IndexVec};
use reweave_op::{
    AccessOp, ConditionId, ConditionOp, EventId, LockId, LockOp, NameKind, ObjectOp, Op,
    SemaphoreId, SemaphoreOp, ThreadId, ThreadOp, VarId,
};

use crate::observed::{Observed, WaitId};
use crate::refusal::{Refusal, Rule};

/// How many of the first events of each thread.
pub(crate) type Cut = IndexVec<ThreadId, u32>;

/// What need not be as observed.
#[derive(Clone, Copy)]
pub(crate) struct Free<'g> {
    /// Reads that may see any write.
    pub(crate) reads: &'g [EventId],
    /// Wakes that may not come: no notify need find the wait that they end.
    pub(crate) wakes: &'g [EventId],
}

/// The state after some events, and which those were.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    pub(crate) observed: Arc<Observed<'a>>,
    /// How many events of the observed order ran first.
    prefix: usize,
    /// What ran after those, with the last write of its variable before it if it is an access.
    steps: Vec<(EventId, Option<EventId>)>,
    /// The fixed prefix that was run, and how many of `steps` are of it.
    cut: Cut,
    cut_steps_count: usize,
    /// The first of `steps` that is a read that saw another write than observed, or a notify that
    /// did not find whom it woke.
    first_free: Option<usize>,
    /// How many events of each thread happened.
    done: Cut,
    pub(crate) last_write: IndexVec<VarId, Option<EventId>>,
    /// Who holds each lock, in shared mode or not, and how often it was acquired.
    locks: IndexVec<LockId, BTreeMap<(bool, ThreadId), i64>>,
    /// Waits that have begun, have not ended, and that no notify has woken.
    waiting: BTreeSet<(ConditionId, WaitId)>,
    tokens: IndexVec<SemaphoreId, i64>,
    pub(crate) unknown_reads_count: i64,
}

impl<'a> Replay<'a> {
    /// The state before the first event.
    pub(crate) fn new(observed: Arc<Observed<'a>>) -> Self {
        let start = |at| observed.run.starts.get(at).copied().flatten().map_or(0, i64::from);
        Self {
            prefix: 0,
            steps: Vec::new(),
            cut: IndexVec::from_elem(0, observed.count(NameKind::Thread)),
            cut_steps_count: 0,
            first_free: None,
            done: IndexVec::from_elem(0, observed.count(NameKind::Thread)),
            last_write: IndexVec::from_elem(None, observed.count(NameKind::Var)),
            locks: IndexVec::from_elem(BTreeMap::new(), observed.count(NameKind::Lock)),
            waiting: BTreeSet::new(),
            tokens: (0..observed.count(NameKind::Semaphore)).map(start).collect(),
            unknown_reads_count: 0,
            observed,
        }
    }

    /// How many events happened.
    pub(crate) fn events_count(&self) -> usize {
        self.prefix + self.steps.len()
    }

    /// Whether `event` happened.
    pub(crate) fn happened(&self, event: EventId) -> bool {
        self.observed.position[event] < self.done[self.observed.thread(event)]
    }

    /// Whether the thread of `event` happened to run on after it.
    pub(crate) fn went_on(&self, event: EventId) -> bool {
        self.done[self.observed.thread(event)] > self.observed.position[event] + 1
    }

    /// How many events happened before `event`, if it happened, and what it saw if it is a read.
    pub(crate) fn step_of(&self, event: EventId) -> Option<(usize, Option<EventId>)> {
        if event.index() < self.prefix {
            return Some((event.index(), self.observed.cause[event]));
        }
        let at = self.steps.iter().position(|&(step, _)| step == event)?;
        Some((self.prefix + at, self.steps[at].1))
    }

    /// All that happened, in order, but for the first `count` events.
    pub(crate) fn events_from(&self, count: usize) -> impl Iterator<Item = EventId> {
        let steps = self.steps.iter().map(|&(event, _)| event);
        let steps = steps.skip(count.saturating_sub(self.prefix));
        (count..self.prefix).map(EventId::from_index).chain(steps)
    }

    /// The next event of `thread`, if it has one left.
    pub(crate) fn next(&self, thread: ThreadId) -> Option<EventId> {
        self.observed.by_thread.row(thread).get(self.done[thread] as usize).copied()
    }

    /// Where its own fixed prefix and `cut` differ first: what is observed before, they share.
    pub(crate) fn difference(&self, cut: &Cut) -> usize {
        let unlike = self.cut.entries().filter(|&(thread, &count)| count != cut[thread]);
        let first = unlike.map(|(thread, &count)| {
            self.observed.by_thread.row(thread)[count.min(cut[thread]) as usize].index()
        });
        first.min().unwrap_or(self.observed.position.len())
    }

    /// Runs the events of `cut` in observed order, from where it differs from the one before it.
    pub(crate) fn run_cut(&mut self, cut: &Cut, free: Free<'_>) -> Result<(), Refusal> {
        let shared = self.difference(cut);
        // A read that was free then may not be now: what came from there on is not shared.
        let kept = self.cut_steps_count.min(self.first_free.take().unwrap_or(usize::MAX));
        while let Some(&(event, seen)) = self.steps.last()
            && (event.index() >= shared || self.steps.len() > kept)
        {
            self.steps.pop();
            self.change(event, self.observed.op(event), -1, seen);
        }
        while self.prefix > shared {
            self.prefix -= 1;
            let event = EventId::from_index(self.prefix);
            self.change(event, self.observed.op(event), -1, self.observed.cause[event]);
        }
        let observed = Arc::clone(&self.observed);
        let start = self.steps.last().map_or(self.prefix, |(event, _)| event.index() + 1);
        let is_in_cut = |&id: &EventId| observed.position[id] < cut[observed.thread(id)];
        let left: u32 = cut.iter().zip(self.done.iter()).map(|(all, done)| all - done).sum();
        let mut rest = (start..).map(EventId::from_index).filter(is_in_cut).take(left as usize);
        let result = rest.try_for_each(|event| {
            self.step(event, free)?;
            // As long as nothing is left out, the steps are those observed and need no list.
            if self.steps.len() == 1 && event.index() == self.prefix {
                self.steps.clear();
                self.prefix += 1;
            }
            Ok(())
        });
        // After a refusal it is shorter than asked for.
        self.cut.clone_from(&self.done);
        self.cut_steps_count = self.steps.len();
        result
    }

    /// Runs `event`, or says which rule it breaks.
    pub(crate) fn step(&mut self, event: EventId, free: Free<'_>) -> Result<(), Refusal> {
        let step = Some(self.events_count() + 1);
        let refusal = |rule| Refusal { step, event: Some(event), rule };
        self.check_program_order(event).map_err(refusal)?;
        let op = self.observed.op(event);
        if let Err(rule) = self.check_rules(event, op, &[]) {
            let is_free = match rule {
                Rule::OtherView(..) => free.reads.contains(&event),
                Rule::NotWaiting(_) => self.check_rules(event, op, free.wakes).is_ok(),
                _ => false,
            };
            is_free.then_some(()).ok_or(refusal(rule))?;
            self.first_free.get_or_insert(self.steps.len());
        }
        let seen = op.var().and_then(|var| self.last_write[var]);
        self.change(event, op, 1, Some(event));
        self.steps.push((event, seen));
        Ok(())
    }

    /// Rule 1 and the first half of rule 4.
    pub(crate) fn check_program_order(&self, event: EventId) -> Result<(), Rule> {
        require(self.observed.position.get(event).is_some(), Rule::NoSuchEvent)?;
        let thread = self.observed.thread(event);
        if self.observed.position[event] != self.done[thread] {
            return Err(self.next(thread).map_or(Rule::NoneLeft, Rule::NotNext));
        }
        // What comes later in the thread has the first event before it, and so the fork.
        let fork = self.observed.forks[thread].filter(|_| self.done[thread] == 0);
        self.check_happened(fork, Rule::NotForked)
    }

    /// Rules 2 to 6 but for the first half of rule 4; the wakes of `lost` need not come.
    #[inline]
    pub(crate) fn check_rules(&self, event: EventId, op: Op, lost: &[EventId]) -> Result<(), Rule> {
        let cause = self.observed.cause[event];
        match op {
            Op::Access(access, var) => {
                let is_known = access.is_read() && access != AccessOp::UnknownRead;
                let seen = self.last_write[var];
                require(!is_known || seen == cause, Rule::OtherView(cause, seen))
            }
            Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _) => {
                let thread = self.observed.thread(event);
                let other = self.holder(event, |holder| holder != thread);
                other.map_or(Ok(()), |holder| Err(Rule::LockHeld(holder)))
            }
            Op::Thread(ThreadOp::Join, child) => {
                self.check_happened(self.observed.forks[child], Rule::NotEnded)?;
                self.check_happened(self.next(child), Rule::NotEnded)
            }
            Op::Condition(ConditionOp::Wake, _) => self.check_happened(cause, Rule::NotNotified),
            Op::Condition(ConditionOp::Notify, on) => self.check_notify(event, on, false, lost),
            Op::Condition(ConditionOp::NotifyAll, on) => self.check_notify(event, on, true, lost),
            // All of the generation before, and so, since they had to wait, all of earlier ones.
            Op::Barrier(..) => {
                let mut arrivals = self.observed.arrivals_before(event).iter().copied();
                self.check_happened(arrivals.find(|&id| !self.happened(id)), Rule::NotArrived)
            }
            Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                match self.observed.run.starts.get(semaphore.index()) {
                    Some(Some(_)) => require(self.tokens[semaphore] > 0, Rule::BelowZero),
                    _ => self.check_happened(cause, Rule::NotPosted),
                }
            }
            Op::Object(ObjectOp::Free, _) => self.check_happened(cause, Rule::NotAllocated),
            Op::Lock(op @ (LockOp::Release | LockOp::ReleaseShared), lock) => {
                let held = (op == LockOp::ReleaseShared, self.observed.thread(event));
                require(self.locks[lock].contains_key(&held), Rule::NotHeld)
            }
            Op::Lock(LockOp::Request | LockOp::RequestExclusive, _)
            | Op::Fence(_)
            | Op::Thread(ThreadOp::Fork, _)
            | Op::Condition(ConditionOp::Wait | ConditionOp::Timeout, _)
            | Op::Semaphore(SemaphoreOp::Post, _)
            | Op::Object(ObjectOp::Alloc, _)
            | Op::Marker(_) => Ok(()),
        }
    }

    /// The event `id`, if there is one, has happened.
    fn check_happened(&self, id: Option<EventId>, rule: fn(EventId) -> Rule) -> Result<(), Rule> {
        id.filter(|&id| !self.happened(id)).map_or(Ok(()), |id| Err(rule(id)))
    }

    /// One of those that hold the lock that `event` asks for, in a mode that keeps it waiting. In
    /// which mode a plain request asks is not known; a lock held alone keeps any waiting.
    pub(crate) fn holder(
        &self,
        event: EventId,
        is_candidate: impl Fn(ThreadId) -> bool,
    ) -> Option<ThreadId> {
        let Op::Lock(op, lock) = self.observed.op(event) else { return None };
        let excludes = |is_shared: bool| match op {
            LockOp::Acquire | LockOp::RequestExclusive => true,
            LockOp::AcquireShared | LockOp::Request => !is_shared,
            LockOp::Release | LockOp::ReleaseShared => false,
        };
        let mut holders = self.locks[lock].keys().filter(|(is_shared, _)| excludes(*is_shared));
        holders.find(|(_, holder)| is_candidate(*holder)).map(|&(_, holder)| holder)
    }

    /// Whether the wait that `wake` ends has begun, and no notify has woken it.
    pub(crate) fn is_waiting(&self, wake: EventId) -> bool {
        let wait = self.observed.wait_at.get(&wake);
        wait.is_some_and(|&at| self.waiting.contains(&(self.observed.waits[at].condition, at)))
    }

    fn check_notify(
        &self,
        event: EventId,
        condition: ConditionId,
        all: bool,
        lost: &[EventId],
    ) -> Result<(), Rule> {
        let waits = &self.observed.waits;
        let is_lost = |at: WaitId| waits[at].end.is_some_and(|end| lost.contains(&end));
        let woken = self.observed.woken_by(event).iter().copied();
        let mut is_for_nobody = true;
        for at in woken.filter(|&at| !is_lost(at)) {
            is_for_nobody = false;
            require(self.waiting.contains(&(condition, at)), Rule::NotWaiting(waits[at].wait))?;
        }
        if !all && !is_for_nobody {
            return Ok(());
        }
        let waiting = self.waiting.range((condition, WaitId::from_index(0))..);
        for &(_, at) in waiting.take_while(|(on, _)| *on == condition) {
            let wait = waits[at];
            let was_there = wait.begin < event && wait.end.is_some_and(|end| event < end);
            let is_expected = wait.notify == Some(event) || wait.times_out && was_there;
            require(is_expected, Rule::WouldWake(wait.wait))?;
        }
        Ok(())
    }

    /// Changes the state as `event` does, if `by` is 1, or back, if it is -1; `last_write` is then
    /// the last write of the variable that it writes, if it does.
    #[inline]
    fn change(&mut self, event: EventId, op: Op, by: i64, last_write: Option<EventId>) {
        let (thread, is_forward) = (self.observed.thread(event), by > 0);
        self.done[thread] = self.done[thread].wrapping_add_signed(by as i32);
        match op {
            Op::Access(AccessOp::UnknownRead, _) => self.unknown_reads_count += by,
            Op::Access(access, var) if access.is_write() => self.last_write[var] = last_write,
            Op::Lock(op, lock) => {
                let (is_shared, by) = match op {
                    LockOp::Acquire => (false, by),
                    LockOp::Release => (false, -by),
                    LockOp::AcquireShared => (true, by),
                    LockOp::ReleaseShared => (true, -by),
                    LockOp::Request | LockOp::RequestExclusive => return,
                };
                let holders = &mut self.locks[lock];
                let depth = by + holders.remove(&(is_shared, thread)).unwrap_or(0);
                holders.extend((depth > 0).then_some(((is_shared, thread), depth)));
            }
            Op::Semaphore(SemaphoreOp::Post, semaphore) => self.tokens[semaphore] += by,
            Op::Semaphore(SemaphoreOp::Take, semaphore) => self.tokens[semaphore] -= by,
            Op::Access(..)
            | Op::Fence(_)
            | Op::Thread(..)
            | Op::Condition(..)
            | Op::Barrier(..)
            | Op::Object(..)
            | Op::Marker(_) => {}
        }
        if matches!(op, Op::Lock(..) | Op::Condition(..)) && !self.observed.waits.is_empty() {
            self.change_waits(event, is_forward);
        }
    }

    /// Begins and ends waits as `event` does, or takes that back.
    fn change_waits(&mut self, event: EventId, is_forward: bool) {
        let observed = &self.observed;
        // A wait that was woken has ended with its notify, not with its wake.
        let own = observed.wait_at.get(&event).filter(|&&at| {
            observed.waits[at].begin == event || observed.waits[at].notify.is_none()
        });
        for &at in own.into_iter().chain(observed.woken_by(event)) {
            let key = (observed.waits[at].condition, at);
            let begin = observed.waits[at].begin;
            let is_to_wait = (begin == event) == is_forward;
            // A notify that came before the wait took nobody out of the queue: there is nothing to
            // take back.
            let has_begun = observed.position[begin] < self.done[observed.thread(begin)];
            if is_to_wait && has_begun {
                self.waiting.insert(key);
            } else {
                self.waiting.remove(&key);
            }
        }
    }
}

fn require(holds: bool, rule: Rule) -> Result<(), Rule> {
    if holds { Ok(()) } else { Err(rule) }
}
