//! Lifetimes: memory that a thread can access after another has freed it.
//!
//! ```
//! use reweave_analysis::{Settings, Subject};
//!
//! let trace = reweave_testkit::trace("
//! T1        T2
//! alloc(o)
//! fork(T2)
//!           r(o+8)
//! free(o)
//! ");
//! let found = reweave_lifetimes::free::uses(&Subject::new(&trace), &Settings::default());
//! let numbers: Vec<u32> = found[0].events.iter().map(|event| event.number()).collect();
//! assert_eq!(numbers, [4, 3]);
//! ```

pub mod free;

use reweave_analysis::Analysis;

/// Every analysis of this family.
pub const ANALYSES: &[&dyn Analysis] = &[&free::UseAfterFree];
