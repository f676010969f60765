//! Any events, lifted and converted: the trace is well formed, in memory and in a file.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use reweave_record::convert::{self, Exit, FileSink, Kept, Summary, convert};
use reweave_record::locks::WithLocks;
use reweave_record::symbols::Symbols;
use reweave_record::wire::Kind;
use reweave_trace::TraceBuilder;

use super::events::{self, Logged};
use super::names::file_with;

/// The longest range that an event accesses here: the memory for more is the program's to have.
const RANGE_MAX: u64 = 1 << 12;

/// What the functions of the small object are called.
const FUNCTIONS: [&str; 21] = [
    "main",
    "core::sync::atomic::atomic_swap",
    "std::sys::sync::mutex::futex::Mutex::lock",
    "std::sys::sync::mutex::futex::Mutex::lock_contended",
    "std::sys::sync::mutex::futex::Mutex::try_lock",
    "std::sys::sync::mutex::futex::Mutex::unlock",
    "std::sys::sync::mutex::futex::Mutex::spin",
    "std::sys::sync::rwlock::futex::RwLock::read",
    "std::sys::sync::rwlock::futex::RwLock::read_contended",
    "std::sys::sync::rwlock::futex::RwLock::try_read",
    "std::sys::sync::rwlock::futex::RwLock::write",
    "std::sys::sync::rwlock::futex::RwLock::write_contended",
    "std::sys::sync::rwlock::futex::RwLock::try_write",
    "std::sys::sync::rwlock::futex::RwLock::read_unlock",
    "std::sys::sync::rwlock::futex::RwLock::write_unlock",
    "std::sys::sync::rwlock::futex::RwLock::downgrade",
    "std::sync::poison::condvar::Condvar::wait",
    "std::sys::sync::once::futex::Once::is_completed",
    "std::sys::sync::thread_parking::futex::Parker::unpark",
    "std::sys::pal::unix::futex::futex_wait",
    "std::thread::scoped::scope",
];

/// The file and the address of the first function, and the bytes of each.
const CODE: u64 = 0x1000;
const FUNCTION_BYTES: u64 = 16;

thread_local! {
    static SYMBOLS: Rc<RefCell<Symbols>> = Rc::new(RefCell::new(symbols()));
}

/// The names of a program that has loaded the small object where it says.
fn symbols() -> Symbols {
    let path = file_with("program", &small_object());
    let mut symbols = Symbols::new(Path::new("/nowhere"));
    symbols.add_map(0, &format!("1000-2000 r-xp 00001000 08:01 1 {}\n", path.display()));
    for (place, name) in (0..).zip(FUNCTIONS) {
        let call = CODE + FUNCTION_BYTES * place + 8;
        assert_eq!(symbols.frames(call)[0].function, name, "the small object is understood");
    }
    symbols
}

/// An executable with nothing but a table of functions.
fn small_object() -> Vec<u8> {
    let words = |numbers: &[u64]| -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    };
    let mut names = vec![0];
    let mut table = vec![0; 24];
    for (place, name) in (0..).zip(FUNCTIONS) {
        // The name, a global function, in the section of code, where, how long.
        table.extend((names.len() as u32).to_le_bytes());
        table.extend([0x12, 0, 1, 0]);
        table.extend(words(&[CODE + FUNCTION_BYTES * place, FUNCTION_BYTES]));
        names.extend(name.as_bytes());
        names.push(0);
    }
    let (table_at, names_at) = (0x200, 0x200 + table.len() as u64);
    let section = |kind: u64, flags: u64, address: u64, at: u64, size: u64, last: [u64; 3]| {
        let [link, align, entry] = last;
        words(&[kind << 32, flags, address, at, size, 1 << 32 | link, align, entry])
    };
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // An executable for x86-64: one segment, then four sections, none of which has a name.
    file.extend(words(&[2 | 62 << 16 | 1 << 32, CODE, 64, 128, 64 << 32 | 56 << 48]));
    file.extend(words(&[1 | 64 << 16 | 4 << 32 | 3 << 48]));
    file.resize(64, 0);
    file.extend(words(&[1 | 5 << 32, CODE, CODE, CODE, 0x1000, 0x1000, 0x1000]));
    file.resize(128, 0);
    file.extend([0; 64]);
    file.extend(section(1, 6, CODE, CODE, 0x1000, [0, 16, 0]));
    file.extend(section(2, 0, 0, table_at, table.len() as u64, [3, 8, 24]));
    file.extend(section(3, 0, 0, names_at, names.len() as u64, [0, 1, 0]));
    file.resize(table_at as usize, 0);
    file.extend(table);
    file.extend(names);
    file.resize(0x2000, 0);
    file
}

/// Lifts and converts the events that `bytes` stand for.
pub fn check_conversion(bytes: &[u8]) {
    let mut events = events::from_bytes(bytes);
    for (_, event) in &mut events {
        if matches!(event.kind, Kind::ReadRange | Kind::WriteRange) {
            event.extra = event.extra.map(|length| length.min(RANGE_MAX));
        }
    }
    for kept in [Kept::Contended { names: &[] }, Kept::All] {
        let mut builder = TraceBuilder::new();
        let summary = converted(&events, kept, &mut builder);
        let trace = builder.finish().expect("the trace of a recording is well formed");
        assert_eq!(trace.len() as u64, summary.events);
        let mut sink = FileSink::new(Vec::new()).expect("a vector takes what is written to it");
        assert_eq!(converted(&events, kept, &mut sink), summary);
        let file = sink.finish().expect("a vector takes what is written to it");
        let read = reweave_format::read_from(&file[..], "a.rwt", &Default::default());
        assert_eq!(read.expect("what was written can be read").trace, trace);
    }
}

fn converted(events: &[Logged], kept: Kept<'_>, sink: &mut dyn convert::Sink) -> Summary {
    let symbols = SYMBOLS.with(Rc::clone);
    let open = || {
        symbols.borrow_mut().select(0);
        Ok(WithLocks::new(Vec::from(events).into_iter(), Rc::clone(&symbols)))
    };
    let mut names = Rc::clone(&symbols);
    convert(open, kept, &Exit::default(), &mut names, sink).expect("events in memory can be read")
}
