//! Baselines: which findings are known?
//!
//! A baseline is a report in JSON, of one trace or of several, or a list of fingerprints, one a
//! line, with comments after `#`. Findings are matched by their fingerprints alone, which do not
//! depend on the run; so it does not matter which trace a report was on.
//!
//! Linear in the file; of a report only the names of its findings are kept.

use reweave_analysis::{Fingerprint, Kind};
use reweave_base::FxHashMap;
use serde::Deserialize;

use crate::error::{ReadError, ReadErrorKind, at, clipped, lines, text};

/// What the reports that can be read say they are.
const SCHEMA: &str = "reweave/1";

/// Findings that are known.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    entries: Vec<Entry>,
    places: FxHashMap<Fingerprint, usize>,
}

#[derive(Clone, Debug)]
struct Entry {
    known: Known,
    is_found: bool,
}

/// A finding that a baseline has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its name in every report.
    pub fingerprint: Fingerprint,
    /// What kind of fault it is, where the baseline tells.
    pub kind: Option<Kind>,
}

/// What a report says, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Document {
    schema: Option<String>,
    findings: Option<Vec<Named>>,
}

#[derive(Debug, Deserialize)]
struct Named {
    fingerprint: String,
    kind: Option<String>,
}

impl Baseline {
    /// The baseline in `bytes`, the content of `file`.
    ///
    /// # Errors
    /// If it is neither a report nor a list of fingerprints.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, ReadError> {
        let start = bytes.trim_ascii_start();
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
        match start.first() {
            Some(b'{') => Self::of_reports(file, &[json(file, start, bytes)?]),
            Some(b'[') => Self::of_reports(file, &json::<Vec<Document>>(file, start, bytes)?),
            _ => Self::of_list(file, bytes),
        }
    }

    fn of_reports(file: &str, documents: &[Document]) -> Result<Self, ReadError> {
        let wrong = |kind| ReadError { file: file.to_owned(), line: 1, column: 1, kind };
        let mut baseline = Self::default();
        for document in documents {
            if document.schema.as_deref() != Some(SCHEMA) {
                let found = document.schema.as_deref().map(|it| format!("`{}`", clipped(it)));
                let found = found.unwrap_or_else(|| "another kind of JSON".to_owned());
                return Err(wrong(ReadErrorKind::OtherSchema { expected: SCHEMA, found }));
            }
            let Some(findings) = &document.findings else {
                let reason = "it has no list `findings`".to_owned();
                return Err(wrong(ReadErrorKind::NoReport(reason)));
            };
            for finding in findings {
                let Some(fingerprint) = Fingerprint::parse(&finding.fingerprint) else {
                    let found = clipped(&finding.fingerprint);
                    return Err(wrong(ReadErrorKind::NoFingerprint(found)));
                };
                let word = finding.kind.as_deref();
                let kind = word.and_then(Kind::named);
                baseline.add(Known { fingerprint, kind });
            }
        }
        Ok(baseline)
    }

    fn of_list(file: &str, bytes: &[u8]) -> Result<Self, ReadError> {
        let mut baseline = Self::default();
        for (line, bytes) in lines(bytes) {
            let whole = text(file, line, bytes)?;
            let word = whole.split('#').next().unwrap_or(whole).trim();
            if word.is_empty() {
                continue;
            }
            let Some(fingerprint) = Fingerprint::parse(word) else {
                let kind = ReadErrorKind::NoFingerprint(clipped(word));
                return Err(at(file, line, whole, word, kind));
            };
            baseline.add(Known { fingerprint, kind: None });
        }
        Ok(baseline)
    }

    fn add(&mut self, known: Known) {
        let place = self.places.entry(known.fingerprint).or_insert(self.entries.len());
        if *place == self.entries.len() {
            self.entries.push(Entry { known, is_found: false });
        }
    }

    /// How many findings it has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether it has the finding called `fingerprint`, which was found now.
    pub fn meet(&mut self, fingerprint: Fingerprint) -> bool {
        let place = self.places.get(&fingerprint);
        let Some(entry) = place.and_then(|&place| self.entries.get_mut(place)) else {
            return false;
        };
        entry.is_found = true;
        true
    }

    /// Those that were not found, of `kinds` and of no kind that is told, in its own order.
    pub fn unmet(&self, kinds: &[Kind]) -> impl Iterator<Item = &Known> {
        let is_asked = |known: &Known| known.kind.is_none_or(|kind| kinds.contains(&kind));
        let unmet = self.entries.iter().filter(|entry| !entry.is_found).map(|entry| &entry.known);
        unmet.filter(move |known| is_asked(known))
    }
}

/// What `text`, which `bytes` of `file` end with, is in JSON.
fn json<'t, T: Deserialize<'t>>(file: &str, text: &'t [u8], bytes: &[u8]) -> Result<T, ReadError> {
    serde_json::from_slice(text).map_err(|error| {
        let skipped = &bytes[..bytes.len() - text.len()];
        let line = skipped.iter().filter(|&&byte| byte == b'\n').count() + error.line().max(1);
        // The place is told already.
        let whole = error.to_string();
        let reason = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(reason, _)| reason);
        let kind = ReadErrorKind::NoReport(clipped(reason));
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

    fn unmet(text: &str, kinds: &[Kind]) -> usize {
        let mut baseline = Baseline::parse("base", text.as_bytes()).unwrap();
        assert!(baseline.meet(Fingerprint::parse(ONE).unwrap()), "{text}");
        assert!(!baseline.meet(Fingerprint::parse("00000000000000cc").unwrap()));
        baseline.unmet(kinds).count()
    }

    #[test]
    fn a_report_a_list_of_reports_and_a_list_of_fingerprints_are_baselines() {
        assert_eq!(unmet(&report(ONE), &Kind::ALL), 0);
        let reports = format!(" \n[{}, {}]", report(ONE), report(TWO));
        assert_eq!(unmet(&reports, &Kind::ALL), 1);
        assert_eq!(unmet(&reports, &[Kind::Deadlock]), 0);
        let list = format!("\u{feff}# known\r\n\n{ONE} # the counter\r\n  {TWO}\n{ONE}");
        assert_eq!(unmet(&list, &[Kind::Deadlock]), 1);
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
                "base:2:3: expected a JSON report or a fingerprint of 16 hexadecimal digits a \
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
                "base:1:1: expected a report of schema `reweave/1`, found another kind of JSON"
            ],
        );
        check(
            "[{\"schema\": \"reweave/9\"}]",
            expect!["base:1:1: expected a report of schema `reweave/1`, found `reweave/9`"],
        );
        check(
            report("aa"),
            expect![
                "base:1:1: expected a JSON report or a fingerprint of 16 hexadecimal digits a \
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
