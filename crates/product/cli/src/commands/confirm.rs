//! `confirm`: replay a finding in the real program.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use reweave_analysis::{Guarantee, Outcome, Reported};
use reweave_record::plan::{self, Plan};
use reweave_record::symbols::build_id_of;
use reweave_report::{Confirmation, Replayed};
use reweave_trace::{Module, Trace};
use reweave_workflows::confirm::confirm;

use super::examine::Printing;
use super::explain::Wanted;
use crate::launch::{Launch, Program};
use crate::{exit, interrupt};

/// Replay a finding in the real program until it happens.
///
/// Runs CMD, the program that was recorded, or the command that the trace holds, and pauses its threads so that they follow the schedule of the finding.
/// Reports `confirmed` if it happened, and otherwise `not confirmed` with the reason; that does not mean that it cannot
/// happen. Exits with 66 if it is confirmed, and 0 if not. Use the same options as for `check` to get the same findings
/// with the same ids.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave confirm bank.rwt R1 -- ./bank 10")]
pub struct Args {
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    replaying: Replaying,
    #[command(flatten)]
    printing: Printing,
    #[command(flatten)]
    program: Program,
}

/// How hard to try.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Replaying {
    /// Replay each finding N times [default: up to 3, until it happens]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    attempts: Option<u32>,
    /// Maximum duration of one replay, in seconds
    #[arg(long, value_name = "SECS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Whether to drop what the program prints
    #[arg(skip)]
    is_quiet: bool,
}

impl Replaying {
    /// The default number of attempts, each of at most `time`, without the output of the program.
    pub const fn quiet(time: Duration) -> Self {
        Self { attempts: None, timeout: time.as_secs(), is_quiet: true }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let destination = args.printing.prepare()?;
    let found = args.wanted.find()?;
    let id = &found.reported.id;
    anyhow::ensure!(
        found.reported.finding.guarantee() != Guarantee::Observed,
        "{id} happened in the recorded run, so there is nothing to confirm: run the program again as it was"
    );
    let launch = args.program.launch(&found.trace, args.wanted.trace())?;
    let confirmation = one(&found.trace, &found.reported, args.replaying, &launch)?;
    let is_confirmed = matches!(confirmation.replayed, Replayed::Confirmed { .. });
    let formats = (reweave_report::confirmation_text as _, reweave_report::confirmation_json as _);
    found.write(&args.wanted, &args.printing, destination, &[confirmation], formats)?;
    Ok(if is_confirmed { exit::found() } else { ExitCode::SUCCESS })
}

/// Replays every witnessed finding of `outcome`, until interrupted.
pub fn all(
    trace: &Trace,
    outcome: &Outcome,
    replaying: Replaying,
    launch: &Launch,
) -> anyhow::Result<Vec<Confirmation>> {
    let is_witnessed = |reported: &&Reported| reported.finding.guarantee() == Guarantee::Witnessed;
    let witnessed = outcome.findings.iter().filter(is_witnessed);
    let witnessed = witnessed.take_while(|_| !interrupt::is_asked());
    witnessed.map(|reported| one(trace, reported, replaying, launch)).collect()
}

/// Replays one finding.
fn one(
    trace: &Trace,
    reported: &Reported,
    replaying: Replaying,
    launch: &Launch,
) -> anyhow::Result<Confirmation> {
    let time = Duration::from_secs(replaying.timeout);
    let mismatch = build_mismatch(trace, launch);
    if let Some(mismatch) = mismatch.as_ref().filter(|_| !replaying.is_quiet) {
        exit::say(&format!("reweave: warning: {mismatch}"));
    }
    let mut attempt = |plan: &Plan, number: u32| {
        let (finding, attempt) = (reported.id.as_str(), number + 1);
        let _stage = tracing::info_span!("replay", finding, attempt).entered();
        replay(launch, plan, time, replaying.is_quiet)
    };
    let verdict = confirm(trace, &reported.finding, replaying.attempts, &mut attempt)?;
    let replayed = if verdict.is_confirmed() {
        Replayed::Confirmed {
            times: verdict.confirmed,
            attempts: verdict.attempts,
            details: verdict.details.unwrap_or_default(),
        }
    } else {
        let reasons = [Some(verdict.reason()), mismatch].into_iter().flatten();
        Replayed::NotConfirmed { reason: reasons.collect::<Vec<_>>().join(". ") }
    };
    Ok(Confirmation { id: reported.id.clone(), replayed })
}

/// A warning if `launch` starts another program or another build than `trace` was recorded from.
fn build_mismatch(trace: &Trace, launch: &Launch) -> Option<String> {
    let found = launch.file()?;
    let modules = trace.origins()?.modules();
    let is_program = |module: &&Module| module.path.starts_with('/') && !is_library(&module.path);
    let same = modules.iter().find(|module| Path::new(&module.path) == found);
    let recorded = same.or_else(|| modules.iter().find(is_program))?;
    let build_id = build_id_of(&found).unwrap_or_default();
    if build_id == recorded.build_id && (same.is_some() || !build_id.is_empty()) {
        return None;
    }
    let known = |id: &str| match id {
        "" => "no build id".to_owned(),
        id => format!("build id {id}"),
    };
    let (now, then) = (known(&build_id), known(&recorded.build_id));
    let (found, path) = (found.display(), &recorded.path);
    Some(match same {
        Some(_) => format!(
            "`{found}` was rebuilt since the trace was recorded ({now}, before {then}). Record it \
             again"
        ),
        None => format!(
            "The trace was recorded from `{path}` ({then}); `{found}` ({now}) is another program, \
             unless it starts that one"
        ),
    })
}

/// Whether the file at `path` is named like a shared library.
fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with(".so") || name.contains(".so.")
}

/// Runs `launch` once under `plan`, for `time` at most. The output of the program goes to standard
/// error, since standard output is for the report, or nowhere if `is_quiet`.
///
/// # Errors
/// If the program cannot be started or followed.
fn replay(
    launch: &Launch,
    plan: &Plan,
    time: Duration,
    is_quiet: bool,
) -> anyhow::Result<plan::Outcome> {
    let (mut command, _) = launch.command()?;
    command.stdin(Stdio::null());
    if is_quiet {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    } else if let Ok(own) = std::io::stderr().as_fd().try_clone_to_owned() {
        command.stdout(own);
    }
    interrupt::keep(interrupt::RESULTS);
    reweave_record::replay::replay(&mut command, plan, time, &interrupt::is_asked)
        .with_context(|| format!("cannot run `{}`", command.get_program().display()))
}

#[cfg(test)]
mod tests {
    use super::super::examine::ReportFormat;
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn what_comes_after_two_dashes_is_the_program_with_its_options() {
        let words = ["confirm", "a.rwt", "R1", "--attempts", "5", "--", "./bank", "--format", "x"];
        let Args { replaying, program, printing, .. } = Line::try_parse_from(words).unwrap().args;
        assert_eq!((replaying.attempts, replaying.timeout), (Some(5), 60));
        assert_eq!(printing.format().unwrap(), ReportFormat::Text);
        assert!(!program.is_unnamed());
    }

    #[test]
    fn without_a_program_there_is_no_folder_to_run_it_in() {
        assert!(Line::try_parse_from(["confirm", "a.rwt", "R1"]).is_ok());
        let words = ["confirm", "a.rwt", "R1", "--directory", "."];
        assert!(Line::try_parse_from(words).is_err());
    }
}
