//! Reading `.rwt`.

use std::io::{ErrorKind, Read};

use reweave_base::Id;
use reweave_trace::{
    BarrierId, CodeId, Columns, EventId, NameKind, OpCode, Origin, SemaphoreId, TraceBuilder,
};

use super::column::Unpacker;
use super::frame::{self, Frame};
use super::origins::Coder;
use super::{BLOCK_EVENTS_MAX, MAGIC, NAMES_BYTES_MAX, Tag, VERSION, names, origins};
use crate::{Place, ReadErrorKind, ReadOptions};

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
        Ok(()) => return Ok(reader.builder),
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
        return Ok(reader.builder);
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
    blocks_count: u64,
}

impl Reader {
    fn new() -> std::io::Result<Self> {
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
            blocks_count: 0,
        })
    }

    fn read(&mut self, source: &mut dyn Read, options: &ReadOptions<'_>) -> Result<(), Failure> {
        let mut byte = read_header(source)?;
        let mut payload = Vec::new();
        loop {
            let frame = frame::read(source, &mut payload).map_err(|error| io(byte, error))?;
            let broken = |at, reason| Failure::Damage(Damage { byte: byte + at, reason });
            let kind = match frame {
                Frame::Whole(kind) => kind,
                Frame::Broken(at, reason) => return Err(broken(at, reason)),
            };
            if kind == frame::END {
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
            Err(format!(
                "the mark of the end speaks of another trace than these {events_count} events"
            ))
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
            Tag::Modules | Tag::Addresses => {
                let bytes = unpacker.unpack_bytes(form, body, NAMES_BYTES_MAX)?;
                let known = self.builder.origins();
                return match tag {
                    Tag::Modules => origins::read_modules(known, bytes),
                    _ => origins::read_codes(known, bytes),
                };
            }
            Tag::Names(_) | Tag::Starts | Tag::Parties => {
                let bytes = unpacker.unpack_bytes(form, body, NAMES_BYTES_MAX)?;
                let names = self.builder.names();
                match tag {
                    Tag::Names(kind) => names::read(names, kind, bytes)?,
                    Tag::Starts => {
                        self.starts = names::read_declarations(bytes, names.semaphores.len())?;
                    }
                    _ => self.parties = names::read_declarations(bytes, names.barriers.len())?,
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

fn io(byte: u64, error: std::io::Error) -> Failure {
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
