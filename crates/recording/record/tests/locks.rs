//! Whether no synchronisation of Rust's standard library is missed in a real program.
//!
//! A program that shares memory under every kind of synchronisation that the library has is built
//! against it as it comes, with the shims and a small runtime in C that logs. Its events are lifted,
//! and happens-before over them must order every two conflicting accesses: a missed acquire shows as
//! a race. Where the compilers are missing the tests say so and pass.

#![allow(clippy::unwrap_used, reason = "what fails here is the test")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says why")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use reweave_base::FxHashMap;
use reweave_record::locks::LockRecognizer;
use reweave_record::symbols::Symbols;
use reweave_record::toolchain::std_wrappers;
use reweave_runtime::wire::{Event, Kind, flag};

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Logs hooks as lines `kind address code value stored order thread`, each in one step with what it
/// logs.
const RUNTIME: &str = r#"#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define CALLER __builtin_return_address(0)
static FILE *events;
static volatile int gate;
static char *watched, *watched_end;
static int threads = 1;
static __thread int self = 1;
static void enter(void) { while (__atomic_exchange_n(&gate, 1, 2)) __builtin_ia32_pause(); }
static void leave(void) { __atomic_store_n(&gate, 0, 3); }
static void say(const char *kind, void *address, void *code, long value, long stored, int order) {
    if (events) fprintf(events, "%s %lx %lx %lx %lx %d %d\n", kind, (long)address, (long)code, value, stored, order, self);
}
static void tell(const char *kind, void *address, void *code, long value, long stored) {
    enter(); say(kind, address, code, value, stored, 0); leave();
}
void reweave_std_event(unsigned what, void *object, void *code, void *extra) { tell("std", object, code, what, (long)extra); }
void watch(char *start, long length) { watched = start; watched_end = start + length; }
static void plain(const char *kind, char *address, void *code) {
    if (address >= watched && address < watched_end) tell(kind, address, code, 0, 0);
}
void __tsan_init(void) {}
void __tsan_func_entry(void *call) { tell("enter", call, 0, 0, 0); }
void __tsan_func_exit(void) { tell("leave", 0, 0, 0, 0); }
#define PLAIN(n) void __tsan_read##n(char *a) { plain("read", a, CALLER); } void __tsan_write##n(char *a) { plain("write", a, CALLER); } \
    void __tsan_unaligned_read##n(char *a) { plain("read", a, CALLER); } void __tsan_unaligned_write##n(char *a) { plain("write", a, CALLER); }
PLAIN(1) PLAIN(2) PLAIN(4) PLAIN(8) PLAIN(16)
void __tsan_read_range(void *a, long n) {}
void __tsan_write_range(void *a, long n) {}
void __tsan_vptr_update(void **a, void *b) {}
void __tsan_vptr_read(void **a) {}
void *__tsan_memcpy(void *a, const void *b, size_t n) { return memcpy(a, b, n); }
void *__tsan_memmove(void *a, const void *b, size_t n) { return memmove(a, b, n); }
void *__tsan_memset(void *a, int b, size_t n) { return memset(a, b, n); }
#define UPDATE(n, t, name, operation, after) t __tsan_atomic##n##_##name(t *a, t v, int o) { \
    enter(); t r = operation(a, v, 5); say("update", a, CALLER, r, after, o); leave(); return r; }
#define ATOMIC(n, t) t __tsan_atomic##n##_load(t *a, int o) { enter(); t r = __atomic_load_n(a, 5); say("load", a, CALLER, r, 0, o); leave(); return r; } \
    void __tsan_atomic##n##_store(t *a, t v, int o) { enter(); __atomic_store_n(a, v, 5); say("store", a, CALLER, v, 0, o); leave(); } \
    UPDATE(n, t, exchange, __atomic_exchange_n, v) UPDATE(n, t, fetch_add, __atomic_fetch_add, (t)(r + v)) \
    UPDATE(n, t, fetch_sub, __atomic_fetch_sub, (t)(r - v)) UPDATE(n, t, fetch_and, __atomic_fetch_and, r & v) \
    UPDATE(n, t, fetch_or, __atomic_fetch_or, r | v) UPDATE(n, t, fetch_xor, __atomic_fetch_xor, r ^ v) \
    t __tsan_atomic##n##_compare_exchange_val(t *a, t c, t v, int o, int f) { enter(); t e = c; \
        int done = __atomic_compare_exchange_n(a, &e, v, 0, 5, 5); \
        say(done ? "update" : "failed", a, CALLER, e, v, done ? o : f); leave(); return e; }
ATOMIC(8, uint8_t) ATOMIC(16, uint16_t) ATOMIC(32, uint32_t) ATOMIC(64, uint64_t)
void __tsan_atomic_thread_fence(int o) { enter(); __atomic_thread_fence(5); say("fence", 0, CALLER, 0, 0, o); leave(); }
void __tsan_atomic_signal_fence(int o) {}
struct start { void *(*run)(void *); void *argument; int number; };
static pthread_t handles[4096];
static void *begin(void *data) { struct start start = *(struct start *)data; free(data); self = start.number; return start.run(start.argument); }
int pthread_create(pthread_t *handle, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    struct start *start = malloc(sizeof *start);
    int number = __atomic_add_fetch(&threads, 1, 5);
    *start = (struct start){run, argument, number};
    tell("fork", (void *)(long)number, CALLER, 0, 0);
    int result = real(handle, attributes, begin, start);
    handles[number] = *handle;
    return result;
}
int pthread_join(pthread_t handle, void **result) {
    int (*real)(pthread_t, void **) = dlsym(RTLD_NEXT, "pthread_join");
    int number = threads;
    while (number > 1 && !pthread_equal(handles[number], handle)) number--;
    int code = real(handle, result);
    tell("join", (void *)(long)number, CALLER, 0, 0);
    return code;
}
static void copy_map(void) {
    FILE *from = fopen("/proc/self/maps", "r"), *to = fopen("maps.txt", "w");
    for (int c; (c = fgetc(from)) != EOF;) fputc(c, to);
    fclose(from); fclose(to);
}
__attribute__((constructor)) static void start(void) { copy_map(); events = fopen("events.txt", "w"); }
__attribute__((destructor)) static void end(void) { enter(); fclose(events); events = 0; leave(); }
"#;

const PROGRAM: &str = r#"use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::*;
use std::thread;
use std::time::Duration;
static mut CELLS: [u64; 64] = [0; 64];
extern "C" { fn watch(start: *mut u8, length: usize); }
fn cell(index: usize) -> *mut u64 { unsafe { (&raw mut CELLS as *mut u64).add(index) } }
fn bump(index: usize) { unsafe { let cell = cell(index); cell.write_volatile(cell.read_volatile() + 1) } }
fn look(index: usize) -> u64 { unsafe { cell(index).read_volatile() } }
fn mutex() {
    let lock = Mutex::new(());
    thread::scope(|scope| for _ in 0..4 { scope.spawn(|| for round in 0..200 {
        if round % 5 == 0 { if let Ok(_guard) = lock.try_lock() { bump(0); } }
        let _guard = lock.lock().unwrap();
        bump(0);
        if round % 50 == 0 { thread::sleep(Duration::from_micros(300)); }
    }); });
}
fn rwlock() {
    let lock = RwLock::new(());
    thread::scope(|scope| for thread in 0..4 { let lock = &lock; scope.spawn(move || for round in 0..100 {
        match (round + thread) % 4 {
            0 => { let _guard = lock.write().unwrap(); bump(1); if round % 20 == 0 { thread::sleep(Duration::from_micros(300)); } }
            1 => { let guard = lock.write().unwrap(); bump(1); let _guard = RwLockWriteGuard::downgrade(guard); look(1); }
            2 => { let _guard = lock.read().unwrap(); look(1); if round % 20 == 2 { thread::sleep(Duration::from_micros(300)); } }
            _ => { if let Ok(_guard) = lock.try_read() { look(1); } if let Ok(_guard) = lock.try_write() { bump(1); } }
        }
    }); });
}
fn condition() {
    let (lock, condition) = (Mutex::new(0), Condvar::new());
    thread::scope(|scope| {
        scope.spawn(|| for _ in 0..20 {
            bump(2);
            *lock.lock().unwrap() += 1;
            condition.notify_one();
            let mut turn = lock.lock().unwrap();
            while *turn % 2 == 1 { turn = condition.wait(turn).unwrap(); }
        });
        for _ in 0..20 {
            let mut turn = lock.lock().unwrap();
            while *turn % 2 == 0 { turn = condition.wait_timeout(turn, Duration::from_micros(200)).unwrap().0; }
            bump(2);
            *turn += 1;
            drop(turn);
            condition.notify_all();
        }
    });
}
static ONCE: Once = Once::new();
static CELL: OnceLock<u32> = OnceLock::new();
static PANICS: OnceLock<u32> = OnceLock::new();
static LAZY: LazyLock<u32> = LazyLock::new(|| { thread::sleep(Duration::from_millis(2)); bump(5); 1 });
fn once() {
    thread::scope(|scope| for _ in 0..4 { scope.spawn(|| {
        ONCE.call_once(|| { thread::sleep(Duration::from_millis(2)); bump(3); });
        look(3);
        CELL.get_or_init(|| { thread::sleep(Duration::from_millis(2)); bump(4); 1 });
        look(4);
        let _ = *LAZY;
        look(5);
    }); scope.spawn(|| { ONCE.wait(); look(3); while CELL.get().is_none() { thread::yield_now(); } look(4); }); });
    let go = AtomicU32::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let run = std::panic::catch_unwind(|| PANICS.get_or_init(|| { bump(6); panic!("as it should") }));
            assert!(run.is_err());
            go.store(1, Relaxed);
        });
        while go.load(Relaxed) == 0 { thread::yield_now(); }
        PANICS.get_or_init(|| { bump(6); 1 });
    });
}
fn parking() {
    thread::scope(|scope| for timed in [false, true] {
        let index = 7 + timed as usize;
        let parked = scope.spawn(move || { if timed { thread::park_timeout(Duration::from_secs(100)) } else { thread::park() } bump(index); });
        bump(index);
        if timed { thread::sleep(Duration::from_millis(2)); }
        parked.thread().unpark();
    });
}
fn scopes() {
    for _ in 0..20 {
        thread::scope(|scope| for index in 9..12 { scope.spawn(move || bump(index)); });
        (9..12).for_each(bump);
    }
}
fn barrier() {
    let barrier = Barrier::new(3);
    thread::scope(|scope| for thread in 0..3 { let barrier = &barrier; scope.spawn(move || for round in 0..30 {
        if round % 3 == thread { bump(12); }
        barrier.wait();
    }); });
}
fn channels() {
    let (unbounded, first) = mpsc::channel();
    let (bounded, second) = mpsc::sync_channel(1);
    let (direct, third) = mpsc::sync_channel(0);
    thread::scope(|scope| {
        scope.spawn(move || for index in 0..10 { bump(13 + index); unbounded.send(index).unwrap(); if index % 3 == 0 { thread::sleep(Duration::from_micros(200)); } });
        scope.spawn(move || for index in 0..10 { bump(23 + index); bounded.send(index).unwrap(); });
        scope.spawn(move || for index in 0..10 { bump(33 + index); direct.send(index).unwrap(); });
        for index in first { bump(13 + index); }
        for index in second { bump(23 + index); thread::sleep(Duration::from_micros(200)); }
        for index in third { bump(33 + index); }
    });
}
fn printing() {
    thread::scope(|scope| for _ in 0..3 { scope.spawn(|| for round in 0..50 { println!("{round}"); }); });
    use std::io::{Read, Write};
    let mut input = String::new();
    std::io::stdin().lock().read_to_string(&mut input).unwrap();
    writeln!(std::io::stdout().lock(), "{input}").unwrap();
}
fn joined() {
    for _ in 0..5 { bump(43); thread::spawn(|| bump(43)).join().unwrap(); bump(43); }
}
fn racy() {
    // Who drops the last handle comes after the other: it is kept until both have happened.
    thread::scope(|scope| { let _handle = scope.spawn(|| bump(63)); bump(63); });
}
fn main() {
    unsafe { watch(cell(0) as *mut u8, 64 * 8) };
    println!("{}", &raw const CELLS as usize);
    for topic in [mutex, rwlock, condition, once, parking, scopes, barrier, channels, printing, joined] { topic(); }
    if std::env::args().count() > 1 { racy(); }
}
"#;

/// A built program; none, with a word why, where it cannot be built.
fn build(folder: &Path, level: &str) -> Option<PathBuf> {
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).env("RUSTC_BOOTSTRAP", "1");
        let output = command.output().ok();
        let output = output.filter(|output| output.status.success() || !output.stderr.is_empty());
        match output {
            Some(output) if output.status.success() => Some(output.stdout),
            Some(output) => {
                println!("skipped: {program}: {}", String::from_utf8_lossy(&output.stderr));
                None
            }
            None => {
                println!("skipped: no {program} on this machine");
                None
            }
        }
    };
    fs::write(folder.join("runtime.c"), RUNTIME).unwrap();
    fs::write(folder.join("main.rs"), PROGRAM).unwrap();
    let sysroot = String::from_utf8(run("rustc", &["--print", "sysroot"])?).unwrap();
    let library = std_wrappers::find_library(Path::new(sysroot.trim()), TARGET)?;
    let symbols = std_wrappers::library_symbols(&library).unwrap();
    let shims = std_wrappers::for_symbols(symbols.iter().map(String::as_str));
    if !shims.missing.is_empty() {
        println!("skipped: a standard library of another version: no {:?}", shims.missing);
        return None;
    }
    fs::write(folder.join("shims.s"), &shims.assembly).unwrap();
    run("cc", &["-c", "shims.s"])?;
    run("cc", &["-O1", "-w", "-shared", "-fPIC", "runtime.c", "-o", "libruntime.so", "-ldl"])?;
    let here = folder.display();
    let wraps = shims.wraps.iter().map(|name| format!("-Clink-arg=-Wl,--wrap={name}"));
    let mut arguments = vec![
        "-g".to_owned(),
        "--edition=2021".to_owned(),
        format!("-Copt-level={level}"),
        "-Zsanitizer=thread".to_owned(),
        "-Zexternal-clangrt".to_owned(),
        "-Cunsafe-allow-abi-mismatch=sanitizer".to_owned(),
        format!("--target={TARGET}"),
        format!("-Zpre-link-args=-L{here}"),
        format!("-Zpre-link-args=-Wl,--no-as-needed,-lruntime,-rpath,{here}"),
        format!("-Zpre-link-args={here}/shims.o"),
    ];
    arguments.extend(wraps);
    arguments.extend(std_wrappers::LINK_ARGUMENTS.map(str::to_owned));
    arguments.extend(["main.rs", "-o", "program"].map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run("rustc", &arguments)?;
    Some(folder.join("program"))
}

/// The event that a runtime logs for a line.
fn parse(line: &str) -> (u32, Event) {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |place: usize| u64::from_str_radix(words[place], 16).unwrap();
    let (address, code, value, stored) = (number(1), number(2), number(3), number(4));
    let thread = words[6].parse().unwrap();
    let event = |kind| Event::new(kind, address, code);
    let atomic = |kind| Event {
        order: words[5].parse().unwrap(),
        value: Some(value),
        extra: (kind == Kind::AtomicUpdate).then_some(stored),
        ..event(kind)
    };
    let event = match words[0] {
        "enter" => event(Kind::Enter),
        "leave" => event(Kind::Leave),
        "read" => event(Kind::Read),
        "write" => event(Kind::Write),
        "fork" => event(Kind::Fork),
        "join" => event(Kind::Join),
        "fence" => atomic(Kind::Fence),
        "load" => atomic(Kind::AtomicLoad),
        "store" => atomic(Kind::AtomicStore),
        "update" => atomic(Kind::AtomicUpdate),
        "failed" => atomic(Kind::AtomicFailed),
        "std" => of_shim(value as u32, address, code, stored),
        _ => panic!("{line}"),
    };
    (thread, event)
}

/// What the runtime logs when a shim calls it.
fn of_shim(what: u32, address: u64, code: u64, extra: u64) -> Event {
    let logged = std_wrappers::what::logged(what).unwrap();
    let extra = logged.has_extra.then_some(extra);
    Event {
        order: logged.order,
        flags: logged.flags,
        extra,
        ..Event::new(logged.kind, address, code)
    }
}

type Clock = FxHashMap<u32, u64>;

fn join(into: &mut Clock, from: &Clock) {
    for (thread, time) in from {
        let known = into.entry(*thread).or_default();
        *known = (*known).max(*time);
    }
}

/// Happens-before by vector clocks, as the definition has it, with the holders of locks.
#[derive(Default)]
struct Order {
    threads: FxHashMap<u32, Clock>,
    /// Of atomic places, and of locks: what was released.
    released: FxHashMap<(bool, u64), Clock>,
    /// Of threads: what a fence makes them acquire, and what a fence made ready for release.
    seen: FxHashMap<u32, Clock>,
    fenced: FxHashMap<u32, Clock>,
    accesses: FxHashMap<u64, Vec<(u32, u64, bool)>>,
    holders: FxHashMap<u64, Vec<(u32, bool)>>,
    racy: BTreeSet<u64>,
    counts: FxHashMap<&'static str, usize>,
}

impl Order {
    fn acquire(&mut self, thread: u32, place: (bool, u64)) {
        let released = self.released.entry(place).or_default();
        join(self.threads.entry(thread).or_default(), released);
    }

    fn release(&mut self, thread: u32, place: (bool, u64)) {
        let clock = self.threads.entry(thread).or_default();
        join(self.released.entry(place).or_default(), clock);
        *clock.entry(thread).or_default() += 1;
    }

    fn take(&mut self, thread: u32, lock: u64, is_shared: bool) {
        let held = self.holders.entry(lock).or_default();
        assert!(held.iter().all(|(_, other)| *other && is_shared), "{lock:x}: {thread} {held:?}");
        held.push((thread, is_shared));
        *self.counts.entry("taken").or_default() += 1;
        self.acquire(thread, (false, lock));
    }

    fn give(&mut self, thread: u32, lock: u64, is_shared: bool) {
        let held = self.holders.entry(lock).or_default();
        let place = held.iter().position(|hold| *hold == (thread, is_shared));
        held.remove(place.expect("who gives back holds"));
        self.release(thread, (false, lock));
    }

    fn access(&mut self, thread: u32, event: &Event) {
        let is_write = event.kind == Kind::Write;
        let clock = self.threads.entry(thread).or_default();
        let now = *clock.entry(thread).or_insert(1);
        let before = self.accesses.entry(event.address).or_default();
        let is_racy = before.iter().any(|(other, time, other_writes)| {
            (is_write || *other_writes) && clock.get(other).is_none_or(|known| known < time)
        });
        before.push((thread, now, is_write));
        before.dedup();
        if is_racy {
            self.racy.insert(event.address);
        }
    }

    fn atomic(&mut self, thread: u32, event: &Event) {
        let place = (true, event.address);
        if event.kind != Kind::AtomicStore && matches!(event.order, 1 | 2 | 4 | 5) {
            self.acquire(thread, place);
        }
        if event.kind == Kind::AtomicStore {
            self.released.remove(&place);
        } else if let Some(released) = self.released.get(&place) {
            join(self.seen.entry(thread).or_default(), released);
        }
        let writes = matches!(event.kind, Kind::AtomicStore | Kind::AtomicUpdate);
        if writes && matches!(event.order, 3..=5) {
            self.release(thread, place);
        } else if writes && let Some(fenced) = self.fenced.get(&thread) {
            join(self.released.entry(place).or_default(), fenced);
        }
    }

    fn step(&mut self, thread: u32, event: &Event) {
        self.threads.entry(thread).or_default().entry(thread).or_insert(1);
        let (address, is_shared) = (event.address, event.flags & flag::SHARED != 0);
        match event.kind {
            Kind::Read | Kind::Write => self.access(thread, event),
            Kind::AtomicLoad | Kind::AtomicStore | Kind::AtomicUpdate | Kind::AtomicFailed => {
                self.atomic(thread, event);
            }
            Kind::Fence => {
                let clock = self.threads.entry(thread).or_default();
                join(clock, self.seen.entry(thread).or_default());
                self.fenced.insert(thread, clock.clone());
                *clock.entry(thread).or_default() += 1;
            }
            Kind::Lock => self.take(thread, address, is_shared),
            Kind::Unlock => self.give(thread, address, is_shared),
            Kind::Wait => self.give(thread, event.extra.unwrap(), false),
            Kind::Wake => self.take(thread, event.extra.unwrap(), false),
            Kind::Fork => {
                let clock = self.threads[&thread].clone();
                join(self.threads.entry(address as u32).or_default(), &clock);
                *self.threads.entry(thread).or_default().entry(thread).or_default() += 1;
            }
            Kind::Join => {
                let clock = self.threads.entry(address as u32).or_default().clone();
                join(self.threads.entry(thread).or_default(), &clock);
            }
            _ => {}
        }
    }
}

/// Runs the program and says which cells are raced for, and how many locks were taken.
fn races(program: &Path, arguments: &[&str]) -> (Vec<u64>, usize, usize) {
    let folder = program.parent().unwrap();
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(std::process::Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let cells: u64 = text.lines().next().unwrap().parse().unwrap();
    let mut symbols = Symbols::new(folder);
    symbols.add_map(0, &fs::read_to_string(folder.join("maps.txt")).unwrap());
    let (mut recognizer, mut order) = (LockRecognizer::default(), Order::default());
    let mut contended = 0;
    for line in fs::read_to_string(folder.join("events.txt")).unwrap().lines() {
        let (thread, event) = parse(line);
        contended += usize::from(event.kind == Kind::Lock);
        let mut made_up = 0;
        recognizer.rewrite(&mut symbols, thread, event, &mut |thread, lifted: Event| {
            let is_own = lifted.code == event.code || lifted.kind == Kind::Lock;
            made_up += usize::from(!is_own && lifted.kind == Kind::Unlock);
            order.step(thread, &lifted);
        });
        assert_eq!(made_up, 0, "a lock was given back unseen before {line}");
    }
    let racy = order.racy.iter().map(|address| (address - cells) / 8).collect();
    (racy, order.counts["taken"], contended)
}

#[track_caller]
fn check(level: &str) {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build(folder.path(), level) else { return };
    for _ in 0..3 {
        let (racy, taken, contended) = races(&program, &[]);
        println!("level {level}: {taken} locks taken, {contended} of them slowly");
        assert_eq!(racy, [0; 0]);
        assert!(taken > 1000 && contended > 0);
    }
    assert_eq!(races(&program, &["racy"]).0, [63]);
}

#[test]
fn no_synchronisation_is_missed_in_debug_builds() {
    check("0");
}

#[test]
fn no_synchronisation_is_missed_in_release_builds() {
    check("3");
}
