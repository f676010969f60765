//! Condition variables.

use core::ffi::c_int;

use super::{TIMED_OUT, doors, enter_or, wait_on};
use crate::wire::Kind;

doors! {
    fn pthread_cond_wait(condition: usize, mutex: usize) -> c_int {
        let entry = enter_or!(real::pthread_cond_wait(condition, mutex));
        let wait = || real::pthread_cond_wait(condition, mutex);
        wait_on(&entry, condition, mutex, TIMED_OUT, wait)
    }

    fn pthread_cond_timedwait(condition: usize, mutex: usize, until: usize) -> c_int {
        let entry = enter_or!(real::pthread_cond_timedwait(condition, mutex, until));
        let wait = || real::pthread_cond_timedwait(condition, mutex, until);
        wait_on(&entry, condition, mutex, TIMED_OUT, wait)
    }

    fn pthread_cond_clockwait(
        condition: usize, mutex: usize, clock: c_int, until: usize,
    ) -> c_int {
        let entry = enter_or!(real::pthread_cond_clockwait(condition, mutex, clock, until));
        let wait = || real::pthread_cond_clockwait(condition, mutex, clock, until);
        wait_on(&entry, condition, mutex, TIMED_OUT, wait)
    }

    fn pthread_cond_signal(condition: usize) -> c_int {
        let entry = enter_or!(real::pthread_cond_signal(condition));
        entry.log(Kind::Signal, condition as u64);
        real::pthread_cond_signal(condition)
    }

    fn pthread_cond_broadcast(condition: usize) -> c_int {
        let entry = enter_or!(real::pthread_cond_broadcast(condition));
        entry.log(Kind::Broadcast, condition as u64);
        real::pthread_cond_broadcast(condition)
    }
}
