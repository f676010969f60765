//! Runs programs of the language: one step at a time, under a scheduler, recorded in full.
//!
//! [`Code`] is a compiled program. [`run`] executes it under a [`Scheduler`] and gives a [`Run`]:
//! the trace with its layers, how it ended, and the [`Schedule`] that repeats it. The same program,
//! scheduler and seed give the same trace, byte for byte. A deadlock, a failed assertion, a
//! division by zero and a limit that was reached are results with their line, never a crash.
//!
//! [`explore()`] gives every outcome that any scheduler could bring about, and [`explore_sequential`]
//! those of the program read as a nondeterministic sequential one.

mod code;
mod compile;
pub mod explore;
mod machine;
mod observe;
mod outcome;
mod record;
mod run;
pub mod scheduler;
mod sequential;

pub use code::Code;
pub use explore::{Exploration, Limits, explore, explore_while};
pub use observe::ThreadNumber;
pub use outcome::{Awaited, Blocked, Ending, Fault, FaultKind, Outcome};
pub use record::Layers;
pub use run::{Run, Schedule, Settings, run};
pub use scheduler::Scheduler;
pub use sequential::{Choice, explore_sequential, explore_sequential_while};
