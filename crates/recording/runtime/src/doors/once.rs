//! What is done once: by `pthread_once`, `call_once`.
//!
//! Whoever ran the routine stores to the control word, with release, before anybody can find it done;
//! whoever found it done loads from it, with acquire. The routine itself is the program's code: it runs recorded, with the turn,
//! as if it had been called directly; so an exception that leaves it finds everything in order.

use core::ffi::c_int;
use core::mem::ManuallyDrop;

use super::{doors, enter_or};
use crate::log::{Entry, More};
use crate::wire::Kind;
use crate::{thread, turn};

const ACQUIRE: u32 = 2;
const RELEASE: u32 = 3;

/// What a thread is about to do once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Once {
    /// What is to be run; 0 once it was.
    routine: usize,
    control: usize,
    code: u64,
}

impl Once {
    pub(crate) const NOTHING: Self = Self { routine: 0, control: 0, code: 0 };
}

/// Runs the routine that the running thread was about to run once.
unsafe extern "C" fn run() {
    let thread = thread::current();
    if thread.is_null() || (*thread).once.routine == 0 {
        return;
    }
    let Once { routine, control, code } = (*thread).once;
    let routine: unsafe extern "C" fn() = core::mem::transmute(routine);
    (*thread).once.routine = 0;
    turn::take(thread);
    (*thread).depth = 0;
    routine();
    // The routine may have ended the recording, and with it our place in the thread.
    if thread::current() == thread {
        (*thread).depth = 1;
        turn::settle(thread);
        // The runtime is not left here, but by whoever called us.
        let entry = ManuallyDrop::new(Entry { thread, code });
        log_access(&entry, Kind::AtomicStore, control, RELEASE);
        turn::give(thread);
    }
}

unsafe fn log_access(entry: &Entry, kind: Kind, control: usize, order: u32) {
    entry.log_more(kind, control as u64, More { order, size: 2, ..More::default() });
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
    (*thread).once = Once { routine, control, code: entry.code };
    turn::give(thread);
    let result = call(run as *const () as usize);
    turn::take(thread);
    let was_done_before = (*thread).once.routine != 0;
    (*thread).once = outer;
    if was_done_before {
        log_access(&entry, Kind::AtomicLoad, control, ACQUIRE);
    }
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
