//! Baselines: which findings are known already?
//!
//! A baseline is a JSON report on one or several traces, or a list of fingerprints, one per line,
//! with comments after `#`. Findings match by fingerprint alone. Fingerprints do not depend on the
//! run, so it does not matter which trace the report was on.
//!
//! A fault may be at several places, each with a fingerprint. A report says which places were known, and
//! another place of the same fault is new. A line of a list names a fault: all of it is known if any of its places
//! has that fingerprint.
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
    /// Whether its entries name whole faults.
    is_list: bool,
    /// The entry of each place.
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
    #[serde(default)]
    listed: Vec<ReportListed>,
}

#[derive(Debug, Deserialize)]
struct ReportFinding {
    fingerprint: String,
    kind: Option<String>,
    #[serde(default)]
    places: Vec<ReportPlace>,
}

/// Another place of a finding.
#[derive(Debug, Deserialize)]
struct ReportPlace {
    fingerprint: String,
}

/// A finding that is listed in the report on another trace.
#[derive(Debug, Deserialize)]
struct ReportListed {
    fingerprints: Vec<String>,
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
            let parsed = |text: &String| {
                let found = || wrong(ReadErrorKind::NotAFingerprint(clipped(text)));
                Fingerprint::parse(text).ok_or_else(found)
            };
            let here = findings.iter().map(|finding| {
                let others = finding.places.iter().map(|place| &place.fingerprint);
                let places = [&finding.fingerprint].into_iter().chain(others);
                (&finding.kind, places.collect::<Vec<_>>())
            });
            let elsewhere = report
                .listed
                .iter()
                .map(|listed| (&listed.kind, listed.fingerprints.iter().collect()));
            for (kind, places) in here.chain(elsewhere) {
                let kind = kind.as_deref().and_then(Kind::named);
                let places = places.into_iter().map(parsed).collect::<Result<Vec<_>, _>>()?;
                baseline.add(kind, &places);
            }
        }
        Ok(baseline)
    }

    fn from_list(file: &str, bytes: &[u8]) -> Result<Self, ReadError> {
        let mut baseline = Self { is_list: true, ..Self::default() };
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
            baseline.add(None, &[fingerprint]);
        }
        Ok(baseline)
    }

    /// Adds the finding with these `places`, of which the first is shown.
    fn add(&mut self, kind: Option<Kind>, places: &[Fingerprint]) {
        let Some(&fingerprint) = places.first() else { return };
        let entry = *self.positions.entry(fingerprint).or_insert(self.entries.len());
        if entry == self.entries.len() {
            self.entries.push((KnownFinding { fingerprint, kind }, false));
        }
        for &place in places {
            self.positions.entry(place).or_insert(entry);
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

    /// Which `places` of a fault it has; what they are of counts as found from now on.
    pub fn mark_found(&mut self, places: impl Iterator<Item = Fingerprint>) -> Vec<bool> {
        let mut known = Vec::new();
        for place in places {
            let entry = self.positions.get(&place).copied();
            known.push(entry.is_some());
            if let Some(entry) = entry {
                self.entries[entry].1 = true;
            }
        }
        if self.is_list && known.contains(&true) {
            known.fill(true);
        }
        known
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
        assert_eq!(known(&mut baseline, &[ONE]), [true], "{text}");
        assert_eq!(known(&mut baseline, &["00000000000000cc"]), [false]);
        baseline.not_found(kinds).count()
    }

    fn known(baseline: &mut Baseline, places: &[&str]) -> Vec<bool> {
        baseline.mark_found(places.iter().map(|place| Fingerprint::parse(place).unwrap()))
    }

    #[test]
    fn a_report_knows_places_and_a_list_knows_faults() {
        let new = "00000000000000cc";
        let finding = format!(
            "{{\"fingerprint\": \"{ONE}\", \"kind\": \"race\", \
             \"places\": [{{\"fingerprint\": \"{TWO}\"}}]}}"
        );
        let report = format!("{{\"schema\": \"reweave/1\", \"findings\": [{finding}]}}");
        let mut baseline = Baseline::parse("base", report.as_bytes()).unwrap();
        assert_eq!((baseline.len(), baseline.not_found(&Kind::ALL).count()), (1, 1));
        assert_eq!(known(&mut baseline, &[new, TWO]), [false, true]);
        assert_eq!(baseline.not_found(&Kind::ALL).count(), 0);
        let listed = format!(
            "{{\"schema\": \"reweave/1\", \"findings\": [], \"listed\": [{{\"trace\": \"a\", \
             \"kind\": \"race\", \"fingerprints\": [\"{TWO}\"]}}]}}"
        );
        let mut baseline = Baseline::parse("base", listed.as_bytes()).unwrap();
        assert_eq!(known(&mut baseline, &[ONE, TWO]), [false, true]);
        let mut baseline = Baseline::parse("base", ONE.as_bytes()).unwrap();
        assert_eq!(known(&mut baseline, &[new, ONE, TWO]), [true, true, true]);
        assert_eq!(known(&mut baseline, &[new]), [false]);
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
