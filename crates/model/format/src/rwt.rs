//! Our binary format: blocks of up to 65 536 events, each checksummed, each column on its own.
//!
//! A file is a header, then frames. Each frame has a checksum, so that a file that was cut off
//! or damaged still yields every whole block before the damage; the last frame says that the
//! trace ends here. A block brings the names that are new in it, then its columns: each is
//! turned into small numbers (as they are, as differences, or as places in a dictionary, whichever
//! packs best), split into byte planes, and compressed by zstd.
//!
//! ```text
//! file     = magic, version: u16, reserved: u16, frame*
//! frame    = kind: u8, length: u32, payload: length bytes, checksum: u64
//! block    = events_count: u32, section*                    (the payload of kind 1)
//! end      = events_count: u64, blocks_count: u64           (the payload of kind 2)
//! section  = tag: u8, form: u8, length: u32, body: length bytes
//! ```
//!
//! All numbers are little-endian. The checksum is XXH3 of the payload, its seed the kind and the
//! length. The book describes every byte.
//!
//! Nothing is allocated on the word of the file: a frame is read as far as it goes, and what a
//! section may unpack to is bounded by the number of events in its block, which is bounded.

mod column;
mod facts;
mod names;

use std::io::{self, ErrorKind, Read, Write};

use reweave_base::Id;
use reweave_trace::{
    BarrierId, CodeId, Columns, Declared, EventId, NameKind, Names, OpCode, Origin, Origins,
    RunEnd, RunStart, SemaphoreId, Trace, TraceBuilder, VarId,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::rwt::column::{Coder, Packed, Packer, Unpacker, Written, read_codes, read_modules};
use crate::rwt::facts::{
    read_given, read_initials, read_run_end, read_run_start, write_given, write_initials,
    write_run_end, write_run_start,
};
use crate::rwt::names::{read_declarations, read_names, write_declarations, write_names};
use crate::{Place, ReadErrorKind, ReadOptions};

/// The first eight bytes of every file: not text, and damaged by transfers that change line ends.
pub const MAGIC: [u8; 8] = *b"\x89RWT\r\n\x1a\n";

/// The version that is written, and the only one that is read.
pub const VERSION: u16 = 1;

/// The most events that a block holds.
pub const BLOCK_EVENTS_MAX: usize = 1 << 16;

/// The most bytes that the new names of one kind take in a block.
const NAMES_BYTES_MAX: usize = 1 << 24;

/// The most bytes that the start of the run takes: twice what a command line can hold.
const RUN_START_BYTES_MAX: usize = 1 << 22;

/// New names beyond this are brought by blocks of their own.
const NAMES_BYTES_GOAL: usize = 1 << 22;

/// What a section of a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    /// New names of this kind: 1 to 10, as [`NameKind::ALL`] lists them.
    Names(NameKind),
    Starts,
    Parties,
    Threads,
    Codes,
    Operands,
    Sites,
    Known,
    Values,
    Modules,
    Addresses,
    Origins,
    Occurrences,
    RunEnd,
    Initials,
    /// Whether waits are requested: a byte, 1 or 0.
    Requests,
    RunStart,
    /// What the program calls its threads.
    GivenNames,
    /// What a later version may add and a reader can do without: above these.
    Optional,
}

impl Tag {
    const REST: [(Self, u8); 17] = [
        (Self::Starts, 16),
        (Self::Parties, 17),
        (Self::Threads, 32),
        (Self::Codes, 33),
        (Self::Operands, 34),
        (Self::Sites, 35),
        (Self::Known, 36),
        (Self::Values, 37),
        // Readers of before these were written skip them.
        (Self::Modules, 128),
        (Self::Addresses, 129),
        (Self::Origins, 130),
        (Self::Occurrences, 131),
        (Self::RunEnd, 132),
        (Self::Initials, 133),
        (Self::Requests, 134),
        (Self::RunStart, 135),
        (Self::GivenNames, 136),
    ];

    fn byte(self) -> u8 {
        let listed = Self::REST.into_iter().find(|&(tag, _)| tag == self).map(|(_, byte)| byte);
        match self {
            Self::Names(kind) => {
                let place = NameKind::ALL.into_iter().position(|other| other == kind);
                place.map_or(0, |place| place as u8 + 1)
            }
            _ => listed.unwrap_or(u8::MAX),
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        let names = NameKind::ALL.get((byte as usize).wrapping_sub(1));
        let rest = || Self::REST.into_iter().find(|&(_, other)| other == byte);
        let known = names.map(|&kind| Self::Names(kind)).or_else(|| rest().map(|(tag, _)| tag));
        known.or((byte >= 128).then_some(Self::Optional))
    }
}

/// A file whose frames hold the payloads that `bytes` cut themselves into, with checksums that
/// fit: for tests that want to get past them.
///
/// `bytes` are a sequence of a length (two bytes, little-endian) and that many bytes of payload;
/// the first byte of each payload says the frame's kind.
#[doc(hidden)]
pub fn framed(mut bytes: &[u8]) -> Vec<u8> {
    let mut file = [&MAGIC[..], &VERSION.to_le_bytes(), &[0; 2]].concat();
    while let Some((length, rest)) = bytes.split_at_checked(2) {
        let length = u16::from_le_bytes([length[0], length[1]]) as usize;
        let (payload, rest) = rest.split_at(length.min(rest.len()));
        bytes = rest;
        let kind = payload.first().map_or(END, |&first| 1 + (first & 1));
        let payload = payload.get(1..).unwrap_or_default();
        write_frame(&mut file, kind, payload).expect("a vector takes what is written to it");
    }
    file
}

// Frames: a kind, a length, a payload and a checksum over all of them.

/// The frame holds a block of events.
const BLOCK: u8 = 1;
/// The frame says that the trace ends here.
const END: u8 = 2;

/// The longest payload that is accepted.
const PAYLOAD_MAX: usize = 1 << 28;

fn checksum(head: [u8; 5], payload: &[u8]) -> u64 {
    let mut seed = [0; 8];
    seed[..5].copy_from_slice(&head);
    xxh3_64_with_seed(payload, u64::from_le_bytes(seed))
}

/// Writes a frame.
fn write_frame(out: &mut dyn Write, kind: u8, payload: &[u8]) -> io::Result<()> {
    if payload.len() > PAYLOAD_MAX {
        return Err(io::Error::new(ErrorKind::InvalidInput, "a block is too large"));
    }
    let mut head = [kind, 0, 0, 0, 0];
    head[1..].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    out.write_all(&head)?;
    out.write_all(payload)?;
    out.write_all(&checksum(head, payload).to_le_bytes())
}

/// What came of reading a frame.
enum Frame {
    /// A whole frame of this kind; its payload is in the buffer.
    Whole(u8),
    /// The file ends, or was damaged, at this many bytes into the frame.
    Broken(u64, String),
}

/// Reads a frame's payload into `payload`.
fn read_frame(source: &mut dyn Read, payload: &mut Vec<u8>) -> io::Result<Frame> {
    let mut head = Vec::with_capacity(5);
    let head_length = source.take(5).read_to_end(&mut head)?;
    let Ok(head) = <[u8; 5]>::try_from(&head[..]) else {
        let reason = match head_length {
            0 => "the file ends without an end marker",
            _ => "the file is cut off within the head of a frame",
        };
        return Ok(Frame::Broken(head_length as u64, reason.into()));
    };
    let [kind, length @ ..] = head;
    let length = u32::from_le_bytes(length) as usize;
    if !(kind == BLOCK || kind == END) || length > PAYLOAD_MAX {
        let reason = format!("no frame starts with kind {kind} and length {length}");
        return Ok(Frame::Broken(0, reason));
    }
    payload.clear();
    // Grows with what is there, not with what the frame says.
    let read = source.take(length as u64).read_to_end(payload)?;
    let mut sum = Vec::with_capacity(8);
    let sum_length = if read == length { source.take(8).read_to_end(&mut sum)? } else { 0 };
    let Ok(sum) = <[u8; 8]>::try_from(&sum[..]) else {
        let reason = "the file is cut off within a frame".into();
        return Ok(Frame::Broken((5 + read + sum_length) as u64, reason));
    };
    if u64::from_le_bytes(sum) != checksum(head, payload) {
        let reason = "the checksum of a frame does not match: it was damaged".into();
        return Ok(Frame::Broken(0, reason));
    }
    Ok(Frame::Whole(kind))
}

fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or("a number is cut off")?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("a number is longer than 64 bits".into())
}

// Reading `.rwt`.

/// Reads the events of a file into a builder.
///
/// # Errors
/// If the file is of another version, or if it is cut off or damaged and not to be repaired or
/// has no whole block before that.
pub(crate) fn read(
    source: &mut dyn Read,
    options: &ReadOptions<'_>,
) -> Result<TraceBuilder, (Place, ReadErrorKind)> {
    let mut reader = Reader::new().map_err(|error| (Place::File, error.into()))?;
    let Damage { byte, reason } = match reader.read(source, options) {
        Ok(()) => return Ok(reader.into_builder()),
        Err(Failure::Fatal(place, kind)) => return Err((place, kind)),
        Err(Failure::Damage(damage)) => damage,
    };
    let kept = reader.builder.len();
    if kept == 0 {
        return Err((Place::Byte(byte), ReadErrorKind::Malformed(reason)));
    }
    if options.repair {
        reader
            .builder
            .note_repair(format!("byte {byte}: {reason}; kept the {kept} events before it"));
        return Ok(reader.into_builder());
    }
    Err((Place::Byte(byte), ReadErrorKind::Damaged { reason, kept }))
}

/// The file ends, or makes no sense, at this byte.
struct Damage {
    byte: u64,
    reason: String,
}

enum Failure {
    /// What was read before it is good.
    Damage(Damage),
    /// Nothing can be kept.
    Fatal(Place, ReadErrorKind),
}

struct Reader {
    builder: TraceBuilder,
    unpacker: Unpacker,
    /// The block that is being read; its events are added only once all of it is known good.
    block: Columns,
    codes: Vec<u32>,
    known: Vec<u32>,
    values: Vec<u64>,
    starts: Vec<(SemaphoreId, u32)>,
    parties: Vec<(BarrierId, u32)>,
    /// The columns of where the events come from.
    origins: [Vec<u32>; 2],
    /// Whether waits are requested, where the block says so.
    requests: Option<bool>,
    /// The same of all blocks so far.
    waits_are_requested: Option<bool>,
    blocks_count: u64,
}

impl Reader {
    fn new() -> io::Result<Self> {
        Ok(Self {
            builder: TraceBuilder::new(),
            unpacker: Unpacker::new()?,
            block: Columns::default(),
            codes: Vec::new(),
            known: Vec::new(),
            values: Vec::new(),
            starts: Vec::new(),
            parties: Vec::new(),
            origins: [Vec::new(), Vec::new()],
            requests: None,
            waits_are_requested: None,
            blocks_count: 0,
        })
    }

    /// What was read.
    fn into_builder(self) -> TraceBuilder {
        let mut builder = self.builder;
        // Before files said so, recordings and they alone had origins.
        if self.waits_are_requested.unwrap_or_else(|| builder.origins().events_count() > 0) {
            builder.declare_requested_waits();
        }
        builder
    }

    fn read(&mut self, source: &mut dyn Read, options: &ReadOptions<'_>) -> Result<(), Failure> {
        let mut byte = read_header(source)?;
        let mut payload = Vec::new();
        loop {
            let frame = read_frame(source, &mut payload).map_err(|error| io(byte, error))?;
            let broken = |at, reason| Failure::Damage(Damage { byte: byte + at, reason });
            let kind = match frame {
                Frame::Whole(kind) => kind,
                Frame::Broken(at, reason) => return Err(broken(at, reason)),
            };
            if kind == END {
                self.check_end(&payload).map_err(|reason| broken(0, reason))?;
                byte += 5 + payload.len() as u64 + 8;
                return expect_nothing(source, byte);
            }
            let known = NameKind::ALL.map(|kind| self.builder.names().count(kind));
            let tables = self.builder.origins();
            let (modules_count, codes_count) = (tables.modules().len(), tables.codes().len());
            if let Err(reason) = self.read_block(&payload) {
                // Names of a block that is not kept are not kept either.
                for (kind, known) in NameKind::ALL.into_iter().zip(known) {
                    self.builder.names().truncate(kind, known);
                }
                let events_count = self.builder.len();
                self.builder.origins().truncate(modules_count, codes_count, events_count);
                return Err(broken(0, reason));
            }
            byte += 5 + payload.len() as u64 + 8;
            if options.go_on.is_some_and(|go_on| !go_on(byte)) {
                return Err(Failure::Fatal(Place::File, ReadErrorKind::Interrupted));
            }
        }
    }

    fn check_end(&self, payload: &[u8]) -> Result<(), String> {
        let events_count = self.builder.len() as u64;
        let expected = [events_count.to_le_bytes(), self.blocks_count.to_le_bytes()].concat();
        if payload == expected {
            Ok(())
        } else {
            Err(format!("the end marker belongs to another trace than these {events_count} events"))
        }
    }

    fn read_block(&mut self, payload: &[u8]) -> Result<(), String> {
        let (count, mut rest) = payload.split_at_checked(4).ok_or("a block without a size")?;
        let count = u32::from_le_bytes(count.try_into().expect("four bytes")) as usize;
        if count > BLOCK_EVENTS_MAX {
            return Err(format!("a block of {count} events, more than {BLOCK_EVENTS_MAX}"));
        }
        if self.builder.len() + count > EventId::COUNT_MAX {
            return Err(format!("more than {} events", EventId::COUNT_MAX));
        }
        self.block.clear();
        self.codes.clear();
        self.known.clear();
        self.values.clear();
        self.starts.clear();
        self.parties.clear();
        self.origins.iter_mut().for_each(Vec::clear);
        self.requests = None;
        let mut seen = [false; 256];
        while !rest.is_empty() {
            let (head, after) = rest.split_at_checked(6).ok_or("a section without a head")?;
            let length = u32::from_le_bytes(head[2..].try_into().expect("four bytes")) as usize;
            let (body, after) = after.split_at_checked(length).ok_or("a section is cut off")?;
            let tag = Tag::from_byte(head[0]);
            let tag = tag.ok_or_else(|| format!("a section of unknown kind {}", head[0]))?;
            let has_come = std::mem::replace(&mut seen[head[0] as usize], true);
            if has_come && tag != Tag::Optional {
                return Err("a section comes twice in a block".into());
            }
            self.read_section(tag, head[1], body, count)?;
            rest = after;
        }
        self.add_block(count)
    }

    fn read_section(
        &mut self,
        tag: Tag,
        form: u8,
        body: &[u8],
        count: usize,
    ) -> Result<(), String> {
        let unpacker = &mut self.unpacker;
        let column = match tag {
            Tag::Threads => &mut self.block.threads,
            Tag::Codes => &mut self.codes,
            Tag::Operands => &mut self.block.operands,
            Tag::Sites => &mut self.block.sites,
            Tag::Known => &mut self.known,
            Tag::Origins => &mut self.origins[0],
            Tag::Occurrences => &mut self.origins[1],
            Tag::Values => {
                return unpacker.unpack_wide(form, body, count, &mut self.values);
            }
            Tag::Optional => return Ok(()),
            Tag::Requests => {
                let [is_requested @ (0 | 1)] = *unpacker.unpack_bytes(form, body, 1)? else {
                    return Err("expected 0 or 1 for whether waits are requested".into());
                };
                self.requests = Some(is_requested == 1);
                return Ok(());
            }
            Tag::Initials => {
                let bytes = unpacker.unpack_bytes(form, body, NAMES_BYTES_MAX)?;
                let count = self.builder.names().vars.len();
                for (var, value) in read_initials(bytes, count)? {
                    self.builder.declare_initial(var, value);
                }
                return Ok(());
            }
            Tag::RunStart => {
                let bytes = unpacker.unpack_bytes(form, body, RUN_START_BYTES_MAX)?;
                self.builder.set_run_start(read_run_start(bytes)?);
                return Ok(());
            }
            Tag::RunEnd => {
                let bytes = unpacker.unpack_bytes(form, body, NAMES_BYTES_MAX)?;
                self.builder.set_run_end(read_run_end(bytes)?);
                return Ok(());
            }
            Tag::Modules | Tag::Addresses => {
                let bytes = unpacker.unpack_bytes(form, body, NAMES_BYTES_MAX)?;
                let known = self.builder.origins();
                return match tag {
                    Tag::Modules => read_modules(known, bytes),
                    _ => read_codes(known, bytes),
                };
            }
            Tag::Names(_) | Tag::GivenNames | Tag::Starts | Tag::Parties => {
                let bytes = unpacker.unpack_bytes(form, body, NAMES_BYTES_MAX)?;
                let names = self.builder.names();
                match tag {
                    Tag::Names(kind) => read_names(names, kind, bytes)?,
                    Tag::GivenNames => read_given(bytes, names)?,
                    Tag::Starts => {
                        self.starts = read_declarations(bytes, names.semaphores.len())?;
                    }
                    _ => self.parties = read_declarations(bytes, names.barriers.len())?,
                }
                return Ok(());
            }
        };
        unpacker.unpack(form, body, count, column)
    }

    /// Adds the block, all of whose sections were read, to the trace.
    fn add_block(&mut self, count: usize) -> Result<(), String> {
        let block = &mut self.block;
        let lengths =
            [block.threads.len(), self.codes.len(), block.operands.len(), block.sites.len()];
        if lengths != [count; 4] {
            return Err("a column is missing from a block".into());
        }
        for &code in &self.codes {
            let code = u8::try_from(code).ok().and_then(OpCode::from_byte);
            block.codes.push(code.ok_or("an operation that does not exist")?);
        }
        if self.known.len() != self.values.len() {
            return Err("values without the column that says which are known".into());
        }
        if self.parties.iter().any(|&(_, parties)| parties == 0) {
            return Err("a barrier for no parties".into());
        }
        add_origins(&mut self.builder, block, &self.origins)?;
        self.waits_are_requested = self.requests.or(self.waits_are_requested);
        for &(semaphore, start) in &self.starts {
            self.builder.declare_start(semaphore, start);
        }
        for &(barrier, parties) in &self.parties {
            self.builder.declare_parties(barrier, parties);
        }
        let start = self.builder.len();
        self.builder.append(block);
        for (place, (&known, &value)) in self.known.iter().zip(&self.values).enumerate() {
            if known != 0 {
                self.builder.value_of(EventId::from_index(start + place), value as i64);
            }
        }
        self.blocks_count += 1;
        Ok(())
    }
}

/// Says of the events of `block`, which come next, where they come from, by their two columns.
fn add_origins(
    builder: &mut TraceBuilder,
    block: &Columns,
    [codes, occurrences]: &[Vec<u32>; 2],
) -> Result<(), String> {
    if codes.len() != occurrences.len() {
        return Err("code addresses without the column of their occurrences".into());
    }
    if codes.is_empty() {
        return Ok(());
    }
    let start = builder.len();
    let known = builder.origins();
    let mut coder = Coder::new();
    for (place, (&code, &occurrence)) in codes.iter().zip(occurrences).enumerate() {
        let read = coder.decode(block, place, [code, occurrence]);
        let Some((number, occurrence)) = read else { continue };
        let code = CodeId::from_number(number);
        let code = code.filter(|code| code.index() < known.codes().len());
        let code = code.ok_or("an event from a code address that is not there")?;
        known.set(EventId::from_index(start + place), Origin { code, occurrence });
    }
    Ok(())
}

fn io(byte: u64, error: io::Error) -> Failure {
    match error.kind() {
        // A compressed file that is cut off or damaged: what came before it is good.
        ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput => {
            Failure::Damage(Damage { byte, reason: format!("the file does not unpack: {error}") })
        }
        _ => Failure::Fatal(Place::Byte(byte), error.into()),
    }
}

/// Reads the header and gives its length.
fn read_header(source: &mut dyn Read) -> Result<u64, Failure> {
    let length = MAGIC.len() + 4;
    let mut header = Vec::with_capacity(length);
    source.take(length as u64).read_to_end(&mut header).map_err(|error| io(0, error))?;
    if header.len() < length {
        let reason = "the file is cut off within its header".into();
        return Err(Failure::Damage(Damage { byte: header.len() as u64, reason }));
    }
    let version = u16::from_le_bytes([header[8], header[9]]);
    if header[..8] != MAGIC || version != VERSION {
        let reason = format!("`.rwt` of version {version}, where this reads version {VERSION}");
        return Err(Failure::Fatal(Place::Byte(8), ReadErrorKind::Unrecognised(reason)));
    }
    if header[10..] != [0; 2] {
        let reason = "the header's reserved bytes are not zero".into();
        return Err(Failure::Damage(Damage { byte: 10, reason }));
    }
    Ok(length as u64)
}

fn expect_nothing(source: &mut dyn Read, byte: u64) -> Result<(), Failure> {
    let mut more = Vec::new();
    source.take(1).read_to_end(&mut more).map_err(|error| io(byte, error))?;
    if more.is_empty() {
        return Ok(());
    }
    let reason = "there are bytes after the end of the trace".into();
    Err(Failure::Damage(Damage { byte, reason }))
}

/// Reads the file at `path` as far as its columns, and says how many events it holds: what
/// decoding costs without validating.
///
/// # Errors
/// If the file cannot be read or is not whole.
#[doc(hidden)]
pub fn decode(path: &std::path::Path) -> Result<usize, ReadErrorKind> {
    let mut file = std::fs::File::open(path)?;
    let read = read(&mut file, &ReadOptions::default()).map_err(|(_, kind)| kind)?;
    Ok(read.len())
}

// Writing `.rwt`, a block at a time.

/// Writes `trace` to `out`.
///
/// # Errors
/// If `out` does, or if the trace holds what the format cannot carry: a name of many mebibytes,
/// the flow or the program layer.
pub fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    if trace.flow().is_some() || trace.program().is_some() {
        return Err(unsupported("the flow and program layers cannot be written to `.rwt`"));
    }
    let mut writer = Writer::new(out)?;
    if let Some(run_start) = trace.run_start() {
        writer.run_start(run_start)?;
    }
    let mut start = 0;
    while start < trace.len() {
        let end = trace.len().min(start + BLOCK_EVENTS_MAX);
        let values = |place: usize| trace.value(EventId::from_index(start + place));
        let columns = trace.columns().copied(start..end);
        let values: Option<&dyn Fn(usize) -> Option<i64>> =
            if trace.has_values() { Some(&values) } else { None };
        let start_id = EventId::from_index(start);
        let origins = trace.origins().map(|origins| BlockOrigins { origins, start: start_id });
        writer.block_with_origins(trace.names(), trace.declared(), &columns, values, origins)?;
        start = end;
    }
    if let Some(run_end) = trace.run_end() {
        writer.run_end(run_end)?;
    }
    writer.finish(trace.names(), trace.declared())?;
    Ok(())
}

fn unsupported(reason: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, reason)
}

/// Where the events of a block come from.
#[derive(Clone, Copy, Debug)]
pub struct BlockOrigins<'a> {
    /// All files and code addresses so far, which only ever grow in number from block to block,
    /// and the origins of events.
    pub origins: &'a Origins,
    /// Which of the events in `origins` is the first of the block.
    pub start: EventId,
}

/// Writes a trace as it comes, a block at a time: what a recorder needs, which has no trace yet.
///
/// Whatever was written is readable after a crash, up to the last whole block.
pub struct Writer<W> {
    out: W,
    packer: Packer,
    /// How many names of each kind are written.
    written: [usize; NameKind::ALL.len()],
    origins_written: Written,
    /// Whether a block says if waits are requested.
    has_requests: bool,
    events_count: u64,
    blocks_count: u64,
}

impl<W: Write> Writer<W> {
    /// Starts a file.
    ///
    /// # Errors
    /// If `out` does.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&[0; 2])?;
        Ok(Self {
            out,
            packer: Packer::new()?,
            written: [0; NameKind::ALL.len()],
            origins_written: Written::default(),
            has_requests: false,
            events_count: 0,
            blocks_count: 0,
        })
    }

    /// Adds the events of `columns`, at most [`BLOCK_EVENTS_MAX`], with the value of each by its
    /// place among them, where they come from, and what is new in `names`, which only ever grows.
    ///
    /// What is declared of a variable, a semaphore or a barrier is written with its name: it must be declared
    /// by the block that first speaks of it. What is declared of requests is written once.
    ///
    /// # Errors
    /// If `out` does, or if a name or the path of a file is longer than the format can carry.
    ///
    /// # Panics
    /// If there are too many events.
    pub fn block_with_origins(
        &mut self,
        names: &Names,
        declared: &Declared,
        columns: &Columns,
        values: Option<&dyn Fn(usize) -> Option<i64>>,
        origins: Option<BlockOrigins<'_>>,
    ) -> io::Result<()> {
        assert!(columns.len() <= BLOCK_EVENTS_MAX, "a block holds so many events at most");
        let mut payload = self.new_names(names, declared, columns.len(), &needed(columns))?;
        let codes = columns.codes.iter().map(|code| u64::from(code.byte())).collect();
        let wide = |numbers: &[u32]| numbers.iter().map(|&n| u64::from(n)).collect::<Vec<_>>();
        let numbers: [(Tag, Vec<u64>); 4] = [
            (Tag::Threads, wide(&columns.threads)),
            (Tag::Codes, codes),
            (Tag::Operands, wide(&columns.operands)),
            (Tag::Sites, wide(&columns.sites)),
        ];
        for (tag, column) in numbers {
            push_section(&mut payload, tag, &self.packer.pack(&column)?);
        }
        if let Some(values) = values {
            self.values(&mut payload, columns.len(), values)?;
        }
        if let Some(origins) = origins {
            self.origins(&mut payload, columns, origins)?;
        }
        // Readers take origins for a sign of requests where nothing is said.
        if origins.is_some() || declared.waits_are_requested {
            self.requests(&mut payload, declared)?;
        }
        self.events_count += columns.len() as u64;
        self.frame(&payload)
    }

    /// Says how the run was started, in a block of its own. What is too long for that is left out.
    ///
    /// # Errors
    /// If `out` does.
    pub fn run_start(&mut self, run_start: &RunStart) -> io::Result<()> {
        let bytes = write_run_start(run_start);
        if bytes.len() > RUN_START_BYTES_MAX {
            return Ok(());
        }
        let mut payload = 0_u32.to_le_bytes().to_vec();
        self.bytes(&mut payload, Tag::RunStart, &bytes)?;
        self.frame(&payload)
    }

    /// Says how the run ended, in a block of its own after that of the last event it speaks of.
    ///
    /// # Errors
    /// If `out` does.
    pub fn run_end(&mut self, run_end: &RunEnd) -> io::Result<()> {
        let mut payload = 0_u32.to_le_bytes().to_vec();
        self.bytes(&mut payload, Tag::RunEnd, &write_run_end(run_end))?;
        self.frame(&payload)
    }

    /// Ends the file with the names that no event used, and the mark of the end.
    ///
    /// # Errors
    /// If `out` does, or if a name is longer than the format can carry.
    pub fn finish(mut self, names: &Names, declared: &Declared) -> io::Result<W> {
        let all = NameKind::ALL.map(|kind| names.count(kind));
        if all != self.written || (declared.waits_are_requested && !self.has_requests) {
            let mut payload = self.new_names(names, declared, 0, &all)?;
            if declared.waits_are_requested {
                self.requests(&mut payload, declared)?;
            }
            self.frame(&payload)?;
        }
        self.given_names(names)?;
        let mut payload = self.events_count.to_le_bytes().to_vec();
        payload.extend_from_slice(&self.blocks_count.to_le_bytes());
        write_frame(&mut self.out, END, &payload)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Says what the program calls its threads, in a block of its own. What is too long for that is left out.
    fn given_names(&mut self, names: &Names) -> io::Result<()> {
        let bytes = write_given(names);
        if bytes.is_empty() || bytes.len() > NAMES_BYTES_MAX {
            return Ok(());
        }
        let mut payload = 0_u32.to_le_bytes().to_vec();
        self.bytes(&mut payload, Tag::GivenNames, &bytes)?;
        self.frame(&payload)
    }

    fn frame(&mut self, payload: &[u8]) -> io::Result<()> {
        self.blocks_count += 1;
        write_frame(&mut self.out, BLOCK, payload)
    }

    /// The start of a block of `events_count` events that brings the names up to `needed`. Where
    /// they are many, blocks without events bring the first of them.
    fn new_names(
        &mut self,
        names: &Names,
        declared: &Declared,
        events_count: usize,
        needed: &[usize; NameKind::ALL.len()],
    ) -> io::Result<Vec<u8>> {
        loop {
            let known = self.some_of(names, needed);
            let is_last = (0..known.len()).all(|kind| known[kind] >= needed[kind]);
            let count = if is_last { events_count as u32 } else { 0 };
            let mut payload = count.to_le_bytes().to_vec();
            self.names(&mut payload, names, declared, known)?;
            if is_last {
                return Ok(payload);
            }
            self.frame(&payload)?;
        }
    }

    /// As many names of each kind on the way to `needed` as one block takes.
    fn some_of(
        &self,
        names: &Names,
        needed: &[usize; NameKind::ALL.len()],
    ) -> [usize; NameKind::ALL.len()] {
        let mut known = self.written;
        let mut bytes = 0;
        for (place, kind) in NameKind::ALL.into_iter().enumerate() {
            while known[place] < needed[place] {
                let length = names.name(kind, known[place] as u32).len() + 1;
                // A name that is longer than that has a block to itself.
                if bytes > 0 && bytes + length > NAMES_BYTES_GOAL {
                    return known;
                }
                bytes += length;
                known[place] += 1;
            }
        }
        known
    }

    fn names(
        &mut self,
        payload: &mut Vec<u8>,
        names: &Names,
        declared: &Declared,
        known: [usize; NameKind::ALL.len()],
    ) -> io::Result<()> {
        for (place, kind) in NameKind::ALL.into_iter().enumerate() {
            let new = self.written[place]..known[place];
            if new.is_empty() {
                continue;
            }
            let bytes = write_names(names, kind, new.clone());
            if bytes.len() > NAMES_BYTES_MAX {
                return Err(unsupported("a name is too long for `.rwt`"));
            }
            self.bytes(payload, Tag::Names(kind), &bytes)?;
            let start = |place| declared.start(SemaphoreId::from_index(place));
            let parties = |place| declared.parties(BarrierId::from_index(place));
            let number = |place| match kind {
                NameKind::Semaphore => start(place),
                NameKind::Barrier => parties(place),
                _ => None,
            };
            let pairs = new.clone().filter_map(|place| number(place).map(|number| (place, number)));
            if kind == NameKind::Var {
                let initial = |place| declared.initial(VarId::from_index(place));
                let initials = new.clone().filter_map(|place| Some((place, initial(place)?)));
                self.bytes(payload, Tag::Initials, &write_initials(initials))?;
            }
            let tag = if kind == NameKind::Barrier { Tag::Parties } else { Tag::Starts };
            self.bytes(payload, tag, &write_declarations(pairs))?;
        }
        self.written = known;
        Ok(())
    }

    fn values(
        &mut self,
        payload: &mut Vec<u8>,
        count: usize,
        value: &dyn Fn(usize) -> Option<i64>,
    ) -> io::Result<()> {
        let known: Vec<u64> = (0..count).map(|place| u64::from(value(place).is_some())).collect();
        if known.iter().all(|&known| known == 0) {
            return Ok(());
        }
        let values: Vec<u64> = (0..count).map(|place| value(place).unwrap_or(0) as u64).collect();
        push_section(payload, Tag::Known, &self.packer.pack(&known)?);
        push_section(payload, Tag::Values, &self.packer.pack(&values)?);
        Ok(())
    }

    /// Adds to a block of `columns` where its events come from. Where new code addresses are many,
    /// blocks without events bring the first of them.
    fn origins(
        &mut self,
        payload: &mut Vec<u8>,
        columns: &Columns,
        BlockOrigins { origins, start }: BlockOrigins<'_>,
    ) -> io::Result<()> {
        let too_long = || unsupported("the path of a file with code is too long for `.rwt`");
        let mut pieces = self.origins_written.rest(origins).ok_or_else(too_long)?;
        let last = pieces.pop().unwrap_or_default();
        for piece in pieces {
            let mut before = 0_u32.to_le_bytes().to_vec();
            self.bytes(&mut before, Tag::Modules, &piece.modules)?;
            self.bytes(&mut before, Tag::Addresses, &piece.codes)?;
            self.frame(&before)?;
        }
        self.bytes(payload, Tag::Modules, &last.modules)?;
        self.bytes(payload, Tag::Addresses, &last.codes)?;
        let mut coder = Coder::new();
        let [mut codes, mut occurrences] = [Vec::new(), Vec::new()];
        let mut is_known = false;
        for place in 0..columns.len() {
            let origin = origins.get(EventId::from_index(start.index() + place));
            is_known |= origin.is_some();
            let [code, occurrence] = coder.encode(columns, place, origin);
            codes.push(u64::from(code));
            occurrences.push(u64::from(occurrence));
        }
        if is_known {
            push_section(payload, Tag::Origins, &self.packer.pack(&codes)?);
            push_section(payload, Tag::Occurrences, &self.packer.pack(&occurrences)?);
        }
        Ok(())
    }

    /// Says once whether waits are requested.
    fn requests(&mut self, payload: &mut Vec<u8>, declared: &Declared) -> io::Result<()> {
        if std::mem::replace(&mut self.has_requests, true) {
            return Ok(());
        }
        self.bytes(payload, Tag::Requests, &[u8::from(declared.waits_are_requested)])
    }

    fn bytes(&mut self, payload: &mut Vec<u8>, tag: Tag, bytes: &[u8]) -> io::Result<()> {
        if !bytes.is_empty() {
            push_section(payload, tag, &self.packer.pack_bytes(bytes)?);
        }
        Ok(())
    }
}

/// How many names of each kind `columns` speak of.
fn needed(columns: &Columns) -> [usize; NameKind::ALL.len()] {
    let mut needed = [0; NameKind::ALL.len()];
    let mut need = |kind: NameKind, index: u32| {
        if let Some(place) = NameKind::ALL.into_iter().position(|other| other == kind) {
            needed[place] = needed[place].max(index as usize + 1);
        }
    };
    for index in 0..columns.len() {
        need(NameKind::Thread, columns.threads[index]);
        need(NameKind::Site, columns.sites[index]);
        need(columns.codes[index].kind().operand(), columns.operands[index]);
    }
    needed
}

fn push_section(payload: &mut Vec<u8>, tag: Tag, packed: &Packed) {
    payload.extend_from_slice(&[tag.byte(), packed.form]);
    payload.extend_from_slice(&(packed.body.len() as u32).to_le_bytes());
    payload.extend_from_slice(&packed.body);
}
