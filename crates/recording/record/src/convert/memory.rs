//! Accesses to shared memory, and the blocks it lies in.

use std::io;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, Kind};
use reweave_trace::{AccessOp, MemoryOrder, ObjectId, ObjectOp, Op, VarId};

use super::naming::{at_offset, fresh};
use super::order::key;
use super::pass::{Current, Pass};
use super::preview::Ahead;
use crate::cells::{Access, Blocks, GRANULE};
use crate::spool::Stream;

/// What is known of memory.
pub(super) struct Memory {
    blocks: Blocks,
    /// Cells whose plain reads have no known writer.
    loose: FxHashSet<u64>,
    vars: FxHashMap<u64, VarId>,
    var_uses: FxHashMap<String, u32>,
    /// The objects of live blocks, by the time of their allocation.
    objects: FxHashMap<u64, ObjectId>,
    /// The numbers of granules that nothing else names, by lifetime.
    unnamed: FxHashMap<u32, usize>,
}

impl Memory {
    pub(super) fn new(loose: FxHashSet<u64>) -> Self {
        Self {
            blocks: Blocks::default(),
            loose,
            vars: FxHashMap::default(),
            var_uses: FxHashMap::default(),
            objects: FxHashMap::default(),
            unnamed: FxHashMap::default(),
        }
    }

    /// For the names of variables that are no cells.
    pub(super) const fn var_uses(&mut self) -> &mut FxHashMap<String, u32> {
        &mut self.var_uses
    }
}

/// The memory order that compilers number so.
pub(super) fn memory_order(order: u8) -> MemoryOrder {
    match order {
        0 => MemoryOrder::Relaxed,
        1 | 2 => MemoryOrder::Acquire,
        3 => MemoryOrder::Release,
        4 => MemoryOrder::AcqRel,
        _ => MemoryOrder::SeqCst,
    }
}

/// The part of `value`, which was accessed from `start` on, in the bytes from `begin` to `end`.
pub(crate) fn part(value: u64, start: u64, begin: u64, end: u64) -> i64 {
    let shifted = value >> (8 * (begin - start));
    let bits = 8 * (end - begin);
    let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
    (shifted & mask) as i64
}

impl Pass<'_> {
    pub(super) fn access<S: Stream>(
        &mut self,
        current: &mut Current,
        ahead: &mut Ahead<S>,
    ) -> io::Result<()> {
        let event = current.event;
        let Some(access) = Access::new(&event) else { return Ok(()) };
        let time = self.memory.blocks.time();
        let mut value = None;
        let mut is_local = true;
        for part in access.parts() {
            if !self.preview.cells.may_keep(part) {
                continue;
            }
            for (granule, from, to) in part.granules() {
                let Some(place) = self.preview.cells.lifetime_at(granule, time) else { continue };
                if std::mem::take(&mut is_local) {
                    value = self.value(current, ahead)?;
                }
                self.access_granule(current, access, (place, granule, from, to), value)?;
            }
        }
        self.summary.local_accesses += u64::from(is_local);
        Ok(())
    }

    /// An access to the bytes from `from` to `to` of `granule`, in the lifetime at `place`.
    fn access_granule(
        &mut self,
        current: &mut Current,
        access: Access,
        (place, granule, from, to): (u32, u64, u8, u8),
        value: Option<u64>,
    ) -> io::Result<()> {
        let lifetime = self.preview.cells.lifetimes()[place as usize];
        let base = granule * GRANULE;
        for (begin, end) in lifetime.cells(from, to) {
            let var = self.var(place, base, begin);
            let is_loose = self.memory.loose.contains(&key(place, begin));
            let op = op_of(&current.event, var, is_loose);
            let (begin, end) = (base + u64::from(begin), base + u64::from(end));
            let value = value.map(|value| part(value, access.start, begin, end));
            let is_loose = matches!(op, Op::Access(AccessOp::UnknownRead, _));
            if self.emit(current, op, value)? && is_loose {
                self.summary.unknown_reads += 1;
            }
        }
        Ok(())
    }

    /// What the access read or wrote.
    fn value<S: Stream>(&self, current: &Current, ahead: &mut Ahead<S>) -> io::Result<Option<u64>> {
        let event = current.event;
        match event.kind {
            Kind::Write => self.preview.stored(ahead, current.number, current.place),
            // As everywhere, an update has the value that it wrote.
            Kind::AtomicUpdate => Ok(event.extra),
            Kind::ReadRange | Kind::WriteRange => Ok(None),
            _ => Ok(event.value),
        }
    }

    /// The variable of the cell that begins at byte `begin` of the lifetime at `place`.
    fn var(&mut self, place: u32, base: u64, begin: u8) -> VarId {
        let key = key(place, begin);
        if let Some(&var) = self.memory.vars.get(&key) {
            return var;
        }
        let address = base + u64::from(begin);
        let name = self.name_of(place, address, begin);
        let names = &mut self.sink.names().vars;
        let var = fresh(names, &mut self.memory.var_uses, &name);
        self.memory.vars.insert(key, var);
        var
    }

    fn name_of(&mut self, place: u32, address: u64, begin: u8) -> String {
        if let Some(block) = self.memory.blocks.holding(address)
            && let Some(&object) = self.memory.objects.get(&block.time)
        {
            let name = self.sink.names().objects.name(object);
            return at_offset(name, address - block.base);
        }
        if let Some((name, offset)) = self.symbols.data(address) {
            return at_offset(&name, offset);
        }
        let next = self.memory.unnamed.len() + 1;
        let number = *self.memory.unnamed.entry(place).or_insert(next);
        at_offset(&format!("memory#{number}"), u64::from(begin))
    }

    /// An allocation or a release.
    pub(super) fn change_blocks(&mut self, current: &mut Current) -> io::Result<()> {
        let Some(change) = self.memory.blocks.step(&current.event) else { return Ok(()) };
        let pieces = change.ended.iter().map(|piece| (piece.start, piece.end));
        for (start, end) in pieces.chain(change.range) {
            self.objects.end_within(start, end);
        }
        for time in &change.lost {
            self.memory.objects.remove(time);
        }
        // An object ends with the last piece of its block.
        for time in &change.released {
            if let Some(object) = self.memory.objects.remove(time) {
                self.emit(current, Op::Object(ObjectOp::Free, object), None)?;
            }
        }
        if let Some(block) = change.born
            && self.preview.cells.keeps_block(block.time)
        {
            let objects = &mut self.sink.names().objects;
            let object = objects.intern(&format!("block#{}", objects.len() + 1));
            self.memory.objects.insert(block.time, object);
            self.emit(current, Op::Object(ObjectOp::Alloc, object), None)?;
        }
        Ok(())
    }
}

fn op_of(event: &Event, var: VarId, is_loose: bool) -> Op {
    let order = memory_order(event.order);
    match event.kind {
        Kind::Read | Kind::ReadRange if is_loose => Op::Access(AccessOp::UnknownRead, var),
        Kind::Write | Kind::WriteRange => Op::Access(AccessOp::Write, var),
        Kind::AtomicLoad | Kind::AtomicFailed => Op::Access(AccessOp::AtomicRead(order), var),
        Kind::AtomicStore => Op::Access(AccessOp::AtomicWrite(order), var),
        Kind::AtomicUpdate => Op::Access(AccessOp::AtomicUpdate(order), var),
        _ => Op::Access(AccessOp::Read, var),
    }
}
