//! Calls that wait in the kernel for nothing that a thread does: others run meanwhile.

use core::ffi::{c_int, c_long, c_uint};

use super::{doors, enter_or, outside};
use crate::log::Entry;
use crate::turn;

/// Lets others run, also those that are on their way to wait for a turn.
pub(crate) unsafe fn yield_turn(entry: &Entry) {
    if turn::is_serial() {
        turn::pass(entry.thread);
    }
    crate::sys::sched_yield();
}

/// Defines doors that do nothing but let others run meanwhile.
macro_rules! waiting_doors {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        doors! {
            $(
                fn $name($($argument: $type),*) -> $result {
                    let entry = enter_or!(real::$name($($argument),*));
                    outside(entry.thread, || real::$name($($argument),*))
                }
            )*
        }
    };
}

/// Doors of calls that wait.
pub(crate) mod waiting {
    use super::*;

    waiting_doors! {
        fn sleep(seconds: c_uint) -> c_uint;
        fn usleep(microseconds: c_uint) -> c_int;
        fn nanosleep(duration: usize, rest: usize) -> c_int;
        fn clock_nanosleep(clock: c_int, flags: c_int, duration: usize, rest: usize) -> c_int;
        fn pause() -> c_int;
        fn sigsuspend(mask: usize) -> c_int;
        fn lockf(file: c_int, command: c_int, length: c_long) -> c_int;
        fn fsync(file: c_int) -> c_int;
    }
}

doors! {
    fn sched_yield() -> c_int {
        let entry = enter_or!(real::sched_yield());
        yield_turn(&entry);
        0
    }
}
