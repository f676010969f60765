//! What fuzz targets and the test of their old finds check.
//!
//! Whatever the bytes: no panic, no hang, memory bounded by them; a refusal says where; and what
//! is read and can be written in a format reads back the same.
#![allow(unreachable_pub, reason = "fuzz targets use these too")]

use reweave_format::{Format, ReadOptions, Reading, read_from, write_to};
use reweave_trace::{Trace, certify_order};

const FORMATS: [Format; 4] = [Format::Std, Format::Columns, Format::JsonLines, Format::Rwt];

/// Reads `bytes` as they are and with repair, and checks what comes of it.
pub fn check_bytes(bytes: &[u8]) {
    let plain = read(bytes, false);
    let repaired = read(bytes, true);
    if let Some(reading) = &plain {
        assert!(reading.trace.repairs().is_empty());
        let repaired = repaired.as_ref().expect("what reads plainly reads with repair too");
        if repaired.trace.repairs().is_empty() {
            assert!(repaired.trace == reading.trace);
        }
    }
    for reading in [plain, repaired].into_iter().flatten() {
        check_trace(&reading.trace);
    }
}

fn read(bytes: &[u8], repair: bool) -> Option<Reading> {
    match read_from(bytes, "fuzz", &ReadOptions { repair, go_on: None }) {
        Ok(reading) => Some(reading),
        Err(error) => {
            assert!(error.to_string().starts_with("fuzz: "), "{error}");
            None
        }
    }
}

/// Checks that `trace` survives every format that can carry it, and that it happened.
pub fn check_trace(trace: &Trace) {
    for format in FORMATS {
        let mut written = Vec::new();
        if write_to(trace, &mut written, format).is_err() {
            continue;
        }
        let back = read_from(&written[..], "fuzz", &ReadOptions::default());
        let back = back.unwrap_or_else(|error| panic!("{format:?}: {error}"));
        // A text file without events does not say which format it is in.
        assert!(back.format == format || trace.is_empty());
        let mut again = Vec::new();
        write_to(&back.trace, &mut again, format).expect("what was read can be written");
        assert!(written == again, "{format:?} changes what it writes");
        if format == Format::Rwt || format == Format::JsonLines {
            assert!(back.trace.columns().len() == trace.columns().len());
        }
        if format == Format::Rwt {
            assert!(&back.trace == trace, "{format:?} loses something");
        }
    }
    if trace.len() <= 4096 {
        let observed: Vec<_> = trace.events().map(|(id, _)| id).collect();
        certify_order(trace, &observed).expect("what was observed can happen");
        exercise_views(trace);
    }
}

fn exercise_views(trace: &Trace) {
    for (id, event) in trace.events() {
        let row = trace.thread_events(event.thread);
        assert_eq!(row[trace.position(id) as usize], id);
        assert!(trace.writer(id).is_none_or(|write| write < id));
        assert!(trace.sections().held(event.thread, id).all(|section| section.acquire < id));
    }
    let signals = trace.signals();
    assert!(signals.wait_intervals().iter().all(|interval| interval.begin <= interval.wait));
}
