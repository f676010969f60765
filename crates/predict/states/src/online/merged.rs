//! The least state that meets a predicate of a small memory, intervals merged where they are large.
//!
//! An interval can have exponentially many states. Where the predicate takes the threads one by one
//! and remembers little, the [cut diagram](crate::diagram) of the interval finds its least state
//! without going through them. The answer is the one that [`least`](super::least) gives: of states
//! with as few events, the first in lexical order is found by asking again, with the first threads
//! held to no more than they have.
//!
//! Small intervals are gone through, at the same cost as there. A merged one costs what its diagram
//! costs; the limit on the states of an interval is one on its choices.

use std::fmt::Debug;
use std::hash::Hash;

use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset, PosetBuilder};

use super::best::{Best, Candidate, LeastState};
use super::least::visit;
use super::{Budget, End, Interval, Search};
use crate::bounds::Bounds;
use crate::diagram::{self, Fold, Limits};

/// Up to how many states, at most, an interval is gone through rather than merged.
const VISITED_MAX: u64 = 1 << 10;

/// What one interval may cost: many are searched at a time.
const LIMITS: Limits =
    Limits { windows_soft: 1 << 12, windows_max: 1 << 16, bytes_max: 1 << 26, work_max: 0 };

/// A predicate that takes the threads of a state one by one, in any order: what it remembers in the
/// end must not depend on that, nor on threads that have done nothing.
pub trait OnlineFold: Send + Sync + 'static {
    /// What events are labelled with.
    type Label: Send + Sync + 'static;
    /// What it remembers.
    type Memory: Clone + Eq + Hash + Ord;

    /// What it remembers before any thread.
    fn start(&self) -> Self::Memory;

    /// What it remembers once it has seen the last event of `chain`, by its index and label; none
    /// if no state with it meets the predicate. Not asked about threads that have done nothing.
    fn step(
        &self,
        memory: &Self::Memory,
        chain: ChainId,
        index: u32,
        label: &Self::Label,
    ) -> Option<Self::Memory>;

    /// Whether a state meets the predicate, once all threads were seen.
    fn is_met(&self, memory: &Self::Memory) -> bool;
}

/// Looks for the least state that meets a predicate of a small memory.
#[derive(Debug)]
pub struct Merged<F> {
    fold: F,
    best: Best,
    visited_max: u64,
}

impl<F: OnlineFold> Merged<F> {
    /// Looks for the least state that meets `fold`.
    pub fn new(fold: F) -> Self {
        Self { fold, best: Best::default(), visited_max: VISITED_MAX }
    }

    /// Goes through intervals of no more states than this rather than merge them.
    #[must_use]
    pub const fn visited_max(mut self, states_count: u64) -> Self {
        self.visited_max = states_count;
        self
    }

    /// Calls `on_found` with the first state that is found and whenever a lesser one is, on the
    /// thread that found it, the zeros at its end left out. Calls from different threads can
    /// overtake each other.
    #[must_use]
    pub fn on_found(mut self, on_found: impl Fn(&[u32]) + Send + Sync + 'static) -> Self {
        self.best.tell(on_found);
        self
    }

    /// The least state so far, without the zeros at its end.
    #[must_use]
    pub fn so_far(&self) -> Option<Vec<u32>> {
        self.best.state()
    }

    /// Asks the diagram of `interval`, whose events beyond its least state are those of `poset`.
    fn merge(&self, interval: &Interval<F::Label>, poset: &Poset, budget: &Budget<'_>) -> End {
        let at_most = interval.greatest().to_vec();
        let mut ask = Ask { fold: &self.fold, interval, poset, budget, at_most };
        let (found, mut end) = ask.least();
        if end == End::Short || !interval.is_whole() {
            self.best.leave_out(interval.events_min());
        }
        let Some(found) = found else { return end };
        let (mut least, events_count) = (found.clone(), Candidate::new(&found).events_count);
        if self.best.least().is_some_and(|best| best.events_count < events_count) {
            return end;
        }
        if end == End::Whole && ask.first(&mut least) == End::Short {
            // Others with as few events may come before it, but none has fewer.
            self.best.leave_out(events_count);
            end = End::Short;
        }
        self.best.offer(Candidate::new(&least));
        end
    }
}

impl<F: OnlineFold> Search for Merged<F> {
    type Label = F::Label;
    type Answer = LeastState;

    fn search(&self, interval: &Interval<F::Label>, budget: &mut Budget<'_>) -> End {
        let best = self.best.least();
        if best.is_some_and(|best| best.events_count < interval.events_min()) {
            return End::Passed;
        }
        let widths = interval.least().iter().zip(interval.greatest());
        let widths = widths.map(|(least, greatest)| u64::from(greatest - least));
        let states_max = widths.clone().fold(1, |all: u64, width| all.saturating_mul(width + 1));
        let entries = widths.sum::<u64>().saturating_mul(interval.least().len() as u64);
        if states_max > self.visited_max
            && entries <= budget.left()
            && let Some(poset) = poset(interval)
        {
            return self.merge(interval, &poset, budget);
        }
        visit(interval, &self.best, budget, |state| {
            let mut frontier = state.frontier();
            let memory = frontier.try_fold(self.fold.start(), |memory, (chain, label)| {
                self.fold.step(&memory, chain, state.index(chain), label)
            });
            memory.is_some_and(|memory| self.fold.is_met(&memory))
        })
    }

    fn answer(self, chains_count: usize) -> LeastState {
        self.best.answer(chains_count)
    }
}

/// The events of `interval` beyond its least state, if there is room for them.
fn poset<L>(interval: &Interval<L>) -> Option<Poset> {
    let mut events = Vec::new();
    let bounds = interval.least().iter().zip(interval.greatest()).enumerate();
    for (at, (&least, &greatest)) in bounds {
        for index in (least..greatest).map(|before| before + 1) {
            let (clock, _) = interval.row(ChainId::from_index(at), index)?;
            // What comes before an event has a clock that is less.
            let size: u64 = clock.iter().map(|&number| u64::from(number)).sum();
            events.push((size, at, clock));
        }
    }
    events.sort_unstable_by_key(|&(size, at, _)| (size, at));
    let width = interval.least().len();
    let mut builder = PosetBuilder::new(width).ok()?;
    for (_, at, clock) in events {
        let clock = clock.iter().copied().chain(std::iter::repeat(0));
        let beyond =
            clock.zip(interval.least()).map(|(number, &least)| number.saturating_sub(least));
        let beyond: Vec<u32> = beyond.collect();
        builder.push(at, &beyond).ok()?;
    }
    Some(builder.finish())
}

/// A question to the diagram of an interval.
struct Ask<'a, F: OnlineFold> {
    fold: &'a F,
    interval: &'a Interval<F::Label>,
    poset: &'a Poset,
    budget: &'a Budget<'a>,
    /// For each thread the most events it may have run.
    at_most: Vec<u32>,
}

impl<F: OnlineFold> Ask<'_, F> {
    /// A state with the fewest events, if there is one, and whether it is certain.
    fn least(&self) -> (Option<Vec<u32>>, End) {
        let limits = Limits { work_max: self.budget.left(), ..LIMITS };
        let stop = || self.budget.is_interrupted();
        let bounds = Bounds::all(self.poset);
        let answer = diagram::least(self.poset, &bounds, self, &|_, index| index, &limits, &stop);
        let state = answer.found.map(|(_, beyond)| {
            let own = beyond.iter().zip(self.interval.least());
            own.map(|(beyond, least)| beyond + least).collect()
        });
        (state, if answer.cut_short.is_some() { End::Short } else { End::Whole })
    }

    /// Makes `state`, which has the fewest events, the first in lexical order of those that have:
    /// thread by thread, with the ones before held to what they have, halves what it can have.
    fn first(&mut self, state: &mut Vec<u32>) -> End {
        let events_count = Candidate::new(state).events_count;
        for at in 0..state.len() {
            let mut low = self.interval.least()[at];
            while low < state[at] {
                let middle = low + (state[at] - low) / 2;
                self.at_most[at] = middle;
                let (found, end) = self.least();
                if end == End::Short {
                    return End::Short;
                }
                match found.filter(|found| Candidate::new(found).events_count == events_count) {
                    Some(found) => *state = found,
                    None => low = middle + 1,
                }
            }
            self.at_most[at] = state[at];
        }
        End::Whole
    }
}

impl<F: OnlineFold> Fold for Ask<'_, F> {
    type Memory = F::Memory;

    fn start(&self) -> F::Memory {
        self.fold.start()
    }

    fn step(&self, memory: &F::Memory, chain: ChainId, beyond: u32) -> Option<F::Memory> {
        let index = self.interval.least()[chain.index()] + beyond;
        if index > self.at_most[chain.index()] {
            return None;
        }
        match self.interval.row(chain, index) {
            Some((_, label)) => self.fold.step(memory, chain, index, label),
            None => Some(memory.clone()),
        }
    }

    fn is_met(&self, memory: &F::Memory) -> bool {
        self.fold.is_met(memory)
    }
}
