//! What is said, in full, of every litmus case and of three recorded programs.
//!
//! `UPDATE_EXPECT=1 cargo test -p reweave-report --test snapshots` writes the files in `data` anew.
//! Read the difference before you commit it.

#![allow(clippy::unwrap_used, reason = "what fails here is the test")]

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use reweave_analysis::{Outcome, Settings};
use reweave_catalog::Quiet;
use reweave_format::ReadOptions;
use reweave_report::{Examined, Sources};
use reweave_testkit::corpus;
use reweave_trace::Trace;

/// What the analyses that run by default find, and determinism if `with` asks for it.
fn outcome(trace: &Trace, with: &[String]) -> Outcome {
    let analyses = reweave_catalog::select("", with).unwrap();
    reweave_catalog::run(trace, &analyses, &Settings::default(), &Quiet)
}

fn plain(out: &[u8]) -> String {
    anstream::adapter::strip_str(std::str::from_utf8(out).unwrap()).to_string()
}

fn text(examined: &Examined<'_>) -> String {
    let mut out = Vec::new();
    reweave_report::text(&mut out, &[*examined]).unwrap();
    plain(&out)
}

/// The explanation of every finding.
fn explained(examined: &Examined<'_>) -> String {
    let mut all = String::new();
    for reported in &examined.outcome.findings {
        let mut out = Vec::new();
        reweave_report::explanation_text(&mut out, examined, reported).unwrap();
        writeln!(all, "{}", plain(&out)).unwrap();
    }
    all
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// Compares what every format for programs says of `examined` with the files called `name`.
fn check_machines(name: &str, examined: &[Examined<'_>]) {
    let mut timelines = String::new();
    let mut pages = String::new();
    for one in examined {
        timelines += &written(|out| reweave_report::chrome(out, &[*one]));
        let page = written(|out| reweave_report::html(out, &[*one]));
        page_data(&page).for_each(|data| writeln!(pages, "{data}").unwrap());
    }
    // Names from the root of the repository would need one where the tests run.
    let none = Sources::none();
    let anywhere = examined.iter().map(|one| Examined { sources: &none, ..*one });
    let anywhere = &anywhere.collect::<Vec<_>>()[..];
    let outputs = [
        ("json", written(|out| reweave_report::json_list(out, examined))),
        ("sarif", written(|out| reweave_report::sarif(out, anywhere))),
        ("junit.xml", written(|out| reweave_report::junit(out, examined))),
        ("github.txt", written(|out| reweave_report::github(out, anywhere))),
        ("chrome.json", timelines),
        ("page.json", pages),
    ];
    let version = concat!("\"", env!("CARGO_PKG_VERSION"), "\"");
    for (ending, output) in outputs {
        let output = output.replace(version, "\"this one\"");
        expect_file![data().join(format!("{name}.{ending}"))].assert_eq(&output);
    }
}

fn written(report: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    report(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// What an HTML page shows, without what shows it.
fn page_data(page: &str) -> impl Iterator<Item = &str> {
    let elements = page.split("<script type=\"application/json\"").skip(1);
    elements.map(|rest| rest.split_once("</script>").unwrap().0.split_once('>').unwrap().1.trim())
}

#[test]
fn programs_are_told_the_same_of_every_litmus_case() {
    let cases = corpus::litmus().into_iter().map(|case| {
        let trace = case.trace();
        let outcome = outcome(&trace, &[]);
        (format!("{}.std", case.name), trace, outcome)
    });
    let cases: Vec<(String, Trace, Outcome)> = cases.collect();
    let examined = cases.iter().map(|(path, trace, found)| Examined::new(path, trace, found));
    check_machines("litmus", &examined.collect::<Vec<_>>());
}

#[test]
fn programs_are_told_the_same_of_recorded_programs() {
    let sources = Sources::new(vec![examples()], None);
    for name in RECORDED {
        let (trace, path) = (recorded(name), format!("{name}.rwt"));
        let outcome = outcome(&trace, &["determinism".to_owned()]);
        let examined = Examined { sources: &sources, ..Examined::new(&path, &trace, &outcome) };
        check_machines(name, &[examined]);
    }
}

#[test]
fn every_litmus_case_is_told_and_explained() {
    let (mut told, mut argued) = (String::new(), String::new());
    for case in corpus::litmus() {
        let (trace, path) = (case.trace(), format!("{}.std", case.name));
        let outcome = outcome(&trace, &[]);
        let examined = Examined::new(&path, &trace, &outcome);
        writeln!(told, "{}", text(&examined)).unwrap();
        argued += &explained(&examined);
    }
    expect_file!["./data/litmus.txt"].assert_eq(&told);
    expect_file!["./data/litmus_explained.txt"].assert_eq(&argued);
}

/// The recorded programs.
const RECORDED: [&str; 3] = ["hidden_race", "abba_deadlock", "double_checked_locking"];

/// Where the code of the recorded programs is.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples")
}

fn recorded(name: &str) -> Trace {
    let path = corpus::folder().join("recorded").join(format!("{name}.rwt"));
    reweave_format::read(&path, &ReadOptions::default()).unwrap().trace
}

#[test]
fn recorded_programs_are_told_and_explained_beside_their_code() {
    let sources = Sources::new(vec![examples()], None);
    for name in RECORDED {
        let (trace, path) = (recorded(name), format!("{name}.rwt"));
        let outcome = outcome(&trace, &["determinism".to_owned()]);
        let examined = Examined { sources: &sources, ..Examined::new(&path, &trace, &outcome) };
        let text = text(&examined);
        assert!(text.lines().all(|line| !line.contains('\t')), "{text}");
        expect_file![data().join(format!("{name}.txt"))].assert_eq(&text);
        let explained = explained(&examined);
        expect_file![data().join(format!("{name}_explained.txt"))].assert_eq(&explained);
    }
}

#[test]
fn a_finding_of_a_small_program_fits_on_a_screen() {
    let sources = Sources::new(vec![examples()], None);
    for name in ["hidden_race", "abba_deadlock"] {
        let trace = recorded(name);
        let outcome = outcome(&trace, &[]);
        let examined = Examined { sources: &sources, ..Examined::new("run.rwt", &trace, &outcome) };
        assert_eq!(outcome.findings.len(), 1);
        assert!(text(&examined).lines().count() <= 35, "{}", text(&examined));
    }
}
