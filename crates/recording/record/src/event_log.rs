//! The recorded stream on disk: what the threads of a program logged, in observed order.
//!
//! A recording is long, regular and written while the program runs, so it must be cheap to write
//! and small. Each number of an event is written as its difference from the last one of its kind
//! that the thread logged at the same code address, seven bits a byte. So the rounds of a loop are
//! the same few bytes again and again, which zstd then says once.
//!
//! Frames of about 256 KiB are compressed by zstd and carry a checksum. A file that is cut off or
//! damaged yields every event of the whole frames before that, and [`Stream::ending`] says so.
//! Reading needs bounded memory whatever the bytes are; nothing in them can cause a panic.
//!
//! ```text
//! file     = magic, frame*
//! frame    = packed_length: u32, events_count: u32, control_length: u32, payload_length: u32,
//!            checksum: u64, packed: packed_length bytes
//! control  = (kind: u8, form?: u8, thread?, order and flags?, code, address?, number?) per event
//! payload  = (stored?, extra?, value?) per event
//! ```
//!
//! All numbers are little-endian. `packed` unpacks to the control bytes, then the payload: values
//! are less regular than the rest, which compresses better without them in between. The last frame
//! holds no event, and its body is the number of all events, eight bytes. What was last is
//! remembered from frame to frame.

use std::io::{self, Read, Write};
use std::ops::Range;

use reweave_runtime::predict;
use reweave_runtime::wire::{Event, Kind};
use xxhash_rust::xxh3::xxh3_64_with_seed;
use zstd::bulk::{Compressor, Decompressor};

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
    let mut file = MAGIC.to_vec();
    let numbers = [events_count, control.len() as u32, payload.len() as u32];
    write_frame(&mut file, numbers, &packed).expect("a vector takes what is written to it");
    file
}

// Frames.

/// The first bytes of every file.
const MAGIC: [u8; 8] = *b"\x89RWSP\r\n\x02";

/// A frame ends when so many bytes are in it.
const BYTES_GOAL: usize = 1 << 18;

/// A frame ends when so many events are in it.
const EVENTS_MAX: u32 = 1 << 20;

/// The most bytes that a frame may hold, packed or not.
const BYTES_MAX: u32 = 1 << 20;

/// The bytes before the checksum of a frame.
const HEAD_LENGTH: usize = 16;

fn checksum(head: &[u8; HEAD_LENGTH], body: &[u8]) -> u64 {
    xxh3_64_with_seed(body, xxh3_64_with_seed(head, 0))
}

/// Writes a frame; `numbers` are those after the packed length.
fn write_frame(out: &mut dyn Write, numbers: [u32; 3], packed: &[u8]) -> io::Result<()> {
    let [events_count, control_length, payload_length] = numbers;
    let numbers = [packed.len() as u32, events_count, control_length, payload_length];
    let mut head = [0; HEAD_LENGTH];
    head.as_chunks_mut().0.copy_from_slice(&numbers.map(u32::to_le_bytes));
    out.write_all(&head)?;
    out.write_all(&checksum(&head, packed).to_le_bytes())?;
    out.write_all(packed)
}

/// Reads up to `length` bytes and says how many there were.
fn take(source: &mut dyn Read, length: usize, into: &mut Vec<u8>) -> io::Result<usize> {
    into.clear();
    source.take(length as u64).read_to_end(into)
}

// Events.

/// How many code addresses are remembered; a power of two.
const SLOTS: usize = 1 << 12;

/// The most bytes of control or of payload that an event takes.
const EVENT_BYTES_MAX: usize = 2 + 5 * 10;

/// Set beside the kind of an event whose thread is another than that of the last event.
const OTHER_THREAD: u8 = 1 << 6;

/// The form of an event that is not brief: three bits for its size, then these.
mod form {
    /// It has an order or flags.
    pub const ORDER: u8 = 1 << 3;
    pub const NUMBER: u8 = 1 << 4;
    pub const STORED: u8 = 1 << 5;
    pub const EXTRA: u8 = 1 << 6;
    pub const VALUE: u8 = 1 << 7;
}

/// The last numbers of the events at one code address.
#[derive(Clone, Copy, Default)]
struct Last {
    address: u64,
    stored: u64,
    extra: u64,
    value: u64,
}

/// What the writer and the reader remember alike. Code addresses that share a slot spoil each
/// other's differences, on both sides alike.
struct Memory {
    thread: u32,
    /// The last place in the order of synchronization.
    number: u64,
    /// The last code address of each kind of event.
    codes: [u64; 64],
    /// Where the frame that was entered last ends.
    frame_end: u64,
    slots: Box<[Last]>,
}

impl Memory {
    fn new() -> Self {
        Self {
            thread: 0,
            number: 0,
            codes: [0; 64],
            frame_end: 0,
            slots: vec![Last::default(); SLOTS].into(),
        }
    }

    /// Passes all numbers of `event` that its form announces through `control` and `payload`, in
    /// the order of the format, each with the one that it is a difference from.
    #[inline(always)]
    fn pass_numbers(
        &mut self,
        event: &mut Event,
        mut control: impl FnMut(&mut u64, &mut u64) -> Result<(), &'static str>,
        mut payload: impl FnMut(&mut u64, &mut u64) -> Result<(), &'static str>,
    ) -> Result<(), &'static str> {
        let code = &mut self.codes[event.kind as usize];
        if event.kind.is_brief() {
            control(code, &mut event.address)?;
            return match event.kind {
                Kind::Enter => control(&mut self.frame_end, &mut event.code),
                _ => Ok(()),
            };
        }
        control(code, &mut event.code)?;
        let key = predict::key(event.kind, u32::from(event.size), event.code);
        let place = (predict::slot_of(key) << 3) + self.thread as usize;
        let last = &mut self.slots[place % SLOTS];
        control(&mut last.address, &mut event.address)?;
        if let Some(number) = &mut event.number {
            control(&mut self.number, number)?;
        }
        let values = [
            (&mut event.stored, &mut last.stored),
            (&mut event.extra, &mut last.extra),
            (&mut event.value, &mut last.value),
        ];
        for (value, last) in values {
            if let Some(value) = value {
                payload(last, value)?;
            }
        }
        Ok(())
    }
}

/// A difference of either sign as a number that is small when the difference is.
#[inline]
fn fold(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64) >> 63) as u64
}

/// The difference that [`fold`] gave `number` for.
#[inline]
fn unfold(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
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

/// Why no more can be read.
enum Stop {
    Error(io::Error),
    End(Ending),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Error(error)
    }
}

const fn broken(reason: &'static str) -> Stop {
    Stop::End(Ending::Broken(reason))
}

/// Bytes that are not read yet.
struct Cursor<'a>(std::slice::Iter<'a, u8>);

impl Cursor<'_> {
    #[inline]
    fn byte(&mut self) -> Result<u8, &'static str> {
        self.0.next().copied().ok_or("a frame ends within an event")
    }

    #[inline]
    fn number(&mut self) -> Result<u64, &'static str> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number in a frame is too long")
    }

    /// Reads `number`, which is the next difference from `last`.
    #[inline]
    fn next(&mut self, last: &mut u64, number: &mut u64) -> Result<(), &'static str> {
        *last = last.wrapping_add(unfold(self.number()?));
        *number = *last;
        Ok(())
    }
}

/// Reads the events of a recording.
pub struct Reader<R: Read> {
    source: R,
    memory: Memory,
    decompressor: Decompressor<'static>,
    packed: Vec<u8>,
    bytes: Vec<u8>,
    /// What is left of the control bytes and of the payload.
    control: Range<usize>,
    payload: Range<usize>,
    /// Events left in the frame.
    frame_events: u32,
    events_count: u64,
    ending: Option<Ending>,
}

impl<R: Read> Reader<R> {
    /// Opens a recording.
    ///
    /// # Errors
    /// If `source` cannot be read, or is no recording.
    pub fn new(mut source: R) -> io::Result<Self> {
        let mut magic = Vec::new();
        take(&mut source, MAGIC.len(), &mut magic)?;
        if !MAGIC.starts_with(&magic) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "this is no recording"));
        }
        let is_whole = magic.len() == MAGIC.len();
        let cut = Ending::Broken("the recording is cut off within its first bytes");
        Ok(Self {
            source,
            memory: Memory::new(),
            decompressor: Decompressor::new()?,
            packed: Vec::new(),
            bytes: Vec::new(),
            control: 0..0,
            payload: 0..0,
            frame_events: 0,
            events_count: 0,
            ending: (!is_whole).then_some(cut),
        })
    }

    fn read_frame(&mut self) -> Result<(), Stop> {
        if !self.control.is_empty() || !self.payload.is_empty() {
            return Err(broken("a frame holds more than its events"));
        }
        let mut start = Vec::with_capacity(HEAD_LENGTH + 8);
        if take(&mut self.source, HEAD_LENGTH + 8, &mut start)? == 0 {
            return Err(broken("the recording ends without an end marker"));
        }
        let whole = start.split_first_chunk::<HEAD_LENGTH>();
        let Some((head, &[sum])) = whole.map(|(head, sum)| (head, sum.as_chunks::<8>().0)) else {
            return Err(broken("the recording is cut off within the head of a frame"));
        };
        let number = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
        let numbers = [0, 4, 8, 12].map(|at| u32::from_le_bytes(number(at)));
        let [packed_length, events_count, control_length, payload_length] = numbers;
        let lengths = [packed_length, control_length, payload_length];
        if events_count > EVENTS_MAX || lengths.iter().any(|&length| length > BYTES_MAX) {
            return Err(broken("no frame of a recording starts so: it was damaged"));
        }
        let [packed_length, control_length, payload_length] = lengths.map(|it| it as usize);
        if take(&mut self.source, packed_length, &mut self.packed)? < packed_length {
            return Err(broken("the recording is cut off within a frame"));
        }
        if checksum(head, &self.packed) != u64::from_le_bytes(sum) {
            return Err(broken("the checksum of a frame does not match: it was damaged"));
        }
        let length = control_length + payload_length;
        if length == 0 {
            return Err(Stop::End(self.read_end()?));
        }
        self.bytes.clear();
        self.bytes.reserve(length);
        let unpacked = self.decompressor.decompress_to_buffer(&self.packed, &mut self.bytes);
        if !unpacked.is_ok_and(|count| count == length) {
            return Err(broken("a frame does not unpack"));
        }
        (self.control, self.payload) = (0..control_length, control_length..length);
        self.frame_events = events_count;
        Ok(())
    }

    /// Whether the last frame, whose body was read, ends this recording.
    fn read_end(&mut self) -> io::Result<Ending> {
        if self.packed != self.events_count.to_le_bytes() {
            return Ok(Ending::Broken("the end marker belongs to another recording"));
        }
        if take(&mut self.source, 1, &mut self.packed)? > 0 {
            return Ok(Ending::Broken("there are bytes after the end of the recording"));
        }
        Ok(Ending::Clean)
    }

    #[inline(always)]
    fn read_event(&mut self) -> Result<(u32, Event), &'static str> {
        let mut control = Cursor(self.bytes[self.control.clone()].iter());
        let mut payload = Cursor(self.bytes[self.payload.clone()].iter());
        let kind = control.byte()?;
        let is_other_thread = kind & OTHER_THREAD != 0;
        let kind = Kind::from_number(kind & !OTHER_THREAD).ok_or("an event of no kind")?;
        let form = if kind.is_brief() { 0 } else { control.byte()? };
        if is_other_thread {
            let thread = u32::try_from(control.number()?);
            self.memory.thread = thread.map_err(|_| "a thread's number is too large")?;
        }
        let mut event = Event::new(kind, 0, 0);
        event.size = form & 7;
        if form & form::ORDER != 0 {
            let word = control.number()?;
            (event.order, event.flags) = (word as u8 & 7, (word >> 3) as u16);
        }
        let announced = |bit: u8| (form & bit != 0).then_some(0);
        event.number = announced(form::NUMBER);
        event.stored = announced(form::STORED);
        event.extra = announced(form::EXTRA);
        event.value = announced(form::VALUE);
        self.memory.pass_numbers(
            &mut event,
            |last, number| control.next(last, number),
            |last, number| payload.next(last, number),
        )?;
        self.control.start = self.control.end - control.0.len();
        self.payload.start = self.payload.end - payload.0.len();
        Ok((self.memory.thread, event))
    }

    /// Reads frames until there is an event in one, or the end.
    fn next_frame(&mut self) -> io::Result<()> {
        while self.ending.is_none() && self.frame_events == 0 {
            match self.read_frame() {
                Ok(()) => {}
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::End(ending)) => self.ending = Some(ending),
            }
        }
        Ok(())
    }
}

impl<R: Read> Stream for Reader<R> {
    #[inline]
    fn next_event(&mut self) -> io::Result<Option<(u32, Event)>> {
        if self.frame_events == 0 {
            self.next_frame()?;
        }
        if self.ending.is_some() {
            return Ok(None);
        }
        match self.read_event() {
            Ok(event) => {
                self.frame_events -= 1;
                self.events_count += 1;
                Ok(Some(event))
            }
            Err(reason) => {
                self.ending = Some(Ending::Broken(reason));
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
    memory: Memory,
    compressor: Compressor<'static>,
    control: Vec<u8>,
    payload: Vec<u8>,
    packed: Vec<u8>,
    frame_events: u32,
    events_count: u64,
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
            memory: Memory::new(),
            compressor: Compressor::new(1)?,
            control: Vec::with_capacity(BYTES_GOAL + 2 * EVENT_BYTES_MAX),
            payload: Vec::with_capacity(BYTES_GOAL + EVENT_BYTES_MAX),
            packed: Vec::new(),
            frame_events: 0,
            events_count: 0,
        })
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
        let (control, payload) = (&mut self.control, &mut self.payload);
        let is_other_thread = self.memory.thread != thread;
        self.memory.thread = thread;
        control.push(event.kind as u8 | if is_other_thread { OTHER_THREAD } else { 0 });
        let order = u64::from(event.order & 7) | u64::from(event.flags) << 3;
        if !event.kind.is_brief() {
            let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
            control.push(
                event.size & 7
                    | bit(order != 0, form::ORDER)
                    | bit(event.number.is_some(), form::NUMBER)
                    | bit(event.stored.is_some(), form::STORED)
                    | bit(event.extra.is_some(), form::EXTRA)
                    | bit(event.value.is_some(), form::VALUE),
            );
        }
        if is_other_thread {
            push_number(control, u64::from(thread));
        }
        if order != 0 && !event.kind.is_brief() {
            push_number(control, order);
        }
        let mut event = *event;
        let passed = self.memory.pass_numbers(
            &mut event,
            |last, number| push_difference(control, last, *number),
            |last, number| push_difference(payload, last, *number),
        );
        debug_assert_eq!(passed, Ok(()), "to write a number cannot fail");
        self.frame_events += 1;
        let length = self.control.len() + self.payload.len();
        if length >= BYTES_GOAL || self.frame_events == EVENTS_MAX {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes what there is as a frame of its own, so that it is readable whatever happens next.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.frame_events == 0 {
            return Ok(());
        }
        let lengths = [self.control.len(), self.payload.len()].map(|length| length as u32);
        self.control.append(&mut self.payload);
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(self.control.len()));
        self.compressor.compress_to_buffer(&self.control, &mut self.packed)?;
        let [control_length, payload_length] = lengths;
        let numbers = [self.frame_events, control_length, payload_length];
        write_frame(&mut self.out, numbers, &self.packed)?;
        self.out.flush()?;
        self.control.clear();
        self.events_count += u64::from(std::mem::take(&mut self.frame_events));
        Ok(())
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        write_frame(&mut self.out, [0; 3], &self.events_count.to_le_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Writes `number` as its difference from `last`, which it becomes.
#[inline]
fn push_difference(bytes: &mut Vec<u8>, last: &mut u64, number: u64) -> Result<(), &'static str> {
    push_number(bytes, fold(number.wrapping_sub(*last)));
    *last = number;
    Ok(())
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
