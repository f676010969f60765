//! What Rust's standard library does where no compiler looks, as numbers.
//!
//! Wrappers around functions of the standard library report such a number to the runtime, and the runtime
//! logs what [`logged`] says. The numbers stand in the assembly of the wrappers, so they are the same
//! for who writes it and who is called by it.

use crate::wire::{Kind, flag, order};

/// About to wait for the mutex at `object`.
pub const MUTEX_REQUEST: u32 = 1;
/// The mutex at `object` was taken.
pub const MUTEX_ACQUIRED: u32 = 2;
/// About to wait for the shared mode of the lock at `object`.
pub const READ_REQUEST: u32 = 3;
/// The lock at `object` was taken in shared mode.
pub const READ_ACQUIRED: u32 = 4;
/// About to wait for the exclusive mode of the lock at `object`.
pub const WRITE_REQUEST: u32 = 5;
/// The lock at `object` was taken in exclusive mode.
pub const WRITE_ACQUIRED: u32 = 6;
/// About to wait on the condition at `object`, releasing the mutex `extra`.
pub const CONDITION_WAIT: u32 = 7;
/// The wait on `object` is over and the mutex `extra` taken again.
pub const CONDITION_WAKE: u32 = 8;
/// The same after its time had passed.
pub const CONDITION_TIMED_OUT: u32 = 9;
/// About to wake one waiter of the condition at `object`.
pub const NOTIFY_ONE: u32 = 10;
/// About to wake all waiters of the condition at `object`.
pub const NOTIFY_ALL: u32 = 11;
/// The function of the `Once` at `object` starts.
pub const ONCE_RUNS: u32 = 12;
/// That function has ended and the `Once` is about to be done.
pub const ONCE_ENDS: u32 = 13;
/// The `Once` at `object` was found done, perhaps after waiting.
pub const ONCE_FOUND: u32 = 14;
/// The thread returned from parking; `object` is where the thread's own data start.
pub const PARKED: u32 = 15;
/// A thread of a scope has ended; `object` is marked with [`VIRTUAL`].
pub const SCOPE_LEAVE: u32 = 16;
/// About to wait at a barrier; `object` is marked with [`VIRTUAL`].
pub const BARRIER_ARRIVE: u32 = 17;
/// The barrier let the thread go; `object` as in [`BARRIER_ARRIVE`].
pub const BARRIER_DEPART: u32 = 18;
/// About to take a lock that the library keeps for itself; `object`, marked with [`VIRTUAL`], is where
/// that starts which has the lock among its first [`INTERNAL_LOCK_BYTES`].
pub const INTERNAL_REQUEST: u32 = 19;
/// That lock was taken, perhaps once more by who has it; `object` as in [`INTERNAL_REQUEST`].
pub const INTERNAL_ACQUIRED: u32 = 20;

/// As [`CONDITION_WAIT`], for some time only.
pub const CONDITION_TIMED_WAIT: u32 = 21;

/// Set in the addresses of things that have no memory of their own. No program has such addresses.
pub const VIRTUAL: u64 = 1 << 47;

/// The bytes in which a lock lies that the library keeps for itself: a word, with who has it and how
/// many times, or with whether it is poisoned. What it guards comes behind.
pub const INTERNAL_LOCK_BYTES: u64 = 16;

/// The event that is logged for a number. Atomic accesses are of one byte and have no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged {
    /// What it is.
    pub kind: Kind,
    /// The memory order of an atomic access, or which part of a [`Kind::OnceDone`] it is.
    pub order: u8,
    /// See [`flag`].
    pub flags: u16,
    /// Whether the second address belongs to it.
    pub has_extra: bool,
}

/// What is logged when `what` happened; nothing for a number without meaning.
#[must_use]
pub const fn logged(what: u32) -> Option<Logged> {
    let (kind, order, flags) = match what {
        MUTEX_REQUEST | WRITE_REQUEST | INTERNAL_REQUEST => (Kind::LockRequest, 0, 0),
        MUTEX_ACQUIRED | WRITE_ACQUIRED | INTERNAL_ACQUIRED => (Kind::Lock, 0, 0),
        READ_REQUEST => (Kind::LockRequest, 0, flag::SHARED),
        READ_ACQUIRED => (Kind::Lock, 0, flag::SHARED),
        CONDITION_WAIT => (Kind::Wait, 0, 0),
        CONDITION_TIMED_WAIT => (Kind::Wait, 0, flag::TIMED_OUT),
        CONDITION_WAKE => (Kind::Wake, 0, 0),
        CONDITION_TIMED_OUT => (Kind::Wake, 0, flag::TIMED_OUT),
        NOTIFY_ONE => (Kind::Signal, 0, 0),
        NOTIFY_ALL => (Kind::Broadcast, 0, 0),
        ONCE_RUNS => (Kind::OnceDone, order::BOTH, 0),
        ONCE_ENDS => (Kind::OnceDone, order::RELEASE, 0),
        ONCE_FOUND => (Kind::OnceDone, order::ACQUIRE, 0),
        PARKED => (Kind::Park, 0, 0),
        SCOPE_LEAVE => (Kind::AtomicUpdate, order::RELEASE, 0),
        BARRIER_ARRIVE => (Kind::AtomicUpdate, order::BOTH, 0),
        BARRIER_DEPART => (Kind::AtomicLoad, order::ACQUIRE, 0),
        _ => return None,
    };
    let has_extra = matches!(kind, Kind::Wait | Kind::Wake);
    Some(Logged { kind, order, flags, has_extra })
}
