//! Which channel a descriptor leads to.
//!
//! Pipes are told apart by what the file system calls them, so that one with a name is the same
//! wherever it is opened. Connections between machines are told apart by their two addresses, which
//! are asked for when the connection is made: a connection that was lost no longer tells. Sockets
//! that have no connection of that sort share one channel.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};

use super::children;
use crate::sys;
use crate::wire::channel;

/// The channel behind a descriptor; nothing where what is handed over leaves the program.
pub(super) type Channel = Option<u32>;

/// The most descriptors that are known: more than a process may have unless it asks for more.
const FILES_MAX: usize = 1 << 16;

/// An entry of the table: 0, or one of these, or 1 + a channel.
pub(super) const NONE: u32 = 0;
/// A socket that may not have a partner yet.
pub(super) const SOCKET: u32 = u32::MAX;

/// The descriptor was added to a set.
const POLLED: u32 = 1;
/// The descriptor has a copy, or is one.
const DUPLICATED: u32 = 2;

type Table = [AtomicU32; FILES_MAX];

static CHANNELS: Table = [const { AtomicU32::new(NONE) }; FILES_MAX];
static MARKS: Table = [const { AtomicU32::new(0) }; FILES_MAX];
static MADE: AtomicU32 = AtomicU32::new(0);
/// One more than the greatest descriptor that led somewhere.
static END: AtomicU32 = AtomicU32::new(0);
/// The process that made the first socket.
static SOCKET_MAKER: AtomicU32 = AtomicU32::new(0);

fn entry(table: &Table, file: c_int) -> Option<&AtomicU32> {
    table.get(usize::try_from(file).ok()?)
}

/// The entry of `file` is `raw` from now on.
pub(super) fn store(file: c_int, raw: u32) {
    // A child that shares our memory has descriptors of its own.
    if children::is_guest() {
        return;
    }
    if let Some(entry) = entry(&CHANNELS, file) {
        entry.store(raw, Ordering::Relaxed);
        if raw != NONE {
            END.fetch_max(file as u32 + 1, Ordering::Relaxed);
        }
    }
}

/// A new channel of `kind`.
pub(super) fn make(kind: u32) -> u32 {
    channel::id(kind, MADE.fetch_add(1, Ordering::Relaxed) + 1)
}

/// `file` leads to `channel` from now on.
pub(super) fn set(file: c_int, channel: u32) {
    store(file, channel + 1);
}

/// `file` was opened; it leads somewhere if it is a pipe.
pub(super) fn set_pipe(file: c_int) {
    if let Some(pipe) = Status::new(file).and_then(|status| status.pipe()) {
        set(file, pipe);
    }
}

/// `file` is a socket that can be connected.
pub(super) fn set_socket(file: c_int) {
    _ = SOCKET_MAKER.compare_exchange(0, sys::getpid(), Ordering::Relaxed, Ordering::Relaxed);
    store(file, SOCKET);
}

/// `file` was connected to `peer`, an address, unless the kernel knows better.
pub(super) fn connected(file: c_int, peer: Option<Address>) {
    if raw(file) == SOCKET
        && let Some(channel) = connection(file, peer)
    {
        store(file, channel.map_or(NONE, |channel| channel + 1));
    }
}

/// `copy` leads to where `file` does.
pub(super) fn duplicate(file: c_int, copy: c_int) {
    if file == copy || children::is_guest() {
        return;
    }
    store(copy, raw(file));
    for file in [file, copy] {
        mark(file, DUPLICATED);
    }
}

/// `file` leads nowhere any more.
pub(super) fn forget(file: c_int) {
    store(file, NONE);
    if !children::is_guest()
        && let Some(entry) = entry(&MARKS, file)
    {
        entry.store(0, Ordering::Relaxed);
    }
}

fn mark(file: c_int, mark: u32) {
    if let Some(entry) = entry(&MARKS, file) {
        entry.fetch_or(mark, Ordering::Relaxed);
    }
}

/// `file` was added to a set.
pub(super) fn mark_polled(file: c_int) {
    mark(file, POLLED);
}

/// Whether sets lose `file` when it is closed.
pub(super) fn leaves_sets(file: c_int) -> bool {
    let marks = entry(&MARKS, file).map_or(0, |entry| entry.load(Ordering::Relaxed));
    // What another process has, too, stays in sets.
    marks == POLLED && !children::are_there()
}

/// The entry of `file`.
pub(super) fn raw(file: c_int) -> u32 {
    entry(&CHANNELS, file).map_or(NONE, |entry| entry.load(Ordering::Relaxed))
}

/// Where `file` leads.
pub(super) fn of(file: c_int) -> Channel {
    match raw(file) {
        SOCKET => match connection(file, None) {
            Some(channel) => {
                store(file, channel.map_or(NONE, |channel| channel + 1));
                channel
            }
            // What is handed over before there is a connection comes with it.
            None => Some(channel::id(channel::CONNECTIONS, 0)),
        },
        known => known.checked_sub(1),
    }
}

/// Calls `visit` with every channel to which a descriptor leads, most of them once.
pub(super) fn each(mut visit: impl FnMut(u32)) {
    let mut last = None;
    for entry in &CHANNELS[..END.load(Ordering::Relaxed) as usize] {
        let raw = entry.load(Ordering::Relaxed);
        // The two ends of a pipe are mostly neighbours.
        if raw != NONE && raw != SOCKET && last.replace(raw) != Some(raw) {
            visit(raw - 1);
        }
    }
}

/// What the kernel says of a file.
pub(super) struct Status([u64; 18]);

impl Status {
    const KIND_MASK: u32 = 0o170_000;

    /// That of the descriptor `file`.
    pub(super) fn new(file: c_int) -> Option<Self> {
        const FSTAT: usize = 5;
        let mut status = Self([0; 18]);
        let arguments = [file as usize, &raw mut status.0 as usize, 0, 0, 0, 0];
        // SAFETY: the kernel writes as many bytes as there are.
        (unsafe { sys::call(FSTAT, arguments) } == 0).then_some(status)
    }

    /// That of the file at `path`, seen from `folder`.
    pub(super) unsafe fn at(folder: c_int, path: usize) -> Option<Self> {
        const NEWFSTATAT: usize = 262;
        let mut status = Self([0; 18]);
        let arguments = [folder as usize, path, &raw mut status.0 as usize, 0, 0, 0];
        (sys::call(NEWFSTATAT, arguments) == 0).then_some(status)
    }

    fn is(&self, kind: u32) -> bool {
        self.0[3] as u32 & Self::KIND_MASK == kind
    }

    /// Whether it is an ordinary file.
    pub(super) fn is_regular(&self) -> bool {
        self.is(0o100_000)
    }

    /// The channel of a pipe.
    pub(super) fn pipe(&self) -> Channel {
        let bytes = self.0[..2].iter().flat_map(|word| word.to_ne_bytes());
        self.is(0o010_000).then(|| channel::id(channel::PIPE, hash(bytes)))
    }
}

const ADDRESS_BYTES: usize = 128;

/// The address of a socket, as the kernel takes it.
pub(super) type Address = [u8; ADDRESS_BYTES];

/// The channel of the socket `file`, if it is connected or `given` says to whom.
fn connection(file: c_int, given: Option<Address>) -> Option<Channel> {
    const GETSOCKNAME: usize = 51;
    const GETPEERNAME: usize = 52;
    const UNIX: u8 = 1;
    const PROTOCOL: usize = 38;
    const TCP: u32 = 6;
    let shared = Some(channel::id(channel::SOCKET, 0));
    let own = address(GETSOCKNAME, file)?;
    let peer = address(GETPEERNAME, file).or(given)?;
    if own[0] == UNIX {
        return Some(shared.filter(|_| !is_outside(file)));
    }
    if option(file, PROTOCOL) != Some(TCP) {
        return Some(shared);
    }
    // Who connects to no address in particular connects to its own.
    let (own_port, own_place) = port_and_place(&own);
    let (peer_port, peer_place) = port_and_place(&peer);
    let peer_place = if peer_place == [0; 4] { own_place } else { peer_place };
    // Both ends have the same two addresses. Zero is taken.
    let end = |port: [u8; 2], place: [u8; 4]| hash(port.into_iter().chain(place));
    let number = end(own_port, own_place).wrapping_add(end(peer_port, peer_place)) | 1;
    Some(Some(channel::id(channel::SOCKET, number)))
}

/// Whether the other end of a socket within the machine is in another process.
fn is_outside(file: c_int) -> bool {
    const PEER: usize = 17;
    let process = sys::getpid();
    // A child may have inherited both ends, or one and what accepts the other: the kernel then names
    // its parent.
    let is_maker = SOCKET_MAKER.load(Ordering::Relaxed) == process;
    is_maker && option(file, PEER).is_some_and(|peer| peer != process)
}

fn address(call: usize, file: c_int) -> Option<Address> {
    let mut address = [0; ADDRESS_BYTES];
    let mut length = ADDRESS_BYTES as u32;
    let arguments = [file as usize, &raw mut address as usize, &raw mut length as usize, 0, 0, 0];
    // SAFETY: the kernel writes at most as many bytes as the length says.
    (unsafe { sys::call(call, arguments) } == 0).then_some(address)
}

/// The first word of an option of a socket.
fn option(file: c_int, name: usize) -> Option<u32> {
    const GETSOCKOPT: usize = 55;
    const SOCKET_LEVEL: usize = 1;
    let mut words = [0_u32; 3];
    let mut length = size_of_val(&words) as u32;
    let (place, length) = (&raw mut words as usize, &raw mut length as usize);
    let arguments = [file as usize, SOCKET_LEVEL, name, place, length, 0];
    // SAFETY: the kernel writes at most as many bytes as the length says.
    (unsafe { sys::call(GETSOCKOPT, arguments) } == 0).then_some(words[0])
}

/// The port and the last four bytes of an address: the same for an address and for the longer one
/// that contains it.
fn port_and_place(address: &Address) -> ([u8; 2], [u8; 4]) {
    const LONG: u8 = 10;
    let from = if address[0] == LONG { 20 } else { 4 };
    let byte = |place: usize| address[place];
    ([byte(2), byte(3)], [byte(from), byte(from + 1), byte(from + 2), byte(from + 3)])
}

fn hash(bytes: impl Iterator<Item = u8>) -> u32 {
    let hash = bytes
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash ^ hash >> 28
}
