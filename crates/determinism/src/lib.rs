//! Nondeterminism: which reads can see another write than they saw, and in which order of events?

mod accesses;
mod analyses;
pub mod decide;
mod groups;
pub mod order;
mod proofs;
pub mod reference;
mod runs;
mod verdicts;
mod witness;

use reweave_analysis::Analysis;

pub use accesses::{Accesses, Couple, Line};
pub use analyses::{Determinism, ORDER, PREFIX, STRICT, WITNESSES_MAX};
pub use verdicts::{Challengers, Phases, ReadVerdicts, Verdicts};
pub use witness::{Mode, Witness, WitnessKind};

/// Every analysis of this family.
pub const ANALYSES: &[&dyn Analysis] = &[&STRICT, &PREFIX, &ORDER];
