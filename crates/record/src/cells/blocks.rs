//! Which blocks of allocated memory live now.

use std::collections::BTreeMap;

use reweave_runtime::wire::{Event, Kind};

/// A block of allocated memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first byte.
    pub start: u64,
    /// The byte after its last.
    pub end: u64,
    /// How many allocations and releases came before its own.
    pub time: u64,
}

/// What an allocation or release did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The block that it allocated.
    pub born: Option<Block>,
    /// The block that it released.
    pub released: Option<Block>,
    /// Blocks whose release was not seen, though their memory was allocated again.
    pub lost: Vec<Block>,
}

/// The blocks that live, and how many allocations and releases there were.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    live: BTreeMap<u64, Block>,
    time: u64,
}

impl Blocks {
    /// How many allocations and releases came so far: the time by which lifetimes are told.
    #[inline]
    #[must_use]
    pub const fn time(&self) -> u64 {
        self.time
    }

    /// Takes note of `event` if it is an allocation or a release.
    #[inline]
    pub fn step(&mut self, event: &Event) -> Option<Change> {
        match event.kind {
            Kind::Alloc => Some(self.allocate(event.address, event.extra.unwrap_or(0))),
            Kind::Free => Some(self.release(event.address)),
            _ => None,
        }
    }

    fn allocate(&mut self, start: u64, size: u64) -> Change {
        let time = self.time;
        self.time += 1;
        let end = start.saturating_add(size);
        if start == end {
            return Change::default();
        }
        let overlaps = |block: &Block| block.start < end && start < block.end;
        // Live blocks do not overlap, so at most one that starts before reaches into this one.
        let before = self.live.range(..start).next_back().map(|(_, &block)| block);
        let within = self.live.range(start..end).map(|(_, &block)| block);
        let lost: Vec<Block> = before.into_iter().filter(overlaps).chain(within).collect();
        for block in &lost {
            self.live.remove(&block.start);
        }
        let block = Block { start, end, time };
        self.live.insert(start, block);
        Change { born: Some(block), released: None, lost }
    }

    fn release(&mut self, start: u64) -> Change {
        self.time += 1;
        Change { released: self.live.remove(&start), ..Change::default() }
    }

    /// The live block that holds `address`.
    #[must_use]
    pub fn holding(&self, address: u64) -> Option<Block> {
        let (_, &block) = self.live.range(..=address).next_back()?;
        (address < block.end).then_some(block)
    }

    /// All live blocks, by address.
    pub fn live(&self) -> impl Iterator<Item = Block> {
        self.live.values().copied()
    }
}
