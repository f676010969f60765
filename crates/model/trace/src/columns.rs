//! Events by column: thirteen bytes an event, nothing allocated for one alone.

use reweave_base::Id;

use crate::op::{EventId, Op, OpCode, SiteId, ThreadId};

/// One step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Who did it.
    pub thread: ThreadId,
    /// What it did.
    pub op: Op,
    /// Where in the code.
    pub site: SiteId,
}

/// The events of a trace, each column on its own. Entries are indexes, counted from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Which thread.
    pub threads: Vec<u32>,
    /// Which operation, with its memory order.
    pub codes: Vec<OpCode>,
    /// On what: an index into the names of the operation's kind of operand, or 0.
    pub operands: Vec<u32>,
    /// Where in the code.
    pub sites: Vec<u32>,
}

const _: () =
    assert!(3 * size_of::<u32>() + size_of::<OpCode>() <= 16, "at most 16 bytes an event");

impl Columns {
    /// How many events there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there is no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, thread: u32, code: OpCode, operand: u32, site: u32) {
        self.threads.push(thread);
        self.codes.push(code);
        self.operands.push(operand);
        self.sites.push(site);
    }

    /// Adds all events of `other`.
    pub fn append(&mut self, other: &Self) {
        self.threads.extend_from_slice(&other.threads);
        self.codes.extend_from_slice(&other.codes);
        self.operands.extend_from_slice(&other.operands);
        self.sites.extend_from_slice(&other.sites);
    }

    /// The events of `range`, as columns of their own.
    #[must_use]
    pub fn copied(&self, range: std::ops::Range<usize>) -> Self {
        Self {
            threads: self.threads[range.clone()].to_vec(),
            codes: self.codes[range.clone()].to_vec(),
            operands: self.operands[range.clone()].to_vec(),
            sites: self.sites[range].to_vec(),
        }
    }

    /// Removes all events and keeps the memory.
    pub fn clear(&mut self) {
        self.threads.clear();
        self.codes.clear();
        self.operands.clear();
        self.sites.clear();
    }

    /// The event at `id`.
    #[inline]
    #[must_use]
    pub fn event(&self, id: EventId) -> Event {
        let index = id.index();
        Event {
            thread: ThreadId::from_index(self.threads[index] as usize),
            op: Op::decode(self.codes[index], self.operands[index]),
            site: SiteId::from_index(self.sites[index] as usize),
        }
    }

    /// All events with their ids, in observed order.
    pub fn events(&self) -> impl ExactSizeIterator<Item = (EventId, Event)> + DoubleEndedIterator {
        (0..self.len()).map(EventId::from_index).map(|id| (id, self.event(id)))
    }
}

/// The values that events read or wrote, where they are known.
///
/// Takes no memory until the first value comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    known: Vec<u64>,
    values: Vec<i64>,
}

impl Values {
    /// Whether no event has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Says that the event at `id` read or wrote `value`.
    pub fn set(&mut self, id: EventId, value: i64) {
        let index = id.index();
        if index >= self.values.len() {
            self.values.resize(index + 1, 0);
            self.known.resize(index / 64 + 1, 0);
        }
        self.values[index] = value;
        self.known[index / 64] |= 1 << (index % 64);
    }

    /// The value of the event at `id`, if it is known.
    #[inline]
    #[must_use]
    pub fn get(&self, id: EventId) -> Option<i64> {
        let index = id.index();
        let value = *self.values.get(index)?;
        (self.known[index / 64] >> (index % 64) & 1 == 1).then_some(value)
    }
}
