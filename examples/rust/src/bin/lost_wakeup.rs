//! A condition whose flag is set outside the lock.
//!
//! Wrong: `main` sets `done` and notifies without the mutex. Between the waiter's look at `done` and its wait
//! the notification comes and wakes nobody, and the waiter sleeps for ever.
//! An ordinary run: the waiter sleeps long before the work is done, and the notification wakes it.
//! reweave: the waiter waits for ever, and `main` waits for the waiter. There is no race: `done` is atomic.

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
    DONE.store(true, Ordering::SeqCst);
    FINISHED.notify_one();
    waiter.join().unwrap();
}
