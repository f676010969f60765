//! A search that does not take more time than it may.
//!
//! Threads that do not synchronise have more states with every step, and a program that is watched
//! waits for its watcher. So the search has a credit of states, earns a few with each step, and passes
//! a step by whose states may cost more than it has. What was passed by is said.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use reweave_states::online::{Budget, End, Interval, Search};

/// How many states there are to begin with, and how many can be saved at most.
pub(super) const CREDIT_MAX: u64 = 1 << 24;

/// How many states each step adds.
const EARNED: u64 = 256;

/// Another search, as long as there is credit for it.
pub(super) struct Thrifty<S> {
    inner: S,
    credit: AtomicU64,
    is_passed_by: AtomicBool,
}

impl<S> Thrifty<S> {
    /// `inner` with all the credit there can be.
    pub(super) const fn new(inner: S) -> Self {
        let (credit, is_passed_by) = (AtomicU64::new(CREDIT_MAX), AtomicBool::new(false));
        Self { inner, credit, is_passed_by }
    }

    /// Whether a step was passed by.
    pub(super) fn is_passed_by(&self) -> bool {
        self.is_passed_by.load(Ordering::Relaxed)
    }
}

impl<S: Search> Search for Thrifty<S> {
    type Label = S::Label;
    type Answer = S::Answer;

    fn search(&self, interval: &Interval<S::Label>, budget: &mut Budget<'_>) -> End {
        let bounds = interval.least().iter().zip(interval.greatest());
        let states = bounds
            .map(|(&least, &greatest)| u64::from(greatest.saturating_sub(least)) + 1)
            .fold(1, u64::saturating_mul);
        let credit = self.credit.load(Ordering::Relaxed).saturating_add(EARNED).min(CREDIT_MAX);
        let left = credit.checked_sub(states);
        self.credit.store(left.unwrap_or(credit), Ordering::Relaxed);
        if left.is_none() {
            self.is_passed_by.store(true, Ordering::Relaxed);
            return End::Short;
        }
        self.inner.search(interval, budget)
    }

    fn answer(self, chains_count: usize) -> S::Answer {
        self.inner.answer(chains_count)
    }
}
