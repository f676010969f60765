//! The rules of the trace model, as events break them.

use reweave_base::Id;

use super::IllFormed;
use crate::names::Names;
use crate::op::{
    BarrierId, BlockId, ConditionId, EventId, LockId, ObjectId, OpKind, SemaphoreId, ThreadId,
};
use crate::views::Mode;

/// A rule of the trace model that an event breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    TooManyEvents,
    UnknownThread,
    UnknownOperand(OpKind),
    UnknownSite,
    BeforeFork { thread: ThreadId, fork: EventId },
    AfterJoin { thread: ThreadId, join: EventId },
    ForkedTwice { thread: ThreadId, fork: EventId },
    ForkedAfterJoin { thread: ThreadId, join: EventId },
    ForksItself,
    JoinsItself,
    JoinsWaiting { thread: ThreadId, condition: ConditionId },
    Held { lock: LockId, holder: ThreadId },
    NotHeld { lock: LockId, mode: Mode },
    StillWaiting(ConditionId),
    NotWaiting(ConditionId),
    NotNotified(ConditionId),
    StillInside(BarrierId),
    NotArrived(BarrierId),
    TooFewArrived { barrier: BarrierId, arrived: u32, parties: u32 },
    BelowZero(SemaphoreId),
    AllocatedTwice(ObjectId),
    NotAllocated(ObjectId),
    NotBegun(BlockId),
}

impl Violation {
    /// The breach at `event`, in words; other events are called by the numbers of `origin`.
    pub(crate) fn explain(
        self,
        event: EventId,
        names: &Names,
        origin: impl Fn(EventId) -> EventId,
    ) -> IllFormed {
        let number = |id| origin(id).number();
        let thread = |id| names.threads.name(id);
        let reason = match self {
            Self::TooManyEvents => format!("more than {} events", EventId::COUNT_MAX),
            Self::UnknownThread => "its thread has no name in this trace".into(),
            Self::UnknownOperand(kind) => {
                format!("the operand of its `{}` has no name in this trace", kind.as_str())
            }
            Self::UnknownSite => "its location has no name in this trace".into(),
            Self::BeforeFork { thread: t, fork } => {
                format!("thread `{}` runs before its fork at event {}", thread(t), number(fork))
            }
            Self::AfterJoin { thread: t, join } => {
                format!("thread `{}` runs after its join at event {}", thread(t), number(join))
            }
            Self::ForkedTwice { thread: t, fork } => {
                format!("thread `{}` was forked already, at event {}", thread(t), number(fork))
            }
            Self::ForkedAfterJoin { thread: t, join } => {
                format!("forks thread `{}`, which was joined at event {}", thread(t), number(join))
            }
            Self::ForksItself => "a thread cannot fork itself".into(),
            Self::JoinsItself => "a thread cannot wait for its own end".into(),
            Self::JoinsWaiting { thread: t, condition } => {
                let condition = names.conditions.name(condition);
                format!("joins thread `{}`, which still waits on `{condition}`", thread(t))
            }
            Self::Held { lock, holder } => {
                let (lock, holder) = (names.locks.name(lock), thread(holder));
                format!("acquires lock `{lock}`, which thread `{holder}` holds")
            }
            other => other.explain_operand(names),
        };
        IllFormed { event, reason }
    }

    /// Those breaches that speak of nothing but the operand.
    fn explain_operand(self, names: &Names) -> String {
        let condition = |id| names.conditions.name(id);
        let barrier = |id| names.barriers.name(id);
        let object = |id| names.objects.name(id);
        match self {
            Self::NotHeld { lock, mode } => {
                let lock = names.locks.name(lock);
                let mode = if mode == Mode::Shared { " in shared mode" } else { "" };
                format!("releases lock `{lock}`, which its thread does not hold{mode}")
            }
            Self::StillWaiting(c) => {
                let condition = condition(c);
                format!("its thread still waits on `{condition}`: expected `wake` or `timeout`")
            }
            Self::NotWaiting(c) => format!("its thread does not wait on `{}`", condition(c)),
            Self::NotNotified(c) => format!(
                "wakes from `{}`, but no notify since its wait is left to have woken it",
                condition(c)
            ),
            Self::StillInside(b) => {
                format!("its thread arrived at `{}` before and has not departed", barrier(b))
            }
            Self::NotArrived(b) => {
                format!("departs from `{}`, where its thread has not arrived", barrier(b))
            }
            Self::TooFewArrived { barrier: b, arrived, parties } => {
                format!("departs from `{}` when {arrived} of {parties} have arrived", barrier(b))
            }
            Self::BelowZero(s) => {
                format!("takes from semaphore `{}`, which is at zero", names.semaphores.name(s))
            }
            Self::AllocatedTwice(o) => format!("object `{}` was allocated before", object(o)),
            Self::NotAllocated(o) => {
                format!("frees object `{}`, which is not allocated", object(o))
            }
            Self::NotBegun(b) => {
                format!("ends block `{}`, which its thread has not begun", names.blocks.name(b))
            }
            _ => unreachable!("the other breaches are explained by `explain`"),
        }
    }
}
