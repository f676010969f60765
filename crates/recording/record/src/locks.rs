//! Locks of Rust's standard library, recognized in the atomic accesses that make them.
//!
//! The question: a program built with the prebuilt standard library shows a lock as a
//! compare-and-swap in its own code, or not at all when the lock is contended. Which accesses are
//! locks, and what happens in the code that is not seen?
//!
//! The idea: fast paths are inlined or instantiated in the program, and the chain of functions at
//! the access names them (`Role`). A successful update there acquires or releases the lock at its
//! address; a failed one, a load and a book-keeping update mean nothing. Slow paths are wrapped when
//! the program is linked ([`crate::toolchain::std_wrappers`]) and log what they did. What is neither
//! (parking, scopes, `Once`, barriers) becomes atomic accesses that order exactly what the originals order.
//!
//! Promised: exclusive sections of a recognized lock overlap with no other section on it, whatever part
//! of the standard library was not seen. With a standard library that is instrumented
//! itself (`--build-std`) there are no wrappers, the slow paths are recognized too, and the rest is seen as
//! the atomic accesses that it is.
//!
//! An event that comes to mean nothing is still there, as [`Kind::Nothing`] with its code address and
//! what the last plain write stored; an event that is added has the code address 0, and so have those
//! of slow paths. So the events of a code address keep the count that they have in a run in which no
//! lock is waited for.
//!
//! What the C library accesses on behalf of the prebuilt standard library is left out: the
//! locks around it are not seen.
//!
//! The cost: one to five look-ups for an atomic access, one for an access to a range, none for
//! another event.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::{fs, io};

use addr2line::gimli::{self, AttributeValue, EndianSlice, LittleEndian};
use object::{Object, ObjectSection};
use reweave_base::FxHashMap;
use reweave_runtime::std_events::INTERNAL_LOCK_BYTES;
use reweave_runtime::wire::{Event, Kind, flag, order};

use crate::event_log::{Ending, Stream};
use crate::symbols::Symbols;

pub use reweave_runtime::std_events::VIRTUAL;

/// Where locks count their holders; above are the marks of those who wait.
const HOLDERS: u64 = (1 << 30) - 1;

/// The binary logarithm of the bytes of a futex.
const FUTEX_SIZE: u8 = 2;

/// The value of a `Once` that is done.
const ONCE_COMPLETE: u64 = 0;

/// The bytes in which the counters of a scope lie.
const SCOPE_BYTES: u64 = 24;

/// How many locks the library keeps for itself: of standard input, output and error.
const INTERNAL_MAX: usize = 3;

/// The bytes in which the token of a thread lies, with the counts of references before it.
const THREAD_BYTES: u64 = 64;

/// Rewrites the events of a recording one by one. See the [module](self).
#[derive(Default)]
pub struct LockRecognizer {
    roles: Roles,
    prebuilt: Prebuilt,
    locks: Locks,
    attempts: Attempts,
    /// The return addresses of the functions that each thread is in, the innermost last.
    stacks: FxHashMap<u32, Vec<u64>>,
    /// Scopes whose threads were seen to end, marked with [`VIRTUAL`].
    scopes: BTreeSet<u64>,
    /// Where the tokens of threads are.
    tokens: BTreeSet<u64>,
    /// How far behind the start of a thread's own data its token is, once known.
    token_offset: Option<u64>,
    /// Who is running the function of a `Once`.
    runners: FxHashMap<u64, u32>,
    /// Where that starts in which the library has the locks that it keeps for itself, which are there
    /// for good.
    internal: Vec<u64>,
}

impl LockRecognizer {
    /// Calls `out` with the events that `event` of `thread` comes to, at least one. `symbols` has the
    /// map selected that holds at the event.
    pub fn rewrite(
        &mut self,
        symbols: &mut Symbols,
        thread: u32,
        event: Event,
        out: &mut impl FnMut(u32, Event),
    ) {
        match event.kind {
            Kind::Enter => self.stacks.entry(thread).or_default().push(event.address),
            Kind::Leave => {
                self.stacks.entry(thread).or_default().pop();
            }
            Kind::End => {
                self.stacks.remove(&thread);
            }
            Kind::AtomicLoad | Kind::AtomicUpdate | Kind::AtomicFailed => {
                let role = self.role(symbols, thread, event.code);
                return self.atomic(role, thread, event, out);
            }
            Kind::LockRequest | Kind::Lock if event.address & VIRTUAL != 0 => {
                return self.internal(thread, event, out);
            }
            Kind::LockRequest | Kind::Lock | Kind::Unlock | Kind::Wait | Kind::Wake => {
                let role = self.role(symbols, thread, event.code);
                return self.slow(role, thread, event, out);
            }
            Kind::ReadRange | Kind::WriteRange if self.prebuilt.holds(symbols, event.code) => {
                return out(thread, nothing(&event));
            }
            // Who has such a lock and how many times is changed where it is seen and where it is not.
            Kind::Read | Kind::Write | Kind::AtomicStore
                if self.internal_lock_at(event.address).is_some() =>
            {
                return out(thread, nothing(&event));
            }
            Kind::OnceDone => return self.once(thread, event, out),
            Kind::Park => return self.park(thread, event, out),
            _ => {}
        }
        out(thread, event);
    }

    fn role(&mut self, symbols: &mut Symbols, thread: u32, code: u64) -> Role {
        let stack = self.stacks.get(&thread).map_or(&[][..], Vec::as_slice);
        self.roles.find(symbols, code, stack)
    }

    /// An atomic access in the program's own code.
    fn atomic(&mut self, role: Role, thread: u32, event: Event, out: &mut impl FnMut(u32, Event)) {
        let is_update = event.kind == Kind::AtomicUpdate;
        match role {
            Role::Other | Role::Condition => self.other_access(thread, event, out),
            Role::Acquire(how) => self.try_acquire(how, false, thread, event, out),
            Role::AcquireShared(how) => self.try_acquire(how, true, thread, event, out),
            Role::Release | Role::ReleaseShared if is_update => {
                let unlock = self.unlock(thread, &event);
                self.release(thread, unlock, role == Role::ReleaseShared, out);
            }
            Role::Downgrade if is_update && event.order != order::RELAXED => {
                self.release(thread, as_kind(Kind::Unlock, &event), false, out);
                let lock =
                    Event { number: event.number, ..Event::new(Kind::Lock, event.address, 0) };
                self.acquire(thread, lock, true, out);
            }
            Role::Release | Role::ReleaseShared | Role::Downgrade => out(thread, nothing(&event)),
            Role::Inner => out(thread, uncounted(nothing(&event))),
            // A `Once` found undone orders nothing, and what is then done is logged by wrappers.
            Role::OnceCheck if event.value.is_some_and(|value| value != ONCE_COMPLETE) => {
                out(thread, nothing(&event));
            }
            Role::OnceCheck => out(thread, event),
            Role::Unpark => {
                self.tokens.insert(event.address);
                // What it saw was in part stored by code that is not seen.
                out(thread, Event { value: None, extra: None, ..event });
            }
            Role::ScopeCheck => out(thread, self.scope_check(event)),
        }
    }

    /// An atomic access in a function that takes a lock.
    fn try_acquire(
        &mut self,
        how: How,
        is_shared: bool,
        thread: u32,
        event: Event,
        out: &mut impl FnMut(u32, Event),
    ) {
        let is_update = event.kind == Kind::AtomicUpdate;
        let succeeded = is_update && acquires(&event, is_shared);
        match how {
            How::Fast if event.kind == Kind::AtomicLoad => {
                self.attempts.look(thread, event.address, event.code);
            }
            How::Fast => self.attempts.try_it(thread, event.address, event.code, succeeded),
            How::Slow | How::Try => {}
        }
        match (how, succeeded) {
            (How::Slow, false) => return out(thread, uncounted(nothing(&event))),
            (How::Try, false) if finds_busy(&event, is_shared) => {
                let flags = if is_shared { flag::SHARED } else { 0 };
                return out(thread, Event { flags, ..as_kind(Kind::LockBusy, &event) });
            }
            (How::Fast | How::Try, false) => return out(thread, nothing(&event)),
            (How::Fast | How::Slow | How::Try, true) => {}
        }
        let mut lock = as_kind(Kind::Lock, &event);
        match how {
            How::Fast => {}
            How::Slow => self.attempts.place(thread, &mut lock, true),
            How::Try => lock.flags = flag::TRY,
        }
        self.acquire(thread, lock, is_shared, out);
    }

    /// An atomic access of the program's own, or of a wrapper.
    fn other_access(&mut self, thread: u32, event: Event, out: &mut impl FnMut(u32, Event)) {
        // A lock is touched by its own functions only, also where the optimiser took their names.
        let unlock = self.unlock(thread, &event);
        if let Some(is_shared) = self.locks.mode(thread, unlock.address)
            && releases(&event, is_shared)
        {
            return self.release(thread, unlock, is_shared, out);
        }
        if event.address & VIRTUAL != 0 && event.order == order::RELEASE {
            // The end of a thread of a scope. What overlaps with it is a scope that is no more.
            let start = event.address.saturating_sub(SCOPE_BYTES - 1);
            let near = start..event.address.saturating_add(SCOPE_BYTES);
            let gone: Vec<u64> = self.scopes.range(near).copied().collect();
            gone.iter().for_each(|scope| {
                self.scopes.remove(scope);
            });
            self.scopes.insert(event.address);
        }
        out(thread, event);
    }

    /// A scope waits for its threads: it looks where they announced their end.
    fn scope_check(&self, event: Event) -> Event {
        if event.kind != Kind::AtomicLoad {
            return event;
        }
        let place = event.address | VIRTUAL;
        let before = self.scopes.range(..=place).next_back();
        let known = before.filter(|scope| place - **scope < SCOPE_BYTES);
        match known {
            // The same function looks, relaxed, whether a thread panicked.
            Some(_) if event.order == order::RELAXED => nothing(&event),
            Some(_) if event.value.is_some_and(|running| running != 0) => nothing(&event),
            Some(scope) => Event { address: *scope, size: 0, value: None, ..event },
            None => event,
        }
    }

    /// An event of a lock that was logged as such: by a wrapper, or for a lock of the C library.
    fn slow(
        &mut self,
        role: Role,
        thread: u32,
        mut event: Event,
        out: &mut impl FnMut(u32, Event),
    ) {
        let is_ours = !matches!(role, Role::Other);
        let is_shared = event.flags & flag::SHARED != 0;
        match event.kind {
            Kind::LockRequest if is_ours => {
                self.attempts.place(thread, &mut event, false);
                out(thread, event);
            }
            Kind::Lock if is_ours => {
                self.attempts.place(thread, &mut event, true);
                self.acquire(thread, event, is_shared, out);
            }
            Kind::Unlock if is_ours => self.release(thread, event, is_shared, out),
            Kind::Wait if is_ours => {
                self.locks.release(thread, event.extra.unwrap_or(0), false);
                out(thread, event);
            }
            Kind::Wake if is_ours => {
                let lock = event.extra.unwrap_or(0);
                self.locks.acquire(thread, lock, false, |holder, is_shared| {
                    report_release((holder, is_shared), lock, &event, out);
                });
                out(thread, event);
            }
            _ => out(thread, event),
        }
    }

    /// A lock that the library keeps for itself is asked for or taken. Who has it already gets it
    /// again without waiting, and releases it only once.
    fn internal(&mut self, thread: u32, event: Event, out: &mut impl FnMut(u32, Event)) {
        let event = Event { address: event.address & !VIRTUAL, ..event };
        if self.locks.mode(thread, event.address).is_some() {
            return out(thread, nothing(&event));
        }
        let is_known = self.internal.contains(&event.address);
        if !is_known && self.internal.len() == INTERNAL_MAX {
            return out(thread, nothing(&event));
        }
        if event.kind == Kind::LockRequest {
            return out(thread, event);
        }
        if !is_known {
            self.internal.push(event.address);
        }
        self.acquire(thread, event, false, out);
    }

    /// The lock that the library keeps for itself among the bytes at `address`, by where it starts.
    fn internal_lock_at(&self, address: u64) -> Option<u64> {
        self.internal
            .iter()
            .copied()
            .find(|internal| address.wrapping_sub(*internal) < INTERNAL_LOCK_BYTES)
    }

    /// That `event`, an update of a word, releases the lock there: one that is known by where it
    /// starts if `thread` has it, else the word itself.
    fn unlock(&self, thread: u32, event: &Event) -> Event {
        let internal = self.internal_lock_at(event.address);
        let internal = internal.filter(|&internal| self.locks.mode(thread, internal).is_some());
        Event { address: internal.unwrap_or(event.address), ..as_kind(Kind::Unlock, event) }
    }

    fn acquire(
        &mut self,
        thread: u32,
        mut event: Event,
        is_shared: bool,
        out: &mut impl FnMut(u32, Event),
    ) {
        let lock = event.address;
        self.locks.acquire(thread, lock, is_shared, |holder, is_shared| {
            report_release((holder, is_shared), lock, &event, out);
        });
        event.flags |= if is_shared { flag::SHARED } else { 0 };
        out(thread, event);
    }

    fn release(
        &mut self,
        thread: u32,
        mut event: Event,
        is_shared: bool,
        out: &mut impl FnMut(u32, Event),
    ) {
        if !self.locks.release(thread, event.address, is_shared) {
            return out(thread, nothing(&event));
        }
        event.flags |= if is_shared { flag::SHARED } else { 0 };
        out(thread, event);
    }

    /// A `Once` begins (order both), ends (release), or is found done (acquire).
    fn once(&mut self, thread: u32, event: Event, out: &mut impl FnMut(u32, Event)) {
        let access = |kind: Kind, order: u8| Event {
            order,
            size: FUTEX_SIZE,
            value: None,
            extra: None,
            kind,
            ..event
        };
        match event.order {
            order::BOTH => {
                // A run that did not end panicked. Its thread has gone on, and what it did before is
                // seen by the next run.
                if let Some(before) = self.runners.insert(event.address, thread) {
                    out(
                        before,
                        Event {
                            code: 0,
                            stored: None,
                            ..access(Kind::AtomicUpdate, order::RELEASE)
                        },
                    );
                }
                out(thread, access(Kind::AtomicUpdate, order::ACQUIRE));
            }
            order::RELEASE => {
                self.runners.remove(&event.address);
                let done = Some(ONCE_COMPLETE);
                out(thread, Event { extra: done, ..access(Kind::AtomicUpdate, order::RELEASE) });
            }
            _ => out(thread, access(Kind::AtomicLoad, order::ACQUIRE)),
        }
    }

    /// A thread returned from parking; the event has the address of its own data, in which the token
    /// lies. Where no `unpark` of it was seen there is nothing to be ordered after.
    fn park(&mut self, thread: u32, event: Event, out: &mut impl FnMut(u32, Event)) {
        let start = event.address;
        let mut tokens = self.tokens.range(start..start.saturating_add(THREAD_BYTES));
        let token = match self.token_offset {
            Some(offset) => start.checked_add(offset).filter(|token| self.tokens.contains(token)),
            None => tokens.next_back().copied(),
        };
        let Some(token) = token else { return out(thread, nothing(&event)) };
        self.token_offset = Some(token - start);
        let taken = Event { address: token, size: FUTEX_SIZE, order: order::ACQUIRE, ..event };
        out(thread, Event { kind: Kind::AtomicUpdate, value: None, extra: None, ..taken });
    }
}

/// Whether an update in a function that takes a lock takes it: it asks for acquire order, and for
/// the exclusive mode it saw the lock free. A mutex that is waited for is marked by swapping the mark
/// in, which takes it only if it was free.
fn acquires(event: &Event, is_shared: bool) -> bool {
    let is_free = event.value.is_none_or(|seen| seen & HOLDERS == 0);
    event.order != order::RELAXED && (is_shared || is_free)
}

/// Whether an access in a function that tries to take a lock finds that it cannot. Who wants to share it
/// also lets those go first who wait for it.
fn finds_busy(event: &Event, is_shared: bool) -> bool {
    let busy = if is_shared { HOLDERS..=u64::MAX } else { 1..=HOLDERS };
    let seen = |value: u64| if is_shared { value } else { value & HOLDERS };
    event.value.is_some_and(|value| busy.contains(&seen(value)))
}

/// Whether an access to a lock that its thread holds releases it.
fn releases(event: &Event, is_shared: bool) -> bool {
    let (Some(seen), Some(stored)) = (event.value, event.extra) else { return false };
    let is_release = matches!(event.order, order::RELEASE | order::BOTH);
    let is_less = if is_shared { stored == seen.wrapping_sub(1) } else { stored & HOLDERS == 0 };
    event.kind == Kind::AtomicUpdate && is_release && is_less
}

/// The event as another kind, without what only an access has.
fn as_kind(kind: Kind, event: &Event) -> Event {
    let (number, stored) = (event.number, event.stored);
    Event { number, stored, ..Event::new(kind, event.address, event.code) }
}

/// The event when it means nothing.
fn nothing(event: &Event) -> Event {
    as_kind(Kind::Nothing, event)
}

/// The event as one that is not counted.
const fn uncounted(event: Event) -> Event {
    Event { code: 0, ..event }
}

/// Reports that `lock` was released by its holder, which may have shared it, just before `event`.
fn report_release(
    (holder, is_shared): (u32, bool),
    lock: u64,
    event: &Event,
    out: &mut impl FnMut(u32, Event),
) {
    let flags = if is_shared { flag::SHARED } else { 0 };
    out(holder, Event { flags, number: event.number, ..Event::new(Kind::Unlock, lock, 0) });
}

/// A recording with the locks of Rust's standard library in it.
pub struct WithLocks<S> {
    inner: S,
    symbols: Rc<RefCell<Symbols>>,
    recognizer: LockRecognizer,
    ready: VecDeque<(u32, Event)>,
}

impl<S: Stream> WithLocks<S> {
    /// Recognizes the locks in `inner`. The map that holds is selected in `symbols` as events say.
    #[must_use]
    pub fn new(inner: S, symbols: Rc<RefCell<Symbols>>) -> Self {
        Self { inner, symbols, recognizer: LockRecognizer::default(), ready: VecDeque::new() }
    }
}

impl<S: Stream> Stream for WithLocks<S> {
    fn next_event(&mut self) -> io::Result<Option<(u32, Event)>> {
        if let Some(ready) = self.ready.pop_front() {
            return Ok(Some(ready));
        }
        let Some((thread, event)) = self.inner.next_event()? else { return Ok(None) };
        // Most events are plain accesses.
        if matches!(event.kind, Kind::Read | Kind::Write)
            && self.recognizer.internal_lock_at(event.address).is_none()
        {
            return Ok(Some((thread, event)));
        }
        let mut symbols = self.symbols.borrow_mut();
        if event.kind == Kind::Maps {
            symbols.select(event.address);
        }
        let ready = &mut self.ready;
        let mut keep = |thread, event| ready.push_back((thread, event));
        self.recognizer.rewrite(&mut symbols, thread, event, &mut keep);
        Ok(self.ready.pop_front())
    }

    fn ending(&self) -> Option<Ending> {
        self.inner.ending()
    }
}

// Where a thread first tried to take the lock that it then waited for.
//
// A replay runs another schedule, in which a lock that was waited for may be free. So what is
// logged where a lock is taken slowly is put as if it had been taken where it was first tried: the
// trace counts the events of a code address as a run does in which no lock is ever waited for.

/// How an event counts among those of its thread at its code address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// As one of its own.
    One,
    /// As one with the event before it at the address.
    WithLast,
    /// As one with the event after it at the address.
    WithNext,
}

/// Flags that no runtime sets.
const WITH_LAST: u16 = 1 << 15;

const WITH_NEXT: u16 = 1 << 14;

const _: () = assert!(
    (flag::TRY | flag::TIMED_OUT | flag::RECURSIVE | flag::SHARED) & (WITH_LAST | WITH_NEXT) == 0,
    "the runtime has flags of its own"
);

impl Count {
    /// How `event` counts.
    #[must_use]
    pub const fn new(event: &Event) -> Self {
        if event.flags & WITH_LAST != 0 {
            Self::WithLast
        } else if event.flags & WITH_NEXT != 0 {
            Self::WithNext
        } else {
            Self::One
        }
    }

    const fn flags(self) -> u16 {
        match self {
            Self::One => 0,
            Self::WithLast => WITH_LAST,
            Self::WithNext => WITH_NEXT,
        }
    }
}

/// What a thread did last to get a lock.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    lock: u64,
    /// Where it looked at the lock before it tried, if it did.
    look: Option<u64>,
    /// Where it tried in vain.
    trial: Option<u64>,
}

/// The attempts of all threads.
#[derive(Default)]
struct Attempts {
    last: FxHashMap<u32, Attempt>,
    /// Where a lock is tried after it was looked at and found free, by where it was looked at.
    trials: FxHashMap<u64, u64>,
}

impl Attempts {
    /// `thread` looks at `lock` to see whether it may be tried.
    fn look(&mut self, thread: u32, lock: u64, code: u64) {
        self.last.insert(thread, Attempt { lock, look: Some(code), trial: None });
    }

    /// `thread` tried to take `lock` at `code`; if it did not succeed, it will wait.
    fn try_it(&mut self, thread: u32, lock: u64, code: u64, succeeded: bool) {
        let before = self.last.remove(&thread).filter(|attempt| attempt.lock == lock);
        let look = before.and_then(|attempt| attempt.look);
        if let Some(look) = look {
            self.trials.insert(look, code);
        }
        if !succeeded {
            self.last.insert(thread, Attempt { lock, look, trial: Some(code) });
        }
    }

    /// Puts `event`, which says that `thread` asks for or took the lock at its address slowly, where
    /// the lock was first tried.
    fn place(&mut self, thread: u32, event: &mut Event, is_taken: bool) {
        let last =
            if is_taken { self.last.remove(&thread) } else { self.last.get(&thread).copied() };
        let Some(attempt) = last.filter(|last| last.lock == event.address) else { return };
        let trial = attempt.look.and_then(|look| self.trials.get(&look));
        let (code, count) = match (attempt.trial, trial) {
            (Some(code), _) => (code, Count::WithLast),
            (None, Some(&code)) if is_taken => (code, Count::One),
            (None, Some(&code)) => (code, Count::WithNext),
            // No replay comes by where it was taken unless it waits there too.
            (None, None) if is_taken => (0, Count::One),
            (None, None) => return,
        };
        event.code = code;
        event.flags |= count.flags();
    }
}

// Who holds which recognized lock, so that what is written is well-formed whatever was missed.
//
// A guard may be made in the part of the standard library that is not seen and end in code that
// is: `io::stdin().lock()`. Its release alone would be a release of a lock that nobody holds, so it
// is left out. The other way round, a lock that is taken while somebody seems to hold it has been
// released unseen, and that is made up for.

/// The holders of one lock.
#[derive(Default)]
struct Holders {
    exclusive: Option<u32>,
    /// Threads that share it, each with how many times.
    shared: Vec<(u32, u32)>,
}

/// The holders of all recognized locks, by address.
#[derive(Default)]
struct Locks {
    holders: FxHashMap<u64, Holders>,
}

impl Locks {
    /// Notes that `thread` takes `lock`; `released` is called for each hold that must have ended,
    /// with its thread and whether it was shared.
    fn acquire(
        &mut self,
        thread: u32,
        lock: u64,
        is_shared: bool,
        mut released: impl FnMut(u32, bool),
    ) {
        let holders = self.holders.entry(lock).or_default();
        if let Some(thread) = holders.exclusive.take() {
            released(thread, false);
        }
        if is_shared {
            match holders.shared.iter_mut().find(|(sharer, _)| *sharer == thread) {
                Some((_, count)) => *count += 1,
                None => holders.shared.push((thread, 1)),
            }
            return;
        }
        for (thread, count) in holders.shared.drain(..) {
            for _ in 0..count {
                released(thread, true);
            }
        }
        holders.exclusive = Some(thread);
    }

    /// Whether `thread` holds `lock`, and if so, whether it shares it.
    fn mode(&self, thread: u32, lock: u64) -> Option<bool> {
        let holders = self.holders.get(&lock)?;
        let shares = || holders.shared.iter().any(|(sharer, _)| *sharer == thread);
        match holders.exclusive {
            Some(holder) => (holder == thread).then_some(false),
            None => shares().then_some(true),
        }
    }

    /// Notes that `thread` releases `lock`, and says whether it was known to hold it.
    fn release(&mut self, thread: u32, lock: u64, is_shared: bool) -> bool {
        let Some(holders) = self.holders.get_mut(&lock) else { return false };
        let was_held = if is_shared {
            let place = holders.shared.iter().position(|(sharer, _)| *sharer == thread);
            if let Some(place) = place {
                holders.shared[place].1 -= 1;
                if holders.shared[place].1 == 0 {
                    holders.shared.remove(place);
                }
            }
            place.is_some()
        } else {
            holders.exclusive.take_if(|holder| *holder == thread).is_some()
        };
        if holders.exclusive.is_none() && holders.shared.is_empty() {
            self.holders.remove(&lock);
        }
        was_held
    }
}

// Which code of a program came compiled with the standard library.
//
// That code is not instrumented, and neither is what orders its threads. But it calls functions of
// the C library, which are seen: to copy memory, to read and write files. What these access for it
// would look unordered, so it must be distinguished. Debug information has a unit for everything that
// was compiled together. Those of the standard library have paths of the machine that it was built
// on; of the rest of a Rust program every unit is there, since it was built to be recorded, so what
// is in none is not the program's own either.
//
// The units of a file are read when one of its addresses is first asked for.

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// What is known of the code of all files.
#[derive(Default)]
struct Prebuilt {
    files: FxHashMap<String, InstrumentedCode>,
    known: FxHashMap<(u64, u64), bool>,
}

impl Prebuilt {
    /// Whether the call that returns to `code` is in code that came compiled.
    fn holds(&mut self, symbols: &mut Symbols, code: u64) -> bool {
        let key = (symbols.selected(), code);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let answer = symbols.origin(code).is_some_and(|(path, offset)| {
            let internal = match self.files.get(path) {
                Some(internal) => internal,
                None => {
                    let internal = InstrumentedCode::read(Path::new(path)).unwrap_or_default();
                    self.files.entry(path.to_owned()).or_insert(internal)
                }
            };
            internal.is_rust && !internal.contains(offset.saturating_sub(1))
        });
        self.known.insert(key, answer);
        answer
    }
}

/// The code of a file that is its own.
#[derive(Debug, Default)]
struct InstrumentedCode {
    is_rust: bool,
    /// Sorted by where they start.
    ranges: Vec<Range<u64>>,
}

impl InstrumentedCode {
    fn read(path: &Path) -> Option<Self> {
        // Devices can be mapped too, and some of them have no end.
        fs::metadata(path).ok()?.is_file().then_some(())?;
        let bytes = fs::read(path).ok()?;
        let object = object::File::parse(&*bytes).ok()?;
        let section = |id: gimli::SectionId| {
            let section = object.section_by_name(id.name());
            let data = section.and_then(|section| section.data().ok()).unwrap_or_default();
            Ok::<_, gimli::Error>(EndianSlice::new(data, LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(section).ok()?;
        let mut internal = Self::default();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            if let Ok(unit) = dwarf.unit(header) {
                internal.add(&dwarf, &unit);
            }
        }
        internal.ranges.sort_unstable_by_key(|range| range.start);
        Some(internal)
    }

    fn add(&mut self, dwarf: &gimli::Dwarf<Slice<'_>>, unit: &gimli::Unit<Slice<'_>>) {
        let is_rust = is_rust(unit);
        self.is_rust |= is_rust;
        let name = unit.name.map(|name| name.to_string_lossy()).unwrap_or_default();
        if is_rust && came_compiled(&name) {
            return;
        }
        let Ok(mut ranges) = dwarf.unit_ranges(unit) else { return };
        while let Ok(Some(range)) = ranges.next() {
            self.ranges.push(range.begin..range.end);
        }
    }

    fn contains(&self, address: u64) -> bool {
        let after = self.ranges.partition_point(|range| range.start <= address);
        after > 0 && address < self.ranges[after - 1].end
    }
}

fn is_rust(unit: &gimli::Unit<Slice<'_>>) -> bool {
    let mut entries = unit.entries();
    let Ok(Some(root)) = entries.next_dfs() else { return false };
    let language = root.attr_value(gimli::DW_AT_language);
    matches!(language, Some(AttributeValue::Language(gimli::DW_LANG_Rust)))
}

/// Whether a unit of this name is of the standard library as it comes. Where it is built with the
/// program its source is below `rustlib`.
fn came_compiled(unit: &str) -> bool {
    let is_of_project = ["/rustc/", "/rust/deps/"].iter().any(|start| unit.starts_with(start));
    let is_library = ["/library/std/", "/library/core/", "/library/alloc/"]
        .iter()
        .any(|part| unit.contains(part));
    is_of_project || is_library && !unit.contains("/rustlib/src/")
}

// Which part of Rust's standard library a code address belongs to.
//
// The fast paths of its locks are inlined into programs, or called one by one in debug builds. So
// the innermost function that is not one of the wrappers in `core::sync::atomic` decides: it is
// among the inlined frames of the address itself, or in those of the calls behind it.

/// How many calls behind an address are looked at: a debug build has four between a lock and the
/// instruction.
const CALLS_MAX: usize = 8;

/// What an atomic access means where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Nothing of ours.
    Other,
    /// Takes the lock at the address.
    Acquire(How),
    /// Takes it in shared mode.
    AcquireShared(How),
    /// Releases the lock.
    Release,
    /// Releases the shared mode.
    ReleaseShared,
    /// Turns the exclusive mode into the shared one.
    Downgrade,
    /// Book-keeping of a lock that acquires and releases nothing.
    Inner,
    /// Looks whether a `Once` is done.
    OnceCheck,
    /// Gives a thread its parking token.
    Unpark,
    /// `thread::scope` looks whether its threads have ended.
    ScopeCheck,
    /// Within `Condvar::wait` and its kin.
    Condition,
}

/// How a function takes a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// Tries, and calls another to wait if that fails.
    Fast,
    /// Waits.
    Slow,
    /// Tries, and gives up if that fails.
    Try,
}

/// The roles of addresses, each found once for each map.
#[derive(Default)]
struct Roles {
    /// Nothing where all frames of an address are wrappers: then its caller decides.
    scans: FxHashMap<(u64, u64), Option<Role>>,
}

impl Roles {
    /// The role of an access at `code` behind the calls `stack`, the innermost last.
    fn find(&mut self, symbols: &mut Symbols, code: u64, stack: &[u64]) -> Role {
        let calls = stack.iter().rev().take(CALLS_MAX);
        for address in std::iter::once(&code).chain(calls) {
            if let Some(role) = self.scan(symbols, *address) {
                return role;
            }
        }
        Role::Other
    }

    fn scan(&mut self, symbols: &mut Symbols, address: u64) -> Option<Role> {
        *self.scans.entry((symbols.selected(), address)).or_insert_with(|| {
            let mut frames = symbols.frames(address).iter().map(|frame| frame.function.as_str());
            frames.find(|name| !is_wrapper(name)).map(role_of)
        })
    }
}

fn is_wrapper(function: &str) -> bool {
    function.starts_with("core::sync::atomic::")
}

fn role_of(function: &str) -> Role {
    if let Some(name) = function.strip_prefix("std::sys::sync::mutex::futex::Mutex::") {
        return match name {
            "lock" => Role::Acquire(How::Fast),
            "lock_contended" => Role::Acquire(How::Slow),
            "try_lock" => Role::Acquire(How::Try),
            "unlock" => Role::Release,
            _ => Role::Inner,
        };
    }
    if let Some(name) = function.strip_prefix("std::sys::sync::rwlock::futex::RwLock::") {
        return match name {
            "read" => Role::AcquireShared(How::Fast),
            "read_contended" => Role::AcquireShared(How::Slow),
            "try_read" => Role::AcquireShared(How::Try),
            "write" => Role::Acquire(How::Fast),
            "write_contended" => Role::Acquire(How::Slow),
            "try_write" => Role::Acquire(How::Try),
            "read_unlock" => Role::ReleaseShared,
            "write_unlock" => Role::Release,
            "downgrade" => Role::Downgrade,
            _ => Role::Inner,
        };
    }
    let is_condition = |prefix: &str| function.starts_with(prefix);
    if is_condition("std::sync::poison::condvar::Condvar::")
        || is_condition("std::sync::nonpoison::condvar::Condvar::")
    {
        return Role::Condition;
    }
    // Generic functions carry their arguments behind the name, or in an older spelling do not.
    match function.split("::<").next().unwrap_or(function) {
        "std::sys::sync::once::futex::Once::is_completed" => Role::OnceCheck,
        "std::sys::sync::thread_parking::futex::Parker::unpark" => Role::Unpark,
        // Looks once more before it sleeps, and orders nothing.
        "std::sys::pal::unix::futex::futex_wait" => Role::Inner,
        "std::thread::scoped::scope" => Role::ScopeCheck,
        _ => Role::Other,
    }
}

#[cfg(test)]
mod tests;
