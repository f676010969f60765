//! Which steps of a schedule texts show, and how they fit a table.

use expect_test::expect;
use reweave_analysis::Settings;
use reweave_catalog::Quiet;
use reweave_report::Examined;
use reweave_trace::Trace;

/// What is said of what `only` finds in `trace`.
fn reported(trace: &Trace, only: &str, is_full: bool) -> String {
    let analyses = reweave_catalog::select(only, &[]).expect("there is such an analysis");
    let outcome = reweave_catalog::run(trace, &analyses, &Settings::default(), &Quiet);
    let examined = Examined { is_full, ..Examined::new("run.std", trace, &outcome) };
    let mut out = Vec::new();
    reweave_report::text(&mut out, &[examined]).expect("a vector takes anything");
    let text = String::from_utf8(out).expect("reports are UTF-8");
    anstream::adapter::strip_str(&text).to_string()
}

/// The lines of `text` from the one that starts with `from` up to the checker's.
fn part<'t>(text: &'t str, from: &str) -> &'t str {
    let start = text.find(from).expect("there is such a part");
    let end = text[start..].find("  The independent checker").map_or(text.len(), |at| start + at);
    &text[start..end]
}

/// A thread waits for a flag; between the flag and the notify, and before, others pass on what a library keeps.
fn lost_wake_up() -> Trace {
    let mut text =
        "main|fork(T1)|a.c:34\nT1|acq(lock)|a.c:24\nT1|r(done)|a.c:25\nT1|rel(lock)|a.c:26\n\
                    T1|wait(finished)|a.c:26\n"
            .to_owned();
    for at in 0..12 {
        text += &format!("main|fork(W{at})|a.c:40\n");
        text += &format!("W{at}|w(jobs._M_size)|q.h:{}\nmain|join(W{at})|q.h:9\n", 10 + at);
        text += &format!("main|r(jobs._M_size)|q.h:{}\n", 40 + at);
    }
    text += "main|w(done)|a.c:18\n";
    for at in 0..12 {
        text += &format!(
            "main|r(jobs._M_size)|q.h:{}\nmain|w(jobs._M_size)|q.h:{}\n",
            60 + at,
            80 + at
        );
    }
    text += "main|notify(finished)|a.c:19\nT1|wake(finished)|a.c:26\nT1|acq(lock)|a.c:26\n\
             T1|rel(lock)|a.c:27\nmain|join(T1)|a.c:37\n";
    reweave_testkit::std(&text)
}

#[test]
fn what_is_set_right_before_a_lost_notify_is_shown_with_it() {
    let text = reported(&lost_wake_up(), "deadlocks.stuck", false);
    expect![[r#"
        S1 stuck  witnessed  deadlocks.stuck c5764f69ae919d85
          T1 waits on `finished` at a.c:26 for ever if main notifies at a.c:19 before T1 waits; then main waits for T1 to end at a.c:37
            event 83, main: join(T1) at a.c:37, holding no lock
            event 80, T1: wake(finished) at a.c:26, holding no lock
            event 79, main: notify(finished) at a.c:19, holding no lock: nobody waits yet when this notifies
          T1 was started at a.c:34 by main
          A schedule after which nobody goes on:
            step     event  main              T1
               1         1  fork(T1)                          a.c:34
               2         6  fork(W0)                          a.c:40
               3         2                    acq(lock)       a.c:24
               4         3                    r(done)         a.c:25
          … 45 steps between
              50        52  join(W11)                         q.h:9
              51        53  r(jobs._M_size)                   q.h:51
              52        54  w(done)                           a.c:18
          … 24 steps between
              77        79  notify(finished)                  a.c:19
              78         4                    rel(lock)       a.c:26
              79         5                    wait(finished)  a.c:26
           waits        83  join(T1)                          a.c:37
           waits        80                    wake(finished)  a.c:26
          --full shows all steps
    "#]].assert_eq(part(&text, "S1 "));
}

#[test]
fn requests_that_have_no_row_are_spoken_of_below_and_shown_in_full() {
    let trace = reweave_testkit::std(
        "T1|req(m)|1\nT1|acq(m)|2\nT1|w(x)|3\nT1|rel(m)|4\nT2|req(m)|5\nT2|acq(m)|6\nT2|rel(m)|7\nT2|w(x)|8\n",
    );
    let text = reported(&trace, "races.exact", false);
    expect![[r#"
        A schedule that leads to it:
            step     event  T1      T2
               2         6          acq(m)  location 6
               3         7          rel(m)  location 7
               5         2  acq(m)          location 2
            then         3  w(x)            location 3
            then         8          w(x)    location 8
          a missing step is the request (req) right before an acquire; --full shows all steps
    "#]]
    .assert_eq(part(&text, "A schedule"));
    let full = reported(&trace, "races.exact", true);
    expect![[r#"
        A schedule that leads to it:
            step     event  T1      T2
               1         5          req(m)  location 5
               2         6          acq(m)  location 6
               3         7          rel(m)  location 7
               4         1  req(m)          location 1
               5         2  acq(m)          location 2
            then         3  w(x)            location 3
            then         8          w(x)    location 8
    "#]]
    .assert_eq(part(&full, "A schedule"));
}

#[test]
fn requests_beside_steps_that_are_left_out_are_counted_with_them() {
    let mut text = "T2|r(z)|1\n".repeat(20);
    text += "T2|req(m)|2\nT2|acq(m)|3\n";
    for at in 0..20 {
        text += &format!("T2|r(z)|{}\n", 10 + at);
    }
    text += "T2|w(x)|8\nT1|w(x)|9\n";
    let text = reported(&reweave_testkit::std(&text), "races.exact", false);
    expect![[r#"
        A schedule that leads to it:
            step     event  T2      T1
          … 21 steps before
              22        22  acq(m)        location 3
          … 11 steps between
              34        34  r(z)          location 21
              35        35  r(z)          location 22
              36        36  r(z)          location 23
              37        37  r(z)          location 24
              38        38  r(z)          location 25
              39        39  r(z)          location 26
              40        40  r(z)          location 27
              41        41  r(z)          location 28
              42        42  r(z)          location 29
            then        43  w(x)          location 8
            then        44          w(x)  location 9
          --full shows all steps
    "#]]
    .assert_eq(part(&text, "A schedule"));
}

#[test]
fn names_too_long_for_a_column_lose_their_namespaces_and_then_their_starts() {
    let trace = reweave_testkit::std(
        "T1|w(warehouse::COUNT)|1\nT1|w(warehouse::TOTALS.0.of_the_year.weight.grams)|2\n\
         T2|w(warehouse::TOTALS.0.of_the_year.weight.grams)|3\n",
    );
    let text = reported(&trace, "races.exact", false);
    expect![[r#"
        A schedule that leads to it:
            step     event  T1                                T2
               1         1  w(COUNT)                                                            location 1
            then         2  w(…S.0.of_the_year.weight.grams)                                    location 2
            then         3                                    w(…S.0.of_the_year.weight.grams)  location 3
    "#]].assert_eq(part(&text, "A schedule"));
}

#[test]
fn namespaces_stay_where_names_would_be_the_same_without() {
    let trace = reweave_testkit::std(
        "T1|w(import::COUNT)|1\nT1|w(export::COUNT)|2\nT1|w(export::a_name_that_is_far_too_long)|3\n\
         T2|w(export::a_name_that_is_far_too_long)|4\n",
    );
    let text = reported(&trace, "races.exact", false);
    expect![[r#"
        A schedule that leads to it:
            step     event  T1                              T2
               1         1  w(import::COUNT)                                                location 1
               2         2  w(export::COUNT)                                                location 2
            then         3  w(a_name_that_is_far_too_long)                                  location 3
            then         4                                  w(a_name_that_is_far_too_long)  location 4
    "#]].assert_eq(part(&text, "A schedule"));
}
