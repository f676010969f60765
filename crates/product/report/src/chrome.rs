//! Schedules for timeline viewers: what was observed and what is predicted, each as a process.
//!
//! Of a finding's schedule every event is shown, at the moment of its step; beside it the same
//! events as they were observed, at the moments of their numbers. What is next at the end is next
//! at the same moment. Of what happened there is no other order. Of a long schedule only the end is shown.

use std::io::{self, Write};

use reweave_analysis::{Proof, Reported};
use reweave_format::chrome::{Run, write_runs};
use reweave_trace::{EventId, Trace};

use crate::schedule::{numbered, steps, steps_count};
use crate::{Examined, standing};

/// How many findings are shown, each with both its orders.
const FINDINGS_MAX: usize = 100;

/// How many steps of a schedule are shown.
const STEPS_MAX: usize = 50_000;

/// Writes the schedules of what was found in each of `examined`, beside what was observed.
///
/// ```
/// use reweave_report::{Examined, chrome};
///
/// let trace = reweave_trace::TraceBuilder::new().finish()?;
/// let found = reweave_analysis::Outcome::default();
/// chrome(&mut std::io::stdout(), &[Examined::new("run.rwt", &trace, &found)])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If `out` fails.
pub fn chrome(out: &mut dyn Write, examined: &[Examined<'_>]) -> io::Result<()> {
    let proven = examined.iter().flat_map(|one| {
        let proof = |reported: &'_ Reported| reported.finding.evidence.proof().is_some();
        one.outcome.findings.iter().filter(move |it| proof(it)).map(move |it| (one, it))
    });
    let mut runs = Vec::new();
    for (one, reported) in proven.take(FINDINGS_MAX) {
        let Some(proof) = reported.finding.evidence.proof() else { continue };
        let (trace, id) = (one.trace, &reported.id);
        let scheduled = scheduled(trace, proof);
        let marked = [proof.goal().named(), reported.finding.events.clone()].concat();
        let events = scheduled.iter().map(|&(_, event)| event).collect();
        let title = format!("{id} observed");
        runs.push(Run::some_observed(trace, title, events, marked.clone()));
        if standing::happened(trace, &reported.finding) {
            continue;
        }
        runs.push(Run::given(trace, format!("{id} predicted"), scheduled, marked));
    }
    write_runs(out, &runs)
}

/// What `proof` runs, and what is next at its end.
fn scheduled(trace: &Trace, proof: &Proof) -> Vec<(u64, EventId)> {
    let reordering = proof.reordering();
    let steps = numbered(trace, reordering, steps(trace, reordering));
    // What leads to the fault is at the end.
    let skipped = steps.len().saturating_sub(STEPS_MAX);
    let steps = steps[skipped..].iter().map(|&(step, event)| (step as u64, event));
    let end = steps_count(reordering) as u64 + 1;
    steps.chain(proof.goal().next().into_iter().map(|event| (end, event))).collect()
}
