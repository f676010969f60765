//! Rows of columns with what changed in them, and joins of neighbouring rows.
//!
//! A set of changed columns has a bit more, after the last column: the row, or one of the rows that
//! are joined, came to be or ceased to be.

use std::ops::Range;

use super::bits;
use crate::domain::Domain;

/// Rows of columns, some of which are not there.
pub(super) struct Table<D> {
    width: usize,
    words: usize,
    values: Vec<D>,
    has: Vec<bool>,
    changed: Vec<u64>,
}

impl<D: Domain> Table<D> {
    /// `count` rows, none of which is there.
    pub(super) fn new(width: usize, count: usize) -> Self {
        let words = bits::words(width + 1);
        Self {
            width,
            words,
            values: vec![D::TOP; width * count],
            has: vec![false; count],
            changed: vec![0; words * count],
        }
    }

    /// How many columns there are.
    pub(super) const fn width(&self) -> usize {
        self.width
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.has.contains(&true)
    }

    #[inline]
    pub(super) fn has(&self, index: usize) -> bool {
        self.has[index]
    }

    #[inline]
    pub(super) fn row(&self, index: usize) -> Option<&[D]> {
        self.has[index].then(|| &self.values[index * self.width..(index + 1) * self.width])
    }

    /// The columns that changed since the rows were last settled.
    #[inline]
    pub(super) fn changed(&self, index: usize) -> &[u64] {
        &self.changed[index * self.words..(index + 1) * self.words]
    }

    /// Forgets what changed.
    pub(super) fn settle(&mut self) {
        self.changed.fill(0);
    }

    /// Makes `row` the row at `index`.
    pub(super) fn set(&mut self, index: usize, row: &[D]) {
        self.values[index * self.width..(index + 1) * self.width].clone_from_slice(row);
        self.has[index] = true;
        bits::fill(&mut self.changed[index * self.words..(index + 1) * self.words], self.width + 1);
    }

    /// Adds `columns` of `row` to the row at `index`.
    pub(super) fn join(&mut self, index: usize, row: &[D], columns: &[u64]) {
        if !self.has[index] {
            self.set(index, row);
            return;
        }
        let values = &mut self.values[index * self.width..(index + 1) * self.width];
        let changed = &mut self.changed[index * self.words..(index + 1) * self.words];
        for column in bits::below(columns, self.width) {
            let mut joined = values[column].clone();
            joined.join(&row[column]);
            if values[column] != joined {
                values[column] = joined;
                bits::insert(changed, column);
            }
        }
    }

    /// Makes the row at `index` the join of `rows`, of which only `columns` can differ from it.
    /// Returns whether there is a difference.
    pub(super) fn replace<'a>(
        &mut self,
        index: usize,
        rows: impl Iterator<Item = &'a [D]> + Clone,
        columns: &[u64],
    ) -> bool {
        let had = self.has[index];
        self.has[index] = rows.clone().next().is_some();
        let values = &mut self.values[index * self.width..(index + 1) * self.width];
        let changed = &mut self.changed[index * self.words..(index + 1) * self.words];
        for column in bits::below(columns, self.width) {
            let Some(value) = join_all(rows.clone().map(|row| &row[column])) else { break };
            if values[column] != value {
                values[column] = value;
                bits::insert(changed, column);
            }
        }
        if had != self.has[index] {
            bits::fill(changed, self.width + 1);
        }
        !bits::is_empty(changed)
    }
}

/// The join of all `values`; none if there are none.
#[inline]
pub(super) fn join_all<'a, D: Domain>(mut values: impl Iterator<Item = &'a D>) -> Option<D> {
    let mut joined = values.next()?.clone();
    values.for_each(|value| joined.join(value));
    Some(joined)
}

/// Makes `columns` of `joined` the join of all `rows`, of which there is one at least. The other
/// columns must be that join already, so that they may be computed too where that is quicker.
#[inline]
pub(super) fn join_columns<'a, D: Domain>(
    joined: &mut [D],
    columns: &[usize],
    mut rows: impl Iterator<Item = &'a [D]>,
) {
    let Some(first) = rows.next() else { return };
    if columns.len() * 2 >= joined.len() {
        joined.clone_from_slice(first);
        for row in rows {
            joined.iter_mut().zip(row).for_each(|(value, other)| value.join(other));
        }
        return;
    }
    for &column in columns {
        joined[column] = first[column].clone();
    }
    for row in rows {
        for &column in columns {
            joined[column].join(&row[column]);
        }
    }
}

/// Neighbouring rows that pass to some nodes together.
pub(super) struct Bundle<D> {
    pub(super) members: Range<usize>,
    /// The join of those that are there.
    pub(super) joined: Vec<D>,
    before: Vec<D>,
    columns: Vec<usize>,
    pub(super) has: bool,
    /// How many are there.
    pub(super) count: u64,
    /// Where the join differs from the round before.
    pub(super) changed: Vec<u64>,
    /// Where some member does.
    pub(super) touched: Vec<u64>,
}

impl<D: Domain> Bundle<D> {
    pub(super) fn new(members: Range<usize>, width: usize) -> Self {
        let none = vec![0; bits::words(width + 1)];
        let joined = vec![D::TOP; width];
        Self {
            members,
            before: joined.clone(),
            joined,
            columns: Vec::new(),
            has: false,
            count: 0,
            changed: none.clone(),
            touched: none,
        }
    }

    /// Takes up what changed in `sources`, and says how much work that was.
    pub(super) fn update(&mut self, sources: &Table<D>) -> u64 {
        let width = sources.width;
        self.touched.fill(0);
        self.changed.fill(0);
        for member in self.members.clone() {
            bits::unite(&mut self.touched, sources.changed(member));
        }
        if bits::is_empty(&self.touched) {
            return 0;
        }
        let had = self.has;
        self.count = self.members.clone().filter(|&member| sources.has(member)).count() as u64;
        self.has = self.count > 0;
        self.columns.clear();
        self.columns.extend(bits::below(&self.touched, width));
        for &column in &self.columns {
            self.before[column] = self.joined[column].clone();
        }
        let rows = self.members.clone().filter_map(|member| sources.row(member));
        join_columns(&mut self.joined, &self.columns, rows);
        for &column in &self.columns {
            if self.joined[column] != self.before[column] {
                bits::insert(&mut self.changed, column);
            }
        }
        if bits::has(&self.touched, width) {
            bits::insert(&mut self.changed, width);
        }
        if self.has != had {
            bits::fill(&mut self.changed, width + 1);
        }
        self.count * self.columns.len() as u64
    }
}
