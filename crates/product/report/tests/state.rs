//! What is said of a global state that meets a predicate, and how its cut is drawn.

use std::io::{self, Write};

use expect_test::{Expect, expect};
use reweave_analysis::{
    Counter, Coverage, Detail, Evidence, Finding, Fingerprint, GlobalState, Guarantee, Kind,
    Modality, Outcome, Reported, Subject,
};
use reweave_order::poset::Relation;
use reweave_report::Examined;
use reweave_testkit::events;
use reweave_trace::{EventId, Goal, Reordering, Trace};
use serde_json::{Value, json};

/// Money goes from one account to the other, and someone looks at both.
const TRANSFER: &str = "
    T1      T2      T3
    w(a)
    w(b)
                    let(i)
    acq(m)
    w(a)
            r(b)
    w(b)
    rel(m)
            acq(m)
            w(seen)
            rel(m)
";

/// What is written and read, by the number of the event.
const VALUES: [(u32, i64); 7] = [(1, 10), (2, 0), (3, 7), (5, 5), (6, 0), (7, 5), (10, 1)];

/// The trace that `drawing` shows, with `values`.
fn valued(drawing: &str, values: &[(u32, i64)]) -> Trace {
    let mut builder = reweave_testkit::fixture::builder(drawing);
    for &(number, value) in values {
        builder.value_of(events(&[number])[0], value);
    }
    builder.finish().expect("it is well formed")
}

fn transfer() -> Trace {
    valued(TRANSFER, &VALUES)
}

fn state(predicate: &str, cut: &[u32], values: &[(&str, Option<&str>)]) -> GlobalState {
    let owned = |&(term, value): &(&str, Option<&str>)| (term.to_owned(), value.map(str::to_owned));
    GlobalState {
        predicate: predicate.to_owned(),
        modality: Modality::Possibly,
        order: Relation::TraceOrderPreserving,
        method: "conjunctive",
        cut: cut.iter().copied().collect(),
        values: values.iter().map(owned).collect(),
    }
}

/// The state in which money is missing.
fn missing() -> GlobalState {
    let values = [("a", Some("5")), ("b", Some("0")), ("holds(T1, m)", Some("true"))];
    let values = [&values[..], &[("T3.i", None)]].concat();
    GlobalState {
        modality: Modality::Never,
        ..state("a + b < 10 && holds(T1, m)", &[4, 1, 0], &values)
    }
}

/// The last event of each thread that is in `cut`.
fn frontier(trace: &Trace, state: &GlobalState) -> Vec<EventId> {
    let entries = state.cut.entries().filter(|&(_, &count)| count > 0);
    entries.map(|(thread, &count)| trace.thread_events(thread)[count as usize - 1]).collect()
}

/// The finding of `state`: proven if the checker accepts its events in observed order.
fn finding(trace: &Trace, state: GlobalState) -> Finding {
    let frontier = frontier(trace, &state);
    let reordering = Reordering { base: state.cut.clone(), schedule: Vec::new() };
    let proof = Subject::new(trace).prove(reordering, Goal::Reaches(frontier.clone()));
    Finding {
        analysis: "states.find",
        kind: Kind::Predicate,
        events: frontier,
        message: format!("a state meets `{}`", state.predicate),
        count: 1,
        evidence: proof.map_or(Evidence::Unordered, Evidence::Schedule),
        detail: Detail::State(Box::new(state)),
    }
}

fn outcome(trace: &Trace, findings: Vec<Finding>) -> Outcome {
    let counters = vec![
        (Counter::States, 12),
        (Counter::Predicates, 1),
        (Counter::Met, 1),
        (Counter::Undecided, 0),
    ];
    let reported = |(at, finding)| {
        let fingerprint = Fingerprint::new(trace, &finding);
        Reported::new(format!("P{}", at + 1), fingerprint, finding)
    };
    Outcome {
        findings: findings.into_iter().enumerate().map(reported).collect(),
        coverage: vec![Coverage { analysis: "states.find", truncated: None, counters }],
        ..Outcome::default()
    }
}

fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).expect("a vector takes anything");
    let text = String::from_utf8(out).expect("reports are UTF-8");
    anstream::adapter::strip_str(&text).to_string()
}

type Report = fn(&mut dyn Write, &[Examined<'_>]) -> io::Result<()>;

fn report(trace: &Trace, state: GlobalState, report: Report) -> String {
    let outcome = outcome(trace, vec![finding(trace, state)]);
    written(|out| report(out, &[Examined::new("run.std", trace, &outcome)]))
}

/// The text on `state` alone, without what is said of the trace and of the analysis.
#[track_caller]
fn check_text(trace: &Trace, state: GlobalState, expected: &Expect) {
    let text = report(trace, state, reweave_report::text);
    let start = text.find("P1").expect("there is a finding");
    let end = text.find("\nstates.find").expect("its analysis is told of");
    expected.assert_eq(&text[start..end]);
}

type Explain = fn(&mut dyn Write, &Examined<'_>, &Reported) -> io::Result<()>;

fn explained(trace: &Trace, state: GlobalState, explain: Explain) -> String {
    let outcome = outcome(trace, vec![finding(trace, state)]);
    let examined = Examined::new("run.std", trace, &outcome);
    written(|out| explain(out, &examined, &outcome.findings[0]))
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

#[test]
fn text_says_what_the_predicate_speaks_of_and_draws_the_state_as_a_line() {
    let trace = transfer();
    expect![[r#"
        run.std: 11 events, 3 threads, 1 lock, 3 variables

        P1 predicate  witnessed  states.find 728d2e47bd7d4820
          a state meets `a + b < 10 && holds(T1, m)`
          In this state:
            a             5
            b             0
            holds(T1, m)  true
            T3.i          not known
          A run that reaches it; below the line, what each thread does next:
            step     event  T1         T2           T3
               1         1  w(a) = 10                           location 1
               2         2  w(b) = 0                            location 2
               3         4  acq(m)                              location 4
             > 4         5  w(a) = 5                            location 5
             > 5         6             r(b) = 0                 location 6
          ──────────────────── the state ─────────────────────
            next         3                          let(i) = 7  location 3
            next         7  w(b) = 5                            location 7
           later         8  rel(m)                              location 8
            next         9             acq(m)                   location 9
           later        10             w(seen) = 1              location 10
          … 1 event after
          It is a state of the trace-order-preserving relation: every read sees the write that it saw, and
          the run above reaches it.
          The independent checker accepted the schedule.

        next: reweave explain run.std 728d2e47bd7d4820 --predicate 'a + b < 10 && holds(T1, m)' --order preserving
        states.find: states 12, predicates 1, met 1
        1 finding (predicate 1)
    "#]].assert_eq(&report(&trace, missing(), reweave_report::text));
}

#[test]
fn json_has_the_predicate_the_cut_and_the_values() {
    let trace = transfer();
    let document = parsed(&report(&trace, missing(), reweave_report::json));
    let finding = &document["findings"][0];
    assert_eq!(finding["predicate"], "a + b < 10 && holds(T1, m)");
    let fields = ["modality", "order", "method"].map(|key| finding[key].clone());
    assert_eq!(fields, ["never", "preserving", "conjunctive"]);
    assert_eq!(finding["cut"], json!({"T1": 4, "T2": 1, "T3": 0}));
    assert_eq!(
        finding["values"],
        json!([
            {"term": "a", "value": "5"},
            {"term": "b", "value": "0"},
            {"term": "holds(T1, m)", "value": "true"},
            {"term": "T3.i", "value": null},
        ])
    );
    assert_eq!(finding["witness"], json!({"schedule": [1, 2, 4, 5, 6], "then": []}));
    assert_eq!((&finding["kind"], &finding["events"]), (&json!("predicate"), &json!([5, 6])));
    assert!(finding.get("witness_kind").is_none());
}

#[test]
fn a_cut_is_written_in_the_order_of_threads() {
    let columns: Vec<String> = (1..=11).map(|at| format!("T{at}")).collect();
    let trace = reweave_testkit::std(
        &columns.iter().map(|name| format!("{name}|w(x)|1\n")).collect::<String>(),
    );
    let text = report(&trace, state("x == 0", &[0, 0, 1], &[]), reweave_report::json);
    let [two, ten] = ["\"T2\": 0", "\"T10\": 0"].map(|entry| text.find(entry));
    assert!(two.is_some() && two < ten, "{text}");
}

#[test]
fn html_draws_the_line_as_a_row_and_does_nothing_that_names_say() {
    let trace = reweave_testkit::std("<b>|w(x)|a.c:1\n<b>|w(x)|a.c:2\nT2|r(y)|b.c:1\n");
    let state = state("x < 1 && `<i>` > 0", &[1, 0], &[("`<i>`", Some("<u>")), ("x", None)]);
    let page = report(&trace, state, reweave_report::html);
    let article = &page[page.find("<article").unwrap()..page.find("</article>").unwrap()];
    expect![[r#"
        <article id="P1">
        <pre>P1 predicate  witnessed  states.find ffd8ddaae3998b2b
          a state meets `x &lt; 1 &amp;&amp; `&lt;i&gt;` &gt; 0`
          In this state:
            `&lt;i&gt;`  &lt;u&gt;
            x      not known
          A run that reaches it; below the line, what each thread does next:
            step     event  &lt;b&gt;   T2
             &gt; 1         1  w(x)        a.c:1
          ──────── the state ─────────
            next         2  w(x)        a.c:2
            next         3        r(y)  b.c:1
          It is a state of the trace-order-preserving relation: every read sees the write that it saw, and
          the run above reaches it.
          The independent checker accepted the schedule.</pre>
    "#]]
    .assert_eq(article);
}

#[test]
fn explain_says_what_was_asked_and_shows_one_table() {
    let trace = transfer();
    expect![[r#"
        run.std: 11 events, 3 threads, 1 lock, 3 variables

        P1 predicate  witnessed  states.find 728d2e47bd7d4820
          a state meets `a + b < 10 && holds(T1, m)`
          In this state:
            a             5
            b             0
            holds(T1, m)  true
            T3.i          not known

        What the predicate says
          `never(a + b < 10 && holds(T1, m))` claims that no state of any run of these events meets the
          predicate. The state below does; another run of the program, with the same input, can reach it.

          It is a state after 5 events, found by method conjunctive.

        The state
          A run that reaches it; below the line, what each thread does next:
            step     event  T1         T2           T3
               1         1  w(a) = 10                           location 1
               2         2  w(b) = 0                            location 2
               3         4  acq(m)                              location 4
             > 4         5  w(a) = 5                            location 5
             > 5         6             r(b) = 0                 location 6
          ──────────────────── the state ─────────────────────
            next         3                          let(i) = 7  location 3
            next         7  w(b) = 5                            location 7
           later         8  rel(m)                              location 8
            next         9             acq(m)                   location 9
           later        10             w(seen) = 1              location 10
           later        11             rel(m)                   location 11
          It is a state of the trace-order-preserving relation: every read sees the write that it saw, and
          the run above reaches it.
          The independent checker accepted the schedule.
    "#]].assert_eq(&explained(&trace, missing(), reweave_report::explanation_text));
    let page = explained(&trace, missing(), reweave_report::explanation_html);
    for part in ["\nWhat the predicate says\n", "\nThe state\n", "─ the state ─"] {
        assert_eq!(page.matches(part).count(), 1, "{part} in {page}");
    }
    let document = parsed(&explained(&trace, missing(), reweave_report::explanation_json));
    let explanation = document["explanation"].as_object().unwrap();
    assert_eq!(explanation.keys().collect::<Vec<_>>(), ["why"]);
    assert_eq!(document["findings"][0]["cut"]["T2"], 1);
}

#[test]
fn each_modality_says_what_the_state_has_to_do_with_it() {
    let trace = transfer();
    let why = |modality| {
        let state = GlobalState { modality, ..missing() };
        let text = explained(&trace, state, reweave_report::explanation_json);
        parsed(&text)["explanation"]["why"][0].as_str().unwrap().to_owned() + "\n"
    };
    let told = Modality::ALL.map(why).concat();
    expect![[r#"
        `possibly(a + b < 10 && holds(T1, m))` asks whether any run of these events reaches a state that meets the predicate. The state below does; another run of the program, with the same input, can reach it.
        `definitely(a + b < 10 && holds(T1, m))` asks whether every run of these events that keeps their order passes a state that meets the predicate. Each does, and the state below is one; another run of the program, with the same input, can reach it.
        `always(a + b < 10 && holds(T1, m))` claims that every state of any run of these events meets the predicate. The state below does not; another run of the program, with the same input, can reach it.
        `never(a + b < 10 && holds(T1, m))` claims that no state of any run of these events meets the predicate. The state below does; another run of the program, with the same input, can reach it.
    "#]].assert_eq(&told);
}

#[test]
fn a_state_in_which_nothing_has_happened_has_everything_below_the_line() {
    check_text(
        &transfer(),
        state("a == 0", &[0, 0, 0], &[("a", None)]),
        &expect![[r#"
            P1 predicate  witnessed  states.find f436036307bb0b5a
              a state meets `a == 0`
              In this state:
                a  not known
              Nothing has happened yet; below the line is what each thread does first:
                step     event  T1         T2        T3
              ─────────────────── the state ───────────────────
                next         1  w(a) = 10                        location 1
               later         2  w(b) = 0                         location 2
                next         3                       let(i) = 7  location 3
                next         6             r(b) = 0              location 6
               later         9             acq(m)                location 9
              … 6 events after
              It is the state in which every run starts.
              The independent checker accepted the schedule.

            next: reweave explain run.std f436036307bb0b5a --predicate 'a == 0' --order preserving"#]],
    );
}

#[test]
fn a_state_in_which_all_has_happened_has_nothing_below_the_line() {
    check_text(
        &transfer(),
        state("seen == 1", &[6, 4, 1], &[("seen", Some("1"))]),
        &expect![[r#"
            P1 predicate  witnessed  states.find 739253d13fa8c2ed
              a state meets `seen == 1`
              In this state:
                seen  1
              A run of all observed events that reaches it:
                step     event  T1         T2           T3
                   1         1  w(a) = 10                           location 1
                   2         2  w(b) = 0                            location 2
                 > 3         3                          let(i) = 7  location 3
                   4         4  acq(m)                              location 4
                   5         5  w(a) = 5                            location 5
                   6         6             r(b) = 0                 location 6
                   7         7  w(b) = 5                            location 7
                 > 8         8  rel(m)                              location 8
                   9         9             acq(m)                   location 9
                  10        10             w(seen) = 1              location 10
                > 11        11             rel(m)                   location 11
              ──────────────────── the state ─────────────────────
              It is a state of the trace-order-preserving relation: every read sees the write that it saw, and
              the run above reaches it.
              The independent checker accepted the schedule.

            next: reweave explain run.std 739253d13fa8c2ed --predicate 'seen == 1' --order preserving"#]],
    );
}

/// A flag that is read without a lock.
const FLAG: &str = "
    T1        T2
    w(data)
    w(flag)
              r(flag)
              r(data)
";

#[test]
fn what_the_checker_refuses_is_drawn_as_events_and_not_as_a_run() {
    let trace = valued(FLAG, &[(1, 1), (2, 1), (3, 1), (4, 1)]);
    let values = [("done(T2)", Some("true")), ("data", Some("1"))];
    let state = GlobalState {
        order: Relation::HappensBefore,
        ..state("done(T2) && data == 1", &[1, 2], &values)
    };
    assert_eq!(finding(&trace, state.clone()).guarantee(), Guarantee::Unordered);
    check_text(
        &trace,
        state.clone(),
        &expect![[r#"
            P1 predicate  unordered  states.find 9401095d8d6bf049
              a state meets `done(T2) && data == 1`
              In this state:
                done(T2)  true
                data      1
              Its events in observed order; below the line, what each thread does next:
                         event  T1           T2
                   >         1  w(data) = 1               location 1
                             3               r(flag) = 1  location 3
                   >         4               r(data) = 1  location 4
              ─────────────── the state ────────────────
                next         2  w(flag) = 1               location 2
              It is a state of happens-before, which follows locks, forks, joins and waits and lets racing
              reads see other writes. The checker refused its events as a run, so the program may never get
              here.
              An unconfirmed candidate: no schedule proves it.

            next: reweave explain run.std 9401095d8d6bf049 --predicate 'done(T2) && data == 1' --order hb"#]],
    );
    let text = explained(&trace, state.clone(), reweave_report::explanation_text);
    expect![[r#"
        What the predicate says
          `possibly(done(T2) && data == 1)` asks whether any run of these events reaches a state that
          meets the predicate. The state below does; whether a run of the program can reach it is not
          known.

          It is a state after 3 events, found by method conjunctive.

          An unconfirmed candidate: no schedule proves it.

        The state
          Its events in observed order; below the line, what each thread does next:
                     event  T1           T2
               >         1  w(data) = 1               location 1
                         3               r(flag) = 1  location 3
               >         4               r(data) = 1  location 4
          ─────────────── the state ────────────────
            next         2  w(flag) = 1               location 2
          It is a state of happens-before, which follows locks, forks, joins and waits and lets racing
          reads see other writes. The checker refused its events as a run, so the program may never get
          here.
    "#]].assert_eq(&text[text.find("What the predicate says").unwrap()..]);
    let document = parsed(&report(&trace, state, reweave_report::json));
    let finding = &document["findings"][0];
    assert_eq!((&finding["cut"], &finding["order"]), (&json!({"T1": 1, "T2": 2}), &json!("hb")));
    assert!(finding.get("witness").is_none());
}

#[test]
fn a_run_through_a_read_whose_writer_is_not_known_is_labelled() {
    let trace = reweave_testkit::std("T1|r?(x)|1\nT1|w(y)|2\nT2|w(y)|3\n");
    let state = state("position(T1) == 1", &[1, 0], &[("position(T1)", Some("1"))]);
    let text = explained(&trace, state, reweave_report::explanation_text);
    assert!(text.contains("It depends on 1 read whose writer was not recorded."), "{text}");
    assert!(text.contains("can reach it is not known"), "{text}");
}

/// Twelve threads, of which the last two are spoken of, take turns.
fn turns(rounds: usize) -> Trace {
    let mut lines = String::new();
    for round in 0..rounds {
        for thread in 1..=12 {
            let var = if thread == 12 { "y" } else { "x" };
            lines += &format!("T{thread}|w({var})|{round}\n");
        }
    }
    reweave_testkit::std(&lines)
}

#[test]
fn of_many_threads_those_have_columns_that_the_predicate_speaks_of() {
    let trace = turns(20);
    let values = [("position(T11)", Some("3")), ("y", None)];
    let asked = state("position(T11) > y", &[3; 12], &values);
    check_text(
        &trace,
        GlobalState { order: Relation::HappensBefore, ..asked },
        &expect![[r#"
            P1 predicate  witnessed  states.find bb2402bd06a26f03
              a state meets `position(T11) > y`
              In this state:
                position(T11)  3
                y              not known
              A run that reaches it; below the line, what each thread does next:
                step     event  T1    T2    T3    T4    T5    T6    T11   T12
              … 24 steps before
                > 25        25  w(x)                                            location 2
                > 26        26        w(x)                                      location 2
                > 27        27              w(x)                                location 2
                > 28        28                    w(x)                          location 2
                > 29        29                          w(x)                    location 2
                > 30        30                                w(x)              location 2
              … 4 steps between
                > 35        35                                      w(x)        location 2
                > 36        36                                            w(y)  location 2
              ────────────────────────── the state ───────────────────────────
                next        37  w(x)                                            location 3
                next        38        w(x)                                      location 3
                next        39              w(x)                                location 3
                next        40                    w(x)                          location 3
                next        41                          w(x)                    location 3
                next        42                                w(x)              location 3
                next        47                                      w(x)        location 3
                next        48                                            w(y)  location 3
               later        49  w(x)                                            location 4
               later        50        w(x)                                      location 4
               later        51              w(x)                                location 4
               later        52                    w(x)                          location 4
               later        53                          w(x)                    location 4
               later        54                                w(x)              location 4
               later        59                                      w(x)        location 4
               later        60                                            w(y)  location 4
              … 188 events after
              --full shows all steps
              4 more threads are not shown; --format json writes the whole cut.
              It is a state of happens-before, which follows locks, forks, joins and waits; the run above
              reaches it.
              The independent checker accepted the schedule.

            next: reweave explain run.std bb2402bd06a26f03 --predicate 'position(T11) > y' --order hb"#]],
    );
}

#[test]
fn a_long_run_is_shortened_around_the_line_and_less_so_where_it_has_the_page_to_itself() {
    let trace = turns(40);
    let rows = |text: &str| {
        let line = text.find("the state ─").expect("there is a line");
        [&text[..line], &text[line..]].map(|half| half.matches("location ").count())
    };
    let at = state("true", &[20; 12], &[]);
    assert_eq!(rows(&report(&trace, at.clone(), reweave_report::text)), [8, 16]);
    assert_eq!(rows(&explained(&trace, at, reweave_report::explanation_text)), [24, 48]);
}

#[test]
fn a_long_list_of_findings_has_a_line_for_each_predicate() {
    let trace = transfer();
    let modalities = [Modality::Possibly, Modality::Never].into_iter().cycle();
    let findings = (0..12).zip(modalities).map(|(at, modality)| {
        let bound = if at == 0 { "1".repeat(99) } else { at.to_string() };
        let state = state(&format!("a < {bound}"), &[at % 5, 0, 0], &[]);
        Finding { count: 1 + u64::from(at), ..finding(&trace, GlobalState { modality, ..state }) }
    });
    let outcome = outcome(&trace, findings.collect());
    let examined = Examined::new("run.std", &trace, &outcome);
    let text = written(|out| reweave_report::text(out, &[examined]));
    let list = &text[text.rfind("P1     ").expect("there is a list")..];
    expect![[r#"
        P1     possibly(a < 11111111111111111111111111111111111111111111111111… met after 0 events, count 1
        P2     never(a < 1) broken after 1 event, count 2
        P3     possibly(a < 2) met after 2 events, count 3
    "#]].assert_eq(&list[..list.find("P4").unwrap()]);
    assert!(text.contains("2 states that break it; one shown"));
    assert!(text.contains("3 states that meet it; one shown"));
}

#[test]
fn of_many_terms_people_are_told_the_first() {
    let terms: Vec<String> = (0..25).map(|at| format!("x{at}")).collect();
    let values: Vec<_> = terms.iter().map(|term| (term.as_str(), Some("1"))).collect();
    let state = state("all(t: true)", &[1, 0, 0], &values);
    let trace = transfer();
    for kind in [reweave_report::text as Report, reweave_report::html] {
        let text = report(&trace, state.clone(), kind);
        // A page also holds what JSON reports have, which is all.
        let (before, rest) = text.split_once("id=\"report0\"").unwrap_or((&text, ""));
        let shown = rest.split_once("</script>").map_or("", |(_, shown)| shown);
        let text = format!("{before}{shown}");
        assert!(text.contains("x19") && !text.contains("x20"), "{text}");
        assert!(text.contains("and 5 more; --format json lists them all"), "{text}");
    }
    let document = parsed(&report(&trace, state, reweave_report::json));
    assert_eq!(document["findings"][0]["values"].as_array().map(Vec::len), Some(25));
}

#[test]
fn a_cut_that_does_not_fit_the_trace_is_shown_as_far_as_it_goes() {
    for (trace, cut) in [(transfer(), &[99, 99, 99, 99][..]), (reweave_testkit::std(""), &[1])] {
        let finding = Finding {
            analysis: "states.find",
            kind: Kind::Predicate,
            events: Vec::new(),
            message: String::new(),
            count: 1,
            evidence: Evidence::Unordered,
            detail: Detail::State(Box::new(state("true", cut, &[]))),
        };
        let outcome = outcome(&trace, vec![finding]);
        let examined = [Examined::new("run.std", &trace, &outcome)];
        for kind in [reweave_report::text as Report, reweave_report::html, reweave_report::json] {
            assert!(written(|out| kind(out, &examined)).contains("P1"));
        }
    }
}
