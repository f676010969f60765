//! Baselines: which findings are known already?
//!
//! A baseline is a JSON report on one or several traces, or a list of fingerprints, one per line,
//! with comments after `#`. Findings match by fingerprint alone. Fingerprints do not depend on the
//! run, so it does not matter which trace the report was on.
//!
//! Linear in the file. Of a report, only fingerprints and kinds are kept.

use reweave_analysis::{Fingerprint, Kind};
use reweave_base::FxHashMap;
use serde::Deserialize;

use crate::error::{ReadError, ReadErrorKind, at, clipped, lines, text};

/// The schema of the reports that can be read.
const SCHEMA: &str = "reweave/1";

/// Findings that are known already.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    /// In the order of the file, each with whether it was found.
    entries: Vec<(KnownFinding, bool)>,
    positions: FxHashMap<Fingerprint, usize>,
}

/// A finding in a baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownFinding {
    /// Its name in every report.
    pub fingerprint: Fingerprint,
    /// Its kind; unknown in a list of fingerprints.
    pub kind: Option<Kind>,
}

/// The part of a report that matters here.
#[derive(Debug, Deserialize)]
struct Report {
    schema: Option<String>,
    findings: Option<Vec<ReportFinding>>,
}

#[derive(Debug, Deserialize)]
struct ReportFinding {
    fingerprint: String,
    kind: Option<String>,
}

impl Baseline {
    /// Parses `bytes`, the content of `file`.
    ///
    /// # Errors
    /// If it is neither a report nor a list of fingerprints.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, ReadError> {
        let start = bytes.trim_ascii_start();
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
        match start.first() {
            Some(b'{') => Self::from_reports(file, &[json(file, start, bytes)?]),
            Some(b'[') => Self::from_reports(file, &json::<Vec<Report>>(file, start, bytes)?),
            _ => Self::from_list(file, bytes),
        }
    }

    fn from_reports(file: &str, reports: &[Report]) -> Result<Self, ReadError> {
        let wrong = |kind| ReadError { file: file.to_owned(), line: 1, column: 1, kind };
        let mut baseline = Self::default();
        for report in reports {
            if report.schema.as_deref() != Some(SCHEMA) {
                let found = report.schema.as_deref().map(|it| format!("`{}`", clipped(it)));
                let found = found.unwrap_or_else(|| "another kind of JSON".to_owned());
                return Err(wrong(ReadErrorKind::OtherSchema { expected: SCHEMA, found }));
            }
            let Some(findings) = &report.findings else {
                let reason = "it has no list `findings`".to_owned();
                return Err(wrong(ReadErrorKind::NotAReport(reason)));
            };
            for finding in findings {
                let Some(fingerprint) = Fingerprint::parse(&finding.fingerprint) else {
                    let found = clipped(&finding.fingerprint);
                    return Err(wrong(ReadErrorKind::NotAFingerprint(found)));
                };
                let word = finding.kind.as_deref();
                let kind = word.and_then(Kind::named);
                baseline.add(KnownFinding { fingerprint, kind });
            }
        }
        Ok(baseline)
    }

    fn from_list(file: &str, bytes: &[u8]) -> Result<Self, ReadError> {
        let mut baseline = Self::default();
        for (line, bytes) in lines(bytes) {
            let whole = text(file, line, bytes)?;
            let word = whole.split('#').next().unwrap_or(whole).trim();
            if word.is_empty() {
                continue;
            }
            let Some(fingerprint) = Fingerprint::parse(word) else {
                let kind = ReadErrorKind::NotAFingerprint(clipped(word));
                return Err(at(file, line, whole, word, kind));
            };
            baseline.add(KnownFinding { fingerprint, kind: None });
        }
        Ok(baseline)
    }

    fn add(&mut self, known: KnownFinding) {
        let position = self.positions.entry(known.fingerprint).or_insert(self.entries.len());
        if *position == self.entries.len() {
            self.entries.push((known, false));
        }
    }

    /// The number of findings.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has no findings.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether it has the finding `fingerprint`; if so, that one counts as found from now on.
    pub fn mark_found(&mut self, fingerprint: Fingerprint) -> bool {
        let Some(&position) = self.positions.get(&fingerprint) else { return false };
        self.entries[position].1 = true;
        true
    }

    /// Findings that were not found, of `kinds` or of unknown kind, in the order of the file.
    pub fn not_found(&self, kinds: &[Kind]) -> impl Iterator<Item = &KnownFinding> {
        let missing = self.entries.iter().filter(|(_, is_found)| !is_found).map(|(known, _)| known);
        missing.filter(|known| known.kind.is_none_or(|kind| kinds.contains(&kind)))
    }
}

/// Parses `text`, with which `bytes` of `file` end, as JSON.
fn json<'t, T: Deserialize<'t>>(file: &str, text: &'t [u8], bytes: &[u8]) -> Result<T, ReadError> {
    serde_json::from_slice(text).map_err(|error| {
        let skipped = &bytes[..bytes.len() - text.len()];
        let line = skipped.iter().filter(|&&byte| byte == b'\n').count() + error.line().max(1);
        // The position stands before the message already.
        let whole = error.to_string();
        let reason = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(reason, _)| reason);
        let kind = ReadErrorKind::NotAReport(clipped(reason));
        ReadError { file: file.to_owned(), line, column: error.column().max(1), kind }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    const ONE: &str = "00000000000000aa";
    const TWO: &str = "00000000000000BB";

    fn report(fingerprint: &str) -> String {
        format!(
            "{{\"schema\": \"reweave/1\", \"trace\": {{}}, \"findings\": [{{\"id\": \"R1\", \
             \"fingerprint\": \"{fingerprint}\", \"kind\": \"race\", \"events\": [1, 2]}}]}}"
        )
    }

    fn not_found(text: &str, kinds: &[Kind]) -> usize {
        let mut baseline = Baseline::parse("base", text.as_bytes()).unwrap();
        assert!(baseline.mark_found(Fingerprint::parse(ONE).unwrap()), "{text}");
        assert!(!baseline.mark_found(Fingerprint::parse("00000000000000cc").unwrap()));
        baseline.not_found(kinds).count()
    }

    #[test]
    fn a_report_a_list_of_reports_and_a_list_of_fingerprints_are_baselines() {
        assert_eq!(not_found(&report(ONE), &Kind::ALL), 0);
        let reports = format!(" \n[{}, {}]", report(ONE), report(TWO));
        assert_eq!(not_found(&reports, &Kind::ALL), 1);
        assert_eq!(not_found(&reports, &[Kind::Deadlock]), 0);
        let list = format!("\u{feff}# known\r\n\n{ONE} # the counter\r\n  {TWO}\n{ONE}");
        assert_eq!(not_found(&list, &[Kind::Deadlock]), 1);
        assert!(Baseline::parse("base", b"").unwrap().is_empty());
    }

    #[track_caller]
    fn check(bytes: impl AsRef<[u8]>, expected: Expect) {
        expected.assert_eq(&Baseline::parse("base", bytes.as_ref()).unwrap_err().to_string());
    }

    #[test]
    fn what_is_no_baseline_is_refused_where_it_goes_wrong() {
        check(
            "00000000000000aa\n  what",
            expect![
                "base:2:3: expected a JSON report, or one fingerprint of 16 hexadecimal digits per \
                 line, found `what`"
            ],
        );
        check(b"# \xff", expect!["base:1:3: expected text in UTF-8"]);
        check(
            "\n{\"schema\": \"reweave/1\",\n \"findings\": 3}",
            expect![
                "base:3:14: expected a JSON report with findings: invalid type: integer `3`, \
                 expected a sequence"
            ],
        );
        check(
            "{\"schema\": \"reweave/1\"}",
            expect!["base:1:1: expected a JSON report with findings: it has no list `findings`"],
        );
        check(
            "{\"version\": \"2.1.0\"}",
            expect![
                "base:1:1: expected a report with schema `reweave/1`, found another kind of JSON"
            ],
        );
        check(
            "[{\"schema\": \"reweave/9\"}]",
            expect!["base:1:1: expected a report with schema `reweave/1`, found `reweave/9`"],
        );
        check(
            report("aa"),
            expect![
                "base:1:1: expected a JSON report, or one fingerprint of 16 hexadecimal digits per \
                 line, found `aa`"
            ],
        );
        check(
            "[".repeat(100_000),
            expect![
                "base:1:2: expected a JSON report with findings: invalid type: sequence, expected \
                 a string"
            ],
        );
    }
}
