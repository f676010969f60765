//! The recorded process: its session with the recorder, and how threads join it.

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::interceptors::{self, program};
use crate::log::{self, Buffer, Entry, Operands};
use crate::predict::{LAST_VALUES, SLOTS, Slot};
use crate::shared::{
    DIRECTORY_VARIABLE, FAILURE_WORDS, HEADER_BYTES, Header, MAGIC, Mode, RING_HEADER_BYTES,
    SETTINGS_WORDS, Settings, failure, file_bytes,
};
use crate::sys::{self, File};
use crate::thread::{self, Thread, life, waiting};
use crate::wire::{Kind, flag, wait};
use crate::{replay, scheduler};

/// Paths are at most this long, with their end.
const PATH_MAX: usize = 512;

/// How many programs one process is followed through, each of which it exchanged for the next.
const EXCHANGES_MAX: u32 = 1000;

/// What is written while the process has one thread, or by the thread that has the token.
pub struct Global<T>(pub UnsafeCell<T>);

// SAFETY: as above.
unsafe impl<T> Sync for Global<T> {}

static HEADER: AtomicPtr<Header> = AtomicPtr::new(ptr::null_mut());
static IS_ON: AtomicBool = AtomicBool::new(false);
static SHARED_BUFFER: Global<Buffer> = Global(UnsafeCell::new(Buffer::new()));
static PREFIX: Global<[u8; PATH_MAX]> = Global(UnsafeCell::new([0; PATH_MAX]));
static PREFIX_LENGTH: AtomicU32 = AtomicU32::new(0);
static DIRECTORY_LENGTH: AtomicU32 = AtomicU32::new(0);
static COLLECTOR: AtomicU32 = AtomicU32::new(0);
static MEMORY: AtomicPtr<u64> = AtomicPtr::new(ptr::null_mut());
static STALL_TIMEOUT_MS: AtomicU64 = AtomicU64::new(0);
/// Whether this process was forked by one that was recorded, and began with what was in its memory.
static IS_CHILD: AtomicBool = AtomicBool::new(false);
static EXIT_WAIT_MS: AtomicU64 = AtomicU64::new(0);
static SESSIONS: AtomicU32 = AtomicU32::new(0);

/// Not 0 once the storage of threads can be used.
pub static STARTED: AtomicBool = AtomicBool::new(false);

/// Called by the loader before the program's own constructors.
#[cfg(reweave_export)]
#[used]
#[unsafe(link_section = ".init_array.00001")]
static START: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

unsafe extern "C" fn start(_: c_int, _: *const *const c_char, environment: *const *const c_char) {
    STARTED.store(true, Ordering::Release);
    // Until the thread is known, what we do ourselves must not look like its doing.
    thread::set_current(thread::unrecorded());
    if let Some(directory) = variable(environment, DIRECTORY_VARIABLE.as_bytes()) {
        let length = directory.len();
        if length + 64 < PATH_MAX {
            (&mut *PREFIX.0.get())[..length].copy_from_slice(directory);
            DIRECTORY_LENGTH.store(length as u32, Ordering::Relaxed);
            interceptors::resolve_real_functions();
            #[cfg(not(reweave_static))]
            program::find_c_library();
            #[cfg(not(reweave_static))]
            interceptors::openmp::find_libraries();
            #[cfg(not(reweave_static))]
            interceptors::cxx_strings::find_outputs();
            program::arm_fork();
            interceptors::handlers::watch_faults();
            interceptors::memory::learn_freed_mark();
            __cxa_atexit(on_exit, ptr::null_mut(), ptr::null_mut());
            open_session();
        }
    }
}

unsafe fn variable<'a>(mut environment: *const *const c_char, name: &[u8]) -> Option<&'a [u8]> {
    while !(*environment).is_null() {
        let entry = core::ffi::CStr::from_ptr(*environment).to_bytes();
        if entry.len() > name.len() && &entry[..name.len()] == name && entry[name.len()] == b'=' {
            return Some(&entry[name.len() + 1..]);
        }
        environment = environment.add(1);
    }
    None
}

/// The digits of `number`.
pub fn decimal(number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut start = digits.len();
    let mut rest = number;
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &digits[start..];
        }
    }
}

/// A path made of pieces, ending in a zero byte.
pub struct Path([u8; PATH_MAX], usize);

impl Path {
    /// A path that starts with `text`.
    pub fn from(text: &[u8]) -> Self {
        Self([0; PATH_MAX], 0).text(text)
    }

    unsafe fn new(length: u32) -> Self {
        let mut bytes = [0; PATH_MAX];
        let length = length as usize;
        bytes[..length].copy_from_slice(&(&*PREFIX.0.get())[..length]);
        Self(bytes, length)
    }

    /// The path with `text` after it, as much of it as there is room for.
    pub fn text(mut self, text: &[u8]) -> Self {
        let room = PATH_MAX - 1 - self.1;
        let text = &text[..text.len().min(room)];
        self.0[self.1..self.1 + text.len()].copy_from_slice(text);
        self.1 += text.len();
        self
    }

    /// The path with the digits of `number` after it.
    pub fn number(self, number: u32) -> Self {
        self.text(decimal(number, &mut [0; 10]))
    }

    /// The path with its zero byte.
    pub fn bytes(&self) -> &[u8] {
        &self.0[..=self.1]
    }
}

unsafe fn read_settings() -> Option<Settings> {
    let path = Path::new(DIRECTORY_LENGTH.load(Ordering::Relaxed)).text(b"/settings");
    let file = File::open(path.bytes())?;
    let mut bytes = [0; SETTINGS_WORDS * 8];
    let mut count = 0;
    while count < bytes.len() {
        match file.read(&mut bytes[count..]) {
            0 => return None,
            operands => count += operands,
        }
    }
    let mut words = [0; SETTINGS_WORDS];
    for (place, word) in words.iter_mut().enumerate() {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[place * 8..place * 8 + 8]);
        *word = u64::from_le_bytes(eight);
    }
    Settings::decode(&words)
}

/// Lets `user`, as whom the process is about to go on, make and read what the recorder shares with it.
/// Only a process of root can go on as another, and the recorder is root's then.
pub unsafe fn entrust(user: u32) {
    let directory = DIRECTORY_LENGTH.load(Ordering::Relaxed);
    if user == u32::MAX || directory == 0 {
        return;
    }
    for name in [&b""[..], b"/settings", b"/plan"] {
        sys::change_owner(Path::new(directory).text(name).bytes(), user);
    }
}

/// Starts a session, with the running thread as its first.
unsafe fn open_session() -> Option<()> {
    let settings = read_settings()?;
    let directory = DIRECTORY_LENGTH.load(Ordering::Relaxed);
    let mut tries = 0;
    let file = loop {
        let session = Path::new(directory)
            .text(b"/s")
            .number(sys::getpid())
            .text(b".")
            .number(SESSIONS.fetch_add(1, Ordering::Relaxed));
        (*PREFIX.0.get()) = session.0;
        PREFIX_LENGTH.store(session.1 as u32, Ordering::Relaxed);
        // What this process ran before, and exchanged for this program, has taken numbers too.
        match File::create(session.text(b".head").bytes()) {
            Some(file) => break file,
            None if tries < EXCHANGES_MAX => tries += 1,
            None => return None,
        }
    };
    let length = file_bytes(HEADER_BYTES, settings.ring_words);
    if !file.set_length(length) {
        return None;
    }
    let place = file.map_ring(length, HEADER_BYTES + RING_HEADER_BYTES)?;
    let header = &*place.cast::<Header>();
    header.pid.store(u64::from(sys::getpid()), Ordering::Relaxed);
    header.mode.store(settings.mode as u64, Ordering::Relaxed);
    header.ring_words.store(settings.ring_words, Ordering::Relaxed);
    HEADER.store(place.cast(), Ordering::Release);
    COLLECTOR.store(settings.collector as u32, Ordering::Relaxed);
    STALL_TIMEOUT_MS.store(settings.stall_timeout_ms, Ordering::Relaxed);
    EXIT_WAIT_MS.store(settings.exit_wait_ms, Ordering::Relaxed);
    let buffer = &mut *SHARED_BUFFER.0.get();
    *buffer = Buffer::new();
    buffer.open(place.add(HEADER_BYTES), settings.ring_words);
    let keeps_values = settings.values && settings.mode == Mode::Serial && !settings.replay;
    let last_values = if keeps_values { sys::allocate(LAST_VALUES * 8)? } else { ptr::null_mut() };
    MEMORY.store(last_values.cast(), Ordering::Relaxed);
    sys::membarrier_register();
    scheduler::start(settings.mode == Mode::Serial, settings.seed, settings.quantum_max);
    replay::start(settings.replay);
    header.magic.store(MAGIC, Ordering::Release);
    IS_ON.store(true, Ordering::Release);
    let main = thread::create()?;
    (*main).number = header.threads.fetch_add(1, Ordering::AcqRel);
    (*main).entry = replay::main_entry();
    begin(main, 0);
    Some(())
}

/// Whether this process is recorded.
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// The state that is shared with the recorder, while the process is recorded.
pub fn header() -> Option<&'static Header> {
    let header = HEADER.load(Ordering::Acquire);
    // SAFETY: a header stays mapped as long as the process lives.
    (!header.is_null()).then(|| unsafe { &*header })
}

/// Whether nothing is recorded any more.
pub fn should_stop() -> bool {
    !is_on() || header().is_none_or(|header| header.stop.load(Ordering::Relaxed) != 0)
}

/// Whether the recorder lives.
pub fn is_read() -> bool {
    sys::is_alive(COLLECTOR.load(Ordering::Relaxed))
}

/// Records nothing more in this process; it runs on as if it had never been.
pub fn stop() {
    if IS_ON.swap(false, Ordering::AcqRel) {
        scheduler::stop_serializing();
    }
}

/// Wakes the recorder, if it sleeps.
pub fn wake_recorder() {
    if let Some(header) = header() {
        header.bell.fetch_add(1, Ordering::Release);
        if header.listening.load(Ordering::SeqCst) != 0 {
            sys::futex_wake(&header.bell, 1);
        }
    }
}

/// The next place in the order of synchronization.
pub fn next_number() -> u64 {
    header().map_or(0, |header| header.sequence.fetch_add(1, Ordering::AcqRel))
}

pub fn count_eviction() {
    if let Some(header) = header() {
        header.evictions.fetch_add(1, Ordering::Relaxed);
    }
}

/// How much was logged, in `serial` recordings.
pub fn words_written() -> u64 {
    // SAFETY: a torn or old number does no harm; it is compared with later ones only.
    unsafe { ptr::read_volatile(&raw const (*SHARED_BUFFER.0.get())).written() }
}

pub fn stall_timeout_ns() -> u64 {
    STALL_TIMEOUT_MS.load(Ordering::Relaxed) * 1_000_000
}

/// The plan's file, mapped, as words.
pub unsafe fn map_plan() -> Option<&'static [u64]> {
    let path = Path::new(DIRECTORY_LENGTH.load(Ordering::Relaxed)).text(b"/plan");
    let file = File::open(path.bytes())?;
    let mut word = [0; 8];
    if file.read(&mut word) != 8 {
        return None;
    }
    let count = usize::try_from(u64::from_le_bytes(word)).ok()?;
    if count > 1 << 28 {
        return None;
    }
    let place = file.map(8 + count * 8)?;
    Some(core::slice::from_raw_parts(place.add(8).cast(), count))
}

/// A block and a number for a thread that is about to be created.
pub unsafe fn new_thread() -> Option<*mut Thread> {
    let child = thread::create()?;
    (*child).number = header()?.threads.fetch_add(1, Ordering::AcqRel);
    Some(child)
}

/// Makes the running thread `thread` and logs that it begins.
pub unsafe fn begin(thread: *mut Thread, code: u64) {
    if !attach(thread, ptr::null_mut(), code) {
        return;
    }
    interceptors::threads::arm_end(thread);
    let entry = Entry { thread, code };
    if (*thread).number == 0 {
        program::note_new_objects(&entry);
    } else if let Some((place, length)) =
        interceptors::undisturbed(thread, || interceptors::threads::stack())
    {
        let operands = Operands { flags: flag::STACK, extra: Some(length), ..Operands::default() };
        entry.log_with(Kind::Alloc, place, operands);
    }
}

/// Makes the running thread `thread`, which where threads run freely writes to `ring`, or to one
/// of its own if that is null; logs that it begins and stays in the runtime. False if it cannot be
/// recorded.
pub unsafe fn attach(thread: *mut Thread, ring: *mut Buffer, code: u64) -> bool {
    (*thread).depth = 1;
    (*thread).task = sys::gettid();
    thread::set_current(thread::unrecorded());
    (*thread).buffer = if scheduler::is_serial() {
        SHARED_BUFFER.0.get()
    } else if ring.is_null() {
        &raw mut (*thread).own
    } else {
        ring
    };
    let opens = !scheduler::is_serial() && ring.is_null();
    if opens && !open_ring((*thread).buffer) || !reset_predictions(thread) {
        go_unrecorded();
        return false;
    }
    thread::set_current(thread);
    replay::begin(thread);
    (*thread).needs_safepoint.store(u32::from(replay::is_on()), Ordering::Relaxed);
    scheduler::begin(thread);
    if !scheduler::is_serial() {
        log::switch(thread, false);
    }
    let operands =
        Operands { extra: IS_CHILD.load(Ordering::Relaxed).then_some(1), ..Operands::default() };
    core::mem::ManuallyDrop::new(Entry { thread, code }).log_with(
        Kind::Begin,
        u64::from((*thread).number),
        operands,
    );
    true
}

/// The running thread cannot be recorded: without it the others cannot be understood.
fn go_unrecorded() {
    if let Some(header) = header() {
        header.unrecorded.fetch_add(1, Ordering::Relaxed);
        header.stop.store(1, Ordering::Release);
    }
    stop();
}

/// Forgets what the block's last thread did, so that nothing is expected of this one.
unsafe fn reset_predictions(thread: *mut Thread) -> bool {
    const BYTES: usize = SLOTS * size_of::<Slot>();
    if (*thread).slots.is_null() {
        match sys::allocate(BYTES) {
            Some(place) => (*thread).slots = place.cast(),
            None => return false,
        }
    } else {
        interceptors::memory::fill((*thread).slots as usize, 0, BYTES);
    }
    ((*thread).previous, (*thread).expected) = ((*thread).slots, (*thread).slots);
    (*thread).last_values = MEMORY.load(Ordering::Relaxed);
    (*thread).run = (*(*thread).buffer).run();
    true
}

/// Lets `buffer` write to a ring of its own.
pub unsafe fn open_ring(buffer: *mut Buffer) -> bool {
    let Some(header) = header() else { return false };
    let words = header.ring_words.load(Ordering::Relaxed);
    *buffer = Buffer::new();
    (*buffer).numbered = true;
    let prefix = PREFIX_LENGTH.load(Ordering::Relaxed);
    let number = header.rings.fetch_add(1, Ordering::AcqRel);
    let path = Path::new(prefix).text(b".t").number(number);
    let length = file_bytes(0, words);
    let place = File::create(path.bytes())
        .filter(|file| file.set_length(length))
        .and_then(|file| file.map_ring(length, RING_HEADER_BYTES));
    let Some(place) = place else { return false };
    (*buffer).open(place, words);
    true
}

/// Ends the running thread's part in the recording.
pub unsafe fn end(thread: *mut Thread) {
    scheduler::end_blocking(thread, false);
    scheduler::reacquire(thread);
    let entry = Entry { thread, code: 0 };
    interceptors::sync::release_robust_mutexes(&entry);
    if (*thread).number != 0
        && let Some((place, length)) =
            interceptors::undisturbed(thread, || interceptors::threads::stack())
    {
        entry.log_extra(Kind::Free, place, length);
    }
    entry.log(Kind::End, u64::from((*thread).number));
    core::mem::forget(entry);
    replay::ended(thread);
    thread::set_current(thread::unrecorded());
    scheduler::release(thread);
    (*(*thread).buffer).close();
    thread::mark(thread, life::ENDED);
}

/// The block of the running thread, which we did not see being created.
#[cold]
pub unsafe fn adopt() -> *mut Thread {
    if !is_on() {
        // Before the start nobody is recorded yet; afterwards nobody is, ever.
        if STARTED.load(Ordering::Acquire) {
            thread::set_current(thread::unrecorded());
        }
        return thread::unrecorded();
    }
    if is_any_thread_starting() {
        // This may be one of them, with a signal handler that came before it could begin.
        return thread::unrecorded();
    }
    thread::set_current(thread::unrecorded());
    thread::take_over(interceptors::threads::pthread_self());
    if let Some(thread) = new_thread() {
        begin(thread, 0);
    }
    thread::current()
}

/// Whether a thread was created that has not begun.
unsafe fn is_any_thread_starting() -> bool {
    let mut is_awaited = false;
    thread::each(|thread| {
        is_awaited = ptr::read_volatile(&raw const (*thread).task) == 0;
        is_awaited
    });
    is_awaited
}

/// Starts anew in a child process, which has only the thread that forked.
pub unsafe fn restart_in_child() {
    IS_ON.store(false, Ordering::Release);
    HEADER.store(ptr::null_mut(), Ordering::Release);
    thread::forget_all();
    crate::hooks::atomic::reset();
    thread::set_current(thread::unrecorded());
    // The child has a memory map of its own to tell, though nothing was loaded since.
    program::forget_objects();
    IS_CHILD.store(true, Ordering::Relaxed);
    open_session();
}

/// Records nothing in a child process, where `thread` goes on with what it did in the runtime.
pub unsafe fn stop_in_child(thread: *mut Thread) {
    let words = header().map_or(0, |header| header.ring_words.load(Ordering::Relaxed));
    IS_ON.store(false, Ordering::Release);
    HEADER.store(ptr::null_mut(), Ordering::Release);
    scheduler::start(false, 0, 1);
    crate::hooks::atomic::reset();
    thread::set_current(thread::unrecorded());
    // What it still writes must not reach the ring, which is its parent's.
    if let Some(place) = sys::allocate(file_bytes(0, words) * 2) {
        (*(*thread).buffer).open(place, words.max(1));
        (*thread).run = (*(*thread).buffer).run();
    }
}

/// Notes that the program is about to fail by `signal` at `code`, and what it says; the first counts.
pub unsafe fn note_failure(signal: u64, code: u64, texts: &[&[u8]]) {
    let Some(header) = header() else { return };
    let (before, after) = (failure::NONE, failure::NOTED);
    let order = Ordering::AcqRel;
    if header.failure.compare_exchange(before, after, order, Ordering::Acquire).is_ok() {
        describe_failure(header, signal, code, texts);
    }
}

/// Notes that the system ends the program because of `signal`, which came at `code`.
pub unsafe fn note_fault(signal: u64, code: u64) {
    let Some(header) = header() else { return };
    let was_noted = header.failure.load(Ordering::Acquire) != failure::NONE;
    // What was noted before may have been overcome.
    if !was_noted || header.failure_signal.load(Ordering::Relaxed) != signal {
        describe_failure(header, signal, code, &[]);
    }
    header.failure.store(failure::CERTAIN, Ordering::Release);
}

unsafe fn describe_failure(header: &Header, signal: u64, code: u64, texts: &[&[u8]]) {
    let thread = thread::current();
    let is_known = !thread.is_null() && thread != thread::unrecorded();
    let number = if is_known { (*thread).number + 1 } else { 0 };
    header.failure_thread.store(number, Ordering::Relaxed);
    header.failure_signal.store(signal, Ordering::Relaxed);
    header.failure_code.store(code, Ordering::Relaxed);
    let mut length = 0;
    for &byte in texts.iter().copied().flatten().take(FAILURE_WORDS * 8) {
        let bits = u64::from(byte) << (length % 8 * 8);
        header.failure_text[length / 8].fetch_or(bits, Ordering::Relaxed);
        length += 1;
    }
    header.failure_length.store(length as u64, Ordering::Release);
}

unsafe extern "C" {
    fn __cxa_atexit(
        function: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
        object: *mut c_void,
    ) -> c_int;
}

/// Called when the program exits, after its own functions for that. What its other threads would
/// have done is cut off by chance, so they get a moment more.
unsafe extern "C" fn on_exit(_: *mut c_void) {
    let thread = thread::current();
    let limit_ms = EXIT_WAIT_MS.load(Ordering::Relaxed);
    if limit_ms == 0 || thread.is_null() || thread == thread::unrecorded() || should_stop() {
        return;
    }
    if others(thread).0 > 0
        && let Some(entry) = log::enter(0)
    {
        entry.blocking_for(wait::SLEEP, None, || await_others(thread, limit_ms));
    }
}

/// How many threads but `own` have not ended, and how many of them do not wait.
unsafe fn others(own: *mut Thread) -> (u32, u32) {
    let (mut living, mut moving) = (0, 0);
    thread::each(|thread| {
        if thread != own && (*thread).life.load(Ordering::Acquire) & life::ENDED == 0 {
            living += 1;
            let state = (*thread).wait_state.load(Ordering::Relaxed);
            moving += u32::from(state != waiting::BLOCKED);
        }
        false
    });
    (living, moving)
}

/// Waits until threads other than `own` have ended or all wait, at most `limit_ms`.
unsafe fn await_others(own: *mut Thread, limit_ms: u64) {
    /// How long nobody may move before all are taken to wait: who is woken may not have noticed.
    const STILL_NS: u64 = 50_000_000;
    const LOOK_MS: u64 = 1;
    let never = AtomicU32::new(0);
    let start = sys::now();
    let (mut seen, mut since) = (0, start);
    loop {
        let (living, moving) = others(own);
        let now = sys::now();
        let sequence = header().map_or(0, |header| header.sequence.load(Ordering::Relaxed));
        let progress = words_written() ^ sequence << 32;
        if moving > 0 || progress != seen {
            (seen, since) = (progress, now);
        }
        if living == 0 || now - since > STILL_NS || now - start > limit_ms * 1_000_000 {
            return;
        }
        sys::futex_wait(&never, 0, LOOK_MS);
    }
}

/// Copies the memory map for the recorder and says from when it holds.
pub unsafe fn copy_maps(entry: &Entry) {
    let Some(header) = header() else { return };
    let number = header.maps.load(Ordering::Relaxed);
    let path = Path::new(PREFIX_LENGTH.load(Ordering::Relaxed)).text(b".maps").number(number);
    let (Some(from), Some(to)) = (File::open(b"/proc/self/maps\0"), File::create(path.bytes()))
    else {
        return;
    };
    let mut buffer = [0; 4096];
    loop {
        let count = from.read(&mut buffer);
        if count == 0 {
            break;
        }
        to.write(&buffer[..count]);
    }
    header.maps.store(number + 1, Ordering::Release);
    entry.log(Kind::Maps, u64::from(number));
}
