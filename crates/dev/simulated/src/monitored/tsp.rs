//! The travelling salesman by branch and bound: threads take beginnings of tours from a queue and
//! try what can come after them, as long as they are shorter than the best tour so far.
//!
//! The length of the best tour is written with a lock, but compared without: who sees an old one
//! tries a little more than needed.

use std::rc::Rc;

use reweave_trace::{LockId, Trace, VarId};

use super::together;
use crate::machine::{Thread, run};

const SLICE: usize = 1;
const SOLVERS: usize = 4;
const CITIES: usize = 5;

/// All tours start in the first city; a beginning is the two cities after it.
const BEGINNINGS: usize = (CITIES - 1) * (CITIES - 2);

struct Search {
    /// The distance of each pair of cities.
    distances: Vec<VarId>,
    queue: LockId,
    entries: Vec<VarId>,
    left: VarId,
    solved: VarId,
    is_closed: VarId,
    best: LockId,
    length: VarId,
    finder: VarId,
    tour: Vec<VarId>,
    /// How many tours each thread has tried.
    tried: Vec<VarId>,
}

pub(crate) fn trace(seed: u64) -> Trace {
    run(seed, SLICE, main)
}

async fn main(me: Thread) {
    let pairs = (0..CITIES).flat_map(|from| (from + 1..CITIES).map(move |to| (from, to)));
    let distance = |(from, to)| me.var(&format!("distance[{from}][{to}]"), 10 + me.draw(90) as i64);
    let numbered = |name: &str, count: usize| -> Vec<VarId> {
        (0..count).map(|at| me.var(&format!("{name}[{at}]"), 0)).collect()
    };
    let beginning = |(at, code)| me.var(&format!("queue.entry[{at}]"), code);
    let search = Rc::new(Search {
        distances: pairs.map(distance).collect(),
        queue: me.mutex("queue"),
        entries: beginnings().into_iter().enumerate().map(beginning).collect(),
        left: me.var("queue.left", BEGINNINGS as i64),
        solved: me.var("queue.solved", 0),
        is_closed: me.var("queue.closed", 0),
        best: me.mutex("best"),
        length: me.var("best.length", i64::MAX),
        finder: me.var("best.finder", 0),
        tour: numbered("best.tour", CITIES),
        tried: numbered("tried", SOLVERS),
    });
    together(&me, SOLVERS, |me, number| solver(me, Rc::clone(&search), number)).await;
    for &distance in &search.distances {
        me.read(distance).await;
    }
}

/// The second and third city of all tours, as one number each.
fn beginnings() -> Vec<i64> {
    let second = 1..CITIES;
    let both = second.flat_map(|second| {
        let third = (1..CITIES).filter(move |&third| third != second);
        third.map(move |third| (second * CITIES + third) as i64)
    });
    both.collect()
}

async fn solver(me: Thread, search: Rc<Search>, number: usize) {
    loop {
        me.lock(search.queue).await;
        let left = me.read(search.left).await;
        if me.test(left == 0).await {
            me.write(search.is_closed, 1).await;
            me.unlock(search.queue).await;
            return;
        }
        me.write(search.left, left - 1).await;
        let beginning = me.read(search.entries[left as usize - 1]).await as usize;
        me.unlock(search.queue).await;
        extend(&me, &search, number, beginning).await;
        me.lock(search.queue).await;
        me.add(search.solved, 1).await;
        me.unlock(search.queue).await;
    }
}

/// Tries all tours with a beginning.
async fn extend(me: &Thread, search: &Search, number: usize, beginning: usize) {
    let (second, third) = (beginning / CITIES, beginning % CITIES);
    let rest: Vec<usize> = (1..CITIES).filter(|&city| city != second && city != third).collect();
    for first in 0..rest.len() {
        let tour = [0, second, third, rest[first], rest[1 - first]];
        me.add(search.tried[number], 1).await;
        let mut length = 0;
        let mut is_short = true;
        for at in 0..CITIES {
            length += distance(me, search, tour[at], tour[(at + 1) % CITIES]).await;
            // Without the lock: an old length costs time, but gives no wrong tour.
            is_short = me.test(length < me.read(search.length).await).await;
            if !is_short {
                break;
            }
        }
        if is_short {
            improve(me, search, number, &tour, length).await;
        }
    }
}

async fn distance(me: &Thread, search: &Search, from: usize, to: usize) -> i64 {
    let (from, to) = (from.min(to), from.max(to));
    // Pairs are listed by their lesser city.
    let before: usize = (0..from).map(|city| CITIES - 1 - city).sum();
    me.read(search.distances[before + to - from - 1]).await
}

async fn improve(me: &Thread, search: &Search, number: usize, tour: &[usize], length: i64) {
    me.lock(search.best).await;
    if me.test(length < me.read(search.length).await).await {
        me.write(search.length, length).await;
        me.write(search.finder, number as i64).await;
        for (&var, &city) in search.tour.iter().zip(tour) {
            me.write(var, city as i64).await;
        }
    }
    me.unlock(search.best).await;
}
