//! What can be wrong with a file, and where.

use std::fmt::{self, Display, Formatter};
use std::io;

use reweave_trace::RunStart;

/// A trace that could not be read: which file, where in it, and why.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {place}{kind}")]
pub struct ReadError {
    /// The file, or `standard input`.
    pub file: String,
    /// Where in it, after decompression.
    pub place: Place,
    /// What is wrong there.
    pub kind: ReadErrorKind,
}

/// Where in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere in particular.
    File,
    /// On this line, counted from 1.
    Line(u64),
    /// At this column of this line, counted from 1, in bytes.
    Column {
        /// The line.
        line: u64,
        /// The column.
        column: u64,
    },
    /// At this byte, counted from 0.
    Byte(u64),
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => Ok(()),
            Self::Line(line) => write!(f, "line {line}: "),
            Self::Column { line, column } => write!(f, "line {line}, column {column}: "),
            Self::Byte(byte) => write!(f, "byte {byte}: "),
        }
    }
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The file could not be opened or read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// There is nothing in it.
    #[error("the file is empty: expected a trace")]
    Empty,
    /// It is none of the formats.
    #[error("not a trace in a known format: {0}")]
    Unrecognised(String),
    /// It is a poset, where a trace is wanted.
    #[error(
        "expected a trace, found a poset, which has an order of events and no more: \
         `reweave states count` takes it"
    )]
    Poset,
    /// Text was expected.
    #[error("expected UTF-8 text")]
    NotUtf8,
    /// A line is longer than any trace has.
    #[error("the line is longer than {max} bytes")]
    LineTooLong {
        /// The longest that is accepted.
        max: usize,
    },
    /// The text is not an operation.
    #[error("expected an operation such as `w(x)` or `acq(m)`, found `{0}`")]
    NotAnOperation(String),
    /// Two operations share a line of a drawing in columns.
    #[error("expected one operation per line, since their order would be ambiguous")]
    Simultaneous,
    /// A part of the event is missing, superfluous or malformed.
    #[error("{0}")]
    Malformed(String),
    /// The events cannot have happened as they stand.
    #[error("{0}; try `--repair`")]
    IllFormed(String),
    /// The file ends early or was changed.
    #[error("{reason}; {kept} events before it are whole: `--repair` keeps them")]
    Damaged {
        /// What is wrong.
        reason: String,
        /// How many events come before the damage.
        kept: usize,
    },
    /// Whoever asked for it wants no more of it.
    #[error("interrupted")]
    Interrupted,
}

/// Where and why reading failed, before it is known which file it was.
pub(crate) type Failure = (Place, ReadErrorKind);

/// What an excerpt shows of a text, in characters.
const EXCERPT_MAX: usize = 60;

/// The beginning of `text` as a message can show it: on one line, and not too long.
pub(crate) fn excerpt(text: &[u8]) -> String {
    // No character has more than four bytes.
    let head = &text[..text.len().min(4 * EXCERPT_MAX + 4)];
    let head = String::from_utf8_lossy(head);
    let mut shown = String::new();
    for (position, character) in head.chars().enumerate() {
        if position == EXCERPT_MAX {
            shown.push('…');
            break;
        }
        if character.is_control() || character == '\u{feff}' {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// A trace that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct WriteError {
    /// The file, or `standard output`.
    pub file: String,
    /// Why.
    pub reason: String,
    /// What kind of error it is: a reader who leaves early is none of ours.
    pub kind: io::ErrorKind,
}

/// Refuses variables of the environment whose names are none: they are printed before commands, for people to type.
pub(crate) fn check_variables(run_start: &RunStart) -> Result<(), String> {
    let Some(name) = run_start.illegal_variable() else { return Ok(()) };
    let found = excerpt(name.as_bytes());
    Err(format!("expected the name of a variable to be letters, digits and `_`, found `{found}`"))
}
