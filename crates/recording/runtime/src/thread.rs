//! A thread of the recorded program, and how the running code finds its own.
//!
//! Three words of thread-local storage, reached in one instruction each: the thread, the address
//! from which the interceptor that was entered last was called, and where on the stack that is. They are made by assembly since stable
//! Rust has no thread-locals without a destructor and a lazy path.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::interceptors::libraries::Boundary;
use crate::interceptors::sync::{Once, OnceAttempts};
use crate::log::Buffer;
use crate::predict::Slot;
use crate::sys;
use crate::wire::Kind;

/// Declares a word of thread-local storage, hidden in the object that the runtime becomes.
macro_rules! declare_local {
    ($name:literal) => {
        core::arch::global_asm!(
            ".section .tbss.reweave,\"awT\",@nobits",
            ".balign 8",
            concat!(".hidden ", $name),
            concat!(".globl ", $name),
            concat!(".type ", $name, ",@object"),
            concat!(".size ", $name, ",8"),
            concat!($name, ":"),
            ".zero 8",
            ".text",
        );
    };
}
pub(crate) use declare_local;

declare_local!("reweave_self");
declare_local!("reweave_caller");
declare_local!("reweave_caller_slot");

/// A thread of the program.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Thread {
    /// Not 0 while the runtime is on this thread's stack: nothing is recorded then.
    pub depth: u32,
    /// Not 0 when the next hook has more to do than to log.
    pub needs_safepoint: AtomicU32,
    /// Accesses left until the token is passed on.
    pub quantum: i64,
    /// What that was when it was drawn.
    pub quantum_drawn: i64,
    /// Where the access that is expected next is remembered.
    pub expected: *mut Slot,
    /// Where accesses that are as expected are counted.
    pub run: *mut u64,
    /// What was last seen at addresses, if values are recorded; else null.
    pub last_values: *mut u64,
    /// Where the last plain write went, if what it stored is to be reported; else 0.
    pub pending: u64,
    /// The binary logarithm of the bytes that it stored.
    pub pending_size: u32,
    /// Whether a read was announced after it.
    pub pending_is_passed: bool,
    /// Whether the last hook announced the write of a range.
    pub is_range_pending: bool,
    /// What was in the place of a write before it, if the quantum ends with that write.
    pub overwritten: Overwritten,
    /// The thread's number, in order of creation.
    pub number: u32,
    /// Where the last access is remembered.
    pub previous: *mut Slot,
    /// What the thread expects.
    pub slots: *mut Slot,
    /// Where events go.
    pub buffer: *mut Buffer,
    /// The number by which the kernel knows it.
    pub task: u32,
    /// 1 when this thread has the token; threads sleep on it.
    pub granted: AtomicU32,
    /// Whether the token was taken from the thread while it ran unseen.
    pub evicted: AtomicU32,
    /// Whether it waits without the token. Signal handlers that run on it
    /// meanwhile acquire the token, which is revoked when the thread sleeps again.
    pub is_blocking: AtomicBool,
    /// Whether it is in a call of the C library from which the token can be taken.
    pub in_library: bool,
    /// Whether such a handler has had the token.
    pub handler_ran: bool,
    /// Whether it waits in a call: one of [`waiting`].
    pub wait_state: AtomicU32,
    /// Whether it is in the queue for the token.
    pub is_queued: bool,
    /// The next in the queue for the token.
    pub next: *mut Self,
    /// The next in the list of all threads.
    pub sibling: *mut Self,
    /// The handle that the C library gave it.
    pub handle: AtomicU64,
    /// What has happened to it: a set of [`life`] bits.
    pub life: AtomicU32,
    /// How many threads it has created.
    pub forks: u32,
    /// Its entry in the plan, or `u32::MAX`.
    pub entry: u32,
    /// Whether the token must be handed on before the next event.
    pub must_yield: bool,
    /// The lock that it waits for, or 0.
    pub waits_for: u64,
    /// The code address at which it waits for it.
    pub waits_at: u64,
    /// The condition that it waits on while a plan is followed, or 0.
    pub waits_on: AtomicU64,
    /// 1 when it was notified there; threads sleep on it.
    pub is_notified: AtomicU32,
    /// How many events it logged at each code address of the plan.
    pub occurrences: *mut u32,
    /// What `pthread_once` is to do, and whether it did.
    pub once: Once,
    /// The routines of that kind that it runs.
    pub once_attempts: OnceAttempts,
    /// How many times the end of the thread was put off, so that it comes last.
    pub end_delays: u32,
    /// The OpenMP team that it belongs to, or 0.
    pub team: u32,
    /// How many ordered loops of OpenMP it has come to in its team.
    pub ordered_loops: u32,
    /// How many dimensions the cross-iteration dependences of its loop have.
    pub dimensions: u32,
    /// Whether it is a member of a team whose end clang's library reports.
    pub is_member: bool,
    /// Where it began the parallel region that it is in, in clang's library.
    pub region_code: u64,
    /// Whether it is in that library to begin or to end a region.
    pub is_in_region: bool,
    /// Whether it waits in clang's library.
    pub is_waiting: bool,
    /// Whether it adds to the shared variables of a reduction, alone.
    pub reduces: bool,
    /// The bytes of the task that it made last, in clang's library.
    pub task_bytes: u64,
    /// Those of the tasks of a loop that it makes, or 0.
    pub loop_task_bytes: u64,
    /// Where it makes them.
    pub loop_code: u64,
    /// The memory of the pool's thread that it reduces into, and how long that is.
    pub scratch: (u64, u64),
    /// On whose stack it runs, as a task of OpenMP does; null where on none that is recorded.
    pub beneath: *mut Self,
    /// Whether that thread gave up the token for it.
    pub took_token: bool,
    /// What the program asked to be ignored.
    pub ignored: Ignored,
    /// What it has to do with libraries that were not rebuilt.
    pub boundary: Boundary,
    /// The lock that it acquired last by a call, and where.
    pub last_acquire: (u64, u64),
    /// What it is about to join by an object of the C++ library.
    pub joins: crate::interceptors::threads::Joins,
    /// The signal that waits until the runtime is left.
    pub deferred: Deferred,
    /// Whether it runs a handler of a signal that came while it ran other code, and not at its own request.
    pub is_interrupted: bool,
    /// Whether it is in a call that sends or unblocks signals, or waits in one: then a handler is no surprise.
    pub asks_for_signals: bool,
    pub waits_in_call: bool,
    /// Its own buffer, in `free` recordings.
    pub own: Buffer,
}

/// A signal that came while the runtime was on the thread's stack.
#[derive(Clone, Copy, Debug)]
pub struct Deferred {
    /// Its number, or 0.
    pub signal: u32,
    /// Whether none has to wait, since the thread itself may wait for a handler.
    pub is_off: bool,
    /// The signals that the thread blocked when it came.
    pub blocked: u64,
    /// What the kernel says of it.
    pub information: [u64; 16],
}

/// What was in memory before a write.
#[derive(Clone, Copy, Debug)]
pub struct Overwritten {
    /// Where the write went, or 0.
    pub address: u64,
    /// The binary logarithm of its bytes.
    pub size: u32,
    pub value: u64,
}

/// How often the program asked that something of a thread be ignored, and has not taken it back.
#[derive(Clone, Copy, Debug)]
pub struct Ignored {
    /// Plain reads.
    pub reads: u32,
    /// Plain writes.
    pub writes: u32,
    /// The order that atomic accesses and declarations make.
    pub synchronization: u32,
    /// Everything but locks: the thread is in the code of a lock that the program announced.
    pub lock: u32,
}

impl Ignored {
    /// Whether anything is ignored.
    #[inline(always)]
    pub const fn is_any(&self) -> bool {
        self.reads | self.writes | self.synchronization | self.lock != 0
    }

    /// Whether events of `kind` are ignored.
    pub const fn hides(&self, kind: Kind) -> bool {
        match kind {
            Kind::Read | Kind::ReadRange => self.reads | self.lock != 0,
            Kind::Write | Kind::WriteRange => self.writes | self.lock != 0,
            Kind::Send | Kind::Receive => self.synchronization | self.lock != 0,
            Kind::AtomicLoad | Kind::AtomicStore | Kind::AtomicUpdate | Kind::AtomicFailed => {
                self.lock != 0
            }
            Kind::Fence => self.synchronization | self.lock != 0,
            _ => false,
        }
    }
}

/// Whether a thread waits in a call.
pub mod waiting {
    /// It does not.
    pub const NO: u32 = 0;
    /// Until something happens.
    pub const BLOCKED: u32 = 1;
    /// Until some time has passed.
    pub const SLEEPING: u32 = 2;
}

/// What has happened to a thread.
pub mod life {
    /// Its block is in use.
    pub const USED: u32 = 1;
    /// It will run no more code of the program.
    pub const ENDED: u32 = 2;
    /// Nobody will join it, or somebody did.
    pub const RELEASED: u32 = 4;
    /// It runs, or waits for its turn.
    pub const BEGUN: u32 = 8;
}

/// What threads that are not recorded have: nothing passes its depth.
struct Off(core::cell::UnsafeCell<Thread>);

// SAFETY: nobody writes it, since whoever finds a depth other than 0 leaves at once.
unsafe impl Sync for Off {}

static OFF: Off = Off(core::cell::UnsafeCell::new(Thread::new(1)));

impl Thread {
    const fn new(depth: u32) -> Self {
        // SAFETY: zero is a value of every field: numbers, flags, null pointers.
        let zero: Self = unsafe { core::mem::zeroed() };
        Self { depth, life: AtomicU32::new(life::USED), entry: u32::MAX, ..zero }
    }
}

/// Reads a word of the running thread's own storage, without a call or a lazy path.
macro_rules! read_local {
    ($name:literal) => {{
        let word: u64;
        // SAFETY: reads a word of this thread's own storage.
        unsafe {
            core::arch::asm!(
                concat!("mov {0}, qword ptr [rip + ", $name, "@GOTTPOFF]"),
                "mov {0}, fs:[{0}]",
                out(reg) word,
                options(nostack, readonly, preserves_flags),
            );
        }
        word
    }};
}
pub(crate) use read_local;

/// Writes a word of the running thread's own storage.
macro_rules! write_local {
    ($name:literal, $word:expr) => {
        // SAFETY: writes a word of this thread's own storage.
        unsafe {
            core::arch::asm!(
                concat!("mov {0}, qword ptr [rip + ", $name, "@GOTTPOFF]"),
                "mov fs:[{0}], {1}",
                out(reg) _,
                in(reg) $word,
                options(nostack, preserves_flags),
            );
        }
    };
}
pub(crate) use write_local;

/// The running thread; null where it is not known yet.
#[inline(always)]
pub fn current() -> *mut Thread {
    read_local!("reweave_self") as *mut Thread
}

/// Makes `thread` the running one.
#[inline(always)]
pub fn set_current(thread: *mut Thread) {
    write_local!("reweave_self", thread);
}

/// Where the interceptor that this thread entered last was called from.
#[inline(always)]
pub fn caller() -> u64 {
    read_local!("reweave_caller")
}

/// Where on the stack the address is to which that interceptor returns.
#[inline(always)]
pub fn caller_slot() -> *const u64 {
    read_local!("reweave_caller_slot") as *const u64
}

/// Has the code at `code` taken for who called the interceptor that was entered last.
#[inline(always)]
pub fn set_caller(code: u64) {
    write_local!("reweave_caller", code);
}

/// The thread of which nothing is recorded.
pub fn unrecorded() -> *mut Thread {
    OFF.0.get()
}

/// A lock that is held for a few instructions.
#[derive(Debug)]
pub struct Spin(AtomicU32);

impl Spin {
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Runs `body` with the lock held. No signal comes meanwhile: its handler might jump away, or
    /// end the thread, and leave things half done and the lock taken for good.
    #[inline]
    pub fn with<R>(&self, body: impl FnOnce() -> R) -> R {
        let signals = sys::block_signals();
        let result = self.hold(1, body);
        sys::set_signals(signals);
        result
    }

    /// Runs `body` with the lock held by `owner`, which is not 0. If a signal handler jumps
    /// away, [`Spin::release_if_held`] must be called.
    #[inline]
    pub fn hold<R>(&self, owner: u32, body: impl FnOnce() -> R) -> R {
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

    /// Releases the lock if `owner` holds it.
    pub fn release_if_held(&self, owner: u32) {
        // Nobody else makes it ours, or takes it from us.
        if self.0.load(Ordering::Relaxed) == owner {
            self.0.store(0, Ordering::Release);
        }
    }

    /// Forgets who held it, in a process that has one thread.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Release);
    }
}

static REGISTRY: Spin = Spin::new();
static ALL: core::sync::atomic::AtomicPtr<Thread> =
    core::sync::atomic::AtomicPtr::new(ptr::null_mut());

/// Calls `visit` with each thread block that is in use, until it says that it has seen enough.
pub fn each(mut visit: impl FnMut(*mut Thread) -> bool) {
    REGISTRY.with(|| {
        let mut thread = ALL.load(Ordering::Relaxed);
        while !thread.is_null() {
            // SAFETY: blocks are never released, only used again.
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
pub fn create() -> Option<*mut Thread> {
    REGISTRY.with(|| {
        let first = ALL.load(Ordering::Relaxed);
        let mut thread = first;
        // SAFETY: blocks are never released, and this lock is held while lives begin.
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
pub unsafe fn mark(thread: *mut Thread, bits: u32) {
    let before = (*thread).life.fetch_or(bits, Ordering::AcqRel);
    let over = life::ENDED | life::RELEASED;
    if before & over != over && (before | bits) & over == over {
        let handle = (*thread).handle.swap(0, Ordering::Relaxed);
        let number = (*thread).number;
        let [gone, whose] = &GONE[number as usize % GONE.len()];
        gone.store(handle, Ordering::Relaxed);
        whose.store(number.into(), Ordering::Relaxed);
        (*thread).life.store(0, Ordering::Release);
    }
}

/// Handles of threads that nobody may use any more, with the numbers of the threads: the last ones.
static GONE: [[AtomicU64; 2]; 64] = [const { [const { AtomicU64::new(0) }; 2] }; 64];

/// The number of the thread that had `handle` last, if that is gone.
pub fn gone_with(handle: u64) -> Option<u32> {
    let is_mine =
        |[gone, _]: &&[AtomicU64; 2]| handle != 0 && gone.load(Ordering::Relaxed) == handle;
    let mine = GONE.iter().filter(is_mine);
    mine.map(|[_, number]| number.load(Ordering::Relaxed) as u32).max()
}

/// The thread that runs has `handle` now, whoever had it before.
pub fn take_over(handle: u64) {
    for [gone, _] in &GONE {
        _ = gone.compare_exchange(handle, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Forgets all threads, in a child process that has only the one that forked.
pub fn forget_all() {
    REGISTRY.reset();
    ALL.store(ptr::null_mut(), Ordering::Release);
}
