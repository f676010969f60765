//! How JSON is laid out: indented, or with one line for each entry of a long list.

use std::io::{self, Write};

use serde_json::ser::Formatter;

/// Starts a line for everything down to a depth, and writes what is deeper in one go.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Down to where everything starts a line.
    depth_max: usize,
    depth: usize,
    /// Whether the innermost list or object holds something already.
    has_value: bool,
}

impl Layout {
    /// Starts lines down to `depth_max`; the whole document is at depth 0.
    pub(crate) const fn new(depth_max: usize) -> Self {
        Self { depth_max, depth: 0, has_value: false }
    }

    fn line<W: Write + ?Sized>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        for _ in 0..self.depth {
            out.write_all(b"  ")?;
        }
        Ok(())
    }

    fn open<W: Write + ?Sized>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        out.write_all(bracket)
    }

    fn close<W: Write + ?Sized>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        let is_broken = self.has_value && self.depth <= self.depth_max;
        self.depth -= 1;
        self.has_value = true;
        if is_broken {
            self.line(out)?;
        }
        out.write_all(bracket)
    }

    fn entry<W: Write + ?Sized>(&self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        if self.depth <= self.depth_max { self.line(out) } else { Ok(()) }
    }
}

impl Formatter for Layout {
    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.entry(out, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.entry(out, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(if self.depth <= self.depth_max { b": " } else { b":" })
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize as _;
    use serde_json::{Serializer, Value, json};

    fn laid_out(value: &Value, depth_max: usize) -> String {
        let mut out = Vec::new();
        let layout = Layout::new(depth_max);
        value.serialize(&mut Serializer::with_formatter(&mut out, layout)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn without_a_depth_it_is_the_usual_indented_form() {
        let value = json!({ "a": [1, { "b": [] }, [[2]], {}], "c": { "d": null } });
        assert_eq!(laid_out(&value, usize::MAX), serde_json::to_string_pretty(&value).unwrap());
    }

    #[test]
    fn what_is_deep_shares_a_line() {
        let value = json!({ "list": [{ "b": [1, 2] }, {}], "none": [] });
        let expected = "{\n  \"list\": [\n    {\"b\":[1,2]},\n    {}\n  ],\n  \"none\": []\n}";
        assert_eq!(laid_out(&value, 2), expected);
    }
}
