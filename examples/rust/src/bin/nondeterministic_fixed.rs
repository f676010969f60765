//! `nondeterministic`, fixed: each thread returns its part, and main combines them in its own order.

use std::thread;
use std::time::Duration;

fn quick() -> i64 {
    3
}

fn slow() -> i64 {
    thread::sleep(Duration::from_millis(20));
    4
}

fn main() {
    let one = thread::spawn(quick);
    let two = thread::spawn(slow);
    let parts = [one.join().unwrap(), two.join().unwrap()];
    println!("result {}", parts.into_iter().fold(0, |result, part| result * 10 + part));
}
