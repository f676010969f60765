//! The words of a predicate's text.

use std::ops::Range;

use super::TEXT_MAX;
use super::error::{PredicateError, PredicateErrorKind};

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// A name without quotes, or a word of the language.
    Name(String),
    /// A name in double quotes.
    Quoted(String),
    /// A name in backquotes.
    Backquoted(String),
    /// A number.
    Number(i64),
    /// An operator or a bracket.
    Symbol(&'static str),
    /// The end of the text.
    End,
}

/// A word and where it is.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) word: Word,
    pub(super) span: Range<usize>,
}

/// The longer ones first, so that none is taken for a shorter one.
const SYMBOLS: [&str; 19] = [
    "&&", "||", "=>", "==", "!=", "<=", ">=", "<", ">", "!", "+", "-", "*", "/", "%", "(", ")",
    ",", ":",
];

/// What to write instead of a character that is no symbol.
const ADVICE: [(char, &str); 5] = [
    ('=', "write == to compare"),
    ('&', "write && for and"),
    ('|', "write || for or"),
    ('\'', "use double quotes"),
    ('^', "write a != b for one of two"),
];

/// The words of `text`, the last of which is its end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, PredicateError> {
    if text.len() > TEXT_MAX {
        let kept = text.floor_char_boundary(TEXT_MAX);
        let text = text[..kept].to_owned();
        return Err(PredicateError { text, span: kept..kept, kind: PredicateErrorKind::TooLong });
    }
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (word, length) = next_word(&text[at..], first).map_err(|(length, kind)| {
            PredicateError { text: text.to_owned(), span: at..at + length, kind }
        })?;
        tokens.push(Token { word, span: at..at + length });
        at += length;
    }
    tokens.push(Token { word: Word::End, span: text.len()..text.len() });
    Ok(tokens)
}

/// The word that `rest` starts with, and how many bytes it has.
fn next_word(rest: &str, first: char) -> Result<(Word, usize), (usize, PredicateErrorKind)> {
    if first == '"' {
        return quoted(rest);
    }
    if first == '`' {
        let Some(length) = rest[1..].find('`') else {
            return Err((rest.len(), PredicateErrorKind::Unclosed { quote: '`' }));
        };
        return Ok((Word::Backquoted(rest[1..=length].to_owned()), length + 2));
    }
    if first.is_ascii_digit() {
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        numeral(rest, length)?;
        let number = rest[..length].parse().map_err(|_| (length, PredicateErrorKind::Number))?;
        return Ok((Word::Number(number), length));
    }
    if first.is_alphabetic() || is_joint(first) {
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        return Ok((Word::Name(rest[..length].to_owned()), length));
    }
    match SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
        Some(symbol) => Ok((Word::Symbol(symbol), symbol.len())),
        None => {
            let advice = ADVICE.into_iter().find(|&(c, _)| c == first).map(|(_, advice)| advice);
            let kind = PredicateErrorKind::Character { found: first, advice };
            Err((first.len_utf8(), kind))
        }
    }
}

/// Refuses what goes on with letters or a point after so many digits.
fn numeral(rest: &str, digits: usize) -> Result<(), (usize, PredicateErrorKind)> {
    let length = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
    let meant = match &rest[digits..length] {
        "" | "and" | "or" => return Ok(()),
        hexadecimal if &rest[..digits] == "0" && hexadecimal.starts_with(['x', 'X']) => {
            i64::from_str_radix(&hexadecimal[1..], 16).ok()
        }
        suffix if suffix.chars().all(|c| matches!(c, 'u' | 'U' | 'l' | 'L')) => {
            rest[..digits].parse().ok()
        }
        _ => None,
    };
    Err((length, PredicateErrorKind::Numeral { meant }))
}

/// Whether a name may go on with it.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || is_joint(c) || matches!(c, '.' | '[' | ']')
}

/// Whether a name may start with it although it is no letter.
const fn is_joint(c: char) -> bool {
    matches!(c, '_' | '$')
}

/// The name in double quotes that `rest` starts with. A backslash makes the next character part of
/// it.
fn quoted(rest: &str) -> Result<(Word, usize), (usize, PredicateErrorKind)> {
    let mut name = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Ok((Word::Quoted(name), at + 1)),
            '\\' => name.extend(characters.next().map(|(_, c)| c)),
            _ => name.push(c),
        }
    }
    Err((rest.len(), PredicateErrorKind::Unclosed { quote: '"' }))
}

/// Whether `name` is read as one name without quotes.
pub(super) fn is_plain(name: &str) -> bool {
    match tokens(name).as_deref() {
        Ok([Token { word: Word::Name(word), .. }, _]) => word == name,
        _ => false,
    }
}
