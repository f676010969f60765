//! What is said of threads that are stuck and of misuse: why just this is a fault, and how it is repaired.

use reweave_analysis::{Outcome, Settings};
use reweave_catalog::Quiet;
use reweave_report::Examined;
use reweave_testkit::events;
use reweave_trace::{
    AccessOp, BlockId, EndKind, LockId, LockOp, Marker, Misuse, MisuseKind, Op, RunEnd, ThreadEnd,
    Trace, TraceBuilder, VarId,
};
use serde_json::Value;

fn found(trace: &Trace, only: &str) -> Outcome {
    let analyses = reweave_catalog::select(only, &[]).expect("there is such an analysis");
    reweave_catalog::run(trace, &analyses, &Settings::default(), &Quiet)
}

/// Why the first finding of `only` in `trace` is a fault, and its usual fix.
fn reasons(trace: &Trace, only: &str) -> [String; 2] {
    let outcome = found(trace, only);
    let examined = Examined::new("run.std", trace, &outcome);
    let mut out = Vec::new();
    reweave_report::explanation_json(&mut out, &examined, &outcome.findings[0])
        .expect("a vector takes anything");
    let document: Value = serde_json::from_slice(&out).expect("it is JSON");
    ["why", "fix"].map(|name| {
        let paragraphs = document["explanation"][name].as_array().expect("it is a list");
        paragraphs.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
    })
}

#[track_caller]
fn check(trace: &Trace, only: &str, why: &str, fix: &str) {
    let [said_why, said_fix] = reasons(trace, only);
    assert!(said_why.contains(why), "{why} in {said_why}");
    assert!(said_fix.contains(fix), "{fix} in {said_fix}");
}

/// One thread waits for a flag that another sets and notifies, `notifying` so.
fn waiting(notifying: &str) -> Trace {
    reweave_testkit::std(&format!(
        "main|fork(T1)|a.c:34\nmain|fork(T2)|a.c:35\nT1|acq(lock)|a.c:24\nT1|r(done)|a.c:25|0\n\
         T1|rel(lock)|a.c:26\nT1|wait(finished)|a.c:26\n{notifying}T1|wake(finished)|a.c:26\n\
         T1|acq(lock)|a.c:26\nT1|r(done)|a.c:25|1\nmain|join(T2)|a.c:36\nT1|rel(lock)|a.c:27\n\
         main|join(T1)|a.c:37\n"
    ))
}

#[test]
fn who_notifies_without_the_lock_is_told_to_take_it() {
    let trace = waiting("T2|w(done)|a.c:18|1\nT2|notify(finished)|a.c:19\n");
    check(
        &trace,
        "deadlocks.stuck",
        "after a thread has decided to wait and before it waits",
        "T2 notifies at a.c:19 without `lock`",
    );
}

#[test]
fn a_page_shows_the_notify_that_is_lost() {
    let trace = waiting("T2|w(done)|a.c:18|1\nT2|notify(finished)|a.c:19\n");
    let page = page(&trace, "deadlocks.stuck");
    assert!(page.contains("nobody waits yet when this notifies"));
}

#[test]
fn who_takes_the_last_token_is_named() {
    let drawing = "
    main       T1             T2
    start(permits)=1
    fork(T1)
    fork(T2)
               take(permits)
               post(permits)
    join(T1)
                              take(permits)
    join(T2)
";
    let trace = reweave_testkit::fixture::builder(drawing).finish().expect("it is well formed");
    let why = "no thread is left that posts it";
    check(&trace, "deadlocks.stuck", why, "T2 takes one at location 6");
}

/// A run of two threads that ended so.
fn ended(kind: EndKind, state: &str) -> Trace {
    let mut builder = builder();
    let threads =
        [3, 4].map(|number| ThreadEnd { event: events(&[number])[0], state: state.into() });
    let (text, misuses) = (String::new(), Vec::new());
    builder.set_run_end(RunEnd { kind, text, threads: threads.to_vec(), misuses });
    builder.finish().expect("it is well formed")
}

fn builder() -> TraceBuilder {
    let drawing = "
    T1          T2
    acq(m)
                acq(n)
    branch
                branch
";
    reweave_testkit::fixture::builder(drawing)
}

#[test]
fn what_a_run_ended_in_is_explained_as_what_it_was() {
    let cases = [
        (EndKind::Deadlock, "", "in a circle", "in the same order everywhere"),
        (EndKind::SelfDeadlock, "", "holds already", "before the call that takes it again"),
        (EndKind::AbandonedLock, "", "ended without releasing it", "on every way out"),
        (
            EndKind::Hang,
            "waits for T2 to end",
            "waits for the end of a thread",
            "none that waits for it",
        ),
        (EndKind::Hang, "waits for semaphore s", "at zero", "post the semaphore on every way out"),
        (EndKind::Hang, "does something else", "never goes on", "release it on every way out"),
    ];
    for (kind, state, why, fix) in cases {
        check(&ended(kind, state), "endings.stuck", why, fix);
    }
}

#[test]
fn every_misuse_has_reasons_of_its_own() {
    let mut said = Vec::new();
    for kind in MisuseKind::ALL {
        let mut builder = builder();
        let event = events(&[3])[0];
        let misuses = vec![Misuse { kind, event, other: None, text: "does it".to_owned() }];
        let (end, text) = (EndKind::Exited, String::new());
        builder.set_run_end(RunEnd { kind: end, text, threads: Vec::new(), misuses });
        let trace = builder.finish().expect("it is well formed");
        let [why, fix] = reasons(&trace, "endings.misuse");
        assert!(fix.starts_with("The usual fix is"), "{kind:?}: {fix}");
        said.push((why, fix));
    }
    let count = said.len();
    said.sort_unstable();
    said.dedup();
    assert_eq!(said.len(), count, "{said:#?}");
}

#[test]
fn threads_that_wait_for_the_ends_of_each_other_are_a_circle() {
    let mut builder = builder();
    let states = [(3, "waits for T2 to end"), (4, "waits for T1 to end")];
    let threads = states
        .map(|(number, state)| ThreadEnd { event: events(&[number])[0], state: state.into() });
    let (kind, text, misuses) = (EndKind::Hang, String::new(), Vec::new());
    builder.set_run_end(RunEnd { kind, text, threads: threads.to_vec(), misuses });
    let trace = builder.finish().expect("it is well formed");
    check(
        &trace,
        "endings.stuck",
        "waits for the end of another of them",
        "none that waits for it",
    );
    // What the trace has no operation for is said as well.
    let page = page(&trace, "endings.stuck");
    assert!(page.contains("\"action\":\"waits for T2 to end\""), "{page}");
}

/// The page of what `only` finds in `trace`.
fn page(trace: &Trace, only: &str) -> String {
    let outcome = found(trace, only);
    let mut page = Vec::new();
    let examined = [Examined::new("run.std", trace, &outcome)];
    reweave_report::html(&mut page, &examined).expect("a vector takes anything");
    String::from_utf8(page).expect("pages are UTF-8")
}

#[test]
fn a_page_says_what_a_misuse_does() {
    let mut builder = builder();
    let (kind, event) = (MisuseKind::ReleaseOfOthers, events(&[3])[0]);
    let misuses = vec![Misuse { kind, event, other: None, text: "releases n".to_owned() }];
    let (kind, text) = (EndKind::Exited, String::new());
    builder.set_run_end(RunEnd { kind, text, threads: Vec::new(), misuses });
    let page = page(&builder.finish().expect("it is well formed"), "endings.misuse");
    assert!(page.contains("\"action\":\"releases a mutex that it does not hold\""), "{page}");
}

/// What usually repairs the first fault of `lines`: threads, operations, places and functions.
fn fix(lines: &[(&str, Op, &str, &str)], names: &[&str], only: &str) -> String {
    let mut builder = TraceBuilder::new();
    for name in names {
        builder.lock(name);
    }
    builder.var("x");
    builder.block("b");
    for &(thread, op, place, function) in lines {
        let thread = builder.thread(thread);
        let frame = format!("{function} ({place})");
        let site = builder.names().site(place, [frame.as_str()]);
        builder.push(thread, op, site);
    }
    let trace = builder.finish().expect("it is well formed");
    let [_, fix] = reasons(&trace, only);
    fix
}

#[test]
fn a_variable_that_is_set_at_first_use_is_to_be_set_once() {
    let [read, write] =
        [AccessOp::Read, AccessOp::Write].map(|op| Op::Access(op, VarId::from_number(1).unwrap()));
    let of = |file: &str| {
        let [look, set] = ["4", "6"].map(|line| format!("{file}:{line}"));
        let lines =
            [("T1", read, &*look, "get"), ("T1", write, &set, "get"), ("T2", read, &look, "get")];
        fix(&lines, &[], "races.exact")
    };
    assert!(of("a.c").contains("at first use, `pthread_once` does that once"), "{}", of("a.c"));
    assert!(of("a.cpp").contains("`std::call_once`"));
    assert!(of("a.rs").contains("`OnceLock`"));
    assert!(!of("a.c").contains("tells one thread that another is done"));
    let (acquire, release) = (LockOp::Acquire, LockOp::Release);
    let lock = |op| Op::Lock(op, LockId::from_number(1).unwrap());
    let lines = [
        ("T1", lock(acquire), "a.cpp:3", "get"),
        ("T1", write, "a.cpp:6", "get"),
        ("T1", lock(release), "a.cpp:7", "get"),
        ("T2", read, "a.cpp:2", "get"),
    ];
    let said = fix(&lines, &["m"], "races.exact");
    assert!(said.contains("take `m` around a.cpp:2 as well"), "{said}");
    assert!(said.contains("only looks whether the variable is set"), "{said}");
}

#[test]
fn locks_are_acquired_at_once_only_where_a_language_can() {
    let lines = |file: &str| {
        let mut lines = Vec::new();
        for (thread, [one, other]) in [("T1", [0, 1]), ("T2", [1, 0])] {
            for (op, lock, line) in [
                (LockOp::Acquire, one, 3),
                (LockOp::Acquire, other, 4),
                (LockOp::Release, other, 5),
                (LockOp::Release, one, 6),
            ] {
                lines.push((
                    thread,
                    Op::Lock(op, LockId::from_number(lock + 1).unwrap()),
                    format!("{file}:{line}"),
                ));
            }
        }
        let lines: Vec<_> =
            lines.iter().map(|(thread, op, place)| (*thread, *op, &**place, "move")).collect();
        fix(&lines, &["m", "n"], "deadlocks.exact")
    };
    for file in ["a.c", "a.rs"] {
        let said = lines(file);
        assert!(
            said.contains("acquire them there in an order that") && !said.contains("C++"),
            "{said}"
        );
    }
    let said = lines("a.cpp");
    assert!(said.contains("acquire them there at once (`std::scoped_lock`"), "{said}");
}

#[test]
fn a_block_over_two_functions_is_to_be_locked_by_their_caller() {
    let [read, write] =
        [AccessOp::Read, AccessOp::Write].map(|op| Op::Access(op, VarId::from_number(1).unwrap()));
    let [acquire, release] =
        [LockOp::Acquire, LockOp::Release].map(|op| Op::Lock(op, LockId::from_number(1).unwrap()));
    let of = |functions: [&'static str; 2]| {
        let block = BlockId::from_number(1).unwrap();
        let [begin, end] = [Marker::Begin(block), Marker::End(block)].map(Op::Marker);
        let mut lines = vec![("T1", begin, "a.c:1", "all")];
        for (thread, op, place, function) in
            [("T1", read, "a.c:3", functions[0]), ("T1", write, "a.c:13", functions[1])]
        {
            lines.extend([acquire, op, release].map(|op| (thread, op, place, function)));
        }
        lines.push(("T1", end, "a.c:20", "all"));
        lines.extend([acquire, write, release].map(|op| ("T2", op, "a.c:13", functions[1])));
        fix(&lines, &["m"], "atomicity.blocks")
    };
    let said = of(["look", "set"]);
    assert!(
        said.contains("hold it from a.c:3 to a.c:13. These are in different functions"),
        "{said}"
    );
    let said = of(["both", "both"]);
    assert!(said.contains("hold it from a.c:3") && !said.contains("different functions"), "{said}");
}
