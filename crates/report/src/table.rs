//! A witness as a table with a column per thread: its last steps, and what is next after them.

use reweave_base::Id;
use reweave_trace::{EventId, Reordering, ThreadId, Trace};

/// How many steps of a long witness are shown.
const STEPS_MAX: usize = 12;

/// The end of a witness, where it matters.
#[derive(Debug)]
pub(crate) struct Table<'t> {
    trace: &'t Trace,
    /// The threads that have a column.
    pub(crate) threads: Vec<ThreadId>,
    /// How many steps come before the first one shown.
    pub(crate) skipped: usize,
    pub(crate) rows: Vec<Row>,
}

/// One event of a witness.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Which step it is, counted from 1; none for what is next at the end.
    pub(crate) step: Option<usize>,
    pub(crate) event: EventId,
    pub(crate) column: usize,
}

impl<'t> Table<'t> {
    /// The last steps of `reordering`, then the events `then`.
    pub(crate) fn of(trace: &'t Trace, reordering: &Reordering, then: &[EventId]) -> Self {
        let steps_count = steps_count(reordering);
        let steps = last_steps(trace, reordering, STEPS_MAX);
        let skipped = steps_count - steps.len();
        let mut threads: Vec<ThreadId> =
            steps.iter().chain(then).map(|&event| trace.event(event).thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let column = |event: EventId| {
            let thread = trace.event(event).thread;
            threads.iter().position(|&other| other == thread).unwrap_or(0)
        };
        let done = steps.iter().enumerate().map(|(at, &event)| (Some(skipped + at + 1), event));
        let next = then.iter().map(|&event| (None, event));
        let rows = done
            .chain(next)
            .map(|(step, event)| Row { step, event, column: column(event) })
            .collect();
        Self { trace, threads, skipped, rows }
    }

    /// The headings of the columns.
    pub(crate) fn headings(&self) -> Vec<&'t str> {
        self.threads.iter().map(|&thread| self.trace.names().threads.name(thread)).collect()
    }

    /// What the event of `row` does, and where.
    pub(crate) fn cell(&self, row: &Row) -> (String, &'t str) {
        let event = self.trace.event(row.event);
        let names = self.trace.names();
        (names.spell(event.op).to_string(), names.location(event.site))
    }

    /// `… 17 steps before these, in observed order`, if there are any.
    pub(crate) fn skipped_note(&self) -> Option<String> {
        let steps = crate::counted(self.skipped as u64, "earlier step");
        (self.skipped > 0).then(|| format!("… {steps} not shown"))
    }
}

/// How many events `reordering` runs.
pub(crate) fn steps_count(reordering: &Reordering) -> usize {
    let base: usize = reordering.base.iter().map(|&count| count as usize).sum();
    base + reordering.schedule.len()
}

/// The last `steps_max` events of `reordering`, in its order.
pub(crate) fn last_steps(trace: &Trace, reordering: &Reordering, steps_max: usize) -> Vec<EventId> {
    let schedule = reordering.schedule.iter().rev().copied();
    let mut steps: Vec<EventId> = schedule.take(steps_max).collect();
    let base_total = steps_count(reordering) - reordering.schedule.len();
    let wanted = (steps_max - steps.len()).min(base_total);
    let in_base = |&event: &EventId| {
        let count = reordering.base.get(trace.event(event).thread).copied().unwrap_or(0);
        trace.position(event) < count
    };
    let backwards = (0..trace.len()).rev().map(EventId::from_index);
    steps.extend(backwards.filter(in_base).take(wanted));
    steps.reverse();
    steps
}
