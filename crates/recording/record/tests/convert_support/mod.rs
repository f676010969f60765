//! What the tests of conversion share: a program whose names are known, and short event makers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test file uses some of these")]

use std::io;

use reweave_record::convert::{Exit, FileSink, Kept, Summary, Symbols, convert};
use reweave_runtime::wire::{Event, Kind};
use reweave_trace::{Trace, TraceBuilder};

pub(crate) type Logged = (u32, Event);

/// Globals from 0x1000 on, 64 bytes each, and code that is called by its address.
#[derive(Default)]
pub(crate) struct Program {
    map: u64,
}

pub(crate) const GLOBALS: [&str; 6] = ["m", "counter", "ready", "b|r", "free slots", ""];

pub(crate) fn global(name: &str) -> u64 {
    let place = GLOBALS.iter().position(|&global| global == name).unwrap();
    0x1000 + 64 * place as u64
}

/// Code in which threads wait for locks of another crate.
pub(crate) const PARKING_QUEUE: u64 = 40;

impl Symbols for Program {
    fn site(&mut self, code: u64, stack: &[u64]) -> String {
        let mut text = format!("a.c:{code}");
        if self.map > 0 {
            text = format!("map{}.c:{code}", self.map);
        }
        for call in stack {
            text.push_str(&format!("\nf (a.c:{call})"));
        }
        text
    }

    fn data(&mut self, address: u64) -> Option<(String, u64)> {
        let offset = address.checked_sub(0x1000)?;
        let name = GLOBALS.get(usize::try_from(offset / 64).ok()?)?;
        Some(((*name).to_owned(), offset % 64))
    }

    fn maps(&mut self, number: u64) {
        self.map = number;
    }

    fn origin(&mut self, code: u64) -> Option<(String, u64)> {
        Some((if code.is_multiple_of(2) { "/bin/a" } else { "/lib/b" }.to_owned(), code))
    }

    fn functions(&mut self, code: u64) -> Vec<String> {
        let is_queue = code == PARKING_QUEUE;
        Vec::from_iter(is_queue.then(|| "parking_lot_core::parking_lot::park".to_owned()))
    }

    fn build_id(&mut self, path: &str) -> String {
        format!("id of {path}")
    }
}

pub(crate) fn open(events: &[Logged]) -> io::Result<std::vec::IntoIter<Logged>> {
    Ok(Vec::from(events).into_iter())
}

/// The trace of `events`, the same whether it went through a file or not.
#[track_caller]
pub(crate) fn converted(events: &[Logged]) -> (Trace, Summary) {
    converted_with(events, Kept::Contended { names: &[] })
}

/// The same, of the accesses that are `kept`.
#[track_caller]
pub(crate) fn converted_with(events: &[Logged], kept: Kept<'_>) -> (Trace, Summary) {
    let mut builder = TraceBuilder::new();
    let summary =
        convert(|| open(events), kept, &Exit::default(), &mut Program::default(), &mut builder)
            .unwrap();
    let trace = builder.finish().unwrap();
    assert_eq!(trace.len() as u64, summary.events);
    let mut sink = FileSink::new(Vec::new()).unwrap();
    let again =
        convert(|| open(events), kept, &Exit::default(), &mut Program::default(), &mut sink)
            .unwrap();
    assert_eq!(again, summary);
    let file = sink.finish().unwrap();
    let read = reweave_format::read_from(&file[..], "a.rwt", &Default::default()).unwrap();
    assert_eq!(read.notes, Vec::<String>::new());
    assert_eq!(read.trace, trace);
    (trace, summary)
}

pub(crate) fn access(kind: Kind, address: u64, value: Option<u64>) -> Event {
    Event { size: 2, value, ..Event::new(kind, address, 7) }
}

pub(crate) fn on(kind: Kind, name: &str) -> Event {
    Event::new(kind, global(name), 9)
}

pub(crate) fn about(kind: Kind, address: u64) -> Event {
    Event::new(kind, address, 3)
}

pub(crate) fn extra(event: Event, extra: u64) -> Event {
    Event { extra: Some(extra), ..event }
}
