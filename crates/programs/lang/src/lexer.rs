//! From text to tokens.
//!
//! Comments are kept apart, for the layout. What is no token becomes [`TokenKind::Invalid`] with a
//! diagnostic of its own, and lexing goes on behind it; the parser says nothing more about such a
//! place. A line for a preprocessor is reported and then left out, as if it were a comment. Time and
//! memory are linear in the text.

use logos::{Lexer, Logos};

use crate::diagnostic::{Diagnostic, quoted, short};
use crate::source::{Source, Span};

/// Declares the tokens with a fixed spelling once, for the lexer and for messages.
macro_rules! tokens {
    (words { $($Word:ident $word:tt)* } marks { $($Mark:ident $mark:tt)* }) => {
        /// What a token is.
        #[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
        #[logos(skip r"[ \t\r\n\f]+")]
        pub(crate) enum TokenKind {
            $(#[token($word)] $Word,)*
            $(#[token($mark)] $Mark,)*
            #[regex(r"[_\p{XID_Start}]\p{XID_Continue}*")]
            Name,
            #[regex(r"[0-9][0-9A-Za-z_]*")]
            Number,
            #[regex(r"[0-9]+\.[0-9]+")]
            Fraction,
            #[regex("\"[^\"\n]*\"?")]
            #[regex("'[^'\n]*'?")]
            Text,
            #[token("//", line_comment)]
            #[token("/*", block_comment)]
            Comment,
            Invalid,
            End,
        }

        impl TokenKind {
            /// How it is written, where that is always the same.
            pub(crate) const fn spelling(self) -> Option<&'static str> {
                match self {
                    $(Self::$Word => Some($word),)*
                    $(Self::$Mark => Some($mark),)*
                    _ => None,
                }
            }

            /// Whether it is a word that cannot be a name.
            pub(crate) const fn is_word(self) -> bool {
                match self {
                    $(Self::$Word => true,)*
                    _ => false,
                }
            }
        }
    };
}

tokens! {
    words {
        Shared "shared" Lock "lock" Cond "cond" Focus "focus" Fn "fn" Thread "thread" Main "main"
        Let "let" If "if" Else "else" While "while" For "for" In "in" Coforeach "coforeach"
        Cobegin "cobegin" Atomic "atomic" Expect "expect" Sync "sync" Unlock "unlock" Wait "wait"
        Notify "notify" NotifyAll "notifyall" Cas "cas" FetchAdd "fetchadd" Fork "fork" Join "join"
        Assert "assert" Assume "assume" Skip "skip" Return "return" Break "break"
        Continue "continue"
    }
    marks {
        LeftBrace "{" RightBrace "}" LeftParen "(" RightParen ")" LeftBracket "[" RightBracket "]"
        Semicolon ";" Comma "," Assign "=" Dots ".." DotsEqual "..="
        OrOr "||" AndAnd "&&" Or "|" Xor "^" And "&" Equal "==" NotEqual "!=" Less "<"
        LessEqual "<=" Greater ">" GreaterEqual ">=" ShiftLeft "<<" ShiftRight ">>" Plus "+"
        Minus "-" Star "*" Slash "/" Percent "%" Not "!"
    }
}

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
}

/// A text in tokens.
#[derive(Debug)]
pub(crate) struct Lexed {
    /// The tokens; the last is [`TokenKind::End`], of no length.
    pub(crate) tokens: Vec<Token>,
    /// The comments, which start with `//` or `/*`.
    pub(crate) comments: Vec<Span>,
    /// What is wrong with them.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// The tokens of `source`.
pub(crate) fn lex(source: &Source) -> Lexed {
    let text = source.text();
    let mut lexed = Lexed { tokens: Vec::new(), comments: Vec::new(), diagnostics: Vec::new() };
    let mut lexer = TokenKind::lexer(text);
    // Some editors put a mark of the byte order first.
    lexer.bump(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 });
    // The first token of the statement that is being read.
    let mut statement = 0;
    while let Some(result) = lexer.next() {
        let range = lexer.span();
        let span = Span::new(range.start as u32, range.end as u32);
        let mut kind = result.unwrap_or(TokenKind::Invalid);
        if kind == TokenKind::Comment {
            lexed.comments.push(span);
            if !is_closed(lexer.slice()) {
                lexed.diagnostics.push(unclosed_comment(span));
            }
            continue;
        }
        if kind == TokenKind::Invalid && lexed.extend_invalid(span) {
            continue;
        }
        if lexer.slice() == ":" && lexed.has_question(source) {
            lexed.tokens.push(Token { kind, span });
            continue;
        }
        if kind == TokenKind::Invalid
            && let Some(directive) = directive(source, span)
        {
            lexer.bump((directive.primary.span.end - span.end) as usize);
            lexed.diagnostics.push(directive);
            continue;
        }
        let method = (lexer.slice() == ".")
            .then(|| method_call(source, lexed.tokens.last(), lexer.remainder(), span));
        if let Some(mut diagnostic) = method.flatten().or_else(|| fault(kind, lexer.slice(), span))
        {
            let first = lexed.tokens.get(statement);
            if kind == TokenKind::Text && first.is_some_and(|token| token.kind == TokenKind::Assert)
            {
                diagnostic.help =
                    Some("leave it out: `assert(e);` that fails names its line".into());
            }
            if diagnostic.severity == crate::Severity::Error {
                // A name of foreign letters still is a name, as far as the parser needs to know.
                kind = if kind == TokenKind::Name { kind } else { TokenKind::Invalid };
            }
            lexed.diagnostics.push(diagnostic);
        }
        lexed.tokens.push(Token { kind, span });
        if matches!(kind, TokenKind::Semicolon | TokenKind::LeftBrace | TokenKind::RightBrace) {
            statement = lexed.tokens.len();
        }
    }
    let end = text.len() as u32;
    lexed.tokens.push(Token { kind: TokenKind::End, span: Span::new(end, end) });
    lexed
}

impl Lexed {
    /// Whether the last fault is a `?`, to which a `:` belongs.
    fn has_question(&self, source: &Source) -> bool {
        self.diagnostics.last().is_some_and(|said| source.slice(said.primary.span) == "?")
    }

    /// Joins stray characters that follow each other: one report is enough for a run of them.
    fn extend_invalid(&mut self, span: Span) -> bool {
        let Some(last) = self.tokens.last_mut() else { return false };
        let is_joined = last.kind == TokenKind::Invalid && last.span.end == span.start;
        if is_joined {
            last.span.end = span.end;
            if let Some(said) = self.diagnostics.last_mut() {
                said.primary.span.end = span.end;
            }
        }
        is_joined
    }
}

/// Takes a comment up to the end of its line.
fn line_comment(lexer: &mut Lexer<'_, TokenKind>) {
    let rest = lexer.remainder();
    lexer.bump(rest.find('\n').unwrap_or(rest.len()));
}

/// Takes a comment up to its `*/`, or all that is left.
fn block_comment(lexer: &mut Lexer<'_, TokenKind>) {
    let rest = lexer.remainder();
    lexer.bump(rest.find("*/").map_or(rest.len(), |at| at + 2));
}

fn is_closed(comment: &str) -> bool {
    comment.starts_with("//") || comment.get(2..).is_some_and(|body| body.ends_with("*/"))
}

fn unclosed_comment(span: Span) -> Diagnostic {
    let open = Span::new(span.start, span.start + 2);
    Diagnostic::error(open, "this comment does not end", "no `*/` follows")
}

/// What is wrong with a token, seen by itself.
fn fault(kind: TokenKind, text: &str, span: Span) -> Option<Diagnostic> {
    match kind {
        TokenKind::Invalid => Some(stray(text, span)),
        TokenKind::Text => Some(Diagnostic::error(
            span,
            "there are no strings and no characters, only integers",
            "not a value of the language",
        )),
        TokenKind::Fraction => Some(
            Diagnostic::error(span, "numbers are integers", "this has a fraction")
                .help("use fixed point: count in hundredths, for example"),
        ),
        TokenKind::Name if !text.is_ascii() => Some(Diagnostic::error(
            span,
            "a name is made of the letters a to z and A to Z, digits and `_`",
            "other letters stand in comments only",
        )),
        TokenKind::Number => bad_number(text, span),
        _ => None,
    }
}

/// A line for a preprocessor, if one starts with the `#` at `span`.
fn directive(source: &Source, span: Span) -> Option<Diagnostic> {
    let before = source.slice(Span::new(source.line_start(span.start), span.start));
    if !before.trim_start().is_empty() {
        return None;
    }
    let line = source.text()[span.start as usize..].lines().next()?;
    let after = line.strip_prefix('#')?.trim_start();
    let word = after.split(|letter: char| !letter.is_ascii_alphabetic()).next()?;
    let help = match word {
        "define" | "undef" => "write the number itself where it is used, or make it a `fn`",
        "include" | "import" => "a program is one file",
        "if" | "ifdef" | "ifndef" | "elif" | "else" | "endif" | "pragma" | "error" => {
            "leave the line out"
        }
        _ => return None,
    };
    let whole = Span::new(span.start, span.start + line.trim_end().len() as u32);
    Some(
        Diagnostic::error(whole, "there is no preprocessor", "not a part of the language")
            .help(help),
    )
}

fn stray(text: &str, span: Span) -> Diagnostic {
    let error = Diagnostic::error(
        span,
        format!("unexpected character {}", quoted(text)),
        "no token starts with it",
    );
    let help = match text {
        "#" => "comments start with `//`",
        "?" => "there is no conditional operator; use `if` and `else`",
        "~" => "to flip all bits of `x`, write `x ^ -1`",
        "." => "a range is written `a..b`; there are no fields",
        ":" => "there are no types and no labels: every value is an integer",
        "“" | "”" | "‘" | "’" => "there are no strings",
        "×" => "to multiply, write `*`",
        "≤" => "write `<=`",
        "≥" => "write `>=`",
        "≠" => "write `!=`",
        "−" | "–" | "—" => "write the minus of ASCII, `-`",
        "\u{a0}" => "this is a space that does not break; type an ordinary one",
        _ => return error,
    };
    error.help(help)
}

fn bad_number(text: &str, span: Span) -> Option<Diagnostic> {
    match magnitude(text) {
        Magnitude::Is(_) if !text.starts_with("0x") && text.len() > 1 && text.starts_with('0') => {
            Some(Diagnostic::warning(
                span,
                "a leading zero does not make a number octal",
                "this is decimal",
            ))
        }
        // Whether a minus stands before it is for the parser to see.
        Magnitude::Is(_) => None,
        Magnitude::TooLarge => Some(too_large(span)),
        Magnitude::NotANumber if text.starts_with("0x") || text.starts_with("0X") => Some(
            Diagnostic::error(span, format!("{} is not a number", quoted(text)), "")
                .help("a hexadecimal number is `0x` and digits from 0 to 9 and a to f"),
        ),
        Magnitude::NotANumber => Some(Diagnostic::error(
            span,
            format!("{} is neither a number nor a name", quoted(text)),
            "a number has digits only, and a name does not start with one",
        )),
    }
}

/// A number that does not fit.
pub(crate) fn too_large(span: Span) -> Diagnostic {
    Diagnostic::error(span, "this number is too large", "numbers have 64 bits, one for the sign")
        .help(format!("the largest is {}", i64::MAX))
}

/// What a number's text stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Magnitude {
    /// A number of at most 2⁶³, which only fits behind a minus.
    Is(u64),
    TooLarge,
    NotANumber,
}

/// The number that `text` spells, in decimal or behind `0x` in hexadecimal digits.
pub(crate) fn magnitude(text: &str) -> Magnitude {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Magnitude::NotANumber;
    }
    let value = u64::from_str_radix(digits, radix).ok();
    value.filter(|&value| value <= 1 << 63).map_or(Magnitude::TooLarge, Magnitude::Is)
}

// Calls of methods, as other languages have them, and the statements that stand for them.

/// What to write for a `.` at `span` that stands between the token `before` and the name of a method
/// in `rest`.
fn method_call(
    source: &Source,
    before: Option<&Token>,
    rest: &str,
    span: Span,
) -> Option<Diagnostic> {
    let receiver = match before?.kind {
        TokenKind::Name => short(source.slice(before?.span)),
        TokenKind::RightBracket => "m[i]".to_owned(),
        _ => return None,
    };
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let method = &rest[..end.unwrap_or(rest.len())];
    if !rest[method.len()..].trim_start().starts_with('(') {
        return None;
    }
    let statement = statement(method, &receiver)?;
    let whole = Span::new(span.start, span.end + method.len() as u32);
    let message = format!("there are no methods, found `.{method}`");
    let error = Diagnostic::error(whole, message, "not a part of the language");
    Some(error.help(format!("write `{statement}`")))
}

fn statement(method: &str, receiver: &str) -> Option<String> {
    Some(match method {
        "lock" | "acquire" | "Lock" => format!("lock({receiver});"),
        "unlock" | "release" | "Unlock" => format!("unlock({receiver});"),
        "wait" => format!("wait({receiver}, m);"),
        "notify" | "notify_one" | "notifyOne" | "signal" => format!("notify({receiver});"),
        "notify_all" | "notifyAll" | "broadcast" => format!("notifyall({receiver});"),
        "join" => format!("join({receiver});"),
        "fetch_add" | "fetchAdd" | "getAndAdd" => {
            format!("let old = fetchadd({receiver}, …);")
        }
        "compare_exchange" | "compare_exchange_strong" | "compareAndSet" => {
            format!("let ok = cas({receiver}, old, new);")
        }
        _ => return None,
    })
}
