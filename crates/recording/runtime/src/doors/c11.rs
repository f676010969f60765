//! The threads of the C standard, whose functions do not pass those of POSIX.

use core::ffi::c_int;

use super::blocking::yield_turn;
use super::thread as threads;
use super::{BUSY, acquire, acquired, doors, enter_or, in_library, outside, release, wait_on};
use crate::log::More;
use crate::wire::{Kind, flag};

const C11_SUCCESS: c_int = 0;
const C11_BUSY: c_int = 1;
const C11_TIMED_OUT: c_int = 4;
const C11_RECURSIVE: c_int = 1;

/// The C11 answer to a try, as POSIX gives it.
fn posix(result: c_int) -> c_int {
    if result == C11_BUSY { BUSY } else { result }
}

/// An answer as C11 gives it.
fn c11(result: c_int) -> c_int {
    if result == BUSY { C11_BUSY } else { result }
}

doors! {
    fn thrd_create(handle: usize, routine: usize, argument: usize) -> c_int {
        let entry = enter_or!(real::thrd_create(handle, routine, argument));
        let Some(start) = threads::prepare(&entry, handle, routine, argument) else {
            drop(entry);
            return real::thrd_create(handle, routine, argument);
        };
        let trampoline = threads::run_c11 as *const () as usize;
        let child = threads::child_of(start);
        let create = || real::thrd_create(handle, trampoline, start as usize);
        let result = in_library(entry.thread, create);
        threads::created(&entry, child, start, result == C11_SUCCESS, handle);
        result
    }

    fn thrd_join(thread: u64, status: *mut c_int) -> c_int {
        let entry = enter_or!(real::thrd_join(thread, status));
        threads::join(&entry, thread, status, || real::thrd_join(thread, status))
    }

    fn thrd_detach(thread: u64) -> c_int {
        let _entry = enter_or!(real::thrd_detach(thread));
        threads::detach(thread);
        real::thrd_detach(thread)
    }

    fn thrd_sleep(duration: usize, rest: usize) -> c_int {
        let entry = enter_or!(real::thrd_sleep(duration, rest));
        outside(entry.thread, || real::thrd_sleep(duration, rest))
    }

    fn thrd_yield() -> () {
        let entry = enter_or!(real::thrd_yield());
        yield_turn(&entry);
    }

    fn mtx_init(mutex: usize, kind: c_int) -> c_int {
        let entry = enter_or!(real::mtx_init(mutex, kind));
        let flags = if kind & C11_RECURSIVE != 0 { flag::RECURSIVE } else { 0 };
        entry.log_more(Kind::LockInit, mutex as u64, More { flags, ..More::default() });
        real::mtx_init(mutex, kind)
    }

    fn mtx_destroy(mutex: usize) -> () {
        let entry = enter_or!(real::mtx_destroy(mutex));
        entry.log(Kind::LockDestroy, mutex as u64);
        real::mtx_destroy(mutex);
    }

    fn mtx_lock(mutex: usize) -> c_int {
        let entry = enter_or!(real::mtx_lock(mutex));
        let attempt = || posix(real::mtx_trylock(mutex));
        c11(acquire(&entry, mutex, 0, attempt, || real::mtx_lock(mutex)))
    }

    fn mtx_trylock(mutex: usize) -> c_int {
        let entry = enter_or!(real::mtx_trylock(mutex));
        c11(acquired(&entry, mutex, flag::TRY, posix(real::mtx_trylock(mutex))))
    }

    fn mtx_timedlock(mutex: usize, until: usize) -> c_int {
        let entry = enter_or!(real::mtx_timedlock(mutex, until));
        let attempt = || posix(real::mtx_trylock(mutex));
        let wait = || real::mtx_timedlock(mutex, until);
        c11(acquire(&entry, mutex, flag::TRY, attempt, wait))
    }

    fn mtx_unlock(mutex: usize) -> c_int {
        let entry = enter_or!(real::mtx_unlock(mutex));
        release(&entry, mutex);
        real::mtx_unlock(mutex)
    }

    fn cnd_wait(condition: usize, mutex: usize) -> c_int {
        let entry = enter_or!(real::cnd_wait(condition, mutex));
        wait_on(&entry, condition, mutex, C11_TIMED_OUT, || real::cnd_wait(condition, mutex))
    }

    fn cnd_timedwait(condition: usize, mutex: usize, until: usize) -> c_int {
        let entry = enter_or!(real::cnd_timedwait(condition, mutex, until));
        let wait = || real::cnd_timedwait(condition, mutex, until);
        wait_on(&entry, condition, mutex, C11_TIMED_OUT, wait)
    }

    fn cnd_signal(condition: usize) -> c_int {
        let entry = enter_or!(real::cnd_signal(condition));
        entry.log(Kind::Signal, condition as u64);
        real::cnd_signal(condition)
    }

    fn cnd_broadcast(condition: usize) -> c_int {
        let entry = enter_or!(real::cnd_broadcast(condition));
        entry.log(Kind::Broadcast, condition as u64);
        real::cnd_broadcast(condition)
    }
}
