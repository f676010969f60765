//! Sets of columns, as rows of words.

/// How many words hold `count` bits.
pub(super) const fn words(count: usize) -> usize {
    count.div_ceil(64)
}

#[inline]
pub(super) fn insert(set: &mut [u64], bit: usize) {
    set[bit / 64] |= 1 << (bit % 64);
}

#[inline]
pub(super) fn has(set: &[u64], bit: usize) -> bool {
    set[bit / 64] & (1 << (bit % 64)) != 0
}

#[inline]
pub(super) fn is_empty(set: &[u64]) -> bool {
    set.iter().all(|&word| word == 0)
}

/// Adds the members of `other`.
#[inline]
pub(super) fn unite(set: &mut [u64], other: &[u64]) {
    for (word, other) in set.iter_mut().zip(other) {
        *word |= other;
    }
}

/// Whether there is a common member.
#[inline]
pub(super) fn meets(set: &[u64], other: &[u64]) -> bool {
    set.iter().zip(other).any(|(word, other)| word & other != 0)
}

/// Makes `set` hold all numbers below `count` and no other.
pub(super) fn fill(set: &mut [u64], count: usize) {
    for (index, word) in set.iter_mut().enumerate() {
        let left = count.saturating_sub(index * 64);
        *word = if left >= 64 { u64::MAX } else { (1 << left) - 1 };
    }
}

/// The members, in order.
#[inline]
pub(super) fn members(set: &[u64]) -> impl Iterator<Item = usize> + '_ {
    set.iter().enumerate().flat_map(|(index, &word)| {
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

/// The members below `bound`, in order.
#[inline]
pub(super) fn below(set: &[u64], bound: usize) -> impl Iterator<Item = usize> + '_ {
    members(set).take_while(move |&member| member < bound)
}

#[inline]
pub(super) fn remove(set: &mut [u64], bit: usize) {
    set[bit / 64] &= !(1 << (bit % 64));
}
