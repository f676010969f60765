//! The engine: what it knows of a trace once and for all, and the answer to one query.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use reweave_base::{CsrTable, Id, IndexVec};
use reweave_order::mhb::MustHappenBefore;
use reweave_trace::views::{CriticalSection, Mode, SectionId};
use reweave_trace::{
    AccessOp, ConditionId, ConditionOp, EventId, LockId, Op, Reordering, ThreadId, Trace,
    WaitInterval,
};

use crate::exhaustive::{self, Suppliers};
use crate::query::{Query, View};
use crate::search::Search;
use crate::sync_preserving;

/// How many of each thread's first events happen.
pub(crate) type Cut = IndexVec<ThreadId, u32>;

/// The answer to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is a correct reordering that meets the query: this one.
    Feasible(Reordering),
    /// There is none.
    Infeasible(Refuted),
    /// The budget ended first.
    Unknown,
}

/// Why there is no correct reordering that meets a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refuted {
    /// The causal past of what the query asks for has an event that it excludes.
    CausalPast,
    /// What must come before what makes a cycle, whatever else happens.
    Cycle,
    /// Every alternative ends in a cycle, or has an excluded event in its causal past.
    Exhausted,
}

/// What a query costs that takes no saturation.
const QUICK_WORK: u64 = 256;

/// How much work one query may take beyond what is linear in its causal past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// How many exclusions are decided one way or the other.
    pub decisions: u32,
    /// How many sets of completed sections are tried.
    pub completions: u32,
    /// How many entries of clocks are written.
    pub work: u64,
    /// How many states the last resort visits.
    pub states: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { decisions: 1024, completions: 4096, work: 4_000_000_000, states: 200_000 }
    }
}

impl Budget {
    /// As much of everything, `times` over.
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        let small = u32::try_from(times).unwrap_or(u32::MAX);
        let large = usize::try_from(times).unwrap_or(usize::MAX);
        Self {
            decisions: self.decisions.saturating_mul(small),
            completions: self.completions.saturating_mul(small),
            work: self.work.saturating_mul(times),
            states: self.states.saturating_mul(large),
        }
    }
}

/// Answers queries about one trace. Shared by all that ask; each worker has its own [`Solver`].
#[derive(Debug)]
pub struct Engine<'t> {
    trace: &'t Trace,
    mhb: Arc<MustHappenBefore<'t>>,
    locks: IndexVec<LockId, Vec<User>>,
    /// The waits of each thread, as indexes.
    waits: CsrTable<ThreadId, u32>,
    /// The notifies of each condition that come while nobody waits but those they wake.
    notifies: IndexVec<ConditionId, Vec<EventId>>,
    /// Whether a semaphore's start is known.
    counts_tokens: bool,
    /// Must-happen-before if takes may use any post; made when it is first asked for.
    mhb_for_any_post: OnceLock<Arc<MustHappenBefore<'t>>>,
    /// Made when tokens are first counted.
    suppliers: OnceLock<Suppliers>,
}

/// The sections of one thread on one lock, in order.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) thread: ThreadId,
    all: Vec<SectionId>,
    exclusive: Vec<SectionId>,
}

impl<'t> Engine<'t> {
    /// An engine for `trace`.
    #[must_use]
    pub fn new(trace: &'t Trace) -> Self {
        let names = trace.names();
        let mut locks: IndexVec<LockId, Vec<User>> =
            (0..names.locks.len()).map(|_| Vec::new()).collect();
        for lock in locks.ids().collect::<Vec<_>>() {
            let mut users: IndexVec<ThreadId, Option<u32>> = IndexVec::new();
            for &id in trace.sections().on_lock(lock) {
                add_section(&mut locks[lock], &mut users, id, trace.sections().get(id));
            }
        }
        let signals = trace.signals();
        let owner = |wait: &WaitInterval| trace.event(wait.wait).thread;
        let waits = CsrTable::group(names.threads.len(), 0, || {
            signals.wait_intervals().iter().enumerate().map(|(at, wait)| (owner(wait), at as u32))
        });
        let mut notifies = IndexVec::from_elem(Vec::new(), names.conditions.len());
        if !signals.wait_intervals().is_empty() {
            for (id, event) in trace.events() {
                match event.op {
                    Op::Condition(ConditionOp::NotifyAll, on) => notifies[on].push(id),
                    Op::Condition(ConditionOp::Notify, on) if signals.woken(id).is_empty() => {
                        notifies[on].push(id);
                    }
                    _ => {}
                }
            }
        }
        let mut semaphores = names.semaphores.entries();
        let counts_tokens = semaphores.any(|(id, _)| trace.declared().start(id).is_some());
        let mhb = Arc::new(MustHappenBefore::new(trace));
        Self {
            trace,
            mhb,
            locks,
            waits,
            notifies,
            counts_tokens,
            mhb_for_any_post: OnceLock::new(),
            suppliers: OnceLock::new(),
        }
    }

    /// The trace that is asked about.
    #[must_use]
    pub const fn trace(&self) -> &'t Trace {
        self.trace
    }

    /// Must-happen-before in every correct reordering: events that it orders can neither race nor
    /// deadlock.
    #[must_use]
    pub fn mhb(&self) -> &MustHappenBefore<'t> {
        self.mhb_in_all()
    }

    fn mhb_in_all(&self) -> &Arc<MustHappenBefore<'t>> {
        if !self.counts_tokens {
            return &self.mhb;
        }
        let make = || Arc::new(MustHappenBefore::for_any_post(self.trace));
        self.mhb_for_any_post.get_or_init(make)
    }

    /// Answers `query` within the usual budget.
    ///
    /// ```
    /// use reweave_reorder::{Answer, Engine, Query};
    ///
    /// let trace = reweave_testkit::trace("
    /// T1    T2
    /// w(x)
    ///       r(x)
    /// ");
    /// let (write, read) = (trace.numbered(1).unwrap(), trace.numbered(2).unwrap());
    /// let engine = Engine::new(&trace);
    /// // The read can come first if it may see the initial value.
    /// assert!(matches!(engine.solve(&Query::sees(read, None)), Answer::Feasible(_)));
    /// assert!(matches!(engine.solve(&Query::order(&[read, write])), Answer::Infeasible(_)));
    /// ```
    #[must_use]
    pub fn solve(&self, query: &Query) -> Answer {
        Solver::new(self, Budget::default()).solve(query)
    }

    /// The threads that use `lock`.
    pub(crate) fn users(&self, lock: LockId) -> &[User] {
        &self.locks[lock]
    }

    /// The sections that `thread` is in after its first `count` events.
    pub(crate) fn open(
        &self,
        thread: ThreadId,
        count: u32,
    ) -> impl Iterator<Item = &'t CriticalSection> {
        let events = self.trace.thread_events(thread);
        let next = events.get(count as usize).copied();
        let next = next.unwrap_or_else(|| EventId::from_index(self.trace.len()));
        self.trace.sections().held(thread, next)
    }

    /// The last section of `user` among its first `count` events that excludes one in `mode`.
    pub(crate) fn last_section(
        &self,
        user: &User,
        mode: Mode,
        count: u32,
    ) -> Option<&'t CriticalSection> {
        let sections = match mode {
            Mode::Exclusive => &user.all,
            Mode::Shared => &user.exclusive,
        };
        let section = |id: SectionId| self.trace.sections().get(id);
        let is_in = |&id: &SectionId| self.trace.position(section(id).acquire) < count;
        let known = sections.partition_point(is_in);
        known.checked_sub(1).map(|at| section(sections[at]))
    }

    /// The wait that `thread` began last among its first `count` events.
    pub(crate) fn last_wait(&self, thread: ThreadId, count: u32) -> Option<&'t WaitInterval> {
        let own = self.waits.row(thread);
        let wait = |at: u32| &self.trace.signals().wait_intervals()[at as usize];
        let known = own.partition_point(|&at| self.trace.position(wait(at).begin) < count);
        known.checked_sub(1).map(|last| wait(own[last]))
    }

    /// The notifies of the condition of `wait` that must not find it waiting.
    pub(crate) fn unwoken_by(&self, wait: &'t WaitInterval) -> impl Iterator<Item = EventId> {
        let Op::Condition(ConditionOp::Wait, on) = self.trace.event(wait.wait).op else {
            unreachable!("a wait interval has a wait");
        };
        let others = self.notifies[on].iter().copied();
        others.filter(|&notify| wait.notify != Some(notify) && !wait.is_spared_by(notify))
    }

    /// Whether `event` is among the first events that `cut` counts.
    pub(crate) fn is_in(&self, cut: &Cut, event: EventId) -> bool {
        self.trace.position(event) < cut[self.trace.event(event).thread]
    }
}

fn add_section(
    lock: &mut Vec<User>,
    users: &mut IndexVec<ThreadId, Option<u32>>,
    id: SectionId,
    section: &CriticalSection,
) {
    let at = *users.get_or_default(section.thread).get_or_insert_with(|| {
        lock.push(User { thread: section.thread, all: Vec::new(), exclusive: Vec::new() });
        lock.len() as u32 - 1
    });
    let user = &mut lock[at as usize];
    user.all.push(id);
    if section.mode == Mode::Exclusive {
        user.exclusive.push(id);
    }
}

/// The event with which `wait` leaves its condition's queue, if it ever does.
pub(crate) fn leave(wait: &WaitInterval) -> Option<EventId> {
    if wait.times_out { wait.end } else { wait.notify }
}

/// One query, made ready: what it takes at least, and how far each thread may go at most.
#[derive(Debug)]
pub(crate) struct Problem<'e, 't> {
    pub(crate) engine: &'e Engine<'t>,
    pub(crate) query: &'e Query,
    pub(crate) mhb: Arc<MustHappenBefore<'t>>,
    /// Whether some read may see another write and its thread runs on.
    has_free_reads: bool,
    /// For threads that may not run on, how many events they may run.
    caps: Vec<(ThreadId, u32)>,
    /// How many threads and sections were looked at for what is in the way.
    pub(crate) lookups: Cell<u64>,
}

/// The last order that was made for free reads: the next query often frees the same.
#[derive(Debug, Default)]
struct LastOrder<'t> {
    free: Vec<EventId>,
    mhb: Option<Arc<MustHappenBefore<'t>>>,
    /// How many events were visited for it.
    lookups: u64,
}

impl<'t> LastOrder<'t> {
    fn with_free_reads(
        &mut self,
        trace: &'t Trace,
        free: Vec<EventId>,
    ) -> Arc<MustHappenBefore<'t>> {
        if let Some(mhb) = self.mhb.as_ref().filter(|_| self.free == free) {
            return Arc::clone(mhb);
        }
        self.lookups += trace.len() as u64;
        let mhb = Arc::new(MustHappenBefore::with_free_reads(trace, &free));
        self.free = free;
        self.mhb = Some(Arc::clone(&mhb));
        mhb
    }
}

impl<'e, 't> Problem<'e, 't> {
    fn new(engine: &'e Engine<'t>, query: &'e Query, last: &mut LastOrder<'t>) -> Self {
        let trace = engine.trace;
        let place = |event: EventId| (trace.event(event).thread, trace.position(event));
        let mut caps = Vec::new();
        for &event in query.enabled.iter().chain(&query.absent) {
            caps.push(place(event));
        }
        for &event in &query.stop {
            let (thread, position) = place(event);
            caps.push((thread, position + 1));
            let var = trace.event(event).op.var().filter(|_| trace.event(event).op.is_write());
            for &reader in var.map_or(&[][..], |var| trace.accesses(var)) {
                if trace.writer(reader) == Some(event) && query.view(reader).is_none() {
                    caps.push(place(reader));
                }
            }
        }
        let runs_on = |&&(read, _): &&(EventId, View)| !query.stop.contains(&read);
        let free: Vec<EventId> =
            query.views.iter().filter(runs_on).map(|&(read, _)| read).collect();
        let has_free_reads = !free.is_empty();
        let mhb = if has_free_reads {
            last.with_free_reads(trace, free)
        } else {
            Arc::clone(&engine.mhb)
        };
        let lookups = Cell::new(std::mem::take(&mut last.lookups));
        Self { engine, query, mhb, has_free_reads, caps, lookups }
    }

    /// The causal past of the query: the least that happens in every reordering that meets it.
    fn causal_past(&self) -> Cut {
        let mut cut = IndexVec::from_elem(0, self.engine.trace.names().threads.len());
        for &event in &self.query.enabled {
            self.mhb.before(event).join_into(&mut cut);
        }
        let ordered = self.query.order.iter().flat_map(|&(first, second)| [first, second]);
        let read = self.query.views.iter().map(|&(read, _)| read);
        for event in self.query.must.iter().copied().chain(ordered).chain(read) {
            self.add(event, &mut cut);
        }
        cut
    }

    /// Raises `cut` to hold the causal past of `event`.
    pub(crate) fn add(&self, event: EventId, cut: &mut Cut) {
        match self.query.view(event) {
            None => self.mhb.past(event).join_into(cut),
            Some(view) => {
                self.mhb.before(event).join_into(cut);
                let trace = self.engine.trace;
                let own = &mut cut[trace.event(event).thread];
                *own = (*own).max(trace.position(event) + 1);
                if let View::Of(Some(write)) = view {
                    self.mhb.past(write).join_into(cut);
                }
            }
        }
    }

    /// What `event` must see, if it is a read that must see something in particular: a write, or
    /// the initial value.
    pub(crate) fn must_see(&self, event: EventId) -> Option<Option<EventId>> {
        let op = self.engine.trace.event(event).op;
        match self.query.view(event) {
            _ if !op.is_read() => None,
            Some(View::Any) => None,
            Some(View::Of(write)) => Some(write),
            None if self.query.relaxed || matches!(op, Op::Access(AccessOp::UnknownRead, _)) => {
                None
            }
            None => Some(self.engine.trace.writer(event)),
        }
    }

    /// Whether `cut` holds an event that must not happen.
    pub(crate) fn is_excluded(&self, cut: &Cut) -> bool {
        self.caps.iter().any(|&(thread, count)| cut[thread] > count)
    }

    /// Whether the causal past of `event` has an event that must not happen.
    pub(crate) fn is_unreachable(&self, event: EventId) -> bool {
        let past = self.mhb.past(event);
        self.caps.iter().any(|&(thread, count)| past.get(thread) > count)
    }

    /// Whether the causal past of the query has an event that it excludes, whichever posts are taken.
    fn is_refuted_for_any_post(&self) -> bool {
        if self.has_free_reads {
            return false;
        }
        let mhb = Arc::clone(self.engine.mhb_in_all());
        let caps = self.caps.clone();
        let problem = Problem { mhb, caps, lookups: Cell::new(0), ..*self };
        problem.is_excluded(&problem.causal_past())
    }

    /// Whether the observed order of whatever happens is as the query asks.
    fn is_as_observed(&self) -> bool {
        self.query.views.is_empty() && self.query.order.iter().all(|(first, second)| first < second)
    }
}

/// Answers queries one after the other.
#[derive(Debug)]
pub struct Solver<'e, 't> {
    engine: &'e Engine<'t>,
    budget: Budget,
    search: Search,
    last_order: LastOrder<'t>,
}

impl<'e, 't> Solver<'e, 't> {
    /// A solver that spends at most `budget` on each query.
    #[must_use]
    pub fn new(engine: &'e Engine<'t>, budget: Budget) -> Self {
        Self { engine, budget, search: Search::default(), last_order: LastOrder::default() }
    }

    /// The engine that it asks.
    #[must_use]
    pub const fn engine(&self) -> &'e Engine<'t> {
        self.engine
    }

    /// From now on spends at most `work` on each query.
    pub const fn limit(&mut self, work: u64) {
        self.budget.work = work;
    }

    /// Forgets what it keeps of earlier queries, so that the next ones cost what they would cost
    /// without them.
    pub fn forget(&mut self) {
        self.last_order = LastOrder::default();
    }

    /// Answers `query`.
    pub fn solve(&mut self, query: &Query) -> Answer {
        let problem = Problem::new(self.engine, query, &mut self.last_order);
        let past = problem.causal_past();
        let quick = quick_answer(&problem, &past);
        self.charge(&problem);
        let answer = quick.unwrap_or_else(|| self.search.run(&problem, past, self.budget));
        if matches!(answer, Answer::Feasible(_)) || !self.engine.counts_tokens {
            return answer;
        }
        if problem.is_refuted_for_any_post() {
            return Answer::Infeasible(Refuted::CausalPast);
        }
        // Other posts may do as well as those that were used, and only a search that counts tokens can say.
        let names = self.engine.trace.names();
        let size = (names.threads.len() + names.vars.len()) as u64;
        let states_max = self.budget.states.min((self.budget.work / size.max(1)) as usize);
        let suppliers = self.engine.suppliers.get_or_init(|| Suppliers::new(self.engine.trace));
        let (answer, work) = exhaustive::search(self.engine.trace, suppliers, query, states_max);
        self.search.work += work;
        answer
    }

    /// Answers `query` as far as that takes no saturation: almost all that are feasible, and those
    /// whose causal past has what they exclude.
    pub fn solve_quickly(&mut self, query: &Query) -> Option<Answer> {
        let problem = Problem::new(self.engine, query, &mut self.last_order);
        let answer = quick_answer(&problem, &problem.causal_past());
        self.charge(&problem);
        let is_final = matches!(answer, Some(Answer::Feasible(_))) || !self.engine.counts_tokens;
        answer.filter(|_| is_final)
    }

    /// A reordering that meets `query` and keeps the observed order of the sections, the waits and
    /// the posts that it runs, if there is one: it runs in observed order.
    pub fn sync_preserving(&mut self, query: &Query) -> Option<Reordering> {
        let problem = Problem::new(self.engine, query, &mut self.last_order);
        let mut cut = problem.causal_past();
        let is_found = problem.is_as_observed() && sync_preserving::close(&problem, &mut cut);
        self.charge(&problem);
        is_found.then(|| Reordering { base: cut, schedule: Vec::new() })
    }

    /// How much work the queries took since this was last asked.
    pub const fn take_work(&mut self) -> u64 {
        std::mem::replace(&mut self.search.work, 0)
    }

    /// How much work was done by now, and how much may be when one more query is over.
    pub(crate) const fn work(&self) -> u64 {
        self.search.work
    }

    pub(crate) const fn work_limit(&self) -> u64 {
        self.search.work.saturating_add(self.budget.work)
    }

    /// Counts what was done besides queries.
    pub(crate) const fn add_work(&mut self, work: u64) {
        self.search.work += work;
    }

    /// Counts what was looked at for a quick answer.
    fn charge(&mut self, problem: &Problem<'_, '_>) {
        let threads_count = self.engine.trace.names().threads.len() as u64;
        self.search.work += QUICK_WORK + threads_count + problem.lookups.get();
    }
}

/// The answer, if it follows from the causal past and the observed order.
fn quick_answer(problem: &Problem<'_, '_>, past: &Cut) -> Option<Answer> {
    if problem.is_excluded(past) {
        return Some(Answer::Infeasible(Refuted::CausalPast));
    }
    if !problem.is_as_observed() {
        return None;
    }
    let mut cut = past.clone();
    if sync_preserving::close(problem, &mut cut) {
        return Some(Answer::Feasible(Reordering { base: cut, schedule: Vec::new() }));
    }
    // A deferred tail may not come after what the query puts after it.
    if !problem.query.order.is_empty() {
        return None;
    }
    sync_preserving::defer_tails(problem, past.clone()).map(Answer::Feasible)
}
