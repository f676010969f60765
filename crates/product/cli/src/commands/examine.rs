//! What `check`, the commands of the families and `explain` share: run analyses on traces and report
//! what they find.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use reweave_analysis::{Analysis, Outcome, Settings};
use reweave_report::{Confirmation, Examined, SetAside, Sources, counted, quoted};
use reweave_trace::Trace;

use crate::destination::{Destination, format_of};
use crate::exit::{self, say};
use crate::launch::is_own;
use crate::policy::PolicyArgs;
use crate::remap::{Remap, remapped};
use crate::watch::Bar;
use crate::{input, interrupt, terminal};

/// What to analyse, how hard to search, and how to report.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Traces to read; `-` is standard input
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<PathBuf>,
    #[command(flatten)]
    pub search: Search,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    pub printing: Printing,
}

/// Which analyses to run.
#[derive(Debug, clap::Args)]
pub struct Selection {
    /// Run only the analyses whose names start with this, such as `races`
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    only: String,
    /// Also run analyses whose names start with this, such as `determinism`
    ///
    /// May be given several times.
    #[arg(long, value_name = "NAME")]
    with: Vec<String>,
}

impl Selection {
    /// The analyses that are asked for.
    pub fn analyses(&self) -> anyhow::Result<Vec<&'static dyn Analysis>> {
        Ok(reweave_catalog::select(&self.only, &self.with)?)
    }
}

/// How many findings are listed with `--all`, if nothing else is asked for.
const INSTANCES_MAX: usize = 10_000;

/// How hard to search.
#[derive(Debug, clap::Args)]
pub struct Search {
    /// List every instance by itself, and findings without a schedule
    ///
    /// Findings that no schedule proves are labelled as such.
    #[arg(long)]
    all: bool,
    /// Stop after this many findings [default: 10000 with `--all`, else none]
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    limit: Option<usize>,
    /// Stop the search after this many seconds [default: none]
    ///
    /// `5m` and `2h` are understood too. If time ends the search, the report says so, and the exit code is 3
    /// unless something was found: a faster machine may find more. Several traces share the time.
    #[arg(long, value_name = "SECS", value_parser = input::duration)]
    budget: Option<Duration>,
    /// Maximum work, in search steps [default: 2000000000, or by the budget]
    ///
    /// The same work gives the same results on every machine. A step reads an entry of a vector
    /// clock; for `states find`, it chooses a number of events.
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    work: Option<u64>,
    /// Repair traces whose events cannot have happened, and list the changes
    #[arg(long)]
    repair: bool,
    /// Treat all atomics and fences as sequentially consistent
    ///
    /// By default they order what their memory orders say, as in C, C++ and Rust.
    #[arg(long)]
    seqcst: bool,
    /// Take files at or below OLD in the trace as at or below NEW here
    ///
    /// For sources that were moved or renamed since: reports, fingerprints and predicates go by the new
    /// names. May be given several times; the longest OLD decides.
    #[arg(long = "remap", value_name = "OLD=NEW", value_parser = Remap::parse)]
    remaps: Vec<Remap>,
    /// Number of worker threads [default: all cores]
    ///
    /// The findings do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// How to report, and where to.
#[derive(Debug, clap::Args)]
pub struct Printing {
    /// Output format [default: by the extension of the output, or text]
    ///
    /// The extensions are .html, .json, .sarif, .xml (for junit), .csv and .txt.
    #[arg(long, value_enum)]
    format: Option<ReportFormat>,
    /// Write the report to this file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also look for the program's source code in this folder
    ///
    /// May be given several times.
    #[arg(long = "source", value_name = "DIR")]
    pub sources: Vec<PathBuf>,
    /// Show all steps of schedules, and not only those that matter
    #[arg(long)]
    pub full: bool,
}

/// The number that `text` is.
fn whole<N: FromStr>(text: &str) -> Result<N, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let reason = if is_number { "a smaller number" } else { "a whole number, such as 100" };
    text.parse().map_err(|_| format!("expected {reason}"))
}

impl Printing {
    /// Where the report goes. What cannot be written is an error before the work begins.
    pub fn prepare(&self) -> anyhow::Result<Destination> {
        self.format()?;
        Destination::prepare(self.output.as_deref())
    }

    /// How wide the report may be: no wider than the terminal, if it goes to one.
    pub fn width(&self) -> Option<usize> {
        let is_file = self.output.as_deref().is_some_and(|path| path != Path::new("-"));
        if is_file { None } else { terminal::width() }
    }

    /// The format: by the option, or by the name of the output.
    pub fn format(&self) -> anyhow::Result<ReportFormat> {
        format_of(self.format, self.output.as_deref())
    }
}

impl Search {
    /// The trace in the file `path`, as `settings` ask for it.
    pub fn read(&self, path: &Path, settings: &Settings) -> anyhow::Result<Trace> {
        let trace = input::read(path, self.repair)?.trace;
        let trace = remapped(trace, &self.remaps);
        Ok(if settings.seqcst { trace.with_seqcst_atomics() } else { trace })
    }

    /// Where to look for the source code of the program of `trace`, read from `path`: also in `folders`.
    pub fn sources(&self, path: &str, trace: &Trace, folders: &[PathBuf]) -> Sources {
        let option = |name: &str, text: &str| format!("{name} {}", quoted(text));
        let folder_options = folders.iter().map(|it| option("--source", &it.display().to_string()));
        let remap_options = self.remaps.iter().map(|remap| option("--remap", &remap.text()));
        let options = folder_options.chain(remap_options).collect();
        input::sources(path, trace, folders).with_options(options)
    }

    /// The settings of the analyses.
    pub fn settings(&self) -> Settings {
        Settings {
            all: self.all,
            // A short loop can have millions of instances.
            limit: self.limit.or(self.all.then_some(INSTANCES_MAX)),
            budget: self.work.unwrap_or_else(|| Settings::budget_for(self.budget)),
            time: self.budget,
            seqcst: self.seqcst,
            threads: self.threads.map_or_else(available_threads, usize::from),
            ..Settings::default()
        }
    }
}

/// The format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ReportFormat {
    /// for people
    #[default]
    Text,
    /// for programs
    Json,
    /// a self-contained page
    Html,
    /// for code scanners: SARIF 2.1.0
    Sarif,
    /// for test runners: one failed test per finding
    Junit,
    /// a table with a row per finding, for spreadsheets and data tools
    Csv,
    /// annotations that a GitHub workflow shows beside the code
    Github,
    /// the schedules, for timeline viewers such as ui.perfetto.dev
    Chrome,
}

impl ReportFormat {
    /// Writes the report on `examined`; in JSON as a list if `is_list`.
    pub fn write(
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
            Self::Csv => reweave_report::csv(out, examined),
            Self::Github => reweave_report::github(out, examined),
            Self::Chrome => reweave_report::chrome(out, examined),
        }
    }
}

/// Runs `analyses` on the traces of `options`, with settings changed by `adjust`.
pub fn run(
    options: &Options,
    analyses: &[&'static dyn Analysis],
    adjust: impl FnOnce(&mut Settings),
) -> anyhow::Result<ExitCode> {
    run_chosen(options, |_| Ok(boxed(analyses)), adjust)
}

/// Runs `analyses` on the one trace of `options`, and has `confirm` replay what is found.
pub fn run_confirmed(
    options: &Options,
    analyses: &[&'static dyn Analysis],
    confirm: impl Fn(&Path, &Trace, &Outcome) -> anyhow::Result<Vec<Confirmation>>,
) -> anyhow::Result<ExitCode> {
    let count = options.traces.len();
    if let [trace, program, ..] = &options.traces[..] {
        anyhow::ensure!(
            !input::is_program(program),
            "the program comes after `--`: reweave check {} --confirm -- {}",
            quoted(&trace.display().to_string()),
            quoted(&program.display().to_string())
        );
    }
    anyhow::ensure!(count == 1, "`--confirm` takes one trace, found {count}");
    run_all(options, &|_| Ok(boxed(analyses)), |_| {}, &confirm)
}

/// Runs on each trace of `options` the analyses that `choose` chooses for it.
pub fn run_chosen(
    options: &Options,
    choose: impl Fn(&Trace) -> anyhow::Result<Vec<Box<dyn Analysis>>>,
    adjust: impl FnOnce(&mut Settings),
) -> anyhow::Result<ExitCode> {
    run_all(options, &choose, adjust, &|_, _, _| Ok(Vec::new()))
}

fn boxed(analyses: &[&'static dyn Analysis]) -> Vec<Box<dyn Analysis>> {
    analyses.iter().map(|&analysis| Box::new(analysis) as Box<dyn Analysis>).collect()
}

/// Chooses the analyses for a trace.
type Choose<'a> = &'a dyn Fn(&Trace) -> anyhow::Result<Vec<Box<dyn Analysis>>>;

/// Replays what was found in a trace, which was read from a file.
type Confirm<'a> = &'a dyn Fn(&Path, &Trace, &Outcome) -> anyhow::Result<Vec<Confirmation>>;

/// A trace that was analysed.
struct Analysed {
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
    let destination = options.printing.prepare()?;
    let mut policy = options.policy.open(output)?;
    let mut settings = options.search.settings();
    adjust(&mut settings);
    settings.limit = policy.search_limit(settings.limit);
    let mut analysed: Vec<Analysed> = Vec::new();
    let mut failures = Vec::new();
    for path in &options.traces {
        // What was found before an interruption is still reported.
        let is_cut_short = || interrupt::is_asked() && !analysed.is_empty();
        let reading = if is_cut_short() {
            Err(exit::Interrupted.into())
        } else {
            options.search.read(path, &settings)
        };
        if is_cut_short() {
            say(&format!("{}: not analysed (interrupted)", input::name(path)));
            continue;
        }
        let trace = match reading {
            Ok(trace) => trace,
            Err(error) if interrupt::is_asked() => return Err(error),
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
        let mut outcome = analyse(&trace, &analyses, &settings);
        let kinds = analyses.iter().map(|analysis| analysis.info().kind);
        let set_aside = policy.filter(&trace, &mut outcome, kinds);
        // Findings that cannot be replayed are reported all the same.
        let confirmations = confirm(path, &trace, &outcome).unwrap_or_else(|error| {
            failures.push(error);
            Vec::new()
        });
        let path = path.display().to_string();
        let sources = options.search.sources(&path, &trace, &options.printing.sources);
        analysed.push(Analysed { path, trace, outcome, confirmations, sources, set_aside });
    }
    if !settings.all {
        let examined = analysed.iter_mut();
        let mut examined: Vec<_> =
            examined.map(|it| (it.path.as_str(), &it.trace, &mut it.outcome)).collect();
        reweave_catalog::list_once(&mut examined);
    }
    write_report(options, destination, &analysed)?;
    if analysed.len() == options.traces.len() {
        policy.report_stale();
    }
    let code = policy.exit_code(analysed.iter().map(|it| &it.outcome));
    Ok(exit::after(&failures, code))
}

fn analyse(trace: &Trace, analyses: &[Box<dyn Analysis>], settings: &Settings) -> Outcome {
    let analyses: Vec<&dyn Analysis> = analyses.iter().map(Box::as_ref).collect();
    interrupt::keep(interrupt::RESULTS);
    let bar = Bar::new("analysing", Some(trace.len() as u64)).within(settings.time);
    reweave_catalog::run(trace, &analyses, settings, &bar)
}

fn write_report(
    options: &Options,
    destination: Destination,
    analysed: &[Analysed],
) -> anyhow::Result<()> {
    // Without a trace there is no report, and an old one stays as it is.
    if analysed.is_empty() {
        return Ok(());
    }
    let (fails_on, folder) = (options.policy.fails_on(), input::current_folder());
    let width = options.printing.width();
    let views = analysed.iter().map(|it| Examined {
        confirmations: &it.confirmations,
        sources: &it.sources,
        set_aside: it.set_aside,
        fails_on: &fails_on,
        is_full: options.printing.full,
        folder: folder.as_deref(),
        is_own: is_own(&it.trace),
        width,
        ..Examined::new(&it.path, &it.trace, &it.outcome)
    });
    let views: Vec<Examined<'_>> = views.collect();
    let (format, is_list) = (options.printing.format()?, options.traces.len() > 1);
    let _stage = tracing::info_span!("write report", format = super::check::name(format)).entered();
    let found: Vec<String> =
        views.iter().map(|it| reweave_report::summary(it.outcome, it.set_aside)).collect();
    let found = match &found[..] {
        [only] => only.clone(),
        several => format!("{} in {} traces", total_of(&views), several.len()),
    };
    let find_file = |name: &str| views.iter().find_map(|it| it.sources.file(name));
    let write = |out: &mut dyn Write| format.write(out, &views, is_list);
    match format {
        ReportFormat::Text => destination.write_text(&found, &find_file, write)?,
        _ => destination.write(&found, write)?,
    }
    if format == ReportFormat::Github {
        append_step_summary(&views);
    }
    Ok(())
}

/// How many findings there are.
fn total_of(examined: &[Examined<'_>]) -> String {
    let count: usize = examined.iter().map(|it| it.outcome.findings.len()).sum();
    counted(count as u64, "finding")
}

/// Appends the findings to the summary that GitHub shows on the page of a workflow's run, if a
/// workflow runs us. A failure is only a warning, since the report is written already.
fn append_step_summary(examined: &[Examined<'_>]) {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|it| !it.is_empty()) else {
        return;
    };
    let file = File::options().append(true).create(true).open(&path);
    let written = file.and_then(|file| {
        let mut out = BufWriter::new(file);
        reweave_report::github_summary(&mut out, examined)?;
        out.flush()
    });
    if let Err(error) = written {
        say(&format!("cannot write the step summary to {}: {error}", path.display()));
    }
}

/// The default number of worker threads.
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
