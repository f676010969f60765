//! Uses after free and after close, compared with their definitions.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use reweave_analysis::{Detail, Guarantee, Settings, Subject};
use reweave_base::Rng;
use reweave_lifetimes::{close, free::uses};
use reweave_oracle::lifetimes::{uses_after_close, uses_after_free, uses_unordered_with_free};
use reweave_testkit::soak;
use reweave_trace::{EventId, MemoryOrder, Trace};

const STATES_MAX: usize = 200_000;

/// The pairs of a free and an access that are found in `trace`.
fn found(trace: &Trace, settings: &Settings) -> BTreeSet<(EventId, EventId)> {
    let findings = uses(&Subject::new(trace), settings);
    let pair = |events: &[EventId]| (events[0], events[1]);
    findings.iter().map(|finding| pair(&finding.events)).collect()
}

#[track_caller]
fn check(text: &str, expected: &[(u32, u32)]) {
    let trace = reweave_testkit::trace(text);
    let numbers = |pairs: BTreeSet<(EventId, EventId)>| -> Vec<(u32, u32)> {
        pairs.into_iter().map(|(free, access)| (free.number(), access.number())).collect()
    };
    let all = Settings { all: true, ..Settings::default() };
    assert_eq!(numbers(found(&trace, &all)), expected);
    assert_eq!(numbers(defined(&trace)), expected);
}

/// What the definitions say of `trace`: accesses that can come after the free, or that nothing orders with it.
fn defined(trace: &Trace) -> BTreeSet<(EventId, EventId)> {
    let mut pairs = uses_after_free(trace, STATES_MAX).unwrap();
    if trace.synchronization().is_weak() {
        pairs.extend(uses_unordered_with_free(trace));
    }
    pairs
}

#[test]
fn a_lock_keeps_the_two_apart_but_in_no_order() {
    check(
        "
        T1        T2
        alloc(o)
        fork(T2)
                  acq(m)
                  w(o+4)
                  rel(m)
        acq(m)
        free(o)
        rel(m)
        ",
        &[(7, 4)],
    );
}

#[test]
fn who_saw_that_the_other_was_done_frees_after_it() {
    check(
        "
        T1        T2
        alloc(o)
        fork(T2)
                  r(o)
                  acq(m)
                  w(done)
                  rel(m)
        acq(m)
        r(done)
        rel(m)
        free(o)
        ",
        &[],
    );
    check(
        "
        T1        T2
        alloc(o)
        fork(T2)
                  r(o)
        join(T2)
        free(o)
        ",
        &[],
    );
}

#[test]
fn a_read_may_see_something_else_by_then() {
    // What the freeing thread wrote before would be seen, so the read can only be the last.
    check(
        "
        T1        T2
        alloc(o)
        fork(T2)
                  r(o)
                  r(o)
        w(o)
        free(o)
        ",
        &[(6, 3), (6, 4)],
    );
}

#[test]
fn only_parts_of_the_object_count() {
    check(
        "
        T1            T2
        alloc(o)
        fork(T2)
                      r(other)
                      w(o.next)
                      r(o[0..16])
                      r(on)
        free(o)
        ",
        &[(7, 4), (7, 5)],
    );
}

#[test]
fn a_relaxed_count_does_not_order_the_last_use_and_the_free() {
    let counted = |first: &str, second: &str| {
        format!(
            "
            T1                T2
            alloc(o)
            fork(T2)
                              w(o+8)
                              arw.{first}(o)
            arw.{second}(o)
            free(o)
            "
        )
    };
    check(&counted("relaxed", "relaxed"), &[(6, 3)]);
    check(&counted("relaxed", "acqrel"), &[(6, 3)]);
    check(&counted("release", "relaxed"), &[(6, 3)]);
    check(&counted("release", "acquire"), &[]);
    let trace = reweave_testkit::trace(&counted("relaxed", "acqrel"));
    let findings = uses(&Subject::new(&trace), &Settings::default());
    let Detail::MemoryOrders(weak) = &findings[0].detail else { panic!("{findings:?}") };
    let weak: Vec<_> = weak.iter().map(|it| (it.event.number(), it.needed)).collect();
    assert_eq!(weak, [(4, MemoryOrder::Release)]);
}

#[test]
fn a_fence_before_the_free_acquires_what_the_count_releases() {
    check(
        "
        T1                T2
        alloc(o)
        fork(T2)
                          w(o+8)
                          arw.release(o)
        arw.release(o)
        fence(acquire)
        free(o)
        ",
        &[],
    );
}

/// The pairs of an end and a use of a handle that are found in `trace`.
fn found_handles(trace: &Trace, settings: &Settings) -> BTreeSet<(EventId, EventId)> {
    let findings = close::uses(&Subject::new(trace), settings);
    findings.iter().map(|finding| (finding.events[0], finding.events[1])).collect()
}

#[track_caller]
fn check_handles(text: &str, expected: &[(u32, u32)]) {
    let trace = reweave_testkit::trace(text);
    let numbers = |pairs: BTreeSet<(EventId, EventId)>| -> Vec<(u32, u32)> {
        pairs.into_iter().map(|(end, event)| (end.number(), event.number())).collect()
    };
    let all = Settings { all: true, ..Settings::default() };
    assert_eq!(numbers(found_handles(&trace, &all)), expected);
    assert_eq!(numbers(uses_after_close(&trace, STATES_MAX).unwrap()), expected);
    // A handle is no memory.
    assert_eq!(found(&trace, &all), BTreeSet::new());
}

#[test]
fn a_lock_is_destroyed_before_another_thread_asks_for_it() {
    check_handles(
        "
        T1             T2
        fork(T2)
                       req(m)
                       acq(m)
                       rel(m)
        free(lock(m))
        ",
        &[(5, 2), (5, 3), (5, 4)],
    );
    // Who acquired the lock last and saw the flag is the last one.
    check_handles(
        "
        T1             T2
        fork(T2)
                       acq(m)
                       w(done)
                       rel(m)
        acq(m)
        r(done)
        rel(m)
        free(lock(m))
        ",
        &[],
    );
}

#[test]
fn who_was_woken_or_let_go_uses_nothing_any_more() {
    check_handles(
        "
        T1             T2
        fork(T2)
                       acq(m)
                       rel(m)
                       wait(c)
        acq(m)
        notifyall(c)
        free(condition(c))
        rel(m)
                       wake(c)
                       acq(m)
                       rel(m)
        ",
        &[],
    );
}

#[test]
fn a_signal_after_the_lock_was_released_may_come_too_late() {
    check_handles(
        "
        T1                  T2
        fork(T2)
                            acq(m)
                            w(done)
                            rel(m)
                            notify(c)
        acq(m)
        r(done)
        rel(m)
        free(condition(c))
        ",
        &[(9, 5)],
    );
}

#[test]
fn a_descriptor_is_closed_while_another_thread_uses_it() {
    check_handles(
        "
        T1                       T2
        alloc(descriptor(3)#1)
        fork(T2)
                                 ar.relaxed(descriptor(3)#1)
        free(descriptor(3)#1)
        ",
        &[(4, 3)],
    );
    check_handles(
        "
        T1                       T2
        alloc(descriptor(3)#1)
        fork(T2)
                                 ar.relaxed(descriptor(3)#1)
        join(T2)
        free(descriptor(3)#1)
        ",
        &[],
    );
}

/// A small run of three threads with locks, flags, joins and two objects.
fn random(seed: u64) -> Trace {
    let mut rng = Rng::new(seed);
    let mut lines = vec!["T1|alloc(o)".to_owned(), "T1|alloc(p)".to_owned()];
    let mut left = ["o", "p"].to_vec();
    let mut held: [Option<&str>; 3] = [None; 3];
    let mut ends = vec!["free(lock(m))", "free(semaphore(s))", "free(condition(c))"];
    ends.rotate_left(rng.below(3));
    for _ in 0..9 {
        let thread = rng.below(3);
        let name = format!("T{}", thread + 1);
        let deed = match rng.below(10) {
            0..=3 if !left.is_empty() => {
                let object = left[rng.below(left.len())];
                let part = ["", "+8"][rng.below(2)];
                let access = ["r", "w", "ar.acquire", "arw"][rng.below(4)];
                format!("{access}({object}{part})")
            }
            4 if !left.is_empty() => format!("free({})", left.swap_remove(rng.below(left.len()))),
            5 | 6 if held[thread].is_none() && !held.contains(&Some("m")) => {
                held[thread] = Some("m");
                "acq(m)".to_owned()
            }
            5 if held[thread].is_some() => {
                let wait = ["rel(m)", "wait(c)", "timeout(c)"].map(|deed| format!("{name}|{deed}"));
                lines.extend(wait);
                "acq(m)".to_owned()
            }
            6 if held[thread].is_some() => {
                held[thread] = None;
                "rel(m)".to_owned()
            }
            7 => ["w(done)", "post(s)", "notify(c)"][rng.below(3)].to_owned(),
            8 => "r(done)".to_owned(),
            9 if held[thread].is_none() => ends.pop().unwrap_or("r(done)").to_owned(),
            _ => ["aw.release(flag)", "ar.acquire(flag)"][rng.below(2)].to_owned(),
        };
        lines.push(format!("{name}|{deed}"));
    }
    reweave_testkit::std(&lines.iter().map(|line| format!("{line}|a\n")).collect::<String>())
}

/// A smaller one, in which atomics of all orders count references and hand over.
fn random_weak(seed: u64) -> Trace {
    let mut rng = Rng::new(seed);
    let mut lines = vec!["T1|alloc(o)".to_owned()];
    let (mut is_live, mut held) = (true, None);
    let orders = ["relaxed", "acquire", "release", "acqrel"];
    for _ in 0..8 {
        let thread = rng.below(3);
        let deed = match rng.below(9) {
            0..=1 if is_live => ["r(o+8)", "w(o+8)"][rng.below(2)].to_owned(),
            2 if is_live => {
                is_live = false;
                "free(o)".to_owned()
            }
            3..=4 if is_live => format!("arw.{}(o)", orders[rng.below(4)]),
            5 if held.is_none() => {
                held = Some(thread);
                "acq(m)".to_owned()
            }
            5 if held == Some(thread) => {
                held = None;
                "rel(m)".to_owned()
            }
            6 => format!("fence({})", orders[1 + rng.below(3)]),
            7 => format!("aw.{}(flag)", orders[[0, 2][rng.below(2)]]),
            _ => format!("ar.{}(flag)", orders[rng.below(2)]),
        };
        lines.push(format!("T{}|{deed}", thread + 1));
    }
    reweave_testkit::std(&lines.iter().map(|line| format!("{line}|a\n")).collect::<String>())
}

proptest! {
    #![proptest_config(soak::config(200))]

    #[test]
    fn what_memory_orders_leave_unordered_is_found(seed in any::<u64>()) {
        let trace = random_weak(seed);
        let expected = defined(&trace);
        let all = Settings { all: true, ..Settings::default() };
        prop_assert_eq!(found(&trace, &all), expected.clone());
        let findings = uses(&Subject::new(&trace), &Settings::default());
        prop_assert!(findings.iter().all(|it| it.guarantee() == Guarantee::Witnessed));
        prop_assert_eq!(findings.is_empty(), expected.is_empty());
    }
}

proptest! {
    #![proptest_config(soak::config(400))]

    #[test]
    fn what_is_found_is_what_the_definition_says(seed in any::<u64>()) {
        let trace = random(seed);
        let all = Settings { all: true, ..Settings::default() };
        let expected = defined(&trace);
        prop_assert_eq!(found(&trace, &all), expected.clone());
        let findings = uses(&Subject::new(&trace), &Settings::default());
        for finding in &findings {
            prop_assert_eq!(finding.guarantee(), Guarantee::Witnessed);
            prop_assert!(expected.contains(&(finding.events[0], finding.events[1])));
        }
        // All is at one place here.
        prop_assert_eq!(findings.is_empty(), expected.is_empty());
        let expected = uses_after_close(&trace, STATES_MAX).unwrap();
        prop_assert_eq!(found_handles(&trace, &all), expected.clone());
        prop_assert_eq!(found_handles(&trace, &Settings::default()).is_empty(), expected.is_empty());
    }
}
