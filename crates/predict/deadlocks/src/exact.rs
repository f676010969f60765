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
//! 1. the acquires made while holding other locks, alike ones taken together (`dependencies`);
//! 2. cycles of these, of different threads and with no lock to guard them (`patterns`);
//! 3. for each cycle, the choices of one acquire a thread that the engine can make blocked at once
//!    (`trial`), first by reorderings that keep the order of critical sections, then by any.
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

mod components;
mod dependencies;
mod patterns;
mod report;
mod trial;
mod workers;

use std::ops::ControlFlow;

use reweave_analysis::{
    Analysis, Coverage, Guarantee, Info, Kind, Layer, Settings, Sink, Subject, Truncation,
};
use reweave_reorder::{Budget, Engine, Solver};
use reweave_trace::{EventId, Reordering, Trace};

use dependencies::Dependencies;
use trial::{Court, Trial};

/// How many patterns are tried between two looks at the budget.
const BATCH: usize = 64;

/// How many queries a pattern may ask before the others have their turn.
const QUERIES_PER_TURN: u64 = 32;

/// Which reorderings are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All correct reorderings.
    Every,
    /// Those that keep the observed order of the sections of each lock.
    Preserving,
}

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

/// Finds the deadlocks of the trace of `engine` that reorderings within `reach` show.
///
/// With [`Settings::all`] every set of blocked acquires comes, otherwise the first of each pattern,
/// with how many there are. The order does not depend on [`Settings::threads`].
///
/// ```
/// use reweave_analysis::Settings;
/// use reweave_deadlocks::exact::{Reach, deadlocks};
/// use reweave_reorder::Engine;
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
/// let engine = Engine::new(&trace);
/// assert!(deadlocks(&engine, Reach::Every, &Settings::default()).found.is_empty());
/// ```
#[must_use]
pub fn deadlocks(engine: &Engine<'_>, reach: Reach, settings: &Settings) -> Deadlocks {
    let mut list = List { found: Vec::new(), limit: settings.limit, is_full: false };
    let (counts, mut truncated) = examine(engine.trace(), || engine, reach, settings, &mut list);
    if list.is_full {
        truncated = truncated.or(Some(Truncation::Limit));
    }
    Deadlocks { found: list.found, counts, truncated }
}

/// Whom the search tells of what it finds.
trait Follow {
    /// Takes `deadlock`; a break says that no more are wanted.
    fn found(&mut self, deadlock: Deadlock) -> ControlFlow<()>;

    /// Takes note that `done` of `total` patterns are done; a break says to stop.
    fn progress(&mut self, done: usize, total: usize) -> ControlFlow<()>;
}

struct List {
    found: Vec<Deadlock>,
    limit: Option<usize>,
    is_full: bool,
}

impl Follow for List {
    fn found(&mut self, deadlock: Deadlock) -> ControlFlow<()> {
        self.is_full = self.limit.is_some_and(|limit| self.found.len() >= limit);
        if self.is_full {
            return ControlFlow::Break(());
        }
        self.found.push(deadlock);
        ControlFlow::Continue(())
    }

    fn progress(&mut self, _: usize, _: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Finds the deadlocks of `trace`; `engine` is asked for only if there is a pattern.
fn examine<'e, 't: 'e>(
    trace: &'t Trace,
    engine: impl FnOnce() -> &'e Engine<'t>,
    reach: Reach,
    settings: &Settings,
    follow: &mut dyn Follow,
) -> (Counts, Option<Truncation>) {
    let mut counts = Counts::default();
    if follow.progress(0, 1).is_break() {
        return (counts, Some(Truncation::Cancelled));
    }
    let dependencies = Dependencies::new(trace);
    // Candidates alone are worth nothing, so most of the budget is for deciding them.
    let patterns = patterns::patterns(&dependencies, settings.budget / 16);
    let mut truncated = (!patterns.is_whole).then_some(Truncation::Budget);
    counts.patterns = patterns.all.len() as u64;
    if patterns.all.is_empty() {
        return (counts, truncated);
    }
    let court =
        Court { engine: engine(), reach, all: settings.all, budget: query_budget(settings) };
    let mut trials: Vec<Trial<'_>> =
        patterns.all.iter().map(|pattern| Trial::new(&dependencies, pattern)).collect();
    let work_left = settings.budget - patterns.steps;
    let ended = try_all(&mut trials, &court, settings, work_left, follow);
    for trial in &trials {
        counts.add(trial);
    }
    match ended {
        Ended::Unwanted => return (counts, truncated),
        Ended::Cancelled => return (counts, Some(Truncation::Cancelled)),
        Ended::Over | Ended::OutOfWork => {}
    }
    // One deadlock of a pattern is enough, unless all are asked for.
    let is_open = |trial: &Trial<'_>| {
        let is_wanted = settings.all || trial.tally.proven == 0;
        is_wanted && (trial.is_partial || trial.tally.unknown > 0)
    };
    if trials.iter().any(is_open) {
        truncated = Some(Truncation::Budget);
    }
    for trial in trials {
        // Those that were asked for one by one were told of as they were found.
        let Some(mut first) = trial.found.into_iter().next() else { continue };
        first.count = trial.tally.proven;
        if follow.found(first).is_break() {
            break;
        }
    }
    (counts, truncated)
}

/// How much one query may take: a good part of everything, but not all.
fn query_budget(settings: &Settings) -> Budget {
    let usual = Budget::default();
    Budget { work: usual.work.min(settings.budget / 8), ..usual }
}

/// Why the trials came to an end.
enum Ended {
    /// There is nothing more to try.
    Over,
    /// The work that may be done is done.
    OutOfWork,
    /// No more deadlocks are wanted.
    Unwanted,
    /// Someone asked to stop.
    Cancelled,
}

/// Lets the trials take turns until all are over or the work is used up. If every deadlock is
/// asked for, `follow` is told as they are found.
fn try_all(
    trials: &mut [Trial<'_>],
    court: &Court<'_, '_>,
    settings: &Settings,
    mut work_left: u64,
    follow: &mut dyn Follow,
) -> Ended {
    let turn = QUERIES_PER_TURN * court.engine.trace().len() as u64;
    let total = trials.len();
    let mut open: Vec<(&mut Trial<'_>, u64)> = trials.iter_mut().map(|trial| (trial, 0)).collect();
    while !open.is_empty() {
        let done = total - open.len();
        for batch in open.chunks_mut(BATCH) {
            if follow.progress(done, total).is_break() {
                return Ended::Cancelled;
            }
            if work_left == 0 {
                return Ended::OutOfWork;
            }
            let work = turn.min(work_left / batch.len() as u64 + 1);
            let solver = || Solver::new(court.engine, court.budget);
            workers::for_each(batch, settings.threads, solver, |solver, (trial, spent)| {
                *spent = trial.advance(court, solver, work);
            });
            let spent: u64 = batch.iter().map(|(_, spent)| spent).sum();
            work_left = work_left.saturating_sub(spent);
            if settings.all {
                let found = batch.iter_mut().flat_map(|(trial, _)| trial.found.drain(..));
                for deadlock in found {
                    if follow.found(deadlock).is_break() {
                        return Ended::Unwanted;
                    }
                }
            }
        }
        open.retain(|(trial, _)| !trial.is_over);
    }
    Ended::Over
}

impl Counts {
    fn add(&mut self, trial: &Trial<'_>) {
        let tally = trial.tally;
        self.deadlocks += tally.proven;
        self.refuted += tally.refuted;
        self.unknown += tally.unknown;
        self.candidates += tally.proven + tally.refuted + tally.unknown;
        self.partial += u64::from(trial.is_partial);
    }

    fn counters(self) -> Vec<(&'static str, u64)> {
        let mut counters = vec![
            ("deadlocks", self.deadlocks),
            ("patterns", self.patterns),
            ("candidates", self.candidates),
            ("refuted", self.refuted),
            ("unknown", self.unknown),
        ];
        counters.extend((self.partial > 0).then_some(("partial", self.partial)));
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
        let mut report = report::Report::new(subject, settings, sink);
        let trace = subject.trace();
        let (counts, truncated) =
            examine(trace, || subject.engine(), Reach::Every, settings, &mut report);
        let mut counters = counts.counters();
        let truncated = report.finish(truncated, &mut counters);
        Coverage { analysis: INFO.name, truncated, counters }
    }
}
