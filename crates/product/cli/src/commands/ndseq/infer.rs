//! `ndseq infer`: the fewest `if (*)` that explain a program's runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use reweave_exec::{Code, Layers, Limits, scheduler::RoundRobin};
use reweave_ndseq::{Answer, Placement, placements_of_lines};
use reweave_workflows::inference::{self, Inferred, Request, Trouble, Validation};

use super::report::{Inference, write_all};
use super::{Processed, Running};
use crate::commands::stats::DrawnFormat;
use crate::destination::Output;
use crate::exit;
use crate::interrupt;
use crate::program::{self, Loaded};

/// Infer a nondeterministic sequential specification of a program.
///
/// Runs the program a few times, and finds the fewest statements that must be optional for every run to have the result
/// of a sequential one, in which threads run one after another. Prints the program with `if (*)` in place, or the cycle
/// of conflicts that proves that there is no placement. Exits with 0 if there is a specification, 66 if there is none
/// or a run fails, and 3 if the search was cut short.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave ndseq infer reduce.rw --runs 5 --validate\n  \
                        reweave ndseq infer reduce.rw --reject 5-10 --format json")]
pub(crate) struct Args {
    /// Programs of the language; `-` is standard input
    #[arg(value_name = "PROGRAM.rw", required = true)]
    programs: Vec<PathBuf>,
    #[command(flatten)]
    running: Running,
    /// Reject specifications with all of these placements: `5-10,20-25`
    ///
    /// Placements are given by their lines. May be given several times.
    #[arg(long, value_name = "LINES")]
    reject: Vec<String>,
    /// Check all runs against the specification; on mismatch, infer another
    #[arg(long)]
    validate: bool,
    /// Maximum number of states for `--validate`
    #[arg(long, value_name = "N", default_value_t = Limits::default().states_max)]
    states: u64,
    #[command(flatten)]
    output: Output<DrawnFormat>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (destination, format) = args.output.prepare()?;
    let processed = Processed::new(&args.programs, |path| infer(args, path));
    let results = &processed.results;
    if !results.is_empty() {
        destination.write("specification", |out| {
            write_all(out, results, format, args.programs.len() > 1)
        })?;
    }
    Ok(processed.exit_code(code_of))
}

fn infer(args: &Args, path: &Path) -> anyhow::Result<Inference> {
    let loaded = program::load(path)?;
    interrupt::keep(interrupt::RESULTS);
    let mut settings = reweave_ndseq::Settings::default();
    let name = loaded.source.name();
    for text in &args.reject {
        let sets =
            rejected(&loaded.code, text).with_context(|| format!("{name}: --reject {text}"))?;
        settings.rejected.extend(sets);
    }
    let limits = Limits { states_max: args.states, ..Limits::default() };
    let validation = args.validate.then_some(limits);
    let request = Request { plan: args.running.plan(), settings, validation };
    let goes_on = || !interrupt::is_asked();
    let Loaded { source, program, code } = &loaded;
    let inferred = inference::infer(source, program, code, &request, &goes_on)
        .with_context(|| name.to_owned())?;
    Ok(Inference { loaded, inferred })
}

/// How many sets of placements one `--reject` may mean.
const SETS_MAX: usize = 1 << 12;

/// The sets of placements that `text`, such as `5-10,20-25`, names: where lines fit several
/// placements, each of them.
fn rejected(code: &Code, text: &str) -> anyhow::Result<Vec<Vec<Placement>>> {
    // The blocks are those of any run, however short.
    let settings =
        reweave_exec::Settings { steps_max: 0, layers: Layers::Flow, ..Default::default() };
    let run = reweave_exec::run(code, &mut RoundRobin::new(), &settings);
    let flow = run.trace.flow().context("a run has a flow layer")?;
    let mut sets: Vec<Vec<Placement>> = vec![Vec::new()];
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let line = |text: &str| {
            let expected = "expected lines such as 5-10,20-25";
            text.trim().parse::<u32>().with_context(|| format!("`{part}`: {expected}"))
        };
        let found = placements_of_lines(flow, line(first)?, line(last)?)?;
        let sets_count = sets.len().saturating_mul(found.len());
        anyhow::ensure!(sets_count <= SETS_MAX, "these lines mean too many placements");
        let extend = |set: &Vec<Placement>, &placement: &Placement| {
            let mut set = set.clone();
            set.push(placement);
            set
        };
        sets = sets
            .iter()
            .flat_map(|set| found.iter().map(|placement| extend(set, placement)))
            .collect();
    }
    Ok(sets)
}

fn code_of(results: &[Inference]) -> ExitCode {
    let is_fault = |inferred: &Inferred| {
        matches!(inferred.inference.answer, Answer::Impossible(_) | Answer::NoneLeft)
            || matches!(inferred.validation, Validation::Faulty(_) | Validation::Deadlock(_))
            || inferred.troubles.iter().any(Trouble::is_fault)
    };
    let is_cut = |inferred: &Inferred| {
        matches!(inferred.inference.answer, Answer::Exhausted { .. })
            || inferred.validation == Validation::Unknown
    };
    if results.iter().any(|it| is_fault(&it.inferred)) {
        return exit::found();
    }
    exit::of_answer(!results.iter().any(|it| is_cut(&it.inferred)))
}
