//! PCT: priorities, and a bound on how deep a fault hides.
//!
//! Each thread gets a random priority and the highest goes on; at `depth - 1` random moments the one
//! that goes on falls below all others. A fault that needs `depth` ordering constraints shows with
//! probability at least 1/(n k^(depth-1)) for n threads and k steps (Burckhardt et al., *A
//! Randomized Scheduler with Probabilistic Guarantees of Finding Bugs*, 2010).

use reweave_base::Rng;

use super::{Scheduler, View};
use crate::observe::ThreadNumber;

/// Picks by random priorities that change a bounded number of times.
#[derive(Clone, Debug)]
pub struct Pct {
    rng: Rng,
    /// Higher goes first. Those that have fallen are below all others.
    priorities: Vec<u64>,
    /// The steps at which the thread that goes on falls, the last first.
    changes: Vec<u64>,
    /// The priority for the next that falls.
    lowest: u64,
}

/// Priorities below this are those of threads that have fallen.
const FALLEN: u64 = 1 << 32;

impl Pct {
    /// The choices of `seed`, for faults of `depth` in runs of about `steps_count` steps.
    #[must_use]
    pub fn new(seed: u64, depth: u32, steps_count: u64) -> Self {
        let mut rng = Rng::new(seed);
        let bound = usize::try_from(steps_count.max(1)).unwrap_or(usize::MAX);
        let mut changes: Vec<u64> = (1..depth.max(1)).map(|_| rng.below(bound) as u64).collect();
        changes.sort_unstable_by(|left, right| right.cmp(left));
        Self { rng, priorities: Vec::new(), changes, lowest: FALLEN }
    }

    /// The place of the thread of highest priority, of those that can go on if some can.
    fn highest(&self, ready: &[ThreadNumber], view: View<'_>) -> Option<usize> {
        let priority = |&place: &usize| {
            let thread = ready[place];
            (view.can_step(thread), self.priorities[thread as usize])
        };
        (0..ready.len()).max_by_key(priority)
    }
}

impl Scheduler for Pct {
    fn pick(&mut self, ready: &[ThreadNumber], view: View<'_>) -> Option<usize> {
        while self.priorities.len() < view.threads_count() {
            let priority = FALLEN + (self.rng.next() >> 1);
            self.priorities.push(priority);
        }
        let mut place = self.highest(ready, view)?;
        while self.changes.last().is_some_and(|&change| change <= view.steps_count()) {
            self.changes.pop();
            self.lowest -= 1;
            self.priorities[ready[place] as usize] = self.lowest;
            place = self.highest(ready, view)?;
        }
        Some(place)
    }
}
