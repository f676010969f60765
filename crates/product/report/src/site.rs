//! One event of a finding, with what a reader needs to place it.
//!
//! A recorded stack goes down to where the C library or the standard library starts a thread. Those
//! frames are the same for every thread and say nothing, so reports for people leave them out. A
//! frame is left out only if its name and its file both say whose it is, or, where no file is known,
//! if its name is one that no program may give; JSON has them all.

use std::borrow::Cow;

use reweave_trace::views::{CriticalSection, Mode};
use reweave_trace::{EventId, OpKind, Trace};

use crate::shown::{clipped, shown};
use crate::sources::{Frame, Place};

/// `location` for people: a bare number says what it is.
pub fn place(location: &str) -> Cow<'_, str> {
    let location = location.trim();
    let is_number = !location.is_empty() && location.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { Cow::Owned(format!("location {location}")) } else { Cow::Borrowed(location) }
}

/// How long a location gets where it is one of many.
const PLACE_MAX: usize = 32;

/// `location` for people, cut at its start if it is long: `…/src/bank.c:12`. The line of a file is
/// never cut away.
pub fn brief_place(location: &str) -> String {
    let place = place(location);
    if Place::new(&place).is_none() {
        return clipped(&place, PLACE_MAX);
    }
    let text = shown(&place);
    let count = text.chars().count();
    if count <= PLACE_MAX {
        return text.into_owned();
    }
    let rest = |skipped: usize| text.chars().skip(skipped).collect::<String>();
    // Whole names of folders are left, if anything is left of them.
    let end = rest(count - (PLACE_MAX - 1));
    match end.split_once('/') {
        Some((_, whole)) => format!("…/{whole}"),
        None => format!("…{end}"),
    }
}

/// Where `event` is in the program's own code, as far as that is known.
pub fn own_place(trace: &Trace, event: EventId) -> &str {
    let (names, site) = (trace.names(), trace.event(event).site);
    let stack: Vec<&str> = names.stack(site).collect();
    program_place(names.location(site), &stack)
}

/// How a branch is spelled.
const BRANCH: &str = OpKind::Branch.as_str();

/// An event in words.
#[derive(Clone, Debug)]
pub struct Site<'t> {
    pub number: u32,
    pub thread: &'t str,
    pub op: String,
    pub location: &'t str,
    pub stack: Vec<&'t str>,
    /// The locks its thread holds when it is about to happen, the oldest first.
    pub locks: Vec<(&'t str, Mode)>,
}

impl<'t> Site<'t> {
    pub fn new(trace: &'t Trace, id: EventId) -> Self {
        let (event, names) = (trace.event(id), trace.names());
        let held = trace.sections().held(event.thread, id);
        let mut locks: Vec<_> =
            held.map(|section| (names.locks.name(section.lock), section.mode)).collect();
        locks.reverse();
        Self {
            number: id.number(),
            thread: names.threads.name(event.thread),
            op: names.spell(event.op).to_string(),
            location: names.location(event.site),
            stack: names.stack(event.site).collect(),
            locks,
        }
    }

    /// Who does what, and where: `event 6, T1: w(x) at a.c:19`.
    pub fn line(&self) -> String {
        // A place that the recorder marked is no operation.
        let (op, at) = match (self.op == BRANCH, self.place().is_empty()) {
            (true, _) => ("", "at "),
            (false, true) => (&*self.op, ""),
            (false, false) => (&*self.op, " at "),
        };
        format!("event {}, {}: {op}{at}{}", self.number, self.thread, self.place())
    }

    /// Where it is, for people; empty if that is not known.
    pub fn place(&self) -> Cow<'t, str> {
        place(self.location)
    }

    /// The function that it is in, where that is known.
    pub fn function(&self) -> Option<&'t str> {
        own_function(self.location, &self.stack)
    }

    /// The calls that led there, without what starts threads.
    pub fn callers(&self) -> Vec<&'t str> {
        callers_of(self.location, &self.stack)
    }

    /// `holding m, n (shared)` or `holding no lock`.
    pub fn holding(&self) -> String {
        if self.locks.is_empty() {
            return "holding no lock".to_owned();
        }
        let lock = |&(name, mode): &(&str, Mode)| match mode {
            Mode::Exclusive => name.to_owned(),
            Mode::Shared => format!("{name} (shared)"),
        };
        format!("holding {}", self.locks.iter().map(lock).collect::<Vec<_>>().join(", "))
    }
}

/// What the thread of `event` holds, with where it acquired each: `holding m (acquired at line
/// 18)`.
pub fn holding_since(trace: &Trace, event: EventId) -> String {
    let (happening, names) = (trace.event(event), trace.names());
    let own = Place::new(names.location(happening.site));
    let held: Vec<_> = trace.sections().held(happening.thread, event).collect();
    let lock = |section: &&CriticalSection| {
        let location = names.location(trace.event(section.acquire).site);
        let acquired = Place::new(location).map(|place| match own {
            Some(own) if own.file == place.file => format!("acquired at line {}", place.line),
            _ => format!("acquired at {}", location.trim()),
        });
        let shared = (section.mode == Mode::Shared).then(|| "shared".to_owned());
        let notes: Vec<String> = shared.into_iter().chain(acquired).collect();
        let name = names.locks.name(section.lock);
        if notes.is_empty() { name.to_owned() } else { format!("{name} ({})", notes.join(", ")) }
    };
    if held.is_empty() {
        return "holding no lock".to_owned();
    }
    format!("holding {}", held.iter().rev().map(lock).collect::<Vec<_>>().join(", "))
}

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
const LIBRARY_NAMES: [&str; 19] = [
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
    // The recorder's own, which runs what a thread is to run.
    "reweave_rt::",
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
fn own_function<'t>(location: &str, stack: &[&'t str]) -> Option<&'t str> {
    let frame = Frame::new(stack.first()?);
    frame.is_at(location).then_some(frame.function)
}

/// The program's calls that led to an event at `location`, the innermost first, without what starts
/// threads and what the standard libraries do between them. Where the event's own function is not known, at least one line is left.
fn callers_of<'t>(location: &str, stack: &[&'t str]) -> Vec<&'t str> {
    let (own, behind) = match own_function(location, stack) {
        Some(_) => stack.split_at(1),
        None => stack.split_at(0),
    };
    let lines = behind.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    let callers = lines.clone().filter(|line| !is_plumbing(line));
    let callers: Vec<&str> = callers.filter(|line| !is_within_library(line)).collect();
    if callers.is_empty() && own.is_empty() { lines.take(1).collect() } else { callers }
}

/// Whether `line` is a frame of the standard libraries' own code, which the program called.
fn is_within_library(line: &str) -> bool {
    Frame::new(line).location.is_some_and(|place| is_within(place, &LIBRARY_FOLDERS))
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
    // Templates that call a functor have names of the program's own types in them.
    let is_calling = file.starts_with("/usr/include/c++/")
        && CALLING_HEADERS.iter().any(|header| file.ends_with(header));
    is_calling
        || is_starter && is_in(&C_FOLDERS, function.starts_with('_'))
        || is_named && is_in(&LIBRARY_FOLDERS, true)
        || is_address && location.is_none() && function.contains("+0x")
}

/// Whether `line` is a frame of what starts threads, or of the C library, whose debug information
/// names files as its own build did.
pub fn is_of_library(line: &str) -> bool {
    let is_c = Frame::new(line).location.is_some_and(|place| is_within(place, &C_FOLDERS));
    is_c || is_plumbing(line)
}

fn is_within(place: &str, folders: &[&str]) -> bool {
    folders.iter().any(|folder| place.starts_with(folder))
}

/// Where the program is at `location`: there, or, if that is no line of a file, at the innermost call
/// behind it that is one of the program's own.
pub fn program_place<'t>(location: &'t str, stack: &[&'t str]) -> &'t str {
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

    #[test]
    fn long_paths_are_cut_at_the_start_and_keep_their_line() {
        assert_eq!(brief_place("bank.c:12"), "bank.c:12");
        assert_eq!(brief_place("17"), "location 17");
        let long = "/srv/build/projects/ledger/src/bank/transfer.c:1234";
        assert_eq!(brief_place(long), "…/src/bank/transfer.c:1234");
        let name = format!("{}.c:1234", "x".repeat(60));
        let brief = brief_place(&name);
        assert!(brief.starts_with('…') && brief.ends_with("x.c:1234"), "{brief}");
        assert_eq!(brief.chars().count(), PLACE_MAX);
    }

    #[track_caller]
    fn check(location: &str, stack: &[&str], own: Option<&str>, callers_left: &[&str]) {
        assert_eq!(own_function(location, stack), own);
        assert_eq!(callers_of(location, stack), callers_left);
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
        let stack = [
            "init (a.cc:17)",
            "std::call_once<void (&)()>(std::once_flag&, void (&)())::{lambda()#1}::_FUN (/usr/include/c++/12/mutex:788)",
            "std::call_once<void (&)()> (/usr/include/c++/12/mutex:859)",
            "use (a.cc:25)",
        ];
        check("a.cc:17", &stack, Some("init"), &["use (a.cc:25)"]);
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
        assert_eq!(program_place("operator new+0x1c", &stack), "a.cc:4");
        assert_eq!(program_place("b.cc:1", &stack), "b.cc:1");
        let mine = ["operator new", "f (/usr/lib/x.h:9)", "main (/usr/src/app/a.cc:4)"];
        assert_eq!(program_place("operator new+0x1c", &mine), "/usr/src/app/a.cc:4");
        assert_eq!(program_place("17", &[]), "17");
        let started = "std::thread::_M_start_thread+0x19";
        let bottom = ["__libc_start_call_main (sysdeps/nptl/libc_start_call_main.h:58)"];
        assert_eq!(program_place(started, &bottom), started);
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
