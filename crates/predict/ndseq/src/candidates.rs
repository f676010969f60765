//! Candidates: the placements that can be part of a best specification.
//!
//! Any neighbouring statements of a block might be enclosed. But a placement is of no use unless
//! some execution of it can be skipped as a whole, holding no event that is kept whatever is
//! enclosed, and has a branch in it: all that an `if (*)` does is to make branches irrelevant.
//!
//! Executions of a block that look alike are looked at once. For each first statement the last
//! ones are kept as intervals, since a block of n statements may have n²/2 candidates. Linear in
//! the run, and for each block its length times the number of ways in which its executions differ;
//! that part is counted against the budget.

use reweave_base::{FxHashMap, FxHashSet, IndexVec};
use reweave_trace::{InstanceId, StaticBlockId};

use crate::effort::Effort;
use crate::placement::Placement;
use crate::run::Run;
use crate::scopes::ExecutionId;

/// Statements of a block, from the first to before the second.
type Interval = (u32, u32);

/// The placements that may be chosen or are there anyway.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// For each block and first statement the last ones, sorted, with a gap between each two.
    last: FxHashMap<StaticBlockId, Vec<Vec<Interval>>>,
    count: usize,
}

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

impl Candidates {
    /// The placements that can be of use in `runs`, and `own`; for each run `is_blocked` says which
    /// executions of statements hold an event that is kept whatever is enclosed. Some are missing
    /// if the effort is more than there may be.
    pub(crate) fn new<'r, 't: 'r>(
        runs: impl Iterator<Item = (&'r Run<'t>, &'r IndexVec<InstanceId, bool>)>,
        own: &[Placement],
        effort: &mut Effort,
    ) -> Self {
        let mut seen: FxHashSet<(StaticBlockId, Vec<(u32, Content)>)> = FxHashSet::default();
        let mut found = Self::default();
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
                    found.add_stretches(block, &contents, statements_count, effort);
                }
            }
        }
        let intervals = found.last.values().flatten().flatten();
        found.count = intervals.map(|&(start, end)| (end - start) as usize).sum();
        for placement in own {
            found.insert(placement.block, placement.first, (placement.last, placement.last + 1));
        }
        found
    }

    /// How many there are that can be of use.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// The last statements, of those from `last.0` to before `last.1`, of the placements in `block`
    /// that start at `first`.
    pub(crate) fn last_statements(
        &self,
        block: StaticBlockId,
        first: u32,
        last: Interval,
    ) -> impl Iterator<Item = u32> {
        let of_block = self.last.get(&block).and_then(|starts| starts.get(first as usize));
        let intervals = of_block.map_or(&[][..], |intervals| intervals.as_slice());
        let from = intervals.partition_point(|&(_, end)| end <= last.0);
        let intervals = intervals[from..].iter().take_while(move |&&(start, _)| start < last.1);
        intervals.flat_map(move |&(start, end)| start.max(last.0)..end.min(last.1))
    }

    /// Adds the placements that stay between statements whose events are kept and enclose a branch.
    fn add_stretches(
        &mut self,
        block: StaticBlockId,
        contents: &[(u32, Content)],
        statements_count: u32,
        effort: &mut Effort,
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
            if !effort.spend(1) {
                return;
            }
            let end = at_least(&kept, first).unwrap_or(statements_count);
            if branch < end {
                self.insert(block, first, (branch, end));
            }
        }
    }

    /// Adds the placements that start at `first` and end in `last`.
    fn insert(&mut self, block: StaticBlockId, first: u32, last: Interval) {
        let starts = self.last.entry(block).or_default();
        if starts.len() <= first as usize {
            starts.resize(first as usize + 1, Vec::new());
        }
        let intervals = &mut starts[first as usize];
        // Those that it touches become one with it.
        let from = intervals.partition_point(|&(_, end)| end < last.0);
        let to = intervals.partition_point(|&(start, _)| start <= last.1);
        let touched = &intervals[from..to];
        let start = touched.first().map_or(last.0, |&(start, _)| start.min(last.0));
        let end = touched.last().map_or(last.1, |&(_, end)| end.max(last.1));
        intervals.splice(from..to, [(start, end)]);
    }
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

#[cfg(test)]
mod tests {
    use reweave_base::Rng;

    use super::*;

    /// Intervals hold what was put into them, one last statement at a time.
    #[test]
    fn intervals_are_the_sets_of_their_members() {
        let block = StaticBlockId::from_number(1).expect("1 is a number");
        let mut rng = Rng::new(1);
        for _ in 0..500 {
            let mut candidates = Candidates::default();
            let mut expected = [false; 16];
            for _ in 0..rng.below(6) {
                let start = rng.below(15);
                let end = start + 1 + rng.below(15 - start);
                expected[start..end].fill(true);
                candidates.insert(block, 3, (start as u32, end as u32));
            }
            let (from, to) = (rng.below(16) as u32, rng.below(17) as u32);
            let found: Vec<u32> = candidates.last_statements(block, 3, (from, to)).collect();
            let is_expected = |&last: &u32| expected[last as usize];
            assert_eq!(found, (from..to).filter(is_expected).collect::<Vec<u32>>());
            assert_eq!(candidates.last_statements(block, 2, (0, 16)).count(), 0);
        }
    }
}
