//! Reading and writing traces. The format is detected by content.
//!
//! | format | file | module |
//! | --- | --- | --- |
//! | RAPID text, an event a line | `.std` | [`std_text`] |
//! | columns, as papers draw traces | `.trace` | [`columns`] |
//! | JSON lines, an object an event | `.jsonl` | [`json_lines`] |
//! | ours, binary, in blocks | `.rwt` | [`rwt`] |
//!
//! Two more are written only: [`chrome`], for timeline viewers, and Parquet, for tools that work on
//! tables, the latter in builds with the feature `parquet`.
//!
//! A poset of events, which is no trace, is read too, by [`read_input`]: see [`poset`].
//!
//! Each may be compressed by gzip or zstd. A file that is damaged or whose events cannot have
//! happened is refused with the place and the reason; with [`ReadOptions::repair`] the good part
//! is kept and repaired, and [`Reading::notes`] says what was done. Memory is bounded by what was
//! read, never by a number found in a file.
//!
//! ```
//! use reweave_format::{Format, ReadOptions, read_from, write_to};
//!
//! let text = "T1|w(x)|a.c:1|5\nT2|r(x)|b.c:2|5\n";
//! let reading = read_from(text.as_bytes(), "example", &ReadOptions::default())?;
//! assert_eq!((reading.format, reading.trace.len()), (Format::Std, 2));
//!
//! let mut out = Vec::new();
//! write_to(&reading.trace, &mut out, Format::JsonLines)?;
//! let again = read_from(&out[..], "example", &ReadOptions::default())?;
//! assert_eq!((again.format, again.trace.len()), (Format::JsonLines, 2));
//!
//! let error = read_from(&b"T1|wx|a.c:1"[..], "example", &ReadOptions::default()).unwrap_err();
//! assert!(error.to_string().starts_with("example: line 1: "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod detect;
mod error;
mod lines;
mod operation;

pub mod chrome;
pub mod columns;
pub mod json_lines;
pub mod parquet;
pub mod poset;
pub mod rwt;
pub mod std_text;

mod io;

pub use error::{Place, ReadError, ReadErrorKind, WriteError};
pub use io::{read, read_from, read_input, read_input_from, write, write_to};
pub use poset::RawPoset;

use reweave_trace::Trace;

/// A way of writing traces down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// RAPID text, `.std`.
    Std,
    /// A column per thread, `.trace`.
    Columns,
    /// An object per event, `.jsonl`.
    JsonLines,
    /// Our binary blocks, `.rwt`.
    Rwt,
    /// The JSON of timeline viewers; written only.
    Chrome,
    /// A table, `.parquet`; written only.
    Parquet,
}

/// How a file is compressed as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// `.gz`
    Gzip,
    /// `.zst`
    Zstd,
}

/// How to read.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// Keep the good part of a damaged file and repair events that cannot have happened.
    pub repair: bool,
    /// Called from time to time with the number of bytes taken from the file so far; reading
    /// stops when it answers false.
    pub go_on: Option<&'a (dyn Fn(u64) -> bool + Sync)>,
}

/// What a file can hold.
#[derive(Debug)]
pub enum Input {
    /// A trace.
    Trace(Box<Reading>),
    /// The events of a poset, not yet known to be one.
    Poset(RawPoset),
}

/// A trace that was read.
#[derive(Debug)]
pub struct Reading {
    /// The trace.
    pub trace: Trace,
    /// The format it was in.
    pub format: Format,
    /// How the file was compressed, if it was.
    pub compression: Option<Compression>,
    /// What a person should know: what was repaired, what looks like a slip. For standard error.
    pub notes: Vec<String>,
}

impl Format {
    /// The format that a file called `name` is written in, by its extension (a compression's
    /// extension aside), and how it is compressed; none if the extension says nothing.
    pub fn from_name(name: &str) -> (Option<Self>, Option<Compression>) {
        let (stem, compression) = match name.rsplit_once('.') {
            Some((stem, "gz")) => (stem, Some(Compression::Gzip)),
            Some((stem, "zst")) => (stem, Some(Compression::Zstd)),
            _ => (name, None),
        };
        let format = match stem.rsplit_once('.').map(|(_, extension)| extension) {
            Some("std") => Some(Self::Std),
            Some("trace") => Some(Self::Columns),
            Some("jsonl") => Some(Self::JsonLines),
            Some("rwt") => Some(Self::Rwt),
            Some("parquet") => Some(Self::Parquet),
            _ => None,
        };
        (format, compression)
    }
}
