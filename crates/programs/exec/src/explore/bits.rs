//! A table of bits: one row for each instruction.

/// Rows of bits, all of one width.
#[derive(Clone, Debug, Default)]
pub(crate) struct BitRows {
    words_count: usize,
    words: Vec<u64>,
}

impl BitRows {
    pub(crate) fn new(rows_count: usize, width: usize) -> Self {
        let words_count = width.div_ceil(64);
        Self { words_count, words: vec![0; rows_count * words_count] }
    }

    pub(crate) fn has(&self, row: u32, bit: u32) -> bool {
        self.row(row)[bit as usize / 64] >> (bit % 64) & 1 == 1
    }

    pub(crate) fn set(&mut self, row: u32, bit: u32) {
        let start = row as usize * self.words_count;
        self.words[start + bit as usize / 64] |= 1 << (bit % 64);
    }

    pub(crate) fn row(&self, row: u32) -> &[u64] {
        let start = row as usize * self.words_count;
        &self.words[start..start + self.words_count]
    }

    /// Adds the bits of `from` to the row `to`; whether there was a new one.
    pub(crate) fn add(&mut self, to: u32, from: u32) -> bool {
        let (to, from) = (to as usize * self.words_count, from as usize * self.words_count);
        let mut grows = false;
        for word in 0..self.words_count {
            let (old, more) = (self.words[to + word], self.words[from + word]);
            self.words[to + word] = old | more;
            grows |= more & !old != 0;
        }
        grows
    }

    /// Adds the bits of `from`, but for those of the row `but` of `others`, to the row `to`.
    pub(crate) fn add_without(&mut self, to: u32, from: u32, others: &Self, but: u32) -> bool {
        let (to, from) = (to as usize * self.words_count, from as usize * self.words_count);
        let but = but as usize * self.words_count;
        let mut grows = false;
        for word in 0..self.words_count {
            let more = self.words[from + word] & !others.words[but + word];
            let old = self.words[to + word];
            self.words[to + word] = old | more;
            grows |= more & !old != 0;
        }
        grows
    }
}

/// The positions of the bits in `words` of several rows together.
pub(crate) fn ones<'a>(rows: &'a [&'a [u64]]) -> impl Iterator<Item = u32> + 'a {
    let words_count = rows.first().map_or(0, |row| row.len());
    (0..words_count).flat_map(move |word| {
        let mut left = rows.iter().fold(0, |all, row| all | row[word]);
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (bit < 64).then(|| word as u32 * 64 + bit)
        })
    })
}
