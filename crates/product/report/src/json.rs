//! Findings as JSON, for programs. The fields are a promise.
//!
//! Findings are written one by one as they are turned into JSON, so a long report takes no more
//! memory than its findings do; so are the witnesses of a list. Where there are many findings, or a
//! list, each is on a line of its own. `schema/reweave-1.schema.json` names every field.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::time::Duration;

use reweave_analysis::{
    Alternative, Counter, Coverage, Finding, Fingerprint, GlobalState, Listed, Nondeterminism,
    Proof, Reported, Settings, WitnessList, WitnessVerdict,
};
use reweave_trace::views::Mode;
use reweave_trace::{EventId, RunStart, Trace};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter};

use crate::alternatives::writer;
use crate::explain::{self, Explanation, Step};
use crate::finding::free_reads;
use crate::left_out::untried;
use crate::rerun::date;
use crate::schedule::{steps, steps_count};
use crate::site::Site;
use crate::slice::{Drawn, Role, Row};
use crate::sources::Place;
use crate::{Examined, SetAside, standing};

/// The name of this form of report.
pub const SCHEMA: &str = "reweave/1";

/// The JSON schema of what is written in this form, of this release.
pub const SCHEMA_FILE: &str = include_str!("../schema/reweave-1.schema.json");

/// Witnesses up to this long are written out event by event.
const EXPLICIT_MAX: usize = 256;

/// Up to so many findings are indented in full, and say why each is a fault.
const INDENTED_MAX: usize = 1_000;

/// An object with these fields, in this order. `key?` is left out where it is none, and the fields of
/// `..key` take its place.
macro_rules! object {
    (@ [$($done:tt)*] $key:ident?: $value:expr, $($rest:tt)*) => {
        object!(@ [$($done)* {
            #[serde(skip_serializing_if = "Option::is_none")] $key: Option<$key> = $value
        }] $($rest)*)
    };
    (@ [$($done:tt)*] ..$key:ident: $value:expr, $($rest:tt)*) => {
        object!(@ [$($done)* { #[serde(flatten)] $key: $key = $value }] $($rest)*)
    };
    (@ [$($done:tt)*] $key:ident: $value:expr, $($rest:tt)*) => {
        object!(@ [$($done)* { $key: $key = $value }] $($rest)*)
    };
    (@ [$({ $(#[$attribute:meta])* $key:ident: $kind:ty = $value:expr })*]) => {{
        // Each field has a type parameter of its name.
        #[allow(non_camel_case_types)]
        let object = {
            #[derive(serde::Serialize)]
            struct Object<$($key),*> { $($(#[$attribute])* $key: $kind),* }
            Object { $($key: $value),* }
        };
        object
    }};
    ($($fields:tt)*) => { object!(@ [] $($fields)*) };
}
pub(crate) use object;

/// The findings of a report, each made as it is written.
struct Findings<'a> {
    examined: Examined<'a>,
    all: &'a [Reported],
}

impl Serialize for Findings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.all.iter().map(|reported| entry(&self.examined, reported)))
    }
}

/// The other places of a fault, each made as it is written.
struct Places<'a> {
    trace: &'a Trace,
    all: &'a [(Fingerprint, Finding)],
}

impl Serialize for Places<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.all.iter().map(|place| place_entry(self.trace, place)))
    }
}

/// The witnesses of all lists; where there are several, each says whose it is.
struct Witnesses<'a> {
    trace: &'a Trace,
    lists: &'a [WitnessList],
}

impl Serialize for Witnesses<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // With one list there is nothing to tell apart.
        let has_several = self.lists.len() > 1;
        serializer.collect_seq(self.lists.iter().flat_map(|list| {
            let analysis = has_several.then_some(list.analysis);
            list.witnesses.iter().map(move |witness| verdict_entry(self.trace, analysis, witness))
        }))
    }
}

/// How many events of each thread have happened, by its name, in the order of threads.
struct Cut<'a> {
    trace: &'a Trace,
    state: &'a GlobalState,
}

impl Serialize for Cut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let threads = self.trace.names().threads.entries();
        let count = |thread| self.state.cut.get(thread).copied().unwrap_or(0);
        serializer.collect_map(threads.map(|(thread, name)| (name, count(thread))))
    }
}

struct Counters<'a>(&'a [(Counter, u64)]);

impl Serialize for Counters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(counter, count)| (counter.as_str(), count)))
    }
}

/// Writes what was found in each of `examined`: an object for one, a list of them for several.
///
/// # Errors
/// If `out` fails.
pub fn json(out: &mut dyn Write, examined: &[Examined<'_>]) -> io::Result<()> {
    match examined {
        [only] => write_json(out, &document(only), depth_max(examined, 2)),
        all => json_list(out, all),
    }
}

/// Writes a list of what was found in each of `examined`, however few they are.
///
/// # Errors
/// If `out` fails.
pub fn json_list(out: &mut dyn Write, examined: &[Examined<'_>]) -> io::Result<()> {
    let documents: Vec<_> = examined.iter().map(document).collect();
    write_json(out, &documents, depth_max(examined, 3))
}

/// Down to where lines start: everywhere, or where there are many findings or a list, `many`.
fn depth_max(examined: &[Examined<'_>], many: usize) -> usize {
    let findings_count: usize = examined.iter().map(|one| one.outcome.findings.len()).sum();
    // A list of witnesses can have millions of entries: a line for each keeps it readable.
    let has_list = examined.iter().any(|one| !one.outcome.witnesses.is_empty());
    let findings = examined.iter().flat_map(|one| &one.outcome.findings);
    let places_count: usize = findings.map(|reported| 1 + reported.places.len()).sum();
    match () {
        () if findings_count > INDENTED_MAX || has_list => many,
        // A line for each place of a finding.
        () if places_count > INDENTED_MAX => many + 2,
        () => usize::MAX,
    }
}

/// Writes `value` with lines down to `depth_max`.
pub fn write_json(out: &mut dyn Write, value: &impl Serialize, depth_max: usize) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Layout::new(depth_max));
    value.serialize(&mut serializer)?;
    writeln!(out)
}

/// `object` without its fields that are null.
#[must_use]
pub fn compact(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

/// `list`; none if it is empty.
pub fn unless_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

/// The report on all findings of `examined`.
fn document(examined: &Examined<'_>) -> impl Serialize {
    let outcome = examined.outcome;
    report(examined, &outcome.findings, &outcome.witnesses, None)
}

/// The report on `findings` of `examined`, with the witnesses of `lists`, and why the only finding is
/// a fault.
fn report<'a>(
    examined: &Examined<'a>,
    findings: &'a [Reported],
    lists: &'a [WitnessList],
    explanation: Option<&Explanation<'a>>,
) -> impl Serialize + use<'a> {
    let Examined { path, trace, outcome, .. } = *examined;
    let SetAside { known, suppressed } = examined.set_aside;
    let set_aside = object! { baseline: known, suppressed: suppressed, };
    object! {
        schema: SCHEMA,
        tool: object! { name: "reweave", version: env!("CARGO_PKG_VERSION"), },
        trace: trace_entry(path, trace),
        repaired?: unless_empty(trace.repairs().iter().map(ToString::to_string).collect()),
        settings?: SettingsEntry::new(&outcome.settings),
        set_aside?: (known + suppressed > 0).then_some(set_aside),
        findings: Findings { examined: *examined, all: findings },
        listed?: unless_empty(outcome.listed.iter().map(listed_entry).collect()),
        unshown: outcome.unshown_count(),
        untried: untried(outcome),
        coverage: outcome.coverage.iter().map(coverage_entry).collect::<Vec<_>>(),
        assumed?: unless_empty(outcome.assumed.clone()),
        explanation?: explanation.map(|it| explanation_entry(trace, it)),
        witnesses?: (!lists.is_empty()).then_some(Witnesses { trace, lists }),
    }
}

/// The report on `findings` alone, some of those of `examined`.
pub fn part<'a>(examined: &Examined<'a>, findings: &'a [Reported]) -> impl Serialize + use<'a> {
    report(examined, findings, &[], None)
}

/// The report on one finding of `examined`, with why it is a fault.
pub fn explained<'a>(
    examined: &Examined<'a>,
    explanation: &Explanation<'a>,
) -> impl Serialize + use<'a> {
    report(examined, std::slice::from_ref(explanation.reported), &[], Some(explanation))
}

/// Writes the report on `reported` alone, one of the findings of `examined`.
pub fn write_one(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    reported: &Reported,
) -> io::Result<()> {
    write_json(out, &part(examined, std::slice::from_ref(reported)), usize::MAX)
}

/// What `explain` adds to a report.
fn explanation_entry(trace: &Trace, explanation: &Explanation<'_>) -> impl Serialize + use<> {
    let reason = |it: &Step| {
        let (step, event) = (it.step, it.event.number());
        object! { step: step, event: event, reason: it.reason.words(trace, it.event), }
    };
    // An event, and for a read what it sees.
    let event = |drawn: Drawn| {
        let sees = drawn.sees.map(|seen| number(seen.write()));
        object! { event: drawn.event.number(), sees?: sees, }
    };
    let happens = |drawn: &Drawn| drawn.role != Role::Never;
    let events = |rows: &[Row]| {
        let drawn = rows.iter().filter_map(Row::drawn).filter(happens);
        unless_empty(drawn.map(event).collect::<Vec<_>>())
    };
    let sides = explanation.sides.as_ref();
    let why = explanation.sections.iter().flat_map(|it| it.paragraphs.clone());
    object! {
        why: why.collect::<Vec<String>>(),
        steps?: unless_empty(explanation.steps.iter().map(reason).collect()),
        fix?: unless_empty(explanation.fix.clone()),
        observed?: sides.and_then(|sides| events(&sides.observed)),
        scheduled?: sides.and_then(|sides| events(&sides.predicted)),
    }
}

pub fn trace_entry<'a>(path: &'a str, trace: &Trace) -> impl Serialize + use<'a> {
    let names = trace.names();
    object! {
        path: path,
        events: trace.len(),
        threads: names.threads.len(),
        locks: names.locks.len(),
        vars: names.vars.len(),
        thread_names?: thread_names(trace),
        recorded?: trace.run_start().map(start_entry),
    }
}

/// What the program calls its threads, by the names that they have in the trace; none if it gives no names.
fn thread_names(trace: &Trace) -> Option<BTreeMap<String, String>> {
    let names = trace.names();
    let given = names.given_names();
    let given =
        given.map(|(thread, given)| (names.threads.name(thread).to_owned(), given.to_owned()));
    Some(given.collect::<BTreeMap<_, _>>()).filter(|given| !given.is_empty())
}

/// How the recorded run was started. What is not known is left out.
fn start_entry(start: &RunStart) -> impl Serialize + use<> {
    let known = |text: &String| (!text.is_empty()).then(|| text.clone());
    object! {
        tool?: known(&start.tool),
        time?: start.time.map(date),
        system?: known(&start.system),
        folder?: known(&start.folder),
        program?: known(&start.program),
        build_id?: known(&start.build_id),
        command?: unless_empty(start.command.clone()),
        environment?: unless_empty(start.environment.clone())
            .map(|it| it.into_iter().collect::<BTreeMap<_, _>>()),
        mode?: known(&start.mode),
        seed?: start.seed,
        options?: unless_empty(start.options.clone()),
    }
}

/// Whether each finding of `examined` says why it is a fault and how it is repaired.
pub fn is_argued(examined: &Examined<'_>) -> bool {
    examined.outcome.findings.len() <= INDENTED_MAX
}

fn entry<'a>(examined: &Examined<'a>, reported: &'a Reported) -> impl Serialize + use<'a> {
    let Reported { id, fingerprint, finding, places, traces } = reported;
    let trace = examined.trace;
    let (why, fix) = match is_argued(examined) {
        true => explain::why_and_fix(trace, finding),
        false => (Vec::new(), Vec::new()),
    };
    object! {
        id: id,
        fingerprint: fingerprint.to_string(),
        analysis: finding.analysis,
        kind: finding.kind.as_str(),
        guarantee: finding.guarantee().as_str(),
        events: numbers(&finding.events),
        message: &finding.message,
        count: finding.count,
        total?: (!places.is_empty()).then(|| reported.count()),
        ..reading: finding.detail.nondeterminism().map(|detail| reading_entry(trace, detail)),
        ..state: finding.detail.state().map(|state| state_entry(trace, state)),
        sites: finding.events.iter().map(|&event| site_entry(trace, event)).collect::<Vec<_>>(),
        happened?: standing::happened(trace, finding).then_some(true),
        why?: unless_empty(why),
        fix?: unless_empty(fix),
        witness?: finding.evidence.proof().map(|proof| witness_entry(trace, proof)),
        places?: (!places.is_empty()).then_some(Places { trace, all: places }),
        traces?: (!traces.is_empty()).then_some(traces),
        ..replayed: examined.replayed(id),
    }
}

/// A place of a fault besides the one that is shown.
fn place_entry<'a>(
    trace: &'a Trace,
    (fingerprint, finding): &'a (Fingerprint, Finding),
) -> impl Serialize + use<'a> {
    object! {
        fingerprint: fingerprint.to_string(),
        analysis: finding.analysis,
        guarantee: finding.guarantee().as_str(),
        events: numbers(&finding.events),
        message: &finding.message,
        count: finding.count,
        sites: finding.events.iter().map(|&event| site_entry(trace, event)).collect::<Vec<_>>(),
    }
}

/// A fault that is listed with another trace.
fn listed_entry(listed: &Listed) -> impl Serialize + use<> {
    let mut fingerprints: Vec<String> =
        listed.fault.fingerprints().map(|it| it.to_string()).collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    object! {
        trace: listed.trace.clone(),
        id: listed.id.clone(),
        kind: listed.fault.finding.kind.as_str(),
        own: listed.fault.id.clone(),
        fingerprints: fingerprints,
    }
}

/// What a finding of a global state has besides. A value that the trace does not have is null.
fn state_entry<'a>(trace: &'a Trace, state: &'a GlobalState) -> impl Serialize {
    let value = |(term, value): &'a (String, Option<String>)| object! { term: term, value: value, };
    object! {
        predicate: &state.predicate,
        modality: state.modality.as_str(),
        order: state.order.as_str(),
        method: state.method,
        cut: Cut { trace, state },
        values: state.values.iter().map(value).collect::<Vec<_>>(),
    }
}

/// What a nondeterminism finding has besides.
fn reading_entry<'a>(trace: &'a Trace, detail: &Nondeterminism) -> impl Serialize + use<'a> {
    let alternatives = detail.alternatives().map(|write| alternative_entry(trace, detail, &write));
    object! {
        witness_kind: detail.witness_kind,
        w: number(detail.writer),
        r: read_number(trace, detail.read),
        c: number(detail.interfering),
        mode: detail.mode,
        race_free?: detail.is_race_free,
        changes_value?: detail.changes_value,
        alternatives: alternatives.collect::<Vec<_>>(),
    }
}

fn alternative_entry<'a>(
    trace: &'a Trace,
    detail: &Nondeterminism,
    alternative: &Alternative,
) -> impl Serialize + use<'a> {
    let location = |write: EventId| trace.names().location(trace.event(write).site);
    object! {
        w: number(writer(trace, detail, alternative)),
        r: read_number(trace, alternative.read),
        c: number(alternative.write),
        location?: alternative.write.map(location),
        count: alternative.count,
        race_free?: alternative.is_race_free,
        changes_value?: alternative.changes_value,
    }
}

fn verdict_entry(
    trace: &Trace,
    analysis: Option<&'static str>,
    witness: &WitnessVerdict,
) -> impl Serialize + use<> {
    object! {
        analysis?: analysis,
        witness_kind: witness.witness_kind,
        w: number(witness.writer),
        r: read_number(trace, witness.read),
        c: number(witness.interfering),
        feasible: witness.is_feasible,
    }
}

/// The number of `write`; 0 is the initial value.
fn number(write: Option<EventId>) -> u32 {
    write.map_or(0, EventId::number)
}

/// The number of `read`; the implicit one at the end of the run comes after all events.
fn read_number(trace: &Trace, read: Option<EventId>) -> u32 {
    read.map_or_else(|| trace.len() as u32 + 1, EventId::number)
}

fn witness_entry<'a>(trace: &'a Trace, proof: &Proof) -> impl Serialize + use<'a> {
    let reordering = proof.reordering();
    // Of a long witness the prefix in observed order is said by its counts alone.
    let is_short = steps_count(reordering) <= EXPLICIT_MAX;
    let base: BTreeMap<&str, u32> = if is_short {
        BTreeMap::new()
    } else {
        let names = &trace.names().threads;
        let base = reordering.base.entries().filter(|&(_, &count)| count > 0);
        base.map(|(thread, &count)| (names.name(thread), count)).collect()
    };
    let schedule =
        if is_short { numbers(&steps(trace, reordering)) } else { numbers(&reordering.schedule) };
    let unknown_reads = proof.unknown_reads_count();
    object! {
        base?: (!base.is_empty()).then_some(base),
        schedule: schedule,
        then: numbers(&proof.goal().next()),
        free?: unless_empty(numbers(&free_reads(trace, proof).0)),
        unknown_reads?: (unknown_reads > 0).then_some(unknown_reads),
    }
}

fn coverage_entry(coverage: &Coverage) -> impl Serialize {
    object! {
        analysis: coverage.analysis,
        complete: coverage.is_complete(),
        truncated?: coverage.truncated.map(|reason| reason.as_str()),
        counters: Counters(&coverage.counters),
    }
}

fn numbers(events: &[EventId]) -> Vec<u32> {
    events.iter().map(|event| event.number()).collect()
}

fn site_entry(trace: &Trace, event: EventId) -> impl Serialize {
    let site = Site::new(trace, event);
    let place = Place::new(site.location);
    object! {
        event: site.number,
        thread: site.thread,
        thread_name?: trace.names().given_name(trace.event(event).thread),
        op: site.op.clone(),
        location: site.location,
        function?: site.function(),
        file?: place.map(|place| place.file),
        line?: place.map(|place| place.line),
        column?: place.and_then(|place| place.column),
        stack?: unless_empty(site.stack.clone()),
        locks: site.locks.iter().map(|&(name, _)| name).collect::<Vec<_>>(),
        // The same once more with how each is held.
        held?: unless_empty(site.locks.iter().map(held_entry).collect()),
    }
}

/// A lock that a thread holds, and how.
fn held_entry<'a>(&(lock, mode): &(&'a str, Mode)) -> impl Serialize + use<'a> {
    object! { lock: lock, mode: mode.as_str(), }
}

/// The settings that findings depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingsEntry {
    #[serde(skip_serializing_if = "is_false")]
    all: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<NonZeroU32>,
    #[serde(skip_serializing_if = "is_false")]
    values: bool,
    #[serde(skip_serializing_if = "is_false")]
    final_reads: bool,
    #[serde(skip_serializing_if = "is_false")]
    seqcst: bool,
}

impl SettingsEntry {
    /// What `settings` has that is not at its default; none if that is nothing.
    pub fn new(settings: &Settings) -> Option<Self> {
        // The default may change between releases; what differs from it is what matters.
        let budget = settings.budget;
        let entry = Self {
            all: settings.all,
            limit: settings.limit,
            budget: (budget != Settings::default().budget).then_some(budget),
            seconds: settings.time.map(|time| time.as_secs_f64()),
            window: settings.window.and_then(NonZeroU32::new),
            values: settings.differing_values,
            final_reads: settings.final_reads,
            seqcst: settings.seqcst,
        };
        (entry != Self::default()).then_some(entry)
    }

    fn settings(&self) -> Settings {
        let standard = Settings::default();
        Settings {
            all: self.all,
            limit: self.limit,
            budget: self.budget.unwrap_or(standard.budget),
            // What is no time is none.
            time: self.seconds.and_then(|it| Duration::try_from_secs_f64(it).ok()),
            window: self.window.map(NonZeroU32::get),
            differing_values: self.values,
            final_reads: self.final_reads,
            seqcst: self.seqcst,
            ..standard
        }
    }
}

/// The settings that the JSON report `document` was made with. How many threads worked is not among
/// them, since nothing depends on it.
///
/// # Errors
/// If `settings` are there and are not those of a report.
pub fn recorded_settings(document: &Value) -> serde_json::Result<Settings> {
    match document.get("settings") {
        None => Ok(Settings::default()),
        Some(settings) => SettingsEntry::deserialize(settings).map(|entry| entry.settings()),
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
const fn is_false(holds: &bool) -> bool {
    !*holds
}

/// Lays JSON out as usual down to a depth, and writes what is deeper in one go: so a long list has a
/// line for each entry. The whole document is at depth 0.
struct Layout {
    pretty: PrettyFormatter<'static>,
    depth: usize,
    /// Down to where everything starts a line.
    depth_max: usize,
}

impl Layout {
    fn new(depth_max: usize) -> Self {
        Self { pretty: PrettyFormatter::new(), depth: 0, depth_max }
    }

    const fn is_broken(&self) -> bool {
        self.depth <= self.depth_max
    }
}

fn separate<W: Write + ?Sized>(out: &mut W, first: bool) -> io::Result<()> {
    if first { Ok(()) } else { out.write_all(b",") }
}

impl Formatter for Layout {
    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        if self.is_broken() { self.pretty.begin_array(out) } else { out.write_all(b"[") }
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        let is_broken = self.is_broken();
        self.depth -= 1;
        if is_broken { self.pretty.end_array(out) } else { out.write_all(b"]") }
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if self.is_broken() {
            return self.pretty.begin_array_value(out, first);
        }
        separate(out, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.pretty.end_array_value(out)
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        if self.is_broken() { self.pretty.begin_object(out) } else { out.write_all(b"{") }
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        let is_broken = self.is_broken();
        self.depth -= 1;
        if is_broken { self.pretty.end_object(out) } else { out.write_all(b"}") }
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if self.is_broken() {
            return self.pretty.begin_object_key(out, first);
        }
        separate(out, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(if self.is_broken() { b": " } else { b":" })
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.pretty.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Serializer, json};

    fn laid_out(value: &Value, depth_max: usize) -> String {
        let mut out = Vec::new();
        let layout = Layout::new(depth_max);
        value.serialize(&mut Serializer::with_formatter(&mut out, layout)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn without_a_depth_it_is_the_usual_indented_form() {
        let value = json!({ "a": [1, { "b": [] }, [[2]], {}], "c": { "d": null } });
        assert_eq!(laid_out(&value, usize::MAX), serde_json::to_string_pretty(&value).unwrap());
    }

    #[test]
    fn what_is_deep_shares_a_line() {
        let value = json!({ "list": [{ "b": [1, 2] }, {}], "none": [] });
        let expected = "{\n  \"list\": [\n    {\"b\":[1,2]},\n    {}\n  ],\n  \"none\": []\n}";
        assert_eq!(laid_out(&value, 2), expected);
    }

    #[test]
    fn settings_come_back_as_they_were_written() {
        let standard = Settings::default();
        let changed = Settings {
            all: true,
            limit: Some(0),
            budget: 7,
            time: Some(Duration::from_millis(1500)),
            window: Some(500),
            differing_values: true,
            final_reads: true,
            seqcst: true,
            ..standard
        };
        let all = json!({ "all": true, "limit": 0, "budget": 7, "seconds": 1.5, "window": 500, "values": true,
            "final_reads": true, "seqcst": true });
        let some = Settings { final_reads: true, ..standard };
        for (settings, expected) in [(changed, all), (some, json!({ "final_reads": true }))] {
            let written = json!({ "settings": SettingsEntry::new(&settings) });
            assert_eq!(written["settings"], expected);
            assert_eq!(recorded_settings(&written).unwrap(), settings);
        }
        assert_eq!(SettingsEntry::new(&standard), None);
        assert_eq!(recorded_settings(&json!({})).unwrap(), standard);
    }

    #[test]
    fn settings_that_no_search_can_have_are_refused_and_unknown_ones_let_be() {
        for settings in [json!(1), json!({ "limit": -1 }), json!({ "window": 0 })] {
            assert!(recorded_settings(&json!({ "settings": settings })).is_err());
        }
        let newer = json!({ "settings": { "depth": 3 } });
        assert_eq!(recorded_settings(&newer).unwrap(), Settings::default());
    }
}
