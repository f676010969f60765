//! Which findings are one fault.

use std::collections::BTreeSet;

use reweave_analysis::{
    Counter, Detail, Evidence, Finding, Fingerprint, Kind, Outcome, Reported, Settings,
};
use reweave_catalog::{Examined, Quiet, list_once, run, select};
use reweave_trace::{
    AccessOp, Code, EndKind, EventId, LockOp, Marker, Misuse, MisuseKind, Module, ObjectOp, Op,
    Origin, RunEnd, SemaphoreOp, ThreadEnd, Trace, TraceBuilder,
};

/// What `only` finds in `trace`.
fn found(trace: &Trace, only: &str, settings: &Settings) -> Outcome {
    run(trace, &select(only, &[]).expect("it is there"), settings, &Quiet)
}

/// The faults that `only` finds in `text`, each by the lines of its places.
#[track_caller]
fn check(only: &str, text: &str, expected: &[&str]) {
    let trace = reweave_testkit::std(text);
    let outcome = found(&trace, only, &Settings::default());
    let lines = |fault: &Reported| {
        let mut places: Vec<String> =
            fault.findings().map(|it| it.locations(&trace).join("-").replace("a.c:", "")).collect();
        places.sort();
        places.join(" ")
    };
    let faults: Vec<String> = outcome.findings.iter().map(lines).collect();
    assert_eq!(faults, expected);
}

#[test]
fn a_variable_that_nobody_guards_is_one_fault() {
    let text = "T1|w(x)|a.c:1\nT1|r(x)|a.c:2\nT2|w(x)|a.c:3\nT2|r(x)|a.c:4\n";
    check("races.exact", text, &["1-3 1-4 2-3"]);
}

#[test]
fn one_place_that_forgets_the_lock_is_one_fault_whatever_else_others_hold() {
    let text = "T1|w(x)|a.c:1\n\
        T2|acq(m)|a.c:2\nT2|r(x)|a.c:3\nT2|rel(m)|a.c:4\n\
        T3|acq(m)|a.c:5\nT3|acq(n)|a.c:6\nT3|w(x)|a.c:7\nT3|rel(n)|a.c:8\nT3|rel(m)|a.c:9\n";
    check("races.exact", text, &["1-3 1-7"]);
}

#[test]
fn other_variables_and_other_members_are_other_faults() {
    let text = "T1|w(s.a)|a.c:1\nT1|w(s.b)|a.c:2\nT2|w(s.a)|a.c:3\nT2|w(s.b)|a.c:4\n";
    check("races.exact", text, &["1-3", "2-4"]);
}

#[test]
fn elements_and_objects_of_a_type_are_one() {
    let text = "T1|w(slots[1].n)|a.c:1\nT1|w(slots[2].n)|a.c:2\n\
        T2|w(slots[1].n)|a.c:3\nT2|w(slots[2].n)|a.c:4\n";
    check("races.exact", text, &["1-3 2-4"]);
    let text = "T1|w(Item#1.n)|a.c:1\nT1|w(Item#2.n)|a.c:2\n\
        T2|w(Item#1.n)|a.c:3\nT2|w(Item#2.n)|a.c:4\n";
    check("races.exact", text, &["1-3 2-4"]);
}

#[test]
fn equals_that_are_guarded_otherwise_elsewhere_are_two() {
    // One list lacks a lock, the other has a wrong one, and no code is common to both.
    let text = "T1|w(Item#1.n)|a.c:1\nT2|w(Item#1.n)|a.c:2\n\
        T1|acq(p)|a.c:3\nT1|w(Item#2.n)|a.c:4\nT1|rel(p)|a.c:5\n\
        T2|acq(q)|a.c:6\nT2|w(Item#2.n)|a.c:7\nT2|rel(q)|a.c:8\n";
    check("races.exact", text, &["1-2", "4-7"]);
}

#[test]
fn memory_of_which_nothing_is_known_is_one_where_it_has_all_code_in_common() {
    // One accessor of all memory is no fault of all who call it.
    let text = "T1|w(0x10)|a.c:1\nT2|w(0x10)|a.c:3\nT1|w(0x20)|a.c:2\nT2|w(0x20)|a.c:3\n\
        T1|w(0x30)|a.c:1\nT2|w(0x30)|a.c:3\n";
    check("races.exact", text, &["1-3", "2-3"]);
    let text = "T1|w(0x10)|a.c:1\nT2|w(0x10)|a.c:2\nT2|r(0x10)|a.c:3\n";
    check("races.exact", text, &["1-2 1-3"]);
}

/// Names in text may tell the objects of one class apart, thousands of them. Of recorded programs more is known.
#[test]
fn in_text_what_is_at_one_pair_of_locations_is_one_fault() {
    let on = |var: &str, threads: [&str; 2]| -> String {
        threads.map(|thread| format!("{thread}|w({var})|a.c:1\n")).concat()
    };
    let text = on("V1", ["T1", "T2"]) + &on("V2", ["T3", "T4"]);
    for analysis in ["races.exact", "races.hb"] {
        check(analysis, &text, &["1-1"]);
    }
    let outcome = found(&reweave_testkit::std(&text), "races.exact", &Settings::default());
    assert_eq!(outcome.coverage[0].counter(Counter::LocationPairs), Some(1));
    assert_eq!(outcome.findings[0].count(), 2);
}

/// The events in `text`, as those of a recorded program.
fn recorded(text: &str) -> TraceBuilder {
    let mut builder = reweave_testkit::std_builder(text);
    let module = builder.origins().add_module(Module::default());
    let code = builder.origins().add_code(Code { module, offset: 0 });
    builder.origin(Origin { code, occurrence: 0 });
    builder
}

/// How `thread` takes `outer` and then `inner`, by a helper.
fn nested(thread: &str, [outer, inner]: [&str; 2]) -> String {
    let ops = [("req", outer), ("acq", outer), ("req", inner), ("acq", inner), ("rel", inner)];
    let line = |(at, (op, lock)): (usize, (&str, &str))| {
        format!("{thread}|{op}({lock})|a.c:{}\n", 1 + at / 2)
    };
    let lines: String = ops.into_iter().enumerate().map(line).collect();
    lines + &format!("{thread}|rel({outer})|a.c:4\n")
}

/// Of a helper that is handed one thing and then another, each is a fault, if names are known to say which is which.
#[test]
fn what_a_helper_is_handed_tells_faults_apart() {
    let deadlock =
        |[one, other]: [&str; 2]| nested("T1", [one, other]) + &nested("T2", [other, one]);
    let seen = |var: &str| format!("T1|w({var})|a.c:1\nT2|r({var})|a.c:2\n");
    let broken = |var: &str| {
        format!(
            "T1|begin(pay)|a.c:1\nT1|r({var})|a.c:2\nT1|w({var})|a.c:3\nT1|end(pay)|a.c:4\n\
             T2|w({var})|a.c:5\n"
        )
    };
    let observed = |var: &str| {
        format!(
            "T1|begin(pay)|a.c:1\nT1|r({var})|a.c:2\nT2|w({var})|a.c:5\nT1|w({var})|a.c:3\n\
             T1|end(pay)|a.c:4\n"
        )
    };
    let split = |lock: &str| {
        let section = |thread: &str, line: u32| {
            format!("{thread}|acq({lock})|a.c:{line}\n{thread}|rel({lock})|a.c:{line}\n")
        };
        let [first, between, last] = [section("T1", 2), section("T2", 5), section("T1", 3)];
        format!("T1|begin(pay)|a.c:1\n{first}{between}{last}T1|end(pay)|a.c:4\n")
    };
    let freed = |object: &str| format!("T2|r({object}.n)|a.c:2\nT1|free({object})|a.c:3\n");
    let closed = |lock: &str| {
        format!("T2|acq({lock})|a.c:2\nT2|rel({lock})|a.c:2\nT1|free(lock({lock}))|a.c:3\n")
    };
    let kept = |lock: &str| {
        let [takes, keeps] = ["T1", "T2"].map(|thread| {
            format!("{thread}|req({lock})|{thread}.c:1\n{thread}|acq({lock})|{thread}.c:1\n")
        });
        format!("{takes}T1|rel({lock})|T1.c:2\n{keeps}")
    };
    let cases: [(&str, [String; 2]); 8] = [
        ("deadlocks.exact", [deadlock(["a", "b"]), deadlock(["c", "d"])]),
        ("determinism.strict", ["x", "y"].map(seen)),
        ("atomicity.blocks", ["x", "y"].map(broken)),
        ("atomicity.blocks", ["x", "y"].map(observed)),
        ("atomicity.blocks", ["m", "n"].map(split)),
        ("lifetimes.free", ["Node#1", "Leaf#1"].map(freed)),
        ("lifetimes.close", ["m", "n"].map(closed)),
        ("deadlocks.stuck", ["m", "n"].map(kept)),
    ];
    let counts = cases.map(|(only, [one, other])| {
        let count = |trace: &Trace| found(trace, only, &Settings::default()).findings.len();
        let text = one + &other;
        let trace = recorded(&text).finish().expect("it is well formed");
        (only, [count(&trace), count(&reweave_testkit::std(&text))])
    });
    assert_eq!(counts, counts.map(|(only, _)| (only, [2, 1])));
}

/// Each way round is another cycle, also where one helper takes all locks.
#[test]
fn locks_in_another_cyclic_order_are_another_deadlock() {
    let cycle = |locks: [&str; 3], from: usize| -> String {
        let pairs = (0..3).map(|at| [locks[at], locks[(at + 1) % 3]]);
        pairs.zip(from..).map(|(pair, thread)| nested(&format!("T{thread}"), pair)).collect()
    };
    let text = cycle(["a", "b", "c"], 1) + &cycle(["a", "c", "b"], 4);
    let trace = recorded(&text).finish().expect("it is well formed");
    let outcome = found(&trace, "deadlocks.exact", &Settings::default());
    let mut lengths: Vec<usize> =
        outcome.findings.iter().map(|fault| fault.finding.events.len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [2, 2, 2, 3, 3]);
    let names: BTreeSet<Fingerprint> = outcome.findings.iter().map(|it| it.fingerprint).collect();
    assert_eq!(names.len(), 5);
}

/// Of what is handed to a helper again and again one instance is proven.
#[test]
fn instances_of_one_fault_are_counted() {
    let text: String =
        (0..3).map(|_| nested("T1", ["a", "b"]) + &nested("T2", ["b", "a"])).collect();
    let trace = recorded(&text).finish().expect("it is well formed");
    let outcome = found(&trace, "deadlocks.exact", &Settings::default());
    let [fault] = &outcome.findings[..] else { panic!("{:?}", outcome.findings) };
    assert_eq!((fault.findings().count(), fault.count()), (1, 9));
}

/// A run of a program that ended in a deadlock at its events with these numbers, each of which waits for the thread of
/// the next.
fn ended(text: &str, stuck: &[u32]) -> Trace {
    let mut builder = recorded(text);
    let end = |event: EventId| ThreadEnd { event, state: "waits".to_owned() };
    let threads = reweave_testkit::events(stuck).into_iter().map(end).collect();
    let (kind, text, misuses) = (EndKind::Deadlock, String::new(), Vec::new());
    builder.set_run_end(RunEnd { kind, text, threads, misuses });
    builder.finish().expect("it is well formed")
}

/// What `check` finds by default in `trace`: ids, guarantees and instances.
fn listed(trace: &Trace, settings: &Settings) -> Vec<(String, &'static str, u64)> {
    let outcome = found(trace, "", settings);
    let faults = outcome.findings.iter();
    faults.map(|it| (it.id.clone(), it.finding.guarantee().as_str(), it.count())).collect()
}

#[test]
fn a_deadlock_that_happened_is_one_fault_with_what_is_predicted_of_it() {
    let [one, other] = [("T1", ["a", "b"]), ("T2", ["b", "a"])].map(|(thread, [outer, inner])| {
        format!(
            "{thread}|req({outer})|a.c:1\n{thread}|acq({outer})|a.c:1\n{thread}|req({inner})|a.c:2\n"
        )
    });
    // Twice it goes well.
    let before: String =
        (0..2).map(|_| nested("T1", ["a", "b"]) + &nested("T2", ["b", "a"])).collect();
    let others = nested("T3", ["c", "d"]) + &nested("T4", ["d", "c"]);
    let begin = before.lines().count() as u32;
    let text = before + &one + &other;
    let [mine, yours] = [begin + 3, begin + 6];
    let trace = ended(&text, &[mine, yours]);
    assert_eq!(listed(&trace, &Settings::default()), [("D1".to_owned(), "observed", 9)]);
    let outcome = found(&trace, "", &Settings::default());
    let shown = &outcome.findings[0].finding;
    let numbers: Vec<u32> = shown.events.iter().map(|event| event.number()).collect();
    assert_eq!(numbers, [mine, yours]);
    // It is shown as it was: all but the two requests.
    let proof = shown.evidence.proof().expect("it has a schedule");
    assert_eq!(proof.reordering().base.iter().sum::<u32>(), begin + 4);
    // A run in which it is predicted calls it the same.
    let well = recorded(&(nested("T1", ["a", "b"]) + &nested("T2", ["b", "a"])));
    let well = well.finish().expect("it is well formed");
    let predicted = &found(&well, "deadlocks", &Settings::default()).findings[0];
    assert_eq!(predicted.finding.guarantee().as_str(), "witnessed");
    assert_eq!(predicted.fingerprint, outcome.findings[0].fingerprint);
    // Every set of blocked acquires, each once.
    let all = Settings { all: true, ..Settings::default() };
    assert_eq!(listed(&trace, &all).len(), 9);
    // What else is predicted is another fault.
    let trace = ended(&(others + &text), &[mine + 12, yours + 12]);
    let expected = [("D1".to_owned(), "observed", 9), ("D2".to_owned(), "witnessed", 1)];
    assert_eq!(listed(&trace, &Settings::default()), expected);
}

#[test]
fn a_deadlock_that_happened_at_one_place_is_predicted_at_others() {
    let text = "T1|req(a)|a.c:1\nT1|acq(a)|a.c:1\nT1|req(b)|a.c:2\nT1|acq(b)|a.c:2\n\
        T1|rel(b)|a.c:3\nT1|rel(a)|a.c:3\n\
        T1|req(a)|a.c:4\nT1|acq(a)|a.c:4\nT2|req(b)|a.c:5\nT2|acq(b)|a.c:5\n\
        T1|req(b)|a.c:6\nT2|req(a)|a.c:7\n";
    let trace = ended(text, &[11, 12]);
    let outcome = found(&trace, "", &Settings::default());
    let [fault] = &outcome.findings[..] else { panic!("{:?}", outcome.findings) };
    let places = fault.findings().map(|it| (it.guarantee().as_str(), it.locations(&trace)));
    let expected = [("observed", vec!["a.c:6", "a.c:7"]), ("witnessed", vec!["a.c:2", "a.c:7"])];
    assert_eq!(places.collect::<Vec<_>>(), expected);
}

#[test]
fn what_a_weak_flag_hands_over_is_one_fault() {
    let text = "T1|w(x)|a.c:1\nT1|w(y)|a.c:2\nT1|aw.relaxed(flag)|a.c:3\n\
        T2|ar.relaxed(flag)|a.c:4\nT2|r(x)|a.c:5\nT2|r(y)|a.c:6\n";
    let trace = reweave_testkit::std(text);
    let outcome = found(&trace, "races.exact", &Settings::default());
    let [fault] = &outcome.findings[..] else { panic!("{:?}", outcome.findings) };
    assert_eq!(fault.findings().count(), 2);
}

#[test]
fn locks_in_the_same_cyclic_order_are_one_deadlock() {
    let take = |thread: &str, [outer, inner]: [&str; 2], line: u32| {
        format!(
            "{thread}|acq({outer})|a.c:{line}\n{thread}|acq({inner})|a.c:{}\n\
             {thread}|rel({inner})|a.c:90\n{thread}|rel({outer})|a.c:91\n",
            line + 1
        )
    };
    let text = take("T1", ["m", "n"], 1)
        + &take("T2", ["n", "m"], 11)
        + &take("T3", ["n", "m"], 21)
        + &take("T1", ["p", "q"], 31)
        + &take("T2", ["q", "p"], 41);
    check("deadlocks.exact", &text, &["12-2 2-22", "32-42"]);
    // Other elements are other locks, unless the same code takes them.
    let text = take("T1", ["m[0]", "m[1]"], 1)
        + &take("T2", ["m[1]", "m[0]"], 11)
        + &take("T3", ["m[2]", "m[3]"], 21)
        + &take("T4", ["m[3]", "m[2]"], 31)
        + &take("T5", ["m[4]", "m[5]"], 1)
        + &take("T6", ["m[5]", "m[4]"], 41);
    check("deadlocks.exact", &text, &["12-2 2-42", "22-32"]);
}

#[test]
fn semaphores_of_an_array_that_other_code_waits_for_are_two_faults() {
    let mut builder = TraceBuilder::new();
    for (threads, from) in [(["A", "B"], 0), (["C", "D"], 2)] {
        let names = [from, from + 1].map(|at| builder.semaphore(&format!("sems[{at}]")));
        for name in names {
            builder.declare_start(name, 1);
        }
        for (which, thread) in threads.into_iter().enumerate() {
            let id = builder.thread(thread);
            let [outer, inner] = [names[which], names[1 - which]];
            let ops = [
                (SemaphoreOp::Take, outer),
                (SemaphoreOp::Take, inner),
                (SemaphoreOp::Post, inner),
                (SemaphoreOp::Post, outer),
            ];
            for (line, (op, name)) in (1..).zip(ops) {
                let site = builder.site(&format!("{thread}.c:{line}"));
                builder.push(id, Op::Semaphore(op, name), site);
            }
        }
    }
    let trace = builder.finish().expect("it is well formed");
    let outcome = found(&trace, "deadlocks.stuck", &Settings::default());
    assert_eq!(outcome.findings.len(), 2);
}

#[test]
fn another_rule_that_was_broken_is_another_fault() {
    let mut builder = TraceBuilder::new();
    let threads = ["T1", "T2"].map(|name| builder.thread(name));
    let (lock, other) = (builder.lock("m"), builder.lock("n"));
    let site = |builder: &mut TraceBuilder, line: u32| builder.site(&format!("a.c:{line}"));
    for lock in [lock, other] {
        for op in [LockOp::Acquire, LockOp::Release] {
            let site = site(&mut builder, 1);
            builder.push(threads[0], Op::Lock(op, lock), site);
        }
    }
    for line in [2, 3] {
        let site = site(&mut builder, line);
        builder.push(threads[1], Op::Marker(Marker::Branch), site);
    }
    let misuse = |kind: MisuseKind, event: u32, other: u32| {
        let event = EventId::from_number(event).expect("it is there");
        Misuse { kind, event, other: EventId::from_number(other), text: "does it".to_owned() }
    };
    let misuses = vec![
        misuse(MisuseKind::DestroyHeld, 5, 1),
        misuse(MisuseKind::ReleaseOfOthers, 6, 1),
        misuse(MisuseKind::WaitWithoutLock, 6, 1),
        misuse(MisuseKind::WaitWithoutLock, 6, 3),
        misuse(MisuseKind::WaitWithoutLock, 6, 1),
    ];
    let (kind, text) = (EndKind::Exited, String::new());
    builder.set_run_end(RunEnd { kind, text, threads: Vec::new(), misuses });
    let trace = builder.finish().expect("it is well formed");
    let outcome = found(&trace, "endings.misuse", &Settings::default());
    let counts: Vec<u64> = outcome.findings.iter().map(Reported::count).collect();
    let names: BTreeSet<_> = outcome.findings.iter().flat_map(Reported::fingerprints).collect();
    assert_eq!((counts, names.len()), (vec![1, 1, 3], 3));
}

#[test]
fn members_of_a_type_called_stack_are_told_apart() {
    for word in ["stack", "descriptor", "struct_frame"] {
        let access = |thread: &str, member: &str, line: u32| {
            format!("{thread}|w({word}#1.{member})|a.c:{line}\n")
        };
        let text = format!("T1|alloc({word}#1)|a.c:9\nT1|fork(T2)|a.c:9\nT1|fork(T3)|a.c:9\n")
            + &access("T2", "top", 1)
            + &access("T2", "count", 1)
            + &access("T3", "top", 2)
            + &access("T3", "count", 3);
        check("races.exact", &text, &["1-2", "1-3"]);
    }
}

#[test]
fn handles_go_by_what_they_stand_for() {
    let names = |unused: usize, thread: &str, line: u32| {
        let forks = |thread: &str, line: u32| {
            format!("T1|fork({thread})|a.c:{line}\n{thread}|w(x)|a.c:9\n")
        };
        let text: String = (0..unused).map(|at| forks(&format!("N{at}"), 8)).collect();
        let text = text + &forks(thread, 1) + &format!("T3|free(thread({thread}))|a.c:{line}\n");
        let trace = reweave_testkit::std(&text);
        let event = trace.events().last().expect("there are some").0;
        let finding = Finding {
            analysis: "some",
            kind: Kind::UseAfterClose,
            events: vec![event],
            message: String::new(),
            count: 1,
            evidence: Evidence::Observed(None),
            detail: Detail::None,
        };
        Fingerprint::new(&trace, &finding)
    };
    assert_eq!(names(0, "T2", 3), names(2, "T7", 3));
    assert_ne!(names(0, "T2", 3), names(0, "T2", 4));
    // What nothing names is no name in common, also as a handle.
    let text = "A|acq(lock#1)|a.c:1\nA|rel(lock#1)|a.c:2\nB|free(lock(lock#1))|a.c:9\n\
        C|acq(lock#2)|a.c:3\nC|rel(lock#2)|a.c:4\nD|free(lock(lock#2))|a.c:8\n";
    check("lifetimes.close", text, &["1-9", "3-8"]);
}

#[test]
fn uses_of_one_object_after_its_free_are_one_fault() {
    let text = "T1|alloc(Item#1)|a.c:1\nT1|fork(T2)|a.c:2\n\
        T2|r(Item#1.n)|a.c:3\nT2|r(Item#1.m)|a.c:4\nT1|free(Item#1)|a.c:5\n";
    check("lifetimes.free", text, &["3-5 4-5"]);
}

#[test]
fn accesses_that_break_one_block_are_one_fault() {
    let text = "T1|begin(pay)|a.c:1\nT1|r(x)|a.c:2\nT1|w(x)|a.c:3\nT1|end(pay)|a.c:4\n\
        T2|w(x)|a.c:5\nT2|w(x)|a.c:6\n";
    check("atomicity.blocks", text, &["2-3-5 2-3-6"]);
}

#[test]
fn what_is_no_member_goes_by_the_calls_that_allocated_it() {
    let faults = |[object, part]: [&str; 2], lines: [u32; 2]| {
        let mut builder = TraceBuilder::new();
        let threads = ["T1", "T2"].map(|name| builder.thread(name));
        let site = |line: u32| format!("a.c:{line}\nmain (a.c:{line})\nsource#{line}");
        for (number, line) in (1..).zip(lines) {
            let object = builder.object(&format!("{object}#{number}"));
            let site = builder.site(&site(line));
            builder.push(threads[0], Op::Object(ObjectOp::Alloc, object), site);
        }
        for number in 1..=2 {
            let var = builder.var(&format!("{object}#{number}{part}"));
            for (which, thread) in (0..).zip(threads) {
                let site = builder.site(&site(10 * number + which));
                builder.push(thread, Op::Access(AccessOp::Write, var), site);
            }
        }
        let trace = builder.finish().expect("it is well formed");
        found(&trace, "races.exact", &Settings::default()).findings.len()
    };
    // Two lines, and one in a loop.
    for name in [["block", "+8"], ["block@a.c:1", "+8"], ["int[]", "[5]"], ["long", ""]] {
        assert_eq!((faults(name, [1, 2]), faults(name, [1, 1])), (2, 1), "{name:?}");
    }
    assert_eq!(faults(["Item", ".refs"], [1, 2]), 1);
}

#[test]
fn all_and_a_limit_count_pairs_and_faults() {
    let text = "T1|w(x)|a.c:1\nT1|r(x)|a.c:2\nT2|w(x)|a.c:3\nT2|r(x)|a.c:4\n\
        T1|w(y)|a.c:5\nT2|w(y)|a.c:6\n";
    let trace = reweave_testkit::std(text);
    let counts = |all: bool, limit: Option<usize>| {
        let outcome = found(&trace, "races.exact", &Settings { all, limit, ..Settings::default() });
        (outcome.findings.len(), outcome.is_complete())
    };
    assert_eq!((counts(false, None), counts(true, None)), ((2, true), (4, true)));
    assert_eq!((counts(false, Some(2)), counts(false, Some(1))), ((2, true), (1, false)));
    assert_eq!((counts(true, Some(4)), counts(true, Some(3))), ((4, true), (3, false)));
    let outcome = found(&trace, "races.exact", &Settings::default());
    assert_eq!(outcome.findings[0].count(), 3);
}

#[test]
fn a_fault_that_is_filtered_shows_what_is_left() {
    let text = "T1|w(x)|a.c:1\nT1|r(x)|a.c:2\nT2|w(x)|a.c:3\nT2|r(x)|a.c:4\n";
    let trace = reweave_testkit::std(text);
    let fault = found(&trace, "races.exact", &Settings::default()).findings.remove(0);
    let at = |line: &str, fault: &Reported| {
        let lines = fault.findings().map(|it| it.locations(&trace));
        lines.filter(|lines| lines.contains(&line)).count()
    };
    let first = fault.fingerprint;
    let left = fault.clone().filtered(|name, _| name != first).expect("two are left");
    assert_eq!((left.findings().count(), &left.id, at("a.c:1", &left)), (2, &fault.id, 1));
    assert_eq!(fault.filtered(|_, _| false), None);
}

#[test]
fn equal_lines_of_a_function_are_one_fault() {
    let site = |line: u32| format!("a.c:{line}\nadd (a.c:{line})\nsource#12");
    let mut builder = TraceBuilder::new();
    let threads = ["T1", "T2"].map(|name| builder.thread(name));
    for (at, var) in (0..).zip(["Item#1.n", "Item#2.n"]) {
        let var = builder.var(var);
        for (which, thread) in (0..).zip(threads) {
            let site = builder.site(&site(5 + 10 * at + which));
            // Each has a lock of its own, so that nothing else makes them one.
            let lock = builder.lock(&format!("m{at}{which}"));
            builder.push(thread, Op::Lock(LockOp::Acquire, lock), site);
            builder.push(thread, Op::Access(AccessOp::Write, var), site);
            builder.push(thread, Op::Lock(LockOp::Release, lock), site);
        }
    }
    let trace = builder.finish().expect("it is well formed");
    let outcome = found(&trace, "races.exact", &Settings::default());
    let [fault] = &outcome.findings[..] else { panic!("{:?}", outcome.findings) };
    assert_eq!(fault.findings().count(), 2);
    assert!(fault.fingerprints().all(|name| name == fault.fingerprint));
}

#[test]
fn functions_of_which_no_line_is_known_do_not_make_blocks_one() {
    let count = |text: &str| {
        let mut builder = TraceBuilder::new();
        let threads = ["T1", "T2"].map(|name| builder.thread(name));
        for at in 1..=2 {
            let object = builder.object(&format!("block#{at}"));
            let site = builder.site(&format!("a.c:{at}\nmain (a.c:{at}){text}"));
            builder.push(threads[0], Op::Object(ObjectOp::Alloc, object), site);
        }
        for at in 1..=2 {
            let var = builder.var(&format!("block#{at}"));
            // Each has a lock of its own, so that nothing else makes them one.
            for thread in threads {
                let site = builder.site(&format!("a.c:{}\nwork (a.c:{at}){text}", 10 + at));
                let name = format!("m{at}{}", builder.names().threads.name(thread));
                let lock = builder.lock(&name);
                builder.push(thread, Op::Lock(LockOp::Acquire, lock), site);
                builder.push(thread, Op::Access(AccessOp::Write, var), site);
                builder.push(thread, Op::Lock(LockOp::Release, lock), site);
            }
        }
        let trace = builder.finish().expect("it is well formed");
        found(&trace, "races.exact", &Settings::default()).findings.len()
    };
    assert_eq!((count(""), count("\nsource#12")), (2, 1));
}

#[test]
fn what_was_observed_is_shown_as_it_was() {
    let text = "T1|w(a)|a.c:1\nT2|w(b)|b.c:1\nT1|w(a)|a.c:2\nT2|w(b)|b.c:2\n\
        T1|w(x)|a.c:3\nT2|w(x)|b.c:3\n";
    let trace = reweave_testkit::std(text);
    let outcome = found(&trace, "races.exact", &Settings::default());
    let proof = outcome.findings[0].finding.evidence.proof().expect("it has a schedule");
    // How the run began is all before the two.
    assert_eq!(proof.reordering().base.iter().sum::<u32>(), 4);
    assert!(proof.reordering().schedule.is_empty());
}

#[test]
fn a_fault_is_listed_with_what_it_shares_a_mark_with() {
    // The second trace shows a place of each fault of the first, the third that of one.
    let first = "T1|acq(p)|z.c:1\nT1|acq(q)|z.c:2\nT1|w(x)|a.c:1\nT1|rel(q)|z.c:3\nT1|rel(p)|z.c:4\n\
        T2|acq(r)|z.c:5\nT2|acq(s)|z.c:6\nT2|w(x)|b.c:2\nT2|rel(s)|z.c:7\nT2|rel(r)|z.c:8\n\
        T3|acq(p)|y.c:1\nT3|acq(r)|y.c:2\nT3|w(x)|c.c:3\nT3|rel(r)|y.c:3\nT3|rel(p)|y.c:4\n\
        T4|acq(q)|y.c:5\nT4|acq(s)|y.c:6\nT4|w(x)|d.c:4\nT4|rel(s)|y.c:7\nT4|rel(q)|y.c:8\n";
    let texts = [first, "T1|w(x)|a.c:1\nT2|w(x)|c.c:3\n", "T1|w(x)|c.c:3\nT2|w(x)|d.c:4\n"];
    let mut traces = texts.map(|text| {
        let trace = reweave_testkit::std(text);
        let outcome = found(&trace, "races.exact", &Settings::default());
        (trace, outcome)
    });
    assert_eq!(traces[0].1.findings.len(), 2);
    let names = ["t0", "t1", "t2"];
    let mut examined: Vec<Examined<'_>> = names
        .into_iter()
        .zip(&mut traces)
        .map(|(name, (trace, outcome))| (name, &*trace, outcome))
        .collect();
    list_once(&mut examined);
    let listed = |at: usize| {
        let [listed] = &traces[at].1.listed[..] else { panic!("{:?}", traces[at].1.listed) };
        (&*listed.trace, &*listed.id)
    };
    assert_eq!([listed(1), listed(2)], [("t0", "R1"), ("t0", "R2")]);
    let shown: Vec<&[String]> = traces[0].1.findings.iter().map(|it| &it.traces[..]).collect();
    assert_eq!(shown, [["t1"], ["t2"]]);
}

#[test]
fn what_several_traces_show_is_listed_once() {
    let mut traces = [
        "T1|w(x)|a.c:1\nT2|w(x)|a.c:2\n",
        "T3|w(x)|a.c:1\nT4|r(x)|a.c:3\nT3|w(y)|a.c:4\nT4|w(y)|a.c:5\n",
        // Nobody knows what is there.
        "T1|w(x)|1\nT2|w(x)|2\n",
    ]
    .map(|text| {
        let trace = reweave_testkit::std(text);
        let outcome = found(&trace, "races.exact", &Settings::default());
        (trace, outcome)
    });
    let names = ["one", "two", "three"];
    let mut examined: Vec<Examined<'_>> = names
        .into_iter()
        .zip(&mut traces)
        .map(|(name, (trace, outcome))| (name, &*trace, outcome))
        .collect();
    list_once(&mut examined);
    let [one, two, three] = &traces;
    assert_eq!(one.1.findings[0].traces, ["two"]);
    let left: Vec<&str> = two.1.findings.iter().map(|it| it.id.as_str()).collect();
    let [listed] = &two.1.listed[..] else { panic!("{:?}", two.1.listed) };
    assert_eq!((&*listed.trace, &*listed.id, &*listed.fault.id), ("one", "R1", "R1"));
    assert_eq!(left, ["R2"]);
    assert_eq!((three.1.findings.len(), three.1.listed.len()), (1, 0));
}
