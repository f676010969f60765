//! Simulated runs of the papers' programs: small programs of several threads, run by a seed.
//!
//! For tables and their tests; no part of the product.
//!
//! The programs are of the kinds that Sinha, Malik and Gupta measured (*Efficient Predictive
//! Analysis for Detecting Nondeterminism in Multi-Threaded Programs*, Table A1), and a [`Program`]
//! is one of them in the size of a row of that table. They are written anew: what the originals
//! share with them is what they are about, and how many threads, events, locks, variables and
//! witnesses of nondeterminism there are, as nearly as a program of that kind gives it. Sizes were
//! fitted with seed 1. A [`Monitored`] program is one after another table, in which races matter.
//!
//! Each is a program that runs on a small machine (`machine.rs`), not a list of events: reads give what
//! was written, branches depend on it, locks block. The values are recorded, and locations are lines
//! of the program's source, so they move when it changes; nothing else does for a program and seed.
//!
//! ```
//! use reweave_simulated::Program;
//!
//! assert_eq!(Program::Conpool.run(1).names().threads.len(), 4);
//! ```

/// Declares the programs of a published table, in its order: what each is called there, how it is run, and
/// what counts were published.
macro_rules! programs {
    (
        $(#[$about:meta])* $Programs:ident -> $Counts:ident, $seed:ident:
        $($(#[$doc:meta])* $Name:ident $name:literal $run:expr, $published:expr;)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Programs {
            $($(#[$doc])* $Name,)*
        }

        impl $Programs {
            /// Every program, in the order of the published table.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$Name),*];

            /// What it is called in the published table.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Name => $name,)*
                }
            }

            /// Runs it, with the schedule and the random input of `seed`.
            pub fn run(self, $seed: u64) -> Trace {
                match self {
                    $(Self::$Name => $run,)*
                }
            }

            /// The counts that were published.
            pub const fn published(self) -> $Counts {
                match self {
                    $(Self::$Name => $Counts::listed($published),)*
                }
            }
        }
    };
}

mod account;
mod barrier;
mod daisy;
mod elevator;
mod liveness;
mod machine;
mod monitored;
mod philosophers;
mod pool;
mod synchronisation;
mod thrift;

use reweave_base::{FxHashSet, Id};
use reweave_trace::{AccessOp, NameKind, Op, OpKind, Trace, VarId};

pub use crate::monitored::{Monitored, RaceCounts};

programs! {
    /// A program in one size.
    #[expect(missing_docs, reason = "some are a program in another size")]
    Program -> Counts, seed:
    /// A pool of connections for which clients wait.
    Conpool "conpool" pool::trace(seed), [4, 97, 16, 1, 53, 5, 3, 252];
    /// Workers that watch each other's heartbeats.
    Liveness "liveness" liveness::trace(seed), [7, 283, 44, 9, 163, 12, 6, 855];
    /// Counters behind locks.
    SynchBench "synchbench" synchronisation::trace(seed), [16, 1_510, 306, 2, 533, 15, 0, 47_526];
    /// A cyclic barrier.
    Barrier1 "barrier1" barrier::trace(seed, 9, 3), [10, 653, 108, 2, 262, 12, 7, 3_975];
    Barrier2 "barrier2" barrier::trace(seed, 12, 2), [13, 805, 136, 2, 340, 16, 7, 6_516];
    /// Bank accounts and transfers between them.
    Account1 "account1" account::trace(seed, 10), [11, 902, 146, 21, 430, 42, 10, 1_416];
    Account2 "account2" account::trace(seed, 20), [21, 1_747, 282, 41, 850, 82, 20, 2_796];
    /// A small file system.
    Daisy1 "daisy1" daisy::trace(seed, daisy::Size { files: 4, operations: 13 }),
        [3, 2_998, 422, 10, 2_003, 45, 15, 383_007];
    Daisy2 "daisy2" daisy::trace(seed, daisy::Size { files: 6, operations: 22 }),
        [3, 4_998, 699, 14, 3_330, 64, 25, 1_100_814];
    Daisy3 "daisy3" daisy::trace(seed, daisy::Size { files: 8, operations: 37 }),
        [3, 7_999, 1_096, 18, 5_341, 81, 36, 3_025_419];
    /// Lifts that serve floors.
    Elevator1 "elevator1" elevator(seed, 5, 30, 49, 9, 4), [4, 3_004, 370, 11, 1_795, 70, 0, 3_249];
    Elevator2 "elevator2" elevator(seed, 7, 95, 96, 15, 2),
        [4, 5_001, 610, 11, 3_668, 117, 0, 12_285];
    Elevator3 "elevator3" elevator(seed, 16, 84, 73, 9, 1),
        [4, 8_004, 1_128, 11, 5_601, 94, 0, 24_627];
    /// Dining philosophers.
    Philo "philo" philosophers::trace(seed), [6, 1_141, 126, 6, 857, 23, 22, 4_893];
    /// A server of remote calls.
    Thrift1 "thrift1" thrift(seed, 3, 4, 8, 20, 0), [4, 2_406, 226, 12, 869, 62, 53, 618];
    Thrift2 "thrift2" thrift(seed, 3, 4, 8, 22, 0), [4, 2_452, 234, 12, 873, 62, 55, 618];
    Thrift3 "thrift3" thrift(seed, 9, 4, 7, 20, 0), [10, 4_844, 404, 18, 1_739, 129, 91, 2_811];
    Thrift4 "thrift4" thrift(seed, 3, 40, 7, 20, 0), [4, 6_761, 586, 48, 2_785, 171, 125, 35_610];
    Thrift5 "thrift5" thrift(seed, 19, 4, 8, 20, 0), [20, 8_950, 722, 28, 3_320, 223, 165, 9_615];
    Thrift6 "thrift6" thrift(seed, 3, 40, 7, 220, 0),
        [4, 11_357, 1_384, 48, 3_184, 171, 324, 35_610];
    Thrift7 "thrift7" thrift(seed, 19, 4, 8, 220, 0),
        [20, 13_561, 1_520, 28, 3_727, 223, 372, 9_609];
    Thrift8 "thrift8" thrift(seed, 39, 4, 7, 20, 0),
        [40, 15_975, 1_239, 48, 5_485, 429, 259, 35_748];
    Thrift9 "thrift9" thrift(seed, 9, 4, 6, 20, 660),
        [10, 16_040, 2_981, 18, 1_345, 107, 1_408, 2_577];
    Thrift10 "thrift10" thrift(seed, 5, 148, 7, 20, 0),
        [6, 20_640, 1_724, 158, 8_818, 519, 349, 479_142];
    Thrift11 "thrift11" thrift(seed, 5, 148, 7, 220, 0),
        [6, 25_237, 2_522, 158, 9_218, 519, 549, 479_142];
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

// How large a run is, in the columns of the published table.

/// How large a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Threads, the first included.
    pub threads: u64,
    /// Events of all kinds.
    pub events: u64,
    /// Acquires and releases.
    pub lock_events: u64,
    /// Locks that are taken.
    pub locks: u64,
    /// Reads and writes.
    pub accesses: u64,
    /// Variables that are read or written.
    pub vars: u64,
    /// Waits, their ends, and notifies.
    pub signals: u64,
    /// Possible witnesses of nondeterminism: three for each read and each write of its variable that
    /// it did not see, the initial one included.
    pub witnesses: u64,
}

impl Counts {
    /// Those of a row of the published table: threads, events, lock events, locks, accesses, variables,
    /// signals and witnesses.
    const fn listed(
        [threads, events, lock_events, locks, accesses, vars, signals, witnesses]: [u64; 8],
    ) -> Self {
        Self { threads, events, lock_events, locks, accesses, vars, signals, witnesses }
    }

    /// Those of `trace`.
    pub fn new(trace: &Trace) -> Self {
        let mut counts = Self {
            threads: trace.names().threads.len() as u64,
            events: trace.len() as u64,
            lock_events: 0,
            locks: 0,
            accesses: 0,
            vars: 0,
            signals: 0,
            witnesses: 0,
        };
        let mut locks = FxHashSet::default();
        for (_, event) in trace.events() {
            let (code, operand) = event.op.encode();
            // To ask for a lock is not to take it.
            if code.kind().operand() == NameKind::Lock
                && !matches!(code.kind(), OpKind::Request | OpKind::RequestExclusive)
            {
                counts.lock_events += 1;
                locks.insert(operand);
            }
            counts.signals += u64::from(code.kind().operand() == NameKind::Condition);
        }
        counts.locks = locks.len() as u64;
        for var in (0..trace.names().vars.len()).map(VarId::from_index) {
            let accesses = trace.accesses(var);
            let ops = || accesses.iter().map(|&access| trace.event(access).op);
            let reads = ops()
                .filter(|op| op.is_read() && !matches!(op, Op::Access(AccessOp::UnknownRead, _)))
                .count();
            let writes = ops().filter(|op| op.is_write()).count();
            let updates = ops().filter(|op| op.is_read() && op.is_write()).count();
            counts.accesses += accesses.len() as u64;
            counts.vars += u64::from(!accesses.is_empty());
            // What an update writes, it does not read.
            counts.witnesses += 3 * (reads as u64 * writes as u64 - updates as u64);
        }
        counts
    }
}
