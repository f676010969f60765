//! Findings as annotations that GitHub shows beside the code.

use std::io::{self, Write};

use crate::Examined;

/// Writes what was found in each of `examined`.
///
/// # Errors
/// If `out` fails.
pub fn github(_: &mut dyn Write, _: &[Examined<'_>]) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
