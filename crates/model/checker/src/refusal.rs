//! Why a reordering was refused.

use std::fmt::{self, Display, Formatter};

use reweave_op::{EventId, ThreadId};

/// A step that breaks a rule, or an end that lacks what it should show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which step, counted from 1, fixed prefix included; none if the end is at fault, or the fixed
    /// prefix as a whole.
    pub step: Option<usize>,
    /// The event at that step, or the one that the end is missing.
    pub event: Option<EventId>,
    /// The rule that is broken.
    pub rule: Rule,
}

/// Makes [`Rule`] of variants, each with what it says of the event that breaks it.
macro_rules! rules {
    ($($name:ident $(($($field:ident: $type:ty),+))? => $message:literal $(, $shown:expr)*;)+) => {
        /// The rules that a reordering can break, and what goals ask for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Rule {
            $(#[doc = concat!("Says: *", $message, "*.")] $name $(($($type),+))?,)+
        }

        impl Display for Rule {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$name $(($($field),+))? => write!(f, $message $(, $shown)*),)+
                }
            }
        }
    };
}

rules! {
    PrefixTooLong(thread: ThreadId, count: u32, all: usize) =>
        "the fixed prefix runs {count} events of thread number {thread}, which has {all}";
    NoSuchEvent => "the trace has no such event";
    NotNext(next: EventId) => "its thread's next event is {next}";
    NoneLeft => "its thread has no event left";
    OtherView(observed: Option<EventId>, seen: Option<EventId>) =>
        "the read saw {} and would now see {}", name(observed), name(seen);
    LockHeld(holder: ThreadId) => "thread number {holder} holds the lock";
    NotHeld => "its thread does not hold the lock";
    NotForked(fork: EventId) => "its thread starts with the fork at event {fork}";
    NotEnded(missing: EventId) => "the joined thread has not run event {missing}";
    NotWaiting(wait: EventId) => "the wait at event {wait}, which it woke, is not waiting";
    WouldWake(wait: EventId) => "it would wake the wait at event {wait}, which it did not";
    NotNotified(notify: EventId) => "the notify that woke it, event {notify}, has not run";
    NotArrived(arrival: EventId) => "the arrival at event {arrival} has not run";
    BelowZero => "the semaphore is at zero";
    NotPosted(post: EventId) => "the post that it used, event {post}, has not run";
    NotAllocated(alloc: EventId) => "its object is allocated at event {alloc}, which has not run";
    NotEnabled => "it is not its thread's next event, ready to run";
    SameThread => "another of the events belongs to its thread";
    NoConflict => "it does not conflict with the other access";
    Ordered => "happens-before orders the two accesses";
    NoCycle => "a deadlock takes at least two threads";
    NotBlocked => "it is not blocked by the thread of the next event";
    NoneStuck => "no thread is said to be stuck";
    GoesOn => "it can happen, or does not wait for ever";
    OutOfOrder => "it did not run, or not in the order claimed";
    Happened => "it ran, though it should not have";
    SeesTheSame => "it does not see the other write that is claimed";
    WentOn => "its thread ran on after it";
    PassedOn => "another event saw what it wrote";
    LeftOut => "it did not run, and every event should have";
    NotWritten => "it does not write the variable";
    NotLast(last: Option<EventId>) => "the variable is left with {}, not with this", name(last);
}

fn name(write: Option<EventId>) -> String {
    write.map_or("the initial value".into(), |write| format!("the write at event {write}"))
}

impl std::error::Error for Refusal {}

impl Display for Refusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.step, self.event) {
            (Some(step), Some(event)) => write!(f, "step {step}, event {event}: ")?,
            (None, Some(event)) => write!(f, "at the end, event {event}: ")?,
            // Nothing was run yet.
            _ if matches!(self.rule, Rule::PrefixTooLong(..)) => {}
            _ => write!(f, "at the end: ")?,
        }
        Display::fmt(&self.rule, f)
    }
}
