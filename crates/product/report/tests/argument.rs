//! The argument of an explanation: what hid a fault, who waits for whom, why each step is allowed.

use expect_test::expect;
use reweave_catalog::Quiet;
use reweave_report::Examined;
use reweave_trace::Trace;

/// The explanation of the first thing that the analyses called `only` find.
fn explained_by(only: &str, trace: &Trace) -> String {
    let analyses = reweave_catalog::select(only, &[]).expect("there is such an analysis");
    let outcome = reweave_catalog::run(trace, &analyses, &Default::default(), &Quiet);
    let examined = Examined::new("run.std", trace, &outcome);
    let mut out = Vec::new();
    reweave_report::explanation_text(&mut out, &examined, &outcome.findings[0])
        .expect("a vector takes anything");
    let text = String::from_utf8(out).expect("reports are UTF-8");
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn an_explanation_of_a_race_says_what_hid_it() {
    let handed = "T1|acq(m)|1\nT1|w(x)|2\nT1|rel(m)|3\nT2|acq(m)|4\nT2|rel(m)|5\nT2|w(x)|6\n";
    expect![[r#"
        run.std: 6 events, 2 threads, 1 lock, 1 variable

        R1 race  witnessed  races.exact 979926554b1f30f6
          `w(x)` at location 2 and `w(x)` at location 6 can happen at the same time
            event 2, T1: w(x) at location 2, holding m
            event 6, T2: w(x) at location 6, holding no lock

        Why it is a fault
          Two threads access the same variable, at least one of them writes, and nothing makes one wait
          for the other. One write can undo the other, and a read can come too early or see half of a
          write; C, C++ and Rust do not say what a program with a race does.

          T1 is holding m and T2 is holding no lock: there is no lock that both hold.

        Why the observed run did not show it
          In the observed run, event 2 happened before event 6: T1 released `m` (event 3) and T2 acquired
          it (event 4). A happens-before detector treats this as an order and does not report the pair.
          But a lock only keeps critical sections apart, in either order: in the schedule T2 acquires `m`
          (step 1) before T1 does (event 1, step 3).

        Which relations order the pair
          Happens-before (`hb`) and schedulable happens-before (`shb`) order the pair; weak
          causally-precedes (`wcp`) and causally-precedes (`cp`) do not. The schedule proves that this
          order is not necessary.

        How it happens
          A schedule that leads to it:
            step     event  T1      T2
               1         4          acq(m)  location 4
               2         5          rel(m)  location 5
               3         1  acq(m)          location 1
            then         2  w(x)            location 2
            then         6          w(x)    location 6
          The independent checker accepted the schedule.

        Side by side
          observed            predicted
            1  T1  acq(m)          4  T2  acq(m)
          > 2  T1  w(x)            5  T2  rel(m)
            3  T1  rel(m)          1  T1  acq(m)
            4  T2  acq(m)     then 2  T1  w(x)
            5  T2  rel(m)     then 6  T2  w(x)
          > 6  T2  w(x)

        Why each step is allowed
             1  T2  acq(m)  free: nobody has acquired it yet
             2  T2  rel(m)  releases what it acquired at step 1
             3  T1  acq(m)  free: T2 released it at step 2
          Now event 2 is next in T1 and event 6 is next in T2. Neither waits for the other, so they can
          happen in either order or at the same time.

        How to fix it
          The usual fix is to take `m` around location 6 as well, as is done at location 2.
    "#]].assert_eq(&explained_by("races.exact", &reweave_testkit::std(handed)));
}

#[test]
fn an_explanation_of_a_deadlock_shows_who_waits() {
    let crossed = "T1|acq(a)|1\nT1|acq(b)|2\nT1|rel(b)|3\nT1|rel(a)|4\n\
                   T2|acq(b)|5\nT2|acq(a)|6\nT2|rel(a)|7\nT2|rel(b)|8\n";
    let text = explained_by("deadlocks", &reweave_testkit::std(crossed));
    expect![[r#"
        Side by side
          observed            predicted
            1  T1  acq(a)           1  T1  acq(a)
          > 2  T1  acq(b)           5  T2  acq(b)
            3  T1  rel(b)     waits 2  T1  acq(b)
            4  T1  rel(a)     waits 6  T2  acq(a)
            5  T2  acq(b)
          > 6  T2  acq(a)
            7  T2  rel(a)
            8  T2  rel(b)

        Why each step is allowed
             1  T1  acq(a)  free: nobody has acquired it yet
             2  T2  acq(b)  free: nobody has acquired it yet
          Now none of them can continue: T1 waits for `b`, which T2 acquired at step 2. T2 waits for `a`,
          which T1 acquired at step 1.

        How to fix it
          T1 takes `a` before `b`; T2 takes `b` before `a`. The usual fix is one order for all of them,
          say `a` before `b`, wherever more than one is held. Where that is impossible, acquire all at
          once (`std::lock` in C++), back off and retry when the next one is taken (`trylock`), or use one
          lock for both.
    "#]]
    .assert_eq(&text[text.find("Side by side").unwrap()..]);
}

#[test]
fn an_explanation_of_a_long_schedule_shows_what_matters_and_counts_the_rest() {
    let mut lines = String::from("T1|begin(b)|1\nT1|acq(m)|1\nT1|r(x)|2\nT1|rel(m)|1\n");
    lines += &"T1|w(mine)|3\n".repeat(300);
    lines += "T2|acq(m)|1\nT2|w(x)|5\nT2|rel(m)|1\nT1|r(x)|6\nT1|end(b)|7\n";
    let text = explained_by("atomicity.blocks", &reweave_testkit::std(&lines));
    expect![[r#"
        Side by side
          observed                                        predicted
              1  T1  begin(b)                                 1  T1  begin(b)
              2  T1  acq(m)                                   2  T1  acq(m)
          >   3  T1  r(x)      sees the initial value     >   3  T1  r(x)      sees the initial value
              4  T1  rel(m)                                   4  T1  rel(m)
            … 300 events                                    … 300 steps
            305  T2  acq(m)                                 305  T2  acq(m)
          > 306  T2  w(x)                                 > 306  T2  w(x)
            307  T2  rel(m)                                 307  T2  rel(m)
          > 308  T1  r(x)      sees event 306             > 308  T1  r(x)      sees event 306
            … 1 event

        Why each step is allowed
             1  T1  begin(b)  comes next in T1
             2  T1  acq(m)    free: nobody has acquired it yet
             3  T1  r(x)      sees the initial value, as observed
          … 300 steps
           304  T1  w(mine)   comes next in T1
           305  T2  acq(m)    free: T1 released it at step 4
           306  T2  w(x)      comes next in T2
           307  T2  rel(m)    releases what it acquired at step 305
           308  T1  r(x)      sees event 306, as observed

        How to fix it
          The usual fix is to hold one lock over the whole block, and the same lock wherever else these
          variables are used.
    "#]]
    .assert_eq(&text[text.find("Side by side").unwrap()..]);
    assert!(text.contains("… 300 steps between") && text.contains("> 308       308  r(x)"));
}

/// That what is said of the first finding of the default analyses, or of those called `only`, has
/// every one of `parts`, wherever lines end.
#[track_caller]
fn check_said(only: &str, text: &str, parts: &[&str]) {
    let said = explained_by(only, &reweave_testkit::std(text));
    let said: Vec<&str> = said.split_whitespace().collect();
    let said = said.join(" ");
    for part in parts {
        assert!(said.contains(part), "{part}\n{said}");
    }
}

#[test]
fn a_lock_that_was_taken_before_is_told_by_the_section_that_matters() {
    let twice = "\
        T1|acq(l)|1\nT1|rel(l)|2\nT1|w(x)|3\nT1|acq(l)|4\n\
        T1|rel(l)|5\nT2|acq(l)|6\nT2|rel(l)|7\nT2|w(x)|8\n";
    let turn = "T2 acquires `l` (step 3), and T1 has yet to acquire it (event 4).";
    check_said("races", twice, &[turn]);
}

#[test]
fn a_lock_is_released_by_the_last_release_of_a_nest() {
    let nested = "\
        T1|acq(l)|1\nT1|acq(l)|2\nT1|w(x)|3\nT1|rel(l)|4\n\
        T1|rel(l)|5\nT2|acq(l)|6\nT2|rel(l)|7\nT2|w(x)|8\n";
    check_said("races", nested, &["T1 released `l` (event 5) and T2 acquired it (event 6)"]);
}

#[test]
fn a_thread_that_ran_nothing_was_started_by_another() {
    let empty = "\
        T0|fork(T1)|1\nT0|fork(T2)|2\nT0|w(x)|3\nT0|acq(l)|4\n\
        T0|rel(l)|5\nT1|acq(l)|6\nT1|rel(l)|7\nT1|fork(T9)|8\n\
        T2|join(T9)|9\nT2|w(x)|10\n";
    let hop = "T1 started T9 (event 8), which had no events, and T2 joined it (event 9)";
    check_said("races", empty, &[hop]);
}

#[test]
fn fixes_fit_what_is_held() {
    let shared = "T1|racq(l)|a.c:1\nT1|w(x)|a.c:2\nT1|rrel(l)|a.c:3\nT2|r(x)|b.c:1\n";
    let fix = "take it for writing there, and around b.c:1 as well";
    check_said("races", shared, &["held in shared mode at a.c:2", fix]);
    let same = "T1|acq(l)|a.c:1\nT1|w(x)|a.c:2\nT1|rel(l)|a.c:3\nT2|w(x)|a.c:2\n";
    check_said("races", same, &["`l` is not always held at a.c:2."]);
    let bare = "\
        T1|begin(B)|a.c:1\nT1|acq(l)|a.c:2\nT1|r(x)|a.c:3\nT1|rel(l)|a.c:4\n\
        T1|acq(l)|a.c:5\nT1|w(x)|a.c:6\nT1|rel(l)|a.c:7\nT1|end(B)|a.c:8\n\
        T2|w(x)|b.c:2\n";
    check_said("atomicity", bare, &["hold it from a.c:3 to a.c:6, and to take it around b.c:2"]);
    let pair = "\
        T1|acq(a)|a.c:1\nT1|acq(b)|a.c:2\nT1|rel(b)|a.c:3\nT1|rel(a)|a.c:4\n\
        T2|acq(b)|a.c:1\nT2|acq(a)|a.c:2\nT2|rel(a)|a.c:3\nT2|rel(b)|a.c:4\n";
    check_said("deadlocks", pair, &["at the same lines of code", "that of their addresses"]);
}

#[test]
fn whatever_happens_before_does_not_order_was_a_matter_of_timing() {
    let destroyed = "T2|acq(m)|1\nT2|rel(m)|2\nT1|free(lock(m))|3\n";
    let said = explained_by("lifetimes", &reweave_testkit::std(destroyed));
    let part = said.split("Why the observed run did not show it\n").nth(1).expect("it says why");
    assert!(part.contains("but happens-before leaves the two unordered:\n"), "{said}");
    let race = explained_by("races.exact", &reweave_testkit::std("T1|w(x)|1\nT2|w(x)|2\n"));
    assert!(!race.contains("did not show it"), "{race}");
    assert!(
        race.contains("Whether another detector reports it\n  Happens-before leaves"),
        "{race}"
    );
}
