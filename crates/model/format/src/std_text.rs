//! RAPID text: `thread|operation|location` on a line, with `|value` after it where it is known.
//!
//! Blank lines and lines that start with `#` are skipped. A location is any text without `|`,
//! also none. Everything else is taken as it stands, blanks included, so that what is written
//! again is byte for byte what was read, but for skipped lines and carriage returns.
//!
//! Writing refuses a trace with names that would be read differently. Call stacks, start values
//! of semaphores, sizes of barriers and the layers above the events are left out.
//!
//! Linear in the text; nothing is allocated for names that came before.

use std::io::{self, Write};

use memchr::memchr;
use reweave_trace::{Event, NameKind, Names, Trace, TraceBuilder};

use crate::error::{Failure, ReadErrorKind, excerpt};
use crate::lines::{LineFormat, LineSink, Lines, Parsed, read_lines, refused};
use crate::operation;

/// What stands in a file that has no events.
pub(crate) const NO_EVENTS: &str = "# no events";

/// Reads all events.
pub(crate) fn read(lines: &mut Lines<'_>) -> Result<Parsed, Failure> {
    read_lines(StdText, lines)
}

struct StdText;

impl LineFormat for StdText {
    #[inline]
    fn take(&mut self, line: &[u8], builder: &mut TraceBuilder) -> Result<(), ReadErrorKind> {
        let Some((thread, rest)) = split(line) else { return Err(wrong_fields(line)) };
        let Some((operation, rest)) = split(rest) else { return Err(wrong_fields(line)) };
        let (location, value) = match split(rest) {
            None => (rest, None),
            Some((location, value)) if memchr(b'|', value).is_none() => {
                (location, Some(operation::value_of(value)?))
            }
            Some(_) => return Err(wrong_fields(line)),
        };
        if thread.trim_ascii_start().is_empty() {
            return Err(wrong_fields(line));
        }
        let (code, operand) = operation::parse(operation)?;
        let names = builder.names();
        let thread = intern(names, NameKind::Thread, thread)?;
        let operand = intern(names, code.kind().operand(), operand)?;
        let site = names.sites.intern_bytes(location).map_err(|_| ReadErrorKind::NotUtf8)?;
        builder.push_indexes(thread, code, operand, site.number() - 1);
        if let Some(value) = value {
            builder.value(value);
        }
        Ok(())
    }
}

#[inline]
fn split(text: &[u8]) -> Option<(&[u8], &[u8])> {
    memchr(b'|', text).map(|bar| (&text[..bar], &text[bar + 1..]))
}

#[inline]
fn intern(names: &mut Names, kind: NameKind, name: &[u8]) -> Result<u32, ReadErrorKind> {
    names.intern(kind, name).map_err(|_| ReadErrorKind::NotUtf8)
}

#[cold]
fn wrong_fields(line: &[u8]) -> ReadErrorKind {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b'|').collect();
    let found = excerpt(line);
    ReadErrorKind::Malformed(match fields.len() {
        1 => format!("expected `thread|operation|location`, found `{found}`"),
        2 => format!("expected `|` and a location after the operation, found `{found}`"),
        3 | 4 => format!("expected the name of a thread before the first `|`, found `{found}`"),
        count => format!(
            "expected at most four fields, `thread|operation|location|value`, \
             found {count}: `{found}`"
        ),
    })
}

/// Writes `trace` to `out`.
///
/// # Errors
/// If `out` fails, or a name of the trace would not be read again as it is.
pub fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let mut sink = LineSink::new(out);
    let names = trace.names();
    if trace.is_empty() {
        sink.push(NO_EVENTS);
        sink.end_line()?;
    }
    for (id, event) in trace.events() {
        let Event { thread, op, site } = event;
        let (code, operand) = op.encode();
        let thread = names.threads.name(thread);
        let operand = names.name(code.kind().operand(), operand);
        let location = names.location(site);
        let fault = thread_fault(thread)
            .map(|fault| ("thread", thread, fault))
            .or_else(|| text_fault(location).map(|fault| ("location", location, fault)))
            .or_else(|| match code.kind().operand() {
                NameKind::None => None,
                _ => operand_fault(operand).map(|fault| ("operand", operand, fault)),
            });
        if let Some((part, name, fault)) = fault {
            return Err(refused(format_args!(
                "event {}: RAPID text cannot carry the {part} `{}`: {fault}",
                id.number(),
                excerpt(name.as_bytes())
            )));
        }
        sink.push(thread);
        sink.push("|");
        sink.push_display(names.spell(op));
        sink.push("|");
        sink.push(location);
        if let Some(value) = trace.value(id) {
            sink.push("|");
            sink.push_display(value);
        }
        sink.end_line()?;
    }
    sink.finish()
}

/// Why a thread called `name` would be read as something else.
fn thread_fault(name: &str) -> Option<&'static str> {
    if name.trim_ascii().is_empty() {
        return Some("it is blank");
    }
    match name.trim_ascii_start().as_bytes()[0] {
        b'#' => Some("the line would be a comment"),
        b'{' => Some("the file would be taken for JSON lines"),
        _ if name.starts_with('\u{feff}') => Some("it starts with a byte order mark"),
        _ => text_fault(name),
    }
}

fn operand_fault(name: &str) -> Option<&'static str> {
    if name.is_empty() { Some("it is empty") } else { text_fault(name) }
}

fn text_fault(text: &str) -> Option<&'static str> {
    let at = memchr::memchr3(b'|', b'\n', b'\r', text.as_bytes())
        .or_else(|| memchr(0, text.as_bytes()))?;
    Some(match text.as_bytes()[at] {
        b'|' => "it holds `|`",
        0 => "it holds a zero byte",
        _ => "it holds a line end",
    })
}
