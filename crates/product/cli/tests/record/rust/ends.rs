//! Ends badly: a thread panics, or two wait for each other's locks.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("panic") => thread::spawn(|| panic!("no money left")).join().unwrap(),
        _ => deadlock(),
    }
}

fn deadlock() {
    let (left, right) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let both = Arc::new(Barrier::new(2));
    let other = thread::spawn({
        let (left, right, both) = (left.clone(), right.clone(), both.clone());
        move || {
            let right = right.lock().unwrap();
            both.wait();
            *left.lock().unwrap() += *right;
        }
    });
    let mine = left.lock().unwrap();
    both.wait();
    *right.lock().unwrap() += *mine;
    drop(mine);
    other.join().unwrap();
}
