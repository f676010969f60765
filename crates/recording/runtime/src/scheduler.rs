//! The serialized scheduler: one thread runs at a time, the one that has the *token*.
//!
//! It runs until its quantum of accesses is used up, or it is about to block in the C library or the
//! kernel; then another takes over, drawn at random from those in the queue. Quanta are random too:
//! with a fixed rhythm, a switch might never fall between the read and the write of an increment.
//! They are short in short runs and grow with the run, so that small programs are interleaved finely
//! and long ones run fast.
//!
//! A thread can sleep in a call that is not intercepted. Those in the queue look at the clock: when
//! nothing was logged for a while and the thread with the token is not in the runtime, the token is
//! taken from it (*eviction*); it queues up again at its next hook. Whether it is in the runtime is
//! read after a memory barrier on all cores, so that hooks need none. A thread that neither sleeps
//! nor has run since keeps the token: it may have been stopped, or have lost its core, between a hook
//! and the access that the hook announced.
//!
//! A blocked thread, in the queue or in a call that is intercepted, has no token. A signal handler
//! that runs on it meanwhile acquires the token, and keeps it until the wait is over; if the kernel
//! resumes the wait instead, the token is revoked as soon as somebody sees that the thread sleeps. A
//! handler that interrupts a hook at work is not recorded.
//!
//! Signals are blocked while the lock is held, and an event is written before it is noted as
//! written, so a handler that jumps away finds everything in order, or half done in a way that
//! [`reacquire`] repairs.
//!
//! Where threads run freely none of this happens.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence};

use crate::interceptors::handlers;
use crate::thread::{self, Spin, Thread, life};
use crate::{log, process, replay, sys};

/// How long nothing may be logged before the token is taken away.
const IDLE_NS: u64 = 100_000_000;

/// How long a signal handler may be silent before it is checked whether its thread sleeps again.
const HANDLER_NS: u64 = 1_000_000;

/// How long a thread that was created may take to begin before its creator goes on.
const BEGIN_NS: u64 = 1_000_000_000;

/// How long the thread of a step may stay away before others go on.
const STEP_NS: u64 = 5_000_000;

/// Milliseconds after which a waiting thread looks whether anything moves.
const CHECK_MS: u64 = 50;

/// The same while a plan is followed: its threads wait for each other all the time.
const CHECK_REPLAY_MS: u64 = 5;

/// The same while a signal handler has the token.
const CHECK_HANDLER_MS: u64 = 1;

/// The longest quantum at the start of a run, in accesses.
const QUANTUM_FIRST: u64 = 32;

/// The binary logarithm of how many times longer a run is than the longest quantum in it.
const QUANTUM_GROWTH: u32 = 9;

static LOCK: Spin = Spin::new();
static IS_SERIAL: AtomicBool = AtomicBool::new(false);
static HOLDER: AtomicPtr<Thread> = AtomicPtr::new(ptr::null_mut());
static QUEUE: AtomicPtr<Thread> = AtomicPtr::new(ptr::null_mut());
static WAITING: AtomicU32 = AtomicU32::new(0);
static RANDOM: AtomicU64 = AtomicU64::new(0);
static QUANTUM_MAX: AtomicU64 = AtomicU64::new(0);
/// 1 + the number of the thread whose events are being logged.
static LOGGED: AtomicU32 = AtomicU32::new(0);
/// What had happened when somebody last looked, and when that was.
static PROGRESS: AtomicU64 = AtomicU64::new(0);
static PROGRESS_AT: AtomicU64 = AtomicU64::new(0);
/// How long the thread with the token had run by then.
static RUN_TIME: AtomicU64 = AtomicU64::new(0);
/// How many accesses all quanta so far were worth.
static USED: AtomicU64 = AtomicU64::new(0);
static SWITCHES: AtomicU64 = AtomicU64::new(0);

/// Starts anew: nobody has the token.
pub fn start(is_serial: bool, seed: u64, quantum_max: u64) {
    LOCK.reset();
    IS_SERIAL.store(is_serial, Ordering::Release);
    HOLDER.store(ptr::null_mut(), Ordering::Relaxed);
    QUEUE.store(ptr::null_mut(), Ordering::Relaxed);
    WAITING.store(0, Ordering::Relaxed);
    RANDOM.store(seed ^ 0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    QUANTUM_MAX.store(quantum_max, Ordering::Relaxed);
    LOGGED.store(0, Ordering::Relaxed);
    USED.store(0, Ordering::Relaxed);
    PROGRESS_AT.store(sys::now(), Ordering::Relaxed);
}

/// Whether one thread runs at a time.
pub fn is_serial() -> bool {
    IS_SERIAL.load(Ordering::Relaxed)
}

/// Lets all threads run from now on.
pub fn stop_serializing() {
    IS_SERIAL.store(false, Ordering::Release);
    thread::each(|thread| {
        // SAFETY: blocks stay; their atomic fields may be written by anyone.
        unsafe {
            (*thread).needs_safepoint.store(1, Ordering::Release);
            (*thread).granted.store(1, Ordering::Release);
            sys::futex_wake(&(*thread).granted, 1);
        }
        false
    });
}

/// A random number below `bound`; call it with the lock held, or before threads run.
pub fn random(bound: u64) -> u64 {
    let mut state = RANDOM.load(Ordering::Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
    RANDOM.store(state, Ordering::Relaxed);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state ^ (state >> 31)) % bound.max(1)
}

unsafe fn draw_quantum(thread: *mut Thread) {
    (*thread).overwritten.address = 0;
    if !is_serial() {
        // Not for ever: runs of accesses are counted in 32 bits.
        (*thread).quantum = 1 << 30;
        return;
    }
    let used = ((*thread).quantum_drawn - (*thread).quantum).max(0) as u64;
    let used = USED.load(Ordering::Relaxed).wrapping_add(used);
    USED.store(used, Ordering::Relaxed);
    let bound =
        (used >> QUANTUM_GROWTH).max(QUANTUM_FIRST).min(QUANTUM_MAX.load(Ordering::Relaxed));
    (*thread).quantum_drawn = random(bound) as i64;
    (*thread).quantum = (*thread).quantum_drawn;
}

/// What a hook does when there is more to do than to log: false when the thread is not recorded
/// any more. A thread that is `within_statement` keeps the token until the next hook.
#[cold]
#[inline(never)]
pub unsafe fn safepoint(thread: *mut Thread, within_statement: bool) -> bool {
    let goes_on = reach_safepoint(thread, within_statement);
    if (*thread).deferred.signal != 0 {
        let depth = core::mem::take(&mut (*thread).depth);
        compiler_fence(Ordering::SeqCst);
        handlers::deliver_deferred(thread);
        compiler_fence(Ordering::SeqCst);
        (*thread).depth = depth;
    }
    goes_on
}

unsafe fn reach_safepoint(thread: *mut Thread, within_statement: bool) -> bool {
    if process::should_stop() {
        process::stop();
        thread::set_current(thread::unrecorded());
        return false;
    }
    let is_away = (*thread).is_blocking.load(Ordering::Relaxed);
    if is_away && is_call_of_library() {
        // The call in which the thread waits is at work, and none of the program's business.
        (*thread).depth = 0;
        return false;
    }
    let keep = u32::from(
        replay::is_on() || is_away || (*thread).boundary.is_due || (*thread).ignored.is_any(),
    );
    (*thread).needs_safepoint.store(keep, Ordering::Relaxed);
    if !is_serial() {
        draw_quantum(thread);
        return true;
    }
    if is_away {
        acquire_for_handler(thread);
    }
    settle(thread);
    if (*thread).quantum < 0 && !within_statement && (!replay::is_on() || replay::is_done()) {
        pass_token(thread);
    }
    if process::should_stop() {
        thread::set_current(thread::unrecorded());
        return false;
    }
    true
}

/// Hands the token on if the plan says so, and comes back if it was taken away.
pub unsafe fn settle(thread: *mut Thread) {
    if !is_serial() {
        return;
    }
    if (*thread).evicted.load(Ordering::Acquire) != 0 {
        return_after_eviction(thread);
    }
    if (*thread).must_yield || blocks_the_plan(thread) {
        (*thread).must_yield = false;
        pass_token(thread);
    }
}

/// Whether `thread` runs only because the thread that the plan waits for did not come, and it has
/// come now.
unsafe fn blocks_the_plan(thread: *mut Thread) -> bool {
    if !replay::is_on() || replay::is_done() || replay::may_run(thread) {
        return false;
    }
    LOCK.with(|| !planned_thread().is_null())
}

/// The thread in the queue that the plan waits for, or null.
unsafe fn planned_thread() -> *mut Thread {
    let mut thread = QUEUE.load(Ordering::Relaxed);
    while !thread.is_null() && !replay::may_run(thread) {
        thread = (*thread).next;
    }
    thread
}

/// Whether the running thread, which waits in a call, is at a interceptor because the library that
/// the call is of called it.
fn is_call_of_library() -> bool {
    #[cfg(not(reweave_static))]
    return crate::interceptors::program::is_in_c_library(thread::caller())
        || crate::interceptors::objects::is_foreign(thread::caller());
    #[cfg(reweave_static)]
    return false;
}

/// Takes the token for a signal handler, while `thread` waits.
unsafe fn acquire_for_handler(thread: *mut Thread) {
    acquire_with(thread, Handlers::Ignored);
    (*thread).handler_ran = true;
    // Somebody must see when the thread sleeps again.
    let first = QUEUE.load(Ordering::Relaxed);
    if !first.is_null() {
        sys::futex_wake(&(*first).granted, 1);
    }
}

/// Whether nobody but `thread` logs to its buffer.
pub fn may_log(thread: *mut Thread) -> bool {
    !is_serial() || HOLDER.load(Ordering::Relaxed) == thread
}

/// Makes sure that `thread` has the token, wherever it was when it was cancelled or jumped away:
/// it may have the token, wait for it, or have given it up.
pub unsafe fn reacquire(thread: *mut Thread) {
    if !is_serial() {
        return;
    }
    if (*thread).evicted.load(Ordering::Acquire) != 0 {
        return_after_eviction(thread);
    }
    LOCK.with(|| keep_or_enqueue(thread));
    wait(thread, false, Handlers::Ignored);
}

/// Comes back after the token was taken away, unless that was called off.
unsafe fn return_after_eviction(thread: *mut Thread) {
    let was_evicted = with_queue(thread, Handlers::Recorded, || {
        let was = (*thread).evicted.swap(0, Ordering::AcqRel) != 0;
        if was {
            // Others have run since: what it wrote last may no longer be there.
            (*thread).pending = 0;
            enqueue(thread);
            dispatch();
        }
        was
    });
    if was_evicted {
        wait(thread, true, Handlers::Recorded);
    }
}

/// Hands the token to another thread, if one wants it, and waits to get it back.
pub unsafe fn pass_token(thread: *mut Thread) {
    // Only a hint: who comes to wait meanwhile waits for the next switch.
    if WAITING.load(Ordering::Relaxed) == 0 && replay::may_run(thread) {
        draw_quantum(thread);
        return;
    }
    log::flush(thread);
    let handed = with_queue(thread, Handlers::Recorded, || {
        if WAITING.load(Ordering::Relaxed) == 0 && replay::may_run(thread) {
            draw_quantum(thread);
            return false;
        }
        HOLDER.store(ptr::null_mut(), Ordering::Relaxed);
        // It is in the queue before anybody else runs: who runs next may look for it at once.
        enqueue(thread);
        dispatch();
        true
    });
    if handed {
        wait(thread, false, Handlers::Recorded);
    }
}

/// How many threads wait for the token.
#[cfg(not(reweave_static))]
pub fn waiting_count() -> u32 {
    WAITING.load(Ordering::Relaxed)
}

/// Waits until `count` threads wait for the token, which the caller has, or some time has passed.
/// Whoever creates threads for a short piece of work would else do most of it before they come.
#[cfg(not(reweave_static))]
pub fn await_waiting(count: u32) {
    const YIELDS: u32 = 200;
    const SLEEPS: u32 = 200;
    for attempt in 0..YIELDS + SLEEPS {
        if waiting_count() >= count || !is_serial() {
            return;
        }
        if attempt < YIELDS {
            sys::sched_yield();
        } else {
            sys::futex_wait(&AtomicU32::new(0), 0, 1);
        }
    }
}

/// Gives the token up, before a wait in the C library or the kernel.
pub unsafe fn release(thread: *mut Thread) {
    if !is_serial() {
        return;
    }
    log::flush(thread);
    LOCK.with(|| {
        if HOLDER.load(Ordering::Relaxed) == thread {
            HOLDER.store(ptr::null_mut(), Ordering::Relaxed);
            dispatch();
        }
    });
}

/// Leaves the runtime for a call that may wait, after the token was given up; says whether the thread
/// was away already.
pub unsafe fn begin_blocking(thread: *mut Thread) -> bool {
    // In a static program the C library cannot be distinguished from the handlers of the program.
    if cfg!(reweave_static) {
        return false;
    }
    let was_blocked = (*thread).is_blocking.swap(true, Ordering::Relaxed);
    (*thread).needs_safepoint.store(1, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    (*thread).depth = 0;
    compiler_fence(Ordering::SeqCst);
    was_blocked
}

/// Comes back into the runtime, without the token unless a signal handler took one.
pub unsafe fn end_blocking(thread: *mut Thread, was_blocked: bool) {
    (*thread).depth = 1;
    compiler_fence(Ordering::SeqCst);
    (*thread).is_blocking.store(was_blocked, Ordering::Relaxed);
}

/// Waits for the token, unless a signal handler took one.
pub unsafe fn acquire(thread: *mut Thread) {
    acquire_with(thread, Handlers::Recorded);
}

unsafe fn acquire_with(thread: *mut Thread, handlers: Handlers) {
    if !is_serial() {
        return;
    }
    if (*thread).evicted.load(Ordering::Acquire) != 0 {
        return_after_eviction(thread);
    }
    with_queue(thread, handlers, || {
        keep_or_enqueue(thread);
        true
    });
    wait(thread, false, handlers);
}

/// Runs `body` with the lock held; says what it says: whether the thread waits for the token now. If so,
/// a signal that came meanwhile is handled as one that comes while it waits.
unsafe fn with_queue(thread: *mut Thread, handlers: Handlers, body: impl FnOnce() -> bool) -> bool {
    let mut was_blocked = None;
    let waits = LOCK.with(|| {
        let waits = body();
        was_blocked = (waits && handlers == Handlers::Recorded).then(|| begin_blocking(thread));
        waits
    });
    if let Some(was_blocked) = was_blocked {
        end_blocking(thread, was_blocked);
    }
    waits
}

/// Whether signal handlers that come while a thread waits for the token are recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Handlers {
    Recorded,
    Ignored,
}

/// Waits until `thread`, which is in the queue or has just left it, has the token.
unsafe fn wait(thread: *mut Thread, escaped: bool, handlers: Handlers) {
    while (*thread).granted.swap(0, Ordering::Acquire) == 0 {
        if !is_serial() {
            return;
        }
        let was_blocked = (handlers == Handlers::Recorded).then(|| begin_blocking(thread));
        if !is_granted(thread) && !(*thread).handler_ran {
            sys::futex_wait(&(*thread).granted, 0, check_after_ms());
        }
        if let Some(was_blocked) = was_blocked {
            end_blocking(thread, was_blocked);
        }
        if !is_granted(thread) && !(*thread).handler_ran {
            with_queue(thread, handlers, || {
                check_progress();
                true
            });
        }
        if (*thread).handler_ran {
            // The handler has had the token, and may have it still.
            (*thread).handler_ran = false;
            LOCK.with(|| keep_or_enqueue(thread));
        }
    }
    if !is_serial() {
        return;
    }
    let number = (*thread).number + 1;
    if LOGGED.load(Ordering::Relaxed) != number || escaped {
        log::switch(thread, escaped);
        compiler_fence(Ordering::SeqCst);
        LOGGED.store(number, Ordering::Relaxed);
    }
    draw_quantum(thread);
}

/// Makes sure that `thread` has the token or is in the queue; call it with the lock held.
unsafe fn keep_or_enqueue(thread: *mut Thread) {
    if HOLDER.load(Ordering::Relaxed) == thread {
        (*thread).granted.store(1, Ordering::Release);
        return;
    }
    (*thread).evicted.store(0, Ordering::Relaxed);
    if !(*thread).is_queued {
        enqueue(thread);
    }
    dispatch();
}

/// How long to sleep before looking whether anything moves.
unsafe fn check_after_ms() -> u64 {
    let holder = HOLDER.load(Ordering::Relaxed);
    if is_in_handler(holder) {
        CHECK_HANDLER_MS
    } else if replay::is_on() && !replay::is_done() {
        CHECK_REPLAY_MS
    } else {
        CHECK_MS
    }
}

/// Whether `holder` has the token for a signal handler.
unsafe fn is_in_handler(holder: *mut Thread) -> bool {
    !holder.is_null() && (*holder).is_blocking.load(Ordering::Relaxed)
}

/// Says whose events follow, when the first thread starts.
pub unsafe fn begin(thread: *mut Thread) {
    if is_serial() {
        LOCK.with(|| keep_or_enqueue(thread));
        thread::mark(thread, life::BEGUN);
        sys::futex_wake(&(*thread).life, 1);
        // Its first event comes first.
        wait(thread, false, Handlers::Ignored);
    } else {
        draw_quantum(thread);
    }
}

/// Waits until the thread that was just created as `number` is in the queue, so that not the kernel
/// decides who can run next. Not for ever: it may never come, if it cannot be recorded.
pub unsafe fn await_child(child: *const Thread, number: u32) {
    let end = sys::now() + BEGIN_NS;
    while is_serial() && (*child).number == number && sys::now() < end {
        let state = (*child).life.load(Ordering::Acquire);
        if state & life::BEGUN != 0 {
            break;
        }
        sys::futex_wait(&(*child).life, state, CHECK_MS);
    }
}

unsafe fn enqueue(thread: *mut Thread) {
    (*thread).is_queued = true;
    (*thread).next = QUEUE.load(Ordering::Relaxed);
    QUEUE.store(thread, Ordering::Relaxed);
    WAITING.fetch_add(1, Ordering::Relaxed);
}

/// Hands a free token to a thread in the queue; call it with the lock held.
unsafe fn dispatch() {
    if !HOLDER.load(Ordering::Relaxed).is_null() {
        return;
    }
    let next = choose();
    if next.is_null() {
        return;
    }
    dequeue(next);
    HOLDER.store(next, Ordering::Relaxed);
    SWITCHES.fetch_add(1, Ordering::Relaxed);
    (*next).granted.store(1, Ordering::Release);
    sys::futex_wake(&(*next).granted, 1);
}

unsafe fn choose() -> *mut Thread {
    if replay::is_on() && !replay::is_done() {
        let mut thread = planned_thread();
        if thread.is_null() {
            thread = QUEUE.load(Ordering::Relaxed);
            while !thread.is_null() && !replay::may_run_meanwhile(thread) {
                thread = (*thread).next;
            }
        } else {
            replay::let_others_run(false);
        }
        return thread;
    }
    let waiting = u64::from(WAITING.load(Ordering::Relaxed));
    let mut thread = QUEUE.load(Ordering::Relaxed);
    // Who came last may just have handed the token on: others first, if there are any.
    let mut index = if waiting > 1 { 1 + random(waiting - 1) } else { 0 };
    while index > 0 && !thread.is_null() {
        thread = (*thread).next;
        index -= 1;
    }
    thread
}

unsafe fn dequeue(thread: *mut Thread) {
    let mut link = QUEUE.load(Ordering::Relaxed);
    (*thread).is_queued = false;
    WAITING.fetch_sub(1, Ordering::Relaxed);
    if link == thread {
        QUEUE.store((*thread).next, Ordering::Relaxed);
        return;
    }
    while (*link).next != thread {
        link = (*link).next;
    }
    (*link).next = (*thread).next;
}

/// Looks whether anything moves; if not, takes the token from a thread that runs unseen, or gives
/// up the plan; call it with the lock held.
#[cold]
unsafe fn check_progress() {
    let holder = HOLDER.load(Ordering::Relaxed);
    let seen = process::words_written() ^ SWITCHES.load(Ordering::Relaxed) << 40;
    let now = sys::now();
    if PROGRESS.swap(seen, Ordering::Relaxed) != seen {
        PROGRESS_AT.store(now, Ordering::Relaxed);
        if !holder.is_null() {
            RUN_TIME.store(sys::run_time((*holder).task), Ordering::Relaxed);
        }
        return;
    }
    let idle = now.saturating_sub(PROGRESS_AT.load(Ordering::Relaxed));
    if is_in_handler(holder) && idle > HANDLER_NS && has_passed_its_access(holder) {
        PROGRESS_AT.store(now, Ordering::Relaxed);
        revoke_from_handler(holder);
    } else if replay::is_on() && !replay::is_done() {
        if idle > process::stall_timeout_ns() {
            replay::stalled();
            PROGRESS_AT.store(now, Ordering::Relaxed);
            dispatch();
        } else if holder.is_null() && idle > STEP_NS {
            replay::let_others_run(true);
            dispatch();
        }
    } else if idle > IDLE_NS && !holder.is_null() {
        if has_passed_its_access(holder) {
            PROGRESS_AT.store(now, Ordering::Relaxed);
            evict(holder);
        }
    } else if holder.is_null() {
        dispatch();
    }
}

/// Whether what `holder` logged last has surely happened: it has run for long since then, or sleeps
/// in the kernel. Where the kernel does not say, it is taken to sleep.
unsafe fn has_passed_its_access(holder: *mut Thread) -> bool {
    const SLEEPING: u8 = b'S';
    let task = (*holder).task;
    let has_run = sys::run_time(task).saturating_sub(RUN_TIME.load(Ordering::Relaxed));
    if has_run > IDLE_NS {
        return true;
    }
    let path = process::Path::from(b"/proc/self/task/").number(task).text(b"/stat");
    let Some(file) = sys::File::open(path.bytes()) else { return true };
    let mut text = [0; 256];
    let count = file.read(&mut text);
    // The name before it is in brackets and may hold anything.
    let name_end = text[..count].iter().rposition(|&byte| byte == b')');
    name_end.is_none_or(|end| text.get(end + 2) == Some(&SLEEPING))
}

/// Whether `holder` was given the token and has not noticed yet.
unsafe fn is_granted(holder: *mut Thread) -> bool {
    (*holder).granted.load(Ordering::Acquire) != 0
}

/// Takes the token from `holder` if it is not in the runtime.
unsafe fn evict(holder: *mut Thread) {
    (*holder).evicted.store(1, Ordering::SeqCst);
    (*holder).needs_safepoint.store(1, Ordering::SeqCst);
    // A hook stores `depth` and then loads `needs_safepoint`, with a compiler fence alone in between.
    // The barrier on all cores makes that enough: after it, either the hook sees the request or we
    // see its depth (Dekker's argument, paid by the rare side).
    let is_certain = sys::membarrier();
    let depth = ptr::read_volatile(&raw const (*holder).depth);
    let is_in_library = ptr::read_volatile(&raw const (*holder).in_library);
    if is_certain && (depth == 0 || is_in_library) && !is_granted(holder) {
        process::count_eviction();
        HOLDER.store(ptr::null_mut(), Ordering::Relaxed);
        dispatch();
    } else {
        (*holder).evicted.store(0, Ordering::SeqCst);
    }
}

/// Takes the token back that `thread` has for a signal handler, if it sleeps in its call again.
unsafe fn revoke_from_handler(thread: *mut Thread) {
    // What the handler does next sees that it is away, and queues up for the lock.
    let is_certain = sys::membarrier();
    let depth = ptr::read_volatile(&raw const (*thread).depth);
    if !is_certain || depth != 0 || !is_in_handler(thread) || is_granted(thread) {
        return;
    }
    // Its events are still those that are logged.
    let pending = ((*thread).pending, 1 << (*thread).pending_size);
    if pending.0 != 0 && sys::read_word(pending.0, pending.1).is_some() {
        log::flush(thread);
    }
    HOLDER.store(ptr::null_mut(), Ordering::Relaxed);
    dispatch();
}
