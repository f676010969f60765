//! What an event can do: every operation of the trace model.
//!
//! [`Op`] is exhaustive on purpose. Adding an operation makes every analysis decide what it
//! means; a wildcard arm would let one slip through.

reweave_base::id! {
    /// A thread.
    pub struct ThreadId;
    /// A shared variable: one memory cell of one lifetime.
    pub struct VarId;
    /// A lock.
    pub struct LockId;
    /// A condition variable.
    pub struct ConditionId;
    /// A barrier.
    pub struct BarrierId;
    /// A semaphore.
    pub struct SemaphoreId;
    /// An allocated object.
    pub struct ObjectId;
    /// A block that is expected to be atomic.
    pub struct BlockId;
    /// A thread-local variable.
    pub struct LocalId;
    /// A place in the code, with the call stack behind it where that is known.
    pub struct SiteId;
    /// An event: its position in the observed order.
    pub struct EventId;
}

/// How strongly an atomic operation or a fence orders others, as in C, C++ and Rust.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MemoryOrder {
    /// Sequentially consistent: what is meant when nothing is said.
    #[default]
    SeqCst,
    /// Orders nothing else.
    Relaxed,
    /// Later operations stay after it.
    Acquire,
    /// Earlier operations stay before it.
    Release,
    /// Both.
    AcqRel,
}

impl MemoryOrder {
    /// Every order, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::SeqCst, Self::Relaxed, Self::Acquire, Self::Release, Self::AcqRel];

    /// How text formats spell it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::SeqCst => "seqcst",
            Self::Relaxed => "relaxed",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::AcqRel => "acqrel",
        }
    }
}

/// What one event did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A plain read.
    Read(VarId),
    /// A plain write.
    Write(VarId),
    /// A plain read whose writer was not observed, as free-running recorders leave behind.
    LooseRead(VarId),
    /// An atomic load, or a compare-and-swap that failed.
    AtomicRead(VarId, MemoryOrder),
    /// An atomic store.
    AtomicWrite(VarId, MemoryOrder),
    /// An atomic read-modify-write: reads, then writes, as one event.
    AtomicUpdate(VarId, MemoryOrder),
    /// A memory fence.
    Fence(MemoryOrder),
    /// Takes a lock for itself alone; nests when the thread has it already.
    Acquire(LockId),
    /// Gives such a lock back.
    Release(LockId),
    /// Takes a lock in shared mode.
    AcquireShared(LockId),
    /// Gives such a lock back.
    ReleaseShared(LockId),
    /// Is about to ask for a lock. No effect.
    Request(LockId),
    /// Starts a thread.
    Fork(ThreadId),
    /// Waits for a thread's end.
    Join(ThreadId),
    /// Begins to wait on a condition, its lock given back just before.
    Wait(ConditionId),
    /// Stops waiting, woken by a notify.
    Wake(ConditionId),
    /// Stops waiting, woken by nobody.
    Timeout(ConditionId),
    /// Wakes one waiting thread, if there is one.
    Notify(ConditionId),
    /// Wakes all waiting threads.
    NotifyAll(ConditionId),
    /// Arrives at a barrier.
    Arrive(BarrierId),
    /// Leaves a barrier, all of whose round have arrived.
    Depart(BarrierId),
    /// Raises a semaphore.
    Post(SemaphoreId),
    /// Lowers a semaphore, which was above zero.
    Take(SemaphoreId),
    /// An object is born.
    Alloc(ObjectId),
    /// An object ends.
    Free(ObjectId),
    /// Enters a block that the programmer expects to be atomic.
    Begin(BlockId),
    /// Leaves it.
    End(BlockId),
    /// A branch was taken (flow layer).
    Branch,
    /// A local was assigned (flow layer).
    Let(LocalId),
}

const _: () = assert!(size_of::<Op>() == 8, "an operation is a kind, an order and one operand");

/// An operation without its operand and memory order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "each is documented as the operation of the same name")]
pub enum OpKind {
    Read,
    Write,
    LooseRead,
    AtomicRead,
    AtomicWrite,
    AtomicUpdate,
    Fence,
    Acquire,
    Release,
    AcquireShared,
    ReleaseShared,
    Request,
    Fork,
    Join,
    Wait,
    Wake,
    Timeout,
    Notify,
    NotifyAll,
    Arrive,
    Depart,
    Post,
    Take,
    Alloc,
    Free,
    Begin,
    End,
    Branch,
    Let,
}

/// What kind of thing a name belongs to: each has a name space of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the id of the same name")]
pub enum NameKind {
    /// Nothing: the operand of an operation that has none.
    None,
    Thread,
    Var,
    Lock,
    Condition,
    Barrier,
    Semaphore,
    Object,
    Block,
    Local,
    Site,
}

impl NameKind {
    /// Every kind of thing that has a name.
    pub const ALL: [Self; 10] = [
        Self::Thread,
        Self::Var,
        Self::Lock,
        Self::Condition,
        Self::Barrier,
        Self::Semaphore,
        Self::Object,
        Self::Block,
        Self::Local,
        Self::Site,
    ];
}

impl OpKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 29] = {
        use OpKind::*;
        [
            Read,
            Write,
            LooseRead,
            AtomicRead,
            AtomicWrite,
            AtomicUpdate,
            Fence,
            Acquire,
            Release,
            AcquireShared,
            ReleaseShared,
            Request,
            Fork,
            Join,
            Wait,
            Wake,
            Timeout,
            Notify,
            NotifyAll,
            Arrive,
            Depart,
            Post,
            Take,
            Alloc,
            Free,
            Begin,
            End,
            Branch,
            Let,
        ]
    };

    /// How text formats spell it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "r",
            Self::Write => "w",
            Self::LooseRead => "r?",
            Self::AtomicRead => "ar",
            Self::AtomicWrite => "aw",
            Self::AtomicUpdate => "arw",
            Self::Fence => "fence",
            Self::Acquire => "acq",
            Self::Release => "rel",
            Self::AcquireShared => "racq",
            Self::ReleaseShared => "rrel",
            Self::Request => "req",
            Self::Fork => "fork",
            Self::Join => "join",
            Self::Wait => "wait",
            Self::Wake => "wake",
            Self::Timeout => "timeout",
            Self::Notify => "notify",
            Self::NotifyAll => "notifyall",
            Self::Arrive => "arrive",
            Self::Depart => "depart",
            Self::Post => "post",
            Self::Take => "take",
            Self::Alloc => "alloc",
            Self::Free => "free",
            Self::Begin => "begin",
            Self::End => "end",
            Self::Branch => "branch",
            Self::Let => "let",
        }
    }

    /// What its operand names.
    #[must_use]
    pub const fn operand(self) -> NameKind {
        use OpKind::*;
        match self {
            Read | Write | LooseRead | AtomicRead | AtomicWrite | AtomicUpdate => NameKind::Var,
            Fence | Branch => NameKind::None,
            Acquire | Release | AcquireShared | ReleaseShared | Request => NameKind::Lock,
            Fork | Join => NameKind::Thread,
            Wait | Wake | Timeout | Notify | NotifyAll => NameKind::Condition,
            Arrive | Depart => NameKind::Barrier,
            Post | Take => NameKind::Semaphore,
            Alloc | Free => NameKind::Object,
            Begin | End => NameKind::Block,
            Let => NameKind::Local,
        }
    }

    /// Whether it carries a memory order.
    #[must_use]
    pub const fn has_order(self) -> bool {
        matches!(self, Self::AtomicRead | Self::AtomicWrite | Self::AtomicUpdate | Self::Fence)
    }
}

/// An operation without its operand, in one byte: the kind and the memory order.
///
/// This is how a trace's columns and the binary format keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct OpCode(u8);

impl OpCode {
    const KIND_BITS: u32 = 5;

    /// The code of `kind` with `order`.
    #[inline]
    #[must_use]
    pub const fn new(kind: OpKind, order: MemoryOrder) -> Self {
        Self(kind as u8 | (order as u8) << Self::KIND_BITS)
    }

    /// The code that `byte` stands for, if it stands for one.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        let (kind, order) = (byte & 31, byte >> Self::KIND_BITS);
        if kind as usize >= OpKind::ALL.len() || order as usize >= MemoryOrder::ALL.len() {
            return None;
        }
        if order != 0 && !OpKind::ALL[kind as usize].has_order() {
            return None;
        }
        Some(Self(byte))
    }

    /// The code as a byte.
    #[inline]
    #[must_use]
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// The kind of operation.
    #[inline]
    #[must_use]
    pub const fn kind(self) -> OpKind {
        OpKind::ALL[(self.0 & 31) as usize]
    }

    /// The memory order; the default where the operation has none.
    #[inline]
    #[must_use]
    pub const fn order(self) -> MemoryOrder {
        MemoryOrder::ALL[(self.0 >> Self::KIND_BITS) as usize]
    }
}

impl Op {
    /// The operation without operand and memory order.
    #[inline]
    #[must_use]
    pub const fn kind(self) -> OpKind {
        self.encode().0.kind()
    }

    /// The code and the operand's index (0 where there is none), from which [`Op::decode`] makes
    /// the operation again.
    #[inline]
    #[must_use]
    pub const fn encode(self) -> (OpCode, u32) {
        const fn plain(kind: OpKind, number: u32) -> (OpCode, u32) {
            (OpCode::new(kind, MemoryOrder::SeqCst), number - 1)
        }
        match self {
            Self::Read(x) => plain(OpKind::Read, x.number()),
            Self::Write(x) => plain(OpKind::Write, x.number()),
            Self::LooseRead(x) => plain(OpKind::LooseRead, x.number()),
            Self::AtomicRead(x, o) => (OpCode::new(OpKind::AtomicRead, o), x.number() - 1),
            Self::AtomicWrite(x, o) => (OpCode::new(OpKind::AtomicWrite, o), x.number() - 1),
            Self::AtomicUpdate(x, o) => (OpCode::new(OpKind::AtomicUpdate, o), x.number() - 1),
            Self::Fence(o) => (OpCode::new(OpKind::Fence, o), 0),
            Self::Acquire(l) => plain(OpKind::Acquire, l.number()),
            Self::Release(l) => plain(OpKind::Release, l.number()),
            Self::AcquireShared(l) => plain(OpKind::AcquireShared, l.number()),
            Self::ReleaseShared(l) => plain(OpKind::ReleaseShared, l.number()),
            Self::Request(l) => plain(OpKind::Request, l.number()),
            Self::Fork(t) => plain(OpKind::Fork, t.number()),
            Self::Join(t) => plain(OpKind::Join, t.number()),
            Self::Wait(c) => plain(OpKind::Wait, c.number()),
            Self::Wake(c) => plain(OpKind::Wake, c.number()),
            Self::Timeout(c) => plain(OpKind::Timeout, c.number()),
            Self::Notify(c) => plain(OpKind::Notify, c.number()),
            Self::NotifyAll(c) => plain(OpKind::NotifyAll, c.number()),
            Self::Arrive(b) => plain(OpKind::Arrive, b.number()),
            Self::Depart(b) => plain(OpKind::Depart, b.number()),
            Self::Post(s) => plain(OpKind::Post, s.number()),
            Self::Take(s) => plain(OpKind::Take, s.number()),
            Self::Alloc(o) => plain(OpKind::Alloc, o.number()),
            Self::Free(o) => plain(OpKind::Free, o.number()),
            Self::Begin(b) => plain(OpKind::Begin, b.number()),
            Self::End(b) => plain(OpKind::End, b.number()),
            Self::Branch => plain(OpKind::Branch, 1),
            Self::Let(l) => plain(OpKind::Let, l.number()),
        }
    }

    /// The operation that [`Op::encode`] gave `code` and `operand` for.
    #[inline]
    #[must_use]
    pub fn decode(code: OpCode, operand: u32) -> Self {
        use reweave_base::Id;
        let index = operand as usize;
        let order = code.order();
        match code.kind() {
            OpKind::Read => Self::Read(VarId::from_index(index)),
            OpKind::Write => Self::Write(VarId::from_index(index)),
            OpKind::LooseRead => Self::LooseRead(VarId::from_index(index)),
            OpKind::AtomicRead => Self::AtomicRead(VarId::from_index(index), order),
            OpKind::AtomicWrite => Self::AtomicWrite(VarId::from_index(index), order),
            OpKind::AtomicUpdate => Self::AtomicUpdate(VarId::from_index(index), order),
            OpKind::Fence => Self::Fence(order),
            OpKind::Acquire => Self::Acquire(LockId::from_index(index)),
            OpKind::Release => Self::Release(LockId::from_index(index)),
            OpKind::AcquireShared => Self::AcquireShared(LockId::from_index(index)),
            OpKind::ReleaseShared => Self::ReleaseShared(LockId::from_index(index)),
            OpKind::Request => Self::Request(LockId::from_index(index)),
            OpKind::Fork => Self::Fork(ThreadId::from_index(index)),
            OpKind::Join => Self::Join(ThreadId::from_index(index)),
            OpKind::Wait => Self::Wait(ConditionId::from_index(index)),
            OpKind::Wake => Self::Wake(ConditionId::from_index(index)),
            OpKind::Timeout => Self::Timeout(ConditionId::from_index(index)),
            OpKind::Notify => Self::Notify(ConditionId::from_index(index)),
            OpKind::NotifyAll => Self::NotifyAll(ConditionId::from_index(index)),
            OpKind::Arrive => Self::Arrive(BarrierId::from_index(index)),
            OpKind::Depart => Self::Depart(BarrierId::from_index(index)),
            OpKind::Post => Self::Post(SemaphoreId::from_index(index)),
            OpKind::Take => Self::Take(SemaphoreId::from_index(index)),
            OpKind::Alloc => Self::Alloc(ObjectId::from_index(index)),
            OpKind::Free => Self::Free(ObjectId::from_index(index)),
            OpKind::Begin => Self::Begin(BlockId::from_index(index)),
            OpKind::End => Self::End(BlockId::from_index(index)),
            OpKind::Branch => Self::Branch,
            OpKind::Let => Self::Let(LocalId::from_index(index)),
        }
    }

    /// The shared variable it reads or writes, if it is an access.
    #[inline]
    #[must_use]
    pub const fn var(self) -> Option<VarId> {
        match self {
            Self::Read(x)
            | Self::Write(x)
            | Self::LooseRead(x)
            | Self::AtomicRead(x, _)
            | Self::AtomicWrite(x, _)
            | Self::AtomicUpdate(x, _) => Some(x),
            _ => None,
        }
    }

    /// Whether it reads a shared variable.
    #[inline]
    #[must_use]
    pub const fn is_read(self) -> bool {
        matches!(
            self,
            Self::Read(_) | Self::LooseRead(_) | Self::AtomicRead(..) | Self::AtomicUpdate(..)
        )
    }

    /// Whether it writes a shared variable.
    #[inline]
    #[must_use]
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Write(_) | Self::AtomicWrite(..) | Self::AtomicUpdate(..))
    }

    /// Whether it is an atomic access.
    #[inline]
    #[must_use]
    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::AtomicRead(..) | Self::AtomicWrite(..) | Self::AtomicUpdate(..))
    }

    /// Whether the two would race if two threads did them at once: the same variable, at least
    /// one write, not both atomic.
    #[inline]
    #[must_use]
    pub fn conflicts_with(self, other: Self) -> bool {
        match (self.var(), other.var()) {
            (Some(x), Some(y)) => {
                x == y
                    && (self.is_write() || other.is_write())
                    && !(self.is_atomic() && other.is_atomic())
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_decodes_to_the_operation_it_came_from() {
        let mut codes = 0;
        for byte in 0..=u8::MAX {
            let Some(code) = OpCode::from_byte(byte) else { continue };
            codes += 1;
            let operand = if code.kind().operand() == NameKind::None { 0 } else { 7 };
            assert_eq!(Op::decode(code, operand).encode(), (code, operand));
        }
        assert_eq!(codes, OpKind::ALL.len() + 4 * (MemoryOrder::ALL.len() - 1));
    }

    #[test]
    fn kinds_are_numbered_as_listed() {
        for (number, kind) in OpKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
        for (number, order) in MemoryOrder::ALL.into_iter().enumerate() {
            assert_eq!(order as usize, number);
        }
    }

    #[test]
    fn atomic_accesses_do_not_conflict_with_each_other() {
        let x = VarId::from_number(1).unwrap();
        let atomic = Op::AtomicWrite(x, MemoryOrder::Relaxed);
        assert!(!atomic.conflicts_with(Op::AtomicRead(x, MemoryOrder::SeqCst)));
        assert!(atomic.conflicts_with(Op::Read(x)));
        assert!(!Op::Read(x).conflicts_with(Op::Read(x)));
        assert!(!Op::Write(x).conflicts_with(Op::Write(VarId::from_number(2).unwrap())));
    }
}
