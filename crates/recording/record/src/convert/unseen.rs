//! Writes by code that was not recorded: which reads tell of them, and what do they order?
//!
//! Libraries that were not rebuilt and assembler write memory that recorded code reads. Where one
//! thread runs at a time, a read that sees something else than the accesses before it left there is
//! *unexplained*: some thread has written there since the last access, out of sight. What that thread
//! did before must come before the read in every reordering, or the read would see something else.
//! Nobody knows which thread it was, so the order is kept with all that it can have been, and marked
//! as assumed: it may hide a race but invents none, and `check` counts what it may hide.
//!
//! - An atomic read may itself be what orders threads. It comes after all that the threads did which
//!   ran since the last access. An update that acquires nothing, as of a counter of references, orders
//!   nothing more than the recorded run did.
//! - A plain read orders nothing. In a program without races the write happens before it by other
//!   means. If some were seen, it comes after what happens before it by these; that orders nothing
//!   more than the recorded run did. If none was seen, it is as for an atomic read; unless nobody else
//!   was ever seen to access this memory: then the thread's own libraries wrote it.
//!   Of memory that nobody was seen to access since the start, what was seen to order may have come
//!   before the write, so whoever ran and is not seen to come before may have written.
//!
//! The same holds of later reads, by any thread, until a recorded access writes there. What is on a
//! stack is another variable after each return and is not compared; nor is what no access has told the
//! value of, unless it is zero when the program starts; nor is memory beyond [`PAGES_MAX`] pages.
//!
//! What threads that run freely read and write is recorded in about the order in which it happened, and
//! without the values of plain reads. So only a read of what no recorded access ever wrote is
//! unexplained, and nobody knows what came before: who goes on depends on a read with an unknown writer.
//!
//! Forty bytes for each eight that are accessed; twice that where bytes are accessed one by one.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, Kind, flag, order};

use super::names::Symbols;
use super::scan::tells_stored;
use crate::event_log::Stream;
use crate::order::{Clock, Order, Ticks};
use crate::shadow::{Access, Blocks, Change, WORD_BYTES};

const PAGE_WORDS: usize = 512;

const PAGE_BYTES: u64 = PAGE_WORDS as u64 * WORD_BYTES;

/// How variables are called by which the libraries of C, C++ and Rust keep what concerns them alone.
const LIBRARY_NAMES: [&str; 2] = ["__libc_single_threaded", "std::"];

/// The most pages of four kibibytes whose values are compared.
const PAGES_MAX: usize = 1 << 15;

/// The most threads whose events are followed. What others did, nobody is seen to come after.
const CHAINS_MAX: usize = 1 << 10;

/// The place of an event in the stream, plus one: zero is before all.
type Time = u32;

/// Whether some read of the recording is unexplained, so that [`assumed_order`] has to be asked.
pub struct Search {
    values: Values,
    time: Time,
    has_forked: bool,
    is_found: bool,
}

impl Search {
    pub fn new() -> Self {
        Self { values: Values::new(), time: 0, has_forked: false, is_found: false }
    }

    /// Takes the next event.
    pub fn step(&mut self, thread: u32, event: &Event, symbols: &mut dyn Symbols) {
        self.has_forked |= event.kind == Kind::Fork;
        self.time = self.time.saturating_add(1);
        if !self.is_found {
            // As long as there is one thread, it wrote itself what it did not write.
            let read = self.values.step(thread, event, self.time, symbols);
            self.is_found = read.is_some() && self.has_forked;
        }
    }

    pub const fn is_found(&self) -> bool {
        self.is_found
    }
}

/// What the unseen writes are assumed to order of the recording that `open` opens, whose threads ran
/// freely or not.
pub fn assumed_order<S: Stream>(
    mut open: impl FnMut() -> io::Result<S>,
    is_free: bool,
    symbols: &mut dyn Symbols,
) -> io::Result<AssumedOrder> {
    let mut unwritten = None;
    if is_free {
        let mut bytes = UnwrittenBytes::default();
        for_each(&mut open()?, symbols, |_, event, read, _| bytes.note_read(event, read))?;
        bytes.drop_explained(&mut open()?)?;
        unwritten = Some(bytes);
    }
    let mut follower = Follower { is_free, ..Follower::default() };
    let mut time = 0;
    for_each(&mut open()?, symbols, |thread, event, read, values| {
        let is_unwritten = |read: &Unexplained| match &unwritten {
            Some(bytes) => bytes.is_in(event, read),
            None => true,
        };
        time += 1;
        follower.step(thread, event, time, read.filter(is_unwritten), values);
    })?;
    Ok(follower.assumed)
}

/// Calls `look` for each event of a recording with its thread, whether it is an unexplained read, and
/// what memory holds after it.
fn for_each(
    stream: &mut dyn Stream,
    symbols: &mut dyn Symbols,
    mut look: impl FnMut(u32, &Event, Option<Unexplained>, &Values),
) -> io::Result<()> {
    let mut values = Values::new();
    let mut time: Time = 0;
    while let Some((thread, event)) = stream.next_event()? {
        // A trace cannot be as long as that.
        let Some(next) = time.checked_add(1) else { break };
        time = next;
        if event.kind == Kind::Maps {
            symbols.maps(event.address);
        }
        let read = values.step(thread, &event, time, symbols);
        look(thread, &event, read, &values);
    }
    symbols.maps(0);
    Ok(())
}

/// Which events release, and which acquire, what stands for the order that unseen writes made.
#[derive(Debug, Default)]
pub struct AssumedOrder {
    /// By the time of the event, and whether it comes after the release.
    releases: FxHashMap<(Time, bool), u32>,
    acquires: FxHashMap<Time, Vec<u32>>,
    /// Reads by threads that ran freely: nobody knows what came before them.
    unknown: FxHashSet<Time>,
}

impl AssumedOrder {
    pub fn is_empty(&self) -> bool {
        self.acquires.is_empty() && self.unknown.is_empty()
    }

    /// Whether nobody knows what comes before the event at `place` of the stream.
    pub fn is_unknown_at(&self, place: u64) -> bool {
        time_of(place).is_some_and(|time| self.unknown.contains(&time))
    }

    /// What the event at `place` of the stream acquires first.
    pub fn acquired_at(&self, place: u64) -> &[u32] {
        let channels = time_of(place).and_then(|time| self.acquires.get(&time));
        channels.map_or(&[], Vec::as_slice)
    }

    /// What is released just before, or just after, the event at `place` of the stream.
    pub fn released_at(&self, place: u64, is_before: bool) -> Option<u32> {
        self.releases.get(&(time_of(place)?, is_before)).copied()
    }
}

fn time_of(place: u64) -> Option<Time> {
    Time::try_from(place).ok()?.checked_add(1)
}

/// A read that saw what no recorded access wrote.
#[derive(Clone, Copy, Debug)]
struct Unexplained {
    /// The words that it read, with the bytes of them that differ.
    words: [(u64, u8); 2],
    /// When the memory was last accessed before.
    since: Time,
    /// Whether that was never, and it was to be zero.
    is_initial: bool,
}

impl Unexplained {
    /// The bytes that differ, by their addresses, as `event` read them.
    fn bytes(&self, event: &Event) -> impl Iterator<Item = (u64, u8)> {
        let (access, value) = (Access::new(event), event.value);
        let bytes = self.words.into_iter().flat_map(|(word, bytes)| {
            let bytes = (0..WORD_BYTES).filter(move |byte| bytes >> byte & 1 == 1);
            bytes.map(move |byte| word * WORD_BYTES + byte)
        });
        bytes.filter_map(move |address| Some((address, byte_of(value?, access?, address))))
    }
}

/// An unseen write, and who can have made it.
#[derive(Debug)]
struct UnseenWrite {
    since: Time,
    is_initial: bool,
    /// Threads, by their chains, that ran since, with what each did last before the write was noticed.
    writers: Box<[(usize, LastEvent)]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct LastEvent {
    thread: u32,
    time: Time,
    /// When its thread last ran, though perhaps nothing was seen of what it did.
    ran: Time,
    /// Whether its thread stands still after it, so that nothing of it can come next.
    is_pause: bool,
}

/// Follows threads and unseen writes through a recording.
#[derive(Default)]
struct Follower {
    /// Whether threads ran freely, so that what is last in the recording was perhaps not last.
    is_free: bool,
    order: Order,
    /// The order that forks and joins alone make, which every reordering keeps.
    forks: Order,
    /// The chains of events that threads are.
    chains: FxHashMap<u32, usize>,
    /// What each chain did last.
    last: Vec<LastEvent>,
    writes: Vec<UnseenWrite>,
    /// Words that hold what was written unseen: for each byte, which of `writes` it was, counted from
    /// one.
    unseen: BTreeMap<u64, [u32; WORD_BYTES as usize]>,
    /// Up to when the first chain comes after the second by what is assumed.
    acquired: FxHashMap<(usize, usize), Time>,
    assumed: AssumedOrder,
}

/// Somebody who reads.
#[derive(Clone, Copy, Debug)]
struct Reader {
    thread: u32,
    chain: usize,
    time: Time,
    reading: Reading,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Plain,
    /// What follows may come after the write because of it.
    Synchronizing,
    /// An update that acquires nothing, as of a counter of references.
    Counting,
}

impl Reading {
    const fn new(event: &Event) -> Self {
        match event.kind {
            Kind::AtomicUpdate if matches!(event.order, order::RELAXED | order::RELEASE) => {
                Self::Counting
            }
            Kind::AtomicUpdate | Kind::AtomicLoad | Kind::AtomicFailed => Self::Synchronizing,
            _ => Self::Plain,
        }
    }
}

/// Nothing is counted but by [`Order::advance`].
struct Uncounted;

impl Ticks for Uncounted {
    fn write(&mut self, _: u32, _: &Event, _: Access, _: &mut Clock) {}
    fn lock(&mut self, _: u32, _: &Event, _: u64, _: bool, _: &mut Clock) {}
}

impl Follower {
    fn step(
        &mut self,
        thread: u32,
        event: &Event,
        time: Time,
        unexplained: Option<Unexplained>,
        values: &Values,
    ) {
        let chains = self.chains.len();
        let chain = *self.chains.entry(thread).or_insert(chains);
        if let Some(read) = unexplained {
            self.note_write(thread, read, values);
        }
        match Access::new(event) {
            Some(access) => {
                if !access.writes || event.kind == Kind::AtomicUpdate {
                    let reader = Reader { thread, chain, time, reading: Reading::new(event) };
                    self.read(reader, access, values);
                }
                if access.writes {
                    self.overwrite(access.start, access.end);
                }
                if access.is_atomic {
                    self.synchronize(thread, chain, time, event);
                }
            }
            None => self.synchronize(thread, chain, time, event),
        }
        match event.kind {
            Kind::Escaped => self.unseen.clear(),
            Kind::Alloc | Kind::Free => {
                values.renewed.iter().for_each(|&(start, end)| self.overwrite(start, end));
            }
            _ => {}
        }
        self.last.resize(self.last.len().max(chain + 1), LastEvent::default());
        let last = &mut self.last[chain];
        (last.thread, last.ran) = (thread, time);
        if is_operation(event.kind) {
            last.time = time;
            last.is_pause = Access::new(event).is_none() && event.kind != Kind::Unlock;
        }
    }

    fn synchronize(&mut self, thread: u32, chain: usize, time: Time, event: &Event) {
        let step = |order: &mut Order| {
            if chain < CHAINS_MAX && is_operation(event.kind) {
                order.advance(thread, chain, time);
            }
            order.step(thread, event, &mut Uncounted);
        };
        step(&mut self.order);
        if matches!(event.kind, Kind::Fork | Kind::ForkFailed | Kind::Join | Kind::End) {
            step(&mut self.forks);
        }
    }

    /// `read` shows that somebody wrote unseen since the last access to what it read.
    fn note_write(&mut self, thread: u32, read: Unexplained, values: &Values) {
        let Unexplained { words, since, is_initial } = read;
        let is_free = self.is_free;
        let last = self.last.iter().copied().enumerate();
        let mut writers: Vec<(usize, LastEvent)> = last
            .filter(|(_, last)| (is_free || last.ran >= since.max(1)) && last.time > 0)
            .collect();
        // Who has accessed the same block, and was joined or has forked since, did it: so do those who
        // hand over what they share with whom they start or await.
        let (forks, users) =
            (self.forks.clock(thread), values.users_of_block(words[0].0 * WORD_BYTES));
        let is_it = |&(writer, last): &(usize, LastEvent)| {
            forks.get(writer) >= since.max(1) && users & set_of(last.thread) != 0
        };
        if writers.iter().any(is_it) {
            writers.retain(is_it);
        }
        let writers = writers.into();
        self.writes.push(UnseenWrite { since, is_initial, writers });
        let number = self.writes.len() as u32;
        for (word, differing) in words.into_iter().filter(|&(_, differing)| differing != 0) {
            let bytes = self.unseen.entry(word).or_default().iter_mut().enumerate();
            let differing = bytes.filter(|(byte, _)| differing >> byte & 1 == 1);
            differing.for_each(|(_, write)| *write = number);
        }
    }

    /// Recorded code writes to the memory from `start` up to `end`, or it is other memory.
    fn overwrite(&mut self, start: u64, end: u64) {
        if self.unseen.is_empty() || start >= end {
            return;
        }
        let access = Access { start, end, writes: true, is_atomic: false };
        let words = start / WORD_BYTES..=(end - 1) / WORD_BYTES;
        let mut over = Vec::new();
        for (&word, bytes) in self.unseen.range_mut(words) {
            let (from, to) = access.within_word(word * WORD_BYTES);
            bytes[from.into()..to.into()].fill(0);
            over.extend((*bytes == [0; WORD_BYTES as usize]).then_some(word));
        }
        for word in over {
            self.unseen.remove(&word);
        }
    }

    /// A thread reads; if unseen code wrote that, it comes after who can have done so.
    fn read(&mut self, reader: Reader, access: Access, values: &Values) {
        if self.unseen.is_empty() {
            return;
        }
        // What the C library reads in long stretches stands for no decision of the program's.
        for (word, from, to) in access.words().take(PAGE_WORDS) {
            let Some(&bytes) = self.unseen.get(&word) else { continue };
            let is_alone = values.is_alone(word, reader.thread);
            let mut last = 0;
            for &write in &bytes[from.into()..to.into()] {
                if write != std::mem::replace(&mut last, write) && write > 0 {
                    self.come_after(reader, is_alone, write);
                }
            }
        }
    }

    fn come_after(&mut self, reader: Reader, is_alone: bool, write: u32) {
        let Reader { thread, chain, time, reading } = reader;
        let Self { order, forks, acquired, assumed, writes, .. } = self;
        let write = &writes[write as usize - 1];
        let (clock, forks) = (order.clock(thread), forks.clock(thread));
        let others = write.writers.iter().filter(|&&(writer, _)| writer != chain);
        // What each is seen to have done before, by synchronization after the last access.
        let seen = |&&(writer, _): &&(usize, LastEvent)| clock.get(writer) >= write.since.max(1);
        let keeps_observed = match reading {
            Reading::Synchronizing => false,
            Reading::Plain if write.is_initial => false,
            Reading::Plain => is_alone || others.clone().any(|writer| seen(&writer)),
            Reading::Counting => true,
        };
        if self.is_free && !keeps_observed {
            if others.clone().next().is_some() {
                assumed.unknown.insert(time);
            }
            return;
        }
        for &(writer, last) in others.filter(|writer| !keeps_observed || seen(writer)) {
            let synchronized = clock.get(writer);
            let is_observed = reading != Reading::Synchronizing && seen(&&(writer, last));
            let (until, is_before) = match is_observed && synchronized < last.time {
                true => (synchronized, true),
                false => (last.time, last.is_pause),
            };
            let known = acquired.entry((chain, writer)).or_default();
            if until > forks.get(writer).max(*known) {
                *known = until;
                // Zero stands for what nobody knows.
                let next = assumed.releases.len() as u32 + 1;
                let channel = *assumed.releases.entry((until, is_before)).or_insert(next);
                assumed.acquires.entry(time).or_default().push(channel);
            }
        }
    }
}

/// Whether events of this kind are something that their thread does.
const fn is_operation(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Nothing
            | Kind::Stored
            | Kind::Run
            | Kind::Switch
            | Kind::Enter
            | Kind::Leave
            | Kind::Block
            | Kind::Unblock
            | Kind::Interrupted
            | Kind::Maps
            | Kind::Escaped
    )
}

// What memory holds, by the accesses so far.

/// What is known of eight bytes.
#[derive(Clone, Default)]
struct Word {
    value: u64,
    /// When the first four bytes and the others were last accessed.
    halves: [Time; 2],
    /// When each byte was, once that is not enough.
    bytes: Option<Box<[Time; WORD_BYTES as usize]>>,
    /// The threads that accessed it.
    accessors: u32,
    /// The bytes whose values are known.
    known: u8,
    /// The bytes that were accessed.
    touched: u8,
}

/// Threads from this number on are not told apart in sets of threads.
const LAST_THREAD: u32 = u32::BITS - 1;

/// A set of one thread.
fn set_of(thread: u32) -> u32 {
    1 << thread.min(LAST_THREAD)
}

/// The last plain write of each thread, if it is not known yet what it stored, and its time.
#[derive(Default)]
struct Pending(FxHashMap<u32, (Access, Time)>);

impl Pending {
    /// If `event` of `thread` says what its last write stored, or that nobody knows: that write, and
    /// what it stored.
    fn settle(&mut self, thread: u32, event: &Event) -> Option<(Access, Time, Option<u64>)> {
        if !tells_stored(event) {
            return None;
        }
        let (access, time) = self.0.remove(&thread)?;
        Some((access, time, event.stored))
    }
}

struct Values {
    pages: FxHashMap<u64, Box<[Word]>>,
    /// Pages that were written as a whole before anything else was known of them.
    filled: FxHashSet<u64>,
    pending: Pending,
    blocks: Blocks,
    /// The memory that the last allocation or release made another.
    renewed: Vec<(u64, u64)>,
    /// The blocks that are stacks, by the times of their allocation.
    stacks: FxHashSet<u64>,
    /// Words that are neither in blocks nor global, most of them on the stack of the first thread.
    unknown: FxHashSet<u64>,
    /// Whether memory is as the program found it when it started: not in a process that was forked.
    is_fresh: bool,
}

impl Values {
    fn new() -> Self {
        Self {
            pages: FxHashMap::default(),
            filled: FxHashSet::default(),
            pending: Pending::default(),
            blocks: Blocks::default(),
            renewed: Vec::new(),
            stacks: FxHashSet::default(),
            unknown: FxHashSet::default(),
            is_fresh: true,
        }
    }

    /// Takes the next event; says if it is a read that the events before do not explain.
    fn step(
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
            // What the thread did unseen is not known.
            Kind::Escaped => self.words().for_each(|word| word.known = 0),
            Kind::Alloc | Kind::Free => self.change_blocks(event),
            _ => {}
        }
        let access = Access::new(event)?;
        if matches!(event.kind, Kind::ReadRange | Kind::WriteRange) {
            self.pass_over(access, thread, time);
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
        let mut read = Unexplained { words: [(0, 0); 2], since: Time::MAX, is_initial: false };
        for ((number, from, to), found) in access.words().zip(&mut read.words) {
            let Some(word) = self.word(number) else { continue };
            if let Some(seen) = seen {
                let value = in_word(seen, access, number);
                let differing = word.differing(from..to, value);
                *found = (number, differing);
                if differing != 0 {
                    read.since = read.since.min(word.first_access(differing));
                } else if word.touched & bytes_of(from..to) == 0 && value & mask(from..to) != 0 {
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
        let is_found = read.words.iter().any(|&(_, bytes)| bytes != 0)
            && (!read.is_initial || self.is_fresh && symbols.is_zeroed(access.start))
            && self.is_comparable(access.start, symbols);
        is_found.then_some(read)
    }

    /// Whether what is at `address` can be told by the accesses to it.
    fn is_comparable(&mut self, address: u64, symbols: &mut dyn Symbols) -> bool {
        if let Some(block) = self.blocks.holding(address) {
            return !self.stacks.contains(&block.time);
        }
        let word = address / WORD_BYTES;
        if self.unknown.contains(&word) {
            return false;
        }
        let is_own = |name: &str| !LIBRARY_NAMES.iter().any(|library| name.starts_with(library));
        let is_global = symbols.data(address).is_some_and(|(name, _)| is_own(&name));
        if !is_global {
            self.unknown.insert(word);
        }
        is_global
    }

    fn change_blocks(&mut self, event: &Event) {
        let Some(change) = self.blocks.step(event) else { return };
        let Change { born, ended, range, released, lost } = change;
        self.renewed.clear();
        self.renewed.extend(ended.iter().map(|piece| (piece.start, piece.end)).chain(range));
        for (start, end) in self.renewed.clone() {
            self.forget(start, end, true);
        }
        for time in released.iter().chain(&lost) {
            self.stacks.remove(time);
        }
        if event.flags & flag::STACK != 0 {
            self.stacks.extend(born.map(|block| block.time));
        }
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

    /// A range is accessed, of which no value is known. It may be long, so whole pages of which
    /// nothing is known are only noted.
    fn pass_over(&mut self, access: Access, thread: u32, time: Time) {
        if access.writes {
            self.forget(access.start, access.end, false);
        }
        for part in access.parts() {
            let number = part.start / PAGE_BYTES;
            if part.end - part.start == PAGE_BYTES && !self.pages.contains_key(&number) {
                self.filled.insert(number);
                continue;
            }
            for (number, from, to) in part.words() {
                let Some(word) = self.word(number) else { break };
                word.touch(from..to, thread, time);
            }
        }
    }

    /// The memory from `start` to `end` may hold anything; and if it `is_other` now, nobody accessed it.
    fn forget(&mut self, start: u64, end: u64, is_other: bool) {
        let pages = start / PAGE_BYTES..=end.saturating_sub(1) / PAGE_BYTES;
        // A block can be much larger than the memory that was touched.
        let is_huge = pages.end() - pages.start() > self.pages.len() as u64;
        let touched: Vec<u64> = match is_huge {
            true => self.pages.keys().copied().filter(|number| pages.contains(number)).collect(),
            false => pages.filter(|number| self.pages.contains_key(number)).collect(),
        };
        for number in touched {
            let Some(page) = self.pages.get_mut(&number) else { continue };
            for word in &mut page[words_within(number, start, end)] {
                word.known = 0;
                if is_other {
                    word.accessors = 0;
                }
            }
        }
    }

    fn words(&mut self) -> impl Iterator<Item = &mut Word> {
        self.pages.values_mut().flat_map(|page| page.iter_mut())
    }

    /// The word `number`, unless there is more memory than is compared.
    fn word(&mut self, number: u64) -> Option<&mut Word> {
        let (page, place) = (number / PAGE_WORDS as u64, number as usize % PAGE_WORDS);
        let Self { pages, filled, .. } = self;
        if pages.len() >= PAGES_MAX && !pages.contains_key(&page) {
            return None;
        }
        let page = pages.entry(page).or_insert_with(|| {
            let touched = if filled.remove(&page) { u8::MAX } else { 0 };
            vec![Word { touched, ..Word::default() }; PAGE_WORDS].into_boxed_slice()
        });
        Some(&mut page[place])
    }

    /// The threads that were seen to access `word`.
    fn accessors(&self, word: u64) -> u32 {
        let page = self.pages.get(&(word / PAGE_WORDS as u64));
        page.map_or(0, |page| page[word as usize % PAGE_WORDS].accessors)
    }

    /// Whether nobody but `thread` was seen to access `word`.
    fn is_alone(&self, word: u64, thread: u32) -> bool {
        thread < LAST_THREAD && self.accessors(word) & !set_of(thread) == 0
    }

    /// The threads that were seen to access the block of `address`, near it.
    fn users_of_block(&self, address: u64) -> u32 {
        let Some(block) = self.blocks.holding(address) else { return 0 };
        let first = block.start.max(address.saturating_sub(PAGE_BYTES)) / WORD_BYTES;
        let last = (block.end - 1).min(address.saturating_add(PAGE_BYTES)) / WORD_BYTES;
        (first..=last).fold(0, |users, word| users | self.accessors(word))
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
        self.touched |= bytes_of(range);
        self.accessors |= set_of(thread);
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

/// All bits of the bytes of `range`.
fn mask(range: Range<u8>) -> u64 {
    let below = |byte: u8| if byte >= 8 { u64::MAX } else { (1_u64 << (8 * byte)) - 1 };
    below(range.end) & !below(range.start)
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

// Values of threads that ran freely.
//
// What such threads read and wrote is not recorded in the order in which it happened, so a read may see
// what comes later. Only of a byte that no recorded access writes at all is it known that it was not one.

/// Bytes that unexplained reads saw and that nobody was seen to write.
#[derive(Default)]
struct UnwrittenBytes {
    values: BTreeMap<u64, Vec<u8>>,
    /// Those that were zero when the program started.
    zeroed: FxHashSet<u64>,
}

impl UnwrittenBytes {
    fn note_read(&mut self, event: &Event, read: Option<Unexplained>) {
        let is_initial = read.is_some_and(|read| read.is_initial);
        for (address, value) in read.iter().flat_map(|read| read.bytes(event)) {
            self.zeroed.extend(is_initial.then_some(address));
            let values = self.values.entry(address).or_default();
            // Zero is what memory is cleared to, which is not always seen.
            if value != 0 && !values.contains(&value) {
                values.push(value);
            }
        }
    }

    /// Drops what recorded accesses wrote, or saw before anybody wrote.
    fn drop_explained(&mut self, stream: &mut dyn Stream) -> io::Result<()> {
        let mut pending = Pending::default();
        let mut accessed = std::mem::take(&mut self.zeroed);
        while let Some((thread, event)) = stream.next_event()? {
            if let Some((access, _, stored)) = pending.settle(thread, &event) {
                self.drop_written(access, stored);
            }
            let Some(access) = Access::new(&event) else { continue };
            match event.kind {
                Kind::Write => _ = pending.0.insert(thread, (access, 0)),
                Kind::AtomicStore => self.drop_written(access, event.value),
                Kind::AtomicUpdate => self.drop_written(access, event.extra),
                Kind::WriteRange => self.drop_written(access, None),
                _ => {}
            }
            for (&address, values) in self.values.range_mut(access.start..access.end) {
                let first = accessed.insert(address).then_some(event.value).flatten();
                let first = first.map(|value| byte_of(value, access, address));
                values.retain(|&value| Some(value) != first);
            }
        }
        for (access, _) in pending.0.into_values() {
            self.drop_written(access, None);
        }
        Ok(())
    }

    fn drop_written(&mut self, access: Access, stored: Option<u64>) {
        for (&address, values) in self.values.range_mut(access.start..access.end) {
            let is_it =
                |value| stored.is_none_or(|stored| byte_of(stored, access, address) == value);
            values.retain(|&value| !is_it(value));
        }
    }

    /// Whether `event`, an unexplained read, saw such a byte.
    fn is_in(&self, event: &Event, read: &Unexplained) -> bool {
        read.bytes(event).any(|(address, value)| {
            self.values.get(&address).is_some_and(|values| values.contains(&value))
        })
    }
}

/// The byte at `address` of `value`, which is at `access`.
const fn byte_of(value: u64, access: Access, address: u64) -> u8 {
    (value >> (8 * (address - access.start))) as u8
}
