//! Findings for people and for programs: text, JSON, an HTML page that stands alone, and what code
//! scanners, test runners, workflows and timeline viewers read.
//!
//! Names come from traces and may hold anything. Text and HTML show control characters and
//! whatever else could change how a line looks as escapes, and HTML escapes markup, so a report
//! shows names as they are and does nothing they say.
//!
//! ```
//! use reweave_analysis::Settings;
//! use reweave_catalog::{Quiet, run, select};
//! use reweave_report::{Examined, html, json, text};
//!
//! let trace = reweave_testkit::std("T1|w(x)|a.c:1\nT2|w(x)|b.c:2\n");
//! let outcome = run(&trace, &select("races.exact", &[]).unwrap(), &Settings::default(), &Quiet);
//! let examined = [Examined::new("run.std", &trace, &outcome)];
//!
//! let [mut plain, mut page, mut data] = [Vec::new(), Vec::new(), Vec::new()];
//! text(&mut plain, &examined)?;
//! html(&mut page, &examined)?;
//! json(&mut data, &examined)?;
//! assert!(String::from_utf8_lossy(&plain).contains("can happen at the same time"));
//! assert!(page.starts_with(b"<!doctype html>"));
//! assert!(data.starts_with(b"{"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Modules by what they hold: `text`, `json`, `html`, `sarif`, `junit`, `csv`, `github`, `chrome`, `stats` and
//! `explain` are formats; `finding`, `site`, `schedule`, `relevance`, `slice`, `state`, `alternatives`, `legend`,
//! `related`, `left_out`, `places`, `standing`, `sources`, `highlight`, `confirmation` and `rerun` are what several
//! of them say.

#![allow(unreachable_pub, reason = "no module is public: `pub` means that another module uses it")]

mod alternatives;
mod chrome;
mod confirmation;
mod csv;
mod cycle;
mod explain;
mod finding;
mod github;
mod graph;
mod highlight;
mod html;
mod json;
mod junit;
mod left_out;
mod legend;
mod narrow;
mod places;
mod related;
mod relevance;
mod rerun;
mod sarif;
mod schedule;
mod shown;
mod site;
mod slice;
mod sources;
mod standing;
mod state;
mod stats;
mod text;

use reweave_analysis::{Kind, Outcome};
use reweave_trace::Trace;

pub use chrome::chrome;
pub use confirmation::{Confirmation, Replayed, confirmation_json, confirmation_text};
pub use csv::csv;
pub use cycle::{cycle_html, cycle_json, cycle_text};
pub use explain::{explanation_html, explanation_json, explanation_text};
pub use finding::quoted;
pub use github::{github, github_summary};
pub use graph::{graph_dot, graph_svg, histogram_svg};
pub use html::{html, page};
pub use json::{SCHEMA, SCHEMA_FILE, compact, json, json_list, recorded_settings};
pub use junit::junit;
pub use rerun::RecordedCommand;
pub use sarif::sarif;
pub use shown::{markup, prose, shown};
pub use sources::{Excerpt, Frame, Place, Sources};
pub use stats::{Source, Stats, stats_json, stats_list_json, stats_text};
pub use text::{summary, text};

/// A trace and what was found in it.
#[derive(Clone, Copy, Debug)]
pub struct Examined<'a> {
    /// Where the trace came from; `-` is standard input.
    pub path: &'a str,
    /// The trace.
    pub trace: &'a Trace,
    /// What was found.
    pub outcome: &'a Outcome,
    /// What came of replaying findings; empty if none was replayed.
    pub confirmations: &'a [Confirmation],
    /// Where the code is read that reports show.
    pub sources: &'a Sources,
    /// What was found and is not in `outcome`.
    pub set_aside: SetAside,
    /// Whether the trace can be read again at `path`; else no command is named that does.
    pub is_kept: bool,
    /// The folder that the reader stands in, for commands that are to work from there; none for the one
    /// that the program was recorded in.
    pub folder: Option<&'a str>,
    /// Whether the reader recorded the command that the trace holds, so that commands may run it; else it is not
    /// printed for them to type, but `confirm` shows it and asks.
    pub is_own: bool,
    /// How many letters a line of text may have; none for any number.
    pub width: Option<usize>,
    /// Findings of these kinds are a reason to fail; others are reported and fail nothing.
    pub fails_on: &'a [Kind],
    /// Whether texts show all steps of schedules, and not only those that matter.
    pub is_full: bool,
}

impl<'a> Examined<'a> {
    /// What was found in `trace`: nothing of it replayed or set aside, all of it a reason to fail,
    /// and shown without code.
    #[must_use]
    pub fn new(path: &'a str, trace: &'a Trace, outcome: &'a Outcome) -> Self {
        static NONE: Sources = Sources::none();
        Self {
            path,
            trace,
            outcome,
            confirmations: &[],
            sources: &NONE,
            set_aside: SetAside::default(),
            is_kept: path != "-",
            folder: None,
            is_own: false,
            width: None,
            fails_on: &Kind::ALL,
            is_full: false,
        }
    }
}

/// How many findings were made that a report leaves out, since somebody said so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAside {
    /// They are in the baseline.
    pub known: u64,
    /// A suppression names them.
    pub suppressed: u64,
}

impl SetAside {
    /// How many there are and why, as a sentence; none if there is none.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let reasons = [(self.known, "in the baseline"), (self.suppressed, "suppressed")];
        let reasons = reasons.into_iter().filter(|&(count, _)| count > 0);
        let reasons: Vec<String> = reasons.map(|(count, why)| format!("{count} {why}")).collect();
        (!reasons.is_empty()).then(|| format!("Not shown: {}.", reasons.join(", ")))
    }
}

/// What reports for people call the trace at `path`.
fn title(path: &str) -> &str {
    if path == "-" { "standard input" } else { path }
}

/// `count` things: `1 event`, `2 events`.
#[must_use]
pub fn counted(count: u64, thing: &str) -> String {
    let plural = match count {
        1 => "",
        _ if thing.ends_with('s') => "es",
        _ => "s",
    };
    format!("{count} {thing}{plural}")
}
