//! The text of a program, and places in it.

use std::ops::Range;

/// The text of a program and the name to show for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    name: String,
    text: String,
    /// The byte at which each line starts.
    lines: Vec<u32>,
}

/// A stretch of the text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Source {
    /// The largest text, in bytes, that is taken: what 32 bits can point into, and far more than
    /// anyone writes.
    pub const BYTES_MAX: usize = 1 << 28;

    /// The program `text`, shown under `name`.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let lines = std::iter::once(0).chain(breaks.map(|(at, _)| at as u32 + 1)).collect();
        Self { name: name.into(), text, lines }
    }

    /// The name to show.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text at `span`.
    pub fn slice(&self, span: Span) -> &str {
        &self.text[span.range()]
    }

    /// The line, counted from 1, in which the byte at `offset` stands.
    pub fn line(&self, offset: u32) -> u32 {
        self.lines.partition_point(|&start| start <= offset) as u32
    }

    /// The byte at which the line of the byte at `offset` starts.
    pub(crate) fn line_start(&self, offset: u32) -> u32 {
        self.lines[self.line(offset) as usize - 1]
    }

    /// The line and the column, counted from 1 and in characters, of the byte at `offset`.
    pub fn position(&self, offset: u32) -> (u32, u32) {
        let line = self.line(offset);
        let start = self.line_start(offset) as usize;
        let column = self.text[start..offset as usize].chars().count() as u32 + 1;
        (line, column)
    }
}

impl Span {
    /// The stretch from `start` up to `end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// From the start of this one to the end of `last`.
    pub const fn to(self, last: Self) -> Self {
        Self { start: self.start, end: last.end }
    }

    /// As a range of bytes.
    pub const fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}
