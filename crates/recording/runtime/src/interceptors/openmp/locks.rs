//! Locks of OpenMP, which both libraries have under the same names, and critical sections.

use super::super::{BUSY, acquire, acquired, interceptors};
use super::fulfil;
use crate::log::Entry;
use crate::wire::{Kind, flag};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};

/// The answer to a try, as POSIX gives it.
const fn posix(is_taken: c_int) -> c_int {
    if is_taken != 0 { 0 } else { BUSY }
}

/// How many are in critical sections, or wait for one, by where the lock is. Locks that share a
/// place only make each other wait for the token.
static USERS: [AtomicU32; 256] = [const { AtomicU32::new(0) }; 256];

fn users(lock: usize) -> &'static AtomicU32 {
    &USERS[(lock >> 2).wrapping_mul(0x9e37_79b1) / 64 % USERS.len()]
}

/// Enters the critical section of `lock` by `call`, which cannot be asked whether it will wait.
pub unsafe fn enter_section(entry: &Entry, lock: usize, call: impl FnOnce()) {
    let is_free = users(lock).fetch_add(1, Ordering::Relaxed) == 0;
    let called = core::cell::Cell::new(Some(call));
    let enter = || called.take().into_iter().for_each(|call| call());
    let attempt = || {
        if !is_free {
            return BUSY;
        }
        enter();
        0
    };
    acquire(entry, lock, 0, attempt, || {
        enter();
        0
    });
}

/// Leaves the critical section of `lock` by `call`.
pub unsafe fn leave_section(entry: &Entry, lock: usize, call: impl FnOnce()) {
    entry.log(Kind::Unlock, lock as u64);
    call();
    users(lock).fetch_sub(1, Ordering::Relaxed);
}

interceptors! {
    fn omp_init_lock(lock: usize) -> () |entry, call| {
        entry.log(Kind::LockInit, lock as u64);
        call();
    }
    fn omp_init_lock_with_hint(lock: usize, hint: c_int) -> () |entry, call| {
        entry.log(Kind::LockInit, lock as u64);
        call();
    }
    fn omp_init_nest_lock(lock: usize) -> () |entry, call| {
        entry.log_flags(Kind::LockInit, lock as u64, flag::RECURSIVE);
        call();
    }
    fn omp_init_nest_lock_with_hint(lock: usize, hint: c_int) -> () |entry, call| {
        entry.log_flags(Kind::LockInit, lock as u64, flag::RECURSIVE);
        call();
    }
    fn [omp_destroy_lock omp_destroy_nest_lock](lock: usize) -> () |entry, call| {
        entry.log(Kind::LockDestroy, lock as u64);
        call();
    }
    fn omp_set_lock(lock: usize) -> () |entry, call| {
        let attempt = || posix(omp_test_lock::real(lock));
        acquire(&entry, lock, 0, attempt, || { call(); 0 });
    }
    fn omp_set_nest_lock(lock: usize) -> () |entry, call| {
        let attempt = || posix(omp_test_nest_lock::real(lock));
        acquire(&entry, lock, flag::RECURSIVE, attempt, || { call(); 0 });
    }
    fn omp_test_lock(lock: usize) -> c_int |entry, call| {
        let result = call();
        acquired(&entry, lock, flag::TRY, posix(result));
        result
    }
    fn omp_test_nest_lock(lock: usize) -> c_int |entry, call| {
        let result = call();
        acquired(&entry, lock, flag::TRY | flag::RECURSIVE, posix(result));
        result
    }
    fn [omp_unset_lock omp_unset_nest_lock](lock: usize) -> () |entry, call| {
        entry.log(Kind::Unlock, lock as u64);
        call();
    }
    fn omp_fulfill_event(event: usize) -> () |entry, call| {
        fulfil(&entry);
        call();
    }
}
