//! What a page draws of a hundred findings: the events of each in the order in which they were
//! observed and in that of its schedule, and what is said beside the drawing.
//!
//! What findings share is said once a chunk and named by its number: texts, threads, operations,
//! places, sets of locks. Events are a table of columns; a column that few events have a value in holds
//! those alone, by their numbers in the table.

use std::collections::BTreeMap;
use std::hash::Hash;

use reweave_analysis::Reported;
use reweave_base::FxHashMap;
use reweave_trace::views::{CriticalSection, Mode};
use reweave_trace::{EventId, NameKind, Op, ThreadId, Trace};
use serde::Serialize;

use super::code::{Code, FileView, Places};
use super::{Argument, Part};
use crate::Examined;
use crate::alternatives::{Choices, known_value};
use crate::confirmation::{CAVEAT, Replayed};
use crate::finding::{
    AS_OBSERVED, confirm_command, explain_command, heading, instances_note, remarks,
};
use crate::json::{self, unless_empty};
use crate::legend::Legend;
use crate::related::{Related, related};
use crate::schedule::{Extent, observed};
use crate::shown::capital;
use crate::site::{Site, holding_since};
use crate::slice::{self, Gap, Reach, Role, Slice};
use crate::standing;
use crate::state::{Known, Picture};

/// How many arrivals at a barrier a departure is drawn to come after.
const CAUSES_MAX: usize = 16;

/// Things that are numbered as they come.
#[derive(Debug)]
pub(super) struct Pool<T> {
    ids: FxHashMap<T, usize>,
    pub(super) all: Vec<T>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { ids: FxHashMap::default(), all: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Pool<T> {
    fn id(&mut self, item: T) -> usize {
        if let Some(&id) = self.ids.get(&item) {
            return id;
        }
        self.all.push(item.clone());
        self.ids.insert(item, self.all.len() - 1);
        self.all.len() - 1
    }
}

/// Texts as they are; the page shows what it cannot show as it is by escapes.
pub(super) type Strings = Pool<String>;

impl Strings {
    pub(super) fn text(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.ids.get(text) {
            return id as u32;
        }
        self.id(text.to_owned()) as u32
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct ThreadView {
    number: usize,
    name: u32,
    /// What the program calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    given: Option<u32>,
}

/// An operation, and how it is spelled if not in the usual way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct OpView {
    kind: &'static str,
    operand: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    spelled: Option<u32>,
}

/// A lock that is held, since which event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct HeldView {
    name: u32,
    since: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    shared: bool,
}

/// The events of a chunk, a column for each thing that is said of them.
#[derive(Debug, Default, Serialize)]
struct Events {
    number: Vec<u32>,
    thread: Vec<usize>,
    op: Vec<usize>,
    place: Vec<usize>,
    /// The locks held before.
    held: Vec<usize>,
    /// The locks held afterwards, where they are others.
    after: BTreeMap<usize, usize>,
    value: BTreeMap<usize, String>,
    /// The thread that a fork or a join is of.
    other: BTreeMap<usize, usize>,
    /// For a read the event that it saw; 0 is the initial value.
    saw: BTreeMap<usize, u32>,
    /// Those with which their threads start, and those with which they end.
    first: Vec<usize>,
    last: Vec<usize>,
    /// What woke it or let it go on.
    causes: BTreeMap<usize, Vec<u32>>,
}

/// A line of a drawing; the steps of a schedule are numbered by counting.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum RowView {
    /// An event that sees what it saw and is no more than a step.
    Step(usize),
    /// Any other: the event under the name of what it has to do with the finding.
    Event {
        #[serde(flatten)]
        event: RoleView,
        /// The event that it sees, 0 for the initial value, or null if that is not known; left out if it
        /// is the one that it saw.
        #[serde(skip_serializing_if = "Option::is_none")]
        sees: Option<Option<u32>>,
    },
    /// Events that are left out.
    Gap {
        gap: usize,
        /// The first and the last of them, to be shown if a reader asks for them.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        first: Vec<usize>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        last: Vec<usize>,
    },
}

/// An event under the name of its role.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum RoleView {
    Step(usize),
    Fault(usize),
    Next(usize),
    Blocked(usize),
    Never(usize),
    Ahead(usize),
}

impl RoleView {
    const fn new(role: Role, event: usize) -> Self {
        match role {
            Role::Step => Self::Step(event),
            Role::Fault => Self::Fault(event),
            Role::Next => Self::Next(event),
            Role::Blocked => Self::Blocked(event),
            Role::Never => Self::Never(event),
            Role::Ahead => Self::Ahead(event),
        }
    }
}

/// An event at fault: what its thread holds there and since where, and the calls that led there.
#[derive(Debug, Serialize)]
struct SiteView {
    event: usize,
    /// What its thread holds there and since where, if that is said in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    holding: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callers: Option<usize>,
    /// What its thread does there, where its operation does not say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
}

/// An event that a finding is about besides those at fault, and what it has to do with it.
#[derive(Debug, Serialize)]
struct RelatedView {
    what: String,
    /// The function that it is in, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<u32>,
    #[serde(flatten)]
    site: SiteView,
}

/// The values of a state.
#[derive(Debug, Serialize)]
struct KnownView {
    heading: &'static str,
    listed: Vec<TermView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<String>,
}

#[derive(Debug, Serialize)]
struct TermView {
    term: String,
    value: String,
}

/// What a read can see instead of what it saw.
#[derive(Debug, Serialize)]
struct ChoicesView {
    heading: String,
    listed: Vec<ChoiceView>,
    more: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    silence: Option<String>,
}

#[derive(Debug, Serialize)]
struct ChoiceView {
    write: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    silence: Option<String>,
}

/// What is said of a finding beyond what JSON reports have.
#[derive(Debug, Serialize)]
struct FindingView {
    /// Whether it happened, and how that is known: a sentence.
    standing: u32,
    sites: Vec<SiteView>,
    /// Other events that it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related: Vec<RelatedView>,
    /// Who started the threads, and what made-up names mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    legend: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<KnownView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    choices: Option<ChoicesView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirm: Option<String>,
    heading: u32,
    /// What the drawing is of: `race`, `deadlock`, `next`, `order` or `state`.
    goal: &'static str,
    observed: Vec<RowView>,
    predicted: Vec<RowView>,
    /// Whether the second order is how the observed run began.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    as_observed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remarks: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_confirmed: Option<String>,
    argument: ArgumentView,
}

/// Why something is a fault: what introduces that, and the paragraphs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct WhyView {
    heading: &'static str,
    paragraphs: Vec<u32>,
}

/// A command: what is before the id of the finding in it and what is after it, or all of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct CommandView {
    before: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<u32>,
}

/// An argument, what many findings share of it by its numbers in the chunk. Where JSON reports say why it
/// is a fault and how it is repaired, that is said there.
#[derive(Debug, Serialize)]
struct ArgumentView {
    why: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fix: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<Part>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<Part>,
}

/// What a chunk holds beside its findings.
#[derive(Debug, Serialize)]
pub(super) struct ChunkView {
    strings: Vec<String>,
    threads: Vec<ThreadView>,
    ops: Vec<OpView>,
    /// Names of the callers, the innermost first.
    callers: Vec<Vec<u32>>,
    reasons: Vec<WhyView>,
    commands: Vec<CommandView>,
    held: Vec<Vec<HeldView>>,
    places: Places,
    /// How many lines of code are shown on each side of a place.
    around: u32,
    files: Vec<FileView>,
    events: Events,
    findings: Vec<FindingView>,
}

/// What is collected for a chunk.
struct Builder<'a> {
    examined: Examined<'a>,
    legend: &'a Legend<'a>,
    reach: Reach,
    strings: Strings,
    threads: Pool<ThreadView>,
    ops: Pool<OpView>,
    callers: Pool<Vec<u32>>,
    reasons: Pool<WhyView>,
    commands: Pool<CommandView>,
    held: Pool<Vec<HeldView>>,
    code: Code<'a>,
    events: Events,
    by_event: FxHashMap<EventId, usize>,
}

/// What there is to draw of `findings`, which are of `examined` and its `legend`; `argue` says why each
/// is a fault.
pub(super) fn chunk(
    examined: &Examined<'_>,
    legend: &Legend<'_>,
    findings: &[Reported],
    reach: Reach,
    argue: impl Fn(&Reported) -> Argument,
) -> ChunkView {
    let mut builder = Builder {
        examined: *examined,
        legend,
        reach,
        strings: Strings::default(),
        threads: Pool::default(),
        ops: Pool::default(),
        callers: Pool::default(),
        reasons: Pool::default(),
        commands: Pool::default(),
        held: Pool::default(),
        code: Code::new(examined.sources, reach.code_around, reach.is_code_whole),
        events: Events::default(),
        by_event: FxHashMap::default(),
    };
    let findings =
        findings.iter().map(|reported| builder.finding(reported, argue(reported))).collect();
    ChunkView {
        findings,
        strings: builder.strings.all,
        threads: builder.threads.all,
        ops: builder.ops.all,
        callers: builder.callers.all,
        reasons: builder.reasons.all,
        commands: builder.commands.all,
        held: builder.held.all,
        places: builder.code.places,
        around: reach.code_around,
        files: builder.code.files,
        events: builder.events,
    }
}

impl Builder<'_> {
    fn finding(&mut self, reported: &Reported, argument: Argument) -> FindingView {
        let (trace, finding) = (self.examined.trace, &reported.finding);
        let proof = finding.evidence.proof();
        let slice =
            Slice::new(trace, finding, self.reach, &[]).drawn_once_if_it_happened(trace, finding);
        // Numbers follow the observed order, whatever order is drawn first.
        for event in slice.events() {
            self.event(event, self.reach.is_code_whole);
        }
        let picture = Picture::new(trace, finding, Extent::BRIEF);
        let heading = match (&picture, proof) {
            (Some(picture), _) => picture.heading,
            (None, Some(proof)) if !slice.predicted.is_empty() => heading(finding, proof),
            (None, _) => AS_OBSERVED,
        };
        // The page marks them by their colour.
        let heading = match heading.split_once(" (>") {
            Some((heading, _)) => format!("{heading}:"),
            None => heading.to_owned(),
        };
        let replayed = self.examined.replayed(&reported.id);
        let (confirmed, not_confirmed) = replayed_view(replayed);
        let gaps = slice.gaps(trace, finding, self.reach);
        FindingView {
            standing: self.strings.text(&standing::sentence(trace, finding, replayed)),
            sites: finding.events.iter().map(|&event| self.site(event)).collect(),
            related: self.related(reported),
            legend: unless_empty(self.legend.lines(finding)),
            note: instances_note(reported),
            known: finding.detail.state().and_then(|state| known_view(&Known::new(state))),
            choices: Choices::new(trace, finding).map(choices_view),
            explain: explain_command(&self.examined, reported)
                .map(|it| self.command(&it, reported)),
            confirm: confirm_command(&self.examined, reported),
            heading: self.strings.text(&heading),
            goal: slice::goal(finding),
            observed: self.rows(&slice.observed, &gaps.observed),
            predicted: self.rows(&slice.predicted, &gaps.predicted),
            as_observed: standing::is_as_observed(trace, finding),
            notes: picture.and_then(|picture| unless_empty(picture.notes)),
            remarks: proof.and_then(|proof| unless_empty(remarks(trace, proof))),
            confirmed,
            not_confirmed,
            argument: self.argument(argument),
        }
    }

    /// The rows of a drawing, with what there is to show of its `gaps`.
    fn rows(&mut self, rows: &[slice::Row], gaps: &[Gap]) -> Vec<RowView> {
        let trace = self.examined.trace;
        let mut gaps = gaps.iter();
        let row = |row: &slice::Row| match *row {
            slice::Row::Gap(count) => {
                let gap = gaps.next();
                let mut events = |of: fn(&Gap) -> &[EventId]| {
                    let events = gap.map_or(&[][..], of).iter();
                    events.map(|&event| self.event(event, false)).collect()
                };
                let (first, last) = (events(|gap| &gap.first), events(|gap| &gap.last));
                RowView::Gap { gap: count, first, last }
            }
            slice::Row::Event(drawn) => {
                let event = self.event(drawn.event, self.reach.is_code_whole);
                let saw = observed(trace, drawn.event);
                let is_known = !matches!(drawn.role, Role::Next | Role::Blocked | Role::Never);
                let sees = (is_known && drawn.sees != saw)
                    .then(|| drawn.sees.map(|sees| sees.write().map_or(0, EventId::number)));
                match (drawn.role, sees) {
                    (Role::Step, None) => RowView::Step(event),
                    (role, sees) => RowView::Event { event: RoleView::new(role, event), sees },
                }
            }
        };
        rows.iter().map(row).collect()
    }

    fn argument(&mut self, argument: Argument) -> ArgumentView {
        let Argument { why_heading, mut why, mut fix, before, after } = argument;
        // The first paragraph is that of the kind of fault, which all share.
        why.truncate(1);
        if json::is_argued(&self.examined) {
            why.clear();
            fix.clear();
        }
        let mut texts =
            |texts: Vec<String>| texts.iter().map(|text| self.strings.text(text)).collect();
        let (paragraphs, fix) = (texts(why), texts(fix));
        let why = self.reasons.id(WhyView { heading: why_heading, paragraphs });
        ArgumentView { why, fix, before, after }
    }

    /// `command` cut where it names `reported`: findings share the rest.
    fn command(&mut self, command: &str, reported: &Reported) -> usize {
        let name = format!(" {}", reported.id);
        let parts = command.split_once(&format!("{name} "));
        let (before, after) = match (parts, command.strip_suffix(&name)) {
            (Some((before, after)), _) => (format!("{before} "), Some(format!(" {after}"))),
            (None, Some(before)) => (format!("{before} "), Some(String::new())),
            (None, None) => (command.to_owned(), None),
        };
        let after = after.map(|after| self.strings.text(&after));
        let before = self.strings.text(&before);
        self.commands.id(CommandView { before, after })
    }

    /// What a finding is about besides its events; nothing of one among very many.
    fn related(&mut self, reported: &Reported) -> Vec<RelatedView> {
        if !self.reach.is_code_whole {
            return Vec::new();
        }
        let trace = self.examined.trace;
        let related = related(trace, &reported.finding).into_iter();
        let view = |Related { event, what }| {
            let function = Site::new(trace, event).function();
            let function = function.map(|function| self.strings.text(function));
            RelatedView { what, function, site: self.site(event) }
        };
        related.map(view).collect()
    }

    fn site(&mut self, event: EventId) -> SiteView {
        let trace = self.examined.trace;
        let site = Site::new(trace, event);
        self.code.place(site.location, true, &mut self.strings);
        let holding = self.reach.is_code_whole.then(|| holding_since(trace, event));
        let holding = holding.map(|holding| self.strings.text(&holding));
        let callers = site.callers();
        let callers: Vec<u32> = callers.iter().map(|frame| self.strings.text(frame)).collect();
        let callers = (!callers.is_empty()).then(|| self.callers.id(callers));
        let action = crate::explain::action(trace, event);
        SiteView { event: self.event(event, true), holding, callers, action }
    }

    /// The number of `event` in the chunk.
    fn event(&mut self, event: EventId, has_code: bool) -> usize {
        if let Some(&at) = self.by_event.get(&event) {
            return at;
        }
        let at = self.events.number.len();
        self.by_event.insert(event, at);
        self.push_event(event, at, has_code);
        at
    }

    fn push_event(&mut self, id: EventId, at: usize, has_code: bool) {
        let trace = self.examined.trace;
        let (event, names) = (trace.event(id), trace.names());
        let [before, after] = held_around(trace, id);
        let thread = self.thread(event.thread);
        let op = self.op(event.op);
        let place = self.code.place(names.location(event.site), has_code, &mut self.strings);
        let held = self.held_set(&before);
        let events = &mut self.events;
        events.number.push(id.number());
        events.thread.push(thread);
        events.op.push(op);
        events.place.push(place);
        events.held.push(held);
        events.value.extend(known_value(trace, id).map(|value| (at, value.to_string())));
        let saw = observed(trace, id).map(|seen| seen.write().map_or(0, EventId::number));
        events.saw.extend(saw.map(|saw| (at, saw)));
        let of_thread = trace.thread_events(event.thread);
        events.first.extend((of_thread.first() == Some(&id)).then_some(at));
        events.last.extend((of_thread.last() == Some(&id)).then_some(at));
        let causes = causes(trace, id);
        if !causes.is_empty() {
            events.causes.insert(at, causes);
        }
        if before != after {
            let after = self.held_set(&after);
            self.events.after.insert(at, after);
        }
        if let Op::Thread(_, other) = event.op {
            let other = self.thread(other);
            self.events.other.insert(at, other);
        }
    }

    fn op(&mut self, op: Op) -> usize {
        let names = self.examined.trace.names();
        let kind = op.kind().as_str();
        let operand = match op.kind().operand() {
            NameKind::None => "",
            space => names.name(space, op.encode().1),
        };
        let (spelled, usual) = (names.spell(op).to_string(), format!("{kind}({operand})"));
        let spelled = (spelled != usual).then(|| self.strings.text(&spelled));
        self.ops.id(OpView { kind, operand: self.strings.text(operand), spelled })
    }

    fn thread(&mut self, thread: ThreadId) -> usize {
        let names = self.examined.trace.names();
        let name = self.strings.text(names.threads.name(thread));
        let given = names.given_name(thread).map(|given| self.strings.text(given));
        self.threads.id(ThreadView { number: reweave_base::Id::index(thread), name, given })
    }

    /// Which locks are held in `sections`.
    fn held_set(&mut self, sections: &[CriticalSection]) -> usize {
        let names = &self.examined.trace.names().locks;
        let held = sections.iter().map(|section| HeldView {
            name: self.strings.text(names.name(section.lock)),
            since: section.acquire.number(),
            shared: section.mode == Mode::Shared,
        });
        let held = held.collect();
        self.held.id(held)
    }
}

/// What let `event` happen: the notify that woke it, the post that it took, the arrivals at its barrier.
fn causes(trace: &Trace, event: EventId) -> Vec<u32> {
    slice::causes(trace, event).into_iter().take(CAUSES_MAX).map(EventId::number).collect()
}

/// The sections that the thread of `event` is in before it and after it, the oldest first.
fn held_around(trace: &Trace, event: EventId) -> [Vec<CriticalSection>; 2] {
    let (thread, sections) = (trace.event(event).thread, trace.sections());
    let mut before: Vec<CriticalSection> = sections.held(thread, event).copied().collect();
    let mut after: Vec<CriticalSection> = sections.held_after(thread, event).copied().collect();
    before.reverse();
    after.reverse();
    [before, after]
}

fn replayed_view(replayed: Option<&Replayed>) -> (Option<String>, Option<String>) {
    match replayed {
        None => (None, None),
        Some(Replayed::Confirmed { times, attempts, details }) => {
            let details = format!("{times} of {attempts} replays. {}", capital(details));
            (Some(details.trim_end().to_owned()), None)
        }
        Some(Replayed::NotConfirmed { reason }) => {
            (None, Some(format!("{}. {CAVEAT}", reason.trim_end_matches('.'))))
        }
    }
}

fn known_view(known: &Known<'_>) -> Option<KnownView> {
    let term =
        |&(term, value): &(&str, &str)| TermView { term: term.to_owned(), value: value.to_owned() };
    let listed = known.listed.iter().map(term).collect();
    Some(KnownView { heading: known.heading()?, listed, more: known.unlisted_note() })
}

fn choices_view(choices: Choices) -> ChoicesView {
    let listed = choices.listed.into_iter();
    let listed = listed.map(|it| ChoiceView { write: it.write, silence: it.silence });
    ChoicesView {
        heading: choices.heading,
        listed: listed.collect(),
        more: choices.unlisted_count,
        silence: choices.silence,
    }
}
