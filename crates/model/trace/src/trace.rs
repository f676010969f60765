//! The trace: one observed run, well formed by construction.

use reweave_base::{Id, IndexVec, Interner};

use crate::columns::{Columns, Event, Values};
use crate::ending::RunEnd;
use crate::flow::Flow;
use crate::names::{FRAME_SEPARATOR, Names};
use crate::op::{
    BarrierId, ConditionOp, EventId, LockOp, Marker, MemoryOrder, Op, OpCode, SemaphoreId, SiteId,
    ThreadId, VarId,
};
use crate::origins::Origins;
use crate::place::Frame;
use crate::program::Program;
use crate::repair::{self, Repair};
use crate::start::RunStart;
use crate::views::Views;
use crate::wait_matching::WaitInterval;

/// One run of a concurrent program: its events in observed order, and what they speak of.
///
/// Immutable and well formed: only [`TraceBuilder`](crate::TraceBuilder) makes one. Views that
/// are derived from the events (see [`crate::views`]) are computed when first asked for and then
/// shared, also between threads.
#[derive(Debug)]
pub struct Trace {
    pub(crate) names: Names,
    pub(crate) columns: Columns,
    pub(crate) values: Values,
    pub(crate) declared: Declared,
    pub(crate) origins: Option<Origins>,
    pub(crate) run_start: Option<RunStart>,
    pub(crate) run_end: Option<RunEnd>,
    pub(crate) flow: Option<Flow>,
    pub(crate) program: Option<Program>,
    pub(crate) repairs: Vec<Repair>,
    pub(crate) views: Views,
}

/// What is known of the variables and the synchronisation of a run besides its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// Whether a thread that can wait for a lock requests it first, as in recorded programs: then
    /// an acquire without a request was an attempt, such as `trylock`.
    pub waits_are_requested: bool,
    /// What a semaphore started at.
    pub starts: IndexVec<SemaphoreId, Option<u32>>,
    /// How many arrivals end a barrier's generation.
    pub parties: IndexVec<BarrierId, Option<u32>>,
    /// What a variable holds before the first write to it.
    pub initials: IndexVec<VarId, Option<i64>>,
}

impl Declared {
    /// What `semaphore` started at, if that is known.
    #[must_use]
    pub fn start(&self, semaphore: SemaphoreId) -> Option<u32> {
        self.starts.get(semaphore).copied().flatten()
    }

    /// What `var` holds before the first write to it, if that is known.
    #[must_use]
    pub fn initial(&self, var: VarId) -> Option<i64> {
        self.initials.get(var).copied().flatten()
    }

    /// How many arrivals end a generation of `barrier`, if that is known.
    #[must_use]
    pub fn parties(&self, barrier: BarrierId) -> Option<u32> {
        self.parties.get(barrier).copied().flatten()
    }
}

impl Trace {
    /// The same run, as if all atomic accesses and fences were sequentially consistent.
    #[must_use]
    pub fn with_seqcst_atomics(mut self) -> Self {
        for code in self.columns.codes.iter_mut().filter(|code| code.kind().has_order()) {
            *code = OpCode::new(code.kind(), MemoryOrder::SeqCst);
        }
        self.views = Views::default();
        self
    }

    /// The same run, with other places in the code: `rename` gives for a location or the location of a
    /// frame another one, if it has one. The layers that speak of sites by number are left out.
    #[must_use]
    pub fn with_locations(mut self, rename: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut sites: Interner<SiteId> = Interner::default();
        let mut renamed: IndexVec<SiteId, SiteId> = IndexVec::default();
        for (site, _) in self.names.sites.entries() {
            let location = self.names.location(site);
            let mut text = rename(location).unwrap_or_else(|| location.to_owned());
            for frame in self.names.stack(site).chain(self.names.source_text(site)) {
                text.push(FRAME_SEPARATOR);
                let Frame { function, location } = Frame::new(frame);
                match location.and_then(rename) {
                    Some(location) => text += &format!("{function} ({location})"),
                    None => text += frame,
                }
            }
            // Two files that become one have the same sites.
            renamed.push(sites.intern(&text));
        }
        for site in &mut self.columns.sites {
            *site = renamed[SiteId::from_index(*site as usize)].index() as u32;
        }
        self.names.sites = sites;
        self.flow = None;
        self.program = None;
        self.views = Views::default();
        self
    }

    /// The same events as if nobody had waited there: `wait`, its end, and the notify if it woke nobody
    /// else are markers. For asking where the wait could begin; only the events are copied.
    #[must_use]
    pub fn without_wait(&self, wait: &WaitInterval) -> Self {
        let mut columns = self.columns.clone();
        let is_single =
            |id: &EventId| matches!(self.event(*id).op, Op::Condition(ConditionOp::Notify, _));
        let notify = wait.notify.filter(is_single);
        for event in [Some(wait.wait), wait.end, notify].into_iter().flatten() {
            let (code, operand) = Op::Marker(Marker::Branch).encode();
            columns.codes[event.index()] = code;
            columns.operands[event.index()] = operand;
        }
        Self {
            names: self.names.clone(),
            columns,
            values: Values::default(),
            declared: self.declared.clone(),
            origins: None,
            run_start: None,
            run_end: None,
            flow: None,
            program: None,
            repairs: Vec::new(),
            views: Views::default(),
        }
    }

    /// How many events there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether nothing happened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The event at `id`.
    #[inline]
    #[must_use]
    pub fn event(&self, id: EventId) -> Event {
        self.columns.event(id)
    }

    /// All events with their ids, in observed order.
    pub fn events(&self) -> impl ExactSizeIterator<Item = (EventId, Event)> + DoubleEndedIterator {
        self.columns.events()
    }

    /// The id of the event numbered `number`, counted from 1, if there is one.
    #[must_use]
    pub fn numbered(&self, number: u32) -> Option<EventId> {
        EventId::from_number(number).filter(|id| id.index() < self.len())
    }

    /// The names of everything the events speak of.
    #[must_use]
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// The events by column, for what goes through all of them.
    #[must_use]
    pub const fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The value that `event` read or wrote, if it is known.
    #[inline]
    #[must_use]
    pub fn value(&self, event: EventId) -> Option<i64> {
        self.values.get(event)
    }

    /// Whether any event has a value.
    #[must_use]
    pub fn has_values(&self) -> bool {
        !self.values.is_empty()
    }

    /// What is known of semaphores, barriers and requests.
    #[must_use]
    pub const fn declared(&self) -> &Declared {
        &self.declared
    }

    /// Where in the recorded program the events come from, where that is known of any.
    #[must_use]
    pub const fn origins(&self) -> Option<&Origins> {
        self.origins.as_ref()
    }

    /// How the recorded run was started, where that is known.
    #[must_use]
    pub const fn run_start(&self) -> Option<&RunStart> {
        self.run_start.as_ref()
    }

    /// How the recorded run ended, where that is known.
    #[must_use]
    pub const fn run_end(&self) -> Option<&RunEnd> {
        self.run_end.as_ref()
    }

    /// Whether the thread of `event` would have waited there for as long as it takes, had what it waits
    /// for not been there. Of locks, where waits are requested, these are the acquires right after a
    /// request, and those that end a wait on a condition; of all else, what is not marked as timed.
    #[must_use]
    pub fn may_wait(&self, event: EventId) -> bool {
        let events = self.thread_events(self.event(event).thread);
        let before = |event| {
            let position = self.position(event).checked_sub(1);
            position.map(|position| self.event(events[position as usize]).op)
        };
        if !matches!(self.event(event).op, Op::Lock(..)) {
            let begin = self.signals().wait_interval(event).map_or(event, |wait| wait.begin);
            return before(begin) != Some(Op::Marker(Marker::Timed));
        }
        let before = before(event);
        !self.declared.waits_are_requested
            || matches!(
                before,
                Some(
                    Op::Lock(LockOp::Request | LockOp::RequestExclusive, _)
                        | Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _)
                )
            )
    }

    /// Data and control dependence, where they were recorded.
    #[must_use]
    pub const fn flow(&self) -> Option<&Flow> {
        self.flow.as_ref()
    }

    /// The program behind the events, where it is known.
    #[must_use]
    pub const fn program(&self) -> Option<&Program> {
        self.program.as_ref()
    }

    /// What was changed to make the events well formed; empty for a trace taken as it came.
    #[must_use]
    pub fn repairs(&self) -> &[Repair] {
        &self.repairs
    }

    /// Pairs of names that are probably one thread under two spellings: `2`, which is forked or
    /// joined and never runs, and `T2`, which runs in between. Repair takes them as one.
    #[must_use]
    pub fn two_spellings(&self) -> Vec<(ThreadId, ThreadId)> {
        repair::two_spellings(&self.names, &self.columns)
    }

    /// The event as text formats spell it without its location, such as `T1|w(x)`.
    #[must_use]
    pub fn spell(&self, event: EventId) -> String {
        let Event { thread, op, .. } = self.event(event);
        format!("{}|{}", self.names.threads.name(thread), self.names.spell(op))
    }
}

/// Two traces are equal when they hold the same events with the same names, values and layers.
impl PartialEq for Trace {
    fn eq(&self, other: &Self) -> bool {
        let ids = || (0..self.len()).map(EventId::from_index);
        self.names == other.names
            && self.columns == other.columns
            && self.has_values() == other.has_values()
            && (!self.has_values() || ids().all(|id| self.value(id) == other.value(id)))
            && self.declared == other.declared
            && self.origins == other.origins
            && self.run_start == other.run_start
            && self.run_end == other.run_end
            && self.flow == other.flow
            && self.program == other.program
    }
}
