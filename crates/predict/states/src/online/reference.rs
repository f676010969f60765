//! What a detector is to find, from the whole run and by definition. For small ones.

use std::collections::BTreeSet;

use reweave_order::hb::reference::Order;
use reweave_order::poset::Poset;
use reweave_trace::{Trace, VarId};

use crate::bounds::Bounds;
use crate::reference::states;

/// The state of `poset` with the fewest events that is met, the first in lexical order of those.
#[must_use]
pub fn least(poset: &Poset, is_met: impl Fn(&[u32]) -> bool) -> Option<Vec<u32>> {
    let met = states(poset, &Bounds::all(poset)).into_iter().filter(|state| is_met(state));
    met.min_by_key(|state| {
        (state.iter().map(|&index| u64::from(index)).sum::<u64>(), state.clone())
    })
}

/// The variables of `trace` with conflicting accesses that happens-before leaves unordered.
#[must_use]
pub fn racy(trace: &Trace) -> BTreeSet<VarId> {
    let order = Order::new(trace);
    let mut racy = BTreeSet::new();
    for (late, event) in trace.events() {
        for (early, other) in trace.events().take_while(|&(early, _)| early < late) {
            let Some(var) = event.op.var() else { continue };
            if event.op.conflicts_with(other.op) && !order.is_before(early, late) {
                racy.insert(var);
            }
        }
    }
    racy
}
