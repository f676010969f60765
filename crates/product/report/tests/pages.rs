//! What pages hold: the data that their script draws, and no more of a trace than that needs.

use expect_test::expect;
use reweave_analysis::{Outcome, Settings};
use reweave_catalog::Quiet;
use reweave_report::{Examined, SetAside, Sources};
use reweave_trace::Trace;
use serde_json::Value;

fn found(trace: &Trace, only: &str) -> Outcome {
    let analyses = reweave_catalog::select(only, &[]).expect("there is such an analysis");
    reweave_catalog::run(trace, &analyses, &Settings::default(), &Quiet)
}

fn page(examined: &[Examined<'_>]) -> String {
    let mut out = Vec::new();
    reweave_report::html(&mut out, examined).expect("a vector takes anything");
    String::from_utf8(out).expect("pages are UTF-8")
}

/// The data of `page` that its script knows as `id`, as it stands there.
fn data<'p>(page: &'p str, id: &str) -> &'p str {
    let start = format!("<script type=\"application/json\" id=\"{id}\">");
    let (_, rest) = page.split_once(&start).expect("it is there");
    rest.split_once("</script>").expect("it ends").0
}

/// A race that is hidden by who took the lock first.
const HIDDEN: &str = "\
T1|w(x)|a.c:1
T1|acq(m)|a.c:2
T1|rel(m)|a.c:3
T2|acq(m)|b.c:1
T2|rel(m)|b.c:2
T2|r(x)|b.c:3
";

#[test]
fn the_data_of_a_finding_has_its_slice_in_both_orders() {
    let trace = reweave_testkit::std(HIDDEN);
    let outcome = found(&trace, "races.exact");
    let page = page(&[Examined::new("run.std", &trace, &outcome)]);
    let chunk: Value = serde_json::from_str(data(&page, "chunk0")).unwrap();
    let finding = &chunk["findings"][0];
    let part = |name: &str| format!("{name} {}", finding[name]);
    expect![[r#"
        goal "race"
        sites [[0,null,11,0],[5,null,11,0]]
        observed [[0,1],1,2,3,4,[5,1]]
        predicted [3,4,[0,2],[5,2]]"#]]
    .assert_eq(&["goal", "sites", "observed", "predicted"].map(part).join("\n"));
    let events: Vec<String> =
        chunk["events"].as_array().unwrap().iter().map(Value::to_string).collect();
    expect![[r#"
        [1,0,"w",1,null,0,0,null,null,null,null]
        [2,0,"acq",3,null,1,0,null,null,null,1]
        [3,0,"rel",3,null,2,1,null,null,null,0]
        [4,1,"acq",3,null,3,0,null,null,null,2]
        [5,1,"rel",3,null,4,2,null,null,null,0]
        [6,1,"r",1,null,5,0,null,null,1,null]"#]]
    .assert_eq(&events.join("\n"));
}

#[test]
fn a_page_goes_by_its_findings_and_not_by_the_trace() {
    let size = |count: usize| {
        let before = "T1|acq(m)|a.c:1\nT1|w(own)|a.c:2\nT1|rel(m)|a.c:3\n".repeat(count);
        let trace = reweave_testkit::std(&format!("{before}{HIDDEN}"));
        let outcome = found(&trace, "races.exact");
        assert_eq!(outcome.findings.len(), 1);
        page(&[Examined::new("run.std", &trace, &outcome)]).len()
    };
    let (short, long) = (size(100), size(30_000));
    assert!(long < short + 1_000, "{short} and {long} bytes");
}

#[test]
fn findings_of_several_traces_keep_apart() {
    let trace = reweave_testkit::std(HIDDEN);
    let outcome = found(&trace, "races.exact");
    let aside = SetAside { known: 3, suppressed: 4 };
    let one = Examined { set_aside: aside, ..Examined::new("one.std", &trace, &outcome) };
    let two = Examined::new("a b's.std", &trace, &outcome);
    let page = page(&[one, two]);
    let list: Value = serde_json::from_str(data(&page, "report")).unwrap();
    assert_eq!(list["findings"].as_array().map(Vec::len), Some(2));
    assert_eq!(list["findings"][1][7], 1, "it is in a chunk of its own trace");
    assert_eq!(
        (&list["traces"][0]["known"], &list["traces"][0]["suppressed"]),
        (&3.into(), &4.into())
    );
    assert!(page.contains("'a b'\\\\''s.std'"), "commands can be typed");
    assert!(page.contains("Not shown: 3 in the baseline, 4 suppressed."));
    assert!(page.contains("id=\"R1\"") && page.contains("id=\"trace2-R1\""));
}

#[test]
fn code_is_said_once_and_what_is_wrong_with_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (1..=9).map(|line| format!("line\t{line}\n")).collect();
    std::fs::write(folder.path().join("a.c"), lines).unwrap();
    let trace = reweave_testkit::std(HIDDEN);
    let outcome = found(&trace, "races.exact");
    let sources = Sources::new(vec![folder.path().to_owned()], None);
    let examined = Examined { sources: &sources, ..Examined::new("run.std", &trace, &outcome) };
    let page = page(&[examined]);
    let chunk: Value = serde_json::from_str(data(&page, "chunk0")).unwrap();
    let files = chunk["files"].as_array().unwrap();
    assert_eq!(files.len(), 1);
    let expected = (1..=6).map(|line| (line.to_string(), format!("line    {line}").into()));
    assert_eq!(files[0][1], Value::Object(expected.collect()));
    let strings = chunk["strings"].to_string();
    assert!(strings.contains("No code: `b.c` was not found."), "{strings}");
}

/// The data of the first finding of the only trace.
fn first_finding(std: &str) -> Value {
    let trace = reweave_testkit::std(std);
    let outcome = found(&trace, "races.exact");
    let page = page(&[Examined::new("run.std", &trace, &outcome)]);
    let chunk: Value = serde_json::from_str(data(&page, "chunk0")).expect("it is JSON");
    chunk["findings"][0].clone()
}

#[test]
fn an_order_that_happened_is_not_said_to_be_another() {
    assert_eq!(first_finding("T1|w(x)|a.c:1\nT2|r(x)|b.c:3\n")["is_as_observed"], true);
    assert_eq!(first_finding(HIDDEN)["is_as_observed"], Value::Null);
}

#[test]
fn a_page_tells_who_started_the_threads_and_where_locks_were_taken() {
    let std = "main|fork(T1)|m.c:4\nmain|fork(T2)|m.c:5\n\
               T1|acq(m)|a.c:1\nT1|w(x)|a.c:2\nT1|rel(m)|a.c:3\nT2|r(x)|b.c:3\n";
    let trace = reweave_testkit::std(std);
    let outcome = found(&trace, "races.exact");
    let page = page(&[Examined::new("run.std", &trace, &outcome)]);
    let legend = "T1 was started at m.c:4 by main; T2 at m.c:5 by main";
    let (script, plain) = page.split_once("<noscript>").unwrap();
    for part in [legend, "holding m (acquired at line 1)"] {
        assert!(script.contains(part) && plain.contains(part), "{part} in {page}");
    }
}

#[test]
fn a_page_of_a_long_trace_is_small() {
    if std::env::var_os("REWEAVE_SOAK").is_none() {
        println!("skipped: REWEAVE_SOAK is not set, and a million events take their time");
        return;
    }
    let before: String = (0..333_334)
        .map(|at| format!("T1|acq(m)|a.c:1\nT1|w(own{})|a.c:2\nT1|rel(m)|a.c:3\n", at % 1000))
        .collect();
    let trace = reweave_testkit::std(&format!("{before}{HIDDEN}"));
    assert!(trace.len() > 1_000_000);
    let outcome = found(&trace, "races.exact");
    let started = std::time::Instant::now();
    let size = page(&[Examined::new("run.std", &trace, &outcome)]).len();
    println!("{size} bytes, written in {:?}", started.elapsed());
    assert!(outcome.findings.len() == 1 && size < 2_000_000, "{size} bytes");
}
