//! From text to program: the phases in a row, and a limit on what they report.

use crate::diagnostic::{Diagnostic, Severity};
use crate::lexer::{Lexed, lex};
use crate::parser::parse;
use crate::program::Program;
use crate::resolve::resolve;
use crate::source::{Source, Span};
use crate::syntax::Syntax;

/// How many errors are reported, and how many warnings.
const REPORTED_MAX: usize = 50;

/// What became of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The program, if there is no error.
    pub program: Option<Program>,
    /// Errors and warnings by place; the last counts those that were left out, if any were.
    pub diagnostics: Vec<Diagnostic>,
}

/// Checks a program. Names are looked at only if its syntax is right.
///
/// ```
/// let source = reweave_lang::Source::new("a.rw", "shared x; main { x = 1; }");
/// assert!(reweave_lang::check(&source).program.is_some());
/// ```
pub fn check(source: &Source) -> Checked {
    let (_, syntax, mut diagnostics) = read(source);
    if has_error(&diagnostics) {
        return Checked { program: None, diagnostics: limited(diagnostics) };
    }
    let (program, found) = resolve(source, &syntax);
    diagnostics.extend(found);
    let program = (!has_error(&diagnostics)).then_some(program);
    Checked { program, diagnostics: limited(diagnostics) }
}

/// The tokens and the syntax tree of `source`, and what is wrong with them.
pub(crate) fn read(source: &Source) -> (Lexed, Syntax, Vec<Diagnostic>) {
    if source.text().len() > Source::BYTES_MAX {
        let message = format!("a program has at most {} bytes", Source::BYTES_MAX);
        let error = Diagnostic::error(Span::default(), message, "this one is longer");
        let nothing = lex(&Source::new("", ""));
        return (nothing, Syntax::default(), vec![error]);
    }
    let mut lexed = lex(source);
    let (syntax, found) = parse(source, &lexed.tokens);
    let mut diagnostics = std::mem::take(&mut lexed.diagnostics);
    diagnostics.extend(found);
    (lexed, syntax, diagnostics)
}

pub(crate) fn has_error(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|found| found.severity == Severity::Error)
}

/// The first of `diagnostics` by place, and how many more there are.
pub(crate) fn limited(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.sort_by_key(|found| found.primary.span);
    let mut left_out: Vec<Diagnostic> = Vec::new();
    for (severity, noun) in [(Severity::Error, "error"), (Severity::Warning, "warning")] {
        let mut count = 0_usize;
        let mut last = Span::default();
        diagnostics.retain(|found| {
            if found.severity != severity {
                return true;
            }
            count += 1;
            if count <= REPORTED_MAX {
                last = found.primary.span;
            }
            count <= REPORTED_MAX
        });
        let more = count.saturating_sub(REPORTED_MAX);
        if more > 0 {
            let ending = if more == 1 { "" } else { "s" };
            let message = format!("… and {more} more {noun}{ending}");
            let mut rest = Diagnostic::error(last, message, "behind this one");
            rest.severity = severity;
            left_out.push(rest);
        }
    }
    diagnostics.extend(left_out);
    diagnostics
}
