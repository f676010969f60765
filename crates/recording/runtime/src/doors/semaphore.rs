//! Semaphores.

use core::ffi::{c_int, c_uint};

use super::{doors, enter_or, outside};
use crate::log::Entry;
use crate::turn;
use crate::wire::Kind;

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
}

/// Takes a unit by `attempt` or, if there is none, by `wait`.
unsafe fn take(
    entry: &Entry,
    semaphore: usize,
    attempt: impl FnOnce() -> c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let mut result = -1;
    if turn::is_serial() {
        let error = __errno_location();
        let before = *error;
        result = attempt();
        // That it failed is nothing that the program asked about.
        *error = before;
    }
    if result != 0 {
        result = outside(entry.thread, wait);
    }
    if result == 0 {
        entry.log(Kind::SemaphoreTake, semaphore as u64);
    }
    result
}

doors! {
    fn sem_init(semaphore: usize, shared: c_int, count: c_uint) -> c_int {
        let entry = enter_or!(real::sem_init(semaphore, shared, count));
        entry.log_extra(Kind::SemaphoreInit, semaphore as u64, u64::from(count));
        real::sem_init(semaphore, shared, count)
    }

    fn sem_wait(semaphore: usize) -> c_int {
        let entry = enter_or!(real::sem_wait(semaphore));
        let attempt = || real::sem_trywait(semaphore);
        take(&entry, semaphore, attempt, || real::sem_wait(semaphore))
    }

    fn sem_trywait(semaphore: usize) -> c_int {
        let entry = enter_or!(real::sem_trywait(semaphore));
        let result = real::sem_trywait(semaphore);
        if result == 0 {
            entry.log(Kind::SemaphoreTake, semaphore as u64);
        }
        result
    }

    fn sem_timedwait(semaphore: usize, until: usize) -> c_int {
        let entry = enter_or!(real::sem_timedwait(semaphore, until));
        let attempt = || real::sem_trywait(semaphore);
        take(&entry, semaphore, attempt, || real::sem_timedwait(semaphore, until))
    }

    fn sem_clockwait(semaphore: usize, clock: c_int, until: usize) -> c_int {
        let entry = enter_or!(real::sem_clockwait(semaphore, clock, until));
        let attempt = || real::sem_trywait(semaphore);
        take(&entry, semaphore, attempt, || real::sem_clockwait(semaphore, clock, until))
    }

    fn sem_post(semaphore: usize) -> c_int {
        let entry = enter_or!(real::sem_post(semaphore));
        entry.log(Kind::SemaphorePost, semaphore as u64);
        real::sem_post(semaphore)
    }
}
