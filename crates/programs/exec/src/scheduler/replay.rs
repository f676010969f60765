//! Replay: a schedule that was recorded, step by step.

use super::{Scheduler, View};
use crate::observe::ThreadNumber;
use crate::run::Schedule;

/// Repeats a schedule, and stops where it ends or cannot be followed.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    schedule: &'a Schedule,
}

impl<'a> Replay<'a> {
    /// Repeats `schedule`.
    #[must_use]
    pub const fn new(schedule: &'a Schedule) -> Self {
        Self { schedule }
    }
}

impl Scheduler for Replay<'_> {
    fn pick(&mut self, ready: &[ThreadNumber], view: View<'_>) -> Option<usize> {
        let step = usize::try_from(view.steps_count()).ok()?;
        let thread = self.schedule.0.get(step)?;
        ready.iter().position(|ready| ready == thread)
    }
}
