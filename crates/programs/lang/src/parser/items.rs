//! Declarations.

use super::{Parsed, Parser, Reported, hints};
use crate::diagnostic::{Diagnostic, quoted, short};
use crate::lexer::{Magnitude, TokenKind, magnitude};
use crate::source::Span;
use crate::syntax::{Item, Length};

impl Parser<'_> {
    /// All declarations up to the end.
    pub(super) fn items(&mut self) -> Vec<Item> {
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
            TokenKind::Name => hints::of_top_level_name(self.text())
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
        let word = is_name(0).then(|| hints::declaring_word(self.text()))??;
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
        if self.kind() != TokenKind::RightBracket {
            let help = "the length of an array is one number; work out the result";
            return Err(self.unexpected_with("`]`", "after the length", Some(help)));
        }
        self.bump();
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
        self.report(error.help("every function gives an integer; write no type"));
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
