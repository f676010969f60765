//! Threads that look at an atomic word again and again until it changes.
//!
//! A thread that spins reads the same value at the same place, with nothing in between and nothing
//! written there by anybody. Of such a row the first and the last read are kept: in every reordering
//! in which both see the write that they saw, so do those between them.
//!
//! The first pass notes the rows of three or more reads; the last pass leaves out what is between
//! the ends of one. Memory grows with these rows, not with the reads.

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind};

use crate::shadow::Access;

/// The last place of each row of three or more reads, by its first.
pub type Rows = FxHashMap<u64, u64>;

/// What a thread reads in a row.
#[derive(Clone, Copy, Debug)]
struct Row {
    address: u64,
    size: u8,
    code: u64,
    value: Option<u64>,
    first: u64,
    last: u64,
    count: u64,
}

/// Follows the rows of all threads.
#[derive(Debug, Default)]
pub struct Spins {
    /// The row that each thread is in. Most events end none.
    current: FxHashMap<u32, Row>,
    rows: Rows,
    is_search: bool,
}

impl Spins {
    /// Finds the rows: for the first pass.
    pub fn search() -> Self {
        Self { is_search: true, ..Self::default() }
    }

    /// Says which reads are left out, knowing the rows.
    pub fn with(rows: Rows) -> Self {
        Self { rows, ..Self::default() }
    }

    /// What the search found.
    pub fn finish(mut self) -> Rows {
        for row in std::mem::take(&mut self.current).into_values() {
            self.end(row);
        }
        self.rows
    }

    fn end(&mut self, row: Row) {
        if self.is_search && row.count > 2 {
            self.rows.insert(row.first, row.last);
        }
    }

    /// Whether `event` at `place` is neither the first nor the last read of its row.
    pub fn is_repeated(&mut self, thread: u32, event: &Event, place: u64) -> bool {
        if matches!(event.kind, Kind::AtomicLoad | Kind::AtomicFailed) {
            return self.read(thread, event, place);
        }
        if !self.current.is_empty() && !is_no_step(event.kind) {
            self.end_rows(thread, event);
        }
        false
    }

    fn read(&mut self, thread: u32, event: &Event, place: u64) -> bool {
        let Event { address, size, code, value, .. } = *event;
        let key = (address, size, code, value);
        match self.current.get_mut(&thread) {
            Some(row) if (row.address, row.size, row.code, row.value) == key && value.is_some() => {
                row.count += 1;
                row.last = place;
                self.rows.get(&row.first).is_some_and(|&last| place < last)
            }
            _ => {
                let row = Row { address, size, code, value, first: place, last: place, count: 1 };
                if let Some(before) = self.current.insert(thread, row) {
                    self.end(before);
                }
                false
            }
        }
    }

    /// Ends the row of `thread`, and those of what `event` writes.
    fn end_rows(&mut self, thread: u32, event: &Event) {
        let access = Access::new(event).filter(|access| access.writes);
        let is_written = |row: &Row| {
            access.is_some_and(|access| {
                row.address < access.end && access.start < row.address + (1 << row.size)
            })
        };
        let current = std::mem::take(&mut self.current);
        for (of, row) in current {
            if of == thread || is_written(&row) {
                self.end(row);
            } else {
                self.current.insert(of, row);
            }
        }
    }
}

/// Whether an event of this kind is nothing that a thread does to memory or to others.
const fn is_no_step(kind: Kind) -> bool {
    kind.is_brief()
        || matches!(
            kind,
            Kind::Nothing
                | Kind::Stored
                | Kind::Switch
                | Kind::Escaped
                | Kind::Argument
                | Kind::Detach
                | Kind::Maps
                | Kind::FutexWait
                | Kind::FutexAwake
        )
}
