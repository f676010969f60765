//! Runs programs of the language: one step at a time, under a scheduler, recorded in full.
//!
//! [`Code`] is a compiled program. [`run`] executes it under a [`Scheduler`] and gives a [`Run`]:
//! the trace with its layers, how it ended, and the [`Schedule`] that repeats it. The same program,
//! scheduler and seed give the same trace, byte for byte. A deadlock, a failed assertion, a
//! division by zero and a limit that was reached are results with their line, never a crash.
//!
//! [`explore()`] gives every outcome that any scheduler could bring about, and [`explore_sequential`]
//! those of the program read as a nondeterministic sequential one.
//!
//! ```
//! use reweave_exec::scheduler::Random;
//! use reweave_exec::{Code, Ending, Limits, Settings, explore, run};
//! use reweave_lang::{Source, check};
//!
//! let source = Source::new(
//!     "bank.rw",
//!     "shared balance = 100;
//!      thread left { balance = balance + 10; }
//!      thread right { balance = balance + 20; }",
//! );
//! let program = check(&source).program.expect("it is a program");
//! let code = Code::new(&program, &source);
//!
//! // One run, always the same for a seed.
//! let run = run(&code, &mut Random::new(1), &Settings::default());
//! assert_eq!(run.ending, Ending::Finished);
//!
//! // All of them: an update can get lost.
//! let all = explore(&code, &Limits::default());
//! assert!(all.complete);
//! assert_eq!(all.outcomes.len(), 3);
//! ```

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
