//! Calls that wait in the kernel for something other than a thread: others run meanwhile.
//!
//! What the kernel writes to memory is logged as the program's own write, once it is known how much
//! that was; what it reads, as a read before the call.

use core::ffi::{c_int, c_long, c_uint};

use super::program::log_range;
use super::{doors, enter_or, outside};
use crate::log::Entry;
use crate::turn;
use crate::wire::Kind;

/// Lets others run, also those that are on their way to wait for a turn.
pub(crate) unsafe fn yield_turn(entry: &Entry) {
    if turn::is_serial() {
        turn::pass(entry.thread);
    }
    crate::sys::sched_yield();
}

/// Makes a call that fills at most `length` bytes at `buffer` and says how many it filled.
unsafe fn filling(
    entry: &Entry,
    buffer: usize,
    length: usize,
    call: impl FnOnce() -> isize,
) -> isize {
    let result = outside(entry.thread, call);
    let filled = usize::try_from(result).unwrap_or(0).min(length);
    log_range(entry, Kind::WriteRange, buffer, filled);
    result
}

/// Makes a call that takes `length` bytes from `buffer`.
unsafe fn taking(
    entry: &Entry,
    buffer: usize,
    length: usize,
    call: impl FnOnce() -> isize,
) -> isize {
    log_range(entry, Kind::ReadRange, buffer, length);
    outside(entry.thread, call)
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
        fn poll(files: usize, count: usize, timeout: c_int) -> c_int;
        fn ppoll(files: usize, count: usize, timeout: usize, mask: usize) -> c_int;
        fn select(count: c_int, read: usize, write: usize, except: usize, timeout: usize) -> c_int;
        fn pselect(
            count: c_int, read: usize, write: usize, except: usize, timeout: usize, mask: usize
        ) -> c_int;
        fn epoll_wait(file: c_int, events: usize, count: c_int, timeout: c_int) -> c_int;
        fn epoll_pwait(
            file: c_int, events: usize, count: c_int, timeout: c_int, mask: usize
        ) -> c_int;
        fn accept(socket: c_int, address: usize, length: usize) -> c_int;
        fn accept4(socket: c_int, address: usize, length: usize, flags: c_int) -> c_int;
        fn connect(socket: c_int, address: usize, length: c_uint) -> c_int;
        fn recvmsg(socket: c_int, message: usize, flags: c_int) -> isize;
        fn sendmsg(socket: c_int, message: usize, flags: c_int) -> isize;
        fn readv(file: c_int, parts: usize, count: c_int) -> isize;
        fn writev(file: c_int, parts: usize, count: c_int) -> isize;
        fn wait(status: usize) -> c_int;
        fn waitpid(process: c_int, status: usize, options: c_int) -> c_int;
        fn wait3(status: usize, options: c_int, usage: usize) -> c_int;
        fn wait4(process: c_int, status: usize, options: c_int, usage: usize) -> c_int;
        fn waitid(kind: c_int, id: c_uint, information: usize, options: c_int) -> c_int;
        fn sigwait(set: usize, signal: usize) -> c_int;
        fn sigwaitinfo(set: usize, information: usize) -> c_int;
        fn sigtimedwait(set: usize, information: usize, timeout: usize) -> c_int;
        fn sigsuspend(mask: usize) -> c_int;
        fn flock(file: c_int, operation: c_int) -> c_int;
        fn lockf(file: c_int, command: c_int, length: c_long) -> c_int;
        fn fsync(file: c_int) -> c_int;
        fn msgsnd(queue: c_int, message: usize, size: usize, flags: c_int) -> c_int;
        fn msgrcv(
            queue: c_int, message: usize, size: usize, kind: c_long, flags: c_int
        ) -> isize;
        fn semop(set: c_int, operations: usize, count: usize) -> c_int;
        fn pclose(stream: usize) -> c_int;
        fn system(command: usize) -> c_int;
    }
}

doors! {
    fn sched_yield() -> c_int {
        let entry = enter_or!(real::sched_yield());
        yield_turn(&entry);
        0
    }

    fn read(file: c_int, buffer: usize, length: usize) -> isize {
        let entry = enter_or!(real::read(file, buffer, length));
        filling(&entry, buffer, length, || real::read(file, buffer, length))
    }

    fn pread(file: c_int, buffer: usize, length: usize, offset: c_long) -> isize {
        let entry = enter_or!(real::pread(file, buffer, length, offset));
        filling(&entry, buffer, length, || real::pread(file, buffer, length, offset))
    }

    fn recv(socket: c_int, buffer: usize, length: usize, flags: c_int) -> isize {
        let entry = enter_or!(real::recv(socket, buffer, length, flags));
        filling(&entry, buffer, length, || real::recv(socket, buffer, length, flags))
    }

    fn recvfrom(
        socket: c_int, buffer: usize, length: usize, flags: c_int, address: usize,
        address_length: usize,
    ) -> isize {
        let call = || real::recvfrom(socket, buffer, length, flags, address, address_length);
        let entry = enter_or!(call());
        filling(&entry, buffer, length, call)
    }

    fn write(file: c_int, buffer: usize, length: usize) -> isize {
        let entry = enter_or!(real::write(file, buffer, length));
        taking(&entry, buffer, length, || real::write(file, buffer, length))
    }

    fn pwrite(file: c_int, buffer: usize, length: usize, offset: c_long) -> isize {
        let entry = enter_or!(real::pwrite(file, buffer, length, offset));
        taking(&entry, buffer, length, || real::pwrite(file, buffer, length, offset))
    }

    fn send(socket: c_int, buffer: usize, length: usize, flags: c_int) -> isize {
        let entry = enter_or!(real::send(socket, buffer, length, flags));
        taking(&entry, buffer, length, || real::send(socket, buffer, length, flags))
    }

    fn sendto(
        socket: c_int, buffer: usize, length: usize, flags: c_int, address: usize,
        address_length: c_uint,
    ) -> isize {
        let call = || real::sendto(socket, buffer, length, flags, address, address_length);
        let entry = enter_or!(call());
        taking(&entry, buffer, length, call)
    }
}
