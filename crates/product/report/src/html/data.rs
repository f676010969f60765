//! What a page's script is given: the list of findings, and by the hundred what there is to say of
//! each.
//!
//! The list is read when the page opens, a chunk when one of its findings is looked at. What findings
//! share is said once a chunk: names, events, places in the code, stacks, sets of locks. Lists of
//! numbers stand for structures, in the order of the fields here.

use std::hash::Hash;

use reweave_analysis::{Guarantee, Kind, Reported};
use reweave_base::FxHashMap;
use reweave_trace::views::{CriticalSection, Mode};
use reweave_trace::{EventId, NameKind, Op, ThreadId, Trace};
use serde::Serialize;

use super::code::{Code, Lines, PlaceEntry};
use super::slice::{self, Reach, Role, Slice};
use crate::alternatives::{Choices, known_value};
use crate::confirmation::Replayed;
use crate::left_out::{accounts, counters};
use crate::legend::Legend;
use crate::schedule::{is_prefix, observed};
use crate::shown::shown;
use crate::site::{Site, holding_since, place};
use crate::state::{Known, Picture};
use crate::text::size;
use crate::{Examined, heading, instances_note, next, remarks, summary, title};

/// How many findings a chunk holds.
pub(super) const CHUNK: usize = 100;

/// What the page is of, and the list of findings.
#[derive(Serialize)]
pub(super) struct List {
    /// What it is called.
    pub(super) heading: String,
    /// Whether one finding has the page to itself.
    pub(super) is_explanation: bool,
    /// How many findings a chunk holds.
    pub(super) chunk: usize,
    /// Kinds, the worst first.
    pub(super) kinds: [&'static str; Kind::ALL.len()],
    /// Guarantees, the strongest first, and what they mean.
    pub(super) guarantees: [(&'static str, &'static str); 3],
    pub(super) traces: Vec<TraceEntry>,
    pub(super) strings: Vec<String>,
    pub(super) findings: Vec<ListEntry>,
}

/// A trace, and how far it was examined.
#[derive(Serialize)]
pub(super) struct TraceEntry {
    name: String,
    size: String,
    summary: String,
    repairs: Vec<String>,
    coverage: Vec<CoverageEntry>,
    known: u64,
    suppressed: u64,
}

#[derive(Serialize)]
struct CoverageEntry {
    counters: String,
    incomplete: Option<&'static str>,
    left_out: Vec<String>,
}

/// A finding in the list: trace, id, kind, guarantee, message, count, confirmed (0 if it was not
/// replayed, 1 if not, 2 if so), chunk and place in it, where it is, and names that are to be found
/// though the message does not say them.
#[derive(Serialize)]
pub(super) struct ListEntry(
    usize,
    String,
    usize,
    usize,
    String,
    u64,
    u8,
    usize,
    usize,
    u32,
    Vec<u32>,
);

impl List {
    /// The list of what was found in `examined`.
    pub(super) fn new(examined: &[Examined<'_>]) -> Self {
        let mut list = Self {
            heading: "What else these runs could have done".to_owned(),
            is_explanation: false,
            chunk: CHUNK,
            kinds: Kind::ALL.map(Kind::as_str),
            guarantees: GUARANTEES.map(|it| (it.as_str(), it.meaning())),
            traces: examined.iter().map(trace_entry).collect(),
            strings: Vec::new(),
            findings: Vec::new(),
        };
        let mut strings = Strings::default();
        let mut first_chunk = 0;
        for (at, examined) in examined.iter().enumerate() {
            let findings = &examined.outcome.findings;
            for (number, reported) in findings.iter().enumerate() {
                let place = (at, first_chunk + number / CHUNK, number % CHUNK);
                list.findings.push(list_entry(&mut strings, examined, reported, place));
            }
            first_chunk += findings.len().div_ceil(CHUNK);
        }
        list.strings = strings.all;
        list
    }

    /// A list of `reported` alone, one of the findings of `examined`.
    pub(super) fn of_one(examined: &Examined<'_>, reported: &Reported) -> Self {
        let mut strings = Strings::default();
        let findings = vec![list_entry(&mut strings, examined, reported, (0, 0, 0))];
        let outcome = reweave_analysis::Outcome::default();
        let empty = Examined { outcome: &outcome, ..*examined };
        let mut list = Self::new(&[empty]);
        list.traces[0].summary = String::new();
        Self { is_explanation: true, findings, strings: strings.all, ..list }
    }
}

const GUARANTEES: [Guarantee; 3] = [Guarantee::Witnessed, Guarantee::First, Guarantee::Unordered];

fn list_entry(
    strings: &mut Strings,
    examined: &Examined<'_>,
    reported: &Reported,
    (trace_at, chunk, at): (usize, usize, usize),
) -> ListEntry {
    let Reported { id, finding, .. } = reported;
    let names = examined.trace.names();
    let message = shown(&finding.message).into_owned();
    let mut words: Vec<u32> = Vec::new();
    let mut first = None;
    for &event in &finding.events {
        let event = examined.trace.event(event);
        let op = names.spell(event.op).to_string();
        let location = place(names.location(event.site));
        first.get_or_insert_with(|| strings.id(&location));
        let said = [names.threads.name(event.thread), &op, &location];
        let unsaid = said.into_iter().filter(|text| !message.contains(text));
        words.extend(unsaid.map(|text| strings.id(text)));
    }
    words.dedup();
    let first = first.unwrap_or_else(|| strings.id(""));
    let replayed = match examined.replayed(id) {
        None => 0,
        Some(Replayed::NotConfirmed { .. }) => 1,
        Some(Replayed::Confirmed { .. }) => 2,
    };
    let kind = Kind::ALL.iter().position(|&kind| kind == finding.kind).unwrap_or(0);
    let guarantee = GUARANTEES.iter().position(|&it| it == finding.guarantee()).unwrap_or(0);
    let (id, count) = (id.clone(), finding.count);
    ListEntry(trace_at, id, kind, guarantee, message, count, replayed, chunk, at, first, words)
}

fn trace_entry(examined: &Examined<'_>) -> TraceEntry {
    let Examined { path, trace, outcome, set_aside, .. } = *examined;
    let coverage = accounts(outcome).map(|(coverage, left_out)| CoverageEntry {
        counters: counters(coverage),
        incomplete: coverage.truncated.map(|reason| reason.as_str()),
        left_out,
    });
    TraceEntry {
        name: shown(title(path)).into_owned(),
        size: size(trace),
        summary: shown(&summary(outcome)).into_owned(),
        repairs: trace.repairs().iter().map(|it| shown(&it.to_string()).into_owned()).collect(),
        coverage: coverage.collect(),
        known: set_aside.known,
        suppressed: set_aside.suppressed,
    }
}

/// What there is to say of some findings of one trace.
#[derive(Serialize)]
pub(super) struct Chunk {
    strings: Vec<String>,
    /// Number and name.
    threads: Vec<(usize, u32)>,
    /// Names of the callers, the innermost first.
    calls: Vec<Vec<u32>>,
    /// Name, and whether it is held in shared mode.
    held: Vec<Vec<(u32, u8, u32)>>,
    places: Vec<PlaceEntry>,
    /// Name, and lines by their numbers.
    files: Vec<(u32, Lines)>,
    events: Vec<EventEntry>,
    findings: Vec<FindingEntry>,
}

/// Number, thread, kind of operation, operand, how the operation is spelled if not in the usual way,
/// place, locks held, value, for a fork or a join the thread it is of, for a read what it saw
/// (0 is the initial value), and for what takes or gives back a lock the locks held afterwards.
#[derive(Serialize)]
struct EventEntry(
    u32,
    usize,
    &'static str,
    u32,
    Option<u32>,
    usize,
    usize,
    Option<String>,
    Option<usize>,
    Option<u32>,
    Option<usize>,
);

/// An event at fault: the event, the function that it is in, what its thread holds there and since
/// where, and the calls that led there.
#[derive(Serialize)]
struct SiteEntry(usize, Option<u32>, u32, usize);

#[derive(Serialize)]
struct FindingEntry {
    fingerprint: String,
    analysis: u32,
    sites: Vec<SiteEntry>,
    /// Who started the threads, and what made-up names mean.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    legend: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<KnownEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    choices: Option<ChoicesEntry>,
    /// The commands that explain it and replay it.
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirm: Option<String>,
    /// Why it is a fault and is possible, if it is explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    argument: Option<Argument>,
    /// What introduces the drawing.
    heading: u32,
    /// What the drawing is of: `race`, `deadlock`, `next`, `order` or `state`.
    goal: &'static str,
    observed: Vec<RowEntry>,
    predicted: Vec<RowEntry>,
    /// Whether the predicted order is how the observed run began.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_as_observed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_confirmed: Option<String>,
}

/// A row of a drawing. Steps are numbered by counting.
#[derive(Serialize)]
#[serde(untagged)]
enum RowEntry {
    /// How many events are left out, negative; or an event that happens and sees what it saw.
    Plain(i64),
    /// Event and role; it sees what it saw, or is no step.
    Event(usize, u8),
    /// Event, role, and the number of the event that it sees: 0 is the initial value, and -1 that this
    /// is not known.
    Sees(usize, u8, i64),
}

#[derive(Serialize)]
struct KnownEntry {
    heading: &'static str,
    listed: Vec<(String, String)>,
    more: Option<String>,
}

#[derive(Serialize)]
struct ChoicesEntry {
    heading: String,
    listed: Vec<(String, Option<String>)>,
    more: usize,
    silence: Option<String>,
}

/// Things that are numbered as they come.
#[derive(Debug)]
struct Pool<T> {
    ids: FxHashMap<T, usize>,
    all: Vec<T>,
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

/// Texts, ready to be shown, that are numbered as they come.
#[derive(Debug, Default)]
pub(super) struct Strings {
    ids: FxHashMap<String, u32>,
    all: Vec<String>,
}

impl Strings {
    pub(super) fn id(&mut self, text: &str) -> u32 {
        let text = shown(text);
        if let Some(&id) = self.ids.get(text.as_ref()) {
            return id;
        }
        let id = self.all.len() as u32;
        self.all.push(text.clone().into_owned());
        self.ids.insert(text.into_owned(), id);
        id
    }
}

/// What becomes a chunk.
struct Builder<'a> {
    examined: Examined<'a>,
    legend: &'a Legend<'a>,
    reach: Reach,
    strings: Strings,
    threads: Pool<(usize, u32)>,
    calls: Pool<Vec<u32>>,
    held: Pool<Vec<(u32, u8, u32)>>,
    code: Code<'a>,
    events: Vec<EventEntry>,
    by_event: FxHashMap<EventId, usize>,
}

/// Why a finding is a fault and is possible: what is said before its drawing, and after it.
#[derive(Serialize)]
pub(crate) struct Argument {
    pub(crate) before: Vec<Part>,
    pub(crate) after: Vec<Part>,
}

/// A part of an argument. Its texts are shown as they are.
#[derive(Serialize)]
pub(crate) struct Part {
    pub(crate) heading: &'static str,
    /// Steps of a schedule: the number, the thread, what it does, and why it may.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<[String; 4]>,
    pub(crate) paragraphs: Vec<String>,
    /// Whether the paragraphs are lines that belong together.
    pub(crate) is_list: bool,
}

impl Chunk {
    /// What there is to say of `findings`, which are of `examined` and its `legend`; `argument` is
    /// that for the only one.
    pub(super) fn new(
        examined: &Examined<'_>,
        legend: &Legend<'_>,
        findings: &[Reported],
        reach: Reach,
        argument: Option<Argument>,
    ) -> Self {
        let mut builder = Builder {
            examined: *examined,
            legend,
            reach,
            strings: Strings::default(),
            threads: Pool::default(),
            calls: Pool::default(),
            held: Pool::default(),
            code: Code::new(examined.sources, reach.code_around),
            events: Vec::new(),
            by_event: FxHashMap::default(),
        };
        let mut entries: Vec<FindingEntry> =
            findings.iter().map(|reported| builder.finding(reported)).collect();
        if let [only] = &mut entries[..] {
            only.argument = argument;
        }
        let (places, files) = builder.code.finish();
        Self {
            strings: builder.strings.all,
            threads: builder.threads.all,
            calls: builder.calls.all,
            held: builder.held.all,
            places,
            files,
            events: builder.events,
            findings: entries,
        }
    }
}

impl Builder<'_> {
    fn finding(&mut self, reported: &Reported) -> FindingEntry {
        let (trace, finding) = (self.examined.trace, &reported.finding);
        let proof = finding.evidence.proof();
        let slice = Slice::new(trace, finding, self.reach);
        // Numbers go by what was observed, whatever order is drawn first.
        for event in slice.events() {
            self.event(event);
        }
        let picture = Picture::new(trace, finding, crate::table::Extent::BRIEF);
        let (confirmed, not_confirmed) = replayed_entry(self.examined.replayed(&reported.id));
        FindingEntry {
            fingerprint: reported.fingerprint.to_string(),
            analysis: self.strings.id(finding.analysis),
            sites: finding.events.iter().map(|&event| self.site(event)).collect(),
            legend: self.legend.lines(finding),
            note: instances_note(finding),
            known: finding.detail.state().and_then(|state| known_entry(&Known::new(state))),
            choices: Choices::new(trace, finding).as_ref().map(choices_entry),
            explain: next::explain(&self.examined, reported).map(|it| shown(&it).into_owned()),
            confirm: next::confirm(&self.examined, reported).map(|it| shown(&it).into_owned()),
            argument: None,
            heading: self.strings.id(match (&picture, proof) {
                (Some(picture), _) => picture.heading,
                (None, Some(proof)) => heading(proof),
                (None, None) => "As it was observed:",
            }),
            goal: slice::goal(finding),
            observed: self.rows(&slice.observed),
            predicted: self.rows(&slice.predicted),
            is_as_observed: proof.is_some_and(|proof| is_prefix(trace, proof.reordering())),
            notes: picture.map_or_else(Vec::new, |picture| shown_all(&picture.notes)),
            remarks: proof.map_or_else(Vec::new, |proof| shown_all(&remarks(trace, proof))),
            confirmed,
            not_confirmed,
        }
    }

    fn rows(&mut self, rows: &[slice::Row]) -> Vec<RowEntry> {
        let trace = self.examined.trace;
        let row = |row: &slice::Row| match *row {
            slice::Row::Gap(count) => RowEntry::Plain(-(count as i64)),
            slice::Row::Event(drawn) => {
                let (event, role) = (self.event(drawn.event), drawn.role as u8);
                match (drawn.role, drawn.sees) {
                    (Role::Next | Role::Blocked | Role::Never, _) => RowEntry::Event(event, role),
                    (_, sees) if sees != observed(trace, drawn.event) => {
                        let seen = sees.map(|sees| sees.write().map_or(0, EventId::number));
                        RowEntry::Sees(event, role, seen.map_or(-1, i64::from))
                    }
                    (Role::Step, _) => RowEntry::Plain(event as i64),
                    (Role::Fault | Role::Ahead, _) => RowEntry::Event(event, role),
                }
            }
        };
        rows.iter().map(row).collect()
    }

    fn site(&mut self, event: EventId) -> SiteEntry {
        let trace = self.examined.trace;
        let site = Site::new(trace, event);
        self.code.place(site.location, true, &mut self.strings);
        let function = site.function().map(|name| self.strings.id(name));
        let holding = self.strings.id(&holding_since(trace, event));
        let callers = site.callers();
        let callers = callers.into_iter().map(|frame| self.strings.id(frame)).collect();
        SiteEntry(self.event(event), function, holding, self.calls.id(callers))
    }

    /// The number of `event` in the chunk.
    fn event(&mut self, event: EventId) -> usize {
        if let Some(&at) = self.by_event.get(&event) {
            return at;
        }
        let entry = self.event_entry(event);
        self.events.push(entry);
        self.by_event.insert(event, self.events.len() - 1);
        self.events.len() - 1
    }

    fn event_entry(&mut self, id: EventId) -> EventEntry {
        let trace = self.examined.trace;
        let (event, names) = (trace.event(id), trace.names());
        let kind = event.op.kind();
        let (_, operand) = event.op.encode();
        let operand = match kind.operand() {
            NameKind::None => "",
            space => names.name(space, operand),
        };
        let (spelled, usual) =
            (names.spell(event.op).to_string(), format!("{}({operand})", kind.as_str()));
        let other = match event.op {
            Op::Thread(_, thread) => Some(thread),
            _ => None,
        };
        let [before, after] = held_around(trace, id);
        let is_changed = before != after;
        let held = held_entry(trace, &before, &mut self.strings);
        let after = is_changed.then(|| held_entry(trace, &after, &mut self.strings));
        let location = names.location(event.site);
        EventEntry(
            id.number(),
            self.thread(event.thread),
            kind.as_str(),
            self.strings.id(operand),
            (spelled != usual).then(|| self.strings.id(&spelled)),
            self.code.place(location, self.reach.is_code_whole, &mut self.strings),
            self.held.id(held),
            known_value(trace, id).map(|value| value.to_string()),
            other.map(|thread| self.thread(thread)),
            observed(trace, id).map(|seen| seen.write().map_or(0, EventId::number)),
            after.map(|held| self.held.id(held)),
        )
    }

    fn thread(&mut self, thread: ThreadId) -> usize {
        let name = self.strings.id(self.examined.trace.names().threads.name(thread));
        self.threads.id((reweave_base::Id::index(thread), name))
    }
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

/// Which locks are held, whether in shared mode, and since which event.
fn held_entry(
    trace: &Trace,
    sections: &[CriticalSection],
    strings: &mut Strings,
) -> Vec<(u32, u8, u32)> {
    let held = sections.iter().map(|section| {
        let name = trace.names().locks.name(section.lock);
        let is_shared = u8::from(section.mode == Mode::Shared);
        (strings.id(name), is_shared, section.acquire.number())
    });
    held.collect()
}

fn shown_all(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| shown(text).into_owned()).collect()
}

fn replayed_entry(replayed: Option<&Replayed>) -> (Option<String>, Option<String>) {
    match replayed {
        None => (None, None),
        Some(Replayed::Confirmed { times, attempts, details }) => {
            let details = format!("{times} of {attempts} replays. {}", capital(details));
            (Some(shown(details.trim_end()).into_owned()), None)
        }
        Some(Replayed::NotConfirmed { reason }) => {
            let reason = shown(reason.trim_end_matches('.'));
            (None, Some(format!("{reason}. {}", crate::confirmation::CAVEAT)))
        }
    }
}

/// `sentence`, with a capital letter at its start.
fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

fn known_entry(known: &Known<'_>) -> Option<KnownEntry> {
    let listed = known.listed.iter();
    let listed = listed.map(|(term, value)| (shown(term).into_owned(), shown(value).into_owned()));
    Some(KnownEntry {
        heading: known.heading()?,
        listed: listed.collect(),
        more: known.unlisted_note(),
    })
}

fn choices_entry(choices: &Choices) -> ChoicesEntry {
    let shown_some = |text: &Option<String>| text.as_ref().map(|text| shown(text).into_owned());
    let listed = choices.listed.iter();
    let listed = listed
        .map(|choice| (shown(&choice.write).into_owned(), shown_some(&choice.silence)))
        .collect();
    ChoicesEntry {
        heading: shown(&choices.heading).into_owned(),
        listed,
        more: choices.unlisted_count,
        silence: shown_some(&choices.silence),
    }
}
