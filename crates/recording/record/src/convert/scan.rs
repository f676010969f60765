//! The first pass: what must be known before the first event can be written.

use std::collections::VecDeque;
use std::io;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, Kind, flag};

use super::Kept;
use super::descriptors::Descriptors;
use super::handles::Handles;
use super::names::{Stack, Symbols, legal};
use super::spins::{self, Spins};
use super::thread_handles::ThreadHandles;
use super::unseen::{self, Unseen, UnseenLinks};
use super::word_locks::{self, WordLocks};
use crate::event_log::Stream;
use crate::shadow::{
    Access, Blocks, Cell, FREED_BYTES_MAX, PAGE_BYTES, ShadowCells, SharingAnalysis, WORD_BYTES,
};

/// How many events [`Ahead`] looks ahead for what a write stored.
const AHEAD_MAX: usize = 64;

/// The thread that the program starts with.
pub const MAIN: u32 = 0;

/// What the first pass found.
#[derive(Debug, Default)]
pub struct FirstPass {
    pub cells: ShadowCells,
    /// What writes stored, by their places in the stream, where that was said more than
    /// [`AHEAD_MAX`] events later.
    late: FxHashMap<u64, u64>,
    /// The places of forks that failed.
    failed_forks: FxHashSet<u64>,
    /// Threads that ran without being forked, in order.
    pub unforked: Vec<u32>,
    /// The addresses that events look at or take from as channels: a semaphore among them is one whose
    /// value is looked at.
    looked_at: FxHashSet<u64>,
    /// The addresses of channels that something is taken from.
    taken_from: FxHashSet<u64>,
    /// The addresses of locks that are asked for in shared mode.
    shared_locks: FxHashSet<u64>,
    /// The addresses of locks that a thread found taken and went on without.
    tried_locks: FxHashSet<u64>,
    /// Whether some events have places in the order of synchronization and others do not.
    pub is_free: bool,
    pub has_accesses: bool,
    /// Whether it is known what plain reads saw.
    pub has_values: bool,
    /// The place of the first event at which there was more memory than values are compared of.
    full_since: Option<u64>,
    /// Whether C++ code allocates by `new`.
    makes_by_new: bool,
    /// The names of memory to be kept that no access has.
    pub missing: Vec<String>,
    pub word_locks: word_locks::Recognized,
    pub spins: spins::Rows,
    pub descriptors: Descriptors,
    pub handles: Handles,
    pub thread_handles: ThreadHandles,
    pub unseen: Unseen,
    unseen_links: UnseenLinks,
    /// Blocks that were freed a second time, by the times of their allocations.
    freed_again: FxHashSet<u64>,
    /// The addresses of locks that were asked for after they had been destroyed.
    used_destroyed: FxHashSet<u64>,
    freed_uses: FreedUses,
    /// Where what is kept of frames begins that end, by when they do.
    frame_ends: FxHashMap<u64, u64>,
    shared_frames: SharedFrames,
}

/// Frames of functions that other threads access.
#[derive(Debug, Default)]
struct SharedFrames {
    /// Whose frames are in which page.
    owners: FxHashMap<u64, u32>,
    /// By word: when that was, some code of the function, and where its frame ends.
    found: FxHashMap<u64, Vec<(u64, u64, u64)>>,
}

impl SharedFrames {
    /// How many words are kept.
    const WORDS_MAX: usize = 1 << 16;

    /// How many frames are kept that had a word, one after the other.
    const FRAMES_MAX: usize = 16;

    /// `thread` does `event` at `time`.
    fn step(&mut self, threads: &FxHashMap<u32, Seen>, thread: u32, event: &Event, time: u64) {
        let end = event.code;
        if event.kind == Kind::Enter {
            let page = end.saturating_sub(1) / PAGE_BYTES;
            if end != 0 && self.owners.insert(page, thread) != Some(thread) {
                // The frame may begin below the page that it ends in.
                self.owners.entry(page.saturating_sub(1)).or_insert(thread);
            }
            return;
        }
        if self.owners.is_empty() {
            return;
        }
        let Some(access) = Access::new(event) else { return };
        let Some(&owner) = self.owners.get(&(access.start / PAGE_BYTES)) else { return };
        if owner == thread {
            return;
        }
        let around = threads.get(&owner).and_then(|seen| seen.stack.frame_around(access.start));
        let Some((code, end)) = around else { return };
        for (word, ..) in access.words().take(Self::FRAMES_MAX) {
            if self.found.len() >= Self::WORDS_MAX && !self.found.contains_key(&word) {
                return;
            }
            let frames = self.found.entry(word).or_default();
            let is_known = frames.iter().any(|&(.., known)| known == end);
            if !is_known && frames.len() < Self::FRAMES_MAX {
                frames.push((time, code, end));
            }
        }
    }
}

/// Accesses to memory that was freed before.
///
/// It may have been allocated again out of sight, which is said before the next event that is no access.
#[derive(Debug, Default)]
struct FreedUses {
    /// By the place of the access: when the memory was freed, counted in allocations and releases.
    found: FxHashMap<u64, u64>,
    /// When memory was freed that was accessed later.
    frees: FxHashSet<u64>,
    /// Those since the last event that is no access, with the addresses.
    last: Vec<(u64, u64, u64)>,
    /// What was freed before this time may have been allocated since.
    since: u64,
}

impl FreedUses {
    /// How many are kept: more of them say nothing new.
    const MAX: usize = 1000;

    /// The event at `place`, of memory that was freed at `freed` if that is given.
    fn step(&mut self, event: &Event, place: u64, time: u64, freed: Option<u64>) {
        if event.is_hidden_alloc() {
            let (start, size) = (event.address, event.extra.unwrap_or(0));
            // Of a large block not every word was forgotten.
            if size == 0 || size >= FREED_BYTES_MAX {
                self.since = time;
                self.last.clear();
            }
            self.last.retain(|&(_, _, used)| !(start..start.saturating_add(size)).contains(&used));
        } else if let Some(freed) = freed.filter(|&freed| freed >= self.since) {
            self.last.push((place, freed, event.address));
        } else if !self.last.is_empty() && Access::new(event).is_none() && tells_of_hidden(event) {
            self.settle();
        }
    }

    fn settle(&mut self) {
        let room = Self::MAX.saturating_sub(self.found.len());
        let last = self.last.drain(..).map(|(place, freed, _)| (place, freed));
        self.found.extend(last.take(room));
    }

    /// All events were seen. Where threads ran freely it is not known what came first.
    fn finish(&mut self, is_free: bool) {
        self.settle();
        if is_free {
            self.found.clear();
        }
        self.frees = self.found.values().copied().collect();
    }
}

/// Whether the runtime says before it logs `event`, which is no access, what was allocated out of sight.
const fn tells_of_hidden(event: &Event) -> bool {
    let is_added = event.ends_frame()
        || matches!(event.kind, Kind::Stored | Kind::Switch | Kind::Escaped | Kind::Maps);
    let is_forgotten = matches!(event.kind, Kind::Interrupted) && event.extra.is_none();
    !event.kind.is_brief() && !is_added && !is_forgotten
}

/// What is known of a thread in the first pass.
#[derive(Default)]
struct Seen {
    runs: bool,
    is_forked: bool,
    last_fork: Option<u64>,
    last_write: Option<u64>,
    stack: Stack,
}

impl FirstPass {
    pub fn new(
        stream: &mut dyn Stream,
        kept: Kept<'_>,
        symbols: &mut dyn Symbols,
    ) -> io::Result<Self> {
        let mut first_pass = Self::default();
        let mut sharing = SharingAnalysis::new(kept == Kept::All);
        let mut word_locks = WordLocks::search();
        let mut spins = Spins::search();
        let mut unseen = unseen::Search::new();
        let mut threads: FxHashMap<u32, Seen> = FxHashMap::default();
        let mut allocators: FxHashSet<u64> = FxHashSet::default();
        // Which block was freed last at an address.
        let mut freed: FxHashMap<u64, u64> = FxHashMap::default();
        let mut place = 0;
        while let Some((thread, event)) = stream.next_event()? {
            let change = sharing.step(thread, &event);
            let freed_use = sharing.take_use_of_freed();
            first_pass.freed_uses.step(&event, place, sharing.time(), freed_use);
            let released = change.and_then(|change| change.released.first().copied());
            first_pass.note_free(&event, released, &mut freed);
            if event.ends_frame() {
                first_pass.frame_ends.insert(sharing.time() - 1, event.address);
            }
            if event.kind == Kind::Maps {
                symbols.maps(event.address);
            }
            word_locks.step(symbols, thread, &event);
            spins.is_repeated(thread, &event, place);
            unseen.step(thread, &event, symbols);
            if unseen.is_full() {
                first_pass.full_since.get_or_insert(place);
            }
            if event.kind == Kind::Alloc && allocators.insert(event.code) {
                first_pass.makes_by_new |= is_new(&symbols.functions(event.code));
            }
            first_pass.has_accesses |= Access::new(&event).is_some();
            first_pass.has_values |= event.kind == Kind::Read && event.value.is_some();
            first_pass.is_free |= event.number.is_some();
            first_pass.note_object(&event);
            first_pass.descriptors.step(thread, &event);
            first_pass.handles.step(thread, &event, place);
            first_pass.thread_handles.step(thread, &event);
            // Functions of libraries read and write ranges for their callers.
            let is_own_code = matches!(event.kind, Kind::Read | Kind::Write)
                || event.kind.is_plain() && !symbols.is_of_system(event.code);
            first_pass.note_thread(&mut threads, (thread, is_own_code), &event, place);
            first_pass.shared_frames.step(&threads, thread, &event, sharing.time());
            place += 1;
        }
        first_pass.freed_uses.finish(first_pass.is_free);
        first_pass.thread_handles.finish();
        first_pass.cells = first_pass.kept_cells(sharing, kept, symbols);
        // The next pass starts with the first map.
        symbols.maps(0);
        first_pass.word_locks = word_locks.finish();
        first_pass.tried_locks.extend(first_pass.word_locks.tried());
        first_pass.spins = spins.finish();
        (first_pass.unseen, first_pass.unseen_links) = unseen.finish();
        let unforked = threads.iter().filter(|(_, seen)| seen.runs && !seen.is_forked);
        first_pass.unforked = unforked.map(|(&thread, _)| thread).filter(|&t| t != MAIN).collect();
        first_pass.unforked.sort_unstable();
        Ok(first_pass)
    }

    /// What is done to a channel or a lock.
    fn note_object(&mut self, event: &Event) {
        let (address, flags) = (event.address, event.flags);
        match event.kind {
            Kind::Receive => {
                self.looked_at.insert(address);
                if flags & flag::TRY == 0 {
                    self.taken_from.insert(address);
                }
            }
            Kind::LockRequest | Kind::Lock if flags & flag::SHARED != 0 => {
                self.shared_locks.insert(address);
            }
            Kind::LockDestroy if event.is_use_of_destroyed() => {
                self.used_destroyed.insert(address);
            }
            Kind::LockBusy => _ = self.tried_locks.insert(address),
            _ => {}
        }
    }

    /// A free, of the block that was allocated at `released` if there was one, or an allocation out of sight. `freed`
    /// has which block was freed last at an address.
    fn note_free(&mut self, event: &Event, released: Option<u64>, freed: &mut FxHashMap<u64, u64>) {
        if event.is_hidden_alloc() {
            // It may have been freed before, and be free again without that.
            match event.extra {
                Some(0) => freed.clear(),
                _ => _ = freed.remove(&event.address),
            }
        }
        if event.kind != Kind::Free || event.ends_frame() {
            return;
        }
        match released {
            // The allocator does not know what a pool gets back.
            Some(_) if event.extra.is_some() => _ = freed.remove(&event.address),
            Some(time) => _ = freed.insert(event.address, time),
            // What was cached when its thread ended may look as if it were still free.
            None if event.flags & flag::MISUSE != 0 => {
                self.freed_again.extend(freed.get(&event.address));
            }
            None => {}
        }
    }

    /// The cells that are kept, and which of the names asked for none of them has.
    fn kept_cells(
        &mut self,
        sharing: SharingAnalysis,
        kept: Kept<'_>,
        symbols: &mut dyn Symbols,
    ) -> ShadowCells {
        let Kept::Contended { names: names @ [_, ..] } = kept else { return sharing.finish(None) };
        let mut seen = FxHashSet::default();
        let cells = sharing.finish(Some(&mut |bytes| {
            let last = bytes.end - 1;
            for address in bytes {
                let Some((name, offset)) = symbols.data(address) else { continue };
                let whole = legal(&name);
                let mut of_this =
                    (0..).zip(names).filter(|(_, asked)| is_part(asked, &whole)).peekable();
                let is_asked_for = of_this.peek().is_some();
                let member = || symbols.member(address, 1).map(|name| legal(&name));
                let own = is_asked_for.then(member).flatten().unwrap_or_default();
                if let Some((at, _)) = of_this.find(|(_, asked)| is_part(&own, asked)) {
                    seen.insert(at);
                    return true;
                }
                // A large variable that nobody asked for is not looked at byte by byte.
                if !is_asked_for && symbols.data(last) == Some((name, offset + (last - address))) {
                    return false;
                }
            }
            false
        }));
        let missing = names.iter().enumerate().filter(|(at, _)| !seen.contains(at));
        self.missing = missing.map(|(_, name)| name.clone()).collect();
        cells
    }

    fn note_thread(
        &mut self,
        threads: &mut FxHashMap<u32, Seen>,
        (thread, is_own_code): (u32, bool),
        event: &Event,
        place: u64,
    ) {
        let seen = threads.entry(thread).or_default();
        seen.runs = true;
        if tells_stored(event)
            && let Some(write) = seen.last_write.take()
            && let Some(stored) = event.stored
            && place - write > AHEAD_MAX as u64
        {
            self.late.insert(write, stored);
        }
        if is_own_code {
            seen.stack.pass(event.code);
        }
        match event.kind {
            Kind::Write => seen.last_write = Some(place),
            Kind::Enter => seen.stack.enter(event.address, event.code),
            Kind::Leave => seen.stack.leave(),
            Kind::Fork => {
                let child = threads.entry(event.address as u32).or_default();
                child.last_fork = Some(place);
                child.is_forked = true;
            }
            Kind::ForkFailed => {
                let child = threads.entry(event.address as u32).or_default();
                self.failed_forks.extend(child.last_fork.take());
                child.is_forked = false;
            }
            _ => {}
        }
    }

    /// Whether some event receives from the channel, or looks at the semaphore, at `address`.
    pub fn is_looked_at(&self, address: u64) -> bool {
        self.looked_at.contains(&address)
    }

    /// Whether something is taken from the channel at `address`.
    pub fn is_taken_from(&self, address: u64) -> bool {
        self.taken_from.contains(&address)
    }

    /// Whether the lock at `address` is asked for in shared mode.
    pub fn is_shared_lock(&self, address: u64) -> bool {
        self.shared_locks.contains(&address)
    }

    /// Whether a thread found the lock at `address` taken and went on.
    pub fn is_tried_lock(&self, address: u64) -> bool {
        self.tried_locks.contains(&address)
    }

    /// Whether the block that was allocated at `time` is freed twice.
    pub fn is_freed_again(&self, time: u64) -> bool {
        self.freed_again.contains(&time)
    }

    /// Whether what is freed at `time`, counted in allocations and releases, is accessed later.
    pub fn is_used_later(&self, time: u64) -> bool {
        self.freed_uses.frees.contains(&time)
    }

    /// When the memory was freed that the event at `place` accesses, if it was.
    pub fn freed_before_use(&self, place: u64) -> Option<u64> {
        self.freed_uses.found.get(&place).copied()
    }

    /// Whether all memory is compared up to the event at `place`, if values are known at all.
    pub fn is_compared(&self, place: u64) -> bool {
        self.full_since.is_none_or(|since| place < since)
    }

    /// Whether links that code wrote which was not recorded show up to the event at `place`: by the values that are read, or
    /// since no C++ code makes any.
    pub fn sees_links(&self, place: u64) -> bool {
        !self.makes_by_new || self.has_values && self.is_compared(place)
    }

    /// Whether unseen code wrote to or led to the block that was allocated at `time`.
    pub fn is_linked_unseen(&self, time: u64) -> bool {
        self.unseen_links.blocks.contains(&time)
    }

    /// Whether it is seen how other threads found what `event` says to be of a frame that ends, and what it waits for. What
    /// leads there may point to where a variable begins of which they used a later part.
    pub fn is_frame_seen(&self, event: &Event, place: u64) -> bool {
        let end = event.address.saturating_add(event.extra.unwrap_or(0));
        let mut found =
            self.unseen_links.others.range(event.address.saturating_sub(PAGE_BYTES)..end);
        // Where threads run freely it is not seen how a library, such as that of OpenMP, waits for them.
        !self.is_free && self.sees_links(place) && found.next().is_none()
    }

    /// If the frame of a function ends the life of `cell`: when, and where what is kept of it begins.
    pub fn frame_end(&self, cell: Cell) -> Option<(u64, u64)> {
        let end = self.cells.lifetimes()[cell.lifetime as usize].end;
        self.frame_ends.get(&end).map(|&start| (end, start))
    }

    /// The frame of the function that `cell` was in when another thread than its own accessed it: some code of the
    /// function, and where the frame ends.
    pub fn shared_frame(&self, cell: Cell) -> Option<(u64, u64)> {
        let lifetime = self.cells.lifetimes()[cell.lifetime as usize];
        let frames = self.shared_frames.found.get(&(cell.begin / WORD_BYTES))?;
        let is_in =
            |&&(time, ..): &&(u64, u64, u64)| lifetime.start <= time && time <= lifetime.end;
        frames.iter().find(is_in).map(|&(_, code, end)| (code, end))
    }

    /// Whether a lock at `address` is asked for after it was destroyed.
    pub fn is_used_destroyed(&self, address: u64) -> bool {
        self.used_destroyed.contains(&address)
    }

    pub fn fork_fails(&self, place: u64) -> bool {
        self.failed_forks.contains(&place)
    }

    /// What the write of `thread` at `place`, the event that `ahead` gave last, stored.
    pub fn stored<S: Stream>(
        &self,
        ahead: &mut Ahead<S>,
        thread: u32,
        place: u64,
    ) -> io::Result<Option<u64>> {
        match ahead.next_of(thread)? {
            Some(event) => Ok(event.stored),
            None => Ok(self.late.get(&place).copied()),
        }
    }
}

/// Whether `name` is that of `whole` or of a part of it.
fn is_part(name: &str, whole: &str) -> bool {
    let rest = name.strip_prefix(whole);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '+']))
}

/// Whether one of `functions` is that by which C++ code allocates memory.
pub fn is_new(functions: &[String]) -> bool {
    functions.iter().any(|name| name.starts_with("operator new"))
}

/// Whether `event` says what the last plain write of its thread stored, or that nobody knows.
pub const fn tells_stored(event: &Event) -> bool {
    let leaves_open = event.kind.is_brief() || matches!(event.kind, Kind::Read | Kind::ReadRange);
    event.stored.is_some() || !leaves_open
}

/// A stream that can be looked at before it is read.
pub struct Ahead<S> {
    stream: S,
    queue: VecDeque<(u32, Event)>,
}

impl<S: Stream> Ahead<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, queue: VecDeque::with_capacity(AHEAD_MAX) }
    }

    pub fn next(&mut self) -> io::Result<Option<(u32, Event)>> {
        match self.queue.pop_front() {
            Some(event) => Ok(Some(event)),
            None => self.stream.next_event(),
        }
    }

    /// The next event of `thread` that says what its last plain write stored, if it is near.
    fn next_of(&mut self, thread: u32) -> io::Result<Option<Event>> {
        for place in 0..AHEAD_MAX {
            if place == self.queue.len() {
                let Some(event) = self.stream.next_event()? else { return Ok(None) };
                self.queue.push_back(event);
            }
            let (of, event) = self.queue[place];
            if of == thread && tells_stored(&event) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// What `look` makes of the events of `thread` that are near and come next.
    pub fn next_of_thread<T>(
        &mut self,
        thread: u32,
        look: impl FnOnce(&mut dyn Iterator<Item = &Event>) -> T,
    ) -> io::Result<T> {
        while self.queue.len() < AHEAD_MAX {
            let Some(event) = self.stream.next_event()? else { break };
            self.queue.push_back(event);
        }
        let mut own = self.queue.iter().filter(|(of, _)| *of == thread).map(|(_, event)| event);
        Ok(look(&mut own))
    }

    pub fn into_inner(self) -> S {
        self.stream
    }
}

// Which reads of a `free` recording may have seen another write than the last one recorded?
//
// Threads that run freely number their events of synchronization, atomic accesses among them, by
// one counter that every thread raises as it goes. So an access is known to have come before
// another if its thread raised the counter after it and the other's thread did so, to a greater
// number, before the other. Of any two accesses to a cell of which one writes and one is plain, and
// that are not known to be ordered so, the recorded order says nothing. The plain reads of a cell
// with such a pair have no known writer, all of them: later passes need not know the future.
//
// Of the accesses of one kind by one thread the last one decides, so a cell costs one entry per
// thread that accesses it.

/// When a thread last did something to a cell: the number that its thread had reached, plus one.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    thread: u32,
    /// Plain reads, plain writes, atomic reads, atomic writes.
    times: [Option<u64>; 4],
}

/// How many numbers of a thread are remembered.
const NUMBERS_MAX: usize = 4096;

/// The numbers that a thread raised the counter to.
#[derive(Debug, Default)]
struct Reached {
    /// The last of them, plus one.
    time: u64,
    /// The last few, in order.
    numbers: VecDeque<u64>,
}

impl Reached {
    fn raise(&mut self, number: u64) {
        self.time = number.saturating_add(1);
        if self.numbers.len() == NUMBERS_MAX {
            self.numbers.pop_front();
        }
        self.numbers.push_back(number);
    }

    /// The first number after `time`, or a later one if that was too long ago.
    fn first_after(&self, time: u64) -> Option<u64> {
        self.numbers.get(self.numbers.partition_point(|&number| number < time)).copied()
    }
}

/// A cell, as one number.
#[inline]
pub fn key(cell: Cell) -> u64 {
    u64::from(cell.lifetime) * WORD_BYTES + cell.begin % WORD_BYTES
}

/// The cells whose plain reads have no known writer.
pub fn cells_with_unknown_writers(
    stream: &mut dyn Stream,
    cells: &mut ShadowCells,
) -> io::Result<FxHashSet<u64>> {
    let mut unknown_writers = FxHashSet::default();
    let mut accesses: FxHashMap<u64, Vec<Last>> = FxHashMap::default();
    let mut reached: FxHashMap<u32, Reached> = FxHashMap::default();
    let mut blocks = Blocks::default();
    while let Some((thread, event)) = stream.next_event()? {
        blocks.step(&event);
        // Whether a numbered access comes just before or just after its number is not known, so it
        // is taken to come after what came before its thread's number before that.
        let own = reached.entry(thread).or_default();
        let before = own.time;
        if let Some(number) = event.number {
            own.raise(number);
        }
        let Some(access) = Access::new(&event) else { continue };
        let mut at = access.start;
        while let Some(cell) = cells.next_cell(access, at, blocks.time()) {
            at = cell.end;
            let key = key(cell);
            if unknown_writers.contains(&key) {
                continue;
            }
            let list = accesses.entry(key).or_default();
            if is_unordered(list, (thread, before), access, &reached) {
                unknown_writers.insert(key);
                accesses.remove(&key);
            }
        }
    }
    cells.rewind();
    Ok(unknown_writers)
}

/// Whether `access` is not known to come after all in `list` that it conflicts with; adds it.
fn is_unordered(
    list: &mut Vec<Last>,
    (thread, before): (u32, u64),
    access: Access,
    reached: &FxHashMap<u32, Reached>,
) -> bool {
    let class = usize::from(access.writes) + 2 * usize::from(access.is_atomic);
    let conflicts = |other: usize| {
        let (writes, is_atomic) = (other % 2 == 1, other >= 2);
        (writes || access.writes) && !(is_atomic && access.is_atomic)
    };
    let is_known = |last: &Last| {
        let next = |time| reached.get(&last.thread).and_then(|of| of.first_after(time));
        let mut times = last.times.iter().enumerate().filter(|&(other, _)| conflicts(other));
        times.all(|(_, time)| time.is_none_or(|then| next(then).is_some_and(|next| next < before)))
    };
    if !list.iter().filter(|last| last.thread != thread).all(is_known) {
        return true;
    }
    let place = list.iter().position(|last| last.thread == thread).unwrap_or_else(|| {
        list.push(Last { thread, ..Last::default() });
        list.len() - 1
    });
    list[place].times[class] = Some(reached.get(&thread).map_or(0, |own| own.time));
    false
}
