//! Functions of libraries that are known to order threads: one line each.
//!
//! A lock of the table is a lock of the trace: its critical sections can change places, and threads
//! can deadlock on it. What is handed over goes through a channel: of the object that the function is
//! given first, or of the whole library.
//!
//! C++ functions are named without their parameters, and without the namespace that a library puts
//! its version into.

use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::libraries::{NAME_MAX, Stub};
use super::{BUSY, TIMED_OUT, acquire, acquired, handlers, in_library, wait_on};
use crate::log::{self, Entry, Operands};
use crate::thread;
use crate::wire::{Kind, flag, order};

/// A function and what it does.
#[derive(Debug)]
pub struct Line {
    name: &'static str,
    action: Action,
}

/// Through what something is handed over.
#[derive(Clone, Copy, Debug)]
enum Through {
    /// The object that the function is given first.
    Object,
    /// Whatever the library does.
    Library,
}
use Through::{Library, Object};

/// What a function does to its first argument.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// A lock begins.
    Init,
    /// A lock begins that its owner may take again.
    InitRecursive,
    /// A lock ends.
    Destroy,
    /// Waits for a lock; another function, if it has a name, tries to take it.
    Lock(&'static str),
    LockShared(&'static str),
    /// Tries to take a lock, and answers whether it did.
    Try,
    TryShared,
    Unlock,
    /// Waits on a condition with the lock that is the second argument, until woken.
    Wait,
    /// The same for a time, and answers whether it has passed.
    WaitOrTrue,
    /// The same, and answers whether it has not.
    WaitOrFalse,
    Signal,
    Broadcast,
    /// Releases a lock until the predicate that is the second argument holds.
    Await,
    /// Waits for a lock and until the predicate that is the second argument holds.
    LockWhen,
    LockSharedWhen,
    /// The same; the fourth argument says whether in exclusive mode.
    LockWhenEither,
    /// Makes a predicate of the flag that is the second argument.
    Predicate,
    /// What comes before is handed over.
    Give(Through),
    /// What follows comes after all that was handed over, and one piece of it is taken, if it answers
    /// so.
    Take(Through),
    /// What follows comes after all that was handed over.
    Look(Through),
    /// Comes after all that was handed over, and hands over, before it does anything.
    Swap(Through),
    /// Hands over, and comes after all that was handed over once it returns.
    Meet(Through),
    /// Runs what was handed to the library.
    Dispatch,
    /// Creates a thread for the program.
    Create,
    /// Hands over by a flag of one byte, so many bytes behind, that others may read without a call.
    GiveFlag(usize),
    /// Stores, with release, to a word of eight bytes.
    Store,
    /// Has loaded, with acquire, from a word of eight bytes.
    Load,
    /// Has updated a word of so many bytes (their binary logarithm), with acquire and release.
    Update(u8),
    /// The same before it does anything else.
    UpdateFirst(u8),
}
use Action::*;

macro_rules! lines {
    ($($name:literal: $action:expr;)*) => { &[$(Line { name: $name, action: $action }),*] };
}

static LINES: &[Line] = lines! {
    // GLib: locks.
    "g_mutex_init": Init;
    "g_mutex_clear": Destroy;
    "g_mutex_lock": Lock("g_mutex_trylock");
    "g_mutex_trylock": Try;
    "g_mutex_unlock": Unlock;
    "g_rec_mutex_init": InitRecursive;
    "g_rec_mutex_clear": Destroy;
    "g_rec_mutex_lock": Lock("g_rec_mutex_trylock");
    "g_rec_mutex_trylock": Try;
    "g_rec_mutex_unlock": Unlock;
    "g_static_rec_mutex_lock": Lock("g_static_rec_mutex_trylock");
    "g_static_rec_mutex_trylock": Try;
    "g_static_rec_mutex_unlock": Unlock;
    "g_rw_lock_init": Init;
    "g_rw_lock_clear": Destroy;
    "g_rw_lock_reader_lock": LockShared("g_rw_lock_reader_trylock");
    "g_rw_lock_reader_trylock": TryShared;
    "g_rw_lock_reader_unlock": Unlock;
    "g_rw_lock_writer_lock": Lock("g_rw_lock_writer_trylock");
    "g_rw_lock_writer_trylock": Try;
    "g_rw_lock_writer_unlock": Unlock;
    "g_static_rw_lock_reader_lock": LockShared("g_static_rw_lock_reader_trylock");
    "g_static_rw_lock_reader_trylock": TryShared;
    "g_static_rw_lock_reader_unlock": Unlock;
    "g_static_rw_lock_writer_lock": Lock("g_static_rw_lock_writer_trylock");
    "g_static_rw_lock_writer_trylock": Try;
    "g_static_rw_lock_writer_unlock": Unlock;
    "g_cond_wait": Wait;
    "g_cond_wait_until": WaitOrFalse;
    "g_cond_timed_wait": WaitOrFalse;
    "g_cond_signal": Signal;
    "g_cond_broadcast": Broadcast;
    // A word can hold several of these, so they are no locks of the trace.
    "g_bit_lock": Look(Object);
    "g_bit_trylock": Look(Object);
    "g_bit_unlock": Give(Object);
    "g_pointer_bit_lock": Look(Object);
    "g_pointer_bit_trylock": Look(Object);
    "g_pointer_bit_unlock": Give(Object);

    // GLib: what is done once. Programs look at the word themselves before they call.
    "g_once_impl": Update(2);
    "g_once_init_enter": Load;
    "g_once_init_enter_impl": Load;
    "g_once_init_enter_pointer": Load;
    "g_once_init_leave": Store;
    "g_once_init_leave_pointer": Store;

    // GLib: threads, queues, pools, loops.
    "g_thread_new": Create;
    "g_thread_try_new": Create;
    "g_thread_create*": Create;
    "g_async_queue_push*": Give(Object);
    "g_async_queue_pop*": Take(Object);
    "g_async_queue_try_pop*": Take(Object);
    "g_async_queue_timeout_pop*": Take(Object);
    "g_async_queue_timed_pop*": Take(Object);
    "g_async_queue_remove*": Take(Object);
    "g_async_queue_length*": Look(Object);
    "g_async_queue_lock": Lock("");
    "g_async_queue_unlock": Unlock;
    "g_thread_pool_new*": Give(Library);
    "g_thread_pool_push": Give(Library);
    "g_thread_pool_free": Meet(Library);
    "g_idle_add*": Give(Library);
    "g_timeout_add*": Give(Library);
    "g_source_attach": Give(Library);
    "g_source_set_ready_time": Give(Library);
    "g_main_context_invoke*": Give(Library);
    "g_main_context_wakeup": Give(Library);
    "g_main_loop_quit": Give(Library);
    "g_main_loop_run": Dispatch;
    "g_main_context_iteration": Dispatch;
    "g_main_context_dispatch": Dispatch;

    // GLib: atomic accesses and counted references.
    "g_atomic_*": Swap(Object);
    "g_*_unref": Swap(Object);
    "g_rc_box_release*": Swap(Object);
    "g_ref_string_release": Swap(Object);
    "g_object_set_data*": Swap(Object);
    "g_object_get_data": Look(Object);
    "g_object_steal_data": Swap(Object);
    "g_object_set_qdata*": Swap(Object);
    "g_object_get_qdata": Look(Object);
    "g_datalist_*": Swap(Object);

    // Abseil.
    "absl::Mutex::Lock": Lock("TryLock");
    "absl::Mutex::TryLock": Try;
    "absl::Mutex::Unlock": Unlock;
    "absl::Mutex::ReaderLock": LockShared("ReaderTryLock");
    "absl::Mutex::ReaderTryLock": TryShared;
    "absl::Mutex::ReaderUnlock": Unlock;
    "absl::Mutex::lock": Lock("try_lock");
    "absl::Mutex::try_lock": Try;
    "absl::Mutex::unlock": Unlock;
    "absl::Mutex::lock_shared": LockShared("try_lock_shared");
    "absl::Mutex::try_lock_shared": TryShared;
    "absl::Mutex::unlock_shared": Unlock;
    "absl::Mutex::D1": Destroy;
    "absl::Mutex::D2": Destroy;
    "absl::Mutex::Await": Await;
    "absl::Mutex::AwaitWithTimeout": Await;
    "absl::Mutex::AwaitWithDeadline": Await;
    "absl::Mutex::AwaitCommon": Await;
    "absl::Mutex::LockWhen": LockWhen;
    "absl::Mutex::LockWhenWithTimeout": LockWhen;
    "absl::Mutex::LockWhenWithDeadline": LockWhen;
    "absl::Mutex::ReaderLockWhen": LockSharedWhen;
    "absl::Mutex::ReaderLockWhenWithTimeout": LockSharedWhen;
    "absl::Mutex::ReaderLockWhenWithDeadline": LockSharedWhen;
    "absl::Mutex::LockWhenCommon": LockWhenEither;
    "absl::Condition::C1": Predicate;
    "absl::Condition::C2": Predicate;
    "absl::CondVar::Wait": Wait;
    "absl::CondVar::WaitWithTimeout": WaitOrTrue;
    "absl::CondVar::WaitWithDeadline": WaitOrTrue;
    "absl::CondVar::WaitCommon": WaitOrTrue;
    "absl::CondVar::Signal": Signal;
    "absl::CondVar::SignalAll": Broadcast;
    "absl::Notification::Notify": GiveFlag(8);
    "absl::Notification::WaitForNotification": Look(Object);
    "absl::Notification::WaitForNotificationWithTimeout": Look(Object);
    "absl::Notification::WaitForNotificationWithDeadline": Look(Object);
    "absl::BlockingCounter::DecrementCount": Swap(Object);
    "absl::BlockingCounter::Wait": Look(Object);
    "absl::Barrier::Block": Meet(Object);
    // What comes before these is in headers, and seen as atomic accesses.
    "absl::base_internal::SpinLock::SlowLock": Update(2);
    "absl::base_internal::SpinLock::SlowUnlock": Give(Object);
    "absl::base_internal::SpinLockWait": Update(2);

    // Qt 5 and 6; calls of all its other functions are taken to order.
    "QMutex::lock": Lock("");
    "QMutex::tryLock": Try;
    "QMutex::try_lock": Try;
    "QMutex::unlock": Unlock;
    "QRecursiveMutex::lock": Lock("");
    "QRecursiveMutex::tryLock": Try;
    "QRecursiveMutex::unlock": Unlock;
    "QBasicMutex::lockInternal": Update(3);
    "QBasicMutex::unlockInternal": UpdateFirst(3);
    "QBasicMutex::unlockInternalFutex": UpdateFirst(3);
    "QReadWriteLock::lockForRead": LockShared("");
    "QReadWriteLock::tryLockForRead": TryShared;
    "QReadWriteLock::lockForWrite": Lock("");
    "QReadWriteLock::tryLockForWrite": Try;
    "QReadWriteLock::unlock": Unlock;
    "QWaitCondition::wait": WaitOrFalse;
    "QWaitCondition::wakeOne": Signal;
    "QWaitCondition::wakeAll": Broadcast;
    "QSemaphore::acquire": Look(Object);
    "QSemaphore::tryAcquire": Look(Object);
    "QSemaphore::release": Give(Object);
};

/// Libraries whose functions order threads as the table says, by how their names begin. What other functions do
/// to an object comes in the order in which it was observed, since they may keep what they are given in it.
const KNOWN: [&str; 4] = ["libglib-2.0.", "libgobject-2.0.", "libgthread-2.0.", "libabsl_"];

/// Whether all that orders threads in the library `name` is in the table.
pub fn is_known_library(name: &[u8]) -> bool {
    KNOWN.iter().any(|start| name.starts_with(start.as_bytes()))
}

/// Functions of such libraries that keep nothing, by how their names begin: many are given the same text.
const PLAIN: [&str; 17] = [
    "g_ascii_",
    "g_assert",
    "g_error_",
    "g_free",
    "g_get_",
    "g_log",
    "g_malloc",
    "g_print",
    "g_random_",
    "g_realloc",
    "g_return_if_fail",
    "g_snprintf",
    "g_str",
    "g_usleep",
    "g_utf8_",
    "g_vsnprintf",
    "g_warn",
];

/// Whether the function `name` of a known library keeps nothing of what it is given.
pub fn is_plain(name: &[u8]) -> bool {
    // These begin so, too, but have objects of their own, or keep what they are given.
    let keeping = [&b"g_string_"[..], b"g_strv_builder_", b"g_log_set_"];
    let keeps = keeping.iter().any(|start| name.starts_with(start));
    !keeps && PLAIN.iter().any(|start| name.starts_with(start.as_bytes()))
}

/// Functions of the system by which a library orders threads, by how their names begin.
const ORDERING: [&str; 14] = [
    "pthread_mutex_",
    "pthread_cond_",
    "pthread_rwlock_",
    "pthread_spin_",
    "pthread_barrier_",
    "pthread_create",
    "sem_",
    "mtx_",
    "cnd_",
    "thrd_create",
    "syscall",
    "__atomic_",
    "_ZNSt18condition_variable",
    "_ZNSt6thread",
];

/// Whether a library that calls the function `name` may order threads.
pub fn orders_threads(name: &[u8]) -> bool {
    ORDERING.iter().any(|start| name.starts_with(start.as_bytes())) || line(name).is_some()
}

/// The name of another function of a library.
pub struct Helper([u8; NAME_MAX], usize);

impl Helper {
    const fn none() -> Self {
        Self([0; NAME_MAX], 0)
    }

    fn add(mut self, text: &[u8]) -> Self {
        if let Some(room) = self.0.get_mut(self.1..self.1 + text.len()) {
            room.copy_from_slice(text);
            self.1 += text.len();
        }
        self
    }

    /// The name with a zero byte behind it; nothing if there is none.
    pub fn bytes(&self) -> Option<&[u8]> {
        (self.1 > 0).then(|| self.0.get(..=self.1)).flatten()
    }
}

/// What is known of the function `name`, and the function that is needed beside it.
pub fn find(name: &[u8]) -> Option<(&'static Line, Helper)> {
    let line = line(name)?;
    let helper = match (line.action, Mangled::new(name)) {
        (Lock(attempt) | LockShared(attempt), None) => Helper::none().add(attempt.as_bytes()),
        (Lock(attempt) | LockShared(attempt), Some(name)) if !attempt.is_empty() => {
            let [tens, ones] = [attempt.len() / 10, attempt.len() % 10].map(|it| b'0' + it as u8);
            let helper = Helper::none().add(b"_ZN").add(name.before(0));
            let helper = if tens > b'0' { helper.add(&[tens, ones]) } else { helper.add(&[ones]) };
            helper.add(attempt.as_bytes()).add(b"Ev")
        }
        (Await | LockWhen | LockSharedWhen | LockWhenEither, Some(name)) => {
            Helper::none().add(b"_ZNK").add(name.before(1)).add(b"9Condition4EvalEv")
        }
        _ => Helper::none(),
    };
    Some((line, helper))
}

fn line(name: &[u8]) -> Option<&'static Line> {
    // Of predicates only those of a flag matter: the code of others is the program's.
    let is_meant = |line: &&Line| !matches!(line.action, Predicate) || name.ends_with(b"EPKb");
    match Mangled::new(name) {
        Some(name) => LINES.iter().find(|line| name.is(line.name)),
        None if name.starts_with(b"g_") => LINES.iter().find(|line| matches(line.name, name)),
        None => None,
    }
    .filter(is_meant)
}

/// Whether `name` is what `pattern` says; a star stands for anything.
fn matches(pattern: &str, name: &[u8]) -> bool {
    match pattern.split_once('*') {
        None => pattern.as_bytes() == name,
        Some((start, end)) => {
            name.len() >= start.len() + end.len()
                && name.starts_with(start.as_bytes())
                && name.ends_with(end.as_bytes())
        }
    }
}

/// The parts of a C++ name, as compilers write them.
struct Mangled<'a> {
    parts: [&'a [u8]; PARTS_MAX],
    /// Where each part begins, with its length before it, after the first letters.
    starts: [usize; PARTS_MAX],
    count: usize,
    text: &'a [u8],
}

const PARTS_MAX: usize = 6;

impl<'a> Mangled<'a> {
    /// The parts of `name`; nothing where it is no C++ function within something, or one of a
    /// template.
    fn new(name: &'a [u8]) -> Option<Self> {
        let text = name.strip_prefix(b"_ZN")?;
        let text = text.strip_prefix(b"K").unwrap_or(text);
        let mut found = Self { parts: [&[]; PARTS_MAX], starts: [0; PARTS_MAX], count: 0, text };
        let mut at = 0;
        loop {
            let start = at;
            match *text.get(at)? {
                b'E' => return Some(found).filter(|found| found.count > 1),
                b'C' | b'D' => at += 2,
                b'1'..=b'9' => {
                    let mut length = 0;
                    while let Some(digit) = text.get(at).filter(|byte| byte.is_ascii_digit()) {
                        length = length * 10 + usize::from(digit - b'0');
                        at += 1;
                    }
                    at += length.min(NAME_MAX);
                }
                _ => return None,
            }
            let part = text.get(start..at)?;
            let digits = part.iter().take_while(|byte| byte.is_ascii_digit()).count();
            *found.parts.get_mut(found.count)? = &part[digits..];
            found.starts[found.count] = start;
            found.count += 1;
        }
    }

    /// Whether this is `name`, or would be without its second part.
    fn is(&self, name: &str) -> bool {
        let parts = &self.parts[..self.count];
        let mut named = name.split("::");
        let [first, rest @ ..] = parts else { return false };
        if named.next().map(str::as_bytes) != Some(*first) {
            return false;
        }
        let same = |parts: &[&[u8]]| parts.iter().copied().eq(named.clone().map(str::as_bytes));
        same(rest) || (name.starts_with("absl::") && same(&rest[1..]))
    }

    /// What comes before the last part and `more` others.
    fn before(&self, more: usize) -> &'a [u8] {
        let part = self.count.saturating_sub(1 + more);
        &self.text[..self.starts[part]]
    }
}

type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> usize;

/// A call of a known function.
struct Called {
    stub: *const Stub,
    arguments: [usize; 6],
    code: u64,
}

/// What is called instead of the function of `stub`, from `code`.
pub unsafe extern "C" fn called(
    stub: *const Stub,
    arguments: *const [usize; 6],
    code: u64,
) -> usize {
    thread::set_caller(code);
    let called = Called { stub, arguments: *arguments, code };
    match log::enter(code) {
        Some(entry) => called.act(entry, (*(*stub).line).action),
        None => called.real(),
    }
}

/// Whether a function answered with yes: languages differ in how much of the register says so.
const fn is_yes(result: usize) -> bool {
    result as u8 != 0
}

impl Called {
    unsafe fn real(&self) -> usize {
        let function: Function = core::mem::transmute((*self.stub).target);
        let [a, b, c, d, e, f] = self.arguments;
        function(a, b, c, d, e, f)
    }

    /// Calls a function that does not wait for what other threads do, but perhaps for one that is in
    /// the library too and waits for the token: then the token is taken from us.
    unsafe fn real_at_once(&self, entry: &Entry) -> usize {
        in_library(entry.thread, || self.real())
    }

    /// Does what the function does, and logs it.
    unsafe fn act(&self, entry: Entry, action: Action) -> usize {
        let first = self.arguments[0];
        match action {
            Init => self.logged(&entry, Kind::LockInit),
            InitRecursive => {
                entry.log_flags(Kind::LockInit, first as u64, flag::RECURSIVE);
                self.real_at_once(&entry)
            }
            Destroy => self.logged(&entry, Kind::LockDestroy),
            Unlock => self.logged(&entry, Kind::Unlock),
            Signal => self.logged(&entry, Kind::Signal),
            Broadcast => self.logged(&entry, Kind::Broadcast),
            Lock(_) => self.lock(&entry, 0, (*self.stub).helper, || self.real()),
            LockShared(_) => self.lock(&entry, flag::SHARED, (*self.stub).helper, || self.real()),
            Try => self.attempt(&entry, 0),
            TryShared => self.attempt(&entry, flag::SHARED),
            Wait => self.wait(&entry, None),
            WaitOrTrue => self.wait(&entry, Some(is_yes)),
            WaitOrFalse => self.wait(&entry, Some(|result| !is_yes(result))),
            Await => {
                // Nobody need wake it: what it waits for is what it reads with the lock taken again.
                let result = self.wait_with(&entry, [first, first], Some(|_| true));
                self.evaluate(&entry);
                result
            }
            LockWhen => self.lock_when(&entry, 0),
            LockSharedWhen => self.lock_when(&entry, flag::SHARED),
            LockWhenEither => {
                let flags = if is_yes(self.arguments[3]) { 0 } else { flag::SHARED };
                self.lock_when(&entry, flags)
            }
            Predicate => {
                let [place, flag] = predicate(first);
                place.store(first, Ordering::Relaxed);
                flag.store(self.arguments[1], Ordering::Relaxed);
                self.real_at_once(&entry)
            }
            action => self.hand_over(entry, action),
        }
    }

    unsafe fn logged(&self, entry: &Entry, kind: Kind) -> usize {
        entry.log(kind, self.arguments[0] as u64);
        self.real_at_once(entry)
    }

    /// Acquires a lock, by `call` if it must wait for it.
    unsafe fn lock(
        &self,
        entry: &Entry,
        flags: u16,
        attempt: usize,
        call: impl FnOnce() -> usize,
    ) -> usize {
        let lock = self.arguments[0];
        let attempt = || {
            if attempt == 0 {
                return BUSY;
            }
            let function: Function = core::mem::transmute(attempt);
            let result = in_library(entry.thread, || function(lock, 0, 0, 0, 0, 0));
            if is_yes(result) { 0 } else { BUSY }
        };
        let result = Cell::new(0);
        let wait = || {
            result.set(call());
            0
        };
        acquire(entry, lock, flags, attempt, wait);
        result.get()
    }

    unsafe fn lock_when(&self, entry: &Entry, flags: u16) -> usize {
        // The library asks with the lock taken, which is not logged yet.
        let call = || {
            let depth = core::mem::replace(&mut (*entry.thread).depth, 1);
            let result = handlers::waiting_inside(entry.thread, || self.real());
            (*entry.thread).depth = depth;
            result
        };
        let result = self.lock(entry, flags, 0, call);
        self.evaluate(entry);
        result
    }

    unsafe fn attempt(&self, entry: &Entry, flags: u16) -> usize {
        let result = self.real_at_once(entry);
        let answer = if is_yes(result) { 0 } else { BUSY };
        acquired(entry, self.arguments[0], flags | flag::TRY, answer);
        result
    }

    /// Waits on a condition; `has_timed_out` says by the result whether the time was over, if there is one.
    unsafe fn wait(&self, entry: &Entry, has_timed_out: Option<fn(usize) -> bool>) -> usize {
        let [condition, lock, ..] = self.arguments;
        self.wait_with(entry, [condition, lock], has_timed_out)
    }

    unsafe fn wait_with(
        &self,
        entry: &Entry,
        [condition, lock]: [usize; 2],
        has_timed_out: Option<fn(usize) -> bool>,
    ) -> usize {
        let result = Cell::new(0);
        let wait = || -> c_int {
            result.set(self.real());
            if has_timed_out.is_some_and(|is_over| is_over(result.get())) { TIMED_OUT } else { 0 }
        };
        wait_on(
            entry,
            condition,
            lock,
            (TIMED_OUT, if has_timed_out.is_some() { flag::TIMED_OUT } else { 0 }),
            wait,
        );
        result.get()
    }

    /// Reads what a predicate reads: that it holds is what the thread waited for. The library asked in
    /// calls of which nothing is recorded, perhaps in another thread.
    unsafe fn evaluate(&self, entry: &Entry) {
        let asked = self.arguments[1];
        let [place, flag] = predicate(asked);
        if place.load(Ordering::Relaxed) == asked {
            let operands = Operands { extra: Some(1), ..Operands::default() };
            entry.log_with(Kind::ReadRange, flag.load(Ordering::Relaxed) as u64, operands);
        } else if (*self.stub).helper != 0 {
            let function: Function = core::mem::transmute((*self.stub).helper);
            entry.nonblocking(|| function(asked, 0, 0, 0, 0, 0));
        }
    }

    /// Logs what is handed over before the call, calls, and logs what was taken over after it. The
    /// library may create threads, call the program and wait in between.
    unsafe fn hand_over(&self, entry: Entry, action: Action) -> usize {
        let object = self.arguments[0] as u64;
        match action {
            Give(through) | Meet(through) => self.log(&entry, Kind::Send, through, 0),
            Swap(through) => {
                self.log(&entry, Kind::Receive, through, flag::TRY);
                self.log(&entry, Kind::Send, through, 0);
            }
            GiveFlag(offset) => {
                self.log(&entry, Kind::Send, Object, 0);
                log_word(&entry, Kind::AtomicStore, object + offset as u64, order::RELEASE, 0);
            }
            Store => log_word(&entry, Kind::AtomicStore, object, order::RELEASE, 3),
            UpdateFirst(size) => log_word(&entry, Kind::AtomicUpdate, object, order::BOTH, size),
            Dispatch => (*entry.thread).boundary.dispatches += 1,
            Create => (*entry.thread).boundary.creates = true,
            _ => {}
        }
        let thread = entry.thread;
        drop(entry);
        let result = self.real();
        if thread::current() == thread {
            match action {
                Dispatch => (*thread).boundary.dispatches -= 1,
                Create => (*thread).boundary.creates = false,
                _ => {}
            }
        }
        thread::set_caller(self.code);
        let Some(entry) = log::enter(self.code) else { return result };
        match action {
            Take(through) if result != 0 => self.log(&entry, Kind::Receive, through, 0),
            Take(through) | Look(through) | Meet(through) => {
                self.log(&entry, Kind::Receive, through, flag::TRY);
            }
            Dispatch => self.log(&entry, Kind::Receive, Library, flag::TRY),
            Load => log_word(&entry, Kind::AtomicLoad, object, order::ACQUIRE, 3),
            Update(size) => log_word(&entry, Kind::AtomicUpdate, object, order::BOTH, size),
            _ => {}
        }
        result
    }

    unsafe fn log(&self, entry: &Entry, kind: Kind, through: Through, flags: u16) {
        let channel = match through {
            Object => self.arguments[0] as u64,
            Library => (*self.stub).library_channel(),
        };
        let extra = Some((*self.stub).target as u64);
        entry.log_with(kind, channel, Operands { flags, extra, ..Operands::default() });
    }
}

unsafe fn log_word(entry: &Entry, kind: Kind, address: u64, order: u8, size: u8) {
    entry.log_with(kind, address, Operands { order, size, ..Operands::default() });
}

/// Predicates that are flags: which, and where the flag is. One that finds its place taken by another
/// takes it over.
fn predicate(address: usize) -> &'static [AtomicUsize; 2] {
    const PLACES: usize = 512;
    static PREDICATES: [[AtomicUsize; 2]; PLACES] =
        [const { [const { AtomicUsize::new(0) }; 2] }; PLACES];
    &PREDICATES[(address >> 3).wrapping_mul(0x9e37_79b9) / 64 % PLACES]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: Option<&str>, helper: &str) {
        let found = find(name.as_bytes());
        assert_eq!(found.as_ref().map(|(line, _)| line.name), expected, "{name}");
        let bytes = found.as_ref().and_then(|(_, helper)| helper.bytes()).unwrap_or(b"\0");
        assert_eq!(bytes, format!("{helper}\0").as_bytes(), "{name}");
    }

    #[test]
    fn functions_are_found_whatever_the_version_of_their_library() {
        check("g_mutex_lock", Some("g_mutex_lock"), "g_mutex_trylock");
        check("g_mutex_locked", None, "");
        check("g_bytes_unref", Some("g_*_unref"), "");
        check("g_async_queue_pop_unlocked", Some("g_async_queue_pop*"), "");
        let lock = Some("absl::Mutex::Lock");
        check("_ZN4absl5Mutex4LockEv", lock, "_ZN4absl5Mutex7TryLockEv");
        check("_ZN4absl7debian35Mutex4LockEv", lock, "_ZN4absl7debian35Mutex7TryLockEv");
        check("_ZN4absl12lts_2023080210ReaderLockEv", None, "");
        check(
            "_ZN4absl7debian35Mutex10ReaderLockEv",
            Some("absl::Mutex::ReaderLock"),
            "_ZN4absl7debian35Mutex13ReaderTryLockEv",
        );
        check(
            "_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE",
            Some("absl::Mutex::Await"),
            "_ZNK4absl7debian39Condition4EvalEv",
        );
        check("_ZN4absl7debian39ConditionC1EPKb", Some("absl::Condition::C1"), "");
        check("_ZN4absl7debian39ConditionC1EPFbPvES2_", None, "");
        check("_ZN6QMutex4lockEv", Some("QMutex::lock"), "");
        check("_ZN6QMutex7lockingEv", None, "");
        check("_ZNSt6vectorIiE4LockEv", None, "");
        check("_ZN4absl", None, "");
    }
}
