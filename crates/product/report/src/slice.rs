//! The part of a run that is shown for one finding: its events as they were observed, and as the
//! schedule runs them.
//!
//! The slice holds the events at fault, the critical sections around them, what the reads among them
//! see, the lock that was handed over between them, and what their threads did last before. What is
//! left out is counted. A slice is bounded by its [`Reach`], however long the trace is.

use std::collections::BTreeSet;

use reweave_analysis::{Detail, Finding, Kind, Proof};
use reweave_trace::{BarrierOp, ConditionOp, EventId, Goal, LockOp, Op, SemaphoreOp, Trace};

use crate::relevance::steps_that_matter;
use crate::schedule::{
    self, Extent, Label, Seen, numbered, observed, sees, steps, steps_after, steps_count, steps_of,
};
use crate::standing;
use crate::state::Picture;

/// How much of a run is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// How many steps of each thread at fault, up to the fault.
    steps_max: usize,
    /// How many of the steps that matter instead, of a schedule that is not drawn in full; none if the last steps are
    /// to do.
    told_max: usize,
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
    /// How many events of a gap can be shown if a reader asks for them.
    gap_max: usize,
    /// Whether what woke a thread is drawn with its waking.
    has_causes: bool,
}

/// How many steps are drawn at most, where so many are at fault or tell why.
const TOLD_MOST: usize = 40;

/// How many events of all gaps of an order can be shown.
const GAPS_MAX: usize = 160;

/// How many events are drawn for no other reason than that they woke others.
const CAUSES_MAX: usize = 8;

impl Reach {
    /// For one finding among very many.
    pub const LEAN: Self = Self {
        steps_max: 3,
        told_max: 0,
        whole_max: 14,
        sections_max: 2,
        handover_max: 64,
        state: Extent::BRIEF,
        code_around: 0,
        is_code_whole: false,
        gap_max: 0,
        has_causes: false,
    };
    /// For one finding among others.
    pub const BRIEF: Self = Self {
        steps_max: 8,
        told_max: 12,
        whole_max: 24,
        sections_max: 4,
        handover_max: 64,
        state: Extent::BRIEF,
        code_around: 3,
        is_code_whole: true,
        gap_max: 40,
        has_causes: true,
    };
    /// For a finding that has the page to itself.
    pub const FULL: Self = Self {
        steps_max: 24,
        told_max: 24,
        whole_max: 200,
        sections_max: 8,
        state: Extent::FULL,
        ..Self::BRIEF
    };
    /// For both orders side by side in a text, which names the chain between them by itself.
    pub const COMPARED: Self = Self {
        steps_max: 0,
        told_max: 0,
        whole_max: 24,
        handover_max: 0,
        has_causes: false,
        ..Self::BRIEF
    };
}

/// What is drawn for a finding.
#[derive(Debug, Default)]
pub struct Slice {
    /// As it was observed.
    pub observed: Vec<Row>,
    /// As the schedule runs it; empty if there is none.
    pub predicted: Vec<Row>,
}

/// The events of a gap that can be shown: the first and the last of them.
#[derive(Clone, Debug, Default)]
pub struct Gap {
    pub first: Vec<EventId>,
    pub last: Vec<EventId>,
}

/// What can be shown of the gaps of both orders, in the order of the gaps.
#[derive(Debug, Default)]
pub struct Gaps {
    pub observed: Vec<Gap>,
    pub predicted: Vec<Gap>,
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

/// What an event has to do with the finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It happens.
    Step,
    /// It happens and is at fault.
    Fault,
    /// It is next at the end.
    Next,
    /// It is next at the end, and cannot happen.
    Blocked,
    /// It does not happen.
    Never,
    /// It comes after the state.
    Ahead,
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

    /// The same with one order only, where `finding` happened in the run: threads that were stuck in it
    /// wait at their last events.
    pub fn drawn_once_if_it_happened(mut self, trace: &Trace, finding: &Finding) -> Self {
        if !standing::happened(trace, finding) {
            return self;
        }
        if standing::is_as_observed(trace, finding) {
            self.observed = std::mem::take(&mut self.predicted);
            return self;
        }
        for row in &mut self.observed {
            if let Row::Event(drawn) = row
                && drawn.role == Role::Fault
                && standing::is_stuck_at(trace, drawn.event)
            {
                drawn.role = Role::Blocked;
            }
        }
        self.predicted.clear();
        self
    }

    /// What can be shown of what it leaves out of the order of `trace` and of that of the schedule of
    /// `finding`.
    pub fn gaps(&self, trace: &Trace, finding: &Finding, reach: Reach) -> Gaps {
        if reach.gap_max == 0 {
            return Gaps::default();
        }
        let as_observed = |from: usize, count: usize| -> Vec<EventId> {
            let numbers = from + 1..=from + count;
            numbers.filter_map(|number| trace.numbered(number as u32)).collect()
        };
        let predicted = finding.evidence.proof().map(|proof| {
            let reordering = proof.reordering();
            gaps(&self.predicted, reach, steps_count(reordering), |from, count| {
                steps_after(trace, reordering, from, count)
            })
        });
        Gaps {
            observed: gaps(&self.observed, reach, trace.len(), as_observed),
            predicted: predicted.unwrap_or_default(),
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

/// What can be shown of each gap of `rows`, an order of `total` events of which `events` gives some from
/// anywhere.
fn gaps(
    rows: &[Row],
    reach: Reach,
    total: usize,
    events: impl Fn(usize, usize) -> Vec<EventId>,
) -> Vec<Gap> {
    let count = rows.iter().filter(|row| matches!(row, Row::Gap(_))).count();
    // Each gap has its share.
    let max = reach.gap_max.min(GAPS_MAX / count.max(1));
    let mut at = 0;
    let mut gaps = Vec::new();
    for row in rows {
        match *row {
            Row::Event(_) => at += 1,
            Row::Gap(count) => {
                // What comes after a schedule has no order.
                gaps.push(match (at + count <= total, count <= max) {
                    (false, _) => Gap::default(),
                    (true, true) => Gap { first: events(at, count), last: Vec::new() },
                    (true, false) => Gap {
                        first: events(at, max / 2),
                        last: events(at + count - max / 2, max / 2),
                    },
                });
                at += count;
            }
        }
    }
    gaps
}

/// What let `event` happen in the observed run: the notify that woke it, the post that it took, or
/// the arrivals of other threads at its barrier.
pub fn causes(trace: &Trace, event: EventId) -> Vec<EventId> {
    let signals = trace.signals();
    let happening = trace.event(event);
    match happening.op {
        Op::Condition(ConditionOp::Wake, _) => {
            signals.wait_interval(event).and_then(|interval| interval.notify).into_iter().collect()
        }
        Op::Semaphore(SemaphoreOp::Take, _) => signals.post(event).into_iter().collect(),
        Op::Barrier(BarrierOp::Depart, _) => {
            let generation = signals.needed_generation(event).map(|id| signals.generation(id));
            let arrivals = generation.map_or(&[][..], |generation| &generation.arrivals);
            let of_others = |it: &EventId| trace.event(*it).thread != happening.thread;
            arrivals.iter().copied().filter(of_others).collect()
        }
        _ => Vec::new(),
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
    if reach.has_causes {
        let woken: Vec<EventId> = shown.iter().flat_map(|&it| causes(trace, it)).collect();
        shown.extend(woken.into_iter().take(CAUSES_MAX));
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
    // A short schedule is drawn whole: a gap would take as much room as what it hides.
    if steps_count(reordering) <= reach.whole_max {
        let mut shown = around(trace, faults, reach);
        shown.extend(steps(trace, reordering));
        return shown;
    }
    let is_told = reach.told_max > 0;
    let steps_max = if is_told { 0 } else { reach.steps_max };
    let mut shown = around(trace, faults, Reach { steps_max, ..reach });
    if is_told {
        shown.extend(steps_that_matter(trace, proof, reach.told_max, TOLD_MOST));
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
    let row = |event: EventId| {
        let role = if faults.contains(&event) { Role::Fault } else { Role::Step };
        Row::Event(Drawn { event, role, sees: sees(trace, reordering, event) })
    };
    for (step, event) in numbered(trace, reordering, shown.iter().copied().collect()) {
        // Leaving out a single step takes as much room as the step.
        if step - last == 2 {
            rows.extend(steps_after(trace, reordering, last, 1).into_iter().map(row));
        } else {
            push_gap(&mut rows, step - last - 1);
        }
        last = step;
        rest.remove(&event);
        rows.push(row(event));
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
        Some(Goal::Deadlock(_)) => "deadlock",
        Some(Goal::Stuck(_)) => "stuck",
        Some(Goal::Enabled(_)) => "next",
        Some(
            Goal::Unordered(..)
            | Goal::Order { .. }
            | Goal::Sees { .. }
            | Goal::Reaches(_)
            | Goal::Leaves { .. },
        ) => "order",
        None if matches!(finding.kind, Kind::Stuck | Kind::Deadlock) => "stuck",
        None => "order",
    }
}
