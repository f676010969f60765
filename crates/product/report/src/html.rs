//! Findings as one HTML page that needs nothing else: no network, no other file.
//!
//! The page holds what was found as data: the findings as JSON reports have them, and beside them what
//! there is to draw. A script lists, filters and draws it; the script only ever puts text into the
//! page. A policy in the page's head lets it run this one script and load nothing. Without a script the
//! page shows the text report.
//!
//! Only the slice of each finding is in the page, so its size depends on the findings and not on the
//! trace; the data is in chunks that are read on demand.

mod code;
mod data;
mod facts;
mod overview;
mod view;

use std::io::{self, Write};

use reweave_analysis::Reported;
use serde::Serialize;
use serde_json::ser::Formatter;
use sha2::{Digest as _, Sha256};

use crate::explain::{Explanation, argument};
use crate::legend::Legend;
use crate::shown::{is_hidden, markup, prose};
use crate::slice::Reach;
use crate::text::{self, ReportState};
use crate::{Examined, json, title};
use data::{CHUNK, head, heading};
use view::chunk;

/// Why a finding is a fault and how it is repaired, and what else is said before its drawing, and after
/// it.
#[derive(Debug)]
pub struct Argument {
    /// What introduces why it is a fault.
    pub why_heading: &'static str,
    pub why: Vec<String>,
    pub fix: Vec<String>,
    pub before: Vec<Part>,
    pub after: Vec<Part>,
}

/// A part of an argument.
#[derive(Debug, Serialize)]
pub struct Part {
    pub heading: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepPart>,
    pub paragraphs: Vec<String>,
    /// Whether the paragraphs are lines that belong together.
    pub is_list: bool,
}

/// A step of a schedule, whose it is, what it does, and why it may.
#[derive(Debug, Serialize)]
pub struct StepPart {
    pub step: usize,
    pub thread: String,
    pub op: String,
    pub reason: String,
}

/// How all pages look.
const STYLE: &str = concat!(
    include_str!("../assets/theme.css"),
    include_str!("../assets/report.css"),
    include_str!("../assets/diagram.css"),
    include_str!("../assets/plain.css"),
);

/// What makes a page of findings move, in the order in which the parts need each other.
const SCRIPT: &str = concat!(
    "'use strict';\n{\n",
    include_str!("../assets/base.js"),
    include_str!("../assets/list.js"),
    include_str!("../assets/orders.js"),
    include_str!("../assets/diagram.js"),
    include_str!("../assets/overview.js"),
    include_str!("../assets/finding.js"),
    include_str!("../assets/page.js"),
    "}\n",
);

/// With more findings than these, less is drawn of each.
const BRIEF_MAX: usize = 1_000;

/// Why the run did not show a finding is said where that takes no more than going through so many events.
const ARGUED_EVENTS_MAX: usize = 20_000_000;

/// Writes a page on what was found in each of `examined`.
///
/// # Errors
/// If `out` fails.
pub fn html(out: &mut dyn Write, examined: &[Examined<'_>]) -> io::Result<()> {
    let count: usize = examined.iter().map(|one| one.outcome.findings.len()).sum();
    // Pages of ten thousand findings must still open at once.
    let reach = if count > BRIEF_MAX { Reach::LEAN } else { Reach::BRIEF };
    let legends: Vec<Legend<'_>> =
        examined.iter().map(|examined| Legend::new(examined.trace)).collect();
    start(out, &page_title(examined), true)?;
    write_data(out, "page", &head(examined, None))?;
    let parts = examined.iter().zip(&legends).flat_map(|(examined, legend)| {
        let parts = examined.outcome.findings.chunks(CHUNK);
        parts.map(move |findings| (examined, legend, findings))
    });
    for (at, (examined, legend, findings)) in parts.enumerate() {
        let is_argued = count <= CHUNK && count * examined.trace.len() <= ARGUED_EVENTS_MAX;
        let chunk = chunk(examined, legend, findings, reach, |reported| {
            argument(examined.trace, &Explanation::brief(examined.trace, reported, is_argued))
        });
        write_data(out, &format!("report{at}"), &json::part(examined, findings))?;
        write_data(out, &format!("view{at}"), &chunk)?;
        // The page shows the list and its first finding before the others are read.
        if at == 0 {
            write_script(out)?;
        }
    }
    if count == 0 {
        write_script(out)?;
    }
    write_plain(out, heading(examined), |out| plain_report(out, examined))
}

/// Writes a page on the finding of `explanation` alone, one of those of `examined`, and the `text` of it
/// for readers without a script.
pub fn explanation_page(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    explanation: &Explanation<'_>,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let reported = explanation.reported;
    let only = std::slice::from_ref(examined);
    let legend = Legend::new(examined.trace);
    let findings = std::slice::from_ref(reported);
    let chunk =
        chunk(examined, &legend, findings, Reach::FULL, |_| argument(examined.trace, explanation));
    start(out, &format!("{} of {}: reweave", reported.id, title(examined.path)), true)?;
    write_data(out, "page", &head(only, Some(reported)))?;
    write_data(out, "report0", &json::explained(examined, explanation))?;
    write_data(out, "view0", &chunk)?;
    write_script(out)?;
    write_plain(out, heading(only), |out| write_preformatted(out, text))
}

/// Writes a page called `title` that needs no script, with a `heading` and what `body` writes.
///
/// # Errors
/// If `out` or `body` fails.
pub fn page(
    out: &mut dyn Write,
    title: &str,
    heading: &str,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    start(out, title, false)?;
    let version = env!("CARGO_PKG_VERSION");
    writeln!(out, "<div class=\"plain\">\n<p class=\"brand\">reweave <span>{version}</span></p>")?;
    writeln!(out, "<h1>{}</h1>", markup(heading))?;
    body(out)?;
    writeln!(out, "</div>\n</body>\n</html>")
}

/// Writes all up to the start of the body. Nothing is loaded, and no script runs but our own.
fn start(out: &mut dyn Write, title: &str, has_script: bool) -> io::Result<()> {
    let style = policy_source(STYLE);
    let script = if has_script { policy_source(SCRIPT) } else { "'none'".to_owned() };
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src {style}; script-src {script}; base-uri 'none'; form-action 'none'\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        markup(title)
    )
}

/// `text` as a policy names it: `'sha256-…'`, in base 64.
fn policy_source(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = "'sha256-".to_owned();
    for three in Sha256::digest(text).chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(*three.get(at).unwrap_or(&0)));
        for at in 0..4 {
            let letter = char::from(LETTERS[(bits >> (18 - 6 * at) & 63) as usize]);
            out.push(if at > three.len() { '=' } else { letter });
        }
    }
    out + "'"
}

/// Writes what the script fills, and the script.
fn write_script(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<div id=\"app\"></div>\n<script>{SCRIPT}</script>")
}

/// Writes what a reader without a script sees, and the end of the page.
fn write_plain(
    out: &mut dyn Write,
    heading: &str,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    writeln!(out, "<noscript>\n<div class=\"plain\">\n<h1>{}</h1>", markup(heading))?;
    body(out)?;
    writeln!(out, "</div>\n</noscript>\n</body>\n</html>")
}

/// Writes `value` where the script finds it by the name `id`.
fn write_data(out: &mut dyn Write, id: &str, value: &impl Serialize) -> io::Result<()> {
    write!(out, "<script type=\"application/json\" id=\"{id}\">")?;
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, Inert))?;
    writeln!(out, "</script>")
}

/// Writes JSON in which no markup starts and nothing is hidden: such letters stand only in strings,
/// where an escape means the same.
struct Inert;

impl Formatter for Inert {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(|letter| letter == '<' || is_hidden(letter)) {
            let letter = rest[at..].chars().next().unwrap_or_default();
            out.write_all(&rest.as_bytes()[..at])?;
            for unit in letter.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + letter.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

/// The name of the trace, or of the first of them.
fn page_title(examined: &[Examined<'_>]) -> String {
    match examined {
        [] => "reweave report".to_owned(),
        [only] => format!("{}: reweave report", title(only.path)),
        [first, more @ ..] => {
            format!("{} and {} more: reweave report", title(first.path), more.len())
        }
    }
}

/// More findings than these are linked to from above.
const UNLINKED_MAX: usize = 5;

/// So many findings of a trace are shown in full, and others in a line.
const FULL_MAX: usize = 100;

/// So many findings of a trace have a line.
const LINES_MAX: usize = 500;

/// Writes what was found in each of `examined`, for readers without a script: the text report, with
/// links to its findings.
fn plain_report(out: &mut dyn Write, examined: &[Examined<'_>]) -> io::Result<()> {
    for (at, examined) in examined.iter().enumerate() {
        plain_section(out, at, examined)?;
    }
    Ok(())
}

fn plain_section(out: &mut dyn Write, at: usize, examined: &Examined<'_>) -> io::Result<()> {
    let findings = &examined.outcome.findings;
    // What links to a finding call it: its id, unique among the traces of a page.
    let anchor = |id: &str| if at == 0 { id.to_owned() } else { format!("trace{}-{id}", at + 1) };
    writeln!(out, "<section>\n<h2>{}</h2>", markup(title(examined.path)))?;
    write_preformatted(out, |out| text::opening(out, examined))?;
    if findings.len() > UNLINKED_MAX {
        writeln!(out, "<ul>")?;
        for (number, Reported { id, finding, .. }) in findings.iter().take(LINES_MAX).enumerate() {
            let (anchor, message) = (anchor(id), prose(&finding.message));
            if number < FULL_MAX {
                writeln!(out, "<li><a href=\"#{anchor}\">{id}</a> {message}</li>")?;
            } else {
                writeln!(out, "<li>{id} {message}</li>")?;
            }
        }
        if findings.len() > LINES_MAX {
            let more = findings.len() - LINES_MAX;
            writeln!(out, "<li>and {more} more, which --format text lists</li>")?;
        }
        writeln!(out, "</ul>")?;
    }
    let mut state = ReportState::new(examined.trace, text::CODE_AROUND);
    for reported in findings.iter().take(FULL_MAX) {
        writeln!(out, "<article id=\"{}\">", anchor(&reported.id))?;
        write_preformatted(out, |out| text::finding(out, examined, reported, &mut state))?;
        writeln!(out, "</article>")?;
    }
    write_preformatted(out, |out| text::closing(out, examined))?;
    writeln!(out, "</section>")
}

/// Writes what `text` writes, without its colours, as it stands.
fn write_preformatted(
    out: &mut dyn Write,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let text = text::uncoloured(text)?;
    let lines: Vec<String> = text.lines().map(markup).collect();
    writeln!(out, "<pre>{}</pre>", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_names_what_browsers_compute() {
        assert_eq!(policy_source(""), "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
        assert_eq!(policy_source("abc"), "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
    }
}
