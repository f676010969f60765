//! Programs in which a detector looks for races while they run.
//!
//! They are of the kinds that Chang and Garg measured (*A Parallel Algorithm for Global States
//! Enumeration in Concurrent Systems*, Table 2), with as many threads, variables and racy variables
//! as published. A variable is one field of one object, and what it holds first it holds without
//! being written: nobody can race with the making of an object that nobody else knows yet.

mod banking;
mod hedc;
mod list;
mod raytracer;
mod set;
mod sor;
mod tsp;

use std::future::Future;

use reweave_trace::Trace;

use crate::elevator;
use crate::machine::Thread;

/// A program in which races are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Monitored {
    /// Bank accounts behind locks, and a total that is not.
    Banking,
    /// A sorted list, locked hand over hand but by who removes from it.
    SetFaulty,
    /// The same, locked hand over hand by all.
    SetCorrect,
    /// A growing list without a lock.
    ArrayList1,
    /// The same behind a lock.
    ArrayList2,
    /// Relaxation of a grid, red and black in turn, with a barrier between them.
    Sor,
    /// Lifts that serve floors.
    Elevator,
    /// The travelling salesman by branch and bound.
    Tsp,
    /// A ray tracer that adds up a checksum.
    RayTracer,
    /// A crawler with a pool of workers.
    Hedc,
}

/// What is published of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaceCounts {
    /// Threads, the first included.
    pub threads: u64,
    /// Variables.
    pub vars: u64,
    /// Variables with a race.
    pub racy: u64,
}

impl Monitored {
    /// Every program, in the order of the published table.
    pub const ALL: [Self; 10] = [
        Self::Banking,
        Self::SetFaulty,
        Self::SetCorrect,
        Self::ArrayList1,
        Self::ArrayList2,
        Self::Sor,
        Self::Elevator,
        Self::Tsp,
        Self::RayTracer,
        Self::Hedc,
    ];

    /// What it is called in the published table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Banking => "banking",
            Self::SetFaulty => "set (faulty)",
            Self::SetCorrect => "set (correct)",
            Self::ArrayList1 => "arraylist1",
            Self::ArrayList2 => "arraylist2",
            Self::Sor => "sor",
            Self::Elevator => "elevator",
            Self::Tsp => "tsp",
            Self::RayTracer => "raytracer",
            Self::Hedc => "hedc",
        }
    }

    /// What is published of it; of racy variables, what ParaMount found.
    pub const fn published(self) -> RaceCounts {
        let (threads, vars, racy) = match self {
            Self::Banking => (4, 7, 1),
            Self::SetFaulty => (4, 10, 1),
            Self::SetCorrect => (4, 10, 0),
            Self::ArrayList1 => (4, 6, 3),
            Self::ArrayList2 => (4, 16, 0),
            Self::Sor => (4, 20, 0),
            Self::Elevator => (4, 23, 0),
            Self::Tsp => (4, 36, 1),
            Self::RayTracer => (4, 77, 1),
            Self::Hedc => (8, 345, 4),
        };
        RaceCounts { threads, vars, racy }
    }

    /// Runs it, with the schedule and the random input of `seed`.
    pub fn run(self, seed: u64) -> Trace {
        match self {
            Self::Banking => banking::trace(seed),
            Self::SetFaulty => set::trace(seed, set::Removal::Unlocked),
            Self::SetCorrect => set::trace(seed, set::Removal::Locked),
            Self::ArrayList1 => list::unguarded(seed),
            Self::ArrayList2 => list::guarded(seed),
            Self::Sor => sor::trace(seed),
            Self::Elevator => elevator::trace(seed, LIFTS),
            Self::Tsp => tsp::trace(seed),
            Self::RayTracer => raytracer::trace(seed),
            Self::Hedc => hedc::trace(seed),
        }
    }
}

const LIFTS: elevator::Size =
    elevator::Size { passes: 24, presses: 200, fittings: 2, looks: 1, steps: 0 };

/// Has `body` done by `count` threads, of which `me` is the one numbered 0, and waits for the
/// others.
async fn together<F: Future<Output = ()> + 'static>(
    me: &Thread,
    count: usize,
    body: impl Fn(Thread, usize) -> F,
) {
    let mut others = Vec::new();
    for number in 1..count {
        others.push(me.fork(&format!("thread{number}"), |me| body(me, number)).await);
    }
    body(me.clone(), 0).await;
    for other in others {
        me.join(other).await;
    }
}
