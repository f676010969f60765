//! Columns: a trace as papers draw it, a column for each thread and an event on each line.
//!
//! ```text
//! t1        t2
//! acq(m)
//! w(x)                @a.c:12
//! rel(m)
//!           r(x)      @a.c:30 = 5
//! ```
//!
//! The first line names the threads; where a name starts, its column does. An operation belongs
//! to the last column that starts at or before it, or to the first. After it may come `@` with
//! the location, which goes to ` = ` or the end of the line, and ` = ` with the value. An event
//! without `@` has its number, counted from 1, as its location. Blank lines and lines that start
//! with `#` are skipped.
//!
//! Names of threads and operands hold no blanks. Writing refuses a trace with names that would be
//! read differently. Call stacks, start values of semaphores, sizes of barriers and the layers
//! above the events are left out.
//!
//! Linear in the text.

use std::io::{self, Write};

use memchr::memmem;
use reweave_base::{Id, IndexVec};
use reweave_trace::{Event, EventId, NameKind, Op, ThreadId, Trace, TraceBuilder};

use crate::error::{Failure, ReadErrorKind, excerpt};
use crate::lines::{LineFormat, LineSink, Lines, Parsed, read_lines, refused};
use crate::operation;
use crate::std_text::NO_EVENTS;

/// Before a value.
const EQUALS: &str = " = ";

/// How far apart tabulators are, in a heading.
const TABULATOR: usize = 8;

/// Reads all events.
pub(crate) fn read(lines: &mut Lines<'_>) -> Result<Parsed, Failure> {
    read_lines(Drawing::default(), lines)
}

/// What the heading says: where each thread's column starts, from left to right.
#[derive(Default)]
struct Drawing {
    columns: Vec<Column>,
}

struct Column {
    start: usize,
    thread: u32,
}

/// An event's text, taken apart.
struct Cell<'a> {
    operation: &'a [u8],
    location: Option<&'a [u8]>,
    value: Option<i64>,
}

impl LineFormat for Drawing {
    fn take(&mut self, line: &[u8], builder: &mut TraceBuilder) -> Result<(), ReadErrorKind> {
        if std::str::from_utf8(line).is_err() {
            return Err(ReadErrorKind::NotUtf8);
        }
        if self.columns.is_empty() {
            return self.take_heading(line, builder);
        }
        let start = line.iter().position(|&byte| byte != b' ').unwrap_or(line.len());
        if line[start..].first() == Some(&b'\t') {
            return Err(ReadErrorKind::Malformed(
                "expected blanks before the operation, found a tabulator, \
                 which does not say in which column it stands"
                    .into(),
            ));
        }
        let cell = take_apart(&line[start..])?;
        let (code, operand) = operation::parse(cell.operation)?;
        let number = (builder.len() + 1).to_string();
        let location = cell.location.unwrap_or(number.as_bytes());
        let names = builder.names();
        let operand = names.intern(code.kind().operand(), operand);
        let operand = operand.map_err(|_| ReadErrorKind::NotUtf8)?;
        let site = names.sites.intern_bytes(location).map_err(|_| ReadErrorKind::NotUtf8)?;
        builder.push_indexes(self.thread_at(start), code, operand, site.number() - 1);
        if let Some(value) = cell.value {
            builder.value(value);
        }
        Ok(())
    }

    fn end(&self, builder: &TraceBuilder) -> Result<(), ReadErrorKind> {
        // Any line of prose could be a heading.
        if builder.is_empty() && !self.columns.is_empty() {
            let reason = "no line is an event, a JSON object, or below a heading of columns";
            return Err(ReadErrorKind::Unrecognised(reason.into()));
        }
        Ok(())
    }
}

impl Drawing {
    fn take_heading(
        &mut self,
        line: &[u8],
        builder: &mut TraceBuilder,
    ) -> Result<(), ReadErrorKind> {
        let text = std::str::from_utf8(line).map_err(|_| ReadErrorKind::NotUtf8)?;
        for (start, name) in words(text) {
            if operation::parse(name.as_bytes()).is_ok() {
                return Err(ReadErrorKind::Malformed(format!(
                    "expected the names of the threads on the first line, \
                     found the operation `{}`",
                    excerpt(name.as_bytes())
                )));
            }
            if builder.names().threads.get(name).is_some() {
                return Err(ReadErrorKind::Malformed(format!(
                    "expected a column for each thread, found two of `{}`",
                    excerpt(name.as_bytes())
                )));
            }
            let thread = builder.thread(name).number() - 1;
            self.columns.push(Column { start, thread });
        }
        Ok(())
    }

    fn thread_at(&self, start: usize) -> u32 {
        let after = self.columns.partition_point(|column| column.start <= start);
        self.columns[after.saturating_sub(1)].thread
    }
}

/// The words of a heading, each with the character it starts at.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut position = 0;
    let mut starts = Vec::new();
    let mut inside = false;
    for (byte, character) in text.char_indices() {
        let blank = character.is_ascii_whitespace();
        if !blank && !inside {
            starts.push((position, byte));
        }
        inside = !blank;
        position = match character {
            '\t' => (position / TABULATOR + 1) * TABULATOR,
            _ => position + 1,
        };
    }
    starts.into_iter().map(move |(position, byte)| {
        let word = text[byte..].split(|c: char| c.is_ascii_whitespace()).next();
        (position, word.unwrap_or_default())
    })
}

fn take_apart(text: &[u8]) -> Result<Cell<'_>, ReadErrorKind> {
    let length = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let (operation, rest) = text.split_at(length);
    let rest = rest.trim_ascii();
    let mut cell = Cell { operation, location: None, value: None };
    if let Some(place) = rest.strip_prefix(b"@") {
        let (location, value) = match memmem::find(place, EQUALS.as_bytes()) {
            Some(at) => (&place[..at], Some(&place[at + EQUALS.len()..])),
            None => (place, None),
        };
        cell.location = Some(location.trim_ascii());
        cell.value = value.map(|value| operation::value_of(value.trim_ascii())).transpose()?;
    } else if let Some(value) = rest.strip_prefix(b"=") {
        cell.value = Some(operation::value_of(value.trim_ascii_start())?);
    } else if let Some(word) = rest.split(u8::is_ascii_whitespace).next()
        && !word.is_empty()
    {
        // What stands first must be an operation before the second can be one too many.
        operation::parse(operation)?;
        return Err(match operation::parse(word) {
            Ok(_) => ReadErrorKind::Simultaneous,
            Err(_) => ReadErrorKind::Malformed(format!(
                "expected `@location` or `= value` after the operation, found `{}`",
                excerpt(rest)
            )),
        });
    }
    Ok(cell)
}

// Drawing a trace in columns.

/// Between a column's longest entry and the next column.
const GAP: usize = 2;

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
        return sink.finish();
    }
    for (_, name) in names.threads.entries() {
        if let Some(fault) = thread_fault(name) {
            let name = excerpt(name.as_bytes());
            return Err(refused(format_args!("columns cannot carry the thread `{name}`: {fault}")));
        }
    }
    let (starts, width) = layout(trace);
    for (thread, name) in names.threads.entries() {
        sink.pad_to(starts[thread]);
        sink.push(name);
    }
    sink.end_line()?;
    for (id, event) in trace.events() {
        check(trace, id, event)?;
        sink.pad_to(starts[event.thread]);
        sink.push_display(names.spell(event.op));
        let location = names.location(event.site);
        if location != id.number().to_string() {
            sink.pad_to(width);
            sink.push("@");
            sink.push(location);
        }
        if let Some(value) = trace.value(id) {
            sink.push(EQUALS);
            sink.push_display(value);
        }
        sink.end_line()?;
    }
    sink.finish()
}

/// Where each column starts, and where the last ends.
fn layout(trace: &Trace) -> (IndexVec<ThreadId, usize>, usize) {
    let names = trace.names();
    let mut widths: IndexVec<ThreadId, usize> =
        names.threads.entries().map(|(_, name)| name.chars().count()).collect();
    for (_, Event { thread, op, .. }) in trace.events() {
        widths[thread] = widths[thread].max(spelled_width(trace, op));
    }
    let mut end = 0;
    let starts = widths
        .iter()
        .map(|width| {
            let start = end;
            end += width + GAP;
            start
        })
        .collect();
    (starts, end)
}

fn spelled_width(trace: &Trace, op: Op) -> usize {
    let (code, operand) = op.encode();
    match code.kind().operand() {
        NameKind::None => trace.names().spell(op).to_string().len(),
        kind => {
            let name = trace.names().name(kind, operand).chars().count();
            let order = if code.order() == Default::default() {
                0
            } else {
                ".".len() + code.order().as_str().len()
            };
            code.kind().as_str().len() + order + "()".len() + name
        }
    }
}

fn check(trace: &Trace, id: EventId, event: Event) -> io::Result<()> {
    let (code, operand) = event.op.encode();
    let kind = code.kind().operand();
    let operand = trace.names().name(kind, operand);
    let location = trace.names().location(event.site);
    let fault = match kind {
        NameKind::None => None,
        _ => operand_fault(operand).map(|fault| ("operand", operand, fault)),
    };
    let fault = fault.or_else(|| location_fault(location).map(|why| ("location", location, why)));
    match fault {
        None => Ok(()),
        Some((part, name, fault)) => Err(refused(format_args!(
            "event {}: columns cannot carry the {part} `{}`: {fault}",
            id.index() + 1,
            excerpt(name.as_bytes())
        ))),
    }
}

/// Why a thread called `name` would be read as something else.
fn thread_fault(name: &str) -> Option<&'static str> {
    if name.starts_with('#') {
        return Some("the heading would be a comment");
    }
    if name.starts_with('{') || name.contains('|') {
        return Some("the file would be taken for another format");
    }
    if name.starts_with('\u{feff}') {
        return Some("it starts with a byte order mark");
    }
    if name.chars().any(char::is_control) {
        return Some("it holds a control character");
    }
    if operation::parse(name.as_bytes()).is_ok() {
        return Some("it would be taken for an operation");
    }
    operand_fault(name)
}

fn operand_fault(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("it is empty")
    } else if name.bytes().any(|byte| byte.is_ascii_whitespace()) {
        Some("it holds a blank")
    } else if name.contains('\0') {
        Some("it holds a zero byte")
    } else {
        None
    }
}

fn location_fault(location: &str) -> Option<&'static str> {
    if location.contains(['\r', '\n']) {
        Some("it holds a line end")
    } else if location.contains('\0') {
        Some("it holds a zero byte")
    } else if location.trim_ascii() != location {
        Some("it starts or ends with a blank")
    } else if location.contains(EQUALS) || location.ends_with(EQUALS.trim_ascii_end()) {
        Some("` = ` would start a value")
    } else {
        None
    }
}
