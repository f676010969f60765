//! Bank accounts: a thread for each, which deposits, withdraws and transfers to the next account.

use std::rc::Rc;

use reweave_trace::{ConditionId, LockId, Trace, VarId};

use crate::machine::{Thread, run};

const SLICE: usize = 40;

struct Account {
    lock: LockId,
    /// Guards `done`, as a thread's own monitor does.
    monitor: LockId,
    ended: ConditionId,
    balance: VarId,
    number: VarId,
    holder: VarId,
    done: VarId,
}

struct Bank {
    lock: LockId,
    transfers: VarId,
    rate: VarId,
    accounts: Vec<Account>,
}

pub(crate) fn trace(seed: u64, accounts: usize) -> Trace {
    run(seed, SLICE, move |me| main(me, accounts))
}

fn account(me: &Thread, number: usize) -> Account {
    Account {
        lock: me.mutex(&format!("account{number}")),
        monitor: me.mutex(&format!("thread{number}")),
        ended: me.condition(&format!("thread{number}.ended")),
        balance: me.var(&format!("account{number}.balance"), 100),
        number: me.var(&format!("account{number}.number"), number as i64),
        holder: me.var(&format!("account{number}.holder"), number as i64),
        done: me.var(&format!("thread{number}.done"), 0),
    }
}

async fn main(me: Thread, accounts: usize) {
    let bank = Rc::new(Bank {
        lock: me.mutex("bank"),
        transfers: me.var("bank.transfers", 0),
        rate: me.var("bank.rate", 2),
        accounts: (0..accounts).map(|number| account(&me, number)).collect(),
    });
    let mut owners = Vec::new();
    for number in 0..accounts {
        let bank = Rc::clone(&bank);
        owners.push(me.fork(&format!("owner{number}"), move |me| owner(me, bank, number)).await);
    }
    for owner in owners {
        me.join(owner).await;
    }
    me.lock(bank.lock).await;
    me.read(bank.transfers).await;
    me.unlock(bank.lock).await;
    for account in &bank.accounts {
        me.read(account.balance).await;
    }
}

async fn owner(me: Thread, bank: Rc<Bank>, number: usize) {
    let own = &bank.accounts[number];
    let other = &bank.accounts[(number + 1) % bank.accounts.len()];
    describe(&me, &bank, own).await;
    deposit(&me, own, 30).await;
    describe(&me, &bank, own).await;
    deposit(&me, own, -20).await;
    describe(&me, &bank, own).await;
    deposit(&me, own, 5).await;
    transfer(&me, own, other, 10).await;
    deposit(&me, other, 15).await;
    describe(&me, &bank, other).await;
    if number.is_multiple_of(4) {
        me.lock(bank.lock).await;
        me.add(bank.transfers, 1).await;
        me.unlock(bank.lock).await;
    }
    me.lock(own.monitor).await;
    me.write(own.done, 1).await;
    me.notify_all(own.ended).await;
    me.unlock(own.monitor).await;
}

/// Reads what never changes.
async fn describe(me: &Thread, bank: &Bank, account: &Account) {
    for _ in 0..2 {
        me.read(account.number).await;
        me.read(account.holder).await;
        me.work(2).await;
    }
    me.read(bank.rate).await;
    me.work(1).await;
}

async fn deposit(me: &Thread, account: &Account, amount: i64) {
    me.lock(account.lock).await;
    me.read(account.number).await;
    let balance = me.read(account.balance).await + amount;
    if me.test(balance >= 0).await {
        me.write(account.balance, balance).await;
    }
    me.read(account.holder).await;
    me.unlock(account.lock).await;
}

/// Takes the two locks in the order of their numbers, so that no two transfers block each other.
async fn transfer(me: &Thread, from: &Account, to: &Account, amount: i64) {
    let (first, second) = if from.lock < to.lock { (from, to) } else { (to, from) };
    me.lock(first.lock).await;
    me.lock(second.lock).await;
    let balance = me.read(from.balance).await - amount;
    if me.test(balance >= 0).await {
        me.write(from.balance, balance).await;
        me.add(to.balance, amount).await;
    }
    me.unlock(second.lock).await;
    me.unlock(first.lock).await;
}
