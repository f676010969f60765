//! The recorded stream on disk: what the threads of a program logged, in observed order.
//!
//! A recording is long, regular and written while the program runs, so it must be cheap to write
//! and small. Both come from one guess. Per thread and *slot* (a code address with everything
//! about an event but its numbers) the writer and the reader remember which slot came next the
//! last time, the last address and how it moves, and the same for each value; what a read sees is
//! also guessed from the last value known at its address. An event that is all as guessed
//! lengthens a run, which is one number however long it is; any other is a byte that says what was
//! not as guessed, and those numbers.
//!
//! Frames of about 256 KiB are compressed by zstd and carry a checksum. A file that is cut off or
//! damaged yields every event of the whole frames before that, and [`Stream::ending`] says so.
//! Reading needs bounded memory whatever the bytes are; nothing in them can cause a panic.
//!
//! ```text
//! file     = magic, frame*
//! frame    = kind: u8, packed_length: u32, events_count: u32, control_length: u32,
//!            payload_length: u32, checksum: u64, packed: packed_length bytes
//! ```
//!
//! All numbers are little-endian. `packed` unpacks to the control bytes (what was not as guessed,
//! and the lengths of runs), then the payload (the numbers themselves). What is learnt in a frame
//! is used in the next.

mod model;

use std::io::{self, Read, Write};

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind};
use xxhash_rust::xxh3::xxh3_64_with_seed;
use zstd::bulk::{Compressor, Decompressor};

use model::{KNOWN, Model, NEW, OTHER, Shape, Slot, Trend, fold, miss, unfold};

/// Events of a recording, in observed order, each with the number of its thread.
///
/// What rewrites a recording on its way to [`crate::convert`] implements this too. So that the
/// occurrences of code addresses are still counted as the program logged them, it replaces an
/// event that is to mean nothing by one of the kind `Nothing` with the same code address, and
/// gives events of its own making the code address 0.
pub trait Stream {
    /// The next event, or nothing after the last.
    ///
    /// # Errors
    /// If the source cannot be read. Where it is merely cut off, the stream ends.
    fn next_event(&mut self) -> io::Result<Option<(u32, Event)>>;

    /// How the recording ended, once all of it was read, where there is something to say.
    fn ending(&self) -> Option<Ending> {
        None
    }
}

impl<S: Stream + ?Sized> Stream for Box<S> {
    fn next_event(&mut self) -> io::Result<Option<(u32, Event)>> {
        (**self).next_event()
    }

    fn ending(&self) -> Option<Ending> {
        (**self).ending()
    }
}

/// A stream of events that are in memory.
impl Stream for std::vec::IntoIter<(u32, Event)> {
    fn next_event(&mut self) -> io::Result<Option<(u32, Event)>> {
        Ok(self.next())
    }
}

/// A recording of one frame that holds `control` and `payload` with a checksum that fits: for
/// tests that want to get past it.
#[doc(hidden)]
#[must_use]
pub fn single_frame(control: &[u8], payload: &[u8], events_count: u32) -> Vec<u8> {
    let packed = zstd::bulk::compress(&[control, payload].concat(), 1).unwrap_or_default();
    let head = Head {
        kind: EVENTS,
        packed_length: packed.len() as u32,
        events_count,
        control_length: control.len() as u32,
        payload_length: payload.len() as u32,
    };
    let mut file = MAGIC.to_vec();
    write(&mut file, head, &packed).expect("a vector takes what is written to it");
    file
}

// Frames: what their heads say, and their checksums.

/// The first bytes of every file.
const MAGIC: [u8; 8] = *b"\x89RWSP\r\n\x01";

/// The frame holds events.
const EVENTS: u8 = 1;

/// The frame says that the stream ends here; its body is the number of events, eight bytes.
const END: u8 = 2;

/// A frame ends when so many bytes are in it.
const BYTES_GOAL: usize = 1 << 18;

/// A frame ends when so many events are in it.
const EVENTS_MAX: u32 = 1 << 20;

/// The most bytes that a frame may hold, packed or not.
const BYTES_MAX: usize = 1 << 20;

const HEAD_LENGTH: usize = 17;

/// What stands before a frame's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    kind: u8,
    packed_length: u32,
    events_count: u32,
    control_length: u32,
    payload_length: u32,
}

impl Head {
    fn bytes(self) -> [u8; HEAD_LENGTH] {
        let mut bytes = [0; HEAD_LENGTH];
        bytes[0] = self.kind;
        let numbers =
            [self.packed_length, self.events_count, self.control_length, self.payload_length];
        for (place, number) in numbers.into_iter().enumerate() {
            bytes[1 + 4 * place..5 + 4 * place].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: [u8; HEAD_LENGTH]) -> Self {
        let number = |place: usize| {
            let at = 1 + 4 * place;
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Self {
            kind: bytes[0],
            packed_length: number(0),
            events_count: number(1),
            control_length: number(2),
            payload_length: number(3),
        }
    }

    fn is_sane(self) -> bool {
        let unpacked = u64::from(self.control_length) + u64::from(self.payload_length);
        (self.kind == EVENTS || self.kind == END)
            && self.packed_length as usize <= BYTES_MAX
            && unpacked <= BYTES_MAX as u64
            && self.events_count <= EVENTS_MAX
    }
}

fn checksum(head: &[u8; HEAD_LENGTH], body: &[u8]) -> u64 {
    xxh3_64_with_seed(body, xxh3_64_with_seed(head, 0))
}

/// Writes a frame.
fn write(out: &mut dyn Write, head: Head, body: &[u8]) -> io::Result<()> {
    let head = head.bytes();
    out.write_all(&head)?;
    out.write_all(&checksum(&head, body).to_le_bytes())?;
    out.write_all(body)
}

/// Reads a frame, its body into `body`; or says why there is none.
fn read(source: &mut dyn Read, body: &mut Vec<u8>) -> io::Result<Result<Head, &'static str>> {
    let mut start = Vec::with_capacity(HEAD_LENGTH + 8);
    let read = take(source, HEAD_LENGTH + 8, &mut start)?;
    if read == 0 {
        return Ok(Err("the recording ends without the mark of its end"));
    }
    let Some((head, sum)) = start.split_first_chunk::<HEAD_LENGTH>() else {
        return Ok(Err("the recording is cut off within the head of a frame"));
    };
    let Ok(sum) = <[u8; 8]>::try_from(sum) else {
        return Ok(Err("the recording is cut off within the head of a frame"));
    };
    let parsed = Head::from_bytes(*head);
    if !parsed.is_sane() {
        return Ok(Err("no frame of a recording starts so: it was damaged"));
    }
    body.clear();
    let length = parsed.packed_length as usize;
    if take(source, length, body)? < length {
        return Ok(Err("the recording is cut off within a frame"));
    }
    if checksum(head, body) != u64::from_le_bytes(sum) {
        return Ok(Err("the checksum of a frame does not match: it was damaged"));
    }
    Ok(Ok(parsed))
}

/// Reads up to `length` bytes and says how many there were.
fn take(source: &mut dyn Read, length: usize, into: &mut Vec<u8>) -> io::Result<usize> {
    source.take(length as u64).read_to_end(into)
}

// Reading a recording.

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its writer finished it.
    Clean,
    /// It is cut off or damaged here; what was read before is good.
    Broken(&'static str),
}

/// Reads the events of a recording.
pub struct Reader<R: Read> {
    source: R,
    model: Model,
    decompressor: Decompressor<'static>,
    packed: Vec<u8>,
    unpacked: Vec<u8>,
    control: Cursor,
    payload: Cursor,
    /// Events left in the frame.
    frame_events: u32,
    /// Events left that are all as guessed.
    run: u32,
    events_count: u64,
    ending: Option<Ending>,
}

/// A part of the unpacked bytes that is not read yet.
#[derive(Clone, Copy, Default)]
struct Cursor {
    at: usize,
    end: usize,
}

impl Cursor {
    #[inline]
    fn byte(&mut self, bytes: &[u8]) -> Result<u8, &'static str> {
        if self.at >= self.end {
            return Err("a frame ends within an event");
        }
        self.at += 1;
        Ok(bytes[self.at - 1])
    }

    #[inline]
    fn number(&mut self, bytes: &[u8]) -> Result<u64, &'static str> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(bytes)?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number in a frame is too long")
    }
}

impl<R: Read> Reader<R> {
    /// Opens a recording.
    ///
    /// # Errors
    /// If `source` cannot be read, or is no recording.
    pub fn new(mut source: R) -> io::Result<Self> {
        let mut magic = Vec::new();
        let read = take(&mut source, MAGIC.len(), &mut magic)?;
        let ending = match read {
            _ if magic == MAGIC => None,
            _ if MAGIC.starts_with(&magic) => {
                Some(Ending::Broken("the recording is cut off within its first bytes"))
            }
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "this is no recording")),
        };
        Ok(Self {
            source,
            model: Model::new(),
            decompressor: Decompressor::new()?,
            packed: Vec::new(),
            unpacked: Vec::new(),
            control: Cursor::default(),
            payload: Cursor::default(),
            frame_events: 0,
            run: 0,
            events_count: 0,
            ending,
        })
    }

    fn broken(&mut self, reason: &'static str) {
        self.ending = Some(Ending::Broken(reason));
        self.frame_events = 0;
    }

    /// Reads frames until there is an event in one, or the end.
    fn next_frame(&mut self) -> io::Result<()> {
        while self.ending.is_none() && self.frame_events == 0 {
            if let Err(reason) = self.read_frame()? {
                self.broken(reason);
            }
        }
        Ok(())
    }

    fn read_frame(&mut self) -> io::Result<Result<(), &'static str>> {
        let is_spent = self.control.at == self.control.end && self.payload.at == self.payload.end;
        if !is_spent || self.run != 0 {
            return Ok(Err("a frame holds more than its events"));
        }
        let head = match read(&mut self.source, &mut self.packed)? {
            Ok(head) => head,
            Err(reason) => return Ok(Err(reason)),
        };
        if head.kind == END {
            let mut more = Vec::new();
            let follows = take(&mut self.source, 1, &mut more)? > 0;
            if self.packed != self.events_count.to_le_bytes() {
                return Ok(Err("the mark of the end speaks of another recording"));
            }
            if follows {
                return Ok(Err("there are bytes after the end of the recording"));
            }
            self.ending = Some(Ending::Clean);
            return Ok(Ok(()));
        }
        // The state of the writer at this point of the file.
        if self.events_count > 0 {
            self.model.begin_frame();
        }
        let control_length = head.control_length as usize;
        let length = control_length + head.payload_length as usize;
        self.unpacked.clear();
        self.unpacked.reserve(length);
        let packed = &self.packed;
        let unpacked = self.decompressor.decompress_to_buffer(packed, &mut self.unpacked);
        if !unpacked.is_ok_and(|count| count == length) || self.unpacked.len() != length {
            return Ok(Err("a frame does not unpack"));
        }
        self.control = Cursor { at: 0, end: control_length };
        self.payload = Cursor { at: control_length, end: length };
        self.frame_events = head.events_count;
        Ok(Ok(()))
    }

    /// What was not as guessed about the next event.
    #[inline]
    fn missed(&mut self) -> Result<u8, &'static str> {
        if self.run == 0 {
            let byte = self.control.byte(&self.unpacked)?;
            if byte & miss::RUN == 0 {
                return Ok(byte);
            }
            let run = match byte & !miss::RUN {
                0 => self.control.number(&self.unpacked)?,
                short => u64::from(short),
            };
            self.run = u32::try_from(run).unwrap_or(0);
            if self.run == 0 || self.run > self.frame_events {
                return Err("a frame holds more than its events");
            }
        }
        self.run -= 1;
        Ok(0)
    }

    /// The next difference, if it is there.
    #[inline]
    fn difference(&mut self, missed: u8, bit: u8) -> Result<Option<u64>, &'static str> {
        if missed & bit == 0 {
            return Ok(None);
        }
        self.payload.number(&self.unpacked).map(|number| Some(unfold(number)))
    }

    fn event(&mut self) -> Result<(u32, Event), &'static str> {
        let missed = self.missed()?;
        if missed & miss::THREAD != 0 {
            let thread = self.payload.number(&self.unpacked)?;
            let thread = u32::try_from(thread).map_err(|_| "a thread's number is too large")?;
            self.model.enter(thread);
        }
        let thread = self.model.thread_number().ok_or("an event of no thread")?;
        if missed & miss::SLOT == 0 {
            self.model.thread().go_on();
        } else {
            self.go_to_slot()?;
        }
        let slot = self.model.thread().slot();
        let code = slot.code;
        let mut event = slot.shape.event(code).ok_or("an event of no kind")?;
        event.address = self.numbers(missed, &mut event)?;
        if event.kind.is_one_word() {
            (event.address, event.code) = (code, event.address);
        }
        Ok((thread, event))
    }

    /// Goes to a slot that was not expected.
    fn go_to_slot(&mut self) -> Result<(), &'static str> {
        let place = match self.payload.number(&self.unpacked)? {
            OTHER => self.model.thread().other(),
            NEW => {
                let shape = self.payload.number(&self.unpacked)?;
                let shape = Shape(u32::try_from(shape).map_err(|_| "an event of no kind")?);
                shape.event(0).ok_or("an event of no kind")?;
                let difference = unfold(self.payload.number(&self.unpacked)?);
                let code = self.model.last_new_code().wrapping_add(difference);
                self.model.add(code, shape);
                return Ok(());
            }
            known => u32::try_from(known - KNOWN).map_err(|_| "an event like none before")?,
        };
        self.model.thread().go_to(place).ok_or("an event like none before")
    }

    /// The next number that follows `trend` of the current slot, as guessed or by its difference.
    #[inline]
    fn trend(
        &mut self,
        missed: u8,
        bit: u8,
        trend: fn(&mut Slot) -> &mut Trend,
    ) -> Result<u64, &'static str> {
        let difference = self.difference(missed, bit)?;
        let trend = trend(self.model.thread().slot());
        let number = difference.map_or(trend.guess(), |by| trend.last.wrapping_add(by));
        trend.learn(number);
        Ok(number)
    }

    /// Reads the numbers of `event`, as far as it has them, and gives its address.
    #[inline]
    fn numbers(&mut self, missed: u8, event: &mut Event) -> Result<u64, &'static str> {
        let address = self.trend(missed, miss::ADDRESS, |slot| &mut slot.address)?;
        let place = Model::place_of(address, event.size);
        let held = self.model.held(place);
        if let Some(number) = &mut event.number {
            let expected = self.model.sequence.wrapping_add(1);
            let by = self.difference(missed, miss::NUMBER)?.unwrap_or(0);
            self.model.sequence = expected.wrapping_add(by);
            *number = self.model.sequence;
        }
        if let Some(stored) = &mut event.stored {
            *stored = self.trend(missed, miss::STORED, |slot| &mut slot.stored)?;
        }
        if let Some(extra) = &mut event.extra {
            *extra = self.trend(missed, miss::EXTRA, |slot| &mut slot.extra)?;
        }
        if let Some(value) = &mut event.value {
            let difference = self.difference(missed, miss::VALUE)?;
            let slot = self.model.thread().slot();
            *value = match difference {
                Some(by) => slot.last_value().wrapping_add(by),
                None => slot.guess_value(held),
            };
            slot.learn_value(*value, held);
        }
        if let Some(stored) = event.stored {
            self.model.learn_stored(stored);
        }
        self.model.learn_memory(event, place);
        Ok(address)
    }
}

impl<R: Read> Stream for Reader<R> {
    #[inline]
    fn next_event(&mut self) -> io::Result<Option<(u32, Event)>> {
        if self.frame_events == 0 {
            self.next_frame()?;
        }
        if self.frame_events == 0 {
            return Ok(None);
        }
        match self.event() {
            Ok(event) => {
                self.frame_events -= 1;
                self.events_count += 1;
                Ok(Some(event))
            }
            Err(reason) => {
                self.broken(reason);
                Ok(None)
            }
        }
    }

    fn ending(&self) -> Option<Ending> {
        self.ending
    }
}

// Writing a recording.

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

    /// Adds `number` if `trend` did not guess it, and learns it.
    #[inline]
    fn trend(&mut self, bit: u8, trend: &mut Trend, number: u64) {
        if trend.guess() != number {
            self.add(bit, fold(number.wrapping_sub(trend.last)));
        }
        trend.learn(number);
    }
}

impl<W: Write> Writer<W> {
    /// Starts a recording.
    ///
    /// # Errors
    /// If `out` does.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        Ok(Self {
            out,
            model: Model::new(),
            slots: Vec::new(),
            control: Vec::with_capacity(BYTES_GOAL + 128),
            payload: Vec::with_capacity(BYTES_GOAL + 128),
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
        let (code, address) = if event.kind.is_one_word() {
            (event.address, event.code)
        } else {
            (event.code, event.address)
        };
        if self.model.goes_on(thread, event, (code, address)) {
            self.run += 1;
        } else {
            self.push_unexpected(thread, event, code, address);
        }
        self.frame_events += 1;
        let bytes = self.control.len() + self.payload.len();
        if bytes >= BYTES_GOAL || self.frame_events == EVENTS_MAX {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes an event that is not all as guessed.
    #[inline(never)]
    fn push_unexpected(&mut self, thread: u32, event: &Event, code: u64, address: u64) {
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
        record.trend(miss::ADDRESS, &mut slot.address, address);
        if let Some(number) = event.number {
            if number != sequence {
                record.add(miss::NUMBER, fold(number.wrapping_sub(sequence)));
            }
            self.model.sequence = number;
        }
        let slot = self.model.thread().slot();
        if let Some(stored) = event.stored {
            record.trend(miss::STORED, &mut slot.stored, stored);
        }
        if let Some(extra) = event.extra {
            record.trend(miss::EXTRA, &mut slot.extra, extra);
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
            kind: EVENTS,
            packed_length: self.packed.len() as u32,
            events_count: self.frame_events,
            control_length: self.control.len() as u32,
            payload_length: self.payload.len() as u32,
        };
        write(&mut self.out, head, &self.packed)?;
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
            kind: END,
            packed_length: 8,
            events_count: 0,
            control_length: 0,
            payload_length: 0,
        };
        write(&mut self.out, head, &self.events_count.to_le_bytes())?;
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
