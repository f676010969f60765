//! Which `{` is not closed.
//!
//! At the end of a text the outermost `{` is the one without a `}`, but the one that was forgotten
//! may be any inside of it. Indentation tells them apart: a `}` that is the first of its line and
//! stands left of the line of its `{` was meant for a block further out. Time is linear in the
//! stretch of the text that is looked through.

use super::{Parser, Reported};
use crate::diagnostic::Diagnostic;
use crate::lexer::TokenKind;
use crate::source::Span;

/// A `{` that is probably not closed, and the `}` that was meant for another.
struct Suspicion {
    open: Span,
    close: Span,
}

impl Parser<'_> {
    /// The block that starts at `open` does not end before the token to look at.
    pub(super) fn unclosed(&mut self, open: Span) -> Reported {
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
