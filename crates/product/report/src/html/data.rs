//! What a page's script is given: the list of findings, and by the hundred what there is to say of
//! each.
//!
//! The list is read when the page opens, a chunk when one of its findings is opened. What findings
//! share is said once a chunk: names, events, places in the code, stacks, sets of locks. Lists of
//! numbers are structures, in the order of the fields here.

use std::collections::BTreeMap;
use std::hash::Hash;

use reweave_analysis::{Guarantee, Kind, Reported};
use reweave_base::FxHashMap;
use reweave_trace::views::{CriticalSection, Mode};
use reweave_trace::{EventId, NameKind, Op, ThreadId, Trace};
use serde::Serialize;
use serde_json::{Value, json};

use crate::alternatives::{Choices, known_value};
use crate::confirmation::{CAVEAT, Replayed};
use crate::finding::{confirm_command, explain_command, heading, instances_note, remarks};
use crate::json::{compact, object, unless_empty};
use crate::left_out::{accounts, counters};
use crate::legend::Legend;
use crate::schedule::{Extent, is_prefix, observed};
use crate::shown::{capital, shown};
use crate::site::{Site, holding_since, place};
use crate::slice::{self, Reach, Role, Slice};
use crate::state::{Known, Picture};
use crate::text::size;
use crate::{Examined, Place, Sources, summary, title};

/// How many findings a chunk holds.
pub const CHUNK: usize = 100;

/// What a page calls itself.
pub const HEADING: &str = "What else these runs could have done";

/// What a page is of, and the list of all findings of `examined`; of one finding alone, `only`, if the
/// page explains it.
pub fn list(examined: &[Examined<'_>], only: Option<&Reported>) -> Value {
    let mut strings = Strings::default();
    let mut entries = Vec::new();
    let mut first_chunk = 0;
    for (at, examined) in examined.iter().enumerate() {
        let findings = only.map_or(&examined.outcome.findings[..], std::slice::from_ref);
        for (number, reported) in findings.iter().enumerate() {
            let place = (at, first_chunk + number / CHUNK, number % CHUNK);
            entries.push(list_entry(&mut strings, examined, reported, place));
        }
        first_chunk += findings.len().div_ceil(CHUNK);
    }
    json!({
        "heading": HEADING,
        // Whether one finding has the page to itself.
        "is_explanation": only.is_some(),
        "chunk": CHUNK,
        // The worst first.
        "kinds": Kind::ALL.map(Kind::as_str),
        // Of predictions the strongest first, then what was observed, and what they mean.
        "guarantees": GUARANTEES.map(|it| (it.as_str(), it.meaning())),
        "traces": examined.iter().map(|one| trace_entry(one, only.is_some())).collect::<Vec<_>>(),
        "strings": strings.all,
        "findings": entries,
    })
}

const GUARANTEES: [Guarantee; 5] = [
    Guarantee::Witnessed,
    Guarantee::Decided,
    Guarantee::First,
    Guarantee::Unordered,
    Guarantee::Observed,
];

/// A finding in the list: trace, id, kind, guarantee, message, count, confirmed (0 if it was not
/// replayed, 1 if not, 2 if so), chunk and place in it, where it is, and names that are to be found
/// though the message does not say them.
fn list_entry(
    strings: &mut Strings,
    examined: &Examined<'_>,
    reported: &Reported,
    (trace_at, chunk, at): (usize, usize, usize),
) -> Value {
    let Reported { id, finding, .. } = reported;
    let names = examined.trace.names();
    let message = shown(&finding.message).into_owned();
    let mut words: Vec<u32> = Vec::new();
    let mut first = None;
    for &event in &finding.events {
        let event = examined.trace.event(event);
        let op = names.spell(event.op).to_string();
        let location = place(names.location(event.site));
        first.get_or_insert_with(|| strings.text(&location));
        // The filter searches these besides the message.
        let said = [names.threads.name(event.thread), &op, &location];
        let unsaid = said.into_iter().filter(|text| !message.contains(text));
        words.extend(unsaid.map(|text| strings.text(text)));
    }
    words.dedup();
    let first = first.unwrap_or_else(|| strings.text(""));
    let replayed = match examined.replayed(id) {
        None => 0,
        Some(Replayed::NotConfirmed { .. }) => 1,
        Some(Replayed::Confirmed { .. }) => 2,
    };
    let kind = Kind::ALL.iter().position(|&kind| kind == finding.kind).unwrap_or(0);
    let guarantee = GUARANTEES.iter().position(|&it| it == finding.guarantee()).unwrap_or(0);
    let count = reported.count();
    json!([trace_at, id, kind, guarantee, message, count, replayed, chunk, at, first, words])
}

/// A trace, and how far it was examined, unless the page is of one finding.
fn trace_entry(examined: &Examined<'_>, is_explanation: bool) -> Value {
    let Examined { path, trace, outcome, set_aside, .. } = *examined;
    let accounts = accounts(outcome).filter(|_| !is_explanation);
    let coverage = accounts.map(|(coverage, left_out)| {
        json!({
            "counters": counters(coverage),
            "incomplete": coverage.truncated.map(|reason| reason.as_str()),
            "left_out": left_out,
        })
    });
    json!({
        "name": shown(title(path)),
        "size": size(trace),
        "summary": if is_explanation { String::new() } else { shown(&summary(outcome)).into_owned() },
        "repairs": trace.repairs().iter().map(|it| shown(&it.to_string()).into_owned()).collect::<Vec<_>>(),
        "coverage": coverage.collect::<Vec<_>>(),
        "known": set_aside.known,
        "suppressed": set_aside.suppressed,
    })
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

/// Texts, ready to be shown.
type Strings = Pool<String>;

impl Strings {
    fn text(&mut self, text: &str) -> u32 {
        self.id(shown(text).into_owned()) as u32
    }
}

/// What is collected for a chunk.
struct Builder<'a> {
    examined: Examined<'a>,
    legend: &'a Legend<'a>,
    reach: Reach,
    strings: Strings,
    /// Number and name.
    threads: Pool<(usize, u32)>,
    /// Names of the callers, the innermost first.
    calls: Pool<Vec<u32>>,
    /// Name, whether it is held in shared mode, and since which event.
    held: Pool<Vec<(u32, u8, u32)>>,
    code: Code<'a>,
    events: Vec<Value>,
    by_event: FxHashMap<EventId, usize>,
}

/// Why a finding is a fault and is possible: what is said before its drawing, and after it.
#[derive(Serialize)]
pub struct Argument {
    pub before: Vec<Part>,
    pub after: Vec<Part>,
}

/// A part of an argument. Its texts are shown as they are.
#[derive(Serialize)]
pub struct Part {
    pub heading: &'static str,
    /// Steps of a schedule: the number, the thread, what it does, and why it may.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<[String; 4]>,
    pub paragraphs: Vec<String>,
    /// Whether the paragraphs are lines that belong together.
    pub is_list: bool,
}

/// What there is to say of `findings`, which are of `examined` and its `legend`; `argument` is that
/// for the only one.
pub fn chunk(
    examined: &Examined<'_>,
    legend: &Legend<'_>,
    findings: &[Reported],
    reach: Reach,
    argument: Option<Argument>,
) -> impl Serialize + use<> {
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
    let mut entries: Vec<Value> =
        findings.iter().map(|reported| builder.finding(reported)).collect();
    if let ([only], Some(argument)) = (&mut entries[..], argument) {
        only["argument"] = json!(argument);
    }
    object! {
        strings: builder.strings.all,
        threads: builder.threads.all,
        calls: builder.calls.all,
        held: builder.held.all,
        places: builder.code.places,
        // Name, and lines by their numbers.
        files: builder.code.files,
        events: builder.events,
        findings: entries,
    }
}

impl Builder<'_> {
    fn finding(&mut self, reported: &Reported) -> Value {
        let (trace, finding) = (self.examined.trace, &reported.finding);
        let proof = finding.evidence.proof();
        let slice = Slice::new(trace, finding, self.reach, &[]);
        // Numbers follow the observed order, whatever order is drawn first.
        for event in slice.events() {
            self.event(event);
        }
        let picture = Picture::new(trace, finding, Extent::BRIEF);
        let heading = match (&picture, proof) {
            (Some(picture), _) => picture.heading,
            (None, Some(proof)) => heading(proof),
            (None, None) => "As it was observed:",
        };
        let is_as_observed = proof.is_some_and(|proof| is_prefix(trace, proof.reordering()));
        let (confirmed, not_confirmed) = replayed_entry(self.examined.replayed(&reported.id));
        compact(json!({
            "fingerprint": reported.fingerprint.to_string(),
            "analysis": self.strings.text(finding.analysis),
            "sites": finding.events.iter().map(|&event| self.site(event)).collect::<Vec<_>>(),
            // Who started the threads, and what made-up names mean.
            "legend": unless_empty(self.legend.lines(finding)),
            "note": instances_note(reported),
            "known": finding.detail.state().and_then(|state| known_entry(&Known::new(state))),
            "choices": Choices::new(trace, finding).as_ref().map(choices_entry),
            "explain": explain_command(&self.examined, reported).map(|it| shown(&it).into_owned()),
            "confirm": confirm_command(&self.examined, reported).map(|it| shown(&it).into_owned()),
            "heading": self.strings.text(heading),
            // What the drawing is of: `race`, `deadlock`, `next`, `order` or `state`.
            "goal": slice::goal(finding),
            "observed": self.rows(&slice.observed),
            "predicted": self.rows(&slice.predicted),
            // Whether the predicted order is how the observed run began.
            "is_as_observed": is_as_observed.then_some(true),
            "notes": picture.and_then(|picture| unless_empty(shown_all(&picture.notes))),
            "remarks": proof.and_then(|proof| unless_empty(shown_all(&remarks(trace, proof)))),
            "confirmed": confirmed,
            "not_confirmed": not_confirmed,
        }))
    }

    /// The rows of a drawing, whose steps are numbered by counting: how many events are left out,
    /// negative, or an event that sees what it saw; event and role; or event, role and the number of
    /// the event that it sees, where 0 is the initial value and -1 that this is not known.
    fn rows(&mut self, rows: &[slice::Row]) -> Vec<Value> {
        let trace = self.examined.trace;
        let row = |row: &slice::Row| match *row {
            slice::Row::Gap(count) => json!(-(count as i64)),
            slice::Row::Event(drawn) => {
                let (event, role) = (self.event(drawn.event), drawn.role as u8);
                match (drawn.role, drawn.sees) {
                    (Role::Next | Role::Blocked | Role::Never, _) => json!([event, role]),
                    (_, sees) if sees != observed(trace, drawn.event) => {
                        let seen = sees.map(|sees| sees.write().map_or(0, EventId::number));
                        json!([event, role, seen.map_or(-1, i64::from)])
                    }
                    (Role::Step, _) => json!(event),
                    (Role::Fault | Role::Ahead, _) => json!([event, role]),
                }
            }
        };
        rows.iter().map(row).collect()
    }

    /// An event at fault: the event, the function that it is in, what its thread holds there and since
    /// where, and the calls that led there.
    fn site(&mut self, event: EventId) -> Value {
        let trace = self.examined.trace;
        let site = Site::new(trace, event);
        self.code.place(site.location, true, &mut self.strings);
        let function = site.function().map(|name| self.strings.text(name));
        let holding = self.strings.text(&holding_since(trace, event));
        let callers = site.callers();
        let callers = callers.into_iter().map(|frame| self.strings.text(frame)).collect();
        json!([self.event(event), function, holding, self.calls.id(callers)])
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

    /// Number, thread, kind of operation, operand, how the operation is spelled if not in the usual way,
    /// place, locks held, value, for a fork or a join the thread it is of, for a read what it saw
    /// (0 is the initial value), and for an acquire or a release the locks held afterwards.
    fn event_entry(&mut self, id: EventId) -> Value {
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
        json!([
            id.number(),
            self.thread(event.thread),
            kind.as_str(),
            self.strings.text(operand),
            (spelled != usual).then(|| self.strings.text(&spelled)),
            self.code.place(location, self.reach.is_code_whole, &mut self.strings),
            self.held.id(held),
            known_value(trace, id).map(|value| value.to_string()),
            other.map(|thread| self.thread(thread)),
            observed(trace, id).map(|seen| seen.write().map_or(0, EventId::number)),
            after.map(|held| self.held.id(held)),
        ])
    }

    fn thread(&mut self, thread: ThreadId) -> usize {
        let name = self.strings.text(self.examined.trace.names().threads.name(thread));
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
        (strings.text(name), is_shared, section.acquire.number())
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
            (None, Some(format!("{reason}. {}", CAVEAT)))
        }
    }
}

fn known_entry(known: &Known<'_>) -> Option<Value> {
    let listed: Vec<_> =
        known.listed.iter().map(|(term, value)| (shown(term), shown(value))).collect();
    Some(json!({ "heading": known.heading()?, "listed": listed, "more": known.unlisted_note() }))
}

fn choices_entry(choices: &Choices) -> Value {
    let shown_some = |text: &Option<String>| text.as_ref().map(|text| shown(text).into_owned());
    let listed = choices.listed.iter();
    let listed = listed.map(|choice| (shown(&choice.write), shown_some(&choice.silence)));
    json!({
        "heading": shown(&choices.heading),
        "listed": listed.collect::<Vec<_>>(),
        "more": choices.unlisted_count,
        "silence": shown_some(&choices.silence),
    })
}

/// No more code is put into a chunk when it holds so many bytes of it.
const BYTES_MAX: usize = 1 << 20;

/// Lines by their numbers.
type Lines = BTreeMap<u32, String>;

/// Places of a chunk, and the code around them.
#[derive(Debug)]
struct Code<'a> {
    sources: &'a Sources,
    around: u32,
    places: Vec<Value>,
    by_location: FxHashMap<String, usize>,
    files: Vec<(u32, Lines)>,
    by_file: FxHashMap<String, usize>,
    bytes: usize,
}

impl<'a> Code<'a> {
    /// No places yet; code is shown with up to `around` lines on each side.
    fn new(sources: &'a Sources, around: u32) -> Self {
        Self {
            sources,
            around,
            places: Vec::new(),
            by_location: FxHashMap::default(),
            files: Vec::new(),
            by_file: FxHashMap::default(),
            bytes: 0,
        }
    }

    /// The number of `location` in the chunk, with its code if `has_code`.
    fn place(&mut self, location: &str, has_code: bool, strings: &mut Strings) -> usize {
        if let Some(&at) = self.by_location.get(location) {
            if has_code && self.places[at].is_u64() {
                self.places[at] = self.entry(location, strings);
            }
            return at;
        }
        let entry = if has_code {
            self.entry(location, strings)
        } else {
            json!(strings.text(&place(location)))
        };
        self.places.push(entry);
        self.by_location.insert(location.to_owned(), self.places.len() - 1);
        self.places.len() - 1
    }

    /// A place: its name if there is nothing to say of its code; else name, file, line, first and last
    /// line to be shown, and what is to be said of the code.
    fn entry(&mut self, location: &str, strings: &mut Strings) -> Value {
        let name = strings.text(&place(location));
        let Some(at) = Place::new(location) else { return json!(name) };
        // A page stays small enough to be mailed.
        if self.bytes > BYTES_MAX {
            let note = strings.text("The code is left out to keep this page small.");
            return json!([name, null, at.line, 0, 0, note]);
        }
        let Some(excerpt) = self.sources.excerpt(location, self.around) else {
            let absence = self.sources.absence(location);
            let note = absence.map(|absence| strings.text(&format!("No code: {absence}.")));
            return json!([name, null, at.line, 0, 0, note]);
        };
        let file = *self.by_file.entry(at.file.to_owned()).or_insert_with(|| {
            self.files.push((strings.text(at.file), Lines::new()));
            self.files.len() - 1
        });
        let last = excerpt.first + excerpt.lines.len() as u32 - 1;
        for (number, line) in (excerpt.first..).zip(&excerpt.lines) {
            // Tabs are the one control character that code is written with.
            let line = shown(&line.replace('\t', "    ")).into_owned();
            self.bytes += line.len();
            self.files[file].1.insert(number, line);
        }
        let note = excerpt.doubt.map(|doubt| strings.text(&format!("Warning: {doubt}.")));
        json!([name, file, excerpt.marked, excerpt.first, last, note])
    }
}
