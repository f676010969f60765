//! Files: opened, detected, decompressed; and written whole or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use reweave_trace::{IllFormed, ThreadId, Trace, TraceBuilder};
use tempfile::Builder;
use tracing::field::{self, Empty};

use crate::detect::{self, Content, Unpacked};
use crate::error::{Failure, Place, ReadError, ReadErrorKind, WriteError};
use crate::lines::{Lines, Parsed};
use crate::{
    Compression, Format, Input, ReadOptions, Reading, chrome, columns, json_lines, parquet, poset,
    rwt, std_text,
};

/// How often a file may be compressed over.
const COMPRESSIONS_MAX: usize = 2;

/// How hard zstd tries: its own default.
const ZSTD_LEVEL: i32 = 3;

/// Reads the trace in the file at `path`; `-` is standard input.
///
/// ```no_run
/// use std::path::Path;
///
/// use reweave_format::{ReadOptions, read};
///
/// let repair = ReadOptions { repair: true, ..ReadOptions::default() };
/// let reading = read(Path::new("run.rwt"), &repair)?;
/// for note in &reading.notes {
///     eprintln!("{note}");
/// }
/// # Ok::<(), reweave_format::ReadError>(())
/// ```
///
/// # Errors
/// If it cannot be read or is no trace: where, and what was expected.
pub fn read(path: &Path, options: &ReadOptions<'_>) -> Result<Reading, ReadError> {
    read_file(path, options, Wanted::Trace).map(trace)
}

/// Reads the trace that `source` gives; errors call it `name`.
///
/// # Errors
/// If it cannot be read or is no trace: where, and what was expected.
pub fn read_from(
    source: impl Read,
    name: &str,
    options: &ReadOptions<'_>,
) -> Result<Reading, ReadError> {
    read_counted(source, name, options, Wanted::Trace).map(trace)
}

/// Reads the trace or the poset in the file at `path`; `-` is standard input.
///
/// # Errors
/// If it cannot be read or is neither: where, and what was expected.
pub fn read_input(path: &Path, options: &ReadOptions<'_>) -> Result<Input, ReadError> {
    read_file(path, options, Wanted::TraceOrPoset)
}

/// Reads the trace or the poset that `source` gives; errors call it `name`.
///
/// # Errors
/// If it cannot be read or is neither: where, and what was expected.
pub fn read_input_from(
    source: impl Read,
    name: &str,
    options: &ReadOptions<'_>,
) -> Result<Input, ReadError> {
    read_counted(source, name, options, Wanted::TraceOrPoset)
}

/// What a file may hold.
#[derive(Clone, Copy)]
enum Wanted {
    Trace,
    TraceOrPoset,
}

/// The trace that was wanted and nothing else.
fn trace(input: Input) -> Reading {
    match input {
        Input::Trace(reading) => *reading,
        Input::Poset(_) => unreachable!("a poset is refused where a trace is wanted"),
    }
}

fn read_file(path: &Path, options: &ReadOptions<'_>, wanted: Wanted) -> Result<Input, ReadError> {
    if path == Path::new("-") {
        return read_counted(io::stdin().lock(), "standard input", options, wanted);
    }
    let name = path.display().to_string();
    let file = open(path).map_err(|error| ReadError {
        file: name.clone(),
        place: Place::File,
        kind: error.into(),
    })?;
    read_counted(file, &name, options, wanted)
}

fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        let reason = "expected a file with a trace, found a directory";
        return Err(io::Error::new(ErrorKind::IsADirectory, reason));
    }
    Ok(file)
}

fn read_counted(
    source: impl Read,
    name: &str,
    options: &ReadOptions<'_>,
    wanted: Wanted,
) -> Result<Input, ReadError> {
    let stage = tracing::info_span!(
        "read",
        file = name,
        bytes = Empty,
        format = Empty,
        threads = Empty,
        events = Empty,
    );
    let stage = stage.entered();
    let taken = AtomicU64::new(0);
    // However often the file is compressed over, its own bytes are what progress is counted in.
    let go_on = |_| options.go_on.is_none_or(|go_on| go_on(taken.load(Ordering::Relaxed)));
    let options = ReadOptions { go_on: Some(&go_on), ..*options };
    let mut source = Counted { source, taken: &taken };
    let read = read_packed(&mut source, Packing::default(), &options, wanted);
    stage.record("bytes", taken.load(Ordering::Relaxed));
    read.map_err(|(place, kind)| ReadError { file: name.to_owned(), place, kind })
}

/// Counts the bytes that pass.
struct Counted<'a, R> {
    source: R,
    taken: &'a AtomicU64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// What a stream was packed in.
#[derive(Clone, Copy, Debug, Default)]
struct Packing {
    /// How often it was compressed over.
    depth: usize,
    /// By what first of all, as the file shows.
    outermost: Option<Compression>,
}

fn read_packed(
    source: &mut dyn Read,
    packing: Packing,
    options: &ReadOptions<'_>,
    wanted: Wanted,
) -> Result<Input, Failure> {
    let (head, content) = detect::content(source)?;
    let mut source = head.as_slice().chain(source);
    let plain = |reading: Reading| {
        let stage = tracing::Span::current();
        stage.record("format", field::debug(reading.format));
        stage.record("threads", reading.trace.names().threads.len());
        stage.record("events", reading.trace.len());
        Input::Trace(Box::new(Reading { compression: packing.outermost, ..reading }))
    };
    let compression = match content {
        Content::Rwt => return read_rwt(&mut source, options).map(plain),
        Content::Text => return read_text(&mut source, options).map(plain),
        Content::Object => {
            let (mut source, is_poset) = detect::poset_or_lines(&mut source);
            return match wanted {
                _ if !is_poset => read_text(&mut source, options).map(plain),
                Wanted::Trace => Err((Place::File, ReadErrorKind::Poset)),
                Wanted::TraceOrPoset => poset::read(&mut source, options).map(Input::Poset),
            };
        }
        Content::Compressed(_) if packing.depth == COMPRESSIONS_MAX => {
            let reason = format!("it is compressed more than {COMPRESSIONS_MAX} times over");
            return Err((Place::File, ReadErrorKind::Unrecognised(reason)));
        }
        Content::Compressed(compression) => compression,
    };
    let outermost = packing.outermost.or(Some(compression));
    let packing = Packing { depth: packing.depth + 1, outermost };
    match compression {
        Compression::Gzip => {
            let stream = MultiGzDecoder::new(source);
            read_packed(&mut Unpacked::new(stream, compression), packing, options, wanted)
        }
        Compression::Zstd => {
            let stream = zstd::stream::read::Decoder::new(source);
            let stream = stream.map_err(|error| (Place::File, error.into()))?;
            read_packed(&mut Unpacked::new(stream, compression), packing, options, wanted)
        }
    }
}

fn read_rwt(source: &mut dyn Read, options: &ReadOptions<'_>) -> Result<Reading, Failure> {
    let builder = rwt::read(source, options)?;
    let trace = finish(builder, options.repair)
        .map_err(|ill_formed| (Place::File, ReadErrorKind::IllFormed(ill_formed.to_string())))?;
    let notes = of(&trace, options.repair);
    Ok(Reading { trace, format: Format::Rwt, compression: None, notes })
}

fn read_text(source: &mut dyn Read, options: &ReadOptions<'_>) -> Result<Reading, Failure> {
    let mut lines = Lines::new(source, options);
    let format = detect::text_format(&mut lines)?;
    let Parsed { builder, line_map } = match format {
        Format::Columns => columns::read(&mut lines)?,
        Format::JsonLines => json_lines::read(&mut lines)?,
        Format::Std | Format::Rwt | Format::Chrome | Format::Parquet => std_text::read(&mut lines)?,
    };
    drop(lines);
    let trace = finish(builder, options.repair).map_err(|IllFormed { event, reason }| {
        let line = line_map.line(event);
        let number = event.number();
        let reason = if line == Some(u64::from(number)) {
            reason
        } else {
            format!("event {number}: {reason}")
        };
        (line.map_or(Place::File, Place::Line), ReadErrorKind::IllFormed(reason))
    })?;
    let notes = of(&trace, options.repair);
    Ok(Reading { trace, format, compression: None, notes })
}

fn finish(builder: TraceBuilder, repair: bool) -> Result<Trace, IllFormed> {
    if repair { builder.finish_repaired() } else { builder.finish() }
}

/// Writes `trace` to the file at `path`; `-` is standard output.
///
/// An ordinary file is replaced as a whole once all is written, and stays as it was if anything
/// fails. What is not an ordinary file is written as it comes.
///
/// ```no_run
/// use std::path::Path;
///
/// use reweave_format::{Compression, Format, write};
///
/// # let trace = reweave_trace::TraceBuilder::new().finish()?;
/// write(&trace, Path::new("run.std.gz"), Format::Std, Some(Compression::Gzip))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If it cannot be written, or the format cannot carry a name of the trace.
pub fn write(
    trace: &Trace,
    path: &Path,
    format: Format,
    compression: Option<Compression>,
) -> Result<(), WriteError> {
    let to_standard_output = path == Path::new("-");
    let pack = |out: &mut dyn Write| write_packed(trace, out, format, compression);
    let written =
        if to_standard_output { pack(&mut io::stdout().lock()) } else { replace(path, pack) };
    written.map_err(|error| WriteError {
        file: if to_standard_output {
            "standard output".into()
        } else {
            path.display().to_string()
        },
        reason: error.to_string(),
        kind: error.kind(),
    })
}

fn write_packed(
    trace: &Trace,
    out: &mut dyn Write,
    format: Format,
    compression: Option<Compression>,
) -> io::Result<()> {
    match compression {
        None => write_to(trace, out, format)?,
        Some(Compression::Gzip) => {
            let mut encoder = GzEncoder::new(&mut *out, flate2::Compression::default());
            write_to(trace, &mut encoder, format)?;
            encoder.finish()?;
        }
        Some(Compression::Zstd) => {
            let mut encoder = zstd::stream::write::Encoder::new(&mut *out, ZSTD_LEVEL)?;
            write_to(trace, &mut encoder, format)?;
            encoder.finish()?;
        }
    }
    out.flush()
}

/// Writes `trace` to `out`.
///
/// ```
/// use reweave_format::{Format, write_to};
/// use reweave_trace::{AccessOp, Op, TraceBuilder};
///
/// let mut builder = TraceBuilder::new();
/// let (t1, x, here) = (builder.thread("T1"), builder.var("x"), builder.site("a.c:1"));
/// builder.push(t1, Op::Access(AccessOp::Write, x), here);
/// let mut out = Vec::new();
/// write_to(&builder.finish()?, &mut out, Format::Std)?;
/// assert_eq!(out, b"T1|w(x)|a.c:1\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If `out` fails, or the format cannot carry a name of the trace: then of the kind
/// [`ErrorKind::InvalidInput`].
pub fn write_to(trace: &Trace, out: &mut dyn Write, format: Format) -> io::Result<()> {
    match format {
        Format::Std => std_text::write(trace, out),
        Format::Columns => columns::write(trace, out),
        Format::JsonLines => json_lines::write(trace, out),
        Format::Rwt => rwt::write(trace, out),
        Format::Chrome => chrome::write(trace, out),
        Format::Parquet => parquet::write(trace, out),
    }
}

// What a person should know of a trace that was read.

/// How many notes of one kind are worth reading.
const NOTES_MAX: usize = 20;

/// What was changed to make `trace` well formed, if it was to be; else what looks like a slip.
fn of(trace: &Trace, repaired: bool) -> Vec<String> {
    if repaired { of_repairs(trace) } else { of_thread_names(trace) }
}

/// What was changed to make the trace well formed.
fn of_repairs(trace: &Trace) -> Vec<String> {
    let repairs = trace.repairs();
    let mut notes: Vec<String> = repairs.iter().take(NOTES_MAX).map(ToString::to_string).collect();
    shorten(&mut notes, repairs.len(), "repairs");
    notes
}

fn shorten(notes: &mut Vec<String>, all: usize, what: &str) {
    if all > NOTES_MAX {
        notes.push(format!("and {} more {what}", all - NOTES_MAX));
    }
}

/// Threads that are probably one thread under two spellings.
fn of_thread_names(trace: &Trace) -> Vec<String> {
    let threads = &trace.names().threads;
    let slips = trace.two_spellings();
    let note = |&(named, running): &(ThreadId, ThreadId)| {
        let word = if trace.lifetime(named).fork.is_some() { "fork" } else { "join" };
        let (named, running) = (threads.name(named), threads.name(running));
        format!(
            "`{word}({named})` and thread `{running}` are different names: `{named}` never runs, \
             `{running}` is never forked; `--repair` takes them as one"
        )
    };
    let mut notes: Vec<String> = slips.iter().take(NOTES_MAX).map(note).collect();
    shorten(&mut notes, slips.len(), "pairs of names");
    notes
}

// Replacing a file as a whole, or not at all.

/// Puts what `write` writes in place of the file at `path`.
fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // A symbolic link stays one: what it points to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let old = match fs::metadata(&target) {
        Ok(old) if old.is_dir() => {
            let reason = "expected a file, found a directory";
            return Err(io::Error::new(ErrorKind::IsADirectory, reason));
        }
        Ok(old) if !old.is_file() => {
            let mut file = BufWriter::new(File::options().write(true).open(&target)?);
            write(&mut file)?;
            return file.flush();
        }
        Ok(old) => Some(old.permissions()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if old.as_ref().is_some_and(Permissions::readonly) {
        let reason = "the file is there and may not be changed";
        return Err(io::Error::new(ErrorKind::PermissionDenied, reason));
    }
    // Made as any file is: what the library makes by itself is private, and this is to stay.
    let folder = directory(&target);
    if !folder.is_dir() {
        let reason = format!("there is no folder `{}`", folder.display());
        return Err(io::Error::new(ErrorKind::NotFound, reason));
    }
    let temporary =
        Builder::new().prefix(".reweave-").make_in(&folder, |path| File::create_new(path))?;
    let mut file = BufWriter::new(temporary);
    write(&mut file)?;
    let temporary = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    if let Some(permissions) = old {
        temporary.as_file().set_permissions(permissions)?;
    }
    // What is renamed over the old file must be whole even if the machine fails right after.
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|failed| failed.error)?;
    Ok(())
}

fn directory(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
