//! The lock of the output hides a race (`race`) or is one of two that are taken in both orders
//! (`deadlock`), one thread after the other.

use std::io;
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

fn run_late(late: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::spawn(|| {
        HAS_STARTED.store(true, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(30));
        late();
    })
}

fn race() -> [thread::JoinHandle<()>; 2] {
    let first = thread::spawn(|| {
        let guard = io::stdout().lock();
        drop(io::stdout().lock());
        unsafe { NUMBER += 1 };
        drop(guard);
        await_start();
    });
    let second = run_late(|| {
        drop(io::stdout().lock());
        unsafe { NUMBER += 1 };
    });
    [first, second]
}

fn deadlock() -> [thread::JoinHandle<()>; 2] {
    let first = thread::spawn(|| {
        let guards = (LOCK.lock().unwrap(), io::stdout().lock());
        unsafe { NUMBER += 1 };
        drop(guards);
        await_start();
    });
    let second = run_late(|| {
        let _guards = (io::stdout().lock(), LOCK.lock().unwrap());
        unsafe { NUMBER += 1 };
    });
    [first, second]
}

fn main() {
    // Made ready by the first who wants it; nobody shall stop in the middle of that.
    _ = io::stdout();
    let is_race = std::env::args().nth(1).is_some_and(|what| what == "race");
    let threads = if is_race { race() } else { deadlock() };
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    println!("{}", unsafe { NUMBER });
}
