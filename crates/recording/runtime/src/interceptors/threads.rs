//! Threads: created, named, joined, detached, ended.
//!
//! A thread is numbered by its creator, before it exists, so that both speak of the same number.
//! Its end is noticed by a destructor of thread-specific data, which runs after a return,
//! `pthread_exit` and cancellation alike; it puts itself off so as to run after those of the
//! program. The stack of a thread is memory with a life of its own: the next thread to get it has
//! other variables there.

use core::ffi::{c_int, c_uint};
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::program::log_range;
use super::{enter_or, handlers, in_library, interceptors, libraries, library};
use crate::log::Entry;
use crate::thread::{self, Thread, life};
use crate::wire::{Kind, channel, detach, flag, wait};
use crate::{process, replay, scheduler, sys};

/// What a new thread needs to know.
#[repr(C)]
pub struct Start {
    routine: usize,
    argument: usize,
    thread: *mut Thread,
    /// The signals that the thread blocks once it can be recorded.
    blocked: u64,
}

/// Bytes of a page that holds a [`Start`].
const START_BYTES: usize = 4096;

/// How often the end of a thread is put off: the C library makes four rounds, and what destructors do
/// in the last one is not seen.
const END_DELAYS: u32 = 3;

unsafe extern "C" {
    fn pthread_key_create(key: *mut c_uint, destructor: usize) -> c_int;
    fn pthread_setspecific(key: c_uint, value: usize) -> c_int;
    pub fn pthread_self() -> u64;
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
pub unsafe fn arm_end(thread: *mut Thread) {
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
    handlers::deliver_deferred(thread);
    // A handler that came later would run unseen.
    sys::block_signals();
    process::end(thread);
}

/// The running thread's stack: where it is and how long; nothing where that cannot be known.
pub unsafe fn stack() -> Option<(u64, u64)> {
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
unsafe fn prepare(
    entry: &Entry,
    handle: usize,
    routine: usize,
    argument: usize,
) -> Option<*mut Start> {
    let child = process::new_thread()?;
    let start = sys::allocate(START_BYTES)?.cast::<Start>();
    *start = Start { routine, argument, thread: child, blocked: 0 };
    (*child).entry = replay::child_entry(entry.thread);
    (*child).boundary.was_asked_for = (*entry.thread).boundary.creates;
    // The C library writes the handle before the thread starts.
    log_range(entry, Kind::WriteRange, handle, size_of::<u64>());
    entry.log(Kind::Fork, u64::from((*child).number));
    (*entry.thread).forks += 1;
    Some(start)
}

/// Creates a thread by `create`, which takes what the thread runs first, `run`, and its argument.
/// Where the new thread cannot be recorded, the real function is called as the program did.
unsafe fn creating(
    entry: Entry,
    handle: usize,
    (routine, argument): (usize, usize),
    is_detached: bool,
    create: impl FnOnce(usize) -> c_int,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let Some(start) = prepare(&entry, handle, routine, argument) else {
        drop(entry);
        return call();
    };
    let child = (*start).thread;
    let number = (*child).number;
    if is_detached {
        thread::mark(child, life::RELEASED);
    }
    // What a library does with its threads is its own affair.
    let is_of_library = !libraries::checks_are_seen(entry.code);
    if is_detached || is_of_library {
        let why = is_of_library.then_some(detach::OF_LIBRARY);
        entry.log_unplanned(Kind::Detach, u64::from(number), why);
    }
    // A handler that came before the thread can be recorded would run unseen.
    let blocked = sys::block_signals();
    (*start).blocked = handlers::blocked_signals(entry.thread, blocked);
    let result = in_library(entry.thread, || {
        let result = create(start as usize);
        if result == 0 {
            scheduler::await_child(child, number);
        }
        result
    });
    sys::set_signals(blocked);
    if result != 0 {
        entry.log(Kind::ForkFailed, u64::from(number));
        sys::unmap(start.cast(), START_BYTES);
        thread::mark(child, life::ENDED | life::RELEASED);
    } else if (*child).number == number {
        // The thread reports its handle itself when it begins, but may be joined before. Compared by
        // number, since by now it may have ended, and another have its block.
        let (known, handle) = (&(*child).handle, *(handle as *const u64));
        _ = known.compare_exchange(0, handle, Ordering::AcqRel, Ordering::Relaxed);
    }
    result
}

/// Becomes the thread that `start` describes and says what to run.
unsafe fn begin(start: *mut Start) -> (usize, usize) {
    thread::set_current(thread::unrecorded());
    let Start { routine, argument, thread, blocked } = start.read();
    sys::unmap(start.cast(), START_BYTES);
    (*thread).handle.store(pthread_self(), Ordering::Release);
    process::begin(thread, 0);
    sys::set_signals(blocked);
    (routine, argument)
}

/// Runs a thread of POSIX.
unsafe extern "C" fn run(start: *mut Start) -> usize {
    let (routine, argument) = begin(start);
    let routine: unsafe extern "C" fn(usize) -> usize = core::mem::transmute(routine);
    routine(argument)
}

/// Runs a thread of the C standard.
pub unsafe extern "C" fn run_c11(start: *mut Start) -> c_int {
    let (routine, argument) = begin(start);
    let routine: unsafe extern "C" fn(usize) -> c_int = core::mem::transmute(routine);
    routine(argument)
}

/// The threads with the handle `handle` whose joins were not logged: the oldest,
/// and the newest, which has the handle now. The others were joined, by a thread that has not logged it yet.
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

/// The object of the C++ library whose thread is about to be joined; nothing if `object` is 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Joins {
    object: u64,
    handle: u64,
    /// Where that is.
    code: u64,
}

/// Joins the thread with `handle` by `call`, which writes what it answered to `status`.
pub unsafe fn join<T>(
    entry: &Entry,
    handle: u64,
    status: *mut T,
    is_timed: bool,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let before = find(handle).map(|(_, newest)| newest);
    let number = before.map(|child| u64::from((*child).number));
    let what = if is_timed { wait::SLEEP } else { wait::JOIN };
    let Joins { object, handle: of, code } = core::mem::take(&mut (*entry.thread).joins);
    // Where the C++ library joins, its caller is who does.
    let code = if of == handle && object != 0 { code } else { entry.code };
    let result = entry.blocking_for(what, number, call);
    // Where the handle was not known yet when we looked, it is by now.
    if result == 0
        && let Some(child) = before.or_else(|| find(handle).map(|(oldest, _)| oldest))
    {
        // What led to a join in code that is not recorded is not known.
        let is_unseen = !libraries::checks_are_seen(code);
        let flags = if is_timed || is_unseen { flag::TRY } else { 0 };
        let joiner = ManuallyDrop::new(Entry { thread: entry.thread, code });
        joiner.log_flags(Kind::Join, u64::from((*child).number), flags);
        thread::mark(child, life::RELEASED);
    }
    // One that waits for a time may be refused for its clock or its time as well.
    if is_refused(result) && !is_timed {
        use_handle(entry, handle, flag::MISUSE | flag::ASKED);
    }
    if result == 0 && !status.is_null() {
        log_range(entry, Kind::WriteRange, status as usize, size_of::<T>());
    }
    if result == 0 && of == handle && object != 0 {
        // The C++ library clears it when this returns.
        log_range(entry, Kind::WriteRange, object as usize, size_of::<u64>());
    }
    result
}

/// Whether a function refuses the handle of a thread: `EINVAL` or `ESRCH`.
const fn is_refused(result: c_int) -> bool {
    matches!(result, 22 | 3)
}

/// Code of the program is about to use the handle of another thread, which `flags` may say more of.
pub unsafe fn use_handle(entry: &Entry, handle: u64, flags: u16) {
    if !libraries::checks_are_seen(entry.code) {
        return;
    }
    let (number, flags) = match number_of(entry, handle) {
        None => (thread::gone_with(handle), flags | flag::MISUSE),
        known => (known, flags),
    };
    if let Some(number) = number.filter(|&number| number != (*entry.thread).number) {
        let channel = channel::address(channel::id(channel::THREADS, number));
        entry.log_flags(Kind::Receive, channel, flag::TRY | flag::SHARED | flags);
    }
}

/// The most bytes that the name of a thread takes, with the zero at its end.
const NAME_BYTES: usize = 16;

/// The bytes of the name at `name`, with zeros after its end, as two words.
unsafe fn name_words(name: usize) -> [u64; 2] {
    let mut words = [0; 2];
    for place in 0..NAME_BYTES - 1 {
        let byte = *((name + place) as *const u8);
        if byte == 0 {
            break;
        }
        words[place / 8] |= u64::from(byte) << (8 * (place % 8));
    }
    words
}

/// The thread that has the handle `handle`, or had it last: its number.
unsafe fn number_of(entry: &Entry, handle: u64) -> Option<u32> {
    if handle == pthread_self() {
        return Some((*entry.thread).number);
    }
    let mut number = None;
    thread::each(|thread| {
        if (*thread).handle.load(Ordering::Acquire) == handle {
            number = number.max(Some((*thread).number));
        }
        false
    });
    number
}

/// Notes that the running thread has the name at `name`, unless `set` fails to give it.
#[cfg(not(reweave_static))]
pub unsafe fn naming_self(entry: &Entry, name: usize, set: impl FnOnce() -> c_int) -> c_int {
    naming(entry, Some((*entry.thread).number), name, set)
}

/// Notes that the thread `number`, if it is known, has the name at `name`, unless `set` fails to give it.
unsafe fn naming(
    entry: &Entry,
    number: Option<u32>,
    name: usize,
    set: impl FnOnce() -> c_int,
) -> c_int {
    let result = set();
    if let Some(number) = number.filter(|_| result == 0) {
        let [first, second] = name_words(name);
        let number = u64::from(number);
        entry.log_unplanned_pair(Kind::Detach, number, Some(first), Some(second));
    }
    result
}

/// Notes that nobody will join the thread with `handle`.
pub unsafe fn detached(entry: &Entry, handle: u64) {
    if let Some((_, child)) = find(handle) {
        use_handle(entry, handle, flag::OUT);
        entry.log_unplanned(Kind::Detach, u64::from((*child).number), None);
        thread::mark(child, life::RELEASED);
    }
}

interceptors! {
    fn thrd_create(handle: usize, routine: usize, argument: usize) -> c_int |entry, call| {
        let create = |start| real(handle, run_c11 as *const () as usize, start);
        creating(entry, handle, (routine, argument), false, create, call)
    }
    fn thrd_join(thread: u64, status: *mut c_int) -> c_int |entry, call| {
        join(&entry, thread, status, false, call)
    }
    fn pthread_create(handle: usize, attributes: usize, routine: usize, argument: usize) -> c_int {
        let call = || real(handle, attributes, routine, argument);
        #[cfg(not(reweave_static))]
        if crate::interceptors::openmp::is_library(thread::caller()) {
            let create = |routine, argument| real(handle, attributes, routine, argument);
            return crate::interceptors::openmp::create_worker([routine, argument], create);
        }
        let entry = enter_or!(call());
        let create = |start| real(handle, attributes, run as *const () as usize, start);
        creating(entry, handle, (routine, argument), is_detached(attributes), create, call)
    }
    fn pthread_join(thread: u64, status: *mut usize) -> c_int |entry, call| {
        join(&entry, thread, status, false, call)
    }
    fn pthread_tryjoin_np(thread: u64, status: *mut usize) -> c_int |entry, call| {
        join(&entry, thread, status, true, call)
    }
    fn pthread_timedjoin_np(thread: u64, status: *mut usize, until: usize) -> c_int |entry, call| {
        join(&entry, thread, status, true, call)
    }
    fn pthread_clockjoin_np(
        thread: u64, status: *mut usize, clock: c_int, until: usize,
    ) -> c_int |entry, call| {
        join(&entry, thread, status, true, call)
    }
    fn [pthread_detach thrd_detach](thread: u64) -> c_int |entry, call| {
        let is_known = find(thread).is_some();
        detached(&entry, thread);
        let result = call();
        if !is_known && is_refused(result) {
            use_handle(&entry, thread, flag::MISUSE | flag::OUT);
        }
        result
    }
    fn pthread_setname_np(thread: u64, name: usize) -> c_int |entry, call| {
        library::text(&entry, name);
        naming(&entry, number_of(&entry, thread), name, call)
    }
    fn pthread_cancel(thread: u64) -> c_int |entry, call| {
        if let Some((_, child)) = find(thread) {
            use_handle(&entry, thread, 0);
            entry.log_unplanned(Kind::Detach, u64::from((*child).number), Some(detach::CANCELLED));
        }
        call()
    }
}

/// Joined and detached objects of the C++ library, which forget their threads then: that is written by
/// code of the library, for who called it. It may throw, so it is not called from here but jumped to.
#[cfg(not(reweave_static))]
mod objects {
    use super::*;
    use crate::interceptors::{note_caller, real_address};
    use crate::log;

    /// The thread of `object` is about to be joined; what that writes comes after the join.
    unsafe fn joined(entry: &Entry, object: usize) {
        let handle = *(object as *const u64);
        (*entry.thread).joins = Joins { object: object as u64, handle, code: entry.code };
    }

    unsafe fn detached(entry: &Entry, object: usize) {
        log_range(entry, Kind::WriteRange, object, size_of::<u64>());
    }

    macro_rules! releases {
        ($($name:ident => $note:ident;)*) => {
            $(
                const _: () = {
                    unsafe extern "C" fn released(object: usize) -> usize {
                        if let Some(entry) = log::enter(thread::caller()) {
                            $note(&entry, object);
                        }
                        real_address!($name)
                    }

                    #[unsafe(naked)]
                    #[cfg_attr(reweave_export, unsafe(export_name = stringify!($name)))]
                    unsafe extern "C" fn trampoline() {
                        core::arch::naked_asm!(
                            note_caller!(),
                            "push rdi",
                            "call {}",
                            "pop rdi",
                            "jmp rax",
                            sym released,
                        )
                    }
                };
            )*
        };
    }

    // Of libstdc++ and libc++.
    releases! {
        _ZNSt6thread4joinEv => joined;
        _ZNSt6thread6detachEv => detached;
        _ZNSt3__16thread4joinEv => joined;
        _ZNSt3__16thread6detachEv => detached;
    }
}
