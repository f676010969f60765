//! Lifetimes: memory that a thread can access after another has freed it, and handles that it can use after
//! another has closed or destroyed them.
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

pub mod close;
mod ends;
pub mod free;

use reweave_analysis::{Analysis, Info, Kind};
use reweave_trace::Trace;

use crate::ends::Lives;

/// What the family is called.
pub const FAMILY: &str = "lifetimes";

/// Every analysis of this family.
pub const ANALYSES: &[&dyn Analysis] = &[&free::UseAfterFree, &close::UseAfterClose];

/// Whether `info` has anything to say of `trace`: a life ends of the sort that it looks at.
#[must_use]
pub fn applies(info: &Info, trace: &Trace) -> bool {
    let lives = if info.kind == Kind::UseAfterClose { Lives::Handles } else { Lives::Memory };
    lives.end_in(trace)
}
