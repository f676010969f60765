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

mod braces;
mod expressions;
mod hints;
mod items;
mod statements;

use reweave_base::IndexVec;

use crate::diagnostic::{Diagnostic, quoted};
use crate::lexer::{Token, TokenKind};
use crate::source::{Source, Span};
use crate::syntax::{Block, Node, NodeId, Statement, Syntax};

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
        if self.kind() == kind {
            return Ok(self.bump());
        }
        let help = self.operator_word();
        let expected = quoted(kind.spelling().unwrap_or("a token"));
        Err(self.unexpected_with(&expected, context, help))
    }

    /// What to write for a word that other languages have as an operator.
    fn operator_word(&self) -> Option<&'static str> {
        let before = self.source.slice(self.previous());
        let here = (self.kind() == TokenKind::Name).then(|| self.text());
        here.and_then(hints::of_operator_word).or_else(|| hints::of_sign_word(before))
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
        let help = help.or_else(|| hints::instead_of_semicolon(self.kind()));
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
        if !hints::starts_statement(self.kind()) {
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
                    if hints::starts_statement(kind) {
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
