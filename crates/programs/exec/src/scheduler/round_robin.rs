//! Round robin: one step for each thread in turn.

use super::{Scheduler, View};
use crate::observe::ThreadNumber;

/// Picks the threads in turn, in the order in which they started.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    /// The number after that of the thread which went last.
    next: ThreadNumber,
}

impl RoundRobin {
    /// Starts with the first thread.
    #[must_use]
    pub const fn new() -> Self {
        Self { next: 0 }
    }
}

impl Scheduler for RoundRobin {
    fn pick(&mut self, ready: &[ThreadNumber], _: View<'_>) -> Option<usize> {
        // The distance to the next number, around the largest one.
        let turn = |thread: ThreadNumber| thread.wrapping_sub(self.next);
        let (place, &thread) = ready.iter().enumerate().min_by_key(|&(_, &thread)| turn(thread))?;
        self.next = thread + 1;
        Some(place)
    }
}
