//! Findings as JSON, for programs. The fields are a promise.
//!
//! Findings are written one by one as they are turned into JSON, so a long report takes no more
//! memory than its findings do. Where there are many, each is on a line of its own.

use std::collections::BTreeMap;
use std::io::{self, Write};

use reweave_analysis::{Coverage, Proof, Reported};
use reweave_trace::{EventId, Trace};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::layout::Layout;
use crate::left_out::untried;
use crate::site::Site;
use crate::table::{steps, steps_count};
use crate::{Examined, free_reads};

/// The name of this form of report.
pub const SCHEMA: &str = "reweave/1";

/// Witnesses up to this long are written out event by event.
const EXPLICIT_MAX: usize = 256;

/// Up to so many findings are indented in full.
const INDENTED_MAX: usize = 1_000;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    trace: TraceEntry<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repaired: Vec<String>,
    findings: Findings<'a>,
    unshown: u64,
    untried: u64,
    coverage: Vec<CoverageEntry<'a>>,
}

struct Findings<'a> {
    trace: &'a Trace,
    all: &'a [Reported],
}

impl Serialize for Findings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.all.iter().map(|reported| entry(self.trace, reported)))
    }
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
    sites: Vec<SiteEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<WitnessEntry<'a>>,
}

#[derive(Serialize)]
struct SiteEntry<'a> {
    event: u32,
    thread: &'a str,
    op: String,
    location: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stack: Vec<&'a str>,
    locks: Vec<&'a str>,
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
    loose_reads: usize,
}

#[derive(Serialize)]
struct CoverageEntry<'a> {
    analysis: &'a str,
    complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<&'static str>,
    counters: Counters<'a>,
}

struct Counters<'a>(&'a [(&'static str, u64)]);

impl Serialize for Counters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, count) in self.0 {
            map.serialize_entry(name, count)?;
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

/// Down to where lines start: everywhere, or where there are many findings, `many`.
fn depth_max(examined: &[Examined<'_>], many: usize) -> usize {
    let findings_count: usize = examined.iter().map(|one| one.outcome.findings.len()).sum();
    if findings_count <= INDENTED_MAX { usize::MAX } else { many }
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
    let Examined { path, trace, outcome } = *examined;
    Document {
        schema: SCHEMA,
        trace: trace_entry(path, trace),
        repaired: trace.repairs().iter().map(ToString::to_string).collect(),
        findings: Findings { trace, all: &outcome.findings },
        unshown: outcome.unshown_count(),
        untried: untried(outcome),
        coverage: outcome.coverage.iter().map(coverage_entry).collect(),
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

fn entry<'a>(trace: &'a Trace, reported: &'a Reported) -> FindingEntry<'a> {
    let Reported { id, fingerprint, finding } = reported;
    FindingEntry {
        id,
        fingerprint: fingerprint.to_string(),
        analysis: finding.analysis,
        kind: finding.kind.word(),
        guarantee: finding.guarantee().word(),
        events: numbers(&finding.events),
        message: &finding.message,
        count: finding.count,
        sites: finding.events.iter().map(|&event| site_entry(trace, event)).collect(),
        witness: finding.evidence.proof().map(|proof| witness_entry(trace, proof)),
    }
}

fn site_entry(trace: &Trace, event: EventId) -> SiteEntry<'_> {
    let site = Site::of(trace, event);
    SiteEntry {
        event: site.number,
        thread: site.thread,
        op: site.op,
        location: site.location,
        stack: site.stack,
        locks: site.locks.into_iter().map(|(name, _)| name).collect(),
    }
}

fn witness_entry<'a>(trace: &'a Trace, proof: &Proof) -> WitnessEntry<'a> {
    let (reordering, then) = (proof.reordering(), numbers(&proof.then()));
    let (free, loose_reads) = (numbers(&free_reads(trace, proof).0), proof.loose_reads_count());
    if steps_count(reordering) <= EXPLICIT_MAX {
        let schedule = numbers(&steps(trace, reordering));
        return WitnessEntry { base: BTreeMap::new(), schedule, then, free, loose_reads };
    }
    let names = &trace.names().threads;
    let base = reordering.base.entries().filter(|&(_, &count)| count > 0);
    let base = base.map(|(thread, &count)| (names.name(thread), count)).collect();
    WitnessEntry { base, schedule: numbers(&reordering.schedule), then, free, loose_reads }
}

fn coverage_entry(coverage: &Coverage) -> CoverageEntry<'_> {
    CoverageEntry {
        analysis: coverage.analysis,
        complete: coverage.is_complete(),
        truncated: coverage.truncated.map(|reason| reason.word()),
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
