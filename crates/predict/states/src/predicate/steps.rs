//! Values that change with how far a thread has come.

/// A value for each number of events that a thread, or a chain, has run: none where it is not
/// known. Kept by where it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// From which numbers on there is another value; the first is 0.
    starts: Vec<u32>,
    values: Vec<Option<i64>>,
}

impl Steps {
    /// The same value always.
    #[must_use]
    pub fn constant(value: Option<i64>) -> Self {
        Self { starts: vec![0], values: vec![value] }
    }

    /// From `start` on, which no change is after, the value is `value`.
    pub(super) fn push(&mut self, start: u32, value: Option<i64>) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.values.pop();
        }
        if self.values.last() != Some(&value) {
            self.starts.push(start);
            self.values.push(value);
        }
    }

    /// The value when `count` events have run.
    #[inline]
    #[must_use]
    pub fn value(&self, count: u32) -> Option<i64> {
        self.values[self.starts.partition_point(|&start| start <= count) - 1]
    }

    /// The numbers of events from which on the value is another, in ascending order, 0 left out.
    #[must_use]
    pub fn changes(&self) -> &[u32] {
        &self.starts[1..]
    }

    /// The values with the number of events from which on each holds, the first 0.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (u32, Option<i64>)> {
        self.starts.iter().copied().zip(self.values.iter().copied())
    }

    /// The value, if it never changes.
    #[must_use]
    pub fn as_constant(&self) -> Option<Option<i64>> {
        if let [only] = self.values.as_slice() { Some(*only) } else { None }
    }

    /// Whether the value is known everywhere.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.values.iter().all(Option::is_some)
    }

    /// Whether no known value is below one before it.
    #[must_use]
    pub fn is_nondecreasing(&self) -> bool {
        let known: Vec<i64> = self.values.iter().copied().flatten().collect();
        known.is_sorted()
    }

    /// The least and the greatest known value.
    #[must_use]
    pub fn range(&self) -> Option<(i64, i64)> {
        let known = || self.values.iter().copied().flatten();
        Some((known().min()?, known().max()?))
    }

    /// The least number of events, from `from` on, at which the value is known to be at least
    /// `least`.
    #[must_use]
    pub fn next_at_least(&self, from: u32, least: i64) -> Option<u32> {
        let at = self.starts.partition_point(|&start| start <= from) - 1;
        let found = (at..self.values.len()).find(|&at| self.values[at] >= Some(least))?;
        Some(self.starts[found].max(from))
    }

    /// The same for a chain of which event number i, from 1 on, is that after which the thread has
    /// run `counts[i]` events; `counts[0]` is 0. Every change must be at such an event.
    #[must_use]
    pub fn placed(&self, counts: &[u32]) -> Self {
        let mut placed = Self::constant(self.values[0]);
        for (start, value) in self.entries() {
            let index = counts.partition_point(|&count| count < start);
            if index < counts.len() {
                placed.push(index as u32, value);
            }
        }
        placed
    }

    /// The value for each number of events up to `length`.
    #[must_use]
    pub fn tabulated(&self, length: u32) -> Vec<Option<i64>> {
        let mut table = Vec::with_capacity(length as usize + 1);
        for (at, &value) in self.values.iter().enumerate() {
            let end = self.starts.get(at + 1).map_or(length + 1, |&end| end.min(length + 1));
            table.resize((end as usize).max(table.len()), value);
        }
        table
    }

    /// What `of` makes of each value.
    pub(super) fn mapped(&self, mut of: impl FnMut(Option<i64>) -> Option<i64>) -> Self {
        let mut mapped = Self::constant(of(self.values[0]));
        for (start, value) in self.entries() {
            mapped.push(start, of(value));
        }
        mapped
    }
}

/// What `of` makes of the values of all `steps`, in their order, at each number of events.
pub(super) fn combined(
    steps: &[&Steps],
    mut of: impl FnMut(&[Option<i64>]) -> Option<i64>,
) -> Steps {
    let mut changes: Vec<u32> =
        steps.iter().flat_map(|steps| steps.changes().iter().copied()).collect();
    changes.sort_unstable();
    changes.dedup();
    let mut places = vec![0; steps.len()];
    let mut values: Vec<Option<i64>> = steps.iter().map(|steps| steps.values[0]).collect();
    let mut result = Steps::constant(of(&values));
    for start in changes {
        for ((steps, place), value) in steps.iter().zip(&mut places).zip(&mut values) {
            if steps.starts.get(*place + 1) == Some(&start) {
                *place += 1;
                *value = steps.values[*place];
            }
        }
        result.push(start, of(&values));
    }
    result
}
