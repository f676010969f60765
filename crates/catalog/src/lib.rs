//! Every analysis, and the driver that selects, runs, limits and certifies.
//!
//! [`analyses`] lists what the families offer; [`select`] picks by name; [`run`] runs the picked
//! ones on a trace. No finding that claims a schedule leaves [`run`] before the independent
//! checker has accepted the schedule.

mod driver;
mod select;

pub use driver::{Quiet, Watch, run};
pub use select::{UnknownName, analyses, select};
