//! What memory holds, by the accesses so far: which reads do these not explain?
//!
//! Stacks are not compared, nor is memory whose value no access has shown, unless it is zero when the
//! program starts or when it is allocated, nor is memory beyond [`PAGES_MAX`] pages.
//!
//! Forty bytes for each eight that are accessed; twice that where bytes are accessed one by one.

use std::collections::BTreeSet;
use std::ops::Range;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, Kind, flag};

use crate::convert::names::Symbols;
use crate::convert::scan::tells_stored;
use crate::shadow::{Access, Blocks, Change, PAGE_BYTES, PAGE_WORDS, WORD_BYTES};

/// How variables are called by which the libraries of C, C++ and Rust keep what concerns them alone.
const LIBRARY_NAMES: [&str; 2] = ["__libc_single_threaded", "std::"];

/// The most pages of four kibibytes whose values are compared.
const PAGES_MAX: usize = 1 << 17;

/// The place of an event in the stream, plus one: zero is before all.
pub type Time = u32;

/// A read that saw what no recorded access wrote.
#[derive(Clone, Copy, Debug)]
pub struct Unexplained {
    /// The words that it read, with the bytes of them that differ.
    pub words: [(u64, u8); 2],
    /// When the memory was last accessed before.
    pub since: Time,
    /// Whether that was never, and it was to be zero.
    pub is_initial: bool,
    /// Whether it is a counter of references of Rust's library, which is not rebuilt.
    pub is_count: bool,
}

impl Default for Unexplained {
    fn default() -> Self {
        Self { words: [(0, 0); 2], since: Time::MAX, is_initial: false, is_count: false }
    }
}

impl Unexplained {
    /// The bytes that differ, by their addresses, as `event` read them.
    pub fn bytes(&self, event: &Event) -> impl Iterator<Item = (u64, u8)> {
        let (access, value) = (Access::new(event), event.value);
        let bytes = self.words.into_iter().flat_map(|(word, bytes)| {
            let bytes = (0..WORD_BYTES).filter(move |byte| bytes >> byte & 1 == 1);
            bytes.map(move |byte| word * WORD_BYTES + byte)
        });
        bytes.filter_map(move |address| Some((address, byte_of(value?, access?, address))))
    }
}

/// What is known of eight bytes.
#[derive(Clone, Default)]
struct Word {
    value: u64,
    /// When the first four bytes and the others were last accessed.
    halves: [Time; 2],
    /// When each byte was, once that is not enough.
    bytes: Option<Box<[Time; WORD_BYTES as usize]>>,
    /// Who accessed each half last: the number of a thread, plus one.
    accessors: [u32; 2],
    /// The bytes whose values are known.
    known: u8,
    /// The bytes that were accessed.
    touched: u8,
}

/// The halves of a word that hold some of the bytes of `range`.
const fn halves(range: &Range<u8>) -> Range<usize> {
    range.start as usize / 4..(range.end as usize).div_ceil(4)
}

/// The last plain write of each thread, if it is not known yet what it stored, and its time.
#[derive(Default)]
pub struct Pending(pub FxHashMap<u32, (Access, Time)>);

impl Pending {
    /// If `event` of `thread` says what its last write stored, or that nobody knows: that write, and
    /// what it stored.
    pub fn settle(&mut self, thread: u32, event: &Event) -> Option<(Access, Time, Option<u64>)> {
        if !tells_stored(event) {
            return None;
        }
        let (access, time) = self.0.remove(&thread)?;
        Some((access, time, event.stored))
    }
}

/// Memory that recorded code found by what no recorded code wrote, or in which it read such a thing.
#[derive(Debug, Default)]
pub struct UnseenLinks {
    /// Blocks, by the times of their allocations.
    pub blocks: FxHashSet<u64>,
    /// Addresses on stacks and elsewhere.
    pub others: BTreeSet<u64>,
}

/// What memory holds.
pub struct Values {
    pages: FxHashMap<u64, Box<[Word]>>,
    /// Pages that were written as a whole before anything else was known of them, and what each byte
    /// was then.
    filled: FxHashMap<u64, Option<u8>>,
    pending: Pending,
    blocks: Blocks,
    /// The memory that the last allocation or release made another.
    pub renewed: Vec<(u64, u64)>,
    /// The blocks that are stacks, by the times of their allocation.
    stacks: FxHashSet<u64>,
    /// The blocks that were zero then.
    zeroed: FxHashSet<u64>,
    /// Words that are neither in blocks nor global, most of them on the stack of the first thread.
    unknown: FxHashSet<u64>,
    /// Words that were read and that no recorded code wrote, or not what was read.
    unseen_words: FxHashSet<u64>,
    pub links: UnseenLinks,
    /// Whether there was more memory than is compared.
    pub is_full: bool,
    /// Whether memory is as the program found it when it started: not in a process that was forked.
    is_fresh: bool,
    /// Whether the last access was to what its thread had accessed last itself.
    pub was_own: bool,
}

impl Values {
    pub fn new() -> Self {
        Self {
            pages: FxHashMap::default(),
            filled: FxHashMap::default(),
            pending: Pending::default(),
            blocks: Blocks::default(),
            renewed: Vec::new(),
            stacks: FxHashSet::default(),
            zeroed: FxHashSet::default(),
            unknown: FxHashSet::default(),
            unseen_words: FxHashSet::default(),
            links: UnseenLinks::default(),
            is_full: false,
            is_fresh: true,
            was_own: false,
        }
    }

    /// Takes the next event; says if it is a read that the events before do not explain.
    pub fn step(
        &mut self,
        thread: u32,
        event: &Event,
        time: Time,
        symbols: &mut dyn Symbols,
    ) -> Option<Unexplained> {
        if let Some((access, then, Some(stored))) = self.pending.settle(thread, event) {
            self.settle(access, stored, then);
        }
        match event.kind {
            Kind::Maps => self.unknown.clear(),
            Kind::Begin if event.extra.is_some() => self.is_fresh = false,
            Kind::Alloc | Kind::Free => self.change_blocks(event),
            _ => {}
        }
        let access = Access::new(event)?;
        if matches!(event.kind, Kind::ReadRange | Kind::WriteRange) {
            self.pass_over(access, event.value.map(|byte| byte as u8), thread, time);
            return None;
        }
        let (seen, left) = match event.kind {
            Kind::Read | Kind::AtomicLoad | Kind::AtomicFailed => (event.value, event.value),
            Kind::AtomicUpdate => (event.value, event.extra),
            Kind::AtomicStore => (None, event.value),
            _ => (None, None),
        };
        if event.kind == Kind::Write {
            self.pending.0.insert(thread, (access, time));
        }
        let mut read = Unexplained::default();
        let mut was_own = true;
        let mut is_untouched = [false; 2];
        let places = access.words().zip(&mut read.words).zip(&mut is_untouched);
        for (((number, from, to), found), is_untouched) in places {
            let Some(word) = self.word(number) else { continue };
            *is_untouched = word.touched & bytes_of(from..to) == 0;
            was_own &= word.is_last_of(&(from..to), thread);
            if let Some(seen) = seen {
                let value = in_word(seen, access, number);
                let differing = word.differing(from..to, value);
                *found = (number, differing);
                if differing != 0 {
                    read.since = read.since.min(word.first_access(differing));
                } else if *is_untouched && value & mask(from..to) != 0 {
                    *found = (number, bytes_of(from..to));
                    (read.since, read.is_initial) = (0, true);
                }
            }
            match left {
                Some(left) => word.set(from..to, in_word(left, access, number)),
                None if access.writes => word.known &= !bytes_of(from..to),
                None => {}
            }
            word.touch(from..to, thread, time);
        }
        self.was_own = was_own;
        if access.writes && event.kind != Kind::AtomicUpdate {
            self.forget_unseen(access.start, access.end);
        } else {
            self.note_read(access, seen, &read, is_untouched);
        }
        let is_found = read.words.iter().any(|&(_, bytes)| bytes != 0)
            && (!read.is_initial || self.is_zeroed(access.start, symbols))
            && self.is_comparable(access.start, symbols);
        read.is_count = is_found && self.is_reference_count(event, access, symbols);
        is_found.then_some(read)
    }

    /// What is from `start` to `end` is written by recorded code, or other memory by now.
    fn forget_unseen(&mut self, start: u64, end: u64) {
        if self.unseen_words.is_empty() || start >= end {
            return;
        }
        let words = start / WORD_BYTES..=(end - 1) / WORD_BYTES;
        if words.end() - words.start() < self.unseen_words.len() as u64 {
            words.for_each(|word| _ = self.unseen_words.remove(&word));
        } else {
            self.unseen_words.retain(|word| !words.contains(word));
        }
    }

    /// Recorded code has read words, with a value that may be known: `read` says which of them differ
    /// from what it left there, `is_untouched` which it had not accessed before.
    fn note_read(
        &mut self,
        access: Access,
        value: Option<u64>,
        read: &Unexplained,
        is_untouched: [bool; 2],
    ) {
        // Nobody needs to write the zeroes of memory that was zero from the start.
        let is_zero = is_untouched != [false; 2] && value == Some(0);
        let is_initial = is_zero && self.is_in_zeroed_block(access.start);
        let mut is_any = false;
        let words = access.words().zip(read.words).zip(is_untouched);
        for (((number, ..), (_, differing)), is_untouched) in words {
            if differing != 0 || is_untouched && !is_initial {
                self.unseen_words.insert(number);
                is_any = true;
            } else if !self.unseen_words.is_empty() {
                is_any |= self.unseen_words.contains(&number);
            }
        }
        if is_any {
            let is_whole = access.end - access.start == WORD_BYTES;
            let target = value.filter(|_| is_whole);
            for address in [Some(access.start), target].into_iter().flatten() {
                let block = self.blocks.holding(address).map(|block| block.time);
                match block.filter(|time| !self.stacks.contains(time)) {
                    Some(block) => _ = self.links.blocks.insert(block),
                    None => _ = self.links.others.insert(address),
                }
            }
        }
    }

    /// Whether the memory at `address` was zero when it became what it is.
    fn is_zeroed(&self, address: u64, symbols: &mut dyn Symbols) -> bool {
        match self.blocks.holding(address) {
            Some(block) => self.zeroed.contains(&block.time),
            None => self.is_fresh && symbols.is_zeroed(address),
        }
    }

    fn is_in_zeroed_block(&self, address: u64) -> bool {
        self.blocks.holding(address).is_some_and(|block| self.zeroed.contains(&block.time))
    }

    /// Whether `event` is of one of the two counters with which blocks of Rust's `Arc` begin. The
    /// library counts its own references to what threads end with, and is not rebuilt.
    fn is_reference_count(&self, event: &Event, access: Access, symbols: &mut dyn Symbols) -> bool {
        let is_counter = |at: u64| at == 0 || at == WORD_BYTES;
        let block = self.blocks.holding(access.start);
        access.is_atomic
            && access.end - access.start == WORD_BYTES
            && block.is_some_and(|block| is_counter(access.start - block.base))
            && symbols.functions(event.code).iter().any(|name| name.contains("core::sync::atomic"))
    }

    /// Whether the accesses to what is at `address` show what it holds.
    fn is_comparable(&mut self, address: u64, symbols: &mut dyn Symbols) -> bool {
        if let Some(block) = self.blocks.holding(address) {
            return !self.stacks.contains(&block.time);
        }
        let word = address / WORD_BYTES;
        if self.unknown.contains(&word) {
            return false;
        }
        let is_own = |name: &str| !LIBRARY_NAMES.iter().any(|library| name.starts_with(library));
        let is_global = match symbols.data(address) {
            Some((name, _)) => is_own(&name),
            None => symbols.is_global(address),
        };
        if !is_global {
            self.unknown.insert(word);
        }
        is_global
    }

    fn change_blocks(&mut self, event: &Event) {
        let Some(change) = self.blocks.step(event) else { return };
        self.renewed.clear();
        self.renewed.extend(change.renewed());
        let Change { born, released, lost, .. } = change;
        for (start, end) in self.renewed.clone() {
            self.renew(start, end);
        }
        for time in released.iter().chain(&lost) {
            self.stacks.remove(time);
            self.zeroed.remove(time);
        }
        let born = born.map(|block| block.time);
        self.stacks.extend(born.filter(|_| event.flags & flag::STACK != 0));
        self.zeroed.extend(born.filter(|_| event.flags & flag::ZEROED != 0));
    }

    /// It is known now what the write of `access` at `time` stored; unless somebody else was there since.
    fn settle(&mut self, access: Access, stored: u64, time: Time) {
        for (number, from, to) in access.words() {
            if let Some(word) = self.word(number)
                && word.is_last(from..to, time)
            {
                word.set(from..to, in_word(stored, access, number));
            }
        }
    }

    /// A range is accessed, of which no value is known unless each byte is written as `fill`. It may
    /// be long, so whole pages of which nothing is known are only noted.
    fn pass_over(&mut self, access: Access, fill: Option<u8>, thread: u32, time: Time) {
        self.was_own = true;
        if access.writes {
            self.forget(access.start, access.end);
            self.forget_unseen(access.start, access.end);
        }
        for part in access.parts() {
            let number = part.start / PAGE_BYTES;
            if part.end - part.start == PAGE_BYTES && !self.pages.contains_key(&number) {
                self.filled.extend(access.writes.then_some((number, fill)));
                continue;
            }
            for (number, from, to) in part.words() {
                let Some(word) = self.word(number) else { break };
                let is_own = word.is_last_of(&(from..to), thread);
                // What a read saw is not known, so a later one is compared with what came before.
                match access.writes {
                    true => word.touch(from..to, thread, time),
                    false => word.note_accessor(&(from..to), thread),
                }
                if let Some(byte) = fill.filter(|_| access.writes) {
                    word.set(from..to, repeated(byte));
                }
                self.was_own &= is_own;
            }
        }
    }

    /// The pages that hold some of the memory from `start` to `end`.
    fn pages_within(&self, start: u64, end: u64) -> Vec<u64> {
        let pages = start / PAGE_BYTES..=end.saturating_sub(1) / PAGE_BYTES;
        // A block can be much larger than the memory that was touched.
        match pages.end() - pages.start() > self.pages.len() as u64 {
            true => self.pages.keys().copied().filter(|number| pages.contains(number)).collect(),
            false => pages.filter(|number| self.pages.contains_key(number)).collect(),
        }
    }

    /// The memory from `start` to `end` may hold anything.
    fn forget(&mut self, start: u64, end: u64) {
        for number in self.pages_within(start, end) {
            let Some(page) = self.pages.get_mut(&number) else { continue };
            page[words_within(number, start, end)].iter_mut().for_each(|word| word.known = 0);
        }
    }

    /// The memory from `start` to `end` is another from now on.
    fn renew(&mut self, start: u64, end: u64) {
        self.forget_unseen(start, end);
        for number in self.pages_within(start, end) {
            let words = words_within(number, start, end);
            if words == (0..PAGE_WORDS) {
                self.pages.remove(&number);
            } else if let Some(page) = self.pages.get_mut(&number) {
                page[words].fill(Word::default());
            }
        }
        if end - start >= PAGE_BYTES {
            let pages = start.div_ceil(PAGE_BYTES)..end / PAGE_BYTES;
            self.filled.retain(|number, _| !pages.contains(number));
        }
    }

    /// The word `number`, unless there is more memory than is compared.
    fn word(&mut self, number: u64) -> Option<&mut Word> {
        let (page, place) = (number / PAGE_WORDS as u64, number as usize % PAGE_WORDS);
        let Self { pages, filled, .. } = self;
        if pages.len() >= PAGES_MAX && !pages.contains_key(&page) {
            self.is_full = true;
            return None;
        }
        let page = pages.entry(page).or_insert_with(|| {
            let filled = filled.remove(&page);
            let all = |holds: bool| if holds { u8::MAX } else { 0 };
            let (touched, known) = (all(filled.is_some()), all(filled.flatten().is_some()));
            let value = filled.flatten().map_or(0, repeated);
            vec![Word { value, known, touched, ..Word::default() }; PAGE_WORDS].into_boxed_slice()
        });
        Some(&mut page[place])
    }
}

impl Word {
    /// The bytes of `range` that are known and not as in `value`.
    fn differing(&self, range: Range<u8>, value: u64) -> u8 {
        let other = (self.value ^ value).to_le_bytes();
        let differs = |byte: &u8| self.known >> byte & 1 == 1 && other[usize::from(*byte)] != 0;
        range.filter(differs).fold(0, |bytes, byte| bytes | 1 << byte)
    }

    /// When one of `bytes` was last accessed: the first of these times.
    fn first_access(&self, bytes: u8) -> Time {
        let time = |byte: usize| match &self.bytes {
            Some(bytes) => bytes[byte],
            None => self.halves[byte / 4],
        };
        (0..8).filter(|byte| bytes >> byte & 1 == 1).map(time).min().unwrap_or(0)
    }

    fn set(&mut self, range: Range<u8>, value: u64) {
        let mask = mask(range.clone());
        self.value = self.value & !mask | value & mask;
        self.known |= bytes_of(range);
    }

    fn touch(&mut self, range: Range<u8>, thread: u32, time: Time) {
        match (range.start, range.end) {
            (0, 8) => (self.halves, self.bytes) = ([time; 2], None),
            (0, 4) if self.bytes.is_none() => self.halves[0] = time,
            (4, 8) if self.bytes.is_none() => self.halves[1] = time,
            (start, end) => {
                let [first, second] = self.halves;
                let times =
                    || Box::new([first, first, first, first, second, second, second, second]);
                self.bytes.get_or_insert_with(times)[start.into()..end.into()].fill(time);
            }
        }
        self.note_accessor(&range, thread);
        self.touched |= bytes_of(range);
    }

    fn note_accessor(&mut self, range: &Range<u8>, thread: u32) {
        self.accessors[halves(range)].fill(thread.wrapping_add(1));
    }

    /// Whether nobody but `thread` was the last to access the bytes of `range`.
    fn is_last_of(&self, range: &Range<u8>, thread: u32) -> bool {
        let mut accessors = self.accessors[halves(range)].iter();
        accessors.all(|&accessor| [0, thread.wrapping_add(1)].contains(&accessor))
    }

    /// Whether the access of `range` at `time` was the last one.
    fn is_last(&self, range: Range<u8>, time: Time) -> bool {
        match &self.bytes {
            Some(bytes) => bytes[range.start.into()..range.end.into()].iter().all(|&at| at == time),
            None => self.halves[usize::from(range.start / 4)] == time,
        }
    }
}

/// A bit for each byte of `range`.
const fn bytes_of(range: Range<u8>) -> u8 {
    ((1_u32 << range.end) - (1 << range.start)) as u8
}

/// A word of which each byte is `byte`.
const fn repeated(byte: u8) -> u64 {
    u64::from_le_bytes([byte; WORD_BYTES as usize])
}

/// All bits of the bytes of `range`.
fn mask(range: Range<u8>) -> u64 {
    let below = |byte: u8| if byte >= 8 { u64::MAX } else { (1_u64 << (8 * byte)) - 1 };
    below(range.end) & !below(range.start)
}

/// The words of page `number` that the memory from `start` to `end` touches.
fn words_within(number: u64, start: u64, end: u64) -> Range<usize> {
    let base = number * PAGE_BYTES;
    let from = start.max(base) - base;
    let to = end.min(base.saturating_add(PAGE_BYTES)) - base;
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

/// The byte at `address` of `value`, which is at `access`.
pub const fn byte_of(value: u64, access: Access, address: u64) -> u8 {
    (value >> (8 * (address - access.start))) as u8
}
