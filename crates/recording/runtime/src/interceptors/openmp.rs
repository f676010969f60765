//! OpenMP: teams, tasks and what orders them.
//!
//! The libraries of gcc (`gomp`) and clang (`ompt`) keep a pool of threads and synchronize them by
//! atomic accesses and raw futexes that we do not see. What counts is what the standard says: each
//! implicit task of a team other than that of the thread which met the region is a thread, forked
//! where the region begins and joined where it ends; each explicit task is a thread, forked where
//! it is created. Which thread of the pool runs them is chance and not recorded. A task that must
//! run at once (`if(0)`, in a final task, in a team of one) is a part of the one that creates it.
//!
//! While code runs as such a *logical* thread, its block is the current one of the kernel's thread;
//! threads of the pool are unrecorded otherwise. Memory of a stack below the frame from which it
//! starts, and thread-local storage, are other memory for each of them. Calls that the library
//! makes itself are not the program's and ignored.
//!
//! Which task comes before which is said in few events (`TeamArrive`, `Depend`, `TaskWait` and so
//! on); the recorder turns them into forks, joins and barriers.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence};

use super::program::{LoadedObject, dl_iterate_phdr, extent};
use super::{handlers, keeping_errno, real_address, threads};
use crate::log::{self, Buffer, Entry, Operands};
use crate::thread::{self, Thread, life};
use crate::wire::{Kind, channel, flag};
use crate::{process, replay, scheduler, sys};

pub mod gomp;
pub mod kmpc;
pub mod locks;
pub mod ompt;

thread::declare_local!("reweave_stack_low");
thread::declare_local!("reweave_is_worker");
thread::declare_local!("reweave_passed_signals");
thread::declare_local!("reweave_storage_low");
thread::declare_local!("reweave_ring");

// Where the code of the OpenMP libraries is.

/// The library of gcc and that of clang.
const LIBRARIES: usize = 2;

/// The first address of each, and the first after it.
static EXTENTS: [[AtomicU64; 2]; LIBRARIES] =
    [const { [const { AtomicU64::new(0) }; 2] }; LIBRARIES];

/// Whether the code at `code` is that of an OpenMP library.
#[inline]
pub fn is_library(code: u64) -> bool {
    EXTENTS.iter().any(|[start, end]| {
        code < end.load(Ordering::Relaxed) && code >= start.load(Ordering::Relaxed)
    })
}

/// Takes note of the library that has `function` at `address`.
unsafe fn note_library(place: usize, address: usize) {
    if address != 0 && EXTENTS[place][1].load(Ordering::Relaxed) == 0 {
        let mut wanted = (address as u64, place);
        dl_iterate_phdr(note_extent, (&raw mut wanted).cast());
    }
}

unsafe extern "C" fn note_extent(
    object: *const LoadedObject,
    _: usize,
    wanted: *mut c_void,
) -> c_int {
    let &(function, place) = &*wanted.cast::<(u64, usize)>();
    let (start, end) = extent(&*object);
    if !(start..end).contains(&function) {
        return 0;
    }
    EXTENTS[place][0].store(start, Ordering::Relaxed);
    EXTENTS[place][1].store(end, Ordering::Relaxed);
    1
}

/// Finds the libraries that are loaded with the program.
pub unsafe fn find_libraries() {
    note_library(0, real_address!(@known GOMP_parallel));
    note_library(1, real_address!(@known __kmpc_fork_call));
}

/// Makes the running thread of a library's pool one of which nothing is recorded, and says what it
/// runs.
unsafe extern "C" fn run_worker(start: *mut [usize; 3]) -> usize {
    thread::set_current(thread::unrecorded());
    thread::take_over(threads::pthread_self());
    thread::write_local!("reweave_is_worker", 1_u64);
    let [routine, argument, blocked] = start.read();
    sys::unmap(start.cast(), WORKER_BYTES);
    sys::set_signals(blocked as u64);
    let routine: unsafe extern "C" fn(usize) -> usize = core::mem::transmute(routine);
    routine(argument)
}

const WORKER_BYTES: usize = 4096;

/// Creates a thread of a library's pool by `create`, which takes what it runs and its argument.
pub unsafe fn create_worker(
    [routine, argument]: [usize; 2],
    create: impl FnOnce(usize, usize) -> c_int,
) -> c_int {
    let Some(start) = sys::allocate(WORKER_BYTES) else { return create(routine, argument) };
    // No handler may run on it before it is known what it is.
    let blocked = sys::block_signals();
    let given = match thread::current() {
        creator if is_recorded(creator) => handlers::blocked_signals(creator, blocked),
        _ => blocked,
    };
    start.cast::<[usize; 3]>().write([routine, argument, given as usize]);
    let result = create(run_worker as *const () as usize, start as usize);
    sys::set_signals(blocked);
    if result != 0 {
        sys::unmap(start, WORKER_BYTES);
    }
    result
}

/// A signal came to a thread of a pool that runs nothing of the program, so that nothing its handler
/// does would be recorded. If any thread may have it, another one gets it, and this one no more until
/// it runs code of the program; says whether that is so.
pub unsafe fn pass_on(
    signal: c_int,
    information: *const handlers::Information,
    context: *mut u64,
) -> bool {
    /// Where it was sent to one thread alone.
    const TO_THREAD: c_int = -6;
    /// A signal of the C library, which no program can block: who blocks it is in the library or in the
    /// runtime, for a moment.
    const OF_THE_LIBRARY: u64 = 1 << 32;
    /// How often to look for a thread that may have it, and after how many nanoseconds again.
    const LOOKS_MAX: u32 = 50;
    const LOOKS_APART: i64 = 100_000;
    if thread::read_local!("reweave_is_worker") == 0 || (*information).code == TO_THREAD {
        return false;
    }
    let bit = 1 << (signal - 1);
    let others_may = || {
        let mut found = false;
        thread::each(|thread| {
            let blocked = if (*thread).task == 0 { None } else { blocked_by((*thread).task) };
            found = blocked.is_some_and(|it| it & bit == 0 || it & OF_THE_LIBRARY != 0);
            found
        });
        found
    };
    // A thread that handles such a signal blocks it until its handler is over.
    let can_pass = (0..LOOKS_MAX).any(|look| {
        if look > 0 {
            sys::sleep(LOOKS_APART);
        }
        others_may()
    });
    if !can_pass {
        return false;
    }
    *context.add(handlers::BLOCKED_SIGNALS) |= bit;
    let passed = thread::read_local!("reweave_passed_signals");
    thread::write_local!("reweave_passed_signals", passed | bit);
    sys::send_to_process_with(signal as u32, &*information.cast());
    true
}

/// The signals that the kernel's thread `task` blocks.
unsafe fn blocked_by(task: u32) -> Option<u64> {
    const BEFORE: &[u8] = b"\nSigBlk:\t";
    let path = process::Path::from(b"/proc/self/task/").number(task).text(b"/status");
    let mut text = [0; 4096];
    let count = sys::File::open(path.bytes())?.read(&mut text);
    let start = text[..count].windows(BEFORE.len()).position(|it| it == BEFORE)? + BEFORE.len();
    let digits = text.get(start..start + 16)?;
    digits
        .iter()
        .try_fold(0, |set, &digit| Some(set << 4 | u64::from(char::from(digit).to_digit(16)?)))
}

/// Lets the signals through again that were passed on.
unsafe fn take_signals() {
    let passed = thread::read_local!("reweave_passed_signals");
    if passed != 0 {
        thread::write_local!("reweave_passed_signals", 0_u64);
        sys::unblock_signals(passed);
    }
}

// Logical threads.

/// Who a logical thread will be: its number, its entry in the plan, and its team.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Identity {
    pub number: u32,
    pub entry: u32,
    pub team: u32,
}

/// Numbers `count` threads that `thread` is about to fork, one after the other.
unsafe fn new_numbers(count: u32) -> Option<u32> {
    process::header().map(|header| header.threads.fetch_add(count, Ordering::AcqRel))
}

/// Logs that the running thread forks a logical thread of `team`, numbered `number`.
unsafe fn fork(entry: &Entry, number: u32, team: u32, flags: u16) -> Identity {
    let identity = Identity { number, entry: replay::child_entry(entry.thread), team };
    entry.log_flags(Kind::Fork, u64::from(number), flags);
    (*entry.thread).forks += 1;
    identity
}

/// A new team's number.
fn new_team() -> u32 {
    static TEAMS: AtomicU32 = AtomicU32::new(0);
    TEAMS.fetch_add(1, Ordering::Relaxed) + 1
}

/// Whether `thread` is recorded.
unsafe fn is_recorded(thread: *mut Thread) -> bool {
    !thread.is_null() && thread != thread::unrecorded()
}

/// The ring of the kernel's thread that runs, on which the logical threads take turns.
unsafe fn ring(beneath: *mut Thread) -> Option<*mut Buffer> {
    if scheduler::is_serial() {
        return Some(ptr::null_mut());
    }
    if is_recorded(beneath) {
        return Some((*beneath).buffer);
    }
    let known = thread::read_local!("reweave_ring") as *mut Buffer;
    if !known.is_null() {
        return Some(known);
    }
    let ring = sys::allocate(size_of::<Buffer>())?.cast::<Buffer>();
    if !process::open_ring(ring) {
        return None;
    }
    thread::write_local!("reweave_ring", ring);
    Some(ring)
}

/// Becomes the logical thread `identity`, on the stack below `frame`; the runtime is not left.
/// Nothing if it cannot be recorded.
pub unsafe fn begin(identity: Identity, frame: usize, code: u64) -> Option<*mut Thread> {
    if process::should_stop() {
        return None;
    }
    let beneath = thread::current();
    let took_token = suspend(beneath);
    let thread = thread::create()?;
    (*thread).number = identity.number;
    (*thread).entry = identity.entry;
    (*thread).team = identity.team;
    let ring = ring(beneath)?;
    if !process::attach(thread, ring, code) {
        return None;
    }
    (*thread).beneath = if is_recorded(beneath) { beneath } else { ptr::null_mut() };
    (*thread).took_token = took_token;
    begin_memory(&inside(thread, code), frame);
    take_signals();
    Some(thread)
}

/// Takes the token from `thread`, if it is recorded and has it; says whether it had.
pub unsafe fn suspend(thread: *mut Thread) -> bool {
    if !is_recorded(thread) || !scheduler::is_serial() || !scheduler::may_log(thread) {
        return false;
    }
    scheduler::release(thread);
    true
}

/// The runtime at work for `thread`, which stays in it.
pub fn inside(thread: *mut Thread, code: u64) -> core::mem::ManuallyDrop<Entry> {
    core::mem::ManuallyDrop::new(Entry { thread, code })
}

/// Leaves the runtime for code of the program.
pub unsafe fn leave(thread: *mut Thread) {
    compiler_fence(Ordering::SeqCst);
    (*thread).depth = 0;
    compiler_fence(Ordering::SeqCst);
    handlers::deliver_deferred(thread);
}

/// Comes back into the runtime from code of the program that ran as `thread`; false if nothing is
/// recorded any more.
pub unsafe fn come_back(thread: *mut Thread) -> bool {
    if thread::current() != thread {
        return false;
    }
    (*thread).depth = 1;
    compiler_fence(Ordering::SeqCst);
    scheduler::settle(thread);
    true
}

/// Ends the logical thread `thread`, which is in the runtime, and becomes who was running beneath.
pub unsafe fn end(thread: *mut Thread, frame: usize, code: u64) {
    let entry = inside(thread, code);
    begin_memory(&entry, frame);
    if (*thread).scratch.1 != 0 {
        entry.log_extra(Kind::Alloc, (*thread).scratch.0, (*thread).scratch.1);
    }
    entry.log(Kind::End, u64::from((*thread).number));
    replay::ended(thread);
    yield_stack(thread);
    thread::mark(thread, life::ENDED | life::RELEASED);
}

/// Leaves off the task `thread`, which will go on later, perhaps elsewhere, and becomes who was
/// running beneath.
pub unsafe fn suspend_task(thread: *mut Thread, frame: usize) {
    begin_memory(&inside(thread, 0), frame);
    yield_stack(thread);
}

/// Goes on with the task `thread`, which was suspended.
pub unsafe fn resume(thread: *mut Thread, frame: usize) {
    let beneath = thread::current();
    let took_token = suspend(beneath);
    let Some(ring) = ring(beneath) else { return };
    if !ring.is_null() {
        (*thread).buffer = ring;
        (*thread).run = (*ring).run();
    }
    (*thread).task = sys::gettid();
    (*thread).beneath = if is_recorded(beneath) { beneath } else { ptr::null_mut() };
    (*thread).took_token = took_token;
    thread::set_current(thread);
    scheduler::acquire(thread);
    if !scheduler::is_serial() {
        log::switch(thread, false);
    }
    begin_memory(&inside(thread, 0), frame);
    leave(thread);
}

/// Lets who runs beneath `thread` run again on the stack that they share. A signal that had to wait for
/// `thread` is for them now.
unsafe fn yield_stack(thread: *mut Thread) {
    let Thread { beneath, took_token, .. } = *thread;
    thread::set_current(if beneath.is_null() { thread::unrecorded() } else { beneath });
    scheduler::release(thread);
    if !beneath.is_null() && !scheduler::is_serial() {
        log::switch(beneath, false);
    }
    if took_token {
        scheduler::acquire(beneath);
    }
    handlers::deliver_deferred(thread);
}

/// The place on the stack below which the library runs a task, in a function that it calls just
/// before: its own frames are in between.
macro_rules! stack_frame {
    () => {{
        const LIBRARY_FRAMES: usize = 512;
        let mut place = 0_u8;
        core::hint::black_box(&raw mut place as usize) + LIBRARY_FRAMES
    }};
}
use stack_frame;

/// Runs `routine` with `argument` as the logical thread `identity`, for which the memory of
/// `scratch` is another.
pub unsafe fn run(
    identity: Identity,
    [routine, argument]: [usize; 2],
    scratch: Option<(u64, u64)>,
    code: u64,
) {
    let mut frame = 0_usize;
    let frame = &raw mut frame as usize;
    let thread = begin(identity, frame, code);
    if let Some(thread) = thread {
        if let Some(scratch) = scratch {
            begin_scratch(&inside(thread, code), scratch);
        }
        leave(thread);
    }
    let before = thread::current();
    if thread.is_none() {
        // What is not recorded must not look like what the thread beneath does.
        thread::set_current(thread::unrecorded());
    }
    let routine: unsafe extern "C" fn(usize) = core::mem::transmute(routine);
    routine(argument);
    match thread {
        Some(thread) if come_back(thread) => end(thread, frame, code),
        Some(_) => {}
        None => thread::set_current(before),
    }
}

// Memory that belongs to a kernel's thread, whoever it runs.

/// The lowest address of the running stack; `u64::MAX` where it is not known.
unsafe fn stack_low() -> u64 {
    let known = thread::read_local!("reweave_stack_low");
    if known != 0 {
        return known;
    }
    let low = keeping_errno(|| threads::stack()).map_or(u64::MAX, |(place, _)| place);
    thread::write_local!("reweave_stack_low", low);
    low
}

/// The end of the running thread's static thread-local storage.
fn storage_end() -> u64 {
    let end: u64;
    // SAFETY: the first word of the block that `fs` leads to is its own address.
    unsafe {
        core::arch::asm!("mov {}, fs:[0]", out(reg) end, options(nostack, readonly, preserves_flags));
    }
    end
}

/// The lowest address of the running thread's static thread-local storage.
unsafe fn storage_low() -> u64 {
    let known = thread::read_local!("reweave_storage_low");
    if known != 0 {
        return known;
    }
    let mut low = storage_end();
    dl_iterate_phdr(note_storage, (&raw mut low).cast());
    thread::write_local!("reweave_storage_low", low);
    low
}

unsafe extern "C" fn note_storage(
    object: *const LoadedObject,
    size: usize,
    low: *mut c_void,
) -> c_int {
    /// More than any static storage takes: what is further away was allocated later.
    const STORAGE_MAX: u64 = 1 << 20;
    let (low, end) = (&mut *low.cast::<u64>(), storage_end());
    if size >= size_of::<LoadedObject>() {
        let start = (*object).storage as u64;
        if (end.saturating_sub(STORAGE_MAX)..*low).contains(&start) {
            *low = start;
        }
    }
    0
}

/// Logs that `scratch`, where the running task reduces into, is other memory until it ends.
pub unsafe fn begin_scratch(entry: &Entry, scratch: (u64, u64)) {
    entry.log_extra(Kind::Alloc, scratch.0, scratch.1);
    (*entry.thread).scratch = scratch;
}

/// Logs that the stack below `frame` and the thread-local storage are other memory from now on.
unsafe fn begin_memory(entry: &Entry, frame: usize) {
    for (low, end) in [(stack_low(), frame as u64), (storage_low(), storage_end())] {
        if low < end {
            let flags = flag::STACK;
            let operands = Operands { flags, extra: Some(end - low), ..Operands::default() };
            entry.log_with(Kind::Alloc, low, operands);
        }
    }
}

// What the interceptors of both libraries do.

/// Makes a call into the library that may wait or run tasks, while others run.
pub unsafe fn waiting<R>(thread: *mut Thread, call: impl FnOnce() -> R) -> R {
    scheduler::release(thread);
    let result = call();
    scheduler::acquire(thread);
    note_fulfilled(thread);
    result
}

/// Whether the event of a detached task was fulfilled.
static HAS_FULFILLED: AtomicBool = AtomicBool::new(false);

/// Logs that the event of some detached task is about to be fulfilled.
unsafe fn fulfil(entry: &Entry) {
    HAS_FULFILLED.store(true, Ordering::Relaxed);
    announce(entry, channel::openmp(0));
}

/// Whoever waited may have waited for detached tasks, and so for those who fulfilled their events.
unsafe fn note_fulfilled(thread: *mut Thread) {
    if HAS_FULFILLED.load(Ordering::Relaxed) {
        await_turn(&inside(thread, 0), channel::openmp(0));
    }
}

/// Does `body` with the token, which the running thread may have given up for a call.
unsafe fn with_token<R>(thread: *mut Thread, body: impl FnOnce() -> R) -> R {
    let had_token = !scheduler::is_serial() || scheduler::may_log(thread);
    if !had_token {
        scheduler::acquire(thread);
    }
    let result = body();
    if !had_token {
        scheduler::release(thread);
    }
    result
}

/// Waits at a barrier of the thread's team by `call`; `is_cancelled` says of its answer whether the
/// region was cancelled.
unsafe fn barrier<R>(
    entry: &Entry,
    call: impl FnOnce() -> R,
    is_cancelled: impl FnOnce(&R) -> bool,
) -> R {
    entry.log(Kind::TeamArrive, 0);
    let result = waiting(entry.thread, call);
    let flags = if is_cancelled(&result) { flag::CANCELLED } else { 0 };
    entry.log_flags(Kind::TeamDepart, 0, flags);
    result
}

/// Where a thread of the team `team` meets others in its loop number `number`, for what `key` says.
fn meeting(team: u32, number: u32, key: u64) -> u64 {
    let mut hash = u64::from(team) << 32 | u64::from(number);
    for word in [key, 0x5bd1_e995] {
        hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 29;
    }
    channel::openmp(hash)
}

/// Logs that what comes before is done, for those who [`await_turn`] at `address`.
unsafe fn announce(entry: &Entry, address: u64) {
    entry.log(Kind::Send, address);
}

/// Logs that what follows comes after all that was announced at `address`.
unsafe fn await_turn(entry: &Entry, address: u64) {
    entry.log_with(Kind::Receive, address, Operands { flags: flag::TRY, ..Operands::default() });
}
