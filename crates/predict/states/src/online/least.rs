//! Is there a state that meets a predicate, and which is the least?
//!
//! The least has the fewest events, and of those with as few it is the first in lexical order, the
//! first thread most significant. It does not depend on how many workers there are nor on when they
//! get to work, and without limits not on the order of insertion either: an interval is passed over
//! only if all its states have more events than one that was found.
//!
//! Costs the square of the threads for each state, and the predicate where the state would be the
//! least so far.

use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;

pub use super::best::LeastState;
use super::best::{Best, Candidate};
use super::{Budget, End, Interval, Search, State};

/// What a state can be asked. The same state gets the same answer.
pub trait OnlinePredicate: Send + Sync + 'static {
    /// What events are labelled with.
    type Label: Send + Sync + 'static;

    /// Whether `state` meets it. A thread that is not in the state has done nothing yet.
    fn is_met(&self, state: &State<'_, Self::Label>) -> bool;
}

/// A predicate that is a function.
pub struct Opaque<L, F> {
    is_met: F,
    label: PhantomData<fn() -> L>,
}

/// The predicate that a state meets if `is_met` says so.
pub const fn opaque<L, F>(is_met: F) -> Opaque<L, F>
where
    F: Fn(&State<'_, L>) -> bool + Send + Sync + 'static,
{
    Opaque { is_met, label: PhantomData }
}

impl<L, F> OnlinePredicate for Opaque<L, F>
where
    L: Send + Sync + 'static,
    F: Fn(&State<'_, L>) -> bool + Send + Sync + 'static,
{
    type Label = L;

    fn is_met(&self, state: &State<'_, L>) -> bool {
        (self.is_met)(state)
    }
}

impl<L, F> Debug for Opaque<L, F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Opaque")
    }
}

/// Looks for the least state that meets a predicate.
#[derive(Debug)]
pub struct Least<P> {
    predicate: P,
    best: Best,
}

impl<P: OnlinePredicate> Least<P> {
    /// Looks for the least state that meets `predicate`.
    pub fn new(predicate: P) -> Self {
        Self { predicate, best: Best::default() }
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
}

impl<P: OnlinePredicate> Search for Least<P> {
    type Label = P::Label;
    type Answer = LeastState;

    fn search(&self, interval: &Interval<P::Label>, budget: &mut Budget<'_>) -> End {
        visit(interval, &self.best, budget, |state| self.predicate.is_met(state))
    }

    fn answer(self, chains_count: usize) -> LeastState {
        self.best.answer(chains_count)
    }
}

/// Goes through the states of `interval` one by one, unless none can be less than the best.
pub(super) fn visit<L>(
    interval: &Interval<L>,
    best: &Best,
    budget: &mut Budget<'_>,
    is_met: impl Fn(&State<'_, L>) -> bool,
) -> End {
    let mut least = best.least();
    if least.as_ref().is_some_and(|least| least.events_count < interval.events_min()) {
        return End::Passed;
    }
    let mut is_new = false;
    let mut walk = interval.walk();
    let end = loop {
        if !budget.spend() {
            break End::Short;
        }
        let state = walk.state();
        let is_less = least.as_ref().is_none_or(|least| least.is_after(&state));
        if is_less && is_met(&state) {
            least = Some(Candidate::new(state.indices()));
            is_new = true;
        }
        if !walk.advance() {
            break End::Whole;
        }
    };
    if end == End::Short || !interval.is_whole() {
        best.leave_out(interval.events_min());
    }
    if let Some(least) = least.filter(|_| is_new) {
        best.offer(least);
    }
    end
}
