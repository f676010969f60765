//! How clocks travel along the edges of a trace.
//!
//! Every relation of the happens-before family has the same edges: from a release to the acquires
//! after it, and from a *hard* source (a fork, a notify, an arrival, a post, an atomic write, a
//! birth) to what waits for it, and from a thread's end to its joins. They differ in what is sent
//! along each, which the caller says; [`EdgeClocks`] keeps what is on its way.
//!
//! Most events of a trace are accesses, which no edge starts or ends at, and of the others most
//! acquire and release locks. For orders whose clocks hold, with an event, all that comes before it,
//! there are short ways for these: [`EdgeClocks::closed`], [`EdgeClocks::acquire`] and [`EdgeClocks::release`].

use std::mem;

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::views::GenerationId;
use reweave_trace::{
    AccessOp, BarrierOp, ConditionOp, Event, EventId, LockId, LockOp, ObjectId, ObjectOp, Op,
    OpCode, OpKind, SemaphoreOp, ThreadId, ThreadOp, Trace,
};

use crate::clock::VectorClock;

/// The clocks of threads, and those on their way along edges.
#[derive(Debug, Default)]
pub(crate) struct EdgeClocks {
    threads: IndexVec<ThreadId, VectorClock>,
    locks: IndexVec<LockId, LockClocks>,
    /// Of atomic writes and fences that release, while someone has still to acquire them.
    atomics: FxHashMap<EventId, VectorClock>,
    births: IndexVec<ObjectId, Option<Sent>>,
    /// Of notifies, and how many that each woke have still to wake.
    notifies: FxHashMap<EventId, (VectorClock, usize)>,
    /// Of the arrivals of a generation, while something comes after it; as one if clocks are
    /// closed.
    generations: FxHashMap<GenerationId, Vec<Sent>>,
    posts: FxHashMap<EventId, Sent>,
    /// Whether clocks hold, with an event, all that comes before it.
    is_closed: bool,
}

/// A clock on its way along a hard edge. A thread receives nothing from itself that way.
#[derive(Clone, Debug)]
struct Sent {
    by: ThreadId,
    clock: VectorClock,
}

impl Sent {
    fn arrive(&self, thread: ThreadId, clock: &mut VectorClock) {
        if self.by != thread {
            clock.join(&self.clock);
        }
    }
}

/// What the releases of a lock pass on.
#[derive(Clone, Debug, Default)]
struct LockClocks {
    /// Of the last exclusive release, which has seen all releases before it.
    exclusive: VectorClock,
    /// Of the shared releases since.
    shared: VectorClock,
    /// Whose the last exclusive release was and its time, if [`EdgeClocks::release`] took it.
    last: Option<(ThreadId, u32)>,
}

/// The kinds at which edges start or end, as a set of bits.
const EDGES: u32 = {
    let mut kinds = 0;
    let mut at = 0;
    while at < OpKind::ALL.len() {
        kinds |= (has_edge(OpKind::ALL[at]) as u32) << at;
        at += 1;
    }
    kinds
};

/// Whether edges start or end at events of `kind`.
const fn has_edge(kind: OpKind) -> bool {
    use OpKind::*;
    match kind {
        Read | UnknownRead | Write | Request | RequestExclusive | Wait | Timeout | Begin | End
        | Branch | Timed | Unchecked | Let => false,
        Fence | AtomicRead | AtomicWrite | AtomicUpdate | Acquire | Release | AcquireShared
        | ReleaseShared | Fork | Join | Wake | Notify | NotifyAll | Arrive | Depart | Post
        | Take | Alloc | Free => true,
    }
}

impl EdgeClocks {
    /// For clocks that hold, with an event, all that comes before it, the thread's own past too:
    /// [`Self::acquire`] and [`Self::release`] are for these alone.
    pub(crate) fn closed() -> Self {
        Self { is_closed: true, ..Self::default() }
    }

    /// Whether [`Self::receive`] and [`Self::send`] would do nothing for an event of `code`.
    #[inline]
    pub(crate) const fn is_silent(code: OpCode) -> bool {
        EDGES >> code.kind() as u32 & 1 == 0
    }

    /// Adds one event to the clock of `thread`.
    #[inline]
    pub(crate) fn tick(&mut self, thread: ThreadId) -> &VectorClock {
        let clock = self.threads.get_or_default(thread);
        clock.tick(thread);
        clock
    }

    /// Adds what the releases of `lock` passed on to the clock of `thread`, which takes it alone.
    #[inline]
    pub(crate) fn acquire(&mut self, thread: ThreadId, lock: LockId) {
        let clock = self.threads.get_or_default(thread);
        let released = self.locks.get_or_default(lock);
        // Who has seen the release has seen all before it; often it was the thread's own.
        if released.last.is_none_or(|(by, time)| clock.get(by) < time) {
            clock.join(&released.exclusive);
        }
        clock.join(&released.shared);
    }

    /// Passes the clock of `thread` on along `lock`, which it held alone.
    #[inline]
    pub(crate) fn release(&mut self, thread: ThreadId, lock: LockId) -> &VectorClock {
        let clock = self.threads.get_or_default(thread);
        let released = self.locks.get_or_default(lock);
        released.exclusive.copy_from(clock);
        released.shared.clear();
        released.last = Some((thread, clock.get(thread)));
        clock
    }

    /// The clock of `thread` after its events so far, to change it.
    #[inline]
    pub(crate) fn of_thread_mut(&mut self, thread: ThreadId) -> &mut VectorClock {
        self.threads.get_or_default(thread)
    }

    /// Takes out the clock of `thread` after its events so far.
    pub(crate) fn take(&mut self, thread: ThreadId) -> VectorClock {
        mem::take(self.threads.get_or_default(thread))
    }

    /// Puts the clock of `thread` back.
    pub(crate) fn put(&mut self, thread: ThreadId, clock: VectorClock) -> &VectorClock {
        let own = self.threads.get_or_default(thread);
        *own = clock;
        own
    }

    /// The clock of `thread` after its events so far, if it has any.
    pub(crate) fn of_thread(&self, thread: ThreadId) -> Option<&VectorClock> {
        self.threads.get(thread)
    }

    /// Adds to `clock` what comes before `event` by an edge that ends at it.
    pub(crate) fn receive(
        &mut self,
        trace: &Trace,
        event: EventId,
        Event { thread, op, .. }: Event,
        clock: &mut VectorClock,
    ) {
        match op {
            Op::Lock(LockOp::Acquire, lock) => {
                let released = self.locks.get_or_default(lock);
                clock.join(&released.exclusive);
                clock.join(&released.shared);
            }
            Op::Lock(LockOp::AcquireShared, lock) => {
                clock.join(&self.locks.get_or_default(lock).exclusive);
            }
            Op::Thread(ThreadOp::Join, child) => {
                let lifetime = trace.lifetime(child);
                let forked_here =
                    lifetime.fork.is_some_and(|fork| trace.event(fork).thread == thread);
                // A thread that never runs passes its fork on to its join, but not to itself.
                if lifetime.first.is_some() || !forked_here {
                    clock.join(self.threads.get_or_default(child));
                }
            }
            Op::Condition(ConditionOp::Wake, _) => self.wake(trace, event, clock),
            Op::Barrier(..) => self.pass_barrier(trace, event, clock),
            Op::Semaphore(SemaphoreOp::Take, _) => {
                let post = trace.signals().post(event);
                if let Some(posted) = post.and_then(|post| self.posts.remove(&post)) {
                    posted.arrive(thread, clock);
                }
            }
            Op::Access(AccessOp::AtomicRead(_) | AccessOp::AtomicUpdate(_), _) | Op::Fence(_) => {
                self.synchronize(trace, event, clock);
            }
            Op::Object(ObjectOp::Free, object) => {
                if let Some(born) = self.births.get_or_default(object).take() {
                    born.arrive(thread, clock);
                }
            }
            Op::Access(
                AccessOp::Read | AccessOp::Write | AccessOp::UnknownRead | AccessOp::AtomicWrite(_),
                _,
            )
            | Op::Lock(
                LockOp::Release
                | LockOp::ReleaseShared
                | LockOp::Request
                | LockOp::RequestExclusive,
                _,
            )
            | Op::Thread(ThreadOp::Fork, _)
            | Op::Condition(
                ConditionOp::Wait
                | ConditionOp::Timeout
                | ConditionOp::Notify
                | ConditionOp::NotifyAll,
                _,
            )
            | Op::Semaphore(SemaphoreOp::Post, _)
            | Op::Object(ObjectOp::Alloc, _)
            | Op::Marker(_) => {}
        }
    }

    /// Keeps what events that come after `event` by an edge that starts at it will receive:
    /// `released` along the edges of a lock, `hard` along all others.
    pub(crate) fn send(
        &mut self,
        trace: &Trace,
        event: EventId,
        Event { thread, op, .. }: Event,
        released: &VectorClock,
        hard: &VectorClock,
    ) {
        match op {
            Op::Lock(LockOp::Release, lock) => {
                let clocks = self.locks.get_or_default(lock);
                clocks.exclusive.copy_from(released);
                clocks.shared.clear();
                clocks.last = None;
            }
            Op::Lock(LockOp::ReleaseShared, lock) => {
                self.locks.get_or_default(lock).shared.join(released);
            }
            Op::Thread(ThreadOp::Fork, child) => self.threads.get_or_default(child).join(hard),
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
                let woken = trace.signals().woken(event).len();
                if woken > 0 {
                    self.notifies.insert(event, (hard.clone(), woken));
                }
            }
            Op::Barrier(BarrierOp::Arrive, _) => self.arrive(trace, event, thread, hard),
            Op::Semaphore(SemaphoreOp::Post, _) => {
                if trace.signals().is_taken(event) {
                    self.posts.insert(event, Sent { by: thread, clock: hard.clone() });
                }
            }
            Op::Access(AccessOp::AtomicWrite(_) | AccessOp::AtomicUpdate(_), _) | Op::Fence(_) => {
                if trace.synchronization().last_use(event).is_some() {
                    self.atomics.insert(event, hard.clone());
                }
            }
            Op::Object(ObjectOp::Alloc, object) => {
                replace(self.births.get_or_default(object), thread, hard);
            }
            Op::Access(
                AccessOp::Read | AccessOp::Write | AccessOp::UnknownRead | AccessOp::AtomicRead(_),
                _,
            )
            | Op::Lock(
                LockOp::Acquire
                | LockOp::AcquireShared
                | LockOp::Request
                | LockOp::RequestExclusive,
                _,
            )
            | Op::Thread(ThreadOp::Join, _)
            | Op::Condition(ConditionOp::Wait | ConditionOp::Wake | ConditionOp::Timeout, _)
            | Op::Barrier(BarrierOp::Depart, _)
            | Op::Semaphore(SemaphoreOp::Take, _)
            | Op::Object(ObjectOp::Free, _)
            | Op::Marker(_) => {}
        }
    }

    fn synchronize(&mut self, trace: &Trace, event: EventId, clock: &mut VectorClock) {
        let synchronization = trace.synchronization();
        for release in synchronization.acquired(event) {
            if let Some(released) = self.atomics.get(release) {
                clock.join(released);
            }
            if synchronization.last_use(*release) == Some(event) {
                self.atomics.remove(release);
            }
        }
    }

    fn wake(&mut self, trace: &Trace, event: EventId, clock: &mut VectorClock) {
        let notify = trace.signals().wait_interval(event).and_then(|interval| interval.notify);
        let Some((notified, left)) = notify.and_then(|notify| self.notifies.get_mut(&notify))
        else {
            return;
        };
        clock.join(notified);
        *left -= 1;
        if *left == 0
            && let Some(notify) = notify
        {
            self.notifies.remove(&notify);
        }
    }

    fn arrive(&mut self, trace: &Trace, event: EventId, by: ThreadId, clock: &VectorClock) {
        let waited_for = |&generation: &GenerationId| {
            trace.signals().generation(generation).last_needed.is_some_and(|last| last > event)
        };
        let Some(generation) = trace.signals().own_generation(event).filter(waited_for) else {
            return;
        };
        let arrivals = self.generations.entry(generation).or_default();
        match arrivals.last_mut() {
            Some(all) if self.is_closed => all.clock.join(clock),
            _ => arrivals.push(Sent { by, clock: clock.clone() }),
        }
    }

    fn pass_barrier(&mut self, trace: &Trace, event: EventId, clock: &mut VectorClock) {
        let Some(needed) = trace.signals().needed_generation(event) else { return };
        for arrived in self.generations.get(&needed).into_iter().flatten() {
            if self.is_closed {
                clock.join(&arrived.clock);
            } else {
                arrived.arrive(trace.event(event).thread, clock);
            }
        }
        if trace.signals().generation(needed).last_needed == Some(event) {
            self.generations.remove(&needed);
        }
    }
}

/// Puts what `by` sends in place of what was sent before, in the memory of that.
fn replace(sent: &mut Option<Sent>, by: ThreadId, clock: &VectorClock) {
    match sent {
        Some(sent) => {
            sent.by = by;
            sent.clock.copy_from(clock);
        }
        None => *sent = Some(Sent { by, clock: clock.clone() }),
    }
}
