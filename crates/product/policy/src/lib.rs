//! Which findings count: those that are neither known nor tolerated.
//!
//! A [`Baseline`] is an older report: what it has is known, and only what is new is to be acted on.
//! [`Suppressions`] say in ThreadSanitizer's words which faults are tolerated. A [`Gate`] holds
//! findings against both, and remembers what was used: entries that match nothing any more are
//! told, so that they do not stay for ever.
//!
//! Nothing is renumbered: what remains keeps the ids that it has in the report on everything.
//!
//! ```
//! use reweave_policy::Pattern;
//!
//! assert!(Pattern::new("bank::*deposit").matches("bank::Account::deposit"));
//! ```

mod baseline;
mod error;
mod nearest;
mod pattern;
mod sift;
mod suppress;

pub use baseline::{Baseline, Known};
pub use error::{ReadError, ReadErrorKind};
pub use nearest::nearest;
pub use pattern::Pattern;
pub use sift::{Aside, Gate};
pub use suppress::{Suppressions, Unused};
