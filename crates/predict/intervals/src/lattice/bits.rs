//! Rows of bits.

/// A table of bits, row after row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    width: usize,
    words: Vec<u64>,
}

impl Bits {
    /// `rows` rows of `columns` bits, none of them set.
    #[must_use]
    pub fn new(rows: usize, columns: usize) -> Self {
        let width = columns.div_ceil(64);
        Self { width, words: vec![0; rows * width] }
    }

    /// Whether the bit is set.
    #[inline]
    #[must_use]
    pub fn has(&self, row: usize, column: usize) -> bool {
        has(self.row(row), column)
    }

    /// Sets the bit.
    #[inline]
    pub fn set(&mut self, row: usize, column: usize) {
        self.words[row * self.width + column / 64] |= 1 << (column % 64);
    }

    /// The words of a row, its first bit lowest in the first.
    #[inline]
    #[must_use]
    pub fn row(&self, row: usize) -> &[u64] {
        &self.words[row * self.width..][..self.width]
    }

    /// The words of a row, to change them.
    pub fn row_mut(&mut self, row: usize) -> &mut [u64] {
        &mut self.words[row * self.width..][..self.width]
    }

    /// The first bit of `row` that is set, from `start` on.
    #[inline]
    #[must_use]
    pub fn first_from(&self, row: usize, start: usize) -> Option<usize> {
        first_from(self.row(row), start)
    }

    /// The last bit of `row` that is set.
    #[must_use]
    pub fn last(&self, row: usize) -> Option<usize> {
        let words = self.row(row);
        let index = words.iter().rposition(|&word| word != 0)?;
        Some(index * 64 + 63 - words[index].leading_zeros() as usize)
    }
}

/// Whether bit `column` of `row` is set.
#[inline]
#[must_use]
pub fn has(row: &[u64], column: usize) -> bool {
    row[column / 64] >> (column % 64) & 1 == 1
}

/// The first bit of `row` that is set, from `start` on.
#[inline]
#[must_use]
pub fn first_from(row: &[u64], start: usize) -> Option<usize> {
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
#[must_use]
pub fn meet(left: &[u64], right: &[u64]) -> bool {
    left.iter().zip(right).any(|(left, right)| left & right != 0)
}

/// Adds the bits of `from` to `to`.
pub fn unite(to: &mut [u64], from: &[u64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to |= from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_found_across_words() {
        let mut bits = Bits::new(3, 130);
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
