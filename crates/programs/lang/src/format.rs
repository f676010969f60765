//! The one layout of a program.
//!
//! The layout follows from the tokens alone: one statement a line, four spaces a block, spaces
//! around what stands between two operands. Tokens are printed as they are, parentheses included,
//! so the program stays the same; of the spaces and line breaks of the source, only a single blank
//! line between statements survives, and whether a comment stands behind something on its line.
//!
//! What is promised: the tokens and the comments of the result are those of the source, in the same
//! order, and the result is its own layout. Time is linear.

use crate::check::{has_error, limited, read};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Lexed, TokenKind};
use crate::source::{Source, Span};

/// One level of indentation.
const INDENT: &str = "    ";

/// The text of `source` in the one layout; what is wrong with its syntax, if it cannot be laid out.
/// Names need not be declared.
///
/// ```
/// let source = reweave_lang::Source::new("a.rw", "shared   x ;main{x=1;}");
/// let text = reweave_lang::format(&source).unwrap();
/// assert_eq!(text, "shared x;\n\nmain {\n    x = 1;\n}\n");
/// ```
///
/// # Errors
/// If the text does not follow the grammar.
pub fn format(source: &Source) -> Result<String, Vec<Diagnostic>> {
    let (lexed, _, diagnostics) = read(source);
    if has_error(&diagnostics) {
        return Err(limited(diagnostics));
    }
    let pieces = pieces(source, &lexed);
    let mut layout =
        Layout { out: String::with_capacity(source.text().len()), depth: 0, last: None };
    let mut is_forced = None;
    for (at, piece) in pieces.iter().enumerate() {
        if let Kind::Token(TokenKind::End) = piece.kind {
            break;
        }
        layout.push(source, &pieces, at, &mut is_forced);
    }
    if !layout.out.is_empty() {
        layout.out.push('\n');
    }
    Ok(layout.out)
}

/// A token or a comment.
#[derive(Clone, Copy, Debug)]
struct Piece {
    kind: Kind,
    span: Span,
    /// How many lines end between the piece before and this one.
    breaks: usize,
    /// The tokens before and behind, comments left out; none at the start, and the piece itself is
    /// neither.
    before: Option<TokenKind>,
    after: TokenKind,
    /// Whether the token is the sign of a value, as the second in `a - -b`.
    is_sign: bool,
    /// Whether no token follows on its line.
    ends_line: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Token(TokenKind),
    LineComment,
    BlockComment,
}

/// What stands between two pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    Nothing,
    Space,
    Line,
    Blank,
}

impl Piece {
    const fn is_comment(&self) -> bool {
        matches!(self.kind, Kind::LineComment | Kind::BlockComment)
    }

    /// Whether it stands between statements or declarations: for a token, whether one ends before
    /// it.
    fn is_between(&self) -> bool {
        let next = match self.kind {
            Kind::Token(kind) => kind,
            _ => self.after,
        };
        match (self.before, next) {
            (None, _) | (_, TokenKind::RightBrace | TokenKind::End) => true,
            (Some(TokenKind::Semicolon | TokenKind::LeftBrace), _) => true,
            (Some(TokenKind::RightBrace), TokenKind::Else | TokenKind::Semicolon) => false,
            (Some(TokenKind::RightBrace), _) => true,
            _ => false,
        }
    }

    fn token(&self) -> Option<TokenKind> {
        if let Kind::Token(kind) = self.kind { Some(kind) } else { None }
    }
}

/// The tokens and comments of `source` in order.
fn pieces(source: &Source, lexed: &Lexed) -> Vec<Piece> {
    let text = source.text();
    let mut comments = lexed.comments.iter().copied().peekable();
    let mut pieces: Vec<Piece> = Vec::with_capacity(lexed.tokens.len() + lexed.comments.len());
    let (mut before, mut end) = (None, 0_u32);
    let mut breaks = |span: Span| {
        let count = text[end as usize..span.start as usize].matches('\n').count();
        end = span.end;
        count
    };
    for token in &lexed.tokens {
        while let Some(span) = comments.next_if(|comment| comment.start < token.span.start) {
            let is_line = source.slice(span).starts_with("//");
            let kind = if is_line { Kind::LineComment } else { Kind::BlockComment };
            let breaks = breaks(span);
            let after = token.kind;
            let (is_sign, ends_line) = (false, false);
            pieces.push(Piece { kind, span, breaks, before, after, is_sign, ends_line });
        }
        let ends_operand = matches!(
            before,
            Some(
                TokenKind::Name
                    | TokenKind::Number
                    | TokenKind::RightParen
                    | TokenKind::RightBracket
            )
        );
        pieces.push(Piece {
            kind: Kind::Token(token.kind),
            span: token.span,
            breaks: breaks(token.span),
            before,
            after: token.kind,
            is_sign: match token.kind {
                TokenKind::Not => true,
                TokenKind::Minus => !ends_operand,
                _ => false,
            },
            ends_line: false,
        });
        before = Some(token.kind);
    }
    let mut ends_line = true;
    for piece in pieces.iter_mut().rev() {
        piece.ends_line = ends_line;
        ends_line = piece.breaks > 0 || (ends_line && piece.is_comment());
    }
    pieces
}

struct Layout {
    out: String,
    /// How many braces are open.
    depth: usize,
    last: Option<Piece>,
}

impl Layout {
    /// Prints the piece at `at`. `is_forced` says for the pieces up to the next token whether a
    /// blank line must still come among them.
    fn push(&mut self, source: &Source, pieces: &[Piece], at: usize, is_forced: &mut Option<bool>) {
        let piece = pieces[at];
        if is_forced.is_none() {
            *is_forced = Some(self.depth == 0 && needs_blank(pieces, at));
        }
        let mut gap = self.gap(&piece);
        if gap == Gap::Line && *is_forced == Some(true) {
            gap = Gap::Blank;
            *is_forced = Some(false);
        }
        if piece.token() == Some(TokenKind::RightBrace) {
            self.depth = self.depth.saturating_sub(1);
        }
        self.space(gap, &piece);
        match piece.kind {
            Kind::Token(_) => self.out.push_str(source.slice(piece.span)),
            Kind::LineComment => self.out.push_str(source.slice(piece.span).trim_end()),
            Kind::BlockComment => {
                for (line, text) in source.slice(piece.span).split('\n').enumerate() {
                    self.out.push_str(if line == 0 { "" } else { "\n" });
                    self.out.push_str(text.trim_end());
                }
            }
        }
        if piece.token() == Some(TokenKind::LeftBrace) {
            self.depth += 1;
        }
        if !piece.is_comment() {
            *is_forced = None;
        }
        self.last = Some(piece);
    }

    /// What stands before `piece`.
    fn gap(&self, piece: &Piece) -> Gap {
        let Some(last) = self.last else { return Gap::Nothing };
        let line = match piece.breaks {
            0 | 1 => Gap::Line,
            _ if last.token() == Some(TokenKind::LeftBrace) => Gap::Line,
            _ if piece.token() == Some(TokenKind::RightBrace) => Gap::Line,
            _ => Gap::Blank,
        };
        if !piece.is_between() {
            return inside_statement(&last, piece);
        }
        if piece.is_comment() {
            let is_trailing = piece.breaks == 0 && piece.ends_line;
            // What follows a comment on its line stays there.
            let is_joined = piece.breaks == 0 && last.kind == Kind::BlockComment;
            return if is_trailing || is_joined { Gap::Space } else { line };
        }
        let is_end = piece.token() == Some(TokenKind::RightBrace);
        match last.kind {
            Kind::Token(TokenKind::LeftBrace) if is_end => Gap::Nothing,
            Kind::BlockComment if piece.breaks == 0 && !is_end => Gap::Space,
            _ => line,
        }
    }

    fn space(&mut self, gap: Gap, piece: &Piece) {
        match gap {
            Gap::Nothing => return,
            Gap::Space => return self.out.push(' '),
            Gap::Line => self.out.push('\n'),
            Gap::Blank => self.out.push_str("\n\n"),
        }
        let starts_part = matches!(piece.token(), Some(TokenKind::Else | TokenKind::LeftBrace));
        let is_continued = !piece.is_between() && !starts_part;
        for _ in 0..self.depth + usize::from(is_continued) {
            self.out.push_str(INDENT);
        }
    }
}

/// Whether a blank line must come among the pieces from `at` to the next token, at the outermost
/// level, and the source has none there: around everything with a block.
fn needs_blank(pieces: &[Piece], at: usize) -> bool {
    let piece = &pieces[at];
    let Some(before) = piece.before.filter(|_| piece.is_between()) else { return false };
    let has_block = matches!(piece.after, TokenKind::Fn | TokenKind::Thread | TokenKind::Main);
    let is_needed = has_block || before == TokenKind::RightBrace;
    if !is_needed || piece.after == TokenKind::End {
        return false;
    }
    let token = pieces[at..].iter().position(|piece| !piece.is_comment()).unwrap_or(0);
    pieces[at..=at + token].iter().all(|piece| piece.breaks < 2)
}

/// What stands between two pieces of one statement.
fn inside_statement(last: &Piece, piece: &Piece) -> Gap {
    match (last.kind, piece.kind) {
        (Kind::LineComment, _) => Gap::Line,
        (_, Kind::LineComment) if piece.breaks > 0 => Gap::Line,
        (_, Kind::LineComment) => Gap::Space,
        (Kind::BlockComment, Kind::BlockComment) => Gap::Space,
        (Kind::BlockComment, Kind::Token(token)) => match token {
            TokenKind::RightParen
            | TokenKind::RightBracket
            | TokenKind::Comma
            | TokenKind::Semicolon => Gap::Nothing,
            _ => Gap::Space,
        },
        (Kind::Token(TokenKind::LeftParen | TokenKind::LeftBracket), Kind::BlockComment) => {
            Gap::Nothing
        }
        (_, Kind::BlockComment) => Gap::Space,
        (Kind::Token(before), Kind::Token(token)) => {
            let are_minuses = before == TokenKind::Minus && token == TokenKind::Minus;
            let is_signed = last.is_sign && !are_minuses;
            if is_signed || is_tight(before, token) { Gap::Nothing } else { Gap::Space }
        }
    }
}

/// Whether two tokens of one statement stand together.
const fn is_tight(before: TokenKind, token: TokenKind) -> bool {
    use TokenKind as T;
    let closes = matches!(
        token,
        T::Semicolon | T::Comma | T::RightParen | T::RightBracket | T::Dots | T::DotsEqual
    );
    let opens = matches!(before, T::LeftParen | T::LeftBracket | T::Dots | T::DotsEqual);
    let takes_arguments = matches!(
        before,
        T::Name
            | T::Lock
            | T::Unlock
            | T::Wait
            | T::Notify
            | T::NotifyAll
            | T::Join
            | T::Assert
            | T::Assume
            | T::Cas
            | T::FetchAdd
    );
    closes
        || opens
        || (takes_arguments && matches!(token, T::LeftParen))
        || matches!((before, token), (T::Name, T::LeftBracket))
}
