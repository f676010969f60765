//! Data that is published through a relaxed flag.
//!
//! Wrong: `main` stores `READY` with a relaxed order, and the reader loads it so. That the flag is seen does not mean
//! that the data is.
//! An ordinary run: on x86-64 stores become visible in order, and the data is there.
//! reweave: the write and the read of the answer are a race: nothing orders them.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

struct Answer(UnsafeCell<u64>);

// The flag is to keep the two threads apart.
unsafe impl Sync for Answer {}

static ANSWER: Answer = Answer(UnsafeCell::new(0));
static READY: AtomicBool = AtomicBool::new(false);

fn read() {
    while !READY.load(Ordering::Relaxed) {
        thread::yield_now();
    }
    let answer = unsafe { *ANSWER.0.get() };
    println!("the answer is {answer}");
}

fn main() {
    let reader = thread::spawn(read);
    unsafe { *ANSWER.0.get() = 42 };
    READY.store(true, Ordering::Relaxed);
    reader.join().unwrap();
}
