//! Statements and expressions.

use reweave_base::Id as _;
use reweave_trace::{Binary, Unary};

use crate::diagnostic::{Diagnostic, quoted, short};
use crate::lexer::{Magnitude, TokenKind, magnitude, too_large};
use crate::parser::{Parsed, Parser, Reported, instead_of_value, is_fork, of_statement_name};
use crate::source::Span;
use crate::syntax::{Block, Node, NodeId, NodeKind, Place, Range, Statement, StatementKind, Value};

impl Parser<'_> {
    pub(super) fn statement(&mut self) -> Parsed<Statement> {
        let first = self.span();
        let kind = self.statement_kind()?;
        Ok(Statement { span: first.to(self.previous()), kind })
    }

    fn statement_kind(&mut self) -> Parsed<StatementKind> {
        match self.kind() {
            TokenKind::Name => self.named(),
            TokenKind::Let => self.local(),
            TokenKind::If => self.choice(),
            TokenKind::While => self.repetition(),
            TokenKind::For => self.counted("for"),
            TokenKind::Coforeach => self.counted("coforeach"),
            TokenKind::Cobegin => self.threads(),
            TokenKind::Atomic => self.atomic(),
            TokenKind::Expect => self.expectation(),
            TokenKind::Sync => self.sync(),
            TokenKind::Lock if self.is_item() => Err(self.item_inside()),
            TokenKind::Lock => self.on_lock("lock", StatementKind::Lock),
            TokenKind::Unlock => self.on_lock("unlock", StatementKind::Unlock),
            TokenKind::Wait => self.wait(),
            TokenKind::Notify => self.on_name("notify", "a condition", StatementKind::Notify),
            TokenKind::NotifyAll => {
                self.on_name("notifyall", "a condition", StatementKind::NotifyAll)
            }
            TokenKind::Join => self.on_name("join", "a thread", StatementKind::Join),
            TokenKind::Assert => self.on_value("assert", StatementKind::Assert),
            TokenKind::Assume => self.on_value("assume", StatementKind::Assume),
            TokenKind::Skip => self.alone("skip", StatementKind::Skip),
            TokenKind::Break => self.alone("break", StatementKind::Break),
            TokenKind::Continue => self.alone("continue", StatementKind::Continue),
            TokenKind::Return => self.return_statement(),
            _ if self.is_item() => Err(self.item_inside()),
            _ => Err(self.no_statement()),
        }
    }

    /// A statement that starts with a name: an assignment or a call.
    fn named(&mut self) -> Parsed<StatementKind> {
        if self.next_kind() == TokenKind::LeftParen {
            return self.call_statement();
        }
        if self.is_foreign_fork() {
            self.foreign_fork("t");
            self.bump();
            self.block("")?;
            self.eat(TokenKind::Semicolon);
            return Ok(StatementKind::Skip);
        }
        let help = of_statement_name(self.text());
        let name = short(self.text());
        let place = self.place("a variable", "")?;
        let shown = quoted(self.source.slice(place.span));
        match self.kind() {
            TokenKind::Assign => {}
            TokenKind::Equal => {
                let help = "to assign, write `=`";
                return Err(self.unexpected_with("`=`", &format!("after {shown}"), Some(help)));
            }
            kind if self.is_joined(kind, TokenKind::Assign) => {
                return Err(self.compound(&shown, kind));
            }
            kind if self.is_joined(kind, kind)
                && matches!(kind, TokenKind::Plus | TokenKind::Minus) =>
            {
                return Err(self.compound(&shown, kind));
            }
            TokenKind::Semicolon if place.index.is_none() => {
                let call = format!("to call a function, write `{name}();`");
                let help = help.map_or(call, Into::into);
                return Err(self.unexpected_with("`=`", &format!("after {shown}"), Some(&help)));
            }
            _ => {
                let expected = if place.index.is_some() { "`=`" } else { "`=`, `[` or `(`" };
                return Err(self.unexpected_with(expected, &format!("after {shown}"), help));
            }
        }
        self.bump();
        let value = self.value()?;
        self.semicolon("the value")?;
        Ok(StatementKind::Assign { place, value })
    }

    fn call_statement(&mut self) -> Parsed<StatementKind> {
        let help = of_statement_name(self.text());
        let name = self.bump();
        let arguments = self.arguments()?;
        if self.kind() == TokenKind::LeftBrace {
            return Err(self.unexpected_with("`;`", "after the call", help));
        }
        self.semicolon_with("the call", help)?;
        Ok(StatementKind::Call { name, arguments })
    }

    /// `x += 1` and `x++`, for which there is nothing.
    fn compound(&mut self, place: &str, kind: TokenKind) -> Reported {
        let operator = kind.spelling().unwrap_or_default();
        let is_step = self.next_kind() == kind;
        let joined = format!("{operator}{}", if is_step { operator } else { "=" });
        let span = self.span().to(self.token(1).span);
        let name = place.trim_matches('`');
        let amount = if is_step { "1" } else { "…" };
        let message = format!("expected `=` after {place}, found `{joined}`");
        let error = Diagnostic::error(span, message, format!("there is no `{joined}`"));
        self.report(error.help(format!("write `{name} = {name} {operator} {amount};`")))
    }

    fn local(&mut self) -> Parsed<StatementKind> {
        self.bump();
        if self.kind() == TokenKind::Name && self.text() == "mut" {
            let error = Diagnostic::error(self.span(), "there is no `mut`", "leave this out");
            self.report(error.help("every local may be assigned again"));
            self.bump();
        }
        let name = self.name("a local", "after `let`")?;
        let help = match self.kind() {
            TokenKind::LeftBracket => Some("arrays are global: `shared a[8];`"),
            TokenKind::Comma => Some("declare each local by itself"),
            TokenKind::Semicolon => Some("a local has a value from the start: `let x = 0;`"),
            TokenKind::Equal => Some("to give a value, write `=`"),
            _ => None,
        };
        self.expect_with(TokenKind::Assign, "after the name of the local", help)?;
        match self.kind() {
            TokenKind::Cas => self.compare_and_swap(name),
            TokenKind::FetchAdd => self.fetch_add(name),
            TokenKind::Fork => self.fork(name),
            TokenKind::Name if self.is_foreign_fork() => {
                self.foreign_fork(&short(self.source.slice(name)));
                self.fork(name)
            }
            _ => {
                let value = self.value()?;
                self.semicolon("the value")?;
                Ok(StatementKind::Let { name, value })
            }
        }
    }

    fn compare_and_swap(&mut self, name: Span) -> Parsed<StatementKind> {
        self.bump();
        self.expect(TokenKind::LeftParen, "after `cas`")?;
        let place = self.place("a shared variable", "after `(`")?;
        let help = Some("`cas` is `cas(place, old, new)`");
        self.expect_with(TokenKind::Comma, "after the place", help)?;
        let old = self.value()?;
        self.expect_with(TokenKind::Comma, "after the old value", help)?;
        let new = self.value()?;
        self.expect_with(TokenKind::RightParen, "after the new value", help)?;
        self.semicolon("`cas(…)`")?;
        Ok(StatementKind::CompareAndSwap { name, place, old, new })
    }

    fn fetch_add(&mut self, name: Span) -> Parsed<StatementKind> {
        self.bump();
        self.expect(TokenKind::LeftParen, "after `fetchadd`")?;
        let place = self.place("a shared variable", "after `(`")?;
        let help = Some("`fetchadd` is `fetchadd(place, amount)`");
        self.expect_with(TokenKind::Comma, "after the place", help)?;
        let amount = self.value()?;
        self.expect_with(TokenKind::RightParen, "after the amount", help)?;
        self.semicolon("`fetchadd(…)`")?;
        Ok(StatementKind::FetchAdd { name, place, amount })
    }

    /// Whether a block follows a word that starts a thread elsewhere.
    fn is_foreign_fork(&self) -> bool {
        is_fork(self.text()) && self.next_kind() == TokenKind::LeftBrace
    }

    fn foreign_fork(&mut self, name: &str) {
        let message = format!("there is no {}", self.found());
        let error = Diagnostic::error(self.span(), message, "expected `fork`");
        self.report(error.help(format!("write `let {name} = fork {{ … }};`")));
    }

    fn fork(&mut self, name: Span) -> Parsed<StatementKind> {
        let word = self.bump();
        if self.kind() != TokenKind::LeftBrace {
            let help = "a forked thread has a block: `let t = fork { … };`";
            return Err(self.unexpected_with("`{`", "after `fork`", Some(help)));
        }
        let body = self.block("after `fork`")?;
        self.semicolon("the forked block")?;
        Ok(StatementKind::Fork { name, word, body })
    }

    /// The condition of `word`, in parentheses.
    fn condition(&mut self, word: &str) -> Parsed<Value> {
        if self.kind() != TokenKind::LeftParen {
            let help = "a condition stands in parentheses";
            self.unexpected_with("`(`", &format!("after `{word}`"), Some(help));
            let value = self.value()?;
            self.eat(TokenKind::RightParen);
            return Ok(value);
        }
        self.bump();
        if self.kind() == TokenKind::Star && self.next_kind() == TokenKind::RightParen {
            let error = Diagnostic::error(
                self.span(),
                format!("`{word}` needs a condition, found `*`"),
                "expected a value",
            );
            return Err(self.report(error.help("only `if (*)` leaves a choice open")));
        }
        let value = self.value()?;
        if self.kind() == TokenKind::Assign {
            self.assignment_inside();
            self.bump();
            self.value()?;
        }
        self.close(TokenKind::RightParen, "after the condition")?;
        Ok(value)
    }

    fn choice(&mut self) -> Parsed<StatementKind> {
        self.bump();
        let is_free = self.kind() == TokenKind::LeftParen
            && self.next_kind() == TokenKind::Star
            && self.token(2).kind == TokenKind::RightParen;
        if is_free {
            return self.free_choice();
        }
        let condition = self.condition("if")?;
        let then = self.block("after the condition")?;
        let otherwise = if self.eat(TokenKind::Else) { Some(self.otherwise()?) } else { None };
        Ok(StatementKind::If { condition, then, otherwise })
    }

    /// What follows an `else`.
    fn otherwise(&mut self) -> Parsed<Block> {
        if self.kind() != TokenKind::If {
            return self.block("after `else`");
        }
        let inner = self.nested(Self::statement)?;
        Ok(Block { span: inner.span, statements: vec![inner] })
    }

    fn free_choice(&mut self) -> Parsed<StatementKind> {
        for _ in 0..3 {
            self.bump();
        }
        let body = self.block("after `if (*)`")?;
        if self.kind() == TokenKind::Else {
            let error =
                Diagnostic::error(self.span(), "`if (*)` has no `else`", "unexpected `else`");
            self.report(error.help(
                "`if (*)` does what follows or leaves it out; there is no other branch to take",
            ));
            self.bump();
            self.otherwise()?;
        }
        Ok(StatementKind::Optional { body })
    }

    fn repetition(&mut self) -> Parsed<StatementKind> {
        self.bump();
        let condition = self.condition("while")?;
        let body = self.block("after the condition")?;
        Ok(StatementKind::While { condition, body })
    }

    /// `for` and `coforeach`.
    fn counted(&mut self, word: &str) -> Parsed<StatementKind> {
        self.bump();
        if !self.eat(TokenKind::LeftParen) {
            let help = format!("write `{word} (i in a..b)`");
            self.unexpected_with("`(`", &format!("after `{word}`"), Some(&help));
        }
        if self.kind() == TokenKind::Let {
            let error = Diagnostic::error(self.span(), "unexpected `let`", "leave this out");
            self.report(error.help("the variable of a loop is declared by the loop"));
            self.bump();
        }
        let name = self.name("the loop's variable", "after `(`")?;
        if !self.eat(TokenKind::In) {
            let help = format!("write `{word} (i in a..b)`, which excludes `b`, or `a..=b`");
            let reported = self.unexpected_with("`in`", "after the loop's variable", Some(&help));
            if !matches!(self.kind(), TokenKind::Assign | TokenKind::Name) {
                return Err(reported);
            }
            // The head of a loop of C; its body may be right.
            self.skip_parentheses();
            self.block("after the range")?;
            return Ok(StatementKind::Skip);
        }
        let from = self.value()?;
        let is_inclusive = self.eat(TokenKind::DotsEqual);
        if !is_inclusive && !self.eat(TokenKind::Dots) {
            let (expected, context) = ("`..` or `..=`", "after the first number");
            let help = "a range is `a..b`, which excludes `b`, or `a..=b`";
            return Err(self.unexpected_with(expected, context, Some(help)));
        }
        let to = self.value()?;
        if !self.eat(TokenKind::RightParen) && self.kind() != TokenKind::LeftBrace {
            return Err(self.unexpected("`)`", "after the range"));
        }
        let body = self.block("after the range")?;
        let range = Range { name, from, to, is_inclusive };
        Ok(match word {
            "for" => StatementKind::For { range, body },
            _ => StatementKind::ForEachThread { range, body },
        })
    }

    fn threads(&mut self) -> Parsed<StatementKind> {
        self.bump();
        let help = Some("`cobegin { { … } { … } }` holds one block a thread");
        let open = self.expect_with(TokenKind::LeftBrace, "after `cobegin`", help)?;
        let mut bodies = Vec::new();
        loop {
            let start = self.at;
            match self.kind() {
                TokenKind::RightBrace => break,
                TokenKind::LeftBrace => bodies.push(self.block("")?),
                TokenKind::End => return Err(self.unclosed(open)),
                _ if self.is_item() && self.is_outdented() => return Err(self.unclosed(open)),
                _ => {
                    self.unexpected_with("`{` or `}`", "in `cobegin`", help);
                    self.recover(start);
                }
            }
        }
        self.bump();
        Ok(StatementKind::Threads { bodies })
    }

    fn atomic(&mut self) -> Parsed<StatementKind> {
        self.bump();
        if self.kind() == TokenKind::LeftParen {
            let help = "`atomic` names no lock; to hold the lock `m`, write `sync (m) { … }`";
            self.unexpected_with("`{`", "after `atomic`", Some(help));
            self.bump();
            self.skip_parentheses();
        }
        let body = self.block("after `atomic`")?;
        Ok(StatementKind::Atomic { body })
    }

    fn expectation(&mut self) -> Parsed<StatementKind> {
        self.bump();
        let help = match self.kind() {
            TokenKind::LeftParen => "to check a value, write `assert(…);`",
            _ => "write `expect atomic { … }`",
        };
        self.expect_with(TokenKind::Atomic, "after `expect`", Some(help))?;
        let body = self.block("after `expect atomic`")?;
        Ok(StatementKind::Expect { body })
    }

    fn sync(&mut self) -> Parsed<StatementKind> {
        self.bump();
        let help = Some("write `sync (m) { … }`");
        self.expect_with(TokenKind::LeftParen, "after `sync`", help)?;
        let lock = self.place("a lock", "after `(`")?;
        self.close(TokenKind::RightParen, "after the lock")?;
        if self.kind() == TokenKind::Semicolon {
            let help = "`sync` holds the lock over a block; to take it alone, write `lock(m);`";
            return Err(self.unexpected_with("`{`", "after `sync (…)`", Some(help)));
        }
        let body = self.block("after `sync (…)`")?;
        Ok(StatementKind::Sync { lock, body })
    }
}

/// Statements of one line.
impl Parser<'_> {
    /// The `(` of `word`.
    fn open(&mut self, word: &str, example: &str) -> Parsed<Span> {
        let (context, help) = (format!("after `{word}`"), format!("write `{example}`"));
        self.expect_with(TokenKind::LeftParen, &context, Some(&help))
    }

    fn on_lock(
        &mut self,
        word: &str,
        kind: impl FnOnce(Place) -> StatementKind,
    ) -> Parsed<StatementKind> {
        self.bump();
        self.open(word, &format!("{word}(m);"))?;
        let lock = self.place("a lock", "after `(`")?;
        self.expect_with(TokenKind::RightParen, "after the lock", Some("it takes one lock"))?;
        if self.kind() == TokenKind::LeftBrace {
            let help = "to hold a lock over a block, write `sync (m) { … }`";
            return Err(self.unexpected_with("`;`", &format!("after `{word}(…)`"), Some(help)));
        }
        self.semicolon(&format!("`{word}(…)`"))?;
        Ok(kind(lock))
    }

    fn wait(&mut self) -> Parsed<StatementKind> {
        self.bump();
        let help = Some("`wait` is `wait(condition, lock)`");
        self.open("wait", "wait(c, m);")?;
        let condition = self.name("a condition", "after `(`")?;
        self.expect_with(TokenKind::Comma, "after the condition", help)?;
        let lock = self.place("a lock", "after `,`")?;
        self.close(TokenKind::RightParen, "after the lock")?;
        self.semicolon("`wait(…)`")?;
        Ok(StatementKind::Wait { condition, lock })
    }

    fn on_name(
        &mut self,
        word: &str,
        what: &str,
        kind: impl FnOnce(Span) -> StatementKind,
    ) -> Parsed<StatementKind> {
        self.bump();
        self.open(word, &format!("{word}(…);"))?;
        let name = self.name(what, "after `(`")?;
        self.close(TokenKind::RightParen, "after the name")?;
        self.semicolon(&format!("`{word}(…)`"))?;
        Ok(kind(name))
    }

    fn on_value(
        &mut self,
        word: &str,
        kind: impl FnOnce(Value) -> StatementKind,
    ) -> Parsed<StatementKind> {
        self.bump();
        let condition = self.condition(word)?;
        self.semicolon(&format!("`{word}(…)`"))?;
        Ok(kind(condition))
    }

    fn alone(&mut self, word: &str, kind: StatementKind) -> Parsed<StatementKind> {
        self.bump();
        let help = match (word, self.kind()) {
            ("break" | "continue", TokenKind::Number | TokenKind::Name) => {
                Some("it concerns the innermost loop only")
            }
            _ => None,
        };
        self.semicolon_with(&format!("`{word}`"), help)?;
        Ok(kind)
    }

    fn return_statement(&mut self) -> Parsed<StatementKind> {
        self.bump();
        if matches!(self.kind(), TokenKind::Semicolon | TokenKind::RightBrace) {
            self.semicolon("`return`")?;
            return Ok(StatementKind::Return { value: None });
        }
        let value = self.value()?;
        let is_list = self.kind() == TokenKind::Comma;
        let help = is_list.then_some("a function returns one value");
        self.semicolon_with("the value", help)?;
        Ok(StatementKind::Return { value: Some(value) })
    }

    /// A declaration among statements.
    fn item_inside(&mut self) -> Reported {
        let word = self.found();
        let message = format!("{word} cannot stand inside a block");
        let help = match self.kind() {
            TokenKind::Shared => "a local is declared by `let x = 0;`; move what is shared outside",
            TokenKind::Lock => "to take a lock, write `lock(m);`; locks are declared outside",
            TokenKind::Thread => "to start a thread here, write `let t = fork { … };`",
            _ => "move it outside, or close the block before it with `}`",
        };
        let error = Diagnostic::error(self.span(), message, "expected a statement");
        self.report(error.help(help))
    }

    fn no_statement(&mut self) -> Reported {
        if matches!(self.kind(), TokenKind::Cas | TokenKind::FetchAdd) {
            return self.needs_name();
        }
        let help = match self.kind() {
            TokenKind::Else => Some("`else` follows the `}` of an `if`"),
            TokenKind::Semicolon => Some("leave it out; a statement that does nothing is `skip;`"),
            TokenKind::LeftBrace => {
                Some("a block belongs to a statement, such as `if`, `atomic` or `sync`")
            }
            TokenKind::Fork => Some("a forked thread has a name: `let t = fork { … };`"),
            TokenKind::Plus | TokenKind::Minus => Some("to count, write `x = x + 1;`"),
            TokenKind::Star => Some("there are no pointers"),
            TokenKind::Number | TokenKind::LeftParen | TokenKind::Not => {
                Some("a value alone does nothing; assign it to a variable")
            }
            _ => None,
        };
        self.unexpected_with("a statement", "", help)
    }
}

// Expressions, by the precedence of C.

/// The operator that a token stands for between two operands, and how tightly it binds.
const fn operator(kind: TokenKind) -> Option<(Binary, u8)> {
    Some(match kind {
        TokenKind::OrOr => (Binary::Or, 1),
        TokenKind::AndAnd => (Binary::And, 2),
        TokenKind::Or => (Binary::BitOr, 3),
        TokenKind::Xor => (Binary::BitXor, 4),
        TokenKind::And => (Binary::BitAnd, 5),
        TokenKind::Equal => (Binary::Equal, 6),
        TokenKind::NotEqual => (Binary::NotEqual, 6),
        TokenKind::Less => (Binary::Less, 7),
        TokenKind::LessEqual => (Binary::LessEqual, 7),
        TokenKind::Greater => (Binary::Greater, 7),
        TokenKind::GreaterEqual => (Binary::GreaterEqual, 7),
        TokenKind::ShiftLeft => (Binary::ShiftLeft, 8),
        TokenKind::ShiftRight => (Binary::ShiftRight, 8),
        TokenKind::Plus => (Binary::Add, 9),
        TokenKind::Minus => (Binary::Subtract, 9),
        TokenKind::Star => (Binary::Multiply, 10),
        TokenKind::Slash => (Binary::Divide, 10),
        TokenKind::Percent => (Binary::Remainder, 10),
        _ => return None,
    })
}

impl Parser<'_> {
    /// A whole expression.
    pub(super) fn value(&mut self) -> Parsed<Value> {
        let first = NodeId::from_index(self.nodes.len());
        let root = self.binary(0)?;
        Ok(Value { first, root })
    }

    /// Operands joined by operators that bind more tightly than `least`.
    fn binary(&mut self, least: u8) -> Parsed<NodeId> {
        let mut left = self.unary()?;
        while let Some((operator, tightness)) = operator(self.kind()) {
            if tightness <= least {
                break;
            }
            self.bump();
            let right = self.binary(tightness)?;
            let span = self.nodes[left].span.to(self.nodes[right].span);
            left = self.node(span, NodeKind::Binary(operator, left, right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<NodeId> {
        let operator = match self.kind() {
            TokenKind::Minus => Unary::Negate,
            TokenKind::Not => Unary::Not,
            _ => return self.primary(),
        };
        self.nested(|parser| {
            let sign = parser.bump();
            let is_negated = operator == Unary::Negate && parser.kind() == TokenKind::Number;
            let of = if is_negated { parser.number(true) } else { parser.unary()? };
            let span = sign.to(parser.nodes[of].span);
            Ok(parser.node(span, NodeKind::Unary(operator, of)))
        })
    }

    fn primary(&mut self) -> Parsed<NodeId> {
        match (self.kind(), self.next_kind()) {
            (TokenKind::Number, _) => Ok(self.number(false)),
            (TokenKind::Name, TokenKind::LeftParen) => self.call(),
            (TokenKind::Name, TokenKind::LeftBracket) => {
                let name = self.bump();
                self.bump();
                let index = self.nested(|parser| parser.binary(0))?;
                let close = self.close(TokenKind::RightBracket, "after the index")?;
                self.no_second_index()?;
                Ok(self.node(name.to(close), NodeKind::Index { name, index }))
            }
            (TokenKind::Name, _) => {
                let name = self.bump();
                Ok(self.node(name, NodeKind::Name))
            }
            (TokenKind::LeftParen, _) => {
                let open = self.bump();
                let inner = self.nested(|parser| parser.binary(0))?;
                if self.kind() == TokenKind::Assign {
                    return Err(self.assignment_inside());
                }
                let close = self.close(TokenKind::RightParen, "after the value")?;
                Ok(self.node(open.to(close), NodeKind::Paren(inner)))
            }
            _ => Err(self.no_value()),
        }
    }

    /// The number here. With a minus before it, it may be the smallest one.
    fn number(&mut self, is_negated: bool) -> NodeId {
        let value = match magnitude(self.text()) {
            Magnitude::Is(value) => value,
            Magnitude::TooLarge | Magnitude::NotANumber => 0,
        };
        if value > i64::MAX as u64 && !is_negated {
            self.report(too_large(self.span()));
        }
        let span = self.bump();
        // 2⁶³ becomes the smallest number, which is its own negation.
        self.node(span, NodeKind::Number(value as i64))
    }

    fn call(&mut self) -> Parsed<NodeId> {
        let name = self.bump();
        self.bump();
        let mut arguments = Vec::new();
        if self.kind() != TokenKind::RightParen {
            arguments.push(self.nested(|parser| parser.binary(0))?);
            while self.eat(TokenKind::Comma) {
                arguments.push(self.nested(|parser| parser.binary(0))?);
            }
        }
        let close = self.close_arguments()?;
        Ok(self.node(name.to(close), NodeKind::Call { name, arguments }))
    }

    fn node(&mut self, span: Span, kind: NodeKind) -> NodeId {
        self.nodes.push(Node { span, kind })
    }

    /// The arguments of a call, from its `(` to its `)`.
    fn arguments(&mut self) -> Parsed<Vec<Value>> {
        self.expect(TokenKind::LeftParen, "before the arguments")?;
        let mut arguments = Vec::new();
        if self.kind() != TokenKind::RightParen {
            arguments.push(self.value()?);
            while self.eat(TokenKind::Comma) {
                arguments.push(self.value()?);
            }
        }
        self.close_arguments()?;
        Ok(arguments)
    }

    /// The `)` behind arguments.
    fn close_arguments(&mut self) -> Parsed<Span> {
        if self.kind() == TokenKind::RightParen {
            return Ok(self.bump());
        }
        let help = self.operator_word();
        let reported = self.unexpected_with("`,` or `)`", "after the argument", help);
        if self.kind() == TokenKind::Semicolon { Ok(self.assume_mark()) } else { Err(reported) }
    }

    /// A name, or an element of what `what` names.
    pub(super) fn place(&mut self, what: &str, context: &str) -> Parsed<Place> {
        let name = self.name(what, context)?;
        if !self.eat(TokenKind::LeftBracket) {
            return Ok(Place { name, index: None, span: name });
        }
        let index = self.value()?;
        let close = self.close(TokenKind::RightBracket, "after the index")?;
        self.no_second_index()?;
        Ok(Place { name, index: Some(index), span: name.to(close) })
    }

    fn no_second_index(&mut self) -> Parsed<()> {
        if self.kind() != TokenKind::LeftBracket {
            return Ok(());
        }
        let error =
            Diagnostic::error(self.span(), "arrays have one dimension", "unexpected second index");
        Err(self.report(error.help("compute one index: `a[row * columns + column]`")))
    }

    /// An `=` where a value goes on.
    fn assignment_inside(&mut self) -> Reported {
        let is_swapped = self.is_joined(TokenKind::Assign, TokenKind::Less)
            || self.is_joined(TokenKind::Assign, TokenKind::Greater);
        let help = if is_swapped {
            "write `<=` or `>=`, the `=` last"
        } else {
            "to compare, write `==`; an assignment is a statement and has no value"
        };
        self.unexpected_with("`)`", "after the value", Some(help))
    }

    /// `cas`, `fetchadd` or `fork` where it is not the value of a `let`.
    fn needs_name(&mut self) -> Reported {
        let word = self.found();
        let message = format!("the result of {word} needs a name");
        let label = format!("{word} stands only behind `let name =`");
        let help = match self.kind() {
            TokenKind::Cas => "write `let ok = cas(…);`, and then use `ok`",
            TokenKind::FetchAdd => "write `let old = fetchadd(…);`, and then use `old`",
            _ => "write `let t = fork { … };`",
        };
        self.report(Diagnostic::error(self.span(), message, label).help(help))
    }

    fn no_value(&mut self) -> Reported {
        let word = self.found();
        match self.kind() {
            TokenKind::Cas | TokenKind::FetchAdd | TokenKind::Fork => self.needs_name(),
            TokenKind::Thread => {
                let help = Some("to start a thread here, write `let t = fork { … };`");
                self.unexpected_with("a value", "", help)
            }
            kind if kind.is_word() => {
                let message = format!("expected a value, found the word {word}");
                let error = Diagnostic::error(self.span(), message, "expected a value");
                self.report(error.help("a word of the language cannot be a name"))
            }
            kind => {
                let before = self.at.checked_sub(1).map(|at| self.tokens[at].kind);
                self.unexpected_with("a value", "", instead_of_value(before, kind))
            }
        }
    }
}
