//! Fast enumeration of states, chain by chain.
//!
//! The chains get their numbers of events one after the other, in a fixed order. While some of them
//! have one, each other chain has a *range*: the numbers that are consistent with all of those,
//! from the greatest of their low entries to the least of their high entries. Every number in a
//! range is one that some state has, so there are no dead ends, no tests and no backtracking: a
//! node of the enumeration is a maximum and a minimum of two rows.
//!
//! The last chain is not stepped through: its range is a [run](Visitor::run) of states that differ
//! in one number. For the last two chains, a [`Pair`], only four numbers of the rows matter, and
//! the number of states of a pair is known in closed form. The chains with the widest ranges come
//! last, so most states are in few runs.
//!
//! A [`Plan`] holds the tables of the states within bounds. Up to 16 chains that vary, each with up
//! to 65 535 events within the bounds, have rows of 16-bit numbers, which fit into one vector
//! register each; beyond that rows are as wide as need be.
//!
//! Each state within the bounds is visited once. The order is fixed, but not lexical. On several
//! threads ([`Plan::gather`]) what visitors gather is joined in that order, so the result does not
//! depend on the number of threads.
//!
//! Costs less than a step per state: one per run, if the visitor does no more. Memory is twice the
//! clocks within the bounds and the square of the chains, whatever the number of states. Intervals
//! of states are Chang and Garg's (2015); enumeration by ranges is our own.

mod plan;

use std::ops::{ControlFlow, Sub};

use reweave_base::Id;
use reweave_order::poset::ChainId;

pub use plan::{Least, Pair, Plan, least};

/// What is done with the states of an enumeration.
///
/// Its functions are called once per node; mark them `#[inline(always)]`, so that they are compiled
/// with the vector instructions of the enumeration.
pub trait Visitor {
    /// What is known of the chains that have their numbers.
    type Acc: Copy;

    /// What is known once `chain`, too, has a number of events. Each chain but the last takes a
    /// step again whenever its number, or that of a chain before it, changes.
    fn step(&mut self, acc: Self::Acc, chain: ChainId, index: u32) -> Self::Acc;

    /// The states in which the last chain has run `low` to `high` events, both included, and the
    /// others what they took steps for. A break ends the enumeration.
    fn run(&mut self, acc: Self::Acc, low: u32, high: u32) -> ControlFlow<()>;

    /// The states in which the last two chains are in `pair`: a step and a run for each row, unless
    /// the visitor knows better.
    #[inline(always)]
    fn pair(&mut self, acc: Self::Acc, pair: &Pair<'_>) -> ControlFlow<()> {
        for (index, low, high) in pair.runs() {
            let acc = self.step(acc, pair.chain(), index);
            self.run(acc, low, high)?;
        }
        ControlFlow::Continue(())
    }
}

/// What visitors of different parts of an enumeration gather, to be joined.
pub trait Join: Visitor {
    /// Adds what another one, which started with nothing, gathered of later states.
    fn join(&mut self, later: Self);
}

/// When to end an enumeration early.
#[derive(Clone, Copy, Default)]
pub struct Limits<'a> {
    /// The most states to visit.
    pub states: Option<u64>,
    /// Asked about once in a million states, or a run if that is longer: whether to stop.
    pub stop: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Limits<'_> {
    fn says_stop(&self) -> bool {
        self.stop.is_some_and(|stop| stop())
    }
}

/// Why an enumeration ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyEnd {
    /// The visitor wanted no more.
    Visitor,
    /// As many states as allowed were visited, and there are more.
    States,
    /// It was asked to stop.
    Stop,
}

/// Calls a function for each state.
#[derive(Clone, Debug)]
pub struct EachState<F> {
    state: Vec<u32>,
    /// The last chain; none if there are no chains.
    last: Option<usize>,
    visit: F,
}

impl<F: FnMut(&[u32]) -> ControlFlow<()>> EachState<F> {
    /// For enumerations of `plan`.
    pub fn new(plan: &Plan, visit: F) -> Self {
        let last = plan.last().map(Id::index);
        Self { state: plan.bounds().least.clone(), last, visit }
    }

    /// The function.
    pub fn into_inner(self) -> F {
        self.visit
    }
}

impl<F: FnMut(&[u32]) -> ControlFlow<()>> Visitor for EachState<F> {
    type Acc = ();

    #[inline(always)]
    fn step(&mut self, (): (), chain: ChainId, index: u32) {
        self.state[chain.index()] = index;
    }

    #[inline(always)]
    fn run(&mut self, (): (), low: u32, high: u32) -> ControlFlow<()> {
        let Some(last) = self.last else { return (self.visit)(&self.state) };
        for index in low..=high {
            self.state[last] = index;
            (self.visit)(&self.state)?;
        }
        ControlFlow::Continue(())
    }
}

/// Counts states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many there were.
    pub states: u128,
}

impl Visitor for Count {
    type Acc = ();

    #[inline(always)]
    fn step(&mut self, (): (), _: ChainId, _: u32) {}

    #[inline(always)]
    fn run(&mut self, (): (), low: u32, high: u32) -> ControlFlow<()> {
        self.states += u128::from(high - low) + 1;
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn pair(&mut self, (): (), pair: &Pair<'_>) -> ControlFlow<()> {
        self.states += u128::from(pair.states_count());
        ControlFlow::Continue(())
    }
}

impl Join for Count {
    fn join(&mut self, later: Self) {
        self.states += later.states;
    }
}

/// How many states an additive predicate compares at once.
const LANES: usize = 16;

/// Whether a sum, of one value of each chain, is at least a threshold.
///
/// Each state is evaluated, sixteen at once: along a run all values but the last chain's are the
/// same, so what is missing in their sum is compared with sixteen values of the last chain, and
/// hits are counted lane by lane.
#[derive(Clone, Debug)]
pub struct Additive {
    /// For each chain, its value after 0, 1, … events.
    pub values: Vec<Vec<i64>>,
    /// The least sum that meets the predicate.
    pub threshold: i64,
}

impl Additive {
    /// How many states of `plan` meet it, evaluated one after the other on this thread.
    ///
    /// # Errors
    /// How many of those visited, and why not all were.
    ///
    /// # Panics
    /// If a chain has fewer values than numbers of events.
    pub fn count(&self, plan: &Plan, limits: &Limits<'_>) -> Result<u64, (u64, EarlyEnd)> {
        self.count_by(plan, limits, false)
    }

    /// As [`count`](Self::count), on the current thread pool.
    ///
    /// # Errors
    /// How many of those visited, and why not all were.
    ///
    /// # Panics
    /// If a chain has fewer values than numbers of events.
    pub fn count_split(&self, plan: &Plan, limits: &Limits<'_>) -> Result<u64, (u64, EarlyEnd)> {
        self.count_by(plan, limits, true)
    }

    /// Counts with values of the fewest bits in which no sum overflows.
    fn count_by(
        &self,
        plan: &Plan,
        limits: &Limits<'_>,
        is_parallel: bool,
    ) -> Result<u64, (u64, EarlyEnd)> {
        let bounds = plan.bounds();
        assert_eq!(self.values.len(), bounds.least.len(), "each chain has values");
        if plan.is_empty() {
            return Ok(0);
        }
        let ranges = bounds.least.iter().zip(&bounds.greatest);
        let ranges = ranges.map(|(&least, &greatest)| least as usize..=greatest as usize);
        let mut sums = Sums { base: Vec::new(), top: 0, threshold: i128::from(self.threshold) };
        for (values, range) in self.values.iter().zip(ranges) {
            let values = values[range].iter().map(|&value| i128::from(value));
            let least = values.clone().min().unwrap_or(0);
            sums.top += values.clone().max().unwrap_or(0) - least;
            sums.threshold -= least;
            sums.base.push(values.map(|value| value - least).collect());
        }
        // All sums are from 0 to the top, so a threshold beyond is as good as one next to them.
        sums.threshold = sums.threshold.clamp(0, sums.top + 1);
        if sums.top < i128::from(i16::MAX) {
            Values::new(&sums, plan, |value| value as i16).count(plan, limits, is_parallel)
        } else if sums.top < i128::from(i32::MAX) {
            Values::new(&sums, plan, |value| value as i32).count(plan, limits, is_parallel)
        } else {
            Values::new(&sums, plan, |value| value).count(plan, limits, is_parallel)
        }
    }
}

/// The values within bounds, those of each chain less the least of them.
struct Sums {
    base: Vec<Vec<i128>>,
    top: i128,
    threshold: i128,
}

/// A number to be added and compared.
trait Lane: Copy + Default + Ord + Sub<Output = Self> + Send + Sync {}

impl<L: Copy + Default + Ord + Sub<Output = Self> + Send + Sync> Lane for L {}

/// The values as lanes.
struct Values<L> {
    /// For each chain, from its least number of events on.
    chains: Vec<Chain<L>>,
    last: usize,
    threshold: L,
}

struct Chain<L> {
    least: u32,
    /// Padded, so that sixteen can be loaded from any of them on.
    values: Vec<L>,
}

impl<L: Lane> Values<L> {
    fn new(sums: &Sums, plan: &Plan, narrow: impl Fn(i128) -> L) -> Self {
        let chains = sums.base.iter().zip(&plan.bounds().least).map(|(values, &least)| {
            let padding = std::iter::repeat_n(&0, LANES);
            Chain { least, values: values.iter().chain(padding).map(|&v| narrow(v)).collect() }
        });
        let last = plan.last().map_or(0, Id::index);
        Self { chains: chains.collect(), last, threshold: narrow(sums.threshold) }
    }

    fn count(
        &self,
        plan: &Plan,
        limits: &Limits<'_>,
        is_parallel: bool,
    ) -> Result<u64, (u64, EarlyEnd)> {
        let mut hits = Hits::new(self);
        let visited = if is_parallel {
            plan.gather(&hits, self.threshold, limits)
        } else {
            match plan.visit(&mut hits, self.threshold, limits) {
                Ok(()) => Ok(hits),
                Err(ended) => Err((hits, ended)),
            }
        };
        visited.map(|hits| hits.total()).map_err(|(hits, ended)| (hits.total(), ended))
    }
}

/// How many states met the predicate. What is known of the chains so far is how much is missing in
/// the sum.
struct Hits<'a, L> {
    values: &'a Values<L>,
    /// Hits of each lane since the last flush.
    lanes: [u16; LANES],
    /// How many blocks can be counted until a lane may overflow.
    blocks_left: u32,
    flushed: u64,
}

impl<L> Clone for Hits<'_, L> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, L: Lane> Hits<'a, L> {
    const fn new(values: &'a Values<L>) -> Self {
        Self { values, lanes: [0; LANES], blocks_left: u16::MAX as u32, flushed: 0 }
    }

    fn total(&self) -> u64 {
        self.flushed + self.lanes.iter().map(|&hits| u64::from(hits)).sum::<u64>()
    }

    #[cold]
    fn flush(&mut self) {
        *self = Self { flushed: self.total(), ..Self::new(self.values) };
    }
}

impl<L: Lane> Visitor for Hits<'_, L> {
    type Acc = L;

    #[inline(always)]
    fn step(&mut self, missing: L, chain: ChainId, index: u32) -> L {
        let chain = &self.values.chains[chain.index()];
        missing - chain.values[(index - chain.least) as usize]
    }

    #[inline(always)]
    fn run(&mut self, missing: L, low: u32, high: u32) -> ControlFlow<()> {
        let Some(chain) = self.values.chains.get(self.values.last) else {
            // Without chains there is one state, and nothing to make up for what is missing.
            self.flushed += u64::from(missing <= L::default());
            return ControlFlow::Continue(());
        };
        let values = &chain.values[(low - chain.least) as usize..=(high - chain.least) as usize];
        self.flushed += values.iter().map(|&value| u64::from(value >= missing)).sum::<u64>();
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn pair(&mut self, missing: L, pair: &Pair<'_>) -> ControlFlow<()> {
        let blocks_max = u64::from(pair.rows_count()) * u64::from(pair.run_max() / 16 + 1);
        if blocks_max > u64::from(self.blocks_left) {
            self.flush();
            if blocks_max > u64::from(self.blocks_left) {
                for (index, low, high) in pair.runs() {
                    let missing = self.step(missing, pair.chain(), index);
                    self.run(missing, low, high)?;
                }
                return ControlFlow::Continue(());
            }
        }
        self.blocks_left -= blocks_max as u32;
        let last = &self.values.chains[self.values.last];
        let second = &self.values.chains[pair.chain().index()];
        let first = (pair.first_row() - second.least) as usize;
        let mut lanes = self.lanes;
        for ((_, low, high), &value) in pair.runs().zip(&second.values[first..]) {
            let missing = missing - value;
            let mut start = (low - last.least) as usize;
            let mut left = high - low + 1;
            while left > LANES as u32 {
                add_block(&mut lanes, &last.values[start..], missing, LANES as u32);
                start += LANES;
                // Hidden from the compiler, which would vectorize across blocks: sixteen times as
                // many loads.
                left = std::hint::black_box(left - LANES as u32);
            }
            add_block(&mut lanes, &last.values[start..], missing, left);
        }
        self.lanes = lanes;
        ControlFlow::Continue(())
    }
}

/// Ones, then zeros: the sixteen from the right place on mask a block of fewer values.
const MASKS: [u16; 2 * LANES] = {
    let mut masks = [0; 2 * LANES];
    let mut lane = 0;
    while lane < LANES {
        masks[lane] = 1;
        lane += 1;
    }
    masks
};

/// Adds one to the lanes of those of the next `count` values that are as much as is missing.
#[inline(always)]
fn add_block<L: Lane>(lanes: &mut [u16; LANES], values: &[L], missing: L, count: u32) {
    let block = values.first_chunk::<LANES>().expect("there are as many at the end");
    let mask = &MASKS[LANES - count as usize..];
    let mask = mask.first_chunk::<LANES>().expect("a block has at least one value");
    for lane in 0..LANES {
        lanes[lane] += mask[lane] * u16::from(block[lane] >= missing);
    }
}

impl<L: Lane> Join for Hits<'_, L> {
    fn join(&mut self, later: Self) {
        self.flushed += later.total();
    }
}
