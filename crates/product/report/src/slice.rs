//! The part of a run that is shown for one finding: its events as they were observed, and as the
//! schedule runs them.
//!
//! The slice holds the events at fault, the critical sections around them, what the reads among them
//! see, the lock that was handed over between them, and what their threads did last before. What is
//! left out is counted. A slice is bounded by its [`Reach`], however long the trace is.

use std::collections::BTreeSet;

use reweave_analysis::{Detail, Finding, Proof};
use reweave_trace::{EventId, Goal, LockOp, Op, Trace};

use crate::schedule::{
    self, Extent, Label, Seen, numbered, observed, sees, steps, steps_count, steps_of,
};
use crate::state::Picture;

/// How much of a run is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// How many steps of each thread at fault, up to the fault.
    steps_max: usize,
    /// Schedules up to this long are drawn in full.
    whole_max: usize,
    /// How many critical sections around each event at fault.
    sections_max: usize,
    /// How far from the events at fault a lock is looked for that was handed over.
    handover_max: usize,
    /// How much of a global state.
    state: Extent,
    /// How many lines of code on each side of the one that matters.
    pub code_around: u32,
    /// Whether the code of all events is there, or only of those that a finding is of.
    pub is_code_whole: bool,
}

impl Reach {
    /// For one finding among very many.
    pub const LEAN: Self = Self {
        steps_max: 4,
        whole_max: 14,
        sections_max: 2,
        handover_max: 64,
        state: Extent::BRIEF,
        code_around: 1,
        is_code_whole: false,
    };
    /// For one finding among others.
    pub const BRIEF: Self = Self {
        steps_max: 8,
        whole_max: 40,
        sections_max: 4,
        handover_max: 64,
        state: Extent::BRIEF,
        code_around: 3,
        is_code_whole: true,
    };
    /// For a finding that has the page to itself.
    pub const FULL: Self =
        Self { steps_max: 24, whole_max: 200, sections_max: 8, state: Extent::FULL, ..Self::BRIEF };
    /// For both orders side by side in a text, which names the chain between them by itself.
    pub const COMPARED: Self = Self { steps_max: 0, whole_max: 24, handover_max: 0, ..Self::BRIEF };
}

/// What is drawn for a finding.
#[derive(Debug, Default)]
pub struct Slice {
    /// As it was observed.
    pub observed: Vec<Row>,
    /// As the schedule runs it; empty if there is none.
    pub predicted: Vec<Row>,
}

/// One line of a drawing.
#[derive(Clone, Copy, Debug)]
pub enum Row {
    /// So many events are not drawn.
    Gap(usize),
    /// An event.
    Event(Drawn),
}

/// An event that is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    pub event: EventId,
    pub role: Role,
    /// What it sees, if it is a read and that is known.
    pub sees: Option<Seen>,
}

/// What an event has to do with the finding. Pages know them by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// It happens.
    Step = 0,
    /// It happens and is at fault.
    Fault = 1,
    /// It is next at the end.
    Next = 2,
    /// It is next at the end, and cannot happen.
    Blocked = 3,
    /// It does not happen.
    Never = 4,
    /// It comes after the state.
    Ahead = 5,
}

impl Slice {
    /// What is drawn for `finding`, and the events `also` named beside it.
    pub fn new(trace: &Trace, finding: &Finding, reach: Reach, also: &[EventId]) -> Self {
        if finding.detail.state().is_some() {
            return Self::of_state(trace, finding, reach);
        }
        let Some(proof) = finding.evidence.proof() else {
            let faults: BTreeSet<EventId> = finding.events.iter().copied().collect();
            let shown = around(trace, &faults, reach);
            return Self { observed: as_observed(trace, &shown, &faults), predicted: Vec::new() };
        };
        let faults = faults(proof, &finding.detail);
        let mut shown = relevant(trace, proof, &faults, reach);
        shown.extend(also);
        Self {
            observed: as_observed(trace, &shown, &faults),
            predicted: as_scheduled(trace, proof, &shown, &faults),
        }
    }

    /// The events around a state. Where no run is known that reaches it, it is drawn through what was
    /// observed alone.
    fn of_state(trace: &Trace, finding: &Finding, reach: Reach) -> Self {
        let Some(picture) = Picture::new(trace, finding, reach.state) else {
            return Self::default();
        };
        let mut predicted: Vec<Row> = Vec::new();
        for row in &picture.table.rows {
            match *row {
                schedule::Row::Line => {}
                schedule::Row::Gap { count, .. } => predicted.push(Row::Gap(count)),
                schedule::Row::Event { label, event, .. } => {
                    let sees = observed(trace, event);
                    let role = of_label(label);
                    predicted.push(Row::Event(Drawn { event, role, sees }));
                }
            }
        }
        let mut drawn: Vec<Drawn> = predicted.iter().filter_map(Row::drawn).collect();
        drawn.sort_unstable_by_key(|drawn| drawn.event);
        let observed = with_gaps(trace, drawn.into_iter());
        match finding.evidence.proof() {
            Some(_) => Self { observed, predicted },
            None => Self { observed, predicted: Vec::new() },
        }
    }

    /// All events that are drawn.
    pub fn events(&self) -> BTreeSet<EventId> {
        let rows = self.observed.iter().chain(&self.predicted);
        rows.filter_map(Row::drawn).map(|drawn| drawn.event).collect()
    }
}

impl Row {
    /// The event; none if it is a gap.
    pub fn drawn(&self) -> Option<Drawn> {
        match self {
            Self::Gap(_) => None,
            Self::Event(drawn) => Some(*drawn),
        }
    }
}

const fn of_label(label: Label) -> Role {
    match label {
        Label::Step(_) | Label::Past => Role::Step,
        Label::Fault(_) | Label::Last => Role::Fault,
        Label::Next => Role::Next,
        Label::Blocked => Role::Blocked,
        Label::Ahead | Label::Later => Role::Ahead,
    }
}

/// The events at fault, the sections around them, what they saw, and what came before in their threads.
fn around(trace: &Trace, faults: &BTreeSet<EventId>, reach: Reach) -> BTreeSet<EventId> {
    let mut shown = faults.clone();
    for &event in faults {
        let thread = trace.event(event).thread;
        let until = trace.position(event) as usize + 1;
        // What the thread did last before the fault is what a reader recognises it by.
        let before = &trace.thread_events(thread)[until.saturating_sub(reach.steps_max)..until];
        shown.extend(before);
        shown.extend(observed(trace, event).and_then(Seen::write));
        for section in trace.sections().held(thread, event).take(reach.sections_max) {
            shown.insert(section.acquire);
            shown.extend(section.release);
        }
    }
    // The hand-over between two events at fault is what made them look ordered.
    for (&first, &second) in faults.iter().zip(faults.iter().skip(1)) {
        if trace.event(first).thread != trace.event(second).thread {
            shown.extend(handed_over(trace, first, second, reach.handover_max));
        }
    }
    shown
}

/// What handed a lock over between two events at fault, at most `near` events from them in their
/// threads: its release after the first and its acquire before the second, with the start of the one
/// section and the end of the other.
fn handed_over(trace: &Trace, first: EventId, second: EventId, near: usize) -> Vec<EventId> {
    let threads = [first, second].map(|event| trace.event(event).thread);
    let [after, before] = threads.map(|thread| trace.thread_events(thread));
    let start = trace.position(first) as usize + 1;
    let end = trace.position(second) as usize;
    let after = &after[start..after.len().min(start + near)];
    let before = &before[end.saturating_sub(near)..end];
    for &given in after.iter().filter(|&&event| event < second) {
        let Op::Lock(LockOp::Release | LockOp::ReleaseShared, lock) = trace.event(given).op else {
            continue;
        };
        let first_after = |event: EventId, is_wanted: fn(LockOp) -> bool| {
            let mut later = before.iter().copied().filter(|&other| other > event);
            later.find(|&other| {
                matches!(trace.event(other).op, Op::Lock(op, it) if it == lock && is_wanted(op))
            })
        };
        let takes = |op| matches!(op, LockOp::Acquire | LockOp::AcquireShared);
        let Some(taken) = first_after(given, takes) else { continue };
        let mut held = trace.sections().held(threads[0], given);
        let taking = held.find(|section| section.lock == lock).map(|section| section.acquire);
        let gives = |op| matches!(op, LockOp::Release | LockOp::ReleaseShared);
        let giving = first_after(taken, gives);
        return [taking, Some(given), Some(taken), giving].into_iter().flatten().collect();
    }
    Vec::new()
}

/// The same where a schedule is known: also what it runs, if that is little.
fn relevant(
    trace: &Trace,
    proof: &Proof,
    faults: &BTreeSet<EventId>,
    reach: Reach,
) -> BTreeSet<EventId> {
    let reordering = proof.reordering();
    let mut shown = around(trace, faults, reach);
    // A short schedule is drawn whole: a gap would take as much room as what it hides.
    if steps_count(reordering) <= reach.whole_max {
        shown.extend(steps(trace, reordering));
        return shown;
    }
    for &event in faults {
        shown.extend(sees(trace, reordering, event).and_then(Seen::write));
        // What happens last in the thread of an event that does not happen.
        let run = steps_of(trace, reordering, trace.event(event).thread);
        shown.extend(run.last());
    }
    shown
}

fn as_observed(trace: &Trace, shown: &BTreeSet<EventId>, faults: &BTreeSet<EventId>) -> Vec<Row> {
    // Leaving out a single event takes as much room as the event.
    let before = [0].into_iter().chain(shown.iter().map(|event| event.number()));
    let alone = before.zip(shown).filter(|(before, after)| before + 2 == after.number());
    let alone = alone.filter_map(|(before, _)| trace.numbered(before + 1));
    let shown: BTreeSet<EventId> = shown.iter().copied().chain(alone).collect();
    let drawn = shown.iter().map(|&event| {
        let role = if faults.contains(&event) { Role::Fault } else { Role::Step };
        Drawn { event, role, sees: observed(trace, event) }
    });
    with_gaps(trace, drawn)
}

/// `drawn`, which are in observed order, with what is left out between them.
fn with_gaps(trace: &Trace, drawn: impl Iterator<Item = Drawn>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut last = 0;
    for drawn in drawn {
        let number = drawn.event.number();
        push_gap(&mut rows, (number - last - 1) as usize);
        rows.push(Row::Event(drawn));
        last = number;
    }
    push_gap(&mut rows, trace.len() - last as usize);
    rows
}

fn push_gap(rows: &mut Vec<Row>, count: usize) {
    if count > 0 {
        rows.push(Row::Gap(count));
    }
}

fn as_scheduled(
    trace: &Trace,
    proof: &Proof,
    shown: &BTreeSet<EventId>,
    faults: &BTreeSet<EventId>,
) -> Vec<Row> {
    let reordering = proof.reordering();
    let mut rest = shown.clone();
    let mut rows = Vec::new();
    let mut last = 0;
    for (step, event) in numbered(trace, reordering, shown.iter().copied().collect()) {
        push_gap(&mut rows, step - last - 1);
        last = step;
        rest.remove(&event);
        let role = if faults.contains(&event) { Role::Fault } else { Role::Step };
        let sees = sees(trace, reordering, event);
        rows.push(Row::Event(Drawn { event, role, sees }));
    }
    push_gap(&mut rows, steps_count(reordering) - last);
    let role = match proof.goal() {
        // In a deadlock the next events are there but cannot happen.
        Goal::Deadlock(_) | Goal::Stuck(_) => Role::Blocked,
        _ => Role::Next,
    };
    for event in proof.goal().next() {
        rest.remove(&event);
        rows.push(Row::Event(Drawn { event, role, sees: None }));
    }
    // What was to come in the run is of interest only where it is at fault.
    for event in rest.into_iter().filter(|event| faults.contains(event)) {
        rows.push(Row::Event(Drawn { event, role: Role::Never, sees: None }));
    }
    rows
}

/// The events at fault, in observed order.
fn faults(proof: &Proof, detail: &Detail) -> BTreeSet<EventId> {
    let mut faults: BTreeSet<EventId> = proof.goal().named().into_iter().collect();
    if let Goal::Order { absent, .. } = proof.goal() {
        faults.extend(absent);
    }
    if let Some(detail) = detail.nondeterminism() {
        faults.extend([detail.writer, detail.read, detail.interfering].into_iter().flatten());
    }
    faults
}

/// What the drawing of `finding` ends with, as pages know it.
pub fn goal(finding: &Finding) -> &'static str {
    if finding.detail.state().is_some() {
        return "state";
    }
    match finding.evidence.proof().map(Proof::goal) {
        Some(Goal::Race(..)) => "race",
        Some(Goal::Deadlock(_) | Goal::Stuck(_)) => "deadlock",
        Some(Goal::Enabled(_)) => "next",
        Some(
            Goal::Unordered(..)
            | Goal::Order { .. }
            | Goal::Sees { .. }
            | Goal::Reaches(_)
            | Goal::Leaves { .. },
        )
        | None => "order",
    }
}
