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
    AccessOp, ConditionOp, EventId, LockOp, ObjectId, ObjectOp, Op, Reordering, SemaphoreId,
    SemaphoreOp, ThreadId, ThreadOp, Trace, VarId, WaitInterval,
};

use crate::engine::{Answer, Cut, Refuted, leave};
use crate::query::{Query, View};

/// How many numbers the visited states may take together.
const NUMBERS_MAX: usize = 100_000_000;

/// How many events may be run for each state that may be kept: those that only help are run without
/// keeping the state before them.
const STEPS_PER_STATE: usize = 16;

/// Answers `query` after at most `states_max` states, and says how much work it took.
pub(crate) fn search(
    trace: &Trace,
    suppliers: &Suppliers,
    query: &Query,
    states_max: usize,
) -> (Answer, u64) {
    let mut state = State::new(trace, suppliers, query);
    let threads_count = state.done.len();
    let size = threads_count + state.last_write.len();
    let states_max = states_max.min(NUMBERS_MAX / size.max(1));
    let mut path: Vec<(EventId, Option<EventId>)> = Vec::new();
    let mut seen: FxHashSet<Box<[u32]>> = FxHashSet::default();
    seen.insert(state.key());
    let mut steps: usize = state.horizon.iter().map(|&end| end as usize).sum();
    // For each state on the path, the thread to try next.
    let mut tries = vec![0];
    let answer = loop {
        let Some(thread) = tries.last_mut() else {
            break Answer::Infeasible(Refuted::Exhausted);
        };
        if *thread == 0 && state.meets_the_query() {
            let schedule = path.iter().map(|&(event, _)| event).collect();
            break Answer::Feasible(Reordering::explicit(schedule));
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
        steps += 1;
        if harmless.is_none() && !seen.insert(state.key()) {
            state.take_back(event, before);
            continue;
        }
        if seen.len() > states_max || steps > STEPS_PER_STATE.saturating_mul(states_max) {
            break Answer::Unknown;
        }
        path.push((event, before));
        tries.push(0);
    };
    (answer, (seen.len() * size + steps * threads_count) as u64)
}

/// Who can supply what: does not depend on the query.
#[derive(Debug)]
pub(crate) struct Suppliers {
    /// The last post of each thread that posts to a semaphore.
    last_posts: IndexVec<SemaphoreId, Vec<EventId>>,
    births: IndexVec<ObjectId, Option<EventId>>,
}

impl Suppliers {
    pub(crate) fn new(trace: &Trace) -> Self {
        let names = trace.names();
        let mut suppliers = Self {
            last_posts: IndexVec::from_elem(Vec::new(), names.semaphores.len()),
            births: IndexVec::from_elem(None, names.objects.len()),
        };
        for (id, event) in trace.events() {
            match event.op {
                Op::Semaphore(SemaphoreOp::Post, semaphore) => {
                    let posts = &mut suppliers.last_posts[semaphore];
                    posts.retain(|&post| trace.event(post).thread != event.thread);
                    posts.push(id);
                }
                Op::Object(ObjectOp::Alloc, object) => {
                    suppliers.births[object].get_or_insert(id);
                }
                _ => {}
            }
        }
        suppliers
    }
}

/// Where the search stands.
struct State<'a> {
    trace: &'a Trace,
    suppliers: &'a Suppliers,
    query: &'a Query,
    done: Cut,
    last_write: IndexVec<VarId, Option<EventId>>,
    tokens: IndexVec<SemaphoreId, i64>,
    /// How many events of each thread are run at most.
    horizon: Cut,
    contention: Contention,
}

/// Which events threads may still contend in: accesses of a variable, acquires of a lock, takes of a
/// semaphore.
struct Contention {
    /// How many are to come that contend for each variable, lock and semaphore.
    remaining: Vec<u32>,
    /// For each event, how many of these its thread has from there on.
    own_remaining: Vec<u32>,
    /// For each write, how many of these other threads have that cannot happen before it.
    dependents: Vec<u32>,
}

/// How far back a chain of updates that read each other is followed.
const CHAIN_MAX: usize = 64;

impl Contention {
    /// Counts what comes before `horizon`.
    fn new(trace: &Trace, query: &Query, horizon: &Cut) -> Self {
        let names = trace.names();
        let count = names.vars.len() + names.locks.len() + names.semaphores.len();
        let mut contention = Self {
            remaining: vec![0; count],
            own_remaining: vec![0; trace.len()],
            dependents: vec![0; trace.len()],
        };
        let mut own: Vec<u32> = vec![0; count];
        for (thread, &end) in horizon.entries() {
            let events = &trace.thread_events(thread)[..end as usize];
            for &event in events.iter().rev() {
                let Some(object) = contended_object(trace, event) else { continue };
                contention.remaining[object] += 1;
                own[object] += 1;
                contention.own_remaining[event.index()] = own[object];
                contention.note_dependent(trace, query, event);
            }
            for &event in events {
                contended_object(trace, event).into_iter().for_each(|object| own[object] = 0);
            }
        }
        contention
    }

    /// Notes which writes of other threads come before `event`, whatever the order.
    fn note_dependent(&mut self, trace: &Trace, query: &Query, event: EventId) {
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
            self.dependents[write.index()] += 1;
        }
    }
}

/// What `event` contends for, if it does so: a place among all variables, locks and semaphores.
fn contended_object(trace: &Trace, event: EventId) -> Option<usize> {
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

/// The wait that begins at `event`, if it is a release at which a wait begins.
fn wait_begun_by(trace: &Trace, event: EventId) -> Option<&WaitInterval> {
    let next = trace.position(event) as usize + 1;
    let wait = *trace.thread_events(trace.event(event).thread).get(next)?;
    trace.signals().wait_interval(wait).filter(|interval| interval.begin == event)
}

/// The events that some answer to the query may need. An answer stays one if all others are left out.
struct Needed<'a> {
    trace: &'a Trace,
    suppliers: &'a Suppliers,
    query: &'a Query,
    cut: Cut,
    /// Events that were added and not yet looked at.
    new: Vec<EventId>,
}

impl Needed<'_> {
    /// Adds `event` and all before it in its thread.
    fn add(&mut self, event: EventId) {
        let thread = self.trace.event(event).thread;
        let (from, to) = (self.cut[thread], self.trace.position(event) + 1);
        if from < to {
            self.cut[thread] = to;
            self.new.extend(&self.trace.thread_events(thread)[from as usize..to as usize]);
        }
    }

    /// Adds what `event` needs, and what ends what it keeps others from.
    fn add_supply(&mut self, event: EventId) {
        let Self { trace, suppliers, query, .. } = *self;
        let signals = trace.signals();
        let happening = trace.event(event);
        let mut supply: Vec<EventId> = trace.lifetime(happening.thread).fork.into_iter().collect();
        match happening.op {
            Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _) => {
                let sections = trace.sections();
                let own = sections.of_thread(happening.thread);
                let at = own.partition_point(|&id| sections.get(id).acquire < event);
                supply.extend(own.get(at).and_then(|&id| sections.get(id).release));
            }
            Op::Lock(LockOp::Release | LockOp::ReleaseShared, _) => {
                supply.extend(wait_begun_by(trace, event).and_then(leave));
            }
            Op::Thread(ThreadOp::Join, child) => {
                supply.extend(trace.thread_events(child).last());
            }
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
                let woken = signals.woken(event).iter();
                supply.extend(woken.filter_map(|&wait| Some(signals.wait_interval(wait)?.begin)));
            }
            Op::Condition(..) => {
                let interval = signals.wait_interval(event);
                supply.extend(interval.and_then(|interval| interval.notify));
                supply.extend(interval.and_then(leave));
            }
            Op::Barrier(..) => {
                let generation = signals.needed_generation(event);
                supply.extend(generation.iter().flat_map(|&id| &signals.generation(id).arrivals));
            }
            Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                match trace.declared().start(semaphore) {
                    Some(_) => supply.extend(&suppliers.last_posts[semaphore]),
                    None => supply.extend(signals.post(event)),
                }
            }
            Op::Object(ObjectOp::Free, object) => supply.extend(suppliers.births[object]),
            Op::Access(..) => match query.view(event) {
                Some(View::Of(write)) => supply.extend(write),
                Some(View::Any) => {}
                None => supply.extend(trace.writer(event)),
            },
            _ => {}
        }
        supply.into_iter().for_each(|event| self.add(event));
    }
}

/// How many events of each thread need to happen, and can, at most, in answers to `query`.
fn horizon(trace: &Trace, suppliers: &Suppliers, query: &Query) -> Cut {
    let cut = Cut::from_elem(0, trace.names().threads.len());
    let mut needed = Needed { trace, suppliers, query, cut, new: Vec::new() };
    let Query { must, order, enabled, views, .. } = query;
    let ordered = order.iter().flat_map(|&(first, second)| [first, second]);
    let seen = views.iter().map(|&(read, _)| read);
    let asked = must.iter().chain(enabled).copied().chain(ordered).chain(seen);
    asked.for_each(|event| needed.add(event));
    while let Some(event) = needed.new.pop() {
        needed.add_supply(event);
    }
    let mut horizon = needed.cut;
    for &event in enabled.iter().chain(&query.absent) {
        lower(trace, &mut horizon, event, 0);
    }
    for &event in &query.stop {
        lower(trace, &mut horizon, event, 1);
    }
    while !is_settled(trace, query, &mut horizon) {}
    horizon
}

/// Lets at most `count` events happen after those that come before `event` in its thread; says whether
/// that is fewer than before.
fn lower(trace: &Trace, horizon: &mut Cut, event: EventId, count: u32) -> bool {
    let end = &mut horizon[trace.event(event).thread];
    let lowered = (*end).min(trace.position(event) + count);
    std::mem::replace(end, lowered) != lowered
}

/// Leaves out what cannot happen, since what it needs cannot; says whether there was nothing.
fn is_settled(trace: &Trace, query: &Query, horizon: &mut Cut) -> bool {
    let is_within =
        |horizon: &Cut, event: EventId| trace.position(event) < horizon[trace.event(event).thread];
    let mut is_settled = true;
    for (thread, _) in trace.names().threads.entries() {
        if trace.lifetime(thread).fork.is_some_and(|fork| !is_within(horizon, fork)) {
            is_settled &= std::mem::replace(&mut horizon[thread], 0) == 0;
        }
        for &event in &trace.thread_events(thread)[..horizon[thread] as usize] {
            let has_what_it_needs = match trace.event(event).op {
                Op::Thread(ThreadOp::Join, child) => {
                    horizon[child] as usize == trace.thread_events(child).len()
                }
                Op::Access(AccessOp::UnknownRead, _) => true,
                _ if query.view(event).is_some() => true,
                _ => trace.writer(event).is_none_or(|writer| is_within(horizon, writer)),
            };
            if !has_what_it_needs {
                is_settled &= !lower(trace, horizon, event, 0);
                break;
            }
        }
    }
    is_settled
}

impl<'a> State<'a> {
    fn new(trace: &'a Trace, suppliers: &'a Suppliers, query: &'a Query) -> Self {
        let names = trace.names();
        let horizon = horizon(trace, suppliers, query);
        let start = |id| i64::from(trace.declared().start(id).unwrap_or(0));
        Self {
            trace,
            suppliers,
            query,
            done: IndexVec::from_elem(0, names.threads.len()),
            last_write: IndexVec::from_elem(None, names.vars.len()),
            tokens: names.semaphores.entries().map(|(id, _)| start(id)).collect(),
            contention: Contention::new(trace, query, &horizon),
            horizon,
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
        let is_needed = self.trace.position(event) < self.horizon[happening.thread];
        if !is_needed || !self.is_started(happening.thread) || !self.is_permitted(event) {
            return false;
        }
        self.is_enabled(event)
    }

    /// Whether nothing that can happen later is kept from it if `event`, which may run, runs now. An
    /// answer to the query in which it runs later, or not at all, is then one in which it runs now.
    fn is_harmless(&self, event: EventId) -> bool {
        let Contention { remaining, own_remaining, dependents } = &self.contention;
        // No other thread has an event left that could come before this one.
        let is_alone = || {
            contended_object(self.trace, event).is_some_and(|object| {
                remaining[object] == own_remaining[event.index()] + dependents[event.index()]
            })
        };
        match self.trace.event(event).op {
            // Who waits keeps others from notifying.
            Op::Condition(..) => false,
            Op::Lock(LockOp::Release | LockOp::ReleaseShared, _) => {
                wait_begun_by(self.trace, event).is_none()
            }
            // None of these keeps another event from happening.
            Op::Access(AccessOp::Read | AccessOp::AtomicRead(_) | AccessOp::UnknownRead, _)
            | Op::Fence(_)
            | Op::Lock(LockOp::Request | LockOp::RequestExclusive, _)
            | Op::Thread(..)
            | Op::Barrier(..)
            | Op::Semaphore(SemaphoreOp::Post, _)
            | Op::Object(..)
            | Op::Marker(_) => true,
            Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                let object = contended_object(self.trace, event);
                let takes = object.map_or(0, |object| remaining[object]);
                is_alone() || self.tokens[semaphore] >= i64::from(takes)
            }
            Op::Access(
                AccessOp::Write | AccessOp::AtomicWrite(_) | AccessOp::AtomicUpdate(_),
                _,
            )
            | Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _) => is_alone(),
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
                self.suppliers.births[object].is_none_or(|birth| self.has_run(birth))
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
        let object = contended_object(self.trace, event);
        object.into_iter().for_each(|object| self.contention.remaining[object] -= 1);
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
        let object = contended_object(self.trace, event);
        object.into_iter().for_each(|object| self.contention.remaining[object] += 1);
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
