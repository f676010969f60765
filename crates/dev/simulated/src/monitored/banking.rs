//! Bank accounts: transfers take the locks of both, but the bank's total is kept without one.

use std::rc::Rc;

use reweave_trace::{LockId, Trace, VarId};

use super::together;
use crate::machine::{Thread, run};

const SLICE: usize = 2;
const TELLERS: usize = 4;
const ROUNDS: usize = 60;

struct Account {
    lock: LockId,
    balance: VarId,
}

struct Bank {
    accounts: Vec<Account>,
    fee: VarId,
    lock: LockId,
    transfers: VarId,
    total: VarId,
}

pub(crate) fn trace(seed: u64) -> Trace {
    run(seed, SLICE, main)
}

async fn main(me: Thread) {
    let account = |number| Account {
        lock: me.mutex(&format!("account{number}")),
        balance: me.var(&format!("account{number}.balance"), 100),
    };
    let bank = Rc::new(Bank {
        accounts: (0..TELLERS).map(account).collect(),
        fee: me.var("bank.fee", 1),
        lock: me.mutex("bank"),
        transfers: me.var("bank.transfers", 0),
        total: me.var("bank.total", 0),
    });
    together(&me, TELLERS, |me, number| teller(me, Rc::clone(&bank), number)).await;
    me.read(bank.total).await;
}

async fn teller(me: Thread, bank: Rc<Bank>, number: usize) {
    let fee = me.read(bank.fee).await;
    for round in 0..ROUNDS {
        let to = (number + 1 + me.draw(TELLERS - 1)) % TELLERS;
        transfer(&me, &bank.accounts[number], &bank.accounts[to], 10, fee).await;
        if me.test(round % 2 == 1).await {
            me.lock(bank.lock).await;
            me.add(bank.transfers, 2).await;
            me.unlock(bank.lock).await;
        }
        // The fault: two tellers may read the same total, and then one fee is lost.
        me.add(bank.total, fee).await;
    }
}

/// Takes the two locks in one order, so that no two transfers block each other.
async fn transfer(me: &Thread, from: &Account, to: &Account, amount: i64, fee: i64) {
    let (first, second) = if from.lock < to.lock { (from, to) } else { (to, from) };
    me.lock(first.lock).await;
    me.lock(second.lock).await;
    let balance = me.read(from.balance).await - amount - fee;
    if me.test(balance >= 0).await {
        me.write(from.balance, balance).await;
        me.add(to.balance, amount).await;
    }
    me.unlock(second.lock).await;
    me.unlock(first.lock).await;
}
