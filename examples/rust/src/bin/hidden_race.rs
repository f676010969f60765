//! A race that the order of a lock hides.
//!
//! Wrong: `audit` lets the guard go at the end of its statement, and only then takes the fee. The cell
//! is declared to be safe to share, which it is under the lock alone.
//! An ordinary run: the deposit comes first, so the lock passes from `deposit` to `audit`, and a detector
//! that goes by happens-before takes the two accesses as ordered.
//! reweave: a race between the two lines that change the balance.

use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

struct Balance(UnsafeCell<i64>);

// SAFETY: there is none; this is the fault.
unsafe impl Sync for Balance {}

static BALANCE: Balance = Balance(UnsafeCell::new(100));
static AUDITS: Mutex<u32> = Mutex::new(0);

fn deposit() {
    let _guard = AUDITS.lock().unwrap();
    unsafe { *BALANCE.0.get() += 50 };
}

fn audit() {
    thread::sleep(Duration::from_millis(20));
    *AUDITS.lock().unwrap() += 1;
    unsafe { *BALANCE.0.get() -= 1 };
}

fn main() {
    let teller = thread::spawn(deposit);
    let auditor = thread::spawn(audit);
    teller.join().unwrap();
    auditor.join().unwrap();
    println!("balance {}", unsafe { *BALANCE.0.get() });
}
