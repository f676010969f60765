//! The guards of C++ variables that are initialised when first reached.
//!
//! The functions are whole here: a program without C++ has no others to call. The first byte of a
//! guard says that the variable is there, as compilers expect; the word after it is ours: 1 while
//! somebody initialises, 2 if somebody waits for that.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::{doors, outside};
use crate::log::{self, More};
use crate::wire::Kind;
use crate::{sys, thread};

const ACQUIRE: u32 = 2;
const RELEASE: u32 = 3;

unsafe fn done(guard: usize) -> &'static AtomicU8 {
    &*(guard as *const AtomicU8)
}

unsafe fn state(guard: usize) -> &'static AtomicU32 {
    &*((guard + 4) as *const AtomicU32)
}

/// Waits until nobody initialises; true if it falls to the caller to do it.
unsafe fn claim(guard: usize) -> bool {
    loop {
        if done(guard).load(Ordering::Acquire) != 0 {
            return false;
        }
        let state = state(guard);
        if state.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            // Somebody may have been done in between.
            if done(guard).load(Ordering::Acquire) == 0 {
                return true;
            }
            leave(guard);
            return false;
        }
        let _ = state.compare_exchange(1, 2, Ordering::AcqRel, Ordering::Relaxed);
        sys::futex_wait(state, 2, 1000);
    }
}

unsafe fn leave(guard: usize) {
    state(guard).store(0, Ordering::Release);
    sys::futex_wake(state(guard), u32::MAX >> 1);
}

doors! { whole
    fn __cxa_guard_acquire(guard: usize) -> c_int {
        let Some(entry) = log::enter(thread::caller()) else {
            return c_int::from(claim(guard));
        };
        let is_free = state(guard).load(Ordering::Relaxed) == 0;
        let mine = if is_free { claim(guard) } else { outside(entry.thread, || claim(guard)) };
        if !mine {
            let more = More { order: ACQUIRE, ..More::default() };
            entry.log_more(Kind::AtomicLoad, guard as u64, more);
        }
        c_int::from(mine)
    }

    fn __cxa_guard_release(guard: usize) -> () {
        if let Some(entry) = log::enter(thread::caller()) {
            let more = More { order: RELEASE, value: Some(1), ..More::default() };
            entry.log_more(Kind::AtomicStore, guard as u64, more);
        }
        done(guard).store(1, Ordering::Release);
        leave(guard);
    }

    fn __cxa_guard_abort(guard: usize) -> () {
        leave(guard);
    }
}
