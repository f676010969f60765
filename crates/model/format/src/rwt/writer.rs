//! Writing `.rwt`, a block at a time.

use std::io::{self, Write};

use reweave_base::Id;
use reweave_trace::{
    BarrierId, Columns, Declared, EventId, NameKind, Names, Origins, SemaphoreId, Trace,
};

use super::column::{Packed, Packer};
use super::origins::{Coder, Written};
use super::{BLOCK_EVENTS_MAX, MAGIC, NAMES_BYTES_GOAL, NAMES_BYTES_MAX, Tag, VERSION};
use super::{frame, names};

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
    writer.finish(trace.names(), trace.declared())?;
    Ok(())
}

fn unsupported(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
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
            events_count: 0,
            blocks_count: 0,
        })
    }

    /// Adds the events of `columns`, at most [`BLOCK_EVENTS_MAX`], with the value of each by its
    /// place among them, and what is new in `names`, which only ever grows.
    ///
    /// What is declared of a semaphore or a barrier is written with its name: it must be declared
    /// by the block that first speaks of it.
    ///
    /// # Errors
    /// If `out` does, or if a name is longer than the format can carry.
    ///
    /// # Panics
    /// If there are too many events.
    pub fn block(
        &mut self,
        names: &Names,
        declared: &Declared,
        columns: &Columns,
        values: Option<&dyn Fn(usize) -> Option<i64>>,
    ) -> io::Result<()> {
        self.block_with_origins(names, declared, columns, values, None)
    }

    /// The same as [`block`](Self::block), with where the events come from.
    ///
    /// # Errors
    /// As there, or if the path of a file is longer than the format can carry.
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
        self.events_count += columns.len() as u64;
        self.frame(&payload)
    }

    /// Ends the file with the names that no event used, and the mark of the end.
    ///
    /// # Errors
    /// If `out` does, or if a name is longer than the format can carry.
    pub fn finish(mut self, names: &Names, declared: &Declared) -> io::Result<W> {
        let all = NameKind::ALL.map(|kind| names.count(kind));
        if all != self.written {
            let payload = self.new_names(names, declared, 0, &all)?;
            self.frame(&payload)?;
        }
        let mut payload = self.events_count.to_le_bytes().to_vec();
        payload.extend_from_slice(&self.blocks_count.to_le_bytes());
        frame::write(&mut self.out, frame::END, &payload)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn frame(&mut self, payload: &[u8]) -> io::Result<()> {
        self.blocks_count += 1;
        frame::write(&mut self.out, frame::BLOCK, payload)
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
            let bytes = names::write(names, kind, new.clone());
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
            let pairs = new.filter_map(|place| number(place).map(|number| (place, number)));
            let tag = if kind == NameKind::Barrier { Tag::Parties } else { Tag::Starts };
            self.bytes(payload, tag, &names::write_declarations(pairs))?;
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
