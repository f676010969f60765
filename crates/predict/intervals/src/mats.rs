//! Mutually atomic transactions (MATs) of two threads that have one way each.
//!
//! A MAT is a rectangle of the two threads' positions: the transaction of each thread from where
//! it begins to where it ends, such that only their last accesses depend on each other. One after
//! the other in either order is then all there is to tell between the two, and a thread need be
//! left only at the end of such a transaction, for the beginning of the other: [`Mat::switches`].
//!
//! [`generate`] finds them from the pair of entries on, as GenMAT and its improvement GenMAT' do
//! (Ganai and Wang, *Interval Analysis for Concurrent Trace Programs using Transaction Sequence
//! Graphs*, 2010, Algorithm 1). The second thread has priority. In two points it differs:
//!
//! - GenMAT' looks for rectangles that locks leave possible in both orders and in which no
//!   schedule takes one dependent pair this way and another that way. That is what the paper's
//!   example does; its Definition 2 would refuse that example.
//! - Where GenMAT' finds none, it takes what GenMAT takes. The algorithm as printed drops the
//!   pair, and with it schedules: a pair inside one thread's critical section before the other's
//!   acquire has no such rectangle.
//!
//! Promised, and tested by enumeration: for two threads whose last accesses depend on each other,
//! and that cannot block each other for good, every complete schedule is equivalent to one whose
//! switches are those of the MATs. [`Dummy`] provides such last accesses.
//!
//! Finding one MAT costs O(n/64 + rows of the rectangle), and for GenMAT' in the worst case the
//! cells between the pair and the rectangle's upper edge.

mod feasible;

use reweave_base::{FxHashMap, Id};
use reweave_trace::{LockId, ThreadId, VarId};

use self::feasible::Search;
use crate::ctp::{Action, Ctp, StepId};
use crate::lattice::bits::{self, Bits};
use crate::lattice::{Lattice, Line};

/// Whether the last accesses of two threads are made to depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dummy {
    /// They are as they are.
    None,
    /// If they do not, both threads get a write of a fresh variable after their end.
    WhereNeeded,
}

/// Which rectangles are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The first (GenMAT).
    First,
    /// The first that locks leave possible, or else the first (GenMAT').
    Feasible,
}

/// A mutually atomic transaction: positions of the first and the second thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mat {
    /// Where the two transactions begin.
    pub begin: (usize, usize),
    /// Where they end.
    pub end: (usize, usize),
}

impl Mat {
    /// The switch from the first thread to the second, and the one from the second to the first:
    /// from which position of one to which of the other.
    #[must_use]
    pub fn switches(self) -> [(usize, usize); 2] {
        [(self.end.0, self.begin.1), (self.end.1, self.begin.0)]
    }
}

/// What [`generate`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// The MATs as they were found.
    pub mats: Vec<Mat>,
    /// The pairs of positions that were looked at, in order.
    pub queue: Vec<(usize, usize)>,
    /// For each MAT, how long the queue was after it was found.
    pub queued: Vec<usize>,
}

/// Two threads of one way each: what depends on what, and what blocks what.
#[derive(Clone, Debug)]
pub struct Pair {
    /// How many accesses each thread has, a dummy included.
    pub ends: (usize, usize),
    /// Whether both threads have a dummy access.
    pub has_dummy: bool,
    /// For each access of the second thread the ones of the first that conflict with it.
    conflicts: Bits,
    /// Those of them after both of which the threads can be.
    dependent: Bits,
    /// For each access of the second thread the last of the first that it depends on.
    last_dependent: Vec<Option<usize>>,
    /// For each position of the second thread those of the first it can be at together with.
    reach: Bits,
    /// For each position of the second thread the accesses of the first that it blocks.
    blocked_first: Bits,
    /// For each position of the first thread the accesses of the second that it blocks.
    blocked_second: Bits,
}

impl Pair {
    /// The pair of `threads`, whose lines are given.
    #[must_use]
    pub fn new(
        ctp: &Ctp,
        lattice: &Lattice,
        threads: (ThreadId, ThreadId),
        lines: (&Line, &Line),
        dummy: Dummy,
    ) -> Self {
        let plain = Self::build(ctp, lattice, threads, lines, false);
        let last = (plain.ends.0.checked_sub(1), plain.ends.1.checked_sub(1));
        let is_dependent = matches!(last, (Some(first), Some(second))
            if plain.dependent.has(second, first));
        if is_dependent || dummy == Dummy::None {
            return plain;
        }
        Self::build(ctp, lattice, threads, lines, true)
    }

    fn build(
        ctp: &Ctp,
        lattice: &Lattice,
        threads: (ThreadId, ThreadId),
        lines: (&Line, &Line),
        has_dummy: bool,
    ) -> Self {
        let more = usize::from(has_dummy);
        let ends = (lines.0.end() + more, lines.1.end() + more);
        let reach = reach(lattice, threads, lines, ends);
        let masks = Masks::new(ctp, &lines.0.accesses, ends.0);
        let mut conflicts = Bits::new(ends.1, ends.0);
        for (index, &id) in lines.1.accesses.iter().enumerate() {
            if let Some(mask) = masks.conflicting(ctp.steps[id].action) {
                bits::unite(conflicts.row_mut(index), mask);
            }
        }
        if has_dummy {
            conflicts.set(ends.1 - 1, ends.0 - 1);
        }
        let mut dependent = Bits::new(ends.1, ends.0);
        for second in 0..ends.1 {
            let mut start = 0;
            while let Some(first) = conflicts.first_from(second, start) {
                if reach.has(second + 1, first + 1) {
                    dependent.set(second, first);
                }
                start = first + 1;
            }
        }
        let last_dependent = (0..ends.1).map(|second| dependent.last(second)).collect();
        let others = Masks::new(ctp, &lines.1.accesses, ends.1);
        let flipped = (threads.1, threads.0);
        let blocked_first = blocked(lattice, threads, (lines.1, ends), &masks);
        let blocked_second = blocked(lattice, flipped, (lines.0, (ends.1, ends.0)), &others);
        Self {
            ends,
            has_dummy,
            conflicts,
            dependent,
            last_dependent,
            reach,
            blocked_first,
            blocked_second,
        }
    }

    /// Whether access `first` of the first thread and `second` of the second depend on each
    /// other.
    #[must_use]
    pub fn is_dependent(&self, first: usize, second: usize) -> bool {
        self.dependent.has(second, first)
    }

    /// Whether they conflict, reachable or not.
    #[must_use]
    pub fn is_conflict(&self, first: usize, second: usize) -> bool {
        self.conflicts.has(second, first)
    }

    /// Whether the threads can be at these positions together.
    #[must_use]
    pub fn is_reachable(&self, first: usize, second: usize) -> bool {
        self.reach.has(second, first)
    }

    /// Whether the second thread, at position `second`, blocks access `first` of the first.
    #[must_use]
    pub fn is_first_blocked(&self, first: usize, second: usize) -> bool {
        self.blocked_first.has(second, first)
    }

    /// Whether the first thread, at position `first`, blocks access `second` of the second.
    #[must_use]
    pub fn is_second_blocked(&self, first: usize, second: usize) -> bool {
        self.blocked_second.has(first, second)
    }

    /// The first dependent pair from `begin` on, the second thread's access first.
    fn first_dependent(&self, begin: (usize, usize)) -> Option<(usize, usize)> {
        (begin.1..self.ends.1)
            .find(|&second| self.last_dependent[second].is_some_and(|last| last >= begin.0))
            .and_then(|second| Some((self.dependent.first_from(second, begin.0)?, second)))
    }
}

fn reach(
    lattice: &Lattice,
    threads: (ThreadId, ThreadId),
    lines: (&Line, &Line),
    ends: (usize, usize),
) -> Bits {
    let pairs = lattice.reach(threads.1, threads.0);
    let mut reach = Bits::new(ends.1 + 1, ends.0 + 1);
    for second in 0..=ends.1 {
        let row = pairs.row(lines.1.station(second));
        for first in 0..=ends.0 {
            if bits::has(row, lines.0.station(first).index()) {
                reach.set(second, first);
            }
        }
    }
    reach
}

/// For each position of the second thread the accesses of the first that it blocks.
fn blocked(
    lattice: &Lattice,
    (first, second): (ThreadId, ThreadId),
    (line, ends): (&Line, (usize, usize)),
    masks: &Masks,
) -> Bits {
    let stations = lattice.stations(second);
    let may_start = lattice.after_fork(second, first);
    let mut blocked = Bits::new(ends.1 + 1, ends.0);
    for position in 0..=ends.1 {
        let station = line.station(position);
        let mut lock = 0;
        while let Some(index) = bits::first_from(stations.held(station), lock) {
            if let Some(mask) = masks.acquires.get(&LockId::from_index(index)) {
                bits::unite(blocked.row_mut(position), mask);
            }
            lock = index + 1;
        }
        if !stations.is_end(station)
            && let Some(mask) = masks.joins.get(&second)
        {
            bits::unite(blocked.row_mut(position), mask);
        }
        if ends.0 > 0 && may_start.as_ref().is_some_and(|after| !after[station.index()]) {
            blocked.set(position, 0);
        }
    }
    blocked
}

/// The accesses of a thread, one bit each, by what they are to.
struct Masks {
    writes: FxHashMap<VarId, Vec<u64>>,
    accesses: FxHashMap<VarId, Vec<u64>>,
    locks: FxHashMap<LockId, Vec<u64>>,
    acquires: FxHashMap<LockId, Vec<u64>>,
    joins: FxHashMap<ThreadId, Vec<u64>>,
}

impl Masks {
    fn new(ctp: &Ctp, accesses: &[StepId], count: usize) -> Self {
        let mut masks = Self {
            writes: FxHashMap::default(),
            accesses: FxHashMap::default(),
            locks: FxHashMap::default(),
            acquires: FxHashMap::default(),
            joins: FxHashMap::default(),
        };
        let empty = || vec![0; count.div_ceil(64)];
        for (index, &id) in accesses.iter().enumerate() {
            let add = |mask: &mut Vec<u64>| mask[index / 64] |= 1 << (index % 64);
            match ctp.steps[id].action {
                Action::Read(var) => add(masks.accesses.entry(var).or_insert_with(empty)),
                Action::Write(var) | Action::Update(var) => {
                    add(masks.accesses.entry(var).or_insert_with(empty));
                    add(masks.writes.entry(var).or_insert_with(empty));
                }
                Action::Acquire(lock) => {
                    add(masks.locks.entry(lock).or_insert_with(empty));
                    add(masks.acquires.entry(lock).or_insert_with(empty));
                }
                Action::Release(lock) => add(masks.locks.entry(lock).or_insert_with(empty)),
                Action::Join(thread) => add(masks.joins.entry(thread).or_insert_with(empty)),
                Action::Local | Action::Fork(_) => {}
            }
        }
        masks
    }

    /// The accesses that conflict with `action` of another thread.
    fn conflicting(&self, action: Action) -> Option<&Vec<u64>> {
        match action {
            Action::Read(var) => self.writes.get(&var),
            Action::Write(var) | Action::Update(var) => self.accesses.get(&var),
            Action::Acquire(lock) | Action::Release(lock) => self.locks.get(&lock),
            Action::Local | Action::Fork(_) | Action::Join(_) => None,
        }
    }
}

/// The MATs of `pair`.
#[must_use]
pub fn generate(pair: &Pair, choice: Choice) -> Generated {
    let mut found = Generated { queue: vec![(0, 0)], ..Generated::default() };
    let mut seen = Bits::new(pair.ends.1 + 1, pair.ends.0 + 1);
    seen.set(0, 0);
    let mut search = Search::new(pair);
    let mut next = 0;
    while let Some(&begin) = found.queue.get(next) {
        next += 1;
        let Some(first) = pair.first_dependent(begin) else { continue };
        let last = match choice {
            Choice::First => first,
            Choice::Feasible => search.first_feasible(begin, first).unwrap_or(first),
        };
        let end = (last.0 + 1, last.1 + 1);
        found.mats.push(Mat { begin, end });
        for (first, second) in [(end.0, begin.1), (begin.0, end.1), end] {
            let is_open = first < pair.ends.0 && second < pair.ends.1;
            if is_open && pair.is_reachable(first, second) && !seen.has(second, first) {
                seen.set(second, first);
                found.queue.push((first, second));
            }
        }
        found.queued.push(found.queue.len());
    }
    found
}
