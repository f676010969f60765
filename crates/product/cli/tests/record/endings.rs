//! How a run ended is in its trace, and what ended badly is found by `check` and explained.

use std::collections::BTreeSet;

use reweave_trace::EndKind;
use serde_json::Value;

use super::harness::{Recorded, Workshop, compilers};

const PROGRAM: &str = "endings.c";

/// Records the program, built by `compiler`, which ends by `way`.
fn ended(compiler: &str, way: &str, options: &[&str]) -> (Workshop, Recorded) {
    let folder = Workshop::with(&[PROGRAM]);
    folder.build(PROGRAM, compiler, &["-O1"]);
    let recorded = folder.record(options, &["endings", way]);
    (folder, recorded)
}

/// What `command` says of the trace, and with which exit code.
fn said(folder: &Workshop, command: &[&str]) -> (Option<i32>, String) {
    let output = folder.reweave(command);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[track_caller]
fn check(way: &str, options: &[&str], kind: EndKind, parts: &[&str]) {
    for compiler in compilers("c") {
        let (folder, recorded) = ended(compiler, way, options);
        let run_end = recorded.trace.run_end().expect("the recorder says how the run ended");
        assert_eq!(run_end.kind, kind, "{compiler}: {}", recorded.said);
        let (code, report) = said(&folder, &["check", "run.rwt"]);
        assert_eq!(code, Some(66), "{compiler}: {report}");
        for part in parts {
            assert!(report.contains(part), "{compiler}: {part} in {report}");
        }
    }
}

const STALLS: [&str; 2] = ["--stall-timeout", "1"];

#[test]
fn a_thread_that_waits_for_its_own_lock_is_found() {
    let waits = "T1 waits for lock a, which it holds itself at endings.c:17";
    check("self", &STALLS, EndKind::SelfDeadlock, &["S1 stuck  observed", waits]);
}

#[test]
fn a_thread_that_waits_for_a_lock_whose_holder_ended_is_found() {
    let waits = "held when it ended at endings.c:22";
    check("held", &STALLS, EndKind::AbandonedLock, &["S1 stuck", waits]);
}

#[test]
fn threads_that_wait_for_each_others_locks_are_found() {
    let waits = "T1 waits for lock b, which T2 holds at endings.c:29; \
                 T2 waits for lock a, which T1 holds at endings.c:36";
    let parts = ["D1 deadlock  observed", waits, "1 finding (deadlock 1)"];
    check("cycle", &STALLS, EndKind::Deadlock, &parts);
}

/// The ids, guarantees and fingerprints of the deadlocks in a report, which has nothing else.
#[track_caller]
fn deadlocks(report: &str) -> Vec<(String, String, String)> {
    let report: Value = serde_json::from_str(report).expect("the report is JSON");
    let text = |value: &Value| value.as_str().expect("it is text").to_owned();
    let deadlock = |finding: &Value| {
        assert_eq!(finding["kind"], "deadlock", "{finding:#}");
        let is_observed = finding["guarantee"] == "observed";
        assert_eq!(finding["happened"] == true, is_observed, "{finding:#}");
        let blocked = finding["witness"]["then"].as_array().expect("it has a schedule").len();
        assert_eq!(finding["events"].as_array().map(Vec::len), Some(blocked), "{finding:#}");
        (text(&finding["id"]), text(&finding["guarantee"]), text(&finding["fingerprint"]))
    };
    report["findings"].as_array().expect("there are findings").iter().map(deadlock).collect()
}

/// It is called what it is called in runs in which it is predicted, and what else can deadlock at the same line stays
/// another finding.
#[test]
fn a_deadlock_that_happened_is_one_finding() {
    let Some(compiler) = compilers("c").first().copied() else { return };
    let folder = Workshop::with(&["deadlocked.c"]);
    folder.build("deadlocked.c", compiler, &["-O0"]);
    let json = ["check", "run.rwt", "--format", "json"];
    for count in ["2", "3"] {
        folder.record(&[], &["deadlocked", count]);
        let (_, report) = said(&folder, &json);
        let predicted = deadlocks(&report);
        assert_eq!(predicted.len(), 2, "{report}");
        assert!(predicted.iter().all(|it| it.1 == "witnessed"), "{report}");
        folder.put("base.json", &report);
        std::fs::rename(folder.path("run.rwt"), folder.path("well.rwt")).unwrap();

        folder.record(&STALLS, &["deadlocked", count, "meet"]);
        let (_, report) = said(&folder, &json);
        let [one, other] = &deadlocks(&report)[..] else { panic!("{report}") };
        assert_eq!([&*one.0, &*one.1, &*other.0, &*other.1], ["D1", "observed", "D2", "witnessed"]);
        let names = |all: &[(String, String, String)]| -> BTreeSet<String> {
            all.iter().map(|it| it.2.clone()).collect()
        };
        assert_eq!(names(&predicted), names(&[one.clone(), other.clone()]));
        let (code, report) = said(&folder, &["check", "run.rwt", "--baseline", "base.json"]);
        assert_eq!(code, Some(0), "{report}");
        let (_, report) = said(&folder, &["check", "well.rwt", "run.rwt", "--format", "json"]);
        let reports: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(reports[1]["findings"].as_array().map(Vec::len), Some(0), "{report}");

        let (_, report) = said(&folder, &["explain", "run.rwt", "D1"]);
        assert!(
            report.contains("Who waits for whom") && report.contains("How it happened"),
            "{report}"
        );
        assert!(report.contains("As it was observed:"), "{report}");
        assert!(!report.contains("did not show it") && !report.contains("next:"), "{report}");
        let refused = folder.reweave(&["confirm", "run.rwt", "D1", "--", "./deadlocked", count]);
        let report = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{report}");
        assert!(report.contains("D1 happened in the recorded run"), "{report}");
    }
}

#[test]
fn a_program_in_which_no_thread_can_go_on_is_found() {
    let waits = "T1 waits on condition condition at endings.c:42";
    check("hang", &STALLS, EndKind::Hang, &["S1 stuck", "main waits for T1 to end at ", waits]);
}

#[test]
fn a_thread_that_only_ticks_does_not_hide_that_the_others_hang() {
    check("tick", &STALLS, EndKind::Hang, &["S1 stuck", "T1 waits on condition condition"]);
}

#[test]
fn a_failed_assertion_is_found_with_what_it_says() {
    let text = "Assertion `x == 1' failed.";
    let parts = ["F1 failure  observed", "T1 failed an assertion at endings.c:57", text];
    check("assert", &[], EndKind::FailedAssertion, &parts);
    check("assert", &["--mode", "free"], EndKind::FailedAssertion, &parts);
}

#[test]
fn a_crash_is_found_where_it_was() {
    let parts = ["F1 failure", "SIGSEGV", "T1 was ended by SIGSEGV at endings.c:63"];
    check("crash", &[], EndKind::Crash, &parts);
    check("crash", &["--mode", "free"], EndKind::Crash, &parts);
}

#[test]
fn a_program_that_gives_up_is_found() {
    check("abort", &[], EndKind::FailedAssertion, &["F1 failure", "T1 aborted at endings.c:69"]);
}

#[test]
fn a_run_that_ends_well_says_so_and_nothing_is_found() {
    let Some(compiler) = compilers("c").first().copied() else { return };
    let (folder, recorded) = ended(compiler, "well", &[]);
    let kind = recorded.trace.run_end().map(|run_end| run_end.kind);
    assert_eq!(kind, Some(EndKind::Exited), "{}", recorded.said);
    let (code, report) = said(&folder, &["check", "run.rwt"]);
    assert!(!report.contains("endings."), "{code:?} {report}");
}

/// What ended badly is like any other finding: for every format, for `explain`, for policies.
#[test]
fn every_report_shows_how_the_run_ended() {
    let Some(compiler) = compilers("c").first().copied() else { return };
    let (folder, _) = ended(compiler, "self", &STALLS);
    let waits = "waits for lock a, which it holds itself";
    for format in ["text", "json", "html", "sarif", "junit", "github"] {
        let (code, report) = said(&folder, &["check", "run.rwt", "--format", format]);
        assert_eq!(code, Some(66), "{format}");
        assert!(report.contains(waits), "{format}: {report}");
    }
    let (code, report) = said(&folder, &["deadlocks", "run.rwt"]);
    assert_eq!((code, report.contains(waits)), (Some(66), true), "{report}");
    let (code, report) = said(&folder, &["check", "--only", "races", "run.rwt"]);
    assert_eq!((code, report.contains(waits)), (Some(0), false), "{report}");
    let (code, report) = said(&folder, &["explain", "run.rwt", "S1"]);
    assert_eq!((code, report.contains("How to fix it")), (Some(0), true), "{report}");
    let refused = folder.reweave(&["confirm", "run.rwt", "S1", "--", "./endings", "self"]);
    let report = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{report}");
    assert!(report.contains("S1 happened in the recorded run"), "{report}");
    folder.put("suppressions", "deadlock:twice\nstuck:twice\n");
    let words = ["check", "run.rwt", "--suppress", "suppressions"];
    let (code, report) = said(&folder, &words);
    assert_eq!(code, Some(0), "{report}");
    let (code, _) = said(&folder, &["check", "run.rwt", "--format", "json", "-o", "base.json"]);
    assert_eq!(code, Some(66));
    let (code, report) = said(&folder, &["check", "run.rwt", "--baseline", "base.json"]);
    assert_eq!(code, Some(0), "{report}");
    // Formats that can carry it do.
    let (_, _) = said(&folder, &["convert", "run.rwt", "run.jsonl"]);
    let (code, report) = said(&folder, &["check", "run.jsonl"]);
    assert_eq!((code, report.contains(waits)), (Some(66), true), "{report}");
}

#[test]
fn a_search_that_cannot_see_the_writers_of_reads_does_not_say_that_there_is_nothing() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["apart_in_time.c"]);
        folder.build("apart_in_time.c", compiler, &["-O1"]);
        folder.record(&["--mode", "free"], &["apart_in_time"]);
        assert!(folder.findings().contains(&"race".to_owned()), "{compiler}");
        folder.record(&["--mode", "free"], &["apart_in_time", "close"]);
        let (code, report) = said(&folder, &["check", "run.rwt"]);
        let is_told = report.contains("record with `--mode serial`");
        assert!(code == Some(66) || code == Some(3) && is_told, "{compiler}: {code:?} {report}");
    }
}

#[test]
fn globals_that_start_as_zero_are_known_to() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["zeroes.c"]);
        folder.build("zeroes.c", compiler, &["-O1"]);
        folder.record(&[], &["zeroes"]);
        let words = ["states", "find", "run.rwt", "--predicate", "x == 0 && y == 1"];
        let refused = folder.reweave(&words);
        let advice = "`reweave record --keep x -- CMD`";
        assert!(String::from_utf8_lossy(&refused.stderr).contains(advice), "{refused:?}");
        folder.record(&["--keep", "x", "--keep", "y"], &["zeroes"]);
        for (predicate, expected) in [("x == 0 && y == 1", 66), ("x == 2", 0)] {
            let words = ["states", "find", "run.rwt", "--predicate", predicate];
            let (code, report) = said(&folder, &words);
            assert_eq!(code, Some(expected), "{compiler} {predicate}: {report}");
        }
    }
}
