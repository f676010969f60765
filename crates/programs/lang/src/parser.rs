//! From tokens to a syntax tree, by recursive descent.
//!
//! A fault is reported where it is seen, with what was expected and what was found; the parser then
//! goes on behind the statement, or as if a forgotten mark were there, so that one run shows
//! several faults. A second report at the same place, or right behind it, is taken for a
//! consequence of the first and left out. The tree is good for nothing but its layout if there was
//! any report.
//!
//! Blocks, parentheses and signs nest to [`DEPTH_MAX`] and no further, which bounds the recursion
//! here and wherever blocks are gone through. Chains of operators are of any length.

mod statements;

use reweave_base::IndexVec;

use crate::diagnostic::{Diagnostic, quoted, short};
use crate::lexer::{Magnitude, Token, TokenKind, magnitude};
use crate::source::{Source, Span};
use crate::syntax::{Block, Item, Length, Node, NodeId, Statement, Syntax};

/// How deep blocks, parentheses and signs nest.
const DEPTH_MAX: u32 = 128;

/// The syntax tree of `tokens`, and what is wrong with them.
pub(crate) fn parse(source: &Source, tokens: &[Token]) -> (Syntax, Vec<Diagnostic>) {
    let mut parser = Parser {
        source,
        tokens,
        at: 0,
        depth: 0,
        quiet_until: 0,
        diagnostics: Vec::new(),
        nodes: IndexVec::new(),
    };
    let items = parser.items();
    (Syntax { items, nodes: parser.nodes }, parser.diagnostics)
}

/// What was to be parsed is not there, and that has been said.
#[derive(Debug)]
struct Reported;

type Parsed<T> = Result<T, Reported>;

struct Parser<'s> {
    source: &'s Source,
    /// The last is the end, and nothing is taken behind it.
    tokens: &'s [Token],
    /// The token to look at.
    at: usize,
    /// How many blocks, parentheses and signs are open.
    depth: u32,
    /// Faults at tokens before this one are consequences of one that was reported.
    quiet_until: usize,
    diagnostics: Vec<Diagnostic>,
    nodes: IndexVec<NodeId, Node>,
}

/// Looking and taking.
impl Parser<'_> {
    fn token(&self, ahead: usize) -> Token {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    fn kind(&self) -> TokenKind {
        self.token(0).kind
    }

    fn next_kind(&self) -> TokenKind {
        self.token(1).kind
    }

    fn span(&self) -> Span {
        self.token(0).span
    }

    fn text(&self) -> &str {
        self.source.slice(self.span())
    }

    /// Where the token before stands.
    fn previous(&self) -> Span {
        self.at.checked_sub(1).map_or(Span::default(), |before| self.tokens[before].span)
    }

    /// The place right behind the token before.
    fn gap(&self) -> Span {
        let end = self.previous().end;
        Span::new(end, end)
    }

    fn bump(&mut self) -> Span {
        let span = self.span();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        span
    }

    fn eat(&mut self, kind: TokenKind) -> bool {
        let is_there = self.kind() == kind;
        if is_there {
            self.bump();
        }
        is_there
    }

    /// Whether two marks stand together, as in `+=`, which is no token of the language.
    fn is_joined(&self, first: TokenKind, second: TokenKind) -> bool {
        let (one, two) = (self.token(0), self.token(1));
        one.kind == first && two.kind == second && one.span.end == two.span.start
    }

    /// Whether the token to look at is the first of its line.
    fn starts_line(&self) -> bool {
        let before = self.previous().end as usize;
        self.source.text()[before..self.span().start as usize].contains('\n')
    }

    /// Whether a declaration starts here.
    fn is_item(&self) -> bool {
        match self.kind() {
            TokenKind::Shared
            | TokenKind::Cond
            | TokenKind::Focus
            | TokenKind::Fn
            | TokenKind::Thread
            | TokenKind::Main => true,
            TokenKind::Lock => self.next_kind() == TokenKind::Name,
            _ => false,
        }
    }

    /// Whether the token to look at stands at the very start of its line.
    fn is_outdented(&self) -> bool {
        let start = self.span().start as usize;
        start == 0 || self.source.text().as_bytes()[start - 1] == b'\n'
    }
}

/// Saying what is wrong.
impl Parser<'_> {
    /// What the token to look at is, for a message.
    fn found(&self) -> String {
        match self.kind() {
            TokenKind::End => "the end of the file".into(),
            _ => quoted(self.text()),
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        // The lexer has said what is wrong with an invalid token, and what brings one more argument
        // is wrong because of it.
        let is_invalid = self.kind() == TokenKind::Invalid
            || self.kind() == TokenKind::Comma && self.next_kind() == TokenKind::Invalid;
        let is_known = is_invalid || self.at < self.quiet_until;
        if !is_known {
            self.diagnostics.push(diagnostic);
        }
        self.quiet_until = self.at + 2;
        Reported
    }

    /// Goes on as if the mark that was missing here were there.
    fn assume_mark(&mut self) -> Span {
        self.quiet_until = self.at + 1;
        self.previous()
    }

    /// The token to look at is not `expected`, which was to stand where `context` says.
    fn unexpected(&mut self, expected: &str, context: &str) -> Reported {
        self.unexpected_with(expected, context, None)
    }

    fn unexpected_with(&mut self, expected: &str, context: &str, help: Option<&str>) -> Reported {
        let space = if context.is_empty() { "" } else { " " };
        let message = format!("expected {expected}{space}{context}, found {}", self.found());
        let mut error = Diagnostic::error(self.span(), message, format!("expected {expected}"));
        error.help = help.map(Into::into);
        self.report(error)
    }

    /// Takes a mark or word that must stand here.
    fn expect(&mut self, kind: TokenKind, context: &str) -> Parsed<Span> {
        let help = self.operator_word();
        self.expect_with(kind, context, help)
    }

    fn expect_with(&mut self, kind: TokenKind, context: &str, help: Option<&str>) -> Parsed<Span> {
        if self.kind() == kind {
            return Ok(self.bump());
        }
        let expected = quoted(kind.spelling().unwrap_or("a token"));
        Err(self.unexpected_with(&expected, context, help))
    }

    /// What to write for a word that other languages have as an operator.
    fn operator_word(&self) -> Option<&'static str> {
        let before = self.source.slice(self.previous());
        let here = (self.kind() == TokenKind::Name).then(|| self.text());
        here.and_then(of_operator_word).or_else(|| of_sign_word(before))
    }

    /// Takes a closing mark. Where a block or the end of the statement follows instead, it counts
    /// as taken.
    fn close(&mut self, kind: TokenKind, context: &str) -> Parsed<Span> {
        match self.expect(kind, context) {
            Err(Reported) if matches!(self.kind(), TokenKind::LeftBrace | TokenKind::Semicolon) => {
                Ok(self.assume_mark())
            }
            other => other,
        }
    }

    /// Takes the `;` behind `what`; where it is missing before a new line, it counts as taken.
    fn semicolon(&mut self, what: &str) -> Parsed<Span> {
        self.semicolon_with(what, None)
    }

    fn semicolon_with(&mut self, what: &str, help: Option<&str>) -> Parsed<Span> {
        if self.kind() == TokenKind::Semicolon {
            return Ok(self.bump());
        }
        let message = format!("expected `;` after {what}, found {}", self.found());
        let mut error = Diagnostic::error(self.gap(), message, "expected `;`");
        let help = help.or_else(|| instead_of_semicolon(self.kind()));
        error.help = help.or_else(|| self.operator_word()).map(Into::into);
        let is_invalid = self.kind() == TokenKind::Invalid;
        let reported = self.report(error);
        let is_end = matches!(self.kind(), TokenKind::RightBrace | TokenKind::End);
        if !is_invalid && (is_end || self.starts_line()) {
            Ok(self.assume_mark())
        } else {
            Err(reported)
        }
    }

    /// Takes the name of `what`.
    fn name(&mut self, what: &str, context: &str) -> Parsed<Span> {
        if self.kind() == TokenKind::Name {
            return Ok(self.bump());
        }
        if !self.kind().is_word() {
            return Err(self.unexpected(&format!("the name of {what}"), context));
        }
        let message = format!("{} is a word of the language and cannot be a name", self.found());
        let label = format!("expected the name of {what}");
        self.report(Diagnostic::error(self.span(), message, label));
        Ok(self.bump())
    }

    /// Parses what may nest, unless it nests too deep.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH_MAX {
            let message = format!("this nests too deep: more than {DEPTH_MAX} levels");
            let label = format!("level {}", DEPTH_MAX + 1);
            let error = Diagnostic::error(self.span(), message, label);
            return Err(self.report(error.help("move the inner part to a function")));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }
}

/// Blocks, and going on behind a fault.
impl Parser<'_> {
    /// A block, where `context` says.
    fn block(&mut self, context: &str) -> Parsed<Block> {
        if self.kind() == TokenKind::LeftBrace {
            return self.nested(Self::block_inside);
        }
        let help = match self.kind() {
            TokenKind::Semicolon => "a body is a block, also an empty one: `{}`",
            _ => "a body is a block: put `{` and `}` around it",
        };
        let reported = self.unexpected_with("`{`", context, Some(help));
        if !starts_statement(self.kind()) {
            return Err(reported);
        }
        // What stands there is most likely the body.
        let start = self.at;
        match self.nested(Self::statement) {
            Ok(statement) => Ok(Block { span: statement.span, statements: vec![statement] }),
            Err(Reported) => {
                self.recover(start);
                Ok(Block { span: self.previous(), statements: Vec::new() })
            }
        }
    }

    fn block_inside(&mut self) -> Parsed<Block> {
        let open = self.bump();
        let statements = self.statements(open)?;
        Ok(Block { span: open.to(self.bump()), statements })
    }

    /// Statements up to a `}`, which stays.
    fn statements(&mut self, open: Span) -> Parsed<Vec<Statement>> {
        let mut statements = Vec::new();
        loop {
            let start = self.at;
            match self.kind() {
                TokenKind::RightBrace => return Ok(statements),
                TokenKind::End => return Err(self.unclosed(open)),
                _ if self.is_item() && self.is_outdented() => return Err(self.unclosed(open)),
                _ => match self.statement() {
                    Ok(statement) => statements.push(statement),
                    Err(Reported) => self.recover(start),
                },
            }
        }
    }

    /// Goes on behind the statement that started at token `start` and has a fault.
    fn recover(&mut self, start: usize) {
        loop {
            match self.kind() {
                TokenKind::End | TokenKind::RightBrace => return,
                TokenKind::Semicolon => {
                    self.bump();
                    return;
                }
                TokenKind::LeftBrace => return self.recover_block(start),
                _ if self.is_item() && self.is_outdented() => return,
                kind if self.at > start && kind.is_word() && self.starts_line() => {
                    if starts_statement(kind) {
                        return;
                    }
                    self.bump();
                }
                _ => {
                    self.bump();
                }
            }
        }
    }

    /// Goes through a block for its own faults, in a statement that started at token `start`.
    fn recover_block(&mut self, start: usize) {
        if self.nested(Self::block_inside).is_err() {
            self.skip_braces();
        }
        self.eat(TokenKind::Semicolon);
        let is_do = self.source.slice(self.tokens[start].span) == "do";
        if is_do && self.eat(TokenKind::While) && self.eat(TokenKind::LeftParen) {
            self.skip_parentheses();
            self.eat(TokenKind::Semicolon);
        }
        while self.eat(TokenKind::Else) {
            let rest = match self.kind() {
                TokenKind::If => self.nested(Self::statement).map(drop),
                _ => self.block("after `else`").map(drop),
            };
            if rest.is_err() {
                return;
            }
        }
    }

    /// Goes behind the `}` of the `{` here, if there is one, without looking at what is between.
    fn skip_braces(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.kind() {
                TokenKind::LeftBrace => depth += 1,
                TokenKind::RightBrace => depth = depth.saturating_sub(1),
                TokenKind::End => return,
                _ => {}
            }
            if depth == 0 {
                self.eat(TokenKind::RightBrace);
                return;
            }
            self.bump();
        }
    }

    /// Goes behind the `)` that closes the parenthesis that is open, or before the next brace.
    fn skip_parentheses(&mut self) {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.kind() {
                TokenKind::LeftParen => depth += 1,
                TokenKind::RightParen => depth -= 1,
                TokenKind::LeftBrace | TokenKind::RightBrace | TokenKind::End => return,
                _ => {}
            }
            self.bump();
        }
    }
}

// Which `{` is not closed.
//
// At the end of a text the outermost `{` is the one without a `}`, but the one that was forgotten
// may be any inside of it. Indentation tells them apart: a `}` that is the first of its line and
// stands left of the line of its `{` was meant for a block further out. Time is linear in the
// stretch of the text that is looked through.

/// A `{` that is probably not closed, and the `}` that was meant for another.
struct Suspicion {
    open: Span,
    close: Span,
}

impl Parser<'_> {
    /// The block that starts at `open` does not end before the token to look at.
    fn unclosed(&mut self, open: Span) -> Reported {
        let message = format!("expected `}}`, found {}", self.found());
        let error = Diagnostic::error(self.span(), message, "expected `}`");
        // A block around another unclosed one would look through the same text again.
        if self.at < self.quiet_until {
            return self.report(error);
        }
        let error = match self.suspicion(open) {
            Some(Suspicion { open, close }) => error
                .and(open, "this `{` is probably not closed")
                .and(close, "this `}` stands left of the line of that `{`"),
            None => error.and(open, "this `{` is not closed"),
        };
        self.report(error)
    }

    /// The first `}` behind `open` that was meant for another `{` than the one it closes.
    fn suspicion(&self, open: Span) -> Option<Suspicion> {
        let first = self.tokens.partition_point(|token| token.span.start < open.start);
        let mut end = self.source.line_start(open.start);
        // How far the first token of the line is from its start.
        let mut indentation = self.indentation(open);
        // Those that are open, each with the indentation of its line.
        let mut opened: Vec<(Span, u32)> = Vec::new();
        for token in &self.tokens[first..self.at] {
            let span = token.span;
            let between = self.source.slice(Span::new(end, span.start));
            let is_first = between.contains('\n');
            if is_first {
                indentation = span.start - self.source.line_start(span.start);
            }
            end = span.end;
            match token.kind {
                TokenKind::LeftBrace => opened.push((span, indentation)),
                TokenKind::RightBrace => {
                    let (open, inner) = opened.pop()?;
                    if is_first && indentation < inner {
                        return Some(Suspicion { open, close: span });
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// How many spaces and tabs the line of `span` starts with.
    fn indentation(&self, span: Span) -> u32 {
        let start = self.source.line_start(span.start);
        let line = self.source.slice(Span::new(start, span.start));
        (line.len() - line.trim_start().len()) as u32
    }
}

// What people who know other languages write, and what to write instead.

/// Whether a statement can start with `kind`: a name, or a word but for these.
fn starts_statement(kind: TokenKind) -> bool {
    let starts_nothing = matches!(
        kind,
        TokenKind::Shared
            | TokenKind::Cond
            | TokenKind::Focus
            | TokenKind::Fn
            | TokenKind::Thread
            | TokenKind::Main
            | TokenKind::Else
            | TokenKind::In
            | TokenKind::Cas
            | TokenKind::FetchAdd
            | TokenKind::Fork
    );
    kind == TokenKind::Name || kind.is_word() && !starts_nothing
}

/// Types, and words before them, elsewhere.
const TYPES: [&str; 22] = [
    "int", "long", "short", "char", "unsigned", "signed", "bool", "float", "double", "size_t",
    "void", "i32", "i64", "u32", "u64", "usize", "auto", "var", "const", "static", "volatile",
    "local",
];

/// For a name that a statement starts with and that another name or a block follows.
fn of_statement_name(name: &str) -> Option<&'static str> {
    match name {
        "do" | "loop" | "repeat" | "forever" | "until" => {
            Some("loops are `while (…) { … }` and `for (i in a..b) { … }`")
        }
        "switch" | "match" | "case" => Some("use `if (…) { … } else if (…) { … }`"),
        "elif" | "elsif" | "elseif" | "elseIf" => Some("write `else if`"),
        "synchronized" | "with" => Some("write `sync (m) { … }`"),
        _ if is_fork(name) => Some("write `let t = fork { … };`"),
        "mutex" | "Mutex" => Some("a lock is declared outside of blocks: `lock m;`"),
        "parallel" | "cobeg" => Some("write `cobegin { { … } { … } }`"),
        "foreach" => Some("write `for (i in a..b) { … }`, or `coforeach` for a thread each"),
        "goto" => Some("there is no `goto`"),
        "unless" => Some("write `if (!(…))`"),
        "mut" => Some("every local may be assigned again; leave out `mut`"),
        _ if TYPES.contains(&name) => Some("a local is declared by `let`: `let x = 0;`"),
        _ => None,
    }
}

/// For a name where a declaration should start.
fn of_top_level_name(name: &str) -> Option<&'static str> {
    match name {
        "func" | "function" | "def" | "proc" => Some("a function starts with `fn`"),
        "include" | "import" | "use" => Some("a program is one file"),
        _ => match declaring_word(name)? {
            "lock" => Some("a mutex is declared by `lock m;`"),
            "cond" => Some("a condition is declared by `cond c;`"),
            _ => Some("a global is declared by `shared x = 0;`, a function by `fn f(a, b) { … }`"),
        },
    }
}

/// The word that declares what `name` declares elsewhere.
fn declaring_word(name: &str) -> Option<&'static str> {
    match name {
        "mutex" | "Mutex" | "Lock" | "pthread_mutex_t" => Some("lock"),
        "condition" | "condvar" | "Condition" | "pthread_cond_t" => Some("cond"),
        "global" => Some("shared"),
        _ => TYPES.contains(&name).then_some("shared"),
    }
}

/// Whether `name` starts a thread elsewhere.
fn is_fork(name: &str) -> bool {
    matches!(name, "spawn" | "async" | "go" | "launch")
}

/// For a name behind a value that is an operator elsewhere.
fn of_operator_word(name: &str) -> Option<&'static str> {
    match name {
        "and" | "AND" => Some("write `&&`"),
        "or" | "OR" => Some("write `||`"),
        "xor" => Some("write `^`"),
        "mod" | "rem" => Some("write `%`"),
        "div" => Some("write `/`"),
        "is" | "eq" | "equals" => Some("write `==`"),
        "shl" => Some("write `<<`"),
        "shr" => Some("write `>>`"),
        "then" => Some("leave out `then`; a block follows the condition"),
        _ => None,
    }
}

/// For a name before a value that is a sign elsewhere.
fn of_sign_word(name: &str) -> Option<&'static str> {
    matches!(name, "not" | "NOT").then_some("write `!`")
}

/// For `kind` where a `;` should be.
const fn instead_of_semicolon(kind: TokenKind) -> Option<&'static str> {
    match kind {
        TokenKind::Assign => Some("an assignment has no value: assign twice"),
        TokenKind::Comma => Some("there is no comma operator: one statement, one `;`"),
        TokenKind::Dots | TokenKind::DotsEqual => {
            Some("ranges stand in `for (i in a..b)` and `coforeach (i in a..b)` only")
        }
        TokenKind::RightParen => Some("this `)` has no `(`"),
        TokenKind::RightBracket => Some("this `]` has no `[`"),
        TokenKind::Not => Some("`!` stands before a value; to say unequal, write `!=`"),
        _ => None,
    }
}

/// For `kind`, behind `before`, where a value should start.
const fn instead_of_value(before: Option<TokenKind>, kind: TokenKind) -> Option<&'static str> {
    match (before, kind) {
        (Some(TokenKind::Plus), TokenKind::Plus) => Some("there is no `++`; write `x = x + 1;`"),
        (Some(TokenKind::Minus), TokenKind::Greater) => Some("there are no pointers and no fields"),
        (Some(TokenKind::Less), TokenKind::Greater) => Some("to say unequal, write `!=`"),
        (Some(TokenKind::Equal | TokenKind::NotEqual), TokenKind::Assign) => {
            Some("write `==` or `!=`")
        }
        (_, TokenKind::Plus) => Some("there is no sign `+`; leave it out"),
        (_, TokenKind::And) => Some("there are no addresses"),
        (_, TokenKind::Star) => {
            Some("there are no pointers; a free choice is written `if (*) { … }`")
        }
        (_, TokenKind::LeftBrace) => Some("a value is an integer; there are no lists"),
        _ => None,
    }
}

// Declarations.

impl Parser<'_> {
    /// All declarations up to the end.
    fn items(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        while self.kind() != TokenKind::End {
            let start = self.at;
            match self.item() {
                Ok(item) => items.push(item),
                Err(Reported) => self.recover_item(start),
            }
        }
        items
    }

    fn item(&mut self) -> Parsed<Item> {
        match self.kind() {
            TokenKind::Fn | TokenKind::Name if self.next_kind() == TokenKind::Main => {
                self.main_as_function()
            }
            TokenKind::Shared => self.shared(),
            TokenKind::Lock if self.next_kind() != TokenKind::LeftParen => self.lock_item(),
            TokenKind::Cond => self.condition_item(),
            TokenKind::Focus => self.focus(),
            TokenKind::Fn => self.function(),
            TokenKind::Thread => self.thread(),
            TokenKind::Main => self.main(),
            _ => Err(self.no_item()),
        }
    }

    /// Goes on at the next declaration after a fault in the one that started at token `start`.
    fn recover_item(&mut self, start: usize) {
        loop {
            match self.kind() {
                TokenKind::End => return,
                TokenKind::Semicolon | TokenKind::RightBrace => {
                    self.bump();
                    return;
                }
                TokenKind::LeftBrace => return self.recover_block(start),
                _ if self.at > start && self.is_item() => return,
                _ => {
                    self.bump();
                }
            }
        }
    }

    fn no_item(&mut self) -> Reported {
        if self.kind() == TokenKind::RightBrace {
            let error = Diagnostic::error(self.span(), "unexpected `}`", "no `{` is open here");
            return self.report(error);
        }
        let is_call = self.next_kind() == TokenKind::LeftParen;
        let foreign = self.foreign_declaration();
        let help = match self.kind() {
            _ if foreign.is_some() => foreign.as_deref(),
            TokenKind::Name if is_call => Some("a function starts with `fn`"),
            TokenKind::Name => of_top_level_name(self.text())
                .or(Some("statements stand inside `main`, a `thread` or a `fn`")),
            TokenKind::Let => Some("a global is declared by `shared x = 0;`"),
            kind if kind.is_word() => Some("statements stand inside `main`, a `thread` or a `fn`"),
            _ => Some("`shared`, `lock`, `cond`, `focus`, `fn`, `thread` and `main` start one"),
        };
        self.unexpected_with("a declaration", "", help)
    }

    /// What to write for a declaration of another language, such as `int x;`.
    fn foreign_declaration(&self) -> Option<String> {
        let is_name = |ahead| self.token(ahead).kind == TokenKind::Name;
        let word = is_name(0).then(|| declaring_word(self.text()))??;
        // As in `unsigned int x;`.
        let words = (1..4).take_while(|&ahead| is_name(ahead)).count();
        let name = (words > 0).then(|| short(self.source.slice(self.token(words).span)))?;
        Some(match self.token(words + 1).kind {
            TokenKind::LeftParen => format!("write `fn {name}(…) {{ … }}`"),
            TokenKind::LeftBracket => format!("write `{word} {name}[…];`"),
            TokenKind::Assign if word == "shared" => format!("write `shared {name} = …;`"),
            _ => format!("write `{word} {name};`"),
        })
    }

    fn shared(&mut self) -> Parsed<Item> {
        self.bump();
        let name = self.name("a shared variable", "after `shared`")?;
        let length = self.length()?;
        let mut initial = None;
        if self.eat(TokenKind::Assign) {
            if self.kind() == TokenKind::LeftBrace {
                let help = "all elements of an array start with the same number";
                self.unexpected_with("a number", "after `=`", Some(help));
                self.skip_braces();
            } else {
                initial = Some(self.value()?);
            }
        }
        self.end_of_declaration("shared")?;
        Ok(Item::Shared { name, length, initial })
    }

    fn lock_item(&mut self) -> Parsed<Item> {
        self.bump();
        let name = self.name("a lock", "after `lock`")?;
        let length = self.length()?;
        if self.kind() == TokenKind::Assign {
            let error = Diagnostic::error(
                self.span(),
                "a lock has no value",
                "expected `;` after the declaration",
            );
            return Err(self.report(error.help("every lock is free at the start")));
        }
        self.end_of_declaration("lock")?;
        Ok(Item::Lock { name, length })
    }

    fn condition_item(&mut self) -> Parsed<Item> {
        self.bump();
        let name = self.name("a condition", "after `cond`")?;
        if self.kind() == TokenKind::LeftBracket {
            let error = Diagnostic::error(
                self.span(),
                "there are no arrays of conditions",
                "expected `;` after the declaration",
            );
            return Err(self.report(error));
        }
        self.end_of_declaration("cond")?;
        Ok(Item::Condition { name })
    }

    fn focus(&mut self) -> Parsed<Item> {
        self.bump();
        let mut names = vec![self.name("a shared variable", "after `focus`")?];
        while self.eat(TokenKind::Comma) {
            names.push(self.name("a shared variable", "after `,`")?);
        }
        let help = match self.kind() {
            TokenKind::LeftBracket => Some("an array is in focus as a whole"),
            _ => None,
        };
        self.semicolon_with("the names in focus", help)?;
        Ok(Item::Focus { names })
    }

    /// The `;` of a declaration that starts with `word`.
    fn end_of_declaration(&mut self, word: &str) -> Parsed<Span> {
        let help = match self.kind() {
            TokenKind::Comma => Some(format!("declare each by itself: `{word} …; {word} …;`")),
            TokenKind::LeftBracket => Some("arrays have one dimension".into()),
            _ => None,
        };
        self.semicolon_with("the declaration", help.as_deref())
    }

    /// The length of an array, where there is one.
    fn length(&mut self) -> Parsed<Option<Length>> {
        if !self.eat(TokenKind::LeftBracket) {
            return Ok(None);
        }
        let span = self.span();
        let value = match self.kind() {
            TokenKind::Number => magnitude(self.text()),
            _ => {
                let help = "the length of an array is a number, such as `[8]`";
                return Err(self.unexpected_with("the length", "after `[`", Some(help)));
            }
        };
        self.bump();
        let help = "the length of an array is one number; work out the result";
        self.expect_with(TokenKind::RightBracket, "after the length", Some(help))?;
        let value = if let Magnitude::Is(value) = value { value } else { u64::MAX };
        Ok(Some(Length { value, span }))
    }

    fn function(&mut self) -> Parsed<Item> {
        self.bump();
        let name = self.name("a function", "after `fn`")?;
        if self.kind() == TokenKind::LeftBrace {
            let help = "a function without parameters has `()` after its name";
            self.unexpected_with("`(`", "after the name of the function", Some(help));
            let body = self.block("after the name of the function")?;
            return Ok(Item::Function { name, parameters: Vec::new(), body });
        }
        self.expect(TokenKind::LeftParen, "after the name of the function")?;
        let parameters = self.parameters()?;
        self.no_type();
        let body = self.block("after the parameters")?;
        Ok(Item::Function { name, parameters, body })
    }

    /// Says that the result of a function has no type, where one is written.
    fn no_type(&mut self) {
        if !self.is_joined(TokenKind::Minus, TokenKind::Greater) {
            return;
        }
        let arrow = self.span().to(self.token(1).span);
        let message = "expected `{` after the parameters, found `->`";
        let error = Diagnostic::error(arrow, message, "expected `{`");
        self.report(error.help("every function returns an integer; write no type"));
        while !matches!(self.kind(), TokenKind::LeftBrace | TokenKind::End) {
            self.bump();
        }
    }

    /// The names up to a `)`, which is taken.
    fn parameters(&mut self) -> Parsed<Vec<Span>> {
        let mut parameters = Vec::new();
        if self.eat(TokenKind::RightParen) {
            return Ok(parameters);
        }
        loop {
            let is_typed = self.next_kind() == TokenKind::Name
                && (self.kind() == TokenKind::Name || self.kind() == TokenKind::Let);
            if is_typed {
                let message = format!("a parameter is a name only, found {}", self.found());
                let error = Diagnostic::error(self.span(), message, "leave this out");
                self.report(error.help("every parameter is an integer"));
                self.bump();
            }
            parameters.push(self.name("a parameter", "in the parentheses")?);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.close(TokenKind::RightParen, "after the parameters")?;
        Ok(parameters)
    }

    fn thread(&mut self) -> Parsed<Item> {
        let word = self.bump();
        if self.kind() == TokenKind::LeftBrace {
            let help = "a thread has a name: `thread first { … }`";
            self.unexpected_with("the name of a thread", "after `thread`", Some(help));
            let body = self.block("after `thread`")?;
            return Ok(Item::Thread { name: word, body });
        }
        let name = self.name("a thread", "after `thread`")?;
        self.no_parameters("thread");
        let body = self.block("after the name of the thread")?;
        Ok(Item::Thread { name, body })
    }

    /// `fn main()` and `int main()`.
    fn main_as_function(&mut self) -> Parsed<Item> {
        let error = Diagnostic::error(self.span(), "`main` is no function", "leave this out");
        self.report(error.help("write `main { … }`"));
        self.bump();
        // The parentheses are part of the same mistake.
        self.quiet_until = self.at + 2;
        self.main()
    }

    fn main(&mut self) -> Parsed<Item> {
        let word = self.bump();
        if self.kind() == TokenKind::Name {
            let message = format!("`main` has no name, found {}", self.found());
            self.report(Diagnostic::error(self.span(), message, "leave this out"));
            self.bump();
        }
        self.no_parameters("main");
        self.no_type();
        let body = self.block("after `main`")?;
        Ok(Item::Main { word, body })
    }

    /// Says that `word` takes no parameters, where there are some.
    fn no_parameters(&mut self, word: &str) {
        if self.kind() != TokenKind::LeftParen {
            return;
        }
        let message = format!("expected `{{`, found {}", quoted("("));
        let error = Diagnostic::error(self.span(), message, "expected `{`");
        self.report(error.help(format!("`{word}` has no parameters; leave out `()`")));
        self.bump();
        self.skip_parentheses();
        // So is a type behind them.
        self.quiet_until = self.quiet_until.max(self.at + 1);
    }
}
