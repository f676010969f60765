//! How text formats spell operations: `w(x)`, `ar.acquire(flag)`, `fence(seqcst)`, `branch`.
//!
//! The word goes to the first parenthesis, the operand from there to the last, so an operand can
//! hold parentheses. Nothing is allocated; reads, writes, acquires and releases, which are most of
//! any trace, are known by their first bytes.

use reweave_trace::{MemoryOrder, NameKind, OpCode, OpKind};

use crate::error::{ReadErrorKind, excerpt};

const READ: OpCode = plain(OpKind::Read);
const WRITE: OpCode = plain(OpKind::Write);
const ACQUIRE: OpCode = plain(OpKind::Acquire);
const RELEASE: OpCode = plain(OpKind::Release);

const fn plain(kind: OpKind) -> OpCode {
    OpCode::new(kind, MemoryOrder::SeqCst)
}

/// The operation that `text` spells, and the name of its operand: empty where it has none, and
/// nowhere else.
#[inline]
pub(crate) fn parse(text: &[u8]) -> Result<(OpCode, &[u8]), ReadErrorKind> {
    match text {
        [b'r', b'(', operand @ .., b')'] if !operand.is_empty() => Ok((READ, operand)),
        [b'w', b'(', operand @ .., b')'] if !operand.is_empty() => Ok((WRITE, operand)),
        [b'a', b'c', b'q', b'(', operand @ .., b')'] if !operand.is_empty() => {
            Ok((ACQUIRE, operand))
        }
        [b'r', b'e', b'l', b'(', operand @ .., b')'] if !operand.is_empty() => {
            Ok((RELEASE, operand))
        }
        _ => parse_any(text),
    }
}

fn parse_any(text: &[u8]) -> Result<(OpCode, &[u8]), ReadErrorKind> {
    let Some(Parts { word, order, operand }) = take_apart(text) else {
        return match kind_of(text) {
            Some(kind) if is_bare(kind) => Ok((plain(kind), &[])),
            Some(kind) => Err(expected(&form(kind), text)),
            None => Err(unknown(text)),
        };
    };
    let kind = kind_of(word).ok_or_else(|| unknown(text))?;
    match kind {
        OpKind::Fence if order.is_none() => {
            let order = order_of(operand).ok_or_else(|| expected(&form(kind), text))?;
            return Ok((OpCode::new(kind, order), &[]));
        }
        _ if is_bare(kind) && order.is_none() && operand.is_empty() => {
            return Ok((plain(kind), &[]));
        }
        _ if kind.operand() == NameKind::None => return Err(expected(&form(kind), text)),
        _ => {}
    }
    let order = match order {
        None => MemoryOrder::SeqCst,
        Some(order) if kind.has_order() => expect_order(order)?,
        Some(_) => {
            let form = format!("{}, which has no memory order", form(kind));
            return Err(expected(&form, text));
        }
    };
    if operand.is_empty() {
        return Err(expected("a name between the parentheses", text));
    }
    Ok((OpCode::new(kind, order), operand))
}

/// The word, the order after its dot, and what is between the parentheses.
struct Parts<'a> {
    word: &'a [u8],
    order: Option<&'a [u8]>,
    operand: &'a [u8],
}

fn take_apart(text: &[u8]) -> Option<Parts<'_>> {
    let head = text.strip_suffix(b")")?;
    let open = memchr::memchr(b'(', head)?;
    let (word, operand) = (&head[..open], &head[open + 1..]);
    Some(match memchr::memchr(b'.', word) {
        Some(dot) => Parts { word: &word[..dot], order: Some(&word[dot + 1..]), operand },
        None => Parts { word, order: None, operand },
    })
}

/// Whether nothing follows the word.
fn is_bare(kind: OpKind) -> bool {
    kind.operand() == NameKind::None && !kind.has_order()
}

/// How an operation of `kind` is to be spelled.
fn form(kind: OpKind) -> String {
    match kind {
        OpKind::Fence => format!("`fence(order)` with {}", orders()),
        _ if is_bare(kind) => format!("`{}` alone", kind.as_str()),
        _ => format!("`{}(name)`", kind.as_str()),
    }
}

fn orders() -> String {
    let words = MemoryOrder::ALL.map(|order| format!("`{}`", order.as_str()));
    format!("a memory order, one of {}", words.join(", "))
}

fn unknown(text: &[u8]) -> ReadErrorKind {
    let length = text.iter().position(|&byte| byte == b'(').unwrap_or(text.len());
    let word = text[..length].to_ascii_lowercase();
    if let Some(kind) = kind_of(&word).or_else(|| meant_by(&word)) {
        return expected(&form(kind), text);
    }
    ReadErrorKind::NotAnOperation(excerpt(text))
}

/// The operation that other tools call `word`.
fn meant_by(word: &[u8]) -> Option<OpKind> {
    Some(match word {
        b"read" | b"load" => OpKind::Read,
        b"write" | b"store" => OpKind::Write,
        b"lock" | b"acquire" => OpKind::Acquire,
        b"unlock" | b"release" => OpKind::Release,
        b"rlock" | b"rdlock" => OpKind::AcquireShared,
        b"runlock" | b"rdunlock" => OpKind::ReleaseShared,
        b"request" => OpKind::Request,
        b"spawn" | b"start" | b"create" => OpKind::Fork,
        b"signal" => OpKind::Notify,
        b"broadcast" | b"notify_all" => OpKind::NotifyAll,
        _ => return None,
    })
}

fn expected(form: &str, found: &[u8]) -> ReadErrorKind {
    ReadErrorKind::Malformed(format!("expected {form}, found `{}`", excerpt(found)))
}

/// The memory order that `word` spells.
fn order_of(word: &[u8]) -> Option<MemoryOrder> {
    MemoryOrder::ALL.into_iter().find(|order| order.as_str().as_bytes() == word)
}

/// The memory order that `word` spells, where nothing else can stand.
pub(crate) fn expect_order(word: &[u8]) -> Result<MemoryOrder, ReadErrorKind> {
    order_of(word).ok_or_else(|| expected(&orders(), word))
}

/// The kind of operation that `word` spells.
pub(crate) fn kind_of(word: &[u8]) -> Option<OpKind> {
    str::from_utf8(word).ok().and_then(OpKind::parse)
}

/// The whole number that `text` spells, the only way it is written.
pub(crate) fn value_of(text: &[u8]) -> Result<i64, ReadErrorKind> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
    // What is written is to be what was read: no plus sign, no leading zeros.
    let plain = match text.strip_prefix(b"-").unwrap_or(text) {
        [b'0'] => text.len() == 1,
        [first, ..] => first.is_ascii_digit() && *first != b'0',
        [] => false,
    };
    number.filter(|_| plain).ok_or_else(|| {
        let form = "a whole number such as `5` or `-3`, without leading zeros, as the value";
        expected(form, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_read_as_it_is_spelled() {
        for kind in OpKind::ALL {
            assert_eq!(kind_of(kind.as_str().as_bytes()), Some(kind));
        }
    }

    #[test]
    fn an_operand_goes_to_the_last_parenthesis() {
        for (text, operand) in [
            ("w(V60977b14[0])", "V60977b14[0]"),
            ("acq(java.lang.Object(12))", "java.lang.Object(12)"),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap().1, operand.as_bytes());
        }
        assert_eq!(parse(b"ar.acquire(a.b)").unwrap().1, b"a.b");
    }

    #[test]
    fn a_value_has_one_spelling() {
        for value in [0, 5, -3, i64::MIN, i64::MAX] {
            assert_eq!(value_of(value.to_string().as_bytes()).unwrap(), value);
        }
        for text in ["", "-", "+5", "05", "-0", "5 ", "9223372036854775808", "0x1"] {
            assert!(value_of(text.as_bytes()).is_err(), "{text}");
        }
    }
}
