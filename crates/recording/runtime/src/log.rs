//! Writing events to a ring.
//!
//! A buffer knows how far it may write before it must look at the reader's progress; it looks at
//! least once a quarter of the ring, and then wakes a reader that sleeps. When the ring is full the
//! writer waits, and checks now and then that somebody still reads.

use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use crate::interceptors::{libraries, memory, objects, program};
use crate::predict::{self, SECOND_HALF, Slot};
use crate::shared::{RING_HEADER_BYTES, Ring, file_bytes};
use crate::thread::{self, Overwritten, Thread};
use crate::wire::{ADDRESS_MASK, EVENT_WORDS_MAX, Event, Kind, order, shift};
use crate::{process, replay, scheduler, sys};

/// The most words that an event takes, with the run before it.
const EVENT_WORDS: u64 = EVENT_WORDS_MAX as u64 + 1;

/// Where a thread's events go.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Buffer {
    words: *mut AtomicU64,
    mask: u64,
    head: u64,
    limit: u64,
    ring: *const Ring,
    /// Whether events of synchronization are numbered.
    pub numbered: bool,
}

impl Buffer {
    pub const fn new() -> Self {
        // SAFETY: zero is a value of every field: numbers, flags, null pointers.
        unsafe { core::mem::zeroed() }
    }

    /// Starts to write to the ring at `place`, which has `words` words.
    ///
    /// # Safety
    /// The memory at `place` is a ring, and nobody else writes to it.
    pub unsafe fn open(&mut self, place: *mut u8, words: u64) {
        self.ring = place.cast();
        self.words = place.add(RING_HEADER_BYTES).cast();
        self.mask = words - 1;
        self.head = 0;
        self.limit = 0;
    }

    /// How many words were written.
    pub const fn written(&self) -> u64 {
        self.head
    }

    /// Says that nothing more comes, and lets go of a ring of the thread's own.
    pub unsafe fn close(&mut self) {
        if self.numbered && !self.ring.is_null() {
            (*self.ring).ended.store(1, Ordering::Release);
            let length = file_bytes(0, self.mask + 1) * 2 - RING_HEADER_BYTES;
            sys::unmap(self.ring.cast_mut().cast(), length);
            *self = Self::new();
        }
    }

    /// Writes an event.
    #[inline]
    unsafe fn put_event(&mut self, event: &Event) {
        let mut words = [0; EVENT_WORDS_MAX];
        let count = event.encode(&mut words);
        self.put(&words[..count]);
    }

    /// Writes some words; the reader sees all of them or none.
    unsafe fn put(&mut self, words: &[u64]) {
        if !self.end_run() {
            return;
        }
        let place = self.place();
        for (offset, &word) in words.iter().enumerate() {
            (*place.add(offset)).store(word, Ordering::Relaxed);
        }
        self.publish(words.len() as u64);
    }

    /// Where the next word goes. The words of an event follow each other even at the end of the
    /// ring, which is mapped twice in a row.
    #[inline(always)]
    unsafe fn place(&self) -> *mut AtomicU64 {
        self.words.add((self.head & self.mask) as usize)
    }

    /// Shows the reader `count` more words.
    #[inline(always)]
    unsafe fn publish(&mut self, count: u64) {
        self.head += count;
        // Release: whoever sees the new head sees the words below it, stored relaxed before.
        (*self.ring).head.store(self.head, Ordering::Release);
        (*self.ring).run.store(self.head << 32, Ordering::Relaxed);
    }

    /// Makes room for an event, and writes how many accesses were as expected before it; false when
    /// nothing is recorded any more.
    #[inline]
    unsafe fn end_run(&mut self) -> bool {
        if self.head > self.limit && !self.make_room() {
            return false;
        }
        let count = (*self.ring).run.load(Ordering::Relaxed) & u64::from(u32::MAX);
        if count > 0 {
            let word = count | (Kind::Run as u64) << shift::KIND;
            (*self.place()).store(word, Ordering::Relaxed);
            self.publish(1);
        }
        true
    }

    /// Where accesses that are as expected are counted.
    pub unsafe fn run(&self) -> *mut u64 {
        (*self.ring).run.as_ptr()
    }

    /// Waits until there is room for an event; false when nothing is recorded any more.
    #[cold]
    #[inline(never)]
    unsafe fn make_room(&mut self) -> bool {
        let ring = &*self.ring;
        let size = self.mask + 1;
        process::wake_recorder();
        loop {
            let drained = ring.drained.load(Ordering::Acquire);
            let end = ring.tail.load(Ordering::Acquire) + size;
            if self.head + EVENT_WORDS <= end {
                self.limit = (end - EVENT_WORDS).min(self.head + size / 4);
                return !process::should_stop();
            }
            if process::should_stop() {
                return false;
            }
            // Store, then load: the reader stores its tail and then loads `sleeping`. Sequential
            // consistency on both sides means that not both can miss the other.
            ring.sleeping.store(1, Ordering::SeqCst);
            if ring.tail.load(Ordering::SeqCst) + size >= self.head + EVENT_WORDS {
                ring.sleeping.store(0, Ordering::Relaxed);
                continue;
            }
            process::wake_recorder();
            sys::futex_wait(&ring.drained, drained, 100);
            ring.sleeping.store(0, Ordering::Relaxed);
            if !process::is_read() {
                process::stop();
                return false;
            }
        }
    }
}

/// The runtime at work on behalf of the running thread: nothing it does is recorded.
pub struct Entry {
    pub thread: *mut Thread,
    pub code: u64,
}

/// What an event says besides its kind and address.
#[derive(Clone, Copy, Default)]
pub struct Operands {
    pub size: u8,
    pub order: u8,
    pub flags: u16,
    pub extra: Option<u64>,
    pub value: Option<u64>,
}

impl Operands {
    /// The bytes that an event of `kind` is about.
    fn length(&self, kind: Kind) -> u64 {
        match kind {
            Kind::ReadRange | Kind::WriteRange => self.extra.unwrap_or(0),
            _ => 1 << self.size,
        }
    }
}

/// How much of a quantum an event of synchronization takes, in accesses.
const SYNCHRONIZATION_COST: i64 = 32;

/// Enters the runtime from code at `code`; nothing if the runtime was entered already, the thread
/// is not recorded, or the code is that of an OpenMP library.
#[inline]
pub unsafe fn enter(code: u64) -> Option<Entry> {
    enter_by(code, |_| false)
}

/// The same where `is_within_statement` may say that the token must not be passed on here.
#[inline]
unsafe fn enter_by(
    code: u64,
    is_within_statement: impl FnOnce(*mut Thread) -> bool,
) -> Option<Entry> {
    #[cfg(not(reweave_static))]
    if crate::interceptors::openmp::is_library(code) {
        return None;
    }
    let mut thread = thread::current();
    if thread.is_null() {
        thread = process::adopt();
    }
    if (*thread).depth != 0 {
        return None;
    }
    (*thread).depth = 1;
    // A signal handler on this thread must see the depth before anything else is done; other threads
    // need no fence here, see `scheduler::evict`.
    compiler_fence(Ordering::SeqCst);
    (*thread).quantum -= SYNCHRONIZATION_COST;
    let is_due = (*thread).needs_safepoint.load(Ordering::Relaxed) != 0 || (*thread).quantum < 0;
    if is_due && !scheduler::safepoint(thread, is_within_statement(thread)) {
        return None;
    }
    if (*thread).boundary.is_due {
        libraries::resume(thread, code);
    }
    let entry = Entry { thread, code };
    program::look_for_objects(&entry);
    Some(entry)
}

impl Entry {
    /// Reports what the last write stored.
    pub unsafe fn flushed(self) -> Self {
        flush(self.thread);
        self
    }

    /// Logs an event with nothing but its address.
    pub unsafe fn log(&self, kind: Kind, address: u64) {
        self.log_with(kind, address, Operands::default());
    }

    /// Logs an event with a second operand.
    pub unsafe fn log_extra(&self, kind: Kind, address: u64, extra: u64) {
        self.log_with(kind, address, Operands { extra: Some(extra), ..Operands::default() });
    }

    /// Logs an event with flags.
    pub unsafe fn log_flags(&self, kind: Kind, address: u64, flags: u16) {
        self.log_with(kind, address, Operands { flags, ..Operands::default() });
    }

    /// Logs an event.
    pub unsafe fn log_with(&self, kind: Kind, address: u64, operands: Operands) {
        self.log_after(kind, address, operands, true);
    }

    /// Logs an event; if `has_stored`, what the last write was to store is there.
    unsafe fn log_after(&self, kind: Kind, address: u64, mut operands: Operands, has_stored: bool) {
        memory::tell_hidden(self);
        let thread = self.thread;
        if (*thread).ignored.is_any() {
            if (*thread).ignored.hides(kind) {
                return;
            }
            if (*thread).ignored.synchronization > 0 {
                operands.order = order::RELAXED;
            }
        }
        if replay::is_on() {
            replay::before(thread, self.code, [address, operands.length(kind)], kind);
        }
        let Operands { size, order, flags, extra, value } = operands;
        let buffer = (*thread).buffer;
        let number = ((*buffer).numbered && !kind.is_plain()).then(process::next_number);
        let stored = if has_stored { take_stored(thread) } else { None };
        let event = Event {
            size,
            order,
            flags,
            number,
            stored,
            extra,
            value,
            ..Event::new(kind, address, self.code)
        };
        (*buffer).put_event(&event);
        if replay::is_on() {
            replay::logged(thread, self.code, [address, operands.length(kind)], kind, flags);
        }
    }
}

impl Entry {
    /// Logs an event that no plan counts.
    pub unsafe fn log_unplanned(&self, kind: Kind, address: u64, extra: Option<u64>) {
        self.log_unplanned_pair(kind, address, extra, None);
    }

    /// The same of an event that has a value, too.
    pub unsafe fn log_unplanned_pair(
        &self,
        kind: Kind,
        address: u64,
        extra: Option<u64>,
        value: Option<u64>,
    ) {
        let operands = Operands { extra, value, ..Operands::default() };
        self.log_unplanned_with(kind, address, operands);
    }

    /// The same of an event that has operands.
    pub unsafe fn log_unplanned_with(&self, kind: Kind, address: u64, operands: Operands) {
        memory::tell_hidden(self);
        let buffer = (*self.thread).buffer;
        let number = (*buffer).numbered.then(process::next_number);
        let stored = take_stored(self.thread);
        let Operands { size, order, flags, extra, value } = operands;
        let event = Event::new(kind, address, self.code);
        let event = Event { size, order, flags, number, stored, extra, value, ..event };
        (*buffer).put_event(&event);
    }

    /// Notes that the program is about to call what must not be called by a handler of a signal, if it does so:
    /// the handler may have interrupted that very call.
    #[inline]
    pub unsafe fn note_unsafe_call(&self) {
        let is_own = !cfg!(reweave_static) && objects::is_instrumented(self.code);
        if (*self.thread).is_interrupted && is_own {
            self.log_unplanned(Kind::Interrupted, 0, Some(1));
        }
    }

    /// Whether threads run freely, and events are numbered.
    pub unsafe fn is_numbered(&self) -> bool {
        (*(*self.thread).buffer).numbered
    }
}

impl Drop for Entry {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the block of a running thread stays.
        unsafe {
            (*self.thread).depth = 0;
            compiler_fence(Ordering::SeqCst);
            crate::interceptors::handlers::deliver_deferred(self.thread);
        }
    }
}

/// What the last plain write of `thread` stored, if that is still to be reported.
#[inline(always)]
unsafe fn take_stored(thread: *mut Thread) -> Option<u64> {
    let address = (*thread).pending;
    if address == 0 {
        return None;
    }
    (*thread).pending = 0;
    let value = load(address, (*thread).pending_size);
    remember(thread, address, (*thread).pending_size, value);
    Some(value)
}

/// Remembers that `value` was seen in the `1 << size` bytes at `address`.
#[inline(always)]
unsafe fn remember(thread: *mut Thread, address: u64, size: u32, value: u64) {
    *(*thread).last_values.add(predict::value_slot(address)) = predict::mark(address, size, value);
}

/// Whether the `1 << size` bytes at `address` are what was last seen there.
#[inline(always)]
unsafe fn is_as_remembered(thread: *mut Thread, address: u64, size: u32) -> bool {
    let mark = *(*thread).last_values.add(predict::value_slot(address));
    mark == predict::mark(address, size, load(address, size))
}

/// The `1 << size` bytes at `address`, as a number.
#[inline(always)]
pub unsafe fn load(address: u64, size: u32) -> u64 {
    let place = address as *const u8;
    match size {
        0 => u64::from(place.read_volatile()),
        1 => u64::from(place.cast::<u16>().read_unaligned()),
        2 => u64::from(place.cast::<u32>().read_unaligned()),
        _ => place.cast::<u64>().read_unaligned(),
    }
}

/// Reports what the last write of `thread` stored before others run.
pub unsafe fn flush(thread: *mut Thread) {
    let stored = take_stored(thread);
    if stored.is_some() {
        (*(*thread).buffer).put_event(&Event { stored, ..Event::new(Kind::Stored, 0, 0) });
    }
}

/// Says that it is not known what the last write of `thread` stored.
pub unsafe fn forget_pending(thread: *mut Thread) {
    (*thread).pending = 0;
    (*(*thread).buffer).put_event(&Event::new(Kind::Interrupted, 0, 0));
}

/// Says that the events that follow are those of `thread`.
pub unsafe fn switch(thread: *mut Thread, escaped: bool) {
    let buffer = (*thread).buffer;
    (*buffer).put_event(&Event::new(Kind::Switch, u64::from((*thread).number), 0));
    if escaped {
        (*buffer).put_event(&Event::new(Kind::Escaped, 0, 0));
    }
}

/// Whether the store that the hook before announced may still be to come, at a read.
///
/// gcc announces the copy of a structure as a write and a read, then loads and stores. If others ran
/// in between, they would see memory as it was before the write, which comes before them in the log.
unsafe fn is_store_open(thread: *mut Thread) -> bool {
    if core::mem::take(&mut (*thread).is_range_pending) {
        return true;
    }
    let Overwritten { address, size, value } = (*thread).overwritten;
    let is_write = (*(*thread).previous).key >> shift::KIND & 0x3f == Kind::Write as u64;
    let has_changed = address != 0 && load(address, size) != value;
    is_write && !has_changed
}

/// Logs that code at `code` reads or writes a range.
pub unsafe fn range(kind: Kind, address: u64, length: u64, code: u64) {
    let reads = matches!(kind, Kind::ReadRange);
    // What was overwritten is only known if this is the first hook after that.
    let is_within_statement = |thread: *mut Thread| {
        (*thread).overwritten.address = 0;
        reads && is_store_open(thread)
    };
    if let Some(entry) = enter_by(code, is_within_statement) {
        let operands = Operands { extra: Some(length), ..Operands::default() };
        entry.log_after(kind, address, operands, !reads);
        (*entry.thread).pending_is_passed = true;
        (*entry.thread).is_range_pending = !reads;
    }
}

/// Logs a plain access of `1 << size` bytes at `address` by code at `code`.
///
/// An access that is as expected is only counted. All that can go otherwise leaves by a tail call,
/// so that the common way needs no stack. If it `CONTINUES` what the same hook announced, the token
/// stays.
#[inline(always)]
pub unsafe fn access<const CONTINUES: bool>(kind: Kind, size: u32, address: u64, code: u64) {
    let thread = thread::current();
    if thread.is_null() {
        return access_of_unknown_thread(kind, size, address, code);
    }
    if (*thread).depth != 0 {
        return;
    }
    (*thread).depth = 1;
    // Only then: whoever takes the token away asks for attention, then looks whether we are in here.
    compiler_fence(Ordering::SeqCst);
    (*thread).quantum -= 1;
    // Of the last write in a quantum it is noted what was there before.
    let quantum_min = if matches!(kind, Kind::Write) { 1 } else { 0 };
    let is_due =
        (*thread).needs_safepoint.load(Ordering::Relaxed) != 0 || (*thread).quantum < quantum_min;
    let slot = (*thread).expected;
    let is_expected = (*slot).key == predict::key(kind, size, code) && (*slot).address == address;
    if is_due || !is_expected {
        return access_slow(thread, kind, size, address, code, CONTINUES);
    }
    if (*thread).last_values.is_null() {
        return count(thread, slot);
    }
    // What else there is to do needs registers that this way does without.
    match (kind, size) {
        (Kind::Read, 0) => read_known::<0>(thread, slot, address, code),
        (Kind::Read, 1) => read_known::<1>(thread, slot, address, code),
        (Kind::Read, 2) => read_known::<2>(thread, slot, address, code),
        (Kind::Read, 3) => read_known::<3>(thread, slot, address, code),
        (Kind::Read, _) => read_known::<SECOND_HALF>(thread, slot, address, code),
        _ => write_known(thread, slot, size, address, code),
    }
}

/// Counts an access that is as `slot` expects.
#[inline(always)]
unsafe fn count(thread: *mut Thread, slot: *mut Slot) {
    (*slot).address = (*slot).address.wrapping_add((*slot).stride);
    (*thread).previous = slot;
    (*thread).expected = (*thread).slots.add((*slot).follow as usize);
    *(*thread).run += 1;
    compiler_fence(Ordering::SeqCst);
    (*thread).depth = 0;
}

/// Whether a read of `1 << size` bytes at `address` leaves open what the last write stored.
#[inline(always)]
unsafe fn leaves_open(thread: *mut Thread, address: u64, size: u32) -> bool {
    let is_first = !(*thread).pending_is_passed || size == SECOND_HALF;
    let pending = ((*thread).pending, (*thread).pending_size);
    is_first && predict::leaves_open(pending, address, size)
}

/// A read of `1 << SIZE` bytes that is where it was expected, and may be of what was last seen there.
#[inline(never)]
unsafe fn read_known<const SIZE: u32>(
    thread: *mut Thread,
    slot: *mut Slot,
    address: u64,
    code: u64,
) {
    let mut pending = (*thread).pending;
    if pending != 0 && !leaves_open(thread, address, SIZE) {
        if !is_as_remembered(thread, pending, (*thread).pending_size) {
            return access_slow(thread, Kind::Read, SIZE, address, code, SIZE == SECOND_HALF);
        }
        pending = 0;
    }
    if !is_as_remembered(thread, address, SIZE) {
        return access_slow(thread, Kind::Read, SIZE, address, code, SIZE == SECOND_HALF);
    }
    (*thread).pending = pending;
    (*thread).pending_is_passed = true;
    count(thread, slot);
}

/// A write that is where it was expected.
#[inline(never)]
unsafe fn write_known(thread: *mut Thread, slot: *mut Slot, size: u32, address: u64, code: u64) {
    let pending = (*thread).pending;
    if pending != 0
        && size != SECOND_HALF
        && !is_as_remembered(thread, pending, (*thread).pending_size)
    {
        return access_slow(thread, Kind::Write, size, address, code, false);
    }
    set_pending(thread, address, size);
    count(thread, slot);
}

/// Notes that the `1 << size` bytes at `address` are about to be written.
#[inline(always)]
unsafe fn set_pending(thread: *mut Thread, address: u64, size: u32) {
    (*thread).pending = address;
    (*thread).pending_size = size.min(3);
    (*thread).pending_is_passed = false;
}

/// Writes an access to a ring that has room for it, and learns from it.
unsafe fn write_access(thread: *mut Thread, kind: Kind, size: u32, address: u64, code: u64) {
    let buffer = (*thread).buffer;
    let key = predict::key(kind, size, code);
    let slot = (*thread).slots.add(predict::slot_of(key));
    (*slot).learn(key, address);
    (*(*thread).previous).follow = slot.offset_from((*thread).slots) as u64;
    (*thread).previous = slot;
    (*thread).expected = (*thread).slots.add((*slot).follow as usize);
    let mut first = address | (kind as u64) << shift::KIND | u64::from(size) << shift::SIZE;
    let place = (*buffer).place();
    (*place.add(1)).store(code, Ordering::Relaxed);
    let mut count = 2;
    if !(*thread).last_values.is_null() {
        let reads = matches!(kind, Kind::Read);
        if !reads && size == SECOND_HALF {
            (*thread).pending = 0;
        }
        if !(reads && leaves_open(thread, address, size))
            && let Some(stored) = take_stored(thread)
        {
            first |= 1 << shift::STORED;
            (*place.add(2)).store(stored, Ordering::Relaxed);
            count = 3;
        }
        if reads {
            (*thread).pending_is_passed = true;
            let value = load(address, size);
            remember(thread, address, size, value);
            first |= 1 << shift::VALUE;
            (*place.add(count)).store(value, Ordering::Relaxed);
            count += 1;
        } else {
            set_pending(thread, address, size);
        }
    }
    (*place).store(first, Ordering::Relaxed);
    (*buffer).publish(count as u64);
}

/// An access for which there is more to do than to log it.
#[cold]
#[inline(never)]
unsafe fn access_slow(
    thread: *mut Thread,
    kind: Kind,
    size: u32,
    address: u64,
    code: u64,
    continues: bool,
) {
    let is_due = (*thread).needs_safepoint.load(Ordering::Relaxed) != 0 || (*thread).quantum < 0;
    if is_due {
        let is_within_statement =
            continues || (matches!(kind, Kind::Read) && is_store_open(thread));
        if !scheduler::safepoint(thread, is_within_statement) {
            return;
        }
    }
    if (*thread).boundary.is_due {
        libraries::acquire_last(thread);
    }
    if !((*thread).ignored.is_any() && (*thread).ignored.hides(kind)) {
        let place = [address, 1 << size.min(3)];
        if replay::is_on() {
            replay::before(thread, code, place, kind);
        }
        if (*(*thread).buffer).end_run() {
            write_access(thread, kind, size, address, code);
        }
        if replay::is_on() {
            replay::logged(thread, code, place, kind, 0);
        }
        if matches!(kind, Kind::Write) && (*thread).quantum <= 0 && scheduler::is_serial() {
            note_overwritten(thread, address, size.min(3));
        }
    }
    compiler_fence(Ordering::SeqCst);
    (*thread).depth = 0;
}

/// Notes what is in memory before a write with which the quantum ends. There may be no such memory:
/// then it is the program that has to fail.
unsafe fn note_overwritten(thread: *mut Thread, address: u64, size: u32) {
    let value = sys::read_word(address, 1 << size);
    let address = if value.is_some() { address } else { 0 };
    (*thread).overwritten = Overwritten { address, size, value: value.unwrap_or(0) };
}

/// An access by a thread that we did not see begin.
#[cold]
#[inline(never)]
unsafe fn access_of_unknown_thread(kind: Kind, size: u32, address: u64, code: u64) {
    let thread = process::adopt();
    if (*thread).depth == 0 {
        (*thread).depth = 1;
        access_slow(thread, kind, size, address, code, false);
    }
}

/// Logs that a function was entered that was called from `code`, or left, and where its frame ends.
#[inline(always)]
pub unsafe fn call_stack(kind: Kind, code: u64, frame_end: u64) {
    let thread = thread::current();
    if thread.is_null() || (*thread).depth != 0 {
        return;
    }
    (*thread).depth = 1;
    compiler_fence(Ordering::SeqCst);
    if (*thread).needs_safepoint.load(Ordering::Relaxed) != 0
        && !scheduler::safepoint(thread, false)
    {
        return;
    }
    let may_be_in_call = (*thread).boundary.is_due;
    if may_be_in_call {
        libraries::acquire_last(thread);
    }
    if matches!(kind, Kind::Enter) {
        if !objects::is_in_main(code) {
            libraries::entered(thread, code, may_be_in_call);
        }
        (*thread).boundary.calls += 1;
        let first = (code & ADDRESS_MASK) | (kind as u64) << shift::KIND;
        (*(*thread).buffer).put(&[first, frame_end & ADDRESS_MASK]);
    } else {
        let word = (frame_end & ADDRESS_MASK) | (kind as u64) << shift::KIND;
        (*(*thread).buffer).put(&[word]);
        (*thread).boundary.calls -= 1;
        if (*thread).boundary.called_back > (*thread).boundary.calls {
            (*thread).boundary.called_back = 0;
        }
        if (*thread).boundary.depth > 0 {
            libraries::left(thread);
        }
    }
    compiler_fence(Ordering::SeqCst);
    (*thread).depth = 0;
}
