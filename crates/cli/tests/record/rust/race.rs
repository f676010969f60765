//! Two threads write one number, one of them outside the lock. That the lock changes hands in
//! between hides it. With an argument, the second waits for the lock that the first has.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

static LOCK: Mutex<()> = Mutex::new(());
static mut NUMBER: u32 = 0;

fn main() {
    let waits = std::env::args().count() > 1;
    let first = thread::spawn(move || {
        let _guard = LOCK.lock().unwrap();
        unsafe { NUMBER += 1 };
        thread::sleep(Duration::from_millis(if waits { 60 } else { 0 }));
    });
    let second = thread::spawn(|| {
        thread::sleep(Duration::from_millis(30));
        drop(LOCK.lock().unwrap());
        unsafe { NUMBER += 1 };
    });
    first.join().unwrap();
    second.join().unwrap();
    println!("{}", unsafe { NUMBER });
}
