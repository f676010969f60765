//! Data races: two conflicting accesses that another run could do at once.

pub mod hb;

use reweave_analysis::Analysis;

/// Every analysis of this family.
pub const ANALYSES: &[&dyn Analysis] = &[&hb::HappensBeforeRaces];
