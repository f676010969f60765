//! What `ndseq` says as a page, with the cycle of conflicts as a picture.

use std::io::{self, Write};

use reweave_ndseq::Explanation;
use reweave_report::{cycle_html, markup, page};
use reweave_trace::Trace;

/// Writes a page with what `body` writes.
pub(super) fn write_page(
    out: &mut dyn Write,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    page(
        out,
        "Sequential specifications: reweave",
        "What runs one after the other would give",
        body,
    )
}

/// Writes what is `said` of one program, and its cycle if there is one.
pub(super) fn write_section(
    out: &mut dyn Write,
    said: &[String],
    cycle: Option<(&Trace, &Explanation)>,
) -> io::Result<()> {
    for line in said {
        writeln!(out, "<p>{}</p>", markup(line))?;
    }
    cycle.map_or(Ok(()), |(trace, explanation)| cycle_html(out, trace, explanation))
}

/// A program as it is written, its lines and indents kept.
pub(super) fn program_markup(program: &str) -> String {
    program.lines().map(markup).collect::<Vec<_>>().join("\n")
}
