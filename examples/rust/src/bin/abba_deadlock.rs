//! Two locks taken in opposite orders.
//!
//! Wrong: a transfer locks the account that it takes from, then the one that it pays into. Two
//! transfers that go opposite ways lock the same two accounts the opposite way round. The compiler
//! accepts it: this is no data race.
//! An ordinary run: the first transfer is over long before the second begins.
//! reweave: a deadlock of two threads, both at the line that locks the second account.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

static SAVINGS: Mutex<i64> = Mutex::new(100);
static HOUSEHOLD: Mutex<i64> = Mutex::new(100);

fn transfer(from: &Mutex<i64>, to: &Mutex<i64>, amount: i64) {
    let mut from = from.lock().unwrap();
    let mut to = to.lock().unwrap();
    *from -= amount;
    *to += amount;
}

fn spend() {
    transfer(&SAVINGS, &HOUSEHOLD, 30);
}

fn save() {
    thread::sleep(Duration::from_millis(20));
    transfer(&HOUSEHOLD, &SAVINGS, 10);
}

fn main() {
    let one = thread::spawn(spend);
    let two = thread::spawn(save);
    one.join().unwrap();
    two.join().unwrap();
    println!("savings {}, household {}", SAVINGS.lock().unwrap(), HOUSEHOLD.lock().unwrap());
}
