//! A vector indexed by a typed id.

use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use crate::Id;

/// A `Vec<T>` whose index type is `I`, so that a lock's table cannot be asked about a variable.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IndexVec<I, T> {
    items: Vec<T>,
    index: PhantomData<fn(I)>,
}

impl<I: Id, T> IndexVec<I, T> {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self { items: Vec::new(), index: PhantomData }
    }

    /// A table that holds `items`, the first at index 0.
    #[must_use]
    pub const fn from_vec(items: Vec<T>) -> Self {
        Self { items, index: PhantomData }
    }

    /// A table of `len` copies of `item`.
    #[must_use]
    pub fn from_elem(item: T, len: usize) -> Self
    where
        T: Clone,
    {
        Self::from_vec(vec![item; len])
    }

    /// How many entries there are.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds `item` and gives the id it got.
    pub fn push(&mut self, item: T) -> I {
        let id = I::from_index(self.items.len());
        self.items.push(item);
        id
    }

    /// The entry at `id`, if the table reaches that far.
    #[must_use]
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }

    /// The entry at `id`, after growing the table with defaults until it reaches that far.
    pub fn get_or_default(&mut self, id: I) -> &mut T
    where
        T: Default,
    {
        if id.index() >= self.items.len() {
            self.items.resize_with(id.index() + 1, T::default);
        }
        &mut self.items[id.index()]
    }

    /// All ids of the table, in order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = I> + DoubleEndedIterator + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }

    /// All entries, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// All entries, in order, to change them.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }

    /// All entries with their ids, in order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (I, &T)> + DoubleEndedIterator {
        self.items.iter().enumerate().map(|(index, item)| (I::from_index(index), item))
    }

    /// The entries as a plain slice.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }

    /// The entries as the vector they are kept in, to grow or shrink it.
    pub const fn as_mut_vec(&mut self) -> &mut Vec<T> {
        &mut self.items
    }
}

impl<I: Id, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> Index<I> for IndexVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IndexVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<I: Id, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<It: IntoIterator<Item = T>>(items: It) -> Self {
        Self::from_vec(items.into_iter().collect())
    }
}

impl<I: Id + Debug, T: Debug> Debug for IndexVec<I, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries()).finish()
    }
}
