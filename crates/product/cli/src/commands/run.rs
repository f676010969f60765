//! `run`: run a program of the language, and record it.

mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use reweave_exec::scheduler::Replay;
use reweave_exec::{
    Ending, Layers, Limits, Outcome, Run, Settings, explore_sequential_while, explore_while,
};
use reweave_order::poset::Relation;
use reweave_states::analyses::Find;
use reweave_states::predicate::Predicate;
use reweave_workflows::inference::InferenceError;
use reweave_workflows::runs::{self, Plan, SchedulerKind};

use crate::commands::stats::StatsFormat;
use crate::destination::Destination;
use crate::exit::{self, say};
use crate::input::{self, FormatName};
use crate::interrupt;
use crate::program::{self, Loaded};
use crate::watch::Bar;
use report::{Made, Report, Watched};

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
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<FormatName>,
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
    interrupt::keep();
    let settings =
        Settings { steps_max: args.choosing.steps, layers: Layers::Events, ..Settings::default() };
    let made = match args.kind() {
        Some(scheduler) => {
            let plan =
                Plan { scheduler, seed: args.choosing.seed, runs_count: args.runs, settings };
            repeat(args, &loaded, &plan)?
        }
        None if args.scheduler == SchedulerName::Sequential => {
            anyhow::ensure!(
                args.output.is_none(),
                "`--output` needs another scheduler: a sequential run has no trace"
            );
            sequential(args, &loaded)?
        }
        None => all(args, &loaded, &settings)?,
    };
    let watched = made.watched.iter().map(|watched| &watched.outcome);
    let code = exit::of_search(watched);
    let report = Report { loaded: &loaded, scheduler: args.scheduler, made: &made };
    Destination::prepare(None)?.write(|out| match args.format {
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
    let find = Find { predicates, relation: Relation::Kept, is_online: true };
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
fn all(args: &Args, loaded: &Loaded, settings: &Settings) -> anyhow::Result<Made> {
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
        let settings = Settings { steps_max: u64::MAX, ..*settings };
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
