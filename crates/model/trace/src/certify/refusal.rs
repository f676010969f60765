//! Why a reordering was refused.

use std::fmt::{self, Display, Formatter};

use crate::op::{EventId, ThreadId};

/// A step that breaks a rule, or an end that lacks what it should show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// Which step, counted from 1, base included; none if the end is at fault.
    pub step: Option<usize>,
    /// The event at that step, or the one that the end is missing.
    pub event: Option<EventId>,
    /// The rule that is broken.
    pub rule: Rule,
}

impl Refusal {
    pub(super) const fn at_end(rule: Rule) -> Self {
        Self { step: None, event: None, rule }
    }

    pub(super) const fn at_end_for(event: EventId, rule: Rule) -> Self {
        Self { step: None, event: Some(event), rule }
    }
}

/// The rules that a reordering can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The base names more events than the thread has.
    BaseTooLong {
        /// Whose base.
        thread: ThreadId,
        /// How many it asks for.
        count: u32,
        /// How many there are.
        all: usize,
    },
    /// The trace has no such event.
    NoSuchEvent,
    /// Rule 1: it is not its thread's next event.
    NotNext {
        /// The thread's next event; none if it is done.
        next: Option<EventId>,
    },
    /// Rule 2: the read would see another write than observed.
    OtherView {
        /// What it saw when observed; none for the initial value.
        observed: Option<EventId>,
        /// What it would see.
        seen: Option<EventId>,
    },
    /// Rule 3: another thread holds the lock.
    LockHeld {
        /// Who holds it.
        holder: ThreadId,
    },
    /// Rule 4: the thread has not been forked yet.
    NotForked {
        /// Its fork.
        fork: EventId,
    },
    /// Rule 4: the joined thread has not been forked, or has not run this event of it.
    NotEnded {
        /// What is missing.
        missing: EventId,
    },
    /// Rule 5: the notify woke this wait, which is not waiting.
    NotWaiting {
        /// The wait.
        wait: EventId,
    },
    /// Rule 5: the notify would wake this wait, which it did not.
    WouldWake {
        /// The wait.
        wait: EventId,
    },
    /// Rule 5: the notify that woke it has not happened.
    NotNotified {
        /// The notify.
        notify: EventId,
    },
    /// Rule 6: this arrival of the round has not happened.
    NotArrived {
        /// The arrival.
        missing: EventId,
    },
    /// Rule 6: the semaphore is at zero.
    BelowZero,
    /// Rule 6: the post that it used has not happened.
    NotPosted {
        /// The post.
        post: EventId,
    },
    /// Rule 6: the object was not allocated yet.
    NotAllocated {
        /// Its allocation.
        alloc: EventId,
    },
    /// Goal: this should be its thread's next event at the end, and is not.
    NotEnabled,
    /// Goal: two of the events belong to one thread.
    SameThread,
    /// Goal: the two accesses do not conflict.
    NoConflict,
    /// Goal: a deadlock takes at least two threads.
    NoCycle,
    /// Goal: it does not acquire a lock that the next event's thread holds.
    NotBlocked,
    /// Goal: it should have happened, or happened too early.
    OutOfOrder,
    /// Goal: it should not have happened.
    Happened,
    /// Goal: it sees what it saw when observed, or it is not the read of that write's variable.
    SeesTheSame,
    /// Goal: its thread went on after it.
    WentOn,
    /// Goal: it is an update, and another event saw what it wrote.
    PassedOn,
    /// Goal: every event should have happened, and this one did not.
    LeftOut,
    /// Goal: it does not write the variable.
    NotWritten,
    /// Goal: it is not the last write of the variable.
    NotLast {
        /// Which is; none if the variable has its initial value.
        last: Option<EventId>,
    },
}

impl Display for Refusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.step, self.event) {
            (Some(step), Some(event)) => write!(f, "step {step}, event {}: ", event.number())?,
            (None, Some(event)) => write!(f, "at the end, event {}: ", event.number())?,
            _ => write!(f, "at the end: ")?,
        }
        Display::fmt(&self.rule, f)
    }
}

impl Display for Rule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let write_of = |write: Option<EventId>| match write {
            Some(event) => format!("the write at event {}", event.number()),
            None => "the initial value".into(),
        };
        match *self {
            Self::BaseTooLong { thread, count, all } => write!(
                f,
                "the base runs {count} events of thread number {}, which has {all}",
                thread.number()
            ),
            Self::NoSuchEvent => write!(f, "the trace has no such event"),
            Self::NotNext { next: Some(next) } => {
                write!(f, "its thread's next event is {}", next.number())
            }
            Self::NotNext { next: None } => write!(f, "its thread has no event left"),
            Self::OtherView { observed, seen } => write!(
                f,
                "the read saw {} and would now see {}",
                write_of(observed),
                write_of(seen)
            ),
            Self::LockHeld { holder } => {
                write!(f, "thread number {} holds the lock", holder.number())
            }
            Self::NotForked { fork } => {
                write!(f, "its thread starts with the fork at event {}", fork.number())
            }
            Self::NotEnded { missing } => {
                write!(f, "the joined thread has not run event {}", missing.number())
            }
            Self::NotWaiting { wait } => {
                write!(f, "the wait at event {}, which it woke, is not waiting", wait.number())
            }
            Self::WouldWake { wait } => {
                write!(f, "it would wake the wait at event {}, which it did not", wait.number())
            }
            Self::NotNotified { notify } => {
                write!(f, "the notify that woke it, event {}, has not run", notify.number())
            }
            Self::NotArrived { missing } => {
                write!(f, "the arrival at event {} has not run", missing.number())
            }
            Self::BelowZero => write!(f, "the semaphore is at zero"),
            Self::NotPosted { post } => {
                write!(f, "the post that it used, event {}, has not run", post.number())
            }
            Self::NotAllocated { alloc } => {
                write!(f, "its object is allocated at event {}, which has not run", alloc.number())
            }
            Self::NotEnabled => write!(f, "it is not its thread's next event, ready to run"),
            Self::SameThread => write!(f, "another of the events belongs to its thread"),
            Self::NoConflict => write!(f, "it does not conflict with the other access"),
            Self::NoCycle => write!(f, "a deadlock takes at least two threads"),
            Self::NotBlocked => write!(f, "it is not blocked by the thread of the next event"),
            Self::OutOfOrder => write!(f, "it did not run, or not in the order claimed"),
            Self::Happened => write!(f, "it ran, though it should not have"),
            Self::SeesTheSame => write!(f, "it does not see the other write that is claimed"),
            Self::WentOn => write!(f, "its thread ran on after it"),
            Self::PassedOn => write!(f, "another event saw what it wrote"),
            Self::LeftOut => write!(f, "it did not run, and every event should have"),
            Self::NotWritten => write!(f, "it does not write the variable"),
            Self::NotLast { last } => {
                write!(f, "the variable is left with {}, not with this", write_of(last))
            }
        }
    }
}
