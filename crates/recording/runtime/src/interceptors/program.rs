//! The program as a whole: libraries that it loads, processes that it starts, blocks that it marks.

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence};

#[cfg(not(reweave_static))]
use super::{enter_or, flags_of_end, real_address};
use super::{handlers, interceptors, libraries, note_caller, objects, undisturbed};
use crate::hooks::atomic;
use crate::log::{self, Entry, Operands};
#[cfg(not(reweave_static))]
use crate::sys;
use crate::wire::Kind;
#[cfg(not(reweave_static))]
use crate::wire::{flag, handle};
use crate::{process, replay, scheduler, thread};

/// A program or library in memory, as the loader describes it.
#[repr(C)]
pub struct LoadedObject {
    /// What is added to the addresses in its file.
    pub address: u64,
    /// Its path; empty for the program itself.
    pub name: *const c_char,
    pub headers: *const ProgramHeader,
    pub headers_count: u16,
    adds: u64,
    subs: u64,
    storage_module: usize,
    /// Its thread-local storage, in the running thread.
    pub storage: usize,
}

/// A part of a program or library, as its file describes it.
#[repr(C)]
pub struct ProgramHeader {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub address: u64,
    physical_address: u64,
    pub file_bytes: u64,
    pub memory_bytes: u64,
    alignment: u64,
}

unsafe extern "C" {
    pub fn dl_iterate_phdr(
        visit: unsafe extern "C" fn(*const LoadedObject, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

/// How many objects had been loaded when the memory map was last noted.
static LOADED: AtomicU64 = AtomicU64::new(0);

/// How often to look whether an object was loaded, after a call that may do so.
static LOOKS: AtomicU32 = AtomicU32::new(0);

const LOOKS_AFTER_OPEN: u32 = 1000;

unsafe extern "C" fn count(object: *const LoadedObject, size: usize, adds: *mut c_void) -> c_int {
    if size >= size_of::<LoadedObject>() {
        *adds.cast::<u64>() = (*object).adds;
    }
    1
}

/// Notes the memory map if an object was loaded since it was last noted.
pub unsafe fn note_new_objects(entry: &Entry) {
    let mut adds = 0_u64;
    undisturbed(entry.thread, || dl_iterate_phdr(count, (&raw mut adds).cast()));
    // One more, so that a program that loads nothing is noted too.
    if LOADED.swap(adds + 1, Ordering::Relaxed) != adds + 1 {
        LOOKS.store(0, Ordering::Relaxed);
        process::copy_maps(entry);
        replay::objects_changed();
        bind(entry);
    } else if objects::has_new_static_code() {
        // It says so after it was loaded.
        bind(entry);
    }
}

/// Has the memory map noted again.
pub fn forget_objects() {
    LOADED.store(0, Ordering::Relaxed);
}

/// Looks for new objects if a call that may load one came before.
#[inline(always)]
pub unsafe fn look_for_objects(entry: &Entry) {
    if LOOKS.load(Ordering::Relaxed) > 0 {
        look(entry);
    }
}

/// How many threads close libraries. They hold the loader's lock, and may wait for the token.
static CLOSING: AtomicU32 = AtomicU32::new(0);

/// How often threads began to close one.
#[cfg(not(reweave_static))]
static CLOSES: AtomicU64 = AtomicU64::new(0);

#[cold]
unsafe fn look(entry: &Entry) {
    if CLOSING.load(Ordering::Relaxed) > 0 {
        return;
    }
    LOOKS.fetch_sub(1, Ordering::Relaxed);
    note_new_objects(entry);
    if IS_UNBOUND.load(Ordering::Relaxed) {
        bind(entry);
    }
}

/// Whether an object was being loaded when its calls were last looked at.
static IS_UNBOUND: AtomicBool = AtomicBool::new(false);

/// Sees to the calls between objects.
unsafe fn bind(entry: &Entry) {
    let is_any_left = undisturbed(entry.thread, || libraries::bind_new_objects());
    #[cfg(not(reweave_static))]
    announce(entry);
    IS_UNBOUND.store(is_any_left, Ordering::Relaxed);
    if is_any_left {
        LOOKS.store(LOOKS_AFTER_OPEN, Ordering::Relaxed);
    }
}

/// Called by the constructor of every instrumented object file.
#[unsafe(naked)]
#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn __tsan_init() {
    core::arch::naked_asm!(
        note_caller!(),
        "jmp {}",
        sym object_starts,
    )
}

/// Whether any code is instrumented. Where none is, the few accesses that interceptors know of are not
/// reported: without the atomic accesses around them they would seem to race.
static IS_INSTRUMENTED: AtomicBool = AtomicBool::new(false);

/// Logs that a function of the C library accesses `length` bytes from `address`.
///
/// What a library that was not rebuilt has it access is the library's own.
pub unsafe fn log_range(entry: &Entry, kind: Kind, address: usize, length: usize) {
    log_range_of(entry, kind, address, length, None);
}

/// The same, where each byte is `byte` if that is known.
pub unsafe fn log_range_of(
    entry: &Entry,
    kind: Kind,
    address: usize,
    length: usize,
    byte: Option<u8>,
) {
    if length > 0 && IS_INSTRUMENTED.load(Ordering::Relaxed) && !objects::is_foreign(entry.code) {
        let (extra, value) = (Some(length as u64), byte.map(u64::from));
        entry.log_with(kind, address as u64, Operands { extra, value, ..Operands::default() });
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
pub mod blocks {
    use super::*;

    /// The longest name of a block that is reported.
    const NAME_BYTES: usize = 16;

    interceptors! { own
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
            let operands =
                Operands { extra: half(&bytes[..8]), value: half(&bytes[8..]), ..Operands::default() };
            entry.log_with(Kind::BlockBegin, name as u64, operands);
        }
        fn reweave_atomic_end() -> () {
            let Some(entry) = log::enter(thread::caller()) else { return };
            entry.log(Kind::BlockEnd, 0);
        }
    }
}

/// Leaves the runtime for good: a signal handler that came while the thread waited, or while a
/// hook looked at memory that is not there, does not return to it.
unsafe fn leave_runtime() {
    let thread = thread::current();
    if thread.is_null() || thread == thread::unrecorded() {
        return;
    }
    // The handler is left as well, and so is the call that it interrupted.
    (*thread).is_interrupted = false;
    (*thread).asks_for_signals = false;
    (*thread).waits_in_call = false;
    let is_inside = (*thread).depth != 0;
    if !is_inside && !(*thread).is_blocking.load(Ordering::Relaxed) {
        return;
    }
    scheduler::end_blocking(thread, false);
    let was_pending = is_inside && core::mem::take(&mut (*thread).pending) != 0;
    if is_inside {
        atomic::release_if_held(thread);
        if scheduler::may_log(thread) {
            restart_run(thread);
        }
    }
    scheduler::reacquire(thread);
    if was_pending {
        log::forget_pending(thread);
    }
    (*thread).deferred.is_off = false;
    compiler_fence(Ordering::SeqCst);
    (*thread).depth = 0;
}

/// Counts anew if accesses were still counted that have been reported: an event was written, and its
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
pub unsafe fn arm_fork() {
    let before = super::ipc::before_fork;
    __register_atfork(Some(before), None, Some(on_fork), core::ptr::null_mut());
}

/// Called in a child process, which has only the thread that forked.
unsafe extern "C" fn on_fork() {
    handlers::forget_owner();
    let thread = thread::current();
    if thread.is_null() || thread == thread::unrecorded() {
        return;
    }
    // Frames below may be those of a hook or of a interceptor, which go on as the thread that was.
    if (*thread).depth == 0 && !(*thread).is_blocking.load(Ordering::Relaxed) {
        process::restart_in_child();
    } else {
        process::stop_in_child(thread);
    }
}

/// Interceptors that a static program does not have.
#[cfg(not(reweave_static))]
pub mod dynamic {
    use super::loaded::Extents;
    use super::*;

    interceptors! {
        fn dlclose(object: usize) -> c_int {
            let code = thread::caller();
            let entry = enter_or!(real(object)).flushed();
            let before = undisturbed(entry.thread, || Extents::now());
            if let Some(inside) = library_of(object) {
                note_handle(&entry, handle::LIBRARY, inside, flag::OUT | flags_of_end(&entry));
            }
            // Destructors of the object run recorded.
            drop(entry);
            let closes = CLOSES.fetch_add(1, Ordering::SeqCst) + 1;
            let is_first = CLOSING.fetch_add(1, Ordering::SeqCst) == 0;
            let result = real(object);
            let is_alone = is_first && CLOSES.load(Ordering::SeqCst) == closes;
            CLOSING.fetch_sub(1, Ordering::SeqCst);
            if let Some(before) = before {
                // What is gone may be what another thread closes, whose destructors still run.
                before.end_what_is_gone(code, if is_alone { 0 } else { flag::ASSUMED });
            }
            result
        }
    }
}

/// Logs what is done to a handle of the kind `what`, as [`Kind::LockDestroy`] says.
pub unsafe fn note_handle(entry: &Entry, what: u64, address: u64, flags: u16) {
    let operands = Operands { flags, extra: Some(what), ..Operands::default() };
    entry.log_with(Kind::LockDestroy, address, operands);
}

/// An address in the library to which `opened` leads, as `dlopen` gave it.
#[cfg(not(reweave_static))]
unsafe fn library_of(opened: usize) -> Option<u64> {
    const DYNAMIC: usize = 2;
    let is_link = opened.is_multiple_of(size_of::<u64>()) && sys::is_readable(opened as u64);
    // Where its dynamic section is, behind where it was loaded and how it is called.
    let inside = if is_link { *(opened as *const u64).add(DYNAMIC) } else { 0 };
    let opened = opened as u64;
    if objects::find(inside).is_none() {
        let known = OPENED.iter().find(|[known, _]| known.load(Ordering::Relaxed) == opened);
        return known.map(|[_, inside]| inside.load(Ordering::Relaxed));
    }
    let [known, place] = &OPENED[(opened >> 6) as usize % OPENED.len()];
    known.store(opened, Ordering::Relaxed);
    place.store(inside, Ordering::Relaxed);
    Some(inside)
}

/// Handles of libraries, which may be closed by now, and addresses in these.
#[cfg(not(reweave_static))]
static OPENED: [[AtomicU64; 2]; 64] = [const { [const { AtomicU64::new(0) }; 2] }; 64];

/// Logs which libraries were loaded since the last time, but for those that the program started with.
#[cfg(not(reweave_static))]
unsafe fn announce(entry: &Entry) {
    objects::each_new_library(|object| {
        let operands = Operands {
            extra: Some(handle::LIBRARY),
            value: Some(object.end() - object.start()),
            ..Operands::default()
        };
        entry.log_unplanned_with(Kind::LockDestroy, object.start(), operands);
    });
}

/// `dlopen` and `dlsym` find libraries by who calls them, so they are not called but jumped to.
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
#[unsafe(naked)]
#[cfg_attr(reweave_export, unsafe(export_name = "dlsym"))]
unsafe extern "C" fn exported_dlsym(opened: usize, name: *const u8) -> usize {
    core::arch::naked_asm!(
        note_caller!(),
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        sym looking_up,
    )
}

/// The program is about to look something up in what `opened` leads to.
#[cfg(not(reweave_static))]
unsafe extern "C" fn looking_up(opened: usize) -> usize {
    // In all libraries, or in those that come next.
    let is_special = matches!(opened, 0 | usize::MAX);
    if !is_special
        && let Some(entry) = log::enter(thread::caller())
        && objects::is_instrumented(entry.code)
        && let Some(inside) = library_of(opened)
    {
        note_handle(&entry, handle::LIBRARY, inside, flag::SHARED);
    }
    super::real_dlsym()
}

#[cfg(not(reweave_static))]
unsafe extern "C" fn opening() -> usize {
    LOOKS.store(LOOKS_AFTER_OPEN, Ordering::Relaxed);
    real_address!(dlopen)
}

/// A handle of the object `name` if it is loaded; 0 if it is not.
#[cfg(not(reweave_static))]
pub unsafe fn open_loaded(name: *const c_char, flags: c_int) -> usize {
    let open: unsafe extern "C" fn(*const c_char, c_int) -> usize =
        core::mem::transmute(real_address!(@known dlopen));
    open(name, flags)
}

#[cfg(not(reweave_static))]
pub use loaded::{extent, find_c_library, is_in_c_library};

/// Where loaded objects lie in memory; a static program loads none.
#[cfg(not(reweave_static))]
mod loaded {
    use super::super::without_signals;
    use super::*;

    // Which memory loaded objects take, so that it ends when they are unloaded: what is loaded there
    // next has other variables.

    /// Objects beyond this many are not followed.
    const OBJECTS_MAX: usize = 4095;

    /// Where objects are loaded.
    pub struct Extents(*mut List);

    #[repr(C)]
    struct List {
        count: usize,
        places: [(u64, u64); OBJECTS_MAX],
    }

    impl Extents {
        /// What is loaded now; nothing if there is no memory to say so.
        pub unsafe fn now() -> Option<Self> {
            let list = sys::allocate(size_of::<List>())?.cast::<List>();
            dl_iterate_phdr(add, list.cast());
            Some(Self(list))
        }

        /// Logs that the memory of objects which were unloaded since is another from now on.
        pub unsafe fn end_what_is_gone(&self, code: u64, flags: u16) {
            without_signals(|| dl_iterate_phdr(remove, self.0.cast()));
            let list = &*self.0;
            let gone = || list.places.iter().take(list.count).filter(|(start, end)| start < end);
            let thread = thread::current();
            // What was written there last cannot be read any more.
            let is_lost = !thread.is_null()
                && gone().any(|&(start, end)| (start..end).contains(&(*thread).pending));
            if is_lost {
                (*thread).pending = 0;
            }
            if gone().next().is_some()
                && let Some(entry) = log::enter(code)
            {
                if is_lost {
                    log::forget_pending(thread);
                }
                for &(start, end) in gone() {
                    objects::forget_within(start, end);
                    let operands = Operands {
                        flags: flag::OUT | flag::SHARED | flags,
                        extra: Some(handle::LIBRARY),
                        ..Operands::default()
                    };
                    entry.log_unplanned_with(Kind::LockDestroy, start, operands);
                    entry.log_extra(Kind::Alloc, start, end - start);
                    entry.log(Kind::Free, start);
                }
            }
        }
    }

    impl Drop for Extents {
        fn drop(&mut self) {
            // SAFETY: the list is ours, and this is its end.
            unsafe {
                sys::unmap(self.0.cast(), size_of::<List>());
            }
        }
    }

    /// Where an object begins and ends.
    pub unsafe fn extent(object: &LoadedObject) -> (u64, u64) {
        /// `PT_LOAD`.
        const LOADED: u32 = 1;
        let (mut start, mut end) = (u64::MAX, 0);
        for place in 0..usize::from(object.headers_count) {
            let header = &*object.headers.add(place);
            if header.kind == LOADED {
                let address = object.address.wrapping_add(header.address);
                start = start.min(address);
                end = end.max(address.saturating_add(header.memory_bytes));
            }
        }
        (start, end)
    }

    unsafe extern "C" fn add(object: *const LoadedObject, _: usize, list: *mut c_void) -> c_int {
        let list = &mut *list.cast::<List>();
        let Some(place) = list.places.get_mut(list.count) else { return 1 };
        *place = extent(&*object);
        list.count += 1;
        0
    }

    unsafe extern "C" fn remove(object: *const LoadedObject, _: usize, list: *mut c_void) -> c_int {
        let list = &mut *list.cast::<List>();
        let extent = extent(&*object);
        for place in list.places.iter_mut().take(list.count).filter(|place| **place == extent) {
            *place = (0, 0);
        }
        0
    }

    // Where the code of the C library is.
    //
    // While a thread waits in a call, interceptors are entered by signal handlers, which are the program's,
    // and by the C library, whose call it is. They are distinguished by where they were called from. That
    // needs a C library of its own: this is not part of static programs.

    /// The C library, its threads where they are apart, and the loader.
    const PARTS: usize = 3;

    /// The first address of each part, and the first after it.
    static EXTENTS: [[AtomicU64; 2]; PARTS] = [const { [const { AtomicU64::new(0) }; 2] }; PARTS];

    /// Whether the code at `code` is the C library's.
    pub fn is_in_c_library(code: u64) -> bool {
        EXTENTS.iter().any(|[start, end]| {
            (start.load(Ordering::Relaxed)..end.load(Ordering::Relaxed)).contains(&code)
        })
    }

    /// Finds the C library, by a function of each of its parts.
    pub unsafe fn find_c_library() {
        const DEFAULT: usize = 0;
        const NEXT: usize = usize::MAX;
        let mut functions = [
            crate::interceptors::dlsym(NEXT, c"dl_iterate_phdr".as_ptr().cast()) as u64,
            crate::interceptors::dlsym(NEXT, c"pthread_create".as_ptr().cast()) as u64,
            crate::interceptors::dlsym(DEFAULT, c"__tls_get_addr".as_ptr().cast()) as u64,
        ];
        dl_iterate_phdr(note_extent, (&raw mut functions).cast());
    }

    unsafe extern "C" fn note_extent(
        object: *const LoadedObject,
        _size: usize,
        functions: *mut c_void,
    ) -> c_int {
        let functions = &*functions.cast::<[u64; PARTS]>();
        let (start, end) = extent(&*object);
        for (&function, extent) in functions.iter().zip(&EXTENTS) {
            if (start..end).contains(&function) {
                extent[0].store(start, Ordering::Relaxed);
                extent[1].store(end, Ordering::Relaxed);
            }
        }
        0
    }
}

interceptors! {
    fn fork() -> c_int {
        // What the child must know of it is done by `on_fork`.
        if let Some(entry) = log::enter(thread::caller()) {
            drop(entry.flushed());
        }
        real()
    }
    // Whoever gives up the rights of root must still be able to record its threads.
    fn [setuid seteuid](user: c_uint) -> c_int { process::entrust(user); real(user) }
    fn setreuid(first: c_uint, user: c_uint) -> c_int { process::entrust(user); real(first, user) }
    fn setresuid(first: c_uint, user: c_uint, saved: c_uint) -> c_int {
        process::entrust(user);
        real(first, user, saved)
    }
    fn [longjmp _longjmp siglongjmp __longjmp_chk](place: usize, value: c_int) -> () {
        leave_runtime();
        // The jump may set which signals are blocked.
        handlers::deliver_outside();
        real(place, value);
    }
}
