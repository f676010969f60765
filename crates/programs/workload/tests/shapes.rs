//! Every shape gives well-formed traces of the length asked for, fixed by the seed.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use reweave_trace::{BarrierOp, ConditionOp, LockOp, Op, SemaphoreOp, ThreadOp, Trace};
use reweave_workload::{Config, Shape, generate, generate_while};

fn text(trace: &Trace, lines: usize) -> String {
    let mut text = String::new();
    for (id, event) in trace.events().take(lines) {
        let location = trace.names().location(event.site);
        writeln!(text, "{}|{location}", trace.spell(id)).expect("a string takes any text");
    }
    text
}

#[track_caller]
fn check(shape: Shape, expected: &Expect) {
    let config = Config { threads: 3, locks: 2, vars: 4, events: 40, shape, ..Config::default() };
    expected.assert_eq(&text(&generate(&config), 14));
}

#[test]
fn the_first_lines_of_a_seed_never_change() {
    check(
        Shape::Mixed,
        &expect![[r#"
        T0|fork(T1)|file14.c:92
        T0|fork(T2)|file8.c:89
        T1|w(v2)|file3.c:35
        T1|r(v3)|file16.c:31
        T2|r(v0)|file2.c:47
        T0|acq(l1)|file11.c:74
        T1|r(v2)|file8.c:78
        T0|r(v3)|file10.c:60
        T1|r(v2)|file14.c:97
        T2|w(v2)|file18.c:26
        T0|rel(l1)|file2.c:64
        T0|r(v0)|file17.c:52
        T1|acq(l1)|file9.c:42
        T1|w(v1)|file17.c:21
    "#]],
    );
    check(
        Shape::LockHeavy,
        &expect![[r#"
        T0|fork(T1)|file14.c:92
        T0|fork(T2)|file8.c:89
        T1|acq(l0)|file12.c:91
        T0|acq(l1)|file8.c:78
        T0|r(v2)|file10.c:60
        T1|r(v2)|file14.c:97
        T0|rel(l1)|file13.c:38
        T1|acq(l1)|file2.c:64
        T1|w(v1)|file18.c:81
        T1|rel(l1)|file1.c:76
        T1|rel(l0)|file3.c:11
        T2|acq(l0)|file17.c:52
        T1|acq(l1)|file0.c:75
        T1|w(v2)|file11.c:37
    "#]],
    );
    check(
        Shape::ForkJoin,
        &expect![[r#"
        T0|fork(T1)|file14.c:92
        T0|fork(T2)|file8.c:89
        T1|w(v2)|file3.c:35
        T1|r(v3)|file16.c:31
        T2|r(v0)|file2.c:47
        T0|acq(l1)|file5.c:7
        T1|r(v2)|file10.c:88
        T2|r(v3)|file6.c:49
        T0|r(v0)|file17.c:88
        T2|r(v0)|file6.c:4
        T0|r(v2)|file6.c:52
        T2|r(v3)|file7.c:88
        T0|r(v1)|file12.c:15
        T0|rel(l1)|file19.c:17
    "#]],
    );
}

#[test]
fn nor_do_those_of_shapes_that_wait() {
    check(
        Shape::ProducerConsumer,
        &expect![[r#"
        T0|fork(T1)|file14.c:92
        T0|fork(T2)|file8.c:89
        T2|acq(l0)|file16.c:31
        T2|w(v2)|file17.c:69
        T2|rel(l0)|file10.c:32
        T2|post(s0)|file0.c:88
        T2|r(v0)|file11.c:96
        T2|acq(l0)|file14.c:97
        T2|w(v1)|file13.c:38
        T2|rel(l0)|file14.c:17
        T0|acq(l0)|file13.c:13
        T2|post(s0)|file16.c:79
        T0|w(v1)|file3.c:19
        T2|r(v2)|file18.c:26
    "#]],
    );
    check(
        Shape::WaitNotify,
        &expect![[r#"
        T0|fork(T1)|file14.c:92
        T0|fork(T2)|file8.c:89
        T1|acq(l1)|file9.c:10
        T1|r(v3)|file8.c:72
        T1|rel(l1)|file5.c:74
        T0|acq(l1)|file10.c:32
        T2|acq(l0)|file10.c:88
        T2|w(v3)|file16.c:37
        T2|notify(c0)|file17.c:24
        T2|rel(l0)|file4.c:73
        T1|wait(c1)|file17.c:38
        T2|r(v1)|file6.c:49
        T0|w(v3)|file17.c:88
        T2|r(v1)|file6.c:4
    "#]],
    );
    check(
        Shape::Barrier,
        &expect![[r#"
        T0|fork(T1)|file14.c:92
        T0|fork(T2)|file8.c:89
        T1|r(v3)|file16.c:37
        T2|w(v2)|file17.c:21
        T2|r(v2)|file2.c:19
        T1|r(v1)|file4.c:42
        T1|r(v1)|file17.c:75
        T2|w(v3)|file18.c:82
        T2|r(v0)|file2.c:54
        T0|r(v3)|file13.c:88
        T2|w(v3)|file19.c:41
        T1|r(v1)|file4.c:34
        T0|r(v0)|file1.c:88
        T1|w(v1)|file4.c:78
    "#]],
    );
}

#[test]
fn there_are_exactly_as_many_events_as_asked_for() {
    for shape in Shape::ALL {
        for threads in [0, 1, 2, 7] {
            for locks in [0, 1, 5] {
                for events in [0, 1, 13, 2_000] {
                    for seed in 0..3 {
                        let config = Config { events, threads, locks, vars: 3, seed, shape };
                        assert_eq!(generate(&config).len(), events, "{config:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn each_shape_does_what_it_is_named_for() {
    let has = |shape, wanted: fn(Op) -> bool| {
        let trace = generate(&Config { shape, events: 2_000, ..Config::default() });
        trace.events().any(|(_, event)| wanted(event.op))
    };
    assert!(has(Shape::Guarded, |op| matches!(op, Op::Lock(LockOp::Acquire, _))));
    assert!(has(Shape::Mixed, |op| matches!(op, Op::Lock(LockOp::Acquire, _))));
    assert!(has(Shape::LockHeavy, |op| matches!(op, Op::Lock(LockOp::Release, _))));
    assert!(has(Shape::ForkJoin, |op| matches!(op, Op::Thread(ThreadOp::Join, _))));
    assert!(has(Shape::ProducerConsumer, |op| matches!(op, Op::Semaphore(SemaphoreOp::Take, _))));
    assert!(has(Shape::WaitNotify, |op| matches!(op, Op::Condition(ConditionOp::Wake, _))));
    assert!(has(Shape::Barrier, |op| matches!(op, Op::Barrier(BarrierOp::Depart, _))));
}

#[test]
fn who_says_stop_gets_nothing() {
    let config = Config { events: 1_000_000, ..Config::default() };
    assert!(generate_while(&config, &|events| events < 100_000).is_none());
}
