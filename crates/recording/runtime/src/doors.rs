//! Doors: functions of the C library that we stand in front of.
//!
//! A door has the name of the function. It notes from where it was called, without touching an
//! argument, and goes on to a body that logs what happens and calls the real function. Locks are
//! logged after they were taken and before they are given back, so that two sections of one lock
//! never overlap in the log; what may wait gives its turn to others meanwhile.

use core::ffi::{c_int, c_void};
#[cfg(not(reweave_static))]
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::{Ordering, compiler_fence};

use crate::log::{self, Entry, More};
use crate::thread::Thread;
use crate::wire::{Kind, flag};
use crate::{replay, sys, turn};

pub(crate) mod barrier;
pub(crate) mod blocking;
pub(crate) mod c11;
pub(crate) mod channel;
pub(crate) mod condition;
pub(crate) mod futex;
pub(crate) mod guard;
pub(crate) mod memory;
pub(crate) mod mutex;
pub(crate) mod once;
pub(crate) mod program;
pub(crate) mod rwlock;
pub(crate) mod semaphore;
pub(crate) mod std_shims;
pub(crate) mod text;
pub(crate) mod thread;

/// What the C library answers when a lock is taken.
pub(crate) const BUSY: c_int = 16;
/// What it answers when the time is over.
pub(crate) const TIMED_OUT: c_int = 110;
/// What it answers when a lock was taken whose owner died with it.
const OWNER_DEAD: c_int = 130;

/// The name under which a door is found: that of the function, or what linkers of static programs
/// put in its place.
macro_rules! door_shim {
    (@ $symbol:expr, $name:ident, ($($argument:ident: $type:ty),*) -> $result:ty,
     [$($before:literal)*], $($operand:tt)*) => {
        #[unsafe(naked)]
        #[cfg_attr(reweave_export, unsafe(export_name = $symbol))]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            core::arch::naked_asm!(
                $($before,)*
                "mov r10, [rsp]",
                "mov r11, qword ptr [rip + reweave_caller@GOTTPOFF]",
                "mov fs:[r11], r10",
                "jmp {body}",
                body = sym body::$name,
                $($operand)*
            )
        }
    };
    ($name:ident, $($rest:tt)*) => {
        #[cfg(not(reweave_static))]
        $crate::doors::door_shim! { @ stringify!($name), $name, $($rest)* }
        #[cfg(reweave_static)]
        $crate::doors::door_shim! { @ concat!("__wrap_", stringify!($name)), $name, $($rest)* }
    };
}
pub(crate) use door_shim;

/// Defines doors: for each function its shim, its body, and the way to the real one.
///
/// Functions marked `whole` do all that the real one would, and there is no way to it. Those marked
/// `own` are not the C library's but ours.
macro_rules! doors {
    (own $(fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty $body:block)*) => {
        $(
            $crate::doors::door_shim! {
                @ stringify!($name), $name, ($($argument: $type),*) -> $result, [],
            }
        )*
        $crate::doors::door_bodies! {
            $(fn $name($($argument: $type),*) -> $result $body)*
        }
    };
    (whole $(fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty $body:block)*) => {
        $($crate::doors::door_shim! { $name, ($($argument: $type),*) -> $result, [], })*
        $crate::doors::door_bodies! {
            $(fn $name($($argument: $type),*) -> $result $body)*
        }
    };
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty $body:block)*) => {
        $(
            #[cfg(not(reweave_static))]
            $crate::doors::door_shim! { $name, ($($argument: $type),*) -> $result, [], }
            // The C library in a static program calls itself through doors, at first before it has
            // set up the storage of threads.
            #[cfg(reweave_static)]
            $crate::doors::door_shim! {
                $name, ($($argument: $type),*) -> $result,
                ["cmp byte ptr [rip + {started}], 0" "je {real}"],
                started = sym $crate::process::STARTED,
                real = sym real::$name,
            }
        )*
        $crate::doors::door_bodies! {
            $(fn $name($($argument: $type),*) -> $result $body)*
        }
        #[cfg(not(reweave_static))]
        #[allow(dead_code, reason = "some doors do all that the real function would")]
        mod real {
            #[allow(unused_imports, reason = "types of arguments may need no import")]
            use super::*;
            $(
                pub(super) unsafe fn $name($($argument: $type),*) -> $result {
                    #[cfg_attr(reweave_export, used, unsafe(link_section = "reweave_doors"))]
                    static WAY: $crate::doors::Way =
                        $crate::doors::Way::to(concat!(stringify!($name), "\0"));
                    let function: unsafe extern "C" fn($($type),*) -> $result =
                        core::mem::transmute(WAY.find());
                    function($($argument),*)
                }
            )*
        }
        #[cfg(reweave_static)]
        mod real {
            #[allow(unused_imports, reason = "types of arguments may need no import")]
            use super::*;
            unsafe extern "C" {
                $(
                    #[link_name = concat!("__real_", stringify!($name))]
                    pub(super) fn $name($($argument: $type),*) -> $result;
                )*
            }
        }
    };
}
pub(crate) use doors;

/// The bodies of doors.
macro_rules! door_bodies {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        /// What stands here.
        #[cfg(test)]
        pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];
        mod body {
            #[allow(unused_imports, reason = "not every file of doors needs them all")]
            use super::*;
            $(
                pub(super) unsafe extern "C" fn $name($($argument: $type),*) -> $result $body
            )*
        }
    };
}
pub(crate) use door_bodies;

#[cfg(not(reweave_static))]
#[cfg_attr(reweave_export, link(name = "c"))]
unsafe extern "C" {
    fn dlsym(handle: usize, name: *const u8) -> usize;
    fn dlvsym(handle: usize, name: *const u8, version: *const u8) -> usize;
}

/// The way to a function that we stand in front of.
#[cfg(not(reweave_static))]
#[repr(C)]
pub(crate) struct Way {
    name: &'static str,
    is_condition: bool,
    found: AtomicUsize,
}

#[cfg(not(reweave_static))]
impl Way {
    /// The way to the next definition of the function `name`, which ends in a zero byte.
    pub(crate) const fn to(name: &'static str) -> Self {
        // Compared here, since a comparison made later could be by a function that we stand before.
        let (all, first) = (name.as_bytes(), b"pthread_cond_");
        let mut place = 0;
        while place < first.len() && place < all.len() && all[place] == first[place] {
            place += 1;
        }
        Self { name, is_condition: place == first.len(), found: AtomicUsize::new(0) }
    }

    /// Where it leads; looked up once.
    pub(crate) unsafe fn find(&self) -> usize {
        const NEXT: usize = usize::MAX;
        let address = self.found.load(Ordering::Relaxed);
        if address != 0 {
            return address;
        }
        // The plain names of conditions lead to functions for an older layout.
        let mut address = 0;
        if self.is_condition {
            address = dlvsym(NEXT, self.name.as_ptr(), c"GLIBC_2.3.2".as_ptr().cast());
        }
        if address == 0 {
            address = dlsym(NEXT, self.name.as_ptr());
        }
        self.found.store(address, Ordering::Relaxed);
        address
    }
}

/// Finds all ways, while there is one thread: later, whoever looks for one may have to wait for a
/// thread that loads a library, and that one for its turn.
pub(crate) unsafe fn find_ways() {
    #[cfg(all(reweave_export, not(reweave_static)))]
    {
        unsafe extern "C" {
            #[link_name = "__start_reweave_doors"]
            static FIRST: u64;
            #[link_name = "__stop_reweave_doors"]
            static END: u64;
        }
        let mut way = (&raw const FIRST).cast::<Way>();
        while way < (&raw const END).cast() {
            (*way).find();
            way = way.add(1);
        }
    }
}

/// Enters the runtime at a door, or goes straight to the real function.
macro_rules! enter_or {
    ($real:expr) => {
        match $crate::log::enter($crate::thread::caller()) {
            Some(entry) => entry,
            None => return $real,
        }
    };
}
pub(crate) use enter_or;

/// Makes a call that may wait, while others run. Handlers of signals that come meanwhile are
/// recorded.
pub(crate) unsafe fn outside<R>(thread: *mut Thread, call: impl FnOnce() -> R) -> R {
    // One that comes before the turn is given up is handled when it is.
    let signals = turn::is_serial().then(sys::block_signals);
    let call = || {
        let was_away = turn::go_away(thread);
        if let Some(signals) = signals {
            sys::set_signals(signals);
        }
        let result = call();
        turn::come_back(thread, was_away);
        result
    };
    outside_or(thread, call, &mut || {})
}

/// Makes a call that may wait, while others run; what is `left` to do is done if the thread is
/// cancelled meanwhile. Handlers of signals that come are not recorded, since a thread that waits on
/// a condition has no events.
unsafe fn outside_or<R>(
    thread: *mut Thread,
    call: impl FnOnce() -> R,
    mut left: &mut dyn FnMut(),
) -> R {
    turn::give(thread);
    let mut cancelled = Cancelled { thread, left: &raw mut left };
    let mut cleanup = [0; 4];
    _pthread_cleanup_push(&raw mut cleanup, on_cancel, (&raw mut cancelled).cast());
    let result = call();
    _pthread_cleanup_pop(&raw mut cleanup, 0);
    turn::take(thread);
    result
}

/// Makes a call that should not wait, without giving the turn to others. The thread is not in the
/// runtime meanwhile, so the turn can be taken from it if it does wait.
pub(crate) unsafe fn inside<R>(thread: *mut Thread, call: impl FnOnce() -> R) -> R {
    log::flush(thread);
    compiler_fence(Ordering::SeqCst);
    (*thread).depth = 0;
    let result = call();
    (*thread).depth = 1;
    compiler_fence(Ordering::SeqCst);
    turn::settle(thread);
    result
}

/// Makes a call of the C library's that does not wait for another thread, unless that is in the
/// library too and wants a turn: then the turn is taken from us. Nothing in it is recorded.
pub(crate) unsafe fn in_library<R>(thread: *mut Thread, call: impl FnOnce() -> R) -> R {
    log::flush(thread);
    let was_in_library = (*thread).in_library;
    (*thread).in_library = true;
    compiler_fence(Ordering::SeqCst);
    let result = call();
    compiler_fence(Ordering::SeqCst);
    (*thread).in_library = was_in_library;
    turn::settle(thread);
    result
}

// The form of these that needs no help from a compiler. What they are given stays on the stack while
// the frames of a cancelled thread are left one by one.
unsafe extern "C" {
    fn _pthread_cleanup_push(
        buffer: *mut [usize; 4],
        routine: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    );
    fn _pthread_cleanup_pop(buffer: *mut [usize; 4], execute: c_int);
}

/// A thread that is cancelled while it waits.
struct Cancelled<'a> {
    thread: *mut Thread,
    left: *mut &'a mut dyn FnMut(),
}

/// Leaves the runtime for good, so that what cleans up after the thread is recorded. The C library
/// also calls this when a handler of a signal jumps away from the wait.
unsafe extern "C" fn on_cancel(cancelled: *mut c_void) {
    let cancelled = cancelled.cast::<Cancelled<'_>>();
    let thread = (*cancelled).thread;
    turn::come_back(thread, false);
    turn::ensure(thread);
    (*(*cancelled).left)();
    (*thread).depth = 0;
}

/// Takes a lock: `attempt` tries and answers [`BUSY`] if it is taken, `wait` waits for it. That it was
/// asked for is an event of its own only if it was taken, or a plan counts events.
pub(crate) unsafe fn acquire(
    entry: &Entry,
    lock: usize,
    flags: u16,
    attempt: impl Fn() -> c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let thread = entry.thread;
    let mut result = if replay::is_on() { BUSY } else { attempt() };
    if is_taken(result) {
        return acquired(entry, lock, flags | flag::ASKED, result);
    }
    entry.log_more(Kind::LockRequest, lock as u64, More { flags, ..More::default() });
    // A request has no effect, so a step that ends with it ends now.
    turn::settle(thread);
    if replay::is_on() {
        result = attempt();
    }
    if result == BUSY {
        // Who waits for a time only is in no deadlock.
        if flags & flag::TRY == 0 {
            ((*thread).wants, (*thread).wants_at) = (lock as u64, entry.code);
            replay::blocked(thread);
        }
        result = outside(thread, wait);
        (*thread).wants = 0;
    }
    acquired(entry, lock, flags, result)
}

/// Whether `result` says that the caller has the lock.
const fn is_taken(result: c_int) -> bool {
    matches!(result, 0 | OWNER_DEAD)
}

/// Logs that a lock was taken if `result` says so.
pub(crate) unsafe fn acquired(entry: &Entry, lock: usize, flags: u16, result: c_int) -> c_int {
    if is_taken(result) {
        entry.log_more(Kind::Lock, lock as u64, More { flags, ..More::default() });
    }
    result
}

/// Logs that a lock is about to be given back.
pub(crate) unsafe fn release(entry: &Entry, lock: usize) {
    entry.log(Kind::Unlock, lock as u64);
}

/// Waits on a condition by `wait`, which gives back `mutex` meanwhile.
pub(crate) unsafe fn wait_on(
    entry: &Entry,
    condition: usize,
    mutex: usize,
    timed_out: c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    entry.log_extra(Kind::Wait, condition as u64, mutex as u64);
    replay::gave(entry.thread, mutex as u64);
    let woken = |flags| {
        replay::took(entry.thread, mutex as u64);
        let more = More { flags, extra: Some(mutex as u64), ..More::default() };
        entry.log_more(Kind::Wake, condition as u64, more);
    };
    // A thread that is cancelled has the mutex again, though nobody woke it.
    let result = outside_or(entry.thread, wait, &mut || woken(flag::TIMED_OUT));
    woken(if result == timed_out { flag::TIMED_OUT } else { 0 });
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_door_is_in_the_list_of_what_static_programs_wrap() {
        let mut doors = [
            barrier::NAMES,
            blocking::NAMES,
            blocking::waiting::NAMES,
            c11::NAMES,
            channel::NAMES,
            channel::children::NAMES,
            channel::children::VFORK,
            channel::children::waiting::NAMES,
            channel::descriptors::NAMES,
            channel::files::NAMES,
            channel::files::as_streams::NAMES,
            channel::formatted::NAMES,
            channel::messages::NAMES,
            channel::moving::NAMES,
            channel::polling::NAMES,
            channel::queues::NAMES,
            channel::signals::NAMES,
            channel::streams::NAMES,
            condition::NAMES,
            futex::NAMES,
            guard::NAMES,
            memory::NAMES,
            mutex::NAMES,
            once::NAMES,
            program::NAMES,
            rwlock::NAMES,
            semaphore::NAMES,
            text::NAMES,
            text::VARIADIC,
            thread::NAMES,
        ]
        .concat();
        // The program itself calls these by their own names.
        doors.retain(|name| !name.starts_with("reweave_"));
        doors.sort_unstable();
        let listed: Vec<&str> = include_str!("wrapped.txt").lines().collect();
        assert_eq!(listed, doors);
    }
}
