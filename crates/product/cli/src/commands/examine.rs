//! What `check`, the commands of the families and `explain` share: run analyses on traces and print
//! what they find.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use reweave_analysis::{Analysis, Outcome, Settings};
use reweave_report::{Confirmation, Examined, SetAside, Sources};
use reweave_trace::Trace;

use crate::destination::Destination;
use crate::exit::{self, say};
use crate::gate::GateArgs;
use crate::watch::Bar;
use crate::{input, interrupt, step_summary};

/// What to examine, how hard, and how to print what is found.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Traces to read; `-` is standard input
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    #[command(flatten)]
    search: Search,
    #[command(flatten)]
    gate: GateArgs,
    #[command(flatten)]
    printing: Printing,
}

/// Which analyses to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Selection {
    /// Run only the analyses whose names start with this, such as `races`
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    only: String,
    /// Also run this family, or the analyses whose names start so
    #[arg(long, value_name = "NAME")]
    with: Vec<String>,
}

impl Selection {
    /// The analyses that are asked for.
    pub(crate) fn analyses(&self) -> anyhow::Result<Vec<&'static dyn Analysis>> {
        Ok(reweave_catalog::select(&self.only, &self.with)?)
    }
}

/// How hard to look.
#[derive(Debug, clap::Args)]
pub(crate) struct Search {
    /// List every instance, ungrouped, and what no schedule proves, labelled as such
    #[arg(long)]
    all: bool,
    /// Stop after this many findings
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    limit: Option<usize>,
    /// How much work to spend on looking for schedules, in clock entries gone through; on states,
    /// in choices of a number of events
    #[arg(long, value_name = "N", default_value_t = Settings::default().budget,
          value_parser = whole::<u64>)]
    budget: u64,
    /// Mend traces whose events cannot have happened, and say what was changed
    #[arg(long)]
    pub(crate) repair: bool,
    /// How many threads may work; all cores unless said. The findings do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// How to print what is found, and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct Printing {
    /// How to print the report; unless said, as the name of the output ends (.html, .json, .sarif,
    /// .xml for junit), and else as text
    #[arg(long, value_enum)]
    format: Option<ReportFormat>,
    /// Write the report to this file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Look for the program's code in this folder too; may be given several times
    #[arg(long = "source", value_name = "DIR")]
    pub(crate) sources: Vec<PathBuf>,
}

/// The number that `text` is.
fn whole<N: FromStr>(text: &str) -> Result<N, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().map_err(|_| match is_number {
        true => "expected a smaller number".to_owned(),
        false => "expected a whole number, such as 100".to_owned(),
    })
}

impl Printing {
    /// How to print: as is said, or as the name of the output says.
    pub(crate) fn format(&self) -> ReportFormat {
        let named = || self.output.as_deref().and_then(ReportFormat::of_name);
        self.format.or_else(named).unwrap_or_default()
    }
}

impl Search {
    /// What all analyses are told.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            all: self.all,
            limit: self.limit,
            budget: self.budget,
            threads: self.threads.map_or_else(available_threads, usize::from),
            ..Settings::default()
        }
    }
}

/// How a report is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ReportFormat {
    /// for people
    #[default]
    Text,
    /// for programs
    Json,
    /// a page that stands alone
    Html,
    /// for code scanners: SARIF 2.1.0
    Sarif,
    /// for test runners: a failed test a finding
    Junit,
    /// annotations that a GitHub workflow shows beside the code
    Github,
    /// the schedules for timeline viewers such as ui.perfetto.dev
    Chrome,
}

impl ReportFormat {
    /// The format of reports that are called so.
    fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let ends = [
            (".sarif.json", Self::Sarif),
            (".sarif", Self::Sarif),
            (".json", Self::Json),
            (".html", Self::Html),
            (".htm", Self::Html),
            (".xml", Self::Junit),
        ];
        ends.into_iter().find(|(end, _)| name.ends_with(end)).map(|(_, format)| format)
    }

    /// Writes the report on `examined`, for programs as a list if `is_list`.
    pub(crate) fn write(
        self,
        out: &mut dyn Write,
        examined: &[Examined<'_>],
        is_list: bool,
    ) -> io::Result<()> {
        match self {
            Self::Text => reweave_report::text(out, examined),
            Self::Json if is_list => reweave_report::json_list(out, examined),
            Self::Json => reweave_report::json(out, examined),
            Self::Html => reweave_report::html(out, examined),
            Self::Sarif => reweave_report::sarif(out, examined),
            Self::Junit => reweave_report::junit(out, examined),
            Self::Github => reweave_report::github(out, examined),
            Self::Chrome => reweave_report::chrome(out, examined),
        }
    }
}

/// Runs `analyses` on the traces of `options`, with what `adjust` adds to the settings.
pub(crate) fn run(
    options: &Options,
    analyses: &[&'static dyn Analysis],
    adjust: impl FnOnce(&mut Settings),
) -> anyhow::Result<ExitCode> {
    let boxed = |&analysis: &&'static dyn Analysis| -> Box<dyn Analysis> { Box::new(analysis) };
    run_chosen(options, |_| Ok(analyses.iter().map(boxed).collect()), adjust)
}

/// The same on the one trace of `options`, with what `confirm` says of what was found.
pub(crate) fn run_confirmed(
    options: &Options,
    analyses: &[&'static dyn Analysis],
    confirm: impl Fn(&Trace, &Outcome) -> anyhow::Result<Vec<Confirmation>>,
) -> anyhow::Result<ExitCode> {
    let count = options.traces.len();
    anyhow::ensure!(count == 1, "`--confirm` takes the trace of one program, found {count}");
    let boxed = |&analysis: &&'static dyn Analysis| -> Box<dyn Analysis> { Box::new(analysis) };
    let choose = |_: &Trace| Ok(analyses.iter().map(boxed).collect());
    run_all(options, &choose, |_| {}, &confirm)
}

/// Runs on each trace of `options` the analyses that `choose` chooses for it, with what `adjust`
/// adds to the settings.
pub(crate) fn run_chosen(
    options: &Options,
    choose: impl Fn(&Trace) -> anyhow::Result<Vec<Box<dyn Analysis>>>,
    adjust: impl FnOnce(&mut Settings),
) -> anyhow::Result<ExitCode> {
    run_all(options, &choose, adjust, &|_, _| Ok(Vec::new()))
}

/// Which analyses to run on a trace.
type Choose<'a> = &'a dyn Fn(&Trace) -> anyhow::Result<Vec<Box<dyn Analysis>>>;

/// What came of replaying what was found in a trace.
type Confirm<'a> = &'a dyn Fn(&Trace, &Outcome) -> anyhow::Result<Vec<Confirmation>>;

/// A trace, what was found in it, and what came of replaying that.
struct Done {
    path: String,
    trace: Trace,
    outcome: Outcome,
    confirmations: Vec<Confirmation>,
    sources: Sources,
    set_aside: SetAside,
}

fn run_all(
    options: &Options,
    choose: Choose<'_>,
    adjust: impl FnOnce(&mut Settings),
    confirm: Confirm<'_>,
) -> anyhow::Result<ExitCode> {
    input::check_names(&options.traces)?;
    let output = options.printing.output.as_deref();
    let destination = Destination::prepare(output)?;
    let mut checkpoint = options.gate.open(output)?;
    let mut settings = options.search.settings();
    adjust(&mut settings);
    settings.limit = checkpoint.widened(settings.limit);
    let mut examined: Vec<Done> = Vec::new();
    let mut failures = Vec::new();
    for path in &options.traces {
        let not_examined = || say(&format!("{}: not examined: interrupted", input::name(path)));
        if interrupt::is_asked() && !examined.is_empty() {
            not_examined();
            continue;
        }
        let trace = match input::read(path, options.search.repair) {
            Ok(reading) => reading.trace,
            Err(error) if interrupt::is_asked() => match examined.is_empty() {
                true => return Err(error),
                false => {
                    not_examined();
                    continue;
                }
            },
            Err(error) => {
                failures.push(error);
                continue;
            }
        };
        let analyses = match choose(&trace) {
            Ok(analyses) => analyses,
            Err(error) => {
                failures.push(error.context(format!("{}: in the predicate", input::name(path))));
                continue;
            }
        };
        let mut outcome = analysed(&trace, &analyses, &settings);
        let kinds = analyses.iter().map(|analysis| analysis.info().kind);
        let set_aside = checkpoint.sift(&trace, &mut outcome, kinds);
        // What cannot be replayed is reported all the same.
        let confirmations = confirm(&trace, &outcome).unwrap_or_else(|error| {
            failures.push(error);
            Vec::new()
        });
        let path = path.display().to_string();
        let sources = input::sources(&path, &trace, &options.printing.sources);
        examined.push(Done { path, trace, outcome, confirmations, sources, set_aside });
    }
    write_report(options, destination, &examined)?;
    if examined.len() == options.traces.len() {
        checkpoint.tell();
    }
    let code = checkpoint.code(examined.iter().map(|done| &done.outcome));
    Ok(exit::after(&failures, code))
}

fn analysed(trace: &Trace, analyses: &[Box<dyn Analysis>], settings: &Settings) -> Outcome {
    let analyses: Vec<&dyn Analysis> = analyses.iter().map(Box::as_ref).collect();
    interrupt::keep();
    let bar = Bar::new("analysing", Some(trace.len() as u64));
    reweave_catalog::run(trace, &analyses, settings, &bar)
}

fn write_report(
    options: &Options,
    destination: Destination,
    examined: &[Done],
) -> anyhow::Result<()> {
    let fails_on = options.gate.fails_on();
    let views = examined.iter().map(|done| Examined {
        confirmations: &done.confirmations,
        sources: &done.sources,
        set_aside: done.set_aside,
        fails_on: &fails_on,
        ..Examined::new(&done.path, &done.trace, &done.outcome)
    });
    let views: Vec<Examined<'_>> = views.collect();
    // Where nothing could be read there is no report, and an old one stays as it is.
    if examined.is_empty() {
        return Ok(());
    }
    let (format, is_list) = (options.printing.format(), options.traces.len() > 1);
    destination.write(|out| format.write(out, &views, is_list))?;
    if format == ReportFormat::Github {
        step_summary::append(&views);
    }
    Ok(())
}

/// How many threads may work unless said.
pub(crate) fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
