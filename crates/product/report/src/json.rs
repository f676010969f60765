//! Findings as JSON, for programs. The fields are a promise.
//!
//! Findings are written one by one as they are turned into JSON, so a long report takes no more
//! memory than its findings do; so are the witnesses of a list. Where there are many findings, or a
//! list, each is on a line of its own. `schema/reweave-1.schema.json` names every field.

mod site;

use std::collections::BTreeMap;
use std::io::{self, Write};

use reweave_analysis::{
    Alternative, Counter, Coverage, Detail, Finding, GlobalState, Nondeterminism, Proof, Reported,
    WitnessList, WitnessVerdict,
};
use reweave_trace::{EventId, Trace};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::alternatives::writer;
use crate::confirmation::ReplayedEntry;
use crate::explain::{Explanation, Side, SideEvent, Step};
use crate::layout::Layout;
use crate::left_out::untried;
use crate::schedule::{steps, steps_count};
use crate::settings::SettingsEntry;
use crate::{Examined, SetAside, free_reads};
use site::SiteEntry;

/// The name of this form of report.
pub const SCHEMA: &str = "reweave/1";

/// The JSON schema of what is written in this form, of this release.
pub const SCHEMA_FILE: &str = include_str!("../schema/reweave-1.schema.json");

/// Witnesses up to this long are written out event by event.
const EXPLICIT_MAX: usize = 256;

/// Up to so many findings are indented in full.
const INDENTED_MAX: usize = 1_000;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    tool: ToolEntry,
    trace: TraceEntry<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repaired: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<SettingsEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    set_aside: Option<SetAsideEntry>,
    findings: Findings<'a>,
    unshown: u64,
    untried: u64,
    coverage: Vec<CoverageEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<ExplanationEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witnesses: Option<Witnesses<'a>>,
}

/// What wrote a report.
#[derive(Serialize)]
struct ToolEntry {
    name: &'static str,
    version: &'static str,
}

/// How many findings were left out, since somebody said so.
#[derive(Serialize)]
struct SetAsideEntry {
    baseline: u64,
    suppressed: u64,
}

struct Findings<'a> {
    examined: Examined<'a>,
    all: &'a [Reported],
}

impl Serialize for Findings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.all.iter().map(|reported| entry(&self.examined, reported)))
    }
}

/// The witnesses of all lists; where there are several, each says whose it is.
struct Witnesses<'a> {
    trace: &'a Trace,
    lists: &'a [WitnessList],
}

impl Serialize for Witnesses<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_told = self.lists.len() > 1;
        serializer.collect_seq(self.lists.iter().flat_map(|list| {
            let analysis = is_told.then_some(list.analysis);
            list.witnesses.iter().map(move |witness| verdict_entry(self.trace, analysis, witness))
        }))
    }
}

#[derive(Serialize)]
struct VerdictEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    analysis: Option<&'static str>,
    witness_kind: u8,
    w: u32,
    r: u32,
    c: u32,
    feasible: Option<bool>,
}

#[derive(Serialize)]
pub(crate) struct TraceEntry<'a> {
    path: &'a str,
    events: usize,
    threads: usize,
    locks: usize,
    vars: usize,
}

#[derive(Serialize)]
struct FindingEntry<'a> {
    id: &'a str,
    fingerprint: String,
    analysis: &'a str,
    kind: &'static str,
    guarantee: &'static str,
    events: Vec<u32>,
    message: &'a str,
    count: u64,
    #[serde(flatten)]
    detail: Option<DetailEntry<'a>>,
    sites: Vec<SiteEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<WitnessEntry<'a>>,
    #[serde(flatten)]
    replayed: Option<ReplayedEntry<'a>>,
}

/// What a finding of some kind has besides.
#[derive(Serialize)]
#[serde(untagged)]
enum DetailEntry<'a> {
    Reading(ReadingEntry<'a>),
    State(StateEntry<'a>),
}

/// What a finding of a global state has besides.
#[derive(Serialize)]
struct StateEntry<'a> {
    predicate: &'a str,
    modality: &'static str,
    order: &'static str,
    method: &'static str,
    cut: Cut<'a>,
    values: Vec<ValueEntry<'a>>,
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

/// What a predicate speaks of; a value that the trace does not tell is null.
#[derive(Serialize)]
struct ValueEntry<'a> {
    term: &'a str,
    value: Option<&'a str>,
}

/// What a nondeterminism finding has besides.
#[derive(Serialize)]
struct ReadingEntry<'a> {
    witness_kind: u8,
    w: u32,
    r: u32,
    c: u32,
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    race_free: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes_value: Option<bool>,
    alternatives: Vec<AlternativeEntry<'a>>,
}

#[derive(Serialize)]
struct AlternativeEntry<'a> {
    w: u32,
    r: u32,
    c: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    race_free: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes_value: Option<bool>,
}

/// What `explain` adds to a report.
#[derive(Serialize)]
struct ExplanationEntry {
    why: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<ReasonEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fix: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    observed: Vec<StepEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scheduled: Vec<StepEntry>,
}

/// A step of the schedule, and why it is allowed.
#[derive(Serialize)]
struct ReasonEntry {
    step: usize,
    event: u32,
    reason: String,
}

/// An event of an explanation, and for a read what it sees.
#[derive(Serialize)]
struct StepEntry {
    event: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    sees: Option<u32>,
}

#[derive(Serialize)]
struct WitnessEntry<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    base: BTreeMap<&'a str, u32>,
    schedule: Vec<u32>,
    then: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    free: Vec<u32>,
    #[serde(skip_serializing_if = "is_zero")]
    unknown_reads: usize,
}

#[derive(Serialize)]
struct CoverageEntry<'a> {
    analysis: &'a str,
    complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<&'static str>,
    counters: Counters<'a>,
}

struct Counters<'a>(&'a [(Counter, u64)]);

impl Serialize for Counters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (counter, count) in self.0 {
            map.serialize_entry(counter.as_str(), count)?;
        }
        map.end()
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
    let has_list = examined.iter().any(|one| !one.outcome.witnesses.is_empty());
    if findings_count <= INDENTED_MAX && !has_list { usize::MAX } else { many }
}

/// Writes `value` with lines down to `depth_max`.
pub(crate) fn write_json(
    out: &mut dyn Write,
    value: &impl Serialize,
    depth_max: usize,
) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Layout::new(depth_max));
    value.serialize(&mut serializer)?;
    writeln!(out)
}

fn document<'a>(examined: &Examined<'a>) -> Document<'a> {
    let Examined { path, trace, outcome, .. } = *examined;
    let lists = outcome.witnesses.as_slice();
    Document {
        schema: SCHEMA,
        tool: ToolEntry { name: "reweave", version: env!("CARGO_PKG_VERSION") },
        trace: trace_entry(path, trace),
        repaired: trace.repairs().iter().map(ToString::to_string).collect(),
        settings: SettingsEntry::new(&outcome.settings),
        set_aside: set_aside_entry(examined.set_aside),
        findings: Findings { examined: *examined, all: &outcome.findings },
        unshown: outcome.unshown_count(),
        untried: untried(outcome),
        coverage: outcome.coverage.iter().map(coverage_entry).collect(),
        explanation: None,
        witnesses: (!lists.is_empty()).then_some(Witnesses { trace, lists }),
    }
}

/// What is left out, if that is anything.
fn set_aside_entry(set_aside: SetAside) -> Option<SetAsideEntry> {
    let SetAside { known: baseline, suppressed } = set_aside;
    (baseline + suppressed > 0).then_some(SetAsideEntry { baseline, suppressed })
}

/// Writes the report on one finding of `examined`, with why it is a fault.
pub(crate) fn write_explanation(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    explanation: &Explanation<'_>,
) -> io::Result<()> {
    let all = std::slice::from_ref(explanation.reported);
    let document = Document {
        findings: Findings { examined: *examined, all },
        explanation: Some(explanation_entry(examined.trace, explanation)),
        witnesses: None,
        ..document(examined)
    };
    write_json(out, &document, usize::MAX)
}

/// Writes the report on `reported` alone, one of the findings of `examined`.
pub(crate) fn write_one(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    reported: &Reported,
) -> io::Result<()> {
    let all = std::slice::from_ref(reported);
    let findings = Findings { examined: *examined, all };
    let document = Document { findings, witnesses: None, ..document(examined) };
    write_json(out, &document, usize::MAX)
}

fn explanation_entry(trace: &Trace, explanation: &Explanation<'_>) -> ExplanationEntry {
    let reason = |it: &Step| ReasonEntry {
        step: it.step,
        event: it.event.number(),
        reason: it.reason.words(trace, it.event),
    };
    let entry = |step: &SideEvent| StepEntry {
        event: step.event.number(),
        sees: step.sees.map(|seen| number(seen.write())),
    };
    let entries = |side: &Side| side.happening().map(entry).collect();
    let sides = explanation.sides.as_ref();
    ExplanationEntry {
        why: explanation.sections.iter().flat_map(|it| it.paragraphs.clone()).collect(),
        steps: explanation.steps.iter().map(reason).collect(),
        fix: explanation.fix.clone(),
        observed: sides.map_or_else(Vec::new, |sides| entries(&sides.observed)),
        scheduled: sides.map_or_else(Vec::new, |sides| entries(&sides.scheduled)),
    }
}

pub(crate) fn trace_entry<'a>(path: &'a str, trace: &Trace) -> TraceEntry<'a> {
    let names = trace.names();
    TraceEntry {
        path,
        events: trace.len(),
        threads: names.threads.len(),
        locks: names.locks.len(),
        vars: names.vars.len(),
    }
}

fn entry<'a>(examined: &Examined<'a>, reported: &'a Reported) -> FindingEntry<'a> {
    let Reported { id, fingerprint, finding } = reported;
    let trace = examined.trace;
    FindingEntry {
        id,
        fingerprint: fingerprint.to_string(),
        analysis: finding.analysis,
        kind: finding.kind.as_str(),
        guarantee: finding.guarantee().as_str(),
        events: numbers(&finding.events),
        message: &finding.message,
        count: finding.count,
        detail: detail_entry(trace, finding),
        sites: finding.events.iter().map(|&event| SiteEntry::new(trace, event)).collect(),
        witness: finding.evidence.proof().map(|proof| witness_entry(trace, proof)),
        replayed: examined.replayed(id).map(ReplayedEntry::new),
    }
}

fn detail_entry<'a>(trace: &'a Trace, finding: &'a Finding) -> Option<DetailEntry<'a>> {
    match &finding.detail {
        Detail::None => None,
        Detail::Nondeterminism(detail) => Some(DetailEntry::Reading(reading_entry(trace, detail))),
        Detail::State(state) => Some(DetailEntry::State(state_entry(trace, state))),
    }
}

fn state_entry<'a>(trace: &'a Trace, state: &'a GlobalState) -> StateEntry<'a> {
    let values = state.values.iter();
    StateEntry {
        predicate: &state.predicate,
        modality: state.modality.as_str(),
        order: state.order.as_str(),
        method: state.method,
        cut: Cut { trace, state },
        values: values.map(|(term, value)| ValueEntry { term, value: value.as_deref() }).collect(),
    }
}

fn reading_entry<'a>(trace: &'a Trace, detail: &Nondeterminism) -> ReadingEntry<'a> {
    let alternatives = detail.alternatives();
    ReadingEntry {
        witness_kind: detail.witness_kind,
        w: number(detail.writer),
        r: read_number(trace, detail.read),
        c: number(detail.interfering),
        mode: detail.mode,
        race_free: detail.is_race_free,
        changes_value: detail.changes_value,
        alternatives: alternatives.map(|write| alternative_entry(trace, detail, &write)).collect(),
    }
}

fn alternative_entry<'a>(
    trace: &'a Trace,
    detail: &Nondeterminism,
    alternative: &Alternative,
) -> AlternativeEntry<'a> {
    let location = |write: EventId| trace.names().location(trace.event(write).site);
    AlternativeEntry {
        w: number(writer(trace, detail, alternative)),
        r: read_number(trace, alternative.read),
        c: number(alternative.write),
        location: alternative.write.map(location),
        count: alternative.count,
        race_free: alternative.is_race_free,
        changes_value: alternative.changes_value,
    }
}

fn verdict_entry(
    trace: &Trace,
    analysis: Option<&'static str>,
    witness: &WitnessVerdict,
) -> VerdictEntry {
    VerdictEntry {
        analysis,
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

fn witness_entry<'a>(trace: &'a Trace, proof: &Proof) -> WitnessEntry<'a> {
    let (reordering, then) = (proof.reordering(), numbers(&proof.then()));
    let (free, unknown_reads) = (numbers(&free_reads(trace, proof).0), proof.unknown_reads_count());
    if steps_count(reordering) <= EXPLICIT_MAX {
        let schedule = numbers(&steps(trace, reordering));
        return WitnessEntry { base: BTreeMap::new(), schedule, then, free, unknown_reads };
    }
    let names = &trace.names().threads;
    let base = reordering.base.entries().filter(|&(_, &count)| count > 0);
    let base = base.map(|(thread, &count)| (names.name(thread), count)).collect();
    WitnessEntry { base, schedule: numbers(&reordering.schedule), then, free, unknown_reads }
}

fn coverage_entry(coverage: &Coverage) -> CoverageEntry<'_> {
    CoverageEntry {
        analysis: coverage.analysis,
        complete: coverage.is_complete(),
        truncated: coverage.truncated.map(|reason| reason.as_str()),
        counters: Counters(&coverage.counters),
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn numbers(events: &[EventId]) -> Vec<u32> {
    events.iter().map(|event| event.number()).collect()
}
