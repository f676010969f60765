//! Findings for code scanners: SARIF 2.1.0, with code flows.
//!
//! All traces together are one run. A finding is a result at its first line of code, with the other
//! lines at fault as related locations, its call stacks, and its schedule as a code flow: a thread
//! flow for each thread, each step with its place in the schedule. What is at no line of a file is
//! placed in the trace, and says so as a logical location.
//!
//! Scanners take no more than so much: of many findings, the later ones have shorter code flows, or
//! only the events at fault, and what is left out is said in a notification.

mod flow;
mod model;
mod places;
mod rules;
mod uri;

use std::collections::BTreeMap;
use std::io::{self, Write};

use reweave_analysis::{Finding, Reported};
use reweave_base::FxHashSet;
use serde::{Serialize, Serializer};

use crate::confirmation::Replayed;
use crate::json::write_json;
use crate::left_out::accounts;
use crate::level::{Level, main_event_first};
use crate::shown::shown;
use crate::site::Site;
use crate::table::Extent;
use crate::{Examined, counted, instances_note, title};

use model::{
    Artifact, BaseUri, Driver, Invocation, Location, Log, Notification, ResultEntry,
    ResultProperties, Run, RunProperties, Text, Tool,
};

/// Where the schema of what is written here is kept.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// How many results scanners take.
const RESULTS_MAX: usize = 25_000;

/// How many results have long code flows.
const LONG_MAX: usize = 100;

/// How many results have code flows at all.
const FLOWS_MAX: usize = 1_000;

/// How many events at fault a result tells of.
const SITES_MAX: usize = 100;

/// Up to so many results are indented in full.
const INDENTED_MAX: usize = 1_000;

/// Down to where lines start otherwise: the results.
const DEPTH_MAX: usize = 4;

/// Writes what was found in each of `examined`.
///
/// ```
/// use reweave_report::{Examined, sarif};
///
/// let trace = reweave_trace::TraceBuilder::new().finish()?;
/// let found = reweave_analysis::Outcome::default();
/// sarif(&mut std::io::stdout(), &[Examined::new("run.rwt", &trace, &found)])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If `out` fails.
pub fn sarif(out: &mut dyn Write, examined: &[Examined<'_>]) -> io::Result<()> {
    let total: usize = examined.iter().map(|one| one.outcome.findings.len()).sum();
    let left_out = total.saturating_sub(RESULTS_MAX);
    let description = Text::new("The folder that the names of source files are relative to.");
    let run = Run {
        tool: Tool { driver: driver() },
        invocations: [Invocation {
            execution_successful: true,
            tool_execution_notifications: notifications(examined, total),
        }],
        artifacts: artifacts(examined),
        original_uri_base_ids: BTreeMap::from([(places::ROOT, BaseUri { description })]),
        column_kind: "unicodeCodePoints",
        results: Results(examined),
        properties: (left_out > 0).then_some(RunProperties { results_left_out: left_out }),
    };
    let log = Log { schema: SCHEMA, version: "2.1.0", runs: [run] };
    let depth_max = if total <= INDENTED_MAX { usize::MAX } else { DEPTH_MAX };
    write_json(out, &log, depth_max)
}

fn driver() -> Driver {
    Driver {
        name: "reweave",
        semantic_version: env!("CARGO_PKG_VERSION"),
        information_uri: env!("CARGO_PKG_REPOSITORY"),
        rules: rules::all(),
    }
}

/// The traces that were examined, as far as they are files, each once.
fn artifacts(examined: &[Examined<'_>]) -> Vec<Artifact> {
    let mut seen = FxHashSet::default();
    let files = examined.iter().filter(|one| one.path != "-" && !one.path.is_empty());
    let files = files.filter(|one| seen.insert(one.path));
    let artifact = |one: &Examined<'_>| {
        let events = counted(one.trace.len() as u64, "event");
        Artifact {
            location: places::artifact(one.path),
            roles: ["analysisTarget"],
            description: Text::new(&format!("A recorded run of {events}.")),
        }
    };
    files.map(artifact).collect()
}

/// What is to be known of the search beside its results.
fn notifications(examined: &[Examined<'_>], total: usize) -> Vec<Notification> {
    let mut all = Vec::new();
    let mut say = |level, text: &str| {
        all.push(Notification { level, message: Text::new(&shown(text)) });
    };
    for one in examined {
        let name = title(one.path);
        let repairs = one.trace.repairs().len() as u64;
        if repairs > 0 {
            let changes = counted(repairs, "change");
            say("warning", &format!("{name}: {changes} made this trace well formed"));
        }
        for (coverage, sentences) in accounts(one.outcome) {
            let analysis = coverage.analysis;
            if let Some(reason) = coverage.truncated {
                say("warning", &format!("{name}: {analysis}: incomplete: {reason}"));
            }
            for sentence in sentences {
                say("note", &format!("{name}: {analysis}: {sentence}"));
            }
        }
        if let Some(sentence) = one.set_aside.sentence() {
            say("note", &format!("{name}: {sentence}"));
        }
    }
    if total > FLOWS_MAX {
        let flows = format!("only the first {FLOWS_MAX} of {total} results have a code flow");
        say("note", &format!("{flows}; --format json has every schedule"));
    }
    if total > RESULTS_MAX {
        let results = format!("only the first {RESULTS_MAX} of {total} findings are listed");
        say("warning", &format!("{results}, which is what code scanners take"));
    }
    all
}

/// The results, each made as it is written.
struct Results<'a>(&'a [Examined<'a>]);

impl Serialize for Results<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = self.0.iter().flat_map(|examined| {
            examined.outcome.findings.iter().map(move |reported| (examined, reported))
        });
        let all = all.take(RESULTS_MAX).enumerate();
        serializer.collect_seq(all.map(|(at, (examined, reported))| {
            let extent = match at {
                0..LONG_MAX => Some(Extent::FULL),
                LONG_MAX..FLOWS_MAX => Some(Extent::BRIEF),
                _ => None,
            };
            entry(examined, reported, extent)
        }))
    }
}

fn entry<'a>(
    examined: &Examined<'a>,
    reported: &'a Reported,
    extent: Option<Extent>,
) -> ResultEntry<'a> {
    let Reported { id, fingerprint, finding } = reported;
    let Examined { path, trace, .. } = *examined;
    let events = main_event_first(trace, finding, SITES_MAX);
    let sites: Vec<Site<'_>> = events.into_iter().map(|event| Site::new(trace, event)).collect();
    let (first, others) = sites.split_at(sites.len().min(1));
    let related = (1..).zip(others).map(|(id, site)| Location {
        id: Some(id),
        ..places::location(site, Some(path), Some(&told(site)))
    });
    ResultEntry {
        rule_id: finding.kind.as_str(),
        rule_index: rules::index(finding.kind),
        level: level(examined, finding),
        message: Text::new(&message(finding)),
        locations: first
            .iter()
            .map(|site| places::location(site, Some(path), Some(&told(site))))
            .collect(),
        related_locations: related.collect(),
        partial_fingerprints: BTreeMap::from([("reweave/v1", fingerprint.to_string())]),
        occurrence_count: finding.count,
        stacks: sites.iter().filter_map(places::stack).collect(),
        code_flows: extent
            .and_then(|extent| flow::of(trace, finding, extent))
            .into_iter()
            .collect(),
        properties: ResultProperties {
            id,
            analysis: finding.analysis,
            guarantee: finding.guarantee().as_str(),
            trace: path,
            events: finding.events.iter().map(|event| event.number()).collect(),
            is_confirmed: examined.replayed(id).map(|it| matches!(it, Replayed::Confirmed { .. })),
        },
    }
}

/// What is wrong, for how many it stands, and how far to rely on it.
fn message(finding: &Finding) -> String {
    let mut text = format!("{}.", shown(finding.message.trim_end_matches('.')));
    if let Some(note) = instances_note(finding) {
        text += &format!(" {note}.");
    }
    text + " " + finding.guarantee().meaning()
}

/// Who does what at `site`.
fn told(site: &Site<'_>) -> String {
    let told = format!("event {}, {}: `{}`, {}", site.number, site.thread, site.op, site.holding());
    shown(&told).into_owned()
}

fn level(examined: &Examined<'_>, finding: &Finding) -> &'static str {
    match Level::new(examined, finding) {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    }
}
