//! `check`, and one command for each family of analyses: `races`, `deadlocks`, `atomicity`,
//! `determinism`.

use std::process::ExitCode;

use clap::{Args as ClapArgs, ValueEnum};

use super::compare;
use super::confirm::{self, Replaying};
use super::examine::{self, Options, Selection};
use crate::launch::Program;

/// Find what can go wrong: a finding for each fault, worst first.
///
/// Runs the analyses that `reweave list` marks as default: races, deadlocks, and atomicity where the
/// trace marks blocks. A recorded run that was stuck, crashed or failed an assertion is a finding too. Exits with 0 if nothing is found, 66 if something is, and 3 if nothing is found
/// but the search was cut short.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  reweave check --format html -o report.html run.std")]
pub struct Args {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    options: Options,
    /// Replay each witnessed finding in CMD, and report which happened
    ///
    /// Without CMD, in the command that the trace holds.
    #[arg(long)]
    confirm: bool,
    /// Print what each relation between accesses reports, in one table
    ///
    /// Races alone, by hb, shb, wcp, cp, syncp and exact. Baselines and suppressions are not applied.
    #[arg(long, conflicts_with_all = ["confirm", "only", "with", "baseline", "suppress"])]
    compare: bool,
    #[command(flatten)]
    replaying: Replaying,
    #[command(flatten)]
    program: Program,
}

/// Runs `check`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.compare {
        return compare::run(&args.options);
    }
    let analyses = args.selection.analyses()?;
    anyhow::ensure!(
        args.confirm || args.program.is_unnamed(),
        "a program to run requires `--confirm`"
    );
    if !args.confirm {
        return examine::run(&args.options, &analyses, |_| {});
    }
    examine::run_confirmed(&args.options, &analyses, |path, trace, outcome| {
        if outcome.findings.is_empty() {
            return Ok(Vec::new());
        }
        confirm::all(trace, outcome, args.replaying, &args.program.launch(trace, path)?)
    })
}

/// Find data races: by one relation, or all that have a schedule.
///
/// Exits with 0 if nothing is found, 66 if something is, and 3 if nothing is found but the search was
/// cut short.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  reweave races --relation cp --window 500 run.std")]
pub struct RacesArgs {
    /// Order that racing accesses must not be in
    #[arg(long, value_enum, default_value_t)]
    relation: RelationName,
    /// With `--relation cp`: maximum distance of two accesses, in events
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    window: Option<u32>,
    #[command(flatten)]
    options: Options,
}

/// What orders accesses, as the command line spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum RelationName {
    /// happens-before
    Hb,
    /// schedulable happens-before
    Shb,
    /// weak causally-precedes
    Wcp,
    /// causally-precedes
    Cp,
    /// reorderings that keep the order of critical sections (sync-preserving)
    Syncp,
    /// all correct reorderings
    #[default]
    Exact,
}

/// Runs `races`.
pub fn run_races(args: &RacesArgs) -> anyhow::Result<ExitCode> {
    let is_windowed = args.window.is_none() || args.relation == RelationName::Cp;
    anyhow::ensure!(is_windowed, "`--window` requires `--relation cp`");
    let analyses = reweave_catalog::select(&format!("races.{}", name(args.relation)), &[])?;
    examine::run(&args.options, &analyses, |settings| settings.window = args.window)
}

/// Find deadlocks: threads that can wait for each other's locks.
///
/// Threads that waited for ever in the recorded run itself are shown first. Exits with 0 if nothing is
/// found, 66 if something is, and 3 if nothing is found but the search was
/// cut short.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  reweave deadlocks --all --format json run.std")]
pub struct DeadlocksArgs {
    #[command(flatten)]
    options: Options,
}

/// Runs `deadlocks`.
pub fn run_deadlocks(args: &DeadlocksArgs) -> anyhow::Result<ExitCode> {
    // Whoever asks what could be stuck wants to know what was.
    let stuck = ["endings.stuck".to_owned()];
    examine::run(&args.options, &reweave_catalog::select("deadlocks", &stuck)?, |_| {})
}

/// Find atomic blocks that another thread can interfere with.
///
/// A block is what the trace marks with `begin` and `end`. Exits with 0 if nothing is found, 66 if
/// something is, and 3 if nothing is found but the search was cut short.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  reweave atomicity --sections run.std")]
pub struct AtomicityArgs {
    /// Treat every critical section as an atomic block too
    #[arg(long)]
    sections: bool,
    #[command(flatten)]
    options: Options,
}

/// Runs `atomicity`.
pub fn run_atomicity(args: &AtomicityArgs) -> anyhow::Result<ExitCode> {
    let only = if args.sections { "atomicity" } else { "atomicity.blocks" };
    examine::run(&args.options, &reweave_catalog::select(only, &[])?, |_| {})
}

/// Find reads that can see another write than they saw.
///
/// Each finding comes with a schedule. Findings are grouped by the code location of the read, and those
/// that no race detector reports are marked. Exits with 0 if nothing is found, 66 if something is, and 3
/// if nothing is found but the search was cut short.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  reweave determinism --values run.std")]
pub struct DeterminismArgs {
    /// Which other runs are considered
    #[arg(long, value_enum, default_value_t)]
    mode: ModeName,
    /// Ignore writes that would give the read the same value
    #[arg(long)]
    values: bool,
    /// Treat every variable as read once more when the run ends
    #[arg(long)]
    final_reads: bool,
    #[command(flatten)]
    options: Options,
}

/// Which runs are considered, as the command line spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ModeName {
    /// as in Sinha, Malik and Gupta (2012), for comparison: reads come after the write they saw, but
    /// other writes may come in between
    Order,
    /// every other read sees the write it saw
    Prefix,
    /// as prefix, and the thread of the read stops there: holds whatever the program does with the
    /// other value
    #[default]
    Strict,
}

/// Runs `determinism`.
pub fn run_determinism(args: &DeterminismArgs) -> anyhow::Result<ExitCode> {
    let analyses = reweave_catalog::select(&format!("determinism.{}", name(args.mode)), &[])?;
    examine::run(&args.options, &analyses, |settings| {
        settings.differing_values = args.values;
        settings.final_reads = args.final_reads;
    })
}

/// How the command line spells `value`.
pub fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |it| it.get_name().to_owned())
}
