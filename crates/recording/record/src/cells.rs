//! Which memory do threads share, and into what must it be cut so that no access covers a part?
//!
//! A trace speaks of variables, a program of overlapping accesses to bytes. Memory is looked at in
//! *granules*, aligned words of eight bytes, each from one allocation or release of some of it to the
//! next: a *lifetime*. Within a lifetime the cells of a granule are the coarsest pieces whose borders
//! include the borders of every access. A lifetime is *kept* when two threads contend for the granule:
//! two of their accesses, of which one writes, are not ordered by forks, joins and the order within
//! threads. What is only handed over so, from those who initialise to those who work to those who
//! gather, is accessed in the same order by every run, and no analysis can tell whether it is there.
//!
//! [`Survey`] finds this in one pass over a recording; [`Cells`] is its answer. A lifetime is told
//! by when it was, counted in allocations and releases, so whoever asks needs to count these and
//! nothing more.
//!
//! Sixteen bytes per granule that the program touched, where pages were not always touched as a
//! whole in the same way, and 32 per kept lifetime. An access costs one look into a table, a long one
//! a look for every page.

mod blocks;
mod hand_over;
mod survey;

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind};

pub use blocks::{Block, Blocks, Change};
pub use survey::Survey;

/// The bytes of a granule.
pub const GRANULE: u64 = 8;

const PAGE_GRANULES: usize = 512;
const PAGE_BYTES: u64 = PAGE_GRANULES as u64 * GRANULE;

/// No access is longer than this; the rest of one that says so is left out.
const ACCESS_BYTES_MAX: u64 = 1 << 32;

/// The bytes that an event accesses, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The first byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    /// Whether it writes.
    pub writes: bool,
    /// Whether it is atomic.
    pub is_atomic: bool,
}

impl Access {
    /// What `event` accesses, if it does.
    #[inline]
    #[must_use]
    pub fn new(event: &Event) -> Option<Self> {
        let (writes, is_atomic, is_range) = match event.kind {
            Kind::Read => (false, false, false),
            Kind::Write => (true, false, false),
            Kind::ReadRange => (false, false, true),
            Kind::WriteRange => (true, false, true),
            Kind::AtomicLoad | Kind::AtomicFailed => (false, true, false),
            Kind::AtomicStore | Kind::AtomicUpdate => (true, true, false),
            _ => return None,
        };
        let length = match is_range {
            true => event.extra.unwrap_or(0).min(ACCESS_BYTES_MAX),
            false => 1 << event.size.min(3),
        };
        let start = event.address;
        let end = start.saturating_add(length);
        (start < end).then_some(Self { start, end, writes, is_atomic })
    }

    /// Its parts in each page of granules, by address.
    pub fn parts(self) -> impl Iterator<Item = Self> {
        (self.start / PAGE_BYTES..=(self.end - 1) / PAGE_BYTES).map(move |page| {
            let start = self.start.max(page * PAGE_BYTES);
            let end = (page * PAGE_BYTES).saturating_add(PAGE_BYTES).min(self.end);
            Self { start, end, ..self }
        })
    }

    /// Whether a part is all of its page.
    const fn is_page(self) -> bool {
        self.end - self.start == PAGE_BYTES
    }

    /// The granules it touches, by number, with the bytes of each that it covers.
    pub fn granules(self) -> impl Iterator<Item = (u64, u8, u8)> {
        (self.start / GRANULE..=(self.end - 1) / GRANULE).map(move |granule| {
            let base = granule * GRANULE;
            let from = self.start.max(base) - base;
            let to = (self.end - base).min(GRANULE);
            (granule, from as u8, to as u8)
        })
    }
}

/// One lifetime of a granule that threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Which granule.
    pub granule: u64,
    /// How many allocations and releases came before its first access.
    pub start: u64,
    /// How many came before the one that ended it.
    pub end: u64,
    /// Bit i says that a cell begins at byte i. The first byte always begins one.
    pub cuts: u8,
}

impl Lifetime {
    /// The cells that begin in the bytes from `from` up to `to`: where each begins and ends.
    pub fn cells(self, from: u8, to: u8) -> impl Iterator<Item = (u8, u8)> {
        let begins = move |byte: &u8| *byte == 0 || self.cuts >> *byte & 1 == 1;
        (from..to).filter(begins).map(move |begin| {
            let end = (begin + 1..GRANULE as u8).find(begins).unwrap_or(GRANULE as u8);
            (begin, end)
        })
    }
}

/// The memory that threads share.
#[derive(Debug, Default)]
pub struct Cells {
    lifetimes: Vec<Lifetime>,
    /// By page, then granule: the first lifetime of the granule that may not be over yet.
    pages: FxHashMap<u64, Box<[u32; PAGE_GRANULES]>>,
    /// The allocations of blocks with a kept lifetime in them, by their numbers, in order.
    blocks: Vec<u64>,
}

/// There is no lifetime.
const NONE: u32 = u32::MAX;

impl Cells {
    fn new(mut lifetimes: Vec<Lifetime>, mut blocks: Vec<u64>) -> Self {
        lifetimes.sort_unstable_by_key(|lifetime| (lifetime.granule, lifetime.start));
        blocks.sort_unstable();
        blocks.dedup();
        let mut cells = Self { lifetimes, pages: FxHashMap::default(), blocks };
        cells.rewind();
        cells
    }

    /// Makes it ready for another pass from the beginning.
    pub fn rewind(&mut self) {
        for (place, lifetime) in self.lifetimes.iter().enumerate().rev() {
            let (page, granule) = split(lifetime.granule);
            let page = self.pages.entry(page).or_insert_with(|| Box::new([NONE; PAGE_GRANULES]));
            page[granule] = place as u32;
        }
    }

    /// The lifetimes that are kept, by granule, then time.
    #[must_use]
    pub fn lifetimes(&self) -> &[Lifetime] {
        &self.lifetimes
    }

    /// Whether the block whose allocation has the number `time` holds a kept lifetime.
    #[must_use]
    pub fn keeps_block(&self, time: u64) -> bool {
        self.blocks.binary_search(&time).is_ok()
    }

    /// Whether `part` of an access may be of a kept lifetime.
    pub(crate) fn may_keep(&self, part: Access) -> bool {
        // Where there is little to do, asking costs as much.
        !part.is_page() || self.pages.contains_key(&(part.start / PAGE_BYTES))
    }

    /// The lifetime of `granule` after `time` allocations and releases, by its place among
    /// [`Cells::lifetimes`], if it is kept. Time never goes back between two questions.
    #[inline]
    pub fn lifetime_at(&mut self, granule: u64, time: u64) -> Option<u32> {
        let (page, place) = split(granule);
        let first = &mut self.pages.get_mut(&page)?[place];
        while *first != NONE {
            let lifetime = self.lifetimes[*first as usize];
            if time <= lifetime.end {
                return (lifetime.start <= time).then_some(*first);
            }
            let next = *first + 1;
            let follows = self.lifetimes.get(next as usize).is_some_and(|l| l.granule == granule);
            *first = if follows { next } else { NONE };
        }
        None
    }
}

#[inline]
fn split(granule: u64) -> (u64, usize) {
    (granule / PAGE_GRANULES as u64, (granule % PAGE_GRANULES as u64) as usize)
}
