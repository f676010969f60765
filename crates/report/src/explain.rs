//! One finding at length: what it is, why it is a fault, its schedule, and that schedule beside what
//! was observed.
//!
//! The explanation is made once, as data, and then written as text, as HTML or as JSON.

mod html;
mod sides;
mod text;
mod why;

use std::io::{self, Write};

use reweave_analysis::{Kind, Reported};
use reweave_trace::Trace;

use crate::{Examined, json};

pub use html::explanation_html;
pub(crate) use sides::{Row, Side, SideEvent, Sides};
pub use text::explanation_text;

/// A finding with what there is to say about it.
#[derive(Debug)]
pub(crate) struct Explanation<'a> {
    /// The finding.
    pub(crate) reported: &'a Reported,
    /// Why it is a fault, a paragraph each.
    pub(crate) why: Vec<String>,
    /// The events that matter as they were observed, and as the schedule runs them.
    pub(crate) sides: Option<Sides>,
}

impl<'a> Explanation<'a> {
    fn of(trace: &Trace, reported: &'a Reported) -> Self {
        let finding = &reported.finding;
        // A state is reached by its events as they were observed: one table tells both.
        let proof = finding.evidence.proof().filter(|_| finding.detail.state().is_none());
        let sides = proof.map(|proof| Sides::of(trace, proof, &finding.detail));
        Self { reported, why: why::paragraphs(trace, finding), sides }
    }

    /// What introduces why it is a fault. A state may be one that was hoped for.
    const fn why_heading(&self) -> &'static str {
        match self.reported.finding.kind {
            Kind::Predicate => "What it says",
            _ => "Why it is a fault",
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

/// Writes the report on `reported` alone, one of the findings of `examined`, with why it is a fault.
///
/// # Errors
/// If `out` fails.
pub fn explanation_json(
    out: &mut dyn Write,
    examined: &Examined<'_>,
    reported: &Reported,
) -> io::Result<()> {
    json::write_explanation(out, examined, &Explanation::of(examined.trace, reported))
}
