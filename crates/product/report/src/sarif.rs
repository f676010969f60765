//! Findings for code scanners: SARIF 2.1.0, with code flows.
//!
//! All traces together are one run. A finding is a result at its first line of code, with the other
//! lines at fault as related locations, its call stacks, and its schedule as a code flow: a thread
//! flow for each thread, each step with its position in the schedule. What is at no line of a file is
//! placed in the trace, and says so as a logical location.
//!
//! Scanners accept a limited number of results: of many findings, the later ones have shorter code
//! flows, or only the events at fault, and a notification says what is left out.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use reweave_analysis::{Finding, Kind, Proof, Reported};
use reweave_base::FxHashSet;
use reweave_trace::{EventId, LockOp, Marker, ObjectOp, Op, SemaphoreOp, ThreadId, ThreadOp};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::confirmation::Replayed;
use crate::finding::{Level, heading, instances_note, main_event_first};
use crate::json::{compact, unless_empty, write_json};
use crate::left_out::accounts;
use crate::places::{listed_note, traces_note};
use crate::schedule::{Extent, Label, Row, Table, steps_count};
use crate::shown::shown;
use crate::site::{Site, is_of_library};
use crate::sources::{Frame, Place, Sources};
use crate::{Examined, counted, title};

/// Where the schema of what is written here is kept.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The folder that relative names of files are relative to.
const ROOT: &str = "%SRCROOT%";

/// How many results scanners accept.
const RESULTS_MAX: usize = 25_000;

/// How many results have long code flows.
const LONG_MAX: usize = 100;

/// How many results have code flows at all.
const FLOWS_MAX: usize = 1_000;

/// How many steps of a schedule a code flow holds.
const STEPS_MAX: usize = 1_000;

/// How many events at fault a result lists.
const SITES_MAX: usize = 100;

/// How many calls of a stack are listed.
const FRAMES_MAX: usize = 64;

/// Up to so many results are indented in full.
const INDENTED_MAX: usize = 1_000;

/// Otherwise lines start down to this depth: that of the results.
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
    #[derive(Serialize)]
    struct Log<'a> {
        #[serde(rename = "$schema")]
        schema: &'static str,
        version: &'static str,
        runs: [Run<'a>; 1],
    }
    // Results are made as they are written, so a long log takes no more memory than one of them.
    #[derive(Serialize)]
    struct Run<'a> {
        #[serde(flatten)]
        head: Value,
        results: Results<'a>,
    }
    let total: usize = examined.iter().map(|one| one.outcome.findings.len()).sum();
    let left_out = total.saturating_sub(RESULTS_MAX);
    let head = compact(json!({
        "tool": { "driver": {
            "name": "reweave",
            "semanticVersion": env!("CARGO_PKG_VERSION"),
            "informationUri": env!("CARGO_PKG_REPOSITORY"),
            "rules": rules(),
        } },
        "invocations": [compact(json!({
            "executionSuccessful": true,
            "toolExecutionNotifications": unless_empty(notifications(examined, total)),
        }))],
        "artifacts": artifacts(examined),
        "originalUriBaseIds": {
            ROOT: { "description": text("The folder that the names of source files are relative to.") }
        },
        "columnKind": "unicodeCodePoints",
        "properties": (left_out > 0).then(|| json!({ "resultsLeftOut": left_out })),
    }));
    let runs = [Run { head, results: Results(examined) }];
    let depth_max = if total <= INDENTED_MAX { usize::MAX } else { DEPTH_MAX };
    write_json(out, &Log { schema: SCHEMA, version: "2.1.0", runs }, depth_max)
}

/// The rules, in the order of [`Kind::ALL`].
fn rules() -> Vec<Value> {
    Kind::ALL.iter().map(|&kind| rule(kind)).collect()
}

/// Which of [`rules`] is that of `kind`.
fn rule_index(kind: Kind) -> usize {
    Kind::ALL.iter().position(|&other| other == kind).unwrap_or(0)
}

fn rule(kind: Kind) -> Value {
    let info = kind.info();
    let weaknesses = info.weaknesses.iter().map(|number| format!("external/cwe/cwe-{number}"));
    let tags = ["concurrency", "correctness"].map(str::to_owned).into_iter().chain(weaknesses);
    json!({
        "id": info.name,
        "name": info.rule,
        "shortDescription": text(info.summary),
        "fullDescription": text(info.description),
        "help": { "text": info.fix, "markdown": info.fix },
        "defaultConfiguration": { "level": "error" },
        "properties": { "tags": tags.collect::<Vec<_>>(), "precision": "high" },
    })
}

/// The message `text`, in which nothing is to be taken for a link.
fn text(text: &str) -> Value {
    // SARIF takes `[text](id)` in messages for a link to a related location.
    if text.contains("](") {
        let text = text.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]");
        return json!({ "text": text });
    }
    json!({ "text": text })
}

/// The traces that were examined, as far as they are files, each once.
fn artifacts(examined: &[Examined<'_>]) -> Vec<Value> {
    let mut seen = FxHashSet::default();
    let files = examined.iter().filter(|one| one.path != "-" && !one.path.is_empty());
    let files = files.filter(|one| seen.insert(one.path));
    let artifact = |one: &Examined<'_>| {
        let events = counted(one.trace.len() as u64, "event");
        json!({
            "location": artifact(one.path),
            "roles": ["analysisTarget"],
            "description": text(&format!("A recorded run of {events}.")),
        })
    };
    files.map(artifact).collect()
}

/// What readers must know of the search besides its results.
fn notifications(examined: &[Examined<'_>], total: usize) -> Vec<Value> {
    let mut all = Vec::new();
    let mut say = |level: &str, message: &str| {
        all.push(json!({ "level": level, "message": text(&shown(message)) }));
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
        if let Some(sentence) = listed_note(one.outcome) {
            say("note", &format!("{name}: {sentence}"));
        }
        if let Some(sentence) = one.set_aside.sentence() {
            say("note", &format!("{name}: {sentence}"));
        }
    }
    if total > FLOWS_MAX {
        let flows = format!("only the first {FLOWS_MAX} of {total} results have a code flow");
        say("note", &format!("{flows}; --format json writes every schedule"));
    }
    if total > RESULTS_MAX {
        let results = format!("only the first {RESULTS_MAX} of {total} findings are listed");
        say("warning", &format!("{results}, which is as many as code scanners accept"));
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
            result(examined, reported, extent)
        }))
    }
}

fn result(examined: &Examined<'_>, reported: &Reported, extent: Option<Extent>) -> Value {
    let Reported { id, fingerprint, finding, .. } = reported;
    let Examined { path, trace, sources, .. } = *examined;
    let events = main_event_first(trace, finding, SITES_MAX);
    let sites: Vec<Site<'_>> = events.into_iter().map(|event| Site::new(trace, event)).collect();
    let said = |site: &Site<'_>| {
        let Site { number, thread, op, .. } = site;
        shown(&format!("event {number}, {thread}: `{op}`, {}", site.holding())).into_owned()
    };
    let mut locations: Vec<Value> =
        sites.iter().map(|site| location(sources, site, Some(path), Some(&said(site)))).collect();
    // Scanners show a result at one line; the others are its related locations.
    let mut related = locations.split_off(locations.len().min(1));
    related.extend(places(examined, reported));
    for (id, location) in (1..).zip(&mut related) {
        location["id"] = json!(id);
    }
    let level = match Level::new(examined, finding) {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    };
    let flow = extent.and_then(|extent| code_flow(examined, finding, extent));
    let confirmed = examined.replayed(id).map(|it| matches!(it, Replayed::Confirmed { .. }));
    compact(json!({
        "ruleId": finding.kind.as_str(),
        "ruleIndex": rule_index(finding.kind),
        "level": level,
        "message": text(&message(reported)),
        "locations": locations,
        "relatedLocations": unless_empty(related),
        "partialFingerprints": { "reweave/v1": fingerprint.to_string() },
        "occurrenceCount": reported.count(),
        "stacks": unless_empty(sites.iter().filter_map(|site| stack(sources, site)).collect()),
        "codeFlows": flow.map(|flow| [flow]),
        "properties": compact(json!({
            "id": id,
            "analysis": finding.analysis,
            "guarantee": finding.guarantee().as_str(),
            "trace": path,
            "events": finding.events.iter().map(|event| event.number()).collect::<Vec<_>>(),
            "isConfirmed": confirmed,
        })),
    }))
}

/// The lines at which else the fault is, each once, with what happens there.
fn places(examined: &Examined<'_>, reported: &Reported) -> Vec<Value> {
    let trace = examined.trace;
    let mut said: FxHashSet<&str> = reported.finding.locations(trace).into_iter().collect();
    let events = reported.places.iter().flat_map(|(_, place)| &place.events);
    let sites = events.map(|&event| Site::new(trace, event));
    let new = sites.filter(|site| said.insert(site.location)).take(SITES_MAX);
    let described = |site: Site<'_>| {
        let what = format!("also here: {}: `{}`, {}", site.thread, site.op, site.holding());
        location(examined.sources, &site, Some(examined.path), Some(&shown(&what)))
    };
    new.map(described).collect()
}

/// What is wrong, how often, and how far to rely on it.
fn message(reported: &Reported) -> String {
    let finding = &reported.finding;
    let mut text = format!("{}.", shown(finding.message.trim_end_matches('.')));
    if let Some(note) = instances_note(reported) {
        text += &format!(" {note}.");
    }
    if let Some(note) = traces_note(reported) {
        text += &format!(" {}", shown(&note));
    }
    text + " " + finding.guarantee().meaning()
}

/// The file that is called `name`.
fn artifact(name: &str) -> Value {
    let uri = uri(name);
    // Only relative names are relative to something.
    let root = (!uri.starts_with("file:")).then_some(ROOT);
    compact(json!({ "uri": uri, "uriBaseId": root }))
}

/// The line of a file that `location` names, if it names one.
fn physical(sources: &Sources, location: &str) -> Option<Value> {
    let Place { file, line, column } = Place::new(location)?;
    let region = compact(json!({ "startLine": line, "startColumn": column }));
    let file = sources.in_repository(file).map_or(Cow::Borrowed(file), Cow::Owned);
    Some(json!({ "artifactLocation": artifact(&file), "region": region }))
}

/// Where `site` is, with `message`; if it is at no line of a file, in the trace at `path` if that
/// is given.
fn location(
    sources: &Sources,
    site: &Site<'_>,
    path: Option<&str>,
    message: Option<&str>,
) -> Value {
    let physical = physical(sources, site.location);
    let logical = match (site.function(), &physical) {
        (Some(function), _) => vec![function_named(function)],
        (None, Some(_)) => Vec::new(),
        (None, None) => {
            let name = match site.place().as_ref() {
                "" => format!("event {} of {}", site.number, shown(site.thread)),
                place => shown(place).into_owned(),
            };
            vec![json!({ "fullyQualifiedName": name })]
        }
    };
    let is_file = |path: &&str| *path != "-" && !path.is_empty();
    let in_trace = || Some(json!({ "artifactLocation": artifact(path.filter(is_file)?) }));
    compact(json!({
        "physicalLocation": physical.or_else(in_trace),
        "logicalLocations": unless_empty(logical),
        "message": message.map(text),
    }))
}

fn function_named(function: &str) -> Value {
    json!({ "fullyQualifiedName": shown(function), "kind": "function" })
}

/// The calls that led to `site`; none if they are not known.
fn stack(sources: &Sources, site: &Site<'_>) -> Option<Value> {
    let frame = |line: &&str| {
        let frame = Frame::new(line);
        // Where the C library was built is nowhere in the program's own folder.
        let is_own = !is_of_library(line);
        let physical = frame.location.filter(|_| is_own);
        let physical = physical.and_then(|location| self::physical(sources, location));
        let logical = [function_named(frame.function)];
        json!({
            "location": compact(json!({ "physicalLocation": physical, "logicalLocations": logical })),
        })
    };
    let frames: Vec<Value> = site.stack.iter().take(FRAMES_MAX).map(frame).collect();
    let who = format!("event {}, {}: {}", site.number, site.thread, site.op);
    (!frames.is_empty()).then(|| json!({ "message": text(&shown(&who)), "frames": frames }))
}

/// The schedule of `finding`, as much of it as `extent` says; none if it has none.
fn code_flow(examined: &Examined<'_>, finding: &Finding, extent: Extent) -> Option<Value> {
    let trace = examined.trace;
    let proof = finding.evidence.proof()?;
    let table = Table::new(trace, proof, extent);
    let mut flows: Vec<(ThreadId, Vec<Value>)> =
        table.threads.iter().map(|&thread| (thread, Vec::new())).collect();
    // What matters most is at the end.
    let excess = table.rows.len().saturating_sub(STEPS_MAX);
    for row in &table.rows[excess..] {
        if let &Row::Event { label, event, column } = row {
            flows[column].1.push(flow_step(examined, proof, label, event));
        }
    }
    let names = &trace.names().threads;
    let flows = flows.into_iter().filter(|(_, locations)| !locations.is_empty());
    let flows: Vec<Value> = flows
        .map(|(thread, steps)| json!({ "id": shown(names.name(thread)), "locations": steps }))
        .collect();
    let message = text(heading(finding, proof).trim_end_matches(':'));
    (!flows.is_empty()).then(|| json!({ "message": message, "threadFlows": flows }))
}

fn flow_step(examined: &Examined<'_>, proof: &Proof, label: Label, event: EventId) -> Value {
    let Examined { trace, sources, .. } = *examined;
    let site = Site::new(trace, event);
    // What is next at the end is next together.
    let end = steps_count(proof.reordering()) + 1;
    let (order, what) = match label {
        Label::Step(step) | Label::Fault(step) => (step, ""),
        Label::Blocked => (end, " waits forever"),
        Label::Next => (end, " is next"),
        Label::Past | Label::Last | Label::Ahead | Label::Later => (end, ""),
    };
    let said = format!("{}: `{}`{what}, {}", site.thread, site.op, site.holding());
    let mut kinds = kinds(trace.event(event).op).to_vec();
    if label.is_fault() {
        kinds.push("danger");
    }
    compact(json!({
        "location": location(sources, &site, None, Some(&shown(&said))),
        "kinds": kinds,
        "executionOrder": order,
        "importance": label.is_fault().then_some("essential"),
    }))
}

/// What kind of step an operation is, in the words that SARIF proposes.
const fn kinds(op: Op) -> &'static [&'static str] {
    match op {
        Op::Access(..) | Op::Fence(_) => &["memory"],
        Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _) => &["acquire", "lock"],
        Op::Lock(LockOp::Release | LockOp::ReleaseShared, _) => &["release", "lock"],
        Op::Lock(LockOp::Request | LockOp::RequestExclusive, _) => &["lock"],
        Op::Thread(ThreadOp::Fork, _) => &["call"],
        Op::Thread(ThreadOp::Join, _) => &["return"],
        Op::Object(ObjectOp::Alloc, _) => &["acquire", "memory"],
        Op::Object(ObjectOp::Free, _) => &["release", "memory"],
        Op::Marker(Marker::Begin(_)) => &["enter", "scope"],
        Op::Marker(Marker::End(_)) => &["exit", "scope"],
        Op::Marker(Marker::Branch) => &["branch"],
        Op::Marker(Marker::Timed | Marker::Unchecked) => &["resource"],
        Op::Marker(Marker::Let(_)) => &["value"],
        Op::Semaphore(SemaphoreOp::Take, _) => &["acquire", "resource"],
        Op::Semaphore(SemaphoreOp::Post, _) => &["release", "resource"],
        Op::Condition(..) | Op::Barrier(..) => &["resource"],
    }
}

/// The URI of the file that is called `name`; relative if the name is.
fn uri(name: &str) -> String {
    let path = name.strip_prefix("./").filter(|rest| !rest.is_empty()).unwrap_or(name);
    // A relative reference that starts with two slashes would name another machine.
    let mut uri = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            other => _ = write!(uri, "%{other:02X}"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_uris_that_say_nothing_else() {
        for (name, expected) in [
            ("src/bank.c", "src/bank.c"),
            ("./a.c", "a.c"),
            ("/srv/a b/c++.cc", "file:///srv/a%20b/c%2B%2B.cc"),
            ("http://x/%41?q#f", "http%3A//x/%2541%3Fq%23f"),
            ("größe.c", "gr%C3%B6%C3%9Fe.c"),
            ("//host/a.c", "file:////host/a.c"),
            (".//a.c", "file:///a.c"),
        ] {
            assert_eq!(uri(name), expected);
        }
    }
}
