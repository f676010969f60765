//! Messages of sockets: with addresses, in parts, several at once.

use super::*;

/// A message with its parts, as the kernel takes it.
#[repr(C)]
pub(crate) struct Message {
    name: usize,
    name_length: c_uint,
    parts: *const Part,
    parts_count: usize,
    control: usize,
    control_length: usize,
    flags: c_int,
}

/// A message of several, as the kernel takes it.
#[repr(C)]
pub(crate) struct OneOfSeveral {
    message: Message,
    length: c_uint,
}

const _: () = assert!(size_of::<Message>() == 56 && size_of::<OneOfSeveral>() == 64);

/// More messages than this the kernel does not take at once.
const MESSAGES_MAX: usize = 1024;

/// A call that waits until there is all that was asked for.
const WAIT_FOR_ALL: c_int = 0x100;

/// The parts of `message`.
unsafe fn parts_of<'a>(message: *const Message) -> &'a [Part] {
    if message.is_null() {
        return &[];
    }
    parts((*message).parts, (*message).parts_count)
}

/// How much room there is for an address, where `length` says it.
pub(super) unsafe fn room_at(length: usize) -> usize {
    if length == 0 { 0 } else { *(length as *const c_uint) as usize }
}

/// Logs that the kernel wrote the address of a socket to `address`, where there was `room`, and its
/// length to `length`.
pub(super) unsafe fn note_address(entry: &Entry, address: usize, length: usize, room: usize) {
    if address != 0 && length != 0 {
        log_range(entry, Kind::WriteRange, address, room_at(length).min(room));
        log_range(entry, Kind::WriteRange, length, size_of::<c_uint>());
    }
}

/// Logs what the kernel wrote beside the parts of `message`, in which there was `room` for a name.
unsafe fn note_rest(entry: &Entry, message: *const Message, room: usize) {
    let head = &*message;
    if head.name != 0 {
        log_range(entry, Kind::WriteRange, head.name, room.min(head.name_length as usize));
    }
    if head.control != 0 {
        log_range(entry, Kind::WriteRange, head.control, head.control_length);
    }
    let written = |place: usize, bytes: usize| log_range(entry, Kind::WriteRange, place, bytes);
    written(&raw const head.name_length as usize, size_of::<c_uint>());
    written(&raw const head.control_length as usize, size_of::<usize>());
    written(&raw const head.flags as usize, size_of::<c_int>());
}

/// Makes a call that takes one message's worth of bytes from `socket`.
unsafe fn receiving(
    entry: &Entry,
    socket: c_int,
    flags: c_int,
    parts: &[Part],
    call: impl FnOnce() -> isize,
) -> isize {
    if flags & WAIT_FOR_ALL == 0 {
        return filling(entry, socket, parts, call);
    }
    let channel = table::of(socket);
    let result = outside(entry.thread, call);
    note_filled(entry, channel, parts, result);
    result
}

/// Makes a call that takes messages with the address of who sent them.
unsafe fn receiving_from(
    entry: &Entry,
    (socket, flags): (c_int, c_int),
    part: Part,
    (from, from_length): (usize, usize),
    call: impl FnOnce() -> isize,
) -> isize {
    let room = room_at(from_length);
    let result = receiving(entry, socket, flags, &[part], call);
    if result >= 0 {
        note_address(entry, from, from_length, room);
    }
    result
}

doors! {
    fn recv(socket: c_int, address: usize, length: usize, flags: c_int) -> isize {
        let call = || real::recv(socket, address, length, flags);
        let entry = enter_or!(call());
        receiving(&entry, socket, flags, &[Part { address, length }], call)
    }

    fn __recv_chk(
        socket: c_int, address: usize, length: usize, room: usize, flags: c_int,
    ) -> isize {
        let call = || real::__recv_chk(socket, address, length, room, flags);
        let entry = enter_or!(call());
        receiving(&entry, socket, flags, &[Part { address, length }], call)
    }

    fn recvfrom(
        socket: c_int, address: usize, length: usize, flags: c_int, from: usize,
        from_length: usize,
    ) -> isize {
        let call = || real::recvfrom(socket, address, length, flags, from, from_length);
        let entry = enter_or!(call());
        let part = Part { address, length };
        receiving_from(&entry, (socket, flags), part, (from, from_length), call)
    }

    fn __recvfrom_chk(
        socket: c_int, address: usize, length: usize, room: usize, flags: c_int, from: usize,
        from_length: usize,
    ) -> isize {
        let call = || {
            real::__recvfrom_chk(socket, address, length, room, flags, from, from_length)
        };
        let entry = enter_or!(call());
        let part = Part { address, length };
        receiving_from(&entry, (socket, flags), part, (from, from_length), call)
    }

    fn recvmsg(socket: c_int, message: *mut Message, flags: c_int) -> isize {
        let call = || real::recvmsg(socket, message, flags);
        let entry = enter_or!(call());
        let room = if message.is_null() { 0 } else { (*message).name_length as usize };
        let result = receiving(&entry, socket, flags, parts_of(message), call);
        if result >= 0 {
            note_rest(&entry, message, room);
        }
        result
    }

    fn recvmmsg(
        socket: c_int, list: *mut OneOfSeveral, count: c_uint, flags: c_int, timeout: usize,
    ) -> c_int {
        const WAIT_FOR_ONE: c_int = 0x10000;
        const DO_NOT_WAIT: c_int = 0x40;
        let call = || real::recvmmsg(socket, list, count, flags, timeout);
        let entry = enter_or!(call());
        let mut rooms = [0_u32; MESSAGES_MAX];
        for (place, room) in rooms.iter_mut().enumerate().take(count as usize) {
            *room = (*list.add(place)).message.name_length;
        }
        let channel = table::of(socket);
        let waits_once = count == 1 || flags & (WAIT_FOR_ONE | DO_NOT_WAIT) != 0;
        let result = if waits_once && flags & WAIT_FOR_ALL == 0 {
            when_ready(&entry, socket, POLL_IN, call)
        } else {
            outside(entry.thread, call)
        };
        note_result(&entry, channel, result as isize);
        for (place, &room) in rooms.iter().enumerate().take(usize::try_from(result).unwrap_or(0)) {
            let one = list.add(place);
            note_bytes(&entry, parts_of(&raw const (*one).message), (*one).length as usize);
            note_rest(&entry, &raw const (*one).message, room as usize);
            let length = &raw const (*one).length as usize;
            log_range(&entry, Kind::WriteRange, length, size_of::<c_uint>());
        }
        result
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

    fn sendmsg(socket: c_int, message: *const Message, flags: c_int) -> isize {
        let entry = enter_or!(real::sendmsg(socket, message, flags));
        taking(&entry, socket, parts_of(message), || real::sendmsg(socket, message, flags))
    }

    fn sendmmsg(socket: c_int, list: *mut OneOfSeveral, count: c_uint, flags: c_int) -> c_int {
        let call = || real::sendmmsg(socket, list, count, flags);
        let entry = enter_or!(call());
        for place in 0..MESSAGES_MAX.min(count as usize) {
            for part in parts_of(&raw const (*list.add(place)).message) {
                log_range(&entry, Kind::ReadRange, part.address, part.length);
            }
        }
        note_send(&entry, table::of(socket));
        let result = outside(entry.thread, call);
        for place in 0..usize::try_from(result).unwrap_or(0) {
            let length = &raw const (*list.add(place)).length as usize;
            log_range(&entry, Kind::WriteRange, length, size_of::<c_uint>());
        }
        result
    }
}
