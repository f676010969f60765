//! Two threads take two locks, each in an order of its own, and one after the other. Before that,
//! each waits for locks that the other has.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread;
use std::time::Duration;

static FROM: Mutex<u32> = Mutex::new(10);
static TO: Mutex<u32> = Mutex::new(0);
static RATE: RwLock<u32> = RwLock::new(1);
static HAS_STARTED: AtomicBool = AtomicBool::new(false);

/// Whoever starts late would depend on a list of threads that those who have ended left.
fn await_start() {
    while !HAS_STARTED.load(Ordering::Relaxed) {
        thread::yield_now();
    }
}

fn meet() {
    for _ in 0..2 {
        drop(RATE.read());
        let guard = RATE.write();
        thread::sleep(Duration::from_millis(2));
        drop(guard);
        let guard = FROM.lock();
        thread::sleep(Duration::from_millis(2));
        drop(guard);
    }
}

fn main() {
    let there = thread::spawn(|| {
        meet();
        let mut from = FROM.lock().unwrap();
        let mut to = TO.lock().unwrap();
        *from -= 3;
        *to += 3;
        drop((from, to));
        await_start();
    });
    let back = thread::spawn(|| {
        HAS_STARTED.store(true, Ordering::Relaxed);
        meet();
        thread::sleep(Duration::from_millis(30));
        let mut to = TO.lock().unwrap();
        let mut from = FROM.lock().unwrap();
        *to -= 1;
        *from += 1;
    });
    there.join().unwrap();
    back.join().unwrap();
    println!("{} {}", FROM.lock().unwrap(), TO.lock().unwrap());
}
