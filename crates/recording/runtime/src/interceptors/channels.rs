//! Which channel a descriptor leads to.
//!
//! Pipes are distinguished by what the file system calls them, so that one with a name is the same
//! wherever it is opened. Connections between machines are distinguished by their two addresses, which
//! are asked for when the connection is made: a connection that was lost no longer reports. Sockets
//! that have no connection of that sort share one channel.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::io::{log_receive, note_receive, note_send};
use super::ipc::{has_child_processes, is_vfork_child};
use crate::log::Entry;
use crate::sys;
use crate::wire::channel;

/// The channel behind a descriptor; nothing where what is handed over leaves the program.
pub type Channel = Option<u32>;

/// The most descriptors that are known: more than a process may have unless it asks for more.
const FILES_MAX: usize = 1 << 16;

/// An entry of the table: 0, or one of these, or 1 + a channel.
pub const NONE: u32 = 0;

/// A socket that may not have a partner yet.
pub const SOCKET: u32 = u32::MAX;

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
pub fn store(file: c_int, raw: u32) {
    // A child that shares our memory has descriptors of its own.
    if is_vfork_child() {
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
pub fn make(kind: u32) -> u32 {
    channel::id(kind, MADE.fetch_add(1, Ordering::Relaxed) + 1)
}

/// `file` leads to `channel` from now on.
pub fn set(file: c_int, channel: u32) {
    store(file, channel + 1);
}

/// `file` was opened; it leads somewhere if it is a pipe.
pub fn set_pipe(file: c_int) {
    if let Some(pipe) = Status::new(file).and_then(|status| status.pipe()) {
        set(file, pipe);
    }
}

/// `file` is a socket that can be connected.
pub fn set_socket(file: c_int) {
    _ = SOCKET_MAKER.compare_exchange(0, sys::getpid(), Ordering::Relaxed, Ordering::Relaxed);
    store(file, SOCKET);
}

/// `file` was connected to `peer`, an address, unless the kernel knows better.
pub fn connected(file: c_int, peer: Option<Address>) {
    if raw(file) == SOCKET
        && let Some(channel) = connection(file, peer)
    {
        store(file, channel.map_or(NONE, |channel| channel + 1));
    }
}

/// `copy` leads to where `file` does.
pub fn duplicate(file: c_int, copy: c_int) {
    if file == copy || is_vfork_child() {
        return;
    }
    store(copy, raw(file));
    for file in [file, copy] {
        mark(file, DUPLICATED);
    }
}

/// `file` leads nowhere any more.
pub fn forget(file: c_int) {
    store(file, NONE);
    if !is_vfork_child()
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

/// Whether sets lose `file` when it is closed.
pub fn leaves_poll_sets(file: c_int) -> bool {
    let marks = entry(&MARKS, file).map_or(0, |entry| entry.load(Ordering::Relaxed));
    // What another process has, too, stays in sets.
    marks == POLLED && !has_child_processes()
}

/// The entry of `file`.
pub fn raw(file: c_int) -> u32 {
    entry(&CHANNELS, file).map_or(NONE, |entry| entry.load(Ordering::Relaxed))
}

/// Where `file` leads.
pub fn of(file: c_int) -> Channel {
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
pub fn each(mut visit: impl FnMut(u32)) {
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
pub struct Status([u64; 18]);

impl Status {
    const KIND_MASK: u32 = 0o170_000;

    /// That of the descriptor `file`.
    pub fn new(file: c_int) -> Option<Self> {
        const FSTAT: usize = 5;
        let mut status = Self([0; 18]);
        let arguments = [file as usize, &raw mut status.0 as usize, 0, 0, 0, 0];
        // SAFETY: the kernel writes as many bytes as there are.
        (unsafe { sys::call(FSTAT, arguments) } == 0).then_some(status)
    }

    /// That of the file at `path`, seen from `folder`.
    pub unsafe fn at(folder: c_int, path: usize) -> Option<Self> {
        const NEWFSTATAT: usize = 262;
        let mut status = Self([0; 18]);
        let arguments = [folder as usize, path, &raw mut status.0 as usize, 0, 0, 0];
        (sys::call(NEWFSTATAT, arguments) == 0).then_some(status)
    }

    fn is(&self, kind: u32) -> bool {
        self.0[3] as u32 & Self::KIND_MASK == kind
    }

    /// Whether it is an ordinary file.
    pub fn is_regular(&self) -> bool {
        self.is(0o100_000)
    }

    /// The channel of a pipe.
    pub fn pipe(&self) -> Channel {
        let bytes = self.0[..2].iter().flat_map(|word| word.to_ne_bytes());
        self.is(0o010_000).then(|| channel::id(channel::PIPE, hash(bytes)))
    }
}

const ADDRESS_BYTES: usize = 128;

/// The address of a socket, as the kernel takes it.
pub type Address = [u8; ADDRESS_BYTES];

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

// What is in the sets of descriptors that are polled together.
//
// A thread that waits for a set goes on because of any descriptor in it, and the kernel does not say
// which one: the program chooses what the kernel answers. So a set has a list of what was added, and
// who waits observes all of it. A list without room, or a set without a list, observes a channel to
// which everything is sent from then on.
//
// A descriptor leaves a list after it has left the set: whoever removes it has observed it and then
// sends to the set, which everyone who waits observes last. So who does not find it in the list any
// more still comes after those who made it ready.

const SETS_MAX: usize = 128;

const PLACES_MAX: usize = 256;

/// Sets can be in sets; the kernel does not let them be deeper.
const DEPTH_MAX: u32 = 5;

struct PollSet {
    /// A descriptor and where it leads, as the table has it; 0 where nothing is.
    places: [AtomicU64; PLACES_MAX],
    /// One more than the last place that was ever taken.
    end: AtomicU32,
    is_full: AtomicBool,
}

static POLL_SETS: [PollSet; SETS_MAX] = [const {
    PollSet {
        places: [const { AtomicU64::new(0) }; PLACES_MAX],
        end: AtomicU32::new(0),
        is_full: AtomicBool::new(false),
    }
}; SETS_MAX];

static POLL_SETS_MADE: AtomicU32 = AtomicU32::new(0);

static IS_ANY_FULL: AtomicBool = AtomicBool::new(false);

/// To which all is handed once something is in no poll_set.
pub const ANY_POLL_SET: u32 = channel::id(channel::POLL, 0);

/// Whether something is in a set but in no poll_set.
pub fn is_any_poll_set_full() -> bool {
    IS_ANY_FULL.load(Ordering::SeqCst)
}

/// The channel of a new set.
pub fn make_poll_set() -> u32 {
    channel::id(channel::POLL, POLL_SETS_MADE.fetch_add(1, Ordering::Relaxed) + 1)
}

fn poll_set(set: u32) -> Option<&'static PollSet> {
    let number = channel::number(set) as usize;
    POLL_SETS.get(number.checked_sub(1)?)
}

const fn place(file: c_int, raw: u32) -> u64 {
    (file as u32 as u64) << 32 | raw as u64
}

impl PollSet {
    fn taken(&self) -> &[AtomicU64] {
        &self.places[..self.end.load(Ordering::Acquire) as usize]
    }

    /// Whether there is room for `wanted`, which has its place then.
    fn add(&self, wanted: u64) -> bool {
        if self.taken().iter().any(|place| place.load(Ordering::Relaxed) == wanted) {
            return true;
        }
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        for (number, place) in self.places.iter().enumerate() {
            if place.compare_exchange(0, wanted, success, failure).is_ok() {
                self.end.fetch_max(number as u32 + 1, Ordering::AcqRel);
                return true;
            }
        }
        self.is_full.store(true, Ordering::SeqCst);
        false
    }

    /// The place where `wanted` is.
    fn find(&self, wanted: u64) -> Option<&AtomicU64> {
        self.taken().iter().find(|place| place.load(Ordering::Relaxed) == wanted)
    }
}

/// `file` is about to be added to `set`.
pub unsafe fn add_to_poll_set(entry: &Entry, set: u32, file: c_int) {
    let raw = raw(file);
    if raw == NONE {
        return;
    }
    mark(file, POLLED);
    if !poll_set(set).is_some_and(|poll_set| poll_set.add(place(file, raw))) {
        // What was handed over until now did not go to the channel of all.
        IS_ANY_FULL.store(true, Ordering::SeqCst);
        note_receive(entry, of(file), false);
    }
}

/// `file`, which led to where `raw` says, is not in `set` any more.
pub unsafe fn remove_from_poll_set(entry: &Entry, set: u32, file: c_int, raw: u32) {
    let Some(place) = poll_set(set).and_then(|poll_set| poll_set.find(place(file, raw))) else {
        return;
    };
    // Where a socket leads that had no partner when it was added may not be known any more.
    if raw != SOCKET {
        note_receive(entry, raw.checked_sub(1), false);
        note_send(entry, Some(set));
        place.store(0, Ordering::Release);
    }
}

/// `file`, which led to where `raw` says, is not in any set any more.
pub unsafe fn remove_from_poll_sets(entry: &Entry, file: c_int, raw: u32) {
    let count = POLL_SETS_MADE.load(Ordering::Relaxed).min(SETS_MAX as u32);
    for number in 1..=count {
        remove_from_poll_set(entry, channel::id(channel::POLL, number), file, raw);
    }
}

/// Logs that all that is in `set`, which is in `depth` others, was looked at.
pub unsafe fn observe_poll_set(entry: &Entry, set: u32, depth: u32) {
    let Some(poll_set) = poll_set(set).filter(|_| depth < DEPTH_MAX) else {
        return log_receive(entry, ANY_POLL_SET, false);
    };
    for place in poll_set.taken() {
        let (file, raw) = match place.load(Ordering::Acquire) {
            0 => continue,
            place => ((place >> 32) as c_int, place as u32),
        };
        let channel = if raw == SOCKET { of(file) } else { raw.checked_sub(1) };
        match channel {
            Some(inner) if channel::kind(inner) == channel::POLL => {
                observe_poll_set(entry, inner, depth + 1);
                log_receive(entry, inner, false);
            }
            channel => note_receive(entry, channel, false),
        }
    }
    if poll_set.is_full.load(Ordering::SeqCst) {
        log_receive(entry, ANY_POLL_SET, false);
    }
}
