//! A session that is freed while another thread may still use it.
//!
//! Wrong: both threads hold the mutex, but nothing says that the request comes first.
//! An ordinary run: the session is ended long after the request.
//! reweave: the request can use the session after it was freed. There is no race: the mutex keeps the two apart.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

struct Session {
    requests: u32,
}

static LOCK: Mutex<()> = Mutex::new(());

fn request(session: usize) {
    let _guard = LOCK.lock().unwrap();
    unsafe { (*(session as *mut Session)).requests += 1 };
}

fn end(session: usize) {
    thread::sleep(Duration::from_millis(20)); // nobody has asked for anything for a while
    let _guard = LOCK.lock().unwrap();
    drop(unsafe { Box::from_raw(session as *mut Session) });
}

fn main() {
    let session = Box::into_raw(Box::new(Session { requests: 0 })) as usize;
    let client = thread::spawn(move || request(session));
    let reaper = thread::spawn(move || end(session));
    client.join().unwrap();
    reaper.join().unwrap();
    println!("the session is over");
}
