//! Which channel a descriptor leads to.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::sys;
use crate::wire::channel;

/// The channel behind a descriptor; nothing where what is handed over leaves the program.
pub(super) type Channel = Option<u32>;

/// The most descriptors that are known: more than a process may have unless it asks for more.
const FILES_MAX: usize = 1 << 16;

/// An entry of the table: 0, or one of these, or 1 + a channel.
const NONE: u32 = 0;
/// A socket that may not have a partner yet.
const SOCKET: u32 = u32::MAX;

type Table = [AtomicU32; FILES_MAX];

static CHANNELS: Table = [const { AtomicU32::new(NONE) }; FILES_MAX];
/// The set of descriptors in which a counter is.
static POLLED: Table = [const { AtomicU32::new(NONE) }; FILES_MAX];
static MADE: AtomicU32 = AtomicU32::new(0);

fn entry(table: &Table, file: c_int) -> Option<&AtomicU32> {
    table.get(usize::try_from(file).ok()?)
}

/// A new channel of `kind`.
pub(super) fn make(kind: u32) -> u32 {
    channel::id(kind, MADE.fetch_add(1, Ordering::Relaxed) + 1)
}

/// `file` leads to `channel` from now on.
pub(super) fn set(file: c_int, channel: u32) {
    if let Some(entry) = entry(&CHANNELS, file) {
        entry.store(channel + 1, Ordering::Relaxed);
    }
}

/// `file` is a socket.
pub(super) fn set_socket(file: c_int) {
    if let Some(entry) = entry(&CHANNELS, file) {
        entry.store(SOCKET, Ordering::Relaxed);
    }
}

/// `copy` leads to where `file` does.
pub(super) fn duplicate(file: c_int, copy: c_int) {
    if let (Some(from), Some(to)) = (entry(&CHANNELS, file), entry(&CHANNELS, copy)) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// `file` leads nowhere any more.
pub(super) fn forget(file: c_int) {
    for table in [&CHANNELS, &POLLED] {
        if let Some(entry) = entry(table, file) {
            entry.store(NONE, Ordering::Relaxed);
        }
    }
}

/// The counter `file` is in the set `set` of descriptors.
pub(super) fn set_poll(file: c_int, set: c_int) {
    let is_counter = of(file).is_some_and(|id| channel::kind(id) == channel::COUNTER);
    if let (true, Some(entry), Some(set)) = (is_counter, entry(&POLLED, file), of(set)) {
        entry.store(set + 1, Ordering::Relaxed);
    }
}

/// The set of descriptors in which the counter `file` is.
pub(super) fn poll_of(file: c_int) -> Channel {
    entry(&POLLED, file)?.load(Ordering::Relaxed).checked_sub(1)
}

/// Where `file` leads.
pub(super) fn of(file: c_int) -> Channel {
    let entry = entry(&CHANNELS, file)?;
    match entry.load(Ordering::Relaxed) {
        SOCKET => {
            let (channel, is_for_good) = connection(file);
            if is_for_good {
                entry.store(channel.map_or(NONE, |channel| channel + 1), Ordering::Relaxed);
            }
            channel
        }
        known => known.checked_sub(1),
    }
}

/// The channel of the socket `file`, and whether it stays.
fn connection(file: c_int) -> (Channel, bool) {
    const GETSOCKNAME: usize = 51;
    const GETPEERNAME: usize = 52;
    const UNIX: u8 = 1;
    let shared = Some(channel::id(channel::SOCKET, 0));
    let (Some(own), Some(peer)) = (address(GETSOCKNAME, file), address(GETPEERNAME, file)) else {
        return (shared, false);
    };
    if own[0] == UNIX {
        let is_outside = peer_process(file).is_some_and(|peer| peer != sys::getpid());
        return (shared.filter(|_| !is_outside), true);
    }
    // Both ends have the same two addresses. Zero is taken.
    let number = hash(&own).wrapping_add(hash(&peer)) | 1;
    (Some(channel::id(channel::SOCKET, number)), true)
}

const ADDRESS_BYTES: usize = 128;

fn address(call: usize, file: c_int) -> Option<[u8; ADDRESS_BYTES]> {
    let mut address = [0; ADDRESS_BYTES];
    let mut length = ADDRESS_BYTES as u32;
    let arguments = [file as usize, &raw mut address as usize, &raw mut length as usize, 0, 0, 0];
    // SAFETY: the kernel writes at most as many bytes as the length says.
    (unsafe { sys::call(call, arguments) } == 0).then_some(address)
}

/// The process at the other end of a socket within the machine.
fn peer_process(file: c_int) -> Option<u32> {
    const GETSOCKOPT: usize = 55;
    const SOCKET_LEVEL: usize = 1;
    const PEER: usize = 17;
    let mut peer = [0_u32; 3];
    let mut length = size_of_val(&peer) as u32;
    let (place, length) = (&raw mut peer as usize, &raw mut length as usize);
    let arguments = [file as usize, SOCKET_LEVEL, PEER, place, length, 0];
    // SAFETY: the kernel writes at most as many bytes as the length says.
    (unsafe { sys::call(GETSOCKOPT, arguments) } == 0).then_some(peer[0])
}

/// A number for the port and the last four bytes of an address: the same for an address and for the
/// longer one that contains it.
fn hash(address: &[u8; ADDRESS_BYTES]) -> u32 {
    const LONG: u8 = 10;
    let from = if address[0] == LONG { 20 } else { 4 };
    let bytes = address[2..4].iter().chain(&address[from..from + 4]);
    bytes.fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
