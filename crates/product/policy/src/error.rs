//! Errors in baselines and suppression files, with their positions.

/// A baseline or suppression file that could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {kind}")]
pub struct ReadError {
    /// The name of the file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The character in the line, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub kind: ReadErrorKind,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The bytes are not UTF-8.
    #[error("expected text in UTF-8")]
    NotText,
    /// There is no colon.
    #[error("expected `kind:pattern`, such as `race:bank.c`, found `{0}`")]
    MissingKind(String),
    /// The kind is unknown.
    #[error("unknown kind of suppression `{found}`{}", suggestion(.nearest, .known))]
    UnknownKind {
        /// What was found.
        found: String,
        /// The most similar kind, if one is similar.
        nearest: Option<&'static str>,
        /// All kinds.
        known: String,
    },
    /// There is nothing after the colon.
    #[error("expected a pattern after `{0}:`; `*` matches everything")]
    MissingPattern(String),
    /// The pattern of a `fingerprint` suppression is not the start of one.
    #[error("expected a fingerprint of 8 to 16 hexadecimal digits, found `{0}`")]
    NotAFingerprintPrefix(String),
    /// A line of a list is not a fingerprint.
    #[error(
        "expected a JSON report, or one fingerprint of 16 hexadecimal digits per line, found `{0}`"
    )]
    NotAFingerprint(String),
    /// Not JSON, or not a report.
    #[error("expected a JSON report with findings: {0}")]
    NotAReport(String),
    /// JSON of another tool or version.
    #[error("expected a report with schema `{expected}`, found {found}")]
    OtherSchema {
        /// The schema that can be read.
        expected: &'static str,
        /// What was found.
        found: String,
    },
}

fn suggestion(nearest: &Option<&'static str>, known: &str) -> String {
    match nearest {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => format!("; expected one of {known}"),
    }
}

/// The name among `known` that is most similar to `name`, if one is similar enough to be a slip.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known.into_iter().map(|other| (strsim::osa_distance(name, other), other));
    let (distance, nearest) = distances.min_by_key(|&(distance, _)| distance)?;
    (distance <= name.chars().count().max(3) / 3).then_some(nearest)
}

/// How many characters of the text found a message shows.
const FOUND_MAX: usize = 60;

/// The start of `text`, short enough for a message.
pub(crate) fn clipped(text: &str) -> String {
    match text.char_indices().nth(FOUND_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The lines of `bytes` with their numbers, without trailing white space and byte order mark.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.split(|&byte| byte == b'\n').enumerate().map(|(at, line)| (at + 1, line.trim_ascii_end()))
}

/// The text of a line of `file`.
///
/// # Errors
/// If it is not UTF-8.
pub(crate) fn text<'b>(file: &str, line: usize, bytes: &'b [u8]) -> Result<&'b str, ReadError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let start = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let column = start.chars().count() + 1;
        ReadError { file: file.to_owned(), line, column, kind: ReadErrorKind::NotText }
    })
}

/// The error of `kind` at `part`, which is a part of `text`, the `line`-th of `file`.
pub(crate) fn at(
    file: &str,
    line: usize,
    text: &str,
    part: &str,
    kind: ReadErrorKind,
) -> ReadError {
    let offset = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let column = text.get(..offset).map_or(1, |before| before.chars().count() + 1);
    ReadError { file: file.to_owned(), line, column, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_has_a_suggestion_and_another_word_has_none() {
        let known = ["race", "race_top", "deadlock", "format"];
        for (name, meant) in [
            ("rase", Some("race")),
            ("dedlock", Some("deadlock")),
            ("formats", Some("format")),
            ("arce", Some("race")),
            ("fromat", Some("format")),
            ("leak", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), meant, "{name}");
        }
        assert_eq!(nearest(&"race".repeat(100), known), None);
    }
}
