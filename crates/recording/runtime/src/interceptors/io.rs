//! What threads hand each other through the kernel: pipes, sockets, counters, queues, signals.
//!
//! What is written to one end of a pipe orders its writer before whoever reads it from the other.
//! So each descriptor that the program makes leads to a channel ([`crate::wire::channel`]), both
//! ends of a pipe to the same; what the program was given from outside, such as its output, leads to
//! none, since nobody in it reads the other end. A call that hands something over is logged before
//! it is made and one that takes something after it, so that no order is missed. Connections by TCP
//! are distinguished by their two addresses ([`channels`](super::channels)); all other sockets that were not made as a pair
//! share one channel, which orders more than it must and never less. What may go through another
//! process and come back by another way is in [`ipc`](super::ipc).
//!
//! The bytes that the kernel puts into buffers, and the addresses, lengths and descriptors that it
//! writes beside them, are logged as the program's own write, once it is known how much that was;
//! the bytes that it takes, as a read before the call. What the kernel reads to know what it is
//! asked for, and what it writes to the requests of `poll` and `select`, is not logged. A descriptor
//! that is ready is used without passing the token on, so that what was seen is seen in its place,
//! unless the call may wait all the same.

use core::ffi::{c_int, c_long, c_uint};

use super::channels::{self, Channel};
use super::ipc::{
    ALL_PROCESSES, each_signal_of, exchanging, file_locks, has_child_processes, is_vfork_child,
    note_signals_read,
};
use super::program::log_range;
use super::{__errno_location, flags_of_end, interceptors, objects};
use crate::log::Entry;
use crate::shared::failure;
use crate::wire::{Kind, channel, flag};
use crate::{process, scheduler, sys};

const POLL_IN: u16 = 1;

const POLL_OUT: u16 = 4;

/// A part of memory that a call fills or takes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Part {
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

const STANDARD_ERROR: c_int = 2;

/// Notes for the recorder what a panic of Rust says, which its standard library writes in one piece.
unsafe fn note_panic(code: u64, address: usize, length: usize) {
    const START: &[u8] = b"thread '";
    let text = core::slice::from_raw_parts(address as *const u8, length.min(500));
    let text = text.strip_prefix(b"\n").unwrap_or(text);
    let says = b"panicked at ";
    if text.starts_with(START) && text.windows(says.len()).any(|part| part == says) {
        process::note_failure(failure::PANIC, code, &[text]);
    }
}

/// Logs that something is about to be handed to `channel`.
pub unsafe fn note_send(entry: &Entry, channel: Channel) {
    let Some(id) = channel.filter(|&id| channel::kind(id) != channel::SIGNAL_FILE) else { return };
    entry.log(Kind::Send, channel::address(id));
    // Asked after it was logged: who makes these so looks at the channels afterwards.
    if has_child_processes() {
        entry.log(Kind::Send, channel::address(ALL_PROCESSES));
    }
    if channels::is_any_poll_set_full() {
        entry.log(Kind::Send, channel::address(channels::ANY_POLL_SET));
    }
}

/// Logs that something was taken from `channel`, or only that it was looked at.
pub unsafe fn note_receive(entry: &Entry, channel: Channel, takes: bool) {
    let Some(id) = channel else { return };
    match channel::kind(id) {
        channel::SIGNAL_FILE => each_signal_of(id, |id| log_receive(entry, id, false)),
        channel::POLL => {
            channels::observe_poll_set(entry, id, 0);
            log_receive(entry, id, takes);
        }
        _ => log_receive(entry, id, takes),
    }
    if has_child_processes() {
        log_receive(entry, ALL_PROCESSES, false);
    }
}

/// Logs one event that takes from the channel `id`, or looks at it.
pub unsafe fn log_receive(entry: &Entry, id: u32, takes: bool) {
    let flags = if takes { 0 } else { flag::TRY };
    entry.log_flags(Kind::Receive, channel::address(id), flags);
}

/// Logs what came of a call that took `result` bytes or messages from `channel`: something, the end,
/// or that there was nothing.
pub unsafe fn note_result(entry: &Entry, channel: Channel, result: isize) {
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
    if scheduler::is_serial() && is_ready(file, events) {
        entry.nonblocking(call)
    } else {
        entry.blocking(call)
    }
}

/// Whether `file` never keeps who writes to it waiting, however much that is.
unsafe fn never_waits(file: c_int) -> bool {
    const FCNTL: usize = 72;
    const GET_FLAGS: usize = 3;
    const NON_BLOCKING: isize = 0o4000;
    let flags = sys::call(FCNTL, [file as usize, GET_FLAGS, 0, 0, 0, 0]);
    (flags >= 0 && flags & NON_BLOCKING != 0)
        || channels::Status::new(file).is_some_and(|status| status.is_regular())
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
            note_signals_read(entry, part.address, length.min(part.length));
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
    let channel = channels::of(file);
    note_use(entry, file);
    let result = when_ready(entry, file, POLL_IN, call);
    note_filled(entry, channel, parts, result);
    note_used(entry, file, result)
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
    note_use(entry, file);
    note_send(entry, channels::of(file));
    let result = if length <= AT_ONCE_MAX || (scheduler::is_serial() && never_waits(file)) {
        when_ready(entry, file, POLL_OUT, call)
    } else {
        entry.blocking(call)
    };
    note_used(entry, file, result)
}

// How descriptors come and go.
//
// The kernel gives a number again only after it was closed. Programs that keep what belongs to a file
// in a table by its number rely on that.

/// The kernel gave the number `file`, if it is one.
pub unsafe fn note_open(entry: &Entry, file: c_int) -> c_int {
    if file >= 0 && !is_vfork_child() {
        log_receive(entry, channel::id(channel::DESCRIPTORS, file as u32), false);
    }
    file
}

/// The number `file` is about to be closed, if it is open: many programs close all that may be.
unsafe fn note_close(entry: &Entry, file: c_int) {
    if file >= 0 && !is_vfork_child() && sys::is_open(file) {
        entry.log_flags(Kind::Send, descriptor(file), flags_of_end(entry));
    }
}

/// The address under which events speak of the number `file`.
const fn descriptor(file: c_int) -> u64 {
    channel::address(channel::id(channel::DESCRIPTORS, file as u32))
}

/// Code of the program is about to use `file`.
pub unsafe fn note_use(entry: &Entry, file: c_int) {
    if file >= 0 && objects::is_instrumented(entry.code) && !is_vfork_child() {
        entry.log_flags(Kind::Receive, descriptor(file), flag::TRY | flag::SHARED);
    }
}

/// Code of the program has used `file` with a `result` that may say that it is not open.
unsafe fn note_used(entry: &Entry, file: c_int, result: isize) -> isize {
    const NOT_OPEN: c_int = 9;
    if result == -1
        && *__errno_location() == NOT_OPEN
        && file >= 0
        && objects::is_instrumented(entry.code)
        && !is_vfork_child()
        && !sys::is_open(file)
    {
        let flags = flag::TRY | flag::SHARED | flag::MISUSE;
        entry.log_flags(Kind::Receive, descriptor(file), flags);
    }
    result
}

/// Two descriptors were made, both of which lead to `id`.
unsafe fn pair(entry: &Entry, files: *const c_int, id: u32) {
    log_range(entry, Kind::WriteRange, files as usize, 2 * size_of::<c_int>());
    for file in [*files, *files.add(1)] {
        channels::set(note_open(entry, file), id);
    }
}

/// The two ends of a pipe were made, or not.
unsafe fn piped(entry: &Entry, result: c_int, files: *const c_int) -> c_int {
    if result == 0 {
        let status = channels::Status::new(*files);
        let id = status.and_then(|status| status.pipe());
        pair(entry, files, id.unwrap_or_else(|| channels::make(channel::PIPE)));
    }
    result
}

/// Makes a call that closes `file`, which whoever is at the other end can see.
pub unsafe fn closing<R>(entry: &Entry, file: c_int, call: impl FnOnce() -> R) -> R {
    note_close(entry, file);
    leaving(entry, file, call)
}

/// Makes a call after which `file`, or what is there then, no longer leads to where it did.
pub unsafe fn leaving<R>(entry: &Entry, file: c_int, call: impl FnOnce() -> R) -> R {
    let (raw, leaves_sets) = (channels::raw(file), channels::leaves_poll_sets(file));
    note_send(entry, channels::of(file));
    // Before it is closed: afterwards another thread may be given it.
    channels::forget(file);
    let result = call();
    if leaves_sets && !is_vfork_child() {
        channels::remove_from_poll_sets(entry, file, raw);
    }
    result
}

/// `file` was duplicated, or not.
unsafe fn duplicated(entry: &Entry, file: c_int, copy: c_int) -> c_int {
    note_used(entry, file, copy as isize);
    if copy >= 0 {
        channels::duplicate(file, copy);
    }
    note_open(entry, copy)
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
    note_use(entry, file);
    let before = channels::raw(copy);
    let result = leaving(entry, copy, call);
    if result < 0 {
        // It was not closed.
        channels::store(copy, before);
    }
    duplicated(entry, file, result)
}

/// Makes a call of `fcntl`, which can duplicate a descriptor or wait for a lock.
unsafe fn control(
    entry: &Entry,
    file: c_int,
    command: c_int,
    call: impl FnOnce() -> c_int,
) -> c_int {
    const DUPLICATE: c_int = 0;
    const DUPLICATE_CLOSED: c_int = 1030;
    const WAIT_FOR_LOCK: c_int = 7;
    const LOCK: core::ops::RangeInclusive<c_int> = 37..=38;
    match command {
        DUPLICATE | DUPLICATE_CLOSED => {
            note_use(entry, file);
            duplicated(entry, file, entry.nonblocking(call))
        }
        WAIT_FOR_LOCK => entry.blocking(call),
        _ if LOCK.contains(&command) => exchanging(entry, file_locks(), call),
        _ => entry.nonblocking(call),
    }
}

/// The address at `place`, as much of it as is known.
unsafe fn address_at(place: *const u8, length: usize) -> Option<channels::Address> {
    let mut address = [0; size_of::<channels::Address>()];
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
    let mut own: channels::Address = [0; size_of::<channels::Address>()];
    let mut own_length = size_of_val(&own) as c_uint;
    let room = room_at(length);
    // We want to know also if the program does not.
    let (to, to_length) = match address {
        0 => (&raw mut own as usize, &raw mut own_length as usize),
        _ => (address, length),
    };
    note_use(entry, socket);
    let accepted = when_ready(entry, socket, POLL_IN, || call(to, to_length));
    note_used(entry, socket, accepted as isize);
    note_open(entry, accepted);
    if accepted >= 0 {
        channels::set_socket(accepted);
        let filled = room_at(to_length).min(if address == 0 { own.len() } else { room });
        channels::connected(accepted, address_at(to as *const u8, filled));
        note_address(entry, address, length, room);
    }
    let result = if accepted < 0 { -1 } else { 1 };
    note_result(entry, Some(channel::id(channel::CONNECTIONS, 0)), result);
    accepted
}

// Messages of sockets: with addresses, in parts, several at once.

/// A message with its parts, as the kernel takes it.
#[repr(C)]
pub struct Message {
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
pub struct OneOfSeveral {
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
pub unsafe fn room_at(length: usize) -> usize {
    if length == 0 { 0 } else { *(length as *const c_uint) as usize }
}

/// Logs that the kernel wrote the address of a socket to `address`, where there was `room`, and its
/// length to `length`.
pub unsafe fn note_address(entry: &Entry, address: usize, length: usize, room: usize) {
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
        note_passed(entry, head);
    }
    let written = |place: usize, bytes: usize| log_range(entry, Kind::WriteRange, place, bytes);
    written(&raw const head.name_length as usize, size_of::<c_uint>());
    written(&raw const head.control_length as usize, size_of::<usize>());
    written(&raw const head.flags as usize, size_of::<c_int>());
}

/// Notes which descriptors came with a message.
unsafe fn note_passed(entry: &Entry, message: &Message) {
    /// What stands before each part of the control bytes.
    #[repr(C)]
    struct Head {
        length: usize,
        level: c_int,
        kind: c_int,
    }
    const SOCKETS: c_int = 1;
    const RIGHTS: c_int = 1;
    let mut place = 0;
    while place + size_of::<Head>() <= message.control_length {
        let start = message.control + place;
        let Head { length, level, kind } = (start as *const Head).read_unaligned();
        if length < size_of::<Head>() || length > message.control_length - place {
            break;
        }
        if (level, kind) == (SOCKETS, RIGHTS) {
            let first = (start + size_of::<Head>()) as *const c_int;
            for at in 0..(length - size_of::<Head>()) / size_of::<c_int>() {
                note_open(entry, first.add(at).read_unaligned());
            }
        }
        place += length.next_multiple_of(size_of::<usize>());
    }
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
    let channel = channels::of(socket);
    note_use(entry, socket);
    let result = entry.blocking(call);
    note_filled(entry, channel, parts, result);
    note_used(entry, socket, result)
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

// What the kernel moves from one descriptor to another, or to a pipe without a copy.

/// Makes a call that moves bytes from one descriptor to another.
unsafe fn moving(entry: &Entry, from: c_int, to: c_int, call: impl FnOnce() -> isize) -> isize {
    let channel = channels::of(from);
    note_use(entry, from);
    note_use(entry, to);
    note_send(entry, channels::of(to));
    let result = entry.blocking(call);
    note_result(entry, channel, result);
    // What was taken is handed over with all that came before it.
    if channel.is_some() {
        note_send(entry, channels::of(to));
    }
    result
}

// Looking whether descriptors are ready.
//
// Who looks takes nothing, but goes on because of what it saw, also if that was nothing.

/// A descriptor to look at, as the kernel takes it.
#[repr(C)]
pub struct Request {
    file: c_int,
    events: u16,
    seen: u16,
}

const LOOKS_MAX: usize = 1 << 16;

/// Logs that `count` descriptors were looked at, unless `result` is an error.
unsafe fn looked(entry: &Entry, requests: *const Request, count: usize, result: c_int) -> c_int {
    for place in 0..if result < 0 { 0 } else { count.min(LOOKS_MAX) } {
        note_receive(entry, channels::of((*requests.add(place)).file), false);
    }
    result
}

/// Makes a call of `select` for the first `count` descriptors, of which `set` says which are meant.
unsafe fn selecting(
    entry: &Entry,
    set: *const u64,
    count: c_int,
    call: impl FnOnce() -> c_int,
) -> c_int {
    // Read before the call: the kernel leaves only those that are ready.
    let mut wanted = [0_u64; 16];
    if !set.is_null() {
        let words = (count.max(0) as usize).div_ceil(64);
        for (place, word) in wanted.iter_mut().enumerate().take(words) {
            *word = set.add(place).read();
        }
    }
    let result = entry.blocking(call);
    for file in 0..if result < 0 { 0 } else { count.min(size_of_val(&wanted) as c_int * 8) } {
        if wanted[file as usize / 64] >> (file % 64) & 1 == 1 {
            note_receive(entry, channels::of(file), false);
        }
    }
    result
}

/// Makes a call that waits for the set `file` and writes events to `events`.
unsafe fn polled(entry: &Entry, file: c_int, events: usize, call: impl FnOnce() -> c_int) -> c_int {
    const EVENT_BYTES: usize = 12;
    note_use(entry, file);
    let result = entry.blocking(call);
    if result >= 0 {
        note_receive(entry, channels::of(file), result > 0);
        log_range(entry, Kind::WriteRange, events, result as usize * EVENT_BYTES);
    }
    result
}

/// Interceptors of functions that not every C library has.
#[cfg(not(reweave_static))]
pub mod dynamic {
    use super::*;

    interceptors! {
        fn epoll_pwait2(
            file: c_int, events: usize, count: c_int, timeout: usize, mask: usize,
        ) -> c_int |entry, call| {
            polled(&entry, file, events, call)
        }
    }
}

/// A set of descriptors was made, or not.
unsafe fn poll_set_created(entry: &Entry, set: c_int) -> c_int {
    note_open(entry, set);
    if set >= 0 {
        channels::set(set, channels::make_poll_set());
    }
    set
}

interceptors! {
    // What threads hand each other through the kernel: pipes, sockets, counters, queues, signals.
    fn read(file: c_int, address: usize, length: usize) -> isize |entry, call| {
        filling(&entry, file, &[Part { address, length }], call)
    }
    fn __read_chk(file: c_int, address: usize, length: usize, room: usize) -> isize |entry, call| {
        filling(&entry, file, &[Part { address, length }], call)
    }
    fn readv(file: c_int, list: *const Part, count: c_int) -> isize |entry, call| {
        filling(&entry, file, parts(list, usize::try_from(count).unwrap_or(0)), call)
    }
    fn [pread pread64](file: c_int, address: usize, length: usize, offset: c_long) -> isize |entry, call| {
        filling(&entry, file, &[Part { address, length }], call)
    }
    fn [__pread_chk __pread64_chk](
        file: c_int, address: usize, length: usize, offset: c_long, room: usize,
    ) -> isize |entry, call| {
        filling(&entry, file, &[Part { address, length }], call)
    }
    fn [preadv preadv64](file: c_int, list: *const Part, count: c_int, offset: c_long) -> isize |entry, call| {
        filling(&entry, file, parts(list, usize::try_from(count).unwrap_or(0)), call)
    }
    fn [pwritev pwritev64](file: c_int, list: *const Part, count: c_int, offset: c_long) -> isize |entry, call| {
        taking(&entry, file, parts(list, usize::try_from(count).unwrap_or(0)), call)
    }
    fn process_vm_readv(
        process: c_int, list: *const Part, count: usize, theirs: usize, their_count: usize, flags: usize,
    ) -> isize |entry, call| {
        let result = call();
        note_bytes(&entry, parts(list, count), usize::try_from(result).unwrap_or(0));
        result
    }
    fn process_vm_writev(
        process: c_int, list: *const Part, count: usize, theirs: usize, their_count: usize, flags: usize,
    ) -> isize |entry, call| {
        for part in parts(list, count) {
            log_range(&entry, Kind::ReadRange, part.address, part.length);
        }
        call()
    }
    fn ioctl(file: c_int, request: usize, argument: usize) -> c_int |entry, call| {
        // How much there is to be read.
        const READABLE: usize = 0x541b;
        let result = entry.nonblocking(call);
        if request == READABLE && result >= 0 {
            note_receive(&entry, channels::of(file), false);
            log_range(&entry, Kind::WriteRange, argument, size_of::<c_int>());
        }
        result
    }
    // A timer is a channel from whoever sets it to whoever sees that its time has come.
    fn timerfd_create(clock: c_int, flags: c_int) -> c_int |entry, call| {
        let result = note_open(&entry, entry.nonblocking(call));
        if result >= 0 {
            channels::set(result, channels::make(channel::COUNTER));
        }
        result
    }
    fn timerfd_settime(file: c_int, flags: c_int, new: usize, old: usize) -> c_int |entry, call| {
        const TIMER_BYTES: usize = 32;
        log_range(&entry, Kind::ReadRange, new, TIMER_BYTES);
        note_send(&entry, channels::of(file));
        let result = entry.nonblocking(call);
        if result == 0 && old != 0 {
            log_range(&entry, Kind::WriteRange, old, TIMER_BYTES);
        }
        result
    }
    fn write(file: c_int, address: usize, length: usize) -> isize |entry, call| {
        if file == STANDARD_ERROR {
            note_panic(entry.code, address, length);
        }
        taking(&entry, file, &[Part { address, length }], call)
    }
    fn writev(file: c_int, list: *const Part, count: c_int) -> isize |entry, call| {
        taking(&entry, file, parts(list, usize::try_from(count).unwrap_or(0)), call)
    }
    fn [pwrite pwrite64](file: c_int, address: usize, length: usize, offset: c_long) -> isize |entry, call| {
        taking(&entry, file, &[Part { address, length }], call)
    }

    // How descriptors come and go.
    fn pipe(files: *mut c_int) -> c_int |entry, call| { piped(&entry, entry.nonblocking(call), files) }
    fn pipe2(files: *mut c_int, flags: c_int) -> c_int |entry, call| {
        piped(&entry, entry.nonblocking(call), files)
    }
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, files: *mut c_int) -> c_int |entry, call| {
        let result = entry.nonblocking(call);
        if result == 0 {
            pair(&entry, files, channels::make(channel::SOCKET));
        }
        result
    }
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int |entry, call| {
        const KIND_MASK: c_int = 0xf;
        const STREAM: c_int = 1;
        const PACKETS: c_int = 5;
        const UNIX: c_int = 1;
        const INTERNET: c_int = 2;
        const INTERNET_6: c_int = 10;
        let result = note_open(&entry, entry.nonblocking(call));
        if result >= 0 && matches!(domain, UNIX | INTERNET | INTERNET_6) {
            match kind & KIND_MASK {
                STREAM | PACKETS => channels::set_socket(result),
                // It takes what any other sends, also if it sends to one only.
                _ => channels::set(result, channel::id(channel::SOCKET, 0)),
            }
        }
        result
    }
    fn listen(socket: c_int, count: c_int) -> c_int |entry, call| {
        let result = entry.nonblocking(call);
        if result == 0 && channels::raw(socket) == channels::SOCKET {
            channels::set(socket, channel::id(channel::CONNECTIONS, 0));
        }
        result
    }
    fn connect(socket: c_int, address: *const u8, length: c_uint) -> c_int |entry, call| {
        const INTERRUPTED: c_int = 4;
        const IN_PROGRESS: c_int = 115;
        note_send(&entry, Some(channel::id(channel::CONNECTIONS, 0)));
        let result = entry.blocking(call);
        if result == 0 || matches!(*__errno_location(), INTERRUPTED | IN_PROGRESS) {
            channels::connected(socket, address_at(address, length as usize));
        }
        result
    }
    fn accept(socket: c_int, address: usize, length: usize) -> c_int |entry, call| {
        accepting(&entry, socket, (address, length), |to, room| real(socket, to, room))
    }
    fn accept4(socket: c_int, address: usize, length: usize, flags: c_int) -> c_int |entry, call| {
        accepting(&entry, socket, (address, length), |to, room| {
            real(socket, to, room, flags)
        })
    }
    fn shutdown(socket: c_int, how: c_int) -> c_int |entry, call| {
        note_use(&entry, socket);
        note_send(&entry, channels::of(socket));
        entry.nonblocking(call)
    }
    fn eventfd(count: c_uint, flags: c_int) -> c_int |entry, call| {
        let result = note_open(&entry, entry.nonblocking(call));
        if result >= 0 {
            channels::set(result, channels::make(channel::COUNTER));
        }
        result
    }
    fn eventfd_read(file: c_int, value: usize) -> c_int |entry, call| {
        let channel = channels::of(file);
        note_use(&entry, file);
        let result = when_ready(&entry, file, POLL_IN, call);
        if result == 0 {
            note_receive(&entry, channel, true);
            log_range(&entry, Kind::WriteRange, value, size_of::<u64>());
        } else {
            note_result(&entry, channel, -1);
        }
        result
    }
    fn eventfd_write(file: c_int, value: u64) -> c_int |entry, call| {
        taking(&entry, file, &[], || call() as isize) as c_int
    }
    fn dup(file: c_int) -> c_int |entry, call| {
        note_use(&entry, file);
        duplicated(&entry, file, entry.nonblocking(call))
    }
    fn dup2(file: c_int, copy: c_int) -> c_int |entry, call| {
        replacing(&entry, file, copy, || entry.nonblocking(call))
    }
    fn dup3(file: c_int, copy: c_int, flags: c_int) -> c_int |entry, call| {
        replacing(&entry, file, copy, || entry.nonblocking(call))
    }
    fn [fcntl fcntl64](file: c_int, command: c_int, argument: usize) -> c_int |entry, call| {
        control(&entry, file, command, call)
    }
    fn memfd_create(name: usize, flags: c_uint) -> c_int |entry, call| { note_open(&entry, entry.nonblocking(call)) }
    fn inotify_init() -> c_int |entry, call| { note_open(&entry, entry.nonblocking(call)) }
    fn inotify_init1(flags: c_int) -> c_int |entry, call| { note_open(&entry, entry.nonblocking(call)) }
    fn close(file: c_int) -> c_int |entry, call| { closing(&entry, file, || entry.nonblocking(call)) }

    // Messages of sockets: with addresses, in parts, several at once.
    fn recv(socket: c_int, address: usize, length: usize, flags: c_int) -> isize |entry, call| {
        receiving(&entry, socket, flags, &[Part { address, length }], call)
    }
    fn __recv_chk(
        socket: c_int, address: usize, length: usize, room: usize, flags: c_int,
    ) -> isize |entry, call| {
        receiving(&entry, socket, flags, &[Part { address, length }], call)
    }
    fn recvfrom(
        socket: c_int, address: usize, length: usize, flags: c_int, from: usize, from_length: usize,
    ) -> isize |entry, call| {
        receiving_from(&entry, (socket, flags), Part { address, length }, (from, from_length), call)
    }
    fn __recvfrom_chk(
        socket: c_int, address: usize, length: usize, room: usize, flags: c_int, from: usize,
        from_length: usize,
    ) -> isize |entry, call| {
        receiving_from(&entry, (socket, flags), Part { address, length }, (from, from_length), call)
    }
    fn recvmsg(socket: c_int, message: *mut Message, flags: c_int) -> isize |entry, call| {
        let room = if message.is_null() { 0 } else { (*message).name_length as usize };
        let result = receiving(&entry, socket, flags, parts_of(message), call);
        if result >= 0 {
            note_rest(&entry, message, room);
        }
        result
    }
    fn recvmmsg(
        socket: c_int, list: *mut OneOfSeveral, count: c_uint, flags: c_int, timeout: usize,
    ) -> c_int |entry, call| {
        const WAIT_FOR_ONE: c_int = 0x10000;
        const DO_NOT_WAIT: c_int = 0x40;
        let mut rooms = [0_u32; MESSAGES_MAX];
        for (place, room) in rooms.iter_mut().enumerate().take(count as usize) {
            *room = (*list.add(place)).message.name_length;
        }
        let channel = channels::of(socket);
        note_use(&entry, socket);
        let waits_once = count == 1 || flags & (WAIT_FOR_ONE | DO_NOT_WAIT) != 0;
        let result = if waits_once && flags & WAIT_FOR_ALL == 0 {
            when_ready(&entry, socket, POLL_IN, call)
        } else {
            entry.blocking(call)
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
    fn send(socket: c_int, address: usize, length: usize, flags: c_int) -> isize |entry, call| {
        taking(&entry, socket, &[Part { address, length }], call)
    }
    fn sendto(
        socket: c_int, address: usize, length: usize, flags: c_int, to: usize, to_length: c_uint,
    ) -> isize |entry, call| {
        taking(&entry, socket, &[Part { address, length }], call)
    }
    fn sendmsg(socket: c_int, message: *const Message, flags: c_int) -> isize |entry, call| {
        taking(&entry, socket, parts_of(message), call)
    }
    fn sendmmsg(socket: c_int, list: *mut OneOfSeveral, count: c_uint, flags: c_int) -> c_int |entry, call| {
        for place in 0..MESSAGES_MAX.min(count as usize) {
            for part in parts_of(&raw const (*list.add(place)).message) {
                log_range(&entry, Kind::ReadRange, part.address, part.length);
            }
        }
        note_use(&entry, socket);
        note_send(&entry, channels::of(socket));
        let result = entry.blocking(call);
        for place in 0..usize::try_from(result).unwrap_or(0) {
            let length = &raw const (*list.add(place)).length as usize;
            log_range(&entry, Kind::WriteRange, length, size_of::<c_uint>());
        }
        result
    }

    // What the kernel moves from one descriptor to another, or to a pipe without a copy.
    fn [sendfile sendfile64](to: c_int, from: c_int, offset: usize, count: usize) -> isize |entry, call| {
        moving(&entry, from, to, call)
    }
    fn splice(
        from: c_int, from_offset: usize, to: c_int, to_offset: usize, count: usize, flags: c_uint,
    ) -> isize |entry, call| {
        moving(&entry, from, to, call)
    }
    fn tee(from: c_int, to: c_int, count: usize, flags: c_uint) -> isize |entry, call| {
        moving(&entry, from, to, call)
    }
    fn vmsplice(file: c_int, list: *const Part, count: usize, flags: c_uint) -> isize |entry, call| {
        taking(&entry, file, parts(list, count), call)
    }

    // Looking whether descriptors are ready.
    fn poll(requests: *mut Request, count: usize, timeout: c_int) -> c_int |entry, call| {
        looked(&entry, requests, count, entry.blocking(call))
    }
    fn ppoll(requests: *mut Request, count: usize, timeout: usize, mask: usize) -> c_int |entry, call| {
        looked(&entry, requests, count, entry.blocking(call))
    }
    fn __poll_chk(requests: *mut Request, count: usize, timeout: c_int, room: usize) -> c_int |entry, call| {
        looked(&entry, requests, count, entry.blocking(call))
    }
    fn __ppoll_chk(
        requests: *mut Request, count: usize, timeout: usize, mask: usize, room: usize,
    ) -> c_int |entry, call| {
        looked(&entry, requests, count, entry.blocking(call))
    }
    fn select(
        count: c_int, read: *mut u64, write: *mut u64, except: *mut u64, timeout: usize,
    ) -> c_int |entry, call| {
        selecting(&entry, read, count, call)
    }
    fn pselect(
        count: c_int, read: *mut u64, write: *mut u64, except: *mut u64, timeout: usize,
        mask: usize,
    ) -> c_int |entry, call| {
        selecting(&entry, read, count, call)
    }
    fn epoll_create(size: c_int) -> c_int |entry, call| { poll_set_created(&entry, entry.nonblocking(call)) }
    fn epoll_create1(flags: c_int) -> c_int |entry, call| { poll_set_created(&entry, entry.nonblocking(call)) }
    fn epoll_ctl(set: c_int, operation: c_int, file: c_int, event: usize) -> c_int |entry, call| {
        const ADD: c_int = 1;
        const REMOVE: c_int = 2;
        note_use(&entry, set);
        let Some(id) = channels::of(set) else {
            return entry.nonblocking(call);
        };
        if operation == ADD {
            channels::add_to_poll_set(&entry, id, file);
        }
        note_send(&entry, Some(id));
        let raw = channels::raw(file);
        let result = entry.nonblocking(call);
        if operation == REMOVE && result == 0 {
            channels::remove_from_poll_set(&entry, id, file, raw);
        }
        result
    }
    fn epoll_wait(file: c_int, events: usize, count: c_int, timeout: c_int) -> c_int |entry, call| {
        polled(&entry, file, events, call)
    }
    fn epoll_pwait(
        file: c_int, events: usize, count: c_int, timeout: c_int, mask: usize,
    ) -> c_int |entry, call| {
        polled(&entry, file, events, call)
    }
}
