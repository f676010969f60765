//! What a recorded program says of itself: the words of an event, as they stand in a ring.
//!
//! An event is two words (one for [`Kind::Leave`] and [`Kind::Run`]), then up to four more that
//! its first word announces:
//!
//! ```text
//! word 0   address: 48 | kind: 6 | size: 3 | order: 3 | value, extra, number, stored: 1 each
//! word 1   code address: 48 | flags: 16
//! [number] place in the global order of synchronization; in `free` recordings only
//! [stored] what the last plain write of this thread stored, known only afterwards
//! [extra]  a second operand: a length, a mutex, the value that an atomic update stored
//! [value]  what was read, or stored by an atomic store
//! ```
//!
//! `size` is the binary logarithm of the bytes accessed, 0 to 3; wider accesses are several events
//! or a range. [`Event::encode`] writes an event and [`Event::decode`] reads it.

/// The bits of an address.
pub const ADDRESS_MASK: u64 = (1 << 48) - 1;

/// The most words that one event takes.
pub const EVENT_WORDS_MAX: usize = 6;

/// Where the fields of the first word start.
pub mod shift {
    /// The kind.
    pub const KIND: u32 = 48;
    /// The binary logarithm of the size.
    pub const SIZE: u32 = 54;
    /// The memory order of an atomic access.
    pub const ORDER: u32 = 57;
    /// Whether a value follows.
    pub const VALUE: u32 = 60;
    /// Whether a second operand follows.
    pub const EXTRA: u32 = 61;
    /// Whether a number follows.
    pub const NUMBER: u32 = 62;
    /// Whether what the last plain write stored follows.
    pub const STORED: u32 = 63;
}

/// Flags of the second word.
pub mod flag {
    /// A lock operation, a take or a join that does not wait, or not for ever, such as
    /// `pthread_mutex_trylock`.
    pub const TRY: u16 = 1;
    /// A wait on a condition that ended by its time-out; of what is about to wait, that it has one; of
    /// what is taken from a channel, that nothing was, which orders nothing.
    pub const TIMED_OUT: u16 = 2;
    /// A mutex that its owner may take again.
    pub const RECURSIVE: u16 = 4;
    /// A lock in shared mode; the number of a descriptor that is used, not given.
    pub const SHARED: u16 = 8;
    /// A lock that was free when it was asked for: a [`super::Kind::LockRequest`] comes before it.
    pub const ASKED: u16 = 16;
    /// A thread that is forked as a member of the OpenMP team that its creator began last.
    pub const MEMBER: u16 = 32;
    /// A thread that is an explicit task of OpenMP.
    pub const TASK: u16 = 64;
    /// A dependence of OpenMP that writes; without it and [`SET`], one that reads.
    pub const OUT: u16 = 128;
    /// A dependence of OpenMP that excludes others of its kind but is in no order with them.
    pub const SET: u16 = 256;
    /// A barrier of a team that was left because its region was cancelled.
    pub const CANCELLED: u16 = 512;
    /// Something is handed over or taken through a library that may do so, or may not. Of what is about to
    /// wait on a condition, that its code is not recorded: what it looked at before is not known. Of what
    /// ends a life, the same: what the end waited for is not known.
    pub const ASSUMED: u16 = 1024;
    /// Memory that is the stack of the thread that says so. Of what is freed: a frame of a function on it, which the
    /// recorder adds.
    pub const STACK: u16 = 2048;
    /// Memory that is zero when it is allocated.
    pub const ZEROED: u16 = 4096;
    /// A plain read of a volatile variable. The runtime logs it as an atomic one; it becomes a
    /// [`super::Kind::Read`] when it is decoded.
    pub const VOLATILE: u16 = 8192;
    /// A mutex is released or waited with that the thread does not hold, or destroyed while it is held: with
    /// [`TRY`], another thread holds it. A mutex or a descriptor is used that is no more.
    pub const MISUSE: u16 = 16384;
    /// A wait on a condition right after its mutex was acquired: no other code ran in between.
    pub const UNCHECKED: u16 = 32768;
}

/// What a thread waits for, in [`Kind::Block`].
pub mod wait {
    /// Something outside of the program, such as input.
    pub const CALL: u64 = 0;
    /// Time to pass, or something until a time has passed.
    pub const SLEEP: u64 = 1;
    /// The end of a thread, by its number.
    pub const JOIN: u64 = 2;
    /// A unit of a semaphore, by its address.
    pub const SEMAPHORE: u64 = 3;
}

/// Memory orders as compilers number them.
pub mod order {
    /// Orders nothing.
    pub const RELAXED: u8 = 0;
    /// What follows comes after.
    pub const ACQUIRE: u8 = 2;
    /// What came before comes before.
    pub const RELEASE: u8 = 3;
    /// Both.
    pub const BOTH: u8 = 4;
}

/// What is in the kernel and orders those who use it. A channel has an address that memory cannot have.
pub mod channel {
    /// The bit that no address of a program has.
    const OUTSIDE: u64 = 1 << 47;
    /// Set in the addresses of what OpenMP orders by, which are not numbered but computed.
    const OPENMP: u64 = 1 << 46;
    const KIND: u32 = 28;

    /// What a channel is called, by the number of its kind.
    const NAMES: [&str; 16] = [
        "pipe",
        "socket",
        "eventfd",
        "epoll",
        "message_queue",
        "semaphore_set",
        "connections",
        "file_locks",
        "signal",
        "other_processes",
        "posix_queues",
        "signal_file",
        "library",
        "signal_handler",
        "descriptor",
        "thread",
    ];

    /// A pipe, with a name in the file system or without.
    pub const PIPE: u32 = 0;
    /// A pair of sockets; number 0 stands for all that are not distinguished.
    pub const SOCKET: u32 = 1;
    /// A counter of events.
    pub const COUNTER: u32 = 2;
    /// A set of descriptors that are polled together; number 0 stands for whatever a set that cannot
    /// name all that is in it may hold.
    pub const POLL: u32 = 3;
    /// A queue of messages.
    pub const QUEUE: u32 = 4;
    /// Semaphores of System V.
    pub const SEMAPHORES: u32 = 5;
    /// What `connect` hands to `accept`.
    pub const CONNECTIONS: u32 = 6;
    /// Locks of files.
    pub const LOCKS: u32 = 7;
    /// The signal of this number.
    pub const SIGNAL: u32 = 8;
    /// What processes that the program started may take and release by another way.
    pub const PROCESSES: u32 = 9;
    /// Queues of messages that have names.
    pub const NAMED_QUEUES: u32 = 10;
    /// A descriptor from which signals are read. It only leads to signals: no event speaks of it.
    pub const SIGNAL_FILE: u32 = 11;

    /// What a library that was not rebuilt hands from one call to another.
    pub const LIBRARY: u32 = 12;
    /// The handler of the signal of this number, which its installation precedes.
    pub const HANDLERS: u32 = 13;
    /// The number of a file descriptor, which the kernel gives again only after it was closed. Closing
    /// sends to it, and whoever is given it receives; so does whoever uses it, with the flag `SHARED`.
    pub const DESCRIPTORS: u32 = 14;

    /// The handle of the thread of this number, which is used. With the flag `OUT` the thread is detached, with `ASKED` it
    /// is joined; with `MISUSE` it was joined or detached before, for all that the runtime knows.
    pub const THREADS: u32 = 15;

    /// The channel `number` of `kind`.
    #[must_use]
    pub const fn id(kind: u32, number: u32) -> u32 {
        kind << KIND | (number & ((1 << KIND) - 1))
    }

    /// Which channel of its kind `id` is.
    #[must_use]
    pub const fn number(id: u32) -> u32 {
        id & ((1 << KIND) - 1)
    }

    /// What kind of channel `id` is.
    #[must_use]
    pub const fn kind(id: u32) -> u32 {
        id >> KIND
    }

    /// The address under which events speak of the channel `id`.
    #[must_use]
    pub const fn address(id: u32) -> u64 {
        OUTSIDE | id as u64
    }

    /// The number of the descriptor that `address` stands for, if it stands for one.
    #[must_use]
    pub const fn descriptor(address: u64) -> Option<u32> {
        if is_of(address, DESCRIPTORS) { Some(number(address as u32)) } else { None }
    }

    /// The number of the thread for whose handle `address` stands, if it does.
    #[must_use]
    pub const fn thread(address: u64) -> Option<u32> {
        if is_of(address, THREADS) { Some(number(address as u32)) } else { None }
    }

    /// Whether `address` stands for the installation of a signal handler.
    #[must_use]
    pub const fn is_installation(address: u64) -> bool {
        is_of(address, HANDLERS)
    }

    const fn is_of(address: u64, kind: u32) -> bool {
        let id = address as u32;
        address == self::address(id) && self::kind(id) == kind
    }

    /// The address under which events speak of what OpenMP orders by and `key` distinguishes.
    #[must_use]
    pub const fn openmp(key: u64) -> u64 {
        OUTSIDE | OPENMP | key & (OPENMP - 1)
    }

    /// The word for the channel at `address`, and its number unless there is only one of the kind.
    #[must_use]
    pub fn name(address: u64) -> (&'static str, Option<u32>) {
        if address & OPENMP != 0 {
            return ("ordered", Some(0));
        }
        let id = address as u32;
        let word = NAMES.get(kind(id) as usize).copied().unwrap_or("channel");
        let number = number(id);
        let is_single = matches!(kind(id), CONNECTIONS | LOCKS | PROCESSES | NAMED_QUEUES);
        (word, (!is_single).then_some(number))
    }
}

/// What a [`Kind::Detach`] says of a thread that is not detached.
pub mod detach {
    /// It is to end.
    pub const CANCELLED: u64 = 1;
    /// It is a library's, which may join it out of sight.
    pub const OF_LIBRARY: u64 = 2;
}

/// What else than locks can be destroyed.
pub mod handle {
    /// A condition.
    pub const CONDITION: u64 = 1;
    /// A barrier.
    pub const BARRIER: u64 = 2;
    /// A semaphore.
    pub const SEMAPHORE: u64 = 3;
    /// A library that was loaded while the program ran: any address in it is its own.
    pub const LIBRARY: u64 = 4;
    /// A timer, by its number.
    pub const TIMER: u64 = 5;
    /// A stream that leads to no descriptor.
    pub const STREAM: u64 = 6;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What an event is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            /// Every kind, by its number.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

kinds! {
    /// Nothing: the rest of the ring is not written yet.
    Nothing,
    /// A plain read of `size` bytes at `address`; `value` where known.
    Read,
    /// A plain write of `size` bytes at `address`; its value is the `stored` of a later event.
    Write,
    /// A plain read of `extra` bytes from `address`.
    ReadRange,
    /// A plain write of `extra` bytes from `address`; all of them are `value` if there is one.
    WriteRange,
    /// An atomic load; `value` is what it saw.
    AtomicLoad,
    /// An atomic store; `value` is what it stored.
    AtomicStore,
    /// An atomic read-modify-write; `value` is what it saw and `extra` what it stored.
    AtomicUpdate,
    /// A compare-and-swap that failed; `value` is what it saw.
    AtomicFailed,
    /// A fence of `order` between threads.
    Fence,
    /// The thread is about to wait for the lock at `address`; flag `SHARED` for shared mode.
    LockRequest,
    /// The lock at `address` was taken; flags `SHARED`, `TRY`, `ASKED`.
    Lock,
    /// The lock at `address` is about to be released, in the mode in which it was taken; flag `MISUSE`.
    Unlock,
    /// The lock at `address` was found taken by a thread that goes on without it; flag `SHARED`.
    LockBusy,
    /// A lock starts its life at `address`; flag `RECURSIVE`.
    LockInit,
    /// The lock at `address` ends its life, or what `extra` says, one of [`handle`]; flags `ASSUMED`, `MISUSE`. With
    /// `TRY` and `MISUSE` it has none, and is asked for. From [`handle::LIBRARY`] on, flags say what happens to the handle: with none of them
    /// it was made, with `SHARED` it is used, with `OUT` it is about to end. A library was made of `value` bytes, and
    /// `OUT` says only that it may end: if it has, both flags say so afterwards. No plan counts that it was made or has ended.
    LockDestroy,
    /// Thread number `address` is about to be created.
    Fork,
    /// The creation of thread number `address` failed: it never was.
    ForkFailed,
    /// Thread number `address` was joined; flag `TRY`.
    Join,
    /// The first event of a thread; `address` is its number. There is an `extra` in a process that was
    /// forked by a recorded one.
    Begin,
    /// The last event of a thread.
    End,
    /// About to wait on the condition at `address`, releasing the lock `extra`; flags `TIMED_OUT`,
    /// `ASSUMED`, `MISUSE`, `UNCHECKED`.
    Wait,
    /// The wait on `address` is over and the lock `extra` taken again; flag `TIMED_OUT`.
    Wake,
    /// About to wake one waiter of the condition at `address`.
    Signal,
    /// About to wake all waiters of the condition at `address`.
    Broadcast,
    /// The barrier at `address` is set up for `extra` parties.
    BarrierInit,
    /// About to wait at the barrier.
    BarrierArrive,
    /// The barrier let the thread go; flag `TRY` if code that is not recorded waited there.
    BarrierDepart,
    /// The semaphore at `address` is set up with the count `extra`.
    SemaphoreInit,
    /// About to post.
    SemaphorePost,
    /// A unit was taken; flag `TRY`.
    SemaphoreTake,
    /// `extra` bytes at `address` were allocated; flag `ASSUMED` if code did that that is not recorded. The `value` is
    /// where recorded code seems to have called that code.
    Alloc,
    /// The memory at `address` is about to be freed; `extra` bytes where that is known, else 0; flag
    /// `ASSUMED`. The `value` is the size of a block of which nobody may have seen that it was allocated.
    Free,
    /// A function was entered; `address` is where it was called from, `code` where its frame ends, towards its
    /// caller's, or 0 where that is not known.
    Enter,
    /// The function entered last was left; `address` is where its frame ends, if it has one. One word.
    Leave,
    /// About to sleep in the kernel until the word at `address` changes.
    FutexWait,
    /// That sleep is over.
    FutexAwake,
    /// About to wake up to `extra` sleepers on the word at `address`.
    FutexWake,
    /// From here on the events of the ring are those of thread number `address`.
    Switch,
    /// The thread ran unseen for a while and went on: its calls blocked without our knowledge.
    Escaped,
    /// The map of loaded code changed; `address` is the number of the new one.
    Maps,
    /// A block that the program declares atomic begins; `extra` and `value` are the first sixteen
    /// bytes of its name, with zeros after a shorter one.
    BlockBegin,
    /// The atomic block that began last ends.
    BlockEnd,
    /// Code of the standard library that does once: `address` was found done, or is done now.
    OnceDone,
    /// The thread returned from parking; `address` is where its own data start.
    Park,
    /// About to hand something to the channel `address`, as `write` to a pipe does; see [`channel`].
    /// Where a library carries it, `extra` is the address of code of that library.
    Send,
    /// Something was taken from the channel `address`; with the flag `TRY`, it was only looked
    /// whether there is something. `extra` is as in [`Kind::Send`].
    Receive,
    /// The thread begins a parallel region of OpenMP, with the team number `address`.
    TeamBegin,
    /// The region that it began last is over, and so are its team and all tasks of it.
    TeamEnd,
    /// About to wait at a barrier of the team that the thread belongs to.
    TeamArrive,
    /// That barrier let the thread go; flag `CANCELLED`.
    TeamDepart,
    /// The task with the number `extra`, or the thread itself where that is not said, comes after
    /// earlier tasks of the same creator that depend on `address`; flags `OUT` and `SET`.
    Depend,
    /// All tasks that the thread created are over; with the flag `OUT`, those that it was said to
    /// come after.
    TaskWait,
    /// A group of tasks begins: those that the thread creates, and theirs.
    GroupBegin,
    /// All tasks of the group that began last are over.
    GroupEnd,
    /// The program says that races on the `extra` bytes at `address` do no harm.
    Benign,
    /// Whoever accesses the `extra` bytes at `address` from now on comes after this; with a length of
    /// 0, no longer.
    Publish,
    /// Nothing but the `stored` of the thread's last plain write.
    Stored,
    /// `address` accesses that were as expected; see [`crate::predict`]. One word.
    Run,
    /// About to wait in a call that no other event announces; `address` is one of [`wait`], `extra` what
    /// is waited for. No plan counts it.
    Block,
    /// That wait is over; in `free` recordings only.
    Unblock,
    /// A signal interrupted the thread: what its last plain write stored is not known. If there is an `extra`, its
    /// handler is about to call what must not be called there. No plan counts it.
    Interrupted,
    /// A call of a library that was not rebuilt had the argument `address`, perhaps an object: the
    /// library may have read what is there by now. No plan counts it. If there is an `extra`: so many bytes at
    /// `address` were allocated out of sight since the last event that is no access, within a call that is
    /// intercepted or by a library of OpenMP; with an `extra` of 0, other memory too.
    Argument,
    /// Nobody is to join thread number `address`, unless `extra` is one of [`detach`]. No plan counts it. If there is a
    /// `value`, the thread has a name from now on: `extra` and `value` are its sixteen bytes, with zeros after a
    /// shorter one.
    Detach,
}

impl Kind {
    /// The kind with number `byte`.
    #[must_use]
    pub fn from_number(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// Whether nothing but addresses is said of the event.
    #[inline]
    #[must_use]
    pub const fn is_brief(self) -> bool {
        matches!(self, Self::Enter | Self::Leave | Self::Run)
    }

    /// How many words it is if it is brief.
    const fn brief_words(self) -> usize {
        if matches!(self, Self::Enter) { 2 } else { 1 }
    }

    /// Whether the event is about teams and tasks of OpenMP.
    #[must_use]
    pub const fn is_openmp(self) -> bool {
        matches!(
            self,
            Self::TeamBegin
                | Self::TeamEnd
                | Self::TeamArrive
                | Self::TeamDepart
                | Self::Depend
                | Self::TaskWait
                | Self::GroupBegin
                | Self::GroupEnd
        )
    }

    /// Whether the event is a plain access to memory.
    #[inline]
    #[must_use]
    pub const fn is_plain(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::ReadRange | Self::WriteRange)
    }
}

/// What happens to a handle that is neither a lock nor a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleStep {
    /// It was made.
    Made,
    /// It is used.
    Used,
    /// It is about to end; a library may.
    Ends,
    /// It has ended: a library of which that was not known before.
    Gone,
}

/// One event as its thread logged it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it is.
    pub kind: Kind,
    /// The binary logarithm of the bytes accessed.
    pub size: u8,
    /// The memory order, as compilers number it: relaxed, consume, acquire, release, both, seq_cst.
    pub order: u8,
    /// See [`flag`].
    pub flags: u16,
    /// What it is about.
    pub address: u64,
    /// The code address to which the hook returns; 0 for single words. Of [`Kind::Enter`], where the frame ends.
    pub code: u64,
    /// The place in the global order of synchronization.
    pub number: Option<u64>,
    /// What the last plain write of the thread stored.
    pub stored: Option<u64>,
    /// The second operand.
    pub extra: Option<u64>,
    /// What was seen, or stored.
    pub value: Option<u64>,
}

impl Event {
    /// An event of `kind` about `address`, at the code address `code`, with nothing else said.
    #[must_use]
    pub const fn new(kind: Kind, address: u64, code: u64) -> Self {
        Self {
            kind,
            size: 0,
            order: 0,
            flags: 0,
            address,
            code,
            number: None,
            stored: None,
            extra: None,
            value: None,
        }
    }

    /// Whether memory was allocated out of sight.
    #[must_use]
    pub const fn is_hidden_alloc(&self) -> bool {
        matches!(self.kind, Kind::Argument) && self.extra.is_some()
    }

    /// Whether a lock is asked for that was destroyed.
    #[must_use]
    pub const fn is_use_of_destroyed(&self) -> bool {
        matches!(self.kind, Kind::LockDestroy) && self.flags & flag::TRY != 0
    }

    /// Whether a lock ends its life.
    #[must_use]
    pub const fn ends_lock(&self) -> bool {
        matches!(self.kind, Kind::LockDestroy)
            && self.extra.is_none()
            && !self.is_use_of_destroyed()
    }

    /// Whether a frame of a function ends, with variables that other threads accessed.
    #[must_use]
    pub const fn ends_frame(&self) -> bool {
        matches!(self.kind, Kind::Free) && self.flags & flag::STACK != 0
    }

    /// Whether a descriptor is used: this orders nothing.
    #[must_use]
    pub const fn is_descriptor_use(&self) -> bool {
        matches!(self.kind, Kind::Receive)
            && self.flags & flag::SHARED != 0
            && channel::descriptor(self.address).is_some()
    }

    /// What is said of a handle that is neither a lock nor a descriptor.
    #[must_use]
    pub const fn handle_step(&self) -> Option<HandleStep> {
        match (self.kind, self.extra) {
            (Kind::LockDestroy, Some(handle::LIBRARY..)) => {}
            _ => return None,
        }
        Some(match (self.flags & flag::SHARED != 0, self.flags & flag::OUT != 0) {
            (false, false) => HandleStep::Made,
            (true, false) => HandleStep::Used,
            (false, true) => HandleStep::Ends,
            (true, true) => HandleStep::Gone,
        })
    }

    /// Whether the handle of a thread is used: this orders nothing.
    #[must_use]
    pub const fn is_thread_use(&self) -> bool {
        matches!(self.kind, Kind::Receive) && channel::thread(self.address).is_some()
    }

    /// The sixteen bytes of the name that a thread is given, the thread of number `address`.
    #[must_use]
    pub fn given_name(&self) -> Option<[u8; 16]> {
        let (Kind::Detach, Some(second)) = (self.kind, self.value) else { return None };
        let mut name = [0; 16];
        name[..8].copy_from_slice(&self.extra.unwrap_or(0).to_le_bytes());
        name[8..].copy_from_slice(&second.to_le_bytes());
        Some(name)
    }

    /// Writes the event into `words` and says how many it took.
    #[inline]
    pub fn encode(&self, words: &mut [u64; EVENT_WORDS_MAX]) -> usize {
        let bit = |known: Option<u64>, shift: u32| u64::from(known.is_some()) << shift;
        words[0] = (self.address & ADDRESS_MASK)
            | (self.kind as u64) << shift::KIND
            | u64::from(self.size) << shift::SIZE
            | u64::from(self.order) << shift::ORDER
            | bit(self.value, shift::VALUE)
            | bit(self.extra, shift::EXTRA)
            | bit(self.number, shift::NUMBER)
            | bit(self.stored, shift::STORED);
        if self.kind.is_brief() {
            words[1] = self.code & ADDRESS_MASK;
            return self.kind.brief_words();
        }
        words[1] = (self.code & ADDRESS_MASK) | u64::from(self.flags) << 48;
        let mut count = 2;
        for word in [self.number, self.stored, self.extra, self.value].into_iter().flatten() {
            words[count] = word;
            count += 1;
        }
        count
    }

    /// Reads the event whose words `word` gives by their place, and says how many it took; nothing
    /// if there is none or `available` words do not hold it whole.
    #[inline]
    pub fn decode(available: usize, word: impl Fn(usize) -> u64) -> Option<(Self, usize)> {
        if available == 0 {
            return None;
        }
        let first = word(0);
        let kind = Kind::from_number((first >> shift::KIND) as u8 & 0x3f)?;
        if kind == Kind::Nothing {
            return None;
        }
        let mut event = Self::new(kind, first & ADDRESS_MASK, 0);
        if kind.is_brief() {
            let count = kind.brief_words();
            if count > available {
                return None;
            }
            event.code = if count > 1 { word(1) & ADDRESS_MASK } else { 0 };
            return Some((event, count));
        }
        event.size = (first >> shift::SIZE) as u8 & 7;
        event.order = (first >> shift::ORDER) as u8 & 7;
        let count = 2 + (first >> shift::VALUE).count_ones() as usize;
        if count > available {
            return None;
        }
        event.code = word(1) & ADDRESS_MASK;
        event.flags = (word(1) >> 48) as u16;
        let mut place = 2;
        let mut next = |shift: u32| {
            (first >> shift & 1 == 1).then(|| {
                place += 1;
                word(place - 1)
            })
        };
        event.number = next(shift::NUMBER);
        event.stored = next(shift::STORED);
        event.extra = next(shift::EXTRA);
        event.value = next(shift::VALUE);
        Some((event, count))
    }
}

const _: () = assert!(Kind::ALL.len() <= 64, "a kind has six bits");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_decodes() {
        for &kind in &Kind::ALL[1..] {
            for mask in 0..16 {
                let mut event = Event::new(kind, 0x7fff_1234_5678, 0);
                if kind == Kind::Enter {
                    event.code = 0x7fff_1234_5680;
                }
                if !kind.is_brief() {
                    let known = |bit: u64| (mask >> bit & 1 == 1).then_some(0xdead_0000 + bit);
                    event.code = 0x5555_0000_1111;
                    (event.size, event.order, event.flags) = (3, 5, 0x8001);
                    (event.number, event.stored) = (known(0), known(1));
                    (event.extra, event.value) = (known(2), known(3));
                }
                let mut words = [0; EVENT_WORDS_MAX];
                let count = event.encode(&mut words);
                assert_eq!(Event::decode(count, |place| words[place]), Some((event, count)));
                assert_eq!(Event::decode(count - 1, |place| words[place]), None);
            }
        }
    }

    #[test]
    fn a_name_is_no_reason_to_detach_a_thread() {
        let named = |first, second| {
            let words = [first, second].map(|text: &[u8; 8]| Some(u64::from_le_bytes(*text)));
            Event { extra: words[0], value: words[1], ..Event::new(Kind::Detach, 3, 0) }
        };
        let reader = named(b"reader 1", b"2\0\0\0\0\0\0\0").given_name();
        assert_eq!(reader.as_ref(), Some(b"reader 12\0\0\0\0\0\0\0"));
        let cancelled = Event { extra: Some(detach::CANCELLED), ..Event::new(Kind::Detach, 3, 0) };
        assert_eq!(cancelled.given_name(), None);
    }

    #[test]
    fn what_is_not_written_is_no_event_and_all_numbers_are_taken() {
        assert_eq!(Event::decode(6, |_| 0), None);
        assert_eq!(Kind::ALL.len(), 1 << (shift::SIZE - shift::KIND));
    }
}
