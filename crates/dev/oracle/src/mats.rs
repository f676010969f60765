//! Mutually atomic transactions (MATs) of two threads: the tables in full, and every path of a
//! rectangle.
//!
//! Ganai and Wang, "Interval analysis for concurrent trace programs using transaction sequence
//! graphs" (2010), Algorithm 1.

use reweave_trace::{LockId, ThreadId, VarId};

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads a variable.
    Read(VarId),
    /// Writes a variable, or reads and writes it as one access.
    Write(VarId),
    /// Takes a lock.
    Acquire(LockId),
    /// Releases a lock.
    Release(LockId),
    /// Starts a thread.
    Fork(ThreadId),
    /// Waits for a thread to end.
    Join(ThreadId),
    /// Anything else.
    Other,
}

/// Which rectangles are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The first (GenMAT).
    First,
    /// The first that locks leave possible, or else the first (GenMAT').
    Feasible,
}

/// A mutually atomic transaction: where the two transactions begin and end.
pub type Mat = [(usize, usize); 2];

/// What was found, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// The MATs, in the order in which they were found.
    pub mats: Vec<Mat>,
    /// The pairs of positions that MATs begin at, in the order in which they were found.
    pub queue: Vec<(usize, usize)>,
    /// For each MAT how many pairs were found by then.
    pub queued: Vec<usize>,
}

/// Two threads of one way each, by what their accesses do.
#[derive(Clone, Debug)]
pub struct Threads {
    /// Which threads they are.
    pub ids: [ThreadId; 2],
    /// Their accesses.
    pub accesses: [Vec<Access>; 2],
}

impl Threads {
    /// Whether `lock` is held by thread `side` at `position`.
    fn holds(&self, side: usize, position: usize, lock: LockId) -> bool {
        let last = self.accesses[side][..position]
            .iter()
            .rev()
            .find(|&&action| action == Access::Acquire(lock) || action == Access::Release(lock));
        last == Some(&Access::Acquire(lock))
    }

    /// Whether thread `side` can make its next access, both being at `positions`.
    #[must_use]
    pub fn is_enabled(&self, side: usize, positions: [usize; 2]) -> bool {
        let (own, other) = (positions[side], positions[1 - side]);
        let fork = Access::Fork(self.ids[side]);
        let forked = self.accesses[1 - side].iter().position(|&action| action == fork);
        if own == 0 && forked.is_some_and(|fork| other <= fork) {
            return false;
        }
        match self.accesses[side].get(own) {
            None => false,
            Some(&Access::Acquire(lock)) => !self.holds(1 - side, other, lock),
            Some(&Access::Join(child)) if child == self.ids[1 - side] => {
                other == self.accesses[1 - side].len()
            }
            Some(_) => true,
        }
    }

    /// Whether two accesses conflict.
    #[must_use]
    pub fn is_conflict(&self, first: usize, second: usize) -> bool {
        let (first, second) = (self.accesses[0][first], self.accesses[1][second]);
        let var = |action| match action {
            Access::Read(var) => Some((var, false)),
            Access::Write(var) => Some((var, true)),
            _ => None,
        };
        let lock = |action| match action {
            Access::Acquire(lock) | Access::Release(lock) => Some(lock),
            _ => None,
        };
        match (var(first), var(second)) {
            (Some((left, writes)), Some((right, also))) => left == right && (writes || also),
            _ => lock(first).is_some() && lock(first) == lock(second),
        }
    }

    /// For each position of the first thread and each of the second, whether they can be at both.
    #[must_use]
    pub fn reach(&self) -> Vec<Vec<bool>> {
        let [rows, columns] = [0, 1].map(|side| self.accesses[side].len() + 1);
        let mut reach = vec![vec![false; columns]; rows];
        reach[0][0] = true;
        for first in 0..rows {
            for second in 0..columns {
                if reach[first][second] && self.is_enabled(0, [first, second]) {
                    reach[first + 1][second] = true;
                }
                if reach[first][second] && self.is_enabled(1, [first, second]) {
                    reach[first][second + 1] = true;
                }
            }
        }
        reach
    }

    /// Whether the rectangle is feasible, by all its paths.
    fn is_feasible(&self, begin: [usize; 2], end: [usize; 2]) -> bool {
        let paths = self.paths(begin, end);
        let runs = [0, 1].map(|side| {
            let lengths = [end[0] - begin[0], end[1] - begin[1]];
            let mut run = vec![side; lengths[side]];
            run.extend(vec![1 - side; lengths[1 - side]]);
            paths.contains(&run)
        });
        runs[0] && runs[1] && !paths.iter().any(|path| self.is_mixed(begin, end, path))
    }

    /// The paths from `begin` to `end` that nothing blocks: who makes each access.
    fn paths(&self, begin: [usize; 2], end: [usize; 2]) -> Vec<Vec<usize>> {
        let mut found = Vec::new();
        let mut open = vec![(begin, Vec::new())];
        while let Some((at, path)) = open.pop() {
            if at == end {
                found.push(path);
                continue;
            }
            for side in [0, 1] {
                if at[side] < end[side] && self.is_enabled(side, at) {
                    let (mut next, mut longer) = (at, path.clone());
                    next[side] += 1;
                    longer.push(side);
                    open.push((next, longer));
                }
            }
        }
        found
    }

    fn is_mixed(&self, begin: [usize; 2], end: [usize; 2], path: &[usize]) -> bool {
        let time = |side: usize, access: usize| {
            let turns = path.iter().enumerate().filter(|(_, turn)| **turn == side);
            turns.map(|(time, _)| time).nth(access - begin[side])
        };
        let mut is_first = [false, false];
        for first in begin[0]..end[0] {
            for second in begin[1]..end[1] {
                if self.is_conflict(first, second) {
                    is_first[usize::from(time(0, first) > time(1, second))] = true;
                }
            }
        }
        is_first[0] && is_first[1]
    }
}

/// The MATs of two threads.
#[must_use]
pub fn generate(threads: &Threads, choice: Choice) -> Generated {
    let reach = threads.reach();
    let ends = [0, 1].map(|side| threads.accesses[side].len());
    let mut dependent = Vec::new();
    for second in 0..ends[1] {
        for first in 0..ends[0] {
            if threads.is_conflict(first, second) && reach[first + 1][second + 1] {
                dependent.push((first, second));
            }
        }
    }
    let mut found = Generated { queue: vec![(0, 0)], ..Generated::default() };
    let mut next = 0;
    while next < found.queue.len() {
        let begin = found.queue[next];
        next += 1;
        let mut after = dependent
            .iter()
            .map(|&(first, second)| ((first + 1), (second + 1)))
            .filter(|&(first, second)| first > begin.0 && second > begin.1);
        let Some(old) = after.clone().next() else { continue };
        let mut end = old;
        if choice == Choice::Feasible {
            let is_feasible = |&(first, second): &(usize, usize)| {
                threads.is_feasible([begin.0, begin.1], [first, second])
            };
            end = after.find(is_feasible).unwrap_or(old);
        }
        found.mats.push([begin, end]);
        for pair in [(end.0, begin.1), (begin.0, end.1), end] {
            let is_open = pair.0 < ends[0] && pair.1 < ends[1];
            if is_open && reach[pair.0][pair.1] && !found.queue.contains(&pair) {
                found.queue.push(pair);
            }
        }
        found.queued.push(found.queue.len());
    }
    found
}
