//! The pass that finds which memory is shared.
//!
//! What is known of granules is kept by pages. As long as a page was only accessed as a whole, as
//! long copies and fills do, one entry stands for all its granules. Other pages have an entry each;
//! when these have become many, those that say the same everywhere are made one entry again.

use reweave_base::FxHashMap;
use reweave_runtime::wire::Event;

use super::blocks::{Blocks, Change};
use super::hand_over::{Last, Segments, Sets};
use super::{Access, Cells, GRANULE, Lifetime, PAGE_GRANULES, split};

/// What is known of a granule in its present lifetime.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Granule {
    /// The time of the first access, which has 48 bits; eight bits for cuts; flags.
    first: u64,
    last: Last,
}

impl Granule {
    const IS_KNOWN: u64 = 1;
    const IS_KEPT: u64 = 2;
    const CUTS: u32 = 8;
    const START: u32 = 16;

    const fn is(self, flag: u64) -> bool {
        self.first & flag != 0
    }

    /// The lifetime of this granule, which has the number `granule`, if it is to be kept.
    fn lifetime(self, granule: u64, end: u64) -> Option<Lifetime> {
        let start = self.first >> Self::START;
        let cuts = (self.first >> Self::CUTS) as u8 | 1;
        self.is(Self::IS_KEPT).then_some(Lifetime { granule, start, end, cuts })
    }
}

const _: () = assert!(size_of::<Granule>() == 16, "a program has many granules");

/// An access, as far as a granule needs to know it.
#[derive(Clone, Copy)]
struct Touch {
    time: u64,
    segment: u32,
    writes: bool,
    keeps_all: bool,
}

impl Touch {
    /// What is known of a granule after its bytes from `from` to `to` were accessed.
    #[inline]
    fn of(
        self,
        mut known: Granule,
        (from, to): (u8, u8),
        segments: &Segments,
        sets: &mut Sets,
    ) -> Granule {
        if !known.is(Granule::IS_KNOWN) {
            let flags = Granule::IS_KNOWN | if self.keeps_all { Granule::IS_KEPT } else { 0 };
            known.first = self.time << Granule::START | flags;
        }
        if !known.is(Granule::IS_KEPT)
            && !known.last.is_ordered(segments, sets, self.segment, self.writes)
        {
            known.first |= Granule::IS_KEPT;
        }
        // The border after the last byte of a granule is no cut in it.
        let cuts = (1_u32 << from | 1_u32 << to) as u8;
        known.first |= u64::from(cuts) << Granule::CUTS;
        known
    }
}

struct Page {
    number: u64,
    /// What is known of all granules, unless each has an entry of its own.
    whole: Granule,
    granules: Option<Box<[Granule; PAGE_GRANULES]>>,
}

impl Page {
    /// Ends the lifetimes of the granules from `from` up to `to`, of which some are in this page;
    /// gives those that are kept to `keep`.
    fn end(&mut self, from: u64, to: u64, end: u64, keep: &mut impl FnMut(Lifetime)) {
        let base = self.number * PAGE_GRANULES as u64;
        let (from, to) = (from.max(base), to.min(base + PAGE_GRANULES as u64));
        let is_all = to - from == PAGE_GRANULES as u64;
        if self.granules.is_none() && !is_all && self.whole.is(Granule::IS_KNOWN) {
            self.granules = Some(Box::new([self.whole; PAGE_GRANULES]));
        }
        match &mut self.granules {
            Some(granules) => {
                for granule in from..to {
                    let known = std::mem::take(&mut granules[(granule - base) as usize]);
                    known.lifetime(granule, end).into_iter().for_each(&mut *keep);
                }
            }
            None => {
                for granule in from..to {
                    self.whole.lifetime(granule, end).into_iter().for_each(&mut *keep);
                }
            }
        }
        if is_all {
            (self.whole, self.granules) = (Granule::default(), None);
        }
    }

    /// Makes all entries one if they say the same; says whether there are several still.
    fn merge(&mut self) -> bool {
        if let Some(granules) = &self.granules
            && granules.iter().all(|granule| *granule == granules[0])
        {
            (self.whole, self.granules) = (granules[0], None);
        }
        self.granules.is_some()
    }
}

/// Looks at a recording from its beginning and finds which memory its threads share.
#[derive(Default)]
pub struct Survey {
    pages: Vec<Page>,
    places: FxHashMap<u64, usize>,
    /// The page of the last access: most are to the same one again.
    last: (u64, usize),
    /// How many more pages may get an entry for each granule before we look which need it.
    cuts_left: usize,
    blocks: Blocks,
    lifetimes: Vec<Lifetime>,
    kept_blocks: Vec<u64>,
    segments: Segments,
    sets: Sets,
    keeps_all: bool,
}

/// So many pages get an entry for each granule before we look which need it.
const CUTS_MIN: usize = 4096;

impl Survey {
    /// Nothing was seen yet; `keeps_all` asks for every lifetime, contended or not.
    #[must_use]
    pub fn new(keeps_all: bool) -> Self {
        Self { last: (u64::MAX, 0), cuts_left: CUTS_MIN, keeps_all, ..Self::default() }
    }

    /// Takes note of the next event.
    #[inline]
    pub fn step(&mut self, thread: u32, event: &Event) {
        if let Some(access) = Access::new(event) {
            let touch = Touch {
                time: self.blocks.time(),
                segment: self.segments.of(thread),
                writes: access.writes,
                keeps_all: self.keeps_all,
            };
            for part in access.parts() {
                if part.is_page() {
                    self.access_page(part.start / GRANULE / PAGE_GRANULES as u64, touch);
                    continue;
                }
                for (granule, from, to) in part.granules() {
                    self.access(granule, (from, to), touch);
                }
            }
        } else if let Some(change) = self.blocks.step(event) {
            self.end_lifetimes(&change);
        } else {
            self.segments.step(thread, event);
        }
    }

    #[inline]
    fn access(&mut self, granule: u64, bytes: (u8, u8), touch: Touch) {
        let (number, place) = split(granule);
        let page = self.page(number);
        let (segments, sets) = (&self.segments, &mut self.sets);
        if let Some(granules) = &mut self.pages[page].granules {
            granules[place] = touch.of(granules[place], bytes, segments, sets);
            return;
        }
        let before = self.pages[page].whole;
        let after = touch.of(before, bytes, segments, sets);
        if after != before {
            self.cut(page)[place] = after;
        }
    }

    /// An access to all of the page `number`.
    fn access_page(&mut self, number: u64, touch: Touch) {
        let page = self.page(number);
        let page = &mut self.pages[page];
        let known = match &mut page.granules {
            Some(granules) => &mut granules[..],
            None => std::slice::from_mut(&mut page.whole),
        };
        for known in known {
            *known = touch.of(*known, (0, GRANULE as u8), &self.segments, &mut self.sets);
        }
    }

    /// Gives each granule of the page at `place` an entry of its own.
    fn cut(&mut self, place: usize) -> &mut [Granule; PAGE_GRANULES] {
        if self.cuts_left == 0 {
            let count = self.pages.iter_mut().filter_map(|page| page.merge().then_some(())).count();
            // As much work again as was done since the last time.
            self.cuts_left = count.max(CUTS_MIN);
        }
        self.cuts_left -= 1;
        let page = &mut self.pages[place];
        page.granules.insert(Box::new([page.whole; PAGE_GRANULES]))
    }

    #[inline]
    fn page(&mut self, number: u64) -> usize {
        if self.last.0 != number {
            let pages = &mut self.pages;
            let place = *self.places.entry(number).or_insert_with(|| {
                pages.push(Page { number, whole: Granule::default(), granules: None });
                pages.len() - 1
            });
            self.last = (number, place);
        }
        self.last.1
    }

    fn end_lifetimes(&mut self, change: &Change) {
        let end = self.blocks.time() - 1;
        for piece in &change.ended {
            self.end_memory(piece.start, piece.end, Some(piece.time), end);
        }
        if let Some((from, to)) = change.range {
            self.end_memory(from, to, None, end);
        }
    }

    /// Ends the lifetimes of all granules in the bytes from `start` to `end` at `time`; those kept
    /// make the block allocated at `owner` a kept one.
    fn end_memory(&mut self, start: u64, end: u64, owner: Option<u64>, time: u64) {
        let (from, to) = (start / GRANULE, (end - 1) / GRANULE + 1);
        let (first, last) = (split(from).0, split(to - 1).0);
        let (lifetimes, kept_blocks) = (&mut self.lifetimes, &mut self.kept_blocks);
        let mut keep = |lifetime| {
            lifetimes.push(lifetime);
            kept_blocks.extend(owner);
        };
        // A block can be much larger than the memory that was touched.
        if last - first >= self.pages.len() as u64 {
            let touched =
                self.pages.iter_mut().filter(|page| (first..=last).contains(&page.number));
            touched.for_each(|page| page.end(from, to, time, &mut keep));
        } else {
            for number in first..=last {
                if let Some(&place) = self.places.get(&number) {
                    self.pages[place].end(from, to, time, &mut keep);
                }
            }
        }
    }

    /// What was found, once all events were seen.
    #[must_use]
    pub fn finish(mut self) -> Cells {
        // Lifetimes that never ended go on after all events.
        let live: Vec<_> = self.blocks.live().collect();
        for piece in live {
            self.end_memory(piece.start, piece.end, Some(piece.time), u64::MAX);
        }
        let lifetimes = &mut self.lifetimes;
        for page in &mut self.pages {
            page.end(0, u64::MAX, u64::MAX, &mut |lifetime| lifetimes.push(lifetime));
        }
        Cells::new(self.lifetimes, self.kept_blocks)
    }
}
