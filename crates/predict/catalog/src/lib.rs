//! Every analysis, which of them to run, and what becomes of their findings.
//!
//! [`analyses`] lists what the families offer; [`select()`] picks by name; [`run()`] runs the picked
//! ones on a trace.
//!
//! ```
//! use reweave_analysis::Settings;
//! use reweave_catalog::{Quiet, run, select};
//!
//! let trace = reweave_testkit::trace("
//! T1      T2
//! acq(m)
//! w(x)
//! rel(m)
//!         acq(m)
//!         rel(m)
//!         w(x)
//! ");
//! let analyses = select("", &["determinism".to_owned()])?;
//! let outcome = run(&trace, &analyses, &Settings::default(), &Quiet);
//! assert_eq!(outcome.findings[0].id, "R1");
//! # Ok::<(), reweave_catalog::UnknownName>(())
//! ```

mod assumed;
mod faults;
mod run;
mod select;

pub use faults::{Examined, list_once};
pub use run::{Quiet, Watch, run};
pub use select::{UnknownName, analyses, select};
