//! A thread that locks its own mutex twice.
//!
//! Wrong: `add` holds the guard when it calls `total`, which locks again.
//! Every run: the program stands still.
//! reweave: `record --stall-timeout 1` ends the run, and `check` says that the thread waits for itself.

use std::sync::Mutex;
use std::thread;

static SUM: Mutex<u32> = Mutex::new(0);

fn total() -> u32 {
    *SUM.lock().unwrap()
}

fn add() {
    let mut sum = SUM.lock().unwrap();
    *sum = total() + 1;
}

fn main() {
    thread::spawn(add).join().unwrap();
    println!("sum {}", total());
}
