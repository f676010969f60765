//! A thread of the recorded program, and how the running code finds its own.
//!
//! Two words of thread-local storage, reached in one instruction each: the thread, and the address
//! from which the door that was entered last was called. They are made by assembly since stable
//! Rust has no thread-locals without a destructor and a lazy path.

use core::arch::{asm, global_asm};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::doors::once::Once;
use crate::log::Buffer;
use crate::predict::Slot;
use crate::sys;

global_asm!(
    ".section .tbss.reweave,\"awT\",@nobits",
    ".balign 8",
    ".hidden reweave_self",
    ".globl reweave_self",
    ".type reweave_self,@object",
    ".size reweave_self,8",
    "reweave_self:",
    ".zero 8",
    ".hidden reweave_caller",
    ".globl reweave_caller",
    ".type reweave_caller,@object",
    ".size reweave_caller,8",
    "reweave_caller:",
    ".zero 8",
    ".text",
);

/// A thread of the program.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Thread {
    /// Not 0 while the runtime is on this thread's stack: nothing is recorded then.
    pub(crate) depth: u32,
    /// Not 0 when the next hook has more to do than to log.
    pub(crate) attention: AtomicU32,
    /// Accesses left until the turn is handed on.
    pub(crate) quantum: i64,
    /// What that was when it was drawn.
    pub(crate) drawn: i64,
    /// Where the access that is expected next is remembered.
    pub(crate) expected: *mut Slot,
    /// Where accesses that are as expected are counted.
    pub(crate) run: *mut u64,
    /// What was last seen at addresses, if values are recorded; else null.
    pub(crate) memories: *mut u64,
    /// Where the last plain write went, if what it stored is to be told; else 0.
    pub(crate) pending: u64,
    /// The binary logarithm of the bytes that it stored.
    pub(crate) pending_size: u32,
    /// The thread's number, in order of creation.
    pub(crate) number: u32,
    /// Where the last access is remembered.
    pub(crate) previous: *mut Slot,
    /// What the thread expects.
    pub(crate) slots: *mut Slot,
    /// Where events go.
    pub(crate) buffer: *mut Buffer,
    /// The number by which the kernel knows it.
    pub(crate) task: u32,
    /// 1 when it is this thread's turn; threads sleep on it.
    pub(crate) granted: AtomicU32,
    /// Whether the turn was taken from the thread while it ran unseen.
    pub(crate) evicted: AtomicU32,
    /// Whether it waits without a turn. Handlers of signals that come meanwhile run as its guests:
    /// they take a turn, which is taken back when the thread sleeps again.
    pub(crate) away: AtomicBool,
    /// Whether it is in a call of the C library's from which the turn can be taken.
    pub(crate) in_library: bool,
    /// Whether such a guest has had the turn.
    pub(crate) has_visited: bool,
    /// Whether it is in the queue for a turn.
    pub(crate) is_queued: bool,
    /// The next in the queue for a turn.
    pub(crate) next: *mut Self,
    /// The next in the list of all threads.
    pub(crate) sibling: *mut Self,
    /// The handle that the C library gave it.
    pub(crate) handle: AtomicU64,
    /// What has happened to it: a set of [`life`] bits.
    pub(crate) life: AtomicU32,
    /// How many threads it has created.
    pub(crate) forks: u32,
    /// Its entry in the plan, or `u32::MAX`.
    pub(crate) entry: u32,
    /// Whether the turn must be handed on before the next event.
    pub(crate) must_hand_on: bool,
    /// The lock that it waits for, or 0.
    pub(crate) wants: u64,
    /// The code address at which it waits for it.
    pub(crate) wants_at: u64,
    /// How many events it logged at each code address of the plan.
    pub(crate) occurrences: *mut u32,
    /// What `pthread_once` is to do, and whether it did.
    pub(crate) once: Once,
    /// How many times the end of the thread was put off, so that it comes last.
    pub(crate) end_delays: u32,
    /// Its own buffer, in `free` recordings.
    pub(crate) own: Buffer,
}

/// What has happened to a thread.
pub(crate) mod life {
    /// Its block is in use.
    pub(crate) const USED: u32 = 1;
    /// It will run no more code of the program.
    pub(crate) const ENDED: u32 = 2;
    /// Nobody will join it, or somebody did.
    pub(crate) const RELEASED: u32 = 4;
}

/// What threads that are not recorded have: nothing passes its depth.
struct Off(core::cell::UnsafeCell<Thread>);

// SAFETY: nobody writes it, since whoever finds a depth other than 0 leaves at once.
unsafe impl Sync for Off {}

static OFF: Off = Off(core::cell::UnsafeCell::new(Thread::new(1)));

impl Thread {
    const fn new(depth: u32) -> Self {
        Self {
            depth,
            attention: AtomicU32::new(0),
            quantum: 0,
            drawn: 0,
            expected: ptr::null_mut(),
            run: ptr::null_mut(),
            memories: ptr::null_mut(),
            previous: ptr::null_mut(),
            slots: ptr::null_mut(),
            buffer: ptr::null_mut(),
            pending: 0,
            pending_size: 0,
            number: 0,
            task: 0,
            granted: AtomicU32::new(0),
            evicted: AtomicU32::new(0),
            away: AtomicBool::new(false),
            has_visited: false,
            is_queued: false,
            in_library: false,
            next: ptr::null_mut(),
            sibling: ptr::null_mut(),
            handle: AtomicU64::new(0),
            life: AtomicU32::new(life::USED),
            forks: 0,
            entry: u32::MAX,
            must_hand_on: false,
            wants: 0,
            wants_at: 0,
            occurrences: ptr::null_mut(),
            once: Once::NOTHING,
            end_delays: 0,
            own: Buffer::new(),
        }
    }
}

/// The running thread; null where it is not known yet.
#[inline(always)]
pub(crate) fn current() -> *mut Thread {
    let thread: *mut Thread;
    // SAFETY: reads a word of this thread's own storage.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + reweave_self@GOTTPOFF]",
            "mov {0}, fs:[{0}]",
            out(reg) thread,
            options(nostack, readonly, preserves_flags),
        );
    }
    thread
}

/// Makes `thread` the running one.
#[inline(always)]
pub(crate) fn set_current(thread: *mut Thread) {
    // SAFETY: writes a word of this thread's own storage.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + reweave_self@GOTTPOFF]",
            "mov fs:[{0}], {1}",
            out(reg) _,
            in(reg) thread,
            options(nostack, preserves_flags),
        );
    }
}

/// Where the door that this thread entered last was called from.
#[inline(always)]
pub(crate) fn caller() -> u64 {
    let code: u64;
    // SAFETY: reads a word of this thread's own storage.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + reweave_caller@GOTTPOFF]",
            "mov {0}, fs:[{0}]",
            out(reg) code,
            options(nostack, readonly, preserves_flags),
        );
    }
    code
}

/// The thread of which nothing is recorded.
pub(crate) fn off() -> *mut Thread {
    OFF.0.get()
}

/// A lock that is held for a few instructions.
#[derive(Debug)]
pub(crate) struct Spin(AtomicU32);

impl Spin {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Runs `body` with the lock held. No signal comes meanwhile: its handler might jump away, or
    /// end the thread, and leave things half done and the lock taken for good.
    #[inline]
    pub(crate) fn with<R>(&self, body: impl FnOnce() -> R) -> R {
        let signals = sys::block_signals();
        let result = self.hold(1, body);
        sys::set_signals(signals);
        result
    }

    /// Runs `body` with the lock held by `owner`, which is not 0. If a handler of a signal jumps
    /// away, [`Spin::let_go`] must be called.
    #[inline]
    pub(crate) fn hold<R>(&self, owner: u32, body: impl FnOnce() -> R) -> R {
        let mut tries = 0;
        while self.0.compare_exchange(0, owner, Ordering::Acquire, Ordering::Relaxed).is_err() {
            tries += 1;
            if tries % 64 == 0 {
                sys::sched_yield();
            } else {
                core::hint::spin_loop();
            }
        }
        let result = body();
        self.0.store(0, Ordering::Release);
        result
    }

    /// Gives the lock back if `owner` holds it.
    pub(crate) fn let_go(&self, owner: u32) {
        // Nobody else makes it ours, or takes it from us.
        if self.0.load(Ordering::Relaxed) == owner {
            self.0.store(0, Ordering::Release);
        }
    }

    /// Forgets who held it, in a process that has one thread.
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Release);
    }
}

static REGISTRY: Spin = Spin::new();
static ALL: core::sync::atomic::AtomicPtr<Thread> =
    core::sync::atomic::AtomicPtr::new(ptr::null_mut());

/// Calls `visit` with each thread block that is in use, until it says that it has seen enough.
pub(crate) fn each(mut visit: impl FnMut(*mut Thread) -> bool) {
    REGISTRY.with(|| {
        let mut thread = ALL.load(Ordering::Relaxed);
        while !thread.is_null() {
            // SAFETY: blocks are never given back, only used again.
            let (is_used, next) = unsafe {
                ((*thread).life.load(Ordering::Acquire) & life::USED != 0, (*thread).sibling)
            };
            if is_used && visit(thread) {
                return;
            }
            thread = next;
        }
    });
}

/// A block for a new thread: one that is free, or a new one; none if there is no memory.
pub(crate) fn create() -> Option<*mut Thread> {
    REGISTRY.with(|| {
        let first = ALL.load(Ordering::Relaxed);
        let mut thread = first;
        // SAFETY: blocks are never given back, and this lock is held while lives begin.
        unsafe {
            while !thread.is_null() {
                if (*thread).life.load(Ordering::Acquire) & life::USED == 0 {
                    let (sibling, slots, occurrences) =
                        ((*thread).sibling, (*thread).slots, (*thread).occurrences);
                    *thread = Thread::new(0);
                    ((*thread).sibling, (*thread).slots) = (sibling, slots);
                    (*thread).occurrences = occurrences;
                    return Some(thread);
                }
                thread = (*thread).sibling;
            }
            let thread =
                sys::allocate(size_of::<Thread>().next_multiple_of(4096))?.cast::<Thread>();
            *thread = Thread::new(0);
            (*thread).sibling = first;
            ALL.store(thread, Ordering::Release);
            Some(thread)
        }
    })
}

/// Adds `bits` to what happened to `thread`; its block is free once it ended and was released.
///
/// # Safety
/// `thread` is a block in use.
pub(crate) unsafe fn mark(thread: *mut Thread, bits: u32) {
    let before = (*thread).life.fetch_or(bits, Ordering::AcqRel);
    let over = life::ENDED | life::RELEASED;
    if before & over != over && (before | bits) & over == over {
        (*thread).handle.store(0, Ordering::Relaxed);
        (*thread).life.store(0, Ordering::Release);
    }
}

/// Forgets all threads, in a child process that has only the one that forked.
pub(crate) fn forget_all() {
    REGISTRY.reset();
    ALL.store(ptr::null_mut(), Ordering::Release);
}
