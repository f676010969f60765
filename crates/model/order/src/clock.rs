//! Vector clocks: for each thread, how many of its events are known to have happened.
//!
//! A clock is a table with a number for each thread, so that joining two is one pass that the
//! compiler turns into vector instructions. Where threads are many and a clock knows of few, the
//! table ends early and what lies beyond is a short list: a thread that met only the one that
//! forked it pays for two entries, not for ten thousand. Nothing is allocated once a clock knows
//! of all the threads that it will.

use reweave_base::{Id, IndexVec};
use reweave_trace::{EventId, ThreadId, Trace};

use crate::cp;
use crate::hb::HappensBefore;

/// So many threads are always in the table.
const NEAR: usize = 64;

/// The list becomes part of the table when one in so many of the new entries would be used.
const SPARSENESS: usize = 8;

/// For each thread how many of its events, from its first on, come before some moment.
///
/// Such a set of events is closed under program order, so one number a thread says it all.
/// Threads that it does not know of have 0.
#[derive(Clone, Debug, Default)]
pub struct VectorClock {
    /// Of the first threads, one number each.
    times: Vec<u32>,
    /// Of some threads beyond, in ascending order.
    far: Vec<(ThreadId, u32)>,
}

impl VectorClock {
    /// How many events of `thread` it holds.
    #[inline]
    #[must_use]
    pub fn get(&self, thread: ThreadId) -> u32 {
        match self.times.get(thread.index()) {
            Some(&time) => time,
            None => self.get_far(thread),
        }
    }

    /// Makes it hold `time` events of `thread`, whatever it held before.
    #[inline]
    pub fn set(&mut self, thread: ThreadId, time: u32) {
        *self.slot(thread) = time;
    }

    /// Makes it hold at least `time` events of `thread`.
    #[inline]
    pub fn raise(&mut self, thread: ThreadId, time: u32) {
        let own = self.slot(thread);
        *own = (*own).max(time);
    }

    /// Adds one event of `thread`.
    #[inline]
    pub fn tick(&mut self, thread: ThreadId) {
        *self.slot(thread) += 1;
    }

    /// Adds all events of `other`.
    #[inline]
    pub fn join(&mut self, other: &Self) {
        if other.times.len() > self.times.len() {
            self.extend(other.times.len());
        }
        for (own, &theirs) in self.times.iter_mut().zip(&other.times) {
            *own = (*own).max(theirs);
        }
        if !other.far.is_empty() {
            self.join_far(other);
        }
    }

    /// Whether it holds all events of `other`.
    #[inline]
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let common = self.times.len().min(other.times.len());
        let pairs = self.times[..common].iter().zip(&other.times[..common]);
        // No early exit: it would keep the compiler from using vector instructions.
        let is_missing = pairs.fold(false, |missing, (own, theirs)| missing | (theirs > own));
        !is_missing
            && (other.times.len() == common && other.far.is_empty()
                || other.entries_from(common).all(|(thread, time)| time <= self.get(thread)))
    }

    /// Makes it hold what `other` holds, in the memory it has.
    #[inline]
    pub fn copy_from(&mut self, other: &Self) {
        self.times.clone_from(&other.times);
        if !(self.far.is_empty() && other.far.is_empty()) {
            self.far.clone_from(&other.far);
        }
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.times.clear();
        self.far.clear();
    }

    /// The threads of which it holds events, in ascending order, each with how many.
    pub fn entries(&self) -> impl Iterator<Item = (ThreadId, u32)> {
        self.entries_from(0)
    }

    /// The numbers as a table, one per thread, up to the last thread it knows of.
    #[must_use]
    pub fn to_cut(&self) -> IndexVec<ThreadId, u32> {
        let mut whole = self.clone();
        if let Some(&(last, _)) = self.far.last() {
            whole.extend(last.index() + 1);
        }
        IndexVec::from_vec(whole.times)
    }

    fn entries_from(&self, start: usize) -> impl Iterator<Item = (ThreadId, u32)> {
        let near = self.times.iter().enumerate().skip(start);
        let near = near.map(|(index, &time)| (ThreadId::from_index(index), time));
        near.chain(self.far.iter().copied()).filter(|&(_, time)| time > 0)
    }

    /// The number of `thread`, to change it.
    #[inline]
    fn slot(&mut self, thread: ThreadId) -> &mut u32 {
        if thread.index() >= self.times.len() {
            return self.slot_far(thread);
        }
        &mut self.times[thread.index()]
    }

    #[cold]
    fn get_far(&self, thread: ThreadId) -> u32 {
        let at = self.far.binary_search_by_key(&thread, |&(thread, _)| thread);
        at.map_or(0, |at| self.far[at].1)
    }

    #[cold]
    fn slot_far(&mut self, thread: ThreadId) -> &mut u32 {
        if thread.index() < NEAR {
            self.extend(thread.index() + 1);
            return &mut self.times[thread.index()];
        }
        let at = match self.far.binary_search_by_key(&thread, |&(thread, _)| thread) {
            Ok(at) => at,
            Err(at) => {
                self.far.insert(at, (thread, 0));
                self.absorb();
                at
            }
        };
        match self.times.get_mut(thread.index()) {
            Some(time) => time,
            None => &mut self.far[at].1,
        }
    }

    /// Makes the table hold `count` threads and takes those of them out of the list.
    #[cold]
    fn extend(&mut self, count: usize) {
        self.times.resize(count, 0);
        let covered = self.far.partition_point(|(thread, _)| thread.index() < count);
        for (thread, time) in self.far.drain(..covered) {
            self.times[thread.index()] = time;
        }
    }

    /// Moves the list into the table if that does not leave most of it empty.
    fn absorb(&mut self) {
        if let Some(&(last, _)) = self.far.last()
            && last.index() < self.times.len() + SPARSENESS * self.far.len()
        {
            self.extend(last.index() + 1);
        }
    }

    /// Adds the events of `other` that are in its list.
    #[cold]
    fn join_far(&mut self, other: &Self) {
        let within = other.far.partition_point(|(thread, _)| thread.index() < self.times.len());
        let (within, beyond) = other.far.split_at(within);
        for &(thread, time) in within {
            let own = &mut self.times[thread.index()];
            *own = (*own).max(time);
        }
        let mut missing = Vec::new();
        let mut at = 0;
        for &(thread, time) in beyond {
            while self.far.get(at).is_some_and(|&(own, _)| own < thread) {
                at += 1;
            }
            match self.far.get_mut(at) {
                Some(own) if own.0 == thread => own.1 = own.1.max(time),
                _ => missing.push((thread, time)),
            }
        }
        if !missing.is_empty() {
            self.far.extend(missing);
            self.far.sort_unstable_by_key(|&(thread, _)| thread);
            self.absorb();
        }
    }
}

/// Clocks are equal when they hold the same events.
impl PartialEq for VectorClock {
    fn eq(&self, other: &Self) -> bool {
        self.entries().eq(other.entries())
    }
}

impl Eq for VectorClock {}

/// What happens before an event, and what of that comes before it by a weaker order.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClockPair {
    pub(crate) happened: VectorClock,
    pub(crate) causal: VectorClock,
}

impl ClockPair {
    pub(crate) fn join(&mut self, other: &Self) {
        self.happened.join(&other.happened);
        self.causal.join(&other.causal);
    }

    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.happened.copy_from(&other.happened);
        self.causal.copy_from(&other.causal);
    }

    pub(crate) fn clear(&mut self) {
        self.happened.clear();
        self.causal.clear();
    }

    /// Adds what comes along an edge that is of both orders.
    pub(crate) fn receive(&mut self, sent: &VectorClock) {
        self.happened.join(sent);
        self.causal.join(sent);
    }
}

/// An order whose clocks are computed event by event.
pub trait Clocks {
    /// Takes the next event of `trace` in observed order and gives the clock that it is tested
    /// against as an access: an earlier access of another thread comes before it exactly if that
    /// access's number in its thread, counted from 1, is at most the clock at that thread.
    fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock;
}

impl Clocks for HappensBefore {
    #[inline]
    fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        Self::advance(self, trace, event)
    }
}

impl Clocks for cp::Clocks<'_> {
    #[inline]
    fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        Self::advance(self, trace, event)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn thread(index: usize) -> ThreadId {
        ThreadId::from_index(index)
    }

    #[test]
    fn a_join_holds_what_either_held() {
        let [t1, t2, t3] = [0, 1, 2].map(thread);
        let (mut left, mut right) = (VectorClock::default(), VectorClock::default());
        left.tick(t1);
        left.tick(t1);
        right.tick(t3);
        right.tick(t1);
        left.join(&right);
        assert_eq!([t1, t2, t3].map(|thread| left.get(thread)), [2, 0, 1]);
    }

    #[test]
    fn a_thread_among_many_pays_for_those_it_met() {
        let mut clock = VectorClock::default();
        clock.tick(thread(9_999));
        let mut main = VectorClock::default();
        main.tick(thread(0));
        clock.join(&main);
        assert_eq!((clock.times.len(), clock.far.len()), (1, 1));
        assert_eq!(clock.to_cut().len(), 10_000);
    }

    #[test]
    fn a_thread_that_met_many_has_a_table() {
        let mut clock = VectorClock::default();
        for index in (0..10_000).rev() {
            clock.tick(thread(index));
        }
        assert_eq!((clock.times.len(), clock.far.len()), (10_000, 0));
    }

    /// A clock and what it should hold.
    type Model = BTreeMap<usize, u32>;

    fn clocks() -> impl Strategy<Value = (VectorClock, Model)> {
        // Threads near the start, near each other, and far apart.
        let index = prop_oneof![0..8_usize, 60..90_usize, 0..1_000_usize, 9_000..10_000_usize];
        let entries = proptest::collection::vec((index, 0..4_u32), 0..40);
        entries.prop_map(|entries| {
            let mut clock = VectorClock::default();
            for &(index, time) in &entries {
                clock.set(thread(index), time);
            }
            (clock, entries.into_iter().collect())
        })
    }

    fn held(clock: &VectorClock) -> Model {
        clock.entries().map(|(thread, time)| (thread.index(), time)).collect()
    }

    fn without_zeros(mut model: Model) -> Model {
        model.retain(|_, time| *time > 0);
        model
    }

    proptest! {
        #[test]
        fn a_clock_is_a_map_from_threads_to_numbers(
            (left, left_model) in clocks(),
            (right, right_model) in clocks(),
        ) {
            prop_assert_eq!(held(&left), without_zeros(left_model.clone()));
            let cut = left.to_cut();
            for index in 0..10_001 {
                let expected = left_model.get(&index).copied().unwrap_or(0);
                prop_assert_eq!(left.get(thread(index)), expected);
                prop_assert_eq!(cut.get(thread(index)).copied().unwrap_or(0), expected);
            }
            let covered = right_model.iter().all(|(&index, &time)| time <= left.get(thread(index)));
            prop_assert_eq!(left.covers(&right), covered);
            prop_assert_eq!(left == right, held(&left) == held(&right));

            let mut joined = left.clone();
            joined.join(&right);
            let mut model = left_model;
            for (index, time) in right_model {
                let own = model.entry(index).or_default();
                *own = time.max(*own);
            }
            prop_assert_eq!(held(&joined), without_zeros(model));
            prop_assert!(joined.covers(&left) && joined.covers(&right));

            let mut raised = left.clone();
            for (thread, time) in right.entries() {
                raised.raise(thread, time);
            }
            prop_assert_eq!(&raised, &joined);
            raised.copy_from(&right);
            prop_assert_eq!(&raised, &right);
        }
    }
}
