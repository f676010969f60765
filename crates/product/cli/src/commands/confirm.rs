//! `confirm`: a finding made to happen in the program that it was found in.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use reweave_analysis::{Guarantee, Outcome, Reported};
use reweave_record::plan::{self, Plan};
use reweave_record::symbols::build_id_of;
use reweave_report::{Confirmation, Examined, Replayed};
use reweave_trace::{Module, Trace};
use reweave_workflows::confirm::confirm;

use super::examine::{Printing, ReportFormat};
use super::lookup::{Found, Wanted};
use crate::destination::Destination;
use crate::{exit, input, interrupt};

/// Replay a finding in the real program until it happens.
///
/// Runs CMD, whose run the trace was recorded from, and holds its threads back so that they follow
/// the schedule of the finding. Says `confirmed` if it was seen to happen, and else `not confirmed`
/// with the reason, which does not mean that it cannot happen. Exits with 66 if it is confirmed, and 0
/// if not. The same options as for `check` give the same findings, and these their ids.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave confirm bank.rwt R1 -- ./bank 10")]
pub(crate) struct Args {
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    replaying: Replaying,
    #[command(flatten)]
    printing: Printing,
    /// The program, built as it was when the trace was recorded, and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// How hard to try.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Replaying {
    /// How often to replay a finding; as long as it has not happened up to three times
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    attempts: u32,
    /// How many seconds one replay may take
    #[arg(long, value_name = "SECS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Whether what the program prints is nobody's business
    #[arg(skip)]
    is_quiet: bool,
}

impl Replaying {
    /// As long as it has not happened up to three times, each for `time` at most; what the program
    /// prints is dropped.
    pub(crate) const fn quiet(time: Duration) -> Self {
        Self { attempts: 1, timeout: time.as_secs(), is_quiet: true }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let destination = Destination::prepare(args.printing.output.as_deref())?;
    let Found { path, trace, outcome, reported } = args.wanted.find()?;
    let confirmation = one(&trace, &reported, args.replaying, &args.command)?;
    let is_confirmed = matches!(confirmation.replayed, Replayed::Confirmed { .. });
    let confirmations = [confirmation];
    let sources = input::sources(&path, &trace, &args.printing.sources);
    let examined = Examined::new(&path, &trace, &outcome);
    let examined = Examined { confirmations: &confirmations, sources: &sources, ..examined };
    // The other formats are of reports: here of one with this finding alone.
    let only = Outcome { findings: vec![reported.clone()], ..outcome.clone() };
    let alone = Examined { outcome: &only, ..examined };
    let format = args.printing.format();
    destination.write(|out| match format {
        ReportFormat::Text => reweave_report::confirmation_text(out, &examined, &reported),
        ReportFormat::Json => reweave_report::confirmation_json(out, &examined, &reported),
        ReportFormat::Html => reweave_report::explanation_html(out, &examined, &reported),
        _ => format.write(out, &[alone], false),
    })?;
    Ok(if is_confirmed { exit::found() } else { ExitCode::SUCCESS })
}

/// Replays every finding of `outcome` that is witnessed, as long as nobody interrupts.
pub(crate) fn all(
    trace: &Trace,
    outcome: &Outcome,
    replaying: Replaying,
    command: &[OsString],
) -> anyhow::Result<Vec<Confirmation>> {
    let is_witnessed = |reported: &&Reported| reported.finding.guarantee() == Guarantee::Witnessed;
    let witnessed = outcome.findings.iter().filter(is_witnessed);
    let witnessed = witnessed.take_while(|_| !interrupt::is_asked());
    witnessed.map(|reported| one(trace, reported, replaying, command)).collect()
}

/// Replays one finding.
fn one(
    trace: &Trace,
    reported: &Reported,
    replaying: Replaying,
    command: &[OsString],
) -> anyhow::Result<Confirmation> {
    let time = Duration::from_secs(replaying.timeout);
    let mut attempt = |plan: &Plan, _: u32| replay(command, plan, time, replaying.is_quiet);
    let verdict = confirm(trace, &reported.finding, replaying.attempts, &mut attempt)?;
    let replayed = match verdict.is_confirmed() {
        true => Replayed::Confirmed {
            times: verdict.confirmed,
            attempts: verdict.attempts,
            details: verdict.details.unwrap_or_default(),
        },
        false => {
            let other = another(trace, command);
            let reasons = [Some(verdict.reason()), other].into_iter().flatten();
            Replayed::NotConfirmed { reason: reasons.collect::<Vec<_>>().join(". ") }
        }
    };
    Ok(Confirmation { id: reported.id.clone(), replayed })
}

/// What to say if `words` start another program than `trace` is of, or one that was built anew.
fn another(trace: &Trace, words: &[OsString]) -> Option<String> {
    let found = located(words.first()?)?;
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
            "`{found}` was built anew since the trace was recorded: it has {now}, and had {then}. \
             Record it again"
        ),
        None => format!(
            "The trace is of `{path}` ({then}), and `{found}` ({now}) is another program, unless it \
             starts that one"
        ),
    })
}

/// Whether the file at `path` is called as shared libraries are.
fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with(".so") || name.contains(".so.")
}

/// The file that `program` runs, as a shell finds it.
pub(crate) fn located(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    let found = match path.components().count() > 1 {
        true => Some(path.to_owned()),
        false => {
            let folders = std::env::var_os("PATH")?;
            let files = std::env::split_paths(&folders).map(|folder| folder.join(path));
            files.into_iter().find(|file| file.is_file())
        }
    };
    found?.canonicalize().ok()
}

/// Runs `words` once under `plan`, for `time` at most. What the program prints goes to standard
/// error, since standard output is for the report, or nowhere if it is to be quiet.
///
/// # Errors
/// If the program cannot be started or followed.
fn replay(
    words: &[OsString],
    plan: &Plan,
    time: Duration,
    is_quiet: bool,
) -> anyhow::Result<plan::Outcome> {
    let mut command = super::record::program(words)?;
    command.stdin(Stdio::null());
    if is_quiet {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    } else if let Ok(own) = std::io::stderr().as_fd().try_clone_to_owned() {
        command.stdout(own);
    }
    reweave_record::replay::replay(&mut command, plan, time)
        .with_context(|| format!("cannot run `{}`", command.get_program().display()))
}

#[cfg(test)]
mod tests {
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
        let Args { replaying, command, printing, .. } = Line::try_parse_from(words).unwrap().args;
        assert_eq!((replaying.attempts, replaying.timeout), (5, 60));
        assert_eq!(printing.format(), ReportFormat::Text);
        assert_eq!(command, ["./bank", "--format", "x"]);
    }

    #[test]
    fn a_program_must_be_given() {
        for words in [&["confirm", "a.rwt", "R1"][..], &["confirm", "a.rwt", "R1", "--"]] {
            assert!(Line::try_parse_from(words).is_err(), "{words:?}");
        }
    }
}
