//! The engine: what it knows of a trace once and for all, and the answer to one query.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use reweave_base::{CsrTable, Id, IndexVec};
use reweave_order::needs::MustHappenBefore;
use reweave_trace::views::{CriticalSection, Mode, SectionId};
use reweave_trace::{
    AccessOp, ConditionId, ConditionOp, EventId, LockId, Op, Reordering, ThreadId, Trace,
    WaitInterval,
};

use crate::exhaustive;
use crate::growth;
use crate::postpone;
use crate::query::{Query, View};
use crate::search::Search;

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
    /// What the query asks for needs an event that it excludes.
    Needed,
    /// What must come before what makes a cycle, whatever else happens.
    Cycle,
    /// Every way to go on ends in a cycle or needs what is excluded.
    Exhausted,
}

/// What a query costs that no closure is needed for.
const QUICK_WORK: u64 = 256;

/// How much work one query may take beyond what is linear in the needed set.
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

/// Answers queries about one trace. Shared by all that ask; each worker has its own [`Solver`].
#[derive(Debug)]
pub struct Engine<'t> {
    trace: &'t Trace,
    needs: MustHappenBefore<'t>,
    locks: IndexVec<LockId, Vec<User>>,
    /// The stays in conditions' queues of each thread, as indexes.
    stays: CsrTable<ThreadId, u32>,
    /// The notifies of each condition that come while nobody waits but those they wake.
    notifies: IndexVec<ConditionId, Vec<EventId>>,
    /// Whether a semaphore's start is known.
    counts_tokens: bool,
    sure_needs: OnceLock<MustHappenBefore<'t>>,
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
        let owner = |stay: &WaitInterval| trace.event(stay.wait).thread;
        let stays = CsrTable::group(names.threads.len(), 0, || {
            signals.stays().iter().enumerate().map(|(at, stay)| (owner(stay), at as u32))
        });
        let mut notifies = IndexVec::from_elem(Vec::new(), names.conditions.len());
        if !signals.stays().is_empty() {
            for (id, event) in trace.events() {
                match event.op {
                    Op::Condition(ConditionOp::NotifyAll, on) => notifies[on].push(id),
                    Op::Condition(ConditionOp::Notify, on) if signals.woken(id).is_empty() => {
                        notifies[on].push(id)
                    }
                    _ => {}
                }
            }
        }
        let mut semaphores = names.semaphores.entries();
        let counts_tokens = semaphores.any(|(id, _)| trace.declared().start(id).is_some());
        let (needs, sure_needs) = (MustHappenBefore::new(trace), OnceLock::new());
        Self { trace, needs, locks, stays, notifies, counts_tokens, sure_needs }
    }

    /// The trace that is asked about.
    #[must_use]
    pub const fn trace(&self) -> &'t Trace {
        self.trace
    }

    /// What each event needs in every correct reordering: what is needed of each other can neither
    /// race nor deadlock.
    #[must_use]
    pub fn needs(&self) -> &MustHappenBefore<'t> {
        if !self.counts_tokens {
            return &self.needs;
        }
        self.sure_needs.get_or_init(|| MustHappenBefore::for_sure(self.trace))
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

    /// The stay that `thread` began last among its first `count` events.
    pub(crate) fn last_stay(&self, thread: ThreadId, count: u32) -> Option<&'t WaitInterval> {
        let own = self.stays.row(thread);
        let stay = |at: u32| &self.trace.signals().stays()[at as usize];
        let known = own.partition_point(|&at| self.trace.position(stay(at).begin) < count);
        known.checked_sub(1).map(|last| stay(own[last]))
    }

    /// The notifies of the condition of `stay` that must not find it waiting.
    pub(crate) fn kept_from(&self, stay: &'t WaitInterval) -> impl Iterator<Item = EventId> {
        let Op::Condition(ConditionOp::Wait, on) = self.trace.event(stay.wait).op else {
            unreachable!("a stay has a wait");
        };
        let others = self.notifies[on].iter().copied();
        others.filter(|&notify| stay.notify != Some(notify) && !stay.is_spared_by(notify))
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

/// From where on a thread is no longer in the queue that `stay` is in, if it ever is.
pub(crate) fn leave(stay: &WaitInterval) -> Option<EventId> {
    if stay.times_out { stay.end } else { stay.notify }
}

/// One query, made ready: what it needs at least, and how far each thread may go at most.
#[derive(Debug)]
pub(crate) struct Problem<'e, 't> {
    pub(crate) engine: &'e Engine<'t>,
    pub(crate) query: &'e Query,
    pub(crate) needs: SomeNeeds<'e, 't>,
    /// For threads that may not run on, how many events they may run.
    caps: Vec<(ThreadId, u32)>,
    /// How many threads and sections were looked at for what is in the way.
    pub(crate) looks: Cell<u64>,
}

/// The last needs that were made for a query: the next one often asks for the same.
#[derive(Debug, Default)]
struct Kept<'t> {
    free: Vec<EventId>,
    needs: Option<Arc<MustHappenBefore<'t>>>,
    /// How many events were gone through for them.
    looks: u64,
}

impl<'t> Kept<'t> {
    fn without(&mut self, trace: &'t Trace, free: Vec<EventId>) -> Arc<MustHappenBefore<'t>> {
        if let Some(needs) = self.needs.as_ref().filter(|_| self.free == free) {
            return Arc::clone(needs);
        }
        self.looks += trace.len() as u64;
        let needs = Arc::new(MustHappenBefore::without(trace, &free));
        self.free = free;
        self.needs = Some(Arc::clone(&needs));
        needs
    }
}

/// Needs that are the engine's, or made for one query.
#[derive(Debug)]
pub(crate) enum SomeNeeds<'e, 't> {
    Shared(&'e MustHappenBefore<'t>),
    Own(Arc<MustHappenBefore<'t>>),
}

impl<'t> std::ops::Deref for SomeNeeds<'_, 't> {
    type Target = MustHappenBefore<'t>;

    fn deref(&self) -> &MustHappenBefore<'t> {
        match self {
            Self::Shared(needs) => needs,
            Self::Own(needs) => needs,
        }
    }
}

impl<'e, 't> Problem<'e, 't> {
    fn new(engine: &'e Engine<'t>, query: &'e Query, kept: &mut Kept<'t>) -> Self {
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
        let needs = match free.is_empty() {
            true => SomeNeeds::Shared(&engine.needs),
            false => SomeNeeds::Own(kept.without(trace, free)),
        };
        let looks = Cell::new(std::mem::take(&mut kept.looks));
        Self { engine, query, needs, caps, looks }
    }

    /// The least that happens in every reordering that meets the query.
    fn seed(&self) -> Cut {
        let mut cut = IndexVec::from_elem(0, self.engine.trace.names().threads.len());
        for &event in &self.query.enabled {
            self.needs.before(event).join_into(&mut cut);
        }
        let ordered = self.query.order.iter().flat_map(|&(first, second)| [first, second]);
        let read = self.query.views.iter().map(|&(read, _)| read);
        for event in self.query.must.iter().copied().chain(ordered).chain(read) {
            self.add(event, &mut cut);
        }
        cut
    }

    /// Raises `cut` to hold `event` and what it needs.
    pub(crate) fn add(&self, event: EventId, cut: &mut Cut) {
        match self.query.view(event) {
            None => self.needs.of_event(event).join_into(cut),
            Some(view) => {
                self.needs.before(event).join_into(cut);
                let trace = self.engine.trace;
                let own = &mut cut[trace.event(event).thread];
                *own = (*own).max(trace.position(event) + 1);
                if let View::Of(Some(write)) = view {
                    self.needs.of_event(write).join_into(cut);
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
            None if self.query.loose || matches!(op, Op::Access(AccessOp::UnknownRead, _)) => None,
            None => Some(self.engine.trace.writer(event)),
        }
    }

    /// Whether `cut` holds an event that must not happen.
    pub(crate) fn is_too_much(&self, cut: &Cut) -> bool {
        self.caps.iter().any(|&(thread, count)| cut[thread] > count)
    }

    /// Whether running `event` takes an event that must not happen.
    pub(crate) fn is_out_of_reach(&self, event: EventId) -> bool {
        let needed = self.needs.of_event(event);
        self.caps.iter().any(|&(thread, count)| needed.get(thread) > count)
    }

    /// Whether what the query asks for needs an event that it excludes, whichever posts are taken.
    fn is_refuted_for_sure(&self) -> bool {
        let SomeNeeds::Shared(_) = self.needs else { return false };
        let needs = SomeNeeds::Shared(self.engine.needs());
        let caps = self.caps.clone();
        let sure = Problem { needs, caps, looks: Cell::new(0), ..*self };
        sure.is_too_much(&sure.seed())
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
    kept: Kept<'t>,
}

impl<'e, 't> Solver<'e, 't> {
    /// A solver that spends at most `budget` on each query.
    #[must_use]
    pub fn new(engine: &'e Engine<'t>, budget: Budget) -> Self {
        Self { engine, budget, search: Search::default(), kept: Kept::default() }
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
        self.kept = Kept::default();
    }

    /// Answers `query`.
    pub fn solve(&mut self, query: &Query) -> Answer {
        let problem = Problem::new(self.engine, query, &mut self.kept);
        let seed = problem.seed();
        let quick = quick_answer(&problem, &seed);
        self.charge(&problem);
        let answer = quick.unwrap_or_else(|| self.search.run(&problem, seed, self.budget));
        if matches!(answer, Answer::Feasible(_)) || !self.engine.counts_tokens {
            return answer;
        }
        if problem.is_refuted_for_sure() {
            return Answer::Infeasible(Refuted::Needed);
        }
        // Other posts may do as well as those that were used.
        let names = self.engine.trace.names();
        let size = (names.threads.len() + names.vars.len()) as u64;
        let states_max = self.budget.states.min((self.budget.work / size.max(1)) as usize);
        let (answer, states_count) = exhaustive::search(self.engine.trace, query, states_max);
        self.search.work += states_count as u64 * size;
        answer
    }

    /// Answers `query` as far as that takes no closure: almost all that are feasible, and those that
    /// need what they exclude.
    pub fn solve_quickly(&mut self, query: &Query) -> Option<Answer> {
        let problem = Problem::new(self.engine, query, &mut self.kept);
        let answer = quick_answer(&problem, &problem.seed());
        self.charge(&problem);
        let is_final = matches!(answer, Some(Answer::Feasible(_))) || !self.engine.counts_tokens;
        answer.filter(|_| is_final)
    }

    /// A reordering that meets `query` and keeps the observed order of the sections, the waits and
    /// the posts that it runs, if there is one: it runs in observed order.
    pub fn preserve(&mut self, query: &Query) -> Option<Reordering> {
        let problem = Problem::new(self.engine, query, &mut self.kept);
        let mut cut = problem.seed();
        let is_found = problem.is_as_observed() && growth::preserve(&problem, &mut cut);
        self.charge(&problem);
        is_found.then(|| Reordering { base: cut, schedule: Vec::new() })
    }

    /// How much work the queries took since this was last asked.
    pub const fn take_work(&mut self) -> u64 {
        std::mem::replace(&mut self.search.work, 0)
    }

    /// Counts what was looked at for a quick answer.
    fn charge(&mut self, problem: &Problem<'_, '_>) {
        let threads_count = self.engine.trace.names().threads.len() as u64;
        self.search.work += QUICK_WORK + threads_count + problem.looks.get();
    }
}

/// The answer, if it follows from the needed set and the observed order.
fn quick_answer(problem: &Problem<'_, '_>, seed: &Cut) -> Option<Answer> {
    if problem.is_too_much(seed) {
        return Some(Answer::Infeasible(Refuted::Needed));
    }
    if !problem.is_as_observed() {
        return None;
    }
    let mut cut = seed.clone();
    if growth::preserve(problem, &mut cut) {
        return Some(Answer::Feasible(Reordering { base: cut, schedule: Vec::new() }));
    }
    // What is put off may not come after what the query puts after it.
    if !problem.query.order.is_empty() {
        return None;
    }
    postpone::postpone(problem, seed.clone()).map(Answer::Feasible)
}
