//! Fields, elements and variants that threads race on.

use std::cell::UnsafeCell;
use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Default)]
struct Stats {
    hits: u64,
    bytes: [u32; 4],
}

enum State {
    Idle,
    Busy { job: u64, tries: (u32, u32) },
}

struct Shared<T>(UnsafeCell<T>);

// SAFETY: none: that is the fault.
unsafe impl<T> Sync for Shared<T> {}

static STATS: Shared<Stats> = Shared(UnsafeCell::new(Stats { hits: 0, bytes: [0; 4] }));
static TOTAL: Mutex<Stats> = Mutex::new(Stats { hits: 0, bytes: [0; 4] });

struct Server {
    state: UnsafeCell<State>,
    total: Mutex<u64>,
}

// SAFETY: none: that is the fault.
unsafe impl Sync for Server {}

fn work(server: &Server) {
    *server.total.lock().unwrap() += 1;
    TOTAL.lock().unwrap().hits += 1;
    // SAFETY: none.
    unsafe {
        (*STATS.0.get()).bytes[2] += 1;
        if let State::Busy { job, tries } = &mut *server.state.get() {
            *job += 1;
            tries.1 += 1;
        }
    }
}

fn main() {
    let server = Arc::new(Server {
        state: UnsafeCell::new(State::Idle),
        total: Mutex::new(0),
    });
    // SAFETY: there is one thread.
    unsafe { *server.state.get() = State::Busy { job: 1, tries: (0, 0) } };
    let threads: Vec<_> = (0..2)
        .map(|number| {
            let server = Arc::clone(&server);
            thread::Builder::new().name(format!("worker-{number}")).spawn(move || work(&server))
        })
        .collect();
    for thread in threads {
        thread.unwrap().join().unwrap();
    }
}
