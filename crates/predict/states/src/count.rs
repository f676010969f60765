//! How many states are there? By any of the algorithms.
//!
//! The default is the decision diagram, which does not enumerate the states; where it would not fit
//! its limits, the rest is counted in batches, and the result says so. The other algorithms
//! enumerate the states one by one, or run by run, and are there to compare.
//!
//! A count is exact, or it is cut short and a lower bound, with the reason. The same poset,
//! algorithm and budget give the same answer for any number of threads; only after an interrupt
//! does the bound depend on timing.
//!
//! Costs what the algorithm costs; see its module. Adds a few numbers per thread, and with
//! [`count_intervals`] one per event.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;
use reweave_order::poset::Poset;

use crate::by_chain::{self, Plan};
use crate::enumerate::{
    Bounds, BreadthFirst, Enumerate, Gather, Lexical, ParaMount, Stopped, intervals,
};
use crate::mdd::{self, Count, Limits, Overflow, Reason};

/// An algorithm that counts states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// The decision diagram: see [`mdd`].
    #[default]
    Mdd,
    /// Enumeration chain by chain: see [`by_chain`].
    ByChain,
    /// Enumeration in lexical order: see [`Lexical`].
    Lexical,
    /// Breadth-first enumeration: see [`BreadthFirst`].
    BreadthFirst,
    /// By intervals, each in lexical order: see [`ParaMount`].
    ParaMount,
    /// By intervals, each breadth first.
    ParaMountBreadthFirst,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Mdd,
        Self::ByChain,
        Self::Lexical,
        Self::BreadthFirst,
        Self::ParaMount,
        Self::ParaMountBreadthFirst,
    ];

    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mdd => "mdd",
            Self::ByChain => "frontier",
            Self::Lexical => "lexical",
            Self::BreadthFirst => "bfs",
            Self::ParaMount => "paramount",
            Self::ParaMountBreadthFirst => "paramount-bfs",
        }
    }
}

/// How hard to try.
#[derive(Clone, Copy)]
pub struct Effort<'a> {
    /// How many threads may work, where an algorithm can use more than one.
    pub threads: usize,
    /// How many states may be visited or, for the diagram, arcs followed; no limit if there is
    /// none.
    pub budget: Option<u64>,
    /// Asked from time to time whether to stop.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// What was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// So many states there are, or at least so many if it was cut short.
    pub states: Count,
    /// For each event, in the order in which the poset lists them, how many states have it as
    /// their last; the empty state is counted with the first. Only if that was asked for and
    /// nothing was cut short.
    pub intervals: Option<Vec<Count>>,
    /// Why there may be more states.
    pub cut_short: Option<CutShort>,
    /// How they were counted.
    pub algorithm: Algorithm,
    /// Where the diagram did not fit its limits, if so: the rest was counted in batches.
    pub overflow: Option<Overflow>,
}

/// Why a count was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CutShort {
    /// The budget was exhausted.
    #[error("the budget was exhausted")]
    Budget,
    /// The states to be visited next did not fit in memory.
    #[error("the states to be visited next did not fit in memory")]
    Memory,
    /// It was asked to stop.
    #[error("it was interrupted")]
    Stopped,
    /// It was asked to stop since its time was up.
    #[error("the time was up")]
    Time,
}

impl CutShort {
    /// What it is called.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Memory => "memory",
            Self::Stopped => "cancelled",
            Self::Time => "time",
        }
    }
}

/// How many states `poset` has.
///
/// ```
/// use reweave_order::poset::PosetBuilder;
/// use reweave_states::count::{Algorithm, Effort, count};
///
/// // Two threads of one event each that know nothing of each other.
/// let mut builder = PosetBuilder::new(2)?;
/// builder.push(0, &[1, 0])?;
/// builder.push(1, &[0, 1])?;
/// let effort = Effort { threads: 1, budget: None, stop: &|| false };
/// let counted = count(&builder.finish(), Algorithm::Mdd, &effort);
/// assert_eq!(counted.states.to_string(), "4");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn count(poset: &Poset, algorithm: Algorithm, effort: &Effort<'_>) -> Counted {
    if algorithm == Algorithm::Mdd {
        return by_diagram(poset, effort);
    }
    let meter = Meter::new(effort);
    let (states, stopped) = on_threads(effort.threads, || match algorithm {
        Algorithm::Mdd | Algorithm::ByChain => by_ranges(poset, &Bounds::all(poset), &meter),
        Algorithm::Lexical => one_by_one(&Lexical, poset, &Bounds::all(poset), &meter),
        Algorithm::BreadthFirst => {
            one_by_one(&BreadthFirst::default(), poset, &Bounds::all(poset), &meter)
        }
        Algorithm::ParaMount => by_intervals(Lexical, poset, &meter),
        Algorithm::ParaMountBreadthFirst => by_intervals(BreadthFirst::default(), poset, &meter),
    });
    meter.counted(algorithm, states, stopped)
}

/// How many states `poset` has, and how many of them have each event as their last.
///
/// A budget is for all events together; for the diagram, for each of them.
#[must_use]
pub fn count_intervals(poset: &Poset, algorithm: Algorithm, effort: &Effort<'_>) -> Counted {
    if algorithm == Algorithm::Mdd {
        return intervals_by_diagram(poset, effort);
    }
    let meter = Meter::new(effort);
    let one = |bounds: &Bounds| match algorithm {
        Algorithm::Mdd | Algorithm::ByChain => by_ranges(poset, bounds, &meter),
        Algorithm::Lexical | Algorithm::ParaMount => one_by_one(&Lexical, poset, bounds, &meter),
        Algorithm::BreadthFirst | Algorithm::ParaMountBreadthFirst => {
            one_by_one(&BreadthFirst::default(), poset, bounds, &meter)
        }
    };
    let all: Vec<Bounds> = intervals(poset).collect();
    let is_parallel = matches!(
        algorithm,
        Algorithm::ByChain | Algorithm::ParaMount | Algorithm::ParaMountBreadthFirst
    );
    let counts: Vec<(u128, Option<Stopped>)> = if is_parallel {
        on_threads(effort.threads, || all.par_iter().map(one).collect())
    } else {
        all.iter().map(one).collect()
    };
    // The empty state is in no interval.
    let states = counts.iter().map(|(states, _)| states).sum::<u128>() + 1;
    let stopped = counts.iter().find_map(|&(_, stopped)| stopped);
    let mut counted = meter.counted(algorithm, states, stopped);
    if counted.cut_short.is_none() {
        let mut intervals: Vec<Count> = counts.iter().map(|&(states, _)| states.into()).collect();
        if let Some(first) = intervals.first_mut() {
            *first += 1_u8;
        }
        counted.intervals = Some(intervals);
    }
    counted
}

/// At most so many threads are started: each has tables of its own, and few machines have more
/// cores.
const THREADS_MAX: usize = 64;

/// Runs `work` on a pool of so many threads, or on the current one if the system has no more.
fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().num_threads(threads.clamp(1, THREADS_MAX)).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

fn limits_of(effort: &Effort<'_>) -> Limits {
    Limits { work_max: effort.budget.unwrap_or(u64::MAX), ..Limits::default() }
}

fn cut_of(reason: Reason) -> CutShort {
    match reason {
        Reason::Work => CutShort::Budget,
        Reason::Stopped => CutShort::Stopped,
        Reason::Nodes | Reason::Memory => CutShort::Memory,
    }
}

fn by_diagram(poset: &Poset, effort: &Effort<'_>) -> Counted {
    let all = Bounds::all(poset);
    let counted = mdd::count(poset, &all, &limits_of(effort), effort.stop);
    Counted {
        // There is always the empty state.
        states: counted.count.max(Count::from(1_u8)),
        intervals: None,
        cut_short: counted.cut_short.map(cut_of),
        algorithm: Algorithm::Mdd,
        overflow: counted.overflow,
    }
}

fn intervals_by_diagram(poset: &Poset, effort: &Effort<'_>) -> Counted {
    let counted = by_diagram(poset, effort);
    if counted.cut_short.is_some() {
        return counted;
    }
    match mdd::interval_counts(poset, &limits_of(effort), effort.stop) {
        Ok(intervals) => Counted { intervals: Some(intervals), ..counted },
        Err(overflow) => Counted { cut_short: Some(cut_of(overflow.reason)), ..counted },
    }
}

/// Adds up what all visitors spend, and decides when to end.
struct Meter<'a> {
    effort: Effort<'a>,
    spent: AtomicU64,
    is_stopped: AtomicBool,
}

/// A visitor reports to the meter once in so many states.
const REPORT_EVERY: u64 = 1 << 12;

impl<'a> Meter<'a> {
    const fn new(effort: &Effort<'a>) -> Self {
        let (spent, is_stopped) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { effort: *effort, spent, is_stopped }
    }

    /// Takes so many states that were visited; a break is to end it all.
    fn spend(&self, states: u64) -> ControlFlow<()> {
        let spent = self.spent.fetch_add(states, Ordering::Relaxed).wrapping_add(states);
        if self.asks_to_stop() || self.effort.budget.is_some_and(|budget| spent >= budget) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Whether someone asked to stop, which stays so.
    fn asks_to_stop(&self) -> bool {
        if self.is_stopped.load(Ordering::Relaxed) {
            return true;
        }
        let is_asked = (self.effort.stop)();
        self.is_stopped.fetch_or(is_asked, Ordering::Relaxed);
        is_asked
    }

    /// What came of it: `states` were counted, all of them if nothing stopped it.
    fn counted(&self, algorithm: Algorithm, states: u128, stopped: Option<Stopped>) -> Counted {
        let budget = self.effort.budget.map(u128::from);
        let cut_short = match stopped {
            // Visitors notice late that the budget is exhausted, some later than others. That there
            // are more states than the budget is certain whenever one does, and no other number is.
            _ if budget.is_some_and(|budget| states > budget) => Some(CutShort::Budget),
            None => None,
            Some(Stopped::Memory) => Some(CutShort::Memory),
            Some(Stopped::Visitor) if self.is_stopped.load(Ordering::Relaxed) => {
                Some(CutShort::Stopped)
            }
            Some(Stopped::Visitor) => Some(CutShort::Budget),
        };
        let states = match (cut_short, budget) {
            (Some(CutShort::Budget), Some(budget)) => budget,
            _ => states,
        };
        let states = Count::from(states.max(1));
        Counted { states, intervals: None, cut_short, algorithm, overflow: None }
    }
}

/// Counts states and reports them to the meter: at the first one, then once in [`REPORT_EVERY`].
struct StateCounter<'a> {
    states: u64,
    /// How many of them were reported.
    reported: u64,
    /// How many there will be at the next report.
    next: u64,
    meter: &'a Meter<'a>,
}

impl<'a> StateCounter<'a> {
    const fn new(meter: &'a Meter<'a>) -> Self {
        Self { states: 0, reported: 0, next: 0, meter }
    }
}

impl Clone for StateCounter<'_> {
    fn clone(&self) -> Self {
        // What is not reported yet the original will report.
        Self { reported: self.states, next: self.states, ..*self }
    }
}

impl Drop for StateCounter<'_> {
    fn drop(&mut self) {
        self.meter.spent.fetch_add(self.states - self.reported, Ordering::Relaxed);
    }
}

impl Gather for StateCounter<'_> {
    #[inline]
    fn visit(&mut self, _: &[u32]) -> ControlFlow<()> {
        if self.states >= self.next {
            let states = self.states - self.reported;
            (self.reported, self.next) = (self.states, self.states + REPORT_EVERY);
            self.meter.spend(states)?;
        }
        self.states += 1;
        ControlFlow::Continue(())
    }

    fn join(&mut self, later: Self) {
        // The other one reports its own.
        self.states += later.states;
        self.reported += later.states;
    }
}

fn one_by_one(
    algorithm: &impl Enumerate,
    poset: &Poset,
    bounds: &Bounds,
    meter: &Meter<'_>,
) -> (u128, Option<Stopped>) {
    let mut counter = StateCounter::new(meter);
    let visited = algorithm.visit(poset, bounds, |state| counter.visit(state));
    (u128::from(counter.states), visited.err())
}

fn by_intervals(
    within: impl Enumerate,
    poset: &Poset,
    meter: &Meter<'_>,
) -> (u128, Option<Stopped>) {
    match (ParaMount { within }).gather(poset, &StateCounter::new(meter)) {
        Ok(counter) => (u128::from(counter.states), None),
        Err((counter, stopped)) => (u128::from(counter.states), Some(stopped)),
    }
}

fn by_ranges(poset: &Poset, bounds: &Bounds, meter: &Meter<'_>) -> (u128, Option<Stopped>) {
    if meter.spend(0).is_break() {
        return (0, Some(Stopped::Visitor));
    }
    let stop = || meter.asks_to_stop();
    let limits = by_chain::Limits { states: meter.effort.budget, stop: Some(&stop) };
    let plan = Plan::new(poset, bounds);
    let (counted, stopped) = match plan.gather(&by_chain::Count::default(), (), &limits) {
        Ok(counted) => (counted, None),
        Err((counted, _)) => (counted, Some(Stopped::Visitor)),
    };
    // Reported for the intervals after this one.
    _ = meter.spend(u64::try_from(counted.states).unwrap_or(u64::MAX));
    (counted.states, stopped)
}
