//! What is written reads back as it was, or is refused before it is written.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_base::Rng;
use reweave_format::{Format, ReadOptions, read_from, write_to};
use reweave_trace::{
    AccessOp, BarrierOp, ConditionOp, LockOp, Marker, MemoryOrder, ObjectOp, Op, SemaphoreOp,
    ThreadOp, Trace, TraceBuilder,
};

/// Names that every text format carries.
const PLAIN: &[&str] =
    &["T1", "x", "V60977b14[0]", "java.lang.Object(12)", "é.c:7", "a@b", "a=b", "y)"];

/// Names that only columns do not carry.
const BLANKS: &[&str] = &["T1", "main thread", " x", "x ", "a = b", "tab\there", "(", ")", "#1)x"];

/// Names that only JSON carries.
const ANY: &[&str] =
    &["", " ", "|", "a|b", "\r", "x\r", "#", "{", "\"", "\\", "\0", "\u{feff}T", "\u{1f9f5}"];

/// Pieces that odd names are made of.
const PIECES: &[&str] = &[
    "|", "#", "{", " ", "\t", "\r", "(", ")", "@", "=", " = ", ".", "a", "T", "1", "\u{feff}",
    "\0", "é", "w(x)", "\u{b}", "\u{c}", "\u{85}", "branch",
];

/// Makes well-formed traces out of small scenes, each complete in itself, that together have
/// every operation.
struct Stage<'a> {
    builder: TraceBuilder,
    rng: Rng,
    names: &'a [&'a str],
    serial: usize,
    stacks: bool,
}

impl Stage<'_> {
    fn name(&mut self) -> String {
        (*self.rng.pick(self.names).unwrap()).to_owned()
    }

    /// A name that comes once.
    fn new_name(&mut self) -> String {
        self.serial += 1;
        format!("{}~{}", self.name(), self.serial)
    }

    fn push(&mut self, thread: &str, op: Op) {
        let thread = self.builder.thread(thread);
        let location = match self.rng.below(3) {
            0 => (self.builder.len() + self.rng.below(2)).to_string(),
            _ => self.name(),
        };
        let frames = if self.stacks { self.rng.below(3) } else { 0 };
        let frames: Vec<String> = (0..frames).map(|_| self.name()).collect();
        let site = self.builder.names().site(&location, frames.iter().map(String::as_str));
        self.builder.push(thread, op, site);
        if self.rng.chance(30) {
            let value = [0, -1, i64::MIN, i64::MAX, 5][self.rng.below(5)];
            self.builder.value(value);
        }
    }

    fn order(&mut self) -> MemoryOrder {
        MemoryOrder::ALL[self.rng.below(MemoryOrder::ALL.len())]
    }

    fn scene(&mut self) {
        let (one, other) = (self.name(), self.name());
        let name = self.name();
        match self.rng.below(9) {
            0 => {
                let x = self.builder.var(&name);
                for access in [AccessOp::Read, AccessOp::Write, AccessOp::UnknownRead] {
                    self.push(&one, Op::Access(access, x));
                }
            }
            1 => {
                let (x, order) = (self.builder.var(&name), self.order());
                for access in [AccessOp::AtomicRead, AccessOp::AtomicWrite, AccessOp::AtomicUpdate]
                {
                    self.push(&one, Op::Access(access(order), x));
                }
                let fence = Op::Fence(self.order());
                self.push(&one, fence);
            }
            2 => {
                let m = self.builder.lock(&name);
                for op in [LockOp::Request, LockOp::Acquire, LockOp::Release] {
                    self.push(&one, Op::Lock(op, m));
                }
                self.push(&other, Op::Lock(LockOp::AcquireShared, m));
                self.push(&other, Op::Lock(LockOp::ReleaseShared, m));
            }
            3 => {
                let child = self.new_name();
                let id = self.builder.thread(&child);
                self.push(&one, Op::Thread(ThreadOp::Fork, id));
                self.push(&child, Op::Marker(Marker::Branch));
                self.push(&one, Op::Thread(ThreadOp::Join, id));
            }
            4 => self.wait_scene(&one, &name),
            5 => {
                let b = self.builder.names().barriers.intern(&name);
                self.push(&one, Op::Barrier(BarrierOp::Arrive, b));
                self.push(&one, Op::Barrier(BarrierOp::Depart, b));
            }
            6 => {
                let s = self.builder.names().semaphores.intern(&name);
                self.push(&one, Op::Semaphore(SemaphoreOp::Post, s));
                self.push(&other, Op::Semaphore(SemaphoreOp::Take, s));
            }
            7 => {
                let object = self.new_name();
                let o = self.builder.names().objects.intern(&object);
                self.push(&one, Op::Object(ObjectOp::Alloc, o));
                self.push(&other, Op::Object(ObjectOp::Free, o));
            }
            _ => {
                let b = self.builder.names().blocks.intern(&name);
                let l = self.builder.names().locals.intern(&name);
                for op in [
                    Op::Marker(Marker::Begin(b)),
                    Op::Marker(Marker::Branch),
                    Op::Marker(Marker::Let(l)),
                    Op::Marker(Marker::End(b)),
                ] {
                    self.push(&one, op);
                }
            }
        }
    }

    fn wait_scene(&mut self, one: &str, name: &str) {
        let c = self.builder.condition(name);
        let waker = self.new_name();
        self.push(one, Op::Condition(ConditionOp::Wait, c));
        self.push(&waker, Op::Condition(ConditionOp::Notify, c));
        self.push(one, Op::Condition(ConditionOp::Wake, c));
        self.push(one, Op::Condition(ConditionOp::Wait, c));
        self.push(&waker, Op::Condition(ConditionOp::NotifyAll, c));
        self.push(one, Op::Condition(ConditionOp::Wake, c));
        self.push(one, Op::Condition(ConditionOp::Wait, c));
        self.push(one, Op::Condition(ConditionOp::Timeout, c));
    }
}

fn trace(seed: u64, names: &[&str], stacks: bool) -> Trace {
    let (builder, rng) = (TraceBuilder::new(), Rng::new(seed));
    let mut stage = Stage { builder, rng, names, serial: 0, stacks };
    if stacks {
        let s = stage.builder.names().semaphores.intern("declared");
        let b = stage.builder.names().barriers.intern("declared");
        stage.builder.declare_start(s, 2);
        stage.builder.declare_parties(b, 3);
    }
    for _ in 0..stage.rng.below(12) {
        stage.scene();
    }
    stage.builder.finish().unwrap()
}

/// All that a text format says of a trace; stacks and declarations where it carries them.
fn described(trace: &Trace, stacks: bool) -> Vec<String> {
    let names = trace.names();
    let events = trace.events().map(|(id, event)| {
        let stack: Vec<&str> = names.stack(event.site).filter(|_| stacks).collect();
        format!(
            "{:?} {:?} {:?} {stack:?} {:?}",
            names.threads.name(event.thread),
            names.spell(event.op).to_string(),
            names.location(event.site),
            trace.value(id)
        )
    });
    let starts = names.semaphores.entries().filter(|_| stacks);
    let starts = starts.filter_map(|(id, name)| Some((name, trace.declared().start(id)?)));
    let parties = names.barriers.entries().filter(|_| stacks);
    let parties = parties.filter_map(|(id, name)| Some((name, trace.declared().parties(id)?)));
    starts.chain(parties).map(|pair| format!("{pair:?}")).chain(events).collect()
}

fn written(trace: &Trace, format: Format) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write_to(trace, &mut bytes, format).map(|()| bytes)
}

fn check_round_trip(trace: &Trace, format: Format) -> Result<(), TestCaseError> {
    let bytes = written(trace, format).map_err(|error| TestCaseError::fail(error.to_string()))?;
    check_reads_back(trace, format, &bytes)
}

fn check_reads_back(trace: &Trace, format: Format, bytes: &[u8]) -> Result<(), TestCaseError> {
    let stacks = format == Format::JsonLines;
    let shown = String::from_utf8_lossy(bytes).into_owned();
    let reading = read_from(bytes, "a", &ReadOptions::default())
        .map_err(|error| TestCaseError::fail(format!("{error}\n{shown}")))?;
    prop_assert_eq!(described(&reading.trace, stacks), described(trace, stacks), "{}", shown);
    if !trace.is_empty() {
        prop_assert_eq!(reading.format, format);
    }
    // What was read and is written again is the same text.
    prop_assert_eq!(written(&reading.trace, format).unwrap(), bytes);
    Ok(())
}

proptest! {
    #[test]
    fn every_text_format_carries_every_operation(seed: u64) {
        let trace = trace(seed, PLAIN, false);
        for format in [Format::Std, Format::Columns, Format::JsonLines] {
            check_round_trip(&trace, format)?;
        }
    }

    #[test]
    fn rapid_text_and_json_carry_blanks(seed: u64) {
        let trace = trace(seed, &BLANKS[..8], false);
        check_round_trip(&trace, Format::Std)?;
        check_round_trip(&trace, Format::JsonLines)?;
    }

    #[test]
    fn json_carries_any_names_stacks_and_declarations(seed: u64) {
        let names = [PLAIN, BLANKS, ANY].concat();
        check_round_trip(&trace(seed, &names, true), Format::JsonLines)?;
    }

    #[test]
    fn what_the_program_calls_its_threads_reads_back(given: Vec<Option<String>>) {
        let mut builder = TraceBuilder::new();
        let (var, site) = (builder.var("x"), builder.site("a.c:1"));
        for (number, name) in given.iter().enumerate() {
            let thread = builder.thread(&format!("T{number}"));
            builder.push(thread, Op::Access(AccessOp::Write, var), site);
            builder.names().give_name(thread, name.as_deref().unwrap_or_default());
        }
        let trace = builder.finish().unwrap();
        for format in [Format::Rwt, Format::JsonLines] {
            let bytes = written(&trace, format).unwrap();
            let again = read_from(&bytes[..], "a", &ReadOptions::default()).unwrap().trace;
            let names = [&again, &trace].map(|it| it.names().given_names().collect::<Vec<_>>());
            prop_assert_eq!(&names[0], &names[1], "{:?}", format);
        }
    }

    #[test]
    fn what_a_format_cannot_carry_is_refused(
        seed: u64,
        names in prop::collection::vec(
            prop::collection::vec(prop::sample::select(PIECES), 0..4).prop_map(|it| it.concat()),
            1..3,
        ),
        tame in prop::collection::vec(prop::sample::select(PLAIN), 0..12),
    ) {
        let names: Vec<&str> = names.iter().map(String::as_str).chain(tame).collect();
        let trace = trace(seed, &names, false);
        for format in [Format::Std, Format::Columns, Format::JsonLines] {
            match written(&trace, format) {
                Ok(bytes) => check_reads_back(&trace, format, &bytes)?,
                Err(error) => {
                    prop_assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
                    prop_assert!(format != Format::JsonLines);
                }
            }
        }
    }

    #[test]
    fn no_text_makes_reading_panic(
        lines in prop::collection::vec(
            prop::collection::vec(prop::sample::select(PIECES), 0..8).prop_map(|it| it.concat()),
            0..6,
        ),
        repair: bool,
    ) {
        let text = lines.join("\n");
        // Whatever is read can be told; what is refused is refused in words.
        match read_from(text.as_bytes(), "a", &ReadOptions { repair, go_on: None }) {
            Ok(reading) => prop_assert!(described(&reading.trace, true).len() >= reading.trace.len()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn rapid_text_is_written_byte_for_byte_as_it_was_read() {
    for text in [
        "# no events\n",
        "T1|acq(l)|17\nT1|w(x)|18|-3\nT1|rel(l)|19\n",
        "T1|w(x)|\n T1 |w( x )| \n",
        "main|fork(T1)|a.c:1\nT1|ar.acquire(f)|a.c:2\nT1|fence(acqrel)|{}\nT1|branch|#\n",
        "T1|r?(V60977b14[0])|1\nT1|acq(java.lang.Object(12))|2\nT1|w(())|3\n",
        "[0]|let(é)|ü|9223372036854775807\n",
    ] {
        let reading = read_from(text.as_bytes(), "a", &ReadOptions::default()).unwrap();
        assert_eq!(written(&reading.trace, Format::Std).unwrap(), text.as_bytes());
    }
}

#[test]
fn a_trace_without_events_is_a_trace() {
    let empty = TraceBuilder::new().finish().unwrap();
    for (format, text) in [
        (Format::Std, "# no events\n"),
        (Format::Columns, "# no events\n"),
        (Format::JsonLines, "{\"events\":0}\n"),
    ] {
        let bytes = written(&empty, format).unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes), text);
        let reading = read_from(bytes.as_slice(), "a", &ReadOptions::default()).unwrap();
        assert!(reading.trace == empty);
    }
}

#[track_caller]
fn check_conversion(text: &str, format: Format, expected: Expect) {
    let reading = read_from(text.as_bytes(), "a", &ReadOptions::default()).unwrap();
    let bytes = written(&reading.trace, format).unwrap();
    expected.assert_eq(&String::from_utf8(bytes).unwrap());
}

#[test]
fn columns_are_read_as_they_are_drawn() {
    let drawn = "
      main    worker  idle
   fork(worker)
              acq(m)
                w(x)     @bank.c:12 = 5
              # the lock is still held
              rel(m) = 0
                      branch @
      join(worker)  @ main.c:9
";
    check_conversion(
        drawn,
        Format::Std,
        expect![[r#"
        main|fork(worker)|1
        worker|acq(m)|2
        worker|w(x)|bank.c:12|5
        worker|rel(m)|4|0
        idle|branch|
        main|join(worker)|main.c:9
    "#]],
    );
    check_conversion(
        drawn,
        Format::Columns,
        expect![[r#"
        main          worker  idle
        fork(worker)
                      acq(m)
                      w(x)            @bank.c:12 = 5
                      rel(m) = 0
                              branch  @
        join(worker)                  @main.c:9
    "#]],
    );
    check_conversion(
        "a\tb\nw(x)\n        w(y)\n",
        Format::Std,
        expect![[r#"
        a|w(x)|1
        b|w(y)|2
    "#]],
    );
}

#[test]
fn json_lines_leave_out_what_goes_without_saying() {
    let text = "T1|ar.acquire(x)|a.c:1|5\nT1|aw(x)|\nT2|fence(seqcst)|2\nT2|branch|3\n";
    check_conversion(
        text,
        Format::JsonLines,
        expect![[r#"
        {"thread":"T1","op":"ar","on":"x","order":"acquire","location":"a.c:1","value":5}
        {"thread":"T1","op":"aw","on":"x","location":""}
        {"thread":"T2","op":"fence","order":"seqcst","location":"2"}
        {"thread":"T2","op":"branch","location":"3"}
    "#]],
    );
    let spaced = r#" { "op": "w", "thread": "T1", "on": "x\u0041", "value": null, "stack": [] } "#;
    check_conversion(
        spaced,
        Format::Std,
        expect![[r#"
        T1|w(xA)|
    "#]],
    );
}

/// What `format` says of a trace whose thread, operand and location each are one of `names`.
#[track_caller]
fn check_refusals(format: Format, names: [&[&str]; 3], expected: Expect) {
    let mut said = String::new();
    for (part, name) in names
        .iter()
        .enumerate()
        .flat_map(|(part, names)| names.iter().map(move |name| (part, *name)))
    {
        let mut parts = ["T1", "x", "1"];
        parts[part] = name;
        let mut builder = TraceBuilder::new();
        let (thread, var) = (builder.thread(parts[0]), builder.var(parts[1]));
        let site = builder.site(parts[2]);
        builder.push(thread, Op::Access(AccessOp::Write, var), site);
        builder.value(5);
        let error = written(&builder.finish().unwrap(), format).unwrap_err();
        said += &format!("{error}\n");
    }
    expected.assert_eq(&said);
}

#[test]
fn names_that_would_be_read_differently_are_named() {
    let threads = &["", " ", "#T", " #T", "{", "\u{feff}T", "a|b", "a\rb", "a\nb", "\0"];
    check_refusals(
        Format::Std,
        [threads, &["", "a|b", "\r"], &["|", "\r", "\0"]],
        expect![[r#"
        event 1: RAPID text cannot carry the thread ``: it is blank
        event 1: RAPID text cannot carry the thread ` `: it is blank
        event 1: RAPID text cannot carry the thread `#T`: the line would be a comment
        event 1: RAPID text cannot carry the thread ` #T`: the line would be a comment
        event 1: RAPID text cannot carry the thread `{`: the file would be taken for JSON lines
        event 1: RAPID text cannot carry the thread `\u{feff}T`: it starts with a byte order mark
        event 1: RAPID text cannot carry the thread `a|b`: it holds `|`
        event 1: RAPID text cannot carry the thread `a\rb`: it holds a line end
        event 1: RAPID text cannot carry the thread `a\nb`: it holds a line end
        event 1: RAPID text cannot carry the thread `\u{0}`: it holds a zero byte
        event 1: RAPID text cannot carry the operand ``: it is empty
        event 1: RAPID text cannot carry the operand `a|b`: it holds `|`
        event 1: RAPID text cannot carry the operand `\r`: it holds a line end
        event 1: RAPID text cannot carry the location `|`: it holds `|`
        event 1: RAPID text cannot carry the location `\r`: it holds a line end
        event 1: RAPID text cannot carry the location `\u{0}`: it holds a zero byte
    "#]],
    );
    let threads = &["", "a b", "#T", "{", "\u{feff}T", "a|b", "\u{1}", "w(x)", "branch"];
    let locations = &[" a", "a ", "a = b", "a =", "\r"];
    check_refusals(
        Format::Columns,
        [threads, &["", "a b", "\t"], locations],
        expect![[r#"
        columns cannot carry the thread ``: it is empty
        columns cannot carry the thread `a b`: it holds a blank
        columns cannot carry the thread `#T`: the heading would be a comment
        columns cannot carry the thread `{`: the file would be taken for another format
        columns cannot carry the thread `\u{feff}T`: it starts with a byte order mark
        columns cannot carry the thread `a|b`: the file would be taken for another format
        columns cannot carry the thread `\u{1}`: it holds a control character
        columns cannot carry the thread `w(x)`: it would be taken for an operation
        columns cannot carry the thread `branch`: it would be taken for an operation
        event 1: columns cannot carry the operand ``: it is empty
        event 1: columns cannot carry the operand `a b`: it holds a blank
        event 1: columns cannot carry the operand `\t`: it holds a blank
        event 1: columns cannot carry the location ` a`: it starts or ends with a blank
        event 1: columns cannot carry the location `a `: it starts or ends with a blank
        event 1: columns cannot carry the location `a = b`: ` = ` would start a value
        event 1: columns cannot carry the location `a =`: ` = ` would start a value
        event 1: columns cannot carry the location `\r`: it holds a line end
    "#]],
    );
}
