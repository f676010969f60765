//! Mutexes and spin locks.

use core::ffi::{c_int, c_uint};
use core::ptr;

use super::{BUSY, acquire, acquired, doors, enter_or, release};
use crate::log::{Entry, More};
use crate::sys;
use crate::wire::{Kind, flag};

unsafe extern "C" {
    fn pthread_mutexattr_gettype(attributes: usize, kind: *mut c_int) -> c_int;
}

const RECURSIVE: c_int = 1;

unsafe fn flags_of(attributes: usize) -> u16 {
    let mut kind = 0;
    if attributes != 0 {
        pthread_mutexattr_gettype(attributes, &raw mut kind);
    }
    if kind == RECURSIVE { flag::RECURSIVE } else { 0 }
}

/// Logs that the kernel gives back the robust mutexes which the running thread holds at its end.
pub(crate) unsafe fn give_back_robust(entry: &Entry) {
    /// More than this are not followed: the list may be damaged.
    const FOLLOWED_MAX: usize = 1 << 20;
    let Some(head) = sys::robust_list() else { return };
    let to_lock = *head.add(1);
    let mut at = *head;
    for _ in 0..FOLLOWED_MAX {
        // The lowest bit says of what kind the mutex is.
        let element = at & !1;
        if element == 0 || element == head as usize {
            return;
        }
        // The lock word is the first of a mutex.
        release(entry, element.wrapping_add(to_lock));
        at = *(element as *const usize);
    }
}

/// A mutex as the C library keeps it.
#[repr(C)]
struct Mutex {
    lock: c_int,
    count: c_uint,
    owner: u32,
    users: c_uint,
    kind: c_int,
}

/// Whether the C library says to the running thread that it has `mutex` already, and neither waits
/// nor takes it again.
unsafe fn is_refused(mutex: usize) -> bool {
    let mutex = mutex as *const Mutex;
    (*mutex).kind & KIND == CHECKING && is_own(mutex)
}

/// Whether the C library says to the running thread that it does not have `mutex`, and does not give
/// it back.
unsafe fn is_anothers(mutex: usize) -> bool {
    const ROBUST: c_int = 16;
    let mutex = mutex as *const Mutex;
    let kind = (*mutex).kind;
    let is_checked = matches!(kind & KIND, CHECKING | RECURSIVE) || kind & ROBUST != 0;
    is_checked && !is_own(mutex)
}

/// What of the kind of a mutex says whether it nests or checks.
const KIND: c_int = 3;
const CHECKING: c_int = 2;

unsafe fn is_own(mutex: *const Mutex) -> bool {
    /// Instead of the owner of a mutex whose last one died.
    const INCONSISTENT: u32 = i32::MAX as u32;
    let owner = ptr::read_volatile(&raw const (*mutex).owner);
    owner == sys::gettid() || owner == INCONSISTENT
}

doors! {
    fn pthread_mutex_init(mutex: usize, attributes: usize) -> c_int {
        let entry = enter_or!(real::pthread_mutex_init(mutex, attributes));
        let more = More { flags: flags_of(attributes), ..More::default() };
        entry.log_more(Kind::LockInit, mutex as u64, more);
        real::pthread_mutex_init(mutex, attributes)
    }

    fn pthread_mutex_destroy(mutex: usize) -> c_int {
        let entry = enter_or!(real::pthread_mutex_destroy(mutex));
        entry.log(Kind::LockDestroy, mutex as u64);
        real::pthread_mutex_destroy(mutex)
    }

    fn pthread_mutex_lock(mutex: usize) -> c_int {
        let entry = enter_or!(real::pthread_mutex_lock(mutex));
        if is_refused(mutex) {
            return real::pthread_mutex_lock(mutex);
        }
        let attempt = || real::pthread_mutex_trylock(mutex);
        acquire(&entry, mutex, 0, attempt, || real::pthread_mutex_lock(mutex))
    }

    fn pthread_mutex_trylock(mutex: usize) -> c_int {
        let entry = enter_or!(real::pthread_mutex_trylock(mutex));
        acquired(&entry, mutex, flag::TRY, real::pthread_mutex_trylock(mutex))
    }

    fn pthread_mutex_timedlock(mutex: usize, until: usize) -> c_int {
        let entry = enter_or!(real::pthread_mutex_timedlock(mutex, until));
        if is_refused(mutex) {
            return real::pthread_mutex_timedlock(mutex, until);
        }
        let attempt = || real::pthread_mutex_trylock(mutex);
        acquire(&entry, mutex, flag::TRY, attempt, || real::pthread_mutex_timedlock(mutex, until))
    }

    fn pthread_mutex_clocklock(mutex: usize, clock: c_int, until: usize) -> c_int {
        let entry = enter_or!(real::pthread_mutex_clocklock(mutex, clock, until));
        let attempt = || real::pthread_mutex_trylock(mutex);
        let wait = || real::pthread_mutex_clocklock(mutex, clock, until);
        acquire(&entry, mutex, flag::TRY, attempt, wait)
    }

    fn pthread_mutex_unlock(mutex: usize) -> c_int {
        let entry = enter_or!(real::pthread_mutex_unlock(mutex));
        if !is_anothers(mutex) {
            release(&entry, mutex);
        }
        real::pthread_mutex_unlock(mutex)
    }

    fn pthread_spin_init(lock: usize, shared: c_int) -> c_int {
        let entry = enter_or!(real::pthread_spin_init(lock, shared));
        entry.log(Kind::LockInit, lock as u64);
        real::pthread_spin_init(lock, shared)
    }

    fn pthread_spin_destroy(lock: usize) -> c_int {
        let entry = enter_or!(real::pthread_spin_destroy(lock));
        entry.log(Kind::LockDestroy, lock as u64);
        real::pthread_spin_destroy(lock)
    }

    fn pthread_spin_lock(lock: usize) -> c_int {
        let entry = enter_or!(real::pthread_spin_lock(lock));
        let attempt = || real::pthread_spin_trylock(lock);
        let wait = || {
            // Yielding, since the one that has the lock may need this core to get its turn.
            while real::pthread_spin_trylock(lock) == BUSY {
                sys::sched_yield();
            }
            0
        };
        acquire(&entry, lock, 0, attempt, wait)
    }

    fn pthread_spin_trylock(lock: usize) -> c_int {
        let entry = enter_or!(real::pthread_spin_trylock(lock));
        acquired(&entry, lock, flag::TRY, real::pthread_spin_trylock(lock))
    }

    fn pthread_spin_unlock(lock: usize) -> c_int {
        let entry = enter_or!(real::pthread_spin_unlock(lock));
        release(&entry, lock);
        real::pthread_spin_unlock(lock)
    }
}
