//! The skeleton of a trace: its synchronisation, without the accesses between.
//!
//! Clocks change at steps only: where a section starts or ends, at forks and joins, and at both
//! ends of hard edges. An access has the clock of its thread's last step. What accesses a section
//! holds is kept aside, in [`Accesses`], for rule (a) alone.
//!
//! Every hard edge becomes a message that one event sends and others receive, whatever operation
//! it comes from, so what goes through the skeleton knows two kinds of edges: of locks, and hard.
//!
//! One pass over the events; memory for each step, section, message, and access in a section.

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::views::{GenerationId, SectionId};
use reweave_trace::{
    AccessOp, ConditionOp, Event, EventId, LockId, LockOp, ObjectId, ObjectOp, Op, SemaphoreOp,
    ThreadId, ThreadOp, Trace, VarId,
};

use crate::access::class;

reweave_base::id! {
    /// What is sent along the hard edges that start at one event.
    pub(super) struct MessageId;
}

/// Something that changes clocks. An event may take several steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) event: EventId,
    pub(super) thread: ThreadId,
    /// The event's number in its thread, counted from 1.
    pub(super) time: u32,
    pub(super) action: Action,
}

const _: () = assert!(size_of::<Step>() <= 20, "steps are gone through again and again");

#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Enter(SectionId),
    Leave(SectionId),
    Fork(ThreadId),
    Join(ThreadId),
    Send(MessageId),
    Receive(MessageId),
    /// Receives what all arrivals of a barrier's generation sent.
    Gather(GenerationId),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    pub(super) thread: ThreadId,
    pub(super) lock: LockId,
    pub(super) is_shared: bool,
    pub(super) acquire: EventId,
    /// The acquire's number in its thread, counted from 1.
    pub(super) acquired: u32,
    /// None if it is open at the end.
    pub(super) release: Option<EventId>,
    /// The release's number in its thread, or 0.
    pub(super) released: u32,
    /// From where to where what is accessed in it goes in its thread's log.
    accesses: (u32, u32),
}

impl Section {
    /// Stands in an allocation until the real one is known.
    pub(super) const FILLER: Self =
        match (ThreadId::from_number(1), LockId::from_number(1), EventId::from_number(1)) {
            (Some(thread), Some(lock), Some(acquire)) => {
                let (release, accesses) = (None, (0, 0));
                Self {
                    thread,
                    lock,
                    is_shared: false,
                    acquire,
                    acquired: 0,
                    release,
                    released: 0,
                    accesses,
                }
            }
            _ => unreachable!(),
        };
}

#[derive(Debug)]
pub(super) struct Message {
    pub(super) by: ThreadId,
    /// The last event that receives it; none if nobody does.
    pub(super) last: Option<EventId>,
}

/// What the threads of a trace are like.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    /// How many events it has.
    pub(super) events_count: u32,
    pub(super) last_event: Option<EventId>,
    pub(super) last_join: Option<EventId>,
    forked_by: Option<ThreadId>,
    /// How many sections it is in; at last, how many stay open.
    pub(super) open_count: u32,
}

/// The synchronisation of a trace.
#[derive(Debug)]
pub(super) struct Skeleton {
    /// In observed order.
    pub(super) steps: Vec<Step>,
    /// In the order of their acquires.
    pub(super) sections: IndexVec<SectionId, Section>,
    pub(super) threads: IndexVec<ThreadId, Thread>,
    pub(super) messages: IndexVec<MessageId, Message>,
    /// What the arrivals of each generation send.
    pub(super) generations: IndexVec<GenerationId, Vec<MessageId>>,
    pub(super) locks_count: usize,
}

impl Skeleton {
    /// The event at which `section` ends: its thread's last if it stays open.
    pub(super) fn end(&self, section: SectionId) -> EventId {
        let section = &self.sections[section];
        let last = self.threads[section.thread].last_event;
        section.release.or(last).expect("the thread has its acquire at least")
    }
}

/// What each thread accesses while it is in any section.
#[derive(Debug)]
pub(super) struct Accesses {
    log: IndexVec<ThreadId, Vec<Access>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) var: VarId,
    pub(super) class: u8,
}

impl Accesses {
    /// Those in `section`, in order.
    pub(super) fn of(&self, section: &Section) -> &[Access] {
        let (start, end) = section.accesses;
        &self.log[section.thread][start as usize..end as usize]
    }
}

/// A lock that is held, with how often its holder acquired it.
#[derive(Clone, Copy, Debug)]
struct Hold {
    thread: ThreadId,
    section: SectionId,
    depth: u32,
}

/// The pass over the events.
pub(super) struct Scan<'a> {
    trace: &'a Trace,
    skeleton: Skeleton,
    accesses: Accesses,
    alone: IndexVec<LockId, Option<Hold>>,
    together: IndexVec<LockId, Vec<Hold>>,
    births: IndexVec<ObjectId, Option<MessageId>>,
    /// Of notifies, posts, atomic writes and fences.
    signals: FxHashMap<EventId, MessageId>,
}

impl<'a> Scan<'a> {
    /// The skeleton of `trace`.
    pub(super) fn run(trace: &'a Trace) -> (Skeleton, Accesses) {
        let (threads, locks) = (trace.names().threads.len(), trace.names().locks.len());
        let skeleton = Skeleton {
            steps: Vec::new(),
            sections: IndexVec::new(),
            threads: IndexVec::from_elem(Thread::default(), threads),
            messages: IndexVec::new(),
            generations: IndexVec::new(),
            locks_count: locks,
        };
        let log = IndexVec::from_elem(Vec::new(), threads);
        let mut scan = Self {
            trace,
            skeleton,
            accesses: Accesses { log },
            alone: IndexVec::from_elem(None, locks),
            together: IndexVec::from_elem(Vec::new(), locks),
            births: IndexVec::new(),
            signals: FxHashMap::default(),
        };
        for (id, event) in trace.events() {
            scan.go_on(id, event);
        }
        scan.finish()
    }

    #[inline]
    fn go_on(&mut self, id: EventId, Event { thread, op, .. }: Event) {
        let own = &mut self.skeleton.threads[thread];
        own.events_count += 1;
        own.last_event = Some(id);
        let at = At { event: id, thread, time: own.events_count };
        if let Some(var) = op.var().filter(|_| own.open_count > 0) {
            self.accesses.log[thread].push(Access { var, class: class(op) as u8 });
        }
        self.take(at, op);
    }

    fn take(&mut self, at: At, op: Op) {
        match op {
            Op::Access(
                AccessOp::AtomicRead(_) | AccessOp::AtomicWrite(_) | AccessOp::AtomicUpdate(_),
                _,
            )
            | Op::Fence(_) => self.synchronize(at),
            Op::Lock(LockOp::Acquire, lock) => self.acquire(at, lock, false),
            Op::Lock(LockOp::AcquireShared, lock) => self.acquire(at, lock, true),
            Op::Lock(LockOp::Release, lock) => self.release(at, lock, false),
            Op::Lock(LockOp::ReleaseShared, lock) => self.release(at, lock, true),
            Op::Thread(ThreadOp::Fork, child) => self.fork(at, child),
            Op::Thread(ThreadOp::Join, child) => self.join(at, child),
            Op::Condition(ConditionOp::Wake, _) => {
                let notify = self
                    .trace
                    .signals()
                    .wait_interval(at.event)
                    .and_then(|interval| interval.notify);
                let sent = notify.and_then(|notify| self.signals.get(&notify).copied());
                self.receive(at, sent);
            }
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
                if !self.trace.signals().woken(at.event).is_empty() {
                    let message = self.send(at);
                    self.signals.insert(at.event, message);
                }
            }
            Op::Barrier(..) => self.pass_barrier(at),
            Op::Semaphore(SemaphoreOp::Post, _) => {
                if self.trace.signals().is_taken(at.event) {
                    let message = self.send(at);
                    self.signals.insert(at.event, message);
                }
            }
            Op::Semaphore(SemaphoreOp::Take, _) => {
                let post = self.trace.signals().post(at.event);
                let sent = post.and_then(|post| self.signals.remove(&post));
                self.receive(at, sent);
            }
            Op::Object(ObjectOp::Alloc, object) => {
                *self.births.get_or_default(object) = Some(self.send(at));
            }
            Op::Object(ObjectOp::Free, object) => {
                let born = self.births.get_or_default(object).take();
                self.receive(at, born);
            }
            Op::Access(AccessOp::Read | AccessOp::Write | AccessOp::UnknownRead, _)
            | Op::Lock(LockOp::Request | LockOp::RequestExclusive, _)
            | Op::Condition(ConditionOp::Wait | ConditionOp::Timeout, _)
            | Op::Marker(_) => {}
        }
    }

    /// An atomic access or a fence.
    fn synchronize(&mut self, at: At) {
        let synchronization = self.trace.synchronization();
        for release in synchronization.acquired(at.event) {
            let sent = self.signals.get(release).copied();
            self.receive(at, sent);
        }
        if synchronization.last_use(at.event).is_some() {
            let message = self.send(at);
            self.signals.insert(at.event, message);
        }
    }

    fn fork(&mut self, at: At, child: ThreadId) {
        self.skeleton.threads[child].forked_by = Some(at.thread);
        self.step(at, Action::Fork(child));
    }

    fn step(&mut self, At { event, thread, time }: At, action: Action) {
        self.skeleton.steps.push(Step { event, thread, time, action });
    }

    fn send(&mut self, at: At) -> MessageId {
        let message = self.skeleton.messages.push(Message { by: at.thread, last: None });
        self.step(at, Action::Send(message));
        message
    }

    fn receive(&mut self, at: At, message: Option<MessageId>) {
        let Some(message) = message else { return };
        let sent = &mut self.skeleton.messages[message];
        // A thread receives nothing from itself.
        if sent.by != at.thread {
            sent.last = Some(at.event);
            self.step(at, Action::Receive(message));
        }
    }

    fn pass_barrier(&mut self, at: At) {
        let signals = self.trace.signals();
        if let Some(needed) = signals.needed_generation(at.event) {
            let Skeleton { generations, messages, .. } = &mut self.skeleton;
            for &message in generations.get_or_default(needed).iter() {
                messages[message].last = Some(at.event);
            }
            self.step(at, Action::Gather(needed));
        }
        let own = signals.own_generation(at.event);
        let is_waited_for = |&generation: &GenerationId| {
            signals.generation(generation).last_needed.is_some_and(|last| last > at.event)
        };
        if let Some(generation) = own.filter(is_waited_for) {
            let message = self.send(at);
            self.skeleton.generations.get_or_default(generation).push(message);
        }
    }

    fn join(&mut self, at: At, child: ThreadId) {
        let joined = &mut self.skeleton.threads[child];
        joined.last_join = Some(at.event);
        // A thread that never ran passes its fork on, but not to the thread that forked it.
        if joined.events_count > 0 || joined.forked_by.is_some_and(|by| by != at.thread) {
            self.step(at, Action::Join(child));
        }
    }

    fn acquire(&mut self, at: At, lock: LockId, is_shared: bool) {
        if let Some(hold) = self.hold(at.thread, lock, is_shared) {
            hold.depth += 1;
            return;
        }
        let At { event, thread, time } = at;
        let start = self.accesses.log[thread].len() as u32;
        let section = self.skeleton.sections.push(Section {
            thread,
            lock,
            is_shared,
            acquire: event,
            acquired: time,
            release: None,
            released: 0,
            accesses: (start, start),
        });
        self.skeleton.threads[thread].open_count += 1;
        let hold = Hold { thread, section, depth: 1 };
        if is_shared {
            self.together[lock].push(hold);
        } else {
            self.alone[lock] = Some(hold);
        }
        self.step(at, Action::Enter(section));
    }

    fn release(&mut self, at: At, lock: LockId, is_shared: bool) {
        let hold = self.hold(at.thread, lock, is_shared).expect("a release follows its acquire");
        hold.depth -= 1;
        if hold.depth > 0 {
            return;
        }
        let section = hold.section;
        if is_shared {
            self.together[lock].retain(|hold| hold.section != section);
        } else {
            self.alone[lock] = None;
        }
        let ended = &mut self.skeleton.sections[section];
        (ended.release, ended.released) = (Some(at.event), at.time);
        ended.accesses.1 = self.accesses.log[at.thread].len() as u32;
        self.skeleton.threads[at.thread].open_count -= 1;
        self.step(at, Action::Leave(section));
    }

    fn hold(&mut self, thread: ThreadId, lock: LockId, is_shared: bool) -> Option<&mut Hold> {
        if is_shared {
            self.together[lock].iter_mut().find(|hold| hold.thread == thread)
        } else {
            self.alone[lock].as_mut()
        }
    }

    /// Ends, at the end of the trace, the access lists of sections that stay open.
    fn finish(mut self) -> (Skeleton, Accesses) {
        for hold in self.alone.iter().flatten().chain(self.together.iter().flatten()) {
            let count = self.accesses.log[hold.thread].len() as u32;
            self.skeleton.sections[hold.section].accesses.1 = count;
        }
        (self.skeleton, self.accesses)
    }
}

/// An event that is being taken.
#[derive(Clone, Copy, Debug)]
struct At {
    event: EventId,
    thread: ThreadId,
    time: u32,
}
