//! Findings as a table, for spreadsheets and data tools: comma-separated values, a row per finding.
//!
//! The first row names the columns; later versions may add some at the end. Fields are quoted as RFC 4180
//! has it. Spreadsheets compute what starts like a formula, and names come from traces, so such a field
//! starts with an apostrophe.

use std::io::{self, Write};

use reweave_analysis::Reported;

use crate::Examined;
use crate::confirmation::Replayed;
use crate::finding::{known_locations, main_event_first};
use crate::shown::shown;
use crate::site::{Site, own_place};

/// The columns.
const COLUMNS: [&str; 12] = [
    "trace",
    "id",
    "fingerprint",
    "kind",
    "guarantee",
    "analysis",
    "count",
    "location",
    "other_locations",
    "threads",
    "message",
    "confirmed",
];

/// Writes what was found in each of `examined`.
///
/// ```
/// use reweave_report::{Examined, csv};
///
/// let trace = reweave_trace::TraceBuilder::new().finish()?;
/// let found = reweave_analysis::Outcome::default();
/// csv(&mut std::io::stdout(), &[Examined::new("run.rwt", &trace, &found)])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If `out` fails.
pub fn csv(out: &mut dyn Write, examined: &[Examined<'_>]) -> io::Result<()> {
    write_row(out, &COLUMNS.map(str::to_owned))?;
    for one in examined {
        for reported in &one.outcome.findings {
            write_row(out, &row(one, reported))?;
        }
    }
    Ok(())
}

/// The fields of a finding, in the order of [`COLUMNS`].
fn row(examined: &Examined<'_>, reported: &Reported) -> [String; COLUMNS.len()] {
    let Reported { id, fingerprint, finding, .. } = reported;
    let trace = examined.trace;
    let main = main_event_first(trace, finding, 1);
    let location = main.first().map_or("", |&event| own_place(trace, event));
    let mut others = known_locations(trace, finding);
    others.retain(|other| *other != location);
    let mut threads: Vec<&str> =
        finding.events.iter().map(|&event| Site::new(trace, event).thread).collect();
    threads.dedup();
    let confirmed = match examined.replayed(id) {
        None => "",
        Some(Replayed::Confirmed { .. }) => "yes",
        Some(Replayed::NotConfirmed { .. }) => "no",
    };
    [
        examined.path.to_owned(),
        id.clone(),
        fingerprint.to_string(),
        finding.kind.to_string(),
        finding.guarantee().as_str().to_owned(),
        finding.analysis.to_owned(),
        reported.count().to_string(),
        location.to_owned(),
        others.join("; "),
        threads.join("; "),
        finding.message.clone(),
        confirmed.to_owned(),
    ]
}

fn write_row(out: &mut dyn Write, fields: &[String]) -> io::Result<()> {
    let fields: Vec<String> = fields.iter().map(|text| field(text)).collect();
    writeln!(out, "{}", fields.join(","))
}

/// `text` as a field.
fn field(text: &str) -> String {
    let text = shown(text);
    let guard = if text.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    if text.contains([',', '"', ';']) {
        return format!("\"{guard}{}\"", text.replace('"', "\"\""));
    }
    format!("{guard}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_stays_a_field_and_is_no_formula() {
        assert_eq!(field("plain text"), "plain text");
        assert_eq!(field("a,\"b\"\n"), "\"a,\"\"b\"\"\\u{a}\"");
        assert_eq!(field("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
        assert_eq!(field("-1"), "'-1");
    }
}
