//! A benchmark of synchronisation: workers raise two counters, each guarded by a lock of its own.

use std::rc::Rc;

use reweave_trace::{LockId, Trace, VarId};

use crate::machine::{Thread, run};

const SLICE: usize = 40;

const WORKERS: usize = 15;
const ROUNDS: usize = 5;
const SETTINGS: usize = 13;

struct Bench {
    method: LockId,
    object: LockId,
    method_count: VarId,
    object_count: VarId,
    settings: Vec<VarId>,
}

pub(crate) fn trace(seed: u64) -> Trace {
    run(seed, SLICE, main)
}

async fn main(me: Thread) {
    let setting = |number| me.var(&format!("bench.setting{number}"), 10 + number as i64);
    let bench = Rc::new(Bench {
        method: me.mutex("bench.method"),
        object: me.mutex("bench.object"),
        method_count: me.var("bench.method_count", 0),
        object_count: me.var("bench.object_count", 0),
        settings: (0..SETTINGS).map(setting).collect(),
    });
    let mut workers = Vec::new();
    for number in 0..WORKERS {
        let bench = Rc::clone(&bench);
        workers
            .push(me.fork(&format!("worker{number}"), move |me| worker(me, bench, number)).await);
    }
    for worker in workers {
        me.join(worker).await;
    }
    for (lock, count) in [(bench.method, bench.method_count), (bench.object, bench.object_count)] {
        me.lock(lock).await;
        me.read(count).await;
        me.unlock(lock).await;
    }
}

async fn worker(me: Thread, bench: Rc<Bench>, number: usize) {
    for offset in 0..10 {
        me.read(bench.settings[(number + offset) % SETTINGS]).await;
    }
    for _ in 0..ROUNDS {
        me.work(3).await;
        me.lock(bench.method).await;
        me.add(bench.method_count, 1).await;
        me.unlock(bench.method).await;
        me.work(3).await;
        me.lock(bench.object).await;
        me.add(bench.object_count, 1).await;
        me.test(me.read(bench.object_count).await > 0).await;
        me.unlock(bench.object).await;
        me.work(1).await;
    }
}
