//! Windows of all chains, and what one more chain's number of events makes of them.

use crate::tables::Tables;

/// How many chains have narrow rows.
pub(super) const LANES: usize = 16;

/// The rows of a walk. Levels are chains, outermost first; numbers count from the least state. A
/// stack has, for each level, the windows once the chains before it have their numbers.
pub(super) trait CsrTable: Sync {
    /// The windows of each level.
    type Stack;

    /// A stack that has the windows of level 0.
    fn stack(&self) -> Self::Stack;

    /// The window of the chain at level `of`, in the windows of `level`.
    fn window(&self, stack: &Self::Stack, level: usize, of: usize) -> [u32; 2];

    /// Makes the windows of the level after `level`, whose chain has done `index` events.
    fn enter(&self, stack: &mut Self::Stack, level: usize, index: u32);

    /// The windows of the last two chains once the one before them, at `level`, has done `index`
    /// events.
    fn inner(&self, stack: &Self::Stack, level: usize, index: u32) -> [[u32; 2]; 2];
}

/// A low and a high number for each of 16 chains, the last of them in the last lane.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Row {
    low: [u16; LANES],
    high: [u16; LANES],
}

const _: () = assert!(size_of::<Row>() == 64, "a row is a cache line");

impl Row {
    const ZERO: Self = Self { low: [0; LANES], high: [0; LANES] };

    #[inline(always)]
    fn narrowed(&self, by: &Self) -> Self {
        let mut row = Self::ZERO;
        for lane in 0..LANES {
            row.low[lane] = self.low[lane].max(by.low[lane]);
            row.high[lane] = self.high[lane].min(by.high[lane]);
        }
        row
    }
}

/// Rows of up to 16 chains of up to 65 535 events.
#[derive(Clone, Debug)]
pub(super) struct Narrow {
    /// How many lanes before the first are not used.
    skipped: usize,
    /// Where the rows of each level start.
    starts: [usize; LANES],
    rows: Vec<Row>,
    first: Row,
}

impl Narrow {
    /// The tables as narrow rows, if they fit: at least 3 chains, so that there is a level before
    /// the last two.
    pub(super) fn new(tables: &Tables<u32>) -> Option<Self> {
        let width = tables.width();
        let is_short = tables.lengths.iter().all(|&length| length <= u32::from(u16::MAX));
        if !(3..=LANES).contains(&width) || !is_short {
            return None;
        }
        let skipped = LANES - width;
        let fill = |low: &[u32], high: &[u32]| {
            let mut row = Row::ZERO;
            for place in 0..width {
                row.low[skipped + place] = low[place] as u16;
                row.high[skipped + place] = high[place] as u16;
            }
            row
        };
        let mut starts = [0; LANES];
        let mut rows = Vec::new();
        for (place, &length) in tables.lengths.iter().enumerate() {
            starts[place] = rows.len();
            let indices = 0..=length;
            rows.extend(
                indices.map(|index| fill(tables.low(place, index), tables.high(place, index))),
            );
        }
        let first = fill(&vec![0; width], &tables.lengths);
        Some(Self { skipped, starts, rows, first })
    }

    #[inline(always)]
    fn row(&self, level: usize, index: u32) -> &Row {
        &self.rows[self.starts[level % LANES] + index as usize]
    }
}

impl CsrTable for Narrow {
    type Stack = [Row; LANES];

    fn stack(&self) -> Self::Stack {
        [self.first; LANES]
    }

    #[inline(always)]
    fn window(&self, stack: &Self::Stack, level: usize, of: usize) -> [u32; 2] {
        let row = &stack[level % LANES];
        let lane = (self.skipped + of) % LANES;
        [u32::from(row.low[lane]), u32::from(row.high[lane])]
    }

    #[inline(always)]
    fn enter(&self, stack: &mut Self::Stack, level: usize, index: u32) {
        stack[(level + 1) % LANES] = stack[level % LANES].narrowed(self.row(level, index));
    }

    #[inline(always)]
    fn inner(&self, stack: &Self::Stack, level: usize, index: u32) -> [[u32; 2]; 2] {
        let [window, row] = [&stack[level % LANES], self.row(level, index)];
        [LANES - 2, LANES - 1].map(|lane| {
            let low = window.low[lane].max(row.low[lane]);
            [u32::from(low), u32::from(window.high[lane].min(row.high[lane]))]
        })
    }
}

/// Rows of any number of chains of any length.
#[derive(Clone, Debug)]
pub(super) struct Wide {
    pub(super) tables: Tables<u32>,
}

impl Wide {
    /// The low numbers of the chains from `level` on, in the windows of that level.
    pub(super) fn lows<'a>(&self, stack: &'a [u32], level: usize) -> &'a [u32] {
        let width = self.tables.width();
        let start = level * 2 * width;
        &stack[start + level..start + width]
    }
}

impl CsrTable for Wide {
    /// For each level the low numbers of all chains, then the high ones.
    type Stack = Vec<u32>;

    fn stack(&self) -> Self::Stack {
        let width = self.tables.width();
        let mut stack = vec![0; 2 * width * width];
        if let Some(highs) = stack.get_mut(width..2 * width) {
            highs.copy_from_slice(&self.tables.lengths);
        }
        stack
    }

    #[inline(always)]
    fn window(&self, stack: &Self::Stack, level: usize, of: usize) -> [u32; 2] {
        let width = self.tables.width();
        let start = level * 2 * width + of;
        [stack[start], stack[start + width]]
    }

    #[inline(always)]
    fn enter(&self, stack: &mut Self::Stack, level: usize, index: u32) {
        let width = self.tables.width();
        let (above, below) = stack.split_at_mut((level + 1) * 2 * width);
        let (lows, highs) = above[level * 2 * width..].split_at(width);
        let (lows_below, highs_below) = below[..2 * width].split_at_mut(width);
        let pairs = lows.iter().zip(self.tables.low(level, index));
        for (to, (own, row)) in lows_below.iter_mut().zip(pairs).skip(level + 1) {
            *to = *own.max(row);
        }
        let pairs = highs.iter().zip(self.tables.high(level, index));
        for (to, (own, row)) in highs_below.iter_mut().zip(pairs).skip(level + 1) {
            *to = *own.min(row);
        }
    }

    #[inline(always)]
    fn inner(&self, stack: &Self::Stack, level: usize, index: u32) -> [[u32; 2]; 2] {
        let width = self.tables.width();
        let window = &stack[level * 2 * width..(level + 1) * 2 * width];
        let [low, high] = [self.tables.low(level, index), self.tables.high(level, index)];
        [width - 2, width - 1]
            .map(|place| [window[place].max(low[place]), window[width + place].min(high[place])])
    }
}
