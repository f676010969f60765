//! What programs annotate for a race detector: the public interface of thread sanitizers.
//!
//! An order that the program declares (`__tsan_release`, `AnnotateHappensBefore` and what comes
//! after it) is a channel at the address that it names, apart from the memory there: who acquires
//! comes after all who released before. Locks that it announces are locks at their addresses; what
//! their own code does between the calls that announce it is not recorded.
//!
//! Accesses that the program asks to be ignored are not recorded either. Where it asks that
//! synchronization be, atomic accesses order nothing and declared order is left out; locks stay.
//! Memory on which races are declared benign is accessed atomically from then on, without order.
//! A fiber stays a part of the thread that runs it, which orders more than the fiber itself would;
//! one that goes on in another thread comes after what it did before. Call stacks do not follow
//! fibers.

#![allow(non_snake_case, reason = "programs know these functions by their names")]

use core::ffi::{c_char, c_int, c_long, c_uint};
use core::sync::atomic::{AtomicU32, Ordering};

use crate::log::{self, Operands};
use crate::thread::{self, Ignored};
use crate::wire::{Kind, channel, flag};

/// Defines hooks that note where they were called from and go on to their bodies.
macro_rules! annotations {
    ($($names:tt $arguments:tt $(-> $result:ty)? $body:block)*) => {
        $(annotations! { @ $names $arguments [$(-> $result)?] $body })*
    };
    (@ [$($name:ident)+] $arguments:tt $result:tt $body:block) => {
        $(annotations! { @ $name $arguments $result $body })+
    };
    (@ $name:ident $arguments:tt [$(-> $result:ty)?] $body:block) => {
        hook!(stringify!($name), $arguments $(-> $result)?, $body);
    };
}

/// Defines functions that do nothing and answer 0.
macro_rules! silent {
    ($($name:ident)*) => {
        $(
            #[cfg_attr(reweave_export, unsafe(no_mangle))]
            unsafe extern "C" fn $name() -> usize {
                0
            }
        )*
    };
}

/// Says that what comes before is handed to those who acquire at `address`.
unsafe fn release(address: u64) {
    if let Some(entry) = log::enter(thread::caller()) {
        entry.log(Kind::Send, address);
    }
}

/// Says that what follows comes after all that was released at `address`.
unsafe fn acquire(address: u64) {
    if let Some(entry) = log::enter(thread::caller()) {
        entry.log_with(
            Kind::Receive,
            address,
            Operands { flags: flag::TRY, ..Operands::default() },
        );
    }
}

/// Logs that something happened to the lock at `address`.
unsafe fn log_lock(kind: Kind, address: usize, flags: u16) {
    if let Some(entry) = log::enter(thread::caller()) {
        entry.log_with(kind, address as u64, Operands { flags, ..Operands::default() });
    }
}

/// Logs what is said of the `length` bytes at `address`.
unsafe fn log_extent(kind: Kind, address: u64, length: u64) {
    if let Some(entry) = log::enter(thread::caller()) {
        entry.log_extra(kind, address, length);
    }
}

/// Changes what of the running thread is ignored.
unsafe fn ignore(change: impl FnOnce(&mut Ignored)) {
    let thread = thread::current();
    if !thread.is_null() && thread != thread::unrecorded() {
        change(&mut (*thread).ignored);
        // Hooks look only where there is more to do than to log.
        (*thread).needs_safepoint.store(1, Ordering::Relaxed);
    }
}

/// One less, where an end has a beginning.
const fn less(count: &mut u32) {
    *count = count.saturating_sub(1);
}

/// Accesses by calls.
mod unaligned {
    use super::*;

    pub unsafe fn load(size: u32, address: u64) -> u64 {
        log::access::<false>(Kind::Read, size, address, thread::caller());
        log::load(address, size)
    }

    pub unsafe fn store<T>(size: u32, address: u64, value: T) {
        log::access::<false>(Kind::Write, size, address, thread::caller());
        (address as *mut T).write_unaligned(value);
    }
}

/// How locks are announced.
mod mutex {
    pub const WRITE_REENTRANT: u32 = 1 << 1;
    pub const READ_LOCK: u32 = 1 << 3;
    pub const TRY_LOCK: u32 = 1 << 4;
    pub const TRY_LOCK_FAILED: u32 = 1 << 5;
    pub const RECURSIVE_LOCK: u32 = 1 << 6;
}

/// The flags of an event about a lock that was announced with `flags`.
const fn lock_flags(flags: c_uint) -> u16 {
    let shared = if flags & mutex::READ_LOCK != 0 { flag::SHARED } else { 0 };
    let tries = if flags & mutex::TRY_LOCK != 0 { flag::TRY } else { 0 };
    let nests = flags & (mutex::WRITE_REENTRANT | mutex::RECURSIVE_LOCK) != 0;
    shared | tries | if nests { flag::RECURSIVE } else { 0 }
}

annotations! {
    __tsan_acquire(address: u64) { acquire(address); }
    __tsan_release(address: u64) { release(address); }
    [AnnotateHappensBefore WTFAnnotateHappensBefore](_file: *const c_char, _line: c_int, address: u64) {
        release(address);
    }
    [AnnotateHappensAfter WTFAnnotateHappensAfter](_file: *const c_char, _line: c_int, address: u64) {
        acquire(address);
    }
    __tsan_mutex_create(address: usize, flags: c_uint) {
        log_lock(Kind::LockInit, address, lock_flags(flags) & flag::RECURSIVE);
    }
    __tsan_mutex_destroy(address: usize, _flags: c_uint) { log_lock(Kind::LockDestroy, address, 0); }
    __tsan_mutex_pre_lock(address: usize, flags: c_uint) {
        if flags & mutex::TRY_LOCK == 0 {
            log_lock(Kind::LockRequest, address, lock_flags(flags));
        }
        ignore(|ignored| ignored.lock += 1);
    }
    __tsan_mutex_post_lock(address: usize, flags: c_uint, recursion: c_int) {
        ignore(|ignored| less(&mut ignored.lock));
        // Taken as often as it was released at once.
        let count = if flags & mutex::RECURSIVE_LOCK != 0 { recursion.max(1) } else { 1 };
        if flags & mutex::TRY_LOCK_FAILED == 0 {
            nesting::add(address, flags, count);
            for _ in 0..count {
                log_lock(Kind::Lock, address, lock_flags(flags));
            }
        } else {
            log_lock(Kind::LockBusy, address, lock_flags(flags) & flag::SHARED);
        }
    }
    __tsan_mutex_pre_unlock(address: usize, flags: c_uint) -> c_int {
        let count = nesting::take(address, flags);
        for _ in 0..count {
            log_lock(Kind::Unlock, address, 0);
        }
        ignore(|ignored| ignored.lock += 1);
        count
    }
    // A lock that wakes others, or runs code that is not its own, in the midst of its own.
    [__tsan_mutex_pre_signal __tsan_mutex_post_divert](_address: usize, _flags: c_uint) {
        ignore(|ignored| ignored.lock += 1);
    }
    [__tsan_mutex_post_unlock __tsan_mutex_post_signal __tsan_mutex_pre_divert](
        _address: usize, _flags: c_uint
    ) {
        ignore(|ignored| less(&mut ignored.lock));
    }
    [AnnotateIgnoreReadsBegin WTFAnnotateIgnoreReadsBegin](_file: *const c_char, _line: c_int) {
        ignore(|ignored| ignored.reads += 1);
    }
    [AnnotateIgnoreReadsEnd WTFAnnotateIgnoreReadsEnd](_file: *const c_char, _line: c_int) {
        ignore(|ignored| less(&mut ignored.reads));
    }
    [AnnotateIgnoreWritesBegin WTFAnnotateIgnoreWritesBegin](_file: *const c_char, _line: c_int) {
        ignore(|ignored| ignored.writes += 1);
    }
    [AnnotateIgnoreWritesEnd WTFAnnotateIgnoreWritesEnd](_file: *const c_char, _line: c_int) {
        ignore(|ignored| less(&mut ignored.writes));
    }
    AnnotateIgnoreSyncBegin(_file: *const c_char, _line: c_int) {
        ignore(|ignored| ignored.synchronization += 1);
    }
    AnnotateIgnoreSyncEnd(_file: *const c_char, _line: c_int) {
        ignore(|ignored| less(&mut ignored.synchronization));
    }
    __tsan_ignore_thread_begin() {
        ignore(|ignored| (ignored.reads, ignored.writes) = (ignored.reads + 1, ignored.writes + 1));
    }
    __tsan_ignore_thread_end() {
        ignore(|ignored| {
            less(&mut ignored.reads);
            less(&mut ignored.writes);
        });
    }
    AnnotateBenignRace(_file: *const c_char, _line: c_int, address: u64, _why: *const c_char) {
        log_extent(Kind::Benign, address, 1);
    }
    [AnnotateBenignRaceSized WTFAnnotateBenignRaceSized](
        _file: *const c_char, _line: c_int, address: u64, length: u64, _why: *const c_char
    ) {
        log_extent(Kind::Benign, address, length);
    }
    AnnotatePublishMemoryRange(_file: *const c_char, _line: c_int, address: u64, length: u64) {
        log_extent(Kind::Publish, address, length);
    }
    AnnotateUnpublishMemoryRange(_file: *const c_char, _line: c_int, address: u64, _length: u64) {
        log_extent(Kind::Publish, address, 0);
    }
    [AnnotateCondVarSignal AnnotateCondVarSignalAll AnnotatePCQPut](
        _file: *const c_char, _line: c_int, address: u64
    ) {
        release(address);
    }
    AnnotateCondVarWait(_file: *const c_char, _line: c_int, condition: u64, _lock: usize) {
        acquire(condition);
    }
    AnnotatePCQGet(_file: *const c_char, _line: c_int, queue: u64) {
        if let Some(entry) = log::enter(thread::caller()) {
            entry.log(Kind::Receive, queue);
        }
    }
    __sanitizer_unaligned_load16(address: u64) -> u16 { unaligned::load(1, address) as u16 }
    __sanitizer_unaligned_load32(address: u64) -> u32 { unaligned::load(2, address) as u32 }
    __sanitizer_unaligned_load64(address: u64) -> u64 { unaligned::load(3, address) }
    __sanitizer_unaligned_store16(address: u64, value: u16) { unaligned::store(1, address, value); }
    __sanitizer_unaligned_store32(address: u64, value: u32) { unaligned::store(2, address, value); }
    __sanitizer_unaligned_store64(address: u64, value: u64) { unaligned::store(3, address, value); }
    [__sanitizer_symbolize_pc __sanitizer_symbolize_global](
        _address: usize, _format: *const c_char, text: *mut c_char, length: usize
    ) {
        if length > 0 {
            text.write(0);
        }
    }
    __sanitizer_get_report_path() -> *const c_char { c"stderr".as_ptr() }
    // Containers of which nothing is known have no bad address.
    [__sanitizer_verify_contiguous_container __sanitizer_verify_double_ended_contiguous_container
        __sanitizer_acquire_crash_state]() -> c_int {
        1
    }
    [AnnotateRWLockCreate AnnotateRWLockCreateStatic](_file: *const c_char, _line: c_int, lock: usize) {
        log_lock(Kind::LockInit, lock, 0);
    }
    AnnotateRWLockDestroy(_file: *const c_char, _line: c_int, lock: usize) {
        log_lock(Kind::LockDestroy, lock, 0);
    }
    AnnotateRWLockAcquired(_file: *const c_char, _line: c_int, lock: usize, writes: c_long) {
        log_lock(Kind::Lock, lock, if writes == 0 { flag::SHARED } else { 0 });
    }
    AnnotateRWLockReleased(_file: *const c_char, _line: c_int, lock: usize, _writes: c_long) {
        log_lock(Kind::Unlock, lock, 0);
    }
    // Objects whose accesses are calls: of their first bytes.
    __tsan_external_read(address: u64, code: u64, _tag: usize) { log::access::<false>(Kind::Read, 0, address, code); }
    __tsan_external_write(address: u64, code: u64, _tag: usize) {
        log::access::<false>(Kind::Write, 0, address, code);
    }
    __tsan_get_current_fiber() -> u64 { current_fiber() }
    __tsan_create_fiber(_flags: c_uint) -> u64 {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        channel::address(channel::id(FIBER, COUNT.fetch_add(1, Ordering::Relaxed) | CREATED))
    }
    __tsan_switch_to_fiber(fiber: u64, _flags: c_uint) {
        release(current_fiber());
        set_fiber(fiber);
        acquire(fiber);
    }
}

silent! {
    __sanitizer_annotate_contiguous_container
    __sanitizer_annotate_double_ended_contiguous_container
    __sanitizer_contiguous_container_find_bad_address
    __sanitizer_copy_contiguous_container_annotations
    __sanitizer_double_ended_contiguous_container_find_bad_address
    __sanitizer_finish_switch_fiber
    __sanitizer_get_module_and_offset_for_pc
    __sanitizer_print_memory_profile
    __sanitizer_start_switch_fiber
    __tsan_destroy_fiber
    __tsan_set_fiber_name
    __tsan_external_register_header
    __tsan_external_assign_tag
    __tsan_flush_memory
    AnnotateExpectRace
    AnnotateFlushExpectedRaces
    AnnotateEnableRaceDetection
    AnnotateFlushState
    AnnotateNewMemory
    AnnotateNoOp
    AnnotateThreadName
    AnnotateTraceMemory
    AnnotateMemoryIsInitialized
    AnnotateMemoryIsUninitialized
    AnnotateMutexIsNotPHB
    AnnotateMutexIsUsedAsCondVar
    AnnotatePCQCreate
    AnnotatePCQDestroy
    RunningOnValgrind
    ThreadSanitizerQuery
    __sanitizer_print_stack_trace
    __sanitizer_report_error_summary
    __sanitizer_sandbox_on_notify
    __sanitizer_set_death_callback
    __sanitizer_set_report_fd
    __sanitizer_set_report_path
}

/// Tags must not be null.
#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn __tsan_external_register_tag(_name: *const c_char) -> usize {
    1
}

#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn ValgrindSlowdown() -> f64 {
    1.0
}

/// How often announced locks are held, for those who release them all at once.
///
/// A lock has one place that it can be in. Whoever counts holds the lock, so only locks that share a
/// place come into each other's way: one that finds it taken is not counted.
mod nesting {
    use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

    use super::{c_int, c_uint, mutex};

    const RECURSIVE_UNLOCK: c_uint = 1 << 7;
    const PLACES: usize = 1024;

    static PLACE: [(AtomicUsize, AtomicI32); PLACES] =
        [const { (AtomicUsize::new(0), AtomicI32::new(0)) }; PLACES];

    fn place(address: usize) -> &'static (AtomicUsize, AtomicI32) {
        &PLACE[(address >> 3).wrapping_mul(0x9e37_79b9) / 64 % PLACES]
    }

    /// The lock at `address` was taken `count` more times.
    pub fn add(address: usize, flags: c_uint, count: c_int) {
        if flags & mutex::READ_LOCK != 0 {
            return;
        }
        let (lock, held) = place(address);
        let before = lock.compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire);
        if before.is_ok() || before == Err(address) {
            held.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// The lock at `address` is released: how often.
    pub fn take(address: usize, flags: c_uint) -> c_int {
        let (lock, held) = place(address);
        if flags & mutex::READ_LOCK != 0 || lock.load(Ordering::Acquire) != address {
            return 1;
        }
        let before = held.load(Ordering::Relaxed);
        let count = if flags & RECURSIVE_UNLOCK != 0 { before.max(1) } else { 1 };
        held.store((before - count).max(0), Ordering::Relaxed);
        if before <= count {
            lock.store(0, Ordering::Release);
        }
        count
    }
}

/// The kind of channel by which a fiber comes after itself.
const FIBER: u32 = 15;
/// Sets created fibers apart from those that threads begin with.
const CREATED: u32 = 1 << 27;

thread::declare_local!("reweave_fiber");

/// The fiber that runs: the one that was switched to last, or that with which the thread began.
fn current_fiber() -> u64 {
    let fiber = thread::read_local!("reweave_fiber");
    if fiber != 0 {
        return fiber;
    }
    let thread = thread::current();
    // SAFETY: the block of a running thread stays.
    let number = if thread.is_null() { 0 } else { unsafe { (*thread).number } };
    channel::address(channel::id(FIBER, number & !CREATED))
}

fn set_fiber(fiber: u64) {
    thread::write_local!("reweave_fiber", fiber);
}
