//! Sets of small numbers, a bit each: as rows of 64-bit words, and as tables of such rows.

/// A table of bits, row after row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitRows {
    width: usize,
    words: Vec<u64>,
}

impl BitRows {
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

    /// Adds the bits of the row `from` to the row `to`; whether there was a new one.
    pub fn unite(&mut self, to: usize, from: usize) -> bool {
        self.add(to, from, |_| 0)
    }

    /// Adds the bits of the row `from`, but for those of `without`, to the row `to`; whether there was
    /// a new one.
    pub fn unite_without(&mut self, to: usize, from: usize, without: &[u64]) -> bool {
        self.add(to, from, |word| without[word])
    }

    fn add(&mut self, to: usize, from: usize, without: impl Fn(usize) -> u64) -> bool {
        let mut grows = false;
        for word in 0..self.width {
            let more = self.words[from * self.width + word] & !without(word);
            let own = &mut self.words[to * self.width + word];
            grows |= more & !*own != 0;
            *own |= more;
        }
        grows
    }
}

/// How many words hold `count` bits.
#[must_use]
pub const fn words(count: usize) -> usize {
    count.div_ceil(64)
}

/// Whether `bit` is set in `row`.
#[inline]
#[must_use]
pub fn has(row: &[u64], bit: usize) -> bool {
    row[bit / 64] >> (bit % 64) & 1 == 1
}

/// Adds `bit` to `row`.
#[inline]
pub fn insert(row: &mut [u64], bit: usize) {
    row[bit / 64] |= 1 << (bit % 64);
}

/// Takes `bit` out of `row`.
#[inline]
pub fn remove(row: &mut [u64], bit: usize) {
    row[bit / 64] &= !(1 << (bit % 64));
}

/// Whether no bit of `row` is set.
#[inline]
#[must_use]
pub fn is_empty(row: &[u64]) -> bool {
    row.iter().all(|&word| word == 0)
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
#[inline]
pub fn unite(to: &mut [u64], from: &[u64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to |= from);
}

/// Makes `row` the set of all numbers below `count`.
pub fn fill(row: &mut [u64], count: usize) {
    for (index, word) in row.iter_mut().enumerate() {
        let left = count.saturating_sub(index * 64);
        *word = if left >= 64 { u64::MAX } else { (1 << left) - 1 };
    }
}

/// The bits of `row` that are set, in order.
#[inline]
pub fn members(row: &[u64]) -> impl Iterator<Item = usize> + '_ {
    row.iter().enumerate().flat_map(|(at, &word)| ones(word).map(move |bit| at * 64 + bit))
}

/// The bits that are set in one of `rows`, all of one length, in order.
#[inline]
pub fn union_members<'a>(rows: &'a [&'a [u64]]) -> impl Iterator<Item = usize> + 'a {
    let words_count = rows.first().map_or(0, |row| row.len());
    (0..words_count).flat_map(move |word| {
        let all = rows.iter().fold(0, |all, row| all | row[word]);
        ones(all).map(move |bit| word * 64 + bit)
    })
}

/// The bits of `word` that are set, in order.
#[inline]
fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        (word != 0).then(|| {
            word &= word - 1;
            bit
        })
    })
}

/// The bits of `row` below `bound` that are set, in order.
#[inline]
pub fn below(row: &[u64], bound: usize) -> impl Iterator<Item = usize> + '_ {
    members(row).take_while(move |&member| member < bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_united_with_and_without_others() {
        let mut bits = BitRows::new(3, 70);
        for column in [1, 64, 69] {
            bits.set(0, column);
        }
        bits.set(2, 64);
        let without = bits.row(2).to_vec();
        assert!(bits.unite_without(1, 0, &without) && !bits.unite_without(1, 0, &without));
        assert_eq!(members(bits.row(1)).collect::<Vec<_>>(), [1, 69]);
        assert!(bits.unite(1, 0) && !bits.unite(1, 0));
        assert_eq!(below(bits.row(1), 69).collect::<Vec<_>>(), [1, 64]);
    }

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
