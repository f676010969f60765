//! One finding at length: what it is, why it is a fault, its schedule, and that schedule beside what
//! was observed.
//!
//! The explanation is made once, as data, and then written as text, as HTML or as JSON.

mod html;
mod sides;
mod text;
mod why;

use std::io::{self, Write};

use reweave_analysis::Reported;
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
        let proof = finding.evidence.proof();
        let sides = proof.map(|proof| Sides::of(trace, proof, &finding.detail));
        Self { reported, why: why::paragraphs(trace, finding), sides }
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
