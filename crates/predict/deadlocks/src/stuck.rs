//! Threads that can get stuck: a notify that comes too early, locks held while waiting, locks and tokens that are kept.
//!
//! A thread is stuck after a correct reordering if what it waits for is for others to do, and all
//! others have run to the ends of what was recorded or are stuck as well. Five faults lead there:
//!
//! - a *lost wake-up*: the notify that woke a thread can come before the thread waits. Then nobody wakes
//!   it. The rule that a notify finds those waiting whom it woke does not hold for this wait, since the
//!   notifying thread cannot tell; every read still sees what it saw, so a program that checks under
//!   the lock whether it has to wait has no such schedule;
//! - a thread that *waits while it holds a lock*, or a token of a semaphore, which the thread that it waits for has to
//!   acquire first: for the end of that thread, for its notify, its post or its arrival at a barrier. The lock may also
//!   be needed by a thread for which that one waits in turn;
//! - threads that *wait for each other's tokens* in a cycle, locks perhaps among them;
//! - a *lock that is kept*: a thread acquires it and never releases it. If it comes first, nobody else has it again;
//! - a *missing post*: a thread takes a token of a semaphore and never posts it again. If it comes first, there is none
//!   left for another.
//!
//! A candidate says where a thread or two stop. Whoever needs what comes after stops there as well, and
//! must wait there too; others may have to stop at locks that a stopped thread holds, which is tried next.
//! All that is left must run, and the engine is asked for an order. For a lost wake-up it is asked about
//! the run without the wait, in which every notify that would wake the thread comes first.
//!
//! A join in a cycle with a lock needs no look at others, since nobody else can end it: such a cycle is
//! a deadlock. A program that ends while threads wait is not stuck: the thread that the process ends
//! with must be among those that are, and threads that still ran when the recording ended may go
//! on in ways that were not recorded, so there must be none.
//!
//! In a recorded program a wake-up counts as lost only if what the thread looked at before it waited is recorded:
//! code that is not, such as that of the C++ library, may look at what was written out of sight.
//!
//! Sound: each finding is a schedule that the checker accepted. Not complete: at most `QUERIES_MAX` sets
//! of stops are tried for a candidate, a notify that wakes another thread instead is not looked at, and of
//! the instances at the same code locations, on the same, at most `TRIES_MAX` are tried. It is a claim about recorded
//! events: code that did not run may wake a thread as well.
//!
//! Costs a pass over the waits, joins and sections; for each candidate a query, and for a lost wake-up a copy of
//! the events. `oracle::stuck` is the definition.

mod tokens;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use reweave_analysis::{
    Analysis, Class, Counter, Counters, Coverage, Detail, Finding, Gathered, Guarantee, Identities,
    Info, Kind, Layer, Settings, Sink, Subject, Truncation, located, waiting,
};
use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_driver::{Driver, Evaluated, Evaluator, Group, Predictor, Reorderings, Tried};
use reweave_order::mhb::MustHappenBefore;
use reweave_reorder::{Answer, Budget, Engine, Query, Solver};
use reweave_trace::{
    BarrierOp, ConditionOp, EndKind, EventId, Goal, LockId, LockOp, Marker, Op, SemaphoreOp,
    SiteId, ThreadId, ThreadOp, Trace, WaitInterval,
};

use tokens::HeldTokens;

/// How many sets of stops are tried for one candidate.
const QUERIES_MAX: usize = 16;

/// How many instances at the same code locations, on the same, are tried: each costs as much as the whole trace.
const TRIES_MAX: usize = 2;

/// How the variables are called by which the recorder orders a handler of a signal that ran.
const HANDLER: &str = "signal_handler";

/// How many of a thread's last reads before it waits are looked at for what it decided by.
const READS_MAX: usize = 8;

/// How many events of a thread are gone through for those.
const LOOKBACK_MAX: usize = 64;

/// How many events are gone through between two looks at whether to stop.
const STRIDE: usize = 1 << 16;

/// What `subject` has of threads that can get stuck, as findings.
#[must_use]
pub fn stuck(subject: &Subject<'_>, settings: &Settings) -> Vec<Finding> {
    let mut sink = Gathered::default();
    StuckThreads.run(subject, settings, &mut sink);
    sink.findings
}

/// Where a thread may stop for ever, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Candidate {
    /// The notify that woke this wait comes before it.
    LostWake(WaitInterval),
    /// A thread waits at `waits` while it holds a lock or a token that the thread it waits for acquires at
    /// `acquire`, before it does what is waited for.
    Holds { waits: EventId, acquire: EventId },
    /// Each thread waits for a lock or a token that the next one holds.
    Cycle(Vec<EventId>),
    /// The lock is never free again at `acquire` once another thread has acquired it at `keeps`.
    KeptLock { acquire: EventId, keeps: EventId },
    /// There is no token left at `take` once another thread has taken one at `keeps`.
    KeptToken { take: EventId, keeps: EventId },
}

impl Candidate {
    fn events(&self) -> Vec<EventId> {
        match self {
            Self::LostWake(wait) => vec![wait.wait, wait.notify.unwrap_or(wait.wait)],
            &Self::Holds { waits, acquire } => vec![waits, acquire],
            Self::Cycle(cycle) => cycle.clone(),
            &Self::KeptLock { acquire, keeps } => vec![acquire, keeps],
            &Self::KeptToken { take, keeps } => vec![take, keeps],
        }
    }

    /// Where threads stop at least.
    fn stops(&self) -> Vec<EventId> {
        match self {
            Self::LostWake(wait) => wait.end.into_iter().collect(),
            &Self::Holds { waits, acquire } => vec![waits, acquire],
            Self::Cycle(cycle) => cycle.clone(),
            &Self::KeptLock { acquire: waits, .. } | &Self::KeptToken { take: waits, .. } => {
                vec![waits]
            }
        }
    }
}

/// Whether the thread of `event` waits there, if it has to, for as long as it takes.
fn waits_for_ever(trace: &Trace, event: EventId) -> bool {
    let can_wait = matches!(
        trace.event(event).op,
        Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _)
            | Op::Condition(ConditionOp::Wake, _)
            | Op::Thread(ThreadOp::Join, _)
            | Op::Semaphore(SemaphoreOp::Take, _)
            | Op::Barrier(BarrierOp::Depart, _)
    );
    can_wait && trace.may_wait(event)
}

/// Whether what made the thread of `wait` wait is recorded. In a recorded program code that is not may look at
/// what `notify` is about, and decide. So the thread must have read something that who notifies writes
/// between that and the notify, or nothing at all; other traces are taken to be whole.
fn is_decision_seen(trace: &Trace, wait: &WaitInterval, notify: EventId) -> bool {
    if !trace.declared().waits_are_requested {
        return true;
    }
    let before = |event: EventId| {
        let own = trace.thread_events(trace.event(event).thread);
        own[..trace.position(event) as usize].iter().rev().copied().take(LOOKBACK_MAX)
    };
    let previous = before(wait.begin).next().map(|id| trace.event(id).op);
    if previous == Some(Op::Marker(Marker::Unchecked)) {
        return true;
    }
    let writes: Vec<EventId> = before(notify).filter(|&id| trace.event(id).op.is_write()).collect();
    // What it looked at before an earlier wait decided about that.
    let is_since = |&id: &EventId| {
        !matches!(trace.event(id).op, Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _))
    };
    let since = before(wait.begin).take_while(is_since);
    let mut reads = since.filter(|&id| trace.event(id).op.is_read()).take(READS_MAX);
    reads.any(|read| {
        let var = trace.event(read).op.var();
        writes.iter().any(|&write| write > read && trace.event(write).op.var() == var)
    })
}

/// Finds candidates and groups them by their code locations and what they are on: a helper may be handed other locks.
struct Candidates<'a, 't> {
    trace: &'t Trace,
    subject: &'a Subject<'t>,
    identities: Identities<'t>,
    all: bool,
    groups: Vec<(Vec<Candidate>, u64)>,
    at: FxHashMap<Vec<(SiteId, Class)>, usize>,
    /// Whether there may be more candidates, since a limit was reached.
    is_capped: bool,
    tokens: HeldTokens,
    /// The acquires of a lock by a thread, for the locks that were asked about.
    acquires: FxHashMap<LockId, BTreeMap<ThreadId, Vec<EventId>>>,
}

impl<'a, 't> Candidates<'a, 't> {
    fn new(driver: &mut Driver<'a, 't>) -> Self {
        let trace = driver.trace();
        let mut candidates = Self {
            trace,
            subject: driver.subject(),
            identities: Identities::new(trace),
            all: driver.settings().all,
            groups: Vec::new(),
            at: FxHashMap::default(),
            is_capped: false,
            tokens: HeldTokens::default(),
            acquires: FxHashMap::default(),
        };
        let mut vars = trace.names().vars.entries();
        // A handler of a signal can post while its thread waits.
        let has_handlers = vars.any(|(_, name)| name.starts_with(HANDLER));
        if !has_handlers && !trace.names().semaphores.is_empty() {
            candidates.tokens = HeldTokens::new(trace);
        }
        for id in waits(driver) {
            match trace.event(id).op {
                Op::Condition(ConditionOp::Wake, _) => {
                    let wait = trace.signals().wait_interval(id).copied();
                    let Some((wait, notify)) = wait.and_then(|it| Some((it, it.notify?))) else {
                        continue;
                    };
                    if waits_for_ever(trace, id) {
                        if is_decision_seen(trace, &wait, notify) {
                            candidates.add(Candidate::LostWake(wait));
                        }
                        candidates.add_held(id, notify);
                    }
                }
                Op::Thread(ThreadOp::Join, child) => {
                    // All that it did is before its last event, or is that.
                    if let Some(&last) = trace.thread_events(child).last() {
                        candidates.add_held(id, last);
                    }
                }
                Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                    let is_known = trace.declared().start(semaphore).is_some() && !has_handlers;
                    if let Some(post) = trace.signals().post(id).filter(|_| is_known) {
                        candidates.add_held(id, post);
                    }
                }
                Op::Barrier(BarrierOp::Depart, barrier) => {
                    let signals = trace.signals();
                    let generation = signals.needed_generation(id);
                    let is_known = trace.declared().parties(barrier).is_some();
                    if let Some(generation) = generation.filter(|_| is_known) {
                        for &arrival in &signals.generation(generation).arrivals {
                            candidates.add_held(id, arrival);
                        }
                    }
                }
                _ => {}
            }
        }
        candidates.add_kept_locks();
        if !candidates.tokens.is_empty() {
            candidates.add_tokens();
        }
        candidates
    }

    /// Adds the acquires of locks that another thread acquires later and never releases.
    fn add_kept_locks(&mut self) {
        let trace = self.trace;
        for (_, kept) in trace.sections().entries().filter(|(_, it)| it.release.is_none()) {
            let keeps = kept.acquire;
            let by_thread =
                self.acquires.entry(kept.lock).or_insert_with(|| acquires_of(trace, kept.lock));
            for acquire in last_acquires(by_thread, kept.thread, self.all, |it| it < keeps) {
                self.add(Candidate::KeptLock { acquire, keeps });
            }
        }
    }

    /// Adds takes that find no token if another thread keeps it, and cycles of threads that hold tokens.
    fn add_tokens(&mut self) {
        for (take, keeps) in tokens::kept(self.trace) {
            self.add(Candidate::KeptToken { take, keeps });
        }
        let cycles = self.tokens.cycles(self.trace, self.all);
        self.is_capped |= cycles.is_capped;
        for cycle in cycles.found {
            self.add(Candidate::Cycle(cycle));
        }
    }

    fn add(&mut self, candidate: Candidate) {
        let sides = candidate.events().into_iter().map(|event| {
            let event = self.trace.event(event);
            (event.site, self.identities.class_of(event.op))
        });
        let at = *self.at.entry(sides.collect()).or_insert(self.groups.len());
        if self.all || at == self.groups.len() {
            self.groups.push((vec![candidate], 1));
            return;
        }
        let (tried, count) = &mut self.groups[at];
        *count += 1;
        if tried.len() < TRIES_MAX {
            tried.push(candidate);
        }
    }

    /// Adds the acquires of locks and tokens that the thread of `waits` holds there, by others, without which `cause`,
    /// for which it waits, does not happen.
    fn add_held(&mut self, waits: EventId, cause: EventId) {
        let (trace, waiter) = (self.trace, self.trace.event(waits).thread);
        if trace.event(cause).thread == waiter || !waits_for_ever(trace, waits) {
            return;
        }
        let is_needed = |acquire: EventId| {
            let past = self.subject.engine().mhb().past(cause);
            trace.position(acquire) < past.get(trace.event(acquire).thread)
        };
        let mut acquires = Vec::new();
        for section in trace.sections().held(waiter, waits) {
            let by_thread = self
                .acquires
                .entry(section.lock)
                .or_insert_with(|| acquires_of(trace, section.lock));
            acquires.extend(last_acquires(by_thread, waiter, self.all, is_needed));
        }
        for semaphore in self.tokens.held(waiter, waits) {
            let takes = self.tokens.takes(semaphore).into_iter();
            acquires.extend(takes.flat_map(|it| last_acquires(it, waiter, self.all, is_needed)));
        }
        for acquire in acquires {
            self.add(Candidate::Holds { waits, acquire });
        }
    }
}

/// Of the acquires of something `by_thread` those of each thread but `holder`, as long as `is_wanted` says so, which of
/// a thread it does of the first ones. Without `all` the last of them, which are the most likely to be free to come
/// later.
fn last_acquires(
    by_thread: &BTreeMap<ThreadId, Vec<EventId>>,
    holder: ThreadId,
    all: bool,
    is_wanted: impl Fn(EventId) -> bool,
) -> Vec<EventId> {
    let others = by_thread.iter().filter(|&(&thread, _)| thread != holder);
    let last = others.flat_map(|(_, own)| {
        let wanted = &own[..own.partition_point(|&acquire| is_wanted(acquire))];
        &wanted[if all { 0 } else { wanted.len().saturating_sub(TRIES_MAX) }..]
    });
    last.copied().collect()
}

/// The events at which threads may wait for others, but for locks, in order.
fn waits(driver: &mut Driver<'_, '_>) -> Vec<EventId> {
    let trace = driver.trace();
    let names = trace.names();
    if driver.progress(0, 1).is_break() {
        return Vec::new();
    }
    if names.conditions.is_empty() && names.semaphores.is_empty() && names.barriers.is_empty() {
        // Then there are few, and no need to look at all events.
        let threads = (0..names.threads.len()).map(ThreadId::from_index);
        let mut joins: Vec<EventId> = threads.filter_map(|it| trace.lifetime(it).join).collect();
        joins.sort_unstable();
        return joins;
    }
    let mut waits = Vec::new();
    for (id, event) in trace.events() {
        if id.index().is_multiple_of(STRIDE) && driver.progress(id.index(), trace.len()).is_break()
        {
            break;
        }
        let may_wait = matches!(
            event.op,
            Op::Condition(ConditionOp::Wake, _)
                | Op::Thread(ThreadOp::Join, _)
                | Op::Semaphore(SemaphoreOp::Take, _)
                | Op::Barrier(BarrierOp::Depart, _)
        );
        waits.extend(may_wait.then_some(id));
    }
    waits
}

/// The acquires of `lock` that wait if they have to, by thread.
fn acquires_of(trace: &Trace, lock: LockId) -> BTreeMap<ThreadId, Vec<EventId>> {
    let mut by_thread: BTreeMap<ThreadId, Vec<EventId>> = BTreeMap::new();
    for &section in trace.sections().on_lock(lock) {
        let section = trace.sections().get(section);
        if trace.may_wait(section.acquire) {
            by_thread.entry(section.thread).or_default().push(section.acquire);
        }
    }
    by_thread
}

/// Where the threads of a run stop, and how many events each has run by then.
#[derive(Clone, Debug)]
struct Stops {
    /// The next event of each thread that stops.
    events: Vec<EventId>,
    counts: IndexVec<ThreadId, u32>,
}

/// The search for threads that get stuck as one of many.
#[derive(Clone, Copy, Debug, Default)]
pub struct StuckThreads;

const INFO: Info = Info {
    name: "deadlocks.stuck",
    family: "deadlocks",
    kind: Kind::Stuck,
    guarantee: Guarantee::Witnessed,
    needs: Layer::Events,
    is_default: true,
    summary: "threads that can wait for ever: lost wake-ups, locks held while waiting or kept, missing posts",
    paper: "our own, after Smaragdakis et al., POPL 2012, Definition 4",
};

impl Analysis for StuckThreads {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage {
        let trace = subject.trace();
        let mut driver = Driver::new(subject, settings, sink);
        let mut predictor = StuckPredictor {
            trace,
            process: Process::new(trace),
            budget: driver.query_budget(),
            counts: Counts::default(),
        };
        if predictor.process.is_known {
            let Candidates { groups, is_capped, .. } = Candidates::new(&mut driver);
            if is_capped {
                driver.truncate(Truncation::Capped);
            }
            let groups = groups.into_iter().map(|(tried, count)| Group::sampled(tried, count));
            _ = driver.prove(&mut predictor, groups);
        }
        let counters = predictor.counts.counters();
        driver.coverage(&INFO, counters)
    }
}

/// How the candidates fared.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    candidates: u64,
    proven: u64,
    refuted: u64,
    unknown: u64,
}

impl Counts {
    fn counters(self) -> Counters {
        let mut counters = vec![
            (Counter::Candidates, self.candidates),
            (Counter::Proven, self.proven),
            (Counter::Refuted, self.refuted),
        ];
        counters.extend((self.unknown > 0).then_some((Counter::Undecided, self.unknown)));
        counters
    }
}

/// What is known of the end of the process.
#[derive(Debug)]
struct Process {
    /// Whether the run ended by itself, or nothing is said of that.
    is_known: bool,
    /// Threads one of which must be stuck for the process to be: it ends with them.
    mains: Vec<ThreadId>,
    /// Threads that still ran when the recording ended.
    running: Vec<ThreadId>,
}

impl Process {
    fn new(trace: &Trace) -> Self {
        let threads = (0..trace.names().threads.len()).map(ThreadId::from_index);
        let Some(run_end) = trace.run_end() else {
            // Nothing is known but the events.
            let mains = threads.filter(|&thread| trace.lifetime(thread).fork.is_none()).collect();
            return Self { is_known: true, mains, running: Vec::new() };
        };
        let first = trace.events().next().map(|(_, event)| event.thread);
        let left = run_end.threads.iter().map(|end| trace.event(end.event).thread);
        // Of a thread without events, nothing says that it ended but a join.
        let unseen = threads.filter(|&thread| {
            trace.thread_events(thread).is_empty() && trace.lifetime(thread).join.is_none()
        });
        Self {
            is_known: matches!(run_end.kind, EndKind::Exited | EndKind::Stopped),
            mains: first.into_iter().collect(),
            running: left.chain(unseen).collect(),
        }
    }

    /// Whether it never ends if its threads stop at `stops`.
    fn is_stuck_at(&self, trace: &Trace, stops: &Stops) -> bool {
        let stopped = |thread| stops.events.iter().any(|&stop| trace.event(stop).thread == thread);
        let is_started = |thread| {
            let fork = trace.lifetime(thread).fork;
            fork.is_none_or(|it| trace.position(it) < stops.counts[trace.event(it).thread])
        };
        self.mains.iter().any(|&thread| stopped(thread))
            && self.running.iter().all(|&thread| stopped(thread) || !is_started(thread))
    }
}

/// Asks whether threads can come to stop where a candidate says.
struct StuckPredictor<'t> {
    trace: &'t Trace,
    process: Process,
    budget: Budget,
    counts: Counts,
}

impl StuckPredictor<'_> {
    /// Whether the notify that woke `wait` can come before it, with nobody to wake it later.
    fn try_lost_wake(&self, evaluator: &mut Evaluator<'_, '_>, wait: WaitInterval) -> Tried {
        let trace = self.trace.without_wait(&wait);
        let engine = Engine::new(&trace);
        let mut solver = Solver::new(&engine, self.budget);
        evaluator.charge(trace.len() as u64);
        self.search(engine.mhb(), &Candidate::LostWake(wait), |query, stops| {
            let answer = solver.solve(query);
            // Whatever is kept of earlier queries, the next one costs the same.
            solver.forget();
            evaluator.charge(solver.take_work());
            prove(evaluator, answer, stops)
        })
    }

    /// Looks for stops that `candidate` leads to, and an order in which all else runs. What must happen
    /// before what is as `mhb` says, and `ask` answers queries about given stops.
    fn search(
        &self,
        mhb: &MustHappenBefore<'_>,
        candidate: &Candidate,
        mut ask: impl FnMut(&Query, Vec<EventId>) -> Tried,
    ) -> Tried {
        let mut open = VecDeque::from([candidate.stops()]);
        let (mut seen, mut result) = (BTreeSet::new(), Tried::Refuted);
        while let Some(stops) = open.pop_front() {
            let stops = self.complete(mhb, &stops);
            if seen.len() == QUERIES_MAX || !seen.insert(stops.events.clone()) {
                continue;
            }
            let do_wait = stops.events.iter().all(|&stop| waits_for_ever(self.trace, stop));
            if do_wait && self.process.is_stuck_at(self.trace, &stops) {
                match ask(&self.query(candidate, &stops), stops.events.clone()) {
                    Tried::Refuted => {}
                    Tried::Unknown => result = Tried::Unknown,
                    tried => return tried,
                }
            }
            open.extend(self.further_stops(&stops));
        }
        result
    }

    /// Adds to `events` where others stop, since they need what comes after.
    fn complete(&self, mhb: &MustHappenBefore<'_>, events: &[EventId]) -> Stops {
        let trace = self.trace;
        let threads = (0..trace.names().threads.len()).map(ThreadId::from_index);
        let mut counts: IndexVec<ThreadId, u32> =
            threads.clone().map(|thread| trace.thread_events(thread).len() as u32).collect();
        let mut stops = Vec::new();
        for &event in events {
            let count = &mut counts[trace.event(event).thread];
            *count = (*count).min(trace.position(event));
        }
        let given: Vec<(ThreadId, u32)> = events
            .iter()
            .map(|&event| trace.event(event).thread)
            .map(|thread| (thread, counts[thread]))
            .collect();
        let is_left_out = |event: EventId| {
            let past = mhb.past(event);
            given.iter().any(|&(thread, count)| past.get(thread) > count)
        };
        for thread in threads {
            let own = trace.thread_events(thread);
            let count = own.partition_point(|&event| !is_left_out(event));
            counts[thread] = count as u32;
            let Some(&next) = own.get(count) else { continue };
            let fork = trace.lifetime(thread).fork;
            if count > 0 || !fork.is_some_and(is_left_out) {
                stops.push(next);
            }
        }
        Stops { events: stops, counts }
    }

    /// Everything up to `stops` happens, and for a lost wake-up each notify that would wake the thread
    /// comes before it waits.
    fn query(&self, candidate: &Candidate, stops: &Stops) -> Query {
        let trace = self.trace;
        let ran = stops.counts.entries().filter_map(|(thread, &count)| {
            trace.thread_events(thread)[..count as usize].last().copied()
        });
        let mut query =
            Query { must: ran.collect(), absent: stops.events.clone(), ..Query::default() };
        if let Candidate::LostWake(wait) = candidate {
            let Op::Condition(_, condition) = trace.event(wait.wait).op else { return query };
            let happens = |id: EventId| {
                trace.position(id) < stops.counts[trace.event(id).thread] && id != wait.wait
            };
            let wakes_no_other =
                |id: EventId| trace.signals().woken(id).iter().all(|&woken| woken == wait.wait);
            for (id, event) in trace.events().filter(|&(id, _)| happens(id)) {
                let must_come_first = match event.op {
                    Op::Condition(ConditionOp::Notify, on) => on == condition && wakes_no_other(id),
                    Op::Condition(ConditionOp::NotifyAll, on) => on == condition,
                    _ => false,
                };
                query.order.extend(must_come_first.then_some((id, wait.begin)));
            }
        }
        query
    }

    /// What happens before `events`, and not they: each is its thread's next.
    fn query_before(&self, events: &[EventId]) -> Query {
        let before = |&event: &EventId| {
            let thread = self.trace.event(event).thread;
            let position = self.trace.position(event).checked_sub(1);
            let previous = position.map(|at| self.trace.thread_events(thread)[at as usize]);
            previous.or(self.trace.lifetime(thread).fork)
        };
        let must = events.iter().filter_map(before).collect();
        Query { must, absent: events.to_vec(), ..Query::default() }
    }

    /// `stops` and one more: another thread at a lock that a stopped thread holds, or at a semaphore.
    fn further_stops(&self, stops: &Stops) -> Vec<Vec<EventId>> {
        let trace = self.trace;
        let mut held: BTreeSet<LockId> = BTreeSet::new();
        let mut posted = BTreeSet::new();
        for &stop in &stops.events {
            let thread = trace.event(stop).thread;
            held.extend(trace.sections().held(thread, stop).map(|section| section.lock));
            let rest = &trace.thread_events(thread)[trace.position(stop) as usize..];
            posted.extend(rest.iter().filter_map(|&id| match trace.event(id).op {
                Op::Semaphore(SemaphoreOp::Post, semaphore) => Some(semaphore),
                _ => None,
            }));
        }
        if held.is_empty() && posted.is_empty() {
            return Vec::new();
        }
        let mut further = Vec::new();
        for (thread, &count) in stops.counts.entries() {
            let own = trace.thread_events(thread);
            // The last ones first: most of the thread runs.
            for &event in own[..count as usize].iter().rev() {
                let may_stop = match trace.event(event).op {
                    Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) => held.contains(&lock),
                    Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                        posted.contains(&semaphore) && trace.declared().start(semaphore).is_some()
                    }
                    _ => false,
                };
                if may_stop && waits_for_ever(trace, event) {
                    let others = stops.events.iter().copied();
                    let others = others.filter(|&stop| trace.event(stop).thread != thread);
                    further.push(others.chain([event]).collect());
                }
                if further.len() > QUERIES_MAX {
                    return further;
                }
            }
        }
        further
    }

    /// Who waits for what, why, and who waits then as well.
    fn message(&self, candidate: &Candidate, stops: &[EventId]) -> String {
        let (trace, names) = (self.trace, self.trace.names());
        let thread = |event: EventId| names.threads.name(trace.event(event).thread);
        let own = candidate.stops();
        let why = match *candidate {
            Candidate::LostWake(wait) => {
                let notify = wait.notify.unwrap_or(wait.wait);
                let place = located(names.location(trace.event(notify).site));
                let waits = own.iter().map(|&stop| waiting(trace, stop)).collect::<String>();
                let (notifies, waiter) = (thread(notify), thread(wait.wait));
                format!("{waits} for ever if {notifies} notifies{place} before {waiter} waits")
            }
            Candidate::Cycle(_) => {
                let waits: Vec<String> = own.iter().map(|&stop| waiting(trace, stop)).collect();
                format!("{}, and each holds what another of them needs", waits.join(", "))
            }
            Candidate::Holds { waits, acquire } => {
                let [waits, acquires] = [waits, acquire].map(|event| waiting(trace, event));
                format!("{waits} and holds what {} needs: {acquires}", thread(acquire))
            }
            Candidate::KeptLock { acquire, keeps } => {
                let (waits, keeper) = (waiting(trace, acquire), thread(keeps));
                let place = located(names.location(trace.event(keeps).site));
                format!(
                    "{waits} for ever if {keeper} acquires it first{place}: it never releases it"
                )
            }
            Candidate::KeptToken { take, keeps } => {
                let (waits, keeper) = (waiting(trace, take), thread(keeps));
                let place = located(names.location(trace.event(keeps).site));
                format!(
                    "{waits} for ever if {keeper} takes the last token{place}: nobody posts another"
                )
            }
        };
        let others = stops.iter().filter(|stop| !own.contains(stop));
        let others: Vec<String> = others.map(|&stop| waiting(trace, stop)).collect();
        if others.is_empty() { why } else { format!("{why}; then {}", others.join(", ")) }
    }
}

/// Puts what the engine answered about `stops` before the checker.
fn prove(evaluator: &mut Evaluator<'_, '_>, answer: Answer, stops: Vec<EventId>) -> Tried {
    match answer {
        Answer::Feasible(reordering) => or_refuted(evaluator.prove(reordering, Goal::Stuck(stops))),
        Answer::Infeasible(_) => Tried::Refuted,
        Answer::Unknown => Tried::Unknown,
    }
}

/// What comes of a candidate that the checker had the last word on. The engine does not know all that keeps a
/// thread waiting, such as modes of locks, tokens and who else waits: it proposes, and a refusal is no
/// fault of it.
fn or_refuted(tried: Tried) -> Tried {
    if tried == Tried::Refused { Tried::Refuted } else { tried }
}

impl Predictor for StuckPredictor<'_> {
    type Candidate = Candidate;

    fn evaluate(&self, evaluator: &mut Evaluator<'_, '_>, candidate: &Candidate) -> Tried {
        if let Candidate::LostWake(wait) = *candidate {
            return self.try_lost_wake(evaluator, wait);
        }
        if let Candidate::Holds { waits, acquire } = *candidate {
            let [waiting, blocked] = [waits, acquire].map(|event| self.trace.event(event));
            let is_joined = waiting.op == Op::Thread(ThreadOp::Join, blocked.thread);
            if is_joined && matches!(blocked.op, Op::Lock(..)) {
                let goal = Goal::Deadlock(vec![waits, acquire]);
                let query = self.query_before(&[waits, acquire]);
                return or_refuted(evaluator.ask([(query, goal)], Reorderings::All));
            }
        }
        // To find out who stops where is a look at the whole trace.
        evaluator.charge(self.trace.len() as u64);
        let mhb = evaluator.subject().engine().mhb();
        self.search(mhb, candidate, |query, stops| {
            let answer = evaluator.answer(query, Reorderings::All);
            prove(evaluator, answer, stops)
        })
    }

    fn report(&mut self, group: Evaluated<Candidate>) -> Option<Finding> {
        self.counts.candidates += 1;
        let Some(proof) = group.proof else {
            let is_open = group.open.is_some();
            let counter = if is_open { &mut self.counts.unknown } else { &mut self.counts.refuted };
            *counter += 1;
            return None;
        };
        self.counts.proven += 1;
        let is_cycle = matches!(proof.goal(), Goal::Deadlock(_));
        let kind = if is_cycle { Kind::Deadlock } else { INFO.kind };
        let message = self.message(&group.candidate, &proof.goal().next());
        Some(Finding::proven(INFO.name, kind, proof, message, group.count, Detail::None))
    }
}
