//! Windows: what is left to choose once some chains are fixed.
//!
//! Once some chains have done so and so many events, each other chain has done at least `low` and
//! at most `high` of its own. These numbers of the chains that are not fixed yet are a *window*,
//! and it is all that what comes after depends on. A level holds the windows after the same chains
//! were fixed, each once; [`fill`] fixes one chain more.
//!
//! Windows lie end to end in one vector and are found by a table of their positions, so that none
//! takes an allocation. They are numbered as they are met, which no hash has a say in. High numbers
//! are kept as complements: to narrow a window is then to take the greater number everywhere.

use hashbrown::HashTable;
use reweave_base::Id;
use reweave_order::poset::Poset;

use super::limits::{Meter, Reason};
use crate::bounds::Bounds;
use crate::tables::{Index, Tables};

/// A number that a window can hold.
pub(super) trait Lane: Index {
    /// How many bits it has.
    const BITS: u32;

    /// The greatest number less this one.
    fn complement(self) -> Self;
}

impl Lane for u16 {
    const BITS: u32 = Self::BITS;

    fn complement(self) -> Self {
        !self
    }
}

impl Lane for u32 {
    const BITS: u32 = Self::BITS;

    fn complement(self) -> Self {
        !self
    }
}

/// Whether all numbers of `poset` fit 16 bits.
pub(super) fn is_narrow(poset: &Poset) -> bool {
    poset.chains().all(|chain| poset.length(chain) <= u32::from(u16::MAX))
}

/// The tables of the chains of `poset` that `bounds` leave free. What they fix has no say in the
/// others: both bounds are states, so they keep to it already.
///
/// # Panics
/// If the bounds are not states of `poset`, the one held by the other.
pub(super) fn tables<I: Lane>(poset: &Poset, bounds: &Bounds) -> Tables<I> {
    let Bounds { least, greatest } = bounds;
    let are_states = poset.is_consistent(least) && poset.is_consistent(greatest);
    let are_ordered = least.iter().zip(greatest).all(|(least, greatest)| least <= greatest);
    assert!(are_states && are_ordered, "bounds are two states, the one held by the other");
    let is_free = |chain: usize| bounds.least[chain] < bounds.greatest[chain];
    Tables::new(poset, poset.chains().filter(|chain| is_free(chain.index())).collect())
}

/// What is to be merged: all states within bounds, by tables of those chains that are free in it.
#[derive(Clone, Debug)]
pub(super) struct Space<'a, I> {
    pub(super) tables: &'a Tables<I>,
    /// The least number of events of the chain at each place of the tables.
    pub(super) least: Vec<u32>,
    /// The greatest.
    pub(super) greatest: Vec<u32>,
    /// The places whose chains are free, in the order in which they are to be fixed.
    pub(super) free: Vec<usize>,
}

impl<'a, I: Lane> Space<'a, I> {
    /// The states within `bounds`, the narrowest chains first.
    pub(super) fn new(tables: &'a Tables<I>, bounds: &Bounds) -> Self {
        let all: Vec<usize> = (0..tables.width()).collect();
        let mut space = Self::in_order(tables, bounds, &all);
        let widths = space.widths();
        space.free.sort_by_key(|&place| widths[place]);
        space
    }

    /// The states within `bounds`, with the chains in this `order` of places.
    pub(super) fn in_order(tables: &'a Tables<I>, bounds: &Bounds, order: &[usize]) -> Self {
        let pick = |cut: &[u32]| tables.order.iter().map(|chain| cut[chain.index()]).collect();
        let (least, greatest): (Vec<u32>, Vec<u32>) = (pick(&bounds.least), pick(&bounds.greatest));
        let is_free = |place: &&usize| least[**place] < greatest[**place];
        let free = order.iter().filter(is_free).copied().collect();
        Self { tables, least, greatest, free }
    }

    /// For each place, how many numbers of its chain go with a number of another one, in all. The
    /// widest chain goes last: its numbers are gone through as a run.
    fn widths(&self) -> Vec<u64> {
        let mut widths = vec![0; self.tables.width()];
        for &place in &self.free {
            for index in self.least[place]..=self.greatest[place] {
                let (low, high) = (self.tables.low(place, index), self.tables.high(place, index));
                for &other in self.free.iter().filter(|&&other| other != place) {
                    let least = low[other].get().max(self.least[other]);
                    let greatest = high[other].get().min(self.greatest[other]);
                    widths[other] += u64::from((greatest + 1).saturating_sub(least));
                }
            }
        }
        widths
    }

    /// The level before any chain is fixed.
    pub(super) fn start(&self) -> Level<I> {
        let low = self.free.iter().map(|&place| I::new(self.least[place]));
        let high = self.free.iter().map(|&place| I::new(self.greatest[place]).complement());
        Level { places: self.free.clone(), windows: low.chain(high).collect(), count: 1 }
    }
}

/// The windows after the same chains were fixed.
#[derive(Clone, Debug)]
pub(super) struct Level<I> {
    /// The places of the chains that are not fixed yet.
    pub(super) places: Vec<usize>,
    /// For each window the low numbers of those, then the complements of the high ones.
    windows: Vec<I>,
    /// How many windows there are.
    pub(super) count: usize,
}

impl<I: Lane> Level<I> {
    fn window(&self, node: usize) -> &[I] {
        let width = 2 * self.places.len();
        &self.windows[node * width..(node + 1) * width]
    }

    /// The least and the greatest number that window `node` leaves to the chain `at`, counted among
    /// those not fixed yet.
    pub(super) fn range(&self, node: usize, at: usize) -> (u32, u32) {
        let window = self.window(node);
        (window[at].get(), window[self.places.len() + at].complement().get())
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.windows.len() * size_of::<I>()
    }
}

/// For each number of one chain's events what it leaves to the chains not fixed after it, laid out
/// as windows are.
#[derive(Clone, Debug)]
pub(super) struct Choices<I> {
    /// Which of the chains not fixed before it is.
    at: usize,
    /// The number of the first row.
    first: u32,
    rows: Vec<I>,
    /// How many numbers a row has.
    width: usize,
}

impl<I: Lane> Choices<I> {
    /// The choices of the chain `at`, counted among those at `places`.
    pub(super) fn new(space: &Space<'_, I>, places: &[usize], at: usize) -> Self {
        let place = places[at];
        let (first, last) = (space.least[place], space.greatest[place]);
        let rest = || places.iter().filter(|&&other| other != place);
        let width = 2 * (places.len() - 1);
        let mut rows = Vec::with_capacity((last - first + 1) as usize * width);
        for index in first..=last {
            let (low, high) = (space.tables.low(place, index), space.tables.high(place, index));
            rows.extend(rest().map(|&other| low[other]));
            rows.extend(rest().map(|&other| high[other].complement()));
        }
        Self { at, first, rows, width }
    }

    pub(super) fn row(&self, index: u32) -> &[I] {
        let row = (index - self.first) as usize;
        &self.rows[row * self.width..(row + 1) * self.width]
    }

    /// How many rows there are, as work.
    pub(super) fn work(&self) -> u64 {
        (self.rows.len() / 8) as u64
    }
}

/// From each of some windows, the window that each number of the chain fixed next leads to.
#[derive(Clone, Debug, Default)]
pub(super) struct Arcs {
    /// The first of the windows.
    pub(super) node: usize,
    /// The first number, for each window.
    pub(super) firsts: Vec<u32>,
    /// Where the arcs of each window start, and at last where they end.
    pub(super) starts: Vec<usize>,
    /// The windows they lead to: one for each number from the first on.
    pub(super) targets: Vec<u32>,
}

impl Arcs {
    /// The first number of window `node`, and the windows that it and those after it lead to.
    pub(super) fn of(&self, node: usize) -> (u32, &[u32]) {
        let row = node - self.node;
        (self.firsts[row], &self.targets[self.starts[row]..self.starts[row + 1]])
    }

    /// The windows they start from.
    pub(super) fn nodes(&self) -> std::ops::Range<usize> {
        self.node..self.node + self.firsts.len()
    }
}

/// How far a level was gone through: to this window, and in it to this number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    pub(super) node: usize,
    index: u32,
}

/// How much room there is for a level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// The most windows of it.
    pub(super) windows: usize,
    /// The most bytes it may take with the arcs to it.
    pub(super) bytes: usize,
}

/// What a window takes beside its numbers, about: its place in the table, and what it carries.
const WINDOW_BYTES: usize = 32;

/// What an arc takes.
const ARC_BYTES: usize = size_of::<u32>();

/// What the arcs of a window take beside themselves.
const NODE_BYTES: usize = size_of::<u32>() + size_of::<usize>();

/// Fixes one more chain: from `cursor` on, takes the windows of `level` that are live with each
/// number that `choices` leave, until all are taken or there is no room for one more. At least one
/// number is taken if there is room for anything.
///
/// # Errors
/// If the meter ran out; nothing was taken then.
pub(super) fn fill<I: Lane>(
    (level, choices): (&Level<I>, &Choices<I>),
    cursor: &mut Cursor,
    room: Room,
    is_live: impl Fn(usize) -> bool,
    meter: &mut Meter<'_>,
) -> Result<(Level<I>, Arcs), Reason> {
    let mut next = Next::new(level, choices, room);
    let mut arcs = Arcs { node: cursor.node, starts: vec![0], ..Arcs::default() };
    let mut base = vec![I::new(0); choices.width];
    let mut at = *cursor;
    while at.node < level.count {
        let (first, last) = level.range(at.node, choices.at);
        let first = first.max(at.index);
        arcs.firsts.push(first);
        if is_live(at.node) {
            meter.spend(u64::from(last - first) + 1)?;
            copy_without(level.window(at.node), choices.at, &mut base);
            next.charge(NODE_BYTES);
            for index in first..=last {
                let Some(target) = next.add(&base, choices.row(index)) else {
                    arcs.starts.push(arcs.targets.len());
                    *cursor = Cursor { node: at.node, index };
                    return Ok((next.level, arcs));
                };
                arcs.targets.push(target);
            }
        }
        arcs.starts.push(arcs.targets.len());
        at = Cursor { node: at.node + 1, index: 0 };
    }
    *cursor = at;
    Ok((next.level, arcs))
}

/// `window` without both numbers of the chain `at`.
fn copy_without<I: Copy>(window: &[I], at: usize, to: &mut [I]) {
    let chains_count = window.len() / 2;
    let (low, high) = window.split_at(chains_count);
    let (to_low, to_high) = to.split_at_mut(chains_count - 1);
    for (from, to) in [(low, to_low), (high, to_high)] {
        to[..at].copy_from_slice(&from[..at]);
        to[at..].copy_from_slice(&from[at + 1..]);
    }
}

/// A level that is being filled.
struct Next<I> {
    level: Level<I>,
    table: HashTable<u32>,
    width: usize,
    room: Room,
    /// The window met last: often the next one is the same.
    last: usize,
}

impl<I: Lane> Next<I> {
    fn new(level: &Level<I>, choices: &Choices<I>, room: Room) -> Self {
        let mut places = level.places.clone();
        places.remove(choices.at);
        // Positions are 32 bits wide.
        let room = Room { windows: room.windows.clamp(1, u32::MAX as usize), ..room };
        Self {
            level: Level { places, windows: Vec::new(), count: 0 },
            table: HashTable::new(),
            width: choices.width,
            room,
            last: 0,
        }
    }

    /// Takes bytes from the room there is.
    fn charge(&mut self, bytes: usize) {
        self.room.bytes = self.room.bytes.saturating_sub(bytes);
    }

    /// The position of the window that `row` leaves of `base`; none if it is new and there is no
    /// room for it.
    #[inline]
    fn add(&mut self, base: &[I], row: &[I]) -> Option<u32> {
        let width = self.width;
        let is_full = self.room.bytes < ARC_BYTES && self.level.count > 0;
        if is_full {
            return None;
        }
        self.charge(ARC_BYTES);
        let Self { level: Level { windows, count, .. }, table, .. } = self;
        windows.extend(base.iter().zip(row).map(|(&base, &row)| base.max(row)));
        let (old, new) = windows.split_at(*count * width);
        let at = |node: usize| &old[node * width..(node + 1) * width];
        if *count > 0 && at(self.last) == new {
            windows.truncate(*count * width);
            return Some(self.last as u32);
        }
        let hash = hash(new);
        if let Some(&node) = table.find(hash, |&node| at(node as usize) == new) {
            windows.truncate(*count * width);
            self.last = node as usize;
            return Some(node);
        }
        if *count == self.room.windows {
            windows.truncate(*count * width);
            return None;
        }
        let node = *count as u32;
        let hash_of = |&node: &u32| {
            let start = node as usize * width;
            self::hash(&windows[start..start + width])
        };
        table.insert_unique(hash, node, hash_of);
        *count += 1;
        self.last = node as usize;
        self.charge(width * size_of::<I>() + WINDOW_BYTES);
        Some(node)
    }
}

/// Mixes the numbers of a window, 64 bits at a time, each by a product folded onto itself.
#[inline]
fn hash<I: Lane>(window: &[I]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * u128::from(MULTIPLIER);
        (product as u64) ^ ((product >> 64) as u64)
    };
    let mut hash = MULTIPLIER;
    for chunk in window.chunks((u64::BITS / I::BITS) as usize) {
        let join = |word: u64, number: &I| word << I::BITS | u64::from(number.get());
        // Added up, so that a word that meets the hash so far does not make it zero for good.
        hash = mix(hash, chunk.iter().fold(0, join)).wrapping_add(MULTIPLIER);
    }
    hash
}
