//! Seeded runs of small programs of several threads.
//!
//! The programs are of the kinds that Sinha, Malik and Gupta measured (*Efficient Predictive
//! Analysis for Detecting Nondeterminism in Multi-Threaded Programs*, Table A1), and a [`Program`]
//! is one of them in the size of a row of that table. They are written anew: what the originals
//! share with them is what they are about, and how many threads, events, locks, variables and
//! witnesses of nondeterminism there are, as nearly as a program of that kind gives it. Sizes were
//! fitted with seed 1. A [`Monitored`] program is one after another table, in which races matter.
//!
//! Each is a program that runs on a small [machine](machine), not a list of events: reads give what
//! was written, branches depend on it, locks block. The values are recorded, and locations are lines
//! of the program's source, so they move when it changes; nothing else does for a program and seed.

mod account;
mod barrier;
mod counts;
mod daisy;
mod elevator;
mod liveness;
mod machine;
mod monitored;
mod philosophers;
mod pool;
mod synchronisation;
mod thrift;

pub use counts::Counts;
pub use monitored::{Monitored, RaceCounts};
use reweave_trace::Trace;

/// A program in one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is one program in another size")]
pub enum Program {
    /// A pool of connections for which clients wait.
    Conpool,
    /// Workers that watch each other's heartbeats.
    Liveness,
    /// Counters behind locks.
    SynchBench,
    /// A cyclic barrier.
    Barrier1,
    Barrier2,
    /// Bank accounts and transfers between them.
    Account1,
    Account2,
    /// A small file system.
    Daisy1,
    Daisy2,
    Daisy3,
    /// Lifts that serve floors.
    Elevator1,
    Elevator2,
    Elevator3,
    /// Dining philosophers.
    Philo,
    /// A server of remote calls.
    Thrift1,
    Thrift2,
    Thrift3,
    Thrift4,
    Thrift5,
    Thrift6,
    Thrift7,
    Thrift8,
    Thrift9,
    Thrift10,
    Thrift11,
}

impl Program {
    /// Every program, in the order of the published table.
    pub const ALL: [Self; 25] = [
        Self::Conpool,
        Self::Liveness,
        Self::SynchBench,
        Self::Barrier1,
        Self::Barrier2,
        Self::Account1,
        Self::Account2,
        Self::Daisy1,
        Self::Daisy2,
        Self::Daisy3,
        Self::Elevator1,
        Self::Elevator2,
        Self::Elevator3,
        Self::Philo,
        Self::Thrift1,
        Self::Thrift2,
        Self::Thrift3,
        Self::Thrift4,
        Self::Thrift5,
        Self::Thrift6,
        Self::Thrift7,
        Self::Thrift8,
        Self::Thrift9,
        Self::Thrift10,
        Self::Thrift11,
    ];

    /// What it is called.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conpool => "conpool",
            Self::Liveness => "liveness",
            Self::SynchBench => "synchbench",
            Self::Barrier1 => "barrier1",
            Self::Barrier2 => "barrier2",
            Self::Account1 => "account1",
            Self::Account2 => "account2",
            Self::Daisy1 => "daisy1",
            Self::Daisy2 => "daisy2",
            Self::Daisy3 => "daisy3",
            Self::Elevator1 => "elevator1",
            Self::Elevator2 => "elevator2",
            Self::Elevator3 => "elevator3",
            Self::Philo => "philo",
            Self::Thrift1 => "thrift1",
            Self::Thrift2 => "thrift2",
            Self::Thrift3 => "thrift3",
            Self::Thrift4 => "thrift4",
            Self::Thrift5 => "thrift5",
            Self::Thrift6 => "thrift6",
            Self::Thrift7 => "thrift7",
            Self::Thrift8 => "thrift8",
            Self::Thrift9 => "thrift9",
            Self::Thrift10 => "thrift10",
            Self::Thrift11 => "thrift11",
        }
    }

    /// Runs it, with the schedule and the random input of `seed`.
    #[must_use]
    pub fn run(self, seed: u64) -> Trace {
        match self {
            Self::Conpool => pool::trace(seed),
            Self::Liveness => liveness::trace(seed),
            Self::SynchBench => synchronisation::trace(seed),
            Self::Barrier1 => barrier::trace(seed, 9, 3),
            Self::Barrier2 => barrier::trace(seed, 12, 2),
            Self::Account1 => account::trace(seed, 10),
            Self::Account2 => account::trace(seed, 20),
            Self::Daisy1 => daisy::trace(seed, daisy::Size { files: 4, operations: 13 }),
            Self::Daisy2 => daisy::trace(seed, daisy::Size { files: 6, operations: 22 }),
            Self::Daisy3 => daisy::trace(seed, daisy::Size { files: 8, operations: 37 }),
            Self::Elevator1 => elevator(seed, 5, 30, 49, 9, 4),
            Self::Elevator2 => elevator(seed, 7, 95, 96, 15, 2),
            Self::Elevator3 => elevator(seed, 16, 84, 73, 9, 1),
            Self::Philo => philosophers::trace(seed),
            Self::Thrift1 => thrift(seed, 3, 4, 8, 20, 0),
            Self::Thrift2 => thrift(seed, 3, 4, 8, 22, 0),
            Self::Thrift3 => thrift(seed, 9, 4, 7, 20, 0),
            Self::Thrift4 => thrift(seed, 3, 40, 7, 20, 0),
            Self::Thrift5 => thrift(seed, 19, 4, 8, 20, 0),
            Self::Thrift6 => thrift(seed, 3, 40, 7, 220, 0),
            Self::Thrift7 => thrift(seed, 19, 4, 8, 220, 0),
            Self::Thrift8 => thrift(seed, 39, 4, 7, 20, 0),
            Self::Thrift9 => thrift(seed, 9, 4, 6, 20, 660),
            Self::Thrift10 => thrift(seed, 5, 148, 7, 20, 0),
            Self::Thrift11 => thrift(seed, 5, 148, 7, 220, 0),
        }
    }
}

fn elevator(
    seed: u64,
    passes: usize,
    presses: usize,
    fittings: usize,
    looks: usize,
    steps: usize,
) -> Trace {
    elevator::trace(seed, elevator::Size { passes, presses, fittings, looks, steps })
}

fn thrift(
    seed: u64,
    workers: usize,
    tasks: usize,
    chores: usize,
    ticks: usize,
    naps: usize,
) -> Trace {
    thrift::trace(seed, thrift::Size { workers, tasks, chores, ticks, naps })
}
