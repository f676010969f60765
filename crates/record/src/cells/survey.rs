//! The pass that finds which memory is shared.

use reweave_base::FxHashMap;
use reweave_runtime::wire::Event;

use super::blocks::{Block, Blocks, Change};
use super::hand_over::{Last, Segments, Sets};
use super::{Access, Cells, GRANULE, Lifetime, PAGE_GRANULES, split};

/// What is known of a granule in its present lifetime.
#[derive(Clone, Copy, Default)]
struct Granule {
    /// The time of the first access.
    start: u64,
    last: Last,
    cuts: u8,
    is_known: bool,
    is_kept: bool,
}

struct Page {
    number: u64,
    granules: Box<[Granule; PAGE_GRANULES]>,
}

/// Looks at a recording from its beginning and finds which memory its threads share.
#[derive(Default)]
pub struct Survey {
    pages: Vec<Page>,
    places: FxHashMap<u64, usize>,
    /// The page of the last access: most are to the same one again.
    last: (u64, usize),
    blocks: Blocks,
    lifetimes: Vec<Lifetime>,
    kept_blocks: Vec<u64>,
    segments: Segments,
    sets: Sets,
    keeps_all: bool,
}

impl Survey {
    /// Nothing was seen yet; `keeps_all` asks for every lifetime, contended or not.
    #[must_use]
    pub fn new(keeps_all: bool) -> Self {
        Self { last: (u64::MAX, 0), keeps_all, ..Self::default() }
    }

    /// Takes note of the next event.
    #[inline]
    pub fn step(&mut self, thread: u32, event: &Event) {
        if let Some(access) = Access::of(event) {
            for (granule, from, to) in access.granules() {
                self.access(thread, granule, (from, to), access.writes);
            }
        } else if let Some(change) = self.blocks.step(event) {
            self.end_lifetimes(&change);
        } else {
            self.segments.step(thread, event);
        }
    }

    #[inline]
    fn access(&mut self, thread: u32, granule: u64, (from, to): (u8, u8), writes: bool) {
        let time = self.blocks.time();
        let segment = self.segments.of(thread);
        let (page, place) = split(granule);
        let page = self.page(page);
        let mut known = self.pages[page].granules[place];
        if !known.is_known {
            known = Granule { start: time, is_known: true, is_kept: self.keeps_all, ..known };
        }
        if !known.is_kept {
            let (segments, sets) = (&self.segments, &mut self.sets);
            known.is_kept = !known.last.is_ordered(segments, sets, segment, writes);
        }
        // The border after the last byte of a granule is no cut in it.
        known.cuts |= (1_u32 << from | 1_u32 << to) as u8;
        self.pages[page].granules[place] = known;
    }

    #[inline]
    fn page(&mut self, number: u64) -> usize {
        if self.last.0 != number {
            let pages = &mut self.pages;
            let place = *self.places.entry(number).or_insert_with(|| {
                let granules = Box::new([Granule::default(); PAGE_GRANULES]);
                pages.push(Page { number, granules });
                pages.len() - 1
            });
            self.last = (number, place);
        }
        self.last.1
    }

    fn end_lifetimes(&mut self, change: &Change) {
        for block in change.lost.iter().chain(&change.released) {
            self.end_block(*block, Some(block.time));
        }
        if let Some(block) = change.born {
            self.end_block(block, None);
        }
    }

    /// Ends the lifetimes of all granules of `block`; those kept make the block allocated at
    /// `owner` a kept one.
    fn end_block(&mut self, block: Block, owner: Option<u64>) {
        let granules = block.start / GRANULE..=(block.end - 1) / GRANULE;
        let (first, last) = (split(*granules.start()).0, split(*granules.end()).0);
        // A block can be much larger than the memory that was touched.
        let is_wide = last - first >= self.pages.len() as u64;
        let numbers = if is_wide { 0..0 } else { first..last + 1 };
        let listed: Vec<usize> =
            numbers.filter_map(|number| self.places.get(&number).copied()).collect();
        let all = 0..if is_wide { self.pages.len() } else { 0 };
        for place in listed.into_iter().chain(all) {
            let page = &mut self.pages[place];
            let base = page.number * PAGE_GRANULES as u64;
            let from = (*granules.start()).max(base);
            let to = (granules.end() + 1).min(base + PAGE_GRANULES as u64);
            for granule in from..to {
                let known = std::mem::take(&mut page.granules[(granule - base) as usize]);
                let end = self.blocks.time() - 1;
                if let Some(lifetime) = kept(known, granule, end) {
                    self.lifetimes.push(lifetime);
                    self.kept_blocks.extend(owner);
                }
            }
        }
    }

    /// What was found, once all events were seen.
    #[must_use]
    pub fn finish(mut self) -> Cells {
        let live: Vec<Block> = self.blocks.live().collect();
        // Lifetimes that never ended go on after all events.
        for block in live {
            let before = self.lifetimes.len();
            self.end_block(block, Some(block.time));
            for lifetime in &mut self.lifetimes[before..] {
                lifetime.end = u64::MAX;
            }
        }
        for page in &self.pages {
            let base = page.number * PAGE_GRANULES as u64;
            for (place, &known) in page.granules.iter().enumerate() {
                self.lifetimes.extend(kept(known, base + place as u64, u64::MAX));
            }
        }
        Cells::new(self.lifetimes, self.kept_blocks)
    }
}

/// The lifetime of `granule`, of which so much is known, if it is to be kept.
fn kept(known: Granule, granule: u64, end: u64) -> Option<Lifetime> {
    known.is_kept.then_some(Lifetime { granule, start: known.start, end, cuts: known.cuts | 1 })
}
