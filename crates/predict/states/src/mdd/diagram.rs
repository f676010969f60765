//! The diagram itself: its nodes numbered, and where each number of a chain leads.
//!
//! With the number of states ahead of each node, a state is found by its number on one path through
//! the diagram, and a uniform number gives a uniform state. A histogram is made from the end back:
//! how many states ahead of each node have each sum. The last chain's arcs all lead to the end and
//! are not kept.
//!
//! Keeps four bytes for each arc, and 16 or more for each node. A histogram costs as many steps per
//! arc as there are sums ahead of it, and keeps those of two levels.

use num_bigint::BigUint;
use reweave_base::{Id, Rng};
use reweave_order::poset::{ChainId, Poset};

use super::count::{Count, Number, TooWide};
use super::{
    Algebra, Arcs, Level, Limits, MergeError, Meter, Overflow, Reason, Space, Step, Stop,
    is_narrow, merge, tables,
};
use crate::enumerate::Bounds;
use crate::tables::Index;

/// The states of a poset within bounds, as a decision diagram.
#[derive(Clone, Debug)]
pub struct Diagram {
    /// The least state: what it has of chains without a layer, all states have.
    least: Vec<u32>,
    /// How many events each chain has.
    lengths: Vec<u32>,
    layers: Vec<Layer>,
    ahead: Ahead,
}

/// The nodes before a chain is fixed, and where its numbers lead.
#[derive(Clone, Debug)]
struct Layer {
    chain: ChainId,
    /// Without targets in the last layer.
    arcs: Arcs,
}

impl Layer {
    /// How many nodes there are.
    fn count(&self) -> usize {
        self.arcs.firsts.len()
    }

    /// The first number that `node` leaves to the chain, and how many there are.
    fn run(&self, node: usize) -> (u32, usize) {
        (self.arcs.firsts[node], self.arcs.starts[node + 1] - self.arcs.starts[node])
    }

    /// To which nodes of the next layer those numbers lead; none in the last layer, where all lead
    /// to the end.
    fn targets(&self, node: usize) -> Option<&[u32]> {
        let start = self.arcs.starts[node];
        self.arcs.targets.get(start..self.arcs.starts[node + 1]).filter(|run| !run.is_empty())
    }
}

/// For each layer the number of states ahead of each node, and 1 at the end.
#[derive(Clone, Debug)]
enum Ahead {
    Small(Vec<Vec<u128>>),
    Big(Vec<Vec<BigUint>>),
}

/// Keeps the arcs.
#[derive(Default)]
struct Graph {
    layers: Vec<Layer>,
    bytes: usize,
}

impl Graph {
    fn push(&mut self, chain: ChainId, arcs: Arcs) {
        let node = size_of::<u32>() + size_of::<usize>() + size_of::<u128>();
        self.bytes += arcs.firsts.len() * node + arcs.targets.len() * size_of::<u32>();
        self.layers.push(Layer { chain, arcs });
    }
}

impl<I: Index> Algebra<I> for Graph {
    /// For each place of the tables, which chain it is of.
    type Carried = ();

    const LEFT: usize = 1;

    fn start(&mut self) {}

    fn is_live((): &(), _: usize) -> bool {
        true
    }

    fn step(&mut self, at: Step, (): &(), _: &mut Meter<'_>) -> Result<(), MergeError> {
        self.push(at.chain, at.arcs);
        Ok(())
    }

    fn finish(
        &mut self,
        space: &Space<'_, I>,
        (level, ()): (&Level<I>, &()),
        _: &mut Meter<'_>,
    ) -> Result<(), MergeError> {
        let Some(&place) = level.places.first() else { return Ok(()) };
        let mut arcs = Arcs { starts: vec![0], ..Arcs::default() };
        let mut end = 0;
        for node in 0..level.count {
            let (first, last) = level.range(node, 0);
            end += (last - first) as usize + 1;
            arcs.firsts.push(first);
            arcs.starts.push(end);
        }
        self.push(space.tables.order[place], arcs);
        Ok(())
    }

    fn bytes(&self, (): &()) -> usize {
        self.bytes
    }
}

impl Diagram {
    /// The diagram of the states of `poset` within `bounds`.
    ///
    /// # Errors
    /// If it does not fit the limits, or was asked to stop.
    ///
    /// # Panics
    /// If the bounds are not states of `poset`, the one included in the other.
    pub fn build(
        poset: &Poset,
        bounds: &Bounds,
        limits: &Limits,
        stop: Stop<'_>,
    ) -> Result<Self, Overflow> {
        let layers = if is_narrow(poset) {
            layers::<u16>(poset, bounds, limits, stop)?
        } else {
            layers::<u32>(poset, bounds, limits, stop)?
        };
        let ahead = match ahead(&layers) {
            Ok(ahead) => Ahead::Small(ahead),
            Err(TooWide) => Ahead::Big(ahead(&layers).expect("numbers of any size fit")),
        };
        Ok(Self { least: bounds.least.clone(), lengths: poset.top(), layers, ahead })
    }

    /// How many states there are.
    #[must_use]
    pub fn count(&self) -> Count {
        match &self.ahead {
            Ahead::Small(ahead) => ahead[0][0].into(),
            Ahead::Big(ahead) => ahead[0][0].clone(),
        }
    }

    /// How many nodes the widest level has.
    #[must_use]
    pub fn width(&self) -> usize {
        self.layers.iter().map(Layer::count).max().unwrap_or(1)
    }

    /// The chains in the order in which they are fixed; those that the bounds fix are left out.
    pub fn chains(&self) -> impl Iterator<Item = ChainId> {
        self.layers.iter().map(|layer| layer.chain)
    }

    /// The state with this number, counted from 0; none if there are not so many. The first of
    /// [`Self::chains`] is the most significant.
    #[must_use]
    pub fn unrank(&self, rank: &BigUint) -> Option<Vec<u32>> {
        match &self.ahead {
            Ahead::Small(ahead) => self.unrank_by(ahead, rank.clone().try_into().ok()?),
            Ahead::Big(ahead) => self.unrank_by(ahead, rank.clone()),
        }
    }

    fn unrank_by<N: Number>(&self, ahead: &[Vec<N>], mut rank: N) -> Option<Vec<u32>> {
        if rank >= ahead[0][0] {
            return None;
        }
        let mut state = self.least.clone();
        let mut node = 0;
        for (layer, ahead) in self.layers.iter().zip(&ahead[1..]) {
            let (mut index, _) = layer.run(node);
            match layer.targets(node) {
                Some(targets) => {
                    for &target in targets {
                        node = target as usize;
                        if rank < ahead[node] {
                            break;
                        }
                        rank -= &ahead[node];
                        index += 1;
                    }
                }
                None => {
                    let rest: u64 =
                        rank.clone().try_into().ok().expect("a run is of 32-bit numbers");
                    index += rest as u32;
                }
            }
            state[layer.chain.index()] = index;
        }
        Some(state)
    }

    /// One of the states, each as likely as any other.
    pub fn sample(&self, rng: &mut Rng) -> Vec<u32> {
        let count = self.count();
        let bits = count.bits();
        // What is drawn is below twice the count: every other draw is good, on average.
        let rank = loop {
            let mut digits: Vec<u32> =
                (0..bits.div_ceil(32)).map(|_| (rng.next() >> 32) as u32).collect();
            if let Some(top) = digits.last_mut().filter(|_| !bits.is_multiple_of(32)) {
                *top >>= 32 - bits % 32;
            }
            let rank = BigUint::new(digits);
            if rank < count {
                break rank;
            }
        };
        self.unrank(&rank).expect("the number is below the count")
    }
}

fn layers<I: Index>(
    poset: &Poset,
    bounds: &Bounds,
    limits: &Limits,
    stop: Stop<'_>,
) -> Result<Vec<Layer>, Overflow> {
    let tables = tables::<I>(poset, bounds);
    let space = Space::new(&tables, bounds);
    let mut meter = Meter::new(limits.work_max, stop);
    let merged = merge(&space, Graph::default, limits, &mut meter);
    match merged.expect("arcs have no numbers that could be too large") {
        Ok(graph) => Ok(graph.layers),
        Err(cut) => Err(cut.overflow(&space)),
    }
}

/// The number of states ahead of each node.
fn ahead<N: Number>(layers: &[Layer]) -> Result<Vec<Vec<N>>, TooWide> {
    let mut ahead = vec![vec![N::from(1)]];
    for layer in layers.iter().rev() {
        let next = ahead.last().expect("there is the end");
        let mut own = Vec::with_capacity(layer.count());
        for node in 0..layer.count() {
            let mut sum = N::from(0);
            match layer.targets(node) {
                Some(targets) => {
                    for same in targets.chunk_by(|one, other| one == other) {
                        sum.add_times(&next[same[0] as usize], same.len() as u64)?;
                    }
                }
                None => sum.add_times(&next[0], layer.run(node).1 as u64)?,
            }
            own.push(sum);
        }
        ahead.push(own);
    }
    ahead.reverse();
    Ok(ahead)
}

impl Diagram {
    /// The values of all numbers of `chain`.
    fn values_of(&self, chain: ChainId, values: impl Fn(ChainId, u32) -> i128) -> Vec<i128> {
        (0..=self.lengths[chain.index()]).map(|index| values(chain, index)).collect()
    }

    /// The sum over the chains that the bounds fix.
    fn fixed_sum(&self, values: impl Fn(ChainId, u32) -> i128) -> i128 {
        let mut is_fixed = vec![true; self.least.len()];
        self.chains().for_each(|chain| is_fixed[chain.index()] = false);
        let fixed = (0..self.least.len()).filter(|&chain| is_fixed[chain]);
        fixed.map(|chain| values(ChainId::from_index(chain), self.least[chain])).sum()
    }

    /// How many states have each sum of `values`, by the sum; only sums that some state has.
    ///
    /// # Errors
    /// If it does not fit the limits, or was asked to stop.
    pub fn histogram(
        &self,
        values: impl Fn(ChainId, u32) -> i64,
        limits: &Limits,
        stop: Stop<'_>,
    ) -> Result<Vec<(i128, Count)>, Overflow> {
        let values = |chain, index| i128::from(values(chain, index));
        // No sum has more states than there are, so what these fit, those fit.
        match &self.ahead {
            Ahead::Small(_) => self.histogram_by::<u128>(values, limits, stop),
            Ahead::Big(_) => self.histogram_by::<BigUint>(values, limits, stop),
        }
    }

    fn histogram_by<N: Number>(
        &self,
        values: impl Fn(ChainId, u32) -> i128,
        limits: &Limits,
        stop: Stop<'_>,
    ) -> Result<Vec<(i128, Count)>, Overflow> {
        let mut meter = Meter::new(limits.work_max, stop);
        let mut next = Histograms::<N>::end();
        for (level, layer) in self.layers.iter().enumerate().rev() {
            let values = self.values_of(layer.chain, &values);
            let sum = Gather { values: &values, next: &next, bytes_max: limits.bytes_max / 2 };
            next = sum.layer(layer, &mut meter).map_err(|reason| Overflow {
                reason,
                level,
                nodes_count: layer.count(),
            })?;
        }
        let fixed = self.fixed_sum(&values);
        let counts = next.counts.iter().map(|count| count.clone().into());
        Ok(next.sums.iter().map(|sum| sum + fixed).zip(counts).collect())
    }
}

/// For each node the sums ahead of it, ascending, and how many states have each.
struct Histograms<N> {
    starts: Vec<usize>,
    sums: Vec<i128>,
    counts: Vec<N>,
}

impl<N: Number> Histograms<N> {
    /// Those of the end: one path, no sum.
    fn end() -> Self {
        Self { starts: vec![0, 1], sums: vec![0], counts: vec![N::from(1)] }
    }

    fn of(&self, node: usize) -> (&[i128], &[N]) {
        let range = self.starts[node]..self.starts[node + 1];
        (&self.sums[range.clone()], &self.counts[range])
    }
}

/// Up to how many cells for each sum that comes in they are added up in a row of cells, one for
/// each number between the extremes, in place of being sorted.
const CELLS_PER_SUM: i128 = 8;

/// Makes the histograms of a layer from those of the next.
struct Gather<'a, N> {
    values: &'a [i128],
    next: &'a Histograms<N>,
    bytes_max: usize,
}

impl<N: Number> Gather<'_, N> {
    fn layer(&self, layer: &Layer, meter: &mut Meter<'_>) -> Result<Histograms<N>, Reason> {
        let mut own = Histograms { starts: vec![0], sums: Vec::new(), counts: Vec::new() };
        let mut cells = Vec::new();
        for node in 0..layer.count() {
            let (first, count) = layer.run(node);
            let targets = layer.targets(node);
            let parts = || {
                (0..count).map(|at| {
                    let target = targets.map_or(0, |targets| targets[at] as usize);
                    (self.values[first as usize + at], self.next.of(target))
                })
            };
            let (mut entries, mut least, mut greatest) = (0, i128::MAX, i128::MIN);
            for (value, (sums, _)) in parts() {
                entries += sums.len();
                meter.spend(sums.len() as u64)?;
                least = least.min(sums[0] + value);
                greatest = greatest.max(sums[sums.len() - 1] + value);
            }
            if greatest - least < CELLS_PER_SUM * entries as i128 {
                add_in_cells(parts(), (least, greatest), &mut cells, &mut own);
            } else {
                add_sorted(parts(), &mut own);
            }
            own.starts.push(own.sums.len());
            let bytes = own.sums.len() * (size_of::<i128>() + size_of::<N>());
            if bytes + entries * size_of::<i128>() > self.bytes_max {
                return Err(Reason::Memory);
            }
        }
        Ok(own)
    }
}

/// Adds up sums that lie close together.
fn add_in_cells<'a, N: Number + 'a>(
    parts: impl Iterator<Item = (i128, (&'a [i128], &'a [N]))>,
    (least, greatest): (i128, i128),
    cells: &mut Vec<N>,
    to: &mut Histograms<N>,
) {
    cells.clear();
    cells.resize((greatest - least) as usize + 1, N::from(0));
    for (value, (sums, counts)) in parts {
        for (sum, count) in sums.iter().zip(counts) {
            add(&mut cells[(sum + value - least) as usize], count);
        }
    }
    for (sum, count) in (least..).zip(cells.drain(..)) {
        if count != N::from(0) {
            to.sums.push(sum);
            to.counts.push(count);
        }
    }
}

/// Adds up sums that lie far apart.
fn add_sorted<'a, N: Number + 'a>(
    parts: impl Iterator<Item = (i128, (&'a [i128], &'a [N]))>,
    to: &mut Histograms<N>,
) {
    let entries = parts
        .flat_map(|(value, (sums, counts))| sums.iter().map(move |sum| sum + value).zip(counts));
    let mut entries: Vec<(i128, &N)> = entries.collect();
    entries.sort_by_key(|&(sum, _)| sum);
    for same in entries.chunk_by(|one, other| one.0 == other.0) {
        let mut total = N::from(0);
        same.iter().for_each(|(_, count)| add(&mut total, count));
        to.sums.push(same[0].0);
        to.counts.push(total);
    }
}

fn add<N: Number>(to: &mut N, count: &N) {
    to.add_times(count, 1).expect("no sum has more states than there are");
}
