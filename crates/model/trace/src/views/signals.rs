//! Signals: which notify woke a wait, which arrivals let a departure go, which post was taken.

use std::collections::VecDeque;

use reweave_base::{FxHashMap, FxHashSet, IndexVec};

use crate::op::{BarrierId, BarrierOp, EventId, Op, SemaphoreId, SemaphoreOp, ThreadId};
use crate::trace::Trace;
use crate::wait_matching::{WaitInterval, condition_events, match_waits};

reweave_base::id! {
    /// Arrivals at a barrier that others wait for together.
    pub struct GenerationId;
}

/// Arrivals at a barrier that departures, and later arrivals, come after.
///
/// Where the number of parties is known, each so many arrivals are a generation: its departures,
/// and the arrivals of the next generation, come after all of it. Where it is not, any split of the
/// arrivals into generations may be the true one. Then each arrival counts as a generation of its
/// own: the next arrival comes after it, and so does every departure seen after it, which is right
/// whatever the split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Whose generation it is.
    pub barrier: BarrierId,
    /// Its `arrive` events, in observed order.
    pub arrivals: Vec<EventId>,
    /// The last event that comes after it, if there is one.
    pub last_needed: Option<EventId>,
}

/// What let waiting events happen.
#[derive(Debug, Default)]
pub struct Signals {
    intervals: Vec<WaitInterval>,
    interval_of: FxHashMap<EventId, usize>,
    woken: FxHashMap<EventId, Vec<EventId>>,
    generations: IndexVec<GenerationId, Generation>,
    generation_of: FxHashMap<EventId, GenerationId>,
    needed: FxHashMap<EventId, GenerationId>,
    posts: FxHashMap<EventId, EventId>,
    taken: FxHashSet<EventId>,
}

impl Signals {
    pub(super) fn new(trace: &Trace) -> Self {
        let matching =
            match_waits(&condition_events(trace.columns()), trace.columns(), trace.len());
        let mut signals = Self { intervals: matching.intervals, ..Self::default() };
        signals.woken = matching.woken.into_iter().collect();
        for (at, interval) in signals.intervals.iter().enumerate() {
            signals.interval_of.insert(interval.wait, at);
            if let Some(end) = interval.end {
                signals.interval_of.insert(end, at);
            }
        }
        signals.find_generations(trace);
        signals.find_posts(trace);
        signals
    }

    /// Every wait interval in a condition variable's queue, in the order of their `wait` events.
    #[must_use]
    pub fn wait_intervals(&self) -> &[WaitInterval] {
        &self.intervals
    }

    /// The wait interval that `event`, a `wait`, `wake` or `timeout`, begins or ends.
    #[must_use]
    pub fn wait_interval(&self, event: EventId) -> Option<&WaitInterval> {
        self.interval_of.get(&event).map(|&at| &self.intervals[at])
    }

    /// The waits that `event`, a notify or notify-all, woke; none if it woke nobody.
    #[must_use]
    pub fn woken(&self, event: EventId) -> &[EventId] {
        self.woken.get(&event).map_or(&[], Vec::as_slice)
    }

    /// The generation `id`.
    #[must_use]
    pub fn generation(&self, id: GenerationId) -> &Generation {
        &self.generations[id]
    }

    /// The generation that `event`, an `arrive`, is part of.
    #[must_use]
    pub fn own_generation(&self, event: EventId) -> Option<GenerationId> {
        self.generation_of.get(&event).copied()
    }

    /// The generation that `event`, an `arrive` or `depart`, comes after, and with it after all
    /// generations before that one; none if it comes after none.
    #[must_use]
    pub fn needed_generation(&self, event: EventId) -> Option<GenerationId> {
        self.needed.get(&event).copied()
    }

    /// The post that `event`, a `take`, used up; none if it used a token that was there at the
    /// start. Posts are used oldest first, and before the tokens of the start.
    #[must_use]
    pub fn post(&self, event: EventId) -> Option<EventId> {
        self.posts.get(&event).copied()
    }

    /// Whether a take used up `event`, a `post`.
    #[must_use]
    pub fn is_taken(&self, event: EventId) -> bool {
        self.taken.contains(&event)
    }

    fn find_generations(&mut self, trace: &Trace) {
        // The latest generation of each barrier and the one before it.
        let mut latest: IndexVec<BarrierId, (Option<GenerationId>, Option<GenerationId>)> =
            IndexVec::new();
        let mut inside: FxHashMap<(ThreadId, BarrierId), GenerationId> = FxHashMap::default();
        for (id, event) in trace.events() {
            let needed = match event.op {
                Op::Barrier(BarrierOp::Arrive, barrier) => {
                    let parties = trace.declared().parties(barrier).unwrap_or(1) as usize;
                    let (last, before) = latest.get_or_default(barrier);
                    let full = |generation: GenerationId| {
                        self.generations[generation].arrivals.len() == parties
                    };
                    if last.is_none_or(full) {
                        let none = Vec::new();
                        let generation = Generation { barrier, arrivals: none, last_needed: None };
                        *before = last.replace(self.generations.push(generation));
                    }
                    let generation = last.expect("one was just begun");
                    self.generations[generation].arrivals.push(id);
                    self.generation_of.insert(id, generation);
                    inside.insert((event.thread, barrier), generation);
                    *before
                }
                Op::Barrier(BarrierOp::Depart, barrier) => {
                    match trace.declared().parties(barrier) {
                        Some(_) => inside.get(&(event.thread, barrier)).copied(),
                        None => latest.get_or_default(barrier).0,
                    }
                }
                _ => continue,
            };
            if let Some(generation) = needed {
                self.needed.insert(id, generation);
                self.generations[generation].last_needed = Some(id);
            }
        }
    }

    fn find_posts(&mut self, trace: &Trace) {
        let mut unused: IndexVec<SemaphoreId, VecDeque<EventId>> = IndexVec::new();
        for (id, event) in trace.events() {
            match event.op {
                Op::Semaphore(SemaphoreOp::Post, semaphore) => {
                    unused.get_or_default(semaphore).push_back(id);
                }
                Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                    if let Some(post) = unused.get_or_default(semaphore).pop_front() {
                        self.posts.insert(id, post);
                        self.taken.insert(post);
                    }
                }
                _ => {}
            }
        }
    }
}
