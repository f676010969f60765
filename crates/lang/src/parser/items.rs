//! Declarations.

use super::{Parsed, Parser, Reported, hints};
use crate::diagnostic::{Diagnostic, quoted};
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
        let help = match self.kind() {
            TokenKind::Name if is_call => Some("a function starts with `fn`"),
            TokenKind::Name => hints::of_top_level_name(self.text())
                .or(Some("statements stand inside `main`, a `thread` or a `fn`")),
            kind if kind.is_word() => Some("statements stand inside `main`, a `thread` or a `fn`"),
            _ => Some("`shared`, `lock`, `cond`, `focus`, `fn`, `thread` and `main` start one"),
        };
        self.unexpected_with("a declaration", "", help)
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
        if self.is_joined(TokenKind::Minus, TokenKind::Greater) {
            let arrow = self.span().to(self.token(1).span);
            let message = "expected `{` after the parameters, found `->`";
            let error = Diagnostic::error(arrow, message, "expected `{`");
            self.report(error.help("every function gives an integer; write no type"));
            while !matches!(self.kind(), TokenKind::LeftBrace | TokenKind::End) {
                self.bump();
            }
        }
        let body = self.block("after the parameters")?;
        Ok(Item::Function { name, parameters, body })
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

    fn main(&mut self) -> Parsed<Item> {
        let word = self.bump();
        if self.kind() == TokenKind::Name {
            let message = format!("`main` has no name, found {}", self.found());
            self.report(Diagnostic::error(self.span(), message, "leave this out"));
            self.bump();
        }
        self.no_parameters("main");
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
    }
}
