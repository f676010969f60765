//! From lines to events: what the text formats have in common.
//!
//! Blank lines and lines that start with `#` are skipped. What events cannot tell when the trace
//! is put together, the line they stood on, is kept as the few places where lines were skipped.

use reweave_base::Id;
use reweave_trace::{EventId, TraceBuilder};

use super::{Line, Lines, zero_byte};
use crate::error::{Failure, Place, ReadErrorKind};

/// A way of writing events on lines.
pub(crate) trait LineFormat {
    /// Adds what `line` says to `builder`; all or nothing where the line is UTF-8.
    fn take(&mut self, line: &[u8], builder: &mut TraceBuilder) -> Result<(), ReadErrorKind>;

    /// Says whether the text as a whole is a trace, all lines taken.
    fn end(&self, _builder: &TraceBuilder) -> Result<(), ReadErrorKind> {
        Ok(())
    }
}

/// The events of a text, not yet known to be well formed.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// The events.
    pub(crate) builder: TraceBuilder,
    /// On which lines they stood.
    pub(crate) line_map: LineMap,
}

/// On which line each event stood: an entry for each event that does not stand on the line after
/// the event before it.
#[derive(Debug, Default)]
pub(crate) struct LineMap {
    breaks: Vec<(usize, u64)>,
    /// What is to be added to an event's index to get its line, as things stand.
    ahead: u64,
}

impl LineMap {
    #[inline]
    fn record(&mut self, event: usize, line: u64) {
        if line - event as u64 != self.ahead || self.breaks.is_empty() {
            self.ahead = line - event as u64;
            self.breaks.push((event, line));
        }
    }

    /// The line of `event`; none if there is no such event.
    pub(crate) fn line(&self, event: EventId) -> Option<u64> {
        let after = self.breaks.partition_point(|&(first, _)| first <= event.index());
        let (first, line) = *self.breaks.get(after.checked_sub(1)?)?;
        Some(line + (event.index() - first) as u64)
    }
}

/// Whether `line` is blank or a comment.
#[inline]
pub(crate) fn is_skipped(line: &[u8]) -> bool {
    match line.first() {
        // What follows `#` in ASCII is neither a blank nor `#`; most lines start so.
        Some(first) if *first > b'#' => false,
        _ => matches!(line.trim_ascii_start().first(), None | Some(b'#')),
    }
}

/// Reads all events.
pub(crate) fn read_lines(
    mut format: impl LineFormat,
    lines: &mut Lines<'_>,
) -> Result<Parsed, Failure> {
    let mut parsed = Parsed::default();
    let repairs = lines.repairs();
    loop {
        let kept = parsed.builder.len();
        let line = match lines.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err((place, ReadErrorKind::Damaged { reason, .. })) => {
                return Err((place, damaged(reason, kept)));
            }
            Err(failure) => return Err(failure),
        };
        if is_skipped(line.text) {
            continue;
        }
        if let Err(kind) = take(&mut format, line, &mut parsed.builder) {
            parsed.builder.note_repair(refuse(line, kind, kept, repairs)?);
        } else if parsed.builder.len() > kept {
            parsed.line_map.record(kept, line.number);
        }
    }
    let kept = parsed.builder.len();
    if let Some(reason) = lines.broken() {
        if kept == 0 {
            return Err((Place::File, damaged(reason.to_owned(), kept)));
        }
        parsed.builder.note_repair(format!("{reason}: kept the {kept} events before that"));
    }
    format.end(&parsed.builder).map_err(|kind| (Place::File, kind))?;
    Ok(parsed)
}

#[inline]
fn take(
    format: &mut impl LineFormat,
    line: Line<'_>,
    builder: &mut TraceBuilder,
) -> Result<(), ReadErrorKind> {
    if line.may_be_binary
        && let Some(kind) = zero_byte(line.text)
    {
        return Err(kind);
    }
    // A line that is cut inside a character must not leave its first names behind.
    if !line.ended && std::str::from_utf8(line.text).is_err() {
        return Err(ReadErrorKind::NotUtf8);
    }
    format.take(line.text, builder)
}

/// A last line without a line feed was probably cut, and can be done without; no other can.
#[cold]
fn refuse(
    line: Line<'_>,
    kind: ReadErrorKind,
    kept: usize,
    repairs: bool,
) -> Result<String, Failure> {
    if line.ended || kept == 0 {
        Err((Place::Line(line.number), kind))
    } else if repairs {
        Ok(format!("line {}, the last, is cut and was left out: {kind}", line.number))
    } else {
        Err((Place::Line(line.number), damaged(format!("the last line is cut: {kind}"), kept)))
    }
}

fn damaged(reason: String, kept: usize) -> ReadErrorKind {
    match kept {
        0 => ReadErrorKind::Malformed(reason),
        _ => ReadErrorKind::Damaged { reason, kept },
    }
}
