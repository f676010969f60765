//! Candidates: the placements that can be part of a best specification.
//!
//! Any neighbouring statements of a block might be enclosed. But a placement is of no use unless
//! some execution of it can be skipped as a whole, holding no event that is kept whatever is
//! enclosed, and has a branch in it: all that an `if (*)` does is to make branches irrelevant.
//!
//! Executions of a block that look alike are looked at once. Linear, and quadratic in the length
//! of the longest stretch of a block that can be skipped.

use reweave_base::{FxHashSet, IndexVec};
use reweave_trace::{InstanceId, StaticBlockId};

use crate::placement::Placement;
use crate::run::Run;
use crate::scopes::ExecutionId;

/// What a statement did in one execution of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Content {
    /// Nothing that is kept, and no branch.
    Plain,
    /// Nothing that is kept, and a branch.
    Branch,
    /// An event that is kept.
    Kept,
}

/// The placements that can be of use in `runs`; for each run `is_blocked` says which executions of
/// statements hold an event that is kept whatever is enclosed.
pub(crate) fn candidates<'r, 't: 'r>(
    runs: impl Iterator<Item = (&'r Run<'t>, &'r IndexVec<InstanceId, bool>)>,
) -> FxHashSet<Placement> {
    let mut seen: FxHashSet<(StaticBlockId, Vec<(u32, Content)>)> = FxHashSet::default();
    let mut found = FxHashSet::default();
    for (run, is_blocked) in runs {
        let branches = branches_before(run);
        for execution in run.scopes.executions() {
            let contents = contents(run, execution, is_blocked, &branches);
            if contents.iter().all(|&(_, content)| content != Content::Branch) {
                continue;
            }
            let block = run.scopes.block(execution);
            if seen.insert((block, contents.clone())) {
                let statements_count = run.flow.blocks()[block].statements.len() as u32;
                add_stretches(block, &contents, statements_count, &mut found);
            }
        }
    }
    found
}

/// How many branches come before each place in the order of the run's scopes.
fn branches_before(run: &Run<'_>) -> Vec<u32> {
    let mut count = 0;
    let mut counts = Vec::with_capacity(run.scopes.order().len() + 1);
    counts.push(0);
    for &node in run.scopes.order() {
        count += u32::from(run.events.is_branch(node));
        counts.push(count);
    }
    counts
}

fn contents(
    run: &Run<'_>,
    execution: ExecutionId,
    is_blocked: &IndexVec<InstanceId, bool>,
    branches: &[u32],
) -> Vec<(u32, Content)> {
    let content = |&member: &InstanceId| {
        let range = run.scopes.range(&[member]);
        let content = if is_blocked[member] {
            Content::Kept
        } else if branches[range.end] > branches[range.start] {
            Content::Branch
        } else {
            Content::Plain
        };
        (run.scopes.position(member), content)
    };
    run.scopes.members(execution).iter().map(content).collect()
}

/// Adds the placements that stay between statements whose events are kept and enclose a branch.
fn add_stretches(
    block: StaticBlockId,
    contents: &[(u32, Content)],
    statements_count: u32,
    found: &mut FxHashSet<Placement>,
) {
    let positions = |wanted: Content| -> Vec<u32> {
        let matching = contents.iter().filter(|&&(_, content)| content == wanted);
        matching.map(|&(position, _)| position).collect()
    };
    let (kept, branches) = (positions(Content::Kept), positions(Content::Branch));
    let at_least = |positions: &[u32], least: u32| {
        positions.get(positions.partition_point(|&position| position < least)).copied()
    };
    for first in 0..statements_count {
        let Some(branch) = at_least(&branches, first) else { break };
        let end = at_least(&kept, first).unwrap_or(statements_count);
        found.extend((branch..end).map(|last| Placement { block, first, last }));
    }
}
