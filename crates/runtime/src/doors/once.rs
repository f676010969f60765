//! What is done once: by `pthread_once`, `call_once`.
//!
//! Whoever ran the routine stores to the control word, with release; whoever found it done loads
//! from it, with acquire. The routine itself is the program's code: it runs recorded, with the turn,
//! as if it had been called directly; so an exception that leaves it finds everything in order.

use core::ffi::c_int;

use super::{doors, enter_or};
use crate::log::{Entry, More};
use crate::wire::Kind;
use crate::{thread, turn};

const ACQUIRE: u32 = 2;
const RELEASE: u32 = 3;

/// Runs the routine that the running thread was about to run once.
unsafe extern "C" fn run() {
    let thread = thread::current();
    if thread.is_null() || (*thread).once == 0 {
        return;
    }
    let routine: unsafe extern "C" fn() = core::mem::transmute((*thread).once);
    (*thread).once = 0;
    turn::take(thread);
    (*thread).depth = 0;
    routine();
    // The routine may have ended the recording, and with it our place in the thread.
    if thread::current() == thread {
        (*thread).depth = 1;
        turn::settle(thread);
        turn::give(thread);
    }
}

/// Does `routine` once, by `call`, which runs what it is given unless that was done before.
unsafe fn once(
    entry: Entry,
    control: usize,
    routine: usize,
    call: impl FnOnce(usize) -> c_int,
) -> c_int {
    let thread = entry.thread;
    // Routines can nest: the one around this is put back afterwards.
    let outer = (*thread).once;
    (*thread).once = routine;
    turn::give(thread);
    let result = call(run as *const () as usize);
    turn::take(thread);
    let did = (*thread).once == 0;
    (*thread).once = outer;
    let (kind, order) =
        if did { (Kind::AtomicStore, RELEASE) } else { (Kind::AtomicLoad, ACQUIRE) };
    entry.log_more(kind, control as u64, More { order, size: 2, ..More::default() });
    result
}

doors! {
    fn pthread_once(control: usize, routine: usize) -> c_int {
        let entry = enter_or!(real::pthread_once(control, routine));
        once(entry, control, routine, |run| real::pthread_once(control, run))
    }

    fn call_once(control: usize, routine: usize) -> () {
        let entry = enter_or!(real::call_once(control, routine));
        once(entry, control, routine, |run| {
            real::call_once(control, run);
            0
        });
    }
}
