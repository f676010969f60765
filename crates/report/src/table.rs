//! A proof as a table with a column per thread: what the threads that matter did last, and what
//! is next after that, or where in it the events at fault are.

use std::borrow::Cow;

use reweave_analysis::Proof;
use reweave_trace::{EventId, Goal, Reordering, ThreadId, Trace};

use crate::schedule::{numbered, steps, steps_count, steps_of};
use crate::site::place;

/// How much of a schedule is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// How many steps of each thread that the goal speaks of, up to where it matters.
    steps_max: usize,
    /// Up to so many steps in full where the fault is in the order of the steps themselves.
    whole_max: usize,
    /// Up to so many steps in full where the fault is in what is next.
    whole_before_next_max: usize,
}

impl Extent {
    /// For one finding among others.
    pub(crate) const BRIEF: Self = Self { steps_max: 6, whole_max: 40, whole_before_next_max: 0 };

    /// For a finding that has the page to itself.
    pub(crate) const FULL: Self =
        Self { steps_max: 16, whole_max: 200, whole_before_next_max: 200 };
}

/// The part of a schedule that matters.
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
        /// When it happens.
        label: Label,
        /// The event.
        event: EventId,
        /// The column of its thread.
        column: usize,
    },
}

/// When an event of a table happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// As this step, counted from 1.
    Step(usize),
    /// As this step, and it is one of the events at fault.
    Fault(usize),
    /// It is next at the end.
    Next,
    /// It is next at the end, and cannot happen.
    Blocked,
}

impl Label {
    /// How tables spell it.
    pub(crate) fn word(self) -> String {
        match self {
            Self::Step(step) => step.to_string(),
            Self::Fault(step) => format!("> {step}"),
            Self::Next => "then".to_owned(),
            Self::Blocked => "waits".to_owned(),
        }
    }

    /// Whether it marks an event at fault.
    pub(crate) const fn is_fault(self) -> bool {
        !matches!(self, Self::Step(_))
    }
}

impl<'t> Table<'t> {
    /// What happens last in each thread that the goal of `proof` speaks of, then what is next; or,
    /// where nothing is, what happens up to the events that the goal names.
    pub(crate) fn of(trace: &'t Trace, proof: &Proof, extent: Extent) -> Self {
        let reordering = proof.reordering();
        let named = proof.named();
        let whole_max = match proof.then().is_empty() {
            true => extent.whole_max,
            false => extent.whole_before_next_max,
        };
        let is_whole = steps_count(reordering) <= whole_max;
        let shown = match is_whole {
            true => steps(trace, reordering),
            false => wanted(trace, reordering, &named, extent.steps_max),
        };
        let mut threads: Vec<ThreadId> =
            shown.iter().chain(&named).map(|&event| trace.event(event).thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let column = |event: EventId| {
            let thread = trace.event(event).thread;
            threads.iter().position(|&other| other == thread).unwrap_or(0)
        };
        let mut rows = Vec::new();
        let mut last = 0;
        for (step, event) in numbered(trace, reordering, shown) {
            let label = match named.contains(&event) {
                true => Label::Fault(step),
                false => Label::Step(step),
            };
            rows.extend(gap(last, step));
            rows.push(Row::Event { label, event, column: column(event) });
            last = step;
        }
        rows.extend(gap(last, steps_count(reordering) + 1));
        let label = match proof.goal() {
            Goal::Deadlock(_) => Label::Blocked,
            _ => Label::Next,
        };
        let next = proof.then().into_iter();
        rows.extend(next.map(|event| Row::Event { label, event, column: column(event) }));
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

/// Of the thread of each of `named` the last steps up to it, so many at most.
fn wanted(
    trace: &Trace,
    reordering: &Reordering,
    named: &[EventId],
    steps_max: usize,
) -> Vec<EventId> {
    let mut wanted: Vec<EventId> = Vec::new();
    for &event in named {
        let thread = trace.event(event).thread;
        let run = steps_of(trace, reordering, thread);
        let until = run.len().min(trace.position(event) as usize + 1);
        wanted.extend(&run[until.saturating_sub(steps_max)..until]);
    }
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}
