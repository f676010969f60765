//! How many bits the values of a program need: a measure of how much is known of them.
//!
//! An assignment needs as many bits as number its values. A transaction needs, besides, those of
//! every shared variable where it starts, since that is where threads meet. What is never reached
//! needs none. Locks are no variables.
//!
//! Source: M. Ganai, C. Wang, "Interval analysis for concurrent trace programs using transaction
//! sequence graphs", 2010, RB_l and RB_g; a range of one value, of which the printed logarithm is
//! none, needs no bit here, and a range of n values the logarithm of n, rounded up.

use crate::ctp::Ctp;
use crate::domain::Domain;
use crate::graph::Graph;
use crate::propagate::Values;

/// How many bits number the members of `value`, as far as bounds tell: 0 for one, 64 for all.
#[must_use]
pub fn bits<D: Domain>(value: &D) -> u32 {
    let (low, high) = value.bounds();
    u64::BITS - high.abs_diff(low).leading_zeros()
}

/// The bits of all assignments to locals (RB_l).
#[must_use]
pub fn local_bits<D: Domain>(values: &Values<D>) -> u64 {
    let defined = values.steps.iter().filter_map(|step| step.defined.as_ref());
    defined.map(|value| u64::from(bits(value))).sum()
}

/// The bits of all assignments to shared variables, and of these where transactions start (RB_g).
#[must_use]
pub fn global_bits<D: Domain>(ctp: &Ctp, graph: &Graph, values: &Values<D>) -> u64 {
    let stored = values.steps.iter().filter_map(|step| step.stored.as_ref());
    let starts = graph.transactions.iter().filter_map(|entry| values.at[entry.from].as_ref());
    let met = starts.flat_map(|row| row.iter().take(ctp.shared_count()));
    stored.chain(met).map(|value| u64::from(bits(value))).sum()
}
