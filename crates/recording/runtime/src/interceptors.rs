//! Interceptors: functions that stand in front of those of the C library.
//!
//! An interceptor has the name of the function. Its trampoline notes from where it was called,
//! without touching an argument, and goes on to a body that logs what happens and calls the real
//! function. An acquire is logged after the lock was taken and a release before it is given up, so
//! that two critical sections of one lock never overlap in the log. A call that may block releases
//! the scheduling token meanwhile.

use core::ffi::{c_int, c_void};
#[cfg(not(reweave_static))]
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::{Ordering, compiler_fence};

use crate::log::{self, Entry, Operands};
use crate::thread::{Thread, waiting};
use crate::wire::{Kind, flag, wait};
use crate::{replay, scheduler, sys};

pub mod channels;
pub mod cxx_containers;
pub mod cxx_futures;
pub mod cxx_pools;
#[cfg(not(reweave_static))]
pub mod cxx_strings;
pub mod formats;
pub mod handlers;
pub mod io;
pub mod ipc;
#[cfg(not(reweave_static))]
pub mod known;
#[cfg(not(reweave_static))]
pub mod libraries;
#[cfg_attr(
    reweave_static,
    allow(dead_code, reason = "rare functions are not part of static programs")
)]
pub mod library;
pub mod masks;
pub mod memory;
#[cfg(not(reweave_static))]
pub mod objects;
#[cfg(not(reweave_static))]
pub mod openmp;
pub mod program;
pub mod streams;
pub mod sync;
pub mod text;
pub mod threads;

/// A static program calls no libraries that were not linked with it.
#[cfg(reweave_static)]
pub mod libraries {
    use core::ffi::c_int;

    use crate::log::Entry;
    use crate::thread::Thread;

    #[derive(Clone, Copy, Debug)]
    pub struct Boundary {
        pub calls: i64,
        pub depth: u32,
        pub called_back: i64,
        pub is_due: bool,
        pub creates: bool,
        pub was_asked_for: bool,
    }

    #[derive(Clone, Copy, Debug)]
    pub enum Call {}

    pub const fn checks_are_seen(_: u64) -> bool {
        true
    }
    pub unsafe fn interrupted(_: *const Thread) -> Option<Call> {
        None
    }
    pub unsafe fn go_on(_: *mut Thread, _: Call) {}
    pub unsafe fn resume(_: *mut Thread, _: u64) {}
    pub unsafe fn acquire_last(_: *mut Thread) {}
    pub unsafe fn entered(_: *mut Thread, _: u64, _: bool) {}
    pub unsafe fn left(_: *mut Thread) {}
    pub const unsafe fn release_early(_: &Entry, _: c_int) {}
    pub const unsafe fn bind_new_objects() -> bool {
        false
    }
}

/// A static program is one object.
#[cfg(reweave_static)]
pub mod objects {
    pub const fn has_new_static_code() -> bool {
        false
    }
    pub const fn is_in_main(_: u64) -> bool {
        true
    }
    pub const fn is_instrumented(_: u64) -> bool {
        true
    }

    pub const fn is_foreign(_: u64) -> bool {
        false
    }

    /// Whether `address` is in the program's code.
    pub fn is_code(address: u64) -> bool {
        unsafe extern "C" {
            static __executable_start: u8;
            static etext: u8;
        }
        let (start, end) = (&raw const __executable_start, &raw const etext);
        (start as u64 + 8..end as u64).contains(&address)
    }
}

/// The flags of what ends a life at `entry`: what code that is not recorded waited for, there or before it called the
/// program, is not known. In a static program
/// all code may be such.
pub unsafe fn flags_of_end(entry: &Entry) -> u16 {
    let is_called_back = (*entry.thread).boundary.called_back > 0;
    if is_called_back { flag::ASSUMED } else { flags_of_begin(entry) }
}

/// The flags of what begins a life at `entry`.
pub fn flags_of_begin(entry: &Entry) -> u16 {
    let is_seen = !cfg!(reweave_static) && objects::is_instrumented(entry.code);
    if is_seen { 0 } else { flag::ASSUMED }
}

/// `EBUSY`: the lock is taken.
pub const BUSY: c_int = 16;
/// `ETIMEDOUT`.
pub const TIMED_OUT: c_int = 110;
/// `EOWNERDEAD`: the lock was taken, but its owner died with it.
const OWNER_DEAD: c_int = 130;

unsafe extern "C" {
    pub fn __errno_location() -> *mut c_int;
}

/// Runs `call` and puts `errno` back afterwards: the program did not ask for this call.
pub unsafe fn keeping_errno<R>(call: impl FnOnce() -> R) -> R {
    let error = __errno_location();
    let before = *error;
    let result = call();
    *error = before;
    result
}

/// The instructions that note the return address of the running function as the caller.
///
/// Only `r10` and `r11` are used: no argument is passed in them.
macro_rules! note_caller {
    () => {
        "mov r10, [rsp]
         mov r11, qword ptr [rip + reweave_caller@GOTTPOFF]
         mov fs:[r11], r10"
    };
}
pub(crate) use note_caller;

/// The instructions that note where on the stack that return address is.
macro_rules! note_caller_slot {
    () => {
        "mov r11, qword ptr [rip + reweave_caller_slot@GOTTPOFF]
         mov fs:[r11], rsp"
    };
}
pub(crate) use note_caller_slot;

/// Defines interceptors.
///
/// Each function becomes a module of its name with the `body`, the `real` function, and the
/// trampoline that is exported. `|entry, call|` enters the runtime and binds the [`Entry`] and a
/// closure that calls the real function with the same arguments; where the runtime was entered
/// already, the real function alone is called. Functions in brackets share arguments and body.
///
/// Those marked `complete` do all that the real one would, and there is no real one. Those marked
/// `own` are not the C library's but ours.
macro_rules! interceptors {
    (own $($rest:tt)*) => { $crate::interceptors::interceptors! { @ own $($rest)* } };
    (complete $($rest:tt)*) => { $crate::interceptors::interceptors! { @ complete $($rest)* } };
    (@ $kind:ident $(fn $names:tt $arguments:tt -> $result:ty $(|$entry:ident, $call:ident|)? $body:block)*) => {
        /// The functions that are intercepted here.
        #[cfg(test)]
        pub const NAMES: &[&[&str]] = &[$($crate::interceptors::names!($names)),*];
        $(
            $crate::interceptors::interceptor! {
                $kind $names $arguments -> $result, [$($entry $call)?] $body
            }
        )*
    };
    ($($rest:tt)*) => { $crate::interceptors::interceptors! { @ libc $($rest)* } };
}
pub(crate) use interceptors;

#[cfg(test)]
macro_rules! names {
    ([$($name:ident)+]) => { &[$(stringify!($name)),+] };
    ($name:ident) => { &[stringify!($name)] };
}
#[cfg(test)]
pub(crate) use names;

/// Defines the interceptors of one entry of [`interceptors`].
macro_rules! interceptor {
    ($kind:ident [$($name:ident)+] $arguments:tt -> $result:ty, $binding:tt $body:block) => {
        $(
            $crate::interceptors::interceptor! {
                $kind $name $arguments -> $result, $binding $body
            }
        )+
    };
    ($kind:ident $name:ident ($($argument:ident: $type:ty),* $(,)?) -> $result:ty,
     $binding:tt $body:block) => {
        pub mod $name {
            #[allow(unused_imports, reason = "not every interceptor needs all of them")]
            use super::*;

            #[allow(unused_variables, reason = "not every body needs what it could use")]
            pub unsafe extern "C" fn body($($argument: $type),*) -> $result {
                $crate::interceptors::enter! { $binding ($($argument),*) $body }
            }
            $crate::interceptors::trampoline! { $kind $name ($($argument: $type),*) -> $result }
        }
    };
}
pub(crate) use interceptor;

/// The start of a body: enters the runtime if the body asks for it.
macro_rules! enter {
    ([] $arguments:tt $body:block) => { $body };
    ([$entry:ident $call:ident] ($($argument:ident),*) $body:block) => {{
        let $call = move || real($($argument),*);
        let Some($entry) = $crate::log::enter($crate::thread::caller()) else { return $call() };
        $body
    }};
}
pub(crate) use enter;

/// The exported entry of an interceptor, and the way to the real function.
macro_rules! trampoline {
    (@ $symbol:expr, ($($argument:ident: $type:ty),*) -> $result:ty,
     [$($before:literal)*], $($operand:tt)*) => {
        #[unsafe(naked)]
        #[cfg_attr(reweave_export, unsafe(export_name = $symbol))]
        unsafe extern "C" fn trampoline($($argument: $type),*) -> $result {
            core::arch::naked_asm!(
                $($before,)*
                $crate::interceptors::note_caller!(),
                $crate::interceptors::note_caller_slot!(),
                "jmp {body}",
                body = sym body,
                $($operand)*
            )
        }
    };
    (own $name:ident $arguments:tt -> $result:ty) => {
        $crate::interceptors::trampoline! { @ stringify!($name), $arguments -> $result, [], }
    };
    (complete $name:ident $arguments:tt -> $result:ty) => {
        #[cfg(not(reweave_static))]
        $crate::interceptors::trampoline! { @ stringify!($name), $arguments -> $result, [], }
        #[cfg(reweave_static)]
        $crate::interceptors::trampoline! {
            @ concat!("__wrap_", stringify!($name)), $arguments -> $result, [],
        }
    };
    (libc $name:ident ($($argument:ident: $type:ty),*) -> $result:ty) => {
        #[cfg(not(reweave_static))]
        $crate::interceptors::trampoline! {
            @ stringify!($name), ($($argument: $type),*) -> $result, [],
        }
        // The C library in a static program calls itself through interceptors, at first before it
        // has set up the storage of threads: until then they must not even note their caller.
        #[cfg(reweave_static)]
        $crate::interceptors::trampoline! {
            @ concat!("__wrap_", stringify!($name)), ($($argument: $type),*) -> $result,
            ["cmp byte ptr [rip + {started}], 0" "je {real}"],
            started = sym $crate::process::STARTED,
            real = sym real,
        }
        #[cfg(not(reweave_static))]
        #[allow(dead_code, reason = "some bodies do all that the real function would")]
        pub unsafe fn real($($argument: $type),*) -> $result {
            let address = $crate::interceptors::real_address!($name);
            let function: unsafe extern "C" fn($($type),*) -> $result =
                core::mem::transmute(address);
            function($($argument),*)
        }
        #[cfg(reweave_static)]
        unsafe extern "C" {
            #[link_name = concat!("__real_", stringify!($name))]
            pub fn real($($argument: $type),*) -> $result;
        }
    };
}
pub(crate) use trampoline;

/// The address of the real function: the next definition of the symbol.
#[cfg(not(reweave_static))]
macro_rules! real_address {
    (@ $how:ident $name:ident) => {{
        #[cfg_attr(reweave_export, used, unsafe(link_section = "reweave_real"))]
        static REAL: $crate::interceptors::RealFunction =
            $crate::interceptors::RealFunction::new(concat!(stringify!($name), "\0"));
        REAL.$how()
    }};
    ($name:ident) => {
        $crate::interceptors::real_address!(@ address $name)
    };
}
/// The address of the real function: what the linker renamed it to.
#[cfg(reweave_static)]
macro_rules! real_address {
    ($name:ident) => {{
        unsafe extern "C" {
            #[link_name = concat!("__real_", stringify!($name))]
            fn real();
        }
        real as *const () as usize
    }};
}
pub(crate) use real_address;

/// Enters the runtime, or returns what the real function says.
macro_rules! enter_or {
    ($real:expr) => {
        match $crate::log::enter($crate::thread::caller()) {
            Some(entry) => entry,
            None => return $real,
        }
    };
}
pub(crate) use enter_or;

#[cfg(not(reweave_static))]
#[cfg_attr(reweave_export, link(name = "c"))]
unsafe extern "C" {
    fn dlvsym(handle: usize, name: *const u8, version: *const u8) -> usize;
}

/// Where the C library's `dlsym` is, in front of which stands ours.
#[cfg(not(reweave_static))]
unsafe fn real_dlsym() -> usize {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    const NEXT: usize = usize::MAX;
    let mut address = REAL.load(Ordering::Relaxed);
    for version in [c"GLIBC_2.34", c"GLIBC_2.2.5"] {
        if address == 0 {
            address = dlvsym(NEXT, c"dlsym".as_ptr().cast(), version.as_ptr().cast());
        }
    }
    REAL.store(address, Ordering::Relaxed);
    address
}

/// Where `name` is in what `opened` leads to; 0 if it is not there.
#[cfg(not(reweave_static))]
unsafe fn dlsym(opened: usize, name: *const u8) -> usize {
    let look_up: unsafe extern "C" fn(usize, *const u8) -> usize =
        core::mem::transmute(real_dlsym());
    look_up(opened, name)
}

/// A function that is intercepted.
#[cfg(not(reweave_static))]
#[repr(C)]
pub struct RealFunction {
    name: &'static str,
    is_condition: bool,
    is_timer: bool,
    address: AtomicUsize,
}

#[cfg(not(reweave_static))]
const fn starts_with(name: &str, start: &str) -> bool {
    let (name, start) = (name.as_bytes(), start.as_bytes());
    let mut place = 0;
    while place < start.len() && place < name.len() && name[place] == start[place] {
        place += 1;
    }
    place == start.len()
}

#[cfg(not(reweave_static))]
impl RealFunction {
    /// The function `name`, which ends in a zero byte.
    pub const fn new(name: &'static str) -> Self {
        // Compared here: at run time the comparison could be by a function that we intercept.
        Self {
            name,
            is_condition: starts_with(name, "pthread_cond_"),
            is_timer: starts_with(name, "timer_"),
            address: AtomicUsize::new(0),
        }
    }

    /// Where the real function is; looked up once.
    pub unsafe fn address(&self) -> usize {
        let address = self.known();
        if address == 0 { self.find_loaded() } else { address }
    }

    /// Where the real function is in what was loaded with the program; 0 if nowhere.
    pub unsafe fn known(&self) -> usize {
        const NEXT: usize = usize::MAX;
        let known = self.address.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        // The plain names of conditions and timers lead to functions for an older layout of them.
        let mut address = 0;
        if self.is_condition {
            address = dlvsym(NEXT, self.name.as_ptr(), c"GLIBC_2.3.2".as_ptr().cast());
        } else if self.is_timer {
            address = dlvsym(NEXT, self.name.as_ptr(), c"GLIBC_2.3.3".as_ptr().cast());
        }
        if address == 0 {
            address = dlsym(NEXT, self.name.as_ptr());
        }
        // Relaxed, since every thread that races here stores the same address.
        self.address.store(address, Ordering::Relaxed);
        address
    }

    /// Where the function is in a library that was loaded later and is not visible to all.
    #[cold]
    unsafe fn find_loaded(&self) -> usize {
        unsafe extern "C" fn visit(
            object: *const program::LoadedObject,
            _: usize,
            search: *mut c_void,
        ) -> c_int {
            const LAZY_AND_ONLY_IF_LOADED: c_int = 5;
            let (function, found) = &mut *search.cast::<(&RealFunction, usize)>();
            // Jumped to, not called: who opens a library is looked at.
            let handle = program::open_loaded((*object).name, LAZY_AND_ONLY_IF_LOADED);
            if handle != 0 {
                let address = dlsym(handle, function.name.as_ptr());
                if address != 0 && address != dlsym(0, function.name.as_ptr()) {
                    *found = address;
                }
            }
            c_int::from(*found != 0)
        }
        let mut search = (self, 0);
        without_signals(|| program::dl_iterate_phdr(visit, (&raw mut search).cast()));
        self.address.store(search.1, Ordering::Relaxed);
        search.1
    }
}

/// Looks up all real functions while there is one thread. Later, whoever looks one up may have to
/// wait for the loader's lock, held by a thread that waits for the scheduling token.
pub unsafe fn resolve_real_functions() {
    #[cfg(all(reweave_export, not(reweave_static)))]
    {
        unsafe extern "C" {
            #[link_name = "__start_reweave_real"]
            static FIRST: u64;
            #[link_name = "__stop_reweave_real"]
            static END: u64;
        }
        let mut function = (&raw const FIRST).cast::<RealFunction>();
        while function < (&raw const END).cast() {
            (*function).known();
            function = function.add(1);
        }
    }
}

impl Entry {
    /// Makes a call that may block, while other threads run. Signal handlers that run meanwhile are
    /// recorded.
    pub unsafe fn blocking<R>(&self, call: impl FnOnce() -> R) -> R {
        self.blocking_for(wait::CALL, None, call)
    }

    /// The same for a call that waits for `what`, one of [`wait`].
    pub unsafe fn blocking_for<R>(
        &self,
        what: u64,
        object: Option<u64>,
        call: impl FnOnce() -> R,
    ) -> R {
        self.log_unplanned(Kind::Block, what, object);
        if what == wait::SLEEP {
            (*self.thread).wait_state.store(waiting::SLEEPING, Ordering::Relaxed);
        }
        let result = self.blocking_announced(call);
        // Where threads run freely, this is all that orders what comes before the call with what
        // another thread does after it.
        if self.is_numbered() {
            self.log_unplanned(Kind::Unblock, 0, None);
        }
        result
    }

    /// The same for a call that an event before it announces.
    pub unsafe fn blocking_announced<R>(&self, call: impl FnOnce() -> R) -> R {
        let thread = self.thread;
        // A signal that comes before the token is released is handled once it is.
        let signals = scheduler::is_serial().then(sys::block_signals);
        let call = || {
            let was_blocked = scheduler::begin_blocking(thread);
            let was_in_call = core::mem::replace(&mut (*thread).waits_in_call, true);
            if let Some(signals) = signals {
                sys::set_signals(signals);
            }
            let result = if cfg!(reweave_static) {
                handlers::waiting_inside(thread, call)
            } else {
                handlers::deliver_deferred(thread);
                call()
            };
            scheduler::end_blocking(thread, was_blocked);
            (*thread).waits_in_call = was_in_call;
            result
        };
        blocking_or(thread, call, &mut || {})
    }

    /// Makes a call that should not block and in which handlers of signals may run that the program asked for.
    pub unsafe fn receiving_signals<R>(&self, call: impl FnOnce() -> R) -> R {
        let thread = self.thread;
        let did_ask = core::mem::replace(&mut (*thread).asks_for_signals, true);
        let result = self.nonblocking(call);
        (*thread).asks_for_signals = did_ask;
        result
    }

    /// Makes a call that should not block, and keeps the token. The thread counts as outside of the
    /// runtime meanwhile, so that the token can be taken from it if it does block.
    pub unsafe fn nonblocking<R>(&self, call: impl FnOnce() -> R) -> R {
        let thread = self.thread;
        log::flush(thread);
        compiler_fence(Ordering::SeqCst);
        (*thread).depth = 0;
        compiler_fence(Ordering::SeqCst);
        handlers::deliver_deferred(thread);
        let result = call();
        (*thread).depth = 1;
        compiler_fence(Ordering::SeqCst);
        scheduler::settle(thread);
        result
    }
}

/// Makes a call that may block, while other threads run; `on_cancel` runs if the thread is
/// cancelled meanwhile. Signal handlers are not recorded, since a thread that waits on a condition
/// has no events.
pub unsafe fn blocking_or<R>(
    thread: *mut Thread,
    call: impl FnOnce() -> R,
    mut on_cancel: &mut dyn FnMut(),
) -> R {
    scheduler::release(thread);
    let mut cancelled = Cancelled { thread, cleanup: &raw mut on_cancel };
    let mut buffer = [0; 4];
    let state = &(*thread).wait_state;
    _ = state.compare_exchange(waiting::NO, waiting::BLOCKED, Ordering::Relaxed, Ordering::Relaxed);
    _pthread_cleanup_push(&raw mut buffer, run_on_cancel, (&raw mut cancelled).cast());
    let result = call();
    _pthread_cleanup_pop(&raw mut buffer, 0);
    state.store(waiting::NO, Ordering::Relaxed);
    scheduler::acquire(thread);
    result
}

/// Makes a call of the C library that does not wait for another thread, unless that one is in the
/// library too and waits_for the token: then the token is taken from us. Nothing in it is recorded.
pub unsafe fn in_library<R>(thread: *mut Thread, call: impl FnOnce() -> R) -> R {
    log::flush(thread);
    let was_in_library = (*thread).in_library;
    (*thread).in_library = true;
    compiler_fence(Ordering::SeqCst);
    let result = call();
    compiler_fence(Ordering::SeqCst);
    (*thread).in_library = was_in_library;
    scheduler::settle(thread);
    result
}

/// The same for a call that the runtime makes of its own accord. No signal comes meanwhile: its
/// handler might jump away and leave a lock of the library taken for good.
pub unsafe fn undisturbed<R>(thread: *mut Thread, call: impl FnOnce() -> R) -> R {
    in_library(thread, || without_signals(call))
}

/// Runs `call` while no signal comes.
unsafe fn without_signals<R>(call: impl FnOnce() -> R) -> R {
    let signals = sys::block_signals();
    let result = call();
    sys::set_signals(signals);
    result
}

// The form of these that needs no help from a compiler. The buffer stays on the stack while the
// frames of a cancelled thread are unwound one by one.
unsafe extern "C" {
    fn _pthread_cleanup_push(
        buffer: *mut [usize; 4],
        routine: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    );
    fn _pthread_cleanup_pop(buffer: *mut [usize; 4], execute: c_int);
}

/// A thread that is cancelled while it blocks.
struct Cancelled<'a> {
    thread: *mut Thread,
    cleanup: *mut &'a mut dyn FnMut(),
}

/// Leaves the runtime for good, so that what cleans up after the thread is recorded. The C library
/// also calls this when a signal handler jumps away from the wait.
unsafe extern "C" fn run_on_cancel(cancelled: *mut c_void) {
    let cancelled = cancelled.cast::<Cancelled<'_>>();
    let thread = (*cancelled).thread;
    (*thread).wait_state.store(waiting::NO, Ordering::Relaxed);
    scheduler::end_blocking(thread, false);
    scheduler::reacquire(thread);
    (*(*cancelled).cleanup)();
    (*thread).deferred.is_off = false;
    (*thread).depth = 0;
}

/// Acquires a lock: `attempt` tries and answers [`BUSY`] if it is taken, `wait` waits for it. The
/// request is an event of its own only if the lock was taken, or if a plan counts events.
pub unsafe fn acquire(
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
    entry.log_flags(Kind::LockRequest, lock as u64, flags);
    // A request has no effect, so a step that ends with it ends now.
    scheduler::settle(thread);
    if replay::is_on() {
        result = attempt();
    }
    if result == BUSY {
        // A wait with a time-out is in no deadlock.
        if flags & flag::TRY == 0 {
            ((*thread).waits_for, (*thread).waits_at) = (lock as u64, entry.code);
            replay::blocked(thread);
        }
        result = entry.blocking_announced(wait);
        (*thread).waits_for = 0;
    }
    acquired(entry, lock, flags, result)
}

/// Whether `result` says that the caller has the lock.
const fn is_taken(result: c_int) -> bool {
    matches!(result, 0 | OWNER_DEAD)
}

/// Logs what `result` says of an attempt to acquire a lock: that it was acquired, or that others had it
/// for too long.
pub unsafe fn acquired(entry: &Entry, lock: usize, flags: u16, result: c_int) -> c_int {
    if is_taken(result) {
        entry.log_flags(Kind::Lock, lock as u64, flags);
        (*entry.thread).last_acquire = (lock as u64, entry.code);
    } else if matches!(result, BUSY | TIMED_OUT) {
        entry.log_flags(Kind::LockBusy, lock as u64, flags & flag::SHARED);
    }
    result
}

/// Whether code that returned to `from` went straight to the call that returns to `to`: it only loads registers
/// for it. What is not known to be such an instruction is none.
unsafe fn goes_straight(from: u64, to: u64) -> bool {
    const LENGTH_MAX: u64 = 64;
    const CALL_BYTES: u64 = 5;
    if to < from + CALL_BYTES || to - from > LENGTH_MAX {
        return false;
    }
    let mut code =
        core::slice::from_raw_parts(from as *const u8, (to - from - CALL_BYTES) as usize);
    while let Some(length) = load_length(code) {
        code = code.get(length..).unwrap_or_default();
    }
    code.is_empty()
}

/// How long the instruction is that `code` begins with, if it is one that puts an address, a register, a value
/// or zero into a register.
fn load_length(code: &[u8]) -> Option<usize> {
    let (prefix, is_wide) = match *code.first()? {
        rex @ 0x40..=0x4f => (1, rex & 8 != 0),
        _ => (0, false),
    };
    let operands = match *code.get(prefix)? {
        // Values of four bytes, or eight.
        0xb8..=0xbf => {
            if is_wide {
                8
            } else {
                4
            }
        }
        // lea, mov, xor: how the operands are addressed decides.
        0x8d | 0x8b | 0x89 | 0x31 | 0x33 => {
            let modes = *code.get(prefix + 1)?;
            let has_scale = modes >> 6 != 3 && modes & 7 == 4;
            let offset = match (modes >> 6, modes & 7) {
                (0, 5) | (2, _) => 4,
                (1, _) => 1,
                _ => 0,
            };
            1 + usize::from(has_scale) + offset
        }
        0x90 => 0,
        _ => return None,
    };
    Some(prefix + 1 + operands)
}

/// Waits on a condition by `wait`, which releases `mutex` meanwhile, and answers `timed_out` after its time, if
/// `flags` say that it has one.
pub unsafe fn wait_on(
    entry: &Entry,
    condition: usize,
    mutex: usize,
    (timed_out, flags): (c_int, u16),
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let is_timed = flags & flag::TIMED_OUT != 0;
    let unseen = if libraries::checks_are_seen(entry.code) { 0 } else { flag::ASSUMED };
    let (last, acquired_at) = (*entry.thread).last_acquire;
    let is_unchecked = last == mutex as u64 && goes_straight(acquired_at, entry.code);
    let flags = flags | unseen | if is_unchecked { flag::UNCHECKED } else { 0 };
    let operands = Operands { flags, extra: Some(mutex as u64), ..Operands::default() };
    entry.log_with(Kind::Wait, condition as u64, operands);
    replay::released(entry.thread, mutex as u64);
    let woken = |flags| {
        replay::acquired(entry.thread, mutex as u64);
        let operands = Operands { flags, extra: Some(mutex as u64), ..Operands::default() };
        entry.log_with(Kind::Wake, condition as u64, operands);
    };
    if replay::is_on() && !replay::is_done() && !is_timed {
        let result = replay::conditions::wait(entry, condition, mutex);
        woken(0);
        return result;
    }
    // A cancelled thread has the mutex again, though nobody woke it.
    let wait = || handlers::waiting_inside(entry.thread, wait);
    let result = blocking_or(entry.thread, wait, &mut || woken(flag::TIMED_OUT));
    woken(if result == timed_out { flag::TIMED_OUT } else { 0 });
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped() -> Vec<&'static str> {
        let tables = [
            cxx_containers::NAMES,
            handlers::NAMES,
            io::NAMES,
            ipc::NAMES,
            library::NAMES,
            memory::NAMES,
            program::NAMES,
            streams::NAMES,
            sync::NAMES,
            sync::guard::NAMES,
            text::NAMES,
            threads::NAMES,
            &[ipc::VFORK, masks::NAMES, streams::VARIADIC, text::VARIADIC],
        ];
        let mut names = tables.concat().concat();
        names.sort_unstable();
        names
    }

    #[test]
    fn every_interceptor_is_in_the_list_of_what_static_programs_wrap() {
        let listed: Vec<&str> = include_str!("wrapped.txt").lines().collect();
        assert_eq!(listed, wrapped());
    }

    /// The list has the names that ThreadSanitizer's library and the C library both export: `nm -D` of
    /// both shows them. Those that are not intercepted here come with the reason.
    #[test]
    fn what_thread_sanitizer_intercepts_is_intercepted_or_explained() {
        let dynamic = [
            library::rare::NAMES,
            library::rare::special::NAMES,
            io::dynamic::NAMES,
            program::dynamic::NAMES,
        ];
        let jumped_to = [masks::rare::NAMES, &["dlopen"]].concat();
        let names = [wrapped(), dynamic.concat().concat(), jumped_to].concat();
        let is_missing = |line: &&str| !line.contains(": ") && !names.contains(line);
        let list = include_str!("interceptors/threadsanitizer.txt");
        let missing: Vec<&str> = list.lines().filter(is_missing).collect();
        assert_eq!(missing, Vec::<&str>::new());
    }
}
