//! Threads that wait for ever: for each other's locks, for a notify that came before, for what a lock of
//! their own keeps from happening.
//!
//! ```
//! use reweave_analysis::{Settings, Subject};
//! use reweave_deadlocks::exact::{Reorderings, deadlocks};
//!
//! let trace = reweave_testkit::trace("
//! T1      T2
//! acq(a)
//! acq(b)
//! rel(b)
//! rel(a)
//!         acq(b)
//!         acq(a)
//!         rel(a)
//!         rel(b)
//! ");
//! let found = deadlocks(&Subject::new(&trace), Reorderings::All, &Settings::default()).found;
//! let blocked: Vec<u32> = found[0].blocked().iter().map(|event| event.number()).collect();
//! assert_eq!(blocked, [2, 6]);
//! ```

pub mod exact;
pub mod stuck;

use reweave_analysis::Analysis;

/// Every analysis of this family.
pub const ANALYSES: &[&dyn Analysis] = &[&exact::ExactDeadlocks, &stuck::StuckThreads];
