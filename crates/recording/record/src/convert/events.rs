//! What each event of a recording becomes in the trace: accesses to shared memory and the blocks it
//! lies in, then synchronization.

use std::collections::BTreeMap;
use std::io;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, Kind, channel, flag, handle};
use reweave_trace::views::Mode;
use reweave_trace::{
    ASSUMED, AccessOp, BarrierId, BarrierOp, ConditionId, ConditionOp, LockId, LockOp, Marker,
    MemoryOrder, ObjectId, ObjectOp, Op, SemaphoreId, SemaphoreOp, ThreadId, ThreadOp, VALUE,
    VarId,
};

use super::lives::Counted;
use super::names::{Things, fresh, legal};
use super::places::Births;
use super::scan::{Ahead, key};
use super::{Current, Pass, rules};
use crate::event_log::Stream;
use crate::shadow::{Access, Block, Blocks, Cell, drop_within};

/// What is known of memory.
pub struct Memory {
    pub blocks: Blocks,
    /// Cells whose plain reads have no known writer.
    unknown_writers: FxHashSet<u64>,
    vars: FxHashMap<u64, VarId>,
    var_uses: FxHashMap<String, u32>,
    /// The objects of live blocks, by the time of their allocation.
    pub objects: FxHashMap<u64, ObjectId>,
    /// How the blocks were allocated.
    pub births: Births,
    /// The frames of functions with variables that are kept, by when they end.
    pub frames: FxHashMap<u64, ObjectId>,
    /// Those that a library made.
    pub library_blocks: FxHashSet<u64>,
    /// What is known of atomics in them.
    pub counts: FxHashMap<u64, Counted>,
    /// The numbers of words that nothing else names, by lifetime.
    pub unnamed: FxHashMap<u32, usize>,
    /// Where the program declares races to be benign.
    benign: BTreeMap<u64, Extent>,
    /// What the program has published.
    published: BTreeMap<u64, Published>,
}

/// Where something ends.
#[derive(Clone, Copy, Debug)]
struct Extent {
    end: u64,
}

/// Memory that the program has published: who accesses it comes after that.
#[derive(Clone, Debug)]
struct Published {
    end: u64,
    channel: VarId,
    /// The threads that came after it.
    seen_by: FxHashSet<u32>,
}

impl Memory {
    pub fn new(unknown_writers: FxHashSet<u64>) -> Self {
        Self {
            blocks: Blocks::default(),
            unknown_writers,
            vars: FxHashMap::default(),
            var_uses: FxHashMap::default(),
            objects: FxHashMap::default(),
            births: Births::default(),
            frames: FxHashMap::default(),
            library_blocks: FxHashSet::default(),
            counts: FxHashMap::default(),
            unnamed: FxHashMap::default(),
            benign: BTreeMap::new(),
            published: BTreeMap::new(),
        }
    }

    /// For the names of variables that are no cells.
    pub const fn var_uses(&mut self) -> &mut FxHashMap<String, u32> {
        &mut self.var_uses
    }
}

/// The memory order that compilers number so.
pub fn memory_order(order: u8) -> MemoryOrder {
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
    fn access<S: Stream>(&mut self, current: &mut Current, ahead: &mut Ahead<S>) -> io::Result<()> {
        let value = |pass: &Self, current: &Current| pass.value(current, ahead);
        self.access_cells(current, value)
    }

    /// An access to the shared cells that it covers. `value` says what it read or wrote, and is asked
    /// only if there is one.
    fn access_cells(
        &mut self,
        current: &mut Current,
        value: impl FnOnce(&Self, &Current) -> io::Result<Option<u64>>,
    ) -> io::Result<()> {
        let event = current.event;
        let Some(access) = Access::new(&event) else { return Ok(()) };
        let time = self.memory.blocks.time();
        if let Some(freed) = self.first_pass.freed_before_use(current.place)
            && !is_within(&self.memory.benign, access.start)
        {
            self.use_of_freed(current, freed)?;
        }
        if !self.memory.published.is_empty() {
            self.come_after_publication(current, access.start)?;
        }
        let (mut ask, mut known) = (Some(value), None);
        let mut at = access.start;
        while let Some(cell) = self.first_pass.cells.next_cell(access, at, time) {
            if let Some(ask) = ask.take() {
                known = ask(self, current)?;
            }
            self.access_cell(current, access, cell, known)?;
            at = cell.end;
        }
        self.summary.local_accesses += u64::from(ask.is_some());
        Ok(())
    }

    fn access_cell(
        &mut self,
        current: &mut Current,
        access: Access,
        cell: Cell,
        value: Option<u64>,
    ) -> io::Result<()> {
        let var = self.var(cell);
        let is_unknown = self.memory.unknown_writers.contains(&key(cell));
        let is_benign = is_within(&self.memory.benign, cell.begin);
        let op = op_of(&current.event, var, is_unknown, is_benign);
        if access.is_atomic
            && let Some(block) = self.memory.blocks.holding(cell.begin)
            && self.memory.objects.contains_key(&block.time)
        {
            let count = self.memory.counts.entry(block.time).or_default();
            count.step(current.number, &current.event, cell.begin - block.base);
        }
        let value = value.map(|value| part(value, access.start, cell.begin, cell.end));
        let is_unknown = matches!(op, Op::Access(AccessOp::UnknownRead, _));
        if self.emit(current, op, value)? && is_unknown {
            self.summary.unknown_reads += 1;
        }
        Ok(())
    }

    /// What the access read or wrote.
    fn value<S: Stream>(&self, current: &Current, ahead: &mut Ahead<S>) -> io::Result<Option<u64>> {
        let event = current.event;
        match event.kind {
            Kind::Write => self.first_pass.stored(ahead, current.number, current.place),
            // As everywhere, an update has the value that it wrote.
            Kind::AtomicUpdate => Ok(event.extra),
            Kind::ReadRange | Kind::WriteRange => Ok(None),
            _ => Ok(event.value),
        }
    }

    fn var(&mut self, cell: Cell) -> VarId {
        let key = key(cell);
        if let Some(&var) = self.memory.vars.get(&key) {
            return var;
        }
        let name = self.name_of(cell);
        let names = &mut self.sink.names().vars;
        let var = fresh(names, &mut self.memory.var_uses, &name);
        if self.is_fresh
            && self.memory.blocks.holding(cell.begin).is_none()
            && self.symbols.is_zeroed(cell.begin)
        {
            self.sink.declare_initial(var, 0);
        }
        self.memory.vars.insert(key, var);
        var
    }

    /// The program publishes memory, or takes that back.
    fn publish(&mut self, current: &mut Current) -> io::Result<()> {
        let start = current.event.address;
        let length = current.event.extra.unwrap_or(0);
        if length == 0 {
            self.memory.published.remove(&start);
            return Ok(());
        }
        let name = self.numbered("published".to_owned());
        let channel = fresh(&mut self.sink.names().vars, &mut self.memory.var_uses, &name);
        let release = AccessOp::AtomicUpdate(MemoryOrder::Release);
        self.emit(current, Op::Access(release, channel), None)?;
        let seen_by = FxHashSet::from_iter([current.number]);
        let published = Published { end: start.saturating_add(length), channel, seen_by };
        self.memory.published.insert(start, published);
        Ok(())
    }

    /// A thread that accesses `address` comes after its publication, if there was one.
    fn come_after_publication(&mut self, current: &mut Current, address: u64) -> io::Result<()> {
        let Some((_, published)) = self.memory.published.range_mut(..=address).next_back() else {
            return Ok(());
        };
        if address < published.end && published.seen_by.insert(current.number) {
            let acquire = AccessOp::AtomicRead(MemoryOrder::Acquire);
            let op = Op::Access(acquire, published.channel);
            self.emit(current, op, None)?;
        }
        Ok(())
    }

    /// An allocation or a release.
    fn change_blocks<S: Stream>(
        &mut self,
        current: &mut Current,
        ahead: &mut Ahead<S>,
    ) -> io::Result<()> {
        let time = self.memory.blocks.time();
        let Some(change) = self.memory.blocks.step(&current.event) else { return Ok(()) };
        let pieces = change.ended.iter().map(|piece| (piece.start, piece.end));
        for (start, end) in pieces.chain(change.range) {
            self.objects.end_within(start, end);
            drop_within(&mut self.memory.benign, start, end);
            drop_within(&mut self.memory.published, start, end);
        }
        for time in &change.lost {
            self.memory.objects.remove(time);
            self.memory.births.end(*time);
            self.memory.counts.remove(time);
        }
        if let Some(&object) = self.memory.frames.get(&time)
            && self.first_pass.is_frame_seen(&current.event, current.place)
        {
            self.emit(current, Op::Object(ObjectOp::Free, object), None)?;
        }
        if change.released.is_empty() {
            self.misuse_of_freed(current)?;
        }
        // An object ends with the last piece of its block.
        let mut is_said = false;
        for time in &change.released {
            let count = self.memory.counts.remove(time);
            self.memory.births.end(*time);
            let Some(object) = self.memory.objects.remove(time) else { continue };
            let is_seen = self.is_end_seen(current, *time, count);
            let is_freed_again = self.first_pass.is_freed_again(*time);
            if is_seen {
                self.emit(current, Op::Object(ObjectOp::Free, object), None)?;
            } else if is_freed_again {
                // Something has to stand where it was freed first.
                self.emit(current, Op::Marker(Marker::Branch), None)?;
            }
            is_said |= is_seen || is_freed_again;
            if is_freed_again {
                self.misuses.freed(current, self.threads[current.thread].last_event);
            }
        }
        if self.first_pass.is_used_later(time) {
            if !is_said {
                self.emit(current, Op::Marker(Marker::Branch), None)?;
            }
            let event = self.threads[current.thread].last_event;
            self.misuses.freed_then_used(current, event, time);
        }
        match change.born {
            Some(block) => self.begin_block(current, ahead, block),
            None => Ok(()),
        }
    }

    /// A block is allocated.
    fn begin_block<S: Stream>(
        &mut self,
        current: &mut Current,
        ahead: &mut Ahead<S>,
        block: Block,
    ) -> io::Result<()> {
        self.note_birth(current, ahead, block)?;
        let is_kept = self.first_pass.cells.keeps_block(block.time)
            || self.first_pass.is_freed_again(block.time);
        if !is_kept {
            return Ok(());
        }
        let object = if current.event.flags & flag::STACK == 0 {
            let named = self.block_name(block.time);
            current.origin = self.origin(current.event.code, current.occurrence);
            current.site = named.site;
            self.sink.names().objects.intern(&named.name)
        } else {
            let thread = self.thread_id(current.number);
            let names = self.sink.names();
            names.objects.intern(&format!("stack({})", names.threads.name(thread)))
        };
        self.memory.objects.insert(block.time, object);
        self.note_maker(current, block.time);
        self.emit(current, Op::Object(ObjectOp::Alloc, object), None)?;
        Ok(())
    }
}

/// Whether `address` is in one of `extents`.
fn is_within(extents: &BTreeMap<u64, Extent>, address: u64) -> bool {
    extents.range(..=address).next_back().is_some_and(|(_, extent)| address < extent.end)
}

fn op_of(event: &Event, var: VarId, is_unknown: bool, is_benign: bool) -> Op {
    let order = memory_order(event.order);
    let relaxed = MemoryOrder::Relaxed;
    match event.kind {
        // What a read saw still says what came before it.
        Kind::Read | Kind::ReadRange if is_benign => Op::Access(AccessOp::AtomicRead(relaxed), var),
        Kind::Write | Kind::WriteRange if is_benign => {
            Op::Access(AccessOp::AtomicWrite(relaxed), var)
        }
        Kind::Read | Kind::ReadRange if is_unknown => Op::Access(AccessOp::UnknownRead, var),
        Kind::Write | Kind::WriteRange => Op::Access(AccessOp::Write, var),
        Kind::AtomicLoad | Kind::AtomicFailed => Op::Access(AccessOp::AtomicRead(order), var),
        Kind::AtomicStore => Op::Access(AccessOp::AtomicWrite(order), var),
        Kind::AtomicUpdate => Op::Access(AccessOp::AtomicUpdate(order), var),
        _ => Op::Access(AccessOp::Read, var),
    }
}

// Locks, conditions, barriers, semaphores, threads, channels, atomic blocks.

/// What a thread that waits on a condition released for it.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    condition: ConditionId,
    released: Option<(LockId, Mode)>,
}

/// What lives at which address.
pub struct Objects {
    pub locks: Things<LockId>,
    pub conditions: Things<ConditionId>,
    pub barriers: Things<BarrierId>,
    pub semaphores: Things<SemaphoreId>,
    /// By who says that there is one: the program or the kernel, a function that is known to hand
    /// something over, or nobody.
    channels: [BTreeMap<u64, Channel>; 3],
    channel_counts: FxHashMap<String, u32>,
    /// Locks that a thread released which another held, and what stands for that hand-over.
    handed_over: FxHashMap<LockId, VarId>,
    /// Who acquired a lock that another was not seen to release.
    refused: FxHashSet<(ThreadId, LockId)>,
}

/// No memory of a program has an address from here on; channels of the kernel do.
const MEMORY_END: u64 = 1 << 47;

/// A channel, in the kernel or declared for an address: what was handed to it, and what was taken
/// from it.
#[derive(Clone, Copy, Debug)]
struct Channel {
    sent: VarId,
    taken: VarId,
}

impl Objects {
    pub fn new() -> Self {
        Self {
            locks: Things::new("lock"),
            conditions: Things::new("condition"),
            barriers: Things::new("barrier"),
            semaphores: Things::new("semaphore"),
            channels: [const { BTreeMap::new() }; 3],
            channel_counts: FxHashMap::default(),
            handed_over: FxHashMap::default(),
            refused: FxHashSet::default(),
        }
    }

    /// The memory from `start` to `end` is another now.
    pub fn end_within(&mut self, start: u64, end: u64) {
        self.locks.end_within(start, end);
        self.conditions.end_within(start, end);
        self.barriers.end_within(start, end);
        self.semaphores.end_within(start, end);
        for channels in &mut self.channels {
            drop_within(channels, start, end);
        }
    }
}

impl Pass<'_> {
    pub fn convert<S: Stream>(
        &mut self,
        current: &mut Current,
        ahead: &mut Ahead<S>,
    ) -> io::Result<()> {
        let event = current.event;
        let address = event.address;
        let op = match event.kind {
            Kind::Read
            | Kind::Write
            | Kind::ReadRange
            | Kind::WriteRange
            | Kind::AtomicLoad
            | Kind::AtomicStore
            | Kind::AtomicUpdate
            | Kind::AtomicFailed => return self.access(current, ahead),
            Kind::Alloc | Kind::Free => return self.change_blocks(current, ahead),
            Kind::Interrupted => return self.misuse_in_handler(current),
            Kind::Fence => Op::Fence(memory_order(event.order)),
            // Who tries, or waits for a time only, is not said to ask: nothing keeps it for ever.
            Kind::LockRequest if event.flags & flag::TRY != 0 => return Ok(()),
            Kind::LockRequest => return self.request_lock(current),
            Kind::Lock => return self.acquire_lock(current),
            Kind::Unlock => return self.release_lock(current),
            Kind::LockBusy => return self.find_taken(current),
            Kind::LockDestroy if event.handle_step().is_some() => return self.step_handle(current),
            Kind::LockDestroy => return self.destroy(current),
            Kind::LockInit | Kind::BarrierInit | Kind::SemaphoreInit => {
                self.begin_or_end(&event);
                return Ok(());
            }
            Kind::Fork if self.first_pass.fork_fails(current.place) => return Ok(()),
            Kind::Fork => {
                let child = self.thread_id(address as u32);
                if self.emit(current, Op::Thread(ThreadOp::Fork, child), None)? {
                    self.misuses.fork(current, self.threads[current.thread].last_event);
                }
                return Ok(());
            }
            Kind::Join => {
                let child = self.thread_id(address as u32);
                let is_emitted = self.emit(current, Op::Thread(ThreadOp::Join, child), None)?;
                let event = self.threads[current.thread].last_event.filter(|_| is_emitted);
                self.misuses.release(address as u32, true, (current.number, event));
                return if is_emitted { self.end_joined(current, address as u32) } else { Ok(()) };
            }
            Kind::End => return self.end_detached(current),
            Kind::Wait => return self.wait(current),
            Kind::Wake => return self.wake(current),
            Kind::Signal => Op::Condition(ConditionOp::Notify, self.condition(address)),
            Kind::Broadcast => Op::Condition(ConditionOp::NotifyAll, self.condition(address)),
            Kind::BarrierArrive => Op::Barrier(BarrierOp::Arrive, self.barrier(address)),
            Kind::BarrierDepart => Op::Barrier(BarrierOp::Depart, self.barrier(address)),
            Kind::SemaphorePost | Kind::SemaphoreTake => return self.use_semaphore(current),
            Kind::Send | Kind::Receive => return self.use_channel(current),
            Kind::BlockBegin | Kind::BlockEnd => return self.cross_block(current),
            Kind::Benign => {
                let end = address.saturating_add(event.extra.unwrap_or(0));
                self.memory.benign.insert(address, Extent { end });
                return Ok(());
            }
            Kind::Publish => return self.publish(current),
            other => {
                debug_assert!(has_no_operation(other), "{other:?} is an operation");
                return Ok(());
            }
        };
        self.emit(current, op, None)?;
        Ok(())
    }

    pub fn lock(&mut self, address: u64) -> LockId {
        let lock = match self.objects.locks.used_at(address) {
            Some(lock) => lock,
            None => {
                let name = self.object_name(address, "lock");
                let names = &mut self.sink.names().locks;
                self.objects.locks.first_used(address, names, name).0
            }
        };
        if self.first_pass.is_tried_lock(address) {
            self.attempts.tried.insert(lock);
        }
        lock
    }

    pub fn condition(&mut self, address: u64) -> ConditionId {
        if let Some(condition) = self.objects.conditions.used_at(address) {
            return condition;
        }
        let name = self.object_name(address, "condition");
        let names = &mut self.sink.names().conditions;
        self.objects.conditions.first_used(address, names, name).0
    }

    pub fn barrier(&mut self, address: u64) -> BarrierId {
        if let Some(barrier) = self.objects.barriers.used_at(address) {
            return barrier;
        }
        let name = self.object_name(address, "barrier");
        let names = &mut self.sink.names().barriers;
        let (barrier, parties) = self.objects.barriers.first_used(address, names, name);
        let parties = parties.and_then(|parties| u32::try_from(parties).ok());
        if let Some(parties) = parties.filter(|&parties| parties > 0) {
            self.sink.declare_parties(barrier, parties);
            self.rules.monitor.declare_parties(barrier, parties);
        }
        barrier
    }

    pub fn semaphore(&mut self, address: u64) -> SemaphoreId {
        if let Some(semaphore) = self.objects.semaphores.used_at(address) {
            return semaphore;
        }
        let name = self.object_name(address, "semaphore");
        let names = &mut self.sink.names().semaphores;
        let (semaphore, start) = self.objects.semaphores.first_used(address, names, name);
        if let Some(start) = start.and_then(|start| u32::try_from(start).ok()) {
            self.sink.declare_start(semaphore, start);
            self.rules.monitor.declare_start(semaphore, start);
        }
        semaphore
    }

    fn use_semaphore(&mut self, current: &mut Current) -> io::Result<()> {
        let address = current.event.address;
        let is_post = current.event.kind == Kind::SemaphorePost;
        let op = if is_post { SemaphoreOp::Post } else { SemaphoreOp::Take };
        let semaphore = self.semaphore(address);
        self.emit(current, Op::Semaphore(op, semaphore), None)?;
        // Who looks at its value goes on because of it.
        if self.first_pass.is_looked_at(address) {
            let sent = self.channel(&current.event).sent;
            let op = Op::Access(AccessOp::AtomicUpdate(MemoryOrder::Release), sent);
            self.emit(current, op, None)?;
        }
        Ok(())
    }

    /// The variables that stand for the channel of `event`.
    fn channel(&mut self, event: &Event) -> Channel {
        let address = event.address;
        let (sort, word) = match event.extra {
            None => (0, "declared"),
            Some(_) if event.flags & flag::ASSUMED == 0 => (1, "handed"),
            Some(_) => (2, ASSUMED),
        };
        if let Some(&channel) = self.objects.channels[sort].get(&address) {
            return channel;
        }
        // What a program declares of an address of its own is no channel of the kernel.
        let is_declared = address < MEMORY_END;
        let is_semaphore = self.objects.semaphores.at(address).is_some();
        let name = match (event.extra, is_declared) {
            (None, true) if is_semaphore => {
                let semaphore = self.semaphore(address);
                format!("{}{VALUE}", self.sink.names().semaphores.name(semaphore))
            }
            (Some(code), _) => {
                let name = format!("{word}({})", self.library(code));
                self.numbered(name)
            }
            (None, true) => match self.object_name(address, "address") {
                Some(name) => format!("{word}({name})"),
                None => self.numbered(word.to_owned()),
            },
            (None, false) => match channel::name(address) {
                (word, Some(_)) => self.numbered(word.to_owned()),
                (word, None) => word.to_owned(),
            },
        };
        let vars = &mut self.sink.names().vars;
        let sent = fresh(vars, self.memory.var_uses(), &name);
        let taken = fresh(vars, self.memory.var_uses(), &format!("{name}.taken"));
        let channel = Channel { sent, taken };
        self.objects.channels[sort].insert(address, channel);
        channel
    }

    /// `word` with how many channels there are of it by now.
    fn numbered(&mut self, word: String) -> String {
        let count = self.objects.channel_counts.entry(word.clone()).or_default();
        *count += 1;
        format!("{word}#{count}")
    }

    /// The file name of the library that has `code`.
    pub fn library(&mut self, code: u64) -> String {
        legal(self.symbols.library(code).as_deref().unwrap_or("library"))
    }

    /// Something is handed to a channel or taken from it, or what has a life is used.
    fn use_channel(&mut self, current: &mut Current) -> io::Result<()> {
        let Event { kind, address, .. } = current.event;
        if channel::descriptor(address).is_some() {
            return self.use_descriptor(current);
        }
        match (kind, channel::thread(address)) {
            (Kind::Send, _) => self.send(current),
            (_, Some(number)) => self.use_thread(current, number),
            _ => self.receive(current),
        }
    }

    fn send(&mut self, current: &mut Current) -> io::Result<()> {
        let event = current.event;
        // A handler that never ran orders nothing. Programs in Rust install two when they start.
        if channel::is_installation(event.address) && !self.first_pass.is_looked_at(event.address) {
            return Ok(());
        }
        // Who hands over comes after those who did before: what comes out depends on it.
        let sent = self.channel(&event).sent;
        let op = Op::Access(AccessOp::AtomicUpdate(MemoryOrder::Release), sent);
        self.emit(current, op, None).map(drop)
    }

    /// What is taken out is what was handed over last and before; who takes first gets the first.
    fn receive(&mut self, current: &mut Current) -> io::Result<()> {
        let event = current.event;
        let channel = self.channel(&event);
        let is_empty = event.flags & flag::TIMED_OUT != 0;
        let order = if is_empty { MemoryOrder::Relaxed } else { MemoryOrder::Acquire };
        self.emit(current, Op::Access(AccessOp::AtomicRead(order), channel.sent), None)?;
        // What is found also depends on who took something before.
        let access = match event.flags & flag::TRY {
            0 => AccessOp::AtomicUpdate(MemoryOrder::Relaxed),
            _ if self.first_pass.is_taken_from(event.address) => {
                AccessOp::AtomicRead(MemoryOrder::Relaxed)
            }
            _ => return Ok(()),
        };
        self.emit(current, Op::Access(access, channel.taken), None).map(drop)
    }

    /// A lock, condition, barrier or semaphore ends, or a lock is asked for that has.
    fn destroy(&mut self, current: &mut Current) -> io::Result<()> {
        if current.event.is_use_of_destroyed() {
            return self.use_of_destroyed(current);
        }
        self.misuse_of_destroyed(current)?;
        self.end_life(current)?;
        self.begin_or_end(&current.event);
        Ok(())
    }

    /// A lock, barrier or semaphore is set up, or a lock or condition ends. A thread may still be about to leave a
    /// barrier or a semaphore that another destroys.
    fn begin_or_end(&mut self, event: &Event) {
        let Objects { locks, conditions, barriers, semaphores, .. } = &mut self.objects;
        match event.kind {
            Kind::BarrierInit => barriers.begin(event.address, event.extra, None),
            Kind::SemaphoreInit => semaphores.begin(event.address, event.extra, None),
            Kind::LockDestroy => match event.extra {
                None => locks.end(event.address),
                Some(handle::CONDITION) => conditions.end(event.address),
                Some(_) => {}
            },
            _ => match locks.at(event.address) {
                // Set up again without an end in between: sections before and after may exclude
                // each other, so it stays the same lock.
                Some(lock) => lock.flags = Some(event.flags),
                None => locks.begin(event.address, None, Some(event.flags)),
            },
        }
    }

    /// An update acquires the lock that its word is. It still reads the word, which may not be set up.
    pub fn acquire_word(&mut self, current: &mut Current, waits: bool) -> io::Result<()> {
        let update = current.event;
        current.event = Event { kind: Kind::AtomicLoad, value: None, ..update };
        self.access_cells(current, |_, _| Ok(None))?;
        let flags = if waits { 0 } else { flag::TRY };
        current.event = Event { kind: Kind::Lock, flags, ..update };
        self.acquire_lock(current)
    }

    fn request_lock(&mut self, current: &mut Current) -> io::Result<()> {
        let address = current.event.address;
        let lock = self.lock(address);
        self.threads[current.thread].asked = Some(lock);
        // The mode matters where no acquire follows, and only for a lock that has two.
        let wants_all = current.event.flags & flag::SHARED == 0;
        let is_exclusive = wants_all && self.first_pass.is_shared_lock(address);
        // Others who want to share the lock may have to stay behind this one. What says so comes first,
        // since nothing comes between a request and its acquire.
        if is_exclusive {
            self.mark_section(current, lock)?;
        }
        let request = if is_exclusive { LockOp::RequestExclusive } else { LockOp::Request };
        self.emit(current, Op::Lock(request, lock), None).map(drop)
    }

    fn acquire_lock(&mut self, current: &mut Current) -> io::Result<()> {
        let event = current.event;
        let lock = self.lock(event.address);
        let thread = self.thread_id(current.number);
        // A lock that is no more than a word is taken without a call that would have said so.
        let was_asked_for = self.threads[current.thread].asked.take() == Some(lock);
        if !was_asked_for && event.flags & flag::TRY == 0 {
            self.emit(current, Op::Lock(LockOp::Request, lock), None)?;
        }
        if event.flags & flag::SHARED != 0 {
            self.emit(current, Op::Lock(LockOp::AcquireShared, lock), None)?;
            return Ok(());
        }
        let flags = self.objects.locks.at(event.address).and_then(|lock| lock.flags);
        let can_nest = (flags.unwrap_or(flag::RECURSIVE) | event.flags) & flag::RECURSIVE != 0;
        if !can_nest && self.rules.hold(thread, lock) == Some(Mode::Exclusive) {
            self.refuse("second acquire of a lock that does not nest");
            return Ok(());
        }
        if self.emit(current, Op::Lock(LockOp::Acquire, lock), None)? {
            self.misuses.acquired(lock, self.threads[current.thread].last_event);
        } else {
            self.objects.refused.insert((thread, lock));
        }
        if let Some(var) = self.objects.handed_over.remove(&lock) {
            let order = MemoryOrder::Acquire;
            self.emit(current, Op::Access(AccessOp::AtomicRead(order), var), None)?;
        }
        Ok(())
    }

    pub fn release_lock(&mut self, current: &mut Current) -> io::Result<()> {
        let lock = self.lock(current.event.address);
        let thread = self.thread_id(current.number);
        let hold = self.rules.hold(thread, lock);
        let was_refused = self.objects.refused.remove(&(thread, lock));
        if hold.is_none() && !was_refused {
            self.misuse_by_stranger(current, lock, "releases")?;
        }
        if hold.is_none() && !was_refused && self.hand_over(current, lock)? {
            return Ok(());
        }
        self.emit(current, release(lock, hold), None)?;
        Ok(())
    }

    /// The thread that holds `lock` alone, by its number.
    pub fn exclusive_holder(&self, lock: LockId) -> Option<u32> {
        let holds = |number: &u32| {
            let id = self.places.get(number).and_then(|&place| self.threads[place].id);
            id.is_some_and(|id| self.rules.hold(id, lock) == Some(Mode::Exclusive))
        };
        self.places.keys().copied().filter(holds).min()
    }

    /// A thread releases a lock that another holds: misuse, but where it works, whoever gets the lock
    /// next comes after what was done before. Says whether somebody held it.
    fn hand_over(&mut self, current: &mut Current, lock: LockId) -> io::Result<bool> {
        let Some(holder) = self.exclusive_holder(lock) else { return Ok(false) };
        let name = format!("{}.handed_over", self.sink.names().locks.name(lock));
        let vars = &mut self.sink.names().vars;
        let var = fresh(vars, self.memory.var_uses(), &name);
        let order = MemoryOrder::Release;
        self.emit(current, Op::Access(AccessOp::AtomicUpdate(order), var), None)?;
        // The lock is free from here on, at a place of the holder that is not known.
        let place = self.thread(holder);
        let site = self.site(place, 0, None);
        let mut released =
            Current { thread: place, number: holder, site: Some(site), origin: None, ..*current };
        self.emit(&mut released, Op::Lock(LockOp::Release, lock), None)?;
        self.objects.handed_over.insert(lock, var);
        Ok(true)
    }

    fn wait(&mut self, current: &mut Current) -> io::Result<()> {
        let event = current.event;
        let condition = self.condition(event.address);
        let thread = self.thread_id(current.number);
        let mut released = None;
        if let Some(address) = event.extra {
            let lock = self.lock(address);
            let hold = self.rules.hold(thread, lock);
            if hold.is_none() {
                self.misuse_by_stranger(current, lock, "waits with")?;
            }
            if self.emit(current, release(lock, hold), None)? {
                released = hold.map(|hold| (lock, hold));
            }
        }
        self.emit(current, Op::Condition(ConditionOp::Wait, condition), None)?;
        self.threads[current.thread].waiting = Some(Waiting { condition, released });
        Ok(())
    }

    fn wake(&mut self, current: &mut Current) -> io::Result<()> {
        let event = current.event;
        let thread = self.thread_id(current.number);
        let waiting = self.threads[current.thread].waiting.take();
        // The condition that it began to wait on, though its memory may be another's by now.
        let condition = match waiting {
            Some(waiting) => waiting.condition,
            None => self.condition(event.address),
        };
        let is_waiting = self.rules.monitor.waits_on(thread) == Some(condition);
        if is_waiting {
            let timed_out = event.flags & flag::TIMED_OUT != 0;
            let wakes = !timed_out
                && self
                    .try_emit(current, Op::Condition(ConditionOp::Wake, condition), None)?
                    .is_ok();
            if !wakes {
                self.summary.spurious_wakes += u64::from(!timed_out);
                self.emit(current, Op::Condition(ConditionOp::Timeout, condition), None)?;
            }
        } else {
            self.refuse("wake without a wait");
        }
        let released = waiting.and_then(|waiting| waiting.released);
        let (lock, hold) = match (released, event.extra) {
            (Some(released), _) => released,
            (None, Some(address)) => (self.lock(address), Mode::Exclusive),
            (None, None) => return Ok(()),
        };
        // It holds the lock now. Where it did not release it, it may have had it all along.
        let may_hold = !is_waiting || released.is_none();
        if may_hold && self.rules.hold(thread, lock).is_some() {
            return Ok(());
        }
        let op = match hold {
            Mode::Exclusive => Op::Lock(LockOp::Acquire, lock),
            Mode::Shared => Op::Lock(LockOp::AcquireShared, lock),
        };
        self.emit(current, op, None)?;
        Ok(())
    }

    fn cross_block(&mut self, current: &mut Current) -> io::Result<()> {
        if current.event.kind == Kind::BlockEnd {
            match self.threads[current.thread].blocks.pop() {
                Some(block) => _ = self.emit(current, Op::Marker(Marker::End(block)), None)?,
                None => self.refuse(rules::NO_BLOCK),
            }
            return Ok(());
        }
        let name = block_name(&current.event);
        let block = self.sink.names().blocks.intern(&name);
        if self.emit(current, Op::Marker(Marker::Begin(block)), None)? {
            self.threads[current.thread].blocks.push(block);
        }
        Ok(())
    }
}

/// Whether events of this kind are no operations of the trace.
pub const fn has_no_operation(kind: Kind) -> bool {
    // Those of OpenMP became forks, joins and barriers; lock recognition made atomic accesses of
    // parking and of what is done once.
    kind.is_openmp()
        || matches!(
            kind,
            Kind::Nothing
                | Kind::Stored
                | Kind::Run
                | Kind::Switch
                | Kind::Begin
                | Kind::End
                | Kind::ForkFailed
                | Kind::Enter
                | Kind::Leave
                | Kind::FutexWait
                | Kind::FutexAwake
                | Kind::FutexWake
                | Kind::Escaped
                | Kind::Block
                | Kind::Unblock
                | Kind::Interrupted
                | Kind::Argument
                | Kind::Detach
                | Kind::Maps
                | Kind::Park
                | Kind::OnceDone
        )
}

/// The release of `lock` by a thread that holds it so.
fn release(lock: LockId, hold: Option<Mode>) -> Op {
    let is_shared = hold == Some(Mode::Shared);
    Op::Lock(if is_shared { LockOp::ReleaseShared } else { LockOp::Release }, lock)
}

/// The name of an atomic block that begins: sixteen bytes, the rest zeros.
fn block_name(event: &Event) -> String {
    let words = [event.extra.unwrap_or(0), event.value.unwrap_or(0)].map(u64::to_le_bytes);
    let bytes = words.concat();
    let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    match length {
        0 => "atomic".into(),
        _ => legal(&String::from_utf8_lossy(&bytes[..length])),
    }
}
