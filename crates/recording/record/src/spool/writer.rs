//! Writing a recording.

use std::io::{self, Write};

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind};
use zstd::bulk::Compressor;

use super::frame::{self, Head};
use super::predict::{KNOWN, Model, NEW, OTHER, Shape, fold, miss};

/// Writes the events of a recording as they come.
///
/// What was [flushed](Writer::flush) is readable after a crash.
pub struct Writer<W: Write> {
    out: W,
    model: Model,
    /// By thread, where it is among the model's: which slot is of which code address and shape.
    slots: Vec<FxHashMap<(u64, Shape), u32>>,
    control: Vec<u8>,
    payload: Vec<u8>,
    unpacked: Vec<u8>,
    packed: Vec<u8>,
    compressor: Compressor<'static>,
    /// How many events came since the last record, all as guessed.
    run: u32,
    frame_events: u32,
    events_count: u64,
}

/// The thread, a new slot (three numbers), address, number, stored, extra, value.
const NUMBERS_MAX: usize = 9;

/// How a slot is said that was not expected.
enum Reference {
    Place(u64),
    New(u64),
}

/// The numbers of a record, in the order in which they are written.
#[derive(Default)]
struct Record {
    missed: u8,
    count: usize,
    numbers: [u64; NUMBERS_MAX],
}

impl Record {
    #[inline]
    fn add(&mut self, bit: u8, number: u64) {
        self.missed |= bit;
        self.numbers[self.count] = number;
        self.count += 1;
    }
}

impl<W: Write> Writer<W> {
    /// Starts a recording.
    ///
    /// # Errors
    /// If `out` does.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&frame::MAGIC)?;
        Ok(Self {
            out,
            model: Model::new(),
            slots: Vec::new(),
            control: Vec::with_capacity(frame::BYTES_GOAL + 128),
            payload: Vec::with_capacity(frame::BYTES_GOAL + 128),
            unpacked: Vec::new(),
            packed: Vec::new(),
            compressor: Compressor::new(1)?,
            run: 0,
            frame_events: 0,
            events_count: 0,
        })
    }

    /// How many events were pushed, switches aside.
    #[must_use]
    pub const fn events_count(&self) -> u64 {
        self.events_count + self.frame_events as u64
    }

    /// Adds an event of `thread`. A switch is left out: what it says, `thread` says.
    ///
    /// # Errors
    /// If the file cannot be written.
    #[inline]
    pub fn push(&mut self, thread: u32, event: &Event) -> io::Result<()> {
        if event.kind == Kind::Switch {
            return Ok(());
        }
        // A single word has no code address; where it was called from takes its place.
        let (code, address) = match event.kind.is_one_word() {
            true => (event.address, event.code),
            false => (event.code, event.address),
        };
        if self.model.goes_on(thread, event, (code, address)) {
            self.run += 1;
        } else {
            self.surprise(thread, event, code, address);
        }
        self.frame_events += 1;
        let bytes = self.control.len() + self.payload.len();
        if bytes >= frame::BYTES_GOAL || self.frame_events == frame::EVENTS_MAX {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes an event that is not all as guessed.
    #[inline(never)]
    fn surprise(&mut self, thread: u32, event: &Event, code: u64, address: u64) {
        let shape = Shape::new(event);
        let mut record = Record::default();
        if !self.model.is_at_thread(thread) {
            self.model.enter(thread);
            record.add(miss::THREAD, u64::from(thread));
        }
        if !self.model.thread().goes_on_as_guessed(code, shape) {
            match self.find(code, shape) {
                Reference::Place(reference) => record.add(miss::SLOT, reference),
                Reference::New(last_code) => {
                    record.add(miss::SLOT, NEW);
                    record.add(miss::SLOT, u64::from(shape.0));
                    record.add(miss::SLOT, fold(code.wrapping_sub(last_code)));
                }
            }
        }
        self.compare(event, address, &mut record);
        self.write(&record);
    }

    /// Notes which numbers of `event` are not as guessed, and learns them.
    fn compare(&mut self, event: &Event, address: u64, record: &mut Record) {
        let place = Model::place_of(address, event.size);
        let held = self.model.held(place);
        let sequence = self.model.sequence.wrapping_add(1);
        let slot = self.model.thread().slot();
        if slot.address.guess() != address {
            record.add(miss::ADDRESS, fold(address.wrapping_sub(slot.address.last)));
        }
        slot.address.learn(address);
        if let Some(number) = event.number {
            if number != sequence {
                record.add(miss::NUMBER, fold(number.wrapping_sub(sequence)));
            }
            self.model.sequence = number;
        }
        let slot = self.model.thread().slot();
        if let Some(stored) = event.stored {
            if slot.stored.guess() != stored {
                record.add(miss::STORED, fold(stored.wrapping_sub(slot.stored.last)));
            }
            slot.stored.learn(stored);
        }
        if let Some(extra) = event.extra {
            if slot.extra.guess() != extra {
                record.add(miss::EXTRA, fold(extra.wrapping_sub(slot.extra.last)));
            }
            slot.extra.learn(extra);
        }
        if let Some(value) = event.value {
            if slot.guess_value(held) != value {
                record.add(miss::VALUE, fold(value.wrapping_sub(slot.last_value())));
            }
            slot.learn_value(value, held);
        }
        if let Some(stored) = event.stored {
            self.model.learn_stored(stored);
        }
        self.model.learn_memory(event, place);
    }

    /// Goes to the slot of `code` and `shape`, which was not expected.
    fn find(&mut self, code: u64, shape: Shape) -> Reference {
        let current = self.model.current();
        if current >= self.slots.len() {
            self.slots.resize_with(current + 1, FxHashMap::default);
        }
        let thread = self.model.thread();
        let other = thread.other();
        if thread.is_at(other, code, shape) {
            thread.go_to(other).expect("the slot came before");
            return Reference::Place(OTHER);
        }
        if let Some(&place) = self.slots[current].get(&(code, shape)) {
            thread.go_to(place).expect("the slot came before");
            return Reference::Place(KNOWN + u64::from(place));
        }
        let last_code = self.model.last_new_code();
        let place = self.model.add(code, shape);
        self.slots[current].insert((code, shape), place);
        Reference::New(last_code)
    }

    fn write(&mut self, record: &Record) {
        if self.run > 0 {
            let run = std::mem::take(&mut self.run);
            if run < u32::from(miss::RUN) {
                self.control.push(miss::RUN | run as u8);
            } else {
                self.control.push(miss::RUN);
                push_number(&mut self.control, u64::from(run));
            }
        }
        self.control.push(record.missed);
        for &number in &record.numbers[..record.count] {
            push_number(&mut self.payload, number);
        }
    }

    /// Writes what there is as a frame of its own, so that it is readable whatever happens next.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.frame_events == 0 {
            return Ok(());
        }
        if self.run > 0 {
            self.control.push(miss::RUN);
            push_number(&mut self.control, u64::from(std::mem::take(&mut self.run)));
        }
        self.unpacked.clear();
        self.unpacked.extend_from_slice(&self.control);
        self.unpacked.extend_from_slice(&self.payload);
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(self.unpacked.len()));
        self.compressor.compress_to_buffer(&self.unpacked, &mut self.packed)?;
        let head = Head {
            kind: frame::EVENTS,
            packed_length: self.packed.len() as u32,
            events_count: self.frame_events,
            control_length: self.control.len() as u32,
            payload_length: self.payload.len() as u32,
        };
        frame::write(&mut self.out, head, &self.packed)?;
        self.out.flush()?;
        self.control.clear();
        self.payload.clear();
        self.events_count += u64::from(std::mem::take(&mut self.frame_events));
        if self.model.begin_frame() {
            self.slots.clear();
        }
        Ok(())
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        let head = Head {
            kind: frame::END,
            packed_length: 8,
            events_count: 0,
            control_length: 0,
            payload_length: 0,
        };
        frame::write(&mut self.out, head, &self.events_count.to_le_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
#[inline]
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
