//! The program as a whole: libraries that it loads, processes that it starts, blocks that it marks.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence};

use super::doors;
use crate::hooks::atomic;
use crate::log::{self, Entry};
use crate::wire::Kind;
use crate::{process, replay, thread, turn};

/// A program or library in memory, as the loader describes it.
#[repr(C)]
pub(crate) struct LoadedObject {
    /// What is added to the addresses in its file.
    pub(crate) address: u64,
    /// Its path; empty for the program itself.
    pub(crate) name: *const c_char,
    pub(crate) headers: *const ProgramHeader,
    pub(crate) headers_count: u16,
    adds: u64,
    subs: u64,
}

/// A part of a program or library, as its file describes it.
#[repr(C)]
pub(crate) struct ProgramHeader {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    pub(crate) address: u64,
    physical_address: u64,
    pub(crate) file_bytes: u64,
    pub(crate) memory_bytes: u64,
    alignment: u64,
}

unsafe extern "C" {
    pub(crate) fn dl_iterate_phdr(
        visit: unsafe extern "C" fn(*const LoadedObject, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

/// How many objects had been loaded when the memory map was last noted.
static LOADED: AtomicU64 = AtomicU64::new(0);
/// How often to look whether an object was loaded, after a call that may do so.
static LOOKS: AtomicU32 = AtomicU32::new(0);
#[cfg(not(reweave_static))]
const LOOKS_AFTER_OPEN: u32 = 1000;

unsafe extern "C" fn count(object: *const LoadedObject, size: usize, adds: *mut c_void) -> c_int {
    if size >= size_of::<LoadedObject>() {
        *adds.cast::<u64>() = (*object).adds;
    }
    1
}

/// Notes the memory map if an object was loaded since it was last noted.
pub(crate) unsafe fn note_new_objects(entry: &Entry) {
    let mut adds = 0_u64;
    super::in_library(entry.thread, || dl_iterate_phdr(count, (&raw mut adds).cast()));
    // One more, so that a program that loads nothing is noted too.
    if LOADED.swap(adds + 1, Ordering::Relaxed) != adds + 1 {
        LOOKS.store(0, Ordering::Relaxed);
        process::note_maps(entry);
        replay::objects_changed();
    }
}

/// Looks for new objects if a call that may load one came before.
#[inline(always)]
pub(crate) unsafe fn look_for_objects(entry: &Entry) {
    if LOOKS.load(Ordering::Relaxed) > 0 {
        look(entry);
    }
}

#[cold]
unsafe fn look(entry: &Entry) {
    LOOKS.fetch_sub(1, Ordering::Relaxed);
    note_new_objects(entry);
}

/// Called by the constructor of every instrumented object file.
#[unsafe(naked)]
#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn __tsan_init() {
    core::arch::naked_asm!(
        "mov r10, [rsp]",
        "mov r11, qword ptr [rip + reweave_caller@GOTTPOFF]",
        "mov fs:[r11], r10",
        "jmp {}",
        sym object_starts,
    )
}

/// Whether any code is instrumented. Where none is, the few accesses that doors know of are not
/// told: without the atomic accesses around them they would seem to race.
static IS_INSTRUMENTED: AtomicBool = AtomicBool::new(false);

/// Logs that a function of the C library accesses `length` bytes from `address`.
pub(crate) unsafe fn log_range(entry: &Entry, kind: Kind, address: usize, length: usize) {
    if length > 0 && IS_INSTRUMENTED.load(Ordering::Relaxed) {
        entry.log_extra(kind, address as u64, length as u64);
    }
}

unsafe extern "C" fn object_starts() {
    IS_INSTRUMENTED.store(true, Ordering::Relaxed);
    let current = thread::current();
    // Before the start there is no thread to speak for.
    if !current.is_null()
        && let Some(entry) = log::enter(thread::caller())
    {
        note_new_objects(&entry);
    }
}

/// Marks that the program sets itself.
pub(crate) mod blocks {
    use crate::doors::doors;
    use crate::log::{self, More};
    use crate::thread;
    use crate::wire::Kind;

    /// The longest name of a block that is told.
    const NAME_BYTES: usize = 16;

    doors! { own
        fn reweave_atomic_begin(name: *const u8) -> () {
            let Some(entry) = log::enter(thread::caller()) else { return };
            let mut bytes = [0; NAME_BYTES];
            for (place, byte) in bytes.iter_mut().enumerate() {
                *byte = name.add(place).read();
                if *byte == 0 {
                    break;
                }
            }
            let half = |bytes: &[u8]| {
                let mut word = [0; 8];
                word.copy_from_slice(bytes);
                Some(u64::from_le_bytes(word))
            };
            let more =
                More { extra: half(&bytes[..8]), value: half(&bytes[8..]), ..More::default() };
            entry.log_more(Kind::BlockBegin, name as u64, more);
        }

        fn reweave_atomic_end() -> () {
            let Some(entry) = log::enter(thread::caller()) else { return };
            entry.log(Kind::BlockEnd, 0);
        }
    }
}

doors! {
    fn fork() -> c_int {
        // What the child must know of it is done by `on_fork`.
        if let Some(entry) = log::enter(thread::caller()) {
            drop(entry.flushed());
        }
        real::fork()
    }

    fn longjmp(place: usize, value: c_int) -> () {
        leave_runtime();
        real::longjmp(place, value);
    }

    fn _longjmp(place: usize, value: c_int) -> () {
        leave_runtime();
        real::_longjmp(place, value);
    }

    fn siglongjmp(place: usize, value: c_int) -> () {
        leave_runtime();
        real::siglongjmp(place, value);
    }

    fn __longjmp_chk(place: usize, value: c_int) -> () {
        leave_runtime();
        real::__longjmp_chk(place, value);
    }
}

/// Leaves the runtime for good: a handler of a signal that came while the thread waited, or while a
/// hook looked at memory that is not there, does not return to it.
unsafe fn leave_runtime() {
    let thread = thread::current();
    if thread.is_null() || thread == thread::off() {
        return;
    }
    let is_inside = (*thread).depth != 0;
    if !is_inside && !(*thread).away.load(Ordering::Relaxed) {
        return;
    }
    turn::come_back(thread, false);
    if is_inside {
        (*thread).pending = 0;
        atomic::let_go(thread);
        if turn::may_log(thread) {
            restart_run(thread);
        }
    }
    turn::ensure(thread);
    compiler_fence(Ordering::SeqCst);
    (*thread).depth = 0;
}

/// Counts anew if accesses were still counted that have been told: an event was written, and its
/// writer jumped away before it had started to count again.
unsafe fn restart_run(thread: *mut thread::Thread) {
    let written = (*(*thread).buffer).written();
    let run = (*thread).run;
    if *run >> 32 != written & u64::from(u32::MAX) {
        *run = written << 32;
    }
}

unsafe extern "C" {
    fn __register_atfork(
        before: Option<unsafe extern "C" fn()>,
        in_parent: Option<unsafe extern "C" fn()>,
        in_child: Option<unsafe extern "C" fn()>,
        object: *mut c_void,
    ) -> c_int;
}

/// Makes sure that a child process is recorded on its own, by whatever function it was started.
pub(crate) unsafe fn arm_fork() {
    let before = super::channel::children::before_fork;
    __register_atfork(Some(before), None, Some(on_fork), core::ptr::null_mut());
}

/// Called in a child process, which has only the thread that forked.
unsafe extern "C" fn on_fork() {
    let thread = thread::current();
    if thread.is_null() || thread == thread::off() {
        return;
    }
    // Frames below may be those of a hook or of a door, which go on as the thread that was.
    if (*thread).depth == 0 && !(*thread).away.load(Ordering::Relaxed) {
        process::restart_in_child();
    } else {
        process::leave_child_alone(thread);
    }
}

#[cfg(not(reweave_static))]
mod extents;
#[cfg(not(reweave_static))]
pub(crate) mod library;

/// Doors that a static program does not have.
#[cfg(not(reweave_static))]
mod dynamic {
    use core::ffi::c_int;

    use super::extents::Extents;
    use crate::doors::{doors, enter_or, in_library, outside};
    use crate::thread;

    doors! {
        fn dlclose(object: usize) -> c_int {
            let code = thread::caller();
            let entry = enter_or!(real::dlclose(object)).flushed();
            let before = in_library(entry.thread, || Extents::now());
            // Destructors of the object run recorded.
            drop(entry);
            let result = real::dlclose(object);
            if let Some(before) = before {
                before.end_what_is_gone(code);
            }
            result
        }

        fn getaddrinfo(node: usize, service: usize, hints: usize, result: usize) -> c_int {
            let entry = enter_or!(real::getaddrinfo(node, service, hints, result));
            outside(entry.thread, || real::getaddrinfo(node, service, hints, result))
        }
    }
}

/// `dlopen` finds libraries by who calls it, so it is not called but jumped to.
#[cfg(not(reweave_static))]
#[unsafe(naked)]
#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn dlopen(name: usize, flags: c_int) -> usize {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        sym opening,
    )
}

#[cfg(not(reweave_static))]
unsafe extern "C" fn opening() -> usize {
    #[cfg_attr(reweave_export, used, unsafe(link_section = "reweave_doors"))]
    static WAY: super::Way = super::Way::to("dlopen\0");
    LOOKS.store(LOOKS_AFTER_OPEN, Ordering::Relaxed);
    WAY.find()
}
