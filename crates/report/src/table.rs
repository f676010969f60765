//! A proof as a table with a column per thread: what the threads that matter did last, and what
//! is next after that.

use std::borrow::Cow;

use reweave_analysis::Proof;
use reweave_trace::{EventId, Reordering, ThreadId, Trace};

use crate::site::place;

/// How many of its last steps are shown of each thread that the goal speaks of.
const STEPS_MAX: usize = 6;

/// The end of a schedule, where it matters.
#[derive(Debug)]
pub(crate) struct Table<'t> {
    trace: &'t Trace,
    /// The threads that have a column.
    pub(crate) threads: Vec<ThreadId>,
    pub(crate) rows: Vec<Row>,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Row {
    /// Steps that are not shown.
    Gap {
        /// How many.
        count: usize,
        /// Whether they come before all steps that are shown.
        first: bool,
    },
    /// One event.
    Event {
        /// Which step it is, counted from 1; none for what is next at the end.
        step: Option<usize>,
        /// The event.
        event: EventId,
        /// The column of its thread.
        column: usize,
    },
}

impl<'t> Table<'t> {
    /// The last steps of each thread that the goal of `proof` speaks of, then what is next.
    pub(crate) fn of(trace: &'t Trace, proof: &Proof) -> Self {
        let mut threads: Vec<ThreadId> =
            proof.named().iter().map(|&event| trace.event(event).thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let mut steps: Vec<(usize, EventId)> = Vec::new();
        for &thread in &threads {
            steps.extend(last_steps_of(trace, proof.reordering(), thread));
        }
        steps.sort_unstable();
        let column = |event: EventId| {
            let thread = trace.event(event).thread;
            threads.iter().position(|&other| other == thread).unwrap_or(0)
        };
        let mut rows = Vec::new();
        let mut last = 0;
        for (step, event) in steps {
            rows.extend(gap(last, step));
            rows.push(Row::Event { step: Some(step), event, column: column(event) });
            last = step;
        }
        rows.extend(gap(last, steps_count(proof.reordering()) + 1));
        let next = proof.then().into_iter();
        rows.extend(next.map(|event| Row::Event { step: None, event, column: column(event) }));
        Self { trace, threads, rows }
    }

    /// The headings of the columns.
    pub(crate) fn headings(&self) -> Vec<&'t str> {
        self.threads.iter().map(|&thread| self.trace.names().threads.name(thread)).collect()
    }

    /// What `event` does, and where.
    pub(crate) fn cell(&self, event: EventId) -> (String, Cow<'t, str>) {
        let (event, names) = (self.trace.event(event), self.trace.names());
        (names.spell(event.op).to_string(), place(names.location(event.site)))
    }

    /// Whether there are steps that it does not show.
    pub(crate) fn has_gaps(&self) -> bool {
        self.rows.iter().any(|row| matches!(row, Row::Gap { .. }))
    }
}

/// The steps between `last` and `step`, if there are any.
const fn gap(last: usize, step: usize) -> Option<Row> {
    let count = step - last - 1;
    if count == 0 { None } else { Some(Row::Gap { count, first: last == 0 }) }
}

/// `… 17 steps before`, or `between`.
pub(crate) fn gap_note(count: usize, first: bool) -> String {
    let place = if first { "before" } else { "between" };
    format!("… {} {place}", crate::counted(count as u64, "step"))
}

/// The last steps of `thread` in `reordering`, each with its number, counted from 1.
fn last_steps_of(
    trace: &Trace,
    reordering: &Reordering,
    thread: ThreadId,
) -> Vec<(usize, EventId)> {
    let base_count = base_count(reordering);
    let of_thread = |&(_, event): &(usize, EventId)| trace.event(event).thread == thread;
    let scheduled = reordering.schedule.iter().enumerate();
    let scheduled = scheduled.map(|(at, &event)| (base_count + at + 1, event));
    let mut steps: Vec<_> = scheduled.rev().filter(of_thread).take(STEPS_MAX).collect();
    let base = base_of(trace, reordering, thread);
    let wanted = (STEPS_MAX - steps.len()).min(base.len());
    let from_base = base[base.len() - wanted..].iter();
    steps.extend(from_base.map(|&event| (step_in_base(trace, reordering, event), event)));
    steps
}

/// The events of `thread` that are in the base of `reordering`.
fn base_of<'t>(trace: &'t Trace, reordering: &Reordering, thread: ThreadId) -> &'t [EventId] {
    let count = reordering.base.get(thread).copied().unwrap_or(0);
    &trace.thread_events(thread)[..count as usize]
}

/// The how many-th of the base `event` is: the base runs in observed order.
fn step_in_base(trace: &Trace, reordering: &Reordering, event: EventId) -> usize {
    let until =
        |thread| base_of(trace, reordering, thread).partition_point(|&other| other <= event);
    reordering.base.ids().map(until).sum()
}

fn base_count(reordering: &Reordering) -> usize {
    reordering.base.iter().map(|&count| count as usize).sum()
}

/// How many events `reordering` runs.
pub(crate) fn steps_count(reordering: &Reordering) -> usize {
    base_count(reordering) + reordering.schedule.len()
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
