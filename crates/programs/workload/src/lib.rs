//! Seeded synthetic traces, for benchmarks and for trying things out.
//!
//! Each thread has a short script, refilled by the [`Shape`]'s rules when it is used up; a seeded
//! scheduler picks a thread whose next step can happen, until there are as many events as were
//! asked for. So a trace is a prefix of a run that could have happened, and well formed. Threads
//! other than the first start with a fork. Each event has one of about two thousand locations, drawn
//! at random, but in the guarded shape, where a location does one thing.
//!
//! A [`Program`], or a [`Monitored`] one, is a small program instead, whose runs are traces with
//! values. [`posets`] makes events in partial orders, with nothing in them but the order.
//!
//! The same [`Config`] gives the same trace, in every version of this crate. Costs a constant a
//! step, and no memory beyond the trace and a few words a thread.
//!
//! ```
//! use reweave_workload::{Config, Shape, generate};
//!
//! let config = Config { events: 500, shape: Shape::LockHeavy, seed: 7, ..Config::default() };
//! let trace = generate(&config);
//! assert_eq!(trace.len(), 500);
//! ```

pub mod posets;
mod programs;
mod run;

pub use programs::{Counts, Monitored, Program, RaceCounts};
use reweave_trace::Trace;

/// What threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// What programs mostly do: variables that one thread alone uses, and variables that a lock
    /// guards; some ten times in the run someone forgets the lock.
    Guarded,
    /// Accesses inside and outside of critical sections, some of them nested, to whatever variable:
    /// almost every variable races.
    Mixed,
    /// Little but critical sections, nested up to four deep.
    LockHeavy,
    /// Threads fork threads, work, and join them.
    ForkJoin,
    /// Items go through queues guarded by locks and counted by semaphores.
    ProducerConsumer,
    /// Threads wait on conditions until others notify them.
    WaitNotify,
    /// Threads work in rounds that end at a barrier.
    Barrier,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Self; 7] = [
        Self::Guarded,
        Self::Mixed,
        Self::LockHeavy,
        Self::ForkJoin,
        Self::ProducerConsumer,
        Self::WaitNotify,
        Self::Barrier,
    ];

    /// What it is called.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Guarded => "guarded",
            Self::Mixed => "mixed",
            Self::LockHeavy => "lock-heavy",
            Self::ForkJoin => "fork-join",
            Self::ProducerConsumer => "producer-consumer",
            Self::WaitNotify => "wait-notify",
            Self::Barrier => "barrier",
        }
    }
}

/// Which trace to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// How many events.
    pub events: usize,
    /// How many threads at most; at least one runs.
    pub threads: usize,
    /// How many locks at most; shapes that cannot do without have at least one.
    pub locks: usize,
    /// How many variables at most; there is at least one.
    pub vars: usize,
    /// Which of the many.
    pub seed: u64,
    /// What threads do.
    pub shape: Shape,
}

impl Default for Config {
    fn default() -> Self {
        Self { events: 1_000, threads: 8, locks: 16, vars: 1_000, seed: 1, shape: Shape::Guarded }
    }
}

/// Makes the trace of `config`.
#[must_use]
pub fn generate(config: &Config) -> Trace {
    generate_while(config, &|_| true).expect("nobody asked to stop")
}

/// Makes the trace of `config`, or nothing if `go_on`, which is told from time to time how many
/// events there are, says no.
#[must_use]
pub fn generate_while(config: &Config, go_on: &dyn Fn(usize) -> bool) -> Option<Trace> {
    run::Run::new(config).finish(go_on)
}
