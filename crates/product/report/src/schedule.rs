//! What a reordering runs, when, and what its reads see.

use reweave_trace::{AccessOp, EventId, Op, Reordering, ThreadId, Trace, VarId};

/// `events`, all of which `reordering` runs, each with its step, counted from 1, in that order.
pub(crate) fn numbered(
    trace: &Trace,
    reordering: &Reordering,
    mut events: Vec<EventId>,
) -> Vec<(usize, EventId)> {
    events.sort_unstable();
    let base_count = base_count(reordering);
    let in_base = events.iter().filter(|&&event| trace.is_in_prefix(reordering, event));
    let mut steps: Vec<(usize, EventId)> =
        in_base.map(|&event| (step_in_base(trace, reordering, event), event)).collect();
    let scheduled = reordering.schedule.iter().enumerate();
    let scheduled = scheduled.filter(|(_, event)| events.binary_search(event).is_ok());
    steps.extend(scheduled.map(|(at, &event)| (base_count + at + 1, event)));
    steps.sort_unstable();
    steps
}

/// The events of `thread` that `reordering` runs.
pub(crate) fn steps_of<'t>(
    trace: &'t Trace,
    reordering: &Reordering,
    thread: ThreadId,
) -> &'t [EventId] {
    let scheduled = reordering.schedule.iter();
    let scheduled = scheduled.filter(|&&event| trace.event(event).thread == thread).count();
    let count = base_of(trace, reordering, thread).len() + scheduled;
    &trace.thread_events(thread)[..count]
}

/// The events of `thread` that are in the base of `reordering`.
pub(crate) fn base_of<'t>(
    trace: &'t Trace,
    reordering: &Reordering,
    thread: ThreadId,
) -> &'t [EventId] {
    let count = reordering.base.get(thread).copied().unwrap_or(0);
    &trace.thread_events(thread)[..count as usize]
}

/// The how many-th of the base `event` is: the base runs in observed order.
pub(crate) fn step_in_base(trace: &Trace, reordering: &Reordering, event: EventId) -> usize {
    let until =
        |thread| base_of(trace, reordering, thread).partition_point(|&other| other <= event);
    reordering.base.ids().map(until).sum()
}

pub(crate) fn base_count(reordering: &Reordering) -> usize {
    reordering.base.iter().map(|&count| count as usize).sum()
}

/// How many events `reordering` runs.
pub(crate) fn steps_count(reordering: &Reordering) -> usize {
    base_count(reordering) + reordering.schedule.len()
}

/// Whether `reordering` runs what was observed first, in the order in which it was observed.
pub(crate) fn is_prefix(trace: &Trace, reordering: &Reordering) -> bool {
    let count = base_count(reordering);
    let last = reordering.base.ids().filter_map(|it| base_of(trace, reordering, it).last()).max();
    let is_base_first = last.is_none_or(|last| last.number() as usize == count);
    let mut scheduled = reordering.schedule.iter().enumerate();
    is_base_first && scheduled.all(|(at, event)| event.number() as usize == count + at + 1)
}

/// All events of `reordering`, in its order.
pub(crate) fn steps(trace: &Trace, reordering: &Reordering) -> Vec<EventId> {
    let threads = reordering.base.ids();
    let mut steps: Vec<EventId> =
        threads.flat_map(|thread| base_of(trace, reordering, thread)).copied().collect();
    steps.sort_unstable();
    steps.extend(&reordering.schedule);
    steps
}

/// What a read sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The initial value.
    Initial,
    /// What this event wrote.
    Write(EventId),
}

impl Seen {
    /// `write`, or the initial value if there is none.
    pub(crate) fn new(write: Option<EventId>) -> Self {
        write.map_or(Self::Initial, Self::Write)
    }

    /// The event that wrote it.
    pub(crate) const fn write(self) -> Option<EventId> {
        match self {
            Self::Initial => None,
            Self::Write(write) => Some(write),
        }
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Initial => f.write_str("the initial value"),
            Self::Write(write) => write!(f, "event {}", write.number()),
        }
    }
}

/// What `event` saw when it was observed; none if it is no read, or its writer is not known.
pub(crate) fn observed(trace: &Trace, event: EventId) -> Option<Seen> {
    let op = trace.event(event).op;
    let is_known = op.is_read() && !matches!(op, Op::Access(AccessOp::UnknownRead, _));
    is_known.then(|| Seen::new(trace.writer(event)))
}

/// What `event` sees where `reordering` runs it; none if it does not, or as for [`observed`].
pub(crate) fn sees(trace: &Trace, reordering: &Reordering, event: EventId) -> Option<Seen> {
    observed(trace, event)?;
    let var = trace.event(event).op.var()?;
    let is_run = trace.is_in_prefix(reordering, event) || reordering.schedule.contains(&event);
    is_run.then(|| Seen::new(trace.last_write(reordering, var, Some(event))))
}

/// What `var` holds after all that `reordering` runs.
pub(crate) fn holds(trace: &Trace, reordering: &Reordering, var: VarId) -> Seen {
    Seen::new(trace.last_write(reordering, var, None))
}
