//! What pages hold: the data that their script draws, and no more of a trace than that needs.

use expect_test::expect;
use reweave_analysis::{Outcome, Settings};
use reweave_catalog::Quiet;
use reweave_report::{Examined, SetAside, Sources};
use reweave_trace::{AccessOp, Op, ThreadOp, Trace, TraceBuilder};
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
    let view: Value = serde_json::from_str(data(&page, "view0")).unwrap();
    let finding = &view["findings"][0];
    let part = |name: &str| format!("{name} {}", finding[name]);
    expect![[r#"
        goal "race"
        sites [{"event":0,"holding":7},{"event":5,"holding":7}]
        observed [{"fault":0},1,2,3,4,{"fault":5}]
        predicted [3,4,{"next":0},{"next":5}]"#]]
    .assert_eq(&["goal", "sites", "observed", "predicted"].map(part).join("\n"));
    let column = |name: &str| format!("{name} {}", view["events"][name]);
    let columns = ["number", "thread", "op", "place", "held", "after", "saw"];
    expect![[r#"
        number [1,2,3,4,5,6]
        thread [0,0,0,1,1,1]
        op [0,1,2,1,2,3]
        place [0,1,2,3,4,5]
        held [0,0,1,0,2,0]
        after {"1":1,"2":0,"3":2,"4":0}
        saw {"5":1}"#]]
    .assert_eq(&columns.map(column).join("\n"));
}

/// Everything that is found in `trace`.
fn all_found(trace: &Trace) -> Outcome {
    let with = ["determinism".to_owned()];
    let analyses = reweave_catalog::select("", &with).expect("there are such analyses");
    reweave_catalog::run(trace, &analyses, &Settings::default(), &Quiet)
}

#[test]
fn a_page_holds_the_findings_as_json_reports_have_them() {
    let schema: Value = serde_json::from_str(reweave_report::SCHEMA_FILE).unwrap();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    let rounds = (0..130).map(|at| format!("T1|w(x{at})|a.c:{at}\nT2|w(x{at})|b.c:{at}\n"));
    let hostile = "T<script>|w(</script>\u{202e})|<a>\nU\u{1b}|w(</script>\u{202e})|b\n";
    for std in [HIDDEN, BANK, hostile, &rounds.collect::<String>()] {
        let trace = reweave_testkit::std(std);
        let outcome = all_found(&trace);
        let examined = [Examined::new("run.std", &trace, &outcome)];
        let page = page(&examined);
        let mut out = Vec::new();
        reweave_report::json(&mut out, &examined).unwrap();
        let document: Value = serde_json::from_slice(&out).unwrap();
        let chunks = outcome.findings.len().div_ceil(100);
        let mut findings = Vec::new();
        for at in 0..chunks {
            let text = data(&page, &format!("report{at}"));
            assert!(!text.contains(['<', '\u{202e}', '\u{1b}']), "{text}");
            let mut part: Value = serde_json::from_str(text).unwrap();
            assert!(schema.is_valid(&part), "{part}");
            findings.append(part["findings"].as_array_mut().unwrap());
            assert_eq!(part["coverage"], document["coverage"]);
        }
        assert!(!findings.is_empty());
        assert_eq!(Value::Array(findings), document["findings"]);
    }
}

/// Several kinds of fault.
const BANK: &str = crate::browser::BANK;

#[test]
fn what_is_left_out_can_be_shown_in_both_orders_up_to_a_limit() {
    for (count, shown) in [(5, 15), (1_000, 40)] {
        let before = "T1|acq(n)|a.c:1\nT1|w(own)|a.c:2\nT1|rel(n)|a.c:3\n".repeat(count);
        let trace = reweave_testkit::std(&format!("{before}{HIDDEN}"));
        let outcome = found(&trace, "races.exact");
        let page = page(&[Examined::new("run.std", &trace, &outcome)]);
        let view: Value = serde_json::from_str(data(&page, "view0")).unwrap();
        for order in ["observed", "predicted"] {
            let rows = view["findings"][0][order].as_array().unwrap();
            let gaps: Vec<&Value> = rows.iter().filter(|row| row["gap"].is_u64()).collect();
            let length = |list: &Value| list.as_array().map_or(0, Vec::len);
            let all: Vec<usize> =
                gaps.iter().map(|gap| length(&gap["first"]) + length(&gap["last"])).collect();
            assert!(all.iter().all(|&count| count <= 40), "{order}: {gaps:?}");
            if count == 5 {
                let sizes = gaps.iter().map(|gap| gap["gap"].as_u64().unwrap() as usize);
                assert_eq!(all, sizes.collect::<Vec<_>>(), "{order}: {gaps:?}");
            } else {
                assert_eq!(all.iter().max(), Some(&shown), "{order}: {gaps:?}");
            }
            // The events of a gap are those that come next.
            let numbers = &view["events"]["number"];
            for gap in gaps.iter().filter(|_| order == "observed") {
                let list = gap["first"].as_array().into_iter().flatten();
                let list: Vec<u64> = list
                    .map(|event| numbers[event.as_u64().unwrap() as usize].as_u64().unwrap())
                    .collect();
                assert!(list.windows(2).all(|two| two[1] == two[0] + 1), "{list:?}");
            }
        }
    }
}

#[test]
fn why_and_how_to_fix_are_on_the_page() {
    let trace = reweave_testkit::std(HIDDEN);
    let outcome = found(&trace, "races.exact");
    let page = page(&[Examined::new("run.std", &trace, &outcome)]);
    let [report, view]: [Value; 2] =
        ["report0", "view0"].map(|id| serde_json::from_str(data(&page, id)).unwrap());
    let text = |id: &Value| view["strings"][id.as_u64().unwrap() as usize].as_str().unwrap();
    let argument = &view["findings"][0]["argument"];
    let why = &view["reasons"][argument["why"].as_u64().unwrap() as usize];
    assert_eq!(why["heading"], "Why it is a fault");
    let told = &report["findings"][0];
    let [why, fix] = ["why", "fix"].map(|name| told[name][0].as_str().unwrap());
    assert!(why.contains("nothing makes one wait for the other"), "{why}");
    assert!(fix.contains("take the same lock around a.c:1 and b.c:3"), "{fix}");
    let before = argument["before"].to_string();
    assert!(before.contains("T1 released `m`"), "{before}");
    assert!(text(&view["findings"][0]["standing"]).starts_with("Predicted, from a run"));
}

#[test]
fn what_woke_a_thread_is_drawn_with_it() {
    let waits = "T1|acq(m)|1\nT1|rel(m)|2\nT1|wait(c)|3\nT2|w(x)|4\nT2|notify(c)|5\nT1|wake(c)|6\n\
                 T1|acq(m)|7\nT1|rel(m)|8\nT1|w(x)|9\nT3|w(x)|10\n";
    let trace = reweave_testkit::std(waits);
    let outcome = found(&trace, "races.exact");
    let page = page(&[Examined::new("run.std", &trace, &outcome)]);
    let view: Value = serde_json::from_str(data(&page, "view0")).unwrap();
    let numbers = view["events"]["number"].as_array().unwrap();
    let wake = numbers.iter().position(|number| number == 6).unwrap();
    let expected = format!("{{\"{wake}\":[5]}}");
    assert_eq!(view["events"]["causes"].to_string(), expected);
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
    let list: Value = serde_json::from_str(data(&page, "page")).unwrap();
    assert_eq!(list["findings"]["id"].as_array().map(Vec::len), Some(2));
    assert_eq!(list["findings"]["chunk"][1], 1, "it is in a chunk of its own trace");
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
    let chunk: Value = serde_json::from_str(data(&page, "view0")).unwrap();
    let files = chunk["files"].as_array().unwrap();
    assert_eq!(files.len(), 2, "one of them has no lines");
    let expected = (1..=6).map(|line| (line.to_string(), format!("line    {line}").into()));
    assert_eq!(files[0]["lines"], Value::Object(expected.collect()));
    assert_eq!(files[0]["colours"]["2"], "-8 n1");
    let strings = chunk["strings"].to_string();
    assert!(strings.contains("No code: `b.c` was not found."), "{strings}");
}

/// The data of the first finding of the only trace.
fn first_finding(std: &str) -> Value {
    let trace = reweave_testkit::std(std);
    let outcome = found(&trace, "races.exact");
    let page = page(&[Examined::new("run.std", &trace, &outcome)]);
    let chunk: Value = serde_json::from_str(data(&page, "view0")).expect("it is JSON");
    chunk["findings"][0].clone()
}

#[test]
fn an_order_that_happened_is_not_said_to_be_another() {
    assert_eq!(first_finding("T1|w(x)|a.c:1\nT2|r(x)|b.c:3\n")["as_observed"], true);
    assert_eq!(first_finding(HIDDEN)["as_observed"], Value::Null);
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

/// A race of two threads that the program calls so.
fn named(names: [&str; 2]) -> Trace {
    let mut builder = TraceBuilder::new();
    let threads = ["main", "T1"].map(|name| builder.thread(name));
    let (var, sites) = (builder.var("x"), [3, 4, 5].map(|at| builder.site(&format!("a.c:{at}"))));
    builder.push(threads[0], Op::Thread(ThreadOp::Fork, threads[1]), sites[0]);
    for (at, thread) in threads.into_iter().enumerate() {
        builder.names().give_name(thread, names[at]);
        builder.push(thread, Op::Access(AccessOp::Write, var), sites[1 + at]);
    }
    builder.finish().expect("it is well formed")
}

#[test]
fn threads_are_known_by_the_names_that_the_program_gives_them() {
    let trace = named(["boss", "reader"]);
    let outcome = found(&trace, "races.exact");
    let examined = [Examined::new("run.rwt", &trace, &outcome)];
    let page = page(&examined);
    let (_, plain) = page.split_once("<noscript>").unwrap();
    let legend = "T1 `reader` was started at a.c:3 by main; main is called `boss`";
    let view: Value = serde_json::from_str(data(&page, "view0")).unwrap();
    assert_eq!(view["findings"][0]["legend"][0], legend);
    assert!(plain.contains(legend), "{plain}");
    let strings = view["strings"].as_array().unwrap();
    let threads = view["threads"].as_array().unwrap();
    let given = threads.iter().map(|it| &strings[it["given"].as_u64().unwrap() as usize]);
    assert_eq!(given.collect::<Vec<_>>(), ["boss", "reader"]);
    let mut json = Vec::new();
    reweave_report::json(&mut json, &examined).unwrap();
    let report: Value = serde_json::from_slice(&json).unwrap();
    let names = serde_json::json!({ "main": "boss", "T1": "reader" });
    assert_eq!(report["trace"]["thread_names"], names);
    assert_eq!(report["findings"][0]["sites"][1]["thread_name"], "reader");
    let mut text = Vec::new();
    reweave_report::text(&mut text, &examined).unwrap();
    assert!(String::from_utf8(text).unwrap().contains(legend));
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

#[test]
fn a_long_schedule_is_drawn_by_what_matters_and_not_by_what_came_last() {
    let own = |thread: &str| -> String {
        (0..30).map(|at| format!("{thread}|w(own.{thread}._M_part{at})|a.c:{at}\n")).collect()
    };
    let std = format!(
        "main|fork(T1)|m.c:1\nmain|fork(T2)|m.c:2\nT1|w(mode)|s.c:3\nT1|acq(m)|s.c:4\nT1|rel(m)|s.c:5\n\
         T2|acq(m)|s.c:6\nT2|r(mode)|s.c:7\nT2|rel(m)|s.c:8\n{}{}T1|w(x)|s.c:9\nT2|w(x)|s.c:10\n",
        own("T1"),
        own("T2"),
    );
    let trace = reweave_testkit::std(&std);
    let outcome = found(&trace, "races.exact");
    let at = outcome.findings.iter().position(|it| it.finding.message.contains("`w(x)`"));
    let page = page(&[Examined::new("run.std", &trace, &outcome)]);
    let view: Value = serde_json::from_str(data(&page, "view0")).unwrap();
    let rows = view["findings"][at.expect("it is found")]["predicted"].as_array().unwrap();
    let numbers = rows.iter().filter(|row| row.get("gap").is_none()).map(|row| {
        let event = row.as_u64().or_else(|| row.as_object()?.values().next()?.as_u64());
        view["events"]["number"][event.expect("a row is an event") as usize].as_u64().unwrap()
    });
    let numbers: Vec<u64> = numbers.collect();
    // The value that was handed over and the starts of the threads, and not their last eight steps each.
    assert!([1, 2, 3, 7].iter().all(|number| numbers.contains(number)), "{numbers:?}");
    assert!(numbers.len() <= 16, "{numbers:?}");
}
