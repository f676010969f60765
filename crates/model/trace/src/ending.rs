//! How the recorded run ended: normally, stuck, or by a fault of its own.
//!
//! An optional part of a trace, written by the recorder. The threads that it speaks of are named by
//! their last events, so it says where in the code each of them is.

use crate::op::EventId;

/// How a run ended, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndKind {
    /// The program ended by itself, or by a signal that it does not fail by.
    Exited,
    /// The recorder or its user stopped the program, which was not stuck.
    Stopped,
    /// Threads waited for locks of each other, in a cycle.
    Deadlock,
    /// A thread waited for a lock that it held itself.
    SelfDeadlock,
    /// A thread waited for a lock whose holder had ended.
    AbandonedLock,
    /// No thread could go on, though no cycle of locks was seen.
    Hang,
    /// A signal that stands for a fault ended the program.
    Crash,
    /// An assertion failed, the program gave up, or a panic ended it.
    FailedAssertion,
}

impl EndKind {
    /// Every kind, by its number in files.
    pub const ALL: [Self; 8] = [
        Self::Exited,
        Self::Stopped,
        Self::Deadlock,
        Self::SelfDeadlock,
        Self::AbandonedLock,
        Self::Hang,
        Self::Crash,
        Self::FailedAssertion,
    ];

    /// How formats and reports spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Stopped => "stopped",
            Self::Deadlock => "deadlock",
            Self::SelfDeadlock => "self-deadlock",
            Self::AbandonedLock => "abandoned-lock",
            Self::Hang => "hang",
            Self::Crash => "crash",
            Self::FailedAssertion => "failed-assertion",
        }
    }

    /// The kind that is spelled `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Whether threads wait for ever.
    #[must_use]
    pub const fn is_stuck(self) -> bool {
        match self {
            Self::Deadlock | Self::SelfDeadlock | Self::AbandonedLock | Self::Hang => true,
            Self::Exited | Self::Stopped | Self::Crash | Self::FailedAssertion => false,
        }
    }

    /// Whether the program failed by itself.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Crash | Self::FailedAssertion)
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// What happened.
    pub kind: EndKind,
    /// What the program or the system said of it, such as the text of an assertion; may be empty.
    pub text: String,
    /// The threads that are stuck or at fault; of a run that ended otherwise, those that still ran.
    pub threads: Vec<ThreadEnd>,
    /// What the program did on the way that it must not do.
    pub misuses: Vec<Misuse>,
}

/// What a program must not do with locks, conditions, threads, memory, files and signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MisuseKind {
    /// A lock is released that nobody holds.
    ReleaseNotHeld,
    /// A lock is released that another thread holds.
    ReleaseOfOthers,
    /// A lock is destroyed while it is held.
    DestroyHeld,
    /// A wait on a condition begins without its lock.
    WaitWithoutLock,
    /// A thread ended that was neither joined nor detached.
    ThreadLeak,
    /// Memory is freed that was freed before.
    DoubleFree,
    /// A lock is asked for that was destroyed.
    UseDestroyed,
    /// A file descriptor is used that was closed.
    UseClosed,
    /// A handler of a signal calls what is not safe there.
    UnsafeInHandler,
    /// Memory is accessed that was freed.
    UseFreed,
    /// The handle of a thread is used that was joined or detached.
    UseJoined,
}

impl MisuseKind {
    /// Every kind, by its number in files.
    pub const ALL: [Self; 11] = [
        Self::ReleaseNotHeld,
        Self::ReleaseOfOthers,
        Self::DestroyHeld,
        Self::WaitWithoutLock,
        Self::ThreadLeak,
        Self::DoubleFree,
        Self::UseDestroyed,
        Self::UseClosed,
        Self::UnsafeInHandler,
        Self::UseFreed,
        Self::UseJoined,
    ];

    /// How formats spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReleaseNotHeld => "release-not-held",
            Self::ReleaseOfOthers => "release-of-others",
            Self::DestroyHeld => "destroy-held",
            Self::WaitWithoutLock => "wait-without-lock",
            Self::ThreadLeak => "thread-leak",
            Self::DoubleFree => "double-free",
            Self::UseDestroyed => "use-destroyed",
            Self::UseClosed => "use-closed",
            Self::UnsafeInHandler => "unsafe-in-handler",
            Self::UseFreed => "use-freed",
            Self::UseJoined => "use-joined",
        }
    }

    /// The kind that is spelled `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Something that a program must not do, and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misuse {
    /// What it is.
    pub kind: MisuseKind,
    /// Where it was done.
    pub event: EventId,
    /// What makes it wrong: who holds the lock, or what the thread did last.
    pub other: Option<EventId>,
    /// What was done, after the name of the thread: `releases m, which nobody holds`.
    pub text: String,
}

/// Where a thread was when the run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadEnd {
    /// Its last event, which is where it was.
    pub event: EventId,
    /// What it waited for or did, after its name: `waits for lock m, which T2 holds`.
    pub state: String,
}
