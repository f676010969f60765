//! Condition variables while a plan is followed.
//!
//! The C library gives a thread that is woken its mutex as soon as that is free. The plan may have
//! others take it first, and would wait for them in vain. So a wait that begins while a plan is
//! followed is not the library's: its thread takes the mutex when the plan has come to it, or, after
//! the plan, when it was notified.

use core::ffi::c_int;
use core::sync::atomic::Ordering;

use crate::interceptors::{BUSY, blocking_or, sync};
use crate::log::Entry;
use crate::thread::{self, Thread};
use crate::{replay, sys};

/// Milliseconds after which a thread that waits looks whether the plan has come to it.
const LOOK_MS: u64 = 1;

/// Waits on `condition` as the plan says; `mutex` is released meanwhile.
pub unsafe fn wait(entry: &Entry, condition: usize, mutex: usize) -> c_int {
    let thread = entry.thread;
    (*thread).is_notified.store(0, Ordering::Relaxed);
    (*thread).waits_on.store(condition as u64, Ordering::Release);
    let result = sync::pthread_mutex_unlock::real(mutex);
    if result != 0 {
        (*thread).waits_on.store(0, Ordering::Release);
        return result;
    }
    while !may_go_on(thread) {
        blocking_or(
            thread,
            || {
                while !may_go_on(thread) {
                    sys::futex_wait(&(*thread).is_notified, 0, LOOK_MS);
                }
            },
            &mut || {},
        );
    }
    (*thread).waits_on.store(0, Ordering::Release);
    if (*thread).is_notified.swap(0, Ordering::AcqRel) == 0 {
        // The plan had this one woken, and not whom the notification went to.
        let mut is_found = false;
        visit_waiters(condition as u64, |waiter| {
            is_found = (*waiter).is_notified.swap(0, Ordering::AcqRel) != 0;
            is_found
        });
        if !is_found {
            replay::went_on_unnotified();
        }
    }
    if sync::pthread_mutex_trylock::real(mutex) == BUSY {
        (*thread).waits_for = mutex as u64;
        blocking_or(thread, || sync::pthread_mutex_lock::real(mutex), &mut || {});
        (*thread).waits_for = 0;
    }
    0
}

/// Notifies one thread that waits on `condition` by [`wait`], or all; says whether there was one.
pub unsafe fn notify(condition: usize, all: bool) -> bool {
    let mut is_found = false;
    visit_waiters(condition as u64, |waiter| {
        let is_new = (*waiter).is_notified.swap(1, Ordering::AcqRel) == 0;
        sys::futex_wake(&(*waiter).is_notified, 1);
        is_found |= is_new;
        is_new && !all
    });
    is_found
}

/// Whether `thread`, which waits, is notified, or the plan has come to it.
unsafe fn may_go_on(thread: *mut Thread) -> bool {
    (*thread).is_notified.load(Ordering::Acquire) != 0
        || (!replay::is_done() && replay::may_run(thread))
}

/// Calls `visit` with the threads that wait on `condition` until it says that this is enough.
unsafe fn visit_waiters(condition: u64, mut visit: impl FnMut(*mut Thread) -> bool) {
    thread::each(|waiter| (*waiter).waits_on.load(Ordering::Acquire) == condition && visit(waiter));
}
