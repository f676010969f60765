//! What Rust's standard library does where no compiler looks: told by shims at link time.
//!
//! The numbers are those of the recorder's `lift::shims::what`, and so is what is logged for each.

use crate::log::{self, More};
use crate::wire::{Kind, flag};
use crate::{replay, turn};

const ACQUIRE: u32 = 2;
const RELEASE: u32 = 3;
const BOTH: u32 = 4;

/// Called by a shim: `what` happened to the thing at `object`, in code that returns to `code`.
#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn reweave_std_event(what: u32, object: usize, code: usize, extra: usize) {
    let Some(entry) = log::enter(code as u64) else { return };
    let object = object as u64;
    let plain = More::default();
    let shared = More { flags: flag::SHARED, ..plain };
    let mutex = More { extra: Some(extra as u64), ..plain };
    let ordered = |order: u32| More { order, ..plain };
    let (kind, more) = match what {
        1 | 5 => (Kind::LockRequest, plain),
        2 | 6 => (Kind::Lock, plain),
        3 => (Kind::LockRequest, shared),
        4 => (Kind::Lock, shared),
        7 => (Kind::Wait, mutex),
        8 => (Kind::Wake, mutex),
        9 => (Kind::Wake, More { flags: flag::TIMED_OUT, ..mutex }),
        10 => (Kind::Signal, plain),
        11 => (Kind::Broadcast, plain),
        12 => (Kind::OnceDone, ordered(BOTH)),
        13 => (Kind::OnceDone, ordered(RELEASE)),
        14 => (Kind::OnceDone, ordered(ACQUIRE)),
        15 => (Kind::Park, plain),
        16 => (Kind::AtomicUpdate, ordered(RELEASE)),
        17 => (Kind::AtomicUpdate, ordered(BOTH)),
        18 => (Kind::AtomicLoad, ordered(ACQUIRE)),
        _ => return,
    };
    let thread = entry.thread;
    if kind == Kind::Lock {
        (*thread).wants = 0;
    }
    entry.log_more(kind, object, more);
    if kind == Kind::LockRequest {
        // The function that follows waits by itself; it is called because the lock is taken.
        turn::settle(thread);
        ((*thread).wants, (*thread).wants_at) = (object, entry.code);
        replay::blocked(thread);
    }
}
