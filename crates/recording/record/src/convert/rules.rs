//! What can happen next: the rules of the trace model, one event at a time.
//!
//! A recording can be wrong: code that was not seen takes and releases locks, and threads that
//! run freely are seen in an order that was not quite theirs. What breaks a rule is not passed on.
//! The rules are those of `reweave_trace::TraceBuilder::finish`, which accepts whatever passes here.
//!
//! A wake needs a notify since its wait that woke no other. Among those it takes the earliest; since
//! wakes come in the order of their ends, that explains as many of them as can be explained.

use std::collections::BTreeSet;

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::{
    BarrierId, BarrierOp, BlockId, BlockOp, ConditionId, ConditionOp, LockId, LockOp, ObjectId,
    ObjectOp, Op, SemaphoreId, SemaphoreOp, ThreadId, ThreadOp,
};

/// Why an event cannot have happened.
pub type Impossible = &'static str;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Status {
    #[default]
    Running,
    /// On this condition, since this many events on conditions.
    Waiting(ConditionId, u64),
    Joined,
}

#[derive(Clone, Copy, Debug, Default)]
struct ThreadState {
    status: Status,
    has_run: bool,
    is_forked: bool,
}

#[derive(Clone, Debug, Default)]
struct LockState {
    owner: Option<ThreadId>,
    depth: u32,
    readers: FxHashMap<ThreadId, u32>,
}

#[derive(Clone, Debug, Default)]
struct BarrierState {
    parties: Option<u32>,
    inside: FxHashMap<ThreadId, u32>,
    round: u32,
    arrived: u32,
}

#[derive(Clone, Debug, Default)]
struct SemaphoreState {
    is_known: bool,
    count: u64,
}

#[derive(Clone, Debug, Default)]
struct ConditionState {
    waiting_count: u32,
    /// Notifies that woke nobody yet, while somebody waits.
    notifies: BTreeSet<u64>,
    all_notified: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Life {
    #[default]
    Unborn,
    Live,
    Ended,
}

/// How a thread holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    Exclusive,
    Shared,
}

/// The state that decides what can happen next.
#[derive(Debug, Default)]
pub struct Rules {
    threads: IndexVec<ThreadId, ThreadState>,
    locks: IndexVec<LockId, LockState>,
    barriers: IndexVec<BarrierId, BarrierState>,
    semaphores: IndexVec<SemaphoreId, SemaphoreState>,
    conditions: IndexVec<ConditionId, ConditionState>,
    objects: IndexVec<ObjectId, Life>,
    blocks: FxHashMap<(ThreadId, BlockId), u32>,
    condition_events: u64,
}

impl Rules {
    pub fn declare_start(&mut self, semaphore: SemaphoreId, start: u32) {
        let state = self.semaphores.get_or_default(semaphore);
        *state = SemaphoreState { is_known: true, count: u64::from(start) };
    }

    pub fn declare_parties(&mut self, barrier: BarrierId, parties: u32) {
        self.barriers.get_or_default(barrier).parties = Some(parties);
    }

    /// The condition on which `thread` waits now.
    pub fn waits_on(&mut self, thread: ThreadId) -> Option<ConditionId> {
        match self.threads.get_or_default(thread).status {
            Status::Waiting(condition, _) => Some(condition),
            Status::Running | Status::Joined => None,
        }
    }

    /// How `thread` holds `lock` now.
    pub fn hold(&mut self, thread: ThreadId, lock: LockId) -> Option<Hold> {
        let state = self.locks.get_or_default(lock);
        if state.owner == Some(thread) {
            Some(Hold::Exclusive)
        } else {
            state.readers.contains_key(&thread).then_some(Hold::Shared)
        }
    }

    /// Lets `op` happen next, or says why it cannot and changes nothing.
    pub fn step(&mut self, thread: ThreadId, op: Op) -> Result<(), Impossible> {
        match (self.threads.get_or_default(thread).status, op) {
            (Status::Joined, _) => return Err("of a thread that was joined"),
            (
                Status::Waiting(on, _),
                Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, of),
            ) if on == of => {}
            (Status::Waiting(..), _) => return Err("of a thread that waits"),
            (Status::Running, Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _)) => {
                return Err("wake without a wait");
            }
            (Status::Running, _) => {}
        }
        self.apply(thread, op)?;
        self.threads[thread].has_run = true;
        Ok(())
    }

    fn apply(&mut self, thread: ThreadId, op: Op) -> Result<(), Impossible> {
        match op {
            Op::Access(..)
            | Op::Fence(_)
            | Op::Lock(LockOp::Request, _)
            | Op::Branch
            | Op::Let(_) => Ok(()),
            Op::Lock(LockOp::Acquire, lock) => self.acquire(thread, lock),
            Op::Lock(LockOp::Release, lock) => self.release(thread, lock),
            Op::Lock(LockOp::AcquireShared, lock) => self.acquire_shared(thread, lock),
            Op::Lock(LockOp::ReleaseShared, lock) => self.release_shared(thread, lock),
            Op::Thread(ThreadOp::Fork, child) => self.fork(thread, child),
            Op::Thread(ThreadOp::Join, child) => self.join(thread, child),
            Op::Condition(..) => self.step_condition(thread, op),
            Op::Barrier(BarrierOp::Arrive, barrier) => self.arrive(thread, barrier),
            Op::Barrier(BarrierOp::Depart, barrier) => self.depart(thread, barrier),
            Op::Semaphore(SemaphoreOp::Post, semaphore) => {
                self.semaphores.get_or_default(semaphore).count += 1;
                Ok(())
            }
            Op::Semaphore(SemaphoreOp::Take, semaphore) => self.take(semaphore),
            Op::Object(ObjectOp::Alloc, object) => self.live(object, Life::Unborn, Life::Live),
            Op::Object(ObjectOp::Free, object) => self.live(object, Life::Live, Life::Ended),
            Op::Block(BlockOp::Begin, block) => {
                *self.blocks.entry((thread, block)).or_default() += 1;
                Ok(())
            }
            Op::Block(BlockOp::End, block) => match self.blocks.get_mut(&(thread, block)) {
                Some(depth) if *depth > 0 => {
                    *depth -= 1;
                    Ok(())
                }
                _ => Err("end of a block that did not begin"),
            },
        }
    }

    fn acquire(&mut self, thread: ThreadId, lock: LockId) -> Result<(), Impossible> {
        let state = self.locks.get_or_default(lock);
        let others = state.readers.len() - usize::from(state.readers.contains_key(&thread));
        if state.owner.is_some_and(|owner| owner != thread) || others > 0 {
            return Err("acquire of a lock that another thread holds");
        }
        state.owner = Some(thread);
        state.depth += 1;
        Ok(())
    }

    fn release(&mut self, thread: ThreadId, lock: LockId) -> Result<(), Impossible> {
        let state = self.locks.get_or_default(lock);
        if state.owner != Some(thread) {
            return Err("release of a lock that its thread does not hold");
        }
        state.depth -= 1;
        if state.depth == 0 {
            state.owner = None;
        }
        Ok(())
    }

    fn acquire_shared(&mut self, thread: ThreadId, lock: LockId) -> Result<(), Impossible> {
        let state = self.locks.get_or_default(lock);
        if state.owner.is_some_and(|owner| owner != thread) {
            return Err("acquire of a lock that another thread holds");
        }
        *state.readers.entry(thread).or_default() += 1;
        Ok(())
    }

    fn release_shared(&mut self, thread: ThreadId, lock: LockId) -> Result<(), Impossible> {
        let readers = &mut self.locks.get_or_default(lock).readers;
        let Some(depth) = readers.get_mut(&thread) else {
            return Err("release of a lock that its thread does not hold");
        };
        *depth -= 1;
        if *depth == 0 {
            readers.remove(&thread);
        }
        Ok(())
    }

    fn fork(&mut self, thread: ThreadId, child: ThreadId) -> Result<(), Impossible> {
        let state = self.threads.get_or_default(child);
        if child == thread {
            return Err("fork of oneself");
        }
        if state.is_forked {
            return Err("second fork of a thread");
        }
        if state.has_run || state.status == Status::Joined {
            return Err("fork of a thread that ran before");
        }
        state.is_forked = true;
        Ok(())
    }

    fn join(&mut self, thread: ThreadId, child: ThreadId) -> Result<(), Impossible> {
        if child == thread {
            return Err("join of oneself");
        }
        let state = self.threads.get_or_default(child);
        if let Status::Waiting(..) = state.status {
            return Err("join of a thread that waits");
        }
        state.status = Status::Joined;
        Ok(())
    }

    fn step_condition(&mut self, thread: ThreadId, op: Op) -> Result<(), Impossible> {
        let Op::Condition(_, on) = op else {
            return Ok(());
        };
        let state = self.conditions.get_or_default(on);
        let now = self.condition_events + 1;
        match (op, self.threads[thread].status) {
            (Op::Condition(ConditionOp::Wait, _), _) => {
                state.waiting_count += 1;
                self.threads[thread].status = Status::Waiting(on, now);
            }
            (Op::Condition(ConditionOp::Notify, _), _) if state.waiting_count > 0 => {
                _ = state.notifies.insert(now)
            }
            (Op::Condition(ConditionOp::NotifyAll, _), _) => state.all_notified = now,
            (
                Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _),
                Status::Waiting(_, since),
            ) => {
                if matches!(op, Op::Condition(ConditionOp::Wake, _)) && state.all_notified < since {
                    let notify = state.notifies.range(since..).next().copied();
                    let notify = notify.ok_or("wake without a notify")?;
                    state.notifies.remove(&notify);
                }
                state.waiting_count -= 1;
                if state.waiting_count == 0 {
                    state.notifies.clear();
                }
                self.threads[thread].status = Status::Running;
            }
            _ => {}
        }
        self.condition_events = now;
        Ok(())
    }

    fn arrive(&mut self, thread: ThreadId, barrier: BarrierId) -> Result<(), Impossible> {
        let state = self.barriers.get_or_default(barrier);
        if state.inside.contains_key(&thread) {
            return Err("arrival at a barrier before departure from it");
        }
        if state.parties == Some(state.arrived) {
            state.round += 1;
            state.arrived = 0;
        }
        state.inside.insert(thread, state.round);
        state.arrived += 1;
        Ok(())
    }

    fn depart(&mut self, thread: ThreadId, barrier: BarrierId) -> Result<(), Impossible> {
        let state = self.barriers.get_or_default(barrier);
        let Some(&round) = state.inside.get(&thread) else {
            return Err("departure from a barrier without arrival");
        };
        if round == state.round && state.parties.is_some_and(|parties| state.arrived < parties) {
            return Err("departure from a barrier before all arrived");
        }
        state.inside.remove(&thread);
        Ok(())
    }

    fn take(&mut self, semaphore: SemaphoreId) -> Result<(), Impossible> {
        let state = self.semaphores.get_or_default(semaphore);
        match state.count.checked_sub(1) {
            Some(left) => state.count = left,
            None if state.is_known => return Err("take from a semaphore at zero"),
            None => {}
        }
        Ok(())
    }

    fn live(&mut self, object: ObjectId, from: Life, to: Life) -> Result<(), Impossible> {
        let life = self.objects.get_or_default(object);
        if *life != from {
            return Err("end of an object that is not live");
        }
        *life = to;
        Ok(())
    }
}
