//! What a detector can look for: the least state that meets a predicate, and variables with races.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use reweave_base::Id;
use reweave_order::access;
use reweave_order::poset::ChainId;
use reweave_trace::{Op, VarId};

use super::{Budget, End, Interval, Search, State, lock};

/// Looks for the least state that meets a predicate: the one with the fewest events, and of those
/// the first in lexical order, the first thread most significant.
///
/// The answer depends neither on the number of workers nor on when they get to work and, without
/// limits, not on the order of insertion either: an interval is skipped only if all its states have
/// more events than one that was found.
///
/// Costs the square of the threads for each state, and the predicate where the state would be the
/// least so far.
#[derive(Debug)]
pub struct Least<L, F> {
    is_met: F,
    best: Mutex<Best>,
    label: PhantomData<fn() -> L>,
}

/// The least state that meets a predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeastState {
    /// How many events of each thread it has, if there is one.
    pub least: Option<Vec<u32>>,
    /// Whether nothing was left out that could be less, or meet the predicate at all.
    pub is_certain: bool,
}

/// The least state so far, shared by all who search.
#[derive(Debug, Default)]
struct Best {
    least: Option<Candidate>,
    /// No state that was left out has fewer events, if any was.
    left_out: Option<u64>,
}

/// A state that meets the predicate. Fewer events come first, then what is first in lexical order.
/// Zeros at the end are left out, so that states compare the same whenever they were found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    events_count: u64,
    indices: Vec<u32>,
}

fn trimmed(indices: &[u32]) -> &[u32] {
    let last = indices.iter().rposition(|&index| index > 0);
    &indices[..last.map_or(0, |last| last + 1)]
}

impl<L, F: Fn(&State<'_, L>) -> bool> Least<L, F> {
    /// Looks for the least state of which `is_met` is true. A thread that is not in a state has
    /// done nothing yet.
    pub fn new(is_met: F) -> Self {
        Self { is_met, best: Mutex::default(), label: PhantomData }
    }
}

impl<L, F> Search for Least<L, F>
where
    L: Send + Sync + 'static,
    F: Fn(&State<'_, L>) -> bool + Send + Sync + 'static,
{
    type Label = L;
    type Answer = LeastState;

    fn search(&self, interval: &Interval<L>, budget: &mut Budget<'_>) -> End {
        let mut least = lock(&self.best).least.clone();
        if least.as_ref().is_some_and(|least| least.events_count < interval.events_min()) {
            return End::Skipped;
        }
        let mut is_new = false;
        let mut states = interval.states();
        let end = loop {
            if !budget.spend() {
                break End::Short;
            }
            let state = states.state();
            let is_less = least.as_ref().is_none_or(|least| {
                let own = (state.events_count(), trimmed(state.indices()));
                own < (least.events_count, &*least.indices)
            });
            if is_less && (self.is_met)(&state) {
                let indices = trimmed(state.indices()).to_vec();
                least = Some(Candidate { events_count: state.events_count(), indices });
                is_new = true;
            }
            if !states.advance() {
                break End::Whole;
            }
        };
        let mut best = lock(&self.best);
        if end == End::Short || !interval.is_whole() {
            let left_out = best.left_out.unwrap_or(u64::MAX);
            best.left_out = Some(left_out.min(interval.events_min()));
        }
        // Another thread may have found a lesser one meanwhile.
        if is_new && (best.least.is_none() || least < best.least) {
            best.least = least;
        }
        end
    }

    fn answer(self, chains_count: usize) -> LeastState {
        let Best { least, left_out } =
            self.best.into_inner().unwrap_or_else(PoisonError::into_inner);
        let is_certain = match (&least, left_out) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(least), Some(left_out)) => least.events_count < left_out,
        };
        let least = least.map(|mut least| {
            least.indices.resize(chains_count.max(least.indices.len()), 0);
            least.indices
        });
        LeastState { least, is_certain }
    }
}

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

/// The accesses that stand for `operations` of a thread with one clock: of each variable a write,
/// or else a read; of the atomic ones and of the others.
pub fn collected(operations: impl IntoIterator<Item = Op>) -> Box<[Access]> {
    let accesses = operations.into_iter().filter_map(|op| Some((op, Access::new(op)?)));
    let mut accesses: Vec<(Op, Access)> = accesses.collect();
    accesses.sort_by_key(|(op, access)| (access.var, op.is_atomic(), !op.is_write()));
    accesses.dedup_by_key(|(op, access)| (access.var, op.is_atomic()));
    accesses.into_iter().map(|(_, access)| access).collect()
}

/// How races are looked for. Both ways find the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As in the paper: in every state of a new event's interval, among the last events of the
    /// threads. Last events of two threads need not be concurrent, so their clocks are compared.
    States,
    /// Among the events that are concurrent with a new one: those inserted before it that its clock
    /// does not include. No states are enumerated.
    Pairs,
}

/// Looks for variables with races: conflicting accesses of two threads, neither of which happens
/// before the other.
///
/// Events are labelled with the accesses they stand for: one, or all of a thread between two of its
/// synchronizations, which share a clock. Of two concurrent events the one inserted later finds the
/// other.
///
/// [`Form::States`] costs as many states as there are, [`Form::Pairs`] as many events as are
/// concurrent; either stops at the detector's limit for an interval. Follows Algorithms 5 and 6 of
/// Chang and Garg (2015), in which an event is also compared with itself.
#[derive(Debug)]
pub struct Races {
    form: Form,
    racy: Mutex<BTreeSet<VarId>>,
}

impl Races {
    /// Looks for races by states or by pairs.
    #[must_use]
    pub const fn new(form: Form) -> Self {
        Self { form, racy: Mutex::new(BTreeSet::new()) }
    }

    /// Notes the variables on which two concurrent events race.
    fn compare(&self, own: &[Access], other: &[Access]) {
        for access in own {
            if other.iter().any(|other| access.conflicts_with(*other)) {
                lock(&self.racy).insert(access.var);
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
        let Some((clock, own)) = interval.labelled(chain, index) else { return End::Whole };
        let entry = |clock: &[u32], at: ChainId| clock.get(at.index()).copied().unwrap_or(0);
        let mut states = interval.states();
        loop {
            if !budget.spend() {
                return End::Short;
            }
            let state = states.state();
            for (other, others_clock, accesses) in state.frontier() {
                let is_concurrent = entry(clock, other) < state.indices()[other.index()]
                    && entry(others_clock, chain) < index;
                if other != chain && is_concurrent {
                    self.compare(own, accesses);
                }
            }
            if !states.advance() {
                return End::Whole;
            }
        }
    }

    /// Compares event `index` of `chain` with every event inserted before that its clock does not
    /// include.
    fn by_pairs(
        &self,
        interval: &Interval<Box<[Access]>>,
        (chain, index): (ChainId, u32),
        budget: &mut Budget<'_>,
    ) -> End {
        let Some((clock, own)) = interval.labelled(chain, index) else { return End::Whole };
        for (at, &last) in interval.greatest().iter().enumerate() {
            let other = ChainId::from_index(at);
            let known = clock.get(at).copied().unwrap_or(0);
            // Its own thread has no events after it, so nothing is compared there.
            for number in (known..last).map(|before| before + 1) {
                let Some((_, accesses)) = interval.labelled(other, number) else { continue };
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
        let is_access = interval.labelled(event.0, event.1).is_some_and(|(_, own)| !own.is_empty());
        if !is_access {
            return End::Skipped;
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
