//! Nondeterminism: which reads can see another write than they saw, and in which order of events?
//!
//! A race detector asks whether two accesses can happen at once. A program without races can still
//! give another result each time it runs, since a lock does not say who takes it first. So for each
//! read, the write that it saw and each other write of the variable, three orders are asked for that
//! would break the two apart ([`WitnessKind`]), and for those that are feasible a schedule.
//!
//! Which reorderings count is the [`Mode`]. `strict` and `prefix` ask the engine of
//! [`reweave_reorder`] for correct reorderings (`runs`); `order` is the paper's algorithm, made
//! precise ([`mod@order`]). Verdicts are kept as ranges of interfering writes ([`ReadVerdicts`]), reads
//! are decided in parallel ([`mod@decide`]), grouped by the code location of the read and proven
//! (`groups`). `oracle::nondeterminism` is what the modes mean, by a search
//! through all states.
//!
//! Sound: every finding that is called witnessed holds a schedule that the checker accepted.
//! Complete in every mode but for the budget.
//!
//! Follows Sinha, Malik and Gupta, "Efficient predictive analysis for detecting nondeterminism in
//! multi-threaded programs" (FMCAD 2012).
//!
//! ```
//! use reweave_determinism::{Mode, decide};
//!
//! let trace = reweave_testkit::trace("
//! T1      T2      T3
//! acq(m)
//! w(x)
//! rel(m)
//!         acq(m)
//!         w(x)
//!         rel(m)
//!                 acq(m)
//!                 r(x)
//!                 rel(m)
//! ");
//! // No two accesses race, but the read can see the other write, or none.
//! let verdicts = decide::verdicts(&trace, Mode::Strict);
//! let feasible: Vec<_> = verdicts.iter().filter(|(_, verdict)| *verdict == Some(true)).collect();
//! assert!(feasible.iter().any(|(witness, _)| witness.interfering == trace.numbered(2)));
//! assert!(feasible.iter().any(|(witness, _)| witness.interfering.is_none()));
//! ```

mod accesses;
mod analyses;
pub mod decide;
mod groups;
pub mod order;
mod runs;
mod values;
mod verdicts;
mod witness;

use reweave_analysis::Analysis;

pub use accesses::{Accesses, ReadsFrom};
pub use analyses::{Determinism, ORDER, PREFIX, STRICT, WITNESSES_MAX};
pub use verdicts::{Phases, ReadVerdicts, Verdicts, WriteRanges};
pub use witness::{Mode, Witness, WitnessKind};

/// Every analysis of this family.
pub const ANALYSES: &[&dyn Analysis] = &[&STRICT, &PREFIX, &ORDER];
