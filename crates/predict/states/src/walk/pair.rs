//! The last two chains of a walk: the states that are left when all others have their numbers.

use reweave_base::Id;
use reweave_order::poset::ChainId;

use crate::tables::Tables;

/// For a number of events of the last chain but one, what the last one must and may have done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) low: u32,
    pub(super) high: u32,
}

/// Of a walk's last two chains, all that depends on them alone.
#[derive(Clone, Debug)]
pub(super) struct PairTables {
    chain: ChainId,
    /// The number of events of each chain in the least state; all else counts from there.
    least: [u32; 2],
    columns: Vec<Column>,
    /// Sums of the low and the high numbers of all columns before each.
    sums: Vec<[u64; 2]>,
    /// For each number of the last chain, the first column that allows as many, and the first that
    /// needs more.
    turns: Vec<[u32; 2]>,
}

impl PairTables {
    /// The tables of the last two of at least two chains; `least` is by chain.
    pub(super) fn new(tables: &Tables<u32>, least: &[u32]) -> Self {
        let [second, last] = [tables.width() - 2, tables.width() - 1];
        let columns: Vec<Column> = (0..=tables.lengths[second])
            .map(|index| Column {
                low: tables.low(second, index)[last],
                high: tables.high(second, index)[last],
            })
            .collect();
        let mut sums = vec![[0, 0]];
        let [mut low, mut high] = [0, 0];
        for column in &columns {
            low += u64::from(column.low);
            high += u64::from(column.high);
            sums.push([low, high]);
        }
        let turns = (0..=tables.lengths[last])
            .map(|index| [tables.low(last, index)[second], tables.high(last, index)[second] + 1])
            .collect();
        let chain = tables.order[second];
        let least = [second, last].map(|place| least[tables.order[place].index()]);
        Self { chain, least, columns, sums, turns }
    }

    /// The states in which the two are within these windows, each a low and a high number, of
    /// chains whose other chains have theirs.
    #[inline(always)]
    pub(super) const fn pair(&self, second: [u32; 2], last: [u32; 2]) -> Pair<'_> {
        Pair { tables: self, second, last }
    }
}

/// States that differ in the last two chains only: rows, one for each number of events of the last
/// but one, each a run of the last.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    tables: &'a PairTables,
    pub(super) second: [u32; 2],
    pub(super) last: [u32; 2],
}

impl Pair<'_> {
    /// The chain whose number of events makes a row.
    #[must_use]
    pub const fn chain(&self) -> ChainId {
        self.tables.chain
    }

    /// How many rows there are.
    #[inline(always)]
    #[must_use]
    pub const fn rows_count(&self) -> u32 {
        self.second[1] - self.second[0] + 1
    }

    /// The most states that a row can have.
    #[inline(always)]
    #[must_use]
    pub const fn run_max(&self) -> u32 {
        self.last[1] - self.last[0] + 1
    }

    /// The least and the greatest number of events that make a row.
    #[inline(always)]
    #[must_use]
    pub const fn rows(&self) -> [u32; 2] {
        [self.second[0] + self.tables.least[0], self.second[1] + self.tables.least[0]]
    }

    /// The rows: the number of events that makes each, and the run of states, its least and its
    /// greatest number of the last chain.
    #[inline(always)]
    pub fn runs(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        let [first, last] = self.second.map(|index| index as usize);
        let [low, high] = self.last;
        let [index_least, run_least] = self.tables.least;
        let columns = self.tables.columns[first..=last].iter();
        columns.zip(self.second[0] + index_least..).map(move |(column, index)| {
            let low = column.low.max(low) + run_least;
            (index, low, column.high.min(high) + run_least)
        })
    }

    /// How many states there are. What a column needs and allows goes up with it; so up to some
    /// column the window's low end counts and from there the column's, and alike for the high end.
    #[inline(always)]
    #[must_use]
    pub fn states_count(&self) -> u64 {
        let [first, end] = [self.second[0], self.second[1] + 1];
        let [low, high] = self.last;
        let needs_more = self.tables.turns[low as usize][1].clamp(first, end);
        let allows_all = self.tables.turns[high as usize][0].clamp(first, end);
        let sums = |column: u32| self.tables.sums[column as usize];
        let highs =
            sums(allows_all)[1] - sums(first)[1] + u64::from(high) * u64::from(end - allows_all);
        let lows =
            sums(end)[0] - sums(needs_more)[0] + u64::from(low) * u64::from(needs_more - first);
        highs + u64::from(end - first) - lows
    }
}
