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

mod alternatives;
mod chrome;
mod code;
mod confirmation;
mod cycle;
mod explain;
mod github;
mod graph;
mod html;
mod json;
mod junit;
mod layout;
mod left_out;
mod legend;
mod level;
mod next;
mod pictures;
mod sarif;
mod schedule;
mod settings;
mod shown;
mod site;
mod sources;
mod stack;
mod state;
mod stats;
mod table;
mod text;

use reweave_analysis::{Detail, Finding, Guarantee, Kind, Outcome, Proof};
use reweave_trace::{After, EventId, Goal, Trace};

use schedule::{observed, sees};

pub use chrome::chrome;
pub use confirmation::{Confirmation, Replayed, confirmation_json, confirmation_text};
pub use cycle::{cycle_json, cycle_text};
pub use explain::{explanation_html, explanation_json, explanation_text};
pub use github::{github, github_summary};
pub use graph::{graph_dot, graph_svg};
pub use html::{html, page};
pub use json::{SCHEMA, SCHEMA_FILE, json, json_list};
pub use junit::junit;
pub use next::quoted;
pub use pictures::{cycle_html, histogram_svg};
pub use sarif::sarif;
pub use settings::recorded_settings;
pub use shown::{markup, shown};
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
    /// Findings of these kinds are a reason to fail; others are told of and fail nothing.
    pub fails_on: &'a [Kind],
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
            fails_on: &Kind::ALL,
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
        let told = reasons.into_iter().filter(|&(count, _)| count > 0);
        let told: Vec<String> = told.map(|(count, why)| format!("{count} {why}")).collect();
        (!told.is_empty()).then(|| format!("Not shown: {}.", told.join(", ")))
    }
}

/// Up to so many reads that may see another write are told of one by one.
const FREE_READS_MAX: usize = 3;

/// The reads that a schedule lets see another write than they saw, and what their threads do then.
fn free_reads(trace: &Trace, proof: &Proof) -> (Vec<EventId>, After) {
    match proof.goal() {
        Goal::Order { free, after, .. } => {
            let reads = free.iter().copied().filter(|&event| trace.event(event).op.is_read());
            (reads.collect(), *after)
        }
        Goal::Sees { read, after, .. } => (vec![*read], *after),
        Goal::Race(..)
        | Goal::Enabled(_)
        | Goal::Deadlock(_)
        | Goal::Reaches(_)
        | Goal::Leaves { .. } => (Vec::new(), After::Stops),
    }
}

/// What a schedule takes for granted or lets be, a sentence each.
fn remarks(trace: &Trace, proof: &Proof) -> Vec<String> {
    let (free, after) = free_reads(trace, proof);
    let mut remarks: Vec<String> = match free.len() {
        0..=FREE_READS_MAX => {
            free.iter().map(|&read| free_read(trace, proof, read, after)).collect()
        }
        count => vec![format!(
            "{count} reads may see other writes than they saw; it is taken for granted that their \
             threads go on as they did."
        )],
    };
    let count = proof.unknown_reads_count() as u64;
    if count > 0 {
        let reads = counted(count, "read");
        remarks.push(format!("It rests on {reads} whose writer was not observed."));
    }
    remarks
}

/// What `read` sees in a schedule that lets it see another write, and what its thread does then.
fn free_read(trace: &Trace, proof: &Proof, read: EventId, after: After) -> String {
    let number = read.number();
    let saw = observed(trace, read);
    let what = match sees(trace, proof.reordering(), read).zip(saw) {
        Some((now, saw)) if now != saw => format!("sees {now} instead of {saw}"),
        _ => "may see another write than it saw".to_owned(),
    };
    let rest = match after {
        After::Stops => "its thread stops there",
        After::RunsOn => "it is taken for granted that its thread goes on as it did",
    };
    format!("Event {number} {what}; {rest}.")
}

/// What introduces a schedule.
fn heading(proof: &Proof) -> &'static str {
    match proof.goal() {
        Goal::Race(..) | Goal::Enabled(_) => "A schedule that leads there:",
        Goal::Deadlock(_) => "A schedule after which each waits for the next:",
        Goal::Order { .. } | Goal::Sees { .. } => {
            "A schedule that shows it, the events at fault marked:"
        }
        Goal::Reaches(_) => "A run that reaches it:",
        Goal::Leaves { .. } => "A schedule of all events that shows it, the last write marked:",
    }
}

/// What people are told that the trace at `path` is called.
fn title(path: &str) -> &str {
    if path == "-" { "standard input" } else { path }
}

/// Where to find the steps of a schedule that its table leaves out.
const GAP_HINT: &str = "--format json has the whole schedule";

/// What a finding that stands for several instances says of the others.
fn instances_note(finding: &Finding) -> Option<String> {
    let things = match (&finding.detail, finding.kind) {
        // What a read then sees may be yet another write.
        (Detail::Nondeterminism(_), _) => "pairs of a read here and another write that can come in",
        (Detail::State(state), _) => state::instances(state),
        (Detail::None, Kind::Race) => "pairs at these locations",
        (Detail::None, _) => "instances at these locations",
    };
    let stands = format!("It stands for {} {things}", finding.count);
    match finding.guarantee() {
        _ if finding.count < 2 => None,
        Guarantee::Witnessed => Some(format!("{stands}; this one has a schedule")),
        Guarantee::First | Guarantee::Unordered => Some(stands),
    }
}

/// `count` things: `1 event`, `2 events`.
#[must_use]
pub fn counted(count: u64, thing: &str) -> String {
    let plural = match thing.ends_with('s') {
        _ if count == 1 => "",
        true => "es",
        false => "s",
    };
    format!("{count} {thing}{plural}")
}
