//! How descriptors come and go.

use super::*;

/// Two descriptors were made for the same channel.
unsafe fn pair(result: c_int, files: *const c_int, kind: u32) {
    if result == 0 {
        let made = table::make(kind);
        table::set(*files, made);
        table::set(*files.add(1), made);
    }
}

/// `file` is about to be closed, which whoever is at the other end can see.
pub(super) unsafe fn close_channel(entry: &Entry, file: c_int) {
    note_send(entry, table::of(file));
    // Before it is closed: afterwards another thread may be given it.
    table::forget(file);
}

/// `file` was duplicated, or not.
unsafe fn duplicated(file: c_int, copy: c_int) -> c_int {
    if copy >= 0 {
        table::duplicate(file, copy);
    }
    copy
}

/// Makes a call of `fcntl`, which can duplicate a descriptor or wait for a lock.
unsafe fn control(file: c_int, command: c_int, call: impl FnOnce() -> c_int) -> c_int {
    const DUPLICATE: c_int = 0;
    const DUPLICATE_CLOSED: c_int = 1030;
    const WAIT_FOR_LOCK: c_int = 7;
    const LOCK: core::ops::RangeInclusive<c_int> = 37..=38;
    let entry = enter_or!(call());
    match command {
        DUPLICATE | DUPLICATE_CLOSED => duplicated(file, inside(entry.thread, call)),
        WAIT_FOR_LOCK => outside(entry.thread, call),
        _ if LOCK.contains(&command) => exchanging(&entry, channel::id(channel::LOCKS, 0), call),
        _ => inside(entry.thread, call),
    }
}

doors! {
    fn pipe(files: *mut c_int) -> c_int {
        let entry = enter_or!(real::pipe(files));
        let result = inside(entry.thread, || real::pipe(files));
        pair(result, files, channel::PIPE);
        result
    }

    fn pipe2(files: *mut c_int, flags: c_int) -> c_int {
        let entry = enter_or!(real::pipe2(files, flags));
        let result = inside(entry.thread, || real::pipe2(files, flags));
        pair(result, files, channel::PIPE);
        result
    }

    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, files: *mut c_int) -> c_int {
        let call = || real::socketpair(domain, kind, protocol, files);
        let entry = enter_or!(call());
        let result = inside(entry.thread, call);
        pair(result, files, channel::SOCKET);
        result
    }

    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
        const UNIX: c_int = 1;
        const INTERNET: c_int = 2;
        const INTERNET_6: c_int = 10;
        let entry = enter_or!(real::socket(domain, kind, protocol));
        let result = inside(entry.thread, || real::socket(domain, kind, protocol));
        if result >= 0 && matches!(domain, UNIX | INTERNET | INTERNET_6) {
            table::set_socket(result);
        }
        result
    }

    fn connect(socket: c_int, address: usize, length: c_uint) -> c_int {
        let entry = enter_or!(real::connect(socket, address, length));
        note_send(&entry, Some(channel::id(channel::CONNECTIONS, 0)));
        outside(entry.thread, || real::connect(socket, address, length))
    }

    fn accept(socket: c_int, address: usize, length: usize) -> c_int {
        let entry = enter_or!(real::accept(socket, address, length));
        let call = || real::accept(socket, address, length);
        let result = when_ready(&entry, socket, POLL_IN, call);
        accepted(&entry, result)
    }

    fn accept4(socket: c_int, address: usize, length: usize, flags: c_int) -> c_int {
        let entry = enter_or!(real::accept4(socket, address, length, flags));
        let call = || real::accept4(socket, address, length, flags);
        let result = when_ready(&entry, socket, POLL_IN, call);
        accepted(&entry, result)
    }

    fn shutdown(socket: c_int, how: c_int) -> c_int {
        let entry = enter_or!(real::shutdown(socket, how));
        note_send(&entry, table::of(socket));
        inside(entry.thread, || real::shutdown(socket, how))
    }

    fn eventfd(count: c_uint, flags: c_int) -> c_int {
        let entry = enter_or!(real::eventfd(count, flags));
        let result = inside(entry.thread, || real::eventfd(count, flags));
        if result >= 0 {
            table::set(result, table::make(channel::COUNTER));
        }
        result
    }

    fn eventfd_read(file: c_int, value: usize) -> c_int {
        let entry = enter_or!(real::eventfd_read(file, value));
        let channel = table::of(file);
        let result = when_ready(&entry, file, POLL_IN, || real::eventfd_read(file, value));
        if result == 0 {
            note_receive(&entry, channel, true);
            log_range(&entry, Kind::WriteRange, value, size_of::<u64>());
        } else {
            note_result(&entry, channel, -1);
        }
        result
    }

    fn eventfd_write(file: c_int, value: u64) -> c_int {
        let entry = enter_or!(real::eventfd_write(file, value));
        taking(&entry, file, &[], || real::eventfd_write(file, value) as isize) as c_int
    }

    fn dup(file: c_int) -> c_int {
        let entry = enter_or!(real::dup(file));
        duplicated(file, inside(entry.thread, || real::dup(file)))
    }

    fn dup2(file: c_int, copy: c_int) -> c_int {
        let entry = enter_or!(real::dup2(file, copy));
        if file != copy {
            close_channel(&entry, copy);
        }
        duplicated(file, inside(entry.thread, || real::dup2(file, copy)))
    }

    fn dup3(file: c_int, copy: c_int, flags: c_int) -> c_int {
        let entry = enter_or!(real::dup3(file, copy, flags));
        if file != copy {
            close_channel(&entry, copy);
        }
        duplicated(file, inside(entry.thread, || real::dup3(file, copy, flags)))
    }

    fn fcntl(file: c_int, command: c_int, argument: usize) -> c_int {
        control(file, command, || real::fcntl(file, command, argument))
    }

    fn fcntl64(file: c_int, command: c_int, argument: usize) -> c_int {
        control(file, command, || real::fcntl64(file, command, argument))
    }

    fn close(file: c_int) -> c_int {
        let entry = enter_or!(real::close(file));
        close_channel(&entry, file);
        inside(entry.thread, || real::close(file))
    }
}

/// Logs that a connection was accepted, or not.
unsafe fn accepted(entry: &Entry, socket: c_int) -> c_int {
    if socket >= 0 {
        table::set_socket(socket);
    }
    note_result(entry, Some(channel::id(channel::CONNECTIONS, 0)), if socket < 0 { -1 } else { 1 });
    socket
}
