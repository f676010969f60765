//! What is said of threads that are stuck and of misuse: why just this is a fault, and how it is repaired.

use reweave_analysis::{Outcome, Settings};
use reweave_catalog::Quiet;
use reweave_report::Examined;
use reweave_testkit::events;
use reweave_trace::{EndKind, Misuse, MisuseKind, RunEnd, ThreadEnd, Trace, TraceBuilder};
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
    let outcome = found(&trace, "deadlocks.stuck");
    let mut page = Vec::new();
    let examined = [Examined::new("run.std", &trace, &outcome)];
    reweave_report::html(&mut page, &examined).expect("a vector takes anything");
    let page = String::from_utf8(page).expect("pages are UTF-8");
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
