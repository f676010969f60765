//! A connection pool: clients take a connection, use it and return it; who finds none waits.

use std::rc::Rc;

use reweave_trace::{ConditionId, LockId, Trace, VarId};

use crate::machine::{Thread, run};

const SLICE: usize = 1;

const CLIENTS: usize = 3;
const CONNECTIONS: i64 = 1;

struct Pool {
    lock: LockId,
    returned: ConditionId,
    free: VarId,
    waiters: VarId,
    address: VarId,
    owner: VarId,
    calls: VarId,
}

pub(crate) fn trace(seed: u64) -> Trace {
    run(seed, SLICE, main)
}

async fn main(me: Thread) {
    let pool = Rc::new(Pool {
        lock: me.mutex("pool"),
        returned: me.condition("pool.returned"),
        free: me.var("pool.free", CONNECTIONS),
        waiters: me.var("pool.waiters", 0),
        address: me.var("pool.address", 80),
        owner: me.var("connection.owner", 0),
        calls: me.var("connection.calls", 0),
    });
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let pool = Rc::clone(&pool);
        let name = format!("client{number}");
        clients.push(me.fork(&name, move |me| client(me, pool, number as i64)).await);
    }
    for client in clients {
        me.join(client).await;
    }
    me.lock(pool.lock).await;
    me.read(pool.free).await;
    me.read(pool.calls).await;
    me.unlock(pool.lock).await;
}

async fn client(me: Thread, pool: Rc<Pool>, number: i64) {
    me.read(pool.address).await;
    me.lock(pool.lock).await;
    while me.test(me.read(pool.free).await == 0).await {
        me.add(pool.waiters, 1).await;
        me.wait(pool.returned, pool.lock).await;
        me.add(pool.waiters, -1).await;
    }
    me.add(pool.free, -1).await;
    me.unlock(pool.lock).await;

    me.write(pool.owner, number).await;
    me.read(pool.address).await;
    me.work(3).await;
    me.read(pool.address).await;
    me.add(pool.calls, 1).await;
    me.work(2).await;
    me.read(pool.address).await;
    me.read(pool.owner).await;

    me.lock(pool.lock).await;
    me.add(pool.free, 1).await;
    if me.test(me.read(pool.waiters).await > 0).await {
        me.notify(pool.returned).await;
    }
    me.unlock(pool.lock).await;
    me.read(pool.address).await;
}
