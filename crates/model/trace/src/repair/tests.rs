//! Each repair on the smallest trace that needs it.

use expect_test::{Expect, expect};

use crate::{Op, SiteId, ThreadId, Trace, TraceBuilder};

/// Builds the events of `text`, `thread op operand` each, separated by commas.
fn builder(text: &str) -> TraceBuilder {
    let mut builder = TraceBuilder::new();
    let site: SiteId = builder.site("here");
    for event in text.split(',') {
        let words: Vec<&str> = event.split_whitespace().collect();
        let thread: ThreadId = builder.thread(words[0]);
        let kind = crate::OpKind::ALL.into_iter().find(|kind| kind.as_str() == words[1]).unwrap();
        let code = crate::OpCode::new(kind, crate::MemoryOrder::SeqCst);
        let name = words.get(2).copied().unwrap_or("");
        let operand = builder.names().intern(kind.operand(), name.as_bytes()).unwrap();
        builder.push(thread, Op::decode(code, operand), site);
    }
    builder
}

fn show(trace: &Trace) -> String {
    let events = trace.events().map(|(id, _)| trace.spell(id)).collect::<Vec<_>>().join(" ");
    let repairs = trace.repairs().iter().map(|repair| format!("\n{repair}"));
    events + &repairs.collect::<String>()
}

#[track_caller]
fn check(text: &str, expected: Expect) {
    assert!(builder(text).finish().is_err(), "there is nothing to repair");
    expected.assert_eq(&show(&builder(text).finish_repaired().unwrap()));
}

#[test]
fn a_well_formed_trace_is_left_alone() {
    let text = "T1 fork T2,T2 w x,T1 join T2,T1 acq m,T1 w x";
    let repaired = builder(text).finish_repaired().unwrap();
    assert_eq!(repaired, builder(text).finish().unwrap());
    assert!(repaired.repairs().is_empty());
}

#[test]
fn two_spellings_of_a_thread_are_one_thread() {
    let text = "T1 fork 2,T2 w x,T1 join 2";
    assert!(builder(text).finish().is_ok());
    let expected = expect![[r#"
        T1|fork(T2) T2|w(x) T1|join(T2)
        took threads `2` and `T2` as one"#]];
    expected.assert_eq(&show(&builder(text).finish_repaired().unwrap()));
}

#[test]
fn spellings_that_do_not_fit_stay_two_threads() {
    for text in ["1 fork T1", "T2 w x,T1 fork 2", "T1 join 2,T2 w x"] {
        let repaired = builder(text).finish_repaired().unwrap();
        assert_eq!(repaired.repairs(), [], "{text}");
    }
}

#[test]
fn a_fork_logged_late_moves_up_when_its_thread_was_idle() {
    check(
        "T1 w x,T2 w x,T2 r x,T1 fork T2,T1 w y",
        expect![[r#"
            T1|w(x) T1|fork(T2) T2|w(x) T2|r(x) T1|w(y)
            event 4: moved it up to before its thread's first event"#]],
    );
}

#[test]
fn early_events_of_a_thread_move_down_to_its_fork() {
    check(
        "T2 w x,T2 w y,T1 w z,T1 fork T2,T2 r x",
        expect![[r#"
            T1|w(z) T1|fork(T2) T2|w(x) T2|w(y) T2|r(x)
            event 4: moved what thread `T2` did before it, 2 events, down to after it"#]],
    );
}

#[test]
fn threads_that_fork_each_other_lose_a_fork() {
    check(
        "T1 w x,T2 w x,T1 fork T2,T2 fork T1",
        expect![[r#"
            T1|w(x) T1|fork(T2) T2|w(x)
            event 3: moved what thread `T2` did before it, 2 events, down to after it
            event 4: dropped `T2|fork(T1)`: thread `T1` runs before its fork at event 4"#]],
    );
}

#[test]
fn a_join_whose_thread_goes_on_is_dropped() {
    check(
        "T1 fork T2,T1 join T2,T2 w x",
        expect![[r#"
            T1|fork(T2) T2|w(x)
            event 2: dropped `T1|join(T2)`: its thread goes on afterwards"#]],
    );
}

#[test]
fn a_lock_given_away_unseen_is_taken_back() {
    check(
        "T1 acq m,T2 acq m,T2 w x,T2 rel m,T1 r x,T1 rel m",
        expect![[r#"
            T1|acq(m) T1|rel(m) T2|acq(m) T2|w(x) T2|rel(m) T1|acq(m) T1|r(x) T1|rel(m)
            event 2: put `T1|rel(m)` where that thread last did something
            event 5: put `T1|acq(m)` before it"#]],
    );
}

#[test]
fn a_wait_that_keeps_its_lock_gave_it_away() {
    check(
        "T1 acq m,T1 wait c,T2 acq m,T2 notify c,T2 rel m,T1 wake c,T1 w x,T1 rel m",
        expect![[r#"
            T1|acq(m) T1|rel(m) T1|wait(c) T2|acq(m) T2|notify(c) T2|rel(m) T1|wake(c) T1|acq(m) T1|w(x) T1|rel(m)
            event 3: put `T1|rel(m)` where that thread last did something
            event 7: put `T1|acq(m)` before it"#]],
    );
}

#[test]
fn a_thread_that_ended_with_a_lock_released_it() {
    check(
        "T1 fork T2,T2 acq m,T1 join T2,T1 acq m",
        expect![[r#"
            T1|fork(T2) T2|acq(m) T2|rel(m) T1|join(T2) T1|acq(m)
            event 4: put `T2|rel(m)` where that thread last did something"#]],
    );
}

#[test]
fn a_lock_held_twice_is_taken_again_once() {
    check(
        "T1 acq m,T1 acq m,T2 acq m,T2 rel m,T1 w x,T1 rel m,T1 w y,T1 rel m,T1 w z",
        expect![[r#"
            T1|acq(m) T1|acq(m) T1|rel(m) T1|rel(m) T2|acq(m) T2|rel(m) T1|acq(m) T1|w(x) T1|w(y) T1|rel(m) T1|w(z)
            event 3: put `T1|rel(m)` where that thread last did something
            event 5: put `T1|acq(m)` before it
            event 6: dropped `T1|rel(m)`: its lock was taken again only once"#]],
    );
}

#[test]
fn repairs_are_numbered_as_the_events_were() {
    check(
        "T1 rel m,T1 wait c,T1 wake c",
        expect![[r#"
            T1|wait(c) T1|timeout(c)
            event 1: dropped `T1|rel(m)`: releases lock `m`, which its thread does not hold
            event 3: took a wake from `c` that no notify explains for a timeout"#]],
    );
}

#[test]
fn a_lost_release_is_no_taking_again() {
    check(
        "A acq m,B acq m,B rel m,A acq m,A rel m,A w x,B acq m",
        expect![[r#"
        A|acq(m) A|rel(m) B|acq(m) B|rel(m) A|acq(m) A|rel(m) A|w(x) B|acq(m)
        event 2: put `A|rel(m)` where that thread last did something"#]],
    );
}

#[test]
fn a_lock_given_away_within_a_wait_leaves_the_wait_as_it_is() {
    check(
        "A acq l,A acq m,A rel m,B notify c,A wait c,B acq l,B rel l,A wake c,A acq m,A rel m",
        expect![[r#"
            A|acq(l) A|acq(m) A|rel(l) A|rel(m) B|notify(c) A|wait(c) B|acq(l) B|rel(l) A|wake(c) A|acq(m) A|acq(l) A|rel(m)
            event 6: put `A|rel(l)` where that thread last did something
            event 10: put `A|acq(l)` before it"#]],
    );
}

#[test]
fn one_thread_is_not_taken_for_two_others() {
    check(
        "0 fork 1,0 fork TT1,1 rel m,TT1 rel m,T1 w x",
        expect![[r#"
        0|fork(T1) 0|fork(TT1) T1|w(x)
        event 3: dropped `1|rel(m)`: releases lock `m`, which its thread does not hold
        event 4: dropped `TT1|rel(m)`: releases lock `m`, which its thread does not hold
        took threads `1` and `T1` as one"#]],
    );
}

#[test]
fn a_dropped_fork_is_named_by_its_number() {
    check(
        "C rel m,C rel m,A w x,B w x,A fork B,B fork A,C w x",
        expect![[r#"
        C|w(x) A|w(x) A|fork(B) B|w(x)
        event 1: dropped `C|rel(m)`: releases lock `m`, which its thread does not hold
        event 2: dropped `C|rel(m)`: releases lock `m`, which its thread does not hold
        event 5: moved what thread `B` did before it, 2 events, down to after it
        event 6: dropped `B|fork(A)`: thread `A` runs before its fork at event 6"#]],
    );
}

#[test]
fn a_release_that_comes_late_moves_up() {
    check(
        "T1 acq m,T2 acq m,T1 rel m,T2 rel m",
        expect![[r#"
            T1|acq(m) T1|rel(m) T2|acq(m) T2|rel(m)
            event 2: put `T1|rel(m)` where that thread last did something
            event 3: dropped `T1|rel(m)`: releases lock `m`, which its thread does not hold"#]],
    );
}

#[test]
fn a_lock_that_another_still_has_is_not_taken_back() {
    check(
        "T1 acq m,T2 acq m,T1 w x,T1 rel m,T2 rel m",
        expect![[r#"
            T1|acq(m) T1|rel(m) T2|acq(m) T1|w(x) T2|rel(m)
            event 2: put `T1|rel(m)` where that thread last did something
            event 4: dropped `T1|rel(m)`: releases lock `m`, which its thread does not hold"#]],
    );
}

#[test]
fn readers_give_way_to_a_writer() {
    check(
        "T1 racq m,T2 racq m,T3 acq m,T3 rel m,T1 w x,T1 rrel m",
        expect![[r#"
            T1|racq(m) T1|rrel(m) T2|racq(m) T2|rrel(m) T3|acq(m) T3|rel(m) T1|racq(m) T1|w(x) T1|rrel(m)
            event 3: put `T1|rrel(m)` where that thread last did something
            event 3: put `T2|rrel(m)` where that thread last did something
            event 5: put `T1|racq(m)` before it"#]],
    );
}

#[test]
fn a_wake_without_a_notify_is_a_timeout() {
    check(
        "T1 wait c,T1 wake c",
        expect![[r#"
            T1|wait(c) T1|timeout(c)
            event 2: took a wake from `c` that no notify explains for a timeout"#]],
    );
}

#[test]
fn a_thread_that_goes_on_waiting_timed_out() {
    check(
        "T1 wait c,T1 w x,T1 wake c",
        expect![[r#"
            T1|wait(c) T1|timeout(c) T1|w(x)
            event 2: put `T1|timeout(c)` before it
            event 3: dropped `T1|wake(c)`: its thread does not wait on `c`"#]],
    );
}

#[test]
fn ends_without_begins_are_dropped() {
    check(
        "T1 end b,T1 free o,T1 free o,T1 depart b,T1 join T1,T1 fork T2,T1 fork T2",
        expect![[r#"
            T1|free(o) T1|fork(T2)
            event 1: dropped `T1|end(b)`: ends block `b`, which its thread has not begun
            event 3: dropped `T1|free(o)`: object `o` was freed before
            event 4: dropped `T1|depart(b)`: departs from `b`, where its thread has not arrived
            event 5: dropped `T1|join(T1)`: a thread cannot wait for its own end
            event 7: dropped `T1|fork(T2)`: thread `T2` was forked already, at event 6"#]],
    );
}

#[test]
fn declared_numbers_give_way_to_events() {
    let mut builder = builder("T1 take s,T1 arrive b,T1 depart b");
    let semaphore = builder.names().semaphores.get("s").unwrap();
    let barrier = builder.names().barriers.get("b").unwrap();
    builder.declare_start(semaphore, 0);
    builder.declare_parties(barrier, 2);
    let expected = expect![[r#"
        T1|take(s) T1|arrive(b) T1|depart(b)
        forgot the start value of semaphore `s`: more was taken from it
        forgot the party count of barrier `b`: fewer arrived in a generation"#]];
    expected.assert_eq(&show(&builder.finish_repaired().unwrap()));
}

#[test]
fn values_travel_with_their_events() {
    let mut builder = builder("T1 rel m,T1 w x");
    builder.value(7);
    let trace = builder.finish_repaired().unwrap();
    assert_eq!((trace.len(), trace.value(trace.numbered(1).unwrap())), (1, Some(7)));
}
