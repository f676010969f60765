//! Where lines are written to.

use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};

use super::LINE_MAX;

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
    io::Error::new(io::ErrorKind::InvalidInput, reason.to_string())
}
