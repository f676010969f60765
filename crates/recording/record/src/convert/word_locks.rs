//! Locks that a program makes itself of an atomic word: spin locks, and those of other libraries.
//!
//! The question: which words are used as locks and as nothing else, so that their sections can
//! change places?
//!
//! The idea: a word is a *word lock* if everything that happened to it is one of these.
//!
//! - An update with acquire order that finds the word free and leaves another value: its thread
//!   acquires the lock.
//! - A store or update with release order by that thread which leaves the free value again: it
//!   releases the lock.
//! - Attempts: a thread that finds the lock taken, or looks whether it is, does nothing else until
//!   it has the lock, apart from sleeping in the kernel. It may count in a register how often it found
//!   the lock taken, so it stays an attempt (`attempts`) unless its function is known to forget.
//! - What the holder does to the word in between.
//!
//! Promised: if sections change places, every update that acquires still sees the free value, so the
//! program goes on as it did. One access of another kind and the word is no lock: its accesses stay
//! what they are, which orders them as observed. A word that was always free when it was asked for
//! may belong to code that does not wait but goes another way. Such an acquire is a try, and in no
//! deadlock, unless the same code was seen to wait for the same change of a word or the function is known to.
//!
//! The slow paths of `parking_lot` sleep in queues of their own. What they do there between an
//! attempt and its end is left out with it.
//!
//! Each acquire also stays a read of the word, which comes after how the lock was set up, or races
//! with it.
//!
//! An access costs a look into a small filter, one to an atomic word a look into a table besides.

use std::collections::BTreeMap;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, Kind, order};

use super::Symbols;
use crate::shadow::Access;

/// What an event is to the word locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing: it stays what it is.
    Other,
    /// Acquires the lock at its address.
    Acquire {
        /// Whether it would have waited for the lock.
        waits: bool,
    },
    /// Releases the lock at its address.
    Release,
    /// Finds the lock at its address taken, in code that may remember that.
    Attempt,
    /// A part of acquiring or releasing that has no effect of its own.
    Inner,
}

/// The words that are locks, as the first pass found them.
#[derive(Debug, Default)]
pub struct Recognized {
    words: FxHashSet<u64>,
    /// Acquires that wait if the lock is taken.
    waits: FxHashSet<Taking>,
    /// Words that a thread found taken, in code that may remember that.
    tried: FxHashSet<u64>,
}

impl Recognized {
    /// The locks that a thread found taken, in code that may remember that.
    pub fn tried(&self) -> impl Iterator<Item = u64> {
        self.words.intersection(&self.tried).copied()
    }
}

/// How a lock is acquired: the code address, and what the word is before and after. The same code may wait for a
/// token of one semaphore, and take one of two of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Taking {
    code: u64,
    free: u64,
    taken: u64,
}

impl Taking {
    /// Whether others can have what is left: a count that stays above zero.
    const fn leaves_tokens(self) -> bool {
        self.taken > 0 && self.taken == self.free.wrapping_sub(1)
    }
}

/// A word that may be a lock.
#[derive(Debug, Default)]
struct Word {
    size: u8,
    /// The bits that say whether the lock is taken.
    mask: u64,
    /// What the word is while nobody has the lock.
    free: Option<u64>,
    holder: Option<u32>,
    /// What the holder stored last.
    stored: u64,
    /// Who has released it, while it is one thread.
    user: Option<u32>,
    is_shared: bool,
    is_rejected: bool,
}

impl Word {
    fn is_free(&self, value: u64) -> bool {
        self.free.is_none_or(|free| (free ^ value) & self.mask == 0)
    }

    fn note_user(&mut self, thread: u32) {
        self.is_shared |= self.user.is_some_and(|user| user != thread);
        self.user = Some(thread);
    }
}

/// What a thread is doing to a word lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It looks whether it can be acquired.
    Looking(u64),
    /// It found it taken.
    Waiting(u64),
    /// It saw as the holder that another thread waits: it must wake that one next.
    Waking(u64),
    /// The same in a function that is known to do that and nothing else.
    Leaving(u64),
}

impl Doing {
    const fn word(self) -> u64 {
        match self {
            Self::Looking(word)
            | Self::Waiting(word)
            | Self::Waking(word)
            | Self::Leaving(word) => word,
        }
    }
}

/// What is known of the function that an access to a word is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Unknown,
    /// Waits until it has the lock.
    Waits,
    /// Of a mutex of `parking_lot` that waits until it has the lock.
    ParkingMutex,
    /// A queue of waiting threads.
    Queue,
    /// Waits on a condition, which releases and acquires a lock out of sight.
    Condition,
}

/// The bit of a mutex of `parking_lot` that says that it is taken; another says that threads wait.
const PARKING_LOCKED: u64 = 1;

/// How many calls behind an access are looked at for a function that is known.
const CALLS_MAX: usize = 8;

/// Follows the words of a recording. The first pass finds which are locks, the last says what each event is.
#[derive(Debug)]
pub struct WordLocks {
    words: BTreeMap<u64, Word>,
    /// A bit for each shadow word, by its hash, that may hold one of `words`.
    filter: Box<[u64; FILTER_WORDS]>,
    doing: FxHashMap<u32, Doing>,
    /// The return addresses of the functions that each thread is in, the innermost last.
    stacks: FxHashMap<u32, Vec<u64>>,
    functions: FxHashMap<u64, Function>,
    waits: FxHashSet<Taking>,
    tried: FxHashSet<u64>,
    recognized: Option<Recognized>,
}

const FILTER_WORDS: usize = 1 << 10;

fn filter_place(address: u64) -> (usize, u64) {
    let hash = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    (hash as usize / 64, 1 << (hash % 64))
}

impl WordLocks {
    /// Finds the locks: for the first pass.
    pub fn search() -> Self {
        Self {
            words: BTreeMap::new(),
            filter: Box::new([0; FILTER_WORDS]),
            doing: FxHashMap::default(),
            stacks: FxHashMap::default(),
            functions: FxHashMap::default(),
            waits: FxHashSet::default(),
            tried: FxHashSet::default(),
            recognized: None,
        }
    }

    /// Says what events are, knowing the locks.
    pub fn with(recognized: Recognized) -> Self {
        Self { recognized: Some(recognized), ..Self::search() }
    }

    /// What the search found.
    pub fn finish(self) -> Recognized {
        let words = self.words.into_iter();
        let words = words.filter(|(_, word)| word.is_shared && !word.is_rejected);
        let words = words.map(|(address, _)| address).collect();
        Recognized { words, waits: self.waits, tried: self.tried }
    }

    /// What `event`, the next of the recording, is.
    pub fn step(&mut self, symbols: &mut dyn Symbols, thread: u32, event: &Event) -> Meaning {
        match event.kind {
            Kind::Read | Kind::Write if !self.may_hold(event.address) && self.doing.is_empty() => {
                Meaning::Other
            }
            Kind::Enter => {
                self.stacks.entry(thread).or_default().push(event.address);
                Meaning::Other
            }
            Kind::Leave => {
                self.stacks.entry(thread).or_default().pop();
                Meaning::Other
            }
            Kind::Maps => {
                self.functions.clear();
                Meaning::Other
            }
            // Sleeping in the kernel is a part of waiting, and so is what says nothing of the program.
            Kind::Nothing
            | Kind::Stored
            | Kind::Run
            | Kind::Switch
            | Kind::Escaped
            | Kind::Argument
            | Kind::Detach
            | Kind::FutexWait
            | Kind::FutexAwake => Meaning::Other,
            Kind::FutexWake => {
                if let Some(Doing::Waking(_)) = self.doing.get(&thread) {
                    self.doing.remove(&thread);
                }
                Meaning::Other
            }
            Kind::AtomicLoad | Kind::AtomicFailed | Kind::AtomicStore | Kind::AtomicUpdate => {
                self.atomic(symbols, thread, event)
            }
            _ => self.other(symbols, thread, event),
        }
    }

    /// An event that is no atomic access.
    fn other(&mut self, symbols: &mut dyn Symbols, thread: u32, event: &Event) -> Meaning {
        if let (Kind::Alloc, Some(length)) = (event.kind, event.extra) {
            self.begin_lives(event.address, event.address.saturating_add(length));
        }
        if self.is_inner(symbols, thread, event) {
            // Lifetimes of memory are counted wherever they begin and end.
            let is_counted = matches!(event.kind, Kind::Alloc | Kind::Free);
            return if is_counted { Meaning::Other } else { Meaning::Inner };
        }
        self.interrupt(thread);
        if event.kind == Kind::End {
            self.stacks.remove(&thread);
        }
        if let Some(access) = Access::new(event) {
            self.plain(access, None);
        }
        Meaning::Other
    }

    /// Whether `thread` is on its way to or from a lock, in a queue of waiting threads.
    fn is_inner(&mut self, symbols: &mut dyn Symbols, thread: u32, event: &Event) -> bool {
        self.doing.contains_key(&thread)
            && self.function(symbols, thread, event.code) == Function::Queue
    }

    /// `thread` does something else than to acquire or release a lock.
    fn interrupt(&mut self, thread: u32) {
        let doing = self.doing.remove(&thread);
        if let Some(doing) = doing.filter(|doing| !matches!(doing, Doing::Leaving(_)))
            && let Some(word) = self.words.get_mut(&doing.word())
        {
            word.is_rejected = true;
        }
    }

    fn may_hold(&self, address: u64) -> bool {
        let (place, bit) = filter_place(address);
        self.filter[place] & bit != 0
    }

    /// The memory from `start` to `end` is new.
    fn begin_lives(&mut self, start: u64, end: u64) {
        for (_, word) in self.words.range_mut(start..end) {
            let user = (word.user, word.is_shared, word.is_rejected);
            *word = Word { size: word.size, ..Word::default() };
            (word.user, word.is_shared, word.is_rejected) = user;
        }
    }

    /// An access to bytes of which some may be a lock, and not `except` as a whole.
    fn plain(&mut self, access: Access, except: Option<u64>) {
        if access.end - access.start <= 8 && !self.may_hold(access.start) {
            return;
        }
        let start = access.start.saturating_sub(7);
        for (&address, word) in self.words.range_mut(start..access.end) {
            let end = address.saturating_add(1 << word.size);
            if end <= access.start || Some(address) == except {
                continue;
            }
            // Before its first use it is set up.
            let is_in_use = word.free.is_some();
            word.is_rejected |= is_in_use;
        }
    }

    fn atomic(&mut self, symbols: &mut dyn Symbols, thread: u32, event: &Event) -> Meaning {
        let address = event.address;
        if let Some(recognized) = &self.recognized
            && !recognized.words.contains(&address)
        {
            return self.other(symbols, thread, event);
        }
        let is_own = self.doing.get(&thread).is_some_and(|doing| doing.word() == address);
        if !is_own {
            if self.is_inner(symbols, thread, event) {
                return Meaning::Inner;
            }
            self.interrupt(thread);
        }
        if let Some(access) = Access::new(event) {
            self.plain(access, Some(address));
        }
        let word = self.words.entry(address).or_default();
        if word.mask == 0 {
            (word.size, word.mask) = (event.size, u64::MAX);
            let (place, bit) = filter_place(address);
            self.filter[place] |= bit;
        }
        if word.size != event.size {
            word.is_rejected = true;
        }
        if word.is_rejected {
            self.doing.remove(&thread);
            return Meaning::Other;
        }
        self.access(symbols, thread, event)
    }

    /// An atomic access to a word that may be a lock.
    fn access(&mut self, symbols: &mut dyn Symbols, thread: u32, event: &Event) -> Meaning {
        let function = self.function(symbols, thread, event.code);
        let Some(word) = self.words.get_mut(&event.address) else { return Meaning::Other };
        if function == Function::ParkingMutex {
            word.mask = PARKING_LOCKED;
        }
        let stores = match event.kind {
            Kind::AtomicUpdate => event.extra,
            Kind::AtomicStore => event.value,
            _ => None,
        };
        let sees = if event.kind == Kind::AtomicStore { None } else { event.value };
        let is_known = sees.is_some() || event.kind == Kind::AtomicStore;
        if !is_known || function == Function::Condition {
            word.is_rejected = true;
            return Meaning::Other;
        }
        match word.holder {
            Some(holder) if holder == thread => self.by_holder(thread, event, sees, stores),
            Some(_) => self.by_other(function, thread, event, stores),
            None => self.while_free((symbols, function), thread, event, sees, stores),
        }
    }

    /// The holder of a lock accesses its word.
    fn by_holder(
        &mut self,
        thread: u32,
        event: &Event,
        sees: Option<u64>,
        stores: Option<u64>,
    ) -> Meaning {
        let Some(word) = self.words.get_mut(&event.address) else { return Meaning::Other };
        if sees.is_some_and(|value| value != word.stored) {
            let is_known = word.mask == PARKING_LOCKED;
            let doing = if is_known { Doing::Leaving } else { Doing::Waking };
            self.doing.insert(thread, doing(event.address));
        }
        let Some(value) = stores else { return Meaning::Inner };
        word.stored = value;
        if !word.is_free(value) {
            return Meaning::Inner;
        }
        if !matches!(event.order, order::RELEASE..) {
            word.is_rejected = true;
        }
        word.holder = None;
        word.note_user(thread);
        Meaning::Release
    }

    /// Another thread than the holder of a lock accesses its word.
    fn by_other(
        &mut self,
        function: Function,
        thread: u32,
        event: &Event,
        stores: Option<u64>,
    ) -> Meaning {
        let Some(word) = self.words.get_mut(&event.address) else { return Meaning::Other };
        if event.kind == Kind::AtomicStore || stores.is_some_and(|value| word.is_free(value)) {
            word.is_rejected = true;
            return Meaning::Other;
        }
        self.doing.insert(thread, Doing::Waiting(event.address));
        if function == Function::Unknown {
            self.tried.insert(event.address);
            return Meaning::Attempt;
        }
        Meaning::Inner
    }

    /// A thread accesses the word of a lock that nobody holds.
    fn while_free(
        &mut self,
        (symbols, function): (&mut dyn Symbols, Function),
        thread: u32,
        event: &Event,
        sees: Option<u64>,
        stores: Option<u64>,
    ) -> Meaning {
        let Some(word) = self.words.get_mut(&event.address) else { return Meaning::Other };
        let (Some(seen), stored) = (sees, stores) else {
            // A store sets the word up, if nobody used it yet.
            word.is_rejected |= word.user.is_some() && word.free.is_some();
            word.free = stores;
            return Meaning::Other;
        };
        let is_free = word.is_free(seen);
        word.free.get_or_insert(seen);
        let Some(stored) = stored else {
            word.is_rejected |= !is_free;
            let looking = Doing::Looking(event.address);
            if event.kind == Kind::AtomicFailed {
                // It was about to change what it had seen before, so it did not wait for the word to be free.
                self.doing.insert(thread, looking);
            } else {
                self.doing.entry(thread).or_insert(looking);
            }
            return Meaning::Inner;
        };
        let acquires = is_free && !word.is_free(stored);
        if !acquires || matches!(event.order, order::RELAXED | order::RELEASE) {
            word.is_rejected = true;
            return Meaning::Other;
        }
        (word.holder, word.stored) = (Some(thread), stored);
        let waited = matches!(self.doing.remove(&thread), Some(Doing::Waiting(_)));
        let is_known_to_wait = matches!(function, Function::Waits | Function::ParkingMutex);
        let (free, taken) = (seen, stored);
        let taking = Taking { code: self.own_code(symbols, thread, event.code), free, taken };
        let waited = waited && !taking.leaves_tokens();
        if waited {
            self.waits.insert(taking);
        }
        let known = self.recognized.as_ref().map(|recognized| &recognized.waits);
        let was_seen_to = known.is_some_and(|waits| waits.contains(&taking));
        Meaning::Acquire { waits: waited || is_known_to_wait || was_seen_to }
    }

    /// Where the access at `code` was asked for: `code`, or the call of the function that wraps the
    /// instruction, which in debug builds of Rust is one for all.
    fn own_code(&self, symbols: &mut dyn Symbols, thread: u32, code: u64) -> u64 {
        let stack = self.stacks.get(&thread).map_or(&[][..], Vec::as_slice);
        let mut calls = std::iter::once(code).chain(stack.iter().rev().take(CALLS_MAX).copied());
        let mut is_wrapper = |&address: &u64| {
            let functions = symbols.functions(address);
            !functions.is_empty() && functions.iter().all(|name| name.starts_with("core::"))
        };
        calls.find(|address| !is_wrapper(address)).unwrap_or(code)
    }

    /// What the function at `code`, or one that it was called from, is known for.
    fn function(&mut self, symbols: &mut dyn Symbols, thread: u32, code: u64) -> Function {
        let stack = self.stacks.get(&thread).map_or(&[][..], Vec::as_slice);
        let calls = stack.iter().rev().take(CALLS_MAX);
        let mut found = Function::Unknown;
        for &address in std::iter::once(&code).chain(calls) {
            let function = *self.functions.entry(address).or_insert_with(|| {
                symbols
                    .functions(address)
                    .iter()
                    .fold(Function::Unknown, |found, name| outer_of(found, function_named(name)))
            });
            found = outer_of(found, function);
        }
        found
    }
}

/// Which of two functions, `outer` around `inner`, says what an access in them is for.
const fn outer_of(inner: Function, outer: Function) -> Function {
    match (inner, outer) {
        // A condition uses the same queues as the locks, and the locks themselves.
        (_, Function::Condition) | (Function::Unknown, _) => outer,
        (Function::Waits, Function::ParkingMutex) => outer,
        _ => inner,
    }
}

/// What the function of this name is known for.
fn function_named(name: &str) -> Function {
    let last = name.rsplit("::").next().unwrap_or(name);
    let is_in = |part: &str| name.contains(part);
    if is_in("parking_lot::condvar::") {
        Function::Condition
    } else if is_in("parking_lot_core::") {
        Function::Queue
    } else if is_in("parking_lot::raw_mutex::") {
        if is_in("try_lock") { Function::Unknown } else { Function::ParkingMutex }
    } else if (is_in("lock_api::mutex::") || is_in("spin::mutex::")) && last.starts_with("lock")
        || (is_in("lock_api::rwlock::") || is_in("spin::rwlock::")) && last.starts_with("write")
    {
        Function::Waits
    } else {
        Function::Unknown
    }
}
