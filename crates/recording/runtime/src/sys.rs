//! System calls made by ourselves, so that no call of ours passes a interceptor or changes `errno`.

use core::arch::asm;
use core::sync::atomic::AtomicU32;

const READ: usize = 0;
const WRITE: usize = 1;
const OPEN: usize = 2;
const CLOSE: usize = 3;
const MMAP: usize = 9;
#[cfg(not(reweave_static))]
const MPROTECT: usize = 10;
const MUNMAP: usize = 11;
const RT_SIGPROCMASK: usize = 14;
const SCHED_YIELD: usize = 24;
const GETPID: usize = 39;
const KILL: usize = 62;
const FTRUNCATE: usize = 77;
const GETTID: usize = 186;
const FUTEX: usize = 202;
const CLOCK_GETTIME: usize = 228;
const EXIT_GROUP: usize = 231;
const GET_ROBUST_LIST: usize = 274;
const FALLOCATE: usize = 285;
const PROCESS_VM_READV: usize = 310;
const MEMBARRIER: usize = 324;
const TGKILL: usize = 234;

/// A time as the kernel takes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Timespec {
    pub seconds: i64,
    pub nanoseconds: i64,
}

/// Makes the system call `number`; a result from -4095 to -1 is an error.
///
/// # Safety
/// The arguments are what the call expects.
#[inline]
pub unsafe fn call(number: usize, arguments: [usize; 6]) -> isize {
    let result: isize;
    asm!(
        "syscall",
        inlateout("rax") number => result,
        in("rdi") arguments[0],
        in("rsi") arguments[1],
        in("rdx") arguments[2],
        in("r10") arguments[3],
        in("r8") arguments[4],
        in("r9") arguments[5],
        lateout("rcx") _,
        lateout("r11") _,
        options(nostack),
    );
    result
}

/// Waits until `word` is no longer `expected`, is woken, or `timeout_ms` has passed; may return
/// early.
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout_ms: u64) {
    let timeout = Timespec {
        seconds: (timeout_ms / 1000) as i64,
        nanoseconds: (timeout_ms % 1000) as i64 * 1_000_000,
    };
    let address = core::ptr::from_ref(word) as usize;
    // SAFETY: FUTEX_WAIT reads the word and the time, both of which live on.
    unsafe {
        call(FUTEX, [address, 0, expected as usize, &raw const timeout as usize, 0, 0]);
    }
}

/// Wakes up to `count` threads that wait on `word`.
pub fn futex_wake(word: &AtomicU32, count: u32) {
    let address = core::ptr::from_ref(word) as usize;
    // SAFETY: FUTEX_WAKE does not touch memory.
    unsafe {
        call(FUTEX, [address, 1, count as usize, 0, 0, 0]);
    }
}

/// Nanoseconds of a clock that only goes forward.
pub fn now() -> u64 {
    const MONOTONIC: usize = 1;
    read_clock(MONOTONIC)
}

/// Nanoseconds for which the thread `task` of this process has run.
pub fn run_time(task: u32) -> u64 {
    const PER_THREAD_SCHEDULED: usize = 6;
    read_clock(!(task as usize) << 3 | PER_THREAD_SCHEDULED)
}

fn read_clock(clock: usize) -> u64 {
    let mut time = Timespec::default();
    // SAFETY: the kernel writes the time, which lives on.
    unsafe {
        call(CLOCK_GETTIME, [clock, &raw mut time as usize, 0, 0, 0, 0]);
    }
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}

pub fn gettid() -> u32 {
    // SAFETY: no arguments.
    unsafe { call(GETTID, [0; 6]) as u32 }
}

/// Where the kernel finds the locks that the running thread must not keep when it ends: the head of
/// a list, each element of which points to the next.
pub fn robust_list() -> Option<*const usize> {
    let (mut head, mut length) = (0_usize, 0_usize);
    let arguments = [0, &raw mut head as usize, &raw mut length as usize, 0, 0, 0];
    // SAFETY: the kernel writes both, which live on.
    let result = unsafe { call(GET_ROBUST_LIST, arguments) };
    (result == 0 && head != 0).then_some(head as *const usize)
}

/// Keeps all signals from the running thread; says which were kept from it before.
pub fn block_signals() -> u64 {
    const BLOCK: usize = 0;
    change_signals(BLOCK, u64::MAX)
}

/// Lets the signals of `set` through to the running thread; says which were kept from it before.
pub fn unblock_signals(set: u64) -> u64 {
    const UNBLOCK: usize = 1;
    change_signals(UNBLOCK, set)
}

/// Keeps just the signals of `set` from the running thread.
pub fn set_signals(set: u64) {
    const SET: usize = 2;
    change_signals(SET, set);
}

fn change_signals(how: usize, set: u64) -> u64 {
    let mut before = 0_u64;
    let arguments =
        [how, &raw const set as usize, &raw mut before as usize, size_of::<u64>(), 0, 0];
    // SAFETY: the kernel reads one set and writes the other, both of which live on.
    unsafe {
        call(RT_SIGPROCMASK, arguments);
    }
    before
}

/// The `length` bytes at `address`, at most 8, as a number; nothing if they cannot be read.
pub fn read_word(address: u64, length: usize) -> Option<u64> {
    let mut bytes = [0_u8; 8];
    let length = length.min(bytes.len());
    let to = [bytes.as_mut_ptr() as usize, length];
    let from = [address as usize, length];
    let [to, from] = [&raw const to as usize, &raw const from as usize];
    // SAFETY: the kernel writes at most the buffer's length.
    let read = unsafe { call(PROCESS_VM_READV, [getpid() as usize, to, 1, from, 1, 0]) };
    (read == length as isize).then(|| u64::from_le_bytes(bytes))
}

pub fn sched_yield() {
    // SAFETY: no arguments.
    unsafe {
        call(SCHED_YIELD, [0; 6]);
    }
}

/// Sleeps for less than a second.
#[cfg(not(reweave_static))]
pub fn sleep(nanoseconds: i64) {
    const NANOSLEEP: usize = 35;
    let time = [0, nanoseconds];
    // SAFETY: the kernel reads the time, which lives on.
    unsafe {
        call(NANOSLEEP, [time.as_ptr() as usize, 0, 0, 0, 0, 0]);
    }
}

pub fn getpid() -> u32 {
    // SAFETY: no arguments.
    unsafe { call(GETPID, [0; 6]) as u32 }
}

/// Whether `file` is the number of an open file.
pub fn is_open(file: i32) -> bool {
    const FCNTL: usize = 72;
    const GET_FLAGS: usize = 1;
    // SAFETY: no memory is touched.
    unsafe { call(FCNTL, [file as usize, GET_FLAGS, 0, 0, 0, 0]) >= 0 }
}

/// Whether the process `pid` exists.
pub fn is_alive(pid: u32) -> bool {
    const NOT_PERMITTED: isize = -1;
    // SAFETY: signal 0 is not sent.
    let result = unsafe { call(KILL, [pid as usize, 0, 0, 0, 0, 0]) };
    result == 0 || result == NOT_PERMITTED
}

/// Sends `signal` to the process `pid`; whether it is there and may be signalled.
#[cfg(not(reweave_export))]
#[must_use]
pub fn kill(pid: u32, signal: u32) -> bool {
    // SAFETY: no memory is touched.
    unsafe { call(KILL, [pid as usize, signal as usize, 0, 0, 0, 0]) == 0 }
}

/// Sends `signal` to the running thread.
pub fn send_to_self(signal: i32) {
    let arguments = [getpid() as usize, gettid() as usize, signal as usize, 0, 0, 0];
    // SAFETY: no memory is touched.
    unsafe {
        call(TGKILL, arguments);
    }
}

/// Sends `signal` to the running thread, with what the kernel said of it before if it did.
pub fn send_to_self_with(signal: u32, information: &[u64; 16]) {
    const QUEUE_TO_THREAD: usize = 297;
    let information = information.as_ptr() as usize;
    let arguments = [getpid() as usize, gettid() as usize, signal as usize, information, 0, 0];
    // SAFETY: the kernel reads 128 bytes, and refuses what it did not write itself.
    let result = unsafe { call(QUEUE_TO_THREAD, arguments) };
    if result < 0 {
        send_to_self(signal as i32);
    }
}

/// Sends `signal` to any thread of this process that does not block it, with `information`.
#[cfg(not(reweave_static))]
pub fn send_to_process_with(signal: u32, information: &[u64; 16]) {
    const QUEUE_TO_PROCESS: usize = 129;
    let information = information.as_ptr() as usize;
    let arguments = [getpid() as usize, signal as usize, information, 0, 0, 0];
    // SAFETY: the kernel reads 128 bytes, and refuses what it did not write itself.
    unsafe {
        if call(QUEUE_TO_PROCESS, arguments) < 0 {
            call(KILL, [arguments[0], arguments[1], 0, 0, 0, 0]);
        }
    }
}

/// Has the kernel send `signal` to this process when the thread ends that started it.
#[cfg(not(reweave_export))]
pub fn end_with_parent(signal: usize) {
    const PRCTL: usize = 157;
    const SET_PARENT_DEATH_SIGNAL: usize = 1;
    // SAFETY: no memory is touched.
    unsafe {
        call(PRCTL, [SET_PARENT_DEATH_SIGNAL, signal, 0, 0, 0, 0]);
    }
}

pub fn exit_group(status: i32) -> ! {
    loop {
        // SAFETY: ends the process.
        unsafe {
            call(EXIT_GROUP, [status as usize, 0, 0, 0, 0, 0]);
        }
    }
}

/// Makes every running thread of this process pass a memory barrier; false where the kernel cannot.
pub fn membarrier() -> bool {
    const PRIVATE_EXPEDITED: usize = 1 << 3;
    // SAFETY: no memory is touched.
    unsafe { call(MEMBARRIER, [PRIVATE_EXPEDITED, 0, 0, 0, 0, 0]) == 0 }
}

/// Makes [`membarrier`] possible.
pub fn membarrier_register() {
    const REGISTER_PRIVATE_EXPEDITED: usize = 1 << 4;
    // SAFETY: no memory is touched.
    unsafe {
        call(MEMBARRIER, [REGISTER_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0]);
    }
}

/// Makes `path`, a string that ends in a zero byte, belong to `user`, if that is permitted.
pub unsafe fn change_owner(path: &[u8], user: u32) {
    const CHOWN: usize = 92;
    const SAME_GROUP: usize = usize::MAX;
    call(CHOWN, [path.as_ptr() as usize, user as usize, SAME_GROUP, 0, 0, 0]);
}

/// An open file that is closed when dropped.
pub struct File(usize);

impl File {
    /// Opens `path`, a string that ends in a zero byte, for reading.
    pub fn open(path: &[u8]) -> Option<Self> {
        const CLOEXEC: usize = 0o2_000_000;
        Self::open_with(path, CLOEXEC)
    }

    /// Creates `path`, a string that ends in a zero byte and names no file yet.
    pub fn create(path: &[u8]) -> Option<Self> {
        const READ_WRITE_CREATE_EXCLUSIVE_CLOEXEC: usize = 0o2_000_302;
        Self::open_with(path, READ_WRITE_CREATE_EXCLUSIVE_CLOEXEC)
    }

    fn open_with(path: &[u8], flags: usize) -> Option<Self> {
        if path.last() != Some(&0) {
            return None;
        }
        // SAFETY: the path ends in a zero byte.
        let file = unsafe { call(OPEN, [path.as_ptr() as usize, flags, 0o600, 0, 0, 0]) };
        usize::try_from(file).ok().map(Self)
    }

    /// Reads into `buffer` and says how much; 0 at the end and on errors.
    pub fn read(&self, buffer: &mut [u8]) -> usize {
        let arguments = [self.0, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0];
        // SAFETY: the kernel writes at most the buffer's length.
        usize::try_from(unsafe { call(READ, arguments) }).unwrap_or(0)
    }

    /// Writes all of `bytes`, or as much as goes.
    pub fn write(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let arguments = [self.0, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0];
            // SAFETY: the kernel reads the bytes.
            let written = unsafe { call(WRITE, arguments) };
            match usize::try_from(written) {
                Ok(count) if count > 0 => bytes = &bytes[count..],
                _ => return,
            }
        }
    }

    /// Makes the file `length` bytes long, all of which there is room for, or says that it cannot.
    /// Where the room is not kept, whoever writes to the file's memory later may be killed.
    pub fn set_length(&self, length: usize) -> bool {
        const NO_SUCH_CALL: isize = -38;
        const NOT_SUPPORTED: isize = -95;
        // A signal would end the call with nothing done.
        let signals = block_signals();
        // SAFETY: no memory is touched.
        let result = unsafe { call(FALLOCATE, [self.0, 0, 0, length, 0, 0]) };
        set_signals(signals);
        match result {
            0 => true,
            // SAFETY: no memory is touched.
            NO_SUCH_CALL | NOT_SUPPORTED => unsafe {
                call(FTRUNCATE, [self.0, length, 0, 0, 0, 0]) == 0
            },
            _ => false,
        }
    }

    /// Maps the first `length` bytes for reading, shared with other processes.
    pub fn map(&self, length: usize) -> Option<*mut u8> {
        const SHARED: usize = 1;
        map(0, length, 1, SHARED, self.0, 0)
    }

    /// Maps the first `length` bytes, shared with other processes, and right after them all but the
    /// first `before` once more: what is written past the end is at the start of that part.
    pub fn map_ring(&self, length: usize, before: usize) -> Option<*mut u8> {
        const SHARED: usize = 1;
        const SHARED_FIXED: usize = 0x11;
        const READ_WRITE: usize = 3;
        let place = map(0, length * 2 - before, READ_WRITE, SHARED, self.0, 0)?;
        let second = place as usize + length;
        map(second, length - before, READ_WRITE, SHARED_FIXED, self.0, before)?;
        Some(place)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the file is ours.
        unsafe {
            call(CLOSE, [self.0, 0, 0, 0, 0, 0]);
        }
    }
}

#[cfg(not(reweave_export))]
/// Maps the first `length` bytes of the open file `descriptor`, shared with other processes.
pub fn map_shared(length: usize, descriptor: usize) -> Option<*mut u8> {
    const SHARED: usize = 1;
    map(0, length, 3, SHARED, descriptor, 0)
}

/// Fresh memory of `length` bytes, all zero.
pub fn allocate(length: usize) -> Option<*mut u8> {
    const PRIVATE_ANONYMOUS: usize = 0x22;
    map(0, length, 3, PRIVATE_ANONYMOUS, usize::MAX, 0)
}

/// Fresh memory of `length` bytes, all zero, less than a gigabyte after `place`.
#[cfg(not(reweave_static))]
pub fn allocate_near(place: u64, length: usize) -> Option<*mut u8> {
    const PRIVATE_ANONYMOUS_AT_FREE_PLACE: usize = 0x10_0022;
    const STEP: usize = 1 << 16;
    let first = (place as usize).next_multiple_of(STEP);
    (0..(1 << 30) / STEP).map(|step| first + step * STEP).find_map(|wanted| {
        let found = map(wanted, length, 3, PRIVATE_ANONYMOUS_AT_FREE_PLACE, usize::MAX, 0)?;
        if found as usize == wanted {
            return Some(found);
        }
        // An old kernel takes the place for a hint.
        // SAFETY: it was mapped just now.
        unsafe { unmap(found, length) };
        None
    })
}

/// Changes what may be done with the pages of `length` bytes at `place`; whether that succeeded.
///
/// # Safety
/// Nothing relies on what may no longer be done.
#[cfg(not(reweave_static))]
pub unsafe fn protect(place: *mut u8, length: usize, protection: usize) -> bool {
    call(MPROTECT, [place as usize, length, protection, 0, 0, 0]) == 0
}

fn map(
    wanted: usize,
    length: usize,
    protection: usize,
    flags: usize,
    file: usize,
    offset: usize,
) -> Option<*mut u8> {
    // SAFETY: the kernel chooses the place, or we replace a mapping of our own.
    let place = unsafe { call(MMAP, [wanted, length, protection, flags, file, offset]) };
    (!(-4095..0).contains(&place)).then_some(place as *mut u8)
}

/// Whether the eight bytes at `address` can be read. The kernel reads a set of signals there, and then finds that it
/// does not know what to do with them.
pub fn is_readable(address: u64) -> bool {
    const INVALID: isize = -22;
    // SAFETY: the call changes nothing.
    unsafe { call(RT_SIGPROCMASK, [usize::MAX, address as usize, 0, 8, 0, 0]) == INVALID }
}

/// Gives `length` bytes at `place` back.
///
/// # Safety
/// They came from a mapping here and nothing uses them any more.
pub unsafe fn unmap(place: *mut u8, length: usize) {
    call(MUNMAP, [place as usize, length, 0, 0, 0, 0]);
}
