//! What threads hand each other beside files: through other processes, message queues, semaphore
//! sets, file locks and signals.
//!
//! Such a process has what the program has: it may take from one pipe and give to another, and then
//! whoever takes from the second comes after whoever gave to the first. So from the first start on,
//! all that is handed over is also handed to one channel for all processes, and all that is taken
//! was also looked for there. What was in a channel before is looked at by the thread that starts
//! the process.
//!
//! A child by `vfork` shares our memory until it becomes another program: what it does to memory is
//! rightly logged as its parent's doing, but its descriptors are its own.

use core::ffi::{c_int, c_long, c_uint};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::channels;
use super::io::{closing, log_receive, note_open, note_receive, note_result, note_send};
use super::program::log_range;
use super::streams::file_of;
use super::{interceptors, note_caller, real_address, threads};
use crate::log::{self, Entry};
use crate::wire::{Kind, channel};
use crate::{process, sys, thread};

static HAS_CHILD_PROCESSES: AtomicBool = AtomicBool::new(false);

static HAD_VFORK_CHILD: AtomicBool = AtomicBool::new(false);

/// The channel for all processes.
pub const ALL_PROCESSES: u32 = channel::id(channel::PROCESSES, 0);

/// Whether the program has started a process.
pub fn has_child_processes() -> bool {
    HAS_CHILD_PROCESSES.load(Ordering::SeqCst)
}

/// Whether we run in a child that shares the program's memory.
pub fn is_vfork_child() -> bool {
    let is_foreign = |header: &crate::shared::Header| {
        header.pid.load(Ordering::Relaxed) != u64::from(sys::getpid())
    };
    HAD_VFORK_CHILD.load(Ordering::Relaxed) && process::header().is_some_and(is_foreign)
}

/// A process is about to be started, which has all that is open and all that is in it.
pub unsafe fn about_to_start(entry: &Entry) {
    // Before the looks: who hands something over logs it and then asks.
    HAS_CHILD_PROCESSES.store(true, Ordering::SeqCst);
    let look = |id| {
        if channel::kind(id) != channel::SIGNAL_FILE {
            log_receive(entry, id, false);
        }
    };
    channels::each(look);
    each_queue(look);
    entry.log(Kind::Send, channel::address(ALL_PROCESSES));
}

/// Called by the C library before it makes a process that is a copy of this one.
pub unsafe extern "C" fn before_fork() {
    HAS_CHILD_PROCESSES.store(true, Ordering::SeqCst);
    if let Some(header) = process::header() {
        header.forks.fetch_add(1, Ordering::Relaxed);
    }
    if let Some(entry) = log::enter(thread::caller()) {
        about_to_start(&entry.flushed());
    }
}

/// Logs that the thread saw what another process did.
unsafe fn saw(entry: &Entry) {
    if has_child_processes() {
        log_receive(entry, ALL_PROCESSES, false);
    }
}

/// Makes a call that waits for a process, which writes how that ended to `status`.
unsafe fn awaiting_process(entry: &Entry, status: usize, call: impl FnOnce() -> c_int) -> c_int {
    let result = entry.blocking(call);
    saw(entry);
    if result > 0 && status != 0 {
        log_range(entry, Kind::WriteRange, status, size_of::<c_int>());
    }
    result
}

/// Starts a process by `call`, which says its number at `process`.
unsafe fn spawning(entry: &Entry, process: usize, call: impl FnOnce() -> c_int) -> c_int {
    about_to_start(entry);
    let result = entry.nonblocking(call);
    if result == 0 && process != 0 {
        log_range(entry, Kind::WriteRange, process, size_of::<c_int>());
    }
    result
}

/// The interceptor that is not made as the others are.
#[cfg(test)]
pub const VFORK: &[&str] = &["vfork"];

/// `vfork` returns twice to its caller, so it is not called but jumped to.
#[unsafe(naked)]
#[cfg_attr(all(reweave_export, not(reweave_static)), unsafe(export_name = "vfork"))]
#[cfg_attr(all(reweave_export, reweave_static), unsafe(export_name = "__wrap_vfork"))]
unsafe extern "C" fn vfork() -> c_int {
    core::arch::naked_asm!(
        note_caller!(),
        "sub rsp, 8",
        "call {}",
        "add rsp, 8",
        "jmp rax",
        sym before_vfork,
    )
}

/// Notes that a child will share our memory, and says where the real function is.
unsafe extern "C" fn before_vfork() -> usize {
    if let Some(entry) = log::enter(thread::caller()) {
        about_to_start(&entry.flushed());
        HAD_VFORK_CHILD.store(true, Ordering::Relaxed);
    }
    real_address!(vfork)
}

// Queues of messages, sets of semaphores and locks of files: what has no descriptor, or none that
// is read and written.

/// The most that are known; the others are one.
const KNOWN_MAX: usize = 64;

/// 1 + the channels that were used.
static KNOWN: [AtomicU32; KNOWN_MAX] = [const { AtomicU32::new(0) }; KNOWN_MAX];

/// The channel `number` of `kind`. Those for which there is no room are one.
fn known(kind: u32, number: u32) -> u32 {
    const OTHERS: u32 = channel::id(channel::QUEUE, u32::MAX);
    let id = channel::id(kind, number);
    let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
    for place in &KNOWN[..KNOWN_MAX - 1] {
        match place.compare_exchange(0, id + 1, success, failure) {
            Ok(_) => return id,
            Err(taken) if taken == id + 1 => return id,
            Err(_) => {}
        }
    }
    KNOWN[KNOWN_MAX - 1].store(OTHERS + 1, Ordering::Release);
    OTHERS
}

/// Calls `visit` with every channel that was used.
pub fn each_queue(mut visit: impl FnMut(u32)) {
    for place in &KNOWN {
        if let Some(id) = place.load(Ordering::Acquire).checked_sub(1) {
            visit(id);
        }
    }
}

/// The channel for all locks of files.
pub fn file_locks() -> u32 {
    known(channel::LOCKS, 0)
}

/// The channel for all queues that have names.
fn named_queues() -> u32 {
    known(channel::NAMED_QUEUES, 0)
}

/// Makes a call that may give, take or both.
pub unsafe fn exchanging(entry: &Entry, id: u32, call: impl FnOnce() -> c_int) -> c_int {
    note_send(entry, Some(id));
    let result = entry.blocking(call);
    if result >= 0 {
        note_receive(entry, Some(id), true);
    }
    result
}

/// A queue with a name was opened, or not.
unsafe fn opened(queue: c_int) -> c_int {
    if queue >= 0 {
        channels::set(queue, named_queues());
    }
    queue
}

/// Makes a call that puts `length` bytes from `message` into a queue with a name.
unsafe fn putting(
    entry: &Entry,
    message: usize,
    length: usize,
    call: impl FnOnce() -> c_int,
) -> c_int {
    log_range(entry, Kind::ReadRange, message, length);
    note_send(entry, Some(named_queues()));
    entry.blocking(call)
}

/// Makes a call that takes a message, and its priority, from a queue with a name.
unsafe fn getting(
    entry: &Entry,
    message: usize,
    priority: usize,
    call: impl FnOnce() -> isize,
) -> isize {
    let result = entry.blocking(call);
    // A message may be empty.
    match usize::try_from(result) {
        Ok(length) => {
            note_receive(entry, Some(named_queues()), true);
            log_range(entry, Kind::WriteRange, message, length);
            if priority != 0 {
                log_range(entry, Kind::WriteRange, priority, size_of::<c_uint>());
            }
        }
        Err(_) => note_result(entry, Some(named_queues()), -1),
    }
    result
}

// Signals that threads wait for, or read from a descriptor.

/// The most descriptors of signals of which it is known what they wait for; others wait for all.
const SIGNAL_FILES_MAX: usize = 64;

const EVERY: u64 = u64::MAX;

static MASKS: [AtomicU64; SIGNAL_FILES_MAX] = [const { AtomicU64::new(0) }; SIGNAL_FILES_MAX];

static SIGNAL_FILES_MADE: AtomicU32 = AtomicU32::new(0);

/// Logs that `signal` is about to be sent, now or later.
pub unsafe fn note_signal(entry: &Entry, signal: c_int) {
    note_send(entry, Some(signal_channel(signal)));
}

pub fn signal_channel(signal: c_int) -> u32 {
    channel::id(channel::SIGNAL, signal as u32)
}

/// Calls `visit` with the channels of the signals for which the descriptor with channel `id` waits.
pub fn each_signal_of(id: u32, mut visit: impl FnMut(u32)) {
    let mask = MASKS.get(channel::number(id) as usize);
    let mask = mask.map_or(EVERY, |mask| mask.load(Ordering::Relaxed));
    for bit in 0..u64::BITS {
        if mask >> bit & 1 == 1 {
            visit(signal_channel(bit as c_int + 1));
        }
    }
}

/// Logs what was read from a descriptor of signals: `length` bytes at `address`.
pub unsafe fn note_signals_read(entry: &Entry, address: usize, length: usize) {
    const SIGNAL_BYTES: usize = 128;
    for place in (0..length / SIGNAL_BYTES).map(|number| address + number * SIGNAL_BYTES) {
        note_receive(entry, Some(signal_channel(*(place as *const c_int))), true);
    }
}

/// Makes a call that sends `signal`. A handler that runs meanwhile is recorded.
unsafe fn sending(entry: Entry, signal: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let entry = entry.flushed();
    note_signal(&entry, signal);
    entry.receiving_signals(call)
}

/// Makes a call that waits for a signal and answers with its number.
unsafe fn awaiting(entry: &Entry, information: usize, call: impl FnOnce() -> c_int) -> c_int {
    const INFORMATION_BYTES: usize = 128;
    let result = entry.blocking(call);
    if result > 0 {
        note_receive(entry, Some(signal_channel(result)), true);
        let length = if information == 0 { 0 } else { INFORMATION_BYTES };
        log_range(entry, Kind::WriteRange, information, length);
    }
    result
}

interceptors! {
    // Processes that the program starts.
    fn wait(status: usize) -> c_int |entry, call| { awaiting_process(&entry, status, call) }
    fn waitpid(process: c_int, status: usize, options: c_int) -> c_int |entry, call| {
        awaiting_process(&entry, status, call)
    }
    fn wait3(status: usize, options: c_int, usage: usize) -> c_int |entry, call| {
        awaiting_process(&entry, status, call)
    }
    fn wait4(process: c_int, status: usize, options: c_int, usage: usize) -> c_int |entry, call| {
        awaiting_process(&entry, status, call)
    }
    fn waitid(kind: c_int, id: c_uint, information: usize, options: c_int) -> c_int |entry, call| {
        let result = entry.blocking(call);
        saw(&entry);
        result
    }
    fn system(command: usize) -> c_int |entry, call| {
        about_to_start(&entry);
        let result = entry.blocking(call);
        saw(&entry);
        result
    }
    fn [posix_spawn posix_spawnp](
        process: usize, path: usize, actions: usize, attributes: usize, words: usize,
        environment: usize,
    ) -> c_int |entry, call| {
        spawning(&entry, process, call)
    }
    fn popen(command: usize, mode: usize) -> usize |entry, call| {
        about_to_start(&entry);
        let stream = entry.nonblocking(call);
        if stream != 0 {
            channels::set_pipe(note_open(&entry, file_of(stream)));
        }
        stream
    }
    fn pclose(stream: usize) -> c_int |entry, call| {
        let result = closing(&entry, file_of(stream), || entry.blocking(call));
        saw(&entry);
        result
    }

    // Message queues, semaphore sets, file locks.
    fn msgsnd(queue: c_int, message: usize, size: usize, flags: c_int) -> c_int |entry, call| {
        // The kind of the message stands before it.
        log_range(&entry, Kind::ReadRange, message, size_of::<c_long>() + size);
        note_send(&entry, Some(known(channel::QUEUE, queue as u32)));
        entry.blocking(call)
    }
    fn msgrcv(queue: c_int, message: usize, size: usize, kind: c_long, flags: c_int) -> isize |entry, call| {
        let result = entry.blocking(call);
        if result >= 0 {
            note_receive(&entry, Some(known(channel::QUEUE, queue as u32)), true);
        }
        let filled = usize::try_from(result).map_or(0, |length| length + size_of::<c_long>());
        log_range(&entry, Kind::WriteRange, message, filled);
        result
    }
    fn mq_open(name: usize, flags: c_int, mode: c_uint, attributes: usize) -> c_int |entry, call| {
        opened(note_open(&entry, entry.nonblocking(call)))
    }
    fn __mq_open_2(name: usize, flags: c_int) -> c_int |entry, call| { opened(note_open(&entry, entry.nonblocking(call))) }
    fn mq_close(queue: c_int) -> c_int |entry, call| { closing(&entry, queue, || entry.nonblocking(call)) }
    fn mq_send(queue: c_int, message: usize, length: usize, priority: c_uint) -> c_int |entry, call| {
        putting(&entry, message, length, call)
    }
    fn mq_timedsend(
        queue: c_int, message: usize, length: usize, priority: c_uint, until: usize,
    ) -> c_int |entry, call| {
        putting(&entry, message, length, call)
    }
    fn mq_receive(queue: c_int, message: usize, length: usize, priority: usize) -> isize |entry, call| {
        getting(&entry, message, priority, call)
    }
    fn mq_timedreceive(
        queue: c_int, message: usize, length: usize, priority: usize, until: usize,
    ) -> isize |entry, call| {
        getting(&entry, message, priority, call)
    }
    fn semop(set: c_int, operations: usize, count: usize) -> c_int |entry, call| {
        exchanging(&entry, known(channel::SEMAPHORES, set as u32), call)
    }
    fn semtimedop(set: c_int, operations: usize, count: usize, timeout: usize) -> c_int |entry, call| {
        exchanging(&entry, known(channel::SEMAPHORES, set as u32), call)
    }
    fn flock(file: c_int, operation: c_int) -> c_int |entry, call| { exchanging(&entry, file_locks(), call) }

    // Signals that threads wait for, or read from a descriptor.
    fn kill(process: c_int, signal: c_int) -> c_int |entry, call| { sending(entry, signal, call) }
    fn pthread_kill(thread: u64, signal: c_int) -> c_int |entry, call| {
        threads::use_handle(&entry, thread, 0);
        sending(entry, signal, call)
    }
    fn sigqueue(process: c_int, signal: c_int, value: usize) -> c_int |entry, call| {
        sending(entry, signal, call)
    }
    fn pthread_sigqueue(thread: u64, signal: c_int, value: usize) -> c_int |entry, call| {
        threads::use_handle(&entry, thread, 0);
        sending(entry, signal, call)
    }
    fn sigwait(set: usize, signal: *mut c_int) -> c_int |entry, call| {
        let result = entry.blocking(call);
        if result == 0 && !signal.is_null() {
            note_receive(&entry, Some(signal_channel(*signal)), true);
            log_range(&entry, Kind::WriteRange, signal as usize, size_of::<c_int>());
        }
        result
    }
    fn sigwaitinfo(set: usize, information: usize) -> c_int |entry, call| {
        awaiting(&entry, information, call)
    }
    fn sigtimedwait(set: usize, information: usize, timeout: usize) -> c_int |entry, call| {
        awaiting(&entry, information, call)
    }
    fn signalfd(file: c_int, set: *const u64, flags: c_int) -> c_int |entry, call| {
        let result = entry.nonblocking(call);
        if file < 0 {
            note_open(&entry, result);
        }
        if result >= 0 {
            let id = match channels::of(file) {
                Some(id) if channel::kind(id) == channel::SIGNAL_FILE => id,
                _ => {
                    let made = SIGNAL_FILES_MADE.fetch_add(1, Ordering::Relaxed);
                    channel::id(channel::SIGNAL_FILE, made)
                }
            };
            if let Some(mask) = MASKS.get(channel::number(id) as usize) {
                // What it waited for before may be on its way.
                mask.fetch_or(*set, Ordering::Relaxed);
            }
            channels::set(result, id);
        }
        result
    }
}
