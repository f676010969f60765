//! `check`: exit codes and what its reports hold.

use expect_test::expect;
use serde_json::json;

use super::{CLEAN, Folder, RACE};

#[test]
fn it_exits_with_66_when_something_is_found_and_0_when_nothing_is() {
    let folder = Folder::with("race.std", RACE);
    folder.put("clean.std", CLEAN);
    folder.run(&["check", "race.std"]).expect(66);
    folder.run(&["check", "clean.std"]).expect(0);
    folder.run(&["check", "clean.std", "race.std"]).expect(66);
}

#[test]
fn it_exits_with_3_when_a_limit_cut_the_search_short() {
    let folder = Folder::with("race.std", RACE);
    folder.run(&["check", "--limit", "0", "race.std"]).expect(3);
    folder.run(&["check", "--limit", "1", "race.std"]).expect(66);
}

#[test]
fn all_instances_are_listed_up_to_a_limit_that_can_be_raised() {
    let writes = |thread| (1..=150).map(move |line| format!("{thread}|w(x)|{thread}.c:{line}\n"));
    let folder = Folder::with("many.std", writes("T1").chain(writes("T2")).collect::<String>());
    let count = |options: &[&str]| {
        let words = [&["check", "--all", "--only", "races.exact"], options, &["many.std"]].concat();
        folder.run(&words).expect(66).out().matches(" race  ").count()
    };
    assert_eq!(count(&[]), 10_000);
    assert_eq!(count(&["--limit", "30000"]), 22_500);
}

#[test]
fn json_holds_what_scripts_rely_on() {
    let folder = Folder::with("race.std", RACE);
    let ran = folder.run(&["check", "--format", "json", "race.std"]).expect(66);
    assert_eq!(ran.err(), "");
    let report = ran.json();
    assert_eq!(report["schema"], "reweave/1");
    assert_eq!(
        report["trace"],
        serde_json::json!(
            { "path": "race.std", "events": 2, "threads": 2, "locks": 0, "vars": 1 }
        )
    );
    let finding = &report["findings"][0];
    assert_eq!((&finding["id"], &finding["analysis"]), (&"R1".into(), &"races.exact".into()));
    assert_eq!((&finding["kind"], &finding["guarantee"]), (&"race".into(), &"witnessed".into()));
    assert_eq!(finding["events"], serde_json::json!([1, 2]));
    assert_eq!(finding["witness"], serde_json::json!({ "schedule": [], "then": [1, 2] }));
    assert_eq!(finding["sites"][1]["location"], "b.c:2");
    let coverage = &report["coverage"][0];
    let named = (&coverage["analysis"], &coverage["complete"]);
    assert_eq!(named, (&"races.exact".into(), &true.into()));
    assert_eq!(coverage["counters"]["pairs"], 1);
}

#[test]
fn several_traces_give_a_list() {
    let folder = Folder::with("race.std", RACE);
    let ran = folder.run(&["check", "--format", "json", "race.std", "race.std"]).expect(66);
    assert_eq!(ran.json().as_array().map(Vec::len), Some(2));
}

#[test]
fn the_same_input_gives_the_same_bytes_whatever_the_threads() {
    let folder = Folder::new();
    folder.run(&["generate", "--events", "3000", "--vars", "20", "-o", "made.std"]).expect(0);
    for format in ["text", "json", "html"] {
        let run = |threads: &str| {
            let arguments = ["check", "made.std", "--format", format, "--threads", threads];
            folder.run(&arguments).expect(66).bytes().to_vec()
        };
        let once = run("1");
        assert_eq!(once, run("1"), "{format}");
        assert_eq!(once, run("4"), "{format}");
    }
}

#[test]
fn all_lists_every_instance_and_labels_the_weaker_ones() {
    let text = "T1|w(x)|1\nT1|w(y)|2\nT2|r(y)|3\nT2|r(x)|4\n";
    let folder = Folder::with("run.std", text);
    let guarantees = |arguments: &[&str]| -> Vec<String> {
        let report = folder.run(arguments).expect(66).json();
        let findings = report["findings"].as_array().unwrap().clone();
        findings.iter().map(|finding| finding["guarantee"].as_str().unwrap().to_owned()).collect()
    };
    let hb = ["check", "--only", "races.hb", "--format", "json", "run.std"];
    assert_eq!(guarantees(&hb), ["witnessed"]);
    let all = guarantees(&[&hb[..], &["--all"]].concat());
    assert_eq!(all, ["witnessed", "unordered"]);
    // What cannot happen is no finding of an analysis that lists what can.
    assert_eq!(guarantees(&["check", "--all", "--format", "json", "run.std"]), ["witnessed"]);
}

#[test]
fn a_finding_that_rests_on_reads_of_unknown_writers_is_not_shown_unless_asked_for() {
    let text = "T1|w(y)|1\nT1|w(x)|2\nT2|r?(y)|3\nT2|w(x)|4\n";
    let folder = Folder::with("run.std", text);
    let run = |arguments: &[&str]| folder.run(arguments).expect(66).json();
    let shown = run(&["check", "--only", "races.hb", "--format", "json", "run.std"]);
    assert_eq!(
        (shown["findings"].as_array().map(Vec::len), &shown["unshown"]),
        (Some(1), &1.into())
    );
    let all = run(&["check", "--only", "races.hb", "--all", "--format", "json", "run.std"]);
    let loose = &all["findings"][1];
    assert_eq!(
        (&loose["events"], &loose["guarantee"]),
        (&serde_json::json!([2, 4]), &"unordered".into())
    );
    let witness = serde_json::json!({ "schedule": [1, 3], "then": [2, 4], "unknown_reads": 1 });
    assert_eq!(loose["witness"], witness);
}

#[test]
fn a_budget_says_what_was_not_tried() {
    let folder = Folder::with("race.std", RACE);
    let ran = folder.run(&["check", "--work", "0", "race.std"]).expect(3);
    assert!(ran.out().contains("incomplete: the work budget was used up"), "{}", ran.out());
    let hb = ["races", "--relation", "hb", "--work", "0", "race.std"];
    let ran = folder.run(&hb).expect(3);
    let told = "1 location pair not tried: the work budget ran out; raise it with --budget";
    assert!(ran.out().contains(told), "{}", ran.out());
    let report = folder.run(&[&hb[..], &["--format", "json"]].concat()).expect(3).json();
    assert_eq!((&report["unshown"], &report["untried"]), (&1.into(), &1.into()));
    folder.run(&["check", "--work", "1000", "race.std"]).expect(66);
}

#[test]
fn an_unknown_analysis_is_refused_with_those_that_exist() {
    let folder = Folder::with("race.std", RACE);
    let ran = folder.run(&["check", "--only", "rases", "race.std"]).expect(2);
    assert!(ran.err().contains("`rases`") && ran.err().contains("races.hb"), "{}", ran.err());
    folder.run(&["check", "--with", "nothing", "race.std"]).expect(2);
    folder.run(&["check", "--only", "races", "race.std"]).expect(66);
}

#[test]
fn a_report_format_that_does_not_exist_is_refused_with_those_that_do() {
    let folder = Folder::with("race.std", RACE);
    let ran = folder.run(&["check", "--format", "yaml", "race.std"]).expect(2);
    assert!(ran.err().contains("text, json, html"), "{}", ran.err());
}

#[test]
fn a_report_in_a_file_replaces_it_and_leaves_nothing_else() {
    let folder = Folder::with("race.std", RACE);
    folder.put("report.html", "old");
    let ran = folder.run(&["check", "--format", "html", "-o", "report.html", "race.std"]);
    assert_eq!(ran.expect(66).out(), "");
    assert!(folder.read("report.html").starts_with(b"<!doctype html>"));
    assert_eq!(folder.names(), ["race.std", "report.html"]);
}

#[test]
fn a_place_that_cannot_be_written_to_is_known_before_the_work_starts() {
    let folder = Folder::new();
    let ran = folder.run(&["check", "-o", "no/such/folder/out.txt", "no-such-trace"]).expect(2);
    let told = "reweave: cannot write no/such/folder/out.txt: no such folder: `no/such/folder`\n";
    assert_eq!(ran.err(), told);
    let ran = folder.run(&["check", "-o", ".", "no-such-trace"]).expect(2);
    assert!(ran.err().contains("directory"), "{}", ran.err());
}

#[cfg(unix)]
#[test]
fn a_device_is_written_to_and_not_replaced() {
    let folder = Folder::with("race.std", RACE);
    folder.run(&["check", "-o", "/dev/null", "race.std"]).expect(66);
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn what_cannot_be_replayed_is_reported_as_not_confirmed_with_the_reason() {
    let folder = Folder::with("race.std", RACE);
    let ran = folder.run(&["check", "race.std", "--confirm", "--", "./race", "--fast"]).expect(66);
    assert!(ran.out().contains("\n  not confirmed\n"), "{}", ran.out());
    assert!(ran.out().contains("This does not mean that it cannot happen."), "{}", ran.out());
    let arguments = ["check", "--confirm", "--format", "json", "race.std", "--", "./race"];
    let report = folder.run(&arguments).expect(66).json();
    let finding = &report["findings"][0];
    let reason = finding["not_confirmed"]["reason"].as_str().expect("a reason is given");
    assert!(reason.contains("reweave record"), "{reason}");
    assert!(finding.get("confirmed").is_none());
    folder.put("clean.std", CLEAN);
    folder.run(&["check", "clean.std", "--confirm", "--", "./race"]).expect(0);
}

#[test]
fn findings_are_confirmed_in_the_program_of_one_trace() {
    let folder = Folder::with("race.std", RACE);
    let two = folder.run(&["check", "race.std", "race.std", "--confirm", "--", "./race"]).expect(2);
    assert!(two.err().contains("takes one trace"), "{}", two.err());
    folder.run(&["check", "race.std", "--confirm"]).expect(2);
    folder.run(&["check", "race.std", "--", "./race"]).expect(2);
}

#[test]
fn the_name_of_the_output_says_how_to_print_unless_something_else_does() {
    let folder = Folder::with("race.std", RACE);
    for (name, start) in [
        ("r.html", "<!"),
        ("r.HTM", "<!"),
        ("r.json", "{"),
        ("r.sarif", "{"),
        ("r.sarif.json", "{"),
        ("r.xml", "<?xml"),
        ("r.txt", "race.std"),
        ("report", "race.std"),
    ] {
        folder.run(&["check", "race.std", "-o", name]).expect(66);
        assert!(folder.read(name).starts_with(start.as_bytes()), "{name}");
        folder.run(&["check", "race.std", "--format", "text", "-o", name]).expect(66);
        assert!(folder.read(name).starts_with(b"race.std"), "{name}");
    }
    folder.run(&["check", "race.std", "-o", "r.sarif"]).expect(66);
    assert!(String::from_utf8(folder.read("r.sarif")).unwrap().contains("\"runs\""));
    folder.run(&["explain", "race.std", "R1", "-o", "one.html"]).expect(0);
    assert!(folder.read("one.html").starts_with(b"<!"));
}

#[test]
fn a_time_that_is_up_ends_the_search_and_is_named() {
    let folder = Folder::with("race.std", RACE);
    let ran = folder.run(&["check", "--budget", "0", "race.std"]).expect(3);
    assert!(ran.out().contains("incomplete: the time was up; --budget sets the seconds"));
    let report = folder.run(&["check", "--budget", "0s", "--format", "json", "race.std"]).expect(3);
    assert_eq!(report.json()["coverage"][0]["truncated"], "time");
    assert_eq!(report.json()["settings"]["seconds"], 0.0);
    let counted = folder.run(&["states", "count", "--budget", "0", "race.std"]);
    assert!(matches!(counted.code(), 0 | 3), "{}", counted.err());
}

#[test]
fn a_time_that_is_not_up_changes_nothing() {
    let folder = Folder::with("race.std", RACE);
    let plain = folder.run(&["check", "race.std"]).expect(66).out();
    let timed = folder.run(&["check", "race.std", "--budget", "2h"]).expect(66).out();
    let next = "next: reweave explain race.std R1";
    assert!(timed.contains(&format!("{next} --budget 7200\n")), "{timed}");
    assert_eq!(plain, timed.replace(" --budget 7200", ""));
    let explained = folder.run(&["explain", "race.std", "R1", "--budget", "7200"]).expect(0);
    assert!(explained.out().contains("R1 race"));
    for wrong in ["soon", "-1", "5x", "", "1e300"] {
        folder.run(&["check", "race.std", "--budget", wrong]).expect(2);
    }
}

#[test]
fn relations_are_compared_in_one_table() {
    // The lock orders the writes of x in the run, not in every run.
    let hidden = "T1|w(x)|1\nT1|acq(m)|2\nT1|rel(m)|3\nT2|acq(m)|4\nT2|rel(m)|5\nT2|w(x)|6\n";
    let folder = Folder::with("hidden.std", hidden);
    let text = folder.run(&["check", "--compare", "hidden.std"]).expect(66).out();
    expect![[r"
        hidden.std: 6 events; races by relation
          relation       pairs   locations      proven  orders left out
          hb                 0           0           0  happens-before
          shb                0           0           0  schedulable happens-before
          wcp                1           1           1  weak causally-precedes
          cp                 1           1           1  causally-precedes
          syncp              1           1           1  sync-preserving reorderings
          exact              1           1           1  all correct reorderings
          Pairs of conflicting accesses that the relation leaves unordered, pairs of code locations with one,
          and how many of these have a schedule that the independent checker accepted.
    "]]
    .assert_eq(&text);
    folder.put("clean.std", CLEAN);
    let ran = folder.run(&["check", "--compare", "--format", "json", "clean.std", "hidden.std"]);
    let report = ran.expect(66).json();
    let pairs = |trace: usize, relation: usize| &report[trace]["relations"][relation]["pairs"];
    assert_eq!((pairs(0, 5), pairs(1, 0), pairs(1, 5)), (&json!(0), &json!(0), &json!(1)));
    folder.run(&["check", "--compare", "clean.std"]).expect(0);
    let refused = folder.run(&["check", "--compare", "--format", "html", "clean.std"]).expect(2);
    assert!(refused.err().contains("`--compare` writes text or JSON"), "{}", refused.err());
    folder.run(&["check", "--compare", "--only", "races", "clean.std"]).expect(2);
}

#[test]
fn findings_are_written_as_a_table() {
    let folder = Folder::with("race.std", "T1|w(x)|a.c:1\n=T2|w(x)|b.c:2\n");
    let ran = folder.run(&["check", "race.std", "-o", "found.csv"]).expect(66);
    assert_eq!(ran.err(), "reweave: 1 finding (race 1) → found.csv\n");
    let table = String::from_utf8(folder.read("found.csv")).unwrap();
    let rows: Vec<&str> = table.lines().collect();
    let [head, row] = rows[..] else { panic!("{table}") };
    let start =
        "trace,id,fingerprint,kind,guarantee,analysis,count,location,other_locations,threads";
    assert_eq!(head, format!("{start},message,confirmed"));
    assert!(
        row.starts_with("race.std,R1,")
            && row.contains(",race,witnessed,races.exact,1,a.c:1,b.c:2,")
    );
    assert!(row.contains(",\"T1; =T2\","), "{row}");
    assert_eq!(folder.run(&["check", "race.std", "--format", "csv"]).expect(66).out(), table);
}

#[test]
fn the_name_of_the_output_says_the_format_of_every_command() {
    let folder = Folder::with("race.std", RACE);
    let written = |arguments: &[&str], name: &str| {
        let ran = folder.run(&[arguments, &["-o", name]].concat());
        assert!(ran.err().ends_with(&format!(" → {name}\n")), "{}", ran.err());
        String::from_utf8(folder.read(name)).unwrap()
    };
    let (json, page) = ("{\n", "<!doctype html>");
    assert!(written(&["check", "race.std"], "a.json").starts_with(json));
    assert!(written(&["explain", "race.std", "R1"], "b.html").starts_with(page));
    assert!(written(&["stats", "race.std"], "c.json").starts_with(json));
    assert!(written(&["states", "count", "race.std"], "d.html").starts_with(page));
    assert!(written(&["states", "list", "race.std"], "e.json").starts_with('{'));
    assert!(written(&["stats", "race.std"], "f.txt").starts_with("race.std: std"));
    assert!(written(&["stats", "race.std", "--format", "text"], "g.json").starts_with("race.std"));
    let refused = folder.run(&["stats", "race.std", "-o", "h.html"]).expect(2).err();
    assert!(refused.contains("no format for `.html`, but text, json"), "{refused}");
    assert!(!folder.path("h.html").exists());
}
