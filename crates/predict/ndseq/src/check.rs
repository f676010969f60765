//! Checking: is every run serializable, given where the `if (*)` stand?
//!
//! No search is needed: the relevant events of each run (see [`relevant`](mod@crate::relevant))
//! and the conflicts between them (see [`conflict`](mod@crate::conflict)), both linear.
//!
//! Sound for each run that is given (Theorem 2 of Burnim et al.): a run that passes has a result
//! that the sequential program with these `if (*)` can have too. Other runs may fail.

use reweave_trace::{EventId, ThreadId, Trace, VarId};

use crate::conflict::{Conflicts, Edge};
use crate::events::NodeId;
use crate::placement::{Placement, PlacementError, own_placements, validate};
use crate::relevant::{Regions, Relevance, relevant};
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

// Explanations: a cycle of conflicts, and why none of its events can be forgotten.

/// Why a run is not serializable: a cycle of conflicts between events that all count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Which run, counted from 0.
    pub run: usize,
    /// The conflicts of the cycle: each starts at the thread where the one before it ends.
    pub cycle: Vec<Hop>,
    /// For each event of the cycle, in observed order, why it counts.
    pub chains: Vec<Chain>,
}

/// A conflict that orders two threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The thread that comes first; the event may be a descendant's.
    pub from: ThreadId,
    /// The thread that comes after it.
    pub to: ThreadId,
    /// The event of the first.
    pub earlier: EventId,
    /// The event of the second.
    pub later: EventId,
    /// What both access.
    pub var: VarId,
}

/// Why an event counts: the first link is the event itself, each next one what the link before
/// it names, and the last counts by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The links, never none.
    pub links: Vec<Link>,
}

/// An event and why it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The event.
    pub event: EventId,
    /// Why it counts.
    pub reason: Reason,
}

/// Why an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is its thread's last write to a variable of the result.
    Target(VarId),
    /// Its value may flow into this event.
    FlowsInto(EventId),
    /// It is a branch, and its own statement, the least that any `if (*)` around it could skip,
    /// contains this event. Said where no placements are given.
    Encloses(EventId),
    /// It is a branch, and the innermost `if (*)` around it contains this event, so that it cannot
    /// be skipped. Said of given placements.
    EnclosedWith(EventId),
    /// It is a branch that no `if (*)` encloses.
    NotEnclosed,
}

/// Explains the cycle in `conflicts`, those of run number `run_index` between the events of
/// `relevance`; none if there is no cycle. `not_skipped` is the reason of a branch that counts
/// because of an event beside it.
pub(crate) fn explain(
    run_index: usize,
    run: &Run<'_>,
    relevance: &Relevance,
    conflicts: &Conflicts,
    not_skipped: fn(EventId) -> Reason,
) -> Option<Explanation> {
    let edges = conflicts.shortest_cycle()?;
    let hop = |edge: &Edge| {
        let var = run.events.kind(edge.earlier).var().expect("a conflict is between accesses");
        let (earlier, later) = (run.events.id(edge.earlier), run.events.id(edge.later));
        Hop { from: edge.from, to: edge.to, earlier, later, var }
    };
    let cycle = edges.iter().map(hop).collect();
    let mut nodes: Vec<NodeId> = edges.iter().flat_map(|edge| [edge.earlier, edge.later]).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let chain = |node| chain(run, relevance, node, not_skipped);
    let chains = nodes.into_iter().map(chain).collect();
    Some(Explanation { run: run_index, cycle, chains })
}

fn chain(
    run: &Run<'_>,
    relevance: &Relevance,
    node: NodeId,
    not_skipped: fn(EventId) -> Reason,
) -> Chain {
    let mut links = Vec::new();
    let mut next = Some(node);
    while let Some(node) = next {
        let cause = std::iter::successors(relevance.cause(node), |&cause| relevance.cause(cause))
            .find(|&cause| !run.dependences.is_junction(cause));
        let kind = run.events.kind(node);
        let is_branch = run.events.is_branch(node);
        let reason = match (cause, kind.var()) {
            (Some(cause), _) if is_branch => not_skipped(run.events.id(cause)),
            (Some(cause), _) => Reason::FlowsInto(run.events.id(cause)),
            (None, Some(var)) => Reason::Target(var),
            (None, None) => Reason::NotEnclosed,
        };
        links.push(Link { event: run.events.id(node), reason });
        next = cause;
    }
    Chain { links }
}
