//! How the command ends, and what it says when it ends badly.

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
const OWN_FAULT: u8 = 70;
pub(crate) const INTERRUPTED: u8 = 130;

/// The work was interrupted before there was anything to tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// The exit code of what looks for faults.
pub(crate) fn of_search<'a>(outcomes: impl Iterator<Item = &'a Outcome> + Clone) -> ExitCode {
    of_gated_search(outcomes, |_| true)
}

/// The same where only some kinds of faults are a reason to fail.
pub(crate) fn of_gated_search<'a>(
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

/// The exit code of what found something.
pub(crate) fn found() -> ExitCode {
    ExitCode::from(FOUND)
}

/// The exit code of what answers a question: the whole of it, or as far as it got.
pub(crate) fn of_answer(is_complete: bool) -> ExitCode {
    if is_complete { ExitCode::SUCCESS } else { ExitCode::from(CUT_SHORT) }
}

/// Runs `command` and turns whatever becomes of it into an exit code and a word on standard error.
pub(crate) fn guarded(command: impl FnOnce() -> anyhow::Result<ExitCode>) -> ExitCode {
    panic::set_hook(Box::new(own_up));
    match panic::catch_unwind(AssertUnwindSafe(command)) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => ExitCode::from(explain(&error)),
        Err(_) => ExitCode::from(OWN_FAULT),
    }
}

/// Says a line on standard error; if even that fails there is nobody to tell.
pub(crate) fn say(line: &str) {
    _ = writeln!(io::stderr().lock(), "{}", shown(line));
}

/// Ends the process over a command line that asks for what is not there.
pub(crate) fn refuse(reason: &str) -> ! {
    say(&format!("reweave: {reason}"));
    std::process::exit(i32::from(BAD_INPUT))
}

/// Says what went wrong with some of the inputs; the exit code is `code` if nothing did.
pub(crate) fn after(failures: &[anyhow::Error], code: ExitCode) -> ExitCode {
    for failure in failures {
        explain(failure);
    }
    if failures.is_empty() { code } else { ExitCode::from(BAD_INPUT) }
}

fn own_up(panic: &PanicHookInfo<'_>) {
    let reason = panic.payload_as_str().unwrap_or("no reason given");
    let place = panic.location().map_or(String::new(), |place| format!(" at {place}"));
    say(&format!("reweave: a fault of our own{place}: {reason}"));
    let address = env!("CARGO_PKG_REPOSITORY");
    say(&format!(
        "please report it at {address}/issues, with the command and the trace if you can"
    ));
}

/// Says what went wrong and gives the exit code for it.
fn explain(error: &anyhow::Error) -> u8 {
    if error.chain().any(is_broken_pipe) {
        // Whoever read our output has had enough.
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
    // What is wrong with a predicate, and where, takes lines of its own; nothing else does.
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
    fn a_panic_is_a_fault_of_our_own() {
        let code = guarded(|| panic!("a table was smaller than its index"));
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(70)));
    }

    #[test]
    fn a_reader_who_leaves_early_is_no_error() {
        let gone = io::Error::from(ErrorKind::BrokenPipe);
        assert_eq!(explain(&anyhow::Error::from(gone).context("standard output")), 0);
    }
}
