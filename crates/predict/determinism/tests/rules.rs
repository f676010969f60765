//! What each rule of the trace model does to witnesses in each mode, a figure for every one.

use crate::common;

use common::verdicts;
use expect_test::{Expect, expect};
use reweave_determinism::Mode;
use reweave_testkit::trace;

/// Compares the feasible witnesses of the trace that `drawing` shows, final reads included.
#[track_caller]
fn check(drawing: &str, expected: &Expect) {
    let trace = trace(drawing);
    assert_eq!(verdicts::fault(&trace).unwrap_or_default(), "");
    let mut text = String::new();
    for (witness, modes) in verdicts::defined(&trace).into_iter().chain(verdicts::finals(&trace)) {
        let feasible = Mode::ALL.into_iter().zip(modes).filter(|&(_, is_feasible)| is_feasible);
        let words: Vec<&str> = feasible.map(|(mode, _)| mode.as_str()).collect();
        if !words.is_empty() {
            text += &format!("{}: {}\n", verdicts::spell(&witness), words.join(" "));
        }
    }
    expected.assert_eq(&text);
}

#[test]
fn sections_of_a_lock_exclude_each_other_and_one_that_a_thread_stops_in_stays_open() {
    check(
        "
        t1        t2
        acq(l)
        w(x)
        rel(l)
                  acq(l)
                  r(x)
                  rel(l)
        ",
        &expect![[r#"
            5 saw 2, kind 1 with init: order prefix
            5 saw 2, kind 3 with init: order prefix strict
        "#]],
    );
}

#[test]
fn a_section_that_never_ends_comes_last() {
    check(
        "
        t1        t2
        acq(l)
        w(x)
        rel(l)
                  acq(l)
                  r(x)
        ",
        &expect![[r#"
            5 saw 2, kind 3 with init: order prefix strict
        "#]],
    );
}

#[test]
fn a_lock_taken_again_is_held_until_it_is_given_back_as_often() {
    check(
        "
        t1        t2
        acq(l)
        w(x)
        acq(l)
        rel(l)
        w(x)
        rel(l)
                  acq(l)
                  r(x)
                  rel(l)
        ",
        &expect![[r#"
            8 saw 5, kind 1 with init: order prefix
            8 saw 5, kind 3 with init: order prefix strict
        "#]],
    );
}

#[test]
fn shared_sections_do_not_exclude_each_other() {
    check(
        "
        t1        t2
        racq(l)
        w(x)
        rrel(l)
                  racq(l)
                  r(x)
        ",
        &expect![[r#"
            5 saw 2, kind 1 with init: order prefix strict
            5 saw 2, kind 3 with init: order prefix strict
        "#]],
    );
}

#[test]
fn a_shared_section_excludes_an_exclusive_one() {
    check(
        "
        t1        t2
        acq(l)
        w(x)
        rel(l)
                  racq(l)
                  r(x)
        ",
        &expect![[r#"
            5 saw 2, kind 3 with init: order prefix strict
        "#]],
    );
}

#[test]
fn an_exclusive_section_excludes_a_shared_one() {
    check(
        "
        t1        t2
        racq(l)
        w(x)
        rrel(l)
                  acq(l)
                  r(x)
        ",
        &expect![[r#"
            5 saw 2, kind 3 with init: order prefix strict
        "#]],
    );
}

#[test]
fn a_thread_runs_between_its_fork_and_its_join() {
    check(
        "
        t1        t2
        w(x)
        fork(t2)
                  r(x)
                  w(x)
        join(t2)
        r(x)
        ",
        &expect![[""]],
    );
}

#[test]
fn a_thread_that_does_nothing_is_joined_after_its_fork() {
    check(
        "
        t1        t2        t3
        w(x)
        fork(t3)
                  join(t3)
                  r(x)
        ",
        &expect![[""]],
    );
}

#[test]
fn a_wake_comes_after_its_notify() {
    check(
        "
        t1        t2
        wait(c)
                  w(x)
                  notify(c)
        wake(c)
        r(x)
        ",
        &expect![[""]],
    );
}

#[test]
fn a_notify_comes_after_the_wait_that_it_ends() {
    check(
        "
        t1        t2
        r(x)
        wait(c)
                  notify(c)
                  w(x)
        wake(c)
        ",
        &expect![[""]],
    );
}

/// A thread waits from the release before its wait on. For kinds 1 and 2 mode *order* asks of a
/// notify only that it comes after the waits it ended; for kind 3 it asks what the other modes ask.
#[test]
fn a_notify_that_woke_nobody_finds_nobody_unless_only_edges_count() {
    check(
        "
        t1         t2         t3
        w(x)
                   acq(l)
                   notify(c)
                   r(x)
                   rel(l)
                              acq(l)
                              w(x)
                              rel(l)
                              wait(c)
        ",
        &expect![[r#"
            4 saw 1, kind 1 with init: order prefix strict
            4 saw 1, kind 3 with init: order prefix strict
            4 saw 1, kind 1 with 7: order
            4 saw 1, kind 2 with 7: order
            end saw 7, kind 2 with 1: order
        "#]],
    );
}

#[test]
fn a_notify_that_woke_one_may_find_others() {
    check(
        "
        t1         t2         t3
        wait(c)
                   acq(l)
                   notify(c)
                   r(x)
                   rel(l)
        wake(c)
                              acq(l)
                              w(x)
                              rel(l)
                              wait(c)
        ",
        &expect![[r#"
            4 saw init, kind 2 with 8: order prefix strict
        "#]],
    );
}

#[test]
fn a_notify_that_wakes_all_finds_nobody_else() {
    check(
        "
        t1         t2           t3         t4
        wait(c)
                   acq(l)
                   notifyall(c)
                   r(x)
                   rel(l)
        wake(c)
                                acq(l)
                                w(x)
                                rel(l)
                                wait(c)
                                           w(x)
        ",
        &expect![[r#"
            4 saw init, kind 2 with 8: order
            4 saw init, kind 2 with 11: order prefix strict
            end saw 11, kind 2 with 8: order prefix strict
        "#]],
    );
}

#[test]
fn a_notify_may_find_whoever_waits_on_another_condition() {
    check(
        "
        t1         t2
        acq(l)
        notify(d)
        r(x)
        rel(l)
                   acq(l)
                   w(x)
                   rel(l)
                   wait(c)
        ",
        &expect![[r#"
            3 saw init, kind 2 with 6: order prefix strict
        "#]],
    );
}

#[test]
fn who_has_timed_out_does_not_wait() {
    check(
        "
        t1          t2          t3
                    wait(c)
                    timeout(c)
                    w(y)
        r(y)
        notify(c)
        r(x)
                                w(x)
        ",
        &expect![[r#"
            4 saw 3, kind 1 with init: order prefix strict
            4 saw 3, kind 3 with init: order prefix strict
            6 saw init, kind 2 with 7: order prefix strict
        "#]],
    );
}

#[test]
fn who_was_notified_does_not_wait_though_the_trace_ends_before_the_wake() {
    check(
        "
        t1          t2          t3
                    wait(c)
                                notify(c)
                                w(y)
        r(y)
        notify(c)
        r(x)
                                w(x)
        ",
        &expect![[r#"
            4 saw 3, kind 1 with init: order prefix strict
            4 saw 3, kind 3 with init: order prefix strict
            6 saw init, kind 2 with 7: order prefix strict
        "#]],
    );
}

#[test]
fn a_barrier_is_left_after_all_have_arrived() {
    check(
        "
        t1         t2
        parties(b)=2
        w(x)
        arrive(b)
                   arrive(b)
                   depart(b)
                   r(x)
        ",
        &expect![[""]],
    );
}

#[test]
fn a_barrier_is_entered_again_after_all_of_the_round_before() {
    check(
        "
        t1         t2
        parties(b)=1
        w(x)
        arrive(b)
                   arrive(b)
                   r(x)
        ",
        &expect![[""]],
    );
}

#[test]
fn a_take_of_an_unknown_start_uses_the_post_that_it_used() {
    check(
        "
        t1         t2
        w(x)
        post(s)
                   take(s)
                   r(x)
        ",
        &expect![[""]],
    );
}

#[test]
fn a_take_may_use_what_was_there_at_the_start_unless_only_edges_count() {
    check(
        "
        t1         t2
        start(s)=1
        w(x)
        post(s)
                   take(s)
                   r(x)
        ",
        &expect![[r#"
            4 saw 1, kind 1 with init: prefix strict
            4 saw 1, kind 3 with init: order prefix strict
        "#]],
    );
}

#[test]
fn a_take_waits_until_there_is_a_token() {
    check(
        "
        t1         t2
        start(s)=0
        w(x)
        post(s)
                   take(s)
                   r(x)
        ",
        &expect![[""]],
    );
}

#[test]
fn a_post_is_a_token() {
    check(
        "
        t1         t2
        start(s)=0
        w(x)
        post(s)
        w(x)
                   take(s)
                   r(x)
        ",
        &expect![[r#"
            5 saw 3, kind 1 with init: order prefix strict
            5 saw 3, kind 3 with init: order prefix strict
            5 saw 3, kind 1 with 1: order prefix strict
            5 saw 3, kind 3 with 1: order prefix strict
        "#]],
    );
}

#[test]
fn takes_use_up_tokens() {
    check(
        "
        t1         t2
        start(s)=1
        take(s)
        w(x)
        post(s)
                   take(s)
                   r(x)
        ",
        &expect![[r#"
            5 saw 2, kind 3 with init: order prefix strict
        "#]],
    );
}

#[test]
fn an_object_ends_after_it_was_born() {
    check(
        "
        t1         t2
        w(x)
        alloc(o)
                   free(o)
                   r(x)
        ",
        &expect![[""]],
    );
}

/// The third thread's section comes first if its write of `x` does, and then its write of `y` too,
/// which the second thread's read did not see. In mode *order* nothing keeps a read of an initial
/// value before other writes.
#[test]
fn other_reads_see_what_they_saw_unless_only_order_counts() {
    check(
        "
        t1       t2       t3
        w(x)
                 acq(l)
                 r(y)
                 r(x)
                 rel(l)
                          acq(l)
                          w(y)
                          w(x)
                          rel(l)
        ",
        &expect![[r#"
            4 saw 1, kind 1 with init: order prefix strict
            4 saw 1, kind 3 with init: order prefix strict
            4 saw 1, kind 1 with 8: order
            4 saw 1, kind 2 with 8: order
            4 saw 1, kind 3 with 8: order
            3 saw init, kind 2 with 7: order prefix strict
            end saw 8, kind 2 with 1: order
        "#]],
    );
}

#[test]
fn a_read_of_an_unknown_writer_has_no_witness_and_binds_nothing() {
    check(
        "
        t1       t2
        w(x)
                 r?(x)
                 r(x)
        ",
        &expect![[r#"
            3 saw 1, kind 1 with init: order prefix strict
            3 saw 1, kind 3 with init: order prefix strict
        "#]],
    );
}

/// The section of the third thread must end before the first may write; it has seen the update by
/// then, which in mode *strict* nobody has.
#[test]
fn nobody_sees_what_an_update_wrote_that_saw_another_write() {
    check(
        "
        t1       t2       t3
        acq(l)
        w(x)
        rel(l)
                          acq(l)
                          w(y)
                 r(y)
                 arw(x)
                          r(x)
                          rel(l)
        ",
        &expect![[r#"
            7 saw 2, kind 1 with init: order prefix
            7 saw 2, kind 3 with init: order prefix strict
            8 saw 7, kind 1 with init: order prefix strict
            8 saw 7, kind 3 with init: order prefix strict
            8 saw 7, kind 1 with 2: order prefix strict
            8 saw 7, kind 3 with 2: order prefix strict
            6 saw 5, kind 1 with init: order prefix strict
            6 saw 5, kind 3 with init: order prefix strict
        "#]],
    );
}

/// The section of the second thread never ends, so if all happens it comes last.
#[test]
fn what_comes_after_the_witness_binds_in_mode_order_alone() {
    check(
        "
        t1       t2
        w(x)
        acq(l)
        rel(l)
                 acq(l)
                 r(x)
        ",
        &expect![[r#"
            5 saw 1, kind 1 with init: prefix strict
            5 saw 1, kind 3 with init: order prefix strict
        "#]],
    );
}

#[test]
fn the_last_write_at_the_end_may_be_another() {
    check(
        "
        t1       t2       t3
        w(x)
                 w(x)
                 w(y)
                          r(y)
                          w(y)
        ",
        &expect![[r#"
            4 saw 3, kind 1 with init: order prefix strict
            4 saw 3, kind 3 with init: order prefix strict
            end saw 2, kind 2 with 1: order prefix strict
        "#]],
    );
}
