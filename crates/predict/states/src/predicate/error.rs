//! What is wrong with a predicate, and where.

use std::fmt::{self, Display, Formatter};
use std::ops::Range;

use reweave_trace::NameKind;

use super::{DEPTH_MAX, PARTS_MAX, TEXT_MAX};

/// Why a text is no predicate over the states of a trace. Shows the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredicateError {
    /// The whole text, or as much of it as a predicate may have.
    pub text: String,
    /// Which of its bytes are meant.
    pub span: Range<usize>,
    /// What is wrong with them.
    pub kind: PredicateErrorKind,
}

/// What an expression gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// True or false.
    Truth,
    /// A number.
    Number,
}

/// What can be wrong with a predicate. Of names that do not exist, the nearest that do are given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages explain the fields")]
pub enum PredicateErrorKind {
    /// It is longer than [`TEXT_MAX`].
    #[error("a predicate has at most {TEXT_MAX} bytes")]
    TooLong,
    /// A character that has no place in the language.
    #[error("unexpected `{}`", printable(*found))]
    Character { found: char, advice: Option<&'static str> },
    /// A name in quotes does not end.
    #[error("the name has no closing {quote}")]
    Unclosed { quote: char },
    /// A number that does not fit.
    #[error("expected a decimal integer up to {}", i64::MAX)]
    Number,
    /// Digits with something else among them, and the number that may have been meant.
    #[error("expected a decimal integer")]
    Numeral { meant: Option<i64> },
    /// Something else was expected.
    #[error("expected {expected}, found {found}")]
    Expected { expected: &'static str, found: String, advice: Option<&'static str> },
    /// It is nested more than [`DEPTH_MAX`] deep.
    #[error("nested more than {DEPTH_MAX} deep")]
    TooDeep,
    /// Two comparisons in a row.
    #[error("a comparison has two sides")]
    Chained,
    /// A number where a truth is expected, or vice versa.
    #[error("expected {}", match expected {
        Type::Truth => "a truth value, found a number",
        Type::Number => "a number, found a truth value",
    })]
    Type { expected: Type },
    /// A truth that is compared with a number.
    #[error("expected a number, found a truth value")]
    Mixed,
    /// A modality that is not around the whole.
    #[error("possibly, definitely, always and never stand around the whole predicate")]
    InnerModality,
    /// `race` among other things, or under a modality that it has no meaning under.
    #[error("`race` stands alone, or alone within possibly(…) or never(…)")]
    InnerRace,
    /// A function that there is not.
    #[error("there is no function `{name}`")]
    Function { name: String, near: Vec<String> },
    /// Other arguments than the function has.
    #[error("expected `{usage}`")]
    Arguments { usage: &'static str, advice: Option<&'static str> },
    /// A name that the trace does not have, what else has it, and whether the trace is a recording.
    #[error("the trace has no {} `{name}`", noun(*kind))]
    Unknown {
        kind: NameKind,
        name: String,
        near: Vec<String>,
        also: Option<NameKind>,
        is_recorded: bool,
    },
    /// A name that may be a variable or a thread's local.
    #[error("`{name}` is the name of a variable and of a local")]
    Ambiguous { name: String, local: String },
    /// A name for threads that stands for one already.
    #[error("`{name}` stands for a thread already")]
    BoundTwice { name: String },
    /// It has more than [`PARTS_MAX`] parts once quantifiers are expanded.
    #[error("expanded over all threads, the predicate has more than {PARTS_MAX} parts")]
    TooLarge,
    /// It asks what is not known before the run is over.
    #[error("unknown while the program runs: {what}")]
    TooEarly { what: &'static str },
}

/// What things of `kind` are called.
const fn noun(kind: NameKind) -> &'static str {
    match kind {
        NameKind::Thread => "thread",
        NameKind::Lock => "lock",
        NameKind::Local => "local",
        NameKind::Site => "location",
        NameKind::Var => "variable",
        // No predicate names any other.
        _ => "name",
    }
}

/// `character`, escaped if it would not be seen.
fn printable(character: char) -> String {
    if character.is_control() { character.escape_debug().to_string() } else { character.into() }
}

impl PredicateErrorKind {
    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::TooLong | Self::Number => None,
            Self::Expected { advice, .. } | Self::Arguments { advice, .. } => {
                advice.map(str::to_owned)
            }
            Self::Numeral { meant: Some(meant) } => {
                Some(format!("write {meant}, or put a name in double quotes"))
            }
            Self::Numeral { meant: None } => {
                Some("write a whole number, or put a name in double quotes".into())
            }
            Self::Mixed => Some("leave out the comparison, or write ! before it for false".into()),
            Self::Character { advice: Some(advice), .. } => Some((*advice).to_owned()),
            Self::Character { advice: None, .. } => {
                Some("put names with such characters in backquotes".into())
            }
            Self::Unclosed { quote } => Some(format!("close it with {quote}")),
            Self::TooDeep => Some("use fewer parentheses, or leave out a part".into()),
            Self::Chained => Some("join two comparisons with &&, as in a < b && b < c".into()),
            Self::Type { expected: Type::Truth } => Some("compare it, as in x != 0".into()),
            Self::Type { expected: Type::Number } => {
                Some("count(t: …) says for how many threads something is true".into())
            }
            Self::InnerModality => Some("ask for each part by itself".into()),
            Self::InnerRace => Some(
                "ask for races by themselves, or put the name of a variable in backquotes".into(),
            ),
            Self::Function { near, .. } => nearest(near),
            Self::Unknown { kind: NameKind::Var, name, also: None, is_recorded: true, .. } => {
                // A part of a variable is called by its offset.
                let global = name.split('+').next().unwrap_or(name);
                Some(format!(
                    "recordings have the variables that threads contend for; to have another global, \
                     use `reweave record --keep {global} -- CMD`"
                ))
            }
            Self::Unknown { kind, near, also, .. } => also
                .and_then(|also| other_kind(*kind, also))
                .or_else(|| nearest(near))
                .or_else(|| Some(format!("it has no {}s at all", noun(*kind)))),
            Self::Ambiguous { name, local } => Some(format!(
                "write `{name}`, in backquotes, for the variable and {local} for the local"
            )),
            Self::BoundTwice { .. } => Some("give the inner one another name".into()),
            Self::TooLarge => Some("name the threads that matter".into()),
            Self::TooEarly { .. } => {
                Some("ask for it afterwards, with `reweave states find` and the trace".into())
            }
        }
    }
}

fn nearest(near: &[String]) -> Option<String> {
    let quoted: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => None,
        [one] => Some(format!("the nearest is {one}")),
        [first @ .., last] => Some(format!("the nearest are {} and {last}", first.join(", "))),
    }
}

/// How to speak of something that was taken for something else.
fn other_kind(kind: NameKind, also: NameKind) -> Option<String> {
    let help = match (kind, also) {
        (NameKind::Var, NameKind::Lock) => "it is a lock: holds(T, m) asks whether a thread has it",
        (NameKind::Var, NameKind::Thread) => "it is a thread: position(T) and done(T) speak of one",
        (NameKind::Var, NameKind::Local) => "it is a local: T.name is that of thread T",
        _ => return None,
    };
    Some(help.into())
}

/// So many characters of a line are shown at most.
const SHOWN_MAX: usize = 90;

/// So many of them come before the place.
const SHOWN_BEFORE: usize = 40;

impl Display for PredicateError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.kind)?;
        let start = self.text.floor_char_boundary(self.span.start);
        let end = self.text.ceil_char_boundary(self.span.end);
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
        let line: Vec<char> = self.text[line_start..line_end]
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let before = self.text[line_start..start].chars().count();
        let width = self.text[start..end.clamp(start, line_end)].chars().count();
        let first = if line.len() > SHOWN_MAX { before.saturating_sub(SHOWN_BEFORE) } else { 0 };
        let last = line.len().min(first + SHOWN_MAX);
        let head = if first > 0 { "…" } else { "" };
        let tail = if last < line.len() { "…" } else { "" };
        let shown: String = line[first..last].iter().collect();
        writeln!(f, "{}", format!("  {head}{shown}{tail}").trim_end())?;
        let indent = before - first + head.chars().count();
        let carets = width.min(last.saturating_sub(before)).max(1);
        write!(f, "  {}{}", " ".repeat(indent), "^".repeat(carets))?;
        match self.kind.help() {
            Some(help) => write!(f, "\n{help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for PredicateError {}
