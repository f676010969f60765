//! A condition whose flag is set under the lock.
//!
//! `main` sets `done` and notifies under the mutex, so both come before the look at `done` or after the
//! wait has begun.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

static LOCK: Mutex<()> = Mutex::new(());
static FINISHED: Condvar = Condvar::new();
static DONE: AtomicBool = AtomicBool::new(false);

fn wait() {
    let mut guard = LOCK.lock().unwrap();
    while !DONE.load(Ordering::SeqCst) {
        guard = FINISHED.wait(guard).unwrap();
    }
    drop(guard);
    println!("the work is done");
}

fn main() {
    let waiter = thread::spawn(wait);
    thread::sleep(Duration::from_millis(20)); // the work
    let guard = LOCK.lock().unwrap();
    DONE.store(true, Ordering::SeqCst);
    FINISHED.notify_one();
    drop(guard);
    waiter.join().unwrap();
}
