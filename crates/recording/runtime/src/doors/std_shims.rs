//! What Rust's standard library does where no compiler looks: told by shims at link time.
//!
//! Where threads run freely, an atomic access is made and logged as one step, but code that is not
//! seen can go on in between: it takes a lock before it is logged that another thread gave it back.
//! So what is told after such code has run waits until steps under way at its address are over.

use crate::hooks::atomic;
use crate::log::{self, More};
use crate::std_events::{APART, Logged, OWN_BYTES, logged};
use crate::wire::Kind;
use crate::{replay, turn};

/// The bytes in which the parking token of a thread lies.
const THREAD_BYTES: usize = 64;

/// Called by a shim: `what` happened to the thing at `object`, in code that returns to `code`.
#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn reweave_std_event(what: u32, object: usize, code: usize, extra: usize) {
    let Some(Logged { kind, order, flags, has_extra }) = logged(what) else { return };
    let Some(entry) = log::enter(code as u64) else { return };
    let thread = entry.thread;
    let is_own = object & APART as usize != 0;
    match kind {
        Kind::Lock => {
            (*thread).wants = 0;
            let length = if is_own { OWN_BYTES as usize } else { 1 };
            atomic::await_steps(object & !(APART as usize), length);
        }
        Kind::Wake => {
            atomic::await_steps(extra, 1);
            replay::took(thread, extra as u64);
        }
        Kind::Wait => replay::gave(thread, extra as u64),
        Kind::Park => atomic::await_steps(object, THREAD_BYTES),
        _ => {}
    }
    let extra = has_extra.then_some(extra as u64);
    let more = More { order: u32::from(order), flags, extra, ..More::default() };
    entry.log_more(kind, object as u64, more);
    if kind == Kind::LockRequest {
        // The function that follows waits by itself. It is called because the lock is taken, or, if
        // it is one that the library keeps for itself, whether it is or not.
        turn::settle(thread);
        if !is_own || replay::is_held_by_another(thread, object as u64) {
            ((*thread).wants, (*thread).wants_at) = (object as u64, entry.code);
            replay::blocked(thread);
        }
    }
}
