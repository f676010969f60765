//! One finding at length: what it is, why it is a fault, why the observed order hid it, its schedule
//! with why each step of it is allowed, that schedule beside what was observed, and the usual fix.
//!
//! The explanation is made once, as data, and then written as text, as HTML or as JSON.

mod accident;
mod circle;
mod fix;
mod html;
mod path;
mod relations;
mod sides;
mod steps;
mod text;
mod why;

use std::io::{self, Write};

use reweave_analysis::{Finding, Guarantee, Kind, Reported};
use reweave_trace::Trace;

use crate::{Examined, json};

pub use html::explanation_html;
pub(crate) use sides::{Row, Side, SideEvent, Sides, faults};
pub(crate) use steps::Step;
pub use text::explanation_text;

/// A finding with what there is to say about it.
#[derive(Debug)]
pub(crate) struct Explanation<'a> {
    /// The finding.
    pub(crate) reported: &'a Reported,
    /// Why it is a fault, why the run did not show it, and what relations say.
    pub(crate) sections: Vec<Section>,
    /// Why each step of its schedule is allowed, as far as they are shown.
    pub(crate) steps: Vec<Step>,
    /// What is so after the last step.
    pub(crate) ending: Vec<String>,
    /// What usually mends it.
    pub(crate) fix: Vec<String>,
    /// The events that matter as they were observed, and as the schedule runs them.
    pub(crate) sides: Option<Sides>,
}

/// A part of an explanation.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) heading: &'static str,
    pub(crate) paragraphs: Vec<String>,
    /// Whether the paragraphs are lines that belong together.
    pub(crate) is_list: bool,
}

/// What introduces the circle of a deadlock.
const CIRCLE_HEADING: &str = "Who waits for whom";

/// What introduces why each step is allowed.
pub(crate) const STEPS_HEADING: &str = "Why each step is allowed";

/// What introduces what usually mends it.
pub(crate) const FIX_HEADING: &str = "How to fix it";

impl<'a> Explanation<'a> {
    fn new(trace: &Trace, reported: &'a Reported) -> Self {
        let finding = &reported.finding;
        // A state is reached by its events as they were observed: one table tells both.
        let proof = finding.evidence.proof().filter(|_| finding.detail.state().is_none());
        let sides = proof.map(|proof| Sides::new(trace, proof, &finding.detail));
        Self {
            reported,
            sections: sections(trace, finding),
            steps: proof.map_or_else(Vec::new, |proof| steps::argued(trace, proof)),
            ending: proof.map_or_else(Vec::new, |proof| steps::ending(trace, proof)),
            fix: fix::paragraphs(trace, finding),
            sides,
        }
    }

    /// What introduces its state or its schedule; none if it has neither.
    fn evidence_heading(&self) -> Option<&'static str> {
        let finding = &self.reported.finding;
        match (finding.detail.state(), finding.evidence.proof()) {
            (Some(_), _) => Some("The state"),
            (None, Some(_)) => Some("How it comes about"),
            (None, None) => None,
        }
    }
}

/// What introduces why it is a fault. A state may be one that was hoped for.
const fn why_heading(kind: Kind) -> &'static str {
    match kind {
        Kind::Predicate => "What it says",
        _ => "Why it is a fault",
    }
}

/// The argument, but for the schedule.
fn sections(trace: &Trace, finding: &Finding) -> Vec<Section> {
    let relations = match (finding.kind, &finding.events[..]) {
        (Kind::Race, &[one, other]) => {
            let is_proven = finding.guarantee() == Guarantee::Witnessed;
            vec![relations::sentences(trace, one.min(other), one.max(other), is_proven)]
        }
        _ => Vec::new(),
    };
    let parts = [
        (why_heading(finding.kind), why::paragraphs(trace, finding)),
        (CIRCLE_HEADING, circle::paragraphs(trace, finding)),
        ("Why the observed order was an accident", accident::paragraphs(trace, finding)),
        ("Which relation orders the pair, and which does not", relations),
    ];
    let parts = parts.into_iter().filter(|(_, paragraphs)| !paragraphs.is_empty());
    let is_list = |heading| heading == CIRCLE_HEADING;
    parts
        .map(|(heading, paragraphs)| Section { heading, paragraphs, is_list: is_list(heading) })
        .collect()
}

/// Writes the report on `reported` alone, one of the findings of `examined`, with why it is a fault.
///
/// # Errors
/// If `out` fails.
pub fn explanation_json(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    reported: &Reported,
) -> io::Result<()> {
    json::write_explanation(out, examined, &Explanation::new(examined.trace, reported))
}
