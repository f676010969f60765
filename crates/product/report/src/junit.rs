//! Findings as failed tests, for test runners: JUnit's XML.
//!
//! A trace is a test suite, and a finding a failed test of the analysis that made it, with what the
//! text report says of it as its content. A finding that is no reason to fail is a test that passed,
//! with that text as its output. An analysis that found nothing is a test that passed; one that was
//! cut short is a test that was skipped, and says why. A test's name has no number that a rerun
//! could change, so a fault keeps its history.
//!
//! XML cannot carry most control characters at all, not even escaped; they are shown as escapes of
//! our own, as in text.

use std::io::{self, Write};

use reweave_analysis::{Coverage, Outcome, Reported};

use crate::finding::{known_locations, main_event_first};
use crate::shown::{clipped, markup};
use crate::sources::Place;
use crate::text::{CODE_AROUND, ReportState, finding, uncoloured};
use crate::{Examined, title};

/// How many findings have what the text report says as content; the others have their message.
const REPORTS_MAX: usize = 1_000;

/// How long the name of a test gets.
const NAME_MAX: usize = 160;

/// Writes what was found in each of `examined`.
///
/// ```
/// use reweave_report::{Examined, junit};
///
/// let trace = reweave_trace::TraceBuilder::new().finish()?;
/// let found = reweave_analysis::Outcome::default();
/// junit(&mut std::io::stdout(), &[Examined::new("run.rwt", &trace, &found)])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If `out` fails.
pub fn junit(out: &mut dyn Write, examined: &[Examined<'_>]) -> io::Result<()> {
    let suites: Vec<Counts> = examined.iter().map(counts).collect();
    let total = [0, 1, 2].map(|at| suites.iter().map(|counts| counts[at]).sum());
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"reweave\"{}>", attributes(total))?;
    let mut reports_left = REPORTS_MAX;
    for (one, counts) in examined.iter().zip(suites) {
        suite(out, one, counts, &mut reports_left)?;
    }
    writeln!(out, "</testsuites>")
}

/// How many tests of a suite fail, are skipped, and pass.
type Counts = [usize; 3];

fn counts(examined: &Examined<'_>) -> Counts {
    let outcome = examined.outcome;
    let is_silent = |coverage: &&Coverage| is_silent(outcome, coverage);
    let (complete, cut): (Vec<&Coverage>, Vec<&Coverage>) =
        outcome.coverage.iter().partition(|coverage| coverage.is_complete());
    let failures = outcome.findings.iter().filter(|it| is_failing(examined, it)).count();
    let tolerated = outcome.findings.len() - failures;
    let silent = complete.into_iter().filter(is_silent).count();
    [failures, cut.len(), tolerated + silent]
}

fn attributes([failures, skipped, passed]: Counts) -> String {
    let tests = failures + skipped + passed;
    format!(" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"")
}

/// Whether `reported` is a reason to fail.
fn is_failing(examined: &Examined<'_>, reported: &Reported) -> bool {
    examined.fails_on.contains(&reported.finding.kind)
}

/// Whether the analysis of `coverage` found nothing.
fn is_silent(outcome: &Outcome, coverage: &Coverage) -> bool {
    outcome.findings.iter().all(|reported| reported.finding.analysis != coverage.analysis)
}

fn suite(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    counts: Counts,
    reports_left: &mut usize,
) -> io::Result<()> {
    let name = markup(title(examined.path));
    writeln!(out, "  <testsuite name=\"{name}\"{}>", attributes(counts))?;
    // What is said once in a text report is said once in a suite too.
    let mut state = ReportState::new(examined.trace, CODE_AROUND);
    for reported in &examined.outcome.findings {
        let content = match *reports_left {
            0 => reported.finding.message.clone(),
            _ => uncoloured(|out| finding(out, examined, reported, &mut state))?,
        };
        *reports_left = reports_left.saturating_sub(1);
        test(out, examined, reported, content.trim_end())?;
    }
    for coverage in &examined.outcome.coverage {
        let analysis = markup(coverage.analysis);
        let start = format!("    <testcase classname=\"{analysis}\" name=");
        match coverage.truncated {
            Some(reason) => {
                let reason = markup(&reason.to_string());
                writeln!(out, "{start}\"{analysis}\" time=\"0\">")?;
                writeln!(out, "      <skipped message=\"incomplete: {reason}\"/>")?;
                writeln!(out, "    </testcase>")?;
            }
            // A suite without tests would look as if nothing had been checked.
            None if is_silent(examined.outcome, coverage) => {
                let mut listed = examined.outcome.listed.iter();
                let is_listed = listed.any(|it| it.fault.finding.analysis == coverage.analysis);
                let what = if is_listed { "nothing else found" } else { "nothing found" };
                writeln!(out, "{start}\"{what}\" time=\"0\"/>")?;
            }
            None => {}
        }
    }
    writeln!(out, "  </testsuite>")
}

/// Writes the test that `reported` is, with `content`.
fn test(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    reported: &Reported,
    content: &str,
) -> io::Result<()> {
    let finding = &reported.finding;
    let name = name(examined, reported);
    write!(out, "    <testcase classname=\"{}\" name=\"", markup(finding.analysis))?;
    write!(out, "{}\"", markup(&name))?;
    if let Some(place) = place(examined, reported) {
        write!(out, " file=\"{}\" line=\"{}\"", markup(place.file), place.line)?;
    }
    writeln!(out, " time=\"0\">")?;
    let content = escaped_lines(content);
    if is_failing(examined, reported) {
        let (kind, guarantee) = (finding.kind, finding.guarantee());
        let message = format!("{} {kind} ({guarantee}): {}", reported.id, finding.message);
        write!(out, "      <failure type=\"{kind}\" ")?;
        writeln!(out, "message=\"{}\">{content}</failure>", markup(&message))?;
    } else {
        writeln!(out, "      <system-out>{content}</system-out>")?;
    }
    writeln!(out, "    </testcase>")
}

/// What the test is called: the kind of fault and where it is, or the predicate; and a fingerprint,
/// since several faults may be at the same lines.
fn name(examined: &Examined<'_>, reported: &Reported) -> String {
    let Reported { fingerprint, finding, .. } = reported;
    let places = known_locations(examined.trace, finding);
    let what = match finding.detail.state() {
        Some(state) => format!(": {} {}", state.modality.as_str(), state.predicate),
        None if places.is_empty() => String::new(),
        None => format!(" at {}", places.join(" and ")),
    };
    format!("{} ({fingerprint})", clipped(&format!("{}{what}", finding.kind), NAME_MAX))
}

/// The line of a file at which the finding is to be shown, as in SARIF.
fn place<'t>(examined: &Examined<'t>, reported: &Reported) -> Option<Place<'t>> {
    let trace = examined.trace;
    let main = *main_event_first(trace, &reported.finding, 1).first()?;
    Place::new(trace.names().location(trace.event(main).site))
}

/// `text` between tags: with its lines.
fn escaped_lines(text: &str) -> String {
    text.split('\n').map(markup).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_carry_is_shown() {
        assert_eq!(markup("a\u{0}\u{1b}\u{ffff}"), "a\\u{0}\\u{1b}\\u{ffff}");
        assert_eq!(markup("a\nb\tc"), "a\\u{a}b\\u{9}c");
        assert_eq!(escaped_lines("a\nb\tc\r"), "a\nb\\u{9}c\\u{d}");
        assert_eq!(escaped_lines("]]> & <x y='\"'>"), "]]&gt; &amp; &lt;x y=&#39;&quot;&#39;&gt;");
    }
}
