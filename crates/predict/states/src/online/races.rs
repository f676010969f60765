//! On which variables are there races: conflicting accesses of two threads, neither before the
//! other?
//!
//! Events are labelled with the accesses they stand for: one, or all of a thread between two of its
//! synchronisations, which share a clock. Of two events that are concurrent the one inserted later
//! finds the other, in one of two ways that find the same:
//!
//! - by states, as the paper does: in some state of its interval the other is the last event of its
//!   thread. Last events of two threads need not be concurrent, so their clocks are compared;
//! - by pairs: the events of another thread that are concurrent with it are those inserted before
//!   it that its clock does not hold. No states are gone through.
//!
//! By states costs as many states as there are; by pairs, as many events as are concurrent. Either
//! looks at no more than the detector's limit for an interval. Follows Algorithms 5 and 6 of Chang
//! and Garg (2015), in which an event is also compared with itself.

use std::collections::BTreeSet;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Mutex, PoisonError};

use reweave_base::Id;
use reweave_order::access;
use reweave_order::poset::ChainId;
use reweave_trace::{Op, VarId};

use super::{Budget, End, Interval, Search, lock};

/// An access to a shared variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// Which variable.
    pub var: VarId,
    /// What it conflicts with: see [`access`].
    class: usize,
}

impl Access {
    /// The access that `op` is, if it is one.
    #[must_use]
    pub fn new(op: Op) -> Option<Self> {
        let var = op.var()?;
        Some(Self { var, class: access::class(op) })
    }

    /// Whether the two race if they are concurrent.
    #[must_use]
    pub fn conflicts_with(self, other: Self) -> bool {
        self.var == other.var && access::conflict(self.class, other.class)
    }
}

/// What stands for `operations` of a thread with one clock: of each variable a write, or else a
/// read; of those that are atomic and of the others.
pub fn collected(operations: impl IntoIterator<Item = Op>) -> Box<[Access]> {
    let accesses = operations.into_iter().filter_map(|op| Some((op, Access::new(op)?)));
    let mut accesses: Vec<(Op, Access)> = accesses.collect();
    accesses.sort_by_key(|(op, access)| (access.var, op.is_atomic(), !op.is_write()));
    accesses.dedup_by_key(|(op, access)| (access.var, op.is_atomic()));
    accesses.into_iter().map(|(_, access)| access).collect()
}

/// How races are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In every state, among the last events of the threads.
    States,
    /// Among the events that are concurrent with a new one.
    Pairs,
}

/// Looks for variables that are raced on.
pub struct Races {
    form: Form,
    on_found: Option<OnFound>,
    racy: Mutex<BTreeSet<VarId>>,
}

type OnFound = Box<dyn Fn(VarId) + Send + Sync>;

impl Races {
    /// Looks for races in this way.
    #[must_use]
    pub const fn new(form: Form) -> Self {
        Self { form, on_found: None, racy: Mutex::new(BTreeSet::new()) }
    }

    /// Calls `on_found` with each variable when the first race on it is found, on the thread that
    /// found it.
    #[must_use]
    pub fn on_found(self, on_found: impl Fn(VarId) + Send + Sync + 'static) -> Self {
        Self { on_found: Some(Box::new(on_found)), ..self }
    }

    /// The variables on which races were found so far.
    #[must_use]
    pub fn so_far(&self) -> BTreeSet<VarId> {
        lock(&self.racy).clone()
    }

    /// Notes the variables on which two concurrent events race.
    fn compare(&self, own: &[Access], other: &[Access]) {
        for access in own {
            let mut conflicting = other.iter().filter(|other| access.conflicts_with(**other));
            if conflicting.next().is_none() {
                continue;
            }
            let is_new = lock(&self.racy).insert(access.var);
            if let (true, Some(on_found)) = (is_new, &self.on_found) {
                on_found(access.var);
            }
        }
    }

    /// Algorithm 6, for every state of the interval of event `index` of `chain`.
    fn by_states(
        &self,
        interval: &Interval<Box<[Access]>>,
        (chain, index): (ChainId, u32),
        budget: &mut Budget<'_>,
    ) -> End {
        let mut walk = interval.walk();
        loop {
            if !budget.spend() {
                return End::Short;
            }
            let state = walk.state();
            let own = state.label(chain).map_or(&[][..], |own| own);
            for (other, accesses) in state.frontier().filter(|&(other, _)| other != chain) {
                let entry = |clock: &[u32], at: ChainId| clock.get(at.index()).copied();
                let knows_it = entry(state.clock(chain), other).unwrap_or(0) >= state.index(other);
                let is_known = entry(state.clock(other), chain).unwrap_or(0) >= index;
                if !knows_it && !is_known {
                    self.compare(own, accesses);
                }
            }
            if !walk.advance() {
                return End::Whole;
            }
        }
    }

    /// Every event that was inserted before event `index` of `chain` and is not in its clock.
    fn by_pairs(
        &self,
        interval: &Interval<Box<[Access]>>,
        (chain, index): (ChainId, u32),
        budget: &mut Budget<'_>,
    ) -> End {
        let Some((clock, own)) = interval.row(chain, index) else { return End::Whole };
        for (at, &last) in interval.greatest().iter().enumerate() {
            let other = ChainId::from_index(at);
            let known = clock.get(at).copied().unwrap_or(0);
            // Nothing of its own thread is after it, so there is nothing to compare there.
            for number in (known..last).map(|before| before + 1) {
                let Some((_, accesses)) = interval.row(other, number) else { continue };
                if !budget.spend() {
                    return End::Short;
                }
                self.compare(own, accesses);
            }
        }
        End::Whole
    }
}

impl Search for Races {
    type Label = Box<[Access]>;
    type Answer = BTreeSet<VarId>;

    fn search(&self, interval: &Interval<Box<[Access]>>, budget: &mut Budget<'_>) -> End {
        let Some(event) = interval.event() else { return End::Whole };
        let is_access = interval.row(event.0, event.1).is_some_and(|(_, own)| !own.is_empty());
        if !is_access {
            return End::Passed;
        }
        match self.form {
            Form::States => self.by_states(interval, event, budget),
            Form::Pairs => self.by_pairs(interval, event, budget),
        }
    }

    fn answer(self, _: usize) -> BTreeSet<VarId> {
        self.racy.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Debug for Races {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { form, racy, .. } = self;
        f.debug_struct("Races").field("form", form).field("racy", racy).finish_non_exhaustive()
    }
}
