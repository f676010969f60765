//! What is said of reads that can see another write, and of one finding at length.

use std::io::{self, Write};

use expect_test::expect;
use reweave_analysis::{
    Alternative, Detail, Evidence, Finding, Fingerprint, Kind, Nondeterminism, Outcome, Reported,
    Subject, WitnessList, WitnessVerdict,
};
use reweave_catalog::Quiet;
use reweave_report::Examined;
use reweave_testkit::events;
use reweave_trace::{After, EventId, Goal, Reordering, Trace};
use serde_json::{Value, json};

/// Two threads set a total under a lock.
const SET: &str = "
    T1        T2        T3
    acq(m)
    w(total)
    rel(m)
              acq(m)
              w(total)
              rel(m)
";

/// A third reads it under the same lock.
const READ: &str = "
                        acq(m)
                        r(total)
                        rel(m)
";

/// What is written and read, by the number of the event.
const VALUES: [(u32, i64); 3] = [(2, 5), (5, 7), (8, 7)];

/// The trace that `drawing` shows, with values as far as it goes.
fn valued(drawing: &str) -> Trace {
    let mut builder = reweave_testkit::fixture::builder(drawing);
    let count = builder.len() as u32;
    for (number, value) in VALUES.into_iter().filter(|&(number, _)| number <= count) {
        builder.value_of(events(&[number])[0], value);
    }
    builder.finish().expect("it is well formed")
}

/// Two threads set a total and a third reads it.
fn total_trace() -> Trace {
    valued(&format!("{}{}", SET.trim_end(), READ))
}

fn event(number: u32) -> Option<EventId> {
    EventId::from_number(number)
}

/// The read of the total can see the first write, or that there is none.
fn detail(others: Vec<Alternative>) -> Nondeterminism {
    Nondeterminism {
        witness_kind: 3,
        mode: "strict",
        writer: event(5),
        read: event(8),
        interfering: event(2),
        count: 1,
        is_race_free: Some(true),
        changes_value: Some(true),
        others,
    }
}

fn finding(trace: &Trace, schedule: &[u32], goal: Goal, detail: Nondeterminism) -> Finding {
    let reordering = Reordering::explicit(events(schedule));
    let proof = Subject::new(trace).prove(reordering, goal).expect("the checker accepts it");
    Finding {
        analysis: "determinism.strict",
        kind: Kind::Nondeterminism,
        events: proof.goal().named(),
        message: "it can see something else".to_owned(),
        count: detail.alternatives().map(|alternative| alternative.count).sum(),
        evidence: Evidence::Schedule(proof),
        detail: Detail::Nondeterminism(Box::new(detail)),
    }
}

/// The finding that the read of the total can see another write, with the schedule that shows it.
fn total(trace: &Trace, others: Vec<Alternative>) -> Finding {
    let goal = Goal::Sees { read: events(&[8])[0], write: event(2), after: After::Stops };
    finding(trace, &[1, 2, 3, 7, 8], goal, detail(others))
}

fn reported(trace: &Trace, finding: Finding) -> Reported {
    let fingerprint = Fingerprint::new(trace, &finding);
    Reported::new("N1".to_owned(), fingerprint, finding)
}

fn outcome(trace: &Trace, finding: Finding) -> Outcome {
    Outcome { findings: vec![reported(trace, finding)], ..Outcome::default() }
}

fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).expect("a vector takes anything");
    let text = String::from_utf8(out).expect("reports are UTF-8");
    anstream::adapter::strip_str(&text).to_string()
}

type Report = fn(&mut dyn Write, &[Examined<'_>]) -> io::Result<()>;

fn report(trace: &Trace, outcome: &Outcome, report: Report) -> String {
    written(|out| report(out, &[Examined::new("run.std", trace, outcome)]))
}

/// The explanation of the first finding.
fn explained(trace: &Trace, outcome: &Outcome) -> String {
    let examined = Examined::new("run.std", trace, outcome);
    written(|out| reweave_report::explanation_text(out, &examined, &outcome.findings[0]))
}

/// The explanation of the first thing that the analyses called `only` find.
fn explained_by(only: &str, trace: &Trace) -> String {
    let analyses = reweave_catalog::select(only, &[]).expect("there is such an analysis");
    explained(trace, &reweave_catalog::run(trace, &analyses, &Default::default(), &Quiet))
}

fn initial() -> Alternative {
    Alternative {
        write: None,
        read: event(8),
        count: 3,
        is_race_free: Some(true),
        changes_value: Some(false),
    }
}

#[test]
fn text_lists_what_a_read_can_see_and_marks_what_no_race_detector_tells_of() {
    let trace = total_trace();
    let text =
        report(&trace, &outcome(&trace, total(&trace, vec![initial()])), reweave_report::text);
    expect![[r#"
        run.std: 9 events, 3 threads, 1 lock, 1 variable

        N1 nondeterminism  witnessed  determinism.strict 3c57fcde7d4b8a24
          it can see something else
            event 2, T1: w(total) at location 2, holding m
            event 8, T3: r(total) at location 8, holding m
          Event 8 saw event 5, value 7; it can see any of these instead:
            event 2, T1: w(total) at location 2, value 5 instead of 7
            the initial value, the same value (3 pairs)
          Race detectors do not report these: lock `m` keeps the accesses apart, but either can come first
          4 pairs of a read here and an interfering write; one shown
          A schedule that shows it (> marks the events at fault):
            step     event  T1        T3
               1         1  acq(m)              location 1
             > 2         2  w(total)            location 2
               3         3  rel(m)              location 3
               4         7            acq(m)    location 7
             > 5         8            r(total)  location 8
          Event 8 sees event 2 instead of event 5; its thread stops there.
          The independent checker accepted the schedule.

        next: reweave explain run.std N1
        1 finding (nondeterminism 1)
    "#]].assert_eq(&text);
}

#[test]
fn json_says_which_witness_it_is_and_what_else_the_read_can_see() {
    let trace = total_trace();
    let text =
        report(&trace, &outcome(&trace, total(&trace, vec![initial()])), reweave_report::json);
    let parsed: Value = serde_json::from_str(&text).unwrap();
    let finding = &parsed["findings"][0];
    let fields = ["witness_kind", "w", "r", "c", "mode", "race_free", "changes_value"];
    let values = fields.map(|field| finding[field].clone());
    assert_eq!(json!(values), json!([3, 5, 8, 2, "strict", true, true]));
    assert_eq!(
        finding["alternatives"],
        json!([
            { "w": 5, "r": 8, "c": 2, "location": "2", "count": 1, "race_free": true,
              "changes_value": true },
            { "w": 5, "r": 8, "c": 0, "count": 3, "race_free": true, "changes_value": false },
        ])
    );
    assert_eq!(parsed.get("witnesses"), None);
}

#[test]
fn locks_are_named_only_if_they_keep_the_read_and_both_writes_apart() {
    // The read shares a lock with each of the writes, but these share none.
    let trace = reweave_testkit::trace(
        "
        T1      T2      T3
        acq(m)
        w(x)
        rel(m)
                acq(l)
                w(x)
                rel(l)
                        acq(l)
                        acq(m)
                        r(x)
        ",
    );
    let read = events(&[9])[0];
    let goal = Goal::Sees { read, write: event(2), after: After::Stops };
    let detail = Nondeterminism { read: Some(read), ..detail(Vec::new()) };
    let finding = finding(&trace, &[1, 2, 3, 7, 8, 9], goal, detail);
    let text = report(&trace, &outcome(&trace, finding), reweave_report::text);
    let silence = "race detectors do not report this: synchronization keeps the accesses apart";
    assert!(text.contains(silence), "{text}");
}

#[test]
fn nothing_is_said_of_races_where_nothing_is_known_of_them() {
    let trace = total_trace();
    let mut finding = total(&trace, Vec::new());
    let unknown = Nondeterminism { is_race_free: None, ..detail(Vec::new()) };
    finding.detail = Detail::Nondeterminism(Box::new(unknown));
    let outcome = outcome(&trace, finding);
    let parsed: Value =
        serde_json::from_str(&report(&trace, &outcome, reweave_report::json)).unwrap();
    let found = &parsed["findings"][0];
    assert_eq!((found.get("race_free"), found["alternatives"][0].get("race_free")), (None, None));
    let examined = Examined::new("run.std", &trace, &outcome);
    let page =
        written(|out| reweave_report::explanation_html(out, &examined, &outcome.findings[0]));
    let page = page[page.find("<noscript>").unwrap()..page.find("</noscript>").unwrap()].to_owned();
    for said in [report(&trace, &outcome, reweave_report::text), explained(&trace, &outcome), page]
    {
        assert!(!said.contains("race"), "{said}");
    }
}

#[test]
fn a_page_lists_what_a_read_can_see() {
    let trace = total_trace();
    let outcome = outcome(&trace, total(&trace, vec![initial()]));
    let page = report(&trace, &outcome, reweave_report::html);
    let listed = "  Event 8 saw event 5, value 7; it can see any of these instead:\n    \
                  event 2, T1: w(total) at location 2, value 5 instead of 7\n";
    assert!(page.contains(listed), "{page}");
    let silence = "Race detectors do not report these: lock `m` keeps the accesses apart";
    assert!(page.contains(silence), "{page}");
}

#[test]
fn what_is_read_at_the_end_of_the_run_comes_after_all_events() {
    let trace = valued(SET);
    let write = events(&[2])[0];
    let var = trace.event(write).op.var().expect("it is a write");
    let goal = Goal::Leaves { var, write };
    let detail = Nondeterminism { read: None, witness_kind: 2, ..detail(Vec::new()) };
    let outcome = outcome(&trace, finding(&trace, &[4, 5, 6, 1, 2, 3], goal, detail));
    let parsed: Value =
        serde_json::from_str(&report(&trace, &outcome, reweave_report::json)).unwrap();
    assert_eq!(parsed["findings"][0]["r"], 7);
    expect![[r#"
        run.std: 6 events, 3 threads, 1 lock, 1 variable

        N1 nondeterminism  witnessed  determinism.strict 28808643dffeb8be
          it can see something else
            event 2, T1: w(total) at location 2, holding m
          `total` ended with what event 5 wrote, value 7; it can end with this instead:
            event 2, T1: w(total) at location 2, value 5 instead of 7
              race detectors do not report this: lock `m` keeps the accesses apart, but either can come first

        Why it is a fault
          With the same input, what `total` holds at the end depends on the schedule: event 5, as
          observed, or event 2.

          No race detector reports it: the accesses are synchronized, whichever comes first. If the result
          must be the same in every run, fix their order; if not, nothing needs to be done.

          The value differs from the one that was observed. All observed events happen, and every read
          sees what it saw (mode strict).

        How it happens
          A schedule of all events that shows it (> marks the last write):
            step     event  T1        T2
               1         4            acq(m)    location 4
               2         5            w(total)  location 5
               3         6            rel(m)    location 6
               4         1  acq(m)              location 1
             > 5         2  w(total)            location 2
               6         3  rel(m)              location 3
          The independent checker accepted the schedule.

        Side by side
          observed                             predicted
            1  T1  acq(m)                        4  T2  acq(m)
          > 2  T1  w(total)  = 5               > 5  T2  w(total)  = 7
            3  T1  rel(m)                        6  T2  rel(m)
            4  T2  acq(m)                        1  T1  acq(m)
          > 5  T2  w(total)  = 7               > 2  T1  w(total)  = 5
            6  T2  rel(m)                        3  T1  rel(m)
          total ends with event 5, value 7     total ends with event 2, value 5

        Why each step is allowed
             1  T2  acq(m)    free: nobody has acquired it yet
             2  T2  w(total)  comes next in T2
             3  T2  rel(m)    releases what it acquired at step 1
             4  T1  acq(m)    free: T2 released it at step 3
             5  T1  w(total)  comes next in T1
             6  T1  rel(m)    releases what it acquired at step 4

        How to fix it
          If the result must be the same in every run, the usual fix is to order the accesses: join the
          writing thread, or wait on a condition or a channel, before the read.
    "#]].assert_eq(&explained(&trace, &outcome));
}

/// What the order of events lets `detail` say, without a schedule.
fn lead(trace: &Trace, detail: Nondeterminism) -> Outcome {
    let detail = Detail::Nondeterminism(Box::new(detail));
    let proven = total(trace, Vec::new());
    outcome(trace, Finding { evidence: Evidence::Unordered, detail, ..proven })
}

#[test]
fn what_no_schedule_shows_is_not_said_to_be_seen() {
    let trace = total_trace();
    let unproven = Nondeterminism { is_race_free: None, mode: "order", ..detail(Vec::new()) };
    let earlier = Nondeterminism { interfering: None, changes_value: None, ..unproven.clone() };
    let text = explained(&trace, &lead(&trace, unproven.clone()));
    expect![[r#"
        run.std: 9 events, 3 threads, 1 lock, 1 variable

        N1 nondeterminism  unordered  determinism.strict 3c57fcde7d4b8a24
          it can see something else
            event 2, T1: w(total) at location 2, holding m
            event 8, T3: r(total) at location 8, holding m
          Event 8 saw event 5, value 7; this could come in between by the order of events alone:
            event 2, T1: w(total) at location 2, value 5 instead of 7

        Why it is a fault
          Whether what event 8 sees depends on the schedule is not known: it saw event 5, and event 2
          could come in between by the order of events alone.

          The value would differ from the one that was observed. Only the order of events was examined
          (mode order): other reads come after what they saw, but may see a write that comes in between.

          An unconfirmed candidate: no schedule proves it.
    "#]].assert_eq(&text);
    let text = explained(&trace, &lead(&trace, earlier));
    expect![[r#"
          Event 8 saw event 5, value 7; it could come before that by the order of events alone, and see:
            the initial value

        Why it is a fault
          Whether what event 8 sees depends on the schedule is not known: it saw event 5, and could come
          before that by the order of events alone.

          The trace does not show whether the value differs. Only the order of events was examined (mode
          order): other reads come after what they saw, but may see a write that comes in between.

    "#]].assert_eq(&text[text.find("  Event 8").unwrap()..text.find("  An unconfirmed candidate").unwrap()]);
    let last = Nondeterminism { read: None, ..unproven };
    let text = explained(&trace, &lead(&trace, last));
    expect![[r#"
          `total` ended with what event 5 wrote, value 7; this could come after it by the order of events alone:
            event 2, T1: w(total) at location 2, value 5 instead of 7

        Why it is a fault
          Whether what `total` holds at the end depends on the schedule is not known: it was event 5, and
          event 2 could come after it by the order of events alone.

          The value would differ from the one that was observed. Only the order of events was examined
          (mode order): other reads come after what they saw, but may see a write that comes in between.

    "#]].assert_eq(&text[text.find("  `total`").unwrap()..text.find("  An unconfirmed candidate").unwrap()]);
}

#[test]
fn a_list_of_witnesses_has_a_line_for_each() {
    let trace = total_trace();
    let verdict = |is_feasible, interfering| WitnessVerdict {
        witness_kind: 3,
        is_feasible,
        writer: event(5),
        read: interfering,
        interfering,
    };
    let witnesses = vec![verdict(Some(true), event(2)), verdict(None, None)];
    let list = WitnessList { analysis: "determinism.strict", witnesses };
    let mut outcome = Outcome { witnesses: vec![list.clone()], ..Outcome::default() };
    let lines = |outcome: &Outcome| -> Vec<String> {
        let text = report(&trace, outcome, reweave_report::json);
        let lines = text.lines().filter(|line| line.contains("witness_kind"));
        lines.map(|line| line.trim().to_owned()).collect()
    };
    assert_eq!(
        lines(&outcome),
        [
            r#"{"witness_kind":3,"w":5,"r":2,"c":2,"feasible":true},"#,
            r#"{"witness_kind":3,"w":5,"r":10,"c":0,"feasible":null}"#,
        ]
    );
    outcome.witnesses.push(WitnessList { analysis: "determinism.prefix", ..list });
    let last =
        r#"{"analysis":"determinism.prefix","witness_kind":3,"w":5,"r":10,"c":0,"feasible":null}"#;
    assert_eq!(lines(&outcome).last().map(String::as_str), Some(last));
    outcome.witnesses = vec![WitnessList { analysis: "determinism.strict", witnesses: Vec::new() }];
    let text = report(&trace, &outcome, reweave_report::json);
    assert!(text.contains("\"witnesses\": []"), "{text}");
}

#[test]
fn an_explanation_shows_what_a_read_sees_in_either_order() {
    let trace = total_trace();
    expect![[r#"
        run.std: 9 events, 3 threads, 1 lock, 1 variable

        N1 nondeterminism  witnessed  determinism.strict 3c57fcde7d4b8a24
          it can see something else
            event 2, T1: w(total) at location 2, holding m
            event 8, T3: r(total) at location 8, holding m
          Event 8 saw event 5, value 7; it can see this instead:
            event 2, T1: w(total) at location 2, value 5 instead of 7
              race detectors do not report this: lock `m` keeps the accesses apart, but either can come first

        Why it is a fault
          With the same input, what event 8 sees depends on the schedule: it saw event 5, and can see
          event 2. In the schedule below the write that it saw does not happen.

          No race detector reports it: the accesses are synchronized, whichever comes first. If the result
          must be the same in every run, fix their order; if not, nothing needs to be done.

          The value differs from the one that was observed. Nothing is assumed: every other read sees what
          it saw, and the thread of this one stops there, so this holds whatever the program does with the
          value (mode strict).

        Why the observed run did not show it
          In the observed run, event 5 happened before event 8: T2 released `m` (event 6) and T3 acquired
          it (event 7). But a lock only keeps critical sections apart, in either order: in the schedule T3
          acquires `m` (step 4), and T2 has yet to acquire it (event 4).

        How it happens
          A schedule that shows it (> marks the events at fault):
            step     event  T1        T3
               1         1  acq(m)              location 1
             > 2         2  w(total)            location 2
               3         3  rel(m)              location 3
               4         7            acq(m)    location 7
             > 5         8            r(total)  location 8
          Event 8 sees event 2 instead of event 5; its thread stops there.
          The independent checker accepted the schedule.

        Side by side
          observed                                 predicted
            1  T1  acq(m)                                1  T1  acq(m)
          > 2  T1  w(total)  = 5                       > 2  T1  w(total)  = 5
            3  T1  rel(m)                                3  T1  rel(m)
            4  T2  acq(m)                                7  T3  acq(m)
          > 5  T2  w(total)  = 7                       > 8  T3  r(total)  = 5, sees event 2, not event 5
            6  T2  rel(m)                          never 5  T2  w(total)
            7  T3  acq(m)
          > 8  T3  r(total)  = 7, sees event 5
            9  T3  rel(m)

        Why each step is allowed
             1  T1  acq(m)    free: nobody has acquired it yet
             2  T1  w(total)  comes next in T1
             3  T1  rel(m)    releases what it acquired at step 1
             4  T3  acq(m)    free: T1 released it at step 3
             5  T3  r(total)  sees event 2 instead of event 5: this is the point of the schedule

        How to fix it
          If the result must be the same in every run, the usual fix is to order the accesses: join the
          writing thread, or wait on a condition or a channel, before the read.
    "#]].assert_eq(&explained(&trace, &outcome(&trace, total(&trace, Vec::new()))));
}

#[test]
fn what_is_not_proven_is_explained_without_a_schedule() {
    let trace = reweave_testkit::std("T1|w(x)|1\nT1|w(y)|2\nT2|r(y)|3\nT2|r(x)|4\n");
    let analyses = reweave_catalog::select("races.hb", &[]).unwrap();
    let settings = reweave_analysis::Settings { all: true, ..Default::default() };
    let mut outcome = reweave_catalog::run(&trace, &analyses, &settings, &Quiet);
    outcome.findings.remove(0);
    let text = explained(&trace, &outcome);
    assert!(
        text.contains("An unconfirmed candidate: no schedule proves it.")
            && !text.contains("Side by side")
    );
}

#[test]
fn names_in_an_explanation_do_nothing() {
    let trace = reweave_testkit::std("T\u{1b}[2J<b>|w(x\u{7}<i>)|a\nT2|w(x\u{7}<i>)|b\n");
    let text = explained_by("races.hb", &trace);
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{text}");
    let analyses = reweave_catalog::select("races.hb", &[]).unwrap();
    let outcome = reweave_catalog::run(&trace, &analyses, &Default::default(), &Quiet);
    let examined = Examined::new("<p>", &trace, &outcome);
    let found = &outcome.findings[0];
    let page = written(|out| reweave_report::explanation_html(out, &examined, found));
    assert!(!page.contains("<b>") && !page.contains("<i>") && !page.contains("<p></"), "{page}");
    assert!(page.contains("\nSide by side\n") && page.contains("  predicted\n"));
}

#[test]
fn an_explanation_in_json_is_a_report_on_one_finding_with_both_orders() {
    let trace = total_trace();
    let outcome = outcome(&trace, total(&trace, Vec::new()));
    let examined = Examined::new("a.std", &trace, &outcome);
    let found = &outcome.findings[0];
    let text = written(|out| reweave_report::explanation_json(out, &examined, found));
    let parsed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(parsed["findings"].as_array().map(Vec::len), Some(1));
    let explanation = &parsed["explanation"];
    assert!(explanation["why"][0].as_str().unwrap().contains("depends on the schedule"));
    assert_eq!(explanation["observed"][7], json!({ "event": 8, "sees": 5 }));
    assert_eq!(explanation["scheduled"][4], json!({ "event": 8, "sees": 2 }));
}
