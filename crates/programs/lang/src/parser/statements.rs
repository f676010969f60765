//! Statements.

use super::{Parsed, Parser, Reported, hints};
use crate::diagnostic::{Diagnostic, quoted, short};
use crate::lexer::TokenKind;
use crate::source::Span;
use crate::syntax::{Block, Place, Range, Statement, StatementKind, Value};

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
            TokenKind::Lock => self.on_lock("lock", |lock| StatementKind::Lock { lock }),
            TokenKind::Unlock => self.on_lock("unlock", |lock| StatementKind::Unlock { lock }),
            TokenKind::Wait => self.wait(),
            TokenKind::Notify => self
                .on_name("notify", "a condition", |condition| StatementKind::Notify { condition }),
            TokenKind::NotifyAll => self.on_name("notifyall", "a condition", |condition| {
                StatementKind::NotifyAll { condition }
            }),
            TokenKind::Join => {
                self.on_name("join", "a thread", |name| StatementKind::Join { name })
            }
            TokenKind::Assert => {
                self.on_value("assert", |condition| StatementKind::Assert { condition })
            }
            TokenKind::Assume => {
                self.on_value("assume", |condition| StatementKind::Assume { condition })
            }
            TokenKind::Skip => self.alone("skip", StatementKind::Skip),
            TokenKind::Break => self.alone("break", StatementKind::Break),
            TokenKind::Continue => self.alone("continue", StatementKind::Continue),
            TokenKind::Return => self.give_back(),
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
        let help = hints::of_statement_name(self.text());
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
        let help = hints::of_statement_name(self.text());
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
        if self.kind() != TokenKind::Assign {
            let help = match self.kind() {
                TokenKind::LeftBracket => Some("arrays are global: `shared a[8];`"),
                TokenKind::Comma => Some("declare each local by itself"),
                TokenKind::Semicolon => Some("a local has a value from the start: `let x = 0;`"),
                TokenKind::Equal => Some("to give a value, write `=`"),
                _ => None,
            };
            return Err(self.unexpected_with("`=`", "after the name of the local", help));
        }
        self.bump();
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
        self.comma("after the place", help)?;
        let old = self.value()?;
        self.comma("after the old value", help)?;
        let new = self.value()?;
        self.close_with("after the new value", help)?;
        self.semicolon("`cas(…)`")?;
        Ok(StatementKind::CompareAndSwap { name, place, old, new })
    }

    fn fetch_add(&mut self, name: Span) -> Parsed<StatementKind> {
        self.bump();
        self.expect(TokenKind::LeftParen, "after `fetchadd`")?;
        let place = self.place("a shared variable", "after `(`")?;
        let help = Some("`fetchadd` is `fetchadd(place, amount)`");
        self.comma("after the place", help)?;
        let amount = self.value()?;
        self.close_with("after the amount", help)?;
        self.semicolon("`fetchadd(…)`")?;
        Ok(StatementKind::FetchAdd { name, place, amount })
    }

    fn comma(&mut self, context: &str, help: Option<&str>) -> Parsed<()> {
        if self.eat(TokenKind::Comma) {
            return Ok(());
        }
        Err(self.unexpected_with("`,`", context, help))
    }

    fn close_with(&mut self, context: &str, help: Option<&str>) -> Parsed<()> {
        if self.eat(TokenKind::RightParen) {
            return Ok(());
        }
        Err(self.unexpected_with("`)`", context, help))
    }

    /// Whether a block follows a word that starts a thread elsewhere.
    fn is_foreign_fork(&self) -> bool {
        hints::is_fork(self.text()) && self.next_kind() == TokenKind::LeftBrace
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
        let is_inclusive = self.kind() == TokenKind::DotsEqual;
        if !is_inclusive && self.kind() != TokenKind::Dots {
            let help = "a range is `a..b`, which excludes `b`, or `a..=b`";
            return Err(self.unexpected_with(
                "`..` or `..=`",
                "after the first number",
                Some(help),
            ));
        }
        self.bump();
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
        if self.kind() != TokenKind::LeftBrace {
            return Err(self.unexpected_with("`{`", "after `cobegin`", help));
        }
        let open = self.bump();
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
        if !self.eat(TokenKind::Atomic) {
            let help = match self.kind() {
                TokenKind::LeftParen => "to check a value, write `assert(…);`",
                _ => "write `expect atomic { … }`",
            };
            return Err(self.unexpected_with("`atomic`", "after `expect`", Some(help)));
        }
        let body = self.block("after `expect atomic`")?;
        Ok(StatementKind::Expect { body })
    }

    fn sync(&mut self) -> Parsed<StatementKind> {
        self.bump();
        let help = Some("write `sync (m) { … }`");
        if self.kind() != TokenKind::LeftParen {
            return Err(self.unexpected_with("`(`", "after `sync`", help));
        }
        self.bump();
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
    fn open(&mut self, word: &str, example: &str) -> Parsed<()> {
        if self.kind() == TokenKind::LeftParen {
            self.bump();
            return Ok(());
        }
        let help = format!("write `{example}`");
        Err(self.unexpected_with("`(`", &format!("after `{word}`"), Some(&help)))
    }

    fn on_lock(
        &mut self,
        word: &str,
        kind: impl FnOnce(Place) -> StatementKind,
    ) -> Parsed<StatementKind> {
        self.bump();
        self.open(word, &format!("{word}(m);"))?;
        let lock = self.place("a lock", "after `(`")?;
        self.close_with("after the lock", Some("it takes one lock"))?;
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
        self.comma("after the condition", help)?;
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

    fn give_back(&mut self) -> Parsed<StatementKind> {
        self.bump();
        if matches!(self.kind(), TokenKind::Semicolon | TokenKind::RightBrace) {
            self.semicolon("`return`")?;
            return Ok(StatementKind::Return { value: None });
        }
        let value = self.value()?;
        let is_list = self.kind() == TokenKind::Comma;
        let help = is_list.then_some("a function gives one value back");
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
