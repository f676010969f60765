//! Which events of different threads may change places without anybody noticing.

use reweave_trace::{
    AccessOp, BarrierOp, ConditionId, ConditionOp, EventId, LockId, LockOp, Op, SemaphoreOp,
    ThreadOp, Trace, VarId,
};

/// What an operation has to do with, as far as other threads can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Footprint {
    /// Nothing that others touch.
    Own,
    /// A variable.
    Var { var: VarId, writes: bool },
    /// A lock.
    Lock(LockId),
    /// Who waits on a condition.
    Condition(ConditionId),
    /// What is not looked into.
    Anything,
}

const fn footprint(op: Op) -> Footprint {
    match op {
        Op::Access(AccessOp::Read | AccessOp::UnknownRead | AccessOp::AtomicRead(_), var) => {
            Footprint::Var { var, writes: false }
        }
        Op::Access(AccessOp::Write | AccessOp::AtomicWrite(_) | AccessOp::AtomicUpdate(_), var) => {
            Footprint::Var { var, writes: true }
        }
        Op::Lock(
            LockOp::Acquire | LockOp::Release | LockOp::AcquireShared | LockOp::ReleaseShared,
            lock,
        ) => Footprint::Lock(lock),
        Op::Condition(
            ConditionOp::Wait | ConditionOp::Timeout | ConditionOp::Notify | ConditionOp::NotifyAll,
            condition,
        ) => Footprint::Condition(condition),
        // Whoever was woken no longer waits from the notify on, whenever it goes on.
        Op::Condition(ConditionOp::Wake, _) => Footprint::Own,
        Op::Fence(_) | Op::Lock(LockOp::Request, _) | Op::Block(..) | Op::Branch | Op::Let(_) => {
            Footprint::Own
        }
        Op::Thread(..) | Op::Barrier(..) | Op::Semaphore(..) | Op::Object(..) => {
            Footprint::Anything
        }
    }
}

/// What `event` has to do with. A wait may begin with the release before it, which then is what
/// others can tell.
fn footprints(trace: &Trace, event: EventId) -> [Footprint; 2] {
    let op = trace.event(event).op;
    let of_wait = |wait: EventId| trace.signals().stay(wait).map(|stay| stay.begin);
    match op {
        Op::Condition(ConditionOp::Wait, _) if of_wait(event) != Some(event) => [Footprint::Own; 2],
        Op::Lock(LockOp::Release | LockOp::ReleaseShared, _) => {
            let thread = trace.event(event).thread;
            let next = trace.thread_events(thread).get(trace.position(event) as usize + 1);
            let begun = next.filter(|&&next| of_wait(next) == Some(event));
            let begun = begun.map_or(Footprint::Own, |&wait| footprint(trace.event(wait).op));
            [footprint(op), begun]
        }
        _ => [footprint(op); 2],
    }
}

/// Whether `left` and `right`, of different threads, may change places. No if in doubt.
pub(super) fn commute(trace: &Trace, left: EventId, right: EventId) -> bool {
    let rights = footprints(trace, right);
    let mut lefts = footprints(trace, left).into_iter();
    lefts.all(|left| rights.into_iter().all(|right| are_apart(left, right)))
}

fn are_apart(left: Footprint, right: Footprint) -> bool {
    match (left, right) {
        (Footprint::Anything, _) | (_, Footprint::Anything) => false,
        (Footprint::Var { var, writes }, Footprint::Var { var: other, writes: too }) => {
            var != other || !(writes || too)
        }
        (Footprint::Lock(lock), Footprint::Lock(other)) => lock != other,
        (Footprint::Condition(condition), Footprint::Condition(other)) => condition != other,
        (
            Footprint::Own | Footprint::Var { .. } | Footprint::Lock(_) | Footprint::Condition(_),
            Footprint::Own | Footprint::Var { .. } | Footprint::Lock(_) | Footprint::Condition(_),
        ) => true,
    }
}

/// Whether a thread that comes to `op` may have to wait there for others.
pub(super) const fn may_wait(op: Op) -> bool {
    match op {
        Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _)
        | Op::Thread(ThreadOp::Join, _)
        | Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _)
        | Op::Barrier(BarrierOp::Depart, _)
        | Op::Semaphore(SemaphoreOp::Take, _) => true,
        Op::Access(..)
        | Op::Fence(_)
        | Op::Lock(LockOp::Release | LockOp::ReleaseShared | LockOp::Request, _)
        | Op::Thread(ThreadOp::Fork, _)
        | Op::Condition(ConditionOp::Wait | ConditionOp::Notify | ConditionOp::NotifyAll, _)
        | Op::Barrier(BarrierOp::Arrive, _)
        | Op::Semaphore(SemaphoreOp::Post, _)
        | Op::Object(..)
        | Op::Block(..)
        | Op::Branch
        | Op::Let(_) => false,
    }
}
