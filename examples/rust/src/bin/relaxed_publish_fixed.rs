//! `relaxed_publish.rs`, fixed: the store releases what came before it, and the load acquires it.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

struct Answer(UnsafeCell<u64>);

// The flag is to keep the two threads apart.
unsafe impl Sync for Answer {}

static ANSWER: Answer = Answer(UnsafeCell::new(0));
static READY: AtomicBool = AtomicBool::new(false);

fn read() {
    while !READY.load(Ordering::Acquire) {
        thread::yield_now();
    }
    let answer = unsafe { *ANSWER.0.get() };
    println!("the answer is {answer}");
}

fn main() {
    let reader = thread::spawn(read);
    unsafe { *ANSWER.0.get() = 42 };
    READY.store(true, Ordering::Release);
    reader.join().unwrap();
}
