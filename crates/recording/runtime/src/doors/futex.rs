//! `syscall`, for programs that wait in the kernel by themselves, as Rust's standard library does.

use core::ffi::c_long;

use super::{doors, enter_or, outside};
use crate::wire::Kind;

const FUTEX: c_long = 202;
const COMMAND_MASK: usize = 0x7f;

doors! {
    fn syscall(
        number: c_long, first: usize, second: usize, third: usize, fourth: usize, fifth: usize,
        sixth: usize,
    ) -> c_long {
        let call = || real::syscall(number, first, second, third, fourth, fifth, sixth);
        if number != FUTEX {
            // It may take memory away; what was written last is told before.
            drop(enter_or!(call()).flushed());
            return call();
        }
        let entry = enter_or!(call());
        let word = first as u64;
        match second & COMMAND_MASK {
            // FUTEX_WAIT, FUTEX_WAIT_BITSET, and those that take a lock with inheritance.
            0 | 6 | 9 | 11 | 13 => {
                entry.log(Kind::FutexWait, word);
                let result = outside(entry.thread, call);
                entry.log(Kind::FutexAwake, word);
                result
            }
            // FUTEX_WAKE, FUTEX_WAKE_BITSET.
            1 | 10 => {
                entry.log_extra(Kind::FutexWake, word, third as u64);
                call()
            }
            _ => call(),
        }
    }
}
