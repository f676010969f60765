//! The state of a run, one step at a time, every rule tested before each step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reweave_base::{Id, IndexVec};
use reweave_op::{
    AccessOp, BarrierOp, ConditionId, ConditionOp, EventId, LockId, LockOp, NameKind, ObjectOp, Op,
    SemaphoreId, SemaphoreOp, ThreadId, ThreadOp, VarId,
};

use crate::observed::{GenerationId, Observed, WaitId};
use crate::refusal::{Refusal, Rule};

/// Who holds a lock, and how often each holder acquired it.
#[derive(Clone, Debug, Default)]
struct Holders {
    alone: Option<(ThreadId, i64)>,
    shared: BTreeMap<ThreadId, i64>,
}

impl Holders {
    fn hold_alone(&mut self, thread: ThreadId, by: i64) {
        let depth = by + self.alone.map_or(0, |(_, depth)| depth);
        self.alone = (depth > 0).then_some((thread, depth));
    }

    fn hold_shared(&mut self, thread: ThreadId, by: i64) {
        let depth = by + self.shared.remove(&thread).unwrap_or(0);
        self.shared.extend((depth > 0).then_some((thread, depth)));
    }
}

/// How many of the first events of each thread.
pub(crate) type Cut = IndexVec<ThreadId, u32>;

/// A step that was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) event: EventId,
    /// The last write of its variable before it, if it is an access.
    pub(crate) seen: Option<EventId>,
}

/// The state after some events, and which those were.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    pub(crate) observed: Arc<Observed<'a>>,
    /// How many events of the observed order ran first.
    prefix: usize,
    /// What ran after those. It begins with an event that the observed order has later.
    steps: Vec<Step>,
    /// How many of `steps` are of the fixed prefix of the reordering, which is `cut`.
    cut_steps_count: usize,
    cut: Cut,
    /// The first of `steps` that is a read that saw another write than observed.
    first_free: Option<usize>,
    /// How many events of each thread happened.
    done: Cut,
    last_write: IndexVec<VarId, Option<EventId>>,
    locks: IndexVec<LockId, Holders>,
    /// Waits that have begun, have not ended, and that no notify has woken.
    waiting: BTreeSet<(ConditionId, WaitId)>,
    arrived: IndexVec<GenerationId, i64>,
    tokens: IndexVec<SemaphoreId, i64>,
    unknown_reads_count: i64,
}

impl<'a> Replay<'a> {
    /// The state before the first event.
    pub(crate) fn new(observed: Arc<Observed<'a>>) -> Self {
        let count = |kind| observed.count(kind);
        let start = |at| observed.run.starts.get(at).copied().flatten().map_or(0, i64::from);
        let semaphores = (0..count(NameKind::Semaphore)).map(SemaphoreId::from_index);
        Self {
            prefix: 0,
            steps: Vec::new(),
            cut_steps_count: 0,
            cut: IndexVec::from_elem(0, count(NameKind::Thread)),
            first_free: None,
            done: IndexVec::from_elem(0, count(NameKind::Thread)),
            last_write: IndexVec::from_elem(None, count(NameKind::Var)),
            locks: IndexVec::from_elem(Holders::default(), count(NameKind::Lock)),
            waiting: BTreeSet::new(),
            arrived: IndexVec::from_elem(0, observed.arrivals.len()),
            tokens: semaphores.map(start).collect(),
            unknown_reads_count: 0,
            observed,
        }
    }

    /// How many events happened.
    pub(crate) fn events_count(&self) -> usize {
        self.prefix + self.steps.len()
    }

    /// How many of them were reads whose writer was never known.
    pub(crate) fn unknown_reads_count(&self) -> usize {
        self.unknown_reads_count as usize
    }

    /// Where its own fixed prefix and `cut` differ first: what is observed before, they share.
    pub(crate) fn difference(&self, cut: &Cut) -> usize {
        let unlike = self.cut.entries().filter(|&(thread, &count)| count != cut[thread]);
        let first = unlike.map(|(thread, &count)| {
            self.observed.by_thread.row(thread)[count.min(cut[thread]) as usize].index()
        });
        first.min().unwrap_or(self.observed.len())
    }

    /// Runs the events of `cut` in observed order, from where it differs from the one before it.
    pub(crate) fn run_cut(&mut self, cut: &Cut, free: &[EventId]) -> Result<(), Refusal> {
        let shared = self.difference(cut);
        // A read that was free may not be free now: what came from there on is not shared.
        let kept = self.cut_steps_count.min(self.first_free.take().unwrap_or(usize::MAX));
        while self.steps.len() > kept
            || self.steps.last().is_some_and(|step| step.event.index() >= shared)
        {
            let Step { event, seen } = self.steps.pop().expect("there is a last step");
            self.change(event, -1, seen);
        }
        while self.prefix > shared {
            self.prefix -= 1;
            let event = EventId::from_index(self.prefix);
            self.change(event, -1, self.observed.cause[event]);
        }
        let rest = self.done.entries().flat_map(|(thread, &done)| {
            &self.observed.by_thread.row(thread)[done as usize..cut[thread] as usize]
        });
        let mut rest: Vec<EventId> = rest.copied().collect();
        rest.sort();
        let result = rest.into_iter().try_for_each(|event| {
            self.step(event, free)?;
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
    pub(crate) fn step(&mut self, event: EventId, free: &[EventId]) -> Result<(), Refusal> {
        let step = Some(self.events_count() + 1);
        let refusal = |rule| Refusal { step, event: Some(event), rule };
        if event.index() >= self.observed.len() {
            return Err(refusal(Rule::NoSuchEvent));
        }
        self.check_turn(event).map_err(refusal)?;
        if let Err(rule) = self.check_view(event) {
            if !free.contains(&event) {
                return Err(refusal(rule));
            }
            self.first_free.get_or_insert(self.steps.len());
        }
        self.check_synchronisation(event).map_err(refusal)?;
        let seen = self.observed.op(event).var().and_then(|var| self.last_write[var]);
        self.change(event, 1, Some(event));
        self.steps.push(Step { event, seen });
        Ok(())
    }

    /// Whether `event` happened.
    pub(crate) fn happened(&self, event: EventId) -> bool {
        self.observed.position[event] < self.done[self.observed.thread(event)]
    }

    /// How many events happened before `event`, if it happened, and what it saw if it is a read.
    pub(crate) fn step_of(&self, event: EventId) -> Option<(usize, Option<EventId>)> {
        if event.index() < self.prefix {
            return Some((event.index(), self.observed.cause[event]));
        }
        let at = self.steps.iter().position(|step| step.event == event)?;
        Some((self.prefix + at, self.steps[at].seen))
    }

    /// The next event of `thread`, if it has one left.
    pub(crate) fn next(&self, thread: ThreadId) -> Option<EventId> {
        self.observed.by_thread.row(thread).get(self.done[thread] as usize).copied()
    }

    /// The last write of `var`; none if it has its initial value.
    pub(crate) fn last_write(&self, var: VarId) -> Option<EventId> {
        self.last_write.get(var).copied().flatten()
    }

    /// Whether `thread` holds the lock that `op`, another thread's, asks for, in a mode that keeps
    /// it waiting. How a mere request will ask is not known; a lock held alone keeps any waiting.
    pub(crate) fn blocks(&self, thread: ThreadId, op: Op) -> bool {
        let Op::Lock(LockOp::Acquire | LockOp::AcquireShared | LockOp::Request, lock) = op else {
            return false;
        };
        let Holders { alone, shared } = &self.locks[lock];
        let is_owner = alone.is_some_and(|(owner, _)| owner == thread);
        is_owner || matches!(op, Op::Lock(LockOp::Acquire, _)) && shared.contains_key(&thread)
    }

    /// Rule 1 and the first half of rule 4.
    pub(crate) fn check_turn(&self, event: EventId) -> Result<(), Rule> {
        let thread = self.observed.thread(event);
        if self.observed.position[event] != self.done[thread] {
            return Err(self.next(thread).map_or(Rule::NoneLeft, Rule::NotNext));
        }
        self.check_happened(self.observed.forks[thread], Rule::NotForked)
    }

    /// Rule 2.
    #[inline]
    fn check_view(&self, event: EventId) -> Result<(), Rule> {
        match self.observed.op(event) {
            Op::Access(access, var) if access.is_read() && access != AccessOp::UnknownRead => {
                let (observed, seen) = (self.observed.cause[event], self.last_write[var]);
                if seen == observed { Ok(()) } else { Err(Rule::OtherView(observed, seen)) }
            }
            _ => Ok(()),
        }
    }

    /// Rules 3 to 6.
    #[inline]
    pub(crate) fn check_synchronisation(&self, event: EventId) -> Result<(), Rule> {
        let cause = self.observed.cause[event];
        match self.observed.op(event) {
            Op::Lock(LockOp::Acquire, lock) => self.check_acquire(event, lock, true),
            Op::Lock(LockOp::AcquireShared, lock) => self.check_acquire(event, lock, false),
            Op::Thread(ThreadOp::Join, child) => {
                self.check_happened(self.observed.forks[child], Rule::NotEnded)?;
                self.next(child).map_or(Ok(()), |missing| Err(Rule::NotEnded(missing)))
            }
            Op::Condition(ConditionOp::Wake, _) => self.check_happened(cause, Rule::NotNotified),
            Op::Condition(ConditionOp::Notify, on) => self.check_notify(event, on, false),
            Op::Condition(ConditionOp::NotifyAll, on) => self.check_notify(event, on, true),
            Op::Barrier(..) => self.check_arrived(event),
            Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                match self.observed.run.starts.get(semaphore).copied().flatten() {
                    None => self.check_happened(cause, Rule::NotPosted),
                    Some(_) if self.tokens[semaphore] > 0 => Ok(()),
                    Some(_) => Err(Rule::BelowZero),
                }
            }
            Op::Object(ObjectOp::Free, _) => self.check_happened(cause, Rule::NotAllocated),
            // A lock belongs to the thread whose acquire came last, and a thread that runs in
            // program order releases only what it acquired: nothing to test at a release.
            Op::Lock(LockOp::Release | LockOp::ReleaseShared | LockOp::Request, _)
            | Op::Access(..)
            | Op::Fence(_)
            | Op::Thread(ThreadOp::Fork, _)
            | Op::Condition(ConditionOp::Wait | ConditionOp::Timeout, _)
            | Op::Semaphore(SemaphoreOp::Post, _)
            | Op::Object(ObjectOp::Alloc, _)
            | Op::Block(..)
            | Op::Branch
            | Op::Let(_) => Ok(()),
        }
    }

    /// `event`, if there is one, has happened.
    fn check_happened(
        &self,
        event: Option<EventId>,
        rule: fn(EventId) -> Rule,
    ) -> Result<(), Rule> {
        match event {
            Some(event) if !self.happened(event) => Err(rule(event)),
            _ => Ok(()),
        }
    }

    fn check_acquire(&self, event: EventId, lock: LockId, alone: bool) -> Result<(), Rule> {
        let thread = self.observed.thread(event);
        let holders = &self.locks[lock];
        let owner = holders.alone.map(|(owner, _)| owner);
        let readers = holders.shared.keys().copied().filter(|_| alone);
        let mut others = owner.into_iter().chain(readers).filter(|&holder| holder != thread);
        others.next().map_or(Ok(()), |holder| Err(Rule::LockHeld(holder)))
    }

    fn check_notify(&self, event: EventId, condition: ConditionId, all: bool) -> Result<(), Rule> {
        let (waits, woken) = (&self.observed.waits, self.observed.woken_by(event));
        if let Some(&absent) = woken.iter().find(|&&at| !self.waiting.contains(&(condition, at))) {
            return Err(Rule::NotWaiting(waits[absent].wait));
        }
        if !all && !woken.is_empty() {
            return Ok(());
        }
        let is_expected = |at: WaitId| {
            let timed_out = waits[at].times_out && waits[at].end.is_some_and(|end| event < end);
            waits[at].notify == Some(event) || timed_out && waits[at].begin < event
        };
        let waiting = self.waiting.range((condition, WaitId::from_index(0))..);
        let mut waiting = waiting.take_while(|(on, _)| *on == condition);
        match waiting.find(|&&(_, at)| !is_expected(at)) {
            Some(&(_, at)) => Err(Rule::WouldWake(waits[at].wait)),
            None => Ok(()),
        }
    }

    /// All of the generation that `event` needs have arrived, and so, since they had to wait for
    /// it, all of earlier generations.
    fn check_arrived(&self, event: EventId) -> Result<(), Rule> {
        let Some(&needed) = self.observed.needed_generation.get(&event) else { return Ok(()) };
        let arrivals = &self.observed.arrivals[needed];
        if self.arrived[needed] as usize == arrivals.len() {
            return Ok(());
        }
        let missing = arrivals.iter().copied().find(|&arrival| !self.happened(arrival));
        self.check_happened(missing, Rule::NotArrived)
    }

    /// Changes the state as `event` does, if `by` is 1, or back, if it is -1; `last_write` is then
    /// the last write of the variable that it writes, if it does.
    #[inline]
    fn change(&mut self, event: EventId, by: i64, last_write: Option<EventId>) {
        let (thread, op, is_forward) =
            (self.observed.thread(event), self.observed.op(event), by > 0);
        self.done[thread] = self.done[thread].wrapping_add_signed(by as i32);
        if let Op::Lock(..) | Op::Condition(..) = op
            && let Some(&at) = self.observed.wait_at.get(&event)
        {
            let wait = self.observed.waits[at];
            if wait.begin == event {
                self.set_waiting(at, is_forward);
            } else if wait.notify.is_none() {
                // Otherwise its notify has ended the waiting.
                self.set_waiting(at, !is_forward);
            }
        }
        match op {
            Op::Access(AccessOp::UnknownRead, _) => self.unknown_reads_count += by,
            Op::Access(access, var) if access.is_write() => self.last_write[var] = last_write,
            Op::Lock(LockOp::Acquire, lock) => self.locks[lock].hold_alone(thread, by),
            Op::Lock(LockOp::Release, lock) => self.locks[lock].hold_alone(thread, -by),
            Op::Lock(LockOp::AcquireShared, lock) => self.locks[lock].hold_shared(thread, by),
            Op::Lock(LockOp::ReleaseShared, lock) => self.locks[lock].hold_shared(thread, -by),
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
                let observed = Arc::clone(&self.observed);
                observed.woken_by(event).iter().for_each(|&at| self.set_waiting(at, !is_forward));
            }
            Op::Barrier(BarrierOp::Arrive, _) => {
                self.arrived[self.observed.generation[&event]] += by;
            }
            Op::Semaphore(SemaphoreOp::Post, semaphore) => self.tokens[semaphore] += by,
            Op::Semaphore(SemaphoreOp::Take, semaphore) => self.tokens[semaphore] -= by,
            _ => {}
        }
    }

    fn set_waiting(&mut self, at: WaitId, is_waiting: bool) {
        let key = (self.observed.waits[at].condition, at);
        if is_waiting {
            self.waiting.insert(key)
        } else {
            self.waiting.remove(&key)
        };
    }
}
