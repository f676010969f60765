//! What threads hand each other through the kernel: pipes, sockets, counters, queues, signals.
//!
//! What is written to one end of a pipe orders its writer before whoever reads it from the other.
//! So each descriptor that the program makes leads to a channel ([`crate::wire::channel`]), both
//! ends of a pipe to the same; what the program was given from outside, such as its output, leads to
//! none, since nobody in it reads the other end. A call that hands something over is logged before
//! it is made and one that takes something after it, so that no order is missed. Connections by TCP
//! are told apart by their two addresses (`table`); all other sockets that were not made as a pair
//! share one channel, which orders more than it must and never less. What may go through another
//! process and come back by another way is in `children`, what is polled as a set in `sets`.
//!
//! The bytes that the kernel puts into buffers, and the addresses, lengths and descriptors that it
//! writes beside them, are logged as the program's own write, once it is known how much that was;
//! the bytes that it takes, as a read before the call. What the kernel reads to know what it is
//! asked for, and what it writes to the requests of `poll` and `select`, is not logged. A descriptor
//! that is ready is used without handing on the turn, so that what was seen is seen in its place,
//! unless the call may wait all the same.

use core::ffi::{c_int, c_long, c_uint};

use super::program::log_range;
use super::{doors, enter_or, inside, outside};
use crate::log::{Entry, More};
use crate::wire::{Kind, channel, flag};
use crate::{sys, turn};

pub(crate) mod children;
pub(crate) mod descriptors;
pub(crate) mod files;
pub(crate) mod formatted;
pub(crate) mod messages;
pub(crate) mod moving;
pub(crate) mod polling;
pub(crate) mod queues;
mod sets;
pub(crate) mod signals;
pub(crate) mod streams;
mod table;

use table::Channel;

const POLL_IN: u16 = 1;
const POLL_OUT: u16 = 4;

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
}

/// A part of memory that a call fills or takes.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Part {
    address: usize,
    length: usize,
}

unsafe fn parts<'a>(parts: *const Part, count: usize) -> &'a [Part] {
    const PARTS_MAX: usize = 1024;
    if parts.is_null() || count > PARTS_MAX {
        return &[];
    }
    core::slice::from_raw_parts(parts, count)
}

/// Logs that something is about to be handed to `channel`.
unsafe fn note_send(entry: &Entry, channel: Channel) {
    let Some(id) = channel.filter(|&id| channel::kind(id) != channel::SIGNAL_FILE) else { return };
    entry.log(Kind::Send, channel::address(id));
    // Asked after it was logged: who makes these so looks at the channels afterwards.
    if children::are_there() {
        entry.log(Kind::Send, channel::address(children::ALL));
    }
    if sets::is_any_full() {
        entry.log(Kind::Send, channel::address(sets::ANY));
    }
}

/// Logs that something was taken from `channel`, or only that it was looked at.
unsafe fn note_receive(entry: &Entry, channel: Channel, takes: bool) {
    let Some(id) = channel else { return };
    match channel::kind(id) {
        channel::SIGNAL_FILE => signals::each_of(id, |id| log_receive(entry, id, false)),
        channel::POLL => {
            sets::look(entry, id);
            log_receive(entry, id, takes);
        }
        _ => log_receive(entry, id, takes),
    }
    if children::are_there() {
        log_receive(entry, children::ALL, false);
    }
}

/// Logs one event that takes from the channel `id`, or looks at it.
unsafe fn log_receive(entry: &Entry, id: u32, takes: bool) {
    let flags = if takes { 0 } else { flag::TRY };
    entry.log_more(Kind::Receive, channel::address(id), More { flags, ..More::default() });
}

/// Logs what came of a call that took `result` bytes or messages from `channel`: something, the end,
/// or that there was nothing.
unsafe fn note_result(entry: &Entry, channel: Channel, result: isize) {
    const WOULD_WAIT: c_int = 11;
    if result >= 0 || *__errno_location() == WOULD_WAIT {
        note_receive(entry, channel, result > 0);
    }
}

/// Whether a call on `file` would not wait; `events` says for what.
unsafe fn is_ready(file: c_int, events: u16) -> bool {
    const POLL: usize = 7;
    let mut request = [file as u32, u32::from(events)];
    sys::call(POLL, [&raw mut request as usize, 1, 0, 0, 0, 0]) == 1
}

/// Makes a call on `file` that waits until it is ready for `events`.
unsafe fn when_ready<R>(entry: &Entry, file: c_int, events: u16, call: impl FnOnce() -> R) -> R {
    if turn::is_serial() && is_ready(file, events) {
        inside(entry.thread, call)
    } else {
        outside(entry.thread, call)
    }
}

/// Whether `file` never keeps who writes to it waiting, however much that is.
unsafe fn never_waits(file: c_int) -> bool {
    const FCNTL: usize = 72;
    const GET_FLAGS: usize = 3;
    const NON_BLOCKING: isize = 0o4000;
    let flags = sys::call(FCNTL, [file as usize, GET_FLAGS, 0, 0, 0, 0]);
    (flags >= 0 && flags & NON_BLOCKING != 0)
        || table::Status::new(file).is_some_and(|status| status.is_regular())
}

/// Logs that the first `length` bytes of `parts` were written.
unsafe fn note_bytes(entry: &Entry, parts: &[Part], length: usize) {
    let mut left = length;
    for part in parts {
        let filled = left.min(part.length);
        log_range(entry, Kind::WriteRange, part.address, filled);
        left -= filled;
    }
}

/// Logs that a call filled `parts` from `channel`, as its `result` says.
unsafe fn note_filled(entry: &Entry, channel: Channel, parts: &[Part], result: isize) {
    let length = usize::try_from(result).unwrap_or(0);
    let is_signals = |id: &u32| channel::kind(*id) == channel::SIGNAL_FILE;
    match (channel.filter(is_signals), parts) {
        (Some(_), &[part, ..]) if length > 0 => {
            signals::note_read(entry, part.address, length.min(part.length));
        }
        _ => note_result(entry, channel, result),
    }
    note_bytes(entry, parts, length);
}

/// Makes a call that fills `parts` with what comes from `file` and says how many bytes it filled.
unsafe fn filling(
    entry: &Entry,
    file: c_int,
    parts: &[Part],
    call: impl FnOnce() -> isize,
) -> isize {
    let channel = table::of(file);
    let result = when_ready(entry, file, POLL_IN, call);
    note_filled(entry, channel, parts, result);
    result
}

/// Makes a call that hands `parts` to `file`.
unsafe fn taking(
    entry: &Entry,
    file: c_int,
    parts: &[Part],
    call: impl FnOnce() -> isize,
) -> isize {
    /// What is ready to be written to takes this much without a wait.
    const AT_ONCE_MAX: usize = 4096;
    let mut length = 0_usize;
    for part in parts {
        log_range(entry, Kind::ReadRange, part.address, part.length);
        length = length.saturating_add(part.length);
    }
    note_send(entry, table::of(file));
    if length <= AT_ONCE_MAX || (turn::is_serial() && never_waits(file)) {
        when_ready(entry, file, POLL_OUT, call)
    } else {
        outside(entry.thread, call)
    }
}

doors! {
    fn read(file: c_int, address: usize, length: usize) -> isize {
        let entry = enter_or!(real::read(file, address, length));
        filling(&entry, file, &[Part { address, length }], || real::read(file, address, length))
    }

    fn __read_chk(file: c_int, address: usize, length: usize, room: usize) -> isize {
        let call = || real::__read_chk(file, address, length, room);
        let entry = enter_or!(call());
        filling(&entry, file, &[Part { address, length }], call)
    }

    fn readv(file: c_int, list: *const Part, count: c_int) -> isize {
        let entry = enter_or!(real::readv(file, list, count));
        let parts = parts(list, usize::try_from(count).unwrap_or(0));
        filling(&entry, file, parts, || real::readv(file, list, count))
    }

    fn pread(file: c_int, address: usize, length: usize, offset: c_long) -> isize {
        let call = || real::pread(file, address, length, offset);
        let entry = enter_or!(call());
        filling(&entry, file, &[Part { address, length }], call)
    }

    fn pread64(file: c_int, address: usize, length: usize, offset: c_long) -> isize {
        let call = || real::pread64(file, address, length, offset);
        let entry = enter_or!(call());
        filling(&entry, file, &[Part { address, length }], call)
    }

    fn __pread_chk(
        file: c_int, address: usize, length: usize, offset: c_long, room: usize,
    ) -> isize {
        let call = || real::__pread_chk(file, address, length, offset, room);
        let entry = enter_or!(call());
        filling(&entry, file, &[Part { address, length }], call)
    }

    fn __pread64_chk(
        file: c_int, address: usize, length: usize, offset: c_long, room: usize,
    ) -> isize {
        let call = || real::__pread64_chk(file, address, length, offset, room);
        let entry = enter_or!(call());
        filling(&entry, file, &[Part { address, length }], call)
    }

    fn write(file: c_int, address: usize, length: usize) -> isize {
        let entry = enter_or!(real::write(file, address, length));
        taking(&entry, file, &[Part { address, length }], || real::write(file, address, length))
    }

    fn writev(file: c_int, list: *const Part, count: c_int) -> isize {
        let entry = enter_or!(real::writev(file, list, count));
        let parts = parts(list, usize::try_from(count).unwrap_or(0));
        taking(&entry, file, parts, || real::writev(file, list, count))
    }

    fn pwrite(file: c_int, address: usize, length: usize, offset: c_long) -> isize {
        let call = || real::pwrite(file, address, length, offset);
        let entry = enter_or!(call());
        taking(&entry, file, &[Part { address, length }], call)
    }

    fn pwrite64(file: c_int, address: usize, length: usize, offset: c_long) -> isize {
        let call = || real::pwrite64(file, address, length, offset);
        let entry = enter_or!(call());
        taking(&entry, file, &[Part { address, length }], call)
    }
}
