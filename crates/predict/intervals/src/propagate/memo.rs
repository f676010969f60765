//! The rows that a transaction's code ran on in one round, and which ends it came to from each.
//!
//! Many sources bring the same few values, and equal rows need to run once only. A row is looked
//! for in one place of a small table, which a hash of its bounds tells; what is not found there is
//! run again, which costs time and changes nothing.

use super::bits;
use crate::domain::Domain;

const PLACES: usize = 256;

pub(super) struct Memo<D> {
    width: usize,
    /// For each place whether it holds a row of this round, the row, and the ends that the code
    /// comes to from it.
    is_used: Vec<bool>,
    rows: Vec<D>,
    passes: Vec<u64>,
    words: usize,
    used: Vec<u32>,
}

impl<D: Domain> Memo<D> {
    /// For rows of `width` values and code of `ends_count` ends.
    pub(super) fn new(width: usize, ends_count: usize) -> Self {
        let words = bits::words(ends_count);
        Self {
            width,
            is_used: vec![false; PLACES],
            rows: vec![D::TOP; width * PLACES],
            passes: vec![0; words * PLACES],
            words,
            used: Vec::new(),
        }
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        for place in self.used.drain(..) {
            self.is_used[place as usize] = false;
        }
    }

    /// The place of `row`, and whether it was there; otherwise it is now.
    #[inline]
    pub(super) fn place(&mut self, row: &[D]) -> (usize, bool) {
        let place = place_of(row);
        let held = &mut self.rows[place * self.width..(place + 1) * self.width];
        if self.is_used[place] {
            if held == row {
                return (place, true);
            }
        } else {
            self.is_used[place] = true;
            self.used.push(place as u32);
        }
        held.clone_from_slice(row);
        self.passes[place * self.words..(place + 1) * self.words].fill(0);
        (place, false)
    }

    /// Notes that the code comes to `end` from the row at `place`.
    #[inline]
    pub(super) fn note(&mut self, place: usize, end: usize) {
        bits::insert(&mut self.passes[place * self.words..(place + 1) * self.words], end);
    }

    /// Whether the code comes to `end` from the row at `place`.
    #[inline]
    pub(super) fn passes(&self, place: usize, end: usize) -> bool {
        bits::has(&self.passes[place * self.words..(place + 1) * self.words], end)
    }
}

/// Where a row is looked for. Bounds are equal where values are, which is all that is needed.
#[inline]
fn place_of<D: Domain>(row: &[D]) -> usize {
    let mut hash = 0_u64;
    for value in row {
        let (low, high) = value.bounds();
        let mixed = (low as u64).rotate_left(32) ^ high as u64;
        hash = (hash.rotate_left(5) ^ mixed).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    (hash >> 56) as usize % PLACES
}
