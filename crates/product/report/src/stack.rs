//! The calls behind an event, as far as they are the program's own.
//!
//! A recorded stack goes down to where the C library or the standard library starts a thread. Those
//! frames are the same for every thread and tell nothing, so reports for people leave them out. A
//! frame is left out only if its name and its file both say whose it is, or, where no file is told,
//! if its name is one that no program may give; JSON has them all.

use crate::sources::{Frame, Place};

/// What starts threads and programs in C, by name.
const STARTERS: [&str; 11] = [
    "start_thread",
    "thread_start",
    "_start",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "__clone_internal",
    "__libc_start_call_main",
    "__libc_start_main",
    "__libc_start_main_impl",
];

/// Where the C library's own files are, as its debug information spells it.
const C_FOLDERS: [&str; 6] = ["nptl/", "csu/", "sysdeps/", "../sysdeps/", "./nptl/", "./csu/"];

/// How the names of what starts threads and closures in the standard libraries begin.
const LIBRARY_NAMES: [&str; 18] = [
    "std::thread::",
    "std::sys::",
    "std::sys_common::",
    "std::rt::",
    "std::panic::",
    "std::panicking::",
    "std::__invoke",
    "std::invoke",
    "std::_Bind",
    "core::ops::function::",
    "core::panic::unwind_safe::",
    "alloc::boxed::",
    "<alloc::boxed::",
    "<core::panic::unwind_safe::",
    "<std::thread::",
    "__rust_try",
    "__rust_begin_short_backtrace",
    "execute_native_thread_routine",
];

/// Where the files of the standard libraries are.
const LIBRARY_FOLDERS: [&str; 6] =
    ["std/src/", "core/src/", "alloc/src/", "/usr/include/", "/usr/lib/", "/usr/src/rustc"];

/// Where a system keeps code that is not the program's own.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/include/", "/usr/lib/"];

/// Headers of C++ that only call what they are given, whatever their functions are called.
const CALLING_HEADERS: [&str; 5] =
    ["/invoke.h", "/std_thread.h", "/std_function.h", "/future", "/functional"];

/// Shared libraries that start threads, where only an address in them is known.
const LIBRARIES: [&str; 5] = ["libc.so", "libc-", "libstdc++.so", "libpthread", "ld-linux"];

/// The function that an event at `location` is in, if the first line of `stack` says so.
pub(crate) fn own_function<'t>(location: &str, stack: &[&'t str]) -> Option<&'t str> {
    let frame = Frame::new(stack.first()?);
    frame.is_at(location).then_some(frame.function)
}

/// The calls that led to an event at `location`, the innermost first, without what starts threads.
/// Where the event's own function is not told, at least one line is left.
pub(crate) fn callers<'t>(location: &str, stack: &[&'t str]) -> Vec<&'t str> {
    let (own, behind) = match own_function(location, stack) {
        Some(_) => stack.split_at(1),
        None => stack.split_at(0),
    };
    let lines = behind.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    let callers: Vec<&str> = lines.clone().filter(|line| !is_plumbing(line)).collect();
    match callers.is_empty() && own.is_empty() {
        true => lines.take(1).collect(),
        false => callers,
    }
}

/// Whether `line` is a frame of what starts threads.
fn is_plumbing(line: &str) -> bool {
    let Frame { function, location } = Frame::new(line);
    // Without a file, only a name that no program may give says whose it is.
    let is_in = |folders: &[&str], is_reserved: bool| {
        location.map_or(is_reserved, |place| is_within(place, folders))
    };
    let is_starter = STARTERS.iter().any(|name| {
        let rest = function.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("+0x"))
    });
    let is_named = LIBRARY_NAMES.iter().any(|name| function.starts_with(name))
        || function.contains("::__rust_begin_short_backtrace")
        || function.contains("core::ops::function::FnOnce");
    let is_address = LIBRARIES.iter().any(|name| function.starts_with(name));
    let file = Place::new(location.unwrap_or("")).map_or("", |place| place.file);
    let is_calling = file.starts_with("/usr/include/c++/")
        && CALLING_HEADERS.iter().any(|header| file.ends_with(header));
    is_calling
        || is_starter && is_in(&C_FOLDERS, function.starts_with('_'))
        || is_named && is_in(&LIBRARY_FOLDERS, true)
        || is_address && location.is_none() && function.contains("+0x")
}

/// Whether `line` is a frame of what starts threads, or of the C library, whose debug information
/// names files as its own build did.
pub(crate) fn is_of_library(line: &str) -> bool {
    let is_c = Frame::new(line).location.is_some_and(|place| is_within(place, &C_FOLDERS));
    is_c || is_plumbing(line)
}

fn is_within(place: &str, folders: &[&str]) -> bool {
    folders.iter().any(|folder| place.starts_with(folder))
}

/// Where the program is at `location`: there, or, if that is no line of a file, at the innermost call
/// behind it that is one of the program's own.
pub(crate) fn own_place<'t>(location: &'t str, stack: &[&'t str]) -> &'t str {
    if Place::new(location).is_some() || location.trim().is_empty() {
        return location;
    }
    let callers = stack.iter().filter(|line| !is_plumbing(line));
    let mut places = callers.filter_map(|line| Frame::new(line).location);
    let is_own = |place: &&str| Place::new(place).is_some() && !is_within(place, &SYSTEM_FOLDERS);
    places.find(is_own).unwrap_or(location)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(location: &str, stack: &[&str], own: Option<&str>, callers_left: &[&str]) {
        assert_eq!(own_function(location, stack), own);
        assert_eq!(callers(location, stack), callers_left);
    }

    #[test]
    fn the_first_line_is_the_events_own_function_if_it_is_at_its_location() {
        let stack = ["deposit (bank.c:19)", "start_thread (nptl/pthread_create.c:442)"];
        check("bank.c:19", &stack, Some("deposit"), &[]);
        check("bank.c:20", &stack, None, &["deposit (bank.c:19)"]);
        check("deposit+0x12", &["deposit", "main"], Some("deposit"), &["main"]);
        check("bank.c:19", &[], None, &[]);
    }

    #[test]
    fn what_starts_threads_is_left_out_but_never_all() {
        let stack = [
            "work (src/main.rs:9)",
            "rust::main::{closure#0} (src/main.rs:20)",
            "std::sys::backtrace::__rust_begin_short_backtrace (std/src/sys/backtrace.rs:158)",
            "core::ops::function::FnOnce::call_once{{vtable.shim}} (core/src/ops/function.rs:250)",
            "__clone3",
        ];
        let left = ["rust::main::{closure#0} (src/main.rs:20)"];
        check("src/main.rs:9", &stack, Some("work"), &left);
        check(
            "a.c:1",
            &["start_thread (nptl/pthread_create.c:442)", "__clone3"],
            None,
            &["start_thread (nptl/pthread_create.c:442)"],
        );
    }

    #[test]
    fn where_a_library_acts_its_caller_is_the_place() {
        let stack = ["operator new", "f (/usr/include/c++/12/thread:9)", "main (a.cc:4)"];
        assert_eq!(own_place("operator new+0x1c", &stack), "a.cc:4");
        assert_eq!(own_place("b.cc:1", &stack), "b.cc:1");
        let mine = ["operator new", "f (/usr/lib/x.h:9)", "main (/usr/src/app/a.cc:4)"];
        assert_eq!(own_place("operator new+0x1c", &mine), "/usr/src/app/a.cc:4");
        assert_eq!(own_place("17", &[]), "17");
        let started = "std::thread::_M_start_thread+0x19";
        let bottom = ["__libc_start_call_main (sysdeps/nptl/libc_start_call_main.h:58)"];
        assert_eq!(own_place(started, &bottom), started);
    }

    #[test]
    fn a_function_of_the_program_is_kept_whatever_it_is_called() {
        let stack =
            ["start_thread (pool.c:4)", "std::thread::mine (src/lib.rs:1)", "libc.so.6+0x9"];
        check("a.c:1", &stack, None, &stack[..2]);
        // Without debug information too.
        check("a.c:1", &["clone", "clone+0x12"], None, &["clone", "clone+0x12"]);
    }
}
