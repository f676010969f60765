//! What a correct reordering can be said to show, accepted and refused.

use expect_test::{Expect, expect};
use reweave_base::Id;
use reweave_testkit::{events, trace};
use reweave_trace::{After, EventId, Goal, Reordering, TraceBuilder, certify};

#[track_caller]
fn check_goal(drawing: &str, schedule: &[u32], goal: &Goal, expected: &Expect) {
    let reordering = Reordering::explicit(events(schedule));
    let answer = match certify(&trace(drawing), &reordering, goal) {
        Ok(_) => "correct".to_owned(),
        Err(refusal) => refusal.to_string(),
    };
    expected.assert_eq(&answer);
}

fn event(number: u32) -> EventId {
    events(&[number])[0]
}

const TWO_WRITES: &str = "
t1    t2
w(x)
w(y)
      w(x)
";

const READ_BETWEEN: &str = "
t1    t2
      r(x)
w(x)
      r(x)
w(x)
";

#[test]
fn a_race_is_two_conflicting_accesses_that_are_next() {
    let race = |first, second| Goal::Race(event(first), event(second));
    let check = |schedule: &[u32], goal: Goal, expected: Expect| {
        check_goal(TWO_WRITES, schedule, &goal, &expected);
    };
    check(&[], race(1, 3), expect!["correct"]);
    check(
        &[1],
        race(1, 3),
        expect!["at the end, event 1: it is not its thread's next event, ready to run"],
    );
    check(
        &[1],
        race(2, 3),
        expect!["at the end, event 2: it does not conflict with the other access"],
    );
    check(
        &[],
        race(1, 1),
        expect!["at the end, event 1: another of the events belongs to its thread"],
    );
    check(&[], race(1, 9), expect!["at the end, event 9: the trace has no such event"]);
}

#[test]
fn a_racing_thread_has_started() {
    let drawing = "
t1        t2
w(y)
fork(t2)
w(x)
          w(x)
";
    let race = Goal::Race(event(3), event(4));
    check_goal(drawing, &[1, 2], &race, &expect!["correct"]);
    let early = Goal::Race(event(1), event(4));
    check_goal(
        drawing,
        &[],
        &early,
        &expect!["at the end, event 4: it is not its thread's next event, ready to run"],
    );
}

const CROSSED: &str = "
t1      t2
acq(l)
acq(m)
rel(m)
rel(l)
        acq(m)
        acq(l)
        rel(l)
        rel(m)
";

#[test]
fn a_deadlock_is_a_cycle_of_blocked_acquires() {
    let deadlock = |numbers: &[u32]| Goal::Deadlock(events(numbers));
    let check = |schedule: &[u32], goal: Goal, expected: Expect| {
        check_goal(CROSSED, schedule, &goal, &expected);
    };
    check(&[1, 5], deadlock(&[2, 6]), expect!["correct"]);
    check(&[1, 5], deadlock(&[6, 2]), expect!["correct"]);
    check(&[1, 5], deadlock(&[2]), expect!["at the end: a deadlock takes at least two threads"]);
    check(
        &[1],
        deadlock(&[2, 5]),
        expect!["at the end, event 2: it is not blocked by the thread of the next event"],
    );
}

#[test]
fn an_acquire_that_was_not_requested_blocks_nobody_where_waits_are_requested() {
    let drawn = trace(CROSSED);
    let mut builder = TraceBuilder::new();
    *builder.names() = drawn.names().clone();
    for (_, event) in drawn.events() {
        builder.push(event.thread, event.op, event.site);
    }
    builder.declare_requested_waits();
    // Nobody is seen to ask for a lock, so none of the acquires would have waited.
    let recorded = builder.finish().unwrap();
    let (order, goal) = (Reordering::explicit(events(&[1, 5])), Goal::Deadlock(events(&[2, 6])));
    let refusal = certify(&recorded, &order, &goal).unwrap_err().to_string();
    expect!["at the end, event 2: it is not blocked by the thread of the next event"]
        .assert_eq(&refusal);
}

#[test]
fn two_readers_that_both_want_the_lock_alone_deadlock() {
    let drawing = "
t1       t2
racq(m)
acq(m)
rel(m)
rrel(m)
         racq(m)
         acq(m)
";
    let deadlock = Goal::Deadlock(events(&[2, 6]));
    check_goal(drawing, &[1, 5], &deadlock, &expect!["correct"]);
}

#[test]
fn readers_block_a_request_only_if_it_is_for_exclusive_mode() {
    let drawing = "
t1       t2
racq(l)
         racq(m)
wreq(m)
         wreq(l)
";
    let deadlock = Goal::Deadlock(events(&[3, 4]));
    check_goal(drawing, &[1, 2], &deadlock, &expect!["correct"]);
    check_goal(
        &drawing.replace("wreq(m)", "req(m)"),
        &[1, 2],
        &deadlock,
        &expect!["at the end, event 3: it is not blocked by the thread of the next event"],
    );
}

#[test]
fn an_enabled_event_could_happen_now() {
    let enabled = |numbers: &[u32]| Goal::Enabled(events(numbers));
    check_goal(CROSSED, &[1], &enabled(&[2, 5]), &expect!["correct"]);
    check_goal(
        CROSSED,
        &[1, 5],
        &enabled(&[2]),
        &expect!["at the end, event 2: thread number 2 holds the lock"],
    );
    // A read can always happen; what it sees is another question.
    check_goal(READ_BETWEEN, &[1], &enabled(&[2, 3]), &expect!["correct"]);
}

#[test]
fn an_order_is_of_what_happened() {
    let order = |chain: &[u32], absent: &[u32], free: &[u32]| Goal::Order {
        chain: events(chain),
        absent: events(absent),
        free: events(free),
        after: After::RunsOn,
    };
    check_goal(READ_BETWEEN, &[1, 2], &order(&[1, 2], &[3, 4], &[]), &expect!["correct"]);
    check_goal(
        READ_BETWEEN,
        &[1, 2],
        &order(&[2, 1], &[], &[]),
        &expect!["at the end, event 1: it did not run, or not in the order claimed"],
    );
    check_goal(
        READ_BETWEEN,
        &[1, 2],
        &order(&[], &[2], &[]),
        &expect!["at the end, event 2: it ran, though it should not have"],
    );
    check_goal(READ_BETWEEN, &[2, 1], &order(&[2, 1], &[], &[1]), &expect!["correct"]);
}

#[test]
fn an_order_may_ask_that_nothing_rests_on_its_free_reads() {
    let order = |chain: &[u32], free: &[u32]| Goal::Order {
        chain: events(chain),
        absent: Vec::new(),
        free: events(free),
        after: After::Stops,
    };
    check_goal(READ_BETWEEN, &[2, 1], &order(&[2, 1], &[1]), &expect!["correct"]);
    // A free read that did not happen changed nothing.
    check_goal(READ_BETWEEN, &[1, 2], &order(&[1, 2], &[3]), &expect!["correct"]);
    check_goal(
        READ_BETWEEN,
        &[2, 1, 3],
        &order(&[2, 1], &[1]),
        &expect!["at the end, event 1: its thread ran on after it"],
    );
    let update = "
t1      t2      t3
arw(x)
        r(x)
                w(x)
";
    check_goal(update, &[3, 1], &order(&[3, 1], &[1]), &expect!["correct"]);
    check_goal(
        update,
        &[3, 1, 2],
        &order(&[3, 1], &[1]),
        &expect!["at the end, event 1: another event saw what it wrote"],
    );
    // Of a read that is free too, nothing is said.
    check_goal(update, &[3, 1, 2], &order(&[3, 1], &[1, 2]), &expect!["correct"]);
}

#[test]
fn a_read_sees_another_write() {
    let sees =
        |write: Option<u32>, after| Goal::Sees { read: event(1), write: write.map(event), after };
    let check = |schedule: &[u32], goal: Goal, expected: Expect| {
        check_goal(READ_BETWEEN, schedule, &goal, &expected);
    };
    check(&[2, 1], sees(Some(2), After::Stops), expect!["correct"]);
    check(
        &[2, 1, 3],
        sees(Some(2), After::Stops),
        expect!["at the end, event 1: its thread ran on after it"],
    );
    check(&[2, 1, 3], sees(Some(2), After::RunsOn), expect!["correct"]);
    check(
        &[1, 2],
        sees(None, After::Stops),
        expect!["at the end, event 1: it does not see the other write that is claimed"],
    );
    check(
        &[2, 1],
        sees(Some(4), After::Stops),
        expect!["at the end, event 1: it does not see the other write that is claimed"],
    );
    check(
        &[2],
        sees(Some(2), After::Stops),
        expect!["at the end, event 1: it did not run, or not in the order claimed"],
    );
}

#[test]
fn an_update_that_sees_another_value_is_seen_by_nobody() {
    let drawing = "
t1      t2      t3
arw(x)
        r(x)
                w(x)
";
    let sees = |after| Goal::Sees { read: event(1), write: Some(event(3)), after };
    check_goal(drawing, &[3, 1], &sees(After::Stops), &expect!["correct"]);
    check_goal(
        drawing,
        &[3, 1, 2],
        &sees(After::Stops),
        &expect!["at the end, event 1: another event saw what it wrote"],
    );
    check_goal(drawing, &[3, 1, 2], &sees(After::RunsOn), &expect!["correct"]);
}

#[test]
fn a_loose_read_is_not_known_to_see_another_write() {
    let drawing = "
t1    t2
w(x)
      r?(x)
";
    let sees = Goal::Sees { read: event(2), write: None, after: After::Stops };
    check_goal(
        drawing,
        &[2],
        &sees,
        &expect!["at the end, event 2: it does not see the other write that is claimed"],
    );
}

/// The goal that the variable which `access` accesses is left with `write`.
fn leaves(drawing: &str, access: u32, write: u32) -> Goal {
    let var = trace(drawing).event(event(access)).op.var().expect("it is an access");
    Goal::Leaves { var, write: event(write) }
}

#[test]
fn a_variable_is_left_with_its_last_write_when_all_has_happened() {
    let check = |schedule: &[u32], (access, write): (u32, u32), expected: Expect| {
        check_goal(TWO_WRITES, schedule, &leaves(TWO_WRITES, access, write), &expected);
    };
    check(&[3, 1, 2], (1, 1), expect!["correct"]);
    check(&[1, 2, 3], (1, 3), expect!["correct"]);
    check(&[1, 2, 3], (2, 2), expect!["correct"]);
    check(
        &[3, 1],
        (1, 1),
        expect!["at the end, event 2: it did not run, and every event should have"],
    );
    check(
        &[1, 2],
        (1, 1),
        expect!["at the end, event 3: it did not run, and every event should have"],
    );
    check(
        &[1, 2, 3],
        (1, 1),
        expect![
            "at the end, event 1: the variable is left with the write at event 3, not with this"
        ],
    );
    check(&[3, 1, 2], (1, 2), expect!["at the end, event 2: it does not write the variable"]);
    check(&[3, 1, 2], (2, 1), expect!["at the end, event 1: it does not write the variable"]);
    check(&[3, 1, 2], (1, 9), expect!["at the end, event 9: the trace has no such event"]);
    check(&[1, 3, 1, 2], (1, 1), expect!["step 3, event 1: its thread's next event is 2"]);
}

#[test]
fn a_state_is_reached_when_each_thread_has_run_up_to_its_event() {
    let check = |schedule: &[u32], last: &[u32], expected: Expect| {
        let last = last.iter().map(|&number| event(number)).collect();
        check_goal(TWO_WRITES, schedule, &Goal::Reaches(last), &expected);
    };
    check(&[], &[], expect!["correct"]);
    check(&[3, 1], &[1, 3], expect!["correct"]);
    check(&[1, 2], &[2], expect!["correct"]);
    check(&[1, 2], &[1], expect!["at the end, event 1: its thread ran on after it"]);
    check(&[1], &[2], expect!["at the end, event 2: it did not run, or not in the order claimed"]);
    check(&[1, 3], &[1], expect!["at the end, event 3: it ran, though it should not have"]);
    check(
        &[1, 3],
        &[1, 3, 1],
        expect!["at the end, event 1: another of the events belongs to its thread"],
    );
    check(&[1], &[9], expect!["at the end, event 9: the trace has no such event"]);
}

#[test]
fn reads_see_what_they_saw_whatever_a_variable_is_left_with() {
    let drawing = "
t1      t2      t3
w(x)
        r(x)
                w(x)
";
    check_goal(drawing, &[3, 1, 2], &leaves(drawing, 1, 1), &expect!["correct"]);
    check_goal(
        drawing,
        &[1, 3, 2],
        &leaves(drawing, 1, 3),
        &expect![
            "step 3, event 2: the read saw the write at event 1 and would now see the write at event 3"
        ],
    );
    check_goal(
        drawing,
        &[3, 1, 2],
        &leaves(drawing, 1, 2),
        &expect!["at the end, event 2: it does not write the variable"],
    );
}

#[test]
fn a_variable_that_is_not_in_the_trace_is_left_with_nothing() {
    let small = trace(TWO_WRITES);
    let goal = Goal::Leaves { var: Id::from_index(7), write: event(1) };
    let base = [2, 1].into_iter().collect();
    let refusal = certify(&small, &Reordering { base, schedule: Vec::new() }, &goal).unwrap_err();
    expect!["at the end, event 1: it does not write the variable"].assert_eq(&refusal.to_string());
}
