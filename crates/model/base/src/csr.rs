//! Compressed sparse rows (CSR): a table whose entries are lists, all in one allocation.

use std::marker::PhantomData;

use crate::Id;

/// For each `I` a list of `T`, stored end to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsrTable<I, T> {
    starts: Vec<u32>,
    items: Vec<T>,
    index: PhantomData<fn(I)>,
}

impl<I: Id, T: Copy> CsrTable<I, T> {
    /// Sorts `entries` into `rows_count` lists, keeping their order within each.
    ///
    /// `entries` is gone through twice and must give the same items both times.
    pub fn group<E>(rows_count: usize, filler: T, entries: impl Fn() -> E) -> Self
    where
        E: Iterator<Item = (I, T)>,
    {
        let mut starts = vec![0_u32; rows_count + 1];
        for (row, _) in entries() {
            starts[row.index() + 1] += 1;
        }
        for row in 0..rows_count {
            starts[row + 1] += starts[row];
        }
        let mut items = vec![filler; starts[rows_count] as usize];
        let mut next = starts.clone();
        for (row, item) in entries() {
            let slot = &mut next[row.index()];
            items[*slot as usize] = item;
            *slot += 1;
        }
        Self { starts, items, index: PhantomData }
    }

    /// How many lists there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is no list at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The list of `row`.
    #[inline]
    #[must_use]
    pub fn row(&self, row: I) -> &[T] {
        &self.items[self.starts[row.index()] as usize..self.starts[row.index() + 1] as usize]
    }

    /// All lists with their ids, in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (I, &[T])> {
        (0..self.len()).map(I::from_index).map(|row| (row, self.row(row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::id! {
        /// A row.
        struct RowId;
    }

    #[test]
    fn entries_keep_their_order_within_a_row() {
        let [a, b, c] = [0, 1, 2].map(RowId::from_index);
        let entries = [(c, 1), (a, 2), (c, 3), (a, 4)];
        let rows = CsrTable::group(3, 0, || entries.into_iter());
        assert_eq!((rows.row(a), rows.row(b), rows.row(c)), (&[2, 4][..], &[][..], &[1, 3][..]));
    }
}
