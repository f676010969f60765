//! The clocks hold exactly the order of the definition.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_oracle::hb;
use reweave_order::hb::{HappensBefore, Segments};
use reweave_testkit::{Scope, Shape, soak, traces};
use reweave_trace::Trace;

/// The first event pair, if any, that clocks and definition disagree on.
fn disagreement(trace: &Trace) -> Option<String> {
    let order = hb::order(trace);
    let mut clocks = HappensBefore::new();
    let mut segments = Segments::new(trace);
    let mut segment_of = Vec::new();
    for (late, event) in trace.events() {
        let clock = clocks.advance(trace, late);
        let has_ended = segments.advance(trace, late);
        let in_segments = segments.of_thread(event.thread);
        segment_of.push(in_segments.get(event.thread) - u32::from(has_ended));
        for (early, from) in trace.events() {
            let defined = early == late || order.is_before(early, late);
            let in_clock = trace.position(early) < clock.get(from.thread);
            // Within a thread, segments tell nothing that its events do not.
            let in_segment = match segment_of.get(early.number() as usize - 1) {
                Some(&segment) if from.thread != event.thread => {
                    segment <= in_segments.get(from.thread)
                }
                _ => defined,
            };
            if (in_clock, in_segment) != (defined, defined) {
                let (early, late) = (early.number(), late.number());
                return Some(format!(
                    "{early} before {late}: {in_clock} and {in_segment}, not {defined}"
                ));
            }
        }
    }
    None
}

#[track_caller]
fn check(drawing: &str, expected: &Expect) {
    let trace = reweave_testkit::trace(drawing);
    assert_eq!(disagreement(&trace), None);
    let order = hb::order(&trace);
    let mut lines = String::new();
    for (late, to) in trace.events() {
        let before: Vec<_> = trace
            .events()
            .filter(|&(early, from)| from.thread != to.thread && order.is_before(early, late))
            .map(|(early, _)| early.number().to_string())
            .collect();
        if !before.is_empty() {
            lines.push_str(&format!("{} after {}\n", late.number(), before.join(" ")));
        }
    }
    expected.assert_eq(&lines);
}

#[test]
fn a_release_comes_before_later_acquires_of_its_lock() {
    check(
        "
        t1      t2      t3
        acq(m)
        w(x)
        rel(m)
                acq(m)
                rel(m)
                        acq(n)
        ",
        &expect![[r#"
            4 after 1 2 3
            5 after 1 2 3
        "#]],
    );
}

#[test]
fn shared_sections_do_not_order_each_other() {
    check(
        "
        t1       t2       t3
        racq(m)
        rrel(m)
                 racq(m)
                 rrel(m)
                          acq(m)
        ",
        &expect![[r#"
            5 after 1 2 3 4
        "#]],
    );
}

#[test]
fn an_atomic_read_comes_after_the_atomic_write_it_sees_and_no_other() {
    check(
        "
        t1      t2      t3
        aw(x)
                w(x)
                        ar(x)
        aw(x)
                        ar(x)
        ",
        &expect![[r#"
            5 after 1 4
        "#]],
    );
}

#[test]
fn a_fork_comes_before_a_join_even_if_the_thread_never_runs() {
    check(
        "
        t1        t2
        fork(t3)
                  join(t3)
        ",
        &expect![[r#"
            2 after 1
        "#]],
    );
}

#[test]
fn clocks_agree_with_the_definition_on_every_small_trace() {
    let scopes = [
        Scope::LOCKS.events(6),
        Scope::LOCKS.threads(3).things(2),
        Scope::SHARED_LOCKS.threads(3).events(5),
        Scope::FORKS.threads(3).events(5),
        Scope::NOTIFIES.threads(3).events(5),
        Scope::TIMEOUTS.threads(3).events(5),
        Scope::MONITORS.events(6),
        Scope::BARRIERS.threads(3).events(7),
        Scope::SEMAPHORES.threads(3).events(6),
        Scope::ATOMICS.threads(3).events(4),
        Scope::REST,
    ];
    for scope in scopes {
        scope.for_each(|trace| {
            let found = disagreement(trace);
            assert_eq!(found, None, "\n{}", reweave_testkit::draw(trace));
        });
    }
}

proptest! {
    #![proptest_config(soak::config(300))]

    #[test]
    fn clocks_agree_with_the_definition_on_everything(trace in traces(Shape::EVERYTHING)) {
        prop_assert_eq!(disagreement(&trace), None);
    }

    #[test]
    fn clocks_agree_with_the_definition_on_nested_locks(trace in traces(Shape::NESTED)) {
        prop_assert_eq!(disagreement(&trace), None);
    }

    #[test]
    fn clocks_agree_with_the_definition_on_signals(trace in traces(Shape::SIGNALS)) {
        prop_assert_eq!(disagreement(&trace), None);
    }
}
