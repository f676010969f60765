//! Signal handlers: what came before a handler was installed, and before the signal was sent, comes
//! before what the handler does.
//!
//! A handler that the program installs is kept here, and one of ours takes its place. It logs what
//! orders the handler and then calls it. A write that the signal interrupted may not have happened
//! yet, so nobody asks any more what it stored: where the signal is a fault of that very write, the
//! memory cannot even be read.
//!
//! A signal that interrupts the runtime itself waits until that is left, so that what its handler does
//! is recorded. Until then the thread blocks all signals, so whatever saves, sets or passes on the
//! signals that the program has it block comes after the handler.
//!
//! A handler that is for one signal only is uninstalled here, when it is about to run: the kernel would
//! do it when the signal comes, which may have to wait.
//!
//! Signals that stand for a fault and are left to the system have a handler of ours too, which notes
//! for the recorder who failed and where, and then lets the system do what it would have done. The
//! program does not see either: where it asks, the answer is the handler that it installed itself.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering, compiler_fence};

use super::io::log_receive;
use super::ipc::{note_signal, signal_channel};
use super::objects::is_instrumented;
use super::program::{log_range, note_handle};
use super::{flags_of_end, interceptors, keeping_errno, libraries};
use crate::log::{self, Entry};
use crate::thread::{Deferred, Spin, Thread};
use crate::wire::{Kind, channel, flag, handle};
use crate::{process, sys, thread};

/// Signals have numbers from 1 to this.
const SIGNALS_MAX: usize = 64;

const DEFAULT: usize = 0;
const IGNORE: usize = 1;
const ERROR: usize = usize::MAX;

const WITH_INFORMATION: c_int = 4;
const ON_STACK: c_int = 0x0800_0000;
const INTERRUPTS: c_int = 0x2000_0000;
const DOES_NOT_BLOCK_ITSELF: c_int = 0x4000_0000;
const ONCE: c_int = c_int::MIN;

/// The flags that the kernel gets as we want them, not as the program does.
const OUR_FLAGS: c_int = WITH_INFORMATION | ONCE;

const ABORT: c_int = 6;

/// The signals of faults: illegal instruction, trap, abort, bus, arithmetic, memory, system call.
const FAULTS: [c_int; 7] = [4, 5, ABORT, 7, 8, 11, 31];

/// What the program installed, by signal.
static INSTALLED: [AtomicUsize; SIGNALS_MAX + 1] = [const { AtomicUsize::new(0) }; SIGNALS_MAX + 1];

/// With which flags.
static FLAGS: [AtomicU32; SIGNALS_MAX + 1] = [const { AtomicU32::new(0) }; SIGNALS_MAX + 1];

/// What to do on a signal, as the C library has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

impl Action {
    const fn new(handler: usize, flags: c_int) -> Self {
        Self { handler, mask: [0; 16], flags, restorer: 0 }
    }
}

/// Held while the actions of the kernel and what is noted of them here change together.
static ACTIONS: Spin = Spin::new();

/// Who installs handlers, as those see it that are called.
const fn installation(signal: c_int) -> u32 {
    channel::id(channel::HANDLERS, signal as u32)
}

fn is_ours(handler: usize) -> bool {
    handler == on_signal as *const () as usize || handler == on_fault as *const () as usize
}

/// What the system is to call where the program wants `handler`.
fn replacement(signal: c_int, handler: usize) -> usize {
    match handler {
        DEFAULT if FAULTS.contains(&signal) => on_fault as *const () as usize,
        DEFAULT | IGNORE | ERROR => handler,
        _ => on_signal as *const () as usize,
    }
}

/// What the program installed where the system says `handler`.
fn installed(signal: c_int, handler: usize) -> usize {
    if handler == on_fault as *const () as usize {
        DEFAULT
    } else if is_ours(handler) {
        INSTALLED[signal as usize].load(Ordering::Acquire)
    } else {
        handler
    }
}

const fn is_signal(signal: c_int) -> bool {
    signal > 0 && signal <= SIGNALS_MAX as c_int
}

/// Notes the faults of the program, from now on.
pub unsafe fn watch_faults() {
    for signal in FAULTS {
        let mut before = Action::new(DEFAULT, 0);
        if sigaction::real(signal, core::ptr::null(), &raw mut before) == 0
            && before.handler == DEFAULT
        {
            let flags = WITH_INFORMATION | ON_STACK;
            let handler = on_fault as *const () as usize;
            sigaction::real(signal, &Action { handler, flags, ..before }, core::ptr::null_mut());
        }
    }
}

/// Logs that code at `code` is about to install a handler for `signal`.
unsafe fn installing(code: u64, signal: c_int, handler: usize) {
    if !matches!(handler, DEFAULT | IGNORE)
        && let Some(entry) = log::enter(code)
    {
        let entry = entry.flushed();
        entry.log(Kind::Send, channel::address(installation(signal)));
    }
}

/// Stands before every handler of the program.
unsafe extern "C" fn on_signal(signal: c_int, information: usize, context: usize) {
    if !is_signal(signal) {
        return;
    }
    let thread = thread::current();
    let is_recorded = !thread.is_null() && thread != thread::unrecorded();
    if is_recorded && defers(thread, signal) {
        return defer(thread, signal, information as *const _, context as *mut _);
    }
    #[cfg(not(reweave_static))]
    if !is_recorded
        && !FAULTS.contains(&signal)
        && super::openmp::pass_on(signal, information as *const _, context as *mut _)
    {
        return;
    }
    let Some(handler) = take_handler(signal) else {
        return repeat(signal, information as *const _);
    };
    let call = if is_recorded { libraries::interrupted(thread) } else { None };
    if is_recorded && (*thread).depth == 0 {
        // Before anything else looks at what was written last.
        let was_pending = core::mem::take(&mut (*thread).pending) != 0;
        // The C library must not be taken for who calls.
        thread::set_caller(handler as u64);
        keeping_errno(|| {
            if let Some(entry) = log::enter(handler as u64) {
                begins(&entry, signal, was_pending);
            }
        });
    }
    let handler: unsafe extern "C" fn(c_int, usize, usize) = core::mem::transmute(handler);
    let before = is_recorded.then(|| interrupt(thread, signal));
    handler(signal, information, context);
    if let Some(before) = before {
        set_expectation(thread, before);
    }
    if let Some(call) = call {
        libraries::go_on(thread, call);
    }
    // What came in the last hook of the handler must not wait any longer: its end restores the signals
    // that were blocked before it.
    deliver_outside();
}

/// Whether `thread` is interrupted at an arbitrary place, asks for signals, and waits in a call.
type Expectation = [bool; 3];

unsafe fn set_expectation(thread: *mut Thread, [is_interrupted, asks, waits]: Expectation) {
    (*thread).is_interrupted = is_interrupted;
    (*thread).asks_for_signals = asks;
    (*thread).waits_in_call = waits;
}

/// The signals that a thread gets by its own writing: to a pipe that nobody reads, to a file that is too large.
const BY_WRITING: [c_int; 2] = [13, 25];

/// Notes that the handler of `signal` is about to run on `thread`, and says what is to be restored afterwards. A thread that
/// waits in a call, or that asked for the signal or for the fault, is not interrupted at an arbitrary place.
unsafe fn interrupt(thread: *mut Thread, signal: c_int) -> Expectation {
    let (was_interrupted, asks) = ((*thread).is_interrupted, (*thread).asks_for_signals);
    let waits = (*thread).waits_in_call;
    let is_expected = asks || waits || FAULTS.contains(&signal) || BY_WRITING.contains(&signal);
    set_expectation(thread, [was_interrupted || !is_expected, false, false]);
    [was_interrupted, asks, waits]
}

/// The handler of `signal`, which is about to run; nothing if it was for one signal only and another
/// thread took it.
unsafe fn take_handler(signal: c_int) -> Option<usize> {
    let place = signal as usize;
    let load = || {
        // In this order: who sees a handler sees its flags.
        let handler = INSTALLED[place].load(Ordering::Acquire);
        (handler, FLAGS[place].load(Ordering::Acquire) as c_int)
    };
    let (mut handler, flags) = load();
    if flags & ONCE != 0 {
        handler = ACTIONS.with(|| {
            let (handler, flags) = load();
            if handler != DEFAULT && flags & ONCE != 0 {
                uninstall(signal, flags);
            }
            handler
        });
    }
    (handler != DEFAULT).then_some(handler)
}

/// Leaves `signal` to the system from now on, unless its action is no longer ours; call it with the lock
/// held. The flags stay what the program asked for, as the kernel would leave them.
unsafe fn uninstall(signal: c_int, flags: c_int) {
    let mut action = Action::new(DEFAULT, 0);
    let result = sigaction::real(signal, core::ptr::null(), &raw mut action);
    if result != 0 || action.handler != on_signal as *const () as usize {
        return;
    }
    INSTALLED[signal as usize].store(DEFAULT, Ordering::Release);
    action.handler = replacement(signal, DEFAULT);
    action.flags = if is_ours(action.handler) {
        WITH_INFORMATION | ON_STACK
    } else {
        action.flags & !OUR_FLAGS | flags & OUR_FLAGS
    };
    sigaction::real(signal, &raw const action, core::ptr::null_mut());
}

/// Has the system do what it does with `signal`, whose handler is no longer installed.
unsafe fn repeat(signal: c_int, information: *const Information) {
    // Where an instruction failed, it fails again.
    if !FAULTS.contains(&signal) || (*information).code <= 0 {
        sys::send_to_self_with(signal as u32, &*information.cast());
    }
}

/// Whether a signal comes while the runtime is at work, so that nothing would be recorded of what its
/// handler does. A call that waits may wait for the handler, so it is not kept from that.
unsafe fn defers(thread: *const Thread, signal: c_int) -> bool {
    (*thread).depth != 0 && !FAULTS.contains(&signal) && !(*thread).deferred.is_off
}

/// The place of the blocked signals among the words of a context: behind the registers come a pointer
/// and eight words that are not used.
pub const BLOCKED_SIGNALS: usize = 5 + 23 + 1 + 8;

/// Keeps a signal until the runtime is left. Until then no other is let through.
unsafe fn defer(
    thread: *mut Thread,
    signal: c_int,
    information: *const [u64; 16],
    context: *mut u64,
) {
    // From here on no other interrupts this one. The return from the handler ends that.
    sys::block_signals();
    let blocked = context.add(BLOCKED_SIGNALS);
    let deferred = &mut (*thread).deferred;
    if deferred.signal == 0 {
        *deferred = Deferred {
            signal: signal as u32,
            is_off: false,
            blocked: *blocked,
            information: *information,
        };
    } else {
        // One that interrupted this handler of ours was faster, and is to be delivered first. What it
        // found blocked was blocked for the sake of this one, which is blocked until then.
        deferred.blocked &= *blocked;
        sys::send_to_self_with(signal as u32, &*information);
    }
    // The kernel ends a program whose fault is blocked.
    let faults = FAULTS.iter().fold(0, |set, fault| set | 1 << (fault - 1));
    *blocked |= !faults;
    (*thread).needs_safepoint.store(1, Ordering::Relaxed);
}

/// Lets the handler run whose signal had to wait, now that the runtime is left.
#[inline]
pub unsafe fn deliver_deferred(thread: *mut Thread) {
    if (*thread).deferred.signal != 0 {
        deliver(thread);
    }
}

/// The same for the running thread, where it is outside of the runtime: what follows saves, sets or
/// passes on the signals that it blocks.
pub unsafe fn deliver_outside() {
    let thread = thread::current();
    if !thread.is_null() && (*thread).depth == 0 {
        deliver_deferred(thread);
    }
}

/// The signals that the program has `thread` block, which really blocks `blocked`.
pub unsafe fn blocked_signals(thread: *const Thread, blocked: u64) -> u64 {
    if (*thread).deferred.signal == 0 { blocked } else { (*thread).deferred.blocked }
}

/// Makes a call that waits inside the runtime: no signal is deferred, and nothing of handlers recorded.
pub unsafe fn waiting_inside<R>(thread: *mut Thread, call: impl FnOnce() -> R) -> R {
    (*thread).deferred.is_off = true;
    compiler_fence(Ordering::SeqCst);
    deliver_deferred(thread);
    let result = call();
    compiler_fence(Ordering::SeqCst);
    (*thread).deferred.is_off = false;
    result
}

#[cold]
unsafe fn deliver(thread: *mut Thread) {
    let Deferred { signal, blocked, information, .. } = (*thread).deferred;
    (*thread).deferred.signal = 0;
    sys::send_to_self_with(signal, &information);
    // The kernel calls the handler before this returns.
    sys::set_signals(blocked);
}

/// Logs that a handler begins.
unsafe fn begins(entry: &Entry, signal: c_int, was_pending: bool) {
    if was_pending {
        log::forget_pending(entry.thread);
    }
    log_receive(entry, installation(signal), false);
    log_receive(entry, signal_channel(signal), false);
}

/// Information on a signal, as far as it is looked at.
#[repr(C)]
pub struct Information {
    signal: c_int,
    error: c_int,
    pub code: c_int,
}

/// The place of the instruction pointer among the words of a context: behind the flags, the link and
/// the stack come 23 registers, of which it is the seventeenth.
const INSTRUCTION_POINTER: usize = 5 + 16;

/// Notes that the program failed, and has the system end it.
unsafe extern "C" fn on_fault(signal: c_int, information: *const Information, context: *const u64) {
    let code = if context.is_null() { 0 } else { *context.add(INSTRUCTION_POINTER) };
    // An abort has its place in the code where it was asked for, not in the C library.
    let code = if signal == ABORT { 0 } else { code.wrapping_add(1) };
    process::note_fault(signal as u64, code);
    let action = Action::new(DEFAULT, 0);
    sigaction::real(signal, &raw const action, core::ptr::null_mut());
    // Where an instruction failed, it fails again; where somebody sent the signal, so do we.
    let is_sent = !information.is_null() && (*information).code <= 0;
    if is_sent {
        sys::send_to_self(signal);
    }
}

/// Notes that the program wants `wanted` for `signal`; says what the kernel is to have.
fn note_action(signal: c_int, wanted: Action) -> Action {
    let handler = replacement(signal, wanted.handler);
    let mut flags = wanted.flags;
    if handler == on_signal as *const () as usize {
        FLAGS[signal as usize].store(flags as u32, Ordering::Release);
        INSTALLED[signal as usize].store(wanted.handler, Ordering::Release);
        flags = flags & !OUR_FLAGS | WITH_INFORMATION;
    } else if is_ours(handler) {
        flags = WITH_INFORMATION | ON_STACK;
    }
    Action { handler, flags, ..wanted }
}

/// Installs `wanted`, if there is one; says what the program installed before, or nothing if it must not.
unsafe fn change_action(signal: c_int, wanted: Option<Action>) -> Option<Action> {
    ACTIONS.with(|| {
        let handler = INSTALLED[signal as usize].load(Ordering::Acquire);
        let flags = FLAGS[signal as usize].load(Ordering::Acquire) as c_int;
        let ours = wanted.map(|wanted| note_action(signal, wanted));
        let action = ours.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        let mut before = Action::new(DEFAULT, 0);
        if sigaction::real(signal, action, &raw mut before) != 0 {
            return None;
        }
        if before.handler == on_signal as *const () as usize {
            before.handler = handler;
            before.flags = before.flags & !OUR_FLAGS | flags & OUR_FLAGS;
        } else if is_ours(before.handler) {
            before.handler = DEFAULT;
            before.flags = 0;
        }
        Some(before)
    })
}

/// Installs `handler` with `flags`; says what was installed before.
unsafe fn install(signal: c_int, handler: usize, flags: c_int) -> usize {
    installing(thread::caller(), signal, handler);
    let before = change_action(signal, Some(Action::new(handler, flags)));
    before.map_or(ERROR, |before| before.handler)
}

/// Installs `handler` by `call`, which takes what the system is to call and answers what it called.
unsafe fn exchange(signal: c_int, handler: usize, call: impl FnOnce(usize) -> usize) -> usize {
    installing(thread::caller(), signal, handler);
    ACTIONS.with(|| {
        let before = INSTALLED[signal as usize].load(Ordering::Acquire);
        let ours = note_action(signal, Action::new(handler, 0));
        match call(ours.handler) {
            it if it == on_signal as *const () as usize => before,
            it => installed(signal, it),
        }
    })
}

/// In a child process: who changed an action in the parent is not here.
pub fn forget_owner() {
    ACTIONS.reset();
}

/// Makes a call that has a signal sent later.
unsafe fn arming<R>(entry: Entry, signal: c_int, call: impl FnOnce() -> R) -> R {
    let entry = entry.flushed();
    note_signal(&entry, signal);
    entry.receiving_signals(call)
}

/// `SIGALRM`, and what other clocks send.
const ALARMS: [c_int; 3] = [14, 26, 27];

/// A text of the program, at most so many bytes of it.
unsafe fn text(start: usize, length_max: usize) -> &'static [u8] {
    let mut length = 0;
    while start != 0 && length < length_max && *((start + length) as *const u8) != 0 {
        length += 1;
    }
    if start == 0 { &[] } else { core::slice::from_raw_parts(start as *const u8, length) }
}

interceptors! {
    fn sigaction(signal: c_int, action: *const Action, before: *mut Action) -> c_int {
        if !is_signal(signal) {
            return real(signal, action, before);
        }
        // What the runtime does for the first event calls intercepted functions, too.
        let code = thread::caller();
        if let Some(entry) = log::enter(code) {
            if !action.is_null() {
                log_range(&entry, Kind::ReadRange, action as usize, size_of::<Action>());
            }
            if !before.is_null() {
                log_range(&entry, Kind::WriteRange, before as usize, size_of::<Action>());
            }
        }
        let wanted = if action.is_null() { None } else { Some(*action) };
        if let Some(wanted) = wanted {
            installing(code, signal, wanted.handler);
        }
        let Some(answer) = change_action(signal, wanted) else { return -1 };
        if !before.is_null() {
            let Action { handler, mask, flags, restorer } = answer;
            // Of the signals the C library writes those that there are.
            ((*before).handler, (*before).mask[0]) = (handler, mask[0]);
            ((*before).flags, (*before).restorer) = (flags, restorer);
        }
        0
    }
    fn [signal bsd_signal ssignal](number: c_int, handler: usize) -> usize {
        if !is_signal(number) || handler == ERROR {
            return real(number, handler);
        }
        exchange(number, handler, |handler| real(number, handler))
    }
    fn [sysv_signal __sysv_signal](number: c_int, handler: usize) -> usize {
        if !is_signal(number) || handler == ERROR {
            return real(number, handler);
        }
        install(number, handler, ONCE | DOES_NOT_BLOCK_ITSELF | INTERRUPTS)
    }
    fn sigset(number: c_int, handler: usize) -> usize {
        const HOLD: usize = 2;
        deliver_outside();
        if !is_signal(number) || handler == ERROR {
            return real(number, handler);
        }
        if handler == HOLD {
            return installed(number, real(number, handler));
        }
        let before = install(number, handler, 0);
        if before == ERROR {
            return ERROR;
        }
        let only = 1 << (number - 1);
        if sys::unblock_signals(only) & only == 0 { before } else { HOLD }
    }
    fn raise(signal: c_int) -> c_int |entry, call| { arming(entry, signal, call) }
    fn killpg(group: c_int, signal: c_int) -> c_int |entry, call| { arming(entry, signal, call) }
    fn tgkill(group: c_int, task: c_int, signal: c_int) -> c_int |entry, call| { arming(entry, signal, call) }
    fn alarm(seconds: u32) -> u32 |entry, call| { arming(entry, ALARMS[0], call) }
    fn ualarm(first: u32, every: u32) -> u32 |entry, call| { arming(entry, ALARMS[0], call) }
    fn setitimer(which: c_int, value: usize, before: usize) -> c_int |entry, call| {
        const TIMER_BYTES: usize = 32;
        let signal = ALARMS.get(which as usize).copied().unwrap_or(ALARMS[0]);
        log_range(&entry, Kind::ReadRange, value, TIMER_BYTES);
        if before != 0 {
            log_range(&entry, Kind::WriteRange, before, TIMER_BYTES);
        }
        arming(entry, signal, call)
    }
    fn timer_create(clock: c_int, event: *const c_int, timer: usize) -> c_int |entry, call| {
        // The number of the signal is behind a value of eight bytes.
        let signal = if event.is_null() { ALARMS[0] } else { *event.add(2) };
        if is_signal(signal) {
            TIMER_SIGNALS.fetch_or(1 << (signal - 1), Ordering::Relaxed);
        }
        arming(entry, signal, call)
    }
    fn timer_settime(timer: usize, flags: c_int, value: usize, before: usize) -> c_int |entry, call| {
        // Which signal this timer sends is not looked up: it is one of these.
        let entry = entry.flushed();
        let signals = TIMER_SIGNALS.load(Ordering::Relaxed);
        for signal in (1..=SIGNALS_MAX as c_int).filter(|&signal| signals >> (signal - 1) & 1 == 1) {
            note_signal(&entry, signal);
        }
        note_timer_use(&entry, timer);
        entry.nonblocking(call)
    }
    fn timer_gettime(timer: usize, value: usize) -> c_int |entry, call| {
        const TIMER_BYTES: usize = 32;
        note_timer_use(&entry, timer);
        log_range(&entry, Kind::WriteRange, value, TIMER_BYTES);
        call()
    }
    fn timer_getoverrun(timer: usize) -> c_int |entry, call| {
        note_timer_use(&entry, timer);
        call()
    }
    fn timer_delete(timer: usize) -> c_int |entry, call| {
        note_handle(&entry, handle::TIMER, timer as u64, flag::OUT | flags_of_end(&entry));
        entry.nonblocking(call)
    }
    // Failed assertions: what they say is for the recorder, too.
    fn __assert_fail(assertion: usize, file: usize, line: u32, function: usize) -> () {
        let mut digits = [0; 10];
        let line_text = process::decimal(line, &mut digits);
        let texts = [
            text(file, 120), b":", line_text, b": ", text(function, 120), b": Assertion `",
            text(assertion, 200), b"' failed.",
        ];
        process::note_failure(ABORT as u64, thread::caller(), &texts);
        real(assertion, file, line, function);
    }
    fn abort() -> () {
        process::note_failure(ABORT as u64, thread::caller(), &[]);
        real();
    }
}

/// Code of the program is about to use `timer`.
unsafe fn note_timer_use(entry: &Entry, timer: usize) {
    if is_instrumented(entry.code) {
        note_handle(entry, handle::TIMER, timer as u64, flag::SHARED);
    }
}

/// The signals that timers send, a bit each.
static TIMER_SIGNALS: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);

const _: () = assert!(size_of::<Action>() == 152, "as the C library lays it out");
