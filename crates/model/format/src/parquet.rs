//! Traces as tables for data tools: Parquet, in builds with the feature `parquet`. It is written
//! only.
//!
//! A row is an event:
//!
//! | column | type | |
//! | --- | --- | --- |
//! | `event` | 32-bit number | from 1, in observed order |
//! | `thread` | text | |
//! | `op` | text | the word that text formats use |
//! | `on` | text, or null | the operand |
//! | `order` | text, or null | the memory order, of atomic operations and fences |
//! | `mode` | text, or null | `exclusive` or `shared`, of what takes or releases a lock |
//! | `location` | text | |
//! | `value` | 64-bit number, or null | where it is known |
//!
//! Names are kept once a group of rows and referred to, and columns are compressed by zstd, so that
//! a file takes a few bytes an event. Memory is bounded by a group.

#[cfg(feature = "parquet")]
mod table;

use std::io::{self, Write};

use reweave_trace::Trace;

/// Whether this build can write it.
pub const IS_THERE: bool = cfg!(feature = "parquet");

/// What to do where this build cannot write it.
pub const MISSING: &str = "this build of reweave does not write Parquet: build it with \
                           `cargo build --release -p reweave-cli --features parquet`";

/// Writes `trace` to `out`.
///
/// # Errors
/// If `out` fails, or this build cannot write it.
#[cfg_attr(not(feature = "parquet"), expect(unused_variables, reason = "nothing is written"))]
pub fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    #[cfg(feature = "parquet")]
    return table::write(trace, out);
    #[cfg(not(feature = "parquet"))]
    Err(io::Error::new(io::ErrorKind::Unsupported, MISSING))
}
