//! Every state that a correct reordering of a small trace can reach.
//!
//! A search runs one event after another, each thread in program order, as the definition of a
//! correct reordering allows, and remembers the states it has been in. A state is how far each
//! thread has come and the last write of each variable. That is enough: whether an event may come
//! next is decided by *which* events ran (who holds a lock, who waits and was not notified, who
//! arrived, what a semaphore stands at, whether a fork or a post ran: each a sum or a union over
//! the events that ran, whatever their order), and by the last writes, the one thing that depends
//! on their order. How far the threads have come says which events ran.
//!
//! Exact where it ends; states may be as many as the product of the threads' lengths, times the
//! orders of writes, so it takes a limit and says whether it was reached.
//!
//! The step rule is its own: neither the checker's nor the formulas of [`crate::reordering`]. It
//! shares with those only [`Observed`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use reweave_base::{FxHashSet, Id, Rng};
use reweave_trace::{
    AccessOp, ConditionOp, EventId, LockId, LockOp, ObjectOp, Op, SemaphoreOp, ThreadId, ThreadOp,
    Trace, VarId,
};

use crate::observed::{Observed, acquired, released};

/// How many states [`predictable`] visits at most.
pub const STATES_MAX: usize = 2_000_000;

/// A state that a correct reordering reaches.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    search: &'a Search<'a>,
    /// The events that ran, in an order that leads here.
    pub path: &'a [EventId],
}

/// How far an exploration came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explored {
    /// How many states were visited.
    pub states_count: usize,
    /// Whether these are all there are.
    pub complete: bool,
}

/// Races and deadlocks, each with a schedule that shows it.
#[derive(Clone, Debug)]
pub struct Predictable {
    /// Pairs of racing accesses, the earlier observed first, and after what.
    pub races: BTreeMap<(EventId, EventId), Vec<EventId>>,
    /// Sets of blocked acquires, in ascending order, and how they come about.
    pub deadlocks: BTreeMap<Vec<EventId>, Deadlock>,
    /// Whether these are all.
    pub explored: Explored,
}

/// How a deadlock comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The blocked acquires, each on a lock that the thread of the next one holds.
    pub cycle: Vec<EventId>,
    /// What ran before.
    pub schedule: Vec<EventId>,
}

/// The pairs of accesses that some correct reordering makes race.
///
/// # Panics
/// If there are more than [`STATES_MAX`] states.
#[must_use]
pub fn predictable_races(trace: &Trace) -> Vec<(EventId, EventId)> {
    all_of(trace).races.into_keys().collect()
}

/// The sets of acquires, ascending, at which some correct reordering deadlocks.
///
/// # Panics
/// If there are more than [`STATES_MAX`] states.
#[must_use]
pub fn predictable_deadlocks(trace: &Trace) -> BTreeSet<Vec<EventId>> {
    all_of(trace).deadlocks.into_keys().collect()
}

fn all_of(trace: &Trace) -> Predictable {
    let found = predictable(trace, STATES_MAX);
    assert!(found.explored.complete, "the trace has more than {STATES_MAX} states");
    found
}

/// All predictable races and deadlocks within the first `states_max` states.
#[must_use]
pub fn predictable(trace: &Trace, states_max: usize) -> Predictable {
    let (mut races, mut deadlocks) = (BTreeMap::new(), BTreeMap::new());
    let explored = explore(trace, states_max, |state| {
        for pair in state.races() {
            races.entry(pair).or_insert_with(|| state.path.to_vec());
        }
        for cycle in state.deadlocks() {
            let mut blocked = cycle.clone();
            blocked.sort_unstable();
            let schedule = || Deadlock { cycle, schedule: state.path.to_vec() };
            deadlocks.entry(blocked).or_insert_with(schedule);
        }
        ControlFlow::Continue(())
    });
    Predictable { races, deadlocks, explored }
}

/// Hands every state that a correct reordering of `trace` reaches to `visit`, each once, until
/// it breaks off or `states_max` were visited.
pub fn explore(
    trace: &Trace,
    states_max: usize,
    mut visit: impl FnMut(State<'_>) -> ControlFlow<()>,
) -> Explored {
    let may_run = |search: &Search<'_>, event| search.may_run(event);
    depth_first(trace, states_max, true, may_run, |search, path| visit(State { search, path }))
}

/// Hands every state that is reached by the steps of `may_run` to `visit`, with a path to it, each
/// once, until it breaks off or `states_max` were visited. Unless the last writes count, states that
/// differ in these alone are one.
pub(crate) fn depth_first(
    trace: &Trace,
    states_max: usize,
    writes_count: bool,
    may_run: impl Fn(&Search<'_>, EventId) -> bool,
    mut visit: impl FnMut(&Search<'_>, &[EventId]) -> ControlFlow<()>,
) -> Explored {
    let mut search = Search::new(trace);
    let mut path: Vec<EventId> = Vec::new();
    let mut seen: FxHashSet<Vec<u32>> = FxHashSet::default();
    seen.insert(search.key(writes_count));
    let mut complete = visit(&search, &path).is_continue();
    // For each state on the path, the thread to try next.
    let mut tries = vec![0];
    while complete && let Some(thread) = tries.last_mut() {
        if *thread == search.threads.len() {
            tries.pop();
            path.pop().into_iter().for_each(|event| search.take_back(event));
            continue;
        }
        let candidate = ThreadId::from_index(*thread);
        *thread += 1;
        let Some(event) = search.next(candidate).filter(|&event| may_run(&search, event)) else {
            continue;
        };
        search.run(event);
        if !seen.insert(search.key(writes_count)) {
            search.take_back(event);
            continue;
        }
        path.push(event);
        tries.push(0);
        let goes_on = visit(&search, &path).is_continue();
        complete = goes_on && seen.len() <= states_max;
    }
    Explored { states_count: seen.len(), complete }
}

/// A correct reordering of `trace`, but for the reads of `free`, by chance: at each step any of
/// the events that may come, until none may or chance ends it.
#[must_use]
pub fn walk(trace: &Trace, free: &[EventId], rng: &mut Rng) -> Vec<EventId> {
    let mut search = Search::new(trace);
    let mut path = Vec::new();
    let steps_max = if rng.chance(50) { trace.len() } else { rng.below(trace.len() + 1) };
    while path.len() < steps_max {
        let next = search.observed.threads().filter_map(|thread| search.next(thread));
        let is_free = |event: &EventId| {
            let is_started = search.is_started(search.observed.event(*event).thread);
            is_started && free.contains(event)
        };
        let able: Vec<EventId> =
            next.filter(|event| is_free(event) || search.may_run(*event)).collect();
        let Some(&event) = rng.pick(&able) else { break };
        search.run(event);
        path.push(event);
    }
    path
}

impl State<'_> {
    /// The next event of `thread`, if it has started and one is left.
    #[must_use]
    pub fn next(&self, thread: ThreadId) -> Option<EventId> {
        self.search.next(thread).filter(|_| self.search.is_started(thread))
    }

    /// Whether `event` may run now without breaking a rule.
    #[must_use]
    pub fn may_run(&self, event: EventId) -> bool {
        let thread = self.search.observed.event(event).thread;
        self.search.next(thread) == Some(event) && self.search.may_run(event)
    }

    /// Conflicting accesses that are each the next of their threads, the earlier observed first.
    #[must_use]
    pub fn races(&self) -> Vec<(EventId, EventId)> {
        let op = |event| self.search.observed.event(event).op;
        let next: Vec<EventId> =
            self.search.observed.threads().filter_map(|thread| self.next(thread)).collect();
        let mut races = Vec::new();
        for (at, &left) in next.iter().enumerate() {
            let racing = next[at + 1..].iter().filter(|&&right| op(left).conflicts_with(op(right)));
            races.extend(racing.map(|&right| (left.min(right), left.max(right))));
        }
        races
    }

    /// Cycles of acquires, each the next of its thread and on a lock that the thread of the one
    /// after it holds. Each cycle comes once, its lowest thread first.
    #[must_use]
    pub fn deadlocks(&self) -> Vec<Vec<EventId>> {
        let mut cycles = Vec::new();
        for thread in self.search.observed.threads() {
            if let Some(first) = self.blocked(thread) {
                self.close_cycles(&mut vec![first], &mut cycles);
            }
        }
        cycles
    }

    /// The next event of `thread`, if it is an acquire.
    fn blocked(&self, thread: ThreadId) -> Option<EventId> {
        self.next(thread).filter(|&event| acquired(self.search.observed.event(event).op).is_some())
    }

    /// Goes on from the last of `chain` to every thread that keeps it waiting.
    fn close_cycles(&self, chain: &mut Vec<EventId>, cycles: &mut Vec<Vec<EventId>>) {
        let thread_of = |event| self.search.observed.event(event).thread;
        let last = chain[chain.len() - 1];
        for holder in self.search.keep_waiting(last) {
            if holder == thread_of(chain[0]) {
                cycles.push(chain.clone());
            }
            let is_new = chain.iter().all(|&event| thread_of(event) != holder);
            if let Some(event) =
                self.blocked(holder).filter(|_| is_new && holder > thread_of(chain[0]))
            {
                chain.push(event);
                self.close_cycles(chain, cycles);
                chain.pop();
            }
        }
    }
}

/// Where a search stands.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    pub(crate) observed: Observed<'a>,
    /// The events of each thread.
    threads: Vec<Vec<EventId>>,
    forks: Vec<Option<EventId>>,
    /// How many events of each thread ran.
    done: Vec<usize>,
    /// Whether each event ran.
    ran: Vec<bool>,
    /// The writes of each variable that ran, in the order they did.
    writes: Vec<Vec<EventId>>,
}

impl<'a> Search<'a> {
    fn new(trace: &'a Trace) -> Self {
        let observed = Observed::new(trace);
        let threads: Vec<Vec<EventId>> =
            observed.threads().map(|thread| observed.events_of(thread).collect()).collect();
        Self {
            forks: observed.threads().map(|thread| observed.fork_of(thread)).collect(),
            done: vec![0; threads.len()],
            ran: vec![false; trace.len()],
            writes: vec![Vec::new(); trace.names().vars.len()],
            threads,
            observed,
        }
    }

    /// How far each thread has come, then the last write of each variable if they count, 0 for none.
    fn key(&self, writes_count: bool) -> Vec<u32> {
        let last = |writes: &Vec<EventId>| writes.last().map_or(0, |write| write.number());
        let done = self.done.iter().map(|&count| count as u32);
        let writes = if writes_count { self.writes.as_slice() } else { &[] };
        done.chain(writes.iter().map(last)).collect()
    }

    pub(crate) fn next(&self, thread: ThreadId) -> Option<EventId> {
        let index = thread.index();
        self.threads[index].get(self.done[index]).copied()
    }

    pub(crate) fn has_run(&self, event: EventId) -> bool {
        self.ran[event.index()]
    }

    pub(crate) fn is_started(&self, thread: ThreadId) -> bool {
        self.forks[thread.index()].is_none_or(|fork| self.has_run(fork))
    }

    fn run(&mut self, event: EventId) {
        let happened = self.observed.event(event);
        self.done[happened.thread.index()] += 1;
        self.ran[event.index()] = true;
        if let Some(var) = happened.op.var().filter(|_| happened.op.is_write()) {
            self.writes[var.index()].push(event);
        }
    }

    /// Undoes the run of `event`, which was the last to run.
    fn take_back(&mut self, event: EventId) {
        let happened = self.observed.event(event);
        self.done[happened.thread.index()] -= 1;
        self.ran[event.index()] = false;
        if let Some(var) = happened.op.var().filter(|_| happened.op.is_write()) {
            self.writes[var.index()].pop();
        }
    }

    /// The events of `thread` that ran.
    fn past(&self, thread: ThreadId) -> &[EventId] {
        &self.threads[thread.index()][..self.done[thread.index()]]
    }

    /// How deep `thread` is in `lock`: alone, and in shared mode.
    fn depths(&self, thread: ThreadId, lock: LockId) -> [i32; 2] {
        let mut depths = [0; 2];
        for &event in self.past(thread) {
            let op = self.observed.event(event).op;
            match (acquired(op), released(op)) {
                (Some((on, shared)), _) if on == lock => depths[usize::from(shared)] += 1,
                (_, Some((on, shared))) if on == lock => depths[usize::from(shared)] -= 1,
                _ => {}
            }
        }
        depths
    }

    /// The threads that keep `acquire` waiting; none if it is no acquire.
    pub(crate) fn keep_waiting(&self, acquire: EventId) -> Vec<ThreadId> {
        let event = self.observed.event(acquire);
        let Some((lock, shared)) = acquired(event.op) else { return Vec::new() };
        let holds = |thread: &ThreadId| {
            let [alone, together] = self.depths(*thread, lock);
            alone > 0 || (together > 0 && !shared)
        };
        self.observed.threads().filter(|&thread| thread != event.thread).filter(holds).collect()
    }

    /// The last write of `var` that ran.
    pub(crate) fn last_write(&self, var: VarId) -> Option<EventId> {
        self.writes[var.index()].last().copied()
    }

    /// Whether `event`, the next of its thread, may run now.
    fn may_run(&self, event: EventId) -> bool {
        let sees_as_observed = match self.observed.event(event).op {
            Op::Access(
                AccessOp::Read | AccessOp::AtomicRead(_) | AccessOp::AtomicUpdate(_),
                var,
            ) => self.last_write(var) == self.observed.saw[event.index()],
            _ => true,
        };
        sees_as_observed && self.may_run_whatever_it_sees(event)
    }

    /// Whether `event`, the next of its thread, may run now, if a read may see any write.
    pub(crate) fn may_run_whatever_it_sees(&self, event: EventId) -> bool {
        let happening = self.observed.event(event);
        if !self.is_started(happening.thread) {
            return false;
        }
        match happening.op {
            Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _) => {
                self.keep_waiting(event).is_empty()
            }
            Op::Thread(ThreadOp::Join, child) => {
                self.is_started(child) && self.next(child).is_none()
            }
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
                self.may_notify(event)
            }
            Op::Condition(ConditionOp::Wake, _) => {
                let mut waits = self.observed.waits.iter();
                let own = waits.find(|wait| wait.end == Some(event));
                own.and_then(|wait| wait.notify).is_some_and(|notify| self.has_run(notify))
            }
            Op::Barrier(..) => {
                self.observed.arrivals[event.index()].iter().all(|&arrival| self.has_run(arrival))
            }
            Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                match self.observed.trace.declared().start(semaphore) {
                    Some(start) => {
                        let ran = |op: Op| {
                            let ids =
                                self.observed.ids().filter(|&id| self.observed.event(id).op == op);
                            ids.filter(|&id| self.has_run(id)).count()
                        };
                        start as usize + ran(Op::Semaphore(SemaphoreOp::Post, semaphore))
                            > ran(Op::Semaphore(SemaphoreOp::Take, semaphore))
                    }
                    None => self.observed.post[event.index()].is_none_or(|post| self.has_run(post)),
                }
            }
            Op::Object(ObjectOp::Free, object) => {
                let is_birth = |&id: &EventId| {
                    self.observed.event(id).op == Op::Object(ObjectOp::Alloc, object)
                };
                // Perhaps nobody saw it allocated.
                self.observed.ids().filter(is_birth).all(|id| self.has_run(id))
            }
            Op::Access(..)
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

    /// A notify finds all whom it woke waiting; one that wakes all, or woke nobody, finds nobody
    /// else but those who waited then too and timed out.
    fn may_notify(&self, notify: EventId) -> bool {
        let op = self.observed.event(notify).op;
        let Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, condition) = op else {
            return false;
        };
        let mut woke_some = false;
        let mut others_wait = false;
        for wait in self.observed.waits.iter().filter(|wait| wait.condition == condition) {
            let has_ended = wait.end.is_some_and(|end| self.has_run(end));
            let was_woken = wait.notify.is_some_and(|by| self.has_run(by));
            let is_waiting = self.has_run(wait.begin) && !has_ended && !was_woken;
            if wait.notify == Some(notify) {
                woke_some = true;
                if !is_waiting {
                    return false;
                }
            } else if is_waiting && !self.observed.is_spared(wait, notify) {
                others_wait = true;
            }
        }
        let wakes_at_most_them = woke_some && matches!(op, Op::Condition(ConditionOp::Notify, _));
        wakes_at_most_them || !others_wait
    }
}
