//! Baselines, suppressions and which kinds of faults fail.

use super::Folder;

/// Two races, at `a.c:1` with `b.c:2` and at `a.c:3` with `b.c:4`.
const TWO: &str = "T1|w(x)|a.c:1\nT2|w(x)|b.c:2\nT1|w(y)|a.c:3\nT2|r(y)|b.c:4\n";

/// Two threads that take two locks crosswise.
const CROSSED: &str = "T1|acq(m)|1\nT1|acq(n)|2\nT1|rel(n)|3\nT1|rel(m)|4\n\
                       T2|acq(n)|5\nT2|acq(m)|6\nT2|rel(m)|7\nT2|rel(n)|8\n";

fn ids(report: &serde_json::Value) -> Vec<&str> {
    let findings = report["findings"].as_array().expect("a report has findings");
    findings.iter().filter_map(|finding| finding["id"].as_str()).collect()
}

#[test]
fn only_what_the_baseline_does_not_have_fails() {
    let folder = Folder::with("two.std", TWO);
    folder.put("old.std", super::RACE);
    folder.run(&["check", "old.std", "--format", "json", "-o", "base.json"]).expect(66);
    let ran = folder.run(&["check", "old.std", "--baseline", "base.json"]).expect(0);
    let end = "nothing new (1 finding hidden)\nNot shown: 1 in the baseline.\n";
    assert!(ran.out().ends_with(end), "{}", ran.out());
    assert_eq!(ran.err(), "");
    let new = ["check", "two.std", "--baseline", "base.json", "--format", "json"];
    // What is left keeps its name.
    assert_eq!(ids(&folder.run(&new).expect(66).json()), ["R2"]);
    folder.run(&["explain", "two.std", "R2"]).expect(0);
    folder.run(&["check", "two.std", "--format", "json", "-o", "base.json"]).expect(66);
    folder.run(&["races", "two.std", "--baseline", "base.json"]).expect(0);
}

#[test]
fn what_the_baseline_has_and_nobody_finds_is_told() {
    let folder = Folder::with("race.std", super::RACE);
    folder.put("known", "00000000000000aa # fixed long ago\n");
    let ran = folder.run(&["check", "race.std", "--baseline", "known"]).expect(66);
    assert_eq!(ran.err(), "known: 1 of 1 known finding no longer found: 00000000000000aa\n");
    let list = format!("[{}]", r#"{"schema": "reweave/1", "findings": []}"#);
    folder.put("known", list);
    assert_eq!(folder.run(&["check", "race.std", "--baseline", "known"]).expect(66).err(), "");
}

#[test]
fn nothing_is_called_gone_where_a_trace_was_not_looked_at() {
    let folder = Folder::with("race.std", super::RACE);
    folder.put("known", "00000000000000aa\n");
    folder.put("s", "race:nowhere\n");
    let words = ["check", "race.std", "gone.std", "--baseline", "known", "--suppress", "s"];
    let said = folder.run(&words).expect(2).err();
    assert!(said.starts_with("reweave: gone.std") && said.lines().count() == 1, "{said}");
}

#[test]
fn a_baseline_that_is_not_there_can_be_made() {
    let folder = Folder::with("race.std", super::RACE);
    let said = folder.run(&["check", "race.std", "--baseline", "ci base.json"]).expect(2).err();
    let make = "reweave check TRACE --format json -o 'ci base.json'\n";
    assert!(said.ends_with(make), "{said}");
}

#[test]
fn a_limit_counts_what_is_shown() {
    let folder = Folder::with("two.std", TWO);
    folder.put("old.std", super::RACE);
    folder.run(&["check", "old.std", "--format", "json", "-o", "base.json"]).expect(66);
    let limited = ["check", "two.std", "--limit", "1", "--format", "json"];
    let ran = folder.run(&[&limited[..], &["--baseline", "base.json"]].concat()).expect(66);
    assert_eq!(ids(&ran.json()), ["R2"]);
    folder.put("none", "");
    let ran = folder.run(&[&limited[..], &["--baseline", "none"]].concat()).expect(66);
    assert_eq!(ids(&ran.json()), ["R1"]);
    assert_eq!(ran.json()["coverage"][0]["truncated"], "limit");
}

#[test]
fn a_baseline_is_not_written_over_by_what_it_leaves() {
    let folder = Folder::with("two.std", TWO);
    folder.run(&["check", "two.std", "--format", "json", "-o", "base.json"]).expect(66);
    let before = folder.read("base.json");
    let over = ["check", "two.std", "--baseline", "base.json", "-o", "./base.json"];
    let ran = folder.run(&over).expect(2);
    assert!(ran.err().contains("cannot overwrite the baseline"), "{}", ran.err());
    assert_eq!(folder.read("base.json"), before);
}

#[test]
fn suppressed_findings_are_left_out_and_unused_suppressions_told() {
    let folder = Folder::with("two.std", TWO);
    folder.put("tsan.supp", "# known\n\nrace:^a.c:3$\nrace:nowhere\ndeadlock:m\nsignal:x\n");
    let ran = folder.run(&["check", "two.std", "--suppress", "tsan.supp"]).expect(66);
    assert!(ran.out().ends_with("1 finding (race 1)\nNot shown: 1 suppressed.\n"), "{}", ran.out());
    assert_eq!(
        ran.err(),
        "tsan.supp:4: `race:nowhere` matched nothing\n\
         tsan.supp:5: `deadlock:m` matched nothing\n\
         tsan.supp:6: `signal:x` matched nothing\n"
    );
    // Where no deadlocks are looked for, their suppressions are not called useless.
    let ran = folder.run(&["races", "two.std", "--suppress", "tsan.supp"]).expect(66);
    assert!(!ran.err().contains("deadlock:m"), "{}", ran.err());
    folder.put("rest.supp", "race:x\n");
    let both = ["check", "two.std", "--suppress", "tsan.supp", "--suppress", "rest.supp"];
    folder.run(&both).expect(0);
}

#[test]
fn a_line_that_is_no_suppression_is_pointed_at() {
    let folder = Folder::with("two.std", TWO);
    for (line, said) in [
        ("bank.c", "s:2:1: expected `kind:pattern`, such as `race:bank.c`, found `bank.c`"),
        (" rase:x", "s:2:2: unknown kind of suppression `rase`; did you mean `race`?"),
        ("race:", "s:2:6: expected a pattern after `race:`; `*` matches everything"),
        (
            "fingerprint:12",
            "s:2:13: expected a fingerprint of 8 to 16 hexadecimal digits, found `12`",
        ),
    ] {
        folder.put("s", format!("# first\n{line}\n"));
        let ran = folder.run(&["check", "two.std", "--suppress", "s"]).expect(2);
        assert_eq!(ran.err(), format!("reweave: {said}\n"));
        assert_eq!(ran.out(), "");
    }
    let missing = folder.run(&["check", "two.std", "--suppress", "gone"]).expect(2).err();
    assert!(missing.starts_with("reweave: cannot read gone: "), "{missing}");
}

#[test]
fn only_the_kinds_that_are_asked_for_fail() {
    let folder = Folder::with("both.std", format!("{TWO}{CROSSED}"));
    let run = |fail_on: &[&str]| folder.run(&[&["check", "both.std"], fail_on].concat());
    assert!(run(&[]).expect(66).out().contains("3 findings (deadlock 1, race 2)"));
    assert!(run(&["--fail-on", "none"]).expect(0).out().contains("3 findings"));
    run(&["--fail-on", "race"]).expect(66);
    run(&["--fail-on", "atomicity,predicate"]).expect(0);
    run(&["--fail-on", "atomicity", "--fail-on", "deadlock"]).expect(66);
    run(&["--fail-on", "atomicity", "--work", "0"]).expect(3);
    // A report that never fails does not fail for what is left unsearched, but for bad input.
    run(&["--fail-on", "none", "--work", "0"]).expect(0);
    run(&["--fail-on", "none", "gone.std"]).expect(2);
    let refused = run(&["--fail-on", "crash"]).expect(2).err();
    assert!(refused.contains("nondeterminism"), "{refused}");
}

#[cfg(unix)]
#[test]
fn a_report_that_cannot_be_written_is_an_error_before_anything_is_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    folder.put("report.json", "old");
    let path = folder.path("report.json");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    // Nothing ever comes out of the pipe: whoever read it first would wait for ever.
    let made = std::process::Command::new("mkfifo").arg(folder.path("pipe.std")).status();
    if !made.is_ok_and(|status| status.success()) {
        folder.put("pipe.std", "no trace");
    }
    for (output, reason) in [
        ("report.json", "it is read-only"),
        (".", "it is a directory"),
        ("no/r.json", "no such folder"),
    ] {
        let ran = folder.run(&["check", "pipe.std", "-o", output]).expect(2);
        assert!(ran.err().contains(reason), "{}", ran.err());
    }
    let ran = folder.run(&["check", "pipe.std", "--baseline", "gone"]).expect(2);
    assert!(ran.err().starts_with("reweave: cannot read gone"), "{}", ran.err());
    assert_eq!(folder.read("report.json"), b"old");
}
