//! `abba_deadlock`, fixed: whichever way the money goes, the savings are locked first.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

static SAVINGS: Mutex<i64> = Mutex::new(100);
static HOUSEHOLD: Mutex<i64> = Mutex::new(100);

/// Moves money from the savings to the household, or the other way if it is less than nothing.
fn transfer(amount: i64) {
    let mut savings = SAVINGS.lock().unwrap();
    let mut household = HOUSEHOLD.lock().unwrap();
    *savings -= amount;
    *household += amount;
}

fn spend() {
    transfer(30);
}

fn save() {
    thread::sleep(Duration::from_millis(20));
    transfer(-10);
}

fn main() {
    let one = thread::spawn(spend);
    let two = thread::spawn(save);
    one.join().unwrap();
    two.join().unwrap();
    println!("savings {}, household {}", SAVINGS.lock().unwrap(), HOUSEHOLD.lock().unwrap());
}
