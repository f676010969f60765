//! Where the events of a converted recording go: into memory, or block by block into a file.

use std::io::{self, Write};

use reweave_base::Id;
use reweave_format::rwt::{self, BlockOrigins};
use reweave_trace::{
    BarrierId, Columns, Declared, EventId, Names, Op, Origin, Origins, RunEnd, RunStart,
    SemaphoreId, SiteId, ThreadId, TraceBuilder, Values, VarId,
};

/// Takes the events of a trace in observed order.
pub trait Sink {
    /// The names so far, to add to them.
    fn names(&mut self) -> &mut Names;

    /// The files and code addresses so far, to add to them.
    fn origins(&mut self) -> &mut Origins;

    /// Says, before the first event, that a thread which can wait for a lock requests it first.
    fn declare_requested_waits(&mut self);

    /// Says what `semaphore`, of which no event spoke yet, started at.
    fn declare_start(&mut self, semaphore: SemaphoreId, start: u32);

    /// Says how many arrivals, at least one, end a generation of `barrier`, of which no event spoke
    /// yet.
    fn declare_parties(&mut self, barrier: BarrierId, parties: u32);

    /// Says how the run ended; no event comes after it.
    fn end(&mut self, run_end: RunEnd);

    /// Says what `var`, of which no event spoke yet, holds before the first write to it.
    fn declare_initial(&mut self, var: VarId, value: i64);

    /// Adds an event.
    ///
    /// # Errors
    /// If it cannot be written.
    fn push(&mut self, event: Converted) -> io::Result<()>;
}

/// An event of the trace that a recording becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Who did it.
    pub thread: ThreadId,
    /// What it did.
    pub op: Op,
    /// Where in the code.
    pub site: SiteId,
    /// What it read or wrote, where that is known.
    pub value: Option<i64>,
    /// Which instruction logged it, and the how many-th time.
    pub origin: Option<Origin>,
}

impl Sink for TraceBuilder {
    fn names(&mut self) -> &mut Names {
        Self::names(self)
    }

    fn origins(&mut self) -> &mut Origins {
        Self::origins(self)
    }

    fn declare_requested_waits(&mut self) {
        Self::declare_requested_waits(self);
    }

    fn declare_start(&mut self, semaphore: SemaphoreId, start: u32) {
        Self::declare_start(self, semaphore, start);
    }

    fn declare_parties(&mut self, barrier: BarrierId, parties: u32) {
        Self::declare_parties(self, barrier, parties);
    }

    fn declare_initial(&mut self, var: VarId, value: i64) {
        Self::declare_initial(self, var, value);
    }

    fn end(&mut self, run_end: RunEnd) {
        self.set_run_end(run_end);
    }

    fn push(&mut self, event: Converted) -> io::Result<()> {
        Self::push(self, event.thread, event.op, event.site);
        if let Some(value) = event.value {
            self.value(value);
        }
        if let Some(origin) = event.origin {
            self.origin(origin);
        }
        Ok(())
    }
}

/// Writes the events to a `.rwt` file, a block at a time.
pub struct FileSink<W: Write> {
    writer: rwt::Writer<W>,
    names: Names,
    declared: Declared,
    origins: Origins,
    columns: Columns,
    values: Values,
    run_end: Option<RunEnd>,
}

impl<W: Write> FileSink<W> {
    /// Starts a file.
    ///
    /// # Errors
    /// If `out` does.
    pub fn new(out: W) -> io::Result<Self> {
        Ok(Self {
            writer: rwt::Writer::new(out)?,
            names: Names::default(),
            declared: Declared::default(),
            origins: Origins::new(),
            columns: Columns::default(),
            values: Values::default(),
            run_end: None,
        })
    }

    /// Says how the run was started.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn start(&mut self, run_start: &RunStart) -> io::Result<()> {
        self.writer.run_start(run_start)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_block()?;
        if let Some(run_end) = &self.run_end {
            self.writer.run_end(run_end)?;
        }
        self.writer.finish(&self.names, &self.declared)
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let values = |place: usize| self.values.get(EventId::from_index(place));
        let values: Option<&dyn Fn(usize) -> Option<i64>> =
            if self.values.is_empty() { None } else { Some(&values) };
        let origins = BlockOrigins { origins: &self.origins, start: EventId::from_index(0) };
        let (names, declared, columns) = (&self.names, &self.declared, &self.columns);
        self.writer.block_with_origins(names, declared, columns, values, Some(origins))?;
        self.columns.clear();
        self.values = Values::default();
        self.origins.clear_events();
        Ok(())
    }
}

impl<W: Write> Sink for FileSink<W> {
    fn names(&mut self) -> &mut Names {
        &mut self.names
    }

    fn origins(&mut self) -> &mut Origins {
        &mut self.origins
    }

    fn declare_requested_waits(&mut self) {
        self.declared.waits_are_requested = true;
    }

    fn declare_start(&mut self, semaphore: SemaphoreId, start: u32) {
        *self.declared.starts.get_or_default(semaphore) = Some(start);
    }

    fn declare_parties(&mut self, barrier: BarrierId, parties: u32) {
        *self.declared.parties.get_or_default(barrier) = Some(parties);
    }

    fn declare_initial(&mut self, var: VarId, value: i64) {
        *self.declared.initials.get_or_default(var) = Some(value);
    }

    fn end(&mut self, run_end: RunEnd) {
        self.run_end = Some(run_end);
    }

    fn push(&mut self, event: Converted) -> io::Result<()> {
        let (code, operand) = event.op.encode();
        let id = EventId::from_index(self.columns.len());
        let (thread, site) = (event.thread.index() as u32, event.site.index() as u32);
        self.columns.push(thread, code, operand, site);
        if let Some(value) = event.value {
            self.values.set(id, value);
        }
        if let Some(origin) = event.origin {
            self.origins.set(id, origin);
        }
        if self.columns.len() == rwt::BLOCK_EVENTS_MAX {
            self.end_block()?;
        }
        Ok(())
    }
}
