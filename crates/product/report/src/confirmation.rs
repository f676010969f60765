//! Whether a finding was seen to happen when its schedule was replayed in the real program.
//!
//! A finding is confirmed or not confirmed; that it cannot happen is never said, since a replay that
//! fails does not show that.

use std::io::{self, Write};

use reweave_analysis::Reported;
use serde::Serialize;

use crate::shown::{LINE_MAX, shown, wrapped};
use crate::text::{BOLD, CODE_AROUND, GOOD, ReportState, WARN, head, size};
use crate::{Examined, json, title};

/// What is said wherever a finding is said not to be confirmed.
pub const CAVEAT: &str = "This does not mean that it cannot happen.";

/// What came of replaying a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmation {
    /// The finding's name in the report, such as `R1`.
    pub id: String,
    /// What was seen.
    pub replayed: Replayed,
}

/// What replays of a finding saw. JSON has it in this form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Replayed {
    /// It happened.
    Confirmed {
        /// In so many replays.
        times: u32,
        /// Of so many.
        attempts: u32,
        /// What was seen; may be empty.
        #[serde(skip)]
        details: String,
    },
    /// It was not seen to happen, or could not be replayed.
    NotConfirmed {
        /// Why.
        reason: String,
    },
}

impl<'a> Examined<'a> {
    /// What came of replaying the finding called `id`, if it was replayed.
    pub fn replayed(&self, id: &str) -> Option<&'a Replayed> {
        let mut all = self.confirmations.iter();
        all.find(|confirmation| confirmation.id == id).map(|confirmation| &confirmation.replayed)
    }
}

/// Writes a line or two on what replays saw.
pub fn write_text(out: &mut dyn Write, replayed: &Replayed) -> io::Result<()> {
    match replayed {
        Replayed::Confirmed { times, attempts, details } => {
            writeln!(out, "  {GOOD}confirmed: {times} of {attempts}{GOOD:#}")?;
            write_wrapped(out, details)
        }
        Replayed::NotConfirmed { reason } => {
            let reason = reason.trim_end_matches('.');
            writeln!(out, "  {WARN}not confirmed{WARN:#}")?;
            write_wrapped(out, &format!("{reason}. {CAVEAT}"))
        }
    }
}

fn write_wrapped(out: &mut dyn Write, text: &str) -> io::Result<()> {
    for line in wrapped(&shown(text), LINE_MAX).iter().filter(|line| !line.is_empty()) {
        writeln!(out, "    {line}")?;
    }
    Ok(())
}

/// Writes what `reported` is, one of the findings of `examined`, and what came of replaying it, with
/// colours; the caller strips them where they are not wanted.
///
/// # Errors
/// If `out` fails.
pub fn confirmation_text(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    reported: &Reported,
) -> io::Result<()> {
    let Examined { path, trace, .. } = examined;
    writeln!(out, "{BOLD}{}{BOLD:#}: {}\n", shown(title(path)), size(trace))?;
    head(out, examined, reported, &mut ReportState::new(trace, CODE_AROUND))?;
    examined.replayed(&reported.id).map_or(Ok(()), |replayed| write_text(out, replayed))
}

/// Writes the report on `reported` alone, one of the findings of `examined`, with what came of
/// replaying it.
///
/// # Errors
/// If `out` fails.
pub fn confirmation_json(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    reported: &Reported,
) -> io::Result<()> {
    json::write_one(out, examined, reported)
}
