//! What programs read: JSON against our own schema, SARIF against the official one, JUnit's XML
//! against a parser, annotations line by line; of the whole litmus corpus, and of hostile names.

use std::io::{self, Write};

use expect_test::{expect, expect_file};
use jsonschema::Validator;
use reweave_analysis::{Analysis, Kind, Outcome, Settings};
use reweave_catalog::Quiet;
use reweave_order::poset::Relation;
use reweave_report::{Confirmation, Examined, Replayed, SetAside, Source};
use reweave_states::analyses::Find;
use reweave_states::predicate::Predicate;
use reweave_trace::{
    AccessOp, EndKind, EventId, LockOp, Marker, Misuse, MisuseKind, Op, RunEnd, ThreadEnd, Trace,
    TraceBuilder,
};
use serde_json::Value;

type Report = fn(&mut dyn Write, &[Examined<'_>]) -> io::Result<()>;

fn bytes(report: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    report(&mut out).expect("a vector takes anything");
    String::from_utf8(out).expect("reports are UTF-8")
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

fn our_schema() -> Validator {
    let schema = parsed(reweave_report::SCHEMA_FILE);
    jsonschema::draft202012::new(&schema).expect("the schema is one")
}

fn sarif_schema() -> Validator {
    let mut schema = parsed(include_str!("data/sarif-schema-2.1.0.json"));
    // This pattern, of a field that is not written, is none by the rules of the schemas themselves.
    for definition in ["run", "toolComponent"] {
        let language = &mut schema["definitions"][definition]["properties"]["language"];
        language.as_object_mut().expect("it is there").remove("pattern");
    }
    let options = jsonschema::options().should_validate_formats(true);
    options.build(&schema).expect("the schema is one")
}

#[track_caller]
fn assert_valid(schema: &Validator, text: &str) {
    let value = parsed(text);
    let faults: Vec<String> = schema
        .iter_errors(&value)
        .take(3)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}\n{text}");
}

fn outcome(trace: &Trace, only: &str, all: bool) -> Outcome {
    let analyses = reweave_catalog::select(only, &[]).expect("there is such an analysis");
    let settings = Settings { all, final_reads: all, ..Settings::default() };
    reweave_catalog::run(trace, &analyses, &settings, &Quiet)
}

/// States in which one thread has ended and another has not.
fn states(trace: &Trace) -> Outcome {
    let threads: Vec<&str> = trace.names().threads.entries().map(|(_, name)| name).collect();
    let text = format!("possibly(done({}) && !done({}))", threads[0], threads[1]);
    let predicate = Predicate::parse(&text, trace).expect("there are two threads");
    let find =
        Find { predicates: vec![predicate], relation: Relation::HappensBefore, is_online: false };
    let analyses: [&dyn Analysis; 1] = [&find];
    reweave_catalog::run(trace, &analyses, &Settings::default(), &Quiet)
}

/// What families are run on every case, and whether everything is listed.
const FAMILIES: [(&str, bool); 6] = [
    ("", false),
    ("races", true),
    ("deadlocks", false),
    ("determinism", true),
    ("atomicity", true),
    ("states", true),
];

/// Everything that is found in the litmus corpus and in what is hostile, one by one.
fn each_examined(mut take: impl FnMut(&Examined<'_>)) {
    let mut cases: Vec<(String, Trace)> = reweave_testkit::corpus::litmus()
        .iter()
        .map(|it| (it.path.display().to_string(), it.trace()))
        .collect();
    cases.push((HOSTILE.to_owned(), hostile()));
    cases.push(("-".to_owned(), TraceBuilder::new().finish().expect("nothing is well formed")));
    for (path, trace) in &cases {
        for (family, all) in FAMILIES {
            let found = outcome(trace, family, all);
            take(&Examined::new(path, trace, &found));
        }
        if trace.names().threads.len() > 1 && path != HOSTILE {
            take(&Examined::new(path, trace, &states(trace)));
        }
    }
}

/// A name that means something to every format.
const HOSTILE: &str =
    "</script><b>%0A::error::x,y:z\u{0}\u{1b}[31m]]>\"'&\u{202e}\u{ffff}|`[a](1) ##[error]";

/// Races, deadlocks and schedule-dependent reads between things with such names.
fn hostile() -> Trace {
    let mut builder = TraceBuilder::new();
    let name = |what: &str| format!("{what}{HOSTILE}");
    let threads = ["T", "U"].map(|it| builder.thread(&name(it)));
    builder.names().give_name(threads[0], HOSTILE);
    let locks = ["m", "n"].map(|it| builder.lock(&name(it)));
    let var = builder.var(&name("x"));
    let frames = [name("f") + " (" + HOSTILE + ":7)", HOSTILE.to_owned()];
    let site = builder.names().site(&name(":7"), frames.iter().map(String::as_str));
    let lines = ["a", "b"].map(|it| builder.site(&(name(it) + ":12:3")));
    for (at, thread) in threads.into_iter().enumerate() {
        let (first, second) = (locks[at], locks[1 - at]);
        builder.push(thread, Op::Lock(LockOp::Acquire, first), site);
        builder.push(thread, Op::Lock(LockOp::AcquireShared, second), lines[at]);
        builder.push(thread, Op::Lock(LockOp::ReleaseShared, second), site);
        builder.push(thread, Op::Lock(LockOp::Release, first), site);
        builder.push(thread, Op::Access(AccessOp::Write, var), lines[at]);
        builder.push(thread, Op::Access(AccessOp::Read, var), site);
    }
    builder.finish().expect("it is well formed")
}

/// A run of one thread that ended so.
fn ended(kind: EndKind) -> Trace {
    let mut builder = TraceBuilder::new();
    let (thread, site) = (builder.thread("T1"), builder.site("a.c:1"));
    builder.push(thread, Op::Marker(Marker::Branch), site);
    let event = EventId::from_number(1).expect("events are numbered from 1");
    let threads = vec![ThreadEnd { event, state: "waits".into() }];
    builder.set_run_end(RunEnd { kind, text: String::new(), threads, misuses: Vec::new() });
    builder.finish().expect("the trace is well formed")
}

#[test]
fn json_reports_are_what_the_schema_says() {
    let schema = our_schema();
    let mut kinds = std::collections::BTreeSet::new();
    each_examined(|examined| {
        let text = bytes(|out| reweave_report::json(out, &[*examined]));
        assert_valid(&schema, &text);
        assert_valid(&schema, &bytes(|out| reweave_report::json(out, &[*examined, *examined])));
        for reported in examined.outcome.findings.iter().take(20) {
            kinds.insert(reported.finding.kind.as_str());
            let told = bytes(|out| reweave_report::explanation_json(out, examined, reported));
            assert_valid(&schema, &told);
        }
    });
    // What ended badly is in no trace of the corpus.
    for kind in [EndKind::Hang, EndKind::Crash] {
        let trace = ended(kind);
        let analyses = reweave_catalog::select("endings", &[]).unwrap();
        let outcome = reweave_catalog::run(&trace, &analyses, &Settings::default(), &Quiet);
        let examined = Examined::new("run.rwt", &trace, &outcome);
        kinds.insert(outcome.findings[0].finding.kind.as_str());
        assert_valid(&schema, &bytes(|out| reweave_report::json(out, &[examined])));
    }
    // Nor is misuse.
    let mut builder = TraceBuilder::new();
    let (thread, site) = (builder.thread("T1"), builder.site("a.c:1"));
    builder.push(thread, Op::Marker(Marker::Branch), site);
    let event = EventId::from_number(1).expect("events are numbered from 1");
    let text = "releases m, which nobody holds".to_owned();
    let misuses = vec![Misuse { kind: MisuseKind::ReleaseNotHeld, event, other: None, text }];
    let (kind, text) = (EndKind::Exited, String::new());
    builder.set_run_end(RunEnd { kind, text, threads: Vec::new(), misuses });
    let trace = builder.finish().expect("the trace is well formed");
    let analyses = reweave_catalog::select("endings.misuse", &[]).unwrap();
    let outcome = reweave_catalog::run(&trace, &analyses, &Settings::default(), &Quiet);
    let examined = Examined::new("run.rwt", &trace, &outcome);
    kinds.insert(outcome.findings[0].finding.kind.as_str());
    assert_valid(&schema, &bytes(|out| reweave_report::json(out, &[examined])));
    // Nor is memory that is freed, or a lock that is destroyed.
    let freed = "T1|alloc(o)|1\nT2|w(o)|2\nT1|free(o)|3\n";
    let destroyed = "T2|acq(m)|1\nT2|rel(m)|2\nT1|free(lock(m))|3\n";
    for text in [freed, destroyed] {
        let trace = reweave_testkit::std(text);
        let analyses = reweave_catalog::select("lifetimes", &[]).unwrap();
        let outcome = reweave_catalog::run(&trace, &analyses, &Settings::default(), &Quiet);
        let examined = Examined::new("run.rwt", &trace, &outcome);
        kinds.insert(outcome.findings[0].finding.kind.as_str());
        assert_valid(&schema, &bytes(|out| reweave_report::json(out, &[examined])));
    }
    let all: std::collections::BTreeSet<&str> = Kind::ALL.into_iter().map(Kind::as_str).collect();
    assert_eq!(kinds, all);
}

#[test]
fn what_else_is_printed_as_json_is_what_the_schema_says() {
    let (schema, trace) = (our_schema(), hostile());
    let source = Source { path: HOSTILE, format: "std", compression: Some("gzip"), trace: &trace };
    assert_valid(&schema, &bytes(|out| reweave_report::stats_json(out, &[source])));
    assert_valid(&schema, &bytes(|out| reweave_report::stats_json(out, &[source, source])));
    let found = outcome(&trace, "races.exact", false);
    let replayed = [
        Replayed::Confirmed { times: 1, attempts: 3, details: String::new() },
        Replayed::NotConfirmed { reason: HOSTILE.to_owned() },
    ];
    for replayed in replayed {
        let confirmations = [Confirmation { id: "R1".to_owned(), replayed }];
        let set_aside = SetAside { known: 1, suppressed: 2 };
        let examined = Examined::new(HOSTILE, &trace, &found);
        let examined = Examined { confirmations: &confirmations, set_aside, ..examined };
        let first = &found.findings[0];
        let text = bytes(|out| reweave_report::confirmation_json(out, &examined, first));
        assert_valid(&schema, &text);
        assert_eq!(parsed(&text)["set_aside"], serde_json::json!({"baseline": 1, "suppressed": 2}));
    }
}

#[test]
fn the_schema_catches_mistakes() {
    let schema = our_schema();
    let trace = reweave_testkit::std(RACE);
    let found = outcome(&trace, "races.exact", false);
    let report = bytes(|out| reweave_report::json(out, &[Examined::new("a.std", &trace, &found)]));
    assert_valid(&schema, &report);
    let report = parsed(&report);
    let changes: [(&str, Value); 9] = [
        ("/schema", "reweave/2".into()),
        ("/trace/events", "5".into()),
        ("/findings/0/id", "race1".into()),
        ("/findings/0/fingerprint", "xyz".into()),
        ("/findings/0/kind", "datarace".into()),
        ("/findings/0/events/0", 0.into()),
        ("/findings/0/witness", Value::Null),
        ("/findings/0/sites/0/held/0/mode", "mine".into()),
        ("/coverage/0/complete", false.into()),
    ];
    for (at, value) in changes {
        let mut changed = report.clone();
        *changed.pointer_mut(at).expect("there is such a field") = value;
        assert!(!schema.is_valid(&changed), "{at}");
    }
    let mut changed = report.clone();
    changed["findings"][0]["massage"] = "a slip".into();
    assert!(!schema.is_valid(&changed));
    let examined = Examined::new("a.std", &trace, &found);
    let first = &found.findings[0];
    let told = bytes(|out| reweave_report::explanation_json(out, &examined, first));
    let mut told = parsed(&told);
    assert!(told["explanation"]["steps"][0]["step"] == 1 && schema.is_valid(&told));
    told["explanation"]["fixes"] = "a slip".into();
    assert!(!schema.is_valid(&told));
}

#[test]
fn sarif_is_what_the_official_schema_says() {
    let schema = sarif_schema();
    each_examined(|examined| {
        let text = bytes(|out| reweave_report::sarif(out, &[*examined, *examined]));
        assert_valid(&schema, &text);
        let log = parsed(&text);
        let run = &log["runs"][0];
        let results = run["results"].as_array().expect("there are results");
        assert_eq!(results.len(), 2 * examined.outcome.findings.len());
        for result in results {
            let rule =
                &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
            assert_eq!(rule["id"], result["ruleId"]);
        }
    });
}

const RACE: &str = "\
T1|acq(m)|src/a b.c:1
T1|w(x)|src/a b.c:2:7
T1|rel(m)|src/a b.c:3
T2|w(x)|/usr/include/b.h:9
";

#[test]
fn sarif_tells_of_a_race_with_its_schedule() {
    let trace = reweave_testkit::std(RACE);
    let found = outcome(&trace, "races.exact", false);
    let text = bytes(|out| reweave_report::sarif(out, &[Examined::new("a.std", &trace, &found)]));
    let result = &parsed(&text)["runs"][0]["results"][0];
    let result = serde_json::to_string_pretty(result).expect("it is JSON") + "\n";
    expect_file!["golden/race.sarif.json"].assert_eq(&result);
}

#[test]
fn a_long_list_of_findings_says_what_it_leaves_out() {
    let mut lines = String::new();
    for at in 0..1_001 {
        lines += &format!("T1|w(x{at})|a.c:{at}1\nT2|w(x{at})|b.c:{at}2\n");
    }
    let trace = reweave_testkit::std(&lines);
    let found = outcome(&trace, "races.exact", false);
    assert_eq!(found.findings.len(), 1_001);
    let text = bytes(|out| reweave_report::sarif(out, &[Examined::new("a.std", &trace, &found)]));
    let run = &parsed(&text)["runs"][0];
    assert_eq!(run["results"].as_array().map(Vec::len), Some(1_001));
    assert!(run["results"][999].get("codeFlows").is_some());
    assert!(run["results"][1_000].get("codeFlows").is_none());
    let said = run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"].as_str();
    assert!(said.is_some_and(|it| it.contains("only the first 1000 of 1001")), "{said:?}");
}

#[test]
fn junit_is_xml_that_parses_whatever_names_hold() {
    each_examined(|examined| {
        let text = bytes(|out| reweave_report::junit(out, &[*examined, *examined]));
        let document =
            roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let count = |tag: &str| document.descendants().filter(|it| it.has_tag_name(tag)).count();
        assert_eq!(count("testsuite"), 2);
        assert_eq!(count("failure"), 2 * examined.outcome.findings.len());
        let root = document.root_element();
        assert_eq!(root.attribute("tests"), Some(count("testcase").to_string().as_str()));
        assert_eq!(root.attribute("skipped"), Some(count("skipped").to_string().as_str()));
    });
}

#[test]
fn junit_has_a_failed_test_a_finding_and_a_passed_one_an_analysis_that_finds_nothing() {
    let trace = reweave_testkit::std(RACE);
    let analyses = reweave_catalog::select("races.exact", &["deadlocks".to_owned()]);
    let settings = Settings { budget: 0, ..Settings::default() };
    let cut = reweave_catalog::run(&trace, &analyses.expect("there are such"), &settings, &Quiet);
    let found = outcome(&trace, "", false);
    let text = bytes(|out| {
        let examined = [("a.std", &found), ("b.std", &cut)];
        let examined = examined.map(|(path, found)| Examined::new(path, &trace, found));
        reweave_report::junit(out, &examined)
    });
    expect![[r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="reweave" tests="7" failures="1" errors="0" skipped="1">
          <testsuite name="a.std" tests="4" failures="1" errors="0" skipped="0">
            <testcase classname="races.exact" name="race at /usr/include/b.h:9 and src/a b.c:2:7 (7f2f3f1b6d7ce945)" file="src/a b.c" line="2" time="0">
              <failure type="race" message="R1 race (witnessed): `w(x)` at src/a b.c:2:7 and `w(x)` at /usr/include/b.h:9 can happen at the same time">R1 race  witnessed  races.exact 7f2f3f1b6d7ce945
          `w(x)` at src/a b.c:2:7 and `w(x)` at /usr/include/b.h:9 can happen at the same time
            event 2, T1: w(x) at src/a b.c:2:7, holding m (acquired at line 1)
            event 4, T2: w(x) at /usr/include/b.h:9, holding no lock
          A schedule that leads to it:
            step     event  T1      T2
               1         1  acq(m)        src/a b.c:1
            then         2  w(x)          src/a b.c:2:7
            then         4          w(x)  /usr/include/b.h:9
          The independent checker accepted the schedule.</failure>
            </testcase>
            <testcase classname="deadlocks.exact" name="nothing found" time="0"/>
            <testcase classname="deadlocks.stuck" name="nothing found" time="0"/>
            <testcase classname="atomicity.blocks" name="nothing found" time="0"/>
          </testsuite>
          <testsuite name="b.std" tests="3" failures="0" errors="0" skipped="1">
            <testcase classname="races.exact" name="races.exact" time="0">
              <skipped message="incomplete: the work budget was used up"/>
            </testcase>
            <testcase classname="deadlocks.exact" name="nothing found" time="0"/>
            <testcase classname="deadlocks.stuck" name="nothing found" time="0"/>
          </testsuite>
        </testsuites>
    "#]].assert_eq(&text);
}

#[test]
fn annotations_are_commands_and_nothing_in_a_name_is() {
    each_examined(|examined| {
        let text = bytes(|out| reweave_report::github(out, &[*examined]));
        let (mut commands, mut rest) = (0, Vec::new());
        for line in text.lines() {
            let is_command = ["::error ", "::warning "].iter().any(|it| line.starts_with(it));
            commands += usize::from(is_command);
            if !is_command && !line.starts_with("::notice ") {
                rest.push(line);
            }
        }
        let warnings = usize::from(!examined.outcome.is_complete());
        assert_eq!(commands, examined.outcome.findings.len() + warnings);
        assert!(matches!(rest[..], [line] if line.starts_with("reweave: ")), "{rest:?}");
        assert!(!rest[0].contains("##["));
        assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text}");
    });
}

#[test]
fn annotations_show_a_race_at_both_its_lines() {
    let trace = reweave_testkit::std(RACE);
    let found = outcome(&trace, "", false);
    let report =
        |report: Report| bytes(|out| report(out, &[Examined::new("a.std", &trace, &found)]));
    expect![[r#"
        ::error file=src/a b.c,line=2,col=7,title=race (R1%2C witnessed)::`w(x)` at src/a b.c:2:7 and `w(x)` at /usr/include/b.h:9 can happen at the same time%0Aevent 2, T1: w(x) at src/a b.c:2:7, holding m%0Aevent 4, T2: w(x) at /usr/include/b.h:9, holding no lock%0AThe independent checker accepted the schedule.%0Araces.exact 7f2f3f1b6d7ce945
        ::notice file=/usr/include/b.h,line=9,title=race (R1%2C the other side)::event 4, T2: w(x) at /usr/include/b.h:9, holding no lock%0Awith event 2, T1: w(x) at src/a b.c:2:7, holding m
        reweave: a.std: 1 finding (race 1)
    "#]].assert_eq(&report(reweave_report::github));
    expect![[r#"
        ### reweave: <code>a.std</code>

        1 finding (race 1)

        | id | kind | guarantee | where | what |
        | --- | --- | --- | --- | --- |
        | R1 | race | witnessed | <code>/usr/include/b.h&#58;9</code><br><code>src/a b.c&#58;2&#58;7</code> | <code>w(x)</code> at src/a b.c&#58;2&#58;7 and <code>w(x)</code> at /usr/include/b.h&#58;9 can happen at the same time |

    "#]].assert_eq(&report(reweave_report::github_summary));
}

#[test]
fn what_is_no_reason_to_fail_does_not_look_like_a_failure() {
    let trace = reweave_testkit::std(RACE);
    let found = outcome(&trace, "races.exact", false);
    let report = |report: Report, fails_on: &[Kind]| {
        let examined = Examined { fails_on, ..Examined::new("a.std", &trace, &found) };
        bytes(|out| report(out, &[examined]))
    };
    let level = |fails_on| {
        parsed(&report(reweave_report::sarif, fails_on))["runs"][0]["results"][0]["level"].clone()
    };
    assert_eq!([level(&[Kind::Race]), level(&[Kind::Deadlock])], ["error", "warning"]);
    assert!(report(reweave_report::github, &[Kind::Race]).starts_with("::error file=src/a b.c,"));
    assert!(report(reweave_report::github, &[]).starts_with("::warning file=src/a b.c,"));
    let tests = report(reweave_report::junit, &[Kind::Deadlock]);
    assert!(tests.contains("tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"0\""), "{tests}");
    assert!(tests.contains("<system-out>R1 race") && !tests.contains("<failure"), "{tests}");
}

#[test]
fn a_search_that_was_not_complete_is_a_warning_that_says_why() {
    let trace = reweave_testkit::std(RACE);
    let analyses = reweave_catalog::select("races.exact", &[]).expect("there is such an analysis");
    let settings = Settings { budget: 0, ..Settings::default() };
    let found = reweave_catalog::run(&trace, &analyses, &settings, &Quiet);
    let text = bytes(|out| reweave_report::github(out, &[Examined::new("a.std", &trace, &found)]));
    expect![[r#"
        ::warning title=not everything was searched::a.std%0Araces.exact: the work budget was used up
        reweave: a.std: nothing found; not everything was searched
    "#]].assert_eq(&text);
}

#[test]
fn sarif_names_functions_of_the_c_library_and_no_file_of_it() {
    let mut builder = TraceBuilder::new();
    let var = builder.var("x");
    let frames = ["add (a.c:3)", "main (a.c:9)", "start_thread (nptl/pthread_create.c:442)"];
    for name in ["T1", "T2"] {
        let thread = builder.thread(name);
        let site = builder.names().site("a.c:3", frames);
        builder.push(thread, Op::Access(AccessOp::Write, var), site);
    }
    let trace = builder.finish().expect("it is well formed");
    let found = outcome(&trace, "races.exact", false);
    let text = bytes(|out| reweave_report::sarif(out, &[Examined::new("a.std", &trace, &found)]));
    let frames = &parsed(&text)["runs"][0]["results"][0]["stacks"][0]["frames"];
    let file =
        |at: usize| frames[at]["location"]["physicalLocation"]["artifactLocation"]["uri"].clone();
    assert_eq!([file(0), file(1), file(2)], ["a.c".into(), "a.c".into(), Value::Null]);
    assert_eq!(frames[2]["location"]["logicalLocations"][0]["fullyQualifiedName"], "start_thread");
}

#[test]
fn a_summary_is_one_table_whatever_names_hold() {
    let trace = hostile();
    let found = outcome(&trace, "races", true);
    let text =
        bytes(|out| reweave_report::github_summary(out, &[Examined::new(HOSTILE, &trace, &found)]));
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 2 + found.findings.len().min(50));
    assert!(rows.iter().all(|row| row.matches('|').count() == 6), "{text}");
    assert!(!text.contains("<b>") && !text.contains("<script"), "{text}");
}

#[test]
fn a_timeline_shows_both_orders_of_every_schedule() {
    each_examined(|examined| {
        let timeline = parsed(&bytes(|out| reweave_report::chrome(out, &[*examined])));
        let entries = timeline["traceEvents"].as_array().expect("there are entries");
        let processes = entries.iter().filter(|it| it["name"] == "process_name").count();
        let findings = examined.outcome.findings.iter();
        let proven = findings.filter(|it| it.finding.evidence.proof().is_some()).count();
        assert_eq!(processes, 2 * proven.min(100));
        // The same events happen in both orders.
        let events = |process: usize| {
            let own = entries.iter().filter(|it| it["pid"] == process && it["ph"] == "X");
            let mut events: Vec<u64> = own.filter_map(|it| it["args"]["event"].as_u64()).collect();
            events.sort_unstable();
            events
        };
        for finding in 0..processes.min(20) / 2 {
            assert_eq!(events(2 * finding + 1), events(2 * finding + 2));
        }
    });
}
