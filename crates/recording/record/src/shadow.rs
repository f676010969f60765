//! Which memory do threads share, and into what must it be cut so that no access covers a part?
//!
//! A trace speaks of variables, a program of overlapping accesses to bytes. Memory is looked at in
//! *shadow words* of eight aligned bytes, each from one allocation or release of some of it to the
//! next: a *lifetime*. Within a lifetime the cells of a word are the coarsest pieces whose borders
//! include the borders of every access. Neighbouring words that are one cell each, and that every
//! access covers together, are one cell: what long copies and fills alone access is one variable, as
//! long as it may be. A lifetime is *kept* when two threads contend for the word:
//! two of their accesses, of which one writes, are not ordered by forks, joins and the order within
//! threads; who frees memory counts as one who writes there. What is only handed over so, from those who initialise to those who work to those who
//! gather, is accessed in the same order by every run, and no analysis can tell whether it is there.
//!
//! [`SharingAnalysis`] finds this in one pass over a recording; [`ShadowCells`] is its answer. A
//! lifetime is named by when it was, counted in allocations and releases, so whoever asks needs to
//! count these and nothing more.
//!
//! Sixteen bytes per word that the program touched, where pages were not always touched as a
//! whole in the same way, and 32 per kept lifetime, of one word or of many. An access costs one look
//! into a table, a long one a look for every page.

mod blocks;
mod cells;

use std::collections::BTreeMap;
use std::ops::Range;

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind, flag};

pub use blocks::{Block, Blocks, Change};
pub use cells::{Cell, Lifetime, ShadowCells};

/// The bytes of a shadow word.
pub const WORD_BYTES: u64 = 8;

/// Shadow words come in pages of so many.
pub(crate) const PAGE_WORDS: usize = 512;

pub(crate) const PAGE_BYTES: u64 = PAGE_WORDS as u64 * WORD_BYTES;

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
        let length = if is_range {
            event.extra.unwrap_or(0).min(ACCESS_BYTES_MAX)
        } else {
            1 << event.size.min(3)
        };
        let start = event.address;
        let end = start.saturating_add(length);
        (start < end).then_some(Self { start, end, writes, is_atomic })
    }

    /// Its parts in each page of words, by address.
    pub fn parts(self) -> impl Iterator<Item = Self> {
        (self.start / PAGE_BYTES..=(self.end - 1) / PAGE_BYTES).map(move |page| {
            let start = self.start.max(page * PAGE_BYTES);
            let end = (page * PAGE_BYTES).saturating_add(PAGE_BYTES).min(self.end);
            Self { start, end, ..self }
        })
    }

    /// Its part of the word that holds the byte `at`, in bytes of the word.
    pub(crate) const fn within_word(self, at: u64) -> (u8, u8) {
        let base = at / WORD_BYTES * WORD_BYTES;
        let from = self.start.saturating_sub(base);
        let to = if self.end - base < WORD_BYTES { self.end - base } else { WORD_BYTES };
        (from as u8, to as u8)
    }

    /// Whether a part is all of its page.
    const fn is_page(self) -> bool {
        self.end - self.start == PAGE_BYTES
    }

    /// The words it touches, by number, with the bytes of each that it covers.
    pub fn words(self) -> impl Iterator<Item = (u64, u8, u8)> {
        (self.start / WORD_BYTES..=(self.end - 1) / WORD_BYTES).map(move |word| {
            let (from, to) = self.within_word(word * WORD_BYTES);
            (word, from, to)
        })
    }
}

/// Drops the things whose addresses are from `start` up to `end`.
pub fn drop_within<T>(things: &mut BTreeMap<u64, T>, start: u64, end: u64) {
    while let Some((&address, _)) = things.range(start..end).next() {
        things.remove(&address);
    }
}

#[inline]
fn split(word: u64) -> (u64, usize) {
    (word / PAGE_WORDS as u64, (word % PAGE_WORDS as u64) as usize)
}

// Which accesses come before which in every run: by fork, join and the order within threads.
//
// A thread's life is cut into *segments* where it creates or joins another. All of a segment comes
// before all of another one, or neither does; a vector clock for each segment says which. Accesses
// are then remembered by segment: the last write and the reads since, of which there may be several
// that are in no order.
//
// Segments are as many as forks and joins, and so are clocks, each as long as there are threads. In
// a program with more threads than [`THREADS_MAX`] nothing counts as ordered but what one thread
// does.

/// With more threads than this, clocks would take too much memory.
const THREADS_MAX: usize = 4096;

/// A stretch of a thread between forks and joins.
#[derive(Clone, Debug)]
struct Segment {
    thread: usize,
    index: u32,
    /// For each thread how many of its segments come before this one.
    clock: Vec<u32>,
}

/// The segments of a recording, as far as it was read.
#[derive(Debug, Default)]
struct Segments {
    threads: FxHashMap<u32, usize>,
    /// The segment that each thread is in.
    current: Vec<u32>,
    segments: Vec<Segment>,
    /// The thread that was asked for last, and its segment: most questions repeat.
    last: Option<(u32, u32)>,
}

impl Segments {
    /// Takes note of an event that may begin segments.
    #[inline]
    fn step(&mut self, thread: u32, event: &Event) {
        match event.kind {
            Kind::Fork => self.fork(thread, event.address as u32),
            Kind::Join => self.join(thread, event.address as u32, event.flags & flag::TASK != 0),
            _ => {}
        }
    }

    /// The segment that `thread` is in.
    #[inline]
    fn of(&mut self, thread: u32) -> u32 {
        match self.last {
            Some((last, segment)) if last == thread => segment,
            _ => {
                let place = self.place(thread);
                let segment = self.current[place];
                self.last = Some((thread, segment));
                segment
            }
        }
    }

    /// Whether all of segment `first` comes before, or is part of, `second`.
    #[inline]
    fn precedes(&self, first: u32, second: u32) -> bool {
        if first == second {
            return true;
        }
        let [first, second] = [first, second].map(|place| &self.segments[place as usize]);
        if first.thread == second.thread {
            return first.index <= second.index;
        }
        second.clock.get(first.thread).is_some_and(|&count| first.index < count)
    }

    fn place(&mut self, thread: u32) -> usize {
        if let Some(&place) = self.threads.get(&thread) {
            return place;
        }
        let place = self.threads.len();
        self.threads.insert(thread, place);
        self.current.push(self.segments.len() as u32);
        self.segments.push(Segment { thread: place, index: 0, clock: Vec::new() });
        place
    }

    /// The clock of what comes after segment `place`.
    fn after(&self, place: u32) -> Vec<u32> {
        let Segment { thread, index, clock } = &self.segments[place as usize];
        let mut clock = clock.clone();
        raise(&mut clock, *thread, index + 1);
        clock
    }

    fn fork(&mut self, parent: u32, child: u32) {
        let is_new = !self.threads.contains_key(&child);
        let parent = self.place(parent);
        let child = self.place(child);
        self.last = None;
        if parent == child || self.threads.len() > THREADS_MAX {
            return;
        }
        if is_new {
            let first = self.current[child] as usize;
            self.segments[first].clock = self.after(self.current[parent]);
        }
        self.next_segment(parent, None);
    }

    /// `parent` joins `child`, which, if it `is_over` for sure, others may have joined already.
    fn join(&mut self, parent: u32, child: u32, is_over: bool) {
        let parent = self.place(parent);
        let child = self.place(child);
        self.last = None;
        if parent == child || self.threads.len() > THREADS_MAX {
            return;
        }
        if is_over && self.precedes(self.current[child], self.current[parent]) {
            return;
        }
        self.next_segment(parent, Some(self.current[child]));
        if !is_over {
            // Should the thread go on all the same, that is not what was joined.
            self.next_segment(child, None);
        }
    }

    /// Begins a segment of thread `place`, after segment `other` too.
    fn next_segment(&mut self, place: usize, other: Option<u32>) {
        let Segment { thread, index, mut clock } =
            self.segments[self.current[place] as usize].clone();
        if let Some(other) = other {
            for (of, count) in self.after(other).into_iter().enumerate() {
                raise(&mut clock, of, count);
            }
        }
        self.current[place] = self.segments.len() as u32;
        self.segments.push(Segment { thread, index: index + 1, clock });
    }
}

fn raise(clock: &mut Vec<u32>, thread: usize, count: u32) {
    if clock.len() <= thread {
        clock.resize(thread + 1, 0);
    }
    clock[thread] = clock[thread].max(count);
}

/// The segments of the last accesses to a word: 0 for none, else one more than the segment, or
/// than a set of them with [`SET`] added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Last {
    write: u32,
    reads: u32,
}

/// Marks a number as that of a set.
const SET: u32 = 1 << 31;

/// Sets of segments, each kept once.
#[derive(Debug, Default)]
struct Sets {
    sets: Vec<Box<[u32]>>,
    ids: FxHashMap<Box<[u32]>, u32>,
    /// What became of a set when a segment was added.
    grown: FxHashMap<(u32, u32), u32>,
}

impl Last {
    /// Takes note of an access in `segment`; false if it is in no order with one that it conflicts
    /// with.
    #[inline]
    fn is_ordered(
        &mut self,
        segments: &Segments,
        sets: &mut Sets,
        segment: u32,
        writes: bool,
    ) -> bool {
        if self.write != 0 && !segments.precedes(self.write - 1, segment) {
            return false;
        }
        if writes {
            let ordered = sets.precede(segments, self.reads, segment);
            (self.write, self.reads) = (segment + 1, 0);
            return ordered;
        }
        if self.reads != segment + 1 {
            self.reads = sets.with(segments, self.reads, segment);
        }
        true
    }
}

impl Sets {
    fn members(&self, reads: u32) -> &[u32] {
        &self.sets[(reads & !SET) as usize - 1]
    }

    /// Whether all of `reads` come before `segment`.
    fn precede(&self, segments: &Segments, reads: u32, segment: u32) -> bool {
        match reads {
            0 => true,
            _ if reads & SET == 0 => segments.precedes(reads - 1, segment),
            _ => self.members(reads).iter().all(|&read| segments.precedes(read, segment)),
        }
    }

    /// `reads` with `segment` in it, and without what comes before that.
    fn with(&mut self, segments: &Segments, reads: u32, segment: u32) -> u32 {
        if reads == 0 || reads & SET == 0 && segments.precedes(reads - 1, segment) {
            return segment + 1;
        }
        if let Some(&grown) = self.grown.get(&(reads, segment)) {
            return grown;
        }
        let mut members = match reads & SET {
            0 => vec![reads - 1],
            _ => self.members(reads).to_vec(),
        };
        members.retain(|&read| !segments.precedes(read, segment));
        members.push(segment);
        members.sort_unstable();
        let grown = match *members {
            [only] => only + 1,
            _ => self.id(members.into()),
        };
        self.grown.insert((reads, segment), grown);
        grown
    }

    fn id(&mut self, members: Box<[u32]>) -> u32 {
        if let Some(&id) = self.ids.get(&members) {
            return id;
        }
        self.sets.push(members.clone());
        let id = self.sets.len() as u32 | SET;
        self.ids.insert(members, id);
        id
    }
}

// The pass that finds which memory is shared.
//
// What is known of words is kept by pages. As long as a page was only accessed as a whole, as
// long copies and fills do, one entry stands for all its words. Other pages have an entry each;
// when these have become many, those that say the same everywhere are made one entry again.

/// What is known of a word in its present lifetime.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct ShadowWord {
    /// The time of the first access, which has 48 bits; eight bits for cuts, of which the first is
    /// not used; flags. Of a word that was freed and not accessed since: when that was.
    first: u64,
    last: Last,
}

impl ShadowWord {
    const IS_KNOWN: u64 = 1;
    const IS_KEPT: u64 = 2;
    /// An access begins with its first byte.
    const BEGINS: u64 = 4;
    /// An access ends with its last byte.
    const ENDS: u64 = 8;
    /// It was accessed, then freed, and neither allocated nor accessed since.
    const IS_FREED: u64 = 16;
    const CUTS: u32 = 8;
    /// What keeps it from being one cell with words on both sides.
    const BORDERS: u64 = Self::BEGINS | Self::ENDS | 0xff << Self::CUTS;
    const START: u32 = 16;

    const fn is(self, flag: u64) -> bool {
        self.first & flag != 0
    }

    /// The lifetime of this word, which has the number `word`, if it is to be kept.
    fn lifetime(self, word: u64, end: u64) -> Option<Lifetime> {
        let cuts = (self.first >> Self::CUTS) as u8 | 1;
        let lifetime = Lifetime { word, start: self.start(), end, words: 1, cuts };
        self.is(Self::IS_KEPT).then_some(lifetime)
    }

    const fn start(self) -> u64 {
        self.first >> Self::START
    }

    /// What is left of it when it is freed at `time`.
    const fn freed(self, time: u64) -> Self {
        let first = if self.is(Self::IS_KNOWN) { time << Self::START | Self::IS_FREED } else { 0 };
        Self { first, last: Last { write: 0, reads: 0 } }
    }

    /// Whether this word and the one after it, of which `next` is known, are one cell.
    const fn joins(self, next: Self) -> bool {
        // Where only one of them was released, the other one's first access is an earlier one.
        self.first & Self::BORDERS & !Self::BEGINS == 0
            && next.first & Self::BORDERS & !Self::ENDS == 0
            && self.start() == next.start()
    }

    const fn with(self, flag: u64, is_set: bool) -> Self {
        Self { first: if is_set { self.first | flag } else { self.first }, ..self }
    }
}

const _: () = assert!(size_of::<ShadowWord>() == 16, "a program has many shadow words");

/// An access, as far as a word needs to know it.
#[derive(Clone, Copy)]
struct Touch {
    time: u64,
    segment: u32,
    writes: bool,
    keeps_all: bool,
    /// Whether it frees a block, and what it frees is to be known as freed later.
    remembers: bool,
}

/// The borders that `access` has in `word`, or before or after it, of whose bytes it covers those
/// from `from` to `to`.
#[inline]
const fn borders(access: Access, word: u64, from: u8, to: u8) -> u64 {
    let inner = (1_u64 << from | 1_u64 << to) & 0xfe;
    let mut borders = inner << ShadowWord::CUTS;
    // The last words of all are no memory, but nothing stops a damaged recording from naming them.
    if word.wrapping_mul(WORD_BYTES) == access.start {
        borders |= ShadowWord::BEGINS;
    }
    if word.wrapping_add(1).wrapping_mul(WORD_BYTES) == access.end {
        borders |= ShadowWord::ENDS;
    }
    borders
}

impl Touch {
    /// What is known of a word after it was accessed, by an access that has `borders` there.
    #[inline]
    fn of(
        self,
        mut known: ShadowWord,
        borders: u64,
        segments: &Segments,
        sets: &mut Sets,
    ) -> ShadowWord {
        if !known.is(ShadowWord::IS_KNOWN) {
            let flags = ShadowWord::IS_KNOWN | if self.keeps_all { ShadowWord::IS_KEPT } else { 0 };
            known.first = self.time << ShadowWord::START | flags;
        }
        if !known.is(ShadowWord::IS_KEPT)
            && !known.last.is_ordered(segments, sets, self.segment, self.writes)
        {
            known.first |= ShadowWord::IS_KEPT;
        }
        known.first |= borders;
        known
    }
}

struct Page {
    number: u64,
    /// What is known of all words, unless each has an entry of its own.
    whole: ShadowWord,
    /// Besides, [`ShadowWord::BEGINS`] of the first word and [`ShadowWord::ENDS`] of the last.
    outer_borders: u64,
    words: Option<Box<[ShadowWord; PAGE_WORDS]>>,
}

impl Page {
    const fn new(number: u64) -> Self {
        let whole = ShadowWord { first: 0, last: Last { write: 0, reads: 0 } };
        Self { number, whole, outer_borders: 0, words: None }
    }

    /// Whether anything is known of a word.
    const fn is_touched(&self) -> bool {
        self.words.is_some() || self.whole.is(ShadowWord::IS_KNOWN)
    }

    /// Gives each word an entry of its own.
    fn split(&mut self) -> &mut [ShadowWord; PAGE_WORDS] {
        let (whole, outer) = (self.whole, std::mem::take(&mut self.outer_borders));
        self.words.get_or_insert_with(|| {
            let mut words = Box::new([whole; PAGE_WORDS]);
            words[0].first |= outer & ShadowWord::BEGINS;
            words[PAGE_WORDS - 1].first |= outer & ShadowWord::ENDS;
            words
        })
    }

    /// Ends the lifetimes of the words from `from` up to `to`, of which some are in this page;
    /// gives them to `ended`. What `remembers` it can tell later that it was freed.
    fn end(
        &mut self,
        (from, to): (u64, u64),
        remembers: bool,
        freed: &mut impl FnMut(ShadowWord) -> ShadowWord,
        ended: &mut Ended<impl FnMut(Lifetime)>,
    ) {
        let base = self.number * PAGE_WORDS as u64;
        let (from, to) = (from.max(base), to.min(base + PAGE_WORDS as u64));
        let is_all = to - from == PAGE_WORDS as u64;
        if self.words.is_none() && !is_all && self.whole.first != 0 {
            self.split();
        }
        match &mut self.words {
            Some(words) => {
                for word in from..to {
                    let known = &mut words[(word - base) as usize];
                    let left = if remembers { known.freed(ended.time) } else { Default::default() };
                    ended.add(word, 1, freed(std::mem::replace(known, left)));
                }
            }
            None if self.whole.is(ShadowWord::IS_KNOWN) => {
                let whole = freed(self.whole);
                let with_outer = |flag| whole.with(flag, self.outer_borders & flag == flag);
                ended.add(from, 1, with_outer(ShadowWord::BEGINS));
                ended.add(from + 1, PAGE_WORDS as u64 - 2, whole);
                ended.add(to - 1, 1, with_outer(ShadowWord::ENDS));
            }
            None => {}
        }
        if is_all && !(remembers && self.words.is_some()) {
            *self = Self::new(self.number);
        }
    }

    /// Makes all entries one if they say the same; says whether there are several still.
    fn merge(&mut self) -> bool {
        let Some(words) = &self.words else { return false };
        let whole = words[1];
        let (first, last) = (words[0], words[PAGE_WORDS - 1]);
        // The first and the last word may have a border on the outside that the others lack.
        let is_whole = |word: ShadowWord, outer| word == whole || word == whole.with(outer, true);
        if is_whole(first, ShadowWord::BEGINS)
            && is_whole(last, ShadowWord::ENDS)
            && words[1..PAGE_WORDS - 1].iter().all(|word| *word == whole)
        {
            self.outer_borders = first.first & ShadowWord::BEGINS | last.first & ShadowWord::ENDS;
            (self.whole, self.words) = (whole, None);
        }
        self.words.is_some()
    }
}

/// Takes the words of some memory whose lifetimes end, by address, and joins those that are one cell.
struct Ended<F: FnMut(Lifetime)> {
    /// The words that are only in part in this memory.
    partial: [Option<u64>; 2],
    time: u64,
    /// The lifetime that may go on with the next word, and what is known of its last word.
    open: Option<(Lifetime, ShadowWord)>,
    keep: F,
}

impl<F: FnMut(Lifetime)> Ended<F> {
    /// The memory from `start` to `end` ends at `time`; kept lifetimes go to `keep`.
    fn new(start: u64, end: u64, time: u64, keep: F) -> Self {
        let border = |at: u64, word: u64| (!at.is_multiple_of(WORD_BYTES)).then_some(word);
        let partial =
            [border(start, start / WORD_BYTES), border(end, end.saturating_sub(1) / WORD_BYTES)];
        Self { partial, time, open: None, keep }
    }

    /// Takes `count` words from `word` on, of each of which `known` is known.
    fn add(&mut self, word: u64, count: u64, mut known: ShadowWord) {
        if self.partial.contains(&Some(word)) {
            known.first |= ShadowWord::BEGINS | ShadowWord::ENDS;
        }
        let Some(mut lifetime) = known.lifetime(word, self.time) else { return };
        if count > 1 && !known.joins(known) {
            return (word..word + count).for_each(|word| self.add(word, 1, known));
        }
        if let Some((open, last)) = &mut self.open
            && open.words_end() == word
            && last.joins(known)
            && let Some(words) = open.words.checked_add(count as u32)
        {
            (open.words, *last) = (words, known);
            return;
        }
        lifetime.words = count as u32;
        self.open.replace((lifetime, known)).into_iter().for_each(|(open, _)| (self.keep)(open));
    }

    fn finish(mut self) {
        self.open.take().into_iter().for_each(|(open, _)| (self.keep)(open));
    }
}

/// Looks at a recording from its beginning and finds which memory its threads share.
#[derive(Default)]
pub struct SharingAnalysis {
    pages: Vec<Page>,
    places: FxHashMap<u64, usize>,
    /// The page of the last access: most are to the same one again.
    last: (u64, usize),
    /// How many more pages may get an entry for each word before we look which need it.
    cuts_left: usize,
    blocks: Blocks,
    lifetimes: Vec<Lifetime>,
    kept_blocks: Vec<u64>,
    segments: Segments,
    sets: Sets,
    keeps_all: bool,
    use_of_freed: Option<u64>,
}

/// A block of this size or more may be given back to the system when it is freed, and that may use its
/// addresses for something else out of sight.
pub const FREED_BYTES_MAX: u64 = 128 << 10;

/// So many pages get an entry for each word before we look which need it.
const CUTS_MIN: usize = 4096;

impl SharingAnalysis {
    /// Nothing was seen yet; `keeps_all` asks for every lifetime, contended or not.
    #[must_use]
    pub fn new(keeps_all: bool) -> Self {
        Self { last: (u64::MAX, 0), cuts_left: CUTS_MIN, keeps_all, ..Self::default() }
    }

    /// Takes note of the next event; says what it did if it was an allocation or a release.
    #[inline]
    pub fn step(&mut self, thread: u32, event: &Event) -> Option<Change> {
        if let Some(access) = Access::new(event) {
            let touch = Touch {
                time: self.blocks.time(),
                segment: self.segments.of(thread),
                writes: access.writes,
                keeps_all: self.keeps_all,
                remembers: false,
            };
            for part in access.parts() {
                if part.is_page() {
                    self.access_page(part.start / PAGE_BYTES, access, touch);
                    continue;
                }
                for (word, from, to) in part.words() {
                    self.access(word, borders(access, word, from, to), touch);
                }
            }
        } else if let Some(change) = self.blocks.step(event) {
            // Who frees memory must come after all who access it, as if it wrote there.
            let free = (event.kind == Kind::Free).then(|| Touch {
                time: self.blocks.time(),
                segment: self.segments.of(thread),
                writes: true,
                keeps_all: self.keeps_all,
                remembers: false,
            });
            let is_seen = event.kind == Kind::Free && event.flags & flag::ASSUMED == 0;
            self.end_lifetimes(&change, free, is_seen && event.extra.is_none());
            return Some(change);
        } else if event.is_hidden_alloc() {
            let end = event.address.saturating_add(event.extra.unwrap_or(0));
            if event.address < end {
                self.forget_freed(event.address, end);
            }
        } else {
            self.segments.step(thread, event);
        }
        None
    }

    /// How many allocations and releases came so far.
    pub const fn time(&self) -> u64 {
        self.blocks.time()
    }

    /// When memory was freed that the last event accessed all the same.
    pub const fn take_use_of_freed(&mut self) -> Option<u64> {
        self.use_of_freed.take()
    }

    /// What was freed from `start` up to `end` may be something else by now.
    fn forget_freed(&mut self, start: u64, end: u64) {
        let access = Access { start, end, writes: true, is_atomic: false };
        // Whoever asks forgets everything where a larger block was allocated.
        for (word, ..) in access.words().take((FREED_BYTES_MAX / WORD_BYTES) as usize) {
            let (number, place) = split(word);
            let Some(&page) = self.places.get(&number) else { continue };
            let page = &mut self.pages[page];
            if page.words.is_none() && page.whole.is(ShadowWord::IS_FREED) {
                page.split();
            }
            if let Some(words) = &mut page.words
                && words[place].is(ShadowWord::IS_FREED)
            {
                words[place] = ShadowWord::default();
            }
        }
    }

    #[inline]
    fn access(&mut self, word: u64, borders: u64, touch: Touch) {
        let (number, place) = split(word);
        let page = self.page(number);
        let (segments, sets) = (&self.segments, &mut self.sets);
        if let Some(words) = &mut self.pages[page].words {
            let before = words[place];
            words[place] = touch.of(before, borders, segments, sets);
            if before.is(ShadowWord::IS_FREED) {
                self.use_of_freed = Some(before.start());
            }
            return;
        }
        let before = self.pages[page].whole;
        let after = touch.of(before, borders, segments, sets);
        if after != before {
            let word = &mut self.cut(page)[place];
            let outer = word.first & ShadowWord::BORDERS;
            *word = ShadowWord { first: after.first | outer, ..after };
        }
    }

    /// An access to memory with all of the page `number`.
    fn access_page(&mut self, number: u64, access: Access, touch: Touch) {
        let page = self.page(number);
        let page = &mut self.pages[page];
        let first = number * PAGE_WORDS as u64;
        let outer = borders(access, first, 0, WORD_BYTES as u8) & ShadowWord::BEGINS
            | borders(access, first + PAGE_WORDS as u64 - 1, 0, WORD_BYTES as u8)
                & ShadowWord::ENDS;
        let known = match &mut page.words {
            Some(words) => &mut words[..],
            None => std::slice::from_mut(&mut page.whole),
        };
        for known in known {
            *known = touch.of(*known, 0, &self.segments, &mut self.sets);
        }
        match &mut page.words {
            Some(words) => {
                words[0].first |= outer & ShadowWord::BEGINS;
                words[PAGE_WORDS - 1].first |= outer & ShadowWord::ENDS;
            }
            None => page.outer_borders |= outer,
        }
    }

    /// Gives each word of the page at `place` an entry of its own.
    fn cut(&mut self, place: usize) -> &mut [ShadowWord; PAGE_WORDS] {
        if self.cuts_left == 0 {
            let count = self.pages.iter_mut().filter_map(|page| page.merge().then_some(())).count();
            // As much work again as was done since the last time.
            self.cuts_left = count.max(CUTS_MIN);
        }
        self.cuts_left -= 1;
        self.pages[place].split()
    }

    #[inline]
    fn page(&mut self, number: u64) -> usize {
        if self.last.0 != number {
            let pages = &mut self.pages;
            let place = *self.places.entry(number).or_insert_with(|| {
                pages.push(Page::new(number));
                pages.len() - 1
            });
            self.last = (number, place);
        }
        self.last.1
    }

    fn keep_named(&mut self, is_named: &mut dyn FnMut(Range<u64>) -> bool) {
        for page in self.pages.iter_mut().filter(|page| page.is_touched()) {
            let base = page.number * PAGE_WORDS as u64;
            if !is_named(base * WORD_BYTES..(base + PAGE_WORDS as u64) * WORD_BYTES) {
                continue;
            }
            for (word, known) in (base..).zip(page.split()) {
                let start = word * WORD_BYTES;
                if known.is(ShadowWord::IS_KNOWN) && is_named(start..start + WORD_BYTES) {
                    known.first |= ShadowWord::IS_KEPT;
                }
            }
        }
    }

    /// Ends what `change` ended, perhaps by a `free`: if that `is_of_block`, who uses it later is noted.
    fn end_lifetimes(&mut self, change: &Change, free: Option<Touch>, is_of_block: bool) {
        let end = self.blocks.time() - 1;
        for piece in &change.ended {
            let remembers = is_of_block && piece.end - piece.start < FREED_BYTES_MAX;
            let free = free.map(|free| Touch { remembers, ..free });
            self.end_memory((piece.start, piece.end), Some(piece.time), end, free);
        }
        if let Some(range) = change.range {
            self.end_memory(range, None, end, free);
        }
    }

    /// Ends the lifetimes of all words in the bytes from `start` to `end` at `time`, perhaps by a `free`;
    /// those kept make the block allocated at `owner` a kept one.
    fn end_memory(
        &mut self,
        (start, end): (u64, u64),
        owner: Option<u64>,
        time: u64,
        free: Option<Touch>,
    ) {
        let (from, to) = (start / WORD_BYTES, (end - 1) / WORD_BYTES + 1);
        let (first, last) = (split(from).0, split(to - 1).0);
        let remembers = free.is_some_and(|free| free.remembers);
        let (segments, sets) = (&self.segments, &mut self.sets);
        let mut freed = |known: ShadowWord| match free {
            Some(free) if known.is(ShadowWord::IS_KNOWN) => free.of(known, 0, segments, sets),
            _ => known,
        };
        let (lifetimes, kept_blocks) = (&mut self.lifetimes, &mut self.kept_blocks);
        let mut ended = Ended::new(start, end, time, |lifetime| {
            lifetimes.push(lifetime);
            kept_blocks.extend(owner);
        });
        // A block can be much larger than the memory that was touched.
        if last - first >= self.pages.len() as u64 {
            let touched =
                self.pages.iter_mut().filter(|page| (first..=last).contains(&page.number));
            let mut touched: Vec<&mut Page> = touched.collect();
            touched.sort_unstable_by_key(|page| page.number);
            for page in touched {
                page.end((from, to), remembers, &mut freed, &mut ended);
            }
        } else {
            for number in first..=last {
                if let Some(&place) = self.places.get(&number) {
                    self.pages[place].end((from, to), remembers, &mut freed, &mut ended);
                }
            }
        }
        ended.finish();
    }

    /// What was found, once all events were seen. Of memory that was never allocated, words of which
    /// a byte `is_named` are kept too.
    #[must_use]
    pub fn finish(mut self, is_named: Option<&mut dyn FnMut(Range<u64>) -> bool>) -> ShadowCells {
        // Lifetimes that never ended go on after all events.
        let live: Vec<_> = self.blocks.live().collect();
        for piece in live {
            self.end_memory((piece.start, piece.end), Some(piece.time), u64::MAX, None);
        }
        if let Some(is_named) = is_named {
            self.keep_named(is_named);
        }
        self.end_memory((0, u64::MAX), None, u64::MAX, None);
        ShadowCells::new(self.lifetimes, self.kept_blocks)
    }
}
