//! Which states does a running program pass by? Events are taken as they happen, from many
//! threads, and the states that each one brings are searched while the program runs.
//!
//! The states whose last event is e, by the order in which events are inserted, are those between
//! the clock of e and all that was inserted up to e. So when e comes they are known once and for
//! all, whatever comes later; they are noted as a piece of work, which the detector's workers, or
//! the inserting threads themselves when the workers do not keep up, look through. All pieces
//! together are all states, each once: the answer is the one that is found afterwards, from the
//! whole.
//!
//! An inserting thread goes on when [`OnlineDetector::insert`] returns. Then what comes after its
//! event is inserted after it, and insertion keeps the order of events (Property 1 of the paper).
//!
//! Memory is bounded. Rows that no later event can need are let go ([`OnlineDetector::fork`],
//! [`OnlineDetector::wait`] and [`OnlineDetector::end`] say which those are); no more than a number
//! of pieces of work wait; and there are limits on the rows and on the states of one piece. What a
//! limit left out is counted, and the answer says that it is not the whole.
//!
//! | what is looked for | module |
//! | --- | --- |
//! | the least state that meets a predicate | [`least`] |
//! | the same, large intervals merged, for predicates of a small memory | [`merged`] |
//! | variables that are raced on | [`races`] |
//!
//! [`clocks`] makes clocks for a running program, and [`replay`] feeds a recorded one through.
//!
//! An event costs its threads when inserted; a state costs what its search costs. Follows section
//! 4 of Chang and Garg (2015), Algorithm 4 above all; letting go of rows and limits are added.

mod best;
pub mod clocks;
mod interval;
pub mod least;
mod log;
pub mod merged;
pub mod races;
pub mod replay;
mod rows;

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use reweave_order::poset::ChainId;

pub use interval::{Interval, State, Walk};
use log::Log;
pub use log::Refused;

/// What is looked for in the states of a running program.
pub trait Search: Send + Sync + 'static {
    /// What events are labelled with.
    type Label: Send + Sync + 'static;
    /// What was found, in the end.
    type Answer;

    /// Looks at the states of `interval`, as many as `budget` allows. Many intervals are searched
    /// at a time. The first is that of no event, with the empty state.
    fn search(&self, interval: &Interval<Self::Label>, budget: &mut Budget<'_>) -> End;

    /// What was found in all, with `chains_count` threads.
    fn answer(self, chains_count: usize) -> Self::Answer;
}

/// How the search of an interval ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All was looked at.
    Whole,
    /// There was nothing in it that could matter after what had been found elsewhere.
    Passed,
    /// The budget was used up.
    Short,
}

/// How many states of an interval may still be looked at.
#[derive(Debug)]
pub struct Budget<'a> {
    left: u64,
    spent: u64,
    is_interrupted: &'a AtomicBool,
}

impl Budget<'_> {
    /// How many states go by between two looks at whether to stop.
    const STRIDE: u64 = 1024;

    /// Whether one more state may be looked at.
    #[inline]
    pub fn spend(&mut self) -> bool {
        let is_due = self.spent.is_multiple_of(Self::STRIDE);
        if self.left == 0 || (is_due && self.is_interrupted()) {
            return false;
        }
        self.left -= 1;
        self.spent += 1;
        true
    }

    /// How many states may still be looked at, or steps taken by who does not look at states.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Whether nothing more is to be looked at.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.is_interrupted.load(Ordering::Relaxed)
    }
}

/// How much a detector may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many threads search beside those that insert. With none, inserting threads do it all.
    pub workers: usize,
    /// How many intervals may wait to be searched. A thread that inserts one more searches first.
    pub queue_max: usize,
    /// How many states of an interval are looked at.
    pub states_max: u64,
    /// About how many events are held for intervals to come. Those in work hold theirs besides.
    pub rows_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        Self { workers, queue_max: 1024, states_max: 1 << 20, rows_max: 1 << 20 }
    }
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many intervals there were: one an event, and that of the empty state.
    pub intervals: u64,
    /// How many states were looked at one by one.
    pub states: u64,
    /// How many intervals did not matter any more.
    pub passed: u64,
    /// How many intervals were too large and not gone through to the end, or interrupted.
    pub short: u64,
    /// How many intervals had states whose events were not held any more.
    pub late: u64,
}

impl Summary {
    /// Whether all states were looked at, or did not matter.
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
    /// How much was looked at.
    pub summary: Summary,
}

/// Takes events as they happen and searches the states they bring.
pub struct OnlineDetector<S: Search> {
    shared: Arc<Shared<S>>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared<S: Search> {
    search: S,
    options: Options,
    desk: Mutex<Desk<S::Label>>,
    /// Rung when work comes and at the end.
    bell: Condvar,
    is_interrupted: Arc<AtomicBool>,
    summary: Mutex<Summary>,
}

/// What inserting threads and workers share.
#[derive(Debug)]
struct Desk<L> {
    log: Log<L>,
    queue: VecDeque<Interval<L>>,
    is_closing: bool,
}

impl<S: Search> OnlineDetector<S> {
    /// A detector that has seen nothing yet but the empty state.
    #[must_use]
    pub fn new(search: S, options: Options) -> Self {
        let log = Log::new(options.rows_max);
        let shared = Arc::new(Shared {
            search,
            options,
            desk: Mutex::new(Desk { log, queue: VecDeque::new(), is_closing: false }),
            bell: Condvar::new(),
            is_interrupted: Arc::default(),
            summary: Mutex::default(),
        });
        shared.examine(&Interval::before_all());
        let start = |_| {
            let shared = Arc::clone(&shared);
            thread::Builder::new().spawn(move || shared.work())
        };
        // Where there is no room for a worker, inserting threads do its work.
        let workers = (0..options.workers).map_while(|number| start(number).ok()).collect();
        Self { shared, workers }
    }

    /// Takes the next event of `chain`: its clock, with a number for each thread up to the last
    /// that is not zero, and what it is labelled with. The thread does not go on before this
    /// returns. If too much work waits, does some of it first.
    ///
    /// # Errors
    /// If the clock is not that of an order; nothing is inserted then.
    pub fn insert(&self, chain: ChainId, clock: &[u32], label: S::Label) -> Result<(), Refused> {
        let mut desk = self.shared.desk();
        let interval = desk.log.insert(chain, clock, label)?;
        desk.queue.push_back(interval);
        self.shared.bell.notify_one();
        while desk.queue.len() > self.shared.options.queue_max {
            let Some(interval) = desk.queue.pop_front() else { break };
            drop(desk);
            self.shared.examine(&interval);
            drop(interval);
            desk = self.shared.desk();
        }
        Ok(())
    }

    /// Says that there is a thread that nobody forked, before it does anything. Without this, or a
    /// fork, it may appear after events that it did not see were let go.
    ///
    /// # Errors
    /// If it has ended or there are too many threads.
    pub fn declare(&self, chain: ChainId) -> Result<(), Refused> {
        self.shared.desk().log.declare(chain)
    }

    /// Says that `child` starts after what `parent` has inserted so far, before either goes on.
    ///
    /// # Errors
    /// If the child has started or ended, or there are too many threads.
    pub fn fork(&self, parent: ChainId, child: ChainId) -> Result<(), Refused> {
        self.shared.desk().log.fork(parent, child)
    }

    /// Says that the next event of `chain` comes after the last one of `other`, as that of a thread
    /// that joins another. While it waits, events of others need not be held for its sake.
    ///
    /// # Errors
    /// If it has ended or there are too many threads.
    pub fn wait(&self, chain: ChainId, other: ChainId) -> Result<(), Refused> {
        self.shared.desk().log.wait(chain, other)
    }

    /// Says that `chain` inserts nothing more.
    ///
    /// # Errors
    /// If there are too many threads.
    pub fn end(&self, chain: ChainId) -> Result<(), Refused> {
        self.shared.desk().log.end(chain)
    }

    /// What is looked for, and what of it was found so far.
    #[must_use]
    pub fn search(&self) -> &S {
        &self.shared.search
    }

    /// How much was looked at so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        *lock(&self.shared.summary)
    }

    /// How many events are held, for intervals to come and for those in work.
    #[must_use]
    pub fn rows_held(&self) -> usize {
        self.shared.desk().log.rows_held()
    }

    /// Looks at nothing more: work at hand ends soon, and what waits or comes is left out. Only
    /// counts it.
    pub fn interrupt(&self) {
        self.shared.is_interrupted.store(true, Ordering::Relaxed);
    }

    /// Whether it was told to look at nothing more.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.shared.is_interrupted.load(Ordering::Relaxed)
    }

    /// What does as [`interrupt`](Self::interrupt) does, for someone who has not the detector.
    pub fn interrupter(&self) -> impl Fn() + Send + Sync + use<S> {
        let is_interrupted = Arc::clone(&self.shared.is_interrupted);
        move || is_interrupted.store(true, Ordering::Relaxed)
    }

    /// Does what work is left and says what was found.
    ///
    /// # Panics
    /// If the search panicked in a worker.
    #[must_use]
    pub fn finish(mut self) -> Outcome<S::Answer> {
        loop {
            // The guard must not be held during the work.
            let waiting = self.shared.desk().queue.pop_front();
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
        let desk = shared.desk.into_inner().unwrap_or_else(PoisonError::into_inner);
        let summary = shared.summary.into_inner().unwrap_or_else(PoisonError::into_inner);
        Outcome { answer: shared.search.answer(desk.log.chains_count()), summary }
    }

    /// Waits for the workers, who end when no work is left.
    fn close(&mut self) -> Vec<thread::Result<()>> {
        self.shared.desk().is_closing = true;
        self.shared.bell.notify_all();
        self.workers.drain(..).map(JoinHandle::join).collect()
    }
}

impl<S: Search> Drop for OnlineDetector<S> {
    fn drop(&mut self) {
        self.shared.desk().queue.clear();
        self.interrupt();
        // Whoever wants to know how the workers ended has called `finish`.
        let _ = self.close();
    }
}

impl<S: Search> Shared<S> {
    fn desk(&self) -> MutexGuard<'_, Desk<S::Label>> {
        lock(&self.desk)
    }

    /// What a worker does.
    fn work(&self) {
        let mut desk = self.desk();
        loop {
            if let Some(interval) = desk.queue.pop_front() {
                drop(desk);
                self.examine(&interval);
                drop(interval);
                desk = self.desk();
            } else if desk.is_closing {
                return;
            } else {
                desk = self.bell.wait(desk).unwrap_or_else(PoisonError::into_inner);
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
            End::Passed => summary.passed += 1,
            End::Short => summary.short += 1,
        }
    }
}

/// Locks also what was left behind by a panic: it is changed in one go, or not at all.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
