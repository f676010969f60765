//! The binary format: what is written reads back, and damage is found wherever it is.
#![allow(clippy::unwrap_used, reason = "these functions are tests too")]

use std::io::Read;

use expect_test::{Expect, expect};
use reweave_base::{Id, Rng};
use reweave_format::{Format, ReadError, ReadOptions, Reading, read_from, rwt, write_to};
use reweave_trace::{
    AccessOp, Code, CodeId, EndKind, EventId, LockOp, MemoryOrder, Misuse, MisuseKind, Module, Op,
    Origin, Origins, RunEnd, RunStart, SemaphoreId, SemaphoreOp, ThreadEnd, Trace, TraceBuilder,
};

fn small() -> Trace {
    let mut builder = TraceBuilder::new();
    let [t1, t2] = ["T1", "T2"].map(|name| builder.thread(name));
    let (x, m) = (builder.var("x"), builder.lock("m"));
    let semaphore = builder.names().semaphores.intern("s");
    builder.declare_start(semaphore, 3);
    let site = builder.site("bank.c:14");
    let deep = builder.names().site("bank.c:20", ["main.c:3", "start.c:1"]);
    builder.push(t1, Op::Lock(LockOp::Acquire, m), site);
    builder.push(t1, Op::Access(AccessOp::Write, x), deep);
    builder.value(-7);
    builder.push(t1, Op::Lock(LockOp::Release, m), site);
    builder.push(t2, Op::Access(AccessOp::AtomicRead(MemoryOrder::Acquire), x), site);
    builder.push(t2, Op::Semaphore(SemaphoreOp::Take, semaphore), deep);
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
        builder.push(
            thread,
            if number % 3 == 0 {
                Op::Access(AccessOp::Write, var)
            } else {
                Op::Access(AccessOp::Read, var)
            },
            site,
        );
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

/// A trace that says how each of its runs ended, one of a kind, and what a variable held at the start.
fn ended(kind: EndKind) -> Trace {
    let mut builder = TraceBuilder::new();
    let (thread, site) = (builder.thread("T1"), builder.site("bank.c:14"));
    let [x, y] = ["x", "y"].map(|name| builder.var(name));
    builder.push(thread, Op::Access(AccessOp::Write, x), site);
    builder.push(thread, Op::Access(AccessOp::Write, y), site);
    builder.declare_initial(y, -3);
    let threads = [1, 2].map(|number| ThreadEnd {
        event: EventId::from_number(number).unwrap(),
        state: format!("waits for lock {number}"),
    });
    let [first, second] = [1, 2].map(|number| EventId::from_number(number).unwrap());
    let misuses = MisuseKind::ALL.map(|kind| Misuse {
        kind,
        event: second,
        other: (kind != MisuseKind::ReleaseNotHeld).then_some(first),
        text: format!("does {}", kind.as_str()),
    });
    let (threads, misuses) = (threads.into(), misuses.into());
    builder.set_run_end(RunEnd { kind, text: "größer".into(), threads, misuses });
    builder.finish().unwrap()
}

#[test]
fn how_the_run_ended_and_what_variables_held_read_back_in_every_format_that_carries_them() {
    for kind in EndKind::ALL {
        let trace = ended(kind);
        for format in [Format::Rwt, Format::JsonLines] {
            let mut bytes = Vec::new();
            write_to(&trace, &mut bytes, format).unwrap();
            let again = read(&bytes).unwrap().trace;
            assert_eq!(again.run_end(), trace.run_end(), "{format:?}");
            let y = again.names().vars.get("y").unwrap();
            assert_eq!(again.declared().initial(y), Some(-3), "{format:?}");
        }
    }
}

#[test]
fn an_end_of_the_run_that_speaks_of_events_that_are_not_there_names_no_thread() {
    let mut builder = TraceBuilder::new();
    let event = EventId::from_number(9).unwrap();
    let threads = vec![ThreadEnd { event, state: String::new() }];
    builder.set_run_end(RunEnd {
        kind: EndKind::Hang,
        text: String::new(),
        threads,
        misuses: Vec::new(),
    });
    let trace = builder.finish().unwrap();
    let threads = trace.run_end().map(|run_end| run_end.threads.len());
    assert_eq!(threads, Some(0));
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
            "a.rwt: byte 184: the file ends without an end marker; 5 events before it are whole: `--repair` keeps them"
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
        expect!["a.rwt: byte 12: the end marker belongs to another trace than these 0 events"],
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
fn names_that_the_program_gives_its_threads_are_those_of_threads() {
    let given = |body: &[u8]| {
        let payload = [naming("T1"), section(136, 0, body)].concat();
        read(&rwt::framed(&[block(&payload), end(1)].concat()))
    };
    let trace = given(&[0, 6, b'r', b'e', b'a', b'd', b'e', b'r']).unwrap().trace;
    assert_eq!(trace.names().given_names().map(|(_, name)| name).collect::<Vec<_>>(), ["reader"]);
    // No such thread, no name, a name that is cut off, or not UTF-8, or without its length.
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, b'a'];
    let bad = [&[1, 1, b'a'][..], &huge, &[0, 0], &[0, 9, b'a'], &[0, 1, 0xff], &[0]];
    for body in bad {
        assert!(given(body).is_err(), "{body:?}");
    }
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
    builder.push(thread, Op::Access(AccessOp::Write, var), last);
    let trace = builder.finish().unwrap();
    assert!(read(&written(&trace)).unwrap().trace == trace);
}

/// A trace of several blocks whose events say where they come from, but for every ninth.
fn recorded(events_count: u32) -> Trace {
    let mut builder = TraceBuilder::new();
    let mut rng = Rng::new(11);
    let module = |path: &str| Module { path: path.to_owned(), build_id: String::new() };
    let modules =
        ["/bin/bank", "/lib/größe.so"].map(|path| builder.origins().add_module(module(path)));
    let codes: Vec<CodeId> = (0..300)
        .map(|place| {
            builder
                .origins()
                .add_code(Code { module: modules[place % 2], offset: 7 << (place % 60) })
        })
        .collect();
    let mut counts = [[0_u32; 300]; 4];
    for number in 0..events_count {
        let (thread, place) = (rng.below(4), rng.below(300));
        let thread_id = builder.thread(&format!("T{thread}"));
        let var = builder.var(&format!("v{}", rng.below(50)));
        let site = builder.site(&format!("{}.c", place / 2));
        builder.push(thread_id, Op::Access(AccessOp::Write, var), site);
        if number % 9 != 8 {
            let occurrence = counts[thread][place];
            builder.origin(Origin { code: codes[place], occurrence });
            // Some events of a thread are not in the trace, and some are several.
            counts[thread][place] = (occurrence + rng.below(3) as u32).min(u32::MAX - 9);
        }
    }
    builder.finish().unwrap()
}

#[test]
fn origins_read_back_the_same() {
    for trace in [recorded(3), recorded(150_000)] {
        assert!(trace.origins().is_some());
        let bytes = written(&trace);
        assert!(read(&bytes).unwrap().trace == trace);
        assert_eq!(written(&read(&bytes).unwrap().trace), bytes);
    }
}

#[test]
fn a_recorder_writes_origins_a_block_at_a_time() {
    let trace = recorded(1_000);
    let whole = trace.origins().unwrap();
    let mut block = Origins::new();
    whole.modules().iter().for_each(|module| _ = block.add_module(module.clone()));
    let mut writer = rwt::Writer::new(Vec::new()).unwrap();
    for start in (0..trace.len()).step_by(100) {
        // Code addresses come as they are met.
        for code in whole.codes().iter().skip(block.codes().len()).take(30) {
            block.add_code(*code);
        }
        block.clear_events();
        for place in 0..100 {
            let origin = whole.get(EventId::from_index(start + place));
            let known = origin.filter(|origin| origin.code.index() < block.codes().len());
            if let Some(origin) = known {
                block.set(EventId::from_index(place), origin);
            }
        }
        let columns = trace.columns().copied(start..start + 100);
        let origins = rwt::BlockOrigins { origins: &block, start: EventId::from_index(0) };
        writer
            .block_with_origins(trace.names(), trace.declared(), &columns, None, Some(origins))
            .unwrap();
    }
    let bytes = writer.finish(trace.names(), trace.declared()).unwrap();
    let back = read(&bytes).unwrap().trace;
    let read = back.origins().unwrap();
    assert!(read.codes() == whole.codes() && read.modules() == whole.modules());
    for (id, _) in trace.events().skip(900) {
        assert_eq!(read.get(id), whole.get(id));
    }
    let kept = trace.events().filter(|&(id, _)| read.get(id).is_some()).count();
    assert!((300..890).contains(&kept), "{kept}");
}

#[test]
fn other_formats_let_origins_go() {
    let trace = recorded(20);
    for format in [Format::Std, Format::Columns, Format::JsonLines] {
        let mut bytes = Vec::new();
        write_to(&trace, &mut bytes, format).unwrap();
        let back = read_from(&bytes[..], "a", &ReadOptions::default()).unwrap().trace;
        assert_eq!((back.len(), back.origins()), (20, None), "{format:?}");
    }
}

#[test]
fn a_file_cut_off_keeps_the_origins_of_whole_blocks() {
    let trace = recorded(150_000);
    let bytes = written(&trace);
    let kept = repaired(&bytes[..bytes.len() - 30]).unwrap().trace;
    assert_eq!(kept.len(), 2 * rwt::BLOCK_EVENTS_MAX);
    let [all, some] = [&trace, &kept].map(|trace| trace.origins().unwrap());
    assert!(kept.events().all(|(id, _)| some.get(id) == all.get(id)));
}

#[test]
fn sections_of_origins_that_make_no_sense_are_refused() {
    let modules = [&[1][..], b"a", &[0]].concat();
    let addresses = [0, 5];
    let good = [naming("T1"), section(128, 0, &modules), section(129, 0, &addresses)].concat();
    assert!(read(&rwt::framed(&[block(&good), end(1)].concat())).is_ok());
    let bad: [(u8, &[u8]); 4] =
        [(128, &[9, b'a']), (128, &[1, 0xff, 0]), (129, &[1, 5]), (129, &[0])];
    for (tag, body) in bad {
        let payload = [&naming("T1")[..], &section(128, 0, &modules)].concat();
        let before = if tag == 128 { naming("T1") } else { payload };
        let file =
            rwt::framed(&[block(&[before, section(tag, 0, body)].concat()), end(1)].concat());
        assert!(read(&file).is_err(), "{tag} {body:?}");
    }
    let twice = [&good[..], &section(128, 0, &modules)].concat();
    check_error(
        &rwt::framed(&[block(&twice), end(1)].concat()),
        expect!["a.rwt: byte 12: a section comes twice in a block"],
    );
}

/// The events of a block, one write a byte of each column.
fn with_origins(codes: &[u8], occurrences: &[u8]) -> Vec<u8> {
    const BYTE: u8 = 1 << 2;
    let names: Vec<u8> =
        [1, 2, 10].iter().flat_map(|&tag| section(tag, 0, &[1, 1, b'a'])).collect();
    [
        &2_u32.to_le_bytes()[..],
        &names,
        &section(128, 0, &[1, b'a', 0]),
        &section(129, 0, &[0, 5]),
        &section(32, 0, &[]),
        &section(33, BYTE, &[1, 1]),
        &section(34, 0, &[]),
        &section(35, 0, &[]),
        &section(130, BYTE, codes),
        &section(131, BYTE, occurrences),
    ]
    .concat()
}

#[test]
fn events_from_code_addresses_that_are_not_there_are_refused() {
    let file = |codes: &[u8], occurrences: &[u8]| {
        let end = [&[1][..], &2_u64.to_le_bytes(), &1_u64.to_le_bytes()].concat();
        let end = [&(end.len() as u16).to_le_bytes()[..], &end].concat();
        rwt::framed(&[block(&with_origins(codes, occurrences)), end].concat())
    };
    // The first code address is 1 more than nothing, which as a zigzag is 2; then it stays.
    let trace = read(&file(&[2, 0], &[8, 0])).unwrap().trace;
    let origins = trace.origins().unwrap();
    let occurrences: Vec<_> =
        trace.events().map(|(id, _)| origins.get(id).map(|it| it.occurrence)).collect();
    assert_eq!(occurrences, [Some(4), Some(5)]);
    check_error(
        &file(&[2, 2], &[8, 0]),
        expect!["a.rwt: byte 12: an event from a code address that is not there"],
    );
    assert!(read(&file(&[2], &[8, 0])).is_err());
}

#[test]
fn whether_waits_are_requested_reads_back() {
    let with = |mut builder: TraceBuilder| {
        builder.declare_requested_waits();
        builder.finish().unwrap()
    };
    let mut one = TraceBuilder::new();
    let (thread, lock, site) = (one.thread("T1"), one.lock("m"), one.site("a.c:1"));
    one.push(thread, Op::Lock(LockOp::Acquire, lock), site);
    for trace in [with(TraceBuilder::new()), with(one)] {
        for format in [Format::Rwt, Format::JsonLines] {
            let mut bytes = Vec::new();
            write_to(&trace, &mut bytes, format).unwrap();
            let back = read_from(&bytes[..], "a", &ReadOptions::default()).unwrap().trace;
            assert!(back == trace && back.declared().waits_are_requested, "{format:?}");
        }
    }
    // Origins alone say nothing.
    assert!(!read(&written(&recorded(3))).unwrap().trace.declared().waits_are_requested);
}

#[test]
fn a_file_with_origins_that_does_not_say_has_requested_waits() {
    let file = |sections: &[u8]| {
        let end = [&[1][..], &2_u64.to_le_bytes(), &1_u64.to_le_bytes()].concat();
        let end = [&(end.len() as u16).to_le_bytes()[..], &end].concat();
        let block = block(&[&with_origins(&[2, 0], &[8, 0]), sections].concat());
        rwt::framed(&[block, end].concat())
    };
    let is_requested =
        |sections: &[u8]| read(&file(sections)).unwrap().trace.declared().waits_are_requested;
    assert!(is_requested(&[]));
    assert!(is_requested(&section(134, 0, &[1])));
    assert!(!is_requested(&section(134, 0, &[0])));
    check_error(
        &file(&section(134, 0, &[2])),
        expect!["a.rwt: byte 12: expected 0 or 1 for whether waits are requested"],
    );
    assert!(read(&file(&section(134, 0, &[1, 1]))).is_err());
}

#[test]
fn no_flipped_bit_among_origins_goes_unnoticed() {
    let bytes = written(&recorded(6));
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << bit;
            assert!(read(&damaged).is_err(), "bit {bit} of byte {place}");
        }
    }
}

/// A trace that says how its run was started.
fn started() -> Trace {
    let mut builder = TraceBuilder::new();
    let (thread, var, site) = (builder.thread("T1"), builder.var("x"), builder.site("bank.c:14"));
    builder.push(thread, Op::Access(AccessOp::Write, var), site);
    builder.set_run_start(RunStart {
        tool: "reweave 0.1.0".into(),
        time: Some(1_700_000_000),
        system: "Linux 6.1 x86_64".into(),
        folder: "/srv/größe/my bank".into(),
        program: "/srv/größe/my bank/bank".into(),
        build_id: "00ff".into(),
        command: ["./bank", "", "a b\n", "--x=1"].map(str::to_owned).into(),
        environment: vec![("MODE".into(), "a=b".into()), ("EMPTY".into(), String::new())],
        mode: "free".into(),
        seed: Some(u64::MAX),
        options: vec!["--keep".into(), "x".into()],
    });
    builder.finish().unwrap()
}

#[test]
fn what_a_shell_takes_for_more_than_the_name_of_a_variable_is_refused() {
    let mut builder = TraceBuilder::new();
    let (thread, var, site) = (builder.thread("T1"), builder.var("x"), builder.site("bank.c:14"));
    builder.push(thread, Op::Access(AccessOp::Write, var), site);
    let environment = vec![("X; touch pwned; Y".to_owned(), "1".to_owned())];
    builder.set_run_start(RunStart { environment, ..RunStart::default() });
    let trace = builder.finish().unwrap();
    for format in [Format::Rwt, Format::JsonLines] {
        let mut bytes = Vec::new();
        write_to(&trace, &mut bytes, format).unwrap();
        let refused = read(&bytes).unwrap_err().to_string();
        let expected =
            "the name of a variable to be letters, digits and `_`, found `X; touch pwned; Y`";
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn how_the_run_was_started_reads_back_in_every_format_that_carries_it() {
    let trace = started();
    for format in [Format::Rwt, Format::JsonLines] {
        let mut bytes = Vec::new();
        write_to(&trace, &mut bytes, format).unwrap();
        assert_eq!(read(&bytes).unwrap().trace.run_start(), trace.run_start(), "{format:?}");
    }
}

#[test]
fn a_start_of_the_run_that_is_cut_off_or_makes_no_sense_is_refused_without_a_panic() {
    let section = |body: &[u8]| {
        // A block of no events with one section of bytes as they are: tag, form, length, body.
        let mut payload = vec![1, 0, 0, 0, 0, 135, 0];
        payload.extend_from_slice(&(body.len() as u32).to_le_bytes());
        payload.extend_from_slice(body);
        let mut file = (payload.len() as u16).to_le_bytes().to_vec();
        file.extend_from_slice(&payload);
        rwt::framed(&file)
    };
    for body in [&[0][..], &[0, 9, b'a'], &[1, 1, b'x'], &[7, 1, b'x'], &[0, 1, 0xff]] {
        assert!(read(&section(body)).is_err(), "{body:?}");
    }
}
