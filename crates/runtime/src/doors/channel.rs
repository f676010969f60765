//! What threads hand each other through the kernel: pipes, sockets, counters, queues, signals.
//!
//! What is written to one end of a pipe orders its writer before whoever reads it from the other.
//! So each descriptor that the program makes leads to a channel ([`crate::wire::channel`]), both
//! ends of a pipe to the same; what the program was given from outside, such as its output, leads to
//! none, since nobody in it reads the other end. A call that hands something over is logged before
//! it is made and one that takes something after it, so that no order is missed. Sockets that are
//! connected to each other by address are told apart by their two addresses; those that cannot be
//! told apart share one channel, which orders more than it must and never less.
//!
//! What the kernel writes to memory is logged as the program's own write, once it is known how much
//! that was; what it reads, as a read before the call. A descriptor that is ready is used without
//! handing on the turn, so that what was seen is seen in its place.

use core::ffi::{c_int, c_long, c_uint};

use super::program::log_range;
use super::{doors, enter_or, inside, outside};
use crate::log::{Entry, More};
use crate::wire::{Kind, channel, flag};
use crate::{sys, turn};

pub(crate) mod descriptors;
pub(crate) mod polling;
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

/// A message with its parts, as the kernel takes it.
#[repr(C)]
struct Message {
    name: usize,
    name_length: c_uint,
    parts: *const Part,
    parts_count: usize,
}

/// The parts of `message`.
unsafe fn parts_of<'a>(message: usize) -> &'a [Part] {
    let message = message as *const Message;
    if message.is_null() {
        return &[];
    }
    parts((*message).parts, (*message).parts_count)
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
    if let Some(channel) = channel {
        entry.log(Kind::Send, channel::address(channel));
    }
}

/// Logs that something was taken from `channel`, or only that it was looked at.
unsafe fn note_receive(entry: &Entry, channel: Channel, takes: bool) {
    if let Some(channel) = channel {
        let flags = if takes { 0 } else { flag::TRY };
        entry.log_more(Kind::Receive, channel::address(channel), More { flags, ..More::default() });
    }
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

/// Makes a call that fills `parts` with what comes from `file` and says how many bytes it filled.
unsafe fn filling(
    entry: &Entry,
    file: c_int,
    parts: &[Part],
    call: impl FnOnce() -> isize,
) -> isize {
    let channel = table::of(file);
    let result = when_ready(entry, file, POLL_IN, call);
    note_result(entry, channel, result);
    let mut left = usize::try_from(result).unwrap_or(0);
    for part in parts {
        let filled = left.min(part.length);
        log_range(entry, Kind::WriteRange, part.address, filled);
        left -= filled;
    }
    result
}

/// Makes a call that hands `parts` to `file`.
unsafe fn taking(
    entry: &Entry,
    file: c_int,
    parts: &[Part],
    call: impl FnOnce() -> isize,
) -> isize {
    for part in parts {
        log_range(entry, Kind::ReadRange, part.address, part.length);
    }
    note_send(entry, table::of(file));
    // Whoever waits for a counter in a set of descriptors may never read it.
    note_send(entry, table::poll_of(file));
    when_ready(entry, file, POLL_OUT, call)
}

/// Makes a call on a channel without a descriptor, which may give, take or both.
unsafe fn exchanging(entry: &Entry, id: u32, call: impl FnOnce() -> c_int) -> c_int {
    note_send(entry, Some(id));
    let result = outside(entry.thread, call);
    if result >= 0 {
        note_receive(entry, Some(id), true);
    }
    result
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

    fn recv(socket: c_int, address: usize, length: usize, flags: c_int) -> isize {
        let call = || real::recv(socket, address, length, flags);
        let entry = enter_or!(call());
        filling(&entry, socket, &[Part { address, length }], call)
    }

    fn recvfrom(
        socket: c_int, address: usize, length: usize, flags: c_int, from: usize,
        from_length: usize,
    ) -> isize {
        let call = || real::recvfrom(socket, address, length, flags, from, from_length);
        let entry = enter_or!(call());
        filling(&entry, socket, &[Part { address, length }], call)
    }

    fn recvmsg(socket: c_int, message: usize, flags: c_int) -> isize {
        let entry = enter_or!(real::recvmsg(socket, message, flags));
        filling(&entry, socket, parts_of(message), || real::recvmsg(socket, message, flags))
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

    fn send(socket: c_int, address: usize, length: usize, flags: c_int) -> isize {
        let call = || real::send(socket, address, length, flags);
        let entry = enter_or!(call());
        taking(&entry, socket, &[Part { address, length }], call)
    }

    fn sendto(
        socket: c_int, address: usize, length: usize, flags: c_int, to: usize,
        to_length: c_uint,
    ) -> isize {
        let call = || real::sendto(socket, address, length, flags, to, to_length);
        let entry = enter_or!(call());
        taking(&entry, socket, &[Part { address, length }], call)
    }

    fn sendmsg(socket: c_int, message: usize, flags: c_int) -> isize {
        let entry = enter_or!(real::sendmsg(socket, message, flags));
        taking(&entry, socket, parts_of(message), || real::sendmsg(socket, message, flags))
    }

    fn msgsnd(queue: c_int, message: usize, size: usize, flags: c_int) -> c_int {
        let entry = enter_or!(real::msgsnd(queue, message, size, flags));
        note_send(&entry, Some(channel::id(channel::QUEUE, queue as u32)));
        outside(entry.thread, || real::msgsnd(queue, message, size, flags))
    }

    fn msgrcv(
        queue: c_int, message: usize, size: usize, kind: c_long, flags: c_int,
    ) -> isize {
        let call = || real::msgrcv(queue, message, size, kind, flags);
        let entry = enter_or!(call());
        let result = outside(entry.thread, call);
        // The kind of the message stands before it.
        let filled = usize::try_from(result).map_or(0, |length| length + size_of::<c_long>());
        log_range(&entry, Kind::WriteRange, message, filled);
        if result >= 0 {
            note_receive(&entry, Some(channel::id(channel::QUEUE, queue as u32)), true);
        }
        result
    }

    fn semop(set: c_int, operations: usize, count: usize) -> c_int {
        let entry = enter_or!(real::semop(set, operations, count));
        let id = channel::id(channel::SEMAPHORES, set as u32);
        exchanging(&entry, id, || real::semop(set, operations, count))
    }

    fn semtimedop(set: c_int, operations: usize, count: usize, timeout: usize) -> c_int {
        let entry = enter_or!(real::semtimedop(set, operations, count, timeout));
        let id = channel::id(channel::SEMAPHORES, set as u32);
        exchanging(&entry, id, || real::semtimedop(set, operations, count, timeout))
    }

    fn flock(file: c_int, operation: c_int) -> c_int {
        let entry = enter_or!(real::flock(file, operation));
        exchanging(&entry, channel::id(channel::LOCKS, 0), || real::flock(file, operation))
    }

    fn kill(process: c_int, signal: c_int) -> c_int {
        let entry = enter_or!(real::kill(process, signal)).flushed();
        note_send(&entry, Some(channel::id(channel::SIGNAL, signal as u32)));
        inside(entry.thread, || real::kill(process, signal))
    }

    fn pthread_kill(thread: u64, signal: c_int) -> c_int {
        let entry = enter_or!(real::pthread_kill(thread, signal)).flushed();
        note_send(&entry, Some(channel::id(channel::SIGNAL, signal as u32)));
        inside(entry.thread, || real::pthread_kill(thread, signal))
    }

    fn sigwait(set: usize, signal: *mut c_int) -> c_int {
        let entry = enter_or!(real::sigwait(set, signal));
        let result = outside(entry.thread, || real::sigwait(set, signal));
        if result == 0 && !signal.is_null() {
            log_range(&entry, Kind::WriteRange, signal as usize, size_of::<c_int>());
            note_receive(&entry, Some(channel::id(channel::SIGNAL, *signal as u32)), true);
        }
        result
    }

    fn sigwaitinfo(set: usize, information: usize) -> c_int {
        let entry = enter_or!(real::sigwaitinfo(set, information));
        let result = outside(entry.thread, || real::sigwaitinfo(set, information));
        if result > 0 {
            note_receive(&entry, Some(channel::id(channel::SIGNAL, result as u32)), true);
        }
        result
    }

    fn sigtimedwait(set: usize, information: usize, timeout: usize) -> c_int {
        let call = || real::sigtimedwait(set, information, timeout);
        let entry = enter_or!(call());
        let result = outside(entry.thread, call);
        if result > 0 {
            note_receive(&entry, Some(channel::id(channel::SIGNAL, result as u32)), true);
        }
        result
    }
}
