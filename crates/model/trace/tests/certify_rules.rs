//! Each rule of a correct reordering, accepted and refused, with what the refusal says.

use expect_test::{Expect, expect};
use reweave_base::IndexVec;
use reweave_testkit::{events, trace};
use reweave_trace::{Goal, Reordering, certify, certify_order};

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "calls read better without a reference")]
fn check(drawing: &str, schedule: &[u32], expected: Expect) {
    let trace = trace(drawing);
    let answer = match certify_order(&trace, &events(schedule)) {
        Ok(found) if found.unknown_reads_count > 0 => {
            format!("correct, {} loose reads", found.unknown_reads_count)
        }
        Ok(_) => "correct".to_owned(),
        Err(refusal) => refusal.to_string(),
    };
    expected.assert_eq(&answer);
}

const TWO_WRITES: &str = "
t1    t2
w(x)
w(y)
      w(x)
";

#[test]
fn a_thread_runs_a_prefix_in_program_order() {
    check(TWO_WRITES, &[3, 1, 2], expect!["correct"]);
    check(TWO_WRITES, &[3, 1], expect!["correct"]);
    check(TWO_WRITES, &[], expect!["correct"]);
    check(TWO_WRITES, &[2], expect!["step 1, event 2: its thread's next event is 1"]);
    check(TWO_WRITES, &[3, 1, 1], expect!["step 3, event 1: its thread's next event is 2"]);
    check(TWO_WRITES, &[3, 3], expect!["step 2, event 3: its thread has no event left"]);
    check(TWO_WRITES, &[4], expect!["step 1, event 4: the trace has no such event"]);
}

const READ_BETWEEN: &str = "
t1    t2
      r(x)
w(x)
      r(x)
w(x)
";

#[test]
fn a_read_sees_the_write_it_saw() {
    check(READ_BETWEEN, &[1, 2, 3, 4], expect!["correct"]);
    check(
        READ_BETWEEN,
        &[2, 1],
        expect![
            "step 2, event 1: the read saw the initial value and would now see the write at event 2"
        ],
    );
    check(
        READ_BETWEEN,
        &[1, 3],
        expect![
            "step 2, event 3: the read saw the write at event 2 and would now see the initial value"
        ],
    );
    check(
        READ_BETWEEN,
        &[1, 2, 4, 3],
        expect![
            "step 4, event 3: the read saw the write at event 2 and would now see the write at event 4"
        ],
    );
}

#[test]
fn an_update_sees_what_it_saw_and_is_seen() {
    let drawing = "
t1      t2
arw(x)
        arw(x)
ar(x)
";
    check(drawing, &[1, 2, 3], expect!["correct"]);
    check(
        drawing,
        &[2],
        expect![
            "step 1, event 2: the read saw the write at event 1 and would now see the initial value"
        ],
    );
    check(
        drawing,
        &[1, 3],
        expect![
            "step 2, event 3: the read saw the write at event 2 and would now see the write at event 1"
        ],
    );
}

#[test]
fn a_loose_read_may_see_anything_and_is_counted() {
    let drawing = "
t1     t2
w(x)
       r?(x)
       r?(x)
";
    check(drawing, &[2, 1, 3], expect!["correct, 2 loose reads"]);
    check(drawing, &[2], expect!["correct, 1 loose reads"]);
    check(drawing, &[1], expect!["correct"]);
}

const SECTIONS: &str = "
t1      t2
acq(m)
w(x)
rel(m)
        acq(m)
        rel(m)
";

#[test]
fn a_lock_is_acquired_while_no_other_thread_holds_it() {
    check(SECTIONS, &[4, 5, 1, 2, 3], expect!["correct"]);
    check(SECTIONS, &[4, 1], expect!["step 2, event 1: thread number 2 holds the lock"]);
    check(SECTIONS, &[1, 2, 4], expect!["step 3, event 4: thread number 1 holds the lock"]);
}

#[test]
fn a_lock_taken_twice_is_given_back_twice() {
    let drawing = "
t1      t2
acq(m)
acq(m)
rel(m)
rel(m)
        acq(m)
";
    check(drawing, &[1, 2, 3, 4, 5], expect!["correct"]);
    check(drawing, &[1, 2, 3, 5], expect!["step 4, event 5: thread number 1 holds the lock"]);
}

const MODES: &str = "
t1       t2       t3
racq(m)
         racq(m)
rrel(m)
         rrel(m)
                  acq(m)
                  racq(m)
                  rel(m)
                  rrel(m)
";

#[test]
fn shared_mode_excludes_exclusive_sections_only() {
    check(MODES, &[2, 1, 4, 3, 5, 6, 7, 8], expect!["correct"]);
    check(MODES, &[1, 5], expect!["step 2, event 5: thread number 1 holds the lock"]);
    check(MODES, &[5, 1], expect!["step 2, event 1: thread number 3 holds the lock"]);
    // The owner may take its lock in shared mode too, and keep that alone.
    check(MODES, &[5, 6, 1], expect!["step 3, event 1: thread number 3 holds the lock"]);
    check(MODES, &[5, 6, 7, 1, 2, 8], expect!["correct"]);
}

#[test]
fn a_thread_runs_after_its_fork_and_ends_before_its_join() {
    let drawing = "
t1        t2
fork(t2)
w(y)
          w(x)
          w(x)
join(t2)
";
    check(drawing, &[1, 3, 2, 4, 5], expect!["correct"]);
    check(drawing, &[3], expect!["step 1, event 3: its thread starts with the fork at event 1"]);
    check(
        drawing,
        &[1, 2, 3, 5],
        expect!["step 4, event 5: the joined thread has not run event 4"],
    );
}

#[test]
fn a_join_of_a_thread_that_never_runs_comes_after_its_fork() {
    let drawing = "
t1        t3        t2
fork(t2)
          join(t2)
";
    check(drawing, &[1, 2], expect!["correct"]);
    check(drawing, &[2], expect!["step 1, event 2: the joined thread has not run event 1"]);
}

const WAIT: &str = "
t1       t2
acq(m)
rel(m)
wait(c)
         notify(c)
wake(c)
acq(m)
";

#[test]
fn a_notify_comes_while_the_wait_that_it_woke_is_waiting() {
    check(WAIT, &[1, 2, 3, 4, 5, 6], expect!["correct"]);
    // Giving up the lock and starting to wait are one step.
    check(WAIT, &[1, 2, 4, 3, 5, 6], expect!["correct"]);
    check(
        WAIT,
        &[1, 4],
        expect!["step 2, event 4: the wait at event 3, which it woke, is not waiting"],
    );
    check(
        WAIT,
        &[1, 2, 3, 5],
        expect!["step 4, event 5: the notify that woke it, event 4, has not run"],
    );
}

#[test]
fn a_notify_that_woke_nobody_comes_while_nobody_waits() {
    let drawing = "
t1       t2
         notify(c)
wait(c)
         notify(c)
wake(c)
";
    check(drawing, &[1, 2, 3, 4], expect!["correct"]);
    check(
        drawing,
        &[2, 1],
        expect!["step 2, event 1: it would wake the wait at event 2, which it did not"],
    );
}

const TIMED: &str = "
t1          t2
wait(c)
            notify(c)
timeout(c)
wait(c)
timeout(c)
";

#[test]
fn a_wait_that_times_out_is_woken_by_nobody() {
    check(TIMED, &[1, 3, 2, 4, 5], expect!["correct"]);
    check(TIMED, &[1, 2, 3, 4, 5], expect!["correct"]);
    check(TIMED, &[2, 1, 3, 4, 5], expect!["correct"]);
    // The second wait was not there when nobody was woken.
    check(
        TIMED,
        &[1, 3, 4, 2],
        expect!["step 4, event 2: it would wake the wait at event 4, which it did not"],
    );
}

#[test]
fn a_notify_that_woke_one_may_leave_others_waiting() {
    let drawing = "
t1       t2       t3
wait(c)
                  notify(c)
wake(c)
         wait(c)
                  notify(c)
         wake(c)
";
    check(drawing, &[4, 1, 2, 5, 6, 3], expect!["correct"]);
    check(
        drawing,
        &[4, 2],
        expect!["step 2, event 2: the wait at event 1, which it woke, is not waiting"],
    );
}

#[test]
fn a_notify_all_wakes_those_it_woke_and_no_other() {
    let drawing = "
t1       t2       t3
wait(c)
                  notifyall(c)
wake(c)
         wait(c)
                  notifyall(c)
         wake(c)
";
    check(drawing, &[1, 2, 4, 3, 5, 6], expect!["correct"]);
    check(
        drawing,
        &[4, 1, 2],
        expect!["step 3, event 2: it would wake the wait at event 4, which it did not"],
    );
    check(
        drawing,
        &[2],
        expect!["step 1, event 2: the wait at event 1, which it woke, is not waiting"],
    );
}

#[test]
fn a_departure_comes_after_all_arrivals_of_its_generation() {
    let drawing = "
t1         t2
parties(b)=2
arrive(b)
           arrive(b)
depart(b)
arrive(b)
           depart(b)
           arrive(b)
depart(b)
";
    check(drawing, &[2, 1, 5, 3, 6, 4, 7], expect!["correct"]);
    check(drawing, &[1, 3], expect!["step 2, event 3: the arrival at event 2 has not run"]);
    check(
        drawing,
        &[1, 2, 3, 4, 5, 7],
        expect!["step 6, event 7: the arrival at event 6 has not run"],
    );
}

#[test]
fn known_parties_end_a_generation_without_a_departure() {
    let drawing = "
t1         t2         t3
parties(b)=2
arrive(b)
           arrive(b)
                      arrive(b)
           depart(b)
";
    check(drawing, &[1, 2, 4], expect!["correct"]);
    check(drawing, &[2, 4], expect!["step 2, event 4: the arrival at event 1 has not run"]);
}

#[test]
fn an_arrival_comes_after_those_of_earlier_generations() {
    // A barrier for two pairs its arrivals as they come: were t3 first, t1 would go on without
    // t2, and t2 would be stuck.
    let drawing = "
t1         t2         t3
parties(b)=2
arrive(b)
           arrive(b)
depart(b)
           depart(b)
                      arrive(b)
";
    check(drawing, &[2, 1, 5, 4], expect!["correct"]);
    check(drawing, &[5, 1, 2, 4], expect!["step 1, event 5: the arrival at event 1 has not run"]);
}

#[test]
fn of_unknown_parties_a_departure_comes_after_all_arrivals_seen_before_it() {
    // A barrier for two would pair t3 with t4, one for three would not.
    let drawing = "
t1         t2         t3         t4
arrive(b)
           arrive(b)
                      arrive(b)
depart(b)
           depart(b)
                                 w(x)
                                 arrive(b)
                      depart(b)
";
    check(drawing, &[1, 2, 3, 6, 7, 8], expect!["correct"]);
    check(drawing, &[1, 2, 3, 8], expect!["step 4, event 8: the arrival at event 7 has not run"]);
    check(drawing, &[1, 3], expect!["step 2, event 3: the arrival at event 2 has not run"]);
}

#[test]
fn a_release_of_another_lock_is_no_part_of_the_wait() {
    let drawing = "
t1        t2
acq(n)
rel(n)
wait(c)
          notify(c)
wake(c)
r(x)
";
    check(drawing, &[1, 2, 3, 4, 5], expect!["correct"]);
    check(
        drawing,
        &[1, 2, 4, 3, 5],
        expect!["step 3, event 4: the wait at event 3, which it woke, is not waiting"],
    );
}

#[test]
fn a_request_before_the_lock_is_taken_again_changes_nothing() {
    // The notify of t2 would wake t1, did it come between the release and the wait.
    let drawing = "
t1          t2
            acq(m)
            notify(c)
            rel(m)
acq(m)
rel(m)
wait(c)
timeout(c)
req(m)
acq(m)
";
    check(
        drawing,
        &[4, 5, 1, 2],
        expect!["step 4, event 2: it would wake the wait at event 6, which it did not"],
    );
}

#[test]
fn a_semaphore_of_known_start_never_drops_below_zero() {
    let drawing = "
t1       t2
start(s)=1
post(s)
         take(s)
         take(s)
";
    // Which of the tokens a take uses does not matter.
    check(drawing, &[2, 1, 3], expect!["correct"]);
    check(drawing, &[2, 3], expect!["step 2, event 3: the semaphore is at zero"]);
}

#[test]
fn a_take_of_unknown_start_comes_after_the_post_it_used() {
    let drawing = "
t1       t2
post(s)
         take(s)
         take(s)
";
    check(drawing, &[1, 2, 3], expect!["correct"]);
    check(drawing, &[2], expect!["step 1, event 2: the post that it used, event 1, has not run"]);
}

#[test]
fn an_object_is_freed_after_it_was_allocated() {
    let drawing = "
t1        t2
alloc(o)
          free(o)
";
    check(drawing, &[1, 2], expect!["correct"]);
    check(
        drawing,
        &[2],
        expect!["step 1, event 2: its object is allocated at event 1, which has not run"],
    );
}

#[test]
fn what_has_no_effect_is_free_to_move() {
    let drawing = "
t1             t2
begin(a)
fence(seqcst)
branch
               req(m)
let(v)
               begin(a)
end(a)
               end(a)
";
    check(drawing, &[4, 6, 1, 2, 8, 3, 5, 7], expect!["correct"]);
}

#[test]
fn a_base_names_no_more_events_than_there_are() {
    let trace = trace(TWO_WRITES);
    let reordering = Reordering { base: IndexVec::from_vec(vec![2, 2]), schedule: Vec::new() };
    let refusal = certify(&trace, &reordering, &Goal::Enabled(Vec::new())).unwrap_err();
    expect!["the fixed prefix runs 2 events of thread number 2, which has 1"]
        .assert_eq(&refusal.to_string());
}

#[test]
fn steps_count_the_base() {
    let trace = trace(TWO_WRITES);
    let reordering = Reordering { base: IndexVec::from_vec(vec![2]), schedule: events(&[3, 1]) };
    let refusal = certify(&trace, &reordering, &Goal::Enabled(Vec::new())).unwrap_err();
    expect!["step 4, event 1: its thread has no event left"].assert_eq(&refusal.to_string());
}
