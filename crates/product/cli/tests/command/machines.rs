//! What programs read of the command: JSON by its schema, SARIF, JUnit, annotations, timelines.

use serde_json::Value;

use super::{Folder, RACE};

/// Two updates of which one can be lost.
const PROGRAM: &str = "shared x;\nmain { cobegin { { x = x + 1; } { x = x + 1; } } }\n";

#[test]
fn every_document_is_what_the_printed_schema_says() {
    let folder = Folder::with("run.std", RACE);
    folder.put("lost.rw", PROGRAM);
    let schema = jsonschema::draft202012::new(&folder.run(&["schema"]).expect(0).json());
    let schema = schema.expect("the schema is one");
    let commands: [&[&str]; 17] = [
        &["list"],
        &["check", "run.std"],
        &["check", "run.std", "run.std", "--limit", "0"],
        &["check", "--compare", "run.std"],
        &["check", "--compare", "run.std", "run.std"],
        &["states", "count", "run.std", "--predicate", "done(T1)"],
        &["races", "--all", "--relation", "hb", "run.std"],
        &["determinism", "--all", "--mode", "strict", "run.std"],
        &["explain", "run.std", "R1"],
        &["stats", "run.std"],
        &["stats", "run.std", "run.std"],
        &["states", "count", "run.std"],
        &["states", "list", "run.std"],
        &["states", "sample", "run.std"],
        &["states", "find", "run.std", "--predicate", "possibly(done(T1))"],
        &["ndseq", "infer", "lost.rw"],
        &["run", "lost.rw", "--runs", "2"],
    ];
    for command in commands {
        let ran = folder.run(&[command, &["--format", "json"]].concat());
        assert!([0, 3, 66].contains(&ran.code()), "{command:?}: {}", ran.err());
        let document = ran.json();
        let faults: Vec<String> =
            schema.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{command:?}: {faults:#?}");
    }
}

#[test]
fn explaining_for_machines_tells_of_that_finding_alone() {
    let folder =
        Folder::with("run.std", "T1|w(x)|a.c:1\nT1|w(y)|a.c:2\nT2|w(x)|b.c:1\nT2|w(y)|b.c:2\n");
    let explain = |format| folder.run(&["explain", "run.std", "R2", "--format", format]).expect(0);
    let log = explain("sarif").json();
    let results = log["runs"][0]["results"].as_array().expect("there are results");
    assert!(matches!(&results[..], [only] if only["properties"]["id"] == "R2"), "{results:?}");
    assert_eq!(explain("junit").out().matches("<failure").count(), 1);
    assert_eq!(explain("github").out().matches("::error ").count(), 1);
    let timeline = explain("chrome").json();
    let entries = timeline["traceEvents"].as_array().expect("there are entries");
    let named = |entry: &&Value| entry["name"] == "process_name";
    let names: Vec<&Value> =
        entries.iter().filter(named).map(|entry| &entry["args"]["name"]).collect();
    assert_eq!(names, ["R2 observed", "R2 predicted"]);
}

#[test]
fn a_step_summary_is_appended_and_never_stops_the_report() {
    let folder = Folder::with("run.std", RACE);
    folder.put("summary.md", "before\n");
    let check = |summary: &str, format: &str| {
        let mut command = folder.command(&["check", "run.std", "--format", format]);
        let output = command.env("GITHUB_STEP_SUMMARY", folder.path(summary)).output();
        super::Ran(output.expect("the command starts"))
    };
    check("summary.md", "text").expect(66);
    assert_eq!(folder.read("summary.md"), b"before\n");
    check("summary.md", "github").expect(66);
    let summary = String::from_utf8(folder.read("summary.md")).expect("it is UTF-8");
    assert!(summary.starts_with("before\n### reweave") && summary.contains("| R1 | race |"));
    let ran = check("nowhere/summary.md", "github").expect(66);
    assert!(ran.out().contains("::error "), "{}", ran.out());
    assert!(ran.err().contains("cannot write the step summary"), "{}", ran.err());
}

#[test]
fn a_timeline_is_written_and_not_read() {
    let folder = Folder::with("run.std", RACE);
    folder.run(&["convert", "run.std", "run.json", "--to", "chrome"]).expect(0);
    let ran = folder.run(&["check", "run.json"]).expect(2);
    assert!(ran.err().contains("written and not read"), "{}", ran.err());
    let ran = folder.run(&["convert", "run.std", "run.json"]).expect(2);
    assert!(ran.err().contains("--to"), "{}", ran.err());
}

#[test]
#[cfg(not(feature = "parquet"))]
fn a_build_without_parquet_says_how_to_get_it_before_it_reads() {
    let folder = Folder::new();
    let ran = folder.run(&["convert", "nowhere.std", "run.parquet"]).expect(2);
    assert!(ran.err().contains("--features parquet"), "{}", ran.err());
}
