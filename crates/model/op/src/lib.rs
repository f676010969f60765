//! What an event can do: every operation of the trace model, the ids of what it is done to, and what
//! can be claimed of events: that they can happen in another order.
//!
//! [`Op`] is exhaustive on purpose. Adding an operation makes every analysis decide what it
//! means; a wildcard arm would let one slip through.
//!
//! ```
//! use reweave_op::{AccessOp, Op, OpKind, VarId};
//!
//! let x = VarId::from_number(1).expect("numbers start at 1");
//! let [read, write] = [AccessOp::Read, AccessOp::Write].map(|access| Op::Access(access, x));
//! assert!(read.conflicts_with(write) && !read.conflicts_with(read));
//!
//! // A trace keeps the code and the operand of each event.
//! let (code, operand) = write.encode();
//! assert_eq!(code.kind(), OpKind::Write);
//! assert_eq!(Op::decode(code, operand), write);
//! ```

mod claim;

pub use claim::{After, Goal, Reordering};

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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SeqCst => "seqcst",
            Self::Relaxed => "relaxed",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::AcqRel => "acqrel",
        }
    }

    /// Whether a read or fence with it comes after the release whose value is seen.
    #[inline]
    #[must_use]
    pub const fn acquires(self) -> bool {
        matches!(self, Self::SeqCst | Self::Acquire | Self::AcqRel)
    }

    /// Whether what came before a write or fence with it comes before who acquires the value.
    #[inline]
    #[must_use]
    pub const fn releases(self) -> bool {
        matches!(self, Self::SeqCst | Self::Release | Self::AcqRel)
    }
}

/// What one event did.
///
/// Operations come in groups, so that a match can treat a group as one. Each group has an enum of
/// its own; [`OpKind`] numbers them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Reads or writes a shared variable.
    Access(AccessOp, VarId),
    /// A memory fence.
    Fence(MemoryOrder),
    /// Acquires, releases or requests a lock.
    Lock(LockOp, LockId),
    /// Starts a thread or waits for its end.
    Thread(ThreadOp, ThreadId),
    /// Waits on a condition variable or notifies it.
    Condition(ConditionOp, ConditionId),
    /// Arrives at a barrier or departs from it.
    Barrier(BarrierOp, BarrierId),
    /// Raises or lowers a semaphore.
    Semaphore(SemaphoreOp, SemaphoreId),
    /// Begins or ends the lifetime of an object.
    Object(ObjectOp, ObjectId),
    /// Notes something about its own thread; no other thread can tell.
    Marker(Marker),
}

/// How a variable is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessOp {
    /// A plain read.
    Read,
    /// A plain write.
    Write,
    /// A plain read whose writer was not observed, as free-running recorders leave behind.
    UnknownRead,
    /// An atomic load, or a compare-and-swap that failed.
    AtomicRead(MemoryOrder),
    /// An atomic store.
    AtomicWrite(MemoryOrder),
    /// An atomic read-modify-write: reads, then writes, as one event.
    AtomicUpdate(MemoryOrder),
}

/// What is done with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockOp {
    /// Acquires it in exclusive mode; nests when the thread holds it already.
    Acquire,
    /// Releases it from exclusive mode.
    Release,
    /// Acquires it in shared mode.
    AcquireShared,
    /// Releases it from shared mode.
    ReleaseShared,
    /// Is about to ask for it, in the mode of the acquire that follows. No effect. If none follows,
    /// the mode is not known and taken to be shared: an exclusive holder blocks either.
    Request,
    /// Is about to ask for it in exclusive mode, whether or not an acquire follows. No effect.
    RequestExclusive,
}

/// What is done with another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadOp {
    /// Starts it.
    Fork,
    /// Waits for its end.
    Join,
}

/// What is done with a condition variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionOp {
    /// Begins to wait; the lock was released just before.
    Wait,
    /// Stops waiting, woken by a notify.
    Wake,
    /// Stops waiting, woken by nobody.
    Timeout,
    /// Wakes one waiting thread, if there is one.
    Notify,
    /// Wakes all waiting threads.
    NotifyAll,
}

/// What is done with a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierOp {
    /// Arrives at it.
    Arrive,
    /// Leaves it: all of this generation have arrived.
    Depart,
}

/// What is done with a semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SemaphoreOp {
    /// Raises it.
    Post,
    /// Lowers it; it was above zero.
    Take,
}

/// What happens to an allocated object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectOp {
    /// It is allocated.
    Alloc,
    /// It is freed.
    Free,
}

/// What a thread notes about itself. An analysis that does not ask for it treats all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Marker {
    /// Enters a block that the programmer expects to be atomic.
    Begin(BlockId),
    /// Leaves it.
    End(BlockId),
    /// A branch was taken (flow layer).
    Branch,
    /// What comes next does not wait for ever: it has a time limit, or gives up at once. Stands before
    /// a take, a join or a departure, and before the release that a wait begins with.
    Timed,
    /// Nothing decides about the wait that comes next: its thread looks at nothing before. Stands before
    /// the release that the wait begins with.
    Unchecked,
    /// A local was assigned (flow layer).
    Let(LocalId),
}

const _: () = assert!(size_of::<Op>() <= 12, "an operation fits in two registers");

/// Makes [`OpKind`] and all that follows from the list of operations: numbers, spellings, operands,
/// codes. A plain operation is its number, name, spelling, group, and what its operand names; a bare
/// marker has no operand.
macro_rules! operations {
    (
        plain { $($plain:ident = $plain_number:literal $plain_word:literal
            $group:ident($sub:ident) $name:ident $id:ident,)* }
        ordered { $($ordered:ident = $ordered_number:literal $ordered_word:literal,)* }
        markers { $($marker:ident = $marker_number:literal $marker_word:literal
            $marker_name:ident $marker_id:ident,)* }
        bare { $($bare:ident = $bare_number:literal $bare_word:literal,)* }
    ) => {
        /// An operation without its operand and memory order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "each is documented as the operation of the same name")]
        pub enum OpKind {
            $($plain = $plain_number,)*
            $($ordered = $ordered_number,)*
            $($marker = $marker_number,)*
            $($bare = $bare_number,)*
            Fence = 6,
        }

        impl OpKind {
            /// Every kind, in the order of their numbers.
            pub const ALL: [Self; Self::COUNT] = {
                let mut all = [Self::Fence; Self::COUNT];
                $(all[$plain_number] = Self::$plain;)*
                $(all[$ordered_number] = Self::$ordered;)*
                $(all[$marker_number] = Self::$marker;)*
                $(all[$bare_number] = Self::$bare;)*
                all
            };
            const COUNT: usize = 1 + [
                $($plain_number,)* $($ordered_number,)* $($marker_number,)* $($bare_number,)*
            ].len();

            /// How text formats spell it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$plain => $plain_word,)*
                    $(Self::$ordered => $ordered_word,)*
                    $(Self::$marker => $marker_word,)*
                    $(Self::$bare => $bare_word,)*
                    Self::Fence => "fence",
                }
            }

            /// The kind that text formats spell so.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                Some(match word {
                    $($plain_word => Self::$plain,)*
                    $($ordered_word => Self::$ordered,)*
                    $($marker_word => Self::$marker,)*
                    $($bare_word => Self::$bare,)*
                    "fence" => Self::Fence,
                    _ => return None,
                })
            }

            /// What its operand names.
            #[must_use]
            pub const fn operand(self) -> NameKind {
                match self {
                    $(Self::$plain => NameKind::$name,)*
                    $(Self::$ordered => NameKind::Var,)*
                    $(Self::$marker => NameKind::$marker_name,)*
                    Self::Fence $(| Self::$bare)* => NameKind::None,
                }
            }

            /// Whether it carries a memory order.
            #[must_use]
            pub const fn has_order(self) -> bool {
                matches!(self, Self::Fence $(| Self::$ordered)*)
            }
        }

        impl Op {
            /// The code and the operand's index (0 where there is none), from which [`Op::decode`]
            /// makes the operation again.
            #[inline]
            #[must_use]
            pub const fn encode(self) -> (OpCode, u32) {
                let (kind, order, number) = match self {
                    $(Self::$group($sub::$plain, id) => {
                        (OpKind::$plain, MemoryOrder::SeqCst, id.number())
                    })*
                    $(Self::Access(AccessOp::$ordered(order), id) => {
                        (OpKind::$ordered, order, id.number())
                    })*
                    Self::Fence(order) => (OpKind::Fence, order, 1),
                    $(Self::Marker(Marker::$marker(id)) => {
                        (OpKind::$marker, MemoryOrder::SeqCst, id.number())
                    })*
                    $(Self::Marker(Marker::$bare) => (OpKind::$bare, MemoryOrder::SeqCst, 1),)*
                };
                (OpCode::new(kind, order), number - 1)
            }

            /// The operation that [`Op::encode`] gave `code` and `operand` for.
            #[inline]
            #[must_use]
            pub fn decode(code: OpCode, operand: u32) -> Self {
                use reweave_base::Id;
                let (index, order) = (operand as usize, code.order());
                match code.kind() {
                    $(OpKind::$plain => Self::$group($sub::$plain, $id::from_index(index)),)*
                    $(OpKind::$ordered => {
                        Self::Access(AccessOp::$ordered(order), VarId::from_index(index))
                    })*
                    OpKind::Fence => Self::Fence(order),
                    $(OpKind::$marker => {
                        Self::Marker(Marker::$marker($marker_id::from_index(index)))
                    })*
                    $(OpKind::$bare => Self::Marker(Marker::$bare),)*
                }
            }
        }
    };
}

// The numbers are part of the binary format: new operations take the next one.
operations! {
    plain {
        Read = 0 "r" Access(AccessOp) Var VarId,
        Write = 1 "w" Access(AccessOp) Var VarId,
        UnknownRead = 2 "r?" Access(AccessOp) Var VarId,
        Acquire = 7 "acq" Lock(LockOp) Lock LockId,
        Release = 8 "rel" Lock(LockOp) Lock LockId,
        AcquireShared = 9 "racq" Lock(LockOp) Lock LockId,
        ReleaseShared = 10 "rrel" Lock(LockOp) Lock LockId,
        Request = 11 "req" Lock(LockOp) Lock LockId,
        RequestExclusive = 29 "wreq" Lock(LockOp) Lock LockId,
        Fork = 12 "fork" Thread(ThreadOp) Thread ThreadId,
        Join = 13 "join" Thread(ThreadOp) Thread ThreadId,
        Wait = 14 "wait" Condition(ConditionOp) Condition ConditionId,
        Wake = 15 "wake" Condition(ConditionOp) Condition ConditionId,
        Timeout = 16 "timeout" Condition(ConditionOp) Condition ConditionId,
        Notify = 17 "notify" Condition(ConditionOp) Condition ConditionId,
        NotifyAll = 18 "notifyall" Condition(ConditionOp) Condition ConditionId,
        Arrive = 19 "arrive" Barrier(BarrierOp) Barrier BarrierId,
        Depart = 20 "depart" Barrier(BarrierOp) Barrier BarrierId,
        Post = 21 "post" Semaphore(SemaphoreOp) Semaphore SemaphoreId,
        Take = 22 "take" Semaphore(SemaphoreOp) Semaphore SemaphoreId,
        Alloc = 23 "alloc" Object(ObjectOp) Object ObjectId,
        Free = 24 "free" Object(ObjectOp) Object ObjectId,
    }
    ordered {
        AtomicRead = 3 "ar",
        AtomicWrite = 4 "aw",
        AtomicUpdate = 5 "arw",
    }
    markers {
        Begin = 25 "begin" Block BlockId,
        End = 26 "end" Block BlockId,
        Let = 28 "let" Local LocalId,
    }
    bare {
        Branch = 27 "branch",
        Timed = 30 "timed",
        Unchecked = 31 "unchecked",
    }
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

impl AccessOp {
    /// Whether it reads.
    #[inline]
    #[must_use]
    pub const fn is_read(self) -> bool {
        !matches!(self, Self::Write | Self::AtomicWrite(_))
    }

    /// Whether it writes.
    #[inline]
    #[must_use]
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::AtomicWrite(_) | Self::AtomicUpdate(_))
    }

    /// Whether it is atomic.
    #[inline]
    #[must_use]
    pub const fn is_atomic(self) -> bool {
        self.order().is_some()
    }

    /// Its memory order, if it is atomic.
    #[inline]
    #[must_use]
    pub const fn order(self) -> Option<MemoryOrder> {
        match self {
            Self::AtomicRead(order) | Self::AtomicWrite(order) | Self::AtomicUpdate(order) => {
                Some(order)
            }
            Self::Read | Self::Write | Self::UnknownRead => None,
        }
    }
}

impl LockOp {
    /// Whether it requests the lock, which has no effect.
    #[inline]
    #[must_use]
    pub const fn is_request(self) -> bool {
        matches!(self, Self::Request | Self::RequestExclusive)
    }
}

impl Op {
    /// The operation without operand and memory order.
    #[inline]
    #[must_use]
    pub const fn kind(self) -> OpKind {
        self.encode().0.kind()
    }

    /// The shared variable it reads or writes, if it is an access.
    #[inline]
    #[must_use]
    pub const fn var(self) -> Option<VarId> {
        match self {
            Self::Access(_, var) => Some(var),
            _ => None,
        }
    }

    /// Whether it reads a shared variable.
    #[inline]
    #[must_use]
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Access(access, _) if access.is_read())
    }

    /// Whether it writes a shared variable.
    #[inline]
    #[must_use]
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Access(access, _) if access.is_write())
    }

    /// Whether it is an atomic access.
    #[inline]
    #[must_use]
    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::Access(access, _) if access.is_atomic())
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
        let atomic = Op::Access(AccessOp::AtomicWrite(MemoryOrder::Relaxed), x);
        assert!(!atomic.conflicts_with(Op::Access(AccessOp::AtomicRead(MemoryOrder::SeqCst), x)));
        assert!(atomic.conflicts_with(Op::Access(AccessOp::Read, x)));
        assert!(!Op::Access(AccessOp::Read, x).conflicts_with(Op::Access(AccessOp::Read, x)));
        assert!(
            !Op::Access(AccessOp::Write, x)
                .conflicts_with(Op::Access(AccessOp::Write, VarId::from_number(2).unwrap()))
        );
    }
}
