//! `races`, `deadlocks`, `atomicity`: what each finds, and that they keep the manners of `check`.

use serde_json::{Value, json};

use super::{CLEAN, Folder, RACE};

/// A lock handed from one thread to the other hides a race, as in Figure 2 of the paper on CP.
const HANDED: &str = "\
T1|acq(m)|1
T1|w(x)|2
T1|rel(m)|3
T2|acq(m)|4
T2|rel(m)|5
T2|w(x)|6
";

const CROSSED: &str = "\
T1|acq(a)|1
T1|acq(b)|2
T1|rel(b)|3
T1|rel(a)|4
T2|acq(b)|5
T2|acq(a)|6
T2|rel(a)|7
T2|rel(b)|8
";

const SPOILED: &str = "\
T1|begin(twice)|1
T1|r(x)|2
T1|w(x)|3
T1|end(twice)|4
T2|w(x)|5
";

/// A critical section that a write outside of the lock can spoil.
const OPEN: &str = "T1|acq(m)|1\nT1|r(x)|2\nT1|w(x)|3\nT1|rel(m)|4\nT2|w(x)|5\n";

fn report(trace: &str, arguments: &[&str], code: i32) -> Value {
    let folder = Folder::with("run.std", trace);
    let arguments = [arguments, &["--format", "json", "run.std"]].concat();
    folder.run(&arguments).expect(code).json()
}

fn analyses(report: &Value) -> Vec<&str> {
    let coverage = report["coverage"].as_array().expect("it is a list");
    coverage.iter().map(|entry| entry["analysis"].as_str().expect("it has a name")).collect()
}

#[test]
fn each_relation_is_an_analysis_of_its_own() {
    for relation in ["hb", "shb", "wcp", "cp", "syncp", "exact"] {
        let report = report(RACE, &["races", "--relation", relation], 66);
        assert_eq!(analyses(&report), [format!("races.{relation}")]);
        let counters = &report["coverage"][0]["counters"];
        for name in ["pairs", "second_events", "vars", "location_pairs"] {
            assert_eq!(counters[name], 1, "{relation} {name}");
        }
    }
    assert_eq!(analyses(&report(RACE, &["races"], 66)), ["races.exact"]);
}

#[test]
fn a_race_that_a_lock_hides_is_found_beyond_happens_before() {
    for (relation, code) in [("hb", 0), ("shb", 0), ("wcp", 66), ("cp", 66), ("exact", 66)] {
        report(HANDED, &["races", "--relation", relation], code);
    }
}

#[test]
fn a_window_goes_with_cp_alone() {
    let folder = Folder::with("run.std", HANDED);
    for relation in [&["--relation", "hb"][..], &[]] {
        let arguments = [&["races", "--window", "3", "run.std"][..], relation].concat();
        let said = folder.run(&arguments).expect(2).err();
        assert_eq!(said, "reweave: `--window` requires `--relation cp`\n");
    }
    // The two writes are four events apart.
    report(HANDED, &["races", "--relation", "cp", "--window", "5"], 66);
    report(HANDED, &["races", "--relation", "cp", "--window", "4"], 0);
    folder.run(&["races", "--relation", "cp", "--window", "0", "run.std"]).expect(2);
}

#[test]
fn a_deadlock_names_each_blocked_acquire() {
    let report = report(CROSSED, &["deadlocks"], 66);
    assert_eq!(analyses(&report), ["deadlocks.exact", "deadlocks.stuck"]);
    let finding = &report["findings"][0];
    assert_eq!((&finding["id"], &finding["kind"]), (&"D1".into(), &"deadlock".into()));
    assert_eq!(finding["witness"], json!({ "schedule": [1, 5], "then": [2, 6] }));
    assert_eq!(finding["sites"][1]["locks"], json!(["b"]));
    self::report(CLEAN, &["deadlocks"], 0);
}

#[test]
fn blocks_are_what_is_marked_and_with_sections_every_critical_section_too() {
    let marked = report(SPOILED, &["atomicity"], 66);
    assert_eq!(analyses(&marked), ["atomicity.blocks"]);
    let finding = &marked["findings"][0];
    assert_eq!((&finding["kind"], &finding["events"]), (&"atomicity".into(), &json!([2, 5, 3])));
    report(OPEN, &["atomicity"], 0);
    let sections = report(OPEN, &["atomicity", "--sections"], 66);
    assert_eq!(analyses(&sections), ["atomicity.blocks", "atomicity.sections"]);
}

#[test]
fn check_runs_the_defaults_and_more_on_request() {
    let defaults = ["races.exact", "deadlocks.exact", "deadlocks.stuck", "atomicity.blocks"];
    assert_eq!(analyses(&report(CLEAN, &["check"], 0)), defaults);
    let more = report(CLEAN, &["check", "--with", "atomicity.sections", "--with", "races.hb"], 0);
    let names = analyses(&more);
    assert!(names.contains(&"atomicity.sections") && names.contains(&"races.hb"), "{names:?}");
    assert_eq!(analyses(&report(CLEAN, &["check", "--only", "deadlocks"], 0)), defaults[1..3]);
    let kinds = |trace: &str| report(trace, &["check"], 66)["findings"][0]["kind"].clone();
    assert_eq!([kinds(CROSSED), kinds(HANDED)], ["deadlock", "race"]);
}

#[test]
fn the_families_keep_the_manners_of_check() {
    let folder = Folder::with("run.std", RACE);
    folder.put("bad.std", "T1|nonsense|1\n");
    for command in ["races", "deadlocks", "atomicity"] {
        let arguments = [command, "--all", "--threads", "2", "--limit", "0", "-o", "out.html"];
        let arguments = [&arguments[..], &["--format", "html", "--repair", "run.std"]].concat();
        folder.run(&arguments).expect(if command == "races" { 3 } else { 0 });
        assert!(folder.read("out.html").starts_with(b"<!doctype html>"), "{command}");
        let said = folder.run(&[command, "bad.std"]).expect(2).err();
        assert!(said.contains("bad.std: line 1"), "{command}: {said}");
        folder.run(&[command, "--only", "races", "run.std"]).expect(2);
        assert!(folder.run(&[command, "-", "-"]).expect(2).err().contains("given only once"));
    }
}
