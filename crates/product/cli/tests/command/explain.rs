//! `explain`: which finding is meant, where it is looked for, and what is said when it is not there.

use reweave_testkit::corpus;
use serde_json::{Value, json};

use super::{CLEAN, Folder, RACE};

/// Two locations race, and two threads can deadlock.
const TWO: &str = "\
T1|acq(a)|1
T1|acq(b)|2
T1|w(x)|3
T1|rel(b)|4
T1|rel(a)|5
T2|acq(b)|6
T2|acq(a)|7
T2|rel(a)|8
T2|rel(b)|9
T2|w(x)|10
";

/// Threads that take turns at a lock; which of two writes the read sees is left to the schedule.
const TURNS: &str = "\
T1|acq(m)|a.c:1
T1|w(x)|a.c:2|5
T1|rel(m)|a.c:3
T2|acq(m)|b.c:1
T2|w(x)|b.c:2|7
T2|rel(m)|b.c:3
T3|acq(m)|c.c:1
T3|r(x)|c.c:2|7
T3|rel(m)|c.c:3
";

fn findings(folder: &Folder, arguments: &[&str]) -> Vec<Value> {
    let report = folder.run(&[arguments, &["--format", "json"]].concat()).json();
    report["findings"].as_array().expect("it is a list").clone()
}

#[test]
fn an_id_or_a_fingerprint_or_the_start_of_one_is_what_check_prints() {
    let folder = Folder::with("run.std", TWO);
    let found = findings(&folder, &["check", "run.std"]);
    assert!(found.len() >= 2, "{found:?}");
    for finding in found {
        let (id, fingerprint) =
            (finding["id"].as_str().unwrap(), finding["fingerprint"].as_str().unwrap());
        let by_id = folder.run(&["explain", "run.std", id]).expect(0).out();
        assert!(by_id.contains(finding["message"].as_str().unwrap()), "{by_id}");
        assert!(by_id.contains("Why it is a fault") && by_id.contains("Side by side"), "{by_id}");
        for name in [fingerprint, &fingerprint[..6], &id.to_lowercase()] {
            assert_eq!(folder.run(&["explain", "run.std", name]).expect(0).out(), by_id, "{name}");
        }
    }
}

#[test]
fn every_finding_of_every_litmus_case_can_be_explained() {
    let folder = Folder::new();
    for case in corpus::litmus() {
        let (name, trace) = (format!("{}.rwt", case.name), case.trace());
        let path = folder.path(&name);
        reweave_format::write(&trace, &path, reweave_format::Format::Rwt, None).unwrap();
        for finding in findings(&folder, &["check", &name]) {
            let id = finding["id"].as_str().unwrap();
            let text = folder.run(&["explain", &name, id]).expect(0).out();
            assert!(text.contains("The independent checker accepted the schedule."), "{text}");
            assert_eq!(text.lines().find(|line| line.ends_with(' ')), None, "{text}");
        }
    }
}

#[test]
fn an_id_that_is_not_there_is_refused_with_those_that_are() {
    let folder = Folder::with("run.std", RACE);
    folder.put("clean.std", CLEAN);
    let said = |arguments: &[&str]| folder.run(&[&["explain"], arguments].concat()).expect(2).err();
    let known = "reweave: no finding `R2`; found R1\n";
    assert_eq!(said(&["run.std", "R2"]), known);
    // Too short a start would be taken for one by chance.
    assert!(said(&["run.std", "a"]).contains("no finding `a`"));
    let none = "reweave: no finding `R1`: nothing was found\n";
    assert_eq!(said(&["clean.std", "R1"]), none);
    assert!(said(&["--limit", "0", "run.std", "R1"]).contains("; the search was incomplete"));
    assert!(said(&["--only", "rases", "run.std", "R1"]).contains("no analysis is called `rases`"));
    assert!(said(&["missing.std", "R1"]).contains("missing.std"));
}

#[test]
fn a_start_that_fits_several_is_refused_with_their_ids() {
    let folder = Folder::with("run.std", "T1|w(x)|a\nT1|w(x)|a\nT2|w(x)|b\n");
    let all = ["explain", "--only", "races.hb", "--all", "run.std"];
    let found = findings(&folder, &["check", "--only", "races.hb", "--all", "run.std"]);
    assert_eq!(found.len(), 2);
    let fingerprint = found[0]["fingerprint"].as_str().unwrap();
    let said = folder.run(&[&all[..], &[fingerprint]].concat()).expect(2).err();
    assert!(said.contains("is ambiguous: the fingerprints of R1, R2 start with it"), "{said}");
    folder.run(&[&all[..], &["R2"]].concat()).expect(0);
}

#[test]
fn the_same_options_as_for_check_give_the_same_findings() {
    let folder = Folder::with("run.std", TURNS);
    folder.run(&["explain", "run.std", "N1"]).expect(2);
    for options in [&["--with", "determinism"][..], &["--only", "determinism.prefix"]] {
        let arguments = [&["explain"], options, &["run.std", "N1"]].concat();
        let text = folder.run(&arguments).expect(0).out();
        assert!(text.contains("what event 8 sees depends on the schedule"), "{text}");
        assert!(text.contains("= 5, sees event 2, not event 5"), "{text}");
        assert!(
            text.contains("lock `m` keeps the accesses apart, but either can come first"),
            "{text}"
        );
    }
}

#[test]
fn a_finding_is_looked_up_in_a_report_and_found_again() {
    let folder = Folder::with("run.std", TWO);
    folder.run(&["check", "--format", "json", "-o", "report.json", "run.std"]).expect(66);
    let plain = folder.run(&["explain", "run.std", "R1"]).expect(0);
    let from = ["explain", "--from", "report.json", "run.std", "R1"];
    assert_eq!(folder.run(&from).expect(0).out(), plain.out());
    // Another run of the same program: the thread is called something else, and comes first.
    folder.put("again.std", "T3|w(x)|10\nT1|acq(a)|1\nT1|acq(b)|2\nT1|w(x)|3\n");
    let again = folder.run(&["explain", "--from", "report.json", "again.std", "R1"]).expect(0);
    assert!(again.out().contains("event 1, T3: w(x) at location 10"), "{}", again.out());
    assert!(
        again.err().contains("another instance of R1, at the same code locations"),
        "{}",
        again.err()
    );
    folder.put("fixed.std", CLEAN);
    let said = folder.run(&["explain", "--from", "report.json", "fixed.std", "R1"]).expect(2).err();
    assert!(said.starts_with("reweave: fixed.std: races.exact no longer finds R1 ("), "{said}");
}

#[test]
fn a_finding_of_a_full_report_is_found_again_whatever_its_guarantee() {
    let folder = Folder::with("run.std", "T1|w(x)|1\nT1|w(y)|2\nT2|r(y)|3\nT2|r(x)|4\n");
    let check = ["check", "--only", "races.hb", "--all", "--format", "json", "-o", "all.json"];
    folder.run(&[&check[..], &["run.std", "run.std"]].concat()).expect(66);
    let text = folder.run(&["explain", "--from", "all.json", "run.std", "R2"]).expect(0).out();
    assert!(text.contains("R2 race  unordered"), "{text}");
    assert!(text.contains("An unconfirmed candidate: no schedule proves it."), "{text}");
}

#[test]
fn a_finding_is_looked_for_as_the_report_looked_for_it() {
    let folder = Folder::with("run.std", TURNS);
    folder.put("last.std", "T1|w(x)|1\nT2|w(x)|2\n");
    folder.put("wide.std", "T1|w(x)|1\nT1|w(x)|1\nT2|w(x)|2\nT2|w(x)|2\n");
    let cases: [(&[&str], &str, &str, Value); 6] = [
        (&["determinism", "--final-reads"], "last.std", "N1", json!({ "final_reads": true })),
        (&["determinism", "--values"], "run.std", "N1", json!({ "values": true })),
        (
            &["races", "--relation", "hb", "--all"],
            "wide.std",
            "R3",
            json!({ "all": true, "limit": 10_000 }),
        ),
        (&["races", "--relation", "cp", "--window", "2"], "last.std", "R1", json!({ "window": 2 })),
        (
            &["races", "--limit", "1", "--work", "900"],
            "wide.std",
            "R1",
            json!({ "limit": 1, "budget": 900 }),
        ),
        (&["races", "--threads", "2"], "last.std", "R1", Value::Null),
    ];
    for (arguments, trace, id, settings) in cases {
        let report = ["--format", "json", "-o", "report.json", trace];
        folder.run(&[arguments, &report].concat()).expect(66);
        let written: Value = serde_json::from_slice(&folder.read("report.json")).unwrap();
        assert_eq!(written["settings"], settings, "{arguments:?}");
        let from = ["explain", "--from", "report.json", "--format", "json", trace, id];
        let found = folder.run(&from).expect(0).json();
        let named = |it: &&Value| it["id"] == id;
        let told = written["findings"].as_array().unwrap().iter().find(named).unwrap();
        assert_eq!(&found["findings"][0], told, "{arguments:?}");
        // What is explained is a report too, of the same search.
        assert_eq!(found["settings"], settings, "{arguments:?}");
        let said = folder.run(&[&from[..], &["--all"]].concat()).expect(2).err();
        assert!(said.contains("cannot be used with"), "{said}");
    }
}

#[test]
fn a_report_that_is_none_is_refused() {
    let folder = Folder::with("run.std", RACE);
    folder.put("text.json", "R1 race");
    folder.put("other.json", "{\"schema\": \"sarif\"}");
    folder.put("empty.json", "{}");
    folder.put("lists.json", "[1, 2]");
    folder.put("bare.json", "{\"schema\": \"reweave/1\"}");
    folder.put("asked.json", "{\"schema\": \"reweave/1\", \"settings\": {\"limit\": -1}}");
    let said = |report: &str| {
        let ran = folder.run(&["explain", "--from", report, "run.std", "R1"]);
        ran.expect(2).err()
    };
    assert!(said("missing.json").contains("missing.json: cannot read:"));
    assert!(said("text.json").contains("text.json: expected a JSON report"));
    assert!(
        said("other.json").contains("expected a report with schema `reweave/1`, found `sarif`")
    );
    assert!(said("empty.json").contains("found another kind of JSON"));
    assert!(said("lists.json").contains("no report on `run.std`"));
    assert!(said("bare.json").contains("expected a list `findings`"));
    assert!(said("asked.json").contains("asked.json: invalid `settings`"));
    folder.run(&["explain", "--from", "bare.json", "--only", "races", "run.std", "R1"]).expect(2);
}

#[test]
fn json_and_html_hold_the_one_finding() {
    let folder = Folder::with("run.std", TWO);
    let run =
        |format: &str| folder.run(&["explain", "--format", format, "run.std", "D1"]).expect(0);
    let report = run("json").json();
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&report["schema"], &report["findings"][0]["id"]),
        (&"reweave/1".into(), &"D1".into())
    );
    assert_eq!(report["explanation"]["scheduled"][0], json!({ "event": 1 }));
    let page = run("html").out();
    assert!(page.starts_with("<!doctype html>") && page.contains("Why it is a fault"), "{page}");
    folder.run(&["explain", "-o", "out.txt", "run.std", "D1"]).expect(0);
    assert_eq!(folder.read("out.txt"), folder.run(&["explain", "run.std", "D1"]).bytes());
}
