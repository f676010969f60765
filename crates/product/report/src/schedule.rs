//! Schedules: what a reordering runs, when, and what its reads see; and a proof as a table with a
//! column per thread.
//!
//! The table shows what the threads that matter did last, and what is next after that, or where in it
//! the events at fault are. A global state is such a table with a line across, below what each thread
//! has done and above what it does next.

use std::borrow::Cow;

use reweave_analysis::Proof;
use reweave_base::FxHashSet;
use reweave_trace::{AccessOp, EventId, Goal, Op, Reordering, ThreadId, Trace, VarId};

use crate::alternatives::known_value;
use crate::counted;
use crate::relevance::{answer, steps_that_matter};
use crate::shown::without_namespaces;
use crate::site::{own_place, place};
use crate::text::CELL_MAX;

/// `events`, all of which `reordering` runs, each with its step, counted from 1, in that order.
pub fn numbered(
    trace: &Trace,
    reordering: &Reordering,
    mut events: Vec<EventId>,
) -> Vec<(usize, EventId)> {
    events.sort_unstable();
    let prefix_count = prefix_count(reordering);
    let in_prefix = events.iter().filter(|&&event| trace.is_in_prefix(reordering, event));
    let mut steps: Vec<(usize, EventId)> =
        in_prefix.map(|&event| (step_in_prefix(trace, reordering, event), event)).collect();
    let scheduled = reordering.schedule.iter().enumerate();
    // One pass over the schedule, which can be far longer than what is asked for.
    let scheduled = scheduled.filter(|(_, event)| events.binary_search(event).is_ok());
    steps.extend(scheduled.map(|(at, &event)| (prefix_count + at + 1, event)));
    steps.sort_unstable();
    steps
}

/// The events of `thread` that `reordering` runs.
pub fn steps_of<'t>(trace: &'t Trace, reordering: &Reordering, thread: ThreadId) -> &'t [EventId] {
    let scheduled = reordering.schedule.iter();
    let scheduled = scheduled.filter(|&&event| trace.event(event).thread == thread).count();
    // A thread always runs a prefix of its events, so how many says which.
    let count = prefix_of(trace, reordering, thread).len() + scheduled;
    &trace.thread_events(thread)[..count]
}

/// The events of `thread` that are in the fixed prefix of `reordering`.
pub fn prefix_of<'t>(trace: &'t Trace, reordering: &Reordering, thread: ThreadId) -> &'t [EventId] {
    let count = reordering.base.get(thread).copied().unwrap_or(0);
    &trace.thread_events(thread)[..count as usize]
}

/// Which step of the fixed prefix `event` is: the prefix runs in observed order.
pub fn step_in_prefix(trace: &Trace, reordering: &Reordering, event: EventId) -> usize {
    let until =
        |thread| prefix_of(trace, reordering, thread).partition_point(|&other| other <= event);
    reordering.base.ids().map(until).sum()
}

pub fn prefix_count(reordering: &Reordering) -> usize {
    reordering.base.iter().map(|&count| count as usize).sum()
}

/// The steps of `reordering` after the first `from`, `count` of them or as many as there are, without
/// going through those before.
pub fn steps_after(
    trace: &Trace,
    reordering: &Reordering,
    from: usize,
    count: usize,
) -> Vec<EventId> {
    let prefix_count = prefix_count(reordering);
    let mut steps = Vec::new();
    if from < prefix_count {
        let runs: Vec<&[EventId]> =
            reordering.base.ids().map(|thread| prefix_of(trace, reordering, thread)).collect();
        let until = |number: u32| {
            runs.iter()
                .map(|run| run.partition_point(|event| event.number() <= number))
                .sum::<usize>()
        };
        // The least number that has `from` steps of the prefix up to it.
        let (mut low, mut high) = (0, trace.len() as u32);
        while low < high {
            let middle = low + (high - low) / 2;
            if until(middle) < from {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut rest: Vec<&[EventId]> = runs
            .iter()
            .map(|run| &run[run.partition_point(|event| event.number() <= low)..])
            .collect();
        while steps.len() < count {
            let first = rest.iter_mut().filter(|run| !run.is_empty()).min_by_key(|run| run[0]);
            let Some(run) = first else { break };
            steps.push(run[0]);
            *run = &run[1..];
        }
    }
    let scheduled = reordering.schedule.iter().skip(from.saturating_sub(prefix_count));
    let missing = count - steps.len();
    steps.extend(scheduled.take(missing));
    steps
}

/// How many events `reordering` runs.
pub fn steps_count(reordering: &Reordering) -> usize {
    prefix_count(reordering) + reordering.schedule.len()
}

/// Whether `reordering` runs what was observed first, in the order in which it was observed.
pub fn is_prefix(trace: &Trace, reordering: &Reordering) -> bool {
    let count = prefix_count(reordering);
    // The prefix is how the run began exactly if its last event has as many before it as it holds.
    let last = reordering.base.ids().filter_map(|it| prefix_of(trace, reordering, it).last()).max();
    let starts_with_prefix = last.is_none_or(|last| last.number() as usize == count);
    let mut scheduled = reordering.schedule.iter().enumerate();
    starts_with_prefix && scheduled.all(|(at, event)| event.number() as usize == count + at + 1)
}

/// All events of `reordering`, in its order.
pub fn steps(trace: &Trace, reordering: &Reordering) -> Vec<EventId> {
    let threads = reordering.base.ids();
    let mut steps: Vec<EventId> =
        threads.flat_map(|thread| prefix_of(trace, reordering, thread)).copied().collect();
    steps.sort_unstable();
    steps.extend(&reordering.schedule);
    steps
}

/// What a read sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The initial value.
    Initial,
    /// What this event wrote.
    Write(EventId),
}

impl Seen {
    /// `write`, or the initial value if there is none.
    pub fn new(write: Option<EventId>) -> Self {
        write.map_or(Self::Initial, Self::Write)
    }

    /// The event that wrote it.
    pub const fn write(self) -> Option<EventId> {
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
pub fn observed(trace: &Trace, event: EventId) -> Option<Seen> {
    let op = trace.event(event).op;
    let is_known = op.is_read() && !matches!(op, Op::Access(AccessOp::UnknownRead, _));
    is_known.then(|| Seen::new(trace.writer(event)))
}

/// What `event` sees where `reordering` runs it; none if it does not, or as for [`observed`].
pub fn sees(trace: &Trace, reordering: &Reordering, event: EventId) -> Option<Seen> {
    // What has no known writer as observed has none in a schedule either.
    observed(trace, event)?;
    let var = trace.event(event).op.var()?;
    let is_run = trace.is_in_prefix(reordering, event) || reordering.schedule.contains(&event);
    is_run.then(|| Seen::new(trace.last_write(reordering, var, Some(event))))
}

/// What `var` holds after all that `reordering` runs.
pub fn holds(trace: &Trace, reordering: &Reordering, var: VarId) -> Seen {
    Seen::new(trace.last_write(reordering, var, None))
}

/// A schedule is long if it has so many times as many steps as are shown.
const LONG: usize = 3;

/// So much less context is chosen in it where single steps between others have rows.
const SINGLES_MAX: usize = 4;

/// How much of a schedule is shown.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// So many steps are shown in full, and of a longer schedule as many of those that give context.
    usual: usize,
    /// How many steps are shown at most, where so many are at fault or tell why.
    most: usize,
    /// How many events of each thread after a global state.
    ahead_max: usize,
}

impl Extent {
    /// For one finding among others.
    pub const BRIEF: Self = Self { usual: 12, most: 40, ahead_max: 2 };

    /// For a schedule whose steps are argued for one by one.
    pub const ARGUED: Self = Self { usual: 24, most: 40, ahead_max: 0 };

    /// For a finding that has the page to itself.
    pub const FULL: Self = Self { usual: 24, most: 40, ahead_max: 6 };

    /// All steps, however many, requests too.
    pub const WHOLE: Self = Self { usual: usize::MAX, most: usize::MAX, ahead_max: 6 };
}

/// The part of a schedule that matters.
#[derive(Debug)]
pub struct Table<'t> {
    trace: &'t Trace,
    /// The threads that have a column.
    pub threads: Vec<ThreadId>,
    pub rows: Vec<Row>,
    /// Whether what it shows is known to be a run.
    is_run: bool,
    /// Whether cells show the values of their events, as far as they are known.
    has_values: bool,
    /// Whether requests right before their acquires have rows.
    has_requests: bool,
    /// Whether steps are left out where no row says so.
    has_missing: bool,
    /// Whether names in cells have their namespaces.
    has_namespaces: bool,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub enum Row {
    /// Events that are not shown.
    Gap {
        /// How many.
        count: usize,
        /// Where they are.
        place: Place,
    },
    /// The global state: what is above has happened, what is below has not.
    Line,
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

/// Where events are that a table leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before all steps that are shown.
    Before,
    /// After a step that is shown.
    Between,
    /// After the state.
    After,
}

/// Where to find the steps of a schedule that its table leaves out.
const FULL_HINT: &str = "--full shows all steps";

/// What steps are that are missing where no row says so.
const MISSING_NOTE: &str = "a missing step is the request (req) right before an acquire";

/// When an event of a table happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// As this step, counted from 1.
    Step(usize),
    /// As this step, and it is one of the events at fault.
    Fault(usize),
    /// It is next at the end.
    Next,
    /// It is next at the end, and cannot happen.
    Blocked,
    /// Before the state, by no run that is known.
    Past,
    /// Likewise, as the last event of its thread.
    Last,
    /// After the state, as the first event of its thread.
    Ahead,
    /// After that.
    Later,
}

impl Label {
    /// How tables spell it.
    pub fn as_str(self) -> String {
        match self {
            Self::Step(step) => step.to_string(),
            Self::Fault(step) => format!("> {step}"),
            Self::Next => "then".to_owned(),
            Self::Blocked => "waits".to_owned(),
            Self::Past => String::new(),
            Self::Last => ">".to_owned(),
            Self::Ahead => "next".to_owned(),
            Self::Later => "later".to_owned(),
        }
    }

    /// Whether it marks an event at fault.
    pub const fn is_fault(self) -> bool {
        match self {
            Self::Fault(_) | Self::Next | Self::Blocked | Self::Last => true,
            Self::Step(_) | Self::Past | Self::Ahead | Self::Later => false,
        }
    }
}

impl<'t> Table<'t> {
    /// What happens last in each thread that the goal of `proof` speaks of, then what is next; or,
    /// where nothing is, what happens up to the events that the goal names.
    pub fn new(trace: &'t Trace, proof: &Proof, extent: Extent) -> Self {
        let reordering = proof.reordering();
        let next = proof.goal().next();
        if shown_in_full(trace, reordering, &next, extent.usual) {
            return Self::of_steps(trace, proof, steps(trace, reordering), extent);
        }
        // Single steps between others have rows, too: in a long schedule there is less context then.
        let is_long = steps_count(reordering) / LONG > extent.usual;
        let tables = (0..=if is_long { SINGLES_MAX } else { 0 }).map(|singles| {
            let usual = extent.usual.saturating_sub(next.len() + singles);
            let most = extent.most.saturating_sub(next.len());
            let shown = with_requests(trace, steps_that_matter(trace, proof, usual, most));
            Self::of_steps(trace, proof, shown, extent)
        });
        let mut widest = None;
        for table in tables {
            if table.events_count() <= extent.usual {
                return table;
            }
            widest = widest.or(Some(table));
        }
        widest.expect("there is at least one table")
    }

    /// The steps `shown` of `proof`, then what is next.
    fn of_steps(trace: &'t Trace, proof: &Proof, shown: Vec<EventId>, extent: Extent) -> Self {
        let reordering = proof.reordering();
        let named = proof.goal().named();
        let next = proof.goal().next();
        let mut threads: Vec<ThreadId> =
            shown.iter().chain(&named).map(|&event| trace.event(event).thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let has_requests = extent.usual == usize::MAX;
        let mut table = Self { has_requests, ..Self::empty(trace, threads) };
        table.push_steps(reordering, shown, &next, &named);
        let label = match proof.goal() {
            Goal::Deadlock(_) | Goal::Stuck(_) => Label::Blocked,
            _ => Label::Next,
        };
        for event in next {
            table.push(label, event);
        }
        table.fitted()
    }

    /// What each of `threads` does last in `reordering`, its last event marked, then a line, then
    /// what each does next.
    pub fn of_state(
        trace: &'t Trace,
        reordering: &Reordering,
        threads: Vec<ThreadId>,
        is_run: bool,
        extent: Extent,
    ) -> Self {
        let runs: Vec<&[EventId]> =
            threads.iter().map(|&thread| steps_of(trace, reordering, thread)).collect();
        let last: Vec<EventId> = runs.iter().filter_map(|run| run.last().copied()).collect();
        let shown: Vec<EventId> = if steps_count(reordering) <= extent.usual {
            runs.concat()
        } else {
            // Many threads share the room that few would have.
            let each = (extent.usual / threads.len().max(1)).max(1);
            runs.iter().flat_map(|run| &run[run.len().saturating_sub(each)..]).copied().collect()
        };
        let mut ahead: Vec<(EventId, Label)> = Vec::new();
        for (&thread, run) in threads.iter().zip(&runs) {
            let next = trace.thread_events(thread)[run.len()..].iter().take(extent.ahead_max);
            // Only the first is surely next; what comes after it depends on the others.
            let labels = [Label::Ahead].into_iter().chain(std::iter::repeat(Label::Later));
            ahead.extend(next.copied().zip(labels));
        }
        ahead.sort_unstable_by_key(|&(event, _)| event);
        let has_requests = extent.usual == usize::MAX;
        let mut table = Self { has_values: true, has_requests, ..Self::empty(trace, threads) };
        table.push_steps(reordering, shown, &[], &last);
        if !is_run {
            table.forget_steps();
        }
        table.rows.push(Row::Line);
        // Threads without a column are among these.
        let rest = trace.len() - steps_count(reordering) - ahead.len();
        for (event, label) in ahead {
            table.push(label, event);
        }
        table.push_gap(rest, Place::After);
        table.fitted()
    }

    /// How many events have rows.
    fn events_count(&self) -> usize {
        self.rows.iter().filter(|row| matches!(row, Row::Event { .. })).count()
    }

    /// `events` as they were observed, those of `marked` marked.
    pub fn observed(trace: &'t Trace, events: &[EventId], marked: &[EventId]) -> Self {
        let mut shown = events.to_vec();
        shown.sort_unstable();
        shown.dedup();
        let mut threads: Vec<ThreadId> =
            shown.iter().map(|&event| trace.event(event).thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let mut table = Self { has_values: true, is_run: false, ..Self::empty(trace, threads) };
        for event in shown {
            let label = if marked.contains(&event) { Label::Last } else { Label::Past };
            table.push(label, event);
        }
        table.fitted()
    }

    /// The same without namespaces in its cells, if one is too long with them and none are the same without.
    fn fitted(mut self) -> Self {
        let events = self.rows.iter().filter_map(|row| match *row {
            Row::Event { event, .. } => Some(self.cell(event).0),
            Row::Gap { .. } | Row::Line => None,
        });
        let spelled: FxHashSet<String> = events.collect();
        let bare: FxHashSet<String> = spelled.iter().map(|op| without_namespaces(op)).collect();
        let is_long = spelled.iter().any(|op| op.chars().count() > CELL_MAX);
        self.has_namespaces = !is_long || bare.len() < spelled.len();
        self
    }

    const fn empty(trace: &'t Trace, threads: Vec<ThreadId>) -> Self {
        Self {
            trace,
            threads,
            rows: Vec::new(),
            is_run: true,
            has_values: false,
            has_requests: false,
            has_missing: false,
            has_namespaces: true,
        }
    }

    fn has_column(&self, event: EventId) -> bool {
        self.threads.contains(&self.trace.event(event).thread)
    }

    fn push(&mut self, label: Label, event: EventId) {
        let thread = self.trace.event(event).thread;
        let column = self.threads.iter().position(|&other| other == thread).unwrap_or(0);
        self.rows.push(Row::Event { label, event, column });
    }

    fn push_gap(&mut self, count: usize, place: Place) {
        if count > 0 {
            self.rows.push(Row::Gap { count, place });
        }
    }

    /// Adds the steps of `reordering` that are to be `shown`, those of `marked` marked. A request is told by the
    /// acquire that follows it, if that is shown or among those that are `next`, unless requests have rows.
    fn push_steps(
        &mut self,
        reordering: &Reordering,
        shown: Vec<EventId>,
        next: &[EventId],
        marked: &[EventId],
    ) {
        let place = |has_rows: bool| if has_rows { Place::Between } else { Place::Before };
        let acquires: FxHashSet<EventId> = shown.iter().chain(next).copied().collect();
        let (mut last, mut has_rows) = (0, false);
        for (step, event) in numbered(self.trace, reordering, shown) {
            // A single step takes no more room than a line that says that it is left out.
            let single = match step - last {
                2 => steps_after(self.trace, reordering, last, 1),
                _ => Vec::new(),
            };
            match single.first().filter(|&&single| self.has_column(single)) {
                Some(&single) => self.push(Label::Step(step - 1), single),
                None => self.push_gap(step - last - 1, place(has_rows)),
            }
            last = step;
            if !self.has_requests
                && !marked.contains(&event)
                && answer(self.trace, event).is_some_and(|it| acquires.contains(&it))
            {
                // What is left out right before it is counted in a row, and so is the request.
                match self.rows.last_mut() {
                    Some(Row::Gap { count, .. }) => *count += 1,
                    _ => self.has_missing = true,
                }
                continue;
            }
            let label =
                if marked.contains(&event) { Label::Fault(step) } else { Label::Step(step) };
            self.push(label, event);
            has_rows = true;
        }
        self.push_gap(steps_count(reordering) - last, place(has_rows));
    }

    /// Takes the numbers of the steps away, since no run is known that makes them.
    fn forget_steps(&mut self) {
        self.is_run = false;
        for row in &mut self.rows {
            if let Row::Event { label, .. } = row {
                *label = if label.is_fault() { Label::Last } else { Label::Past };
            }
        }
    }

    /// The headings of the columns.
    pub fn headings(&self) -> Vec<&'t str> {
        self.threads.iter().map(|&thread| self.trace.names().threads.name(thread)).collect()
    }

    /// What `event` does, and where.
    pub fn cell(&self, event: EventId) -> (String, Cow<'t, str>) {
        let value = known_value(self.trace, event).filter(|_| self.has_values);
        let value = value.map_or(String::new(), |value| format!(" = {value}"));
        let op = self.trace.names().spell(self.trace.event(event).op);
        let text = format!("{op}{value}");
        let text = if self.has_namespaces { text } else { without_namespaces(&text) };
        (text, place(own_place(self.trace, event)))
    }

    /// What there is to say below it of steps that it does not show, and how all are shown.
    pub fn hint(&self) -> Option<String> {
        let is_gap = |row: &Row| matches!(row, Row::Gap { place, .. } if *place != Place::After);
        match (self.is_run, self.has_missing) {
            (true, true) => Some(format!("{MISSING_NOTE}; {FULL_HINT}")),
            (true, false) => self.rows.iter().any(is_gap).then(|| FULL_HINT.to_owned()),
            (false, _) => None,
        }
    }

    /// What the column of labels is called.
    pub const fn label_heading(&self) -> &'static str {
        if self.is_run { "step" } else { "" }
    }

    /// `… 17 steps before`, or `between`; `… 17 events after`.
    pub fn gap_note(&self, count: usize, place: Place) -> String {
        let (thing, place) = match place {
            Place::Before => ("step", "before"),
            Place::Between => ("step", "between"),
            Place::After => ("event", "after"),
        };
        let thing = if self.is_run { thing } else { "event" };
        format!("… {} {place}", counted(count as u64, thing))
    }
}

/// `steps` and the requests that are told by acquires among them.
fn with_requests(trace: &Trace, mut steps: Vec<EventId>) -> Vec<EventId> {
    let request = |&acquire: &EventId| {
        let before = (trace.position(acquire) as usize).checked_sub(1)?;
        let before = trace.thread_events(trace.event(acquire).thread)[before];
        (answer(trace, before) == Some(acquire)).then_some(before)
    };
    let requests: Vec<EventId> = steps.iter().filter_map(request).collect();
    steps.extend(requests);
    steps
}

/// Whether `max` rows are enough for all steps of `reordering` and what is `next` then.
fn shown_in_full(trace: &Trace, reordering: &Reordering, next: &[EventId], max: usize) -> bool {
    // No more than half of the steps can be requests that are told by their acquires.
    if steps_count(reordering) / 2 > max {
        return false;
    }
    let all: Vec<EventId> = steps(trace, reordering);
    let acquires: FxHashSet<EventId> = all.iter().chain(next).copied().collect();
    let is_told = |&event: &EventId| answer(trace, event).is_some_and(|it| acquires.contains(&it));
    let rows = all.into_iter().filter(|event| !is_told(event)).count();
    rows.saturating_add(next.len()) <= max
}
