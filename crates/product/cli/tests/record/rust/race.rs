//! Two threads write one number, one of them outside the lock. That the lock changes hands in
//! between hides it. With an argument, the second waits for the lock that the first has.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

static LOCK: Mutex<()> = Mutex::new(());
static mut NUMBER: u32 = 0;
static HAS_STARTED: AtomicBool = AtomicBool::new(false);

/// Whoever starts late would depend on a list of threads that those who have ended left.
fn await_start() {
    while !HAS_STARTED.load(Ordering::Relaxed) {
        thread::yield_now();
    }
}

fn main() {
    let waits = std::env::args().count() > 1;
    let first = thread::spawn(move || {
        let guard = LOCK.lock().unwrap();
        unsafe { NUMBER += 1 };
        thread::sleep(Duration::from_millis(if waits { 60 } else { 0 }));
        drop(guard);
        await_start();
    });
    let second = thread::spawn(|| {
        HAS_STARTED.store(true, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(30));
        drop(LOCK.lock().unwrap());
        unsafe { NUMBER += 1 };
    });
    first.join().unwrap();
    second.join().unwrap();
    println!("{}", unsafe { NUMBER });
}
