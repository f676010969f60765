//! What holds of all programs, and of all texts.

use proptest::prelude::*;
use reweave_lang::{Capture, ExprKind, Program, Source, Span, StatementKind, Style, check, format};
use reweave_testkit::soak;

use super::generate::{scatter, tokens};
use super::program;

/// The program with all places forgotten.
fn without_places(mut program: Program) -> Program {
    let nowhere = Span::default();
    program.globals.iter_mut().for_each(|it| it.span = nowhere);
    program.locks.iter_mut().for_each(|it| it.span = nowhere);
    program.conditions.iter_mut().for_each(|it| it.span = nowhere);
    program.functions.iter_mut().for_each(|it| it.span = nowhere);
    program.threads.iter_mut().for_each(|it| it.span = nowhere);
    program.locals.iter_mut().for_each(|it| it.span = nowhere);
    for expression in program.expressions.iter_mut() {
        expression.span = nowhere;
        if let ExprKind::Shared(place) = &mut expression.kind {
            place.span = nowhere;
        }
    }
    for block in program.blocks.iter_mut() {
        block.span = nowhere;
        for statement in &mut block.statements {
            statement.span = nowhere;
            match &mut statement.kind {
                StatementKind::Store { place, .. }
                | StatementKind::CompareAndSwap { place, .. }
                | StatementKind::FetchAdd { place, .. } => place.span = nowhere,
                StatementKind::Sync { lock, .. }
                | StatementKind::Lock { lock }
                | StatementKind::Unlock { lock }
                | StatementKind::Wait { lock, .. } => lock.span = nowhere,
                _ => {}
            }
        }
    }
    program
}

fn dense(text: &str) -> String {
    text.split_whitespace().collect()
}

/// What must hold of any text, right or wrong.
#[track_caller]
pub(crate) fn check_text(text: &str) {
    let source = Source::new("a.rw", text);
    let checked = check(&source);
    let has_error =
        checked.diagnostics.iter().any(|found| found.severity == reweave_lang::Severity::Error);
    assert_eq!(checked.program.is_none(), has_error);
    assert!(checked.diagnostics.len() <= 102);
    for found in &checked.diagnostics {
        assert!(!found.message.is_empty());
        for label in found.secondary.iter().chain([&found.primary]) {
            let Span { start, end } = label.span;
            assert!(start <= end && end as usize <= text.len());
            assert!(text.is_char_boundary(start as usize) && text.is_char_boundary(end as usize));
        }
    }
    // To draw takes long where lines are long; the first will do there.
    let drawn = if text.len() < 10_000 { usize::MAX } else { 1 };
    for found in checked.diagnostics.iter().take(drawn) {
        assert!(found.render(&source, Style::Plain).contains("a.rw"));
        assert!(found.render(&source, Style::Colour).contains('\u{1b}'));
    }
    match format(&source) {
        Ok(laid_out) => {
            assert_eq!(dense(&laid_out), dense(text.strip_prefix('\u{feff}').unwrap_or(text)));
            let again = format(&Source::new("a.rw", &*laid_out));
            assert_eq!(again.as_ref(), Ok(&laid_out), "of\n{text}");
            let after = check(&Source::new("a.rw", &*laid_out)).program.map(without_places);
            assert_eq!(after, checked.program.map(without_places));
        }
        Err(errors) => assert!(!errors.is_empty() && has_error),
    }
}

/// What the documentation of [`Program`] promises of its tables.
fn check_tables(program: &Program, source: &Source) {
    for (id, expression) in program.expressions.entries() {
        let operands = match &expression.kind {
            ExprKind::Number(_) | ExprKind::Local(_) => Vec::new(),
            ExprKind::Shared(place) => place.index.into_iter().collect(),
            ExprKind::Unary(_, of) => vec![*of],
            ExprKind::Binary(_, left, right) => vec![*left, *right],
            ExprKind::Call(_, arguments) => arguments.clone(),
        };
        for operand in operands {
            let inner = program.expressions[operand].span;
            assert!(operand < id);
            assert!(expression.span.start <= inner.start && inner.end <= expression.span.end);
        }
    }
    for (id, block) in program.blocks.entries() {
        if let Some((outer, position)) = block.inside {
            let around = program.blocks[outer].statements[position as usize].span;
            assert!(outer < id);
            assert!(around.start <= block.span.start && block.span.end <= around.end);
        }
        for statement in &block.statements {
            let text = source.slice(statement.span);
            assert!(text.ends_with([';', '}']), "{text}");
            check_captures(&statement.kind);
        }
    }
}

fn check_captures(kind: &StatementKind) {
    let is_sorted = |capture: &Capture| capture.locals.is_sorted_by(|one, other| one < other);
    match kind {
        StatementKind::ForEachThread { range, body } => {
            assert!(is_sorted(body) && body.locals.contains(&range.local));
        }
        StatementKind::Threads { bodies } => assert!(bodies.iter().all(is_sorted)),
        StatementKind::Fork { body, .. } => assert!(is_sorted(body)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(soak::config(200))]

    #[test]
    fn generated_programs_are_right_and_their_layout_keeps_them(seed: u64, layout: u64) {
        let tokens = tokens(seed);
        let text = scatter(&tokens, layout);
        let resolved = program(&text);
        check_tables(&resolved, &Source::new("a.rw", &*text));
        check_text(&text);
        // The layout depends on blank lines and comments only.
        let plain = program(&tokens.join(" "));
        prop_assert_eq!(without_places(plain), without_places(resolved));
    }

    #[test]
    fn a_program_with_a_token_less_more_or_other_is_no_trouble(
        seed: u64,
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<prop::sample::Index>()), 1..4),
    ) {
        let mut tokens = tokens(seed);
        for (at, change, other) in changes {
            let other = other.get(&tokens).clone();
            let at = at.index(tokens.len());
            match change {
                0 => drop(tokens.remove(at)),
                1 => tokens.insert(at, other),
                _ => tokens[at] = other,
            }
        }
        check_text(&scatter(&tokens, seed));
    }

    #[test]
    fn any_tokens_are_no_trouble(picked in prop::collection::vec(0..SOUP.len(), 0..60)) {
        let text: Vec<&str> = picked.iter().map(|&at| SOUP[at]).collect();
        check_text(&text.join(" "));
        check_text(&text.concat());
    }

    #[test]
    fn any_text_is_no_trouble(text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        check_text(&text);
        check_text(&String::from_utf8_lossy(&bytes));
    }
}

/// Every token, and some things that are none.
const SOUP: [&str; 84] = [
    "shared",
    "lock",
    "cond",
    "focus",
    "fn",
    "thread",
    "main",
    "let",
    "if",
    "else",
    "while",
    "for",
    "in",
    "coforeach",
    "cobegin",
    "atomic",
    "expect",
    "sync",
    "unlock",
    "wait",
    "notify",
    "notifyall",
    "cas",
    "fetchadd",
    "fork",
    "join",
    "assert",
    "assume",
    "skip",
    "return",
    "break",
    "continue",
    "{",
    "}",
    "{",
    "}",
    "(",
    ")",
    "(",
    ")",
    "[",
    "]",
    ";",
    ";",
    ";",
    ",",
    "=",
    "..",
    "..=",
    "||",
    "&&",
    "|",
    "^",
    "&",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "<<",
    ">>",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "x",
    "y",
    "f",
    "m",
    "0",
    "1",
    "0x1f",
    "99999999999999999999",
    "9223372036854775808",
    "\n",
    "// c\n",
    "/* b */",
    "/*",
    "\"",
    "ö",
    "@",
];
