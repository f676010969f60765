//! `run`: run a program of the language, and record it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use reweave_exec::scheduler::Replay;
use reweave_exec::{
    Blocked, Choice, Code, Ending, Exploration, Fault, FaultKind, Layers, Limits, Outcome, Run,
    Settings, explore_sequential_while, explore_while,
};
use reweave_format::Format;
use reweave_order::poset::Relation;
use reweave_report::{Examined, compact, counted};
use reweave_states::analyses::Find;
use reweave_states::predicate::Predicate;
use reweave_trace::Trace;
use reweave_workflows::inference::InferenceError;
use reweave_workflows::runs::{self, Plan, SchedulerKind};
use serde_json::{Value, json};

use crate::commands::stats::StatsFormat;
use crate::destination::Destination;
use crate::exit::{self, say};
use crate::input;
use crate::interrupt;
use crate::program::{self, Loaded};
use crate::watch::Bar;

/// Run a program of the reweave language, and record what it does.
///
/// Prints how each run ended: the values of shared variables, failed assertions and other faults with their lines,
/// deadlocks with what each thread waits for. The same program, scheduler and seed give the same run. `--scheduler
/// exhaustive` enumerates the outcomes of all schedules, `sequential` those of the sequential program.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave run bank.rw -o bank.rwt && reweave check bank.rwt\n  \
                        reweave run bank.rw --scheduler exhaustive")]
pub struct Args {
    /// The program to run; `-` is standard input
    #[arg(value_name = "PROGRAM.rw")]
    program: PathBuf,
    /// Write the trace to this file; several runs to name-1.rwt, …
    #[arg(short, long, value_name = "TRACE")]
    output: Option<PathBuf>,
    /// Format of the trace [default: by the extension of the output]
    #[arg(long, value_name = "FORMAT", value_parser = input::named(input::FORMATS))]
    to: Option<Format>,
    /// How the thread of each step is chosen
    #[arg(long, value_enum, default_value_t)]
    scheduler: SchedulerName,
    #[command(flatten)]
    choosing: Choosing,
    /// Number of runs, each with the next seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Maximum number of states for `exhaustive` and `sequential`
    #[arg(long, value_name = "N", default_value_t = Limits::default().states_max)]
    states: u64,
    /// Outcome of `exhaustive` to write with `-o` [default: first faulty]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    outcome: Option<u32>,
    /// Find global states of each run that meet this predicate
    ///
    /// A predicate inside `always` or `never` is reported when a state violates it. May be given several times. Exits
    /// with 66 if a state is found.
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    watch: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: StatsFormat,
}

/// Which of the schedules that a scheduler can choose, and how far it goes.
#[derive(Debug, clap::Args)]
pub struct Choosing {
    /// Seed of the random choices; of several runs, the first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// With `pct`: depth of the bugs to find (ordering constraints)
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub depth: u32,
    /// Maximum number of steps per run
    #[arg(long, value_name = "N", default_value_t = Settings::default().steps_max)]
    pub steps: u64,
}

impl Choosing {
    /// `runs_count` runs by `scheduler`.
    pub fn plan(&self, scheduler: SchedulerKind, runs_count: u32) -> Plan {
        let settings = Settings { steps_max: self.steps, ..Settings::default() };
        Plan { scheduler, seed: self.seed, runs_count, settings }
    }
}

/// A scheduler as the command line spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum SchedulerName {
    /// a random thread at every step
    #[default]
    Random,
    /// random priorities that change at a few random steps
    Pct,
    /// each thread in turn
    Roundrobin,
    /// pauses threads before conflicting accesses
    RaceDirected,
    /// every outcome of every schedule
    Exhaustive,
    /// every outcome of the sequential program: threads one after another, each `if (*)` taken or not
    Sequential,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(output) = &args.output {
        input::format_of_output(output, args.to)?;
    }
    let is_standard = args.output.as_deref() == Some(Path::new("-"));
    anyhow::ensure!(
        !is_standard || args.runs == 1,
        "cannot write several traces to standard output"
    );
    let loaded = program::load(&args.program)?;
    interrupt::keep(interrupt::RESULTS);
    let made = match args.kind() {
        Some(scheduler) => {
            let mut plan = args.choosing.plan(scheduler, args.runs);
            plan.settings.layers = Layers::Events;
            repeat(args, &loaded, &plan)?
        }
        None if args.scheduler == SchedulerName::Sequential => {
            anyhow::ensure!(
                args.output.is_none(),
                "`--output` needs another scheduler: a sequential run has no trace"
            );
            sequential(args, &loaded)?
        }
        None => all(args, &loaded)?,
    };
    let watched = made.watched.iter().map(|watched| &watched.outcome);
    let code = exit::of_search(watched);
    let report = Report { loaded: &loaded, scheduler: args.scheduler, made: &made };
    Destination::StandardOutput.write("", |out| match args.format {
        StatsFormat::Text => report.text(out),
        StatsFormat::Json => report.json(out),
    })?;
    Ok(code)
}

/// Finds states of `run` that meet the predicates.
fn watch(args: &Args, loaded: &Loaded, seed: Option<u64>, run: Run) -> anyhow::Result<Watched> {
    let parse = |text: &String| Predicate::parse(text, &run.trace);
    let predicates = args.watch.iter().map(parse).collect::<Result<_, _>>();
    let predicates = predicates.context("in the predicate to watch for")?;
    let find = Find { predicates, relation: Relation::TraceOrderPreserving, is_online: true };
    let bar = Bar::new("watching", Some(run.trace.len() as u64));
    let settings = reweave_analysis::Settings::default();
    let outcome = reweave_catalog::run(&run.trace, &[&find], &settings, &bar);
    let seed = seed.map_or(String::new(), |seed| format!(", seed {seed}"));
    Ok(Watched { name: format!("{}{seed}", loaded.source.name()), trace: run.trace, outcome })
}

/// Runs as often as `plan` says, and writes each trace.
fn repeat(args: &Args, loaded: &Loaded, plan: &Plan) -> anyhow::Result<Made> {
    let mut made = Made::default();
    let mut failure = None;
    let goes_on = || !interrupt::is_asked();
    runs::repeat(&loaded.code, plan, &goes_on, |seed, run| {
        let number = (plan.runs_count > 1).then_some(made.runs.len() + 1);
        match write_trace(args, number, &run) {
            Ok(path) => made.add(&loaded.code, Some(seed), &run, path),
            Err(error) => failure = Some(error),
        }
        if !args.watch.is_empty() {
            match watch(args, loaded, Some(seed), run) {
                Ok(watched) => made.watched.push(watched),
                Err(error) => failure = Some(error),
            }
        }
        failure.is_none() && goes_on()
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(made),
    }
}

/// Enumerates the outcomes of all schedules; the trace is of the outcome asked for, or of the first
/// faulty one, or of the first.
fn all(args: &Args, loaded: &Loaded) -> anyhow::Result<Made> {
    let exploration = explore_while(&loaded.code, &args.limits(), &|| !interrupt::is_asked());
    let mut made = Made::new(&exploration);
    let is_fault = |outcome: &Outcome| {
        !outcome.faults.is_empty() || matches!(outcome.ending, Ending::Deadlock(_))
    };
    let outcomes = &exploration.outcomes;
    for (outcome, schedule) in outcomes {
        made.add_outcome(&loaded.code, outcome, Some(schedule.0.len()));
    }
    let asked = match args.outcome {
        Some(number) => Some(number as usize - 1),
        None => outcomes.iter().position(|(outcome, _)| is_fault(outcome)).or(Some(0)),
    };
    let Some((_, schedule)) = asked.and_then(|place| outcomes.get(place)) else {
        anyhow::ensure!(args.outcome.is_none(), "there are only {} outcomes", outcomes.len());
        return Ok(made);
    };
    if args.output.is_some() || !args.watch.is_empty() {
        let settings =
            Settings { steps_max: u64::MAX, layers: Layers::Events, ..Settings::default() };
        let run = reweave_exec::run(&loaded.code, &mut Replay::new(schedule), &settings);
        if let Some(path) = write_trace(args, None, &run)? {
            let number = asked.map_or(0, |place| place + 1);
            say(&format!("{}: trace of outcome {number}", input::output_name(&path)));
        }
        if !args.watch.is_empty() {
            made.watched.push(watch(args, loaded, None, run)?);
        }
    }
    Ok(made)
}

/// Enumerates the outcomes of the sequential program.
fn sequential(args: &Args, loaded: &Loaded) -> anyhow::Result<Made> {
    if let Some(line) = loaded.code.has_fork() {
        return Err(InferenceError::Fork(line)).context(loaded.source.name().to_owned());
    }
    let exploration =
        explore_sequential_while(&loaded.code, &args.limits(), &|| !interrupt::is_asked());
    let mut made = Made::new(&exploration);
    for (outcome, choices) in &exploration.outcomes {
        made.add_outcome(&loaded.code, outcome, None);
        made.add_choices(choices);
    }
    Ok(made)
}

impl Args {
    /// The scheduler of single runs, if it is one.
    const fn kind(&self) -> Option<SchedulerKind> {
        Some(match self.scheduler {
            SchedulerName::Random => SchedulerKind::Random,
            SchedulerName::Pct => SchedulerKind::Pct { depth: self.choosing.depth },
            SchedulerName::Roundrobin => SchedulerKind::RoundRobin,
            SchedulerName::RaceDirected => SchedulerKind::RaceDirected,
            SchedulerName::Exhaustive | SchedulerName::Sequential => return None,
        })
    }

    fn limits(&self) -> Limits {
        let steps_max = self.choosing.steps.min(Limits::default().steps_max);
        Limits { states_max: self.states, steps_max }
    }
}

fn write_trace(args: &Args, number: Option<usize>, run: &Run) -> anyhow::Result<Option<PathBuf>> {
    let Some(output) = &args.output else { return Ok(None) };
    let (format, compression) = input::format_of_output(output, args.to)?;
    let path = number.map_or_else(|| output.clone(), |number| numbered(output, number));
    Destination::prepare(Some(&path))?.write_trace(&run.trace, format, compression)?;
    say(&format!("{}: {} events", input::output_name(&path), run.trace.len()));
    Ok(Some(path))
}

/// `name.rwt` with `-2` before the first dot of its last part.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (stem, rest) = match name.find('.') {
        Some(dot) if dot > 0 => name.split_at(dot),
        _ => (name.as_str(), ""),
    };
    path.with_file_name(format!("{stem}-{number}{rest}"))
}

/// What the runs of a program did.
#[derive(Default)]
struct Made {
    runs: Vec<OneRun>,
    /// The number of states, if all schedules were enumerated.
    states_count: Option<u64>,
    is_complete: bool,
    /// Whether some schedule never ends.
    is_endless: bool,
    /// Faults of schedules that do not end.
    other_faults: Vec<Fault>,
    /// What was watched for, run by run.
    watched: Vec<Watched>,
}

/// What was found in one run that was watched.
struct Watched {
    name: String,
    trace: Trace,
    outcome: reweave_analysis::Outcome,
}

/// One run, or one outcome of many.
struct OneRun {
    seed: Option<u64>,
    steps_count: Option<usize>,
    events_count: Option<usize>,
    /// The choices of a sequential run.
    choices: Option<String>,
    ending: Ending,
    faults: Vec<Fault>,
    /// The program's result, by name.
    result: Vec<(String, i64)>,
    trace: Option<PathBuf>,
}

impl Made {
    /// An exploration, its outcomes to be added.
    fn new<W>(exploration: &Exploration<W>) -> Self {
        let is_reported = |fault: &Fault| {
            exploration.outcomes.iter().any(|(outcome, _)| outcome.faults.contains(fault))
        };
        let faults = exploration.faults.iter().map(|(fault, _)| fault);
        Self {
            states_count: Some(exploration.states_count),
            is_complete: exploration.complete,
            is_endless: exploration.is_endless,
            other_faults: faults.filter(|fault| !is_reported(fault)).cloned().collect(),
            ..Self::default()
        }
    }

    /// Adds an outcome, and how long a schedule that shows it is.
    fn add_outcome(&mut self, code: &Code, outcome: &Outcome, steps: Option<usize>) {
        self.runs.push(OneRun {
            seed: None,
            steps_count: steps,
            events_count: None,
            choices: None,
            ending: outcome.ending.clone(),
            faults: outcome.faults.clone(),
            result: code.result_names().into_iter().zip(outcome.result.iter().copied()).collect(),
            trace: None,
        });
    }

    /// Adds the choices that lead to the last outcome.
    fn add_choices(&mut self, choices: &[Choice]) {
        let shown = choices.iter().take(CHOICES_MAX).map(|choice| match choice {
            Choice::Thread(name) => name.to_string(),
            Choice::Taken(line) => format!("line {line} taken"),
            Choice::Skipped(line) => format!("line {line} skipped"),
        });
        let mut shown: Vec<String> = shown.collect();
        if choices.len() > CHOICES_MAX {
            shown.push(format!("… {} more", choices.len() - CHOICES_MAX));
        }
        if let Some(last) = self.runs.last_mut() {
            last.choices = Some(shown.join(", "));
        }
    }

    fn add(&mut self, code: &Code, seed: Option<u64>, run: &Run, trace: Option<PathBuf>) {
        self.runs.push(OneRun {
            seed,
            steps_count: Some(run.schedule.0.len()),
            events_count: Some(run.trace.len()),
            choices: None,
            ending: run.ending.clone(),
            faults: run.faults.clone(),
            result: code.result_names().into_iter().zip(run.result(code)).collect(),
            trace,
        });
    }
}

/// What is printed of the runs of one program.
struct Report<'a> {
    loaded: &'a Loaded,
    scheduler: SchedulerName,
    made: &'a Made,
}

/// How many choices of a sequential run are shown.
const CHOICES_MAX: usize = 24;

/// How many elements of a result are shown to people.
const SHOWN_MAX: usize = 32;

impl Report<'_> {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let name = self.loaded.source.name();
        if let Some(states_count) = self.made.states_count {
            let outcomes = counted(self.made.runs.len() as u64, "outcome");
            let states = counted(states_count, "state");
            let of = match self.scheduler {
                SchedulerName::Sequential => "the sequential program",
                _ => "all schedules",
            };
            let cut = if self.made.is_complete { "" } else { ", incomplete" };
            writeln!(out, "{name}: {outcomes} of {of} ({states}{cut})")?;
        }
        for (place, run) in self.made.runs.iter().enumerate() {
            match run.seed {
                Some(seed) => write!(out, "{name}, seed {seed}: ")?,
                None => write!(out, "{}. ", place + 1)?,
            }
            self.one(out, run)?;
        }
        self.endless(out)?;
        if self.made.watched.is_empty() {
            return Ok(());
        }
        reweave_report::text(out, &self.examined())
    }

    fn examined(&self) -> Vec<Examined<'_>> {
        let watched = self.made.watched.iter();
        watched
            .map(|Watched { name, trace, outcome }| Examined::new(name, trace, outcome))
            .collect()
    }

    /// Schedules that do not end, which no outcome shows.
    fn endless(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.made.is_endless {
            writeln!(out, "Some schedules never end, perhaps only unfair ones.")?;
        }
        for fault in &self.made.other_faults {
            writeln!(out, "In schedules that never end:")?;
            writeln!(out, "{}", program::picture(&self.loaded.source, fault))?;
        }
        Ok(())
    }

    fn one(&self, out: &mut dyn Write, run: &OneRun) -> io::Result<()> {
        let after = run
            .steps_count
            .map_or(String::new(), |count| format!(" after {}", counted(count as u64, "step")));
        match &run.ending {
            Ending::Finished => writeln!(out, "finished{after}")?,
            Ending::Deadlock(_) => writeln!(out, "deadlock{after}")?,
            Ending::Assumption(line) => {
                writeln!(out, "stopped{after}: the assumption at line {line} is false")?;
            }
            Ending::Steps => {
                writeln!(out, "stopped{after}: the maximum of `--steps`")?;
            }
            Ending::Threads => writeln!(out, "stopped{after}: too many threads")?,
            Ending::Stopped => writeln!(out, "interrupted{after}")?,
        }
        if let Some(choices) = run.choices.as_ref().filter(|choices| !choices.is_empty()) {
            writeln!(out, "  by {choices}")?;
        }
        if let Ending::Deadlock(blocked) = &run.ending {
            for Blocked { thread, awaited, line } in blocked {
                writeln!(out, "  {thread} waits at line {line} for {awaited}")?;
            }
        }
        let shown = run.result.iter().take(SHOWN_MAX);
        let result: Vec<String> = shown.map(|(name, value)| format!("{name} = {value}")).collect();
        if !result.is_empty() {
            let rest = run.result.len().saturating_sub(SHOWN_MAX);
            let more = if rest > 0 { format!(", … {rest} more") } else { String::new() };
            writeln!(out, "  {}{more}", result.join(", "))?;
        }
        for fault in &run.faults {
            writeln!(out, "{}", program::picture(&self.loaded.source, fault))?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let runs: Vec<Value> = self.made.runs.iter().map(one_json).collect();
        let scheduler = super::check::name(self.scheduler);
        let is_all = self.made.states_count.is_some();
        let others: Vec<Value> = self.made.other_faults.iter().map(fault_json).collect();
        let mut document = compact(json!({
            "schema": "reweave/1",
            "program": self.loaded.source.name(),
            "scheduler": scheduler,
            "runs": runs,
            "states": self.made.states_count,
            "complete": is_all.then_some(self.made.is_complete),
            "endless": is_all.then_some(self.made.is_endless),
            "other_faults": is_all.then_some(others),
        }));
        if !self.made.watched.is_empty() {
            let mut reports = Vec::new();
            reweave_report::json_list(&mut reports, &self.examined())?;
            document["watched"] = serde_json::from_slice(&reports)?;
        }
        serde_json::to_writer_pretty(&mut *out, &document)?;
        writeln!(out)
    }
}

fn one_json(run: &OneRun) -> Value {
    let faults: Vec<Value> = run.faults.iter().map(fault_json).collect();
    let result = run.result.iter().map(|(name, value)| (name.clone(), json!(value)));
    let blocked = match &run.ending {
        Ending::Deadlock(blocked) => {
            let entry = |it: &Blocked| json!({ "thread": it.thread, "line": it.line, "awaits": it.awaited.to_string() });
            Some(blocked.iter().map(entry).collect::<Vec<_>>())
        }
        _ => None,
    };
    // Fields that do not apply are left out.
    compact(json!({
        "ending": ending_name(&run.ending),
        "faults": faults,
        "result": result.collect::<serde_json::Map<_, _>>(),
        "steps": run.steps_count,
        "events": run.events_count,
        "choices": run.choices,
        "seed": run.seed,
        "trace": run.trace.as_ref().map(|path| path.display().to_string()),
        "blocked": blocked,
    }))
}

fn fault_json(fault: &Fault) -> Value {
    json!({
        "thread": fault.thread,
        "line": fault.line,
        "kind": fault_name(&fault.kind),
        "message": fault.kind.to_string(),
    })
}

const fn fault_name(kind: &FaultKind) -> &'static str {
    match kind {
        FaultKind::Assertion => "assertion",
        FaultKind::DivisionByZero => "division",
        FaultKind::OutOfBounds { .. } => "index",
        FaultKind::NotHeld(_) | FaultKind::HeldTwice(_) => "lock",
        FaultKind::TooLong => "time",
    }
}

const fn ending_name(ending: &Ending) -> &'static str {
    match ending {
        Ending::Finished => "finished",
        Ending::Deadlock(_) => "deadlock",
        Ending::Assumption(_) => "assumption",
        Ending::Steps => "steps",
        Ending::Threads => "threads",
        Ending::Stopped => "stopped",
    }
}
