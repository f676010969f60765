//! Findings as annotations that GitHub shows beside the code, and as a summary of a step.
//!
//! An annotation is a line that starts with `::error`, `::warning` or `::notice`. GitHub shows ten
//! of each a step, so the worst come first; all are written, since the log has them. The first
//! event at fault carries the finding; the others are notices that point to it. What was not
//! searched is a warning of its own, with the reason: silence is not to be taken for a clean run.
//!
//! Names may hold anything: in an annotation all that means something is escaped, and no other line
//! can be taken for a command.

use std::io::{self, Write};

use reweave_analysis::{Finding, Reported};

use crate::finding::{Level, instances_note, known_locations, main_event_first};
use crate::left_out::accounts;
use crate::places::traces_note;
use crate::shown::{clipped, markup, prose, shown};
use crate::site::Site;
use crate::sources::{Place, Sources};
use crate::{Examined, counted, summary, title};

/// How many findings a summary lists.
const ROWS_MAX: usize = 50;

/// How long a place and a sentence get in a summary.
const CELL_MAX: usize = 300;

/// How many other events at fault get a notice.
const OTHERS_MAX: usize = 9;

/// What a warning is called of a search that was not complete.
const UNSEARCHED: &str = "not everything was searched";

/// Writes what was found in each of `examined`.
///
/// ```
/// use reweave_report::{Examined, github};
///
/// let trace = reweave_trace::TraceBuilder::new().finish()?;
/// let found = reweave_analysis::Outcome::default();
/// github(&mut std::io::stdout(), &[Examined::new("run.rwt", &trace, &found)])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If `out` fails.
pub fn github(out: &mut dyn Write, examined: &[Examined<'_>]) -> io::Result<()> {
    for level in [Level::Error, Level::Warning, Level::Note] {
        for (one, reported) in findings(examined) {
            if Level::new(one, &reported.finding) == level {
                annotation(out, one, reported)?;
            }
        }
        // Right after the errors, so that the limit of annotations does not cut it off.
        if level == Level::Error {
            examined.iter().try_for_each(|one| unsearched(out, one))?;
        }
    }
    for (one, reported) in findings(examined) {
        others(out, one, reported)?;
    }
    for one in examined {
        let line = format!("reweave: {}: {}", title(one.path), summary_line(one));
        // The old form of commands is looked for anywhere in a line.
        writeln!(out, "{}", shown(&line).replace("##[", "## ["))?;
    }
    Ok(())
}

/// All findings, in the order of traces.
fn findings<'a, 'e>(
    examined: &'e [Examined<'a>],
) -> impl Iterator<Item = (&'e Examined<'a>, &'a Reported)> {
    examined.iter().flat_map(|one| one.outcome.findings.iter().map(move |it| (one, it)))
}

/// What was found in a trace, in a line, with what was set aside.
fn summary_line(examined: &Examined<'_>) -> String {
    let line = summary(examined.outcome, examined.set_aside);
    match examined.set_aside.sentence() {
        Some(sentence) => format!("{line}. {sentence}"),
        None => line,
    }
}

/// Warns of what was not searched in a trace, if anything was not, and says why.
fn unsearched(out: &mut dyn Write, examined: &Examined<'_>) -> io::Result<()> {
    if examined.outcome.is_complete() {
        return Ok(());
    }
    let mut message = shown(title(examined.path)).into_owned();
    for (coverage, sentences) in accounts(examined.outcome) {
        let Some(reason) = coverage.truncated else { continue };
        message += &format!("\n{}: {reason}", coverage.analysis);
        for sentence in sentences {
            message += &format!("\n  {sentence}");
        }
    }
    writeln!(
        out,
        "::warning {}::{}",
        properties(&Sources::none(), None, UNSEARCHED),
        data(&message)
    )
}

/// The events at fault, the one first that carries the finding.
fn sites<'t>(examined: &Examined<'t>, finding: &Finding) -> Vec<Site<'t>> {
    let events = main_event_first(examined.trace, finding, 1 + OTHERS_MAX);
    events.into_iter().map(|event| Site::new(examined.trace, event)).collect()
}

fn annotation(out: &mut dyn Write, examined: &Examined<'_>, reported: &Reported) -> io::Result<()> {
    let Reported { id, fingerprint, finding, .. } = reported;
    let sites = sites(examined, finding);
    let is_error = Level::new(examined, finding) == Level::Error;
    let command = if is_error { "error" } else { "warning" };
    let place = sites.first().and_then(|site| Place::new(site.location));
    let title = format!("{} ({id}, {})", finding.kind, finding.guarantee());
    let mut message = shown(&finding.message).into_owned();
    for site in &sites {
        message += &format!("\n{}", shown(&line(site)));
    }
    let notes = [instances_note(reported).filter(|_| !reported.places.is_empty())];
    for note in notes.into_iter().chain([traces_note(reported)]).flatten() {
        message += &format!("\n{}", shown(&note));
    }
    message += &format!("\n{}", finding.guarantee().meaning());
    message += &format!("\n{} {fingerprint}", finding.analysis);
    writeln!(out, "::{command} {}::{}", properties(examined.sources, place, &title), data(&message))
}

/// Notices at the other events at fault, which point to the one that carries the finding.
fn others(out: &mut dyn Write, examined: &Examined<'_>, reported: &Reported) -> io::Result<()> {
    let Reported { id, finding, .. } = reported;
    let sites = sites(examined, finding);
    let Some(first) = sites.first() else { return Ok(()) };
    for site in &sites[1..] {
        let place = Place::new(site.location);
        // A second notice at the same line would only repeat the first.
        if place.is_none() || place == Place::new(first.location) {
            continue;
        }
        let title = format!("{} ({id}, the other side)", finding.kind);
        let message = format!("{}\nwith {}", shown(&line(site)), shown(&line(first)));
        writeln!(
            out,
            "::notice {}::{}",
            properties(examined.sources, place, &title),
            data(&message)
        )?;
    }
    Ok(())
}

/// Who does what at `site`, and where.
fn line(site: &Site<'_>) -> String {
    format!("{}, {}", site.line(), site.holding())
}

fn properties(sources: &Sources, place: Option<Place<'_>>, title: &str) -> String {
    let mut properties = String::new();
    if let Some(Place { file, line, column }) = place {
        let in_repository = sources.in_repository(file);
        let file = property(in_repository.as_deref().unwrap_or(file));
        properties += &format!("file={file},line={line},");
        if let Some(column) = column {
            properties += &format!("col={column},");
        }
    }
    properties + "title=" + &property(title)
}

/// `text` as the message of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// `text` as a property of a command.
fn property(text: &str) -> String {
    data(&shown(text)).replace(':', "%3A").replace(',', "%2C")
}

/// Writes a short table of what was found in each of `examined`, in Markdown, for the summary of a
/// step.
///
/// ```
/// use reweave_report::{Examined, github_summary};
///
/// let trace = reweave_trace::TraceBuilder::new().finish()?;
/// let found = reweave_analysis::Outcome::default();
/// github_summary(&mut std::io::stdout(), &[Examined::new("run.rwt", &trace, &found)])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If `out` fails.
pub fn github_summary(out: &mut dyn Write, examined: &[Examined<'_>]) -> io::Result<()> {
    for one in examined {
        writeln!(out, "### reweave: <code>{}</code>\n", cell(&markup(title(one.path))))?;
        writeln!(out, "{}\n", summary_line(one))?;
        let findings = &one.outcome.findings;
        if findings.is_empty() {
            continue;
        }
        writeln!(out, "| id | kind | guarantee | where | what |\n| --- | --- | --- | --- | --- |")?;
        for reported in findings.iter().take(ROWS_MAX) {
            row(out, one, reported)?;
        }
        if findings.len() > ROWS_MAX {
            let more = counted((findings.len() - ROWS_MAX) as u64, "other");
            writeln!(out, "\nand {more}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn row(out: &mut dyn Write, examined: &Examined<'_>, reported: &Reported) -> io::Result<()> {
    let Reported { id, finding, .. } = reported;
    let places = known_locations(examined.trace, finding);
    let places: Vec<String> = places
        .iter()
        .take(1 + OTHERS_MAX)
        .map(|place| format!("<code>{}</code>", cell(&markup(&clipped(place, CELL_MAX)))))
        .collect();
    let what = cell(&prose(&clipped(&finding.message, CELL_MAX)));
    let (kind, guarantee) = (finding.kind, finding.guarantee());
    writeln!(out, "| {id} | {kind} | {guarantee} | {} | {what} |", places.join("<br>"))
}

/// `html` for a cell of a table, with what Markdown would make something of as references.
fn cell(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    for letter in html.chars() {
        match letter {
            '|' | '*' | '_' | '[' | ']' | '\\' | '`' | '~' | '!' | '@' | ':' => {
                out += &format!("&#{};", u32::from(letter));
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_ends_a_property_or_a_command() {
        assert_eq!(property("a,b:c%\r\n::x"), "a%2Cb%3Ac%25\\u{d}\\u{a}%3A%3Ax");
        assert_eq!(data("50%\nnext\r"), "50%25%0Anext%0D");
        assert_eq!(cell(&markup("a|b *c* <i>")), "a&#124;b &#42;c&#42; &lt;i&gt;");
    }
}
