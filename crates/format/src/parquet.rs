//! Traces as tables for data tools: Parquet, in builds with the feature `parquet`. It is written only.

use std::io::{self, ErrorKind, Write};

use reweave_trace::Trace;

/// Whether this build can write it.
pub const IS_THERE: bool = false;

/// Writes `trace` to `out`.
///
/// # Errors
/// Always: this build cannot write it.
pub(crate) fn write(_: &Trace, _: &mut dyn Write) -> io::Result<()> {
    Err(io::Error::new(ErrorKind::Unsupported, MISSING))
}

/// What to do where this build cannot write it.
pub const MISSING: &str =
    "this build of reweave does not write Parquet: build it with `--features parquet`";
