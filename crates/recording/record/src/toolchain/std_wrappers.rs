//! Wrappers around the functions of Rust's standard library that order threads and are not seen.
//!
//! The prebuilt standard library is one object file without instrumentation. What of it is generic
//! or `#[inline]` is compiled into the program and seen; what is not, is in that object file and is
//! called from the program by name. The functions below are all of those that order threads, as of
//! Rust 1.95; `mpsc` has none of its own beside parking. The linker redirects the program's calls of
//! `NAME` to `__wrap_NAME`, given here, and calls of `__real_NAME` to the function itself. Calls
//! within the object file are not redirected: `Barrier::wait` is logged as a whole, without the lock
//! in it.
//!
//! Each wrapper calls, before or after the function or both,
//!
//! ```text
//! extern "C" fn reweave_std_event(what: u32, object: usize, code: usize, extra: usize)
//! ```
//!
//! with a number of [`what`], the address of the thing, the address to which the wrapper returns, and a
//! second address where there is one, else 0. The log of the runtime so has sections inside the real
//! ones: requests and releases before, takes after.
//!
//! All argument registers are as they were when the function starts and all result registers as it
//! left them when the wrapper returns. Stacks are aligned and described by call frame information, so
//! that a panic unwinds through a wrapper; what comes after the function is then not logged. Of the
//! functions here that may panic (`Once`, when its function panics or did before; a `RwLock` with too
//! many readers) only the first matters, and
//! [`LockRecognizer`](crate::locks::LockRecognizer) makes up for it.
//!
//! The locks that the standard library keeps for itself and hands out are those of standard input,
//! output and error. They are taken by functions here and released in the program, by a guard.
//! Where in the thing that has the lock its word lies is not known before it is first released, so
//! they are known by where the thing starts. Those of output and error may be taken again by who has
//! them, and then only the last guard releases.
//!
//! Not seen: what the library takes and releases by itself while code of the program runs. That is
//! `println!` and its kin, which hold the lock of the output while values format themselves. A
//! program whose `Display` changes memory that nothing else guards seems to race. All of it is seen
//! where the standard library is built with the program.
//!
//! What the linker must do: wrap calls from other object files and no others, as GNU ld does. LLVM's
//! linker, which `rustc` takes by default, also wraps the calls within an object file; with it locks
//! of the standard library's own, such as that of `stdout`, would be seen to be taken and never
//! released. So programs with wrappers are linked with [`LINK_ARGUMENTS`]. Link-time optimisation across
//! crates binds calls before any linker sees them: it must be off (`lto = "off"`) or, as by default,
//! within crates.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol};
use reweave_base::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use super::{ToolchainError, answer};
use crate::install::{in_cache, write};
use crate::symbols::demangle;

/// The first argument of `reweave_std_event`.
pub use reweave_runtime::std_events as what;

/// The arguments of `rustc` that make it link with a linker that wraps as wrappers need it.
pub const LINK_ARGUMENTS: [&str; 2] = ["-Clinker-features=-lld", "-Clink-arg=-fuse-ld=bfd"];

/// The function that wrappers call.
pub const EVENT_FUNCTION: &str = "reweave_std_event";

/// The function of the standard library that gives the handle of the current thread.
const CURRENT: &str = "std::thread::current::current";

/// Functions to be redirected, and what they are redirected to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StdWrappers {
    /// The symbols that the linker wraps.
    pub wraps: Vec<String>,
    /// The wrappers, for the assembler.
    pub assembly: String,
    /// Functions that this standard library does not have. If there are any it is of another
    /// version than ours, and what they did is not seen.
    pub missing: Vec<&'static str>,
}

/// Where a wrapper finds the thing that an event is about.
#[derive(Clone, Copy)]
enum Thing {
    /// The first argument.
    First,
    /// What the first argument points to.
    Pointed,
    /// The first argument, marked as apart from memory.
    Apart,
    /// What the first argument points to, marked as apart from memory.
    PointedApart,
    /// The handle of the current thread.
    Current,
}

/// What a wrapper does around the function.
#[derive(Clone, Copy)]
enum Shape {
    /// Reports one event before and another after, if any.
    Around(Option<u32>, Thing, Option<u32>),
    /// A wait on a condition, and whether its result says that it did not time out.
    Wait { is_timed: bool },
    /// Runs a function of the program within.
    Once,
}

/// The functions and their wrappers.
const TABLE: [(&str, Shape); 21] = {
    use Shape::{Around, Once, Wait};
    use Thing::{Apart, Current, First, Pointed, PointedApart};
    const fn own(thing: Thing) -> Shape {
        Around(Some(what::INTERNAL_REQUEST), thing, Some(what::INTERNAL_ACQUIRED))
    }
    [
        (
            "std::sys::sync::mutex::futex::Mutex::lock_contended",
            Around(Some(what::MUTEX_REQUEST), First, Some(what::MUTEX_ACQUIRED)),
        ),
        (
            "std::sys::sync::rwlock::futex::RwLock::read_contended",
            Around(Some(what::READ_REQUEST), First, Some(what::READ_ACQUIRED)),
        ),
        (
            "std::sys::sync::rwlock::futex::RwLock::write_contended",
            Around(Some(what::WRITE_REQUEST), First, Some(what::WRITE_ACQUIRED)),
        ),
        ("std::sys::sync::condvar::futex::Condvar::wait", Wait { is_timed: false }),
        ("std::sys::sync::condvar::futex::Condvar::wait_timeout", Wait { is_timed: true }),
        (
            "std::sync::poison::condvar::Condvar::notify_one",
            Around(Some(what::NOTIFY_ONE), First, None),
        ),
        (
            "std::sync::poison::condvar::Condvar::notify_all",
            Around(Some(what::NOTIFY_ALL), First, None),
        ),
        ("std::sys::sync::once::futex::Once::call", Once),
        ("std::sync::once::Once::wait", Around(None, First, Some(what::ONCE_FOUND))),
        ("std::sync::once::Once::wait_force", Around(None, First, Some(what::ONCE_FOUND))),
        ("std::thread::thread::Thread::park", Around(None, Pointed, Some(what::PARKED))),
        ("std::thread::thread::Thread::park_timeout", Around(None, Pointed, Some(what::PARKED))),
        ("std::thread::functions::park", Around(None, Current, Some(what::PARKED))),
        ("std::thread::functions::park_timeout", Around(None, Current, Some(what::PARKED))),
        ("std::thread::functions::park_timeout_ms", Around(None, Current, Some(what::PARKED))),
        (
            "std::thread::scoped::ScopeData::decrement_num_running_threads",
            Around(Some(what::SCOPE_LEAVE), Apart, None),
        ),
        (
            "std::sync::barrier::Barrier::wait",
            Around(Some(what::BARRIER_ARRIVE), Apart, Some(what::BARRIER_DEPART)),
        ),
        // These are handles, a pointer each. What takes the lock is given a pointer to the handle,
        // but for `lines`, which is given the handle itself.
        ("std::io::stdio::Stdout::lock", own(PointedApart)),
        ("std::io::stdio::Stderr::lock", own(PointedApart)),
        ("std::io::stdio::Stdin::lock", own(PointedApart)),
        ("std::io::stdio::Stdin::lines", own(Apart)),
    ]
};

/// The wrappers for a standard library that defines the functions `symbols`, by their mangled names.
pub fn for_symbols<'a>(symbols: impl IntoIterator<Item = &'a str>) -> StdWrappers {
    let mut wanted: FxHashMap<&str, Option<&str>> = FxHashMap::default();
    wanted.extend(TABLE.iter().map(|(name, _)| (*name, None)));
    wanted.insert(CURRENT, None);
    for symbol in symbols {
        if let Some(found) = wanted.get_mut(demangle(symbol).as_str()) {
            *found = Some(symbol);
        }
    }
    let current = wanted.get(CURRENT).copied().flatten();
    let mut std_wrappers = StdWrappers { assembly: String::from(HEAD), ..StdWrappers::default() };
    for (name, shape) in &TABLE {
        let symbol = wanted.get(name).copied().flatten();
        let text = symbol.and_then(|symbol| wrapper(symbol, *shape, current));
        match (symbol, text) {
            (Some(symbol), Some(text)) => {
                std_wrappers.wraps.push(symbol.to_owned());
                std_wrappers.assembly.push_str(&text);
            }
            _ => std_wrappers.missing.push(name),
        }
    }
    if std_wrappers.wraps.is_empty() {
        std_wrappers.assembly.clear();
    }
    std_wrappers
}

/// The file with the functions of the standard library for `target`, below what
/// `rustc --print sysroot` says.
#[must_use]
pub fn find_library(sysroot: &Path, target: &str) -> Option<PathBuf> {
    let folder = sysroot.join("lib/rustlib").join(target).join("lib");
    let paths = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.strip_prefix("libstd-").is_some_and(|rest| rest.ends_with(".rlib"))
    };
    paths.filter(is_library).min()
}

/// The global functions that the library or object at `path` defines, by their mangled names.
///
/// # Errors
/// If the file cannot be read. What in it is no object has no functions.
pub fn library_symbols(path: &Path) -> io::Result<Vec<String>> {
    let bytes = fs::read(path)?;
    let mut names = Vec::new();
    match ArchiveFile::parse(&*bytes) {
        Ok(archive) => {
            for member in archive.members().flatten() {
                add_symbols(member.data(&*bytes).unwrap_or_default(), &mut names);
            }
        }
        Err(_) => add_symbols(&bytes, &mut names),
    }
    Ok(names)
}

fn add_symbols(bytes: &[u8], names: &mut Vec<String>) {
    let Ok(object) = object::File::parse(bytes) else { return };
    for symbol in object.symbols().chain(object.dynamic_symbols()) {
        if symbol.is_global() && symbol.is_definition() {
            names.extend(symbol.name().map(str::to_owned));
        }
    }
}

/// What stands before the wrappers: the table through which `Once` calls back. Its entries are those
/// of a `dyn FnMut`: drop, size, alignment, `call_once`, `call_mut`.
const HEAD: &str = r#"    .text
    .p2align 4
    .type    .Lreweave_once_run, @function
.Lreweave_once_run:
    .cfi_startproc
    pushq    %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq    %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq    $16, %rsp
    movq    %rdi, -8(%rbp)
    movq    %rsi, -16(%rbp)
    movq    24(%rdi), %rdx
    movq    16(%rdi), %rsi
    movl    $12, %edi
    xorl    %ecx, %ecx
    call    reweave_std_event@PLT
    movq    -8(%rbp), %rax
    movq    -16(%rbp), %rsi
    movq    (%rax), %rdi
    movq    8(%rax), %rax
    call    *32(%rax)
    movq    -8(%rbp), %rax
    movq    24(%rax), %rdx
    movq    16(%rax), %rsi
    movl    $13, %edi
    xorl    %ecx, %ecx
    call    reweave_std_event@PLT
    leave
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size    .Lreweave_once_run, .-.Lreweave_once_run
    .section    .data.rel.ro, "aw", @progbits
    .p2align 3
.Lreweave_once_table:
    .quad    0, 32, 8, .Lreweave_once_run, .Lreweave_once_run
    .section    .note.GNU-stack, "", @progbits
    .text
"#;

/// The frame of a wrapper, below its base: arguments at -8 to -48, the thing at -56, results at -64 and
/// -72, and the block that `Once` gets in place of its function at -112 to -88.
const OPENING: &str = "    pushq    %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq    %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq    $112, %rsp
";

const SAVE_ARGUMENTS: &str = "    movq    %rdi, -8(%rbp)
    movq    %rsi, -16(%rbp)
    movq    %rdx, -24(%rbp)
    movq    %rcx, -32(%rbp)
    movq    %r8, -40(%rbp)
    movq    %r9, -48(%rbp)
";

const LOAD_ARGUMENTS: &str = "    movq    -8(%rbp), %rdi
    movq    -16(%rbp), %rsi
    movq    -24(%rbp), %rdx
    movq    -32(%rbp), %rcx
    movq    -40(%rbp), %r8
    movq    -48(%rbp), %r9
";

const SAVE_RESULTS: &str = "    movq    %rax, -64(%rbp)
    movq    %rdx, -72(%rbp)
";

const CLOSING: &str = "    movq    -64(%rbp), %rax
    movq    -72(%rbp), %rdx
    leave
    .cfi_def_cfa %rsp, 8
    ret
";

/// The wrapper of `symbol`; none if it would need the current thread and `current` is not there.
fn wrapper(symbol: &str, shape: Shape, current: Option<&str>) -> Option<String> {
    let body = match shape {
        Shape::Around(before, thing, after) => around(symbol, before, thing, after, current)?,
        Shape::Wait { is_timed } => wait(symbol, is_timed),
        Shape::Once => once(symbol),
    };
    let name = format!("__wrap_{symbol}");
    Some(format!(
        "    .p2align 4\n    .globl    {name}\n    .type    {name}, @function\n{name}:\n    .cfi_startproc\n\
         {OPENING}{SAVE_ARGUMENTS}{body}{CLOSING}    .cfi_endproc\n    .size    {name}, .-{name}\n"
    ))
}

/// Reports the event `what` of the thing in the frame; `extra` is an operand.
fn report(what: u32, extra: &str) -> String {
    format!(
        "    movl    ${what}, %edi\n    movq    -56(%rbp), %rsi\n    movq    8(%rbp), %rdx\n\
             {extra}\n    call    {EVENT_FUNCTION}@PLT\n"
    )
}

/// Nothing as the second address of an event.
const NO_EXTRA: &str = "xorl    %ecx, %ecx";

/// The mutex of a wait, which is its second argument.
const MUTEX_EXTRA: &str = "movq    -16(%rbp), %rcx";

fn call_real(symbol: &str) -> String {
    format!("{LOAD_ARGUMENTS}    call    __real_{symbol}@PLT\n{SAVE_RESULTS}")
}

fn around(
    symbol: &str,
    before: Option<u32>,
    thing: Thing,
    after: Option<u32>,
    current: Option<&str>,
) -> Option<String> {
    let mut body = String::new();
    match thing {
        Thing::First => body.push_str("    movq    %rdi, -56(%rbp)\n"),
        Thing::Pointed => body.push_str("    movq    (%rdi), %rax\n    movq    %rax, -56(%rbp)\n"),
        Thing::Apart | Thing::PointedApart => {
            let source = if matches!(thing, Thing::Apart) { "%rdi" } else { "(%rdi)" };
            let _ = write!(
                body,
                "    movq    {source}, %rax\n    btsq    $47, %rax\n    movq    %rax, -56(%rbp)\n"
            );
        }
        // The handle counts as a reference, which is released at once: the thread has its own.
        Thing::Current => {
            let current = current?;
            let _ = write!(
                body,
                "    call    {current}@PLT\n    movq    %rax, -56(%rbp)\n    lock decq    (%rax)\n"
            );
        }
    }
    body.extend(before.map(|what| report(what, NO_EXTRA)));
    body.push_str(&call_real(symbol));
    body.extend(after.map(|what| report(what, NO_EXTRA)));
    Some(body)
}

fn wait(symbol: &str, is_timed: bool) -> String {
    let mut body = String::from("    movq    %rdi, -56(%rbp)\n");
    let waits = if is_timed { what::CONDITION_TIMED_WAIT } else { what::CONDITION_WAIT };
    body.push_str(&report(waits, MUTEX_EXTRA));
    body.push_str(&call_real(symbol));
    if !is_timed {
        body.push_str(&report(what::CONDITION_WAKE, MUTEX_EXTRA));
        return body;
    }
    // The result is false if the time had passed.
    let (woken, late) = (what::CONDITION_WAKE, what::CONDITION_TIMED_OUT);
    let _ = write!(
        body,
        "    movl    ${woken}, %edi\n    movl    ${late}, %ecx\n    testb    $1, %al\n    cmovzl    %ecx, %edi\n\
             movq    -56(%rbp), %rsi\n    movq    8(%rbp), %rdx\n    {MUTEX_EXTRA}\n\
             call    {EVENT_FUNCTION}@PLT\n"
    );
    body
}

/// Puts a function of ours in the place of the program's, which reports before and after it.
fn once(symbol: &str) -> String {
    let found = report(what::ONCE_FOUND, NO_EXTRA);
    format!(
        "    movq    %rdi, -56(%rbp)\n    movq    8(%rbp), %rax\n    movq    %rdx, -112(%rbp)\n\
             movq    %rcx, -104(%rbp)\n    movq    %rdi, -96(%rbp)\n    movq    %rax, -88(%rbp)\n\
             leaq    -112(%rbp), %rdx\n    leaq    .Lreweave_once_table(%rip), %rcx\n\
             call    __real_{symbol}@PLT\n{SAVE_RESULTS}{found}"
    )
}

/// The compiler driver that assembles wrappers and that Rust's compiler links with.
const DRIVER: &str = "cc";

/// The wrappers for the standard library for `target` of the toolchain at `sysroot`. Where there is no
/// such library, all functions are missing.
#[must_use]
pub fn for_toolchain(sysroot: &Path, target: &str) -> StdWrappers {
    let library = find_library(sysroot, target);
    let symbols = library.and_then(|library| library_symbols(&library).ok()).unwrap_or_default();
    for_symbols(symbols.iter().map(String::as_str))
}

/// What the user should know of functions that could not be wrapped.
pub fn warning(std_wrappers: &StdWrappers) -> Option<String> {
    let names: Vec<&str> = std_wrappers.missing.iter().map(|name| short(name)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "this standard library has no {}: where these order threads it is not seen, and races \
             may be reported that are none; `--build-std` sees everything",
            names.join(", ")
        )
    })
}

/// The last two parts of the name of a function.
fn short(name: &str) -> &str {
    name.rmatch_indices("::").nth(1).map_or(name, |(place, _)| &name[place + 2..])
}

/// Whether there is what programs are linked with.
///
/// # Errors
/// If there is no C compiler.
pub fn check_driver() -> Result<(), ToolchainError> {
    let mut command = Command::new(DRIVER);
    command.arg("--version");
    answer(command).map(|_| ()).map_err(|_| {
        let said = "Rust programs are linked by a C compiler, and there is no `cc`: install gcc or \
                    clang";
        ToolchainError::Usage(said.to_owned())
    })
}

/// The linker driver's arguments that put `std_wrappers` into a program; none for no wrappers.
pub fn link_arguments(std_wrappers: &StdWrappers) -> Result<Vec<OsString>, ToolchainError> {
    if std_wrappers.wraps.is_empty() {
        return Ok(Vec::new());
    }
    let mut arguments = vec![assembled(&std_wrappers.assembly)?.into_os_string()];
    arguments.extend(std_wrappers.wraps.iter().map(|name| format!("-Wl,--wrap={name}").into()));
    Ok(arguments)
}

/// The wrappers as an object in the cache, whose name says what it was made of.
fn assembled(assembly: &str) -> Result<PathBuf, ToolchainError> {
    let name = format!("std-wrappers-{:016x}", xxh3_64(assembly.as_bytes()));
    let source = in_cache(|cache| {
        let source = cache.join(&name).with_extension("s");
        write(&source, assembly.as_bytes()).map(|()| source)
    })?;
    let object = source.with_extension("o");
    if object.is_file() {
        return Ok(object);
    }
    // Assembled under a name of its own and then renamed: others may be doing the same.
    let own = source.with_extension(format!("{}.o", std::process::id()));
    let mut command = Command::new(DRIVER);
    command.arg("-c").arg(&source).arg("-o").arg(&own);
    let output = answer(command)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(ToolchainError::Failed { name: DRIVER.to_owned(), said });
    }
    fs::rename(&own, &object)
        .map_err(|error| ToolchainError::Start { name: object.display().to_string(), error })?;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_through_which_once_calls_tells_its_numbers() {
        assert!(HEAD.contains(&format!("movl    ${}, %edi", what::ONCE_RUNS)));
        assert!(HEAD.contains(&format!("movl    ${}, %edi", what::ONCE_ENDS)));
    }

    #[test]
    fn what_a_library_lacks_is_named() {
        let none = for_symbols([]);
        assert_eq!((none.wraps.len(), none.missing.len()), (0, TABLE.len()));
        assert_eq!(none.assembly, "");
        let symbol = "_ZN3std3sys4sync5mutex5futex5Mutex14lock_contended17h0123456789abcdefE";
        let one = for_symbols(["main", symbol]);
        assert_eq!(one.wraps, [symbol]);
        assert_eq!(one.missing.len(), TABLE.len() - 1);
    }

    #[test]
    fn what_is_missing_is_named_shortly() {
        let missing = vec!["std::sys::sync::once::futex::Once::call", "main"];
        let said = warning(&StdWrappers { missing, ..StdWrappers::default() }).unwrap();
        assert!(said.contains("has no Once::call, main:"), "{said}");
        assert!(said.contains("--build-std"), "{said}");
        assert_eq!(warning(&StdWrappers::default()), None);
    }

    #[test]
    fn a_toolchain_without_a_library_lacks_everything() {
        let folder = tempfile::tempdir().unwrap();
        let std_wrappers = for_toolchain(folder.path(), "x86_64-unknown-linux-gnu");
        assert!(std_wrappers.wraps.is_empty() && !std_wrappers.missing.is_empty());
        assert_eq!(link_arguments(&std_wrappers).unwrap(), Vec::<OsString>::new());
    }
}
