//! Well-formedness: can these events have happened, one after the other, as they stand?
//!
//! A [`Monitor`] keeps who holds which lock, which threads run, wait or are done, what is at each
//! barrier and in each semaphore, and refuses an event that contradicts it. Which notify woke which
//! thread is not its business: for a whole trace that needs to look ahead ([`crate::wait_matching`]).
//!
//! Linear in the events; accesses to variables touch only their thread's state. Memory grows with
//! the things that events speak of, not with the events.

use reweave_base::{FxHashMap, Id, IndexVec};

use crate::columns::Columns;
use crate::names::Names;
use crate::op::{
    BarrierId, BarrierOp, BlockId, ConditionId, ConditionOp, EventId, LockId, LockOp, Marker,
    ObjectId, ObjectOp, Op, OpKind, SemaphoreId, SemaphoreOp, ThreadId, ThreadOp,
};
use crate::trace::Declared;
use crate::views::Mode;

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
    /// How many arrivals end a generation, where that is known.
    parties: Option<u32>,
    /// The generation that each thread inside is in.
    inside: FxHashMap<ThreadId, u32>,
    generation: u32,
    arrived: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct SemaphoreState {
    /// Tokens now; more may have been there at a start that is not known.
    count: u64,
    is_start_known: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Life {
    #[default]
    Unborn,
    Live,
    Ended,
}

/// The state that decides whether the next event can happen.
///
/// It knows no names: whatever an event speaks of is there from then on.
#[derive(Debug, Default)]
pub struct Monitor {
    threads: IndexVec<ThreadId, ThreadState>,
    locks: IndexVec<LockId, LockState>,
    barriers: IndexVec<BarrierId, BarrierState>,
    semaphores: IndexVec<SemaphoreId, SemaphoreState>,
    objects: IndexVec<ObjectId, Life>,
    blocks: FxHashMap<(ThreadId, BlockId), u32>,
}

impl Monitor {
    /// Nothing happened yet; semaphores and barriers are as `declared`.
    #[must_use]
    pub fn new(declared: &Declared) -> Self {
        let mut monitor = Self::default();
        for (semaphore, start) in declared.starts.entries() {
            start.iter().for_each(|&start| monitor.declare_start(semaphore, start));
        }
        for (barrier, parties) in declared.parties.entries() {
            parties.iter().for_each(|&parties| monitor.declare_parties(barrier, parties));
        }
        monitor
    }

    /// Says what `semaphore`, of which no event spoke yet, started at.
    pub fn declare_start(&mut self, semaphore: SemaphoreId, start: u32) {
        let state = SemaphoreState { count: u64::from(start), is_start_known: true };
        *self.semaphores.get_or_default(semaphore) = state;
    }

    /// Says how many arrivals end a generation of `barrier`, of which no event spoke yet.
    pub fn declare_parties(&mut self, barrier: BarrierId, parties: u32) {
        self.barriers.get_or_default(barrier).parties = Some(parties);
    }

    /// The condition that `thread` waits on now, if it does.
    #[must_use]
    pub fn waits_on(&self, thread: ThreadId) -> Option<ConditionId> {
        match self.threads.get(thread)?.status {
            Status::Waiting(condition) => Some(condition),
            _ => None,
        }
    }

    /// How often `thread` holds `lock` in `mode` now.
    #[must_use]
    pub fn depth(&self, lock: LockId, thread: ThreadId, mode: Mode) -> u32 {
        let Some(state) = self.locks.get(lock) else { return 0 };
        match mode {
            Mode::Exclusive if state.owner == Some(thread) => state.depth,
            Mode::Exclusive => 0,
            Mode::Shared => state.readers.get(&thread).copied().unwrap_or(0),
        }
    }

    /// Takes `lock` from `holder`, whatever that does; says how, and how often, it was held.
    pub(crate) fn force_release(&mut self, lock: LockId, holder: ThreadId) -> (Mode, u32) {
        let state = self.locks.get_or_default(lock);
        if state.owner == Some(holder) {
            state.owner = None;
            return (Mode::Exclusive, std::mem::take(&mut state.depth));
        }
        (Mode::Shared, state.readers.remove(&holder).unwrap_or(0))
    }

    /// Whether `thread` runs, so that a plain access of it can certainly happen.
    #[inline]
    fn is_running(&self, thread: ThreadId) -> bool {
        self.threads.get(thread).is_some_and(|state| state.status == Status::Running)
    }

    /// Lets `op` of `thread`, the event `id`, happen next; or says why it cannot, and changes
    /// nothing.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn step(&mut self, id: EventId, thread: ThreadId, op: Op) -> Result<(), Violation> {
        let ends_wait = match op {
            Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, condition) => Some(condition),
            _ => None,
        };
        match (self.threads.get_or_default(thread).status, ends_wait) {
            (Status::Joined(join), _) => return Err(Violation::AfterJoin { thread, join }),
            (Status::Waiting(on), Some(condition)) if on == condition => {}
            (_, Some(condition)) => return Err(Violation::NotWaiting(condition)),
            (Status::Waiting(on), None) => return Err(Violation::StillWaiting(on)),
            (Status::New | Status::Running, None) => {}
        }
        self.apply(id, thread, op)?;
        let state = &mut self.threads[thread];
        state.first.get_or_insert(id);
        if state.status == Status::New {
            state.status = Status::Running;
        }
        Ok(())
    }

    fn apply(&mut self, id: EventId, thread: ThreadId, op: Op) -> Result<(), Violation> {
        match op {
            Op::Access(..)
            | Op::Fence(_)
            | Op::Lock(LockOp::Request | LockOp::RequestExclusive, _)
            | Op::Marker(Marker::Branch | Marker::Timed | Marker::Unchecked | Marker::Let(_)) => {
                Ok(())
            }
            Op::Lock(LockOp::Acquire, l) => self.acquire(thread, l),
            Op::Lock(LockOp::Release, l) => self.release(thread, l),
            Op::Lock(LockOp::AcquireShared, l) => self.acquire_shared(thread, l),
            Op::Lock(LockOp::ReleaseShared, l) => self.release_shared(thread, l),
            Op::Thread(ThreadOp::Fork, child) => self.fork(id, thread, child),
            Op::Thread(ThreadOp::Join, child) => self.join(id, thread, child),
            Op::Condition(op, condition) => {
                match op {
                    ConditionOp::Wait => self.threads[thread].status = Status::Waiting(condition),
                    ConditionOp::Wake | ConditionOp::Timeout => {
                        self.threads[thread].status = Status::Running;
                    }
                    ConditionOp::Notify | ConditionOp::NotifyAll => {}
                }
                Ok(())
            }
            Op::Barrier(BarrierOp::Arrive, b) => self.arrive(thread, b),
            Op::Barrier(BarrierOp::Depart, b) => self.depart(thread, b),
            Op::Semaphore(SemaphoreOp::Post, s) => {
                self.semaphores.get_or_default(s).count += 1;
                Ok(())
            }
            Op::Semaphore(SemaphoreOp::Take, s) => self.take(s),
            Op::Object(op, o) => {
                let life = self.objects.get_or_default(o);
                *life = match (op, *life) {
                    (ObjectOp::Alloc, Life::Unborn) => Life::Live,
                    (ObjectOp::Alloc, _) => return Err(Violation::AllocatedTwice(o)),
                    (ObjectOp::Free, Life::Ended) => return Err(Violation::FreedTwice(o)),
                    // Perhaps nobody saw it allocated: a mutex may be there from the start.
                    (ObjectOp::Free, _) => Life::Ended,
                };
                Ok(())
            }
            Op::Marker(Marker::Begin(b)) => {
                *self.blocks.entry((thread, b)).or_default() += 1;
                Ok(())
            }
            Op::Marker(Marker::End(b)) => match self.blocks.get_mut(&(thread, b)) {
                Some(depth) if *depth > 0 => {
                    *depth -= 1;
                    Ok(())
                }
                _ => Err(Violation::NotBegun(b)),
            },
        }
    }

    fn acquire(&mut self, thread: ThreadId, lock: LockId) -> Result<(), Violation> {
        let state = self.locks.get_or_default(lock);
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
        let state = self.locks.get_or_default(lock);
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
        let state = self.locks.get_or_default(lock);
        if let Some(holder) = state.owner.filter(|&owner| owner != thread) {
            return Err(Violation::Held { lock, holder });
        }
        *state.readers.entry(thread).or_default() += 1;
        Ok(())
    }

    fn release_shared(&mut self, thread: ThreadId, lock: LockId) -> Result<(), Violation> {
        let readers = &mut self.locks.get_or_default(lock).readers;
        let Some(depth) = readers.get_mut(&thread) else {
            return Err(Violation::NotHeld { lock, mode: Mode::Shared });
        };
        *depth -= 1;
        if *depth == 0 {
            readers.remove(&thread);
        }
        Ok(())
    }

    fn fork(&mut self, id: EventId, thread: ThreadId, child: ThreadId) -> Result<(), Violation> {
        let state = self.threads.get_or_default(child);
        if let Some(fork) = state.fork {
            return Err(Violation::ForkedTwice { thread: child, fork });
        }
        if let Status::Joined(join) = state.status {
            return Err(Violation::ForkedAfterJoin { thread: child, join });
        }
        if child == thread {
            return Err(Violation::ForksItself);
        }
        if let Some(first) = state.first {
            return Err(Violation::BeforeFork { thread: child, first, fork: id });
        }
        state.fork = Some(id);
        Ok(())
    }

    fn join(&mut self, id: EventId, thread: ThreadId, child: ThreadId) -> Result<(), Violation> {
        if child == thread {
            return Err(Violation::JoinsItself);
        }
        let status = &mut self.threads.get_or_default(child).status;
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
        let state = self.barriers.get_or_default(barrier);
        if state.inside.contains_key(&thread) {
            return Err(Violation::StillInside(barrier));
        }
        if state.parties == Some(state.arrived) {
            state.generation += 1;
            state.arrived = 0;
        }
        state.inside.insert(thread, state.generation);
        state.arrived += 1;
        Ok(())
    }

    fn depart(&mut self, thread: ThreadId, barrier: BarrierId) -> Result<(), Violation> {
        let state = self.barriers.get_or_default(barrier);
        let Some(&generation) = state.inside.get(&thread) else {
            return Err(Violation::NotArrived(barrier));
        };
        let arrived = state.arrived;
        // Where the number of parties is not known, any thread that has arrived may go.
        if let Some(parties) = state.parties.filter(|&parties| arrived < parties)
            && generation == state.generation
        {
            return Err(Violation::TooFewArrived { barrier, arrived, parties });
        }
        state.inside.remove(&thread);
        Ok(())
    }

    fn take(&mut self, semaphore: SemaphoreId) -> Result<(), Violation> {
        let state = self.semaphores.get_or_default(semaphore);
        match state.count.checked_sub(1) {
            Some(left) => state.count = left,
            None if state.is_start_known => return Err(Violation::BelowZero(semaphore)),
            // A start value that is not known was at least what was taken of it.
            None => {}
        }
        Ok(())
    }
}

/// How far [`check`] got, and what it saw on the way.
pub(crate) struct Checked {
    /// The first event that cannot have happened, and why.
    pub(crate) violation: Option<(EventId, Violation)>,
    /// How many events can have happened before it.
    pub(crate) passed_count: usize,
    /// Those of them that are on condition variables.
    pub(crate) condition_events: Vec<EventId>,
}

/// Lets all of `columns` happen, up to the first event that cannot.
pub(crate) fn check(columns: &Columns, names: &Names, declared: &Declared) -> Checked {
    let (threads_max, sites_max) = (names.threads.len() as u32, names.sites.len() as u32);
    let operands_max = OpKind::ALL.map(|kind| names.count(kind.operand()) as u32);
    let mut monitor = Monitor::new(declared);
    let mut condition_events = Vec::new();
    for index in 0..columns.len() {
        let id = EventId::from_index(index);
        let (thread, code) = (columns.threads[index], columns.codes[index]);
        let operand = columns.operands[index];
        let result = if thread >= threads_max {
            Err(Violation::UnknownThread)
        } else if operand >= operands_max[code.kind() as usize] {
            Err(Violation::UnknownOperand(code.kind()))
        } else if columns.sites[index] >= sites_max {
            Err(Violation::UnknownSite)
        } else {
            let thread = ThreadId::from_index(thread as usize);
            // Most events are accesses of threads that run; they need nothing more.
            if code.kind() <= OpKind::Fence && monitor.is_running(thread) {
                continue;
            }
            let op = Op::decode(code, operand);
            if let Op::Condition(..) = op {
                condition_events.push(id);
            }
            monitor.step(id, thread, op)
        };
        if let Err(violation) = result {
            condition_events.pop_if(|last| *last == id);
            let violation = Some((violation.event(id), violation));
            return Checked { violation, passed_count: index, condition_events };
        }
    }
    Checked { violation: None, passed_count: columns.len(), condition_events }
}

/// A rule of the trace model that an event breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// There are more events than a trace can hold.
    TooManyEvents,
    /// Its thread has no name.
    UnknownThread,
    /// Its operand has no name.
    UnknownOperand(OpKind),
    /// Its location has no name.
    UnknownSite,
    /// A thread did something, at first `first`, before it was forked.
    BeforeFork {
        /// The thread.
        thread: ThreadId,
        /// Its first event.
        first: EventId,
        /// The fork that comes too late.
        fork: EventId,
    },
    /// A thread does something after it was joined.
    AfterJoin {
        /// The thread.
        thread: ThreadId,
        /// The join.
        join: EventId,
    },
    /// A thread is forked a second time.
    ForkedTwice {
        /// The thread.
        thread: ThreadId,
        /// The first fork.
        fork: EventId,
    },
    /// A thread is forked after it was joined.
    ForkedAfterJoin {
        /// The thread.
        thread: ThreadId,
        /// The join.
        join: EventId,
    },
    /// A thread forks itself.
    ForksItself,
    /// A thread joins itself.
    JoinsItself,
    /// A thread is joined that still waits.
    JoinsWaiting {
        /// The thread.
        thread: ThreadId,
        /// What it waits on.
        condition: ConditionId,
    },
    /// A lock is acquired that another thread holds.
    Held {
        /// The lock.
        lock: LockId,
        /// Who holds it.
        holder: ThreadId,
    },
    /// A lock is released that its thread does not hold so.
    NotHeld {
        /// The lock.
        lock: LockId,
        /// The mode of the release.
        mode: Mode,
    },
    /// The thread waits on this condition, and does something else.
    StillWaiting(ConditionId),
    /// The thread does not wait on this condition, and its wait ends.
    NotWaiting(ConditionId),
    /// The thread wakes though no notify is left to have woken it.
    NotNotified(ConditionId),
    /// The thread arrives at a barrier from which it has not departed.
    StillInside(BarrierId),
    /// The thread departs from a barrier at which it has not arrived.
    NotArrived(BarrierId),
    /// The thread departs from a barrier before all have arrived.
    TooFewArrived {
        /// The barrier.
        barrier: BarrierId,
        /// How many have arrived.
        arrived: u32,
        /// How many must.
        parties: u32,
    },
    /// A semaphore at zero is taken from.
    BelowZero(SemaphoreId),
    /// An object is allocated a second time.
    AllocatedTwice(ObjectId),
    /// An object is freed that was freed before.
    FreedTwice(ObjectId),
    /// A block ends that its thread has not begun.
    NotBegun(BlockId),
}

impl Violation {
    /// The event that cannot have happened, where `event` is the one that was refused.
    pub(crate) const fn event(self, event: EventId) -> EventId {
        match self {
            Self::BeforeFork { first, .. } => first,
            _ => event,
        }
    }

    /// The violation at `event`, in words; other events are called by the numbers of `origin`.
    pub(crate) fn explain(
        self,
        event: EventId,
        names: &Names,
        origin: impl Fn(EventId) -> EventId,
    ) -> IllFormed {
        let number = |id| origin(id).number();
        let thread = |id| names.threads.name(id);
        let reason = match self {
            Self::TooManyEvents => format!("more than {} events", EventId::COUNT_MAX),
            Self::UnknownThread => "its thread has no name in this trace".into(),
            Self::UnknownOperand(kind) => {
                format!("the operand of its `{}` has no name in this trace", kind.as_str())
            }
            Self::UnknownSite => "its location has no name in this trace".into(),
            Self::BeforeFork { thread: t, fork, .. } => {
                format!("thread `{}` runs before its fork at event {}", thread(t), number(fork))
            }
            Self::AfterJoin { thread: t, join } => {
                format!("thread `{}` runs after its join at event {}", thread(t), number(join))
            }
            Self::ForkedTwice { thread: t, fork } => {
                format!("thread `{}` was forked already, at event {}", thread(t), number(fork))
            }
            Self::ForkedAfterJoin { thread: t, join } => {
                format!("forks thread `{}`, which was joined at event {}", thread(t), number(join))
            }
            Self::ForksItself => "a thread cannot fork itself".into(),
            Self::JoinsItself => "a thread cannot wait for its own end".into(),
            Self::JoinsWaiting { thread: t, condition } => {
                let condition = names.conditions.name(condition);
                format!("joins thread `{}`, which still waits on `{condition}`", thread(t))
            }
            Self::Held { lock, holder } => {
                let (lock, holder) = (names.locks.name(lock), thread(holder));
                format!("acquires lock `{lock}`, which thread `{holder}` holds")
            }
            Self::NotHeld { .. }
            | Self::StillWaiting(_)
            | Self::NotWaiting(_)
            | Self::NotNotified(_)
            | Self::StillInside(_)
            | Self::NotArrived(_)
            | Self::TooFewArrived { .. }
            | Self::BelowZero(_)
            | Self::AllocatedTwice(_)
            | Self::FreedTwice(_)
            | Self::NotBegun(_) => self.explain_operand(names),
        };
        IllFormed { event, reason }
    }

    /// Those violations that speak of nothing but the operand.
    fn explain_operand(self, names: &Names) -> String {
        let condition = |id| names.conditions.name(id);
        let barrier = |id| names.barriers.name(id);
        let object = |id| names.objects.name(id);
        match self {
            Self::NotHeld { lock, mode } => {
                let lock = names.locks.name(lock);
                let mode = if mode == Mode::Shared { " in shared mode" } else { "" };
                format!("releases lock `{lock}`, which its thread does not hold{mode}")
            }
            Self::StillWaiting(c) => {
                let condition = condition(c);
                format!("its thread still waits on `{condition}`: expected `wake` or `timeout`")
            }
            Self::NotWaiting(c) => format!("its thread does not wait on `{}`", condition(c)),
            Self::NotNotified(c) => format!(
                "wakes from `{}`, but no notify since its wait is left to have woken it",
                condition(c)
            ),
            Self::StillInside(b) => {
                format!("its thread arrived at `{}` before and has not departed", barrier(b))
            }
            Self::NotArrived(b) => {
                format!("departs from `{}`, where its thread has not arrived", barrier(b))
            }
            Self::TooFewArrived { barrier: b, arrived, parties } => {
                format!("departs from `{}` when {arrived} of {parties} have arrived", barrier(b))
            }
            Self::BelowZero(s) => {
                format!("takes from semaphore `{}`, which is at zero", names.semaphores.name(s))
            }
            Self::AllocatedTwice(o) => format!("object `{}` was alive before", object(o)),
            Self::FreedTwice(o) => format!("object `{}` was freed before", object(o)),
            Self::NotBegun(b) => {
                format!("ends block `{}`, which its thread has not begun", names.blocks.name(b))
            }
            Self::TooManyEvents
            | Self::UnknownThread
            | Self::UnknownOperand(_)
            | Self::UnknownSite
            | Self::BeforeFork { .. }
            | Self::AfterJoin { .. }
            | Self::ForkedTwice { .. }
            | Self::ForkedAfterJoin { .. }
            | Self::ForksItself
            | Self::JoinsItself
            | Self::JoinsWaiting { .. }
            | Self::Held { .. } => unreachable!("`explain` explains these"),
        }
    }
}
