//! Checking: is every run serializable, given where the `if (*)` stand?
//!
//! No search is needed: the relevant events of each run (see [`relevant`](mod@crate::relevant))
//! and the conflicts between them (see [`conflict`](mod@crate::conflict)), both linear.
//!
//! Sound for each run that is given (Theorem 2 of Burnim et al.): a run that passes has a result
//! that the sequential program with these `if (*)` can have too. Other runs may fail.

use reweave_trace::Trace;

use crate::conflict::Conflicts;
use crate::explain::{Explanation, Reason, explain};
use crate::placement::{Placement, PlacementError, own_placements, validate};
use crate::relevant::{Regions, relevant};
use crate::run::{Run, RunError, prepare};

/// Whether runs agree with a specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every run is serializable.
    Serializable,
    /// A run is not.
    Violated(Explanation),
}

/// Why runs cannot be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The runs cannot be looked at together.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The placements cannot stand in the program.
    #[error(transparent)]
    Placement(#[from] PlacementError),
}

/// Checks `traces`, runs of one program, against the program's own `if (*)` and `placements`.
///
/// # Errors
/// If a trace has no flow layer, the traces are of different programs, or the placements cannot
/// stand in the program.
pub fn check(traces: &[&Trace], placements: &[Placement]) -> Result<Verdict, CheckError> {
    let runs = prepare(traces)?;
    let Some(first) = runs.first() else { return Ok(Verdict::Serializable) };
    validate(first.flow.blocks(), placements)?;
    let mut all = own_placements(first.flow);
    all.extend_from_slice(placements);
    let violated = runs.iter().enumerate().find_map(|(index, run)| violation(index, run, &all));
    Ok(violated.map_or(Verdict::Serializable, Verdict::Violated))
}

/// Why `run` is not serializable with `placements`, if it is not.
fn violation(index: usize, run: &Run<'_>, placements: &[Placement]) -> Option<Explanation> {
    let regions = Regions::new(run, placements, |node| run.events.is_branch(node));
    let relevance = relevant(run, &regions);
    let conflicts = Conflicts::new(run, &relevance.is_member);
    explain(index, run, &relevance, &conflicts, Reason::EnclosedWith)
}
