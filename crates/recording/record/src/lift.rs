//! Locks of Rust's standard library, told from the atomic accesses that make them.
//!
//! The question: a program built with the prebuilt standard library shows a lock as a
//! compare-and-swap in its own code, or not at all when the lock is contended. Which accesses are
//! locks, and what happens in the code that is not seen?
//!
//! The idea: fast paths are inlined or instantiated in the program, and the chain of functions at
//! the access names them (`roles`). A successful update there takes or gives the lock at its
//! address; a failed one, a load and a book-keeping update mean nothing. Slow paths are wrapped when
//! the program is linked ([`shims`]) and log what they did. What is neither (parking, scopes, `Once`,
//! barriers) is told as atomic accesses that order exactly what the originals order.
//!
//! Promised: exclusive sections of a lifted lock overlap with no other section on it, whatever part
//! of the standard library was not seen (`holders`). With a standard library that is instrumented
//! itself (`--build-std`) there are no shims, the slow paths are lifted too, and the rest is seen as
//! the atomic accesses that it is.
//!
//! An event that comes to mean nothing is still there, as [`Kind::Nothing`] with its code address and
//! what the last plain write stored; an event that is added has the code address 0, and so have those
//! of slow paths. So the events of a code address keep the count that they have in a run in which no
//! lock is waited for (`attempts`).
//!
//! What the C library accesses on behalf of the prebuilt standard library is left out (`prebuilt`):
//! the locks around it are not seen.
//!
//! The cost: one to five look-ups for an atomic access, one for an access to a range, none for
//! another event.

mod attempts;
mod holders;
mod prebuilt;
mod roles;
pub mod shims;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::rc::Rc;

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind, flag};

use crate::spool::{Ending, Stream};
use crate::symbols::Symbols;
use attempts::Attempts;
pub use attempts::Count;
use holders::{Given, Locks};
use prebuilt::Prebuilt;
use roles::{How, Role, Roles};

/// Memory orders as compilers number them.
mod order {
    pub(super) const RELAXED: u8 = 0;
    pub(super) const ACQUIRE: u8 = 2;
    pub(super) const RELEASE: u8 = 3;
    pub(super) const BOTH: u8 = 4;
}

/// Where locks count their holders; above are the marks of those who wait.
const HOLDERS: u64 = (1 << 30) - 1;

/// The binary logarithm of the bytes of a futex.
const FUTEX_SIZE: u8 = 2;

/// The value of a `Once` that is done.
const ONCE_COMPLETE: u64 = 0;

/// The bytes in which the counters of a scope lie.
const SCOPE_BYTES: u64 = 24;

/// How many locks the library keeps for itself: of standard input, output and error.
const OWN_MAX: usize = 3;

/// The bytes in which the token of a thread lies, with the counts of references before it.
const THREAD_BYTES: u64 = 64;

use reweave_runtime::std_events::INTERNAL_LOCK_BYTES;

pub use reweave_runtime::std_events::VIRTUAL;

/// Rewrites the events of a recording one by one. See the [module](self).
#[derive(Default)]
pub struct Lifter {
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
    own: Vec<u64>,
}

impl Lifter {
    /// A lifter at the start of a recording.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

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
                return self.own(thread, event, out);
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
                if self.own_at(event.address).is_some() =>
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
            Role::Other | Role::Condition => self.unlifted(thread, event, out),
            Role::Take(how) => self.try_to_take(how, false, thread, event, out),
            Role::TakeShared(how) => self.try_to_take(how, true, thread, event, out),
            Role::Give | Role::GiveShared if is_update => {
                let unlock = self.unlock(thread, &event);
                self.give(thread, unlock, role == Role::GiveShared, out);
            }
            Role::Downgrade if is_update && event.order != order::RELAXED => {
                self.give(thread, told(Kind::Unlock, &event), false, out);
                let lock =
                    Event { number: event.number, ..Event::new(Kind::Lock, event.address, 0) };
                self.take(thread, lock, true, out);
            }
            Role::Give | Role::GiveShared | Role::Downgrade => out(thread, nothing(&event)),
            Role::Inner => out(thread, uncounted(nothing(&event))),
            // A `Once` found undone orders nothing, and what is then done is logged by shims.
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
    fn try_to_take(
        &mut self,
        how: How,
        is_shared: bool,
        thread: u32,
        event: Event,
        out: &mut impl FnMut(u32, Event),
    ) {
        let is_update = event.kind == Kind::AtomicUpdate;
        let succeeded = is_update && takes(&event, is_shared);
        match how {
            How::Fast if event.kind == Kind::AtomicLoad => {
                self.attempts.look(thread, event.address, event.code);
            }
            How::Fast => self.attempts.try_it(thread, event.address, event.code, succeeded),
            How::Slowly | How::AtOnce => {}
        }
        match (how, succeeded) {
            (How::Slowly, false) => return out(thread, uncounted(nothing(&event))),
            (How::Fast | How::AtOnce, false) => return out(thread, nothing(&event)),
            (How::Fast | How::Slowly | How::AtOnce, true) => {}
        }
        let mut lock = told(Kind::Lock, &event);
        match how {
            How::Fast => {}
            How::Slowly => self.attempts.place(thread, &mut lock, true),
            How::AtOnce => lock.flags = flag::TRY,
        }
        self.take(thread, lock, is_shared, out);
    }

    /// An atomic access of the program's own, or of a shim.
    fn unlifted(&mut self, thread: u32, event: Event, out: &mut impl FnMut(u32, Event)) {
        // A lock is touched by its own functions only, also where the optimiser took their names.
        let unlock = self.unlock(thread, &event);
        if let Some(is_shared) = self.locks.mode(thread, unlock.address)
            && gives(&event, is_shared)
        {
            return self.give(thread, unlock, is_shared, out);
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

    /// A scope waits for its threads: it is told where they told their end.
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

    /// An event of a lock that was logged as such: by a shim, or for a lock of the C library.
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
                self.take(thread, event, is_shared, out);
            }
            Kind::Unlock if is_ours => self.give(thread, event, is_shared, out),
            Kind::Wait if is_ours => {
                self.locks.give(thread, event.extra.unwrap_or(0), false);
                out(thread, event);
            }
            Kind::Wake if is_ours => {
                let lock = event.extra.unwrap_or(0);
                self.locks.take(thread, lock, false, |given| make_up(given, lock, &event, out));
                out(thread, event);
            }
            _ => out(thread, event),
        }
    }

    /// A lock that the library keeps for itself is asked for or taken. Who has it already gets it
    /// again without waiting, and gives it back only once.
    fn own(&mut self, thread: u32, event: Event, out: &mut impl FnMut(u32, Event)) {
        let event = Event { address: event.address & !VIRTUAL, ..event };
        if self.locks.mode(thread, event.address).is_some() {
            return out(thread, nothing(&event));
        }
        let is_known = self.own.contains(&event.address);
        if !is_known && self.own.len() == OWN_MAX {
            return out(thread, nothing(&event));
        }
        if event.kind == Kind::LockRequest {
            return out(thread, event);
        }
        if !is_known {
            self.own.push(event.address);
        }
        self.take(thread, event, false, out);
    }

    /// The lock that the library keeps for itself among the bytes at `address`, by where it starts.
    fn own_at(&self, address: u64) -> Option<u64> {
        self.own.iter().copied().find(|own| address.wrapping_sub(*own) < INTERNAL_LOCK_BYTES)
    }

    /// That `event`, an update of a word, gives back the lock there: one that is told by where it
    /// starts if `thread` has it, else the word itself.
    fn unlock(&self, thread: u32, event: &Event) -> Event {
        let own = self.own_at(event.address);
        let own = own.filter(|&own| self.locks.mode(thread, own).is_some());
        Event { address: own.unwrap_or(event.address), ..told(Kind::Unlock, event) }
    }

    fn take(
        &mut self,
        thread: u32,
        mut event: Event,
        is_shared: bool,
        out: &mut impl FnMut(u32, Event),
    ) {
        let lock = event.address;
        self.locks.take(thread, lock, is_shared, |given| make_up(given, lock, &event, out));
        event.flags |= if is_shared { flag::SHARED } else { 0 };
        out(thread, event);
    }

    fn give(
        &mut self,
        thread: u32,
        mut event: Event,
        is_shared: bool,
        out: &mut impl FnMut(u32, Event),
    ) {
        if !self.locks.give(thread, event.address, is_shared) {
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
fn takes(event: &Event, is_shared: bool) -> bool {
    let is_free = event.value.is_none_or(|seen| seen & HOLDERS == 0);
    event.order != order::RELAXED && (is_shared || is_free)
}

/// Whether an access to a lock that its thread holds gives it back.
fn gives(event: &Event, is_shared: bool) -> bool {
    let (Some(seen), Some(stored)) = (event.value, event.extra) else { return false };
    let is_release = matches!(event.order, order::RELEASE | order::BOTH);
    let is_less = if is_shared { stored == seen.wrapping_sub(1) } else { stored & HOLDERS == 0 };
    event.kind == Kind::AtomicUpdate && is_release && is_less
}

/// The event as another kind, without what only an access has.
fn told(kind: Kind, event: &Event) -> Event {
    let (number, stored) = (event.number, event.stored);
    Event { number, stored, ..Event::new(kind, event.address, event.code) }
}

/// The event when it means nothing.
fn nothing(event: &Event) -> Event {
    told(Kind::Nothing, event)
}

/// The event as one that is not counted.
const fn uncounted(event: Event) -> Event {
    Event { code: 0, ..event }
}

/// Tells that a lock was given back, just before `event`.
fn make_up(given: Given, lock: u64, event: &Event, out: &mut impl FnMut(u32, Event)) {
    let flags = if given.is_shared { flag::SHARED } else { 0 };
    out(given.thread, Event { flags, number: event.number, ..Event::new(Kind::Unlock, lock, 0) });
}

/// A recording with the locks of Rust's standard library in it.
pub struct Lifted<S> {
    inner: S,
    symbols: Rc<RefCell<Symbols>>,
    lifter: Lifter,
    ready: VecDeque<(u32, Event)>,
}

impl<S: Stream> Lifted<S> {
    /// Lifts the events of `inner`. The map that holds is selected in `symbols` as events tell it.
    #[must_use]
    pub fn new(inner: S, symbols: Rc<RefCell<Symbols>>) -> Self {
        Self { inner, symbols, lifter: Lifter::new(), ready: VecDeque::new() }
    }
}

impl<S: Stream> Stream for Lifted<S> {
    fn next_event(&mut self) -> io::Result<Option<(u32, Event)>> {
        if let Some(ready) = self.ready.pop_front() {
            return Ok(Some(ready));
        }
        let Some((thread, event)) = self.inner.next_event()? else { return Ok(None) };
        // Most events are plain accesses.
        if matches!(event.kind, Kind::Read | Kind::Write)
            && self.lifter.own_at(event.address).is_none()
        {
            return Ok(Some((thread, event)));
        }
        let mut symbols = self.symbols.borrow_mut();
        if event.kind == Kind::Maps {
            symbols.select(event.address);
        }
        let ready = &mut self.ready;
        let mut keep = |thread, event| ready.push_back((thread, event));
        self.lifter.rewrite(&mut symbols, thread, event, &mut keep);
        Ok(self.ready.pop_front())
    }

    fn ending(&self) -> Option<Ending> {
        self.inner.ending()
    }
}
