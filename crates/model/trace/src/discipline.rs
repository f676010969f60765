//! Well-formedness: can these events have happened, one after the other, as they stand?
//!
//! One pass keeps who holds which lock, which threads run, wait or are done, what is at each
//! barrier and in each semaphore, and refuses the first event that contradicts it. Which notify
//! woke which thread needs to look ahead and is left to [`crate::signals`].
//!
//! Linear in the events; accesses to variables touch only their thread's state.

mod breach;

use std::ops::ControlFlow;

use reweave_base::{FxHashMap, Id, IndexVec};

use crate::columns::Columns;
use crate::names::Names;
use crate::op::{
    BarrierId, BarrierOp, BlockId, BlockOp, ConditionId, ConditionOp, EventId, LockId, LockOp,
    ObjectId, ObjectOp, Op, OpKind, SemaphoreId, SemaphoreOp, ThreadId, ThreadOp,
};
use crate::trace::Declared;
use crate::views::Mode;

pub(crate) use breach::Violation;

/// Events that cannot have happened as they stand: the first that cannot, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {}: {reason}", event.number())]
pub struct IllFormed {
    /// The event that cannot have happened.
    pub event: EventId,
    /// Why, for people.
    pub reason: String,
}

#[derive(Clone, Debug, Default)]
struct ThreadState {
    status: Status,
    first: Option<EventId>,
    fork: Option<EventId>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Status {
    #[default]
    New,
    Running,
    Waiting(ConditionId),
    Joined(EventId),
}

#[derive(Clone, Debug, Default)]
struct LockState {
    owner: Option<ThreadId>,
    depth: u32,
    readers: FxHashMap<ThreadId, u32>,
}

#[derive(Clone, Debug, Default)]
struct BarrierState {
    /// Which round each thread inside is in.
    inside: FxHashMap<ThreadId, u32>,
    round: u32,
    arrived: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Life {
    #[default]
    Unborn,
    Live,
    Ended,
}

/// The state that decides whether the next event can happen.
pub(crate) struct Monitor<'a> {
    declared: &'a Declared,
    threads_max: u32,
    sites_max: u32,
    operands_max: [u32; OpKind::ALL.len()],
    threads: IndexVec<ThreadId, ThreadState>,
    locks: IndexVec<LockId, LockState>,
    barriers: IndexVec<BarrierId, BarrierState>,
    /// Tokens now; more may have been there at a start that is not known.
    semaphores: IndexVec<SemaphoreId, u64>,
    objects: IndexVec<ObjectId, Life>,
    blocks: FxHashMap<(ThreadId, BlockId), u32>,
    condition_events: Vec<EventId>,
    passed_count: usize,
}

impl<'a> Monitor<'a> {
    pub(crate) fn new(names: &Names, declared: &'a Declared) -> Self {
        let semaphores = names
            .semaphores
            .entries()
            .map(|(id, _)| declared.start(id).map_or(0, u64::from))
            .collect();
        Self {
            declared,
            threads_max: names.threads.len() as u32,
            sites_max: names.sites.len() as u32,
            operands_max: OpKind::ALL.map(|kind| names.count(kind.operand()) as u32),
            threads: IndexVec::from_elem(ThreadState::default(), names.threads.len()),
            locks: IndexVec::from_elem(LockState::default(), names.locks.len()),
            barriers: IndexVec::from_elem(BarrierState::default(), names.barriers.len()),
            semaphores,
            objects: IndexVec::from_elem(Life::default(), names.objects.len()),
            blocks: FxHashMap::default(),
            condition_events: Vec::new(),
            passed_count: 0,
        }
    }

    /// The events on condition variables that were let through, in order.
    pub(crate) fn condition_events(&self) -> &[EventId] {
        &self.condition_events
    }

    /// How many events [`Monitor::check_all`] let through.
    pub(crate) const fn passed_count(&self) -> usize {
        self.passed_count
    }

    /// The condition that `thread` waits on now, if it does.
    pub(crate) fn waits_on(&self, thread: ThreadId) -> Option<ConditionId> {
        match self.threads[thread].status {
            Status::Waiting(condition) => Some(condition),
            _ => None,
        }
    }

    /// How often `thread` holds `lock` in `mode` now.
    pub(crate) fn depth(&self, lock: LockId, thread: ThreadId, mode: Mode) -> u32 {
        let state = &self.locks[lock];
        match mode {
            Mode::Exclusive if state.owner == Some(thread) => state.depth,
            Mode::Exclusive => 0,
            Mode::Shared => state.readers.get(&thread).copied().unwrap_or(0),
        }
    }

    /// Takes `lock` from `holder`, whatever that does; says how, and how often, it was held.
    pub(crate) fn give_away(&mut self, lock: LockId, holder: ThreadId) -> (Mode, u32) {
        let state = &mut self.locks[lock];
        if state.owner == Some(holder) {
            state.owner = None;
            return (Mode::Exclusive, std::mem::take(&mut state.depth));
        }
        (Mode::Shared, state.readers.remove(&holder).unwrap_or(0))
    }

    /// Lets all of `columns` happen, or names the first event that cannot.
    pub(crate) fn check_all(&mut self, columns: &Columns) -> Result<(), (EventId, Violation)> {
        for index in 0..columns.len() {
            self.passed_count = index;
            let id = EventId::from_index(index);
            let (thread, code) = (columns.threads[index], columns.codes[index]);
            let operand = columns.operands[index];
            if thread >= self.threads_max {
                return Err((id, Violation::UnknownThread));
            }
            if operand >= self.operands_max[code.kind() as usize] {
                return Err((id, Violation::UnknownOperand(code.kind())));
            }
            if columns.sites[index] >= self.sites_max {
                return Err((id, Violation::UnknownSite));
            }
            let thread = ThreadId::from_index(thread as usize);
            // Most events are accesses of threads that run; they need nothing more.
            if code.kind() <= OpKind::Fence && self.threads[thread].status == Status::Running {
                continue;
            }
            self.step(id, thread, Op::decode(code, operand))?;
        }
        self.passed_count = columns.len();
        Ok(())
    }

    /// Lets `op` happen next, or says why it cannot and changes nothing.
    pub(crate) fn step(
        &mut self,
        id: EventId,
        thread: ThreadId,
        op: Op,
    ) -> Result<(), (EventId, Violation)> {
        match self.check_thread(thread, op) {
            ControlFlow::Continue(()) => {}
            ControlFlow::Break(breach) => return Err((id, breach)),
        }
        self.apply(id, thread, op)?;
        let state = &mut self.threads[thread];
        state.first.get_or_insert(id);
        if state.status == Status::New {
            state.status = Status::Running;
        }
        Ok(())
    }

    fn check_thread(&self, thread: ThreadId, op: Op) -> ControlFlow<Violation> {
        match self.threads[thread].status {
            Status::New | Status::Running => match op {
                Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, c) => {
                    ControlFlow::Break(Violation::NotWaiting(c))
                }
                _ => ControlFlow::Continue(()),
            },
            Status::Waiting(on) => match op {
                Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, c) if c == on => {
                    ControlFlow::Continue(())
                }
                Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, c) => {
                    ControlFlow::Break(Violation::NotWaiting(c))
                }
                _ => ControlFlow::Break(Violation::StillWaiting(on)),
            },
            Status::Joined(join) => ControlFlow::Break(Violation::AfterJoin { thread, join }),
        }
    }

    fn apply(&mut self, id: EventId, thread: ThreadId, op: Op) -> Result<(), (EventId, Violation)> {
        match op {
            Op::Access(..)
            | Op::Fence(_)
            | Op::Lock(LockOp::Request, _)
            | Op::Branch
            | Op::Let(_) => Ok(()),
            Op::Lock(LockOp::Acquire, l) => self.acquire(thread, l),
            Op::Lock(LockOp::Release, l) => self.release(thread, l),
            Op::Lock(LockOp::AcquireShared, l) => self.acquire_shared(thread, l),
            Op::Lock(LockOp::ReleaseShared, l) => self.release_shared(thread, l),
            Op::Thread(ThreadOp::Fork, child) => return self.fork(id, thread, child),
            Op::Thread(ThreadOp::Join, child) => self.join(id, thread, child),
            Op::Condition(ConditionOp::Wait, c) => {
                self.threads[thread].status = Status::Waiting(c);
                self.condition_events.push(id);
                Ok(())
            }
            Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _) => {
                self.threads[thread].status = Status::Running;
                self.condition_events.push(id);
                Ok(())
            }
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
                self.condition_events.push(id);
                Ok(())
            }
            Op::Barrier(BarrierOp::Arrive, b) => self.arrive(thread, b),
            Op::Barrier(BarrierOp::Depart, b) => self.depart(thread, b),
            Op::Semaphore(SemaphoreOp::Post, s) => {
                self.semaphores[s] += 1;
                Ok(())
            }
            Op::Semaphore(SemaphoreOp::Take, s) => self.take(s),
            Op::Object(ObjectOp::Alloc, o) => match self.objects[o] {
                Life::Unborn => {
                    self.objects[o] = Life::Live;
                    Ok(())
                }
                Life::Live | Life::Ended => Err(Violation::AllocatedTwice(o)),
            },
            Op::Object(ObjectOp::Free, o) => match self.objects[o] {
                Life::Live => {
                    self.objects[o] = Life::Ended;
                    Ok(())
                }
                Life::Unborn | Life::Ended => Err(Violation::NotAllocated(o)),
            },
            Op::Block(BlockOp::Begin, b) => {
                *self.blocks.entry((thread, b)).or_default() += 1;
                Ok(())
            }
            Op::Block(BlockOp::End, b) => match self.blocks.get_mut(&(thread, b)) {
                Some(depth) if *depth > 0 => {
                    *depth -= 1;
                    Ok(())
                }
                _ => Err(Violation::NotBegun(b)),
            },
        }
        .map_err(|breach| (id, breach))
    }

    fn acquire(&mut self, thread: ThreadId, lock: LockId) -> Result<(), Violation> {
        let state = &mut self.locks[lock];
        let others_read = state.readers.len() > usize::from(state.readers.contains_key(&thread));
        let others = || state.readers.keys().copied().filter(|&reader| reader != thread).min();
        let reader = if others_read { others() } else { None };
        match state.owner.filter(|&owner| owner != thread).or(reader) {
            Some(holder) => Err(Violation::Held { lock, holder }),
            None => {
                state.owner = Some(thread);
                state.depth += 1;
                Ok(())
            }
        }
    }

    fn release(&mut self, thread: ThreadId, lock: LockId) -> Result<(), Violation> {
        let state = &mut self.locks[lock];
        if state.owner != Some(thread) {
            return Err(Violation::NotHeld { lock, mode: Mode::Exclusive });
        }
        state.depth -= 1;
        if state.depth == 0 {
            state.owner = None;
        }
        Ok(())
    }

    fn acquire_shared(&mut self, thread: ThreadId, lock: LockId) -> Result<(), Violation> {
        let state = &mut self.locks[lock];
        if let Some(holder) = state.owner.filter(|&owner| owner != thread) {
            return Err(Violation::Held { lock, holder });
        }
        *state.readers.entry(thread).or_default() += 1;
        Ok(())
    }

    fn release_shared(&mut self, thread: ThreadId, lock: LockId) -> Result<(), Violation> {
        let readers = &mut self.locks[lock].readers;
        let Some(depth) = readers.get_mut(&thread) else {
            return Err(Violation::NotHeld { lock, mode: Mode::Shared });
        };
        *depth -= 1;
        if *depth == 0 {
            readers.remove(&thread);
        }
        Ok(())
    }

    fn fork(
        &mut self,
        id: EventId,
        thread: ThreadId,
        child: ThreadId,
    ) -> Result<(), (EventId, Violation)> {
        let state = &mut self.threads[child];
        if let Some(fork) = state.fork {
            return Err((id, Violation::ForkedTwice { thread: child, fork }));
        }
        if let Status::Joined(join) = state.status {
            return Err((id, Violation::ForkedAfterJoin { thread: child, join }));
        }
        if child == thread {
            return Err((id, Violation::ForksItself));
        }
        if let Some(early) = state.first {
            return Err((early, Violation::BeforeFork { thread: child, fork: id }));
        }
        state.fork = Some(id);
        Ok(())
    }

    fn join(&mut self, id: EventId, thread: ThreadId, child: ThreadId) -> Result<(), Violation> {
        if child == thread {
            return Err(Violation::JoinsItself);
        }
        let status = &mut self.threads[child].status;
        match *status {
            Status::Joined(_) => {}
            Status::Waiting(condition) => {
                return Err(Violation::JoinsWaiting { thread: child, condition });
            }
            Status::New | Status::Running => *status = Status::Joined(id),
        }
        Ok(())
    }

    fn arrive(&mut self, thread: ThreadId, barrier: BarrierId) -> Result<(), Violation> {
        let parties = self.declared.parties(barrier);
        let state = &mut self.barriers[barrier];
        if state.inside.contains_key(&thread) {
            return Err(Violation::StillInside(barrier));
        }
        if parties == Some(state.arrived) {
            state.round += 1;
            state.arrived = 0;
        }
        state.inside.insert(thread, state.round);
        state.arrived += 1;
        Ok(())
    }

    fn depart(&mut self, thread: ThreadId, barrier: BarrierId) -> Result<(), Violation> {
        let state = &mut self.barriers[barrier];
        let Some(&round) = state.inside.get(&thread) else {
            return Err(Violation::NotArrived(barrier));
        };
        if round == state.round {
            let arrived = state.arrived;
            match self.declared.parties(barrier) {
                Some(parties) if arrived < parties => {
                    return Err(Violation::TooFewArrived { barrier, arrived, parties });
                }
                // Of unknown parties, any who have arrived may go.
                Some(_) | None => {}
            }
        }
        state.inside.remove(&thread);
        Ok(())
    }

    fn take(&mut self, semaphore: SemaphoreId) -> Result<(), Violation> {
        match self.semaphores[semaphore].checked_sub(1) {
            Some(left) => {
                self.semaphores[semaphore] = left;
                Ok(())
            }
            // A start value that is not known was at least what was taken of it.
            None if self.declared.start(semaphore).is_none() => Ok(()),
            None => Err(Violation::BelowZero(semaphore)),
        }
    }
}
