//! Counting states: each window carries the number of ways in which it comes about.
//!
//! The two chains fixed last are counted at once: for each number of the one, those of the other
//! are a range, and the ends of these ranges are added up beforehand.

use num_bigint::BigUint;
use reweave_order::poset::Poset;

use super::limits::{Limits, Meter, Overflow, Reason, Stop};
use super::merge::{Algebra, Cut, Halt, Step, Unfinished, batches, merge};
use super::number::{Count, Narrow, Number};
use super::windows::{Choices, Lane, Level, Room, Space, is_narrow, tables};
use crate::bounds::{Bounds, intervals};
use crate::tables::Tables;

/// How many states of `poset` there are within `bounds`.
///
/// # Errors
/// If merging does not fit the limits; [`count_hybrid`] goes on then.
pub fn count(poset: &Poset, bounds: &Bounds, limits: &Limits) -> Result<Count, Overflow> {
    if is_narrow(poset) {
        count_by::<u16>(poset, bounds, limits)
    } else {
        count_by::<u32>(poset, bounds, limits)
    }
}

fn count_by<I: Lane>(poset: &Poset, bounds: &Bounds, limits: &Limits) -> Result<Count, Overflow> {
    let tables = tables::<I>(poset, bounds);
    let space = Space::new(&tables, bounds);
    let merged = |meter: &mut Meter<'_>| {
        let small = merge(&space, Ways::<I, u128>::default, limits, meter);
        small.map(|merged| merged.map(Ways::count).map_err(|cut| cut.overflow(&space)))
    };
    let mut meter = Meter::new(limits.work_max, &|| false);
    merged(&mut meter).unwrap_or_else(|Narrow| {
        let big = merge(&space, Ways::<I, BigUint>::default, limits, &mut meter);
        let big = big.expect("numbers of any size fit");
        big.map(Ways::count).map_err(|cut| cut.overflow(&space))
    })
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
/// from there on in batches. Only work without end and `stop` cut it short.
#[must_use]
pub fn count_hybrid(poset: &Poset, bounds: &Bounds, limits: &Limits, stop: Stop<'_>) -> Counted {
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
/// If it takes too much work, or was told to stop.
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

fn interval_counts_by<I: Lane>(
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
            let overflow = counted.overflow.expect("only what merging did not fit is cut short");
            return Err(Overflow { reason, ..overflow });
        }
        counts.push(counted.count);
    }
    if let Some(first) = counts.first_mut() {
        *first += &Count::from(1);
    }
    Ok(counts)
}

fn count_space<I: Lane>(space: &Space<'_, I>, limits: &Limits, stop: Stop<'_>) -> Counted {
    count_with::<I, u128>(space, limits, stop).unwrap_or_else(|Narrow| {
        count_with::<I, BigUint>(space, limits, stop).expect("numbers of any size fit")
    })
}

/// Into how many times fewer windows than a level may have batches are cut: one batch a level is
/// kept, beside its whole first level.
const BATCHES: usize = 4;

/// How many windows there are in a batch, and how many bytes it takes.
pub(super) fn batch_room(limits: &Limits, levels: usize) -> Room {
    let windows = (limits.windows_max / BATCHES).max(1);
    Room { windows, bytes: limits.bytes_max / levels.max(1) }
}

fn count_with<I: Lane, N: Number>(
    space: &Space<'_, I>,
    limits: &Limits,
    stop: Stop<'_>,
) -> Result<Counted, Narrow> {
    // Half of the work is left for batches, should merging come to nothing.
    let mut meter = Meter::new(limits.work_max / 2, stop);
    let cut = match merge(space, Ways::<I, N>::default, limits, &mut meter)? {
        Ok(ways) => {
            return Ok(Counted { count: ways.count(), cut_short: None, overflow: None });
        }
        Err(cut) => cut,
    };
    let overflow = Some(cut.overflow(space));
    meter.grant(limits.work_max - limits.work_max / 2);
    let room = batch_room(limits, cut.level.places.len());
    Ok(match batches(space, *cut, room, &mut meter)? {
        Ok(ways) => Counted { count: ways.count(), cut_short: None, overflow },
        Err(unfinished) => {
            let count = at_least(&unfinished);
            Counted { count, cut_short: Some(unfinished.reason), overflow }
        }
    })
}

impl<I: Lane, A: Algebra<I>> Cut<I, A> {
    /// What to say about it.
    pub(super) fn overflow(&self, space: &Space<'_, I>) -> Overflow {
        let level = space.free.len() - self.level.places.len();
        Overflow { reason: self.reason, level, windows_count: self.level.count }
    }
}

/// What was counted, and one state for each way to a window that was not taken whole: there is one.
fn at_least<I: Lane, N: Number>(unfinished: &Unfinished<I, Ways<I, N>>) -> Count {
    let mut count = unfinished.algebra.total.big();
    for frame in &unfinished.frames {
        for ways in &frame.carried[frame.cursor.node..] {
            count += ways.big();
        }
    }
    Count::from(count)
}

/// Windows carry the number of ways to them.
struct Ways<I, N> {
    total: N,
    /// The last two chains, once there are no others.
    pair: Option<Pair<I>>,
}

impl<I, N: Number> Default for Ways<I, N> {
    fn default() -> Self {
        Self { total: N::zero(), pair: None }
    }
}

impl<I, N: Number> Ways<I, N> {
    fn count(self) -> Count {
        Count::from(self.total.big())
    }
}

impl<I: Lane, N: Number> Algebra<I> for Ways<I, N> {
    type Carried = Vec<N>;

    const LEFT: usize = 2;

    fn start(&mut self) -> Vec<N> {
        vec![N::one()]
    }

    fn is_live(_: &Vec<N>, _: usize) -> bool {
        true
    }

    fn step(&mut self, at: Step, ways: &Vec<N>, _: &mut Meter<'_>) -> Result<Vec<N>, Halt> {
        let mut next = vec![N::zero(); at.next_count];
        for node in at.arcs.nodes() {
            let (_, targets) = at.arcs.of(node);
            for same in targets.chunk_by(|one, other| one == other) {
                next[same[0] as usize].add_times(&ways[node], same.len() as u64)?;
            }
        }
        Ok(next)
    }

    fn finish(
        &mut self,
        space: &Space<'_, I>,
        (level, ways): (&Level<I>, &Vec<N>),
        meter: &mut Meter<'_>,
    ) -> Result<(), Halt> {
        let mut total = self.total.clone();
        for (node, ways) in ways.iter().enumerate() {
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
            total.add_times(ways, ends)?;
        }
        self.total = total;
        Ok(())
    }

    fn bytes(&self, ways: &Vec<N>) -> usize {
        // What the greatest takes: those of a level are of a kind.
        ways.len() * ways.iter().max().map_or(0, N::bytes)
    }
}

/// For each number of the last but one chain, which numbers of the last one go with it.
struct Pair<I> {
    choices: Choices<I>,
    /// The first number of the one chain.
    first: u32,
    /// The sums of the least and of the greatest of the other before each number of the one.
    sums: Vec<(u64, u64)>,
}

/// From how many numbers on a run is added up by sums made beforehand.
const LONG_RUN: u32 = 32;

impl<I: Lane> Pair<I> {
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
        (row[0].get(), row[1].complement().get())
    }

    /// How many states a window leaves.
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

    /// As the chain goes on, the other's least and greatest number go up. So the window's own least
    /// counts up to some number, and from some number on its own greatest does.
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

/// The first number from `start` on that is not `before` the border, or `end`.
fn partition(start: u32, end: u32, before: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (start, end);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
