//! Reads and the writes that challenge what they saw, by column.
//!
//! The writes of a variable are kept thread by thread, each thread's in program order: a *line*.
//! Verdicts along a line depend on each other, so they are worked out and kept as ranges of it.

use std::ops::Range;

use reweave_base::{Id, IndexVec};
use reweave_trace::{EventId, Op, ThreadId, Trace, VarId};

/// A read and the write that it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Couple {
    /// What was read.
    pub var: VarId,
    /// The read.
    pub read: EventId,
    /// The write that it saw; none is the initial value.
    pub writer: Option<EventId>,
}

/// A read whose witnesses are told of: that of a couple, or the implicit one at the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reader {
    pub(crate) var: VarId,
    /// None is the read at the end of the run.
    pub(crate) read: Option<EventId>,
    pub(crate) writer: Option<EventId>,
}

impl From<&Couple> for Reader {
    fn from(couple: &Couple) -> Self {
        Self { var: couple.var, read: Some(couple.read), writer: couple.writer }
    }
}

/// The writes of a variable by one thread, in program order, as a range of all writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Whose writes.
    pub thread: ThreadId,
    range: Range<u32>,
}

/// The couples of a trace, and the writes of each variable.
#[derive(Debug)]
pub struct Accesses<'t> {
    trace: &'t Trace,
    /// Variable by variable, thread by thread, in program order.
    writes: Vec<EventId>,
    lines: IndexVec<VarId, Vec<Line>>,
    /// Variable by variable, in observed order.
    couples: Vec<Couple>,
}

impl<'t> Accesses<'t> {
    /// The accesses of `trace`. Reads whose writer is not known are in no couple.
    #[must_use]
    pub fn of(trace: &'t Trace) -> Self {
        let vars_count = trace.names().vars.len();
        let mut accesses =
            Self { trace, writes: Vec::new(), lines: IndexVec::new(), couples: Vec::new() };
        let mut own: Vec<(ThreadId, EventId)> = Vec::new();
        for var in (0..vars_count).map(VarId::from_index) {
            own.clear();
            for &access in trace.accesses(var) {
                let event = trace.event(access);
                if event.op.is_write() {
                    own.push((event.thread, access));
                }
                if event.op.is_read() && !matches!(event.op, Op::LooseRead(_)) {
                    let writer = trace.writer(access);
                    accesses.couples.push(Couple { var, read: access, writer });
                }
            }
            own.sort_unstable();
            let mut lines = Vec::new();
            for writes in own.chunk_by(|left, right| left.0 == right.0) {
                let start = accesses.writes.len() as u32;
                accesses.writes.extend(writes.iter().map(|&(_, write)| write));
                let range = start..accesses.writes.len() as u32;
                lines.push(Line { thread: writes[0].0, range });
            }
            accesses.lines.push(lines);
        }
        accesses
    }

    /// The trace.
    #[must_use]
    pub const fn trace(&self) -> &'t Trace {
        self.trace
    }

    /// Every read and what it saw, variable by variable, in observed order.
    #[must_use]
    pub fn couples(&self) -> &[Couple] {
        &self.couples
    }

    /// The threads that write `var`, each with its writes.
    #[must_use]
    pub fn lines(&self, var: VarId) -> &[Line] {
        &self.lines[var]
    }

    /// The writes of `line`, in program order.
    #[must_use]
    pub fn writes(&self, line: &Line) -> &[EventId] {
        &self.writes[line.range.start as usize..line.range.end as usize]
    }

    /// How many events write `var`.
    #[must_use]
    pub fn writes_count(&self, var: VarId) -> u64 {
        self.lines[var].iter().map(|line| u64::from(line.range.end - line.range.start)).sum()
    }

    /// How many challengers the writer of `couple` has, an initial value included: all other writes
    /// but the read itself, should that write too.
    #[must_use]
    pub fn challengers_count(&self, couple: &Couple) -> u64 {
        self.challengers_of(&couple.into())
    }

    pub(crate) fn challengers_of(&self, reader: &Reader) -> u64 {
        let is_write = reader.read.is_some_and(|read| self.trace.event(read).op.is_write());
        self.writes_count(reader.var) - u64::from(is_write)
    }

    /// The implicit reads at the end of the run, of all variables that are written.
    pub(crate) fn final_readers(&self) -> Vec<Reader> {
        let last = |var: VarId| {
            let writes = self.lines(var).iter().filter_map(|line| self.writes(line).last());
            let writer = writes.copied().max();
            writer.map(|_| Reader { var, read: None, writer })
        };
        self.lines.ids().filter_map(last).collect()
    }
}
