//! `self_deadlock.rs`, fixed: who holds the guard reads the sum itself.

use std::sync::Mutex;
use std::thread;

static SUM: Mutex<u32> = Mutex::new(0);

fn total() -> u32 {
    *SUM.lock().unwrap()
}

fn add() {
    let mut sum = SUM.lock().unwrap();
    *sum += 1;
}

fn main() {
    thread::spawn(add).join().unwrap();
    println!("sum {}", total());
}
