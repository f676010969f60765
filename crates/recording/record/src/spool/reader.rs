//! Reading a recording.

use std::io::{self, Read};

use reweave_runtime::wire::Event;
use zstd::bulk::Decompressor;

use super::Stream;
use super::frame;
use super::predict::{KNOWN, Model, NEW, OTHER, Shape, miss, unfold};

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
        let read = frame::take(&mut source, frame::MAGIC.len(), &mut magic)?;
        let ending = match read {
            _ if magic == frame::MAGIC => None,
            _ if frame::MAGIC.starts_with(&magic) => {
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
        let head = match frame::read(&mut self.source, &mut self.packed)? {
            Ok(head) => head,
            Err(reason) => return Ok(Err(reason)),
        };
        if head.kind == frame::END {
            let mut more = Vec::new();
            let follows = frame::take(&mut self.source, 1, &mut more)? > 0;
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
        let (code, shape) = (slot.code, slot.shape);
        let kind = shape.kind().ok_or("an event of no kind")?;
        let mut event = Event::new(kind, 0, code);
        (event.size, event.order, event.flags) = (shape.size(), shape.order(), shape.flags());
        let address = self.numbers(missed, shape, &mut event)?;
        event.address = address;
        if kind.is_one_word() {
            (event.address, event.code) = (code, address);
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
                shape.kind().ok_or("an event of no kind")?;
                let difference = unfold(self.payload.number(&self.unpacked)?);
                let code = self.model.last_new_code().wrapping_add(difference);
                self.model.add(code, shape);
                return Ok(());
            }
            known => u32::try_from(known - KNOWN).map_err(|_| "an event like none before")?,
        };
        self.model.thread().go_to(place).ok_or("an event like none before")
    }

    /// Reads the numbers of an event and gives its address.
    #[inline]
    fn numbers(
        &mut self,
        missed: u8,
        shape: Shape,
        event: &mut Event,
    ) -> Result<u64, &'static str> {
        let difference = self.difference(missed, miss::ADDRESS)?;
        let trend = &mut self.model.thread().slot().address;
        let address = difference.map_or(trend.guess(), |by| trend.last.wrapping_add(by));
        trend.learn(address);
        let place = Model::place_of(address, event.size);
        let held = self.model.held(place);
        if shape.has_number() {
            let expected = self.model.sequence.wrapping_add(1);
            let by = self.difference(missed, miss::NUMBER)?.unwrap_or(0);
            self.model.sequence = expected.wrapping_add(by);
            event.number = Some(self.model.sequence);
        }
        if shape.has_stored() {
            let difference = self.difference(missed, miss::STORED)?;
            let trend = &mut self.model.thread().slot().stored;
            let stored = difference.map_or(trend.guess(), |by| trend.last.wrapping_add(by));
            trend.learn(stored);
            event.stored = Some(stored);
        }
        if shape.has_extra() {
            let difference = self.difference(missed, miss::EXTRA)?;
            let trend = &mut self.model.thread().slot().extra;
            let extra = difference.map_or(trend.guess(), |by| trend.last.wrapping_add(by));
            trend.learn(extra);
            event.extra = Some(extra);
        }
        if shape.has_value() {
            let difference = self.difference(missed, miss::VALUE)?;
            let slot = self.model.thread().slot();
            let value = match difference {
                Some(by) => slot.last_value().wrapping_add(by),
                None => slot.guess_value(held),
            };
            slot.learn_value(value, held);
            event.value = Some(value);
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
