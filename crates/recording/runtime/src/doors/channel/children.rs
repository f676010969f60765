//! Processes that the program starts.
//!
//! Such a process has what the program has: it may take from one pipe and give to another, and then
//! whoever takes from the second comes after whoever gave to the first. So from the first start on,
//! all that is handed over is also handed to one channel for all processes, and all that is taken
//! was also looked for there. What was in a channel before is looked at by the thread that starts
//! the process.
//!
//! A child by `vfork` is a guest in our memory until it becomes another program: what it does to
//! memory is rightly told as its parent's doing, but its descriptors are its own.

use core::sync::atomic::{AtomicBool, Ordering};

use super::streams::file_of;
use super::*;
use crate::{log, process, thread};

static ARE_THERE: AtomicBool = AtomicBool::new(false);
static WAS_GUEST: AtomicBool = AtomicBool::new(false);

/// The channel for all processes.
pub(super) const ALL: u32 = channel::id(channel::PROCESSES, 0);

/// Whether the program has started a process.
pub(super) fn are_there() -> bool {
    ARE_THERE.load(Ordering::SeqCst)
}

/// Whether we run in a child that shares the program's memory.
pub(super) fn is_guest() -> bool {
    let is_foreign = |header: &crate::shared::Header| {
        header.pid.load(Ordering::Relaxed) != u64::from(sys::getpid())
    };
    WAS_GUEST.load(Ordering::Relaxed) && process::header().is_some_and(is_foreign)
}

/// A process is about to be started, which has all that is open and all that is in it.
pub(crate) unsafe fn about_to_start(entry: &Entry) {
    // Before the looks: who hands something over logs it and then asks.
    ARE_THERE.store(true, Ordering::SeqCst);
    let look = |id| {
        if channel::kind(id) != channel::SIGNAL_FILE {
            log_receive(entry, id, false);
        }
    };
    table::each(look);
    queues::each(look);
    entry.log(Kind::Send, channel::address(ALL));
}

/// Called by the C library before it makes a process that is a copy of this one.
pub(crate) unsafe extern "C" fn before_fork() {
    ARE_THERE.store(true, Ordering::SeqCst);
    if let Some(entry) = log::enter(thread::caller()) {
        about_to_start(&entry.flushed());
    }
}

/// Logs that the thread saw what another process did.
unsafe fn saw(entry: &Entry) {
    if are_there() {
        log_receive(entry, ALL, false);
    }
}

/// Defines doors of calls that wait for a process.
macro_rules! waiting_for_processes {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> c_int, $status:ident;)*) => {
        doors! {
            $(
                fn $name($($argument: $type),*) -> c_int {
                    let entry = enter_or!(real::$name($($argument),*));
                    let result = outside(entry.thread, || real::$name($($argument),*));
                    saw(&entry);
                    if result > 0 && $status != 0 {
                        log_range(&entry, Kind::WriteRange, $status, size_of::<c_int>());
                    }
                    result
                }
            )*
        }
    };
}

/// Doors of calls that wait for a process.
pub(crate) mod waiting {
    use super::*;

    waiting_for_processes! {
        fn wait(status: usize) -> c_int, status;
        fn waitpid(process: c_int, status: usize, options: c_int) -> c_int, status;
        fn wait3(status: usize, options: c_int, usage: usize) -> c_int, status;
        fn wait4(process: c_int, status: usize, options: c_int, usage: usize) -> c_int, status;
    }
}

doors! {
    fn waitid(kind: c_int, id: c_uint, information: usize, options: c_int) -> c_int {
        let entry = enter_or!(real::waitid(kind, id, information, options));
        let result = outside(entry.thread, || real::waitid(kind, id, information, options));
        saw(&entry);
        result
    }

    fn system(command: usize) -> c_int {
        let entry = enter_or!(real::system(command));
        about_to_start(&entry);
        let result = outside(entry.thread, || real::system(command));
        saw(&entry);
        result
    }

    fn posix_spawn(
        process: usize, path: usize, actions: usize, attributes: usize, words: usize,
        environment: usize,
    ) -> c_int {
        let call = || real::posix_spawn(process, path, actions, attributes, words, environment);
        let entry = enter_or!(call());
        spawning(&entry, process, call)
    }

    fn posix_spawnp(
        process: usize, path: usize, actions: usize, attributes: usize, words: usize,
        environment: usize,
    ) -> c_int {
        let call = || real::posix_spawnp(process, path, actions, attributes, words, environment);
        let entry = enter_or!(call());
        spawning(&entry, process, call)
    }

    fn popen(command: usize, mode: usize) -> usize {
        let entry = enter_or!(real::popen(command, mode));
        about_to_start(&entry);
        let stream = inside(entry.thread, || real::popen(command, mode));
        if stream != 0 {
            table::set_pipe(file_of(stream));
        }
        stream
    }

    fn pclose(stream: usize) -> c_int {
        let entry = enter_or!(real::pclose(stream));
        let result = descriptors::closing(&entry, file_of(stream), || {
            outside(entry.thread, || real::pclose(stream))
        });
        saw(&entry);
        result
    }
}

/// Starts a process by `call`, which says its number at `process`.
unsafe fn spawning(entry: &Entry, process: usize, call: impl FnOnce() -> c_int) -> c_int {
    about_to_start(entry);
    let result = inside(entry.thread, call);
    if result == 0 && process != 0 {
        log_range(entry, Kind::WriteRange, process, size_of::<c_int>());
    }
    result
}

/// The door that is not made as the others are.
#[cfg(test)]
pub(crate) const VFORK: &[&str] = &["vfork"];

/// `vfork` returns twice to who calls it, so it is not called but jumped to.
#[unsafe(naked)]
#[cfg_attr(all(reweave_export, not(reweave_static)), unsafe(export_name = "vfork"))]
#[cfg_attr(all(reweave_export, reweave_static), unsafe(export_name = "__wrap_vfork"))]
unsafe extern "C" fn vfork() -> c_int {
    core::arch::naked_asm!(
        "mov r10, [rsp]",
        "mov r11, qword ptr [rip + reweave_caller@GOTTPOFF]",
        "mov fs:[r11], r10",
        "sub rsp, 8",
        "call {}",
        "add rsp, 8",
        "jmp rax",
        sym inviting,
    )
}

/// Notes that a guest comes, and says where the real function is.
unsafe extern "C" fn inviting() -> usize {
    if let Some(entry) = log::enter(thread::caller()) {
        about_to_start(&entry.flushed());
        WAS_GUEST.store(true, Ordering::Relaxed);
    }
    real_vfork()
}

#[cfg(not(reweave_static))]
unsafe fn real_vfork() -> usize {
    #[cfg_attr(reweave_export, used, unsafe(link_section = "reweave_doors"))]
    static WAY: crate::doors::Way = crate::doors::Way::to("vfork\0");
    WAY.find()
}

#[cfg(reweave_static)]
unsafe fn real_vfork() -> usize {
    unsafe extern "C" {
        fn __real_vfork() -> c_int;
    }
    __real_vfork as *const () as usize
}
