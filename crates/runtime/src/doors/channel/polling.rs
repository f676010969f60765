//! Looking whether descriptors are ready.
//!
//! Who looks takes nothing, but goes on because of what it saw, also if that was nothing.

use super::*;

/// A descriptor to look at, as the kernel takes it.
#[repr(C)]
pub(crate) struct Request {
    file: c_int,
    events: u16,
    seen: u16,
}

const LOOKS_MAX: usize = 1 << 16;

/// Logs that `count` descriptors were looked at.
unsafe fn looked(entry: &Entry, requests: *const Request, count: usize) {
    for place in 0..count.min(LOOKS_MAX) {
        note_receive(entry, table::of((*requests.add(place)).file), false);
    }
}

/// Logs that those of the first `count` descriptors that are in `set` were looked at.
unsafe fn looked_at_set(entry: &Entry, set: *const u64, count: c_int) {
    if set.is_null() {
        return;
    }
    for file in 0..count {
        let word = *set.add(file as usize / 64);
        if word >> (file % 64) & 1 == 1 {
            note_receive(entry, table::of(file), false);
        }
    }
}

/// Logs what came of waiting for the set `file`.
unsafe fn polled(entry: &Entry, file: c_int, result: c_int) -> c_int {
    note_receive(entry, table::of(file), result > 0);
    result
}

doors! {
    fn poll(requests: *mut Request, count: usize, timeout: c_int) -> c_int {
        let entry = enter_or!(real::poll(requests, count, timeout));
        let result = outside(entry.thread, || real::poll(requests, count, timeout));
        looked(&entry, requests, if result >= 0 { count } else { 0 });
        result
    }

    fn ppoll(requests: *mut Request, count: usize, timeout: usize, mask: usize) -> c_int {
        let entry = enter_or!(real::ppoll(requests, count, timeout, mask));
        let result = outside(entry.thread, || real::ppoll(requests, count, timeout, mask));
        looked(&entry, requests, if result >= 0 { count } else { 0 });
        result
    }

    fn select(
        count: c_int, read: *mut u64, write: *mut u64, except: *mut u64, timeout: usize,
    ) -> c_int {
        let call = || real::select(count, read, write, except, timeout);
        let entry = enter_or!(call());
        let result = outside(entry.thread, call);
        looked_at_set(&entry, read, if result > 0 { count } else { 0 });
        result
    }

    fn pselect(
        count: c_int, read: *mut u64, write: *mut u64, except: *mut u64, timeout: usize,
        mask: usize,
    ) -> c_int {
        let call = || real::pselect(count, read, write, except, timeout, mask);
        let entry = enter_or!(call());
        let result = outside(entry.thread, call);
        looked_at_set(&entry, read, if result > 0 { count } else { 0 });
        result
    }

    fn epoll_create(size: c_int) -> c_int {
        let entry = enter_or!(real::epoll_create(size));
        created(inside(entry.thread, || real::epoll_create(size)))
    }

    fn epoll_create1(flags: c_int) -> c_int {
        let entry = enter_or!(real::epoll_create1(flags));
        created(inside(entry.thread, || real::epoll_create1(flags)))
    }

    fn epoll_ctl(set: c_int, operation: c_int, file: c_int, event: usize) -> c_int {
        let entry = enter_or!(real::epoll_ctl(set, operation, file, event));
        note_send(&entry, table::of(set));
        table::set_poll(file, set);
        inside(entry.thread, || real::epoll_ctl(set, operation, file, event))
    }

    fn epoll_wait(file: c_int, events: usize, count: c_int, timeout: c_int) -> c_int {
        let call = || real::epoll_wait(file, events, count, timeout);
        let entry = enter_or!(call());
        polled(&entry, file, outside(entry.thread, call))
    }

    fn epoll_pwait(
        file: c_int, events: usize, count: c_int, timeout: c_int, mask: usize,
    ) -> c_int {
        let call = || real::epoll_pwait(file, events, count, timeout, mask);
        let entry = enter_or!(call());
        polled(&entry, file, outside(entry.thread, call))
    }
}

/// A set of descriptors was made, or not.
unsafe fn created(set: c_int) -> c_int {
    if set >= 0 {
        table::set(set, table::make(channel::POLL));
    }
    set
}
