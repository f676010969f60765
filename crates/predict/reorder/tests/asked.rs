//! What the oracle says of a query.

use reweave_oracle::query::{self, Answer};
use reweave_reorder::{Query, View};
use reweave_trace::Trace;

/// The oracle's answer to `query` after at most `states_max` states.
pub(crate) fn oracle(trace: &Trace, query: &Query, states_max: usize) -> Answer {
    let Query { must, order, absent, enabled, views, stop, relaxed } = query.clone();
    let view = |view| match view {
        View::Any => query::View::Any,
        View::Of(write) => query::View::Of(write),
    };
    let views = views.into_iter().map(|(read, seen)| (read, view(seen))).collect();
    let plain = query::Query { must, order, absent, enabled, views, stop, relaxed };
    plain.search(trace, states_max)
}
