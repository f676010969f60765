//! `check --compare`: what each relation reports, side by side.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use reweave_analysis::{Counter, Coverage, Outcome, Settings};
use reweave_report::{compact, counted, shown};
use reweave_trace::Trace;
use serde_json::{Value, json};

use super::examine::{Options, ReportFormat};
use super::ndseq::write_documents;
use crate::watch::Bar;
use crate::{exit, input, interrupt};

/// The relations: how the command line spells each, and its name.
const RELATIONS: [(&str, &str); 6] = [
    ("hb", "happens-before"),
    ("shb", "schedulable happens-before"),
    ("wcp", "weak causally-precedes"),
    ("cp", "causally-precedes"),
    ("syncp", "sync-preserving reorderings"),
    ("exact", "all correct reorderings"),
];

/// What each relation reports of a trace.
struct Compared {
    path: String,
    events: usize,
    outcomes: Vec<Outcome>,
}

/// Runs `check --compare` on the traces of `options`.
pub fn run(options: &Options) -> anyhow::Result<ExitCode> {
    input::check_names(&options.traces)?;
    let destination = options.printing.prepare()?;
    let format = options.printing.format()?;
    anyhow::ensure!(
        matches!(format, ReportFormat::Text | ReportFormat::Json),
        "`--compare` writes text or JSON, found `--format {}`",
        super::check::name(format)
    );
    let settings = options.search.settings();
    interrupt::keep(interrupt::RESULTS);
    let (mut compared, mut failures) = (Vec::new(), Vec::new());
    for path in &options.traces {
        match options.search.read(path, &settings) {
            Ok(trace) => compared.push(compare(path, &trace, &settings)?),
            Err(error) if interrupt::is_asked() => return Err(error),
            Err(error) => failures.push(error),
        }
    }
    if !compared.is_empty() {
        let what = format!("relations on {}", counted(compared.len() as u64, "trace"));
        destination.write(&what, |out| match format {
            ReportFormat::Json => {
                let documents: Vec<Value> = compared.iter().map(document).collect();
                write_documents(out, &documents, options.traces.len() > 1)
            }
            _ => compared.iter().try_for_each(|it| text(out, it)),
        })?;
    }
    // The last relation is that of all correct reorderings: it decides.
    let exact = compared.iter().filter_map(|it| it.outcomes.last());
    Ok(exit::after(&failures, exit::of_search(exact)))
}

fn compare(path: &Path, trace: &Trace, settings: &Settings) -> anyhow::Result<Compared> {
    let bar = Bar::new("comparing", Some(trace.len() as u64)).within(settings.time);
    let run = |&(relation, _): &(&str, &str)| {
        let analyses = reweave_catalog::select(&format!("races.{relation}"), &[])?;
        Ok(reweave_catalog::run(trace, &analyses, settings, &bar))
    };
    let outcomes = RELATIONS.iter().map(run).collect::<anyhow::Result<_>>()?;
    Ok(Compared { path: path.display().to_string(), events: trace.len(), outcomes })
}

/// A number of a relation, and whether there may be more.
#[derive(Clone, Copy)]
struct Number {
    count: u64,
    is_bound: bool,
}

impl Number {
    fn of(coverage: &Coverage, counter: Counter) -> Self {
        let is_bound = counter.exactness().is_some_and(|it| coverage.counter(it) == Some(0));
        Self { count: coverage.counter(counter).unwrap_or(0), is_bound }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bound = if self.is_bound { "≥ " } else { "" };
        f.pad(&format!("{bound}{}", self.count))
    }
}

/// What one relation reports: its coverage, the pairs of accesses and of code locations, and how many of
/// the latter have a schedule.
fn numbers(outcome: &Outcome) -> Option<(&Coverage, [Number; 2], usize)> {
    let coverage = outcome.coverage.first()?;
    let pairs = [Counter::Pairs, Counter::LocationPairs].map(|it| Number::of(coverage, it));
    Some((coverage, pairs, outcome.findings.len()))
}

fn text(out: &mut dyn Write, compared: &Compared) -> io::Result<()> {
    let events = counted(compared.events as u64, "event");
    writeln!(out, "{}: {events}; races by relation", shown(&compared.path))?;
    let headings = ["relation", "pairs", "locations", "proven"];
    let [relation, pairs, locations, proven] = headings;
    writeln!(out, "  {relation:<10}{pairs:>10}  {locations:>10}  {proven:>10}  orders left out")?;
    for ((relation, name), outcome) in RELATIONS.iter().zip(&compared.outcomes) {
        let Some((coverage, [pairs, locations], proven)) = numbers(outcome) else { continue };
        write!(out, "  {relation:<10}{pairs:>10}  {locations:>10}  {proven:>10}  {name}")?;
        match coverage.truncated {
            Some(reason) => writeln!(out, " (incomplete: {reason})")?,
            None => writeln!(out)?,
        }
    }
    writeln!(
        out,
        "  Pairs of conflicting accesses that the relation leaves unordered, pairs of code locations \
         with one,\n  and how many of these have a schedule that the independent checker accepted."
    )
}

fn document(compared: &Compared) -> Value {
    let relation = |((relation, name), outcome): (&(&str, &str), &Outcome)| {
        let (coverage, [pairs, locations], proven) = numbers(outcome)?;
        Some(compact(json!({
            "relation": relation,
            "name": name,
            "analysis": coverage.analysis,
            "pairs": pairs.count,
            "location_pairs": locations.count,
            "proven": proven,
            "complete": coverage.is_complete() && !pairs.is_bound,
            "truncated": coverage.truncated.map(|reason| reason.as_str()),
        })))
    };
    let relations = RELATIONS.iter().zip(&compared.outcomes).filter_map(relation);
    json!({
        "schema": reweave_report::SCHEMA,
        "path": compared.path,
        "events": compared.events,
        "relations": relations.collect::<Vec<_>>(),
    })
}
