//! Synchronization: mutexes, read-write locks, conditions, barriers, semaphores, `pthread_once`,
//! C++ guards, the C11 forms of these, futexes, calls that only sleep; and what the wrappers around
//! Rust's standard library report.

use core::ffi::{c_int, c_long, c_uint};
use core::mem::ManuallyDrop;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use super::libraries;
use super::program::log_range;
use super::{
    __errno_location, BUSY, TIMED_OUT, acquire, acquired, enter_or, flags_of_end, interceptors,
    keeping_errno, wait_on,
};
use crate::hooks::atomic;
use crate::log::{self, Entry, Operands};
use crate::std_events::{INTERNAL_LOCK_BYTES, Logged, VIRTUAL, logged};
use crate::wire::{Kind, flag, handle, order, wait};
use crate::{replay, scheduler, sys, thread};

/// Lets other threads run, also those that are about to queue up for the token.
unsafe fn yield_token(entry: &Entry) {
    if scheduler::is_serial() {
        scheduler::pass_token(entry.thread);
    }
    sys::sched_yield();
}

unsafe extern "C" {
    fn pthread_mutexattr_gettype(attributes: usize, kind: *mut c_int) -> c_int;
}

/// `PTHREAD_MUTEX_RECURSIVE` and `PTHREAD_MUTEX_ERRORCHECK`, and the bits of a mutex's kind that
/// say which it is.
const RECURSIVE: c_int = 1;
const ERROR_CHECK: c_int = 2;
const KIND_MASK: c_int = 3;

unsafe fn flags_of(attributes: usize) -> u16 {
    let mut kind = 0;
    if attributes != 0 {
        pthread_mutexattr_gettype(attributes, &raw mut kind);
    }
    if kind == RECURSIVE { flag::RECURSIVE } else { 0 }
}

/// Logs that the kernel releases the robust mutexes which the running thread holds at its end.
pub unsafe fn release_robust_mutexes(entry: &Entry) {
    /// More than this are not followed: the list may be damaged.
    const FOLLOWED_MAX: usize = 1 << 20;
    let Some(head) = sys::robust_list() else { return };
    let to_lock = *head.add(1);
    let mut at = *head;
    for _ in 0..FOLLOWED_MAX {
        // The lowest bit says whether the mutex inherits priorities.
        let element = at & !1;
        if element == 0 || element == head as usize {
            return;
        }
        // The lock word is the first of a mutex.
        entry.log(Kind::Unlock, element.wrapping_add(to_lock) as u64);
        at = *(element as *const usize);
    }
}

/// A mutex as the C library lays it out.
#[repr(C)]
struct Mutex {
    lock: c_int,
    count: c_uint,
    owner: u32,
    users: c_uint,
    kind: c_int,
}

/// Whether the running thread owns `mutex`.
unsafe fn is_owner(mutex: *const Mutex) -> bool {
    /// Instead of the owner of a mutex whose last one died.
    const INCONSISTENT: u32 = i32::MAX as u32;
    let owner = ptr::read_volatile(&raw const (*mutex).owner);
    owner == sys::gettid() || owner == INCONSISTENT
}

/// Acquires `mutex`, unless the C library refuses with `EDEADLK`, or since it was destroyed: then nothing
/// happens to it.
unsafe fn lock_mutex(entry: &Entry, mutex: usize, flags: u16, call: impl Fn() -> c_int) -> c_int {
    const DESTROYED: c_int = -1;
    entry.note_unsafe_call();
    let layout = mutex as *const Mutex;
    if ptr::read_volatile(&raw const (*layout).kind) == DESTROYED {
        entry.log_flags(Kind::LockDestroy, mutex as u64, flag::MISUSE | flag::TRY);
        return call();
    }
    if (*layout).kind & KIND_MASK == ERROR_CHECK && is_owner(layout) {
        return call();
    }
    acquire(entry, mutex, flags, || pthread_mutex_trylock::real(mutex), call)
}

/// Whether the C library refuses with `EPERM` to release `mutex`, which another thread holds.
unsafe fn refuses_unlock(mutex: usize) -> bool {
    const ROBUST: c_int = 16;
    let mutex = mutex as *const Mutex;
    let kind = (*mutex).kind;
    let is_checked = matches!(kind & KIND_MASK, ERROR_CHECK | RECURSIVE) || kind & ROBUST != 0;
    is_checked && !is_owner(mutex)
}

/// What a thread that does not hold `mutex` does wrong if it goes by that it does.
unsafe fn misuse_by_stranger(mutex: usize) -> u16 {
    let mutex = mutex as *const Mutex;
    if ptr::read_volatile(&raw const (*mutex).lock) == 0 {
        flag::MISUSE
    } else if !is_owner(mutex) {
        flag::MISUSE | flag::TRY
    } else {
        0
    }
}

/// Logs that what is at `address` ends its life: a lock, or what `extra` says.
unsafe fn destroyed(entry: &Entry, address: usize, flags: u16, extra: Option<u64>) {
    let flags = flags | flags_of_end(entry);
    entry.log_with(
        Kind::LockDestroy,
        address as u64,
        Operands { flags, extra, ..Operands::default() },
    );
}

/// Makes a call that sleeps for some time.
unsafe fn sleeping<R>(entry: &Entry, call: impl FnOnce() -> R) -> R {
    entry.blocking_for(wait::SLEEP, None, call)
}

/// Takes a unit of a semaphore by `call`, without releasing the token if there is one.
unsafe fn take(
    entry: &Entry,
    semaphore: usize,
    is_timed: bool,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let mut result = -1;
    if scheduler::is_serial() {
        result = keeping_errno(|| sem_trywait::real(semaphore));
    }
    if result != 0 {
        let what = if is_timed { wait::SLEEP } else { wait::SEMAPHORE };
        result = entry.blocking_for(what, Some(semaphore as u64), call);
    }
    // What led to a take in code that is not recorded is not known.
    let gives_up = is_timed || !libraries::checks_are_seen(entry.code);
    taken(entry, semaphore, if gives_up { flag::TRY } else { 0 }, result)
}

/// Logs what `result` and `errno` say of an attempt to take a unit of a semaphore.
unsafe fn taken(entry: &Entry, semaphore: usize, flags: u16, result: c_int) -> c_int {
    const WOULD_WAIT: c_int = 11;
    if result == 0 {
        entry.log_flags(Kind::SemaphoreTake, semaphore as u64, flags);
    } else if matches!(*__errno_location(), WOULD_WAIT | TIMED_OUT) {
        entry.log_flags(Kind::Receive, semaphore as u64, flag::TRY | flag::TIMED_OUT);
    }
    result
}

// `pthread_once` and `call_once`: whoever ran the routine stores to the control word, with release,
// before anybody can find it done; whoever found it done loads from it, with acquire. A routine that
// is left by an exception or by cancellation is run again by another caller: whoever leaves it so
// stores as well, and whoever runs it loads first. The routine is the program's code: it runs
// recorded, with the token, as if it had been called directly, so an exception that leaves it finds
// everything in order.

/// What a thread is about to do once.
#[derive(Clone, Copy, Debug)]
pub struct Once {
    /// What is to be run; 0 once it was.
    routine: usize,
    control: usize,
    code: u64,
}

/// The routines that a thread runs, the innermost last. They are kept here and not in the frames
/// that run them: a routine that is jumped out of leaves its entry behind.
#[derive(Clone, Copy, Debug)]
pub struct OnceAttempts {
    count: usize,
    /// The control word of each, and who asked for it. Deeper ones are only counted.
    known: [(usize, u64); 8],
}

/// Whether any attempt failed. Who finds out later may have to come after it.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Runs the routine that the running thread was about to run once. Exceptions pass through this
/// frame: the unwinder calls its personality then.
#[unsafe(naked)]
unsafe extern "C" fn run_once() {
    /// Relative to the instruction, in four bytes.
    const ENCODING: u8 = 0x1b;
    core::arch::naked_asm!(
        ".cfi_startproc",
        ".cfi_personality {encoding}, {left_once}",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {attempt_once}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        ".cfi_endproc",
        encoding = const ENCODING,
        left_once = sym left_once,
        attempt_once = sym attempt_once,
    )
}

unsafe extern "C" fn attempt_once() {
    let thread = thread::current();
    if thread.is_null() || (*thread).once.routine == 0 {
        return;
    }
    let Once { routine, control, code } = (*thread).once;
    let routine: unsafe extern "C" fn() = core::mem::transmute(routine);
    (*thread).once.routine = 0;
    scheduler::acquire(thread);
    // The runtime is not left here, but by whoever called us.
    let entry = ManuallyDrop::new(Entry { thread, code });
    if HAS_FAILED.load(Ordering::Relaxed) {
        log_once(&entry, Kind::AtomicLoad, control, order::ACQUIRE);
    }
    let attempts = &raw mut (*thread).once_attempts;
    let around = (*attempts).count;
    if let Some(known) = (*attempts).known.get_mut(around) {
        *known = (control, code);
    }
    (*attempts).count = around + 1;
    (*thread).depth = 0;
    routine();
    // The routine may have ended the recording, and with it our place in the thread.
    if thread::current() == thread {
        (*thread).depth = 1;
        (*attempts).count = around;
        scheduler::settle(thread);
        log_once(&entry, Kind::AtomicStore, control, order::RELEASE);
        scheduler::release(thread);
    }
}

/// The personality of [`run_once`]: an exception, or the end of the thread, leaves the routine. The
/// C library lets others run it only after this.
unsafe extern "C" fn left_once(_version: c_int, actions: c_int) -> c_int {
    const CLEANUP_PHASE: c_int = 2;
    const CONTINUE_UNWIND: c_int = 8;
    let thread = thread::current();
    if actions & CLEANUP_PHASE == 0 || thread.is_null() || thread == thread::unrecorded() {
        return CONTINUE_UNWIND;
    }
    let attempts = &raw mut (*thread).once_attempts;
    (*attempts).count = (*attempts).count.saturating_sub(1);
    if let Some(&(control, code)) = (*attempts).known.get((*attempts).count)
        && control != 0
    {
        HAS_FAILED.store(true, Ordering::Relaxed);
        if let Some(entry) = log::enter(code) {
            log_once(&entry, Kind::AtomicStore, control, order::RELEASE);
        }
    }
    CONTINUE_UNWIND
}

unsafe fn log_once(entry: &Entry, kind: Kind, control: usize, order: u8) {
    entry.log_with(kind, control as u64, Operands { order, size: 2, ..Operands::default() });
}

/// Does `routine` once, by `call`, which runs what it is given unless that was done before.
unsafe fn once(
    entry: &Entry,
    control: usize,
    routine: usize,
    call: impl FnOnce(usize) -> c_int,
) -> c_int {
    let thread = entry.thread;
    // Routines can nest: the one around this is put back afterwards.
    let outer = (*thread).once;
    (*thread).once = Once { routine, control, code: entry.code };
    scheduler::release(thread);
    let result = call(run_once as *const () as usize);
    scheduler::acquire(thread);
    let was_done_before = (*thread).once.routine != 0;
    (*thread).once = outer;
    if was_done_before {
        log_once(entry, Kind::AtomicLoad, control, order::ACQUIRE);
    }
    result
}

/// `thrd_busy`, `thrd_timedout` and `mtx_recursive`.
const C11_BUSY: c_int = 1;
const C11_TIMED_OUT: c_int = 4;
const C11_RECURSIVE: c_int = 1;

/// The C11 answer to a try, as POSIX gives it.
fn posix(result: c_int) -> c_int {
    match result {
        C11_BUSY => BUSY,
        C11_TIMED_OUT => TIMED_OUT,
        other => other,
    }
}

/// An answer as C11 gives it.
fn c11(result: c_int) -> c_int {
    match result {
        BUSY => C11_BUSY,
        TIMED_OUT => C11_TIMED_OUT,
        other => other,
    }
}

/// Acquires a mutex of C11, whose functions do not call those of POSIX.
unsafe fn lock_c11(entry: &Entry, mutex: usize, flags: u16, call: impl FnOnce() -> c_int) -> c_int {
    c11(acquire(entry, mutex, flags, || posix(mtx_trylock::real(mutex)), || posix(call())))
}

interceptors! {
    // Calls that sleep for nothing that another thread does.
    fn sleep(seconds: c_uint) -> c_uint |entry, call| { sleeping(&entry, call) }
    fn usleep(microseconds: c_uint) -> c_int |entry, call| { sleeping(&entry, call) }
    fn [nanosleep thrd_sleep](duration: usize, rest: usize) -> c_int |entry, call| { sleeping(&entry, call) }
    fn clock_nanosleep(clock: c_int, flags: c_int, duration: usize, rest: usize) -> c_int |entry, call| {
        sleeping(&entry, call)
    }
    fn pause() -> c_int |entry, call| { entry.blocking(call) }
    fn sigsuspend(mask: usize) -> c_int |entry, call| { entry.blocking(call) }
    fn lockf(file: c_int, command: c_int, length: c_long) -> c_int |entry, call| { entry.blocking(call) }
    fn fsync(file: c_int) -> c_int |entry, call| { entry.blocking(call) }
    fn sched_yield() -> c_int |entry, call| { yield_token(&entry); 0 }
    fn thrd_yield() -> () |entry, call| { yield_token(&entry); }

    // Mutexes and spin locks.
    fn pthread_mutex_init(mutex: usize, attributes: usize) -> c_int |entry, call| {
        entry.log_flags(Kind::LockInit, mutex as u64, flags_of(attributes));
        call()
    }
    fn mtx_init(mutex: usize, kind: c_int) -> c_int |entry, call| {
        let flags = if kind & C11_RECURSIVE != 0 { flag::RECURSIVE } else { 0 };
        entry.log_flags(Kind::LockInit, mutex as u64, flags);
        call()
    }
    fn pthread_spin_init(lock: usize, shared: c_int) -> c_int |entry, call| {
        entry.log(Kind::LockInit, lock as u64);
        call()
    }
    fn pthread_mutex_destroy(mutex: usize) -> c_int |entry, call| {
        let is_held = ptr::read_volatile(&raw const (*(mutex as *const Mutex)).lock) != 0;
        destroyed(&entry, mutex, if is_held { flag::MISUSE } else { 0 }, None);
        call()
    }
    fn [pthread_spin_destroy pthread_rwlock_destroy](lock: usize) -> c_int |entry, call| {
        destroyed(&entry, lock, 0, None);
        call()
    }
    fn pthread_cond_destroy(condition: usize) -> c_int |entry, call| {
        destroyed(&entry, condition, 0, Some(handle::CONDITION));
        // It waits for threads that are still inside.
        entry.nonblocking(call)
    }
    fn pthread_barrier_destroy(barrier: usize) -> c_int |entry, call| {
        destroyed(&entry, barrier, 0, Some(handle::BARRIER));
        // It waits for threads that are still inside.
        entry.nonblocking(call)
    }
    fn sem_destroy(semaphore: usize) -> c_int |entry, call| {
        destroyed(&entry, semaphore, 0, Some(handle::SEMAPHORE));
        call()
    }
    fn mtx_destroy(lock: usize) -> () |entry, call| {
        destroyed(&entry, lock, 0, None);
        call();
    }
    fn cnd_destroy(condition: usize) -> () |entry, call| {
        destroyed(&entry, condition, 0, Some(handle::CONDITION));
        entry.nonblocking(call);
    }
    fn pthread_mutex_lock(mutex: usize) -> c_int |entry, call| { lock_mutex(&entry, mutex, 0, call) }
    fn pthread_mutex_timedlock(mutex: usize, until: usize) -> c_int |entry, call| {
        lock_mutex(&entry, mutex, flag::TRY, call)
    }
    fn pthread_mutex_clocklock(mutex: usize, clock: c_int, until: usize) -> c_int |entry, call| {
        lock_mutex(&entry, mutex, flag::TRY, call)
    }
    fn [pthread_mutex_trylock pthread_spin_trylock pthread_rwlock_trywrlock](
        lock: usize,
    ) -> c_int |entry, call| {
        acquired(&entry, lock, flag::TRY, call())
    }
    fn pthread_mutex_unlock(mutex: usize) -> c_int |entry, call| {
        if !refuses_unlock(mutex) {
            entry.log_flags(Kind::Unlock, mutex as u64, misuse_by_stranger(mutex));
        }
        call()
    }
    fn [pthread_spin_unlock pthread_rwlock_unlock mtx_unlock](lock: usize) -> c_int |entry, call| {
        entry.log(Kind::Unlock, lock as u64);
        call()
    }
    fn pthread_spin_lock(lock: usize) -> c_int |entry, call| {
        let wait = || {
            // Yielding, since the thread that has the lock may need this core to get the token.
            while pthread_spin_trylock::real(lock) == BUSY {
                sys::sched_yield();
            }
            0
        };
        acquire(&entry, lock, 0, || pthread_spin_trylock::real(lock), wait)
    }
    fn mtx_lock(mutex: usize) -> c_int |entry, call| { lock_c11(&entry, mutex, 0, call) }
    fn mtx_timedlock(mutex: usize, until: usize) -> c_int |entry, call| {
        lock_c11(&entry, mutex, flag::TRY, call)
    }
    fn mtx_trylock(mutex: usize) -> c_int |entry, call| {
        c11(acquired(&entry, mutex, flag::TRY, posix(call())))
    }

    // Read-write locks.
    fn pthread_rwlock_init(lock: usize, attributes: usize) -> c_int |entry, call| {
        entry.log(Kind::LockInit, lock as u64);
        call()
    }
    fn pthread_rwlock_rdlock(lock: usize) -> c_int |entry, call| {
        acquire(&entry, lock, flag::SHARED, || pthread_rwlock_tryrdlock::real(lock), call)
    }
    fn pthread_rwlock_tryrdlock(lock: usize) -> c_int |entry, call| {
        acquired(&entry, lock, flag::SHARED | flag::TRY, call())
    }
    fn pthread_rwlock_timedrdlock(lock: usize, until: usize) -> c_int |entry, call| {
        acquire(&entry, lock, flag::SHARED | flag::TRY, || pthread_rwlock_tryrdlock::real(lock), call)
    }
    fn pthread_rwlock_clockrdlock(lock: usize, clock: c_int, until: usize) -> c_int |entry, call| {
        acquire(&entry, lock, flag::SHARED | flag::TRY, || pthread_rwlock_tryrdlock::real(lock), call)
    }
    fn pthread_rwlock_wrlock(lock: usize) -> c_int |entry, call| {
        acquire(&entry, lock, 0, || pthread_rwlock_trywrlock::real(lock), call)
    }
    fn pthread_rwlock_timedwrlock(lock: usize, until: usize) -> c_int |entry, call| {
        acquire(&entry, lock, flag::TRY, || pthread_rwlock_trywrlock::real(lock), call)
    }
    fn pthread_rwlock_clockwrlock(lock: usize, clock: c_int, until: usize) -> c_int |entry, call| {
        acquire(&entry, lock, flag::TRY, || pthread_rwlock_trywrlock::real(lock), call)
    }

    // Condition variables.
    fn pthread_cond_wait(condition: usize, mutex: usize) -> c_int |entry, call| {
        if refuses_unlock(mutex) {
            return call();
        }
        wait_on(&entry, condition, mutex, (TIMED_OUT, misuse_by_stranger(mutex)), call)
    }
    fn pthread_cond_timedwait(condition: usize, mutex: usize, until: usize) -> c_int |entry, call| {
        if refuses_unlock(mutex) {
            return call();
        }
        let flags = flag::TIMED_OUT | misuse_by_stranger(mutex);
        wait_on(&entry, condition, mutex, (TIMED_OUT, flags), call)
    }
    fn pthread_cond_clockwait(
        condition: usize, mutex: usize, clock: c_int, until: usize,
    ) -> c_int |entry, call| {
        if refuses_unlock(mutex) {
            return call();
        }
        let flags = flag::TIMED_OUT | misuse_by_stranger(mutex);
        wait_on(&entry, condition, mutex, (TIMED_OUT, flags), call)
    }
    fn cnd_wait(condition: usize, mutex: usize) -> c_int |entry, call| {
        wait_on(&entry, condition, mutex, (C11_TIMED_OUT, 0), call)
    }
    fn cnd_timedwait(condition: usize, mutex: usize, until: usize) -> c_int |entry, call| {
        wait_on(&entry, condition, mutex, (C11_TIMED_OUT, flag::TIMED_OUT), call)
    }
    fn [pthread_cond_signal cnd_signal](condition: usize) -> c_int |entry, call| {
        entry.log(Kind::Signal, condition as u64);
        if replay::is_on() && replay::conditions::notify(condition, false) { 0 } else { call() }
    }
    fn [pthread_cond_broadcast cnd_broadcast](condition: usize) -> c_int |entry, call| {
        entry.log(Kind::Broadcast, condition as u64);
        if replay::is_on() {
            replay::conditions::notify(condition, true);
        }
        call()
    }

    // Barriers.
    fn pthread_barrier_init(barrier: usize, attributes: usize, parties: c_uint) -> c_int |entry, call| {
        entry.log_extra(Kind::BarrierInit, barrier as u64, u64::from(parties));
        call()
    }
    fn pthread_barrier_wait(barrier: usize) -> c_int |entry, call| {
        entry.log(Kind::BarrierArrive, barrier as u64);
        let result = entry.blocking_announced(call);
        let is_seen = libraries::checks_are_seen(entry.code);
        entry.log_flags(Kind::BarrierDepart, barrier as u64, if is_seen { 0 } else { flag::TRY });
        result
    }

    // Semaphores.
    fn sem_init(semaphore: usize, shared: c_int, count: c_uint) -> c_int |entry, call| {
        // Other processes may post to one that is shared: its count says nothing.
        let count = (shared == 0).then_some(u64::from(count));
        let operands = Operands { extra: count, ..Operands::default() };
        entry.log_with(Kind::SemaphoreInit, semaphore as u64, operands);
        call()
    }
    fn sem_wait(semaphore: usize) -> c_int |entry, call| { take(&entry, semaphore, false, call) }
    fn sem_trywait(semaphore: usize) -> c_int |entry, call| {
        taken(&entry, semaphore, flag::TRY, call())
    }
    fn sem_timedwait(semaphore: usize, until: usize) -> c_int |entry, call| {
        take(&entry, semaphore, true, call)
    }
    fn sem_clockwait(semaphore: usize, clock: c_int, until: usize) -> c_int |entry, call| {
        take(&entry, semaphore, true, call)
    }
    fn sem_getvalue(semaphore: usize, to: usize) -> c_int |entry, call| {
        let result = call();
        // Who looks goes on because of what others posted and took.
        entry.log_flags(Kind::Receive, semaphore as u64, flag::TRY);
        log_range(&entry, Kind::WriteRange, to, size_of::<c_int>());
        result
    }
    fn sem_post(semaphore: usize) -> c_int |entry, call| {
        entry.log(Kind::SemaphorePost, semaphore as u64);
        call()
    }

    // For programs that wait in the kernel by themselves, as Rust's standard library does.
    fn syscall(
        number: c_long, first: usize, second: usize, third: usize, fourth: usize, fifth: usize,
        sixth: usize,
    ) -> c_long {
        const FUTEX: c_long = 202;
        const COMMAND_MASK: usize = 0x7f;
        let call = || real(number, first, second, third, fourth, fifth, sixth);
        if number != FUTEX {
            // It may unmap memory; what was written last is reported before.
            drop(enter_or!(call()).flushed());
            return call();
        }
        let entry = enter_or!(call());
        let word = first as u64;
        match second & COMMAND_MASK {
            // FUTEX_WAIT, FUTEX_WAIT_BITSET, and those that take a lock with inheritance.
            0 | 6 | 9 | 11 | 13 => {
                let flags = if fourth == 0 { 0 } else { flag::TIMED_OUT };
                entry.log_flags(Kind::FutexWait, word, flags);
                let result = entry.blocking_announced(call);
                entry.log(Kind::FutexAwake, word);
                result
            }
            // FUTEX_WAKE, FUTEX_WAKE_BITSET.
            1 | 10 => {
                entry.log_extra(Kind::FutexWake, word, third as u64);
                call()
            }
            _ => call(),
        }
    }
    fn pthread_once(control: usize, routine: usize) -> c_int |entry, call| {
        once(&entry, control, routine, |run| real(control, run))
    }
    fn call_once(control: usize, routine: usize) -> () |entry, call| {
        once(&entry, control, routine, |run| { real(control, run); 0 });
    }
}

/// The guards of C++ variables that are initialised when first reached.
///
/// The functions are complete: a program without C++ has no others to call. The first byte of a
/// guard says that the variable is initialised, as compilers expect; the word after it is ours: 1
/// while a thread initialises, 2 if another waits for that.
pub mod guard {
    use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

    use super::*;

    unsafe fn done(guard: usize) -> &'static AtomicU8 {
        &*(guard as *const AtomicU8)
    }

    unsafe fn state(guard: usize) -> &'static AtomicU32 {
        &*((guard + 4) as *const AtomicU32)
    }

    /// Waits until nobody initialises; true if the caller must do it.
    unsafe fn claim(guard: usize) -> bool {
        loop {
            if done(guard).load(Ordering::Acquire) != 0 {
                return false;
            }
            let state = state(guard);
            if state.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                // Another thread may have finished in between.
                if done(guard).load(Ordering::Acquire) == 0 {
                    return true;
                }
                leave(guard);
                return false;
            }
            let _ = state.compare_exchange(1, 2, Ordering::AcqRel, Ordering::Relaxed);
            sys::futex_wait(state, 2, 1000);
        }
    }

    unsafe fn leave(guard: usize) {
        state(guard).store(0, Ordering::Release);
        sys::futex_wake(state(guard), u32::MAX >> 1);
    }

    interceptors! { complete
        fn __cxa_guard_acquire(guard: usize) -> c_int {
            let entry = enter_or!(c_int::from(claim(guard)));
            let is_free = state(guard).load(Ordering::Relaxed) == 0;
            let mine = if is_free { claim(guard) } else { entry.blocking(|| claim(guard)) };
            // Who initialises comes after those who failed to.
            let operands = Operands { order: order::ACQUIRE, ..Operands::default() };
            entry.log_with(Kind::AtomicLoad, guard as u64, operands);
            c_int::from(mine)
        }
        fn __cxa_guard_release(guard: usize) -> () {
            if let Some(entry) = log::enter(thread::caller()) {
                let operands = Operands { order: order::RELEASE, value: Some(1), ..Operands::default() };
                entry.log_with(Kind::AtomicStore, guard as u64, operands);
            }
            done(guard).store(1, Ordering::Release);
            leave(guard);
        }
        fn __cxa_guard_abort(guard: usize) -> () {
            if let Some(entry) = log::enter(thread::caller()) {
                let operands = Operands { order: order::RELEASE, value: Some(0), ..Operands::default() };
                entry.log_with(Kind::AtomicStore, guard as u64, operands);
            }
            leave(guard);
        }
    }
}

/// Called by a wrapper around a function of Rust's standard library, which no compiler instruments:
/// `what` happened to the thing at `object`, in code that returns to `code`.
///
/// Where threads run freely, an atomic access is made and logged as one step, but uninstrumented
/// code can go on in between: it takes a lock before it is logged that another thread released it.
/// So what is reported after such code has run waits until steps under way at its address are over.
#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn reweave_std_event(what: u32, object: usize, code: usize, extra: usize) {
    /// The bytes in which the parking token of a thread lies.
    const THREAD_BYTES: usize = 64;
    let Some(Logged { kind, order, flags, has_extra }) = logged(what) else { return };
    let Some(entry) = log::enter(code as u64) else { return };
    let thread = entry.thread;
    let is_internal = object & VIRTUAL as usize != 0;
    match kind {
        Kind::Lock => {
            (*thread).waits_for = 0;
            let length = if is_internal { INTERNAL_LOCK_BYTES as usize } else { 1 };
            atomic::await_atomics(object & !(VIRTUAL as usize), length);
        }
        Kind::Wake => {
            atomic::await_atomics(extra, 1);
            replay::acquired(thread, extra as u64);
        }
        Kind::Wait => replay::released(thread, extra as u64),
        Kind::Park => atomic::await_atomics(object, THREAD_BYTES),
        _ => {}
    }
    let extra = has_extra.then_some(extra as u64);
    let operands = Operands { order, flags, extra, ..Operands::default() };
    entry.log_with(kind, object as u64, operands);
    if kind == Kind::LockRequest {
        // The wrapped function waits by itself. It is called because the lock is taken, or, if the
        // lock is internal to the library, whether it is or not.
        scheduler::settle(thread);
        if !is_internal || replay::is_held_by_another(thread, object as u64) {
            ((*thread).waits_for, (*thread).waits_at) = (object as u64, entry.code);
            replay::blocked(thread);
        }
    }
}
