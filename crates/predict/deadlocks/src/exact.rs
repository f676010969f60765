//! Predictable deadlocks: which threads can come to wait for each other in a cycle?
//!
//! A deadlock is a correct reordering of the trace after which two or more threads each have an
//! acquire next, of a lock that the next of them holds. It is named by the set of blocked acquires.
//! A thread's last event counts too if it requests a lock that the thread never got: a run that
//! did deadlock ends so.
//!
//! What a thread holds at an acquire is the same in every reordering, so candidates follow from the
//! trace alone:
//!
//! 1. the acquires made while holding other locks, alike ones taken together, and cycles of these, of
//!    different threads and with no lock to guard them (`patterns`);
//! 2. for each cycle, the choices of one acquire per thread that the engine can make blocked at once
//!    (`choices`), first by reorderings that keep the order of critical sections, then by any.
//!    Patterns take turns, so that a budget lasts for all of them.
//!
//! Deadlocks on the same locks at the same code locations are one finding unless all are asked for, shown
//! by the earliest that rests on no read of an unknown writer.
//!
//! Sound: each finding is a schedule that the checker accepted. Complete but for budgets: a set of
//! acquires that is not found cannot be blocked in a cycle by any correct reordering, unless the
//! coverage says that the search ended early. Waits for anything but locks are not looked at: lost
//! wake-ups and joins in a cycle are not deadlocks here.
//!
//! Costs one pass over the nested sections; the number of cycles and of choices may be exponential
//! in the threads, and is limited by the budget. `oracle::deadlocks` is the definition.
//!
//! Cycles and the walk along instances follow Tunç, Mathur, Pavlogiannis and Viswanathan, "Sound
//! dynamic deadlock prediction in linear time" (PLDI 2023), with locks in shared mode, every
//! reordering instead of those that keep the order of sections, and all instances of a cycle.

mod choices;
mod patterns;

use std::fmt::Write as _;
use std::ops::ControlFlow;

use reweave_analysis::{
    Analysis, Counter, Counters, Coverage, Detail, Finding, Gathered, Guarantee, Identities, Info,
    Instances, Kind, Layer, Settings, Sink, Subject, Truncation, located,
};
use reweave_base::FxHashMap;
use reweave_driver::{Driver, Evaluated, Evaluator, Group, Predictor, TRIES_MAX, Tried};
use reweave_trace::views::Mode;
use reweave_trace::{EventId, Goal, LockId, LockOp, Op, Reordering, Trace};

use choices::{PatternState, QueryContext};
use patterns::{Dependencies, excludes};

pub use reweave_driver::Reorderings;

/// How many patterns are tried between two looks at the budget.
const BATCH: usize = 64;

/// How many queries a pattern may ask before the others have their turn.
const QUERIES_PER_TURN: u64 = 32;

/// Which part of the budget the search for patterns may take: candidates alone are worth nothing.
const PATTERNS_SHARE: u64 = 16;

/// Threads that wait for each other, and how that comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The blocked acquires, the lowest thread's first, each on a lock that the thread of the next
    /// one holds.
    pub cycle: Vec<EventId>,
    /// What runs before.
    pub reordering: Reordering,
    /// How many deadlocks of the same pattern it stands for.
    pub count: u64,
}

impl Deadlock {
    /// The blocked acquires in observed order, which is its name.
    #[must_use]
    pub fn blocked(&self) -> Vec<EventId> {
        let mut blocked = self.cycle.clone();
        blocked.sort_unstable();
        blocked
    }

    /// What earlier ones come before: the latest acquire, then the one before it, and so on.
    fn order(&self) -> Vec<EventId> {
        self.blocked().into_iter().rev().collect()
    }
}

/// What a whole trace holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deadlocks {
    /// The deadlocks: every one, or one for each pattern.
    pub found: Vec<Deadlock>,
    /// How many there are.
    pub counts: Counts,
    /// Why these may not be all.
    pub truncated: Option<Truncation>,
}

/// How many deadlocks there are, and how the candidates fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sets of acquires that can be blocked. A lower bound if there are partial patterns.
    pub deadlocks: u64,
    /// Cycles of threads that ask for locks while holding others, alike acquires taken together.
    pub patterns: u64,
    /// Sets of acquires that were tried: instances of a pattern, none of which needs another.
    pub candidates: u64,
    /// Candidates that no reordering blocks.
    pub refuted: u64,
    /// Candidates that were given up, the engine's budget being used up.
    pub unknown: u64,
    /// Patterns of which some instances were not tried.
    pub partial: u64,
}

/// Finds the deadlocks of `subject` that `reorderings` show.
///
/// With [`Settings::all`] every set of blocked acquires comes, otherwise the first of each pattern,
/// with how many there are. The order does not depend on [`Settings::threads`].
///
/// ```
/// use reweave_analysis::{Settings, Subject};
/// use reweave_deadlocks::exact::{Reorderings, deadlocks};
///
/// // Both ways are guarded by a third lock, so there is none.
/// let trace = reweave_testkit::trace("
/// T1      T2
/// acq(g)
/// acq(a)
/// acq(b)
/// rel(b)
/// rel(a)
/// rel(g)
///         acq(g)
///         acq(b)
///         acq(a)
/// ");
/// let found = deadlocks(&Subject::new(&trace), Reorderings::All, &Settings::default()).found;
/// assert!(found.is_empty());
/// ```
#[must_use]
pub fn deadlocks(
    subject: &Subject<'_>,
    reorderings: Reorderings,
    settings: &Settings,
) -> Deadlocks {
    let (mut sink, mut found) = (Gathered::default(), Vec::new());
    let mut driver = Driver::new(subject, settings, &mut sink);
    let counts = examine(&mut driver, reorderings, |driver, deadlock| {
        if settings.limit.is_some_and(|limit| found.len() >= limit) {
            driver.truncate(Truncation::Limit);
            return ControlFlow::Break(());
        }
        found.push(deadlock);
        ControlFlow::Continue(())
    });
    let truncated = driver.truncated();
    Deadlocks { found, counts, truncated }
}

/// Finds deadlocks and hands each to `found`, which says by a break that no more are wanted. The
/// engine is made only if there is a pattern.
fn examine<'t>(
    driver: &mut Driver<'_, 't>,
    reorderings: Reorderings,
    mut found: impl FnMut(&mut Driver<'_, 't>, Deadlock) -> ControlFlow<()>,
) -> Counts {
    let mut counts = Counts::default();
    if driver.progress(0, 1).is_break() {
        return counts;
    }
    let (settings, dependencies) = (driver.settings(), Dependencies::new(driver.trace()));
    let patterns = patterns::patterns(&dependencies, settings.budget / PATTERNS_SHARE);
    driver.charge(patterns.steps);
    if let Some(reason) = patterns.truncated {
        driver.truncate(reason);
    }
    counts.patterns = patterns.all.len() as u64;
    if patterns.all.is_empty() {
        return counts;
    }
    let mut states: Vec<PatternState<'_>> =
        patterns.all.iter().map(|pattern| PatternState::new(&dependencies, pattern)).collect();
    let ended = take_turns(driver, reorderings, &mut states, &mut found);
    for state in &states {
        counts.add(state);
    }
    if ended.is_break() {
        return counts;
    }
    // One deadlock of a pattern is enough, unless all are asked for.
    let is_open = |state: &PatternState<'_>| {
        let is_wanted = settings.all || state.proven == 0;
        is_wanted && (state.is_partial || state.unknown > 0)
    };
    if states.iter().any(is_open) {
        driver.truncate(Truncation::Budget);
    }
    for state in states {
        // If all are asked for, they were handed on as they were found.
        let Some(mut first) = state.found.into_iter().next() else { continue };
        first.count = state.proven;
        if found(driver, first).is_break() {
            break;
        }
    }
    counts
}

/// Lets the patterns take turns until all are over, the budget is used up or someone asked to stop. If
/// every deadlock is asked for, `found` takes them as they are found; a break is its own.
fn take_turns<'t>(
    driver: &mut Driver<'_, 't>,
    reorderings: Reorderings,
    states: &mut [PatternState<'_>],
    found: &mut impl FnMut(&mut Driver<'_, 't>, Deadlock) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let all = driver.settings().all;
    let context = QueryContext { engine: driver.subject().engine(), reorderings, all };
    let workers = driver.evaluators(driver.query_budget());
    let turn = QUERIES_PER_TURN * driver.trace().len() as u64;
    let total = states.len();
    let mut open: Vec<&mut PatternState<'_>> = states.iter_mut().collect();
    while !open.is_empty() {
        if driver.progress(total - open.len(), total).is_break() {
            break;
        }
        let done = driver.batches(
            &workers,
            &mut open,
            BATCH,
            |evaluator, state, left| {
                let work = turn.min(left / BATCH as u64 + 1);
                ((), state.advance(&context, evaluator, work))
            },
            |driver, state, ()| {
                let found_now = if all { std::mem::take(&mut state.found) } else { Vec::new() };
                found_now.into_iter().try_for_each(|deadlock| found(driver, deadlock))
            },
        )?;
        if done < open.len() {
            break;
        }
        open.retain(|state| !state.is_over);
    }
    ControlFlow::Continue(())
}

impl Counts {
    fn add(&mut self, state: &PatternState<'_>) {
        self.deadlocks += state.proven;
        self.refuted += state.refuted;
        self.unknown += state.unknown;
        self.candidates += state.proven + state.refuted + state.unknown;
        self.partial += u64::from(state.is_partial);
    }

    fn counters(self) -> Counters {
        let mut counters = vec![
            (Counter::Deadlocks, self.deadlocks),
            (Counter::Patterns, self.patterns),
            (Counter::Candidates, self.candidates),
            (Counter::Refuted, self.refuted),
            (Counter::Undecided, self.unknown),
        ];
        counters.extend((self.partial > 0).then_some((Counter::Partial, self.partial)));
        counters
    }
}

/// The search for predictable deadlocks as one of many.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExactDeadlocks;

const INFO: Info = Info {
    name: "deadlocks.exact",
    family: "deadlocks",
    kind: Kind::Deadlock,
    guarantee: Guarantee::Witnessed,
    needs: Layer::Events,
    is_default: true,
    summary: "threads that can come to wait for each other's locks in a cycle",
    paper: "Tunç, Mathur, Pavlogiannis and Viswanathan, PLDI 2023",
};

impl Analysis for ExactDeadlocks {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage {
        let mut driver = Driver::new(subject, settings, sink);
        let mut predictor = DeadlockPredictor { trace: subject.trace(), unknown_writer: 0 };
        let mut groups = Groups::new(subject.trace());
        let counts = examine(&mut driver, Reorderings::All, |driver, deadlock| {
            if settings.all {
                return driver.prove(&mut predictor, [Group::new(vec![deadlock], 1)]);
            }
            groups.add(deadlock);
            ControlFlow::Continue(())
        });
        _ = driver.prove(&mut predictor, groups.in_order());
        let mut counters = counts.counters();
        let unknown_writer = predictor.unknown_writer;
        counters.extend((unknown_writer > 0).then_some((Counter::UnknownWriter, unknown_writer)));
        driver.coverage(&INFO, counters)
    }
}

/// Deadlocks by their code locations and locks: a helper may be handed others.
#[derive(Debug)]
struct Groups<'t> {
    identities: Identities<'t>,
    groups: Vec<Vec<Deadlock>>,
    at: FxHashMap<Instances<'t>, usize>,
}

impl<'t> Groups<'t> {
    fn new(trace: &'t Trace) -> Self {
        Self { identities: Identities::new(trace), groups: Vec::new(), at: FxHashMap::default() }
    }

    fn add(&mut self, deadlock: Deadlock) {
        let key = self.identities.instances_at(INFO.kind, &deadlock.cycle);
        let at = *self.at.entry(key).or_insert(self.groups.len());
        if at == self.groups.len() {
            self.groups.push(Vec::new());
        }
        self.groups[at].push(deadlock);
    }

    /// The groups, the earliest first.
    fn in_order(mut self) -> impl Iterator<Item = Group<Deadlock>> {
        for group in &mut self.groups {
            group.sort_by_cached_key(Deadlock::order);
        }
        self.groups.sort_by_cached_key(|group| group.first().map(Deadlock::order));
        self.groups.into_iter().map(|mut group| {
            let count = group.iter().map(|deadlock| deadlock.count).sum();
            group.truncate(TRIES_MAX);
            Group::new(group, count)
        })
    }
}

/// Puts deadlocks that the engine found before the checker, and makes findings of them.
struct DeadlockPredictor<'t> {
    trace: &'t Trace,
    /// Findings that rest on reads of unknown writers.
    unknown_writer: u64,
}

impl Predictor for DeadlockPredictor<'_> {
    type Candidate = Deadlock;

    fn is_decided(&self) -> bool {
        true
    }

    // The schedule is there already.
    fn evaluate(&self, evaluator: &mut Evaluator<'_, '_>, deadlock: &Deadlock) -> Tried {
        let goal = Goal::Deadlock(deadlock.cycle.clone());
        evaluator.prove(deadlock.reordering.clone(), goal)
    }

    fn report(&mut self, group: Evaluated<Deadlock>) -> Option<Finding> {
        self.unknown_writer += u64::from(group.proof.is_some() && !group.is_witnessed());
        let proof = group.proof?;
        let message = message(self.trace, &proof.goal().next());
        let Info { name, kind, .. } = INFO;
        Some(Finding::proven(name, kind, proof, message, group.count, Detail::None))
    }
}

/// Says who holds what and waits for what, as in "T1 holds `a` and waits for `b` at f.c:3, T2 …".
fn message(trace: &Trace, cycle: &[EventId]) -> String {
    let names = trace.names();
    let mut message = String::new();
    for (at, &event) in cycle.iter().enumerate() {
        let before = cycle[(at + cycle.len() - 1) % cycle.len()];
        let blocked = trace.event(event);
        let thread = names.threads.name(blocked.thread);
        let separator = if at == 0 { "" } else { ", " };
        let (held, mode) = held_for(trace, event, before);
        let holds = if mode == Mode::Exclusive { "holds" } else { "shares" };
        let wanted = wanted(blocked.op).map_or("", |(lock, _)| names.locks.name(lock));
        let waits = match blocked.op {
            Op::Lock(LockOp::Acquire | LockOp::RequestExclusive, _) if wanted == held => {
                "waits to hold it alone".to_owned()
            }
            Op::Lock(LockOp::AcquireShared, _) => format!("waits to share `{wanted}`"),
            _ => format!("waits for `{wanted}`"),
        };
        let place = located(names.location(blocked.site));
        write!(message, "{separator}{thread} {holds} `{held}` and {waits}{place}")
            .expect("text takes all that is written");
    }
    message
}

/// The lock that `op` asks for, and in which mode. A request that does not say is taken to be for
/// shared mode, in which less blocks it.
fn wanted(op: Op) -> Option<(LockId, Mode)> {
    match op {
        Op::Lock(LockOp::Acquire | LockOp::RequestExclusive, lock) => Some((lock, Mode::Exclusive)),
        Op::Lock(LockOp::AcquireShared | LockOp::Request, lock) => Some((lock, Mode::Shared)),
        _ => None,
    }
}

/// The lock by which the thread of `event` keeps `blocked` waiting, and how it holds it.
fn held_for(trace: &Trace, event: EventId, blocked: EventId) -> (&str, Mode) {
    let Some((lock, mode)) = wanted(trace.event(blocked).op) else { return ("", Mode::Exclusive) };
    let held = trace.sections().held(trace.event(event).thread, event);
    let mut blocking = held.filter(|held| held.lock == lock && excludes(held.mode, mode));
    let mode = blocking.next().map_or(Mode::Exclusive, |section| section.mode);
    (trace.names().locks.name(lock), mode)
}
