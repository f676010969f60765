//! The text of a predicate: its tokens and their structure.
//!
//! Operators bind as in C, from the loosest: `=>`, `||`, `&&`, `not`, comparisons, `+` and `-`, `*`
//! and `/` and `%`, `!` and a sign. A row of `&&`, of `||`, or of `+` and `-` is one node with many
//! parts, and everything else may be nested [`DEPTH_MAX`] deep; so recursion over the tree is
//! bounded.

use std::ops::Range;

use reweave_analysis::Modality;

use super::error::{PredicateError, PredicateErrorKind};
use super::expression::{Comparison, Operator};
use super::{DEPTH_MAX, TEXT_MAX};

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
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

/// A token and where it is.
#[derive(Clone, Debug)]
struct Token {
    word: Word,
    span: Range<usize>,
}

/// Longer ones first, so that none is read as a shorter one.
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

/// The tokens of `text`, the last of which is its end.
fn tokens(text: &str) -> Result<Vec<Token>, PredicateError> {
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

/// The token that `rest` starts with, and how many bytes it has.
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

/// Refuses so many digits with letters or a point behind them.
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

/// Whether a name may contain it.
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

/// A function of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    At,
    Next,
    Holds,
    Position,
    Done,
    Started,
    Local,
}

impl Function {
    /// Each with its name and how it is written.
    const ALL: [(&'static str, Self, &'static str); 7] = [
        ("at", Self::At, "at(thread, \"location\")"),
        ("next", Self::Next, "next(thread, \"location\")"),
        ("holds", Self::Holds, "holds(thread, lock)"),
        ("position", Self::Position, "position(thread)"),
        ("done", Self::Done, "done(thread)"),
        ("started", Self::Started, "started(thread)"),
        ("local", Self::Local, "local(thread, name)"),
    ];

    const fn arguments_count(self) -> usize {
        match self {
            Self::At | Self::Next | Self::Holds | Self::Local => 2,
            Self::Position | Self::Done | Self::Started => 1,
        }
    }
}

/// A quantifier over all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantifier {
    Count,
    Sum,
    Exists,
    All,
}

impl Quantifier {
    /// Each with its name and how it is written.
    const ALL: [(&'static str, Self, &'static str); 4] = [
        ("count", Self::Count, "count(t: …)"),
        ("sum", Self::Sum, "sum(t: …)"),
        ("exists", Self::Exists, "exists(t: …)"),
        ("all", Self::All, "all(t: …)"),
    ];
}

/// A name as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) text: String,
    /// Whether it had quotes, so that it is that of a thing of the trace and nothing else.
    pub(super) is_quoted: bool,
    pub(super) span: Range<usize>,
}

/// A part of a predicate.
#[derive(Clone, Debug)]
pub(super) struct Syntax {
    pub(super) kind: Kind,
    pub(super) span: Range<usize>,
    depth: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Number(i64),
    Truth(bool),
    Race,
    /// A variable, or a thread and its local.
    Variable(Name),
    Ask(Function, Vec<Name>),
    Quantified(Quantifier, Name, Box<Syntax>),
    Not(Box<Syntax>),
    All(Vec<Syntax>),
    Any(Vec<Syntax>),
    Implies(Box<[Syntax; 2]>),
    Compare(Comparison, Box<[Syntax; 2]>),
    /// Each with whether it is subtracted.
    Sum(Vec<(bool, Syntax)>),
    Arithmetic(Operator, Box<[Syntax; 2]>),
}

/// What other languages call the words of this one.
const SYNONYMS: [(&str, &str); 8] = [
    ("eventually", "definitely"),
    ("inevitably", "definitely"),
    ("sometimes", "possibly"),
    ("ever", "possibly"),
    ("any", "exists"),
    ("some", "exists"),
    ("forall", "all"),
    ("every", "all"),
];

/// The names of functions and modalities that come nearest to `word`, which is none.
fn near(word: &str) -> Vec<String> {
    if let Some((_, own)) = SYNONYMS.into_iter().find(|&(other, _)| other == word) {
        return vec![own.to_owned()];
    }
    let functions = Function::ALL.iter().map(|all| all.0);
    let quantifiers = Quantifier::ALL.iter().map(|all| all.0);
    let modalities = Modality::ALL.iter().map(|modality| modality.as_str());
    nearest(word, functions.chain(quantifiers).chain(modalities))
}

/// At most so many names are suggested for one that does not exist.
const SUGGESTED_MAX: usize = 3;

/// The names of `known` that are most similar to `name`, the most similar first.
pub(super) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Vec<String> {
    let length = name.len();
    // The cost is quadratic, and the first letters of a long name are enough.
    let name = &name[..name.floor_char_boundary(64)];
    // Letters that differ in case alone count half.
    let lower = name.to_lowercase();
    let distance = |other: &str| {
        let plain = strsim::levenshtein(name, other);
        plain + strsim::levenshtein(&lower, &other.to_lowercase())
    };
    let mut near: Vec<(usize, &str)> = known
        .filter(|other| other.len().abs_diff(length) <= 8)
        .map(|other| (distance(other), other))
        .collect();
    near.sort_unstable();
    near.dedup();
    // Names that differ by one more letter than the nearest are as likely, others are not.
    let limit = near.first().map_or(0, |(distance, _)| distance + 2);
    let close = near.into_iter().take(SUGGESTED_MAX).filter(|(distance, _)| *distance <= limit);
    close.map(|(_, name)| name.to_owned()).collect()
}

/// The modality that is written so.
fn modality_of(word: &str) -> Option<Modality> {
    Modality::ALL.into_iter().find(|modality| modality.as_str() == word)
}

/// The modality and the structure of `text`.
pub(super) fn parse(text: &str) -> Result<(Modality, Syntax), PredicateError> {
    let mut parser = Parser { text, tokens: tokens(text)?, at: 0, depth: 0 };
    let modality = match (&parser.tokens[0].word, parser.tokens.get(1).map(|token| &token.word)) {
        (Word::Name(word), Some(Word::Symbol("("))) => modality_of(word),
        _ => None,
    };
    let Some(modality) = modality else {
        let whole = parser.implication()?;
        parser.end("an operator or the end")?;
        return Ok((Modality::Possibly, whole));
    };
    let span = parser.peek().span.clone();
    parser.at += 2;
    let whole = parser.implication()?;
    parser.expect(")")?;
    if parser.peek().word != Word::End {
        return parser.fault(span, PredicateErrorKind::InnerModality);
    }
    Ok((modality, whole))
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    /// How many parentheses and signs are open.
    depth: usize,
}

type Parsed<T = Syntax> = Result<T, PredicateError>;

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at]
    }

    /// The next token, which stays the next if it is the end.
    fn take(&mut self) -> Token {
        let token = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Takes the next token if it is a symbol or a word among `wanted`.
    fn take_any(&mut self, wanted: &[&'static str]) -> Option<&'static str> {
        let found = match &self.peek().word {
            Word::Symbol(symbol) => wanted.iter().find(|own| *own == symbol),
            Word::Name(name) => wanted.iter().find(|own| *own == name),
            _ => None,
        };
        let found = *found?;
        self.take();
        Some(found)
    }

    fn expect(&mut self, symbol: &'static str) -> Parsed<()> {
        match self.take_any(&[symbol]) {
            Some(_) => Ok(()),
            None => self.unexpected(match symbol {
                "(" => "`(`",
                ")" => "an operator or `)`",
                "," => "`,`",
                _ => "`:`",
            }),
        }
    }

    fn end(&self, expected: &'static str) -> Parsed<()> {
        if self.peek().word == Word::End { Ok(()) } else { self.unexpected(expected) }
    }

    fn unexpected<T>(&self, expected: &'static str) -> Parsed<T> {
        let Token { word, span } = self.peek();
        let found = match word {
            Word::End => "the end".into(),
            _ => format!("`{}`", &self.text[span.clone()]),
        };
        let advice = self.advice();
        self.fault(span.clone(), PredicateErrorKind::Expected { expected, found, advice })
    }

    /// Advice about an unexpected token: it, or the one before it, may be part of a variable's
    /// name.
    fn advice(&self) -> Option<&'static str> {
        let is_word = |token: &Token| matches!(&token.word, Word::Name(name) if matches!(name.as_str(), "and" | "or" | "not"));
        let next = self.peek();
        let before = self.at.checked_sub(1).map(|at| &self.tokens[at]);
        if before.is_some_and(|before| {
            before.word == Word::Symbol("-")
                && matches!(next.word, Word::Symbol(">" | ">="))
                && before.span.end == next.span.start
        }) {
            return Some("put names with -> in backquotes");
        }
        let is_operator = matches!(next.word, Word::Symbol(symbol) if symbol != "(");
        let is_named = is_word(next) || (is_operator && before.is_some_and(is_word));
        is_named.then_some("a variable called and, or, or not goes in backquotes")
    }

    fn fault<T>(&self, span: Range<usize>, kind: PredicateErrorKind) -> Parsed<T> {
        Err(PredicateError { text: self.text.to_owned(), span, kind })
    }

    /// A part that ends where the last token taken does.
    fn part(&self, start: usize, kind: Kind) -> Parsed {
        let of = |parts: &[Syntax]| parts.iter().map(|part| part.depth).max().unwrap_or(0);
        let inner = match &kind {
            Kind::Number(_) | Kind::Truth(_) | Kind::Race | Kind::Variable(_) | Kind::Ask(..) => 0,
            Kind::Quantified(_, _, part) | Kind::Not(part) => part.depth,
            Kind::All(parts) | Kind::Any(parts) => of(parts),
            Kind::Implies(parts) | Kind::Compare(_, parts) | Kind::Arithmetic(_, parts) => {
                of(parts.as_slice())
            }
            Kind::Sum(terms) => terms.iter().map(|(_, part)| part.depth).max().unwrap_or(0),
        };
        let span = start..self.tokens[self.at.saturating_sub(1)].span.end.max(start);
        if inner >= DEPTH_MAX {
            return self.fault(span, PredicateErrorKind::TooDeep);
        }
        Ok(Syntax { kind, span, depth: inner + 1 })
    }

    /// Parses something nested, if that is not too deep.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_MAX {
            return self.fault(self.peek().span.clone(), PredicateErrorKind::TooDeep);
        }
        self.depth += 1;
        let parsed = parse(self)?;
        self.depth -= 1;
        Ok(parsed)
    }

    fn implication(&mut self) -> Parsed {
        let start = self.peek().span.start;
        let left = self.disjunction()?;
        if self.take_any(&["=>"]).is_none() {
            return Ok(left);
        }
        let right = self.nested(Self::implication)?;
        self.part(start, Kind::Implies(Box::new([left, right])))
    }

    fn disjunction(&mut self) -> Parsed {
        self.row(&["||", "or"], Self::conjunction, Kind::Any)
    }

    fn conjunction(&mut self) -> Parsed {
        self.row(&["&&", "and"], Self::negation, Kind::All)
    }

    /// Parts with one of `symbols` between them.
    fn row(
        &mut self,
        symbols: &[&'static str],
        parse: fn(&mut Self) -> Parsed,
        kind: fn(Vec<Syntax>) -> Kind,
    ) -> Parsed {
        let start = self.peek().span.start;
        let first = parse(self)?;
        let mut parts = vec![first];
        while self.take_any(symbols).is_some() {
            parts.push(parse(self)?);
        }
        match parts.pop() {
            Some(only) if parts.is_empty() => Ok(only),
            last => {
                parts.extend(last);
                self.part(start, kind(parts))
            }
        }
    }

    fn negation(&mut self) -> Parsed {
        let start = self.peek().span.start;
        if self.take_any(&["not"]).is_none() {
            return self.comparison();
        }
        let inner = self.nested(Self::negation)?;
        self.part(start, Kind::Not(Box::new(inner)))
    }

    fn comparison(&mut self) -> Parsed {
        const SYMBOLS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
        let start = self.peek().span.start;
        let left = self.sum()?;
        let Some(symbol) = self.take_any(&SYMBOLS) else { return Ok(left) };
        let right = self.sum()?;
        let span = self.peek().span.clone();
        if self.take_any(&SYMBOLS).is_some() {
            return self.fault(span, PredicateErrorKind::Chained);
        }
        let comparison = match symbol {
            "==" => Comparison::Equal,
            "!=" => Comparison::Unequal,
            "<" => Comparison::Less,
            "<=" => Comparison::AtMost,
            ">" => Comparison::More,
            _ => Comparison::AtLeast,
        };
        self.part(start, Kind::Compare(comparison, Box::new([left, right])))
    }

    fn sum(&mut self) -> Parsed {
        let start = self.peek().span.start;
        let first = self.product()?;
        let mut terms = Vec::new();
        while let Some(symbol) = self.take_any(&["+", "-"]) {
            terms.push((symbol == "-", self.product()?));
        }
        if terms.is_empty() {
            return Ok(first);
        }
        terms.insert(0, (false, first));
        self.part(start, Kind::Sum(terms))
    }

    fn product(&mut self) -> Parsed {
        let start = self.peek().span.start;
        let mut left = self.sign()?;
        while let Some(symbol) = self.take_any(&["*", "/", "%"]) {
            let operator = match symbol {
                "*" => Operator::Times,
                "/" => Operator::Over,
                _ => Operator::Modulo,
            };
            let right = self.sign()?;
            left = self.part(start, Kind::Arithmetic(operator, Box::new([left, right])))?;
        }
        Ok(left)
    }

    fn sign(&mut self) -> Parsed {
        let start = self.peek().span.start;
        let Some(symbol) = self.take_any(&["!", "-"]) else { return self.single() };
        let inner = self.nested(Self::sign)?;
        match symbol {
            "!" => self.part(start, Kind::Not(Box::new(inner))),
            _ => self.part(start, Kind::Sum(vec![(true, inner)])),
        }
    }

    fn single(&mut self) -> Parsed {
        const EXPECTED: &str = "a variable, a number, a function or `(`";
        let start = self.peek().span.start;
        match self.peek().word.clone() {
            Word::Number(number) => {
                self.take();
                self.part(start, Kind::Number(number))
            }
            Word::Symbol("(") => {
                self.take();
                let inner = self.nested(Self::implication)?;
                self.expect(")")?;
                Ok(inner)
            }
            Word::Backquoted(_) => {
                let name = self.name(EXPECTED)?;
                self.part(start, Kind::Variable(name))
            }
            Word::Name(word) => match word.as_str() {
                "and" | "or" | "not" => self.unexpected(EXPECTED),
                _ => self.word(word),
            },
            Word::Quoted(_) | Word::Symbol(_) | Word::End => self.unexpected(EXPECTED),
        }
    }

    /// What starts with a name without quotes.
    fn word(&mut self, word: String) -> Parsed {
        let Token { span, .. } = self.take();
        let start = span.start;
        if self.peek().word == Word::Symbol("(") {
            return self.call(&word, span);
        }
        let kind = match word.as_str() {
            "true" => Kind::Truth(true),
            "false" => Kind::Truth(false),
            "race" => Kind::Race,
            _ => Kind::Variable(Name { text: word, is_quoted: false, span }),
        };
        self.part(start, kind)
    }

    /// A call of `word`, whose parenthesis is the next token.
    fn call(&mut self, word: &str, span: Range<usize>) -> Parsed {
        if let Some((_, quantifier, usage)) = Quantifier::ALL.into_iter().find(|all| all.0 == word)
        {
            self.take();
            return self.quantified(quantifier, usage, span);
        }
        let Some((_, function, usage)) = Function::ALL.into_iter().find(|all| all.0 == word) else {
            if modality_of(word).is_some() {
                return self.fault(span, PredicateErrorKind::InnerModality);
            }
            let kind = PredicateErrorKind::Function { name: word.to_owned(), near: near(word) };
            return self.fault(span, kind);
        };
        self.take();
        let mut arguments = vec![self.name("a thread")?];
        while self.take_any(&[","]).is_some() {
            arguments.push(self.name("a name or a location in double quotes")?);
        }
        let is_complete = arguments.len() == function.arguments_count();
        if !is_complete || self.take_any(&[")"]).is_none() {
            let Token { word, span: Range { end, .. } } = self.peek();
            let advice = match (word, function) {
                (Word::Symbol("," | ")"), _) => None,
                (Word::Symbol(_), Function::At | Function::Next) => {
                    Some("put the location in double quotes")
                }
                (Word::Symbol(_), _) => Some("put names with such characters in double quotes"),
                _ => None,
            };
            let kind = PredicateErrorKind::Arguments { usage, advice };
            return self.fault(span.start..*end, kind);
        }
        self.part(span.start, Kind::Ask(function, arguments))
    }

    fn quantified(
        &mut self,
        quantifier: Quantifier,
        usage: &'static str,
        span: Range<usize>,
    ) -> Parsed {
        let Token { word: Word::Name(text), span: own } = self.take() else {
            return self.fault(span, PredicateErrorKind::Arguments { usage, advice: None });
        };
        if self.take_any(&[":"]).is_none() {
            let kind = PredicateErrorKind::Arguments { usage, advice: None };
            return self.fault(span.start..own.end, kind);
        }
        let name = Name { text, is_quoted: false, span: own };
        let inner = self.nested(Self::implication)?;
        self.expect(")")?;
        self.part(span.start, Kind::Quantified(quantifier, name, Box::new(inner)))
    }

    /// A name of whatever: a number may be one, too.
    fn name(&mut self, expected: &'static str) -> Parsed<Name> {
        let (text, is_quoted) = match &self.peek().word {
            Word::Name(text) => (text.clone(), false),
            Word::Quoted(text) | Word::Backquoted(text) => (text.clone(), true),
            Word::Number(_) => (self.text[self.peek().span.clone()].to_owned(), false),
            Word::Symbol(_) | Word::End => return self.unexpected(expected),
        };
        Ok(Name { text, is_quoted, span: self.take().span })
    }
}
