//! What reports look like, and that names in them are shown and not obeyed.

use std::io::{self, Write};

use expect_test::{Expect, expect, expect_file};
use reweave_analysis::{Coverage, Outcome, Settings, Truncation};
use reweave_catalog::Quiet;
use reweave_report::{Examined, SetAside};
use reweave_trace::{AccessOp, LockOp, Op, Trace, TraceBuilder};

const RACE: &str = "\
T1|acq(m)|a.c:1
T1|w(x)|a.c:2
T1|rel(m)|a.c:3
T2|w(x)|b.c:9
T1|w(x)|a.c:2
";

type Report = fn(&mut dyn Write, &[Examined<'_>]) -> io::Result<()>;

fn rendered(trace: &Trace, all: bool, report: Report) -> String {
    rendered_by("races.hb", trace, all, report)
}

fn rendered_by(only: &str, trace: &Trace, all: bool, report: Report) -> String {
    let analyses = reweave_catalog::select(only, &[]).expect("there is such an analysis");
    let settings = Settings { all, ..Settings::default() };
    let outcome = reweave_catalog::run(trace, &analyses, &settings, &Quiet);
    render(&Examined::new("run.std", trace, &outcome), report)
}

fn render(examined: &Examined<'_>, report: Report) -> String {
    let mut out = Vec::new();
    report(&mut out, &[*examined]).expect("a vector takes anything");
    let text = String::from_utf8(out).expect("reports are UTF-8");
    anstream::adapter::strip_str(&text).to_string()
}

#[track_caller]
fn check(text: &str, all: bool, report: Report, expected: &Expect) {
    expected.assert_eq(&rendered(&reweave_testkit::std(text), all, report));
}

#[test]
fn text_says_what_where_and_how_it_comes_about() {
    check(
        RACE,
        false,
        reweave_report::text,
        &expect![[r#"
            run.std: 5 events, 2 threads, 1 lock, 1 variable

            R1 race  witnessed  races.hb a26b94e9d791458e
              `w(x)` at a.c:2 and `w(x)` at b.c:9 can happen at the same time
                event 2, T1: w(x) at a.c:2, holding m (acquired at line 1)
                event 4, T2: w(x) at b.c:9, holding no lock
              2 pairs at these locations; one shown
              A schedule that leads to it:
                step     event  T1      T2
                   1         1  acq(m)        a.c:1
                then         2  w(x)          a.c:2
                then         4          w(x)  b.c:9
              The independent checker accepted the schedule.

            next: reweave explain run.std R1 --only races.hb
            races.hb: unordered pairs 2, second events 2, vars 1, location pairs 1
            1 finding (race 1)
        "#]],
    );
}

/// A race that is reached through a read whose writer is not known.
const LOOSE: &str = "T1|w(y)|1\nT1|w(x)|2\nT2|r?(y)|3\nT2|w(x)|4\n";

#[test]
fn what_rests_on_reads_of_unknown_writers_is_labelled_and_left_out_unless_asked_for() {
    let trace = reweave_testkit::std(LOOSE);
    let plain = rendered(&trace, false, reweave_report::text);
    assert!(!plain.contains("R2"), "{plain}");
    let told = "1 location pair depending on reads whose writer was not recorded (see --all)";
    assert!(plain.contains(told), "{plain}");
    let label = "It depends on 1 read whose writer was not recorded.";
    let text = rendered(&trace, true, reweave_report::text);
    expect![[r#"
        R2 race  unordered  races.hb 6d34591ffe74369e
          `w(x)` at location 2 and `w(x)` at location 4 can happen at the same time in a schedule that depends on reads with an unknown writer
            event 2, T1: w(x) at location 2, holding no lock
            event 4, T2: w(x) at location 4, holding no lock
          A schedule that leads to it:
            step     event  T1    T2
               1         1  w(y)         location 1
               2         3        r?(y)  location 3
            then         2  w(x)         location 2
            then         4        w(x)   location 4
          It depends on 1 read whose writer was not recorded.
          An unconfirmed candidate: no schedule proves it.

        next: reweave explain run.std R1 --only races.hb --all
        (the same with R2)
        races.hb: unordered pairs 2, second events 2, vars 2, location pairs 2
        2 findings (race 2)
    "#]]
    .assert_eq(&text[text.find("R2").unwrap()..]);
    assert!(rendered(&trace, true, reweave_report::html).contains(label));
    let json: serde_json::Value =
        serde_json::from_str(&rendered(&trace, true, reweave_report::json)).unwrap();
    let witnesses = [0, 1].map(|at| json["findings"][at]["witness"]["unknown_reads"].clone());
    assert_eq!(witnesses, [serde_json::Value::Null, 1.into()]);
    assert_eq!(json["findings"][1]["guarantee"], "unordered");
}

#[test]
fn a_long_witness_shows_the_last_steps_of_each_racing_thread() {
    // T2 stops early and T1 goes on; T3 has no part in it.
    let mut lines = String::from("T2|w(b)|20\nT2|w(b)|21\n");
    for at in 0..9 {
        lines += &format!("T1|w(a)|{at}\nT3|w(c)|30\n");
    }
    lines += "T1|w(x)|40\nT2|r(x)|41\n";
    let text = rendered(&reweave_testkit::std(&lines), false, reweave_report::text);
    expect![[r#"
        R1 race  witnessed  races.hb 98d30b2d42f26afc
          `w(x)` at location 40 and `r(x)` at location 41 can happen at the same time
            event 21, T1: w(x) at location 40, holding no lock
            event 22, T2: r(x) at location 41, holding no lock
          A schedule that leads to it:
            step     event  T2    T1
               1         1  w(b)        location 20
               2         2  w(b)        location 21
               3         3        w(a)  location 0
               4         5        w(a)  location 1
               5         7        w(a)  location 2
               6         9        w(a)  location 3
               7        11        w(a)  location 4
               8        13        w(a)  location 5
               9        15        w(a)  location 6
              10        17        w(a)  location 7
              11        19        w(a)  location 8
            then        21        w(x)  location 40
            then        22  r(x)        location 41
    "#]]
    .assert_eq(&text[text.find("R1").unwrap()..text.find("  The indep").unwrap()]);
}

#[test]
fn no_line_of_text_ends_in_blanks() {
    let traces = [RACE, LOOSE, "T1|w(x)|\nT2|w(x)|\nT1|w(x)|a \nT3|w(y)|b\n", "T1|w(x)|1\n"];
    for trace in traces {
        let text = rendered(&reweave_testkit::std(trace), true, reweave_report::text);
        for line in text.lines() {
            assert_eq!(line, line.trim_end(), "{text}");
        }
    }
}

#[test]
fn many_findings_have_a_line_of_json_each() {
    let mut text = String::new();
    for at in 0..40 {
        text += &format!("T1|w(x)|{at}\nT2|w(x)|{at}\n");
    }
    let json = rendered(&reweave_testkit::std(&text), true, reweave_report::json);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(1600));
    assert_eq!(json.lines().filter(|line| line.starts_with("    {\"id\":\"R")).count(), 1600);
}

#[test]
fn text_says_when_nothing_was_found() {
    check(
        "T1|w(x)|a.c:1\n",
        false,
        reweave_report::text,
        &expect![[r#"
            run.std: 1 event, 1 thread, 0 locks, 1 variable

            races.hb: unordered pairs 0
            nothing found
        "#]],
    );
}

#[test]
fn json_has_the_promised_fields() {
    let json = rendered(&reweave_testkit::std(RACE), false, reweave_report::json);
    expect_file!["golden/race.json"].assert_eq(&json);
}

#[test]
fn an_unproven_pair_has_no_witness_and_is_labelled() {
    let text = "T1|w(x)|1\nT1|w(y)|2\nT2|r(y)|3\nT2|r(x)|4\n";
    let json = rendered(&reweave_testkit::std(text), true, reweave_report::json);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let labels: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| (finding["guarantee"].clone(), finding.get("witness").is_some()))
        .collect();
    assert_eq!(labels, [("witnessed".into(), true), ("unordered".into(), false)]);
}

#[test]
fn a_long_witness_starts_with_a_base() {
    let mut text = "T1|w(y)|1\n".repeat(300);
    text.push_str("T1|w(x)|2\nT2|w(x)|3\n");
    let json = rendered(&reweave_testkit::std(&text), false, reweave_report::json);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let witness = &report["findings"][0]["witness"];
    assert_eq!(witness["base"], serde_json::json!({ "T1": 300 }));
    assert_eq!(witness["schedule"], serde_json::json!([]));
    assert_eq!(witness["then"], serde_json::json!([301, 302]));
}

fn hostile() -> Trace {
    let mut builder = TraceBuilder::new();
    let bad = "<script>alert(1)</script>\u{1b}[2J\u{202e}'\"&";
    let [first, second] = [builder.thread(bad), builder.thread("</td>")];
    builder.names().give_name(first, bad);
    builder.names().give_name(second, "a`b");
    let (var, site) = (builder.var(bad), builder.site(bad));
    builder.push(first, Op::Access(AccessOp::Write, var), site);
    builder.push(second, Op::Access(AccessOp::Write, var), site);
    builder.finish().expect("two writes can happen")
}

#[test]
fn names_in_text_do_nothing_to_the_terminal() {
    let trace = hostile();
    let mut out = Vec::new();
    let analyses = reweave_catalog::select("races.hb", &[]).unwrap();
    let outcome = reweave_catalog::run(&trace, &analyses, &Settings::default(), &Quiet);
    let examined = Examined::new("\u{1b}]0;title\u{7}", &trace, &outcome);
    reweave_report::text(&mut out, &[examined]).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(!text.contains("\u{1b}[2J") && !text.contains("\u{1b}]0"), "{text:?}");
    assert!(!text.contains('\u{202e}') && text.contains("\\u{1b}[2J"), "{text:?}");
}

#[test]
fn names_in_html_are_text() {
    let page = rendered(&hostile(), false, reweave_report::html);
    // The list, one chunk of findings, what is drawn of them, and our own script.
    assert_eq!(page.matches("<script").count(), 4, "{page}");
    assert_eq!(page.matches("</script").count(), 4, "{page}");
    assert!(page.contains("&lt;script&gt;") && page.contains("\\u003cscript>"), "{page}");
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
    assert!(!page.contains("</td>") && page.contains("&lt;/td&gt;"), "{page}");
    let page = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!page.contains("http://") && !page.contains("https://"), "it needs no network");
}

#[test]
fn html_has_a_witness_table_with_a_column_per_thread() {
    let page = rendered(&reweave_testkit::std(RACE), false, reweave_report::html);
    assert!(page.contains("    step     event  T1      T2\n"), "{page}");
    assert_eq!(page.matches("\n    then  ").count(), 2, "{page}");
    assert!(page.contains("color-scheme: light dark") && page.contains("default-src 'none'"));
    assert_eq!(page.matches("<article").count(), page.matches("</article>").count());
    assert!(page.contains("<title>run.std: reweave report</title>"), "{page}");
    assert!(page.contains("\n  `w(x)` at a.c:2 and `w(x)` at b.c:9 can"));
    assert!(page.contains("<article id=\"R1\">") && !page.contains("<a href"), "{page}");
}

/// Two threads that write `count` variables, each at locations of its own.
fn many_races(count: usize) -> Trace {
    let lines = (0..count).map(|at| format!("T1|w(x{at})|a{at}\nT2|w(x{at})|b{at}\n"));
    reweave_testkit::std(&lines.collect::<String>())
}

#[test]
fn many_findings_are_listed_in_a_line_each_before_the_totals() {
    let text = rendered(&many_races(11), false, reweave_report::text);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.len() - 1;
    assert_eq!(lines[last], "11 findings (race 11)");
    assert_eq!(lines[last - 5], "R11    w(x10) at a10 and b10, count 1");
    assert!(!rendered(&many_races(10), false, reweave_report::text).contains("count 1"));
}

#[test]
fn a_page_of_many_findings_starts_with_links_to_them() {
    let page = rendered(&many_races(6), false, reweave_report::html);
    for at in 1..=6 {
        assert_eq!(page.matches(&format!("<a href=\"#R{at}\">")).count(), 1, "{page}");
        assert_eq!(page.matches(&format!("<article id=\"R{at}\">")).count(), 1, "{page}");
    }
    assert!(!rendered(&many_races(5), false, reweave_report::html).contains("<a href"));
}

#[test]
fn an_unknown_location_leaves_no_word_behind() {
    let trace = reweave_testkit::std("T1|w(x)|\nT2|w(x)|7\n");
    let text = rendered(&trace, false, reweave_report::text);
    let told = "`w(x)` and `w(x)` at location 7 can happen at the same time";
    assert!(text.contains(told) && text.contains("event 1, T1: w(x), holding"), "{text}");
}

#[test]
fn a_repaired_trace_is_said_to_be_one() {
    let mut builder = TraceBuilder::new();
    let (thread, lock, site) = (builder.thread("T1"), builder.lock("m"), builder.site("a.c:1"));
    builder.push(thread, Op::Lock(LockOp::Release, lock), site);
    let trace = builder.finish_repaired().unwrap();
    let outcome = Outcome::default();
    let examined = Examined::new("run.std", &trace, &outcome);
    let json: serde_json::Value =
        serde_json::from_str(&render(&examined, reweave_report::json)).unwrap();
    assert_eq!(json["repaired"].as_array().map(Vec::len), Some(trace.repairs().len()));
    assert!(render(&examined, reweave_report::text).contains("repaired: 1 change"));
    assert!(render(&examined, reweave_report::html).contains("This trace was repaired"));
}

/// Two locks, taken the other way round by another thread.
const CROSSED: &str = "\
T1|acq(a)|a.c:1
T1|acq(b)|a.c:2
T1|rel(b)|a.c:3
T1|rel(a)|a.c:4
T2|acq(b)|b.c:1
T2|acq(a)|b.c:2
T2|rel(a)|b.c:3
T2|rel(b)|b.c:4
";

#[test]
fn a_deadlock_shows_who_holds_what_and_where_each_waits() {
    let trace = reweave_testkit::std(CROSSED);
    expect![[r#"
        run.std: 8 events, 2 threads, 2 locks, 0 variables

        D1 deadlock  witnessed  deadlocks.exact 4636d016a4f237e8
          T1 holds `a` and waits for `b` at a.c:2, T2 holds `b` and waits for `a` at b.c:2
            event 2, T1: acq(b) at a.c:2, holding a (acquired at line 1)
            event 6, T2: acq(a) at b.c:2, holding b (acquired at line 1)
          A schedule that deadlocks:
            step     event  T1      T2
               1         1  acq(a)          a.c:1
               2         5          acq(b)  b.c:1
           waits         2  acq(b)          a.c:2
           waits         6          acq(a)  b.c:2
          The independent checker accepted the schedule.

        next: reweave explain run.std D1 --only deadlocks
        deadlocks.exact: deadlocks 1, patterns 1, candidates 1
        deadlocks.stuck: candidates 0
        1 finding (deadlock 1)
    "#]]
    .assert_eq(&rendered_by("deadlocks", &trace, false, reweave_report::text));
    let json = rendered_by("deadlocks", &trace, false, reweave_report::json);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let finding = &report["findings"][0];
    assert_eq!((&finding["id"], &finding["kind"]), (&"D1".into(), &"deadlock".into()));
    assert_eq!(finding["witness"]["then"], serde_json::json!([2, 6]));
    assert_eq!(finding["sites"][0]["locks"], serde_json::json!(["a"]));
    let page = rendered_by("deadlocks", &trace, false, reweave_report::html);
    assert_eq!(page.matches("\n   waits  ").count(), 2, "{page}");
}

/// A block in which another thread's write can come between a check and what follows from it.
const SPOILED: &str = "\
main|fork(other)|m.c:1
main|begin(deposit)|m.c:2
main|acq(m)|m.c:3
main|r(balance)|m.c:4
main|rel(m)|m.c:5
main|acq(m)|m.c:6
main|w(balance)|m.c:7
main|rel(m)|m.c:8
main|end(deposit)|m.c:9
other|acq(m)|o.c:1
other|w(balance)|o.c:2
other|rel(m)|o.c:3
";

#[test]
fn a_block_that_can_be_spoiled_is_shown_with_the_events_at_fault_marked() {
    let trace = reweave_testkit::std(SPOILED);
    expect![[r#"
        run.std: 12 events, 2 threads, 1 lock, 1 variable

        A1 atomicity  witnessed  atomicity.blocks 321f34baae358a7e
          block `deposit` of main is not atomic: other's `w(balance)` at o.c:2 can come between `r(balance)` at m.c:4 and `w(balance)` at m.c:7
            event 4, main: r(balance) at m.c:4, holding m (acquired at line 3)
            event 11, other: w(balance) at o.c:2, holding m (acquired at line 1)
            event 7, main: w(balance) at m.c:7, holding m (acquired at line 6)
          other was started at m.c:1 by main
          A schedule that shows it (> marks the events at fault):
            step     event  main            other
               1         1  fork(other)                 m.c:1
               2         2  begin(deposit)              m.c:2
               3         3  acq(m)                      m.c:3
             > 4         4  r(balance)                  m.c:4
               5         5  rel(m)                      m.c:5
               6        10                  acq(m)      o.c:1
             > 7        11                  w(balance)  o.c:2
               8        12                  rel(m)      o.c:3
               9         6  acq(m)                      m.c:6
            > 10         7  w(balance)                  m.c:7
          The independent checker accepted the schedule.

        next: reweave explain run.std A1 --only atomicity.blocks
        atomicity.blocks: blocks 1, patterns 1, location sets 1, proven 1
        1 finding (atomicity 1)
    "#]]
    .assert_eq(&rendered_by("atomicity.blocks", &trace, false, reweave_report::text));
    let json = rendered_by("atomicity.blocks", &trace, false, reweave_report::json);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let finding = &report["findings"][0];
    assert_eq!((&finding["id"], &finding["kind"]), (&"A1".into(), &"atomicity".into()));
    assert_eq!(finding["events"], serde_json::json!([4, 11, 7]));
    assert_eq!(finding["witness"]["then"], serde_json::json!([]));
    let page = rendered_by("atomicity.blocks", &trace, false, reweave_report::html);
    assert_eq!(page.matches("&gt; ").count(), 4, "{page}");
}

#[test]
fn a_read_that_sees_something_new_is_told_of() {
    let twice = "T1|begin(b)|1\nT1|r(x)|2\nT1|r(x)|3\nT1|end(b)|4\nT2|w(x)|5\n";
    let trace = reweave_testkit::std(twice);
    let remark = "Event 3 sees event 5 instead of the initial value; its thread stops there.";
    for report in [reweave_report::text as Report, reweave_report::html] {
        let text = rendered_by("atomicity.blocks", &trace, false, report);
        assert!(text.contains(remark), "{text}");
    }
    let json = rendered_by("atomicity.blocks", &trace, false, reweave_report::json);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["findings"][0]["witness"]["free"], serde_json::json!([3]));
}

#[test]
fn a_long_schedule_is_shown_around_the_events_at_fault() {
    let mut lines = String::from("T1|begin(b)|1\nT1|r(x)|2\n");
    lines += &"T1|w(mine)|3\n".repeat(60);
    lines += "T2|w(x)|5\nT1|r(x)|6\nT1|end(b)|7\n";
    let text =
        rendered_by("atomicity.blocks", &reweave_testkit::std(&lines), false, reweave_report::text);
    expect![[r#"
        A schedule that shows it (> marks the events at fault):
            step     event  T1        T2
               1         1  begin(b)        location 1
             > 2         2  r(x)            location 2
          … 59 steps between
              62        62  w(mine)         location 3
            > 63        63            w(x)  location 5
            > 64        64  r(x)            location 6
          --full shows all steps
    "#]]
    .assert_eq(&text[text.find("A schedule").unwrap()..text.find("  The indep").unwrap()]);
}

/// Figure 9 of the paper on CP, where the first pair is no race but hides a deadlock.
#[test]
fn a_first_pair_is_labelled_as_such() {
    let trace = reweave_testkit::corpus::litmus()
        .into_iter()
        .find(|case| case.name == "cp_fig9")
        .expect("the figure is there")
        .trace();
    let text = rendered_by("races.cp", &trace, true, reweave_report::text);
    expect![[r#"
        run.std: 10 events, 2 threads, 2 locks, 1 variable

        R1 race  first  races.cp fc6beb09e47feddc
          `w(x)` at location 4 and `w(x)` at location 9 are a race, or threads can deadlock before
            event 4, T1: w(x) at location 4, holding m
            event 9, T2: w(x) at location 9, holding l
          No schedule shows it, but a theorem of the relation says that these race or that threads can deadlock before: see what `deadlocks` finds.

        next: reweave explain run.std R1 --only races.cp --all
        races.cp: unordered pairs 1, second events 1, vars 1, location pairs 1
        1 finding (race 1)
    "#]]
    .assert_eq(&text);
    let plain = rendered_by("races.cp", &trace, false, reweave_report::text);
    expect![[r#"
        run.std: 10 events, 2 threads, 2 locks, 1 variable

        races.cp: unordered pairs 1, second events 1, vars 1, location pairs 1
          1 location pair unordered, but without a correct reordering for any instance tried (see --all)
        nothing found
    "#]].assert_eq(&plain);
}

#[test]
fn text_says_nothing_new_where_all_that_was_found_is_hidden() {
    let (trace, outcome) = (reweave_testkit::std(RACE), Outcome::default());
    let set_aside = SetAside { known: 2, suppressed: 1 };
    let examined = Examined { set_aside, ..Examined::new("run.std", &trace, &outcome) };
    let end = "\nnothing new (3 findings hidden)\nNot shown: 2 in the baseline, 1 suppressed.\n";
    assert!(render(&examined, reweave_report::text).ends_with(end));
    let counters = Vec::new();
    let analysis = "races.exact";
    let coverage = Coverage { analysis, truncated: Some(Truncation::Budget), counters };
    let cut_short = Outcome { coverage: vec![coverage], ..Outcome::default() };
    let line = "nothing new (3 findings hidden); not everything was searched";
    assert_eq!(reweave_report::summary(&cut_short, set_aside), line);
}

#[test]
fn text_names_other_findings_that_the_next_commands_work_for() {
    for (count, named) in [(2, "R2"), (6, "R2, R3, R4, R5, R6"), (8, "R2, R3, R4, R5, R6, …")] {
        let text = rendered(&many_races(count), false, reweave_report::text);
        let lines = format!("R1 --only races.hb\n(the same with {named})\nraces.hb:");
        assert!(text.contains(&lines), "{text}");
    }
    let alone = rendered(&many_races(1), false, reweave_report::text);
    assert!(!alone.contains("the same with"), "{alone}");
}

#[test]
fn text_says_what_cycles_of_locks_without_a_deadlock_mean() {
    // T2 looks first whether T1 is done.
    let text = "T1|acq(m)|1\nT1|acq(n)|2\nT1|rel(n)|3\nT1|rel(m)|4\nT1|w(done)|5\nT2|r(done)|6\n\
                T2|acq(n)|7\nT2|acq(m)|8\nT2|rel(m)|9\nT2|rel(n)|10\n";
    let trace = reweave_testkit::std(text);
    let text = rendered_by("deadlocks.exact", &trace, false, reweave_report::text);
    let said = "deadlocks.exact: deadlocks 0, patterns 1\n  1 cycle in the order of locks cannot deadlock as long \
                as every read sees the value that it saw; another run may show more\n";
    assert!(text.contains(said), "{text}");
    let json = rendered_by("deadlocks.exact", &trace, false, reweave_report::json);
    assert!(!json.contains("cannot deadlock"), "{json}");
}
