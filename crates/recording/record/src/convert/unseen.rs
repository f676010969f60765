//! Accesses by code that was not recorded: which writes show, and what do they order? What it may have
//! read is asked in [`reads`].
//!
//! Libraries that were not rebuilt and assembler write memory that recorded code reads. Where one
//! thread runs at a time, a read that sees something else than the accesses before it left there is
//! *unexplained*: some thread has written there since the last access, out of sight. What that thread
//! did before must come before the read in every reordering, or the read would see something else.
//! Nobody knows which thread it was, so the order is kept with all that it can have been, and marked
//! as assumed: it may hide a race but invents none, and `check` counts what it may hide.
//!
//! - An atomic read may itself be what orders threads. It comes after all that the threads did which
//!   ran since the last access; if it acquires nothing, a later fence does.
//! - A plain read orders nothing. In a program without races the write happens before it by other
//!   means. If some were seen, more than forks, it comes after what happens before it by these; that
//!   orders nothing more than the recorded run did. If none was seen, it is as for an atomic read;
//!   unless the thread itself accessed this memory last: then its own libraries wrote there. A volatile
//!   read is as an atomic one.
//!   Of memory that nobody was seen to access since the start, what was seen to order may have come
//!   before the write, so whoever ran and is not seen to come before may have written.
//!
//! The same holds of later reads, by any thread, until a recorded access writes there.
//!
//! What threads that run freely read and write is recorded in about the order in which it happened, and
//! without the values of plain reads. So only a read of what no recorded access ever wrote is
//! unexplained, and nobody knows what came before: who goes on depends on a read with an unknown writer.

mod reads;
mod values;

use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, Kind, flag, order};

use super::names::Symbols;
use crate::event_log::Stream;
use crate::order::{Clock, Order, Ticks};
use crate::shadow::{Access, WORD_BYTES};
pub use values::UnseenLinks;
use values::{Pending, Time, Unexplained, Values, byte_of};

/// Of what is read in longer stretches, only so many words are looked at: it stands for no decision.
const WORDS_MAX: usize = 512;

/// The most threads whose events are followed. What others did, nobody is seen to come after.
const CHAINS_MAX: usize = 1 << 10;

/// Looks for what [`assumed_order`] has to be asked about.
pub struct Search {
    values: Values,
    time: Time,
    has_forked: bool,
    is_found: bool,
    /// When each thread was last seen.
    seen: FxHashMap<u32, Time>,
    escapes: Vec<Escape>,
    has_calls: bool,
}

/// What a recording has that was not recorded.
#[derive(Debug, Default)]
pub struct Unseen {
    /// If some read saw what no recorded access wrote: how threads escaped.
    writes: Option<Vec<Escape>>,
    /// Whether libraries were called, which may have read.
    has_calls: bool,
}

/// A thread ran though it was not its turn: from when it was last seen to when it was seen again.
#[derive(Clone, Copy, Debug)]
pub struct Escape {
    thread: u32,
    from: Time,
    to: Time,
}

impl Search {
    pub fn new() -> Self {
        Self {
            values: Values::new(),
            time: 0,
            has_forked: false,
            is_found: false,
            seen: FxHashMap::default(),
            escapes: Vec::new(),
            has_calls: false,
        }
    }

    /// Takes the next event.
    pub fn step(&mut self, thread: u32, event: &Event, symbols: &mut dyn Symbols) {
        self.has_forked |= event.kind == Kind::Fork;
        self.has_calls |= event.kind == Kind::Argument && !event.is_hidden_alloc();
        self.time = self.time.saturating_add(1);
        let from = self.seen.insert(thread, self.time).unwrap_or(0);
        if event.kind == Kind::Escaped {
            self.escapes.push(Escape { thread, from, to: self.time });
        }
        // As long as there is one thread, it wrote itself what it did not write.
        let read = self.values.step(thread, event, self.time, symbols);
        self.is_found |= read.is_some() && self.has_forked;
    }

    /// Whether there was more memory than is compared.
    pub const fn is_full(&self) -> bool {
        self.values.is_full
    }

    /// What is to be asked, and what unseen code wrote to or led to.
    pub fn finish(self) -> (Unseen, UnseenLinks) {
        let writes = self.is_found.then_some(self.escapes);
        let has_calls = self.has_calls && self.has_forked;
        (Unseen { writes, has_calls }, self.values.links)
    }
}

/// What is assumed to be ordered by what is `unseen` of the recording that `open` opens, whose threads
/// ran freely or not.
pub fn assumed_order<S: Stream>(
    mut open: impl FnMut() -> io::Result<S>,
    is_free: bool,
    unseen: Unseen,
    symbols: &mut dyn Symbols,
) -> io::Result<AssumedOrder> {
    let Unseen { writes, has_calls } = unseen;
    let mut assumed = match writes {
        Some(escapes) => order_of_writes(&mut open, is_free, escapes, symbols)?,
        None => AssumedOrder::default(),
    };
    if has_calls {
        reads::add_order(&mut open()?, &mut assumed)?;
    }
    Ok(assumed)
}

fn order_of_writes<S: Stream>(
    mut open: impl FnMut() -> io::Result<S>,
    is_free: bool,
    escapes: Vec<Escape>,
    symbols: &mut dyn Symbols,
) -> io::Result<AssumedOrder> {
    let mut unwritten = None;
    if is_free {
        let mut bytes = UnwrittenBytes::default();
        for_each(&mut open()?, symbols, |_, event, read, _| bytes.note_read(event, read))?;
        bytes.drop_explained(&mut open()?)?;
        unwritten = Some(bytes);
    }
    let mut follower = Follower { is_free, escapes, ..Follower::default() };
    let mut time = 0;
    for_each(&mut open()?, symbols, |thread, event, read, values| {
        let is_unwritten = |read: &Unexplained| match &unwritten {
            Some(bytes) => bytes.is_in(event, read),
            None => true,
        };
        time += 1;
        follower.step(thread, event, time, read.filter(is_unwritten), values);
    })?;
    Ok(follower.assumed)
}

/// Calls `look` for each event of a recording with its thread, whether it is an unexplained read, and
/// what memory holds after it.
fn for_each(
    stream: &mut dyn Stream,
    symbols: &mut dyn Symbols,
    mut look: impl FnMut(u32, &Event, Option<Unexplained>, &Values),
) -> io::Result<()> {
    let mut values = Values::new();
    let mut time: Time = 0;
    while let Some((thread, event)) = stream.next_event()? {
        // A trace cannot be as long as that.
        let Some(next) = time.checked_add(1) else { break };
        time = next;
        if event.kind == Kind::Maps {
            symbols.maps(event.address);
        }
        let read = values.step(thread, &event, time, symbols);
        look(thread, &event, read, &values);
    }
    symbols.maps(0);
    Ok(())
}

/// Which events release, and which acquire, what stands for the order that unseen code made.
#[derive(Debug, Default)]
pub struct AssumedOrder {
    /// By the time of the event, and whether it comes after the release.
    releases: FxHashMap<(Time, bool), u32>,
    acquires: FxHashMap<Time, Vec<u32>>,
    /// Reads by threads that ran freely: nobody knows what came before them.
    unknown: FxHashSet<Time>,
}

impl AssumedOrder {
    pub fn is_empty(&self) -> bool {
        self.acquires.is_empty() && self.unknown.is_empty()
    }

    /// What happens at `time` comes after the event at the time `released`, or after what is just before
    /// that.
    fn add(&mut self, released: (Time, bool), time: Time) {
        // Zero stands for what nobody knows.
        let next = self.releases.len() as u32 + 1;
        let channel = *self.releases.entry(released).or_insert(next);
        self.acquires.entry(time).or_default().push(channel);
    }

    /// Whether nobody knows what comes before the event at `place` of the stream.
    pub fn is_unknown_at(&self, place: u64) -> bool {
        time_of(place).is_some_and(|time| self.unknown.contains(&time))
    }

    /// What the event at `place` of the stream acquires first.
    pub fn acquired_at(&self, place: u64) -> &[u32] {
        let channels = time_of(place).and_then(|time| self.acquires.get(&time));
        channels.map_or(&[], Vec::as_slice)
    }

    /// What is released just before, or just after, the event at `place` of the stream.
    pub fn released_at(&self, place: u64, is_before: bool) -> Option<u32> {
        self.releases.get(&(time_of(place)?, is_before)).copied()
    }
}

fn time_of(place: u64) -> Option<Time> {
    Time::try_from(place).ok()?.checked_add(1)
}

/// An unseen write, and who can have made it.
#[derive(Debug)]
struct UnseenWrite {
    /// When the memory was last accessed before, and when the write was noticed.
    between: (Time, Time),
    is_initial: bool,
    is_count: bool,
    /// The chain of who noticed it, and what that did last.
    reader: (usize, LastEvent),
    /// What each chain did last.
    last: Rc<[LastEvent]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct LastEvent {
    thread: u32,
    time: Time,
    /// When its thread last ran, though perhaps nothing was seen of what it did.
    ran: Time,
    /// Whether its thread stands still after it, so that nothing of it can come next.
    is_pause: bool,
    is_end: bool,
}

/// Follows threads and unseen writes through a recording.
#[derive(Default)]
struct Follower {
    /// Whether threads ran freely, so that what is last in the recording was perhaps not last.
    is_free: bool,
    escapes: Vec<Escape>,
    order: Order,
    /// The order that forks and joins alone make, which every reordering keeps.
    forks: Order,
    /// The chains of events that threads are.
    chains: FxHashMap<u32, usize>,
    /// What each chain did last; and the same when this thread began its turn.
    last: Vec<LastEvent>,
    turn: Option<(u32, Rc<[LastEvent]>)>,
    /// Words that hold what was written unseen, byte by byte.
    unseen: BTreeMap<u64, UnseenBytes>,
    /// What chains have read by atomics that acquire nothing, until a fence does.
    unfenced: FxHashMap<usize, Vec<Rc<UnseenWrite>>>,
    /// Up to when the first chain comes after the second by what is assumed.
    acquired: FxHashMap<(usize, usize), Time>,
    assumed: AssumedOrder,
}

type UnseenBytes = [Option<Rc<UnseenWrite>>; WORD_BYTES as usize];

/// The most writes for which a thread is expected to have a fence.
const UNFENCED_MAX: usize = 64;

/// Somebody who reads.
#[derive(Clone, Copy, Debug)]
struct Reader {
    thread: u32,
    chain: usize,
    time: Time,
    reading: Reading,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Plain,
    /// What follows may come after the write because of it.
    Synchronizing,
    /// An atomic access that acquires nothing, until a fence does.
    Relaxed,
}

impl Reading {
    fn new(event: &Event) -> Self {
        match (Access::new(event), event.order) {
            _ if event.flags & flag::VOLATILE != 0 => Self::Synchronizing,
            (Some(Access { is_atomic: false, .. }) | None, _) => Self::Plain,
            (_, order::RELAXED | order::RELEASE) => Self::Relaxed,
            _ => Self::Synchronizing,
        }
    }
}

/// Nothing is counted but by [`Order::advance`].
struct Uncounted;

impl Ticks for Uncounted {
    fn write(&mut self, _: u32, _: &Event, _: Access, _: &mut Clock) {}
    fn lock(&mut self, _: u32, _: &Event, _: u64, _: bool, _: &mut Clock) {}
}

impl Follower {
    fn step(
        &mut self,
        thread: u32,
        event: &Event,
        time: Time,
        unexplained: Option<Unexplained>,
        values: &Values,
    ) {
        let chains = self.chains.len();
        let chain = *self.chains.entry(thread).or_insert(chains);
        self.last.resize(self.last.len().max(chain + 1), LastEvent::default());
        if self.turn.as_ref().is_some_and(|(of, _)| *of != thread) {
            self.turn = None;
        }
        if let Some(read) = unexplained {
            self.note_write((thread, chain), time, read);
        }
        match Access::new(event) {
            Some(access) => {
                if !access.writes || event.kind == Kind::AtomicUpdate {
                    let reader = Reader { thread, chain, time, reading: Reading::new(event) };
                    self.read(reader, access, values);
                }
                // An update goes on with what was released before.
                if access.writes && event.kind != Kind::AtomicUpdate {
                    self.overwrite(access.start, access.end);
                }
                if access.is_atomic {
                    self.synchronize(thread, chain, time, event);
                }
            }
            None => self.synchronize(thread, chain, time, event),
        }
        match event.kind {
            Kind::Fence if !matches!(event.order, order::RELAXED | order::RELEASE) => {
                let reader = Reader { thread, chain, time, reading: Reading::Synchronizing };
                for write in self.unfenced.remove(&chain).unwrap_or_default() {
                    self.come_after(reader, false, &write);
                }
            }
            Kind::Alloc | Kind::Free => {
                values.renewed.iter().for_each(|&(start, end)| self.overwrite(start, end));
            }
            _ => {}
        }
        let last = &mut self.last[chain];
        (last.thread, last.ran) = (thread, time);
        if is_operation(event.kind) {
            last.time = time;
            last.is_end = event.kind == Kind::End;
            last.is_pause = last.is_end
                || matches!(event.kind, Kind::Wait | Kind::BarrierArrive | Kind::LockRequest);
        }
    }

    fn synchronize(&mut self, thread: u32, chain: usize, time: Time, event: &Event) {
        let step = |order: &mut Order| {
            if chain < CHAINS_MAX && is_operation(event.kind) {
                order.advance(thread, chain, time);
            }
            order.step(thread, event, &mut Uncounted);
        };
        step(&mut self.order);
        if matches!(event.kind, Kind::Fork | Kind::ForkFailed | Kind::Join | Kind::End) {
            step(&mut self.forks);
        }
    }

    /// `read` shows that somebody wrote unseen since the last access to what it read.
    fn note_write(&mut self, (thread, chain): (u32, usize), time: Time, read: Unexplained) {
        let Unexplained { words, since, is_initial, is_count } = read;
        let reader = (chain, self.last[chain]);
        let (_, last) = self.turn.get_or_insert_with(|| (thread, self.last.as_slice().into()));
        let (between, last) = ((since, time), Rc::clone(last));
        let write = Rc::new(UnseenWrite { between, is_initial, is_count, reader, last });
        for (word, differing) in words.into_iter().filter(|&(_, differing)| differing != 0) {
            let bytes = self.unseen.entry(word).or_default().iter_mut().enumerate();
            let differing = bytes.filter(|(byte, _)| differing >> byte & 1 == 1);
            differing.for_each(|(_, byte)| *byte = Some(Rc::clone(&write)));
        }
    }

    /// Recorded code writes to the memory from `start` up to `end`, or it is other memory.
    fn overwrite(&mut self, start: u64, end: u64) {
        if self.unseen.is_empty() || start >= end {
            return;
        }
        let access = Access { start, end, writes: true, is_atomic: false };
        let words = start / WORD_BYTES..=(end - 1) / WORD_BYTES;
        let mut over = Vec::new();
        for (&word, bytes) in self.unseen.range_mut(words) {
            let (from, to) = access.within_word(word * WORD_BYTES);
            bytes[from.into()..to.into()].fill(None);
            over.extend(bytes.iter().all(Option::is_none).then_some(word));
        }
        for word in over {
            self.unseen.remove(&word);
        }
    }

    /// A thread reads; if unseen code wrote that, it comes after who can have done so.
    fn read(&mut self, reader: Reader, access: Access, values: &Values) {
        if self.unseen.is_empty() {
            return;
        }
        for (word, from, to) in access.words().take(WORDS_MAX) {
            let Some(bytes) = self.unseen.get(&word) else { continue };
            let mut writes: Vec<Rc<UnseenWrite>> = Vec::new();
            for write in bytes[from.into()..to.into()].iter().flatten() {
                if !writes.last().is_some_and(|last| Rc::ptr_eq(last, write)) {
                    writes.push(Rc::clone(write));
                }
            }
            for write in writes {
                self.come_after(reader, values.was_own, &write);
                if reader.reading == Reading::Relaxed && !write.is_count {
                    let unfenced = self.unfenced.entry(reader.chain).or_default();
                    unfenced.truncate(UNFENCED_MAX);
                    unfenced.insert(0, write);
                }
            }
        }
    }

    fn come_after(&mut self, reader: Reader, was_own: bool, write: &UnseenWrite) {
        let Reader { thread, chain, time, reading } = reader;
        let Self { order, forks, acquired, assumed, escapes, .. } = self;
        let (clock, forks) = (order.clock(thread), forks.clock(thread));
        let since = write.between.0.max(1);
        let ran = |last: LastEvent| {
            let escaped = |it: &Escape| {
                it.thread == last.thread && it.from < write.between.1 && since < it.to
            };
            self.is_free || last.ran >= since || escapes.iter().any(escaped)
        };
        let (noticer, _) = write.reader;
        let last = write.last.iter().copied().enumerate().filter(|&(other, _)| other != noticer);
        let writers = last
            .chain([write.reader])
            .filter(|&(writer, last)| writer != chain && last.time > 0 && ran(last));
        // What each is seen to have done before, by synchronization since the last access.
        let seen = |writer: usize| clock.get(writer) >= since;
        // Who was forked before the write comes after no more than what was there before.
        let is_means = |(writer, last): (usize, LastEvent)| {
            let is_joined = last.is_end && forks.get(writer) >= last.time;
            seen(writer) && (is_joined || clock.get(writer) > forks.get(writer))
        };
        let keeps_observed = match reading {
            _ if write.is_count => true,
            Reading::Relaxed => true,
            Reading::Synchronizing => false,
            Reading::Plain if write.is_initial => false,
            Reading::Plain => was_own || writers.clone().any(is_means),
        };
        if self.is_free && !keeps_observed {
            if writers.clone().next().is_some() {
                assumed.unknown.insert(time);
            }
            return;
        }
        for (writer, last) in writers.filter(|&(writer, _)| !keeps_observed || seen(writer)) {
            let synchronized = clock.get(writer);
            let is_observed = reading != Reading::Synchronizing && seen(writer);
            let (until, is_before) = match is_observed && synchronized < last.time {
                true => (synchronized, true),
                false => (last.time, last.is_pause),
            };
            let known = acquired.entry((chain, writer)).or_default();
            if until > forks.get(writer).max(*known) {
                *known = until;
                assumed.add((until, is_before), time);
            }
        }
    }
}

/// Whether events of this kind are something that their thread does.
const fn is_operation(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Nothing
            | Kind::Stored
            | Kind::Run
            | Kind::Switch
            | Kind::Enter
            | Kind::Leave
            | Kind::Block
            | Kind::Unblock
            | Kind::Interrupted
            | Kind::Maps
            | Kind::Escaped
            | Kind::Argument
            | Kind::Detach
            // A wait on a condition that is made of a futex: the thread does nothing before it ends.
            | Kind::FutexWait
            | Kind::FutexAwake
    )
}

// Values of threads that ran freely.
//
// What such threads read and wrote is not recorded in the order in which it happened, so a read may see
// what comes later. Only of a byte that no recorded access writes at all is it known that it was not one.

/// Bytes that unexplained reads saw and that nobody was seen to write.
#[derive(Default)]
struct UnwrittenBytes {
    values: BTreeMap<u64, Vec<u8>>,
    /// Those that were zero when the program started.
    zeroed: FxHashSet<u64>,
}

impl UnwrittenBytes {
    fn note_read(&mut self, event: &Event, read: Option<Unexplained>) {
        let is_initial = read.is_some_and(|read| read.is_initial);
        for (address, value) in read.iter().flat_map(|read| read.bytes(event)) {
            self.zeroed.extend(is_initial.then_some(address));
            let values = self.values.entry(address).or_default();
            // Zero is what memory is cleared to, which is not always seen.
            if value != 0 && !values.contains(&value) {
                values.push(value);
            }
        }
    }

    /// Drops what recorded accesses wrote, or saw before anybody wrote.
    fn drop_explained(&mut self, stream: &mut dyn Stream) -> io::Result<()> {
        let mut pending = Pending::default();
        let mut accessed = std::mem::take(&mut self.zeroed);
        while let Some((thread, event)) = stream.next_event()? {
            if let Some((access, _, stored)) = pending.settle(thread, &event) {
                self.drop_written(access, stored);
            }
            let Some(access) = Access::new(&event) else { continue };
            match event.kind {
                Kind::Write => _ = pending.0.insert(thread, (access, 0)),
                Kind::AtomicStore => self.drop_written(access, event.value),
                Kind::AtomicUpdate => self.drop_written(access, event.extra),
                Kind::WriteRange => self.drop_written(access, None),
                _ => {}
            }
            let is_range = matches!(event.kind, Kind::ReadRange | Kind::WriteRange);
            let seen = event.value.filter(|_| !is_range);
            for (&address, values) in self.values.range_mut(access.start..access.end) {
                let first = seen.filter(|_| accessed.insert(address));
                let first = first.map(|value| byte_of(value, access, address));
                values.retain(|&value| Some(value) != first);
            }
        }
        for (access, _) in pending.0.into_values() {
            self.drop_written(access, None);
        }
        Ok(())
    }

    fn drop_written(&mut self, access: Access, stored: Option<u64>) {
        for (&address, values) in self.values.range_mut(access.start..access.end) {
            let is_it =
                |value| stored.is_none_or(|stored| byte_of(stored, access, address) == value);
            values.retain(|&value| !is_it(value));
        }
    }

    /// Whether `event`, an unexplained read, saw such a byte.
    fn is_in(&self, event: &Event, read: &Unexplained) -> bool {
        read.bytes(event).any(|(address, value)| {
            self.values.get(&address).is_some_and(|values| values.contains(&value))
        })
    }
}
