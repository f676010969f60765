//! The states that an event brings, and how they are gone through.
//!
//! A state is in an event's interval if the event is the last of those it holds, by the order in
//! which they were inserted. Such states hold the event's clock, and are held by all that was
//! inserted up to the event. An interval has its rows with it, so it can be searched at any time
//! and on any thread, whatever was inserted since.
//!
//! [`Walk`] goes through it in lexical order, at the cost of the square of the threads a state,
//! and keeps nothing but the state at hand (Algorithm 2 of Chang and Garg, mended as
//! [`lexical`](crate::lexical) is).

use std::sync::Arc;

use reweave_base::{Id, IndexVec};
use reweave_order::poset::ChainId;

use super::rows::{Line, Row};

/// The states whose last event is a certain one.
#[derive(Debug)]
pub struct Interval<L> {
    pub(super) event: Option<(ChainId, u32)>,
    pub(super) least: Vec<u32>,
    pub(super) greatest: Vec<u32>,
    pub(super) lines: IndexVec<ChainId, Arc<Line<L>>>,
    pub(super) events_min: u64,
    pub(super) is_whole: bool,
}

impl<L> Interval<L> {
    /// The empty state alone, which is before any event.
    pub(super) fn before_all() -> Self {
        Self {
            event: None,
            least: Vec::new(),
            greatest: Vec::new(),
            lines: IndexVec::new(),
            events_min: 0,
            is_whole: true,
        }
    }

    /// The event, as its thread and its index there; none for the empty state.
    #[must_use]
    pub const fn event(&self) -> Option<(ChainId, u32)> {
        self.event
    }

    /// The least state: how many events of each thread.
    #[must_use]
    pub fn least(&self) -> &[u32] {
        &self.least
    }

    /// The greatest state.
    #[must_use]
    pub fn greatest(&self) -> &[u32] {
        &self.greatest
    }

    /// No state of the interval has fewer events, those that were let go included.
    #[must_use]
    pub const fn events_min(&self) -> u64 {
        self.events_min
    }

    /// Whether these are all the states of the event: no rows of them were let go before.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The clock of event `index` of `chain` and its label, if it is there.
    #[must_use]
    pub fn row(&self, chain: ChainId, index: u32) -> Option<(&[u32], &L)> {
        self.held(chain, index).map(|row| (&*row.clock, &row.label))
    }

    /// Its states in lexical order, the first thread most significant.
    #[must_use]
    pub fn walk(&self) -> Walk<'_, L> {
        let chains = (0..self.least.len()).map(ChainId::from_index);
        let rows = chains.zip(&self.least).map(|(chain, &index)| self.held(chain, index));
        Walk { interval: self, indices: self.least.clone(), rows: rows.collect() }
    }

    fn held(&self, chain: ChainId, index: u32) -> Option<&Row<L>> {
        self.lines.get(chain)?.row(index)
    }
}

/// A state of an interval, on the way to the next.
#[derive(Debug)]
pub struct Walk<'a, L> {
    interval: &'a Interval<L>,
    indices: Vec<u32>,
    /// The last event of each thread.
    rows: Vec<Option<&'a Row<L>>>,
}

impl<'a, L> Walk<'a, L> {
    /// The state at hand.
    #[must_use]
    pub fn state(&self) -> State<'_, L> {
        State { indices: &self.indices, rows: &self.rows }
    }

    /// Goes on to the next state; false if this is the last.
    pub fn advance(&mut self) -> bool {
        let Some((chain, row)) = (0..self.indices.len()).rev().find_map(|at| self.next(at)) else {
            return false;
        };
        self.indices[chain] += 1;
        self.rows[chain] = Some(row);
        for (right, &least) in self.interval.least.iter().enumerate().skip(chain + 1) {
            let needed = self.rows[..=chain].iter().flatten().map(|row| entry(&row.clock, right));
            let index = needed.fold(least, u32::max);
            if self.indices[right] != index {
                self.indices[right] = index;
                self.rows[right] = self.interval.held(ChainId::from_index(right), index);
            }
        }
        true
    }

    /// The next event of thread `at`, if it is within bounds and nothing that comes before it is
    /// missing on the threads to the left.
    fn next(&self, at: usize) -> Option<(usize, &'a Row<L>)> {
        if self.indices[at] >= self.interval.greatest[at] {
            return None;
        }
        let row = self.interval.held(ChainId::from_index(at), self.indices[at] + 1)?;
        let mut needed = row.clock.iter().zip(&self.indices[..at]);
        needed.all(|(needed, held)| needed <= held).then_some((at, row))
    }
}

/// The number that a clock has for thread `at`.
fn entry(clock: &[u32], at: usize) -> u32 {
    clock.get(at).copied().unwrap_or(0)
}

/// A consistent state of the events so far.
#[derive(Debug)]
pub struct State<'a, L> {
    indices: &'a [u32],
    rows: &'a [Option<&'a Row<L>>],
}

impl<'a, L> State<'a, L> {
    /// How many events each thread has run; of threads that are not listed, none.
    #[must_use]
    pub const fn indices(&self) -> &'a [u32] {
        self.indices
    }

    /// How many events `chain` has run.
    #[must_use]
    pub fn index(&self, chain: ChainId) -> u32 {
        entry(self.indices, chain.index())
    }

    /// What the last event of `chain` is labelled with, if it has run any.
    #[must_use]
    pub fn label(&self, chain: ChainId) -> Option<&'a L> {
        self.row(chain).map(|row| &row.label)
    }

    /// The clock of the last event of `chain`, empty if it has run none. Numbers that are not there
    /// are zero.
    #[must_use]
    pub fn clock(&self, chain: ChainId) -> &'a [u32] {
        self.row(chain).map_or(&[], |row| &row.clock)
    }

    /// The last event of each thread that has run any, by its label.
    pub fn frontier(&self) -> impl Iterator<Item = (ChainId, &'a L)> + use<'a, L> {
        let rows = self.rows.iter().enumerate();
        rows.filter_map(|(at, row)| row.map(|row| (ChainId::from_index(at), &row.label)))
    }

    /// How many events it has in all.
    #[must_use]
    pub fn events_count(&self) -> u64 {
        self.indices.iter().map(|&index| u64::from(index)).sum()
    }

    fn row(&self, chain: ChainId) -> Option<&'a Row<L>> {
        self.rows.get(chain.index()).copied().flatten()
    }
}
