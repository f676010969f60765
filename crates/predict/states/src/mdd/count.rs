//! Counting states: each node carries the number of paths to it.
//!
//! The two chains fixed last are counted at once: for each number of the one, those of the other
//! are a range, and the ends of these ranges have prefix sums.
//!
//! Most counts fit 128 bits, in which additions cost next to nothing. So a count is first made with
//! those, checked, and made again with numbers of any size if one did not fit.

use std::ops::SubAssign;

use num_bigint::BigUint;
use reweave_order::poset::Poset;

use super::{
    Algebra, Choices, Level, Limits, MergeError, Meter, Overflow, Reason, Space, Step, Stop,
    Traversed, is_narrow, tables, traverse,
};
use crate::enumerate::{Bounds, intervals};
use crate::tables::{Index, Tables};

/// A number of states, exact, of any size.
pub type Count = BigUint;

/// A number did not fit 128 bits: the count is made again with [`BigUint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooWide;

/// What counts are made with.
pub(super) trait Number:
    Clone
    + Ord
    + From<u64>
    + TryFrom<BigUint>
    + TryInto<u64>
    + Into<BigUint>
    + for<'a> SubAssign<&'a Self>
{
    /// Adds `factor` times `other`.
    fn add_times(&mut self, other: &Self, factor: u64) -> Result<(), TooWide>;

    /// About how many bytes it takes.
    fn bytes(&self) -> usize;
}

impl Number for u128 {
    #[inline]
    fn add_times(&mut self, other: &Self, factor: u64) -> Result<(), TooWide> {
        let product = other.checked_mul(Self::from(factor)).ok_or(TooWide)?;
        *self = self.checked_add(product).ok_or(TooWide)?;
        Ok(())
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}

impl Number for BigUint {
    fn add_times(&mut self, other: &Self, factor: u64) -> Result<(), TooWide> {
        match factor {
            1 => *self += other,
            _ => *self += other * factor,
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + 2 * size_of::<u64>() + (self.bits() / 8) as usize
    }
}

/// How many states there are, or at least how many if it was cut short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// So many were counted, each once.
    pub count: Count,
    /// Why there may be more, if so.
    pub cut_short: Option<Reason>,
    /// Where merging did not fit the limits, so that the rest was counted in batches.
    pub overflow: Option<Overflow>,
}

/// How many states of `poset` there are within `bounds`: by merging while that fits the limits, and
/// from there on in batches. Only the limit on work and `stop` cut it short.
#[must_use]
pub fn count(poset: &Poset, bounds: &Bounds, limits: &Limits, stop: Stop<'_>) -> Counted {
    if is_narrow(poset) {
        let tables = tables::<u16>(poset, bounds);
        count_space(&Space::new(&tables, bounds), limits, stop)
    } else {
        let tables = tables::<u32>(poset, bounds);
        count_space(&Space::new(&tables, bounds), limits, stop)
    }
}

/// For each event of `poset`, in the order in which it lists them, how many states have it as
/// their last one. The empty state is counted with the first.
///
/// # Errors
/// If it takes too much work, or was asked to stop.
pub fn interval_counts(
    poset: &Poset,
    limits: &Limits,
    stop: Stop<'_>,
) -> Result<Vec<Count>, Overflow> {
    let bounds = Bounds::all(poset);
    if is_narrow(poset) {
        interval_counts_by(poset, &tables::<u16>(poset, &bounds), limits, stop)
    } else {
        interval_counts_by(poset, &tables::<u32>(poset, &bounds), limits, stop)
    }
}

fn interval_counts_by<I: Index>(
    poset: &Poset,
    tables: &Tables<I>,
    limits: &Limits,
    stop: Stop<'_>,
) -> Result<Vec<Count>, Overflow> {
    let order = Space::new(tables, &Bounds::all(poset)).free;
    let mut counts = Vec::with_capacity(poset.len());
    for interval in intervals(poset) {
        let counted = count_space(&Space::in_order(tables, &interval, &order), limits, stop);
        if let Some(reason) = counted.cut_short {
            let overflow = counted.overflow.expect("only what did not fit is cut short");
            return Err(Overflow { reason, ..overflow });
        }
        counts.push(counted.count);
    }
    if let Some(first) = counts.first_mut() {
        *first += 1_u8;
    }
    Ok(counts)
}

fn count_space<I: Index>(space: &Space<'_, I>, limits: &Limits, stop: Stop<'_>) -> Counted {
    count_with::<I, u128>(space, limits, stop).unwrap_or_else(|TooWide| {
        count_with::<I, BigUint>(space, limits, stop).expect("numbers of any size fit")
    })
}

fn count_with<I: Index, N: Number>(
    space: &Space<'_, I>,
    limits: &Limits,
    stop: Stop<'_>,
) -> Result<Counted, TooWide> {
    let Traversed { algebra, frames, cut_short, overflow } =
        traverse(space, Paths::<I, N>::default, limits, stop)?;
    let mut count: Count = algebra.total.into();
    // One state for each path to a node that was not expanded completely: it has at least one.
    for frame in &frames {
        for paths in &frame.carried[frame.cursor.node..] {
            count += Into::<BigUint>::into(paths.clone());
        }
    }
    Ok(Counted { count, cut_short, overflow })
}

/// Nodes carry the number of paths to them.
struct Paths<I, N> {
    total: N,
    /// The last two chains, once there are no others.
    pair: Option<Pair<I>>,
}

impl<I, N: Number> Default for Paths<I, N> {
    fn default() -> Self {
        Self { total: N::from(0), pair: None }
    }
}

impl<I: Index, N: Number> Algebra<I> for Paths<I, N> {
    type Carried = Vec<N>;

    const LEFT: usize = 2;

    fn start(&mut self) -> Vec<N> {
        vec![N::from(1)]
    }

    fn is_live(_: &Vec<N>, _: usize) -> bool {
        true
    }

    fn step(&mut self, at: Step, paths: &Vec<N>, _: &mut Meter<'_>) -> Result<Vec<N>, MergeError> {
        let mut next = vec![N::from(0); at.next_count];
        for node in at.arcs.nodes() {
            let (_, targets) = at.arcs.of(node);
            for same in targets.chunk_by(|one, other| one == other) {
                next[same[0] as usize].add_times(&paths[node], same.len() as u64)?;
            }
        }
        Ok(next)
    }

    fn finish(
        &mut self,
        space: &Space<'_, I>,
        (level, paths): (&Level<I>, &Vec<N>),
        meter: &mut Meter<'_>,
    ) -> Result<(), MergeError> {
        let mut total = self.total.clone();
        for (node, paths) in paths.iter().enumerate() {
            let ends = match level.places.len() {
                0 => 1,
                1 => {
                    let (first, last) = level.range(node, 0);
                    u64::from(last - first) + 1
                }
                _ => {
                    let pair = self.pair.get_or_insert_with(|| Pair::new(space, &level.places));
                    pair.count(level, node, meter)?
                }
            };
            total.add_times(paths, ends)?;
        }
        self.total = total;
        Ok(())
    }

    fn bytes(&self, paths: &Vec<N>) -> usize {
        // What the greatest takes: those of a level are of similar size.
        paths.len() * paths.iter().max().map_or(0, N::bytes)
    }
}

/// For each number of the second-to-last chain the range of the last one.
struct Pair<I> {
    choices: Choices<I>,
    /// The first number of the one chain.
    first: u32,
    /// Prefix sums of the low and of the high ends of these ranges.
    sums: Vec<(u64, u64)>,
}

/// From how many numbers on a run is added up by prefix sums.
const LONG_RUN: u32 = 32;

impl<I: Index> Pair<I> {
    fn new(space: &Space<'_, I>, places: &[usize]) -> Self {
        let choices = Choices::new(space, places, 0);
        let (first, last) = (space.least[places[0]], space.greatest[places[0]]);
        let mut pair = Self { choices, first, sums: vec![(0, 0)] };
        let mut sum = (0, 0);
        for index in first..=last {
            let (low, high) = pair.range(index);
            sum = (sum.0 + u64::from(low), sum.1 + u64::from(high));
            pair.sums.push(sum);
        }
        pair
    }

    fn range(&self, index: u32) -> (u32, u32) {
        let row = self.choices.row(index);
        (row[0].get(), (!row[1]).get())
    }

    /// How many states are ahead of `node`.
    fn count(&self, level: &Level<I>, node: usize, meter: &mut Meter<'_>) -> Result<u64, Reason> {
        let (first, last) = level.range(node, 0);
        let (least, greatest) = level.range(node, 1);
        meter.spend(u64::from(last - first).min(LONG_RUN.into()) / 4 + 1)?;
        if last - first >= LONG_RUN {
            return Ok(self.count_long((first, last), (least, greatest)));
        }
        let numbers = |index| {
            let (low, high) = self.range(index);
            u64::from(high.min(greatest) - low.max(least)) + 1
        };
        Ok((first..=last).map(numbers).sum())
    }

    /// Both ends of the other's range grow with the chain's number. So up to some number the node's
    /// own low end counts, and from some number on its own high end does.
    fn count_long(&self, (first, last): (u32, u32), (least, greatest): (u32, u32)) -> u64 {
        let end = last + 1;
        let low_from = partition(first, end, |index| self.range(index).0 <= least);
        let high_from = partition(first, end, |index| self.range(index).1 <= greatest);
        let sum = |index: u32| self.sums[(index - self.first) as usize];
        let times = |count: u32, number: u32| u64::from(count) * u64::from(number);
        let lows = times(low_from - first, least) + sum(end).0 - sum(low_from).0;
        let highs = sum(high_from).1 - sum(first).1 + times(end - high_from, greatest);
        highs - lows + u64::from(end - first)
    }
}

/// The first number from `start` on that is not `before`, or `end`.
fn partition(start: u32, end: u32, before: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (start, end);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
