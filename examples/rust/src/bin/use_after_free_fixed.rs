//! `use_after_free.rs`, fixed: the session ends when the client has.

use std::sync::Mutex;
use std::thread;

struct Session {
    requests: u32,
}

static LOCK: Mutex<()> = Mutex::new(());

fn request(session: usize) {
    let _guard = LOCK.lock().unwrap();
    unsafe { (*(session as *mut Session)).requests += 1 };
}

fn end(session: usize) {
    let _guard = LOCK.lock().unwrap();
    drop(unsafe { Box::from_raw(session as *mut Session) });
}

fn main() {
    let session = Box::into_raw(Box::new(Session { requests: 0 })) as usize;
    let client = thread::spawn(move || request(session));
    client.join().unwrap();
    let reaper = thread::spawn(move || end(session));
    reaper.join().unwrap();
    println!("the session is over");
}
