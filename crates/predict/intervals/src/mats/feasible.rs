//! The first rectangle from a pair of positions that locks leave possible.
//!
//! A rectangle is *feasible* if its last accesses depend on each other, if either transaction can
//! run as a whole before the other, and if no path through it makes the first thread come first
//! in one conflicting pair and the second in another.
//!
//! A conflicting pair is decided when the second of its accesses is made, and then by the path so
//! far, not by the rectangle. So one sweep from the lower corner, row by row, tells of every cell
//! which decisions the paths to it have made, and serves all rectangles of that corner.

use super::Pair;

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

/// Room for the sweep, used again and again.
pub(super) struct Search<'a> {
    pair: &'a Pair,
    row: Vec<Decisions>,
    /// For each access of the first thread, whether it conflicts with one of the rows below.
    is_hit: Vec<bool>,
}

impl<'a> Search<'a> {
    pub(super) const fn new(pair: &'a Pair) -> Self {
        Self { pair, row: Vec::new(), is_hit: Vec::new() }
    }

    /// The first dependent pair from `begin` on that ends a feasible rectangle; `first` is the
    /// first dependent pair.
    pub(super) fn first_feasible(
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
