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

/// The descriptors of a set to look at, as they were before the kernel left only those that are
/// ready; more of them than this are not looked at.
type Wanted = [u64; 16];

unsafe fn wanted(set: *const u64, count: c_int) -> Wanted {
    let mut wanted = [0; 16];
    if !set.is_null() {
        for (place, word) in
            wanted.iter_mut().enumerate().take((count.max(0) as usize).div_ceil(64))
        {
            *word = set.add(place).read();
        }
    }
    wanted
}

/// Logs that those of the first `count` descriptors that are `wanted` were looked at.
unsafe fn looked_at(entry: &Entry, wanted: &Wanted, count: c_int) {
    for file in 0..count.min(size_of::<Wanted>() as c_int * 8) {
        if wanted[file as usize / 64] >> (file % 64) & 1 == 1 {
            note_receive(entry, table::of(file), false);
        }
    }
}

/// Logs what came of waiting for the set `file`, which wrote `result` events to `events`.
unsafe fn polled(entry: &Entry, file: c_int, events: usize, result: c_int) -> c_int {
    const EVENT_BYTES: usize = 12;
    if result >= 0 {
        note_receive(entry, table::of(file), result > 0);
        log_range(entry, Kind::WriteRange, events, result as usize * EVENT_BYTES);
    }
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

    fn __poll_chk(requests: *mut Request, count: usize, timeout: c_int, room: usize) -> c_int {
        let call = || real::__poll_chk(requests, count, timeout, room);
        let entry = enter_or!(call());
        let result = outside(entry.thread, call);
        looked(&entry, requests, if result >= 0 { count } else { 0 });
        result
    }

    fn __ppoll_chk(
        requests: *mut Request, count: usize, timeout: usize, mask: usize, room: usize,
    ) -> c_int {
        let call = || real::__ppoll_chk(requests, count, timeout, mask, room);
        let entry = enter_or!(call());
        let result = outside(entry.thread, call);
        looked(&entry, requests, if result >= 0 { count } else { 0 });
        result
    }

    fn select(
        count: c_int, read: *mut u64, write: *mut u64, except: *mut u64, timeout: usize,
    ) -> c_int {
        let call = || real::select(count, read, write, except, timeout);
        let entry = enter_or!(call());
        let wanted = wanted(read, count);
        let result = outside(entry.thread, call);
        looked_at(&entry, &wanted, if result >= 0 { count } else { 0 });
        result
    }

    fn pselect(
        count: c_int, read: *mut u64, write: *mut u64, except: *mut u64, timeout: usize,
        mask: usize,
    ) -> c_int {
        let call = || real::pselect(count, read, write, except, timeout, mask);
        let entry = enter_or!(call());
        let wanted = wanted(read, count);
        let result = outside(entry.thread, call);
        looked_at(&entry, &wanted, if result >= 0 { count } else { 0 });
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
        const ADD: c_int = 1;
        const REMOVE: c_int = 2;
        let call = || real::epoll_ctl(set, operation, file, event);
        let entry = enter_or!(call());
        let Some(id) = table::of(set) else {
            return inside(entry.thread, call);
        };
        if operation == ADD {
            sets::add(&entry, id, file);
        }
        note_send(&entry, Some(id));
        let raw = table::raw(file);
        let result = inside(entry.thread, call);
        if operation == REMOVE && result == 0 {
            sets::remove(&entry, id, file, raw);
        }
        result
    }

    fn epoll_wait(file: c_int, events: usize, count: c_int, timeout: c_int) -> c_int {
        let call = || real::epoll_wait(file, events, count, timeout);
        let entry = enter_or!(call());
        polled(&entry, file, events, outside(entry.thread, call))
    }

    fn epoll_pwait(
        file: c_int, events: usize, count: c_int, timeout: c_int, mask: usize,
    ) -> c_int {
        let call = || real::epoll_pwait(file, events, count, timeout, mask);
        let entry = enter_or!(call());
        polled(&entry, file, events, outside(entry.thread, call))
    }
}

/// Doors of functions that not every C library has.
#[cfg(not(reweave_static))]
mod dynamic {
    use super::*;

    doors! {
        fn epoll_pwait2(
            file: c_int, events: usize, count: c_int, timeout: usize, mask: usize,
        ) -> c_int {
            let call = || real::epoll_pwait2(file, events, count, timeout, mask);
            let entry = enter_or!(call());
            polled(&entry, file, events, outside(entry.thread, call))
        }
    }
}

/// A set of descriptors was made, or not.
unsafe fn created(set: c_int) -> c_int {
    if set >= 0 {
        table::set(set, sets::make());
    }
    set
}
