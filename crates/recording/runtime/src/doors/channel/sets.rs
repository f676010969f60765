//! What is in the sets of descriptors that are polled together.
//!
//! Who waits for a set goes on because of any descriptor in it, and the kernel does not say which
//! one it told of: the program chooses what it is told. So a set has a list of what was added, and
//! who waits looks at all of it. A list that has no more room, or a set for which there is no list,
//! looks at a channel to which everything is handed from then on.
//!
//! A descriptor leaves a list after it has left the set: whoever takes it out has looked at it and
//! tells the set, at which everyone who waits looks last. So who does not find it in the list any
//! more still comes after those who made it ready.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::{log_receive, note_receive, note_send, table};
use crate::log::Entry;
use crate::wire::channel;

const SETS_MAX: usize = 128;
const PLACES_MAX: usize = 256;
/// Sets can be in sets; the kernel does not let them be deeper.
const DEPTH_MAX: u32 = 5;

struct List {
    /// A descriptor and where it leads, as the table has it; 0 where nothing is.
    places: [AtomicU64; PLACES_MAX],
    /// One more than the last place that was ever taken.
    end: AtomicU32,
    is_full: AtomicBool,
}

static LISTS: [List; SETS_MAX] = [const {
    List {
        places: [const { AtomicU64::new(0) }; PLACES_MAX],
        end: AtomicU32::new(0),
        is_full: AtomicBool::new(false),
    }
}; SETS_MAX];
static MADE: AtomicU32 = AtomicU32::new(0);
static IS_ANY_FULL: AtomicBool = AtomicBool::new(false);

/// To which all is handed once something is in no list.
pub(super) const ANY: u32 = channel::id(channel::POLL, 0);

/// Whether something is in a set but in no list.
pub(super) fn is_any_full() -> bool {
    IS_ANY_FULL.load(Ordering::SeqCst)
}

/// The channel of a new set.
pub(super) fn make() -> u32 {
    channel::id(channel::POLL, MADE.fetch_add(1, Ordering::Relaxed) + 1)
}

fn list(set: u32) -> Option<&'static List> {
    let number = channel::number(set) as usize;
    LISTS.get(number.checked_sub(1)?)
}

const fn place(file: c_int, raw: u32) -> u64 {
    (file as u32 as u64) << 32 | raw as u64
}

impl List {
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
pub(super) unsafe fn add(entry: &Entry, set: u32, file: c_int) {
    let raw = table::raw(file);
    if raw == table::NONE {
        return;
    }
    table::mark_polled(file);
    if !list(set).is_some_and(|list| list.add(place(file, raw))) {
        // What was handed over until now did not go to the channel of all.
        IS_ANY_FULL.store(true, Ordering::SeqCst);
        note_receive(entry, table::of(file), false);
    }
}

/// `file`, which led to where `raw` says, is not in `set` any more.
pub(super) unsafe fn remove(entry: &Entry, set: u32, file: c_int, raw: u32) {
    let Some(place) = list(set).and_then(|list| list.find(place(file, raw))) else { return };
    // Where a socket leads that had no partner when it was added may not be known any more.
    if raw != table::SOCKET {
        note_receive(entry, raw.checked_sub(1), false);
        note_send(entry, Some(set));
        place.store(0, Ordering::Release);
    }
}

/// `file`, which led to where `raw` says, is not in any set any more.
pub(super) unsafe fn remove_everywhere(entry: &Entry, file: c_int, raw: u32) {
    let count = MADE.load(Ordering::Relaxed).min(SETS_MAX as u32);
    for number in 1..=count {
        remove(entry, channel::id(channel::POLL, number), file, raw);
    }
}

/// Logs that all that is in `set` was looked at.
pub(super) unsafe fn look(entry: &Entry, set: u32) {
    look_at(entry, set, 0);
}

unsafe fn look_at(entry: &Entry, set: u32, depth: u32) {
    let Some(list) = list(set).filter(|_| depth < DEPTH_MAX) else {
        return log_receive(entry, ANY, false);
    };
    for place in list.taken() {
        let (file, raw) = match place.load(Ordering::Acquire) {
            0 => continue,
            place => ((place >> 32) as c_int, place as u32),
        };
        let channel = if raw == table::SOCKET { table::of(file) } else { raw.checked_sub(1) };
        match channel {
            Some(inner) if channel::kind(inner) == channel::POLL => {
                look_at(entry, inner, depth + 1);
                log_receive(entry, inner, false);
            }
            channel => note_receive(entry, channel, false),
        }
    }
    if list.is_full.load(Ordering::SeqCst) {
        log_receive(entry, ANY, false);
    }
}
