//! Predicates on sums: in how many states is the sum of a value of each chain at least so much?
//!
//! Each state is evaluated, sixteen at once: along a run all but the last chain's value is the same,
//! so it is compared with sixteen values of the last chain, and what is found is added up lane by
//! lane. Values are numbers of the fewest bits in which no sum overflows.

use std::ops::{ControlFlow, Sub};

use reweave_base::Id;
use reweave_order::poset::ChainId;

use super::{Halt, Join, Limits, Pair, Plan, Visitor};

/// How many states are compared at once.
const LANES: usize = 16;

/// Whether a sum, of one value of each chain, is at least a threshold.
#[derive(Clone, Debug)]
pub struct Additive {
    /// For each chain, its value after 0, 1, … events.
    pub values: Vec<Vec<i64>>,
    /// The least sum that meets the predicate.
    pub threshold: i64,
}

impl Additive {
    /// How many states of `plan` meet it, looked at one after the other on this thread.
    ///
    /// # Errors
    /// How many of those visited, and why not all were.
    ///
    /// # Panics
    /// If a chain has fewer values than numbers of events.
    pub fn count(&self, plan: &Plan, limits: &Limits<'_>) -> Result<u64, (u64, Halt)> {
        self.dispatch(plan, Sequential { plan, limits })
    }

    /// As [`count`](Self::count), on the threads of the pool that this is called in.
    ///
    /// # Errors
    /// How many of those visited, and why not all were.
    ///
    /// # Panics
    /// If a chain has fewer values than numbers of events.
    pub fn count_split(&self, plan: &Plan, limits: &Limits<'_>) -> Result<u64, (u64, Halt)> {
        self.dispatch(plan, Parallel { plan, limits })
    }

    /// Counts with values of as many bits as are needed.
    fn dispatch(&self, plan: &Plan, how: impl Counting) -> Result<u64, (u64, Halt)> {
        let bounds = plan.bounds();
        assert_eq!(self.values.len(), bounds.least.len(), "each chain has values");
        if plan.is_empty() {
            return Ok(0);
        }
        let windows = bounds.least.iter().zip(&bounds.greatest);
        let windows = windows.map(|(&least, &greatest)| least as usize..=greatest as usize);
        let mut sums = Sums { base: Vec::new(), top: 0, threshold: i128::from(self.threshold) };
        for (values, window) in self.values.iter().zip(windows) {
            let values = values[window].iter().map(|&value| i128::from(value));
            let least = values.clone().min().unwrap_or(0);
            sums.top += values.clone().max().unwrap_or(0) - least;
            sums.threshold -= least;
            sums.base.push(values.map(|value| value - least).collect());
        }
        // All sums are from 0 to the top, and so a threshold need not be further away.
        sums.threshold = sums.threshold.clamp(0, sums.top + 1);
        if sums.top < i128::from(i16::MAX) {
            how.count(&Values::new(&sums, plan, |value| value as i16))
        } else if sums.top < i128::from(i32::MAX) {
            how.count(&Values::new(&sums, plan, |value| value as i32))
        } else {
            how.count(&Values::new(&sums, plan, |value| value))
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
    /// With so many more at the end that sixteen can be looked at from each on.
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
}

/// On one thread or on many.
trait Counting {
    fn count<L: Lane>(self, values: &Values<L>) -> Result<u64, (u64, Halt)>;
}

struct Sequential<'a> {
    plan: &'a Plan,
    limits: &'a Limits<'a>,
}

impl Counting for Sequential<'_> {
    fn count<L: Lane>(self, values: &Values<L>) -> Result<u64, (u64, Halt)> {
        let mut hits = Hits::new(values);
        match self.plan.walk(&mut hits, values.threshold, self.limits) {
            Ok(()) => Ok(hits.total()),
            Err(halt) => Err((hits.total(), halt)),
        }
    }
}

struct Parallel<'a> {
    plan: &'a Plan,
    limits: &'a Limits<'a>,
}

impl Counting for Parallel<'_> {
    fn count<L: Lane>(self, values: &Values<L>) -> Result<u64, (u64, Halt)> {
        let gathered = self.plan.gather(&Hits::new(values), values.threshold, self.limits);
        gathered.map(|hits| hits.total()).map_err(|(hits, halt)| (hits.total(), halt))
    }
}

/// How many states met the predicate. What goes along is what is still missing in the sum.
struct Hits<'a, L> {
    values: &'a Values<L>,
    /// Those of each lane since they were last added to the rest.
    lanes: [u16; LANES],
    /// How many can be added to each lane until then.
    room: u32,
    added: u64,
}

impl<L> Clone for Hits<'_, L> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, L: Lane> Hits<'a, L> {
    const fn new(values: &'a Values<L>) -> Self {
        Self { values, lanes: [0; LANES], room: u16::MAX as u32, added: 0 }
    }

    fn total(&self) -> u64 {
        self.added + self.lanes.iter().map(|&hits| u64::from(hits)).sum::<u64>()
    }

    #[cold]
    fn flush(&mut self) {
        *self = Self { added: self.total(), ..Self::new(self.values) };
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
            self.added += u64::from(missing <= L::default());
            return ControlFlow::Continue(());
        };
        let values = &chain.values[(low - chain.least) as usize..=(high - chain.least) as usize];
        self.added += values.iter().map(|&value| u64::from(value >= missing)).sum::<u64>();
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn pair(&mut self, missing: L, pair: &Pair<'_>) -> ControlFlow<()> {
        let blocks_max = u64::from(pair.rows_count()) * u64::from(pair.run_max() / 16 + 1);
        if blocks_max > u64::from(self.room) {
            self.flush();
            if blocks_max > u64::from(self.room) {
                for (index, low, high) in pair.runs() {
                    let missing = self.step(missing, pair.chain(), index);
                    self.run(missing, low, high)?;
                }
                return ControlFlow::Continue(());
            }
        }
        self.room -= blocks_max as u32;
        let last = &self.values.chains[self.values.last];
        let second = &self.values.chains[pair.chain().index()];
        let first = (pair.rows()[0] - second.least) as usize;
        let mut lanes = self.lanes;
        for ((_, low, high), &value) in pair.runs().zip(&second.values[first..]) {
            let missing = missing - value;
            let mut start = (low - last.least) as usize;
            let mut left = high - low + 1;
            while left > LANES as u32 {
                add_block(&mut lanes, &last.values[start..], missing, LANES as u32);
                start += LANES;
                // Else blocks are compared across, sixteen times as many loads.
                left = std::hint::black_box(left - LANES as u32);
            }
            add_block(&mut lanes, &last.values[start..], missing, left);
        }
        self.lanes = lanes;
        ControlFlow::Continue(())
    }
}

/// Ones, then zeros: from the right place on, a one for each lane that is part of a block.
const PARTS: [u16; 2 * LANES] = {
    let mut parts = [0; 2 * LANES];
    let mut lane = 0;
    while lane < LANES {
        parts[lane] = 1;
        lane += 1;
    }
    parts
};

/// Adds one to the lanes of those of the next `count` values that are as much as is missing.
#[inline(always)]
fn add_block<L: Lane>(lanes: &mut [u16; LANES], values: &[L], missing: L, count: u32) {
    let block = values.first_chunk::<LANES>().expect("there are as many at the end");
    let parts = &PARTS[LANES - count as usize..];
    let parts = parts.first_chunk::<LANES>().expect("a block has at least one value");
    for lane in 0..LANES {
        lanes[lane] += parts[lane] * u16::from(block[lane] >= missing);
    }
}

impl<L: Lane> Join for Hits<'_, L> {
    fn join(&mut self, later: Self) {
        self.added += later.total();
    }
}
