//! Drawing a trace in columns.

use std::io::{self, Write};

use reweave_base::{Id, IndexVec};
use reweave_trace::{Event, EventId, NameKind, Op, ThreadId, Trace};

use super::EQUALS;
use crate::error::excerpt;
use crate::lines::{LineSink, refused};
use crate::operation;
use crate::std_text::NO_EVENTS;

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
