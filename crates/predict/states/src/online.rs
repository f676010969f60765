//! Predicate detection while the program runs: events are inserted as they happen, from many
//! threads, and the states that each one adds are searched at once.
//!
//! The states whose last event is e, in the order of insertion, are those between the clock of e
//! and all that was inserted up to e. So they are known for good when e comes, whatever comes
//! later. Each such interval is a piece of work, which the detector's workers search, or the
//! inserting threads themselves when the workers do not keep up. All intervals together are all
//! states, each once: the answer is the one that an offline search of the whole run finds.
//!
//! An inserting thread continues when [`OnlineDetector::insert`] returns. So what happens after its
//! event is inserted after it: insertion respects the order of events (Property 1 of the paper).
//!
//! Memory is bounded. Events that no later interval can need are dropped (see `log`), the queue
//! of intervals is bounded, and there are limits on the events kept and on the states searched in
//! one interval. What a limit left out is counted in the [`Summary`].
//!
//! An insertion costs the number of threads; a state costs what its search costs. Follows section 4
//! of Chang and Garg (2015), Algorithm 4 above all; dropping events and the limits are our own.

mod log;
mod search;

use std::collections::{BTreeSet, VecDeque};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use reweave_base::IndexVec;
use reweave_order::poset::{
    ChainId, EventRole, IllFormedPoset, Poset, Relation, TracePoset, collections,
};
use reweave_trace::{EventId, Trace, VarId};

pub use log::{Interval, Refused, State, StateCursor};
pub use search::{Access, Form, Least, LeastState, Races, collected};

use log::Log;

/// What a detector looks for in the states of a running program.
pub trait Search: Send + Sync + 'static {
    /// What events are labelled with.
    type Label: Send + Sync + 'static;
    /// What was found, in the end.
    type Answer;

    /// Looks at the states of `interval`, as many as `budget` allows. Called from many threads at a
    /// time. The first interval is that of no event, with the empty state.
    fn search(&self, interval: &Interval<Self::Label>, budget: &mut Budget<'_>) -> End;

    /// What was found in all, with `chains_count` threads.
    fn answer(self, chains_count: usize) -> Self::Answer;
}

/// How the search of an interval ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All states were searched.
    Whole,
    /// No state in it could change the answer.
    Skipped,
    /// The budget was exhausted.
    Short,
}

/// How many states of an interval may still be visited.
#[derive(Debug)]
pub struct Budget<'a> {
    left: u64,
    spent: u64,
    is_interrupted: &'a AtomicBool,
}

impl Budget<'_> {
    /// The interrupt flag is read once in so many states.
    const STRIDE: u64 = 1024;

    /// Whether one more state may be visited.
    #[inline]
    pub fn spend(&mut self) -> bool {
        let is_due = self.spent.is_multiple_of(Self::STRIDE);
        if self.left == 0 || (is_due && self.is_interrupted.load(Ordering::Relaxed)) {
            return false;
        }
        self.left -= 1;
        self.spent += 1;
        true
    }
}

/// How much a detector may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many threads search beside those that insert. With none, inserting threads do it all.
    pub workers: usize,
    /// How many intervals may wait to be searched. A thread that inserts one more searches first.
    pub queue_max: usize,
    /// The most states of an interval that are visited.
    pub states_max: u64,
    /// About how many events are kept for intervals to come. Intervals in the queue keep theirs.
    pub events_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        Self { workers, queue_max: 1024, states_max: 1 << 20, events_max: 1 << 20 }
    }
}

/// How much was searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many intervals there were: one per event, and that of the empty state.
    pub intervals: u64,
    /// How many states were visited.
    pub states: u64,
    /// How many intervals were skipped.
    pub skipped: u64,
    /// How many intervals exceeded the limit on states, or were interrupted.
    pub short: u64,
    /// How many intervals had states whose events were dropped before.
    pub late: u64,
}

impl Summary {
    /// Whether all states were searched, or could not change the answer.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.short == 0 && self.late == 0
    }
}

/// What a detector found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome<A> {
    /// What its search says.
    pub answer: A,
    /// How much was searched.
    pub summary: Summary,
}

/// Takes events as they happen and searches the states they add.
pub struct OnlineDetector<S: Search> {
    shared: Arc<Shared<S>>,
    workers: Vec<JoinHandle<()>>,
}

/// What inserting threads and workers share.
struct Shared<S: Search> {
    search: S,
    options: Options,
    queue: Mutex<Queue<S::Label>>,
    /// Notified when an interval is queued and at the end.
    changed: Condvar,
    is_interrupted: Arc<AtomicBool>,
    summary: Mutex<Summary>,
}

#[derive(Debug)]
struct Queue<L> {
    log: Log<L>,
    intervals: VecDeque<Interval<L>>,
    is_closing: bool,
}

impl<S: Search> OnlineDetector<S> {
    /// A detector that has seen nothing yet but the empty state.
    #[must_use]
    pub fn new(search: S, options: Options) -> Self {
        let log = Log::new(options.events_max);
        let shared = Arc::new(Shared {
            search,
            options,
            queue: Mutex::new(Queue { log, intervals: VecDeque::new(), is_closing: false }),
            changed: Condvar::new(),
            is_interrupted: Arc::default(),
            summary: Mutex::default(),
        });
        shared.examine(&Interval::before_all());
        let start = |_| {
            let shared = Arc::clone(&shared);
            thread::Builder::new().spawn(move || shared.work())
        };
        // Where the system has no more threads, inserting threads do the work.
        let workers = (0..options.workers).map_while(|number| start(number).ok()).collect();
        Self { shared, workers }
    }

    /// Takes the next event of `chain`: its clock, with an entry for each thread up to the last
    /// that is not zero, and its label. The thread must not continue before this returns. If too
    /// many intervals wait, searches some first.
    ///
    /// # Errors
    /// If the clock is not that of a partial order; nothing is inserted then.
    pub fn insert(&self, chain: ChainId, clock: &[u32], label: S::Label) -> Result<(), Refused> {
        let mut queue = lock(&self.shared.queue);
        let interval = queue.log.insert(chain, clock, label)?;
        queue.intervals.push_back(interval);
        self.shared.changed.notify_one();
        while queue.intervals.len() > self.shared.options.queue_max {
            let Some(interval) = queue.intervals.pop_front() else { break };
            drop(queue);
            self.shared.examine(&interval);
            // Its events are freed before the lock is taken again.
            drop(interval);
            queue = lock(&self.shared.queue);
        }
        Ok(())
    }

    /// Announces a thread before its first event. An unannounced one may appear after events that
    /// it did not see were dropped; the intervals that lack them count as late.
    ///
    /// # Errors
    /// If it has ended or there are too many threads.
    pub fn declare(&self, chain: ChainId) -> Result<(), Refused> {
        lock(&self.shared.queue).log.declare(chain)
    }

    /// Says that `chain` inserts nothing more, so that no events are kept for its sake.
    ///
    /// # Errors
    /// If there are too many threads.
    pub fn end(&self, chain: ChainId) -> Result<(), Refused> {
        lock(&self.shared.queue).log.end(chain)
    }

    /// What is looked for, and what of it was found so far.
    #[must_use]
    pub fn search(&self) -> &S {
        &self.shared.search
    }

    /// How many events are kept for intervals to come.
    #[must_use]
    pub fn events_kept(&self) -> usize {
        lock(&self.shared.queue).log.events_kept()
    }

    /// A flag that, once set, ends all searches soon; intervals that wait or come are only counted.
    #[must_use]
    pub fn interrupt_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.is_interrupted)
    }

    /// Searches the intervals that wait and returns what was found.
    ///
    /// # Panics
    /// If the search panicked in a worker.
    #[must_use]
    pub fn finish(mut self) -> Outcome<S::Answer> {
        loop {
            // A statement of its own: the lock must not be held during the search.
            let waiting = lock(&self.shared.queue).intervals.pop_front();
            let Some(interval) = waiting else { break };
            self.shared.examine(&interval);
        }
        for ended in self.close() {
            if let Err(panic) = ended {
                resume_unwind(panic);
            }
        }
        let shared = Arc::clone(&self.shared);
        drop(self);
        let shared = Arc::into_inner(shared).expect("the workers have ended");
        let queue = shared.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
        let summary = shared.summary.into_inner().unwrap_or_else(PoisonError::into_inner);
        Outcome { answer: shared.search.answer(queue.log.chains_count()), summary }
    }

    /// Waits for the workers, who end when no interval is left.
    fn close(&mut self) -> Vec<thread::Result<()>> {
        lock(&self.shared.queue).is_closing = true;
        self.shared.changed.notify_all();
        self.workers.drain(..).map(JoinHandle::join).collect()
    }
}

impl<S: Search> Drop for OnlineDetector<S> {
    fn drop(&mut self) {
        lock(&self.shared.queue).intervals.clear();
        self.shared.is_interrupted.store(true, Ordering::Relaxed);
        // Whoever wants to know how the workers ended has called `finish`.
        let _ = self.close();
    }
}

impl<S: Search> Shared<S> {
    /// What a worker does.
    fn work(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(interval) = queue.intervals.pop_front() {
                drop(queue);
                self.examine(&interval);
                drop(interval);
                queue = lock(&self.queue);
            } else if queue.is_closing {
                return;
            } else {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn examine(&self, interval: &Interval<S::Label>) {
        let left = self.options.states_max;
        let mut budget = Budget { left, spent: 0, is_interrupted: &self.is_interrupted };
        let end = self.search.search(interval, &mut budget);
        let mut summary = lock(&self.summary);
        summary.intervals += 1;
        summary.states += budget.spent;
        match end {
            End::Whole => summary.late += u64::from(!interval.is_whole()),
            End::Skipped => summary.skipped += 1,
            End::Short => summary.short += 1,
        }
    }
}

/// Locks a mutex even after a panic: what these protect is changed in one go, or not at all.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Inserts the events of `poset` into `detector`, in their recorded order, until all are inserted
/// or the detector is interrupted.
///
/// # Errors
/// If an event is refused, as by a detector that has seen others before.
pub fn replay<S: Search>(
    poset: &Poset,
    label: impl Fn(ChainId, u32) -> S::Label,
    detector: &OnlineDetector<S>,
) -> Result<(), Refused> {
    for chain in poset.chains().filter(|&chain| poset.length(chain) > 0) {
        detector.declare(chain)?;
    }
    for (chain, index) in poset.events() {
        if detector.shared.is_interrupted.load(Ordering::Relaxed) {
            break;
        }
        detector.insert(chain, poset.clock(chain, index), label(chain, index))?;
        if index == poset.length(chain) {
            detector.end(chain)?;
        }
    }
    Ok(())
}

/// For each chain of `poset`, which was made of `trace` with this `place`, the events of the trace
/// that each of its events stands for.
#[must_use]
pub fn members(
    trace: &Trace,
    poset: &TracePoset,
    place: impl Fn(&Trace, EventId) -> EventRole,
) -> IndexVec<ChainId, Vec<Vec<EventId>>> {
    let mut chains = IndexVec::from_elem(None, trace.names().threads.len());
    for (chain, &thread) in poset.threads().entries() {
        chains[thread] = Some(chain);
    }
    let count = poset.poset().chains_count();
    let mut members: IndexVec<ChainId, Vec<Vec<EventId>>> = IndexVec::from_elem(Vec::new(), count);
    for (id, event) in trace.events() {
        let Some(chain) = chains[event.thread] else { continue };
        if place(trace, id) == EventRole::Outside {
            continue;
        }
        let next = members[chain].len() as u32 + 1;
        if next <= poset.poset().length(chain) && poset.first(chain, next) == Some(id) {
            members[chain].push(Vec::new());
        }
        if let Some(last) = members[chain].last_mut() {
            last.push(id);
        }
    }
    members
}

/// The variables of `trace` with races by happens-before, found by a detector that the trace is
/// replayed into.
///
/// # Errors
/// If its poset is too large.
pub fn races(
    trace: &Trace,
    form: Form,
    options: Options,
) -> Result<Outcome<BTreeSet<VarId>>, IllFormedPoset> {
    let recorded = TracePoset::new(trace, Relation::HappensBefore, collections)?;
    let members = members(trace, &recorded, collections);
    let label = |chain: ChainId, index: u32| {
        let events = members[chain].get(index as usize - 1).map_or(&[][..], |events| events);
        collected(events.iter().map(|&event| trace.event(event).op))
    };
    let detector = OnlineDetector::new(Races::new(form), options);
    replay(recorded.poset(), label, &detector).expect("a poset's clocks are those of an order");
    Ok(detector.finish())
}
