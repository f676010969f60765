//! A watch over liveness: workers raise their heartbeats, look at their neighbours', and sign off.
//!
//! What the published program of this name does is not known to us; this one is a guess.

use std::rc::Rc;

use reweave_trace::{ConditionId, LockId, Trace, VarId};

use crate::machine::{Thread, run};

const SLICE: usize = 40;

const WORKERS: usize = 6;
const BEATS: usize = 4;

struct Watch {
    gate: LockId,
    log: LockId,
    roll: LockId,
    signed_off: ConditionId,
    is_open: VarId,
    lines: VarId,
    alive: VarId,
    interval: VarId,
    limit: VarId,
    level: VarId,
    /// The lock and the heartbeat of each worker.
    workers: Vec<(LockId, VarId)>,
}

pub(crate) fn trace(seed: u64) -> Trace {
    run(seed, SLICE, main)
}

async fn main(me: Thread) {
    let worker = |number| {
        (me.mutex(&format!("worker{number}")), me.var(&format!("worker{number}.beats"), 0))
    };
    let watch = Rc::new(Watch {
        gate: me.mutex("gate"),
        log: me.mutex("log"),
        roll: me.mutex("roll"),
        signed_off: me.condition("roll.signed_off"),
        is_open: me.var("gate.is_open", 0),
        lines: me.var("log.lines", 0),
        alive: me.var("roll.alive", WORKERS as i64),
        interval: me.var("watch.interval", 3),
        limit: me.var("watch.limit", 100),
        level: me.var("log.level", 1),
        workers: (0..WORKERS).map(worker).collect(),
    });
    me.lock(watch.log).await;
    me.add(watch.lines, 1).await;
    me.unlock(watch.log).await;
    me.lock(watch.gate).await;
    me.write(watch.is_open, 1).await;
    me.unlock(watch.gate).await;
    let mut workers = Vec::new();
    for number in 0..WORKERS {
        let watch = Rc::clone(&watch);
        let name = format!("worker{number}");
        workers.push(me.fork(&name, move |me| worker_body(me, watch, number)).await);
    }
    for worker in workers {
        me.join(worker).await;
    }
    me.lock(watch.gate).await;
    me.write(watch.is_open, 0).await;
    me.unlock(watch.gate).await;
    me.lock(watch.log).await;
    me.add(watch.lines, 1).await;
    me.unlock(watch.log).await;
    me.read(watch.alive).await;
}

async fn worker_body(me: Thread, watch: Rc<Watch>, number: usize) {
    let (lock, beats) = watch.workers[number];
    me.read(watch.is_open).await;
    me.lock(lock).await;
    for _ in 0..BEATS {
        me.work(2).await;
        me.read(watch.interval).await;
        me.add(beats, 1).await;
        me.test(me.read(beats).await > me.read(watch.limit).await).await;
    }
    me.unlock(lock).await;

    let (lock, beats) = watch.workers[(number + 1) % WORKERS];
    me.lock(lock).await;
    let is_dead = me.read(beats).await == 0;
    me.unlock(lock).await;
    if me.test(is_dead).await && me.read(watch.level).await > 1 {
        me.add(watch.lines, 1).await;
    }

    me.lock(watch.roll).await;
    me.add(watch.alive, -1).await;
    me.notify(watch.signed_off).await;
    me.unlock(watch.roll).await;
    me.work(1).await;
    me.read(watch.level).await;
}
