//! Which format is this? Detected by content alone.
//!
//! Compressed and binary files start with bytes that no UTF-8 text starts with. Of a text, the
//! first line that is neither blank nor a comment decides: `{` starts JSON lines, a `|` in it is
//! RAPID text, and any other plain text is the heading of columns. A text whose first object has
//! the keys of a poset is one.

use std::io::{self, Cursor, ErrorKind, Read};

use memchr::memmem;

use crate::error::{Failure, Place, ReadErrorKind, excerpt};
use crate::lines::{BYTE_ORDER_MARK, BrokenStream, Lines, broken_stream, is_skipped};
use crate::{Compression, Format, chrome, poset, rwt};

const GZIP_MAGIC: &[u8] = b"\x1f\x8b";
const PARQUET_MAGIC: &[u8] = b"PAR1";
const ZSTD_MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";

/// What a file holds, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Another file, compressed.
    Compressed(Compression),
    /// Our binary format.
    Rwt,
    /// Text that may start with a JSON object.
    Object,
    /// Text, or nothing known.
    Text,
}

/// Takes the first bytes of `source`, and says what they promise.
pub(crate) fn content(source: &mut dyn Read) -> Result<(Vec<u8>, Content), Failure> {
    let mut head = Vec::new();
    let read = source.take(rwt::MAGIC.len() as u64).read_to_end(&mut head);
    read.map_err(|error| (Place::File, failure_kind(error)))?;
    let content = if head.starts_with(GZIP_MAGIC) {
        Content::Compressed(Compression::Gzip)
    } else if head.starts_with(ZSTD_MAGIC) {
        Content::Compressed(Compression::Zstd)
    } else if !head.is_empty() && rwt::MAGIC.starts_with(&head) {
        // Also a beginning of it: a file that was cut there is to be called cut.
        Content::Rwt
    } else if may_start_object(&head) {
        Content::Object
    } else {
        Content::Text
    };
    Ok((head, content))
}

/// Whether a text that starts with these bytes may start with a JSON object.
fn may_start_object(head: &[u8]) -> bool {
    let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head).trim_ascii_start();
    matches!(text.first(), None | Some(b'{'))
}

/// Whether the text that `source` gives is a poset, and all of that text.
pub(crate) fn poset_or_lines<'a>(source: &'a mut dyn Read) -> (impl Read + use<'a>, bool) {
    let mut head = Vec::new();
    let failure = (&mut *source).take(poset::HEAD_MAX as u64).read_to_end(&mut head).err();
    let is_poset = poset::is_poset(&head);
    // A poset is JSON, which has no byte order mark.
    let start = if is_poset && head.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len() as u64
    } else {
        0
    };
    let mut head = Cursor::new(head);
    head.set_position(start);
    (head.chain(Failing(failure)).chain(source), is_poset)
}

/// Fails once, if there is anything to fail with; has nothing to give.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

fn failure_kind(error: io::Error) -> ReadErrorKind {
    match broken_stream(&error) {
        Some(reason) => ReadErrorKind::Malformed(reason),
        None => error.into(),
    }
}

/// The format of the text that `lines` gives, which are left at the line that decided it.
pub(crate) fn text_format(lines: &mut Lines<'_>) -> Result<Format, Failure> {
    let mut comments = false;
    let format = loop {
        match lines.next_line() {
            Ok(Some(line)) if !is_skipped(line.text) => break format_of(line.text)?,
            Ok(Some(line)) => comments |= !line.text.trim_ascii().is_empty(),
            Ok(None) if comments => return Ok(Format::Std),
            Ok(None) => {
                let kind = lines.broken().map_or(ReadErrorKind::Empty, |reason| {
                    ReadErrorKind::Malformed(reason.to_owned())
                });
                return Err((Place::File, kind));
            }
            Err((place, ReadErrorKind::Damaged { reason, .. })) => {
                return Err((place, ReadErrorKind::Malformed(reason)));
            }
            Err(failure) => return Err(failure),
        }
    };
    lines.step_back();
    Ok(format)
}

fn format_of(line: &[u8]) -> Result<Format, Failure> {
    let unrecognised = |what: &str| {
        let kind = ReadErrorKind::Unrecognised(format!(
            "{what}; expected RAPID text, columns, JSON lines or `.rwt`, found `{}`",
            excerpt(line)
        ));
        Err((Place::File, kind))
    };
    if line.starts_with(b"\xff\xfe") || line.starts_with(b"\xfe\xff") {
        return unrecognised("it is UTF-16, and text must be UTF-8");
    }
    if line.starts_with(PARQUET_MAGIC) {
        return unrecognised("it is Parquet, which is written and not read");
    }
    if line.contains(&0) {
        return unrecognised("it is binary");
    }
    if line.trim_ascii_start().starts_with(b"{") {
        if memmem::find(line, chrome::KEY).is_some()
            && poset::keys(line).any(|(key, _)| key == chrome::KEY)
        {
            return unrecognised("it is for timeline viewers, and is written and not read");
        }
        return Ok(Format::JsonLines);
    }
    if line.contains(&b'|') {
        return Ok(Format::Std);
    }
    if line.trim_ascii_start().starts_with(b"[") {
        return unrecognised("it starts with `[`, where JSON lines have an object a line");
    }
    match std::str::from_utf8(line) {
        Err(_) => unrecognised("it is not UTF-8 text"),
        Ok(text) if text.chars().any(|c| c.is_control() && c != '\t') => {
            unrecognised("it holds control characters")
        }
        Ok(_) => Ok(Format::Columns),
    }
}

/// A stream being decompressed, whose faults are distinguished from those of reading the file.
pub(crate) struct Unpacked<R> {
    stream: R,
    compression: Compression,
}

impl<R: Read> Unpacked<R> {
    /// What `stream` gives, which undoes `compression`.
    pub(crate) const fn new(stream: R, compression: Compression) -> Self {
        Self { stream, compression }
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer).map_err(|error| {
            let kind = error.kind();
            // The system's errors have a number; the decoder's do not.
            let ours = error.get_ref().is_some_and(|inner| inner.is::<BrokenStream>());
            if error.raw_os_error().is_some() || kind == ErrorKind::Interrupted || ours {
                return error;
            }
            let name = match self.compression {
                Compression::Gzip => "gzip",
                Compression::Zstd => "zstd",
            };
            let reason = match kind {
                ErrorKind::UnexpectedEof => format!("the {name} stream ends early"),
                _ => format!("the {name} stream is damaged ({error})"),
            };
            io::Error::new(kind, BrokenStream(reason))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_is_known_by_a_key_and_not_by_a_name() {
        let is_timeline = |line: &str| format_of(line.as_bytes()).is_err();
        assert!(is_timeline(r#"{"traceEvents":["#));
        assert!(is_timeline(r#" {"a":{"b":[1]},"c":"\"", "traceEvents" :[]}"#));
        for line in [
            r#"{"thread":"T1","op":"w","var":"traceEvents"}"#,
            r#"{"thread":"\"traceEvents\":","op":"w","var":"x"}"#,
            r#"{"meta":{"traceEvents":[]},"op":"w"}"#,
            r#"{"op":"traceEvents"#,
            r#"{"op":"traceEvents""#,
        ] {
            assert!(!is_timeline(line), "{line}");
        }
    }
}
