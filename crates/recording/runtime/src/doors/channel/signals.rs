//! Signals that threads wait for, or read from a descriptor.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::*;

/// The most descriptors of signals of which it is known what they wait for; others wait for all.
const FILES_MAX: usize = 64;
const EVERY: u64 = u64::MAX;

static MASKS: [AtomicU64; FILES_MAX] = [const { AtomicU64::new(0) }; FILES_MAX];
static MADE: AtomicU32 = AtomicU32::new(0);

fn signal_channel(signal: c_int) -> u32 {
    channel::id(channel::SIGNAL, signal as u32)
}

/// Calls `visit` with the channels of the signals for which the descriptor with channel `id` waits.
pub(super) fn each_of(id: u32, mut visit: impl FnMut(u32)) {
    let mask = MASKS.get(channel::number(id) as usize);
    let mask = mask.map_or(EVERY, |mask| mask.load(Ordering::Relaxed));
    for bit in 0..u64::BITS {
        if mask >> bit & 1 == 1 {
            visit(signal_channel(bit as c_int + 1));
        }
    }
}

/// Logs what was read from a descriptor of signals: `length` bytes at `address`.
pub(super) unsafe fn note_read(entry: &Entry, address: usize, length: usize) {
    const SIGNAL_BYTES: usize = 128;
    for place in (0..length / SIGNAL_BYTES).map(|number| address + number * SIGNAL_BYTES) {
        note_receive(entry, Some(signal_channel(*(place as *const c_int))), true);
    }
}

/// Makes a call that sends `signal`. A handler that runs meanwhile is recorded.
unsafe fn sending(entry: Entry, signal: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let entry = entry.flushed();
    note_send(&entry, Some(signal_channel(signal)));
    inside(entry.thread, call)
}

/// Makes a call that waits for a signal and answers with its number.
unsafe fn awaiting(entry: &Entry, information: usize, call: impl FnOnce() -> c_int) -> c_int {
    const INFORMATION_BYTES: usize = 128;
    let result = outside(entry.thread, call);
    if result > 0 {
        note_receive(entry, Some(signal_channel(result)), true);
        let length = if information == 0 { 0 } else { INFORMATION_BYTES };
        log_range(entry, Kind::WriteRange, information, length);
    }
    result
}

doors! {
    fn kill(process: c_int, signal: c_int) -> c_int {
        let entry = enter_or!(real::kill(process, signal));
        sending(entry, signal, || real::kill(process, signal))
    }

    fn pthread_kill(thread: u64, signal: c_int) -> c_int {
        let entry = enter_or!(real::pthread_kill(thread, signal));
        sending(entry, signal, || real::pthread_kill(thread, signal))
    }

    fn sigqueue(process: c_int, signal: c_int, value: usize) -> c_int {
        let entry = enter_or!(real::sigqueue(process, signal, value));
        sending(entry, signal, || real::sigqueue(process, signal, value))
    }

    fn pthread_sigqueue(thread: u64, signal: c_int, value: usize) -> c_int {
        let entry = enter_or!(real::pthread_sigqueue(thread, signal, value));
        sending(entry, signal, || real::pthread_sigqueue(thread, signal, value))
    }

    fn sigwait(set: usize, signal: *mut c_int) -> c_int {
        let entry = enter_or!(real::sigwait(set, signal));
        let result = outside(entry.thread, || real::sigwait(set, signal));
        if result == 0 && !signal.is_null() {
            note_receive(&entry, Some(signal_channel(*signal)), true);
            log_range(&entry, Kind::WriteRange, signal as usize, size_of::<c_int>());
        }
        result
    }

    fn sigwaitinfo(set: usize, information: usize) -> c_int {
        let entry = enter_or!(real::sigwaitinfo(set, information));
        awaiting(&entry, information, || real::sigwaitinfo(set, information))
    }

    fn sigtimedwait(set: usize, information: usize, timeout: usize) -> c_int {
        let call = || real::sigtimedwait(set, information, timeout);
        let entry = enter_or!(call());
        awaiting(&entry, information, call)
    }

    fn signalfd(file: c_int, set: *const u64, flags: c_int) -> c_int {
        let entry = enter_or!(real::signalfd(file, set, flags));
        let result = inside(entry.thread, || real::signalfd(file, set, flags));
        if result >= 0 {
            let id = match table::of(file) {
                Some(id) if channel::kind(id) == channel::SIGNAL_FILE => id,
                _ => {
                    let made = MADE.fetch_add(1, Ordering::Relaxed);
                    channel::id(channel::SIGNAL_FILE, made)
                }
            };
            if let Some(mask) = MASKS.get(channel::number(id) as usize) {
                // What it waited for before may be on its way.
                mask.fetch_or(*set, Ordering::Relaxed);
            }
            table::set(result, id);
        }
        result
    }
}
