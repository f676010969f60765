//! Every analysis, and the driver that selects, runs, limits and groups.
//!
//! [`analyses`] lists what the families offer; [`select()`] picks by name; [`run`] runs the picked
//! ones on a trace.

mod driver;
mod select;

pub use driver::{Quiet, Watch, run};
pub use select::{UnknownName, analyses, select};
