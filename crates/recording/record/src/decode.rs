//! Decoding what the runtime only counted.
//!
//! The runtime does not write accesses that are as it expects; see [`reweave_runtime::predict`]. The
//! same tables, fed with the same events, say here what they were.
//!
//! Nor does it write that a lock was asked for which was free; that is decoded too.
//!
//! What a plain write stored is the `stored` of the next event of its thread that is no single word,
//! but for reads that have none: those leave it to the event after them.
//!
//! Promised: the stream is as if the runtime had written every event, and no [`Kind::Run`] is left
//! in it. A damaged recording gives other accesses, and never more than its runs say.

use std::io;

use reweave_base::FxHashMap;
use reweave_runtime::predict::{self, LAST_VALUES, SECOND_HALF, SLOTS, Slot};
use reweave_runtime::wire::{ADDRESS_MASK, Event, Kind, flag, shift};

use crate::event_log::{Ending, Stream};

/// What was last seen at an address, of which the runtime keeps a mark.
#[derive(Clone, Copy, Default)]
struct Memory {
    tag: u64,
    value: u64,
}

/// What the runtime knew of one thread.
struct Thread {
    slots: Box<[Slot]>,
    previous: usize,
    /// The last plain write, if it is not known yet what it stored.
    pending: Option<(u64, u32)>,
    /// Whether a read came after it.
    is_passed: bool,
}

impl Default for Thread {
    fn default() -> Self {
        Self {
            slots: vec![Slot::default(); SLOTS].into(),
            previous: 0,
            pending: None,
            is_passed: false,
        }
    }
}

impl Thread {
    /// Learns from an access that was written.
    fn learn(&mut self, event: &Event) {
        let key = predict::key(event.kind, u32::from(event.size), event.code);
        let place = predict::slot_of(key);
        self.slots[place].learn(key, event.address);
        self.slots[self.previous].follow = place as u64;
        self.previous = place;
    }

    /// The access that was expected, which took place.
    fn expected(&mut self) -> Event {
        let place = self.slots[self.previous].follow as usize % SLOTS;
        let slot = &mut self.slots[place];
        let number = (slot.key >> shift::KIND) as u8 & 0x3f;
        // No recording of ours runs over anything but reads and writes.
        let kind = match Kind::from_number(number) {
            Some(Kind::Read) => Kind::Read,
            _ => Kind::Write,
        };
        let mut event = Event::new(kind, slot.address & ADDRESS_MASK, slot.key & ADDRESS_MASK);
        event.size = (slot.key >> shift::SIZE) as u8 & 7;
        slot.address = slot.address.wrapping_add(slot.stride);
        self.previous = place;
        event
    }
}

/// Decodes what the runtime only counted, event by event.
#[derive(Default)]
pub struct Decoder {
    threads: FxHashMap<u32, Thread>,
    memories: Box<[Memory]>,
    run: Option<(u32, u64)>,
    /// A lock that was taken, after what was decoded last.
    taken: Option<(u32, Event)>,
}

/// The size of an access, of which `size` may say that it is the second half of one.
const fn whole_size(size: u8) -> u8 {
    if size as u32 == SECOND_HALF { 3 } else { size }
}

impl Decoder {
    /// Takes the next event of the recording. Where it is a run, nothing comes back. Then
    /// [`Decoder::next_decoded`] gives the events that follow.
    pub fn take(&mut self, thread: u32, mut event: Event) -> Option<Event> {
        if event.kind == Kind::Run {
            self.run = Some((thread, event.address));
            return None;
        }
        let state = self.threads.entry(thread).or_default();
        match event.kind {
            Kind::Enter | Kind::Leave => return Some(event),
            // What was written before is no longer what was stored then.
            Kind::Escaped => state.pending = None,
            Kind::Interrupted if event.extra.is_none() => state.pending = None,
            Kind::End => {
                self.threads.remove(&thread);
                return Some(event);
            }
            _ => {}
        }
        let reads = matches!(event.kind, Kind::Read | Kind::ReadRange);
        if let Some(value) = event.stored {
            if let Some((address, size)) = state.pending.take() {
                remember(&mut self.memories, address, size, value);
            }
        } else if !reads {
            state.pending = None;
        }
        state.is_passed |= reads;
        if matches!(event.kind, Kind::Read | Kind::Write) {
            state.learn(&event);
            event.size = whole_size(event.size);
            if let Some(value) = event.value.filter(|_| event.kind == Kind::Read) {
                remember(&mut self.memories, event.address, u32::from(event.size), value);
            }
            state.note_write(&event);
        }
        if event.kind == Kind::Lock && event.flags & flag::ASKED != 0 {
            event.flags &= !flag::ASKED;
            self.taken = Some((thread, Event { stored: None, ..event }));
            event.kind = Kind::LockRequest;
        }
        if event.kind == Kind::AtomicLoad && event.flags & flag::VOLATILE != 0 {
            event.kind = Kind::Read;
        }
        Some(event)
    }

    /// The next event that what was taken last stands for.
    pub fn next_decoded(&mut self) -> Option<(u32, Event)> {
        if self.taken.is_some() {
            return self.taken.take();
        }
        let (thread, left) = self.run?;
        if left == 0 {
            self.run = None;
            return None;
        }
        self.run = Some((thread, left - 1));
        let state = self.threads.entry(thread).or_default();
        let mut event = state.expected();
        let size = u32::from(event.size);
        event.size = whole_size(event.size);
        if state.tells_stored(&event, size == SECOND_HALF)
            && let Some((address, size)) = state.pending.take()
        {
            event.stored = recall(&self.memories, address, size);
        }
        if event.kind == Kind::Read {
            state.is_passed = true;
            event.value = recall(&self.memories, event.address, size);
        }
        state.note_write(&event);
        Some((thread, event))
    }
}

impl Thread {
    /// Remembers that what `event` stores is still to be reported, if it is a plain write.
    fn note_write(&mut self, event: &Event) {
        if event.kind == Kind::Write {
            self.pending = Some((event.address, u32::from(event.size)));
            self.is_passed = false;
        }
    }

    /// Whether what the last write stored was looked at when `event`, an access that was expected,
    /// took place. It may be the second half of one.
    fn tells_stored(&self, event: &Event, is_second: bool) -> bool {
        if event.kind == Kind::Write {
            return !is_second;
        }
        let is_first = !self.is_passed || is_second;
        let size = u32::from(event.size);
        let leaves_open = |pending| predict::leaves_open(pending, event.address, size);
        !(is_first && self.pending.is_some_and(leaves_open))
    }
}

fn remember(memories: &mut Box<[Memory]>, address: u64, size: u32, value: u64) {
    if memories.is_empty() {
        *memories = vec![Memory::default(); LAST_VALUES].into();
    }
    let tag = predict::tag(address, size);
    memories[predict::value_slot(address)] = Memory { tag, value };
}

fn recall(memories: &[Memory], address: u64, size: u32) -> Option<u64> {
    let memory = memories.get(predict::value_slot(address))?;
    (memory.tag == predict::tag(address, size)).then_some(memory.value)
}

/// A recording in which nothing is merely counted.
pub struct Decoded<S> {
    inner: S,
    decoder: Decoder,
}

impl<S: Stream> Decoded<S> {
    /// Decodes the events of `inner`.
    pub fn new(inner: S) -> Self {
        Self { inner, decoder: Decoder::default() }
    }
}

impl<S: Stream> Stream for Decoded<S> {
    fn next_event(&mut self) -> io::Result<Option<(u32, Event)>> {
        loop {
            if let Some(event) = self.decoder.next_decoded() {
                return Ok(Some(event));
            }
            let Some((thread, event)) = self.inner.next_event()? else { return Ok(None) };
            if let Some(event) = self.decoder.take(thread, event) {
                return Ok(Some((thread, event)));
            }
        }
    }

    fn ending(&self) -> Option<Ending> {
        self.inner.ending()
    }
}

#[cfg(test)]
mod tests;
