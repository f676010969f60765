//! Queues of messages, sets of semaphores and locks of files: what has no descriptor, or none that
//! is read and written.

use core::sync::atomic::{AtomicU32, Ordering};

use super::*;

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
pub(super) fn each(mut visit: impl FnMut(u32)) {
    for place in &KNOWN {
        if let Some(id) = place.load(Ordering::Acquire).checked_sub(1) {
            visit(id);
        }
    }
}

/// The channel for all locks of files.
pub(super) fn file_locks() -> u32 {
    known(channel::LOCKS, 0)
}

/// The channel for all queues that have names.
fn named_queues() -> u32 {
    known(channel::NAMED_QUEUES, 0)
}

/// Makes a call that may give, take or both.
pub(super) unsafe fn exchanging(entry: &Entry, id: u32, call: impl FnOnce() -> c_int) -> c_int {
    note_send(entry, Some(id));
    let result = outside(entry.thread, call);
    if result >= 0 {
        note_receive(entry, Some(id), true);
    }
    result
}

/// A queue with a name was opened, or not.
unsafe fn opened(queue: c_int) -> c_int {
    if queue >= 0 {
        table::set(queue, named_queues());
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
    outside(entry.thread, call)
}

/// Makes a call that takes a message, and its priority, from a queue with a name.
unsafe fn getting(
    entry: &Entry,
    message: usize,
    priority: usize,
    call: impl FnOnce() -> isize,
) -> isize {
    let result = outside(entry.thread, call);
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

doors! {
    fn msgsnd(queue: c_int, message: usize, size: usize, flags: c_int) -> c_int {
        let entry = enter_or!(real::msgsnd(queue, message, size, flags));
        // The kind of the message stands before it.
        log_range(&entry, Kind::ReadRange, message, size_of::<c_long>() + size);
        note_send(&entry, Some(known(channel::QUEUE, queue as u32)));
        outside(entry.thread, || real::msgsnd(queue, message, size, flags))
    }

    fn msgrcv(
        queue: c_int, message: usize, size: usize, kind: c_long, flags: c_int,
    ) -> isize {
        let call = || real::msgrcv(queue, message, size, kind, flags);
        let entry = enter_or!(call());
        let result = outside(entry.thread, call);
        if result >= 0 {
            note_receive(&entry, Some(known(channel::QUEUE, queue as u32)), true);
        }
        let filled = usize::try_from(result).map_or(0, |length| length + size_of::<c_long>());
        log_range(&entry, Kind::WriteRange, message, filled);
        result
    }

    fn mq_open(name: usize, flags: c_int, mode: c_uint, attributes: usize) -> c_int {
        let call = || real::mq_open(name, flags, mode, attributes);
        let entry = enter_or!(call());
        opened(inside(entry.thread, call))
    }

    fn __mq_open_2(name: usize, flags: c_int) -> c_int {
        let entry = enter_or!(real::__mq_open_2(name, flags));
        opened(inside(entry.thread, || real::__mq_open_2(name, flags)))
    }

    fn mq_close(queue: c_int) -> c_int {
        let entry = enter_or!(real::mq_close(queue));
        let call = || inside(entry.thread, || real::mq_close(queue));
        descriptors::closing(&entry, queue, call)
    }

    fn mq_send(queue: c_int, message: usize, length: usize, priority: c_uint) -> c_int {
        let call = || real::mq_send(queue, message, length, priority);
        let entry = enter_or!(call());
        putting(&entry, message, length, call)
    }

    fn mq_timedsend(
        queue: c_int, message: usize, length: usize, priority: c_uint, until: usize,
    ) -> c_int {
        let call = || real::mq_timedsend(queue, message, length, priority, until);
        let entry = enter_or!(call());
        putting(&entry, message, length, call)
    }

    fn mq_receive(queue: c_int, message: usize, length: usize, priority: usize) -> isize {
        let call = || real::mq_receive(queue, message, length, priority);
        let entry = enter_or!(call());
        getting(&entry, message, priority, call)
    }

    fn mq_timedreceive(
        queue: c_int, message: usize, length: usize, priority: usize, until: usize,
    ) -> isize {
        let call = || real::mq_timedreceive(queue, message, length, priority, until);
        let entry = enter_or!(call());
        getting(&entry, message, priority, call)
    }

    fn semop(set: c_int, operations: usize, count: usize) -> c_int {
        let entry = enter_or!(real::semop(set, operations, count));
        let id = known(channel::SEMAPHORES, set as u32);
        exchanging(&entry, id, || real::semop(set, operations, count))
    }

    fn semtimedop(set: c_int, operations: usize, count: usize, timeout: usize) -> c_int {
        let entry = enter_or!(real::semtimedop(set, operations, count, timeout));
        let id = known(channel::SEMAPHORES, set as u32);
        exchanging(&entry, id, || real::semtimedop(set, operations, count, timeout))
    }

    fn flock(file: c_int, operation: c_int) -> c_int {
        let entry = enter_or!(real::flock(file, operation));
        exchanging(&entry, file_locks(), || real::flock(file, operation))
    }
}
