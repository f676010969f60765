//! Threads: created, joined, detached, ended.
//!
//! A thread is numbered by its creator, before it exists, so that both speak of the same number.
//! Its end is noticed by a destructor of thread-specific data, which runs after a return,
//! `pthread_exit` and cancellation alike; it puts itself off so as to run after those of the
//! program. The stack of a thread is memory with a life of its own: the next thread to get it has
//! other variables there.

use core::ffi::{c_int, c_uint};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::program::log_range;
use super::{doors, enter_or, in_library, outside};
use crate::log::Entry;
use crate::thread::{self, Thread, life};
use crate::wire::Kind;
use crate::{process, replay, sys};

/// What a new thread needs to know.
#[repr(C)]
pub(crate) struct Start {
    routine: usize,
    argument: usize,
    thread: *mut Thread,
}

/// Bytes of a page that holds a [`Start`].
const START_BYTES: usize = 4096;

/// How often the end of a thread is put off: the C library makes four rounds, and what destructors do
/// in the last one is not seen.
const END_DELAYS: u32 = 3;

unsafe extern "C" {
    fn pthread_key_create(key: *mut c_uint, destructor: usize) -> c_int;
    fn pthread_setspecific(key: c_uint, value: usize) -> c_int;
    fn pthread_self() -> u64;
    fn pthread_getattr_np(thread: u64, attributes: *mut Attributes) -> c_int;
    fn pthread_attr_getstack(
        attributes: *const Attributes,
        address: *mut usize,
        size: *mut usize,
    ) -> c_int;
    fn pthread_attr_destroy(attributes: *mut Attributes) -> c_int;
    fn pthread_attr_getdetachstate(attributes: usize, state: *mut c_int) -> c_int;
}

#[repr(C, align(8))]
struct Attributes([u8; 64]);

static KEY: AtomicU32 = AtomicU32::new(0);
static HAS_KEY: AtomicBool = AtomicBool::new(false);

/// Makes sure that the end of the running thread is noticed.
pub(crate) unsafe fn arm_end(thread: *mut Thread) {
    if !HAS_KEY.load(Ordering::Acquire) {
        let mut key = 0;
        if pthread_key_create(&raw mut key, on_end as *const () as usize) != 0 {
            return;
        }
        KEY.store(key, Ordering::Relaxed);
        HAS_KEY.store(true, Ordering::Release);
    }
    pthread_setspecific(KEY.load(Ordering::Relaxed), thread as usize);
}

unsafe extern "C" fn on_end(thread: *mut Thread) {
    if thread::current() != thread {
        return;
    }
    if (*thread).end_delays < END_DELAYS {
        (*thread).end_delays += 1;
        pthread_setspecific(KEY.load(Ordering::Relaxed), thread as usize);
        return;
    }
    process::end(thread);
}

/// The running thread's stack: where it is and how long; nothing where that cannot be known.
pub(crate) unsafe fn stack() -> Option<(u64, u64)> {
    let mut attributes = Attributes([0; 64]);
    let (mut address, mut size) = (0, 0);
    if pthread_getattr_np(pthread_self(), &raw mut attributes) != 0 {
        return None;
    }
    let result = pthread_attr_getstack(&raw const attributes, &raw mut address, &raw mut size);
    pthread_attr_destroy(&raw mut attributes);
    (result == 0).then_some((address as u64, size as u64))
}

/// Whether nobody can join a thread that is created with `attributes`.
unsafe fn is_detached(attributes: usize) -> bool {
    const DETACHED: c_int = 1;
    let mut state = 0;
    attributes != 0
        && pthread_attr_getdetachstate(attributes, &raw mut state) == 0
        && state == DETACHED
}

/// Announces a thread that will run `routine` and whose handle goes to `handle`.
pub(crate) unsafe fn prepare(
    entry: &Entry,
    handle: usize,
    routine: usize,
    argument: usize,
) -> Option<*mut Start> {
    let child = process::expect_thread()?;
    let start = sys::allocate(START_BYTES)?.cast::<Start>();
    *start = Start { routine, argument, thread: child };
    (*child).entry = replay::child_entry(entry.thread);
    // The C library writes the handle before the thread starts.
    log_range(entry, Kind::WriteRange, handle, size_of::<u64>());
    entry.log(Kind::Fork, u64::from((*child).number));
    (*entry.thread).forks += 1;
    Some(start)
}

/// Notes how the creation of the thread `number` went; `handle` is where the C library put its handle.
pub(crate) unsafe fn created(
    entry: &Entry,
    (child, number): (*mut Thread, u32),
    start: *mut Start,
    succeeded: bool,
    handle: usize,
) {
    if succeeded {
        // It tells its handle itself when it begins, but may be joined before. By now it may also
        // have ended, and another have its block.
        if (*child).number == number {
            let handle = *(handle as *const u64);
            let told = &(*child).handle;
            _ = told.compare_exchange(0, handle, Ordering::AcqRel, Ordering::Relaxed);
        }
        return;
    }
    entry.log(Kind::ForkFailed, u64::from(number));
    sys::unmap(start.cast(), START_BYTES);
    thread::mark(child, life::ENDED | life::RELEASED);
}

/// The thread that `start` describes, and its number.
pub(crate) unsafe fn child_of(start: *const Start) -> (*mut Thread, u32) {
    ((*start).thread, (*(*start).thread).number)
}

/// Becomes the thread that `start` describes and says what to run.
unsafe fn begin(start: *mut Start) -> (usize, usize) {
    thread::set_current(thread::off());
    let Start { routine, argument, thread } = start.read();
    sys::unmap(start.cast(), START_BYTES);
    (*thread).handle.store(pthread_self(), Ordering::Release);
    process::begin(thread, 0);
    (routine, argument)
}

/// Runs a thread of POSIX.
unsafe extern "C" fn run(start: *mut Start) -> usize {
    let (routine, argument) = begin(start);
    let routine: unsafe extern "C" fn(usize) -> usize = core::mem::transmute(routine);
    routine(argument)
}

/// Runs a thread of the C standard.
pub(crate) unsafe extern "C" fn run_c11(start: *mut Start) -> c_int {
    let (routine, argument) = begin(start);
    let routine: unsafe extern "C" fn(usize) -> c_int = core::mem::transmute(routine);
    routine(argument)
}

/// The threads with the handle `handle` of which it was not told that they were joined: the oldest,
/// and the newest, which has the handle now. The others were joined, by who had no turn yet to tell.
unsafe fn find(handle: u64) -> Option<(*mut Thread, *mut Thread)> {
    let mut found: Option<(*mut Thread, *mut Thread)> = None;
    thread::each(|thread| {
        let state = (*thread).life.load(Ordering::Acquire);
        if (*thread).handle.load(Ordering::Acquire) == handle && state & life::RELEASED == 0 {
            let (mut oldest, mut newest) = found.unwrap_or((thread, thread));
            if (*thread).number < (*oldest).number {
                oldest = thread;
            }
            if (*thread).number > (*newest).number {
                newest = thread;
            }
            found = Some((oldest, newest));
        }
        false
    });
    found
}

/// Joins the thread with `handle` by `call`, which writes what it answered to `status`.
pub(crate) unsafe fn join<T>(
    entry: &Entry,
    handle: u64,
    status: *mut T,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let before = find(handle).map(|(_, newest)| newest);
    let result = outside(entry.thread, call);
    // Where nobody had told the handle yet when we looked, somebody has by now.
    if result == 0
        && let Some(child) = before.or_else(|| find(handle).map(|(oldest, _)| oldest))
    {
        entry.log(Kind::Join, u64::from((*child).number));
        thread::mark(child, life::RELEASED);
    }
    if result == 0 && !status.is_null() {
        log_range(entry, Kind::WriteRange, status as usize, size_of::<T>());
    }
    result
}

/// Notes that nobody will join the thread with `handle`.
pub(crate) unsafe fn detach(handle: u64) {
    if let Some((_, child)) = find(handle) {
        thread::mark(child, life::RELEASED);
    }
}

doors! {
    fn pthread_create(handle: usize, attributes: usize, routine: usize, argument: usize) -> c_int {
        let entry = enter_or!(real::pthread_create(handle, attributes, routine, argument));
        let Some(start) = prepare(&entry, handle, routine, argument) else {
            drop(entry);
            return real::pthread_create(handle, attributes, routine, argument);
        };
        let trampoline = run as *const () as usize;
        if is_detached(attributes) {
            thread::mark((*start).thread, life::RELEASED);
        }
        let child = child_of(start);
        let create = || real::pthread_create(handle, attributes, trampoline, start as usize);
        let result = in_library(entry.thread, create);
        created(&entry, child, start, result == 0, handle);
        result
    }

    fn pthread_join(thread: u64, status: *mut usize) -> c_int {
        let entry = enter_or!(real::pthread_join(thread, status));
        join(&entry, thread, status, || real::pthread_join(thread, status))
    }

    fn pthread_tryjoin_np(thread: u64, status: *mut usize) -> c_int {
        let entry = enter_or!(real::pthread_tryjoin_np(thread, status));
        join(&entry, thread, status, || real::pthread_tryjoin_np(thread, status))
    }

    fn pthread_timedjoin_np(thread: u64, status: *mut usize, until: usize) -> c_int {
        let entry = enter_or!(real::pthread_timedjoin_np(thread, status, until));
        join(&entry, thread, status, || real::pthread_timedjoin_np(thread, status, until))
    }

    fn pthread_clockjoin_np(thread: u64, status: *mut usize, clock: c_int, until: usize) -> c_int {
        let entry = enter_or!(real::pthread_clockjoin_np(thread, status, clock, until));
        join(&entry, thread, status, || real::pthread_clockjoin_np(thread, status, clock, until))
    }

    fn pthread_detach(thread: u64) -> c_int {
        let _entry = enter_or!(real::pthread_detach(thread));
        detach(thread);
        real::pthread_detach(thread)
    }
}
