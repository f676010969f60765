//! A fault at several places and in several traces, in every format.

use std::io::{self, Write};

use expect_test::{Expect, expect};
use reweave_analysis::{Outcome, Settings};
use reweave_catalog::{Quiet, list_once, run, select};
use reweave_report::{Examined, github, json, junit, sarif, text};
use reweave_trace::Trace;
use serde_json::Value;

/// A variable that two threads access at many lines, and a second run of the same program.
fn traces() -> [(&'static str, Trace); 2] {
    let lines = |thread: &str, from: u32, count: u32| {
        (from..from + count).map(|line| format!("{thread}|w(x)|a.c:{line}\n")).collect::<String>()
    };
    [
        ("one.std", reweave_testkit::std(&(lines("T1", 1, 4) + &lines("T2", 11, 3)))),
        ("two.std", reweave_testkit::std(&(lines("T1", 4, 1) + &lines("T2", 11, 1)))),
    ]
}

/// What `report` says of both traces.
fn reported(report: fn(&mut dyn Write, &[Examined<'_>]) -> io::Result<()>) -> String {
    let traces = traces();
    let analyses = select("races.exact", &[]).expect("it is there");
    let examine = |(_, trace): &(_, Trace)| run(trace, &analyses, &Settings::default(), &Quiet);
    let mut outcomes: [Outcome; 2] = traces.each_ref().map(examine);
    let [first, second] = &mut outcomes;
    list_once(&mut [(traces[0].0, &traces[0].1, first), (traces[1].0, &traces[1].1, second)]);
    let examined = traces.iter().zip(&outcomes);
    let examined: Vec<Examined<'_>> =
        examined.map(|((path, trace), outcome)| Examined::new(path, trace, outcome)).collect();
    let mut out = Vec::new();
    report(&mut out, &examined).expect("a vector takes anything");
    anstream::adapter::strip_str(&String::from_utf8(out).expect("it is UTF-8")).to_string()
}

/// The lines of `report` that have one of `words`.
#[track_caller]
fn check(text: &str, words: &[&str], expected: Expect) {
    let lines = text.lines().filter(|line| words.iter().any(|word| line.contains(word)));
    expected.assert_eq(&lines.map(|line| format!("{}\n", line.trim_start())).collect::<String>());
}

#[test]
fn text_lists_the_first_places_and_names_the_other_traces() {
    check(
        &reported(text),
        &["pair", "w(x) at", "more", "lso found", "found", "finding"],
        expect![[r#"
            event 1, T1: w(x) at a.c:1, holding no lock
            event 5, T2: w(x) at a.c:11, holding no lock
            The same fault at 11 other pairs of locations:
            w(x) at a.c:2 and a.c:11
            w(x) at a.c:3 and a.c:11
            w(x) at a.c:4 and a.c:11
            w(x) at a.c:1 and a.c:12
            w(x) at a.c:1 and a.c:13
            and 6 more; --all lists each instance
            Also found in two.std.
            races.exact: pairs 12, second events 3, vars 1, location pairs 12
            1 finding (race 1)
            races.exact: pairs 1, second events 1, vars 1, location pairs 1
            nothing else found
            Also found here: R1 of one.std.
        "#]],
    );
}

#[test]
fn json_lists_all_places_and_what_is_listed_elsewhere() {
    let reports: Value = serde_json::from_str(&reported(json)).expect("it is JSON");
    let finding = &reports[0]["findings"][0];
    assert_eq!(finding["places"].as_array().map(Vec::len), Some(11));
    assert_eq!((&finding["count"], &finding["total"]), (&Value::from(1), &Value::from(12)));
    assert_eq!(finding["traces"], serde_json::json!(["two.std"]));
    let listed = &reports[1]["listed"][0];
    assert_eq!((&listed["trace"], &listed["id"]), (&"one.std".into(), &"R1".into()));
    // What the second shows is a place of the first.
    let known = finding["places"].as_array().expect("a list").iter();
    let mut known = known.map(|place| &place["fingerprint"]);
    assert!(known.any(|fingerprint| *fingerprint == listed["fingerprints"][0]));
    let schema = serde_json::from_str(reweave_report::SCHEMA_FILE).expect("it is JSON");
    let schema = jsonschema::draft202012::new(&schema).expect("it is a schema");
    assert!(schema.is_valid(&reports));
}

#[test]
fn scanners_get_each_line_once() {
    let log: Value = serde_json::from_str(&reported(sarif)).expect("it is JSON");
    let results = log["runs"][0]["results"].as_array().expect("a list");
    let [result] = &results[..] else { panic!("{results:?}") };
    assert_eq!(result["occurrenceCount"], 12);
    let related = result["relatedLocations"].as_array().expect("a list");
    let mut lines: Vec<u64> = related
        .iter()
        .chain(result["locations"].as_array().expect("a list"))
        .filter_map(|it| it["physicalLocation"]["region"]["startLine"].as_u64())
        .collect();
    lines.sort_unstable();
    assert_eq!(lines, [1, 2, 3, 4, 11, 12, 13]);
    check(
        &reported(github),
        &["::error", "reweave:"],
        expect![[r#"
        ::error file=a.c,line=1,title=race (R1%2C witnessed)::`w(x)` at a.c:1 and `w(x)` at a.c:11 can happen at the same time%0Aevent 1, T1: w(x) at a.c:1, holding no lock%0Aevent 5, T2: w(x) at a.c:11, holding no lock%0AOne fault at 12 pairs of locations; one shown%0AAlso found in two.std.%0AThe independent checker accepted the schedule.%0Araces.exact 9cdf2fa7129d6b9b
        reweave: one.std: 1 finding (race 1)
        reweave: two.std: nothing else found
    "#]],
    );
    check(
        &reported(junit),
        &["<testsuite ", "<testcase"],
        expect![[r#"
            <testsuite name="one.std" tests="1" failures="1" errors="0" skipped="0">
            <testcase classname="races.exact" name="race at a.c:1 and a.c:11 (9cdf2fa7129d6b9b)" file="a.c" line="1" time="0">
            <testsuite name="two.std" tests="1" failures="0" errors="0" skipped="0">
            <testcase classname="races.exact" name="nothing else found" time="0"/>
        "#]],
    );
}
