//! A file that is no baseline or holds no suppressions, and where.

/// A file that could not be understood, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {kind}")]
pub struct ReadError {
    /// What the file is called.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The letter in the line, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub kind: ReadErrorKind,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The bytes are no text.
    #[error("expected text in UTF-8")]
    NotText,
    /// There is no colon.
    #[error("expected `kind:pattern`, such as `race:bank.c`, found `{0}`")]
    NoKind(String),
    /// The kind is not known.
    #[error("no kind of suppression is called `{found}`: {}", meant(.nearest, .known))]
    UnknownKind {
        /// What was found.
        found: String,
        /// The kind that it is most like, if it is like one.
        nearest: Option<&'static str>,
        /// What there is.
        known: String,
    },
    /// Nothing stands after the colon.
    #[error("expected a pattern after `{0}:`; `*` stands for everything")]
    NoPattern(String),
    /// What should be a fingerprint, or the start of one, is not.
    #[error("expected a fingerprint, 8 to 16 hexadecimal digits, found `{0}`")]
    NoFingerprintStart(String),
    /// A line of a list is no fingerprint.
    #[error("expected a JSON report or a fingerprint of 16 hexadecimal digits a line, found `{0}`")]
    NoFingerprint(String),
    /// The JSON is none, or not that of a report.
    #[error("expected a JSON report with findings: {0}")]
    NoReport(String),
    /// The JSON is that of another tool or version.
    #[error("expected a report of schema `{expected}`, found {found}")]
    OtherSchema {
        /// What can be read.
        expected: &'static str,
        /// What was found.
        found: String,
    },
}

fn meant(nearest: &Option<&'static str>, known: &str) -> String {
    match nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("there is {known}"),
    }
}

/// How many letters of what was found a message shows.
const FOUND_MAX: usize = 60;

/// The start of `text`, as far as a message has room.
pub(crate) fn clipped(text: &str) -> String {
    match text.char_indices().nth(FOUND_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The lines of `bytes` with their numbers, without what is white at their ends; a byte order mark
/// at the start is no part of the first.
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
