//! The binary format: what is written reads back, and damage is found wherever it is.
#![allow(clippy::unwrap_used, reason = "these functions are tests too")]

use std::io::Read;

use expect_test::{Expect, expect};
use reweave_base::{Id, Rng};
use reweave_format::{Format, ReadError, ReadOptions, Reading, read_from, rwt, write_to};
use reweave_trace::{MemoryOrder, Op, SemaphoreId, Trace, TraceBuilder};

fn small() -> Trace {
    let mut builder = TraceBuilder::new();
    let [t1, t2] = ["T1", "T2"].map(|name| builder.thread(name));
    let (x, m) = (builder.var("x"), builder.lock("m"));
    let semaphore = builder.names().semaphores.intern("s");
    builder.declare_start(semaphore, 3);
    let site = builder.site("bank.c:14");
    let deep = builder.names().site("bank.c:20", ["main.c:3", "start.c:1"]);
    builder.push(t1, Op::Acquire(m), site);
    builder.push(t1, Op::Write(x), deep);
    builder.value(-7);
    builder.push(t1, Op::Release(m), site);
    builder.push(t2, Op::AtomicRead(x, MemoryOrder::Acquire), site);
    builder.push(t2, Op::Take(semaphore), deep);
    builder.finish().unwrap()
}

/// A trace of several blocks, most of whose names are used once.
fn large() -> Trace {
    let mut builder = TraceBuilder::new();
    let mut rng = Rng::new(7);
    for number in 0..150_000_u32 {
        let thread = builder.thread(&format!("T{}", rng.below(5)));
        let var = builder.var(&format!("v{}", rng.below(90_000)));
        let site = builder.site(&format!("{}.c", rng.below(500)));
        builder.push(thread, if number % 3 == 0 { Op::Write(var) } else { Op::Read(var) }, site);
    }
    builder.finish().unwrap()
}

fn written(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_to(trace, &mut bytes, Format::Rwt).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<Reading, ReadError> {
    read_from(bytes, "a.rwt", &ReadOptions::default())
}

fn repaired(bytes: &[u8]) -> Result<Reading, ReadError> {
    read_from(bytes, "a.rwt", &ReadOptions { repair: true, go_on: None })
}

#[track_caller]
fn check_error(bytes: &[u8], expected: Expect) {
    expected.assert_eq(&read(bytes).unwrap_err().to_string());
}

#[test]
fn what_is_written_reads_back_the_same() {
    for trace in [small(), large(), TraceBuilder::new().finish().unwrap()] {
        let reading = read(&written(&trace)).unwrap();
        assert!(reading.trace == trace);
        assert_eq!(reading.format, Format::Rwt);
    }
}

#[test]
fn names_that_no_event_uses_are_kept() {
    let mut builder = TraceBuilder::new();
    builder.lock("never taken");
    let trace = builder.finish().unwrap();
    assert!(read(&written(&trace)).unwrap().trace == trace);
}

#[test]
fn the_same_trace_gives_the_same_bytes() {
    assert_eq!(written(&large()), written(&large()));
}

#[test]
fn a_file_cut_at_any_byte_is_refused_and_repaired_to_whole_blocks() {
    let trace = small();
    let bytes = written(&trace);
    for length in 1..bytes.len() {
        let error = read(&bytes[..length]).unwrap_err().to_string();
        assert!(error.starts_with("a.rwt: byte "), "cut at {length}: {error}");
        // There is one block: either it is whole or nothing can be kept.
        match repaired(&bytes[..length]) {
            Ok(kept) => {
                assert_eq!(kept.trace.len(), trace.len(), "cut at {length}");
                assert_eq!((kept.notes.len(), kept.trace.repairs().len()), (1, 1));
            }
            Err(error) => assert!(!error.to_string().contains("--repair"), "{error}"),
        }
    }
}

#[test]
fn a_large_file_cut_off_keeps_every_whole_block() {
    let trace = large();
    let bytes = written(&trace);
    let kept = repaired(&bytes[..bytes.len() - 30]).unwrap().trace;
    assert_eq!(kept.len(), 2 * rwt::BLOCK_EVENTS_MAX);
    for (id, event) in kept.events() {
        assert_eq!(trace.event(id), event);
    }
}

#[test]
fn no_flipped_bit_goes_unnoticed() {
    let bytes = written(&small());
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << bit;
            assert!(read(&damaged).is_err(), "bit {bit} of byte {place}");
            if let Ok(kept) = repaired(&damaged) {
                assert_eq!(kept.trace.repairs().len(), 1, "bit {bit} of byte {place}");
            }
        }
    }
}

#[test]
fn errors_name_the_byte_and_the_reason() {
    let bytes = written(&small());
    let mut damaged = bytes.clone();
    damaged[40] ^= 1;
    check_error(
        &damaged,
        expect!["a.rwt: byte 12: the checksum of a frame does not match: it was damaged"],
    );
    check_error(
        &bytes[..bytes.len() - 3],
        expect![
            "a.rwt: byte 210: the file is cut off within a frame; 5 events before it are whole: `--repair` keeps them"
        ],
    );
    check_error(
        &bytes[..bytes.len() - 29],
        expect![
            "a.rwt: byte 184: the file ends without the mark of its end; 5 events before it are whole: `--repair` keeps them"
        ],
    );
    check_error(
        &[&bytes[..], b"more"].concat(),
        expect![
            "a.rwt: byte 213: there are bytes after the end of the trace; 5 events before it are whole: `--repair` keeps them"
        ],
    );
    let mut newer = bytes;
    newer[8] = 9;
    check_error(
        &newer,
        expect![
            "a.rwt: byte 8: not a trace in a known format: `.rwt` of version 9, where this reads version 1"
        ],
    );
}

#[test]
fn numbers_in_the_file_buy_no_memory() {
    // A block that claims four thousand million events, and an end that claims 2^60.
    let block = [&[0][..], &u32::MAX.to_le_bytes()].concat();
    let end = [&[1][..], &(1_u64 << 60).to_le_bytes(), &1_u64.to_le_bytes()].concat();
    let framed = |payload: &[u8]| {
        rwt::framed(&[&(payload.len() as u16).to_le_bytes()[..], payload].concat())
    };
    check_error(
        &framed(&block),
        expect!["a.rwt: byte 12: a block of 4294967295 events, more than 65536"],
    );
    check_error(
        &framed(&end),
        expect!["a.rwt: byte 12: the mark of the end speaks of another trace than these 0 events"],
    );
}

#[test]
fn a_frame_that_claims_much_is_read_only_as_far_as_it_goes() {
    let head = [1, 0, 0, 0, 16];
    let file = [&rwt::framed(&[])[..12], &head, b"little"].concat();
    check_error(&file, expect!["a.rwt: byte 23: the file is cut off within a frame"]);
}

#[test]
fn reading_stops_when_told() {
    let bytes = written(&large());
    let stop = |_| false;
    let options = ReadOptions { repair: true, go_on: Some(&stop) };
    let error = read_from(&bytes[..], "a.rwt", &options).unwrap_err();
    assert_eq!(error.to_string(), "a.rwt: interrupted");
}

#[test]
fn declared_numbers_are_carried() {
    let trace = read(&written(&small())).unwrap().trace;
    assert_eq!(trace.declared().start(SemaphoreId::from_index(0)), Some(3));
}

#[test]
fn a_reader_that_fails_is_an_error() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is on fire"))
        }
    }
    let bytes = written(&small());
    let error = read_from(bytes[..50].chain(Failing), "a.rwt", &ReadOptions::default());
    assert!(error.unwrap_err().to_string().contains("the disk is on fire"));
}

/// A frame's payload as `rwt::framed` takes it: two bytes of length, a zero byte for a block.
fn block(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() + 1) as u16;
    [&length.to_le_bytes()[..], &[0], payload].concat()
}

/// A section of a block, stored as it is.
fn section(tag: u8, form: u8, body: &[u8]) -> Vec<u8> {
    [&[tag, form][..], &(body.len() as u32).to_le_bytes(), body].concat()
}

/// A block of no events that names the thread `name`.
fn naming(name: &str) -> Vec<u8> {
    [&0_u32.to_le_bytes()[..], &section(1, 0, &[&[1, name.len() as u8], name.as_bytes()].concat())]
        .concat()
}

fn end(blocks_count: u64) -> Vec<u8> {
    let payload = [&[1][..], &0_u64.to_le_bytes(), &blocks_count.to_le_bytes()].concat();
    [&(payload.len() as u16).to_le_bytes()[..], &payload].concat()
}

#[test]
fn sections_that_a_reader_can_do_without_are_skipped() {
    let payload = [naming("T1"), section(200, 7, b"whatever"), section(200, 0, b"")].concat();
    let trace = read(&rwt::framed(&[block(&payload), end(1)].concat())).unwrap().trace;
    assert_eq!(trace.names().threads.len(), 1);
    let unknown = [naming("T1"), section(99, 0, b"")].concat();
    check_error(
        &rwt::framed(&[block(&unknown), end(1)].concat()),
        expect!["a.rwt: byte 12: a section of unknown kind 99"],
    );
}

#[test]
fn names_of_a_block_that_is_not_kept_are_not_kept() {
    let whole = written(&small());
    // The same file with another block in place of its end.
    let bad = [naming("T9"), section(99, 0, b"")].concat();
    let framed = rwt::framed(&block(&bad));
    let file = [&whole[..whole.len() - 29], &framed[12..]].concat();
    let kept = repaired(&file).unwrap().trace;
    assert_eq!(kept.names().threads.get("T9"), None);
    assert!(kept == small());
}

#[test]
fn many_long_names_take_blocks_of_their_own() {
    let mut builder = TraceBuilder::new();
    let (thread, var) = (builder.thread("T1"), builder.var("x"));
    for number in 0..8 {
        builder.site(&format!("{number}{}", "long".repeat(400_000)));
    }
    let last = builder.site("last");
    builder.push(thread, Op::Write(var), last);
    let trace = builder.finish().unwrap();
    assert!(read(&written(&trace)).unwrap().trace == trace);
}
