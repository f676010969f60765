//! Successive over-relaxation: the cells of a grid are red and black as on a chessboard; all red
//! ones are made anew from their black neighbours, then all black ones, with a barrier after each.

use std::rc::Rc;

use reweave_trace::{ConditionId, LockId, Trace, VarId};

use super::together;
use crate::machine::{Thread, run};

const SLICE: usize = 2;
const SOLVERS: usize = 4;
const ROWS_EACH: usize = 2;
const ROWS: usize = SOLVERS * ROWS_EACH;
const ITERATIONS: i64 = 40;

struct Grid {
    iterations: VarId,
    omega: VarId,
    /// The cells of a colour in a row.
    colours: [Vec<VarId>; 2],
    barrier: LockId,
    passed: ConditionId,
    arrived: VarId,
    round: VarId,
}

pub(crate) fn trace(seed: u64) -> Trace {
    run(seed, SLICE, main)
}

async fn main(me: Thread) {
    let colour =
        |name: &str| (0..ROWS).map(|row| me.var(&format!("{name}[{row}]"), row as i64)).collect();
    let grid = Rc::new(Grid {
        iterations: me.var("iterations", ITERATIONS),
        omega: me.var("omega", 2),
        colours: [colour("red"), colour("black")],
        barrier: me.mutex("barrier"),
        passed: me.condition("barrier.passed"),
        arrived: me.var("barrier.arrived", 0),
        round: me.var("barrier.round", 0),
    });
    together(&me, SOLVERS, |me, number| solver(me, Rc::clone(&grid), number)).await;
}

async fn solver(me: Thread, grid: Rc<Grid>, number: usize) {
    let iterations = me.read(grid.iterations).await;
    let omega = me.read(grid.omega).await;
    for _ in 0..iterations {
        for colour in 0..2 {
            for row in number * ROWS_EACH..(number + 1) * ROWS_EACH {
                relax(&me, &grid, colour, row, omega).await;
            }
            pass(&me, &grid).await;
        }
    }
}

async fn relax(me: &Thread, grid: &Grid, colour: usize, row: usize, omega: i64) {
    let mut sum = me.read(grid.colours[colour][row]).await;
    for neighbour in row.saturating_sub(1)..ROWS.min(row + 2) {
        sum += omega * me.read(grid.colours[1 - colour][neighbour]).await;
    }
    me.write(grid.colours[colour][row], sum / 4).await;
}

async fn pass(me: &Thread, grid: &Grid) {
    me.lock(grid.barrier).await;
    let round = me.read(grid.round).await;
    let is_last = me.add(grid.arrived, 1).await + 1 == SOLVERS as i64;
    if me.test(is_last).await {
        me.write(grid.arrived, 0).await;
        me.write(grid.round, round + 1).await;
        me.notify_all(grid.passed).await;
    }
    while me.test(!is_last && me.read(grid.round).await == round).await {
        me.wait(grid.passed, grid.barrier).await;
    }
    me.unlock(grid.barrier).await;
}
