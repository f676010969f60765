//! Sums over chains: each number of events of each chain has a value, and the sum of a state is
//! that of its numbers.
//!
//! From the end of the diagram back, each window gets the greatest sum ahead of it, or how many
//! states ahead of it have each sum.
//!
//! Extremes cost one step an arc. A histogram costs as many steps an arc as there are sums ahead of
//! it, and keeps those of two levels.

use num_bigint::BigUint;
use reweave_base::Id;
use reweave_order::poset::ChainId;

use super::graph::{Ahead, Diagram, Layer};
use super::limits::{Limits, Meter, Overflow, Reason, Stop};
use super::number::{Count, Number};

/// The extreme of a sum, and a state that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extreme {
    /// The sum.
    pub sum: i128,
    /// The state; by its number the first of those with this sum.
    pub state: Vec<u32>,
}

impl Diagram {
    /// The least and the greatest sum of `values` that a state has: the value of each chain and
    /// number of its events, added up over the chains.
    pub fn extremes(&self, values: impl Fn(ChainId, u32) -> i64) -> (Extreme, Extreme) {
        let mut least = self.greatest(|chain, index| -i128::from(values(chain, index)));
        least.sum = -least.sum;
        (least, self.greatest(|chain, index| i128::from(values(chain, index))))
    }

    fn greatest(&self, values: impl Fn(ChainId, u32) -> i128) -> Extreme {
        let mut ahead: Vec<Vec<i128>> = vec![vec![0]];
        for layer in self.layers.iter().rev() {
            let next = ahead.last().expect("there is the end");
            let values = self.values_of(layer.chain, &values);
            ahead.push(layer.greatest(&values, next));
        }
        ahead.reverse();
        let mut state = self.least.clone();
        let mut node = 0;
        for (layer, ahead) in self.layers.iter().zip(ahead.windows(2)) {
            let (first, count) = layer.run(node);
            let targets = layer.targets(node);
            let target = |at: usize| targets.map_or(0, |targets| targets[at] as usize);
            let has_it = |&at: &usize| {
                values(layer.chain, first + at as u32) + ahead[1][target(at)] == ahead[0][node]
            };
            let at = (0..count).find(has_it).expect("the greatest sum is that of some number");
            state[layer.chain.index()] = first + at as u32;
            node = target(at);
        }
        Extreme { sum: ahead[0][0] + self.fixed_sum(&values), state }
    }

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
    /// If it does not fit the limits, or was told to stop.
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
                windows_count: layer.count(),
            })?;
        }
        let fixed = self.fixed_sum(&values);
        let counts = next.counts.iter().map(|count| Count::from(count.big()));
        Ok(next.sums.iter().map(|sum| sum + fixed).zip(counts).collect())
    }
}

impl Layer {
    /// For each window the greatest sum ahead of it.
    fn greatest(&self, values: &[i128], next: &[i128]) -> Vec<i128> {
        let tree = self.targets(0).is_none().then(|| MaxTree::new(values));
        let own = |node| {
            let (first, count) = self.run(node);
            match (self.targets(node), &tree) {
                (Some(targets), _) => {
                    let sums = values[first as usize..].iter().zip(targets);
                    sums.map(|(value, &target)| value + next[target as usize]).max()
                }
                (None, Some(tree)) => tree.max(first as usize, first as usize + count),
                (None, None) => None,
            }
            .expect("each window leaves a number")
        };
        (0..self.count()).map(own).collect()
    }
}

/// Answers which is the greatest of a range of values: a complete binary tree over them, so that
/// runs of the last chain, which may be long, cost little.
struct MaxTree {
    /// Node i has the greater of nodes 2i and 2i + 1; the values are the second half.
    nodes: Vec<i128>,
}

impl MaxTree {
    fn new(values: &[i128]) -> Self {
        let count = values.len();
        let mut nodes = vec![0; count];
        nodes.extend_from_slice(values);
        for node in (1..count).rev() {
            nodes[node] = nodes[2 * node].max(nodes[2 * node + 1]);
        }
        Self { nodes }
    }

    /// The greatest of the values from `start` up to but not `end`.
    fn max(&self, start: usize, end: usize) -> Option<i128> {
        let count = self.nodes.len() / 2;
        let (mut start, mut end) = (start + count, end + count);
        let mut max = None;
        while start < end {
            if start % 2 == 1 {
                max = max.max(Some(self.nodes[start]));
                start += 1;
            }
            if end % 2 == 1 {
                end -= 1;
                max = max.max(Some(self.nodes[end]));
            }
            (start, end) = (start / 2, end / 2);
        }
        max
    }
}

/// For each window the sums ahead of it, ascending, and how many states have each.
struct Histograms<N> {
    starts: Vec<usize>,
    sums: Vec<i128>,
    counts: Vec<N>,
}

impl<N: Number> Histograms<N> {
    /// Those of the end: one way, no sum.
    fn end() -> Self {
        Self { starts: vec![0, 1], sums: vec![0], counts: vec![N::one()] }
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
    cells.resize((greatest - least) as usize + 1, N::zero());
    for (value, (sums, counts)) in parts {
        for (sum, count) in sums.iter().zip(counts) {
            add(&mut cells[(sum + value - least) as usize], count);
        }
    }
    for (sum, count) in (least..).zip(cells.drain(..)) {
        if count != N::zero() {
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
        let mut total = N::zero();
        same.iter().for_each(|(_, count)| add(&mut total, count));
        to.sums.push(same[0].0);
        to.counts.push(total);
    }
}

fn add<N: Number>(to: &mut N, count: &N) {
    to.add_times(count, 1).expect("no sum has more states than there are");
}
