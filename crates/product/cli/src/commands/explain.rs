//! `explain`: one finding in detail. It is looked up by its id or fingerprint: the search is repeated,
//! with the options of the command line or of a report.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum as _;
use reweave_analysis::{Analysis, Outcome, Reported, Settings};
use reweave_report::{Confirmation, Examined, SCHEMA, quoted};
use reweave_states::analyses::FIND;
use reweave_trace::Trace;
use serde_json::Value;

use super::examine::{Printing, ReportFormat, Search, Selection};
use super::states::{OrderName, Question};
use crate::destination::Destination;
use crate::exit::say;
use crate::launch::is_own;
use crate::watch::Bar;
use crate::{input, interrupt};

/// How many ids an error lists.
const NAMES_MAX: usize = 20;

/// How many digits of a fingerprint are enough, if they are unique.
const PREFIX_MIN: usize = 4;

/// Options that a report records.
const RECORDED: [&str; 11] = [
    "only",
    "with",
    "all",
    "limit",
    "budget",
    "work",
    "window",
    "values",
    "final_reads",
    "predicates",
    "order",
];

/// Explain one finding: what it is, why it is a bug, how it happens.
///
/// Shows its schedule with one column per thread, and the observed order beside the predicted one. Use the
/// same options as for `check` to get the same findings with the same ids.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave explain run.std R1")]
pub struct Args {
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    printing: Printing,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let destination = args.printing.prepare()?;
    let found = args.wanted.find()?;
    let formats = (reweave_report::explanation_text as _, reweave_report::explanation_json as _);
    found.write(&args.wanted, &args.printing, destination, &[], formats)?;
    Ok(ExitCode::SUCCESS)
}

/// Which finding of which trace, and how it was found.
#[derive(Debug, clap::Args)]
pub struct Wanted {
    /// The trace of the finding; `-` is standard input
    trace: PathBuf,
    /// Its id, such as R1, or the start of its fingerprint
    id: String,
    /// Take the finding and the options of its search from this JSON report
    #[arg(long, value_name = "REPORT", conflicts_with_all = RECORDED)]
    from: Option<PathBuf>,
    #[command(flatten)]
    selection: Selection,
    /// With `--only races.cp`: maximum distance of accesses, in events
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    window: Option<u32>,
    /// Nondeterminism: ignore writes of the same value
    #[arg(long)]
    values: bool,
    /// Nondeterminism: treat every variable as read when the run ends
    #[arg(long)]
    final_reads: bool,
    /// Global states: the predicate of `states find`
    ///
    /// May be given several times.
    #[arg(
        long = "predicate",
        value_name = "EXPR",
        allow_hyphen_values = true,
        conflicts_with_all = ["only", "with"]
    )]
    predicates: Vec<String>,
    /// Global states: the order of events, as for `states find`
    #[arg(long, value_enum, requires = "predicates")]
    order: Option<OrderName>,
    #[command(flatten)]
    search: Search,
}

/// A finding, and what it was found in.
#[derive(Debug)]
pub struct Found {
    /// Where the trace came from.
    path: String,
    /// The trace.
    pub trace: Trace,
    /// All that was found.
    outcome: Outcome,
    /// The finding.
    pub reported: Reported,
}

/// Writes one finding of a trace.
pub type WriteFinding = fn(&mut dyn Write, &Examined<'_>, &Reported) -> io::Result<()>;

impl Found {
    /// Writes the finding, with what came of replaying it: as text and as JSON by these two functions.
    pub fn write(
        &self,
        wanted: &Wanted,
        printing: &Printing,
        destination: Destination,
        confirmations: &[Confirmation],
        (text, json): (WriteFinding, WriteFinding),
    ) -> anyhow::Result<()> {
        let Self { path, trace, outcome, reported } = self;
        let sources = &wanted.search.sources(path, trace, &printing.sources);
        let examined = Examined::new(path, trace, outcome);
        let (folder, is_full) = (input::current_folder(), printing.full);
        let (folder, width) = (folder.as_deref(), printing.width());
        let is_own = is_own(trace);
        let examined =
            Examined { confirmations, sources, folder, is_own, width, is_full, ..examined };
        // The other formats are those of reports: this one has a single finding.
        let only = Outcome { findings: vec![reported.clone()], ..outcome.clone() };
        let alone = Examined { outcome: &only, ..examined };
        let format = printing.format()?;
        let what = format!("{} {}", reported.id, reported.finding.kind);
        if format == ReportFormat::Text {
            let find_file = |name: &str| sources.file(name);
            return destination.write_text(&what, &find_file, |out| text(out, &examined, reported));
        }
        destination.write(&what, |out| match format {
            ReportFormat::Json => json(out, &examined, reported),
            ReportFormat::Html => reweave_report::explanation_html(out, &examined, reported),
            _ => format.write(out, &[alone], false),
        })
    }
}

impl Wanted {
    /// Where the trace is.
    pub fn trace(&self) -> &Path {
        &self.trace
    }

    /// Reads the trace, repeats the search and picks the finding.
    pub fn find(&self) -> anyhow::Result<Found> {
        let is_swapped = Path::new(&self.id).is_file() && !self.trace.exists();
        anyhow::ensure!(
            !is_swapped || self.trace == Path::new("-"),
            "expected the trace before the id: {} {}",
            quoted(&self.id),
            quoted(&self.trace.display().to_string())
        );
        let recorded = self.from.as_deref().map(|report| Recorded::find(report, self));
        let recorded = recorded.transpose()?;
        let settings = self.settings(recorded.as_ref());
        let question = match &recorded {
            Some(recorded) => recorded.question()?,
            None if self.predicates.is_empty() => None,
            None => Some(Question {
                predicates: self.predicates.clone(),
                order: self.order.unwrap_or(OrderName::Preserving),
                online: false,
            }),
        };
        let mut analyses: Vec<&dyn Analysis> = match (&recorded, &question) {
            (_, Some(_)) => Vec::new(),
            (Some(recorded), None) => vec![recorded.analysis()?],
            (None, None) => self.selection.analyses()?,
        };
        let trace = self.search.read(&self.trace, &settings)?;
        let find = question.map(|question| question.analysis(&trace)).transpose();
        let find = find.with_context(|| input::name(&self.trace))?;
        analyses.extend(find.iter().map(|find| find as &dyn Analysis));
        interrupt::keep(interrupt::RESULTS);
        let bar = Bar::new("analysing", Some(trace.len() as u64)).within(settings.time);
        let outcome = reweave_catalog::run(&trace, &analyses, &settings, &bar);
        drop(bar);
        let reported = match &recorded {
            Some(recorded) => recorded.found_again(&outcome, self)?,
            None => named(&outcome, &self.id)?,
        };
        Ok(Found { path: self.trace.display().to_string(), trace, outcome, reported })
    }

    /// The settings of the search: those of the report, or those of the command line.
    fn settings(&self, recorded: Option<&Recorded>) -> Settings {
        let asked = self.search.settings();
        match recorded {
            Some(recorded) => Settings { threads: asked.threads, ..recorded.settings },
            None => Settings {
                window: self.window,
                differing_values: self.values,
                final_reads: self.final_reads,
                ..asked
            },
        }
    }
}

/// The finding of `outcome` that is called `id`.
fn named(outcome: &Outcome, id: &str) -> anyhow::Result<Reported> {
    let findings = outcome.findings.iter();
    let names: Vec<Name> = findings
        .map(|it| Name {
            id: it.id.clone(),
            fingerprints: it.fingerprints().map(|it| it.to_string()).collect(),
        })
        .collect();
    match position(&names, id) {
        Ok(at) => Ok(shown_at(&outcome.findings[at], id)),
        Err(error) => {
            let hint = if id.starts_with(['P', 'p']) {
                "; for a global state, give its `--predicate`, or `--from` a report"
            } else {
                ""
            };
            anyhow::bail!("{error}{}{hint}", unsearched(outcome))
        }
    }
}

/// `reported`, shown at the place that the fingerprint `name` is of, if it is one of its places.
fn shown_at(reported: &Reported, name: &str) -> Reported {
    let start = name.to_ascii_lowercase();
    let mut places = reported.places.iter();
    let at = places.position(|(fingerprint, _)| fingerprint.to_string().starts_with(&start));
    let is_own = reported.id.eq_ignore_ascii_case(name)
        || reported.fingerprint.to_string().starts_with(&start);
    let mut reported = reported.clone();
    if let Some(at) = at.filter(|_| !is_own) {
        let shown = (&mut reported.fingerprint, &mut reported.finding);
        let (fingerprint, finding) = &mut reported.places[at];
        std::mem::swap(shown.0, fingerprint);
        std::mem::swap(shown.1, finding);
    }
    reported
}

/// A hint that the finding may be in the part that was not searched.
fn unsearched(outcome: &Outcome) -> &'static str {
    if outcome.is_complete() { "" } else { "; the search was incomplete" }
}

/// The names of a finding.
struct Name {
    id: String,
    /// Of all its places, that of the one that is shown first.
    fingerprints: Vec<String>,
}

/// Which of `names` is `wanted`: by its id, or by a fingerprint or a start of it that no other has.
fn position(names: &[Name], wanted: &str) -> anyhow::Result<usize> {
    if let Some(at) = names.iter().position(|name| name.id.eq_ignore_ascii_case(wanted)) {
        return Ok(at);
    }
    let start = wanted.to_ascii_lowercase();
    let has_start = |name: &Name| name.fingerprints.iter().any(|it| it.starts_with(&start));
    let is_meant = |name: &Name| start.len() >= PREFIX_MIN && has_start(name);
    let meant: Vec<usize> = (0..names.len()).filter(|&at| is_meant(&names[at])).collect();
    match meant[..] {
        [at] => Ok(at),
        [] if names.is_empty() => {
            anyhow::bail!("no finding `{wanted}`: nothing was found")
        }
        [] => anyhow::bail!("no finding `{wanted}`; found {}", listed(names.iter())),
        _ => {
            let meant = meant.iter().map(|&at| &names[at]);
            anyhow::bail!(
                "`{wanted}` is ambiguous: the fingerprints of {} start with it",
                listed(meant)
            )
        }
    }
}

/// The ids of `names`, as far as a line has room.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a Name>) -> String {
    let more = names.len().saturating_sub(NAMES_MAX);
    let ids: Vec<&str> = names.take(NAMES_MAX).map(|name| name.id.as_str()).collect();
    match more {
        0 => ids.join(", "),
        _ => format!("{} and {more} more", ids.join(", ")),
    }
}

/// A finding as a report has it.
struct Recorded {
    id: String,
    fingerprint: String,
    analysis: String,
    events: Vec<u64>,
    /// The predicate that a state meets and the order that it is of, if it is one of a state.
    state: Option<[String; 2]>,
    /// How hard the search was.
    settings: Settings,
}

impl Recorded {
    /// The finding of the report in the file `report` that `args` asks for.
    fn find(report: &Path, args: &Wanted) -> anyhow::Result<Self> {
        let wrong = |reason: String| anyhow::anyhow!("{}: {reason}", report.display());
        let text = std::fs::read(report).map_err(|error| wrong(format!("cannot read: {error}")))?;
        let parsed: Value = serde_json::from_slice(&text)
            .map_err(|error| wrong(format!("expected a JSON report: {error}")))?;
        let document = document(&parsed, &args.trace).map_err(wrong)?;
        let settings = reweave_report::recorded_settings(document)
            .map_err(|error| wrong(format!("invalid `settings`: {error}")))?;
        let Some(findings) = document["findings"].as_array() else {
            return Err(wrong("expected a list `findings`".to_owned()));
        };
        let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or("").to_owned();
        let name = |it: &Value| {
            let places = it["places"].as_array().map_or(&[][..], Vec::as_slice);
            let fingerprints = [it].into_iter().chain(places).map(|it| text(it, "fingerprint"));
            Name { id: text(it, "id"), fingerprints: fingerprints.collect() }
        };
        let names: Vec<Name> = findings.iter().map(name).collect();
        let at = position(&names, &args.id).map_err(|error| wrong(error.to_string()))?;
        let finding = &findings[at];
        let (id, fingerprint) = (text(finding, "id"), text(finding, "fingerprint"));
        let events = finding["events"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(Self {
            id,
            fingerprint,
            analysis: text(finding, "analysis"),
            events: events.iter().filter_map(Value::as_u64).collect(),
            state: finding
                .get("predicate")
                .map(|_| [text(finding, "predicate"), text(finding, "order")]),
            settings,
        })
    }

    /// What was asked for, if it was found by a search for states.
    fn question(&self) -> anyhow::Result<Option<Question>> {
        let Some([predicate, order]) = &self.state else { return Ok(None) };
        if self.analysis != FIND {
            return Ok(None);
        }
        let known = OrderName::from_str(order, false);
        let Ok(order) = known else {
            anyhow::bail!("the report has an unknown order, `{order}`");
        };
        Ok(Some(Question { predicates: vec![predicate.clone()], order, online: false }))
    }

    /// The analysis that made it.
    fn analysis(&self) -> anyhow::Result<&'static dyn Analysis> {
        let name = &self.analysis;
        let found = reweave_catalog::analyses().find(|it| it.info().name == name.as_str());
        found.ok_or_else(|| anyhow::anyhow!("the report has an unknown analysis, `{name}`"))
    }

    /// The finding of `outcome` that has the same fingerprint, if possible of the same events.
    fn found_again(&self, outcome: &Outcome, args: &Wanted) -> anyhow::Result<Reported> {
        let same = || {
            let findings = outcome.findings.iter();
            let has = |reported: &&Reported| {
                reported.fingerprints().any(|it| it.to_string() == self.fingerprint)
            };
            findings.filter(has).map(|reported| shown_at(reported, &self.fingerprint))
        };
        let numbers = |reported: &Reported| -> Vec<u64> {
            reported.finding.events.iter().map(|event| u64::from(event.number())).collect()
        };
        let exactly = same().find(|reported| numbers(reported) == self.events);
        let is_exact = exactly.is_some();
        let Some(found) = exactly.or_else(|| same().next()) else {
            anyhow::bail!(
                "{}: {} no longer finds {} ({}){}",
                input::name(&args.trace),
                self.analysis,
                self.id,
                self.fingerprint,
                unsearched(outcome)
            );
        };
        if !is_exact {
            say(&format!(
                "{}: this is another instance of {}, at the same code locations",
                input::name(&args.trace),
                self.id
            ));
        }
        Ok(Reported { id: self.id.clone(), ..found })
    }
}

/// The report on `trace` that `parsed` is, or that is among those which it lists.
fn document<'a>(parsed: &'a Value, trace: &Path) -> Result<&'a Value, String> {
    let path = trace.display().to_string();
    let document = match parsed.as_array().map(Vec::as_slice) {
        None => parsed,
        Some([only]) => only,
        Some(several) => several
            .iter()
            .find(|document| document["trace"]["path"] == path.as_str())
            .ok_or_else(|| format!("no report on `{path}`"))?,
    };
    match document["schema"].as_str() {
        Some(SCHEMA) => Ok(document),
        Some(other) => Err(format!("expected a report with schema `{SCHEMA}`, found `{other}`")),
        None => {
            Err(format!("expected a report with schema `{SCHEMA}`, found another kind of JSON"))
        }
    }
}
