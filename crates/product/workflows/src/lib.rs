//! What joins producers, analyses and reports.
//!
//! [`runs`] repeats a program under a scheduler; [`specification`] prints a program with its
//! inferred `if (*)` in place; [`inference`] gathers runs, infers, and, where asked, validates what
//! was inferred by all runs of the sequential program; [`ranges`] finds the ranges of a program's
//! values, and runs the schedules that break its assertions; [`confirm`] has the schedule of a
//! finding replayed in the program that it was found in.
//!
//! ```
//! use reweave_exec::{Code, Settings};
//! use reweave_lang::{Source, check};
//! use reweave_workflows::runs::{Plan, SchedulerKind, repeat};
//!
//! let source = Source::new(
//!     "bank.rw",
//!     "shared balance = 100;
//!      thread left { balance = balance + 10; }
//!      thread right { balance = balance + 20; }",
//! );
//! let code = Code::new(&check(&source).program.unwrap(), &source);
//! let settings = Settings::default();
//! let plan = Plan { scheduler: SchedulerKind::Random, seed: 1, runs_count: 20, settings };
//! let mut results = Vec::new();
//! repeat(&code, &plan, &|| true, |_, run| {
//!     results.push(run.result(&code));
//!     true
//! });
//! assert_eq!(results.len(), 20);
//! assert!(results.contains(&vec![130]));
//! ```

pub mod confirm;
pub mod inference;
pub mod ranges;
pub mod runs;
pub mod specification;
pub mod watch;
