//! What is written for timeline viewers: JSON in which slices nest and arrows have two ends.

use std::collections::{BTreeMap, BTreeSet};

use expect_test::expect;
use proptest::prelude::*;
use reweave_format::{Format, ReadOptions, chrome, read_from, write_to};
use reweave_testkit::generate::{Drawn, Shape, traces};
use reweave_trace::Trace;
use serde_json::Value;

fn written(trace: &Trace) -> String {
    let mut out = Vec::new();
    write_to(trace, &mut out, Format::Chrome).expect("a vector takes anything");
    String::from_utf8(out).expect("it is UTF-8")
}

fn number(entry: &Value, key: &str) -> u64 {
    entry[key].as_u64().unwrap_or_else(|| panic!("{key} of {entry}"))
}

/// Checks what viewers rely on, and answers the entries.
#[track_caller]
fn check(text: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(text).expect("it is JSON");
    let entries = document["traceEvents"].as_array().expect("it has entries").clone();
    let mut tracks: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    let mut named = BTreeSet::new();
    let mut arrows: BTreeMap<u64, Vec<(&str, u64)>> = BTreeMap::new();
    for entry in &entries {
        let track = || (number(entry, "pid"), number(entry, "tid"));
        match entry["ph"].as_str().expect("it has a phase") {
            "M" if entry["name"] == "thread_name" => assert!(named.insert(track()), "{entry}"),
            "M" => {}
            "X" => {
                let start = number(entry, "ts");
                let slice = (start, start + number(entry, "dur"));
                assert!(slice.0 < slice.1 && named.contains(&track()), "{entry}");
                tracks.entry(track()).or_default().push(slice);
            }
            phase @ ("s" | "f") => {
                let ends = arrows.entry(number(entry, "id")).or_default();
                ends.push((phase, number(entry, "ts")));
                // Both ends lie in a slice.
                let (at, slices) = (number(entry, "ts"), &tracks[&track()]);
                assert!(slices.iter().any(|&(start, end)| start <= at && at < end), "{entry}");
            }
            other => panic!("{other}"),
        }
    }
    for ends in arrows.values() {
        assert!(matches!(ends[..], [("s", from), ("f", to)] if from < to), "{ends:?}");
    }
    for slices in tracks.values_mut() {
        slices.sort_by_key(|&(start, end)| (start, std::cmp::Reverse(end)));
        let mut open: Vec<u64> = Vec::new();
        for &(start, end) in slices.iter() {
            while open.last().is_some_and(|&last| last <= start) {
                open.pop();
            }
            assert!(open.last().is_none_or(|&last| end <= last), "{slices:?}");
            open.push(end);
        }
    }
    entries
}

#[test]
fn a_small_run_is_drawn_with_its_locks_and_arrows() {
    let trace = reweave_testkit::std(
        "main|fork(T)|a.c:1\nmain|acq(m)|a.c:2\nmain|w(x)|a.c:3\nmain|rel(m)|a.c:4\n\
         T|racq(m)|b.c:1\nT|r(x)|b.c:2\nT|rrel(m)|b.c:3\nmain|join(T)|a.c:5\n",
    );
    let text = written(&trace);
    check(&text);
    expect![[r#"
        {"displayTimeUnit":"ns","traceEvents":[
        {"name":"process_name","ph":"M","pid":1,"args":{"name":"observed"}},
        {"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"main"}},
        {"name":"thread_sort_index","ph":"M","pid":1,"tid":1,"args":{"sort_index":1}},
        {"name":"thread_name","ph":"M","pid":1,"tid":2,"args":{"name":"T"}},
        {"name":"thread_sort_index","ph":"M","pid":1,"tid":2,"args":{"sort_index":2}},
        {"name":"m","ph":"X","pid":1,"tid":1,"ts":2,"dur":3,"cat":"held","args":{"mode":"exclusive"}},
        {"name":"m (shared)","ph":"X","pid":1,"tid":2,"ts":5,"dur":3,"cat":"held","args":{"mode":"shared"}},
        {"name":"fork(T)","ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"cat":"thread","args":{"event":1,"on":"T","location":"a.c:1"}},
        {"name":"acq(m)","ph":"X","pid":1,"tid":1,"ts":2,"dur":1,"cat":"lock","args":{"event":2,"on":"m","location":"a.c:2"}},
        {"name":"w(x)","ph":"X","pid":1,"tid":1,"ts":3,"dur":1,"cat":"memory","args":{"event":3,"on":"x","location":"a.c:3"}},
        {"name":"rel(m)","ph":"X","pid":1,"tid":1,"ts":4,"dur":1,"cat":"lock","args":{"event":4,"on":"m","location":"a.c:4"}},
        {"name":"racq(m)","ph":"X","pid":1,"tid":2,"ts":5,"dur":1,"cat":"lock","args":{"event":5,"on":"m","location":"b.c:1"}},
        {"name":"r(x)","ph":"X","pid":1,"tid":2,"ts":6,"dur":1,"cat":"memory","args":{"event":6,"on":"x","location":"b.c:2"}},
        {"name":"rrel(m)","ph":"X","pid":1,"tid":2,"ts":7,"dur":1,"cat":"lock","args":{"event":7,"on":"m","location":"b.c:3"}},
        {"name":"join(T)","ph":"X","pid":1,"tid":1,"ts":8,"dur":1,"cat":"thread","args":{"event":8,"on":"T","location":"a.c:5"}},
        {"name":"starts","ph":"s","pid":1,"tid":1,"ts":1,"cat":"order","id":1},
        {"name":"starts","ph":"f","pid":1,"tid":2,"ts":5,"cat":"order","id":1,"bp":"e"},
        {"name":"hands over","ph":"s","pid":1,"tid":1,"ts":4,"cat":"order","id":2},
        {"name":"hands over","ph":"f","pid":1,"tid":2,"ts":5,"cat":"order","id":2,"bp":"e"},
        {"name":"reads from","ph":"s","pid":1,"tid":1,"ts":3,"cat":"order","id":3},
        {"name":"reads from","ph":"f","pid":1,"tid":2,"ts":6,"cat":"order","id":3,"bp":"e"},
        {"name":"ends","ph":"s","pid":1,"tid":2,"ts":7,"cat":"order","id":4},
        {"name":"ends","ph":"f","pid":1,"tid":1,"ts":8,"cat":"order","id":4,"bp":"e"}
        ]}
    "#]].assert_eq(&text);
}

#[test]
fn locks_taken_hand_over_hand_get_a_second_track() {
    let trace = reweave_testkit::std(
        "T|acq(a)|1\nT|acq(b)|2\nT|rel(a)|3\nT|acq(c)|4\nT|rel(b)|5\nT|rel(c)|6\nT|acq(d)|7\n",
    );
    let entries = check(&written(&trace));
    let name = |entry: &Value| entry["args"]["name"].as_str().map(str::to_owned);
    let tracks: Vec<String> =
        entries.iter().filter(|entry| entry["name"] == "thread_name").filter_map(name).collect();
    assert_eq!(tracks, ["T", "T (2)"]);
}

#[test]
fn runs_in_another_order_are_processes_of_their_own() {
    let trace = reweave_testkit::std("T|acq(m)|1\nT|w(x)|2\nT|rel(m)|3\nU|w(x)|4\n");
    let events: Vec<_> = trace.events().map(|(id, _)| id).collect();
    let given = vec![(1, events[3]), (2, events[1]), (3, events[2])];
    let mut out = Vec::new();
    let runs = [
        chrome::Run::observed(&trace, "observed".to_owned()),
        chrome::Run::given(&trace, "predicted".to_owned(), given, vec![events[1]]),
    ];
    chrome::write_runs(&mut out, &runs).expect("a vector takes anything");
    let entries = check(&String::from_utf8(out).expect("it is UTF-8"));
    let second: Vec<&Value> =
        entries.iter().filter(|it| it["pid"] == 2 && it["ph"] == "X").collect();
    // The lock is held from the start, since the acquire is not part of the run.
    let told: Vec<String> =
        second.iter().map(|it| format!("{} {}+{}", it["name"], it["ts"], it["dur"])).collect();
    assert_eq!(told, ["\"m\" 1+3", "\"w(x)\" 1+1", "\"w(x)\" 2+1", "\"rel(m)\" 3+1"]);
    assert_eq!(second[2]["cat"], "fault");
}

#[test]
fn a_lock_is_held_as_long_as_it_was_though_its_release_is_not_shown() {
    let trace = reweave_testkit::std("T|acq(m)|1\nT|w(x)|2\nT|rel(m)|3\nU|w(x)|4\nU|w(x)|5\n");
    let events = [0, 1, 3, 4].map(|at| trace.events().nth(at).expect("there are five").0);
    let mut out = Vec::new();
    let run = chrome::Run::some_observed(&trace, "observed".to_owned(), events.into(), Vec::new());
    chrome::write_runs(&mut out, &[run]).expect("a vector takes anything");
    let entries = check(&String::from_utf8(out).expect("it is UTF-8"));
    let held = entries.iter().find(|it| it["cat"] == "held").expect("a lock is held");
    assert_eq!((&held["ts"], &held["dur"]), (&1.into(), &3.into()));
}

#[test]
fn it_is_not_read_and_says_so() {
    let trace = reweave_testkit::std("T|w(x)|1\n");
    let options = ReadOptions::default();
    let error = read_from(written(&trace).as_bytes(), "run.json", &options).unwrap_err();
    assert!(error.to_string().contains("for timeline viewers"), "{error}");
    let error = read_from(&b"PAR1\x15\x00"[..], "run.parquet", &options).unwrap_err();
    assert!(error.to_string().contains("it is Parquet"), "{error}");
}

proptest! {
    #[test]
    fn slices_nest_and_arrows_have_two_ends(Drawn(trace) in traces(Shape::EVERYTHING.events(80))) {
        check(&written(&trace));
    }
}
