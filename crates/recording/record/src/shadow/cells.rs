//! The cells that are kept, and which of them an access covers.

use std::collections::BTreeMap;

use reweave_base::FxHashMap;

use super::{Access, PAGE_WORDS, WORD_BYTES, drop_within, split};

/// One lifetime of a word that threads share, or of several that are one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Which word, or the first.
    pub word: u64,
    /// How many allocations and releases came before its first access.
    pub start: u64,
    /// How many came before the one that ended it.
    pub end: u64,
    /// How many words are one cell; 1 where a word may be several.
    pub words: u32,
    /// Bit i says that a cell begins at byte i. The first byte always begins one.
    pub cuts: u8,
}

impl Lifetime {
    /// The cells that begin in the bytes from `from` up to `to` of a word: where each begins and
    /// ends.
    fn cells(self, from: u8, to: u8) -> impl Iterator<Item = (u8, u8)> {
        let begins = move |byte: &u8| *byte == 0 || self.cuts >> *byte & 1 == 1;
        (from..to).filter(begins).map(move |begin| {
            let end = (begin + 1..WORD_BYTES as u8).find(begins).unwrap_or(WORD_BYTES as u8);
            (begin, end)
        })
    }

    /// The word after its last.
    pub(super) const fn words_end(self) -> u64 {
        self.word + self.words as u64
    }
}

/// A cell that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its first byte.
    pub begin: u64,
    /// The byte after its last.
    pub end: u64,
    /// The place of its lifetime among [`ShadowCells::lifetimes`].
    pub lifetime: u32,
}

/// The memory that threads share.
#[derive(Debug, Default)]
pub struct ShadowCells {
    lifetimes: Vec<Lifetime>,
    /// How many of the lifetimes are of one word. The others follow.
    single_count: usize,
    /// By page, then word: the first lifetime of that word alone that may not be over yet.
    pages: FxHashMap<u64, Box<[u32; PAGE_WORDS]>>,
    /// The lifetimes of several words that have begun and may not be over yet, by their first words.
    ranges: BTreeMap<u64, u32>,
    /// The first lifetime of several words that has not begun yet.
    next_range: usize,
    /// The allocations of blocks with a kept lifetime in them, by their numbers, in order.
    blocks: Vec<u64>,
}

/// There is no lifetime.
const NONE: u32 = u32::MAX;

impl ShadowCells {
    pub(super) fn new(mut lifetimes: Vec<Lifetime>, mut blocks: Vec<u64>) -> Self {
        lifetimes.sort_unstable_by_key(|lifetime| match lifetime.words {
            1 => (false, lifetime.word, lifetime.start),
            _ => (true, lifetime.start, lifetime.word),
        });
        let single_count = lifetimes.partition_point(|lifetime| lifetime.words == 1);
        blocks.sort_unstable();
        blocks.dedup();
        let mut cells = Self { lifetimes, single_count, blocks, ..Self::default() };
        cells.rewind();
        cells
    }

    /// Makes it ready for another pass from the beginning.
    pub fn rewind(&mut self) {
        for (place, lifetime) in self.lifetimes[..self.single_count].iter().enumerate().rev() {
            let (page, word) = split(lifetime.word);
            let page = self.pages.entry(page).or_insert_with(|| Box::new([NONE; PAGE_WORDS]));
            page[word] = place as u32;
        }
        self.ranges.clear();
        self.next_range = self.single_count;
    }

    /// The lifetimes that are kept: those of one word by word, then time; then those of several.
    #[must_use]
    pub fn lifetimes(&self) -> &[Lifetime] {
        &self.lifetimes
    }

    /// Whether the block whose allocation has the number `time` holds a kept lifetime.
    #[must_use]
    pub fn keeps_block(&self, time: u64) -> bool {
        self.blocks.binary_search(&time).is_ok()
    }

    /// The first kept cell that `access` covers from its byte `from` on, after `time` allocations
    /// and releases. Time never goes back between two questions.
    #[inline]
    pub fn next_cell(&mut self, access: Access, from: u64, time: u64) -> Option<Cell> {
        self.begin_ranges(time);
        let mut at = from;
        while at < access.end {
            let word = at / WORD_BYTES;
            let (page, place) = split(word);
            let mut next = word + 1;
            match self.pages.get_mut(&page) {
                Some(places) => {
                    if let Some(lifetime) =
                        single_at(&self.lifetimes[..self.single_count], &mut places[place], time)
                    {
                        let base = word * WORD_BYTES;
                        let (first, end) = access.within_word(at);
                        let first = first.max((at - base) as u8);
                        let mut cells = self.lifetimes[lifetime as usize].cells(first, end);
                        if let Some((begin, end)) = cells.next() {
                            let at = |byte: u8| base + u64::from(byte);
                            return Some(Cell { begin: at(begin), end: at(end), lifetime });
                        }
                    }
                }
                // A page without a kept word may be in a range, or have one begin in it.
                None => next = (page + 1) * PAGE_WORDS as u64,
            }
            if !self.ranges.is_empty() {
                if let Some(cell) = self.range_at(word, time) {
                    return Some(cell);
                }
                next = self.ranges.range(word + 1..next).next().map_or(next, |(&first, _)| first);
            }
            at = next.saturating_mul(WORD_BYTES);
        }
        None
    }

    /// Takes note of the lifetimes of several words that have begun by `time`.
    #[inline]
    fn begin_ranges(&mut self, time: u64) {
        while let Some(begun) = self.lifetimes.get(self.next_range)
            && begun.start <= time
        {
            // Whatever overlaps is over: a word has one lifetime at a time.
            let before = self.ranges.range(..begun.word).next_back();
            if let Some((&first, &place)) = before
                && self.lifetimes[place as usize].words_end() > begun.word
            {
                self.ranges.remove(&first);
            }
            drop_within(&mut self.ranges, begun.word, begun.words_end());
            self.ranges.insert(begun.word, self.next_range as u32);
            self.next_range += 1;
        }
    }

    /// The cell of several words that holds `word` at `time`.
    fn range_at(&self, word: u64, time: u64) -> Option<Cell> {
        let (_, &place) = self.ranges.range(..=word).next_back()?;
        let lifetime = self.lifetimes[place as usize];
        let begin = lifetime.word * WORD_BYTES;
        let end = lifetime.words_end() * WORD_BYTES;
        let holds = word < lifetime.words_end() && time <= lifetime.end;
        holds.then_some(Cell { begin, end, lifetime: place })
    }
}

/// The lifetime at `time` of the word of which `first` is the first that may not be over.
#[inline]
fn single_at(lifetimes: &[Lifetime], first: &mut u32, time: u64) -> Option<u32> {
    while *first != NONE {
        let lifetime = lifetimes[*first as usize];
        if time <= lifetime.end {
            return (lifetime.start <= time).then_some(*first);
        }
        let next = *first + 1;
        let follows = lifetimes.get(next as usize).is_some_and(|l| l.word == lifetime.word);
        *first = if follows { next } else { NONE };
    }
    None
}
