//! `run`: what programs do, and what is recorded of it.

use serde_json::json;

use super::Folder;

const COUNTER: &str = "shared hits;\nmain {\n    coforeach (i in 0..2) {\n        let seen = hits;\n        \
                       hits = seen + 1;\n    }\n    assert(hits == 2);\n}\n";

const CROSSED: &str = "lock a;\nlock b;\nthread left { sync (a) { sync (b) { skip; } } }\n\
                       thread right { sync (b) { sync (a) { skip; } } }\n";

#[test]
fn the_same_seed_gives_the_same_trace() {
    let folder = Folder::with("counter.rw", COUNTER);
    for name in ["first.std", "second.std"] {
        folder.run(&["run", "counter.rw", "--seed", "7", "-o", name]).expect(0);
    }
    assert_eq!(folder.read("first.std"), folder.read("second.std"));
    let out = folder.run(&["run", "counter.rw", "--seed", "7"]).expect(0).out();
    assert!(out.starts_with("counter.rw, seed 7: finished after "), "{out}");
}

#[test]
fn a_recorded_run_is_a_trace_like_any_other() {
    let folder = Folder::with("crossed.rw", CROSSED);
    folder.run(&["run", "crossed.rw", "--scheduler", "roundrobin", "-o", "run.rwt"]).expect(0);
    folder.run(&["run", "crossed.rw", "--seed", "3", "-o", "run.rwt"]).expect(0);
    folder.run(&["stats", "run.rwt"]).expect(0);
}

#[test]
fn every_outcome_of_all_schedules_is_told_once() {
    let folder = Folder::with("counter.rw", COUNTER);
    let arguments = ["run", "counter.rw", "--scheduler", "exhaustive", "--format", "json"];
    let report = folder.run(&arguments).expect(0).json();
    assert_eq!(report["complete"], json!(true));
    let runs = report["runs"].as_array().unwrap();
    let results: Vec<_> = runs.iter().map(|run| (&run["result"]["hits"], &run["faults"])).collect();
    let message = "the assertion does not hold";
    let fault = json!({ "thread": "main", "line": 7, "kind": "assertion", "message": message });
    let fault = json!([fault]);
    assert_eq!(results, [(&json!(1), &fault), (&json!(2), &json!([]))]);
}

#[test]
fn schedules_that_never_end_are_told_of() {
    let folder = Folder::with("spin.rw", "shared f;\nthread a { while (!f) { skip; } }\n");
    let out = folder.run(&["run", "spin.rw", "--scheduler", "exhaustive"]).expect(0).out();
    assert!(out.starts_with("spin.rw: 0 outcomes") && out.contains("never end"), "{out}");
}

#[test]
fn the_sequential_meaning_leaves_out_what_is_optional() {
    let program = "shared x;\nmain {\n    coforeach (i in 1..=2) {\n        if (*) { x = 2 * x + i; }\n    \
                   }\n}\n";
    let folder = Folder::with("optional.rw", program);
    let arguments = ["run", "optional.rw", "--scheduler", "sequential", "--format", "json"];
    let report = folder.run(&arguments).expect(0).json();
    let runs = report["runs"].as_array().unwrap();
    let results: Vec<_> = runs.iter().map(|run| run["result"]["x"].as_i64().unwrap()).collect();
    assert_eq!(results, [0, 1, 2, 4, 5]);
}

#[test]
fn an_outcome_can_be_asked_for() {
    let folder = Folder::with("counter.rw", COUNTER);
    let arguments = ["run", "counter.rw", "--scheduler", "exhaustive", "-o", "second.std"];
    let ran = folder.run(&[&arguments[..], &["--outcome", "2"]].concat()).expect(0);
    assert!(ran.err().contains("trace of outcome 2"), "{}", ran.err());
    let ran = folder.run(&[&arguments[..], &["--outcome", "9"]].concat()).expect(2);
    assert!(ran.err().contains("there are only 2 outcomes"), "{}", ran.err());
}

#[test]
fn a_deadlock_says_who_waits_for_what() {
    let folder = Folder::with("crossed.rw", CROSSED);
    let arguments = ["run", "crossed.rw", "--scheduler", "exhaustive", "-o", "worst.std"];
    let out = folder.run(&arguments).expect(0).out();
    assert!(out.contains("deadlock after 2 steps\n  left waits at line 3 for lock `b`\n"), "{out}");
    // The trace is that of the outcome at fault, and shows who asked for what in the end.
    let trace = String::from_utf8(folder.read("worst.std")).unwrap();
    assert_eq!(trace.lines().count(), 4, "{trace}");
    assert!(trace.contains("left|req(b)|crossed.rw:3"), "{trace}");
    folder.run(&["deadlocks", "worst.std"]).expect(66);
}

#[test]
fn several_runs_are_several_traces() {
    let folder = Folder::with("counter.rw", COUNTER);
    folder.run(&["run", "counter.rw", "--runs", "3", "-o", "run.std.gz"]).expect(0);
    assert_eq!(folder.names(), ["counter.rw", "run-1.std.gz", "run-2.std.gz", "run-3.std.gz"]);
}

#[test]
fn a_watched_state_is_found() {
    let folder = Folder::with("counter.rw", COUNTER);
    let ran = folder.run(&["run", "counter.rw", "--watch", "never(hits > 0)"]).expect(66);
    assert!(ran.out().contains("breaks never(hits > 0)"), "{}", ran.out());
    folder.run(&["run", "counter.rw", "--watch", "never(hits > 9)"]).expect(0);
    let ran = folder.run(&["run", "counter.rw", "--watch", "hits >"]).expect(2);
    assert!(ran.err().contains("predicate"), "{}", ran.err());
}

#[test]
fn what_is_wrong_with_a_program_is_drawn() {
    let folder = Folder::with("bad.rw", "main {\n    x = 1;\n}\n");
    let ran = folder.run(&["run", "bad.rw"]).expect(2);
    assert!(ran.err().contains("--> bad.rw:2:5"), "{}", ran.err());
    assert_eq!(ran.out(), "");
    folder.put("binary.rw", [0xff, 0xfe]);
    let ran = folder.run(&["run", "binary.rw"]).expect(2);
    assert!(ran.err().contains("binary.rw: line 1: not UTF-8"), "{}", ran.err());
    assert!(folder.run(&["run", "absent.rw"]).expect(2).err().contains("absent.rw"));
}

#[test]
fn a_run_that_does_not_end_is_cut_off() {
    let folder = Folder::with("spin.rw", "shared x;\nmain { while (1) { x = x + 1; } }\n");
    let out = folder.run(&["run", "spin.rw", "--steps", "1000"]).expect(0).out();
    assert!(out.contains("stopped after 1000 steps: the maximum of `--steps`"), "{out}");
}

#[test]
fn programs_come_from_standard_input_too() {
    let ran = Folder::new().run_with(COUNTER.as_bytes(), &["run", "-"]).expect(0);
    assert!(ran.out().contains("hits = "), "{}", ran.out());
}
