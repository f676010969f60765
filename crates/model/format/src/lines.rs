//! The lines of a text, one after the other, in bounded memory.
//!
//! One buffer is filled again and again; a line is a slice of it. Lines are counted from 1 and
//! come without their line feed, and without a carriage return before it. A line longer than
//! [`LINE_MAX`] is refused as soon as that much of it was seen. A byte order mark at the start is
//! no part of the text.

use std::error::Error;
use std::fmt::{self, Display, Formatter, Write as _};
use std::io::{self, ErrorKind, Read, Write};

use memchr::memchr;
use reweave_base::Id;
use reweave_trace::{EventId, TraceBuilder};

use crate::ReadOptions;
use crate::error::{self, Failure, Place, ReadErrorKind};

/// The longest line that is read, in bytes.
pub(crate) const LINE_MAX: usize = 1 << 20;

/// How much is read at once.
const BUFFER_START: usize = 256 << 10;

/// How many bytes may pass before the caller is asked whether to go on.
const ASK_EVERY: u64 = 1 << 20;

/// Goes with every byte order mark.
pub(crate) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads lines.
pub(crate) struct Lines<'a> {
    source: &'a mut dyn Read,
    options: ReadOptions<'a>,
    buffer: Vec<u8>,
    /// Where the line before starts in the buffer, where the next does, where the text ends.
    previous: usize,
    start: usize,
    end: usize,
    ended: bool,
    number: u64,
    taken: u64,
    asked: u64,
    broken: Option<String>,
    /// Whether a zero byte came: no text has one, and no name may hold one.
    has_zeros: bool,
}

/// A line.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    /// Counted from 1.
    pub(crate) number: u64,
    /// Its text.
    pub(crate) text: &'a [u8],
    /// Whether a line feed ends it; only the last can lack one.
    pub(crate) ended: bool,
    /// Whether a zero byte may be in it.
    pub(crate) may_be_binary: bool,
}

impl<'a> Lines<'a> {
    /// The lines of `source`.
    pub(crate) fn new(source: &'a mut dyn Read, options: &ReadOptions<'a>) -> Self {
        Self {
            source,
            options: *options,
            buffer: vec![0; BUFFER_START],
            previous: 0,
            start: 0,
            end: 0,
            ended: false,
            number: 0,
            taken: 0,
            asked: 0,
            broken: None,
            has_zeros: false,
        }
    }

    /// The next line, if there is one.
    #[inline]
    pub(crate) fn next_line(&mut self) -> Result<Option<Line<'_>>, Failure> {
        let mut searched = self.start;
        let (stop, ended) = loop {
            if let Some(offset) = memchr(b'\n', &self.buffer[searched..self.end]) {
                break (searched + offset, true);
            }
            let pending = self.end - self.start;
            if !self.fill()? {
                if self.start == self.end {
                    return Ok(None);
                }
                break (self.end, false);
            }
            searched = self.start + pending;
        };
        let returns = stop > self.start && self.buffer[stop - 1] == b'\r';
        let length = stop - self.start - usize::from(returns);
        if length > LINE_MAX {
            return Err(self.too_long());
        }
        self.previous = self.start;
        self.start = stop + usize::from(ended);
        self.number += 1;
        let mut text = &self.buffer[self.previous..self.previous + length];
        if self.number == 1 {
            text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        }
        Ok(Some(Line { number: self.number, text, ended, may_be_binary: self.has_zeros }))
    }

    /// Makes the line that came last come again.
    pub(crate) fn step_back(&mut self) {
        if self.start > self.previous {
            self.start = self.previous;
            self.number -= 1;
        }
    }

    /// Whether a broken stream is to be read as far as it is whole, and the like.
    pub(crate) const fn repairs(&self) -> bool {
        self.options.repair
    }

    /// Why the text ended before its end, if it did and that was to be repaired.
    pub(crate) fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Reads more; false at the end.
    #[cold]
    fn fill(&mut self) -> Result<bool, Failure> {
        if self.ended {
            return Ok(false);
        }
        let pending = self.end - self.start;
        // A carriage return is no part of the line.
        if pending > LINE_MAX + 1 {
            return Err(self.too_long());
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.previous, self.start, self.end) = (0, 0, pending);
        if 2 * pending > self.buffer.len() {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        self.ask()?;
        let read = loop {
            match self.source.read(&mut self.buffer[pending..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        match read {
            Ok(count) => {
                self.ended = count == 0;
                self.end += count;
                self.has_zeros |= memchr(0, &self.buffer[pending..self.end]).is_some();
                self.taken += count as u64;
            }
            Err(error) => self.stop_at(error)?,
        }
        Ok(!self.ended)
    }

    fn ask(&mut self) -> Result<(), Failure> {
        if self.taken - self.asked < ASK_EVERY {
            return Ok(());
        }
        self.asked = self.taken;
        match self.options.go_on {
            Some(go_on) if !go_on(self.taken) => Err((Place::File, ReadErrorKind::Interrupted)),
            _ => Ok(()),
        }
    }

    /// What came before the place where a compressed stream is broken can be kept.
    fn stop_at(&mut self, error: io::Error) -> Result<(), Failure> {
        self.ended = true;
        match broken_stream(&error) {
            Some(reason) if self.options.repair => {
                self.broken = Some(reason);
                self.end = self.start;
                Ok(())
            }
            Some(reason) => {
                Err((Place::Line(self.number + 1), ReadErrorKind::Damaged { reason, kept: 0 }))
            }
            None => Err((Place::File, error.into())),
        }
    }

    #[cold]
    fn too_long(&self) -> Failure {
        let text = &self.buffer[self.start..self.end];
        let kind = zero_byte(text).unwrap_or(ReadErrorKind::LineTooLong { max: LINE_MAX });
        (Place::Line(self.number + 1), kind)
    }
}

/// What is wrong with `text` if it is binary.
pub(crate) fn zero_byte(text: &[u8]) -> Option<ReadErrorKind> {
    memchr(0, text).map(|position| {
        let before = match position {
            0 => String::new(),
            _ => format!(" after `{}`", error::excerpt(&text[..position])),
        };
        ReadErrorKind::Malformed(format!(
            "expected text, found a zero byte{before}: the file is binary or damaged"
        ))
    })
}

/// A compressed stream that ends early or does not decompress: a fault of the file, where any
/// other error is one of reading it.
#[derive(Debug)]
pub(crate) struct BrokenStream(pub(crate) String);

impl Display for BrokenStream {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for BrokenStream {}

/// What is wrong with the compressed stream, if that is what `error` is about.
pub(crate) fn broken_stream(error: &io::Error) -> Option<String> {
    let broken = error.get_ref()?.downcast_ref::<BrokenStream>()?;
    Some(broken.0.clone())
}

// From lines to events: what the text formats have in common.
//
// Blank lines and lines that start with `#` are skipped. What events cannot tell when the trace
// is put together, the line they stood on, is kept as the few places where lines were skipped.

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

// Where lines are written to.

/// How much is gathered before it is written.
const BUFFER_FULL: usize = 64 << 10;

/// Gathers lines, refuses those that could not be read again, and writes the rest.
pub(crate) struct LineSink<'a> {
    out: &'a mut dyn Write,
    text: String,
    start: usize,
}

impl<'a> LineSink<'a> {
    /// Nothing written yet.
    pub(crate) const fn new(out: &'a mut dyn Write) -> Self {
        Self { out, text: String::new(), start: 0 }
    }

    /// Adds `text` to the line.
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds `text` to the line.
    pub(crate) fn push_display(&mut self, text: impl Display) {
        write!(self.text, "{text}").expect("writing to a string does not fail");
    }

    /// Adds blanks until the line has `width` characters.
    pub(crate) fn pad_to(&mut self, width: usize) {
        let present = self.text[self.start..].chars().count();
        self.text.extend(std::iter::repeat_n(' ', width.saturating_sub(present)));
    }

    /// Ends the line.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        let length = self.text.len() - self.start;
        if length > LINE_MAX {
            return Err(refused(format_args!(
                "a line of {length} bytes: lines longer than {LINE_MAX} cannot be read again"
            )));
        }
        self.text.push('\n');
        if self.text.len() >= BUFFER_FULL {
            self.write_out()?;
        }
        self.start = self.text.len();
        Ok(())
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.write_out()?;
        self.out.flush()
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.out.write_all(self.text.as_bytes())?;
        self.text.clear();
        Ok(())
    }
}

/// Something that the format cannot carry, so that it must not be written.
pub(crate) fn refused(reason: fmt::Arguments<'_>) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, reason.to_string())
}
