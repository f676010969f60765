//! Shares memory under every kind of synchronisation of the standard library, and without a race.

use std::cell::{Cell, UnsafeCell};
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{
    Arc, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, RwLockWriteGuard, mpsc,
};
use std::thread;
use std::time::Duration;

/// A number that whoever synchronises may change.
struct Shared(UnsafeCell<u64>);

unsafe impl Sync for Shared {}

impl Shared {
    const fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn add(&self, more: u64) {
        unsafe { *self.0.get() += more }
    }

    fn get(&self) -> u64 {
        unsafe { *self.0.get() }
    }
}

/// Long enough for others to come and wait.
fn linger() {
    thread::sleep(Duration::from_micros(300));
}

fn mutex() -> u64 {
    let (lock, shared) = (Mutex::new(()), Shared::new());
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..6 {
                    if let Ok(_guard) = lock.try_lock() {
                        shared.add(0);
                    }
                    let _guard = lock.lock().unwrap();
                    shared.add(1);
                    if round % 3 == 0 {
                        linger();
                    }
                }
            });
        }
    });
    shared.get()
}

/// Who had to try more than once comes after who had the lock then.
fn tried() -> u64 {
    let (lock, shared) = (Mutex::new(()), Shared::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let _guard = lock.lock().unwrap();
            linger();
            shared.add(1);
            linger();
        });
        linger();
        let mut failures = 0;
        while lock.try_lock().is_err() {
            failures += 1;
            thread::yield_now();
        }
        if failures > 0 {
            shared.add(1);
        }
    });
    shared.get().min(1)
}

fn poisoned() -> u64 {
    let lock = Arc::new(Mutex::new(0));
    let other = Arc::clone(&lock);
    let ended = thread::spawn(move || {
        let mut guard = other.lock().unwrap();
        *guard = 5;
        linger();
        panic!("as it should");
    });
    assert!(ended.join().is_err());
    let second = Arc::clone(&lock);
    let third =
        thread::spawn(move || *second.lock().unwrap_or_else(|poison| poison.into_inner()) += 1);
    third.join().unwrap();
    assert!(lock.is_poisoned());
    let value = *lock.lock().unwrap_err().into_inner();
    lock.clear_poison();
    value + *lock.lock().unwrap()
}

fn rwlock() -> u64 {
    let (lock, shared) = (RwLock::new(()), Shared::new());
    thread::scope(|scope| {
        for thread in 0..4 {
            let (lock, shared) = (&lock, &shared);
            scope.spawn(move || {
                for round in 0..8 {
                    match (round + thread) % 4 {
                        0 => {
                            let _guard = lock.write().unwrap();
                            shared.add(1);
                            linger();
                        }
                        1 => {
                            let guard = lock.write().unwrap();
                            shared.add(1);
                            let _guard = RwLockWriteGuard::downgrade(guard);
                            shared.get();
                        }
                        2 => {
                            let _guard = lock.read().unwrap();
                            shared.get();
                            linger();
                        }
                        _ => {
                            if let Ok(_guard) = lock.try_read() {
                                shared.get();
                            }
                            if let Ok(_guard) = lock.try_write() {
                                shared.add(0);
                            }
                        }
                    }
                }
            });
        }
    });
    shared.get()
}

fn condition() -> u64 {
    let (turn, changed, shared) = (Mutex::new(0), Condvar::new(), Shared::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..5 {
                shared.add(1);
                *turn.lock().unwrap() += 1;
                changed.notify_one();
                drop(changed.wait_while(turn.lock().unwrap(), |turn| *turn % 2 == 1).unwrap());
            }
        });
        for _ in 0..5 {
            let mut guard = turn.lock().unwrap();
            while *guard % 2 == 0 {
                let wait = changed.wait_timeout(guard, Duration::from_micros(200));
                guard = wait.unwrap().0;
            }
            shared.add(1);
            *guard += 1;
            drop(guard);
            changed.notify_all();
        }
    });
    shared.get()
}

static ONCE: Once = Once::new();
static CELL: OnceLock<u64> = OnceLock::new();
static PANICS: OnceLock<u64> = OnceLock::new();
static LAZY: LazyLock<u64> = LazyLock::new(|| {
    linger();
    DONE.add(1);
    7
});
static DONE: Shared = Shared::new();
static FIRST: Shared = Shared::new();
static SECOND: Shared = Shared::new();

fn once() -> u64 {
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                ONCE.call_once(|| {
                    linger();
                    FIRST.add(1);
                });
                let init = || {
                    linger();
                    SECOND.add(1);
                    9
                };
                FIRST.get() + *CELL.get_or_init(init) + SECOND.get() + *LAZY + DONE.get()
            });
        }
        scope.spawn(|| {
            ONCE.wait();
            FIRST.get() + *CELL.wait() + SECOND.get()
        });
        scope.spawn(|| {
            let init = || PANICS.get_or_init(|| panic!("as it should"));
            assert!(catch_unwind(AssertUnwindSafe(init)).is_err());
        });
    });
    *PANICS.get_or_init(|| 11) + DONE.get() + FIRST.get() + SECOND.get()
}

fn channels() -> u64 {
    let (unbounded, first) = mpsc::channel::<Box<u64>>();
    let (bounded, second) = mpsc::sync_channel::<Box<u64>>(2);
    let (direct, third) = mpsc::sync_channel::<Box<u64>>(0);
    let mut sum = 0;
    thread::scope(|scope| {
        for _ in 0..2 {
            let unbounded = unbounded.clone();
            scope.spawn(move || {
                for value in 0..40 {
                    unbounded.send(Box::new(value)).unwrap();
                }
            });
        }
        drop(unbounded);
        for sender in [bounded, direct] {
            scope.spawn(move || {
                for value in 0..8 {
                    sender.send(Box::new(value)).unwrap();
                }
            });
        }
        for receiver in [first, second, third] {
            linger();
            while let Ok(value) = receiver.recv() {
                sum += *value;
            }
        }
    });
    let (sender, receiver) = mpsc::channel::<u64>();
    drop(receiver);
    sum + u64::from(sender.send(1).is_err())
}

fn parking() -> u64 {
    static CELLS: [Shared; 2] = [const { Shared::new() }; 2];
    let go = Arc::new(AtomicBool::new(false));
    for (index, cell) in CELLS.iter().enumerate() {
        let flag = Arc::clone(&go);
        flag.store(false, Ordering::Relaxed);
        let parked = thread::spawn(move || {
            loop {
                match index {
                    0 => thread::park(),
                    _ => thread::park_timeout(Duration::from_secs(100)),
                }
                // The flag orders nothing: what was written before is seen thanks to the token, so
                // it is looked at only after parking.
                if flag.load(Ordering::Relaxed) {
                    break;
                }
            }
            cell.add(1);
        });
        cell.add(1);
        go.store(true, Ordering::Relaxed);
        parked.thread().unpark();
        parked.join().unwrap();
    }
    CELLS.iter().map(Shared::get).sum()
}

fn barrier() -> u64 {
    let (barrier, shared) = (Barrier::new(3), Shared::new());
    let leaders = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..3 {
            let (barrier, shared, leaders) = (&barrier, &shared, &leaders);
            scope.spawn(move || {
                for round in 0..4 {
                    if round % 3 == thread {
                        shared.add(1);
                    }
                    if barrier.wait().is_leader() {
                        leaders.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    shared.get() + leaders.into_inner() as u64
}

fn scopes() -> u64 {
    let mut numbers = [0_u64; 4];
    for _ in 0..3 {
        thread::scope(|scope| {
            for number in &mut numbers {
                scope.spawn(move || *number += 1);
            }
        });
        numbers.iter_mut().for_each(|number| *number += 1);
    }
    let joined = thread::scope(|scope| scope.spawn(|| vec![1, 2, 3]).join().unwrap());
    numbers.iter().sum::<u64>() + joined.len() as u64
}

struct Counted(Arc<Vec<u64>>, &'static Shared);

impl Drop for Counted {
    fn drop(&mut self) {
        // Only the last reference gets here, after all that the others did.
        if Arc::strong_count(&self.0) == 1 {
            self.1.add(self.0.iter().sum());
        }
    }
}

fn references() -> u64 {
    static DROPPED: Shared = Shared::new();
    let shared = Arc::new(Mutex::new(Some(Arc::new(Counted(Arc::new(vec![1, 2]), &DROPPED)))));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let mine = shared.lock().unwrap().clone();
            thread::spawn(move || mine.unwrap().0.len())
        })
        .collect();
    *shared.lock().unwrap() = None;
    let length: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    // Detached: its end is known by the channel alone.
    let (sender, receiver) = mpsc::channel();
    let value = Box::new(5);
    thread::spawn(move || sender.send(value).unwrap());
    *receiver.recv().unwrap() + DROPPED.get() + length as u64
}

thread_local! {
    static OWN: Cell<u64> = const { Cell::new(0) };
    static GIVEN: Given = const { Given(Cell::new(0)) };
}

static GIVEN_BACK: Mutex<u64> = Mutex::new(0);

struct Given(Cell<u64>);

impl Drop for Given {
    fn drop(&mut self) {
        *GIVEN_BACK.lock().unwrap() += self.0.get();
    }
}

fn locals() -> u64 {
    let run = |value: u64| {
        OWN.set(value);
        GIVEN.with(|given| given.0.set(value));
        println!("a thread has {}", OWN.get() - value);
        OWN.get()
    };
    let threads: Vec<_> = (1..4).map(|value| thread::spawn(move || run(value))).collect();
    let sum: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    sum + *GIVEN_BACK.lock().unwrap()
}

/// Under the locks of the standard streams, which the library keeps for itself.
fn streams() -> u64 {
    static CELLS: [Shared; 3] = [const { Shared::new() }; 3];
    let run = |round: u64| {
        let mut output = io::stdout().lock();
        CELLS[0].add(1);
        drop(io::stdout().lock());
        print!("");
        CELLS[0].add(1);
        output.flush().unwrap();
        linger();
        // A guard that is not known as one.
        let mut errors: Box<dyn Write> = Box::new(io::stderr().lock());
        CELLS[1].add(CELLS[0].get());
        errors.write_all(b"").unwrap();
        drop((errors, output));
        if round % 2 == 0 {
            let mut lines = io::stdin().lines();
            CELLS[2].add(1);
            assert!(lines.next().is_none());
        } else {
            let mut input = io::stdin().lock();
            CELLS[2].add(1);
            input.read_line(&mut String::new()).unwrap();
            linger();
            CELLS[2].get();
        }
    };
    thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || (0..3).for_each(|round| run(thread + round)));
        }
        scope.spawn(|| {
            let leave = || {
                let _output = io::stdout().lock();
                CELLS[0].add(1);
                resume_unwind(Box::new(()));
            };
            assert!(catch_unwind(leave).is_err());
        });
    });
    CELLS[0].get() + CELLS[2].get()
}

fn main() -> ExitCode {
    let topics: [(&str, fn() -> u64); 13] = [
        ("mutex", mutex),
        ("tried", tried),
        ("poisoned", poisoned),
        ("rwlock", rwlock),
        ("condition", condition),
        ("once", once),
        ("channels", channels),
        ("parking", parking),
        ("barrier", barrier),
        ("scopes", scopes),
        ("references", references),
        ("locals", locals),
        ("streams", streams),
    ];
    let asked = std::env::args().nth(1);
    for (name, topic) in topics {
        if asked.as_deref().is_none_or(|asked| asked == name) {
            println!("{name} {}", topic());
        }
    }
    ExitCode::from(3)
}
