//! Is there a state that meets the query among all that correct reorderings reach?
//!
//! The last resort where the start of a semaphore is known. A take may then use any post, so which
//! posts must happen before it depends on how many takes came first; must-happen-before and
//! saturation, which know of pairs of events alone, cannot say that. Here tokens are counted.
//!
//! A search runs one event after another, each thread in program order, wherever the rules of a
//! correct reordering allow, until a state meets the query or all states have been visited. A state
//! is how far each thread has come and the last write of each variable; whatever else decides
//! what may come next follows from which events ran.
//!
//! Exact where it ends; the budget limits the states. They may be as many as the product of the
//! threads' lengths, times the orders of writes. Where some event can only help (see
//! [`State::is_harmless`]), that one alone is tried.

use reweave_base::{FxHashSet, Id, IndexVec};
use reweave_trace::views::Mode;
use reweave_trace::{
    AccessOp, ConditionOp, EventId, LockOp, ObjectOp, Op, Reordering, SemaphoreId, SemaphoreOp,
    ThreadId, ThreadOp, Trace, VarId, WaitInterval,
};

use crate::engine::{Answer, Cut, Refuted, leave};
use crate::query::{Query, View};

/// How many numbers the visited states may take together.
const NUMBERS_MAX: usize = 100_000_000;

/// Answers `query` after at most `states_max` states, and says how many it took.
pub(crate) fn search(trace: &Trace, query: &Query, states_max: usize) -> (Answer, usize) {
    let mut state = State::new(trace, query);
    let threads_count = state.done.len();
    let size = threads_count + state.last_write.len();
    let states_max = states_max.min(NUMBERS_MAX / size.max(1));
    let mut path: Vec<(EventId, Option<EventId>)> = Vec::new();
    let mut seen: FxHashSet<Box<[u32]>> = FxHashSet::default();
    seen.insert(state.key());
    // For each state on the path, the thread to try next.
    let mut tries = vec![0];
    while let Some(thread) = tries.last_mut() {
        if *thread == 0 && state.meets_the_query() {
            let schedule = path.iter().map(|&(event, _)| event).collect();
            return (Answer::Feasible(Reordering::explicit(schedule)), seen.len());
        }
        if *thread == threads_count {
            tries.pop();
            path.pop().into_iter().for_each(|(event, before)| state.take_back(event, before));
            continue;
        }
        let runnable = |thread| state.next(thread).filter(|&event| state.may_run(event));
        let harmless = (*thread == 0)
            .then(|| state.done.ids().filter_map(runnable).find(|&event| state.is_harmless(event)))
            .flatten();
        let next = harmless.or_else(|| runnable(ThreadId::from_index(*thread)));
        *thread = if harmless.is_some() { threads_count } else { *thread + 1 };
        let Some(event) = next else { continue };
        let before = state.run(event);
        if !seen.insert(state.key()) {
            state.take_back(event, before);
            continue;
        }
        if seen.len() > states_max {
            return (Answer::Unknown, seen.len());
        }
        path.push((event, before));
        tries.push(0);
    }
    (Answer::Infeasible(Refuted::Exhausted), seen.len())
}

/// Where the search stands.
struct State<'a> {
    trace: &'a Trace,
    query: &'a Query,
    done: Cut,
    last_write: IndexVec<VarId, Option<EventId>>,
    tokens: IndexVec<SemaphoreId, i64>,
    contention: Contention,
}

/// Which events threads may still contend in: accesses of a variable, acquires of a lock, takes of a
/// semaphore.
struct Contention {
    /// How many there are to come of each variable, lock and semaphore.
    left: Vec<u32>,
    /// For each event, how many of them its thread has from there on.
    own_left: Vec<u32>,
    /// For each write, how many of them other threads have that cannot happen before it.
    needing: Vec<u32>,
}

/// How far back a chain of updates that read each other is followed.
const CHAIN_MAX: usize = 64;

impl Contention {
    fn new(trace: &Trace, query: &Query) -> Self {
        let horizon = horizon(trace, query);
        let names = trace.names();
        let count = names.vars.len() + names.locks.len() + names.semaphores.len();
        let mut contention = Self {
            left: vec![0; count],
            own_left: vec![0; trace.len()],
            needing: vec![0; trace.len()],
        };
        let mut own: Vec<u32> = vec![0; count];
        for (thread, &end) in horizon.entries() {
            let events = &trace.thread_events(thread)[..end as usize];
            for &event in events.iter().rev() {
                let Some(thing) = thing(trace, event) else { continue };
                contention.left[thing] += 1;
                own[thing] += 1;
                contention.own_left[event.index()] = own[thing];
                contention.note_needed(trace, query, event);
            }
            for &event in events {
                thing(trace, event).into_iter().for_each(|thing| own[thing] = 0);
            }
        }
        contention
    }

    /// Notes which writes of other threads come before `event`, whatever the order.
    fn note_needed(&mut self, trace: &Trace, query: &Query, event: EventId) {
        let thread = trace.event(event).thread;
        let sees_the_same = |event: &EventId| {
            let op = trace.event(*event).op;
            let reads = op.is_read() && !matches!(op, Op::Access(AccessOp::UnknownRead, _));
            reads && !query.relaxed && query.view(*event).is_none()
        };
        let writer = |event: &EventId| {
            Some(*event).filter(sees_the_same).and_then(|event| trace.writer(event))
        };
        let chain = std::iter::successors(writer(&event), writer).take(CHAIN_MAX);
        for write in chain.filter(|&write| trace.event(write).thread != thread) {
            self.needing[write.index()] += 1;
        }
    }
}

/// What `event` contends for, if it does so.
fn thing(trace: &Trace, event: EventId) -> Option<usize> {
    let names = trace.names();
    match trace.event(event).op {
        Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) => {
            Some(names.vars.len() + lock.index())
        }
        Op::Semaphore(SemaphoreOp::Take, semaphore) => {
            Some(names.vars.len() + names.locks.len() + semaphore.index())
        }
        op => op.var().map(Id::index),
    }
}

/// How many events of each thread can happen at most in answers to `query`.
fn horizon(trace: &Trace, query: &Query) -> Cut {
    let length = |thread| trace.thread_events(thread).len() as u32;
    let mut horizon: Cut = trace.names().threads.entries().map(|(id, _)| length(id)).collect();
    fn lower(trace: &Trace, horizon: &mut Cut, event: EventId, by: u32) -> bool {
        let end = &mut horizon[trace.event(event).thread];
        let lowered = (*end).min(trace.position(event) + by);
        std::mem::replace(end, lowered) != lowered
    }
    for &event in query.enabled.iter().chain(&query.absent) {
        lower(trace, &mut horizon, event, 0);
    }
    for &event in &query.stop {
        lower(trace, &mut horizon, event, 1);
    }
    let mut is_settled = false;
    while !is_settled {
        is_settled = true;
        for (event, happening) in trace.events() {
            let is_within = |horizon: &Cut, event: EventId| {
                trace.position(event) < horizon[trace.event(event).thread]
            };
            if !is_within(&horizon, event) {
                continue;
            }
            let is_started =
                trace.lifetime(happening.thread).fork.is_none_or(|fork| is_within(&horizon, fork));
            let has_what_it_needs = match happening.op {
                Op::Thread(ThreadOp::Join, child) => horizon[child] == length(child),
                Op::Access(AccessOp::UnknownRead, _) => true,
                _ if query.view(event).is_some() => true,
                _ => trace.writer(event).is_none_or(|writer| is_within(&horizon, writer)),
            };
            if !(is_started && has_what_it_needs) {
                is_settled &= !lower(trace, &mut horizon, event, 0);
            }
        }
    }
    horizon
}

impl<'a> State<'a> {
    fn new(trace: &'a Trace, query: &'a Query) -> Self {
        let names = trace.names();
        let start = |id| i64::from(trace.declared().start(id).unwrap_or(0));
        Self {
            trace,
            query,
            done: IndexVec::from_elem(0, names.threads.len()),
            last_write: IndexVec::from_elem(None, names.vars.len()),
            tokens: names.semaphores.entries().map(|(id, _)| start(id)).collect(),
            contention: Contention::new(trace, query),
        }
    }

    fn key(&self) -> Box<[u32]> {
        let writes = self.last_write.iter().map(|write| write.map_or(0, EventId::number));
        self.done.iter().copied().chain(writes).collect()
    }

    fn next(&self, thread: ThreadId) -> Option<EventId> {
        self.trace.thread_events(thread).get(self.done[thread] as usize).copied()
    }

    fn has_run(&self, event: EventId) -> bool {
        self.trace.position(event) < self.done[self.trace.event(event).thread]
    }

    fn is_started(&self, thread: ThreadId) -> bool {
        self.trace.lifetime(thread).fork.is_none_or(|fork| self.has_run(fork))
    }

    fn meets_the_query(&self) -> bool {
        let Query { must, order, enabled, views, .. } = self.query;
        let is_next = |&event: &EventId| {
            let thread = self.trace.event(event).thread;
            self.next(thread) == Some(event)
                && self.is_started(thread)
                && self.has_what_it_needs(event)
        };
        enabled.iter().all(is_next)
            && must.iter().all(|&event| self.has_run(event))
            && order.iter().all(|&(_, second)| self.has_run(second))
            && views.iter().all(|&(read, _)| self.has_run(read))
    }

    /// Whether nothing but locks, what it reads, who waits and how many tokens there are could keep
    /// `event`, the next of its thread, from happening.
    fn has_what_it_needs(&self, event: EventId) -> bool {
        let signals = self.trace.signals();
        match self.trace.event(event).op {
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
                let woken =
                    signals.woken(event).iter().filter_map(|&wait| signals.wait_interval(wait));
                woken.into_iter().all(|interval| self.has_run(interval.begin))
            }
            Op::Semaphore(SemaphoreOp::Take, semaphore)
                if self.trace.declared().start(semaphore).is_some() =>
            {
                true
            }
            op if op.var().is_some() => true,
            Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _) => true,
            _ => self.is_enabled(event),
        }
    }

    /// Whether the query lets `event` happen now.
    fn is_permitted(&self, event: EventId) -> bool {
        let Query { order, absent, enabled, stop, .. } = self.query;
        let happening = self.trace.event(event);
        let after_stop = |&stopped: &EventId| {
            let other = self.trace.event(stopped);
            let sees = other.op.is_write()
                && self.trace.writer(event) == Some(stopped)
                && self.query.view(event).is_none();
            sees || other.thread == happening.thread && stopped < event
        };
        !absent.contains(&event)
            && !enabled.contains(&event)
            && !stop.iter().any(after_stop)
            && order.iter().all(|&(first, second)| second != event || self.has_run(first))
    }

    fn may_run(&self, event: EventId) -> bool {
        let happening = self.trace.event(event);
        if !self.is_started(happening.thread) || !self.is_permitted(event) {
            return false;
        }
        self.is_enabled(event)
    }

    /// Whether nothing that can happen later is kept from it if `event`, which may run, runs now. An
    /// answer to the query in which it runs later, or not at all, is then one in which it runs now.
    fn is_harmless(&self, event: EventId) -> bool {
        let Contention { left, own_left, needing } = &self.contention;
        // Nobody else is to come who could have been first.
        let is_alone = || {
            thing(self.trace, event).is_some_and(|thing| {
                left[thing] == own_left[event.index()] + needing[event.index()]
            })
        };
        match self.trace.event(event).op {
            // These only let others happen.
            Op::Access(AccessOp::Read | AccessOp::AtomicRead(_) | AccessOp::UnknownRead, _)
            | Op::Fence(_)
            | Op::Lock(
                LockOp::Release
                | LockOp::ReleaseShared
                | LockOp::Request
                | LockOp::RequestExclusive,
                _,
            )
            | Op::Thread(..)
            | Op::Barrier(..)
            | Op::Semaphore(SemaphoreOp::Post, _)
            | Op::Object(..)
            | Op::Marker(_) => true,
            Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                let takes = thing(self.trace, event).map_or(0, |thing| left[thing]);
                is_alone() || self.tokens[semaphore] >= i64::from(takes)
            }
            Op::Access(
                AccessOp::Write | AccessOp::AtomicWrite(_) | AccessOp::AtomicUpdate(_),
                _,
            )
            | Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _) => is_alone(),
            // Who waits keeps others from notifying.
            Op::Condition(..) => false,
        }
    }

    /// Whether the rules let `event`, the next of its thread, happen now.
    fn is_enabled(&self, event: EventId) -> bool {
        let happening = self.trace.event(event);
        let signals = self.trace.signals();
        match happening.op {
            Op::Access(
                AccessOp::Read | AccessOp::AtomicRead(_) | AccessOp::AtomicUpdate(_),
                var,
            ) => match self.query.view(event) {
                Some(View::Any) => true,
                Some(View::Of(write)) => self.last_write[var] == write,
                None if self.query.relaxed => {
                    self.trace.writer(event).is_none_or(|writer| self.has_run(writer))
                }
                None => self.last_write[var] == self.trace.writer(event),
            },
            Op::Access(AccessOp::UnknownRead, var) => match self.query.view(event) {
                Some(View::Of(write)) => self.last_write[var] == write,
                _ => true,
            },
            Op::Lock(LockOp::Acquire, _) => !self.is_held(event, Mode::Exclusive),
            Op::Lock(LockOp::AcquireShared, _) => !self.is_held(event, Mode::Shared),
            Op::Thread(ThreadOp::Join, child) => {
                self.is_started(child) && self.next(child).is_none()
            }
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
                self.may_notify(event)
            }
            Op::Condition(ConditionOp::Wake, _) => {
                let notify = signals.wait_interval(event).and_then(|interval| interval.notify);
                notify.is_some_and(|notify| self.has_run(notify))
            }
            Op::Barrier(..) => {
                let generation = signals
                    .needed_generation(event)
                    .map(|generation| signals.generation(generation));
                generation.is_none_or(|generation| {
                    generation.arrivals.iter().all(|&other| self.has_run(other))
                })
            }
            Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                match self.trace.declared().start(semaphore) {
                    Some(_) => self.tokens[semaphore] > 0,
                    None => signals.post(event).is_none_or(|post| self.has_run(post)),
                }
            }
            Op::Object(ObjectOp::Free, object) => {
                let mut all = self.trace.events();
                let born = all.find(|(_, event)| event.op == Op::Object(ObjectOp::Alloc, object));
                born.is_none_or(|(birth, _)| self.has_run(birth))
            }
            Op::Access(AccessOp::Write | AccessOp::AtomicWrite(_), _)
            | Op::Fence(_)
            | Op::Lock(
                LockOp::Release
                | LockOp::ReleaseShared
                | LockOp::Request
                | LockOp::RequestExclusive,
                _,
            )
            | Op::Thread(ThreadOp::Fork, _)
            | Op::Condition(ConditionOp::Wait | ConditionOp::Timeout, _)
            | Op::Semaphore(SemaphoreOp::Post, _)
            | Op::Object(ObjectOp::Alloc, _)
            | Op::Marker(_) => true,
        }
    }

    /// Whether another thread holds the lock of `acquire` in a way that excludes `mode`.
    fn is_held(&self, acquire: EventId, mode: Mode) -> bool {
        let happening = self.trace.event(acquire);
        let Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) = happening.op else {
            return false;
        };
        let others = self.done.ids().filter(|&thread| thread != happening.thread);
        let mut held = others.flat_map(|thread| {
            let next = self.next(thread);
            let next = next.unwrap_or_else(|| EventId::from_index(self.trace.len()));
            self.trace.sections().held(thread, next)
        });
        held.any(|section| {
            section.lock == lock && (mode == Mode::Exclusive || section.mode == Mode::Exclusive)
        })
    }

    fn may_notify(&self, notify: EventId) -> bool {
        let op = self.trace.event(notify).op;
        let Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, on) = op else {
            return false;
        };
        let signals = self.trace.signals();
        let is_waiting = |wait: &WaitInterval| {
            self.has_run(wait.begin) && !leave(wait).is_some_and(|leave| self.has_run(leave))
        };
        let woken = signals.woken(notify);
        let are_there =
            woken.iter().filter_map(|&wait| signals.wait_interval(wait)).all(is_waiting);
        if !are_there || matches!(op, Op::Condition(ConditionOp::Notify, _)) && !woken.is_empty() {
            return are_there;
        }
        let mut others = signals.wait_intervals().iter().filter(|interval| {
            self.trace.event(interval.wait).op == Op::Condition(ConditionOp::Wait, on)
                && interval.notify != Some(notify)
                && !interval.is_spared_by(notify)
        });
        !others.any(is_waiting)
    }

    /// Runs `event`; gives the last write before it of the variable that it writes.
    fn run(&mut self, event: EventId) -> Option<EventId> {
        let happening = self.trace.event(event);
        self.done[happening.thread] += 1;
        thing(self.trace, event).into_iter().for_each(|thing| self.contention.left[thing] -= 1);
        match happening.op {
            Op::Semaphore(SemaphoreOp::Post, semaphore) => self.tokens[semaphore] += 1,
            Op::Semaphore(SemaphoreOp::Take, semaphore) => self.tokens[semaphore] -= 1,
            _ => {}
        }
        let var = happening.op.var().filter(|_| happening.op.is_write())?;
        self.last_write[var].replace(event)
    }

    /// Undoes the run of `event`, the last to run, with what [`State::run`] gave.
    fn take_back(&mut self, event: EventId, before: Option<EventId>) {
        let happening = self.trace.event(event);
        self.done[happening.thread] -= 1;
        thing(self.trace, event).into_iter().for_each(|thing| self.contention.left[thing] += 1);
        match happening.op {
            Op::Semaphore(SemaphoreOp::Post, semaphore) => self.tokens[semaphore] -= 1,
            Op::Semaphore(SemaphoreOp::Take, semaphore) => self.tokens[semaphore] += 1,
            _ => {}
        }
        if let Some(var) = happening.op.var().filter(|_| happening.op.is_write()) {
            self.last_write[var] = before;
        }
    }
}
