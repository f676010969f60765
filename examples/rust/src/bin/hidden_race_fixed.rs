//! `hidden_race`, fixed: the balance is inside the lock that guards it.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

struct Account {
    balance: i64,
    audits: u32,
}

static ACCOUNT: Mutex<Account> = Mutex::new(Account { balance: 100, audits: 0 });

fn deposit() {
    ACCOUNT.lock().unwrap().balance += 50;
}

fn audit() {
    thread::sleep(Duration::from_millis(20));
    let mut account = ACCOUNT.lock().unwrap();
    account.audits += 1;
    account.balance -= 1;
}

fn main() {
    let teller = thread::spawn(deposit);
    let auditor = thread::spawn(audit);
    teller.join().unwrap();
    auditor.join().unwrap();
    println!("balance {}", ACCOUNT.lock().unwrap().balance);
}
