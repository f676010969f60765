//! Locks of the crate parking_lot and a spin lock of our own. Without an argument nothing is wrong; with
//! `race` a lock that changes hands hides a race, and with `deadlock` two locks are taken in both orders.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use parking_lot::{Condvar, Mutex, MutexGuard, ReentrantMutex, RwLock};

/// A number that whoever accesses it must guard.
struct Guarded(UnsafeCell<u32>);

unsafe impl Sync for Guarded {}

impl Guarded {
    const fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn add(&self) {
        unsafe { *self.0.get() += 1 }
    }

    fn get(&self) -> u32 {
        unsafe { *self.0.get() }
    }
}

/// The smallest spin lock.
struct Spin(AtomicBool);

impl Spin {
    fn with(&self, body: impl FnOnce()) {
        while self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            thread::yield_now();
        }
        body();
        self.0.store(false, Ordering::Release);
    }
}

static NUMBERS: [Guarded; 6] = [const { Guarded::new() }; 6];
static MUTEX: Mutex<()> = Mutex::new(());
static OTHER: Mutex<()> = Mutex::new(());
static HANDED: Mutex<()> = Mutex::new(());
static SHARED: RwLock<()> = RwLock::new(());
static NESTED: ReentrantMutex<()> = ReentrantMutex::new(());
static SPIN: Spin = Spin(AtomicBool::new(false));
static READY: Mutex<bool> = Mutex::new(false);
static BECAME_READY: Condvar = Condvar::new();

fn work() {
    for _ in 0..3 {
        {
            let _guard = MUTEX.lock();
            NUMBERS[0].add();
            thread::yield_now();
        }
        {
            let _guard = SHARED.write();
            NUMBERS[1].add();
            thread::yield_now();
        }
        {
            let _guard = SHARED.read();
            assert!(NUMBERS[1].get() > 0);
            thread::yield_now();
        }
        {
            let (_guard, _again) = (NESTED.lock(), NESTED.lock());
            NUMBERS[2].add();
        }
        SPIN.with(|| {
            NUMBERS[3].add();
            thread::yield_now();
        });
        let guard = HANDED.lock();
        NUMBERS[4].add();
        thread::yield_now();
        MutexGuard::unlock_fair(guard);
    }
}

fn sound() {
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(work);
        }
        scope.spawn(|| {
            let mut ready = READY.lock();
            while !*ready {
                BECAME_READY.wait(&mut ready);
            }
            drop(ready);
            NUMBERS[5].add();
        });
        scope.spawn(|| {
            NUMBERS[5].add();
            *READY.lock() = true;
            BECAME_READY.notify_one();
        });
    });
}

fn race() {
    let first = thread::spawn(|| {
        let _guard = MUTEX.lock();
        NUMBERS[0].add();
    });
    first.thread();
    thread::sleep(std::time::Duration::from_millis(20));
    let second = thread::spawn(|| {
        drop(MUTEX.lock());
        NUMBERS[0].add();
    });
    first.join().unwrap();
    second.join().unwrap();
}

fn deadlock() {
    let both = |first: &'static Mutex<()>, second: &'static Mutex<()>| {
        let _guards = (first.lock(), second.lock());
    };
    let one = thread::spawn(move || both(&MUTEX, &OTHER));
    thread::sleep(std::time::Duration::from_millis(20));
    let two = thread::spawn(move || both(&OTHER, &MUTEX));
    one.join().unwrap();
    two.join().unwrap();
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("race") => race(),
        Some("deadlock") => deadlock(),
        _ => sound(),
    }
    println!("{:?}", NUMBERS.each_ref().map(Guarded::get));
}
