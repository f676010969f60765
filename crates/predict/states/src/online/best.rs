//! The least state found so far, shared by those who search.

use std::fmt::{self, Debug, Formatter};
use std::sync::{Mutex, PoisonError};

use super::{State, lock};

/// The least state that meets a predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeastState {
    /// How many events of each thread it has, if there is one.
    pub least: Option<Vec<u32>>,
    /// Whether nothing was left out that could be less, or meet the predicate at all.
    pub is_certain: bool,
}

/// The least state so far.
#[derive(Default)]
pub(super) struct Best {
    on_found: Option<OnFound>,
    found: Mutex<Found>,
}

type OnFound = Box<dyn Fn(&[u32]) + Send + Sync>;

#[derive(Debug, Default)]
struct Found {
    least: Option<Candidate>,
    /// No state that was left out has fewer events, if any was.
    left_out: Option<u64>,
}

/// A state that meets the predicate, without the zeros at its end: so that they compare the same
/// whenever they were found. Fewer events come first, then what is first in lexical order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub(super) events_count: u64,
    indices: Vec<u32>,
}

impl Candidate {
    pub(super) fn new(indices: &[u32]) -> Self {
        let events_count = indices.iter().map(|&index| u64::from(index)).sum();
        Self { events_count, indices: trimmed(indices).to_vec() }
    }

    /// Whether `state` comes before it.
    pub(super) fn is_after<L>(&self, state: &State<'_, L>) -> bool {
        let own = (self.events_count, &*self.indices);
        (state.events_count(), trimmed(state.indices())) < own
    }
}

fn trimmed(indices: &[u32]) -> &[u32] {
    let last = indices.iter().rposition(|&index| index > 0);
    &indices[..last.map_or(0, |last| last + 1)]
}

impl Best {
    pub(super) fn tell(&mut self, on_found: impl Fn(&[u32]) + Send + Sync + 'static) {
        self.on_found = Some(Box::new(on_found));
    }

    /// The least so far.
    pub(super) fn least(&self) -> Option<Candidate> {
        lock(&self.found).least.clone()
    }

    /// The least so far, as a state.
    pub(super) fn state(&self) -> Option<Vec<u32>> {
        self.least().map(|least| least.indices)
    }

    /// Notes that states were not looked at, none of which has fewer events than `events_min`.
    pub(super) fn leave_out(&self, events_min: u64) {
        let left_out = &mut lock(&self.found).left_out;
        *left_out = Some(left_out.unwrap_or(u64::MAX).min(events_min));
    }

    /// Takes `candidate` if it is less than what was found, and says so.
    pub(super) fn offer(&self, candidate: Candidate) {
        let mut found = lock(&self.found);
        if found.least.as_ref().is_some_and(|least| *least <= candidate) {
            return;
        }
        let indices = candidate.indices.clone();
        found.least = Some(candidate);
        // Who is told may insert events or ask what was found.
        drop(found);
        if let Some(on_found) = &self.on_found {
            on_found(&indices);
        }
    }

    /// The least of all, with a number for each of so many threads.
    pub(super) fn answer(self, chains_count: usize) -> LeastState {
        let Found { least, left_out } =
            self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let is_certain = match (&least, left_out) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(least), Some(left_out)) => least.events_count < left_out,
        };
        let least = least.map(|least| {
            let mut indices = least.indices;
            indices.resize(chains_count.max(indices.len()), 0);
            indices
        });
        LeastState { least, is_certain }
    }
}

impl Debug for Best {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Best").field("found", &self.found).finish_non_exhaustive()
    }
}
