//! Which memory was written by code that was not recorded, as far as values say so?
//!
//! Where one thread runs at a time, what an access reads is what was last written there. The bytes that
//! recorded accesses wrote or saw are remembered, and a read of others tells of a writer that nobody saw.
//! No other order or lock tells of such memory, so all of it that is found so is kept.
//!
//! A block that one thread allocated and that nobody else was seen to access is that thread's own: what
//! changes there, the libraries that it calls change on its behalf. Of such memory nothing is found.
//!
//! Thirteen bytes for each eight that are accessed with a known value.

use std::ops::Range;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, Kind, flag};

use super::names::Symbols;
use super::scan::tells_stored;
use crate::shadow::{Access, Blocks, Change, SharingAnalysis, WORD_BYTES};

const PAGE_WORDS: usize = 512;

const PAGE_BYTES: u64 = PAGE_WORDS as u64 * WORD_BYTES;

/// Finds memory that code which was not recorded wrote, so that it is kept.
#[derive(Default)]
pub struct UnseenWriters {
    values: Values,
    owners: Owners,
    /// Words that some read found to hold what no recorded access wrote.
    pub found: FxHashSet<u64>,
    /// Words of which nothing can be said, most of them on the stack of the first thread.
    unknown: FxHashSet<u64>,
}

impl UnseenWriters {
    /// Takes the next event, which made `change` to what is allocated.
    pub fn step(
        &mut self,
        thread: u32,
        event: &Event,
        change: Option<&Change>,
        sharing: &mut SharingAnalysis,
        symbols: &mut dyn Symbols,
    ) {
        if event.kind == Kind::Maps {
            self.unknown.clear();
        }
        if let Some(change) = change {
            let pieces = change.ended.iter().map(|piece| (piece.start, piece.end));
            for (start, end) in pieces.chain(change.range) {
                self.values.renew(start, end);
            }
            self.owners.note(thread, event, change);
        }
        if let Some(access) = self.values.step(thread, event)
            && !(self.values.is_alone(access, thread)
                && self.owners.is_made_by(thread, access.start, sharing.blocks()))
            && self.is_comparable(access.start, sharing.blocks(), symbols)
        {
            sharing.keep(access);
            self.found.extend(access.words().map(|(word, ..)| word));
        }
    }

    fn is_comparable(&mut self, at: u64, blocks: &Blocks, symbols: &mut dyn Symbols) -> bool {
        if self.unknown.contains(&(at / WORD_BYTES)) {
            return false;
        }
        let is_known = self.owners.is_comparable(at, blocks, symbols);
        if !is_known && blocks.holding(at).is_none() {
            self.unknown.insert(at / WORD_BYTES);
        }
        is_known
    }
}

/// Who allocated the blocks that live, by the times of their allocation; nobody if it is a stack.
#[derive(Debug, Default)]
pub struct Owners(FxHashMap<u64, Option<u32>>);

impl Owners {
    /// Takes note of what `event` of `thread` allocated.
    pub fn note(&mut self, thread: u32, event: &Event, change: &Change) {
        let is_stack = event.flags & flag::STACK != 0;
        self.0.extend(change.born.map(|block| (block.time, (!is_stack).then_some(thread))));
        for time in change.released.iter().chain(&change.lost) {
            self.0.remove(time);
        }
    }

    /// Whether `thread` allocated the block that holds `address`.
    pub fn is_made_by(&self, thread: u32, address: u64, blocks: &Blocks) -> bool {
        let block = blocks.holding(address);
        block.is_some_and(|block| self.0.get(&block.time) == Some(&Some(thread)))
    }

    /// Whether what is at `address` is known from the accesses to it: it is in a block that is no
    /// stack, or in a global variable. What is on a stack is another variable after each return.
    pub fn is_comparable(&self, address: u64, blocks: &Blocks, symbols: &mut dyn Symbols) -> bool {
        match blocks.holding(address) {
            Some(block) => self.0.get(&block.time).is_some_and(Option::is_some),
            None => symbols.data(address).is_some(),
        }
    }
}

/// What words hold, which bytes of them are known, and who accessed them.
struct Page {
    values: [u64; PAGE_WORDS],
    known: [u8; PAGE_WORDS],
    accessors: [u32; PAGE_WORDS],
}

/// Nobody accessed the word.
const NOBODY: u32 = 0;

/// More than one thread did. Any other number is that of a thread, plus one.
const SEVERAL: u32 = u32::MAX;

/// What memory holds, by the accesses so far.
#[derive(Default)]
struct Values {
    pages: FxHashMap<u64, Box<Page>>,
    /// The last plain write of each thread, if it is not known yet what it stored.
    pending: FxHashMap<u32, Event>,
}

impl Values {
    /// Takes the next event; gives the bytes that it read if they were not what recorded accesses left.
    fn step(&mut self, thread: u32, event: &Event) -> Option<Access> {
        if tells_stored(event)
            && let Some(write) = self.pending.remove(&thread)
            && let Some(stored) = event.stored
            && let Some(access) = Access::new(&write)
        {
            self.set(access, stored);
        }
        if event.kind == Kind::Escaped {
            // What the thread did unseen is not known.
            self.pages.values_mut().for_each(|page| page.known.fill(0));
        }
        let access = Access::new(event)?;
        let (seen, left) = match event.kind {
            Kind::Read | Kind::AtomicLoad | Kind::AtomicFailed => (event.value, event.value),
            Kind::AtomicUpdate => (event.value, event.extra),
            Kind::AtomicStore => (None, event.value),
            _ => (None, None),
        };
        if event.kind == Kind::Write {
            self.pending.insert(thread, *event);
        }
        if matches!(event.kind, Kind::ReadRange | Kind::WriteRange) {
            self.pass_over(access, thread);
            return None;
        }
        let mut is_other = false;
        for (word, from, to) in access.words() {
            let page = self.page(word / PAGE_WORDS as u64);
            let place = word as usize % PAGE_WORDS;
            is_other |=
                seen.is_some_and(|seen| page.differs(place, from..to, in_word(seen, access, word)));
            match left {
                Some(left) => page.set(place, from..to, in_word(left, access, word)),
                None if access.writes => page.known[place] &= !bytes(from..to),
                None => {}
            }
            page.note_accessor(place, thread);
        }
        is_other.then_some(access)
    }

    /// A range is accessed, of which no value is known. It may be long, so only pages that there are
    /// are looked at.
    fn pass_over(&mut self, access: Access, thread: u32) {
        if access.writes {
            self.forget(access.start, access.end);
        }
        for part in access.parts() {
            let Some(page) = self.pages.get_mut(&(part.start / PAGE_BYTES)) else { continue };
            for (word, ..) in part.words() {
                page.note_accessor(word as usize % PAGE_WORDS, thread);
            }
        }
    }

    fn page(&mut self, number: u64) -> &mut Page {
        self.pages.entry(number).or_insert_with(|| {
            let (values, known) = ([0; PAGE_WORDS], [0; PAGE_WORDS]);
            Box::new(Page { values, known, accessors: [NOBODY; PAGE_WORDS] })
        })
    }

    /// Whether nobody but `thread` was seen to access the words of `access`.
    fn is_alone(&self, access: Access, thread: u32) -> bool {
        access.words().all(|(word, ..)| {
            let page = self.pages.get(&(word / PAGE_WORDS as u64));
            page.is_some_and(|page| page.accessors[word as usize % PAGE_WORDS] == thread + 1)
        })
    }

    /// The memory from `start` to `end` is another from now on.
    fn renew(&mut self, start: u64, end: u64) {
        self.forget(start, end);
        let (first, last) = (start / PAGE_BYTES, end.saturating_sub(1) / PAGE_BYTES);
        if last - first > self.pages.len() as u64 {
            return;
        }
        for number in first..=last {
            let Some(page) = self.pages.get_mut(&number) else { continue };
            page.accessors[words_within(number, start, end)].fill(NOBODY);
        }
    }

    /// The memory from `start` to `end` may hold anything.
    fn forget(&mut self, start: u64, end: u64) {
        let pages = start / PAGE_BYTES..=end.saturating_sub(1) / PAGE_BYTES;
        // A block can be much larger than the memory that was touched.
        if pages.end() - pages.start() > self.pages.len() as u64 {
            self.pages.retain(|page, _| !pages.contains(page));
            return;
        }
        for number in pages {
            let Some(page) = self.pages.get_mut(&number) else { continue };
            page.known[words_within(number, start, end)].fill(0);
        }
    }

    fn set(&mut self, access: Access, value: u64) {
        for (word, from, to) in access.words() {
            let page = self.page(word / PAGE_WORDS as u64);
            page.set(word as usize % PAGE_WORDS, from..to, in_word(value, access, word));
        }
    }
}

impl Page {
    /// Whether one of `bytes` of the word at `place` is known and not as in `value`.
    fn differs(&self, place: usize, mut bytes: Range<u8>, value: u64) -> bool {
        let other = (self.values[place] ^ value).to_le_bytes();
        bytes.any(|byte| self.known[place] >> byte & 1 == 1 && other[usize::from(byte)] != 0)
    }

    fn set(&mut self, place: usize, range: Range<u8>, value: u64) {
        let mask = range.clone().fold(0_u64, |mask, byte| mask | 0xff << (8 * byte));
        self.values[place] = self.values[place] & !mask | value & mask;
        self.known[place] |= bytes(range);
    }

    const fn note_accessor(&mut self, place: usize, thread: u32) {
        let accessor = &mut self.accessors[place];
        let is_first = *accessor == NOBODY || *accessor == thread + 1;
        *accessor = if is_first { thread + 1 } else { SEVERAL };
    }
}

/// A bit for each byte of `range`.
const fn bytes(range: Range<u8>) -> u8 {
    ((1_u32 << range.end) - (1 << range.start)) as u8
}

/// The words of page `number` that the memory from `start` to `end` touches.
fn words_within(number: u64, start: u64, end: u64) -> Range<usize> {
    let base = number * PAGE_BYTES;
    let from = start.max(base) - base;
    let to = end.min(base + PAGE_BYTES) - base;
    (from / WORD_BYTES) as usize..to.div_ceil(WORD_BYTES) as usize
}

/// The bytes of `value`, which is at `access`, where they are in `word`.
const fn in_word(value: u64, access: Access, word: u64) -> u64 {
    let base = word * WORD_BYTES;
    if access.start >= base {
        value << (8 * (access.start - base))
    } else {
        value >> (8 * (base - access.start))
    }
}
