//! How a run ends, and what went wrong in it.

use std::fmt::{self, Display, Formatter};

use reweave_lang::Span;

use crate::code::Code;

/// What a run comes to: equal for runs that differ in nothing but the order of their steps.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outcome {
    /// What the program's result held at the end; nothing if an assumption ended the run, which
    /// then has no result.
    pub result: Vec<i64>,
    /// How it ended, with threads that wait in order of name.
    pub ending: Ending,
    /// What went wrong, in order.
    pub faults: Vec<Fault>,
}

impl Outcome {
    pub(crate) fn new(code: &Code, memory: &[i64], mut ending: Ending, faults: &[Fault]) -> Self {
        let result = match &mut ending {
            Ending::Assumption(_) => Vec::new(),
            ending => {
                if let Ending::Deadlock(blocked) = ending {
                    blocked.sort_unstable();
                }
                code.focus.iter().map(|&cell| memory[cell as usize]).collect()
            }
        };
        let mut faults = faults.to_vec();
        faults.sort_unstable();
        Self { result, ending, faults }
    }
}

/// Where a thread of a run could not go on, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fault {
    /// The thread that it ended.
    pub thread: String,
    /// What went wrong.
    pub kind: FaultKind,
    /// The line of the statement or access.
    pub line: u32,
    /// Its place.
    pub span: Span,
}

/// What can go wrong in a thread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// An assertion did not hold.
    Assertion,
    /// A division by zero.
    DivisionByZero,
    /// An index outside its array.
    #[expect(missing_docs, reason = "the array, the index, and how many elements there are")]
    OutOfBounds { name: String, index: i64, length: u32 },
    /// A lock released, or waited with, that the thread does not hold.
    NotHeld(String),
    /// A wait with a lock that the thread holds more than once.
    HeldTwice(String),
    /// Calls that go on and on without an event.
    TooLong,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ending {
    /// Every thread ended.
    Finished,
    /// No thread could go on, and these had not ended.
    Deadlock(Vec<Blocked>),
    /// The assumption at this line did not hold.
    Assumption(u32),
    /// The limit of steps was reached.
    Steps,
    /// The limit of threads was reached.
    Threads,
    /// The scheduler stopped it.
    Stopped,
}

/// A thread that waits for what does not come.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blocked {
    /// The thread.
    pub thread: String,
    /// What it waits for.
    pub awaited: Awaited,
    /// The line at which it waits.
    pub line: u32,
}

/// What a thread can wait for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Awaited {
    /// A lock.
    Lock(String),
    /// A notify of a condition variable.
    Condition(String),
    /// Another thread's end.
    Thread(String),
}

impl Display for FaultKind {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Assertion => write!(out, "the assertion does not hold"),
            Self::DivisionByZero => write!(out, "division by zero"),
            Self::OutOfBounds { name, index, length } => {
                write!(out, "`{name}[{index}]` is outside the array, which has {length} elements")
            }
            Self::TooLong => write!(out, "the thread computes too long without an event"),
            Self::NotHeld(lock) => write!(out, "the thread does not hold `{lock}`"),
            Self::HeldTwice(lock) => {
                write!(out, "the thread waits with `{lock}`, which it holds more than once")
            }
        }
    }
}

impl Display for Awaited {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(name) => write!(out, "lock `{name}`"),
            Self::Condition(name) => write!(out, "a notify of `{name}`"),
            Self::Thread(name) => write!(out, "the end of `{name}`"),
        }
    }
}
