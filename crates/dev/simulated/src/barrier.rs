//! A cyclic barrier made of a lock and a condition: who arrives early looks a few times whether the
//! round is over, and only then waits.

use std::rc::Rc;

use reweave_trace::{ConditionId, LockId, Trace, VarId};

use crate::machine::{Thread, run};

const SLICE: usize = 1;

const ROUNDS: usize = 2;
const LOOKS_MAX: usize = 2;

struct Barrier {
    lock: LockId,
    log: LockId,
    steps: usize,
    over: ConditionId,
    count: VarId,
    round: VarId,
    reports: VarId,
    /// What each worker has computed.
    slots: Vec<VarId>,
}

/// `steps` is how many local steps a worker takes from one thing to the next.
pub(crate) fn trace(seed: u64, workers: usize, steps: usize) -> Trace {
    run(seed, SLICE, move |me| main(me, workers, steps))
}

async fn main(me: Thread, workers: usize, steps: usize) {
    let barrier = Rc::new(Barrier {
        lock: me.mutex("barrier"),
        log: me.mutex("log"),
        steps,
        over: me.condition("barrier.over"),
        count: me.var("barrier.count", 0),
        round: me.var("barrier.round", 0),
        reports: me.var("log.reports", 0),
        slots: (0..workers).map(|number| me.var(&format!("slot{number}"), 0)).collect(),
    });
    let mut children = Vec::new();
    for number in 0..workers {
        let barrier = Rc::clone(&barrier);
        let name = format!("worker{number}");
        children.push(me.fork(&name, move |me| worker(me, barrier, number)).await);
    }
    for child in children {
        me.join(child).await;
    }
    me.read(barrier.reports).await;
}

async fn worker(me: Thread, barrier: Rc<Barrier>, number: usize) {
    for _ in 0..ROUNDS {
        let mut sum = me.read(barrier.slots[number]).await;
        for offset in 1..=4 {
            sum += me.read(barrier.slots[(number + offset) % barrier.slots.len()]).await;
        }
        me.work(barrier.steps).await;
        me.write(barrier.slots[number], sum + 1).await;
        pass(&me, &barrier).await;
    }
    if me.test(number.is_multiple_of(3)).await {
        me.lock(barrier.log).await;
        me.add(barrier.reports, 1).await;
        me.unlock(barrier.log).await;
    }
}

async fn pass(me: &Thread, barrier: &Barrier) {
    me.lock(barrier.lock).await;
    let round = me.read(barrier.round).await;
    let is_last = me.add(barrier.count, 1).await + 1 == barrier.slots.len() as i64;
    if me.test(is_last).await {
        me.write(barrier.count, 0).await;
        me.write(barrier.round, round + 1).await;
        me.notify_all(barrier.over).await;
        me.unlock(barrier.lock).await;
        return;
    }
    me.unlock(barrier.lock).await;
    for _ in 0..LOOKS_MAX {
        me.work(barrier.steps).await;
        me.lock(barrier.lock).await;
        me.read(barrier.count).await;
        let is_over = me.read(barrier.round).await != round;
        me.unlock(barrier.lock).await;
        if me.test(is_over).await {
            return;
        }
    }
    me.lock(barrier.lock).await;
    while me.test(me.read(barrier.round).await == round).await {
        me.wait(barrier.over, barrier.lock).await;
    }
    me.unlock(barrier.lock).await;
}
