//! Sets of small numbers as rows of 64-bit words, and tables of such rows.

/// A table of bits, row after row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BitRows {
    width: usize,
    words: Vec<u64>,
}

impl BitRows {
    /// `rows` rows of `columns` bits, none of them set.
    pub(crate) fn new(rows: usize, columns: usize) -> Self {
        let width = columns.div_ceil(64);
        Self { width, words: vec![0; rows * width] }
    }

    /// Whether the bit is set.
    #[inline]
    pub(crate) fn has(&self, row: usize, column: usize) -> bool {
        has(self.row(row), column)
    }

    /// Sets the bit.
    #[inline]
    pub(crate) fn set(&mut self, row: usize, column: usize) {
        self.words[row * self.width + column / 64] |= 1 << (column % 64);
    }

    /// The words of a row, its first bit lowest in the first.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[u64] {
        &self.words[row * self.width..][..self.width]
    }

    /// The words of a row, to change them.
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [u64] {
        &mut self.words[row * self.width..][..self.width]
    }

    /// The first bit of `row` that is set, from `start` on.
    #[inline]
    pub(crate) fn first_from(&self, row: usize, start: usize) -> Option<usize> {
        first_from(self.row(row), start)
    }

    /// The last bit of `row` that is set.
    pub(crate) fn last(&self, row: usize) -> Option<usize> {
        let words = self.row(row);
        let index = words.iter().rposition(|&word| word != 0)?;
        Some(index * 64 + 63 - words[index].leading_zeros() as usize)
    }
}

/// How many words hold `count` bits.
pub(crate) const fn words(count: usize) -> usize {
    count.div_ceil(64)
}

/// Whether `bit` is set in `row`.
#[inline]
pub(crate) fn has(row: &[u64], bit: usize) -> bool {
    row[bit / 64] >> (bit % 64) & 1 == 1
}

#[inline]
pub(crate) fn insert(row: &mut [u64], bit: usize) {
    row[bit / 64] |= 1 << (bit % 64);
}

#[inline]
pub(crate) fn remove(row: &mut [u64], bit: usize) {
    row[bit / 64] &= !(1 << (bit % 64));
}

#[inline]
pub(crate) fn is_empty(row: &[u64]) -> bool {
    row.iter().all(|&word| word == 0)
}

/// The first bit of `row` that is set, from `start` on.
#[inline]
pub(crate) fn first_from(row: &[u64], start: usize) -> Option<usize> {
    let mut index = start / 64;
    let mut word = *row.get(index)? & (!0 << (start % 64));
    while word == 0 {
        index += 1;
        word = *row.get(index)?;
    }
    Some(index * 64 + word.trailing_zeros() as usize)
}

/// Whether two rows have a bit in common.
#[inline]
pub(crate) fn meet(left: &[u64], right: &[u64]) -> bool {
    left.iter().zip(right).any(|(left, right)| left & right != 0)
}

/// Adds the bits of `from` to `to`.
#[inline]
pub(crate) fn unite(to: &mut [u64], from: &[u64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to |= from);
}

/// Makes `row` the set of all numbers below `count`.
pub(crate) fn fill(row: &mut [u64], count: usize) {
    for (index, word) in row.iter_mut().enumerate() {
        let left = count.saturating_sub(index * 64);
        *word = if left >= 64 { u64::MAX } else { (1 << left) - 1 };
    }
}

/// The bits of `row` that are set, in order.
#[inline]
pub(crate) fn members(row: &[u64]) -> impl Iterator<Item = usize> + '_ {
    row.iter().enumerate().flat_map(|(index, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros() as usize;
            (left != 0).then(|| {
                left &= left - 1;
                index * 64 + bit
            })
        })
    })
}

/// The bits of `row` below `bound` that are set, in order.
#[inline]
pub(crate) fn below(row: &[u64], bound: usize) -> impl Iterator<Item = usize> + '_ {
    members(row).take_while(move |&member| member < bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_found_across_words() {
        let mut bits = BitRows::new(3, 130);
        for column in [0, 63, 64, 129] {
            bits.set(1, column);
        }
        assert!(bits.has(1, 64) && !bits.has(1, 65) && !bits.has(2, 64));
        assert_eq!(bits.first_from(1, 1), Some(63));
        assert_eq!(bits.first_from(1, 65), Some(129));
        assert_eq!(bits.first_from(1, 130), None);
        assert_eq!((bits.last(1), bits.last(0)), (Some(129), None));
    }
}
