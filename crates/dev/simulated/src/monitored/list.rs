//! A growing list, as libraries have it: an array, how much of it is in use, and how often it was
//! changed. Threads add to it and take from it, with a lock or without.

use std::rc::Rc;

use reweave_trace::{LockId, Trace, VarId};

use super::together;
use crate::machine::{Thread, run};

const SLICE: usize = 1;
const USERS: usize = 4;
const ROUNDS: i64 = 60;
const CAPACITY: usize = 10;

struct List {
    /// What guards it, if anything does.
    lock: Option<LockId>,
    size: VarId,
    changes: VarId,
    /// Where the array is.
    array: VarId,
    /// What is in it, if that is told apart.
    entries: Vec<VarId>,
}

struct Driver {
    lock: LockId,
    rounds: VarId,
    added: VarId,
    removed: VarId,
    list: List,
}

/// Without a lock; the array is one variable.
pub(crate) fn unguarded(seed: u64) -> Trace {
    run(seed, SLICE, |me| main(me, false))
}

/// With one; each entry of the array is a variable.
pub(crate) fn guarded(seed: u64) -> Trace {
    run(seed, SLICE, |me| main(me, true))
}

async fn main(me: Thread, is_guarded: bool) {
    let entries_count = if is_guarded { CAPACITY } else { 0 };
    let list = List {
        lock: is_guarded.then(|| me.mutex("list")),
        size: me.var("list.size", 0),
        changes: me.var("list.changes", 0),
        array: me.var("list.array", 1),
        entries: (0..entries_count).map(|at| me.var(&format!("list.array[{at}]"), 0)).collect(),
    };
    let driver = Rc::new(Driver {
        lock: me.mutex("driver"),
        rounds: me.var("driver.rounds", ROUNDS),
        added: me.var("driver.added", 0),
        removed: me.var("driver.removed", 0),
        list,
    });
    together(&me, USERS, |me, number| user(me, Rc::clone(&driver), number)).await;
    if is_guarded {
        // All of it is looked at in the end, so that each entry is used whatever the schedule.
        for &entry in &driver.list.entries {
            me.read(entry).await;
        }
    }
}

async fn user(me: Thread, driver: Rc<Driver>, number: usize) {
    let rounds = me.read(driver.rounds).await;
    for round in 0..rounds {
        let done = if me.test((number as i64 + round) % 3 < 2).await {
            add(&me, &driver.list, number as i64).await;
            driver.added
        } else {
            remove(&me, &driver.list).await;
            driver.removed
        };
        me.lock(driver.lock).await;
        me.add(done, 1).await;
        me.unlock(driver.lock).await;
    }
}

async fn add(me: &Thread, list: &List, value: i64) {
    if let Some(lock) = list.lock {
        me.lock(lock).await;
    }
    let size = me.read(list.size).await;
    let array = me.read(list.array).await;
    if me.test(size % CAPACITY as i64 == 0).await {
        me.write(list.array, array + 1).await;
    }
    if let Some(&entry) = list.entries.get(size as usize % CAPACITY) {
        me.write(entry, value).await;
    }
    me.write(list.size, size + 1).await;
    me.add(list.changes, 1).await;
    if let Some(lock) = list.lock {
        me.unlock(lock).await;
    }
}

async fn remove(me: &Thread, list: &List) {
    if let Some(lock) = list.lock {
        me.lock(lock).await;
    }
    let size = me.read(list.size).await;
    if me.test(size > 0).await {
        me.read(list.array).await;
        if let Some(&entry) = list.entries.get((size as usize - 1) % CAPACITY) {
            me.write(entry, 0).await;
        }
        me.write(list.size, size - 1).await;
        me.add(list.changes, 1).await;
    }
    if let Some(lock) = list.lock {
        me.unlock(lock).await;
    }
}
