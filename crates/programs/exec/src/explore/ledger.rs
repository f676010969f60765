//! What an exploration has seen and found, and how much more it may.

use std::collections::BTreeMap;

use reweave_base::FxHashSet;

use super::{Exploration, Limits, WORDS_MAX, WORDS_PER_STATE};
use crate::machine::Machine;
use crate::outcome::{Ending, Fault, Outcome};

/// How many words all witnesses together may take.
const WITNESSES_MAX: usize = 1 << 24;

/// How many steps are taken between two looks at whether to go on.
const STEPS_BETWEEN_LOOKS: u64 = 1 << 10;

/// The account of an exploration whose witnesses are made of `E`.
pub(crate) struct Ledger<'c, E> {
    limits: Limits,
    goes_on: &'c dyn Fn() -> bool,
    steps_since_look: u64,
    /// How many words the witnesses take.
    told: usize,
    /// How many words the states on the stack take.
    words: usize,
    /// How many words all states took that were kept, small ones counted as usual ones, and how
    /// many steps.
    work: u64,
    /// The states on the path.
    open: FxHashSet<u128>,
    visited: FxHashSet<u128>,
    outcomes: BTreeMap<Outcome, Vec<E>>,
    faults: BTreeMap<Fault, Vec<E>>,
    is_endless: bool,
    complete: bool,
}

impl<'c, E: Clone> Ledger<'c, E> {
    pub(crate) fn new(limits: &Limits, goes_on: &'c dyn Fn() -> bool) -> Self {
        Self {
            limits: *limits,
            goes_on,
            steps_since_look: 0,
            told: 0,
            words: 0,
            work: 0,
            open: FxHashSet::default(),
            visited: FxHashSet::default(),
            outcomes: BTreeMap::new(),
            faults: BTreeMap::new(),
            is_endless: false,
            complete: true,
        }
    }

    pub(crate) fn finish<W: From<Vec<E>>>(self) -> Exploration<W> {
        Exploration {
            outcomes: self.outcomes.into_iter().map(|(it, witness)| (it, witness.into())).collect(),
            faults: self.faults.into_iter().map(|(it, witness)| (it, witness.into())).collect(),
            is_endless: self.is_endless,
            states_count: self.visited.len() as u64,
            complete: self.complete,
        }
    }

    /// Counts a step.
    pub(crate) const fn step(&mut self) {
        self.steps_since_look += 1;
        self.work += 1;
    }

    /// Whether the exploration goes on, as far as whoever asked for it is concerned.
    pub(crate) fn goes_on(&mut self) -> bool {
        if self.steps_since_look <= STEPS_BETWEEN_LOOKS {
            return true;
        }
        self.steps_since_look = 0;
        let goes_on = (self.goes_on)();
        self.complete &= goes_on;
        goes_on
    }

    /// Whether a run of so many steps is as long as it may be.
    pub(crate) const fn is_long(&self, steps_count: u64) -> bool {
        steps_count >= self.limits.steps_max
    }

    /// Says that something is left out.
    pub(crate) const fn cut_short(&mut self) {
        self.complete = false;
    }

    /// Remembers the faults of `machine` after the first `known_count`, which `path` leads to.
    pub(crate) fn note_faults(&mut self, machine: &Machine<'_>, known_count: usize, path: &[E]) {
        for fault in &machine.faults[known_count..] {
            if !self.faults.contains_key(fault) && self.has_room(path, 0) {
                self.faults.insert(fault.clone(), path.to_vec());
            }
        }
    }

    /// Remembers how the run ended that `path` leads to.
    pub(crate) fn note_outcome(&mut self, machine: &Machine<'_>, ending: Ending, path: &[E]) {
        let outcome = Outcome::new(machine.code, &machine.memory, ending, &machine.faults);
        if !self.outcomes.contains_key(&outcome) && self.has_room(path, outcome.result.len()) {
            self.outcomes.insert(outcome, path.to_vec());
        }
    }

    /// Whether there is room for `path`, and `words` besides, among what is told.
    fn has_room(&mut self, path: &[E], words: usize) -> bool {
        self.told += path.len() * size_of::<E>().div_ceil(size_of::<u64>()) + words;
        self.complete &= self.told <= WITNESSES_MAX;
        self.told <= WITNESSES_MAX
    }

    /// Whether the state `digest` is on the path, so that a loop is closed.
    pub(crate) fn closes_loop(&mut self, digest: u128) -> bool {
        let is_open = self.open.contains(&digest);
        self.is_endless |= is_open;
        is_open
    }

    /// Whether the state `digest` of `machine` was not seen before, and there is room for it.
    pub(crate) fn is_new(&mut self, machine: &Machine<'_>, digest: u128) -> bool {
        if self.visited.contains(&digest) {
            return false;
        }
        self.work += (machine.words() as u64).max(WORDS_PER_STATE);
        if self.work > self.limits.states_max.saturating_mul(WORDS_PER_STATE) {
            self.complete = false;
            return false;
        }
        self.visited.insert(digest)
    }

    /// Puts the state `digest` on the path.
    pub(crate) fn open(&mut self, digest: u128) {
        self.open.insert(digest);
    }

    /// Takes the state `digest` off the path.
    pub(crate) fn close(&mut self, digest: u128) {
        self.open.remove(&digest);
    }

    /// Whether there is room for a state of so many words on the stack, which it then takes.
    pub(crate) const fn takes(&mut self, words: usize) -> bool {
        if self.words + words > WORDS_MAX {
            self.complete = false;
            return false;
        }
        self.words += words;
        true
    }

    /// Gives back what a state on the stack took.
    pub(crate) const fn gives_back(&mut self, words: usize) {
        self.words -= words;
    }
}
