//! Writing `.rwt`.

use std::io::{self, Write};

use reweave_base::{Id, Interner};
use reweave_trace::{BarrierId, EventId, Names, OpKind, Operand, SemaphoreId, Trace};

use super::column::{Packed, Packer};
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
    out.write_all(&MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())?;
    out.write_all(&[0; 2])?;
    let mut writer = Writer { trace, packer: Packer::new()?, written: [0; NAME_KINDS.len()] };
    let mut start = 0;
    let mut blocks_count = 0_u64;
    while start < trace.len() {
        let (end, known) = writer.extent(start);
        frame::write(out, frame::BLOCK, &writer.block(start, end, known)?)?;
        blocks_count += 1;
        start = end;
    }
    // Names that no event uses come in blocks without events.
    while let Some(known) = writer.unused_names() {
        frame::write(out, frame::BLOCK, &writer.block(start, start, known)?)?;
        blocks_count += 1;
    }
    let mut payload = (trace.len() as u64).to_le_bytes().to_vec();
    payload.extend_from_slice(&blocks_count.to_le_bytes());
    frame::write(out, frame::END, &payload)
}

fn unsupported(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

/// The kinds of names, in the order in which blocks bring them.
#[derive(Clone, Copy)]
enum NameKind {
    Of(Operand),
    Site,
}

const NAME_KINDS: [NameKind; 10] = [
    NameKind::Of(Operand::Thread),
    NameKind::Of(Operand::Var),
    NameKind::Of(Operand::Lock),
    NameKind::Of(Operand::Condition),
    NameKind::Of(Operand::Barrier),
    NameKind::Of(Operand::Semaphore),
    NameKind::Of(Operand::Object),
    NameKind::Of(Operand::Block),
    NameKind::Of(Operand::Local),
    NameKind::Site,
];

const THREADS: usize = 0;
const SEMAPHORES: usize = 5;
const BARRIERS: usize = 4;
const SITES: usize = 9;

impl NameKind {
    fn count(self, names: &Names) -> usize {
        match self {
            Self::Of(operand) => names.count(operand),
            Self::Site => names.sites.len(),
        }
    }

    fn length(self, names: &Names, index: usize) -> usize {
        match self {
            Self::Of(operand) => names.operand_name(operand, index as u32).len(),
            Self::Site => names.sites.name(Id::from_index(index)).len(),
        }
    }
}

/// Which of [`NAME_KINDS`] the operand of an operation names, if it names anything.
const fn operand_kind(kind: OpKind) -> Option<usize> {
    match kind.operand() {
        Operand::None => None,
        Operand::Thread => Some(THREADS),
        Operand::Var => Some(1),
        Operand::Lock => Some(2),
        Operand::Condition => Some(3),
        Operand::Barrier => Some(BARRIERS),
        Operand::Semaphore => Some(SEMAPHORES),
        Operand::Object => Some(6),
        Operand::Block => Some(7),
        Operand::Local => Some(8),
    }
}

struct Writer<'a> {
    trace: &'a Trace,
    packer: Packer,
    /// How many names of each kind are written.
    written: [usize; NAME_KINDS.len()],
}

impl Writer<'_> {
    /// Where the block that starts at `start` ends, and how many names of each kind it needs.
    ///
    /// It ends early where its new names take much room, but holds at least one event.
    fn extent(&self, start: usize) -> (usize, [usize; NAME_KINDS.len()]) {
        let columns = self.trace.columns();
        let names = self.trace.names();
        let mut known = self.written;
        let mut bytes = 0;
        let end_max = self.trace.len().min(start + BLOCK_EVENTS_MAX);
        for index in start..end_max {
            let mut need = |kind: usize, place: u32| {
                while known[kind] <= place as usize {
                    bytes += NAME_KINDS[kind].length(names, known[kind]);
                    known[kind] += 1;
                }
            };
            need(THREADS, columns.threads[index]);
            need(SITES, columns.sites[index]);
            if let Some(kind) = operand_kind(columns.codes[index].kind()) {
                need(kind, columns.operands[index]);
            }
            if bytes > NAMES_BYTES_GOAL {
                return (index + 1, known);
            }
        }
        (end_max, known)
    }

    /// How many names of each kind the next block without events brings; none once all are
    /// written.
    fn unused_names(&self) -> Option<[usize; NAME_KINDS.len()]> {
        let names = self.trace.names();
        let mut known = self.written;
        let mut bytes = 0;
        for (kind, known) in NAME_KINDS.into_iter().zip(&mut known) {
            while *known < kind.count(names) && bytes <= NAMES_BYTES_GOAL {
                bytes += kind.length(names, *known) + 1;
                *known += 1;
            }
        }
        (known != self.written).then_some(known)
    }

    fn block(
        &mut self,
        start: usize,
        end: usize,
        known: [usize; NAME_KINDS.len()],
    ) -> io::Result<Vec<u8>> {
        let mut payload = ((end - start) as u32).to_le_bytes().to_vec();
        self.names(&mut payload, known)?;
        if end == start {
            return Ok(payload);
        }
        let columns = self.trace.columns();
        let wide = |numbers: &[u32]| numbers.iter().map(|&n| u64::from(n)).collect::<Vec<_>>();
        let codes: Vec<u64> =
            columns.codes[start..end].iter().map(|code| u64::from(code.byte())).collect();
        let numbers = [
            (Tag::Threads, wide(&columns.threads[start..end])),
            (Tag::Codes, codes),
            (Tag::Operands, wide(&columns.operands[start..end])),
            (Tag::Sites, wide(&columns.sites[start..end])),
        ];
        for (tag, column) in numbers {
            let packed = self.packer.pack(&column)?;
            push_section(&mut payload, tag, &packed);
        }
        self.values(&mut payload, start, end)?;
        Ok(payload)
    }

    fn values(&mut self, payload: &mut Vec<u8>, start: usize, end: usize) -> io::Result<()> {
        if !self.trace.has_values() {
            return Ok(());
        }
        let values = (start..end).map(|index| self.trace.value(EventId::from_index(index)));
        let known: Vec<u64> = values.clone().map(|value| u64::from(value.is_some())).collect();
        if known.iter().all(|&known| known == 0) {
            return Ok(());
        }
        let values: Vec<u64> = values.map(|value| value.unwrap_or(0) as u64).collect();
        push_section(payload, Tag::Known, &self.packer.pack(&known)?);
        push_section(payload, Tag::Values, &self.packer.pack(&values)?);
        Ok(())
    }

    fn names(&mut self, payload: &mut Vec<u8>, known: [usize; NAME_KINDS.len()]) -> io::Result<()> {
        let names = self.trace.names();
        let old = self.written;
        self.written = known;
        self.section(payload, Tag::ThreadNames, &names.threads, old[0], known[0])?;
        self.section(payload, Tag::VarNames, &names.vars, old[1], known[1])?;
        self.section(payload, Tag::LockNames, &names.locks, old[2], known[2])?;
        self.section(payload, Tag::ConditionNames, &names.conditions, old[3], known[3])?;
        self.section(payload, Tag::BarrierNames, &names.barriers, old[4], known[4])?;
        self.section(payload, Tag::SemaphoreNames, &names.semaphores, old[5], known[5])?;
        self.section(payload, Tag::ObjectNames, &names.objects, old[6], known[6])?;
        self.section(payload, Tag::BlockNames, &names.blocks, old[7], known[7])?;
        self.section(payload, Tag::LocalNames, &names.locals, old[8], known[8])?;
        self.section(payload, Tag::SiteNames, &names.sites, old[9], known[9])?;
        let declared = self.trace.declared();
        let starts = (old[SEMAPHORES]..known[SEMAPHORES]).filter_map(|place| {
            declared.start(SemaphoreId::from_index(place)).map(|number| (place, number))
        });
        let parties = (old[BARRIERS]..known[BARRIERS]).filter_map(|place| {
            declared.parties(BarrierId::from_index(place)).map(|number| (place, number))
        });
        self.bytes(payload, Tag::Starts, &names::write_declarations(starts))?;
        self.bytes(payload, Tag::Parties, &names::write_declarations(parties))
    }

    fn section<I: Id>(
        &mut self,
        payload: &mut Vec<u8>,
        tag: Tag,
        names: &Interner<I>,
        start: usize,
        end: usize,
    ) -> io::Result<()> {
        if start == end {
            return Ok(());
        }
        let bytes = names::write(names, start, end);
        if bytes.len() > NAMES_BYTES_MAX {
            return Err(unsupported("a name is too long for `.rwt`"));
        }
        self.bytes(payload, tag, &bytes)
    }

    fn bytes(&mut self, payload: &mut Vec<u8>, tag: Tag, bytes: &[u8]) -> io::Result<()> {
        if !bytes.is_empty() {
            let packed = self.packer.pack_bytes(bytes)?;
            push_section(payload, tag, &packed);
        }
        Ok(())
    }
}

fn push_section(payload: &mut Vec<u8>, tag: Tag, packed: &Packed) {
    payload.extend_from_slice(&[tag as u8, packed.form]);
    payload.extend_from_slice(&(packed.body.len() as u32).to_le_bytes());
    payload.extend_from_slice(&packed.body);
}
