//! Deadlocks: threads that wait for each other for ever.

pub mod exact;

use reweave_analysis::Analysis;

/// Every analysis of this family.
pub const ANALYSES: &[&dyn Analysis] = &[&exact::ExactDeadlocks];
