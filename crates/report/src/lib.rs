//! Findings for people and for programs: text, JSON, and an HTML page that stands alone.
//!
//! Names come from traces and may hold anything. Text and HTML show control characters and
//! whatever else could change how a line looks as escapes, and HTML escapes markup, so a report
//! shows names as they are and does nothing they say.

mod html;
mod json;
mod layout;
mod left_out;
mod shown;
mod site;
mod stats;
mod table;
mod text;

use reweave_analysis::{Finding, Guarantee, Outcome, Proof};
use reweave_trace::Trace;

pub use html::{html, html_with};
pub use json::{SCHEMA, json, json_list};
pub use shown::shown;
pub use stats::{Source, Stats, stats_json, stats_list_json, stats_text};
pub use text::{proof, summary, text};

/// A trace and what was found in it.
#[derive(Clone, Copy, Debug)]
pub struct Examined<'a> {
    /// Where the trace came from; `-` is standard input.
    pub path: &'a str,
    /// The trace.
    pub trace: &'a Trace,
    /// What was found.
    pub outcome: &'a Outcome,
}

/// A proof to show by itself, beside what analyses found.
#[derive(Clone, Copy, Debug)]
pub struct Exhibit<'a> {
    /// What it is called.
    pub title: &'a str,
    /// What it shows, in a sentence.
    pub message: &'a str,
    /// The trace whose events it reorders.
    pub trace: &'a Trace,
    /// The proof.
    pub proof: &'a Proof,
}

/// What a proof takes for granted, if anything.
fn assumption(proof: &Proof) -> Option<String> {
    let count = proof.loose_reads_count() as u64;
    (count > 0)
        .then(|| format!("It rests on {} whose writer was not observed.", counted(count, "read")))
}

/// What people are told that the trace at `path` is called.
fn title(path: &str) -> &str {
    if path == "-" { "standard input" } else { path }
}

/// Where to find the steps of a schedule that its table leaves out.
const GAP_HINT: &str = "--format json has the whole schedule";

/// What a finding that stands for several pairs says of the others.
fn instances_note(finding: &Finding) -> Option<String> {
    let pairs = format!("{} unordered pairs at these locations", finding.count);
    match finding.guarantee() {
        _ if finding.count < 2 => None,
        Guarantee::Witnessed => Some(format!("{pairs}; this one has a schedule")),
        Guarantee::First | Guarantee::Unordered => Some(pairs),
    }
}

/// `count` things: `1 event`, `2 events`.
fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}
