//! A set of numbers as a sorted list, whose nodes are locked hand over hand: who goes on to a node
//! takes its lock before releasing that of the node before it.
//!
//! The faulty one does not lock the node that it removes. So another thread may be at that node, and
//! link a new one to it, while who removes it reads where it leads.

use std::rc::Rc;

use reweave_trace::{LockId, Trace, VarId};

use super::together;
use crate::machine::{Thread, run};

const SLICE: usize = 1;
const USERS: usize = 4;
const OPERATIONS: i64 = 40;

/// Where the list starts, and what stands for its end.
const HEAD: usize = 0;
const END: usize = 0;

/// The numbers that may be in the set; the first and the last of them always are.
const NUMBERS: usize = 4;

/// Whether who removes a node holds its lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    Locked,
    Unlocked,
}

struct Node {
    lock: LockId,
    /// Which node comes next.
    next: VarId,
}

struct Set {
    removal: Removal,
    operations: VarId,
    /// The head, and a node for each number.
    nodes: Vec<Node>,
    /// The number of each node but the head.
    keys: Vec<VarId>,
}

pub(crate) fn trace(seed: u64, removal: Removal) -> Trace {
    run(seed, SLICE, move |me| main(me, removal))
}

async fn main(me: Thread, removal: Removal) {
    let node = |number: usize| {
        let next = match number {
            HEAD => 1,
            NUMBERS => END,
            _ => NUMBERS,
        };
        Node {
            lock: me.mutex(&format!("node{number}")),
            next: me.var(&format!("node{number}.next"), next as i64),
        }
    };
    let key = |number: usize| me.var(&format!("node{number}.key"), number as i64);
    let set = Rc::new(Set {
        removal,
        operations: me.var("users.operations", OPERATIONS),
        nodes: (0..=NUMBERS).map(node).collect(),
        keys: (1..=NUMBERS).map(key).collect(),
    });
    together(&me, USERS, |me, number| user(me, Rc::clone(&set), number)).await;
    look(&me, &set, NUMBERS + 1).await;
}

/// The first user adds and removes what comes after that which the others add and remove.
async fn user(me: Thread, set: Rc<Set>, user: usize) {
    let operations = me.read(set.operations).await;
    let own = if user == 0 { 3 } else { 2 };
    for _ in 0..operations {
        match me.draw(5) {
            0 | 1 => add(&me, &set, own).await,
            2 | 3 => remove(&me, &set, own).await,
            _ => look(&me, &set, 2 + me.draw(2)).await,
        }
    }
}

impl Set {
    async fn key(&self, me: &Thread, node: usize) -> usize {
        me.read(self.keys[node - 1]).await as usize
    }

    async fn next(&self, me: &Thread, node: usize) -> usize {
        me.read(self.nodes[node].next).await as usize
    }

    async fn link(&self, me: &Thread, node: usize, next: usize) {
        me.write(self.nodes[node].next, next as i64).await;
    }

    async fn lock(&self, me: &Thread, node: usize) {
        me.lock(self.nodes[node].lock).await;
    }

    async fn unlock(&self, me: &Thread, node: usize) {
        me.unlock(self.nodes[node].lock).await;
    }
}

/// The first node whose number is not below `number`, with its lock, and the one before it, with its
/// lock. The end has no lock.
async fn find(me: &Thread, set: &Set, number: usize) -> (usize, usize) {
    let mut before = HEAD;
    set.lock(me, before).await;
    loop {
        let at = set.next(me, before).await;
        if me.test(at == END).await {
            return (before, END);
        }
        set.lock(me, at).await;
        if me.test(set.key(me, at).await >= number).await {
            return (before, at);
        }
        set.unlock(me, before).await;
        before = at;
    }
}

async fn look(me: &Thread, set: &Set, number: usize) {
    let (before, at) = find(me, set, number).await;
    give_back(me, set, before, at).await;
}

async fn add(me: &Thread, set: &Set, number: usize) {
    let (before, at) = find(me, set, number).await;
    if me.test(at != number).await {
        set.link(me, number, at).await;
        set.link(me, before, number).await;
    }
    give_back(me, set, before, at).await;
}

async fn give_back(me: &Thread, set: &Set, before: usize, at: usize) {
    if at != END {
        set.unlock(me, at).await;
    }
    set.unlock(me, before).await;
}

async fn remove(me: &Thread, set: &Set, number: usize) {
    if set.removal == Removal::Unlocked {
        remove_unlocked(me, set, number).await;
        return;
    }
    let (before, at) = find(me, set, number).await;
    if me.test(at == number).await {
        let next = set.next(me, at).await;
        set.link(me, before, next).await;
    }
    give_back(me, set, before, at).await;
}

/// The fault: numbers never change, so they are compared without the node's lock, and then it is not
/// taken for the sake of `next` either.
async fn remove_unlocked(me: &Thread, set: &Set, number: usize) {
    let mut before = HEAD;
    set.lock(me, before).await;
    let mut at = set.next(me, before).await;
    while me.test(at != END && set.key(me, at).await < number).await {
        set.lock(me, at).await;
        set.unlock(me, before).await;
        before = at;
        at = set.next(me, before).await;
    }
    if me.test(at == number).await {
        let next = set.next(me, at).await;
        set.link(me, before, next).await;
    }
    set.unlock(me, before).await;
}
