//! Atomicity: blocks that another thread can spoil.
//!
//! A program's author expects some stretches of code to take effect at once. [`blocks`] says which:
//! those that the trace marks, or every critical section. [`observed`] asks whether the run as it
//! was observed could have run each of them at once; [`predicted`] asks whether another run of the
//! same events could not. [`analyses`] makes findings of both.
//!
//! ```
//! use reweave_atomicity::{blocks, observed};
//!
//! let trace = reweave_testkit::trace("
//! T1       T2
//! begin(b)
//! acq(m)
//! r(x)
//! rel(m)
//!          acq(m)
//!          w(x)
//!          rel(m)
//! acq(m)
//! w(x)
//! rel(m)
//! end(b)
//! ");
//! let marked = blocks::marked(&trace);
//! let violations = observed::violations(&trace, &marked, 1_000).all;
//! let chain: Vec<u32> = violations[0].chain.iter().map(|event| event.number()).collect();
//! assert_eq!(chain, [3, 6, 9], "the write of T2 comes between");
//! ```

pub mod analyses;
pub mod blocks;
pub mod observed;
pub mod predicted;

use reweave_analysis::Analysis;
use reweave_trace::Op;

/// Every analysis of this family.
pub const ANALYSES: &[&dyn Analysis] = &[&analyses::MARKED, &analyses::SECTIONS];

/// Whether the order of the two, by different threads, matters: the same variable and at least one
/// write. Atomic accesses do not race with each other, but they do come in an order.
#[must_use]
pub fn conflict(left: Op, right: Op) -> bool {
    left.var().is_some() && left.var() == right.var() && (left.is_write() || right.is_write())
}
