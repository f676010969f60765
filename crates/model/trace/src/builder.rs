//! How a trace is made: events are pushed as they come, and `finish` says whether they can have
//! happened.

use reweave_base::Id;

use crate::columns::{Columns, Event, Values};
use crate::ending::RunEnd;
use crate::flow::Flow;
use crate::monitor::{self, Checked, IllFormed, Violation};
use crate::names::Names;
use crate::op::{
    BarrierId, BlockId, ConditionId, EventId, LocalId, LockId, ObjectId, Op, OpCode, SemaphoreId,
    SiteId, ThreadId, VarId,
};
use crate::origins::{Origin, Origins};
use crate::program::Program;
use crate::repair::{self, Repair};
use crate::start::RunStart;
use crate::trace::{Declared, Trace};
use crate::views::Views;
use crate::wait_matching;

const NO_PARTIES: &str = "a barrier has at least one party";

/// Collects the events of a run and makes a [`Trace`] of them.
///
/// ```
/// use reweave_trace::{AccessOp, Op, TraceBuilder};
///
/// let mut builder = TraceBuilder::new();
/// let (t1, t2) = (builder.thread("T1"), builder.thread("T2"));
/// let (x, here) = (builder.var("x"), builder.site("a.c:1"));
/// builder.push(t1, Op::Access(AccessOp::Write, x), here);
/// builder.push(t2, Op::Access(AccessOp::Read, x), here);
/// let trace = builder.finish()?;
/// assert_eq!(trace.len(), 2);
/// # Ok::<(), reweave_trace::IllFormed>(())
/// ```
#[derive(Debug, Default)]
pub struct TraceBuilder {
    pub(crate) names: Names,
    pub(crate) columns: Columns,
    pub(crate) values: Values,
    pub(crate) declared: Declared,
    pub(crate) origins: Origins,
    run_start: Option<RunStart>,
    run_end: Option<RunEnd>,
    flow: Option<Flow>,
    program: Option<Program>,
    repairs: Vec<Repair>,
}

impl TraceBuilder {
    /// A trace with no events yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The names so far, to add to them.
    #[inline]
    pub const fn names(&mut self) -> &mut Names {
        &mut self.names
    }

    /// The thread called `name`.
    pub fn thread(&mut self, name: &str) -> ThreadId {
        self.names.threads.intern(name)
    }

    /// The shared variable called `name`.
    pub fn var(&mut self, name: &str) -> VarId {
        self.names.vars.intern(name)
    }

    /// The lock called `name`.
    pub fn lock(&mut self, name: &str) -> LockId {
        self.names.locks.intern(name)
    }

    /// The condition variable called `name`.
    pub fn condition(&mut self, name: &str) -> ConditionId {
        self.names.conditions.intern(name)
    }

    /// The barrier called `name`.
    pub fn barrier(&mut self, name: &str) -> BarrierId {
        self.names.barriers.intern(name)
    }

    /// The semaphore called `name`.
    pub fn semaphore(&mut self, name: &str) -> SemaphoreId {
        self.names.semaphores.intern(name)
    }

    /// The object called `name`.
    pub fn object(&mut self, name: &str) -> ObjectId {
        self.names.objects.intern(name)
    }

    /// The block called `name`.
    pub fn block(&mut self, name: &str) -> BlockId {
        self.names.blocks.intern(name)
    }

    /// The local called `name`.
    pub fn local(&mut self, name: &str) -> LocalId {
        self.names.locals.intern(name)
    }

    /// The place `location` in the code, its stack not known.
    pub fn site(&mut self, location: &str) -> SiteId {
        self.names.sites.intern(location)
    }

    /// How many events there are so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there is no event yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The event at `id`, which is there already.
    #[inline]
    #[must_use]
    pub fn event(&self, id: EventId) -> Event {
        self.columns.event(id)
    }

    /// The value that the event at `id` was said to have.
    #[inline]
    #[must_use]
    pub fn value_at(&self, id: EventId) -> Option<i64> {
        self.values.get(id)
    }

    /// Adds an event.
    pub fn push(&mut self, thread: ThreadId, op: Op, site: SiteId) {
        let (code, operand) = op.encode();
        self.columns.push(thread.index() as u32, code, operand, site.index() as u32);
    }

    /// Adds an event by the indexes of its parts, as readers have them.
    #[inline]
    pub fn push_indexes(&mut self, thread: u32, code: OpCode, operand: u32, site: u32) {
        self.columns.push(thread, code, operand, site);
    }

    /// Adds all events of `columns`.
    ///
    /// # Panics
    /// If its columns are not of one length.
    pub fn append(&mut self, columns: &Columns) {
        let lengths = [columns.threads.len(), columns.operands.len(), columns.sites.len()];
        assert_eq!(lengths, [columns.codes.len(); 3], "an event has an entry in every column");
        self.columns.append(columns);
    }

    /// Says what the last event read or wrote.
    ///
    /// # Panics
    /// If there is no event yet.
    pub fn value(&mut self, value: i64) {
        let last = self.columns.len().checked_sub(1).expect("an event to which the value belongs");
        // One event too many is refused at the end, not here.
        if last < EventId::COUNT_MAX {
            self.value_of(EventId::from_index(last), value);
        }
    }

    /// Says what `event`, which is there already, read or wrote.
    pub fn value_of(&mut self, event: EventId, value: i64) {
        assert!(event.index() < self.columns.len(), "the event is there already");
        self.values.set(event, value);
    }

    /// What was declared so far.
    #[must_use]
    pub const fn declared(&self) -> &Declared {
        &self.declared
    }

    /// Says all that another trace was said to have, in place of what was declared so far.
    ///
    /// # Panics
    /// If a barrier has no parties.
    pub fn declare(&mut self, declared: Declared) {
        assert!(!declared.parties.iter().any(|&parties| parties == Some(0)), "{NO_PARTIES}");
        self.declared = declared;
    }

    /// Says that a thread which can wait for a lock requests it first.
    pub const fn declare_requested_waits(&mut self) {
        self.declared.waits_are_requested = true;
    }

    /// Says what `semaphore` started at.
    pub fn declare_start(&mut self, semaphore: SemaphoreId, start: u32) {
        *self.declared.starts.get_or_default(semaphore) = Some(start);
    }

    /// Says what `var` holds before the first write to it.
    pub fn declare_initial(&mut self, var: VarId, value: i64) {
        *self.declared.initials.get_or_default(var) = Some(value);
    }

    /// Says how many arrivals end a generation of `barrier`.
    ///
    /// # Panics
    /// If `parties` is 0: no generation of such a barrier would ever end.
    pub fn declare_parties(&mut self, barrier: BarrierId, parties: u32) {
        assert!(parties > 0, "{NO_PARTIES}");
        *self.declared.parties.get_or_default(barrier) = Some(parties);
    }

    /// Where the events so far come from, to add to it: files, code addresses, origins of events.
    #[inline]
    pub const fn origins(&mut self) -> &mut Origins {
        &mut self.origins
    }

    /// Says where the last event comes from.
    ///
    /// # Panics
    /// If there is no event yet, or if the origins do not know the code address.
    pub fn origin(&mut self, origin: Origin) {
        let last = self.columns.len().checked_sub(1).expect("an event to which the origin belongs");
        // One event too many is refused at the end, not here.
        if last < EventId::COUNT_MAX {
            self.origins.set(EventId::from_index(last), origin);
        }
    }

    /// Lists a change that was made before the events came here, such as what a reader left out.
    pub fn note_repair(&mut self, change: String) {
        self.repairs.push(Repair { event: None, change });
    }

    /// Says how the run was started.
    pub fn set_run_start(&mut self, run_start: RunStart) {
        self.run_start = Some(run_start);
    }

    /// Says how the run ended. Threads whose events do not come are left out at the end.
    pub fn set_run_end(&mut self, run_end: RunEnd) {
        self.run_end = Some(run_end);
    }

    /// How the run ended, if that was said.
    #[must_use]
    pub const fn run_end(&self) -> Option<&RunEnd> {
        self.run_end.as_ref()
    }

    /// Adds the flow layer.
    pub fn set_flow(&mut self, flow: Flow) {
        self.flow = Some(flow);
    }

    /// Adds the program layer.
    pub fn set_program(&mut self, program: Program) {
        self.program = Some(program);
    }

    /// Makes the trace.
    ///
    /// # Errors
    /// If the events cannot have happened as they stand: the first that cannot, and why.
    pub fn finish(self) -> Result<Trace, IllFormed> {
        self.check()
            .map_err(|(event, violation)| violation.explain(event, &self.names, |id| id))?;
        Ok(self.into_trace())
    }

    /// Makes the trace after the least changes, found one event at a time, that make the events
    /// well formed; [`Trace::repairs`] lists them. A trace that was changed loses its flow and
    /// program layers, which speak of the events as they were.
    ///
    /// # Errors
    /// If an event names what does not exist, or there are too many events: nothing to repair.
    pub fn finish_repaired(mut self) -> Result<Trace, IllFormed> {
        let repairs = repair::repair(&mut self);
        if !repairs.is_empty() {
            // They speak of events and threads by numbers that may have changed.
            self.run_end = None;
            self.flow = None;
            self.program = None;
        }
        self.check()
            .map_err(|(event, violation)| violation.explain(event, &self.names, |id| id))?;
        self.repairs.extend(repairs);
        Ok(self.into_trace())
    }

    fn check(&self) -> Result<(), (EventId, Violation)> {
        if self.columns.len() > EventId::COUNT_MAX {
            return Err((EventId::from_index(EventId::COUNT_MAX - 1), Violation::TooManyEvents));
        }
        // Nothing is known of the events from the one on that was refused.
        let Checked { violation, passed_count, condition_events } =
            monitor::check(&self.columns, &self.names, &self.declared);
        let matching = wait_matching::match_waits(&condition_events, &self.columns, passed_count);
        let unexplained = matching.unexplained.first();
        let wake =
            unexplained.map(|&(event, condition)| (event, Violation::NotNotified(condition)));
        // Both passes name the first event that they refuse; the earlier of the two is the first.
        if let Some(first) = violation.into_iter().chain(wake).min_by_key(|&(event, _)| event) {
            return Err(first);
        }
        self.assert_layers_fit();
        Ok(())
    }

    fn assert_layers_fit(&self) {
        let flow_fits = self.flow.as_ref().is_none_or(|flow| flow.fits(self.len(), &self.names));
        let program_fits = self.program.as_ref().is_none_or(|program| program.fits(&self.names));
        assert!(flow_fits, "the flow layer speaks of events or locals that are not there");
        assert!(program_fits, "the program layer speaks of things that are not there");
    }

    fn into_trace(mut self) -> Trace {
        self.columns.threads.shrink_to_fit();
        self.columns.codes.shrink_to_fit();
        self.columns.operands.shrink_to_fit();
        self.columns.sites.shrink_to_fit();
        // Declarations of nothing would make equal traces differ.
        trim(self.declared.starts.as_mut_vec(), self.names.semaphores.len());
        trim(self.declared.parties.as_mut_vec(), self.names.barriers.len());
        trim(self.declared.initials.as_mut_vec(), self.names.vars.len());
        let origins = self.origins.trimmed(self.columns.len());
        let count = self.columns.len();
        if let Some(run_end) = &mut self.run_end {
            run_end.threads.retain(|thread| thread.event.index() < count);
            let is_known = |event: EventId| event.index() < count;
            run_end.misuses.retain(|it| is_known(it.event) && it.other.is_none_or(is_known));
        }
        Trace {
            names: self.names,
            columns: self.columns,
            values: self.values,
            declared: self.declared,
            origins,
            run_start: self.run_start,
            run_end: self.run_end,
            flow: self.flow,
            program: self.program,
            repairs: self.repairs,
            views: Views::default(),
        }
    }
}

/// Cuts `numbers` to those of `count` things, and off what is not known at its end.
fn trim<T>(numbers: &mut Vec<Option<T>>, count: usize) {
    numbers.truncate(count);
    while numbers.last().is_some_and(Option::is_none) {
        numbers.pop();
    }
}
