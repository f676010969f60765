//! Calls of methods, as other languages have them, and the statements that stand for them.

use super::{Token, TokenKind};
use crate::diagnostic::{Diagnostic, short};
use crate::source::{Source, Span};

/// What to write for a `.` at `span` that stands between the token `before` and the name of a method
/// in `rest`.
pub(super) fn fault(
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
