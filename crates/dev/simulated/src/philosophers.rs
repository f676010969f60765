//! Dining philosophers: who finds a neighbour eating waits at the table.

use std::rc::Rc;

use reweave_trace::{ConditionId, LockId, Trace, VarId};

use crate::machine::{Thread, run};

const SLICE: usize = 80;

const SEATS: usize = 5;
const MEALS: usize = 3;

struct Seat {
    fork: LockId,
    is_eating: VarId,
    meals: VarId,
    recipe: VarId,
    hunger: VarId,
}

struct Table {
    lock: LockId,
    freed: ConditionId,
    served: VarId,
    bell: VarId,
    menu: VarId,
    seats: Vec<Seat>,
}

pub(crate) fn trace(seed: u64) -> Trace {
    run(seed, SLICE, main)
}

fn seat(me: &Thread, number: usize) -> Seat {
    Seat {
        fork: me.mutex(&format!("fork{number}")),
        is_eating: me.var(&format!("seat{number}.is_eating"), 0),
        meals: me.var(&format!("seat{number}.meals"), 0),
        recipe: me.var(&format!("seat{number}.recipe"), 7),
        hunger: me.var(&format!("seat{number}.hunger"), 2),
    }
}

async fn main(me: Thread) {
    let table = Rc::new(Table {
        lock: me.mutex("table"),
        freed: me.condition("table.freed"),
        served: me.var("table.served", 0),
        bell: me.var("table.bell", 0),
        menu: me.var("table.menu", 4),
        seats: (0..SEATS).map(|number| seat(&me, number)).collect(),
    });
    let mut philosophers = Vec::new();
    for number in 0..SEATS {
        let table = Rc::clone(&table);
        let name = format!("philosopher{number}");
        philosophers.push(me.fork(&name, move |me| philosopher(me, table, number)).await);
    }
    for philosopher in philosophers {
        me.join(philosopher).await;
    }
    me.read(table.served).await;
}

async fn philosopher(me: Thread, table: Rc<Table>, number: usize) {
    let seat = &table.seats[number];
    let left = &table.seats[(number + SEATS - 1) % SEATS];
    let right = &table.seats[(number + 1) % SEATS];
    for _ in 0..MEALS {
        me.work(7).await;
        for _ in 0..11 {
            me.read(seat.recipe).await;
            me.read(table.menu).await;
        }
        me.lock(table.lock).await;
        while me.test(me.read(left.is_eating).await + me.read(right.is_eating).await > 0).await {
            me.wait(table.freed, table.lock).await;
        }
        me.write(seat.is_eating, 1).await;
        me.unlock(table.lock).await;

        me.lock(seat.fork).await;
        me.lock(right.fork).await;
        for _ in 0..11 {
            me.read(seat.hunger).await;
            me.read(seat.recipe).await;
        }
        me.read(table.served).await;
        me.read(table.bell).await;
        me.add(seat.meals, 1).await;
        me.unlock(right.fork).await;
        me.unlock(seat.fork).await;

        me.lock(table.lock).await;
        me.write(seat.is_eating, 0).await;
        me.add(table.served, 1).await;
        me.write(table.bell, number as i64).await;
        me.read(table.bell).await;
        me.notify_all(table.freed).await;
        me.unlock(table.lock).await;
    }
}
