//! Vector clocks: for each thread, how many of its events are known to have happened.

use reweave_base::{Id, IndexVec};
use reweave_trace::ThreadId;

/// For each thread how many of its events, from its first on, come before some moment.
///
/// Such a set of events is closed under program order, so one number a thread says it all.
/// Threads past its end have 0.
#[derive(Clone, Debug, Default)]
pub struct VectorClock {
    times: Vec<u32>,
}

impl VectorClock {
    /// How many events of `thread` it holds.
    #[inline]
    #[must_use]
    pub fn get(&self, thread: ThreadId) -> u32 {
        self.times.get(thread.index()).copied().unwrap_or(0)
    }

    /// Adds one event of `thread`.
    #[inline]
    pub fn tick(&mut self, thread: ThreadId) {
        if thread.index() >= self.times.len() {
            self.times.resize(thread.index() + 1, 0);
        }
        self.times[thread.index()] += 1;
    }

    /// Adds all events of `other`.
    #[inline]
    pub fn join(&mut self, other: &Self) {
        if other.times.len() > self.times.len() {
            self.times.resize(other.times.len(), 0);
        }
        for (own, &theirs) in self.times.iter_mut().zip(&other.times) {
            *own = (*own).max(theirs);
        }
    }

    /// Makes it hold what `other` holds, in the memory it has.
    pub fn copy_from(&mut self, other: &Self) {
        self.times.clone_from(&other.times);
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.times.clear();
    }

    /// The numbers as a table, one a thread, up to the last thread it knows of.
    #[must_use]
    pub fn to_cut(&self) -> IndexVec<ThreadId, u32> {
        IndexVec::from_vec(self.times.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_holds_what_either_held() {
        let [t1, t2, t3] = [0, 1, 2].map(ThreadId::from_index);
        let (mut left, mut right) = (VectorClock::default(), VectorClock::default());
        left.tick(t1);
        left.tick(t1);
        right.tick(t3);
        right.tick(t1);
        left.join(&right);
        assert_eq!([t1, t2, t3].map(|thread| left.get(thread)), [2, 0, 1]);
    }
}
