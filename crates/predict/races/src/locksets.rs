//! Lock sets: which locks a thread holds, as one small number that is quick to compare.
//!
//! Two accesses made under one lock, not both in shared mode, never come together. There are few
//! different sets in a trace, so each is kept once; taking or giving back a lock leads from one to
//! another, which is remembered.

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::views::Mode;
use reweave_trace::{EventId, LockId, LockOp, Op, ThreadId, Trace};

reweave_base::id! {
    /// A set of locks that a thread holds.
    pub(crate) struct LocksetId;
}

/// The locks of a set, in order.
type Held = Box<[(LockId, Mode)]>;

/// What each thread holds after the events so far, and all sets that occurred.
#[derive(Debug)]
pub(crate) struct Locksets {
    sets: IndexVec<LocksetId, Held>,
    known: FxHashMap<Held, LocksetId>,
    steps: FxHashMap<(LocksetId, LockId, Mode, bool), LocksetId>,
    threads: IndexVec<ThreadId, LocksetId>,
    /// How often a thread took a lock that it holds already.
    depths: FxHashMap<(ThreadId, LockId, Mode), u32>,
}

impl Locksets {
    /// No thread of `trace` holds anything.
    pub(crate) fn new(trace: &Trace) -> Self {
        let nothing: Held = Box::default();
        let mut sets = IndexVec::new();
        let empty = sets.push(nothing.clone());
        Self {
            sets,
            known: [(nothing, empty)].into_iter().collect(),
            steps: FxHashMap::default(),
            threads: IndexVec::from_elem(empty, trace.names().threads.len()),
            depths: FxHashMap::default(),
        }
    }

    /// What `thread` holds.
    pub(crate) fn of_thread(&self, thread: ThreadId) -> LocksetId {
        self.threads[thread]
    }

    /// Takes the next event.
    pub(crate) fn step(&mut self, trace: &Trace, event: EventId) {
        let happening = trace.event(event);
        match happening.op {
            Op::Lock(LockOp::Acquire, lock) => self.enter(happening.thread, lock, Mode::Exclusive),
            Op::Lock(LockOp::AcquireShared, lock) => {
                self.enter(happening.thread, lock, Mode::Shared);
            }
            Op::Lock(LockOp::Release, lock) => self.leave(happening.thread, lock, Mode::Exclusive),
            Op::Lock(LockOp::ReleaseShared, lock) => {
                self.leave(happening.thread, lock, Mode::Shared);
            }
            _ => {}
        }
    }

    fn enter(&mut self, thread: ThreadId, lock: LockId, mode: Mode) {
        let depth = self.depths.entry((thread, lock, mode)).or_default();
        *depth += 1;
        if *depth == 1 {
            self.change(thread, lock, mode, true);
        }
    }

    fn leave(&mut self, thread: ThreadId, lock: LockId, mode: Mode) {
        let Some(depth) = self.depths.get_mut(&(thread, lock, mode)) else { return };
        *depth -= 1;
        if *depth == 0 {
            self.depths.remove(&(thread, lock, mode));
            self.change(thread, lock, mode, false);
        }
    }

    fn change(&mut self, thread: ThreadId, lock: LockId, mode: Mode, is_taken: bool) {
        let from = self.threads[thread];
        let step = (from, lock, mode, is_taken);
        let to = match self.steps.get(&step) {
            Some(&to) => to,
            None => {
                let to = self.changed(from, lock, mode, is_taken);
                self.steps.insert(step, to);
                to
            }
        };
        self.threads[thread] = to;
    }

    fn changed(&mut self, from: LocksetId, lock: LockId, mode: Mode, is_taken: bool) -> LocksetId {
        let mut held = self.sets[from].to_vec();
        if is_taken {
            let at = held.partition_point(|&(other, _)| other < lock);
            held.insert(at, (lock, mode));
        } else {
            held.retain(|&other| other != (lock, mode));
        }
        let held: Held = held.into();
        if let Some(&known) = self.known.get(&held) {
            return known;
        }
        let id = self.sets.push(held.clone());
        self.known.insert(held, id);
        id
    }

    /// Whether `set` holds `lock` alone.
    pub(crate) fn holds_alone(&self, set: LocksetId, lock: LockId) -> bool {
        self.sets[set].contains(&(lock, Mode::Exclusive))
    }

    /// The locks of `set`, in order.
    pub(crate) fn locks(&self, set: LocksetId) -> &[(LockId, Mode)] {
        &self.sets[set]
    }

    /// Whether two threads that hold these exclude each other.
    pub(crate) fn exclude(&self, left: LocksetId, right: LocksetId) -> bool {
        let (left, right) = (&self.sets[left], &self.sets[right]);
        let mut at = 0;
        for &(lock, mode) in left {
            at += right[at..].partition_point(|&(other, _)| other < lock);
            let same = right[at..].iter().take_while(|&&(other, _)| other == lock);
            if same
                .into_iter()
                .any(|&(_, other)| mode == Mode::Exclusive || other == Mode::Exclusive)
            {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reweave_base::Id;

    #[test]
    fn only_a_common_lock_that_one_holds_alone_excludes() {
        let trace = reweave_testkit::trace(
            "
            t1       t2       t3
            racq(m)
                     racq(m)
            acq(n)
            acq(n)
            rel(n)
                              acq(k)
            ",
        );
        let mut locksets = Locksets::new(&trace);
        for (id, _) in trace.events() {
            locksets.step(&trace, id);
        }
        let [t1, t2, t3] = [0, 1, 2].map(|at| locksets.of_thread(ThreadId::from_index(at)));
        let verdicts = [(t1, t2), (t1, t3), (t1, t1)].map(|(a, b)| locksets.exclude(a, b));
        assert_eq!(verdicts, [false, false, true]);
    }
}
