//! What a predicate over global states means: a cut's events run again, in observed order, and the
//! text is evaluated, as it is read, on what they leave behind.
//!
//! What a part can be is a first and a last number, or none if it can be anything. A truth that is not
//! known can be 0 or 1.

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::{
    AccessOp, EventId, LocalId, LockId, LockOp, Marker, Op, SiteId, ThreadId, Trace, VarId,
};

/// Whether `text` is true of `cut`, which says how many events each thread has run; none if that is
/// not known. The modality is left out.
///
/// # Panics
/// If the text is no predicate over `trace`, or is `race`.
#[must_use]
pub fn truth(text: &str, trace: &Trace, cut: &IndexVec<ThreadId, u32>) -> Option<bool> {
    let (_, tokens) = without_modality(text);
    let memory = Memory::run(trace, cut);
    match (Evaluation { memory, tokens, at: 0, bound: Vec::new() }).implication() {
        FALSE => Some(false),
        TRUE => Some(true),
        _ => None,
    }
}

/// Whether `cut` meets what is searched for.
///
/// # Panics
/// If the text is no predicate over `trace`, or is `race`.
#[must_use]
pub fn is_met(text: &str, trace: &Trace, cut: &IndexVec<ThreadId, u32>) -> bool {
    let (modality, _) = without_modality(text);
    truth(text, trace, cut) == Some(modality.as_deref() != Some("always"))
}

/// The modality of `text`, if it has one, and what it is about.
fn without_modality(text: &str) -> (Option<String>, Vec<Token>) {
    let mut tokens = tokens(text);
    match &tokens[..] {
        [Token::Name(word), Token::Symbol("("), .., Token::Symbol(")")]
            if ["possibly", "definitely", "always", "never"].contains(&word.as_str()) =>
        {
            let word = word.clone();
            tokens.pop();
            (Some(word), tokens.split_off(2))
        }
        _ => (None, tokens),
    }
}

/// A word of a predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Name(String),
    Quoted(String),
    Number(String),
    Symbol(&'static str),
}

/// The longer ones first, so that none is taken for a shorter one.
const SYMBOLS: [&str; 19] = [
    "&&", "||", "=>", "==", "!=", "<=", ">=", "<", ">", "!", "+", "-", "*", "/", "%", "(", ")",
    ",", ":",
];

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || "_$.[]".contains(c);
        let prefix = |is_in: &dyn Fn(char) -> bool| {
            rest[..rest.find(|c| !is_in(c)).unwrap_or(rest.len())].to_owned()
        };
        let (token, length) = if first == '"' || first == '`' {
            quoted(rest, first)
        } else if first.is_ascii_digit() {
            let digits = prefix(&|c| c.is_ascii_digit());
            let length = digits.len();
            (Token::Number(digits), length)
        } else if first.is_alphabetic() || "_$".contains(first) {
            let word = prefix(&is_part);
            let length = word.len();
            (Token::Name(word), length)
        } else {
            let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
            let symbol = symbol.expect("the text is a predicate");
            (Token::Symbol(symbol), symbol.len())
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// The name in quotes that `rest` starts with. In double quotes a backslash makes the next character
/// part of it.
fn quoted(rest: &str, quote: char) -> (Token, usize) {
    let mut name = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            _ if c == quote => return (Token::Quoted(name), at + 1),
            '\\' if quote == '"' => name.extend(characters.next().map(|(_, c)| c)),
            _ => name.push(c),
        }
    }
    panic!("the quotes are closed");
}

/// What something can be.
type Range = Option<(i64, i64)>;

const FALSE: Range = Some((0, 0));
const TRUE: Range = Some((1, 1));
const EITHER: Range = Some((0, 1));

/// What the events of a cut leave behind.
struct Memory<'t> {
    trace: &'t Trace,
    positions: FxHashMap<ThreadId, usize>,
    last_sites: FxHashMap<ThreadId, SiteId>,
    holds: FxHashMap<(ThreadId, LockId), i64>,
    locals: FxHashMap<(ThreadId, LocalId), Option<i64>>,
    vars: FxHashMap<VarId, Option<i64>>,
}

impl<'t> Memory<'t> {
    fn run(trace: &'t Trace, cut: &IndexVec<ThreadId, u32>) -> Self {
        let mut memory = Self {
            trace,
            positions: FxHashMap::default(),
            last_sites: FxHashMap::default(),
            holds: FxHashMap::default(),
            locals: FxHashMap::default(),
            vars: FxHashMap::default(),
        };
        for (id, event) in trace.events() {
            let position = memory.positions.entry(event.thread).or_insert(0);
            if *position >= cut.get(event.thread).map_or(0, |&count| count as usize) {
                continue;
            }
            *position += 1;
            memory.last_sites.insert(event.thread, event.site);
            memory.take_effect(id, event.thread, event.op);
        }
        memory
    }

    fn take_effect(&mut self, id: EventId, thread: ThreadId, op: Op) {
        match op {
            Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) => {
                *self.holds.entry((thread, lock)).or_insert(0) += 1;
            }
            Op::Lock(LockOp::Release | LockOp::ReleaseShared, lock) => {
                *self.holds.entry((thread, lock)).or_insert(0) -= 1;
            }
            Op::Marker(Marker::Let(local)) => {
                _ = self.locals.insert((thread, local), self.trace.value(id));
            }
            Op::Access(AccessOp::Write | AccessOp::AtomicWrite(_), var) => {
                let value = self.trace.value(id).or_else(|| self.seen(var, Some(id)));
                self.vars.insert(var, value);
            }
            Op::Access(AccessOp::AtomicUpdate(_), var) => {
                _ = self.vars.insert(var, self.seen(var, Some(id)));
            }
            Op::Access(AccessOp::Read | AccessOp::UnknownRead | AccessOp::AtomicRead(_), _)
            | Op::Fence(_)
            | Op::Lock(LockOp::Request | LockOp::RequestExclusive, _)
            | Op::Thread(..)
            | Op::Condition(..)
            | Op::Barrier(..)
            | Op::Semaphore(..)
            | Op::Object(..)
            | Op::Marker(
                Marker::Begin(_)
                | Marker::End(_)
                | Marker::Branch
                | Marker::Timed
                | Marker::Unchecked,
            ) => {}
        }
    }

    /// What the first read of `var` that saw `write`, or no write, and recorded something recorded.
    fn seen(&self, var: VarId, write: Option<EventId>) -> Option<i64> {
        let reads = self.trace.events().filter(|(id, event)| {
            matches!(event.op, Op::Access(AccessOp::Read | AccessOp::AtomicRead(_), own) if own == var)
                && self.trace.writer(*id) == write
        });
        reads.filter_map(|(id, _)| self.trace.value(id)).next()
    }

    fn is_at(&self, site: SiteId, location: &str) -> bool {
        let own = self.trace.names().location(site);
        own == location || own.starts_with(&format!("{location}:"))
    }
}

/// A predicate that is evaluated as it is read.
struct Evaluation<'t> {
    memory: Memory<'t>,
    tokens: Vec<Token>,
    at: usize,
    /// The threads that quantifiers go through, by their names.
    bound: Vec<(String, ThreadId)>,
}

impl Evaluation<'_> {
    /// Takes the next word if it is one of `symbols`.
    fn take(&mut self, symbols: &[&'static str]) -> Option<&'static str> {
        let word = match self.tokens.get(self.at)? {
            Token::Symbol(symbol) => symbol,
            Token::Name(name) => name.as_str(),
            Token::Quoted(_) | Token::Number(_) => return None,
        };
        let found = symbols.iter().copied().find(|&symbol| symbol == word);
        self.at += usize::from(found.is_some());
        found
    }

    fn expect(&mut self, symbol: &'static str) {
        assert!(self.take(&[symbol]).is_some(), "expected {symbol} at word {}", self.at);
    }

    fn implication(&mut self) -> Range {
        let left = self.row(&["||", "or"], Self::conjunction, any);
        if self.take(&["=>"]).is_none() {
            return left;
        }
        any(vec![opposite(left), self.implication()])
    }

    fn conjunction(&mut self) -> Range {
        self.row(&["&&", "and"], Self::negation, all)
    }

    /// Parts with one of `symbols` between them, `joined` if there are several.
    fn row(
        &mut self,
        symbols: &[&'static str],
        part: fn(&mut Self) -> Range,
        joined: fn(Vec<Range>) -> Range,
    ) -> Range {
        let mut parts = vec![part(self)];
        while self.take(symbols).is_some() {
            parts.push(part(self));
        }
        if parts.len() == 1 { parts[0] } else { joined(parts) }
    }

    fn negation(&mut self) -> Range {
        if self.take(&["not"]).is_some() {
            return opposite(self.negation());
        }
        let left = self.sum();
        match self.take(&["==", "!=", "<", "<=", ">", ">="]) {
            Some(symbol) => compared(symbol, left, self.sum()),
            None => left,
        }
    }

    fn sum(&mut self) -> Range {
        let first = self.product();
        let mut terms = vec![(false, first)];
        while let Some(symbol) = self.take(&["+", "-"]) {
            terms.push((symbol == "-", self.product()));
        }
        if terms.len() == 1 { first } else { added(terms) }
    }

    fn product(&mut self) -> Range {
        let mut left = self.sign();
        while let Some(symbol) = self.take(&["*", "/", "%"]) {
            left = combined(symbol, left, self.sign());
        }
        left
    }

    fn sign(&mut self) -> Range {
        match self.take(&["!", "-"]) {
            Some("!") => opposite(self.sign()),
            Some(_) => added(vec![(true, self.sign())]),
            None => self.single(),
        }
    }

    fn single(&mut self) -> Range {
        if self.take(&["("]).is_some() {
            let inner = self.implication();
            self.expect(")");
            return inner;
        }
        let token = self.tokens[self.at].clone();
        self.at += 1;
        match token {
            Token::Number(digits) => exact(digits.parse().ok()),
            Token::Quoted(name) => exact(self.variable(&name, true)),
            Token::Symbol(symbol) => panic!("{symbol} starts nothing"),
            Token::Name(word) => {
                if self.take(&["("]).is_some() {
                    return self.call(&word);
                }
                match word.as_str() {
                    "true" => TRUE,
                    "false" => FALSE,
                    "race" => panic!("a cut alone does not say whether there is a race"),
                    _ => exact(self.variable(&word, false)),
                }
            }
        }
    }

    /// What a function, whose arguments come next, gives.
    fn call(&mut self, word: &str) -> Range {
        if ["count", "sum", "exists", "all"].contains(&word) {
            let (name, _) = self.name();
            self.expect(":");
            let ranges = self.for_each_thread(&name);
            self.expect(")");
            return match word {
                "exists" => any(ranges),
                "all" => all(ranges),
                _ => added(ranges.into_iter().map(|range| (false, range)).collect()),
            };
        }
        let (name, is_quoted) = self.name();
        let thread = self.thread(&name, is_quoted);
        let argument = self.take(&[","]).map(|_| self.name().0);
        self.expect(")");
        exact(self.asked(word, thread, &argument.unwrap_or_default()))
    }

    /// What the body that comes next is for each thread, called `name`.
    fn for_each_thread(&mut self, name: &str) -> Vec<Range> {
        let body = self.at;
        let threads = self.memory.trace.names().threads.entries();
        let threads: Vec<ThreadId> = threads.map(|(thread, _)| thread).collect();
        let mut ranges = Vec::new();
        for thread in threads {
            self.at = body;
            self.bound.push((name.to_owned(), thread));
            ranges.push(self.implication());
            self.bound.pop();
        }
        if ranges.is_empty() {
            self.skip_body();
        }
        ranges
    }

    /// Moves to the bracket that closes the one around the next word.
    fn skip_body(&mut self) {
        let mut depth = 0;
        loop {
            match self.tokens[self.at] {
                Token::Symbol("(") => depth += 1,
                Token::Symbol(")") if depth == 0 => return,
                Token::Symbol(")") => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// A name of anything, and whether it is in quotes.
    fn name(&mut self) -> (String, bool) {
        let token = self.tokens[self.at].clone();
        self.at += 1;
        match token {
            Token::Name(text) | Token::Number(text) => (text, false),
            Token::Quoted(text) => (text, true),
            Token::Symbol(symbol) => panic!("{symbol} is no name"),
        }
    }

    fn thread(&self, name: &str, is_quoted: bool) -> ThreadId {
        let bound = self.bound.iter().find(|(own, _)| own == name && !is_quoted);
        let known = || self.memory.trace.names().threads.get(name);
        bound.map(|&(_, thread)| thread).or_else(known).expect("the thread is one of the trace")
    }

    fn asked(&self, function: &str, thread: ThreadId, argument: &str) -> Option<i64> {
        let Memory { trace, positions, last_sites, holds, locals, .. } = &self.memory;
        let names = trace.names();
        let events = trace.thread_events(thread);
        let position = positions.get(&thread).copied().unwrap_or(0);
        let is_at = |site| self.memory.is_at(site, argument);
        let truth = match function {
            "at" => last_sites.get(&thread).is_some_and(|&site| is_at(site)),
            "next" => events.get(position).is_some_and(|&next| is_at(trace.event(next).site)),
            "holds" => {
                let lock = names.locks.get(argument).expect("the lock is one");
                holds.get(&(thread, lock)).is_some_and(|&depth| depth > 0)
            }
            "done" => position == events.len(),
            "started" => position > 0,
            "position" => return Some(position as i64),
            "local" => {
                let local = names.locals.get(argument).expect("the local is one");
                return locals.get(&(thread, local)).copied().flatten();
            }
            _ => panic!("{function} is no function"),
        };
        Some(i64::from(truth))
    }

    fn variable(&self, name: &str, is_quoted: bool) -> Option<i64> {
        let names = self.memory.trace.names();
        let var = names.vars.get(name);
        for (at, _) in name.match_indices('.') {
            let (owner, local) = (&name[..at], &name[at + 1..]);
            let bound = self.bound.iter().find(|(own, _)| own == owner).map(|&(_, thread)| thread);
            // The name of a variable is that of a local only if the thread is one gone through.
            let thread = match var {
                None => bound.or_else(|| names.threads.get(owner)),
                Some(_) => bound,
            };
            if !is_quoted
                && let Some(thread) = thread
                && let Some(local) = names.locals.get(local)
            {
                return self.memory.locals.get(&(thread, local)).copied().flatten();
            }
        }
        let var = var.expect("the variable is one");
        match self.memory.vars.get(&var) {
            Some(value) => *value,
            None => self.memory.seen(var, None),
        }
    }
}

fn exact(value: Option<i64>) -> Range {
    value.map(|value| (value, value))
}

fn opposite(truth: Range) -> Range {
    match truth {
        FALSE => TRUE,
        TRUE => FALSE,
        _ => EITHER,
    }
}

/// Kleene's conjunction: false below unknown below true.
fn all(truths: Vec<Range>) -> Range {
    const RANKS: [Range; 3] = [FALSE, EITHER, TRUE];
    let rank = |truth| RANKS.iter().position(|own| *own == truth).expect("a truth is one of three");
    RANKS[truths.into_iter().map(rank).min().unwrap_or(2)]
}

fn any(truths: Vec<Range>) -> Range {
    opposite(all(truths.into_iter().map(opposite).collect()))
}

/// Each with whether it is taken away.
fn added(terms: Vec<(bool, Range)>) -> Range {
    let (mut first, mut last) = (0_i128, 0_i128);
    for (is_negative, range) in terms {
        let (low, high) = range?;
        first += if is_negative { -i128::from(high) } else { low.into() };
        last += if is_negative { -i128::from(low) } else { high.into() };
    }
    first.try_into().ok().zip(last.try_into().ok())
}

/// True or false if the first and last numbers of both compare alike, and for equality if there are
/// no others.
fn compared(comparison: &str, left: Range, right: Range) -> Range {
    let (Some(left), Some(right)) = (left, right) else { return EITHER };
    let overlap = left.0 <= right.1 && right.0 <= left.1;
    let is_exact = left.0 == left.1 && right.0 == right.1;
    if overlap && !is_exact && matches!(comparison, "==" | "!=") {
        return EITHER;
    }
    let holds = |one: i64, other: i64| match comparison {
        "==" => one == other,
        "!=" => one != other,
        "<" => one < other,
        "<=" => one <= other,
        ">" => one > other,
        _ => one >= other,
    };
    match [(left.0, right.1), (left.1, right.0)].map(|(one, other)| holds(one, other)) {
        [true, true] => TRUE,
        [false, false] => FALSE,
        [true, false] | [false, true] => EITHER,
    }
}

/// Quotients and remainders are known only of what is known exactly, or, rounded towards zero, by it.
fn combined(operator: &str, left: Range, right: Range) -> Range {
    let ((first, last), (low, high)) = (left?, right?);
    let is_known = match operator {
        "*" => true,
        "/" => low == high,
        _ => first == last && low == high,
    };
    if !is_known {
        return None;
    }
    let results = [(first, low), (first, high), (last, low), (last, high)].map(
        |(left, right): (i64, i64)| match operator {
            "*" => left.checked_mul(right),
            "/" => left.checked_div(right),
            _ => left.checked_rem(right),
        },
    );
    let results: Option<Vec<i64>> = results.into_iter().collect();
    results.map(|results| {
        let ends = (results.iter().min(), results.iter().max());
        (*ends.0.expect("there are four"), *ends.1.expect("there are four"))
    })
}
