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

programs! {
    /// A program in which races are looked for.
    Monitored -> RaceCounts, seed:
    /// Bank accounts behind locks, and a total that is not.
    Banking "banking" banking::trace(seed), [4, 7, 1];
    /// A sorted list, locked hand over hand but by who removes from it.
    SetFaulty "set (faulty)" set::trace(seed, set::Removal::Unlocked), [4, 10, 1];
    /// The same, locked hand over hand by all.
    SetCorrect "set (correct)" set::trace(seed, set::Removal::Locked), [4, 10, 0];
    /// A growing list without a lock.
    ArrayList1 "arraylist1" list::unguarded(seed), [4, 6, 3];
    /// The same behind a lock.
    ArrayList2 "arraylist2" list::guarded(seed), [4, 16, 0];
    /// Relaxation of a grid, red and black in turn, with a barrier between them.
    Sor "sor" sor::trace(seed), [4, 20, 0];
    /// Lifts that serve floors.
    Elevator "elevator" elevator::trace(seed, LIFTS), [4, 23, 0];
    /// The travelling salesman by branch and bound.
    Tsp "tsp" tsp::trace(seed), [4, 36, 1];
    /// A ray tracer that adds up a checksum.
    RayTracer "raytracer" raytracer::trace(seed), [4, 77, 1];
    /// A crawler with a pool of workers.
    Hedc "hedc" hedc::trace(seed), [8, 345, 4];
}

/// What is published of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaceCounts {
    /// Threads, the first included.
    pub threads: u64,
    /// Variables.
    pub vars: u64,
    /// Variables with a race, as ParaMount found them.
    pub racy: u64,
}

impl RaceCounts {
    const fn listed([threads, vars, racy]: [u64; 3]) -> Self {
        Self { threads, vars, racy }
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
