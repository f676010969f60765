//! The oracle's definitions, asked about posets.

use std::collections::BTreeSet;

use reweave_oracle::{cuts, races};
use reweave_order::poset::Poset;
use reweave_states::Bounds;
use reweave_trace::{Trace, VarId};

fn clocks(poset: &Poset) -> Vec<Vec<Vec<u32>>> {
    let chain =
        |chain| (1..=poset.length(chain)).map(|at| poset.clock(chain, at).to_vec()).collect();
    poset.chains().map(chain).collect()
}

/// The states of `poset` within `bounds`, in lexical order.
pub(crate) fn states(poset: &Poset, bounds: &Bounds) -> Vec<Vec<u32>> {
    cuts::between(&clocks(poset), &bounds.least, &bounds.greatest)
}

/// The state of `poset` with the fewest events that is met, the first in lexical order of those.
pub(crate) fn least(poset: &Poset, is_met: impl Fn(&[u32]) -> bool) -> Option<Vec<u32>> {
    cuts::least(&clocks(poset), is_met)
}

/// The variables of `trace` with conflicting accesses that happens-before leaves unordered.
pub(crate) fn racy(trace: &Trace) -> BTreeSet<VarId> {
    let races = races::happens_before(trace).into_iter();
    races.filter_map(|(_, second)| trace.event(second).op.var()).collect()
}
