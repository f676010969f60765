//! No race, no `unsafe`, and still a result that depends on who comes first.
//!
//! Wrong: two threads combine their parts with what is there, in the order in which they get the lock,
//! and the order matters: 3 then 4 gives 34, 4 then 3 gives 43.
//! An ordinary run: the first part takes less time, and the result is the same every time.
//! reweave: `check` alone finds nothing, rightly. `check --with determinism` says that the line which
//! reads the result can see another write than it saw.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

static RESULT: Mutex<i64> = Mutex::new(0);

fn combine(part: i64) {
    let mut result = RESULT.lock().unwrap();
    *result = *result * 10 + part;
}

fn quick() {
    combine(3);
}

fn slow() {
    thread::sleep(Duration::from_millis(20));
    combine(4);
}

fn main() {
    let one = thread::spawn(quick);
    let two = thread::spawn(slow);
    one.join().unwrap();
    two.join().unwrap();
    println!("result {}", RESULT.lock().unwrap());
}
