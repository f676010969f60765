//! Mutually atomic transactions (MATs) of two straight-line threads.
//!
//! A MAT is a rectangle of the two threads' positions: the transaction of each thread from where
//! it begins to where it ends, such that only their last accesses depend on each other. One after
//! the other in either order is then all that can differ between the two, and a thread need be
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

use reweave_base::{BitRows, FxHashMap, Id, bits};
use reweave_trace::{LockId, ThreadId, VarId};

use crate::ctp::{Action, Ctp, StepId};
use crate::lattice::{Lattice, StraightLine};

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

/// Two straight-line threads: what depends on what, and what blocks what.
#[derive(Clone, Debug)]
pub struct Pair {
    /// How many accesses each thread has, a dummy included.
    pub ends: (usize, usize),
    /// Whether both threads have a dummy access.
    pub has_dummy: bool,
    /// For each access of the second thread the ones of the first that conflict with it.
    conflicts: BitRows,
    /// Those of them after both of which the threads can be.
    dependent: BitRows,
    /// For each access of the second thread the last of the first that it depends on.
    last_dependent: Vec<Option<usize>>,
    /// For each position of the second thread those of the first it can be at together with.
    reach: BitRows,
    /// For each position of the second thread the accesses of the first that it blocks.
    blocked_first: BitRows,
    /// For each position of the first thread the accesses of the second that it blocks.
    blocked_second: BitRows,
}

impl Pair {
    /// The pair of `threads`, whose lines are given.
    pub fn new(
        ctp: &Ctp,
        lattice: &Lattice,
        threads: (ThreadId, ThreadId),
        lines: (&StraightLine, &StraightLine),
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
        lines: (&StraightLine, &StraightLine),
        has_dummy: bool,
    ) -> Self {
        let more = usize::from(has_dummy);
        let ends = (lines.0.end() + more, lines.1.end() + more);
        let reach = reach(lattice, threads, lines, ends);
        let masks = Masks::new(ctp, &lines.0.accesses, ends.0);
        let mut conflicts = BitRows::new(ends.1, ends.0);
        for (index, &id) in lines.1.accesses.iter().enumerate() {
            if let Some(mask) = masks.conflicting(ctp.steps[id].action) {
                bits::unite(conflicts.row_mut(index), mask);
            }
        }
        if has_dummy {
            conflicts.set(ends.1 - 1, ends.0 - 1);
        }
        let mut dependent = BitRows::new(ends.1, ends.0);
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
    pub fn is_dependent(&self, first: usize, second: usize) -> bool {
        self.dependent.has(second, first)
    }

    /// Whether they conflict, reachable or not.
    pub fn is_conflict(&self, first: usize, second: usize) -> bool {
        self.conflicts.has(second, first)
    }

    /// Whether the threads can be at these positions together.
    pub fn is_reachable(&self, first: usize, second: usize) -> bool {
        self.reach.has(second, first)
    }

    /// Whether the second thread, at position `second`, blocks access `first` of the first.
    pub fn is_first_blocked(&self, first: usize, second: usize) -> bool {
        self.blocked_first.has(second, first)
    }

    /// Whether the first thread, at position `first`, blocks access `second` of the second.
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
    lines: (&StraightLine, &StraightLine),
    ends: (usize, usize),
) -> BitRows {
    let pairs = lattice.reach(threads.1, threads.0);
    let mut reach = BitRows::new(ends.1 + 1, ends.0 + 1);
    for second in 0..=ends.1 {
        let row = pairs.row(lines.1.location(second));
        for first in 0..=ends.0 {
            if bits::has(row, lines.0.location(first).index()) {
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
    (line, ends): (&StraightLine, (usize, usize)),
    masks: &Masks,
) -> BitRows {
    let locations = lattice.locations(second);
    let may_start = lattice.after_fork(second, first);
    let mut blocked = BitRows::new(ends.1 + 1, ends.0);
    for position in 0..=ends.1 {
        let location = line.location(position);
        let mut lock = 0;
        while let Some(index) = bits::first_from(locations.held(location), lock) {
            if let Some(mask) = masks.acquires.get(&LockId::from_index(index)) {
                bits::unite(blocked.row_mut(position), mask);
            }
            lock = index + 1;
        }
        if !locations.is_end(location)
            && let Some(mask) = masks.joins.get(&second)
        {
            bits::unite(blocked.row_mut(position), mask);
        }
        if ends.0 > 0 && may_start.as_ref().is_some_and(|after| !after[location.index()]) {
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
pub fn generate(pair: &Pair, choice: Choice) -> Generated {
    let mut found = Generated { queue: vec![(0, 0)], ..Generated::default() };
    let mut seen = BitRows::new(pair.ends.1 + 1, pair.ends.0 + 1);
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
        // Where the processor can be next: after one of the two transactions, or after both.
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

// The first rectangle from a pair of positions that locks leave possible.
//
// A rectangle is *feasible* if its last accesses depend on each other, if either transaction can
// run as a whole before the other, and if no path through it makes the first thread come first
// in one conflicting pair and the second in another.
//
// A conflicting pair is decided when the second of its accesses is made, and then by the path so
// far, not by the rectangle. So one sweep from the lower corner, row by row, finds for every cell
// which decisions the paths to it have made, and serves all rectangles of that corner.

/// Which sets of decisions the paths to a cell have made, one bit for each of the four sets.
type Decisions = u8;

/// Nothing was decided yet.
const UNDECIDED: Decisions = 0b0001;
/// The first thread came first somewhere and the second elsewhere.
const MIXED: Decisions = 0b1000;

/// `from` after one more decision for the first thread: a set's bit moves where that is added.
const fn decide_first(from: Decisions) -> Decisions {
    (from & 0b0101) << 1 | from & 0b1010
}

/// `from` after one more decision for the second thread.
const fn decide_second(from: Decisions) -> Decisions {
    (from & 0b0011) << 2 | from & 0b1100
}

/// The buffers of the sweep, used again and again.
struct Search<'a> {
    pair: &'a Pair,
    row: Vec<Decisions>,
    /// For each access of the first thread, whether it conflicts with one of the rows below.
    is_hit: Vec<bool>,
}

impl<'a> Search<'a> {
    const fn new(pair: &'a Pair) -> Self {
        Self { pair, row: Vec::new(), is_hit: Vec::new() }
    }

    /// The first dependent pair from `begin` on that ends a feasible rectangle; `first` is the
    /// first dependent pair.
    fn first_feasible(
        &mut self,
        begin: (usize, usize),
        first: (usize, usize),
    ) -> Option<(usize, usize)> {
        let pair = self.pair;
        // A thread must come to its end while the other is at its beginning.
        let limit = (
            pair.blocked_first.first_from(begin.1, begin.0).unwrap_or(pair.ends.0),
            pair.blocked_second.first_from(begin.0, begin.1).unwrap_or(pair.ends.1),
        );
        if limit.0 == begin.0 || limit.1 == begin.1 {
            return None;
        }
        if first.0 < limit.0 && first.1 < limit.1 && self.is_plain(begin, first) {
            return Some(first);
        }
        self.sweep(begin, limit)
    }

    /// Whether the rectangle that `last` ends is feasible since it has no other conflict.
    fn is_plain(&self, begin: (usize, usize), last: (usize, usize)) -> bool {
        let conflicts = &self.pair.conflicts;
        let is_alone = (begin.1..=last.1).all(|second| {
            let first = conflicts.first_from(second, begin.0);
            first.is_none_or(|first| first > last.0 || (first, second) == last)
        });
        is_alone && self.runs_whole(begin, last)
    }

    /// Whether each transaction can also run after the other.
    fn runs_whole(&self, begin: (usize, usize), last: (usize, usize)) -> bool {
        let pair = self.pair;
        let second_free = pair.blocked_second.first_from(last.0 + 1, begin.1);
        let first_free = pair.blocked_first.first_from(last.1 + 1, begin.0);
        second_free.is_none_or(|blocked| blocked > last.1)
            && first_free.is_none_or(|blocked| blocked > last.0)
    }

    fn sweep(&mut self, begin: (usize, usize), limit: (usize, usize)) -> Option<(usize, usize)> {
        let width = limit.0 - begin.0;
        self.row.clear();
        self.row.resize(width + 1, 0);
        self.row[0] = UNDECIDED;
        self.is_hit.clear();
        self.is_hit.resize(width, false);
        self.sweep_row(begin, begin.1);
        for second in begin.1..limit.1 {
            self.climb(begin, second);
            self.sweep_row(begin, second + 1);
            let mut start = begin.0;
            while let Some(first) = self.pair.dependent.first_from(second, start) {
                if first >= limit.0 {
                    break;
                }
                let cell = self.row[first + 1 - begin.0];
                if cell != 0 && cell & MIXED == 0 && self.runs_whole(begin, (first, second)) {
                    return Some((first, second));
                }
                start = first + 1;
            }
        }
        None
    }

    /// Takes the second thread's access `second` from every cell of the row.
    fn climb(&mut self, begin: (usize, usize), second: usize) {
        let conflicts = &self.pair.conflicts;
        let mut has_decided = false;
        for (offset, cell) in self.row.iter_mut().enumerate() {
            let first = begin.0 + offset;
            if self.pair.blocked_second.has(first, second) {
                *cell = 0;
            } else if has_decided {
                *cell = decide_first(*cell);
            }
            if offset < self.is_hit.len() && conflicts.has(second, first) {
                self.is_hit[offset] = true;
                has_decided = true;
            }
        }
    }

    /// Takes the first thread's accesses along the row, while the second is at `second`.
    fn sweep_row(&mut self, begin: (usize, usize), second: usize) {
        for offset in 0..self.is_hit.len() {
            let cell = self.row[offset];
            if cell == 0 || self.pair.blocked_first.has(second, begin.0 + offset) {
                continue;
            }
            self.row[offset + 1] |= if self.is_hit[offset] { decide_second(cell) } else { cell };
        }
    }
}
