//! Signals: which notify woke a wait, which arrivals let a departure go, which post was taken.

use std::collections::VecDeque;

use reweave_base::{FxHashMap, IndexVec};

use crate::op::{BarrierId, EventId, Op, SemaphoreId, ThreadId};
use crate::signals::{Stay, condition_events, match_waits};
use crate::trace::Trace;

reweave_base::id! {
    /// One round of one barrier.
    pub struct RoundId;
}

/// One round of a barrier: all arrivals come before any departure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Whose round it is.
    pub barrier: BarrierId,
    /// Its `arrive` events, in observed order.
    pub arrivals: Vec<EventId>,
    /// Its `depart` events, in observed order.
    pub departures: Vec<EventId>,
}

/// What let waiting events happen.
#[derive(Debug, Default)]
pub struct Signals {
    stays: Vec<Stay>,
    stay_of: FxHashMap<EventId, usize>,
    woken: FxHashMap<EventId, Vec<EventId>>,
    rounds: IndexVec<RoundId, Round>,
    round_of: FxHashMap<EventId, RoundId>,
    posts: FxHashMap<EventId, EventId>,
}

impl Signals {
    pub(super) fn of(trace: &Trace) -> Self {
        let matching = match_waits(&condition_events(trace.columns()), trace.columns());
        let mut signals = Self { stays: matching.stays, ..Self::default() };
        signals.woken = matching.woken.into_iter().collect();
        for (at, stay) in signals.stays.iter().enumerate() {
            signals.stay_of.insert(stay.wait, at);
            if let Some(end) = stay.end {
                signals.stay_of.insert(end, at);
            }
        }
        signals.find_rounds(trace);
        signals.find_posts(trace);
        signals
    }

    /// Every stay in a condition variable's queue, in the order they began.
    #[must_use]
    pub fn stays(&self) -> &[Stay] {
        &self.stays
    }

    /// The stay that `event`, a `wait`, `wake` or `timeout`, begins or ends.
    #[must_use]
    pub fn stay(&self, event: EventId) -> Option<&Stay> {
        self.stay_of.get(&event).map(|&at| &self.stays[at])
    }

    /// The waits that `event`, a notify or notify-all, woke; none if it woke nobody.
    #[must_use]
    pub fn woken(&self, event: EventId) -> &[EventId] {
        self.woken.get(&event).map_or(&[], Vec::as_slice)
    }

    /// The round that `event`, an `arrive` or `depart`, belongs to.
    #[must_use]
    pub fn round(&self, event: EventId) -> Option<&Round> {
        self.round_of.get(&event).map(|&id| &self.rounds[id])
    }

    /// The post that `event`, a `take`, used up; none if it used a token that was there at the
    /// start. Posts are used oldest first, and before the tokens of the start.
    #[must_use]
    pub fn post(&self, event: EventId) -> Option<EventId> {
        self.posts.get(&event).copied()
    }

    fn find_rounds(&mut self, trace: &Trace) {
        let mut current: IndexVec<BarrierId, Option<RoundId>> = IndexVec::new();
        let mut inside: FxHashMap<(ThreadId, BarrierId), RoundId> = FxHashMap::default();
        for (id, event) in trace.events() {
            match event.op {
                Op::Arrive(barrier) => {
                    let full = |round: &Round| {
                        trace.declared().parties(barrier) == Some(round.arrivals.len() as u32)
                    };
                    let round = match *current.get_or_default(barrier) {
                        Some(round) if !full(&self.rounds[round]) => round,
                        _ => {
                            let none = Vec::new;
                            self.rounds.push(Round {
                                barrier,
                                arrivals: none(),
                                departures: none(),
                            })
                        }
                    };
                    current[barrier] = Some(round);
                    inside.insert((event.thread, barrier), round);
                    self.rounds[round].arrivals.push(id);
                    self.round_of.insert(id, round);
                }
                Op::Depart(barrier) => {
                    let round = inside
                        .remove(&(event.thread, barrier))
                        .expect("a departure follows its arrival");
                    if current[barrier] == Some(round) {
                        current[barrier] = None;
                    }
                    self.rounds[round].departures.push(id);
                    self.round_of.insert(id, round);
                }
                _ => {}
            }
        }
    }

    fn find_posts(&mut self, trace: &Trace) {
        let mut unused: IndexVec<SemaphoreId, VecDeque<EventId>> = IndexVec::new();
        for (id, event) in trace.events() {
            match event.op {
                Op::Post(semaphore) => unused.get_or_default(semaphore).push_back(id),
                Op::Take(semaphore) => {
                    if let Some(post) = unused.get_or_default(semaphore).pop_front() {
                        self.posts.insert(id, post);
                    }
                }
                _ => {}
            }
        }
    }
}
