//! Exit codes, and messages of failures.

use std::io::{self, ErrorKind, Write};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::process::ExitCode;

use reweave_analysis::{Kind, Outcome};
use reweave_format::{ReadError, ReadErrorKind, WriteError};
use reweave_report::shown;
use reweave_states::predicate::PredicateError;

const BAD_INPUT: u8 = 2;
const CUT_SHORT: u8 = 3;
const FOUND: u8 = 66;
const INTERNAL_ERROR: u8 = 70;
pub const INTERRUPTED: u8 = 130;

/// The work was interrupted before there was anything to report.
#[derive(Clone, Copy, Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// The exit code of a search for faults.
pub fn of_search<'a>(outcomes: impl Iterator<Item = &'a Outcome> + Clone) -> ExitCode {
    of_filtered_search(outcomes, |_| true)
}

/// The same, failing only for some kinds of faults.
pub fn of_filtered_search<'a>(
    outcomes: impl Iterator<Item = &'a Outcome> + Clone,
    fails: impl Fn(Kind) -> bool,
) -> ExitCode {
    let mut findings = outcomes.clone().flat_map(|outcome| &outcome.findings);
    if findings.any(|reported| fails(reported.finding.kind)) {
        return ExitCode::from(FOUND);
    }
    let complete = outcomes.into_iter().all(Outcome::is_complete);
    if complete { ExitCode::SUCCESS } else { ExitCode::from(CUT_SHORT) }
}

/// The exit code if something was found.
pub fn found() -> ExitCode {
    ExitCode::from(FOUND)
}

/// The exit code of a question that was answered, completely or in part.
pub fn of_answer(is_complete: bool) -> ExitCode {
    if is_complete { ExitCode::SUCCESS } else { ExitCode::from(CUT_SHORT) }
}

/// Runs `command`, and turns errors and panics into an exit code and a message.
pub fn guarded(command: impl FnOnce() -> anyhow::Result<ExitCode>) -> ExitCode {
    panic::set_hook(Box::new(report_panic));
    match panic::catch_unwind(AssertUnwindSafe(command)) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => ExitCode::from(explain(&error)),
        Err(_) => ExitCode::from(INTERNAL_ERROR),
    }
}

/// Prints a line on standard error. If that fails, there is nowhere to report it.
pub fn say(line: &str) {
    _ = writeln!(io::stderr().lock(), "{}", shown(line));
}

/// Reports what went wrong with some of the inputs; the exit code is `code` if nothing did.
pub fn after(failures: &[anyhow::Error], code: ExitCode) -> ExitCode {
    for failure in failures {
        explain(failure);
    }
    if failures.is_empty() { code } else { ExitCode::from(BAD_INPUT) }
}

fn report_panic(panic: &PanicHookInfo<'_>) {
    let reason = panic.payload_as_str().unwrap_or("no message");
    let location = panic.location().map_or(String::new(), |it| format!(" at {it}"));
    say(&format!("reweave: internal error{location}: {reason}"));
    let address = env!("CARGO_PKG_REPOSITORY");
    say(&format!(
        "please report it at {address}/issues, with the command line and the trace if possible"
    ));
}

/// Reports `error`; returns its exit code.
fn explain(error: &anyhow::Error) -> u8 {
    if error.chain().any(is_broken_pipe) {
        // Whoever read our output, such as `head`, has had enough.
        return 0;
    }
    let interrupted = error.chain().any(|cause| {
        cause.is::<Interrupted>()
            || matches!(
                cause.downcast_ref(),
                Some(ReadError { kind: ReadErrorKind::Interrupted, .. })
            )
    });
    if interrupted {
        say("reweave: interrupted");
        return INTERRUPTED;
    }
    let text = format!("{error:#}");
    let pointing = error.chain().find_map(|cause| cause.downcast_ref::<PredicateError>());
    let lines = pointing.map_or_else(String::new, ToString::to_string);
    // Only errors in predicates have several lines: they point at the column.
    let (first, rest) = match (text.strip_suffix(&lines), lines.split_once('\n')) {
        (Some(start), Some((first, rest))) => (format!("{start}{first}"), rest),
        _ => (text, ""),
    };
    say(&format!("reweave: {first}"));
    rest.lines().for_each(say);
    BAD_INPUT
}

fn is_broken_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    let kind = match (cause.downcast_ref::<io::Error>(), cause.downcast_ref::<WriteError>()) {
        (Some(error), _) => Some(error.kind()),
        (_, Some(error)) => Some(error.kind),
        _ => None,
    };
    kind == Some(ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error() {
        let code = guarded(|| panic!("a table was smaller than its index"));
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(70)));
    }

    #[test]
    fn a_reader_who_leaves_early_is_no_error() {
        let gone = io::Error::from(ErrorKind::BrokenPipe);
        assert_eq!(explain(&anyhow::Error::from(gone).context("standard output")), 0);
    }
}
