//! Which blocks of allocated memory live now.
//!
//! A block can lose its memory in parts: some pages of a mapping are released, or something else
//! is mapped over them; a thread gets its stack inside memory that was allocated for it. So what
//! lives is *pieces*, each of which knows its block, and a block lives as long as one piece of it
//! does.

use std::collections::BTreeMap;

use reweave_runtime::wire::{Event, Kind};

/// A block of allocated memory, or a piece of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first byte.
    pub start: u64,
    /// The byte after its last.
    pub end: u64,
    /// Where the whole block began when it was allocated.
    pub base: u64,
    /// How many allocations and releases came before that of the whole block.
    pub time: u64,
}

/// What an allocation or release did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The block that it allocated.
    pub born: Option<Block>,
    /// Pieces of blocks whose memory it ended.
    pub ended: Vec<Block>,
    /// All memory that is another from now on besides, whether it was in a block or not: the first
    /// byte and the one after the last.
    pub range: Option<(u64, u64)>,
    /// The blocks whose last piece it released, by the times of their allocations.
    pub released: Vec<u64>,
    /// The blocks whose last piece it allocated again, though nothing released it.
    pub lost: Vec<u64>,
}

impl Change {
    /// The memory that is another from now on: the first byte and the one after the last of each part.
    pub fn renewed(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ended.iter().map(|piece| (piece.start, piece.end)).chain(self.range)
    }
}

/// The blocks that live, and how many allocations and releases there were.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    /// Pieces, which do not overlap, by where they begin.
    live: BTreeMap<u64, Block>,
    /// Blocks that lost a part, by where they began and the times of their allocations.
    cut: BTreeMap<(u64, u64), Cut>,
    time: u64,
}

/// A block that lost a part.
#[derive(Clone, Copy, Debug)]
struct Cut {
    pieces: usize,
    /// The byte after the last of the whole block.
    end: u64,
}

impl Blocks {
    /// How many allocations and releases came so far: the time by which lifetimes are named.
    #[inline]
    #[must_use]
    pub const fn time(&self) -> u64 {
        self.time
    }

    /// Takes note of `event` if it is an allocation or a release.
    #[inline]
    pub fn step(&mut self, event: &Event) -> Option<Change> {
        let length = event.extra.unwrap_or(0);
        match event.kind {
            Kind::Alloc => Some(self.allocate(event.address, length)),
            Kind::Free if event.ends_frame() => {
                // A frame of a thread's stack, which stays.
                self.time += 1;
                let range = Some((event.address, event.address.saturating_add(length)));
                Some(Change { range, ..Change::default() })
            }
            Kind::Free if length == 0 => Some(self.release_block(event.address, event.value)),
            Kind::Free => Some(self.release_range(event.address, length)),
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
        let (ended, lost) = self.clear(start, end);
        let block = Block { start, end, base: start, time };
        self.live.insert(start, block);
        Change { born: Some(block), ended, range: Some((start, end)), lost, ..Change::default() }
    }

    fn release_range(&mut self, start: u64, size: u64) -> Change {
        self.time += 1;
        let end = start.saturating_add(size);
        if start == end {
            return Change::default();
        }
        let (ended, released) = self.clear(start, end);
        Change { ended, range: Some((start, end)), released, ..Change::default() }
    }

    /// Releases what is left of the block that was allocated at `base`: if there are several, the
    /// last one. If nobody saw that it was allocated, its `size` may be known.
    fn release_block(&mut self, base: u64, size: Option<u64>) -> Change {
        self.time += 1;
        let first = self.live.get(&base).filter(|piece| piece.base == base);
        let whole = first.map(|piece| (piece.time, piece.end));
        let cut = self.cut.range((base, 0)..=(base, u64::MAX)).next_back();
        let cut = cut.map(|(&(_, time), cut)| (time, cut.end));
        let Some((time, end)) = cut.max(whole) else {
            let range = size.map(|size| (base, base.saturating_add(size)));
            return Change { range, ..Change::default() };
        };
        self.cut.remove(&(base, time));
        let pieces = self.live.range(base..end).map(|(_, &piece)| piece);
        let ended: Vec<Block> = pieces.filter(|piece| piece.time == time).collect();
        for piece in &ended {
            self.live.remove(&piece.start);
        }
        Change { ended, released: vec![time], ..Change::default() }
    }

    /// Takes the memory from `start` to `end` from all blocks: the pieces that it was, and the
    /// blocks of which nothing is left.
    fn clear(&mut self, start: u64, end: u64) -> (Vec<Block>, Vec<u64>) {
        let overlaps = |piece: &Block| piece.start < end && start < piece.end;
        // At most one piece that begins before reaches into this memory.
        let before = self.live.range(..start).next_back().map(|(_, &piece)| piece);
        let within = self.live.range(start..end).map(|(_, &piece)| piece);
        let mut pieces: Vec<Block> = before.into_iter().filter(overlaps).chain(within).collect();
        let mut over = Vec::new();
        for piece in &mut pieces {
            self.live.remove(&piece.start);
            let left = Block { end: start.max(piece.start), ..*piece };
            let right = Block { start: end.min(piece.end), ..*piece };
            let rests = [left, right].into_iter().filter(|rest| rest.start < rest.end);
            let count = rests.clone().count();
            self.live.extend(rests.map(|rest| (rest.start, rest)));
            if self.count_pieces(*piece, count) == 0 {
                over.push(piece.time);
            }
            (piece.start, piece.end) = (piece.start.max(start), piece.end.min(end));
        }
        (pieces, over)
    }

    /// How many pieces are left of the block of `piece`, of which `count` are left.
    fn count_pieces(&mut self, piece: Block, count: usize) -> usize {
        let key = (piece.base, piece.time);
        let whole = Cut { pieces: 1, end: piece.end };
        let mut cut = self.cut.remove(&key).unwrap_or(whole);
        cut.pieces = cut.pieces - 1 + count;
        if cut.pieces > 0 {
            self.cut.insert(key, cut);
        }
        cut.pieces
    }

    /// The live piece that holds `address`.
    #[must_use]
    pub fn holding(&self, address: u64) -> Option<Block> {
        let (_, &piece) = self.live.range(..=address).next_back()?;
        (address < piece.end).then_some(piece)
    }

    /// All live pieces, by address.
    pub fn live(&self) -> impl Iterator<Item = Block> {
        self.live.values().copied()
    }
}
