//! Who takes the next step.
//!
//! One file for each way to choose. A scheduler sees the threads that may be able to go on; where
//! the one that it picks turns out to wait, it is asked again without it.

mod pct;
mod race_directed;
mod random;
mod replay;
mod round_robin;

pub use pct::Pct;
pub use race_directed::{Candidates, RaceDirected};
pub use random::Random;
pub use replay::Replay;
pub use round_robin::RoundRobin;

use crate::code::Instruction;
use crate::machine::Machine;
use crate::observe::ThreadNumber;

/// What a scheduler may look at.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) machine: &'a Machine<'a>,
    pub(crate) steps_count: u64,
}

impl<'a> View<'a> {
    /// How many threads have started so far.
    #[must_use]
    pub fn threads_count(self) -> usize {
        self.machine.threads.len()
    }

    /// The name of `thread`, which does not depend on the order in which threads started.
    #[must_use]
    pub fn name(self, thread: ThreadNumber) -> &'a str {
        &self.machine.threads[thread as usize].name
    }

    /// Whether `thread` waits for nothing.
    #[must_use]
    pub fn can_step(self, thread: ThreadNumber) -> bool {
        self.machine.can_step(thread)
    }

    /// How many steps were taken so far.
    #[must_use]
    pub const fn steps_count(self) -> u64 {
        self.steps_count
    }

    /// The line, the cell and whether it may write, if the next step of `thread` is an access.
    #[must_use]
    pub fn next_access(self, thread: ThreadNumber) -> Option<(u32, u32, bool)> {
        let (cell, writes) = match self.machine.next(thread) {
            Instruction::Read { cell, .. } => (cell, false),
            Instruction::Write { cell, .. }
            | Instruction::CompareAndSwap { cell, .. }
            | Instruction::FetchAdd { cell, .. } => (cell, true),
            _ => return None,
        };
        let at = self.machine.threads[thread as usize].at;
        let cell = self.machine.cell(thread, cell, &self.machine.code.cells)?;
        Some((self.machine.code.effects[at as usize].line, cell, writes))
    }
}

/// Picks the thread of each step.
pub trait Scheduler {
    /// The position in `ready`, which is not empty, of the thread that is to go on; none stops the
    /// run. Each thread is in `ready` once, in no particular order, but the same one in a run that
    /// is the same so far.
    fn pick(&mut self, ready: &[ThreadNumber], view: View<'_>) -> Option<usize>;
}
