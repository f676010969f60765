//! How descriptors come and go.

use super::*;

/// Two descriptors were made, both of which lead to `id`.
unsafe fn pair(entry: &Entry, files: *const c_int, id: u32) {
    log_range(entry, Kind::WriteRange, files as usize, 2 * size_of::<c_int>());
    table::set(*files, id);
    table::set(*files.add(1), id);
}

/// The two ends of a pipe were made, or not.
unsafe fn piped(entry: &Entry, result: c_int, files: *const c_int) -> c_int {
    if result == 0 {
        let status = table::Status::new(*files);
        let id = status.and_then(|status| status.pipe());
        pair(entry, files, id.unwrap_or_else(|| table::make(channel::PIPE)));
    }
    result
}

/// Makes a call that closes `file`, which whoever is at the other end can see.
pub(super) unsafe fn closing<R>(entry: &Entry, file: c_int, call: impl FnOnce() -> R) -> R {
    let (raw, leaves_sets) = (table::raw(file), table::leaves_sets(file));
    note_send(entry, table::of(file));
    // Before it is closed: afterwards another thread may be given it.
    table::forget(file);
    let result = call();
    if leaves_sets && !children::is_guest() {
        sets::remove_everywhere(entry, file, raw);
    }
    result
}

/// `file` was duplicated, or not.
unsafe fn duplicated(file: c_int, copy: c_int) -> c_int {
    if copy >= 0 {
        table::duplicate(file, copy);
    }
    copy
}

/// Makes a call that closes `copy` and makes it a copy of `file`.
unsafe fn replacing(
    entry: &Entry,
    file: c_int,
    copy: c_int,
    call: impl FnOnce() -> c_int,
) -> c_int {
    if file == copy {
        return call();
    }
    let before = table::raw(copy);
    let result = closing(entry, copy, call);
    if result < 0 {
        // It was not closed.
        table::store(copy, before);
    }
    duplicated(file, result)
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
        _ if LOCK.contains(&command) => queues::exchanging(&entry, queues::file_locks(), call),
        _ => inside(entry.thread, call),
    }
}

doors! {
    fn pipe(files: *mut c_int) -> c_int {
        let entry = enter_or!(real::pipe(files));
        let result = inside(entry.thread, || real::pipe(files));
        piped(&entry, result, files)
    }

    fn pipe2(files: *mut c_int, flags: c_int) -> c_int {
        let entry = enter_or!(real::pipe2(files, flags));
        let result = inside(entry.thread, || real::pipe2(files, flags));
        piped(&entry, result, files)
    }

    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, files: *mut c_int) -> c_int {
        let call = || real::socketpair(domain, kind, protocol, files);
        let entry = enter_or!(call());
        let result = inside(entry.thread, call);
        if result == 0 {
            pair(&entry, files, table::make(channel::SOCKET));
        }
        result
    }

    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
        const KIND_MASK: c_int = 0xf;
        const STREAM: c_int = 1;
        const PACKETS: c_int = 5;
        const UNIX: c_int = 1;
        const INTERNET: c_int = 2;
        const INTERNET_6: c_int = 10;
        let entry = enter_or!(real::socket(domain, kind, protocol));
        let result = inside(entry.thread, || real::socket(domain, kind, protocol));
        if result >= 0 && matches!(domain, UNIX | INTERNET | INTERNET_6) {
            match kind & KIND_MASK {
                STREAM | PACKETS => table::set_socket(result),
                // It takes what any other sends, also if it sends to one only.
                _ => table::set(result, channel::id(channel::SOCKET, 0)),
            }
        }
        result
    }

    fn listen(socket: c_int, count: c_int) -> c_int {
        let entry = enter_or!(real::listen(socket, count));
        let result = inside(entry.thread, || real::listen(socket, count));
        if result == 0 && table::raw(socket) == table::SOCKET {
            table::set(socket, channel::id(channel::CONNECTIONS, 0));
        }
        result
    }

    fn connect(socket: c_int, address: *const u8, length: c_uint) -> c_int {
        const INTERRUPTED: c_int = 4;
        const IN_PROGRESS: c_int = 115;
        let entry = enter_or!(real::connect(socket, address, length));
        note_send(&entry, Some(channel::id(channel::CONNECTIONS, 0)));
        let result = outside(entry.thread, || real::connect(socket, address, length));
        if result == 0 || matches!(*__errno_location(), INTERRUPTED | IN_PROGRESS) {
            table::connected(socket, address_at(address, length as usize));
        }
        result
    }

    fn accept(socket: c_int, address: usize, length: usize) -> c_int {
        let entry = enter_or!(real::accept(socket, address, length));
        accepting(&entry, socket, (address, length), |address, length| {
            real::accept(socket, address, length)
        })
    }

    fn accept4(socket: c_int, address: usize, length: usize, flags: c_int) -> c_int {
        let entry = enter_or!(real::accept4(socket, address, length, flags));
        accepting(&entry, socket, (address, length), |address, length| {
            real::accept4(socket, address, length, flags)
        })
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
        replacing(&entry, file, copy, || inside(entry.thread, || real::dup2(file, copy)))
    }

    fn dup3(file: c_int, copy: c_int, flags: c_int) -> c_int {
        let entry = enter_or!(real::dup3(file, copy, flags));
        replacing(&entry, file, copy, || inside(entry.thread, || real::dup3(file, copy, flags)))
    }

    fn fcntl(file: c_int, command: c_int, argument: usize) -> c_int {
        control(file, command, || real::fcntl(file, command, argument))
    }

    fn fcntl64(file: c_int, command: c_int, argument: usize) -> c_int {
        control(file, command, || real::fcntl64(file, command, argument))
    }

    fn close(file: c_int) -> c_int {
        let entry = enter_or!(real::close(file));
        closing(&entry, file, || inside(entry.thread, || real::close(file)))
    }
}

/// The address at `place`, as much of it as is known.
unsafe fn address_at(place: *const u8, length: usize) -> Option<table::Address> {
    let mut address = [0; size_of::<table::Address>()];
    if place.is_null() || length > address.len() {
        return None;
    }
    for (offset, byte) in address.iter_mut().enumerate().take(length) {
        *byte = place.add(offset).read();
    }
    Some(address)
}

/// Makes a call that accepts a connection at `socket` and says who connected.
unsafe fn accepting(
    entry: &Entry,
    socket: c_int,
    (address, length): (usize, usize),
    call: impl FnOnce(usize, usize) -> c_int,
) -> c_int {
    let mut own: table::Address = [0; size_of::<table::Address>()];
    let mut own_length = size_of_val(&own) as c_uint;
    let room = messages::room_at(length);
    // We want to know also if the program does not.
    let (to, to_length) = match address {
        0 => (&raw mut own as usize, &raw mut own_length as usize),
        _ => (address, length),
    };
    let accepted = when_ready(entry, socket, POLL_IN, || call(to, to_length));
    if accepted >= 0 {
        table::set_socket(accepted);
        let filled = messages::room_at(to_length).min(if address == 0 { own.len() } else { room });
        table::connected(accepted, address_at(to as *const u8, filled));
        messages::note_address(entry, address, length, room);
    }
    let result = if accepted < 0 { -1 } else { 1 };
    note_result(entry, Some(channel::id(channel::CONNECTIONS, 0)), result);
    accepted
}
