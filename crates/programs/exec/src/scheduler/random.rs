//! Random: each thread is as likely as the others, at every step.

use reweave_base::Rng;

use super::{Scheduler, View};
use crate::observe::ThreadNumber;

/// Picks at random, by a seed.
#[derive(Clone, Debug)]
pub struct Random {
    rng: Rng,
}

impl Random {
    /// The choices of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { rng: Rng::new(seed) }
    }
}

impl Scheduler for Random {
    fn pick(&mut self, ready: &[ThreadNumber], _: View<'_>) -> Option<usize> {
        Some(self.rng.below(ready.len()))
    }
}
